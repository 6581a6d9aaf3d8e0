"""Where GitHub Copilot CLI reads hooks from, and what turns them off. It also reads Claude Code's project files."""

from __future__ import annotations

from ..install.settings import Settings

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
