"""Packages that only some hooks and commands need, and the command that installs them for this interpreter."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from .errors import HookUnavailable


class MissingPackage(HookUnavailable):
    """A package that a hook needs is not installed."""


def require(module: str, extra: str, what: str) -> None:
    """Raise `MissingPackage`, with the command that helps, unless a module of an extra can be imported."""
    if find_spec(module) is None:
        raise MissingPackage(f"{what} need packages that are not installed; run: {install_command(extra)}", module)


@contextmanager
def installed(module: str, extra: str) -> Iterator[None]:
    """Around the imports of a framework's adapter: if it is missing, the error has the command that helps."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing != module and not module.startswith(f"{missing}."):
            raise
        raise ModuleNotFoundError(
            f"fairlead.hosts.{extra.replace('-', '_')} needs a package that is not installed; "
            f"run: {install_command(extra)}",
            name=missing,
        ) from error


def install_command(extra: str) -> str:
    """The command that installs the packages of an extra, where this interpreter finds them.

    It names the packages themselves. Where no metadata lists them, it names the checkout, and never fairlead in an
    index of packages: the project of that name there is another one.
    """
    installer = [sys.executable, "-m", "pip", "install"]
    if find_spec("pip") is None:
        installer = ["uv", "pip", "install", "--python", sys.executable]
    return shlex.join([*installer, *(sorted(set(_packages(extra))) or [f"{_checkout()}[{extra}]"])])


def _checkout() -> str:
    """The folder that fairlead is run from. Elsewhere, the command is one for a checkout."""
    folder = Path(__file__).resolve().parents[2]
    return str(folder) if (folder / "pyproject.toml").is_file() else "."


_REQUIREMENT = re.compile(r"(?P<package>[^;]+?)\s*;\s*extra\s*==\s*['\"](?P<extra>[^'\"]+)['\"]")
_OURS = re.compile(r"fairlead\[(?P<extras>[^\]]+)\]")


def _packages(extra: str) -> Iterator[str]:
    """What fairlead's own metadata lists for an extra, those of the extras in it included."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        listed = requires("fairlead") or ()
    except PackageNotFoundError:
        return
    for found in filter(None, map(_REQUIREMENT.fullmatch, listed)):
        if found["extra"] != extra:
            continue
        ours = _OURS.fullmatch(found["package"])
        if ours is None:
            yield found["package"]
        for inner in ours["extras"].split(",") if ours is not None else ():
            yield from _packages(inner)
