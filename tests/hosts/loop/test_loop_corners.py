"""Corners of the reference loop in which something was lost once: context, results, sessions, processes."""

from __future__ import annotations

import asyncio
import os
import traceback
from typing import Any

import pytest
from left_running import left_running
from pydantic_ai.exceptions import ModelHTTPError

from fairlead import Hooks, abort, change, current_session, deny, extend, inject, skip, stop
from fairlead.hosts.loop.agent import Agent
from fairlead.hosts.loop.model import ModelFailed
from fairlead.hosts.loop.tools import Tool, ToolError, Workspace
from fairlead.hosts.loop.trace import lines_of
from fairlead.testing import Recorder

LOOK = ("Looking.", [("look", {"at": "a"})])
TOUCH = ("Touching.", [("touch", {"at": "b"})])


async def test_the_text_of_a_stream_comes_once(scene):
    played = scene("One two three.", streaming=True)
    async with played.agent:
        text = [moment.text async for moment in played.agent.stream("Go.") if moment.text is not None]
    assert text == ["One ", "two ", "three. "]


async def test_context_at_after_request_waits_for_the_next_turn(scene):
    played = scene()
    played.add(inject("by the way"), on="after_request")
    await played.play("Go.", "Again.")
    assert played.sent[1][-1] == "user: [judge] by the way"


async def test_context_with_a_stop_waits_for_the_next_turn(scene):
    played = scene()
    played.add(stop("enough", context="by the way"), on="before_model")
    await played.play("Go.", "Again.")
    assert played.sent[0][-1] == "user: [judge] by the way"


async def test_context_with_a_skipped_compaction_reaches_the_model(scene):
    played = scene(token_budget=1)
    played.add(skip(context="by the way"), on="before_compact")
    await played.play()
    assert played.sent[0][-1] == "user: [judge] by the way"


async def test_context_at_before_model_is_sent_along_with_changed_messages(scene):
    played = scene()
    played.add(change(messages=[{"role": "user", "content": "Sit."}]), on="before_model", name="trims")
    played.add(inject("by the way"), on="before_model")
    await played.play()
    assert played.sent[0] == ["system: Be brief.", "user: Sit.", "user: [judge] by the way"]


async def test_context_at_the_last_after_model_is_read_by_an_extended_turn(scene):
    played = scene()
    played.add(inject("by the way"), on="after_model")
    played.add(extend("go on"), on="before_turn_end", name="extends")
    await played.play()
    assert "user: [judge] by the way" in played.sent[1]


async def test_changes_at_after_request_hold_when_the_request_failed(scene):
    played = scene(RuntimeError("down"))
    played.add(change(checkpoint_id="c-1"), on="after_request")
    with pytest.raises(Exception, match="down"):
        await played.agent.run("Go.")
    assert played.agent.session.checkpoint_id == "c-1"


async def test_an_abort_in_a_subagent_fails_the_request(scene):
    played = scene(("", [("helper", {"message": "Help."})]))
    played.add(lambda step: abort("no") if step.agent.name == "helper" else None, on="before_model")
    await played.play()
    assert str(played.error) == "[judge:hook_abort] no"


async def test_the_session_ends_when_a_hook_aborts_its_start(scene):
    played = scene()
    played.add(abort("closed"), on="session_start")
    with pytest.raises(Exception, match="closed"):
        async with played.agent:
            pass
    assert played.events == ["session_start", "session_end"]


async def test_the_session_ends_though_a_hook_aborts_at_a_background_error(scene):
    async def work():
        raise RuntimeError("lost")

    played = scene()
    played.add(lambda step: current_session().spawn(work()), on="turn_end", name="spawns")
    played.add(abort("no"), on="error")
    await played.play()
    assert played.events[-2:] == ["error", "session_end"]


