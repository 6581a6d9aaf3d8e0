"""Claude Code: runs it against a scripted model, to see whether its hooks fire."""

from __future__ import annotations

from typing import ClassVar

from ..probe.model import Model, ScriptedCall
from ..probe.program import Program


class ClaudeCode(Program):
    """Everything it needs to reach the model is in variables: its settings files are the hooks' alone."""

    name: ClassVar[str] = "claude_code"

    def argv(self, prompt: str) -> list[str]:
        return [str(self.binary), "--dangerously-skip-permissions", "-p", prompt]

    def variables(self, model: Model) -> dict[str, str]:
        """IS_SANDBOX lets root skip the approvals; the others turn off what it sends elsewhere than to the model."""
        return {
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "sk-dummy",
            "IS_SANDBOX": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def shell(self, command: str) -> ScriptedCall:
        return ScriptedCall("Bash", {"command": command, "description": "Run a command"})

    def write(self, path: str, text: str) -> ScriptedCall:
        """The tool wants the whole path."""
        return ScriptedCall("Write", {"file_path": str(self.project / path), "content": text})


PROGRAM = ClaudeCode
