"""Journal: takes decisions off the hot path and writes them, in batches, on one thread.

Keeping a decision is putting it into a queue. The writer's thread gathers what comes within a moment, takes the
secrets out (unless somebody else had the time), chains and commits it. Where the queue is full, or durability is
"full", whoever dispatches waits for the commit.
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
from hashlib import blake2b
from itertools import count
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Any, Literal, Self

import msgspec

from ..errors import describe
from ..logs import logger
from ..peers import user_name
from ..places import journal_file
from ..record import tell
from ..redaction import Scope, current_scope, redactor_of
from ..run import working
from .anchor import Anchor, Anchoring
from .endings import hear_of_the_end, watch
from .entry import VERSION, Call, Entry, make_entry
from .errors import JournalError, NewerJournal
from .exactness import inexact
from .policy import policy_of
from .spool import Spool, read_spools
from .store import Head, Store, unwritable
from .writers import Mark, crashed

if TYPE_CHECKING:
    from ..decision import Decision
    from ..redaction import Redactor
    from ..session import Session
    from ..table import Table

Durability = Literal["normal", "full"]
Keep = Callable[["Decision[Any]", float], "Future[None] | None"]

MAX_SIZE = 1 << 30
MAX_AGE = 30 * 86400.0
QUEUE = 4096
"""Decisions that wait to be written. Beyond that, whoever dispatches waits."""
HEAVY = 64 << 20
"""Bytes of records that wait to be written, beyond which the dispatch of a large step waits."""
BATCH = 512
LULL, GATHER = 0.03, 0.5
"""Seconds without a decision after which those before are written, and for which they are gathered at most."""
RUN, REST = 8, 0.0001
"""Records that are made in one go, and seconds of rest then, while nobody waits for them."""
RESTFUL = 128
"""Records in a batch that is written with rests in between. Other processes wait for their turn meanwhile."""
RETRY = 0.5
"""Seconds until a failed write is tried again."""
TIDY = 600.0
"""Seconds between looks at what is too old or too much."""


_OWN_NOTES = frozenset({"pruned", "damaged", "crashed", "lost", "schema", "erased"})
_OWN_WORDS = frozenset({
    "v", "id", "at", "kind", "took", "step", "control", "left", "said", "runs", "winner", "policy", "policy_id",
    "redacted", "unwritable", "effect", "enforcement", "can", "lenient", "variables", "machine", "lossy",
    "unanswered",
})  # fmt: skip


class Waiting(msgspec.Struct):
    """Something to be written, and who waits for that."""

    facts: Callable[[], dict[str, Any]] | None
    table: Any = None
    number: int = 0
    done: Future[None] | None = None
    entry: Entry | None = None  # once it was made: it is not made twice, whatever goes wrong
    scope: Scope | None = None  # of the request that it is about: its record is made elsewhere


class HeldBack(msgspec.Struct):
    """Records that are made before they are queued: by `make_elsewhere`, and then `put`."""

    records: list[Waiting] = []
    over: bool = False  # they were put, and tasks that are still at work in this context put their own


held_back: ContextVar[HeldBack | None] = ContextVar("fairlead_held_back", default=None)


class Journal:
    """Keeps every decision of the hooks it is given to: `Hooks(journal=Journal())`.

    `durability="full"` commits a decision before it is acted on. `on_failure` says what becomes of the agent when
    the journal cannot be written: "open" goes on and says so, "closed" raises `JournalError` in place of a decision.
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
        watch(self)

    def _start(self) -> None:
        """Begin with nothing: in a new journal, and in a child process, which has none of its parent's threads."""
        self.writer = os.urandom(5).hex()
        self._pid = os.getpid()
        self._numbers = count(1)
        self._queue: deque[Waiting] = deque()
        self._asleep = True
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._store: Store | Spool | None = None
        self._mark: Mark | None = None
        self._anchoring: Anchoring | None = None
        self._kept_head: Head | None = None
        self._tidied = 0.0
        self._grown = 0  # bytes since then
        self._where = {"machine": gethostname(), "user": user_name(os.geteuid())}
        self._key: bytes | None = None
        self._starting = threading.RLock()  # a signal may come while it is held, and close the journal
        self._writing = threading.RLock()  # held while the file is in use: SQLite must not be forked in the middle

    def __repr__(self) -> str:
        return f"<journal {self.path}>"

    # --- keeping ----------------------------------------------------------------------------

    def keep_for(self, table: Table) -> Keep:
        """What a table's chains call with each finished decision, and when it was begun."""
        time_ns, monotonic, hooks = time.time_ns, time.monotonic, table.hooks

        def keep(decision: Decision[Any], began: float) -> Future[None] | None:
            at, took = time_ns(), monotonic() - began
            session, switch = working.get(), hooks.switch
            around = None
            if session is not None:  # what of it may be something else by the time that this is written
                around = (session.parent, session.capabilities, session.lenient, session.caller)
            mode = None if hooks.enforce and (switch is None or switch()) else _enforcement(switch)
            state = getattr(decision.step, "state", None)
            lossy: list[list[str]] = []
            if state is not None:  # which hooks may edit in place, before it is written
                lossy = inexact(state, "step.state")
                decision = _with_state(decision, state)
            return self._put(lambda: _facts(decision, at, took) | _around(decision, around, mode, lossy), table)

        return keep

    def __call__(self, decision: Decision[Any]) -> None:
        """Keep a decision that was made elsewhere."""
        at = time.time_ns()
        self._put(lambda: _facts(decision, at, None))

    def keep_facts(self, facts: dict[str, Any]) -> None:
        """Keep a record that was made elsewhere. One whose id is in the journal already is left out."""
        self._put(lambda: facts)

    def note(self, note: str, **about: Any) -> None:
        """Write down something that is no decision: a pause, say."""
        for word in (*(_OWN_WORDS & about.keys()), *(_OWN_NOTES & {note})):
            raise JournalError(f"a note cannot say {word!r}, which is the journal's own word; use another")
        facts = self._note(note, **about)
        self._put(lambda: facts)

    def _put(self, facts: Callable[[], dict[str, Any]], table: Table | None = None) -> Future[None] | None:
        waiting = Waiting(facts, table, next(self._numbers), scope=current_scope())
        later = held_back.get()
        if later is None or later.over:
            return self.put(waiting)
        self._refuse_if_closed()
        later.records.append(waiting)
        return None

    def put(self, waiting: Waiting) -> Future[None] | None:
        """Have something written. What is returned is to be waited for."""
        self._refuse_if_closed()
        queue = self._queue
        full = len(queue) >= QUEUE or (waiting.entry is not None and sum(map(_size, list(queue))) > HEAVY)
        if full and self.error is not None:  # nothing is being written, and there is a limit to what can wait
            self.lost += 1
            return None
        if full or (self.durability == "full" and self.error is None):
            waiting.done = Future()
            queue.append(waiting)
            self._hurry.set()
        else:
            queue.append(waiting)
        if self._asleep:
            self._rouse()
        return waiting.done

    def _refuse_if_closed(self) -> None:
        if self.error is not None and self.on_failure == "closed":
            raise JournalError(str(self.error))

    def newest(self) -> Waiting | None:
        """What was kept last, if it is still to be written: for `make`."""
        with suppress(IndexError):
            newest = self._queue[-1]
            return newest if newest.done is None else None
        return None

    def make(self, waiting: Waiting) -> None:
        """Make a record here and now, for whoever has the time.

        The journal's own thread would make it while something else is decided, and the two would hold each other up.
        """
        if self._store is not None and self._key is not None:  # else nobody knows yet where it will be written
            with suppress(Exception):  # which happens again, and is told, when it is written
                self._make(waiting)

    def make_elsewhere(self, waiting: Waiting, call: Call) -> None:
        """Make a record that was held back, by calling with `call` what takes long."""
        with suppress(Exception):  # which happens again, and is told, when it is written
            with self._writing:
                if self._store is None:
                    self._open()
            self._make(waiting, call)

    def flush(self, timeout: float | None = 30.0) -> None:
        """Wait until all that was kept so far is written. Raises `JournalError` if it is not."""
        if not self._queue and (self._thread is None or not self._thread.is_alive()):
            return
        done: Future[None] = Future()
        self._queue.append(Waiting(None, done=done))
        self._hurry.set()
        self._rouse()
        try:
            done.result(timeout)
        except TimeoutError:
            raise self.error or JournalError(f"the journal {self.path} was not written within {timeout:g} s") from None

    def close(self, timeout: float = 10.0) -> None:
        """Write what is left, and let go of the file. What is kept afterwards opens it again.

        `timeout` is for how long nothing may come of it: as long as records are being written, it goes on.
        """
        thread = self._thread
        if thread is None or self._pid != os.getpid() or not (thread.is_alive() or self._queue):
            return
        while True:  # as long as something comes of it
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

    def hold(self) -> None:
        """Wait until nothing is being written, and keep it so: see `endings`."""
        self._writing.acquire()

    def go_on(self) -> None:
        self._writing.release()

    def begin_anew(self) -> None:
        """In a child process: all that is open is the parent's."""
        for held in (self._store, self._mark):
            if held is not None:
                held.abandon()
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the thread -------------------------------------------------------------------------

    def _rouse(self) -> None:
        self._asleep = False
        if self._thread is None or self._closing or not self._thread.is_alive():
            with self._starting:
                if self._thread is None or not self._thread.is_alive():
                    self._closing = False
                    self._thread = threading.Thread(target=self._work, name="fairlead-journal", daemon=True)
                    self._thread.start()
                    hear_of_the_end()
        self._wake.set()

    def _work(self) -> None:
        with suppress(OSError, AttributeError):  # on Linux: it then takes no processor from whoever is at work
            if os.sched_getscheduler(0) == os.SCHED_OTHER:
                os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
        try:
            while not self._ended():
                self._wake.wait(None if self.error is None else RETRY)
                self._wake.clear()
                self._turn()
        finally:
            self._asleep = True  # so that whoever comes next finds out that nobody is here

    def _ended(self) -> bool:
        """Whether there is nothing left to do. Then whoever puts something starts another thread."""
        if not self._closing or self._queue:
            return False
        self._let_go()
        with self._starting:
            if self._queue:  # put while the file was let go of
                return False
            self._thread = None
            return True

    def _turn(self) -> None:
        if self._queue and not self._closing and self.durability == "normal":
            self._mark_pending()
            self._gather()
        self._hurry.clear()
        with self._writing:
            self._write_all()
        self._asleep = True
        if self._queue:  # what came in between the look and the nap
            self._asleep = False
            self._wake.set()
            if self.error is not None and not self._closing:
                time.sleep(RETRY)

    def _gather(self) -> None:
        """Wait for a lull, in which writing holds nobody up; but not for long, nor for more than a batch."""
        until, known = time.monotonic() + GATHER, 0
        while known < len(self._queue) < BATCH and time.monotonic() < until:
            known = len(self._queue)
            if self._hurry.wait(min(LULL, GATHER)):
                return

    def _mark_pending(self) -> None:
        """From now on a crash loses something. What goes wrong here does so again, and is told, when it is written."""
        with suppress(Exception), self._writing:
            if self._store is None:
                self._open()
            if self._mark is not None:
                self._mark.set(True)

    def _write_all(self) -> None:
        """Write all that waits by now, batch after batch, until it is written or cannot be. What comes is gathered."""
        due = len(self._queue)
        while True:
            batch = [self._queue.popleft() for _ in range(min(len(self._queue), BATCH))]
            if not batch and self.error is None:
                return
            try:
                self._write(batch)
            except Exception as error:
                self._fail(batch, unwritable(self.path, error))
                return
            self._recover()
            for waiting in batch:
                if waiting.done is not None:
                    with suppress(InvalidStateError):  # who waited was cancelled
                        waiting.done.set_result(None)
            due -= len(batch)
            if due <= 0 and len(self._queue) < BATCH:
                return

    def _write(self, batch: list[Waiting]) -> None:
        store = self._store or self._open()
        if self._mark is not None:
            self._mark.set(True)
        patient = not self._closing and not any(waiting.done for waiting in batch)
        entries = list(self._entries(batch, patient))
        lost = self.lost
        if lost:
            entries.append(self._entry(self._note("lost", records=lost)))
        try:
            if entries or self.error is not None:
                self._kept_head = store.append(entries, REST if patient and len(entries) <= RESTFUL else 0.0)
                self._grown += sum(map(_weight, entries))
        except NewerJournal as error:  # a newer fairlead has taken the file over meanwhile
            self._let_go()
            self._spool(error).append(entries)
        self.lost -= lost  # more may have come in the meantime
        if self._anchoring is not None and self._kept_head is not None:
            self._anchoring.reached(self._kept_head)
        if not self._queue and self._mark is not None:
            self._mark.set(False)
        try:
            self._tidy()
        except Exception as error:  # what was written is written
            logger.error("the journal %s could not be pruned: %s", self.path, error)

    def _entries(self, batch: list[Waiting], patient: bool) -> Iterator[Entry]:
        """The entries of a batch. Now and then it rests, so that the program's own threads need not wait for it."""
        made = 0
        for waiting in batch:
            made += self._make(waiting)
            if patient and made >= RUN and not self._closing and len(self._queue) < BATCH:
                made = 0
                time.sleep(REST)
            if waiting.entry is not None:
                yield waiting.entry

    def _make(self, waiting: Waiting, call: Call | None = None) -> bool:
        """Make the record of something. Should two threads do so at once, the two have one id."""
        if waiting.entry is None and waiting.facts is not None:
            waiting.entry = self._entry(waiting.facts(), waiting.table, waiting.number, waiting.scope, call)
            return True
        return False

    def _entry(
        self,
        facts: dict[str, Any],
        table: Table | None = None,
        number: int | None = None,
        scope: Scope | None = None,
        call: Call | None = None,
    ) -> Entry:
        about = {"v": VERSION, "id": f"{self.writer}-{number or next(self._numbers)}", **self._where}
        policy = None
        if table is not None:
            policy = policy_of(table)
            about |= self._project(table)
        redactor = self._redactor or redactor_of(scope)
        redactor = redactor if self._key is None else redactor.keyed(self._key)
        return make_entry(about | facts, redactor, policy, call)

    def _project(self, table: Table) -> dict[str, Any]:
        """What a record says of the project: its folder, and a keyed digest of the variables that hooks were given."""
        about: dict[str, Any] = {} if table.hooks.root is None else {"root": table.hooks.root}
        given = table.hooks.variables
        if given is not None and self._key is not None:
            if table.variables is None:
                told = msgspec.json.encode(sorted(given.items()))
                table.variables = blake2b(told, digest_size=8, key=self._key).hexdigest()
            about["variables"] = table.variables
        return about

    def _note(self, note: str, **about: Any) -> dict[str, Any]:
        return {"kind": "note", "at": time.time_ns(), "note": note, **about}

    # --- opening and closing ----------------------------------------------------------------

    def _open(self) -> Store | Spool:
        try:
            self._store = store = Store(self.path)
        except NewerJournal as error:
            return self._spool(error)
        try:
            self._mark = Mark(self.path, self.writer)
            self._key = store.key()
            for about in crashed(self.path):
                crash = self._note("crashed", **about)
                # Its name follows from the crash: who is killed before the mark is gone tells it only once.
                store.append([self._entry({"id": f"{about['writer']}-crashed", **crash})])
                logger.warning("journal %s: %s", self.path, _told(crash))
            for entries in read_spools(self.path):
                store.append(entries)
        except BaseException:
            self._let_go()
            raise
        if self._anchor is not None:
            self._anchoring = Anchoring(self._anchor)
        return store

    @property
    def anchor_error(self) -> str | None:
        """Why the newest record could not be anchored. None: it was, or there is nothing to anchor."""
        anchoring = self._anchoring
        return None if anchoring is None else anchoring.error

    def _spool(self, error: NewerJournal) -> Spool:
        self._store = Spool(self.path, self.writer)
        logger.warning("%s; until then, records go to %s", error, self._store.path)
        return self._store

    def _let_go(self) -> None:
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

    def _tidy(self) -> None:
        """Prune now and then. The chain says what is gone, and goes on from there."""
        store = self._store
        soon = self._tidied and time.monotonic() < self._tidied + TIDY and self._grown < self.max_size // 10
        if not isinstance(store, Store) or soon:
            return
        self._tidied, self._grown = time.monotonic(), 0
        keep = store.oldest_kept(self.max_size, self.max_age)
        if keep is not None:
            gone = self._note("pruned", through=keep - 1, digest=store.digest_of(keep - 1).hex())
            self._kept_head = store.append([self._entry(gone)])
            store.prune(keep)

    # --- failing ----------------------------------------------------------------------------

    def _fail(self, batch: list[Waiting], error: JournalError) -> None:
        """Nothing of the batch was written. What nobody waits for is tried again."""
        closed, before, self.error = self.on_failure == "closed", self.error, error
        again = [w for w in batch if w.facts is not None and not (closed and w.done is not None)]
        room = 0 if self._closing else max(QUEUE - len(self._queue), 0)
        self.lost += len(again) - len(again[:room])
        self._queue.extendleft(reversed(again[:room]))
        for waiting in batch:
            if waiting.done is not None:
                with suppress(InvalidStateError):
                    if closed or waiting.facts is None:
                        waiting.done.set_exception(error)
                    else:
                        waiting.done.set_result(None)
        if before is None or str(before) != str(error):
            logger.error("%s", error)
        if self._closing and self.lost:
            logger.error("%d records were lost: %s", self.lost, error)

    def _recover(self) -> None:
        if self.error is not None:
            logger.warning("the journal %s can be written again", self.path)
            self.error = None


