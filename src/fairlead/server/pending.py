"""Questions to a human that outlive the step that asked, and what the answers allow.

A question has an id that cannot be guessed, and is answered once. An approval that comes after its step was denied
is a grant: the very same call may run, once, soon, in the same session and under the same policy. A call about which
several hooks ask needs a grant for each question; they are used together, or not at all.

A grant is used up by a caller that has received the answer. It is handed out with a receipt, which the caller
acknowledges. Without that, the grant returns, once:

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
from ..errors import FairleadError
from ..places import make_private, refuse_remote
from ..redaction import current, current_base, redact_text
from ..showing import show, show_with
from ..threads import elsewhere
from ..wire import envelope

LIFE = 3600.0
"""Seconds for which a question can be answered."""
GRANT = 600.0
"""Seconds for which a late approval can be used."""
LONGEST = 86400.0
LIMIT = 1000
"""Questions that the daemon's own user may have open at once; each other caller may have a quarter of that."""
_VOLATILE = ("turn_id", "request_id", "checkpoint_id", "call_id", "sequence", "metadata", "origin")

State = Literal["pending", "approved", "handed_out", "denied", "used", "expired"]

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
# A use is open, acknowledged, returned, or unacknowledged: not acknowledged either, but the grant had returned before.


class Question(msgspec.Struct, frozen=True):
    """A question as it is shown. Secrets in its step are redacted."""

    id: str
    state: State
    hook: str | None
    question: str | None
    step: dict[str, Any]
    session: str | None
    root: str | None
    asked: float
    expires: float
    who: str | None = None
    why: str | None = None


Gone = Callable[[], Coroutine[Any, Any, None]]
"""Waits until a caller has hung up."""
HungUp = Callable[[], bool]
"""Whether a caller has hung up."""


class Receipt(msgspec.Struct):
    """What a caller acknowledges, if approvals were used for its answer: then it has an id that cannot be guessed."""

    id: str | None = None


class Asking(msgspec.Struct, frozen=True):
    """What a request says of its questions: which project, which policy, and how long its host waits."""

    root: str = ""
    policy: str = ""
    deadline: float = 25.0
    by_host: bool = False
    """Whether the host puts the question to whoever sits before it."""
    receipt: Receipt | None = None
    """None if what is used is used up at once."""
    gone: Gone | None = None


asking: ContextVar[Asking] = ContextVar("fairlead_asking", default=Asking())  # noqa: B039 (it is frozen)


class AnsweredAlready(FairleadError):
    """A question is answered once."""


class NoSuchQuestion(FairleadError):
    """Nobody asked that, or it has expired."""


class NoSuchReceipt(FairleadError):
    """Nothing was handed out with that."""


class AcknowledgedTooLate(FairleadError):
    """The grant has returned, and another call has it."""


class _Row(NamedTuple):
    """What there is for a question."""

    id: str | None = None
    state: str = "expired"
    who: str | None = None
    why: str | None = None


