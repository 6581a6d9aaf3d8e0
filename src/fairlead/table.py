"""Tables: the registered hooks at one moment, compiled into chains as steps come by.

A table is never changed. What it compiles is kept, up to a limit, so that a dispatch is a look-up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from .decision import Stretch
from .hook import PHASES, Hook
from .lifecycle import EVENTS, Event, Step
from .run import Chain, Keep
from .tools import guess

if TYPE_CHECKING:
    from .registry import Hooks

CACHE_LIMIT = 4096
"""Chains that one table keeps. Beyond that it starts anew, so that ever-new tool names cost no memory."""

Find = Callable[[Any], tuple[Any, Chain | None]]
Plan = tuple[Find | None, Chain | None]
"""How to find the chain for a step: it is the same for all steps of the class, or a function tells."""


class Table:
    """The registered hooks at one moment, and a plan for each class of step that was dispatched."""

    __slots__ = ("_cached", "_heard", "hooks", "plans", "policy", "registered", "variables")

    def __init__(self, hooks: Hooks, registered: tuple[Hook, ...]) -> None:
        self.hooks = hooks
        self.registered = registered
        self.plans: dict[type[Step], Plan] = {}
        self.policy: tuple[bytes, bytes] | None = None  # its digest and its text, once somebody asks
        self.variables: str | None = None  # a digest of those that its hooks were given, once the journal asks
        self._cached: list[dict[Any, Chain | None]] = []
        self._heard: frozenset[type[Step]] | None = None

    def plan(self, kind: type[Step]) -> Plan:
        """Where no hook of the event filters there is one chain; otherwise one per key is compiled.

        The key is made of just those parts of a step that some hook filters on.
        """
        event = _EVENT_OF_STEP.get(kind)
        if event is None:
            raise TypeError(f"dispatch takes a step such as BeforeTool(...), not a {kind.__name__}")
        hooks = [hook for hook in self.registered if event.name in hook.events]
        own = bool(self.hooks.tools) and event.about_tool
        key = _key_for(hooks, event)
        if own or key is not None:
            plan: Plan = (self._finder(event, _Index(hooks), key or _no_key, own), None)
        else:
            plan = (None, self._compile(event, hooks))
        self.plans[kind] = plan
        return plan

    @property
    def heard(self) -> frozenset[type[Step]]:
        """The classes of steps for which there is something to run or to record."""
        if self._heard is None:
            on, kept = {name for hook in self.registered for name in hook.events}, self.hooks.keep_for(self) is not None
            self._heard = frozenset(kind for kind, event in _EVENT_OF_STEP.items() if kept or event.name in on)
        return self._heard

    def chain_for(self, step: Step) -> Chain | None:
        """The chain that applies to this step, if any hook does."""
        find, chain = self.plans.get(type(step)) or self.plan(type(step))
        return chain if find is None else find(step)[1]

    def _finder(self, event: Event[Any], index: _Index, key: Callable[[Any], Any], own: bool) -> Find:
        chains: dict[Any, Chain | None] = {}
        self._cached.append(chains)

        def find(step: Any) -> tuple[Any, Chain | None]:
            if own:
                step = self.hooks.classified(step)
            at = key(step)
            try:
                return step, chains[at]
            except KeyError:
                if sum(map(len, self._cached)) >= CACHE_LIMIT:
                    self._forget()
                matching = [hook for hook in index.candidates(step) if hook.applies(step)]
                chain = chains[at] = self._compile(event, matching)
                return step, chain

        return find

    def _forget(self) -> None:
        for chains in self._cached:
            chains.clear()

    def _compile(self, event: Event[Any], hooks: Iterable[Hook]) -> Chain | None:
        """The chain of these hooks; None if there is nothing to run and nothing to record."""
        ordered = sorted(hooks, key=attrgetter("order"))
        keep = self.hooks.keep_for(self)
        return self._chain(event, ordered, keep) if ordered or keep is not None else None

    def empty(self, event: Event[Any]) -> Chain:
        """A chain of no hooks, for a step that a change has led away from all of them."""
        return self._chain(event, [], self.hooks.keep_for(self))

    def _chain(self, event: Event[Any], ordered: list[Hook], keep: Keep | None) -> Chain:
        waiting = [hook for hook in ordered if not hook.detached]
        transforms, gates, observers = ([h for h in waiting if h.phase == phase] for phase in PHASES)
        group = [hook for hook in gates if hook.is_async]
        if len(group) > 1:
            gates = [hook for hook in gates if not hook.is_async]
        else:
            group = []  # a lone one runs like any other
        plain = len(transforms) + len(gates) == len(ordered)
        guarded = any(hook.quarantine is not None for hook in waiting)
        has_async = any(hook.is_async for hook in waiting)
        record = self.hooks.record or keep is not None
        return Chain(
            table=self,
            event=event,
            stretch=_stretch([*transforms, *gates]),
            gates=_stretch(gates),
            group=_stretch(group),
            observers=_stretch(observers),
            detached=tuple(hook for hook in ordered if hook.detached),
            plain=plain,
            inline=plain and not has_async and not record and not guarded,
            has_async=has_async,
            record=record,
            keep=keep,
            patience=-1.0 if guarded else min((hook.limit for hook in waiting), default=math.inf),
            always_timed=record or guarded or not plain,
            lone=plain and len(ordered) == 1,
        )


def _stretch(hooks: list[Hook]) -> Stretch:
    return Stretch(tuple((_call_of(hook), hook.is_async) for hook in hooks), tuple(hooks))


def _call_of(hook: Hook) -> Callable[..., Any]:
    if hook.view is None or hook.phase == "observe":
        return hook.call
    return lambda step: hook.call(hook.seen(step))


class _Index:
    """An event's hooks, those for exact tools by tool, so that nothing is scanned in vain."""

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
    """All that a file's description of a tool goes by, and all that filters do."""
    agent, outcome = step.agent and step.agent.name, getattr(step, "outcome", None)
    is_view = step.args.get("command") == "view"  # of an editor
    return step.tool, step.kind, step.safety, step.host, agent, outcome, is_view, guess(step.args).kind


def _filters(hooks: list[Hook], part: str) -> bool:
    return any(getattr(hook, part) is not None for hook in hooks)


def _no_key(step: Step) -> None:
    """All filters are on parts that this event's steps do not have: one chain for all of them."""


_EVENT_OF_STEP: dict[type[Step], Event[Any]] = {event.step: event for event in EVENTS.values()}
