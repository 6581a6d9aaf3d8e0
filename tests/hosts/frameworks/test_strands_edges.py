"""Strands: what odd models, other hooks and careless callers do."""

from __future__ import annotations

import asyncio
import gc
import inspect
import weakref
from typing import Any

import pytest
from boundary import Boundary
from driver import Played, Say, call
from driver_strands import Scripted
from strands import Agent, ToolContext, tool
from strands.hooks import BeforeInvocationEvent, BeforeToolCallEvent
from strands.multiagent import Swarm
from strands.tools.executors import SequentialToolExecutor
from strands.tools.tools import PythonAgentTool
from test_strands import LS, Stage, answers, has_as_tool
from test_strands import stage as stage

from fairlead import Hooks, ask, change, deny, retry
from fairlead.hosts.frameworks import adapter, turn
from fairlead.hosts.frameworks.strands import Fairlead


def user(text: str) -> Any:
    return {"role": "user", "content": [{"text": text}]}


class SameIds(Scripted):
    """Gives all calls the same id, as some models do."""

    async def stream(self, *given: Any, **options: Any) -> Any:
        async for chunk in super().stream(*given, **options):
            if "toolUse" in (chunk.get("contentBlockStart") or {}).get("start", ()):
                chunk["contentBlockStart"]["start"]["toolUse"]["toolUseId"] = "call_0"
            yield chunk


async def test_all_new_messages_are_judged(stage: Stage) -> None:
    @stage.hooks.on.before_input
    def judge(step: Any) -> Any:
        return change(input="clean") if "dirty" in step.input else None

    await stage.agent(Say("Done.")).invoke_async([user("dirty"), user("fine")])
    assert stage.played.sent == [["user: clean"]]


async def test_a_request_that_a_later_hook_fails_leaves_nothing_behind(stage: Stage) -> None:
    @stage.hooks.on.before_input
    def judge(step: Any) -> Any:
        return deny("no") if "bad" in step.input else None

    agent, failing = stage.agent(), [True]

    def later(event: Any) -> None:
        if failing.pop() if failing else False:
            raise RuntimeError("not now")

    agent.hooks.add_callback(BeforeInvocationEvent, later)
    state: dict[str, Any] = {"user": "alice"}
    with pytest.raises(RuntimeError):
        await agent.invoke_async("one", invocation_state=state)
    result = await agent.invoke_async("bad", invocation_state=state)
    assert "rejected" in str(result)
    assert not stage.played.sent
    assert not stage.fairlead._active


async def test_what_a_later_hook_makes_of_a_message_is_judged(stage: Stage) -> None:
    agent = stage.agent()
    if "order" not in inspect.signature(agent.hooks.add_callback).parameters:
        pytest.skip("hooks have an order since 1.62")
    stage.hooks.add(lambda step: None, on="before_input", name="judge")

    def later(event: Any) -> None:
        event.messages = [user("other")]

    agent.hooks.add_callback(BeforeInvocationEvent, later)
    await agent.invoke_async("one")
    assert [step.input for step in stage.steps("before_input")] == ["other"]


async def test_an_approval_is_for_the_arguments_that_were_asked_about(stage: Stage) -> None:
    numbers = iter(range(9))
    stage.hooks.add(lambda step: change(args={"command": f"echo {next(numbers)}"}), on="before_tool", name="other")
    stage.hooks.add(lambda step: ask("Sure?"), on="before_tool", name="asks")
    agent = stage.agent(LS)
    result = await agent.invoke_async("Go.")
    await agent.invoke_async(answers(result, "yes"))
    assert stage.bench.ran == []
    assert [step.outcome for step in stage.steps("after_tool")] == ["denied"]


async def test_one_approval_is_not_for_two_calls_of_the_same_id(stage: Stage) -> None:
    stage.hooks.add(lambda step: ask("Sure?"), on="before_tool", name="asks")
    script: list[Any] = [call("shell", command="ls")]
    script[0].tools.append(("shell", {"command": "rm"}))
    agent = stage.agent()
    agent.model = SameIds(script, stage.played, "first")
    result = await agent.invoke_async("Go.")
    await agent.invoke_async(answers(result, *["yes"] * len(result.interrupts)))
    assert len(stage.bench.ran) <= 1


async def test_a_later_call_of_the_same_id_is_told_of(stage: Stage) -> None:
    stage.hooks.add(lambda step: None, on="after_tool", name="watch")
    agent, calls = stage.agent(), []

    def later(event: Any) -> None:
        calls.append(event)
        event.cancel_tool = "not twice" if len(calls) == 2 else False

    agent.hooks.add_callback(BeforeToolCallEvent, later)
    agent.model = SameIds([LS, LS, Say("Done.")], stage.played, "first")
    await agent.invoke_async("Go.")
    assert [step.outcome for step in stage.steps("after_tool")] == ["ok", "denied"]


