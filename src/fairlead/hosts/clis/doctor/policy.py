"""Checks on fairlead's state folder, its journal, and the configuration of a folder."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from ....config.layers import Config, unavailable_hooks
from ....enforcement import read_setting
from ....errors import FairleadError
from ....paths import BadPath, check_private, refuse_remote, state_folder
from .program import why
from .report import Report

LITTLE = 16 << 20
"""Free bytes below which a disk counts as nearly full."""


def look_at_state(report: Report) -> None:
    """Check that fairlead can write its state folder."""
    folder = state_folder()
    if not os.path.lexists(folder):
        return
    try:
        check_private(folder)
    except BadPath as error:
        report.add("problem", str(error), f"chmod 700 {folder}")
        return
    _look_at_disk(folder, "fairlead's state", report)


def _look_at_disk(folder: Path, what: str, report: Report) -> None:
    """Write a temporary file, as the daemon would."""
    try:
        with NamedTemporaryFile(dir=folder, prefix=".doctor.") as file:
            file.write(b"\0" * 65536)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        report.add("problem", f"{folder} ({what}) cannot be written: {why(error)}", "make room, or fix the folder")
        return
    with suppress(OSError):
        if (free := shutil.disk_usage(folder).free) < LITTLE:
            report.add("warning", f"{folder} ({what}): {free >> 20} MiB are free", "make room")


def look_at_journal_file(journal: Path, config: Config, report: Report) -> None:
    """Check that the journal can be written and read. With `on_failure = "closed"`, it is a problem if not."""
    from ....journal.errors import NoJournal
    from ....journal.reading import Filter, Reader
    from ....journal.schema import refuse_changed
    from ....journal.writer import default_on_failure

    options = config.journal
    if not options.get("enabled", True):
        return
    closed = (options.get("on_failure") or default_on_failure(options.get("durability", "normal"))) == "closed"
    folder = next((place for place in journal.parents if place.is_dir()), journal.parent)
    try:
        refuse_remote(folder)
    except BadPath as error:
        report.add("problem" if closed else "warning", str(error))
        return
    if folder != state_folder() and not folder.is_relative_to(state_folder()):
        _look_at_disk(folder, "the journal", report)
    if not journal.exists():
        return
    try:
        with Reader(journal) as reader:
            refuse_changed(reader.db, journal, reader.version)
            next(iter(reader.records(Filter(), limit=1)), None)
    except NoJournal:
        return  # an empty file, which the first record makes a journal
    except FairleadError as error:
        todo = f"fairlead verify; then move {journal} away, with the files beside it that begin with its name"
        report.add("problem" if closed else "warning", str(error), todo)


def look_at_policy(config: Config, report: Report) -> None:
    """Check the configuration: its mistakes, its hooks, its trust, and whether hooks are enforced."""
    if config.mistakes:
        first = config.mistakes[0]
        if config.fatal:
            report.add("problem", f"mistakes in {first.file}: every step that guards is refused", "fairlead check")
        else:  # the trusted version of the file is in force
            report.add("warning", f"mistakes in {first.file}", "fairlead check")
    elif not config.hooks:
        report.add("note", "no hook is configured, so nothing will be denied", "fairlead init")
    else:
        report.add("ok", f"{len(config.hooks)} hooks are configured here")
    guards = (c for c in config.hooks if c.hook.on_failure != "open" and c.hook.phase != "observe")
    refusing = unavailable_hooks(guards)
    for mistake in config.unavailable:
        what = f"{mistake.file}:{mistake.line}: {mistake.problem}; until then its on_failure decides"
        report.add("problem" if mistake in refusing else "warning", what, "fairlead check")
    for mistake in config.approvals.unavailable:
        report.add("warning", f"{mistake.file}:{mistake.line}: {mistake.problem}", "fix `notify` in [approvals]")
    for line in config.untrusted:
        report.add("warning", line, "fairlead trust")
    if not read_setting().enforced:
        report.add("warning", "fairlead only watches now, and denies nothing", "fairlead enforce")
