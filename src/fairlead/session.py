"""Sessions: the ids, the shared state, the store and the background tasks of one agent."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from itertools import count
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar, overload

from msgspec.structs import replace

from .decision import Decision, Unsupported, unknown_kind
from .engine.run import EffectFn, active_effect, active_session
from .engine.threads import portal
from .errors import FairleadError, Unenforceable
from .lifecycle import EVENTS, Agent, BeforeTool, Control, Step, build, event_named
from .redaction.logs import logger

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from random import Random

    from .approvals import ApproveFn, Approver
    from .registry import Hooks

    Capabilities = Mapping[str, Collection[str]]

S = TypeVar("S", bound=Step)
D = TypeVar("D")

_numbers = count(1)
_process = os.urandom(6).hex()  # so that ids are unique, though they come from a counter
_seen_tools: set[str] = set()
_TOOLS_SEEN = 1024
"""How many names of tools are remembered, so that each unknown tool is logged once."""
_LONGEST_TOOL = 200


def new_id(prefix: str) -> str:
    """Make an id that no other process makes."""
    return f"{prefix}-{_process}-{next(_numbers)}"


_WITH_STATE = frozenset(event.step for event in EVENTS.values() if "state" in event.changes)
"""The steps about a request: they carry the state of the session. Whatever else hooks change there are its ids."""

_RAISE: Any = object()


@overload
def current_session() -> Session: ...
@overload
def current_session(default: D, /) -> Session | D: ...
def current_session(default: Any = _RAISE, /) -> Any:
    """In a hook, the session whose step is being dispatched. Without one: the default, or an error."""
    session = active_session.get()
    if session is None and default is _RAISE:
        problem = "there is no session here: dispatch the step with session.dispatch(...), or give a default"
        raise FairleadError(f"{problem}, current_session(None)")
    return default if session is None else session


class StoreDump(TypedDict):
    """The content of a store. Each hit is its age in seconds."""

    values: dict[str, Any]
    hits: dict[str, list[float]]
    longest: dict[str, float]


class Store:
    """Counters and windows that many hooks may use at once. Every operation is atomic.

    `clock` gives the time in seconds, for windows. A replay sets one that follows the recorded times.
    """

    KEYS = 10_000
    HITS = 10_000

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._values: dict[str, Any] = {}
        self._hits: dict[str, deque[float]] = {}
        self._longest: dict[str, float] = {}

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key."""
        return self._values.get(key, default)

    def set(self, key: str, value: Any) -> None:
        """Set the value of a key."""
        with self._lock:
            self._check_room(self._values, key)
            self._values[key] = value

    def increment(self, key: str, by: int = 1) -> int:
        """Add to a counter. Returns its new value."""
        with self._lock:
            self._check_room(self._values, key)
            value: int = self._values.get(key, 0) + by
            self._values[key] = value
        return value

    def hit(self, key: str, within: float) -> int:
        """Count one hit. Returns the number of hits in the last `within` seconds, this one included."""
        now = self.clock()
        with self._lock:
            self._check_room(self._hits, key)
            hits = self._hits.setdefault(key, deque(maxlen=self.HITS))
            hits.append(now)
            self._longest[key] = longest = max(within, self._longest.get(key, 0.0))
            while hits[0] <= now - longest:  # another caller may use a longer window over the same hits
                hits.popleft()
            return len(hits) if within == longest else sum(hit > now - within for hit in hits)

    def dump(self) -> StoreDump:
        """The content of the store, for another process to load."""
        now = self.clock()
        with self._lock:
            hits = {key: [now - hit for hit in kept] for key, kept in self._hits.items()}
            return StoreDump(values=dict(self._values), hits=hits, longest=dict(self._longest))

    def load(self, dump: StoreDump) -> None:
        """Add the content of another process's store."""
        now = self.clock()
        with self._lock:
            self._values |= dump["values"]
            self._longest |= dump["longest"]
            for key, ages in dump["hits"].items():
                self._hits[key] = deque((now - age for age in ages), maxlen=self.HITS)

    def _check_room(self, kept: dict[str, Any], key: str) -> None:
        if key not in kept and len(kept) >= self.KEYS:
            # Dropping a key would silently lift the limit that some hook keeps under it.
            raise FairleadError(f"the session's store holds {self.KEYS} keys already; use fewer, or longer-lived ones")


