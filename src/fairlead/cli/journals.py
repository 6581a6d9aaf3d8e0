"""What the journal commands share: which journal, which records, and a record in one line."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import CONTROL_COLOURS, escape, paint, short, styled
from .loading import add_json

if TYPE_CHECKING:
    from ..config.layers import Config
    from ..journal.reading import Filter, Reader, Record


def add_journal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--journal", metavar="FILE", type=Path, help="the journal (default: the configured one)")
    add_json(parser)


def add_journals(parser: argparse.ArgumentParser) -> None:
    """`--journal` for a command that reads several journals as one, such as those of several machines."""
    parser.add_argument(
        "--journal", metavar="FILE", type=Path, action="append",
        help="the journal (default: the configured one); several, each with its own --journal, are read as one",
    )  # fmt: skip
    add_json(parser)


def add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--event", help="only this event")
    parser.add_argument("--tool", metavar="GLOB", help="only calls of such tools")
    parser.add_argument("--decision", metavar="CONTROL", help="only where the agent did this: deny, proceed, ...")
    parser.add_argument("--hook", metavar="NAME", help="only where this hook ran or decided")
    parser.add_argument("--session", metavar="ID", help="only this session")
    parser.add_argument("--host", help="only this host")
    parser.add_argument("--agent", metavar="NAME", help="only this agent")
    parser.add_argument("--user", metavar="NAME", help="only for this user")
    parser.add_argument("--since", metavar="WHEN", help="from then on: 2h, 30d, today, 2026-05-01, 2026-05-01T14:00")
    parser.add_argument("--until", metavar="WHEN", help="up to then")


def filter_of(options: argparse.Namespace) -> Filter:
    from ..amounts import moment
    from ..errors import FairleadError, UnknownName
    from ..glob import compile_glob
    from ..hosts.clis.mapping import canonical_name
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
    names = ("event", "tool", "decision", "hook", "session", "host", "agent", "user")
    chosen = {name: getattr(options, name) for name in names}
    return Filter(**chosen | {"host": canonical_name(options.host)}, since=since, until=until)


def settings() -> Config:
    """The system's and the user's configuration. A project's does not count for the journal."""
    from ..config.layers import read_own_files

    return read_own_files()


def journal_of(options: argparse.Namespace) -> Path:
    """The journal to read. For root and the user of the machine's daemon, it is that daemon's."""
    from ..paths import journal_file

    if options.journal is not None:
        return Path(options.journal).absolute()
    if (machine := machine_journal()) is not None:
        return machine
    config = settings()
    configured = config.journal.get("path")
    path = Path(configured) if configured else journal_file()
    if config.journal.get("enabled", True) and (path.exists() or not config.mistakes):
        _take_in_unanswered(path)
    return path


def _take_in_unanswered(path: Path) -> None:
    """Record what launchers did by themselves: while fairlead is broken, no daemon does that.

    This prunes nothing, because the limits may be what is broken in the configuration.
    """
    from ..journal.unanswered import FILE, import_unanswered
    from ..paths import state_folder

    file = state_folder() / FILE
    if file.is_file() and file.stat().st_size:
        from ..journal import Journal

        with Journal(path, max_size=sys.maxsize, max_age=math.inf) as journal:
            import_unanswered(state_folder(), journal)


def machine_journal() -> Path | None:
    """The journal of the machine's daemon, if this user may read it."""
    from ..hosts.clis.client import is_listening
    from ..paths import MANAGED, administers_managed

    if not administers_managed() or not is_listening(str(MANAGED)):
        return None
    try:
        from ..client import Client, DaemonError
    except ImportError:  # without the packages of a daemon
        return None
    try:
        with Client(MANAGED / "v1.sock", start=False) as client:
            kept = client.health().get("journal")
    except DaemonError:
        return None
    return Path(kept) if kept else None


def journals_of(options: argparse.Namespace) -> list[Path]:
    """The journals to read."""
    if options.journal:
        return [Path(path).absolute() for path in options.journal]
    return [journal_of(argparse.Namespace(journal=None))]


def open_journals(options: argparse.Namespace, held: ExitStack) -> list[Reader]:
    """The journals to read, open until `held` is closed."""
    from ..journal.reading import Reader

    return [held.enter_context(Reader(path)) for path in journals_of(options)]


