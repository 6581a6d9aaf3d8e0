"""`fairlead show`: one decision in full."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from ..display import columns, escape, paint, print_json, short, styled
from .journals import add_journals, json_of, open_journals

if TYPE_CHECKING:
    from ..journal.reading import Reader, Record

_AROUND = ("root", "user", "machine", "enforcement", "parent", "can", "lenient", "variables")
_HEADER = (
    "session_id",
    "root_session_id",
    "turn_id",
    "request_id",
    "host",
    "cwd",
    "user_id",
    "channel",
    "thread_id",
    "sequence",
)


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "show",
        help="show one decision in full",
        description="Show one decision in full: the step, each hook that ran, its answer, and what changed.",
    )
    parser.add_argument("id", help="a record's id, or its number; see `fairlead log`")
    add_journals(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..errors import FairleadError

    with ExitStack() as held:
        readers = open_journals(options, held)
        found = [(reader, record) for reader in readers for record in _found(reader, options.id, len(readers) > 1)]
        if not found:
            raise FairleadError(f"none of these journals has a record {options.id!r}; `fairlead log` lists them")
        if len(found) > 1:
            places = ", ".join(str(reader.path) for reader, _ in found)
            raise FairleadError(f"several journals have a record {options.id!r}: {places}; name one with --journal")
        ((reader, record),) = found
    if options.json:
        print_json(json_of(record, reader.path if len(readers) > 1 else None))
    elif not record.is_whole:
        print(columns((key, short(value, 200)) for key, value in record.body.items()))
    else:
        print("\n".join(_story(record)))
    return 0


def _found(reader: Reader, name: str, one_of_several: bool) -> Iterator[Record]:
    from ..journal.errors import NoRecord

    try:
        yield reader.record(name)
    except NoRecord:
        if not one_of_several:
            raise


def _story(record: Record) -> Iterator[str]:
    from ..rendering import headline, render_in_full

    body, decision = record.body, record.decision
    yield paint(escape(headline(decision), keep_lines=True), "bold")
    yield from render_in_full(decision, styled)
    yield ""
    yield columns(_about(record), indent="  ")
    if lossy := body.get("lossy"):
        yield f"\n  not exact as it was written ({len(lossy)}):"
        yield columns(((escape(str(place)), escape(str(kind))) for place, kind in lossy), indent="    ")
    if redacted := body.get("redacted"):
        yield f"\n  redacted before it was written ({len(redacted)}):"
        yield columns(((escape(path), escape(kind), digest) for path, kind, digest in redacted), indent="    ")


def _about(record: Record) -> Iterator[tuple[str, str]]:
    from datetime import datetime

    body, step = record.body, record.body["step"]
    yield "record", f"{escape(record.id)} (number {record.seq})"
    yield "at", datetime.fromtimestamp(record.at).astimezone().isoformat(timespec="milliseconds")
    if body.get("took") is not None:
        yield "took", f"{body['took'] * 1000:.3f} ms"
    for name in _AROUND:
        if body.get(name) is not None:
            yield name, short(body[name], 200)
    for name in _HEADER:
        if step.get(name) is not None:
            yield name, escape(str(step[name]))
    if agent := step.get("agent"):
        of = f", subagent of {agent['parent']}" if agent.get("parent") else ""
        yield "agent", escape(f"{agent.get('name') or agent.get('id')}{of}")
    for name, value in step.items():
        if name not in (*_HEADER, "agent", "fairlead", "event") and value not in (None, {}, []):
            yield name, short(value, 200)
    if record.policy is not None:
        hooks = record.policy_hooks
        yield "policy", f"{record.policy[:16]} ({len(hooks)} hooks)"
        versions = {hook["name"]: hook["version"] for hook in hooks}
        for hook in dict.fromkeys(run[0] for run in body.get("runs") or ()):
            yield "hook", f"{escape(str(hook))}  version {versions.get(hook, '?')}"
    yield "digest", record.digest
