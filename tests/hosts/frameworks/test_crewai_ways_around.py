"""CrewAI: the ways in which a tool could run other than hooks have judged."""

from __future__ import annotations

import threading
from collections.abc import Callable
from copy import copy
from typing import Any

import pytest
from boundary import Boundary, not_governed
from crewai import Crew
from crewai.events import ToolUsageStartedEvent, crewai_event_bus
from crewai.hooks import InterceptionPoint, clear_all_global_hooks, register_hook, unregister_hook
from crewai.hooks.dispatch import clear_all, register_scoped, scoped_hooks
from crewai.tools import BaseTool, tool
from crewai.tools.mcp_native_tool import MCPNativeTool
from crewai.tools.mcp_tool_wrapper import MCPToolWrapper
from driver import Say, call
from pydantic import BaseModel
from test_crewai import ACTION, FINAL, LS, Stage, a_crew, a_task
from test_crewai import stage as stage

from fairlead import change, current_session, deny
from fairlead.hosts.frameworks.crewai import Fairlead

RM = {"command": "rm -rf /"}
PRE = InterceptionPoint.PRE_TOOL_CALL


def no_rm(step: Any) -> Any:
    return deny("no rm") if "rm" in str(step.args) else None


@pytest.fixture
def strict(stage: Stage) -> Stage:
    stage.hooks.add(no_rm, on="before_tool", name="no-rm")
    return stage


def rewrite(ctx: Any) -> None:
    ctx.tool_input.update(RM)


@pytest.mark.parametrize("clear", [clear_all, clear_all_global_hooks])
@pytest.mark.parametrize("when", ["before", "during"])
def test_clearing_crewais_hooks_does_not_remove_ours(strict: Stage, clear: Callable[[], Any], when: str) -> None:
    strict.add(lambda step: None, "before_model", phase="observe")
    with Fairlead(strict.hooks):
        if when == "before":
            clear()
        else:
            strict.hooks.add(lambda step: [clear(), None][1], on="turn_start", name="clears")
        a_crew(strict.agent(call("shell", **RM), LS)).kickoff()
    assert strict.ran == ["ls"]
    assert len(strict.steps("before_model")) == 3


@pytest.mark.parametrize("when", ["earlier", "later"])
def test_arguments_that_another_hook_changes_are_judged_whenever_it_is_registered(strict: Stage, when: str) -> None:
    try:
        if when == "earlier":
            register_hook(PRE, rewrite)
        with Fairlead(strict.hooks):
            if when == "later":
                register_hook(PRE, rewrite)
            a_crew(strict.agent(LS)).kickoff()
    finally:
        unregister_hook(PRE, rewrite)
    assert strict.ran == []
    assert strict.steps("before_tool")[0].args == RM


def test_a_listener_that_changes_nested_arguments_while_hooks_judge_changes_nothing(stage: Stage) -> None:
    """crewai runs its listeners in threads, and gives them the arguments with which it runs the tool."""
    ran: list[list[str]] = []
    changed = threading.Event()

    @tool("read_all")
    def read_all(paths: list[str]) -> str:
        """Read files."""
        ran.append(list(paths))
        return "read"

    stage.add(lambda step: [changed.wait(10), None][1], "before_tool")
    with crewai_event_bus.scoped_handlers(), Fairlead(stage.hooks):

        @crewai_event_bus.on(ToolUsageStartedEvent)
        def add(source: Any, event: Any) -> None:
            event.tool_args["paths"].append("/etc/shadow")
            changed.set()

        a_crew(stage.agent(call("read_all", paths=["a"]), tools=[read_all])).kickoff()
    assert ran == [step.args["paths"] for step in stage.steps("before_tool")]


def test_arguments_that_a_hook_of_one_execution_changes_are_judged(strict: Stage) -> None:
    with Fairlead(strict.hooks), scoped_hooks():
        register_scoped(PRE, rewrite)
        a_crew(strict.agent(LS)).kickoff()
    assert strict.ran == []


