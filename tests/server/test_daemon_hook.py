"""Moments of agent CLIs, asked over HTTP as the thin client asks: what is remembered, where, and for whom."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from launched import Launched
from machines import Answer, Daemon, Machine, wait_until
from played import captured

from fairlead.runners.environment import PASSED
from fairlead.server import sessions as sessions_module
from fairlead.server.limits import BODY
from fairlead.server.sessions import SessionTable

DENIES = """
[[hook]]
name = "hands-off"
on = "before_tool"
phase = "gate"
match = { kind = "shell" }
rule = 'target.command.contains("forbidden")'
deny = "That is not yours to touch."
"""
ASKS = """
[[hook]]
name = "may"
on = ["before_tool", "before_permission"]
phase = "gate"
match = { kind = "shell" }
rule = 'target.command.contains("careful")'
ask = "may it?"
"""


def says(on: str, **verdict: Any) -> str:
    """A hook that says the same every time, but for tools that are no shells."""
    match = 'match = { kind = "shell" }\n' if "tool" in on else ""
    command = json.dumps(["/bin/echo", json.dumps(verdict)])
    return f'[[hook]]\nname = "says-{on}"\non = "{on}"\n{match}command = {command}\n'


def body(host: str, event: str, payload: Any, cwd: Path | str = "/", **more: Any) -> dict[str, Any]:
    """What the thin client sends."""
    said = payload if isinstance(payload, str) else json.dumps(payload)
    env = dict.fromkeys(PASSED) | more.pop("env", {})
    return {"host": host, "event": event, "payload": said, "cwd": str(cwd), "env": env, "deadline": 0.0, **more}


def hook(daemon: Daemon, host: str, event: str, payload: Any, cwd: Path | str = "/", **more: Any) -> Answer:
    return daemon.ask("POST", "/v1/hook", body(host, event, payload, cwd, **more))


def told(daemon: Daemon, host: str, event: str, payload: Any, cwd: Path | str = "/", **more: Any) -> Any:
    """What the CLI would read."""
    answer = hook(daemon, host, event, payload, cwd, **more)
    assert answer.status == 200, answer
    text = answer.body["answer"]
    assert text.startswith("0:")
    assert text.endswith(":end")
    return json.loads(text[2:-4].removeprefix("HOOK_CONTROL\t") or "{}")


def shell(command: str, session: str = "s", **about: Any) -> dict[str, Any]:
    """A payload of Codex and Claude Code: a command is about to run."""
    return {
        "session_id": session, "tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "1", **about,
    }  # fmt: skip


def why(reply: dict[str, Any]) -> str | None:
    """Why a command is refused, if it is."""
    about = reply.get("hookSpecificOutput", {})
    return about.get("permissionDecisionReason") if about.get("permissionDecision") == "deny" else None


@pytest.fixture(scope="module")
def shared(shared: Machine) -> Machine:
    shared.user(ASKS)
    return shared


@pytest.fixture(scope="module")
def strict(shared: Machine) -> Path:
    return shared.project("strict", DENIES)


@pytest.fixture(scope="module")
def lax(shared: Machine) -> Path:
    return shared.project("lax", "")


# --- asking -------------------------------------------------------------------------------------


def test_a_moment_is_answered_for_the_thin_client_to_pass_on(daemon: Daemon, strict: Path) -> None:
    answer = hook(daemon, "claude_code", "PreToolUse", shell("touch forbidden"), strict)
    assert answer.body == {
        "answer": '0:{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",'
        '"permissionDecisionReason":"[hands-off] That is not yours to touch."}}:end'
    }


def test_no_opinion_is_an_empty_answer(daemon: Daemon, strict: Path) -> None:
    assert hook(daemon, "claude_code", "PreToolUse", shell("ls"), strict).body == {"answer": "0::end"}


def test_a_host_that_takes_exit_codes_is_told_by_one(daemon: Daemon, strict: Path) -> None:
    payload = {"trajectory_id": "t", "agent_action_name": "pre_run_command", "tool_info": {"command_line": "forbidden"}}
    answer = hook(daemon, "windsurf", "pre_run_command", payload, strict)
    assert answer.body == {"answer": "2:[hands-off] That is not yours to touch.:end"}


@pytest.mark.parametrize(
    ("about", "says"),
    [
        ({"host": "emacs"}, "emacs"),
        ({"event": "Unheard"}, "has no event 'Unheard'"),
        ({"payload": "garbage"}, "sent no JSON object"),
        ({"payload": "[]"}, "sent no JSON object"),
        ({"payload": '{"tool_name": 7}'}, "something else than a PreToolUse"),
        ({"payload": {}}, "payload"),
        ({"another": 1}, "another"),
        ({"cwd": "relative"}, "absolute path"),
        ({"cwd": "/nowhere/at/all"}, "absolute path"),
        ({"cwd": "/a\0b"}, "absolute path"),
        ({"env": {"A": 1}}, "env"),
        ({"deadline": "soon"}, "deadline"),
    ],
    ids=str,
)
def test_what_is_no_moment_is_refused_with_what_is_wrong(
    daemon: Daemon, session: str, about: dict[str, Any], says: str
) -> None:
    answer = daemon.ask("POST", "/v1/hook", body("claude_code", "PreToolUse", shell("ls", session), "/") | about)
    of_payload = "sent" in says or "something else" in says  # which is no fault of this machine
    assert (answer.status, answer.body["error"]) == (400, "bad_payload" if of_payload else "bad_request")
    assert says in answer.body["message"]


def test_other_methods_are_not_taken(daemon: Daemon) -> None:
    assert daemon.ask("GET", "/v1/hook").status == 405


def test_a_body_that_is_too_large_is_refused(daemon: Daemon) -> None:
    head = f"POST /v1/hook HTTP/1.1\r\nhost: fairlead\r\ncontent-length: {BODY + 1}\r\n\r\n"
    with daemon.connect() as connection:
        connection.sendall(head.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413")


def test_a_large_step_is_answered(daemon: Daemon, strict: Path) -> None:
    assert why(told(daemon, "claude_code", "PreToolUse", shell("forbidden" + "x" * (1 << 19)), strict))


def test_over_tcp_it_takes_a_token_that_may_dispatch(shared: Machine, daemon: Daemon, strict: Path) -> None:
    asked = body("claude_code", "PreToolUse", shell("ls"), strict)
    assert daemon.ask("POST", "/v1/hook", asked, tcp=True).status == 401


def test_the_claude_code_hooks_of_a_project_are_copilots_where_copilot_runs_them(daemon: Daemon, strict: Path) -> None:
    payload = captured("copilot", "PreToolUse", tool_input={"command": "forbidden"})
    reply = told(daemon, "claude_code", "PreToolUse", payload, strict, told={"COPILOT_PROJECT_DIR": str(strict)})
    assert why(reply)
    record = newest(daemon, payload["session_id"])
    assert record["step"]["host"] == "copilot"


def newest(daemon: Daemon, session: str, event: str = "before_tool") -> dict[str, Any]:
    return records(daemon, session, event)[-1]


def records(daemon: Daemon, session: str, event: str | None = None, number: int = 1) -> list[dict[str, Any]]:
    """What the journal has of a session, the oldest first, once there are so many."""
    query = f"/v1/decisions?session={session}" + (f"&event={event}" if event else "")

    def found() -> list[dict[str, Any]]:
        answer = daemon.ask("GET", query)
        kept = answer.body.get("decisions", []) if answer.status == 200 else []
        return sorted(kept, key=lambda record: record["seq"]) if len(kept) >= number else []

    return list(wait_until(found))


def test_a_deny_that_the_host_cannot_carry_out_is_in_the_journal_and_no_error(machine: Machine) -> None:
    machine.user(says("before_input", control="deny", reason="no"))
    daemon = machine.start()
    payload = captured("cline", "agent_start") | {"userPromptSubmit": {"prompt": "hi"}}
    assert told(daemon, "cline", "UserPromptSubmit", payload) == {}
    record = newest(daemon, payload["sessionContext"]["rootSessionId"], "before_input")
    assert {"unsupported": "deny"} in record["said"]


# --- where a session is -------------------------------------------------------------------------


def test_a_session_stays_with_the_folder_that_it_began_in(
    daemon: Daemon, strict: Path, lax: Path, session: str
) -> None:
    """Codex names no project: it only says where it is now."""
    assert why(told(daemon, "codex", "PreToolUse", shell("touch forbidden", session), strict))
    assert why(told(daemon, "codex", "PreToolUse", shell("touch forbidden", session), lax))


def test_another_session_is_where_it_begins(daemon: Daemon, strict: Path, lax: Path, session: str) -> None:
    assert why(told(daemon, "codex", "PreToolUse", shell("touch forbidden", session), lax)) is None
    assert why(told(daemon, "codex", "PreToolUse", shell("touch forbidden", session), strict)) is None


def test_a_session_is_in_the_project_that_its_host_names(daemon: Daemon, strict: Path, lax: Path, session: str) -> None:
    named = {"CLAUDE_PROJECT_DIR": str(strict)}
    assert why(told(daemon, "claude_code", "PreToolUse", shell("touch forbidden", session), lax, told=named))


def test_another_hosts_variable_names_no_project(daemon: Daemon, strict: Path, lax: Path, session: str) -> None:
    named = {"CLAUDE_PROJECT_DIR": str(lax)}
    assert why(told(daemon, "codex", "PreToolUse", shell("touch forbidden", session), strict, told=named))


def test_a_session_stays_where_it_began_after_a_restart(machine: Machine) -> None:
    strict, lax = machine.project("strict", DENIES), machine.project("lax", "")
    daemon = machine.start()
    told(daemon, "codex", "PreToolUse", shell("ls"), strict)
    assert daemon.end() == 0
    assert why(told(machine.start(), "codex", "PreToolUse", shell("touch forbidden"), lax))


def test_a_session_stays_where_it_began_after_its_daemon_was_killed(machine: Machine) -> None:
    strict, lax = machine.project("strict", DENIES), machine.project("lax", "")
    daemon = machine.start()
    told(daemon, "codex", "PreToolUse", shell("ls"), strict)
    daemon.process.kill()
    daemon.process.wait()
    assert why(told(machine.start(), "codex", "PreToolUse", shell("touch forbidden"), lax))


@pytest.mark.parametrize("cut", [0, 1, 40])
def test_sessions_that_begin_after_one_was_half_written_are_known(tmp_path: Path, cut: int) -> None:
    file = tmp_path / "sessions.json"
    sessions = SessionTable(file)
    sessions.of_cli("", "before", "/before")
    sessions.save_new()
    file.write_bytes(file.read_bytes()[: -cut or None])
    sessions.of_cli("", "after", "/after")
    sessions.save_new()
    known = SessionTable(file)
    assert known.began("", "after") == "/after"
    assert known.began("", "before") == (None if cut else "/before")


def test_a_session_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "sessions.json"
    sessions = SessionTable(file)
    sessions.of_cli("", "s", "/root")
    with pytest.raises(OSError, match="sessions"):
        sessions.save_new()
    file.parent.mkdir()
    sessions.save_new()
    assert SessionTable(file).began("", "s") == "/root"


def test_the_file_of_sessions_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "LIMIT", 5)
    sessions = SessionTable(tmp_path / "sessions.json")
    sizes = []
    for number in range(40):
        sessions.of_cli("", str(number), "/root")
        sessions.save_new()
        sizes.append(len((tmp_path / "sessions.json").read_bytes().split(b"\n")) - 1)
    assert max(sizes) == 10
    assert SessionTable(tmp_path / "sessions.json").began("", "39") == "/root"


def test_a_session_whose_folder_is_gone_is_refused_and_not_let_loose(machine: Machine) -> None:
    strict, lax = machine.project("strict", DENIES), machine.project("lax", "")
    daemon = machine.start()
    told(daemon, "codex", "PreToolUse", shell("ls"), strict)
    (strict / "fairlead.toml").unlink()
    strict.rmdir()
    wait_until(lambda: hook(daemon, "codex", "PreToolUse", shell("touch forbidden"), lax).status != 200)


def test_a_session_is_not_bound_to_what_is_no_folder(daemon: Daemon, strict: Path, session: str) -> None:
    for nowhere in ("relative", "/nowhere/at/all"):
        assert hook(daemon, "codex", "PreToolUse", shell("ls", session), nowhere).status == 400
    assert why(told(daemon, "codex", "PreToolUse", shell("touch forbidden", session), strict))


def test_the_session_of_one_user_says_nothing_of_anothers(tmp_path: Path) -> None:
    sessions = SessionTable(tmp_path / "sessions.json")
    sessions.of_cli("user 7: ", "s", "/theirs")
    assert sessions.of_cli("", "s", "/ours")[0] == "/ours"


def test_a_clis_session_is_listed_once_whichever_folder_of_its_project_it_is_in(daemon: Daemon, strict: Path) -> None:
    inside = strict / "inside"
    inside.mkdir(exist_ok=True)
    for folder in (inside, strict):
        told(daemon, "codex", "PreToolUse", shell("ls", "listed"), folder)
    found = [one["root"] for one in daemon.ask("GET", "/v1/sessions").body["sessions"] if one["session_id"] == "listed"]
    assert found == [str(strict)]


# --- what is remembered -------------------------------------------------------------------------


@pytest.fixture(params=["the same daemon", "another daemon"])
def then(request: pytest.FixtureRequest, machine: Machine) -> Any:
    """The daemon, now and later: it may have been idle and ended in between."""
    running = [machine.start()]

    def later() -> Daemon:
        if request.param == "another daemon":
            assert running[-1].end() == 0
            running.append(machine.start())
        return running[-1]

    return lambda first=False: running[0] if first else later()


def test_a_call_without_an_id_is_the_same_before_and_after(then: Any) -> None:
    payload = captured("gemini", "BeforeTool")
    told(then(True), "gemini", "BeforeTool", payload)
    daemon = then()
    told(daemon, "gemini", "AfterTool", captured("gemini", "AfterTool"))
    found = records(daemon, payload["session_id"], number=2)
    assert [record["step"]["event"] for record in found] == ["before_tool", "after_tool"]
    assert found[0]["step"]["call_id"] == found[1]["step"]["call_id"]


def test_a_turn_is_the_same_from_its_message_to_its_end(then: Any) -> None:
    payload = captured("gemini", "BeforeAgent")
    told(then(True), "gemini", "BeforeAgent", payload)
    daemon = then()
    told(daemon, "gemini", "AfterAgent", captured("gemini", "AfterAgent"))
    found = records(daemon, payload["session_id"], number=4)
    assert len({record["step"]["turn_id"] for record in found}) == 1
    assert [record["step"]["sequence"] for record in found] == [1, 2, 3, 4]


def test_a_stop_holds_until_the_user_says_something(machine: Machine, then: Any) -> None:
    machine.user(says("subagent_start", control="abort", reason="enough"))
    start = {"session_id": "s", "agent_id": "a", "agent_type": "x"}
    told(then(True), "codex", "SubagentStart", start)
    daemon = then()
    assert why(told(daemon, "codex", "PreToolUse", shell("ls"))) == "[says-subagent_start] enough"
    told(daemon, "codex", "UserPromptSubmit", {"session_id": "s", "prompt": "go on"})
    assert why(told(daemon, "codex", "PreToolUse", shell("ls"))) is None


def test_context_waits_for_an_event_that_takes_it(machine: Machine, then: Any) -> None:
    machine.user(says("before_tool", additional_context=["mind this"]))
    payload = captured("gemini", "BeforeTool")
    assert told(then(True), "gemini", "BeforeTool", payload) == {}
    daemon = then()
    replies = [told(daemon, "gemini", "AfterTool", captured("gemini", "AfterTool")) for _ in range(2)]
    expected = {"hookEventName": "AfterTool", "additionalContext": "[says-before_tool] mind this"}
    assert replies == [{"hookSpecificOutput": expected}, {}]


def test_a_turn_is_kept_alive_three_times_in_all(machine: Machine, then: Any) -> None:
    machine.user(says("before_turn_end", control="extend", reason="go on"))
    end = {"session_id": "s", "stop_hook_active": False}
    replies = [told(then(True), "codex", "Stop", end) for _ in range(2)]
    daemon = then()
    replies += [told(daemon, "codex", "Stop", end) for _ in range(2)]
    assert [reply != {} for reply in replies] == [True, True, True, False]


def test_a_payload_that_makes_no_sense_does_not_cost_a_session_its_memory(machine: Machine) -> None:
    daemon = machine.start()
    payload = captured("gemini", "BeforeTool")
    told(daemon, "gemini", "BeforeTool", payload)
    for broken in (payload | {"tool_name": None}, payload | {"tool_name": 7}, payload | {"tool_input": [[]]}):
        assert hook(daemon, "gemini", "BeforeTool", broken).status in (200, 400)
    assert daemon.end() == 0
    daemon = machine.start()
    told(daemon, "gemini", "AfterTool", captured("gemini", "AfterTool"))
    found = [one["step"] for one in records(daemon, payload["session_id"], number=2)]
    ids = {step["call_id"] for step in found if step.get("args") == payload["tool_input"]}
    assert len(ids) == 1
    assert "begins anew" not in (machine.folder / "daemon.err").read_text()


def test_two_sessions_of_the_same_name_in_two_hosts_share_no_turn(daemon: Daemon, lax: Path) -> None:
    """Ids are the CLIs' own, and nothing keeps two of them from using one."""
    told(daemon, "gemini", "BeforeAgent", {"session_id": "same", "prompt": "hi"}, lax)
    told(daemon, "droid", "PreToolUse", shell("ls", "same"), lax)
    assert newest(daemon, "same")["step"]["host"] == "droid"


