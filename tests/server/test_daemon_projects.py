"""Each project has its own hooks, variables, workers and sessions; and what changes in its files soon holds."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines import Daemon, Machine, wait_until

from fairlead import current_session, deny
from fairlead.client import Client
from fairlead.journal import Journal, writer
from fairlead.samples import step
from fairlead.server import projects as projects_module
from fairlead.server import sessions as sessions_module
from fairlead.server.projects import NeedsVariables
from fairlead.server.service import DispatchRequest, Service
from fairlead.wire.steps import envelope

TELLS = """
import os
from fairlead import deny
calls = 0
def tell(step):
    global calls
    calls += 1
    return deny(f"{os.environ.get('KEY')} {os.environ.get('OTHER')} {os.getpid()} {calls}")
"""
TELLING = '[[hook]]\nname = "tell"\non = "before_tool"\npython = "tell.py:tell"\nenv = ["KEY"]\n'
DENIES = '[[hook]]\nname = "no"\non = "before_tool"\nrule = "true"\ndeny = "{}"\n'


def body(root: Path | str, env: dict[str, str | None] | None = None, **fields: Any) -> dict[str, Any]:
    given = msgspec.to_builtins(envelope(step("before_tool", **fields)))
    return {"step": given, "root": str(root), **({} if env is None else {"env": env})}


def told(daemon: Daemon, root: Path, **env: str | None) -> list[str]:
    """What the hook of TELLING saw: KEY, OTHER, its process, its calls."""
    answer = daemon.ask("POST", "/v1/dispatch", body(root, env))
    assert answer.status == 200, answer.body
    return str(answer.body["reason"]).split()


@pytest.fixture(scope="module")
def one(shared: Machine) -> Path:
    return shared.project("one", TELLING, tell_py=TELLS)


@pytest.fixture(scope="module")
def two(shared: Machine) -> Path:
    return shared.project("two", TELLING, tell_py=TELLS)


# --- variables ----------------------------------------------------------------------------------


def test_one_project_never_gets_anothers_credentials(daemon: Daemon, one: Path, two: Path) -> None:
    asked = [(one, "a"), (two, "b"), (one, "a"), (two, "c"), (one, "d"), (two, "b")]
    assert [told(daemon, root, KEY=key)[0] for root, key in asked] == [key for _, key in asked]


def test_a_worker_of_one_project_is_never_used_for_another(daemon: Daemon, one: Path, two: Path) -> None:
    assert told(daemon, one, KEY="same")[2] != told(daemon, two, KEY="same")[2]


def test_a_worker_of_one_caller_is_never_used_for_another(daemon: Daemon, one: Path) -> None:
    assert told(daemon, one, KEY="hers")[2] != told(daemon, one, KEY="his")[2]


def test_a_worker_is_used_again_by_who_brings_the_same(daemon: Daemon, one: Path) -> None:
    assert told(daemon, one, KEY="again")[2] == told(daemon, one, KEY="again")[2]


def test_a_hook_sees_no_variable_that_it_does_not_name(daemon: Daemon, one: Path) -> None:
    assert told(daemon, one, KEY="a", OTHER="not for it")[1] == "None"


def test_a_variable_that_is_not_set_is_not_seen(daemon: Daemon, one: Path) -> None:
    assert told(daemon, one, KEY=None)[0] == "None"


def test_variables_that_a_request_does_not_bring_are_asked_for(daemon: Daemon, one: Path) -> None:
    answer = daemon.ask("POST", "/v1/dispatch", body(one))
    assert (answer.status, answer.body["error"], answer.body["variables"]) == (428, "needs_variables", ["KEY"])


def test_a_client_brings_the_variables_that_it_is_asked_for(
    daemon: Daemon, one: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "mine")
    with daemon.client() as client:
        assert (client.dispatch(step("before_tool"), root=str(one)).reason or "").split()[0] == "mine"


def test_a_secret_that_a_request_brings_is_not_written_down(machine: Machine) -> None:
    root = machine.project("p", TELLING.replace("KEY", "DEPLOY_TOKEN"), tell_py=TELLS.replace("KEY", "DEPLOY_TOKEN"))
    daemon, secret = machine.start(), "correct-horse-battery-staple"
    seen = told(daemon, root, DEPLOY_TOKEN=secret)[0]
    assert (seen, daemon.end()) == (secret, 0)
    written = [path for path in machine.state.rglob("*") if path.is_file()]
    assert [path.name for path in written if secret.encode() in path.read_bytes()] == []


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=50))
def test_whatever_a_variable_holds_a_hook_gets_just_that(daemon: Daemon, one: Path, value: str) -> None:
    answer = daemon.ask("POST", "/v1/dispatch", body(one, {"KEY": value.encode().hex()}))
    assert bytes.fromhex(answer.body["reason"].split(" ")[0] if value else "").decode() == value


def test_a_variable_with_a_nul_is_a_failure_of_the_hook_alone(daemon: Daemon, one: Path) -> None:
    answer = daemon.ask("POST", "/v1/dispatch", body(one, {"KEY": "a\0b"}))
    assert (answer.status, answer.body["control"], answer.body["cause"]) == (200, "deny", "failure")


def test_the_locale_of_a_caller_reaches_its_hooks_as_it_does_in_process(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_TIME", "de_DE.UTF-8")
    machine.program("look", '#!/bin/sh\necho "$LC_TIME" >&2; exit 2\n')
    root = machine.project("p", f'[[hook]]\nname = "look"\non = "before_tool"\ncommand = ["{machine.outside}/look"]\n')
    with machine.start().client() as client:
        assert client.dispatch(step("before_tool"), root=str(root)).reason == "de_DE.UTF-8"


def test_a_project_is_trusted_by_the_path_of_its_caller(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that started the daemon may have had another PATH."""
    machine.program("judge-of-mine", "#!/bin/sh\necho judged >&2; exit 2\n")
    monkeypatch.setenv("PATH", f"{machine.outside}:{os.environ['PATH']}")
    root = machine.project("p", '[[hook]]\nname = "j"\non = "before_tool"\ncommand = ["judge-of-mine"]\n')
    daemon = machine.start(env=machine.env | {"PATH": "/usr/bin:/bin"})
    with daemon.client() as client:
        assert client.dispatch(step("before_tool"), root=str(root)).reason == "judged"


