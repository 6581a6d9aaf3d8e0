"""Approvals: questions that outlive their step, and the answers to them.

A question has an id that cannot be guessed, and is answered once. An approval that comes after its step was denied
still holds: the same call may run once, soon, in the same session and under the same policy. If several hooks ask
about a call, it needs an approval for each question; they are used together, or not at all.

An approval is used up when its caller has received the answer. The daemon hands it out with a receipt, which the caller
acknowledges (see `Service._receipt`). If the caller dies before that, the approval returns, once:

    pending -> approved -> handed_out -> used             acknowledged
                  ^            |
                  '------------'                          not acknowledged in time; the second time it is used, too

An answer may also be a grant, which holds for later calls, too (see `grants`). Its question is then `granted`, and the
call that waits uses the grant.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec.structs import replace

from ..approvals import Approval, ApprovalRequest
from ..config.approvals import ApprovalSettings
from ..engine.threads import active_offload
from ..errors import FairleadError
from ..paths import make_private, refuse_remote
from ..redaction.logs import logger
from ..redaction.masking import Change, QuestionView, show_all, show_with
from ..redaction.redactor import current, current_base, redact_text
from ..wire.steps import envelope
from . import clocks
from .grants import SCOPES as GRANT_SCOPES
from .grants import Grant, GrantRequest, GrantScope, GrantTable, GrantTerms, new_id, rule_of, terms_of

LIFE = 3600.0
"""Seconds in which a question can be answered."""
VALID_FOR = 600.0
"""Seconds in which a late approval can be used."""
LONGEST_VALID_FOR = 86400.0
LIMIT = 1000
"""Open questions of the daemon's own user. Each other caller may have a quarter of that."""
_VOLATILE = ("turn_id", "request_id", "checkpoint_id", "call_id", "sequence", "metadata", "origin")

ApprovalState = Literal["pending", "approved", "handed_out", "denied", "used", "granted", "expired"]

_TABLES = """
CREATE TABLE IF NOT EXISTS approvals (
  id TEXT PRIMARY KEY, bound TEXT NOT NULL, state TEXT NOT NULL, hook TEXT, question TEXT, step BLOB NOT NULL,
  session TEXT, root TEXT, asked REAL NOT NULL, wall REAL NOT NULL, uptime REAL NOT NULL, boot TEXT NOT NULL,
  who TEXT, why TEXT, details BLOB
);
CREATE INDEX IF NOT EXISTS by_bound ON approvals (bound, state);
CREATE TABLE IF NOT EXISTS uses (
  receipt TEXT NOT NULL, approval TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (receipt, approval)
);
CREATE INDEX IF NOT EXISTS by_approval ON uses (approval, state);
"""
# A use is open, acknowledged, returned, or unacknowledged (also not acknowledged, but its grant had returned before).


class QuestionDetails(msgspec.Struct, frozen=True):
    """What is known of a question beside its text and its step."""

    call: str = ""
    """The same for all questions about one call."""
    rule: str | None = None
    """The rule of the pack that asks."""
    level: str | None = None
    changes: tuple[Change, ...] = ()
    """What hooks changed of the step."""
    changed_by: tuple[str, ...] = ()
    waits_until: float | None = None
    """When the call that waits is denied without an answer."""
    terms: GrantTerms = GrantTerms(refusal="the question was asked by an older fairlead")
    note: str | None = None


class Question(msgspec.Struct, frozen=True):
    """A question as a user sees it. Secrets in its step are redacted."""

    id: str
    state: ApprovalState
    hook: str | None
    question: str | None
    step: dict[str, Any]
    session: str | None
    root: str | None
    asked: float
    expires: float
    who: str | None = None
    why: str | None = None
    call: str = ""
    rule: str | None = None
    level: str | None = None
    changes: tuple[Change, ...] = ()
    changed_by: tuple[str, ...] = ()
    waits_until: float | None = None
    waiting: bool = False
    """Whether a call still waits for the answer."""
    grants: tuple[GrantScope, ...] = ()
    """The scopes that a grant may have."""
    no_grant: str | None = None
    """Why there can be no grant."""
    note: str | None = None
    """Why an earlier grant does not answer this question."""
    shown: str = ""
    """A digest of all that a person goes by. An answer that names it is for just that."""

    @property
    def digest(self) -> str:
        """What `shown` is."""
        parts = (self.id, self.hook, self.question, self.step, self.session, self.root, self.rule, self.changes)
        return sha256(msgspec.json.encode(parts, order="sorted", enc_hook=str)).hexdigest()


