"""The worker runner: one long-lived process answers many steps, one JSON line each.

In goes `{"id": 7, "step": {...}}`, out comes `{"id": 7, "verdict": {...}}` (null is no opinion) or
`{"id": 7, "error": "...", "traceback": "..."}`, in any order. The process is started on first use and again when it has
died, with a pause that grows. Each event loop has a process of its own, so nothing crosses threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import msgspec

from ..engine.deadlines import Deadline
from ..engine.threads import threads
from ..errors import FairleadError
from ..lifecycle import Step
from ..verdict import clean
from ..wire.steps import encode_step
from .environment import HookEnvironment, hook_environment, resolve_program
from .interpreters import scripts_of
from .process import OUTPUT_LIMIT

PAUSES = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds to wait before a worker that keeps dying is started again."""

SPIN_TIME = 100e-6
"""Seconds to wait for an answer without giving control back to the loop."""
MAX_MISSES, RETRY_EVERY = 4, 64
"""Answers in a row that may take longer before such waits end, and every how many steps one is tried again."""

_CHUNK = 1 << 16


class WorkerFailed(FairleadError):
    """A worker died, broke the protocol, or reported an error, perhaps with the place in its code."""

    def __init__(self, message: str, traceback: str | None = None) -> None:
        super().__init__(message)
        self.traceback = traceback


class _WorkerReply(msgspec.Struct, forbid_unknown_fields=True):
    id: int
    verdict: Any = msgspec.UNSET  # which the engine reads and checks
    error: str | None = None
    traceback: str | None = None


_read_answer = msgspec.json.Decoder(_WorkerReply).decode


class Worker:
    """A hook that is a long-lived process. Called with a step; `aclose` lets it finish and ends it."""

    form = "worker"

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: HookEnvironment | None = None,
        workspace: str | Path | None = None,
    ) -> None:
        if not argv or not all(isinstance(word, str) and "\0" not in word for word in argv):
            raise FairleadError(f"a worker is a list of words, the program first, not {argv!r}")
        self.environment = environment or hook_environment()
        self.argv = [resolve_program(argv[0], self.environment, workspace), *argv[1:]]
        scripts_of(self.argv, self.environment.cwd)
        self._lines: dict[asyncio.AbstractEventLoop, _LoopConnection] = {}
        self._retired = False

    def __repr__(self) -> str:
        return f"<worker {shlex.join(self.argv)}>"

    async def __call__(self, step: Step) -> Any:
        loop = asyncio.get_running_loop()
        line = self._lines.get(loop)
        if line is None:
            for known in [known for known in self._lines if known.is_closed()]:
                self._lines.pop(known).kill()
            line = self._lines[loop] = _LoopConnection(self)
        try:
            return await line.ask(step)
        finally:
            if self._retired and not line.busy:  # a call was still on its way here when it was closed
                self._lines.pop(loop, None)
                line.stop()

    async def aclose(self, timeout: float = 2.0) -> None:
        """Close its stdin, wait for it to end, and kill it if it does not."""
        self._retired = True
        lines, self._lines = self._lines, {}
        for loop, line in lines.items():
            if loop is asyncio.get_running_loop():
                await line.close(timeout)
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(line.close(timeout), loop))
            else:
                line.kill()


