"""Old import paths: each still works for one release, and warns with the new path.

The finder stands last on `sys.meta_path`, so an import that succeeds never reaches it. Once a package was imported by
its old path, the finder stands first: Python would load a second copy of each of its modules.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

MOVED = {
    "fairlead.backlog": "fairlead.engine.detached",
    "fairlead.commandline": "fairlead.shell",
    "fairlead.deadlines": "fairlead.engine.deadlines",
    "fairlead.doctor": "fairlead.hosts.clis.doctor",
    "fairlead.guard": "fairlead.packs.guard",
    "fairlead.hosts.answering": "fairlead.hosts.clis.handler",
    "fairlead.hosts.demo": "fairlead.hosts.loop.demo",
    "fairlead.hosts.effect": "fairlead.hosts.clis.effect",
    "fairlead.hosts.framework": "fairlead.hosts.frameworks.framework",
    "fairlead.hosts.host": "fairlead.hosts.clis.mapping",
    "fairlead.hosts.installing": "fairlead.hosts.clis.install",
    "fairlead.hosts.launcher": "fairlead.hosts.clis.launcher",
    "fairlead.hosts.model": "fairlead.hosts.loop.model",
    "fairlead.hosts.tool_call": "fairlead.hosts.frameworks.tool_call",
    "fairlead.hosts.tools": "fairlead.hosts.loop.tools",
    "fairlead.hosts.trace": "fairlead.hosts.loop.trace",
    "fairlead.hosts.turn": "fairlead.hosts.frameworks.turn",
    "fairlead.hosts.work": "fairlead.hosts.frameworks.flow",
    "fairlead.journal.endings": "fairlead.journal.shutdown",
    "fairlead.logs": "fairlead.redaction.logs",
    "fairlead.places": "fairlead.paths",
    "fairlead.probe": "fairlead.hosts.clis.probe",
    "fairlead.record": "fairlead.wire.decisions",
    "fairlead.run": "fairlead.engine.run",
    "fairlead.runners.surroundings": "fairlead.runners.environment",
    "fairlead.server.pending": "fairlead.server.approvals",
    "fairlead.showing": "fairlead.redaction.masking",
    "fairlead.spans": "fairlead.telemetry.attributes",
    "fairlead.switches": "fairlead.enforcement",
    "fairlead.table": "fairlead.engine.chain",
    "fairlead.threads": "fairlead.engine.threads",
    "fairlead.transcripts": "fairlead.hosts.clis.transcripts",
    "fairlead.upgrade": "fairlead.hosts.clis.install.upgrade",
}
"""Import paths of earlier versions, and where each module is now."""


def new_path(name: str) -> str | None:
    """Where a module is now that had this path, by itself or in a package; None if it has not moved."""
    package, _, module = name.rpartition(".")
    return MOVED.get(name) or (f"{MOVED[package]}.{module}" if package in MOVED else None)


class MovedFinder:
    """Finds a module under its old path and gives the module at the new one."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if new_path(name) is None:
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, _Alias())  # type: ignore[arg-type]  # its two methods suffice


class _Alias:
    """Puts the module at the new path into `sys.modules` under the old one, too."""

    def create_module(self, spec: ModuleSpec) -> None:
        """The module exists already: Python makes an empty one, which `exec_module` replaces."""

    def exec_module(self, module: ModuleType) -> None:
        from importlib import import_module
        from warnings import warn

        old, new = module.__name__, new_path(module.__name__)
        assert new is not None  # noqa: S101  # or the finder had not found it
        warn(f"{old} is now {new}; the old path goes away in the next release", DeprecationWarning, stacklevel=2)
        sys.modules[old] = found = import_module(new)
        if hasattr(found, "__path__"):
            sys.meta_path.remove(MovedFinder)
            sys.meta_path.insert(0, MovedFinder)


def install() -> None:
    """Make the old import paths work."""
    if MovedFinder not in sys.meta_path:
        sys.meta_path.append(MovedFinder)
