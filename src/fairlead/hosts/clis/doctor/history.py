"""Checks on the journal: controls that a CLI could not carry out, and tools of unknown kind."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ....config.layers import Config
from ....errors import FairleadError
from ..effect import RULES
from ..mapping import NAMES, UNKNOWN_PROGRAM, Host, host_named, host_tools
from .entry_points import EntryPoints, report_entry_points
from .report import Report

LOOK_BACK = 5000
"""How many decisions the doctor reads."""


def look_at_journal(host: Host, config: Config, journal: Path, report: Report) -> None:
    """Report what this CLI could not carry out, its tools of unknown kind, and which of its programs ran."""
    from ....journal.reading import Filter, Reader
    from ..transcripts.decisions import IMPORTED

    if not journal.exists():
        return
    degraded, unknown, last = Counter[tuple[str, str]](), Counter[str](), None
    seen = EntryPoints()
    try:
        with Reader(journal) as reader:
            for record in reader.records(Filter(host=host.name, notes=False), limit=LOOK_BACK):
                step = record.body.get("step") or {}
                last = last if record.id.startswith(IMPORTED) else record.at
                degraded.update((part, str(step.get("event"))) for part in _unsupported(record.body))
                unknown.update(_unknown_tool(step))
                seen.add(step, record.at)
    except FairleadError as error:
        report.add("warning", str(error), "fairlead verify")
    if last is not None:
        report.last_seen = datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds")
    report_entry_points(host, seen, report)
    report.degraded = {f"{part} at {event}": times for (part, event), times in degraded.items()}
    for (part, event), times in degraded.most_common(5):
        rule = RULES.get(part, "It is not carried out.")
        report.add("warning", f"hooks decided {part} at {event} {_times(times)}, which it cannot carry out. {rule}")
    _report_unknown(config, host.name, unknown, report)


def hosts_of(journal: Path) -> frozenset[str]:
    """The programs whose steps the journal's newest records have."""
    from ....journal.reading import Reader

    if not journal.exists():
        return frozenset()
    newest = "SELECT host FROM records WHERE kind = 'decision' ORDER BY seq DESC LIMIT ?"
    with suppress(FairleadError, sqlite3.Error), Reader(journal) as reader:  # another check reports a damaged journal
        rows = reader.db.execute(f"SELECT DISTINCT host FROM ({newest})", [LOOK_BACK])  # noqa: S608 (a constant)
        return frozenset(str(host) for (host,) in rows)
    return frozenset()


def look_for_unknown_programs(journal: Path, report: Report) -> None:
    """Report programs that run fairlead's entries and that fairlead does not know, by entry and form."""
    from ....journal.reading import Filter, Reader

    if not journal.exists():
        return
    found = Counter[tuple[str, str]]()
    with suppress(FairleadError), Reader(journal) as reader:  # another check reports a damaged journal
        for record in reader.records(Filter(event="before_tool", notes=False), limit=LOOK_BACK):
            step = record.body.get("step") or {}
            if (entry := (step.get("metadata") or {}).get(UNKNOWN_PROGRAM)) in NAMES:
                found[entry, str(step.get("host"))] += 1
    for (entry, form), times in found.most_common():
        titles = f"{host_named(entry).title}, and sent the JSON of {host_named(form).title}"
        what = f"a program that fairlead does not know ran the entries of {titles}: {_times(times)}"
        report.add("warning", f"{what}. They were judged in that form", "see whether a refusal holds there")


def look_at_other_tools(config: Config, journal: Path, report: Report) -> None:
    """Report tools of unknown kind in programs that are no CLI: a loop or a framework."""
    from ....journal.reading import Filter, Reader

    if not journal.exists():
        return
    unknown, clis = Counter[str](), frozenset(NAMES)
    with suppress(FairleadError), Reader(journal) as reader:  # another check reports a damaged journal
        for record in reader.records(Filter(event="before_tool", notes=False), limit=LOOK_BACK):
            step = record.body.get("step") or {}
            if step.get("host") not in clis:
                unknown.update(_unknown_tool(step))
    _report_unknown(config, None, unknown, report)


def _unknown_tool(step: dict[str, Any]) -> list[str]:
    """The tool of a call of unknown kind."""
    unknown = step.get("event") == "before_tool" and step.get("kind") == "unknown"
    return [str(step.get("tool"))] if unknown else []


def _report_unknown(config: Config, host: str | None, unknown: Counter[str], report: Report) -> None:
    report.unknown_tools = _still_unknown(host, config, unknown)
    if report.unknown_tools:
        names = ", ".join(list(report.unknown_tools)[:8])
        report.add("warning", f"tools of unknown kind: {names}", "say what they do in [[tool]] of a fairlead.toml")


def _unsupported(body: dict[str, Any]) -> Iterator[str]:
    for what in body.get("said") or ():
        if isinstance(what, dict) and "unsupported" in what:
            yield str(what["unsupported"])


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _still_unknown(host: str | None, config: Config, unknown: Counter[str]) -> dict[str, int]:
    """The tools that the configuration still does not describe, the most frequent first."""
    tools = host_tools()
    for layer in config.layers:
        if layer.trusted:
            tools.extend(layer.tools)
    return {name: n for name, n in unknown.most_common() if tools.spec(name, {}, host).kind == "unknown"}
