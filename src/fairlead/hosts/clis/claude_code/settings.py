"""Where Claude Code reads hooks from, and what turns them off."""

from __future__ import annotations

from ..install.settings import REFUSE_ON_STDERR, Settings

SETTINGS = Settings(
    user="~/.claude/settings.json",
    project=".claude/settings.json",
    managed="/etc/claude-code/managed-settings.json",
    managed_on_mac="/Library/Application Support/ClaudeCode/managed-settings.json",
    moved_by=("CLAUDE_CONFIG_DIR", "~/.claude"),
    matcher="*",
    fail_closed={"onFailure": "block"},
    if_launcher_gone=REFUSE_ON_STDERR,  # for Cursor, VS Code and Devin, which do not know `onFailure`
    in_subshell=True,  # for Cursor, which gives a hook its input so
    allows=(),
    off_switches=((("disableAllHooks",), True),),
    off_variables=("CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE"),
    managed_only=("allowManagedHooksOnly",),
    project_files=(".claude/settings.local.json",),
    served="~/.claude/remote-settings.json",
    merge_setting={"managedSourcesBehavior": "merge"},
)
