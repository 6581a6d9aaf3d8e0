"""`fairlead demo`: see what hooks do, in ten seconds."""

from __future__ import annotations

import argparse
from typing import Any


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="watch hooks at work: no key, no network",
        description="A scripted model fixes a small repository with real tools, while hooks of every form look on.",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import asyncio

    from ..extras import require

    for module in ("pydantic_ai", "cel", "re2"):
        require(module, "demo", "the hooks of the demo")
    from ..hosts.loop.demo import run as run_demo
    from .loading import quiet_log

    quiet_log()
    result, _ = asyncio.run(run_demo())
    return 0 if result.stop_reason == "end_turn" else 1
