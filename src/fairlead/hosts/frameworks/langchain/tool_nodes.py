"""Tool nodes of LangGraph graphs, whose calls go through the hooks. Hooks see nothing else of such a graph."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolNode

from ....approvals import Approval
from ....decision import Decision
from ..flow import Flow, run_flow, run_flow_sync
from ..framework import Framework
from ..turn import SESSIONS, Sessions, end_session
from .tool_calls import Boundary, GraphSessions, Questions, call_tool, error_handler, is_alone, thread_of, user_of

TOOL_NODE = Framework(
    name="langgraph",
    title="LangGraph's ToolNode",
    package="langgraph",
    versions=">=1.0.10,<=1.2.20",
    can={
        "tool_requested": "abort context",
        "before_tool": "deny ask allow abort args result is_error context",
        "before_permission": "deny ask allow abort resolved context",
        "after_permission": "abort context",
        "after_tool": "deny retry abort output context",
        "error": "",
    },
)


class GovernedNodes:
    """Makes tool nodes, and performs their calls."""

    def __init__(self, agents: Sessions, graphs: GraphSessions, about: Mapping[str, Any]) -> None:
        self.sessions = Sessions(agents.hooks, TOOL_NODE, asks=True, beside=agents, **about)
        self._user_id: str | None = about.get("user_id")
        self._session_id: str | None = about.get("session_id")
        self._graphs = graphs
        self._questions: OrderedDict[tuple[str | None, str | None], Questions] = OrderedDict()

    def make(self, tools: Sequence[Any], options: dict[str, Any]) -> ToolNode:
        """Make a node, with the options of `ToolNode`."""
        key = options.get("messages_key", "messages")
        wrap, awrap = options.pop("wrap_tool_call", None), options.pop("awrap_tool_call", None)

        def call(request: Any, handler: Callable[[Any], Any]) -> Any:
            inner = handler if wrap is None else lambda request: wrap(request, handler)
            return run_flow_sync(self._perform(request, inner, key))

        async def acall(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
            inner = handler if awrap is None else lambda request: awrap(request, handler)
            return await run_flow(self._perform(request, inner, key))

        if "handle_tool_errors" in options:
            options["handle_tool_errors"] = error_handler(options["handle_tool_errors"])
        own = {} if wrap is not None and awrap is None else {"awrap_tool_call": acall}
        return ToolNode(tools, wrap_tool_call=call, **own, **options)

    def _perform(self, request: Any, call: Callable[[Any], Any], key: str) -> Flow[Any]:
        """Perform a call of a tool node."""
        config = request.runtime.config
        thread = thread_of(config)
        pending, place = self._questions, (thread, request.tool_call["id"])
        questions = pending.setdefault(place, Questions()) if thread is not None else Questions()

        def ask(decision: Decision[Any]) -> Approval:
            if is_alone(request.state, key):
                return questions.ask(config, decision)
            return Approval("deny", None, "it needs approval, and must be called alone for that")

        session_id = thread or self._session_id or self._graphs.of_run(config)
        turn = self.sessions.turn(session_id, thread_id=thread)
        turn.session.user_id = self._user_id or user_of(config)
        for old in self.sessions.surplus():
            yield from end_session(old, "forgotten")
        try:
            output = yield from call_tool(Boundary(turn, ask), request, call)
        except GraphBubbleUp:
            questions.interrupted()
            while len(pending) > SESSIONS:
                pending.popitem(last=False)
            raise
        except BaseException:
            pending.pop(place, None)
            raise
        pending.pop(place, None)
        if turn.waiting and isinstance(output, ToolMessage):
            texts = [text.signed for text in turn.waiting]
            blocks = [{"type": "text", "text": text} for text in texts]
            content: Any = output.content
            content = "\n\n".join([content, *texts]) if isinstance(content, str) else [*content, *blocks]
            output = output.model_copy(update={"content": content})
        return output
