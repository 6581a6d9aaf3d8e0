"""Approvals: questions that outlive their step, and the grants that answers give.

A question has an id that cannot be guessed, and is answered once. An approval that comes after its step was denied
is a grant: the same call may run once, soon, in the same session and under the same policy. If several hooks ask about
a call, it needs a grant for each question; they are used together, or not at all.

A grant is used up when its caller has received the answer. The daemon hands it out with a receipt, which the caller
acknowledges (see `Service._receipt`). If the caller dies before that, the grant returns, once:

    pending -> approved -> handed_out -> used             acknowledged
                  ^            |
                  '------------'                          not acknowledged in time; the second time it is used, too
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import sqlite3
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from ..approvals import Approval, ApprovalRequest
from ..engine.threads import active_offload
from ..errors import FairleadError
from ..paths import make_private, refuse_remote
from ..redaction.masking import show, show_with
from ..redaction.redactor import current, current_base, redact_text
from ..wire.steps import envelope

LIFE = 3600.0
"""Seconds in which a question can be answered."""
GRANT = 600.0
"""Seconds in which a late approval can be used."""
MAX_GRANT = 86400.0
LIMIT = 1000
"""Open questions of the daemon's own user. Each other caller may have a quarter of that."""
_VOLATILE = ("turn_id", "request_id", "checkpoint_id", "call_id", "sequence", "metadata", "origin")

ApprovalState = Literal["pending", "approved", "handed_out", "denied", "used", "expired"]

_TABLES = """
CREATE TABLE IF NOT EXISTS approvals (
  id TEXT PRIMARY KEY, bound TEXT NOT NULL, state TEXT NOT NULL, hook TEXT, question TEXT, step BLOB NOT NULL,
  session TEXT, root TEXT, asked REAL NOT NULL, wall REAL NOT NULL, uptime REAL NOT NULL, boot TEXT NOT NULL,
  who TEXT, why TEXT
);
CREATE INDEX IF NOT EXISTS by_bound ON approvals (bound, state);
CREATE TABLE IF NOT EXISTS uses (
  receipt TEXT NOT NULL, approval TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (receipt, approval)
);
CREATE INDEX IF NOT EXISTS by_approval ON uses (approval, state);
"""
# A use is open, acknowledged, returned, or unacknowledged (also not acknowledged, but its grant had returned before).


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


approval_context: ContextVar[ApprovalContext] = ContextVar("fairlead_approval_context", default=ApprovalContext())  # noqa: B039 (it is frozen)


