"""One policy answers one recorded step, in a rebuilt session."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec
from msgspec.structs import replace

from ..decision import Decision
from ..engine.run import active_session
from ..errors import FairleadError
from ..hook import Hook, form_of
from ..journal.policy import version_of
from ..lifecycle import EVENTS, Step
from ..verdict import apply
from .memo import Memo, depends_on_state
from .records import Recorded
from .sessions import Clock, RecordedApprover, ReplaySession, ReplayStore, copy_of, same_state
from .stand_ins import variants

if TYPE_CHECKING:
    from ..registry import Hooks

External = Literal["recorded", "run", "skip"]
"""What becomes of hooks that leave this process: their recorded verdicts, a real run, or nothing."""
Why = Literal["redacted", "external", "untrusted code", "cold state"]
Watch = Callable[[Decision[Any], Recorded], None]
"""Is told of every decision, and of the record whose step it is about."""
EXTERNAL_FORMS: Final = ("command", "shell", "worker", "url", "prompt")


class Unknown(msgspec.Struct, frozen=True, order=True):
    """Why an answer is not known, and the hook or the place that is the reason."""

    why: Why
    what: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What a policy does about a step: all that is compared. A question is `ask`, whatever the human said."""

    control: str = "proceed"
    hook: str | None = None
    changed: tuple[str, ...] = ()  # the fields
    changes: bytes = b""  # their values, as JSON
    also: tuple[str, ...] = ()  # "warn by x", "inject by y", and what monitored hooks would have done
    failed: tuple[str, ...] = ()  # the hooks that failed
    answered: str = ""  # a question: what the human said; "" if that is not recorded


ANSWERED: Final = {"allow": "approved", "deny": "refused"}
"""What a human said, by the control that it led to."""
PROCEED: Final = Answer()
_WITH_STATE: Final = frozenset(event.step for event in EVENTS.values() if "state" in event.fields)
STATE_EVENTS: Final = frozenset(event.name for event in EVENTS.values() if "state" in event.fields)
"""The events whose records hold the state of the session."""


def answer_of(decision: Decision[Any]) -> Answer:
    """What is compared of a decision."""
    if not decision.contributions and decision.step is decision.original:
        return PROCEED
    changed = tuple(name for name in decision.changed if name not in ("kind", "target", "safety"))
    values = {name: getattr(decision.step, name) for name in changed}
    also = [f"{word} by {one.hook.name}" for one in decision.verdicts for word in _words(one.verdict)]
    also += [f"monitored {one.control} by {one.hook}" for one in decision.monitored if one.control != "proceed"]
    hook = decision.hook if decision.control != "proceed" else None
    failed = tuple(failure.hook for failure in decision.failures)
    control, answered = str(decision.control), ""
    if decision.approvals:  # the policy asks: it neither allows nor refuses by itself
        control, answered = "ask", ANSWERED.get(control, "")
        questions = (one.hook.name for one in decision.verdicts if one.verdict.control == "ask")
        also += [f"ask by {name}" for name in questions if name != hook]
    return Answer(control, hook, changed, encoded_changes(values), tuple(also), failed, answered)


def _words(verdict: Any) -> Iterable[str]:
    if verdict.warnings:
        yield "warn"
    if verdict.context:
        yield "inject"


def encoded_changes(values: Mapping[str, Any]) -> bytes:
    """The values of changed fields, as JSON; nothing for no change."""
    if not values:
        return b""
    try:
        return msgspec.json.encode(values, enc_hook=repr, order="sorted")
    except (TypeError, ValueError, UnicodeError, RecursionError):
        return repr(values).encode(errors="backslashreplace")


class Judged(msgspec.Struct, frozen=True):
    """The answers of a policy on a step: one, or one per stand-in of a secret. And what was not known."""

    answers: tuple[Answer, ...]
    unknown: tuple[Unknown, ...] = ()
    would_ask: bool = False


