"""What is particular to Google ADK: its callbacks, its kinds of agents, its confirmations and its sessions."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

import pytest
from driver import Call, Played, Say, Workbench, call
from driver_google_adk import CONFIRM, Driver, Scripted, lines, text_of
from google.adk.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.events.event import Event
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner, Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from pydantic import BaseModel
from scene import aborted, has

from fairlead import Hooks, abort, allow, answer, ask, change, deny, extend, inject, retry, stop
from fairlead.hosts.frameworks.google_adk import Fairlead

SECOND = version("google-adk").startswith("2.")
LS = call("shell", command="ls")


class Stage:
    """Hooks, agents with scripts, and a runner for them."""

    def __init__(self, *, judge: Any = None, on: str = "before_tool", **options: Any) -> None:
        self.decisions: list[Any] = []
        self.hooks = Hooks(journal=self.decisions.append)
        if judge is not None:
            self.hooks.add(judge if callable(judge) else lambda step: judge, on=on, name="judge", **options)
        self.played, self.bench = Played(), Workbench()
        self.sessions = InMemorySessionService()
        self.fairlead = Fairlead(self.hooks)
        self.events: list[Any] = []
        self.new: list[Any] = []

    def agent(self, name: str, *script: Any, **options: Any) -> LlmAgent:
        model = Scripted(model=name, script=list(script), played=self.played)
        return LlmAgent(name=name, model=model, description=name, **options)

    def runner(self, root: Any, *others: Any, first: bool = True) -> Runner:
        plugins = [self.fairlead, *others] if first else [*others, self.fairlead]
        app = App(name="stage", root_agent=root, plugins=plugins)
        return Runner(app=app, session_service=self.sessions, artifact_service=InMemoryArtifactService())

    async def run(self, runner: Runner, given: Any = "Go.", session_id: str = "s", **options: Any) -> list[str]:
        """The texts that are shown, one per event."""
        about = {"app_name": "stage", "user_id": "u", "session_id": session_id}
        if await self.sessions.get_session(**about) is None:
            await self.sessions.create_session(**about)
        if isinstance(given, str):
            given = types.Content(role="user", parts=[types.Part(text=given)])
        self.new = []
        async for event in runner.run_async(user_id="u", session_id=session_id, new_message=given, **options):
            self.new.append(event)
        self.events += self.new
        return [text for event in self.new if not event.partial and (text := text_of(event.content))]

    async def history(self) -> list[str]:
        session = await self.sessions.get_session(app_name="stage", user_id="u", session_id="s")
        assert session is not None
        return lines(event.content for event in session.events if event.content)

    def questions(self) -> list[Any]:
        """What the framework asks a human."""
        return [c for event in self.new for c in event.get_function_calls() if c.name == CONFIRM]

    def answer(self, confirmed: bool) -> types.Content:
        replies = [
            types.FunctionResponse(id=question.id, name=CONFIRM, response={"confirmed": confirmed})
            for question in self.questions()
        ]
        return types.Content(role="user", parts=[types.Part(function_response=reply) for reply in replies])

    def of(self, event: str) -> list[Any]:
        return [decision.step for decision in self.decisions if decision.event == event]

    @property
    def fired(self) -> list[str]:
        return [decision.event for decision in self.decisions]


# --- the session's history --------------------------------------------------------------------------


async def test_the_session_keeps_the_arguments_that_the_model_gave() -> None:
    hooks = Hooks()
    hooks.add(lambda step: change(args={"command": "ls -l"}), on="before_tool", name="judge")
    bench = Workbench()
    played = await Driver().play(hooks, LS, bench=bench)
    assert bench.ran == [("shell", {"command": "ls -l"})]
    assert 'assistant: calls shell {"command": "ls"}' in played.history


async def test_a_refused_message_is_not_read_in_the_next_turn_either() -> None:
    stage = Stage(judge=lambda step: deny("no secrets") if "hunter2" in step.input else None, on="before_input")
    runner = stage.runner(stage.agent("agent"))
    assert await stage.run(runner, "It is hunter2.") == ["[Message rejected: no secrets]"]
    assert await stage.run(runner, "Go on.") == ["Done."]
    assert not has(stage.played.sent[0], "hunter2")
    assert not has(await stage.history(), "hunter2")


async def test_a_withheld_answer_is_not_kept() -> None:
    stage = Stage(judge=deny("no"), on="before_output")
    assert await stage.run(stage.runner(stage.agent("agent", Say("Secret.")))) == []
    assert not has(await stage.history(), "Secret.")


async def test_a_turn_that_goes_on_has_its_answers_in_the_session_and_the_last_one_is_shown() -> None:
    stage = Stage(judge=lambda step: extend("Test it.") if not step.continues_so_far else None, on="before_turn_end")
    root = stage.agent("agent", Say("First."), LS, Say("Tested."), tools=[stage.bench.shell])
    assert await stage.run(stage.runner(root)) == ["Tested."]
    wanted = ["user: Go.", "assistant: First.", "user: Test it.", 'assistant: calls shell {"command": "ls"}']
    assert (await stage.history())[:4] == wanted
    assert stage.played.sent[2][1:5] == wanted


async def test_a_turn_that_goes_on_counts_its_requests() -> None:
    stage = Stage(judge=extend("More."), on="before_turn_end")
    with pytest.raises(Exception, match=r"[Mm]ax number of llm calls"):
        await stage.run(stage.runner(stage.agent("agent")), run_config=RunConfig(max_llm_calls=2))
    assert len(stage.played.sent) == 2


async def test_context_stands_where_it_was_said() -> None:
    stage = Stage(judge=inject("You are on main."), on="before_input")
    root = stage.agent("agent", LS, tools=[stage.bench.shell])
    await stage.run(stage.runner(root))
    assert stage.played.sent[1][1:4] == [
        "user: Go.", "user: [judge] You are on main.", 'assistant: calls shell {"command": "ls"}'
    ]  # fmt: skip


# --- what the user gives ------------------------------------------------------------------------------


async def test_a_picture_stays_when_the_words_beside_it_are_changed() -> None:
    def hide(step: Any) -> Any:
        return change(input=[{"type": "text", "text": "What is it?"}, *step.input[1:]])

    stage = Stage(judge=hide, on="before_input")
    picture = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))
    given = types.Content(role="user", parts=[types.Part(text="My secret?"), picture])
    await stage.run(stage.runner(stage.agent("agent")), given)
    (step,) = stage.of("before_input")
    assert step.input[1]["mime_type"] == "image/png"
    session = await stage.sessions.get_session(app_name="stage", user_id="u", session_id="s")
    parts = session.events[0].content.parts
    assert (parts[0].text, parts[1].inline_data.data) == ("What is it?", b"png")


async def test_an_instruction_with_state_in_it_is_told_as_the_model_reads_it() -> None:
    stage = Stage(judge=lambda step: change(system_prompt=step.system_prompt + " Always."), on="before_prompt")
    runner = stage.runner(stage.agent("agent", instruction="Speak {language}."))
    about = {"app_name": "stage", "user_id": "u", "session_id": "s"}
    await stage.sessions.create_session(**about, state={"language": "Danish"})
    await stage.run(runner)
    assert stage.of("before_prompt")[0].user_message == "Go."
    assert has(stage.played.sent[0], "Speak Danish. Always.", "system")


# --- others beside us -----------------------------------------------------------------------------------


class Other(BasePlugin):
    """A plugin that is not ours."""

    def __init__(self, **callbacks: Any) -> None:
        super().__init__(name="other")
        self.seen: list[str] = []
        for name, value in callbacks.items():
            setattr(self, f"{name}_callback", self._saying(name, value))

    def _saying(self, name: str, value: Any) -> Any:
        async def say(**_: Any) -> Any:
            self.seen.append(name)
            return value

        return say


def reply(text: str) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=[types.Part(text=text)]))


async def test_other_plugins_and_callbacks_of_the_agent_are_called_as_before() -> None:
    stage, seen = Stage(), []
    other = Other(before_model=None, after_model=None, before_tool=None, after_tool=None)
    root = stage.agent(
        "agent", LS, tools=[stage.bench.shell],
        before_tool_callback=lambda **_: seen.append("before_tool"),
        after_tool_callback=lambda **_: seen.append("after_tool"),
        before_model_callback=lambda **_: seen.append("before_model"),
    )  # fmt: skip
    assert await stage.run(stage.runner(root, other)) == ["Done."]
    assert other.seen == ["before_model", "after_model", "before_tool", "after_tool", "before_model", "after_model"]
    assert seen == ["before_model", "before_tool", "after_tool", "before_model"]


async def test_what_another_plugin_makes_of_the_answer_is_judged_before_it_is_shown() -> None:
    stage = Stage(judge=lambda s: change(content=s.content.replace("hunter2", "***")), on="before_output")
    root = stage.agent("agent", Say("Fine."), after_model_callback=lambda **_: reply("It is hunter2."))
    assert await stage.run(stage.runner(root)) == ["It is ***."]


@pytest.mark.parametrize("first", [True, False])
async def test_what_another_plugin_answers_for_the_model_is_judged_before_it_is_shown(first: bool) -> None:
    stage = Stage(judge=lambda s: change(response=s.response.replace("hunter2", "***")), on="before_response")
    runner = stage.runner(stage.agent("agent"), Other(before_model=reply("It is hunter2.")), first=first)
    assert await stage.run(runner) == ["It is ***."]
    assert stage.fired.count("turn_end") == 1


async def test_what_an_agent_says_when_it_is_done_is_judged_before_it_is_shown() -> None:
    stage = Stage(judge=lambda s: deny("no") if "hunter2" in s.content else None, on="before_output")
    late = types.Content(role="model", parts=[types.Part(text="And it is hunter2.")])
    root = stage.agent("agent", Say("Fine."), after_agent_callback=lambda **_: late)
    assert await stage.run(stage.runner(root)) == ["Fine."]


async def test_a_call_that_another_plugin_answers_has_an_end() -> None:
    stage = Stage()
    root = stage.agent("agent", LS, tools=[stage.bench.shell])
    await stage.run(stage.runner(root, Other(before_tool={"result": "cached"})))
    assert stage.bench.ran == []
    assert [step.output for step in stage.of("after_tool")] == ["cached"]


# --- tools ----------------------------------------------------------------------------------------------


async def test_a_tool_that_does_not_exist_can_be_denied() -> None:
    stage = Stage(judge=deny("there is no such thing"))
    await stage.run(stage.runner(stage.agent("agent", call("nothing", at="all"), tools=[stage.bench.shell])))
    assert has(stage.played.sent[1], "there is no such thing", "tool")
    assert [step.outcome for step in stage.of("after_tool")] == ["denied"]


async def test_a_tool_that_fails_fails_the_run_unless_a_hook_has_an_answer() -> None:
    stage = Stage()
    with pytest.raises(ValueError, match="broken"):
        await stage.run(stage.runner(stage.agent("agent", call("fail", why="broken"), tools=[stage.bench.fail])))
    await stage.fairlead.aclose()
    assert stage.fired.count("after_request") == stage.fired.count("turn_end") == 1
    saved = Stage(judge=lambda step: change(output="It is down.") if step.is_error else None, on="after_tool")
    root = saved.agent("agent", call("fail", why="broken"), tools=[saved.bench.fail])
    assert await saved.run(saved.runner(root)) == ["Done."]
    assert has(saved.played.sent[1], "It is down.", "tool")


async def test_a_retry_that_fails_for_good_is_the_framework_s_to_deal_with() -> None:
    stage = Stage(judge=lambda step: retry() if step.is_error else None, on="after_tool")
    with pytest.raises(ValueError, match="broken"):
        await stage.run(stage.runner(stage.agent("agent", call("fail", why="broken"), tools=[stage.bench.fail])))
    assert [step.attempt for step in stage.of("after_tool")] == [1, 2, 3]


async def test_a_tool_that_runs_for_long_leaves_the_turn_with_no_answer() -> None:
    def start(job: str) -> None:
        """Start something."""

    stage = Stage()
    root = stage.agent("agent", call("start", job="a"), Say("Started."), tools=[LongRunningFunctionTool(start)])
    await stage.run(stage.runner(root))
    assert stage.fired.count("turn_end") == stage.fired.count("after_request") == 1
    assert [step.outcome for step in stage.of("after_tool")] == ["ok"]


async def test_structured_output_is_judged_before_it_is_shown() -> None:
    class City(BaseModel):
        name: str

    stage = Stage(judge=lambda s: change(response=s.response.replace("Atlantis", "Athens")), on="before_response")
    plain = stage.agent("agent", Say('{"name": "Atlantis"}'), output_schema=City, output_key="city")
    assert await stage.run(stage.runner(plain)) == ['{"name": "Athens"}']
    session = await stage.sessions.get_session(app_name="stage", user_id="u", session_id="s")
    assert session.state["city"] == {"name": "Athens"}
    final = call("set_model_response", name="Atlantis")
    with_tools = stage.agent("agent", LS, final, output_schema=City, tools=[stage.bench.shell])
    shown = await stage.run(stage.runner(with_tools))
    assert [text for text in shown if "Atlantis" in text] == []
    assert '"Athens"' in shown[-1]
    assert stage.fired.count("turn_end") == 2


# --- a human is asked ---------------------------------------------------------------------------------


async def test_a_question_waits_for_its_answer_in_the_same_turn() -> None:
    stage = Stage(judge=ask("May it?"))
    runner = stage.runner(stage.agent("agent", LS, tools=[stage.bench.shell]))
    assert await stage.run(runner) == []
    (question,) = stage.questions()
    assert question.args["toolConfirmation"]["hint"] == "May it?"
    assert (stage.bench.ran, "turn_end" in stage.fired, "after_tool" in stage.fired) == ([], False, False)
    assert await stage.run(runner, stage.answer(True)) == ["Done."]
    assert len(stage.bench.ran) == 1
    assert [stage.fired.count(e) for e in ("before_request", "before_input", "turn_start", "turn_end")] == [1, 1, 1, 1]


async def test_an_answer_is_understood_after_a_restart() -> None:
    stage = Stage(judge=ask("May it?"))
    root = stage.agent("agent", LS, tools=[stage.bench.shell])
    await stage.run(stage.runner(root))
    stage.fairlead = Fairlead(stage.hooks)
    assert await stage.run(stage.runner(root), stage.answer(True)) == ["Done."]
    assert len(stage.bench.ran) == 1


async def test_what_is_asked_is_what_would_be_run_and_nothing_else_runs() -> None:
    commands = iter(["ls -l", "rm -r"])

    def rewrite(step: Any) -> Any:
        return change(args={"command": next(commands)})

    stage = Stage(judge=rewrite)
    stage.hooks.add(lambda step: ask("May it?"), on="before_tool", name="gate", phase="gate")
    runner = stage.runner(stage.agent("agent", LS, tools=[stage.bench.shell]))
    await stage.run(runner)
    assert "ls -l" in stage.questions()[0].args["toolConfirmation"]["hint"]
    await stage.run(runner, stage.answer(True))
    assert stage.bench.ran == []
    assert has(stage.played.sent[-1], "not those that were approved", "tool")


async def test_the_framework_s_own_confirmation_still_holds_and_a_hook_may_give_it() -> None:
    for verdict, ran in ((None, 0), (allow(), 1)):
        stage = Stage(judge=verdict or (lambda step: None))
        tool = FunctionTool(stage.bench.shell, require_confirmation=True)
        runner = stage.runner(stage.agent("agent", LS, tools=[tool]))
        await stage.run(runner)
        if verdict is not None and not SECOND:
            continue  # there the tool asks when it runs, and no code can answer for the user
        assert len(stage.bench.ran) == ran
        assert [step.proposed for step in stage.of("before_permission")] == ["ask" if not ran and SECOND else "allow"]
        if not ran:
            assert await stage.run(runner, stage.answer(True)) == ["Done."]
            assert len(stage.bench.ran) == 1
            assert [step.outcome for step in stage.of("after_tool")] == ["ok"]


async def test_a_tool_that_asks_by_itself_is_not_over_before_it_is_answered() -> None:
    def order(pizza: str, tool_context: ToolContext) -> Any:
        """Order a pizza."""
        if not tool_context.tool_confirmation:
            tool_context.request_confirmation(hint="Sure?")
            tool_context.actions.skip_summarization = True
            return {"status": "pending"}
        return {"status": "ordered"}

    stage = Stage()
    runner = stage.runner(stage.agent("agent", call("order", pizza="x"), tools=[order]))
    await stage.run(runner)
    assert "after_tool" not in stage.fired
    assert await stage.run(runner, stage.answer(True)) == ["Done."]
    assert [step.output for step in stage.of("after_tool")] == [{"status": "ordered"}]


async def test_only_the_call_in_question_waits() -> None:
    stage = Stage(judge=lambda step: ask("May it?") if step.tool == "shell" else None)
    both = Call([("shell", {"command": "ls"}), ("read", {"path": "a"})])
    runner = stage.runner(stage.agent("agent", both, tools=[stage.bench.shell, stage.bench.read]))
    await stage.run(runner)
    assert stage.bench.ran == [("read", {"path": "a"})]
    assert await stage.run(runner, stage.answer(False)) == ["Done."]
    assert stage.bench.ran == [("read", {"path": "a"})]


async def test_a_question_without_an_answer_ends_with_the_session() -> None:
    stage = Stage(judge=ask("May it?"))
    await stage.run(stage.runner(stage.agent("agent", LS, tools=[stage.bench.shell])))
    await stage.fairlead.aclose()
    assert stage.fired[-4:] == ["turn_end", "error", "after_request", "session_end"]


async def test_no_human_can_be_asked_from_inside_an_agent_that_is_a_tool() -> None:
    stage = Stage(judge=lambda step: ask("May it?") if step.tool == "shell" else None)
    helper = stage.agent("helper", LS, Say("Sorry."), tools=[stage.bench.shell])
    root = stage.agent("agent", call("helper", message="x"), tools=[AgentTool(helper)])
    assert await stage.run(stage.runner(root)) == ["Done."]
    assert stage.bench.ran == []


# --- the model ------------------------------------------------------------------------------------------


async def test_an_unknown_model_is_an_error_that_names_the_known_ones() -> None:
    stage = Stage(judge=change(model="secnod"), on="before_model")
    stage.fairlead.models["second"] = Scripted(model="second", script=[], played=stage.played)
    with pytest.raises(Exception, match="second"):
        await stage.run(stage.runner(stage.agent("agent")))
    assert stage.played.sent == []


async def test_the_name_of_a_model_of_the_same_kind_is_handed_to_it() -> None:
    class Family(Scripted):
        @classmethod
        def supported_models(cls) -> list[str]:
            return ["family-.*"]

        async def generate_content_async(self, request: Any, stream: bool = False) -> Any:
            names.append(request.model)
            async for piece in super().generate_content_async(request, stream):
                yield piece

    from google.adk.models.registry import LLMRegistry

    names: list[str] = []
    LLMRegistry.register(Family)
    stage = Stage(judge=change(model="family-large"), on="before_model")
    model = Family(model="family-small", script=[], played=stage.played)
    assert await stage.run(stage.runner(LlmAgent(name="agent", model=model))) == ["Done."]
    assert names == ["family-large"]


async def test_the_results_of_several_calls_stay_together_when_messages_are_rewritten() -> None:
    def shorten(step: Any) -> Any:
        return change(messages=[{**m, "content": str(m["content"]).replace("ran ", "")} for m in step.messages])

    sent: list[Any] = []

    class Watching(Scripted):
        async def generate_content_async(self, request: Any, stream: bool = False) -> Any:
            sent.append(request.contents)
            async for piece in super().generate_content_async(request, stream):
                yield piece

    stage = Stage(judge=shorten, on="before_model")
    both = Call([("shell", {"command": "ls"}), ("shell", {"command": "ps"})])
    model = Watching(model="m", script=[both], played=stage.played)
    await stage.run(stage.runner(LlmAgent(name="agent", model=model, tools=[stage.bench.shell])))
    results = [p.function_response for p in sent[1][-1].parts]
    assert [result.response for result in results] == [{"result": "ls"}, {"result": "ps"}]


async def test_a_streamed_reply_that_comes_in_several_pieces_does_not_end_the_turn_too_early() -> None:
    class Pieces(Scripted):
        async def generate_content_async(self, request: Any, stream: bool = False) -> Any:
            if self.script:
                yield reply("Let me see.")  # as older versions give the text that stands before a call
            async for piece in super().generate_content_async(request, stream):
                yield piece

    stage = Stage(judge=lambda step: deny("no") if step.tool == "read" else None)
    model = Pieces(model="m", script=[LS, call("read", path="a")], played=stage.played)
    root = LlmAgent(name="agent", model=model, tools=[stage.bench.shell, stage.bench.read])
    shown = await stage.run(stage.runner(root), run_config=RunConfig(streaming_mode=StreamingMode.SSE))
    assert shown[-1] == "Done."
    assert stage.bench.ran == [("shell", {"command": "ls"})]
    assert (stage.fired[-1], stage.fired.count("turn_end")) == ("after_request", stage.fired.count("after_request"))


# --- other agents ---------------------------------------------------------------------------------------


def transfer(to: str) -> Call:
    return call("transfer_to_agent", agent_name=to)


async def test_an_agent_that_takes_over_has_an_identity_of_its_own() -> None:
    stage = Stage()
    helper = stage.agent("helper", LS, Say("Helped."), tools=[stage.bench.shell])
    root = stage.agent("agent", transfer("helper"), sub_agents=[helper])
    runner = stage.runner(root)
    assert await stage.run(runner) == ["Helped."]
    assert [step.agent_name for step in stage.of("subagent_start")] == ["helper"]
    assert [step.agent_name for step in stage.of("subagent_stop")] == ["helper"]
    assert [step.agent.name for step in stage.of("before_tool")] == ["agent", "helper"]
    assert [step.kind for step in stage.of("before_tool")] == ["agent", "shell"]
    assert stage.fired.count("turn_end") == 1
    assert await stage.run(runner, "And now?") == ["Done."]  # it is still at work
    assert stage.of("before_model")[-1].agent.name == "helper"


async def test_an_agent_that_may_not_take_over_is_not_asked() -> None:
    stage = Stage(judge=deny("not today"), on="subagent_start")
    root = stage.agent("agent", transfer("helper"), Say("Alone, then."), sub_agents=[stage.agent("helper")])
    assert await stage.run(stage.runner(root)) == ["Alone, then."]
    assert has(stage.played.sent[1], "not today", "tool")


async def test_every_agent_of_a_workflow_has_a_turn_and_its_answer_is_judged() -> None:
    stage = Stage(judge=lambda s: change(content=s.content.replace("hunter2", "***")), on="before_output")
    writer, editor = stage.agent("writer", Say("A hunter2.")), stage.agent("editor", Say("B hunter2."))
    assert await stage.run(stage.runner(SequentialAgent(name="flow", sub_agents=[writer, editor]))) == [
        "A ***.", "B ***."
    ]  # fmt: skip
    assert [step.agent_name for step in stage.of("subagent_start")] == ["writer", "editor"]
    assert [step.agent.name for step in stage.of("turn_end")] == ["writer", "editor", "flow"]
    assert [len(stage.of(e)) for e in ("before_request", "after_request", "subagent_stop")] == [3, 3, 2]


async def test_agents_that_work_at_once_do_not_mix() -> None:
    stage = Stage(judge=lambda step: change(args={"command": f"ls of {step.agent.name}"}))
    names = ("one", "two", "three")
    agents = [stage.agent(name, LS, Say(name), tools=[stage.bench.shell]) for name in names]
    shown = await stage.run(stage.runner(ParallelAgent(name="all", sub_agents=agents)))
    assert sorted(shown) == sorted(names)
    assert sorted(args["command"] for _, args in stage.bench.ran) == sorted(f"ls of {name}" for name in names)
    assert {step.response_length for step in stage.of("turn_end")} == {0, 3, 5}


async def test_an_agent_of_a_loop_has_a_turn_each_time() -> None:
    stage = Stage()
    loop = LoopAgent(name="loop", sub_agents=[stage.agent("worker", Say("1"), Say("2"))], max_iterations=2)
    assert await stage.run(stage.runner(loop)) == ["1", "2"]
    assert len(stage.of("subagent_start")) == len(stage.of("subagent_stop")) == 2


async def test_an_agent_of_a_workflow_that_may_not_start_is_left_out() -> None:
    stage = Stage(judge=lambda s: deny("not you") if s.agent_name == "writer" else None, on="subagent_start")
    flow = SequentialAgent(name="flow", sub_agents=[stage.agent("writer", Say("A"))])
    (shown,) = await stage.run(stage.runner(flow))
    assert "not you" in shown
    assert stage.played.sent == []


async def test_an_agent_that_is_no_model_s_is_judged_by_what_it_shows() -> None:
    class Echo(BaseAgent):
        async def _run_async_impl(self, ctx: Any) -> Any:
            yield Event(author=self.name, content=types.Content(role="model", parts=[types.Part(text="hunter2")]))

    stage = Stage(judge=lambda s: change(content=s.content.replace("hunter2", "***")), on="before_output")
    assert await stage.run(stage.runner(Echo(name="echo"))) == ["***"]
    assert stage.fired.count("turn_end") == stage.fired.count("after_request") == 1


async def test_an_agent_that_is_a_tool_leaves_the_sessions_of_its_caller_open() -> None:
    stage = Stage()
    helper = stage.agent("helper", Say("Helped."))
    root = stage.agent("agent", call("helper", message="x"), tools=[AgentTool(helper)])
    runner = stage.runner(root)
    await stage.run(runner)
    assert "session_end" not in stage.fired
    await runner.close()
    assert stage.fired[-1] == "session_end"
    assert stage.fired.count("session_start") == stage.fired.count("session_end") == 1


async def test_an_abort_inside_an_agent_that_is_a_tool_fails_the_request() -> None:
    stage = Stage(judge=lambda step: abort("enough") if step.tool == "shell" else None)
    helper = stage.agent("helper", LS, tools=[stage.bench.shell])
    root = stage.agent("agent", call("helper", message="x"), tools=[AgentTool(helper)])
    with pytest.raises(RuntimeError) as raised:
        await stage.run(stage.runner(root))
    assert aborted(raised.value)
    assert stage.played.models == ["agent", "helper"]


@pytest.mark.skipif(not SECOND, reason="modes of agents came with 2.0")
async def test_an_abort_inside_an_agent_of_one_turn_is_not_swallowed() -> None:
    stage = Stage(judge=lambda step: abort("enough") if step.tool == "shell" else None)
    helper = stage.agent("helper", LS, tools=[stage.bench.shell], mode="single_turn")
    root = stage.agent("agent", call("helper", message="x"), sub_agents=[helper])
    with pytest.raises(RuntimeError) as raised:
        await stage.run(stage.runner(root))
    assert aborted(raised.value)
    assert stage.played.models == ["agent", "helper"]


@pytest.mark.skipif(not SECOND, reason="modes of agents came with 2.0")
@pytest.mark.parametrize("mode", ["single_turn", "task"])
@pytest.mark.parametrize("on", ["before_tool", "subagent_start"])
async def test_an_agent_of_some_mode_that_may_not_start_does_not(mode: str, on: str) -> None:
    stage = Stage(judge=deny("not today"), on=on)
    helper = stage.agent("helper", LS, tools=[stage.bench.shell], mode=mode)
    root = stage.agent("agent", call("helper", message="x"), sub_agents=[helper])
    await stage.run(stage.runner(root))
    assert "helper" not in stage.played.models
    assert has(stage.played.sent[1], "not today")


@pytest.mark.skipif(not SECOND, reason="modes of agents came with 2.0")
async def test_a_task_that_is_given_to_an_agent_is_a_call_that_ends_with_it() -> None:
    stage = Stage(judge=lambda s: change(output={"output": "***"}) if s.tool == "helper" else None, on="after_tool")
    helper = stage.agent("helper", LS, call("finish_task", result="hunter2"), tools=[stage.bench.shell], mode="task")
    root = stage.agent("agent", call("helper", message="x"), sub_agents=[helper])
    assert await stage.run(stage.runner(root)) == ["Done."]
    assert stage.played.models == ["agent", "helper", "helper", "agent"]
    assert [(step.tool, step.agent.name) for step in stage.of("after_tool")] == [
        ("shell", "helper"), ("finish_task", "helper"), ("helper", "agent")
    ]  # fmt: skip
    assert has(stage.played.sent[-1], "***", "tool")
    assert not has(stage.played.sent[-1], "hunter2")
    assert len(stage.of("subagent_start")) == len(stage.of("subagent_stop")) == 1


@pytest.mark.skipif(not SECOND, reason="modes of agents came with 2.0")
async def test_a_task_that_is_given_beside_another_call_is_judged_once() -> None:
    stage = Stage()
    helper = stage.agent("helper", call("finish_task", result="ok"), mode="task")
    both = Call([("shell", {"command": "ls"}), ("helper", {"message": "x"})])
    root = stage.agent("agent", both, sub_agents=[helper], tools=[stage.bench.shell])
    assert await stage.run(stage.runner(root)) == ["Done."]
    assert sorted(step.tool for step in stage.of("before_tool")) == ["finish_task", "helper", "shell"]
    assert sorted(step.tool for step in stage.of("after_tool")) == ["finish_task", "helper", "shell"]


@pytest.mark.skipif(not SECOND, reason="modes of agents came with 2.0")
async def test_an_agent_that_is_called_twice_at_once_does_not_mix() -> None:
    stage = Stage()
    helper = stage.agent(
        "helper", LS, LS, Say("Helped."), Say("Helped."), tools=[stage.bench.shell], mode="single_turn"
    )
    both = Call([("helper", {"message": "one"}), ("helper", {"message": "two"})])
    root = stage.agent("agent", both, sub_agents=[helper])
    assert (await stage.run(stage.runner(root)))[-1] == "Done."
    assert len(stage.bench.ran) == 2
    assert sorted(step.initial_message for step in stage.of("subagent_start")) == ["one", "two"]
    assert len({step.agent.id for step in stage.of("before_tool") if step.tool == "shell"}) == 2


@pytest.mark.skipif(not SECOND, reason="workflows came with 2.0")
async def test_every_agent_of_a_graph_has_a_turn_and_its_answer_is_judged() -> None:
    from google.adk.workflow import START, Workflow

    stage = Stage(judge=lambda s: change(content=s.content.replace("hunter2", "***")), on="before_output")
    writer, editor = stage.agent("writer", Say("A hunter2.")), stage.agent("editor", Say("B hunter2."))
    flow = Workflow(name="flow", edges=[(START, writer, editor)])
    assert await stage.run(stage.runner(flow)) == ["A ***.", "B ***."]
    assert [step.agent_name for step in stage.of("subagent_start")] == ["writer", "editor"]
    assert [step.agent.name for step in stage.of("turn_end")][:2] == ["writer", "editor"]


async def test_an_abort_that_another_plugin_makes_a_result_of_fails_the_request_all_the_same() -> None:
    stage = Stage(judge=lambda step: abort("enough") if step.tool == "shell" else None)
    helper = stage.agent("helper", LS, tools=[stage.bench.shell])
    root = stage.agent("agent", call("helper", message="x"), tools=[AgentTool(helper)])
    with pytest.raises(RuntimeError) as raised:
        await stage.run(stage.runner(root, Other(on_tool_error={"result": "Never mind."}), first=False))
    assert aborted(raised.value)
    assert stage.played.models == ["agent", "helper"]


async def test_an_agent_that_runs_code_ends_its_turn_after_the_code() -> None:
    from google.adk.code_executors import UnsafeLocalCodeExecutor

    stage = Stage(judge=lambda s: change(content=s.content.replace("42", "***")), on="before_output")
    code = Say("```python\nprint(6 * 7)\n```")
    root = stage.agent("agent", code, Say("It is 42."), code_executor=UnsafeLocalCodeExecutor())
    assert (await stage.run(stage.runner(root)))[-1] == "It is ***."
    assert stage.fired.count("turn_end") == 1
    assert len(stage.played.sent) == 2


async def test_a_turn_that_cannot_go_on_after_code_says_so() -> None:
    from google.adk.code_executors import UnsafeLocalCodeExecutor

    stage = Stage(judge=extend("More."), on="before_turn_end")
    await stage.run(stage.runner(stage.agent("agent", code_executor=UnsafeLocalCodeExecutor())))
    (decision,) = [decision for decision in stage.decisions if decision.event == "before_turn_end"]
    assert list(decision.unsupported) == ["extend"]


# --- runs -----------------------------------------------------------------------------------------------


async def test_a_cancelled_run_is_told_of() -> None:
    stage, started = Stage(), asyncio.Event()

    async def wait(why: str) -> str:
        """Wait."""
        started.set()
        await asyncio.Event().wait()
        return why

    runner = stage.runner(stage.agent("agent", call("wait", why="x"), tools=[wait]))
    work = asyncio.create_task(stage.run(runner))
    await started.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    await runner.close()
    assert [step.outcome for step in stage.of("after_tool")] == ["aborted"]
    assert [step.stop_reason for step in stage.of("turn_end")] == ["cancelled"]
    assert stage.fired[-2:] == ["after_request", "session_end"]


async def test_a_run_that_was_left_is_over() -> None:
    stage = Stage()
    runner = stage.runner(stage.agent("agent", LS, tools=[stage.bench.shell]))
    await stage.sessions.create_session(app_name="stage", user_id="u", session_id="s")
    given = types.Content(role="user", parts=[types.Part(text="Go.")])
    events = runner.run_async(user_id="u", session_id="s", new_message=given)
    async for _ in events:
        break
    await events.aclose()
    await stage.fairlead.aclose()
    assert stage.fired.count("turn_end") == stage.fired.count("after_request") == 1


async def test_a_runner_takes_the_plugin_as_it_is() -> None:
    stage = Stage(judge=deny("no"))
    root = stage.agent("agent", LS, tools=[stage.bench.shell])
    async with stage.fairlead:
        runner = InMemoryRunner(root, app_name="stage", plugins=[stage.fairlead])
        stage.sessions = runner.session_service
        assert await stage.run(runner) == ["Done."]
    assert stage.bench.ran == []
    assert stage.fired[-1] == "session_end"


async def test_a_step_says_who_the_user_is() -> None:
    stage = Stage()
    await stage.run(stage.runner(stage.agent("agent")))
    assert {(step.user_id, step.session_id) for step in stage.of("before_model")} == {("u", "s")}


async def test_a_stopped_turn_has_no_answer_when_there_is_no_reason() -> None:
    stage = Stage(judge=stop(), on="after_tool")
    root = stage.agent("agent", LS, tools=[stage.bench.shell])
    assert await stage.run(stage.runner(root)) == []
    assert len(stage.played.sent) == 1


async def test_an_answer_for_the_model_is_a_message_of_the_agent() -> None:
    stage = Stage(judge=answer("From the cache."), on="before_model")
    assert await stage.run(stage.runner(stage.agent("agent"))) == ["From the cache."]
    assert await stage.history() == ["user: Go.", "assistant: From the cache."]
