"""A tool call of an agent in Strands: hooks judge it before the tool runs, and see its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any

from strands.hooks import AfterToolCallEvent
from strands.interrupt import InterruptException

from ....approvals import Approval
from ....decision import Decision
from ....errors import FairleadError, HookAborted, Unenforceable
from ....frozen import thaw
from ..adapter import MCP_SERVER, safety_from_hints
from ..flow import run_flow
from ..messages import as_text
from ..tool_call import ToolCall, ToolResult
from ..turn import end_session
from .messages import approval_of, is_form, output_of, result_of
from .streams import Interrupted, Stream, Streamed, close, is_question, stream_flow
from .versions import ToolResultEvent, has_middleware

if TYPE_CHECKING:
    from .run import StrandsRun

INSIDE: ContextVar[StrandsRun | None] = ContextVar("fairlead_strands", default=None)
"""The run whose tool runs here: an agent that starts inside of it is a subagent."""


class ToolFailed(Exception):
    """A tool's result is an error."""


class StrandsToolCall:
    """A tool call. `execute` runs the tool for a tool use. `interrupt` asks a human, and gives the answer."""

    name: str
    raw: Any
    whole: dict[str, Any]
    args: dict[str, Any]  # those that hooks see
    kept: dict[str, Any]  # and those that they do not

    def __init__(
        self,
        run: StrandsRun,
        tool: Any,
        tool_use: Any,
        state: Any,
        execute: Callable[[Any], Any],
        interrupt: Callable[[str, Any], Any],
    ) -> None:
        self.run, self.tool, self.tool_use, self.state = run, tool, tool_use, state
        self.execute, self.interrupt = execute, interrupt
        self.last: Any = None  # the event with which the tool ended

    async def stream(self) -> Stream:
        """Perform the call. Gives the events that Strands expects."""
        run, call_id = self.run, self.tool_use["toolUseId"]
        if is_form(self.tool):
            async for event in self.execute(self.tool_use):
                yield event
            return
        if (agent := getattr(self.tool, "agent", None)) is not None:
            run.fairlead.adopt(agent)
        if call_id not in run.judged:  # else other middleware makes the call again
            run.judged.append(call_id)
        call = self._under_hooks()
        native = False
        results: list[ToolResult] = []
        try:
            if run.direct:  # else the request does it when it begins
                for old in run.fairlead.sessions.surplus():
                    await run_flow(end_session(old, "forgotten"))
            if await call.judge_async():
                native, last, result, call.began = True, None, None, monotonic()
                async for last in _inside(run, self._start(thaw(call.args))):
                    if is_question(last):
                        run.judged.remove(call_id)
                    if isinstance(last, ToolResultEvent):
                        result = last
                    else:
                        yield last
                if call.runs_natively or last is None or is_question(last):
                    if result is not None:
                        call.record_native_end(result.tool_result, self._failure(result))
                        yield result
                    return
                native = False
                call.take_native_result(partial(self._result, [result or last]))
            is_result = lambda event: isinstance(event, ToolResultEvent)  # noqa: E731
            async for event in _inside(run, stream_flow(call.finish(), results, is_result, self._result)):
                yield event
        except Interrupted as question:
            run.judged.remove(call_id)
            yield question.event
            return
        except InterruptException:
            run.judged.remove(call_id)
            raise
        except FairleadError as error:
            if not native or isinstance(error, HookAborted):  # else the tool raised it, and only the tool has failed
                run.error = error
            raise
        outcome = results[0]
        replaced = outcome.replaced or self.last is None
        yield ToolResultEvent(_tool_result(self.tool_use, outcome)) if replaced else self.last

    def _under_hooks(self) -> ToolCall:
        """The call as hooks see it."""
        self.name = getattr(self.tool, "tool_name", None) or self.tool_use["name"]  # a hook may have changed the tool
        raw = self.raw = self.tool_use["input"]  # a model may give a list, or a text, which some tools take
        self.whole = raw if isinstance(raw, dict) else {"input": raw} if raw else {}
        self.kept = {key: value for key, value in self.whole.items() if not _is_plain(value)}
        self.args = {key: value for key, value in self.whole.items() if key not in self.kept}
        return self.run.turn.tool(
            self.name, self.args, self.tool_use["toolUseId"], lambda args: Streamed(self._start(args)), read=output_of,
            ask=self._ask if "event_loop_cycle_id" in self.state else None,  # a direct call cannot be interrupted
            through=(InterruptException, Interrupted), **_about(self.tool),
        )  # fmt: skip

    def _start(self, args: dict[str, Any]) -> Any:
        """Run the tool with exactly these: other code may have changed the tool use after it was judged."""
        whole = args | self.kept
        return self.execute({**self.tool_use, "input": self.raw if whole == self.whole else whole})

    def _result(self, events: list[Any]) -> Any:
        """The tool's result. Raises what went wrong, in the tool or in a subagent."""
        self.last = _as_result(events[-1]) if events else None
        if (error := self._failure(self.last)) is not None:
            raise error
        return self.last.tool_result

    def _failure(self, last: Any) -> Exception | None:
        error: Exception | None = self.run.error or (
            ToolFailed("the tool gave no result") if last is None else last.exception
        )
        if error is None and last.tool_result.get("status") == "error":
            error = ToolFailed(as_text(output_of(last.tool_result)))
        return error

    def _ask(self, decision: Decision[Any] | None) -> Approval:
        """A human's answer to an interrupt. If it answers other questions than these, there is another interrupt."""
        question = {} if decision is None else {"question": decision.reason, "hook": decision.hook}
        args = thaw(decision.step.args) if decision is not None else self.args
        reason = {**question, "tool": self.name, "args": args}
        for number in count(1):
            name = f"fairlead:{question.get('hook')}" + (f":{number}" if number > 1 else "")
            approval, shown = approval_of(self.interrupt(name, reason)), self._shown(name)
            if any(shown.get(key) != reason[key] for key in ("tool", "args")):
                return Approval("deny", None, "a human was asked about this call, but with other arguments")
            if not approval.granted or all(shown.get(key) == text for key, text in question.items()):
                return approval
        raise AssertionError  # `count` has no end

    def _shown(self, name: str) -> Mapping[str, Any]:
        """What the human was shown. Strands tells questions apart by call and name."""
        for one in self.run.agent._interrupt_state.interrupts.values():
            if one.name == name and f":{self.tool_use['toolUseId']}:" in one.id and isinstance(one.reason, Mapping):
                return one.reason
        return {}


