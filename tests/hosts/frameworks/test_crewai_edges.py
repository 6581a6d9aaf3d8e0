"""What a review found in crewai: what is asked about, what is remembered, and what is new."""

from __future__ import annotations

from typing import Any

import pytest
from crewai.hooks.tool_hooks import ToolCallHookContext
from crewai.tools import tool
from driver import Say, call
from test_crewai import FINAL, LS, Stage, a_crew, a_task

from fairlead import ask, change, deny
from fairlead.hosts.frameworks.crewai import Fairlead


def test_a_question_shows_the_arguments_that_the_tool_would_get(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, asked = Stage(), []

    def yes(self: Any, prompt: str, *args: Any) -> str:
        asked.append(prompt)
        return "yes"

    monkeypatch.setattr(ToolCallHookContext, "request_human_input", yes)
    stage.add(change(args={"command": "rm"}), "before_tool", name="changer")
    stage.add(ask("sure?"), "before_permission")
    stage.kickoff(stage.agent(LS))
    assert (asked, stage.ran) == (["shell {'command': 'rm'}: sure?"], ["rm"])


@pytest.mark.parametrize("with_tools", [True, False], ids=["native", "text"])
@pytest.mark.parametrize("said", [deny("withheld"), change(output="other")], ids=["deny", "change"])
def test_a_withheld_output_is_no_answer(with_tools: bool, said: Any) -> None:
    stage = Stage()

    @tool("secrets", result_as_answer=True)
    def secrets(where: str) -> str:
        """Look."""
        return "SECRET"

    stage.tools = [secrets]
    stage.add(said, "after_tool")
    text = 'Thought: t\nAction: secrets\nAction Input: {"where": "x"}\n'
    agent = stage.agent(call("secrets", where="x")) if with_tools else stage.text_agent(text, FINAL)
    assert "SECRET" not in stage.kickoff(agent)


def test_all_new_messages_are_judged() -> None:
    stage = Stage()
    stage.add(lambda step: deny("bad") if "bad" in str(step.input) else None, "before_input")
    with Fairlead(stage.hooks):
        stage.agent(Say("x")).kickoff([{"role": "user", "content": "bad"}, {"role": "user", "content": "fine"}])
    assert stage.played.sent == []


def test_several_messages_can_be_changed() -> None:
    stage = Stage()
    stage.add(change(input="other"), "before_input")
    with Fairlead(stage.hooks):
        stage.agent(Say("x")).kickoff([{"role": "user", "content": "one"}, {"role": "user", "content": "two"}])
    assert [line for line in stage.played.sent[0] if line.startswith("user")] == ["user: other"]


def test_a_crew_that_changes_is_still_the_one() -> None:
    stage = Stage()
    stage.add(deny("no"), "before_tool")
    agent, other = stage.agent(LS), stage.agent(LS, name="other")
    crew = a_crew(agent)
    with Fairlead(stage.hooks, only=crew):
        crew.agents.append(other)
        crew.tasks.append(a_task(other, "More."))
        crew.kickoff()
    assert stage.ran == []
