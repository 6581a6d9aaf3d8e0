"""What is particular to LangChain and LangGraph: graphs, threads, interrupts, other middleware, tool nodes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from driver import Call, Played, Say, Workbench, call
from driver_langchain import Driver, Scripted, a_tool, shown
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    ToolRetryMiddleware,
    hook_config,
)
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel

from fairlead import HookAborted, Hooks, abort, allow, answer, ask, change, deny, extend, inject, retry, stop
from fairlead.errors import UnknownName
from fairlead.hosts.frameworks import langchain as adapter
from fairlead.hosts.frameworks.langchain import Fairlead

LS = call("shell", command="ls")
GO: Any = {"messages": [{"role": "user", "content": "Go."}]}


class Stage:
    """An agent with a script, hooks whose decisions are kept, and a thread to go on with."""

    def __init__(self, *script: Any, middleware: Any = (), tools: Any = None, first: bool = True, **agent: Any) -> None:
        self.decisions: list[Any] = []
        self.hooks = Hooks(journal=self.decisions.append)
        self.played, self.bench = Played(), Workbench()
        self.fairlead = Fairlead(self.hooks)
        self.config: Any = {"configurable": {"thread_id": "t1"}}
        self.script = list(script)
        tools = [a_tool(function) for function in self.bench.tools] if tools is None else tools
        agent.setdefault("checkpointer", InMemorySaver())
        order = [self.fairlead, *middleware] if first else [*middleware, self.fairlead]
        self.agent = create_agent(
            Scripted(script=self.script, played=self.played), tools, middleware=order, **agent
        )  # fmt: skip

    async def run(self, given: Any = None, sync: bool = False) -> Any:
        given = GO if given is None else given
        return self.agent.invoke(given, self.config) if sync else await self.agent.ainvoke(given, self.config)

    @property
    def events(self) -> list[str]:
        return [decision.event for decision in self.decisions]

    def steps(self, event: str) -> list[Any]:
        return [decision.step for decision in self.decisions if decision.event == event]


def last(state: Any) -> str:
    return str(state["messages"][-1].text)


# --- interrupts -------------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize(
    ("answer", "runs"),
    [
        ({"decisions": [{"type": "approve"}]}, True),
        (True, True),
        ({"decisions": [{"type": "reject", "message": "not on Fridays"}]}, False),
        (False, False),
        ("yes", False),
        ({"decisions": [{"type": "approve"}, {"type": "approve"}]}, False),
        (None, False),
    ],
)
async def test_only_a_clear_yes_lets_an_interrupted_call_run(answer: Any, runs: bool, sync: bool) -> None:
    stage = Stage(LS)
    stage.hooks.add(lambda step: ask("May it?"), on="before_tool", name="judge")
    state = await stage.run(sync=sync)
    (question,) = state["__interrupt__"]
    (action,) = question.value["action_requests"]
    assert action == {"name": "shell", "args": {"command": "ls"}, "description": "May it?"}
    assert stage.bench.ran == []
    state = await stage.run(Command(resume={question.id: answer}), sync=sync)
    assert last(state) == "Done."
    assert bool(stage.bench.ran) is runs
    assert [step.outcome for step in stage.steps("after_tool")] == ["ok" if runs else "denied"]
    assert stage.events.count("before_request") == stage.events.count("after_request") == 1
    if answer == {"decisions": [{"type": "reject", "message": "not on Fridays"}]}:
        assert "not on Fridays" in stage.played.sent[-1][-1]


async def test_each_of_several_calls_has_its_own_question_and_the_others_run_meanwhile() -> None:
    stage = Stage(Call([("shell", {"command": "ls"}), ("read", {"path": "a"}), ("shell", {"command": "rm"})]))
    stage.hooks.add(lambda step: ask(step.args["command"]), on="before_tool", tool="shell", name="judge")
    state = await stage.run()
    asked = {one.value["action_requests"][0]["description"]: one.id for one in state["__interrupt__"]}
    assert stage.bench.ran == [("read", {"path": "a"})]
    await stage.run(Command(resume={asked["ls"]: False, asked["rm"]: True}))
    assert stage.bench.ran[1:] == [("shell", {"command": "rm"})]
    (batch,) = stage.steps("after_tool_batch")
    assert sorted(one["outcome"] for one in batch.results) == ["denied", "ok", "ok"]


async def test_a_run_that_is_resumed_elsewhere_is_judged_again_as_a_continuation() -> None:
    saver = InMemorySaver()
    here = Stage(LS, checkpointer=saver)
    here.hooks.add(lambda step: ask("May it?"), on="before_tool", name="judge")
    state = await here.run()
    there = Stage(checkpointer=saver)
    there.hooks.add(lambda step: ask("May it?"), on="before_tool", name="judge")
    state = await there.run(Command(resume={state["__interrupt__"][0].id: True}))
    assert (there.bench.ran, last(state)) == ([("shell", {"command": "ls"})], "Done.")
    (given,) = there.steps("before_input")
    assert (given.source, given.input) == ("continuation", "Go.")
    assert there.events.count("after_request") == 1


async def test_a_request_that_comes_instead_of_an_answer_ends_the_one_that_waits() -> None:
    stage = Stage(LS, Say("Other."))
    stage.hooks.add(lambda step: ask("May it?"), on="before_tool", name="judge")
    await stage.run()
    await stage.run()
    ends = stage.steps("after_request")
    assert "another request came" in ends[0].error
    assert ends[1].error is None
    assert not stage.fairlead._active


async def test_a_question_without_a_thread_is_a_no() -> None:
    stage = Stage(LS, checkpointer=None)
    stage.config = {}
    stage.hooks.add(lambda step: ask("May it?"), on="before_tool", name="judge")
    assert last(await stage.run()) == "Done."
    assert stage.bench.ran == []
    assert "thread_id" in stage.played.sent[-1][-1]


@pytest.mark.parametrize("sync", [False, True])
async def test_a_tool_that_interrupts_is_told_of_once_it_is_over(sync: bool) -> None:
    @tool
    def book(day: str) -> str:
        """Book a day."""
        return f"booked {day} for {interrupt('For whom?')}"

    stage = Stage(call("book", day="Monday"), tools=[book])
    state = await stage.run(sync=sync)
    assert stage.steps("after_tool") == []
    await stage.run(Command(resume={state["__interrupt__"][0].id: "Ann"}), sync=sync)
    assert [step.output for step in stage.steps("after_tool")] == ["booked Monday for Ann"]


@pytest.mark.parametrize("sync", [False, True])
async def test_a_subagent_that_is_interrupted_goes_on_where_it_was(sync: bool) -> None:
    stage = Stage()
    inner = create_agent(
        Scripted(model_name="helper", script=[LS, Say("Helped.")], played=stage.played),
        [a_tool(stage.bench.shell)], middleware=[stage.fairlead], name="helper",
    )  # fmt: skip

    @tool
    def helper(message: str) -> str:
        """Ask the helper."""
        return last(inner.invoke({"messages": [HumanMessage(message)]}))

    outer = create_agent(
        Scripted(script=[call("helper", message="Help.")], played=stage.played),
        [helper], middleware=[stage.fairlead], checkpointer=InMemorySaver(),
    )  # fmt: skip
    stage.agent = outer
    stage.hooks.add(lambda step: ask("May it?"), on="before_tool", tool="shell", name="judge")
    state = await stage.run(sync=sync)
    state = await stage.run(Command(resume={state["__interrupt__"][0].id: True}), sync=sync)
    assert (last(state), stage.bench.ran) == ("Done.", [("shell", {"command": "ls"})])
    assert stage.events.count("subagent_start") == stage.events.count("subagent_stop") == 1
    assert not stage.fairlead._active


async def test_a_request_instead_of_an_answer_ends_a_waiting_subagent_too() -> None:
    stage = Stage()
    inner = create_agent(
        Scripted(model_name="helper", script=[LS, Say("Helped.")], played=stage.played),
        [a_tool(stage.bench.shell)],
        middleware=[stage.fairlead],
    )

    @tool
    async def helper(message: str) -> str:
        """Ask the helper."""
        return last(await inner.ainvoke({"messages": [HumanMessage(message)]}))

    stage.agent = create_agent(
        Scripted(script=[call("helper", message="Help.")], played=stage.played),
        [helper],
        middleware=[stage.fairlead],
        checkpointer=InMemorySaver(),
    )
    stage.hooks.add(lambda step: ask("May it?"), on="before_tool", tool="shell", name="judge")
    await stage.run()
    await stage.run()
    assert stage.events.count("subagent_stop") == 1
    assert not stage.fairlead._active


async def test_a_subagent_that_is_resumed_elsewhere_may_be_refused_there() -> None:
    saver = InMemorySaver()

    def build(stage: Stage) -> None:
        inner = create_agent(
            Scripted(model_name="helper", script=[LS, Say("Helped.")], played=stage.played),
            [a_tool(stage.bench.shell)],
            middleware=[stage.fairlead],
        )

        @tool
        async def helper(message: str) -> str:
            """Ask the helper."""
            return last(await inner.ainvoke({"messages": [HumanMessage(message)]}))

        script = [call("helper", message="Help.")] if stage is here else []
        model = Scripted(script=script, played=stage.played)
        stage.agent = create_agent(model, [helper], middleware=[stage.fairlead], checkpointer=saver)
        stage.hooks.add(lambda step: ask("May it?"), on="before_tool", tool="shell", name="judge")

    here, there = Stage(), Stage()
    build(here)
    build(there)
    there.hooks.add(lambda step: deny("no helpers here"), on="subagent_start", name="no-helpers")
    state = await here.run()
    await there.run(Command(resume={state["__interrupt__"][0].id: True}))
    assert there.bench.ran == []


# --- threads and messages ---------------------------------------------------------------------------


async def test_a_refused_message_is_neither_kept_nor_sent_later() -> None:
    stage = Stage(Say("Hello."))
    stage.hooks.add(lambda step: deny("no") if "secret" in step.input else None, on="before_input", name="judge")
    state = await stage.run({"messages": [HumanMessage("a secret")]})
    assert shown(state["messages"]) == ["assistant: [Message rejected: no]"]
    state = await stage.run({"messages": [HumanMessage("Hi.")]})
    assert stage.played.sent == [["user: Hi."]]
    assert last(state) == "Hello."


async def test_what_hooks_say_stays_in_the_conversation_of_the_thread() -> None:
    stage = Stage(LS)
    left = ["Slow."]
    stage.hooks.add(lambda step: inject(left.pop()) if left else None, on="after_tool", name="judge")
    await stage.run()
    state = await stage.run({"messages": [HumanMessage("And now?")]})
    told = "user: [judge] Slow."
    assert [line for line in stage.played.sent[-1] if told in line] == [told]
    assert shown(state["messages"]).index(told) == 3


async def test_a_changed_input_is_what_the_thread_keeps() -> None:
    stage = Stage()
    stage.hooks.add(lambda step: change(input="Stay."), on="before_input", name="judge")
    state = await stage.run()
    assert shown(state["messages"]) == ["user: Stay.", "assistant: Done."]


async def test_the_key_of_a_turn_is_private() -> None:
    stage = Stage()
    assert set(await stage.run()) == {"messages"}


async def test_runs_at_once_on_one_thread_without_a_checkpointer_do_not_mix() -> None:
    stage = Stage(*[LS] * 3, checkpointer=None)
    states = await stage.agent.abatch([GO] * 3, stage.config)
    assert [last(state) for state in states] == ["Done."] * 3
    assert [stage.events.count(name) for name in ("session_start", "before_request", "after_request")] == [1, 3, 3]
    assert {step.error for step in stage.steps("after_request")} == {None}
    assert not stage.fairlead._active


async def test_turns_that_are_never_resumed_are_bounded_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "SESSIONS", 2)
    stage = Stage(*[LS] * 4)
    stage.hooks.add(lambda step: ask("May it?"), on="before_tool", name="judge")
    for number in range(4):
        stage.config = {"configurable": {"thread_id": f"t{number}"}}
        await stage.run()
    assert len(stage.fairlead._active) == 2
    assert [step.error for step in stage.steps("after_request")] == ["it was left before its end"] * 2
    await stage.fairlead.aclose()
    assert stage.events.count("after_request") == stage.events.count("session_end") == 4


# --- streams ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", ["after_model", "before_response", "before_output"])
async def test_no_stream_of_any_kind_shows_what_a_hook_takes_out(event: str) -> None:
    field = {"after_model": "output", "before_response": "response", "before_output": "content"}[event]
    stage = Stage(Say("It is hunter2."), checkpointer=None)
    stage.hooks.add(lambda step: change(**{field: "It is ***."}), on=event, name="judge")
    modes: Any = ["messages", "updates", "values", "debug"]
    seen = [str(part) for part in stage.agent.stream(GO, stream_mode=modes)]
    stage.script.append(Say("It is hunter2."))
    seen += [str(part) async for part in stage.agent.astream_events(GO, version="v2")]
    stage.script.append(Say("It is hunter2."))
    seen += [str(part) async for part in stage.agent.astream(GO, stream_mode=modes)]
    assert "hunter2" not in "".join(seen)
    assert "***" in "".join(seen)


async def test_a_stream_that_no_hook_judges_comes_word_by_word() -> None:
    stage = Stage(Say("One two three."))
    stage.hooks.add(lambda step: None, on="before_tool", name="judge")
    pieces = [str(part[0].text) async for part in stage.agent.astream(GO, stage.config, stream_mode="messages")]
    assert [piece for piece in pieces if piece] == ["One", " two", " three."]


# --- other middleware -------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False])
async def test_another_middleware_that_ends_the_run_ends_the_turn(first: bool) -> None:
    stage = Stage(LS, LS, LS, middleware=[ModelCallLimitMiddleware(run_limit=1)], first=first)
    await stage.run()
    assert (len(stage.bench.ran), len(stage.played.sent)) == (1, 1)
    (end,) = stage.steps("before_turn_end")
    assert end.voluntary is False
    assert stage.events.count("after_request") == 1


async def test_what_another_middleware_ends_can_be_extended() -> None:
    class Enough(AgentMiddleware):
        @hook_config(can_jump_to=["end"])
        async def abefore_model(self, state: Any, runtime: Any) -> Any:
            return {"jump_to": "end"} if isinstance(state["messages"][-1], ToolMessage) else None

    stage = Stage(LS, middleware=[Enough()])
    left = ["Say more."]
    stage.hooks.add(lambda step: extend(left.pop()) if left else None, on="before_turn_end", name="judge")
    assert last(await stage.run()) == "Done."
    assert stage.played.sent[-1][-1] == "user: Say more."


async def test_another_middleware_that_goes_on_after_the_end_makes_a_continuation() -> None:
    class Again(AgentMiddleware):
        @hook_config(can_jump_to=["model"])
        async def aafter_model(self, state: Any, runtime: Any) -> Any:
            if last(state) == "First.":
                return {"jump_to": "model", "messages": [HumanMessage("Really?")]}
            return None

    stage = Stage(Say("First."), Say("Second."), middleware=[Again()])
    assert last(await stage.run()) == "Second."
    assert [step.input for step in stage.steps("before_input")] == ["Go.", "Really?"]
    assert stage.events.count("after_request") == 2


async def test_a_middleware_that_retries_makes_another_call_that_is_judged() -> None:
    stage = Stage(call("flaky", why="busy"), middleware=[ToolRetryMiddleware(max_retries=1, initial_delay=0)])
    assert last(await stage.run()) == "Done."
    assert [step.outcome for step in stage.steps("after_tool")] == ["error", "ok"]
    assert stage.events.count("before_tool") == 2


async def test_langchain_s_own_approvals_go_on_beside_ours() -> None:
    stage = Stage(LS, middleware=[HumanInTheLoopMiddleware(interrupt_on={"shell": True})])
    state = await stage.run()
    answer = {"decisions": [{"type": "approve"}]}
    state = await stage.run(Command(resume={state["__interrupt__"][0].id: answer}))
    assert (last(state), len(stage.bench.ran)) == ("Done.", 1)
    assert stage.events.count("before_request") == 1


# --- tools ------------------------------------------------------------------------------------------


class Counted(AgentState):
    count: int


@tool
def count(runtime: ToolRuntime) -> Command:
    """Count."""
    said = ToolMessage("the secret is 1", tool_call_id=runtime.tool_call_id)
    return Command(update={"count": 1, "messages": [said]})


@pytest.mark.parametrize("sync", [False, True])
async def test_a_command_keeps_its_other_updates_when_its_words_are_changed(sync: bool) -> None:
    stage = Stage(call("count"), call("count"), tools=[count], state_schema=Counted)
    stage.hooks.add(lambda step: change(output="***") if step.output else None, on="after_tool", name="judge")
    state = await stage.run(sync=sync)
    assert state["count"] == 1
    assert "secret" not in str(stage.played.sent)
    assert "tool: ***" in stage.played.sent[-1]


async def test_a_withheld_command_does_nothing_else_either() -> None:
    stage = Stage(call("count"), tools=[count], state_schema=Counted)
    stage.hooks.add(lambda step: deny("no"), on="after_tool", name="judge")
    assert "count" not in await stage.run()


async def test_a_tool_that_fails_in_its_message_is_an_error_and_says_what_it_said() -> None:
    stage = Stage(call("shell", command=["no", "text"]))
    await stage.run()
    (step,) = stage.steps("after_tool")
    assert (step.outcome, step.is_error) == ("error", True)
    assert "Error invoking tool 'shell'" in stage.played.sent[-1][-1]


async def test_an_unknown_tool_is_an_error() -> None:
    stage = Stage(call("nothing"))
    await stage.run()
    assert [step.outcome for step in stage.steps("after_tool")] == ["error"]


async def test_a_failing_call_ends_the_turn_after_the_others_of_its_batch() -> None:
    stage = Stage(Call([("slow", {"name": "one"}), ("fail", {"why": "broken"})]))
    with pytest.raises(ValueError, match="broken"):
        await stage.run()
    assert sorted(step.outcome for step in stage.steps("after_tool")) == ["aborted", "error"]
    assert stage.events.index("turn_end") > max(at for at, name in enumerate(stage.events) if name == "after_tool")
    (end,) = stage.steps("after_request")
    assert "broken" in end.error
    assert not stage.fairlead._active


async def test_a_cancelled_run_is_told_of() -> None:
    started = asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return "never"

    stage = Stage(call("wait"), tools=[wait])
    work = asyncio.create_task(stage.run())
    await started.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert [step.outcome for step in stage.steps("after_tool")] == ["aborted"]
    assert [step.error for step in stage.steps("after_request")] == ["cancelled"]


async def test_hints_of_mcp_tools_say_how_safe_they_are() -> None:
    tools = [a_tool(function) for function in (Workbench().shell, Workbench().read)]
    tools[0].metadata = {"destructiveHint": True}
    tools[1].metadata = {"readOnlyHint": True}
    stage = Stage(Call([("shell", {"command": "x"}), ("read", {"path": "a"})]), tools=tools)
    await stage.run()
    assert {step.tool: step.safety for step in stage.steps("before_tool")} == {
        "shell": "destructive", "read": "read_only",
    }  # fmt: skip


async def test_a_tool_that_answers_the_user_directly_is_judged_as_the_response() -> None:
    @tool(return_direct=True)
    def tell() -> str:
        """Tell."""
        return "It is hunter2."

    stage = Stage(call("tell"), tools=[tell])
    stage.hooks.add(lambda step: change(response="It is ***."), on="before_response", name="judge")
    state = await stage.run()
    assert (last(state), len(stage.played.sent)) == ("It is ***.", 1)
    assert stage.events.count("after_request") == 1


@pytest.mark.parametrize("event", ["subagent_start", "subagent_stop"])
@pytest.mark.parametrize("sync", [False, True])
async def test_an_abort_in_a_subagent_fails_the_whole_request(event: str, sync: bool) -> None:
    decisions: list[Any] = []
    hooks = Hooks(journal=decisions.append)
    hooks.add(lambda step: abort("no more"), on=event, name="judge")
    played = await Driver().play(hooks, call("helper", message="Help."), helper=[Say("Helped.")], sync=sync)
    assert isinstance(played.error, HookAborted)
    events = [decision.event for decision in decisions]
    assert events.count("subagent_start") == 1
    assert events.count("subagent_stop") == (1 if event == "subagent_stop" else 0)
    assert events.count("before_request") == events.count("after_request")


# --- handing over -----------------------------------------------------------------------------------


def two_agents(stage: Stage) -> Any:
    """One agent that hands the work to another, in a larger graph."""

    @tool
    def transfer(runtime: ToolRuntime) -> Command:
        """Hand over."""
        said = ToolMessage("handed over", tool_call_id=runtime.tool_call_id)
        messages = [*runtime.state["messages"], said]
        return Command(goto="second", update={"messages": messages}, graph=Command.PARENT)

    one = create_agent(
        Scripted(script=[call("transfer"), Say("Alone.")], played=stage.played), [transfer],
        middleware=[stage.fairlead], name="one",
    )  # fmt: skip
    two = create_agent(
        Scripted(model_name="second", script=[LS, Say("Second.")], played=stage.played),
        [a_tool(stage.bench.shell)], middleware=[stage.fairlead], name="second",
    )  # fmt: skip
    graph = StateGraph(MessagesState)
    graph.add_node("one", one, destinations=("second",))
    graph.add_node("second", two)
    graph.add_edge(START, "one")
    return graph.compile()


@pytest.mark.parametrize("sync", [False, True])
async def test_an_agent_that_is_handed_the_work_goes_on_with_the_turn(sync: bool) -> None:
    stage = Stage()
    stage.agent, stage.config = two_agents(stage), {}
    state = await stage.run(sync=sync)
    assert last(state) == "Second."
    assert [stage.events.count(name) for name in ("before_request", "turn_start", "after_request")] == [1, 1, 1]
    assert [step.agent_name for step in stage.steps("subagent_start")] == ["second"]
    assert [step.agent.name for step in stage.steps("before_tool")][1] == "second"
    assert not stage.fairlead._active
    assert not stage.fairlead._handed


async def test_a_handover_can_be_refused() -> None:
    stage = Stage()
    stage.agent, stage.config = two_agents(stage), {}
    stage.hooks.add(lambda step: deny("not that one"), on="subagent_start", name="judge")
    assert last(await stage.run()) == "Alone."
    assert "not that one" in stage.played.sent[1][-1]


# --- structured output ------------------------------------------------------------------------------


class Weather(BaseModel):
    sky: str


SKY = call("Weather", sky="grey")


@pytest.mark.parametrize("tools", [None, []])
async def test_a_structured_response_ends_the_turn(tools: Any) -> None:
    stage = Stage(SKY, response_format=ToolStrategy(Weather), tools=tools)
    state = await stage.run()
    assert state["structured_response"] == Weather(sky="grey")
    assert [step.response for step in stage.steps("before_response")] == ['{"sky":"grey"}']
    assert stage.events.count("after_request") == 1
    assert "before_tool" not in stage.events


async def test_a_structured_response_that_is_refused_is_not_given() -> None:
    stage = Stage(SKY, response_format=ToolStrategy(Weather))
    stage.hooks.add(lambda step: deny("no weather"), on="before_response", name="judge")
    state = await stage.run()
    assert state.get("structured_response") is None
    assert "grey" not in str(state["messages"])
    assert last(state) == "[Response filtered: no weather]"


async def test_a_stopped_agent_that_owes_a_structured_response_does_not_go_on_for_ever() -> None:
    stage = Stage(SKY, response_format=ToolStrategy(Weather), tools=[])
    stage.hooks.add(lambda step: stop("enough"), on="before_model", name="judge")
    # In older versions such a graph ends with a structured response only.
    said = [str(one) for one in await asyncio.gather(stage.run(), return_exceptions=True)]
    assert "enough" in said[0]
    assert stage.played.sent == []


# --- models -----------------------------------------------------------------------------------------


async def test_a_model_of_an_unknown_name_fails_the_request() -> None:
    stage = Stage()
    stage.hooks.add(lambda step: change(model="no-such-model"), on="before_model", name="judge")
    with pytest.raises(UnknownName, match="no-such-model"):
        await stage.run()
    (end,) = stage.steps("after_request")
    assert "no-such-model" in end.error


# --- tool nodes -------------------------------------------------------------------------------------


class Node:
    """A graph of one's own: a model, and a tool node."""

    def __init__(self, *script: Any, **options: Any) -> None:
        self.decisions: list[Any] = []
        self.hooks = Hooks(journal=self.decisions.append)
        self.played, self.bench = Played(), Workbench()
        self.fairlead = Fairlead(self.hooks)
        self.script = list(script)
        model = Scripted(script=self.script, played=self.played)
        graph = StateGraph(MessagesState)
        graph.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
        tools = [a_tool(function) for function in self.bench.tools]
        graph.add_node("tools", self.fairlead.tool_node(tools, **options))
        graph.add_edge(START, "model")
        graph.add_conditional_edges(
            "model", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
        )
        graph.add_edge("tools", "model")
        self.graph = graph.compile(checkpointer=InMemorySaver())

    async def run(self, given: Any = GO, sync: bool = False, thread: str = "t1") -> Any:
        config: Any = {"configurable": {"thread_id": thread}}
        return self.graph.invoke(given, config) if sync else await self.graph.ainvoke(given, config)


