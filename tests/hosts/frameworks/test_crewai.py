"""What is particular to crewai: text models, global registration, flows, several tasks, and what crewai swallows."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from boundary import Boundary
from crewai import Agent, Crew, Task
from crewai.flow.flow import Flow, start
from crewai.hooks import HookAborted, InterceptionPoint, register_hook, unregister_hook
from crewai.tools import tool
from driver import Call, Played, Say, call
from driver_crewai import Scripted, an_agent
from pydantic import BaseModel
from scene import aborted, has

from fairlead import FairleadError, Hooks, UnknownName, abort, answer, change, deny, extend, stop
from fairlead.hosts.frameworks.crewai import Fairlead

ACTION = 'Thought: t\nAction: shell\nAction Input: {"command": "ls"}\n'
FINAL = "Thought: done\nFinal Answer: Done."
LS = call("shell", command="ls")


class Stage:
    """A crew of agents with scripts, and hooks whose decisions are kept."""

    def __init__(self) -> None:
        self.decisions: list[Any] = []
        self.hooks = Hooks(journal=self.decisions.append)
        self.played = Played()
        self.ran: list[str] = []

        @tool("shell")
        def shell(command: str) -> str:
            """Run a command."""
            self.ran.append(command)
            return f"ran {command}"

        @tool("look")
        def look(where: str = "here") -> str:
            """Look around."""
            self.ran.append(where)
            return f"looked {where}"

        self.tools = [shell, look]

    def llm(self, *script: Any, **options: Any) -> Scripted:
        return Scripted(model="first", script=list(script), played=self.played, **options)

    def agent(self, *script: Any, name: str = "main", with_tools: bool = True, **options: Any) -> Agent:
        tools = options.pop("tools", self.tools)
        return an_agent(name, self.llm(*script, with_tools=with_tools), "Be brief.", tools=tools, **options)

    def text_agent(self, *texts: str, **options: Any) -> Agent:
        return self.agent(*(Say(text) for text in texts), with_tools=False, **options)

    def add(self, said: Any, on: str, **options: Any) -> None:
        self.hooks.add(said if callable(said) else lambda step: said, on=on, **{"name": "judge", **options})

    def kickoff(self, *agents: Agent, **options: Any) -> str:
        with Fairlead(self.hooks):
            return str(a_crew(*agents, **options).kickoff().raw)

    @property
    def events(self) -> list[str]:
        return [decision.event for decision in self.decisions]

    def steps(self, event: str) -> list[Any]:
        return [decision.step for decision in self.decisions if decision.event == event]


def a_crew(*agents: Agent, **options: Any) -> Crew:
    tasks = options.pop("tasks", None) or [a_task(agent) for agent in agents]
    return Crew(agents=list(agents), tasks=tasks, cache=False, **options)


def a_task(agent: Agent, description: str = "Go.", **options: Any) -> Task:
    return Task(description=description, expected_output="An answer.", agent=agent, **options)


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def native() -> Iterator[Any]:
    """Registers hooks of crewai's own."""
    made: list[tuple[Any, Any]] = []

    def register(point: InterceptionPoint, hook: Any) -> None:
        register_hook(point, hook)
        made.append((point, hook))

    yield register
    for point, hook in made:
        unregister_hook(point, hook)


# --- models that call tools in their text -----------------------------------------------------------


def test_a_text_model_is_told_why_its_call_was_denied(stage: Stage) -> None:
    stage.add(deny("no ls here"), on="before_tool")
    assert stage.kickoff(stage.text_agent(ACTION, FINAL)) == "Done."
    assert stage.ran == []
    assert has(stage.played.sent[1], "Observation: Hook blocked tool 'shell': no ls here")
    assert [step.outcome for step in stage.steps("after_tool")] == ["denied"]


def test_a_text_model_s_arguments_are_changed_and_its_words_are_not(stage: Stage) -> None:
    stage.add(change(args={"command": "ls -l"}), on="before_tool")
    stage.kickoff(stage.text_agent(ACTION, FINAL))
    assert stage.ran == ["ls -l"]
    assert has(stage.played.sent[1], '{"command": "ls"}', "assistant")
    assert has(stage.played.sent[1], "Observation: ran ls -l")


