"""A tool call in LangChain or LangGraph: its flow through the hooks, and its result for the tool node."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary, ref

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command, interrupt

from ....approvals import Approval
from ....decision import Decision
from ....errors import FairleadError, HookAborted
from ....frozen import thaw
from ....session import new_id
from ..adapter import safety_from_hints, without
from ..flow import Call, Flow, run_flow, run_flow_sync
from ..messages import as_text
from ..tool_call import ToolCall
from ..turn import SESSIONS, Turn
from .mcp_tools import Interceptor, McpRequest, content_of_result, remote_call, server_of, with_innermost

INSIDE: ContextVar[tuple[Turn, ToolCall] | None] = ContextVar("fairlead_langchain", default=None)
"""The turn and the call that runs here: an agent that starts inside of it is a subagent."""

AskTool: TypeAlias = Callable[[Any], Approval]
"""Asks a human, by a `Decision`, about one call."""


class ToolFailed(FairleadError):
    """A tool's message, or the result of its server, says that it has failed."""

    def __init__(self, output: Any) -> None:
        super().__init__(as_text(output.content if isinstance(output, ToolMessage) else content_of_result(output)))
        self.output = output


@contextmanager
def inside_call(turn: Turn, call: ToolCall) -> Iterator[None]:
    token = INSIDE.set((turn, call))
    try:
        yield
    finally:
        INSIDE.reset(token)


def checked(output: Any) -> Any:
    is_error = output.status == "error" if isinstance(output, ToolMessage) else getattr(output, "isError", False)
    if is_error is True:
        raise ToolFailed(output)
    return output


# --- at the tool itself -----------------------------------------------------------------------------


class Boundary:
    """Judges the calls of one tool request where the tool itself is: after all middleware, whatever its order.

    Middleware gets a request whose tool is a copy. The copy judges each call with the arguments that reach it, and then
    calls the tool. So a call that other middleware edits, repeats or sends to another tool is judged as what it is.
    """

    def __init__(self, turn: Turn, ask: AskTool) -> None:
        self.turn, self.ask = turn, ask
        self.call_id: str | None = None
        self.requested: list[dict[str, Any]] = []
        """The arguments of the requests: those of the model, and those that other middleware has made of them."""
        self.calls = 0
        """How many calls have reached a tool."""
        self.aborted: HookAborted | None = None
        self._permits: set[ToolCall] = set()
        """The judged calls whose one request to an MCP server is still to come."""

    def request(self, request: ToolCallRequest) -> GovernedRequest:
        self.call_id = request.tool_call["id"]
        return GovernedRequest(request.tool_call, request.tool, request.state, request.runtime, self)

    def govern(self, tool: BaseTool) -> BaseTool:
        """Return a copy of a tool whose calls are judged first."""
        original: BaseTool = tool.__dict__.get(_ORIGINAL, tool)
        governed = copy(original)
        inner = with_innermost(original, self._at_server(original))
        for name in ("invoke", "run"):
            object.__setattr__(governed, name, self._judged(inner, name))
            object.__setattr__(governed, f"a{name}", self._judged_async(inner, f"a{name}"))
        object.__setattr__(governed, _ORIGINAL, original)
        return governed

    def _judged(self, tool: BaseTool, method: str) -> Callable[..., Any]:
        call = getattr(tool, method)

        def judged(tool_input: Any, *rest: Any, **options: Any) -> Any:
            def run(tool_input: Any, about: ToolCall) -> Any:
                with inside_call(self.turn, about):
                    return checked(call(tool_input, *rest, **options))

            return run_flow_sync(self._perform(tool, tool_input, options.get("tool_call_id"), run))

        return judged

    def _judged_async(self, tool: BaseTool, method: str) -> Callable[..., Any]:
        call = getattr(tool, method)

        async def judged(tool_input: Any, *rest: Any, **options: Any) -> Any:
            async def run(tool_input: Any, about: ToolCall) -> Any:
                self._permits.add(about)
                with inside_call(self.turn, about):
                    return checked(await call(tool_input, *rest, **options))

            return await run_flow(self._perform(tool, tool_input, options.get("tool_call_id"), run))

        return judged

    def _perform(self, tool: BaseTool, tool_input: Any, call_id: str | None, call: Callable[..., Any]) -> Flow[Any]:
        self.calls += 1
        is_call = isinstance(tool_input, dict) and tool_input.get("type") == "tool_call"
        args = (
            tool_input["args"]
            if is_call
            else tool_input
            if isinstance(tool_input, dict)
            else {_first(tool): tool_input}
        )
        hidden = self._injected(args, hidden_names(tool))
        injected = {name: value for name, value in args.items() if name in hidden}
        own = {name: value for name, value in args.items() if name not in hidden}
        tool_call = {"name": tool.name, "args": own, "id": (tool_input["id"] if is_call else call_id) or self.call_id}

        def run(args: dict[str, Any], about: ToolCall) -> Any:
            args = {**args, **injected}
            return call({**tool_input, "args": args} if is_call else args, about)

        try:
            return (yield from tool_flow(self.turn, tool_call, tool, run, self.ask))
        except HookAborted as error:
            self.aborted = error
            raise

    def _at_server(self, tool: BaseTool) -> Interceptor:
        """The innermost interceptor of an MCP tool: the judged request passes once, and any other is judged first."""

        async def judged(request: McpRequest, handler: Callable[[McpRequest], Awaitable[Any]]) -> Any:
            tool_call = remote_call(tool, request, self.call_id)
            within = INSIDE.get()
            if within is not None and within[1] in self._permits:
                self._permits.discard(within[1])
                if within[1].is_judged(tool_call["name"], request.args):
                    return await handler(request)

            async def send(args: dict[str, Any], again: ToolCall) -> Any:
                changed = copy(request)
                changed.args = args
                with inside_call(self.turn, again):
                    return checked(await handler(changed))

            try:
                hinted = tool if tool_call["name"] == tool.name else None
                about = {**server_of(tool), "remote": request.name}
                flow = tool_flow(self.turn, tool_call, hinted, send, self.ask, read=content_of_result, **about)
                return await run_flow(flow)
            except HookAborted as error:
                self.aborted = error
                raise

        return judged

    def _injected(self, args: dict[str, Any], hidden: frozenset[str]) -> set[str]:
        """The arguments that the framework has filled in. A model may name hidden ones, too, and those are judged."""
        absent = object()
        return {
            name for name in hidden
            if name in args and not any(one.get(name, absent) is args[name] for one in self.requested)
        }  # fmt: skip

    def late(self, request: ToolCallRequest, result: Callable[[], Any]) -> Flow[Any]:
        """Judge a result that did not come from the tool: other middleware made it, or there is no such tool."""

        def run(args: dict[str, Any], about: ToolCall) -> Any:
            return checked(result())

        with without(self.turn, "before_tool", "args"):
            return (yield from tool_flow(self.turn, request.tool_call, request.tool, run, self.ask))


