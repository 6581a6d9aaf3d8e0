"""Process exit and fork: in neither case does a journal lose a record or write one twice."""

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


class WatchedJournal(Protocol):
    """What a journal does when its process ends or forks."""

    def close(self) -> None:
        """Write what is left, and close the file."""

    def pause(self) -> None:
        """Wait for the current write, and write nothing until `resume`."""

    def resume(self) -> None:
        """Go on writing."""

    def reset_in_child(self) -> None:
        """Start over in a child process: all open files are the parent's."""


SIGTERM_DELAY = 0.5
"""Seconds that the SIGTERM handler blocks the thread that it interrupted."""
_open: weakref.WeakSet[WatchedJournal] = weakref.WeakSet()
_paused = threading.local()  # per thread, because several threads may fork at once
_installed = False


def register(journal: WatchedJournal) -> None:
    """Close this journal when the process ends, and pause it during a fork.

    Only the main thread can install a signal handler, and it often is the one that makes the journal.
    """
    _open.add(journal)
    _install_sigterm_handler()


def install_exit_handlers() -> None:
    """Close all journals when the process exits, by itself, by an exception or by SIGTERM."""
    global _installed
    if _installed:
        return
    _installed = True
    atexit.register(_close_all)
    if "multiprocessing.util" in sys.modules:  # its child processes skip `atexit`
        from multiprocessing.util import Finalize

        Finalize(None, _close_all, exitpriority=0)
    _install_sigterm_handler()


def _install_sigterm_handler() -> None:
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _close_all() -> None:
    for journal in list(_open):
        journal.close()


def _terminate(signum: int, _: Any) -> None:
    """Close all journals on another thread: the interrupted one may hold a lock they need."""
    signal.signal(signum, signal.SIG_DFL)  # a second SIGTERM ends the process at once
    _thread.start_new_thread(_end, (signum,))
    time.sleep(SIGTERM_DELAY)  # usually until the process ends; otherwise it resumes and releases its locks


def _end(signum: int) -> None:
    try:
        _close_all()
    finally:
        os.kill(os.getpid(), signum)


def _before_fork() -> None:
    """Pause all journals, because a child would inherit a lock that no thread of it releases."""
    _paused.journals = sorted(_open, key=id)  # in one order, to prevent a deadlock
    for journal in _paused.journals:
        journal.pause()


def _after_fork() -> None:
    for journal in _paused.__dict__.pop("journals", ()):
        journal.resume()


def _after_fork_in_child() -> None:
    global _installed
    _installed = False
    _paused.__dict__.clear()
    for journal in list(_open):
        journal.reset_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
