"""Where Goose reads hooks from: a plugin, which is a folder with hooks and a description."""

from __future__ import annotations

from ..install.json_file import json_files
from ..install.settings import Settings
from ..install.targets import OwnFile, Placement, SettingsTarget

_PLUGIN = """{
  "name": "fairlead",
  "version": "1.0.0",
  "description": "Every step is put to fairlead, by fairlead-hook."
}
"""


def _targets(placement: Placement) -> list[SettingsTarget]:
    """The hooks, and the description without which Goose ignores them."""
    return [*json_files(placement), OwnFile(placement.path.parent.parent / "plugin.json", (), _PLUGIN)]


SETTINGS = Settings(
    user="~/.agents/plugins/fairlead/hooks/hooks.json",
    project=".agents/plugins/fairlead/hooks/hooks.json",
    is_own=True,
    targets=_targets,
    fail_closed={"on_failure": "block"},
)
