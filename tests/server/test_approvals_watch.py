"""`fairlead approvals watch` and grants, with a daemon: a call waits, a person answers, and the call runs."""

from __future__ import annotations

import json
import re
import threading
from typing import Any

import pytest
from machines import Daemon, Machine, questions_of, wait_until

from fairlead.client import DaemonError
from fairlead.samples import step

ASKS = """
[[hook]]
name = "may"
on = "before_tool"
rule = "true"
phase = "gate"
ask = "may it?"
"""
TWICE = ASKS + ASKS.replace('"may"', '"ops"').replace("may it?", "and ops?")
CHANGES = (
    """
[[hook]]
name = "trash"
on = "before_tool"
rule = "true"
change = { command = { match = "tea", replace = "coffee" } }
"""
    + ASKS
)

pytestmark = pytest.mark.usefixtures("unwatched")


class Call:
    """A call that waits for an answer in another thread."""

    def __init__(self, daemon: Daemon, command: str = "make tea", **fields: Any) -> None:
        fields = {"session_id": "s", "cwd": "/srv"} | fields
        self._step = step("before_tool", tool="bash", args={"command": command}, **fields)
        self._daemon = daemon
        self.decision: Any = None
        self._thread = threading.Thread(target=self._dispatch)
        self._thread.start()

    def _dispatch(self) -> None:
        with self._daemon.client() as client:
            self.decision = client.dispatch(self._step, deadline=60.0)

    def end(self) -> Any:
        self._thread.join(60)
        return self.decision


def typed(terminal: Any, line: str) -> None:
    """Type a line once the terminal takes answers: not right after a question appears."""
    terminal.until("q: quit")
    threading.Event().wait(1.0)  # the watch ignores what is typed before
    terminal.type(line + "\n")


@pytest.fixture
def daemon(machine: Machine) -> Daemon:
    machine.user(ASKS)
    return machine.start()


def notes(machine: Machine, word: str) -> list[dict[str, Any]]:
    return [one for one in machine.run("log", "--json", "-n", "0").json if one.get("note") == word]


# --- watching -----------------------------------------------------------------------------------


def test_a_question_is_shown_and_approved(machine: Machine, daemon: Daemon) -> None:
    with machine.terminal("approvals", "watch") as terminal:
        terminal.until("Waiting for questions")
        call = Call(daemon)
        typed(terminal, "a it is fine")
        assert call.end().control == "allow"
        terminal.until("approved")
    for part in ("may it?", "asked by", "make tea", "the call waits"):
        assert part in terminal.seen
    assert call.end().approval.why == "it is fine"


def test_a_refusal_has_its_reason(machine: Machine, daemon: Daemon) -> None:
    with machine.terminal("approvals", "watch") as terminal:
        call = Call(daemon)
        typed(terminal, "d not on a Friday")
        assert call.end().reason.endswith("not on a Friday")
    assert call.end().control == "deny"


def test_what_hooks_changed_is_shown(machine: Machine) -> None:
    machine.user(CHANGES)
    daemon = machine.start()
    with machine.terminal("approvals", "watch") as terminal:
        call = Call(daemon)
        shown = terminal.until("q: quit")
        with daemon.client() as client:
            client.answer(questions_of(client, "s")[0]["id"], False)
    call.end()
    assert re.search(r"args\.command +make coffee", shown)
    assert re.search(r"was args\.command +make tea", shown)
    assert re.search(r"changed by +trash", shown)


def test_both_questions_of_a_call_are_shown_and_answered_at_once(machine: Machine) -> None:
    machine.user(TWICE)
    daemon = machine.start()
    with machine.terminal("approvals", "watch") as terminal:
        call = Call(daemon)
        wait_until(lambda: len(_open(daemon)) == 2)
        typed(terminal, "a")
        assert call.end().control == "allow"
    assert ("may it?" in terminal.seen, "and ops?" in terminal.seen) == (True, True)


def _open(daemon: Daemon) -> list[dict[str, Any]]:
    with daemon.client() as client:
        return client.approvals()


def test_what_is_typed_before_a_question_appears_answers_nothing(machine: Machine, daemon: Daemon) -> None:
    with machine.terminal("approvals", "watch") as terminal:
        terminal.until("Waiting for questions")
        terminal.type("a")
        call = Call(daemon)
        terminal.until("q: quit")
        terminal.type("a\n")
        threading.Event().wait(1.5)
        assert len(_open(daemon)) == 1
        terminal.type("d\n")
        assert call.end().control == "deny"


def test_an_answer_from_elsewhere_is_seen(machine: Machine, daemon: Daemon) -> None:
    with machine.terminal("approvals", "watch") as terminal:
        call = Call(daemon)
        terminal.until("q: quit")
        with daemon.client() as client:
            (question,) = client.approvals()
            client.answer(question["id"], False)
        terminal.until(f"{question['id']}: denied")
    call.end()