@dataclass
class GovernedRequest(ToolCallRequest):  # type: ignore[misc]
    """A request whose tool is governed, whatever tool other middleware puts into it or into a copy of it."""

    boundary: Boundary | None = None

    def __post_init__(self) -> None:
        if self.boundary is not None:
            self.boundary.requested.append(self.tool_call["args"])
            if self.tool is not None:
                object.__setattr__(self, "tool", self.boundary.govern(self.tool))

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "boundary":
            object.__setattr__(self, name, value)
            return
        if name == "tool" and value is not None and (boundary := self.__dict__.get("boundary")) is not None:
            value = boundary.govern(value)
        super().__setattr__(name, value)


_ORIGINAL = "fairlead_original"
_hidden: dict[int, tuple[ref[BaseTool], frozenset[str]]] = {}


def hidden_names(tool: BaseTool) -> frozenset[str]:
    """The parameters of a tool that the framework fills in, and the model does not know. Kept for each tool."""
    known = _hidden.get(id(tool))
    if known is not None and known[0]() is tool:
        return known[1]
    names = frozenset(getattr(tool, "_injected_args_keys", ()))
    shown, schema = tool.tool_call_schema, tool.get_input_schema()
    if not isinstance(shown, dict) and hasattr(schema, "model_fields"):
        names |= schema.model_fields.keys() - shown.model_fields.keys()
    number = id(tool)
    _hidden[number] = ref(tool, lambda _: _hidden.pop(number, None)), names
    return names


def _first(tool: BaseTool) -> str:
    """The name of the only argument of a call that was made with a text."""
    return next((name for name in tool.args if name not in hidden_names(tool)), "input")