async def test_after_request_is_seen_through_when_it_is_cancelled(scene):
    played, reached = scene(), asyncio.Event()

    async def slow(step):
        reached.set()
        await asyncio.sleep(0.01)

    played.add(slow, on="after_request")
    work = asyncio.create_task(played.agent.run("Go."))
    await reached.wait()
    work.cancel()
    await asyncio.wait([work])
    assert (work.cancelled(), played.events.count("after_request")) == (True, 1)


@pytest.mark.parametrize("event", ["before_tool", "before_permission"])
async def test_a_stop_asks_no_human_about_a_call_that_will_not_run(event, scene):
    played = scene(TOUCH, policy="ask-writes")
    played.add(stop("enough"), on=event)
    await played.play()
    assert (played.asked, played.ran) == ([], [])


async def test_a_stop_at_before_tool_fires_no_permission_events(scene):
    played = scene(LOOK)
    played.add(stop("enough"), on="before_tool")
    await played.play()
    assert not {"before_permission", "after_permission"} & set(played.events)


@pytest.mark.parametrize("event", ["before_tool", "after_tool", "before_permission", "tool_requested"])
async def test_an_abort_leaves_no_call_without_a_result_in_the_conversation(event, scene):
    played = scene(("", [("look", {"at": "a"}), ("touch", {"at": "b"})]))
    played.add(abort("no"), on=event)
    with pytest.raises(Exception, match="hook_abort"):
        await played.agent.run("Go.")
    await played.agent.run("Again.")
    kinds = [part.split(":")[0] for part in played.sent[1]]
    assert sum(kind in ("result", "error") for kind in kinds) == kinds.count("call") == 2


async def test_a_cancellation_leaves_no_call_without_a_result_in_the_conversation(scripted):
    started = asyncio.Event()

    async def wait(args):
        started.set()
        await asyncio.Event().wait()

    model = scripted(("", [("wait", {})]))
    async with Agent(model.model, [Tool("wait", "", {}, wait, "read", "read_only")]) as agent:
        work = asyncio.create_task(agent.run("Go."))
        await started.wait()
        work.cancel()
        await asyncio.wait([work])
        await agent.run("Again.")
    assert [part.split(":")[0] for part in model.sent[1]] == ["user", "call", "error", "user"]


async def test_the_parent_s_hooks_apply_to_the_subagent_of_a_subagent(scripted):
    ran: list[str] = []

    async def touch(args):
        ran.append("touch")

    hooks = Hooks()
    seen = Recorder(hooks)
    hooks.add(lambda step: deny("no") if step.tool == "touch" else None, on="before_tool", name="judge")
    leaf = Agent(scripted(("", [("touch", {})])).model, [Tool("touch", "", {}, touch)], policy="open")
    middle = Agent(scripted(("", [("leaf", {"message": "Do it."})])).model, subagents={"leaf": leaf}, policy="open")
    top = scripted(("", [("middle", {"message": "Get it done."})]))
    async with Agent(top.model, hooks=hooks, subagents={"middle": middle}, policy="open") as agent:
        await agent.run("Go.")
    assert (ran, [step.agent_name for step in seen.steps if step.event == "subagent_start"]) == ([], ["middle", "leaf"])


async def test_the_compaction_at_hand_does_not_forget_what_a_long_turn_is_about(scripted):
    async def look(args):
        return "x" * 400

    model = scripted(*[("", [("look", {})])] * 4)
    tools = [Tool("look", "", {}, look, "read", "read_only")]
    async with Agent(model.model, tools, token_budget=200) as agent:
        await agent.run("Find the bug.")
    assert all("user: Find the bug." in parts for parts in model.sent)


async def test_the_compaction_at_hand_leaves_a_conversation_alone_that_it_cannot_make_smaller(scripted):
    model = scripted()
    async with Agent(model.model, token_budget=1) as agent:
        await agent.run("Hello.")
    assert model.sent == [["user: Hello."]]