# --- asking a human ----------------------------------------------------------------------------


def test_claude_code_asks_its_user(daemon: Daemon, lax: Path, session: str) -> None:
    attended = {"CLAUDE_CODE_ENTRYPOINT": "cli"}
    reply = told(daemon, "claude_code", "PreToolUse", shell("careful", session), lax, told=attended)
    assert reply["hookSpecificOutput"] == {
        "hookEventName": "PreToolUse", "permissionDecision": "ask", "permissionDecisionReason": "[may] may it?",
    }  # fmt: skip
    assert pending(daemon, session) == []


def test_claude_code_that_says_that_no_user_is_there_is_not_asked_whatever_its_entry_point(
    daemon: Daemon, lax: Path, session: str
) -> None:
    cli_env = {"CLAUDE_CODE_ENTRYPOINT": "claude-vscode", "CLAUDE_CODE_SESSION_ATTENDED": "0"}
    assert why(told(daemon, "claude_code", "PreToolUse", shell("careful", session), lax, told=cli_env))
    assert len(pending(daemon, session)) == 1


@pytest.mark.parametrize(
    ("folder", "metadata"),
    [("lax", {"entry_point": "remote"}), ("", {"entry_point": "remote", "no_project": "true"})],
)
def test_a_record_names_the_program_of_claude_code_and_that_it_named_no_project(
    daemon: Daemon, lax: Path, session: str, folder: str, metadata: dict[str, str]
) -> None:
    cli_env = {"CLAUDE_CODE_ENTRYPOINT": "remote", "CLAUDE_PROJECT_DIR": str(lax) if folder else ""}
    told(daemon, "claude_code", "PreToolUse", shell("ls", session), lax, told=cli_env)
    assert newest(daemon, session)["step"]["metadata"] == metadata


