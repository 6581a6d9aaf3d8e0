"""Runs one program once: it writes the envelope, reads the output, and leaves no process behind."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from ..errors import FairleadError

OUTPUT_LIMIT = 1 << 20
_CHUNK = 1 << 16


class Finished(msgspec.Struct, frozen=True):
    """How a program ended."""

    exit: int  # negative: the signal that killed it
    stdout: bytes
    stderr: bytes


class TooMuchOutput(FairleadError):
    """A hook wrote more than it may."""


class Process:
    """Runs in a thread of its own; `kill` may come from any other, also before it has started."""

    def __init__(self, argv: Sequence[str], cwd: str, env: dict[str, str]) -> None:
        self._argv = argv
        self._cwd = cwd
        self._env = env
        self._child: subprocess.Popen[bytes] | None = None
        self._killed = False
        self._starting = threading.Lock()  # so that `kill` never comes between the fork and our knowing of it

    def run(self, stdin: bytes) -> Finished:
        """Start the program, feed it, and read it until it ends."""
        with self._starting:
            self._child = child = subprocess.Popen(  # noqa: S603 (argv, no shell, from a trusted source)
                self._argv, cwd=self._cwd, env=self._env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        if self._killed:
            self.kill()
        try:
            stdout, stderr = _converse(child, stdin)
            return Finished(child.wait(), stdout, stderr)
        except BaseException:
            self.kill()
            child.wait()
            raise
        finally:
            for pipe in (child.stdin, child.stdout, child.stderr):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def kill(self) -> None:
        """End the program and everything it started."""
        self._killed = True
        with self._starting:
            if self._child is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._child.pid, signal.SIGKILL)


def _converse(child: subprocess.Popen[bytes], stdin: bytes) -> tuple[bytes, bytes]:
    """Write and read at once, so that neither side can block the other.

    It ends when the program has, not when its pipes are closed: a grandchild in the background may
    hold on to those for ever.
    """
    out: dict[Any, bytearray] = {child.stdout: bytearray(), child.stderr: bytearray()}
    left = memoryview(stdin)
    with contextlib.ExitStack() as stack:
        ready = stack.enter_context(selectors.DefaultSelector())
        for pipe in (child.stdin, child.stdout, child.stderr):
            assert pipe is not None  # noqa: S101 (they are all pipes)
            os.set_blocking(pipe.fileno(), False)
        ready.register(child.stdin, selectors.EVENT_WRITE)  # type: ignore[arg-type]
        ready.register(child.stdout, selectors.EVENT_READ)  # type: ignore[arg-type]
        ready.register(child.stderr, selectors.EVENT_READ)  # type: ignore[arg-type]
        end = _end_of(child, ready)
        if end is not None:
            stack.callback(os.close, end)
        while ready.get_map().keys() - {end}:
            over = False
            for key, _ in ready.select(None if end is not None else 0.01):
                if key.fileobj is child.stdin:
                    left = _write(child.stdin, left, ready)
                elif key.fd == end:
                    over = True
                else:
                    _read(key.fileobj, out, ready)
            if over or (end is None and child.poll() is not None):
                for pipe in (child.stdout, child.stderr):
                    while pipe in [key.fileobj for key in ready.get_map().values()] and _read(pipe, out, ready):
                        pass
                break
    return bytes(out[child.stdout]), bytes(out[child.stderr])


def _end_of(child: subprocess.Popen[bytes], ready: selectors.BaseSelector) -> int | None:
    """A descriptor that becomes readable when the program ends, where the system has such a thing."""
    try:
        end = os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        return None
    ready.register(end, selectors.EVENT_READ)
    return end


def _write(pipe: Any, left: memoryview, ready: selectors.BaseSelector) -> memoryview:
    try:
        left = left[os.write(pipe.fileno(), left[:_CHUNK]) :]
    except BlockingIOError:
        return left
    except BrokenPipeError:  # it does not want to read it all, which is its good right
        left = left[:0]
    if not left:
        ready.unregister(pipe)
        with contextlib.suppress(OSError):
            pipe.close()
    return left


def _read(pipe: Any, out: dict[Any, bytearray], ready: selectors.BaseSelector) -> bool:
    """Read what there is. False when there is nothing more to come, now or ever."""
    try:
        data = os.read(pipe.fileno(), _CHUNK)
    except BlockingIOError:
        return False
    if not data:
        ready.unregister(pipe)
        return False
    out[pipe] += data
    if len(out[pipe]) > OUTPUT_LIMIT:
        raise TooMuchOutput(f"wrote more than {OUTPUT_LIMIT >> 20} MiB; print less, or send it to a file")
    return True
