"""A driver runs one request in a framework, with a scripted model, some tools and hooks.

Each framework has a module `driver_<name>.py` beside this one, with a class `Driver` in it. It builds
the framework's own agent, adds `Fairlead(hooks)` in the framework's own idiom, and runs the request.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, ClassVar, Literal

import boundary

from fairlead import Hooks
from fairlead.hosts.frameworks.framework import Framework

Way = Literal["plain", "wide", "limited"]
"""How a framework's own hooks are: before the tool (or around it, where that is one thing); before and after both the
tool and the model, by whatever reaches as far as ours; or before the tool, each with a time limit and a failure policy.
"""
NAME = os.environ.get("FAIRLEAD_FRAMEWORK", "loop")
"""The framework that the suite runs for."""


@dataclass
class Say:
    """The model answers with a text."""

    text: str


@dataclass
class Call:
    """The model asks for tools, all at once: (tool, arguments)."""

    tools: list[tuple[str, dict[str, Any]]]
    text: str = ""


def call(tool: str, **args: Any) -> Call:
    return Call([(tool, args)])


Script = list[Say | Call | Exception]


@dataclass
class Played:
    """What came of a request."""

    output: str | None = None
    """What the user gets to see: the final text. None if there is none."""
    error: BaseException | None = None
    """What the run raised."""
    sent: list[list[str]] = field(default_factory=list)
    """What the model was sent, per request, a helper's requests among them: its messages as `role: text`, where the
    role is one of system, user, assistant and tool. An assistant's calls are shown as
    `assistant: calls shell {"command": "ls"}` (JSON, sorted keys)."""
    models: list[str] = field(default_factory=list)
    """The name of the model that was asked, per request."""
    pieces: list[str] = field(default_factory=list)
    """The texts that were streamed to the user, piece by piece."""
    history: list[str] = field(default_factory=list)
    """The conversation as the framework keeps it after the run, in the notation of `sent`; empty if it keeps none."""
    asked: list[str] = field(default_factory=list)
    """What a human was shown, each time that the framework's own question was answered."""


@dataclass
class Workbench:
    """The tools that every driver has, and what they were called with. Their functions are plain Python functions."""

    ran: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    running: int = 0
    at_once: int = 0
    """The most calls of `slow` that ran at the same time."""

    def _run(self, tool: str, args: dict[str, Any]) -> None:
        self.ran.append((tool, args))
        if not Driver.tapped:
            boundary.report_run(tool, args)

    def shell(self, command: str) -> str:
        """Run a command."""
        self._run("shell", {"command": command})
        return f"ran {command}"

    def read(self, path: str) -> str:
        """Read a file."""
        self._run("read", {"path": path})
        return f"contents of {path}"

    def fail(self, why: str) -> str:
        """Fail."""
        self._run("fail", {"why": why})
        raise ValueError(why)

    def flaky(self, why: str) -> str:
        """Fail the first time, and work the second."""
        self._run("flaky", {"why": why})
        if len(self.ran) == 1:
            raise ValueError(why)
        return "worked"

    async def slow(self, name: str) -> str:
        """Take a moment."""
        self._run("slow", {"name": name})
        self.running += 1
        self.at_once = max(self.at_once, self.running)
        await asyncio.sleep(0.05)
        self.running -= 1
        return f"{name} is done"

    @property
    def tools(self) -> list[Callable[..., Any]]:
        return [self.shell, self.read, self.fail, self.flaky, self.slow]


class Driver:
    """A framework, and how an agent of it is run. Subclassed once per framework."""

    framework: ClassVar[Framework]
    streams: ClassVar[bool] = True
    """Whether the framework can stream its answer."""
    sync: ClassVar[bool] = False
    """Whether it can also be run where nothing can be awaited."""
    interrupts: ClassVar[bool] = False
    """Whether it has its own way to ask a human: then `play(approve=...)` answers there."""
    helpers: ClassVar[bool] = False
    """Whether it has subagents or handoffs: then `play(helper=[...])` gives the script of one that is named
    "helper", and is reached by `call("helper", message="...")`, or by the framework's own name for that."""

    tapped: ClassVar[bool] = False
    """Whether `tap` reports the tools of this process."""

    @classmethod
    def tap(cls) -> bool:
        """Have the framework call `boundary.report_run` right before it calls the function of a tool, for every tool.

        It is called once, before test modules are imported. Returns whether that works here; if not, only the tools
        of the `Workbench` report their runs.
        """
        return False

    async def play(
        self,
        hooks: Hooks,
        *script: Say | Call | Exception,
        given: str = "Go.",
        bench: Workbench | None = None,
        streaming: bool = False,
        sync: bool = False,
        session_id: str | None = None,
        approve: bool | None = None,
        helper: list[Say | Call | Exception] | None = None,
        system_prompt: str = "Be brief.",
        adapter: Any = None,
    ) -> Played:
        """Run one request. The model says "Done." when the script is at its end.

        There are two models, "first", which is the agent's, and "second", to which a hook may switch; they share the
        script. What the run raises is in `Played.error`, not raised. `session_id` is the framework's own id of a
        conversation that goes on. `approve` answers the framework's own question (None: it is left unanswered).
        `adapter` is the `Fairlead` to use; by default a new one, which is closed after the run.
        """
        raise NotImplementedError

    def adapter(self, hooks: Hooks) -> Any:
        """A new `Fairlead(hooks)`, for `play(adapter=...)`, which then does not close it."""
        raise NotImplementedError

    async def close(self, adapter: Any) -> None:
        await adapter.aclose()

    # --- for the bench ----------------------------------------------------------------------

    module: ClassVar[str] = ""
    """What a user of the framework imports."""
    native: ClassVar[bool] = False
    """Whether the framework has hooks of its own around a tool call to compare with."""
    ways: ClassVar[tuple[Way, ...]] = ()
    """Which others than plain ones it can have."""

    async def work(self, calls: int, *, hooks: Hooks | None = None, native: int = 0, way: Way = "plain") -> None:
        """One request with so many calls, one after another, of a tool that does nothing.

        It runs with hooks, with so many hooks of the framework's own that do nothing, or with neither. Each call is a
        `tick`.
        """
        raise NotImplementedError


def limited(hook: Callable[..., Any]) -> Callable[..., Any]:
    """A hook of a framework's own that promises what each of ours does: its time is limited, its failure refuses."""

    async def promising(*given: Any, **named: Any) -> Any:
        try:
            async with asyncio.timeout(30):
                return await hook(*given, **named)
        except Exception as error:
            raise PermissionError(f"{hook.__name__} has failed: {error}") from error

    return promising


TICKS: deque[float] = deque(maxlen=1000)


def tick() -> None:
    """Remember when this was."""
    TICKS.append(perf_counter())