def test_a_record_of_a_cli_that_names_no_program_has_no_metadata(daemon: Daemon, lax: Path, session: str) -> None:
    told(daemon, "claude_code", "PreToolUse", shell("ls", session), lax)
    assert newest(daemon, session)["step"].get("metadata") is None


@pytest.mark.parametrize("entrypoint", ["sdk-cli", "sdk-py", "", "CLI"])
def test_claude_code_without_a_user_is_refused_and_the_question_is_open(
    daemon: Daemon, lax: Path, session: str, entrypoint: str
) -> None:
    headless = {"CLAUDE_CODE_ENTRYPOINT": entrypoint}
    reply = told(daemon, "claude_code", "PreToolUse", shell("careful", session), lax, told=headless)
    (question,) = pending(daemon, session)
    assert f"approval {question['id']} pending" in str(why(reply))


def pending(daemon: Daemon, session: str) -> list[dict[str, Any]]:
    return [one for one in daemon.ask("GET", "/v1/approvals").body["approvals"] if one["session"] == session]


def approve(daemon: Daemon, name: str) -> None:
    assert daemon.ask("POST", f"/v1/approvals/{name}", {"approve": True}).status == 200


@pytest.mark.parametrize("host", ["claude_code", "codex", "droid"])
def test_a_late_approval_lets_the_identical_call_run_once(daemon: Daemon, lax: Path, session: str, host: str) -> None:
    assert why(told(daemon, host, "PreToolUse", shell("careful", session), lax))
    (question,) = pending(daemon, session)
    approve(daemon, question["id"])
    again = shell("careful", session, tool_use_id="2", turn_id="another")
    assert why(told(daemon, host, "PreToolUse", shell("careful!", session), lax))
    assert why(told(daemon, host, "PreToolUse", again, lax)) is None
    assert why(told(daemon, host, "PreToolUse", again, lax))


