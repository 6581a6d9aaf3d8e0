"""Reads `packs`, `[pack.NAME]` and `[[exemption]]` of one file, and makes a hook of each pack."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, get_args

from ..errors import FairleadError, UnknownName, nearest
from ..packs import NAMES, RECOMMENDED, pack
from ..packs.exemptions import Exemption
from ..packs.judging import Answer, PackOptions, events_of, kinds_of, pack_hook
from ..packs.rules import LEVELS, Limits
from .document import Document, Keys
from .hook_entry import ConfiguredHook

if TYPE_CHECKING:
    from ..hook import Layer

LIMITS: tuple[str, ...] = Limits.__struct_fields__
"""What `[pack.budgets]` may hold besides: a number, or false for no limit."""
PACK = ("level", "verdict", "protect", "allow_hosts", "enforce", "locked")
"""What a `[pack.NAME]` table may hold."""
EXEMPTION = ("rule", "command", "project", "reason", "owner", "until")
"""What an `[[exemption]]` may hold."""
ANSWERS: tuple[str, ...] = get_args(Answer)


class PackReader:
    """Reads the packs of one file."""

    def __init__(self, document: Document, layer: Layer, defaults: Mapping[str, Any]) -> None:
        self._document = document
        self._layer = layer
        self._defaults = defaults

    def read(self) -> list[ConfiguredHook]:
        """A hook for each pack that the file names. Mistakes go to the document."""
        names = self._names()
        tables = self._tables(names)
        exemptions = self._exemptions()
        return [self._hook(name, keys, tables, exemptions) for name, keys in names.items()]

    # --- which packs --------------------------------------------------------------------------------

    def _names(self) -> dict[str, Keys]:
        """The packs, and where each is named."""
        names: dict[str, Keys] = {}
        listed = self._document.data.get("packs", [])
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            self._document.wrong(("packs",), 'packs must be a list of names: packs = ["recommended"]', value=True)
            return names
        for index, name in enumerate(listed):
            keys: Keys = ("packs", index)
            if name == RECOMMENDED:
                names |= {one: keys for one in NAMES if one not in names}
                continue
            try:
                pack(name)
                names.setdefault(name, keys)
            except UnknownName as error:
                self._document.wrong(keys, str(error), value=True)
        return names

    # --- how they are used --------------------------------------------------------------------------

    def _tables(self, names: Mapping[str, Keys]) -> dict[str, dict[str, Any]]:
        tables = self._document.data.get("pack", {})
        if not isinstance(tables, dict):
            self._document.wrong(("pack",), "options of a pack are written as [pack.NAME] tables", value=True)
            return {}
        found: dict[str, dict[str, Any]] = {}
        for name, table in tables.items():
            keys: Keys = ("pack", name)
            if name not in (*NAMES, RECOMMENDED):
                self._document.wrong(keys, f"unknown pack {name!r}{nearest(name, [RECOMMENDED, *NAMES])}")
            elif not isinstance(table, dict):
                self._document.wrong(keys, f"options of a pack are written as a table: [pack.{name}]", value=True)
            elif name != RECOMMENDED and name not in names:
                self._document.wrong(keys, f'the pack is not used; add it: packs = ["{name}"]')
            else:
                found[name] = {key: value for key, value in table.items() if self._is_sound(keys, key, value)}
        return found

    def _is_sound(self, keys: Keys, key: str, value: Any) -> bool:
        texts = isinstance(value, list) and all(isinstance(item, str) and item for item in value)
        checks: dict[str, tuple[bool, str]] = {
            "level": (value in LEVELS, f"one of {', '.join(LEVELS)}"),
            "verdict": (value in ANSWERS, f"one of {', '.join(ANSWERS)}"),
            "protect": (texts, "a list of paths"),
            "allow_hosts": (texts, "a list of host names"),
            "enforce": (isinstance(value, bool), "true or false"),
            "locked": (isinstance(value, bool), "true or false"),
        }
        problem = None
        if keys == ("pack", "budgets"):
            number = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
            whole = key in ("minutes", "cost") or isinstance(value, int)
            limit = (value is False or (number and whole), "a number above 0, or false for no limit")
            checks |= dict.fromkeys(LIMITS, limit)
        if key not in checks:
            self._document.wrong((*keys, key), f"unknown key {key!r}{nearest(key, list(checks))}")
            return False
        if not checks[key][0]:
            words = {"level": LEVELS, "verdict": ANSWERS}.get(key, ())
            problem = f"{key} must be {checks[key][1]}{nearest(str(value), words) if words else ''}"
        elif self._layer == "project" and key in ("allow_hosts", "locked"):
            problem = f"a project's file has no {key}; the user's file can"
        if problem is not None:
            self._document.wrong((*keys, key), problem, value=True)
        return problem is None

    # --- exemptions -----------------------------------------------------------------------------------

    def _exemptions(self) -> list[Exemption]:
        entries = self._document.data.get("exemption", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            self._document.wrong(("exemption",), "exemptions are written as [[exemption]] tables")
            return []
        if entries and self._layer == "project":
            self._document.wrong(("exemption",), "a project cannot exempt itself; the user's file can")
            return []
        return [one for index, entry in enumerate(entries) if (one := self._exemption(index, entry)) is not None]

    def _exemption(self, index: int, entry: dict[str, Any]) -> Exemption | None:
        keys: Keys = ("exemption", index)
        sound = True
        for key, value in entry.items():
            problem = None
            if key not in EXEMPTION:
                self._document.wrong((*keys, key), f"unknown key {key!r}{nearest(key, EXEMPTION)}")
                sound = False
                continue
            if key == "until":
                if isinstance(value, datetime) or not isinstance(value, date):
                    problem = "until is a date: until = 2030-01-31"
            elif not isinstance(value, str) or not value.strip():
                problem = f"{key} must be a text"
            elif key == "project" and not os.path.isabs(os.path.expanduser(value)):
                problem = "project is an absolute path, or begins with ~"
            if problem is not None:
                self._document.wrong((*keys, key), problem, value=True)
                sound = False
        for key in ("rule", "command", "reason"):
            if key not in entry:
                self._document.wrong(keys, f"an exemption needs a {key}")
                sound = False
        if not sound:
            return None
        try:
            _check_rule(entry["rule"])
        except FairleadError as error:
            self._document.wrong((*keys, "rule"), str(error), value=True)
            return None
        try:
            return Exemption.read(**entry)
        except FairleadError as error:
            self._document.wrong((*keys, "command"), str(error), value=True)
            return None

    # --- hooks ------------------------------------------------------------------------------------------

    def _hook(
        self, name: str, keys: Keys, tables: Mapping[str, dict[str, Any]], exemptions: list[Exemption]
    ) -> ConfiguredHook:
        given = tables.get(RECOMMENDED, {}) | tables.get(name, {})
        own = [one for one in exemptions if one.rule.partition("/")[0] == name]
        options = PackOptions(
            given.get("level", "destructive"),
            given.get("verdict"),
            tuple(given.get("protect", ())),
            tuple(given.get("allow_hosts", ())),
            tuple(own),
            Limits(**{key: None if value is False else value for key, value in given.items() if key in LIMITS}),
        )
        enforce = given.get("enforce", self._defaults.get("enforce", True))
        locked = bool(given.get("locked"))
        hook = pack_hook(pack(name), options, self._layer, enforce=enforce, locked=locked)
        events = events_of(pack(name))
        entry = {
            "name": hook.name,
            "on": events[0] if len(events) == 1 else list(events),
            "pack": name,
            "match": {"kind": list(kinds_of(pack(name)))},
            **given,
        }
        return ConfiguredHook(hook, "pack", entry, self._document.path, self._document.line_of(keys), hook.name, locked)


def _check_rule(rule: str) -> None:
    name = rule.partition("/")[0]
    found = pack(name)
    if rule not in found.rules:
        raise UnknownName("rule", rule, list(found.rules))


def read_packs(document: Document, layer: Layer, defaults: Mapping[str, Any]) -> list[ConfiguredHook]:
    """Make the hooks of the packs that a file names."""
    return PackReader(document, layer, defaults).read()


def pack_names() -> Iterator[str]:
    """All names that `packs` may list."""
    yield from (RECOMMENDED, *NAMES)
