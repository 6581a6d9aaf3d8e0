"""`fairlead run`: give an agent one task, and watch the configured hooks."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .loading import add_folder, quiet_log, sound_config

if TYPE_CHECKING:
    from ..config.layers import Config


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "run",
        help="give an agent one task, with the configured hooks",
        description="Give one task to the built-in agent, which has a shell and can read and write files in the "
        "folder. Watch what the configured hooks decide.",
        epilog="Ends with 0 if the agent finished, with 2 if a hook stopped or refused it, "
        "with 1 if it could not be run.",
    )
    parser.add_argument("task", help="what the agent is to do")
    parser.add_argument("--model", required=True, metavar="PROVIDER:NAME", help="such as openai:gpt-5")
    parser.add_argument(
        "--policy", default="ask-writes", choices=("read-only", "ask-writes", "open", "deny-all"),
        help="which tool calls are allowed where no hook decides (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--max-requests", type=int, default=20, metavar="N", help="requests to the model (default: 20)")
    add_folder(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import asyncio

    from ..errors import FairleadError
    from ..extras import require

    try:
        options.task.encode()
    except UnicodeError:
        raise FairleadError("the task is not a text") from None
    if options.max_requests < 1:
        raise FairleadError("--max-requests must be 1 or more")
    require("pydantic_ai", "prompt", "models (and the packages of your provider)")
    return asyncio.run(_run(options, sound_config(options)))


async def _run(options: argparse.Namespace, config: Config) -> int:
    from ..approvals import TerminalApprover
    from ..hosts.clis.opening import open_hooks
    from ..hosts.loop.agent import Agent
    from ..hosts.loop.tools import Workspace
    from ..hosts.loop.trace import Trace

    root = Path(options.folder).resolve()
    approver = TerminalApprover() if sys.stdin.isatty() else None
    trace = Trace()
    quiet_log()
    journal = config.open_journal()
    async with open_hooks(root, config.apply, approver=approver, journal=journal) as hooks:
        agent = Agent(
            options.model, Workspace(root).tools, hooks, policy=options.policy, max_requests=options.max_requests,
            system_prompt=f"You work in the folder {root}. Use the tools; say briefly what you did.", cwd=str(root),
        )  # fmt: skip
        async with agent:
            async for moment in agent.stream(options.task):
                trace.show(moment)
    if journal is not None:
        journal.close()
    print()
    print(trace.summary())
    return 2 if agent.result.by_hook else 0
