"""One run of a crewai agent, under hooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from crewai.flow.flow_context import current_flow_id
from crewai.hooks import HookAborted

from ....errors import describe
from ....lifecycle import Agent
from ....session import new_id
from ..adapter import AgentRun, without
from ..flow import Flow
from ..messages import Message
from ..turn import TurnOutput
from .messages import calls_in, final_text, input_at, last_input, system_prompt, text_of, with_system_prompt

if TYPE_CHECKING:
    from . import Fairlead
    from .model_calls import CrewaiRequest
    from .tool_calls import CrewaiToolCall


class CrewaiRefusal(HookAborted):  # type: ignore[misc]
    """Carries what hooks raised. crewai lets it pass, and swallows any other exception of a hook."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error) or describe(error), "fairlead")
        self.__cause__ = error


@contextmanager
def surely(run: CrewaiRun | None = None) -> Iterator[None]:
    """What hooks raise ends the run."""
    try:
        yield
    except HookAborted:
        raise
    except Exception as error:
        raise (CrewaiRefusal(error) if run is None else run.refuse(error)) from error


def agent_of(executor: Any) -> Any:
    return getattr(executor, "agent", None) or getattr(executor, "original_agent", None) or executor


def name_of(agent: Any) -> str:
    return str(getattr(agent, "role", None) or "agent").strip()


# --- a run ----------------------------------------------------------------------------------------


class CrewaiRun(AgentRun):
    """An agent that works on a task."""

    def __init__(self, fairlead: Fairlead, executor: Any, parent: CrewaiToolCall | None) -> None:
        self.fairlead, self.executor, self.parent = fairlead, executor, parent
        crew = getattr(executor, "crew", None)
        self.key = current_flow_id.get() if crew is None else id(crew)
        self.task = getattr(executor, "task", None)
        self.first: Message | None = None
        """The first message of the conversation, by which its requests are recognised."""
        self.failure: CrewaiRefusal | None = None
        self.error: Exception | None = None
        self.calls: list[tuple[str, str, dict[str, Any]]] = []
        """The calls that the model wants: id, tool and arguments."""

    def refuse(self, error: BaseException) -> CrewaiRefusal:
        """Fail the run, and those that it runs in: crewai would send a tool's exceptions to the model."""
        refused = error if isinstance(error, CrewaiRefusal) else CrewaiRefusal(error)
        run: CrewaiRun | None = self
        while run is not None:
            run.failure = run.failure or refused
            run = run.parent.run if run.parent is not None else None
        return refused

    def call_model(self, request: CrewaiRequest) -> Flow[Any]:
        """The model's answer. Calls the model again as long as hooks refuse the answer or extend the turn."""
        if self.failure is not None:
            raise self.failure
        if not self.has_turn:
            yield from self._begin(request)
        while True:
            turn = self.turn
            try:
                result = yield from turn.ask(request.llm.model, request.plain, request.send, request.read)
            except Exception as error:
                self.error = error
                raise
            self.error = None
            answer = request.answer(result, turn)
            text = turn.end_message or "" if turn.over else final_text(answer, with_tools=request.with_tools)
            if text is None:
                self.calls = calls_in(answer)
                return answer
            feedback = yield from turn.ending()
            if feedback is None:
                output = yield from self.end(text)
                if output.changed or turn.over:
                    answer = request.answer_with(output.text, answer)
                feedback = yield from self.stop()
                if feedback is None:
                    self.fairlead.forget(self)
                    request.show(output.text, result)
                    return answer
                self.renew()
                yield from self.turn.begin(feedback, source="continuation")
            request.messages.append({"role": "assistant", "content": text_of(answer)})
            request.messages.append({"role": "user", "content": feedback})

    def _begin(self, request: CrewaiRequest) -> Flow[None]:
        fairlead, messages, agent = self.fairlead, request.messages, agent_of(self.executor)
        positions = last_input(messages)
        message = original = input_at(messages, positions)
        if self.parent is None:
            self.turn = fairlead.sessions.turn(
                fairlead.session_of(self), agent=name_of(agent), streaming=request.streams
            )
            self.turn.session.agent = Agent(str(getattr(agent, "id", None) or new_id("agent")), name_of(agent))
        else:
            message = yield from self.start_subagent(self.parent.turn, name_of(agent), original)
        self.first = messages[0] if messages else None
        if self.refusal is not None:
            return
        prompt = system_prompt(messages)
        turn_input = yield from self.turn.begin(message, system_prompt=prompt, committed_len=len(messages))
        if positions and turn_input.input != original:
            messages[positions[-1]] = {**messages[positions[-1]], "content": turn_input.input}
            for at in reversed(positions[:-1]):
                del messages[at]
        if turn_input.system_prompt != prompt:
            with_system_prompt(messages, turn_input.system_prompt)
        self.first = messages[0] if messages else None

    def finish(self, text: str | None) -> Flow[TurnOutput]:
        """End a run that ends without a final answer of the model. It cannot be extended."""
        self.fairlead.forget(self)
        if self.failure is not None:
            yield from self.fail(self.failure)
            raise self.failure
        if not self.has_turn:
            return TurnOutput(text)
        with without(self.turn, "before_turn_end", "extend"):
            yield from self.turn.ending()
        output = yield from self.end(text)
        yield from self.stop()
        return output

    def fail(self, error: BaseException) -> Flow[None]:
        self.fairlead.forget(self)
        cause = error.__cause__ if isinstance(error, CrewaiRefusal) else None
        yield from super().fail(cause or error)
