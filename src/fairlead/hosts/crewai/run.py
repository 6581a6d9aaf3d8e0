"""An agent of crewai's at work, and the requests that it makes to its model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from crewai.events import crewai_event_bus
from crewai.events.types.llm_events import LLMStreamChunkEvent
from crewai.flow.flow_context import current_flow_id
from crewai.hooks import HookAborted
from crewai.llms.base_llm import call_stop_override, call_stream_override

from ...errors import FairleadError, describe
from ...lifecycle import AfterModel, Agent, BeforeModel
from ...session import new_id
from ..model import Message, as_text
from ..turn import Asked, Asking, Ended, Reply, Turn
from ..work import Work, drive, drive_sync
from .messages import (
    as_answer,
    calls_in,
    final_text,
    last_said,
    plain,
    rewrite,
    said_at,
    system_prompt,
    text_of,
    with_system_prompt,
)

if TYPE_CHECKING:
    from ..crewai import Fairlead
    from .call import Call

JUDGING = ("after_model", "before_response", "before_output")
"""Events at which a hook may still object to an answer: none of it is streamed before they are over."""


class Refused(HookAborted):  # type: ignore[misc]
    """What hooks raised, as crewai lets it pass: any other exception of a hook's would be swallowed."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error) or describe(error), "fairlead")
        self.__cause__ = error


@contextmanager
def surely(run: Run | None = None) -> Iterator[None]:
    """What hooks raise ends the run."""
    try:
        yield
    except HookAborted:
        raise
    except Exception as error:
        raise (Refused(error) if run is None else run.refuse(error)) from error


def agent_of(executor: Any) -> Any:
    return getattr(executor, "agent", None) or getattr(executor, "original_agent", None) or executor


def name_of(agent: Any) -> str:
    return str(getattr(agent, "role", None) or "agent").strip()


# --- a run ----------------------------------------------------------------------------------------


