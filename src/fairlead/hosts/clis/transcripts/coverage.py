"""Coverage: compares transcripts with the journal, and finds tool calls that ran without a decision."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from ....redaction.redactor import redact_text
from ....tools import Tools
from .decisions import CallDecision, Decisions, SessionDecisions, digest_of
from .transcript import TranscriptEntry, Transcripts, TranscriptSource

FRESH = 60.0
"""Seconds for which a call without a result counts as still running."""
LONG = 20_000
"""Characters of a command that are searched for secrets before it is shortened."""

Reason = Literal["journal", "pruned", "before", "session", "late", "subagent", "tool", "lost", "missed", "ran", "open"]
WHY: dict[Reason, str] = {
    "journal": "there is no journal: nothing has ever been decided; run `fairlead install`",
    "pruned": "it is older than what the journal keeps: what was decided then is pruned; see max_age in [journal]",
    "before": "it is older than the journal's first decision: no hook was installed yet",
    "session": "no hook fired in this session: none was installed, trusted or switched on; run `fairlead doctor`",
    "late": "no hook had fired in this session by then: they were installed while it ran",
    "subagent": "a subagent made it, and no hook received any call of that subagent",
    "tool": "hooks fired in this session, but never for this tool: the CLI asks none about it, or a matcher leaves "
    "it out; run `fairlead doctor`",
    "lost": "the journal lacks records of that time: a process that wrote to it was killed",
    "missed": "hooks fired for other calls of this tool in this session, and not for this one",
    "ran": "it was refused, and ran all the same: the CLI did not heed the answer, or did not wait for it",
    "open": "the transcript has no result of it: perhaps it never ran",
}


class TranscriptCall(msgspec.Struct):
    """One tool call in a transcript."""

    cli: str
    tool: str
    session: str
    agent: str | None
    call: str
    at: float | None
    about: str
    source: str
    entry_point: str | None = None
    outcome: str | None = None
    ran: bool | None = None
    digest: bytes | None = None
    decided: CallDecision | None = None
    among: list[SessionDecisions] = []


class Gap(msgspec.Struct, frozen=True):
    """A call that ran without a decision."""

    cli: str
    tool: str
    session: str
    agent: str | None
    call: str
    at: float | None
    about: str
    reason: Reason
    source: str
    entry_point: str | None = None
    """Which of the CLI's programs ran the call, where the transcript says so."""

    @property
    def why(self) -> str:
        return WHY[self.reason]


class CallCounts(msgspec.Struct):
    """How many calls of one tool or one program there are, by what happened to them."""

    calls: int = 0
    decided: int = 0
    denied: int = 0
    not_run: int = 0
    gaps: int = 0


