"""Qwen Code: runs it against a scripted model, to see whether its hooks fire."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..probe.model import Model, ScriptedCall
from ..probe.program import Program, merge

OLDEST_NODE = 22
"""The first major version of Node that it runs on."""


@dataclass
class Qwen(Program):
    """Runs `qwen -p` against an OpenAI-compatible model. `binary` is its script, which Node is started with."""

    node: Path | None = None
    """The Node to start it with; if None, the first that is new enough: beside the script, then on PATH."""

    name: ClassVar[str] = "qwen"

    def prepare(self, model: Model) -> None:
        """Choose the OpenAI API as the way to sign in, check for no updates, and keep no memories.

        To keep memories it starts an agent of its own at the end of a turn, which would take turns of the script.
        """
        path = self.home / ".qwen" / "settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        settings = json.loads(path.read_text("utf-8")) if path.exists() else {}
        wanted = {
            "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
        }
        path.write_text(json.dumps(merge(settings, wanted), indent=2), "utf-8")

    def argv(self, prompt: str) -> list[str]:
        node = self.node or find_node(self.binary.parent)
        return [str(node), str(self.binary.resolve()), "-p", prompt, "--approval-mode", "yolo"]

    def variables(self, model: Model) -> dict[str, str]:
        return {
            "OPENAI_API_KEY": "dummy",
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_MODEL": "scripted",
        }

    def shell(self, command: str) -> ScriptedCall:
        return ScriptedCall("run_shell_command", {"command": command, "is_background": False})

    def write(self, path: str, text: str) -> ScriptedCall:
        """The tool wants the whole path."""
        return ScriptedCall("write_file", {"file_path": str(self.project / path), "content": text})


PROGRAM = Qwen


def find_node(beside: Path) -> Path:
    """The first Node that is new enough: the one in a folder, then those on PATH."""
    for folder in [str(beside), *os.get_exec_path()]:
        found = shutil.which("node", path=folder)
        if found and _major(found) >= OLDEST_NODE:
            return Path(found)
    raise FileNotFoundError(f"no Node {OLDEST_NODE} or newer beside the script or on PATH")


def _major(node: str) -> int:
    """The major version of a Node, 0 if it says none."""
    ran = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)  # noqa: S603
    first = ran.stdout.strip().removeprefix("v").partition(".")[0]
    return int(first) if first.isdigit() else 0
