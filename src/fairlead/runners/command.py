"""The command runner: a program is started for each step, reads the envelope, and answers.

Exit 0 with nothing on stdout is no opinion, exit 0 with JSON is a verdict, exit 2 is a veto with
stderr as its reason; anything else is a failure. `exits` and `output` say otherwise.
"""

from __future__ import annotations

import os
import shlex
from asyncio import CancelledError
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from ..engine.threads import threads
from ..errors import FairleadError, MalformedVerdict, RunnerFailed, UnknownName
from ..hook import RunnerResult
from ..lifecycle import CONTROLS, EVENTS, Step
from ..verdict import clean, read_verdict
from ..wire.steps import encode_step
from .environment import HookEnvironment, MissingProgram, hook_environment, resolve_program
from .interpreters import scripts_of
from .process import Finished, Process

OutputMode = Literal["verdict", "context", "ignore"]
OUTPUTS: tuple[str, ...] = get_args(OutputMode)
EXITS: dict[int, str] = {0: "proceed", 2: "veto"}


class CommandFailed(RunnerFailed):
    """A command ended in a way that is no verdict."""


class Command:
    """A hook that is a program. Called with a step; time-outs are the engine's."""

    form = "command"

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: HookEnvironment | None = None,
        exits: Mapping[int, str] | None = None,
        output: OutputMode = "verdict",
        workspace: str | Path | None = None,
    ) -> None:
        if not argv or not all(isinstance(word, str) and "\0" not in word for word in argv):
            raise FairleadError(f"a command is a list of words, the program first, not {argv!r}")
        if output not in OUTPUTS:
            raise UnknownName("output", output, OUTPUTS)
        for control in (exits or {}).values():
            if control != "veto" and control not in CONTROLS:
                raise UnknownName("control", control, (*CONTROLS, "veto"), " for an exit code")
        self.environment = environment or hook_environment()
        self.argv = [resolve_program(argv[0], self.environment, workspace), *argv[1:]]
        self.exits = {**EXITS, **(exits or {})}
        self.output = output
        self._needed = [self.argv[0], *scripts_of(self.argv, self.environment.cwd)]

    @classmethod
    def shell(cls, line: str, **options: Any) -> Command:
        """A command line that /bin/sh runs. Use it only if you need a shell."""
        return cls(["/bin/sh", "-c", line], **options)

    def __repr__(self) -> str:
        return f"<command {shlex.join(self.argv)}>"

    async def __call__(self, step: Step) -> RunnerResult:
        for path in self._needed:
            if not os.path.exists(path):
                raise MissingProgram(f"{path} is gone; put it back or remove the hook")
        process = Process(self.argv, self.environment.cwd, self.environment.for_step(step))
        try:
            finished = await threads.run(process.run, encode_step(step))
        except CancelledError:
            process.kill()
            raise
        return self._read(finished, step)

    def _read(self, finished: Finished, step: Step) -> RunnerResult:
        stderr = clean(finished.stderr.decode(errors="replace").strip())
        details: dict[str, Any] = {"exit": finished.exit, "stderr": stderr}
        control = self.exits.get(finished.exit)
        if control is None:
            raise CommandFailed(_ending(finished.exit, stderr), details)
        if control != "proceed":
            details["veto by exit code"] = True
            verdict = {"control": control, "reason": stderr or None, "additional_context": self._context(finished)}
            return RunnerResult(verdict, details)
        if self.output == "context":
            context = self._context(finished)
            return RunnerResult({"additional_context": context} if context else None, details)
        if self.output == "ignore" or not finished.stdout.strip():
            return RunnerResult(None, details)
        try:
            return RunnerResult(read_verdict(finished.stdout, EVENTS[step.event]), details)
        except MalformedVerdict as problem:
            problem.details = details
            raise

    def _context(self, finished: Finished) -> list[str] | None:
        text = finished.stdout.decode(errors="replace").strip() if self.output == "context" else ""
        return [text] if text else None


def _ending(code: int, stderr: str) -> str:
    how = f"killed by signal {-code}" if code < 0 else f"exit {code} means nothing; map it with exit = {{{code} = ...}}"
    return f"{how}{f': {stderr}' if stderr else ''}"
