"""Large requests: how large they may be, where they are worked on, and that nothing else about them is different."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import Daemon, Machine, wait_until
from played import captures
from shapes import REFUSED, SERVED, WRONG, Shape

from fairlead.engine.threads import active_offload
from fairlead.frozen import freeze
from fairlead.hosts.clis.mapping import ALL, host_named
from fairlead.journal import Journal, writer
from fairlead.journal import entry as entry_module
from fairlead.journal.reading import Reader
from fairlead.journal.store import JournalFile
from fairlead.lifecycle import BeforeTool
from fairlead.packs.guard import Guard
from fairlead.server import app, limits
from fairlead.server import large as large_module
from fairlead.server import service as service_module
from fairlead.server.large import FairLock, LargeRequests
from fairlead.server.limits import HUGE, LARGE, Overloaded, TooLarge, check_json
from fairlead.server.offload import OffloadFailed
from fairlead.server.service import DispatchRequest, Service
from fairlead.wire.steps import envelope

DENIES = '[[hook]]\nname = "no"\non = "before_tool"\nphase = "gate"\nrule = \'tool == "forbidden"\'\ndeny = "no"\n'
SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def root(shared: Machine) -> Path:
    return shared.project("p", DENIES)


def ask(daemon: Daemon, shape: Shape, root: Path) -> Any:
    return daemon.ask("POST", *shape(str(root)))


# --- limits -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SERVED)
def test_what_is_as_large_as_it_may_be_is_served(daemon: Daemon, root: Path, name: str) -> None:
    answer = ask(daemon, SERVED[name], root)
    assert answer.status == 200, answer.body


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_larger_is_refused_with_what_it_may_be(daemon: Daemon, root: Path, name: str) -> None:
    answer = ask(daemon, REFUSED[name], root)
    assert (answer.status, answer.body["error"]) == (413, "too_large")
    assert "at most" in answer.body["message"]


@pytest.mark.parametrize("name", [name for name in REFUSED if "CLI" in name])
async def test_nothing_is_remembered_of_a_moment_that_is_too_large(
    machine: Machine, service: Service, name: str
) -> None:
    root = str(machine.project("p", ""))
    status, _ = await request(service, *REFUSED[name](root))
    assert (status, len(service.sessions)) == (413, 0)
    assert not service.sessions.of_cli("", "s", root)[1].calls


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_at_length_is_refused_in_short(daemon: Daemon, root: Path, name: str) -> None:
    answer = ask(daemon, WRONG[name], root)
    expected = "bad_payload" if name == "a payload" else "bad_request"
    assert (answer.status, answer.body["error"]) == (400, expected)
    assert len(json.dumps(answer.body)) < 5000


@pytest.mark.parametrize(("policy", "expected"), [("closed", "deny"), ("open", "proceed"), ("abort", "abort")])
def test_a_client_whose_step_is_too_large_goes_by_its_policy(
    daemon: Daemon, root: Path, policy: Any, expected: str
) -> None:
    step = BeforeTool(tool="bash", args={"command": "x" * (2 << 20)})
    with daemon.client() as client:
        decision = client.dispatch(step, root=str(root), on_failure=policy)
    assert (decision.control, decision.cause) == (expected, None if policy == "open" else "failure")
    assert "at most 1 MiB" in decision.failures[0].error


def values(data: Any) -> int:
    inside = data.values() if isinstance(data, dict) else data if isinstance(data, list) else ()
    return 1 + sum(map(values, inside))


TEXTS = st.text(st.sampled_from('a",:[]{}\\\n\u00e9'), max_size=8)
JSON = st.recursive(st.none() | st.integers() | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner))


@settings(deadline=None, max_examples=300)
@given(JSON, st.integers(1, 60), st.booleans(), st.sampled_from([None, 1]))
def test_values_are_counted_without_what_is_in_texts(data: Any, most: int, ascii: bool, indent: int | None) -> None:
    body = json.dumps(data, ensure_ascii=ascii, indent=indent).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "VALUES", most)
        if values(data) > most + 1:
            with pytest.raises(TooLarge):
                check_json(body)
        elif 2 * values(data) <= most:  # what is empty counts twice
            check_json(body)


# --- the same decisions -------------------------------------------------------------------------


@pytest.fixture
async def service(machine: Machine) -> AsyncIterator[Service]:
    made = Service(machine.state, Journal(machine.state / "journal.db"))
    yield made
    await made.aclose()


def padded(size: int, **fields: Any) -> DispatchRequest:
    """A call whose arguments have about that many bytes."""
    step = BeforeTool(**{"tool": "write", "args": {"path": "a", "content": "x" * size}, "session_id": "s"} | fields)
    return DispatchRequest(msgspec.to_builtins(envelope(step)))


async def dispatch(service: Service, asked: DispatchRequest, size: int, root: Path) -> Any:
    asked.root = str(root)
    with service.large.hold("", size):
        return await service.dispatch(asked, "", size)


@pytest.mark.parametrize("size", [0, LARGE + 1, HUGE + 1])
@pytest.mark.parametrize("tool", ["forbidden", "write"])
async def test_a_large_step_gets_the_decision_that_a_small_one_gets(
    machine: Machine, service: Service, size: int, tool: str
) -> None:
    told = await dispatch(service, padded(10, tool=tool), size, machine.project("p", DENIES))
    assert (told["control"], told["reason"]) == (("deny", "no") if tool == "forbidden" else ("proceed", None))
    assert [run[0] for run in told["runs"]] == ["fairlead.guard", "no"]


@pytest.mark.parametrize("size", [0, LARGE + 1, HUGE + 1])
async def test_the_guard_judges_a_large_step_as_it_does_a_small_one(
    machine: Machine, service: Service, size: int
) -> None:
    asked = padded(10, tool="bash", args={"command": "rm -rf ~/.claude/hooks"})
    told = await dispatch(service, asked, size, machine.project("p", DENIES))
    assert (told["control"], told["hook"]) == ("deny", "fairlead.guard")


@pytest.mark.parametrize("size", [1000, LARGE + 1000, HUGE + 1000, 900_000])
def test_a_step_of_any_size_is_judged_and_its_record_is_in_the_journal(machine: Machine, size: int) -> None:
    root, daemon = machine.project("p", DENIES), machine.start()
    with daemon.client() as client:
        args = {"command": "x" * size, "password": SECRET}
        decision = client.dispatch(BeforeTool(tool="forbidden", args=args, session_id="s"), root=str(root))
    daemon.end()
    with Reader(machine.state / "journal.db") as reader:
        (record,) = reader.records()
    assert (decision.control, decision.reason, record.body["control"]) == ("deny", "no", "deny")
    assert record.body["step"]["args"] == {"command": "x" * size, "password": "[redacted: secret]"}


@pytest.mark.parametrize("host", ALL)
def test_a_large_moment_is_read_as_a_small_one_is(host: str) -> None:
    """Though it is frozen by then."""
    table = host_named(host)
    for one in captures(host):
        if one.event in table.events:
            read, frozen = table.events[one.event].parse, freeze(one.payload)
            assert (read(frozen), table.identify(frozen)) == (read(one.payload), table.identify(one.payload))


# --- where it is worked on ----------------------------------------------------------------------


class Noted:
    """Notes in which thread some functions are called."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.threads: dict[str, set[bool]] = {}
        for where, name in (
            (app, "_encode"),
            (service_module, "step_from_envelope"),
            (entry_module, "_entry"),
            (Guard, "_judge"),
        ):
            patch.setattr(where, name, self._noting(name, getattr(where, name)))
        for name in ("_decode_dispatch", "_decode_hook"):
            patch.setattr(app, name, self._noting("decode", getattr(app, name)))

    def _noting(self, name: str, fn: Any) -> Any:
        def noting(*args: Any) -> Any:
            self.threads.setdefault(name, set()).add(threading.current_thread() is threading.main_thread())
            return fn(*args)

        return noting

    @property
    def on_the_loop(self) -> set[str]:
        return {name for name, seen in self.threads.items() if True in seen}

    @property
    def elsewhere(self) -> set[str]:
        return {name for name, seen in self.threads.items() if False in seen}


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    return Noted(monkeypatch)