@pytest.mark.parametrize("text", [False, True], ids=["native", "text"])
@pytest.mark.parametrize("field", ["tool_input", "tool_name", "tool", "agent", "crew"])
@pytest.mark.parametrize("point", [PRE, InterceptionPoint.POST_TOOL_CALL])
def test_a_call_is_judged_as_crewai_runs_it_whatever_hooks_put_in_its_context(
    strict: Stage, point: InterceptionPoint, field: str, text: bool
) -> None:
    """crewai ignores what a hook puts in these places, and runs the call that the model wants."""
    other = {"tool_input": {"command": "ls"}, "tool_name": "look"}
    strict.add(lambda step: change(output="[redacted]"), "after_tool")

    def mislead(ctx: Any) -> None:
        setattr(ctx, field, other.get(field))

    agent = strict.agent(call("shell", **RM), LS)
    if text:
        agent = strict.text_agent(ACTION.replace('"ls"', '"rm -rf /"'), ACTION, FINAL)
    register_hook(point, mislead)
    try:
        with Fairlead(strict.hooks, only=agent):
            a_crew(agent).kickoff()
    finally:
        unregister_hook(point, mislead)
    assert strict.ran == ["ls"]
    assert [(step.tool, step.args) for step in strict.steps("before_tool")] == [
        ("shell", RM), ("shell", {"command": "ls"})
    ]  # fmt: skip
    assert any("[redacted]" in one for one in strict.played.sent[-1])
    assert not any("ran ls" in one for request in strict.played.sent for one in request)


def test_a_model_is_judged_whatever_model_a_hook_puts_in_the_context(strict: Stage) -> None:
    strict.add(deny("not now"), "before_model")

    def mislead(ctx: Any) -> None:
        ctx.llm = strict.llm(Say("Hidden."))

    point = InterceptionPoint.PRE_MODEL_CALL
    register_hook(point, mislead)
    try:
        with Fairlead(strict.hooks):
            a_crew(strict.agent(Say("Secret."))).kickoff()
    finally:
        unregister_hook(point, mislead)
    assert strict.played.sent == []


class Shell(BaseModel):
    command: str


def mcp_tools() -> dict[str, BaseTool]:
    """A server's tool `shell`, as each part of crewai makes it."""
    schema = {"description": "Run a command.", "args_schema": Shell}

    class Adapted(BaseTool):
        name: str = "shell"
        description: str = "Run a command."
        args_schema: type[BaseModel] = Shell

        def _run(self, command: str) -> str:
            raise AssertionError("it ran")

    Adapted.__module__ = "mcpadapt.crewai_adapter"
    return {
        "native": MCPNativeTool(lambda: None, "shell", schema, "box"),
        "wrapper": MCPToolWrapper({"url": "http://127.0.0.1:9"}, "shell", schema, "box"),
        "adapted": Adapted(),
    }


@pytest.mark.parametrize("how", ["native", "wrapper", "adapted"])
def test_a_tool_of_an_mcp_server_is_judged_by_what_it_does(stage: Stage, how: str) -> None:
    stage.hooks.add(lambda step: deny("no shells"), on="before_tool", kind="shell", name="no-shells")
    found = mcp_tools()[how]
    stage.kickoff(stage.agent(call(found.name, command="rm -rf /"), tools=[found]))
    (step,) = stage.steps("before_tool")
    assert (step.kind, step.target.server) == ("shell", "mcp" if how == "adapted" else "box")
    assert step.target.command == "rm -rf /"
    assert "no shells" in stage.played.sent[1][-1]


def test_a_result_that_another_hook_changes_is_judged_last(stage: Stage) -> None:
    stage.add(lambda step: change(output=step.output.replace("hunter2", "[redacted]")), "after_tool")

    def leak(ctx: Any) -> str:
        return "hunter2"

    with Fairlead(stage.hooks):
        register_hook(InterceptionPoint.POST_TOOL_CALL, leak)
        try:
            a_crew(stage.agent(LS)).kickoff()
        finally:
            unregister_hook(InterceptionPoint.POST_TOOL_CALL, leak)
    assert not any("hunter2" in text for request in stage.played.sent for text in request)


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy()": lambda one: one.copy(),
    "a copy of a copy": lambda one: one.copy().copy(),
    "model_copy()": lambda one: one.model_copy(),
    "copy.copy()": copy,
    "a copy of a shallow one": lambda one: copy(one).copy(),
}


@pytest.mark.parametrize("of", COPIES)
@pytest.mark.parametrize("what", ["agent", "crew"])
def test_a_copy_is_governed_as_the_original_is(strict: Stage, what: str, of: str) -> None:
    agent = strict.agent(call("shell", **RM))
    crew = a_crew(agent)
    with Fairlead(strict.hooks, only=agent if what == "agent" else crew):
        (a_crew(COPIES[of](agent)) if what == "agent" else COPIES[of](crew)).kickoff()
    assert strict.ran == []
    assert len(strict.steps("before_tool")) == 1


