"""Where Factory Droid reads hooks from, and what turns them off."""

from __future__ import annotations

from ..install.settings import REFUSE_ON_STDERR, Settings

SETTINGS = Settings(
    user="~/.factory/settings.json",
    project=".factory/settings.json",
    managed="/etc/factory/settings.json",
    moved_by=("FACTORY_HOME_OVERRIDE", "~"),
    overridden_by=("hooks.json", "hooks/hooks.json"),
    pins={("hooks", "hooksDisabled"): False},
    if_launcher_gone=REFUSE_ON_STDERR,
    allows=("comments",),
    off_switches=((("hooks", "hooksDisabled"), True), (("hooksDisabled",), True)),
    project_files=(".factory/hooks.json", ".factory/hooks/hooks.json"),
    served="~/.factory/cache/org-managed-settings.json",
)