async def request(service: Service, path: str, body: bytes) -> tuple[int, Any]:
    """A request of the daemon's user to the application, in this process."""
    front = app.make_app(service, None, lambda: None, frozenset({7}))  # type: ignore[arg-type]
    headers = [(b"host", b"localhost"), (b"content-length", b"%d" % len(body))]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "client": ("unix7", 1)}
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await front(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


def a_call(root: Path, size: int) -> bytes:
    step = {"event": "before_tool", "tool": "write", "args": {"path": "a", "content": "x" * size}}
    return json.dumps({"step": step, "root": str(root)}).encode()


async def test_a_small_request_is_worked_on_at_once(machine: Machine, service: Service, noted: Noted) -> None:
    status, _ = await request(service, "/v1/dispatch", a_call(machine.project("p", DENIES), 100))
    assert (status, noted.elsewhere) == (200, set())


async def test_a_large_request_is_not_worked_on_by_the_loop(machine: Machine, service: Service, noted: Noted) -> None:
    status, told = await request(service, "/v1/dispatch", a_call(machine.project("p", DENIES), LARGE))
    assert (status, told["control"]) == (200, "proceed")
    assert (noted.on_the_loop, noted.elsewhere) == (
        set(),
        {"decode", "step_from_envelope", "_judge", "_entry", "_encode"},
    )


async def test_the_record_of_a_huge_request_is_not_made_in_this_process(
    machine: Machine, service: Service, noted: Noted
) -> None:
    status, _ = await request(service, "/v1/dispatch", a_call(machine.project("p", DENIES), HUGE))
    assert service.journal is not None
    service.journal.flush()
    assert (status, "_entry" in noted.threads) == (200, False)
    with Reader(service.journal.path) as reader:
        assert [record.body["step"]["args"]["content"] for record in reader.records()] == ["x" * HUGE]


async def test_a_large_moment_is_not_worked_on_by_the_loop(machine: Machine, service: Service, noted: Noted) -> None:
    path, body = SERVED["what a CLI's tool is given"](str(machine.project("p", DENIES)))
    status, _ = await request(service, path, body)
    assert (status, noted.on_the_loop & {"decode", "_judge", "_entry"}) == (200, set())


# --- turns --------------------------------------------------------------------------------------


async def test_callers_take_turns() -> None:
    """However many pieces of work one has."""
    turns, done = FairLock(), list[str]()
    go = asyncio.Event()

    async def work(caller: str) -> None:
        async with turns.turn(caller):
            await go.wait()
            done.append(caller)

    tasks = [asyncio.create_task(work(caller)) for caller in "AAAAABBC"]
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*tasks)
    assert "".join(done) == "ABCABAAA"


