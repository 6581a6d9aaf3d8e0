"""Reads and answers questions from another process of the user: through the daemon or, if none runs, in its file.

`fairlead approvals` and the inspector use this. Both show a `Call`: all questions about one call, which are answered
together.
"""

from __future__ import annotations

import getpass
import re
import time
from collections.abc import Iterable
from contextlib import closing
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from ..client import Client, DaemonError
from ..config.layers import read_own_files
from ..errors import FairleadError
from ..paths import state_folder
from .approvals import VALID_FOR, ApprovalStore, Question
from .grants import Grant, GrantRequest

_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


class WaitingCall(NamedTuple):
    """All open questions about one call."""

    questions: list[Question]

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(question.id for question in self.questions)

    @property
    def no_grant(self) -> str | None:
        """Why there can be no grant for the call."""
        return next((question.no_grant for question in self.questions if question.no_grant), None)

    @property
    def waits_until(self) -> float | None:
        """When the call is denied without an answer; None if it does not wait."""
        return min((one.waits_until for one in self.questions if one.waiting and one.waits_until), default=None)

    @property
    def left(self) -> str:
        """How long there is for an answer, in words."""
        now = time.time()
        if self.waits_until is not None and self.waits_until > now:
            return f"the call waits {self.waits_until - now:.0f} s more"
        expires = min(question.expires for question in self.questions)
        return f"the call does not wait; {max(expires - now, 0) / 60:.0f} min left"


def calls_of(questions: Iterable[Question]) -> list[WaitingCall]:
    """The questions by call, the oldest first."""
    found: dict[str, list[Question]] = {}
    for question in questions:
        found.setdefault(question.call or question.id, []).append(question)
    return [WaitingCall(of_call) for of_call in found.values()]


# --- reading --------------------------------------------------------------------------------------


def read_questions(*, every: bool = False) -> list[Question]:
    """The open questions, the oldest first; or every stored one."""
    try:
        with Client(start=False) as client:
            return msgspec.convert(client.approvals(every=every), list[Question])
    except DaemonError as error:
        if error.status is not None:
            raise
        with closing(_store()) as store:
            return store.questions(every=every)


def read_grants(*, every: bool = False) -> list[Grant]:
    """The grants in force, or all that are kept."""
    try:
        with Client(start=False) as client:
            return msgspec.convert(client.grants(every=every), list[Grant])
    except DaemonError as error:
        if error.status is not None:
            raise
        with closing(_store()) as store:
            return store.list_grants(every=every)


def failed_notifications() -> list[str]:
    """A line for each target of `notify` that did not take the newest notification."""
    try:
        with Client(start=False) as client:
            deliveries = client.health().get("notifications", ())
    except DaemonError:
        return []
    return [f"No notification by {one['target']}: {one['error']}" for one in deliveries if one["error"]]


def _store() -> ApprovalStore:
    return ApprovalStore(state_folder() / "approvals.db")


# --- answering ------------------------------------------------------------------------------------


def send_answer(
    name: str,
    approve: bool,
    why: str | None,
    *,
    shown: str | None = None,
    grant: GrantRequest | None = None,
    valid_for: float = VALID_FOR,
) -> Question:
    """Answer a question. `shown` is the digest of what the person saw: nothing else is answered."""
    who = getpass.getuser()
    about: dict[str, Any] = {"who": who, "why": why, "shown": shown, "valid_for": valid_for}
    about |= {} if grant is None else {"grant": {"scope": grant.scope, "lasts": grant.lasts}}
    try:
        with Client(start=False) as client:
            return msgspec.convert(client.answer(name, approve, **about), Question)
    except DaemonError as error:
        if error.status is not None:
            raise
    with closing(_store()) as store:
        answered = store.answer(name, approve, who, why, last=valid_for, shown=shown, grant=grant)
    more = {} if grant is None else {"scope": grant.scope, "lasts": grant.seconds}
    _note(
        answered.state, approval=name, who=who, why=why, hook=answered.hook, session=answered.session, **more
    )  # fmt: skip
    return answered


def answer_call(
    questions: Iterable[tuple[str, str | None]], approve: bool, why: str | None, grant: GrantRequest | None = None
) -> list[Question]:
    """Answer all questions of a call as they were shown: (id, digest) pairs. One refusal is enough."""
    answered = []
    for name, shown in questions:
        answered.append(send_answer(name, approve, why, shown=shown, grant=grant))
        if not approve:
            break
    return answered


def revoke(beginning: str) -> Grant:
    """End a grant at once. The beginning of its id is enough."""
    try:
        with Client(start=False) as client:
            return msgspec.convert(client.revoke(beginning), Grant)
    except DaemonError as error:
        if error.status is not None:
            raise
    with closing(_store()) as store:
        grant = store.revoke(beginning)
    _note("grant revoked", grant=grant.id, hook=grant.hook, session=grant.session)
    return grant


def _note(note: str, **about: Any) -> None:
    journal = read_own_files().open_journal()
    if journal is not None:
        with journal:
            journal.note(note, **about)


# --- the end of a grant ---------------------------------------------------------------------------


def seconds_until(text: str, now: datetime | None = None) -> float:
    """How long it is until a time of day, today or tomorrow, or until a date."""
    now = now or datetime.now()
    if found := _TIME_OF_DAY.fullmatch(text.strip()):
        then = now.replace(hour=int(found[1]), minute=int(found[2]), second=0, microsecond=0)
        return ((then if then > now else then + timedelta(days=1)) - now).total_seconds()
    try:
        left = datetime.fromisoformat(text.strip()).timestamp() - now.timestamp()
    except (ValueError, OverflowError):
        left = 0.0
    if left <= 0:
        raise FairleadError(f"{text!r} is no time to come; write one like 18:00 or 2026-05-01T14:00")
    return left
