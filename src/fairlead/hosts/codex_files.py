"""Codex: which of its hooks it may run is written down in its settings, and what holds for a machine is in TOML."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from .. import toml_text
from ..errors import FairleadError
from ..toml_text import Table, quoted
from .host import Host
from .settings import Scope
from .targets import Before, JsonFile, Look, Target, document_of, is_ours, read_text

MARK = "# fairlead install"
"""Ends the lines that are ours."""
DEFAULT, SHORTEST, LAST = 600, 1, 3
"""Seconds that Codex gives a hook: if it is not told, at least, and at most at the end of a session."""


def codex_targets(host: Host, scope: Scope, path: Path, entries: dict[str, Any]) -> list[Target]:
    hooks = JsonFile(host, path, entries)
    if scope == "managed":
        return [Requirements(hooks)]
    folder = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex").expanduser().absolute()
    return [hooks, Trusted(folder / "config.toml", hooks)]


def trust_hash(event: str, group: dict[str, Any], hook: dict[str, Any]) -> str:
    """The digest by which Codex knows a hook that somebody has trusted."""
    timeout = hook.get("timeout")
    timeout = max(timeout if isinstance(timeout, int) else DEFAULT, SHORTEST)
    known = {
        "async": False, "command": hook.get("command"), "type": "command",
        "timeout": min(timeout, LAST) if event == "SessionEnd" else timeout,
    }  # fmt: skip
    identity: dict[str, Any] = {"event_name": _snake(event), "hooks": [known]}
    if "matcher" in group and event not in ("Stop", "UserPromptSubmit"):
        identity["matcher"] = group["matcher"]
    written = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(written.encode()).hexdigest()}"


def _snake(event: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()


class _TomlFile:
    """A file in TOML that holds tables of ours."""

    runs = False
    events: tuple[str, ...] = ()

    def __init__(self, path: Path) -> None:
        self.path = path

    def is_ours(self, table: Table) -> bool:
        raise NotImplementedError

    def read(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise FairleadError(f"{self.path}: {error}; it is left as it is: mend it, and try again") from None

    def cut(self, text: str, before: Before) -> str | None:
        if "hooks" not in text:
            return text
        self.read(text)
        rest = toml_text.without(text, self.is_ours)
        return None if not before.existed and not rest.strip() else rest

    def with_tables(self, text: str, new: list[str]) -> str:
        """With these tables of ours, and no others. Raises if anything else would then mean something else."""
        self.read(text)
        rest = self.cut(text, Before()) or ""
        if self._ours(text) == self._ours("\n".join(new)):
            return text
        result = rest
        for table in new:
            result = toml_text.added(result, table)
        try:
            kept = self.read(self.cut(result, Before()) or "") == self.read(rest)
        except FairleadError:
            kept = False
        if not kept:
            told = "\n\n".join(new)
            raise FairleadError(f"{self.path} cannot take these tables as it is; write them yourself:\n\n{told}")
        return result

    def _ours(self, text: str) -> list[tuple[tuple[str, ...], Any]]:
        return [(table.name, table.value) for table in toml_text.tables(text) if self.is_ours(table)]


class Trusted(_TomlFile):
    """The user's settings, where they say which hooks may run. Others are skipped, and nothing is said of it."""

    def __init__(self, path: Path, hooks: JsonFile) -> None:
        super().__init__(path)
        self._hooks = hooks
        # Codex follows links of the folder only if CODEX_HOME names it.
        self._files = {str(hooks.path), os.path.join(os.path.realpath(hooks.path.parent), hooks.path.name)}

    def put(self, text: str | None) -> tuple[str, Before]:
        wanted = self._wanted(self._hooks.put(read_text(self._hooks.path))[0])
        new = [
            f"[hooks.state.{quoted(key)}]\ntrusted_hash = {quoted(digest)} {MARK}"
            for event in wanted
            for key, digest in wanted[event].items()
        ]
        return self.with_tables(text or "", new), Before(text is not None)

    def is_ours(self, table: Table) -> bool:
        if table.name[:2] != ("hooks", "state") or len(table.name) != 3:
            return False
        key = table.name[2]
        return key in self._keys or (MARK in table.text and key.rsplit(":", 3)[0] in self._files)

    @cached_property
    def _keys(self) -> set[str]:
        """Of our hooks, where they are and where they will be."""
        old = read_text(self._hooks.path)
        wanted = [self._wanted(text) for text in (old, self._hooks.put(old)[0])]
        return {key for each in wanted for keys in each.values() for key in keys}

    def look(self, text: str | None) -> Look:
        try:
            data = self.read(text or "")
            wanted = self._wanted(read_text(self._hooks.path))
        except FairleadError as error:
            return Look(problems=[str(error)])
        state, found = inside(data, "hooks", "state"), Look()
        for event, keys in wanted.items():
            told = [(inside(state, key), digest) for key, digest in keys.items()]
            if not any(
                said.get("trusted_hash") == digest and said.get("enabled") is not False for said, digest in told
            ):
                found.untrusted.append(event)
        for name in features_off(data):
            found.problems.append(f"{self.path}: {name} = false in [features] turns all hooks of Codex off")
        return found

    def _wanted(self, hooks: str | None) -> dict[str, dict[str, str]]:
        """By event, the key and the digest of each hook of ours, given the file they are in."""
        wanted: dict[str, dict[str, str]] = {}
        for event, place, digest in _hashes(document_of(self._hooks.path, hooks).value):
            keys = wanted.setdefault(event, {})
            keys |= {f"{file}:{_snake(event)}:{place}": digest for file in sorted(self._files)}
        return wanted


