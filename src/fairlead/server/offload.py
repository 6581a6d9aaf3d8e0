"""A helper process for calls that would block all threads of the daemon.

Python runs one thread at a time and does not interrupt a call into C, such as a search through a long text. Redaction
makes many of those. In another process they delay no request of the daemon.
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import IO, Any, TypeVar

from ..errors import FairleadError, describe

T = TypeVar("T")

TIMEOUT = 20.0
"""Seconds that one call may take. A user's own pattern may take for ever."""
IDLE = 60.0
"""Seconds without a call after which the process ends. The next call starts another."""
_CHILD = "import sys; sys.path[:] = {!r}; from fairlead.server.offload import work; work({!r}, {!r})"


class OffloadFailed(FairleadError):
    """The process could not be started, or gave no result."""


class Offload:
    """Calls functions in a helper process, one at a time. The first call starts it."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._used = 0.0
        self._calling = threading.Lock()

    def call(self, fn: Callable[..., T], *args: Any) -> T:
        """Call `fn(*args)` in the process.

        The function, its arguments and its result must be picklable.
        """
        with self._calling:
            if monotonic() - self._used > IDLE / 2:  # it may be about to end
                self._end()
            try:
                error, result = self._call(fn, args)
            except Exception as problem:  # the process ended, or a value cannot be pickled
                self._end()
                raise OffloadFailed(
                    f"the helper process gave no result within {TIMEOUT:g} s ({describe(problem)})"
                ) from None
            finally:
                self._used = monotonic()
        if error is not None:
            raise error
        return result  # type: ignore[no-any-return]

    def _call(self, fn: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Exception | None, Any]:
        child = self._child = self._child or _start()
        pickle.dump((fn, args), child.stdin, pickle.HIGHEST_PROTOCOL)  # type: ignore[arg-type]
        child.stdin.flush()  # type: ignore[union-attr]
        return pickle.load(child.stdout)  # type: ignore[no-any-return,arg-type]  # noqa: S301 (from our own child)

    def close(self) -> None:
        """End the process after its current call."""
        with self._calling:
            self._end()

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            for pipe in (child.stdin, child.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]
            child.wait()


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 (ourselves)
        [sys.executable, "-c", _CHILD.format(sys.path, TIMEOUT, IDLE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
        start_new_session=True,  # Ctrl-C ends the daemon, which still needs the process
    )


def work(timeout: float, idle: float) -> None:
    """Run the process: answer calls from stdin until stdin ends or is idle."""
    calls, results = os.fdopen(0, "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # only results go to stdout
    with suppress(OSError):
        os.nice(5)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # the default ends the process, even in a call into C
    while select.select([calls], [], [], idle)[0]:
        try:
            fn, args = pickle.load(calls)  # noqa: S301 (from our own parent)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, timeout)
        _write_result(results, _call(fn, args))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _call(fn: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Exception | None, Any]:
    try:
        return None, fn(*args)
    except Exception as error:
        return error, None


def _write_result(results: IO[bytes], result: tuple[Exception | None, Any]) -> None:
    try:
        data = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # such as an error that cannot be pickled
        data = pickle.dumps((OffloadFailed(describe(error)), None))
    results.write(data)
    results.flush()
