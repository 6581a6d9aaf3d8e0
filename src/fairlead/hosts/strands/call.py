"""A tool call of an agent in Strands: judged before the tool runs, and told of after it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any

from strands.hooks import AfterToolCallEvent
from strands.interrupt import InterruptException

from ...approvals import Approval
from ...decision import Decision
from ...errors import FairleadError, HookAborted, Unenforceable
from ...frozen import thaw
from ..model import as_text
from ..tool_call import Called, ToolCall
from ..turn import end_session
from ..work import drive
from .messages import FORM, approval_of, output_of, result_of
from .streams import Interrupted, Stream, asks, close, go
from .versions import ToolResultEvent, has_middleware

if TYPE_CHECKING:
    from .run import Run

INSIDE: ContextVar[Run | None] = ContextVar("fairlead_strands", default=None)
"""Whose tool is at work: an agent that runs inside of it is a subagent."""


class ToolFailed(Exception):
    """A tool gave an error for its result."""


class Call:
    """A tool call. `execute` runs the tool, for a tool use; `interrupt` asks a human, and gives the answer."""

    name: str
    raw: Any
    whole: dict[str, Any]
    args: dict[str, Any]  # those that hooks are told of
    kept: dict[str, Any]  # and the others

    def __init__(
        self,
        run: Run,
        tool: Any,
        tool_use: Any,
        state: Any,
        execute: Callable[[Any], Any],
        interrupt: Callable[[str, Any], Any],
    ) -> None:
        self.run, self.tool, self.tool_use, self.state = run, tool, tool_use, state
        self.execute, self.interrupt = execute, interrupt
        self.last: Any = None  # the event with which the tool ended

    async def work(self) -> Stream:
        """All of it, as the events that Strands expects."""
        run, call_id = self.run, self.tool_use["toolUseId"]
        if getattr(self.tool, "tool_type", None) == FORM:
            async for event in self.execute(self.tool_use):
                yield event
            return
        if (agent := getattr(self.tool, "agent", None)) is not None:
            run.fairlead.adopt(agent)
        run.judged.append(call_id)
        call = self._told()
        free = False
        came: list[Called] = []
        try:
            if run.direct:  # no request begins that would do it
                for old in run.fairlead.runs.surplus():
                    await drive(end_session(old, "forgotten"))
            if await call.judged():
                free, last, result, call.began = True, None, None, monotonic()
                async for last in _inside(run, self._start(thaw(call.args))):
                    if asks(last):
                        run.judged.remove(call_id)
                    if isinstance(last, ToolResultEvent):
                        result = last
                    else:
                        yield last
                if call.free or last is None or asks(last):
                    if result is not None:
                        call.passed(result.tool_result, self._failure(result))
                        yield result
                    return
                free = False
                call.ran(partial(self._result, [result or last]))
            events = go(call.finish(), came, lambda event: isinstance(event, ToolResultEvent), self._result)
            async for event in _inside(run, events):
                yield event
        except Interrupted as question:
            run.judged.remove(call_id)
            yield question.event
            return
        except InterruptException:
            run.judged.remove(call_id)
            raise
        except FairleadError as error:
            if not free or isinstance(error, HookAborted):  # else the tool raised it: it has failed, and no more
                run.error = error
            raise
        called = came[0]
        replaced = called.replaced or self.last is None
        yield ToolResultEvent(_given(self.tool_use, called)) if replaced else self.last

    def _told(self) -> ToolCall:
        """The call as hooks are told of it."""
        self.name = getattr(self.tool, "tool_name", None) or self.tool_use["name"]  # a hook may have changed the tool
        raw = self.raw = self.tool_use["input"]  # a model may give a list, or a text, which some tools take
        self.whole = raw if isinstance(raw, dict) else {"input": raw} if raw else {}
        self.kept = {key: value for key, value in self.whole.items() if not _can_be_told(value)}
        self.args = {key: value for key, value in self.whole.items() if key not in self.kept}
        return self.run.turn.tool(
            self.name, self.args, self.tool_use["toolUseId"], self._start, read=output_of,
            ask=self._ask if "event_loop_cycle_id" in self.state else None,  # who calls it directly is not interrupted
            through=(InterruptException, Interrupted), **_about(self.tool),
        )  # fmt: skip

    def _start(self, args: dict[str, Any]) -> Any:
        """Run it with just these: by now, somebody may have put other arguments into the tool use that was judged."""
        whole = args | self.kept
        return self.execute({**self.tool_use, "input": self.raw if whole == self.whole else whole})

    def _result(self, events: list[Any]) -> Any:
        """What the tool gave. Raises what went wrong, in it or in a subagent."""
        self.last = _as_result(events[-1]) if events else None
        if (error := self._failure(self.last)) is not None:
            raise error
        return self.last.tool_result

    def _failure(self, last: Any) -> Exception | None:
        error: Exception | None = self.run.error or (
            ToolFailed("it gave no result") if last is None else last.exception
        )
        if error is None and last.tool_result.get("status") == "error":
            error = ToolFailed(as_text(output_of(last.tool_result)))
        return error

    def _ask(self, decision: Decision[Any] | None) -> Approval:
        """The answer to an interrupt. If it was to other questions than these, there is another interrupt."""
        asked = {} if decision is None else {"question": decision.reason, "hook": decision.hook}
        args = thaw(decision.step.args) if decision is not None else self.args
        reason = {**asked, "tool": self.name, "args": args}
        for number in count(1):
            name = f"fairlead:{asked.get('hook')}" + (f":{number}" if number > 1 else "")
            approval, shown = approval_of(self.interrupt(name, reason)), self._shown(name)
            if any(shown.get(key) != reason[key] for key in ("tool", "args")):
                return Approval("deny", None, "somebody was asked about this call, but with other arguments")
            if not approval.granted or all(shown.get(key) == text for key, text in asked.items()):
                return approval
        raise AssertionError  # it counts for ever

    def _shown(self, name: str) -> Mapping[str, Any]:
        """What a human was shown who has answered. Strands tells questions apart by call and name."""
        for one in self.run.agent._interrupt_state.interrupts.values():
            if one.name == name and f":{self.tool_use['toolUseId']}:" in one.id and isinstance(one.reason, Mapping):
                return one.reason
        return {}


async def _inside(run: Run, stream: Any) -> Stream:
    """What happens while a tool is at work. Whoever reads its events meanwhile is not inside of it."""
    events = aiter(stream)
    try:
        while True:
            inside = INSIDE.set(run)
            try:
                event = await anext(events)
            except StopAsyncIteration:
                return
            finally:
                INSIDE.reset(inside)
            yield event
    finally:
        await close(events)


async def end_call(run: Run, event: AfterToolCallEvent) -> None:
    """Somebody else has refused a call, or answered it, or there is no such tool: it has an end all the same."""
    use, status = event.tool_use, event.result.get("status")
    args = use["input"] if isinstance(use["input"], dict) else {}
    proposed: Any = "deny" if event.cancel_message else "allow"

    def given(args: dict[str, Any]) -> Any:
        if status == "error":
            raise ToolFailed(as_text(output_of(event.result)))
        return event.result

    try:
        if event.selected_tool is not None and status != "error" and not has_middleware(event.agent):
            raise Unenforceable(f"a hook that came later had {use['name']} run, past all hooks; use Strands 1.62")
        called = await drive(
            run.turn.tool(use["name"], args, use["toolUseId"], given, proposed=proposed, read=output_of).work()
        )
    except FairleadError as error:
        run.error = error
        raise
    if called.replaced and not event.cancel_message:
        event.result = _given(use, called)


def _as_result(event: Any) -> Any:
    return event if isinstance(event, ToolResultEvent) else ToolResultEvent(event)


def _given(tool_use: Any, called: Called) -> Any:
    """What the model is given for a call."""
    content = result_of(called.output if called.replaced else str(called.error))
    return {"toolUseId": tool_use["toolUseId"], "status": "error" if called.is_error else "success", "content": content}


def _about(tool: Any) -> dict[str, Any]:
    """What Strands knows of a tool."""
    if getattr(tool, "tool_type", None) == "agent":
        return {"kind": "agent"}
    if (remote := getattr(tool, "mcp_tool", None)) is None:
        return {}
    hints = getattr(remote, "annotations", None)
    if getattr(hints, "readOnlyHint", None):
        return {"kind": "mcp", "safety": "read_only"}
    return {"kind": "mcp", "safety": "destructive"} if getattr(hints, "destructiveHint", None) else {"kind": "mcp"}


def _can_be_told(value: Any) -> bool:
    """Who calls a tool directly may give it anything: an agent, a connection."""
    return value is None or isinstance(value, (str, int, float, list, dict, tuple, bytes))
