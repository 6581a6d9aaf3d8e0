"""Each caller has its own sessions, and its own share of what the daemon keeps: each user, and each token."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines import Daemon, Machine

from fairlead import current_session, deny
from fairlead.config.fallback_file import read_folders
from fairlead.samples import step
from fairlead.server import projects as projects_module
from fairlead.server import sessions as sessions_module
from fairlead.server.service import DispatchRequest, Service
from fairlead.server.sessions import SessionTable
from fairlead.server.tokens import Tokens
from fairlead.wire.steps import envelope

COUNTING = """
from fairlead import current_session, deny
from fairlead.server import service

def count(step):
    return deny(str(current_session().store.increment("calls")))

def counting(*args, open_hooks=service.open_hooks, **options):
    hooks = open_hooks(*args, **options)
    hooks.add(count, on="before_input")
    return hooks

service.open_hooks = counting
"""
"""A daemon that counts the messages of each session."""
DENYING = '[[hook]]\nname = "no"\non = "before_tool"\nrule = "true"\ndeny = "no"\n'
ASKING = '[[hook]]\nname = "ask"\non = "before_tool"\nrule = "true"\nask = "may it?"\n'
CALLERS = ("", "user 7: ", "user 77: ", "token 'a': ", "token 'b': ")


class Caller:
    """One who asks the daemon: over TCP with a token, or its own user over the socket."""

    def __init__(self, daemon: Daemon, token: str | None = None) -> None:
        self._daemon = daemon
        self._how: dict[str, Any] = {} if token is None else {"tcp": True, "token": token}

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._daemon.ask(method, path, body, **self._how)
        assert answer.status == 200, answer.body
        return answer.body

    def dispatch(self, root: Path, event: str = "before_tool", **fields: Any) -> Any:
        given = msgspec.to_builtins(envelope(step(event, **fields)))
        return self.ask("POST", "/v1/dispatch", {"step": given, "root": str(root), "deadline": 0})

    def calls(self, root: Path, session: str = "s") -> int:
        """How many messages the daemon has counted in a session, with this one."""
        return int(self.dispatch(root, "before_input", session_id=session)["reason"])

    def hook(self, cwd: Path, session: str, event: str = "PreToolUse") -> str:
        """What an agent CLI is told."""
        payload = {"session_id": session, "cwd": str(cwd), "hook_event_name": event, "reason": "other",
                   "tool_name": "Bash", "tool_input": {"command": "ls"}}  # fmt: skip
        said = msgspec.json.encode(payload).decode()
        asked = {"host": "claude_code", "event": event, "cwd": str(cwd), "payload": said}
        return str(self.ask("POST", "/v1/hook", asked)["answer"])


@pytest.fixture(scope="module")
def daemon(shared: Machine) -> Daemon:
    return shared.start_with(COUNTING)


@pytest.fixture(scope="module")
def callers(shared: Machine, daemon: Daemon) -> dict[str, Caller]:
    tokens = Tokens(shared.state)
    made = {name: Caller(daemon, tokens.add(name, ["dispatch"])) for name in ("a", "b", "a': /")}
    return {"user": Caller(daemon)} | made


@pytest.fixture
def root(shared: Machine, request: pytest.FixtureRequest) -> Path:
    return shared.project(f"project-{abs(hash(request.node.name))}", "")


# --- whose a session is -------------------------------------------------------------------------


def test_callers_do_not_share_a_session_of_the_same_id(callers: dict[str, Caller], root: Path) -> None:
    assert [caller.calls(root) for caller in callers.values()] == [1] * len(callers)
    assert [caller.calls(root) for caller in callers.values()] == [2] * len(callers)


@pytest.mark.parametrize(("one", "other"), [("a", "user"), ("a", "b"), ("user", "a")])
def test_a_caller_ends_only_its_own_session(callers: dict[str, Caller], root: Path, one: str, other: str) -> None:
    for name in (one, other):
        callers[name].calls(root)
    callers[one].dispatch(root, "session_end", session_id="s")
    assert (callers[other].calls(root), callers[one].calls(root)) == (2, 1)


def test_a_token_neither_moves_nor_ends_the_session_of_a_cli(shared: Machine, callers: dict[str, Caller]) -> None:
    """A session stays with the folder that it began in: each caller's own does."""
    strict, lax = shared.project("strict", DENYING), shared.project("lax", "")
    user, token = callers["user"], callers["a"]
    assert "deny" in user.hook(strict, "cli")
    assert "deny" not in token.hook(lax, "cli")
    assert "deny" not in token.hook(strict, "cli")
    token.hook(lax, "cli", "SessionEnd")
    assert "deny" in user.hook(lax, "cli")


