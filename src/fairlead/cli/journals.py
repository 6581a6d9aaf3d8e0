"""What the commands about the journal share: which journal, which records, and one record in a line."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .display import escape, paint, short
from .loading import add_json

if TYPE_CHECKING:
    from ..config.layers import Config
    from ..journal.reading import Filter, Record

_COLOURS = {
    "deny": "red",
    "abort": "red",
    "stop": "red",
    "ask": "yellow",
    "skip": "yellow",
    "proceed": "green",
    "allow": "green",
}


def add_journal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--journal", metavar="FILE", type=Path, help="the journal (default: the configured one)")
    add_json(parser)


def add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--event", help="only this event")
    parser.add_argument("--tool", metavar="GLOB", help="only calls of such tools")
    parser.add_argument("--decision", metavar="CONTROL", help="only such decisions: deny, proceed, ...")
    parser.add_argument("--hook", metavar="NAME", help="only where this hook ran or decided")
    parser.add_argument("--session", metavar="ID", help="only this session")
    parser.add_argument("--host", help="only this host")
    parser.add_argument("--agent", metavar="NAME", help="only this agent")
    parser.add_argument("--since", metavar="WHEN", help="from then on: 2h, 30d, 2026-05-01, 2026-05-01T14:00")
    parser.add_argument("--until", metavar="WHEN", help="up to then")


def filter_of(options: argparse.Namespace) -> Filter:
    from ..amounts import moment
    from ..errors import FairleadError, UnknownName
    from ..glob import compile_glob
    from ..journal.reading import Filter
    from ..lifecycle import CONTROLS, event_named

    if options.event is not None:
        event_named(options.event)
    if options.decision is not None and options.decision not in CONTROLS:
        raise UnknownName("decision", options.decision, CONTROLS)
    if options.tool is not None:
        compile_glob(options.tool)
    try:
        since, until = (moment(text) if (text := getattr(options, end)) else None for end in ("since", "until"))
    except ValueError as error:
        raise FairleadError(str(error)) from None
    given = {key: getattr(options, key) for key in ("event", "tool", "decision", "hook", "session", "host", "agent")}
    return Filter(**given, since=since, until=until)


def settings() -> Config:
    """What the system's and the user's files say; a project's has no say here."""
    from ..config.layers import Sources, find, read

    found = find("/")
    return read(Sources(found.system, found.user))


def journal_of(options: argparse.Namespace) -> Path:
    """The journal that is meant."""
    from ..places import journal_file

    if options.journal is not None:
        return Path(options.journal).absolute()
    configured = settings().journal.get("path")
    return Path(configured) if configured else journal_file()


def line_of(record: Record) -> str:
    """One record in one line."""
    from datetime import datetime

    when = datetime.fromtimestamp(record.at).strftime("%m-%d %H:%M:%S")
    return f"{paint(when, 'dim')}  {escape(record.id):<16}  {_told(record)}"


def _told(record: Record) -> str:
    body = record.body
    if record.is_note:
        about = {k: v for k, v in body.items() if k not in ("v", "id", "at", "kind", "note", "redacted")}
        return paint(f"[{escape(str(body['note']))}] {short(about)}", "blue")
    step = body["step"]
    control = escape(str(body.get("control")))
    words = [f"{escape(str(step.get('event'))):<16}", paint(f"{control:<8}", _COLOURS.get(control, "bold"))]
    target = step.get("target") or {}
    aim = target.get("command") or " ".join(target.get("paths") or ()) or target.get("url") or ""
    words.append(escape(" ".join(str(w) for w in (step.get("tool"), short(aim, 60) if aim else None) if w)))
    winner = body.get("winner") or {}
    if winner.get("hook"):
        cause = "" if winner.get("cause") == "policy" else f", {escape(str(winner.get('cause')))}"
        words.append(paint(f"({escape(str(winner['hook']))}{cause})", "dim"))
    for said in body.get("said") or ():
        seen = said.get("monitored") or {}
        if (seen.get("verdict") or {}).get("control", "proceed") != "proceed":
            words.append(
                paint(f"(watched: {escape(str(seen['hook']))} would {escape(seen['verdict']['control'])})", "yellow")
            )
    if step.get("session_id"):
        words.append(paint(escape(str(step["session_id"])), "dim"))
    return "  ".join(word for word in words if word)


def json_of(record: Record) -> dict[str, Any]:
    return {"seq": record.seq, "digest": record.digest, **record.body}
