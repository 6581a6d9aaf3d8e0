"""Requests to the model in crewai: `call` and `acall` of a model are patched, so that hooks judge them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from crewai.events import crewai_event_bus
from crewai.events.types.llm_events import LLMStreamChunkEvent
from crewai.llms.base_llm import call_stop_override, call_stream_override

from ....errors import FairleadError
from ....lifecycle import AfterModel, BeforeModel
from ....session import new_id
from ..flow import run_flow, run_flow_sync
from ..messages import Message
from ..turn import ModelCall, ModelResult, Reply, Turn
from .messages import as_answer, plain, rewrite, text_of
from .run import CrewaiRun, surely

if TYPE_CHECKING:
    from . import Fairlead

JUDGING = ("after_model", "before_response", "before_output")
"""Events at which a hook may refuse or change an answer. If there is such a hook, the answer is not streamed live."""


class ModelPatch:
    """Replaces `call` or `acall` of one model."""

    def __init__(self, fairlead: Fairlead, llm: Any, name: str) -> None:
        self.llm: Any = llm
        before: Any = vars(llm).get(name)
        if isinstance(before, ModelPatch) and before.llm is not llm:  # the patch of a model that this one is a copy of
            before = None
        self.fairlead, self.name, self.before = fairlead, name, before
        self.inner = before if before is not None else getattr(type(llm), name).__get__(llm)
        object.__setattr__(llm, name, self)

    def is_of(self, fairlead: Fairlead, llm: Any) -> bool:
        patch: Any = self
        while isinstance(patch, ModelPatch) and patch.llm is llm:
            if patch.fairlead is fairlead:
                return True
            patch = patch.before
        return False

    def take_out(self) -> None:
        if vars(self.llm).get(self.name) is self:  # else another patch wraps this one, which then only passes calls on
            if self.before is None:
                object.__delattr__(self.llm, self.name)
            else:
                object.__setattr__(self.llm, self.name, self.before)

    def __deepcopy__(self, memo: Any) -> ModelPatch:
        return self

    def __call__(self, messages: Any, *args: Any, **options: Any) -> Any:
        if self.name == "acall":
            return self._acall(messages, *args, **options)
        with surely():
            run = None if args else self.fairlead.run_of_request(messages)
        if run is None:
            return self.inner(messages, *args, **options)
        try:
            return run_flow_sync(run.call_model(CrewaiRequest(run, self, messages, options)))
        except FairleadError as error:
            raise run.refuse(error) from error

    async def _acall(self, messages: Any, *args: Any, **options: Any) -> Any:
        with surely():
            run = None if args else self.fairlead.run_of_request(messages)
        if run is None:
            return await self.inner(messages, *args, **options)
        try:
            return await run_flow(run.call_model(CrewaiRequest(run, self, messages, options)))
        except FairleadError as error:
            raise run.refuse(error) from error


class CrewaiRequest:
    """One request to the model. It is repeated when a hook refuses the answer or extends the turn."""

    def __init__(self, run: CrewaiRun, patch: ModelPatch, messages: list[Message], options: dict[str, Any]) -> None:
        self.run, self.patch, self.llm = run, patch, patch.llm
        self.messages, self.options = messages, options
        self.with_tools = bool(options.get("tools"))
        self.streams = bool(getattr(self.llm, "_effective_stream", lambda: self.llm.stream)())
        self.buffers = self.streams and run.fairlead.sessions.judges(*JUDGING)
        self.measured: Any = None  # the model whose usage is counted
        self.used = (0, 0)

    def plain(self) -> list[Message]:
        if BeforeModel not in self.run.fairlead.sessions.hooks.subscribed_steps:
            return []
        return [plain(message) for message in self.messages if message.get("role") != "system"]

    def send(self, call: ModelCall) -> Any:
        """Call the model. Context of hooks stays in the conversation; changed messages are for this request only."""
        self.messages += [{"role": "user", "content": text} for text in call.context]
        sent = self.messages if call.messages is None else rewrite(self.messages, call.messages)
        llm, inner = self.llm, self.patch.inner
        if call.model is not None:
            llm = self.run.fairlead.model_named(call.model)
            own = vars(llm).get(self.patch.name)
            inner = own.inner if isinstance(own, ModelPatch) and own.llm is llm else getattr(llm, self.patch.name)
        if AfterModel in self.run.fairlead.sessions.hooks.subscribed_steps:
            self.measured, self.used = llm, _usage(llm)
        if self.patch.name == "acall":
            return self._asend(llm, inner, sent)
        with self._overrides(llm):
            return inner(sent, **self.options)

    async def _asend(self, llm: Any, inner: Any, sent: list[Message]) -> Any:
        with self._overrides(llm):
            return await inner(sent, **self.options)

    def _overrides(self, llm: Any) -> ExitStack:
        """Have the model stop and stream as the agent's own would."""
        overrides = ExitStack()
        if llm is not self.llm:
            overrides.enter_context(call_stop_override(llm, self.llm.stop_sequences))
        if self.buffers or (self.streams and llm is not self.llm):
            overrides.enter_context(call_stream_override(llm, not self.buffers))
        return overrides

    def read(self, answer: Any) -> Reply:
        usage = None
        if self.measured is not None:
            sent, received = (now - before for now, before in zip(_usage(self.measured), self.used, strict=True))
            usage = {"input_tokens": sent, "output_tokens": received} if sent or received else None
        return Reply(text_of(answer) or "", usage, "tool_use" if isinstance(answer, list) else "end_turn")

    def answer(self, result: ModelResult, turn: Turn) -> Any:
        """The answer for crewai. Calls stay as they are, whatever text hooks give."""
        if result.text is None or (isinstance(result.native, list) and not turn.over):
            return result.native
        if result.native is None or turn.over:
            return self.answer_with(result.text, None)
        return self.answer_with(result.text, result.native, whole=True)

    def answer_with(self, text: str | None, answer: Any, whole: bool = False) -> Any:
        """An answer with this text. `whole` if it includes the thoughts and actions of a text model."""
        kind = getattr(self.run.executor, "response_model", None)
        if kind is not None and answer is None:
            answer = kind.model_construct()  # crewai would call the model to make an object of any other
        if whole and isinstance(answer, str) and text and text.strip():
            return text
        try:
            return as_answer(text, answer, with_tools=self.with_tools)
        except ValueError:
            raise FairleadError(f"the agent must return a {type(answer).__name__}, which this is not: {text}") from None

    def show(self, text: str | None, result: ModelResult) -> None:
        """Stream an answer that was held back."""
        if text and self.streams and (self.buffers or result.native is None):
            about = {name: self.options.get(name) for name in ("from_task", "from_agent")}
            crewai_event_bus.emit(self.llm, event=LLMStreamChunkEvent(chunk=text, call_id=new_id("call"), **about))


def _usage(llm: Any) -> tuple[int, int]:
    usage = llm.get_token_usage_summary()
    return usage.prompt_tokens, usage.completion_tokens
