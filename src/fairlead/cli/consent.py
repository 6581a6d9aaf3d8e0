"""Checks for what only a person may do: from a terminal, and not under an agent."""

from __future__ import annotations

import sys


def refuse_agents(what: str) -> None:
    """Raise if an agent runs this."""
    from ..agent_process import agent_around
    from ..errors import FairleadError

    around = agent_around()
    if around is not None:
        raise FairleadError(f"an agent cannot {what} ({around}); run this in a terminal of your own")


def need_a_person(what: str) -> None:
    """Raise if an agent runs this, or if there is no terminal."""
    from ..errors import FairleadError

    refuse_agents(what)
    if not sys.stdin.isatty():
        raise FairleadError(f"to {what} needs a terminal, so that it is a person who does")
