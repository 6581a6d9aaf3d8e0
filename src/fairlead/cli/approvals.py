"""`fairlead approvals`: list the questions that hooks ask a human, and answer them."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

from ..display import escape, paint, print_json


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "approvals",
        help="list and answer the questions that hooks ask a human",
        description="List the open questions, or answer one. If you approve after the call was refused, the same call "
        "may run once when the agent tries it again. If several hooks ask about a call, approve each question.",
    )
    parser.add_argument("action", nargs="?", default="list", choices=("list", "approve", "deny"))
    parser.add_argument("id", nargs="?", help="the question; the beginning of its id is enough")
    parser.add_argument("--why", metavar="TEXT", help="a reason, which the journal keeps")
    parser.add_argument(
        "--for",
        dest="valid_for",
        default="10m",
        metavar="TIME",
        help="how long the approval is valid (default: %(default)s)",
    )
    parser.add_argument("--all", action="store_true", help="also list answered and expired questions")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..errors import FairleadError
    from ..extras import require

    require("httpcore", "serve", "approvals")
    if options.action == "list":
        return _list(options)
    if options.id is None:
        raise FairleadError(f"name a question: fairlead approvals {options.action} ID")
    return _answer(options)


def _list(options: argparse.Namespace) -> int:
    found = [_plain(question) for question in _questions(options.all)]
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
    from ..redaction.masking import lay_out, rows_of

    step = question["step"]
    left = max(question["expires"] - time.time(), 0)
    rows = [("question", question["question"] or "may it?"), ("asked by", str(question["hook"]))]
    rows += rows_of(step) if step.get("tool") else []
    rows += [(name, str(question[name])) for name in ("session", "root") if question.get(name)]
    rows.append(("state", question["state"] if question["state"] != "pending" else f"{left / 60:.0f} min left"))
    rows += [(name, str(question[name])) for name in ("who", "why") if question.get(name)]
    return [paint(escape(question["id"]), "bold"), lay_out(rows), ""]


def _questions(every: bool) -> list[Any]:
    """The questions: from the daemon or, if none runs, from the file that the last one left."""
    from ..client import Client, DaemonError

    try:
        with Client(start=False) as client:
            return list(client.approvals(every=every))
    except DaemonError as error:
        if error.status is not None:
            raise
        return list(_pending().questions(every=every))


def _pending() -> Any:
    from ..paths import state_folder
    from ..server.approvals import ApprovalStore

    return ApprovalStore(state_folder() / "approvals.db")


def _answer(options: argparse.Namespace) -> int:
    import getpass

    from ..amounts import seconds
    from ..client import Client, DaemonError
    from ..errors import FairleadError
    from .consent import need_a_person

    need_a_person("approve")
    approve = options.action == "approve"
    who, why = getpass.getuser(), options.why
    try:
        last = seconds(options.valid_for)
    except ValueError as error:
        raise FairleadError(str(error)) from None
    try:
        name = _whole_id(options.id)
        with Client(start=False) as client:
            result = client.answer(name, approve, who=who, why=why, valid_for=last)
    except DaemonError as error:
        if error.status is not None:
            raise
        result = _answer_here(name, approve, who, why, last)
    if options.json:
        print_json(result)
    else:
        print(f"{'Approved' if approve else 'Denied'}: {escape(str(result['question'] or result['hook']))}")
    return 0


def _whole_id(beginning: str) -> str:
    """The id of the one question that begins so. The daemon refuses an id that no question has."""
    from ..errors import FairleadError

    if not beginning:
        raise FairleadError("name a question by its id, or the beginning of it: `fairlead approvals` lists them")
    questions = {str(question["id"]): question for question in map(_plain, _questions(False))}
    found = [name for name in questions if name.startswith(beginning)]
    if beginning in questions or not found:
        return beginning
    if len(found) > 1:
        lines = [f"  {name}  {questions[name]['question'] or questions[name]['hook']}" for name in found]
        raise FairleadError(
            f"{len(found)} questions begin with {beginning!r}; give more of the id:\n" + "\n".join(lines)
        )
    return found[0]


def _answer_here(name: str, approve: bool, who: str, why: str | None, last: float) -> dict[str, Any]:
    """Answer in the file that the next daemon reads, and note it in the journal."""
    from contextlib import closing

    from .journals import settings

    with closing(_pending()) as pending:
        result = _plain(pending.answer(name, approve, who, why, last=last))
    journal = settings().open_journal()
    if journal is not None:
        with journal:
            about = {"hook": result["hook"], "session": result["session"]}
            journal.note("approved" if approve else "denied", approval=name, who=who, why=why, **about)
    return result
