"""A command line as packs see it: its commands, where they run, and what kind of place a path is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from typing import Any, Literal

from ..shell import Command, Dialect, Line, read
from ..shell.commands import join
from ..shell.outputs import written_by
from ..shell.words import IN_PART, unknown_of

Place = Literal["root", "system", "device", "home", "outside", "repository", "tree", "inside", "temporary", "unknown"]
"""What a path is: `/` itself, a folder of the system, a device, a home (or all in it), elsewhere, inside a `.git`, the
work tree as a whole (or above it), something in the work tree, something temporary, or not known."""

_SYSTEM = dict.fromkeys(
    [
        "bin",
        "boot",
        "dev",
        "etc",
        "lib",
        "lib32",
        "lib64",
        "proc",
        "sbin",
        "sys",
        "usr",
        "nix",
        "snap",
        "System",
        "Library",
    ],
    1,
)
_SYSTEM |= dict.fromkeys(
    [
        "opt",
        "root",
        "run",
        "srv",
        "var",
        "Applications",
        "Users",
        "Volumes",
        "private",
        "home",
        "mnt",
        "media",
        "cores",
    ],
    0,
)
"""Folders at the root, and how many folders below them are the system, too."""
_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/tmp", "/dev/shm", "/var/folders", "/run/user")  # noqa: S108
_CACHE = re.compile(
    r"/var/lib/apt/lists/|/var/cache/(?:apt|apk|dnf|yum|pacman|man)/|"
    r"/(?:\.npm/_cacache|\.gradle/caches|\.ccache|Library/Developer/Xcode/DerivedData)(?:/|$)|/(?:\.cache|\.nuget/packages|Library/Caches|\.cargo/registry/cache)/[^/]"
)
"""Caches of the system, and of a home. Of some only what is below the folder."""
_DEVICE = re.compile(
    r"/dev/(?:r?disk\d|[hsvx]v?d[a-z?*\[]|nvme|mmcblk|md\d|dm-|mapper/|loop\d|nbd\d|pmem|dax|ram\d|sr\d|ada\d|da\d|"
    r"mem$|kmem$|port$|zvol/|vg|disk/|block/)"
)
HARMLESS_DEVICES = frozenset(
    [
        "/dev/null",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/stdin",
        "/dev/tty",
        "/dev/zero",
        "/dev/full",
        "/dev/random",
        "/dev/urandom",
    ]
)
_HOME = re.compile(r"/(?:home|Users)/[^/]+|/root|/var/root")
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?(\[[^\]]*\]|[^/:?#]*)", re.IGNORECASE)
_LOCAL = re.compile(r"localhost|127(?:\.\d+){3}|\[?::1\]?|0\.0\.0\.0|host\.docker\.internal")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)\}?")
_NUMBERED = re.compile(
    r"\$\$|\$\{?(?:RANDOM|UID|EUID|PPID|BASHPID|SECONDS|EPOCHSECONDS)\b\}?|"
    r"(?:\$\(|`)(?:date(?:\s+-u)?(?:\s+['\"]?\+[\w%:-]+['\"]?)?|whoami|id\s+-un?|uuidgen|hostname)(?:\)|`)|X{3,}"
)
"""What makes a name one of its own, and has no `/`: `$$`, `$(date +%s)`, what `mktemp` fills in."""
_PATTERN = re.compile(r"[*?\[]")
LONGEST_TEXT = 200_000
"""Characters of a text that rules look at."""


class PackLine:
    """A line, and the folder and the home of the agent that wants to run it."""

    __slots__ = (
        "_allowed",
        "_descriptors",
        "_protected",
        "_temporary",
        "_texts",
        "commands",
        "dialect",
        "folder",
        "home",
        "line",
        "text",
        "written",
    )

    def __init__(
        self,
        text: str,
        folder: str = "",
        home: str = "",
        line: Line | None = None,
        *,
        dialect: Dialect = "posix",
        protect: Iterable[str] = (),
        allow_hosts: Iterable[str] = (),
    ) -> None:
        self.text = text
        self.dialect: Dialect = dialect
        self.folder = folder.rstrip("/") or ("/" if folder else "")
        """The work tree: where the agent works. Empty if not known."""
        self.home = home or os.path.expanduser("~")
        self.line = line or read(text, folder, {"HOME": self.home}, dialect)
        self.commands: list[Command] = self.line.commands
        for command in self.commands:
            if command.program.isupper() or command.args[:1] == ["--"]:
                _normalise(command)
        folders = [command.assignments["TMPDIR"] for command in self.commands if "TMPDIR" in command.assignments]
        self._temporary = all(self._is_temporary(os.path.normpath(path or "/")) for path in folders)
        self._descriptors: dict[str, set[str]] | None = None
        self._texts: dict[str, str] | None = None
        self.written: dict[int, list[str]] = {}
        """The files that commands write, by the command's identity, as far as a rule has asked."""
        self._protected = [join("/", path, self.home).rstrip("/") for path in protect]
        self._allowed = frozenset(host.lower() for host in allow_hosts)

    def path(self, command: Command, word: str) -> str:
        """The absolute path that a word of a command means. Empty if not known."""
        if unknown_of(word) and unknown_of(word) != ("*",):
            return ""
        return join(command.folder, str(word), self.home)

    def absolute(self, path: str) -> str:
        """The absolute path of a path that a tool is given. Empty if not known."""
        return join(self.folder, str(path), self.home)

    def place(self, command: Command, word: str) -> Place:
        """What kind of place a word of a command is."""
        if unknown_of(word) and unknown_of(word) != ("*",):
            return self._partly_known(word)
        text = str(word)
        if text[:1] == "~" and text[1:2] not in ("", "/", "+", "-"):
            return "home" if _is_all(text.partition("/")[2]) else "outside"
        if _DRIVE.match(text):
            return "outside"
        path = join(command.folder, text, self.home)
        if not path:
            return "inside" if not self.folder and not text.startswith("..") else "unknown"
        return self.place_of(path, is_pattern=bool(_PATTERN.search(text)))

    def place_of(self, path: str, is_pattern: bool = False) -> Place:
        """What kind of place an absolute path is."""
        if is_pattern and _is_all(os.path.basename(path)):
            if _CACHE.match(path):
                return "temporary"
            path = os.path.dirname(path)  # all that is in a folder
            if path == self.folder:
                return "tree"
        if path == "/":
            return "root"
        if self._protected and any(path == kept or path.startswith(f"{kept}/") for kept in self._protected):
            return "home"
        if path == self.home or _HOME.fullmatch(path):
            return "home"
        if path.startswith("/dev/"):
            return "inside" if path in HARMLESS_DEVICES else "device" if _DEVICE.match(path) else "system"
        if _CACHE.match(path.removeprefix(self.home) if path.startswith(f"{self.home}/") else path):
            return "temporary"  # it is made again when it is missing
        if self._is_temporary(path) and not self._is_in_tree(path) and not self._is_near(path):
            return "outside" if path in _TEMPORARY else "temporary"  # as a whole it is everyone's
        if self._is_in_tree(path):
            parts = path[len(self.folder) :].strip("/").split("/")
            if ".git" in parts:
                return "repository"
            return "tree" if path == self.folder else "inside"
        if self.folder and self.folder.startswith(f"{path}/"):
            return "home" if self.home.startswith(f"{path}/") else "tree"
        first, _, rest = path[1:].partition("/")
        if ".git" in path.split("/"):
            return "repository"
        depth = rest.count("/") + bool(rest)
        if depth <= _SYSTEM.get(first, -1) or (is_pattern and not rest and _matches_system(first)):
            return "system"
        return "outside"

    def is_allowed(self, address: str) -> bool:
        """Is this an address of this machine, or of a host that the configuration allows?"""
        if IN_PART in unknown_of(address):
            return False
        found = _HOST.match(address.rpartition("@")[2])
        host = found[1].lower() if found else ""
        return bool(_LOCAL.fullmatch(host)) or host in self._allowed

    def _is_near(self, path: str) -> bool:
        """Is it a neighbour of a work tree or a home that is itself in a temporary folder?"""
        near = {os.path.dirname(self.folder), self.home} - {"", "/", *_TEMPORARY}
        return any(path == one or path.startswith(f"{one}/") or one.startswith(f"{path}/") for one in near)

    def _is_temporary(self, path: str) -> bool:
        return any(path == folder or path.startswith(f"{folder}/") for folder in _TEMPORARY)

    def _is_in_tree(self, path: str) -> bool:
        return bool(self.folder) and (path == self.folder or path.startswith(f"{self.folder.rstrip('/')}/"))

    def _partly_known(self, word: str) -> Place:
        """`$TMPDIR/x` is temporary unless the line sets it. So are `/tmp/x-$$` and what `mktemp` made.

        Of other variables nothing is known.
        """
        if IN_PART in unknown_of(word):
            return "unknown"
        text = str(word)
        if found := _VARIABLE.fullmatch(text):  # in a trap, a function: what the line sets elsewhere
            values = {one.assignments[found[1]] for one in self.commands if found[1] in one.assignments}
            text = str(values.pop()) if len(values) == 1 else text
        if ".." in text.split("/"):
            return "unknown"
        if self._temporary and re.match(r"\$\{?TMPDIR\}?(?:/|$)", text):
            return "temporary" if set(unknown_of(word)) <= {"$TMPDIR", "${TMPDIR}", "*"} else "unknown"
        plain = _NUMBERED.sub("x", text)
        is_temporary = plain != text and not re.search(r"[$`*?\[{]", plain) and self._is_temporary(plain)
        return "temporary" if is_temporary and self.place_of(os.path.normpath(plain)) == "temporary" else "unknown"

    def text_of(self, path: str) -> str:
        """What a file holds that a command of the line writes: `echo x > f`, `cat > f <<END`. Empty if not known."""
        if self._texts is None:
            self._texts = {}
            for command in self.commands:
                for name in (*command.writes(), *(command.operands if command.program == "tee" else ())):
                    if text := written_by(command):
                        key = os.path.normpath(str(name))
                        self._texts[key] = (self._texts.get(key, "") + str(text))[-LONGEST_TEXT:]
        return self._texts.get(os.path.normpath(str(path)), "") if path else ""

    def variables_of(self, command: Command) -> dict[str, str]:
        """The variables that the line sets for a command, also by `sudo` and `env`."""
        variables = dict(command.assignments)
        if command.via:
            for other in self.commands:
                if other.assignments and other is not command and any(one is command for one in other.walk()):
                    variables = other.assignments | variables
        return variables

    def leads_to(self, command: Command) -> Iterator[str]:
        """Where the redirections of a command lead, also by a descriptor that `exec` opened before."""
        for redirect in command.redirects:
            yield redirect.target
            if redirect.operator in (">&", "<&"):
                yield from self.descriptor(redirect.target.rstrip("-"))

    def descriptor(self, name: str) -> Iterator[str]:
        """What `exec` opened as a descriptor, by its number or its variable, in any branch."""
        if self._descriptors is None:
            self._descriptors = {}
            for command in self.commands:
                for one in command.redirects if command.program in ("exec", ":", "") else ():
                    if one.descriptor:
                        self._descriptors.setdefault(_descriptor(one.descriptor), set()).add(str(one.target))
        seen, left = set[str](), [_descriptor(name)]
        while left:
            for target in self._descriptors.get(left.pop(), set()) - seen:
                seen.add(target)
                yield target
                left.append(_descriptor(target.rstrip("-")))

    def pipeline_of(self, command: Command) -> Iterator[Command]:
        """The commands that feed a command, the nearest first."""
        before = command.reads
        for _ in range(64):
            if before is None:
                return
            yield before
            before = before.reads


