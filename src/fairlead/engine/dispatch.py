"""Dispatch: one step in, one decision out.

`Hooks.dispatch` and `Hooks.dispatch_sync` are these two functions. Both look the chain up first, in the same lines: a
shared function would cost a call in each dispatch, and most dispatches do little else.
"""

from __future__ import annotations

import inspect
from asyncio import CancelledError, wrap_future
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from ..decision import Decision, RunEntry
from ..lifecycle import Step
from .loop import (
    PROPAGATED,
    HookLoop,
    await_on_private_loop,
    resume,
    run_hooks,
    run_phases,
    run_remaining,
    run_to_end,
)
from .run import Run, start_run
from .threads import portal

if TYPE_CHECKING:
    from ..registry import Hooks

S = TypeVar("S", bound=Step)


async def dispatch(hooks: Hooks, step: S) -> Decision[S]:
    """Run the hooks that apply to a step and fold their verdicts into one decision."""
    try:
        find, chain = hooks.table.lookups[type(step)]
    except KeyError:
        find, chain = hooks.table.add_lookup(type(step))
    if find is not None:
        step, chain = find(step)
    if chain is None:
        return Decision(step, step)
    remaining = iter(chain.sequence.calls)
    started, make_loop = None, run_remaining
    if not chain.timed:
        cell: list[Run] = []
        if chain.is_single:
            started = monotonic()
        loop = run_hooks(chain, step, remaining, cell, started)
    else:
        # `start_run`, written out: its call would show in every recorded dispatch.
        run_log: list[RunEntry] | None = [chain.sequence] if chain.records_runs else None
        now = monotonic()
        cell = [Run(chain, step, step, chain.sequence, remaining, [now, now], run_log)]
        if chain.is_sequential:
            loop = run_hooks(chain, step, remaining, cell, None)
        else:
            make_loop, loop = run_phases, run_phases(cell[0])
    for awaited in loop:  # at most once: a hook has suspended
        run = cell[0] if cell else start_run(chain, step, remaining, cell, started)
        if chain.quiet_dispatches:
            chain.on_suspension()
        try:
            await resume(run, make_loop, loop, awaited)
        except CancelledError:
            run.record_cancelled()
            raise
        break
    else:
        if not cell:
            return Decision(step, step)  # no hook returned a verdict
        run = cell[0]
        if not chain.always_timed:
            chain.on_quiet_dispatch()
    if run.contributions and run.is_unfinished:
        try:
            await run_to_end(run, run_phases)
        except CancelledError:
            run.record_cancelled()
            raise
    decision = run.conclude()
    if run.pending_write is not None:
        await wrap_future(run.pending_write)
    return decision


def dispatch_sync(hooks: Hooks, step: S) -> Decision[S]:
    """Dispatch a step from code without an event loop, or from the thread of one.

    A chain without async hooks runs in the caller's thread. Any other runs on the thread of a private event loop
    while the caller waits.
    """
    try:
        find, chain = hooks.table.lookups[type(step)]
    except KeyError:
        find, chain = hooks.table.add_lookup(type(step))
    if find is not None:
        step, chain = find(step)
    if chain is None:
        return Decision(step, step)
    remaining = iter(chain.sequence.calls)
    if not chain.runs_inline:
        if chain.has_async:
            return portal.run(partial(dispatch, hooks, step))
        return _finish_sync(start_run(chain, step, remaining))
    for call, _ in remaining:
        try:
            result = call(step)
        except PROPAGATED:
            raise
        except BaseException as error:
            return _finish_sync(start_run(chain, step, remaining), None, error)
        if result is not None:
            return _finish_sync(start_run(chain, step, remaining), result)
    return Decision(step, step)  # no hook returned a verdict


def _finish_sync(run: Run, result: Any = None, error: BaseException | None = None) -> Decision[Any]:
    """Run what a sync dispatch has left, after a hook that returned `result` or raised `error`."""
    run.sync = True
    if result is not None and inspect.isawaitable(result):
        try:
            result = await_on_private_loop(result, run)
        except PROPAGATED:
            raise
        except BaseException as raised:
            result, error = None, raised
    if result is not None or error is not None:
        run.on_hook_end(result, error)
    _exhaust(run_remaining(run))
    if run.is_unfinished:
        _exhaust(run_phases(run))
    decision = run.conclude()
    if run.pending_write is not None:
        run.pending_write.result()
    return decision


def _exhaust(loop: HookLoop) -> None:
    for _ in loop:
        raise AssertionError("a sync dispatch suspended")
