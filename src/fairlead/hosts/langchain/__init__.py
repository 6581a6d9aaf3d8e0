"""LangChain's `create_agent`, and the tool nodes of plain LangGraph graphs.

An agent is a graph here: its nodes know of each other only what stands in the state, and what a node has in its
context is gone in the next. So a turn is found by a key, which is kept in a private field of the state. The end of a
turn is judged inside the request that brought the final answer, before the graph, a stream or a checkpoint has it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse, hook_config
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from ...approvals import Approval
from ...decision import Decision
from ...errors import FairleadError, UnknownName
from ...lifecycle import BeforeModel
from ...registry import Hooks
from ...session import new_id
from ..framework import WHOLE, Framework
from ..model import Message, as_text
from ..turn import SESSIONS, Asked, Asking, Begun, Runs, Turn, end_session, rewritten
from ..work import Closes, Work, drive, drive_sync
from .messages import (
    OURS,
    answer_of,
    human_message,
    is_ours,
    joined,
    model_name,
    native_message,
    plain_message,
    reply_of,
    with_text,
)
from .tools import (
    Questions,
    calling,
    calling_async,
    commands_in,
    handling,
    inside,
    is_alone,
    thread_of,
    through_hooks,
    tool_message,
)

FRAMEWORK = Framework(
    name="langchain",
    title="LangChain",
    package="langchain",
    versions=">=1.1,<2",
    can=WHOLE,
    notes=(
        "A tool with return_direct ends the turn after the graph has its output: a stream shows it unjudged.",
        "Tools that the provider runs are not seen, nor is the work of SummarizationMiddleware.",
        "A run that fails in another middleware's node is told of late: when Fairlead is closed.",
    ),
)
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

FIELD = "fairlead_turn"
_REFUSED = {"fairlead": "refused"}


class _State(AgentState):  # type: ignore[type-arg]
    fairlead_turn: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type]


class _Run:
    """A turn, as its graph knows it."""

    def __init__(self, key: str, turn: Turn, place: tuple[str | None, str]) -> None:
        self.key, self.turn, self.place = key, turn, place
        self.refused: str | None = None  # why a subagent may not start
        self.user_message = ""
        self.prompt: list[str | None] | None = None  # the system prompt, once hooks have seen it, if they changed it
        self.calls: set[object] = set()  # those at work
        self.error: BaseException | None = None  # what one of them raised
        self.paused: set[str | None] = set()  # the calls that were interrupted
        self.handed: tuple[str | None, str] | None = None  # the call that handed the work to another agent
        self.human: str | None = None  # the id of the user's message
        self.asked: dict[str | None, Questions] = {}  # by call


class _Left(FairleadError):
    """A request that nobody went on with."""


class Fairlead(Closes, AgentMiddleware):  # type: ignore[type-arg]
    """Hooks for an agent: `create_agent(model, tools, middleware=[Fairlead(hooks)])`. Put it first.

    Hooks for a graph of one's own: `builder.add_node("tools", Fairlead(hooks).tool_node(tools))`.

    `models` names what a hook may switch to. The session is the config's thread_id; `aclose`, `close` or
    `async with` end all sessions. One Fairlead serves any number of agents and runs at once.
    """

    state_schema = _State

    def __init__(
        self,
        hooks: Hooks | None = None,
        *,
        models: Mapping[str, Any] | None = None,
        session_id: str | None = None,
        **about: Any,
    ) -> None:
        super().__init__()
        self.tools = ()
        self._runs = Runs(hooks, FRAMEWORK, asks=True, session_id=session_id, **about)
        self._nodes = Runs(self._runs.hooks, TOOL_NODE, asks=True, session_id=session_id, **about)
        self._models = dict(models or {})
        self._turns: dict[str, _Run] = {}
        self._beginning: dict[str, Future[_Run]] = {}  # in the node of one call, while others wait
        self._handed: dict[tuple[str | None, str], _Run] = {}  # by the user's message, and the call: ids of calls recur
        self._asked: OrderedDict[tuple[str | None, str | None], Questions] = OrderedDict()  # in nodes

    # --- what LangChain calls ---------------------------------------------------------------

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return drive_sync(self._start(state))

    @hook_config(can_jump_to=["end"])
    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return await drive(self._start(state))

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return drive_sync(self._left(state))

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return await drive(self._left(state))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        def ask(request: Any) -> Any:
            with self._stream():
                return handler(request)

        return drive_sync(self._model(request, ask))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        async def ask(request: Any) -> Any:
            with self._stream():
                return await handler(request)

        return await drive(self._model(request, ask))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return drive_sync(self._tool(request, calling(handler)))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await drive(self._tool(request, calling_async(handler)))

    def tool_node(self, tools: Sequence[Any], **options: Any) -> ToolNode:
        """A `ToolNode(tools, **options)` whose calls go through the hooks, for a graph of one's own."""

        key = options.get("messages_key", "messages")

        def call(request: Any, handler: Callable[[Any], Any]) -> Any:
            return drive_sync(self._node_tool(request, calling(handler), key))

        async def acall(request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
            return await drive(self._node_tool(request, calling_async(handler), key))

        if "handle_tool_errors" in options:
            options["handle_tool_errors"] = handling(options["handle_tool_errors"])
        return ToolNode(tools, wrap_tool_call=call, awrap_tool_call=acall, **options)

    def _closing(self) -> Work[None]:
        while self._turns:
            yield from self._failed(next(reversed(self._turns.values())), _Left("it was left before its end"))
        yield from self._runs.closing()
        yield from self._nodes.closing()

    # --- a turn -----------------------------------------------------------------------------

    def _start(self, state: dict[str, Any]) -> Work[dict[str, Any]]:
        run = self._taken_over(state["messages"])
        if run is not None:
            return {FIELD: run.key}
        run, changes = yield from self._begin(state["messages"], new_id("turn"), fresh=True)
        if run.refused is None and not run.turn.over:
            return {FIELD: run.key, "messages": changes}
        text = run.refused
        if text is None:
            try:
                text, _ = yield from self._finish(run, None)
            except BaseException as error:
                yield from self._failed(run, error)
                raise
        refused = bool(changes) and all(isinstance(one, RemoveMessage) for one in changes)
        said = AIMessage(text or "", id=new_id(OURS), response_metadata=_REFUSED if refused else {})
        return {FIELD: run.key, "messages": [*changes, said], "jump_to": "end"}

    def _begin(
        self, messages: Sequence[AnyMessage], key: str, fresh: bool = False
    ) -> Work[tuple[_Run, list[AnyMessage]]]:
        """A new turn, and what becomes of the user's messages."""
        asked = _asked(messages, fresh)
        said = given = joined([one.content for one in asked])
        run = yield from self._open(key, as_text(given))
        run.human = asked[-1].id if asked else None
        if run.refused is not None:
            return run, []
        if run.user_message != as_text(given):
            given = run.user_message
        try:
            goes_on = not asked or messages[-1] is not asked[-1]
            begun = yield from self._begin_turn(run, given, "continuation" if goes_on else "user", len(messages))
        except BaseException as error:
            yield from self._failed(run, error)
            raise
        removed: list[AnyMessage] = [RemoveMessage(id=one.id) for one in asked if one.id]
        if run.turn.session.turn_id is None:  # it was refused, and nothing of it is kept
            return run, removed
        if not asked or begun.input == said:
            return run, []
        return run, [*removed[:-1], asked[-1].model_copy(update={"content": begun.input})]

    def _open(self, key: str, text: str) -> Work[_Run]:
        """The turn of an agent, or of a subagent, if it is run inside a tool call."""
        config, within = get_config(), inside.get()
        thread, name = thread_of(config), config.get("metadata", {}).get("lc_agent_name")
        runs = within[0].runs if within is not None else None
        if within is not None and runs and runs.hooks is self._runs.hooks and runs.framework is FRAMEWORK:
            parent, tool = within
            agent = parent.session.agent
            name = name if name is not None and (agent is None or name != agent.name) else tool
            child, message, refused = yield from parent.helper(name, text)
            run = _Run(key, child, (None, ""))
            run.refused, run.user_message = refused, message or ""
            if refused is not None:
                return run
        else:
            place = (thread, _path(config["configurable"].get("checkpoint_ns") or ""))
            for old in [old for old in list(self._turns.values()) if old.paused and thread and old.place == place]:
                yield from self._failed(old, _Left("another request came instead of an answer"))
            for old in [old for old in list(self._handed.values()) if thread and old.place == place]:
                yield from self._failed(old, _Left("the work was handed over, and no agent went on with it"))
            run = _Run(key, self._runs.turn(thread, agent=name, thread_id=thread), place)
            run.user_message = text
        self._turns[key] = run
        while len(self._turns) > SESSIONS:
            yield from self._failed(next(iter(self._turns.values())), _Left("it was left before its end"))
        return run

    def _begin_turn(self, run: _Run, given: Any, source: str, committed: int) -> Work[Begun]:
        run.prompt = None
        begun = yield from run.turn.begin(given, source=source, committed_len=committed, prompted=False)
        run.user_message = as_text(begun.input)
        return begun

    def _taken_over(self, messages: Sequence[AnyMessage]) -> _Run | None:
        """The turn that another agent has handed over, with these messages. What the user says next is another one."""
        if not self._handed:
            return None
        human = next((one.id for one in reversed(_asked(messages, fresh=True))), None)
        ids = [(human, one.tool_call_id) for one in messages if isinstance(one, ToolMessage)]
        return next((self._handed.pop(call) for call in reversed(ids) if call in self._handed), None)

    def _of(self, state: Any, messages: Sequence[AnyMessage]) -> Work[tuple[_Run, list[AnyMessage]]]:
        """The turn that a node belongs to. It begins here if it was interrupted in a process that is no more,
        or if another middleware has the agent go on after its end."""
        key = state.get(FIELD) if isinstance(state, dict) else None
        run = self._turns.get(key) if key is not None else None
        if run is not None and key not in self._beginning:
            return run, []
        if messages and isinstance(messages[-1], AIMessage) and is_ours(messages[-1]) and not messages[-1].tool_calls:
            raise FairleadError(f"a hook has ended the turn, and the agent will not end: {messages[-1].text}")
        if key is None:
            human = next((one.id for one in reversed(messages) if isinstance(one, HumanMessage)), None)
            found = yield from self._begin(messages, human or new_id("turn"))
            return found
        found = yield from self._begin_once(messages, key)
        return found

    def _begin_once(self, messages: Sequence[AnyMessage], key: str) -> Work[tuple[_Run, list[AnyMessage]]]:
        """Several calls may be resumed at once, in threads or in tasks: one begins the turn, the others wait for it."""
        mine: Future[_Run] = Future()
        mine.set_running_or_notify_cancel()  # whoever waits and is cancelled does not cancel it for the others
        begun = self._beginning.setdefault(key, mine)
        if begun is not mine:

            async def wait() -> _Run:
                return await asyncio.wrap_future(begun)

            run: _Run = yield wait
            return run, []
        try:
            known = self._turns.get(key)  # it has begun just now
            found = (known, []) if known is not None else (yield from self._begin(messages, key))
        except BaseException as error:
            left = _Left("the call with which it was to begin was cancelled")
            mine.set_exception(error if isinstance(error, Exception) else left)
            raise
        else:
            mine.set_result(found[0])
            return found
        finally:
            del self._beginning[key]

    def _finish(self, run: _Run, text: str | None, voluntary: bool = True) -> Work[tuple[str | None, Any]]:
        """The turn ends: what is shown of it, and what the model is told instead, if it is to go on."""
        while True:
            turn = run.turn
            more: Any = yield from turn.ending(voluntary=voluntary)
            if more is not None:
                return text, more
            shown = (yield from turn.end(text)).text
            self._forget(run)
            more = (yield from turn.parent.helper_stops(turn)) if turn.parent is not None else None
            if more is None:
                return shown, None
            run.turn = turn.again()
            self._turns[run.key] = run
            begun = yield from self._begin_turn(run, more, "continuation", 1)
            if not run.turn.over:
                return shown, begun.input
            text = None

    def _left(self, state: dict[str, Any]) -> Work[dict[str, Any] | None]:
        """The graph ends. Most turns have ended before; not so those that another middleware or a tool ends."""
        run = self._turns.get(state.get(FIELD, ""))
        if run is None or run.handed is not None:
            return None
        last = state["messages"][-1] if state["messages"] else None
        text = as_text(last.content) if isinstance(last, (AIMessage, ToolMessage)) else None
        try:
            shown, more = yield from self._finish(run, text, voluntary=False)
        except BaseException as error:
            yield from self._failed(run, error)
            raise
        if more is not None:
            return {"messages": [human_message(more)], "jump_to": "model"}
        if shown == text:
            return None
        said: AnyMessage = AIMessage(shown or "", id=new_id(OURS))
        if isinstance(last, ToolMessage):
            said = last.model_copy(update={"content": shown or "", "artifact": None})
        elif isinstance(last, AIMessage):
            said = with_text(last, shown or "")
        return {"messages": [said], **({"structured_response": None} if "structured_response" in state else {})}

    def _failed(self, run: _Run, error: BaseException) -> Work[None]:
        if self._forget(run) and not isinstance(error, GeneratorExit):
            for child in [one for one in list(self._turns.values()) if one.turn.parent is run.turn]:
                yield from self._failed(child, error)
            yield from run.turn.failed(error)
            if run.turn.parent is not None:
                with suppress(FairleadError):
                    yield from run.turn.parent.helper_stops(run.turn)

    def _forget(self, run: _Run) -> bool:
        if run.handed is not None:
            self._handed.pop(run.handed, None)
        return self._turns.pop(run.key, None) is not None

    # --- the model --------------------------------------------------------------------------

    def _model(self, request: ModelRequest, call: Callable[[Any], Any]) -> Work[ModelResponse]:
        """One request: with all that hooks make of it, and with further ones, if they extend the turn."""
        run, changes = yield from self._of(request.state, request.messages)
        if run.refused is not None:
            return ModelResponse([AIMessage(run.refused, id=new_id(OURS))])
        given = add_messages(request.messages, changes) if changes else request.messages
        given = [one for one in given if one.response_metadata != _REFUSED]
        added: list[AnyMessage] = []  # here, by hooks and by the model
        run.paused.clear()
        try:
            while True:
                yield from self._prompt(run, request)
                asked = yield from self._ask(run, request, given, added, call)
                result, structured = answer_of(asked)
                reply = next(one for one in reversed(result) if isinstance(one, AIMessage))
                answered = [one.tool_call_id for one in result if isinstance(one, ToolMessage)]
                to_call = [one for one in reply.tool_calls if one["id"] not in answered]
                if to_call or (reply.tool_calls and structured is None):
                    return ModelResponse([*changes, *added, *result], structured)
                text = str(reply.text) or "".join(as_text(one["args"]) for one in reply.tool_calls)
                shown, more = yield from self._finish(run, text)
                if shown != text:
                    result, structured = [with_text(reply, shown or "", tool_calls=[])], None
                added += result
                if more is None:
                    return ModelResponse([*changes, *added], structured)
                added.append(human_message(more))
        except GraphBubbleUp:
            run.paused.add(None)
            raise
        except BaseException as error:
            yield from self._failed(run, error)
            raise

    def _prompt(self, run: _Run, request: ModelRequest) -> Work[None]:
        """The system prompt is known only now."""
        if run.prompt is None:
            run.prompt = []
            if not run.turn.over:
                prompt = yield from run.turn.prompt(request.system_prompt, run.user_message)
                run.prompt = [prompt] if prompt != request.system_prompt else []

    def _ask(
        self, run: _Run, request: ModelRequest, given: list[AnyMessage], added: list[AnyMessage],
        call: Callable[[Any], Any],
    ) -> Work[Asked]:  # fmt: skip
        def messages() -> list[Message]:  # which only a hook would read
            return [plain_message(one) for one in (*given, *added)] if BeforeModel in run.turn.heard else []

        def send(asking: Asking) -> Any:
            added.extend(human_message(text) for text in asking.context)
            sent: list[AnyMessage] = [*given, *added]
            if asking.messages is not None:
                sent = rewritten(sent, messages(), asking.messages, native_message)
            changed: dict[str, Any] = {"messages": sent}
            if asking.model is not None:
                changed["model"] = self._model_named(asking.model)
            if run.prompt:
                changed["system_message"] = SystemMessage(run.prompt[0]) if run.prompt[0] else None
            return call(request.override(**changed))

        name, through = model_name(request.model), (GraphBubbleUp,)
        asked = yield from run.turn.ask(name, messages, send, reply_of, through=through)
        return asked

    def _model_named(self, name: str) -> Any:
        model = self._models.get(name, name)
        if isinstance(model, str):
            from langchain.chat_models import init_chat_model

            try:
                model = self._models[name] = init_chat_model(model)
            except (ValueError, ImportError) as error:
                raise UnknownName("model", name, self._models) from error
        return model

    @contextmanager
    def _stream(self) -> Iterator[None]:
        """While a hook may still change what the model says, whoever streams does not hear of it."""
        if not self._runs.judges("after_model", "before_response", "before_output"):
            yield
            return
        config = get_config()
        callbacks: Any = config.get("callbacks")
        if isinstance(callbacks, list):
            callbacks = [one for one in callbacks if not hasattr(one, "tap_output_iter")]
        elif callbacks is not None:
            streams = [one for one in callbacks.handlers if hasattr(one, "tap_output_iter")]
            callbacks = callbacks.copy()
            for one in streams:
                callbacks.remove_handler(one)
        token = var_child_runnable_config.set({**config, "callbacks": callbacks})
        try:
            yield
        finally:
            var_child_runnable_config.reset(token)

    # --- tools ------------------------------------------------------------------------------

    def _tool(self, request: Any, call: Callable[..., Any]) -> Work[Any]:
        messages = request.state["messages"] if isinstance(request.state, dict) else ()
        run, _ = yield from self._of(request.state, messages)
        if run.refused is not None:
            return tool_message(request, run.refused, is_error=True)
        me, call_id = object(), request.tool_call["id"]
        run.calls.add(me)
        run.paused.discard(call_id)
        questions = run.asked.setdefault(call_id, Questions())
        try:
            given = yield from through_hooks(run.turn, request, call, questions.ask)
            run.asked.pop(call_id, None)
            for command in commands_in(given):
                if command.graph == Command.PARENT:
                    given = yield from self._hand_over(run, request, command, given)
            return given
        except GraphBubbleUp:
            questions.interrupted()
            run.paused.add(request.tool_call["id"])
            raise
        except BaseException as error:
            run.error = run.error or error
            raise
        finally:
            run.calls.discard(me)
            if run.error is not None and not run.calls:  # until then, others of the batch are at work
                yield from self._failed(run, run.error)

    def _hand_over(self, run: _Run, request: Any, command: Command, given: Any) -> Work[Any]:
        """Another agent of a larger graph goes on; this one's graph ends here."""
        goto = command.goto if isinstance(command.goto, (list, tuple)) else [command.goto]
        name = ", ".join(str(getattr(one, "node", one)) for one in goto)
        refused = yield from run.turn.hand_over(name)
        if refused is not None:
            return tool_message(request, refused, is_error=True)
        run.handed = run.human, request.tool_call["id"] or ""
        self._handed[run.handed] = run
        return given

    def _node_tool(self, request: Any, call: Callable[..., Any], key: str) -> Work[Any]:
        """A call of a graph of one's own, of which nothing else is seen."""

        thread = thread_of(request.runtime.config)
        asked, place = self._asked, (thread, request.tool_call["id"])
        questions = asked.setdefault(place, Questions()) if thread is not None else Questions()

        def ask(request: Any, decision: Decision[Any]) -> Approval:
            if is_alone(request.state, key):
                return questions.ask(request, decision)
            return Approval("deny", None, "it needs approval, and must be called alone for that")

        turn = self._nodes.turn(thread)
        for old in self._nodes.surplus():
            yield from end_session(old, "forgotten")
        try:
            given = yield from through_hooks(turn, request, call, ask)
        except GraphBubbleUp:
            questions.interrupted()
            while len(asked) > SESSIONS:
                asked.popitem(last=False)
            raise
        except BaseException:
            asked.pop(place, None)
            raise
        asked.pop(place, None)
        if turn.waiting and isinstance(given, ToolMessage):
            texts = [text.signed for text in turn.waiting]
            blocks = [{"type": "text", "text": text} for text in texts]
            content: Any = given.content
            content = "\n\n".join([content, *texts]) if isinstance(content, str) else [*content, *blocks]
            given = given.model_copy(update={"content": content})
        return given


def _asked(messages: Sequence[AnyMessage], fresh: bool) -> list[HumanMessage]:
    """What the user has said since the last answer, or before it, if nothing.

    When a graph begins, all that was said since is the user's, whatever ids it was given.
    """
    asked: list[HumanMessage] = []
    for one in reversed(messages):
        if isinstance(one, HumanMessage) and (fresh or not is_ours(one)):
            asked.insert(0, one)
        elif isinstance(one, (AIMessage, ToolMessage)):
            if asked:
                break
            fresh = False
    return asked


def _path(namespace: str) -> str:
    """The graphs in which a node is, without the ids of their runs."""
    return "|".join(part.split(":")[0] for part in namespace.split("|")[:-1])
