"""Tables and chains: the registered hooks, compiled into what the loop runs.

A `Table` holds all registered hooks and never changes: registering a hook makes a new table. It compiles one `Chain`
for each kind of step and caches it, so a dispatch only looks its chain up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from ..decision import Decision, HookSequence
from ..hook import PHASES, Hook
from ..lifecycle import EVENTS, Event, Step
from ..tools import guess

if TYPE_CHECKING:
    from concurrent.futures import Future

    from ..registry import Hooks

DecisionSink = Callable[[Decision[Any], float], "Future[None] | None"]
"""Takes each finished decision and when its dispatch began: the journal, or a tracer.

The dispatch waits for the future that it returns before it gives the decision to the caller.
"""

CACHE_LIMIT = 4096
"""Chains that one table caches. A full cache is emptied, so that ever-new tool names cannot fill the memory."""
UNTIMED_AFTER = 16
"""Dispatches without a suspension after which a chain's hooks are no longer timed. See `Chain`."""


class Chain(msgspec.Struct):
    """The hooks that apply to one kind of step, in running order.

    Everything but the last two fields is fixed when the chain is compiled.

    To hold a hook to its time-out, the loop must know when the hook started. Reading the clock for each hook doubles
    the cost of a chain, and most chains never wait for anything. So a chain is `timed` until 16 dispatches have ended
    without a hook suspending. From then on the loop reads no clock (for a chain of one hook: one clock). When a hook
    of an untimed chain suspends, its time-out counts from there, and the chain is timed again.
    """

    table: Table
    event: Event[Any]
    sequence: HookSequence  # the transforms, then the gates that run one after another
    gates: HookSequence  # only those gates
    concurrent_gates: HookSequence  # the async gates, when there are several
    observers: HookSequence
    detached: tuple[Hook, ...]
    is_sequential: bool  # `sequence` holds all of its hooks
    runs_inline: bool  # ... and none of them is async, recorded or under quarantine
    has_async: bool
    records_runs: bool
    sink: DecisionSink | None
    min_timeout: float  # the shortest time-out; negative where `Run.on_hook_end` must see every hook end
    always_timed: bool
    is_single: bool  # one hook, so that the start of the dispatch is the start of the hook
    timed: bool = True
    quiet_dispatches: int = 0  # timed dispatches since a hook last suspended

    def on_suspension(self) -> None:
        """Time the hooks of the next dispatches: a hook has suspended."""
        self.timed, self.quiet_dispatches = True, 0

    def on_quiet_dispatch(self) -> None:
        """Stop timing the hooks when enough timed dispatches in a row went without a suspension."""
        self.quiet_dispatches += 1
        self.timed = self.quiet_dispatches < UNTIMED_AFTER


ChainFinder = Callable[[Any], tuple[Any, Chain | None]]
ChainLookup = tuple[ChainFinder | None, Chain | None]
"""Where to find the chain of a step: the one chain for all steps of a class, or a function that finds it."""


