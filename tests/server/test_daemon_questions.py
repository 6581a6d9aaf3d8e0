"""Questions to a human: asked, answered once, good for one identical call, and gone when their time is over."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from machines import Daemon, Machine, ask, questions_of, wait_until

from fairlead import ApprovalRequest
from fairlead.client import Client
from fairlead.errors import FairleadError
from fairlead.samples import step
from fairlead.server import approvals as approvals_module
from fairlead.server import clocks
from fairlead.server.approvals import (
    AlreadyAnswered,
    ApprovalContext,
    ApprovalStore,
    NoSuchQuestion,
    Question,
    approval_context,
)

ASKS = """
[[hook]]
name = "may"
on = ["before_tool", "before_permission"]
rule = "true"
phase = "gate"
ask = "may it?"
"""


@pytest.fixture(scope="module")
def shared(shared: Machine) -> Machine:
    shared.user(ASKS)
    return shared


class WaitingDispatch:
    """A dispatch that waits for an answer."""

    def __init__(self, daemon: Daemon, session: str, **fields: Any) -> None:
        self._thread = threading.Thread(target=self._dispatch, args=(daemon, session, fields))
        self._thread.start()
        self.decision: Any = None
        with daemon.client() as client:
            self.question = wait_until(lambda: questions_of(client, session))[0]

    def _dispatch(self, daemon: Daemon, session: str, fields: dict[str, Any]) -> None:
        with daemon.client() as client:
            self.decision = client.dispatch(step("before_tool", session_id=session, **fields), deadline=60.0)

    def end(self) -> Any:
        self._thread.join()
        return self.decision


# --- while a caller waits -----------------------------------------------------------------------


def test_an_approval_wakes_who_waits(daemon: Daemon, client: Client, session: str) -> None:
    waiting = WaitingDispatch(daemon, session)
    client.answer(waiting.question["id"], True, who="ann", why="it is fine")
    decision = waiting.end()
    assert (decision.control, decision.cause, decision.approval) == (
        "allow",
        "approval",
        ("allow", "ann", "it is fine"),
    )


def test_a_refusal_wakes_who_waits_and_says_who_and_why(daemon: Daemon, client: Client, session: str) -> None:
    waiting = WaitingDispatch(daemon, session)
    client.answer(waiting.question["id"], False, who="ann", why="not today")
    decision = waiting.end()
    assert (decision.control, decision.reason) == ("deny", "not approved by ann: not today")


def test_a_question_shows_what_is_asked(daemon: Daemon, client: Client, session: str) -> None:
    waiting = WaitingDispatch(daemon, session, args={"command": "make tea"})
    asked = waiting.question
    client.answer(asked["id"], False)
    waiting.end()
    shown = (asked["hook"], asked["question"], asked["state"], asked["step"]["args"])
    assert shown == ("may", "may it?", "pending", {"command": "make tea"})


def test_who_waits_for_one_answer_is_not_woken_by_another(daemon: Daemon, client: Client, session: str) -> None:
    first, second = WaitingDispatch(daemon, f"{session} 1"), WaitingDispatch(daemon, f"{session} 2")
    client.answer(second.question["id"], True)
    second_control = second.end().control
    client.answer(first.question["id"], False)
    assert (first.end().control, second_control) == ("deny", "allow")


def test_an_approval_that_was_waited_for_is_used_up(daemon: Daemon, client: Client, session: str) -> None:
    waiting = WaitingDispatch(daemon, session)
    client.answer(waiting.question["id"], True)
    waiting.end()
    assert client.dispatch(step("before_tool", session_id=session), deadline=0.0).control == "deny"


async def test_many_questions_at_once_each_get_their_answer(daemon: Daemon, client: Client, session: str) -> None:
    from fairlead.client import AsyncClient

    async with AsyncClient(daemon.socket, start=False) as approval_context:

        async def one(number: int) -> str:
            given = step("before_tool", session_id=session, args={"command": str(number)})
            return (await approval_context.dispatch(given, deadline=60.0)).control

        going = [asyncio.create_task(one(number)) for number in range(20)]
        while len(questions_of(client, session)) < 20:
            await asyncio.sleep(0.01)
        for question in questions_of(client, session):
            client.answer(question["id"], int(question["step"]["args"]["command"]) % 2 == 0)
        assert await asyncio.gather(*going) == ["allow", "deny"] * 10


# --- when no caller waits any longer ---------------------------------------------------------------


def pended(client: Client, session: str, **fields: Any) -> str:
    """The id of a question without an answer in time."""
    decision = client.dispatch(step("before_tool", session_id=session, **fields), deadline=0.0)
    (question,) = questions_of(client, session)
    assert f"approval {question['id']} pending" in (decision.reason or "")
    return str(question["id"])


def test_a_question_without_an_answer_in_time_is_a_deny_that_says_so(client: Client, session: str) -> None:
    decision = client.dispatch(step("before_tool", session_id=session), deadline=0.0)
    assert (decision.control, decision.cause, "pending" in (decision.reason or "")) == ("deny", "approval", True)


def test_a_late_approval_lets_an_identical_call_run_once(client: Client, session: str) -> None:
    client.answer(pended(client, session), True, who="ann")
    given = step("before_tool", session_id=session)
    assert [client.dispatch(given, deadline=0.0).control for _ in range(2)] == ["allow", "deny"]


def test_a_late_refusal_lets_nothing_run(client: Client, session: str) -> None:
    client.answer(pended(client, session), False)
    assert client.dispatch(step("before_tool", session_id=session), deadline=0.0).control == "deny"


def test_a_retry_does_not_ask_again_what_is_still_open(client: Client, session: str) -> None:
    first = pended(client, session)
    assert pended(client, session) == first


def test_what_differs_in_every_retry_does_not_matter(client: Client, session: str) -> None:
    client.answer(pended(client, session, call_id="1", turn_id="1", sequence=1), True)
    again = step("before_tool", session_id=session, call_id="2", turn_id="2", request_id="r", sequence=9)
    assert client.dispatch(again, deadline=0.0).control == "allow"


@pytest.mark.parametrize(
    "fields",
    [
        {"args": {"command": "echo hello "}},
        {"args": {"command": "echo hello", "cwd": "/"}},
        {"tool": "sh", "args": {"command": "echo hello"}},
        {"session_id": "another"},
        {"cwd": "/tmp"},
        {"user_id": "another"},
        {"host": "another"},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_a_call_that_differs_does_not_use_an_approval(client: Client, session: str, fields: dict[str, Any]) -> None:
    client.answer(pended(client, session), True)
    other = client.dispatch(step("before_tool", **({"session_id": session} | fields)), deadline=0.0)
    same = client.dispatch(step("before_tool", session_id=session), deadline=0.0)
    assert (other.control, same.control) == ("deny", "allow")


def test_another_event_does_not_use_an_approval(client: Client, session: str) -> None:
    client.answer(pended(client, session), True)
    assert client.dispatch(step("before_permission", session_id=session), deadline=0.0).control == "deny"


def test_another_project_does_not_use_an_approval(shared: Machine, client: Client, session: str) -> None:
    other = shared.project("other", "")
    client.answer(pended(client, session), True)
    given = step("before_tool", session_id=session)
    assert client.dispatch(given, root=str(other), deadline=0.0).control == "deny"


def test_another_policy_does_not_use_an_approval(machine: Machine) -> None:
    machine.user(ASKS)
    with machine.start().client() as client:
        client.answer(pended(client, "s"), True)
        machine.user(ASKS + '[[hook]]\nname = "new"\non = "turn_start"\nrule = "true"\nwarn = "hm"\n')
        client.reload()
        assert client.dispatch(step("before_tool", session_id="s"), deadline=0.0).control == "deny"


def test_a_question_is_answered_once(client: Client, daemon: Daemon, session: str) -> None:
    name = pended(client, session)
    answers = [daemon.ask("POST", f"/v1/approvals/{name}", {"approve": approve}).status for approve in (False, True)]
    assert answers == [200, 409]


@pytest.mark.parametrize("name", ["nobody", "%27%20OR%201%3D1", "%00", "a" * 1000])
def test_a_question_that_was_never_asked_is_not_found(daemon: Daemon, name: str) -> None:
    assert daemon.ask("POST", f"/v1/approvals/{name}", {"approve": True}).status == 404


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b'{"approve": 1}', b'{"approve": true, "valid_for": 0}', b'{"approve": true, "valid_for": 1e9}',
     b'{"approve": true, "valid_for": -1}', b'{"approve": true, "colour": 1}', b'{"approve": "yes"}', b"[" * 99999],
)  # fmt: skip
def test_an_answer_that_makes_no_sense_answers_nothing(daemon: Daemon, body: bytes) -> None:
    with daemon.client() as client:
        name = pended(client, f"nonsense {body[:50]!r}")
        assert daemon.ask("POST", f"/v1/approvals/{name}", body).status == 400
        assert name in [question["id"] for question in client.approvals()]


def test_ids_cannot_be_guessed(client: Client, session: str) -> None:
    names = set()
    for number in range(20):
        client.dispatch(step("before_tool", session_id=session, args={"command": str(number)}), deadline=0.0)
    names = {question["id"] for question in questions_of(client, session)}
    assert (len(names), min(map(len, names)) >= 22) == (20, True)


def test_a_secret_in_a_question_is_not_written_down(shared: Machine, client: Client, session: str) -> None:
    secret = "ghp_" + "a1B2c3D4" * 5
    client.dispatch(step("before_tool", session_id=session, args={"command": f"login {secret}"}), deadline=0.0)
    files = [path for path in shared.state.rglob("*") if path.is_file() and path.name.startswith("approvals")]
    assert (len(files) > 0, [path for path in files if secret.encode() in path.read_bytes()]) == (True, [])


def test_the_file_of_questions_is_the_users_alone(shared: Machine, client: Client) -> None:
    modes = {path.stat().st_mode & 0o777 for path in shared.state.glob("approvals.db*")}
    assert modes == {0o600}


@pytest.mark.parametrize("answer", ["before", "after"])
def test_a_question_survives_a_restart(machine: Machine, answer: str) -> None:
    machine.user(ASKS)
    first = machine.start()
    with first.client() as client:
        name = pended(client, "s")
        if answer == "before":
            client.answer(name, True)
    first.end()
    with machine.start().client() as client:
        if answer == "after":
            client.answer(name, True)
        assert client.dispatch(step("before_tool", session_id="s"), deadline=0.0).control == "allow"


def test_a_question_survives_a_daemon_that_was_killed(machine: Machine) -> None:
    machine.user(ASKS)
    first = machine.start()
    with first.client() as client:
        name = pended(client, "s")
    first.process.kill()
    first.wait()
    with machine.start().client() as client:
        assert [question["id"] for question in client.approvals()] == [name]


def test_who_and_why_end_up_in_the_journal(machine: Machine) -> None:
    machine.user(ASKS)
    daemon = machine.start()
    with daemon.client() as client:
        client.answer(pended(client, "s"), True, who="ann", why="it is fine")
    daemon.end()
    shown = machine.run("log", "--json").out
    assert ("approved" in shown, "ann" in shown, "it is fine" in shown) == (True, True, True)


# --- time ---------------------------------------------------------------------------------------


class Clock:
    """The clocks of a machine, and which start of it this is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.up, self.boot = 1e9, 1000.0, "first"
        monkeypatch.setattr(approvals_module.time, "time", lambda: self.wall)
        monkeypatch.setattr(clocks, "uptime", lambda: self.up)
        monkeypatch.setattr(clocks, "boot_id", lambda: self.boot)

    def forward(self, seconds: float) -> None:
        self.wall += seconds
        self.up += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def pending(machine: Machine) -> Iterator[ApprovalStore]:
    made = ApprovalStore(machine.state / "approvals.db")
    yield made
    made.close()


