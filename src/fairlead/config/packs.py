"""Reads `packs`, `[pack.NAME]` and `[[exemption]]` of one file. `pack_layers` adds up what all files say of a pack."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from ..errors import FairleadError, UnknownName, nearest
from ..packs import NAMES, RECOMMENDED, pack
from ..packs.exemptions import Exemption
from ..packs.judging import RuleControl
from ..packs.rules import LEVELS, Limits, Pack
from .document import Document, Keys

if TYPE_CHECKING:
    from ..hook import Layer

LIMITS: tuple[str, ...] = Limits.__struct_fields__
"""What `[pack.budgets]` may hold besides: a number, or false for no limit."""
PACK = ("level", "verdict", "protect", "allow_hosts", "enforce", "locked")
"""What a `[pack.NAME]` table may hold."""
EXEMPTION = ("rule", "command", "path", "url", "project", "reason", "owner", "until")
"""What an `[[exemption]]` may hold."""
MATCHES = ("command", "path", "url")
"""What an exemption matches: it has one of these."""
ANSWERS: tuple[str, ...] = get_args(RuleControl)


class PackSetting(msgspec.Struct, frozen=True):
    """The value of one key of a `[pack.NAME]` table, and where it stands."""

    value: Any
    keys: Keys


class PackSection(msgspec.Struct):
    """What one file says of packs."""

    packs: dict[str, Pack] = {}
    """The packs that it uses."""
    places: dict[str, Keys] = {}
    """Where each is named."""
    tables: dict[str, dict[str, Any]] = {}
    """What the `[pack.NAME]` tables hold, without mistakes."""
    exemptions: list[tuple[Exemption, Keys]] = []
    enforce: bool = True
    """Whether the packs of the file are enforced, if no table says so."""

    def settings(self, name: str) -> dict[str, PackSetting]:
        """What the file says of a pack: the pack's own table goes before that of `recommended`."""
        return {
            key: PackSetting(value, ("pack", table, key))
            for table in (RECOMMENDED, name)
            for key, value in self.tables.get(table, {}).items()
        }


class PackReader:
    """Reads the packs of one file."""

    def __init__(self, document: Document, layer: Layer, defaults: Mapping[str, Any]) -> None:
        self._document = document
        self._layer = layer
        self._defaults = defaults

    def read(self) -> PackSection:
        """What the file says of packs. Mistakes go to the document."""
        section = PackSection(enforce=self._defaults.get("enforce", True))
        self._read_names(section)
        section.tables = self._tables()
        section.exemptions = self._exemptions()
        return section

    # --- which packs --------------------------------------------------------------------------------

    def _read_names(self, section: PackSection) -> None:
        listed = self._document.data.get("packs", [])
        if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
            self._document.wrong(("packs",), 'packs must be a list of names: packs = ["recommended"]', value=True)
            return
        for index, name in enumerate(listed):
            for one in NAMES if name == RECOMMENDED else (name,):
                try:
                    section.packs.setdefault(one, self._pack(one))
                    section.places.setdefault(one, ("packs", index))
                except FairleadError as error:
                    self._document.wrong(("packs", index), str(error), value=True)

    def _pack(self, name: str) -> Pack:
        """A pack that ships with fairlead or, if a file of the user or the system names it, with another package."""
        from ..packs.installed import installed, installed_names

        if name in NAMES:
            return pack(name)
        if self._layer == "project" and name in installed_names():
            raise FairleadError(
                f"a project's file cannot load a pack of another package ({name!r}); the user's file can"
            )
        return pack(name) if self._layer == "project" else installed(name)

    # --- how they are used --------------------------------------------------------------------------

    def _tables(self) -> dict[str, dict[str, Any]]:
        tables = self._document.data.get("pack", {})
        if not isinstance(tables, dict):
            self._document.wrong(("pack",), "options of a pack are written as [pack.NAME] tables", value=True)
            return {}
        found: dict[str, dict[str, Any]] = {}
        for name, table in tables.items():
            keys: Keys = ("pack", name)
            if not isinstance(table, dict):
                self._document.wrong(keys, f"options of a pack are written as a table: [pack.{name}]", value=True)
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

    def _exemptions(self) -> list[tuple[Exemption, Keys]]:
        entries = self._document.data.get("exemption", [])
        if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
            self._document.wrong(("exemption",), "exemptions are written as [[exemption]] tables")
            return []
        if entries and self._layer == "project":
            self._document.wrong(("exemption",), "a project cannot exempt itself; the user's file can")
            return []
        found = ((self._exemption(index, entry), ("exemption", index)) for index, entry in enumerate(entries))
        return [(one, keys) for one, keys in found if one is not None]

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
        for key in ("rule", "reason"):
            if key not in entry:
                self._document.wrong(keys, f"an exemption needs a {key}")
                sound = False
        if len(entry.keys() & set(MATCHES)) != 1:
            self._document.wrong(keys, "an exemption is about one command, one path or one url")
            sound = False
        if not sound:
            return None
        try:
            self._check_rule(entry["rule"])
        except FairleadError as error:
            self._document.wrong((*keys, "rule"), str(error), value=True)
            return None
        try:
            return Exemption.read(**entry)
        except FairleadError as error:
            self._document.wrong((*keys, *(key for key in MATCHES if key in entry)), str(error), value=True)
            return None

    def _check_rule(self, rule: str) -> None:
        found = self._pack(rule.partition("/")[0])
        if rule not in found.rules:
            raise UnknownName("rule", rule, list(found.rules))


def read_packs(document: Document, layer: Layer, defaults: Mapping[str, Any]) -> PackSection:
    """What a file says of packs."""
    return PackReader(document, layer, defaults).read()


def pack_names() -> Iterator[str]:
    """The names that `packs` may list, but for packs of other packages."""
    yield from (RECOMMENDED, *NAMES)
