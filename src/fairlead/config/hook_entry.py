"""What a `[[hook]]` entry may hold, and what becomes of it: its options, its origin and its hook."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..errors import MissingVariable
from ..hook import Hook, Layer
from ..runners.environment import HookEnvironment, hook_environment
from .programs import ProgramPin, Unavailable, unavailable

FORMS = ("python", "command", "shell", "worker", "url", "rule", "prompt", "wasm", "pack")
"""How a hook runs: every entry has exactly one of these."""
LATER = ("wasm", "pack")

OUTCOMES = ("deny", "ask", "allow", "stop", "skip", "extend", "abort", "warn", "inject", "change")
FILTERS = ("tool", "kind", "safety", "outcome", "agent", "host")
OPTIONS = ("phase", "priority", "timeout", "on_failure", "text_limit", "enforce", "detached", "quarantine")
COMMON = ("name", "on", "match", *OPTIONS, "locked", "may")
OF_FORM: dict[str, tuple[str, ...]] = {
    "python": ("interpreter", "env"),
    "command": ("exit", "output", "env"),
    "shell": ("exit", "output", "env"),
    "worker": ("env",),
    "url": ("headers", "secret", "raw", "fields"),
    "rule": OUTCOMES,
    "prompt": ("model", "output", "template", "raw", "fields"),
}
RAW = "raw"
"""What a project's hook needs in its `may` to be sent steps as they are. It is no power over the agent."""

_TEXT = (str,)
SHAPES: dict[str, tuple[tuple[type, ...], str]] = {
    **dict.fromkeys(
        ("name", "python", "shell", "url", "rule", "prompt", "interpreter", "output", "template", "model", "phase",
         "on_failure", *OUTCOMES[:-1]), (_TEXT, "a text")),
    **dict.fromkeys(("match", "exit", "headers", "change"), ((dict,), "a table")),
    **dict.fromkeys(("enforce", "detached", "locked", "raw"), ((bool,), "true or false")),
    **dict.fromkeys(("command", "worker", "may", "fields"), ((list,), "a list of texts")),
    "on": ((str, list), "an event or a list of events"),
    "priority": ((int,), "a whole number"),
    "text_limit": ((int,), "a number of bytes"),
    "timeout": ((int, float, bool), "a number of seconds, or false for no limit"),
    "quarantine": ((list,), "[failures, seconds]"),
    "env": ((list, dict), "a list of names, or a table of names and values"),
    "secret": ((dict,), '{ env = "NAME" }: a secret does not belong in a file'),
}  # fmt: skip


class TrustedCopies(msgspec.Struct, frozen=True):
    """What the hooks of a trusted project run: copies of its files, and programs that were pinned."""

    digest: str
    at: float
    root: Path
    paths: Mapping[str, str] = {}  # files and folders of the project, and the copies of each
    launch: Mapping[str, list[str]] = {}  # the words that start each program, as the file names it
    outside: Mapping[str, list[ProgramPin]] = {}  # per hook, what must be as it was


class HookOrigin(msgspec.Struct, frozen=True):
    """Where the hooks of a file come from: the layer, the file, and what they may use."""

    layer: Layer
    path: Path
    workspace: Path | None = None
    allow_hosts: frozenset[str] = frozenset()
    copies: TrustedCopies | None = None
    trusted: bool = True
    environ: Mapping[str, str] | None = None  # what hooks see of it, if not this process's own

    @property
    def folder(self) -> Path:
        return self.path.parent

    def environment(self, env: Any = ()) -> HookEnvironment:
        return hook_environment(self.folder, env=env, source=self.environ, workspace=self.workspace)


class ConfiguredHook(msgspec.Struct, frozen=True):
    """A hook, and the entry it was made from."""

    hook: Hook
    form: str
    entry: dict[str, Any]
    file: str
    line: int
    name: str  # which another layer may have, too: then this one is qualified
    locked: bool = False

    @property
    def where(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def unavailable(self) -> Unavailable | None:
        """The stand-in for this hook if it cannot run on this machine."""
        return unavailable(self.hook.fn)


def variables(data: Mapping[str, Any]) -> set[str]:
    """The variables that a file names: for its hooks, for redaction and for notifications."""
    found: set[str] = set()
    for entry in data.get("hook", ()) if isinstance(data.get("hook"), list) else ():
        if isinstance(entry, dict):
            env = entry.get("env")
            found |= {name for name in env if isinstance(name, str)} if isinstance(env, list) else set()
            tables = [entry, *(table for key in ("env", "headers") if isinstance(table := entry.get(key), dict))]
            values = [value for table in tables for value in table.values() if isinstance(value, dict)]
            found |= {value["env"] for value in values if isinstance(value.get("env"), str)}
    targets = [target for target in _items_of(data, "approvals", "notify") if isinstance(target, dict)]
    values = [*_items_of(data, "redact", "values"), *(value for target in targets for value in target.values())]
    return found | {one["env"] for one in values if isinstance(one, dict) and isinstance(one.get("env"), str)}


def _items_of(data: Mapping[str, Any], table: str, key: str) -> list[Any]:
    """A list in a table; empty if the file has something else there."""
    found = data.get(table)
    items = found.get(key) if isinstance(found, dict) else None
    return items if isinstance(items, list) else []


def value_of(value: Any, environ: Mapping[str, str] | None = None) -> str:
    """A text, or the value of the environment variable that the file names."""
    if isinstance(value, str):
        return value
    texts = isinstance(value, dict) and all(isinstance(part, str) for part in value.values())
    if not texts or "env" not in value or value.keys() - {"env", "prefix"}:
        raise ValueError('write a text, or { env = "NAME" } for what a variable holds (prefix = "..." goes before it)')
    found = (os.environ if environ is None else environ).get(value["env"])
    if found is None:
        raise MissingVariable(value["env"])
    return f"{value.get('prefix', '')}{found}"