async def question(pending: ApprovalStore, command: str = "ls") -> str:
    """Ask, and do not wait for the answer."""
    approval_context.set(ApprovalContext("/p", "policy", 0.0))
    await pending.approve(ApprovalRequest(step("before_tool", args={"command": command}), "may", "may it?"))
    return pending.questions()[-1].id


async def granted(pending: ApprovalStore, command: str = "ls") -> bool:
    approval_context.set(ApprovalContext("/p", "policy", 0.0))
    request = ApprovalRequest(step("before_tool", args={"command": command}), "may", "may it?")
    return (await pending.approve(request)).granted


async def test_a_question_expires(pending: ApprovalStore, clock: Clock) -> None:
    name = await question(pending)
    clock.forward(approvals_module.LIFE + 1)
    with pytest.raises(AlreadyAnswered, match="expired"):
        pending.answer(name, True, None, None)


async def test_a_grant_expires(pending: ApprovalStore, clock: Clock) -> None:
    pending.answer(await question(pending), True, None, None, last=600)
    clock.forward(601)
    assert not await granted(pending)


async def test_a_grant_can_be_used_until_then(pending: ApprovalStore, clock: Clock) -> None:
    pending.answer(await question(pending), True, None, None, last=600)
    clock.forward(599)
    assert await granted(pending)


