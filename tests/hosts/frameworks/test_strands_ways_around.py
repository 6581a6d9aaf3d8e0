"""Strands: the ways in which a tool could run other than hooks have judged."""

from __future__ import annotations

import asyncio
import threading
from copy import copy
from types import SimpleNamespace
from typing import Any

import pytest
from boundary import Boundary, not_governed
from driver import Say, call
from driver_strands import Scripted
from strands import Agent, tool
from strands.hooks import AfterToolCallEvent, BeforeModelCallEvent, BeforeToolCallEvent
from strands.multiagent import GraphBuilder, Swarm
from test_strands import LS, Stage
from test_strands import stage as stage

from fairlead import FairleadError, Hooks, current_session, deny
from fairlead.hosts.frameworks.strands import Fairlead
from fairlead.hosts.frameworks.strands.versions import ExecuteToolStage

middleware = pytest.mark.skipif(ExecuteToolStage is None, reason="since 1.62")
RM = {"command": "rm -rf /"}


def no_rm(step: Any) -> Any:
    return deny("no rm") if "rm" in str(step.args) else None


@pytest.fixture
def strict(stage: Stage) -> Stage:
    stage.hooks.add(no_rm, on="before_tool", name="no-rm")
    return stage


def rewriting(context: Any, following: Any) -> Any:
    return following(context.replace(tool_use={**context.tool_use, "input": RM}))


@middleware
@pytest.mark.parametrize("when", ["before Fairlead is there", "after the agent is made", "between two runs"])
async def test_middleware_that_rewrites_a_call_is_judged_whenever_it_is_added(strict: Stage, when: str) -> None:
    agent = strict.agent(LS, Say("One."), LS, hooks=[] if when.startswith("before") else [strict.fairlead])
    if when == "between two runs":
        await agent.invoke_async("Go.")
    agent.add_middleware(ExecuteToolStage, rewriting)
    if when.startswith("before"):
        agent.hooks.add_hook(strict.fairlead)
    strict.bench.ran.clear()
    await agent.invoke_async("Go.")
    assert strict.bench.ran == []
    assert strict.steps("before_tool")[-1].args == RM


@middleware
async def test_a_call_that_middleware_makes_twice_is_judged_twice(strict: Stage) -> None:
    async def twice(context: Any, following: Any) -> Any:
        async for _ in following(context):
            pass
        async for event in following(context):
            yield event

    agent = strict.agent(LS)
    agent.add_middleware(ExecuteToolStage, twice)
    await agent.invoke_async("Go.")
    assert (len(strict.bench.ran), len(strict.steps("before_tool"))) == (2, 2)


@middleware
async def test_a_registry_of_hooks_that_is_cleared_does_not_free_the_tools(strict: Stage) -> None:
    agent = strict.agent(call("shell", **RM))
    agent.hooks._registered_callbacks.clear()
    await agent.invoke_async("Go.")
    assert strict.bench.ran == []


async def test_arguments_that_a_later_hook_rewrites_are_judged(strict: Stage) -> None:
    agent = strict.agent(LS)

    def rewrite(event: BeforeToolCallEvent) -> None:
        event.tool_use = {**event.tool_use, "input": RM}

    agent.hooks.add_callback(BeforeToolCallEvent, rewrite)
    await agent.invoke_async("Go.")
    assert strict.bench.ran == []


async def test_a_call_that_a_hook_retries_is_judged_again(strict: Stage) -> None:
    agent, left = strict.agent(LS), [True]

    def again(event: AfterToolCallEvent) -> None:
        event.retry = bool(left) and left.pop()

    agent.hooks.add_callback(AfterToolCallEvent, again)
    await agent.invoke_async("Go.")
    assert (len(strict.bench.ran), len(strict.steps("before_tool"))) == (2, 2)


@pytest.mark.parametrize("where", ["here", "in a thread"])
async def test_a_direct_call_of_an_agents_tool_is_judged(strict: Stage, where: str) -> None:
    agent = strict.agent()
    if where == "here":
        agent.tool.shell(**RM)
    else:
        await asyncio.to_thread(agent.tool.shell, **RM)
    assert strict.bench.ran == []


async def test_a_result_that_another_hook_puts_in_place_of_a_call_can_be_redacted(stage: Stage) -> None:
    from fairlead import change

    stage.hooks.add(lambda step: change(output="[redacted]"), on="after_tool", name="redact")
    agent = stage.agent(LS)

    def cancel(event: BeforeToolCallEvent) -> None:
        event.cancel_tool = "the secret"

    agent.hooks.add_callback(BeforeToolCallEvent, cancel)
    await agent.invoke_async("Go.")
    assert stage.played.sent[-1][-1] == "tool: [redacted]"


