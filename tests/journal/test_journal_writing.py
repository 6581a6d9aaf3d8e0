"""Writing: off the hot path, bounded, and never stuck on one bad record."""

from __future__ import annotations

import asyncio
import fcntl
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairlead import Hooks, change, deny
from fairlead.errors import Unenforceable
from fairlead.journal import Journal, JournalError, writer
from fairlead.journal.store import JournalFile
from fairlead.journal.verify import verify
from fairlead.lifecycle import BeforeModel, BeforeRequest, BeforeTool
from fairlead.redaction import redactor as redaction

Kept = Callable[..., list[str]]


@contextmanager
def held_up(path: Path) -> Iterator[None]:
    """While another process holds its lock, nothing can be written to a journal."""
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# --- durability -------------------------------------------------------------------------------------


def test_full_durability_writes_before_it_answers(open_journal: Any, keep: Any, kept: Kept) -> None:
    keep(open_journal(durability="full"), 1, flush=False)
    assert kept() == ["1"]


async def test_full_durability_holds_back_the_decision_until_it_is_written(
    open_journal: Any, step: Any, path: Path
) -> None:
    hooks = Hooks(journal=open_journal(durability="full"))
    await hooks.dispatch(step(1))
    with held_up(path):
        going = asyncio.ensure_future(hooks.dispatch(step(2)))
        done, _ = await asyncio.wait([going], timeout=0.2)
        assert not done
    assert (await going).control == "proceed"


async def test_concurrent_dispatches_share_a_commit(open_journal: Any, step: Any, path: Path, sql: Any) -> None:
    hooks = Hooks(journal=open_journal(durability="full"))
    await hooks.dispatch(step(0))
    heads = set()
    with held_up(path):
        first = asyncio.ensure_future(hooks.dispatch(step(1)))
        await asyncio.wait([first], timeout=0.1)  # it is being written; the others come meanwhile
        others = [asyncio.ensure_future(hooks.dispatch(step(number))) for number in range(2, 52)]
        await asyncio.sleep(0)
    for going in asyncio.as_completed([first, *others]):
        await going
        heads.add(path.with_name("journal.db.head").read_text())
    assert len(heads) <= 3


async def test_normal_durability_does_not_wait(open_journal: Any, step: Any, path: Path, kept: Kept) -> None:
    journal = open_journal()
    hooks = Hooks(journal=journal)
    await hooks.dispatch(step(1))
    journal.flush()
    with held_up(path):
        await hooks.dispatch(step(2))
        assert kept() == ["1"]


async def test_a_cancelled_dispatch_does_not_stop_the_writing(open_journal: Any, step: Any, path: Path) -> None:
    journal = open_journal(durability="full")
    hooks = Hooks(journal=journal)
    await hooks.dispatch(step(1))
    with held_up(path):
        going = asyncio.ensure_future(hooks.dispatch(step(2)))
        await asyncio.wait([going], timeout=0.1)
        going.cancel()
        await asyncio.wait([going])
    decision = await asyncio.wait_for(hooks.dispatch(step(3)), 5)
    assert decision.control == "proceed"


async def test_a_dispatch_cancelled_while_it_is_written_is_recorded_once(
    open_journal: Any, step: Any, path: Path, kept: Kept
) -> None:
    journal = open_journal(durability="full")
    hooks = Hooks(journal=journal)
    await hooks.dispatch(step(1))
    with held_up(path):
        going = asyncio.ensure_future(hooks.dispatch(step(2)))
        await asyncio.wait([going], timeout=0.1)
        going.cancel()
        await asyncio.wait([going])
    journal.close()
    assert kept() == ["1", "2"]


def wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written unless a caller waits for it."""
    for name in ("QUIET_DELAY", "MAX_DELAY"):
        monkeypatch.setattr(writer, name, 3600)


@contextmanager
def held_before_writing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The journal's thread gathers records and writes none until this ends."""
    over, gather = threading.Event(), Journal._wait_for_batch
    monkeypatch.setattr(Journal, "_wait_for_batch", lambda _: over.wait(5))
    yield
    monkeypatch.setattr(Journal, "_wait_for_batch", gather)
    over.set()


