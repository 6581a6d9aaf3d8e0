"""The demo: a scripted model fixes a small repository, with real tools, under hooks of several kinds.

No key and no network are needed. What the model says is written below; what the tools and the hooks
do is real.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...approvals import Approval, ApprovalRequest
from ...display import paint
from ...journal import Journal
from ...journal.reading import Reader
from ...journal.verify import verify
from ...redaction.redactor import redact_text
from ...registry import Hooks
from ...runners.command import Command
from ...runners.environment import hook_environment
from ...runners.rule import Rule
from ...runners.worker import Worker
from ...session import current_session
from ...verdict import ask, change
from .agent import Agent, Result
from .tools import Workspace
from .trace import Trace

FILES = {
    "calc.py": "def add(a, b):\n    return a - b\n",
    "test_calc.py": (
        "import unittest\nfrom calc import add\n\n\nclass Adding(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(add(2, 2), 4)\n"
    ),
    ".env": "SERVICE_URL=https://db.example\nAPI_KEY=sk-demo-4f9a8b7c6d5e4f3a2b1c\n",
}

SCRIPT: Sequence[tuple[str, list[tuple[str, dict[str, Any]]]]] = [
    ("Let me look around.", [("list", {"path": "."}), ("read", {"path": ".env"}), ("read", {"path": "calc.py"})]),
    ("I will put everything back to a clean state first.", [("shell", {"command": "git push --force origin main"})]),
    ("Then without force. I note what I am doing.", [("write", {"path": "notes/log.md", "content": "fixing add\n"})]),
    ("The notes folder is closed; never mind. The old output can go.", [("shell", {"command": "rm -rf build"})]),
    ("All done.", []),
    ("Right, the test still fails: add subtracts.", [
        ("write", {"path": "calc.py", "content": "def add(a, b):\n    return a + b\n"}),
    ]),
    ("Fixed. I will save it.", [("shell", {"command": "git commit -qam 'Fix add' && git log --oneline"})]),
    ("add() adds again, and the test passes.", []),
]  # fmt: skip
"""What the model says, and the tools it calls, one reply after another."""

WORKER = """
from fairlead import change
from fairlead.worker import Worker

worker = Worker()


@worker.on.before_tool(kind="shell")
def trash_instead_of_rm(step):
    words = step.target.command.split()
    if words[:2] == ["rm", "-rf"]:
        return change(command="mkdir -p .trash && mv -f " + " ".join(words[2:]) + " .trash/")


worker.run()
"""


def scripted_model() -> Any:
    """Return a model that gives the replies of `SCRIPT`, one per request."""
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    lines = iter(SCRIPT)

    def reply(_: Any, __: Any) -> ModelResponse:
        text, calls = next(lines, ("I have nothing to add.", []))
        return ModelResponse([TextPart(text), *(ToolCallPart(tool, args) for tool, args in calls)])

    return FunctionModel(reply, model_name="scripted")


def make_repository(root: Path) -> None:
    """Create a small repository with a bug, a test that finds it, and a secret in a file."""
    (root / "build").mkdir(parents=True)
    for name, content in FILES.items():
        (root / name).write_text(content)
    who = [["config", "user.name", "demo"], ["config", "user.email", "demo@example.com"]]
    for words in (["init", "-q"], *who, ["add", "-A"], ["commit", "-qm", "Start"]):
        subprocess.run(["git", *words], cwd=root, check=True, capture_output=True)  # noqa: S603, S607


async def approve(request: ApprovalRequest) -> Approval:
    """Approve every request, in place of a person at the keyboard."""
    return Approval("allow", "you", "looks right")


@asynccontextmanager
async def demo_hooks(root: Path, folder: Path, journal: Path) -> AsyncIterator[Hooks]:
    """Open hooks of several kinds: a rule, a worker, a command and functions. Each has something to do."""
    script = folder / "trash.py"
    script.write_text(WORKER)
    async with Hooks(journal=Journal(journal), approver=approve) as hooks:
        hooks.add(
            Rule(
                'commands.exists(c, c.runs("git push") && c.has("--force"))',
                on="before_tool", deny="Force-push is off here.",
            ),
            on="before_tool", kind="shell", phase="gate", name="no-force-push",
        )  # fmt: skip
        hooks.add(Worker([sys.executable, str(script)]), on="before_tool", kind="shell", name="trash")
        hooks.add(
            Command.shell(
                f"{sys.executable} -m unittest -q 2>&1", environment=hook_environment(root), exits={1: "veto"},
                output="context",
            ),
            on="before_turn_end", name="tests-first", timeout=30.0,
        )  # fmt: skip

        @hooks.on.after_tool(kind="read")
        def redact_secrets(step: Any) -> Any:
            clean = redact_text(step.output or "")
            return change(output=clean) if clean != step.output else None

        @hooks.on.before_tool(kind="write", phase="gate")
        def closed_folders(step: Any) -> None:
            if any("notes" in path for path in step.target.paths):
                raise RuntimeError("the list of closed folders cannot be read")

        @hooks.on.before_tool(kind="shell", phase="gate")
        def commits_are_reviewed(step: Any) -> Any:
            return ask("Commit this?") if step.target.runs("git commit") else None

        @hooks.on.turn_end
        def remember(step: Any) -> None:
            async def index() -> None:
                await asyncio.sleep(0.2)
                (folder / "index").write_text("calc.py\n")
                print(f"{'':10}a background task finished after the turn")

            current_session().spawn(index(), name="index")

        yield hooks


async def run(journal: Path | None = None) -> tuple[Result, Trace]:
    """Run the demo, and print what happens. `journal` is where its journal stays; without it, none does."""
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        root = folder / "repository"
        make_repository(root)
        trace = Trace()
        journal = journal or folder / "journal.db"
        async with demo_hooks(root, folder, journal) as hooks:
            about = {"system_prompt": "You fix programs.", "policy": "open", "cwd": str(root)}
            agent = Agent(scripted_model(), Workspace(root).tools, hooks, **about)  # type: ignore[arg-type]
            async with agent:
                async for moment in agent.stream("Fix the failing test, and save the work."):
                    trace.show(moment)
                result = agent.result
            print()
            print(trace.summary())
        print(_proof(journal))
        return result, trace


def _proof(path: Path) -> str:
    """Summarize the journal: its records, the secrets taken out, and whether it verifies."""
    checked = verify(path)
    with Reader(path) as reader:
        taken = sum(len(record.body.get("redacted", ())) for record in reader.records())
    return f"{paint('journal', 'bold')}    {checked.records} records, {taken} secrets taken out, {checked.verdict}"
