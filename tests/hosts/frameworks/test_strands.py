"""What is particular to Strands: interrupts, its own hooks side by side, direct calls, swarms and graphs."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any

import boundary
import pytest
from boundary import Boundary
from driver import Call, Played, Say, Workbench, call
from driver_strands import Driver, Scripted, helper_tool
from pydantic import BaseModel
from strands import Agent, ToolContext, tool
from strands.hooks import (
    AfterInvocationEvent,
    AfterModelCallEvent,
    AfterToolCallEvent,
    BeforeInvocationEvent,
    BeforeModelCallEvent,
    BeforeToolCallEvent,
)
from strands.models import Model
from strands.multiagent import GraphBuilder, Swarm
from strands.plugins import Plugin
from strands.session.file_session_manager import FileSessionManager
from strands.types.exceptions import ModelThrottledException

from fairlead import Decision, HookAborted, Hooks, Unenforceable, abort, ask, change, deny, extend, inject, stop
from fairlead.errors import FairleadError, UnknownName
from fairlead.hosts.frameworks.strands import Fairlead

LS = call("shell", command="ls")
has_as_tool = pytest.mark.skipif(not hasattr(Agent, "as_tool"), reason="agents are tools since 1.34")


class Stage:
    """Hooks whose decisions are kept, an adapter, and agents that run under it."""

    def __init__(self) -> None:
        self.decisions: list[Decision[Any]] = []
        self.hooks = Hooks(journal=self.decisions.append)
        self.bench, self.played = Workbench(), Played()
        self.fairlead = Fairlead(self.hooks)

    def agent(self, *script: Say | Call | Exception, **options: Any) -> Agent:
        options = {"callback_handler": None, "hooks": [self.fairlead], "tools": [], **options}
        options["tools"] = [*map(tool, self.bench.tools), *options["tools"]]
        return Agent(model=Scripted(list(script), self.played, "first"), **options)

    @property
    def events(self) -> list[str]:
        return [decision.event for decision in self.decisions]

    def steps(self, event: str) -> list[Any]:
        return [decision.step for decision in self.decisions if decision.event == event]


@pytest.fixture
def stage() -> Stage:
    return Stage()


def answers(result: Any, *responses: Any) -> list[Any]:
    return [
        {"interruptResponse": {"interruptId": one.id, "response": response}}
        for one, response in zip(result.interrupts, responses, strict=True)
    ]


# --- registering ------------------------------------------------------------------------------------


async def test_an_agent_that_is_there_already_is_taken_over_when_it_works(stage: Stage) -> None:
    stage.hooks.add(lambda step: deny("no"), on="before_tool", name="no")
    agent = stage.agent(LS, hooks=[])
    agent.hooks.add_hook(stage.fairlead)
    result = await agent.invoke_async("Go.")
    assert (stage.bench.ran, str(result)) == ([], "Done.\n")
    assert stage.events.count("before_input") == stage.events.count("before_tool") == 1


def test_a_direct_call_of_an_agent_that_is_there_already_is_judged(stage: Stage) -> None:
    stage.hooks.add(lambda step: deny("no"), on="before_tool", name="no")
    agent = stage.agent(hooks=[])
    agent.hooks.add_hook(stage.fairlead)
    assert agent.tool.shell(command="ls")["status"] == "error"
    assert (stage.bench.ran, stage.events.count("before_tool")) == ([], 1)


async def test_one_adapter_that_is_registered_twice_is_there_once(stage: Stage) -> None:
    agent = stage.agent(LS, hooks=[stage.fairlead, stage.fairlead])
    agent.hooks.add_hook(stage.fairlead)
    await agent.invoke_async("Go.")
    assert [stage.events.count(event) for event in ("before_input", "before_model", "before_tool")] == [1, 2, 1]


async def test_two_adapters_on_one_agent_are_an_error(stage: Stage) -> None:
    with pytest.raises(FairleadError, match="runs under another Fairlead already; register all hooks with one Hooks"):
        stage.agent(LS, hooks=[Fairlead(Hooks()), stage.fairlead])


async def test_two_adapters_with_the_same_hooks_are_one(stage: Stage) -> None:
    stage.hooks.add(lambda step: None, on="before_tool", name="watch")
    await stage.agent(LS, hooks=[Fairlead(stage.hooks), stage.fairlead]).invoke_async("Go.")
    assert len(stage.steps("before_tool")) == 1


@pytest.mark.parametrize("script", [[LS], [LS, RuntimeError("overloaded")]])
async def test_an_agent_has_its_own_model_and_tools_again_afterwards(stage: Stage, script: list[Any]) -> None:
    agent = stage.agent(*script)
    model, shell = agent.model, agent.tool_registry.registry["shell"]
    await asyncio.gather(agent.invoke_async("Go."), return_exceptions=True)
    assert agent.model is model
    assert agent.tool_registry.registry["shell"] is shell


# --- hooks that are not ours --------------------------------------------------------------------------


async def test_a_call_that_another_hook_cancels_is_told_as_denied(stage: Stage) -> None:
    def cancel(event: BeforeToolCallEvent) -> None:
        event.cancel_tool = "the other one says no"

    agent = stage.agent(LS)
    agent.hooks.add_callback(BeforeToolCallEvent, cancel)
    await agent.invoke_async("Go.")
    assert stage.bench.ran == []
    assert [(step.outcome, step.executed) for step in stage.steps("after_tool")] == [("denied", False)]
    assert "tool: the other one says no" in stage.played.sent[1]


async def test_what_another_hook_makes_of_the_arguments_is_what_is_judged(stage: Stage) -> None:
    class Other:
        def register_hooks(self, registry: Any, **_: Any) -> None:
            registry.add_callback(BeforeToolCallEvent, self.rewrite)

        def rewrite(self, event: BeforeToolCallEvent) -> None:
            event.tool_use = {**event.tool_use, "input": {"command": "rm"}}

    stage.hooks.add(lambda step: deny("no rm") if step.target.command == "rm" else None, on="before_tool", name="no")
    agent = stage.agent(LS, hooks=[stage.fairlead, Other()])
    await agent.invoke_async("Go.")
    assert stage.bench.ran == []
    assert stage.steps("before_tool")[0].args == {"command": "rm"}


async def test_a_tool_that_another_hook_selects_is_judged(stage: Stage) -> None:
    @tool(name="shell")
    def worse(command: str) -> str:
        """Run a command."""
        stage.bench.ran.append(("worse", {"command": command}))
        return "ran"

    class Other:
        def register_hooks(self, registry: Any, **_: Any) -> None:
            registry.add_callback(BeforeToolCallEvent, self.select)

        def select(self, event: BeforeToolCallEvent) -> None:
            event.selected_tool = worse

    stage.hooks.add(lambda step: deny("no"), on="before_tool", name="no")
    await stage.agent(LS, hooks=[stage.fairlead, Other()]).invoke_async("Go.")
    assert stage.bench.ran == []


async def test_a_tool_that_a_later_hook_selects_is_judged_or_fails_the_request(stage: Stage, judged: Boundary) -> None:
    @tool
    def worse(command: str) -> str:
        """Run a command."""
        return "ran worse"

    def select(event: BeforeToolCallEvent) -> None:
        event.selected_tool = worse

    agent = stage.agent(LS)
    agent.hooks.add_callback(BeforeToolCallEvent, select)
    if hasattr(agent, "add_middleware"):
        await agent.invoke_async("Go.")
        assert [step.tool for step in stage.steps("before_tool")] == ["worse"]
    else:
        with pytest.raises(Unenforceable, match="bypassing all hooks"):
            await agent.invoke_async("Go.")
        assert judged.ways_around
        assert "fails the request with `Unenforceable`, after it has run" in boundary.not_governed("strands")
        judged.ways_around.clear()


async def test_a_model_that_a_later_hook_puts_in_is_judged_or_fails_the_request(stage: Stage) -> None:
    other = Scripted([], stage.played, "other")

    def put(event: BeforeModelCallEvent) -> None:
        event.agent.model = other

    agent = stage.agent()
    agent.hooks.add_callback(BeforeModelCallEvent, put)
    if hasattr(agent, "add_middleware"):
        await agent.invoke_async("Go.")
        assert [step.model for step in stage.steps("before_model")] == ["other"]
    else:
        with pytest.raises(Unenforceable, match="bypassing all hooks"):
            await agent.invoke_async("Go.")


async def test_an_answer_that_other_code_has_for_a_call_is_judged(stage: Stage) -> None:
    middleware = pytest.importorskip("strands.middleware", reason="since 1.62")

    class Cache(Plugin):  # type: ignore[misc]
        name = "cache"

        def init_agent(self, agent: Any) -> None:
            agent.add_middleware(middleware.ExecuteToolStage, self.answer)

        async def answer(self, context: Any, following: Any) -> AsyncIterator[Any]:
            result = {"toolUseId": context.tool_use["toolUseId"], "status": "success", "content": [{"text": "cached"}]}
            yield middleware.ToolResultEvent(result)

    stage.hooks.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool", name="no")
    await stage.agent(Call([*LS.tools, ("read", {"path": "a"})]), plugins=[Cache()]).invoke_async("Go.")
    assert stage.bench.ran == []
    assert "tool: cached" in stage.played.sent[1]
    assert "tool: Hook blocked tool 'shell': no" in stage.played.sent[1]
    assert sorted(step.outcome for step in stage.steps("after_tool")) == ["denied", "ok"]


async def test_a_call_that_another_hook_has_run_again_is_judged_again(stage: Stage) -> None:
    def again(event: AfterToolCallEvent) -> None:
        event.retry = len(stage.bench.ran) < 2

    agent = stage.agent(LS)
    agent.hooks.add_callback(AfterToolCallEvent, again)
    await agent.invoke_async("Go.")
    assert (len(stage.bench.ran), stage.events.count("before_tool")) == (2, 2)


async def test_a_reply_that_another_hook_has_given_again_is_a_turn_of_its_own(stage: Stage) -> None:
    def again(event: AfterModelCallEvent) -> None:
        event.retry = len(stage.played.sent) < 2

    stage.hooks.add(lambda step: change(response=f"{step.response}!"), on="before_response", name="loud")
    agent = stage.agent(Say("One."), Say("Two."))
    agent.hooks.add_callback(AfterModelCallEvent, again)
    assert str(await agent.invoke_async("Go.")) == "Two.!\n"
    assert [stage.events.count(event) for event in ("before_input", "turn_end", "after_request")] == [2, 2, 2]


async def test_a_turn_that_another_hook_resumes_is_another_request(stage: Stage) -> None:
    def resume(event: AfterInvocationEvent) -> None:
        if len(stage.played.sent) < 2:
            event.resume = "And now?"

    agent = stage.agent(Say("One."))
    agent.hooks.add_callback(AfterInvocationEvent, resume)
    assert str(await agent.invoke_async("Go.")) == "Done.\n"
    assert [step.input for step in stage.steps("before_input")] == ["Go.", "And now?"]


async def test_a_throttled_model_is_asked_again_by_strands(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strands.event_loop._retry.asyncio.sleep", lambda _: asyncio.wait_for(_nothing(), 1))
    result = await stage.agent(ModelThrottledException("slow down")).invoke_async("Go.")
    assert str(result) == "Done.\n"
    assert [bool(step.error) for step in stage.steps("after_model")] == [True, False]
    assert stage.events.count("turn_end") == 1


async def _nothing() -> None:
    pass


async def test_a_model_that_other_code_switches_to_is_asked_under_hooks(stage: Stage) -> None:
    middleware = pytest.importorskip("strands.middleware", reason="since 1.62")
    other = Scripted([], stage.played, "other")
    stage.hooks.add(lambda step: inject("Hello."), on="before_model", name="greet")
    agent = stage.agent()
    agent.add_middleware(middleware.InvokeModelStage.Input, lambda context: context.replace(model=other))
    await agent.invoke_async("Go.")
    assert (stage.played.models, [step.model for step in stage.steps("before_model")]) == (["other"], ["other"])
    assert "user: [greet] Hello." in stage.played.sent[0]


async def test_a_model_that_is_routed_to_is_asked_under_hooks_or_fails_the_request(stage: Stage) -> None:
    routing = pytest.importorskip("strands.models.routing", reason="models are routed since 1.52")
    broken, sound = Scripted([RuntimeError("down")], stage.played, "broken"), Scripted([], stage.played, "sound")
    agent = Agent(model=routing.ModelRouter([broken, sound]), callback_handler=None, hooks=[stage.fairlead])
    if hasattr(agent, "add_middleware"):
        await agent.invoke_async("Go.")
        assert [step.model for step in stage.steps("before_model")] == ["broken", "sound"] == stage.played.models
    else:
        with pytest.raises(Unenforceable, match="bypassing all hooks"):
            await agent.invoke_async("Go.")


@pytest.mark.parametrize("refused", [True, False])
async def test_a_call_in_the_background_is_judged(stage: Stage, refused: bool) -> None:
    if "background_tasks" not in inspect.signature(Agent).parameters:
        pytest.skip("there is no background before 1.55")
    stage.hooks.add(
        lambda step: deny("no") if refused else change(args={"command": "ls -l"}), on="before_tool", name="no"
    )
    agent = stage.agent(LS, background_tasks={"always": ["shell"]})
    await agent.invoke_async("Go.")
    assert stage.bench.ran == ([] if refused else [("shell", {"command": "ls -l"})])
    assert [step.outcome for step in stage.steps("after_tool")] == ["denied" if refused else "ok"]


# --- tools ------------------------------------------------------------------------------------------


def test_a_direct_call_is_judged_and_no_human_can_be_asked(stage: Stage) -> None:
    stage.hooks.add(lambda step: ask("May it?") if step.tool == "read" else None, on="before_tool", name="ask")
    agent = stage.agent()
    assert agent.tool.shell(command="ls")["content"] == [{"text": "ran ls"}]
    refused = agent.tool.read(path="a")
    assert (refused["status"], stage.bench.ran) == ("error", [("shell", {"command": "ls"})])
    assert "no approver is configured" in refused["content"][0]["text"]


def test_a_direct_call_may_have_arguments_that_cannot_be_shown(stage: Stage) -> None:
    seen: list[Any] = []

    @tool
    def keep(name: str, thing: Any) -> str:
        """Keep a thing."""
        seen.append((name, thing))
        return "kept"

    thing = object()
    stage.hooks.add(lambda step: change(args={"name": "b"}), on="before_tool", name="rename")
    agent = stage.agent(tools=[keep])
    agent.tool.keep(name="a", thing=thing)
    assert seen == [("b", thing)]
    assert stage.decisions[1].original.args == {"name": "a"}


async def test_a_tool_that_is_not_there_is_told_of(stage: Stage) -> None:
    await stage.agent(call("nowhere", a=1)).invoke_async("Go.")
    (step,) = stage.steps("after_tool")
    assert (step.tool, step.outcome, step.is_error) == ("nowhere", "error", True)


@pytest.mark.parametrize(
    ("hints", "safety"), [({"readOnlyHint": True}, "read_only"), ({"destructiveHint": True}, "destructive")]
)
async def test_what_a_server_says_of_its_tools_is_told(stage: Stage, hints: Any, safety: str) -> None:
    @tool
    def remote() -> str:
        """Be somewhere else."""
        return "there"

    remote.mcp_tool = SimpleNamespace(annotations=SimpleNamespace(**hints), name="read_file")  # type: ignore[attr-defined]
    remote.mcp_client = SimpleNamespace(_prefix="box")  # type: ignore[attr-defined]
    await stage.agent(call("remote"), tools=[remote]).invoke_async("Go.")
    (step,) = stage.steps("before_tool")
    assert (step.kind, step.target.server, step.safety) == ("read", "box", safety)


async def test_what_a_tool_streams_comes_while_it_runs(stage: Stage) -> None:
    seen: list[str] = []

    @tool
    async def counting(to: int) -> AsyncIterator[str]:
        """Count."""
        for number in range(to):
            seen.append(f"made {number}")
            yield f"number {number}"
        yield "counted"

    stage.hooks.add(lambda step: change(output="so many"), on="after_tool", name="change")
    async for event in stage.agent(call("counting", to=2), tools=[counting]).stream_async("Go."):
        if "tool_stream_event" in event:
            seen.append(event["tool_stream_event"]["data"])
    assert seen[:4] == ["made 0", "number 0", "made 1", "number 1"]
    assert "tool: so many" in stage.played.sent[1]


async def test_a_result_keeps_its_form_unless_a_hook_changes_it(stage: Stage) -> None:
    @tool
    def look() -> dict[str, Any]:
        """Look."""
        return {"status": "success", "content": [{"json": {"found": 1}}]}

    agent = stage.agent(call("look"), call("look"), tools=[look])
    await agent.invoke_async("Go.")
    stage.hooks.add(lambda step: change(output={"found": step.output["found"] + 1}), on="after_tool", name="more")
    agent.model.script[:] = [call("look")]
    await agent.invoke_async("Go.")
    results = [
        block["toolResult"]["content"] for m in agent.messages for block in m["content"] if "toolResult" in block
    ]
    assert results == [[{"json": {"found": 1}}], [{"json": {"found": 1}}], [{"json": {"found": 2}}]]


async def test_an_abort_in_one_of_several_calls_fails_the_request(stage: Stage) -> None:
    stage.hooks.add(lambda step: abort("no") if step.tool == "shell" else None, on="before_tool", name="no")
    both = Call([("shell", {"command": "ls"}), ("slow", {"name": "a"})])
    agent = stage.agent(both)
    with pytest.raises(HookAborted):
        await agent.invoke_async("Go.")
    assert [("shell", {"command": "ls"})] not in stage.bench.ran
    assert (stage.events.count("turn_end"), stage.events.count("after_request")) == (1, 1)
    assert str(await agent.invoke_async("Again.")) == "Done.\n"


# --- interrupts -------------------------------------------------------------------------------------


async def test_an_interrupt_says_what_is_asked_and_other_calls_run_once(stage: Stage) -> None:
    stage.hooks.add(lambda step: ask("May it?") if step.tool == "shell" else None, on="before_tool", name="ask")
    agent = stage.agent(Call([("shell", {"command": "ls"}), ("read", {"path": "a"})]))
    result = await agent.invoke_async("Go.")
    (one,) = result.interrupts
    assert (one.name, one.reason) == (
        "fairlead:ask", {"question": "May it?", "hook": "ask", "tool": "shell", "args": {"command": "ls"}},
    )  # fmt: skip
    assert "turn_end" not in stage.events
    result = await agent.invoke_async(answers(result, {"approved": True, "who": "alice"}))
    assert str(result) == "Done.\n"
    assert sorted(name for name, _ in stage.bench.ran) == ["read", "shell"]
    assert [stage.events.count(event) for event in ("before_request", "turn_end", "after_request")] == [1, 1, 1]
    assert [len(step.results) for step in stage.steps("after_tool_batch")] == [2]


@pytest.mark.parametrize(
    ("response", "runs"), [(True, True), ("Yes", True), ("y", True), (False, False), ("not now", False), ({}, False)]
)
def test_only_a_clear_yes_lets_a_call_run(stage: Stage, response: Any, runs: bool) -> None:
    stage.hooks.add(lambda step: ask("May it?"), on="before_tool", name="ask")
    agent = stage.agent(LS)
    agent(answers(agent("Go."), response))
    assert bool(stage.bench.ran) is runs
    if response == "not now":
        assert "not now" in stage.played.sent[1][-1]


async def test_a_call_that_was_asked_about_runs_after_a_restart(tmp_path: Any) -> None:
    def stage() -> tuple[Stage, Agent]:
        made = Stage()
        made.hooks.add(lambda step: ask("May it?"), on="before_tool", name="ask")
        return made, made.agent(LS, session_manager=FileSessionManager("s1", storage_dir=str(tmp_path)))

    before, agent = stage()
    result = await agent.invoke_async("Go.")
    after, agent = stage()
    agent.model.script.clear()
    await agent.invoke_async(answers(result, "y"))
    assert (before.bench.ran, after.bench.ran) == ([], [("shell", {"command": "ls"})])
    assert {step.session_id for made in (before, after) for step in made.steps("before_tool")} == {"s1"}
    assert [step.source for step in after.steps("before_input")] == ["continuation"]


async def test_a_tool_s_own_question_is_strands_business(stage: Stage) -> None:
    @tool(context=True)
    def careful(name: str, tool_context: ToolContext) -> str:
        """Ask first."""
        return f"{name}: {tool_context.interrupt('mine', reason='sure?')}"

    agent = stage.agent(call("careful", name="a"), tools=[careful])
    result = await agent.invoke_async("Go.")
    assert [one.name for one in result.interrupts] == ["mine"]
    assert stage.steps("after_tool") == []
    await agent.invoke_async(answers(result, "sure"))
    assert [step.output for step in stage.steps("after_tool")] == ["a: sure"]


async def test_an_interrupt_in_a_subagent_reaches_the_user(stage: Stage) -> None:
    if not hasattr(Agent, "as_tool"):
        pytest.skip("agents are tools since 1.34")
    stage.hooks.add(lambda step: ask("May it?") if step.agent.name == "helper" else None, on="before_tool", name="ask")
    helper = stage.agent(LS, Say("Helped."), name="helper")
    agent = stage.agent(call("helper", message="Help."), tools=[helper_tool(helper)])
    result = await agent.invoke_async("Go.")
    assert (stage.bench.ran, result.stop_reason) == ([], "interrupt")
    result = await agent.invoke_async(answers(result, True))
    assert (len(stage.bench.ran), str(result)) == (1, "Done.\n")
    assert [stage.events.count(event) for event in ("subagent_start", "subagent_stop", "after_request")] == [1, 1, 2]


# --- the turn ---------------------------------------------------------------------------------------


async def test_a_rejected_message_is_not_kept_and_the_roles_take_turns(stage: Stage) -> None:
    stage.hooks.add(lambda step: deny("no") if "secret" in step.input else None, on="before_input", name="no")
    stage.hooks.add(lambda step: inject("Mind the gap."), on="after_tool", name="note")
    agent = stage.agent(LS)
    for given in ("The secret is swordfish.", "Go.", "The secret is swordfish."):
        await agent.invoke_async(given)
    assert "swordfish" not in str(agent.messages)
    roles = [message["role"] for message in agent.messages]
    assert roles == ["user", "assistant"] * (len(roles) // 2)


async def test_what_the_user_gives_may_be_more_than_a_text(stage: Stage) -> None:
    stage.hooks.add(lambda step: change(prepend_input="Look."), on="before_input", name="look")
    blocks = [{"text": "What is this?"}, {"image": {"format": "png", "source": {"bytes": b"png"}}}]
    agent = stage.agent()
    await agent.invoke_async(blocks)
    assert stage.decisions[2].original.input == blocks
    assert agent.messages[0]["content"] == [{"text": "Look."}, *blocks]


async def test_without_a_prompt_the_conversation_goes_on(stage: Stage) -> None:
    agent = stage.agent(messages=[{"role": "user", "content": [{"text": "Go."}]}])
    await agent.invoke_async()
    assert [(step.source, step.input) for step in stage.steps("before_input")] == [("continuation", "")]
    assert [message["role"] for message in agent.messages] == ["user", "assistant"]


async def test_a_cancelled_agent_ends_its_turn(stage: Stage) -> None:
    agent = stage.agent(LS)
    stage.hooks.add(lambda step: agent.cancel(), on="after_tool", phase="observe", name="cancel")
    result = await agent.invoke_async("Go.")
    assert result.stop_reason == "cancelled"
    assert [step.stop_reason for step in stage.steps("turn_end")] == ["cancelled"]
    assert "before_turn_end" not in stage.events


async def test_a_cancelled_task_ends_the_request_and_its_calls(stage: Stage) -> None:
    started = asyncio.Event()

    @tool
    async def forever() -> str:
        """Never end."""
        started.set()
        await asyncio.Event().wait()
        return ""

    agent = stage.agent(call("forever"), tools=[forever])
    work = asyncio.ensure_future(agent.invoke_async("Go."))
    await started.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert [step.outcome for step in stage.steps("after_tool")] == ["aborted"]
    assert [step.stop_reason for step in stage.steps("turn_end")] == ["cancelled"]
    assert [step.error for step in stage.steps("after_request")] == ["cancelled"]


async def test_a_stream_that_is_left_ends_the_request(stage: Stage) -> None:
    agent = stage.agent(Say("One two three."))
    async with aclosing(agent.stream_async("Go.")) as events:
        async for event in events:
            if "data" in event:
                break
    del events
    gc.collect()  # before 1.62, what is left in the middle is closed when it is not referenced any more
    for _ in range(20):
        await asyncio.sleep(0)
    assert [step.error for step in stage.steps("after_request")] == ["cancelled"]


async def test_what_is_said_on_the_way_to_a_tool_is_streamed_once_hooks_have_seen_it(stage: Stage) -> None:
    stage.hooks.add(lambda step: change(output=step.output.upper()), on="after_model", name="loud")
    stage.hooks.add(lambda step: None, on="before_output", name="judge")
    agent = stage.agent(Call(LS.tools, "Let me see."))
    pieces = [event["data"] async for event in agent.stream_async("Go.") if "data" in event]
    assert pieces == ["LET ME SEE.", "DONE."]
    assert [set(block) for block in agent.messages[1]["content"]] == [{"text"}, {"toolUse"}]


async def test_a_turn_that_is_extended_twice_is_one_request(stage: Stage) -> None:
    stage.hooks.add(
        lambda step: extend("Go on.") if step.continues_so_far < 2 else None, on="before_turn_end", name="more"
    )
    stage.hooks.add(lambda step: None, on="before_response", name="judge")
    result = await stage.agent(Say("1"), Say("2"), Say("3")).invoke_async("Go.")
    assert str(result) == "3\n"
    assert [stage.events.count(event) for event in ("before_turn_end", "turn_end")] == [3, 1]
    assert [step.source for step in stage.steps("before_input")] == ["user", "continuation", "continuation"]


async def test_an_unknown_model_fails_the_request(stage: Stage) -> None:
    stage.hooks.add(lambda step: change(model="third"), on="before_model", name="switch")
    stage.fairlead.models["second"] = Scripted([], stage.played, "second")
    with pytest.raises(UnknownName, match="second"):
        await stage.agent().invoke_async("Go.")


async def test_a_stop_without_a_reason_says_nothing(stage: Stage) -> None:
    stage.hooks.add(lambda step: stop(), on="after_tool", name="stop")
    result = await stage.agent(LS).invoke_async("Go.")
    assert (str(result), len(stage.played.sent)) == ("", 1)


# --- forms ------------------------------------------------------------------------------------------


class Weather(BaseModel):
    """The weather."""

    degrees: int


async def test_a_form_is_seen_as_what_the_user_gets(stage: Stage) -> None:
    stage.hooks.add(lambda step: None, on="before_output", name="judge")
    agent = stage.agent(LS, Say("Warm."), call("Weather", degrees=21))
    result = await agent.invoke_async("Go.", structured_output_model=Weather)
    assert result.structured_output == Weather(degrees=21)
    assert [step.content for step in stage.steps("before_output")] == ['{"degrees":21}']
    assert [step.tool for step in stage.steps("before_tool")] == ["shell"]
    assert stage.events.count("turn_end") == 1


async def test_a_form_that_a_hook_would_change_is_an_error(stage: Stage) -> None:
    stage.hooks.add(lambda step: deny("no"), on="before_output", name="no")
    agent = stage.agent(call("Weather", degrees=21))
    with pytest.raises(Unenforceable):
        await agent.invoke_async("Go.", structured_output_model=Weather)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_old_way_to_fill_in_a_form_is_refused(stage: Stage) -> None:
    with pytest.raises(FairleadError, match="structured_output_model"):
        stage.agent().structured_output(Weather, "Go.")
    assert stage.played.sent == []


# --- several at once --------------------------------------------------------------------------------


async def test_two_requests_of_one_agent_at_once_do_not_mix(stage: Stage) -> None:
    try:
        from strands.types.agent import ConcurrentInvocationMode
    except ImportError:
        pytest.skip("an agent does one thing at a time")
    stage.hooks.add(lambda step: change(args={"name": step.request_id}), on="before_tool", name="tell")
    two = [call("slow", name="a"), call("slow", name="b")]
    agent = stage.agent(*two, concurrent_invocation_mode=ConcurrentInvocationMode.UNSAFE_REENTRANT)
    model = agent.model
    await asyncio.gather(agent.invoke_async("One."), agent.invoke_async("Two."))
    requests = {step.request_id for step in stage.steps("before_input")}
    assert len(requests) == 2
    assert {args["name"] for _, args in stage.bench.ran} == requests
    assert stage.events.count("turn_end") == stage.events.count("after_request") == 2
    assert agent.model is model


def test_agents_in_several_threads_do_not_mix(stage: Stage) -> None:
    stage.hooks.add(lambda step: change(args={"name": step.session_id}), on="before_tool", name="tell")
    agents = [stage.agent(call("slow", name="a"), call("slow", name="b")) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        assert [str(result) for result in threads.map(lambda agent: agent("Go."), agents)] == ["Done.\n"] * 4
    sessions = [step.session_id for step in stage.steps("before_input")]
    assert len(set(sessions)) == 4
    assert sorted(args["name"] for _, args in stage.bench.ran) == sorted(sessions * 2)


# --- subagents --------------------------------------------------------------------------------------


async def test_an_agent_that_a_function_runs_is_a_subagent(stage: Stage) -> None:
    @tool
    def research(topic: str) -> str:
        """Look something up."""
        return str(stage.agent(LS, Say("Found."), name="researcher")(topic))

    await stage.agent(call("research", topic="hooks"), tools=[research]).invoke_async("Go.")
    (start,) = stage.steps("subagent_start")
    assert (start.agent_name, start.initial_message) == ("researcher", "hooks")
    assert {step.agent.name for step in stage.steps("before_tool")} == {"Strands Agents", "researcher"}
    assert stage.events.count("session_start") == 1


async def test_an_abort_in_a_subagent_fails_the_whole_request(stage: Stage) -> None:
    stage.hooks.add(lambda step: abort("no") if step.tool == "shell" else None, on="before_tool", name="no")
    helper = helper_tool(stage.agent(LS, name="helper"))
    with pytest.raises(HookAborted):
        await stage.agent(call("helper", message="Help."), tools=[helper]).invoke_async("Go.")
    assert [step.stop_reason for step in stage.steps("turn_end")] == ["error", "error"]
    assert stage.events.count("subagent_stop") == 1


@has_as_tool
async def test_an_agent_as_a_tool_runs_under_the_hooks_of_its_caller(stage: Stage) -> None:
    stage.hooks.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool", name="no")
    helper = stage.agent(LS, Say("Helped."), name="helper", hooks=[])
    agent = stage.agent(call("helper", message="Help."), tools=[helper.as_tool()])
    await agent.invoke_async("Go.")
    assert stage.bench.ran == []
    assert [(step.tool, step.kind) for step in stage.steps("before_tool")] == [("helper", "agent"), ("shell", "shell")]


@has_as_tool
async def test_an_agent_to_which_all_is_left_has_the_last_word(stage: Stage) -> None:
    try:
        delegate = stage.agent(Say("It is 7."), name="helper").as_tool(delegate=True)
    except TypeError:
        pytest.skip("nothing can be left to an agent yet")
    result = await stage.agent(call("helper", message="Help."), tools=[delegate]).invoke_async("Go.")
    assert (str(result), len(stage.played.sent)) == ("It is 7.\n", 2)
    assert stage.events.count("turn_end") == 2


def member(stage: Stage, name: str, *script: Say | Call) -> Agent:
    return stage.agent(*script, name=name, hooks=[])


async def test_the_agents_of_a_swarm_are_its_subagents(stage: Stage) -> None:
    stage.hooks.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool", name="no")
    handoff = call("handoff_to_agent", agent_name="second", message="Yours.")
    swarm = Swarm(
        [member(stage, "first", LS, handoff, Say("Handed over.")), member(stage, "second", Say("All done."))],
        hooks=[stage.fairlead],
    )
    result = await swarm.invoke_async("Build it.")
    assert result.status.value == "completed"
    assert stage.bench.ran == []
    assert [step.agent_name for step in stage.steps("subagent_start")] == ["first", "second"]
    assert stage.steps("before_input")[0].input == "Build it."
    assert stage.events.count("session_start") == 1
    assert (stage.events.count("subagent_stop"), stage.events.count("after_request")) == (2, 3)


async def test_a_swarm_may_be_refused_its_task(stage: Stage) -> None:
    stage.hooks.add(lambda step: deny("not that"), on="before_input", name="no")
    result = await Swarm([member(stage, "first")], hooks=[stage.fairlead]).invoke_async("Build it.")
    assert (result.status.value, stage.played.sent) == ("failed", [])


async def test_an_abort_in_a_swarm_leaves_as_an_exception(stage: Stage) -> None:
    stage.hooks.add(lambda step: abort("no"), on="before_tool", name="no")
    with pytest.raises(HookAborted):
        await Swarm([member(stage, "first", LS)], hooks=[stage.fairlead]).invoke_async("Build it.")
    assert stage.events.count("before_request") == stage.events.count("after_request")


async def test_an_agent_of_a_swarm_may_be_asked_about(stage: Stage) -> None:
    stage.hooks.add(lambda step: ask("May it?") if step.tool == "shell" else None, on="before_tool", name="ask")
    swarm = Swarm([member(stage, "first", LS, Say("All done."))], hooks=[stage.fairlead])
    result = await swarm.invoke_async("Build it.")
    assert (result.status.value, stage.bench.ran) == ("interrupted", [])
    result = await swarm.invoke_async(answers(result, "yes"))
    assert (result.status.value, stage.bench.ran) == ("completed", [("shell", {"command": "ls"})])
    assert [stage.events.count(event) for event in ("before_request", "subagent_start", "after_request")] == [2, 1, 2]


async def test_the_nodes_of_a_graph_run_at_once_as_its_subagents(stage: Stage) -> None:
    stage.hooks.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool", name="no")
    builder = GraphBuilder()
    builder.set_hook_providers([stage.fairlead])
    for name in ("a", "b"):
        builder.add_node(member(stage, name, LS, Say(f"{name} is done.")), name)
    builder.add_node(member(stage, "c", Say("All done.")), "c")
    builder.add_edge("a", "c")
    builder.add_edge("b", "c")
    result = await builder.build().invoke_async("Build it.")
    assert result.status.value == "completed"
    assert stage.bench.ran == []
    assert sorted(step.agent_name for step in stage.steps("subagent_start")) == ["a", "b", "c"]
    assert stage.events.count("turn_start") == 4
    assert [step.content for step in stage.steps("before_output")][-1] == "All done."


async def test_a_node_that_may_not_start_does_not(stage: Stage) -> None:
    stage.hooks.add(lambda step: deny("not b"), on="subagent_start", agent="b", name="no")
    builder = GraphBuilder()
    builder.set_hook_providers([stage.fairlead])
    builder.add_node(member(stage, "a"), "a")
    builder.add_node(member(stage, "b"), "b")
    builder.add_edge("a", "b")
    with pytest.raises(Exception, match="not b"):
        await builder.build().invoke_async("Build it.")
    assert len(stage.played.sent) == 1


# --- sessions ---------------------------------------------------------------------------------------


def test_an_agent_is_one_session_until_the_adapter_is_closed(stage: Stage) -> None:
    agent, other = stage.agent(), stage.agent()
    for one in (agent, agent, other):
        one("Go.")
    stage.fairlead.close()
    sessions = [step.session_id for step in stage.steps("before_request")]
    assert sessions[0] == sessions[1] != sessions[2]
    assert sorted(step.session_id for step in stage.steps("session_end")) == sorted(set(sessions))


async def test_one_session_id_makes_one_session_of_all_agents() -> None:
    stage = Stage()
    async with Fairlead(stage.hooks, session_id="all", user_id="alice") as fairlead:
        for _ in range(2):
            await stage.agent(hooks=[fairlead]).invoke_async("Go.")
    assert {(d.step.session_id, d.step.user_id) for d in stage.decisions} == {("all", "alice")}
    assert [stage.events.count(name) for name in ("session_start", "session_end")] == [1, 1]


async def test_a_driver_keeps_what_the_model_gave(stage: Stage) -> None:
    stage.hooks.add(lambda step: change(args={"command": "ls -l"}), on="before_tool", name="rewrite")
    played = await Driver().play(stage.hooks, LS)
    assert 'assistant: calls shell {"command": "ls"}' in played.history


def test_a_request_may_be_refused_where_nothing_can_be_awaited(stage: Stage) -> None:
    stage.hooks.add(lambda step: abort("no"), on="before_request", name="no")
    with pytest.raises(HookAborted):
        stage.agent()("Go.")


def test_a_foreign_hook_sees_what_ours_do_not_touch(stage: Stage) -> None:
    received: list[str] = []
    agent = stage.agent(LS)
    for kind in (BeforeInvocationEvent, AfterInvocationEvent, BeforeToolCallEvent, AfterToolCallEvent):
        agent.hooks.add_callback(kind, lambda event: received.append(type(event).__name__))
    agent("Go.")
    assert received == ["BeforeInvocationEvent", "BeforeToolCallEvent", "AfterToolCallEvent", "AfterInvocationEvent"]
    assert isinstance(agent.model, Model)