def test_an_approval_in_time_is_the_answer(daemon: Daemon, lax: Path, session: str) -> None:
    replies: list[Any] = []

    def ask_and_wait() -> None:
        replies.append(told(daemon, "codex", "PreToolUse", shell("careful", session), lax, deadline=30.0))

    waiting = threading.Thread(target=ask_and_wait)
    waiting.start()
    (question,) = wait_until(lambda: pending(daemon, session))
    approve(daemon, question["id"])
    waiting.join()
    assert replies == [{}]


def test_a_question_where_claude_code_asks_for_permission_has_somewhere_to_be_answered(
    daemon: Daemon, lax: Path, session: str
) -> None:
    """It is left to Claude Code, which is about to ask anyway, or it is open here: never refused for good."""
    attended = {"CLAUDE_CODE_ENTRYPOINT": "cli"}
    reply = told(daemon, "claude_code", "PermissionRequest", shell("careful", session), lax, told=attended)
    assert reply == {} or pending(daemon, session)


# --- variables ----------------------------------------------------------------------------------

TELLS = """
[[hook]]
name = "tells"
on = ["before_tool", "before_permission"]
command = ["/bin/sh", "-c", 'printf "%s" "$DEPLOY_TARGET" >&2; exit 2']
env = ["DEPLOY_TARGET"]
match = { tool = "Bash" }
"""