def test_one_question_is_watched_until_its_end(machine: Machine, daemon: Daemon) -> None:
    call = Call(daemon)
    (question,) = wait_until(lambda: _open(daemon))
    with machine.terminal("approvals", "watch", question["id"][:6]) as terminal:
        typed(terminal, "a")
        assert terminal.end() == 0
    assert call.end().control == "allow"


def test_a_stream_has_each_question_and_its_end(machine: Machine, daemon: Daemon) -> None:
    process = machine.spawn("from fairlead.cli import main; main(['approvals', 'watch', '--json'])")
    call = Call(daemon)
    assert process.stdout is not None
    asked = json.loads(process.stdout.readline())
    with daemon.client() as client:
        client.answer(asked["id"], True)
    ended = json.loads(process.stdout.readline())
    process.kill()
    assert call.end().control == "allow"
    assert [(one["event"], one["id"]) for one in (asked, ended)] == [("asked", asked["id"]), ("ended", asked["id"])]
    assert (asked["question"], ended["state"] in ("approved", "handed_out", "used")) == ("may it?", True)


def test_below_an_agent_it_only_shows(machine: Machine, daemon: Daemon) -> None:
    with machine.terminal("approvals", "watch", env=machine.env | {"CLAUDECODE": "1"}) as terminal:
        refusal = terminal.until("You cannot answer here: an agent cannot approve")
        call = Call(daemon)
        terminal.until("make tea")
        terminal.type("a\n")
        threading.Event().wait(1.0)
        (question,) = _open(daemon)
    assert (refusal != "", question["state"]) == (True, "pending")
    with daemon.client() as client:
        client.answer(question["id"], False)
    call.end()


# --- grants -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("line", "scope"), [("s", "session"), ("p", "project"), ("u 23:59", "project")])
def test_a_grant_from_the_terminal_lets_the_same_call_run_again(
    line: str, scope: str, machine: Machine, daemon: Daemon
) -> None:
    with machine.terminal("approvals", "watch") as terminal:
        call = Call(daemon)
        typed(terminal, line)
        assert call.end().control == "allow"
    assert Call(daemon).end().control == "allow"
    (grant,) = machine.run("approvals", "grants", "--json").json["grants"]
    assert (grant["scope"], grant["uses"], grant["summary"], grant["folder"]) == (scope, 2, "make tea", "/srv")
    daemon.end()
    used = notes(machine, "grant used")
    assert [(one["grant"], one["who"], one["hook"]) for one in used] == [(grant["id"], grant["who"], "may")] * 2
    assert [one["scope"] for one in notes(machine, "granted")] == [scope]


def test_a_grant_by_command_is_listed_and_revoked(machine: Machine, daemon: Daemon) -> None:
    call = Call(daemon)
    (question,) = wait_until(lambda: _open(daemon))
    words = ("approvals", "approve", question["id"][:6], "--grant", "session", "--for", "2h", "--why", "tea time")
    assert machine.at_terminal(*words).code == 0
    assert call.end().control == "allow"
    listed = machine.run("approvals", "grants").out
    name = listed.splitlines()[1].split()[0]
    assert ("make tea" in listed, "may" in listed) == (True, True)
    assert machine.run("approvals", "revoke", name[:5]).code == 0
    refused = Call(daemon)
    (again,) = wait_until(lambda: _open(daemon))
    with daemon.client() as client:
        client.answer(again["id"], False)
    assert refused.end().control == "deny"
    assert machine.run("approvals", "grants").err == "There are no grants.\n"
    assert "revoked" in machine.run("approvals", "grants", "--all").out
    daemon.end()
    assert [one["grant"] for one in notes(machine, "grant revoked")] == [name]


def test_a_restart_of_the_daemon_ends_no_grant(machine: Machine, daemon: Daemon) -> None:
    call = Call(daemon)
    (question,) = wait_until(lambda: _open(daemon))
    with daemon.client() as client:
        client.answer(question["id"], True, grant={"scope": "session"})
    call.end()
    daemon.end()
    assert Call(machine.start()).end().control == "allow"


def test_a_grant_for_a_session_ends_with_the_session(machine: Machine, daemon: Daemon) -> None:
    call = Call(daemon)
    (question,) = wait_until(lambda: _open(daemon))
    with daemon.client() as client:
        client.answer(question["id"], True, grant={"scope": "session"})
        call.end()
        client.dispatch(step("session_end", session_id="s", cwd="/srv"))
        assert client.grants() == []