# --- roots and sessions -------------------------------------------------------------------------


def sessions(daemon: Daemon, root: Path) -> list[str]:
    return [one["session_id"] for one in daemon.ask("GET", f"/v1/sessions?root={root}").body["sessions"]]


def test_sessions_of_the_same_id_in_two_projects_are_two(daemon: Daemon, one: Path, two: Path) -> None:
    for root in (one, two):
        daemon.ask("POST", "/v1/dispatch", body(root, {"KEY": "x"}, session_id="twin"))
    assert daemon.ask("DELETE", f"/v1/sessions/twin?root={one}").status == 200
    assert ("twin" in sessions(daemon, one), "twin" in sessions(daemon, two)) == (False, True)


def test_a_session_that_ends_is_forgotten(daemon: Daemon, shared: Machine) -> None:
    root = shared.project("ends", "")
    with daemon.client() as client:
        client.dispatch(step("turn_start", session_id="short"), root=str(root))
        before = sessions(daemon, root)
        client.dispatch(step("session_end", session_id="short"), root=str(root))
    assert (before, sessions(daemon, root)) == (["short"], [])


def test_a_step_without_a_session_leaves_none(daemon: Daemon, shared: Machine) -> None:
    root = shared.project("none", "")
    with daemon.client() as client:
        client.dispatch(step("turn_start", session_id=None), root=str(root))
    assert sessions(daemon, root) == []


@pytest.fixture
async def service(machine: Machine) -> AsyncIterator[Service]:
    made = Service(machine.state, None)
    yield made
    await made.aclose()


async def dispatch(service: Service, root: Path | str, event: str = "before_tool", **fields: Any) -> dict[str, Any]:
    return await service.dispatch(DispatchRequest(envelope(step(event, **fields)), root=str(root)))


async def counting(service: Service, root: Path | str) -> None:
    """Give a project's table a hook that counts what its session has done."""

    def count(_: Any) -> Any:
        session = current_session()
        assert session is not None
        session.state["last"] = session.store.increment("calls")
        return deny(f"{session.store.get('calls')} {session.store.hit('window', 3600)} {session.state['last']}")

    project = await service.projects.find(str(root), {})
    project.hooks.add(count, on="before_tool", name="count")


async def test_state_and_counters_live_from_call_to_call(machine: Machine, service: Service) -> None:
    root = machine.project("p", "")
    await counting(service, root)
    said = [(await dispatch(service, root))["reason"] for _ in range(3)]
    assert said == ["1 1 1", "2 2 2", "3 3 3"]