@pytest.mark.parametrize("sync", [False, True])
async def test_a_tool_node_carries_out_what_hooks_say_of_calls(sync: bool) -> None:
    node = Node(Call([("shell", {"command": "rm"}), ("shell", {"command": "ls"}), ("read", {"path": "a"})]))

    def judge(step: Any) -> Any:
        return deny("no rm") if step.target.command == "rm" else change(args={"command": "ls -l"})

    node.hooks.add(judge, on="before_tool", tool="shell", name="judge")
    node.hooks.add(lambda step: inject("Mind the time."), on="after_tool", tool="read", name="clock")
    await node.run(sync=sync)
    assert ("shell", {"command": "ls -l"}) in node.bench.ran
    told = [line for line in node.played.sent[1] if line.startswith("tool:")]
    assert "no rm" in told[0]
    assert told[1:] == ["tool: ran ls -l", "tool: contents of a\n\n[clock] Mind the time."]
    assert 'assistant: calls shell {"command": "ls"}' in node.played.sent[1]
    assert {d.step.host for d in node.decisions} == {"langgraph"}
    assert {d.step.session_id for d in node.decisions} == {"t1"}


WHY = "because of 4711"
NODE_CELLS: dict[tuple[str, str], tuple[Any, Any]] = {
    ("tool_requested", "context"): (inject(WHY), lambda ran, told: ran and WHY in told),
    ("before_tool", "deny"): (deny(WHY), lambda ran, told: not ran and WHY in told),
    ("before_tool", "allow"): (allow(), lambda ran, told: ran),
    ("before_tool", "args"): (change(args={"command": WHY}), lambda ran, told: ran == [("shell", {"command": WHY})]),
    ("before_tool", "result"): (answer(WHY), lambda ran, told: not ran and WHY in told),
    ("before_tool", "is_error"): (change(result=WHY, is_error=True), lambda ran, told: not ran and WHY in told),
    ("before_tool", "context"): (inject(WHY), lambda ran, told: ran and WHY in told),
    ("before_permission", "deny"): (deny(WHY), lambda ran, told: not ran and WHY in told),
    ("before_permission", "allow"): (allow(), lambda ran, told: ran),
    ("before_permission", "resolved"): (change(resolved=False), lambda ran, told: not ran),
    ("before_permission", "context"): (inject(WHY), lambda ran, told: ran and WHY in told),
    ("after_permission", "context"): (inject(WHY), lambda ran, told: ran and WHY in told),
    ("after_tool", "deny"): (deny(WHY), lambda ran, told: ran and WHY in told and "ran ls" not in told),
    ("after_tool", "output"): (change(output=WHY), lambda ran, told: ran and told == f"tool: {WHY}"),
    ("after_tool", "context"): (inject(WHY), lambda ran, told: ran and WHY in told and "ran ls" in told),
}


