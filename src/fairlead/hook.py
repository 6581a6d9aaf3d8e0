"""A hook: a callable, the events and steps it applies to, and how it runs.

Options are checked once, when the hook is made. What the engine's loop needs (`call`, `is_async`, `limit`) is computed
then, too, so that the loop only loops.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection
from functools import partial
from time import monotonic
from typing import Any, Literal, TypedDict, get_args

import msgspec

from .errors import MalformedVerdict, Quarantined, RegistrationError, UnknownName
from .glob import compile_glob, is_exact
from .lifecycle import EVENTS, FAILURE_POLICIES, OUTCOMES, FailurePolicy, Step, iter_events
from .tools import KINDS, SAFETIES, Kind, Safety, View
from .verdict import Verdict, check

Phase = Literal["transform", "gate", "observe"]
Layer = Literal["builtin", "system", "user", "project"]
PHASES: tuple[Phase, ...] = get_args(Phase)
LAYERS: tuple[Layer, ...] = get_args(Layer)

DEFAULT_TIMEOUT = 5.0
DEFAULT_PRIORITY = 50
MAX_TEXT_LIMIT = 1 << 20
"""The highest `text_limit` of a hook, in bytes."""


class Default:
    """A time-out that was not set for the hook itself. It leaves sync functions inline, where nothing can end them."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"Default({self.seconds})"


DEFAULT = Default(DEFAULT_TIMEOUT)

OneOrMore = str | Collection[str]


class HookOptionsButKind(TypedDict, total=False):
    """The keyword options of `hooks.on.<event>(...)` without `kind`, which can narrow the type of the step."""

    name: str
    tool: OneOrMore
    safety: Safety | Collection[Safety]
    outcome: OneOrMore
    agent: OneOrMore
    host: OneOrMore
    phase: Phase
    priority: int
    timeout: float | None
    on_failure: FailurePolicy | Verdict
    text_limit: int | None
    blocking: bool
    detached: bool
    enforce: bool
    quarantine: tuple[int, float] | None


class HookOptions(HookOptionsButKind, total=False):
    """The keyword options of `hooks.on.<event>(...)` and `hooks.add(...)`."""

    kind: Kind | Collection[Kind]


class RunnerResult(msgspec.Struct, frozen=True):
    """The result of a runner: a verdict, as a hook returns it, and details for the record."""

    verdict: Any
    details: dict[str, Any]


class PhaseAware:
    """A runner that does something else for observers: a hook in phase observe calls `watch` instead."""

    async def watch(self, step: Step) -> Any:
        """Handle a step for an observer."""
        raise NotImplementedError


class Quarantine:
    """Stops a hook from starting for `period` seconds after `limit` failures in a row, then tries it once."""

    __slots__ = ("_streak", "_trial", "_until", "limit", "period")

    def __init__(self, limit: int, period: float) -> None:
        self.limit = limit
        self.period = period
        self.reset()

    def reset(self) -> None:
        """End the quarantine and forget all failures."""
        self._streak = 0
        self._until = 0.0
        self._trial = False

    def admit(self, name: str) -> None:
        """Let the hook start, or raise `Quarantined`."""
        if self._until:
            left = self._until - monotonic()
            if left > 0 or self._trial:
                raise Quarantined(
                    f"failed {self._streak} times in a row and is not started for another {max(left, 0):.0f} s; "
                    f"hooks.reset({name!r}) lifts it"
                )
            self._trial = True

    def failed(self) -> None:
        """Count a failure, and start the quarantine if it was one too many."""
        self._streak += 1
        if self._trial or self._streak >= self.limit:
            self._until = monotonic() + self.period
            self._trial = False

    def cancelled(self) -> None:
        """Do not count a cancelled start: it says nothing about the hook."""
        self._trial = False


