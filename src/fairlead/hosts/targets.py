"""The files that `fairlead install` writes to, each kind with its way of taking an entry in and giving it back.

A target only works on texts: it says what a text is with our entries in it, what it is without them, and what of them
is there. Whoever installs reads and writes the files.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any, NamedTuple, Protocol

import msgspec

from ..errors import FairleadError
from ..jsonc import BadJson, Document, Key, Node
from ..lifecycle import GUARDING
from .host import Host, hosts
from .launcher import NAME, USUAL
from .settings import LOST_IN_HOME, SETTINGS, Scope, Settings, entry_of, settings_file, times

LARGEST = 16 << 20
"""Bytes of a file that is taken for settings."""


class Before(NamedTuple):
    """What is known of a file as it was before anything was installed."""

    existed: bool = True
    made: tuple[tuple[str, ...], ...] | None = None
    """The members that were not there. None: that is not known."""


class Look(msgspec.Struct):
    """What is in a file."""

    events: dict[str, bool] = {}
    """Events that we are asked about, and whether just as we would be now."""
    foreign: dict[str, list[str]] = {}
    """Hooks of others at the events that we want to be asked about."""
    untrusted: list[str] = []
    """Events whose hooks the CLI skips, because nobody has told it to trust them."""
    problems: list[str] = []
    """Why the CLI may not heed the file."""


class Target(Protocol):
    """One file."""

    @property
    def path(self) -> Path: ...
    @property
    def runs(self) -> bool:
        """Whether it is a program."""

    @property
    def events(self) -> tuple[str, ...]:
        """The events that belong in it."""

    def put(self, text: str | None) -> tuple[str, Before]:
        """The text with our entries, and what it would be without. Raises `FairleadError` where that cannot be."""

    def cut(self, text: str, before: Before) -> str | None:
        """The text without our entries. None: nothing is left of it."""

    def look(self, text: str | None) -> Look:
        """What is there."""


def read_text(path: Path) -> str | None:
    """A file of settings. Raises `FairleadError` if it is there but is no text."""
    try:
        status = path.stat()
        if stat.S_ISDIR(status.st_mode):
            raise FairleadError(f"{path} is a folder, and should be a file")
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            raise FairleadError(f"{path} is no file that could hold settings")
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FairleadError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line, column = content.count(b"\n", 0, error.start) + 1, error.start - content.rfind(b"\n", 0, error.start)
        raise FairleadError(f"{path}:{line}:{column}: this is not UTF-8; it is left as it is") from None


def is_ours(command: object) -> bool:
    """Whether a command line starts our launcher."""
    if not isinstance(command, str) or NAME not in command:
        return False
    try:
        words = shlex.split(command)
        if words[:2] == _FOR_ALL and words[3:4] == [NAME]:
            return words[2] in _SCRIPTS
        if words[:2] == _LOOKING:
            again = words.index(words[2], 3)
            words = words[again:] if words[again - 1].endswith(";") else []
    except (ValueError, IndexError):
        return False
    return bool(words) and PurePath(words[0]).name == NAME


_LOOKING = ["test", "-x"]
"""How a command line begins that looks for the launcher before it starts it."""


_FOR_ALL = ["/bin/sh", "-c"]
"""How a command line begins that finds the launcher of whoever works on a project."""
_OF_USER = (
    "case $(command -p id -un || echo /) in "  # for a user without an entry, it shows the number and fails
    '"" | [!A-Za-z0-9_]* | *[!A-Za-z0-9._@-]*) exit 127 ;; esac; '
    f'eval "set -- ~$(command -p id -un)/{USUAL} \\"\\$@\\""; '
    'case $* in /*) exec "$@" ;; esac; exit 127'  # a ~ that stands for no home stays: a file of the working folder
)
# The home is what the user database says. There is no name or number after any $, because some CLIs expand those.


def _script(lost: str | None) -> str:
    """Starts the launcher of whoever runs it. If there is none, `lost` refuses."""
    refuse = lost or f'echo "{LOST_IN_HOME}" >&2'
    return f"({_OF_USER}); case $? in 0) ;; 2) exit 2 ;; *) {refuse}; exit 2 ;; esac"


_SCRIPTS = {_OF_USER, *(_script(settings.lost_in_home) for settings in SETTINGS.values())}


def command_of(host: Host, event: str, launcher: Path | None, timeout: float) -> str:
    """The command line that puts an event of a CLI's to us. Without a launcher, it finds that of whoever runs it."""
    return _line(host, event, launcher, f"{times(host, host.moments[event], timeout)[1]:g}")


