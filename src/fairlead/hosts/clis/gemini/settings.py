"""Where Gemini CLI reads hooks from, and what turns them off."""

from __future__ import annotations

from ..install.settings import Settings

SETTINGS = Settings(
    user="~/.gemini/settings.json",
    project=".gemini/settings.json",
    managed="/etc/gemini-cli/settings.json",
    managed_on_mac="/Library/Application Support/GeminiCli/settings.json",
    moved_by=("GEMINI_CLI_HOME", "~"),
    pins={("hooksConfig", "enabled"): True},
    timeout_unit=1000,
    expands_dollar=True,
    allows=("comments",),
    off_switches=((("hooksConfig", "enabled"), False),),
    disabled_key=("hooksConfig", "disabled"),
    env_files=(".env", ".gemini/.env"),
    notes={"project": "Gemini CLI runs them in a folder that it trusts."},
)