@pytest.mark.parametrize("with_tools", [True, False])
def test_arguments_that_a_call_did_not_have_reach_the_tool(stage: Stage, with_tools: bool) -> None:
    stage.add(change(args={"where": "there"}), on="before_tool")
    script = [call("look")] if with_tools else [Say("Thought: t\nAction: look\nAction Input: {}\n"), Say(FINAL)]
    stage.kickoff(stage.agent(*script, with_tools=with_tools))
    assert stage.ran == ["there"]
    assert has(stage.played.sent[1], "looked there")
    assert [step.outcome for step in stage.steps("after_tool")] == ["ok"]


@pytest.mark.ungoverned("runs a failing tool of a text model up to three times on one decision")
def test_a_text_model_s_tool_that_fails_is_told_as_an_error(stage: Stage) -> None:
    @tool("shell")
    def broken(command: str) -> str:
        """Fail."""
        raise ValueError("broken pipe")

    stage.add(lambda step: None, on="after_tool")
    stage.kickoff(stage.text_agent(ACTION, FINAL, tools=[broken]))
    (step,) = stage.steps("after_tool")
    assert (step.outcome, "broken pipe" in step.error) == ("error", True)


def test_a_text_model_s_answer_is_judged_without_its_thoughts(stage: Stage) -> None:
    stage.add(lambda step: change(response=step.response.replace("Done", "Finished")), on="before_response")
    assert stage.kickoff(stage.text_agent(FINAL)) == "Finished."
    assert [step.response for step in stage.steps("before_response")] == ["Finished."]


def test_a_text_model_goes_on_when_its_turn_is_extended(stage: Stage) -> None:
    left = ["The tests still fail."]
    stage.add(lambda step: extend(left.pop()) if left else None, on="before_turn_end")
    assert stage.kickoff(stage.text_agent("Thought: t\nFinal Answer: First.", FINAL)) == "Done."
    assert has(stage.played.sent[1], "The tests still fail.", "user")


def test_a_text_model_s_turn_can_be_stopped(stage: Stage) -> None:
    stage.add(stop("enough"), on="after_tool")
    assert stage.kickoff(stage.text_agent(ACTION, ACTION, FINAL)) == "[Stopped: enough]"
    assert len(stage.played.sent) == 1


def test_output_that_is_denied_leaves_nothing_but_a_blank(stage: Stage) -> None:
    stage.add(deny("secret"), on="before_output")
    assert stage.kickoff(stage.text_agent(FINAL)).strip() == ""


def test_an_answer_that_reads_like_an_action_is_no_action(stage: Stage) -> None:
    stage.add(change(response=ACTION), on="before_response")
    assert stage.kickoff(stage.text_agent(FINAL)).strip() == ACTION.strip()
    assert stage.ran == []


# --- being in force ---------------------------------------------------------------------------------


def test_it_is_in_force_until_it_is_closed_and_leaves_nothing_behind(stage: Stage, judged: Boundary) -> None:
    stage.add(deny("no"), on="before_tool")
    agent = stage.agent(LS, Say("One."), LS, Say("Two."))
    crew = a_crew(agent)
    with Fairlead(stage.hooks):
        crew.kickoff()
        assert "call" in vars(agent.llm)
    assert "call" not in vars(agent.llm)
    fired = len(stage.events)
    assert crew.kickoff().raw == "Two."
    assert (stage.ran, len(stage.events)) == (["ls"], fired)
    judged.ways_around.clear()  # no Fairlead was in force


def test_agents_that_ran_before_are_seen_too(stage: Stage) -> None:
    crew = a_crew(stage.agent(Say("One.")))
    crew.kickoff()
    stage.add(answer("From the cache."), on="before_model")
    with Fairlead(stage.hooks):
        assert crew.kickoff().raw == "From the cache."


