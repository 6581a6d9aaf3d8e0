"""Factory Droid: its settings, and its tools by their names."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from ..probe.model import Model, ScriptedCall
from ..probe.program import Program, merge


@dataclass
class Droid(Program):
    """`droid exec`, with a custom model that speaks chat completions: that needs no login."""

    name: ClassVar[str] = "droid"

    def prepare(self, model: Model) -> None:
        """Make the scripted model the only custom one, in the user's settings."""
        folder = self.home / ".factory"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "settings.json"
        old = json.loads(path.read_text("utf-8")) if path.exists() else {}
        custom: dict[str, Any] = {
            "model": "scripted",
            "displayName": "scripted",
            "baseUrl": model.url + "/v1",
            "apiKey": "dummy",
            "provider": "generic-chat-completion-api",
            "maxOutputTokens": 4000,
        }
        new = {"customModels": [custom], "cloudSessionSync": False}
        path.write_text(json.dumps(merge(old, new), indent=2) + "\n", "utf-8")

    def argv(self, prompt: str) -> list[str]:
        return [str(self.binary), "exec", "--auto", "high", "--model", "custom:scripted-0", prompt]

    def variables(self, model: Model) -> dict[str, str]:
        """Air-gapped, it connects to nothing but the model."""
        return {"FACTORY_AIRGAP_ENABLED": "1", "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false"}

    def shell(self, command: str) -> ScriptedCall:
        args = {"command": command, "summary": "a command", "riskLevelReason": "a test", "riskLevel": "low"}
        return ScriptedCall("Execute", args)

    def write(self, path: str, text: str) -> ScriptedCall:
        return ScriptedCall("Create", {"file_path": path, "content": text})


PROGRAM = Droid