def test_variables_that_hooks_name_are_asked_for_and_then_seen(machine: Machine) -> None:
    root = machine.project("p", TELLS)
    daemon = machine.start()
    answer = hook(daemon, "codex", "PreToolUse", shell("ls"), root)
    assert (answer.status, answer.body["variables"]) == (428, ["DEPLOY_TARGET"])
    reply = told(daemon, "codex", "PreToolUse", shell("ls"), root, env={"DEPLOY_TARGET": "moon"})
    assert why(reply) == "[tells] moon"


def test_the_launcher_brings_the_variables_that_it_is_asked_for(machine: Machine) -> None:
    here = Launched(machine)
    here.policy(TELLS, here.project)
    ended = here.call("codex", "PreToolUse", shell("ls"), DEPLOY_TARGET="the moon")
    assert why(ended.reply) == "[tells] the moon"


def test_being_asked_for_variables_leaves_nothing_behind(machine: Machine) -> None:
    """What is said again is one call, and not two."""
    root = machine.project("p", TELLS)
    daemon = machine.start()
    session = captured("copilot", "preToolUse")["sessionId"]
    for event in ("preToolUse", "permissionRequest", "postToolUse"):
        payload = captured("copilot", event)
        assert hook(daemon, "copilot", event, payload, root).status == 428
        told(daemon, "copilot", event, payload, root, env={"DEPLOY_TARGET": "moon"})
    found = [record["step"] for record in records(daemon, session, number=3)]
    assert [step["event"] for step in found] == ["before_tool", "before_permission", "after_tool"]
    assert len({step["call_id"] for step in found}) == 1
    assert [step["sequence"] for step in found] == [1, 2, 3]