class Judge:
    """Answers steps with one policy. `begin` starts a session with its subagents.

    The hooks are this judge's from now on: no hook that leaves the process runs, unless `external` is "run" and the
    policy is trusted. `forms` are the forms of configured hooks by name, where a Python hook runs in a worker.
    """

    def __init__(
        self,
        hooks: Hooks,
        *,
        forms: Mapping[str, str] | None = None,
        external: External = "recorded",
        trusted: bool = True,
        enforced: bool = True,
    ) -> None:
        if hooks.journal is not None:
            raise FairleadError("these hooks write to a journal; a replay takes hooks without one")
        self.hooks = hooks
        self.versions = {
            hook.name: version_of(hook) for hook in hooks if hook.phase != "observe"
        }  # which decide nothing
        self.external: dict[str, str] = {}  # the hooks that leave this process, and their forms
        self._inert: set[str] = set()  # hooks that do nothing here
        self.events = frozenset(name for hook in hooks for name in hook.events)
        self._approver = hooks.approver = RecordedApprover()
        hooks.switch, hooks.enforce = None, True
        self._enforced = enforced  # whatever was paused when the step was recorded
        self._mode, self._trusted = external, trusted
        self._clock = Clock()
        self._sessions: dict[str, ReplaySession] = {}
        self._store = ReplayStore(self._clock)
        self._is_cold = self._is_new = False
        self._recorded: Recorded | None = None
        self._unknown: list[Unknown] = []
        for hook in hooks:
            if hook.quarantine is not None:
                hook.quarantine.limit = sys.maxsize  # it counts the failures of one program, in its time
            form = (forms or {}).get(hook.name) or form_of(hook)
            form = "worker" if form == "python" and hook.name in (forms or ()) else form
            if form in EXTERNAL_FORMS or (hook.detached and form == "python"):
                self._replace(hook, form)
        self.reads_state = any(
            depends_on_state(hook) for hook in hooks if hook.name not in {*self.external, *self._inert}
        )
        hooks.tools._rebuild_table()  # its chains hold what was called before
        self._memo = Memo(hooks, frozenset(self.external), frozenset(self._inert))
        self._watch: Watch | None = None

    def _replace(self, hook: Hook, form: str) -> None:
        """Let the recorded verdict of a hook stand for the hook."""
        call: Callable[..., Any] = _do_nothing
        if hook.phase == "observe" or self._mode == "skip":
            self._inert.add(hook.name)
        else:
            self.external[hook.name] = form
            if self._mode == "run" and self._trusted:
                return
            call = self._stand_in(hook)
        hook.call, hook.is_async, hook.limit, hook.quarantine = call, False, inf, None
        hook.wants_decision = hook.detached = False

    def _stand_in(self, hook: Hook) -> Callable[[Step], Any]:
        name, version = hook.name, self.versions[hook.name]

        def recorded_verdict(step: Step) -> Any:
            recorded = self._recorded
            if recorded is not None and recorded.source is not None:
                known = recorded.source.versions(recorded.policy).get(name) == version
                outcome, verdict = recorded.verdict_of(name) if known else ("", None)
                if outcome in ("verdict", "none") and self._reaches(step, hook, recorded):
                    return verdict
            self._unknown.append(Unknown("external" if self._trusted else "untrusted code", name))
            return None

        return recorded_verdict

    def _reaches(self, step: Step, hook: Hook, recorded: Recorded) -> bool:
        """Whether the step that reaches a hook now is the one that reached it then."""
        if hook.view is not None:
            step = replace(step)  # only its tool may be described in another way
        then = recorded.step
        if recorded.changes:
            if hook.phase == "gate":
                then = recorded.final_step
            else:
                for changes in recorded.changes_before(hook.name):
                    then = apply(then, dict(changes), self.hooks.tools)
        return step is then or all(
            getattr(step, name) == getattr(then, name)
            for name in step.__struct_fields__
            if name not in ("kind", "target", "safety")
        )

    def watch(self, watch: Watch) -> None:
        """Pass every decision on, with its runs. From now on each step is judged, equal ones too."""
        self._watch = watch
        self.hooks._record = True
        self.hooks.tools._rebuild_table()

    @property
    def read_events(self) -> frozenset[str]:
        """The events whose records are read: those of the hooks, and those that tell what hooks find in a session."""
        return self.events | STATE_EVENTS if self.reads_state else self.events

    # --- sessions ---------------------------------------------------------------------------

    def begin(self, is_cold: bool) -> None:
        """Start a session and its subagents, whose earlier steps are missing if it `is_cold`."""
        self._sessions = {}
        self._store = ReplayStore(self._clock)
        self._is_cold = is_cold
        self._is_new = True

    def remembers_like(self, other: Judge) -> bool:
        """Whether the steps of this session have left the same in both policies."""
        names = {*self._sessions, *other._sessions}
        pairs = [(self._sessions.get(name), other._sessions.get(name)) for name in names]
        return self._store.dump() == other._store.dump() and all(
            one is not None and two is not None and same_state(one._state, two._state) for one, two in pairs
        )

    def miss(self, began: float) -> None:
        """Steps of the session are missing: what hooks remember is not known from then on."""
        self._store.forget(inf if began == -inf else began)

    def _enter(self, recorded: Recorded) -> ReplaySession | None:
        """Make the session of a step the current one."""
        session_id = recorded.step.session_id
        if session_id is None:
            session = None
        else:
            session = self._sessions.get(session_id)
            if session is None:
                parent = self._sessions.get(recorded.body.parent or "")
                session = ReplaySession(self.hooks, session_id, self._clock, self._store, parent, recorded.step)
                self._sessions[session_id] = session
        if active_session.get() is not session:
            active_session.set(session)
        return session

    # --- judging ----------------------------------------------------------------------------

    async def judge(self, recorded: Recorded) -> Judged:
        """The answers on a recorded step."""
        self._clock.time = recorded.began
        if self._is_new:
            self._start(recorded)
        if not self._enforced:
            self.hooks.enforce = recorded.body.enforcement is None
        if not recorded.body.redacted:
            step = recorded.step
            if self._enforced and self._watch is None and (known := self._memo.find(step)) is not None:
                return known
            judged = await self._judge(recorded, step)
            if not judged.unknown and not self._approver.was_asked:
                self._memo.keep(judged)
            return judged
        steps = variants(recorded)
        if len(steps) == 1:
            return await self._judge(recorded, steps[0])
        return await self._judge_variants(recorded, steps)

    def rebuild(self, recorded: Recorded) -> None:
        """Take over what the host has set in a session, at a step that no hook is about."""
        self._clock.time = recorded.began
        if self._is_new:
            self._start(recorded)
        session = self._enter(recorded)
        if session is not None:
            self._take_recorded_state(session, recorded)

    def _start(self, first: Recorded) -> None:
        self._is_new = False
        if self._is_cold:
            self._store.forget(first.began)

    async def _judge_variants(self, recorded: Recorded, steps: list[Step]) -> Judged:
        """Judge a step with each stand-in for its secrets. Only the first leaves traces in the session.

        If the stand-ins leave different traces, what the real secret left is not known from then on.
        """
        session = self._enter(recorded)
        copies = [(self._store.copy(), copy_of(session and session._state)) for _ in steps[1:]]
        judged = [await self._judge(recorded, steps[0])]
        kept = store, state = self._store, session and session._state
        traces = store.dump()
        differ = False
        for step, copy in zip(steps[1:], copies, strict=True):
            self._use(session, *copy)
            judged.append(await self._judge(recorded, step, is_stand_in=True))
            same = self._store.dump() == traces and same_state(session and session._state, state)
            differ = differ or not same
        self._use(session, *kept)
        if differ:
            store.forget(recorded.began)
        return Judged(
            tuple(answer for one in judged for answer in one.answers),
            tuple(sorted({unknown for one in judged for unknown in one.unknown})),
            any(one.would_ask for one in judged),
        )

    def _use(self, session: ReplaySession | None, store: ReplayStore, state: Any) -> None:
        """Judge the next step with this store and this state."""
        self._store = store
        for one in self._sessions.values():
            one.store = store
        if session is not None:
            session._state = state

    async def _judge(self, recorded: Recorded, step: Step, *, is_stand_in: bool = False) -> Judged:
        approver, store, unknown = self._approver, self._store, self._unknown
        self._recorded = approver.recorded = recorded
        approver.was_asked, approver.new_questions, store.uncertain = False, 0, False
        if unknown:
            unknown.clear()
        session = self._enter(recorded)
        rebuilds = session is not None and self.reads_state and step.__class__ in _WITH_STATE
        if session is not None and rebuilds:
            step = replace(step, state=session._state)
        decision = await self.hooks.dispatch(step)
        if self._watch is not None and not is_stand_in:
            self._watch(decision, recorded)
        if session is not None and rebuilds:
            self._take_state(session, decision, recorded)
        if store.uncertain:
            unknown.append(Unknown("cold state"))
        answer = answer_of(decision)
        if not unknown and not approver.new_questions:
            return PROCEEDS if answer is PROCEED else Judged((answer,))
        return Judged((answer,), tuple(sorted(set(unknown))), approver.new_questions > 0)

    def _take_state(self, session: ReplaySession, decision: Decision[Any], recorded: Recorded) -> None:
        """Take over what hooks changed in the session."""
        if decision.step is not decision.original:
            for field in EVENTS[decision.event].changes:
                if (value := getattr(decision.step, field)) is not None and field != "session_id":
                    setattr(session, field, value)
        self._take_recorded_state(session, recorded)

    def _take_recorded_state(self, session: ReplaySession, recorded: Recorded) -> None:
        """Where the host has set the state, take it from the record."""
        state = recorded.changes.get("state", recorded.step.state)  # type: ignore[attr-defined]
        if not same_state(session._state, {} if state is None else state):
            session._state = msgspec.json.decode(encoded_changes({"state": state}))["state"]
            self._store.uncertain = True
            if any(place.startswith(("step.state", "left.state")) for place, *_ in recorded.body.redacted):
                self._store.forget(recorded.began)


PROCEEDS: Final = Judged((PROCEED,))


def _do_nothing(step: Step) -> None:
    """Stand for a hook that watches, or that was left out."""
