"""OpenCode: its settings, and its tools by their names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..probe.model import Model, ScriptedCall
from ..probe.program import Program, merge


@dataclass
class OpenCode(Program):
    """`opencode run`, with a provider of its own that speaks chat completions."""

    name: ClassVar[str] = "opencode"

    def prepare(self, model: Model) -> None:
        """Name the scripted model as the only one in use, in the user's settings."""
        folder = self.home / ".config" / "opencode"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "opencode.json"
        old = json.loads(path.read_text("utf-8")) if path.exists() else {}
        limit = {"context": 100_000, "output": 4000}
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "scripted",
            "options": {"baseURL": model.url + "/v1", "apiKey": "dummy"},
            "models": {"scripted": {"name": "scripted", "tool_call": True, "limit": limit}},
        }
        new = {
            "$schema": "https://opencode.ai/config.json",
            "provider": {"scripted": provider},
            "enabled_providers": ["scripted"],
            "model": "scripted/scripted",
            "small_model": "scripted/scripted",
            "autoupdate": False,
            "share": "disabled",
        }
        path.write_text(json.dumps(merge(old, new), indent=2) + "\n", "utf-8")
        for each in (folder, self.home / ".opencode", self.project / ".opencode"):
            if each.is_dir():
                _has_its_packages(each)

    def argv(self, prompt: str) -> list[str]:
        """A title keeps it from asking the model for one; `--auto` approves what no rule denies."""
        return [str(self.binary), "run", "--auto", "--title", "probe", "--model", "scripted/scripted", prompt]

    def variables(self, model: Model) -> dict[str, str]:
        """Nothing is fetched: no list of models, no update, no language servers, no plugins of its own."""
        return {
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        }

    def shell(self, command: str) -> ScriptedCall:
        return ScriptedCall("bash", {"command": command, "description": "a command"})

    def write(self, path: str, text: str) -> ScriptedCall:
        return ScriptedCall("write", {"filePath": path, "content": text})


PROGRAM = OpenCode


def _has_its_packages(folder: Path) -> None:
    """Make a settings folder look as if its npm packages were there: without that a run with plugins waits for npm."""
    (folder / "node_modules").mkdir(exist_ok=True)
    lock = folder / "package-lock.json"
    if not lock.exists():
        lock.write_text(json.dumps({"packages": {"": {"dependencies": {"@opencode-ai/plugin": "*"}}}}), "utf-8")
