"""`fairlead events`: the lifecycle."""

from __future__ import annotations

import argparse
from typing import Any

from ..display import columns, paint, print_json
from .loading import add_json


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "events",
        help="list the events and what a hook may do at each",
        description="List the events of the lifecycle: what each carries, and what a hook may do there.",
    )
    parser.add_argument("event", nargs="?", help="just this one, in full")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..lifecycle import EVENTS, event_named

    names = [event_named(options.event).name] if options.event else list(EVENTS)
    found = {name: _describe(name) for name in names}
    if options.json:
        print_json(found[options.event] if options.event else found)
    elif options.event:
        event = found[options.event]
        print(f"{paint(options.event, 'bold')}: {event['about']}\n")
        rows = [[key, _words(event[key])] for key in ("fields", "changes", "controls", "veto", "header")]
        print(columns(rows, "  "))
    else:
        rows = [[name, _words(e["changes"]), _words(e["controls"]), e["veto"] or "-"] for name, e in found.items()]
        print(columns([["EVENT", "MAY CHANGE", "CONTROLS", "VETO"], *rows]))
    return 0


def _describe(name: str) -> dict[str, Any]:
    from ..lifecycle import CONTROLS, EVENTS, HEADER

    event = EVENTS[name]
    return {
        "about": event.step.__doc__,
        "fields": list(event.fields),
        "changes": list(event.changes),
        "controls": [control for control in CONTROLS if control in event.controls],
        "veto": event.veto,
        "context": event.context,
        "header": list(HEADER),
    }


def _words(value: Any) -> str:
    return (" ".join(value) if isinstance(value, list) else value) or "-"
