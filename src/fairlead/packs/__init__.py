"""Packs: hooks that ship with fairlead.

`rules` says what a pack is made of, and each pack has a module of its own. `lines` is a command line as rules see it,
`flows` says where its data goes, and `judging` makes a verdict of what rules find. `guard` protects fairlead itself.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from ..errors import UnknownName
from .rules import Finding, Level, Pack, PackRule

_MODULES = {
    "files": ["files", "overwriting", "windows"],
    "git": ["git"],
    "system": ["system", "disks", "windows"],
    "cloud": ["cloud", "windows"],
    "containers": ["containers"],
    "databases": ["databases"],
    "secrets": ["secrets", "sending"],
    "remote-code": ["remote_code", "windows"],
    "supply-chain": ["supply_chain"],
    "persistence": ["persistence", "windows"],
    "apis": ["apis"],
    "budgets": ["budgets"],
    "edits": ["edits"],
}
"""The modules of each pack. The first one has it, the others add rules."""
NAMES = tuple(_MODULES)
"""The packs that ship with fairlead."""
RECOMMENDED = "recommended"
"""All packs that ship with fairlead."""


@cache
def pack(name: str) -> Pack:
    """A pack, by its name."""
    if name not in _MODULES:
        raise UnknownName("pack", name, [RECOMMENDED, *NAMES])
    first, *_ = [import_module(f"{__name__}.{module}") for module in _MODULES[name]]
    found: Pack = getattr(first, _MODULES[name][0])
    return found


def packs(*names: str) -> list[Pack]:
    """The packs of these names. `recommended` stands for all that ship with fairlead."""
    wanted = [one for name in names for one in (NAMES if name == RECOMMENDED else (name,))]
    return [pack(name) for name in dict.fromkeys(wanted)]


__all__ = ["NAMES", "RECOMMENDED", "Finding", "Level", "Pack", "PackRule", "pack", "packs"]