async def test_state_and_counters_survive_a_restart(machine: Machine) -> None:
    root, said = machine.project("p", ""), []
    for _ in range(2):
        service = Service(machine.state, None)
        await counting(service, root)
        said.append((await dispatch(service, root))["reason"])
        await service.aclose()
    assert said == ["1 1 1", "2 2 2"]


async def test_state_and_counters_are_forgotten_when_a_session_ends(machine: Machine, service: Service) -> None:
    root = machine.project("p", "")
    await counting(service, root)
    await dispatch(service, root)
    await dispatch(service, root, "session_end")
    assert (await dispatch(service, root))["reason"] == "1 1 1"


async def test_a_session_is_one_in_every_folder_of_its_project(machine: Machine, service: Service) -> None:
    """A limit is not lifted by going into a folder below."""
    root = machine.project("p", "")
    (root / "below").mkdir()
    said = []
    for folder in (str(root), f"{root}/below", f"{root}/", f"{root}/below/.."):
        await counting(service, folder)
        said.append((await dispatch(service, folder))["reason"])
    assert said == ["1 1 1", "2 2 2", "3 3 3", "4 4 4"]


async def test_sessions_are_bounded_and_the_oldest_goes(
    machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "LIMIT", 3)
    root = machine.project("p", "")
    for name in "abcad":
        await dispatch(service, root, session_id=name)
    assert [one["session_id"] for one in service.sessions.known()] == ["c", "a", "d"]


async def test_a_session_that_was_not_used_for_long_begins_anew(
    machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = machine.project("p", "")
    await counting(service, root)
    await dispatch(service, root)
    monkeypatch.setattr(sessions_module, "LIFE", -1.0)
    assert (await dispatch(service, root))["reason"] == "1 1 1"


@pytest.mark.parametrize("content", [b"garbage", b"{}", b'{"root": 1}', b"\xff", b"[" * 100_000])
def test_sessions_that_cannot_be_read_begin_anew(machine: Machine, content: bytes) -> None:
    (machine.state / "sessions.json").write_bytes(content)
    assert len(sessions_module.SessionTable(machine.state / "sessions.json")) == 0


def test_what_is_saved_of_sessions_is_the_users_alone(machine: Machine) -> None:
    sessions_module.SessionTable(machine.state / "sessions.json").save()
    assert (machine.state / "sessions.json").stat().st_mode & 0o777 == 0o600


# --- records ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "answer", "early"), [(100, 200, True), (10_000, 200, False), (100, 100_000, False)],
    ids=["small", "not small", "a large answer"],
)  # fmt: skip
async def test_the_thread_that_answers_makes_the_records_of_small_requests(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, size: int, answer: int, early: bool
) -> None:
    """A large one would keep everybody waiting."""
    journal = Journal(machine.state / "journal.db")
    service = Service(machine.state, journal)
    asked = DispatchRequest(envelope(step("before_tool")), root=str(machine.project("p", "")))
    try:
        await service.dispatch(asked)
        journal.flush()
        for name in ("QUIET_DELAY", "MAX_DELAY"):
            monkeypatch.setattr(writer, name, 3600)
        await service.dispatch(asked, size=size)
        record = journal.newest_queued()
        service.prepare_records(answer)
        assert record is not None
        assert (record.entry is not None) == early
    finally:
        await service.aclose()


# --- tables -------------------------------------------------------------------------------------


async def test_tables_are_bounded(machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projects_module, "LIMIT", 2)
    for name in "abcd":
        await dispatch(service, machine.project(name, ""))
    assert len(service.projects) == 2


async def test_a_table_beyond_the_bound_is_made_while_all_others_are_busy(
    machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects_module, "LIMIT", 1)
    first, second = machine.project("first", ""), machine.project("second", "")
    here, go = asyncio.Event(), asyncio.Event()

    async def wait(_: Any) -> None:
        here.set()
        await go.wait()

    (await service.projects.find(str(first), {})).hooks.add(wait, on="before_tool", timeout=None)
    slow = asyncio.create_task(dispatch(service, first))
    await here.wait()
    try:
        assert (await dispatch(service, second))["control"] == "proceed"
    finally:
        go.set()
        await slow


