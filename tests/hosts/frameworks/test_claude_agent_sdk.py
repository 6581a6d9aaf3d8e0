"""What is particular to the Claude Agent SDK: its callbacks, its permissions, and the CLI that it drives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    ToolPermissionContext,
    create_sdk_mcp_server,
    query,
    tool,
)
from driver import Call, Driver, Say, call
from driver_claude_agent_sdk import variables
from scene import Scene, has

from fairlead import Decision, Hooks, UnknownName, allow, change, deny, extend, inject, stop
from fairlead.hosts.clis.probe import model
from fairlead.hosts.frameworks.claude_agent_sdk import BLOCKS, GUARDS, HOST, Fairlead

SHELL = "mcp__bench__shell"
LS = model.ScriptedCall(SHELL, {"command": "ls"})
BASE = {"session_id": "s1", "cwd": "/work", "transcript_path": "/t"}
PAYLOADS: dict[str, dict[str, Any]] = {
    "UserPromptSubmit": {"prompt": "Go."},
    "PreToolUse": {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1"},
    "PermissionRequest": {"tool_name": "Bash", "tool_input": {"command": "ls"}},
    "PostToolUse": {
        "tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "t1", "tool_response": {"stdout": "a"},
    },
    "PostToolUseFailure": {"tool_name": "Bash", "tool_input": {}, "tool_use_id": "t1", "error": "no"},
    "PostToolBatch": {"tool_calls": []},
}  # fmt: skip


async def tell(fairlead: Fairlead, event: str, **more: Any) -> Any:
    """What the SDK would do."""
    payload = {**BASE, "hook_event_name": event, **PAYLOADS.get(event, {}), **more}
    return await fairlead[event][0].hooks[0](payload, payload.get("tool_use_id"), {"signal": None})  # type: ignore[arg-type,typeddict-item]


def refuses(reply: Any) -> bool:
    said = reply.get("hookSpecificOutput", {})
    denied = "deny" in (said.get("permissionDecision"), said.get("decision", {}).get("behavior"))
    return denied or reply.get("decision") == "block" or reply.get("continue") is False


# --- nothing slips through --------------------------------------------------------------------------


@pytest.mark.parametrize("event", sorted(GUARDS))
async def test_whatever_goes_wrong_is_a_refusal(event: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(self: Hooks, step: Any) -> Any:
        raise RuntimeError("out of order")

    monkeypatch.setattr(Hooks, "dispatch", broken)
    hooks = Hooks()
    hooks.add(lambda step: None, on="*")
    assert refuses(await tell(Fairlead(hooks), event))


@pytest.mark.parametrize("event", sorted(GUARDS))
@pytest.mark.parametrize("payload", [None, {}, {"session_id": "s1", "tool_name": 7, "prompt": 7, "tool_calls": 7}])
async def test_what_the_cli_should_not_have_sent_is_refused(event: str, payload: Any) -> None:
    assert refuses(await Fairlead(Hooks())[event][0].hooks[0](payload, None, {"signal": None}))


async def test_after_something_went_wrong_no_tool_runs_until_the_user_speaks() -> None:
    fairlead = Fairlead(Hooks())
    await tell(fairlead, "PreToolUse", tool_name=7)
    assert refuses(await tell(fairlead, "PreToolUse"))
    await tell(fairlead, "UserPromptSubmit", prompt="<task-notification>It is done.</task-notification>")
    assert refuses(await tell(fairlead, "PreToolUse"))
    await tell(fairlead, "UserPromptSubmit")
    assert not refuses(await tell(fairlead, "PreToolUse"))


def test_a_callback_that_is_not_reached_blocks_where_the_sdk_can_be_told_so() -> None:
    for event, (matcher,) in Fairlead(Hooks()).items():
        assert getattr(matcher, "on_failure", None) == (BLOCKS.get("on_failure") if event in GUARDS else None)
        assert (matcher.matcher, len(matcher.hooks)) == (None, 1)


async def test_a_subagent_that_may_not_start_gets_no_tool_to_run(driver: Driver) -> None:
    scene = Scene(driver, "async")
    scene.add(deny("no helpers"), on="subagent_start")
    ls = call("shell", command="ls")
    played = await scene.play(call("helper", message="Help me."), ls, helper=[ls, Say("Helped.")])
    assert scene.ran == []
    assert ("subagent_start", "deny") in scene.reported
    assert any(has(request, "no helpers", "tool") for request in played.sent)


async def test_a_stop_leaves_none_of_several_calls_to_run(driver: Driver) -> None:
    scene = Scene(driver, "async")
    scene.add(stop("enough"), on="before_tool", once=True)
    played = await scene.play(Call([("shell", {"command": name}) for name in "abc"]))
    assert (scene.ran, len(played.sent)) == ([], 1)
    assert "enough" in (played.output or "")
    assert [step.outcome for step in scene.steps("after_tool")] == ["denied"] * 3
    assert scene.events[-3:] == ["turn_end", "after_request", "session_end"]


# --- registration -----------------------------------------------------------------------------------


async def another(payload: Any, call_id: str | None, context: Any) -> Any:
    return {}


@pytest.mark.parametrize("place", ["after", "before", "options"])
def test_other_hooks_stand_beside_ours(place: str) -> None:
    others: Any = {"PreToolUse": [HookMatcher(hooks=[another])], "SessionEnd": [HookMatcher(hooks=[another])]}
    fairlead = Fairlead(Hooks())
    if place == "options":
        merged: Any = fairlead.options(ClaudeAgentOptions(hooks=others)).hooks
    else:
        merged = fairlead | others if place == "after" else others | fairlead
    assert sorted(merged) == sorted({*HOST.events, "SessionEnd"})
    assert {hook for matcher in merged["PreToolUse"] for hook in matcher.hooks} == {
        another, fairlead["PreToolUse"][0].hooks[0],
    }  # fmt: skip


def test_options_are_otherwise_as_they_were() -> None:
    given = ClaudeAgentOptions(model="m", max_turns=3)
    made = Fairlead(Hooks()).options(given)
    assert (made.model, made.max_turns, made.can_use_tool, given.hooks) == ("m", 3, None, None)


# --- permissions ------------------------------------------------------------------------------------


async def permit(hooks: Hooks, answer: Any = None) -> tuple[Any, list[str]]:
    """A call for which the CLI wants a permission: what it is told, and who was asked."""
    asked: list[str] = []

    async def ask(name: str, args: Any, context: Any) -> Any:
        asked.append(name)
        if isinstance(answer, Exception):
            raise answer
        return answer or PermissionResultAllow()

    fairlead = Fairlead(hooks)
    options = fairlead.options(ClaudeAgentOptions(can_use_tool=ask))
    assert options.hooks is not None
    assert options.hooks["PermissionRequest"] == []  # it is told of by the callback, once
    assert options.can_use_tool is not None
    await tell(fairlead, "UserPromptSubmit")
    await tell(fairlead, "PreToolUse")
    told = await options.can_use_tool("Bash", {"command": "ls"}, ToolPermissionContext(tool_use_id="t1"))
    await fairlead.aclose()
    return told, asked


async def test_a_callback_is_asked_only_after_hooks_had_their_say() -> None:
    hooks = Hooks()
    hooks.add(lambda step: deny("not that"), on="before_permission", name="judge")
    told, asked = await permit(hooks)
    assert isinstance(told, PermissionResultDeny)
    assert ("not that" in told.message, asked) == (True, [])


async def test_a_hook_can_grant_what_the_callback_would_be_asked_for() -> None:
    hooks = Hooks()
    hooks.add(lambda step: allow(), on="before_permission")
    assert await permit(hooks, PermissionResultDeny(message="no")) == (PermissionResultAllow(), [])


@pytest.mark.parametrize("granted", [True, False])
async def test_what_the_callback_answers_is_told_of(granted: bool) -> None:
    seen: list[Any] = []
    hooks = Hooks()
    hooks.add(lambda step: seen.append((step.proposed, step.call_id)), on="before_permission", name="before")
    hooks.add(lambda step: seen.append((step.granted, step.call_id)), on="after_permission", name="after")
    answer = PermissionResultAllow() if granted else PermissionResultDeny(message="no")
    assert await permit(hooks, answer) == (answer, ["Bash"])
    assert seen == [("ask", "t1"), (granted, "t1")]


async def test_a_callback_that_raises_grants_nothing() -> None:
    told, asked = await permit(Hooks(), RuntimeError("no terminal"))
    assert isinstance(told, PermissionResultDeny)
    assert ("no terminal" in told.message, asked) == (True, ["Bash"])


async def test_a_permission_for_an_unknown_call_is_not_given() -> None:
    async def ask(name: str, args: Any, context: Any) -> Any:
        return PermissionResultAllow()

    options = Fairlead(Hooks()).options(ClaudeAgentOptions(can_use_tool=ask))
    assert options.can_use_tool is not None
    told = await options.can_use_tool("Bash", {}, ToolPermissionContext(tool_use_id="t9"))
    assert isinstance(told, PermissionResultDeny)


# --- sessions ---------------------------------------------------------------------------------------


async def test_two_sessions_of_one_fairlead_do_not_mix() -> None:
    decisions: list[Decision[Any]] = []
    fairlead = Fairlead(Hooks(journal=decisions.append), user_id="alice")
    async with fairlead:
        for session in ("s1", "s2"):
            await tell(fairlead, "UserPromptSubmit", session_id=session)
        for session in ("s1", "s2"):
            await tell(fairlead, "PreToolUse", session_id=session)
    requests = {(d.step.session_id, d.step.request_id) for d in decisions if d.event == "before_tool"}
    assert {session for session, _ in requests} == {"s1", "s2"}
    assert len({request for _, request in requests}) == 2
    assert {d.step.user_id for d in decisions} == {"alice"}
    assert [d.event for d in decisions].count("session_end") == 2


def test_sessions_can_be_ended_where_nothing_can_be_awaited() -> None:
    import asyncio

    decisions: list[Decision[Any]] = []
    fairlead = Fairlead(Hooks(journal=decisions.append))
    asyncio.run(tell(fairlead, "UserPromptSubmit"))
    fairlead.close()
    assert [d.event for d in decisions][-3:] == ["turn_end", "after_request", "session_end"]


async def test_a_request_that_was_interrupted_is_over_when_the_next_begins() -> None:
    decisions: list[Decision[Any]] = []
    fairlead = Fairlead(Hooks(journal=decisions.append))
    await tell(fairlead, "UserPromptSubmit")
    await tell(fairlead, "UserPromptSubmit", prompt="Again.")
    events = [d.event for d in decisions]
    assert events == [
        "session_start", "before_request", "before_input", "turn_start", "turn_end", "after_request",
        "before_request", "before_input", "turn_start",
    ]  # fmt: skip


# --- the CLI itself ---------------------------------------------------------------------------------


async def run(
    folder: Path, hooks: Any, *script: model.ScriptedTurn, **more: Any
) -> tuple[ResultMessage, model.Model, list[str]]:
    """One query, with the CLI that comes with the SDK."""
    ran: list[str] = []

    @tool("shell", "Run a command.", {"command": str})
    async def shell(args: dict[str, Any]) -> dict[str, Any]:
        ran.append(args["command"])
        return {"content": [{"type": "text", "text": f"ran {args['command']}"}]}

    with model.Model(*script) as scripted:
        options = ClaudeAgentOptions(**{
            "env": variables(scripted.url, str(folder)), "cwd": folder, "setting_sources": [], "model": "first",
            "mcp_servers": {"bench": create_sdk_mcp_server("bench", tools=[shell])}, "allowed_tools": [SHELL, "Bash"],
            "tools": ["Bash"], "hooks": hooks, **more,
        })  # fmt: skip
        messages = [message async for message in query(prompt="Go.", options=options)]
    (result,) = [message for message in messages if isinstance(message, ResultMessage)]
    return result, scripted, ran


async def test_one_line_is_all_it_takes(tmp_path: Path) -> None:
    decisions: list[Decision[Any]] = []
    hooks = Hooks(journal=decisions.append)
    hooks.add(lambda step: deny("no ls here"), on="before_tool", tool=SHELL, name="judge")
    async with Fairlead(hooks) as fairlead:
        result, scripted, ran = await run(tmp_path, fairlead, LS)
    assert (result.result, ran) == ("DONE", [])
    assert scripted.received("[judge] no ls here")
    assert {d.step.session_id for d in decisions} == {result.session_id}
    assert [d.event for d in decisions] == [
        "session_start", "before_request", "before_input", "turn_start", "before_tool", "after_tool",
        "after_tool_batch", "before_turn_end", "turn_end", "after_request", "session_end",
    ]  # fmt: skip


async def test_the_cli_s_own_tools_are_judged_changed_and_redacted(tmp_path: Path) -> None:
    hooks = Hooks()
    hooks.add(lambda step: change(command="echo hunter2; echo two"), on="before_tool", kind="shell", name="changes")
    hooks.add(
        lambda step: change(output=step.output["stdout"].replace("hunter2", "***")), on="after_tool", kind="shell",
        name="redacts",
    )  # fmt: skip
    bash = model.ScriptedCall("Bash", {"command": "echo one", "description": "Say one"})
    _, scripted, _ = await run(tmp_path, Fairlead(hooks), bash)
    assert scripted.received("***\\ntwo")
    assert not scripted.received("hunter2")
    assert scripted.received("echo one")  # which is what the model has asked for


async def test_a_callback_of_another_s_that_allows_does_not_outvote_a_deny(tmp_path: Path) -> None:
    async def allows(payload: Any, call_id: str | None, context: Any) -> Any:
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}

    hooks = Hooks()
    hooks.add(lambda step: deny("no"), on="before_tool")
    merged = {"PreToolUse": [HookMatcher(hooks=[allows])]} | Fairlead(hooks)
    _, _, ran = await run(tmp_path, merged, LS)
    assert ran == []


async def test_a_question_without_an_approver_is_a_refusal_even_if_all_permissions_are_bypassed(tmp_path: Path) -> None:
    from fairlead import ask

    hooks = Hooks()
    hooks.add(lambda step: ask("May it?"), on="before_tool", name="judge")
    _, scripted, ran = await run(tmp_path, Fairlead(hooks), LS, permission_mode="bypassPermissions")
    assert ran == []
    assert scripted.received("[judge] May it?")


async def test_why_a_turn_was_ended_can_be_told(tmp_path: Path) -> None:
    hooks = Hooks()
    hooks.add(lambda step: stop("enough"), on="after_tool", name="judge")
    fairlead = Fairlead(hooks)
    result, scripted, ran = await run(tmp_path, fairlead, LS, LS)
    assert (len(ran), len(scripted.requests)) == (1, 1)
    assert fairlead.why(result.session_id) == "[judge] enough"
    await fairlead.aclose()


async def test_a_turn_is_extended_and_context_is_read(tmp_path: Path) -> None:
    hooks = Hooks()
    hooks.add(lambda step: inject("You are on main."), on="session_start", name="place")
    hooks.add(lambda step: extend("Not yet.") if not step.continues_so_far else None, on="before_turn_end", name="more")
    result, scripted, _ = await run(tmp_path, Fairlead(hooks), model.Say("One."), model.Say("Two."))
    assert (result.result, len(scripted.requests)) == ("Two.", 2)
    assert "You are on main." in scripted.requests[0].text
    assert "Not yet." in scripted.requests[1].text


@pytest.mark.parametrize("keyword", ["owns", "agnet"])
def test_a_misspelt_keyword_is_an_error_that_suggests_the_right_one(keyword: str) -> None:
    with pytest.raises(UnknownName, match=f"unknown keyword '{keyword}' of Fairlead"):
        Fairlead(Hooks(), **{keyword: ["repo"]})


def test_the_name_of_one_server_is_not_taken_for_many() -> None:
    with pytest.raises(TypeError, match=r"own=\['repo'\]"):
        Fairlead(Hooks(), own="repo")


@pytest.mark.skipif("on_failure" not in HookMatcher.__dataclass_fields__, reason="since 0.2.177")
def test_a_callback_that_cannot_be_reached_blocks_wherever_hooks_can_refuse() -> None:
    fairlead = Fairlead(Hooks())
    blocking = {name for name, matchers in fairlead.items() if matchers[0].on_failure == "block"}
    assert {"PreToolUse", "PermissionRequest", "UserPromptSubmit", "PostToolUse"} <= blocking
