"""An approval is used up by a caller that has its answer. Otherwise, what was handed out returns, once."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machines import Daemon, Machine, questions_of, wait_until

from fairlead import ApprovalRequest
from fairlead.client import AsyncClient, Client
from fairlead.journal.errors import NoJournal
from fairlead.journal.reading import Reader
from fairlead.samples import step
from fairlead.server.approvals import (
    AcknowledgedTooLate,
    ApprovalContext,
    ApprovalStore,
    NoSuchReceipt,
    Receipt,
    approval_context,
)
from fairlead.server.service import ACKNOWLEDGE_TIMEOUT
from fairlead.wire.steps import envelope

ASKS = """
[[hook]]
name = "budget"
on = "before_tool"
rule = "true"
phase = "gate"
ask = "spend 5 EUR?"
"""
ASKS_TWICE = ASKS + ASKS.replace("budget", "ops").replace("spend 5 EUR?", "delete it?")


@pytest.fixture(scope="module")
def shared(shared: Machine) -> Machine:
    shared.user(ASKS)
    return shared


def state(client: Client, session: str) -> str:
    (one,) = questions_of(client, session, every=True)
    return str(one["state"])


def granted(client: Client, session: str, **about: Any) -> None:
    """A grant for a call: it was asked about, refused because no human answered, and then approved."""
    client.dispatch(step("before_tool", session_id=session), deadline=0.0)
    for one in questions_of(client, session):
        client.answer(one["id"], True, **about)


def asked_step(event: str, session: str) -> Any:
    return msgspec.to_builtins(envelope(step(event, session_id=session)))


def body(session: str, **more: Any) -> dict[str, Any]:
    return {"step": asked_step("before_tool", session), "deadline": 0.0, **more}


def handed_out(daemon: Daemon, session: str) -> str:
    """The receipt of a caller that gets the grant, and says nothing more."""
    answer = daemon.ask("POST", "/v1/dispatch", body(session), fairlead_acknowledges="1")
    assert (answer.status, answer.body["control"]) == (200, "allow")
    return str(answer.body["acknowledge"])


def acknowledge(daemon: Daemon, receipt: str) -> tuple[int, str | None]:
    answer = daemon.ask("POST", "/v1/acknowledge", {"id": receipt})
    return answer.status, answer.body.get("error")


def noted(machine: Machine) -> list[dict[str, Any]]:
    """What the journal says besides decisions."""
    return [record.body for record in records(machine) if record.is_note]


def recorded(machine: Machine, session: str) -> list[dict[str, Any]]:
    """The decisions of a session."""
    return [one.body for one in records(machine) if not one.is_note and one.body["step"]["session_id"] == session]


def records(machine: Machine) -> list[Any]:
    """What is in the journal, if there is one yet: it is written in the background."""
    try:
        with Reader(machine.state / "journal.db") as reader:
            return list(reader.records())
    except NoJournal:
        return []


# --- over HTTP ----------------------------------------------------------------------------------


def test_a_use_that_is_acknowledged_is_final(daemon: Daemon, client: Client, session: str) -> None:
    granted(client, session)
    receipt = handed_out(daemon, session)
    assert state(client, session) == "handed_out"
    assert acknowledge(daemon, receipt) == (200, None)
    assert state(client, session) == "used"


def test_a_grant_without_an_acknowledgement_returns_and_the_identical_call_finds_it(
    daemon: Daemon, client: Client, session: str
) -> None:
    granted(client, session)
    handed_out(daemon, session)
    wait_until(lambda: state(client, session) == "approved")
    given = step("before_tool", session_id=session)
    assert [client.dispatch(given, deadline=0.0).control for _ in range(2)] == ["allow", "deny"]


def test_a_grant_returns_once(daemon: Daemon, client: Client, session: str) -> None:
    granted(client, session)
    for state_then in ("approved", "used"):
        handed_out(daemon, session)
        wait_until(lambda state_then=state_then: state(client, session) == state_then)
    assert client.dispatch(step("before_tool", session_id=session), deadline=0.0).control == "deny"


def test_what_is_handed_out_serves_no_other_call_meanwhile(daemon: Daemon, client: Client, session: str) -> None:
    granted(client, session)
    handed_out(daemon, session)
    answer = daemon.ask("POST", "/v1/dispatch", body(session), fairlead_acknowledges="1")
    assert (answer.body["control"], "acknowledge" in answer.body) == ("deny", False)


def test_another_caller_that_waits_for_the_same_is_given_what_returns(
    daemon: Daemon, client: Client, session: str
) -> None:
    granted(client, session)
    handed_out(daemon, session)
    decision = client.dispatch(step("before_tool", session_id=session), deadline=60.0)
    assert decision.control == "allow"
    assert sorted(one["state"] for one in questions_of(client, session, every=True)) == ["expired", "used"]


def test_an_acknowledgement_that_is_late_uses_up_what_no_other_caller_has(
    daemon: Daemon, client: Client, session: str
) -> None:
    granted(client, session)
    receipt = handed_out(daemon, session)
    wait_until(lambda: state(client, session) == "approved")
    assert acknowledge(daemon, receipt) == (200, None)
    assert client.dispatch(step("before_tool", session_id=session), deadline=0.0).control == "deny"


def test_an_acknowledgement_is_refused_when_another_call_has_the_grant(
    daemon: Daemon, client: Client, session: str
) -> None:
    granted(client, session)
    first = handed_out(daemon, session)
    wait_until(lambda: state(client, session) == "approved")
    second = handed_out(daemon, session)
    assert acknowledge(daemon, first) == (409, "too_late")
    assert acknowledge(daemon, second) == (200, None)
    assert acknowledge(daemon, first) == (409, "too_late")


@pytest.mark.parametrize("receipt", ["", "nobody", "' OR 1=1 --", "\0", "a" * 9999])
def test_a_receipt_that_was_never_issued_is_not_known(daemon: Daemon, receipt: str) -> None:
    assert acknowledge(daemon, receipt) == (404, "no_such_receipt")


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"id": 1}', b'{"id": null}', b'{"id": "x", "also": 1}'])
def test_an_acknowledgement_that_makes_no_sense_is_refused(daemon: Daemon, content: bytes) -> None:
    assert daemon.ask("POST", "/v1/acknowledge", content).status == 400


def test_receipts_cannot_be_guessed(daemon: Daemon, client: Client, session: str) -> None:
    receipts = set()
    for number in range(5):
        granted(client, f"{session} {number}")
        receipts.add(handed_out(daemon, f"{session} {number}"))
    assert (len(receipts), {len(receipt) for receipt in receipts}) == (5, {32})


def test_a_caller_that_does_not_acknowledge_uses_a_grant_up_at_once(
    daemon: Daemon, client: Client, session: str
) -> None:
    """It cannot be known whether such a caller has its answer, and two uses would be worse than none."""
    granted(client, session)
    answer = daemon.ask("POST", "/v1/dispatch", body(session))
    assert (answer.body["control"], "acknowledge" in answer.body) == ("allow", False)
    assert state(client, session) == "used"


def test_an_answer_without_a_question_has_no_receipt(daemon: Daemon, session: str) -> None:
    asked = {"step": asked_step("after_tool", session)}
    answer = daemon.ask("POST", "/v1/dispatch", asked, fairlead_acknowledges="1")
    assert "acknowledge" not in answer.body


def test_who_may_only_read_does_not_acknowledge(shared: Machine, daemon: Daemon, client: Client, session: str) -> None:
    from machines import ask

    from fairlead.server.tokens import Tokens

    granted(client, session)
    receipt, token = handed_out(daemon, session), Tokens(shared.state).add("reader", ["read", "approve", "admin"])
    answer = ask(("127.0.0.1", daemon.port), "POST", "/v1/acknowledge", {"id": receipt}, token=token)
    assert (answer.status, state(client, session)) == (403, "handed_out")


# --- callers ------------------------------------------------------------------------------------


def test_the_client_acknowledges_what_it_has_read(client: Client, session: str) -> None:
    granted(client, session)
    assert client.dispatch(step("before_tool", session_id=session), deadline=0.0).control == "allow"
    assert state(client, session) == "used"


async def test_so_does_the_client_that_awaits(daemon: Daemon, client: Client, session: str) -> None:
    granted(client, session)
    async with AsyncClient(daemon.socket, start=False) as other:
        assert (await other.dispatch(step("before_tool", session_id=session), deadline=0.0)).control == "allow"
    assert state(client, session) == "used"


@pytest.mark.parametrize("on_failure", ["closed", "abort"])
def test_a_client_whose_acknowledgement_is_refused_does_not_let_the_call_run(
    daemon: Daemon, client: Client, session: str, on_failure: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was slow, and another call has the grant by now."""
    granted(client, session)
    approval_context = client._requesting

    def slow(method: str, path: str, *more: Any) -> Any:
        if path == "/v1/acknowledge":
            wait_until(lambda: state(other, session) == "approved")
            handed_out(daemon, session)
        return (yield from approval_context(method, path, *more))

    with daemon.client() as other:
        monkeypatch.setattr(client, "_requesting", slow)
        decision = client.dispatch(step("before_tool", session_id=session), deadline=0.0, on_failure=on_failure)
    assert (decision.cause, decision.proceeds) == ("failure", False)
    assert "another call has it" in (decision.reason or "")


