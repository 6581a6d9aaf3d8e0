"""`Hooks`: registers hooks and dispatches steps to them.

A table of hooks never changes. Registering a hook builds a new table and swaps it in with one assignment, so a dispatch
that is under way in any thread ends with the table it started with.
"""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeVar, Unpack, overload

from msgspec.structs import replace as replace_fields

from .approvals import ApproveFn, Approver
from .decision import Decision, RunOutcome, unknown_kind
from .engine.chain import DecisionSink, Table
from .engine.detached import DetachedQueue
from .engine.dispatch import dispatch, dispatch_sync
from .engine.loop import detached_run
from .engine.run import Run
from .engine.threads import threads
from .errors import RegistrationError, UnknownName, closest
from .hook import DEFAULT, DEFAULT_PRIORITY, Default, Hook, HookOptions, HookOptionsButKind, OneOrMore
from .lifecycle import (
    EVENTS,
    BeforeTool,
    Event,
    FailurePolicy,
    Lifecycle,
    ShellCall,
    Step,
    event_also_named,
    event_meant_by,
    event_named,
    iter_events,
)
from .session import HostSessionOptions, Session
from .tools import DEFAULT_TOOLS, UNKNOWN_TOOL, Tools, UnknownTool, server_of
from .verdict import Verdict, ask, deny

if TYPE_CHECKING:
    from .packs.exemptions import Exemption
    from .packs.judging import RuleControl
    from .packs.rules import Level, Pack

S = TypeVar("S", bound=Step)
HookReturn = Verdict | Mapping[str, Any] | None
R = TypeVar("R", bound=HookReturn | Awaitable[HookReturn])
F = TypeVar("F", bound=Callable[..., Any])


class Decorate(Generic[S]):
    """`hooks.on.<event>`: registers a function, bare or with options."""

    def __init__(self, hooks: Hooks, event: Event[S]) -> None:
        self._hooks = hooks
        self._event = event

    @overload
    def __call__(self, fn: Callable[[S], R], /) -> Callable[[S], R]: ...
    @overload
    def __call__(self, fn: Callable[[S, Decision[S]], R], /) -> Callable[[S, Decision[S]], R]: ...
    @overload
    def __call__(
        self: Decorate[BeforeTool],
        /,
        *,
        kind: Literal["shell"],
        replace: bool = ...,
        **options: Unpack[HookOptionsButKind],
    ) -> _Register[ShellCall]: ...
    @overload
    def __call__(self, /, *, replace: bool = ..., **options: Unpack[HookOptions]) -> _Register[S]: ...
    def __call__(self, fn: Any = None, /, *, replace: bool = False, **options: Any) -> Any:
        def register(fn: Any) -> Any:
            self._hooks.add(fn, on=self._event.name, replace=replace, **options)
            return fn

        if fn is not None and not callable(fn):
            raise RegistrationError(f"{fn!r} is no hook; did you mean hooks.on.{self._event.name}(tool={fn!r})?")
        return register if fn is None else register(fn)


class _Register(Generic[S]):
    """The type of `hooks.on.<event>(...)`: takes a function, registers it and returns it."""

    @overload
    def __call__(self, fn: Callable[[S], R], /) -> Callable[[S], R]: ...
    @overload
    def __call__(self, fn: Callable[[S, Decision[S]], R], /) -> Callable[[S, Decision[S]], R]: ...
    def __call__(self, fn: Any, /) -> Any: ...