async def test_a_step_after_a_turn_that_was_stopped_at_its_input_has_no_turn_id(scene):
    played = scene()
    played.add(stop("enough"), on="after_input")
    await played.play()
    assert [step.turn_id for step in played.steps("after_request")] == [None]


async def test_a_skipped_notification_is_not_shown(scene):
    played = scene()
    played.add(skip(), on="notification")
    await played.agent.notify("half way")
    assert "half way" not in "\n".join(lines_of(played.seen.of("notification")[0]))


async def test_breaking_out_of_a_stream_ends_the_request_before_the_session(scene):
    played = scene(LOOK)
    async with played.agent:
        async for moment in played.agent.stream("Go."):
            if moment.event == "before_model":
                break
    assert played.events[-3:] == ["error", "after_request", "session_end"]


# --- the shell tool -------------------------------------------------------------------------------


async def test_a_time_out_also_kills_what_the_shell_left_in_the_background(tmp_path):
    mark = f"sleep 33.{os.getpid():07}"
    with pytest.raises(ToolError, match="did not end within"):
        await Workspace(tmp_path, timeout=0.2).shell(f"{mark} & echo started")
    assert left_running(mark) == []


async def test_output_beyond_the_limit_is_not_kept_in_memory(tmp_path):
    import tracemalloc

    tracemalloc.start()
    try:
        text = await Workspace(tmp_path).shell("head -c 20000000 /dev/zero")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (text.endswith("[cut]"), peak < 5_000_000) == (True, True)


async def test_a_shell_cancelled_while_it_starts_leaves_nothing_behind(tmp_path):
    mark = f"sleep 34.{os.getpid():07}"
    workspace: Any = Workspace(tmp_path)
    for turns in range(1, 12):
        work = asyncio.create_task(workspace.shell(f"{mark}; true"))
        for _ in range(turns):
            await asyncio.sleep(0)
        work.cancel()
        await asyncio.wait([work])
    assert left_running(mark) == []


# --- what a failure tells -------------------------------------------------------------------------


async def test_a_key_that_the_server_repeats_is_not_told(scripted):
    key = "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c"
    body = {"error": {"message": f"Incorrect API key provided: {key}."}}
    model = scripted(ModelHTTPError(401, "tiny", body))
    with pytest.raises(ModelFailed) as caught:
        async with Agent(model.model) as agent:
            await agent.run("Hi.")
    assert key not in "".join(traceback.format_exception(caught.value))


async def test_a_model_is_named_as_the_user_knows_it(scripted):
    model = scripted(RuntimeError("down"), name="tiny")
    with pytest.raises(ModelFailed, match=r"^the model tiny failed: down$"):
        async with Agent(model.model) as agent:
            await agent.run("Hi.")


async def test_a_session_that_may_not_start_cannot_be_tried_again(scene):
    played = scene()
    played.add(abort("closed"), on="session_start")
    with pytest.raises(Exception, match="hook_abort"):
        await played.agent.run("Go.")
    with pytest.raises(Exception, match="has ended"):
        await played.agent.run("Go.")
    assert played.events == ["session_start", "session_end"]


async def test_a_subagent_with_hooks_of_its_own_is_refused(scripted):
    own = Hooks()
    own.add(lambda step: None, on="before_tool", name="own")
    with pytest.raises(Exception, match="under its parent's"):
        Agent(scripted().model, subagents={"helper": Agent(scripted().model, hooks=own)})


async def test_a_stop_keeps_calls_from_running_that_were_judged_before_it(scene):
    played = scene(("", [("look", {"at": "a"}), ("touch", {"at": "b"})]))
    played.add(lambda step: stop("enough") if step.tool == "touch" else None, on="before_tool")
    await played.play()
    assert played.ran == []


