"""Cline's CLI: reaches a model that speaks chat completions through a file of providers in its folder."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from ..probe.model import Model, ScriptedCall
from ..probe.program import Program, merge


class Cline(Program):
    name: ClassVar[str] = "cline"

    def prepare(self, model: Model) -> None:
        """Make the scripted model the provider that was used last: that is the one a run takes.

        A model with GPT in its name would get `apply_patch` in place of `editor`.
        """
        provider = "openai-compatible"
        settings = {"provider": provider, "apiKey": "none", "model": "scripted", "baseUrl": model.url + "/v1"}
        entry = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
        providers = {"version": 1, "lastUsedProvider": provider, "modes": {}, "providers": {provider: entry}}
        self._settings("providers.json", providers)
        self._settings("global-settings.json", {"telemetryOptOut": True, "autoUpdateEnabled": False})

    def _settings(self, name: str, new: dict[str, Any]) -> None:
        path = self.home / ".cline/data/settings" / name
        old: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(merge(old, new), indent=2))

    def argv(self, prompt: str) -> list[str]:
        """A prompt of one word would be taken for a command, so a space is put behind it."""
        return [str(self.binary), "--auto-approve", "true", prompt if " " in prompt else prompt + " "]

    def variables(self, model: Model) -> dict[str, str]:
        """Its sessions stay in its own process: otherwise it leaves a daemon behind that serves them."""
        return {"CLINE_SESSION_BACKEND_MODE": "local", "CLINE_NO_AUTO_UPDATE": "1"}

    def shell(self, command: str) -> ScriptedCall:
        return ScriptedCall("run_commands", {"commands": [command]})

    def write(self, path: str, text: str) -> ScriptedCall:
        return ScriptedCall("editor", {"path": str(self.project / path), "new_text": text})


PROGRAM = Cline
