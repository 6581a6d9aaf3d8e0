"""Hooks: registering, swapping tables, dispatching.

A table is never changed. Registering builds the next one and swaps it in with one assignment, so a
dispatch in flight, in whatever thread, finishes with the table it started with.
"""

from __future__ import annotations

import sys
import threading
from asyncio import CancelledError, wrap_future
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import count
from time import monotonic
from typing import Any, Generic, Literal, Self, TypeVar, Unpack, overload

from msgspec.structs import replace as replace_fields

from .approvals import ApproveFn, Approver
from .backlog import Backlog
from .decision import Call, Decision, Mark, RunOutcome, Stretch, unknown_kind
from .engine import CALM, NOT_OURS, alone, drive, each, parked, phases, rest
from .errors import RegistrationError, UnknownName, closest
from .hook import Hook, OneOrMore, Options, OptionsButKind
from .lifecycle import EVENTS, BeforeTool, Event, Lifecycle, ShellCall, Step, event_named, iter_events
from .run import Chain, Keep, Run, begin
from .session import About, Session
from .table import Table
from .threads import portal, threads
from .tools import DEFAULT_TOOLS, UNKNOWN_TOOL, Tools, UnknownTool
from .verdict import Verdict, ask, deny

S = TypeVar("S", bound=Step)
Says = Verdict | Mapping[str, Any] | None
R = TypeVar("R", bound=Says | Awaitable[Says])
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
        self: Decorate[BeforeTool], /, *, kind: Literal["shell"], replace: bool = ..., **options: Unpack[OptionsButKind]
    ) -> _Registers[ShellCall]: ...
    @overload
    def __call__(self, /, *, replace: bool = ..., **options: Unpack[Options]) -> _Registers[S]: ...
    def __call__(self, fn: Any = None, /, *, replace: bool = False, **options: Any) -> Any:
        def register(fn: Any) -> Any:
            self._hooks.add(fn, on=self._event.name, replace=replace, **options)
            return fn

        if fn is not None and not callable(fn):
            raise RegistrationError(f"{fn!r} is no hook; did you mean hooks.on.{self._event.name}(tool={fn!r})?")
        return register if fn is None else register(fn)


class _Registers(Generic[S]):
    """The type of `hooks.on.<event>(...)`: takes the function and gives it back."""

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

    def __call__(self, *events: str, replace: bool = False, **options: Unpack[Options]) -> Callable[[F], F]:
        if not events or callable(events[0]):
            raise RegistrationError(
                "which event? Write @hooks.on.before_tool, or @hooks.on('before_tool', 'after_tool')"
            )
        list(iter_events("*" if events == ("*",) else events))  # a misspelt one is found here and now

        def register(fn: F) -> F:
            self._hooks.add(fn, on="*" if events == ("*",) else events, replace=replace, **options)
            return fn

        return register

    def __getattr__(self, name: str) -> Any:
        raise UnknownAttribute("event", name, EVENTS)


class UnknownAttribute(UnknownName, AttributeError):
    """`hooks.on.befor_tool`."""


