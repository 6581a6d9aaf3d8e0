"""Questions to a human that outlive the step that asked, and what the answers allow.

A question has an id that cannot be guessed, and is answered once. An approval that comes after its step was denied
is a grant: the very same call may run, once, soon, in the same session and under the same policy.
"""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

import msgspec

from ..approvals import Approval, ApprovalRequest
from ..errors import FairleadError
from ..places import make_private, refuse_remote
from ..redaction import redact_text
from ..showing import show
from ..wire import envelope

LIFE = 3600.0
"""Seconds for which a question can be answered."""
GRANT = 600.0
"""Seconds for which a late approval can be used."""
LONGEST = 86400.0
LIMIT = 1000
"""Questions that may be open at once."""
_VOLATILE = ("turn_id", "request_id", "checkpoint_id", "call_id", "sequence", "metadata", "origin")

State = Literal["pending", "approved", "denied", "used", "expired"]

_TABLES = """
CREATE TABLE IF NOT EXISTS approvals (
  id TEXT PRIMARY KEY, bound TEXT NOT NULL, state TEXT NOT NULL, hook TEXT, question TEXT, step BLOB NOT NULL,
  session TEXT, root TEXT, asked REAL NOT NULL, wall REAL NOT NULL, uptime REAL NOT NULL, boot TEXT NOT NULL,
  who TEXT, why TEXT
);
CREATE INDEX IF NOT EXISTS by_bound ON approvals (bound, state);
"""


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


class Asking(msgspec.Struct, frozen=True):
    """What a request says of its questions: which project, which policy, and how long its host waits."""

    root: str = ""
    policy: str = ""
    deadline: float = 25.0
    by_host: bool = False
    """Whether the host puts the question to whoever sits before it."""


asking: ContextVar[Asking] = ContextVar("fairlead_asking", default=Asking())  # noqa: B039 (it is frozen)


class AnsweredAlready(FairleadError):
    """A question is answered once."""


class NoSuchQuestion(FairleadError):
    """Nobody asked that, or it has expired."""


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
        self._waiters: dict[str, asyncio.Future[None]] = {}

    def close(self) -> None:
        self._db.close()

    # --- asking -----------------------------------------------------------------------------

    async def approve(self, request: ApprovalRequest) -> Approval:
        """Use a grant if there is one for this very call; otherwise ask, and wait as long as the host does."""
        about = asking.get()
        bound = binding(request, about, self._key)
        granted = self._consume(bound)
        if granted is not None:
            return granted
        if about.by_host:
            return Approval("ask", request.step.host)
        name = self._ask(request, about, bound)
        waiter = self._waiters[name] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(max(about.deadline, 0)):
                await waiter
        except TimeoutError:
            pass
        finally:
            del self._waiters[name]
        return self._answer(name, bound)

    def _ask(self, request: ApprovalRequest, about: Asking, bound: str) -> str:
        """Write the question down. The same question that is open already is not asked twice."""
        self._expire()
        row = self._db.execute("SELECT id FROM approvals WHERE bound = ? AND state = 'pending'", (bound,)).fetchone()
        if row is not None and row[0] not in self._waiters:
            return str(row[0])
        (number,) = self._db.execute("SELECT count(*) FROM approvals WHERE state = 'pending'").fetchone()
        if number >= LIMIT:
            raise FairleadError(f"{LIMIT} questions are open already; answer some: `fairlead approvals`")
        name = secrets.token_hex(16)  # no dash to begin with: it is typed at a command line
        question, shown = show(request)
        step = msgspec.json.encode(shown)
        self._db.execute(
            "INSERT INTO approvals VALUES (?, ?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)",
            (name, bound, request.hook, question, step, request.step.session_id, about.root, time.time(), *_end(LIFE)),
        )
        return name

    def _answer(self, name: str, bound: str) -> Approval:
        """What has come of a question by now."""
        with self._changing():
            row = self._db.execute("SELECT state, who, why FROM approvals WHERE id = ?", (name,)).fetchone()
            state, who, why = row if row is not None else ("expired", None, None)
            if state == "approved":
                self._db.execute("UPDATE approvals SET state = 'used' WHERE id = ?", (name,))
                return Approval("allow", who, why)
        if state == "denied":
            return Approval("deny", who, why)
        return Approval("deny", None, f"approval {name} pending; try again once `fairlead approvals` has an answer")

    def _consume(self, bound: str) -> Approval | None:
        """The grant for a call, if there is one. It is gone then."""
        self._expire()
        with self._changing():
            row = self._db.execute(
                "SELECT id, who, why FROM approvals WHERE bound = ? AND state = 'approved' LIMIT 1", (bound,)
            ).fetchone()
            if row is None:
                return None
            self._db.execute("UPDATE approvals SET state = 'used' WHERE id = ?", (row[0],))
        return Approval("allow", row[1], row[2])

    # --- answering --------------------------------------------------------------------------

    def questions(self, *, every: bool = False) -> list[Question]:
        """The open questions, the oldest first; or all that are still known."""
        self._expire()
        columns = "id, state, hook, question, step, session, root, asked, wall, who, why"
        query = f"SELECT {columns} FROM approvals WHERE ? OR state = 'pending' ORDER BY asked"  # noqa: S608
        rows = self._db.execute(query, (every,))
        names = Question.__struct_fields__
        found = [dict(zip(names, row, strict=True)) for row in rows]
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
        waiter = self._waiters.get(name)
        if waiter is not None and not waiter.done():
            waiter.set_result(None)
        return next(question for question in self.questions(every=True) if question.id == name)

    def release(self) -> None:
        """Let nobody wait any longer: the questions stay open, and their hosts are told so."""
        for waiter in self._waiters.values():
            if not waiter.done():
                waiter.set_result(None)

    def _expire(self) -> None:
        """Whichever clock ends first: one can be set back, the other stands still while the machine is off."""
        self._db.execute(
            "UPDATE approvals SET state = 'expired' WHERE state IN ('pending', 'approved') "
            "AND (wall <= ? OR uptime <= ? OR boot <> ?)",
            (time.time(), _uptime(), _boot()),
        )
        self._db.execute("DELETE FROM approvals WHERE state <> 'pending' AND wall < ?", (time.time() - 86400,))

    @contextmanager
    def _changing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")


def binding(request: ApprovalRequest, about: Asking, key: bytes) -> str:
    """A digest of what an approval is for: the final step, without what differs in an identical retry.

    It has a key, so that nobody who reads the file can try out which secret was in a step.
    """
    step = {name: value for name, value in envelope(request.step).items() if name not in _VOLATILE}
    agent = request.step.agent
    bound = {**step, "agent": agent and agent.name, "root": about.root, "policy": about.policy}
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
        return ""
