"""One tool call under hooks: judged, permitted, run and reported, in the loop and in every framework.

The host runs `perform`, or `judge` and `finish` where something else comes between them. Every call that was requested
has exactly one `after_tool` per attempt, also if it is denied, fails or is cancelled.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from ...approvals import Approval
from ...decision import Decision
from ...errors import ArgumentsChanged, FairleadError, HookAborted, describe
from ...frozen import thaw
from ...lifecycle import (
    AfterPermission,
    AfterTool,
    AfterToolBatch,
    BeforePermission,
    BeforeTool,
    Error,
    ToolRequested,
    ToolStep,
)
from .flow import Call, Dispatch, Flow, run_flow
from .messages import as_text

if TYPE_CHECKING:
    from .turn import Turn

RETRIES = 2
_ENDINGS = frozenset({AfterTool, AfterToolBatch, Error})
_PERMISSIONS = frozenset({BeforePermission, AfterPermission})
STOPPED = "not run: the turn was stopped"
CANCELLED = "the request was cancelled"

Ask: TypeAlias = Callable[[Decision[Any] | None], Any]
"""Puts a question to a human by the host's own means, and returns an `Approval`, or leaves by an exception.

Its argument is the decision before the question; `control` is "ask" if a hook asks, and not the host itself.
"""


class ToolError(FairleadError):
    """A tool's message to the model instead of a result. It is no failure, so `error` does not fire."""


class ToolResult(msgspec.Struct):
    """What came of a tool call."""

    outcome: Literal["ok", "error", "denied", "aborted", "answered"] = "ok"
    output: Any = None
    """The tool's own output; or, if `replaced`, what the model reads instead."""
    replaced: bool = False
    is_error: bool = False
    revised: bool = False
    """A hook at `after_tool` has changed or withheld what the model reads."""
    error: Exception | None = None
    """The exception that the tool raised. Unless it is `replaced`, the framework handles it in its own way."""

    @property
    def text(self) -> str:
        return as_text(self.output)

    @property
    def error_text(self) -> str | None:
        """The error as hooks and the model read it."""
        if not self.is_error:
            return None
        return self.text if self.replaced or self.error is None else describe(self.error)

    def result(self) -> Any:
        """Return the output, or what replaces it. Raises what the tool raised."""
        if self.error is not None and not self.replaced:
            raise self.error
        return self.output


