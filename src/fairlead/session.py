"""Sessions: the ids, the state and the background work that belong to one agent at work."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Coroutine
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, TypedDict, TypeVar, overload

from msgspec.structs import replace

from .decision import Decision, Unsupported, unknown_kind
from .errors import FairleadError, Unenforceable
from .lifecycle import Agent, BeforeTool, Control, Step, build, event_named
from .logs import logger
from .run import Carry, carrying, working
from .threads import portal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .approvals import ApproveFn, Approver
    from .registry import Hooks

    Capabilities = Mapping[str, Collection[str]]

S = TypeVar("S", bound=Step)
D = TypeVar("D")

_numbers = count(1)
_process = os.urandom(6).hex()  # so that ids are unique, though they come from a counter
_seen_tools: set[str] = set()
_TOOLS_SEEN = 1024
"""Names of tools that are remembered, so that each unknown one is logged once."""
_LONGEST_TOOL = 200


def new_id(prefix: str) -> str:
    """An id that no other process uses."""
    return f"{prefix}-{_process}-{next(_numbers)}"


_RAISE: Any = object()


@overload
def current_session() -> Session: ...
@overload
def current_session(default: D, /) -> Session | D: ...
def current_session(default: Any = _RAISE, /) -> Any:
    """In a hook: the session whose step is being dispatched. Where there is none, the default, or an error."""
    session = working.get()
    if session is None and default is _RAISE:
        problem = "there is no session here: dispatch the step with session.dispatch(...), or give a default"
        raise FairleadError(f"{problem}, current_session(None)")
    return default if session is None else session


class StoreDump(TypedDict):
    """A store as it is written down. Hits are given by how long ago they were."""

    values: dict[str, Any]
    hits: dict[str, list[float]]
    longest: dict[str, float]


class Store:
    """Counters and windows that many hooks may use at once. Every operation is atomic."""

    KEYS = 10_000
    HITS = 10_000

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, Any] = {}
        self._hits: dict[str, deque[float]] = {}
        self._longest: dict[str, float] = {}

    def get(self, key: str, default: Any = None) -> Any:
        return self._values.get(key, default)

    def set(self, key: str, value: Any) -> None:
        with self._lock:
            self._room(self._values, key)
            self._values[key] = value

    def increment(self, key: str, by: int = 1) -> int:
        """Add to a counter and give its new value."""
        with self._lock:
            self._room(self._values, key)
            value: int = self._values.get(key, 0) + by
            self._values[key] = value
        return value

    def hit(self, key: str, within: float) -> int:
        """Count one hit and give how many there were in the last `within` seconds, this one included."""
        now = monotonic()
        with self._lock:
            self._room(self._hits, key)
            hits = self._hits.setdefault(key, deque(maxlen=self.HITS))
            hits.append(now)
            self._longest[key] = longest = max(within, self._longest.get(key, 0.0))
            while hits[0] <= now - longest:  # another window over the same hits may be longer than this one
                hits.popleft()
            return len(hits) if within == longest else sum(hit > now - within for hit in hits)

    def dump(self) -> StoreDump:
        """All that it holds, for another process to load."""
        now = monotonic()
        with self._lock:
            hits = {key: [now - hit for hit in kept] for key, kept in self._hits.items()}
            return StoreDump(values=dict(self._values), hits=hits, longest=dict(self._longest))

    def load(self, dump: StoreDump) -> None:
        """Take over what another process held."""
        now = monotonic()
        with self._lock:
            self._values |= dump["values"]
            self._longest |= dump["longest"]
            for key, ages in dump["hits"].items():
                self._hits[key] = deque((now - age for age in ages), maxlen=self.HITS)

    def _room(self, kept: dict[str, Any], key: str) -> None:
        if key not in kept and len(kept) >= self.KEYS:
            # Forgetting a key would quietly lift somebody's limit.
            raise FairleadError(f"the session's store holds {self.KEYS} keys already; use fewer, or longer-lived ones")


class About(TypedDict, total=False):
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


class Session:
    """One agent at work. `state` is shared by its hooks, which may edit it; `store` counts."""

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
    ) -> None:
        self.hooks = hooks
        self.session_id = session_id or new_id("session")
        self.state = {} if state is None else state
        self.agent = Agent(new_id("agent"), agent) if isinstance(agent, str) else agent
        self.parent = parent
        self.host = host
        self.cwd = cwd
        self.user_id = user_id
        self.channel = channel
        self.thread_id = thread_id
        self.request_id = request_id
        self.turn_id = turn_id
        self.checkpoint_id = checkpoint_id
        for event in capabilities or ():
            event_named(event)
        self.capabilities = capabilities
        self.lenient = False  # a deny that the host cannot carry out is listed, and not an error
        self.limits: Mapping[str, int] = {}  # how often in a row the host carries out "extend" and "retry"
        self.caller: str | None = None  # the user for whom it works, where that is not the process's own
        self.approver: Approver | ApproveFn | None = None  # in place of the hooks', where the host asks by itself
        self.store: Store = Store() if parent is None else parent.store
        self.errors: list[BaseException] = []
        self._sequence = count(1)
        self._tasks: set[Any] = set()

    def __repr__(self) -> str:
        return f"<session {self.session_id}{f' of {self.agent.name}' if self.agent and self.agent.name else ''}>"

    def step(self, kind: type[S], /, **fields: Any) -> S:
        """Build a step with this session's header."""
        header = {
            "session_id": self.session_id, "turn_id": self.turn_id, "request_id": self.request_id,
            "checkpoint_id": self.checkpoint_id, "agent": self.agent, "host": self.host, "cwd": self.cwd,
            "user_id": self.user_id, "channel": self.channel, "thread_id": self.thread_id,
            "sequence": next(self._sequence), **fields,
        }  # fmt: skip
        step: S = build(kind, header)
        return step

    async def dispatch(self, step: S) -> Decision[S]:
        """`hooks.dispatch` with this session as `current_session()`."""
        if isinstance(step, BeforeTool) and step.tool not in _seen_tools:
            self._see_tool(step)
        token = working.set(self)
        try:
            return await self.hooks.dispatch(step)
        finally:
            working.reset(token)

    async def dispatch_carried(self, step: S, carry: Carry) -> Decision[S]:
        """`dispatch` for a host that says by itself what it carries out of the decision, before it is journaled."""
        token = carrying.set(carry)
        try:
            return await self.dispatch(step)
        finally:
            carrying.reset(token)

    def dispatch_sync(self, step: S) -> Decision[S]:
        """`hooks.dispatch_sync` with this session as `current_session()`."""
        if isinstance(step, BeforeTool) and step.tool not in _seen_tools:
            self._see_tool(step)
        token = working.set(self)
        try:
            return self.hooks.dispatch_sync(step)
        finally:
            working.reset(token)

    def _see_tool(self, step: BeforeTool) -> None:
        """Log, once for each tool, that no table knows it. Hooks for a kind of tool may not see its calls."""
        if len(step.tool) > _LONGEST_TOOL:
            return  # it is no tool, and would be remembered at length
        if len(_seen_tools) >= _TOOLS_SEEN:
            _seen_tools.clear()
        _seen_tools.add(step.tool)
        spec = self.hooks.tools.spec(step.tool, step.args, step.host)
        if spec.guessed:
            logger.info("tool %r is in no table; by its arguments, it is taken for kind %s", step.tool, spec.kind)
        elif spec.kind == step.kind == "unknown":
            logger.warning("%s", unknown_kind(step.tool))

    def last_word(self, decision: Decision[S]) -> Decision[S]:
        """What its host says to a decision, before it is journaled."""
        can = self.capabilities
        if can is not None:
            decision = carried_out(decision, can, lenient=self.lenient)
        return replace(decision, effect="proceed") if self.limits and self._exhausted(decision) else decision

    def _exhausted(self, decision: Decision[S]) -> bool:
        """Whether the host has done what is decided so often that it does not do it again."""
        control, step = decision.control, decision.step
        limit = self.limits.get(control)
        if limit is None:
            return False
        so_far = getattr(step, "attempt", 1) - 1 if control == "retry" else getattr(step, "continues_so_far", 0)
        return so_far >= limit

    def subagent(self, name: str, **about: Any) -> Session:
        """A session for a subagent: it knows its parent and shares its store."""
        agent = Agent(new_id("agent"), name, self.agent.id if self.agent else None)
        inherited = {key: getattr(self, key) for key in ("host", "cwd", "user_id", "channel", "thread_id")}
        child = Session(self.hooks, agent=agent, parent=self, **(inherited | about))
        child.limits, child.caller = self.limits, self.caller
        return child

    def twin(self) -> Session:
        """Another one that shares everything: its hooks, say, can be others."""
        twin = Session.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def fork(self) -> Session:
        """A copy with the same ids and a copy of the state, but none of the background tasks."""
        from copy import deepcopy  # few sessions are forked

        twin = self.twin()
        twin.state = deepcopy(self.state)
        twin.errors = []
        twin._tasks = set()
        twin._sequence = count(next(self._sequence))
        return twin

    # --- background tasks -------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, Any], *, name: str | None = None) -> None:
        """Run something in the background. `close` waits for it; its errors are reported."""
        label = name or str(getattr(work, "__qualname__", "task"))
        future: Any
        try:
            future = asyncio.get_running_loop().create_task(work, name=label)
        except RuntimeError:
            future = asyncio.run_coroutine_threadsafe(work, portal.loop)
        self._tasks.add(future)
        future.add_done_callback(lambda done: self._done(done, label))

    def _done(self, future: Any, label: str) -> None:
        self._tasks.discard(future)
        if not future.cancelled() and (error := future.exception()) is not None:
            self.errors.append(error)
            logger.error("background task %r of session %s failed: %r", label, self.session_id, error)

    async def close(self, timeout: float = 5.0) -> list[BaseException]:
        """Wait for background tasks, cancel what is left after `timeout`, and report all errors."""
        until = monotonic() + timeout
        while self._tasks and monotonic() < until:  # tasks may spawn further ones
            await asyncio.wait([_here(task) for task in list(self._tasks)], timeout=until - monotonic())
            await asyncio.sleep(0)
        late = list(self._tasks)
        for task in late:
            _cancel(task)
            message = f"background task did not finish within {timeout:g} s and was cancelled"
            self.errors.append(TimeoutError(message))
            logger.error("%s (session %s)", message, self.session_id)
        if late:
            await asyncio.wait([_here(task) for task in late], timeout=1.0)
        return self.errors

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def _here(task: Any) -> asyncio.Future[Any]:
    """A background task, wherever it runs, as something this loop can wait for."""
    if not isinstance(task, asyncio.Task):
        waiting = asyncio.wrap_future(task)
        waiting.add_done_callback(lambda done: done.cancelled() or done.exception())  # reported by `_done`
        return waiting
    if task.get_loop() is asyncio.get_running_loop():
        return task

    async def ended() -> None:
        await asyncio.wait([task])

    return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(ended(), task.get_loop()))


