"""A process that works for this one, on what would keep all of this one's threads waiting.

Python runs one thread at a time and does not interrupt a call into C, such as a search through a long text. Redaction
makes many of those. In another process they hold up no request here.
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
"""Seconds that one call may take. A pattern that a user gave may take for ever."""
IDLE = 60.0
"""Seconds without a call after which the process ends. The next call starts another."""
_CHILD = "import sys; sys.path[:] = {!r}; from fairlead.server.offload import work; work({!r}, {!r})"


class OffloadFailed(FairleadError):
    """The process could not be started, or gave no result."""


class Offload:
    """Calls functions in a process of its own, one at a time. It is started when it is first needed."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._used = 0.0
        self._calling = threading.Lock()

    def call(self, fn: Callable[..., T], *args: Any) -> T:
        """`fn(*args)` in the process. The function, what it takes and what it returns can be pickled."""
        with self._calling:
            if monotonic() - self._used > IDLE / 2:  # else it might end just now
                self._end()
            try:
                error, result = self._call(fn, args)
            except Exception as problem:  # it ended, or something cannot be pickled
                self._end()
                raise OffloadFailed(f"it gave no result within {TIMEOUT:g} s ({describe(problem)})") from None
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
        """End the process, once it has finished what it is at."""
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
        start_new_session=True,  # Ctrl-C ends the daemon, which still needs it
    )


def work(timeout: float, idle: float) -> None:
    """Be the process: take calls from stdin, until there are no more."""
    given, results = os.fdopen(0, "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else is a result
    with suppress(OSError):
        os.nice(5)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends it, whatever it is at
    while select.select([given], [], [], idle)[0]:
        try:
            fn, args = pickle.load(given)  # noqa: S301 (from who started this)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_REAL, timeout)
        _give(results, _call(fn, args))
        signal.setitimer(signal.ITIMER_REAL, 0)


def _call(fn: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Exception | None, Any]:
    try:
        return None, fn(*args)
    except Exception as error:
        return error, None


def _give(results: IO[bytes], result: tuple[Exception | None, Any]) -> None:
    try:
        data = pickle.dumps(result, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # of an error that cannot be pickled, say
        data = pickle.dumps((OffloadFailed(describe(error)), None))
    results.write(data)
    results.flush()