def hung_up(daemon: Daemon, session: str, wait: Callable[[], Any]) -> None:
    """A caller that asks, and closes its connection once something has come about."""
    content = json.dumps(body(session) | {"deadline": 60.0}).encode()
    head = f"POST /v1/dispatch HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(content)}\r\n"
    with daemon.connect() as connection:
        connection.sendall(f"{head}fairlead-acknowledges: 1\r\n\r\n".encode() + content)
        wait()


def test_a_caller_that_hangs_up_while_it_waits_uses_nothing(daemon: Daemon, client: Client, session: str) -> None:
    hung_up(daemon, session, lambda: wait_until(lambda: questions_of(client, session)))
    wait_until(lambda: daemon.health()["in_flight"] == 0)
    (one,) = questions_of(client, session)
    client.answer(one["id"], True)
    assert state(client, session) == "approved"
    assert client.dispatch(step("before_tool", session_id=session), deadline=0.0).control == "allow"


def test_a_caller_that_hangs_up_is_not_waited_for(
    shared: Machine, daemon: Daemon, client: Client, session: str
) -> None:
    hung_up(daemon, session, lambda: wait_until(lambda: questions_of(client, session)))
    (decision,) = wait_until(lambda: recorded(shared, session))
    assert (decision["control"], "the caller has hung up" in json.dumps(decision["said"])) == ("deny", True)


