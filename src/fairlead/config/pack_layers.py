"""Adds up what the files of all layers say of packs.

Every file that uses a pack has a hook of its own. The hooks of one pack agree on how it is used:

- The user's file changes what the system's file says, unless that is locked. Then it may only tighten it.
- A project's file may only tighten what the system's and the user's files say.
- Exemptions, and hosts that are allowed, come from the system's and the user's files. Those of the user's do not hold
  for a locked pack. Protected paths are those of all files.

A hook that would say just what one of a higher layer says is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.json import encode
from msgspec.structs import replace

from ..errors import nearest
from ..hook import Layer
from ..packs import NAMES, RECOMMENDED
from ..packs.exemptions import Exemption
from ..packs.judging import PackOptions, RuleControl, events_of, kinds_of, pack_hook
from ..packs.rules import LEVELS, Level, Limits, Pack
from .document import Document, Keys
from .hook_entry import ConfiguredHook
from .packs import LIMITS, PackSection, PackSetting

if TYPE_CHECKING:
    from .layers import ConfigFile

_STRICTNESS: tuple[RuleControl | None, ...] = ("warn", "ask", None, "deny")
"""Verdicts of a pack, the mildest first. None: what the level leads to, which is a denial of disasters only."""


class PackUse(msgspec.Struct, frozen=True):
    """How a pack is used: what the layers so far say."""

    level: Level = "destructive"
    verdict: RuleControl | None = None
    enforce: bool = True
    protect: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    exemptions: tuple[Exemption, ...] = ()
    limits: Limits = Limits()
    locked: bool = False
    """Whether the system's file locks it."""
    own: frozenset[str] = frozenset()
    """The keys that a table of just this pack sets."""

    @property
    def options(self) -> PackOptions:
        lists = (self.protect, self.allow_hosts, self.exemptions)
        return PackOptions(self.level, self.verdict, *lists, limits=self.limits, exceptions=not self.locked)

    def loosens(self, key: str, value: Any) -> bool:
        """Would this value stop less?"""
        if key == "level":
            return LEVELS.index(value) < LEVELS.index(self.level)
        if key == "verdict":
            return _STRICTNESS.index(value) < _STRICTNESS.index(self.verdict)
        if key in LIMITS:
            now = getattr(self.limits, key)
            return now is not None and (value is False or value > now)
        if key == "allow_hosts":
            return not set(value) <= set(self.allow_hosts)
        return key in ("enforce", "locked") and bool(getattr(self, key)) and not value

    def with_setting(self, key: str, value: Any) -> PackUse:
        """What results if a lower layer sets a key. Lists add up."""
        if key in ("protect", "allow_hosts"):
            value = tuple(dict.fromkeys((*getattr(self, key), *value)))
        if key in LIMITS:
            return replace(self, limits=replace(self.limits, **{key: None if value is False else value}))
        return replace(self, **{key: value})


class PackHook(NamedTuple):
    """The hook of a pack in a layer. None: it would say what one of a higher layer says."""

    layer: ConfigFile
    pack: str
    hook: ConfiguredHook | None


class PackConflict(NamedTuple):
    """What is wrong with a layer because of those above it."""

    layer: ConfigFile
    keys: Keys
    problem: str


def own_hooks(document: Document, layer: Layer, section: PackSection) -> Iterator[ConfiguredHook]:
    """The hooks of the packs of one file, as if there were no other."""
    for name, pack in section.packs.items():
        use = PackUse(enforce=section.enforce, exemptions=tuple(one for one, _ in section.exemptions))
        for key, setting in section.settings(name).items():
            use = use.with_setting(key, setting.value)
        yield _hook(document, layer, section, pack, use)


