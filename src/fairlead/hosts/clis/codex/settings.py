"""Where Codex reads hooks from, which of them it trusts, and what turns them off.

Hooks are in `hooks.json`. Codex skips those whose digests are not in its `config.toml`. The managed file is TOML. This
module computes the new text of each file, and `install/apply.py` writes it.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from ....errors import FairleadError
from ..install import toml_text
from ..install.commands import is_ours
from ..install.json_file import JsonFile, document_of
from ..install.settings import REFUSE_ON_STDERR, Settings, settings_file
from ..install.targets import Baseline, Inspection, Placement, SettingsTarget, read_text
from ..install.toml_text import TomlTable, quoted
from .mapping import HOST

MARK = "# fairlead install"
"""A comment at the end of each line that fairlead writes."""
DEFAULT_TIMEOUT, MIN_TIMEOUT, MAX_SESSION_END = 600, 1, 3
"""Seconds that Codex allows a hook: by default, at least, and at most at SessionEnd."""
CONFIG = ".codex/config.toml"
"""The settings in which Codex trusts hooks, in a home. In a project, they can turn hooks off."""


def _targets(placement: Placement) -> list[SettingsTarget]:
    """The hooks and the trust in them; or the managed file, whose hooks need no trust."""
    hooks = JsonFile(placement.host, placement.path, placement.entries())
    if placement.scope == "managed":
        return [ManagedFile(hooks)]
    return [hooks, TrustFile(_user_config(), hooks)]


def _user_config() -> Path:
    return settings_file(HOST, "user", Path()).with_name("config.toml")


def trust_hash(event: str, group: dict[str, Any], hook: dict[str, Any]) -> str:
    """The digest under which Codex stores its trust in a hook."""
    timeout = hook.get("timeout")
    timeout = max(timeout if isinstance(timeout, int) else DEFAULT_TIMEOUT, MIN_TIMEOUT)
    known = {
        "async": False, "command": hook.get("command"), "type": "command",
        "timeout": min(timeout, MAX_SESSION_END) if event == "SessionEnd" else timeout,
    }  # fmt: skip
    identity: dict[str, Any] = {"event_name": _snake(event), "hooks": [known]}
    if "matcher" in group and event not in ("Stop", "UserPromptSubmit"):
        identity["matcher"] = group["matcher"]
    written = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(written.encode()).hexdigest()}"


def _snake(event: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()


class _TomlFile:
    """A TOML file that has tables of fairlead."""

    is_program = False
    events: tuple[str, ...] = ()

    def __init__(self, path: Path) -> None:
        self.path = path

    def is_ours(self, table: TomlTable) -> bool:
        raise NotImplementedError

    def read(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise FairleadError(f"{self.path}: {error}; it is unchanged: fix it, and try again") from None

    def remove_hooks(self, text: str, before: Baseline) -> str | None:
        if "hooks" not in text:
            return text
        self.read(text)
        rest = toml_text.without(text, self.is_ours)
        return None if not before.existed and not rest.strip() else rest

    def with_tables(self, text: str, new: list[str]) -> str:
        """Have these tables of fairlead, and no others. Raises if the rest of the file would change its meaning."""
        self.read(text)
        rest = self.remove_hooks(text, Baseline()) or ""
        if self._ours(text) == self._ours("\n".join(new)):
            return text
        result = rest
        for table in new:
            result = toml_text.added(result, table)
        try:
            kept = self.read(self.remove_hooks(result, Baseline()) or "") == self.read(rest)
        except FairleadError:
            kept = False
        if not kept:
            shown = "\n\n".join(new)
            raise FairleadError(f"{self.path} cannot take these tables as it is; write them yourself:\n\n{shown}")
        return result

    def _ours(self, text: str) -> list[tuple[tuple[str, ...], Any]]:
        return [(table.name, table.value) for table in toml_text.tables(text) if self.is_ours(table)]


class TrustFile(_TomlFile):
    """The user's `config.toml`, which lists the hooks that Codex trusts. It skips all others without a message."""

    def __init__(self, path: Path, hooks: JsonFile) -> None:
        super().__init__(path)
        self._hooks = hooks
        # Codex follows links of the folder only if CODEX_HOME names it.
        self._files = {str(hooks.path), os.path.join(os.path.realpath(hooks.path.parent), hooks.path.name)}

    def add_hooks(self, text: str | None) -> tuple[str, Baseline]:
        wanted = self._wanted(self._hooks.add_hooks(read_text(self._hooks.path))[0])
        new = [
            f"[hooks.state.{quoted(key)}]\ntrusted_hash = {quoted(digest)} {MARK}"
            for event in wanted
            for key, digest in wanted[event].items()
        ]
        return self.with_tables(text or "", new), Baseline(text is not None)

    def is_ours(self, table: TomlTable) -> bool:
        if table.name[:2] != ("hooks", "state") or len(table.name) != 3:
            return False
        key = table.name[2]
        return key in self._keys or (MARK in table.text and key.rsplit(":", 3)[0] in self._files)

    @cached_property
    def _keys(self) -> set[str]:
        """The keys of fairlead's hooks, as they are now and as they will be."""
        old = read_text(self._hooks.path)
        wanted = [self._wanted(text) for text in (old, self._hooks.add_hooks(old)[0])]
        return {key for each in wanted for keys in each.values() for key in keys}

    def inspect(self, text: str | None) -> Inspection:
        try:
            data = self.read(text or "")
            wanted = self._wanted(read_text(self._hooks.path))
        except FairleadError as error:
            return Inspection(problems=[str(error)])
        state, found = inside(data, "hooks", "state"), Inspection()
        for event, keys in wanted.items():
            known = [(inside(state, key), digest) for key, digest in keys.items()]
            if not any(one.get("trusted_hash") == digest and one.get("enabled") is not False for one, digest in known):
                found.untrusted.append(event)
        for name in features_off(data):
            found.problems.append(f"{self.path}: {name} = false in [features] turns all hooks of Codex off")
        return found

    def _wanted(self, hooks: str | None) -> dict[str, dict[str, str]]:
        """By event, the key and the digest of each hook of fairlead in a text of `hooks.json`."""
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
    """The names in `[features]` that turn all hooks off: the current one, and the earlier one."""
    return [name for name in ("hooks", "codex_hooks") if inside(data, "features").get(name) is False]