def test_a_caller_that_reads_half_of_its_answer_uses_nothing_up(daemon: Daemon, client: Client, session: str) -> None:
    granted(client, session)
    content = json.dumps(body(session)).encode()
    head = f"POST /v1/dispatch HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(content)}\r\n"
    with daemon.connect() as connection:
        connection.sendall(f"{head}fairlead-acknowledges: 1\r\n\r\n".encode() + content)
        assert connection.recv(20)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert state(client, session) == "handed_out"
    wait_until(lambda: state(client, session) == "approved")


# --- daemons that end ---------------------------------------------------------------------------


def test_what_a_killed_daemon_has_handed_out_returns_once(machine: Machine) -> None:
    machine.user(ASKS)
    for note, then in (("approved", "approved"), ("returned", "approved"), ("unacknowledged", "used")):
        daemon = machine.start()
        with daemon.client() as client:
            if note == "approved":
                granted(client, "s")
            assert state(client, "s") == then
            wait_until(lambda note=note: note in [one["note"] for one in noted(machine)])
            if then == "approved":
                handed_out(daemon, "s")
        daemon.process.kill()
        daemon.wait()
    assert [one["note"] for one in noted(machine) if "approval" in one] == [
        "asked", "approved", "returned", "unacknowledged",
    ]  # fmt: skip


def test_an_acknowledgement_reaches_the_next_daemon(machine: Machine) -> None:
    machine.user(ASKS)
    daemon = machine.start()
    with daemon.client() as client:
        granted(client, "s")
    receipt = handed_out(daemon, "s")
    daemon.process.kill()
    daemon.wait()
    daemon = machine.start()
    assert acknowledge(daemon, receipt) == (200, None)
    with daemon.client() as client:
        assert state(client, "s") == "used"


def test_a_daemon_that_is_told_to_end_waits_for_the_acknowledgement(machine: Machine) -> None:
    machine.user(ASKS)
    daemon = machine.start()
    with daemon.client() as client:
        granted(client, "s")
        receipt = handed_out(daemon, "s")
        daemon.process.send_signal(signal.SIGTERM)
        wait_until(lambda: client.health()["status"] == "draining")
        assert acknowledge(daemon, receipt) == (200, None)
    assert daemon.wait() == 0
    with machine.start().client() as client:
        assert state(client, "s") == "used"


def test_a_daemon_that_is_told_to_end_does_not_wait_for_ever(machine: Machine) -> None:
    machine.user(ASKS)
    daemon = machine.start()
    with daemon.client() as client:
        granted(client, "s")
    handed_out(daemon, "s")
    assert daemon.end() == 0
    with machine.start().client() as client:
        assert state(client, "s") == "approved"


