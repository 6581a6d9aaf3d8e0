"""One tool call in a framework: judged, permitted, run and told of, as in the reference loop."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from ..approvals import Approval
from ..decision import Decision
from ..errors import FairleadError, HookAborted, describe
from ..frozen import thaw
from ..lifecycle import (
    AfterPermission,
    AfterTool,
    AfterToolBatch,
    BeforePermission,
    BeforeTool,
    Error,
    ToolRequested,
    ToolStep,
)
from .model import as_text
from .work import Work, drive

if TYPE_CHECKING:
    from .turn import Turn

RETRIES = 2
_ENDINGS = frozenset({AfterTool, AfterToolBatch, Error})
_PERMISSIONS = frozenset({BeforePermission, AfterPermission})
STOPPED = "not run: the turn was stopped"

Ask: TypeAlias = Callable[[Decision[Any] | None], Any]
"""Puts the question to a human by the framework's own means, and gives an `Approval`; or leaves by an exception.

It is given the decision that asks; None if it is the framework itself that does.
"""


class Called(msgspec.Struct):
    """What came of a tool call."""

    outcome: Literal["ok", "error", "denied", "aborted", "answered"] = "ok"
    output: Any = None
    """What the tool gave, as it is; or what the model is given instead, if `replaced`."""
    replaced: bool = False
    is_error: bool = False
    error: Exception | None = None
    """What the tool raised, where hooks have nothing to say about it: the framework has its own ways."""

    @property
    def text(self) -> str:
        return as_text(self.output)

    def result(self) -> Any:
        """What the tool gave, or is said to have given. Raises what it raised."""
        if self.error is not None and not self.replaced:
            raise self.error
        return self.output


class ToolCall:
    """A call on its way."""

    def __init__(
        self,
        turn: Turn,
        args: dict[str, Any],
        about: dict[str, Any],
        run: Callable[[dict[str, Any]], Any],
        proposed: str | Callable[[dict[str, Any]], Any],
        ask: Ask | None,
        through: tuple[type[BaseException], ...],
        read: Callable[[Any], Any],
    ) -> None:
        self.turn, self.args, self.about = turn, args, about
        self.run, self.proposed, self.ask, self.through, self.read = run, proposed, ask, through, read
        self.called = Called()
        self.began: float | None = None
        """When it did, if the framework does it by itself: whoever listens in the end wants to know what it took."""

    def work(self, left: Work[None] | None = None) -> Work[Called]:
        """All of it, or what is `left` to judge and all that comes after."""
        yield from self.judge() if left is None else left
        return (yield from self.finish())

    async def opened(self) -> Work[None] | None:
        """Hear those who judge it, where that can be awaited. What is left to judge, if there is anything.

        This is the short way of most calls, which are somebody's to judge, but are not objected to.
        """
        turn = self.turn
        decision: Decision[Any] | None = None
        if turn.over or ToolRequested in turn.heard:
            return self.judge()
        if BeforeTool in turn.heard:
            decision = self._heard(await turn.session.dispatch(self._step(BeforeTool)))
        silent = decision is None or not decision.said
        if silent and not turn.over and self.proposed == "allow" and _PERMISSIONS.isdisjoint(turn.heard):
            return None
        return self._weigh(decision)

    async def judged(self) -> bool:
        """Judge it, where all of that can be awaited. Whether it is `free`."""
        if (left := await self.opened()) is not None:
            await drive(left)
        return self.free

    @property
    def free(self) -> bool:
        """Once it is judged: it may run, and nobody listens to what comes of it. The framework may do it by itself."""
        return self.called.outcome == "ok" and _ENDINGS.isdisjoint(self.turn.heard)

    def ran(self, came: Callable[[], Any]) -> None:
        """It was free, and has run, but somebody listens by now. `came` gives what came of it; a retry runs it."""
        run, left = self.run, [came]
        self.run = lambda args: left.pop()() if left else run(args)

    def passed(self, output: Any = None, error: Exception | None = None) -> Called:
        """It was free, and the framework has done it by itself. It is one of its batch all the same."""
        called = self.called
        called.output = output
        if error is not None:
            called.outcome, called.is_error, called.error = "error", True, error
        self.turn.told(self.about["tool"], self.about["call_id"], called)
        return called

    def finish(self) -> Work[Called]:
        """What comes after it is judged. A retry runs the call again, as it is."""
        for attempt in range(1, RETRIES + 2):
            began, executed = self.began or monotonic(), self.called.outcome == "ok"
            self.began = None
            if executed:
                yield from self._execute()
            took = monotonic() - began if executed else None
            decision = yield from self._fire(AfterTool, executed=executed, attempt=attempt, duration=took)
            if decision is None or decision.control != "retry" or attempt > RETRIES:
                self._take(decision)
                break
            self.called = Called()
        self.turn.told(self.about["tool"], self.about["call_id"], self.called)
        return self.called

    def _fire(self, kind: type[ToolStep], /, **fields: Any) -> Work[Decision[Any] | None]:
        """What is said of a step about this call."""
        turn = self.turn
        if kind not in turn.heard:
            return None
        if kind is AfterTool:
            fields = self._end() | fields
        return self._heard((yield turn.session, self._step(kind, **fields)))

    def _step(self, kind: type[ToolStep], /, **fields: Any) -> ToolStep:
        return self.turn.session.step(kind, args=self.args, **self.about, **fields)

    def _heard(self, decision: Decision[Any]) -> Decision[Any]:
        """What the call does is worked out once, and again when its arguments change."""
        step, about = decision.step, self.about
        about["kind"], about["target"], about["safety"] = step.kind, step.target, step.safety
        return self.turn.take(decision)

    def _end(self) -> dict[str, Any]:
        """How it has ended, so far."""
        called = self.called
        output = error = None
        if called.is_error:
            error = called.text if called.replaced else called.error and describe(called.error)
        else:
            output = called.output if called.replaced else _readable(self.read(called.output))
        return {"outcome": called.outcome, "output": output, "is_error": called.is_error, "error": error}

    def judge(self) -> Work[None]:
        """Whether it may run, and with which arguments."""
        turn = self.turn
        decision: Decision[Any] | None = None
        if not turn.over:
            yield from self._fire(ToolRequested)
        if not turn.over:  # what is heard is looked up each time: hooks may be added while others think, or humans do
            decision = yield from self._fire(BeforeTool)
        yield from self._weigh(decision)

    def _weigh(self, decision: Decision[Any] | None) -> Work[None]:
        """What becomes of what was said before it."""
        turn, called = self.turn, self.called
        decision = decision if decision is not None and decision.said else None
        if decision is not None and decision.denied:
            self._refuse(f"Hook blocked tool '{self.about['tool']}': {decision.reason or 'denied'}")
        elif turn.over:
            self._refuse(STOPPED, "aborted")
        elif decision is not None and decision.step.result is not None:
            called.outcome, called.replaced = "answered", True
            called.output, called.is_error = thaw(decision.step.result), bool(decision.step.is_error)
        else:
            if decision is not None:
                self.args = thaw(decision.step.args)
                self.proposed = decision.control if decision.control in ("allow", "ask") else self.proposed
            if not isinstance(self.proposed, str):  # what the framework would do with the arguments as they are now
                propose = self.proposed
                self.proposed = yield lambda: propose(thaw(self.args))
            if self.proposed != "allow" or not _PERMISSIONS.isdisjoint(turn.heard):
                yield from self._permit(decision)

    def _permit(self, before: Decision[Any] | None) -> Work[None]:
        """The permission events, around what the framework itself would do."""
        decision = yield from self._fire(BeforePermission, proposed=self.proposed)
        granted, why = self.proposed == "allow", "refused"
        asks = _asks(before, decision)
        if decision is not None and (decision.denied or (decision.control == "allow" and asks is None)):
            granted, why = decision.control == "allow", decision.reason or "refused"
        elif not self.turn.over and (asks is not None or self.proposed == "ask"):
            asking = before if asks is None else asks
            approval = yield from self._seek(asking)
            granted, why = approval.granted, approval.explain(None if asking is None else asking.reason) or "refused"
        yield from self._fire(AfterPermission, granted=granted)
        if not granted and not self.turn.over:
            self._refuse(f"Permission denied for tool '{self.about['tool']}': {why}")
        elif self.turn.over:
            self._refuse(STOPPED, "aborted")

    def _seek(self, asking: Decision[Any] | None) -> Work[Approval]:
        if self.ask is None:
            return Approval("deny", None, "nobody is there to approve")
        ask = self.ask
        approval: Approval = yield lambda: ask(asking)
        return approval

    def _execute(self) -> Work[None]:
        called = self.called
        try:
            called.output = yield lambda: self.run(thaw(self.args))  # which are its own to change
        except self.through:
            raise
        except CancelledError:
            called.outcome, called.is_error = "aborted", True
            with suppress(FairleadError):
                yield from self._fire(AfterTool, error="the request was cancelled")
            raise
        except HookAborted:  # in a subagent; it fails this request, too
            raise
        except Exception as error:
            called.outcome, called.is_error, called.error = "error", True, error
            yield from self.turn.fire(Error, error=describe(error), where=f"tool {self.about['tool']}")

    def _take(self, decision: Decision[Any] | None) -> None:
        """What the model is given, after all that was said."""
        called = self.called
        if decision is not None and decision.denied:
            called.output = f"[withheld by {decision.hook}] {decision.reason or ''}".rstrip()
            called.replaced = called.is_error = True
        elif decision is not None and "output" in decision.changed:
            called.output, called.replaced = thaw(decision.step.output), True

    def _refuse(self, why: str, outcome: Literal["denied", "aborted"] = "denied") -> None:
        called = self.called
        called.outcome, called.output = outcome, why
        called.replaced = called.is_error = True


def _asks(before: Decision[Any] | None, decision: Decision[Any] | None) -> Decision[Any] | None:
    """The decision that leaves questions to the host: with those of both events, if both do. None if there are none.

    What a hook asks, another hook does not answer: not even one that grants the permission.
    """
    asking = [one for one in (before, decision) if one is not None and one.control == "ask"]
    if len(asking) == 2:
        return replace(asking[1], said=(*asking[0].approvals, *asking[1].said))
    return asking[0] if asking else None


def _readable(output: Any) -> Any:
    """A tool's output as a step takes it: a text, an object or a list of content blocks."""
    if output is None or isinstance(output, (str, dict)):
        return output
    if isinstance(output, (list, tuple)) and all(isinstance(block, dict) for block in output):
        return list(output)
    try:
        return msgspec.json.encode(output, enc_hook=str).decode()
    except Exception:
        return str(output)
