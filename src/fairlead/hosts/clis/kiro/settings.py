"""Where Kiro reads hooks from: files of hooks, and in version 2 the file of the agent in use."""

from __future__ import annotations

import json

from ..install.json_file import JsonFile
from ..install.settings import REFUSE_ON_STDERR, Settings
from ..install.targets import OwnFile, Placement, SettingsTarget
from .mapping import EMBEDDED, STANDALONE


def _targets(placement: Placement) -> list[SettingsTarget]:
    """A file of hooks, and the file of each agent. Kiro 3 runs both, and the daemon judges each step once."""
    entries, commands, agents = placement.entries(), placement.commands(), placement.path.parent
    embedded = {event: entries[event] for event in EMBEDDED}
    hooks = [_hook(event, commands[event], placement.timeout) for event in STANDALONE]
    text = json.dumps({"version": "v1", "hooks": hooks}, indent=2, ensure_ascii=False) + "\n"
    files = sorted(agents.glob("*.json")) or [placement.path]
    return [
        OwnFile(agents.parent / "hooks/fairlead.json", tuple(STANDALONE), text),
        *(JsonFile(placement.host, file, embedded) for file in files),
    ]


def _hook(event: str, command: str, timeout: float) -> dict[str, object]:
    action = {"type": "command", "command": command}
    seconds = max(int(timeout), 1)
    return {"name": f"fairlead-{event}", "trigger": event, "action": action, "timeout": seconds, "enabled": True}


SETTINGS = Settings(
    form="list",
    user="~/.kiro/agents/fairlead.json",
    project=".kiro/agents/fairlead.json",
    targets=_targets,
    is_own=True,
    template={"name": "fairlead", "description": "Every step is put to fairlead.", "tools": ["*"]},
    has_type=False,
    if_launcher_gone=REFUSE_ON_STDERR,
    timeout_key="timeout_ms",
    timeout_unit=1000,
    notes={
        "user": "Kiro CLI 2 runs the hooks of the agent in use: kiro-cli agent set-default fairlead, or --agent NAME",
        "project": "Kiro CLI 2 runs the hooks of the agent in use: kiro-cli chat --agent fairlead",
    },
)
