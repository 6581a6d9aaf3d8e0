"""`fairlead approvals`: list the questions that hooks ask a human, and answer them."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

from ..display import columns, escape, paint, print_json, short

_ACTIONS = ("list", "watch", "approve", "deny", "grants", "revoke")
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
_DAY = 86400.0


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "approvals",
        help="list and answer the questions that hooks ask a human",
        description="List the open questions, or answer one. If you approve after the call was refused, the same call "
        "may run once when the agent tries it again. If several hooks ask about a call, approve each question. A grant "
        "lets the same call run again and again, until it ends or you revoke it.",
        epilog="list: the open questions. watch: show each question as it comes, and answer it. approve, deny: answer "
        "one. grants: the grants in force. revoke: end one at once.",
    )
    parser.add_argument("action", nargs="?", default="list", choices=_ACTIONS)
    parser.add_argument("id", nargs="?", help="the question or the grant; the beginning of its id is enough")
    parser.add_argument("--why", metavar="TEXT", help="a reason, which the journal keeps")
    parser.add_argument(
        "--grant", choices=("session", "project"), help="approve this call in this scope, not just once"
    )
    parser.add_argument(
        "--until", metavar="TIME", help="when the grant ends: 18:00, or a date (implies --grant project)"
    )
    parser.add_argument(
        "--for",
        dest="valid_for",
        metavar="TIME",
        help="how long the approval is valid (default: 10m), or the grant (default: a day, and 30 for a project)",
    )
    parser.add_argument("--all", action="store_true", help="also list what was answered, has expired or has ended")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..errors import FairleadError
    from ..extras import require

    require("httpcore", "serve", "approvals")
    if options.action == "list":
        return _list(options)
    if options.action == "watch":
        from .approvals_watch import watch

        return watch(options.id, as_json=options.json)
    if options.action == "grants":
        return _list_grants(options)
    if options.id is None:
        what = "a grant" if options.action == "revoke" else "a question"
        raise FairleadError(f"name {what}: fairlead approvals {options.action} ID")
    return _revoke(options) if options.action == "revoke" else _answer(options)


# --- listing --------------------------------------------------------------------------------------


def _list(options: argparse.Namespace) -> int:
    found = [_plain(question) for question in read_questions(every=options.all)]
    if options.json:
        print_json({"approvals": found})
        return 0
    if not found:
        print("There are no open questions.", file=sys.stderr)
    for question in found:
        print("\n".join(_shown(question)))
    for line in _failed_notifications():
        print(paint(line, "yellow", to=sys.stderr), file=sys.stderr)
    return 0


def _failed_notifications() -> Iterator[str]:
    """A line for each target of `notify` that did not take the newest notification."""
    from ..client import Client, DaemonError

    try:
        with Client(start=False) as client:
            deliveries = client.health().get("notifications", ())
    except DaemonError:
        return
    for delivery in deliveries:
        if delivery["error"]:
            yield escape(f"No notification by {delivery['target']}: {delivery['error']}")


def _plain(question: Any) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(question)
    return plain


def _shown(question: dict[str, Any]) -> list[str]:
    from ..redaction.masking import lay_out

    left = max(question["expires"] - time.time(), 0)
    rows = [*rows_of_question(question), *rows_of_call(question)]
    rows.append(("state", question["state"] if question["state"] != "pending" else f"{left / 60:.0f} min left"))
    rows += [(name, str(question[name])) for name in ("who", "why") if question.get(name)]
    return [paint(escape(question["id"]), "bold"), lay_out(rows), ""]


def rows_of_question(question: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Which hook asks what, and by which rule."""
    yield "question", question["question"] or "may it?"
    rule = f" ({question['rule']}, {question['level']})" if question.get("rule") else ""
    yield "asked by", f"{question['hook']}{rule}"
    if question.get("note"):
        yield "note", question["note"]


