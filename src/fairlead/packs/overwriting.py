"""Files that are written over, and who may use them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..shell import Command
from .files import CHANGES_MODE, NAMES, files
from .lines import HARMLESS_DEVICES, PackLine
from .rules import Objection

if TYPE_CHECKING:
    from ..lifecycle import BeforeTool

_SYSTEM_FILES = ("/etc/", "/boot/", "/usr/bin/", "/usr/sbin/", "/bin/", "/sbin/", "/lib/", "/usr/lib/")


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
            return f"{path} is {NAMES['device']}"
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
        if text.startswith(_SYSTEM_FILES) and not text.startswith("/etc/bash_completion.d/"):
            return f"{path} is {NAMES['system']}"
        if "/.git/" in text and any(
            part in text
            for part in ("/.git/objects", "/.git/refs", "/.git/HEAD", "/.git/logs", "/.git/packed-refs", "/.git/index")
        ):
            return f"{path} is {NAMES['repository']}"
    return None


@files.rule(
    "open-everything",
    level="disaster",
    programs=CHANGES_MODE,
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
            return f"{word} is {NAMES[place]}"
    return None


@files.rule(
    "take-away",
    level="destructive",
    programs=["chmod", "setfacl"],
    why="Programs that need this file of the system stop working.",
    instead="Change what you made: `chmod u+x script.sh`",
    stops=["chmod 000 /etc/passwd", "chmod -x /bin/chmod", "chmod a-r /etc/hosts", "setfacl -b /etc/ssl"],
    passes=[
        "chmod u+x script.sh",
        "chmod +x /usr/local/bin/tool",
        "chmod a+r /etc/apt/keyrings/x.asc",
        "chmod -x run.sh",
        "chmod go-w /etc/sudoers.d/x",
    ],
)
def take_away(command: Command, line: PackLine) -> Objection:
    modes = [
        word
        for word in map(str, command.args)
        if re.fullmatch(r"(?![go]+-w$)[ugoa]*-[rwxX]+|0{1,4}|-b|--remove-all", word)
    ]
    for word in command.operands if modes else ():
        path = line.path(command, word)
        if path and (line.place_of(path) in ("root", "system") or path.startswith(_SYSTEM_FILES)):
            return f"{word} is {NAMES['system']}"
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
    for target in step.target.paths:
        path = line.absolute(target)
        place = line.place_of(path) if path else "unknown"
        if place in ("root", "system", "device", "home") or path.startswith(_SYSTEM_FILES):
            return f"{target} is {NAMES['system' if place in ('outside', 'unknown') else place]}"
        if place == "repository" and re.search(r"/\.git(/(?:objects|refs|HEAD|logs|packed-refs|index).*)?$", path):
            return f"{target} is {NAMES[place]}"
    return None