def test_the_table_of_a_tool_node_says_what_was_tried() -> None:
    wanted = {(event, part) for event, can in adapter.TOOL_NODE.capabilities().items() for part in can}
    elsewhere = {"abort", "ask", "retry"}
    assert {cell for cell in wanted if cell[1] not in elsewhere} == set(NODE_CELLS)


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("cell", NODE_CELLS, ids=lambda cell: "-".join(cell))
async def test_cell_of_a_tool_node(cell: tuple[str, str], sync: bool) -> None:
    node, (said, seen) = Node(LS), NODE_CELLS[cell]
    node.hooks.add(lambda step: said, on=cell[0], name="judge")
    await node.run(sync=sync)
    assert seen(node.bench.ran, node.played.sent[1][-1]), node.played.sent
    assert not any(decision.unsupported for decision in node.decisions)


@pytest.mark.parametrize("event", [event for event, can in adapter.TOOL_NODE.can.items() if "abort" in can])
async def test_an_abort_leaves_a_tool_node(event: str) -> None:
    node = Node(LS)
    node.hooks.add(lambda step: abort(WHY), on=event, name="judge")
    with pytest.raises(HookAborted, match=WHY):
        await node.run()


@pytest.mark.parametrize("event", ["before_tool", "before_permission"])
@pytest.mark.parametrize("sync", [False, True])
async def test_a_tool_node_asks_by_an_interrupt(event: str, sync: bool) -> None:
    node = Node(LS)
    node.hooks.add(lambda step: ask("May it?"), on=event, name="judge")
    state = await node.run(sync=sync)
    state = await node.run(Command(resume={state["__interrupt__"][0].id: True}), sync=sync)
    assert (last(state), len(node.bench.ran)) == ("Done.", 1)