class On(Lifecycle):
    """`hooks.on`: one decorator per event, and `hooks.on("before_tool", "after_tool")` for several."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    def _decorate(self, event: Event[S]) -> Decorate[S]:
        return Decorate(self._hooks, event)

    def __call__(self, *events: str, replace: bool = False, **options: Unpack[HookOptions]) -> Callable[[F], F]:
        if not events or callable(events[0]):
            raise RegistrationError(
                "which event? Write @hooks.on.before_tool, or @hooks.on('before_tool', 'after_tool')"
            )
        list(iter_events("*" if events == ("*",) else events))  # finds a misspelt event here, not at the first use

        def register(fn: F) -> F:
            self._hooks.add(fn, on="*" if events == ("*",) else events, replace=replace, **options)
            return fn

        return register

    def __getattr__(self, name: str) -> Any:
        raise UnknownAttribute("event", name, EVENTS, meant=event_meant_by(name))


class UnknownAttribute(UnknownName, AttributeError):
    """An event that does not exist: `hooks.on.befor_tool`."""


class Hooks:
    """A set of registered hooks, and the engine that runs them.

    - `approver` answers `ask`, within `approval_timeout` seconds.
    - `record=True` keeps one run per started hook in each decision.
    - `enforce=False` puts every hook in monitor mode.
    - `journal` is called with every finished decision.
    - `unknown_tool` says whether a call to a tool that no table knows proceeds, asks or is denied.
    - `timeout`, `on_failure` and `priority` are for hooks that are registered in code without these options.
    """

    def __init__(
        self,
        *,
        approver: Approver | ApproveFn | None = None,
        approval_timeout: float | None = 300.0,
        record: bool = False,
        enforce: bool = True,
        journal: Callable[[Decision[Any]], None] | None = None,
        unknown_tool: UnknownTool | None = None,
        timeout: float | Default | None = DEFAULT,
        on_failure: FailurePolicy = "closed",
        priority: int = DEFAULT_PRIORITY,
    ) -> None:
        if approver is not None and not callable(getattr(approver, "approve", approver)):
            raise RegistrationError(f"an approver is a function or has a method approve(request), unlike {approver!r}")
        if approval_timeout is not None and not isinstance(approval_timeout, (int, float)):
            raise RegistrationError(f"approval_timeout is a number of seconds or None, not {approval_timeout!r}")
        self.approver = approver
        self.approval_timeout = approval_timeout
        self.enforce = enforce
        self.switch: Callable[[], bool] | None = None  # see `fairlead pause`
        self.root: str | None = None  # the project's folder, where hooks come from its configuration
        self.variables: Mapping[str, str] | None = None  # the caller's environment variables, which its hooks get
        self._record = record or journal is not None
        self._journal = journal
        self.tools = _OwnTools(self)
        self.on = On(self)
        self._lock = threading.RLock()
        self._by_name: dict[str, Hook] = {}
        self._removed: list[Hook] = []  # their processes and connections are still to be closed
        self._sequence = count()
        self._detached = DetachedQueue()
        self._defaults: dict[str, Any] = {
            "timeout": timeout if isinstance(timeout, Default) else Default(timeout),
            "on_failure": on_failure,
            "priority": priority,
        }
        Hook(_any_hook, "*", name="the defaults of Hooks(...)", **self._defaults)  # finds a mistake here
        self.table = Table(self, ())  # the hooks in force
        if unknown_tool is not None:
            self._register(tuple(unknown_tool_hooks(unknown_tool, self.tools)), replace=False)

    # --- registering ------------------------------------------------------------------------

    @overload
    def add(self, fn: Callable[..., Any], on: OneOrMore, *, replace: bool = ..., **options: Any) -> Hook: ...
    @overload
    def add(self, fn: object, on: None = None, *, replace: bool = ..., **options: Any) -> tuple[Hook, ...]: ...
    def add(
        self, fn: Any, on: OneOrMore | None = None, *, replace: bool = False, **options: Any
    ) -> Hook | tuple[Hook, ...]:
        """Register a function for the events that `on` names, or an object by its methods.

        An object's methods are registered for the events they are named after. Its attributes `name`, `priority`,
        `timeout` and `on_failure` are options, unless the call sets them.
        """
        for option in options.keys() - _OPTIONS:
            raise UnknownName("option", option, _OPTIONS | {"on", "replace"})
        options = _options_of(fn) | options
        if options.get("phase") != "observe":
            options = self._defaults | options
        else:  # an observer has no failure policy
            options = {name: value for name, value in self._defaults.items() if name != "on_failure"} | options
        if on is None:
            hooks = tuple(_hooks_of(fn, options))
            self._register(hooks, replace)
            return hooks
        hook = Hook(fn, on, **options)
        self._register((hook,), replace)
        return hook

    def use(
        self,
        *packs: str | Pack,
        level: Level = "destructive",
        verdict: RuleControl | None = None,
        protect: Iterable[str] = (),
        allow_hosts: Iterable[str] = (),
        exemptions: Iterable[Exemption] = (),
        enforce: bool = True,
        replace: bool = False,
    ) -> tuple[Hook, ...]:
        """Register packs: `hooks.use("recommended")`, some of them by name, or a `Pack` of your own.

        - `level` is the least level that their rules speak at.
        - `verdict` is what they say, in place of deny and ask.
        - `protect` are paths in which nothing may be deleted.
        - `allow_hosts` are hosts that are treated like this machine.
        - `exemptions` are commands, files and addresses that a rule says nothing about.
        - `enforce=False` only records what they would do.
        """
        from .packs.installed import named
        from .packs.judging import PackOptions, pack_hook
        from .packs.rules import LEVELS

        if level not in LEVELS:
            raise UnknownName("level", str(level), LEVELS)
        if verdict not in (None, "deny", "ask", "warn"):
            raise UnknownName("verdict", str(verdict), ("deny", "ask", "warn"))
        for name, texts in (("protect", protect), ("allow_hosts", allow_hosts)):
            if isinstance(texts, str):
                raise RegistrationError(f"{name} is a list of texts: {name}=[{texts!r}]")
        options = PackOptions(level, verdict, tuple(protect), tuple(allow_hosts), tuple(exemptions))
        hooks = tuple(pack_hook(one, options, enforce=enforce) for one in named(*packs))
        self._register(hooks, replace)
        return hooks

    def unregister(self, name: str) -> None:
        """Remove a hook by its name, or all hooks of an object by the object's name."""
        with self._lock:
            names = {name} & self._by_name.keys() or {n for n, hook in self._by_name.items() if hook.owner == name}
            if not names:
                raise UnknownName("hook", name, self._by_name)
            self._close_later(self._by_name[n] for n in names)
            self._swap_table({n: hook for n, hook in self._by_name.items() if n not in names})

    def replace_all(self, hooks: Iterable[Hook], *, source: str) -> None:
        """Replace all hooks of one source, in one step and only if all new ones are valid."""
        new = tuple(hooks)
        with self._lock:
            by_name = {n: hook for n, hook in self._by_name.items() if hook.source != source}
            for hook in new:
                if not isinstance(hook, Hook):
                    raise RegistrationError(f"replace_all takes Hook(...) objects, not {hook!r}")
                if hook.name in by_name:
                    raise RegistrationError(_duplicate(by_name[hook.name]))
                by_name[hook.name] = hook
            kept = {id(hook) for hook in new}
            self._close_later(h for h in self._by_name.values() if h.source == source and id(h) not in kept)
            for hook in new:
                hook.source = source
                hook.set_order(next(self._sequence))
            self._swap_table(by_name)

    def reset(self, name: str) -> None:
        """Lift a hook's quarantine."""
        hook = self._by_name.get(name)
        if hook is None:
            raise UnknownName("hook", name, self._by_name)
        if hook.quarantine is not None:
            hook.quarantine.reset()

    def has_hooks(self, event: str) -> bool:
        """Whether any hook is registered for this event."""
        event_named(event)
        return any(event in hook.events for hook in self.table.registered)

    def __iter__(self) -> Iterator[Hook]:
        """The registered hooks, in registration order."""
        return iter(self.table.registered)

    def __len__(self) -> int:
        return len(self.table.registered)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __repr__(self) -> str:
        return f"<Hooks: {', '.join(hook.name for hook in self) or 'none'}>"

    def _register(self, hooks: tuple[Hook, ...], replace: bool) -> None:
        with self._lock:
            by_name = dict(self._by_name)
            for hook in hooks:
                if hook.name in by_name and not replace:
                    raise RegistrationError(_duplicate(by_name[hook.name]))
                if (replaced := by_name.pop(hook.name, None)) is not None:
                    self._close_later([replaced])
                by_name[hook.name] = hook
                hook.set_order(next(self._sequence))
            self._swap_table(by_name)

    def _close_later(self, hooks: Iterable[Hook]) -> None:
        self._removed += [hook for hook in hooks if hasattr(hook.fn, "aclose")]

    def _swap_table(self, by_name: dict[str, Hook]) -> None:
        self._by_name = by_name
        self.table = Table(self, tuple(by_name.values()))

    # --- dispatching ------------------------------------------------------------------------

    @property
    def subscribed_steps(self) -> frozenset[type[Step]]:
        """The classes of steps that some hook, the journal or a tracer wants. A host need not build any other step."""
        return self.table.subscribed_steps

    dispatch = dispatch
    dispatch_sync = dispatch_sync

    def reclassify(self, step: S) -> S:
        """Give the step the kind, target and safety that the user's own table says its tool has.

        Where the host has set another kind than the default table, only an entry added in code changes it: an entry
        of a file holds for the hooks of that file.
        """
        tool, args, host, server = step.tool, step.args, step.host, server_of(step)  # type: ignore[attr-defined]
        if not self.tools.knows(tool, host):
            return step
        default = DEFAULT_TOOLS.spec(tool, args, server=server)
        if not self.tools.describes(tool, host) and step.kind != default.kind:  # type: ignore[attr-defined]
            return step
        kind, target, safety = self.tools.classify(tool, args, host, server=server)
        return replace_fields(step, kind=kind, target=target, safety=safety)

    # --- around a dispatch ------------------------------------------------------------------

    @property
    def record(self) -> bool:
        """Whether each decision keeps one run per started hook. It cannot be changed later."""
        return self._record

    @property
    def journal(self) -> Callable[[Decision[Any]], None] | None:
        """What is called with every finished decision. It cannot be changed later."""
        return self._journal

    @property
    def enforcing(self) -> bool:
        """Whether verdicts take effect: not in monitor mode, and not while `fairlead pause` holds."""
        return self.enforce and (self.switch is None or self.switch())

    def sink_for(self, table: Table) -> DecisionSink | None:
        """What takes the finished decisions of a table: the journal and OpenTelemetry, as far as they are set up."""
        journal = self._journal
        sink: DecisionSink | None = None
        if journal is not None:
            make = getattr(journal, "sink_for", None)
            sink = _sink_of(journal) if make is None else make(table)
        if "opentelemetry.trace" not in sys.modules:  # the program has not set up traces
            return sink
        from .telemetry import traced

        return traced(sink)

    def session(self, session_id: str | None = None, **options: Unpack[HostSessionOptions]) -> Session:
        """Start a session: ids, shared state, a store, background tasks."""
        for unknown in options.keys() - HostSessionOptions.__annotations__.keys():
            raise UnknownName("keyword", unknown, HostSessionOptions.__annotations__, " of a session")
        return Session(self, session_id, **options)

    def detach(self, run: Run, hook: Hook, decision: Decision[Any]) -> RunOutcome:
        """Queue a detached observer. Returns "detached", or "dropped" where the queue is full."""
        return self._detached.put(detached_run(run, hook, decision))

    @property
    def dropped(self) -> int:
        """How many detached runs were dropped because the queue was full."""
        return self._detached.dropped

    async def aclose(self, timeout: float = 5.0) -> None:
        """Wait at most `timeout` seconds for the detached observers, then flush the journal and stop the workers."""
        await self._detached.drain(timeout)
        flush = getattr(self._journal, "flush", None)
        try:
            if flush is not None:
                await threads.run(flush)
        finally:
            await self.close_removed()
            for hook in self:
                close = getattr(hook.fn, "aclose", None)
                if close is not None:
                    await close()

    async def close_removed(self) -> None:
        """Stop the workers and close the connections of hooks that are no longer registered."""
        removed, self._removed = self._removed, []
        for hook in removed:
            await hook.fn.aclose()  # type: ignore[attr-defined]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