class Run:
    """An agent at work on a task."""

    def __init__(self, fairlead: Fairlead, executor: Any, parent: Call | None) -> None:
        self.fairlead, self.executor, self.parent = fairlead, executor, parent
        crew = getattr(executor, "crew", None)
        self.key = current_flow_id.get() if crew is None else id(crew)
        self.task = getattr(executor, "task", None)
        self.turn: Turn | None = None
        self.first: Message | None = None
        """What the conversation begins with: by that one can tell whose it is."""
        self.failure: Refused | None = None
        self.error: Exception | None = None
        self.refused = False
        self.asked_for: list[tuple[str, str, dict[str, Any]]] = []

    @property
    def the_turn(self) -> Turn:
        if self.turn is None:
            raise FairleadError("an agent calls a tool, and has not asked its model yet")
        return self.turn

    def refuse(self, error: BaseException) -> Refused:
        """It fails, and so does whoever has asked for it: crewai would have a tool's exceptions told to the model."""
        refused = error if isinstance(error, Refused) else Refused(error)
        run: Run | None = self
        while run is not None:
            run.failure = run.failure or refused
            run = run.parent.run if run.parent is not None else None
        return refused

    def ask(self, request: Request) -> Work[Any]:
        """The model's answer, when hooks have no objection left."""
        if self.failure is not None:
            raise self.failure
        turn = self.turn if self.turn is not None else (yield from self._begin(request))
        while True:
            try:
                asked = yield from turn.ask(request.llm.model, request.plain, request.send, request.read)
            except Exception as error:
                self.error = error
                raise
            self.error = None
            answer = request.answer(asked, turn)
            text = turn.said or "" if turn.over else final_text(answer, with_tools=request.with_tools)
            if text is None:
                self.asked_for = calls_in(answer)
                return answer
            feedback = yield from turn.ending()
            if feedback is None:
                ended = yield from self._end(turn, text)
                if ended.changed or turn.over:
                    answer = request.say(ended.text, answer)
                feedback = yield from self._may_stop(turn)
                if feedback is None:
                    request.show(ended.text, asked)
                    return answer
                turn = self.turn = turn.again()
                yield from turn.begin(feedback, source="continuation")
            request.messages.append({"role": "assistant", "content": text_of(answer)})
            request.messages.append({"role": "user", "content": feedback})

    def _begin(self, request: Request) -> Work[Turn]:
        fairlead, messages, agent = self.fairlead, request.messages, agent_of(self.executor)
        places = last_said(messages)
        given = said = said_at(messages, places)
        if self.parent is None:
            turn = fairlead.runs.turn(fairlead.session_of(self), agent=name_of(agent), streaming=request.streams)
            turn.session.agent = Agent(str(getattr(agent, "id", None) or new_id("agent")), name_of(agent))
            refused = None
        else:
            parent = self.parent.turn
            turn, message, refused = yield from parent.helper(name_of(agent), as_text(said))
            given = said if message is None or message == as_text(said) else message
        self.turn, self.first = turn, messages[0] if messages else None
        if refused is not None:
            self.refused, turn.over, turn.said = True, True, refused
            return turn
        prompt = system_prompt(messages)
        begun = yield from turn.begin(given, system_prompt=prompt, committed_len=len(messages))
        if places and begun.input != said:
            messages[places[-1]] = {**messages[places[-1]], "content": begun.input}
            for at in reversed(places[:-1]):
                del messages[at]
        if begun.system_prompt != prompt:
            with_system_prompt(messages, begun.system_prompt)
        self.first = messages[0] if messages else None
        return turn

    def _end(self, turn: Turn, text: str | None) -> Work[Ended]:
        return Ended(turn.said, True) if self.refused else (yield from turn.end(text))

    def _may_stop(self, turn: Turn) -> Work[str | None]:
        """It is over, or told to go on if it is a subagent."""
        feedback = None
        if self.parent is not None and not self.refused:
            feedback = yield from self.parent.turn.helper_stops(turn)
        if feedback is None:
            self.fairlead.forget(self)
        return feedback

    def finish(self, text: str | None) -> Work[Ended]:
        """It is over without a last answer of the model's, and can go on no more."""
        self.fairlead.forget(self)
        if self.failure is not None:
            yield from self.fail(self.failure)
            raise self.failure
        turn = self.turn
        if turn is None:
            return Ended(text)
        turn.session.capabilities = {**(turn.session.capabilities or {}), "before_turn_end": frozenset({"stop"})}
        yield from turn.ending()
        ended = yield from self._end(turn, text)
        if self.parent is not None:
            yield from self.parent.turn.helper_stops(turn)
        return ended

    def fail(self, error: BaseException) -> Work[None]:
        self.fairlead.forget(self)
        turn = self.turn
        if turn is None or self.refused:
            return
        cause = error.__cause__ if isinstance(error, Refused) else None
        yield from turn.failed(cause or error)
        if self.parent is not None:
            with suppress(FairleadError):
                yield from self.parent.turn.helper_stops(turn)


# --- the model ------------------------------------------------------------------------------------


class Seam:
    """Stands in for `call` or `acall` of one model."""

    def __init__(self, fairlead: Fairlead, llm: Any, name: str) -> None:
        self.llm: Any = llm
        before: Any = vars(llm).get(name)
        if isinstance(before, Seam) and before.llm is not llm:  # of a model that this one is a copy of
            before = None
        self.fairlead, self.name, self.before = fairlead, name, before
        self.inner = before if before is not None else getattr(type(llm), name).__get__(llm)
        object.__setattr__(llm, name, self)

    def is_of(self, fairlead: Fairlead, llm: Any) -> bool:
        seam: Any = self
        while isinstance(seam, Seam) and seam.llm is llm:
            if seam.fairlead is fairlead:
                return True
            seam = seam.before
        return False

    def take_out(self) -> None:
        if vars(self.llm).get(self.name) is self:  # if not, another one came after: this one then only hands on
            if self.before is None:
                object.__delattr__(self.llm, self.name)
            else:
                object.__setattr__(self.llm, self.name, self.before)

    def __deepcopy__(self, memo: Any) -> Seam:
        return self

    def __call__(self, messages: Any, *args: Any, **options: Any) -> Any:
        if self.name == "acall":
            return self._acall(messages, *args, **options)
        with surely():
            run = None if args else self.fairlead.run_that_asks(messages)
        if run is None:
            return self.inner(messages, *args, **options)
        try:
            return drive_sync(run.ask(Request(run, self, messages, options)))
        except FairleadError as error:
            raise run.refuse(error) from error

    async def _acall(self, messages: Any, *args: Any, **options: Any) -> Any:
        with surely():
            run = None if args else self.fairlead.run_that_asks(messages)
        if run is None:
            return await self.inner(messages, *args, **options)
        try:
            return await drive(run.ask(Request(run, self, messages, options)))
        except FairleadError as error:
            raise run.refuse(error) from error