def test_it_can_be_opened_again(stage: Stage) -> None:
    stage.add(answer("From the cache."), on="before_model")
    fairlead, crew = Fairlead(stage.hooks), a_crew(stage.agent())
    fairlead.close()
    assert crew.kickoff().raw == "Done."
    with fairlead:
        assert crew.kickoff().raw == "From the cache."


def test_copies_of_a_crew_are_seen_each_with_its_own_model(stage: Stage) -> None:
    stage.add(deny("no"), on="before_tool")
    crew = a_crew(stage.agent(LS, Say("One."), LS, Say("Two."), LS, Say("Three.")))
    with Fairlead(stage.hooks, only=crew):
        first = crew.kickoff().raw
        rest = [output.raw for output in crew.kickoff_for_each([{}, {}])]
    assert (first, rest, stage.ran) == ("One.", ["Two.", "Three."], [])
    assert stage.events.count("session_start") == stage.events.count("session_end") == 3


@pytest.mark.parametrize("which", ["crew", "agent"])
def test_it_can_be_for_one_crew_or_one_agent_only(stage: Stage, judged: Boundary, which: str) -> None:
    stage.add(deny("no"), on="before_tool")
    watched, other = stage.agent(LS, name="watched"), stage.agent(LS, name="other")
    crew = a_crew(watched)
    with Fairlead(stage.hooks, only=crew if which == "crew" else [watched]):
        crew.kickoff()
        assert stage.ran == []
        a_crew(other).kickoff()
    assert stage.ran == ["ls"]
    assert {step.agent.name for step in stage.steps("before_tool")} == {"watched"}
    judged.ways_around.clear()  # of the other crew


def test_another_crew_that_is_made_alike_is_not_the_one_that_is_watched(stage: Stage, judged: Boundary) -> None:
    stage.add(deny("no"), on="before_tool")
    crew, alike = a_crew(stage.agent(LS, name="same")), a_crew(stage.agent(LS, name="same"))
    assert crew.key == alike.key
    with Fairlead(stage.hooks, only=crew):
        alike.kickoff()
        assert stage.ran == ["ls"]
    judged.ways_around.clear()  # of the other crew


def test_copies_of_the_crew_are_watched_and_copies_of_these(stage: Stage) -> None:
    stage.add(deny("no"), on="before_tool")
    crew = a_crew(stage.agent(LS, LS, LS))
    with Fairlead(stage.hooks, only=crew):
        crew.copy().copy().kickoff()
        crew.kickoff_for_each([{}, {}])
    assert stage.ran == []
    assert "copy" not in vars(crew)


def test_two_of_them_for_the_same_agents_are_an_error(stage: Stage) -> None:
    crew, other = a_crew(stage.agent()), a_crew(stage.agent())
    for first, second in (({}, {}), ({}, {"only": crew}), ({"only": crew}, {"only": [other, crew]})):
        with (
            Fairlead(stage.hooks, **first),
            pytest.raises(FairleadError, match="another Fairlead is in force for the same crews and agents"),
        ):
            Fairlead(Hooks(), **second)
    with Fairlead(stage.hooks, only=crew), Fairlead(Hooks(), only=other):
        pass


# --- what crewai swallows ---------------------------------------------------------------------------


def test_an_abort_leaves_the_kickoff_as_crewai_s_own_exception(stage: Stage) -> None:
    stage.add(abort("over the budget"), on="before_tool")
    with pytest.raises(HookAborted) as raised:
        stage.kickoff(stage.agent(LS, max_retry_limit=3))
    assert aborted(raised.value)
    assert (stage.ran, len(stage.played.sent)) == ([], 1)
    assert "over the budget" in stage.steps("error")[-1].error


@pytest.mark.parametrize("event", ["before_tool", "before_model"])
def test_an_abort_in_a_subagent_fails_the_crew(stage: Stage, event: str) -> None:
    stage.add(lambda step: abort("enough") if step.agent.name == "helper" else None, on=event)
    main = stage.agent(call("helper", message="Help me."), allow_delegation=True)
    helper = stage.agent(LS, name="helper")
    with pytest.raises(HookAborted) as raised:
        stage.kickoff(main, helper, tasks=[a_task(main)])
    assert aborted(raised.value)
    assert stage.ran == []
    assert stage.events.count("after_request") == stage.events.count("before_request") == 2


