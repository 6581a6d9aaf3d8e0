"""Trust in a project's hooks: they run only once somebody has looked at them, and only as they were then.

A digest covers the whole file, the programs it names and the files of the project it names. What
runs are copies of just the bytes that were hashed. Code that no hash can cover (a module, a program
that loads the project's code) must be trusted unpinned, in so many words.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import msgspec

from ..errors import FairleadError
from ..places import state_folder
from ..runners.interpreters import script_of
from ..runners.surroundings import Surroundings, inside, resolve_program, steers, surroundings

FILE_LIMIT = 16 << 20
"""Bytes of one file that a project's hook names."""


class Untrustworthy(FairleadError):
    """A project's hooks that cannot be trusted as they are, whatever anybody says."""


class Seen(msgspec.Struct):
    """What one hook of a project would run."""

    name: str
    form: str
    runs: str
    may: list[str]
    files: dict[str, str] = {}  # relative to the project, and their digests
    program: str | None = None
    program_digest: str | None = None
    env: list[str] = []  # variables that it is given
    uncovered: str | None = None  # why no hash can cover it


class Survey(msgspec.Struct):
    """All that trusting a project means."""

    root: str
    digest: str
    hooks: list[Seen]
    contents: dict[str, bytes]  # of every file of the project that is named, by absolute path
    programs: dict[str, str]  # what each program, as it is named, was resolved to

    @property
    def uncovered(self) -> list[Seen]:
        return [seen for seen in self.hooks if seen.uncovered is not None]

    def refuse_uncovered(self) -> None:
        if self.uncovered:
            names = "; ".join(f"{seen.name}: {seen.uncovered}" for seen in self.uncovered)
            raise Untrustworthy(f"not everything can be pinned ({names}); --unpinned trusts it all the same")


class Pin(msgspec.Struct):
    """That somebody trusted a project, as it then was."""

    digest: str
    unpinned: bool = False
    at: float = 0.0


# --- looking ------------------------------------------------------------------------------------


def survey(data: Mapping[str, Any], root: Path, environ: Mapping[str, str] | None = None) -> Survey:
    """What the hooks of a project would run. Raises `Untrustworthy` where that cannot be told.

    `environ` is where programs are looked for, if that is not this process's own.
    """
    found = Survey(str(root), "", [], {}, {})
    entries = data.get("hook", [])
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            found.hooks.append(_look(entry, found, surroundings(root, source=environ, workspace=root)))
    covered = {"version": 1, "file": data, "hooks": found.hooks}
    encoded = msgspec.json.encode(covered, order="deterministic", enc_hook=str)
    found.digest = f"sha256:{sha256(encoded).hexdigest()}"
    return found


def _look(entry: dict[str, Any], found: Survey, around: Surroundings) -> Seen:
    from .reading import FORMS

    root = Path(found.root)
    form = next((form for form in FORMS if form in entry), "nothing")
    runs, may, env = entry.get(form), entry.get("may"), entry.get("env")
    seen = Seen(str(entry.get("name")), form, _shown(runs), [str(w) for w in may] if isinstance(may, list) else [])
    if form == "shell":
        seen.uncovered = "a shell line can run anything"
    elif form in ("command", "worker") and isinstance(runs, list) and runs and all(isinstance(w, str) for w in runs):
        _look_at_argv(runs, seen, root, found, around)
    elif form == "python" and isinstance(runs, str):
        _look_at_python(runs.rpartition(":")[0], entry.get("interpreter"), seen, root, found, around)
    if isinstance(env, (list, dict)):
        seen.env = (
            [str(name) for name in env] if isinstance(env, list) else [f"{k}={_shown(v)}" for k, v in env.items()]
        )
        steering = [str(name) for name in env if isinstance(env, dict) or steers(str(name))]
        if steering:
            seen.uncovered = f"{', '.join(steering)} can change what it loads"
    return seen


