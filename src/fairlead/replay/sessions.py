"""What a replayed step finds: the clock, the sessions with their stores, and the answers of humans.

They are rebuilt from the record, so that a hook that depends only on them decides as it did.
"""

from __future__ import annotations

from collections.abc import Coroutine
from copy import deepcopy
from math import inf
from typing import TYPE_CHECKING, Any

import msgspec

from ..approvals import Approval, ApprovalRequest
from ..redaction.redactor import redact_text
from ..session import Session, Store
from .records import Recorded

if TYPE_CHECKING:
    from ..registry import Hooks


class Clock:
    """A clock that stands at the time at which the recorded step began."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


class ReplayStore(Store):
    """A store that notes when a hook reads what it cannot know, because earlier steps are missing.

    `known_since` is the time from which no step is missing.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.known_since = -inf
        self.uncertain = False
        self._set_since: set[str] = set()

    def forget(self, now: float) -> None:
        """From now on, what came before is not known."""
        self.known_since = max(now, self.known_since)
        self._set_since.clear()

    def get(self, key: str, default: Any = None) -> Any:
        self._check(key)
        return super().get(key, default)

    def set(self, key: str, value: Any) -> None:
        if self.known_since > -inf:
            if self.uncertain:  # what is set may follow from what is not known
                self._set_since.discard(key)
            else:
                self._set_since.add(key)
        super().set(key, value)

    def increment(self, key: str, by: int = 1) -> int:
        self._check(key)
        return super().increment(key, by)

    def hit(self, key: str, within: float) -> int:
        if self.clock() - within < self.known_since:
            self.uncertain = True
        return super().hit(key, within)

    def _check(self, key: str) -> None:
        if self.known_since > -inf and key not in self._set_since:
            self.uncertain = True

    def copy(self) -> ReplayStore:
        """A copy to judge a step on without leaving a trace: hooks may change the values in place."""
        copy = ReplayStore(self.clock)  # type: ignore[arg-type]
        dump = self.dump()
        copy.load({**dump, "values": {key: copy_of(value) for key, value in dump["values"].items()}})
        copy.known_since, copy._set_since = self.known_since, set(self._set_since)
        return copy


class ReplaySession(Session):
    """A recorded session, rebuilt step by step."""

    store: ReplayStore

    def __init__(
        self, hooks: Hooks, session_id: str, clock: Clock, store: ReplayStore, parent: Session | None, step: Any
    ) -> None:
        self._state: Any = {}
        super().__init__(
            hooks, session_id, agent=step.agent, host=step.host, cwd=step.cwd, user_id=step.user_id,
            channel=step.channel, thread_id=step.thread_id, parent=parent, lenient=True,
        )  # fmt: skip
        self._clock = clock
        if parent is None:
            self._root_id = step.root_session_id
        self.store = store

    @property
    def state(self) -> Any:
        if self.store.known_since > -inf:
            self.store.uncertain = True
        return self._state

    @state.setter
    def state(self, value: Any) -> None:
        self._state = {} if value is None else value

    def now(self) -> float:
        return self._clock.time

    def spawn(self, work: Coroutine[Any, Any, Any], *, name: str | None = None) -> None:
        work.close()  # a replay starts nothing


def copy_of(value: Any) -> Any:
    """A copy of what a hook keeps; the thing itself if it cannot be copied, such as a connection."""
    try:
        return deepcopy(value)
    except Exception:
        return value


def same_state(one: Any, recorded: Any) -> bool:
    """Whether a rebuilt state is the one that was recorded."""
    try:
        plain = msgspec.to_builtins(one, enc_hook=repr, str_keys=True)
        return bool(plain == msgspec.to_builtins(recorded, enc_hook=repr, str_keys=True))
    except Exception:  # a state can hold any object
        return False


class RecordedApprover:
    """Answers as the human did, if the same hook asks the same question about the same final step.

    Any other question stays open: the decision is then `ask`.
    """

    def __init__(self) -> None:
        self.recorded: Recorded | None = None
        self.was_asked = False  # a question was put about the current step,
        self.new_questions = 0  # and so many were not put then

    async def approve(self, request: ApprovalRequest) -> Approval:
        """The recorded answer. After a refusal the engine puts no other question, as it did then."""
        self.was_asked = True
        answer = self._recorded_answer(request)
        if answer is None:
            self.new_questions += 1
        return answer or Approval("ask")

    def _recorded_answer(self, request: ApprovalRequest) -> Approval | None:
        recorded = self.recorded
        if recorded is None:
            return None
        known = {
            (one["hook"], one.get("question")): Approval(**one["approval"])
            for one in recorded.contributions
            if "approval" in one and "hook" in one
        }
        answer = known.get((request.hook, request.question)) if known else None
        if answer is None and known and request.question is not None:
            answer = known.get((request.hook, redact_text(request.question)))
        if answer is None or not _is_same_step(request.step, recorded):
            return None
        return answer


def _is_same_step(step: Any, recorded: Recorded) -> bool:
    if step is recorded.final_step:
        return True
    if recorded.redacted_places:  # one of its stand-ins: only what is left of it can be compared
        fields = {place.split(".")[1] for place, _ in recorded.redacted_places}
        names = (name for name in step.__struct_fields__ if name not in fields and name != "target")
        return all(getattr(step, name) == getattr(recorded.final_step, name) for name in names)
    return bool(step == recorded.final_step)