@pytest.mark.parametrize("sync", [False, True])
async def test_a_tool_node_asks_what_it_has_not_asked_yet(sync: bool) -> None:
    node, judged = Node(LS), iter(range(9))
    node.hooks.add(lambda step: ask("Spend?"), on="before_tool", name="budget")
    node.hooks.add(lambda step: ask("Delete?") if next(judged) else None, on="before_tool", name="ops")
    state, shown = await node.run(sync=sync), []
    while state.get("__interrupt__"):
        assert node.bench.ran == []
        shown.append(state["__interrupt__"][0].value["action_requests"][0]["description"])
        state = await node.run(Command(resume={state["__interrupt__"][0].id: True}), sync=sync)
    assert (shown, len(node.bench.ran)) == (["Spend?", "[budget] Spend?\n[ops] Delete?"], 1)


async def test_an_approval_in_a_tool_node_is_for_the_arguments_that_were_shown() -> None:
    node, numbers = Node(LS), iter(range(9))
    node.hooks.add(lambda step: change(args={"command": f"echo {next(numbers)}"}), on="before_tool", name="other")
    node.hooks.add(lambda step: ask("Sure?"), on="before_tool", name="asks")
    state = await node.run()
    await node.run(Command(resume={state["__interrupt__"][0].id: True}))
    assert node.bench.ran == []