def _look_at_argv(argv: list[str], seen: Seen, root: Path, found: Survey, around: Surroundings) -> None:
    _take_program(argv[0], seen, root, found, around)
    for word in argv[1:]:
        for path in {word, word.partition("=")[2]} - {""}:
            if os.path.isfile(root / path) and _is_under(root / path, root):
                _take_file(root / path, seen, root, found)
    if seen.program is not None and not inside(seen.program, root):
        script = script_of([seen.program, *argv[1:]])
        if script is None:
            seen.uncovered = f"what {argv[0]} loads is not known"
        elif script == "":
            seen.uncovered = "code on a command line can load anything"
        elif script and os.path.normpath(root / script) not in found.contents:
            seen.uncovered = f"{script} is not a file of the project"


def _look_at_python(module: str, interpreter: Any, seen: Seen, root: Path, found: Survey, around: Surroundings) -> None:
    if module.endswith(".py"):
        _take_file(root / module, seen, root, found)
    else:
        seen.uncovered = f"the module {module!r} and what it imports are found when it runs"
    if isinstance(interpreter, str):
        _take_program(interpreter, seen, root, found, around)


def _take_program(program: str, seen: Seen, root: Path, found: Survey, around: Surroundings) -> None:
    # Without a path, a program of the project is never meant.
    seen.program = path = resolve_program(program, around)
    found.programs[program] = path
    if _is_under(Path(path), root):
        _take_file(Path(path), seen, root, found)
    seen.program_digest = _digest(Path(path))


def _take_file(path: Path, seen: Seen, root: Path, found: Survey) -> None:
    path = Path(os.path.normpath(root / path))
    if "\0" in str(path):
        raise Untrustworthy(f"hook {seen.name!r} names a file that cannot be")
    if not inside(path, root):
        raise Untrustworthy(f"hook {seen.name!r}: {path} leads out of the project, to {path.resolve()}")
    found.contents[str(path)] = content = _content(path)
    seen.files[str(path.relative_to(root))] = sha256(content).hexdigest()


def _is_under(path: Path, root: Path) -> bool:
    """Whether a path says that it lies in the project, wherever it may lead."""
    return Path(os.path.normpath(path)).is_relative_to(root)