_OPTIONS = frozenset(HookOptions.__annotations__) | {"layer", "locked", "source"}


def _sink_of(journal: Callable[[Decision[Any]], None]) -> DecisionSink:
    """A function as a journal. If it raises, there is no record, and so there is no decision."""
    return lambda decision, _: journal(decision)


class _OwnTools(Tools):
    """The tools table of one `Hooks`: a new entry takes effect with the next dispatch."""

    def __init__(self, hooks: Hooks) -> None:
        super().__init__()
        self._hooks = hooks

    def add(self, *args: Any, **options: Any) -> None:
        super().add(*args, **options)
        self._rebuild_table()

    def configure(self, configured: Tools, unknown: Tools) -> None:
        super().configure(configured, unknown)
        self._rebuild_table()

    def _rebuild_table(self) -> None:
        with self._hooks._lock:
            self._hooks._swap_table(self._hooks._by_name)


def unknown_tool_hooks(policy: UnknownTool, tools: Tools, name: str = "fairlead.unknown_tool") -> Iterator[Hook]:
    """The gate that asks about, or denies, calls to tools that no table knows, whatever their arguments say."""
    if policy not in UNKNOWN_TOOL:
        raise UnknownName("unknown_tool", policy, UNKNOWN_TOOL)

    def unknown_tool(step: Any) -> Verdict | None:
        if step.kind != "unknown" and not tools.spec(step.tool, step.args, step.host, server=server_of(step)).guessed:
            return None
        return {"ask": ask, "deny": deny}[policy](unknown_kind(step.tool))

    if policy != "proceed":  # then the decision only carries a warning
        kinds = ("unknown", "shell", "fetch")
        yield Hook(unknown_tool, "before_tool", kind=kinds, phase="gate", name=name, layer="builtin")


