"""Where the hooks of each open `Fairlead` stand among crewai's own: last, in every list, whatever is cleared.

crewai keeps hooks in global lists. Other code may clear these, and hooks that are registered later, or for one
execution only, would run after ours and change what was judged. So ours are in no list: crewai gets them when it looks
up which hooks to run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from crewai.hooks import InterceptionPoint

Points = Mapping[InterceptionPoint, Callable[[Any], Any]]

_dispatch: Any = sys.modules["crewai.hooks.dispatch"]  # `crewai.hooks.dispatch` is also the name of a function
_resolve, _scoped = _dispatch._resolve_hooks, _dispatch.get_scoped_hooks
_open: list[Points] = []


def open_points(points: Points) -> None:
    """Have crewai run these, after its own hooks."""
    _open.append(points)


def close_points(points: Points) -> None:
    _open[:] = [one for one in _open if one is not points]


def _ours(point: InterceptionPoint) -> list[Any]:
    return [points[point] for points in _open if point in points]


def _resolve_hooks(point: InterceptionPoint) -> list[Any]:
    """The hooks at a point, ours last."""
    ours, theirs = _ours(point), _resolve(point)
    if not ours or not theirs:
        return ours or theirs  # type: ignore[no-any-return]
    if point not in (InterceptionPoint.PRE_TOOL_CALL, InterceptionPoint.POST_TOOL_CALL):
        return [*theirs, *ours]
    return _keeping([*theirs], ours)


def _keeping(theirs: list[Any], ours: list[Any]) -> list[Any]:
    """Hooks at a tool call, where ours see the call that crewai makes.

    Another hook may give the context another tool, agent or dict of arguments. crewai ignores that, so we must, too.
    """
    kept: dict[str, Any] = {}

    def keep(ctx: Any) -> None:
        kept.update(vars(ctx))
        del kept["tool_result"]  # this is for hooks to change

    def restore(ctx: Any) -> None:
        vars(ctx).update(kept)

    return [keep, *theirs, restore, *ours]


def _get_scoped_hooks(point: InterceptionPoint) -> list[Any]:
    """The hooks that run after an agent's own list of hooks around its model, ours last."""
    return [*_scoped(point), *_ours(point)]


_dispatch._resolve_hooks, _dispatch.get_scoped_hooks = _resolve_hooks, _get_scoped_hooks