def _content(path: Path) -> bytes:
    try:
        if not os.path.isfile(path):
            raise Untrustworthy(f"{path} is not a regular file")
        with path.open("rb") as file:
            content = file.read(FILE_LIMIT + 1)
    except OSError as error:
        raise Untrustworthy(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > FILE_LIMIT:
        raise Untrustworthy(f"{path} is larger than {FILE_LIMIT >> 20} MiB")
    return content


def _digest(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise Untrustworthy(f"{path} cannot be read: {error.strerror}") from None


def _shown(runs: Any) -> str:
    import shlex

    return shlex.join(runs) if isinstance(runs, list) and all(isinstance(w, str) for w in runs) else str(runs)


# --- remembering ----------------------------------------------------------------------------------


class Trust:
    """The pins of a user: which projects, as they were when they were trusted."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or state_folder()
        self._file = self.folder / "trust.json"

    def pin_of(self, root: Path) -> Pin | None:
        pin = self._read().get(str(root.resolve()))
        if pin is not None:
            self.check_folder(root)
        return pin

    def pin(self, survey: Survey, *, unpinned: bool = False) -> None:
        """Trust a project as it was seen."""
        if not unpinned:
            survey.refuse_uncovered()
        with self._changing(Path(survey.root)) as pins:
            pins[str(Path(survey.root).resolve())] = Pin(survey.digest, unpinned, time.time())

    def check_folder(self, root: Path) -> None:
        """Raise if these pins are worth nothing. Those that an agent or somebody else could write are."""
        if inside(self.folder, root):
            raise Untrustworthy(f"{self.folder} lies in the project, where its agents can change it")
        if self.folder.is_dir() and self.folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise Untrustworthy(f"others may write to {self.folder}; chmod go-w it")

    @property
    def roots(self) -> set[str]:
        """The projects that somebody has trusted."""
        return set(self._read())

    def forget(self, root: Path) -> bool:
        """Trust a project no longer. False if nobody did."""
        with self._changing(root) as pins:
            return pins.pop(str(root.resolve()), None) is not None

    def copies(self, survey: Survey) -> dict[str, str]:
        """For each file of the project that a hook names, the copy that is run in its place."""
        return {path: str(self._copy(Path(path), content)) for path, content in survey.contents.items()}

    def _copy(self, path: Path, content: bytes) -> Path:
        runs = os.access(path, os.X_OK)
        folder = self.folder / "pinned" / (sha256(content).hexdigest() + ("-x" if runs else ""))
        copy = folder / path.name
        try:
            if not copy.is_file() or copy.read_bytes() != content:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                _write(copy, content, 0o500 if runs else 0o400)
        except OSError as error:
            raise Untrustworthy(f"{folder} cannot be written: {error.strerror}") from None
        return copy

    def _read(self) -> dict[str, Pin]:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=dict[str, Pin])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError, UnicodeError, RecursionError) as error:
            problem = f"{self._file} cannot be read ({error}); remove it and trust your projects anew"
            raise FairleadError(problem) from None

    @contextmanager
    def _changing(self, root: Path) -> Iterator[dict[str, Pin]]:
        try:
            self.check_folder(root)
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (self.folder / "trust.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                pins = self._read()
                yield pins
                _write(self._file, msgspec.json.format(msgspec.json.encode(pins, order="sorted")), 0o600)
        except OSError as error:
            raise FairleadError(f"{self.folder} cannot be written: {error.strerror}") from None


def _write(path: Path, content: bytes, mode: int) -> None:
    """All of it or nothing."""
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
        file.write(content)
        os.fchmod(file.fileno(), mode)
    os.replace(file.name, path)


# --- who is asking --------------------------------------------------------------------------------

AGENTS = frozenset({
    "aider", "amp", "claude", "cline", "codex", "copilot", "crush", "cursor-agent", "droid", "gemini", "goose",
    "kiro-cli", "opencode", "qwen",
})  # fmt: skip
_MARKS = ("CLAUDECODE", "CODEX_SANDBOX", "CURSOR_AGENT", "GEMINI_CLI", "OPENCODE", "QWEN_CODE", "FAIRLEAD_AGENT")


def agent_around(environ: Mapping[str, str] | None = None, pid: int | None = None) -> str | None:
    """The agent that a process, this one if none is named, runs under, if it does: an agent must not trust hooks."""
    if environ is None:
        environ = os.environ if pid is None else _environ_of(pid)
    for mark in _MARKS:
        if environ.get(mark):
            return f"{mark} is set"
    for words in _ancestors(os.getppid() if pid is None else pid):
        for word in [word for word in words if not word.startswith("-")][:2]:  # the program, or what it interprets
            name = os.path.basename(word).removesuffix(".js").removesuffix(".exe")
            if name in AGENTS:
                return f"this runs under {name}"
    return None


def _environ_of(pid: int) -> dict[str, str]:
    """The variables that a process was started with, where the system tells."""
    try:
        pairs = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def _ancestors(pid: int) -> Iterator[list[str]]:
    """The command lines of a process and its ancestors."""
    from subprocess import run

    for _ in range(64):
        if pid <= 1:
            return
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            if os.path.isdir("/proc/self"):
                return
            shown = run(  # noqa: S603 (a number is all that varies)
                ["/bin/ps", "-o", "ppid=,command=", "-p", str(pid)], capture_output=True, text=True, check=False
            )
            parent, _, command = shown.stdout.strip().partition(" ")
            words = command.split()
        yield words
        if not parent.isdigit():
            return
        pid = int(parent)