def default_on_failure(durability: Durability) -> Literal["open", "closed"]:
    """What becomes of the agent when a journal of that durability cannot be written, if nothing else is said."""
    return "closed" if durability == "full" else "open"


def _weight(entry: Entry) -> int:
    return len(entry.body) + sum(map(len, entry.texts.values()))


def _size(waiting: Waiting) -> int:
    return 0 if waiting.entry is None else _weight(waiting.entry)


def _facts(decision: Decision[Any], at: int, took: float | None) -> dict[str, Any]:
    """A decision as it is written down."""
    facts: dict[str, Any] = {"kind": "decision", "at": at, "took": took, "control": decision.control}
    try:
        facts |= tell(decision)
    except Exception as error:  # of something that others have put into it
        event = {"event": decision.event, "session_id": decision.original.session_id}
        return facts | {"step": event, "unwritable": describe(error)}
    if decision.said and (hook := decision.hook) is not None:
        facts["winner"] = {"hook": hook, "cause": decision.cause}
    elif decision.effect is not None and (names := [one.hook.name for one in decision.opinions if one.verdict.changes]):
        facts["winner"] = {"hook": names[-1], "cause": "policy"}  # whose change the host could not take over
    return facts


Around = tuple["Session | None", Any, bool, "str | None"]
"""Of a session: its parent, its capabilities, whether it is lenient, and for whom it works."""


