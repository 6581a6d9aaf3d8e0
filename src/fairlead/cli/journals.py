"""What the commands about the journal share: which journal, which records, and one record in a line."""

from __future__ import annotations

import argparse
import math
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .display import escape, paint, short
from .loading import add_json

if TYPE_CHECKING:
    from ..config.layers import Config
    from ..journal.reading import Filter, Reader, Record

_COLOURS = {
    "deny": "red",
    "denied": "red",
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


def add_journals(parser: argparse.ArgumentParser) -> None:
    """The same for a command that reads several journals as one: those of several machines, say."""
    parser.add_argument(
        "--journal", metavar="FILE", type=Path, action="append",
        help="the journal (default: the configured one); several, each with its own --journal, are read as one",
    )  # fmt: skip
    add_json(parser)


def add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--event", help="only this event")
    parser.add_argument("--tool", metavar="GLOB", help="only calls of such tools")
    parser.add_argument("--decision", metavar="CONTROL", help="only where this was carried out: deny, proceed, ...")
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
    from ..hosts.host import canonical_name
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
    given = {name: getattr(options, name) for name in names}
    return Filter(**given | {"host": canonical_name(options.host)}, since=since, until=until)


def refuse_unknown_host(name: str | None) -> None:
    """Raise if a host of which the journal has nothing is none that fairlead knows: it may be misspelt."""
    from ..errors import UnknownName
    from ..hosts.framework import ALL as FRAMEWORKS
    from ..hosts.host import ALL, EXPERIMENTAL, canonical_name

    known = (*ALL, *EXPERIMENTAL, *FRAMEWORKS, "loop")
    if name is not None and canonical_name(name) not in known:
        raise UnknownName("host", name, known, "; the journal has nothing of it either")


def settings() -> Config:
    """What the system's and the user's files say; a project's has no say here."""
    from ..config.layers import Sources, find, read

    found = find("/")
    return read(Sources(found.system, found.user))


def journal_of(options: argparse.Namespace) -> Path:
    """The journal that is meant: for root and the user of the machine's daemon, the one that this daemon keeps."""
    from ..places import journal_file

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
    """Have the journal say what launchers did without fairlead: while it is broken, no daemon does that.

    A command that reads prunes nothing: what the files say of limits may be what is broken.
    """
    from ..journal.unanswered import FILE, take_in
    from ..places import state_folder

    file = state_folder() / FILE
    if file.is_file() and file.stat().st_size:
        from ..journal import Journal

        with Journal(path, max_size=sys.maxsize, max_age=math.inf) as journal:
            take_in(state_folder(), journal)


def machine_journal() -> Path | None:
    """The journal that the machine's daemon says it keeps, for those who may read it."""
    from ..hosts.hook_client import listens
    from ..places import MANAGED, administers_managed

    if not administers_managed() or not listens(str(MANAGED)):
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
    """The journals that are meant."""
    if options.journal:
        return [Path(path).absolute() for path in options.journal]
    return [journal_of(argparse.Namespace(journal=None))]


def open_journals(options: argparse.Namespace, held: ExitStack) -> list[Reader]:
    """The journals that are meant, open until `held` is closed."""
    from ..journal.reading import Reader

    return [held.enter_context(Reader(path)) for path in journals_of(options)]


def line_of(record: Record, *, machine: bool = False) -> str:
    """One record in one line, with the machine that wrote it where several did."""
    from datetime import datetime

    when = datetime.fromtimestamp(record.at).strftime("%m-%d %H:%M:%S")
    where = f"{paint(escape(str(record.body.get('machine') or '?')), 'dim')}  " if machine else ""
    return f"{paint(when, 'dim')}  {where}{escape(record.id):<16}  {_told(record)}"


def _told(record: Record) -> str:
    body = record.body
    if record.is_note:
        about = {k: v for k, v in body.items() if k not in _UNTOLD}
        return paint(f"[{escape(str(body['note']))}] {short(about)}", "blue")
    step = body["step"]
    control = _carried_out(record)
    words = [f"{escape(str(step.get('event'))):<16}", paint(f"{control:<8}", _COLOURS.get(control, "bold"))]
    if body.get("effect"):
        words.append(paint(f"(decided: {escape(str(body.get('control')))})", "yellow"))
    aim, new = _aim(step.get("target")), _aim((body.get("left") or {}).get("target"))
    words.append(escape(" ".join(str(w) for w in (step.get("tool"), short(aim, 60) if aim else None) if w)))
    if new and new != aim:
        words.append(paint(f"-> {short(new, 60)}", "yellow"))
    elif changed := [name for name in body.get("left") or () if name not in ("kind", "target", "safety")]:
        words.append(paint(f"(changed: {escape(', '.join(changed))})", "yellow"))
    winner = body.get("winner") or {}
    if winner.get("hook"):
        cause = "" if winner.get("cause") == "policy" else f", {escape(str(winner.get('cause')))}"
        reason = _reason(record)
        words.append(paint(f"({escape(str(winner['hook']))}{cause}{reason and f': {short(reason, 100)}'})", "dim"))
    if unanswered := body.get("unanswered"):
        words.append(paint(f"(the launcher, without an answer: {short(str(unanswered), 100)})", "yellow"))
    if "erased" in body:
        words.append(paint("(its body was erased)", "dim"))
    for said in body.get("said") or ():
        seen = said.get("monitored") or {}
        if (seen.get("verdict") or {}).get("control", "proceed") != "proceed":
            words.append(
                paint(f"(watched: {escape(str(seen['hook']))} would {escape(seen['verdict']['control'])})", "yellow")
            )
    if step.get("host"):
        words.append(paint(escape(str(step["host"])), "dim"))
    if folder := body.get("root") or step.get("cwd"):
        words.append(paint(f"in {escape(Path(str(folder)).name or str(folder))}", "dim"))
    if step.get("session_id"):
        words.append(paint(escape(str(step["session_id"])), "dim"))
    return "  ".join(word for word in words if word)


def _carried_out(record: Record) -> str:
    """What was carried out; after a tool call that proceeds, what became of the call: a denied one did not run."""
    outcome = record.body["step"].get("outcome")
    if record.effect == "proceed" and outcome not in (None, "ok"):
        return escape(str(outcome))
    return escape(str(record.effect))


_UNTOLD = ("v", "id", "at", "kind", "note", "redacted", "machine")
"""What a line does not say of a note."""


def _aim(target: Any) -> str:
    """What a call is about: its command, its paths or its address."""
    known = target if isinstance(target, dict) else {}
    return str(known.get("command") or " ".join(map(str, known.get("paths") or ())) or known.get("url") or "")


def _reason(record: Record) -> str:
    """Why, in one line, of a decision that has a reason."""
    from ..record import BadRecord

    try:
        return " ".join((record.decision.reason or "").split()) if record.is_whole else ""
    except BadRecord:
        return ""


def json_of(record: Record, journal: Path | None = None) -> dict[str, Any]:
    """A record for other programs: all that is in it, when it began, what was carried out, and in which journal."""
    told = {"seq": record.seq, "digest": record.digest, **record.body, "began": int(record.began * 1e9)}
    if not record.is_note:
        told["effective"] = record.effect
    return told if journal is None else told | {"journal": str(journal)}
