"""What every framework adapter is made of: an `Adapter`, and an `AgentRun` for each run of an agent.

An adapter is the class `Fairlead` that a user registers with a framework. It holds the sessions, the models that hooks
may switch to, and the runs that wait for a human. How a framework calls it is up to each adapter.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, ClassVar, Self

from ...errors import FairleadError
from ...registry import Hooks
from .flow import Flow, run_flow, run_flow_sync
from .framework import Framework
from .messages import Message, as_text
from .turn import REFUSALS, SESSIONS, ModelCall, Reply, Sessions, Turn, TurnOutput

MCP_SERVER = "mcp"
"""The `target.server` of a tool of an MCP server, where the framework does not know the server's name."""


class Closable:
    """Gives an adapter `close()`, `await aclose()` and `async with`. All of them end its sessions."""

    def closing(self) -> Flow[None]:
        """End the sessions, and the runs that wait for a human."""
        raise NotImplementedError

    def close(self) -> None:
        """End all sessions, where nothing can be awaited."""
        run_flow_sync(self.closing())

    async def aclose(self) -> None:
        """End all sessions, and the runs that wait for a human."""
        await run_flow(self.closing())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class Adapter(Closable):
    """Runs the agents of one framework under hooks. Each framework has a subclass, `Fairlead`."""

    framework: ClassVar[Framework]

    def __init__(
        self,
        hooks: Hooks | None = None,
        *,
        models: Mapping[str, Any] | None = None,
        session_id: str | None = None,
        **about: Any,
    ) -> None:
        self.sessions = Sessions(hooks, self.framework, asks=True, session_id=session_id, **about)
        self.models = dict(models or {})
        """The models that a hook may switch to, by name."""
        self.session_id = session_id
        """The session of all runs, if they are to share one."""
        self.paused: OrderedDict[Any, Any] = OrderedDict()
        """Runs that wait for a human, by whatever the framework knows them by. The oldest is first."""

    def closing(self) -> Flow[None]:
        while self.paused:
            yield from self.abandon_oldest()
        yield from self.sessions.closing()

    def pause(self, key: Any, run: Any) -> Flow[None]:
        """Keep a run until a human has answered. If too many wait, the oldest ends without an answer."""
        old = self.paused.pop(key, None)
        self.paused[key] = run
        if old is not None:
            yield from old.fail(CancelledError())
        while len(self.paused) > SESSIONS:
            yield from self.abandon_oldest()

    def abandon_oldest(self) -> Flow[None]:
        """End the run that has waited longest. A subagent has waited longer than the agent that started it."""
        _, run = self.paused.popitem(last=False)
        yield from run.fail(CancelledError())


class AgentRun:
    """One run of an agent: its turn, and how far that is. A subagent's run may have several turns."""

    turn: Turn
    refusal: str | None = None
    """Why hooks did not let the subagent start, if so."""
    ended = False
    """Whether the turn is over."""
    stopped = False
    """Whether hooks know that the subagent has stopped."""

    @property
    def has_turn(self) -> bool:
        """Whether the turn has been opened."""
        return "turn" in self.__dict__

    def start_subagent(self, parent: Turn, name: str, message: Any) -> Flow[Any]:
        """Open the turn of a subagent that a parent starts. Gives the message that hooks leave it."""
        text = as_text(message)
        self.turn, changed, self.refusal = yield from parent.subagent(name, text)
        if self.refusal is not None:
            self.turn.over, self.turn.end_message = True, self.refusal
        return message if changed is None or changed == text else changed

    def end(self, text: str | None, *, leaves: bool = True) -> Flow[TurnOutput]:
        """End the turn. Gives what the user gets to see."""
        output = TurnOutput(self.refusal, True)
        if self.refusal is None:
            output = yield from self.turn.end(text, leaves=leaves)
        self.ended = True
        return output

    def stop(self) -> Flow[str | None]:
        """Tell the parent's hooks that the subagent stops, once. Gives what it is to continue with, if it is to."""
        parent = self.turn.parent
        if parent is None or self.stopped or self.refusal is not None:
            return None
        self.stopped = True
        return (yield from parent.stop_subagent(self.turn))

    def renew(self) -> None:
        """Give a subagent that continues another turn."""
        self.turn = self.turn.again()
        self.ended = self.stopped = False

    def reopen(self) -> None:
        """Take the end back: the framework continues with the turn."""
        self.turn.reopen()
        self.ended = self.stopped = False

    def fail(self, error: BaseException) -> Flow[None]:
        """End the turn early, and tell hooks why. The caller raises the error."""
        if not self.has_turn or self.refusal is not None:
            return
        yield from self.turn.failed(error)
        with suppress(FairleadError):  # the caller of the parent gets the error that ended the subagent
            yield from self.stop()


@contextmanager
def without(turn: Turn, event: str, part: str) -> Iterator[None]:
    """Report one capability as missing at this point, though the framework's table has it."""
    session = turn.session
    can = session.capabilities or {}
    session.capabilities = {**can, event: frozenset(can.get(event, ())) - {part}}
    try:
        yield
    finally:
        session.capabilities = can


def safety_from_hints(hints: Any) -> dict[str, Any]:
    """The `safety` of a tool, from the annotations of its MCP server: an object or a mapping with hints."""
    for name, safety in (("readOnlyHint", "read_only"), ("destructiveHint", "destructive")):
        if (hints.get(name) if isinstance(hints, Mapping) else getattr(hints, name, None)) is True:
            return {"safety": safety}
    return {}


def judge_live_request(turn: Turn, model: str | None, messages: Callable[[], Sequence[Message]]) -> Flow[ModelCall]:
    """Have hooks judge a request whose answer is streamed live. A refused one is judged again, a few times.

    If a hook answers in place of the model, `answer` is set, and hooks have judged that, too.
    """
    for attempt in range(1, REFUSALS + 1):
        call = yield from turn.before_model(model, messages(), attempt=attempt)
        if not call.refused:
            break
    else:
        turn.end_refused()
        call = ModelCall(answer=turn.end_message or "")
    if call.answer is not None and not turn.over:
        yield from turn.after_model(call.model or model, Reply(call.answer))
    return call
