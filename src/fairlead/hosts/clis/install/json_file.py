"""Hooks in a JSON file of settings: added, removed and inspected, while every other byte stays as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ....errors import FairleadError
from ..launcher import NAME
from ..mapping import Host
from .commands import is_ours
from .jsonc import BadJson, JsonDocument, JsonNode, PathKey
from .settings import Settings, settings_of
from .targets import Baseline, Inspection, Placement, SettingsTarget, read_text


def json_files(placement: Placement) -> list[SettingsTarget]:
    """The JSON files that get a CLI's entries: its settings file, and those that override it."""
    host, path, entries = placement.host, placement.path, placement.entries()
    settings = settings_of(host)
    files: list[SettingsTarget] = []
    winner = next((found for name in settings.overridden_by if (found := path.parent / name).exists()), None)
    if winner is not None:
        there = document_of(winner, read_text(winner)).root.value
        overridden = {event for event in entries if event in there} if isinstance(there, dict) else set()
        files.append(JsonFile(host, winner, {event: entries[event] for event in entries if event in overridden}))
        entries = {event: entry for event, entry in entries.items() if event not in overridden}
    pins = settings.pins if placement.scope == "managed" else {}
    return [*files, JsonFile(host, path, entries, pins=pins)]


def document_of(path: Path, text: str | None) -> JsonDocument:
    """Parse a file of settings. A file that is missing or blank is an empty object."""
    try:
        return JsonDocument("{}" if text is None or _is_blank(text) else text)
    except BadJson as error:
        raise FairleadError(
            f"{path}:{error.line}:{error.column}: {error.problem}; it is unchanged: fix it, and try again"
        ) from None


def _is_blank(text: str) -> bool:
    return not text.strip("\ufeff \t\r\n")


def switched_off(host: Host, path: Path, document: JsonDocument) -> Iterator[tuple[str, str]]:
    """Yield each key in a file that turns hooks of fairlead off, with a message for the user."""
    settings = settings_of(host)
    for keys, value in settings.off_switches:
        found = document.find(keys)
        if found is not None and found.value is value:
            yield ".".join(keys), locate(path, document, found, keys, f"turns all hooks of {host.title} off")
    key = settings.disabled_key or ()
    listed = document.find(key) if key else None
    for part in () if listed is None or listed.kind != "array" else listed.parts:
        if is_ours(part.node.value):
            yield ".".join(key), locate(path, document, part.node, key, "turns a hook of fairlead off")


def locate(path: Path, document: JsonDocument, node: JsonNode, keys: tuple[str, ...], what: str) -> str:
    """A message about a key of a file, with its line and column."""
    line, column = document.where(node.start)
    return f"{path}:{line}:{column}: {'.'.join(keys)} {what}"


