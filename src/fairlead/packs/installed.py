"""Packs of other packages, which they name in the entry points `fairlead.packs`.

Loading a pack runs code of its package. So this is called only for a name that the system's or the user's file, or a
program, names. Installing a package loads nothing.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from ..errors import FairleadError, UnknownName
from . import NAMES, RECOMMENDED, pack
from .rules import Pack

GROUP = "fairlead.packs"


def installed_names() -> dict[str, str]:
    """The packs that installed packages name, each with its package. Nothing of them is loaded."""
    found = sorted(entry_points(group=GROUP), key=lambda one: one.name)
    return {one.name: _package(one) for one in found if one.name not in (RECOMMENDED, *NAMES)}


def named(*names: str | Pack) -> list[Pack]:
    """The packs of these names, and those that are packs already. `recommended` is all that ship with fairlead."""
    found: dict[str, Pack] = {}
    for name in names:
        for one in NAMES if name == RECOMMENDED else (name,):
            loaded = one if isinstance(one, Pack) else installed(one)
            found.setdefault(loaded.name, loaded)
    return list(found.values())


def installed(name: str) -> Pack:
    """The pack of a name: one that ships with fairlead or, if there is none, one that a package ships."""
    if name in NAMES:
        return pack(name)
    found = tuple(entry_points(group=GROUP, name=name))
    packages = sorted({_package(one) for one in found})
    if not found:
        raise UnknownName("pack", name, [RECOMMENDED, *NAMES, *installed_names()])
    if len(packages) > 1:
        raise FairleadError(f"several packages ship a pack {name!r}: {', '.join(packages)}; uninstall all but one")
    try:
        loaded = found[0].load()
    except Exception as error:  # code of the package, which can raise anything
        problem = f"{type(error).__name__}: {error}"
        raise FairleadError(f"the pack {name!r} of {packages[0]} cannot be loaded: {problem}") from error
    if not isinstance(loaded, Pack) or loaded.name != name:
        raise FairleadError(f"{found[0].value} of {packages[0]} is no Pack with the name {name!r}")
    return loaded


def _package(found: EntryPoint) -> str:
    return f"{found.dist.name} {found.dist.version}" if found.dist is not None else found.value


__all__ = ["GROUP", "installed", "installed_names", "named"]
