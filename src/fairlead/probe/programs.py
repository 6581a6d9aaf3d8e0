"""All the agent CLIs that can be run against a scripted model."""

from __future__ import annotations

from .claude_code import ClaudeCode
from .cline import Cline
from .codex import Codex
from .copilot import Copilot
from .droid import Droid
from .gemini_cli import Gemini
from .opencode import OpenCode
from .program import Program
from .qwen import Qwen

PROGRAMS: dict[str, type[Program]] = {
    kind.name: kind for kind in (ClaudeCode, Codex, Gemini, Qwen, Copilot, Droid, Cline, OpenCode)
}