def _hashes(data: Any) -> Iterator[tuple[str, str, str]]:
    """Yield event, position and digest of each hook of fairlead."""
    for event, groups in inside(data, "hooks").items():
        for n, group in enumerate(groups if isinstance(groups, list) else ()):
            hooks = group.get("hooks") if isinstance(group, dict) else None
            for m, hook in enumerate(hooks if isinstance(hooks, list) else ()):
                if isinstance(hook, dict) and is_ours(hook.get("command")):
                    yield event, f"{n}:{m}", trust_hash(event, group, hook)


class ManagedFile(_TomlFile):
    """`requirements.toml`, for all users of a machine. Its hooks need no trust, and users cannot turn them off."""

    PIN = f"hooks = true {MARK}\n"

    def __init__(self, hooks: JsonFile) -> None:
        super().__init__(hooks.path)
        self.events = hooks.events
        self._hooks = hooks

    def add_hooks(self, text: str | None) -> tuple[str, Baseline]:
        new = [
            f"[[hooks.{event}]]\nhooks = [{_inline(entry['hooks'][0])}]" for event, entry in self._hooks.entries.items()
        ]
        return self._pinned(self.with_tables(text or "", new)), Baseline(text is not None)

    def remove_hooks(self, text: str, before: Baseline) -> str | None:
        if self.PIN in text:
            self.read(text)
            text = text.replace(self.PIN, "", 1)
            text = toml_text.without(text, lambda table: table.name == ("features",) and table.value == {})
        return super().remove_hooks(text, before)

    def is_ours(self, table: TomlTable) -> bool:
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

    def inspect(self, text: str | None) -> Inspection:
        if text is None:
            return Inspection()
        try:
            data = self.read(text)
        except FairleadError as error:
            return Inspection(problems=[str(error)])
        found = self._hooks.inspect(json.dumps(data, default=str))
        if inside(data, "features").get("hooks") is not True:
            found.problems.append(f"{self.path}: without hooks = true in [features], a user can turn these hooks off")
        return found


def _inline(hook: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in hook.items()) + " }"


# --- what the doctor checks -----------------------------------------------------------------------


def read_toml(file: Path) -> dict[str, Any]:
    """What a TOML file holds; nothing if it cannot be read."""
    try:
        return tomllib.loads(read_text(file) or "")
    except (FairleadError, tomllib.TOMLDecodeError):
        return {}


def _examine(root: Path, seen: set[Path]) -> Iterator[tuple[Literal["problem"], str, str]]:
    """Find what turns hooks off in the project's own `config.toml`."""
    config = root / CONFIG
    for name in () if config in seen else features_off(read_toml(config)):
        what = f"{config}: {name} = false in [features] turns all hooks of Codex off in a project that it trusts"
        yield "problem", what, f"take {name} out"


def _copy_trust(copies: dict[Path, Path], root: Path, home: Path, project: Path) -> None:
    """Copy the user's trust for a trial run. It is bound to the paths of files, so it must name the copies."""
    data = read_toml(_user_config())
    tables: dict[str, dict[str, Any]] = {"features": dict.fromkeys(features_off(data), False)}
    trust = inside(data, "projects", str(root)).get("trust_level")
    tables[f"projects.{quoted(str(project))}"] = {"trust_level": trust}
    for key, state in inside(data, "hooks", "state").items():
        for file, copy in copies.items():
            for old in (str(file), os.path.join(os.path.realpath(file.parent), file.name)):
                if key.startswith(f"{old}:") and isinstance(state, dict):
                    tables[f"hooks.state.{quoted(str(copy) + key.removeprefix(old))}"] = state
    _write_toml(home / CONFIG, tables)
    _write_toml(project / CONFIG, {"features": dict.fromkeys(features_off(read_toml(root / CONFIG)), False)})


def _write_toml(file: Path, tables: dict[str, dict[str, Any]]) -> None:
    lines = []
    for name, table in tables.items():
        plain = {key: value for key, value in table.items() if isinstance(value, str | bool)}
        lines += [f"[{name}]", *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in plain.items())]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines), "utf-8")


SETTINGS = Settings(
    user="~/.codex/hooks.json",
    project=".codex/hooks.json",
    managed="/etc/codex/requirements.toml",
    moved_by=("CODEX_HOME", "~/.codex"),
    targets=_targets,
    if_launcher_gone=REFUSE_ON_STDERR,
    allows=(),
    needs_trust=True,
    examine=_examine,
    copy_more=_copy_trust,
    notes={
        "user": "Codex now trusts these hooks, and no others: see hooks.state in its config.toml.",
        "project": "Codex runs them in a project that it trusts. Others who work on it trust them by /hooks.",
    },
)
