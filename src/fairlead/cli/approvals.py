"""`fairlead approvals`: list the questions that hooks ask a human, and answer them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..display import columns, escape, paint, print_json, short

if TYPE_CHECKING:
    from ..server.approvals import Question
    from ..server.grants import Grant, GrantRequest, GrantScope

_ACTIONS = ("list", "watch", "approve", "deny", "grants", "revoke")


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
    from ..server.answers import failed_notifications, read_questions

    found = read_questions(every=options.all)
    if options.json:
        print_json({"approvals": [_plain(question) for question in found]})
        return 0
    if not found:
        print("There are no open questions.", file=sys.stderr)
    for question in found:
        print("\n".join(_shown(question)))
    for line in failed_notifications():
        print(paint(escape(line), "yellow", to=sys.stderr), file=sys.stderr)
    return 0


def _plain(question: Question | Grant) -> dict[str, Any]:
    import msgspec

    plain: dict[str, Any] = msgspec.to_builtins(question)
    return plain


def _shown(question: Question) -> list[str]:
    from ..redaction.masking import lay_out

    left = max(question.expires - time.time(), 0)
    rows = [*rows_of_question(question), *rows_of_call(question)]
    rows.append(("state", question.state if question.state != "pending" else f"{left / 60:.0f} min left"))
    rows += [(name, text) for name, text in (("who", question.who), ("why", question.why)) if text]
    return [paint(escape(question.id), "bold"), lay_out(rows), ""]


def rows_of_question(question: Question) -> Iterator[tuple[str, str]]:
    """Which hook asks what, and by which rule."""
    yield "question", question.question or "may it?"
    yield "asked by", f"{question.hook} ({question.rule}, {question.level})" if question.rule else str(question.hook)
    if question.note:
        yield "note", question.note


def rows_of_call(question: Question) -> Iterator[tuple[str, str]]:
    """The final step of a question, and what hooks changed of it."""
    from ..redaction.masking import rows_of

    yield from rows_of(question.step) if question.step.get("tool") else ()
    yield from _rows_of_changes(question)
    yield from ((name, text) for name, text in (("session", question.session), ("root", question.root)) if text)


def _rows_of_changes(question: Question) -> Iterator[tuple[str, str]]:
    """What hooks changed: a text of many lines line by line, any other value as it was."""
    from difflib import unified_diff

    if question.changes:
        yield "changed by", ", ".join(question.changed_by) or "a hook"
    for path, before, after in question.changes:
        if before == after:
            yield f"changed {path}", "(a secret in it)"
        elif isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
            lines = list(unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2))[2:]
            yield f"changed {path}", "\n".join(line for line in lines if not line.startswith("@@"))
        else:
            yield f"was {path}", "(nothing)" if before is None else short(before, sys.maxsize)


# --- answering ------------------------------------------------------------------------------------


def _answer(options: argparse.Namespace) -> int:
    from ..errors import FairleadError
    from ..server.answers import send_answer
    from ..server.approvals import VALID_FOR
    from .consent import need_a_person

    need_a_person("approve")
    approve = options.action == "approve"
    if not approve and (options.grant or options.until):
        raise FairleadError("a refusal is no grant; approve with --grant")
    grant = grant_of(options.grant, options.until, options.valid_for)
    question = _named(options.id)
    valid_for = _seconds(options.valid_for or "10m") if grant is None else VALID_FOR
    answered = send_answer(
        question.id, approve, options.why, shown=question.shown or None, grant=grant, valid_for=valid_for
    )
    if options.json:
        print_json(_plain(answered))
    else:
        done = "Granted" if grant else "Approved" if approve else "Denied"
        print(f"{done}: {escape(str(answered.question or answered.hook))}")
    return 0


def grant_of(scope: GrantScope | None, until: str | None, valid_for: str | None) -> GrantRequest | None:
    """The grant that a person asks for: its scope and how long it lasts; None for an approval of one call."""
    from ..errors import FairleadError
    from ..server.answers import seconds_until
    from ..server.grants import GrantRequest

    if scope is None and until is None:
        return None
    if until is not None and valid_for is not None:
        raise FairleadError("a grant has one end: --until or --for")
    lasts = seconds_until(until) if until is not None else _seconds(valid_for) if valid_for is not None else None
    return GrantRequest(scope or "project", lasts)


def _seconds(text: str) -> float:
    from ..amounts import seconds
    from ..errors import FairleadError

    try:
        return seconds(text)
    except ValueError as error:
        raise FairleadError(str(error)) from None


def _named(beginning: str) -> Question:
    """The one open question whose id begins so."""
    from ..errors import FairleadError
    from ..server.answers import read_questions

    if not beginning:
        raise FairleadError("name a question by its id, or the beginning of it: `fairlead approvals` lists them")
    every = [question for question in read_questions(every=True) if question.id.startswith(beginning)]
    found = [question for question in every if question.state == "pending"] or every
    if len(found) == 1:
        return found[0]
    if not found:
        raise FairleadError(f"there is no question {beginning!r}; `fairlead approvals` lists them")
    lines = [f"  {one.id}  {one.question or one.hook}" for one in found]
    raise FairleadError(f"{len(found)} questions begin with {beginning!r}; give more of the id:\n" + "\n".join(lines))


# --- grants ---------------------------------------------------------------------------------------


def _list_grants(options: argparse.Namespace) -> int:
    from ..server.answers import read_grants

    found = read_grants(every=options.all)
    if options.json:
        print_json({"grants": [_plain(grant) for grant in found]})
        return 0
    if not found:
        print("There are no grants.", file=sys.stderr)
        return 0
    print(columns([("id", "scope", "ends", "used", "given by", "hook", "what"), *map(_grant_row, found)]))
    return 0


def _grant_row(grant: Grant) -> tuple[str, ...]:
    ends = time.strftime("%Y-%m-%d %H:%M", time.localtime(grant.expires))
    return (
        grant.id,
        grant.scope,
        ends if grant.state == "active" else grant.state,
        str(grant.uses),
        escape(grant.who or "-"),
        escape(f"{grant.hook} ({grant.rule})" if grant.rule else str(grant.hook)),
        f"{short(grant.summary)}  in {escape(grant.folder or '-')}",
    )


def _revoke(options: argparse.Namespace) -> int:
    from ..server.answers import revoke

    revoked = revoke(options.id)
    if options.json:
        print_json(_plain(revoked))
    else:
        print(f"Revoked: {revoked.id}  {short(revoked.summary)}")
    return 0
