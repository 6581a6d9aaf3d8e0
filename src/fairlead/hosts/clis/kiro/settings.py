"""Where Kiro reads hooks from: each of its agents has a file, and runs the hooks in it."""

from __future__ import annotations

from ..install.settings import Settings

SETTINGS = Settings(
    form="list",
    user="~/.kiro/agents/fairlead.json",
    project=".kiro/agents/fairlead.json",
    siblings="*.json",
    is_own=True,
    template={"name": "fairlead", "description": "Every step is put to fairlead.", "tools": ["*"]},
    has_type=False,
    timeout_key="timeout_ms",
    timeout_unit=1000,
    notes={
        "user": "Kiro runs the hooks of the agent in use: kiro-cli agent set-default fairlead, or --agent NAME",
        "project": "Kiro runs the hooks of the agent in use: kiro-cli chat --agent fairlead",
    },
)