async def test_a_clock_that_is_set_back_does_not_make_a_grant_last_longer(pending: ApprovalStore, clock: Clock) -> None:
    pending.answer(await question(pending), True, None, None, last=600)
    clock.wall -= 86400
    clock.up += 601
    assert not await granted(pending)


async def test_a_clock_that_stands_still_does_not_make_a_grant_last_longer(
    pending: ApprovalStore, clock: Clock
) -> None:
    pending.answer(await question(pending), True, None, None, last=600)
    clock.wall += 601
    assert not await granted(pending)


async def test_no_grant_survives_a_restart_of_the_machine(pending: ApprovalStore, clock: Clock) -> None:
    pending.answer(await question(pending), True, None, None, last=600)
    clock.boot, clock.up = "second", 0.0
    assert not await granted(pending)


async def test_an_id_can_always_be_typed_at_a_command_line(pending: ApprovalStore) -> None:
    """One that begins with a dash would be taken for an option."""
    for number in range(600):
        await granted(pending, str(number))
    assert [one.id for one in pending.questions() if one.id.startswith("-")] == []


async def test_what_is_long_over_is_forgotten(pending: ApprovalStore, clock: Clock) -> None:
    name = await question(pending)
    clock.forward(86400 * 2)
    assert pending.questions(every=True) == []
    with pytest.raises(NoSuchQuestion):
        pending.answer(name, True, None, None)