def test_no_grant_is_given_or_used_where_the_file_forbids_it(machine: Machine, daemon: Daemon) -> None:
    call = Call(daemon)
    (question,) = wait_until(lambda: _open(daemon))
    with daemon.client() as client:
        client.answer(question["id"], True, grant={"scope": "project"})
        call.end()
        machine.user(f"[approvals]\ngrants = false\n{ASKS}")
        client.reload()
        after = Call(daemon)
        (again,) = wait_until(lambda: client.approvals())
        assert again["no_grant"] == "`grants = false` in [approvals] forbids grants"
        with pytest.raises(DaemonError, match="forbids grants") as raised:
            client.answer(again["id"], True, grant={"scope": "project"})
        client.answer(again["id"], False)
    assert (raised.value.status, after.end().control) == (400, "deny")


def test_a_rule_that_was_changed_asks_again(machine: Machine, daemon: Daemon) -> None:
    call = Call(daemon)
    (question,) = wait_until(lambda: _open(daemon))
    with daemon.client() as client:
        client.answer(question["id"], True, grant={"scope": "project"})
        call.end()
        machine.user(ASKS.replace('rule = "true"', 'rule = "1 == 1"'))
        client.reload()
        after = Call(daemon)
        (again,) = wait_until(lambda: client.approvals())
        assert "the hook 'may' is not what it was" in again["note"]
        client.answer(again["id"], False)
    after.end()


# --- over HTTP ----------------------------------------------------------------------------------


def test_an_answer_is_for_what_was_shown(daemon: Daemon) -> None:
    call = Call(daemon)
    (question,) = wait_until(lambda: _open(daemon))
    with daemon.client() as client:
        assert client.question(question["id"])["shown"] == question["shown"]
        with pytest.raises(DaemonError, match="not what was shown") as raised:
            client.answer(question["id"], True, shown="0" * 64)
        client.answer(question["id"], True, shown=question["shown"])
    assert (raised.value.status, call.end().control) == (409, "allow")


def test_an_agent_grants_nothing_and_may_only_revoke(machine: Machine, daemon: Daemon) -> None:
    call = Call(daemon)
    (question,) = wait_until(lambda: _open(daemon))
    asks = (
        "import sys; from fairlead.client import Client, DaemonError\n"
        "client = Client(start=False)\n"
        "try: client.answer(sys.argv[1], True, grant={'scope': 'project'})\n"
        "except DaemonError as error: print(error.status, error)\n"
    )
    refused = machine.spawn(asks, question["id"], env=machine.env | {"CLAUDECODE": "1"})
    out, err = refused.communicate()
    assert (out[:3], err) == ("403", "")
    with daemon.client() as client:
        assert client.grants() == []
        client.answer(question["id"], False)
    call.end()


WRONG = [{}, {"scope": "machine"}, {"scope": "session", "lasts": 0}, {"scope": "session", "x": 1}]


@pytest.mark.parametrize("grant", WRONG)
def test_a_grant_that_makes_no_sense_is_refused(grant: dict[str, Any], daemon: Daemon) -> None:
    call = Call(daemon)
    (question,) = wait_until(lambda: _open(daemon))
    answer = daemon.ask("POST", f"/v1/approvals/{question['id']}", {"approve": True, "grant": grant})
    with daemon.client() as client:
        client.answer(question["id"], False)
    call.end()
    assert answer.status == 400


@pytest.mark.parametrize(("method", "path"), [("GET", "/v1/approvals/no"), ("DELETE", "/v1/grants/no")])
def test_what_is_not_there_is_not_found(method: str, path: str, daemon: Daemon) -> None:
    assert daemon.ask(method, path).status == 404


def test_a_token_needs_the_scope_for_each(machine: Machine, daemon: Daemon) -> None:
    from fairlead.server.tokens import Tokens

    tokens = {scope: Tokens(machine.state).add(scope, [scope]) for scope in ("read", "approve", "dispatch")}
    wanted = [("GET", "approvals/no", "read"), ("GET", "grants", "read"), ("DELETE", "grants/no", "approve")]
    for method, name, scope in wanted:
        path = f"/v1/{name}"
        allowed = [kind for kind, token in tokens.items() if _may(daemon, method, path, token)]
        assert (path, allowed) == (path, [scope])


def _may(daemon: Daemon, method: str, path: str, token: str) -> bool:
    return daemon.ask(method, path, tcp=True, token=token).status != 403


def test_without_a_daemon_the_file_is_asked(machine: Machine, daemon: Daemon) -> None:
    with daemon.client() as client:
        asked = step("before_tool", tool="bash", args={"command": "make tea"}, session_id="s", cwd="/srv")
        client.dispatch(asked, deadline=0.0)
        (question,) = client.approvals()
    daemon.end()
    assert machine.at_terminal("approvals", "approve", question["id"][:6], "--grant", "project").code == 0
    (grant,) = machine.run("approvals", "grants", "--json").json["grants"]
    assert machine.run("approvals", "revoke", grant["id"]).code == 0
    assert [one["scope"] for one in notes(machine, "granted")] == ["project"]