async def test_a_tool_of_an_mcp_server_is_judged_by_what_it_does(stage: Stage) -> None:
    stage.hooks.add(lambda step: deny("no shells"), on="before_tool", kind="shell", name="no-shells")
    ran: list[str] = []

    @tool(name="box_shell")
    def remote(command: str) -> str:
        """Run a command on the server."""
        ran.append(command)
        return "ran"

    remote.mcp_tool = SimpleNamespace(annotations=None, name="shell")  # type: ignore[attr-defined]
    remote.mcp_client = SimpleNamespace(_prefix="box")  # type: ignore[attr-defined]
    await stage.agent(call("box_shell", command="ls"), tools=[remote]).invoke_async("Go.")
    assert ran == []
    assert stage.steps("before_tool")[0].target.server == "box"


def helper_in(stage: Stage, run: Any, hooks: list[Any], script: list[Any]) -> Agent:
    """An agent with a tool that runs a helper in some way."""

    @tool
    def delegate() -> str:
        """Have a helper do it."""
        helper = stage.agent(hooks=hooks, name="helper")
        helper.model = Scripted(script, stage.played, "helper")
        run(lambda: helper("Go."))
        return "done"

    return stage.agent(call("delegate"), tools=[delegate])


def in_a_thread(work: Any) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


async def test_a_helper_inside_of_a_tool_shares_its_limits(stage: Stage) -> None:
    stage.hooks.add(limit_of(1), on="before_tool", kind="shell", name="limit")
    await helper_in(stage, lambda work: work(), [stage.fairlead], [LS, LS, LS]).invoke_async("Go.")
    assert len(stage.bench.ran) == 1
    assert len({step.root_session_id for step in stage.steps("before_tool")}) == 1


async def test_a_helper_in_a_raw_thread_is_judged_but_has_a_root_session_of_its_own(stage: Stage) -> None:
    stage.hooks.add(no_rm, on="before_tool", name="no-rm")
    script = [call("shell", **RM), LS]
    await helper_in(stage, in_a_thread, [stage.fairlead], script).invoke_async("Go.")
    assert stage.bench.ran == [("shell", {"command": "ls"})]
    assert len({step.root_session_id for step in stage.steps("before_tool")}) == 2
    assert "in a thread that your tool starts" in not_governed("strands")


async def test_an_agent_without_fairlead_inside_of_a_tool_is_a_subagent_under_its_hooks(strict: Stage) -> None:
    await helper_in(strict, lambda work: work(), [], [call("shell", **RM), LS]).invoke_async("Go.")
    assert strict.bench.ran == [("shell", {"command": "ls"})]
    assert [step.agent_name for step in strict.steps("subagent_start")] == ["helper"]


async def test_an_agent_with_hooks_of_its_own_inside_of_a_tool_keeps_to_these(stage: Stage) -> None:
    other = Hooks()
    other.add(no_rm, on="before_tool", name="no-rm")
    await helper_in(stage, lambda work: work(), [Fairlead(other)], [call("shell", **RM)]).invoke_async("Go.")
    assert stage.bench.ran == []
    assert [step.tool for step in stage.steps("before_tool")] == ["delegate"]


@pytest.mark.parametrize("name", ["subagent", "swarm"])
async def test_agents_that_a_tool_of_strands_makes_are_subagents(strict: Stage, name: str) -> None:
    tools = pytest.importorskip(f"strands.vended_tools.{name}")
    args = {"subagent": {"task": "Go."}, "swarm": {"task": "Go.", "agents": [{"name": "one", "instructions": ""}]}}
    agent = strict.agent(call(name, **args[name]), call("shell", **RM), LS, tools=[getattr(tools, name)])
    await agent.invoke_async("Go.")
    assert strict.bench.ran == [("shell", {"command": "ls"})]
    assert len({step.agent.id for step in strict.steps("before_tool")}) == 2


async def test_a_copy_of_an_agent_is_judged_once_as_the_agent_is(strict: Stage) -> None:
    agent = strict.agent(LS, call("shell", **RM), Say("Done."), LS)
    await agent.invoke_async("Go.")
    await copy(agent).invoke_async("Go.")
    assert strict.bench.ran == [("shell", {"command": "ls"})] * 2
    assert [step.args["command"] for step in strict.steps("before_tool")] == ["ls", "rm -rf /", "ls"]
    assert strict.events.count("after_tool") == strict.events.count("before_tool")