async def test_questions_are_bounded(pending: ApprovalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approvals_module, "LIMIT", 3)
    for command in "abc":
        await question(pending, command)
    with pytest.raises(FairleadError, match="open already"):
        await question(pending, "d")


@pytest.mark.parametrize("last", [0.0, -1.0, 86401.0, float("inf"), float("nan")])
async def test_no_grant_lasts_longer_than_a_day(pending: ApprovalStore, last: float) -> None:
    name = await question(pending)
    with pytest.raises(FairleadError):
        pending.answer(name, True, None, None, last=last)


def test_columns_that_say_it_is_over_hold(machine: Machine) -> None:
    """As another process would have written them."""
    machine.user(ASKS)
    with machine.start().client() as client:
        name = pended(client, "s")
        client.answer(name, True)
        with sqlite3.connect(machine.state / "approvals.db") as file:
            file.execute("UPDATE approvals SET boot = 'another start' WHERE id = ?", (name,))
        file.close()
        assert client.dispatch(step("before_tool", session_id="s"), deadline=0.0).control == "deny"


def test_a_file_that_is_no_database_is_an_error_that_names_it(machine: Machine) -> None:
    (machine.state / "approvals.db").write_text("garbage" * 1000)
    with pytest.raises(FairleadError, match=r"approvals\.db"):
        ApprovalStore(machine.state / "approvals.db")


