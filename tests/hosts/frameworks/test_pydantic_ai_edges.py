"""pydantic-ai: what odd models, other capabilities and careless callers do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from driver_pydantic_ai import sent
from pydantic_ai import Agent, ModelRetry, PromptedOutput, TextOutput, ToolOutput
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved

from fairlead import Hooks, ask, change, deny
from fairlead.hosts.frameworks.pydantic_ai import Fairlead


class Stage:
    def __init__(self, *script: Any) -> None:
        self.script, self.sent, self.ran, self.seen = list(script), [], [], []
        self.hooks = Hooks(journal=self.seen.append)
        self.fairlead = Fairlead(self.hooks)

    def agent(self, *first: Any, **options: Any) -> Agent[Any, Any]:
        def reply(messages: Any, info: Any) -> ModelResponse:
            self.sent.append(sent(messages, info))
            said = self.script.pop(0) if self.script else "Done."
            return ModelResponse([TextPart(said) if isinstance(said, str) else said])

        async def stream(messages: Any, info: Any) -> Any:
            yield reply(messages, info).parts[0].content

        def shell(command: str) -> str:
            self.ran.append(command)
            return f"ran {command}"

        model = FunctionModel(reply, stream_function=stream)
        return Agent(model, tools=[shell], capabilities=[*first, self.fairlead], **options)

    def add(self, said: Any, on: str, name: str = "judge") -> None:
        self.hooks.add(said if callable(said) else lambda step: said, on=on, name=name)


class Copies(AbstractCapability[Any]):
    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        request_context.messages = [replace(message) for message in request_context.messages]
        return request_context


class Adds(AbstractCapability[Any]):
    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        for message in request_context.messages:
            message.parts = [
                replace(p, content=f"{p.content} (on Monday)") if isinstance(p, UserPromptPart) else p
                for p in message.parts
            ]
        return request_context


@pytest.mark.parametrize("first", [Copies, Adds])
async def test_a_message_is_changed_whatever_another_capability_makes_of_it(first: Any) -> None:
    stage = Stage()
    stage.add(change(input="clean"), "before_input")
    await stage.agent(first()).run("dirty")
    assert stage.sent == [["user: clean"]]


async def test_a_message_of_several_parts_is_changed() -> None:
    stage = Stage()
    stage.add(change(input="clean"), "before_input")
    history = [ModelRequest([UserPromptPart("dirty"), UserPromptPart("dirt")])]
    await stage.agent().run(message_history=history)
    assert stage.sent == [["user: clean"]]
    assert len(history[0].parts) == 2


@pytest.mark.parametrize("inside", [False, True])
async def test_an_answer_that_was_sent_back_is_judged_when_it_comes_again(inside: bool) -> None:
    stage = Stage("first", "the secret")
    stage.add(lambda step: deny("no") if "secret" in step.response else None, "before_response")
    agent, events = stage.agent(name="helper"), []

    @agent.output_validator
    def check(output: str) -> str:
        if output == "first":
            raise ModelRetry("again")
        return output

    async def listen(ctx: Any, stream: Any) -> None:
        events.extend([event async for event in stream])

    if inside:
        outer = Stage(ToolCallPart("helper", {}))
        outer.fairlead = stage.fairlead
        asking = outer.agent()

        @asking.tool_plain(name="helper")
        async def help_out() -> str:
            return str((await agent.run("Go.")).output)

        await asking.run("Go.")
        assert "secret" not in str(outer.sent)
    else:
        result = await agent.run("Go.", event_stream_handler=listen)
        assert result.output == "[Response filtered: no]"
        assert "secret" not in str(events)


async def test_a_later_call_of_the_same_id_that_other_code_answers_is_judged() -> None:
    class Cache(AbstractCapability[Any]):
        calls = 0

        async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
            Cache.calls += 1
            return "secret" if Cache.calls == 2 else await handler(args)

    stage = Stage(*(ToolCallPart("shell", {"command": "ls"}, "call_0") for _ in range(2)))
    stage.add(lambda step: deny("no") if "secret" in str(step.output) else None, "after_tool")
    await stage.agent(Cache()).run("Go.")
    assert "secret" not in str(stage.sent)


async def approved(stage: Stage, answer: Any = True) -> tuple[Any, Any]:
    agent = stage.agent(output_type=[str, DeferredToolRequests], instructions="Be brief.")
    asked = await agent.run("Go.")
    answers = DeferredToolResults(approvals={"c1": answer})
    return asked.output, (await agent.run(message_history=asked.all_messages(), deferred_tool_results=answers)).output


async def test_an_approval_is_for_the_arguments_that_were_asked_about() -> None:
    stage, numbers = Stage(ToolCallPart("shell", {"command": "ls"}, "c1")), iter(range(9))
    stage.add(lambda step: change(args={"command": f"echo {next(numbers)}"}), "before_tool", "other")
    stage.add(ask("Sure?"), "before_tool", "asks")
    asked, _ = await approved(stage)
    assert asked.metadata["c1"] == {"hook": "asks", "reason": "Sure?", "args": {"command": "echo 0"}}
    assert stage.ran == []


async def test_who_approves_may_give_other_arguments() -> None:
    stage = Stage(ToolCallPart("shell", {"command": "ls"}, "c1"))
    stage.add(ask("Sure?"), "before_tool", "asks")
    await approved(stage, ToolApproved(override_args={"command": "pwd"}))
    assert stage.ran == ["pwd"]


async def test_other_arguments_about_which_hooks_ask_something_else_are_asked_about() -> None:
    stage = Stage(ToolCallPart("shell", {"command": "ls"}, "c1"))
    stage.add(lambda step: ask(f"Run {step.target.command}?"), "before_tool", "asks")
    _, after = await approved(stage, ToolApproved(override_args={"command": "pwd"}))
    assert (stage.ran, after.metadata["c1"]["reason"]) == ([], "Run pwd?")


async def test_an_approval_is_for_the_hook_that_has_asked() -> None:
    stage, count = Stage(ToolCallPart("shell", {"command": "ls"}, "c1")), iter(range(9))
    stage.add(lambda step: ask("First?") if next(count) == 0 else None, "before_tool", "first")
    stage.add(lambda step: None if not stage.seen_tools() else ask("Second?"), "before_tool", "second")
    stage.seen_tools = lambda: [one for one in stage.seen if one.event == "before_tool"]  # type: ignore[attr-defined]
    _, after = await approved(stage)
    assert stage.ran == []
    assert after.metadata["c1"]["hook"] == "second"


async def test_the_system_prompt_is_known_where_a_run_goes_on_with_a_call() -> None:
    stage = Stage(ToolCallPart("shell", {"command": "ls"}, "c1"))
    stage.add(lambda step: change(system_prompt=f"{step.system_prompt} Be kind."), "before_prompt")
    stage.add(ask("Sure?"), "before_tool", "asks")
    await approved(stage)
    assert [lines[0] for lines in stage.sent] == ["system: Be brief. Be kind."] * 2


async def test_a_tool_may_give_bytes() -> None:
    stage = Stage(ToolCallPart("raw", {}))
    stage.add(deny("no"), "after_tool")
    agent = stage.agent()
    agent.tool_plain(name="raw")(lambda: b"\xff")
    await agent.run("Go.")
    assert "withheld" in stage.sent[-1][-1]


# --- what is seen, and when -------------------------------------------------------------------------


@pytest.mark.parametrize("on", ["before_response", "before_output"])
async def test_an_answer_that_is_refused_is_in_no_node_of_iter(on: str) -> None:
    stage = Stage("hunter2")
    stage.add(deny("secret"), on)
    async with stage.agent().iter("Go.") as run:
        nodes = [repr(node) async for node in run]
        assert not any("hunter2" in node for node in nodes)
    assert "hunter2" not in repr(run.result.all_messages())


async def test_what_a_function_makes_of_an_answer_is_judged_too() -> None:
    stage = Stage("hunter")
    stage.add(lambda step: deny("secret") if "hunter2" in step.content else None, "before_output")
    agent = stage.agent()

    @agent.output_validator
    def number(output: str) -> str:
        return f"{output}2"

    assert (await agent.run("Go.")).output == ""


# --- answers that are judged when the model gives them ----------------------------------------------


def output_of(args: Any) -> Any:
    """A model that gives an output by the tool for it."""

    def reply(messages: Any, info: Any) -> ModelResponse:
        return ModelResponse([ToolCallPart(info.output_tools[0].name, args)])

    return FunctionModel(reply)


@pytest.mark.parametrize(("field", "on"), [("response", "before_response"), ("content", "before_output")])
async def test_an_output_that_is_no_object_is_shown_and_changed_as_what_it_is(field: str, on: str) -> None:
    stage, seen = Stage(), []
    stage.add(lambda step: seen.append(getattr(step, field)) or change(**{field: "4"}), on)
    agent = Agent(output_of({"response": 3}), output_type=int, capabilities=[stage.fairlead])
    assert (await agent.run("Go.")).output == 4
    assert seen == ["3"]


async def test_an_output_in_the_model_s_words_that_is_no_object_is_changed() -> None:
    stage = Stage('{"response": 3}')
    stage.add(change(response="4"), "before_response")
    assert (await stage.agent(output_type=PromptedOutput(int)).run("Go.")).output == 4


async def test_what_a_function_makes_of_an_answer_is_judged_as_an_answer_is() -> None:
    stage = Stage("hi")
    stage.add(lambda step: deny("no") if "secret" in step.response else None, "before_response")

    def tell(text: str) -> str:
        return f"{text}: the secret"

    assert (await stage.agent(output_type=TextOutput(tell)).run("Go.")).output == "[Response filtered: no]"


@pytest.mark.parametrize("said", [deny("no"), change(content="")])
async def test_an_answer_that_is_kept_back_is_no_blank_and_is_judged_once(said: Any) -> None:
    stage = Stage("the secret")
    stage.add(lambda step: said if step.content == "the secret" else None, "before_output")
    assert (await stage.agent().run("Go.")).output == ""
    assert [decision.event for decision in stage.seen].count("before_output") == 1


async def test_an_answer_that_is_sent_back_ends_neither_the_request_nor_the_session() -> None:
    stage = Stage("first", "second")
    stage.add(lambda step: None, "before_response")
    agent = stage.agent()

    @agent.output_validator
    def check(output: str) -> str:
        if output == "first":
            raise ModelRetry("again")
        return output

    await agent.run("Go.")
    events = [decision.event for decision in stage.seen]
    assert events[-2:] == ["after_request", "session_end"]
    assert [events.count(event) for event in ("after_request", "session_end")] == [1, 1]


async def test_an_output_function_that_fails_is_told_as_an_error() -> None:
    stage = Stage("hi")
    stage.add(lambda step: None, "before_response")

    def fail(text: str) -> str:
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        await stage.agent(output_type=TextOutput(fail)).run("Go.")
    events = {decision.event: decision.step for decision in stage.seen}
    assert "boom" in events["error"].error
    assert "boom" in events["after_request"].error
    assert events["session_end"].reason == "error"


async def test_words_where_none_are_wanted_are_no_answer_yet() -> None:
    stage, asked = Stage(), []
    stage.add(lambda step: deny("no") if "words" in step.response else None, "before_response")

    def reply(messages: Any, info: Any) -> ModelResponse:
        asked.append(messages)
        said: Any = TextPart("words") if len(asked) == 1 else ToolCallPart(info.output_tools[0].name, {"response": 3})
        return ModelResponse([said])

    agent = Agent(FunctionModel(reply), output_type=ToolOutput(int), capabilities=[stage.fairlead])
    assert (await agent.run("Go.")).output == 3
