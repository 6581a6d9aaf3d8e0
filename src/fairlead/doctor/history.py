"""What the journal has of a CLI, and of other programs: what could not be carried out, and tools of unknown kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..config.layers import Config
from ..errors import FairleadError
from ..hosts.effect import RULES
from ..hosts.host import ALL, EXPERIMENTAL, Host, host_tools
from .report import Report

LOOK_BACK = 5000
"""Decisions of a CLI that are looked at for what it could not carry out."""


def look_at_journal(host: Host, config: Config, journal: Path, report: Report) -> None:
    """What the journal has of this CLI: what it could not carry out, and tools that nobody knows."""
    from ..journal.reading import Filter, Reader
    from ..transcripts.decisions import IMPORTED

    if not journal.exists():
        return
    degraded, unknown, last = Counter[tuple[str, str]](), Counter[str](), None
    try:
        with Reader(journal) as reader:
            for record in reader.records(Filter(host=host.name, notes=False), limit=LOOK_BACK):
                step = record.body.get("step") or {}
                last = last if record.id.startswith(IMPORTED) else record.at
                degraded.update((part, str(step.get("event"))) for part in _unsupported(record.body))
                unknown.update(_unknown_tool(step))
    except FairleadError as error:
        report.add("warning", str(error), "fairlead verify")
    if last is not None:
        report.last_seen = datetime.fromtimestamp(last, UTC).isoformat(timespec="seconds")
    report.degraded = {f"{part} at {event}": times for (part, event), times in degraded.items()}
    for (part, event), times in degraded.most_common(5):
        rule = RULES.get(part, "It is not carried out.")
        report.add("warning", f"it was asked {_times(times)} for {part} at {event}, which it cannot do. {rule}")
    _tell_unknown(config, host.name, unknown, report)


def look_at_other_tools(config: Config, journal: Path, report: Report) -> None:
    """Tools of unknown kind in what is no CLI: a loop of the user's own, or a framework."""
    from ..journal.reading import Filter, Reader

    if not journal.exists():
        return
    unknown, clis = Counter[str](), {*ALL, *EXPERIMENTAL}
    with suppress(FairleadError), Reader(journal) as reader:  # what is wrong with it was said already
        for record in reader.records(Filter(event="before_tool", notes=False), limit=LOOK_BACK):
            step = record.body.get("step") or {}
            if step.get("host") not in clis:
                unknown.update(_unknown_tool(step))
    _tell_unknown(config, None, unknown, report)


def _unknown_tool(step: dict[str, Any]) -> list[str]:
    """The tool of a call whose kind neither a table nor its arguments told."""
    unknown = step.get("event") == "before_tool" and step.get("kind") == "unknown"
    return [str(step.get("tool"))] if unknown else []


def _tell_unknown(config: Config, host: str | None, unknown: Counter[str], report: Report) -> None:
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
    """Without those that somebody has described since. The most frequent first."""
    tools = host_tools()
    for layer in config.layers:
        if layer.trusted:
            tools.extend(layer.tools)
    return {name: n for name, n in unknown.most_common() if tools.spec(name, {}, host).kind == "unknown"}
