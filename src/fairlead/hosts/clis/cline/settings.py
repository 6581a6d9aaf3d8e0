"""Where Cline looks for hooks: a folder that has a program for each event."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from ....errors import FairleadError
from ..install.settings import LAUNCHER_GONE, LAUNCHER_NOT_IN_HOME, Settings, settings_files
from ..install.targets import OwnFile, Placement, SettingsTarget, read_text
from ..launcher import NAME
from .mapping import HOST

_CANCEL = """printf 'HOOK_CONTROL\\t{"cancel": true, "errorMessage": "%s"}\\n' """


def _targets(placement: Placement) -> list[SettingsTarget]:
    """One program for each event."""
    return [
        OwnFile(placement.path / event, (event,), f"#!/bin/sh\n{command}\n", is_program=True)
        for event, command in placement.commands().items()
    ]


def _examine(root: Path, seen: set[Path]) -> Iterator[tuple[Literal["warning"], str, str]]:
    """Find other programs that can undo a deny: the input of the last program counts, even after a refusal."""
    for folder in settings_files(HOST, root):
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            with suppress(FairleadError):
                if file.stem.lower() == "pretooluse" and NAME not in (read_text(file) or ""):
                    what = f"{file} can undo a deny: if it gives an overrideInput, the call runs with that"
                    yield "warning", what, "make sure that it gives none"


SETTINGS = Settings(
    form="files",
    user="~/.cline/hooks",
    project=".cline/hooks",
    moved_by=("CLINE_DIR", "~/.cline"),
    targets=_targets,
    max_timeout=120.0,
    if_launcher_gone=f"{_CANCEL}'{LAUNCHER_GONE}'",
    if_no_user_launcher=f"{_CANCEL}'{LAUNCHER_NOT_IN_HOME}'",
    examine=_examine,
)
