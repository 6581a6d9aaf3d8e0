"""A tool call of LangChain's or LangGraph's: through the hooks, and back into what a tool node takes."""

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

from ...approvals import Approval
from ...decision import Decision
from ...errors import FairleadError
from ...frozen import thaw
from ..model import as_text
from ..turn import Turn
from ..work import Work

inside: ContextVar[tuple[Turn, str] | None] = ContextVar("fairlead_langchain", default=None)
"""The tool call inside which we are: an agent that is run there is a subagent."""


class ToolFailed(FairleadError):
    """A tool that says in its message that it has failed."""

    def __init__(self, message: ToolMessage) -> None:
        super().__init__(as_text(message.content))
        self.message = message


@contextmanager
def inside_call(turn: Turn, request: Any) -> Iterator[None]:
    token = inside.set((turn, request.tool_call["name"]))
    try:
        yield
    finally:
        inside.reset(token)


def calling(handler: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(request: Any, turn: Turn) -> Any:
        with inside_call(turn, request):
            return checked(handler(request))

    return call


def calling_async(handler: Callable[[Any], Awaitable[Any]]) -> Callable[..., Any]:
    async def call(request: Any, turn: Turn) -> Any:
        with inside_call(turn, request):
            return checked(await handler(request))

    return call


def checked(output: Any) -> Any:
    if isinstance(output, ToolMessage) and output.status == "error":
        raise ToolFailed(output)
    return output


def through_hooks(turn: Turn, request: Any, call: Callable[..., Any], ask: Callable[[Any, Any], Approval]) -> Work[Any]:
    """One call, and what the tool node is given of it."""
    given = request.tool_call
    native: Any = None

    def read(output: Any) -> Any:
        nonlocal native
        native = output
        return content_of(output, given["id"])

    called = yield from turn.tool(
        given["name"], given["args"], given["id"],
        lambda args: call(request.override(tool_call={**given, "args": args}), turn),
        ask=lambda decision: ask(request, decision), through=(GraphBubbleUp,), read=read, **safety_of(request.tool),
    ).work()  # fmt: skip
    if isinstance(called.error, ToolFailed) and not called.replaced:
        return called.error.message
    if not called.replaced:
        return called.result()
    message = tool_message(request, called.output, is_error=called.is_error)
    if called.outcome != "ok" or called.is_error:
        return message
    return with_message(native, message) if content_of(native, given["id"]) is not None else message


def safety_of(tool: Any) -> dict[str, Any]:
    """What a tool says of itself: those of MCP servers carry such hints."""
    hints = getattr(tool, "metadata", None) or {}
    if hints.get("readOnlyHint") is True:
        return {"safety": "read_only"}
    return {"safety": "destructive"} if hints.get("destructiveHint") is True else {}


def ask_human(request: Any, decision: Decision[Any]) -> Approval:
    """By an interrupt, in the words of HumanInTheLoopMiddleware. The node runs again when it is answered."""
    if thread_of(request.runtime.config) is None:
        return Approval("deny", None, "nobody is there to approve: without a thread_id no run can be resumed")
    step = decision.step
    question = decision.reason or f"May {step.tool} be used?"
    reply = interrupt({
        "action_requests": [{"name": step.tool, "args": thaw(step.args), "description": question}],
        "review_configs": [{"action_name": step.tool, "allowed_decisions": ["approve", "reject"]}],
    })  # fmt: skip
    return approval_of(reply)


class Questions:
    """What humans were asked about one call, in order.

    LangGraph runs a call again when there is an answer, and tells its answers apart by their order only. So each
    question is put again, and is answered at once, up to the one whose answer is good for what hooks ask now.
    """

    def __init__(self) -> None:
        self.put: list[tuple[dict[str, Any], frozenset[Any]] | None] = []
        """The arguments and the questions that were shown; None where the tool itself has interrupted."""
        self._answers = 0  # those that this run of the call has had
        self._asking = False

    def ask(self, request: Any, decision: Decision[Any]) -> Approval:
        args, questions = thaw(decision.step.args), frozenset(decision.questions)
        while True:
            number = self._answers
            try:
                approval = ask_human(request, decision)
            except GraphBubbleUp:
                self.put[number:] = [(args, questions)]
                self._asking = True
                raise
            if number == len(self.put):  # it was asked in another process
                self.put.append((args, questions))
            shown, self._answers = self.put[number], number + 1
            if not approval.granted:
                return approval
            if shown is None:
                return Approval("deny", None, "the answer was to a question of the tool's own")
            if shown[0] != args:
                return Approval("deny", None, "its arguments are not those that were approved")
            if questions <= shown[1]:
                return approval

    def interrupted(self) -> None:
        """This run of the call has ended by an interrupt: a hook's, or the tool's own."""
        if not self._asking:
            self.put[self._answers :] = [None]
        self._asking, self._answers = False, 0


def is_alone(state: Any, key: str) -> bool:
    """Whether a tool node has only one call. LangGraph matches the answers of a node by their order, and its calls
    run at once: with several of them, the answer to one could be taken for that to another."""
    messages = state.get(key) if isinstance(state, dict) else getattr(state, key, state)
    if not isinstance(messages, list) or not messages:
        return False
    if isinstance(messages[-1], dict):  # calls by themselves
        return len(messages) == 1
    return len(next((one.tool_calls for one in reversed(messages) if isinstance(one, AIMessage)), ())) == 1


def approval_of(reply: Any) -> Approval:
    """Whatever is not a clear yes is a no."""
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
    """What the model reads of a tool's output."""
    if isinstance(output, ToolMessage):
        return output.content if output.tool_call_id == call_id else None
    if isinstance(output, Command):
        output = output.update.get("messages") if isinstance(output.update, dict) else None
    parts = output if isinstance(output, list) else ()
    return next((text for one in parts if (text := content_of(one, call_id)) is not None), None)


def with_message(output: Any, message: ToolMessage) -> Any:
    """A tool's output, whatever else it does, with another message."""
    if isinstance(output, ToolMessage):
        return message if output.tool_call_id == message.tool_call_id else output
    if isinstance(output, list):
        return [with_message(one, message) for one in output]
    if isinstance(output, Command) and isinstance(output.update, dict):
        messages = with_message(output.update.get("messages", []), message)
        return replace(output, update={**output.update, "messages": messages})
    return output


def handling(flag: Any) -> Any:
    """`handle_tool_errors`, but what hooks raise is not the tool's error, nor are those that the user left out.

    A ToolNode asks it about all that passes a wrapper, whatever types of errors it was given to handle.
    """
    if not flag:
        return flag
    if callable(flag) and not isinstance(flag, type):

        @wraps(flag)
        def told(error: Exception) -> Any:
            if isinstance(error, FairleadError):
                raise error
            return flag(error)

        return told
    kinds = (Exception,) if flag is True or isinstance(flag, str) else flag

    def handle(error: Exception) -> str:
        if isinstance(error, FairleadError) or not isinstance(error, kinds):
            raise error
        return flag if isinstance(flag, str) else f"Error: {error!r}\n Please fix your mistakes."

    handle.__annotations__["error"] = Exception  # which the ToolNode reads
    return handle


def thread_of(config: Mapping[str, Any]) -> str | None:
    thread = config.get("configurable", {}).get("thread_id")
    return None if thread is None else str(thread)
