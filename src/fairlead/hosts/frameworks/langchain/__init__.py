"""The adapter for LangChain's `create_agent` (a middleware), and for tool nodes of LangGraph graphs.

An agent is a graph here. Its nodes share only the state, and a context variable that one node sets is gone in the
next. So the adapter finds a run by a key, which it keeps in a private field of the state. Hooks judge the end of a
turn inside the request that brought the final answer, before the graph, a stream or a checkpoint has it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
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

from ....errors import FairleadError, UnknownName
from ....lifecycle import BeforeModel
from ....registry import Hooks
from ....session import new_id
from ..adapter import Adapter, AgentRun
from ..flow import Call, Flow, run_flow, run_flow_sync
from ..framework import WHOLE, Framework
from ..messages import Message, as_text
from ..turn import SESSIONS, ModelCall, ModelResult, Turn, TurnInput, rewritten
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
from .tool_calls import (
    INSIDE,
    Boundary,
    GraphSessions,
    Questions,
    call_tool,
    commands_in,
    path_of,
    thread_of,
    tool_message,
    user_of,
)
from .tool_nodes import TOOL_NODE, GovernedNodes

__all__ = ["FRAMEWORK", "TOOL_NODE", "Abandoned", "Fairlead", "GraphRun"]

FRAMEWORK = Framework(
    name="langchain",
    title="LangChain",
    package="langchain",
    versions=">=1.1,<2",
    can=WHOLE,
    notes=(
        "A tool with return_direct ends the turn after the graph has its output: a stream shows it unjudged.",
        "Hooks do not see tools that the provider runs, nor SummarizationMiddleware.",
        "A run that fails in another middleware's node is reported late: when Fairlead closes.",
    ),
)
FIELD = "fairlead_turn"
_REFUSED = {"fairlead": "refused"}


class _State(AgentState):  # type: ignore[type-arg]
    fairlead_turn: NotRequired[Annotated[str, PrivateStateAttr]]  # type: ignore[valid-type]


class GraphRun(AgentRun):
    """One run of an agent, which its graph knows by a key."""

    def __init__(self, key: str, place: tuple[str | None, str] = (None, ""), turn: Turn | None = None) -> None:
        self.key, self.place = key, place
        if turn is not None:
            self.turn = turn
        self.user_message = ""
        self.prompt: list[str | None] | None = None  # the system prompt that hooks give, once they have judged it
        self.calls: set[object] = set()  # the tool calls that run
        self.error: BaseException | None = None  # raised by one of them
        self.interrupted: set[str | None] = set()  # the calls that wait for a human
        self.handed: tuple[str | None, str] | None = None  # the call that handed the work to another agent
        self.human: str | None = None  # the id of the user's message
        self.questions: dict[str | None, Questions] = {}  # by call


class Abandoned(FairleadError):
    """A request that no call of the framework continues."""


class Fairlead(Adapter, AgentMiddleware):  # type: ignore[type-arg]
    """Hooks for an agent: `create_agent(model, tools, middleware=[Fairlead(hooks)])`.

    Hooks for a graph of your own: `builder.add_node("tools", Fairlead(hooks).tool_node(tools))`.

    - `models` names the models that a hook may switch to. Other names go to `init_chat_model`.
    - The session is the config's thread_id. `aclose`, `close` and `async with` end all sessions.
    - One Fairlead serves any number of agents and runs at once.
    """

    framework = FRAMEWORK
    state_schema = _State

    def __init__(self, hooks: Hooks | None = None, **options: Any) -> None:
        super().__init__(hooks, **options)
        AgentMiddleware.__init__(self)
        self.tools = ()
        about = {name: value for name, value in options.items() if name != "models"}
        self._graphs = GraphSessions()
        self._nodes = GovernedNodes(self.sessions, self._graphs, about)
        self._user_id: str | None = options.get("user_id")
        self._active: dict[str, GraphRun] = {}
        self._beginning: dict[str, Future[GraphRun]] = {}  # in the node of one call, while others wait
        self._handed: dict[tuple[str | None, str], GraphRun] = {}  # by user message and call: call ids recur
        self._answered: OrderedDict[str, tuple[Turn, str]] = OrderedDict()  # turns that are over, and their answers

    @property
    def name(self) -> str:
        """The name by which LangChain refuses a second one in an agent, also one of a subclass."""
        return "Fairlead"

    # --- what LangChain calls ---------------------------------------------------------------

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return run_flow_sync(self._start(state))

    @hook_config(can_jump_to=["end"])
    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return await run_flow(self._start(state))

    @hook_config(can_jump_to=["model"])
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return run_flow_sync(self._leave(state))

    @hook_config(can_jump_to=["model"])
    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return await run_flow(self._leave(state))

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        def call(request: Any) -> Any:
            with self._stream():
                return handler(request)

        return run_flow_sync(self._model(request, call))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        async def call(request: Any) -> Any:
            with self._stream():
                return await handler(request)

        return await run_flow(self._model(request, call))

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return run_flow_sync(self._tool(request, handler))

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        return await run_flow(self._tool(request, handler))

    def tool_node(self, tools: Sequence[Any], **options: Any) -> ToolNode:
        """A `ToolNode(tools, **options)` whose calls go through the hooks, for a graph of your own.

        Wrappers of your own, `wrap_tool_call` and `awrap_tool_call`, may be among the options. Hooks judge what they
        make of a call.
        """
        return self._nodes.make(tools, options)

    def closing(self) -> Flow[None]:
        while self._active:
            yield from self._fail(next(reversed(self._active.values())), Abandoned("it was left before its end"))
        yield from super().closing()
        yield from self._nodes.sessions.closing()

    # --- a turn -----------------------------------------------------------------------------

    def _start(self, state: dict[str, Any]) -> Flow[dict[str, Any]]:
        run = self._handed_run(state["messages"])
        if run is not None:
            return {FIELD: run.key}
        run, changes = yield from self._begin(state["messages"], new_id("turn"), fresh=True)
        if not run.turn.over:
            return {FIELD: run.key, "messages": changes}
        text = run.refusal
        if text is None:
            try:
                text, _ = yield from self._finish(run, None)
            except BaseException as error:
                yield from self._fail(run, error)
                raise
        is_refused = bool(changes) and all(isinstance(one, RemoveMessage) for one in changes)
        reply = AIMessage(text or "", id=new_id(OURS), response_metadata=_REFUSED if is_refused else {})
        return {FIELD: run.key, "messages": [*changes, reply], "jump_to": "end"}

    def _begin(
        self, messages: Sequence[AnyMessage], key: str, fresh: bool = False
    ) -> Flow[tuple[GraphRun, list[AnyMessage]]]:
        """Begin a turn. Gives its run, and changes to the user's messages."""
        human = _user_messages(messages, fresh)
        original = joined([one.content for one in human])
        run, message = yield from self._open(key, original)
        run.human = human[-1].id if human else None
        if run.refusal is not None:
            return run, []
        try:
            is_continued = not human or messages[-1] is not human[-1]
            source = "continuation" if is_continued else "user"
            turn_input = yield from self._begin_turn(run, message, source, len(messages))
        except BaseException as error:
            yield from self._fail(run, error)
            raise
        removed: list[AnyMessage] = [RemoveMessage(id=one.id) for one in human if one.id]
        if run.turn.session.turn_id is None:  # it was refused, and is not kept
            return run, removed
        if not human or turn_input.input == original:
            return run, []
        return run, [*removed[:-1], human[-1].model_copy(update={"content": turn_input.input})]

    def _open(self, key: str, message: Any) -> Flow[tuple[GraphRun, Any]]:
        """Open the run of an agent, or of a subagent, if a tool runs it. Gives also the message that hooks leave it."""
        config, within = get_config(), INSIDE.get()
        thread, name = thread_of(config), config.get("metadata", {}).get("lc_agent_name")
        sessions = within[0].sessions if within is not None else None
        if (
            within is not None
            and sessions
            and sessions.hooks is self.sessions.hooks
            and sessions.framework is FRAMEWORK
        ):
            parent, tool = within[0], within[1].about["tool"]
            agent = parent.session.agent
            name = name if name is not None and (agent is None or name != agent.name) else tool
            run = GraphRun(key)
            message = yield from run.start_subagent(parent, name, message)
            if run.refusal is not None:
                return run, message
        else:
            place = (thread, path_of(config))
            for old in [
                old for old in list(self._active.values()) if old.interrupted and thread and old.place == place
            ]:
                yield from self._fail(old, Abandoned("another request came instead of an answer"))
            for old in [old for old in list(self._handed.values()) if thread and old.place == place]:
                yield from self._fail(old, Abandoned("the work was handed over, and no agent continued it"))
            session_id = thread or self.session_id or self._graphs.of_agent(config)
            run = GraphRun(key, place, self.sessions.turn(session_id, agent=name, thread_id=thread))
            session = run.turn.session  # of this request, whose user may be another than that of the thread's first
            session.user_id = self._user_id or user_of(config)
        run.user_message = as_text(message)
        self._active[key] = run
        while len(self._active) > SESSIONS:
            yield from self._fail(next(iter(self._active.values())), Abandoned("it was left before its end"))
        return run, message

    def _begin_turn(self, run: GraphRun, message: Any, source: str, committed: int) -> Flow[TurnInput]:
        run.prompt = None
        turn_input = yield from run.turn.begin(message, source=source, committed_len=committed, prompted=False)
        run.user_message = as_text(turn_input.input)
        return turn_input

    def _handed_run(self, messages: Sequence[AnyMessage]) -> GraphRun | None:
        """The run that another agent has handed over with these messages. A new user message starts another run."""
        if not self._handed:
            return None
        human = next((one.id for one in reversed(_user_messages(messages, fresh=True))), None)
        ids = [(human, one.tool_call_id) for one in messages if isinstance(one, ToolMessage)]
        return next((self._handed.pop(call) for call in reversed(ids) if call in self._handed), None)

    def _run_of(self, state: Any, messages: Sequence[AnyMessage]) -> Flow[tuple[GraphRun, list[AnyMessage]]]:
        """The run that a node belongs to. It begins here if another process was interrupted in it, or if another
        middleware continues the agent after its end."""
        key = state.get(FIELD) if isinstance(state, dict) else None
        run = self._active.get(key) if key is not None else None
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

    def _begin_once(self, messages: Sequence[AnyMessage], key: str) -> Flow[tuple[GraphRun, list[AnyMessage]]]:
        """Begin a turn once. Several calls may resume at the same time, in threads or tasks: the others wait."""
        mine: Future[GraphRun] = Future()
        mine.set_running_or_notify_cancel()  # a caller that waits and is cancelled must not cancel it for the others
        first = self._beginning.setdefault(key, mine)
        if first is not mine:

            async def wait() -> GraphRun:
                return await asyncio.wrap_future(first)

            run: GraphRun = yield Call(wait)
            return run, []
        try:
            known = self._active.get(key)  # it has begun just now
            found = (known, []) if known is not None else (yield from self._begin(messages, key))
        except BaseException as error:
            left = Abandoned("the call with which it was to begin was cancelled")
            mine.set_exception(error if isinstance(error, Exception) else left)
            raise
        else:
            mine.set_result(found[0])
            return found
        finally:
            del self._beginning[key]

    def _finish(self, run: GraphRun, text: str | None, voluntary: bool = True) -> Flow[tuple[str | None, Any]]:
        """End the turn. Gives the answer to show, and the message with which the agent continues, if it is to."""
        while True:
            feedback: Any = yield from run.turn.ending(voluntary=voluntary)
            if feedback is not None:
                return text, feedback
            shown = (yield from run.end(text)).text
            self._forget(run)
            feedback = yield from run.stop()
            if feedback is None:
                return shown, None
            run.renew()
            self._active[run.key] = run
            turn_input = yield from self._begin_turn(run, feedback, "continuation", 1)
            if not run.turn.over:
                return shown, turn_input.input
            text = None

    def _leave(self, state: dict[str, Any]) -> Flow[dict[str, Any] | None]:
        """End the turn at the end of the graph, if it has not ended: another middleware or a tool ended the graph."""
        run, answered = self._active.get(state.get(FIELD, "")), self._answered.pop(state.get(FIELD, ""), None)
        if run is None and answered is not None:
            return (yield from self._judge_answer(state, *answered))
        if run is None or run.handed is not None:
            return None
        last = state["messages"][-1] if state["messages"] else None
        text = as_text(last.content) if isinstance(last, (AIMessage, ToolMessage)) else None
        try:
            shown, feedback = yield from self._finish(run, text, voluntary=False)
        except BaseException as error:
            yield from self._fail(run, error)
            raise
        if feedback is not None:
            return {"messages": [human_message(feedback)], "jump_to": "model"}
        if shown == text:
            return None
        reply: AnyMessage = AIMessage(shown or "", id=new_id(OURS))
        if isinstance(last, ToolMessage):
            reply = last.model_copy(update={"content": shown or "", "artifact": None})
        elif isinstance(last, AIMessage):
            reply = with_text(last, shown or "")
        return {"messages": [reply], **({"structured_response": None} if "structured_response" in state else {})}

    def _judge_answer(self, state: dict[str, Any], turn: Turn, judged: str) -> Flow[dict[str, Any] | None]:
        """Have hooks judge the answer again if a middleware around ours has changed it since."""
        reply = next((one for one in reversed(state["messages"]) if isinstance(one, AIMessage)), None)
        if reply is None or str(reply.text) == judged:
            return None
        output = yield from turn.judge(str(reply.text))
        return {"messages": [with_text(reply, output.text or "")]} if output.changed else None

    def _fail(self, run: GraphRun, error: BaseException) -> Flow[None]:
        if self._forget(run) and not isinstance(error, GeneratorExit):
            for child in [one for one in list(self._active.values()) if one.turn.parent is run.turn]:
                yield from self._fail(child, error)
            yield from run.fail(error)

    def _forget(self, run: GraphRun) -> bool:
        if run.handed is not None:
            self._handed.pop(run.handed, None)
        return self._active.pop(run.key, None) is not None

    # --- the model --------------------------------------------------------------------------

    def _model(self, request: ModelRequest, call: Callable[[Any], Any]) -> Flow[ModelResponse]:
        """Call the model. Calls it again as long as hooks refuse the answer or extend the turn."""
        run, changes = yield from self._run_of(request.state, request.messages)
        if run.refusal is not None:
            return ModelResponse([AIMessage(run.refusal, id=new_id(OURS))])
        messages = add_messages(request.messages, changes) if changes else request.messages
        messages = [one for one in messages if one.response_metadata != _REFUSED]
        added: list[AnyMessage] = []  # in this request, by hooks and by the model
        run.interrupted.clear()
        try:
            while True:
                yield from self._prompt(run, request)
                model_result = yield from self._call_model(run, request, messages, added, call)
                result, structured = answer_of(model_result)
                reply = next(one for one in reversed(result) if isinstance(one, AIMessage))
                with_result = [one.tool_call_id for one in result if isinstance(one, ToolMessage)]
                to_call = [one for one in reply.tool_calls if one["id"] not in with_result]
                if to_call or (reply.tool_calls and structured is None):
                    return ModelResponse([*changes, *added, *result], structured)
                text = str(reply.text) or "".join(as_text(one["args"]) for one in reply.tool_calls)
                shown, feedback = yield from self._finish(run, text)
                if shown != text:
                    result, structured = [with_text(reply, shown or "", tool_calls=[])], None
                added += result
                if feedback is None:
                    answer = next(one for one in reversed(added) if isinstance(one, AIMessage))
                    self._answered[run.key] = run.turn, str(answer.text)
                    while len(self._answered) > SESSIONS:
                        self._answered.popitem(last=False)
                    return ModelResponse([*changes, *added], structured)
                added.append(human_message(feedback))
        except GraphBubbleUp:
            run.interrupted.add(None)
            raise
        except BaseException as error:
            yield from self._fail(run, error)
            raise

    def _prompt(self, run: GraphRun, request: ModelRequest) -> Flow[None]:
        """Have hooks judge the system prompt. It is known at the first request to the model."""
        if run.prompt is None:
            run.prompt = []
            if not run.turn.over:
                prompt = yield from run.turn.prompt(request.system_prompt, run.user_message)
                run.prompt = [prompt] if prompt != request.system_prompt else []

    def _call_model(
        self, run: GraphRun, request: ModelRequest, known: list[AnyMessage], added: list[AnyMessage],
        call: Callable[[Any], Any],
    ) -> Flow[ModelResult]:  # fmt: skip
        def messages() -> list[Message]:  # only hooks read them
            return [plain_message(one) for one in (*known, *added)] if BeforeModel in run.turn.subscribed_steps else []

        def send(model_call: ModelCall) -> Any:
            added.extend(human_message(text) for text in model_call.context)
            sent: list[AnyMessage] = [*known, *added]
            if model_call.messages is not None:
                sent = rewritten(sent, messages(), model_call.messages, native_message)
            changed: dict[str, Any] = {"messages": sent}
            if model_call.model is not None:
                changed["model"] = self._model_named(model_call.model)
            if run.prompt:
                changed["system_message"] = SystemMessage(run.prompt[0]) if run.prompt[0] else None
            return call(request.override(**changed))

        name, through = model_name(request.model), (GraphBubbleUp,)
        return (yield from run.turn.ask(name, messages, send, reply_of, through=through))

    def _model_named(self, name: str) -> Any:
        model = self.models.get(name, name)
        if isinstance(model, str):
            from langchain.chat_models import init_chat_model

            try:
                model = self.models[name] = init_chat_model(model)
            except (ValueError, ImportError) as error:
                raise UnknownName("model", name, self.models) from error
        return model

    @contextmanager
    def _stream(self) -> Iterator[None]:
        """Keep an answer from being streamed live if a hook may refuse or change it."""
        if not self.sessions.judges("after_model", "before_response", "before_output"):
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

    def _tool(self, request: Any, call: Callable[[Any], Any]) -> Flow[Any]:
        messages = request.state["messages"] if isinstance(request.state, dict) else ()
        run, _ = yield from self._run_of(request.state, messages)
        if run.refusal is not None:
            return tool_message(request.tool_call, run.refusal, is_error=True)
        me, call_id = object(), request.tool_call["id"]
        run.calls.add(me)
        run.interrupted.discard(call_id)
        questions = run.questions.setdefault(call_id, Questions())
        try:
            boundary = Boundary(run.turn, partial(questions.ask, request.runtime.config))
            output = yield from call_tool(boundary, request, call)
            run.questions.pop(call_id, None)
            for command in commands_in(output):
                if command.graph == Command.PARENT:
                    output = yield from self._hand_over(run, request, command, output)
            return output
        except GraphBubbleUp:
            questions.interrupted()
            run.interrupted.add(request.tool_call["id"])
            raise
        except BaseException as error:
            run.error = run.error or error
            raise
        finally:
            run.calls.discard(me)
            if run.error is not None and not run.calls:  # until then, others of the batch run
                yield from self._fail(run, run.error)

    def _hand_over(self, run: GraphRun, request: Any, command: Command, output: Any) -> Flow[Any]:
        """Hand the work over to another agent of a larger graph. This agent's graph ends here."""
        goto = command.goto if isinstance(command.goto, (list, tuple)) else [command.goto]
        name = ", ".join(str(getattr(one, "node", one)) for one in goto)
        refusal = yield from run.turn.hand_over(name)
        if refusal is not None:
            return tool_message(request.tool_call, refusal, is_error=True)
        run.handed = run.human, request.tool_call["id"] or ""
        self._handed[run.handed] = run
        return output


def _user_messages(messages: Sequence[AnyMessage], fresh: bool) -> list[HumanMessage]:
    """The user's messages since the last answer, or before it, if there are none.

    When a graph begins, all messages since are the user's, whatever ids they have.
    """
    found: list[HumanMessage] = []
    for one in reversed(messages):
        if isinstance(one, HumanMessage) and (fresh or not is_ours(one)):
            found.insert(0, one)
        elif isinstance(one, (AIMessage, ToolMessage)):
            if found:
                break
            fresh = False
    return found