class JsonFile:
    """A JSON file that has a list of entries for each event, under `hooks` or at its top level."""

    is_program = False

    def __init__(
        self, host: Host, path: Path, entries: dict[str, Any], *, pins: dict[tuple[str, ...], Any] | None = None
    ) -> None:
        self.path, self.entries = path, entries
        self.events = tuple(entries)
        self._host, self._pins = host, pins or {}
        self._settings: Settings = settings_of(host)
        self.at: tuple[str, ...] = () if any(map(path.match, self._settings.overridden_by)) else ("hooks",)

    # --- adding -----------------------------------------------------------------------------------

    def add_hooks(self, text: str | None) -> tuple[str, Baseline]:
        document = self._read(text)
        made: list[tuple[str, ...]] = []
        fresh = text is None or _is_blank(text)
        if fresh:
            document = JsonDocument(
                msgspec.json.format(msgspec.json.encode(self._settings.template), indent=2).decode()
            )
        for path, value in self._pins.items():
            document = self._ensure(document, path, value, made)
        document = self._ensure(document, self.at, {event: [entry] for event, entry in self.entries.items()}, made)
        self._need(document, self.at, "object")
        for event in self._events_in(document):
            document = self._update_event(document, event)
        for event, entry in self.entries.items():
            document = self._ensure(document, (*self.at, event), [entry], made)
        return document.text + ("\n" if fresh else ""), Baseline(text is not None, tuple(made))

    def _update_event(self, document: JsonDocument, event: str) -> JsonDocument:
        """Have exactly one entry of fairlead at an event that the file has, or none if it is not wanted."""
        path, ours = (*self.at, event), self._ours(document, event)
        entry = self.entries.get(event)
        if entry is not None:
            self._need(document, path, "array")
        for extra in reversed(ours if entry is None else ours[1:]):
            document = document.remove(extra)
        if entry is None:
            return self._remove_empty(document, path) if ours else document
        if not ours:
            return document.append(path, entry)
        return (
            document if self._is_current(document, ours[0], entry) else document.put(ours[0], self._for(ours[0], entry))
        )

    def _for(self, path: tuple[PathKey, ...], entry: dict[str, Any]) -> Any:
        """What belongs at a path: the whole entry, or only its hook in a group of another program."""
        return entry if len(path) == len(self.at) + 2 else entry["hooks"][0]

    def _is_current(self, document: JsonDocument, path: tuple[PathKey, ...], entry: dict[str, Any]) -> bool:
        found = document.find(path)
        return found is not None and found.value == self._for(path, entry)

    def _ensure(
        self, document: JsonDocument, path: tuple[str, ...], value: Any, made: list[tuple[str, ...]]
    ) -> JsonDocument:
        """Add a value at a path, with the objects around it, unless the path has a value already."""
        for depth in range(1, len(path) + 1):
            self._need(document, path[: depth - 1], "object")
            if document.find(path[:depth]) is None:
                for key in reversed(path[depth:]):
                    value = {key: value}
                made.append(path[:depth])
                return document.put(path[:depth], value)
        return document

    # --- removing ---------------------------------------------------------------------------------

    def remove_hooks(self, text: str, before: Baseline) -> str | None:
        if NAME not in text:
            return text
        document, made = self._read(text), before.made
        for event in self._events_in(document):
            ours = self._ours(document, event)
            for path in reversed(ours):
                document = document.remove(path)
            if ours and _was_made((*self.at, event), made):
                document = self._remove_empty(document, (*self.at, event))
        if self.at and document.text != text and _was_made(self.at, made):
            document = self._remove_empty(document, self.at)
        for path, value in self._pins.items():
            found = document.find(path)
            if made is not None and _was_made(path, made) and found is not None and found.value == value:
                document = document.remove(path)
                for depth in reversed(range(1, len(path))):
                    if _was_made(path[:depth], made):
                        document = self._remove_empty(document, path[:depth])
        left = document.root.value if document.comment is None else None
        own = self._settings.is_own and self.path.stem in ("fairlead", "hooks")
        return None if left in ({}, self._settings.template) and (own or not before.existed) else document.text

    @staticmethod
    def _remove_empty(document: JsonDocument, path: tuple[str, ...]) -> JsonDocument:
        """Remove an empty list or object, unless another of the same name would then count."""
        above, found = document.find(path[:-1]), document.find(path)
        if above is None or found is None or found.kind == "plain" or found.parts:
            return document
        remark = document.text[found.start + 1 : found.end - 1].strip()
        again = [part.key for part in above.parts].count(path[-1]) > 1
        return document if remark or again else document.remove(path)

    # --- inspecting -------------------------------------------------------------------------------

    def inspect(self, text: str | None) -> Inspection:
        found = Inspection()
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

    def _problems(self, document: JsonDocument) -> Iterator[str]:
        title, allows = self._host.title, self._settings.allows
        for kind, position, what in (
            ("comments", document.comment, "a comment"),
            ("commas", document.trailing, "a comma that nothing follows"),
        ):
            if position is not None and kind not in allows:
                line, column = document.where(position)
                yield (
                    f"{self.path}:{line}:{column}: {title} reads nothing of a file with {what} in it, "
                    "so none of its hooks run: take it out"
                )
        yield from (what for _, what in switched_off(self._host, self.path, document))

    def _read(self, text: str | None) -> JsonDocument:
        document = document_of(self.path, text)
        self._need(document, (), "object")
        return document

    def _need(self, document: JsonDocument, path: tuple[str, ...], kind: str) -> None:
        """Raise if a path has a value of another kind."""
        found = document.find(path)
        if found is not None and found.kind != kind:
            line, column = document.where(found.start)
            article = {"object": "an object: {...}", "array": "a list: [...]"}[kind]
            what = ".".join(path) or "the file"
            raise FairleadError(f"{self.path}:{line}:{column}: {what} must be {article}; it is unchanged")

    def _events_in(self, document: JsonDocument) -> list[str]:
        node = document.find(self.at)
        parts = () if node is None else node.parts
        return list(dict.fromkeys(part.key for part in parts if part.key is not None))

    def _ours(self, document: JsonDocument, event: str) -> list[tuple[PathKey, ...]]:
        """The paths of fairlead's entries at an event: groups that hold nothing else, or single hooks."""
        path: tuple[PathKey, ...] = (*self.at, event)
        found: list[tuple[PathKey, ...]] = []
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

    def _others(self, document: JsonDocument, event: str) -> list[str]:
        node = document.find((*self.at, event))
        hooks: list[Any] = []
        for part in node.parts if node is not None and node.kind == "array" else ():
            hooks += [part.node.value] if self._settings.form == "list" else _hooks_of(part.node)
        return [_shown(hook) for hook in hooks if not self._is_ours(hook)]

    def _is_ours(self, hook: Any) -> bool:
        return isinstance(hook, dict) and is_ours(hook.get(self._settings.command_key))


def _hooks_of(group: JsonNode) -> list[Any]:
    value = group.value
    hooks = value.get("hooks") if isinstance(value, dict) else None
    return hooks if isinstance(hooks, list) else []


def _shown(hook: Any) -> str:
    keys = ("command", "bash", "exec", "url", "prompt")
    text = next((str(hook[key]) for key in keys if key in hook), "") if isinstance(hook, dict) else ""
    return text or msgspec.json.encode(hook).decode()


def _was_made(path: tuple[str, ...], made: tuple[tuple[str, ...], ...] | None) -> bool:
    return made is None or any(path[: len(each)] == each for each in made)
