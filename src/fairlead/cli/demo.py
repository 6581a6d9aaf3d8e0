"""`fairlead demo`: see what hooks do, in ten seconds."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="watch hooks at work: no key, no network",
        description="A scripted model fixes a small repository with real tools, while hooks of every form look on.",
    )
    parser.add_argument("--journal", metavar="FILE", type=Path, help="keep the journal of the demo in this new file")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import asyncio

    from ..errors import FairleadError
    from ..extras import require

    if options.journal is not None and options.journal.exists():
        raise FairleadError(f"{options.journal} is there already; name a new file")
    for module in ("pydantic_ai", "cel", "re2"):
        require(module, "demo", "the hooks of the demo")
    from ..hosts.loop.demo import run as run_demo
    from .loading import quiet_log

    quiet_log()
    result, _ = asyncio.run(run_demo(options.journal))
    return 0 if result.stop_reason == "end_turn" else 1