class Hooks:
    """A table of hooks and the engine that runs it.

    `record=True` keeps one run per started hook in each decision. `enforce=False` puts every hook in
    monitor mode. `approver` answers `ask`. `journal` is called with every finished decision.
    `unknown_tool` says what becomes of a call to a tool that no table knows.
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
        self.variables: Mapping[str, str] | None = None  # those of the caller, which its hooks were given
        self._record = record or journal is not None
        self._journal = journal
        self.tools = _OwnTools(self)
        self.on = On(self)
        self._lock = threading.RLock()
        self._by_name: dict[str, Hook] = {}
        self._gone: list[Hook] = []  # whose processes and connections are still to be closed
        self._sequence = count()
        self._backlog = Backlog()
        self._table = Table(self, ())
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

        An object's methods are registered for the events they are named after.
        """
        for option in options.keys() - _OPTIONS:
            raise UnknownName("option", option, _OPTIONS | {"on", "replace"})
        if on is None:
            hooks = tuple(_hooks_of(fn, options))
            self._register(hooks, replace)
            return hooks
        hook = Hook(fn, on, **options)
        self._register((hook,), replace)
        return hook

    def unregister(self, name: str) -> None:
        """Remove a hook by its name, or an object's hooks by the object's."""
        with self._lock:
            gone = {name} & self._by_name.keys() or {n for n, hook in self._by_name.items() if hook.owner == name}
            if not gone:
                raise UnknownName("hook", name, self._by_name)
            self._leave(self._by_name[n] for n in gone)
            self._swap({n: hook for n, hook in self._by_name.items() if n not in gone})

    def replace_all(self, hooks: Iterable[Hook], *, source: str) -> None:
        """Swap all hooks of one source for these, at once and only if all of them are sound."""
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
            self._leave(h for h in self._by_name.values() if h.source == source and id(h) not in kept)
            for hook in new:
                hook.source = source
                hook.place(next(self._sequence))
            self._swap(by_name)

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
        return any(event in hook.events for hook in self._table.registered)

    def __iter__(self) -> Iterator[Hook]:
        """The registered hooks, in registration order."""
        return iter(self._table.registered)

    def __len__(self) -> int:
        return len(self._table.registered)

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
                    self._leave([replaced])
                by_name[hook.name] = hook
                hook.place(next(self._sequence))
            self._swap(by_name)

    def _leave(self, hooks: Iterable[Hook]) -> None:
        self._gone += [hook for hook in hooks if hasattr(hook.fn, "aclose")]

    def _swap(self, by_name: dict[str, Hook]) -> None:
        self._by_name = by_name
        self._table = Table(self, tuple(by_name.values()))

    # --- dispatching ------------------------------------------------------------------------

    @property
    def heard(self) -> frozenset[type[Step]]:
        """The classes of steps of which somebody may have something to say. A host need not build one for nobody."""
        return self._table.heard

    async def dispatch(self, step: S) -> Decision[S]:
        """Run the hooks that apply to a step and fold what they say into one decision."""
        try:
            find, chain = self._table.plans[type(step)]
        except KeyError:
            find, chain = self._table.plan(type(step))
        if find is not None:
            step, chain = find(step)
        if chain is None:
            return Decision(step, step)
        todo = iter(chain.stretch.calls)
        began, work = None, rest
        if not chain.timed:
            cell: list[Run] = []
            if chain.lone:
                began = monotonic()
            going = each(chain, step, todo, cell, began)
        else:
            # `begin`, written out: a call more would show in every dispatch that is timed.
            marks: list[Mark] | None = [chain.stretch] if chain.record else None
            now = monotonic()
            cell = [Run(chain, step, step, chain.stretch, todo, [now, now], marks)]
            if chain.plain:
                going = each(chain, step, todo, cell, None)
            else:
                work, going = phases, phases(cell[0])
        for waiting in going:
            run = cell[0] if cell else begin(chain, step, todo, cell, began)
            if chain.calm:
                chain.timed, chain.calm = True, 0
            try:
                await parked(run, work, going, waiting)
            except CancelledError:
                run.give_up()
                raise
            break
        else:
            if not cell:
                return Decision(step, step)  # nobody had an opinion
            run = cell[0]
            if not chain.always_timed:
                chain.calm += 1
                chain.timed = chain.calm < CALM
        if run.said and run.unfinished:
            try:
                await drive(run, phases)
            except CancelledError:
                run.give_up()
                raise
        decision = run.conclude()
        if run.kept is not None:
            await wrap_future(run.kept)
        return decision

    def dispatch_sync(self, step: S) -> Decision[S]:
        """`dispatch` for callers without a loop, or in the thread of one.

        Hooks that are not async run right here; otherwise everything runs on a private loop's
        thread while the caller waits.
        """
        try:
            find, chain = self._table.plans[type(step)]
        except KeyError:
            find, chain = self._table.plan(type(step))
        if find is not None:
            step, chain = find(step)
        if chain is None:
            return Decision(step, step)
        stretch = chain.stretch
        if chain.inline:
            todo = iter(stretch.calls)
            for call, _ in todo:
                try:
                    said = call(step)
                except BaseException as error:
                    if isinstance(error, NOT_OURS):
                        raise
                    stretch = _again(stretch, todo, error=error)
                    break
                if said is not None:
                    stretch = _again(stretch, todo, said=said)
                    break
            else:
                return Decision(step, step)  # nobody had an opinion
        elif chain.has_async:
            return self._dispatch_elsewhere(step)
        return self._finish_sync(chain, step, stretch)

    def _dispatch_elsewhere(self, step: S) -> Decision[S]:
        return portal.run(lambda: self.dispatch(step))

    def _finish_sync(self, chain: Chain, step: Step, stretch: Stretch) -> Decision[Any]:
        run = begin(chain, step, iter(stretch.calls), [], None)
        run.stretch, run.sync = stretch, True
        for _ in (rest if run.chain.plain else phases)(run):
            raise AssertionError("a sync dispatch suspended")
        if run.unfinished:
            for _ in phases(run):
                raise AssertionError("a sync dispatch suspended")
        decision = run.conclude()
        if run.kept is not None:
            run.kept.result()
        return decision

    def classified(self, step: S) -> S:
        """The step with what the user's own table says about its tool.

        Where the host is sure of the kind, only an entry in code says otherwise: a file's holds for its own hooks.
        """
        tool, args, host = step.tool, step.args, step.host  # type: ignore[attr-defined]
        if not self.tools.knows(tool, host):
            return step
        if not self.tools.describes(tool, host) and step.kind != DEFAULT_TOOLS.spec(tool, args).kind:  # type: ignore[attr-defined]
            return step
        kind, target, safety = self.tools.classify(tool, args, host)
        return replace_fields(step, kind=kind, target=target, safety=safety)

    # --- around a dispatch ------------------------------------------------------------------

    @property
    def table(self) -> Table:
        """What is in force right now."""
        return self._table

    @property
    def record(self) -> bool:
        """Whether each decision keeps one run per started hook. Fixed when the table is made."""
        return self._record

    @property
    def journal(self) -> Callable[[Decision[Any]], None] | None:
        """What is called with every finished decision. Fixed when the table is made."""
        return self._journal

    @property
    def enforcing(self) -> bool:
        """Whether verdicts take effect: not in monitor mode, and not while somebody has switched them off."""
        return self.enforce and (self.switch is None or self.switch())

    def keep_for(self, table: Table) -> Keep | None:
        """Who takes in the finished decisions of a table: the journal, and whoever traces the program."""
        journal = self._journal
        keep: Keep | None = None
        if journal is not None:
            make = getattr(journal, "keep_for", None)
            keep = _plainly(journal) if make is None else make(table)
        if "opentelemetry.trace" not in sys.modules:  # nobody can have set up traces
            return keep
        from .telemetry import traced

        return traced(keep)

    def session(self, session_id: str | None = None, **about: Unpack[About]) -> Session:
        """A session: ids, shared state, a store, background tasks."""
        for unknown in about.keys() - About.__annotations__.keys():
            raise UnknownName("keyword", unknown, About.__annotations__, " of a session")
        return Session(self, session_id, **about)

    def detach(self, run: Run, hook: Hook, decision: Decision[Any]) -> RunOutcome:
        return self._backlog.put(alone(run, hook, decision))

    @property
    def dropped(self) -> int:
        """How many detached runs were dropped because the queue was full."""
        return self._backlog.dropped

    async def aclose(self, timeout: float = 5.0) -> None:
        """Wait until the detached observers are done, `timeout` seconds at most, and stop the workers."""
        await self._backlog.drain(timeout)
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
        """Stop the workers, and close the connections, of hooks that are no longer registered."""
        gone, self._gone = self._gone, []
        for hook in gone:
            await hook.fn.aclose()  # type: ignore[attr-defined]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