class SessionOptions(TypedDict, total=False):
    """The keyword arguments of `hooks.session(...)`."""

    state: Any
    agent: Agent | str | None
    parent: Session | None
    host: str | None
    cwd: str | None
    user_id: str | None
    channel: str | None
    thread_id: str | None
    request_id: str | None
    turn_id: str | None
    checkpoint_id: str | None
    capabilities: Capabilities | None


class HostSessionOptions(SessionOptions, total=False):
    """What a host may pass to `hooks.session(...)` beyond that."""

    lenient: bool
    approver: Approver | ApproveFn | None


class Session:
    """One agent at work: the ids of its steps, a `state` that its hooks share and may edit, and a `store`.

    `capabilities` are the controls and fields that the host can carry out, by event. A deny that it cannot carry out
    is an error; with `lenient=True` it is only listed as unsupported. `approver` answers `ask` instead of the approver
    of the hooks.
    """

    keeps_state = True
    """Whether `state` and `store` last from step to step. If not, using them is an error."""

    def __init__(
        self,
        hooks: Hooks,
        session_id: str | None = None,
        *,
        state: Any = None,
        agent: Agent | str | None = None,
        parent: Session | None = None,
        host: str | None = None,
        cwd: str | None = None,
        user_id: str | None = None,
        channel: str | None = None,
        thread_id: str | None = None,
        request_id: str | None = None,
        turn_id: str | None = None,
        checkpoint_id: str | None = None,
        capabilities: Capabilities | None = None,
        lenient: bool = False,
        approver: Approver | ApproveFn | None = None,
    ) -> None:
        self.hooks = hooks
        self.session_id = session_id or new_id("session")
        self._root_id = None if parent is None else parent.root_session_id
        self.state = {} if state is None else state
        self.agent = Agent(new_id("agent"), agent) if isinstance(agent, str) else agent
        self.parent = parent
        self.host = host
        self.cwd = cwd
        self.user_id = user_id
        self.channel = channel
        self.thread_id = thread_id
        self.request_id: str | None = request_id or new_id("request")
        self.turn_id = turn_id
        self.checkpoint_id = checkpoint_id
        for event in capabilities or ():
            event_named(event)
        self.capabilities = capabilities
        self.lenient = lenient
        self.approver = approver
        self.limits: Mapping[str, int] = {}  # how often in a row the host carries out `extend` and `retry`
        self.caller: str | None = None  # the user whose agent it is, where that is not the user of this process
        self.store: Store = Store() if parent is None else parent.store
        self.errors: list[BaseException] = []
        self._sequence = count(1)
        self._tasks: set[Any] = set()

    @property
    def root_session_id(self) -> str:
        """The session in which it all began: of the agent that no other agent started. Its own, if that is this one."""
        return self._root_id or self.session_id

    def __repr__(self) -> str:
        return f"<session {self.session_id}{f' of {self.agent.name}' if self.agent and self.agent.name else ''}>"

    def step(self, kind: type[S], /, **fields: Any) -> S:
        """Build a step with this session's header."""
        header = {
            "session_id": self.session_id, "root_session_id": self.root_session_id,
            "turn_id": self.turn_id, "request_id": self.request_id,
            "checkpoint_id": self.checkpoint_id, "agent": self.agent, "host": self.host, "cwd": self.cwd,
            "user_id": self.user_id, "channel": self.channel, "thread_id": self.thread_id,
            "sequence": next(self._sequence), **fields,
        }  # fmt: skip
        if kind in _WITH_STATE and "state" not in fields:
            header["state"] = self.state
        step: S = build(kind, header)
        return step

    def now(self) -> float:
        """The time, in seconds since 1970. In a replay, it is the time at which the recorded step began."""
        return time()

    def random(self, step: Step, salt: str = "") -> Random:
        """A random source for one step: it gives the same numbers whenever this step is judged, also in a replay.

        The seed consists of the step's ids and `salt`, which tells hooks apart. It is not fit for secrets.
        """
        from random import Random  # slow to import, and few hooks need it

        return Random(f"{step.session_id}/{step.sequence}/{step.event}/{salt}")  # noqa: S311

    async def dispatch(self, step: S) -> Decision[S]:
        """`hooks.dispatch` with this session as `current_session()`. It takes over ids and state that hooks change."""
        if isinstance(step, BeforeTool) and step.tool not in _seen_tools:
            self._log_unknown_tool(step)
        token = active_session.set(self)
        try:
            decision = await self.hooks.dispatch(step)
        finally:
            active_session.reset(token)
        if decision.step is not decision.original and type(step) in _WITH_STATE:
            self._take_changes(decision)
        return decision

    async def dispatch_with_effect(self, step: S, set_effect: EffectFn) -> Decision[S]:
        """`dispatch` for a host that sets the effect of the decision itself, before it is journaled."""
        token = active_effect.set(set_effect)
        try:
            return await self.dispatch(step)
        finally:
            active_effect.reset(token)

    def dispatch_sync(self, step: S) -> Decision[S]:
        """`hooks.dispatch_sync` with this session as `current_session()`, like `dispatch`."""
        if isinstance(step, BeforeTool) and step.tool not in _seen_tools:
            self._log_unknown_tool(step)
        token = active_session.set(self)
        try:
            decision = self.hooks.dispatch_sync(step)
        finally:
            active_session.reset(token)
        if decision.step is not decision.original and type(step) in _WITH_STATE:
            self._take_changes(decision)
        return decision

    def _take_changes(self, decision: Decision[Any]) -> None:
        """Take over the ids and the state that hooks have changed."""
        for field in EVENTS[decision.event].changes:
            if (value := getattr(decision.step, field)) is not None:
                setattr(self, field, value)

    def _log_unknown_tool(self, step: BeforeTool) -> None:
        """Log, once per tool, that no table knows it: hooks for a kind of tool may not see its calls."""
        if len(step.tool) > _LONGEST_TOOL:
            return  # no tool has such a name, and it would fill the memory
        if len(_seen_tools) >= _TOOLS_SEEN:
            _seen_tools.clear()
        _seen_tools.add(step.tool)
        spec = self.hooks.tools.spec(step.tool, step.args, step.host)
        if spec.guessed:
            logger.info("tool %r is in no table; by its arguments, it is taken for kind %s", step.tool, spec.kind)
        elif spec.kind == step.kind == "unknown":
            logger.warning("%s", unknown_kind(step.tool))

    def apply_capabilities(self, decision: Decision[S]) -> Decision[S]:
        """Set the effect of a decision to what the host can carry out, before it is journaled."""
        can = self.capabilities
        if can is not None:
            decision = mark_unsupported(decision, can, lenient=self.lenient)
        return replace(decision, effect="proceed") if self.limits and self._exhausted(decision) else decision

    def _exhausted(self, decision: Decision[S]) -> bool:
        """Whether the host has carried out this control as often as its limit allows."""
        control, step = decision.control, decision.step
        limit = self.limits.get(control)
        if limit is None:
            return False
        so_far = getattr(step, "attempt", 1) - 1 if control == "retry" else getattr(step, "continues_so_far", 0)
        return so_far >= limit

    def subagent(self, name: str, **options: Any) -> Session:
        """Start the session of a subagent: this one is its parent, and they share the store."""
        agent = Agent(new_id("agent"), name, self.agent.id if self.agent else None)
        inherited = {key: getattr(self, key) for key in ("host", "cwd", "user_id", "channel", "thread_id")}
        child = Session(self.hooks, agent=agent, parent=self, **(inherited | options))
        child.limits, child.caller = self.limits, self.caller
        return child

    def clone(self) -> Session:
        """A shallow copy: it shares state, store and tasks, and may get other hooks or ids."""
        clone = Session.__new__(type(self))
        clone.__dict__.update(self.__dict__)
        return clone

    def fork(self) -> Session:
        """A copy with the same ids and a copy of the state, but none of the background tasks."""
        from copy import deepcopy  # few sessions are forked

        fork = self.clone()
        fork.state = deepcopy(self.state)
        fork.errors = []
        fork._tasks = set()
        fork._sequence = count(next(self._sequence))
        return fork

    # --- background tasks -------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, Any], *, name: str | None = None) -> None:
        """Run a coroutine in the background. `close` waits for it and returns its errors."""
        label = name or str(getattr(work, "__qualname__", "task"))
        future: Any
        try:
            future = asyncio.get_running_loop().create_task(work, name=label)
        except RuntimeError:
            future = asyncio.run_coroutine_threadsafe(work, portal.loop)
        self._tasks.add(future)
        future.add_done_callback(lambda done: self._on_task_end(done, label))

    def _on_task_end(self, future: Any, label: str) -> None:
        self._tasks.discard(future)
        if not future.cancelled() and (error := future.exception()) is not None:
            self.errors.append(error)
            logger.error("background task %r of session %s failed: %r", label, self.session_id, error)

    async def close(self, timeout: float = 5.0) -> list[BaseException]:
        """Wait for background tasks and cancel those left after `timeout` seconds. Returns all errors."""
        until = monotonic() + timeout
        while self._tasks and monotonic() < until:  # tasks may spawn further ones
            await asyncio.wait([_as_future(task) for task in list(self._tasks)], timeout=until - monotonic())
            await asyncio.sleep(0)
        late = list(self._tasks)
        for task in late:
            _cancel(task)
            message = f"background task did not finish within {timeout:g} s and was cancelled"
            self.errors.append(TimeoutError(message))
            logger.error("%s (session %s)", message, self.session_id)
        if late:
            await asyncio.wait([_as_future(task) for task in late], timeout=1.0)
        return self.errors

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _as_future(task: Any) -> asyncio.Future[Any]:
    """A background task of any event loop, as a future that this loop can wait for."""
    if not isinstance(task, asyncio.Task):
        waiting = asyncio.wrap_future(task)
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())  # reported by `_on_task_end`
        return waiting
    if task.get_loop() is asyncio.get_running_loop():
        return task

    async def wait() -> None:
        await asyncio.wait([task])

    return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(wait(), task.get_loop()))