def test_each_return_is_in_the_journal(machine: Machine) -> None:
    machine.user(ASKS)
    daemon = machine.start()
    with daemon.client() as client:
        granted(client, "s")
        name = questions_of(client, "s", every=True)[0]["id"]
        receipt = handed_out(daemon, "s")
        wait_until(lambda: state(client, "s") == "approved")
        acknowledge(daemon, receipt)
    daemon.end()
    told = [(note["note"], note["approval"], note["hook"], note["session"]) for note in noted(machine)]
    assert told[-3:] == [(word, name, "budget", "s") for word in ("approved", "returned", "acknowledged")]


def test_a_request_that_fails_after_all_uses_nothing(machine: Machine) -> None:
    """The caller is told of an error, and of no decision."""
    machine.user(ASKS)
    breaking = (
        "from fairlead.server import service\n"
        "encode, times = service.encode_decision, iter(range(9))\n"
        "def breaks(decision):\n"
        "    if decision.control == 'allow' and not next(times):\n"
        "        raise RuntimeError('something broke')\n"
        "    return encode(decision)\n"
        "service.encode_decision = breaks\n"
    )
    daemon = machine.start_with(breaking)
    with daemon.client() as client:
        granted(client, "s")
        assert daemon.ask("POST", "/v1/dispatch", body("s"), fairlead_acknowledges="1").status == 500
        assert state(client, "s") == "approved"
        assert acknowledge(daemon, handed_out(daemon, "s")) == (200, None)
        assert state(client, "s") == "used"


# --- several questions --------------------------------------------------------------------------


@pytest.fixture
def two(machine: Machine) -> Iterator[tuple[Daemon, Client]]:
    machine.user(ASKS_TWICE)
    daemon = machine.start()
    with daemon.client() as client:
        yield daemon, client


def asked(client: Client, session: str = "s") -> dict[str, str]:
    return {one["hook"]: one["id"] for one in questions_of(client, session)}


def test_every_question_is_put_at_once_and_each_needs_its_answer(two: tuple[Daemon, Client]) -> None:
    _, client = two
    given = step("before_tool", session_id="s")
    decision = client.dispatch(given, deadline=0.0)
    ids = asked(client)
    assert (decision.control, set(ids)) == ("deny", {"budget", "ops"})
    assert all(f"approval {name} pending" in (decision.reason or "") for name in ids.values())
    client.answer(ids["budget"], True)
    assert client.dispatch(given, deadline=0.0).control == "deny"
    assert asked(client) == {"ops": ids["ops"]}  # the other has its grant, and is not asked again
    client.answer(ids["ops"], True)
    assert [client.dispatch(given, deadline=0.0).control for _ in range(2)] == ["allow", "deny"]


async def test_a_caller_that_waits_goes_on_when_every_question_is_answered(two: tuple[Daemon, Client]) -> None:
    daemon, client = two
    async with AsyncClient(daemon.socket, start=False) as other:
        given = step("before_tool", session_id="s")
        going = asyncio.create_task(other.dispatch(given, deadline=60.0))
        while len(asked(client)) < 2:
            await asyncio.sleep(0.01)
        ids = asked(client)
        client.answer(ids["ops"], True, who="ann")
        assert not (await asyncio.wait([going], timeout=0.2))[0]
        client.answer(ids["budget"], True, who="bob")
        decision = await going
    told = [(one.hook, one.question, one.approval) for one in decision.approvals]
    assert decision.control == "allow"
    assert told == [("budget", "spend 5 EUR?", ("allow", "bob", None)), ("ops", "delete it?", ("allow", "ann", None))]


def test_the_journal_has_every_answer(machine: Machine, two: tuple[Daemon, Client]) -> None:
    _, client = two
    granted(client, "s", who="ann")
    client.dispatch(step("before_tool", session_id="s"), deadline=0.0)
    *_, decision = wait_until(lambda: [one for one in recorded(machine, "s") if one["control"] == "allow"])
    told = [(one["hook"], one["question"], one["approval"]["who"]) for one in decision["said"] if "approval" in one]
    assert told == [("budget", "spend 5 EUR?", "ann"), ("ops", "delete it?", "ann")]