def inside(data: Any, *path: str) -> dict[str, Any]:
    """The table at a path; an empty one where there is none."""
    for key in path:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def features_off(data: Any) -> list[str]:
    """What in the features turns all hooks off: by its name, and by the one it had before."""
    return [name for name in ("hooks", "codex_hooks") if inside(data, "features").get(name) is False]


def _hashes(data: Any) -> Iterator[tuple[str, str, str]]:
    """Of each hook of ours: its event, its place, and its digest."""
    for event, groups in inside(data, "hooks").items():
        for n, group in enumerate(groups if isinstance(groups, list) else ()):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for m, hook in enumerate(hooks if isinstance(hooks, list) else ()):
                if isinstance(hook, dict) and is_ours(hook.get("command")):
                    yield event, f"{n}:{m}", trust_hash(event, group, hook)


class Requirements(_TomlFile):
    """What holds for everybody on a machine. Hooks need no trust here, and are pinned so that nobody turns them off."""

    PIN = f"hooks = true {MARK}\n"

    def __init__(self, hooks: JsonFile) -> None:
        super().__init__(hooks.path)
        self.events = hooks.events
        self._hooks = hooks

    def put(self, text: str | None) -> tuple[str, Before]:
        new = [
            f"[[hooks.{event}]]\nhooks = [{_inline(entry['hooks'][0])}]" for event, entry in self._hooks.entries.items()
        ]
        return self._pinned(self.with_tables(text or "", new)), Before(text is not None)

    def cut(self, text: str, before: Before) -> str | None:
        if self.PIN in text:
            self.read(text)
            text = text.replace(self.PIN, "", 1)
            text = toml_text.without(text, lambda table: table.name == ("features",) and table.value == {})
        return super().cut(text, before)

    def is_ours(self, table: Table) -> bool:
        hooks = table.value.get("hooks") if isinstance(table.value, dict) else None
        if table.name[:1] != ("hooks",) or not isinstance(hooks, list):
            return False
        return all(isinstance(hook, dict) and is_ours(hook.get("command")) for hook in hooks)

    def _pinned(self, text: str) -> str:
        features = self.read(text).get("features")
        if features is None:
            return toml_text.added(text, f"[features]\n{self.PIN}".rstrip("\n"))
        if inside({"features": features}, "features").get("hooks") is True:
            return text
        table = next((table for table in toml_text.tables(text) if table.name == ("features",)), None)
        if table is None or "hooks" in table.value:
            raise FairleadError(f"{self.path}: features does not have hooks = true; say so there, and try again")
        line, end, rest = text[table.start :].partition("\n")
        return f"{text[: table.start]}{line}{end or chr(10)}{self.PIN}{rest}"

    def look(self, text: str | None) -> Look:
        if text is None:
            return Look()
        try:
            data = self.read(text)
        except FairleadError as error:
            return Look(problems=[str(error)])
        found = self._hooks.look(json.dumps(data, default=str))
        if inside(data, "features").get("hooks") is not True:
            found.problems.append(f"{self.path}: without hooks = true in [features], a user can turn these hooks off")
        return found


def _inline(hook: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in hook.items()) + " }"