async def test_a_tool_that_changes_its_arguments_changes_only_its_own(scripted):
    async def greedy(args):
        args.clear()
        return "done"

    hooks = Hooks()
    seen = Recorder(hooks)
    model = scripted(("", [("greedy", {"at": "a"})]))
    async with Agent(model.model, [Tool("greedy", "", {}, greedy, "read", "read_only")], hooks) as agent:
        await agent.run("Go.")
    assert [step.args for step in seen.steps if step.event == "after_tool"] == [{"at": "a"}]


async def test_compaction_takes_no_hook_for_the_user(scripted):
    async def look(args):
        return "x" * 400

    hooks = Hooks()
    hooks.add(lambda step: inject("mind the gap"), on="after_tool", name="notes")
    model = scripted(*[("", [("look", {})])] * 4)
    tools = [Tool("look", "", {}, look, "read", "read_only")]
    async with Agent(model.model, tools, hooks, token_budget=200) as agent:
        await agent.run("Find the bug.")
    assert all("user: Find the bug." in parts for parts in model.sent)


async def test_a_turn_that_failed_does_not_say_that_it_ended_well(scene):
    played = scene(RuntimeError("down"))
    with pytest.raises(Exception, match="down"):
        await played.agent.run("Go.")
    assert [step.stop_reason for step in played.steps("turn_end")] == ["error"]


@pytest.mark.parametrize(
    ("event", "verdict"),
    [
        ("before_input", deny("no")),
        ("before_model", stop("no")),
        ("before_response", deny("no")),
        ("before_output", deny()),
    ],
)
async def test_a_result_says_that_a_hook_had_its_way(event, verdict, scene):
    played = scene()
    played.add(verdict, on=event)
    await played.play()
    assert played.result.by_hook


@pytest.mark.parametrize("event", ["before_tool", "before_permission", "after_permission"])
async def test_a_call_that_was_requested_has_an_end_even_if_the_request_fails(event, scene):
    played = scene(LOOK)
    played.add(abort("no"), on=event)
    with pytest.raises(Exception, match="hook_abort"):
        await played.agent.run("Go.")
    assert [step.outcome for step in played.steps("after_tool")] == ["aborted"]


async def test_context_of_a_call_stays_beside_its_result_if_the_turn_ends_there(scene):
    """An agent that resumes from `messages` has it, and the next input comes after it."""
    played = scene(LOOK, max_requests=1)
    played.add(inject("remember the look"), "after_tool")
    await played.play("Go.", "On.")
    told = [m["content"] for m in played.agent.messages if m["role"] in ("user", "tool")]
    assert told == ["Go.", "look: a (1)", "[judge] remember the look", "On."]


async def test_a_refusal_of_the_last_request_stays_before_the_next_input(scene):
    played = scene("One.", max_requests=1)
    played.add(deny("not like this"), "after_model")
    await played.play("Go.", "On.")
    told = [m["content"] for m in played.agent.messages if m["role"] == "user"]
    assert told == ["Go.", "[judge] not like this", "On."]


async def test_an_agent_in_the_session_of_a_subagent_has_no_session_events_of_its_own(scene):
    played = scene("One.")
    parent = played.hooks.session("parent")
    played.agent = Agent(played.model.model, [], played.hooks, session=parent.subagent("scout"))
    await played.play()
    assert {"session_start", "session_end"}.isdisjoint(played.events)
    assert played.steps("turn_start")[0].is_subagent


async def test_every_call_has_a_result_if_the_request_is_cancelled_twice(scene):
    played = scene(("", [("helper", {"message": "Help."}), ("touch", {"at": "a"}), ("look", {"at": "b"})]))

    async def cancel_again(step: Any) -> None:
        work.cancel()
        await asyncio.sleep(0.01)

    played.hooks.add(cancel_again, on="after_tool", name="again")
    work = asyncio.ensure_future(played.agent.run("Go."))
    with pytest.raises(asyncio.CancelledError):
        await work
    results = [m["call_id"] for m in played.agent.messages if m["role"] == "tool"]
    assert results == ["call-1", "call-2", "call-3"]
    await played.agent.close()