def _line(host: Host, event: str, launcher: Path | None, seconds: str) -> str:
    ours, settings = host.moments[event].event, SETTINGS[host.name]
    words = f"{seconds} {ours} {host.name} {event}"
    if launcher is None:
        script = _script(settings.lost_in_home) if ours in GUARDING else _OF_USER
        return f"{shlex.join([*_FOR_ALL, script, NAME])} {words}"
    start = f"{shlex.quote(str(launcher))} {words}"
    if settings.lost is None or ours not in GUARDING:
        return start
    # Without braces, which not every login shell has, and without $, which some CLIs expand.
    return f"{shlex.join([*_LOOKING, str(launcher)])} || {settings.lost}; {start} || exit 2"


@lru_cache(8)
def as_we_write(launcher: Path | None) -> re.Pattern[str]:
    """The command lines that start a launcher and nothing else. `is_ours` is content with what looks like one."""
    lines = {re.escape(_line(host, event, launcher, "SECONDS")) for host in hosts() for event in host.moments}
    return re.compile("|".join(sorted(lines)).replace("SECONDS", r"[0-9.]+"))


def targets_of(host: Host, scope: Scope, root: Path, launcher: Path, timeout: float) -> list[Target]:
    """The files of a CLI that must say so for us to be asked. What they say depends on launcher and time-out."""
    settings, path = SETTINGS[host.name], settings_file(host, scope, root)
    if not (path.is_absolute() and launcher.is_absolute()):  # it is started from wherever the agent is
        raise FairleadError(f"HOME must be an absolute path, not {os.environ.get('HOME')!r}")
    if settings.expands and "$" in str(launcher):
        raise FairleadError(f"{host.title} would expand the $ in {launcher}; set FAIRLEAD_STATE_DIR to another folder")
    try:
        str(launcher).encode()
    except UnicodeError:
        raise FairleadError(f"{str(launcher)!r} is no text; set FAIRLEAD_STATE_DIR to another folder") from None
    wanted = [event for event, moment in host.moments.items() if moment.installed]
    named = None if scope == "project" else launcher  # a project is for more than one user
    commands = {event: command_of(host, event, named, timeout) for event in wanted}
    if settings.form == "files":
        return [Script(path / event, (event,), f"#!/bin/sh\n{commands[event]}\n") for event in wanted]
    if settings.form == "plugin":
        return [_plugin(host, path, named, timeout)]
    entries = {event: entry_of(host, event, commands[event], timeout) for event in wanted}
    if host.name == "codex":
        from .codex_files import codex_targets

        return codex_targets(host, scope, path, entries)
    if host.name == "goose":
        return [
            JsonFile(host, path, entries),
            Script(path.parent.parent / "plugin.json", (), _GOOSE_PLUGIN, runs=False),
        ]
    return list(_json_files(host, scope, path, entries))


_GOOSE_PLUGIN = """{
  "name": "fairlead",
  "version": "1.0.0",
  "description": "Every step is put to fairlead, by fairlead-hook."
}
"""


def _plugin(host: Host, path: Path, launcher: Path | None, timeout: float) -> Target:
    from .opencode import plugin_text

    moments = [moment for moment in host.moments.values() if moment.installed]
    seconds = min(times(host, moment, timeout)[1] for moment in moments)
    events = tuple(event for event, moment in host.moments.items() if moment.installed)
    start = ["-c", _OF_USER, NAME] if launcher is None else [str(launcher)]
    return Script(path, events, plugin_text(start, seconds), runs=False)


