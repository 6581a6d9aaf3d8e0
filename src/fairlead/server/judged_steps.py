"""One judgement for a step, however many entries the CLI runs for it.

A CLI can find fairlead in several files: the user's, the project's, and those of another CLI that it reads, too. It
then runs an entry of each for the same step. The first one to arrive is judged. The others get the same effect.

Every entry runs once for each step. So an entry that comes again with an equal step has a new one.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

import msgspec

from ..hosts.clis.effect import Effect
from ..hosts.clis.handler import CliEvent, args_digest
from ..lifecycle import EVENTS, ToolStep

KEPT = 1024
"""Steps that are remembered. The oldest is forgotten first."""
SECONDS = 30.0
"""How long after its judgement a step is remembered."""

StepKey = tuple[str, str, str, str, str]


class JudgedStep:
    """A step that an entry has brought, and the entries that have brought it."""

    def __init__(self, entry: str) -> None:
        self.entries = {entry}
        self.effect: asyncio.Future[Effect | None] = asyncio.get_running_loop().create_future()
        self.judged = 0.0

    def is_over(self) -> bool:
        """Whether no other entry of the CLI brings it any more."""
        return bool(self.judged) and monotonic() - self.judged > SECONDS

    def end(self, effect: Effect | None) -> None:
        self.judged = monotonic()
        if not self.effect.done():
            self.effect.set_result(effect)


class JudgedSteps:
    """The steps of the last seconds, by the entries that have brought them."""

    def __init__(self) -> None:
        self._steps: OrderedDict[StepKey, list[JudgedStep]] = OrderedDict()

    async def effect_of(self, caller: str, entry: str, event: CliEvent) -> Effect | None:
        """Return what became of a step that another entry has brought. None: this entry is the first with it."""
        key = key_of(caller, event)
        for step in self._steps.get(key, ()) if key is not None else ():
            if entry not in step.entries and not step.is_over():
                step.entries.add(entry)
                return await asyncio.shield(step.effect)
        return None

    @contextmanager
    def judging(self, caller: str, entry: str, event: CliEvent) -> Iterator[JudgedStep]:
        """Judge a step. Entries that bring it meanwhile wait for its effect; after a failure they are judged anew."""
        key, step = key_of(caller, event), JudgedStep(entry)
        if key is not None:
            steps = [old for old in self._steps.pop(key, ()) if not old.is_over()]
            self._steps[key] = [*steps[-15:], step]
        while len(self._steps) > KEPT:
            self._steps.popitem(last=False)
        try:
            yield step
        finally:
            step.end(None)


def key_of(caller: str, event: CliEvent) -> StepKey | None:
    """Return what is equal for a step whichever entry brings it. Two entries may name the same tool differently.

    None: the event has no step, or no session to tell it from others.
    """
    fields, session_id = event.fields, event.identity.session_id
    if fields is None or session_id is None:
        return None
    if issubclass(EVENTS[event.mapping.event].step, ToolStep):
        about = args_digest(fields["args"])
    else:
        about = hashlib.sha256(msgspec.json.encode(fields, enc_hook=str, order="sorted")).hexdigest()[:16]
    return caller, session_id, event.host.name, event.mapping.event, about