async def test_a_tool_node_does_not_ask_about_one_of_several_calls() -> None:
    node = Node(Call([("shell", {"command": "ls"}), ("read", {"path": "a"})]))
    node.hooks.add(lambda step: ask("May it?"), on="before_tool", tool="shell", name="judge")
    assert last(await node.run()) == "Done."
    assert node.bench.ran == [("read", {"path": "a"})]
    assert "called alone" in str(node.played.sent[1])


async def test_a_tool_node_says_that_it_cannot_stop_the_turn_and_does_not_run_the_call() -> None:
    node = Node(LS)
    node.hooks.add(lambda step: stop("enough"), on="before_tool", name="judge")
    await node.run()
    assert node.bench.ran == []
    assert [d.unsupported for d in node.decisions if d.event == "before_tool"] == [("stop",)]


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("handle", [None, True, "it failed", ValueError, (ValueError,), lambda error: "it failed"])
async def test_an_abort_is_no_error_of_the_tool_however_those_are_handled(handle: Any, sync: bool) -> None:
    node = Node(LS, **({} if handle is None else {"handle_tool_errors": handle}))
    node.hooks.add(lambda step: abort("no more"), on="before_tool", name="judge")
    with pytest.raises(HookAborted, match="no more"):
        await node.run(sync=sync)