def rows_of_call(question: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The final step of a question, and what hooks changed of it."""
    from ..redaction.masking import rows_of

    step = question["step"]
    yield from rows_of(step) if step.get("tool") else ()
    yield from _rows_of_changes(question)
    yield from ((name, str(question[name])) for name in ("session", "root") if question.get(name))


def _rows_of_changes(question: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What hooks changed: a text of many lines line by line, any other value as it was."""
    from difflib import unified_diff

    changes = question.get("changes") or ()
    if changes:
        yield "changed by", ", ".join(question.get("changed_by") or ["a hook"])
    for path, before, after in changes:
        if before == after:
            yield f"changed {path}", "(a secret in it)"
        elif isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
            lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
            yield f"changed {path}", "\n".join(line for line in lines if not line.startswith("@@"))
        else:
            yield f"was {path}", "(nothing)" if before is None else short(before, sys.maxsize)


def read_questions(*, every: bool = False) -> list[Any]:
    """The questions: from the daemon or, if none runs, from the file that the last one left."""
    from contextlib import closing

    from ..client import Client, DaemonError

    try:
        with Client(start=False) as client:
            return list(client.approvals(every=every))
    except DaemonError as error:
        if error.status is not None:
            raise
        with closing(_store()) as store:
            return list(store.questions(every=every))


def _store() -> Any:
    from ..paths import state_folder
    from ..server.approvals import ApprovalStore

    return ApprovalStore(state_folder() / "approvals.db")


# --- answering ------------------------------------------------------------------------------------


def _answer(options: argparse.Namespace) -> int:
    from ..errors import FairleadError
    from .consent import need_a_person

    need_a_person("approve")
    approve = options.action == "approve"
    if not approve and (options.grant or options.until):
        raise FairleadError("a refusal is no grant; approve with --grant")
    grant = grant_of(options.grant, options.until, options.valid_for)
    question = _named(options.id)
    answered = send_answer(
        question, approve, options.why, grant=grant, valid_for=None if grant else _seconds(options.valid_for or "10m")
    )
    if options.json:
        print_json(answered)
    else:
        done = "Granted" if grant else "Approved" if approve else "Denied"
        print(f"{done}: {escape(str(answered['question'] or answered['hook']))}")
    return 0


def grant_of(scope: str | None, until: str | None, valid_for: str | None) -> dict[str, Any] | None:
    """The grant that a person asks for: its scope and how long it lasts; None for an approval of one call."""
    from ..errors import FairleadError

    if scope is None and until is None:
        return None
    if until is not None and valid_for is not None:
        raise FairleadError("a grant has one end: --until or --for")
    lasts = seconds_until(until) if until is not None else _seconds(valid_for) if valid_for is not None else None
    return {"scope": scope or "project", "lasts": lasts}


def seconds_until(text: str) -> float:
    """How long it is until a time of day, today or tomorrow, or until a date."""
    from datetime import datetime, timedelta

    from ..errors import FairleadError

    now = datetime.now()
    if found := _TIME_OF_DAY.fullmatch(text.strip()):
        then = now.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0)
        return ((then if then > now else then + timedelta(days=1)) - now).total_seconds()
    try:
        left = datetime.fromisoformat(text.strip()).timestamp() - now.timestamp()
    except ValueError:
        left = 0.0
    if left <= 0:
        raise FairleadError(f"{text!r} is no time to come; write one like 18:00 or 2026-05-01T14:00")
    return left


def _seconds(text: str) -> float:
    from ..amounts import seconds
    from ..errors import FairleadError

    try:
        return seconds(text)
    except ValueError as error:
        raise FairleadError(str(error)) from None


def send_answer(
    question: dict[str, Any],
    approve: bool,
    why: str | None,
    *,
    grant: dict[str, Any] | None = None,
    valid_for: float | None = None,
) -> dict[str, Any]:
    """Answer the question that was shown, and no other. Returns it as it is now."""
    import getpass

    from ..client import Client, DaemonError

    about: dict[str, Any] = {"who": getpass.getuser(), "why": why, "shown": question.get("shown") or None}
    about |= {"valid_for": valid_for} if valid_for is not None else {}
    about |= {"grant": grant} if grant is not None else {}
    try:
        with Client(start=False) as client:
            return client.answer(question["id"], approve, **about)
    except DaemonError as error:
        if error.status is not None:
            raise
    return _answer_here(question["id"], approve, about)