def line_of(record: Record, *, machine: bool = False) -> str:
    """One record in one line, with the machine that wrote it where several did."""
    from datetime import datetime

    when = datetime.fromtimestamp(record.at).strftime("%m-%d %H:%M:%S")
    where = f"{paint(escape(str(record.body.get('machine') or '?')), 'dim')}  " if machine else ""
    words = _note_words(record) if record.is_note else _decision_words(record)
    return f"{paint(when, 'dim')}  {where}{escape(record.id):<16}  {'  '.join(word for word in words if word)}"


def _note_words(record: Record) -> Iterator[str]:
    about = {key: value for key, value in record.body.items() if key not in _LEFT_OUT}
    yield paint(f"[{escape(str(record.body['note']))}] {short(about)}", "blue")


def _decision_words(record: Record) -> Iterator[str]:
    body, step, control = record.body, record.body["step"], _carried_out(record)
    yield f"{escape(str(step.get('event'))):<16}"
    yield paint(f"{control:<8}", CONTROL_COLOURS.get(control, "bold"))
    if body.get("effect"):
        yield styled(f"(decided: {body.get('control')})", "yellow")
    yield from _call_words(step, body.get("left") or {})
    yield from _cause_words(record)
    if step.get("host"):
        yield styled(str(step["host"]), "dim")
    if folder := body.get("root") or step.get("cwd"):
        yield styled(f"in {Path(str(folder)).name or folder}", "dim")
    if step.get("session_id"):
        yield styled(str(step["session_id"]), "dim")


def _call_words(step: dict[str, Any], left: dict[str, Any]) -> Iterator[str]:
    """The tool of a step and what it works on, before and after the hooks."""
    from ..rendering import DERIVED

    aim, new = _aim(step.get("target")), _aim(left.get("target"))
    yield escape(" ".join(str(word) for word in (step.get("tool"), short(aim, 60) if aim else None) if word))
    if new and new != aim:
        yield paint(f"-> {short(new, 60)}", "yellow")
    elif changed := [name for name in left if name not in DERIVED]:
        yield styled(f"(changed: {', '.join(changed)})", "yellow")


def _cause_words(record: Record) -> Iterator[str]:
    """Which hook decided and why, what monitored hooks would have done, and what is missing."""
    body = record.body
    if (body.get("winner") or {}).get("hook"):
        yield paint(f"({short(_grounds(record), 120)})", "dim")
    if unanswered := body.get("unanswered"):
        yield paint(f"(the launcher, without an answer: {short(str(unanswered), 100)})", "yellow")
    if "erased" in body:
        yield paint("(its body was erased)", "dim")
    for contribution in body.get("said") or ():
        seen = contribution.get("monitored") or {}
        control = (seen.get("verdict") or {}).get("control", "proceed")
        if control != "proceed":
            yield styled(f"(watched: {seen['hook']} would {control})", "yellow")


def _carried_out(record: Record) -> str:
    """What the host did. After a tool call, its outcome, unless that is ok."""
    outcome = record.body["step"].get("outcome")
    if record.effect == "proceed" and outcome not in (None, "ok"):
        return escape(str(outcome))
    return escape(str(record.effect))


_LEFT_OUT = ("v", "id", "at", "kind", "note", "redacted", "machine")
"""Keys of a note that its line leaves out."""


def _aim(target: Any) -> str:
    """What a call works on: its command, its paths or its address."""
    known = target if isinstance(target, dict) else {}
    return str(known.get("command") or " ".join(map(str, known.get("paths") or ())) or known.get("url") or "")


def _grounds(record: Record) -> str:
    """Which hook decided and why, in one line. A record that is not whole has no reason."""
    from ..rendering import grounds
    from ..wire.decisions import BadRecord

    try:
        if record.is_whole:
            return " ".join(grounds(record.decision).split())
    except BadRecord:
        pass
    return f"by {record.body['winner']['hook']}"


def json_of(record: Record, journal: Path | None = None) -> dict[str, Any]:
    """A record for other programs, with when it began, what the host did, and its journal."""
    data = {"seq": record.seq, "digest": record.digest, **record.body, "began": int(record.began * 1e9)}
    if not record.is_note:
        data["effective"] = record.effect
    return data if journal is None else data | {"journal": str(journal)}