class ToolCall:
    """A tool call on its way from the model's request to its result."""

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
        self.result = ToolResult()
        self.began: float | None = None
        """When the framework began to run the tool by itself. `after_tool` needs it for the duration."""
        self.missing: str | None = None
        """Why the call cannot run at all: there is no such tool."""
        self.failure_text: str | None = None
        """What the framework tells the model about the exception that the tool raised, where that is known."""
        self.refusal = "refused"
        """The reason if the host itself does not permit the call."""
        self.step: Any = None
        """The latest step of the call, as hooks left it."""
        self.requested = self.started = self.reported = self.finished = False

    def perform(self, left: Flow[None] | None = None) -> Flow[ToolResult]:
        """Judge the call and finish it. `left` is what `judge_fast` has left to judge."""
        yield from self.judge() if left is None else left
        return (yield from self.finish())

    def check(self, args: Any, by: str = "code between the hooks and the tool") -> None:
        """Raise `ArgumentsChanged` unless these are the judged arguments, if any were judged.

        A host calls it where the tool itself is. It compares with the step, which no other code can have changed.
        """
        if self.step is not None and args != self.step.args:
            raise ArgumentsChanged(self.about["tool"], self.about["call_id"], by)

    def is_judged(self, tool: str, args: Any) -> bool:
        """Whether hooks have judged this tool with these arguments in this call, or have nothing to judge."""
        return self.step is None or (tool == self.about["tool"] and args == self.step.args)

    # --- before it runs ---------------------------------------------------------------------

    async def judge_fast(self) -> Flow[None] | None:
        """Judge the call in an async host. Returns what is left to judge, if anything is.

        This is the short way of most calls: a hook judges them, but does not object.
        """
        turn = self.turn
        decision: Decision[Any] | None = None
        if turn.over or self.missing is not None or ToolRequested in turn.subscribed_steps:
            return self.judge()
        if BeforeTool in turn.subscribed_steps:
            decision = self._apply(await turn.session.dispatch(self._step(BeforeTool)))
        silent = decision is None or not decision.contributions
        if silent and not turn.over and self.proposed == "allow" and _PERMISSIONS.isdisjoint(turn.subscribed_steps):
            return None
        return self._apply_verdict(decision)

    async def judge_async(self) -> bool:
        """Judge the call in an async host. Returns whether it `runs_natively`."""
        if (left := await self.judge_fast()) is not None:
            await run_flow(left)
        return self.runs_natively

    @property
    def runs_natively(self) -> bool:
        """Whether the judged call may run and no hook subscribes to its end. The framework may run it by itself."""
        return self.result.outcome == "ok" and _ENDINGS.isdisjoint(self.turn.subscribed_steps)

    def judge(self) -> Flow[None]:
        """Decide whether the call may run, and with which arguments."""
        turn = self.turn
        decision: Decision[Any] | None = None
        if not turn.over:
            self.requested = True
            yield from self._fire(ToolRequested)
        if not turn.over and self.missing is not None:
            self._replace(self.missing, "error")
            return
        if not turn.over:  # subscriptions are looked up each time: a hook may be added while another one runs
            decision = yield from self._fire(BeforeTool)
        yield from self._apply_verdict(decision)

    def _apply_verdict(self, decision: Decision[Any] | None) -> Flow[None]:
        """Carry out the decision of `before_tool`."""
        turn, result = self.turn, self.result
        decision = decision if decision is not None and decision.contributions else None
        if decision is not None and decision.denied:
            self._replace(f"Hook blocked tool '{self.about['tool']}': {decision.reason or 'denied'}", "denied")
        elif turn.over:
            self._replace(STOPPED, "aborted")
        elif decision is not None and decision.step.result is not None:
            result.outcome, result.replaced = "answered", True
            result.output, result.is_error = readable(thaw(decision.step.result)), bool(decision.step.is_error)
        else:
            if decision is not None:
                self.args = thaw(decision.step.args)
                self.proposed = decision.control if decision.control in ("allow", "ask") else self.proposed
            if not isinstance(self.proposed, str):  # what the host would do with the final arguments
                propose = self.proposed
                self.proposed = yield Call(lambda: propose(thaw(self.args)))
            if self.proposed != "allow" or not _PERMISSIONS.isdisjoint(turn.subscribed_steps):
                yield from self._permit(decision)

    def _permit(self, before: Decision[Any] | None) -> Flow[None]:
        """Fire the permission events, around what the host itself would do."""
        decision = yield from self._fire(BeforePermission, proposed=self.proposed)
        denied = decision is not None and decision.denied
        if self.turn.over and not denied:  # no human need be asked
            self._replace(STOPPED, "aborted")
            return
        granted, why = self.proposed == "allow", self.refusal
        open_question = _open_question(before, decision)
        if decision is not None and (denied or (decision.control == "allow" and open_question is None)):
            granted, why = decision.control == "allow", decision.reason or "refused"
        elif open_question is not None or self.proposed == "ask":
            question = before if open_question is None else open_question
            approval = yield from self._ask_human(question)
            granted, why = approval.granted, _reason(approval, question)
        yield from self._fire(AfterPermission, granted=granted)
        if not granted and (denied or not self.turn.over):
            self._replace(f"Permission denied for tool '{self.about['tool']}': {why}", "denied")
        elif self.turn.over:
            self._replace(STOPPED, "aborted")

    def _ask_human(self, question: Decision[Any] | None) -> Flow[Approval]:
        if self.ask is None:
            return Approval("deny", None, "no approver is configured")
        ask = self.ask
        approval: Approval = yield Call(lambda: ask(question))
        return approval

    # --- from its run to its end ------------------------------------------------------------

    def finish(self) -> Flow[ToolResult]:
        """Run the judged call, if it may run, and report its end. A retry runs the same call again."""
        for attempt in count(1):
            began, executed = self.began or monotonic(), self.result.outcome == "ok"
            self.began = None
            if executed:
                yield from self._execute()
            took = monotonic() - began if executed else None
            self.reported = True
            decision = yield from self._fire(AfterTool, executed=executed, attempt=attempt, duration=took)
            if decision is None or decision.control != "retry" or attempt > RETRIES:
                self._take_output(decision)
                break
            self.result, self.reported = ToolResult(), False
        self.turn.record_result(self.about["tool"], self.about["call_id"], self.result)
        self.finished = True
        return self.result

    def _execute(self) -> Flow[None]:
        result = self.result
        self.started = True
        try:
            result.output = yield Call(lambda: self.run(thaw(self.args)))  # the tool may change its copy
        except self.through:
            raise
        except CancelledError:
            yield from self.abort(CANCELLED)
            raise
        except HookAborted:  # in a subagent; it fails this request, too
            raise
        except Exception as error:
            result.outcome, result.is_error, result.error = "error", True, error
            if not isinstance(error, ToolError):
                yield from self.turn.fire(Error, error=describe(error), where=f"tool {self.about['tool']}")

    def abort(self, why: str) -> Flow[None]:
        """Report the end of a call whose request ends first, unless it was reported before."""
        if self.reported or not (self.requested or self.started):
            return
        self.reported = True
        self._replace(why, "aborted")
        with suppress(FairleadError):
            yield from self._fire(AfterTool, executed=self.started)

    def skip(self) -> None:
        """Leave out a call that may run, because the turn was stopped before it did."""
        if self.result.outcome == "ok":
            self._replace(STOPPED, "aborted")

    def take_native_result(self, result: Callable[[], Any]) -> None:
        """Have `finish` report a call that the framework has run by itself, because a hook now subscribes to its end.

        `result` returns the output, or raises. A retry runs the tool again.
        """
        run, left = self.run, [result]
        self.run = lambda args: left.pop()() if left else run(args)

    def record_native_end(self, output: Any = None, error: Exception | None = None) -> ToolResult:
        """Record the end of a call that the framework has run by itself, for its batch. No hook subscribes to it."""
        result = self.result
        result.output = output
        if error is not None:
            result.outcome, result.is_error, result.error = "error", True, error
        self.turn.record_result(self.about["tool"], self.about["call_id"], result)
        return result

    def _take_output(self, decision: Decision[Any] | None) -> None:
        """Carry out the last decision of `after_tool`."""
        result = self.result
        if decision is not None and decision.denied:
            result.output = f"[withheld by {decision.hook}] {decision.reason or ''}".rstrip()
            result.replaced = result.is_error = result.revised = True
        elif decision is not None and "output" in decision.changed:
            result.output = thaw(decision.step.output)
            result.replaced = result.revised = True

    def _replace(self, why: str, outcome: Literal["denied", "aborted", "error"]) -> None:
        result = self.result
        result.outcome, result.output = outcome, why
        result.replaced = result.is_error = True

    # --- steps ------------------------------------------------------------------------------

    def _fire(self, kind: type[ToolStep], /, **fields: Any) -> Flow[Decision[Any] | None]:
        """Dispatch a step about this call and apply the decision. None if no hook subscribes to the event."""
        turn = self.turn
        if kind not in turn.subscribed_steps:
            return None
        if kind is AfterTool:
            fields = self._end() | fields
        return self._apply((yield Dispatch(turn.session, self._step(kind, **fields))))

    def _step(self, kind: type[ToolStep], /, **fields: Any) -> ToolStep:
        return self.turn.session.step(kind, args=self.args, **self.about, **fields)

    def _apply(self, decision: Decision[Any]) -> Decision[Any]:
        """Keep the kind, target and safety that were worked out, and apply the decision to the turn."""
        self.step = step = decision.step
        about = self.about
        about["kind"], about["target"], about["safety"] = step.kind, step.target, step.safety
        return self.turn.take(decision)

    def _end(self) -> dict[str, Any]:
        """Return how the call has ended so far, as fields of a step."""
        result = self.result
        error = output = result.error_text  # the model reads it, so hooks must be able to change it
        if not result.is_error:
            output = result.output if result.replaced else readable(self.read(result.output))
        elif not result.replaced and self.failure_text is not None:
            output = self.failure_text
        return {"outcome": result.outcome, "output": output, "is_error": result.is_error, "error": error}


def _open_question(before: Decision[Any] | None, decision: Decision[Any] | None) -> Decision[Any] | None:
    """Return the decision that leaves questions to the host, with those of both events if both do.

    A hook's question is not answered by another hook, not even by one that grants the permission.
    """
    both = [one for one in (before, decision) if one is not None and one.control == "ask"]
    if len(both) == 2:
        return replace(both[1], contributions=(*both[0].approvals, *both[1].contributions))
    return both[0] if both else None


def _reason(approval: Approval, question: Decision[Any] | None) -> str:
    """Return why a human, or the lack of one, refuses a call."""
    if approval.why is not None and (question is None or question.control != "ask"):
        return approval.why
    return approval.explain(None if question is None else question.reason) or "refused"


def readable(output: Any) -> Any:
    """Return a tool's output as hooks get it: a text, an object or a list of objects, or else the text of its JSON."""
    if output is None or isinstance(output, (str, dict)):
        return output
    if isinstance(output, (list, tuple)) and all(isinstance(block, dict) for block in output):
        return list(output)
    try:
        return msgspec.json.encode(output, enc_hook=str).decode()
    except Exception:
        return str(output)