def _around(decision: Decision[Any], around: Around | None, mode: str | None, lossy: list[Any]) -> dict[str, Any]:
    """What was so around a decision, where it is not as usual."""
    facts: dict[str, Any] = {}
    if mode is not None:
        facts["enforcement"] = mode
    if lossy:
        facts["lossy"] = lossy
    if around is not None:
        parent, capabilities, lenient, caller = around
        if parent is not None:
            facts["parent"] = parent.session_id
        if capabilities is not None:
            facts["can"] = sorted(capabilities.get(decision.event, ()))
        if lenient:
            facts["lenient"] = True
        if caller is not None:
            facts["user"] = caller
    return facts


def _enforcement(switch: Any) -> str:
    """Why verdicts are only watched: somebody has paused them for a while, or put them in monitor mode."""
    setting = getattr(switch, "setting", None)
    return "paused" if getattr(setting, "until", None) is not None else "monitor"


def _with_state(decision: Decision[Any], state: Any) -> Decision[Any]:
    from msgspec.structs import replace

    now = _plain(state)
    step = replace(decision.step, state=now)
    if decision.step is decision.original:
        return replace(decision, step=step, original=step)
    before = decision.original.state
    came = now if before is state else _plain(before)
    return replace(decision, step=step, original=replace(decision.original, state=came))


def _plain(state: Any) -> Any:
    try:
        return msgspec.to_builtins(state, enc_hook=repr, str_keys=True, builtin_types=(bytes, bytearray))
    except Exception:
        return repr(type(state))


def _told(note: dict[str, Any]) -> str:
    return (
        f"process {note['pid']} ended without closing it: what it had not written yet, "
        f"as a rule its last {LULL:g} to {GATHER:g} s and never more than {QUEUE} records, is lost"
    )
