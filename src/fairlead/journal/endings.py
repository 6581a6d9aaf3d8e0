"""How a process ends, or becomes two: in neither case may a journal lose something, or write it twice."""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
import time
import weakref
from typing import Any, Protocol


class Ending(Protocol):
    """What must be told: a journal."""

    def close(self) -> None:
        """Write what is left, and let go of the file."""

    def hold(self) -> None:
        """Wait until nothing is being written, and keep it so."""

    def go_on(self) -> None:
        """Write again."""

    def begin_anew(self) -> None:
        """In a child process: all that is open is the parent's."""


PATIENCE = 0.5
"""Seconds that SIGTERM holds up the thread it has interrupted."""
_open: weakref.WeakSet[Ending] = weakref.WeakSet()
_held = threading.local()  # by whoever forks: several threads may do so at once
_heard = False


def watch(journal: Ending) -> None:
    """Tell a journal of the end. Only the main thread can hear of SIGTERM, and it is often the one that makes it."""
    _open.add(journal)
    _hear_of_sigterm()


def hear_of_the_end() -> None:
    """Nothing is lost when the process ends by itself, by an exception or by SIGTERM."""
    global _heard
    if _heard:
        return
    _heard = True
    atexit.register(_close_all)
    if "multiprocessing.util" in sys.modules:  # whose children leave without `atexit`
        from multiprocessing.util import Finalize

        Finalize(None, _close_all, exitpriority=0)
    _hear_of_sigterm()


def _hear_of_sigterm() -> None:
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _close_all() -> None:
    for journal in list(_open):
        journal.close()


def _terminate(signum: int, _: Any) -> None:
    """Write what is left, on another thread: the one that was interrupted may hold a lock that this takes."""
    signal.signal(signum, signal.SIG_DFL)  # who asks twice does not wait
    _thread.start_new_thread(_end, (signum,))
    time.sleep(PATIENCE)  # as a rule, for the rest of its life; otherwise it goes on, and gives the lock back


def _end(signum: int) -> None:
    try:
        _close_all()
    finally:
        os.kill(os.getpid(), signum)


def _before_fork() -> None:
    """Whoever forks waits until nothing is being written: a child must not inherit a lock that nobody gives back."""
    _held.journals = sorted(_open, key=id)  # in one order, so that nobody waits for each other
    for journal in _held.journals:
        journal.hold()


def _after_fork() -> None:
    for journal in _held.__dict__.pop("journals", ()):
        journal.go_on()


def _after_fork_in_child() -> None:
    global _heard
    _heard = False
    _held.__dict__.clear()
    for journal in list(_open):
        journal.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