def test_sessions_are_listed_with_their_callers(callers: dict[str, Caller], root: Path) -> None:
    for caller in callers.values():
        caller.calls(root)
    found = callers["user"].ask("GET", f"/v1/sessions?root={root}")["sessions"]
    expected = {None, "token 'a': ", "token 'b': ", """token "a': /": """}
    assert {one["caller"] for one in found if one["root"] == str(root)} == expected


@pytest.mark.usefixtures("unwatched")
def test_the_session_of_a_caller_is_shown_and_forgotten_by_its_name(
    callers: dict[str, Caller], root: Path, daemon: Daemon
) -> None:
    for name in ("user", "a", "a"):
        callers[name].calls(root)
    shown = [
        callers["user"].ask("GET", f"/v1/sessions/s?root={root}{named}")["store"]
        for named in ("", "&caller=token%20'a':%20")
    ]
    assert shown == [{"calls": 1}, {"calls": 2}]
    callers["user"].ask("DELETE", f"/v1/sessions/s?root={root}&caller=token%20'a':%20")
    assert (callers["user"].calls(root), callers["a"].calls(root)) == (2, 1)


def test_a_callers_session_survives_a_restart_as_its_own(tmp_path: Path) -> None:
    sessions = SessionTable(tmp_path / "sessions.json")
    for number, caller in enumerate(CALLERS):
        sessions.of(caller, "/p", step("turn_start", session_id="s"), sessions._home, None).store.set("n", number)
        sessions.of_cli(caller, "s", f"/began/{number}")
    sessions.save()
    again = SessionTable(tmp_path / "sessions.json")
    for number, caller in enumerate(CALLERS):
        session = again.get(caller, "/p", "s")
        assert session is not None
        assert (session.store.get("n"), again.began(caller, "s")) == (number, f"/began/{number}")


def test_a_file_of_before_callers_had_names_is_the_daemons_users(tmp_path: Path) -> None:
    old = {"root": "/p", "session_id": "s", "state": {}, "store": {"values": {"n": 1}, "hits": {}, "longest": {}}}
    cli = old | {"root": "cli: ", "began": "/began"}
    lines = [msgspec.json.encode(one | {"used": time.time()}) for one in (old, cli)]
    (tmp_path / "sessions.json").write_bytes(b"\n".join(lines))
    sessions = SessionTable(tmp_path / "sessions.json")
    session = sessions.get("", "/p", "s")
    assert session is not None
    assert (session.store.get("n"), sessions.began("", "s")) == (1, "/began")


NAMES = st.text(st.sampled_from("ab': /\"\\\n"), max_size=6)
FOLDERS = st.text(st.sampled_from("ab': /"), max_size=6).map(lambda text: f"/{text}")


@settings(deadline=None, max_examples=300)
@given(NAMES, FOLDERS, NAMES, FOLDERS)
def test_no_two_callers_and_folders_read_the_same(one: str, here: str, two: str, there: str) -> None:
    """An approval is bound to both, as one text."""
    first, second = f"token {one!r}: {here}", f"token {two!r}: {there}"
    assert (first == second) == ((one, here) == (two, there))


def test_an_approval_of_one_callers_call_is_not_used_by_another(
    shared: Machine, callers: dict[str, Caller], unwatched: None
) -> None:
    root = shared.project("asking", ASKING)
    told = callers["a"].dispatch(root, session_id="s")
    (question,) = (
        one for one in callers["user"].ask("GET", "/v1/approvals")["approvals"] if one["id"] in told["reason"]
    )
    callers["user"].ask("POST", f"/v1/approvals/{question['id']}", {"approve": True})
    said = [callers[name].dispatch(root, session_id="s")["control"] for name in ("b", "user", "a", "a")]
    assert said == ["deny", "deny", "allow", "deny"]


# --- how much each may have kept ----------------------------------------------------------------


@pytest.fixture
async def service(machine: Machine) -> AsyncIterator[Service]:
    made = Service(machine.state, None)
    yield made
    await made.aclose()


async def dispatch(service: Service, root: Path, caller: str, session: str, **env: str | None) -> dict[str, Any]:
    asked = DispatchRequest(envelope(step("before_tool", session_id=session)), root=str(root), env=env)
    return await service.dispatch(asked, caller)


