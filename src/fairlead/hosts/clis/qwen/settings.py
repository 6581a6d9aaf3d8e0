"""Where Qwen Code reads hooks from, and what turns them off."""

from __future__ import annotations

from ..install.settings import REFUSE_ON_STDERR, Settings

SETTINGS = Settings(
    user="~/.qwen/settings.json",
    project=".qwen/settings.json",
    managed="/etc/qwen-code/settings.json",
    managed_on_mac="/Library/Application Support/QwenCode/settings.json",
    moved_by=("QWEN_HOME", "~/.qwen"),
    pins={("disableAllHooks",): False},
    timeout_unit=1000,
    if_launcher_gone=REFUSE_ON_STDERR,
    expands_dollar=True,
    allows=("comments",),
    off_switches=((("disableAllHooks",), True),),
    off_variables=("QWEN_CODE_SIMPLE", "QWEN_CODE_SAFE_MODE"),
    env_files=(".env", ".qwen/.env"),
    notes={"project": "Qwen Code runs them in a folder that it trusts."},
)
