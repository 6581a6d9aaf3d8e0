"""What is particular to Microsoft Agent Framework: its middleware, approvals, sessions, streams and subagents."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from datetime import date
from typing import Any

import agent_framework
import pytest
from agent_framework import (
    Agent,
    AgentContext,
    AgentMiddleware,
    AgentResponse,
    AgentSession,
    BaseChatClient,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    InMemoryHistoryProvider,
    Message,
    MiddlewareTermination,
    tool,
)
from driver import Call, Played, Say, Workbench, call
from driver_agent_framework import Scripted, shown, tools_of
from pydantic import BaseModel
from scene import has

from fairlead import (
    Decision,
    FairleadError,
    HookAborted,
    Hooks,
    Unenforceable,
    abort,
    allow,
    ask,
    change,
    deny,
    extend,
    inject,
    stop,
)
from fairlead.hosts.frameworks.agent_framework import Fairlead
from fairlead.hosts.frameworks.agent_framework.tool_calls import ASKS_AGAIN

LS = call("shell", command="ls")
VERSION = tuple(map(int, agent_framework.__version__.split(".")[:2]))


class Stage:
    """An agent with a scripted model, some tools and hooks."""

    def __init__(self, *script: Any, tools: list[Any] | None = None, **options: Any) -> None:
        self.decisions: list[Decision[Any]] = []
        self.hooks = Hooks(journal=self.decisions.append)
        self.bench, self.played = Workbench(), Played()
        self.client = Scripted("first", list(script), self.played)
        self.fairlead = Fairlead(self.hooks)
        around = options.pop("middleware", [])
        self.agent = Agent(
            client=self.client, tools=tools_of(self.bench) if tools is None else tools,
            middleware=[*around, self.fairlead], **{"name": "main", **options},
        )  # fmt: skip

    def add(self, said: Any, on: str, **options: Any) -> None:
        self.hooks.add(said if callable(said) else lambda step: said, on=on, **{"name": "judge", **options})

    async def run(self, given: Any = "Go.", *, stream: bool = False, **options: Any) -> AgentResponse:
        if not stream:
            return await self.agent.run(given, **options)
        return await self.agent.run(given, stream=True, **options).get_final_response()

    @property
    def sent(self) -> list[list[str]]:
        return self.played.sent

    @property
    def events(self) -> list[str]:
        return [decision.event for decision in self.decisions]

    def steps(self, event: str) -> list[Any]:
        return [decision.step for decision in self.decisions if decision.event == event]


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def stream(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


# --- registration -----------------------------------------------------------------------------------


async def test_it_can_be_added_to_one_run_only(stream: bool) -> None:
    stage = Stage(LS)
    stage.add(deny("no"), "before_tool")
    agent = Agent(client=stage.client, tools=tools_of(stage.bench))
    response = agent.run("Go.", stream=stream, middleware=[stage.fairlead])
    response = await (response.get_final_response() if stream else response)
    assert (stage.bench.ran, response.text) == ([], "Done.")


async def test_arguments_that_other_middleware_changes_are_judged(stream: bool) -> None:
    class Wipe(FunctionMiddleware):
        async def process(self, context: FunctionInvocationContext, call_next: Any) -> None:
            context.arguments = {"command": "rm"}
            await call_next()

    stage = Stage(LS, middleware=[Wipe()])
    stage.add(lambda step: deny("no rm") if step.target.command == "rm" else None, "before_tool")
    await stage.run(stream=stream)
    assert stage.bench.ran == []
    assert has(stage.sent[1], "no rm", "tool")


async def test_messages_that_other_middleware_adds_are_seen(stream: bool) -> None:
    class Add(ChatMiddleware):
        async def process(self, context: ChatContext, call_next: Any) -> None:
            context.messages = [*context.messages, Message("user", ["And be quick."])]
            await call_next()

    stage = Stage(middleware=[Add()])
    stage.add(lambda step: None, "before_model")
    await stage.run(stream=stream)
    assert [message["content"] for message in stage.steps("before_model")[0].messages] == ["Go.", "And be quick."]


async def test_a_run_that_other_middleware_ends_is_a_whole_request() -> None:
    after: list[str] = []

    class Outside(AgentMiddleware):
        async def process(self, context: AgentContext, call_next: Any) -> None:
            await call_next()
            after.append("not for one that was terminated")

    class Inside(AgentMiddleware):
        async def process(self, context: AgentContext, call_next: Any) -> None:
            context.result = AgentResponse(messages=[Message("assistant", ["Cached secret."])])
            raise MiddlewareTermination

    stage = Stage(middleware=[Outside()])
    stage.agent.middleware = [*stage.agent.middleware, Inside()]
    stage.add(lambda step: change(content=step.content.replace("secret", "***")), "before_output")
    response = await stage.run()
    assert (response.text, stage.sent, after) == ("Cached ***.", [], [])
    assert stage.events[-1] == "session_end"


async def test_a_client_on_which_middleware_does_not_work_is_an_error_if_a_hook_counts_on_it() -> None:
    class Bare(BaseChatClient):
        async def _inner_get_response(self, **asked: Any) -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", ["Hello."])])

    hooks = Hooks()
    agent = Agent(client=Bare(), middleware=[Fairlead(hooks)])
    assert (await agent.run("Hi.")).text == "Hello."
    hooks.add(lambda step: deny("no"), on="before_tool", name="judge")
    with pytest.raises(FairleadError, match=r"FunctionInvocationLayer.*before_tool"):
        await agent.run("Hi.")


# --- tools ------------------------------------------------------------------------------------------


async def test_an_abort_in_a_tool_call_is_what_the_run_raises(stream: bool) -> None:
    stage = Stage(Call([("shell", {"command": "ls"}), ("slow", {"name": "one"})]))
    stage.add(abort("no more"), "before_tool", tool="shell")
    with pytest.raises(HookAborted, match="no more"):
        await stage.run(stream=stream)
    assert len(stage.sent) == 1
    assert stage.events[-1] == "session_end"
    assert stage.events.count("after_request") == 1


async def test_a_deny_that_cannot_be_carried_out_is_no_tool_error(stream: bool) -> None:
    stage = Stage(LS)
    sessions = stage.fairlead.sessions
    can = {event: frozenset(parts) - {"deny"} for event, parts in sessions.framework.capabilities(stream).items()}
    sessions._capabilities[stream] = can
    stage.add(deny("no"), "before_tool")
    with pytest.raises(Unenforceable):
        await stage.run(stream=stream)
    assert (stage.bench.ran, len(stage.sent)) == ([], 1)


async def test_a_tool_that_ends_the_run_has_its_result_judged(stream: bool) -> None:
    @tool(approval_mode="never_require")
    async def finish() -> str:
        """End the run."""
        raise MiddlewareTermination(result="the secret")

    stage = Stage(call("finish"), tools=[finish])
    stage.add(lambda step: change(output=step.output.replace("secret", "***")), "after_tool")
    response = await stage.run(stream=stream)
    assert len(stage.sent) == 1
    assert has(shown(response.messages), "the ***", "tool")
    assert [step.outcome for step in stage.steps("after_tool")] == ["ok"]


async def test_a_tool_s_error_is_the_framework_s_to_tell() -> None:
    stage = Stage(call("fail", why="broken pipe"))
    await stage.run()
    assert has(stage.sent[1], "Error: Function failed.", "tool")
    assert not has(stage.sent[1], "broken pipe", "tool")
    assert "broken pipe" in stage.steps("after_tool")[0].error


@pytest.mark.skipif(VERSION < (1, 22), reason="older versions cannot call such a tool at all")
async def test_hooks_read_plain_arguments_and_the_tool_gets_its_own_types() -> None:
    got: list[Any] = []

    @tool(approval_mode="never_require")
    def book(day: date, note: str | None = None) -> str:
        """Book a day."""
        got.append(day)
        return "booked"

    stage = Stage(call("book", day="2026-01-02"), call("book", day="2026-01-02"), tools=[book])
    stage.add(lambda step: change(args={"day": "2027-01-01"}) if len(got) else None, "before_tool")
    await stage.run()
    assert [step.args["day"] for step in stage.steps("tool_requested")] == ["2026-01-02", "2026-01-02"]
    assert [str(day) for day in got] == ["2026-01-02", "2027-01-01"]


async def test_arguments_that_do_not_fit_reach_hooks_where_the_framework_lets_them() -> None:
    stage = Stage(call("shell", comand="ls"))
    stage.add(lambda step: None, "before_tool")
    await stage.run()
    assert has(stage.sent[1], "Error: Argument parsing failed.", "tool")
    assert [step.outcome for step in stage.steps("after_tool")] == (["error"] if VERSION >= (1, 19) else [])


async def test_a_tool_s_own_kind_is_its_kind() -> None:
    @tool(approval_mode="never_require", kind="shell")
    def bash_it(command: str) -> str:
        """Run it."""
        return command

    stage = Stage(call("bash_it", command="rm"), tools=[bash_it])
    stage.add(lambda step: deny("no") if step.target.command == "rm" else None, "before_tool", kind="shell")
    await stage.run()
    assert [step.outcome for step in stage.steps("after_tool")] == ["denied"]


async def test_a_picture_stays_one_when_the_words_beside_it_change() -> None:
    @tool(approval_mode="never_require")
    def look() -> list[Content]:
        """Look."""
        return [Content.from_text("a secret"), Content.from_data(b"png", "image/png")]

    seen: list[Any] = []

    class Watch(FunctionMiddleware):
        async def process(self, context: FunctionInvocationContext, call_next: Any) -> None:
            await call_next()
            seen.extend(context.result)

    stage = Stage(call("look"), tools=[look], middleware=[Watch()])
    stage.add(lambda step: change(output=[{"type": "text", "text": "a ***"}, step.output[1]]), "after_tool")
    await stage.run()
    assert [(content.type, content.text) for content in seen] == [("text", "a ***"), ("data", None)]


async def test_a_call_of_a_tool_that_is_not_there_is_the_framework_s_to_answer() -> None:
    stage = Stage(call("nosuch", x=1))
    stage.add(lambda step: None, "before_tool")
    await stage.run()
    assert stage.steps("before_tool") == []
    assert has(stage.sent[1], "not found", "tool")


async def test_a_tool_that_the_provider_runs_is_part_of_the_answer(stream: bool) -> None:
    class Hosted(Scripted):
        def contents(self, said: Any) -> list[Content]:
            return [Content.from_mcp_server_tool_call("h1", "search", server_name="docs", arguments={"q": "x"})]

    stage = Stage()
    stage.add(lambda step: deny("no"), "before_tool")
    stage.agent.client = Hosted("first", [], stage.played)
    response = await stage.run(stream=stream)
    assert response.text == "Done."
    assert stage.steps("before_tool") == []


# --- approvals --------------------------------------------------------------------------------------


async def answer(stage: Stage, response: AgentResponse, session: AgentSession, yes: Callable[[Any], bool]) -> Any:
    answers = [
        request.to_function_approval_response(yes(request.function_call)) for request in response.user_input_requests
    ]
    return await stage.agent.run(Message("user", answers), session=session)


async def test_a_human_is_asked_about_the_arguments_that_the_tool_would_get(stream: bool) -> None:
    stage, session = Stage(LS), AgentSession()
    stage.add(change(args={"command": "ls -l"}), "before_tool", name="longer")
    stage.add(ask("May it?"), "before_tool", name="asks")
    response = await stage.run(session=session, stream=stream)
    (request,) = response.user_input_requests
    assert request.function_call.parse_arguments() == {"command": "ls -l"}
    assert request.additional_properties["reason"] == "May it?"
    assert request.additional_properties["hook"] == "asks"
    await answer(stage, response, session, lambda call: True)
    assert stage.bench.ran == [("shell", {"command": "ls -l"})]
    assert has(stage.sent[-1], 'calls shell {"command": "ls"}', "assistant")


async def test_what_changes_after_it_was_approved_does_not_run() -> None:
    stage, session = Stage(LS), AgentSession()
    stage.add(lambda step: change(args={"command": step.args["command"] + "!"}), "before_tool", name="louder")
    stage.add(ask("May it?"), "before_tool", name="asks")
    response = await stage.run(session=session)
    response = await answer(stage, response, session, lambda call: True)
    assert stage.bench.ran == []
    asked = [request.function_call.parse_arguments() for request in response.user_input_requests]
    if ASKS_AGAIN:
        assert asked == [{"command": "ls!!"}]
    else:
        assert has(stage.sent[-1], "not what was approved", "tool")


async def test_one_of_two_calls_is_asked_about_and_both_are_answered(stream: bool) -> None:
    stage, session = Stage(Call([("shell", {"command": "ls"}), ("read", {"path": "a"})])), AgentSession()
    stage.add(ask("May it?"), "before_tool", tool="shell")
    response = await stage.run(session=session, stream=stream)
    assert stage.bench.ran == [("read", {"path": "a"})]
    response = await answer(stage, response, session, lambda call: True)
    assert sorted(name for name, _ in stage.bench.ran) == ["read", "shell"]
    assert has(stage.sent[-1], "ran ls", "tool")
    assert has(stage.sent[-1], "contents of a")
    assert response.text == "Done."


async def test_calls_of_one_tool_are_told_apart_when_a_human_answers() -> None:
    stage, session = Stage(Call([("shell", {"command": "ls"}), ("shell", {"command": "rm"})])), AgentSession()
    stage.add(ask("May it?"), "before_tool")
    response = await stage.run(session=session)
    await answer(stage, response, session, lambda call: call.parse_arguments()["command"] == "ls")
    assert stage.bench.ran == [("shell", {"command": "ls"})]
    told = {step.args["command"]: step.outcome for step in stage.steps("after_tool")}
    assert told == {"ls": "ok", "rm": "denied"}


async def test_an_approval_of_one_call_is_none_of_the_call_beside_it() -> None:
    """A newer framework takes the second one for approved, since it needs no approval; older ones ask about both."""
    bench = Workbench()
    tools = [tool(bench.shell, approval_mode="always_require"), tool(bench.read, approval_mode="never_require")]
    stage, session = Stage(Call([("shell", {"command": "ls"}), ("read", {"path": "a"})]), tools=tools), AgentSession()
    stage.add(ask("May it?"), "before_tool", tool="read")
    response = await stage.run(session=session)
    await answer(stage, response, session, lambda call: call.name == "shell")
    assert bench.ran == [("shell", {"command": "ls"})]


@pytest.mark.parametrize("yes", [True, False])
async def test_a_tool_that_needs_approval_comes_to_hooks_with_the_answer(yes: bool) -> None:
    bench = Workbench()
    stage = Stage(LS, tools=[tool(bench.shell, approval_mode="always_require")])
    stage.add(lambda step: None, "before_permission")
    session = AgentSession()
    response = await stage.run(session=session)
    assert stage.steps("before_tool") == []
    response = await answer(stage, response, session, lambda call: yes)
    assert len(bench.ran) == yes
    assert [step.proposed for step in stage.steps("before_permission")] == ["ask"]
    assert [step.granted for step in stage.steps("after_permission")] == [yes]
    assert [step.outcome for step in stage.steps("after_tool")] == ["ok" if yes else "denied"]
    assert response.text == "Done."


async def test_hooks_may_deny_what_a_human_has_approved() -> None:
    bench = Workbench()
    stage = Stage(LS, tools=[tool(bench.shell, approval_mode="always_require")])
    stage.add(deny("never"), "before_tool")
    session = AgentSession()
    response = await stage.run(session=session)
    await answer(stage, response, session, lambda call: True)
    assert bench.ran == []
    assert has(stage.sent[-1], "never", "tool")


async def test_what_a_human_approved_for_the_framework_does_not_answer_a_hook() -> None:
    bench = Workbench()
    stage, session = Stage(LS, tools=[tool(bench.shell, approval_mode="always_require")]), AgentSession()
    stage.add(ask("Spend 5 EUR?"), "before_tool", name="budget")
    response = await stage.run(session=session)
    response = await answer(stage, response, session, lambda call: True)
    assert bench.ran == []
    if ASKS_AGAIN:
        assert [one.additional_properties["reason"] for one in response.user_input_requests] == ["Spend 5 EUR?"]
        await answer(stage, response, session, lambda call: True)
        assert len(bench.ran) == 1
    else:
        assert has(stage.sent[-1], "not what was approved", "tool")


async def test_a_question_comes_with_what_the_model_has_said() -> None:
    stage = Stage(Call([("shell", {"command": "ls"})], text="I need the secret list."))
    stage.add(ask("May it?"), "before_tool")
    stage.add(lambda step: change(content=step.content.replace("secret", "***")), "before_output", name="redact")
    stage.add(extend("Go on."), "before_turn_end", name="more")
    response = await stage.run(session=AgentSession())
    assert (response.text, len(response.user_input_requests), len(stage.sent)) == ("I need the *** list.", 1, 1)


async def test_a_subagent_has_no_human_to_ask(stream: bool) -> None:
    stage = Stage(call("helper", message="Help me."), tools=[])
    stage.add(ask("May it?"), "before_tool", tool="shell")
    helper = Agent(
        client=Scripted("helper", [LS, Say("I could not.")], stage.played), name="helper",
        tools=tools_of(stage.bench), middleware=[stage.fairlead],
    )  # fmt: skip
    stage.agent.default_options["tools"] = [helper.as_tool(arg_name="message")]
    response = await stage.run(stream=stream)
    assert (stage.bench.ran, response.text) == ([], "Done.")
    assert has(stage.sent[-1], "I could not.", "tool")


# --- sessions ---------------------------------------------------------------------------------------


async def test_what_hooks_tell_at_the_input_is_kept_with_the_session(stream: bool) -> None:
    stage, session = Stage(), AgentSession()
    said = iter([inject("You are on main.")])
    stage.add(lambda step: next(said, None), "before_input")
    await stage.run(session=session, stream=stream)
    await stage.run("And now?", session=session, stream=stream)
    lines = ["user: Go.", "user: [judge] You are on main.", "assistant: Done.", "user: And now?"]
    assert stage.sent[1] == lines


async def test_an_extended_turn_is_one_conversation_in_a_session(stream: bool) -> None:
    stage, session = Stage(Say("1"), Say("2")), AgentSession()
    stage.add(lambda step: extend("Go on.") if not step.continues_so_far else None, "before_turn_end")
    response = await stage.run(session=session, stream=stream)
    assert response.text == "2"
    assert stage.sent[1] == ["user: Go.", "assistant: 1", "user: Go on."]
    assert response.usage_details["output_token_count"] == 4
    await stage.run("And now?", session=session, stream=stream)
    assert stage.sent[2] == ["user: Go.", "assistant: 1", "user: Go on.", "assistant: 2", "user: And now?"]


async def test_an_extended_turn_is_one_conversation_without_a_session(stream: bool) -> None:
    stage = Stage(LS, Say("1"), Say("2"))
    stage.add(lambda step: extend("Go on.") if not step.continues_so_far else None, "before_turn_end")
    await stage.run(stream=stream)
    assert stage.sent[2][-3:] == ["tool: ran ls", "assistant: 1", "user: Go on."]


async def test_two_agents_of_one_session_have_their_own_names() -> None:
    stage, session = Stage(), AgentSession()
    other = Agent(client=stage.client, name="other", middleware=[stage.fairlead])
    await stage.run(session=session)
    await other.run("And you?", session=session)
    assert [step.agent.name for step in stage.steps("turn_start")] == ["main", "other"]
    assert stage.events.count("session_start") == 1


async def test_a_conversation_that_the_service_keeps_is_told_once(stream: bool) -> None:
    class Kept(Scripted):
        async def _reply(self, messages: Any, options: Any) -> ChatResponse:
            response = await super()._reply(messages, options)
            response.conversation_id = "service-1"
            return response

        async def _pieces(self, messages: Any, options: Any) -> Any:
            async for update in super()._pieces(messages, options):
                update.conversation_id = "service-1"
                yield update

    stage = Stage()
    stage.agent.client = Kept("first", [LS, LS], stage.played)
    stage.add(lambda step: inject("That was slow.") if len(stage.bench.ran) == 1 else None, "after_tool")
    await stage.run(stream=stream)
    assert [has(lines, "That was slow.") for lines in stage.sent] == [False, True, False]


async def test_instructions_of_a_context_provider_stay_when_a_hook_changes_the_agent_s(stream: bool) -> None:
    class Adds(InMemoryHistoryProvider):
        async def before_run(self, *, context: Any, **about: Any) -> None:
            context.extend_instructions("adds", "It is Monday.")

    stage = Stage(instructions="Be brief.", context_providers=[Adds()])
    stage.add(change(system_prompt="Be long."), "before_prompt")
    await stage.run(stream=stream)
    assert stage.sent[0][0] == "system: Be long.\nIt is Monday."


async def test_a_message_without_words_for_it_is_still_judged() -> None:
    picture = Content.from_data(b"png", "image/png")
    stage = Stage()
    stage.add(lambda step: change(input=["What is ***?", step.input[1]]), "before_input")
    kinds: list[list[str]] = []

    class Watch(ChatMiddleware):
        async def process(self, context: ChatContext, call_next: Any) -> None:
            kinds.extend([content.type for content in message.contents] for message in context.messages)
            await call_next()

    stage.agent.middleware = [Watch(), *stage.agent.middleware]
    await stage.run(Message("user", ["What is secret?", picture]))
    assert stage.steps("before_input")[0].input[0] == "What is ***?"
    assert kinds == [["text", "data"]]
    assert stage.sent[0] == ["user: What is ***?"]


async def test_all_that_the_user_says_at_once_is_judged() -> None:
    stage = Stage()
    stage.add(lambda step: deny("no") if "secret" in step.input else None, "before_input")
    response = await stage.run(["the secret", "and the rest"])
    assert (stage.sent, response.text) == ([], "[Message rejected: no]")


# --- the model --------------------------------------------------------------------------------------


async def test_a_model_that_is_not_among_the_clients_is_an_option_of_the_agent_s_own(stream: bool) -> None:
    stage = Stage()
    stage.add(change(model="gpt-small"), "before_model")
    await stage.run(stream=stream)
    assert stage.played.models == ["gpt-small"]


async def test_what_is_no_chat_client_is_an_error() -> None:
    stage = Stage()
    stage.fairlead.models = {"second": object()}
    stage.add(change(model="second"), "before_model")
    with pytest.raises(FairleadError, match="unknown model"):
        await stage.run()


async def test_the_tools_of_a_switched_model_are_called_once_and_judged(stream: bool) -> None:
    stage = Stage()
    stage.fairlead.models = {"second": Scripted("second", [LS], stage.played)}
    stage.add(lambda step: change(model="second") if not stage.sent else None, "before_model")
    stage.add(lambda step: None, "before_tool", name="watch")
    await stage.run(stream=stream)
    assert (stage.played.models, len(stage.bench.ran)) == (["second", "first"], 1)
    assert stage.events.count("before_tool") == 1


async def test_an_answer_that_is_refused_was_paid_for_all_the_same(stream: bool) -> None:
    stage = Stage(Say("Secret."))
    stage.add(lambda step: deny("no secrets") if "Secret" in step.output else None, "after_model")
    response = await stage.run(stream=stream)
    assert response.text == "Done."
    assert response.usage_details["output_token_count"] == 4


async def test_messages_of_all_kinds_can_be_rewritten(stream: bool) -> None:
    def hide(step: Any) -> Any:
        return change(messages=[{**m, "content": str(m["content"]).replace("ls", "**")} for m in step.messages])

    two = Call([("shell", {"command": "ls"}), ("shell", {"command": "ls -l"})], text="First ls.")
    stage = Stage(two)
    stage.add(hide, "before_model")
    await stage.run(stream=stream)
    assert stage.sent[1] == [
        "user: Go.", "assistant: First **.", 'assistant: calls shell {"command": "ls"}',
        'assistant: calls shell {"command": "ls -l"}', "tool: ran **", "tool: ran ** -l",
    ]  # fmt: skip


# --- structured output ------------------------------------------------------------------------------


class City(BaseModel):
    name: str


async def test_a_changed_output_is_parsed_anew(stream: bool) -> None:
    stage = Stage(Say('{"name": "Paris"}'))
    stage.add(lambda step: change(content=step.content.replace("Paris", "Rome")), "before_output")
    response = await stage.run(stream=stream, options={"response_format": City})
    assert response.value == City(name="Rome")


async def test_a_changed_answer_of_the_model_is_parsed_anew(stream: bool) -> None:
    stage = Stage(Say('{"name": "Paris"}'))
    stage.add(lambda step: change(output=step.output.replace("Paris", "Rome")), "after_model")
    response = await stage.run(stream=stream, options={"response_format": City})
    assert response.value == City(name="Rome")


async def test_a_run_that_a_hook_has_stopped_has_a_text_and_no_value(stream: bool) -> None:
    stage = Stage(LS)
    stage.add(stop("enough"), "after_tool")
    stage.add(change(content="It was stopped."), "before_output", name="words")
    response = await stage.run(stream=stream, options={"response_format": City})
    assert (response.text, response.value) == ("It was stopped.", None)


# --- streams ----------------------------------------------------------------------------------------


async def test_a_stream_that_no_hook_may_change_comes_as_it_is_made() -> None:
    stage = Stage(Say("One two three."))
    stage.add(lambda step: None, "before_output", phase="observe")
    seen: list[str] = []
    async for update in stage.agent.run("Go.", stream=True):
        if update.text:
            assert "after_model" not in stage.events
            seen.append(update.text)
    assert seen == ["One ", "two ", "three."]
    assert stage.events[-1] == "session_end"


@pytest.mark.parametrize("event", ["after_model", "before_turn_end", "before_response", "before_output"])
async def test_nothing_is_streamed_before_a_hook_that_may_object_has_spoken(event: str) -> None:
    stage = Stage(Say("One two three."))
    spoken: list[str] = []
    stage.add(lambda step: spoken.append(step.event), event)
    async for update in stage.agent.run("Go.", stream=True):
        assert spoken or not update.text


async def test_a_withheld_answer_is_not_in_what_is_streamed_nor_behind_it() -> None:
    stage = Stage(Say("The secret."))
    stage.add(deny("no"), "before_output")
    stream = stage.agent.run("Go.", stream=True)
    updates = [update async for update in stream]
    final = await stream.get_final_response()
    assert "secret" not in repr([update.to_dict() for update in updates])
    assert (final.text, "secret" in repr(final.to_dict())) == ("", False)
    assert "secret" not in repr(final.raw_representation)


async def test_a_stream_that_is_not_read_to_its_end_ends_the_request() -> None:
    stage = Stage(Say("One two three."))
    stage.add(lambda step: None, "after_request", phase="observe")
    stream = stage.agent.run("Go.", stream=True)
    async for _ in stream:
        break
    del stream, _
    gc.collect()
    for _ in range(100):
        await asyncio.sleep(0)
        if "session_end" in stage.events:
            break
    assert stage.events[-1] == "session_end"
    assert stage.steps("turn_end")[0].stop_reason == "cancelled"


async def test_a_cancelled_run_ends_the_request() -> None:
    stage = Stage(call("slow", name="one"))
    started = asyncio.Event()
    stage.add(lambda step: started.set(), "before_tool")
    run = asyncio.ensure_future(stage.agent.run("Go."))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert stage.events[-1] == "session_end"
    assert stage.steps("turn_end")[0].stop_reason == "cancelled"


async def test_a_response_can_be_had_without_reading_the_stream() -> None:
    stage = Stage(LS)
    stage.add(lambda step: change(content="Shown."), "before_output")
    assert (await stage.agent.run("Go.", stream=True).get_final_response()).text == "Shown."


# --- subagents --------------------------------------------------------------------------------------


def with_helper(stage: Stage, *script: Any, **options: Any) -> None:
    helper = Agent(
        client=Scripted("helper", list(script), stage.played), name="helper", tools=tools_of(stage.bench),
        middleware=[stage.fairlead],
    )  # fmt: skip
    stage.agent.default_options["tools"] = [helper.as_tool(arg_name="message", **options)]


@pytest.mark.parametrize("propagate", [False, True])
async def test_a_subagent_belongs_to_the_session_of_its_caller(stream: bool, propagate: bool) -> None:
    stage = Stage(call("helper", message="Help me."), tools=[])
    with_helper(stage, LS, Say("Helped."), propagate_session=propagate)
    await stage.run(stream=stream, session=AgentSession(session_id="s1"))
    await stage.fairlead.aclose()
    assert {step.session_id for step in stage.steps("session_start") + stage.steps("session_end")} == {"s1"}
    assert [stage.events.count(event) for event in ("session_start", "turn_start", "subagent_stop")] == [1, 2, 1]
    assert [step.is_subagent for step in stage.steps("turn_start")] == [False, True]


async def test_an_abort_in_a_subagent_fails_the_whole_run(stream: bool) -> None:
    stage = Stage(call("helper", message="Help me."), tools=[])
    with_helper(stage, LS)
    stage.add(abort("no more"), "before_tool", tool="shell")
    with pytest.raises(HookAborted):
        await stage.run(stream=stream)
    assert len(stage.sent) == 2


async def test_a_subagent_that_is_told_to_go_on_has_another_turn() -> None:
    stage = Stage(call("helper", message="Help me."), tools=[])
    with_helper(stage, Say("Half."), Say("Whole."))
    stage.add(lambda step: extend("More.") if not step.continues_so_far else None, "subagent_stop")
    await stage.run()
    assert has(stage.sent[2], "Half.", "assistant")
    assert has(stage.sent[2], "More.", "user")
    assert has(stage.sent[3], "Whole.", "tool")
    assert stage.events.count("turn_end") == stage.events.count("turn_start") == 3


async def test_a_subagent_whose_message_is_refused_says_so() -> None:
    stage = Stage(call("helper", message="Help me."), tools=[])
    with_helper(stage)
    stage.add(lambda step: deny("not you") if step.agent.name == "helper" else None, "before_input")
    await stage.run()
    assert has(stage.sent[1], "[Message rejected: not you]", "tool")
    assert stage.events.count("subagent_stop") == 1


async def test_a_subagent_under_other_hooks_is_a_request_of_its_own() -> None:
    stage, received = Stage(call("helper", message="Help me."), tools=[]), []
    hooks = Hooks(journal=lambda decision: received.append(decision.event))
    helper = Agent(client=Scripted("helper", [], stage.played), name="helper", middleware=[Fairlead(hooks)])
    stage.agent.default_options["tools"] = [helper.as_tool(arg_name="message")]
    await stage.run()
    assert "subagent_start" not in [*received, *stage.events]
    assert received.count("before_request") == stage.events.count("before_request") == 1


# --- side by side -----------------------------------------------------------------------------------


async def test_two_runs_of_one_agent_at_once_keep_apart(stream: bool) -> None:
    stage = Stage(*[call("slow", name="x")] * 2)
    stage.add(lambda step: change(args={"name": step.session_id}), "before_tool")
    await asyncio.gather(*(stage.run(stream=stream, session=AgentSession(session_id=name)) for name in ("a", "b")))
    assert sorted(args["name"] for _, args in stage.bench.ran) == ["a", "b"]
    await stage.fairlead.aclose()
    assert sorted(step.session_id for step in stage.steps("session_end")) == ["a", "b"]


async def test_sessions_end_with_the_adapter() -> None:
    stage = Stage()
    async with stage.fairlead:
        await stage.run(session=AgentSession(session_id="s1"))
        assert "session_end" not in stage.events
    assert stage.events[-1] == "session_end"


async def test_one_session_id_makes_one_session_of_all_runs_that_have_none() -> None:
    stage = Stage()
    stage.agent.middleware = [Fairlead(stage.hooks, session_id="all", user_id="alice")]
    await stage.run()
    await stage.run()
    await stage.run(session=AgentSession(session_id="s1"))
    assert [step.session_id for step in stage.steps("session_start")] == ["all", "s1"]
    assert {step.user_id for step in stage.steps("turn_start")} == {"alice"}


async def test_allow_does_not_stand_in_for_a_human() -> None:
    """The framework asks before hooks are asked: an allow of theirs comes too late to spare the question."""
    bench = Workbench()
    stage = Stage(LS, tools=[tool(bench.shell, approval_mode="always_require")])
    stage.add(allow(), "before_tool")
    response = await stage.run(session=AgentSession())
    assert (len(response.user_input_requests), bench.ran) == (1, [])