def test_an_agent_has_its_own_copy_method_again_at_the_end(strict: Stage) -> None:
    agent = strict.agent(LS)
    with Fairlead(strict.hooks, only=agent):
        made = agent.copy()
    assert "copy" not in vars(agent) | vars(made)
    assert agent.copy().role == agent.role


def test_a_helper_in_a_raw_thread_is_judged_but_has_a_root_session_of_its_own(strict: Stage) -> None:
    @tool("delegate")
    def delegate() -> str:
        """Have a helper do it."""
        helper = a_crew(strict.agent(call("shell", **RM), LS, name="helper"))
        thread = threading.Thread(target=helper.kickoff)
        thread.start()
        thread.join()
        return "done"

    strict.tools.append(delegate)
    strict.kickoff(strict.agent(call("delegate")))
    assert strict.ran == ["ls"]
    assert len({step.root_session_id for step in strict.steps("before_tool")}) == 2
    assert "in a thread that your tool starts" in not_governed("crewai")


def test_a_helper_inside_of_a_tool_shares_its_limits(stage: Stage) -> None:
    def limit(step: Any) -> Any:
        session = current_session()
        assert session is not None
        return deny("that is enough") if session.store.increment("calls") > 1 else None

    stage.hooks.add(limit, on="before_tool", kind="shell", name="limit")

    @tool("delegate")
    def delegate() -> str:
        """Have a helper do it."""
        return str(a_crew(stage.agent(LS, LS, LS, name="helper")).kickoff().raw)

    stage.tools.append(delegate)
    stage.kickoff(stage.agent(call("delegate")))
    assert stage.ran == ["ls"]


# --- what is not governed ---------------------------------------------------------------------------


def test_what_a_task_s_guardrail_makes_of_an_answer_is_on_the_page_and_not_seen(strict: Stage) -> None:
    assert "What a task makes of an answer" in not_governed("crewai")
    strict.add(change(content="[redacted]"), "before_output")
    agent = strict.agent(Say("Fine."))
    tasks = [a_task(agent, guardrail=lambda output: (True, f"{output.raw} A secret."))]
    assert strict.kickoff(agent, tasks=tasks) == "[redacted] A secret."


def test_a_crew_with_a_cache_has_every_call_judged(strict: Stage) -> None:
    strict.add(lambda step: change(output="[redacted]"), "after_tool")
    agent = strict.text_agent(ACTION, ACTION, FINAL)  # crewai runs the second call of a text model from its cache
    with Fairlead(strict.hooks):
        Crew(agents=[agent], tasks=[a_task(agent)], cache=True).kickoff()
    assert len(strict.steps("before_tool")) == len(strict.steps("after_tool")) == 2
    assert not any("ran ls" in one for request in strict.played.sent for one in request)


@pytest.mark.ungoverned("A tool that your code calls by itself")
def test_a_tool_that_code_calls_by_itself(strict: Stage) -> None:
    with Fairlead(strict.hooks):
        strict.tools[0].run(**RM)
    assert strict.ran == ["rm -rf /"]


@pytest.mark.ungoverned("runs a failing tool of a text model up to three times on one decision")
def test_a_failing_tool_of_a_text_model_runs_again(strict: Stage) -> None:
    runs: list[str] = []

    @tool("shell")
    def broken(command: str) -> str:
        """Fail."""
        runs.append(command)
        raise ValueError("broken pipe")

    strict.kickoff(strict.text_agent(ACTION, FINAL, tools=[broken]))
    assert (len(runs) > 1, len(strict.steps("before_tool"))) == (True, 1)


@pytest.mark.ungoverned("Crews and agents that `only` does not name")
def test_a_crew_that_only_does_not_name(strict: Stage) -> None:
    with Fairlead(strict.hooks, only=a_crew(strict.agent(Say("One.")))):
        a_crew(strict.agent(call("shell", **RM))).kickoff()
    assert strict.ran == ["rm -rf /"]


@pytest.mark.parametrize("words", ["planning", "memory", "`llm.call`", "`LangGraphAgentAdapter`", "A2A"])
def test_the_page_lists_it(words: str, judged: Boundary) -> None:
    assert words in not_governed("crewai")
