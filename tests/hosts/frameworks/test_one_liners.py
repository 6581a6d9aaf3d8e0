"""What the framework's page tells a user to write passes `mypy --strict`, with the framework's own types."""

from __future__ import annotations

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


@pytest.mark.skipif(NAME not in LINES, reason="its lines are not listed here")
@pytest.mark.timeout(1200)  # mypy reads the whole framework, which takes it a minute for some
def test_the_lines_of_the_page_pass_a_strict_type_checker(tmp_path: Path) -> None:
    sample = HEAD.format(name=NAME) + LINES[NAME]
    (tmp_path / "right.py").write_text(sample)
    (tmp_path / "wrong.py").write_text(sample + WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"]
    done = subprocess.run([*command, "right.py", "wrong.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    problems = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(problems) == 1, done.stdout + done.stderr  # with types, and not with `Any`
    assert problems[0].startswith("wrong.py")
