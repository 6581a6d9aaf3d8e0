"""The doctor's reports: findings with what to do, one report per CLI and one on fairlead itself."""

from __future__ import annotations

from typing import Literal

import msgspec

from ....redaction.redactor import redact_text

CheckLevel = Literal["ok", "note", "warning", "problem"]


class CheckResult(msgspec.Struct, frozen=True):
    """One result of a check, and what to do about it."""

    level: CheckLevel
    what: str
    todo: str | None = None


class Report(msgspec.Struct, kw_only=True):
    """The findings on one CLI, or on fairlead itself (`host` is "fairlead")."""

    host: str
    title: str
    experimental: bool = False
    path: str | None = None
    version: str | None = None
    proven: str | None = None
    installed: list[str] = []
    """The scopes in which fairlead's hooks are installed."""
    fires: bool | None = None
    """Whether hooks fired in a trial run, and the CLI obeyed them. None: it was not tried, or not clear."""
    controls: dict[str, list[str]] = {}
    degraded: dict[str, int] = {}
    """What hooks decided and the CLI could not carry out, from the journal."""
    unknown_tools: dict[str, int] = {}
    entry_points: dict[str, int] = {}
    """Its programs (terminal, editor, SDK) that ran calls, from the journal."""
    last_seen: str | None = None
    """The time of the CLI's last step in the journal."""
    findings: list[CheckResult] = []

    @property
    def well(self) -> bool:
        return not any(finding.level == "problem" for finding in self.findings)

    def add(self, level: CheckLevel, what: str, todo: str | None = None) -> None:
        """Add a finding, once. Secrets are redacted, because findings quote settings."""
        if (finding := CheckResult(level, redact_text(what), todo)) not in self.findings:
            self.findings.append(finding)
