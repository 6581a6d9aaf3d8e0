"""`python -m fairlead.hosts.clis FOLDERS`: decides on one event of an agent CLI, where no daemon can run.

Standard input is the request that the client would have sent to the daemon, with all variables of the CLI. Nothing is
shared between events, so a hook that needs a session's state or its counters fails, and its failure policy applies.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from typing import Any, NoReturn

import msgspec

from ...approvals import Approval, ApprovalRequest
from ...config.layers import Config, load_usable
from ...decision import Decision
from ...engine.run import EffectFn
from ...errors import FairleadError
from ...folders import enter
from ...journal.unanswered import import_unanswered
from ...lifecycle import Step
from ...paths import fixed_folders, state_folder
from ...redaction.redactor import redact_text, within
from ...registry import Hooks
from ...session import Session
from .daemon_needs import can_run
from .detection import find_source
from .handler import BadPayload, CliEvent, CliSessionState, answer, parse_event, read_payload
from .mapping import HookRequest
from .opening import caller_scope, open_hooks


class NoSharedState(FairleadError):
    """A hook needs state that only a daemon can keep."""


class StatelessSession(Session):
    """A session of one step, without state or counters.

    Where a daemon could run and does not, hooks that need state fail, the rules of packs about a session, too. Where
    none can run, `keeps_state` is False: these rules say nothing, because every call would be refused for good.
    """

    def _refuse(self) -> NoReturn:
        raise NoSharedState("nothing is shared between steps without a daemon, and none can run here")

    state: Any = property(_refuse, lambda self, value: None)
    store: Any = property(_refuse, lambda self, value: None)


async def decide(request: HookRequest) -> str:
    """Return the answer that a daemon would have given."""
    payload = read_payload(request.entry, request.event, request.payload)
    source = find_source(request.entry.name, request.event, payload, request.cli_env)
    event = parse_event(source.host, source.event, payload, request.metadata(source.host, source.is_known))
    root = request.root(event.host, event.identity.cwd)
    environ = {name: value for name, value in request.env.items() if value is not None}
    if fixed_folders() is None:  # an older launcher passes the environment itself
        environ = dict(os.environ)
    config = load_usable(root, environ=environ)
    with within(caller_scope(environ, config.redact.values)):
        return await _decide(event, root, config, request.is_attended(event.host))


async def _decide(event: CliEvent, root: str, config: Config, attended: bool) -> str:
    journal = config.open_journal()
    async with open_hooks(root, config.apply, journal=journal) as hooks:
        asks_itself = attended and "ask" in event.mapping.can and not _may_answer(hooks)
        approver = _leave_to_host if asks_itself else _refuse_question
        keeps_state = can_run()

        async def dispatch(step: Step, capabilities: dict[str, tuple[str, ...]], carry: EffectFn) -> Decision[Any]:
            session = StatelessSession(
                hooks, step.session_id, capabilities=capabilities, host=step.host, cwd=step.cwd, lenient=True,
                approver=approver,
            )  # fmt: skip
            session.keeps_state = keeps_state
            return await session.dispatch_with_effect(step, carry)

        try:
            return await answer(event, CliSessionState(), dispatch, attended=attended)
        finally:
            if journal is not None:
                import_unanswered(state_folder(), journal)
                journal.close()


def _may_answer(hooks: Hooks) -> bool:
    """Whether a hook could grant what the CLI asks its user: which calls are asked about is not known at that event."""
    return any("before_permission" in hook.events and hook.phase != "observe" for hook in hooks)


async def _leave_to_host(request: ApprovalRequest) -> Approval:
    return Approval("ask", request.step.host)


async def _refuse_question(request: ApprovalRequest) -> Approval:
    """Refuse, with the question: it says what is wrong with the call, and often what would pass."""
    why = "a human must approve this, and without a daemon fairlead can ask none"
    return Approval("deny", None, f"{why}: {request.question}" if request.question else why)


def main() -> None:
    logging.basicConfig(level=logging.ERROR)
    if len(sys.argv) > 1:
        enter(sys.argv[1])
    request = msgspec.json.decode(sys.stdin.buffer.read(), type=HookRequest)
    signal.setitimer(signal.ITIMER_REAL, (request.deadline or 60.0) + 1.0)  # the client has left by then
    try:
        result = asyncio.run(decide(request))
    except BadPayload as error:
        result = f"none:{redact_text(str(error))}:end"
    except FairleadError as error:
        result = f"fail:{redact_text(str(error))}:end"
    sys.stdout.buffer.write(result.encode("utf-8", "replace"))  # in any locale


if __name__ == "__main__":
    main()