class _LoopConnection:
    """The connection of one loop to its process."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self._process: _Child | None = None
        self._starting = asyncio.Lock()
        self._spawning: asyncio.Task[_Child] | None = None
        self._deaths = 0
        self._ids = count(1)

    async def ask(self, step: Step) -> Any:
        started = monotonic()
        child = self._process
        if child is None or child.dead:
            child = await self._start()
        number = next(self._ids)
        try:
            verdict = await child.ask(number, step)
        except asyncio.CancelledError as cancelled:
            if any(isinstance(arg, Deadline) for arg in cancelled.args):  # late, and not just the caller's wish
                stuck = monotonic() - started
                child.fail(WorkerFailed(f"the worker was stuck for {stuck:.1f} s and was killed"))
            raise
        self._deaths = 0
        return verdict

    async def _start(self) -> _Child:
        async with self._starting:
            if self._process is not None and not self._process.dead:
                return self._process
            if self._process is not None:
                self._deaths = min(self._deaths + 1, len(PAUSES) - 1)
                pause = PAUSES[self._deaths] - (monotonic() - self._process.died_at)
                if pause > 0:
                    await asyncio.sleep(pause)
            if self._spawning is None:
                self._spawning = self._loop.create_task(self._spawn())
            return await asyncio.shield(self._spawning)  # a cancelled caller does not lose the process

    async def _spawn(self) -> _Child:
        environment = self._worker.environment
        try:
            process = await threads.run(_spawn, self._worker.argv, environment.cwd, environment.env)
        finally:
            self._spawning = None
        self._process = _Child(process, self._loop)
        return self._process

    async def close(self, timeout: float) -> None:
        if self._spawning is not None:
            await asyncio.wait([self._spawning], timeout=timeout)
        if self._process is not None:
            await self._process.close(timeout)

    @property
    def busy(self) -> bool:
        return self._process is not None and self._process.busy

    def stop(self) -> None:
        """End the process now, without waiting for it."""
        if self._process is not None:
            self._process.fail(WorkerFailed("the worker was stopped"))

    def kill(self) -> None:
        """End the process from anywhere: its loop does not run any more."""
        if self._process is not None:
            self._process.kill()


def _spawn(argv: list[str], cwd: str, env: dict[str, str]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(  # noqa: S603 (argv, no shell, from a trusted source)
        argv, cwd=cwd, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, bufsize=0,
    )  # fmt: skip
    for pipe in (process.stdin, process.stdout, process.stderr):
        os.set_blocking(pipe.fileno(), False)  # type: ignore[union-attr]
    return process


def _read(fd: int) -> bytes | None:
    """What there is to read: nothing at its end, None if there is nothing yet."""
    try:
        return os.read(fd, _CHUNK)
    except BlockingIOError:
        return None
    except OSError:
        return b""


class _Child:
    """One process of a worker: the calls that wait for it, and the bytes between."""

    def __init__(self, process: subprocess.Popen[bytes], loop: asyncio.AbstractEventLoop) -> None:
        self._process = process
        self._loop = loop
        self._in, self._out, self._err = (
            pipe.fileno() for pipe in (process.stdin, process.stdout, process.stderr) if pipe is not None
        )
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._abandoned: set[int] = set()
        self._unsent = bytearray()
        self._buffer = bytearray()
        self._stderr = bytearray()
        self._misses_left = MAX_MISSES
        self.dead = False
        self.died_at = 0.0
        loop.add_reader(self._out, self._on_stdout)
        loop.add_reader(self._err, self._on_stderr)

    async def ask(self, number: int, step: Step) -> Any:
        reply: asyncio.Future[Any] = self._loop.create_future()
        self._waiting[number] = reply
        self._send(b'{"id":%d,"step":%b}\n' % (number, encode_step(step)))
        if len(self._waiting) == 1 and (self._misses_left or number % RETRY_EVERY == 0):
            self._spin(reply)
        try:
            return await reply
        except asyncio.CancelledError:
            if self._waiting.pop(number, None) is not None:
                self._abandoned.add(number)
            raise

    def _spin(self, reply: asyncio.Future[Any]) -> None:
        """Wait for an answer for `SPIN_TIME` without sleeping, because waking up takes longer than most answers do.

        A worker that misses too often is waited for like this only every `RETRY_EVERY` steps.
        """
        self._misses_left = max(self._misses_left - 1, 0)
        until = perf_counter() + SPIN_TIME
        while not reply.done() and not self.dead and perf_counter() < until:
            self._on_stdout()
        if reply.done():
            self._misses_left = MAX_MISSES

    @property
    def busy(self) -> bool:
        return bool(self._waiting) and not self.dead

    # --- writing ----------------------------------------------------------------------------

    def _send(self, data: bytes) -> None:
        if not self._unsent:
            try:
                data = data[os.write(self._in, data) :]
            except BlockingIOError:
                pass
            except OSError:
                return  # it is dying, and its stdout will end
            if data:
                self._loop.add_writer(self._in, self._on_writable)
        self._unsent += data

    def _on_writable(self) -> None:
        try:
            del self._unsent[: os.write(self._in, self._unsent[:_CHUNK])]
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()
        if not self._unsent:
            self._loop.remove_writer(self._in)

    # --- reading ----------------------------------------------------------------------------

    def _on_stdout(self) -> None:
        data = _read(self._out)
        if data is None:
            return
        if not data:
            self.fail(WorkerFailed(f"the worker died{self._last_words()}"))
            return
        self._buffer += data
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = bytearray(rest)
        for line in lines:
            if line.strip() and not self.dead:
                self._answer(bytes(line))
        if len(self._buffer) > OUTPUT_LIMIT:
            self.fail(WorkerFailed(f"the worker wrote a line of more than {OUTPUT_LIMIT >> 20} MiB"))

    def _answer(self, line: bytes) -> None:
        try:
            answer = _read_answer(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            from ..redaction.redactor import redact_text  # only a failure should pay for it

            quoted = clean(redact_text(line[:_CHUNK].decode(errors="replace"))[:200])
            self.fail(WorkerFailed(f"the worker wrote something that is no answer to its stdout: {quoted!r}"))
            return
        future = self._waiting.pop(answer.id, None)
        if future is None:
            if answer.id in self._abandoned:  # too late: its caller has given up
                self._abandoned.discard(answer.id)
            else:
                self.fail(WorkerFailed(f"the worker answered step {answer.id}, which it was not sent"))
        elif not future.done():
            if answer.verdict is msgspec.UNSET and answer.error is None:
                future.set_exception(WorkerFailed("the worker's answer has neither a verdict nor an error"))
            elif answer.error is not None:
                why = f"the worker could not answer: {clean(answer.error)}"
                future.set_exception(WorkerFailed(why, answer.traceback))
            else:
                future.set_result(answer.verdict)

    def _on_stderr(self) -> None:
        data = _read(self._err)
        if data == b"":
            self._loop.remove_reader(self._err)
        self._stderr += data or b""
        del self._stderr[:-_CHUNK]

    def _last_words(self) -> str:
        with contextlib.suppress(OSError):
            self._stderr += os.read(self._err, _CHUNK)
        from ..redaction.redactor import redact_text

        # Redact before cutting: a private key without its first line is not recognized.
        text = clean(redact_text(self._stderr.decode(errors="replace"))[-1000:].strip())
        return f"; its last output: {text}" if text else ""

    # --- ending -----------------------------------------------------------------------------

    def fail(self, error: WorkerFailed) -> None:
        """End this process and all that it started. Every waiting call fails."""
        if self.dead:
            return
        self.dead, self.died_at = True, monotonic()
        for fd in (self._out, self._err):
            self._loop.remove_reader(fd)
        if self._in >= 0:
            self._loop.remove_writer(self._in)
        waiting, self._waiting = self._waiting, {}
        for future in waiting.values():
            if not future.done():
                future.set_exception(error)
        self.kill()

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()  # it was killed, so this is at once
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    async def close(self, timeout: float) -> None:
        """Let what is in flight finish, close stdin, and wait for the end."""
        if self.dead:
            return
        until = monotonic() + timeout
        if self._waiting:
            await asyncio.wait(list(self._waiting.values()), timeout=timeout)
        if not self.dead and self._process.stdin is not None:
            self._loop.remove_writer(self._in)
            self._process.stdin.close()
            self._in = -1  # the system may soon use the number again
        while not self.dead and self._process.poll() is None and monotonic() < until:
            await asyncio.sleep(0.01)
        self.fail(WorkerFailed("the worker was stopped"))