@pytest.mark.parametrize("given", [["evil"], "evil"])
async def test_arguments_that_are_no_object_are_judged(stage: Stage, given: Any) -> None:
    ran = []

    def raw(tool_use: Any, **_: Any) -> Any:
        ran.append(tool_use["input"])
        return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": "x"}]}

    spec: Any = {"name": "raw", "description": "x", "inputSchema": {"json": {"type": "object"}}}
    told = stage.agent(call("raw"), tools=[PythonAgentTool("raw", spec, raw)])
    told.model.script[0].tools[0] = ("raw", given)
    stage.hooks.add(lambda step: deny("no") if "evil" in str(step.args) else None, on="before_tool", name="judge")
    await told.invoke_async("Go.")
    assert ran == []
    assert stage.steps("after_tool")[0].args == {"input": given}


@has_as_tool
async def test_an_agent_that_two_have_for_a_tool_is_judged_by_the_hooks_of_both(stage: Stage, judged: Boundary) -> None:
    script: list[Any] = [LS, Say("One."), LS, Say("Two.")]
    helper = stage.agent(name="helper", hooks=[])
    helper.model = Scripted(script, stage.played, "helper")
    strict = Hooks()
    strict.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool", name="strict")
    for hooks in (Hooks(), strict):
        model = Scripted([call("helper", message="Go.")], stage.played, "first")
        await Agent(
            model=model, tools=[helper.as_tool(name="helper")], hooks=[Fairlead(hooks)], callback_handler=None
        ).invoke_async("Go.")
    assert len(stage.bench.ran) == 1
    judged.ways_around.clear()  # the first agent has no hooks, so nothing judged the call of its helper


async def test_who_reads_what_a_tool_streams_is_not_inside_of_it(stage: Stage) -> None:
    @tool
    async def count() -> Any:
        """Count."""
        for number in range(3):
            yield str(number)

    stage.hooks.add(lambda step: None, on="subagent_start", name="watch")
    one = stage.agent(call("count"), tools=[count], tool_executor=SequentialToolExecutor())
    async for event in one.stream_async("Go."):
        if "tool_stream_event" in event:
            break
    await stage.agent(Say("Hi.")).invoke_async("Go.")
    assert stage.steps("subagent_start") == []


async def test_the_task_of_a_swarm_can_be_changed(stage: Stage) -> None:
    @stage.hooks.on.before_input
    def judge(step: Any) -> Any:
        return change(input="clean") if step.input == "dirty" else None

    worker = stage.agent(Say("Done."), name="worker", hooks=[])
    await Swarm([worker], hooks=[stage.fairlead]).invoke_async("dirty")
    assert "clean" in stage.played.sent[0][0]
    assert "dirty" not in stage.played.sent[0][0]


async def test_a_changed_answer_keeps_the_calls_whose_results_follow(stage: Stage) -> None:
    @tool(context=True)
    def finish(tool_context: ToolContext) -> str:
        """Stop."""
        tool_context.invocation_state.setdefault("request_state", {})["stop_event_loop"] = True
        return "x"

    stage.hooks.add(lambda step: change(response="changed"), on="before_response", name="judge")
    agent = stage.agent(call("finish"), tools=[finish])
    agent.model.script[0].text = "Let me see."
    await agent.invoke_async("Go.")
    assert [set(block) for block in agent.messages[1]["content"]] == [{"text"}, {"toolUse"}]


async def test_what_waits_for_an_answer_ends_with_the_adapter(stage: Stage) -> None:
    stage.hooks.add(lambda step: ask("Sure?"), on="before_tool", name="asks")
    stage.hooks.add(lambda step: None, on="turn_end", name="watch")
    await stage.agent(LS).invoke_async("Go.")
    await stage.fairlead.aclose()
    assert [step.stop_reason for step in stage.steps("turn_end")] == ["cancelled"]


def test_what_waits_for_an_answer_ends_with_the_adapter_where_nothing_can_be_awaited(stage: Stage) -> None:
    stage.hooks.add(lambda step: ask("Sure?"), on="before_tool", name="asks")
    agent = stage.agent(LS)
    agent("Go.")
    stage.fairlead.close()
    assert [step.stop_reason for step in stage.steps("turn_end")] == ["cancelled"]
    assert stage.events[-4:] == ["turn_end", "error", "after_request", "session_end"]


async def test_what_a_swarm_waits_for_ends_before_the_swarm_does(stage: Stage) -> None:
    stage.hooks.add(lambda step: ask("Sure?") if step.tool == "shell" else None, on="before_tool", name="asks")
    worker = stage.agent(LS, Say("Hi."), name="worker", hooks=[])
    await Swarm([worker], hooks=[stage.fairlead]).invoke_async("Go.")
    await stage.fairlead.aclose()
    assert [step.agent.name for step in stage.steps("turn_end")] == ["worker", "default_swarm"]
    assert not stage.fairlead._owners


async def test_a_question_without_an_answer_is_forgotten(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "SESSIONS", 2)
    stage.hooks.add(lambda step: ask("Sure?"), on="before_tool", name="asks")
    agents = [stage.agent(LS, name=name) for name in ("one", "two", "three")]
    results = [await agent.invoke_async("Go.") for agent in agents]
    assert [(step.agent.name, step.stop_reason) for step in stage.steps("turn_end")] == [("one", "cancelled")]
    for agent, result in zip(agents, results, strict=True):  # and what is answered after all is judged all the same
        await agent.invoke_async(answers(result, "yes"))
    assert len(stage.bench.ran) == 3
    assert stage.events.count("turn_start") == stage.events.count("turn_end") == 4


