"""Files: what deletes, overwrites or opens more than the agent's own work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..shell import Command
from ..shell.words import unknown_of
from .lines import HARMLESS_DEVICES, PackLine, Place
from .rules import Objection, Pack

if TYPE_CHECKING:
    from ..lifecycle import BeforeTool

files = Pack("files", "Keeps the system, your home and the work tree from being deleted or overwritten.")

_REMOVERS = (
    "rm",
    "rmdir",
    "unlink",
    "shred",
    "srm",
    "trash",
    "rimraf",
    "del-cli",
    "wipe",
    "rd",
    "remove-item",
    "del",
    "rmtree",
)
_WHOLE: frozenset[Place] = frozenset({"root", "system", "device", "home", "repository"})
_SYSTEM_FILES = ("/etc/", "/boot/", "/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/", "/lib/", "/usr/lib/")
_CHANGES_MODE = ("chmod", "chown", "chgrp", "setfacl", "chattr")


def _targets(command: Command) -> list[str]:
    """What a command deletes."""
    return [word for word in command.operands if word or unknown_of(word)]


def _is_recursive(command: Command) -> bool:
    return command.has("--recursive", "-recurse", "/s") or command.program in ("rimraf", "rmtree")


def _looks_only(command: Command) -> bool:
    return command.has("--help", "--version", "--dry-run", "-whatif")


@files.rule(
    "delete-system",
    level="disaster",
    programs=_REMOVERS,
    why="This deletes the system, a home or a repository's history, and nothing brings it back.",
    instead="Name what you made: `rm -rf build`",
    incident="2025-12: an agent ran `rm -rf tests/ patches/ plan/ ~/` and deleted a home folder.",
    stops=[
        "rm -rf /",
        "rm -rf ~",
        "rm -rf /*",
        "rm -rf ~/.*",
        "rm -r -f /etc",
        "rm -rf .git",
        "cd ~; rm -rf .",
        "sudo rm --recursive --force /usr",
        "rm -rf tests/ ~/",
        "rm -f .git/packed-refs",
        "rm -rf /{,}",
    ],
    passes=[
        "rm -rf build",
        "rm -rf node_modules",
        "rm -rf ./dist",
        "rm -rf /tmp/x",
        "rm file",
        "rm .gitignore",
        "rm -f .git/index.lock",
    ],
)
def delete_system(command: Command, line: PackLine) -> Objection:
    if _looks_only(command):
        return None
    for word in _targets(command):
        place = line.place(command, word)
        if place == "repository" and str(word).endswith((".lock", ".sample")):
            continue
        if place in _WHOLE and (_is_recursive(command) or place == "repository" or str(word).endswith("*")):
            return f"{word} is {_NAMES[place]}"
    return None


_NAMES: dict[Place, str] = {
    "root": "the whole system",
    "system": "a part of the system",
    "device": "a device",
    "home": "a home folder",
    "repository": "the history of a repository",
    "outside": "outside of the work tree",
    "tree": "the whole work tree",
    "unknown": "known only when it runs",
    "inside": "in the work tree",
    "temporary": "temporary",
}


@files.rule(
    "delete-outside",
    level="destructive",
    programs=_REMOVERS,
    why="This deletes more than the agent's own work, or it is not known what.",
    instead="Name what you made: `rm -rf build`",
    stops=[
        "rm -rf ../other",
        "rm -rf /srv/data",
        "rm -rf .",
        "rm -rf $DIR",
        "cd .. && rm -rf build",
        "find . | xargs rm -rf",
        "rm -rf ~/projects",
    ],
    passes=["rm -rf build", "rm -rf /tmp/x", "rm -rf $TMPDIR/x", "rm a b c", "rm -rf target/debug"],
)
def delete_outside(command: Command, line: PackLine) -> Objection:
    if _looks_only(command) or not _is_recursive(command):
        return None
    for word in _targets(command):
        place = line.place(command, word)
        if place in ("outside", "tree", "unknown"):
            return f"{word or 'what it is given'} is {_NAMES[place]}"
    return None


_FIND_FILTERS = frozenset(
    [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-iwholename",
        "-regex",
        "-iregex",
        "-empty",
        "-newer",
        "-newermt",
        "-mtime",
        "-mmin",
        "-atime",
        "-amin",
        "-ctime",
        "-cmin",
        "-size",
        "-user",
        "-group",
        "-perm",
        "-type",
        "-links",
        "-samefile",
        "-inum",
        "-lname",
        "-ilname",
    ]
)
_FIND_REMOVES = frozenset({"rm", "rmdir", "unlink", "shred", "truncate", "mv", "dd"})


@files.rule(
    "find-delete-system",
    level="disaster",
    programs=["find", "fd", "fdfind", "bfs"],
    why="This deletes whatever it finds, in the system or in a home.",
    instead="Look first: `find build -name '*.log'`",
    stops=[
        "find / -delete",
        "find ~ -type f -delete",
        "find / -exec rm -rf {} +",
        "find /etc -name x -delete",
        "find / -name --help -delete",
        "find ~ -exec chown root {} +",
    ],
    passes=[
        "find . -name '*.pyc' -delete",
        "find / -name x",
        "find build -name '*.log'",
        "find /tmp/x -delete",
        "find /etc -exec cat {} +",
    ],
)
def find_delete_system(command: Command, line: PackLine) -> Objection:
    if not _find_changes(command, _FIND_REMOVES | set(_CHANGES_MODE)):
        return None
    for start in _starts_of(command):
        place = line.place(command, start)
        if place in _WHOLE:
            return f"{start} is {_NAMES[place]}"
    return None


@files.rule(
    "find-delete",
    level="destructive",
    programs=["find", "fd", "fdfind", "bfs"],
    why="This deletes whatever it finds, and it finds everything.",
    instead="Name what goes: `find . -name '*.pyc' -delete`",
    stops=[
        "find . -delete",
        "find . -type f -delete",
        "find . -exec rm -rf {} +",
        "find ../x -name y -delete",
        "find $DIR -delete",
        "find -delete",
    ],
    passes=[
        "find . -name '*.pyc' -delete",
        "find . -name x",
        "find build -delete",
        "find . -exec cat {} +",
        "find . -empty -delete",
    ],
)
def find_delete(command: Command, line: PackLine) -> Objection:
    if not _find_changes(command, _FIND_REMOVES):
        return None
    narrow = _FIND_FILTERS - {"-type"}
    for start in _starts_of(command):
        place = line.place(command, start)
        if place in ("outside", "unknown"):
            return f"{start} is {_NAMES[place]}"
        if place == "tree" and not any(word in narrow for word in command.args):
            return f"{start} is {_NAMES[place]}"
    return None


def _starts_of(command: Command) -> list[str]:
    """Where `find` begins to look."""
    starts = []
    for word in command.args:
        if word[:1] == "-" and word not in ("-H", "-L", "-P"):
            break
        if word in ("!", "(", "\\(", ")"):
            break
        if word[:1] != "-":
            starts.append(word)
    return starts or ["."]


def _find_changes(command: Command, programs: set[str] | frozenset[str]) -> bool:
    """Does `find` delete what it finds, or have one of these programs do something to it?"""
    words = set(_without_values(command.args))
    if words & {"--help", "--version"}:
        return False
    return "-delete" in words or any(one.program in programs for one in command.inner if _is_given_what_is_found(one))


def _is_given_what_is_found(inner: Command) -> bool:
    return any("{}" in unknown_of(word) or word == "{}" for word in inner.args)


def _without_values(words: list[str]) -> Iterator[str]:
    """The words of `find` that are tests and actions: not their values, nor a command that it runs."""
    rest = iter(words)
    for word in rest:
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            for inner in rest:
                if inner in (";", "\\;", "+"):
                    break
        elif word in _FIND_FILTERS and word != "-empty":
            next(rest, None)
        else:
            yield word


@files.rule(
    "overwrite-device",
    level="disaster",
    why="This writes over a device or a file of the kernel.",
    instead="Write to a file: `dd if=/dev/zero of=image.img bs=1M count=10`",
    stops=[
        "dd if=/dev/zero of=/dev/sda",
        "cat x > /dev/sda",
        "echo b > /proc/sysrq-trigger",
        "cp x /dev/nvme0n1",
        "shred /dev/sdb",
        "printf b | tee /proc/sysrq-trigger",
    ],
    passes=[
        "dd if=/dev/sda of=x.img",
        "echo x > /dev/null",
        "dd if=/dev/zero of=image.img bs=1M count=10",
        "cat /proc/cpuinfo",
        "cat x > file",
    ],
)
def overwrite_device(command: Command, line: PackLine) -> Objection:
    for path in _written(command):
        if line.place(command, path) == "device" or str(path).startswith(("/proc/sysrq", "/proc/sys/kernel", "/sys/")):
            return f"{path} is {_NAMES['device']}"
    return None


def _written(command: Command) -> Iterator[str]:
    """The files that a command writes over."""
    for path in command.writes():
        if path not in HARMLESS_DEVICES:
            yield path
    match command.program:
        case "dd":
            for word in command.args:
                if word.startswith("of="):
                    yield type(word)(word[3:]) if type(word) is str else str(word)[3:]
        case "tee" | "shred" | "truncate" | "wipe":
            yield from command.operands
        case "cp" | "mv" | "install":
            yield from command.operands[-1:] if len(command.operands) > 1 else ()


@files.rule(
    "overwrite-system",
    level="destructive",
    why="This writes over a file of the system or of a repository's history.",
    instead="Write it into the work tree, and have its owner put it in place: `tee hosts.new`",
    stops=[
        "echo x > /etc/hosts",
        "tee /etc/passwd",
        "cp x /usr/bin/ls",
        "mv x /bin/sh",
        "echo x > .git/objects/aa",
        "truncate -s 0 /etc/fstab",
        "sed -i s/a/b/ /etc/ssh/sshd_config",
    ],
    passes=[
        "echo x > hosts",
        "tee hosts.new",
        "cat /etc/hosts",
        "cp /etc/hosts .",
        "echo x > /dev/stderr",
        "sed s/a/b/ /etc/hosts",
        "echo x > .git/hooks.txt2",
    ],
)
def overwrite_system(command: Command, line: PackLine) -> Objection:
    paths = [*_written(command)]
    if command.program in ("sed", "perl") and command.has("--in-place", "-i"):
        paths += command.operands
    for path in paths:
        text = line.path(command, path)
        if text.startswith(_SYSTEM_FILES):
            return f"{path} is {_NAMES['system']}"
        if "/.git/" in text and any(
            part in text
            for part in ("/.git/objects", "/.git/refs", "/.git/HEAD", "/.git/logs", "/.git/packed-refs", "/.git/index")
        ):
            return f"{path} is {_NAMES['repository']}"
    return None


@files.rule(
    "shred",
    level="destructive",
    programs=["shred", "srm", "wipe"],
    why="This makes a file unrecoverable on purpose.",
    instead="Delete it: `rm file`",
    stops=["shred -u secrets.txt", "srm -r x", "shred -zvu x"],
    passes=["rm file", "shred --help"],
)
def shred(command: Command, line: PackLine) -> Objection:
    if _looks_only(command) or not command.operands:
        return None
    return command.program != "shred" or command.has("--remove")


@files.rule(
    "move-away",
    level="disaster",
    programs=["mv"],
    why="This moves the system, a home or a repository's history away, or to nowhere.",
    instead="Move what you made: `mv build old-build`",
    stops=["mv /* /tmp", "mv ~ /tmp", "mv x /dev/null", "mv -t /tmp /*", "mv /etc /tmp", "mv .git /tmp/x"],
    passes=["mv build old-build", "mv a b", "mv ~/x ~/y", "mv /etc/hosts.bak ."],
)
def move_away(command: Command, line: PackLine) -> Objection:
    into = command.options.get("--target-directory")
    sources = command.operands if into else command.operands[:-1]
    if (into or (command.operands[-1] if command.operands else "")) == "/dev/null":
        return "what is moved to /dev/null is gone"
    for word in sources:
        place = line.place(command, word)
        if place in ("root", "system", "home") or (place == "repository" and str(word).rstrip("/").endswith(".git")):
            if place == "system" and line.path(command, word).count("/") > 1 and not str(word).endswith("*"):
                continue
            return f"{word} is {_NAMES[place]}"
    return None


@files.rule(
    "open-everything",
    level="disaster",
    programs=_CHANGES_MODE,
    why="This changes who may use the files of the system or of a home: programs stop working, and secrets are open.",
    instead="Change what you made: `chmod u+x script.sh`",
    stops=[
        "chmod -R 777 /",
        "chown -R me /etc",
        "chmod -R 000 ~",
        "chmod --rec 000 /",
        "chown -h -R --reference=/tmp/ref /",
    ],
    passes=[
        "chmod u+x script.sh",
        "chmod -R g+w src",
        "chown -R me build",
        "chmod 600 ~/.ssh/id_rsa",
        "chmod -R 755 /srv/www/site",
    ],
)
def open_everything(command: Command, line: PackLine) -> Objection:
    if not command.has("--recursive", "--rec", "--recu", "--recur", "-R"):
        return None
    words = command.operands if "--reference" in command.options else command.operands[1:]
    for word in words:
        place = line.place(command, word)
        if place in ("root", "system", "home"):
            return f"{word} is {_NAMES[place]}"
    return None


@files.rule(
    "world-writable",
    level="destructive",
    programs=["chmod", "setfacl"],
    why="Every user and program of this machine can then change these files, or run them as their owner.",
    instead="Give it to its owner only: `chmod u+rwx script.sh`",
    risk="ASI03 Identity and Privilege Abuse",
    stops=[
        "chmod -R 777 .",
        "chmod 777 x",
        "chmod a+w /srv/x",
        "chmod u+s /usr/bin/x",
        "chmod 4755 x",
        "chmod o+w x",
        "chmod -R a+rwx src",
    ],
    passes=[
        "chmod u+rwx script.sh",
        "chmod 755 x",
        "chmod +x x",
        "chmod 644 x",
        "chmod a+r x",
        "chmod -R a+rX x",
        "chmod u+w x",
    ],
)
def world_writable(command: Command, line: PackLine) -> Objection:
    mode = next((word for word in command.args if re.fullmatch(r"[ugoa]*[+=][rwxXst]+(,.*)?|[0-7]{3,4}", word)), "")
    if re.fullmatch(r"[0-7]*[2367]", mode) and len(mode) >= 3:
        return f"{mode} lets everyone write"
    if re.fullmatch(r"[2467][0-7]{3}", mode):
        return f"{mode} lets it run as its owner"
    for part in mode.split(","):
        who, _, what = part.replace("=", "+").partition("+")
        if ("o" in who or "a" in who) and "w" in what:
            return f"{part} lets everyone write"
        if "s" in what and ("u" in who or "g" in who or not who):
            return f"{part} lets it run as its owner"
    return None


@files.rule(
    "unknown-program",
    level="destructive",
    why="It is not known which program this runs, and it is told to go through the system or a home.",
    instead="Write the program itself: `ls -la /`",
    stops=["$X -rf /", '"$(get)" -rf ~', "$TOOL -r --force /etc"],
    passes=["ls -la /", "$X -rf build", "$X -v", "X=ls; $X -r /"],
)
def unknown_program(command: Command, line: PackLine) -> Objection:
    if not unknown_of(command.path) or not any(re.fullmatch(r"-\w*[rR]\w*|--recursive", word) for word in command.args):
        return None
    return next(
        (f"{word} is {_NAMES[place]}" for word in command.operands if (place := line.place(command, word)) in _WHOLE),
        None,
    )


@files.rule(
    "sync-delete",
    level="destructive",
    programs=["rsync", "rclone", "robocopy", "unison"],
    why="This deletes at the destination whatever the source does not have.",
    instead="Look first: `rsync -an --delete src/ dst/`",
    stops=[
        "rsync -a --delete src/ host:dst/",
        "rsync --delete-before src/ /etc",
        "rclone sync a b:",
        "rclone purge b:",
        "rsync --delete source/ / --exclude x",
    ],
    passes=[
        "rsync -a src/ dst/",
        "rsync -an --delete src/ dst/",
        "rclone copy a b:",
        "rsync -a --delete build/ /tmp/out/",
        "rclone ls b:",
    ],
)
def sync_delete(command: Command, line: PackLine) -> Objection:
    if _looks_only(command) or command.has("-n"):
        return None
    if command.program == "rclone":
        return command.operands[:1] and command.operands[0] in (
            "sync",
            "purge",
            "delete",
            "deletefile",
            "rmdirs",
            "cleanup",
        )
    if command.program == "robocopy":
        return any(word.lower() in ("/mir", "/purge") for word in command.args)
    if not any(word.startswith("--del") for word in command.args):
        return None
    into = command.operands[-1] if command.operands else ""
    return ":" in into or line.place(command, into) not in ("inside", "temporary")


@files.rule(
    "sync-delete-system",
    level="disaster",
    programs=["rsync"],
    why="This deletes whatever the source does not have, in the system or in a home.",
    instead="Copy into a folder of its own: `rsync -a src/ /tmp/copy/`",
    stops=["rsync -a --delete src/ /", "rsync --delete src/ ~", "rsync --delete-before host:source/ /etc"],
    passes=["rsync -a src/ /tmp/copy/", "rsync -an --delete src/ /"],
)
def sync_delete_system(command: Command, line: PackLine) -> Objection:
    if command.has("--dry-run") or not any(word.startswith("--del") for word in command.args):
        return None
    for word in command.operands[1:2]:
        place = line.place(command, word) if ":" not in word else "outside"
        if place in _WHOLE:
            return f"{word} is {_NAMES[place]}"
    return None


_RMTREE = re.compile(
    r"shutil\.rmtree|rmtree\(|rmSync\(|rmdirSync\(|fs\.rm\(|rimraf|FileUtils\.rm_rf|FileUtils\.rm_r\b|remove_tree|"
    r"os\.removedirs|unlink\s*\(?\s*glob|fs\.promises\.rm\("
)
_NAMES_RM = re.compile(r"\brm\s+-(?:[a-zA-Z]*[rR][a-zA-Z]*)\s+(?:-\w+\s+)*['\"]?(?:/|~|\$HOME)(?=[\s'\";*]|$)[*]?")


@files.rule(
    "delete-in-code",
    level="destructive",
    programs=["python", "python3", "node", "nodejs", "ruby", "perl", "php", "deno", "bun"],
    why="This code deletes whole folders.",
    instead="Name what you made: `rm -rf build`",
    stops=[
        "python -c 'import shutil; shutil.rmtree(\"/srv/x\")'",
        "node -e 'fs.rmSync(\"/\", {recursive: true})'",
        "python3 <<E\nimport shutil\nshutil.rmtree(p)\nE",
        "ruby -e 'FileUtils.rm_rf(\"..\")'",
        "perl -e 'rm -rf /'",
    ],
    passes=[
        "python -c 'print(1)'",
        "python3 script.py",
        "grep -r rmtree src",
        "python -c 'import shutil; shutil.rmtree(\"build\")'",
    ],
)
def delete_in_code(command: Command, line: PackLine) -> Objection:
    code = code_of(command)
    if found := _NAMES_RM.search(code):
        return f"the code names {found[0]}"
    if not code or not _RMTREE.search(code):
        return None
    named = re.findall(r"""(?:rmtree|rmSync|rm_rf|rm_r|removedirs|rmdirSync|fs\.rm)\s*\(?\s*['"]([^'"]+)['"]""", code)
    if not named:
        return "it is not known what this code deletes"
    for path in named:
        place = line.place(command, path)
        if place not in ("inside", "temporary"):
            return f"{path} is {_NAMES[place]}"
    return None


def code_of(command: Command) -> str:
    """The code that an interpreter is given on the line: after `-c` or `-e`, or from a here-document."""
    words = iter(command.args)
    for word in words:
        if word in ("-c", "-e", "-r", "--eval", "-p", "--print", "-E"):
            return str(next(words, ""))
        if re.fullmatch(r"-[a-zA-Z]*[ce]", word):
            return str(next(words, ""))
    return str(command.stdin or "") if not command.operands or command.operands[0] == "-" else ""


@files.tool_rule(
    "write-system",
    kinds=["write"],
    level="destructive",
    why="This writes over, moves or deletes a file of the system, or of a repository's history.",
    instead="Write it into the work tree, and have its owner put it in place.",
    stops=[
        {"tool": "Write", "args": {"file_path": "/etc/hosts", "content": "x"}},
        {"tool": "Edit", "args": {"file_path": "/usr/bin/x", "old_string": "a", "new_string": "b"}},
        {"tool": "delete_file", "args": {"path": "/home/me/project/.git"}},
        {"tool": "move_file", "args": {"source": "/home/me/project/.git/HEAD", "destination": "x"}},
        {"tool": "delete_file", "args": {"path": "~"}},
        {"tool": "Write", "args": {"file_path": "../../../etc/passwd", "content": "x"}},
    ],
    passes=[
        {"tool": "Write", "args": {"file_path": "/home/me/project/etc/hosts", "content": "x"}},
        {"tool": "delete_file", "args": {"path": "/home/me/project/a.txt"}},
        {"tool": "Write", "args": {"file_path": ".gitignore", "content": "x"}},
        {"tool": "Write", "args": {"file_path": "/home/me/notes.md", "content": "x"}},
    ],
)
def write_system(step: BeforeTool, line: PackLine) -> Objection:
    for given in step.target.paths:
        path = line.absolute(given)
        place = line.place_of(path) if path else "unknown"
        if place in ("root", "system", "device", "home") or path.startswith(_SYSTEM_FILES):
            return f"{given} is {_NAMES['system' if place in ('outside', 'unknown') else place]}"
        if place == "repository" and re.search(r"/\.git(/(?:objects|refs|HEAD|logs|packed-refs|index).*)?$", path):
            return f"{given} is {_NAMES[place]}"
    return None


__all__ = ["code_of", "files"]
