"""A flow is host logic that runs in sync and async hosts alike.

It is a generator that yields commands (`Dispatch`, `Call`) and receives their results. `run_flow` is the only
trampoline: it performs the commands of a flow, in async hosts directly and in sync hosts through `run_flow_sync`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator
from types import CoroutineType, NoneType
from typing import Any, TypeAlias, TypeVar

import msgspec

from ...engine.threads import portal
from ...lifecycle import Step
from ...session import Session

T = TypeVar("T")
_PLAIN = frozenset({str, dict, list, tuple, bool, int, float, NoneType})
"""Types of most results: neither awaitable, for which `inspect.isawaitable` is slow, nor a `Pause`."""


class Dispatch(msgspec.Struct, gc=False):
    """Asks for a step to be dispatched in a session. The result is the `Decision`."""

    session: Session
    step: Step

    def run(self) -> Any:
        return self.session.dispatch(self.step)

    def run_sync(self) -> Any:
        return self.session.dispatch_sync(self.step)


class Call(msgspec.Struct, gc=False):
    """Asks for a function to be called. The result is what it returns, awaited if need be."""

    function: Callable[[], Any]

    def run(self) -> Any:
        return self.function()

    def run_sync(self) -> Any:
        result = self.function()
        return _wait_for(result) if result.__class__ is CoroutineType else result


class Pause(msgspec.Struct):
    """The result of a `Call` that the host performs by itself, such as running the tool.

    `run_flow` returns it instead of going on. The host calls `run_flow` again, with the result or the error.
    """


Flow: TypeAlias = Generator[Dispatch | Call, Any, T]
"""A generator that yields commands (`Dispatch`, `Call`) and receives their results."""


async def run_flow(
    flow: Flow[T], value: Any = None, error: BaseException | None = None, *, blocking: bool = False
) -> T:
    """Run a flow to its end, or to the next `Pause`, which is then returned.

    A paused flow goes on with `value` as the result of the call that paused it, or with `error` raised there.
    With `blocking`, commands run to their end on this thread and nothing is awaited.
    """
    while True:
        try:
            command = flow.send(value) if error is None else flow.throw(error)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        value = error = None
        try:
            value = command.run_sync() if blocking else command.run()
            if value.__class__ in _PLAIN:
                continue
            if not blocking and (value.__class__ is CoroutineType or inspect.isawaitable(value)):
                value = await value
            if isinstance(value, Pause):
                return value  # type: ignore[return-value]
        except BaseException as raised:  # the flow handles the error
            error = raised


def run_flow_sync(flow: Flow[T], value: Any = None, error: BaseException | None = None) -> T:
    """Run a flow as `run_flow` does, on this thread."""
    try:
        run_flow(flow, value, error, blocking=True).send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("a blocking flow awaits nothing")


def _wait_for(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return portal.run(lambda: coroutine)