WaitForHangUp = Callable[[], Coroutine[Any, Any, None]]
"""Waits until the caller has hung up."""
HasHungUp = Callable[[], bool]
"""Says whether the caller has hung up."""


class Receipt(msgspec.Struct):
    """What a caller acknowledges.

    It has an id, which cannot be guessed, if its answer used approvals.
    """

    id: str | None = None


class ApprovalContext(msgspec.Struct, frozen=True):
    """The request of a question: its project, its policy, and how long its host waits."""

    root: str = ""
    policy: str = ""
    deadline: float = 25.0
    by_host: bool = False
    """Whether the host asks its user itself."""
    receipt: Receipt | None = None
    """None if grants are used up at once, without an acknowledgement."""
    wait_for_hang_up: WaitForHangUp | None = None
    settings: ApprovalSettings = ApprovalSettings()


approval_context: ContextVar[ApprovalContext] = ContextVar("fairlead_approval_context", default=ApprovalContext())  # noqa: B039 (it is frozen)


class AlreadyAnswered(FairleadError):
    """The question has an answer already."""


class NotWhatWasShown(FairleadError):
    """The answer is to something else than the question that is stored."""


class NoSuchQuestion(FairleadError):
    """There is no such question, or it has expired."""


class NoSuchReceipt(FairleadError):
    """There is no receipt with this id."""


class AcknowledgedTooLate(FairleadError):
    """The grant had returned by then, and another call has it."""


class _AnswerRow(NamedTuple):
    """The stored answer to a question, if there is one."""

    id: str | None = None
    state: str = "expired"
    who: str | None = None
    why: str | None = None
    is_grant: bool = False


class _BoundQuestion(NamedTuple):
    """A question of a dispatch: what an approval is bound to, and what a grant would match."""

    bound: str
    terms: GrantTerms