class Hook:
    """A registered hook. Made by `hooks.on...`, `hooks.add(...)`, or directly for `replace_all`.

    Made directly, it has the options that are passed here: `hooks.add` alone reads the attributes of an object.
    """

    __slots__ = (
        "agent", "blocking", "call", "detached", "enforce", "events", "everywhere", "fn", "host", "is_async", "kind",
        "layer", "limit", "locked", "name", "note", "on_failure", "order", "outcome", "owner", "patterns", "phase",
        "priority", "quarantine", "safety", "source", "text_limit", "timeout", "tool", "version", "view",
        "wants_decision",
    )  # fmt: skip

    def __init__(
        self,
        fn: Callable[..., Any],
        on: OneOrMore,
        *,
        name: str | None = None,
        tool: OneOrMore | None = None,
        kind: OneOrMore | None = None,
        safety: OneOrMore | None = None,
        outcome: OneOrMore | None = None,
        agent: OneOrMore | None = None,
        host: OneOrMore | None = None,
        phase: Phase = "transform",
        priority: int = DEFAULT_PRIORITY,
        timeout: float | Default | None = DEFAULT,
        on_failure: FailurePolicy | Verdict | None = None,
        text_limit: int | None = None,
        blocking: bool = False,
        detached: bool = False,
        enforce: bool = True,
        quarantine: tuple[int, float] | None = None,
        layer: Layer = "user",
        source: str = "code",
        locked: bool = False,
        version: str | None = None,
    ) -> None:
        self.fn = fn
        self.name = name if name is not None else _name_of(fn)
        self.everywhere = on == "*"
        self.events = frozenset(event.name for event in iter_events(on))
        self.tool = self._names("tool", tool)
        self.kind = self._names("kind", kind)
        self.safety = self._names("safety", safety)
        self.outcome = self._names("outcome", outcome)
        self.agent = self._names("agent", agent)
        self.host = self._names("host", host)
        self.phase: Phase = phase
        self.priority = priority
        self.timeout = timeout.seconds if isinstance(timeout, Default) else timeout
        self.on_failure: FailurePolicy | Verdict = "closed" if on_failure is None else on_failure
        self.text_limit = text_limit  # bytes of each of its texts; None is `TEXT_LIMIT`
        self.blocking = blocking
        self.detached = detached
        self.enforce = enforce
        self.quarantine = None if quarantine is None else _parse_quarantine(quarantine, self._error)
        self.layer: Layer = layer
        self.source = source
        self.locked = locked  # neither a pause nor the monitor mode of the table switches it off
        self.version = version  # of its code, where the loader knows it
        self.owner: str | None = None  # the object whose method this is
        self.note: str | None = None  # a text that is added to every denial of this hook
        self.view: View | None = None  # how its configuration file describes tools
        self.order: tuple[int, int, int, int] = (0, 0, 0, 0)
        self._check(on_failure)
        self._prepare(timeout)

    def __repr__(self) -> str:
        return f"<hook {self.name!r} on {self.described_events} ({self.phase})>"

    @property
    def described_events(self) -> str:
        """The names of its events, for a message."""
        return "*" if self.everywhere else ", ".join(name for name in EVENTS if name in self.events)

    def set_order(self, sequence: int) -> None:
        """Set the hook's position in every chain: by phase, priority, layer, registration."""
        self.order = (PHASES.index(self.phase), self.priority, LAYERS.index(self.layer), sequence)

    # --- checking ---------------------------------------------------------------------------

    def _error(self, problem: str) -> RegistrationError:
        return RegistrationError(f"hook {self.name!r}: {problem}")

    def _names(self, option: str, value: OneOrMore | None) -> tuple[str, ...] | None:
        if value is None:
            return None
        names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Collection) else ()
        if not names or not all(isinstance(name, str) for name in names):
            what = "a glob" if option == "tool" else "a name"
            raise self._error(f"{option}= is {what} or a list of them, not {value!r}")
        return names

    def _check(self, on_failure: object) -> None:
        choices: list[tuple[str, tuple[str, ...], tuple[str, ...]]] = [
            ("phase", (self.phase,), PHASES),
            ("on_failure", (self.on_failure,) if isinstance(self.on_failure, str) else (), FAILURE_POLICIES),
            ("layer", (self.layer,), LAYERS),
            ("kind", self.kind or (), KINDS),
            ("safety", self.safety or (), SAFETIES),
            ("outcome", self.outcome or (), OUTCOMES),
        ]
        for option, values, valid in choices:
            for value in values:
                if value not in valid:
                    raise UnknownName(option, value, valid, f" for hook {self.name!r}")
        self.patterns = tuple(compile_glob(pattern) for pattern in self.tool or ())
        if not isinstance(self.name, str) or not self.name:
            raise RegistrationError(f"a hook's name must be a non-empty string, not {self.name!r}")
        if not self.events:
            raise self._error("on= names no event")
        if not callable(self.fn):
            raise self._error(f"{self.fn!r} cannot be called")
        if isinstance(self.priority, bool) or not isinstance(self.priority, int):
            raise self._error(f"priority must be a whole number, not {self.priority!r}")
        for option in ("blocking", "detached", "enforce"):
            if not isinstance(getattr(self, option), bool):
                raise self._error(f"{option} must be True or False, not {getattr(self, option)!r}")
        self._check_timing()
        self._check_filters()
        self._check_text_limit()
        if not isinstance(self.on_failure, str):
            self._check_failure_verdict(self.on_failure)
        if self.phase == "observe":
            if on_failure not in (None, "open"):
                raise self._error("an observer's failures go nowhere, so it takes no on_failure; use phase='gate'")
        elif self.detached:
            raise self._error("only observers can be detached; add phase='observe'")

    def _check_timing(self) -> None:
        limit = self.timeout
        if limit is not None and not (_is_number(limit) and 0 < limit < 1e9):
            raise self._error(f"timeout must be a number of seconds above 0, or None, not {limit!r}")

    def _check_text_limit(self) -> None:
        limit = self.text_limit
        is_number = isinstance(limit, int) and not isinstance(limit, bool)
        if limit is not None and not (is_number and 0 < limit <= MAX_TEXT_LIMIT):
            raise self._error(f"text_limit must be a number of bytes, {MAX_TEXT_LIMIT:,} at most, not {limit!r}")

    def _check_failure_verdict(self, verdict: object) -> None:
        """Check a failure policy that is a verdict: each event of the hook must take it."""
        if not isinstance(verdict, Verdict):
            raise self._error(f"on_failure is one of {', '.join(FAILURE_POLICIES)}, or a verdict, not {verdict!r}")
        for event in iter_events("*" if self.everywhere else sorted(self.events)):
            try:
                check(verdict, None, event, may_change=self.phase == "transform", may_loosen=self.layer != "project")
            except MalformedVerdict as error:
                raise self._error(f"on_failure at {event.name}: {error}") from None

    def _check_filters(self) -> None:
        if self.everywhere:
            return
        for option in ("tool", "kind", "safety"):
            if getattr(self, option) is not None:
                for event in sorted(self.events):
                    if not EVENTS[event].about_tool:
                        raise self._error(f"{option}= needs an event about a tool, and {event} is not")
        if self.outcome is not None and self.events != {"after_tool"}:
            raise self._error("outcome= goes with after_tool only")

    # --- preparing --------------------------------------------------------------------------

    def _prepare(self, timeout: float | Default | None) -> None:
        """Compute what the loop needs: what to call, whether to await it, and for how long."""
        fn = self.fn.watch if self.phase == "observe" and isinstance(self.fn, PhaseAware) else self.fn
        if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
            raise self._error("a hook returns its verdict; it cannot yield")
        self.is_async = inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)
        self.wants_decision = self._takes_decision()
        self.call = fn
        if self.blocking and self.is_async:
            raise self._error("blocking=True is for sync functions; this one is async")
        limited = timeout is not None and not isinstance(timeout, Default)
        if not self.is_async and (self.blocking or limited):
            self.is_async = True
            self.call = _on_thread(fn)
        if self.quarantine is not None:
            self.call = _with_quarantine(self.call, self.quarantine, self.name)
        self.limit = math.inf if self.timeout is None or not self.is_async else float(self.timeout)

    def _takes_decision(self) -> bool:
        try:
            parameters = inspect.signature(self.fn).parameters.values()
        except (TypeError, ValueError):
            return False
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        required = [p for p in positional if p.default is p.empty]
        takes_any = bool(positional) or any(p.kind is p.VAR_POSITIONAL for p in parameters)
        limit = 2 if self.phase == "observe" else 1
        unmet = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
        if len(required) > limit or not takes_any or unmet:
            shape = "(step) or (step, decision)" if limit == 2 else "(step)"
            raise self._error(f"a hook in phase {self.phase!r} is called with {shape}")
        named = limit == 2 and len(positional) == 2 and positional[1].name == "decision"
        return len(required) == 2 or named

    # --- matching ---------------------------------------------------------------------------

    def applies(self, step: Step) -> bool:
        """Whether this hook applies to the step, as it is or as the hook's own file describes its tool."""
        return self.matches(step) or (self.view is not None and any(map(self.matches, self.view.readings(step))))

    def view_of(self, step: Any) -> Any:
        """The step as this hook sees it: the first reading of its tool that the hook's filters match."""
        readings = [step] if self.view is None else self.view.readings(step)
        return next(filter(self.matches, readings), readings[0])

    def matches(self, step: Step) -> bool:
        """Whether the filters of this hook match the step. The event is not compared."""
        if self.tool is not None or self.kind is not None or self.safety is not None:
            tool = getattr(step, "tool", None)
            if tool is None or not self._matches_tool(tool):
                return False
            if self.kind is not None and step.kind not in self.kind:  # type: ignore[attr-defined]
                return False
            if self.safety is not None and step.safety not in self.safety:  # type: ignore[attr-defined]
                return False
        if self.outcome is not None and getattr(step, "outcome", None) not in self.outcome:
            return False
        if self.agent is not None and (step.agent is None or step.agent.name not in self.agent):
            return False
        return self.host is None or step.host in self.host

    def _matches_tool(self, tool: str) -> bool:
        return self.tool is None or any(pattern.fullmatch(tool) for pattern in self.patterns)

    @property
    def exact_tools(self) -> tuple[str, ...] | None:
        """The tools of this hook if it names them all; None if it has to be matched by pattern."""
        return self.tool if self.tool is not None and all(map(is_exact, self.tool)) else None


