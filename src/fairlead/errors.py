"""The errors that fairlead raises, and the suggestions they end with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_LONGEST_NAME = 200
"""Characters of a name that an error shows. A longer name is not compared with others."""


class FairleadError(Exception):
    """The base class of every error that fairlead raises on purpose."""


class UnknownName(FairleadError, ValueError, TypeError):
    """An unknown name of an event, a field, a control or an option. `meant` is the right one, where it is known."""

    def __init__(
        self, what: str, name: object, valid: Iterable[str], where: str = "", meant: str | None = None
    ) -> None:
        shown = name if not isinstance(name, str) or len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."
        suggestion = nearest(name, valid) if meant is None else f"; did you mean {meant!r}?"
        super().__init__(f"unknown {what} {shown!r}{where}{suggestion}")


class RegistrationError(FairleadError, ValueError):
    """A hook that cannot be registered as it was described."""


class RunnerFailed(FairleadError):
    """A program, service or model did not judge a step, or its answer is unusable. `details` are for the record."""

    def __init__(self, problem: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(problem)
        self.details = details


class HookUnavailable(FairleadError):
    """A hook cannot run on this machine: something that it needs is missing, and `missing` names it."""

    def __init__(self, problem: str, missing: str = "") -> None:
        super().__init__(problem)
        self.missing = missing


class MissingVariable(HookUnavailable):
    """An environment variable that a hook needs is not set."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the environment variable {name} is not set", name)


class MalformedVerdict(FairleadError, ValueError):
    """A verdict the event does not take. `field` names the part that is wrong; `details` are for the record."""

    details: dict[str, Any] | None = None

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"malformed verdict: {field}: {problem}")
        self.field = field


class ReadOnlyError(FairleadError, TypeError, AttributeError):
    """A hook tried to edit a step in place."""


class HookTimeout(FairleadError, TimeoutError):
    """A hook did not answer within its time-out."""


class Quarantined(FairleadError):
    """A hook that failed too often in a row was not started."""


class Unenforceable(FairleadError):
    """The decision denies at an event at which the host cannot deny."""


class ArgumentsChanged(FairleadError):
    """A tool was about to run with other arguments than hooks have judged, so it did not run.

    Where that can only be seen afterwards, the tool `ran`, and the error ends the turn.
    """

    def __init__(
        self, tool: str, call_id: str | None, by: str = "code between the hooks and the tool", *, ran: bool = False
    ) -> None:
        what = "ran with other arguments" if ran else "did not run"
        super().__init__(
            f"tool {tool!r} (call {call_id}) {what}: {by} changed its arguments after hooks had judged them; "
            "make the change before the hooks, or let a hook make it: change(args=...)"
        )
        self.tool = tool
        self.call_id = call_id


class HookAborted(FairleadError):
    """A hook failed the whole request. Its text is `[name:hook_abort] reason`."""

    def __init__(self, name: str, reason: str | None) -> None:
        super().__init__(f"[{name}:hook_abort]" if reason is None else f"[{name}:hook_abort] {reason}")
        self.name = name
        self.reason = reason


def nearest(name: object, valid: Iterable[str]) -> str:
    """The end of an error about an unknown name: the closest valid name, or all of them."""
    names = sorted(set(valid))
    if meant := closest(str(name)[:_LONGEST_NAME], names):
        return f"; did you mean {meant!r}?"
    return f"; use one of {', '.join(names)}" if names else ""


def closest(name: str, valid: Iterable[str], cutoff: float = 0.5) -> str | None:
    """The valid name that is most like this one, if any is at all."""
    from difflib import get_close_matches  # slow to import, and needed only for an error

    return next(iter(get_close_matches(name, list(valid), n=1, cutoff=cutoff)), None)


def describe(error: BaseException) -> str:
    """An error in one line, whatever it is."""
    try:
        text = str(error)
    except Exception:
        text = "(an error that cannot be shown)"
    if isinstance(error, FairleadError):
        return text  # its text needs no class name
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
