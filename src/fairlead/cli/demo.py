"""`fairlead demo`: see what hooks do, in ten seconds."""

from __future__ import annotations

import argparse
import shlex
import shutil
from pathlib import Path
from typing import Any

from ..display import escape, paint


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="watch hooks at work: no key, no network",
        description="A scripted model fixes a small repository with real tools, while hooks of every form look on.",
    )
    parser.add_argument("--journal", metavar="FILE", type=Path, help="keep the journal of the demo in this new file")
    parser.add_argument("--ui", action="store_true", help="then open the inspector, which shows what happened")
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

    if options.ui:
        require("starlette", "ui", "the pages of the inspector")
    quiet_log()
    journal = _fresh(demo_journal()) if options.journal is None else options.journal.absolute()
    result, _ = asyncio.run(run_demo(journal))
    if options.ui:
        from ..ui.serving import serve

        print()
        serve(journal)
    else:
        again = shlex.join(["fairlead", "ui", "--journal", str(journal)])
        print(f"{paint('look', 'bold')}       {escape(again)}")
    return 0 if result.stop_reason == "end_turn" else 1


def demo_journal() -> Path:
    """Where the demo keeps the journal of its last run."""
    from ..paths import state_folder

    return state_folder() / "demo" / "journal.db"


def _fresh(journal: Path) -> Path:
    """An empty place for a journal: what the last run of the demo left is removed."""
    from ..paths import make_private

    make_private(journal.parent.parent)
    shutil.rmtree(journal.parent, ignore_errors=True)
    make_private(journal.parent)
    return journal