async def test_one_refusal_ends_the_waiting_and_the_other_grant_can_be_used_later(
    two: tuple[Daemon, Client],
) -> None:
    daemon, client = two
    async with AsyncClient(daemon.socket, start=False) as other:
        given = step("before_tool", session_id="s")
        going = asyncio.create_task(other.dispatch(given, deadline=60.0))
        while len(asked(client)) < 2:
            await asyncio.sleep(0.01)
        ids = asked(client)
        client.answer(ids["budget"], True)
        client.answer(ids["ops"], False, who="ann", why="not on a Friday")
        decision = await going
    assert (decision.control, decision.hook) == ("deny", "ops")
    assert decision.reason == "not approved by ann: not on a Friday"
    client.dispatch(given, deadline=0.0)
    assert set(asked(client)) == {"ops"}
    client.answer(asked(client)["ops"], True)
    assert client.dispatch(given, deadline=0.0).control == "allow"


def test_a_grant_does_not_answer_another_question_about_the_same_step(machine: Machine) -> None:
    machine.user(ASKS)
    with machine.start().client() as client:
        granted(client, "s")
        other = ASKS.replace("spend 5 EUR?", "delete the production database?")
        machine.user(other)
        client.reload()
        assert client.dispatch(step("before_tool", session_id="s"), deadline=0.0).control == "deny"


async def test_grants_of_several_questions_return_together(two: tuple[Daemon, Client]) -> None:
    daemon, client = two
    granted(client, "s")
    handed_out(daemon, "s")
    wait_until(lambda: {one["state"] for one in questions_of(client, "s", every=True)} == {"approved"})
    assert client.dispatch(step("before_tool", session_id="s"), deadline=0.0).control == "allow"


# --- the store by itself ------------------------------------------------------------------------


def requests(names: list[str], command: str = "ls") -> list[ApprovalRequest]:
    made = step("before_tool", args={"command": command})
    return [ApprovalRequest(made, name, f"{name}?") for name in names]


@pytest.fixture
def pending(machine: Machine) -> Iterator[ApprovalStore]:
    made = ApprovalStore(machine.state / "approvals.db")
    yield made
    made.close()


async def tried(pending: ApprovalStore, names: list[str], receipt: Receipt | None = None) -> list[bool]:
    approval_context.set(ApprovalContext("/p", "policy", 0.0, receipt=receipt))
    return [answer.granted for answer in await pending.approve_all(requests(names))]


async def test_the_binding_is_of_the_hook_and_the_question(pending: ApprovalStore) -> None:
    approval_context.set(ApprovalContext("/p", "policy", 0.0))
    made = step("before_tool")
    await pending.approve(ApprovalRequest(made, "may", "may it?"))
    pending.answer(pending.questions()[0].id, True, None, None)
    others = [ApprovalRequest(made, "may", "might it?"), ApprovalRequest(made, "other", "may it?")]
    others += [ApprovalRequest(made, "may", None), ApprovalRequest(made, "may", "")]
    assert [(await pending.approve(one)).granted for one in others] == [False] * 4
    assert (await pending.approve(ApprovalRequest(made, "may", "may it?"))).granted


async def test_a_set_of_which_one_is_missing_uses_nothing(pending: ApprovalStore) -> None:
    await tried(pending, ["a", "b", "c"])
    for one in pending.questions()[:2]:
        pending.answer(one.id, True, None, None)
    receipt = Receipt()
    assert await tried(pending, ["a", "b", "c"], receipt) == [True, True, False]
    assert (receipt.id, [one.state for one in pending.questions(every=True)]) == (
        None,
        ["approved", "approved", "pending"],
    )


async def test_a_refusal_outweighs_a_grant_that_returns(pending: ApprovalStore) -> None:
    await tried(pending, ["a"])
    pending.answer(pending.questions()[0].id, True, None, None)
    receipt = Receipt()
    assert await tried(pending, ["a"], receipt) == [True]
    approval_context.set(ApprovalContext("/p", "policy", 60.0))
    going = asyncio.create_task(pending.approve_all(requests(["a"])))
    while not (found := pending.questions()):
        await asyncio.sleep(0)
    pending.answer(found[0].id, False, None, None)
    pending.time_out(str(receipt.id))
    assert [answer.granted for answer in await going] == [False]