def tool_flow(
    turn: Turn, tool_call: dict[str, Any], tool: BaseTool | None, call: Callable[..., Any], ask: AskTool, **options: Any
) -> Flow[Any]:
    """Perform one call: `call` takes the arguments and the `ToolCall`. Gives the output for the tool node.

    `options` are those of `Turn.tool`.
    """
    native: Any = None

    def read(output: Any) -> Any:
        nonlocal native
        native = output
        return content_of(output, tool_call["id"])

    options = {"read": read, **safety_from_hints(getattr(tool, "metadata", None)), **server_of(tool), **options}
    about = turn.tool(
        tool_call["name"], tool_call["args"], tool_call["id"],
        lambda args: call(args, about), ask=ask, through=(GraphBubbleUp,), **options,
    )  # fmt: skip
    result = yield from about.perform()
    if isinstance(result.error, ToolFailed) and not result.replaced:
        return result.error.output
    if not result.replaced:
        return result.result()
    message = tool_message(tool_call, result.output, is_error=result.is_error)
    if result.outcome != "ok" or result.is_error:
        return message
    return with_message(native, message) if content_of(native, tool_call["id"]) is not None else message


def call_tool(boundary: Boundary, request: Any, call: Callable[[Any], Any]) -> Flow[Any]:
    """Have other middleware call the tool, whose boundary judges the call. What it does not see is judged late."""
    try:
        output = yield Call(lambda: call(boundary.request(request)))
    except GraphBubbleUp:
        raise
    except Exception as error:
        if boundary.calls:
            raise
        failed = error

        def fail() -> Any:
            raise failed

        return (yield from boundary.late(request, fail))
    if boundary.aborted is not None:  # other middleware has handled it like an error of the tool
        raise boundary.aborted
    if boundary.calls:
        return output
    return (yield from boundary.late(request, lambda: output))


async def check_mcp_call(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
    """An interceptor of `langchain-mcp-adapters` that refuses a call whose arguments are not the judged ones.

    Without it, hooks judge such a call again. Put it last:
    `MultiServerMCPClient(connections, tool_interceptors=[..., check_mcp_call])`.
    """
    within = INSIDE.get()
    if within is not None:
        within[1].check(request.args, "an MCP interceptor")
    return await handler(request)


def ask_human(config: Mapping[str, Any], decision: Decision[Any]) -> Approval:
    """A human's answer to an interrupt like that of HumanInTheLoopMiddleware. The node runs again with it."""
    if thread_of(config) is None:
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
        self._is_waiting = False

    def ask(self, config: Mapping[str, Any], decision: Decision[Any]) -> Approval:
        args, questions = thaw(decision.step.args), frozenset(decision.questions)
        while True:
            number = self._answers
            try:
                approval = ask_human(config, decision)
            except GraphBubbleUp:
                self.shown[number:] = [(args, questions)]
                self._is_waiting = True
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
        if not self._is_waiting:
            self.shown[self._answers :] = [None]
        self._is_waiting, self._answers = False, 0


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


def tool_message(call: dict[str, Any], output: Any, *, is_error: bool) -> ToolMessage:
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


def user_of(config: Mapping[str, Any]) -> str | None:
    user = config.get("configurable", {}).get("user_id")
    return None if user is None else str(user)


class GraphSessions:
    """The sessions of graphs that run without a thread_id: one for all agents and tool nodes of a run."""

    def __init__(self) -> None:
        self._by_control: OrderedDict[int, tuple[Any, str]] = OrderedDict()
        self._by_executor: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def of_run(self, config: Mapping[str, Any]) -> str | None:
        """The session of the outermost graph that runs. Before LangGraph 1.2 it is that of the innermost one.

        LangGraph says nowhere which run a node belongs to. But since 1.2 all graphs of a run share a `RunControl`, and
        before, the runner of each graph gives all tasks the same executor.
        """
        configurable = config.get("configurable", {})
        control = getattr(configurable.get("__pregel_runtime"), "control", None)
        if control is not None:
            session = self._by_control.setdefault(id(control), (control, new_id("session")))[1]
            self._by_control.move_to_end(id(control))
            while len(self._by_control) > SESSIONS:
                self._by_control.popitem(last=False)
            return session
        submit = getattr(configurable.get("__pregel_call"), "keywords", {}).get("submit")
        submit = submit() if isinstance(submit, ref) else submit
        executor = getattr(submit, "__self__", submit)
        return None if executor is None else self._by_executor.setdefault(executor, new_id("session"))

    def of_agent(self, config: Mapping[str, Any]) -> str | None:
        """The session of an agent that runs inside a graph. None if the agent is all that runs."""
        return self.of_run(config) if path_of(config) else None


def path_of(config: Mapping[str, Any]) -> str:
    """The names of the graphs around a node, without the ids of their runs."""
    namespace = config.get("configurable", {}).get("checkpoint_ns") or ""
    return "|".join(part.split(":")[0] for part in namespace.split("|")[:-1])
