"""Where Windsurf reads hooks from."""

from __future__ import annotations

from ..install.settings import REFUSE_ON_STDERR, Settings

SETTINGS = Settings(
    form="list",
    user="~/.codeium/windsurf/hooks.json",
    project=".windsurf/hooks.json",
    managed="/etc/windsurf/hooks.json",
    managed_on_mac="/Library/Application Support/Windsurf/hooks.json",
    has_type=False,
    if_launcher_gone=REFUSE_ON_STDERR,
    extra={"show_output": False},
    timeout_key=None,
)
