"""Reconciling transcripts with the journal: every call that ran, and whether it was decided on."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from ..redaction import redact_text
from ..tools import Tools
from .decisions import Decided, Decisions, Session, digest_of
from .transcript import Source, Told, Transcripts

FRESH = 60.0
"""Seconds for which a call without a result is taken to be running still."""
LONG = 20_000
"""Characters of a command that are looked through for secrets before it is cut to be shown."""

Reason = Literal["journal", "pruned", "before", "session", "late", "subagent", "tool", "lost", "missed", "ran", "open"]
WHY: dict[Reason, str] = {
    "journal": "there is no journal: nothing has ever been decided; run `fairlead install`",
    "pruned": "it is older than what the journal keeps: what was decided then is pruned; see max_age in [journal]",
    "before": "it is older than the journal's first decision: no hook was installed yet",
    "session": "no hook fired in this session: none was installed, trusted or switched on; run `fairlead doctor`",
    "late": "no hook had fired in this session by then: they were installed while it ran",
    "subagent": "a subagent made it, and no hook was asked about any call of that one",
    "tool": "hooks fired in this session, but never for this tool: the CLI asks none about it, or a matcher leaves "
    "it out; run `fairlead doctor`",
    "lost": "the journal lacks records of that time: a process that wrote to it was killed",
    "missed": "hooks fired for other calls of this tool in this session, and not for this one",
    "ran": "it was refused, and ran all the same: the CLI did not heed the answer, or did not wait for it",
    "open": "the transcript has no result of it: perhaps it never ran",
}


class Call(msgspec.Struct):
    """One tool call, as its transcript tells it."""

    cli: str
    tool: str
    session: str
    agent: str | None
    call: str
    at: float | None
    about: str
    source: str
    outcome: str | None = None
    ran: bool | None = None
    digest: bytes | None = None
    decided: Decided | None = None
    among: list[Session] = []


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

    @property
    def why(self) -> str:
        return WHY[self.reason]


class Count(msgspec.Struct):
    """What the calls of one tool come to."""

    calls: int = 0
    decided: int = 0
    denied: int = 0
    not_run: int = 0
    gaps: int = 0


class Reconciled:
    """What has been found so far, per CLI and tool. Gaps are handed out, and only counted here."""

    def __init__(self, decisions: Decisions, tools: Tools, since: float | None = None) -> None:
        self.counts: dict[tuple[str, str], Count] = {}
        self.reasons: Counter[Reason] = Counter()
        self.sessions: set[tuple[str, str]] = set()
        self._decisions, self._tools, self._since = decisions, tools, since
        self._seen: set[int] = set()
        self._asked: set[str | None] = set()  # subagents whose calls were decided on

    def look_at(self, transcripts: Transcripts, source: Source) -> Iterator[Gap]:
        """The gaps of one transcript."""
        calls = list(self._calls(transcripts, source))
        for call in calls:
            if call.digest is not None:
                call.decided = _first(s.take_by_args(call.tool.casefold(), call.digest, call.at) for s in call.among)
        for call in calls:
            if call.digest is not None and call.decided is None:
                call.decided = _first(s.take_by_time(call.tool.casefold(), call.at) for s in call.among)
        self._asked |= {call.agent for call in calls if call.decided is not None}
        for call in calls:
            gap = self._count(call)
            if gap is not None:
                yield gap

    # --- the calls --------------------------------------------------------------------------

    def _calls(self, transcripts: Transcripts, source: Source) -> Iterator[Call]:
        waiting: dict[tuple[str, str | None, str], Call] = {}
        for told in transcripts.read(source):
            key = (told.session_id, told.agent.id if told.agent else None, told.key)
            if told.event == "before_tool":
                if self._is_new(transcripts.host, told):
                    waiting[key] = self._call(transcripts, told, source)
            elif told.event == "after_tool" and (call := waiting.pop(key, None)) is not None:
                call.outcome, call.ran = told.fields["outcome"], told.fields["executed"]
                yield call
        yield from waiting.values()

    def _is_new(self, host: str, told: Told) -> bool:
        """Whether a call is to be looked at: a session that goes on in another file repeats its calls there."""
        if self._since is not None and told.at is not None and told.at < self._since:
            return False
        known = hash((host, told.key, told.at, told.agent.id if told.agent else None))
        new = known not in self._seen
        self._seen.add(known)
        return new

    def _call(self, transcripts: Transcripts, told: Told, source: Source) -> Call:
        host, tool, args = transcripts.host, str(told.fields["tool"]), told.fields["args"]
        sessions = self._decisions.of(told)
        self.sessions.add((host, told.session_id))
        call = Call(
            host, tool, told.session_id, told.agent.id if told.agent else None, told.key, told.at,
            self._about(host, tool, args), str(source.path), among=sessions,
        )  # fmt: skip
        call.decided = _first(session.take_by_id(told.key) for session in sessions)
        if call.decided is None and not transcripts.ids and any(tool.casefold() in s.tools for s in sessions):
            call.digest = digest_of(args)
        return call

    def _about(self, host: str, tool: str, args: dict[str, Any]) -> str:
        target = self._tools.classify(tool, args, host).target
        aim = target.command or " ".join(target.paths) or target.url or ""
        return redact_text(aim[:LONG])[:120]

    # --- what came of them ------------------------------------------------------------------

    def _count(self, call: Call) -> Gap | None:
        count = self.counts.setdefault((call.cli, call.tool), Count())
        count.calls += 1
        if call.decided is not None:
            count.decided += 1
            count.denied += call.decided.refused
            reason: Reason | None = "ran" if call.decided.refused and call.outcome == "ok" else None
        elif call.ran is False:
            count.not_run += 1
            reason = None
        else:
            reason = self._why(call)
        if reason is None:
            return None
        count.gaps += 1
        self.reasons[reason] += 1
        return Gap(
            call.cli, call.tool, call.session, call.agent, call.call, call.at, call.about, reason, call.source
        )  # fmt: skip

    def _why(self, call: Call) -> Reason | None:
        """Why there is no decision on a call, as far as that can be told. None: it is not over."""
        at, known = call.at or 0.0, self._decisions
        if call.outcome is None:
            return "open" if time.time() - at > FRESH else None
        if not known.exists:
            return "journal"
        if known.began is None or at < known.began:
            return "pruned" if known.pruned else "before"
        begun = [session.began for session in call.among if session.began is not None]
        if any(lost.since <= at <= lost.until for lost in known.lost):
            return "lost"
        if not begun:
            return "session"
        if at < min(begun):
            return "late"
        if call.agent is not None and call.agent not in self._asked:
            return "subagent"
        if not any(call.tool.casefold() in session.tools for session in call.among):
            return "tool"
        return "missed"


def _first(found: Iterator[Decided | None]) -> Decided | None:
    return next((one for one in found if one is not None), None)
