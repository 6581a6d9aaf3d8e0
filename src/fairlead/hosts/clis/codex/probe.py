"""Codex: runs it against a scripted model, to see whether its hooks fire."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from typing import Any, ClassVar

from ..probe.model import Model, ScriptedCall
from ..probe.program import Program, merge

# gpt-5.5 is the one model of its list that is offered plain tools, `apply_patch` too. Newer ones only write programs
# that call tools, and models it does not know are not offered `apply_patch`.
SETTINGS: dict[str, Any] = {
    "model": "gpt-5.5",
    "model_provider": "probe",
    "approval_policy": "never",
    "sandbox_mode": "danger-full-access",
    "check_for_update_on_startup": False,
    "analytics": {"enabled": False},
}


@dataclass
class Codex(Program):
    """`codex exec`. It skips hooks that it does not trust."""

    name: ClassVar[str] = "codex"

    trusting: bool = False
    """Whether runs trust every hook (`--dangerously-bypass-hook-trust`)."""

    def prepare(self, model: Model) -> None:
        file = self.home / ".codex" / "config.toml"
        file.parent.mkdir(parents=True, exist_ok=True)
        old = tomllib.loads(file.read_text()) if file.exists() else {}
        provider = {
            "name": "probe",
            "base_url": f"{model.url}/v1",
            "env_key": "PROBE_API_KEY",
            "wire_api": "responses",
            "supports_websockets": False,
            "request_max_retries": 0,
            "stream_max_retries": 0,
        }
        file.write_text(_toml(merge(old, {**SETTINGS, "model_providers": {"probe": provider}})))

    def argv(self, prompt: str) -> list[str]:
        bypass = ["--dangerously-bypass-hook-trust"] if self.trusting else []
        return [str(self.binary), "exec", "--skip-git-repo-check", *bypass, prompt]

    def variables(self, model: Model) -> dict[str, str]:
        return {"PROBE_API_KEY": "sk-probe"}

    def shell(self, command: str) -> ScriptedCall:
        return ScriptedCall("exec_command", {"cmd": command})

    def write(self, path: str, text: str) -> ScriptedCall:
        lines = "".join(f"+{line}\n" for line in text.splitlines())
        return ScriptedCall("apply_patch", {"input": f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"})


PROGRAM = Codex


def _toml(table: dict[str, Any]) -> str:
    """A table as TOML, with every value on one line."""
    return "".join(f"{_text(key)} = {_value(value)}\n" for key, value in table.items())


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(key)} = {_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_value(inner) for inner in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text(value) if isinstance(value, str) else str(value)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