async def count_calls(service: Service, root: Path) -> None:
    """Have a hook count the calls of each session."""

    def count(_: Any) -> Any:
        session = current_session()
        assert session is not None
        return deny(str(session.store.increment("calls")))

    (await service.projects.find(str(root), {})).hooks.add(count, on="before_tool")


@pytest.mark.parametrize(("few", "many"), [pair for pair in product(CALLERS, CALLERS) if pair[0] != pair[1]][:8])
async def test_a_caller_with_too_many_sessions_ends_no_other_callers(
    machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch, few: str, many: str
) -> None:
    monkeypatch.setattr(sessions_module, "LIMIT", 20)
    root = machine.project("p", "")
    await count_calls(service, root)
    await dispatch(service, root, few, "mine")
    for number in range(60):
        await dispatch(service, root, many, str(number))
    assert (len(service.sessions), (await dispatch(service, root, few, "mine"))["reason"]) == (20, "2")


async def test_a_project_with_too_many_sessions_ends_none_of_another(
    machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "LIMIT", 20)
    mine, other = machine.project("mine", ""), machine.project("other", "")
    await count_calls(service, mine)
    await dispatch(service, mine, "", "s")
    for number in range(60):
        await dispatch(service, other, "", str(number))
    assert (await dispatch(service, mine, "", "s"))["reason"] == "2"


def test_a_project_with_too_many_sessions_of_a_cli_ends_none_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that a hook has halted stays halted."""
    monkeypatch.setattr(sessions_module, "LIMIT", 20)
    sessions = SessionTable(tmp_path / "sessions.json")
    sessions.of_cli("", "mine", "/mine")[1].halt = "no more"
    for number in range(100):
        sessions.of_cli("", str(number), "/other")
    assert (len(sessions), sessions.of_cli("", "mine", "/elsewhere")) == (
        20,
        ("/mine", sessions.of_cli("", "mine", "")[1]),
    )
    assert sessions.of_cli("", "mine", "")[1].halt == "no more"


def test_ten_thousand_sessions_are_kept_and_the_next_is_at_the_cost_of_its_caller(tmp_path: Path) -> None:
    sessions = SessionTable(tmp_path / "sessions.json")
    sessions.of_cli("user 7: ", "theirs", "/theirs")
    for number in range(sessions_module.LIMIT + 1):
        sessions.of_cli("", str(number), "/ours")
    assert len(sessions) == sessions_module.LIMIT
    assert (sessions.began("user 7: ", "theirs"), sessions.began("", "0")) == ("/theirs", None)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(CALLERS), st.integers(0, 9)), max_size=60))
async def test_a_caller_who_has_fewer_loses_no_session_to_one_who_adds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, added: list[tuple[str, int]]
) -> None:
    monkeypatch.setattr(sessions_module, "LIMIT", 10)
    sessions = SessionTable(tmp_path / "none.json")

    def held() -> dict[str, set[int]]:
        return {caller: {n for n in range(10) if sessions.began(caller, str(n)) is not None} for caller in CALLERS}

    for caller, number in added:
        before = held()
        sessions.of_cli(caller, str(number), "/p")
        after = held()
        losers = [one for one in CALLERS if not before[one] <= after[one]]
        assert all(len(before[one]) >= len(after[caller]) - (one == caller) for one in losers)


async def test_a_caller_with_too_many_variables_ends_no_other_callers_table(
    machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects_module, "LIMIT", 4)
    root = machine.project("p", "")
    await dispatch(service, root, "user 7: ", "s", LC_ALL="theirs")
    theirs = await service.projects.find(str(root), {"LC_ALL": "theirs"}, "user 7: ")
    for number in range(10):
        await dispatch(service, root, "", "s", LC_ALL=str(number))
    assert len(service.projects) == 4
    assert await service.projects.find(str(root), {"LC_ALL": "theirs"}, "user 7: ") is theirs


async def test_what_holds_without_a_daemon_is_written_down_for_its_own_user_alone(
    machine: Machine, service: Service
) -> None:
    """Others do not read that file, and must not fill it."""
    ours, theirs = machine.project("ours", ""), machine.project("theirs", "")
    await dispatch(service, ours, "", "s")
    for caller in CALLERS[1:]:
        await dispatch(service, theirs, caller, "s")
    written = read_folders(machine.state / "fallback.json")
    opened = [str(folder) for folder in (ours, theirs) if "open" in written[str(folder)].values()]
    assert opened == [str(ours)]  # the other one is as trusting it has left it