async def test_an_agent_is_forgotten_with_its_question(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "SESSIONS", 1)
    stage.hooks.add(lambda step: ask("Sure?"), on="before_tool", name="asks")
    left = weakref.WeakSet[Any]()
    for _ in range(4):
        agent = stage.agent(LS)
        left.add(agent)
        await agent.invoke_async("Go.")
    del agent
    gc.collect()
    assert len(left) == 1


def test_agents_that_are_only_called_directly_are_forgotten(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(turn, "SESSIONS", 5)
    agents = [stage.agent() for _ in range(9)]
    for agent in agents:
        agent.tool.shell(command="ls")
    assert len(stage.fairlead.sessions._entries) == 5


def python_tool(name: str, run: Any) -> PythonAgentTool:
    spec = {"name": name, "description": name, "inputSchema": {"json": {"type": "object", "properties": {}}}}
    return PythonAgentTool(name, spec, run)


@pytest.mark.parametrize("received", [False, True])
async def test_a_helper_that_may_not_start_fails_its_call_and_not_the_request(received: bool) -> None:
    stage = Stage()
    stage.hooks = Hooks()  # without a journal: what no hook subscribes to is left to Strands
    stage.fairlead = Fairlead(stage.hooks)
    stage.hooks.add(lambda step: deny("not him"), on="subagent_start", name="no")
    if received:
        stage.hooks.add(lambda step: None, on="after_tool", name="watch")
    helper = stage.agent(name="helper")

    async def ask_helper(tool_use: Any, **_: Any) -> Any:
        said = await helper.invoke_async("Help.")
        return {"toolUseId": tool_use["toolUseId"], "status": "success", "content": [{"text": str(said)}]}

    agent = stage.agent(call("ask_helper"), tools=[python_tool("ask_helper", ask_helper)])
    assert str(await agent.invoke_async("Go.")) == "Done.\n"
    assert "may not start: not him" in stage.played.sent[-1][-1]


async def test_a_tool_whose_events_can_only_be_gone_through_runs_natively() -> None:
    stage = Stage()
    stage.fairlead = Fairlead(Hooks())

    class Events:
        def __init__(self, tool_use: Any) -> None:
            self.tool_use = tool_use

        async def __aiter__(self) -> Any:
            yield {"toolUseId": self.tool_use["toolUseId"], "status": "success", "content": [{"text": "it ran"}]}

    made = python_tool("odd", None)
    made.stream = lambda tool_use, state, **_: Events(tool_use)
    await stage.agent(call("odd"), tools=[made]).invoke_async("Go.")
    assert stage.played.sent[-1][-1] == "tool: it ran"


async def test_a_hook_that_is_added_while_a_tool_is_at_work_sees_its_end(judged: Boundary) -> None:
    stage, hooks = Stage(), Hooks()
    stage.fairlead = Fairlead(hooks)

    @tool
    def load() -> str:
        """Load other hooks."""
        hooks.add(lambda step: change(output="[redacted]"), on="after_tool", name="late")
        return "the secret"

    await stage.agent(call("load"), tools=[load]).invoke_async("Go.")
    assert stage.played.sent[-1][-1] == "tool: [redacted]"
    judged.ways_around.clear()  # it ran before there was a hook


# --- what runs is what was judged -----------------------------------------------------------------


async def test_a_retry_runs_what_was_judged_whatever_the_tool_makes_of_its_input(stage: Stage) -> None:
    ran: list[Any] = []

    def shell(use: Any, **_: Any) -> Any:
        ran.append(use["input"])
        use["input"] = {"command": "rm -rf /"}
        status = "error" if len(ran) == 1 else "success"
        return {"toolUseId": use["toolUseId"], "status": status, "content": [{"text": "x"}]}

    stage.hooks.add(lambda step: retry() if step.is_error else None, on="after_tool", name="again")
    agent = stage.agent(LS, tools=[python_tool("shell", shell)])
    await agent.invoke_async("Go.")
    assert ran == [{"command": "ls"}, {"command": "ls"}]
    assert "rm -rf" not in str(agent.messages)


async def test_changing_a_call_while_it_is_judged_changes_nothing() -> None:
    ran, uses, hooks = [], [], Hooks()

    @hooks.on.before_tool
    async def judge(step: Any) -> None:
        await asyncio.sleep(0)
        for use in uses:
            use["input"] = {"command": "rm -rf /"}

    @tool
    def shell(command: str) -> str:
        """Run a command."""
        ran.append(command)
        return "x"

    agent = Agent(
        model=Scripted([LS], Played(), "first"), tools=[shell], hooks=[Fairlead(hooks)], callback_handler=None
    )
    agent.hooks.add_callback(BeforeToolCallEvent, lambda event: uses.append(event.tool_use))
    await agent.invoke_async("Go.")
    assert ran == ["ls"]
