"""Checks on the journal: controls that a CLI could not carry out, and tools of unknown kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ....config.layers import Config
from ....errors import FairleadError
from ..effect import RULES
from ..mapping import NAMES, Host, host_tools
from .report import Report

LOOK_BACK = 5000
"""How many decisions the doctor reads."""


def look_at_journal(host: Host, config: Config, journal: Path, report: Report) -> None:
    """Report what this CLI could not carry out, its tools of unknown kind, and which of its programs ran."""
    from ....journal.reading import Filter, Reader
    from ..transcripts.decisions import IMPORTED

    if not journal.exists():
        return
    degraded, unknown, entry_points, last = Counter[tuple[str, str]](), Counter[str](), Counter[str](), None
    try:
        with Reader(journal) as reader:
            for record in reader.records(Filter(host=host.name, notes=False), limit=LOOK_BACK):
                step = record.body.get("step") or {}
                last = last if record.id.startswith(IMPORTED) else record.at
                degraded.update((part, str(step.get("event"))) for part in _unsupported(record.body))
                unknown.update(_unknown_tool(step))
                if step.get("event") == "before_tool" and (named := (step.get("metadata") or {}).get("entry_point")):
                    entry_points[str(named)] += 1
    except FairleadError as error:
        report.add("warning", str(error), "fairlead verify")
    if last is not None:
        report.last_seen = datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds")
    report.entry_points = dict(entry_points.most_common())
    if entry_points:
        counts = ", ".join(f"{name} {n}" for name, n in entry_points.most_common(8))
        report.add("note", f"calls by entry point: {counts}")
    report.degraded = {f"{part} at {event}": times for (part, event), times in degraded.items()}
    for (part, event), times in degraded.most_common(5):
        rule = RULES.get(part, "It is not carried out.")
        report.add("warning", f"hooks decided {part} at {event} {_times(times)}, which it cannot carry out. {rule}")
    _report_unknown(config, host.name, unknown, report)


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
