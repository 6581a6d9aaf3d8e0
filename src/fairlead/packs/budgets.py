"""Budgets: how often, how long and for how much an agent works, and whether it turns in circles.

Everything is counted per session. The limits are those of `[pack.budgets]`; see `rules.Limits`. A person who allows a
call beyond a limit of the session allows as much again.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec

from .rules import Memory, Objection, Pack

if TYPE_CHECKING:
    from ..lifecycle import AfterModel, AfterTool, BeforeTool

budgets = Pack("budgets", "Asks when an agent turns in circles, or works for longer or for more than you expect.")
_RISK = "ASI08 Cascading Failures"
_MINUTE = 60.0
_SAME = {"tool": "bash", "args": {"command": "pytest -x"}}
_OTHER = {"tool": "bash", "args": {"command": "git diff"}}
_TOKENS = ("input_tokens", "output_tokens", "prompt_tokens", "completion_tokens")
_COSTS = ("cost", "cost_usd", "total_cost_usd", "total_cost")


def _many(times: int, every: float = 0) -> dict[str, Any]:
    """An example: so many calls that differ, and the seconds between them."""
    return {"times": times, "every": every, "tool": "bash", "args": {"command": "echo {n}"}}


def _key(step: BeforeTool) -> str:
    """A short text that equal calls share."""
    return blake2b(msgspec.json.encode([step.tool, step.args]), digest_size=12).hexdigest()


@budgets.session_rule(
    "in-a-row",
    level="destructive",
    why="The agent makes the same call again and again, and nothing changes in between.",
    instead="Read what the call said, and do something else.",
    risk=_RISK,
    stops=[[_SAME, _SAME, _SAME]],
    passes=[[_SAME, _SAME], [_SAME, _OTHER, _SAME, _OTHER, _SAME]],
)
def in_a_row(step: BeforeTool, memory: Memory) -> Objection:
    key = _key(step)
    count = memory.get("row")[1] + 1 if memory.get("row", ("",))[0] == key else 1
    memory.set("row", [key, count])
    most = memory.limits.in_a_row
    # The text is the same for each call beyond the limit, so that a late approval fits the call that is repeated.
    return f"the same call {most} times in a row" if most is not None and count >= most else None


@budgets.session_rule(
    "identical",
    level="destructive",
    answer="warn",
    why="The agent has made the same call many times in this session.",
    instead="Say what it is waiting for, or ask the user.",
    risk=_RISK,
    stops=[[_SAME, _OTHER] * 7 + [_SAME]],
    passes=[[_SAME, _OTHER] * 7],
)
def identical(step: BeforeTool, memory: Memory) -> Objection:
    most = memory.limits.identical
    if most is None:
        return None
    counts = memory.get("calls", {})
    key = _key(step)
    if len(counts) >= 5000 and key not in counts:
        return None  # a session of so many different calls does not turn in circles
    counts[key] = count = counts.get(key, 0) + 1
    memory.set("calls", counts)
    return f"the same call {count} times" if count % most == 0 else None


@budgets.session_rule(
    "rate",
    level="destructive",
    why="The agent makes more calls in a minute than anyone can follow.",
    instead="Do several things in one call, or wait.",
    risk=_RISK,
    stops=[[_many(121)]],
    passes=[[_many(120)]],
)
def rate(step: BeforeTool, memory: Memory) -> Objection:
    most, count = memory.limits.per_minute, memory.hit("rate", _MINUTE)
    return f"more than {most} calls in a minute" if most is not None and count > most else None


def _exceeds(memory: Memory, name: str, used: float, most: float | None, unit: str) -> Objection:
    """Is more used than is allowed, and than a person has allowed on top?"""
    if most is None or used <= most * (1 + memory.get(f"more.{name}", 0)):
        return None
    memory.set(f"asked.{name}", True)
    return f"more than {most:g} {unit}"


@budgets.session_rule(
    "calls",
    level="destructive",
    why="The agent has made more calls in this session than you expect of one.",
    instead="Say what is left to do, and ask the user.",
    risk=_RISK,
    stops=[[_many(1001, every=1)]],
    passes=[[_many(1000, every=1)]],
)
def calls(step: BeforeTool, memory: Memory) -> Objection:
    return _exceeds(memory, "calls", memory.increment("count"), memory.limits.calls, "calls in this session")


@budgets.session_rule(
    "time",
    level="destructive",
    why="The agent works for longer than you expect of one session.",
    instead="Say what is left to do, and ask the user.",
    risk=_RISK,
    stops=[[_SAME, {"after": 481 * _MINUTE}, _OTHER]],
    passes=[[_SAME, {"after": 479 * _MINUTE}, _OTHER]],
)
def duration(step: BeforeTool, memory: Memory) -> Objection:
    now = memory.now()
    began = memory.get("began")
    if began is None:
        memory.set("began", now)
        return None
    return _exceeds(memory, "time", round((now - began) / _MINUTE, 1), memory.limits.minutes, "minutes")


@budgets.session_rule(
    "tokens",
    level="destructive",
    why="Models have read and written more in this session than you expect of one.",
    instead="Say what is left to do, and ask the user.",
    risk=_RISK,
    stops=[[{"event": "after_model", "usage": {"input_tokens": 20_000_000, "output_tokens": 1}}, _SAME]],
    passes=[[{"event": "after_model", "usage": {"input_tokens": 1000, "output_tokens": 10}}, _SAME]],
)
def tokens(step: BeforeTool, memory: Memory) -> Objection:
    return _exceeds(memory, "tokens", memory.get("tokens", 0), memory.limits.tokens, "tokens")


@budgets.session_rule(
    "cost",
    level="destructive",
    why="Models have cost more in this session than you expect of one.",
    instead="Say what is left to do, and ask the user.",
    risk=_RISK,
    stops=[[{"event": "after_model", "usage": {"cost": 50.5}}, _SAME]],
    passes=[[{"event": "after_model", "usage": {"cost": 0.5}}, _SAME]],
)
def cost(step: BeforeTool, memory: Memory) -> Objection:
    return _exceeds(memory, "cost", memory.get("cost", 0.0), memory.limits.cost, "spent")


@budgets.watch("after_model")
def count_usage(step: AfterModel, memory: Memory) -> None:
    """Add up what the host tells of a model's answer."""
    usage: dict[str, Any] = step.usage or {}
    used = sum(value for name in _TOKENS if isinstance(value := usage.get(name), int))
    spent = next((value for name in _COSTS if isinstance(value := usage.get(name), (int, float))), 0)
    if used:
        memory.increment("tokens", used)
    if spent > 0:
        memory.set("cost", memory.get("cost", 0.0) + spent)


@budgets.watch("after_tool")
def extend(step: AfterTool, memory: Memory) -> None:
    """A call beyond a limit that ran was allowed by a person: as much again is allowed."""
    for name in ("calls", "time", "tokens", "cost"):
        if memory.get(f"asked.{name}"):
            memory.set(f"asked.{name}", False)
            if step.executed:
                memory.increment(f"more.{name}")