async def test_a_file_of_an_older_version_can_be_used(machine: Machine) -> None:
    import sqlite3

    with sqlite3.connect(machine.state / "approvals.db") as old:
        old.executescript(OLD)
    old.close()
    pending = ApprovalStore(machine.state / "approvals.db")
    try:
        assert pending.questions() == []
        await tried(pending, ["a"])
        pending.answer(pending.questions()[0].id, True, None, None)
        receipt = Receipt()
        assert await tried(pending, ["a"], receipt) == [True]
        pending.acknowledge(str(receipt.id))
    finally:
        pending.close()


OLD = """
CREATE TABLE approvals (
  id TEXT PRIMARY KEY, bound TEXT NOT NULL, state TEXT NOT NULL, hook TEXT, question TEXT, step BLOB NOT NULL,
  session TEXT, root TEXT, asked REAL NOT NULL, wall REAL NOT NULL, uptime REAL NOT NULL, boot TEXT NOT NULL,
  who TEXT, why TEXT
);
CREATE INDEX by_bound ON approvals (bound, state);
"""

QUESTIONS = ["a", "b", "c"]
actions = st.one_of(
    st.tuples(st.just("try"), st.sets(st.sampled_from(QUESTIONS), min_size=1)),
    st.tuples(st.just("answer"), st.sampled_from(QUESTIONS), st.booleans()),
    st.tuples(st.just("acknowledge"), st.integers(0, 5)),
    st.tuples(st.just("lapse"), st.integers(0, 5)),
    st.tuples(st.just("take back"), st.integers(0, 5)),
    st.tuples(st.just("restart"), st.none()),
)


@settings(deadline=None, max_examples=150, derandomize=True, database=None)
@given(st.lists(actions, min_size=4, max_size=30))
def test_whatever_happens_no_approval_has_two_acknowledged_uses(story: list[Any]) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix="fl") as folder:
        asyncio.run(_play(Path(folder) / "approvals.db", story))


async def _play(path: Path, story: list[Any]) -> None:
    """Tell the store a story, beside a model of it: which approvals each receipt has, and how each has ended."""
    pending = ApprovalStore(path)
    uses: dict[str, list[str]] = {}
    ended: dict[str, str] = {}
    try:
        for action, what, *more in story:
            receipts = list(uses)
            if action == "try":
                before = {one.id for one in pending.questions(every=True) if one.state == "approved"}
                receipt = Receipt()
                if all(await tried(pending, sorted(what), receipt)):
                    gone = before - {one.id for one in pending.questions(every=True) if one.state == "approved"}
                    assert len(gone) == len(what)
                    uses[str(receipt.id)] = sorted(gone)
                else:
                    assert receipt.id is None
                    assert before <= {one.id for one in pending.questions(every=True) if one.state == "approved"}
            elif action == "answer":
                for one in [one for one in pending.questions() if one.hook == what][:1]:
                    pending.answer(one.id, more[0], None, None)
            elif action == "restart":
                pending.close()
                pending = ApprovalStore(path)
                for receipt_id in pending.left_open():
                    pending.time_out(receipt_id)
                    ended[receipt_id] = "lapsed"
            elif receipts and (name := receipts[what % len(receipts)]):
                if action == "acknowledge":
                    try:
                        pending.acknowledge(name)
                        ended[name] = "acknowledged"
                    except (AcknowledgedTooLate, NoSuchReceipt):
                        assert ended.get(name) in ("lapsed", "taken back")
                elif action == "lapse":
                    pending.time_out(name)
                    ended.setdefault(name, "lapsed")
                elif name not in ended:
                    pending.take_back(name)
                    ended[name] = "taken back"
            told = [name for name in uses if ended.get(name) != "taken back"]
            for one in {approval for approvals in uses.values() for approval in approvals}:
                has = [name for name in told if one in uses[name]]
                assert len([name for name in has if ended.get(name) == "acknowledged"]) <= 1
                assert len(has) <= 2
                assert len([name for name in has if name not in ended]) <= 1
    finally:
        pending.close()


async def test_the_time_to_acknowledge_begins_with_the_answer(machine: Machine) -> None:
    """An observer may take its time, and the caller has nothing to acknowledge before it is done."""
    machine.user(
        ASKS + '[[hook]]\nname = "slow"\non = "before_tool"\nphase = "observe"\ncommand = ["sleep", "1.5"]\n'
        'output = "ignore"\n'
    )
    assert ACKNOWLEDGE_TIMEOUT < 1.5
    daemon = machine.start()
    with daemon.client() as client:
        granted(client, "s")
        receipt = handed_out(daemon, "s")
        assert state(client, "s") == "handed_out"
        assert acknowledge(daemon, receipt) == (200, None)