class Request:
    """A request to the model."""

    def __init__(self, run: Run, seam: Seam, messages: list[Message], options: dict[str, Any]) -> None:
        self.run, self.seam, self.llm = run, seam, seam.llm
        self.messages, self.options = messages, options
        self.with_tools = bool(options.get("tools"))
        self.streams = bool(getattr(self.llm, "_effective_stream", lambda: self.llm.stream)())
        self.buffers = self.streams and run.fairlead.runs.judges(*JUDGING)
        self.asked: Any = None
        self.used = (0, 0)

    def plain(self) -> list[Message]:
        if BeforeModel not in self.run.fairlead.runs.hooks.heard:
            return []
        return [plain(message) for message in self.messages if message.get("role") != "system"]

    def send(self, asking: Asking) -> Any:
        """Ask. What hooks have to say stays in the conversation, what they made of it is for this once."""
        self.messages += [{"role": "user", "content": text} for text in asking.context]
        sent = self.messages if asking.messages is None else rewrite(self.messages, asking.messages)
        llm, inner = self.llm, self.seam.inner
        if asking.model is not None:
            llm = self.run.fairlead.model_named(asking.model)
            own = vars(llm).get(self.seam.name)
            inner = own.inner if isinstance(own, Seam) and own.llm is llm else getattr(llm, self.seam.name)
        if AfterModel in self.run.fairlead.runs.hooks.heard:
            self.asked, self.used = llm, _usage(llm)
        if self.seam.name == "acall":
            return self._asend(llm, inner, sent)
        with self._ways(llm):
            return inner(sent, **self.options)

    async def _asend(self, llm: Any, inner: Any, sent: list[Message]) -> Any:
        with self._ways(llm):
            return await inner(sent, **self.options)

    def _ways(self, llm: Any) -> ExitStack:
        """How a model is to answer, whichever it is."""
        ways = ExitStack()
        if llm is not self.llm:
            ways.enter_context(call_stop_override(llm, self.llm.stop_sequences))
        if self.buffers or (self.streams and llm is not self.llm):
            ways.enter_context(call_stream_override(llm, not self.buffers))
        return ways

    def read(self, answer: Any) -> Reply:
        usage = None
        if self.asked is not None:
            given, made = (now - before for now, before in zip(_usage(self.asked), self.used, strict=True))
            usage = {"input_tokens": given, "output_tokens": made} if given or made else None
        return Reply(text_of(answer) or "", usage, "tool_use" if isinstance(answer, list) else "end_turn")

    def answer(self, asked: Asked, turn: Turn) -> Any:
        """What crewai gets. Calls are what they are, whatever was said of their words."""
        if asked.text is None or (isinstance(asked.native, list) and not turn.over):
            return asked.native
        if asked.native is None or turn.over:
            return self.say(asked.text, None)
        return self.say(asked.text, asked.native, whole=True)

    def say(self, text: str | None, answer: Any, whole: bool = False) -> Any:
        """An answer with this text. `whole` if a text model's thoughts and actions are in it."""
        wanted = getattr(self.run.executor, "response_model", None)
        if wanted is not None and answer is None:
            answer = wanted.model_construct()  # crewai would ask the model to make an object of any other
        if whole and isinstance(answer, str) and text and text.strip():
            return text
        try:
            return as_answer(text, answer, with_tools=self.with_tools)
        except ValueError:
            raise FairleadError(f"this is no {type(answer).__name__}, which the agent owes: {text}") from None

    def show(self, text: str | None, asked: Asked) -> None:
        """Stream what was not streamed when the model said it."""
        if text and self.streams and (self.buffers or asked.native is None):
            about = {name: self.options.get(name) for name in ("from_task", "from_agent")}
            crewai_event_bus.emit(self.llm, event=LLMStreamChunkEvent(chunk=text, call_id=new_id("call"), **about))


def _usage(llm: Any) -> tuple[int, int]:
    told = llm.get_token_usage_summary()
    return told.prompt_tokens, told.completion_tokens
