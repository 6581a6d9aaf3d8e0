"""What the framework's page tells a user to write passes `mypy --strict` and pyright, with the framework's types."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from driver import NAME

HEAD = """\
from fairlead import Hooks
from fairlead.hosts.{name} import Fairlead

hooks = Hooks()


def shell(command: str) -> str:
    return command


"""
LINES = {
    "openai_agents": """
from agents import Agent, RunState
from agents.run import set_default_agent_runner

Runner = Fairlead(hooks)
set_default_agent_runner(Fairlead(hooks))

async def run(agent: Agent[None]) -> None:
    result = await Runner.run(agent, "Go.")
    print(result.final_output, Runner.run_sync(agent, "Go."))
    async for event in Runner.run_streamed(agent, "Go.").stream_events():
        print(event)
    async with Fairlead(hooks, session_id="s") as fairlead:
        state = await RunState.from_string(fairlead.agent(agent), "")
        print([fairlead.question(item) for item in state.get_interruptions()])
""",
    "langchain": """
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langgraph.graph import MessagesState, StateGraph

def run(model: BaseChatModel, builder: StateGraph[MessagesState]) -> None:
    create_agent(model, [shell], middleware=[Fairlead(hooks)])
    create_agent(model, [shell], middleware=[Fairlead(hooks, models={"small": model})])
    builder.add_node("tools", Fairlead(hooks).tool_node([shell]))
""",
    "pydantic_ai": """
from pydantic_ai import Agent

agent = Agent("openai:gpt-5", capabilities=[Fairlead(hooks)], defer_model_check=True)

async def run() -> None:
    async with Fairlead(hooks, session_id="s") as fairlead:
        await agent.run("Go.", capabilities=[fairlead])
""",
    "google_adk": """
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import InMemoryRunner

def run(agent: LlmAgent) -> None:
    app = App(name="demo", root_agent=agent, plugins=[Fairlead(hooks)])
    InMemoryRunner(app=app)
    InMemoryRunner(agent, plugins=[Fairlead(hooks)])
""",
    "strands": """
from strands import Agent, tool
from strands.models import Model
from strands.multiagent import GraphBuilder, Swarm

def run(model: Model) -> None:
    agent = Agent(model=model, tools=[tool(shell)], hooks=[Fairlead(hooks)])
    agent.hooks.add_hook(Fairlead(hooks))
    Swarm([agent], hooks=[Fairlead(hooks)])
    GraphBuilder().set_hook_providers([Fairlead(hooks, models={"small": model})])
""",
    "agent_framework": """
from agent_framework import Agent, BaseChatClient, tool

async def run(client: BaseChatClient) -> None:
    agent = Agent(client=client, tools=[tool(shell)], middleware=[Fairlead(hooks)])
    await agent.run("Go.", middleware=[Fairlead(hooks)])
""",
    "crewai": """
from crewai import Crew

def run(crew: Crew) -> None:
    fairlead = Fairlead(hooks)
    fairlead.close()
    with Fairlead(hooks, only=crew):
        crew.kickoff()
""",
    "claude_agent_sdk": """
from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

options = ClaudeAgentOptions(hooks=Fairlead(hooks, own=["repo"]))
options = Fairlead(hooks).options(options)
options = ClaudeAgentOptions(hooks=Fairlead(hooks) | {"PreToolUse": [HookMatcher()]})
""",
}
WRONG = "\nFairlead(hooks=7)\n"


CHECKERS = {
    "mypy": ["mypy", "--strict", "--config-file=", "--follow-imports=silent"],
    "pyright": ["pyright", "--pythonpath", sys.executable],
}


@pytest.mark.skipif(NAME == "loop", reason="the loop is no framework, and its lines are in the tests of types")
@pytest.mark.parametrize("checker", CHECKERS)
@pytest.mark.timeout(1200)  # mypy reads the whole framework, which takes it a minute for some
def test_the_lines_of_the_page_pass_a_strict_type_checker(checker: str, tmp_path: Path) -> None:
    sample = HEAD.format(name=NAME) + LINES[NAME]
    (tmp_path / "right.py").write_text(sample)
    (tmp_path / "wrong.py").write_text(sample + WRONG)
    command = [sys.executable, "-m", *CHECKERS[checker], "right.py", "wrong.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    problems = [
        line.strip() for line in done.stdout.splitlines() if re.search(r":\d+: error: |:\d+:\d+ - error: ", line)
    ]
    assert len(problems) == 1, done.stdout + done.stderr  # with types, and not with `Any`
    assert "wrong.py:" in problems[0]
