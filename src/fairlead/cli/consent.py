"""What only a person may do: a person has a terminal, and does not run under an agent."""

from __future__ import annotations

import sys


def refuse_agents(what: str) -> None:
    """Raise if an agent runs this."""
    from ..config.trust import agent_around
    from ..errors import FairleadError

    around = agent_around()
    if around is not None:
        raise FairleadError(f"an agent cannot {what} ({around}); run this in a terminal of your own")


def need_a_person(what: str) -> None:
    """Raise if an agent runs this, or nobody sees it."""
    from ..errors import FairleadError

    refuse_agents(what)
    if not sys.stdin.isatty():
        raise FairleadError(f"to {what} needs a terminal, so that it is a person who does")
