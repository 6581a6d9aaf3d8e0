"""Microsoft Agent Framework: the ways in which a tool could run other than hooks have judged."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import agent_framework
import pytest
from agent_framework import (
    Agent,
    AgentContext,
    AgentExecutor,
    AgentMiddleware,
    AgentResponse,
    ChatContext,
    ChatMiddleware,
    ContextProvider,
    FunctionInvocationContext,
    FunctionMiddleware,
    Message,
    RawAgent,
    WorkflowBuilder,
    tool,
)
from boundary import Boundary, not_governed
from driver import Played, Say, call
from driver_agent_framework import Scripted, tools_of
from test_agent_framework import LS, Stage
from test_agent_framework import stream as stream

from fairlead import (
    ArgumentsChanged,
    FairleadError,
    HookAborted,
    Hooks,
    abort,
    change,
    current_session,
    deny,
    extend,
    stop,
)
from fairlead.hosts.frameworks.agent_framework import Fairlead

RM = {"command": "rm -rf /"}


def no_rm(step: Any) -> Any:
    return deny("no rm") if "rm" in str(step.args) else None


def limit(step: Any) -> Any:
    session = current_session()
    assert session is not None
    return deny("that is enough") if session.store.increment("calls") > 3 else None


class Rewriting(FunctionMiddleware):
    """Rewrites a call, or makes it twice."""

    def __init__(self, *, twice: bool = False, in_place: bool = False) -> None:
        self.twice, self.in_place = twice, in_place

    async def process(self, context: FunctionInvocationContext, call_next: Any) -> None:
        if self.twice:
            await call_next()
        elif self.in_place:
            context.arguments.update(RM)  # type: ignore[union-attr]
        else:
            context.arguments = dict(RM)
        await call_next()


class Providing(ContextProvider):
    """Adds middleware, which the framework puts after that of agents and runs."""

    def __init__(self, middleware: FunctionMiddleware | ChatMiddleware) -> None:
        super().__init__("providing")
        self.middleware = middleware

    async def before_run(self, *, context: Any, **_: Any) -> None:
        context.extend_middleware(self.source_id, self.middleware)


@pytest.mark.parametrize("where", ["before", "after", "run", "client"])
async def test_a_call_that_other_middleware_rewrites_is_judged_in_any_order(where: str, stream: bool) -> None:
    stage = Stage(LS, middleware=[Rewriting()] if where == "before" else [])
    stage.add(no_rm, "before_tool")
    if where == "after":
        stage.agent.middleware.append(Rewriting())
    if where == "client":
        stage.client.function_middleware.append(Rewriting())
    await stage.run(stream=stream, **({"middleware": [Rewriting()]} if where == "run" else {}))
    assert stage.bench.ran == []


@pytest.mark.parametrize("in_place", [True, False])
async def test_a_call_that_a_context_provider_rewrites_does_not_run(in_place: bool, stream: bool) -> None:
    stage = Stage(LS, context_providers=[Providing(Rewriting(in_place=in_place))])
    stage.add(no_rm, "before_tool")
    with pytest.raises(ArgumentsChanged, match="middleware of a context provider changed its arguments"):
        await stage.run(stream=stream)
    assert stage.bench.ran == []


async def test_a_call_that_a_context_provider_repeats_does_not_run_again(stream: bool) -> None:
    stage = Stage(LS, context_providers=[Providing(Rewriting(twice=True))])
    stage.add(no_rm, "before_tool")
    with pytest.raises(FairleadError, match="did not run again"):
        await stage.run(stream=stream)
    assert len(stage.bench.ran) == 1


class Adding(ChatMiddleware):
    """Adds a message to each request."""

    async def process(self, context: ChatContext, call_next: Any) -> None:
        context.messages = [*context.messages, Message("user", ["the secret"])]
        await call_next()


async def test_messages_that_a_context_provider_s_middleware_adds_are_judged(stream: bool) -> None:
    stage = Stage(Say("Fine."), context_providers=[Providing(Adding())])
    stage.add(lambda step: stop("no secrets") if "secret" in str(step.messages) else None, "before_model")
    response = await stage.run(stream=stream)
    assert (response.text, stage.sent) == ("[Stopped: no secrets]", [])


class Answering(AgentMiddleware):
    """Answers in place of the agent, or changes its answer."""

    def __init__(self, *, calls: bool) -> None:
        self.calls = calls

    async def process(self, context: AgentContext, call_next: Any) -> None:
        if self.calls:
            await call_next()
        context.result = AgentResponse(messages=[Message("assistant", ["A secret."])])


@pytest.mark.parametrize("calls", [True, False])
async def test_what_an_agent_middleware_before_it_answers_is_on_the_page_and_not_seen(calls: bool) -> None:
    assert "What an agent middleware before `Fairlead` answers" in not_governed("agent_framework")
    stage = Stage(Say("Fine."), middleware=[Answering(calls=calls)])
    stage.add(lambda step: change(content="***"), "before_output")
    assert (await stage.run()).text == "A secret."


@pytest.mark.parametrize("calls", [True, False])
async def test_what_an_agent_middleware_after_it_answers_is_judged(calls: bool) -> None:
    stage = Stage(Say("Fine."))
    stage.agent.middleware.append(Answering(calls=calls))
    stage.add(lambda step: change(content=step.content.replace("secret", "***")), "before_output")
    assert (await stage.run()).text == "A ***."


class Meddling(AgentMiddleware):
    """Changes what the middleware before it has prepared for the run."""

    def __init__(self, how: str) -> None:
        self.how = how

    async def process(self, context: AgentContext, call_next: Any) -> None:
        if self.how == "removes":
            del context.client_kwargs["middleware"]
        elif self.how == "replaces":
            context.client_kwargs = {}
        elif self.how == "empties":
            context.client_kwargs["middleware"].clear()
        else:
            context.client_kwargs["middleware"].append(Rewriting())
        await call_next()


@pytest.mark.parametrize("how", ["removes", "replaces", "empties", "adds"])
async def test_agent_middleware_that_comes_later_takes_nothing_away(how: str, stream: bool) -> None:
    stage = Stage(LS if how == "adds" else call("shell", **RM))
    stage.agent.middleware.append(Meddling(how))
    stage.add(no_rm, "before_tool")
    stage.add(lambda step: None, "before_model", name="watch", phase="observe")
    await stage.run(stream=stream)
    assert stage.bench.ran == []
    assert (len(stage.steps("before_model")), len(stage.steps("before_tool"))) == (2, 1)


def test_an_agent_that_never_calls_middleware_refuses_it() -> None:
    with pytest.raises(FairleadError, match="a RawAgent, which has no AgentMiddlewareLayer, never calls Fairlead"):
        RawAgent(client=Scripted("first", [], None), middleware=[Fairlead(Hooks())])


@pytest.mark.parametrize("where", ["middleware", "client_kwargs", "function_middleware", "chat_middleware"])
async def test_a_chat_client_refuses_it_with_each_request(where: str) -> None:
    client: Any = Scripted("first", [LS], Played())
    given: list[Any] = [Fairlead(Hooks())]
    options: Any = {"middleware": {"middleware": given}, "client_kwargs": {"client_kwargs": {"middleware": given}}}
    if where not in options:
        getattr(client, where).extend(given)
    with pytest.raises(FairleadError, match="a chat client never calls Fairlead"):
        await client.get_response([Message("user", ["Go."])], **options.get(where, {}))


@pytest.mark.parametrize("as_list", [True, False])
def test_a_chat_client_refuses_it(as_list: bool) -> None:
    fairlead = Fairlead(Hooks())
    with pytest.raises(FairleadError, match="a chat client never calls Fairlead"):
        Scripted("first", [], None, middleware=[fairlead] if as_list else fairlead)


async def test_two_on_one_agent_are_an_error_unless_they_have_the_same_hooks(stream: bool) -> None:
    stage = Stage(LS)
    with pytest.raises(FairleadError, match="runs under another Fairlead already; register all hooks with one Hooks"):
        await stage.run(stream=stream, middleware=[Fairlead(Hooks())])
    stage.add(lambda step: None, "before_tool")
    await stage.run(stream=stream, middleware=[Fairlead(stage.hooks)])
    assert len(stage.steps("before_tool")) == 1


# --- workflows and handoffs -------------------------------------------------------------------------


def agents(stage: Stage, **scripts: list[Any]) -> list[Agent]:
    return [
        Agent(
            client=Scripted(name, script, stage.played), name=name, id=name, tools=tools_of(stage.bench),
            middleware=[stage.fairlead], require_per_service_call_history_persistence=True,
        )
        for name, script in scripts.items()
    ]  # fmt: skip


async def test_the_agents_of_a_workflow_share_a_session_and_its_limits() -> None:
    stage = Stage()
    stage.add(limit, "before_tool")
    one, two = map(AgentExecutor, agents(stage, one=[LS, LS, LS], two=[LS, LS, LS]))
    await WorkflowBuilder(start_executor=one).add_edge(one, two).build().run("Go.")
    assert len(stage.bench.ran) == 3
    assert len({step.root_session_id for step in stage.steps("before_tool")}) == 1
    assert {step.agent.name for step in stage.steps("before_tool")} == {"one", "two"}


async def test_the_agents_of_a_workflow_that_is_a_function_share_a_session_and_its_limits() -> None:
    stage = Stage()
    stage.add(limit, "before_tool")
    one, two = agents(stage, one=[LS, LS, LS], two=[LS, LS, LS])
    if not hasattr(agent_framework, "workflow"):
        pytest.skip("there are no such workflows in the oldest versions")

    @agent_framework.workflow
    async def both(message: str) -> str:
        return str(await two.run(str(await one.run(message))))

    workflow = both.build() if hasattr(both, "build") else both
    await workflow.run("Go.")
    await workflow.run("Go.")
    assert len(stage.bench.ran) == 3
    assert len({step.root_session_id for step in stage.steps("before_tool")}) == 1


async def handoff(stage: Stage, *script: Any) -> None:
    orchestrations = pytest.importorskip("agent_framework_orchestrations")
    one, two = agents(stage, one=[call("handoff_to_two"), *script], two=[LS, Say("Two is done.")])
    workflow = orchestrations.HandoffBuilder(participants=[one, two]).with_start_agent(one).build()
    async for _ in workflow.run("Go.", stream=True):
        pass


async def test_a_handoff_is_judged_and_starts_a_subagent() -> None:
    stage = Stage()
    await handoff(stage)
    assert [(step.tool, step.kind) for step in stage.steps("before_tool")] == [
        ("handoff_to_two", "agent"), ("shell", "shell"),
    ]  # fmt: skip
    assert [step.agent_name for step in stage.steps("subagent_start")] == ["two"]
    assert stage.bench.ran == [("shell", {"command": "ls"})]


@pytest.mark.parametrize("event", ["before_tool", "subagent_start"])
async def test_a_handoff_can_be_refused(event: str) -> None:
    stage = Stage()
    stage.add(lambda step: deny("stay here") if getattr(step, "tool", "handoff_to_two") != "shell" else None, event)
    await handoff(stage, Say("I stay."))
    assert stage.bench.ran == []
    assert any("stay here" in text for text in stage.played.sent[1])


async def test_a_hook_that_extends_the_turn_does_not_lose_a_handoff() -> None:
    stage = Stage()
    stage.add(lambda step: None if step.continues_so_far else extend("Not yet."), "before_turn_end")
    await handoff(stage)
    assert stage.bench.ran == [("shell", {"command": "ls"})]
    (decision, *_) = [one for one in stage.decisions if one.event == "before_turn_end"]
    assert "extend" in decision.unsupported


async def test_a_tool_of_an_mcp_server_is_judged_by_what_it_does(stream: bool) -> None:
    ran: list[str] = []

    @tool(name="box_shell", approval_mode="never_require", additional_properties={"_mcp_remote_name": "shell"})
    def remote(command: str) -> str:
        """Run a command on the server."""
        ran.append(command)
        return "ran"

    stage = Stage(call("box_shell", **RM), tools=[remote])
    stage.hooks.add(lambda step: deny("no shells"), on="before_tool", kind="shell", name="no-shells")
    await stage.run(stream=stream)
    assert ran == []
    (step,) = stage.steps("before_tool")
    assert (step.kind, step.target.server, step.target.command) == ("shell", "mcp", RM["command"])


# --- nested runs ------------------------------------------------------------------------------------


def delegating(stage: Stage, run: Any, *, governed: bool = True) -> Agent:
    """An agent with a tool that runs a helper in some way."""
    helper = Agent(
        client=Scripted("helper", [call("shell", **RM), LS], stage.played), name="helper",
        tools=tools_of(stage.bench), middleware=[stage.fairlead] if governed else [],
    )  # fmt: skip

    @tool
    async def delegate() -> str:
        """Have a helper do it."""
        await run(lambda: helper.run("Go."))
        return "done"

    return Agent(
        client=Scripted("first", [call("delegate")], stage.played), tools=[delegate], middleware=[stage.fairlead]
    )


async def here(work: Any) -> None:
    await work()


async def in_a_thread(work: Any) -> None:
    thread = threading.Thread(target=lambda: asyncio.run(here(work)))
    thread.start()
    await asyncio.to_thread(thread.join)


@pytest.mark.parametrize("run", [here, in_a_thread])
async def test_a_helper_that_a_tool_runs_is_judged(run: Any) -> None:
    stage = Stage()
    stage.add(no_rm, "before_tool")
    await delegating(stage, run).run("Go.")
    assert stage.bench.ran == [("shell", {"command": "ls"})]
    roots = {step.root_session_id for step in stage.steps("before_tool")}
    assert len(roots) == (1 if run is here else 2)
    assert "in a thread that your tool starts" in not_governed("agent_framework")


# --- what is not governed ---------------------------------------------------------------------------


async def test_the_tools_of_an_agent_without_fairlead_inside_of_a_tool_are_judged() -> None:
    stage = Stage()
    stage.add(no_rm, "before_tool")
    await delegating(stage, here, governed=False).run("Go.")
    assert stage.bench.ran == [("shell", {"command": "ls"})]


@pytest.mark.ungoverned("An agent without `Fairlead`")
async def test_an_agent_without_fairlead_in_a_thread_of_a_tool() -> None:
    stage = Stage()
    stage.add(no_rm, "before_tool")
    await delegating(stage, in_a_thread, governed=False).run("Go.")
    assert ("shell", RM) in stage.bench.ran


# --- calls that a tool makes by itself ----------------------------------------------------------------


def executor_of(stage: Stage, caught: list[str], **call: Any) -> Any:
    """A code executor, whose code calls the shell. It has the tool, and the model has not."""
    shell = next(one for one in tools_of(stage.bench) if one.name == "shell")

    @tool(approval_mode="never_require")
    async def execute_code(code: str) -> str:
        """Run code."""
        try:
            return f"done: {await shell.invoke(**call)}"
        except Exception as error:
            caught.append(str(error))
            return "the code has failed"

    return execute_code


def executing(*, refused: list[str] | None = None, **call_options: Any) -> Stage:
    stage = Stage(call("execute_code", code="shell(...)"))
    stage.agent.default_options["tools"] = [executor_of(stage, [] if refused is None else refused, **call_options)]
    return stage


@pytest.mark.parametrize("given", [{"arguments": RM}, RM], ids=["arguments", "keywords"])
async def test_a_tool_that_a_code_executor_calls_is_judged(given: Any, stream: bool) -> None:
    refused: list[str] = []
    stage = executing(refused=refused, **given)
    stage.add(no_rm, "before_tool")
    await stage.run(stream=stream)
    assert stage.bench.ran == []
    assert refused == ["Hook blocked tool 'shell': no rm"]
    assert [(step.tool, step.outcome) for step in stage.steps("after_tool")] == [
        ("shell", "denied"), ("execute_code", "ok")
    ]  # fmt: skip


async def test_what_hooks_make_of_a_call_of_a_code_executor_is_carried_out() -> None:
    stage = executing(arguments={"command": "ls"})
    stage.add(change(args={"command": "pwd"}), "before_tool", tool="shell")
    stage.add(change(output="[redacted]"), "after_tool", tool="shell", name="redact")
    await stage.run()
    assert stage.bench.ran == [("shell", {"command": "pwd"})]
    assert stage.sent[-1][-1] == "tool: done: [redacted]"


async def test_a_code_executor_cannot_swallow_an_abort() -> None:
    stage = executing(arguments={"command": "ls"})
    stage.add(abort("no"), "before_tool", tool="shell")
    with pytest.raises(HookAborted):
        await stage.run()
    assert stage.bench.ran == []


@pytest.mark.ungoverned("from whose `middleware` your code has removed it")
async def test_an_agent_whose_middleware_is_cleared() -> None:
    stage = Stage(LS)
    stage.add(lambda step: deny("no"), "before_tool")
    stage.agent.middleware.clear()
    await stage.run()
    assert stage.bench.ran == [("shell", {"command": "ls"})]


@pytest.mark.ungoverned("A tool that your code calls by itself")
async def test_a_tool_that_code_calls_by_itself() -> None:
    stage = Stage()
    stage.add(no_rm, "before_tool")
    shell = next(one for one in tools_of(stage.bench) if one.name == "shell")
    await shell.invoke(arguments=RM)
    assert stage.bench.ran == [("shell", RM)]


@pytest.mark.parametrize("words", ["tools that the provider runs itself", "tools that do not exist", "code executors"])
def test_the_page_lists_it(words: str, judged: Boundary) -> None:
    assert words.casefold() in not_governed("agent_framework").casefold()