@pytest.mark.parametrize("sync", [False, True])
async def test_errors_of_tools_are_handled_as_the_user_wants(sync: bool) -> None:
    node = Node(call("fail", why="broken"), handle_tool_errors=(ValueError,))
    assert last(await node.run(sync=sync)) == "Done."
    assert "ValueError('broken')" in node.played.sent[1][-1]
    assert [d.step.outcome for d in node.decisions if d.event == "after_tool"] == ["error"]
    node = Node(call("fail", why="broken"), handle_tool_errors=(KeyError,))
    with pytest.raises(ValueError, match="broken"):
        await node.run(sync=sync)


async def test_a_tool_node_tries_again_when_a_hook_says_so() -> None:
    node = Node(call("flaky", why="busy"), handle_tool_errors=True)
    node.hooks.add(lambda step: retry() if step.is_error else None, on="after_tool", name="judge")
    await node.run()
    assert node.played.sent[1][-1] == "tool: worked"


# --- the adapter ------------------------------------------------------------------------------------


async def test_leaving_it_ends_its_sessions() -> None:
    decisions: list[Any] = []
    async with Fairlead(Hooks(journal=decisions.append), session_id="mine", user_id="ann") as fairlead:
        played = await Driver().play(fairlead.sessions.hooks, LS, adapter=fairlead)
    assert played.output == "Done."
    assert {(d.step.session_id, d.step.user_id) for d in decisions} == {("mine", "ann")}
    assert [d.event for d in decisions][-1] == "session_end"


def test_async_hooks_are_carried_out_where_nothing_can_be_awaited() -> None:
    async def judge(step: Any) -> Any:
        await asyncio.sleep(0)
        return deny("no")

    stage = Stage(LS)
    stage.hooks.add(judge, on="before_tool", name="judge")
    stage.agent.invoke(GO, stage.config)
    assert stage.bench.ran == []
    assert isinstance(stage.agent.get_state(stage.config).values["messages"][-1], AIMessage)
    stage.fairlead.close()
    assert stage.events[-1] == "session_end"
