"""GitHub Copilot CLI: reaches any model that speaks chat completions, by variables alone."""

from __future__ import annotations

from typing import ClassVar

from ..probe.model import Model, ScriptedCall
from ..probe.program import Program


class Copilot(Program):
    name: ClassVar[str] = "copilot"

    def argv(self, prompt: str) -> list[str]:
        """A run that trusts the project: without that, the hooks in its folder are not run."""
        return [str(self.binary), "-p", prompt, "--allow-all-tools", "--allow-all-paths", "--trust-folder"]

    def variables(self, model: Model) -> dict[str, str]:
        """The model's name chooses the tools: one of GPT's gets `apply_patch`, others `create` and `edit`."""
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_BASE_URL": model.url + "/v1",
            "COPILOT_PROVIDER_API_KEY": "none",
            "COPILOT_MODEL": "claude-sonnet-4.5",
        }

    def shell(self, command: str) -> ScriptedCall:
        return ScriptedCall("bash", {"command": command, "description": "a command"})

    def write(self, path: str, text: str) -> ScriptedCall:
        """Paths must be absolute, so the project's folder is put before those that are not."""
        return ScriptedCall("create", {"path": str(self.project / path), "file_text": text})


PROGRAM = Copilot