_OPTIONS = frozenset(Options.__annotations__) | {"layer", "locked", "source"}


def _plainly(journal: Callable[[Decision[Any]], None]) -> Keep:
    """A function as a journal. If it raises, there is no record, and so there is no decision."""
    return lambda decision, _: journal(decision)


class _OwnTools(Tools):
    """The tools table of one `Hooks`: adding to it takes effect with the next dispatch."""

    def __init__(self, hooks: Hooks) -> None:
        super().__init__()
        self._hooks = hooks

    def add(self, *args: Any, **options: Any) -> None:
        super().add(*args, **options)
        self._in_effect()

    def configure(self, configured: Tools, unknown: Tools) -> None:
        super().configure(configured, unknown)
        self._in_effect()

    def _in_effect(self) -> None:
        with self._hooks._lock:
            self._hooks._swap(self._hooks._by_name)


def _again(stretch: Stretch, todo: Iterator[Call], *, said: Any = None, error: BaseException | None = None) -> Stretch:
    """What is left of a stretch, from a hook that ended this way: one loop deals with all endings."""

    def call(_: Step) -> Any:
        if error is not None:
            raise error
        return said

    left = tuple(todo)
    return Stretch(((call, False), *left), stretch.hooks[len(stretch.hooks) - len(left) - 1 :])


def unknown_tool_hooks(policy: UnknownTool, tools: Tools, name: str = "fairlead.unknown_tool") -> Iterator[Hook]:
    """The gate that carries out what becomes of a call to a tool that no table knows, whatever its arguments say."""
    if policy not in UNKNOWN_TOOL:
        raise UnknownName("unknown_tool", policy, UNKNOWN_TOOL)

    def unknown_tool(step: Any) -> Verdict | None:
        if step.kind != "unknown" and not tools.spec(step.tool, step.args, step.host).guessed:
            return None
        return {"ask": ask, "deny": deny}[policy](unknown_kind(step.tool))

    if policy != "proceed":  # where every decision on such a tool carries a warning as it is
        kinds = ("unknown", "shell", "fetch")
        yield Hook(unknown_tool, "before_tool", kind=kinds, phase="gate", name=name, layer="builtin")


def _duplicate(hook: Hook) -> str:
    where = f"(on {hook.described_events}, from {hook.source})"
    return f"a hook named {hook.name!r} is already registered {where}; give this one a name= or pass replace=True"


def _hooks_of(thing: Any, options: dict[str, Any]) -> Iterator[Hook]:
    """An object's methods, each for the event it is named after."""
    if isinstance(thing, type):
        raise RegistrationError(f"{thing.__name__} is a class; register an object of it: hooks.add({thing.__name__}())")
    prefix = options.pop("name", None) or type(thing).__name__
    names = [name for name in dir(thing) if not name.startswith("_") and callable(getattr(thing, name))]
    methods = [name for name in names if name in EVENTS]
    for name in names:
        if name not in EVENTS and (name.startswith(("before_", "after_")) or closest(name, EVENTS, 0.9)):
            raise UnknownName("event", name, EVENTS, f", a public method of {prefix}")
    if not methods:
        raise RegistrationError(
            f"{thing!r} has no method named after an event; pass on= for a function, or name methods like before_tool"
        )
    for name in methods:
        hook = Hook(getattr(thing, name), name, name=f"{prefix}.{name}", **options)
        hook.owner = prefix
        yield hook