def _json_files(host: Host, scope: Scope, path: Path, entries: dict[str, Any]) -> Iterator[Target]:
    settings = SETTINGS[host.name]
    pins = settings.pins if scope == "managed" else {}
    winner = next((found for name in settings.beaten_by if (found := path.parent / name).exists()), None)
    if winner is not None:
        there = document_of(winner, read_text(winner)).root.value
        beaten = {event for event in entries if event in there} if isinstance(there, dict) else set()
        yield JsonFile(host, winner, {event: entries[event] for event in entries if event in beaten}, at=())
        entries = {event: entry for event, entry in entries.items() if event not in beaten}
    others = sorted(path.parent.glob(settings.several)) if settings.several else []
    for file in others or [path]:
        yield JsonFile(host, file, entries, pins=pins)


# --- JSON -----------------------------------------------------------------------------------------


def document_of(path: Path, text: str | None) -> Document:
    """A file of settings. Where there is none, or nothing in it, it is an empty one."""
    try:
        return Document("{}" if text is None or _is_blank(text) else text)
    except BadJson as error:
        raise FairleadError(
            f"{path}:{error.line}:{error.column}: {error.problem}; it is left as it is: mend it, and try again"
        ) from None


def _is_blank(text: str) -> bool:
    return not text.strip("\ufeff \t\r\n")


def switched_off(host: Host, path: Path, document: Document) -> Iterator[tuple[str, str]]:
    """What in a file turns all hooks of a CLI off, or ours: the key, and what there is to say of it."""
    settings = SETTINGS[host.name]
    for keys, value in settings.off:
        found = document.find(keys)
        if found is not None and found.value is value:
            yield told_of(path, document, found, keys, f"turns all hooks of {host.title} off")
    listed = None if settings.muted is None else document.find(settings.muted)
    for part in () if listed is None or listed.kind != "array" else listed.parts:
        if is_ours(part.node.value):
            yield told_of(path, document, part.node, settings.muted or (), "turns a hook of ours off")


def told_of(path: Path, document: Document, node: Node, keys: tuple[str, ...], what: str) -> tuple[str, str]:
    """A key of a file, and what there is to say of it, with its place."""
    line, column = document.where(node.start)
    name = ".".join(keys)
    return name, f"{path}:{line}:{column}: {name} {what}"