class Table:
    """The registered hooks at one moment, and a chain lookup for each class of step that was dispatched."""

    __slots__ = ("_caches", "_subscribed_steps", "hooks", "lookups", "policy", "registered", "variables")

    def __init__(self, hooks: Hooks, registered: tuple[Hook, ...]) -> None:
        self.hooks = hooks
        self.registered = registered
        self.lookups: dict[type[Step], ChainLookup] = {}
        self.policy: tuple[bytes, bytes] | None = None  # its digest and its text, set by the journal
        self.variables: str | None = None  # a digest of the environment that its hooks get, set by the journal
        self._caches: list[dict[Any, Chain | None]] = []
        self._subscribed_steps: frozenset[type[Step]] | None = None

    def add_lookup(self, kind: type[Step]) -> ChainLookup:
        """Make the chain lookup for a class of steps.

        Where no hook of the event has a filter, there is one chain. Otherwise there is one chain per cache key, and
        the key holds only the parts of a step that some hook filters on.
        """
        event = _EVENT_OF_STEP.get(kind)
        if event is None:
            raise TypeError(f"dispatch takes a step such as BeforeTool(...), not a {kind.__name__}")
        hooks = [hook for hook in self.registered if event.name in hook.events]
        reclassifies = bool(self.hooks.tools) and event.about_tool
        key = _key_for(hooks, event)
        if reclassifies or key is not None:
            lookup: ChainLookup = (self._finder(event, _Index(hooks), key or _no_key, reclassifies), None)
        else:
            lookup = (None, self._compile(event, hooks))
        self.lookups[kind] = lookup
        return lookup

    @property
    def subscribed_steps(self) -> frozenset[type[Step]]:
        """The classes of steps for which there is something to run or to record."""
        if self._subscribed_steps is None:
            subscribed = {name for hook in self.registered for name in hook.events}
            records_all = self.hooks.sink_for(self) is not None
            self._subscribed_steps = frozenset(
                kind for kind, event in _EVENT_OF_STEP.items() if records_all or event.name in subscribed
            )
        return self._subscribed_steps

    def chain_for(self, step: Step) -> Chain | None:
        """The chain that applies to a step of a class that was dispatched; None if there is nothing to do for it."""
        find, chain = self.lookups[type(step)]
        return chain if find is None else find(step)[1]

    def _finder(
        self, event: Event[Any], index: _Index, key_of: Callable[[Any], Any], reclassifies: bool
    ) -> ChainFinder:
        cache: dict[Any, Chain | None] = {}
        self._caches.append(cache)

        def find(step: Any) -> tuple[Any, Chain | None]:
            if reclassifies:
                step = self.hooks.reclassify(step)
            key = key_of(step)
            try:
                return step, cache[key]
            except KeyError:
                if sum(map(len, self._caches)) >= CACHE_LIMIT:
                    self._clear_caches()
                matching = [hook for hook in index.candidates(step) if hook.applies(step)]
                chain = cache[key] = self._compile(event, matching)
                return step, chain

        return find

    def _clear_caches(self) -> None:
        for cache in self._caches:
            cache.clear()

    def _compile(self, event: Event[Any], hooks: Iterable[Hook]) -> Chain | None:
        """The chain of these hooks; None if there is nothing to run and nothing to record."""
        ordered = sorted(hooks, key=attrgetter("order"))
        sink = self.hooks.sink_for(self)
        return self._chain(event, ordered, sink) if ordered or sink is not None else None

    def empty_chain(self, event: Event[Any]) -> Chain:
        """A chain without hooks, for a step that a change turned into one that no hook applies to."""
        return self._chain(event, [], self.hooks.sink_for(self))

    def _chain(self, event: Event[Any], ordered: list[Hook], sink: DecisionSink | None) -> Chain:
        attached = [hook for hook in ordered if not hook.detached]
        transforms, gates, observers = ([h for h in attached if h.phase == phase] for phase in PHASES)
        concurrent = [hook for hook in gates if hook.is_async]
        if len(concurrent) > 1:
            gates = [hook for hook in gates if not hook.is_async]
        else:
            concurrent = []  # a single async gate runs in the sequence
        is_sequential = len(transforms) + len(gates) == len(ordered)
        has_quarantine = any(hook.quarantine is not None for hook in attached)
        has_async = any(hook.is_async for hook in attached)
        records_runs = self.hooks.record or sink is not None
        return Chain(
            table=self,
            event=event,
            sequence=_sequence([*transforms, *gates]),
            gates=_sequence(gates),
            concurrent_gates=_sequence(concurrent),
            observers=_sequence(observers),
            detached=tuple(hook for hook in ordered if hook.detached),
            is_sequential=is_sequential,
            runs_inline=is_sequential and not (has_async or records_runs or has_quarantine),
            has_async=has_async,
            records_runs=records_runs,
            sink=sink,
            min_timeout=-1.0 if has_quarantine else min((hook.limit for hook in attached), default=math.inf),
            always_timed=records_runs or has_quarantine or not is_sequential,
            is_single=is_sequential and len(ordered) == 1,
        )


def _sequence(hooks: list[Hook]) -> HookSequence:
    return HookSequence(tuple((_call_of(hook), hook.is_async) for hook in hooks), tuple(hooks))


def _call_of(hook: Hook) -> Callable[..., Any]:
    """What the loop calls with the step. Hooks of some configuration files see the step as their file describes it."""
    if hook.view is None or hook.phase == "observe":
        return hook.call
    return lambda step: hook.call(hook.view_of(step))


class _Index:
    """The hooks of an event. Hooks for exact tools are found by tool, so that they need not be matched one by one."""

    def __init__(self, hooks: list[Hook]) -> None:
        self._by_tool: dict[str, list[Hook]] = {}
        self._others: list[Hook] = []
        for hook in hooks:
            exact = hook.exact_tools
            for tool in dict.fromkeys(exact or ()):
                self._by_tool.setdefault(tool, []).append(hook)
            if exact is None:
                self._others.append(hook)

    def candidates(self, step: Step) -> list[Hook]:
        return [*self._by_tool.get(getattr(step, "tool", ""), ()), *self._others]


def _key_for(hooks: list[Hook], event: Event[Any]) -> Callable[[Step], Any] | None:
    """The function that gives a step's cache key; None where no hook has a filter."""
    parts = [part for part in ("tool", "kind", "safety", "outcome", "host", "agent") if _filters(hooks, part)]
    if not parts:
        return None
    if event.about_tool and any(hook.view is not None for hook in hooks):
        return _viewed_key
    if not event.about_tool:
        parts = [part for part in parts if part in ("host", "agent")]
    if "outcome" in parts and "outcome" not in event.fields:
        parts.remove("outcome")
    if "agent" not in parts:
        return attrgetter(*parts) if parts else _no_key
    others = attrgetter("host", *(part for part in parts if part not in ("agent", "host")))
    return lambda step: (step.agent and step.agent.name, others(step))


def _viewed_key(step: Any) -> Any:
    """Everything that a filter or a file's description of a tool depends on."""
    agent, outcome = step.agent and step.agent.name, getattr(step, "outcome", None)
    is_view = step.args.get("command") == "view"  # an editor tool that only reads
    return step.tool, step.kind, step.safety, step.host, agent, outcome, is_view, guess(step.args).kind


def _filters(hooks: list[Hook], part: str) -> bool:
    return any(getattr(hook, part) is not None for hook in hooks)


def _no_key(step: Step) -> None:
    """The key where every filter is on a part that the event's steps do not have: they share one chain."""


_EVENT_OF_STEP: dict[type[Step], Event[Any]] = {event.step: event for event in EVENTS.values()}