def form_of(hook: Hook) -> str:
    """How a hook runs: "python", or what its runner runs ("command", "worker", "url", "rule", "prompt")."""
    fn: Any = hook.fn
    while isinstance(fn, partial):
        fn = fn.func
    return str(fn.form) if hasattr(type(fn), "form") else "python"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _name_of(fn: Any) -> str:
    while isinstance(fn, partial):
        fn = fn.func
    name: str = getattr(fn, "__name__", None) or type(fn).__name__
    return name


def _parse_quarantine(value: Any, error: Callable[[str], RegistrationError]) -> Quarantine:
    try:
        limit, period = value
    except (TypeError, ValueError):
        limit = period = 0
    whole = isinstance(limit, int) and not isinstance(limit, bool)
    if not whole or limit < 1 or not _is_number(period) or not 0 < period < math.inf:
        raise error(f"quarantine must be (failures, seconds), such as (5, 30), not {value!r}")
    return Quarantine(limit, period)


def _on_thread(fn: Callable[..., Any]) -> Callable[..., Any]:
    from .engine.threads import threads  # slow to import, and few hooks block

    async def call(*args: Any) -> Any:
        result = await threads.run(fn, *args)
        return await result if inspect.isawaitable(result) else result

    return call


def _with_quarantine(call: Callable[..., Any], quarantine: Quarantine, name: str) -> Callable[..., Any]:
    def start(*args: Any) -> Any:
        quarantine.admit(name)
        return call(*args)

    return start