def _cancel(task: Any) -> None:
    if isinstance(task, asyncio.Task):
        task.get_loop().call_soon_threadsafe(task.cancel)
    else:
        task.cancel()


def mark_unsupported(decision: Decision[S], capabilities: Capabilities, *, lenient: bool) -> Decision[S]:
    """List the parts of a decision that its host cannot carry out as unsupported.

    A host declares per event the controls, the fields and "context" that it can carry out. A deny that would be lost
    is an error. At an `after_` event, stopping the turn does instead: the model does not see what was denied. At an
    event whose veto is an abort, an abort does. Where there is nothing to veto, a deny is only recorded.
    """
    can, veto = capabilities.get(decision.event, ()), EVENTS[decision.event].veto
    wanted: list[str] = [decision.control] if decision.control != "proceed" else []
    wanted += [field for field in decision.changed if field not in ("kind", "target", "safety")]
    if decision.context and decision.control != "extend":  # which is carried out as context
        wanted.append("context")
    missing = tuple(part for part in wanted if part not in can)
    instead: Control | None = None  # of a deny
    if "stop" in can and decision.event.startswith("after_"):
        instead = "stop"
    elif "abort" in can and veto == "abort":
        instead = "abort"
    if decision.denied and "deny" not in can and veto is not None and instead is None and not lenient:
        host = decision.step.host or "this host"
        raise Unenforceable(
            f"hook {decision.hook!r} denies at {decision.event}, which {host} cannot carry out: {decision.reason}"
        )
    if not missing:
        return decision
    effect = _effect(decision, can, instead)
    return replace(decision, contributions=(*decision.contributions, *map(Unsupported, missing)), effect=effect)


def _effect(decision: Decision[Any], can: Collection[str], instead: Control | None) -> Control | None:
    """The control that the host carries out, `instead` of a deny; None where it can carry out the decided one."""
    if decision.control in ("proceed", *can):
        return None
    if decision.denied and "deny" in can:
        return "deny"
    return instead if decision.denied and instead is not None else "proceed"
