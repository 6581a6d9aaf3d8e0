"""Checks on the programs of one CLI: its terminal program, editors' extensions, desktop apps, SDKs."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

from ....errors import FairleadError
from ..mapping import ENTRY_POINT, NO_PROJECT, Host
from .report import Report

TRANSCRIPTS = 50
"""How many of a CLI's newest transcripts the doctor opens, to see which of its programs ran."""


class EntryPoints:
    """Which programs of a CLI fired events, as its steps in the journal say."""

    def __init__(self) -> None:
        self.calls = Counter[str]()
        """Tool calls by entry point."""
        self.no_project = Counter[str]()
        """Those that named no project's folder."""
        self.fired: set[str] = set()
        """Entry points at which any hook fired."""
        self.since: float | None = None

    def add(self, step: dict[str, Any], at: float) -> None:
        metadata = step.get("metadata") or {}
        self.since = at if self.since is None else min(at, self.since)
        if not metadata.get(ENTRY_POINT) or metadata.get("imported"):
            return
        name = str(metadata[ENTRY_POINT])
        self.fired.add(name)
        if step.get("event") == "before_tool":
            self.calls[name] += 1
            self.no_project[name] += NO_PROJECT in metadata


def report_entry_points(host: Host, seen: EntryPoints, report: Report) -> None:
    """Report which programs of a CLI ran calls, and where hooks may not have fired."""
    report.entry_points = dict(seen.calls.most_common())
    if seen.calls:
        counts = ", ".join(f"{name} {n}" for name, n in seen.calls.most_common(8))
        report.add("note", f"calls by entry point: {counts}")
    for name, times in (+seen.no_project).most_common():
        calls = "1 call" if times == 1 else f"{times} calls"
        what = f"{name} named no project's folder at {calls}: the policy of the working folder applied"
        report.add("warning", what, "put what must hold everywhere into your own fairlead.toml or the machine's")
    search = f"fairlead coverage --cli {host.name}"
    for name in sorted(_ran(host, seen.since) - seen.fired):
        report.add("warning", f"{name} has transcripts, and no hook fired there{_reported(host, name)}", search)
    for name in sorted(seen.fired & host.reported.keys()):
        report.add("note", f"hooks of {name} are reported not to fire {host.reported[name]}: {search} finds the calls")


def _reported(host: Host, name: str) -> str:
    return f", as reported {host.reported[name]}" if name in host.reported else ""


def _ran(host: Host, since: float | None) -> set[str]:
    """The entry points that a CLI's newest transcripts name, as far as they are newer than the journal."""
    from ..transcripts.transcript import HOSTS, TranscriptSource, changed, transcripts_of

    if host.entry_point is None or host.name not in HOSTS or since is None:
        return set()
    transcripts, found = transcripts_of(host.name), set[str]()
    files = [file for place in transcripts.places(Path.home()) for file in transcripts.files(place)]
    for file in sorted(files, key=changed)[-TRANSCRIPTS:]:
        if changed(file) >= since:
            with suppress(FairleadError):
                entry = next(iter(transcripts.read(TranscriptSource(file))), None)
                found |= {entry.entry_point} if entry is not None and entry.entry_point else set()
    return found