async def test_one_piece_of_work_is_done_at_a_time() -> None:
    working, most = 0, 0
    turns = FairLock()

    async def work(caller: str) -> None:
        nonlocal working, most
        async with turns.turn(caller):
            working += 1
            most = max(most, working)
            await asyncio.sleep(0)
            working -= 1

    await asyncio.gather(*(work(caller) for caller in "ABCABC"))
    assert (most, len(turns._own)) == (1, 0)


async def test_a_caller_that_gives_up_waiting_keeps_no_other_waiting() -> None:
    turns = FairLock()
    async with turns.turn("A"):
        waiting = [asyncio.create_task(turns.turn(caller).__aenter__()) for caller in "AB"]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    for caller in "ABC":
        async with asyncio.timeout(5), turns.turn(caller):
            pass


# --- how much at once ---------------------------------------------------------------------------


def test_small_requests_hold_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_module, "AT_ONCE", 0)
    with LargeRequests().hold("", LARGE):
        assert active_offload.get() is None


def test_a_caller_holds_half_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_module, "AT_ONCE", 8 * HUGE)
    held = LargeRequests()
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(held.hold("one", HUGE))
        with pytest.raises(Overloaded):
            stack.enter_context(held.hold("one", HUGE))
        for number in range(4):
            stack.enter_context(held.hold(f"another {number}", HUGE))
        with pytest.raises(Overloaded):
            stack.enter_context(held.hold("yet another", HUGE))
    assert not held._held
    with held.hold("one", 4 * HUGE):
        assert active_offload.get() is not None
    assert active_offload.get() is None


async def test_a_request_that_is_too_much_is_refused_before_it_is_read(
    machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_module, "AT_ONCE", 2 * HUGE)
    monkeypatch.setattr(app, "_body", None)
    status, told = await request(service, "/v1/dispatch", a_call(machine.project("p", DENIES), HUGE))
    assert (status, told["error"]) == (503, "overloaded")


async def test_whatever_becomes_of_a_large_request_it_holds_nothing_afterwards(
    machine: Machine, service: Service
) -> None:
    root = str(machine.project("p", DENIES))
    for shape in (SERVED["a command"], REFUSED["a command"], WRONG["an event"], WRONG["a folder"]):
        await request(service, *shape(root))
    assert not service.large._held


# --- records ------------------------------------------------------------------------------------


