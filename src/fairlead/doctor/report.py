"""What the doctor says: findings, each with what to do about it, in one report per CLI and one on fairlead itself."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..redaction import redact_text

Level = Literal["ok", "note", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True):
    """One thing that was seen, and what to do about it."""

    level: Level
    what: str
    todo: str | None = None


class Report(msgspec.Struct, kw_only=True):
    """What there is to know of one CLI, or of fairlead itself (`host` is "fairlead")."""

    host: str
    title: str
    experimental: bool = False
    path: str | None = None
    version: str | None = None
    proven: str | None = None
    installed: list[str] = []
    """The scopes in which our hooks are."""
    fires: bool | None = None
    """Whether hooks were seen to fire, and to hold. None: that could not be seen."""
    controls: dict[str, list[str]] = {}
    degraded: dict[str, int] = {}
    """What it was asked for and could not carry out, as the journal has it."""
    unknown_tools: dict[str, int] = {}
    last_seen: str | None = None
    """When the journal has the last step of it."""
    findings: list[Finding] = []

    @property
    def well(self) -> bool:
        return not any(finding.level == "problem" for finding in self.findings)

    def add(self, level: Level, what: str, todo: str | None = None) -> None:
        """Add a finding, once. Settings of others are quoted in it, and may hold a secret."""
        if (finding := Finding(level, redact_text(what), todo)) not in self.findings:
            self.findings.append(finding)
