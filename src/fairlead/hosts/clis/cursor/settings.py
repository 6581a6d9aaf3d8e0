"""Where Cursor reads hooks from."""

from __future__ import annotations

from ..install.settings import Settings

SETTINGS = Settings(
    form="list",
    user="~/.cursor/hooks.json",
    project=".cursor/hooks.json",
    managed="/etc/cursor/hooks.json",
    managed_on_mac="/Library/Application Support/Cursor/hooks.json",
    template={"version": 1},
    has_type=False,
    fail_closed={"failClosed": True},
)
