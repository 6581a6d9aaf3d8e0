"""Warnings reach the user: the CLI shows them to a user who sits before it, and otherwise the model passes them on."""

from __future__ import annotations

from typing import Any

import pytest
from played import Played

from fairlead import Hooks, warn
from fairlead.hosts.clis.mapping import ALL, EXPERIMENTAL, host_named

TEXT = "this project is not trusted"
HOSTS = (*ALL, *EXPERIMENTAL)


def warned(host: str, event: str = "session_start", *, attended: bool = False) -> Played:
    hooks = Hooks(record=True)

    def careful(step: Any) -> Any:
        return warn(TEXT)

    hooks.add(careful, on=event)
    return Played(host, hooks, attended=attended)


def moment_of(host: str, event: str) -> str | None:
    """The CLI's name of one of our events."""
    moments = host_named(host).events
    return next((name for name, moment in moments.items() if moment.event == event and moment.installed), None)


async def told(played: Played, event: str) -> str:
    name = moment_of(played.host.name, event)
    return "" if name is None else (await played.tell(name)).text


@pytest.mark.parametrize("host", HOSTS)
async def test_a_model_that_takes_context_is_told_to_pass_a_warning_on_once(host: str) -> None:
    """At the first event that takes context, at or after the warning."""
    played = warned(host)
    events = ("session_start", "before_input", "before_tool", "after_tool")
    texts = [await told(played, event) for event in events]
    takes = [event for event in events if "context" in host_named(host).can(event) and moment_of(host, event)]
    passed_on = [event for event, text in zip(events, texts, strict=True) if "Tell the user of this warning" in text]
    assert passed_on == (takes[:1] if moment_of(host, "session_start") else [])
    assert all(TEXT in text for text in texts if "Tell the user" in text)


@pytest.mark.parametrize("host", [name for name in HOSTS if host_named(name).shows_warnings])
async def test_a_user_who_sits_before_the_cli_is_shown_it_and_the_model_is_left_alone(host: str) -> None:
    text = await told(warned(host, attended=True), "session_start")
    assert '"systemMessage"' in text
    assert TEXT in text
    assert "Tell the user" not in text


async def test_the_same_warning_at_every_call_is_passed_on_once() -> None:
    played = warned("claude_code", "before_tool")
    texts = [await told(played, "before_tool") for _ in range(3)]
    assert ["Tell the user" in text for text in texts] == [True, False, False]
    assert all('"systemMessage"' in text for text in texts)