# --- many ---------------------------------------------------------------------------------------


def test_two_hundred_at_once_each_get_their_own_answer(daemon: Daemon, strict: Path, lax: Path) -> None:
    def one(number: int) -> tuple[bool, bool]:
        folder, command = (strict, lax)[number % 2], ("ls", "touch forbidden")[number // 2 % 2]
        host = ("claude_code", "codex", "droid")[number % 3]
        reply = told(daemon, host, "PreToolUse", shell(f"{command} {number}", f"many {number}"), folder)
        return why(reply) is not None, folder == strict and command == "touch forbidden"

    with ThreadPoolExecutor(200) as threads:
        ended = list(threads.map(one, range(200)))
    assert [got for got, _ in ended] == [expected for _, expected in ended]


def test_two_hundred_calls_of_one_session_are_told_apart(daemon: Daemon, lax: Path, session: str) -> None:
    """Gemini gives no ids, and runs calls at once."""
    names = ("BeforeTool", "AfterTool")

    def one(number: int) -> None:
        for event in names:
            payload = captured("gemini", event, session_id=session, tool_input={"command": f"echo {number % 50}"})
            told(daemon, "gemini", event, payload, lax)

    with ThreadPoolExecutor(50) as threads:
        list(threads.map(one, range(100)))
    found = [record["step"] for record in records(daemon, f"{session}&limit=1000", number=200)]
    before, after = (
        sorted((step["call_id"], step["args"]["command"]) for step in found if step["event"] == event)
        for event in ("before_tool", "after_tool")
    )
    assert len({call for call, _ in before}) == 100
    assert before == after
    assert sorted(step["sequence"] for step in found) == list(range(1, 201))