# --- the command --------------------------------------------------------------------------------


def test_the_command_lists_what_is_open(shared: Machine, client: Client, session: str) -> None:
    name = pended(client, session, args={"command": "make tea"})
    listed = shared.run("approvals").out
    assert (name in listed, "make tea" in listed, "may it?" in listed) == (True, True, True)


def test_the_command_lists_as_json(shared: Machine, client: Client, session: str) -> None:
    name = pended(client, session)
    assert name in [one["id"] for one in shared.run("approvals", "--json").json["approvals"]]


@pytest.mark.usefixtures("unwatched")
@pytest.mark.parametrize(("word", "control"), [("approve", "allow"), ("deny", "deny")])
def test_the_command_wakes_who_waits(shared: Machine, daemon: Daemon, session: str, word: str, control: str) -> None:
    waiting = WaitingDispatch(daemon, session)
    ended = shared.at_terminal("approvals", word, waiting.question["id"], "--why", "because")
    assert (ended.code, waiting.end().control) == (0, control), ended.out


@pytest.mark.usefixtures("unwatched")
def test_the_beginning_of_an_id_is_enough_if_no_other_begins_so(shared: Machine, client: Client, session: str) -> None:
    names = [pended(client, name) for name in (session, f"{session} too")]
    others = [one["id"] for one in client.approvals() if one["id"] != names[0]]
    length = next(n for n in range(1, 99) if not any(other.startswith(names[0][:n]) for other in others))
    ended = shared.at_terminal("approvals", "approve", names[0][:length])
    left = [one["id"] for name in (session, f"{session} too") for one in questions_of(client, name)]
    assert (ended.code, left) == (0, names[1:]), ended.out


@pytest.mark.usefixtures("unwatched")
def test_a_beginning_that_several_ids_have_lists_them(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    from fairlead.cli import approvals
    from fairlead.server import answers

    asked = [Question(name, "pending", "h", "may it?", {}, "s", "/p", 0, 1) for name in ("3b99a", "3b99b", "77")]
    asked.append(Question("77f", "denied", "h", "may it?", {}, "s", "/p", 0, 1))
    monkeypatch.setattr(answers, "read_questions", lambda every: asked)
    assert [approvals._named(beginning).id for beginning in ("7", "3b99a", "77f")] == ["77", "3b99a", "77f"]
    for beginning, problem in (("nobody", "there is no question"), ("", "name a question by its id")):
        with pytest.raises(FairleadError, match=problem):
            approvals._named(beginning)
    with pytest.raises(FairleadError, match=r"2 questions begin with '3b'.*\n  3b99a  may it\?\n  3b99b"):
        approvals._named("3b")


@pytest.mark.parametrize("word", ["approve", "deny"])
def test_the_command_needs_a_terminal(shared: Machine, client: Client, session: str, word: str) -> None:
    name = pended(client, session)
    ended = shared.run("approvals", word, name)
    assert (ended.code, len(questions_of(client, session))) == (1, 1)


def test_the_command_is_refused_where_an_agent_says_so(shared: Machine, client: Client, session: str) -> None:
    name = pended(client, session)
    ended = shared.at_terminal("approvals", "approve", name, env=shared.env | {"CLAUDECODE": "1"})
    assert (ended.code, "agent" in ended.out, len(questions_of(client, session))) == (1, True, 1)


@pytest.fixture
def claude(machine: Machine) -> list[str]:
    """A program called claude, that runs whatever it is given."""
    path = machine.program("claude", '#!/bin/sh\n"$@"\n')
    return [str(path)]


def test_the_command_is_refused_below_an_agent(
    shared: Machine, client: Client, session: str, claude: list[str]
) -> None:
    name = pended(client, session)
    argv = [*claude, sys.executable, "-m", "fairlead.cli"]
    ended = shared.at_terminal("approvals", "approve", name, argv=argv)
    assert (ended.code, "runs under claude" in ended.out, len(questions_of(client, session))) == (1, True, 1)


def test_the_daemon_refuses_callers_below_an_agent(
    shared: Machine, client: Client, session: str, claude: list[str]
) -> None:
    """Though it asks the socket itself, and hides what its environment says."""
    import subprocess

    name = pended(client, session)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\nfrom machines import ask\n"
        "print(ask(sys.argv[2], 'POST', '/v1/approvals/' + sys.argv[3], {'approve': True}).status)"
    )
    here = str(Path(__file__).parent)
    words = [*claude, sys.executable, "-c", code, here, str(shared.socket), name]
    ended = subprocess.run(words, env=shared.env, capture_output=True, text=True, timeout=30)
    assert (ended.stdout.strip(), len(questions_of(client, session))) == ("403", 1)