class JsonFile:
    """A file in JSON that holds, somewhere, a list for each event."""

    runs = False

    def __init__(
        self, host: Host, path: Path, entries: dict[str, Any], *, at: tuple[str, ...] = ("hooks",),
        pins: dict[tuple[str, ...], Any] | None = None,
    ) -> None:  # fmt: skip
        self.path, self.entries, self.at = path, entries, at
        self.events = tuple(entries)
        self._host, self._pins = host, pins or {}
        self._settings: Settings = SETTINGS[host.name]

    # --- in ---------------------------------------------------------------------------------------

    def put(self, text: str | None) -> tuple[str, Before]:
        document = self._read(text)
        made: list[tuple[str, ...]] = []
        fresh = text is None or _is_blank(text)
        if fresh:
            document = Document(msgspec.json.format(msgspec.json.encode(self._settings.fresh), indent=2).decode())
        for path, value in self._pins.items():
            document = self._ensure(document, path, value, made)
        document = self._ensure(document, self.at, {event: [entry] for event, entry in self.entries.items()}, made)
        self._need(document, self.at, "object")
        for event in self._events_in(document):
            document = self._put_one(document, event)
        for event, entry in self.entries.items():
            document = self._ensure(document, (*self.at, event), [entry], made)
        return document.text + ("\n" if fresh else ""), Before(text is not None, tuple(made))

    def _put_one(self, document: Document, event: str) -> Document:
        """With one entry of ours at an event that is there, in place of what was ours; or none, if it is not wanted."""
        path, ours = (*self.at, event), self._ours(document, event)
        entry = self.entries.get(event)
        if entry is not None:
            self._need(document, path, "array")
        for extra in reversed(ours if entry is None else ours[1:]):
            document = document.remove(extra)
        if entry is None:
            return self._without_empty(document, path) if ours else document
        if not ours:
            return document.append(path, entry)
        return (
            document if self._is_current(document, ours[0], entry) else document.put(ours[0], self._for(ours[0], entry))
        )

    def _for(self, path: tuple[Key, ...], entry: dict[str, Any]) -> Any:
        """What is to be at a path: all of an entry, or its hook only, if it is in a group of somebody else's."""
        return entry if len(path) == len(self.at) + 2 else entry["hooks"][0]

    def _is_current(self, document: Document, path: tuple[Key, ...], entry: dict[str, Any]) -> bool:
        found = document.find(path)
        return found is not None and found.value == self._for(path, entry)

    def _ensure(self, document: Document, path: tuple[str, ...], value: Any, made: list[tuple[str, ...]]) -> Document:
        """With something at a path: what is there, or else the value, and whatever it takes to hold it."""
        for depth in range(1, len(path) + 1):
            self._need(document, path[: depth - 1], "object")
            if document.find(path[:depth]) is None:
                for key in reversed(path[depth:]):
                    value = {key: value}
                made.append(path[:depth])
                return document.put(path[:depth], value)
        return document

    # --- out --------------------------------------------------------------------------------------

    def cut(self, text: str, before: Before) -> str | None:
        if NAME not in text:
            return text
        document, made = self._read(text), before.made
        for event in self._events_in(document):
            ours = self._ours(document, event)
            for path in reversed(ours):
                document = document.remove(path)
            if ours and _was_made((*self.at, event), made):
                document = self._without_empty(document, (*self.at, event))
        if self.at and document.text != text and _was_made(self.at, made):
            document = self._without_empty(document, self.at)
        for path, value in self._pins.items():
            found = document.find(path)
            if made is not None and _was_made(path, made) and found is not None and found.value == value:
                document = document.remove(path)
                for depth in reversed(range(1, len(path))):
                    if _was_made(path[:depth], made):
                        document = self._without_empty(document, path[:depth])
        left = document.root.value if document.comment is None else None
        own = self._settings.own and self.path.stem in ("fairlead", "hooks")
        return None if left in ({}, self._settings.fresh) and (own or not before.existed) else document.text

    @staticmethod
    def _without_empty(document: Document, path: tuple[str, ...]) -> Document:
        """Without something that holds nothing any more, unless another of its name would then count."""
        above, found = document.find(path[:-1]), document.find(path)
        if above is None or found is None or found.kind == "plain" or found.parts:
            return document
        remark = document.text[found.start + 1 : found.end - 1].strip()
        again = [part.key for part in above.parts].count(path[-1]) > 1
        return document if remark or again else document.remove(path)

    # --- looking ----------------------------------------------------------------------------------

    def look(self, text: str | None) -> Look:
        found = Look()
        if text is None:
            return found
        try:
            document = self._read(text)
            self._need(document, self.at, "object")
        except FairleadError as error:
            found.problems.append(str(error))
            return found
        for event, entry in self.entries.items():
            if ours := self._ours(document, event):
                found.events[event] = len(ours) == 1 and self._is_current(document, ours[0], entry)
            if others := self._others(document, event):
                found.foreign[event] = others
        found.problems += self._problems(document)
        return found

    def _problems(self, document: Document) -> Iterator[str]:
        title, takes = self._host.title, self._settings.takes
        for kind, position, what in (
            ("comments", document.comment, "a comment"),
            ("commas", document.trailing, "a comma that nothing follows"),
        ):
            if position is not None and kind not in takes:
                line, column = document.where(position)
                yield (
                    f"{self.path}:{line}:{column}: {title} reads nothing of a file with {what} in it, "
                    "so none of its hooks run: take it out"
                )
        yield from (what for _, what in switched_off(self._host, self.path, document))

    def _read(self, text: str | None) -> Document:
        document = document_of(self.path, text)
        self._need(document, (), "object")
        return document

    def _need(self, document: Document, path: tuple[str, ...], kind: str) -> None:
        """Raise if there is something else than what must be there."""
        found = document.find(path)
        if found is not None and found.kind != kind:
            line, column = document.where(found.start)
            article = {"object": "an object: {...}", "array": "a list: [...]"}[kind]
            what = ".".join(path) or "the file"
            raise FairleadError(f"{self.path}:{line}:{column}: {what} must be {article}; it is left as it is")

    def _events_in(self, document: Document) -> list[str]:
        node = document.find(self.at)
        parts = () if node is None else node.parts
        return list(dict.fromkeys(part.key for part in parts if part.key is not None))

    def _ours(self, document: Document, event: str) -> list[tuple[Key, ...]]:
        """Where our entries of an event are: groups that hold nothing else, or else single hooks."""
        path: tuple[Key, ...] = (*self.at, event)
        found: list[tuple[Key, ...]] = []
        node = document.find(path)
        for index, part in enumerate(node.parts if node is not None and node.kind == "array" else ()):
            if self._settings.form == "list":
                found += [(*path, index)] * self._is_ours(part.node.value)
                continue
            hooks = _hooks_of(part.node)
            mine = [place for place, hook in enumerate(hooks) if self._is_ours(hook)]
            found += (
                [(*path, index)] if mine and len(mine) == len(hooks) else [(*path, index, "hooks", n) for n in mine]
            )
        return found

    def _others(self, document: Document, event: str) -> list[str]:
        node = document.find((*self.at, event))
        hooks: list[Any] = []
        for part in node.parts if node is not None and node.kind == "array" else ():
            hooks += [part.node.value] if self._settings.form == "list" else _hooks_of(part.node)
        return [_shown(hook) for hook in hooks if not self._is_ours(hook)]

    def _is_ours(self, hook: Any) -> bool:
        return isinstance(hook, dict) and is_ours(hook.get(self._settings.command))


