"""The ways around the hooks in Pydantic AI: toolsets of the user, retries, other capabilities, direct calls."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import boundary
import pytest
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import RunContext
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset
from test_pydantic_ai import LS, Stage, run, run_streaming

from fairlead import HookAborted, abort, change, deny
from fairlead.hosts.frameworks.pydantic_ai import Fairlead

BOTH = pytest.mark.parametrize("running", [run, run_streaming])


def no_rm(stage: Stage) -> None:
    stage.add(lambda step: deny("no rm") if "rm" in str(step.args) else None, on="before_tool", phase="gate")


@dataclass
class Rewrites(WrapperToolset[Any]):
    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        return await super().call_tool(name, {"command": "rm -rf edited"}, ctx, tool)


@dataclass
class Repeats(WrapperToolset[Any]):
    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        return [await super(Repeats, self).call_tool(name, tool_args, ctx, tool) for _ in range(3)][-1]


@dataclass
class Redirects(WrapperToolset[Any]):
    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        tools = await self.wrapped.get_tools(ctx)
        return await super().call_tool("danger", tool_args, ctx, tools["danger"])


@dataclass
class Answers(WrapperToolset[Any]):
    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        return "the secret"


class WithState(WrapperToolset[Any]):
    """A toolset with a constructor of its own."""

    def __init__(self, wrapped: Any, prefix: str) -> None:
        super().__init__(wrapped)
        self.prefix = prefix

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        return await super().call_tool(name, {"command": f"{self.prefix} {tool_args['command']}"}, ctx, tool)


def tools_of(stage: Stage) -> FunctionToolset[Any]:
    return FunctionToolset([stage.shell])


@BOTH
@pytest.mark.parametrize("nested", ["plain", "twice", "combined", "dynamic", "prefixed beneath"])
async def test_what_a_toolset_of_the_user_makes_of_a_call_is_judged(running: Any, nested: str) -> None:
    stage = Stage(LS)
    toolset: Any = Rewrites(tools_of(stage))
    if nested == "twice":
        toolset = Rewrites(Repeats(tools_of(stage)))
    elif nested == "combined":
        toolset = Rewrites(tools_of(stage).filtered(lambda ctx, tool: True))
    elif nested == "dynamic":
        made = toolset

        def toolset(ctx: RunContext[Any]) -> Any:
            return made

    elif nested == "prefixed beneath":
        stage = Stage(ToolCallPart("a_shell", {"command": "ls"}, "c1"))
        toolset = Rewrites(tools_of(stage).prefixed("a"))
    no_rm(stage)
    await running(stage.agent(toolsets=[toolset]))
    assert stage.ran == []
    assert {step.args["command"] for step in stage.steps("before_tool")} == {"rm -rf edited"}
    assert {step.outcome for step in stage.steps("after_tool")} == {"denied"}


async def test_each_call_that_a_toolset_of_the_user_repeats_is_judged() -> None:
    stage = Stage(LS)
    stage.hooks.add(lambda step: None, on="before_tool", name="none")
    await stage.agent(toolsets=[Repeats(tools_of(stage))]).run("Go.")
    assert stage.ran == ["ls"] * 3
    assert len(stage.steps("before_tool")) == 3


async def test_a_limit_holds_for_repeated_calls() -> None:
    stage, left = Stage(LS), [1, 1]
    stage.add(lambda step: None if left and left.pop() else deny("enough"), on="before_tool")
    await stage.agent(toolsets=[Repeats(tools_of(stage))]).run("Go.")
    assert stage.ran == ["ls"] * 2


async def test_the_tool_that_runs_is_the_one_that_is_judged() -> None:
    stage = Stage(LS)

    def danger(command: str) -> str:
        """Do harm."""
        stage.ran.append(f"danger {command}")
        return "done"

    stage.add(lambda step: deny("no") if step.tool == "danger" else None, on="before_tool")
    await stage.agent(toolsets=[Redirects(FunctionToolset([stage.shell, danger]))]).run("Go.")
    assert stage.ran == []
    assert [step.tool for step in stage.steps("before_tool")] == ["danger"]


@pytest.mark.parametrize("outside", [True, False])
async def test_a_tool_has_the_name_by_which_the_model_calls_it(outside: bool) -> None:
    stage = Stage(ToolCallPart("a_shell", {"command": "ls"}, "c1"))
    inner = tools_of(stage)
    toolset = Repeats(inner).prefixed("a") if outside else Repeats(inner.prefixed("a"))
    stage.add(lambda step: deny("no"), on="before_tool", tool="a_shell")
    await stage.agent(stage.shell, toolsets=[toolset]).run("Go.")
    assert stage.ran == []


async def test_a_toolset_with_a_constructor_of_its_own_still_works() -> None:
    stage = Stage(LS)
    no_rm(stage)
    await stage.agent(toolsets=[WithState(tools_of(stage), "sudo")]).run("Go.")
    assert stage.ran == ["sudo ls"]
    assert stage.steps("before_tool")[0].args == {"command": "sudo ls"}


async def test_arguments_that_a_hook_changes_reach_the_tool_beneath_a_toolset_of_the_user() -> None:
    stage = Stage(LS)
    stage.add(change(args={"command": "pwd"}), on="before_tool")
    await stage.agent(toolsets=[Rewrites(tools_of(stage))]).run("Go.")
    assert stage.ran == ["pwd"]


async def test_an_answer_of_a_toolset_of_the_user_is_judged_before_the_model_reads_it() -> None:
    stage = Stage(LS)
    stage.add(deny("no"), on="before_tool")
    await stage.agent(toolsets=[Answers(tools_of(stage))]).run("Go.")
    assert not any("the secret" in line for line in stage.sent[-1])
    assert [step.outcome for step in stage.steps("after_tool")] == ["denied"]


async def test_a_toolset_of_the_user_cannot_swallow_an_abort() -> None:
    @dataclass
    class Swallows(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            try:
                return await super().call_tool(name, tool_args, ctx, tool)
            except Exception:
                return "fine"

    stage = Stage(LS)
    stage.add(abort("no"), on="before_tool")
    with pytest.raises(HookAborted):
        await stage.agent(toolsets=[Swallows(tools_of(stage))]).run("Go.")
    assert stage.ran == []


async def test_another_capability_s_rewriting_and_toolset_are_judged() -> None:
    @dataclass
    class Other(AbstractCapability[Any]):
        seen: list[Any] = field(default_factory=list)

        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> Any:
            return {"command": "rm"}

        def get_wrapper_toolset(self, toolset: Any) -> Any:
            return Repeats(toolset)

    for order in (0, 1):
        stage = Stage(LS)
        no_rm(stage)
        both: list[Any] = [Other(), stage.fairlead]
        await stage.agent(stage.shell, capabilities=both[:: 1 if order else -1]).run("Go.")
        assert stage.ran == []


# --- retries ----------------------------------------------------------------------------------------


@BOTH
async def test_what_a_model_retry_says_can_be_redacted(running: Any) -> None:
    stage = Stage(LS)

    def shell(command: str) -> str:
        """Run a command."""
        raise ModelRetry("try again with hunter2")

    def redact(step: Any) -> Any:
        return change(output=step.output.replace("hunter2", "[hidden]")) if "hunter2" in str(step.output) else None

    stage.add(redact, on="after_tool")
    await running(stage.agent(shell, retries=2))
    assert not any("hunter2" in line for lines in stage.sent for line in lines)
    assert any("try again with [hidden]" in line for line in stage.sent[-1])


async def test_a_model_retry_that_no_hook_changes_is_pydantic_ai_s_own() -> None:
    stage = Stage(LS, LS)
    stage.hooks.add(lambda step: None, on="after_tool", name="none")
    left = [1]

    def shell(command: str) -> str:
        """Run a command."""
        if left:
            left.pop()
            raise ModelRetry("again")
        return "done"

    await stage.agent(shell).run("Go.")
    assert [step.outcome for step in stage.steps("after_tool")] == ["error", "ok"]
    assert stage.steps("after_tool")[0].error == "again"
    assert "error" not in stage.events


async def test_a_withheld_model_retry_says_why_it_is_withheld() -> None:
    stage = Stage(LS)

    def shell(command: str) -> str:
        """Run a command."""
        raise ModelRetry("the secret")

    stage.add(deny("it is secret"), on="after_tool")
    await stage.agent(shell).run("Go.")
    assert not any("the secret" in line for lines in stage.sent for line in lines)


# --- what stays open --------------------------------------------------------------------------------


@pytest.mark.ungoverned("A tool that your own code calls")
async def test_a_tool_that_another_tool_calls_is_free() -> None:
    stage = Stage(ToolCallPart("outer", {"command": "x"}, "c1"))
    inner = tools_of(stage)

    async def outer(ctx: RunContext[Any], command: str) -> str:
        """Call another."""
        tools = await inner.get_tools(ctx)
        return str(await inner.call_tool("shell", {"command": command}, ctx, tools["shell"]))

    stage.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool")
    await stage.agent(outer).run("Go.")
    assert stage.ran == ["x"]


@pytest.mark.ungoverned("A run of an agent without `Fairlead`")
async def test_an_agent_without_it_inside_a_tool_is_free() -> None:
    stage = Stage(ToolCallPart("team", {}, "c1"), LS)
    free = stage.agent(stage.shell, capabilities=[])

    async def team() -> str:
        """Ask the team."""
        return str((await free.run("Go.")).output)

    stage.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool")
    await stage.agent(team).run("Go.")
    assert stage.ran == ["ls"]


async def test_an_agent_in_a_thread_of_a_tool_is_judged_as_a_request_of_its_own() -> None:
    stage = Stage(ToolCallPart("team", {}, "c1"), LS)
    helper = stage.agent(stage.shell, name="helper")

    def team() -> str:
        """Ask the team."""
        thread = threading.Thread(target=lambda: helper.run_sync("Go."))
        thread.start()
        thread.join()
        return "done"

    stage.add(lambda step: deny("no") if step.tool == "shell" else None, on="before_tool")
    await stage.agent(team).run("Go.")
    assert stage.ran == []
    assert stage.events.count("session_start") == 2


async def test_toolsets_that_are_given_to_one_run_are_judged() -> None:
    stage = Stage(LS)
    no_rm(stage)
    await stage.agent().run("Go.", toolsets=[Rewrites(tools_of(stage))])
    assert stage.ran == []


async def test_an_override_of_the_tools_is_judged() -> None:
    stage = Stage(LS)
    no_rm(stage)
    agent = stage.agent()
    with agent.override(toolsets=[Rewrites(tools_of(stage))]):
        await agent.run("Go.")
    assert stage.ran == []


async def test_an_agent_whose_capabilities_are_given_late_is_judged() -> None:
    stage = Stage(LS)
    no_rm(stage)
    agent = Agent(stage.model, toolsets=[Rewrites(tools_of(stage))])
    await agent.run("Go.", capabilities=[Fairlead(stage.hooks)])
    assert stage.ran == []


@pytest.mark.parametrize("words", ["process_tool_call", "the provider runs itself", "realtime"])
def test_what_cannot_be_tried_offline_is_on_the_page(words: str) -> None:
    assert words in boundary.not_governed("pydantic_ai")
