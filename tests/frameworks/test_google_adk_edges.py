"""What may go wrong with Google ADK at its edges: users that share an id, plugins that stand before."""

from __future__ import annotations

import asyncio
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.genai import types
from seat import Played, Say, call
from seat_google_adk import Scripted

from fairlead import Hooks, deny
from fairlead.hosts.google_adk import Fairlead


async def say(runner: InMemoryRunner, text: str, user: str = "u") -> list[Any]:
    about = {"user_id": user, "session_id": "s1"}
    if await runner.session_service.get_session(app_name="seat", **about) is None:
        await runner.session_service.create_session(app_name="seat", **about)
    message = types.Content(role="user", parts=[types.Part(text=text)])
    return [event async for event in runner.run_async(new_message=message, **about)]


def runner(*script: Any, plugins: list[Any], tools: Any = ()) -> InMemoryRunner:
    model = Scripted(model="first", script=list(script), played=Played())
    agent = LlmAgent(name="agent", model=model, tools=list(tools))
    return InMemoryRunner(app=App(name="seat", root_agent=agent, plugins=plugins))


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
