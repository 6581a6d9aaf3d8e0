"""The ways around the hooks in the OpenAI Agents SDK: nested runners, threads, handoffs, late tools, direct calls."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    GuardrailFunctionOutput,
    InputGuardrail,
    ModelBehaviorError,
    RunConfig,
    RunHooks,
    Runner,
    ToolGuardrailFunctionOutput,
    function_tool,
    tool_output_guardrail,
)
from agents.run import AgentRunner, set_default_agent_runner
from agents.tool_context import ToolContext
from driver import Say, call
from test_openai_agents import LS, Stage, _default_runner, stage

from fairlead import FairleadError, ask, change, deny, extend
from fairlead.hosts.frameworks.openai_agents import Fairlead
from fairlead.hosts.frameworks.openai_agents.tool_calls import REPORTS_ERRORS

__all__ = ["_default_runner", "stage"]


def helper_of(stage: Stage) -> Agent[Any]:
    return stage.agent(LS, Say("Helped."), name="helper")


def in_a_pool(helper: Any, runner: Any) -> Any:
    @function_tool
    async def team() -> str:
        """Ask the team."""
        with ThreadPoolExecutor(1) as pool:
            run = asyncio.get_running_loop().run_in_executor(pool, lambda: runner.run_sync(helper, "Help."))
            return str((await run).final_output)

    return team


def in_a_thread(helper: Any, runner: Any) -> Any:
    @function_tool
    def team() -> str:
        """Ask the team."""
        thread = threading.Thread(target=lambda: asyncio.run(runner.run(helper, "Help.")))
        thread.start()
        thread.join()
        return "done"

    return team


def in_a_thread_streamed(helper: Any, runner: Any) -> Any:
    async def drain() -> None:
        async for _ in runner.run_streamed(helper, "Help.").stream_events():
            pass

    @function_tool
    async def team() -> str:
        """Ask the team."""
        with ThreadPoolExecutor(1) as pool:
            await asyncio.get_running_loop().run_in_executor(pool, lambda: asyncio.run(drain()))
        return "done"

    return team


@pytest.mark.parametrize("make", [in_a_pool, in_a_thread, in_a_thread_streamed])
async def test_an_agent_in_a_thread_of_a_tool_is_a_subagent(stage: Stage, make: Any) -> None:
    stage.add(lambda step: deny("no") if step.kind == "shell" else None, on="before_tool")
    await stage.runner.run(stage.agent(call("team"), tools=[make(helper_of(stage), Runner)]), "Go.")
    assert stage.ran == []
    assert [step.agent_name for step in stage.steps("subagent_start")] == ["helper"]
    main = next(step.agent for step in stage.steps("before_tool") if step.tool == "team")
    assert [step.agent.parent for step in stage.steps("subagent_start")] == [main.id]


async def test_agents_in_threads_of_two_tools_are_judged_as_requests_of_their_own(stage: Stage) -> None:
    both, helpers = threading.Barrier(2, timeout=20), [helper_of(stage), helper_of(stage)]

    def run(helper: Any) -> Any:
        both.wait()
        try:
            return Runner.run_sync(helper, "Help.")
        finally:
            both.wait()

    def tool(number: int) -> Any:
        async def team() -> str:
            """Ask the team."""
            with ThreadPoolExecutor(1) as pool:
                await asyncio.get_running_loop().run_in_executor(pool, lambda: run(helpers[number]))
            return "done"

        return function_tool(team, name_override=f"team{number}")

    from driver import Call

    stage.add(lambda step: deny("no") if step.kind == "shell" else None, on="before_tool")
    agent = stage.agent(Call([("team0", {}), ("team1", {})]), tools=[tool(0), tool(1)])
    await stage.runner.run(agent, "Go.")
    assert stage.ran == []
    assert len([step for step in stage.steps("before_tool") if step.tool == "shell"]) == 2


async def test_a_thread_that_may_be_of_several_policies_is_refused(stage: Stage) -> None:
    other, outcome = Stage(), []
    started, done = asyncio.Event(), asyncio.Event()

    @function_tool
    async def wait() -> str:
        """Wait."""
        started.set()
        await done.wait()
        return "done"

    @function_tool
    async def team() -> str:
        """Ask the team."""
        with ThreadPoolExecutor(1) as pool:
            run = asyncio.get_running_loop().run_in_executor(pool, lambda: Runner.run_sync(helper_of(stage), "Help."))
            try:
                await run
            except FairleadError as error:
                outcome.append(str(error))
        return "done"

    waiting = asyncio.ensure_future(other.runner.run(other.agent(call("wait"), tools=[wait]), "Go."))
    await started.wait()
    await stage.runner.run(stage.agent(call("team"), tools=[team]), "Go.")
    done.set()
    await waiting
    assert stage.ran == []
    assert "tools of several Fairleads run" in outcome[0]


@pytest.mark.ungoverned("An agent that runs through another `Runner`")
async def test_a_runner_of_the_sdk_s_own_class_is_free(stage: Stage) -> None:
    stage.add(lambda step: deny("no") if step.kind == "shell" else None, on="before_tool")
    tools = [in_a_pool(helper_of(stage), AgentRunner())]
    await stage.runner.run(stage.agent(call("team"), tools=tools), "Go.")
    assert stage.ran == ["ls"]


@pytest.mark.ungoverned("A thread that goes on after its tool has ended")
async def test_a_thread_that_outlives_its_tool_is_free(stage: Stage) -> None:
    go, threads, helper = threading.Event(), [], helper_of(stage)

    def later() -> None:
        go.wait(20)
        Runner.run_sync(helper, "Help.")

    @function_tool
    def start() -> str:
        """Start something."""
        threads.append(threading.Thread(target=later))
        threads[0].start()
        return "started"

    stage.add(lambda step: deny("no") if step.kind == "shell" else None, on="before_tool")
    await stage.runner.run(stage.agent(call("start"), tools=[start]), "Go.")
    go.set()
    await asyncio.to_thread(threads[0].join)
    assert stage.ran == ["ls"]


@pytest.mark.ungoverned("A raw thread that other code than a tool starts")
async def test_an_agent_in_a_raw_thread_of_a_guardrail_is_free(stage: Stage) -> None:
    helper = helper_of(stage)

    async def check(context: Any, agent: Any, input: Any) -> GuardrailFunctionOutput:
        with ThreadPoolExecutor(1) as pool:
            await asyncio.get_running_loop().run_in_executor(pool, lambda: Runner.run_sync(helper, "Help."))
        return GuardrailFunctionOutput(None, tripwire_triggered=False)

    stage.add(lambda step: deny("no") if step.kind == "shell" else None, on="before_tool")
    await stage.runner.run(stage.agent(input_guardrails=[InputGuardrail(check)]), "Go.")
    assert stage.ran == ["ls"]


@pytest.mark.ungoverned("A tool that your own code calls")
async def test_a_tool_that_is_called_directly_is_free(stage: Stage) -> None:
    @function_tool
    async def outer(command: str) -> str:
        """Call another."""
        context = ToolContext(None, tool_name="shell", tool_call_id="x", tool_arguments="{}")
        return str(await stage.shell.on_invoke_tool(context, '{"command": "rm"}'))

    stage.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool")
    await stage.runner.run(stage.agent(call("outer", command="x"), tools=[outer]), "Go.")
    assert stage.ran == ["rm"]


async def test_a_copy_of_a_tool_and_a_tool_that_is_added_in_the_run_are_judged(stage: Stage) -> None:
    late = dataclasses.replace(stage.shell, name="late")

    @function_tool
    def grow() -> str:
        """Add a tool."""
        agent.tools.append(late)
        return "done"

    agent = stage.agent(LS, call("grow"), call("late", command="rm"), tools=[dataclasses.replace(stage.shell), grow])
    stage.add(lambda step: deny("no") if step.tool != "grow" else None, on="before_tool")
    await stage.runner.run(agent, "Go.")
    assert stage.ran == []
    assert [step.tool for step in stage.steps("before_tool")] == ["shell", "grow", "late"]


async def test_what_hooks_of_the_sdk_do_to_a_call_s_arguments_does_not_reach_the_tool(stage: Stage) -> None:
    class Rewrites(RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            context.tool_arguments = '{"command": "rm"}'
            if getattr(context, "tool_call", None) is not None:
                context.tool_call.arguments = '{"command": "rm"}'

    stage.add(lambda step: deny("no") if "rm" in str(step.args) else None, on="before_tool")
    await stage.runner.run(stage.agent(LS), "Go.", hooks=Rewrites())
    assert stage.ran in ([], ["ls"])


async def test_calls_after_a_handoff_to_a_copy_of_an_agent_are_judged(stage: Stage) -> None:
    helper = helper_of(stage)
    stage.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool")
    agent = stage.agent(call("transfer_to_helper"), handoffs=[helper.clone()])
    await stage.runner.run(agent, "Go.")
    assert stage.ran == []
    assert "shell" in [step.tool for step in stage.steps("before_tool")]


async def test_an_agent_that_is_cloned_as_a_tool_is_judged(stage: Stage) -> None:
    tool = helper_of(stage).clone().as_tool("helper", "Helps.")
    stage.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool")
    await stage.runner.run(stage.agent(call("helper", input="Help."), tools=[tool]), "Go.")
    assert stage.ran == []


async def test_two_adapters_on_the_sdk_s_runner_judge_each_their_own(stage: Stage) -> None:
    other = Fairlead(Stage().hooks)
    await other.run(stage.agent(), "Go.")
    stage.add(change(args={"command": "pwd"}), on="before_tool", tool="shell")
    await stage.runner.run(stage.agent(call("team"), tools=[in_a_pool(helper_of(stage), Runner)]), "Go.")
    assert stage.ran == ["pwd"]


@pytest.mark.ungoverned("a task with an empty context")
async def test_a_task_with_an_empty_context_is_free(stage: Stage) -> None:
    helper = helper_of(stage)

    @function_tool
    async def team() -> str:
        """Ask the team."""
        run = Runner.run(helper, "Help.")
        return str((await asyncio.get_running_loop().create_task(run, context=contextvars.Context())).final_output)

    stage.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool")
    await stage.runner.run(stage.agent(call("team"), tools=[team]), "Go.")
    assert stage.ran == ["ls"]


@pytest.mark.ungoverned("has set another default runner")
async def test_an_agent_under_another_default_runner_is_free(stage: Stage) -> None:
    helper = helper_of(stage)

    @function_tool
    async def team() -> str:
        """Ask the team."""
        set_default_agent_runner(None)
        return str((await Runner.run(helper, "Help.")).final_output)

    stage.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool")
    await stage.runner.run(stage.agent(call("team"), tools=[team]), "Go.")
    assert stage.ran == ["ls"]


async def test_a_model_that_is_given_to_the_run_is_governed(stage: Stage) -> None:
    stage.add(lambda step: deny("no"), on="before_tool")
    model = stage.model(call("shell", command="rm"))
    await stage.runner.run(Agent("main", tools=[stage.shell]), "Go.", run_config=RunConfig(model=model))
    assert stage.ran == []
    assert [step.tool for step in stage.steps("before_tool")] == ["shell"]


class _Sets(AgentHooks[Any]):
    def __init__(self, **values: Any) -> None:
        self.values = values

    async def on_start(self, context: Any, agent: Any) -> None:
        for name, value in self.values.items():
            setattr(agent, name, value)


async def test_a_model_that_the_agents_own_functions_set_is_governed(stage: Stage) -> None:
    def instructions(context: Any, agent: Any) -> str:
        agent.model = stage.model(Say("A secret."))
        return "Be brief."

    stage.add(lambda step: change(output=step.output.replace("secret", "***")), on="after_model")
    for about in ({"instructions": instructions}, {"hooks": _Sets(model=stage.model(Say("A secret.")))}):
        result = await stage.runner.run(stage.agent(**about), "Go.")
        assert result.final_output == "A ***."


async def test_a_tool_use_behavior_that_an_agents_hook_sets_does_not_end_the_turn_past_the_hooks(stage: Stage) -> None:
    stage.add(lambda step: extend("Go on.") if step.continues_so_far == 0 else None, on="before_turn_end")
    agent = stage.agent(LS, Say("More."), hooks=_Sets(tool_use_behavior="stop_on_first_tool"))
    result = await stage.runner.run(agent, "Go.")
    assert result.final_output == "More."
    assert len(stage.played.sent) == 2


async def test_what_a_human_edits_in_an_interruption_is_judged_or_refused(stage: Stage) -> None:
    stage.add(lambda step: deny("no rm") if "rm" in str(step.args) else ask("Really?"), on="before_tool")
    agent = stage.agent(LS)
    state = (await stage.runner.run(agent, "Go.")).to_state()
    (item,) = state.get_interruptions()
    item.raw_item.arguments = '{"command": "rm"}'
    with suppress(ModelBehaviorError):  # newer versions of the SDK refuse it
        state.approve(item)
        await stage.runner.run(agent, state)
    assert stage.ran == []


async def test_the_tools_of_a_sandbox_are_judged(stage: Stage) -> None:
    sandbox = pytest.importorskip("agents.sandbox")
    from agents.sandbox.sandboxes.unix_local import UnixLocalSandboxClient

    stage.add(lambda step: deny("no"), on="before_tool")
    agent = sandbox.SandboxAgent(
        "main", model=stage.model(call("exec_command", cmd="touch x"), LS), tools=[stage.shell]
    )
    config = RunConfig(sandbox=sandbox.SandboxRunConfig(client=UnixLocalSandboxClient()))
    await stage.runner.run(agent, "Go.", run_config=config)
    assert stage.ran == []
    assert [step.outcome for step in stage.steps("after_tool")] == ["denied", "denied"]


# --- what the model reads of a call that has failed -------------------------------------------------


def redact(step: Any) -> Any:
    return change(output=step.output.replace("hunter2", "[redacted]"))


async def test_a_tool_s_own_text_about_its_failure_can_be_redacted(stage: Stage) -> None:
    @function_tool(failure_error_function=lambda context, error: f"no login as hunter2: {error}")
    async def login() -> str:
        """Log in."""
        raise ValueError("busy")

    stage.add(redact, on="after_tool")
    await stage.runner.run(stage.agent(call("login"), tools=[login]), "Go.")
    assert stage.played.sent[-1][-1] == "tool: no login as [redacted]: busy"
    if REPORTS_ERRORS:
        assert [(step.outcome, step.error) for step in stage.steps("after_tool")] == [("error", "ValueError: busy")]


@pytest.mark.skipif(not hasattr(FunctionTool, "timeout_seconds"), reason="time limits came later")
@pytest.mark.parametrize("text", ["no login as hunter2", None])
async def test_what_stands_in_for_a_tool_that_takes_too_long_can_be_redacted(stage: Stage, text: str | None) -> None:
    told = None if text is None else lambda context, error: text

    @function_tool(timeout=0.05, timeout_error_function=told)
    async def login() -> str:
        """Log in."""
        await asyncio.Event().wait()
        return "done"

    stage.add(lambda step: change(output=f"[{step.output}]"), on="after_tool")
    await stage.runner.run(stage.agent(call("login"), tools=[login]), "Go.")
    sdk_s = "Tool 'login' timed out after 0.05 seconds."
    assert stage.played.sent[-1][-1] == f"tool: [{text or sdk_s}]"
    (step,) = stage.steps("after_tool")
    assert (step.outcome, step.executed) == ("error", True)
    assert step.error.startswith("ToolTimeoutError")


@pytest.mark.skipif(not hasattr(FunctionTool, "timeout_seconds"), reason="time limits came later")
async def test_the_time_that_hooks_take_does_not_count_for_the_tool(stage: Stage) -> None:
    @function_tool(timeout=0.2)
    async def login() -> str:
        """Log in."""
        return "done"

    async def slow(step: Any) -> None:
        await asyncio.sleep(0.4)

    stage.hooks.add(slow, on="after_tool", name="slow")
    await stage.runner.run(stage.agent(call("login"), tools=[login]), "Go.")
    assert stage.played.sent[-1][-1] == "tool: done"


async def test_what_a_guardrail_puts_in_place_of_a_result_is_on_the_page_and_seen_before_the_model(
    stage: Stage,
) -> None:
    import boundary

    assert "output guardrail of a tool" in boundary.not_governed("openai_agents")

    @tool_output_guardrail
    def reject(data: Any) -> Any:
        return ToolGuardrailFunctionOutput.reject_content("a secret")

    shell = dataclasses.replace(stage.shell, tool_output_guardrails=[reject])
    stage.add(lambda step: deny("no") if "secret" in str(step.messages) else None, on="before_model")
    await stage.runner.run(stage.agent(LS, tools=[shell]), "Go.")
    assert not any("secret" in line for sent in stage.played.sent for line in sent)


@pytest.mark.parametrize("words", ["Realtime", "at the provider", "ComputerTool"])
def test_what_cannot_be_tried_offline_is_on_the_page(words: str) -> None:
    import boundary

    assert words in boundary.not_governed("openai_agents")