def _duplicate(hook: Hook) -> str:
    where = f"(on {hook.described_events}, from {hook.source})"
    return f"a hook named {hook.name!r} is already registered {where}; give this one a name= or pass replace=True"


def _any_hook(step: Step) -> None:
    """Stand for any hook, to check options."""


_ABSENT = object()
_OBJECT_OPTIONS = ("name", "priority", "timeout", "on_failure")


def _options_of(thing: Any) -> dict[str, Any]:
    """The options that a hook object has as attributes. A function has none, and a runner's are its own."""
    if inspect.isroutine(thing) or isinstance(thing, (type, partial)) or hasattr(type(thing), "form"):
        return {}
    options = {}
    for option in _OBJECT_OPTIONS:
        if inspect.getattr_static(thing, option, _ABSENT) is _ABSENT:  # a mock, say, has any attribute
            continue
        value = getattr(thing, option)
        if inspect.isroutine(value):
            problem = f"{type(thing).__name__}.{option} is a method, which is never called"
            raise RegistrationError(f"{problem}; make it an attribute or a property, or pass {option}= to hooks.add")
        options[option] = value
    return options


def _hooks_of(thing: Any, options: dict[str, Any]) -> Iterator[Hook]:
    """Hooks for the methods of an object, each for the event it is named after."""
    if isinstance(thing, type):
        raise RegistrationError(f"{thing.__name__} is a class; register an object of it: hooks.add({thing.__name__}())")
    prefix = options.pop("name", type(thing).__name__)
    if not isinstance(prefix, str) or not prefix:
        raise RegistrationError(f"the name of {type(thing).__name__} must be a non-empty string, not {prefix!r}")
    names = [name for name in dir(thing) if not name.startswith("_") and callable(getattr(thing, name))]
    methods = [name for name in names if name in EVENTS]
    for name in names:
        is_event_like = name.startswith(("before_", "after_")) or event_also_named(name) or closest(name, EVENTS, 0.9)
        if name not in EVENTS and is_event_like:
            raise UnknownName("event", name, EVENTS, f", a public method of {prefix}", event_meant_by(name))
    if not methods:
        raise RegistrationError(
            f"{thing!r} has no method named after an event; pass on= for a function, or name methods like before_tool"
        )
    for name in methods:
        hook = Hook(getattr(thing, name), name, name=f"{prefix}.{name}", **options)
        hook.owner = prefix
        yield hook
