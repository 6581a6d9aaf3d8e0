"""Where GitHub Copilot CLI reads hooks from, and what turns them off. It also reads Claude Code's project files."""

from __future__ import annotations

from ..install.settings import LAUNCHER_GONE, LAUNCHER_NOT_IN_HOME, Settings

_REFUSAL = (
    r"{\"permissionDecision\": \"deny\", \"permissionDecisionReason\": \"REASON\", "
    r"\"decision\": \"block\", \"reason\": \"REASON\", \"behavior\": \"deny\", \"message\": \"REASON\"}"
)
"""A refusal for each event that guards. JetBrains ignores exit codes, and VS Code reads stderr beside exit code 2."""


def _refuse(reason: str) -> str:
    return f'(echo "{_REFUSAL.replace("REASON", reason)}"; echo "{reason}" >&2)'


SETTINGS = Settings(
    form="list",
    user="~/.copilot/hooks/fairlead.json",
    project=".github/hooks/fairlead.json",
    managed="/etc/github-copilot/policy.d/fairlead.json",
    moved_by=("COPILOT_HOME", "~/.copilot"),
    is_own=True,
    template={"version": 1},
    command_key="bash",
    timeout_key="timeoutSec",
    if_launcher_gone=_refuse(LAUNCHER_GONE),
    if_no_user_launcher=_refuse(LAUNCHER_NOT_IN_HOME),
    allows=(),
    off_switches=((("disableAllHooks",), True),),
    project_files=(
        ".github/copilot/settings.json",
        ".github/copilot/settings.local.json",
        ".claude/settings.json",
        ".claude/settings.local.json",
    ),
    notes={"project": "Copilot CLI runs them in a folder that it trusts (headless: --trust-folder)."},
)