def prepare_newest(journal: Journal) -> None:
    newest = journal.newest_queued()
    assert newest is not None
    journal.prepare(newest)


# --- prepared records -------------------------------------------------------------------------------


class Attachment:
    """A value of a step that tells when it is no longer used."""


def test_a_prepared_record_does_not_keep_its_step_in_memory(
    journal: Journal, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = Hooks(journal=journal)
    hooks.dispatch_sync(BeforeTool(tool="x", call_id="1"))
    journal.flush()  # now the key for redaction is known
    wait_for_ever(monkeypatch)
    attachment = Attachment()
    alive = weakref.ref(attachment)
    hooks.dispatch_sync(BeforeTool(tool="x", call_id="2", args={"file": attachment}))
    del attachment
    assert alive() is not None
    prepare_newest(journal)
    assert alive() is None
    journal.flush()
    assert len(kept()) == 2


def test_a_prepared_record_is_written_once_the_file_can_be(
    journal: Journal, keep: Any, step: Any, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = keep(journal, 1)
    append, failed = JournalFile.append, threading.Event()

    def fail(store: JournalFile, *given: Any) -> Any:
        failed.set()
        raise OSError("the disk is full")

    monkeypatch.setattr(JournalFile, "append", fail)
    with held_before_writing(monkeypatch):
        hooks.dispatch_sync(step(2))
        prepare_newest(journal)
    assert failed.wait(5)
    monkeypatch.setattr(JournalFile, "append", append)
    journal.flush()
    assert kept() == ["1", "2"]


# --- batches ----------------------------------------------------------------------------------------


def test_what_comes_while_a_batch_is_written_is_gathered_like_all_else(
    journal: Journal, keep: Any, step: Any, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or else, under a steady load, there would be a commit for every few records."""
    hooks = keep(journal, 1)
    gathers = threading.Event()
    append, mark = JournalFile.append, Journal._mark_pending

    def append_slowly(store: JournalFile, *given: Any) -> Any:
        monkeypatch.setattr(JournalFile, "append", append)
        hooks.dispatch_sync(step(3))
        gathers.clear()
        return append(store, *given)

    def tell(of: Journal) -> None:
        mark(of)
        gathers.set()

    wait_for_ever(monkeypatch)
    monkeypatch.setattr(JournalFile, "append", append_slowly)
    monkeypatch.setattr(Journal, "_mark_pending", tell)
    keep(journal, 2, hooks=hooks)
    assert gathers.wait(5)
    assert kept() == ["1", "2"]
    journal.flush()
    assert kept() == ["1", "2", "3"]


class Steadily:
    """In place of the event that hurries the writer: each wait for it brings another decision, and no hurry."""

    def __init__(self, queue: Any) -> None:
        self._queue, self._until = queue, time.monotonic() + 10
        self.waits = 0

    def wait(self, timeout: float) -> bool:
        assert time.monotonic() < self._until, "it waits for ever"
        self._queue.append(None)
        self.waits += 1
        return False


@pytest.fixture
def steadily(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> Iterator[Steadily]:
    with monkeypatch.context() as patch:
        patch.setattr(journal, "_hurry", steadily := Steadily(journal._queue))
        yield steadily
    journal._queue.clear()


def test_without_a_lull_records_are_not_gathered_for_ever(
    journal: Journal, steadily: Steadily, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_DELAY", 0.05)
    monkeypatch.setattr(writer, "BATCH", 10**9)
    journal._queue.append(None)
    journal._wait_for_batch()
    assert steadily.waits > 1


def test_a_batch_that_is_full_is_written_at_once(
    journal: Journal, steadily: Steadily, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_ever(monkeypatch)
    journal._queue.append(None)
    journal._wait_for_batch()
    assert len(journal._queue) == writer.BATCH


def test_a_caller_that_has_time_makes_the_records_itself(
    journal: Journal, keep: Any, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = keep(journal, 1)
    wait_for_ever(monkeypatch)
    keep(journal, 2, hooks=hooks, flush=False)
    prepare_newest(journal)
    monkeypatch.setattr(writer, "make_entry", None)  # so that no thread makes any more
    journal.flush()
    assert kept() == ["1", "2"]


def test_a_record_is_made_with_the_redactor_of_its_time(
    journal: Journal, keep: Any, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though another thread that still has the one before is at it, too."""
    hooks = keep(journal, 1)
    wait_for_ever(monkeypatch)
    keep(journal, "hunter2", hooks=hooks, flush=False)
    older = (redaction.current(), redaction.current())
    redaction.extend(values=["hunter2"])

    class Overtaken(Journal):
        """Whatever it sets there, another thread sets back."""

        _keyed = property(lambda self: older, lambda self, given: None)

    journal.__class__ = Overtaken
    prepare_newest(journal)
    journal.__class__ = Journal
    journal.close()
    assert b"hunter2" not in path.read_bytes()


def test_a_record_that_cannot_be_made_early_is_no_trouble(
    journal: Journal, keep: Any, kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = keep(journal, 1)
    wait_for_ever(monkeypatch)
    keep(journal, 2, hooks=hooks, flush=False)
    with monkeypatch.context() as broken:
        broken.setattr(writer, "make_entry", None)
        prepare_newest(journal)
    journal.flush()
    assert kept() == ["1", "2"]


def test_a_record_that_is_made_by_two_at_once_is_written_once(
    journal: Journal, keep: Any, kept: Kept, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hooks = keep(journal, 1)
    make, others = writer.make_entry, iter([prepare_newest])

    def make_twice(*given: Any) -> Any:
        for again in others:
            again(journal)
        return make(*given)

    wait_for_ever(monkeypatch)
    monkeypatch.setattr(writer, "make_entry", make_twice)
    keep(journal, 2, hooks=hooks, flush=False)
    prepare_newest(journal)
    monkeypatch.setattr(JournalFile, "append", _written_but_not_told(JournalFile.append, monkeypatch))
    with pytest.raises(JournalError, match="disk I/O error"):
        journal.flush()
    journal.flush()
    assert kept() == ["1", "2"]
    assert verify(path).problem is None


def _written_but_not_told(append: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """An append of which it is not known whether it has worked."""

    def fail(store: JournalFile, *given: Any) -> Any:
        monkeypatch.setattr(JournalFile, "append", append)
        append(store, *given)
        raise OSError(5, "disk I/O error")

    return fail


# --- back-pressure ----------------------------------------------------------------------------------


@pytest.fixture
def small_queue(monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(writer, "QUEUE_LIMIT", 10)
    return 10


async def test_a_full_queue_makes_an_async_dispatch_wait(
    small_queue: int, open_journal: Any, step: Any, path: Path
) -> None:
    journal = open_journal()
    hooks = Hooks(journal=journal)
    await hooks.dispatch(step(0))
    journal.flush()
    with held_up(path):
        written = asyncio.ensure_future(_dispatch_all(hooks, step, 100))
        done, _ = await asyncio.wait([written], timeout=0.3)  # the loop goes on meanwhile
        assert not done
        assert len(journal._queue) <= small_queue + 1
    await written


async def _dispatch_all(hooks: Hooks, step: Any, number: int) -> None:
    for at in range(number):
        await hooks.dispatch(step(at))


def test_a_full_queue_makes_a_sync_dispatch_wait(small_queue: int, open_journal: Any, step: Any, path: Path) -> None:
    journal = open_journal()
    hooks = Hooks(journal=journal)
    hooks.dispatch_sync(step(0))
    journal.flush()
    thread = threading.Thread(target=lambda: [hooks.dispatch_sync(step(number)) for number in range(100)])
    with held_up(path):
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        assert len(journal._queue) <= small_queue + 1
    thread.join(10)
    assert not thread.is_alive()


def test_back_pressure_loses_nothing(small_queue: int, journal: Journal, keep: Any, kept: Kept) -> None:
    keep(journal, *range(200))
    assert kept() == [str(number) for number in range(200)]


# --- whatever is kept, there is one record -----------------------------------------------------------


class Unequal:
    """Like an array of numbers: it has no truth of its own."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth of this is ambiguous")

    __hash__ = None  # type: ignore[assignment]


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    __str__ = __repr__


STRANGE: dict[str, Any] = {
    "a lone surrogate": "\ud800",
    "not a number": math.nan,
    "a huge number": 10**400,
    "bytes": b"\xff",
    "a set": {1, 2},
    "an object": object(),
    "an object that cannot be shown": Unshowable(),
    "an object that cannot be compared": Unequal(),
    "keys that are no texts": {1: 2, (3,): 4},
    "the journal's own words": {"$text": "ab", "$plain": {"$text": 1}},
    "a long text": "x" * 100_000,
    "an exception": ValueError("\udfff"),
    "a class": Unequal,
}


@pytest.mark.parametrize("value", STRANGE.values(), ids=STRANGE.keys())
def test_whatever_a_step_holds_there_is_one_record(
    value: Any, journal: Journal, step: Any, records: Any, path: Path
) -> None:
    hooks = Hooks(journal=journal)
    hooks.dispatch_sync(step(1, args={"command": "ls", "value": value}))
    journal.flush(5)
    assert len(records()) == 1
    assert verify(path).problem is None


@pytest.mark.parametrize("value", STRANGE.values(), ids=STRANGE.keys())
def test_whatever_a_hook_says_there_is_one_record(value: Any, journal: Journal, step: Any, records: Any) -> None:
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: change(args={"value": value}, metadata={"value": value}), on="before_tool", name="odd")
    hooks.dispatch_sync(step(1, args={"value": value}))
    journal.flush(5)
    assert len(records()) == 1


def nested(depth: int) -> Any:
    value: Any = "bottom"
    for level in range(depth):
        value = {"a": value} if level % 2 else [value]
    return value


@pytest.mark.parametrize("depth", [100, 200, 240, 248, 249, 250, 251, 260, 300, 320])
def test_a_deep_step_is_one_record_that_can_be_read(
    depth: int, journal: Journal, step: Any, records: Any, path: Path
) -> None:
    Hooks(journal=journal).dispatch_sync(step(1, args={"deep": nested(depth)}))
    journal.flush(5)
    assert len(records()) == 1
    assert verify(path).problem is None


def test_a_command_cannot_hide_from_the_journal_behind_a_lone_surrogate(
    journal: Journal, step: Any, records: Any
) -> None:
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: deny("no"), on="before_tool", name="no")
    hooks.dispatch_sync(step(1, args={"command": "rm -rf / \ud800"}))
    journal.flush()
    (record,) = records()
    assert "rm -rf /" in record.body["step"]["args"]["command"]


@pytest.mark.parametrize("name", ["\ud800", "x" * 600, "\x1b[31m", "$text"])
def test_whatever_a_hook_is_called_there_is_one_record(
    name: str, journal: Journal, step: Any, records: Any, path: Path
) -> None:
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: deny("no"), on="before_tool", name=name)
    hooks.dispatch_sync(step(1))
    journal.flush(5)
    assert [record.body["control"] for record in records()] == ["deny"]
    assert verify(path).problem is None


def test_a_hook_of_a_long_name_whose_runner_told_details_is_recorded(journal: Journal, step: Any, records: Any) -> None:
    from fairlead.hook import RunnerResult

    hooks = Hooks(journal=journal)
    hooks.add(lambda step: RunnerResult(deny("no"), {"exit": 2}), on="before_tool", name="x" * 600)
    hooks.dispatch_sync(step(1))
    journal.flush(5)
    (record,) = records()
    assert record.decision.runs[0].hook == "x" * 600


def test_a_hook_with_every_attribute_does_not_hold_up_the_journal(run: Any) -> None:
    code = """
class Agreeable:  # as a mock is
    def __getattr__(self, name):
        if name.startswith("__") or name in ("aclose", "version"):
            raise AttributeError(name)
        return Agreeable()
    def __call__(self, step):
        return None
journal = Journal(path)
hooks = Hooks(journal=journal)
hooks.add(Agreeable(), on="before_tool", name="agreeable")
hooks.dispatch_sync(step(1))
try:
    journal.flush(3)
    say("written")
finally:
    os._exit(0)
"""
    assert run(code).out == "written\n"


def test_a_listed_number_that_is_part_of_a_time_does_not_spoil_the_record(
    open_journal: Any, step: Any, records: Any
) -> None:
    from fairlead.redaction.redactor import Redactor

    digits = [str(digit) for digit in range(1000, 10000)]  # whatever the clock shows, one of them is in it
    journal = open_journal(redactor=Redactor(values=digits))
    Hooks(journal=journal).dispatch_sync(step("one"))
    journal.flush(5)
    (record,) = records()
    assert isinstance(record.body["at"], int)


# --- notes -------------------------------------------------------------------------------------------


def test_a_note_is_kept(journal: Journal, notes: Any) -> None:
    journal.note("paused", who="me")
    journal.flush()
    (note,) = notes()
    assert (note["note"], note["who"]) == ("paused", "me")


OWN = ("v", "id", "at", "kind", "step", "control", "runs", "said", "winner", "policy", "redacted", "left", "took")


@pytest.mark.parametrize("word", OWN)
def test_a_note_cannot_pass_for_something_else(word: str, journal: Journal, records: Any, path: Path) -> None:
    with pytest.raises(JournalError, match=word):
        journal.note("odd", **{word: "x"})


@pytest.mark.parametrize("word", ["pruned", "damaged", "crashed", "lost"])
def test_what_the_journal_notes_itself_no_hook_can(word: str, journal: Journal) -> None:
    with pytest.raises(JournalError, match=word):
        journal.note(word)


# --- when the writing itself goes wrong ---------------------------------------------------------------


def test_a_head_that_cannot_be_written_makes_no_record_twice(
    journal: Journal, keep: Any, kept: Kept, path: Path
) -> None:
    hooks = keep(journal, 1)
    blocked = path.with_name("journal.db.head.new")
    blocked.mkdir()
    keep(journal, 2, flush=False, hooks=hooks)
    with pytest.raises(JournalError):
        journal.flush()
    blocked.rmdir()
    journal.flush()
    assert kept() == ["1", "2"]


def test_pruning_that_fails_makes_no_record_twice(open_journal: Any, keep: Any, kept: Kept, sql: Any) -> None:
    journal = open_journal()
    keep(journal, *range(10))
    journal.close()
    sql("DELETE FROM records WHERE seq = 5")
    again = open_journal(max_size=1)  # so that there is something to prune
    keep(again, "new", flush=False)
    again.close()
    assert kept().count("new") == 1


@pytest.mark.parametrize("max_age", [math.inf, 1e30, 0.0])
def test_any_age_may_be_the_limit(max_age: float, open_journal: Any, keep: Any, kept: Kept) -> None:
    keep(open_journal(max_age=max_age), 1)
    assert kept()[-1:] == ["1"]


@pytest.mark.parametrize("options", [{"durability": "half"}, {"on_failure": "shut"}])
def test_options_that_mean_nothing_are_refused(options: dict[str, str], path: Path) -> None:
    with pytest.raises(JournalError, match="is "):
        Journal(path, **options)  # type: ignore[arg-type]


async def test_hooks_are_closed_though_the_journal_cannot_be_written(
    open_journal: Any, step: Any, tmp_path: Path
) -> None:
    class Worker:
        closed = False

        def __call__(self, step: Any) -> None:
            return None

        async def aclose(self) -> None:
            self.closed = True

    (tmp_path / "file").touch()
    worker, hooks = Worker(), Hooks(journal=open_journal(tmp_path / "file/journal.db"))
    hooks.add(worker, on="before_tool", name="worker")
    await hooks.dispatch(step(1))
    with pytest.raises(JournalError):
        await hooks.aclose()
    assert worker.closed


# --- what is recorded ---------------------------------------------------------------------------------


def test_the_state_is_recorded_as_it_was(journal: Journal, records: Any) -> None:
    state = {"tasks": ["one"]}
    Hooks(journal=journal).dispatch_sync(BeforeRequest(state=state))
    state["tasks"].append("two")
    journal.flush()
    assert records()[0].body["step"]["state"] == {"tasks": ["one"]}


def test_the_state_of_a_changed_step_is_recorded_as_it_was(journal: Journal, records: Any) -> None:
    state = {"tasks": ["one"]}
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: change(session_id="s2"), on="before_request", name="renames")
    hooks.dispatch_sync(BeforeRequest(state=state))
    state["tasks"].append("two")
    journal.flush()
    (record,) = records()
    assert (record.body["step"]["state"], list(record.body["left"])) == ({"tasks": ["one"]}, ["session_id"])


def test_metadata_that_a_hook_goes_on_using_is_recorded_as_it_was(journal: Journal, step: Any, records: Any) -> None:
    counts = {"seen": 1}
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: deny("no", metadata=counts), on="before_tool", name="counts")
    hooks.dispatch_sync(step(1))
    counts["seen"] = 2
    journal.flush()
    assert records()[0].decision.metadata == {"seen": 1}


async def test_a_cancelled_dispatch_is_recorded_once(journal: Journal, step: Any, records: Any) -> None:
    hooks, started = Hooks(journal=journal), asyncio.Event()

    async def slow(step: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    hooks.add(slow, on="before_tool", name="slow")
    going = asyncio.ensure_future(hooks.dispatch(step(1)))
    await started.wait()
    going.cancel()
    await asyncio.wait([going])
    journal.flush()
    assert [(r.body["control"], r.body["runs"][0][2]) for r in records()] == [("abort", "cancelled")]


async def test_a_deny_that_the_host_cannot_carry_out_is_recorded(journal: Journal, records: Any) -> None:
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: deny("no"), on="before_tool", name="no")
    session = hooks.session("s1", capabilities={})
    with pytest.raises(Unenforceable):
        await session.dispatch(session.step(BeforeTool, tool="bash"))
    journal.flush()
    assert [record.body["control"] for record in records()] == ["deny"]


def test_long_messages_are_stored_once(journal: Journal, sql: Any) -> None:
    hooks = Hooks(journal=journal)
    history = []
    for number in range(50):
        history.append({"role": "user", "content": f"message {number} " + "x" * 200})
        hooks.dispatch_sync(BeforeModel(model="m", messages=list(history)))
    journal.flush()
    (texts,) = sql("SELECT count(*) FROM texts")[0]
    assert texts == 50 + 1  # and the policy


def test_long_messages_are_whole_when_read(journal: Journal, records: Any) -> None:
    hooks = Hooks(journal=journal)
    history = [{"role": "user", "content": f"message {number} " + "x" * 200} for number in range(5)]
    hooks.dispatch_sync(BeforeModel(model="m", messages=history))
    journal.flush()
    assert records()[0].body["step"]["messages"] == history


# --- a function as a journal ----------------------------------------------------------------------------


def test_a_function_is_called_once_per_decision(step: Any) -> None:
    seen: list[Any] = []
    hooks = Hooks(journal=seen.append)
    decisions = [hooks.dispatch_sync(step(number)) for number in range(3)]
    assert seen == decisions


async def test_without_a_record_there_is_no_decision(step: Any) -> None:
    def full(decision: Any) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await Hooks(journal=full).dispatch(step(1))


def test_without_a_record_there_is_no_sync_decision(step: Any) -> None:
    def full(decision: Any) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        Hooks(journal=full).dispatch_sync(step(1))


async def test_a_function_that_fails_does_not_take_the_place_of_a_cancellation(step: Any) -> None:
    def full(decision: Any) -> None:
        raise OSError("disk full")

    started = asyncio.Event()

    async def slow(step: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    hooks = Hooks(journal=full)
    hooks.add(slow, on="before_tool", name="slow")
    going = asyncio.ensure_future(hooks.dispatch(step(1)))
    await started.wait()
    going.cancel()
    with pytest.raises(asyncio.CancelledError):
        await going


# --- versions and policies ------------------------------------------------------------------------------


def version(hooks: Hooks) -> str:
    from fairlead.journal.policy import version_of

    return version_of(next(iter(hooks)))


def hooked(fn: Any, **options: Any) -> Hooks:
    hooks = Hooks()
    hooks.add(fn, on="before_tool", name="hook", **options)
    return hooks


def made(code: str) -> Any:
    names: dict[str, Any] = {"deny": deny}
    exec(code, names)
    return names["hook"]


def policy(hooks: Hooks) -> bytes:
    from fairlead.journal.policy import policy_of

    return policy_of(hooks.table)[0]


ONE = "def hook(step):\n    return deny('no') if step.tool in {'a', 'b', 'c'} else None"


def test_the_same_code_has_the_same_version() -> None:
    assert version(hooked(made(ONE))) == version(hooked(made("\n\n" + ONE)))


@pytest.mark.parametrize(
    "other",
    [
        ONE.replace("'no'", "'yes'"),
        ONE.replace("'c'", "'d'"),
        ONE.replace("return", "x = 1; return"),
        ONE.replace("(step)", "(step, limit=5)"),
    ],
    ids=["a constant", "one in a set", "a statement", "an argument"],
)
def test_changed_code_has_another_version(other: str) -> None:
    assert version(hooked(made(ONE))) != version(hooked(made(other)))


def test_a_changed_default_is_another_version() -> None:
    first = made("def hook(step, limit=5):\n    return deny('no') if limit else None")
    other = made("def hook(step, limit=6):\n    return deny('no') if limit else None")
    assert version(hooked(first)) != version(hooked(other))


def test_a_partial_with_another_argument_is_another_version() -> None:
    def hook(limit: int, step: Any) -> None:
        return None

    assert version(hooked(partial(hook, 5))) != version(hooked(partial(hook, 6)))


def test_a_version_is_the_same_in_every_process(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code = f"""
from fairlead.journal.policy import policy_of
exec({ONE!r})
hooks = Hooks()
hooks.add(hook, on=("before_tool", "after_tool"), name="hook", kind=["shell", "read"])
say(policy_of(hooks.table)[0].hex())
"""
    said = set()
    for seed in ("1", "2", "3"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        said.add(run(code).out)
    assert len(said) == 1


def test_the_policy_id_is_the_same_for_the_same_table() -> None:
    assert policy(hooked(made(ONE))) == policy(hooked(made(ONE)))


def test_the_policy_id_changes_with_a_hook() -> None:
    assert policy(hooked(made(ONE))) != policy(hooked(made(ONE.replace("'no'", "'yes'"))))


@pytest.mark.parametrize(
    "options", [{"priority": 0}, {"enforce": False}, {"timeout": 1.0}, {"on_failure": "open"}, {"tool": "x*"}]
)
def test_the_policy_id_changes_with_an_option(options: dict[str, Any]) -> None:
    assert policy(hooked(made(ONE))) != policy(hooked(made(ONE), **options))


def test_a_record_names_its_policy(journal: Journal, keep: Any, records: Any) -> None:
    hooks = Hooks(journal=journal)
    hooks.add(made(ONE), on="before_tool", name="hook")
    keep(journal, 1, hooks=hooks)
    assert records()[0].policy == policy(hooks).hex()