def _answer_here(name: str, approve: bool, about: dict[str, Any]) -> dict[str, Any]:
    """Answer in the file that the next daemon reads, and note it in the journal."""
    from contextlib import closing

    import msgspec

    from ..server.approvals import VALID_FOR
    from ..server.grants import GrantRequest

    grant = msgspec.convert(about["grant"], GrantRequest) if "grant" in about else None
    with closing(_store()) as store:
        answered = _plain(
            store.answer(
                name, approve, about["who"], about["why"], last=about.get("valid_for", VALID_FOR),
                shown=about["shown"], grant=grant,
            )
        )  # fmt: skip
    more = {} if grant is None else {"scope": grant.scope, "lasts": grant.seconds}
    _note(answered["state"], approval=name, who=about["who"], why=about["why"], hook=answered["hook"],
          session=answered["session"], **more)  # fmt: skip
    return answered


def _note(note: str, **about: Any) -> None:
    from .journals import settings

    journal = settings().open_journal()
    if journal is not None:
        with journal:
            journal.note(note, **about)


def _named(beginning: str) -> dict[str, Any]:
    """The one question that begins so. The daemon refuses an id that no question has."""
    from ..errors import FairleadError

    if not beginning:
        raise FairleadError("name a question by its id, or the beginning of it: `fairlead approvals` lists them")
    questions = {str(question["id"]): question for question in map(_plain, read_questions())}
    found = [name for name in questions if name.startswith(beginning)]
    if beginning in questions or not found:
        return questions.get(beginning, {"id": beginning})
    if len(found) > 1:
        lines = [f"  {name}  {questions[name]['question'] or questions[name]['hook']}" for name in found]
        raise FairleadError(
            f"{len(found)} questions begin with {beginning!r}; give more of the id:\n" + "\n".join(lines)
        )
    return questions[found[0]]


# --- grants ---------------------------------------------------------------------------------------


def _list_grants(options: argparse.Namespace) -> int:
    from contextlib import closing

    from ..client import Client, DaemonError

    try:
        with Client(start=False) as client:
            found = client.grants(every=options.all)
    except DaemonError as error:
        if error.status is not None:
            raise
        with closing(_store()) as store:
            found = [_plain(grant) for grant in store.list_grants(every=options.all)]
    if options.json:
        print_json({"grants": found})
        return 0
    if not found:
        print("There are no grants.", file=sys.stderr)
        return 0
    print(columns([("id", "scope", "ends", "used", "given by", "hook", "what"), *map(_grant_row, found)]))
    return 0


def _grant_row(grant: dict[str, Any]) -> tuple[str, ...]:
    ends = time.strftime("%Y-%m-%d %H:%M", time.localtime(grant["expires"]))
    hook = f"{grant['hook']} ({grant['rule']})" if grant["rule"] else str(grant["hook"])
    return (
        grant["id"],
        grant["scope"],
        ends if grant["state"] == "active" else grant["state"],
        str(grant["uses"]),
        escape(grant["who"] or "-"),
        escape(hook),
        f"{short(grant['summary'])}  in {escape(grant['folder'] or '-')}",
    )


def _revoke(options: argparse.Namespace) -> int:
    from contextlib import closing

    from ..client import Client, DaemonError

    try:
        with Client(start=False) as client:
            revoked = client.revoke(options.id)
    except DaemonError as error:
        if error.status is not None:
            raise
        with closing(_store()) as store:
            revoked = _plain(store.revoke(options.id))
        _note("grant revoked", grant=revoked["id"], hook=revoked["hook"], session=revoked["session"])
    if options.json:
        print_json(revoked)
    else:
        print(f"Revoked: {revoked['id']}  {short(revoked['summary'])}")
    return 0
