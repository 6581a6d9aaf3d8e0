"""Opens the hooks of a folder, the same way for the daemon, the launcher and the command line.

What decides in production is then what `fairlead test` shows: the same files, tool tables and built-in hooks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...approvals import ApproveFn, Approver
from ...decision import Decision
from ...redaction.redactor import Scope
from ...registry import Hooks
from ...runners.environment import PASSED
from .mapping import host_tools


def open_hooks(
    folder: str | os.PathLike[str],
    apply: Callable[[Hooks], object],
    *,
    variables: Mapping[str, str] | None = None,
    journal: Callable[[Decision[Any]], None] | None = None,
    approver: Approver | ApproveFn | None = None,
    approval_timeout: float | None = 300.0,
    record: bool = True,
) -> Hooks:
    """Open the hooks of a folder. `apply` puts its configuration in force, as `Config.apply` does.

    `variables` are those of the caller that its hooks see, where the caller is another process.
    """
    hooks = Hooks(journal=journal, record=record, approver=approver, approval_timeout=approval_timeout)
    hooks.tools.extend(host_tools())
    hooks.root = os.path.realpath(folder)
    hooks.variables = None if variables is None else dict(variables)
    apply(hooks)
    return hooks


def caller_scope(environ: Mapping[str, str], values: Iterable[str] = ()) -> Scope:
    """Redact also the variables of a caller, but those that every hook gets; and the values its files list."""
    return Scope(values=values, environ={name: value for name, value in environ.items() if name not in PASSED})
