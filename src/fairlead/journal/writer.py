"""The journal's writer takes decisions off the hot path and writes them in batches.

To keep a decision is to put it into a queue. The writer's thread collects a batch, redacts it (unless the daemon has
prepared the records before), chains and commits it. If the queue is full, or durability is "full", the dispatch waits
for the commit.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from contextvars import ContextVar
from itertools import count
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from ..engine.run import active_session
from ..paths import journal_file
from ..peers import user_name
from ..redaction.logs import logger
from ..redaction.redactor import Scope, current_scope, redactor_of
from .anchor import Anchor, AnchorSender
from .entry import VERSION, Entry, Invoke, make_entry
from .errors import JournalError, NewerJournal
from .exactness import inexact
from .facts import context_facts, decision_facts, enforcement_of, project_facts, with_current_state
from .policy import policy_of
from .shutdown import install_exit_handlers, register
from .spool import Spool, read_spools
from .store import Head, JournalFile, write_error
from .writers import WriterMark, crashed_writers

if TYPE_CHECKING:
    from ..decision import Decision
    from ..engine.chain import DecisionSink, Table
    from ..redaction.redactor import Redactor

Durability = Literal["normal", "full"]
MAX_SIZE = 1 << 30
MAX_AGE = 30 * 86400.0
QUEUE_LIMIT = 4096
"""Decisions in the queue. Beyond that, a dispatch waits."""
QUEUE_BYTES = 64 << 20
"""Bytes of prepared records in the queue. Beyond that, the dispatch of a large step waits."""
BATCH = 512
QUIET_DELAY, MAX_DELAY = 0.03, 0.5
"""Seconds without a new decision after which a batch is written, and the longest time to collect one."""
ENTRIES_PER_SLICE, SLICE_PAUSE = 8, 0.0001
"""Records that are prepared at a time, and seconds of sleep in between, if no dispatch waits for them."""
PAUSED_BATCH = 128
"""Records of the largest batch that is written with pauses. Other processes wait for the lock during them."""
RETRY_DELAY = 0.5
"""Seconds until a failed write is tried again."""
PRUNE_INTERVAL = 600.0
"""Seconds between two checks whether there is something to prune."""


_OWN_NOTES = frozenset({"pruned", "damaged", "crashed", "lost", "schema", "erased"})
_OWN_WORDS = frozenset({
    "v", "id", "at", "kind", "took", "step", "control", "left", "said", "runs", "winner", "policy", "policy_id",
    "redacted", "unwritable", "effect", "enforcement", "can", "lenient", "variables", "machine", "lossy",
    "unanswered",
})  # fmt: skip


class QueuedRecord(msgspec.Struct):
    """A record to write, and the future of the dispatch that waits for it."""

    facts: Callable[[], dict[str, Any]] | None  # None once prepared: see `_prepare_entry`
    table: Any = None
    number: int = 0
    done: Future[None] | None = None
    entry: Entry | None = None  # once prepared: a retry does not prepare it again
    scope: Scope | None = None  # of its request, for another thread that prepares it

    @property
    def is_flush(self) -> bool:
        """Whether this is no record but the end of those that `flush` waits for."""
        return self.facts is None and self.entry is None


class DeferredRecords(msgspec.Struct):
    """Records that the caller prepares with `prepare_with` and then queues with `enqueue`."""

    records: list[QueuedRecord] = []
    closed: bool = False  # the records were queued; tasks that still run in this context queue their own


deferred_records: ContextVar[DeferredRecords | None] = ContextVar("fairlead_deferred_records", default=None)


class Journal:
    """Records every decision of its hooks: `Hooks(journal=Journal())`.

    `durability="full"` commits a decision before the host acts on it. `on_failure` says what happens if the journal
    cannot be written: with "open" the agent goes on and the log has the error, with "closed" a dispatch raises
    `JournalError`.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        durability: Durability = "normal",
        on_failure: Literal["open", "closed"] | None = None,
        max_size: int = MAX_SIZE,
        max_age: float = MAX_AGE,
        anchor: Anchor | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        if durability not in ("normal", "full"):
            raise JournalError(f'durability is "normal" or "full", not {durability!r}')
        if on_failure not in (None, "open", "closed"):
            raise JournalError(f'on_failure is "open" or "closed", not {on_failure!r}')
        self.path = Path(path if path is not None else journal_file()).absolute()
        self.durability: Durability = durability
        self.on_failure = on_failure or default_on_failure(durability)
        self.max_size = max_size
        self.max_age = max_age
        self.lost = 0
        self.error: JournalError | None = None
        self._anchor = anchor
        self._redactor = redactor
        self._start()
        register(self)

    def _start(self) -> None:
        """Start empty: in a new journal, and in a child process, which has no threads of its parent."""
        self.writer = os.urandom(5).hex()
        self._pid = os.getpid()
        self._numbers = count(1)
        self._queue: deque[QueuedRecord] = deque()
        self._asleep = True
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._store: JournalFile | Spool | None = None
        self._mark: WriterMark | None = None
        self._anchoring: AnchorSender | None = None
        self._kept_head: Head | None = None
        self._pruned_at = 0.0
        self._grown = 0  # bytes since the last pruning
        self._origin = {"machine": gethostname(), "user": user_name(os.geteuid())}
        self._key: bytes | None = None
        self._starting = threading.RLock()  # a signal handler may close the journal while it is held
        self._writing = (
            threading.RLock()
        )  # held while the file is in use, because SQLite does not survive a fork in the middle

    def __repr__(self) -> str:
        return f"<journal {self.path}>"

    # --- queueing ---------------------------------------------------------------------------

    def sink_for(self, table: Table) -> DecisionSink:
        """The function that a table's chains call with each decision and the time when it began."""
        time_ns, monotonic, hooks = time.time_ns, time.monotonic, table.hooks

        def keep(decision: Decision[Any], began: float) -> Future[None] | None:
            took = monotonic() - began  # before `at`: the process may be held up in between, and a step must not
            at = time_ns()  # seem to begin before the one that ended before it
            session, switch = active_session.get(), hooks.switch
            context = None
            if session is not None:  # the values now: they may change before the record is written
                context = (session.parent, session.capabilities, session.lenient, session.caller)
            mode = None if hooks.enforce and (switch is None or switch()) else enforcement_of(switch)
            state = getattr(decision.step, "state", None)
            lossy: list[list[str]] = []
            if state is not None:  # hooks may edit it in place before the record is written
                lossy = inexact(state, "step.state")
                decision = with_current_state(decision, state)
            return self._put(
                lambda: decision_facts(decision, at, took) | context_facts(decision, context, mode, lossy), table
            )

        return keep

    def __call__(self, decision: Decision[Any]) -> None:
        """Record a decision that another program has made."""
        at = time.time_ns()
        self._put(lambda: decision_facts(decision, at, None))

    def keep_facts(self, facts: dict[str, Any]) -> None:
        """Record some facts. A record whose id is in the journal already is skipped."""
        self._put(lambda: facts)

    def note(self, note: str, **about: Any) -> None:
        """Record something that is not a decision, such as a pause."""
        for word in (*(_OWN_WORDS & about.keys()), *(_OWN_NOTES & {note})):
            raise JournalError(f"a note cannot say {word!r}, which is the journal's own word; use another")
        facts = self._note(note, **about)
        self._put(lambda: facts)

    def _put(self, facts: Callable[[], dict[str, Any]], table: Table | None = None) -> Future[None] | None:
        queued = QueuedRecord(facts, table, next(self._numbers), scope=current_scope())
        deferred = deferred_records.get()
        if deferred is None or deferred.closed:
            return self.enqueue(queued)
        self._refuse_if_closed()
        deferred.records.append(queued)
        return None

    def enqueue(self, queued: QueuedRecord) -> Future[None] | None:
        """Put a record into the queue. If this returns a future, the caller must wait for it."""
        self._refuse_if_closed()
        queue = self._queue
        full = len(queue) >= QUEUE_LIMIT or (queued.entry is not None and sum(map(_size, list(queue))) > QUEUE_BYTES)
        if full and self.error is not None:  # the journal cannot be written, and the queue has a limit
            self.lost += 1
            return None
        if full or (self.durability == "full" and self.error is None):
            queued.done = Future()
            queue.append(queued)
            self._hurry.set()
        else:
            queue.append(queued)
        if self._asleep:
            self._wake_thread()
        return queued.done

    def _refuse_if_closed(self) -> None:
        if self.error is not None and self.on_failure == "closed":
            raise JournalError(str(self.error))

    def newest_queued(self) -> QueuedRecord | None:
        """The last queued record, for `prepare`; None if it is written or a dispatch waits for it."""
        try:
            newest = self._queue[-1]
        except IndexError:
            return None
        return newest if newest.done is None else None

    def prepare(self, queued: QueuedRecord) -> None:
        """Prepare a record on this thread, which has nothing else to do now.

        The journal's thread would prepare it during the next dispatch, and the two would slow each other down.
        """
        if self._store is not None and self._key is not None:  # otherwise the key for redaction is not known yet
            with suppress(Exception):  # happens again, and is reported, when it is written
                self._prepare_entry(queued)

    def prepare_with(self, queued: QueuedRecord, call: Invoke) -> None:
        """Prepare a deferred record. `call` runs the slow part elsewhere."""
        with suppress(Exception):  # happens again, and is reported, when it is written
            with self._writing:
                if self._store is None:
                    self._open()
            self._prepare_entry(queued, call)

    def flush(self, timeout: float | None = 30.0) -> None:
        """Wait until all queued records are written. Raises `JournalError` if that fails."""
        if not self._queue and (self._thread is None or not self._thread.is_alive()):
            return
        done: Future[None] = Future()
        self._queue.append(QueuedRecord(None, done=done))
        self._hurry.set()
        self._wake_thread()
        try:
            done.result(timeout)
        except TimeoutError:
            raise self.error or JournalError(f"the journal {self.path} was not written within {timeout:g} s") from None

    def close(self, timeout: float = 10.0) -> None:
        """Write what is left, and close the file. A later record opens it again.

        `timeout` is for a time without progress. As long as records are being written, this waits.
        """
        thread = self._thread
        if thread is None or self._pid != os.getpid() or not (thread.is_alive() or self._queue):
            return
        while True:  # as long as there is progress
            left = len(self._queue)
            try:
                self.flush(timeout)
                break
            except JournalError as error:
                if self.error is not None or len(self._queue) >= left:
                    logger.error("what was left (%d records) was not written: %s", left, error)
                    break
        self._closing = True
        self._hurry.set()
        self._wake.set()
        thread.join(timeout)

    def pause(self) -> None:
        """Wait for the current write, and write nothing until `resume`: see `shutdown`."""
        self._writing.acquire()

    def resume(self) -> None:
        self._writing.release()

    def reset_in_child(self) -> None:
        """Start over in a child process: all open files are the parent's."""
        for file in (self._store, self._mark):
            if file is not None:
                file.abandon()
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the thread -------------------------------------------------------------------------

    def _wake_thread(self) -> None:
        self._asleep = False
        if self._thread is None or self._closing or not self._thread.is_alive():
            with self._starting:
                if self._thread is None or not self._thread.is_alive():
                    self._closing = False
                    self._thread = threading.Thread(target=self._run, name="fairlead-journal", daemon=True)
                    self._thread.start()
                    install_exit_handlers()
        self._wake.set()

    def _run(self) -> None:
        with suppress(OSError, AttributeError):  # on Linux, so that it yields the processor to other threads
            if os.sched_getscheduler(0) == os.SCHED_OTHER:
                os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        try:
            while not self._close_if_done():
                self._wake.wait(None if self.error is None else RETRY_DELAY)
                self._wake.clear()
                self._write_due()
        finally:
            self._asleep = True  # so that the next record starts another thread

    def _close_if_done(self) -> bool:
        """Close the file if the journal is closing and the queue is empty.

        The next record starts a new thread.
        """
        if not self._closing or self._queue:
            return False
        self._close_file()
        with self._starting:
            if self._queue:  # queued while the file was closed
                return False
            self._thread = None
            return True

    def _write_due(self) -> None:
        if self._queue and not self._closing and self.durability == "normal":
            self._mark_pending()
            self._wait_for_batch()
        self._hurry.clear()
        with self._writing:
            self._write_all()
        self._asleep = True
        if self._queue:  # queued before `_asleep` was set
            self._asleep = False
            self._wake.set()
            if self.error is not None and not self._closing:
                time.sleep(RETRY_DELAY)

    def _wait_for_batch(self) -> None:
        """Wait for a quiet moment, so that writing delays no dispatch, or for a full batch."""
        until, known = time.monotonic() + MAX_DELAY, 0
        while known < len(self._queue) < BATCH and time.monotonic() < until:
            known = len(self._queue)
            if self._hurry.wait(min(QUIET_DELAY, MAX_DELAY)):
                return

    def _mark_pending(self) -> None:
        """Mark that a crash would lose records from now on.

        Errors here happen again when the batch is written.
        """
        with suppress(Exception), self._writing:
            if self._store is None:
                self._open()
            if self._mark is not None:
                self._mark.set(True)

    def _write_all(self) -> None:
        """Write all records that are queued now, in batches, until writing fails."""
        due = len(self._queue)
        while True:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH))]
            if not batch and self.error is None:
                return
            try:
                self._write(batch)
            except Exception as error:
                self._fail(batch, write_error(self.path, error))
                return
            self._recover()
            for queued in batch:
                if queued.done is not None:
                    with suppress(InvalidStateError):  # the waiting dispatch was cancelled
                        queued.done.set_result(None)
            due -= len(batch)
            if due <= 0 and len(self._queue) < BATCH:
                return

    def _write(self, batch: list[QueuedRecord]) -> None:
        store = self._store or self._open()
        if self._mark is not None:
            self._mark.set(True)
        patient = not self._closing and not any(queued.done for queued in batch)
        entries = list(self._entries(batch, patient))
        lost = self.lost
        if lost:
            entries.append(self._entry(self._note("lost", records=lost)))
        try:
            if entries or self.error is not None:
                self._kept_head = store.append(
                    entries, SLICE_PAUSE if patient and len(entries) <= PAUSED_BATCH else 0.0
                )
                self._grown += sum(map(_weight, entries))
        except NewerJournal as error:  # a newer fairlead has upgraded the file
            self._close_file()
            self._spool(error).append(entries)
        self.lost -= lost  # more may have been lost in the meantime
        if self._anchoring is not None and self._kept_head is not None:
            self._anchoring.update(self._kept_head)
        if not self._queue and self._mark is not None:
            self._mark.set(False)
        try:
            self._prune_if_due()
        except Exception as error:  # the batch itself is written
            logger.error("the journal %s could not be pruned: %s", self.path, error)

    def _entries(self, batch: list[QueuedRecord], patient: bool) -> Iterator[Entry]:
        """The entries of a batch.

        This sleeps now and then, to leave Python to the program's own threads.
        """
        made = 0
        for queued in batch:
            made += self._prepare_entry(queued)
            if patient and made >= ENTRIES_PER_SLICE and not self._closing and len(self._queue) < BATCH:
                made = 0
                time.sleep(SLICE_PAUSE)
            if queued.entry is not None:
                yield queued.entry

    def _prepare_entry(self, queued: QueuedRecord, call: Invoke | None = None) -> bool:
        """Prepare the entry of a record, and forget the facts.

        They hold the decision and all objects in it. With a thousand of those in the queue, Python would often look
        for garbage, and that delays a dispatch. If two threads prepare a record at once, both entries have the same id.
        """
        facts = queued.facts
        if facts is None or queued.entry is not None:
            return False
        queued.entry = self._entry(facts(), queued.table, queued.number, queued.scope, call)
        queued.facts = None
        return True

    def _entry(
        self,
        facts: dict[str, Any],
        table: Table | None = None,
        number: int | None = None,
        scope: Scope | None = None,
        call: Invoke | None = None,
    ) -> Entry:
        about = {"v": VERSION, "id": f"{self.writer}-{number or next(self._numbers)}", **self._origin}
        policy = None
        if table is not None:
            policy = policy_of(table)
            about |= project_facts(table, self._key)
        redactor = self._redactor or redactor_of(scope)
        redactor = redactor if self._key is None else redactor.keyed(self._key)
        return make_entry(about | facts, redactor, policy, call)

    def _note(self, note: str, **about: Any) -> dict[str, Any]:
        return {"kind": "note", "at": time.time_ns(), "note": note, **about}

    # --- opening and closing ----------------------------------------------------------------

    def _open(self) -> JournalFile | Spool:
        try:
            self._store = store = JournalFile(self.path)
        except NewerJournal as error:
            return self._spool(error)
        try:
            self._mark = WriterMark(self.path, self.writer)
            self._key = store.key()
            for about in crashed_writers(self.path):
                crash = self._note("crashed", **about)
                # Its id follows from the crash, so that it is noted once even if this process is killed now.
                store.append([self._entry({"id": f"{about['writer']}-crashed", **crash})])
                logger.warning("journal %s: %s", self.path, _crash_text(crash))
            for entries in read_spools(self.path):
                store.append(entries)
        except BaseException:
            self._close_file()
            raise
        if self._anchor is not None:
            self._anchoring = AnchorSender(self._anchor)
        return store

    @property
    def anchor_error(self) -> str | None:
        """Why the newest record could not be anchored; None if it was, or if there is no anchor."""
        anchoring = self._anchoring
        return None if anchoring is None else anchoring.error

    def _spool(self, error: NewerJournal) -> Spool:
        self._store = Spool(self.path, self.writer)
        logger.warning("%s; until then, records go to %s", error, self._store.path)
        return self._store

    def _close_file(self) -> None:
        if self._anchoring is not None:
            self._anchoring.close()
            self._anchoring = None
        with self._writing:
            if self._store is not None:
                self._store.close()
                self._store = None
            if self._mark is not None:
                self._mark.close()
                self._mark = None

    def _prune_if_due(self) -> None:
        """Prune once per interval, after a note in the chain that says what is gone."""
        store = self._store
        soon = (
            self._pruned_at
            and time.monotonic() < self._pruned_at + PRUNE_INTERVAL
            and self._grown < self.max_size // 10
        )
        if not isinstance(store, JournalFile) or soon:
            return
        self._pruned_at, self._grown = time.monotonic(), 0
        keep = store.oldest_kept(self.max_size, self.max_age)
        if keep is not None:
            gone = self._note("pruned", through=keep - 1, digest=store.digest_of(keep - 1).hex())
            self._kept_head = store.append([self._entry(gone)])
            store.prune(keep)

    # --- failing ----------------------------------------------------------------------------

    def _fail(self, batch: list[QueuedRecord], error: JournalError) -> None:
        """Handle a batch that could not be written.

        Records that no dispatch waits for are tried again.
        """
        closed, before, self.error = self.on_failure == "closed", self.error, error
        again = [w for w in batch if not w.is_flush and not (closed and w.done is not None)]
        room = 0 if self._closing else max(QUEUE_LIMIT - len(self._queue), 0)
        self.lost += len(again) - len(again[:room])
        self._queue.extendleft(reversed(again[:room]))
        for queued in batch:
            if queued.done is not None:
                with suppress(InvalidStateError):
                    if closed or queued.is_flush:
                        queued.done.set_exception(error)
                    else:
                        queued.done.set_result(None)
        if before is None or str(before) != str(error):
            logger.error("%s", error)
        if self._closing and self.lost:
            logger.error("%d records were lost: %s", self.lost, error)

    def _recover(self) -> None:
        if self.error is not None:
            logger.warning("the journal %s can be written again", self.path)
            self.error = None


def default_on_failure(durability: Durability) -> Literal["open", "closed"]:
    """The failure policy of a journal with this durability, if the user has set none."""
    return "closed" if durability == "full" else "open"


def _weight(entry: Entry) -> int:
    return len(entry.body) + sum(map(len, entry.texts.values()))


def _size(queued: QueuedRecord) -> int:
    return 0 if queued.entry is None else _weight(queued.entry)


def _crash_text(note: dict[str, Any]) -> str:
    return (
        f"process {note['pid']} ended without closing it: what it had not written yet, "
        f"as a rule its last {QUIET_DELAY:g} to {MAX_DELAY:g} s and never more than {QUEUE_LIMIT} records, is lost"
    )