def _normalise(command: Command) -> None:
    """macOS and Windows find `RM` and `GIT` as well. What `git -- reset` does is up to git."""
    if command.program.isupper():
        command.program = command.program.lower()
        command.args = [
            *(str(word).lower() if str(word).isupper() else word for word in command.args[:1]),
            *command.args[1:],
        ]
    if command.program == "git" and command.args[:1] == ["--"]:
        command.args = command.args[1:]
    command._options = None


def _descriptor(name: str) -> str:
    """`{sock}`, `$sock` and `${sock}` are one."""
    return name.strip("${}")


def _is_all(name: str) -> bool:
    """Does this name, or pattern, mean all that is in a folder?"""
    return name in ("", "*", ".*", "**", ".[!.]*", ".??*", ".[^.]*", "..?*", "?*", "*.*")


def _matches_system(pattern: str) -> bool:
    return any(fnmatch(name, pattern) for name in _SYSTEM)


def texts_of(args: Any, left: int = 500) -> Iterator[tuple[str, str]]:
    """The texts in a tool's arguments, each with the name that it has there. Each is cut at 200,000 characters."""
    values: list[tuple[str, Any]] = [("", args)]
    while values and left:
        left -= 1
        name, value = values.pop()
        if isinstance(value, str):
            yield name, value[:200_000]
        elif isinstance(value, dict):
            values += ((str(key), inner) for key, inner in reversed(value.items()))
        elif isinstance(value, (list, tuple)):
            values += ((name, inner) for inner in reversed(value))


__all__ = ["HARMLESS_DEVICES", "PackLine", "Place", "texts_of"]
