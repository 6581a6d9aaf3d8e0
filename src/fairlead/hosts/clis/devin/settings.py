"""Where Devin reads hooks from. It also reads Claude Code's files, unless its settings turn that off."""

from __future__ import annotations

from ..install.settings import REFUSE_ON_STDERR, Settings

SETTINGS = Settings(
    user="~/.config/devin/config.json",
    project=".devin/config.json",
    if_launcher_gone=REFUSE_ON_STDERR,
)