def test_a_bug_in_the_adapter_s_way_lets_no_tool_run(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.add(lambda step: None, on="before_tool")
    with Fairlead(stage.hooks) as fairlead:
        monkeypatch.setattr(fairlead, "_run_of", lambda ctx: 1 / 0)
        a_crew(stage.agent(LS)).kickoff()
    assert stage.ran == []


def test_a_model_that_is_not_known_is_said_to_be_so(stage: Stage) -> None:
    stage.add(change(model="no-such/model"), on="before_model")
    with pytest.raises(HookAborted) as raised:
        stage.kickoff(stage.agent())
    assert isinstance(raised.value.__cause__, UnknownName)


def test_a_request_that_crewai_tries_again_is_another_request(stage: Stage) -> None:
    stage.add(lambda step: None, on="*", phase="observe")
    assert stage.kickoff(stage.agent(RuntimeError("overloaded"), Say("Done."), max_retry_limit=1)) == "Done."
    assert stage.events.count("before_request") == stage.events.count("after_request") == 2
    assert stage.events.count("session_start") == stage.events.count("session_end") == 1
    assert [step.stop_reason for step in stage.steps("turn_end")] == ["error", "end_turn"]


# --- crewai's own hooks side by side ----------------------------------------------------------------


def deny_all(ctx: Any) -> None:
    raise HookAborted("not here")


def test_a_call_that_an_earlier_hook_of_crewai_s_refuses_is_reported(stage: Stage, native: Any) -> None:
    native(InterceptionPoint.PRE_TOOL_CALL, deny_all)
    stage.add(lambda step: None, on="after_tool")
    stage.kickoff(stage.agent(LS))
    assert [step.outcome for step in stage.steps("after_tool")] == ["denied"]
    assert stage.ran == []


def test_a_call_that_a_later_hook_of_crewai_s_refuses_is_reported(stage: Stage, native: Any) -> None:
    stage.add(lambda step: None, on="after_tool")
    with Fairlead(stage.hooks):
        native(InterceptionPoint.PRE_TOOL_CALL, deny_all)
        a_crew(stage.agent(LS)).kickoff()
    (step,) = stage.steps("after_tool")
    assert (step.is_error, stage.ran) == (True, [])


def test_what_crewai_s_hooks_make_of_a_request_is_judged(stage: Stage, native: Any) -> None:
    native(InterceptionPoint.PRE_MODEL_CALL, lambda ctx: ctx.messages.append({"role": "user", "content": "hunter2"}))
    stage.add(lambda step: deny("a secret") if "hunter2" in str(step.messages) else None, on="before_model")
    assert "a secret" in stage.kickoff(stage.agent())
    assert stage.played.sent == []


# --- ways to run ------------------------------------------------------------------------------------


def test_the_tasks_of_a_crew_are_requests_of_one_session_each_with_its_agent(stage: Stage) -> None:
    stage.add(lambda step: None, on="*", phase="observe")
    stage.kickoff(stage.agent(LS, Say("Found."), name="researcher"), stage.agent(name="writer"))
    assert [step.agent.name for step in stage.steps("before_request")] == ["researcher", "writer"]
    assert len({step.session_id for step in stage.steps("before_request")}) == 1
    assert len({step.request_id for step in stage.steps("turn_start")}) == 2
    assert "Found." in stage.steps("before_input")[1].input
    assert stage.events.count("session_start") == stage.events.count("session_end") == 1
    assert stage.events[-1] == "session_end"


@pytest.mark.parametrize("sync", [True, False])
async def test_an_agent_by_itself_runs_under_hooks(stage: Stage, sync: bool) -> None:
    stage.add(deny("no"), on="before_tool")
    agent = stage.agent(LS)
    with Fairlead(stage.hooks):
        run = asyncio.to_thread(agent.kickoff, "Go.") if sync else agent.kickoff_async("Go.")
        assert (await run).raw == "Done."
    assert stage.ran == []
    assert stage.events.count("session_start") == stage.events.count("session_end") == 1
    assert has(stage.played.sent[1], "Hook blocked tool 'shell': no", "tool")


async def test_one_agent_twice_at_once_is_two_requests(stage: Stage) -> None:
    stage.add(lambda step: change(args={"command": step.request_id}), on="before_tool")
    agent = stage.agent(LS, LS)
    async with Fairlead(stage.hooks):
        await asyncio.gather(agent.kickoff_async("One."), agent.kickoff_async("Two."))
    assert len(set(stage.ran)) == len(stage.ran) == 2
    assert stage.events.count("after_request") == 2


def test_the_agents_of_a_flow_are_requests_of_one_session(stage: Stage) -> None:
    stage.add(deny("no"), on="before_tool")
    agent, crew = stage.agent(LS, Say("One."), Say("Two.")), a_crew(stage.agent(name="crewed"))

    class TheFlow(Flow):  # type: ignore[misc, type-arg]
        @start()
        async def work(self) -> str:
            first = (await agent.kickoff_async("Go.")).raw
            second = (await agent.kickoff_async("Go on.")).raw
            return f"{first} {second} {(await crew.kickoff_async()).raw}"

    with Fairlead(stage.hooks):
        assert TheFlow().kickoff() == "One. Two. Done."
    assert stage.ran == []
    assert len({step.session_id for step in stage.steps("before_request")}) == 2  # the crew has its own
    assert stage.events.count("session_start") == stage.events.count("session_end") == 2


def test_an_agent_that_fails_in_a_flow_is_told_of(stage: Stage) -> None:
    agent = stage.agent(RuntimeError("overloaded"))

    class TheFlow(Flow):  # type: ignore[misc, type-arg]
        @start()
        async def work(self) -> str:
            return str((await agent.kickoff_async("Go.")).raw)

    stage.add(lambda step: None, on="*", phase="observe")
    with Fairlead(stage.hooks), pytest.raises(RuntimeError, match="overloaded"):
        TheFlow().kickoff()
    assert stage.events.count("after_request") == stage.events.count("session_end") == 1


def test_a_crew_in_a_tool_is_a_subagent(stage: Stage) -> None:
    inner = a_crew(stage.agent(LS, Say("Helped."), name="inner"))

    @tool("team")
    def team(message: str) -> str:
        """Ask the team."""
        return str(inner.kickoff().raw)

    stage.add(lambda step: deny("not inside") if step.agent.parent else None, on="before_tool")
    assert stage.kickoff(stage.agent(call("team", message="Help."), tools=[team])) == "Done."
    assert [step.agent_name for step in stage.steps("subagent_start")] == ["inner"]
    assert stage.ran == []
    assert stage.events.count("session_start") == 1


def test_delegating_is_of_kind_agent(stage: Stage) -> None:
    stage.add(deny("do it yourself"), on="before_tool", kind="agent")
    main, helper = stage.agent(call("helper", message="Help."), allow_delegation=True), stage.agent(name="helper")
    assert stage.kickoff(main, helper, tasks=[a_task(main)]) == "Done."
    assert "subagent_start" not in stage.events
    assert has(stage.played.sent[1], "do it yourself", "tool")


def test_a_session_of_its_own_spans_kickoffs(stage: Stage) -> None:
    stage.add(lambda step: None, on="*", phase="observe")
    with Fairlead(stage.hooks, session_id="all"):
        a_crew(stage.agent()).kickoff()
        a_crew(stage.agent()).kickoff()
        assert "session_end" not in stage.events
    assert {step.session_id for step in stage.steps("before_request")} == {"all"}
    assert stage.events.count("session_end") == 1


# --- how a run ends ---------------------------------------------------------------------------------


def a_final_tool(stage: Stage) -> Any:
    @tool("final", result_as_answer=True)
    def final(what: str) -> str:
        """Answer."""
        stage.ran.append(what)
        return f"secret {what}"

    return final


def test_a_tool_s_result_that_is_the_answer_is_judged_as_a_response(stage: Stage) -> None:
    stage.add(lambda step: change(response=step.response.replace("secret", "***")), on="before_response")
    assert stage.kickoff(stage.agent(call("final", what="x"), tools=[a_final_tool(stage)])) == "*** x"
    assert stage.events.count("turn_end") == 1


def test_a_final_answer_that_crewai_asks_for_in_the_end_is_judged(stage: Stage) -> None:
    stage.add(lambda step: change(output=step.output.replace("hunter2", "***")), on="after_model")
    agent = stage.agent(LS, Say("It is hunter2."), max_iter=1)
    assert stage.kickoff(agent) == "It is ***."
    assert stage.events.count("turn_end") == 1


def test_a_turn_that_was_stopped_asks_for_no_final_answer(stage: Stage) -> None:
    stage.add(stop("enough"), on="after_tool")
    assert stage.kickoff(stage.agent(LS, max_iter=1)) == "[Stopped: enough]"
    assert len(stage.played.sent) == 1


def test_a_task_s_guardrail_makes_another_request(stage: Stage) -> None:
    stage.add(lambda step: None, on="*", phase="observe")
    agent = stage.agent(Say("Bad."), Say("Good."))
    task = a_task(
        agent, guardrail=lambda output: (output.raw == "Good.", "Be good." if output.raw == "Bad." else "Good.")
    )
    assert stage.kickoff(agent, tasks=[task]) == "Good."
    assert stage.events.count("before_request") == stage.events.count("after_request") == 2


class City(BaseModel):
    name: str


def test_a_structured_answer_can_be_read_and_changed(stage: Stage) -> None:
    stage.add(lambda step: change(response=step.response.replace("Paris", "Rome")), on="before_response")
    agent = stage.agent(Say('{"name": "Paris"}'), tools=[])
    with Fairlead(stage.hooks):
        output = a_crew(agent, tasks=[a_task(agent, output_pydantic=City)]).kickoff()
    assert output.pydantic == City(name="Rome")


def test_a_structured_answer_that_is_refused_fails_the_run(stage: Stage) -> None:
    stage.add(stop("enough"), on="before_model")
    agent = stage.agent(tools=[])
    with pytest.raises(HookAborted, match="enough"):
        stage.kickoff(agent, tasks=[a_task(agent, output_pydantic=City)])
    assert stage.played.sent == []


def test_calls_of_one_reply_run_at_once_and_are_told_apart(stage: Stage) -> None:
    stage.add(lambda step: deny("no rm") if step.args["command"] == "rm" else None, on="before_tool")
    both = Call([("shell", {"command": "ls"}), ("shell", {"command": "rm"}), ("shell", {"command": "ls"})])
    stage.kickoff(stage.agent(both))
    assert stage.ran == ["ls", "ls"]
    assert {step.call_id for step in stage.steps("before_tool")} == {f"call-first-1-{at}" for at in range(3)}


async def test_the_executor_of_old_that_awaits_its_model_is_judged(stage: Stage) -> None:
    executors = pytest.importorskip("crewai.agents.crew_agent_executor", reason="it is gone in later versions")

    class Awaited(Scripted):
        async def acall(self, messages: Any, tools: Any = None, **options: Any) -> Any:
            return self.call(messages, tools, **options)

    stage.add(deny("no"), on="before_tool")
    stage.add(lambda step: change(output=step.output.replace("Done", "Over")), on="after_model", name="words")
    llm = Awaited(model="first", script=[LS], played=stage.played)
    executor: Any = executors.CrewAgentExecutor
    agent = an_agent("main", llm, "Be brief.", tools=stage.tools, executor_class=executor)
    async with Fairlead(stage.hooks):
        assert (await a_crew(agent).akickoff()).raw == "Over."
    assert stage.ran == []
    assert stage.events.count("after_request") == 1
