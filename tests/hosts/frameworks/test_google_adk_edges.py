"""What may go wrong with Google ADK at its edges: users that share an id, plugins that stand before."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from driver import Played, Say, call
from driver_google_adk import Scripted
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools import ToolContext
from google.genai import types

from fairlead import Hooks, UnknownName, ask, change, deny
from fairlead.hosts.frameworks.google_adk import Fairlead


async def say(runner: InMemoryRunner, text: str, user: str = "u") -> list[Any]:
    about = {"user_id": user, "session_id": "s1"}
    if await runner.session_service.get_session(app_name="driver", **about) is None:
        await runner.session_service.create_session(app_name="driver", **about)
    message = types.Content(role="user", parts=[types.Part(text=text)])
    return [event async for event in runner.run_async(new_message=message, **about)]


def runner(*script: Any, plugins: list[Any], tools: Any = ()) -> InMemoryRunner:
    model = Scripted(model="first", script=list(script), played=Played())
    agent = LlmAgent(name="agent", model=model, tools=list(tools))
    return InMemoryRunner(app=App(name="driver", root_agent=agent, plugins=plugins))


def test_sessions_of_two_users_with_the_same_id_are_two() -> None:
    hooks, ran, seen = Hooks(), [], []

    @hooks.on.before_tool
    def only_alice(step: Any) -> Any:
        seen.append(step.user_id)
        return deny("no") if step.user_id != "alice" else None

    def shell(command: str) -> str:
        """Run."""
        ran.append(command)
        return "ran"

    script = call("shell", command="a"), Say("x"), call("shell", command="b"), Say("y")
    made = runner(*script, plugins=[Fairlead(hooks)], tools=[shell])

    async def both() -> None:
        await say(made, "go", "alice")
        await say(made, "go", "bob")

    asyncio.run(both())
    assert seen == ["alice", "bob"]
    assert ran == ["a"]


def test_a_message_that_an_earlier_plugin_has_changed_is_judged() -> None:
    hooks, seen = Hooks(), []

    @hooks.on.before_input
    def judge(step: Any) -> Any:
        seen.append((step.source, step.input))
        return deny("no")

    class Marks(BasePlugin):
        async def on_user_message_callback(self, *, invocation_context: Any, user_message: Any) -> Any:
            return types.Content(role="user", parts=[types.Part(text=f"{user_message.parts[0].text}!")])

    made = runner(Say("x"), plugins=[Marks(name="marks"), Fairlead(hooks)])
    shown = asyncio.run(say(made, "bad"))
    assert seen == [("user", "bad!")]
    assert shown[-1].content.parts[0].text == "[Message rejected: no]"


@pytest.mark.parametrize("plugged", [True, False])
@pytest.mark.parametrize(("asked", "then"), [(1, 2), (0, 1), (1, 0), (1, 1), (0, 0)])
def test_only_what_was_approved_runs_after_a_restart(asked: int, then: int, plugged: bool) -> None:
    ran: list[Any] = []

    def shell(command: str, text: str = "") -> str:
        """Run."""
        ran.append(command)
        return "ran"

    def changed(number: int) -> dict[str, Any]:
        return {"command": f"number {number}", "text": "t"}

    class Changes(BasePlugin):
        number = 0

        async def before_tool_callback(self, *, tool_args: dict[str, Any], **given: Any) -> None:
            tool_args.update(changed(self.number))

    def started(number: int, *script: Any) -> InMemoryRunner:
        hooks, other = Hooks(), Changes(name="changes")
        other.number = number
        if not plugged:
            hooks.on.before_tool(name="other")(lambda step: change(args=changed(number)) if number else None)
        hooks.on.before_permission(name="asks")(lambda step: ask("May it?"))
        plugins = [other, Fairlead(hooks)] if plugged and number else [Fairlead(hooks)]
        return runner(*script, plugins=plugins, tools=[shell])

    async def restarted() -> None:
        first, second = started(asked, call("shell", command="x", text="t")), started(then, Say("done"))
        calls = [one for event in await say(first, "go") for one in event.get_function_calls()]
        second.session_service = first.session_service
        answer = types.FunctionResponse(id=calls[-1].id, name=calls[-1].name, response={"confirmed": True})
        message = types.Content(role="user", parts=[types.Part(function_response=answer)])
        async for _ in second.run_async(user_id="u", session_id="s1", new_message=message):
            pass

    asyncio.run(restarted())
    assert ran == ([f"number {then}" if then else "x"] if asked == then else [])


def test_two_calls_with_the_same_id_are_two() -> None:
    hooks, seen = Hooks(), []

    @hooks.on.after_tool
    def look(step: Any) -> None:
        seen.append((step.args["command"], step.output))

    class Twice(BaseLlm):
        asked: bool = False

        async def generate_content_async(self, request: Any, stream: bool = False) -> Any:
            calls = [types.FunctionCall(id="c0", name="shell", args={"command": one}) for one in "ab"]
            parts = [types.Part(text="done")] if self.asked else [types.Part(function_call=one) for one in calls]
            self.asked = True
            yield LlmResponse(content=types.Content(role="model", parts=parts))

    async def shell(command: str) -> str:
        """Run."""
        await asyncio.sleep(0.05)
        return f"ran {command}"

    agent = LlmAgent(name="agent", model=Twice(model="twice"), tools=[shell])
    shown = asyncio.run(say(InMemoryRunner(app=App(name="driver", root_agent=agent, plugins=[Fairlead(hooks)])), "go"))
    assert sorted(seen) == [("a", "ran a"), ("b", "ran b")]
    assert shown[-1].content.parts[0].text == "done"


def test_a_misspelt_keyword_is_told_of_at_once() -> None:
    with pytest.raises(UnknownName, match="did you mean 'models'"):
        Fairlead(Hooks(), modles={})


def test_a_tool_s_own_question_is_answered_though_the_agent_has_said_something_meanwhile() -> None:
    hooks, ran = Hooks(), []

    def order(pizza: str, tool_context: ToolContext) -> Any:
        """Order a pizza."""
        if not tool_context.tool_confirmation:
            tool_context.request_confirmation(hint="Sure?")
            return {"status": "pending"}
        ran.append(pizza)
        return {"status": "ordered"}

    script = call("order", pizza="x"), Say("Please confirm."), Say("Done.")
    made = runner(*script, plugins=[Fairlead(hooks)], tools=[order])

    async def both() -> Any:
        calls = [one for event in await say(made, "go") for one in event.get_function_calls()]
        asked = next(one for one in calls if one.name == "adk_request_confirmation")
        answer = types.FunctionResponse(id=asked.id, name=asked.name, response={"confirmed": True})
        message = types.Content(role="user", parts=[types.Part(function_response=answer)])
        return [event async for event in made.run_async(new_message=message, user_id="u", session_id="s1")]

    shown = asyncio.run(both())
    assert (ran, shown[-1].content.parts[0].text) == (["x"], "Done.")


def test_a_hook_that_is_added_while_a_tool_is_at_work_sees_its_end() -> None:
    hooks = Hooks()

    def load(what: str) -> str:
        """Load other hooks."""
        hooks.add(lambda step: change(output="[redacted]"), on="after_tool", name="late")
        return "the secret"

    shown = asyncio.run(say(runner(call("load", what="x"), plugins=[Fairlead(hooks)], tools=[load]), "go"))
    assert "the secret" not in str(shown)
    assert "[redacted]" in str(shown)
