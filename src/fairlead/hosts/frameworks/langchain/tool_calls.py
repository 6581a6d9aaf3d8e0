"""A tool call in LangChain or LangGraph: its flow through the hooks, and its result for the tool node."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import wraps
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.types import Command, interrupt

from ....approvals import Approval
from ....decision import Decision
from ....errors import FairleadError
from ....frozen import thaw
from ..adapter import safety_from_hints
from ..flow import Flow
from ..messages import as_text
from ..turn import Turn

INSIDE: ContextVar[tuple[Turn, str] | None] = ContextVar("fairlead_langchain", default=None)
"""The turn and the tool that runs here: an agent that starts inside of it is a subagent."""


class ToolFailed(FairleadError):
    """A tool's message says that it has failed."""

    def __init__(self, message: ToolMessage) -> None:
        super().__init__(as_text(message.content))
        self.message = message


@contextmanager
def inside_call(turn: Turn, request: Any) -> Iterator[None]:
    token = INSIDE.set((turn, request.tool_call["name"]))
    try:
        yield
    finally:
        INSIDE.reset(token)


def tool_runner(handler: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(request: Any, turn: Turn) -> Any:
        with inside_call(turn, request):
            return checked(handler(request))

    return call


def tool_runner_async(handler: Callable[[Any], Awaitable[Any]]) -> Callable[..., Any]:
    async def call(request: Any, turn: Turn) -> Any:
        with inside_call(turn, request):
            return checked(await handler(request))

    return call


def checked(output: Any) -> Any:
    if isinstance(output, ToolMessage) and output.status == "error":
        raise ToolFailed(output)
    return output


def tool_flow(turn: Turn, request: Any, call: Callable[..., Any], ask: Callable[[Any, Any], Approval]) -> Flow[Any]:
    """Perform one call. Gives the output for the tool node."""
    tool_call = request.tool_call
    native: Any = None

    def read(output: Any) -> Any:
        nonlocal native
        native = output
        return content_of(output, tool_call["id"])

    result = yield from turn.tool(
        tool_call["name"], tool_call["args"], tool_call["id"],
        lambda args: call(request.override(tool_call={**tool_call, "args": args}), turn),
        ask=lambda decision: ask(request, decision), through=(GraphBubbleUp,), read=read,
        **safety_from_hints(getattr(request.tool, "metadata", None)),
    ).perform()  # fmt: skip
    if isinstance(result.error, ToolFailed) and not result.replaced:
        return result.error.message
    if not result.replaced:
        return result.result()
    message = tool_message(request, result.output, is_error=result.is_error)
    if result.outcome != "ok" or result.is_error:
        return message
    return with_message(native, message) if content_of(native, tool_call["id"]) is not None else message


def ask_human(request: Any, decision: Decision[Any]) -> Approval:
    """A human's answer to an interrupt like that of HumanInTheLoopMiddleware. The node runs again with it."""
    if thread_of(request.runtime.config) is None:
        return Approval("deny", None, "no human can approve it: without a thread_id no run can be resumed")
    step = decision.step
    question = decision.reason or f"May {step.tool} be used?"
    reply = interrupt({
        "action_requests": [{"name": step.tool, "args": thaw(step.args), "description": question}],
        "review_configs": [{"action_name": step.tool, "allowed_decisions": ["approve", "reject"]}],
    })  # fmt: skip
    return approval_of(reply)


class Questions:
    """The questions that humans were asked about one call, in order.

    LangGraph runs a call again when there is an answer, and tells answers apart by their order only. So each question
    is asked again, and is answered at once, up to the one whose answer covers what hooks ask now.
    """

    def __init__(self) -> None:
        self.shown: list[tuple[dict[str, Any], frozenset[Any]] | None] = []
        """The arguments and the questions that humans saw. None where the tool itself has interrupted."""
        self._answers = 0  # that this run of the call has got
        self._asking = False

    def ask(self, request: Any, decision: Decision[Any]) -> Approval:
        args, questions = thaw(decision.step.args), frozenset(decision.questions)
        while True:
            number = self._answers
            try:
                approval = ask_human(request, decision)
            except GraphBubbleUp:
                self.shown[number:] = [(args, questions)]
                self._asking = True
                raise
            if number == len(self.shown):  # another process has asked
                self.shown.append((args, questions))
            shown, self._answers = self.shown[number], number + 1
            if not approval.granted:
                return approval
            if shown is None:
                return Approval("deny", None, "the answer was to a question of the tool itself")
            if shown[0] != args:
                return Approval("deny", None, "its arguments are not those that were approved")
            if questions <= shown[1]:
                return approval

    def interrupted(self) -> None:
        """Note that an interrupt has ended this run of the call: a hook's, or the tool's own."""
        if not self._asking:
            self.shown[self._answers :] = [None]
        self._asking, self._answers = False, 0


def is_alone(state: Any, key: str) -> bool:
    """Whether a tool node has only one call.

    LangGraph matches the answers of a node by their order, and the calls run at once. With several calls, the answer
    to one could be taken for that to another.
    """
    messages = state.get(key) if isinstance(state, dict) else getattr(state, key, state)
    if not isinstance(messages, list) or not messages:
        return False
    if isinstance(messages[-1], dict):  # calls by themselves
        return len(messages) == 1
    return len(next((one.tool_calls for one in reversed(messages) if isinstance(one, AIMessage)), ())) == 1


def approval_of(reply: Any) -> Approval:
    """A human's answer. Only a clear yes lets the call run."""
    decisions = reply.get("decisions") if isinstance(reply, dict) else None
    first = decisions[0] if isinstance(decisions, list) and len(decisions) == 1 else reply
    if first is True or (isinstance(first, dict) and first.get("type") == "approve"):
        return Approval("allow")
    why = first.get("message") if isinstance(first, dict) else None
    return Approval("deny", None, why if isinstance(why, str) else "refused")


def tool_message(request: Any, output: Any, *, is_error: bool) -> ToolMessage:
    call = request.tool_call
    content = output if isinstance(output, list) else as_text(output)
    status = "error" if is_error else "success"
    return ToolMessage(content, tool_call_id=call["id"], name=call["name"], status=status)


def commands_in(output: Any) -> list[Command]:
    return [one for one in (output if isinstance(output, list) else [output]) if isinstance(one, Command)]


def content_of(output: Any, call_id: str | None) -> Any:
    """The part of a tool's output that the model reads."""
    if isinstance(output, ToolMessage):
        return output.content if output.tool_call_id == call_id else None
    if isinstance(output, Command):
        output = output.update.get("messages") if isinstance(output.update, dict) else None
    parts = output if isinstance(output, list) else ()
    return next((text for one in parts if (text := content_of(one, call_id)) is not None), None)


def with_message(output: Any, message: ToolMessage) -> Any:
    """A tool's output with another message."""
    if isinstance(output, ToolMessage):
        return message if output.tool_call_id == message.tool_call_id else output
    if isinstance(output, list):
        return [with_message(one, message) for one in output]
    if isinstance(output, Command) and isinstance(output.update, dict):
        messages = with_message(output.update.get("messages", []), message)
        return replace(output, update={**output.update, "messages": messages})
    return output


def error_handler(flag: Any) -> Any:
    """A `handle_tool_errors` that handles neither what hooks raise nor errors of other types.

    A ToolNode passes it every error that leaves a wrapper, whatever types it is to handle.
    """
    if not flag:
        return flag
    if callable(flag) and not isinstance(flag, type):

        @wraps(flag)
        def checked_flag(error: Exception) -> Any:
            if isinstance(error, FairleadError):
                raise error
            return flag(error)

        return checked_flag
    kinds = (Exception,) if flag is True or isinstance(flag, str) else flag

    def handle(error: Exception) -> str:
        if isinstance(error, FairleadError) or not isinstance(error, kinds):
            raise error
        return flag if isinstance(flag, str) else f"Error: {error!r}\n Please fix your mistakes."

    handle.__annotations__["error"] = Exception  # the ToolNode reads it
    return handle


def thread_of(config: Mapping[str, Any]) -> str | None:
    thread = config.get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)
