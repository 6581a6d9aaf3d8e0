"""What is particular to the OpenAI Agents SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    ApplyPatchTool,
    FunctionTool,
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    Model,
    ModelProvider,
    RunConfig,
    RunHooks,
    Runner,
    RunState,
    ShellTool,
    SQLiteSession,
    ToolInputGuardrail,
    UserError,
    function_tool,
    handoff,
)
from agents.mcp import MCPServer
from agents.run import get_default_agent_runner, set_default_agent_runner
from agents.tool_guardrails import ToolGuardrailFunctionOutput
from driver import Call, Played, Say, call
from driver_openai_agents import Scripted, drained, function_call, message, shown
from openai.types.responses import ResponseFunctionWebSearch
from openai.types.responses.response_apply_patch_tool_call import OperationDeleteFile, ResponseApplyPatchToolCall
from openai.types.responses.response_function_shell_tool_call import Action, ResponseFunctionShellToolCall
from openai.types.responses.response_function_web_search import ActionSearch
from pydantic import BaseModel
from scene import has

from fairlead import Decision, FairleadError, HookAborted, Hooks, abort, allow, ask, change, deny, extend, inject, stop
from fairlead.hosts.frameworks.openai_agents import Fairlead
from fairlead.hosts.frameworks.openai_agents.tool_calls import REPORTS_ERRORS


class Stage:
    """Hooks whose decisions are kept, a shell that notes what it runs, and agents with scripted models."""

    def __init__(self) -> None:
        self.decisions: list[Decision[Any]] = []
        self.hooks = Hooks(journal=self.decisions.append)
        self.runner = Fairlead(self.hooks)
        self.played = Played()
        self.ran: list[str] = []

        @function_tool
        def shell(command: str) -> str:
            """Run a command."""
            self.ran.append(command)
            return f"ran {command}"

        self.shell = shell

    def model(self, *script: Any, name: str = "first") -> Scripted:
        return Scripted(list(script), self.played, name)

    def agent(self, *script: Any, name: str = "main", **about: Any) -> Agent[Any]:
        about.setdefault("tools", [self.shell])
        return Agent(name, model=self.model(*script, name=name), **about)

    def add(self, said: Any, on: str | list[str], **about: Any) -> None:
        self.hooks.add(lambda step: said(step) if callable(said) else said, on=on, **{"name": "judge", **about})

    def steps(self, event: str) -> list[Any]:
        return [decision.step for decision in self.decisions if decision.event == event]

    @property
    def events(self) -> list[str]:
        return [decision.event for decision in self.decisions]


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture(autouse=True)
def _default_runner() -> Iterator[None]:
    before = get_default_agent_runner()
    yield
    set_default_agent_runner(before)


LS = call("shell", command="ls")


# --- agents -----------------------------------------------------------------------------------------


async def test_the_user_s_agent_stays_as_it_is_and_is_the_last_agent(stage: Stage) -> None:
    agent = stage.agent(LS)
    before = dict(agent.__dict__)
    result = await stage.runner.run(agent, "Go.")
    assert {name: value for name, value in agent.__dict__.items() if name in before} == before
    assert agent.tools == [stage.shell]
    assert result.last_agent is agent
    streamed = await drained(stage.runner.run_streamed(agent, "Go."))
    assert streamed.last_agent is agent
    assert streamed.current_agent is agent


async def test_an_agent_of_a_class_of_its_own_stays_of_that_class(stage: Stage) -> None:
    class Special(Agent[Any]):
        pass

    seen: list[Any] = []

    class Watch(RunHooks[Any]):
        async def on_agent_start(self, context: Any, agent: Any) -> None:
            seen.append(agent)

    agent = Special("main", model=stage.model(), tools=[])
    await stage.runner.run(agent, "Go.", hooks=Watch())
    assert isinstance(seen[0], Special)
    assert seen[0].name == "main"


async def test_a_copy_that_the_sdk_makes_of_the_copy_is_under_hooks_too(stage: Stage) -> None:
    stage.add(deny("no"), on="before_tool")
    copied = stage.runner.agent(stage.agent(LS)).clone(name="copied")
    await stage.runner.run(copied, "Go.")
    assert (stage.ran, stage.events.count("before_model"), stage.events.count("before_tool")) == ([], 2, 1)


async def test_tools_that_are_added_or_turned_off_later_count(stage: Stage) -> None:
    agent = stage.agent(LS, tools=[])
    agent.tools.append(stage.shell)
    stage.add(deny("no"), on="before_tool")
    await stage.runner.run(agent, "Go.")
    assert stage.ran == []
    assert [step.outcome for step in stage.steps("after_tool")] == ["denied"]


async def test_the_sdk_s_own_hooks_and_guardrails_work_beside_ours(stage: Stage) -> None:
    seen: list[str] = []

    class Watch(RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            seen.append(f"run start {tool.name}")

        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            seen.append("llm end")

    class Mine(AgentHooks[Any]):
        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            seen.append(f"agent end {result}")

    stage.add(lambda step: change(output="[redacted]"), on="after_tool")
    await stage.runner.run(stage.agent(LS, hooks=Mine()), "Go.", hooks=Watch())
    assert seen == ["llm end", "run start shell", "agent end [redacted]", "llm end"]


async def test_a_call_that_the_sdk_s_own_guardrail_keeps_from_running_has_an_end(stage: Stage) -> None:
    async def reject(data: Any) -> Any:
        return ToolGuardrailFunctionOutput.reject_content("the guardrail says no")

    stage.shell.tool_input_guardrails = [ToolInputGuardrail(reject, name="no")]
    stage.add(lambda step: None, on="after_tool")
    await stage.runner.run(stage.agent(LS), "Go.")
    assert stage.ran == []
    assert has(stage.played.sent[1], "the guardrail says no", "tool")
    assert [step.outcome for step in stage.steps("after_tool")] == ["aborted"]


async def test_an_input_guardrail_that_trips_ends_the_request(stage: Stage) -> None:
    async def trip(context: Any, agent: Any, given: Any) -> Any:
        return GuardrailFunctionOutput(None, tripwire_triggered=True)

    with pytest.raises(InputGuardrailTripwireTriggered):
        await stage.runner.run(stage.agent(input_guardrails=[InputGuardrail(trip)]), "Go.")
    assert stage.events[-2:] == ["after_request", "session_end"]
    assert stage.steps("turn_end")[0].stop_reason == "error"


async def test_too_many_turns_end_the_request(stage: Stage) -> None:
    with pytest.raises(MaxTurnsExceeded):
        await stage.runner.run(stage.agent(LS, LS, LS), "Go.", max_turns=2)
    assert "Max turns" in stage.steps("after_request")[0].error


# --- models -----------------------------------------------------------------------------------------


class Provider(ModelProvider):
    def __init__(self, stage: Stage, *script: Any) -> None:
        self.stage, self.script, self.asked = stage, list(script), []

    def get_model(self, model_name: str | None) -> Model:
        self.asked.append(model_name)
        return Scripted(self.script, self.stage.played, model_name or "default")


async def test_a_model_s_name_goes_to_the_run_s_provider(stage: Stage) -> None:
    provider = Provider(stage, LS)
    agent = Agent("main", model="some-model", tools=[stage.shell])
    stage.add(lambda step: None, on="before_model")
    await stage.runner.run(agent, "Go.", run_config=RunConfig(model_provider=provider))
    assert set(provider.asked) == {"some-model"}
    assert [step.model for step in stage.steps("before_model")] == ["some-model", "some-model"]


async def test_a_hook_may_switch_to_any_model_of_the_provider(stage: Stage) -> None:
    provider = Provider(stage)
    stage.add(change(model="other-model"), on="before_model")
    await stage.runner.run(stage.agent(), "Go.", run_config=RunConfig(model_provider=provider))
    assert stage.played.models == ["other-model"]
    assert stage.steps("after_model")[0].model == "other-model"


async def test_the_model_of_the_run_configuration_comes_first(stage: Stage) -> None:
    stage.add(lambda step: None, on="before_model")
    config = RunConfig(model=stage.model(name="configured"))
    await stage.runner.run(stage.agent(), "Go.", run_config=config)
    assert stage.played.models == ["configured"]
    assert isinstance(config.model, Scripted)  # the user's configuration stays as it is


async def test_hosted_tools_are_told_of_after_the_model(stage: Stage) -> None:
    search = ResponseFunctionWebSearch(
        id="ws_1", action=ActionSearch(query="q", type="search"), status="completed", type="web_search_call"
    )
    stage.add(lambda step: None, on="after_model")
    await stage.runner.run(stage.agent([search, message("Found.")]), "Go.")
    assert stage.steps("after_model")[0].usage["other_calls"] == ["web_search_call"]
    assert stage.steps("tool_requested") == []


async def test_a_conversation_that_the_provider_keeps_is_told_things_once(stage: Stage) -> None:
    stage.add(inject("You are on main."), on="before_input")
    await stage.runner.run(stage.agent(LS), "Go.", conversation_id="c1")
    assert [has(request, "You are on main.") for request in stage.played.sent] == [True, False]
    assert stage.steps("before_input")[0].session_id == "c1"


async def test_a_turn_that_was_extended_has_all_answers_in_its_history_and_in_its_usage(stage: Stage) -> None:
    said = iter([extend("Go on.")])
    stage.add(lambda step: next(said, None), on="before_turn_end")
    result = await stage.runner.run(stage.agent(Say("First."), LS, Say("Second.")), "Go.")
    assert shown(result.to_input_list()) == [
        "user: Go.", "assistant: First.", 'assistant: calls shell {"command": "ls"}', "tool: ran ls",
        "assistant: Second.",
    ]  # fmt: skip
    assert stage.played.sent[2][1:4] == [
        "assistant: First.",
        "user: Go on.",
        'assistant: calls shell {"command": "ls"}',
    ]
    assert result.context_wrapper.usage.total_tokens == 3


async def test_a_reply_that_was_refused_is_paid_for(stage: Stage) -> None:
    said = iter([deny("Not that.")])
    stage.add(lambda step: next(said, None), on="after_model")
    result = await stage.runner.run(stage.agent(Say("Secret."), Say("Fine.")), "Go.")
    assert result.final_output == "Fine."
    assert result.context_wrapper.usage.total_tokens == 2
    assert "Secret." not in str(result.to_input_list())


# --- input ------------------------------------------------------------------------------------------


async def test_of_a_list_of_messages_the_last_one_is_the_user_s(stage: Stage) -> None:
    earlier: list[Any] = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]
    given = [*earlier, {"role": "user", "content": "Go."}]
    stage.add(lambda step: change(input=step.input + " Please."), on="before_input")
    await stage.runner.run(stage.agent(), given)
    assert stage.played.sent == [["user: Hello.", "assistant: Hi.", "user: Go. Please."]]
    assert given[-1] == {"role": "user", "content": "Go."}
    assert stage.steps("after_input")[0].committed_len == 3


@pytest.mark.parametrize("streaming", [False, True])
async def test_nothing_of_a_refused_message_is_kept(stage: Stage, streaming: bool) -> None:
    session = SQLiteSession("c1")
    stage.add(deny("not here"), on="before_input")
    run = stage.runner.run_streamed if streaming else stage.runner.run
    result = run(stage.agent(), "My password is hunter2.", session=session)
    result = await (drained(result) if streaming else result)
    assert result.final_output == "[Message rejected: not here]"
    assert await session.get_items() == []
    assert "hunter2" not in str(result.to_input_list())


async def test_instructions_that_are_a_function_are_the_system_prompt(stage: Stage) -> None:
    def instructions(context: Any, agent: Any) -> str:
        return f"You help {context.context}."

    stage.add(lambda step: change(system_prompt=step.system_prompt + " Be brief."), on="before_prompt")
    await stage.runner.run(stage.agent(LS, instructions=instructions), "Go.", context="Ann")
    assert [request[0] for request in stage.played.sent] == ["system: You help Ann. Be brief."] * 2


# --- tools ------------------------------------------------------------------------------------------


async def test_arguments_that_are_no_json_are_told_to_the_model_and_not_to_a_human(stage: Stage) -> None:
    stage.add(lambda step: None, on=["before_tool", "after_tool"])
    result = await stage.runner.run(stage.agent([function_call("shell", '{"command": ')]), "Go.")
    assert not result.interruptions
    assert stage.steps("before_tool")[0].args == {"arguments": '{"command": '}
    assert [(step.outcome, step.is_error) for step in stage.steps("after_tool")] == [("error", True)]
    assert (stage.ran, result.final_output) == ([], "Done.")


async def test_arguments_reach_the_tool_as_the_model_wrote_them(stage: Stage) -> None:
    given: list[str] = []

    async def invoke(context: Any, arguments: str) -> str:
        given.append(arguments)
        return "ok"

    raw = '{"b":  1, "a": 2}'
    tool = FunctionTool("raw", "", {"type": "object", "properties": {}}, invoke, strict_json_schema=False)
    stage.add(lambda step: None, on="before_tool")
    await stage.runner.run(stage.agent([function_call("raw", raw)], tools=[tool]), "Go.")
    assert given == [raw]


async def test_a_tool_whose_errors_fail_the_run_still_does_so(stage: Stage) -> None:
    @function_tool(failure_error_function=None)
    def fail() -> str:
        raise ValueError("broken")

    stage.add(lambda step: None, on="after_tool")
    with pytest.raises(UserError, match="broken"):
        await stage.runner.run(stage.agent(call("fail"), tools=[fail]), "Go.")
    assert [step.outcome for step in stage.steps("after_tool")] == ["error"]
    assert stage.events[-1] == "session_end"


@pytest.mark.skipif(not REPORTS_ERRORS, reason="older ones do not say that a tool has failed")
async def test_a_tool_with_its_own_words_for_errors_has_failed_too(stage: Stage) -> None:
    @function_tool(failure_error_function=lambda context, error: f"Sorry: {error}")
    def fail() -> str:
        raise ValueError("broken")

    stage.add(lambda step: None, on="after_tool")
    await stage.runner.run(stage.agent(call("fail"), tools=[fail]), "Go.")
    assert [(step.outcome, step.error) for step in stage.steps("after_tool")] == [("error", "ValueError: broken")]
    assert has(stage.played.sent[1], "Sorry: broken", "tool")


def shell_call(number: int, *commands: str) -> Any:
    return ResponseFunctionShellToolCall(
        id=f"sh_{number}", call_id=f"call_sh_{number}", action=Action(commands=list(commands)),
        status="completed", type="shell_call", environment=None,
    )  # fmt: skip


async def test_an_abort_in_a_shell_tool_fails_the_request(stage: Stage) -> None:
    stage.add(abort("no more"), on="before_tool")
    with pytest.raises(HookAborted):
        await stage.runner.run(stage.agent([shell_call(1, "ls")], tools=[ShellTool(executor=lambda _: "done")]), "Go.")
    assert len(stage.played.sent) == 1


async def test_a_shell_tool_is_under_hooks(stage: Stage) -> None:
    def execute(request: Any) -> str:
        stage.ran.extend(request.data.action.commands)
        return "done"

    def judge(step: Any) -> Any:
        return deny("no rm") if "rm" in step.target.command else change(args={"commands": ["ls -l"]})

    stage.add(judge, on="before_tool", kind="shell")
    script = [[shell_call(1, "rm -rf /")], [shell_call(2, "ls")]]
    await stage.runner.run(stage.agent(*script, tools=[ShellTool(executor=execute)]), "Go.")
    assert stage.ran == ["ls -l"]
    assert [(step.outcome, step.call_id) for step in stage.steps("after_tool")] == [
        ("denied", "call_sh_1"), ("ok", "call_sh_2"),
    ]  # fmt: skip


async def test_a_patch_tool_is_under_hooks(stage: Stage) -> None:
    class Editor:
        def create_file(self, operation: Any) -> Any:
            return None

        update_file = create_file

        def delete_file(self, operation: Any) -> Any:
            stage.ran.append(operation.path)

    def patch(number: int, path: str) -> Any:
        return ResponseApplyPatchToolCall(
            id=f"ap_{number}", call_id=f"call_ap_{number}", status="completed", type="apply_patch_call",
            operation=OperationDeleteFile(path=path, type="delete_file"),
        )  # fmt: skip

    stage.add(lambda step: deny("not that") if "a.txt" in step.args["path"] else None, on="before_tool", kind="write")
    script = [[patch(1, "a.txt")], [patch(2, "b.txt")]]
    await stage.runner.run(stage.agent(*script, tools=[ApplyPatchTool(editor=Editor())]), "Go.")
    assert stage.ran == ["b.txt"]
    assert [step.outcome for step in stage.steps("after_tool")] == ["denied", "ok"]


async def test_the_tools_of_an_mcp_server_are_under_hooks(stage: Stage) -> None:
    from mcp.types import CallToolResult, TextContent, Tool

    class Server(MCPServer):
        name = "files"

        async def connect(self) -> None: ...

        async def cleanup(self) -> None: ...

        async def list_tools(self, run_context: Any = None, agent: Any = None) -> Any:
            return [Tool(name="look", inputSchema={"type": "object", "properties": {}})]

        async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
            stage.ran.append(f"{tool_name} {json.dumps(arguments)}")
            return CallToolResult(content=[TextContent(type="text", text="seen")])

        async def list_prompts(self) -> Any: ...

        async def get_prompt(self, name: str, arguments: Any = None) -> Any: ...

    stage.add(lambda step: deny("not there") if step.args["at"] == "etc" else None, on="before_tool", tool="look")
    script = [call("look", at="etc"), call("look", at="home")]
    await stage.runner.run(stage.agent(*script, tools=[], mcp_servers=[Server()]), "Go.")
    assert stage.ran == ['look {"at": "home"}']
    assert [step.outcome for step in stage.steps("after_tool")] == ["denied", "ok"]


async def test_a_tool_whose_output_is_the_answer_may_be_kept_at_work(stage: Stage) -> None:
    said = iter([extend("Look again.")])
    stage.add(lambda step: next(said, None), on="before_turn_end")
    agent = stage.agent(LS, call("shell", command="pwd"), tool_use_behavior="stop_on_first_tool")
    result = await stage.runner.run(agent, "Go.")
    assert (stage.ran, result.final_output) == (["ls", "pwd"], "ran pwd")
    assert has(stage.played.sent[1], "Look again.", "user")
    assert stage.events.count("before_turn_end") == 2


async def test_a_tool_of_a_stopping_list_is_still_the_end(stage: Stage) -> None:
    agent = stage.agent(LS, tool_use_behavior={"stop_at_tool_names": ["shell"]})
    result = await stage.runner.run(agent, "Go.")
    assert (result.final_output, len(stage.played.sent)) == ("ran ls", 1)
    assert stage.events.count("before_turn_end") == 1


# --- structured output ------------------------------------------------------------------------------


class Answer(BaseModel):
    text: str


def answered(text: str) -> Say:
    return Say(Answer(text=text).model_dump_json())


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_structured_output_may_be_changed_and_keeps_its_type(stage: Stage, streaming: bool) -> None:
    stage.add(lambda step: change(content=step.content.replace("hunter2", "***")), on="before_output")
    agent = stage.agent(answered("It is hunter2."), output_type=Answer)
    result = stage.runner.run_streamed(agent, "Go.") if streaming else await stage.runner.run(agent, "Go.")
    result = await drained(result) if streaming else result
    assert result.final_output == Answer(text="It is ***.")


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_hook_that_stops_an_agent_with_structured_output_says_so_in_words(
    stage: Stage, streaming: bool
) -> None:
    stage.add(stop("enough"), on="after_tool")
    agent = stage.agent(LS, output_type=Answer)
    result = stage.runner.run_streamed(agent, "Go.") if streaming else await stage.runner.run(agent, "Go.")
    result = await drained(result) if streaming else result
    assert result.final_output == "[Stopped: enough]"


async def test_an_output_of_the_wrong_type_is_still_the_model_s_mistake(stage: Stage) -> None:
    from agents import ModelBehaviorError

    with pytest.raises(ModelBehaviorError):
        await stage.runner.run(stage.agent(Say("no json"), output_type=Answer), "Go.")


# --- handoffs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("streaming", [False, True])
async def test_after_a_handoff_the_other_agent_is_under_hooks_too(stage: Stage, streaming: bool) -> None:
    helper = stage.agent(LS, Say("Helped."), name="helper")
    stage.add(lambda step: deny("not for helpers") if step.agent.name == "helper" else None, on="before_tool")
    agent = stage.agent(call("transfer_to_helper"), handoffs=[helper])
    result = stage.runner.run_streamed(agent, "Go.") if streaming else await stage.runner.run(agent, "Go.")
    result = await drained(result) if streaming else result
    assert (stage.ran, result.final_output) == ([], "Helped.")
    assert result.last_agent is helper
    assert has(stage.played.sent[2], "not for helpers", "tool")
    (start,) = stage.steps("subagent_start")
    assert (start.agent_name, start.agent.name) == ("helper", "helper")
    assert [step.agent_name for step in stage.steps("subagent_stop")] == ["helper"]
    tools = [(step.tool, step.kind, step.outcome) for step in stage.steps("after_tool")]
    assert tools == [("transfer_to_helper", "agent", "ok"), ("shell", "shell", "denied")]


@pytest.mark.parametrize("event", ["subagent_start", "before_tool"])
async def test_a_refused_handoff_leaves_the_work_where_it_was(stage: Stage, event: str) -> None:
    helper = stage.agent(name="helper")
    asked: list[str] = []
    stage.add(deny("not today"), on=event)
    agent = stage.agent(
        call("transfer_to_helper"), Say("I do it myself."),
        handoffs=[handoff(helper, on_handoff=lambda context: asked.append("handed over"))],
    )  # fmt: skip
    result = await stage.runner.run(agent, "Go.")
    assert (result.final_output, asked) == ("I do it myself.", [])
    assert stage.played.models == ["main", "main"]
    assert has(stage.played.sent[1], "not today", "tool")
    assert result.last_agent is agent


async def test_what_a_handoff_cannot_do_is_reported(stage: Stage) -> None:
    stage.add(change(initial_message="Something else."), on="subagent_start")
    stage.add(extend("More."), on="subagent_stop", name="more")
    await stage.runner.run(stage.agent(call("transfer_to_helper"), handoffs=[stage.agent(name="helper")]), "Go.")
    told = {decision.event: decision.unsupported for decision in stage.decisions if decision.unsupported}
    assert told == {"subagent_start": ("initial_message",), "subagent_stop": ("extend",)}


async def test_agents_that_hand_over_to_each_other_are_copied_once(stage: Stage) -> None:
    helper = stage.agent(call("transfer_to_main"), name="helper", tools=[])
    agent = stage.agent(call("transfer_to_helper"), Say("Back."), handoffs=[helper], tools=[])
    helper.handoffs.append(agent)
    result = await stage.runner.run(agent, "Go.")
    assert (result.final_output, result.last_agent is agent) == ("Back.", True)
    assert stage.events.count("subagent_start") == 2


async def test_an_abort_at_a_handoff_fails_the_request(stage: Stage) -> None:
    stage.add(abort("no more"), on="subagent_start")
    with pytest.raises(HookAborted):
        await stage.runner.run(stage.agent(call("transfer_to_helper"), handoffs=[stage.agent(name="helper")]), "Go.")


# --- agents as tools --------------------------------------------------------------------------------


def with_helper(stage: Stage, *script: Any, **about: Any) -> Agent[Any]:
    helper = stage.agent(*script, name="helper")
    tool = helper.as_tool("helper", "Helps.", **about)
    return stage.agent(call("helper", input="Help me."), tools=[tool])


async def test_an_agent_as_a_tool_is_a_subagent(stage: Stage) -> None:
    stage.add(lambda step: deny("not for helpers") if step.agent.name == "helper" else None, on="before_tool")
    result = await stage.runner.run(with_helper(stage, LS, Say("Helped.")), "Go.")
    assert (stage.ran, result.final_output) == ([], "Done.")
    assert has(stage.played.sent[3], "Helped.", "tool")
    (start,) = stage.steps("subagent_start")
    assert (start.initial_message, start.agent.parent is not None) == ("Help me.", True)
    assert {step.tool: step.kind for step in stage.steps("before_tool")} == {"helper": "agent", "shell": "shell"}


async def test_an_agent_as_a_tool_that_streams_is_under_hooks_too(stage: Stage) -> None:
    seen: list[str] = []

    async def watch(event: Any) -> None:
        seen.append(event["event"].type)

    stage.add(deny("no"), on="before_tool", tool="shell")
    await stage.runner.run(with_helper(stage, LS, Say("Helped."), on_stream=watch), "Go.")
    assert stage.ran == []
    assert "raw_response_event" in seen
    assert has(stage.played.sent[3], "Helped.", "tool")


async def test_an_abort_in_a_subagent_fails_the_whole_request(stage: Stage) -> None:
    stage.add(abort("no more"), on="before_tool", tool="shell")
    with pytest.raises(HookAborted):
        await stage.runner.run(with_helper(stage, LS), "Go.")
    assert stage.played.models == ["main", "helper"]
    assert stage.events.count("turn_end") == 2


async def test_a_subagent_that_may_not_start_is_a_failed_call(stage: Stage) -> None:
    stage.add(deny("not today"), on="subagent_start")
    await stage.runner.run(with_helper(stage), "Go.")
    assert stage.played.models == ["main", "main"]
    assert has(stage.played.sent[1], "not today", "tool")
    assert [step.outcome for step in stage.steps("after_tool")] == ["error"]


async def test_a_question_in_a_subagent_is_asked_by_the_sdk_and_its_call_runs_once(stage: Stage) -> None:
    stage.add(ask("May it?"), on="before_tool", tool="shell")
    agent = with_helper(stage, LS, Say("Helped."))
    result = await stage.runner.run(agent, "Go.")
    assert (len(result.interruptions), stage.ran) == (1, [])
    state = result.to_state()
    state.approve(result.interruptions[0])
    result = await stage.runner.run(agent, state)
    assert (stage.ran, result.final_output) == (["ls"], "Done.")
    assert [(step.tool, step.outcome) for step in stage.steps("after_tool")] == [("shell", "ok"), ("helper", "ok")]
    assert [stage.events.count(name) for name in ("subagent_start", "subagent_stop", "turn_start", "turn_end")] == [
        1, 1, 2, 2,
    ]  # fmt: skip


async def test_a_subagent_that_is_told_to_go_on_has_its_prompt_and_what_it_has_said(stage: Stage) -> None:
    said = iter([extend("More.")])
    stage.add(lambda step: next(said, None), on="subagent_stop")
    stage.add(lambda step: change(system_prompt="Help well."), on="before_prompt", name="prompt", agent="helper")
    await stage.runner.run(with_helper(stage, Say("Half."), Say("Whole.")), "Go.")
    assert stage.played.sent[2] == ["system: Help well.", "user: Help me.", "assistant: Half.", "user: More."]
    assert has(stage.played.sent[3], "tool: Whole.")
    assert [step.user_message for step in stage.steps("before_prompt")] == ["Go.", "Help me.", "More."]


async def test_an_agent_in_a_guardrail_is_a_subagent(stage: Stage) -> None:
    checker = stage.agent(LS, Say("fine"), name="checker")

    async def check(context: Any, agent: Any, given: Any) -> Any:
        said = (await Runner.run(checker, given)).final_output
        return GuardrailFunctionOutput(said, tripwire_triggered=said != "fine")

    stage.add(deny("no"), on="before_tool")
    result = await stage.runner.run(stage.agent(input_guardrails=[InputGuardrail(check)]), "Go.")
    assert (stage.ran, result.final_output) == ([], "Done.")
    assert [step.agent_name for step in stage.steps("subagent_start")] == ["checker"]


@pytest.mark.ungoverned("An agent that runs through another `Runner`")
async def test_an_agent_that_runs_outside_is_not_under_hooks(stage: Stage) -> None:
    agent = stage.agent(LS)
    stage.add(deny("no"), on="before_tool")
    await stage.runner.run(stage.agent(), "Go.")
    await Runner.run(agent, "Go.")
    assert stage.ran == ["ls"]


async def test_all_runs_of_a_program_may_be_under_hooks_by_the_default_runner(stage: Stage) -> None:
    set_default_agent_runner(stage.runner)
    stage.add(lambda step: deny("no") if step.agent.name == "helper" else None, on="before_tool")
    result = await Runner.run(with_helper(stage, LS, Say("Helped.")), "Go.")
    assert (stage.ran, result.final_output) == ([], "Done.")
    result = await drained(Runner.run_streamed(stage.agent(), "Go."))
    assert result.final_output == "Done."
    assert stage.events.count("session_start") == 2


# --- approvals --------------------------------------------------------------------------------------


async def test_a_tool_that_needs_approval_does_not_where_a_hook_allows_it(stage: Stage) -> None:
    stage.shell.needs_approval = True
    stage.add(allow(), on="before_tool")
    result = await stage.runner.run(stage.agent(LS), "Go.")
    assert (stage.ran, result.final_output) == (["ls"], "Done.")
    assert stage.steps("before_permission")[0].proposed == "allow"


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_tool_s_own_need_for_approval_is_what_is_proposed(stage: Stage, answer: bool, streaming: bool) -> None:
    async def needs(context: Any, args: dict[str, Any], call_id: str) -> bool:
        return args["command"] == "ls"

    stage.shell.needs_approval = needs
    agent = stage.agent(Call([("shell", {"command": "ls"}), ("shell", {"command": "pwd"})]))

    async def go(given: Any) -> Any:
        if streaming:
            return await drained(stage.runner.run_streamed(agent, given))
        return await stage.runner.run(agent, given)

    stage.add(lambda step: None, on="before_permission")
    result = await go("Go.")
    assert stage.ran == ["pwd"]
    assert [step.proposed for step in stage.steps("before_permission")] == ["ask", "allow"]
    state = result.to_state()
    (state.approve if answer else state.reject)(result.interruptions[0])
    result = await go(state)
    assert (stage.ran, result.final_output) == (["pwd", "ls"] if answer else ["pwd"], "Done.")
    assert [step.granted for step in stage.steps("after_permission")] == [True, answer]
    assert [step.outcome for step in stage.steps("after_tool")] == ["ok", "ok" if answer else "denied"]
    assert stage.events.count("before_request") == 1  # it is still the same request


async def test_a_question_that_is_still_open_is_asked_again(stage: Stage) -> None:
    stage.add(ask("May it?"), on="before_tool")
    agent = stage.agent(LS)
    result = await stage.runner.run(agent, "Go.")
    result = await stage.runner.run(agent, result.to_state())
    assert (len(result.interruptions), stage.ran) == (1, [])
    state = result.to_state()
    state.approve(result.interruptions[0])
    result = await stage.runner.run(agent, state)
    assert (result.final_output, stage.ran) == ("Done.", ["ls"])


@pytest.mark.parametrize("answer", [True, False])
async def test_a_question_may_be_answered_in_another_process(stage: Stage, answer: bool) -> None:
    stage.add(ask("May it?"), on="before_tool")
    agent = stage.agent(LS)
    text = (await stage.runner.run(agent, "Go.")).to_state().to_string()
    elsewhere = Fairlead(stage.hooks)
    state = await RunState.from_string(elsewhere.agent(agent), text)
    (state.approve if answer else state.reject)(state.get_interruptions()[0])
    result = await elsewhere.run(agent, state)
    assert (stage.ran, result.final_output) == (["ls"] if answer else [], "Done.")


async def test_a_state_that_knows_nothing_of_the_hooks_is_refused(stage: Stage) -> None:
    stage.add(ask("May it?"), on="before_tool")
    agent = stage.agent(LS)
    text = (await stage.runner.run(agent, "Go.")).to_state().to_string()
    state = await RunState.from_string(agent, text)
    state.approve(state.get_interruptions()[0])
    with pytest.raises(FairleadError, match="from_string"):
        await stage.runner.run(agent, state)
    with pytest.raises(FairleadError, match="from_string"):
        await drained(stage.runner.run_streamed(agent, state))
    assert stage.ran == []


async def test_a_run_that_began_under_hooks_cannot_go_on_without_them(stage: Stage) -> None:
    stage.add(ask("May it?"), on="before_tool")
    agent = stage.agent(LS)
    state = (await stage.runner.run(agent, "Go.")).to_state()
    state.approve(state.get_interruptions()[0])
    with pytest.raises((FairleadError, UserError), match="runs under hooks only"):
        await Runner.run(agent, state)
    assert stage.ran == []


async def test_a_question_without_an_answer_ends_with_the_adapter(stage: Stage) -> None:
    stage.add(ask("May it?"), on="before_tool")
    async with stage.runner as runner:
        await runner.run(stage.agent(LS), "Go.")
        assert "session_end" not in stage.events
    assert stage.events[-4:] == ["turn_end", "error", "after_request", "session_end"]
    assert stage.steps("turn_end")[0].stop_reason == "cancelled"


# --- streams, and being cancelled -------------------------------------------------------------------


@pytest.mark.ungoverned("An agent that runs through another `Runner`")
async def test_a_stream_has_the_sdk_s_own_events(stage: Stage) -> None:
    agent = stage.agent(LS)
    plain = [event.type async for event in Runner.run_streamed(stage.agent(LS), "Go.").stream_events()]
    ours = [event.type async for event in stage.runner.run_streamed(agent, "Go.").stream_events()]
    assert ours == plain


async def test_a_cancelled_stream_is_over(stage: Stage) -> None:
    @function_tool
    async def hang() -> str:
        running.set()
        await asyncio.Event().wait()
        return ""

    running = asyncio.Event()
    result = stage.runner.run_streamed(stage.agent(call("hang"), tools=[hang]), "Go.")
    await running.wait()
    result.cancel()
    await drained(result)
    assert stage.steps("turn_end")[0].stop_reason == "cancelled"
    assert [step.outcome for step in stage.steps("after_tool")] == ["aborted"]
    assert stage.events[-1] == "session_end"


async def test_a_stream_that_is_cancelled_before_it_begins_is_over(stage: Stage) -> None:
    result = stage.runner.run_streamed(stage.agent(), "Go.")
    result.cancel()
    await drained(result)
    assert stage.played.sent == []


async def test_a_task_that_waits_for_a_stream_may_be_cancelled(stage: Stage) -> None:
    async def hanging(step: Any) -> None:
        running.set()
        await asyncio.Event().wait()

    running = asyncio.Event()
    stage.hooks.add(hanging, on="before_tool", name="hanging", timeout=None)
    waiting = asyncio.create_task(drained(stage.runner.run_streamed(stage.agent(LS), "Go.")))
    await running.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert stage.ran == []
    assert stage.steps("turn_end")[0].stop_reason == "cancelled"


async def test_a_cancelled_run_tells_of_its_calls(stage: Stage) -> None:
    @function_tool
    async def hang() -> str:
        running.set()
        await asyncio.Event().wait()
        return ""

    running = asyncio.Event()
    work = asyncio.create_task(stage.runner.run(stage.agent(call("hang"), tools=[hang]), "Go."))
    await running.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert [step.outcome for step in stage.steps("after_tool")] == ["aborted"]
    assert stage.steps("turn_end")[0].stop_reason == "cancelled"


async def test_nothing_of_an_answer_is_streamed_before_hooks_have_spoken(stage: Stage) -> None:
    stage.add(lambda step: deny("not that") if "hunter2" in (step.output or "") else None, on="after_model")
    agent = stage.agent(Say("It is hunter2."), Say("I cannot say."))
    result = await drained(stage.runner.run_streamed(agent, "Go."), stage.played)
    assert ("".join(stage.played.pieces), result.final_output) == ("I cannot say.", "I cannot say.")


# --- where nothing can be awaited -------------------------------------------------------------------


async def test_run_sync_is_not_for_where_things_can_be_awaited(stage: Stage) -> None:
    with pytest.raises(RuntimeError, match="event loop is already running"):
        stage.runner.run_sync(stage.agent(), "Go.")


def test_run_sync_and_close_need_no_loop(stage: Stage) -> None:
    stage.add(ask("May it?"), on="before_tool")
    result = stage.runner.run_sync(stage.agent(LS), "Go.", session=SQLiteSession("c1"))
    assert len(result.interruptions) == 1
    stage.runner.close()
    assert stage.events[-1] == "session_end"


async def test_a_tool_that_runs_an_agent_in_its_thread_runs_a_subagent(stage: Stage) -> None:
    helper = stage.agent(LS, Say("Helped."), name="helper")

    @function_tool(name_override="helper")
    def help_out(message: str) -> str:
        """Help."""
        return str(Runner.run_sync(helper, message).final_output)

    stage.add(deny("no"), on="before_tool", tool="shell")
    await stage.runner.run(stage.agent(call("helper", message="Help."), tools=[help_out]), "Go.")
    assert stage.ran == []
    assert [step.agent_name for step in stage.steps("subagent_start")] == ["helper"]