def _cancel(task: Any) -> None:
    if isinstance(task, asyncio.Task):
        task.get_loop().call_soon_threadsafe(task.cancel)
    else:
        task.cancel()


def carried_out(decision: Decision[S], capabilities: Capabilities, *, lenient: bool = False) -> Decision[S]:
    """The decision, with what its host cannot carry out listed as unsupported.

    A host declares per event the controls, the fields and "context" that it can carry out. A deny
    that would be lost is an error; after the fact, stopping the turn keeps what was denied from the model just as well.
    """
    if not decision.said:
        return decision
    can = capabilities.get(decision.event, ())
    wanted: list[str] = [decision.control] if decision.control != "proceed" else []
    wanted += [field for field in decision.changed if field not in ("kind", "target", "safety")]
    wanted += ["context"] if decision.context and decision.control != "extend" else []  # which it is said with
    missing = tuple(part for part in wanted if part not in can)
    stops = "stop" in can and decision.event.startswith("after_")
    if decision.denied and "deny" not in can and not stops and not lenient:
        host = decision.step.host or "this host"
        raise Unenforceable(
            f"hook {decision.hook!r} denies at {decision.event}, which {host} cannot carry out: {decision.reason}"
        )
    if not missing:
        return decision
    effect = _effect(decision, can, stops=stops)
    return replace(decision, said=(*decision.said, *map(Unsupported, missing)), effect=effect)


def _effect(decision: Decision[Any], can: Collection[str], *, stops: bool) -> Control | None:
    """What is carried out in place of a control that the host does not know. None: it knows it."""
    if decision.control in ("proceed", *can):
        return None
    if decision.denied and "deny" in can:
        return None if decision.control == "deny" else "deny"
    return "stop" if decision.denied and stops else "proceed"
