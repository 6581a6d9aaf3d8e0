"""`python -m fairlead.hosts FOLDERS`: one moment of an agent CLI, decided in this process: there can be no daemon.

Standard input is what the daemon would have been sent, with all variables of the CLI. There is nothing shared here, so
a hook that needs a session's state or its counters fails, and its failure policy says what that means.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import Any, NoReturn

import msgspec

from ..config.layers import Config, load_usable
from ..decision import Decision
from ..errors import FairleadError
from ..folders import enter
from ..journal.unanswered import take_in
from ..lifecycle import Step
from ..places import fixed_folders, state_folder
from ..redaction import Scope, redact_text, within
from ..registry import Hooks
from ..run import Carry
from ..runners.surroundings import PASSED
from ..session import Session
from .answering import BadPayload, Memory, answer, read_payload
from .host import Hooked, Host, host_tools


class NoSharedState(FairleadError):
    """A hook needs what only a daemon can keep."""


class Alone(Session):
    """A session of one step."""

    def _nothing(self) -> NoReturn:
        raise NoSharedState("nothing is shared between steps without a daemon, and none can run here")

    state: Any = property(_nothing, lambda self, value: None)
    store: Any = property(_nothing, lambda self, value: None)


async def decide(asked: Hooked) -> str:
    """The answer that a daemon would have given."""
    host = asked.by()
    payload = read_payload(host, asked.event, asked.payload)
    environ = {name: value for name, value in asked.env.items() if value is not None}
    if fixed_folders() is None:  # an older launcher hands on the environment itself
        environ = dict(os.environ)
    config = load_usable(asked.root(host), environ=environ)
    secrets = {name: value for name, value in environ.items() if name not in PASSED}
    with within(Scope(values=config.redact.values, environ=secrets)):
        return await _decide(asked, host, payload, config)


async def _decide(asked: Hooked, host: Host, payload: dict[str, Any], config: Config) -> str:
    journal = config.open_journal()
    async with Hooks(journal=journal, record=True) as hooks:
        hooks.tools.extend(host_tools())
        config.apply(hooks)

        async def dispatch(step: Step, capabilities: dict[str, tuple[str, ...]], carry: Carry) -> Decision[Any]:
            session = Alone(hooks, step.session_id, capabilities=capabilities, host=step.host, cwd=step.cwd)
            session.lenient = True
            return await session.dispatch_carried(step, carry)

        try:
            return await answer(host, asked.event, payload, Memory(), dispatch, attended=asked.attended(host))
        finally:
            if journal is not None:
                take_in(state_folder(), journal)
                journal.close()


def main() -> None:
    logging.basicConfig(level=logging.ERROR)
    if len(sys.argv) > 1:
        enter(sys.argv[1])
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Hooked)
    signal.setitimer(signal.ITIMER_REAL, (asked.deadline or 60.0) + 1.0)  # whoever waited has gone by then
    try:
        said = asyncio.run(decide(asked))
    except BadPayload as error:
        said = f"none:{redact_text(str(error))}:end"
    except FairleadError as error:
        said = f"fail:{redact_text(str(error))}:end"
    sys.stdout.buffer.write(said.encode("utf-8", "replace"))  # whatever the locale is


if __name__ == "__main__":
    main()