class AlreadyAnswered(FairleadError):
    """The question has an answer already."""


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
            self._key = _key_of(path)
        except sqlite3.Error as error:
            raise FairleadError(f"{path} cannot be used: {error}") from None
        self._waiters: dict[str, asyncio.Event] = {}
        self._released = False

    def close(self) -> None:
        self._db.close()

    # --- asking -----------------------------------------------------------------------------

    async def approve(self, request: ApprovalRequest) -> Approval:
        return (await self.approve_all([request]))[0]

    async def approve_all(self, requests: Sequence[ApprovalRequest]) -> list[Approval]:
        """Use the grants of this call if every question has one; otherwise ask, and wait."""
        about = approval_context.get()
        bounds = [binding(request, about, self._key) for request in requests]
        rows = self._use(bounds, {}, about)
        if about.by_host and not _all_approved(rows):
            return [Approval("ask", request.step.host) for request in requests]
        if not _all_approved(rows):
            rows_of = zip(requests, bounds, rows, strict=True)
            unanswered = [(request, bound) for request, bound, row in rows_of if row.state != "approved"]
            shown = [await _shown(request) for request, _ in unanswered]
            both = zip(unanswered, shown, strict=True)
            own = {bound: self._ask(request, about, bound, *texts) for (request, bound), texts in both}
            rows = await self._wait(own, bounds, about)
        pending = ", ".join(f"approval {row.id} pending" for row in rows if row.state == "pending")
        return [_answer(row, pending) for row in rows]

    async def _wait(self, own: dict[str, str], bounds: list[str], about: ApprovalContext) -> list[_AnswerRow]:
        """Wait until all are answered, one is denied, time is up, or the caller hangs up."""
        event = asyncio.Event()
        self._waiters |= dict.fromkeys(own.values(), event)
        gone = None if about.wait_for_hang_up is None else asyncio.ensure_future(about.wait_for_hang_up())
        if gone is not None:
            gone.add_done_callback(lambda _: event.set())
        try:
            async with asyncio.timeout(max(about.deadline, 0)):
                while gone is None or not gone.done():
                    rows = self._use(bounds, own, about)
                    if self._released or not any(row.state == "pending" for row in rows):
                        return rows
                    if any(row.state == "denied" for row in rows):
                        return rows
                    await event.wait()
                    event.clear()
        except TimeoutError:
            return self._use(bounds, own, about)
        finally:
            for name in own.values():
                del self._waiters[name]
            if gone is not None:
                gone.cancel()
        return [_AnswerRow(state="gone")] * len(bounds)

    def _ask(
        self, request: ApprovalRequest, about: ApprovalContext, bound: str, question: str | None, shown: dict[str, Any]
    ) -> str:
        """Store the question. A question that is open already is not stored twice."""
        self._expire()
        row = self._db.execute("SELECT id FROM approvals WHERE bound = ? AND state = 'pending'", (bound,)).fetchone()
        if row is not None and row[0] not in self._waiters:
            return str(row[0])
        self._make_room(about)
        name = secrets.token_hex(16)  # never begins with a dash, so it can be typed at a command line
        step = msgspec.json.encode(shown)
        self._db.execute(
            "INSERT INTO approvals VALUES (?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
            (name, bound, request.hook, question, step, request.step.session_id, about.root, time.time(), *_end(LIFE)),
        )
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

    def _use(self, bounds: list[str], own: dict[str, str], about: ApprovalContext) -> list[_AnswerRow]:
        """Use the grants of a call if there is one for every question; return the answer to each.

        `own` are the questions that this call has stored, by binding. A grant that another call waits for belongs to
        that call.
        """
        self._expire()
        with self._changing():
            rows = [self._row(bound, own.get(bound)) for bound in bounds]
            if _all_approved(rows):
                self._hand_out([str(row.id) for row in rows], about.receipt)
                withdrawn = "UPDATE approvals SET state = 'expired' WHERE id = ? AND state = 'pending'"
                for name in own.values():  # another grant may have made the question needless
                    self._db.execute(withdrawn, (name,))
        return rows

    def _row(self, bound: str, own: str | None) -> _AnswerRow:
        query = "SELECT id, state, who, why FROM approvals WHERE id = ? OR (bound = ? AND state = 'approved')"
        found = {row[0]: _AnswerRow(*row) for row in self._db.execute(query, (own, bound))}
        mine = found.pop(own, _AnswerRow())
        if mine.state in ("approved", "denied"):
            return mine
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
        """The questions with these ids. Wakes the calls that wait, because their grants may be back."""
        for waiting in self._waiters.values():
            waiting.set()
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
        query = f"SELECT {columns} FROM approvals WHERE {where} ORDER BY asked"  # noqa: S608 (our own words)
        names = Question.__struct_fields__
        found = [dict(zip(names, row, strict=True)) for row in self._db.execute(query, (value,))]
        return [Question(**question | {"step": msgspec.json.decode(question["step"])}) for question in found]

    def answer(self, name: str, approved: bool, who: str | None, why: str | None, *, last: float = GRANT) -> Question:
        """Answer a question, once. An approval can be used for `last` seconds."""
        if not 0 < last <= MAX_GRANT:
            raise FairleadError("an approval can be used for a day at most")
        who, why = (None if text is None else redact_text(text) for text in (who, why))
        self._expire()
        with self._changing():
            row = self._db.execute("SELECT state FROM approvals WHERE id = ?", (name,)).fetchone()
            if row is None:
                raise NoSuchQuestion(f"there is no question {name!r}; `fairlead approvals` lists them")
            if row[0] != "pending":
                raise AlreadyAnswered(f"question {name!r} is {row[0]} already")
            self._db.execute(
                "UPDATE approvals SET state = ?, who = ?, why = ?, wall = ?, uptime = ?, boot = ? WHERE id = ?",
                ("approved" if approved else "denied", who, why, *_end(last), name),
            )
        if (waiting := self._waiters.get(name)) is not None:
            waiting.set()
        return self._questions_of([name])[0]

    def release(self) -> None:
        """End all waits. The questions stay open, and their hosts get that as the answer."""
        self._released = True
        for waiting in self._waiters.values():
            waiting.set()

    def _expire(self) -> None:
        """Expire by the earlier of two clocks: one can be set back, one stops with the machine."""
        self._db.execute(
            "UPDATE approvals SET state = 'expired' WHERE state IN ('pending', 'approved') "
            "AND (wall <= ? OR uptime <= ? OR boot <> ?)",
            (time.time(), _uptime(), _boot()),
        )
        self._db.execute("DELETE FROM approvals WHERE state <> 'pending' AND wall < ?", (time.time() - 86400,))
        self._db.execute("DELETE FROM uses WHERE approval NOT IN (SELECT id FROM approvals)")

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


async def _shown(request: ApprovalRequest) -> tuple[str | None, dict[str, Any]]:
    """The question and the step as the user sees them. Redacting a large step is slow."""
    call = active_offload.get()
    return show(request) if call is None else await call(show_with, current(), current_base(), request)


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


def _end(seconds: float) -> tuple[float, float, str]:
    return time.time() + seconds, _uptime() + seconds, _boot()


def _uptime() -> float:
    """Seconds since the machine was started, including sleep where the system counts that."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _boot() -> str:
    """The id of this start of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return _boot_of_macos() if sys.platform == "darwin" else ""


def _boot_of_macos() -> str:
    from subprocess import run

    shown = run(["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=False)
    return shown.stdout.strip()