class ApprovalStore:
    """The questions and grants of a user, in a file, so that they survive a restart."""

    def __init__(self, path: Path) -> None:
        refuse_remote(path)
        make_private(path.parent)
        try:
            self._db = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
            path.chmod(0o600)
            self._db.execute("PRAGMA journal_mode = WAL").fetchone()
            self._db.executescript(_TABLES)
            if "details" not in {row[1] for row in self._db.execute("PRAGMA table_info(approvals)")}:
                self._db.execute("ALTER TABLE approvals ADD COLUMN details BLOB")  # of an older fairlead
            self.grants = GrantTable(self._db)
            self._key = _key_of(path)
        except sqlite3.Error as error:
            raise FairleadError(f"{path} cannot be used: {error}") from None
        self._waiters: dict[str, asyncio.Event] = {}
        self._released = False
        self._new: set[str] = set()
        """Questions that have not been reported yet."""
        self.on_question: Callable[[Question, ApprovalSettings], None] | None = None
        """Called when a question is stored."""
        self.on_grant: Callable[[Grant, ApprovalRequest], None] | None = None
        """Called when a call uses a grant."""

    def close(self) -> None:
        self._db.close()

    # --- asking -----------------------------------------------------------------------------

    async def approve(self, request: ApprovalRequest) -> Approval:
        return (await self.approve_all([request]))[0]

    async def approve_all(self, requests: Sequence[ApprovalRequest]) -> list[Approval]:
        """Use what was approved of this call if that is every question; otherwise ask, and wait."""
        about = approval_context.get()
        questions = [
            _BoundQuestion(binding(request, about, self._key), terms_of(request, about, self._key))
            for request in requests
        ]
        rows = self._use(requests, questions, {}, about)
        if about.by_host and not _all_approved(rows):
            return [Approval("ask", request.step.host) for request in requests]
        if not _all_approved(rows):
            rows_of = zip(requests, questions, rows, strict=True)
            unanswered = [(request, one) for request, one, row in rows_of if row.state != "approved"]
            shown = [await _shown(request) for request, _ in unanswered]
            call = secrets.token_hex(8)
            both = zip(unanswered, shown, strict=True)
            own = {one.bound: self._ask(request, about, one, call, texts) for (request, one), texts in both}
            rows = await self._wait(own, requests, questions, about)
        pending = ", ".join(f"approval {row.id} pending" for row in rows if row.state == "pending")
        return [_answer(row, pending) for row in rows]

    async def _wait(
        self,
        own: dict[str, str],
        requests: Sequence[ApprovalRequest],
        questions: list[_BoundQuestion],
        about: ApprovalContext,
    ) -> list[_AnswerRow]:
        """Wait until all are answered, one is denied, time is up, or the caller hangs up."""
        event = asyncio.Event()
        self._waiters |= dict.fromkeys(own.values(), event)
        self._announce(own.values(), about)
        gone = None if about.wait_for_hang_up is None else asyncio.ensure_future(about.wait_for_hang_up())
        if gone is not None:
            gone.add_done_callback(lambda _: event.set())
        try:
            async with asyncio.timeout(max(about.deadline, 0)):
                while gone is None or not gone.done():
                    rows = self._use(requests, questions, own, about)
                    if self._released or not any(row.state == "pending" for row in rows):
                        return rows
                    if any(row.state == "denied" for row in rows):
                        return rows
                    await event.wait()
                    event.clear()
        except TimeoutError:
            return self._use(requests, questions, own, about)
        finally:
            for name in own.values():
                del self._waiters[name]
            if gone is not None:
                gone.cancel()
        return [_AnswerRow(state="gone")] * len(questions)

    def _announce(self, names: Iterable[str], about: ApprovalContext) -> None:
        """Report the questions that this call has stored. An error there concerns no call."""
        if self.on_question is None:
            return
        for question in self._questions_of([name for name in names if name in self._new]):
            self._new.discard(question.id)
            try:
                self.on_question(question, about.settings)
            except Exception as error:
                logger.error("question %s could not be reported (%s)", question.id, error)

    def _ask(
        self, request: ApprovalRequest, about: ApprovalContext, question: _BoundQuestion, call: str, shown: QuestionView
    ) -> str:
        """Store the question. A question that is open already is not stored twice."""
        self._expire()
        query = "SELECT id, details FROM approvals WHERE bound = ? AND state = 'pending'"
        row = self._db.execute(query, (question.bound,)).fetchone()
        waits_until = time.time() + max(about.deadline, 0)
        if row is not None and row[0] not in self._waiters:
            known = replace(_details(row[1]), call=call, waits_until=waits_until)
            self._db.execute("UPDATE approvals SET details = ? WHERE id = ?", (_encode(known), row[0]))
            return str(row[0])
        self._make_room(about)
        name = secrets.token_hex(16)  # never begins with a dash, so it can be typed at a command line
        outdated = self.grants.outdated(question.terms, request.step.session_id)
        rules = [rule_of(one.hook, one.verdict.metadata) for one in request.verdicts]
        rule = next(filter(None, rules), None)
        details = QuestionDetails(
            call, rule and rule.id, rule and rule.level, tuple(shown.changes), request.changed_by,
            waits_until, question.terms,
            outdated and f"grant {outdated} does not answer this: the hook {request.hook!r} is not what it was",
        )  # fmt: skip
        self._db.execute(
            "INSERT INTO approvals VALUES (?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, ?)",
            (name, question.bound, request.hook, shown.question, msgspec.json.encode(shown.step),
             request.step.session_id, about.root, time.time(), *clocks.Expiry.after(LIFE), _encode(details)),
        )  # fmt: skip
        self._new.add(name)
        return name

    def _make_room(self, about: ApprovalContext) -> None:
        """Raise if this caller, or all callers, have too many open questions."""
        caller = about.root.partition("/")[0]  # empty for the daemon's own user
        count = "SELECT count(*) FROM approvals WHERE state = 'pending'"
        (number,) = self._db.execute(count).fetchone()
        own_roots = f"{count} AND substr(root, 1, instr(root, '/') - 1) = ?"
        (own,) = self._db.execute(own_roots, (caller,)).fetchone()
        if own >= (LIMIT // 4 if caller else LIMIT) or number >= 4 * LIMIT:
            raise FairleadError(f"{own} questions are open already; answer some: `fairlead approvals`")

    def _use(
        self,
        requests: Sequence[ApprovalRequest],
        questions: list[_BoundQuestion],
        own: dict[str, str],
        about: ApprovalContext,
    ) -> list[_AnswerRow]:
        """Use what was approved of a call if that is every question; return the answer to each.

        `own` are the questions that this call has stored, by binding. An approval that another call waits for belongs
        to that call.
        """
        self._expire()
        with self._changing():
            both = zip(requests, questions, strict=True)
            rows = [self._row(one, own.get(one.bound), request.step.session_id) for request, one in both]
            if _all_approved(rows):
                self._hand_out([str(row.id) for row in rows if not row.is_grant], about.receipt)
                for row in rows:
                    if row.is_grant:
                        self.grants.use(str(row.id))
                withdrawn = "UPDATE approvals SET state = 'expired' WHERE id = ? AND state = 'pending'"
                for name in own.values():  # another grant may have made the question needless
                    self._db.execute(withdrawn, (name,))
        if _all_approved(rows) and self.on_grant is not None:
            for request, row in zip(requests, rows, strict=True):
                if row.is_grant:
                    self.on_grant(self.grants.named(str(row.id)), request)
        return rows

    def _row(self, question: _BoundQuestion, own: str | None, session: str | None) -> _AnswerRow:
        """The answer to a question: its own, a grant, or an approval that waits for such a call."""
        query = "SELECT id, state, who, why FROM approvals WHERE id = ? OR (bound = ? AND state = 'approved')"
        found = {row[0]: _AnswerRow(*row) for row in self._db.execute(query, (own, question.bound))}
        mine = found.pop(own, _AnswerRow())
        if mine.state in ("approved", "denied"):
            return mine
        if (grant := self.grants.find(question.terms, session)) is not None:
            return _AnswerRow(grant.id, "approved", grant.who, grant.why, is_grant=True)
        return next((row for name, row in found.items() if name not in self._waiters), mine)

    def _hand_out(self, names: list[str], receipt: Receipt | None) -> None:
        state = "used" if receipt is None else "handed_out"
        for name in names:
            self._db.execute("UPDATE approvals SET state = ? WHERE id = ?", (state, name))
            if receipt is not None:
                receipt.id = receipt.id or secrets.token_hex(16)
                self._db.execute("INSERT INTO uses VALUES (?, ?, 'open')", (receipt.id, name))

    # --- acknowledging ----------------------------------------------------------------------

    def acknowledge(self, receipt: str) -> list[Question]:
        """Use up the grants of a receipt, because its caller has the answer.

        A grant that has returned in the meantime is used up, too, and its question is in the returned list. If another
        call has that grant now, this raises `AcknowledgedTooLate`: no grant has two acknowledged uses.
        """
        late, taken = [], False
        with self._changing():
            uses = self._db.execute(
                "SELECT uses.approval, uses.state, approvals.state FROM uses JOIN approvals ON id = approval "
                "WHERE receipt = ?",
                (receipt,),
            ).fetchall()
            for name, use, state in uses:
                if use == "returned" and state in ("handed_out", "used"):
                    taken = True
                    continue
                if use == "returned":
                    late.append(name)
                if state != "expired":
                    self._db.execute("UPDATE approvals SET state = 'used' WHERE id = ?", (name,))
                self._db.execute(
                    "UPDATE uses SET state = 'acknowledged' WHERE receipt = ? AND approval = ?", (receipt, name)
                )
        if not uses:
            raise NoSuchReceipt("there is no such receipt, or it is too old")
        if taken:
            raise AcknowledgedTooLate("the approval had returned by then, and another call has it")
        return self._questions_of(late)

    def time_out(self, receipt: str) -> list[Question]:
        """Return the grants of a receipt that its caller has not acknowledged in time.

        A grant returns once. One that has returned before is used up. The returned list has the questions of both.
        """
        names = []
        with self._changing():
            for name in self._open(receipt):
                before = self._db.execute(
                    "SELECT count(*) FROM uses WHERE approval = ? AND state = 'returned'", (name,)
                ).fetchone()[0]
                use, state = ("unacknowledged", "used") if before else ("returned", "approved")
                self._db.execute("UPDATE uses SET state = ? WHERE receipt = ? AND approval = ?", (use, receipt, name))
                self._db.execute("UPDATE approvals SET state = ? WHERE id = ?", (state, name))
                names.append(name)
        return self._back(names)

    def take_back(self, receipt: str) -> list[Question]:
        """Undo a use whose caller got no answer. This does not count as a return."""
        with self._changing():
            names = self._open(receipt)
            self._db.execute("DELETE FROM uses WHERE receipt = ? AND state = 'open'", (receipt,))
            for name in names:
                self._db.execute("UPDATE approvals SET state = 'approved' WHERE id = ?", (name,))
        return self._back(names)

    def left_open(self) -> list[str]:
        """The receipts without an acknowledgement. When a daemon starts, a killed one has left them."""
        self._expire()
        return [row[0] for row in self._db.execute("SELECT DISTINCT receipt FROM uses WHERE state = 'open'")]

    def _open(self, receipt: str) -> list[str]:
        query = "SELECT approval FROM uses WHERE receipt = ? AND state = 'open'"
        return [row[0] for row in self._db.execute(query, (receipt,))]

    def _back(self, names: list[str]) -> list[Question]:
        """The questions with these ids. Wakes the calls that wait, because their approvals may be back."""
        self._wake_all()
        return self._questions_of(names)

    # --- answering --------------------------------------------------------------------------

    def questions(self, *, every: bool = False) -> list[Question]:
        """The open questions, the oldest first; or every stored one."""
        self._expire()
        return self._read("? OR state = 'pending'", every)

    def _questions_of(self, names: list[str]) -> list[Question]:
        return [question for name in names for question in self._read("id = ?", name)]

    def _read(self, where: str, value: Any) -> list[Question]:
        columns = "id, state, hook, question, step, session, root, asked, wall, who, why"
        query = f"SELECT {columns}, details FROM approvals WHERE {where} ORDER BY asked"  # noqa: S608 (our own words)
        return [self._question(row[:-1], _details(row[-1])) for row in self._db.execute(query, (value,)).fetchall()]

    def _question(self, columns: tuple[Any, ...], details: QuestionDetails) -> Question:
        known = dict(zip(Question.__struct_fields__, columns, strict=False))
        known["step"] = msgspec.json.decode(known["step"])
        scopes = tuple(one for one in GRANT_SCOPES if one == "project" or known["session"])
        refusal = details.terms.refusal
        question = Question(
            **known, call=details.call, rule=details.rule, level=details.level, changes=details.changes,
            changed_by=details.changed_by, waits_until=details.waits_until, waiting=known["id"] in self._waiters,
            grants=scopes if refusal is None else (), no_grant=refusal, note=details.note,
        )  # fmt: skip
        return replace(question, shown=question.digest)

    def question(self, name: str) -> Question:
        """A stored question."""
        self._expire()
        found = self._questions_of([name])
        if not found:
            raise NoSuchQuestion(f"there is no question {name!r}; `fairlead approvals` lists them")
        return found[0]

    def answer(
        self,
        name: str,
        approved: bool,
        who: str | None,
        why: str | None,
        *,
        last: float = VALID_FOR,
        shown: str | None = None,
        grant: GrantRequest | None = None,
    ) -> Question:
        """Answer a question, once. An approval can be used for `last` seconds.

        `shown` is the digest of what the person saw. A `grant` answers later calls, too.
        """
        if not 0 < last <= LONGEST_VALID_FOR:
            raise FairleadError("an approval can be used for a day at most")
        who, why = (None if text is None else redact_text(text) for text in (who, why))
        question = self.question(name)
        if shown is not None and not hmac.compare_digest(shown, question.shown):
            raise NotWhatWasShown(f"question {name!r} is not what was shown; look at it again: `fairlead approvals`")
        if grant is not None and not approved:
            raise FairleadError("a refusal is no grant")
        with self._changing():
            (state, details) = self._db.execute("SELECT state, details FROM approvals WHERE id = ?", (name,)).fetchone()
            if state != "pending":
                raise AlreadyAnswered(f"question {name!r} is {state} already")
            if grant is not None:
                self._grant(question, _details(details).terms, grant, who, why)
            state = "granted" if grant is not None else "approved" if approved else "denied"
            self._db.execute(
                "UPDATE approvals SET state = ?, who = ?, why = ?, wall = ?, uptime = ?, boot = ? WHERE id = ?",
                (state, who, why, *clocks.Expiry.after(last), name),
            )
        if grant is not None:  # it may answer the questions of other calls
            self._wake_all()
        if (waiting := self._waiters.get(name)) is not None:
            waiting.set()
        return self._questions_of([name])[0]

    def _grant(
        self, question: Question, terms: GrantTerms, grant: GrantRequest, who: str | None, why: str | None
    ) -> None:
        if terms.refusal is not None:
            raise FairleadError(f"there is no grant for this question: {terms.refusal}")
        if grant.scope not in question.grants:
            raise FairleadError("the call belongs to no session; grant it for the project")
        agent, step = question.step.get("agent"), question.step
        self.grants.add(
            terms,
            grant,
            Grant(
                new_id(), "active", grant.scope, question.hook, question.rule, question.question, step.get("tool"),
                _summary(step), step.get("cwd"), question.root or "", question.session,
                agent.get("name") if isinstance(agent, dict) else None, step.get("host"), time.time(),
                time.time() + grant.seconds, who, why, 0, None,
            ),
        )  # fmt: skip

    def list_grants(self, *, every: bool = False) -> list[Grant]:
        """The grants in force, or all that are kept."""
        self._expire()
        return self.grants.read(every=every)

    def revoke(self, beginning: str) -> Grant:
        """End a grant at once. The beginning of its id is enough."""
        self._expire()
        with self._changing():
            grant = self.grants.named(beginning)
            if not self.grants.revoke(grant.id):
                raise AlreadyAnswered(f"grant {grant.id} is {grant.state} already")
        return self.grants.named(grant.id)

    def end_session(self, root: str, session: str) -> None:
        """End the grants of a session."""
        self.grants.end_session(root, session)

    def release(self) -> None:
        """End all waits. The questions stay open, and their hosts get that as the answer."""
        self._released = True
        self._wake_all()

    def _wake_all(self) -> None:
        for waiting in self._waiters.values():
            waiting.set()

    def _expire(self) -> None:
        """Expire by the earlier of two clocks: one can be set back, one stops with the machine."""
        self._db.execute(
            "UPDATE approvals SET state = 'expired' WHERE state IN ('pending', 'approved') "
            "AND (wall <= ? OR uptime <= ? OR boot <> ?)",
            (time.time(), clocks.uptime(), clocks.boot_id()),
        )
        self._db.execute("DELETE FROM approvals WHERE state <> 'pending' AND wall < ?", (time.time() - 86400,))
        self._db.execute("DELETE FROM uses WHERE approval NOT IN (SELECT id FROM approvals)")
        self.grants.expire()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


async def _shown(request: ApprovalRequest) -> QuestionView:
    """The question, the step and its changes as the user sees them. Redacting a large step is slow."""
    call, plain = active_offload.get(), replace(request, verdicts=())  # which no other process needs
    return show_all(plain) if call is None else await call(show_with, current(), current_base(), plain)


def _details(stored: bytes | None) -> QuestionDetails:
    return QuestionDetails() if stored is None else msgspec.json.decode(stored, type=QuestionDetails)


def _encode(details: QuestionDetails) -> bytes:
    return msgspec.json.encode(details, enc_hook=str)


def _summary(step: dict[str, Any]) -> str:
    """The call of a grant, for the list of grants: the command, or all arguments."""
    target = step.get("target")
    command = target.get("command") if isinstance(target, dict) and step.get("kind") == "shell" else None
    return str(command) if command else msgspec.json.encode(step.get("args") or {}, enc_hook=str).decode()


def _all_approved(rows: list[_AnswerRow]) -> bool:
    return all(row.state == "approved" for row in rows)


def _answer(row: _AnswerRow, pending: str) -> Approval:
    """The answer to a question as an `Approval`."""
    if row.state == "approved":
        return Approval("allow", row.who, row.why)
    if row.state == "denied":
        return Approval("deny", row.who, row.why)
    if row.state == "gone":
        return Approval("deny", None, "the caller has hung up")
    if row.state == "pending":
        return Approval("deny", None, f"{pending}; try again once `fairlead approvals` has an answer")
    return Approval("deny", None, "its approval has expired, or another call has used it; try again")


def binding(request: ApprovalRequest, about: ApprovalContext, key: bytes) -> str:
    """A digest of what an approval is for: the question, and what a retry of the step repeats.

    The digest is keyed, so that a reader of the file cannot guess a secret of the step and check the guess.
    """
    step = {name: value for name, value in envelope(request.step).items() if name not in _VOLATILE}
    agent = request.step.agent
    bound = {**step, "agent": agent and agent.name, "root": about.root, "policy": about.policy}
    bound |= {"hook": request.hook, "question": request.question}
    return hmac.new(key, msgspec.json.encode(bound, order="sorted", enc_hook=str), "sha256").hexdigest()


def _key_of(path: Path) -> bytes:
    """The key in the file beside this one. The first call makes it."""
    with suppress(FileExistsError):
        descriptor = os.open(path.with_suffix(".key"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as written:
            written.write(os.urandom(32))
    return path.with_suffix(".key").read_bytes()
