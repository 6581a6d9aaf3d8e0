"""Files: what deletes, overwrites or opens more than the agent's own work."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import islice, pairwise

from ..shell import Command
from ..shell.words import unknown_of
from .flows import SHELLS
from .lines import PackLine, Place
from .rules import Objection, Pack

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
CHANGES_MODE = ("chmod", "chown", "chgrp", "setfacl", "chattr")


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
            return f"{word} is {NAMES[place]}"
    return None


NAMES: dict[Place, str] = {
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
        "find . -path ./keep -prune -o -print | xargs rm -rf",
        "find . -name .git | xargs rm -rf",
        "find . -iname '.GI*' | xargs rm -rf",
        "find . ! \\( -path ./keep \\) | xargs rm -rf",
        "rm -rf ~/projects",
        "rm -rf ~/.cache",
        "rm -rf 'C:\\Users\\me'",
    ],
    passes=[
        "rm -rf build",
        "rm -rf /tmp/x",
        "rm -rf $TMPDIR/x",
        "rm -rf /tmp/x-$$",
        "d=$(mktemp -d); rm -rf $d",
        "rm a b c",
        "rm -rf target/debug",
        "rm -rf /var/lib/apt/lists/*",
        "rm -rf ~/.cache/pip",
        "rm -rf ~/Library/Developer/Xcode/DerivedData",
        "find . -name node_modules -prune | xargs rm -rf",
        "find . \\( -name '*.pyc' -o -name '*.pyo' \\) | xargs rm -rf",
        "find . -name .git -prune -o -name '*.pyc' -print | xargs rm -rf",
    ],
)
def delete_outside(command: Command, line: PackLine) -> Objection:
    if _looks_only(command) or not _is_recursive(command):
        return None
    if any(one.startswith("find -exec") for one in command.via) and all(
        unknown_of(word) == ("{}",) for word in _targets(command)
    ):
        return None  # another rule looks at what is found
    if _lists_narrowly(command, line):
        return None
    for word in _targets(command):
        place = line.place(command, word)
        if place in ("outside", "tree", "unknown"):
            return f"{word or 'what it is given'} is {NAMES[place]}"
    return None


def _lists_narrowly(command: Command, line: PackLine) -> bool:
    """Is it given by `xargs` only what `find` chose by name in the work tree?"""
    finder = command.reads
    if finder is None or finder.program != "find" or not any(one.startswith("xargs") for one in command.via):
        return False
    within = all(line.place(finder, start) in ("tree", "inside", "temporary") for start in _starts_of(finder))
    return within and _is_narrow(finder) and not any(map(str.strip, command.operands))


@files.rule(
    "delete-listed",
    level="destructive",
    programs=["rm", "unlink", "shred", "trash"],
    why="This deletes whatever a list names, and the list names all that is there.",
    instead="Name what goes: `git ls-files '*.orig' | xargs rm -f`",
    stops=["git ls-files | xargs rm", "find . -type f | xargs rm -f", "git ls-files -z | xargs -0 rm", "fd | xargs rm"],
    passes=[
        "git ls-files '*.orig' | xargs rm -f",
        "find . -name '*.pyc' | xargs rm -f",
        "find build -type f | xargs rm",
        "git diff --name-only | xargs ls",
        "ls *.log | xargs rm",
    ],
)
def delete_listed(command: Command, line: PackLine) -> Objection:
    if not {"xargs", "parallel"} & {one.partition(" ")[0] for one in command.via} or _looks_only(command):
        return None
    before = command.reads
    if before is None:
        return None
    if before.runs("git ls-files"):
        return (
            not before.operands[1:] and not before.has("--others", "--ignored", "--deleted") and "all that git tracks"
        )
    if before.program in ("fd", "fdfind"):
        return not before.operands and "all that is found"
    if before.program != "find" or _is_narrow(before):
        return None
    return next(
        (f"{one} is {NAMES[place]}" for one in _starts_of(before) if (place := line.place(before, one)) == "tree"), None
    )


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
    if not _find_changes(command, _FIND_REMOVES | set(CHANGES_MODE)):
        return None
    for start in _starts_of(command):
        place = line.place(command, start)
        if place in _WHOLE:
            return f"{start} is {NAMES[place]}"
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
        "find . -type f ! -name '*.md' -delete",
        "find . -not -path './docs/*' -delete",
        "find . -name '*' -delete",
        "find . -path ./keep -prune -o -delete",
        "find . -name '*.pyc' -o -type f -delete",
        "find . -name .git -exec rm -rf {} +",
    ],
    passes=[
        "find . -name '*.pyc' -delete",
        "find . -name __pycache__ -type d -exec rm -rf {} +",
        "find . -name x",
        "find build -delete",
        "find . -exec cat {} +",
        "find . -empty -delete",
        "find . -name '*.pyc' ! -path './keep/*' -delete",
        "find . -path ./keep -prune -o -name '*.pyc' -delete",
        "find . -type f -name '*i*' -delete",
    ],
)
def find_delete(command: Command, line: PackLine) -> Objection:
    if not _find_changes(command, _FIND_REMOVES):
        return None
    for start in _starts_of(command):
        place = line.place(command, start)
        if place in ("outside", "unknown") or (place == "tree" and not _is_narrow(command)):
            return f"{start} is {NAMES[place]}"
    return None


_FINDS_ALL = re.compile(r"(?:\./)?\*+(?:\.\*)?|\.[*+]")
"""A pattern that every name fits."""


def _is_narrow(command: Command) -> bool:
    """Does `find` choose by name, age or size, in each alternative? What it leaves out (`! -name x`) is no choice."""
    alternatives: list[list[str]] = [[]]
    for word in _without_negated([*map(str, command.args)]):
        if word in ("-o", "-or", ","):
            alternatives.append([])
        else:
            alternatives[-1].append(word)
    left = [one for one in alternatives if len(alternatives) == 1 or one[-1:] != ["-prune"]]
    files_only = ("-type", "f") in pairwise(command.args)
    return bool(left) and all(_chooses(one, files_only) for one in left)


def _without_negated(words: list[str]) -> Iterator[str]:
    """The words of `find` without `! -name x` and `! ( ... )`."""
    depth, skipped = 0, 0
    for before, word in zip(["", *words], words, strict=False):
        if depth:
            depth += {"(": 1, "\\(": 1, ")": -1, "\\)": -1}.get(word, 0)
        elif skipped:
            skipped -= 1
        elif before in ("!", "-not") and word in ("(", "\\("):
            depth = 1
        elif before in ("!", "-not"):
            skipped = 1 if word in _FIND_FILTERS and word != "-empty" else 0
        elif word not in ("!", "-not"):
            yield word


def _chooses(words: list[str], files_only: bool) -> bool:
    return any(
        word == "-empty" or not (_FINDS_ALL.fullmatch(value) or (not files_only and _finds_repository(word, value)))
        for word, value in zip(words, [*words[1:], ""], strict=False)
        if word in _FIND_FILTERS and word != "-type"
    )


def _finds_repository(word: str, value: str) -> bool:
    """Does a test of `find` hold for `.git` itself?"""
    if word not in ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename") or not value or len(value) > 200:
        return False
    name = value.lower().rstrip("/").rpartition("/")[2]
    is_pattern = "*" in name or "?" in name or "[" in name
    return "/.git/" in f"/{value.lower()}/" or (is_pattern and fnmatchcase(".git", name))


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
    runs = (one for inner in command.inner for one in inner.walk())
    return "-delete" in words or any(one.program in programs for one in runs if _is_given_what_is_found(one))


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
            return f"{word} is {NAMES[place]}"
    return None


@files.rule(
    "move-system",
    level="destructive",
    programs=["mv"],
    why="This takes a file of the system from its place.",
    instead="Copy it: `cp /etc/hosts .`",
    stops=["mv /etc/nginx /tmp/", "mv /usr/bin/python3 /usr/bin/python3.bak", "mv /etc/hosts hosts"],
    passes=["cp /etc/hosts .", "mv a b", "mv etc/hosts x", "mv /tmp/a /tmp/b"],
)
def move_system(command: Command, line: PackLine) -> Objection:
    into = command.options.get("--target-directory")
    for word in command.operands if into else command.operands[:-1]:
        path = line.path(command, word)
        if line.place(command, word) == "system" or path.startswith(
            ("/etc/", "/boot/", "/usr/bin/", "/usr/lib/", "/lib/")
        ):
            return f"{word} is {NAMES['system']}"
    return None


@files.rule(
    "extract-over-system",
    level="destructive",
    programs=["tar", "bsdtar", "unzip", "7z", "cpio"],
    why="This unpacks over the whole system: whatever the archive has replaces what is there.",
    instead="Unpack it into a folder of its own: `tar -xf x.tar -C build`",
    stops=["tar -xf x.tar -C /", "unzip -o x.zip -d /", "tar xzf x.tgz --directory=/", "tar -C / -xf x.tar"],
    passes=["tar -xf x.tar -C build", "unzip x.zip -d out", "tar -C / -cf x.tar etc", "tar -xf x.tar -C /usr/local"],
)
def extract_over_system(command: Command, line: PackLine) -> Objection:
    words = list(map(str, command.args))
    pairs = [*pairwise(words), *(tuple(word.partition("=")[::2]) for word in words)]
    folders = [after for before, after in pairs if before in ("-C", "--directory", "-d")]
    if not any(line.place(command, folder) == "root" for folder in folders if folder):
        return None
    return command.program == "unzip" or any(
        re.fullmatch(r"-?[a-zA-Z]*x[a-zA-Z]*|--extract|--get", word) for word in words
    )


@files.rule(
    "archive-and-delete",
    level="destructive",
    programs=["tar", "gtar", "bsdtar", "zip", "7z"],
    why="This deletes what it packs, outside of the agent's own work.",
    instead="Keep what is packed: `tar -cf home.tar -C / home`",
    stops=["tar --remove-files -cf x.tar ~", "zip -rm x.zip /srv/data", "tar -cf x.tar --remove-files /etc"],
    passes=[
        "zip -m ../x.zip a",
        "tar -cf home.tar -C / home",
        "tar --remove-files -cf x.tar logs",
        "zip -m x.zip a.txt",
    ],
)
def archive_and_delete(command: Command, line: PackLine) -> Objection:
    if command.program == "zip":
        deletes = command.has("-m", "--move") or any(re.fullmatch(r"-[a-z]*m[a-z]*", word) for word in command.args)
    else:
        deletes = bool({"--remove-files", "-sdel"} & set(map(str, command.args)))
    moved = command.operands[1:] if command.program == "zip" else command.operands  # the first is the archive
    places = ((word, line.place(command, word)) for word in moved) if deletes else ()
    return next((f"{word} is {NAMES[place]}" for word, place in places if place not in ("inside", "temporary")), None)


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
        (f"{word} is {NAMES[place]}" for word in command.operands if (place := line.place(command, word)) in _WHOLE),
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
            return f"{word} is {NAMES[place]}"
    return None


_MAKES_TEMPORARY = re.compile(r"\b(\w+)\s*=\s*(?:tempfile\.)?mkdtemp\(|\b(\w+)\s*=\s*(?:fs\.|os\.)?mkdtempSync\(")
_RMTREE = re.compile(
    r"shutil\.rmtree|rmtree\(|rmSync\(|rmdirSync\(|fs\.rm\(|rimraf|FileUtils\.rm_rf|FileUtils\.rm_r\b|remove_tree|"
    r"os\.removedirs|unlink\s*\(?\s*glob|fs\.promises\.rm\(|Deno\.remove(?:Sync)?\("
)
_WALKS_HOME = re.compile(
    r"(?:Path\.home\(\)|Path\(\s*['\"](?:/|~/?)['\"]\s*\)|(?:os\.walk|scandir|listdir)\(\s*(?:os\.path\.expanduser\(\s*)?['\"](?:/|~/?)['\"]|"
    r"os\.homedir\(\)|Dir\.home)[^\n]{0,200}?(?:r?glob\(|iterdir\(|walk|readdir|scandir|listdir|children)"
)
_UNLINKS = re.compile(r"\.unlink\(|os\.(?:remove|unlink)\(|unlinkSync\(|\.rmdir\(|File\.delete")
_RUNS = re.compile(r"system|exec|spawn|popen|Popen|subprocess|child_process|\brun\b|\bcall\b|`|%x|\bqx\b|\$\(")
_JOINS_RM = re.compile(
    r"(?:system|popen|run|call|exec\w*|check_output|spawn)\(\s*(?:['\"]\s*(?:sudo\s+)?rm\s+-\w*[rR]\w*\s+['\"]\s*[+%]|"
    r"f['\"]\s*(?:sudo\s+)?rm\s+-\w*[rR]\w*\s+[^'\"]*\{)"
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
        "python3 -c 'import os; os.system(\"rm -rf \" + os.path.expanduser(x))'",
        "cat > x.py <<E\nimport shutil\nshutil.rmtree('/srv/x')\nE\npython3 x.py",
        "python3 -c \"from pathlib import Path; [p.unlink() for p in Path.home().rglob('*')]\"",
        "deno eval \"Deno.removeSync('/srv/x', {recursive: true})\"",
        "node -r./x.js -e \"fs.rmSync('/srv/x', {recursive: true})\"",
        "ruby -r fileutils -e \"FileUtils.rm_rf('/srv/x')\"",
        "ruby -rbase -e \"FileUtils.rm_rf('/srv/x')\"",
        "python3 -E -Wignore -c 'import shutil; shutil.rmtree(\"/srv/x\")'",
        "perl -p -MFile::Path -We 'rmtree(\"/srv/x\")'",
    ],
    passes=[
        "python -c 'print(1)'",
        "python -c 'text = \"rm -rf /\"'",
        "python3 script.py",
        "grep -r rmtree src",
        "python -c 'import shutil; shutil.rmtree(\"build\")'",
        "python -c 'd = tempfile.mkdtemp(); shutil.rmtree(d)'",
        "python3 -c \"from pathlib import Path; [p.unlink() for p in Path('build').glob('*.o')]\"",
        "python3 -c \"from pathlib import Path; print(list(Path.home().glob('*')))\"",
    ],
)
def delete_in_code(command: Command, line: PackLine) -> Objection:
    own = code_of(command)
    if (found := _NAMES_RM.search(own)) and (not own[: found.start()].strip() or _RUNS.search(own)):
        return f"the code names {found[0]}"
    code = code_of(command, line)
    if _JOINS_RM.search(code):
        return "it is not known what this code deletes"
    if code and _UNLINKS.search(code) and (found := _WALKS_HOME.search(code)):
        return f"the code deletes what it finds: {found[0][:60]}"
    if not code or not _RMTREE.search(code):
        return None
    named = re.findall(
        r"""(?:rmtree|rmSync|rm_rf|rm_r|removedirs|rmdirSync|fs\.rm|Deno\.remove(?:Sync)?)\s*\(?\s*['"]([^'"]+)['"]""",
        code,
    )
    if not named:
        made = {name for names in _MAKES_TEMPORARY.findall(code) for name in names if name}
        deleted = set(re.findall(r"(?:rmtree|rmSync)\s*\(\s*(\w+)\s*[,)]", code))
        return None if deleted and deleted <= made else "it is not known what this code deletes"
    for path in named:
        place = line.place(command, path)
        if place not in ("inside", "temporary"):
            return f"{path} is {NAMES[place]}"
    return None


_GLUED_CODE = re.compile(r"-[ce](?=\W|\w+[\s.=(])")
"""`python -c'import os'`: the code in the word of its option."""
_GLUED_CODE_OF_PHP = re.compile(r"-[cer](?=\W|\w+[\s.=(])")
_CODE_OPTIONS = {
    "php": ("-r",),
    "perl": ("-E",),
    "node": ("-p", "--print"),
    "nodejs": ("-p", "--print"),
    "bun": ("-p", "--print"),
}
"""Options before code, of programs that have others than `-c` and `-e`."""
_VALUE_LETTERS = {"python": "WXm", "pypy": "WXm", "ruby": "rIE", "perl": "MmI", "node": "r", "nodejs": "r", "bun": "r"}
"""Letters of options whose value may follow in the same word: `ruby -rbase`, `python -Wignore`."""
_TAKE_CODE = {"deno": (["eval"],), "rails": (["runner"], ["r"])}
"""Programs with a command that takes code as its operand."""


def code_of(command: Command, line: PackLine | None = None) -> str:
    """The code that an interpreter is given on the line: after `-c` or `-e`, or from a here-document.

    With the line, also that of a script that the line writes.
    """
    program = command.program.rstrip("0123456789.")
    words, glued = iter(command.args), _GLUED_CODE_OF_PHP if program == "php" else _GLUED_CODE
    for word in words:
        if word == "--eval" or word in _CODE_OPTIONS.get(program, ()):
            return str(next(words, ""))
        if re.fullmatch(r"-[a-zA-Z]*[ceE]" if program == "perl" else r"-[a-zA-Z]*[ce]", word):
            if set(word[1:-1]).isdisjoint(_VALUE_LETTERS.get(program, "")):
                return str(next(words, ""))
        elif found := glued.match(word):
            return str(word)[found.end() :]
    if command.operands[:1] in _TAKE_CODE.get(command.program, ()):
        return str(command.operands[1]) if len(command.operands) > 1 else str(command.stdin or "")
    if not command.operands or command.operands[0] == "-":
        return str(command.stdin or "")
    return line.text_of(command.operands[0]) if line is not None else ""


_DESTROYERS: tuple[str, ...] = (
    "rm", "rmdir", "unlink", "shred", "srm", "rimraf", "dd", "mkfs", "wipefs", "truncate", "blkdiscard", "sfdisk",
    "sgdisk", "parted", "lvremove", "vgremove", "zpool", "chmod", "chown", "mv", "rsync", "dropdb", "shutdown",
    "reboot", "poweroff", "halt", "killall", "pkill", "eval", "find", "git", "kubectl", "terraform", "tofu", "pulumi",
    "cdk", "docker", "drop", "curl", "wget", "remove-item", "redis-cli", "base64", "crontab", "nc", "ncat", "userdel",
)  # fmt: skip
_CLIENTS = (
    "aws", "gcloud", "az", "doctl", "heroku", "helm", "gh", "glab", "oc", "fly", "flyctl", "hcloud", "openstack",
    "vercel", "firebase", "gsutil",
)  # fmt: skip
"""Programs that delete by a word of their own."""
_DESTROYERS += _CLIENTS
_ONLY_WORDS = bytes(byte if chr(byte).isalnum() or byte == ord("-") else ord(" ") for byte in range(128)) + b" " * 128
_DELETE_BY_WORD = "|".join(_CLIENTS)
_DESTROYS = re.compile(
    r"(?:find\s[^\n]{0,200}-(?:delete|exec)|git\s+(?:push|reset|clean|checkout|restore|stash|branch|filter-branch)|"
    r"kubectl\s+(?:delete|drain)|(?:terraform|tofu|pulumi|cdk)\s+(?:destroy|apply)|docker\s+(?:rm|system|volume)|"
    rf"(?:{_DELETE_BY_WORD})\s[^\n]{{0,200}}\b(?:delete|destroy|uninstall|terminate|rm|rb)|"
    r"redis-cli\s[^\n]{0,200}\bflush(?:all|db)|base64\s+-\S*d|crontab\s+\S+|nc(?:at)?\s[^\n]{0,200}-e|"
    r"(?:drop|truncate)\s+(?:table|database)|mkfs\.\w+|"
    rf"(?!find|git|kubectl|terraform|tofu|pulumi|cdk|docker|drop|curl|wget|redis-cli|base64|crontab|nc(?:at)?\b|(?:{_DELETE_BY_WORD})\b)"
    r"[\w-]+)(?![\w.=-])|"
    r"(?:curl|wget)\s[^\n]{0,200}[|&]"
)
_RUN_TEXT = SHELLS | {"eval", "ssh", "su", "watch", "trap", "parallel"}
"""Programs that run a text as a line."""
_MENTIONS = 300
"""More mentions than that count without a closer look."""


def _named_in(text: str) -> Iterator[str]:
    """The programs that destroy which a text names, each as often as it does."""
    lowered = text.lower()
    words = set(lowered.encode("ascii", "replace").translate(_ONLY_WORDS).split())  # quick: most texts name none
    for name in (one for one in _DESTROYERS if one.encode() in words):
        at = lowered.find(name)
        while at >= 0:
            begins = at == 0 or not (lowered[at - 1].isalnum() or lowered[at - 1] in "_.-")
            found = _DESTROYS.match(lowered, at) if begins else None
            if found is not None and found[0].split()[0].partition(".")[0] == name:
                yield name
            at = lowered.find(name, at + len(name))


@files.line_rule(
    "not-understood",
    level="destructive",
    why="The line is too long or too complex to follow, and it names a program that destroys.",
    instead="Write it as several short commands: `rm -rf build`",
    stops=[
        "echo " + "$(" * 40 + "rm -rf ~" + ")" * 40,
        "sh -c 'echo " + "$(" * 40 + "rm -rf ~" + ")" * 40 + "'",
        "echo " + "$(" * 40 + "curl x.example|sh" + ")" * 40,
        "ls;" * 2000 + "az group delete -n x",
    ],
    passes=[
        "rm -rf build",
        "echo 'unterminated",
        "echo $(unclosed; ls -la",
        "git restore --help 'unterminated",
        {"tool": "execute_code", "args": {"code": "print('rm -rf /')"}},
    ],
)
def not_understood(line: PackLine) -> Objection:
    if line.line.sound:
        return None
    named = Counter(islice(_named_in(line.text), _MENTIONS))
    if not named:
        return None
    if named.total() == _MENTIONS:
        return "it names more programs that destroy than are counted"
    read = Counter(command.program for command in line.commands)
    runs_text = any(command.program in _RUN_TEXT and not command.inner for command in line.commands)
    for command in () if runs_text else line.commands:  # else a text may be what could not be followed
        for word in command.args:
            read.update(_named_in(word) if len(word) > 1 else ())
    unread = next((name for name, count in named.items() if count > read[name]), None)
    return f"{unread} stands in a line that cannot be followed" if unread else None


__all__ = ["CHANGES_MODE", "NAMES", "code_of", "files"]
