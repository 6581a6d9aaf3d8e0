"""Random policies and random traffic, made of a seed: hooks of every phase that depend on all that a record has."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from replay_scenes import SECRET, fields_of

import fairlead
from fairlead import Hooks, Journal, Verdict, allow, ask, change, current_session, deny, inject, warn
from fairlead.lifecycle import EVENTS, BeforeTool
from fairlead.packs.budgets import budgets
from fairlead.packs.judging import PackGate, PackOptions, events_of
from fairlead.packs.rules import Limits
from fairlead.runners.rule import Rule
from fairlead.samples import every_step
from fairlead.session import Session

COMMANDS = (
    "ls",
    "git push --force",
    "git status",
    "rm -rf build",
    "boom",
    "cat f.txt",
    f"curl -H {SECRET}",
    "sudo ls",
    "",
)
ON = (*["before_tool"] * 5, "after_tool", "before_input", "before_model", "before_turn_end", "turn_start",
      "before_request", "*")  # fmt: skip
RULES = ('target.command.contains("git")', 'target.command.matches("rm.*")', 'commands.exists(c, c.runs("sudo"))',
         'args.missing == "1"', 'target.url.contains("x")')  # fmt: skip


class HookSpec(NamedTuple):
    """A hook that can be registered again: for the record, and for each replay."""

    fn: Any
    options: dict[str, Any]


def hooks_of(specs: list[HookSpec], **options: Any) -> Hooks:
    hooks = Hooks(**options)
    for spec in specs:
        hooks.add(spec.fn, **spec.options)
    return hooks


def random_policy(rng: random.Random, first: int = 0) -> list[HookSpec]:
    specs: list[HookSpec] = []
    for number in range(first, first + rng.randrange(1, 7)):
        spec = _random_hook(rng, number)
        try:
            hooks_of([spec])
        except fairlead.FairleadError:
            continue  # such as a gate that changes something
        specs.append(spec)
    return specs


def _random_hook(rng: random.Random, number: int) -> HookSpec:
    kind = rng.choice([*KINDS, "rule", "pack"])
    options: dict[str, Any] = {
        "on": rng.choice(ON), "phase": rng.choice(["transform", "gate", "gate"]), "priority": rng.choice([10, 50, 90]),
        "enforce": rng.random() > 0.15, "name": f"{kind}-{number}",
    }  # fmt: skip
    if rng.random() < 0.2:
        options["on_failure"] = rng.choice(["open", "closed", "abort"])
    if kind == "pack":
        limits = Limits(in_a_row=rng.randrange(2, 4), calls=rng.randrange(1, 9), per_minute=rng.randrange(1, 9))
        return HookSpec(
            PackGate(budgets, PackOptions(limits=limits)), options | {"on": events_of(budgets), "phase": "gate"}
        )
    if kind == "rule":
        outcome = {rng.choice(["deny", "ask", "warn", "allow"]): "said {tool}"}
        return HookSpec(Rule(rng.choice(RULES), on="before_tool", **outcome), options | {"on": "before_tool"})  # type: ignore[arg-type]
    if kind in ("changes", "asks"):
        options["on"] = "before_tool"
        options["phase"] = "transform" if kind == "changes" else options["phase"]
    return HookSpec(KINDS[kind](_random_verdict(rng), rng), options)


def _random_verdict(rng: random.Random) -> Callable[[Any], Verdict]:
    """A verdict for each event, among those that it takes."""
    chosen = {}
    for event in EVENTS.values():
        possible = [warn("w"), *([inject("i")] if event.context else [])]
        possible += [getattr(fairlead, name)("r") for name in ("deny", "ask", "allow", "stop", "skip", "extend")
                     if name in event.controls]  # fmt: skip
        chosen[event.name] = rng.choice(possible)
    return lambda step: chosen[step.event]


def _text(step: Any) -> str:
    target = getattr(step, "target", None)
    return (target.command or "") if target is not None else str(getattr(step, "input", "") or "")


Maker = Callable[[Callable[[Any], Verdict], random.Random], Any]


def _words(verdict: Callable[[Any], Verdict], rng: random.Random) -> Any:
    word = rng.choice(["git", "rm", "e", "--force"])
    return lambda step: verdict(step) if word in _text(step) else None


def _fails(verdict: Callable[[Any], Verdict], rng: random.Random) -> Any:
    word = rng.choice(["boom", "git", "e"])

    def fails(step: Any) -> None:
        if word in _text(step):
            raise ValueError(word)

    return fails


def _counts(verdict: Callable[[Any], Verdict], rng: random.Random) -> Any:
    limit = rng.randrange(1, 6)
    return lambda step: verdict(step) if current_session().store.increment("n") > limit else None


def _windows(verdict: Callable[[Any], Verdict], rng: random.Random) -> Any:
    limit, within = rng.randrange(1, 6), rng.choice([60, 3600])
    return lambda step: verdict(step) if current_session().store.hit("h", within=within) > limit else None


def _remembers(verdict: Callable[[Any], Verdict], rng: random.Random) -> Any:
    every = rng.randrange(1, 5)

    def remembers(step: Any) -> Verdict | None:
        state = current_session().state
        state["n"] = state.get("n", 0) + 1
        return verdict(step) if state["n"] % every == 0 else None

    return remembers


def _stores(verdict: Callable[[Any], Verdict], rng: random.Random) -> Any:
    def stores(step: Any) -> Verdict | None:
        store = current_session().store
        count = store.get("s", 0)
        store.set("s", count + 1)
        return verdict(step) if count % 3 == 2 else None

    return stores


def _samples(verdict: Callable[[Any], Verdict], rng: random.Random) -> Any:
    return lambda step: verdict(step) if current_session().random(step, "x").random() < 0.4 else None


def _changes(verdict: Callable[[Any], Verdict], rng: random.Random) -> Any:
    return lambda step: change(command=f"{_text(step)} -v") if "git" in _text(step) else None


def _asks(verdict: Callable[[Any], Verdict], rng: random.Random) -> Any:
    question = rng.choice(["really?", "sure?"])
    return lambda step: ask(question) if "s" in _text(step) else None


def _awaits(verdict: Callable[[Any], Verdict], rng: random.Random) -> Any:
    async def awaits(step: Any) -> Verdict | None:
        return verdict(step) if "git" in _text(step) else None

    return awaits


def _edits_state(verdict: Callable[[Any], Verdict], rng: random.Random) -> Any:
    def edits_state(step: Any) -> None:
        if isinstance(getattr(step, "state", None), dict):
            step.state["edits"] = step.state.get("edits", 0) + 1

    return edits_state


KINDS: dict[str, Maker] = {
    "words": _words, "fails": _fails, "counts": _counts, "windows": _windows, "remembers": _remembers,
    "stores": _stores, "samples": _samples, "changes": _changes, "asks": _asks, "awaits": _awaits,
    "edits_state": _edits_state,
}  # fmt: skip
"""Hooks by what they depend on: everything that a record has."""


# --- traffic --------------------------------------------------------------------------------


class RandomHuman:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    async def approve(self, request: Any) -> Any:
        return self._rng.choice([allow(), deny("no")])


def record_scene(path: Path, specs: list[HookSpec], rng: random.Random) -> None:
    """Run random sessions under these hooks, one after another or all at once."""

    async def work() -> None:
        with Journal(path) as journal:
            hooks = hooks_of(specs, journal=journal, approver=RandomHuman(rng), enforce=rng.random() > 0.1)
            sessions = [_run_session(hooks, f"s-{n}", random.Random(rng.random())) for n in range(rng.randrange(1, 4))]
            if rng.random() < 0.5:
                await asyncio.gather(*sessions)
            else:
                for session in sessions:
                    await session
            await hooks.aclose()

    asyncio.run(work())


async def _run_session(hooks: Hooks, name: str, rng: random.Random) -> None:
    session = hooks.session(name, host="loop", cwd="/repo", user_id="ana")
    family = [session]
    for _ in range(rng.randrange(1, 15)):
        one = rng.choice(family)
        what = rng.choice(["call"] * 5 + ["parallel", "event", "subagent", "request", "everything"])
        if what == "call":
            await one.dispatch(_call(one, rng))
        elif what == "parallel":
            await asyncio.gather(*(one.dispatch(_call(one, rng)) for _ in range(3)))
        elif what == "subagent":
            family.append(session.subagent(f"helper-{len(family)}"))
        elif what == "request":
            for event in ("before_request", "after_request"):
                await one.dispatch(one.step(EVENTS[event].step))
        else:
            steps = every_step()
            for step in steps if what == "everything" else [rng.choice(steps)]:
                await one.dispatch(one.step(type(step), **fields_of(step)))


def _call(session: Session, rng: random.Random) -> BeforeTool:
    return session.step(BeforeTool, tool="bash", args={"command": rng.choice(COMMANDS)})