@pytest.mark.usefixtures("unwatched")
def test_the_command_works_without_a_daemon(machine: Machine) -> None:
    machine.user(ASKS)
    first = machine.start()
    with first.client() as client:
        name = pended(client, "s")
    first.end()
    assert name in machine.run("approvals").out
    assert machine.at_terminal("approvals", "approve", name).code == 0
    with machine.start().client() as client:
        assert client.dispatch(step("before_tool", session_id="s"), deadline=0.0).control == "allow"


@pytest.mark.usefixtures("unwatched")
def test_an_answer_without_a_daemon_is_written_down_too(machine: Machine) -> None:
    machine.user(ASKS)
    first = machine.start()
    with first.client() as client:
        name = pended(client, "s")
    first.end()
    machine.at_terminal("approvals", "approve", name, "--why", "it is fine")
    shown = machine.run("log", "--json").out
    assert ("approved" in shown, "it is fine" in shown) == (True, True)


@pytest.mark.usefixtures("unwatched")
def test_the_command_says_so_if_there_is_no_such_question(shared: Machine, daemon: Daemon) -> None:
    ended = shared.at_terminal("approvals", "approve", "nobody")
    assert (ended.code, "no question" in ended.out, "Traceback" in ended.out) == (1, True, False)


@pytest.mark.usefixtures("unwatched")
def test_a_question_cannot_take_over_the_terminal_it_is_shown_on(shared: Machine, client: Client, session: str) -> None:
    pended(client, session, args={"command": "\x1b]0;owned\x07\x1b[2J"})
    assert "\x1b]0;" not in shared.at_terminal("approvals").out


def test_a_link_of_an_agents_name_is_an_agent_too(shared: Machine, machine: Machine) -> None:
    """What it is called is what counts, not what it leads to."""
    link = machine.outside / "claude"
    shell = shutil.which("sh")
    assert shell is not None
    os.symlink(shell, link)
    ended = shared.at_terminal(
        "approvals", "approve", "x", argv=[str(link), "-c", f'{sys.executable} -m fairlead.cli "$@"; exit $?', "sh"]
    )
    assert "runs under claude" in ended.out


def test_an_approval_over_tcp_needs_its_scope(shared: Machine, daemon: Daemon, client: Client, session: str) -> None:
    from fairlead.server.tokens import Tokens

    name, token = pended(client, session), Tokens(shared.state).add("asker", ["dispatch", "read"])
    answer = ask(("127.0.0.1", daemon.port), "POST", f"/v1/approvals/{name}", {"approve": True}, token=token)
    assert (answer.status, len(questions_of(client, session))) == (403, 1)


def test_to_approve_nothing_in_particular_says_what_to_give(shared: Machine, unwatched: None) -> None:
    ended = shared.at_terminal("approvals", "approve", "")
    assert (ended.code, "name a question by its id" in ended.out) == (1, True), ended
