"""Gemini CLI: runs it against a scripted model, to see whether its hooks fire."""

from __future__ import annotations

import json
from typing import ClassVar

from ..probe.model import Model, ScriptedCall
from ..probe.program import Program, merge


class Gemini(Program):
    """Runs `gemini -p` with an API key that means nothing, and its model's address on loopback."""

    name: ClassVar[str] = "gemini"

    def prepare(self, model: Model) -> None:
        """Choose the API key as the way to sign in, and trust every folder: an untrusted one ends a headless run."""
        path = self.home / ".gemini" / "settings.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        settings = json.loads(path.read_text("utf-8")) if path.exists() else {}
        wanted = {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
        }
        path.write_text(json.dumps(merge(settings, wanted), indent=2), "utf-8")

    def argv(self, prompt: str) -> list[str]:
        return [str(self.binary), "-p", prompt, "--approval-mode", "yolo", "-m", "gemini-2.5-flash"]

    def variables(self, model: Model) -> dict[str, str]:
        return {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": model.url,
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }

    def shell(self, command: str) -> ScriptedCall:
        return ScriptedCall("run_shell_command", {"command": command})

    def write(self, path: str, text: str) -> ScriptedCall:
        return ScriptedCall("write_file", {"file_path": str(self.project / path), "content": text})


PROGRAM = Gemini