class PackLayers:
    """The packs of all layers, the highest layer first."""

    def __init__(self, layers: Sequence[ConfigFile], disabled: Collection[int] = ()) -> None:
        self._layers = [layer for layer in layers if not layer.document.mistakes]
        self._disabled = disabled  # hooks, by their ids
        self.hooks: list[PackHook] = []
        self.conflicts: dict[tuple[int, Keys], PackConflict] = {}
        for name in dict.fromkeys(name for layer in self._layers for name in layer.packs.packs):
            self._add(name)
        if len(self._layers) == len(layers):
            self._check_tables()
        self._check_exemptions()

    def _add(self, name: str) -> None:
        """The hooks of one pack."""
        use: PackUse | None = None
        found: list[tuple[ConfigFile, PackUse]] = []
        for layer in self._layers:
            is_used = self._is_used(layer, name)
            if use is None and not is_used:
                continue
            above = use
            use = self._combined(layer, name, above)
            if layer.layer == "user":  # the system's hook, too, does what its user has set
                found = [(one, use) for one, _ in found]
            if is_used:
                found.append((layer, use))
        before: list[tuple[PackOptions, bool]] = []
        for layer, used in found:
            same = (used.options, used.enforce)
            hook = None
            if same not in before or self._sees_more_tools(layer):
                hook = _hook(layer.document, layer.layer, layer.packs, layer.packs.packs[name], used)
                before.append(same)
            self.hooks.append(PackHook(layer, name, hook))

    def _sees_more_tools(self, layer: ConfigFile) -> bool:
        """Do hooks of this layer see tools as a file describes them which hooks of a higher layer do not see?"""
        return any(one.tools for one in self._layers[: self._layers.index(layer) + 1])

    def _is_used(self, layer: ConfigFile, name: str) -> bool:
        return any(name == one.entry["pack"] for one in layer.pack_hooks if id(one.hook) not in self._disabled)

    def _combined(self, layer: ConfigFile, name: str, above: PackUse | None) -> PackUse:
        """What a layer makes of what those above it say."""
        section = layer.packs
        use = above or PackUse(enforce=section.enforce, exemptions=self._exemptions("system", "user"))
        if above is not None and layer.layer == "user" and above.locked:
            use = replace(use, exemptions=self._exemptions("system"))
        may_loosen = above is None or (layer.layer == "user" and not above.locked)
        for key, setting in section.settings(name).items():
            is_own = setting.keys[1] != RECOMMENDED
            if not may_loosen and use.loosens(key, setting.value):
                if is_own or key not in use.own or layer.layer == "user":
                    self._refuse(layer, name, key, setting, use)
                continue
            if key != "locked" or layer.layer == "system":
                use = use.with_setting(key, setting.value)
            if is_own:
                use = replace(use, own=use.own | {key})
        if layer.layer == "system" and use.locked:
            use = replace(use, exemptions=self._exemptions("system"))
        return use

    def _exemptions(self, *layers: Layer) -> tuple[Exemption, ...]:
        return tuple(one for layer in self._layers if layer.layer in layers for one, _ in layer.packs.exemptions)

    # --- what is wrong --------------------------------------------------------------------------------

    def _refuse(self, layer: ConfigFile, name: str, key: str, setting: PackSetting, use: PackUse) -> None:
        now = getattr(use.limits if key in LIMITS else use, key)
        kept = f"{key} = {encode(now).decode()}" if now not in (None, ()) else f"no {key} of its own"
        by = "the system's file locks it" if layer.layer == "user" else "a project's file may only tighten a pack"
        self._conflict(layer, setting.keys, f"this would loosen the pack {name!r}, which has {kept} above; {by}")

    def _check_tables(self) -> None:
        """A table of a pack that is not used, here or above."""
        used: set[str] = set()
        for layer in self._layers:
            used |= layer.packs.packs.keys()
            for name in layer.packs.tables:
                if name not in used and (name != RECOMMENDED or not used):
                    known = name in (RECOMMENDED, *NAMES)
                    add = f'; add it: packs = ["{name}"]' if known else nearest(name, [RECOMMENDED, *NAMES])
                    self._conflict(layer, ("pack", name), f"the pack {name!r} is not used{add}")

    def _check_exemptions(self) -> None:
        """Exemptions of the user's file from rules of a locked pack."""
        locked = {
            name for layer, name, hook in self.hooks if hook is not None and hook.locked and layer.layer == "system"
        }
        for layer in self._layers:
            for exemption, keys in layer.packs.exemptions if layer.layer == "user" else ():
                if (name := exemption.rule.partition("/")[0]) in locked:
                    problem = f"the system's file locks the pack {name!r}; only that file can exempt from its rules"
                    self._conflict(layer, (*keys, "rule"), problem)

    def _conflict(self, layer: ConfigFile, keys: Keys, problem: str) -> None:
        self.conflicts.setdefault((id(layer), keys), PackConflict(layer, keys, problem))


def _hook(document: Document, layer: Layer, section: PackSection, pack: Pack, use: PackUse) -> ConfiguredHook:
    exemptions = tuple(one for one in use.exemptions if one.rule in pack.rules)
    options = replace(use.options, exemptions=exemptions)
    values = {key: setting.value for key, setting in section.settings(pack.name).items()}
    locked = use.locked or bool(values.get("locked"))
    hook = pack_hook(pack, options, layer, enforce=use.enforce, locked=locked)
    events = events_of(pack)
    entry = {
        "name": hook.name, "on": events[0] if len(events) == 1 else list(events), "pack": pack.name,
        "match": {"kind": list(kinds_of(pack))}, "level": use.level,
        **({"verdict": use.verdict} if use.verdict is not None else {}),
    }  # fmt: skip
    line = document.line_of(section.places[pack.name])
    return ConfiguredHook(hook, "pack", entry, document.path, line, hook.name, locked)
