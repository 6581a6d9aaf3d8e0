"""A `Framework` lists what an agent framework can carry out at each event, and with which versions.

Each framework has a module of its own, with one `FRAMEWORK` and one class `Fairlead` in it: its native registration.
What they share is in `turn`.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...errors import UnknownName
from ...lifecycle import EVENTS


class Framework(msgspec.Struct, frozen=True, kw_only=True):
    """One framework."""

    name: str
    title: str
    package: str
    """Its name on PyPI."""
    versions: str
    """The range that the tests cover: its oldest and its newest version."""
    can: Mapping[str, str]
    """Per event that fires: the controls and fields that the framework carries out, and "context"."""
    streaming: Mapping[str, str] = {}
    """The same for streamed answers, where it differs."""
    notes: tuple[str, ...] = ()
    """What a user must know beside the table."""

    def capabilities(self, streaming: bool = False) -> dict[str, frozenset[str]]:
        """Return the controls and fields per event, as a session declares them."""
        table = {**self.can, **(self.streaming if streaming else {})}
        return {event: frozenset(table[event].split()) for event in EVENTS if event in table}


WHOLE = {
    "session_start": "deny stop abort context",
    "session_end": "deny",
    "before_request": "abort state session_id checkpoint_id context",
    "after_request": "abort state checkpoint_id context",
    "before_input": "deny stop abort input prepend_input context",
    "after_input": "stop abort context",
    "turn_start": "stop abort context",
    "before_prompt": "stop abort system_prompt context",
    "before_model": "deny stop abort model messages assistant context",
    "after_model": "deny stop abort output context",
    "tool_requested": "stop abort context",
    "before_tool": "deny ask allow stop abort args result is_error context",
    "before_permission": "deny ask allow stop abort resolved context",
    "after_permission": "stop abort context",
    "after_tool": "deny retry stop abort output context",
    "after_tool_batch": "stop abort context",
    "before_turn_end": "extend stop abort context",
    "before_response": "deny abort response",
    "before_output": "deny abort content",
    "turn_end": "",
    "subagent_start": "deny abort initial_message context",
    "subagent_stop": "extend abort context",
    "error": "",
}
"""The table of a framework that carries out everything. No framework reports compaction."""

ALL = (
    "openai_agents", "langchain", "pydantic_ai", "claude_agent_sdk",
    "google_adk", "strands", "agent_framework", "crewai",
)  # fmt: skip


def framework_named(name: str) -> Framework:
    """Return the framework of this name. It must be installed, because its table is in its adapter."""
    from importlib import import_module

    if name not in ALL:
        raise UnknownName("framework", name, ALL)
    found: Framework = import_module(f"fairlead.hosts.frameworks.{name}").FRAMEWORK
    return found