def _hooks_of(group: Node) -> list[Any]:
    value = group.value
    hooks = value.get("hooks") if isinstance(value, dict) else None
    return hooks if isinstance(hooks, list) else []


def _shown(hook: Any) -> str:
    keys = ("command", "bash", "exec", "url", "prompt")
    text = next((str(hook[key]) for key in keys if key in hook), "") if isinstance(hook, dict) else ""
    return text or msgspec.json.encode(hook).decode()


def _was_made(path: tuple[str, ...], made: tuple[tuple[str, ...], ...] | None) -> bool:
    return made is None or any(path[: len(each)] == each for each in made)


# --- files of ours --------------------------------------------------------------------------------


class Script:
    """A file that is all ours: a program for one event, or a module for all of them."""

    def __init__(self, path: Path, events: tuple[str, ...], text: str, *, runs: bool = True) -> None:
        self.path, self.events, self.runs = path, events, runs
        self._text = text

    def put(self, text: str | None) -> tuple[str, Before]:
        if text is not None and NAME not in text:
            raise FairleadError(
                f"{self.path} is there, and is not fairlead's; it is left as it is: rename it, or take it away"
            )
        if text is not None and self._of_others(text):
            raise FairleadError(f"{self.path} has lines that are not fairlead's; put them into a file of their own")
        return self._text, Before(existed=False)

    def cut(self, text: str, before: Before) -> str | None:
        return text if NAME not in text else self._of_others(text)

    def _of_others(self, text: str) -> str | None:
        """What somebody has put into a program beside our line."""
        left = [line for line in text.splitlines(keepends=True) if NAME not in line] if self.runs else []
        return "".join(left) if any(line.strip() and not line.startswith("#!") for line in left) else None

    def look(self, text: str | None) -> Look:
        found = Look()
        ours = text is not None and NAME in text
        if ours:
            found.events = dict.fromkeys(self.events, text == self._text)
        elif not self.events:
            found.problems.append(f"{self.path} is missing, and nothing else counts without it")
        for file in self._beside():
            if file.name != self.path.name or not ours:
                for event in self.events:
                    found.foreign.setdefault(event, []).append(str(file))
        return found

    def _beside(self) -> list[Path]:
        """Programs for the same event: whatever ending their name has, they run, too."""
        if not self.runs or not self.path.parent.is_dir():
            return []
        return sorted(file for file in self.path.parent.iterdir() if file.stem.lower() == self.path.name.lower())
