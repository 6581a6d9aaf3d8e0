"""Projects with a policy that is trusted, for the tests of what becomes of it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

from fairlead import Hooks
from fairlead.config import load
from fairlead.config.document import Document
from fairlead.config.survey import survey
from fairlead.config.trust import Trust
from fairlead.decision import Decision
from fairlead.testing import step

GATE = '[[hook]]\nname = "gate"\non = "before_tool"\nphase = "gate"\ncommand = ["./gate.sh", "rules.txt"]\n'
GATE_SH = '#!/bin/sh\ngrep -q force-push "$1" && { echo as trusted >&2; exit 2; }\n'
HARMLESS = '[[hook]]\nname = "harmless"\non = "after_tool"\nrule = "false"\nwarn = "x"\n'


def git(*words: str, cwd: Path) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *words], cwd=cwd, check=True, capture_output=True, env=_git_env(cwd))


def _git_env(cwd: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1"}


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def make_project(root: Path) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    (root / "fairlead.toml").write_text(GATE)
    program(root / "gate.sh", GATE_SH)
    (root / "rules.txt").write_text("force-push\n")
    return root


def trust(root: Path, **options: Any) -> str:
    seen = survey(Document(root / "fairlead.toml"), root)
    Trust().pin(seen, **options)
    return seen.digest


async def decide(folder: Path, **fields: Any) -> Decision[Any]:
    """The decision of a new start in a folder."""
    async with Hooks(record=True) as hooks:
        load(folder).apply(hooks)
        return await hooks.dispatch(step("before_tool", cwd=str(folder), **fields))
