"""What is particular to pydantic-ai."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from driver_pydantic_ai import run_sync, sent
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, exceptions
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import BinaryContent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturn
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, RunContext, Tool, ToolDefinition
from pydantic_ai.toolsets import ExternalToolset
from pydantic_ai.usage import RequestUsage, UsageLimits

from fairlead import (
    HookAborted,
    Hooks,
    UnknownName,
    abort,
    allow,
    answer,
    ask,
    change,
    current_session,
    deny,
    extend,
    inject,
    stop,
)
from fairlead.hosts.frameworks.pydantic_ai import Fairlead, NoOutput

Reply = str | ToolCallPart | list[ToolCallPart]


class Stage:
    """A scripted model, hooks, and what came of it."""

    def __init__(self, *script: Reply) -> None:
        self.script = list(script)
        self.decisions: list[Any] = []
        self.hooks = Hooks(journal=self.decisions.append)
        self.fairlead = Fairlead(self.hooks)
        self.sent: list[list[str]] = []
        self.ran: list[Any] = []

    def add(self, said: Any, on: str, **options: Any) -> None:
        """A hook that says something."""
        self.hooks.add(said if callable(said) else lambda step: said, on=on, **{"name": "judge", **options})

    def next(self, messages: list[ModelMessage], info: AgentInfo) -> list[Any]:
        self.sent.append(sent(messages, info))
        said = self.script.pop(0) if self.script else "Done."
        return said if isinstance(said, list) else [TextPart(said) if isinstance(said, str) else said]

    @property
    def model(self) -> FunctionModel:
        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
            for number, part in enumerate(self.next(messages, info)):
                if isinstance(part, TextPart):
                    for word in part.content.split(" "):
                        yield f"{word} "
                else:
                    yield {
                        number: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)
                    }

        def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            return ModelResponse(self.next(messages, info), usage=RequestUsage(input_tokens=10, output_tokens=1))

        return FunctionModel(reply, stream_function=stream, model_name="first")

    def agent(self, *tools: Any, output_type: Any = str, **options: Any) -> Agent[Any, Any]:
        options = {"name": "main", "capabilities": [self.fairlead], **options}
        return Agent(self.model, tools=tools, output_type=output_type, **options)

    def shell(self, command: str) -> str:
        """Run a command."""
        self.ran.append(command)
        return f"ran {command}"

    def steps(self, event: str) -> list[Any]:
        return [decision.step for decision in self.decisions if decision.event == event]

    @property
    def events(self) -> list[str]:
        return [decision.event for decision in self.decisions]


LS = ToolCallPart("shell", {"command": "ls"}, "c1")


class City(BaseModel):
    name: str
    country: str


ROME = {"name": "Rome", "country": "Italy"}


def final(**args: Any) -> ToolCallPart:
    return ToolCallPart("final_result", args)


async def run(agent: Agent[Any, Any]) -> Any:
    return (await agent.run("Where?")).output


async def run_streaming(agent: Agent[Any, Any]) -> Any:
    async with agent.run_stream("Where?") as stream:
        return await stream.get_output()


BOTH = pytest.mark.parametrize("running", [run, run_streaming])


# --- structured output ------------------------------------------------------------------------------


@pytest.mark.parametrize("native", [False, True])
@BOTH
async def test_an_output_that_is_no_text_is_shown_as_json_and_can_be_changed(
    running: Callable[..., Any], native: bool
) -> None:
    stage = Stage(json.dumps(ROME) if native else final(**ROME))
    stage.add(lambda step: change(content=step.content.replace("Rome", "Paris")), on="before_output")
    output = await running(stage.agent(output_type=NativeOutput(City) if native else City))
    (decision,) = [decision for decision in stage.decisions if decision.event == "before_output"]
    assert json.loads(decision.original.content) == ROME
    assert output == City(name="Paris", country="Italy")


@BOTH
@pytest.mark.parametrize("event", ["before_response", "before_output"])
async def test_an_output_that_is_kept_back_is_no_output(running: Callable[..., Any], event: str) -> None:
    stage = Stage(final(**ROME))
    stage.add(deny("secret"), on=event)
    with pytest.raises(NoOutput):
        await running(stage.agent(output_type=City))


@BOTH
async def test_a_stop_has_no_output_of_another_type_to_give(running: Callable[..., Any]) -> None:
    stage = Stage(LS)
    stage.add(stop("enough"), on="after_tool")
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    with pytest.raises(NoOutput, match="enough"):
        await running(stage.agent(stage.shell, output_type=City))
    assert len(stage.sent) == 1
    assert [step.stop_reason for step in stage.steps("turn_end")] == ["end_turn"]
    assert stage.events[-2:] == ["after_request", "session_end"]


async def test_a_refused_message_has_no_output_of_another_type_either() -> None:
    stage = Stage()
    stage.add(deny("not here"), on="before_input")
    with pytest.raises(NoOutput, match="not here"):
        await stage.agent(output_type=City).run("Where?")
    assert stage.sent == []


async def test_an_answer_in_place_of_the_model_s_may_be_an_output() -> None:
    stage = Stage()
    stage.add(answer(json.dumps(ROME)), on="before_model")
    assert (await stage.agent(output_type=City).run("Where?")).output == City(**ROME)
    assert stage.sent == []


async def test_a_structured_answer_can_be_extended() -> None:
    stage = Stage(final(name="Rome", country="?"), final(**ROME))
    stage.add(lambda step: extend("Which country?") if not step.continues_so_far else None, on="before_turn_end")
    result = await stage.agent(output_type=City).run("Where?")
    assert result.output == City(**ROME)
    assert "user: Which country?" in stage.sent[1]


async def test_an_output_that_is_not_valid_is_asked_for_again_by_pydantic_ai() -> None:
    stage = Stage(final(name="Rome"), final(**ROME))
    watched: list[str] = []
    stage.hooks.add(lambda step: watched.append(step.event), on="*", phase="observe", name="watch")
    result = await stage.agent(output_type=City).run("Where?")
    assert result.output == City(**ROME)
    assert (watched.count("before_model"), watched.count("before_response"), watched.count("turn_end")) == (2, 1, 1)


async def test_an_output_tool_is_no_tool_to_hooks() -> None:
    stage = Stage(final(**ROME))
    stage.add(deny("no tools"), on="before_tool")
    assert (await stage.agent(output_type=City).run("Where?")).output == City(**ROME)


# --- streaming --------------------------------------------------------------------------------------


async def by_events(agent: Agent[Any, Any]) -> str:
    async def read() -> str:
        seen = ""
        events = agent.run_stream_events("Go.")
        if hasattr(events, "__aenter__"):
            async with events as stream:
                async for event in stream:
                    seen += repr(event)
        else:
            async for event in events:
                seen += repr(event)
        return seen

    return await read()


async def by_handler(agent: Agent[Any, Any]) -> str:
    seen = []

    async def handle(ctx: Any, events: Any) -> None:
        async for event in events:
            seen.append(repr(event))

    result = await agent.run("Go.", event_stream_handler=handle)
    return "".join([*seen, repr(result.output)])


async def by_nodes(agent: Agent[Any, Any]) -> str:
    seen = ""
    async with agent.iter("Go.") as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for event in stream:
                        seen += repr(event)
    return seen + repr(run.result.output if run.result else None)


async def by_text(agent: Agent[Any, Any]) -> str:
    async with agent.run_stream("Go.") as stream:
        return "".join([piece async for piece in stream.stream_text(delta=True, debounce_by=None)])


WAYS = [by_events, by_handler, by_nodes, by_text]


@pytest.mark.parametrize("stream", WAYS)
@pytest.mark.parametrize("event", ["after_model", "before_response", "before_output"])
async def test_nothing_is_streamed_before_hooks_have_spoken(stream: Callable[..., Any], event: str) -> None:
    field = {"after_model": "output", "before_response": "response", "before_output": "content"}[event]
    stage = Stage(LS, "It is hunter2 .")
    stage.add(lambda step: change(**{field: str(getattr(step, field)).replace("hunter2", "***")}), on=event)
    seen = await stream(stage.agent(stage.shell))
    assert "***" in seen
    assert "hunter2" not in seen
    assert stage.events.count("turn_end") == (1 if event == "turn_end" else stage.events.count("turn_start"))


@pytest.mark.parametrize("stream", WAYS)
async def test_an_answer_is_streamed_as_it_comes_where_hooks_only_watch(stream: Callable[..., Any]) -> None:
    stage = Stage(LS, "One two three.")
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    assert "two " in await stream(stage.agent(stage.shell))
    assert [step.output for step in stage.steps("after_model")][-1].split() == ["One", "two", "three."]
    assert (stage.events.count("turn_end"), stage.events.count("after_request")) == (1, 1)


@pytest.mark.parametrize("stream", WAYS)
async def test_a_stop_ends_a_stream_with_its_reason(stream: Callable[..., Any]) -> None:
    stage = Stage(LS, LS)
    stage.add(stop("enough"), on="after_tool")
    assert "[Stopped: enough]" in await stream(stage.agent(stage.shell))
    assert len(stage.sent) == 1


async def test_a_stream_that_fails_is_told_of() -> None:
    async def broken(messages: Any, info: Any) -> AsyncIterator[str]:
        yield "One "
        raise RuntimeError("overloaded")

    stage = Stage()
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    agent = Agent(FunctionModel(stream_function=broken), capabilities=[stage.fairlead])
    with pytest.raises(RuntimeError, match="overloaded"):
        await by_text(agent)
    assert ["overloaded" in (step.error or "") for step in stage.steps("after_model")] == [True]
    assert stage.events[-4:] == ["turn_end", "error", "after_request", "session_end"]


async def test_a_stream_that_is_left_early_is_a_cancelled_turn_or_an_ended_one() -> None:
    stage = Stage("One two three.")
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    async with stage.agent().iter("Go.") as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                break
    assert stage.events.count("before_request") == stage.events.count("after_request")
    assert stage.events.count("turn_start") == stage.events.count("turn_end")


async def test_a_cancelled_run_is_told_of() -> None:
    stage = Stage(ToolCallPart("wait", {}))
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    waiting = asyncio.Event()

    async def wait() -> str:
        waiting.set()
        await asyncio.Event().wait()
        return ""

    work = asyncio.create_task(stage.agent(wait).run("Go."))
    await waiting.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert [step.outcome for step in stage.steps("after_tool")] == ["aborted"]
    assert [step.stop_reason for step in stage.steps("turn_end")] == ["cancelled"]
    assert stage.events[-1] == "session_end"


# --- approvals and calls that are left to others ----------------------------------------------------


async def test_a_tool_that_requires_approval_is_judged_before_a_human_is_asked() -> None:
    stage = Stage(LS)
    stage.add(deny("never"), on="before_tool")
    agent = stage.agent(Tool(stage.shell, requires_approval=True), output_type=[str, DeferredToolRequests])
    assert (await agent.run("Go.")).output == "Done."
    assert stage.ran == []


async def test_a_hook_can_grant_what_would_require_approval() -> None:
    stage = Stage(LS)
    stage.add(allow(), on="before_permission")
    agent = stage.agent(Tool(stage.shell, requires_approval=True), output_type=[str, DeferredToolRequests])
    assert (await agent.run("Go.")).output == "Done."
    assert stage.ran == ["ls"]
    assert [step.proposed for step in stage.steps("before_permission")] == ["ask"]


async def asked(agent: Agent[Any, Any], streams: bool, **options: Any) -> tuple[Any, list[ModelMessage]]:
    if not streams:
        result = await agent.run(**options)
        return result.output, result.all_messages()
    async with agent.run_stream(**options) as stream:
        return await stream.get_output(), stream.all_messages()


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("approved", [True, False])
async def test_a_tool_that_requires_approval_is_asked_for_as_ever(approved: bool, streams: bool) -> None:
    stage = Stage(LS)
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    agent = stage.agent(Tool(stage.shell, requires_approval=True), output_type=[str, DeferredToolRequests])
    first, history = await asked(agent, streams, user_prompt="Go.")
    assert [call.tool_name for call in first.approvals] == ["shell"]
    assert (stage.ran, stage.steps("after_tool")) == ([], [])
    results = DeferredToolResults(approvals={"c1": approved})
    second, _ = await asked(agent, streams, message_history=history, deferred_tool_results=results)
    assert second.strip() == "Done."
    assert stage.ran == (["ls"] if approved else [])
    assert [step.outcome for step in stage.steps("after_tool")] == ["ok" if approved else "denied"]
    assert [step.granted for step in stage.steps("after_permission")] == [approved]


async def test_a_hook_can_say_something_where_the_user_only_approves() -> None:
    stage = Stage(LS)
    stage.add(lambda step: change(input="Be quick.") if step.source == "continuation" else None, on="before_input")
    agent = stage.agent(Tool(stage.shell, requires_approval=True), output_type=[str, DeferredToolRequests])
    first = await agent.run("Go.")
    results = DeferredToolResults(approvals={"c1": True})
    await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert stage.sent[1][-2:] == ["tool: ran ls", "user: Be quick."]


async def test_the_human_reads_which_hook_asks_and_why() -> None:
    stage = Stage([LS, ToolCallPart("shell", {"command": "rm"}, "c2")])
    stage.add(lambda step: ask("Really?") if step.target.command == "rm" else None, on="before_tool")
    agent = stage.agent(stage.shell, output_type=[str, DeferredToolRequests])
    first = await agent.run("Go.")
    assert first.output.metadata == {"c2": {"hook": "judge", "reason": "Really?"}}
    assert stage.ran == ["ls"]
    results = DeferredToolResults(approvals={"c2": True})
    second = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert (second.output, stage.ran) == ("Done.", ["ls", "rm"])
    assert {step.session_id for step in stage.steps("after_tool")} <= {d.step.session_id for d in stage.decisions}


async def test_an_agent_that_cannot_be_interrupted_does_not_run_the_call() -> None:
    stage = Stage(LS)
    stage.add(ask("Really?"), on="before_tool")
    with pytest.raises(exceptions.UserError, match="DeferredToolRequests"):
        await stage.agent(stage.shell).run("Go.")
    assert stage.ran == []


EXTERNAL = ToolDefinition(
    name="shell", parameters_json_schema={"type": "object", "properties": {"command": {"type": "string"}}}
)


async def test_a_call_for_other_code_to_run_is_judged_before_it_leaves() -> None:
    stage = Stage(LS)
    stage.add(deny("never"), on="before_tool")
    agent = stage.agent(toolsets=[ExternalToolset([EXTERNAL])], output_type=[str, DeferredToolRequests])
    assert (await agent.run("Go.")).output == "Done."


async def test_what_other_code_gave_for_a_call_is_judged_when_it_comes_back() -> None:
    stage = Stage(LS)
    stage.add(lambda step: change(output=step.output.replace("hunter2", "***")), on="after_tool")
    agent = stage.agent(toolsets=[ExternalToolset([EXTERNAL])], output_type=[str, DeferredToolRequests])
    first = await agent.run("Go.")
    assert [call.args for call in first.output.calls] == [{"command": "ls"}]
    results = DeferredToolResults(calls={"c1": "It is hunter2."})
    second = await agent.run(message_history=first.all_messages(), deferred_tool_results=results)
    assert "tool: It is ***." in stage.sent[1]
    assert "hunter2" not in repr(second.all_messages())


# --- tools ------------------------------------------------------------------------------------------


async def test_a_call_that_cannot_be_made_is_told_of_and_asked_for_again() -> None:
    stage = Stage(ToolCallPart("shell", {"cmd": "ls"}, "c1"), LS)
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    assert (await stage.agent(stage.shell).run("Go.")).output == "Done."
    assert [(step.outcome, dict(step.args)) for step in stage.steps("after_tool")] == [
        ("error", {"cmd": "ls"}), ("ok", {"command": "ls"}),
    ]  # fmt: skip


async def test_a_call_that_cannot_be_made_too_often_ends_the_run_as_ever() -> None:
    stage = Stage(*[ToolCallPart("shell", {"cmd": "ls"}) for _ in range(5)])
    with pytest.raises(exceptions.UnexpectedModelBehavior):
        await stage.agent(stage.shell).run("Go.")
    assert len(stage.sent) == 2


async def test_a_tool_that_is_not_there_is_told_of() -> None:
    stage = Stage(ToolCallPart("rm", {"path": "/"}, "c1"))
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    assert (await stage.agent(stage.shell).run("Go.")).output == "Done."
    assert [(step.tool, step.outcome) for step in stage.steps("after_tool")] == [("rm", "error")]


class Trip(BaseModel):
    to: str
    days: int = 1


async def test_changed_arguments_are_checked_like_the_model_s_own() -> None:
    stage = Stage(ToolCallPart("travel", {"trip": {"to": "Rome"}}, "c1"))
    stage.add(change(args={"trip": {"to": "Paris", "days": "2"}}), on="before_tool")
    await stage.agent(lambda_tool(stage)).run("Go.")
    assert stage.ran == [Trip(to="Paris", days=2)]


async def test_changed_arguments_that_are_not_valid_do_not_reach_the_tool() -> None:
    stage = Stage(ToolCallPart("travel", {"trip": {"to": "Rome"}}, "c1"))
    stage.add(change(args={"trip": {"days": "many"}}), on="before_tool")
    await stage.agent(lambda_tool(stage)).run("Go.")
    assert stage.ran == []
    assert [step.outcome for step in stage.steps("after_tool")] == ["error"]
    assert len(stage.sent) == 2


def lambda_tool(stage: Stage) -> Any:
    def travel(trip: Trip, via: str = "train") -> str:
        stage.ran.append(trip)
        return "away"

    return travel


async def test_all_that_a_tool_gives_the_model_to_read_is_shown_to_hooks() -> None:
    stage = Stage(ToolCallPart("look", {}, "c1"))

    def look() -> ToolReturn:
        return ToolReturn(return_value="seen", content=["It is hunter2."], metadata={"kept": 1})

    stage.add(lambda step: deny("secret") if "hunter2" in str(step.output) else None, on="after_tool")
    result = await stage.agent(look).run("Go.")
    assert "hunter2" not in repr(result.all_messages())
    assert any("secret" in line for line in stage.sent[1])


async def test_what_hooks_do_not_change_passes_as_it_is() -> None:
    stage = Stage(ToolCallPart("look", {}, "c1"))
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")

    def look() -> ToolReturn:
        return ToolReturn(return_value=City(**ROME), content=["A view."], metadata={"kept": 1})

    result = await stage.agent(look).run("Go.")
    (part, *_) = result.all_messages()[2].parts
    assert (part.content, part.metadata) == (City(**ROME), {"kept": 1})
    assert "user: ['A view.']" in stage.sent[1]


async def test_a_tool_that_asks_the_model_to_try_again_is_told_as_an_error() -> None:
    stage = Stage(LS, LS)
    tries = []

    def shell(command: str) -> str:
        tries.append(command)
        if len(tries) == 1:
            raise exceptions.ModelRetry("Say please.")
        return "ran"

    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    assert (await stage.agent(shell).run("Go.")).output == "Done."
    assert [step.outcome for step in stage.steps("after_tool")] == ["error", "ok"]
    assert any("Say please." in line for line in stage.sent[1])


async def test_a_denied_call_does_not_use_up_the_tool_s_retries() -> None:
    stage = Stage(LS, LS, LS, LS)
    stage.add(deny("no"), on="before_tool")
    assert (await stage.agent(stage.shell).run("Go.")).output == "Done."
    assert len(stage.sent) == 5


class Louder(AbstractCapability[Any]):
    """Not ours: it changes what a tool is called with."""

    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> Any:
        return {"command": args["command"].upper()}


@pytest.mark.parametrize("first", [True, False])
async def test_what_another_capability_changes_is_what_hooks_judge(first: bool) -> None:
    stage = Stage(LS)
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    both = [Louder(), stage.fairlead] if first else [stage.fairlead, Louder()]
    await stage.agent(stage.shell, capabilities=both).run("Go.")
    assert stage.ran == ["LS"]
    assert [step.target.command for step in stage.steps("before_tool")] == ["LS"]


class Skipping(AbstractCapability[Any]):
    async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        raise exceptions.SkipToolExecution("It is hunter2.")


async def test_what_another_capability_answers_is_told_of_too() -> None:
    stage = Stage(LS)
    stage.add(lambda step: change(output=step.output.replace("hunter2", "***")), on="after_tool")
    await stage.agent(stage.shell, capabilities=[Skipping(), stage.fairlead]).run("Go.")
    assert len(stage.steps("after_tool")) == 1
    assert "tool: It is ***." in stage.sent[1]


class Forgiving(AbstractCapability[Any]):
    """Not ours: it takes every error for something to get over."""

    async def on_tool_execute_error(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Any) -> Any:
        return "never mind"

    async def on_model_request_error(self, ctx: Any, *, request_context: Any, error: Any) -> ModelResponse:
        return ModelResponse([TextPart("Never mind.")])


@pytest.mark.parametrize("event", ["before_tool", "before_model", "after_model", "before_input"])
async def test_an_abort_ends_the_run_whatever_another_capability_gets_over(event: str) -> None:
    stage = Stage(LS, LS)
    stage.add(abort("no more"), on=event)
    with pytest.raises(HookAborted, match="no more"):
        await stage.agent(stage.shell, capabilities=[Forgiving(), stage.fairlead]).run("Go.")
    assert stage.ran == []


@pytest.mark.ungoverned("A run of an agent without `Fairlead`")
async def test_it_can_be_added_for_one_run() -> None:
    stage = Stage(LS, "Done.", LS)
    stage.add(deny("no"), on="before_tool")
    agent = stage.agent(stage.shell, capabilities=[])
    await agent.run("Go.", capabilities=[stage.fairlead])
    assert stage.ran == []
    await agent.run("Go.")
    assert stage.ran == ["ls"]


async def test_a_tool_of_an_mcp_server_is_known_by_its_hints() -> None:
    stage = Stage(LS)
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")

    async def mark(ctx: Any, tool: ToolDefinition) -> ToolDefinition:
        tool.metadata = {"annotations": {"readOnlyHint": True}}
        return tool

    await stage.agent(Tool(stage.shell, prepare=mark)).run("Go.")
    (step,) = stage.steps("before_tool")
    assert (step.kind, step.target.server, step.safety) == ("shell", "mcp", "read_only")


# --- the conversation -------------------------------------------------------------------------------


async def test_what_hooks_add_stays_in_the_conversation() -> None:
    stage = Stage()
    stage.add(inject("You are on main."), on="before_input")
    result = await stage.agent().run("Go.")
    again = await stage.agent(capabilities=[]).run("And now?", message_history=result.all_messages())
    assert again.output == "Done."
    assert "user: [judge] You are on main." in stage.sent[1]


async def test_a_refused_message_is_not_kept() -> None:
    stage = Stage()
    stage.add(deny("not here"), on="before_input")
    before = (await stage.agent(capabilities=[]).run("Hello.")).all_messages()
    kept = repr(before)
    result = await stage.agent().run("My password is hunter2.", message_history=before)
    assert result.output == "[Message rejected: not here]"
    assert "hunter2" not in repr(result.all_messages())
    assert repr(before) == kept


async def test_an_image_can_be_seen_and_kept() -> None:
    stage = Stage()
    image = BinaryContent(b"1234", media_type="image/png")
    stage.add(lambda step: change(input=["Look, safely:", step.input[1]]), on="before_input")
    result = await stage.agent().run(["Look:", image])
    assert stage.steps("before_input")[0].input[1] == {"kind": "binary", "media_type": "image/png", "size": 4}
    assert result.all_messages()[0].parts[0].content == ["Look, safely:", image]


async def test_a_system_prompt_that_is_a_message_can_be_changed() -> None:
    stage = Stage(LS)
    stage.add(change(system_prompt="Be careful."), on="before_prompt")
    await stage.agent(stage.shell, system_prompt="Be brief.", instructions="Be kind.").run("Go.")
    (decision,) = [decision for decision in stage.decisions if decision.event == "before_prompt"]
    assert decision.original.system_prompt == "Be brief.\n\nBe kind."
    assert [[line for line in sent if line.startswith("system")] for sent in stage.sent] == [
        ["system: Be careful."]
    ] * 2


async def test_an_unknown_model_is_said_to_be_unknown() -> None:
    stage = Stage()
    stage.fairlead.models["second"] = TestModel()
    stage.add(change(model="secnd"), on="before_model")
    with pytest.raises(UnknownName, match="second"):
        await stage.agent().run("Go.")


async def test_a_refused_answer_is_paid_for() -> None:
    stage = Stage("Secret.", "Also secret.", "Fine.")
    stage.add(lambda step: deny("not that") if "ecret" in step.output else None, on="after_model")
    result = await stage.agent().run("Go.")
    usage = result.usage
    assert (result.output, usage.requests, usage.input_tokens) == ("Fine.", 3, 30)
    assert "ecret" not in repr(result.all_messages())


async def test_limits_of_usage_hold() -> None:
    stage = Stage(LS, LS, LS)
    with pytest.raises(exceptions.UsageLimitExceeded):
        await stage.agent(stage.shell).run("Go.", usage_limits=UsageLimits(request_limit=2))
    assert len(stage.sent) == 2


async def test_an_abort_leaves_every_way_of_running() -> None:
    for stream in WAYS:
        stage = Stage(LS)
        stage.add(abort("no more"), on="before_tool")
        with pytest.raises(HookAborted, match="no more"):
            await stream(stage.agent(stage.shell))
        assert stage.ran == []


@pytest.mark.parametrize("event", ["before_response", "before_output", "before_turn_end", "after_model"])
@BOTH
async def test_a_request_that_is_aborted_at_its_end_ends(running: Callable[..., Any], event: str) -> None:
    stage = Stage()
    stage.add(abort("no more"), on=event)
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    with pytest.raises(HookAborted, match="no more"):
        await running(stage.agent())
    assert stage.events[-2:] == ["after_request", "session_end"]
    assert stage.events.count("turn_end") == 1


async def test_a_conversation_goes_on_by_its_history() -> None:
    stage = Stage()
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    async with stage.fairlead:
        first = await stage.agent().run("One.")
        assert stage.events[-1] == "session_end"
        second = await stage.agent().run("Two.", message_history=first.all_messages())
        await stage.agent().run("Three.", message_history=second.all_messages())
    sessions = [step.session_id for step in stage.steps("session_start")]
    assert len(sessions) == 2
    assert sessions[1] == first.all_messages()[0].conversation_id
    assert stage.events.count("session_end") == 2


async def test_one_session_can_be_made_of_all_runs() -> None:
    stage = Stage()
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    async with Fairlead(stage.hooks, session_id="s1", user_id="alice") as fairlead:
        agent = stage.agent(capabilities=[fairlead])
        await asyncio.gather(agent.run("One."), agent.run("Two."))
    assert {(d.step.session_id, d.step.user_id) for d in stage.decisions} == {("s1", "alice")}
    assert (stage.events.count("session_start"), stage.events.count("session_end")) == (1, 1)


# --- other agents -----------------------------------------------------------------------------------


async def test_an_agent_in_an_output_function_is_a_subagent() -> None:
    stage, other = Stage(ToolCallPart("final_result", {"question": "Where?"})), Stage("Rome.")
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    helper = Agent(other.model, name="helper", capabilities=[Fairlead(stage.hooks)])

    async def hand_off(question: str) -> str:
        return str((await helper.run(question)).output)

    result = await stage.agent(output_type=hand_off).run("Go.")
    assert result.output == "Rome."
    (start,) = stage.steps("subagent_start")
    assert (start.agent.name, start.agent.parent) == ("helper", stage.steps("before_request")[0].agent.id)


def test_a_subagent_runs_where_nothing_can_be_awaited() -> None:
    stage, other = Stage(ToolCallPart("travel", {"to": "Rome"}, "c1")), Stage(LS, "There.")
    stage.add(lambda step: deny("no") if step.agent.name == "helper" else None, on="before_tool")
    helper = Agent(other.model, name="helper", capabilities=[stage.fairlead], tools=[other.shell])

    async def travel(to: str) -> str:
        return str((await helper.run(to)).output)

    assert run_sync(stage.agent(travel), "Go.", {}).output == "Done."
    assert other.ran == []
    assert [step.outcome for step in stage.steps("after_tool")] == ["denied", "ok"]
    assert "tool: There." in stage.sent[1]


async def test_a_refused_subagent_that_has_no_output_to_give_fails_its_tool_and_not_the_run() -> None:
    stage, other = Stage(ToolCallPart("travel", {"to": "Rome"}, "c1")), Stage(final(**ROME))
    stage.add(deny("stay"), on="subagent_start")
    helper = Agent(other.model, name="helper", capabilities=[stage.fairlead], output_type=City)

    async def travel(to: str) -> str:
        return str((await helper.run(to)).output)

    assert (await stage.agent(travel).run("Go.")).output == "Done."
    assert other.sent == []
    assert any("may not start: stay" in line for line in stage.sent[1])


async def test_a_subagent_that_fails_has_stopped() -> None:
    stage = Stage(ToolCallPart("travel", {"to": "Rome"}, "c1"))
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")

    def broken(messages: Any, info: Any) -> ModelResponse:
        raise RuntimeError("overloaded")

    helper = Agent(FunctionModel(broken), name="helper", capabilities=[stage.fairlead])

    async def travel(to: str) -> str:
        return str((await helper.run(to)).output)

    with pytest.raises(RuntimeError, match="overloaded"):
        await stage.agent(travel).run("Go.")
    assert stage.events.count("subagent_start") == stage.events.count("subagent_stop") == 1


async def test_an_agent_without_hooks_of_ours_runs_as_ever() -> None:
    stage, other = Stage(ToolCallPart("travel", {"to": "Rome"}, "c1")), Stage("There.")
    stage.hooks.add(lambda step: None, on="*", phase="observe", name="watch")
    helper = Agent(other.model, name="helper", capabilities=[Fairlead(Hooks())])

    async def travel(to: str) -> str:
        return str((await helper.run(to)).output)

    await stage.agent(travel).run("Go.")
    assert stage.steps("subagent_start") == []


# --- many at once -----------------------------------------------------------------------------------


async def test_runs_of_one_agent_at_once_do_not_mix() -> None:
    stage, seen = Stage(), {}

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked = messages[0].parts[0].content
        return ModelResponse([ToolCallPart("shell", {"command": asked}) if len(messages) == 1 else TextPart(asked)])

    def judge(step: Any) -> Any:
        session = current_session()
        assert session is not None
        seen[step.session_id] = session.store.increment("calls")
        return deny("odd") if int(step.target.command) % 2 else None

    stage.add(judge, on="before_tool")
    agent = Agent(FunctionModel(reply), capabilities=[stage.fairlead], tools=[stage.shell])
    results = await asyncio.gather(*(agent.run(str(number), conversation_id=f"c{number}") for number in range(20)))
    assert [result.output for result in results] == [str(number) for number in range(20)]
    assert sorted(map(int, stage.ran)) == list(range(0, 20, 2))
    assert seen == {f"c{number}": 1 for number in range(20)}
    await stage.fairlead.aclose()


async def test_the_context_of_a_run_is_the_tool_s_own() -> None:
    stage = Stage(ToolCallPart("whoami", {}, "c1"))
    stage.add(change(args={}), on="before_tool")

    async def whoami(ctx: RunContext[str]) -> str:
        return f"{ctx.deps} {ctx.tool_call_id}"

    await stage.agent(whoami, deps_type=str).run("Go.", deps="alice")
    assert "tool: alice c1" in stage.sent[1]
