"""The base of hooks that wrap another hook."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..lifecycle import Step


class HookWrapper:
    """Runs another hook, and closes it when it is closed itself."""

    def __init__(self, fn: Callable[[Step], Any]) -> None:
        self.fn = fn

    def __repr__(self) -> str:
        return repr(self.fn)

    async def __call__(self, step: Step) -> Any:
        result = self.fn(step)
        return await result if result is not None and inspect.isawaitable(result) else result

    async def aclose(self) -> None:
        close = getattr(self.fn, "aclose", None)
        if close is not None:
            await close()