class Pending:
    """The open questions of a user, in a file, so that they survive a restart."""

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
        """Use the grants for this very call, if every question has one; otherwise ask, and wait as long as the host."""
        about = asking.get()
        bounds = [binding(request, about, self._key) for request in requests]
        rows = self._use(bounds, {}, about)
        if about.by_host and not _all_approved(rows):
            return [Approval("ask", request.step.host) for request in requests]
        if not _all_approved(rows):
            asked = zip(requests, bounds, rows, strict=True)
            unanswered = [(request, bound) for request, bound, row in asked if row.state != "approved"]
            shown = [await _shown(request) for request, _ in unanswered]
            both = zip(unanswered, shown, strict=True)
            own = {bound: self._ask(request, about, bound, *texts) for (request, bound), texts in both}
            rows = await self._wait(own, bounds, about)
        pending = ", ".join(f"approval {row.id} pending" for row in rows if row.state == "pending")
        return [_answer(row, pending) for row in rows]

    async def _wait(self, own: dict[str, str], bounds: list[str], about: Asking) -> list[_Row]:
        """Wait until all questions are answered, one is refused, the deadline is over, or the caller has hung up."""
        event = asyncio.Event()
        self._waiters |= dict.fromkeys(own.values(), event)
        gone = None if about.gone is None else asyncio.ensure_future(about.gone())
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
        return [_Row(state="gone")] * len(bounds)

    def _ask(
        self, request: ApprovalRequest, about: Asking, bound: str, question: str | None, shown: dict[str, Any]
    ) -> str:
        """Write the question down. The same question that is open already is not asked twice."""
        self._expire()
        row = self._db.execute("SELECT id FROM approvals WHERE bound = ? AND state = 'pending'", (bound,)).fetchone()
        if row is not None and row[0] not in self._waiters:
            return str(row[0])
        self._make_room(about)
        name = secrets.token_hex(16)  # no dash to begin with: it is typed at a command line
        step = msgspec.json.encode(shown)
        self._db.execute(
            "INSERT INTO approvals VALUES (?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
            (name, bound, request.hook, question, step, request.step.session_id, about.root, time.time(), *_end(LIFE)),
        )
        return name

    def _make_room(self, about: Asking) -> None:
        """Raise if there are too many open questions, of all callers or of this one: none keeps others from asking."""
        caller = about.root.partition("/")[0]  # empty for the daemon's own user
        count = "SELECT count(*) FROM approvals WHERE state = 'pending'"
        (number,) = self._db.execute(count).fetchone()
        own_roots = f"{count} AND substr(root, 1, instr(root, '/') - 1) = ?"
        (own,) = self._db.execute(own_roots, (caller,)).fetchone()
        if own >= (LIMIT // 4 if caller else LIMIT) or number >= 4 * LIMIT:
            raise FairleadError(f"{own} questions are open already; answer some: `fairlead approvals`")

    def _use(self, bounds: list[str], own: dict[str, str], about: Asking) -> list[_Row]:
        """Use the grants of a call, if there is one for every question; otherwise, say what there is for each.

        `own` are the questions that this call has put itself, by what they are bound to. A grant that another call
        waits for is that call's.
        """
        self._expire()
        with self._changing():
            rows = [self._row(bound, own.get(bound)) for bound in bounds]
            if _all_approved(rows):
                self._hand_out([str(row.id) for row in rows], about.receipt)
                withdrawn = "UPDATE approvals SET state = 'expired' WHERE id = ? AND state = 'pending'"
                for name in own.values():  # another grant may have come in place of an answer
                    self._db.execute(withdrawn, (name,))
        return rows

    def _row(self, bound: str, own: str | None) -> _Row:
        query = "SELECT id, state, who, why FROM approvals WHERE id = ? OR (bound = ? AND state = 'approved')"
        found = {row[0]: _Row(*row) for row in self._db.execute(query, (own, bound))}
        mine = found.pop(own, _Row())
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
        """Use up what was handed out with a receipt: its caller has the answer.

        A grant that has returned meanwhile is used up all the same, and its question is in the list that this returns.
        If another call has such a grant by now, `AcknowledgedTooLate` is raised: no grant has two acknowledged uses.
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
            raise NoSuchReceipt("nothing was handed out with this receipt, or it was long ago")
        if taken:
            raise AcknowledgedTooLate("the approval had returned by then, and another call has it")
        return self._questions_of(late)

    def time_out(self, receipt: str) -> list[Question]:
        """Return what was handed out with a receipt that no caller has acknowledged in time.

        A grant returns once. One that has returned before is used up. The list has the questions of both.
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
        """Undo a use whose caller was never answered. It does not count as a return."""
        with self._changing():
            names = self._open(receipt)
            self._db.execute("DELETE FROM uses WHERE receipt = ? AND state = 'open'", (receipt,))
            for name in names:
                self._db.execute("UPDATE approvals SET state = 'approved' WHERE id = ?", (name,))
        return self._back(names)

    def left_open(self) -> list[str]:
        """The receipts that no caller has acknowledged yet. When a daemon starts, they are of one that was killed."""
        self._expire()
        return [row[0] for row in self._db.execute("SELECT DISTINCT receipt FROM uses WHERE state = 'open'")]

    def _open(self, receipt: str) -> list[str]:
        query = "SELECT approval FROM uses WHERE receipt = ? AND state = 'open'"
        return [row[0] for row in self._db.execute(query, (receipt,))]

    def _back(self, names: list[str]) -> list[Question]:
        """The questions of these names. Calls that wait look again: their grants may be back."""
        for waiting in self._waiters.values():
            waiting.set()
        return self._questions_of(names)

    # --- answering --------------------------------------------------------------------------

    def questions(self, *, every: bool = False) -> list[Question]:
        """The open questions, the oldest first; or all that are still known."""
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
        """Answer a question, once. `last` is for how many seconds an approval can be used."""
        if not 0 < last <= LONGEST:
            raise FairleadError("an approval can be used for a day at most")
        who, why = (None if text is None else redact_text(text) for text in (who, why))
        self._expire()
        with self._changing():
            row = self._db.execute("SELECT state FROM approvals WHERE id = ?", (name,)).fetchone()
            if row is None:
                raise NoSuchQuestion(f"there is no question {name!r}; `fairlead approvals` lists them")
            if row[0] != "pending":
                raise AnsweredAlready(f"question {name!r} is {row[0]} already")
            self._db.execute(
                "UPDATE approvals SET state = ?, who = ?, why = ?, wall = ?, uptime = ?, boot = ? WHERE id = ?",
                ("approved" if approved else "denied", who, why, *_end(last), name),
            )
        if (waiting := self._waiters.get(name)) is not None:
            waiting.set()
        return self._questions_of([name])[0]

    def release(self) -> None:
        """Let nobody wait any longer: the questions stay open, and their hosts are told so."""
        self._released = True
        for waiting in self._waiters.values():
            waiting.set()

    def _expire(self) -> None:
        """Whichever clock ends first: one can be set back, the other stands still while the machine is off."""
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
    """The question and the step as a human is shown them. Of a large step, that takes long."""
    call = elsewhere.get()
    return show(request) if call is None else await call(show_with, current(), current_base(), request)


def _all_approved(rows: list[_Row]) -> bool:
    return all(row.state == "approved" for row in rows)


def _answer(row: _Row, pending: str) -> Approval:
    """What there is for a question, as an answer."""
    if row.state == "approved":
        return Approval("allow", row.who, row.why)
    if row.state == "denied":
        return Approval("deny", row.who, row.why)
    if row.state == "gone":
        return Approval("deny", None, "the caller has gone")
    if row.state == "pending":
        return Approval("deny", None, f"{pending}; try again once `fairlead approvals` has an answer")
    return Approval("deny", None, "its approval has expired, or another call has used it; try again")


def binding(request: ApprovalRequest, about: Asking, key: bytes) -> str:
    """A digest of what an approval is for: the question, and the final step without what differs in a retry.

    It has a key, so that nobody who reads the file can try out which secret was in a step.
    """
    step = {name: value for name, value in envelope(request.step).items() if name not in _VOLATILE}
    agent = request.step.agent
    bound = {**step, "agent": agent and agent.name, "root": about.root, "policy": about.policy}
    bound |= {"hook": request.hook, "question": request.question}
    return hmac.new(key, msgspec.json.encode(bound, order="sorted", enc_hook=str), "sha256").hexdigest()


def _key_of(path: Path) -> bytes:
    """The key beside a file, made with it."""
    with suppress(FileExistsError):
        descriptor = os.open(path.with_suffix(".key"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as written:
            written.write(os.urandom(32))
    return path.with_suffix(".key").read_bytes()


def _end(seconds: float) -> tuple[float, float, str]:
    return time.time() + seconds, _uptime() + seconds, _boot()


def _uptime() -> float:
    """Seconds since the machine was started, its sleep included where the system counts that."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _boot() -> str:
    """What tells one start of the machine from another."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return _boot_of_macos() if sys.platform == "darwin" else ""


def _boot_of_macos() -> str:
    from subprocess import run

    shown = run(["/usr/sbin/sysctl", "-n", "kern.bootsessionuuid"], capture_output=True, text=True, check=False)
    return shown.stdout.strip()