class Coverage:
    """The results so far, by CLI and tool. `examine` yields the gaps, which are only counted here."""

    def __init__(self, decisions: Decisions, tools: Tools, since: float | None = None) -> None:
        self.counts: dict[tuple[str, str], CallCounts] = {}
        self.programs: dict[tuple[str, str | None], CallCounts] = {}
        """By CLI and entry point: its terminal program, an editor's extension, an SDK."""
        self.reasons: Counter[Reason] = Counter()
        self.sessions: set[tuple[str, str]] = set()
        self._decisions, self._tools, self._since = decisions, tools, since
        self._seen: set[int] = set()
        self._decided_agents: set[str | None] = set()  # subagents whose calls were decided on

    def examine(self, transcripts: Transcripts, source: TranscriptSource) -> Iterator[Gap]:
        """Yield the gaps of one transcript."""
        calls = list(self._calls(transcripts, source))
        for call in calls:
            if call.digest is not None:
                call.decided = _first(s.take_by_args(call.tool.casefold(), call.digest, call.at) for s in call.among)
        for call in calls:
            if call.digest is not None and call.decided is None:
                call.decided = _first(s.take_by_time(call.tool.casefold(), call.at) for s in call.among)
        self._decided_agents |= {call.agent for call in calls if call.decided is not None}
        for call in calls:
            gap = self._count(call)
            if gap is not None:
                yield gap

    # --- the calls --------------------------------------------------------------------------

    def _calls(self, transcripts: Transcripts, source: TranscriptSource) -> Iterator[TranscriptCall]:
        waiting: dict[tuple[str, str | None, str], TranscriptCall] = {}
        for entry in transcripts.read(source):
            key = (entry.session_id, entry.agent.id if entry.agent else None, entry.key)
            if entry.event == "before_tool":
                if self._is_new(transcripts.host, entry):
                    waiting[key] = self._call(transcripts, entry, source)
            elif entry.event == "after_tool" and (call := waiting.pop(key, None)) is not None:
                call.outcome, call.ran = entry.fields["outcome"], entry.fields["executed"]
                yield call
        yield from waiting.values()

    def _is_new(self, host: str, entry: TranscriptEntry) -> bool:
        """Whether a call is new: a session that continues in another file repeats its calls there."""
        if self._since is not None and entry.at is not None and entry.at < self._since:
            return False
        known = hash((host, entry.key, entry.at, entry.agent.id if entry.agent else None))
        new = known not in self._seen
        self._seen.add(known)
        return new

    def _call(self, transcripts: Transcripts, entry: TranscriptEntry, source: TranscriptSource) -> TranscriptCall:
        host, tool, args = transcripts.host, str(entry.fields["tool"]), entry.fields["args"]
        sessions = self._decisions.of(entry)
        self.sessions.add((host, entry.session_id))
        call = TranscriptCall(
            host, tool, entry.session_id, entry.agent.id if entry.agent else None, entry.key, entry.at,
            self._about(host, tool, args), str(source.path), entry.entry_point, among=sessions,
        )  # fmt: skip
        call.decided = _first(session.take_by_id(entry.key) for session in sessions)
        if call.decided is None and not transcripts.ids and any(tool.casefold() in s.tools for s in sessions):
            call.digest = digest_of(args)
        return call

    def _about(self, host: str, tool: str, args: dict[str, Any]) -> str:
        target = self._tools.classify(tool, args, host).target
        aim = target.command or " ".join(target.paths) or target.url or ""
        return redact_text(aim[:LONG])[:120]

    # --- the results ------------------------------------------------------------------------

    def _count(self, call: TranscriptCall) -> Gap | None:
        reason: Reason | None = None
        if call.decided is not None:
            reason = "ran" if call.decided.refused and call.outcome == "ok" else None
        elif call.ran is not False:
            reason = self._why(call)
        for count in (
            self.counts.setdefault((call.cli, call.tool), CallCounts()),
            self.programs.setdefault((call.cli, call.entry_point), CallCounts()),
        ):
            count.calls += 1
            count.decided += call.decided is not None
            count.denied += call.decided is not None and call.decided.refused
            count.not_run += call.decided is None and call.ran is False
            count.gaps += reason is not None
        if reason is None:
            return None
        self.reasons[reason] += 1
        return Gap(
            call.cli, call.tool, call.session, call.agent, call.call, call.at, call.about, reason, call.source,
            call.entry_point,
        )  # fmt: skip

    def _why(self, call: TranscriptCall) -> Reason | None:
        """The likely reason why a call has no decision. None: the call still runs."""
        at, known = call.at or 0.0, self._decisions
        if call.outcome is None:
            return "open" if time.time() - at > FRESH else None
        if not known.exists:
            return "journal"
        if known.began is None or at < known.began:
            return "pruned" if known.pruned else "before"
        starts = [session.began for session in call.among if session.began is not None]
        if any(lost.since <= at <= lost.until for lost in known.lost):
            return "lost"
        if not starts:
            return "session"
        if at < min(starts):
            return "late"
        if call.agent is not None and call.agent not in self._decided_agents:
            return "subagent"
        if not any(call.tool.casefold() in session.tools for session in call.among):
            return "tool"
        return "missed"


def _first(found: Iterator[CallDecision | None]) -> CallDecision | None:
    return next((one for one in found if one is not None), None)