def test_a_bidirectional_agent_is_refused(strict: Stage) -> None:
    try:
        from strands.bidi import BidiAgent
        from strands.bidi.models import BidiModel
    except ImportError:  # before 1.62
        from strands.experimental.bidi import BidiAgent
        from strands.experimental.bidi.models import BidiModel

    class Voice(BidiModel):
        def nothing(self, *args: Any, **options: Any) -> Any: ...

        start = stop = send = receive = get_config = update_config = nothing

    with pytest.raises(FairleadError, match="does not govern bidirectional agents"):
        BidiAgent(model=Voice(), hooks=[strict.fairlead])


def limit_of(calls: int) -> Any:
    def limit(step: Any) -> Any:
        session = current_session()
        assert session is not None
        return deny("that is enough") if session.store.increment("calls") > calls else None

    return limit


def a_graph(*members: Any, hooks: Any = ()) -> Any:
    builder = GraphBuilder()
    for number, member in enumerate(members):
        builder.add_node(member, f"n{number}")
    builder.set_hook_providers(list(hooks))
    return builder.build()


@pytest.mark.parametrize("inner", [lambda agent: a_graph(agent), lambda agent: Swarm([agent])], ids=["graph", "swarm"])
async def test_a_swarm_or_a_graph_inside_a_graph_is_judged_and_shares_its_limits(strict: Stage, inner: Any) -> None:
    strict.hooks.add(count_calls, on="before_tool", name="count")
    helpers = [strict.agent(call("shell", **RM), LS, LS, name=f"helper{number}", hooks=[]) for number in range(2)]
    await a_graph(*map(inner, helpers), hooks=[strict.fairlead]).invoke_async("Go.")
    assert strict.bench.ran == [("shell", {"command": "ls"})] * 2
    assert len({step.root_session_id for step in strict.steps("before_tool")}) == 1


def count_calls(step: Any) -> Any:
    allowed = "rm" in str(step.args) or current_session().store.increment("calls") <= 2
    return None if allowed else deny("that is enough")


async def test_two_on_one_graph_are_an_error_unless_they_have_the_same_hooks(strict: Stage) -> None:
    with pytest.raises(FairleadError, match="runs under another Fairlead already; register all hooks with one Hooks"):
        a_graph(strict.agent(hooks=[]), hooks=[strict.fairlead, Fairlead(Hooks())])
    for second in (strict.fairlead, Fairlead(strict.hooks)):
        strict.decisions.clear()
        strict.hooks.add(lambda step: None, on="before_input", name="watch", replace=True)
        await a_graph(strict.agent(hooks=[]), hooks=[strict.fairlead, second]).invoke_async("Go.")
        assert len(strict.steps("before_input")) == 2  # of the graph and of its agent


async def test_a_tool_that_says_that_it_is_a_form_is_judged(strict: Stage) -> None:
    shell = strict.agent().tool_registry.registry["shell"]
    form = type("Form", (type(shell),), {"tool_type": "structured_output"})
    shell.__class__ = form
    await strict.agent(call("shell", **RM), tools=[shell]).invoke_async("Go.")
    assert strict.bench.ran == []


# --- what is not governed ---------------------------------------------------------------------------


@pytest.mark.ungoverned("An agent without `Fairlead` in a thread that your tool starts")
async def test_an_agent_without_fairlead_in_a_raw_thread(strict: Stage) -> None:
    await helper_in(strict, in_a_thread, [], [call("shell", **RM)]).invoke_async("Go.")
    assert strict.bench.ran == [("shell", RM)]


@pytest.mark.ungoverned("in a callback of your hooks or in middleware")
async def test_an_agent_without_fairlead_in_a_callback(strict: Stage) -> None:
    helper, agent = strict.agent(call("shell", **RM), hooks=[]), strict.agent()

    async def help_out(event: BeforeModelCallEvent) -> None:
        await helper.invoke_async("Help.")

    agent.hooks.add_callback(BeforeModelCallEvent, help_out)
    await agent.invoke_async("Go.")
    assert strict.bench.ran == [("shell", RM)]


@pytest.mark.ungoverned("A tool that your code calls by itself")
async def test_a_tool_that_code_calls_past_its_agent(strict: Stage) -> None:
    shell = strict.agent().tool_registry.registry["shell"]
    async for _ in shell.stream({"toolUseId": "1", "name": "shell", "input": RM}, {}):
        pass
    assert strict.bench.ran == [("shell", RM)]


@pytest.mark.parametrize(
    "words", ["Bidirectional agents", "python_repl", "tools that the provider runs itself", "before 1.62"]
)
def test_the_page_lists_it(words: str, judged: Boundary) -> None:
    assert words.casefold() in not_governed("strands").casefold()