async def test_a_table_that_is_looked_at_is_not_taken_away(
    machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another request makes room while its files are read again."""
    monkeypatch.setattr(projects_module, "LIMIT", 1)
    monkeypatch.setattr(projects_module, "CHECK_INTERVAL", 0.0)
    first, second = machine.project("first", ""), machine.project("second", "")
    project = await service.projects.find(str(first), {})
    look = project.reloader.look

    async def look_slowly() -> None:
        await dispatch(service, second)
        await look()

    monkeypatch.setattr(project.reloader, "look", look_slowly)
    assert (await dispatch(service, first))["control"] == "proceed"


async def test_files_that_have_not_changed_are_not_read_again(
    machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects_module, "CHECK_INTERVAL", 0.0)
    root = machine.project("p", TELLING, tell_py=TELLS)
    for _ in range(2):  # of a table that has just been made, nothing has been seen yet
        await service.projects.find(str(root), {"KEY": "1"})
    monkeypatch.setattr(projects_module, "documents", None)
    assert (await service.projects.find(str(root), {"KEY": "1"})).root == str(root)


async def test_hooks_that_name_another_variable_are_in_force_only_for_who_brings_it(
    machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a table is looked at a little later than the names are."""
    now = 100.0
    monkeypatch.setattr(projects_module, "monotonic", lambda: now)
    root = machine.project("p", TELLING, tell_py=TELLS)
    project = await service.projects.find(str(root), {"KEY": "1"})
    project.checked = now + 0.1
    for now in (100.5, 100.6):
        await service.projects.find(str(root), {"KEY": "1", "ANY": str(now)})
    machine.project("p", TELLING.replace('"KEY"', '"KEY", "OTHER"'), tell_py=TELLS)
    for now in (101.0, 101.1, 101.3, 101.5, 101.6):
        for env in ({"KEY": "1"}, {"KEY": "1", "ANY": str(now)}):
            with pytest.raises(NeedsVariables, match="OTHER"):
                await service.projects.find(str(root), env)


ENVIRONMENTS: list[dict[str, str | None]] = [
    dict(pairs)
    for count in range(4)
    for pairs in combinations([("HOME", "/h"), ("PATH", "/usr/bin:/bin"), ("LC_X", "1"), ("TZ", None)], count)
]
"""What requests bring, each of them a part of another."""


@pytest.mark.parametrize("is_broken", [False, True])
async def test_requests_share_a_table_only_if_they_bring_the_same_variables(
    machine: Machine, service: Service, monkeypatch: pytest.MonkeyPatch, is_broken: bool
) -> None:
    """Whatever was asked before, and also while a change of the user's file that names another has a mistake."""
    monkeypatch.setattr(projects_module, "CHECK_INTERVAL", 0.0)
    root = machine.project("p", DENIES.format("no"))
    tables = {}
    for env in ENVIRONMENTS:
        tables[tuple(env)] = await service.projects.find(str(root), env)
    if is_broken:
        machine.user('[[hook]]\nname = "x"\non = "before_tool"\nurl = "https://x"\nsecret = { env = "KEY" }\nbad = 1\n')
    for env in reversed(ENVIRONMENTS):
        assert await service.projects.find(str(root), env | {"KEY": "1"}) is tables[tuple(env)]
    assert len(set(map(id, tables.values()))) == len(ENVIRONMENTS)


async def test_two_requests_at_once_share_a_table(machine: Machine, service: Service) -> None:
    root = machine.project("p", "")
    found = await asyncio.gather(*(service.projects.find(str(root), {}) for _ in range(20)))
    assert len({id(project) for project in found}) == 1


async def test_a_table_that_cannot_be_made_leaves_nothing_behind(machine: Machine, service: Service) -> None:
    root = machine.project("p", "", trusted=False)
    machine.user("garbage")
    for number in range(10):
        with pytest.raises(Exception, match="toml"):
            await service.projects.find(str(root), {"TZ": str(number)})
    assert len(service.projects._loading) == 0


async def test_a_missing_variable_is_named_to_the_caller(machine: Machine, service: Service) -> None:
    root = machine.project("p", TELLING, tell_py=TELLS)
    with pytest.raises(NeedsVariables) as raised:
        await service.projects.find(str(root), {})
    assert raised.value.names == ["KEY"]


# --- reloading ----------------------------------------------------------------------------------


@pytest.fixture
def project(shared: Machine, request: pytest.FixtureRequest) -> Path:
    """A project of this test's own, that denies with "old"."""
    return shared.project(f"r{abs(hash(request.node.name))}", DENIES.format("old"))


def reason(client: Client, root: Path) -> str | None:
    return client.dispatch(step("before_tool"), root=str(root)).reason


def test_a_change_that_is_trusted_soon_holds(shared: Machine, client: Client, project: Path) -> None:
    before = reason(client, project)
    shared.project(project.name, DENIES.format("new"))
    wait_until(lambda: reason(client, project) == "new")
    assert before == "old"


def test_a_change_of_the_users_file_soon_holds(machine: Machine) -> None:
    machine.user(DENIES.format("old"))
    with machine.start().client() as client:
        before = reason(client, machine.home)
        machine.user(DENIES.format("new"))
        wait_until(lambda: reason(client, machine.home) == "new")
    assert before == "old"


def seen(client: Client, root: Path, change: Callable[[], Any]) -> str | None:
    """What is said once a change must have been noticed."""
    assert reason(client, root) == "old"
    change()
    client.reload()
    return (reason(client, root) or "").partition(" (")[0]  # what is said of the file comes after it


def test_a_broken_file_keeps_the_old_hooks(client: Client, project: Path) -> None:
    assert seen(client, project, lambda: (project / "fairlead.toml").write_text("[[hook")) == "old"


def test_the_mistakes_of_a_broken_file_are_told(client: Client, project: Path) -> None:
    assert reason(client, project) == "old"
    (project / "fairlead.toml").write_text("[[hook")
    assert any(str(project) in mistake for mistake in client.reload()["mistakes"])


def test_an_untrusted_change_is_not_run(shared: Machine, client: Client, project: Path) -> None:
    assert seen(client, project, lambda: shared.project(project.name, DENIES.format("new"), trusted=False)) == "old"


def test_a_file_that_is_removed_takes_no_trusted_hook_with_it(client: Client, project: Path) -> None:
    assert seen(client, project, (project / "fairlead.toml").unlink) == "old"


WITH_KEY = DENIES.format("old") + '[[hook]]\nname = "k"\non = "turn_start"\ncommand = ["/bin/true"]\nenv = ["KEY"]\n'


def test_a_broken_file_keeps_the_old_hooks_of_a_project_that_names_variables(
    shared: Machine, client: Client, project: Path
) -> None:
    shared.project(project.name, WITH_KEY)
    assert seen(client, project, lambda: (project / "fairlead.toml").write_text("[[hook")) == "old"


def test_an_untrusted_change_that_names_a_variable_keeps_the_old_hooks(
    shared: Machine, client: Client, project: Path
) -> None:
    assert seen(client, project, lambda: shared.project(project.name, WITH_KEY, trusted=False)) == "old"


def test_an_untrusted_change_that_names_a_variable_no_longer_keeps_the_old_hooks(
    shared: Machine, client: Client, project: Path
) -> None:
    shared.project(project.name, WITH_KEY)
    assert seen(client, project, lambda: shared.project(project.name, "", trusted=False)) == "old"


def test_sighup_reads_all_files_again(shared: Machine, daemon: Daemon, client: Client, project: Path) -> None:
    assert reason(client, project) == "old"
    shared.project(project.name, DENIES.format("new"))
    os.kill(daemon.pid, signal.SIGHUP)
    wait_until(lambda: reason(client, project) == "new")


def test_a_reload_that_is_asked_for_holds_at_once(shared: Machine, client: Client, project: Path) -> None:
    assert seen(client, project, lambda: shared.project(project.name, DENIES.format("new"))) == "new"


def test_a_file_with_mistakes_that_was_never_trusted_is_as_any_other_untrusted_one(
    shared: Machine, client: Client
) -> None:
    root = shared.project("mistaken", "[[hook", trusted=False)
    decision = client.dispatch(step("before_tool"), root=str(root))
    assert (decision.control, decision.failures) == ("proceed", ())


def test_an_untrusted_project_is_not_run(shared: Machine, client: Client) -> None:
    root = shared.project("untrusted", DENIES.format("no"), trusted=False)
    assert client.dispatch(step("before_tool"), root=str(root)).control == "proceed"


def test_a_folder_that_is_gone_is_a_failure(shared: Machine, client: Client) -> None:
    root = shared.project("gone", DENIES.format("no"))
    client.dispatch(step("before_tool"), root=str(root))
    (root / "fairlead.toml").unlink()
    root.rmdir()
    client.reload()
    assert client.dispatch(step("before_tool"), root=str(root)).cause == "failure"