async def _inside(run: StrandsRun, stream: Any) -> Stream:
    """Iterate with `INSIDE` set. It is not set in the code that reads the events."""
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


async def end_call(run: StrandsRun, event: AfterToolCallEvent) -> None:
    """Report a call that ended without us: other code refused or answered it, or there is no such tool."""
    use, status = event.tool_use, event.result.get("status")
    args = use["input"] if isinstance(use["input"], dict) else {}
    proposed: Any = "deny" if event.cancel_message else "allow"

    def result(args: dict[str, Any]) -> Any:
        if status == "error":
            raise ToolFailed(as_text(output_of(event.result)))
        return event.result

    try:
        if event.selected_tool is not None and status != "error" and not has_middleware(event.agent):
            raise Unenforceable(f"another hook ran {use['name']}, bypassing all hooks; use Strands 1.62")
        outcome = await run_flow(
            run.turn.tool(use["name"], args, use["toolUseId"], result, proposed=proposed, read=output_of).perform()
        )
    except FairleadError as error:
        run.error = error
        raise
    if outcome.replaced and (outcome.revised or not event.cancel_message):
        event.result = _tool_result(use, outcome)


def _as_result(event: Any) -> Any:
    return event if isinstance(event, ToolResultEvent) else ToolResultEvent(event)


def _tool_result(tool_use: Any, outcome: ToolResult) -> Any:
    """The result of a call, as Strands sends it to the model."""
    content = result_of(outcome.output if outcome.replaced else str(outcome.error))
    status = "error" if outcome.is_error else "success"
    return {"toolUseId": tool_use["toolUseId"], "status": status, "content": content}


def _about(tool: Any) -> dict[str, Any]:
    """What Strands knows of a tool."""
    if getattr(tool, "tool_type", None) == "agent":
        return {"kind": "agent"}
    if (remote := getattr(tool, "mcp_tool", None)) is None:
        return {}
    server = getattr(getattr(tool, "mcp_client", None), "_prefix", None) or MCP_SERVER
    return {"server": server, "remote": remote.name, **safety_from_hints(getattr(remote, "annotations", None))}


def _is_plain(value: Any) -> bool:
    """Whether hooks can read it. A program may call a tool with anything: an agent, a connection."""
    return value is None or isinstance(value, (str, int, float, list, dict, tuple, bytes))
