"""Which configured hooks run at which event, in running order."""

from __future__ import annotations

from collections.abc import Iterator

from ...config.hook_entry import ConfiguredHook
from ...config.layers import Config
from ...lifecycle import EVENTS
from .opening import open_hooks

EventChain = tuple[str, list[tuple[ConfiguredHook, list[str]]]]
"""An event, and its hooks in running order, each with notes on what it cannot enforce there."""


def chains_of(config: Config, folder: str) -> Iterator[EventChain]:
    """Each event that has configured hooks, and those hooks in the order in which the daemon runs them."""
    configured = {id(one.hook): one for one in config.hooks}
    in_order = sorted(open_hooks(folder, config.apply), key=lambda hook: hook.order)
    placed = [configured[id(hook)] for hook in in_order if id(hook) in configured]
    for event in EVENTS:
        chain = [(c, notes_of(c, event)) for c in placed if event in c.hook.events]
        if chain:
            yield event, chain


def notes_of(configured: ConfiguredHook, event: str) -> list[str]:
    """What this hook cannot enforce at this event."""
    hook = configured.hook
    if hook.phase == "observe":
        return []
    notes = [] if hook.enforce else ["only monitored"]
    if hook.on_failure == "closed" and EVENTS[event].control_on_failure("closed") is None:
        notes.append("if it fails, the agent goes on: there is nothing to refuse here")
    if hook.on_failure == "open":
        notes.append("if it fails, the agent goes on: on_failure is open")
    return notes