async def test_a_record_that_cannot_be_made_elsewhere_says_so(
    machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And has nothing in it that was not redacted."""

    def fail(*_: Any) -> None:
        raise OffloadFailed("it is gone")

    monkeypatch.setattr(service.large._offload, "call", fail)
    asked = padded(HUGE, args={"content": SECRET * 2000})
    assert (await dispatch(service, asked, HUGE + 1, machine.project("p", DENIES)))["control"] == "proceed"
    assert service.journal is not None
    service.journal.flush()
    with Reader(service.journal.path) as reader:
        (record,) = reader.records()
    assert record.body["unwritable"] == "it is gone"
    assert record.body["step"] == {"event": "before_tool", "session_id": "s"}


async def test_a_large_request_that_is_cancelled_is_recorded(machine: Machine, service: Service) -> None:
    root, here = machine.project("p", ""), asyncio.Event()

    async def wait(_: Any) -> None:
        here.set()
        await asyncio.Event().wait()

    (await service.projects.find(str(root), {})).hooks.add(wait, on="before_tool", timeout=None)
    task = asyncio.create_task(dispatch(service, padded(10), LARGE + 1, root))
    await here.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert service.journal is not None
    service.journal.flush()
    with Reader(service.journal.path) as reader:
        assert [record.body["control"] for record in reader.records()] == ["abort"]


@pytest.mark.parametrize("durability", ["normal", "full"])
async def test_a_large_record_is_queued_when_it_is_made_so_that_others_do_not_wait_for_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, durability: Any
) -> None:
    root, making, go = machine.project("p", ""), threading.Event(), threading.Event()
    service = Service(machine.state, Journal(machine.state / "journal.db", durability=durability))
    try:
        await dispatch(service, padded(1), 1, root)
        made = entry_module._encodable_entry

        def slowly(plain: Any, *args: Any) -> Any:
            if plain["step"]["tool"] == "large":
                making.set()
                go.wait(30)
            return made(plain, *args)

        monkeypatch.setattr(entry_module, "_encodable_entry", slowly)
        slow = asyncio.create_task(dispatch(service, padded(1, tool="large"), LARGE + 1, root))
        await asyncio.to_thread(making.wait, 30)
        await dispatch(service, padded(1, tool="small"), 1, root)
        assert service.journal is not None
        await asyncio.to_thread(service.journal.flush)
        assert not slow.done()
        go.set()
        await slow
        await asyncio.to_thread(service.journal.flush)
        with Reader(service.journal.path) as reader:
            assert [record.body["step"]["tool"] for record in reader.records()] == ["write", "small", "large"]
    finally:
        go.set()
        await service.aclose()


async def test_a_large_step_is_answered_when_its_record_is_queued(machine: Machine, service: Service) -> None:
    """So what follows it in its session follows it in the journal, too."""
    root = machine.project("p", "")
    for number in range(6):
        await dispatch(service, padded(1, call_id=str(number)), (LARGE + 1, 1)[number % 2], root)
    assert service.journal is not None
    service.journal.flush()
    with Reader(service.journal.path) as reader:
        assert [record.body["step"]["call_id"] for record in reader.records()] == list("012345")


async def test_what_a_task_dispatches_after_a_large_step_was_answered_is_recorded(
    machine: Machine, service: Service
) -> None:
    root, go, tasks = machine.project("p", ""), asyncio.Event(), list[asyncio.Task[Any]]()

    async def later() -> None:
        await go.wait()
        await dispatch(service, padded(1, tool="later"), 1, root)

    async def spawn(step: Any) -> None:
        if step.tool == "write":
            tasks.append(asyncio.create_task(later()))

    (await service.projects.find(str(root), {})).hooks.add(spawn, on="before_tool")
    await dispatch(service, padded(1), LARGE + 1, root)
    go.set()
    await asyncio.gather(*tasks)
    assert service.journal is not None
    service.journal.flush()
    with Reader(service.journal.path) as reader:
        assert [record.body["step"]["tool"] for record in reader.records()] == ["write", "later"]


async def test_large_records_that_cannot_be_written_do_not_pile_up(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUEUE_BYTES", 4 * LARGE)
    journal = Journal(machine.state / "journal.db")
    service = Service(machine.state, journal)
    root = machine.project("p", "")
    await dispatch(service, padded(1), 1, root)
    journal.flush()
    monkeypatch.setattr(JournalFile, "append", lambda *_: (_ for _ in ()).throw(OSError("no space")))
    for _ in range(40):
        await dispatch(service, padded(LARGE), LARGE + 1, root)
    try:
        wait_until(lambda: journal.error)
        for _ in range(40):
            await dispatch(service, padded(LARGE), LARGE + 1, root)
        assert journal.lost >= 30
    finally:
        monkeypatch.undo()
        await service.aclose()
