"""The boundary check: in every test of this folder, a tool runs only with arguments that hooks have judged.

Each decision at `before_tool` that lets a call run gives one permit, for this tool and these arguments. Each run of a
tool's own function uses one permit up. A run without a permit is a way around the hooks, and fails the test. So does a
second run with one permit: a call that is made again is judged again.

The runs come from the tools themselves. A driver whose `tap` returns True reports every function that the framework
calls as a tool. Without it, the tools of the `Workbench` report themselves.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

from fairlead import Decision, Hooks
from fairlead.frozen import thaw
from fairlead.lifecycle import AfterPermission, AfterTool, BeforeTool
from fairlead.session import Session

PAGES = Path(__file__).parents[3] / "docs/frameworks"


@dataclass
class Permit:
    """That one call may run once, with these arguments."""

    tool: str
    args: dict[str, Any]


@dataclass
class Boundary:
    """What hooks have let run in one test, and what has run."""

    ways_around: list[str] = field(default_factory=list)
    """The runs of tools that no decision permits."""
    same_ids: bool = False
    """Calls of one id are different calls, if their arguments are."""
    judged: int = 0
    """The runs of tools that a decision permits."""
    _calls: dict[Any, Permit] = field(default_factory=dict)
    _last: dict[Any, Permit] = field(default_factory=dict)
    _hooks: list[Hooks] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def decide(self, session: Session, decision: Decision[Any]) -> None:
        """Note what a decision says about a call."""
        step = decision.step
        original = decision.original.args if self.same_ids and isinstance(step, BeforeTool) else None
        key = (session.session_id, step.call_id, json.dumps(thaw(original)))
        with self._lock:
            if isinstance(step, BeforeTool):
                self._calls.pop(key, None)
                if not decision.denied and step.result is None and decision.control != "stop":
                    self._calls[key] = self._last[key] = Permit(step.tool, thaw(step.args))
            elif isinstance(step, AfterPermission) and not step.granted:
                self._calls.pop(key, None)
            elif isinstance(step, AfterTool) and decision.control == "retry" and key in self._last:
                self._calls[key] = self._last[key]

    def ran(self, tool: str, args: dict[str, Any], function: Callable[..., Any] | None = None) -> None:
        """Note that a tool's function runs with these arguments, and use a permit up."""
        with self._lock:
            for key, permit in self._calls.items():
                if permit.tool == tool and same_arguments(permit.args, args, function):
                    del self._calls[key]
                    self.judged += 1
                    return
            if any(BeforeTool in hooks.subscribed_steps for hooks in self._hooks):
                left = [f"{one.tool} {one.args}" for one in self._calls.values()] or "nothing"
                self.ways_around.append(f"{tool} ran with {args}; hooks have let run: {left}")


def same_arguments(judged: dict[str, Any], got: dict[str, Any], function: Callable[..., Any] | None = None) -> bool:
    """Whether a function got what was judged. Beside that, it may get its defaults, and objects of the framework."""
    if any(name not in got or plain(got[name]) != plain(value) for name, value in judged.items()):
        return False
    parameters = inspect.signature(function).parameters if function is not None else {}
    for name, value in got.items():
        if name in judged or not isinstance(value, (str, int, float, bool, list, dict)):
            continue
        if name not in parameters or parameters[name].default != value:
            return False
    return True


def plain(value: Any) -> Any:
    """A value in which a framework's own types, and the JSON that the model wrote for them, are the same."""
    return _as_text(json.loads(json.dumps(value, default=_encode, sort_keys=True)))


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_text(one) for name, one in value.items()}
    return [_as_text(one) for one in value] if isinstance(value, list) else str(value)


def _encode(value: Any) -> Any:
    return value.model_dump(mode="json") if hasattr(value, "model_dump") else str(value)


def not_governed(name: str) -> str:
    """The section "Not governed" of a framework's page, in one line. Empty if it has none."""
    _, _, section = (PAGES / f"{name}.md").read_text().partition("\n## Not governed\n")
    return " ".join(section.partition("\n## ")[0].split())


_current: Boundary | None = None


def report_run(tool: str, args: dict[str, Any], function: Callable[..., Any] | None = None) -> None:
    """What a tap calls when a tool's function runs."""
    if _current is not None:
        _current.ran(tool, args, function)


@contextmanager
def watched(patch: pytest.MonkeyPatch) -> Iterator[Boundary]:
    """Keep what is decided and what runs meanwhile."""
    global _current
    boundary = _current = Boundary()
    made, dispatch, dispatch_sync = Hooks.__init__, Session.dispatch, Session.dispatch_sync

    def init(self: Hooks, *args: Any, **options: Any) -> None:
        made(self, *args, **options)
        boundary._hooks.append(self)

    async def watched_dispatch(self: Session, step: Any) -> Any:
        decision = await dispatch(self, step)
        if hasattr(step, "call_id"):
            boundary.decide(self, decision)
        return decision

    def watched_dispatch_sync(self: Session, step: Any) -> Any:
        decision = dispatch_sync(self, step)
        if hasattr(step, "call_id"):
            boundary.decide(self, decision)
        return decision

    patch.setattr(Hooks, "__init__", init)
    patch.setattr(Session, "dispatch", watched_dispatch)
    patch.setattr(Session, "dispatch_sync", watched_dispatch_sync)
    try:
        yield boundary
    finally:
        _current = None
