"""Spreads the sessions of a diff over processes.

Each process opens the sources and the policies by itself, and judges its share of the sessions. The shares follow from
the sessions' names, so the processes need not agree on anything.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from logging import NullHandler
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any, Final
from zlib import crc32

import msgspec

from ..errors import FairleadError, describe
from ..redaction.logs import logger
from .diff import Differ, Progress, merge
from .judge import External
from .policies import Policy
from .report import DiffReport
from .shrinking import shrink_examples
from .sources import Gaps, Group, Selection, Traffic, open_source

SMALL: Final = 20_000
"""Records up to which one process is as fast as several."""


class Job(msgspec.Struct, frozen=True):
    """A diff, as another process is told of it."""

    old: Policy
    new: Policy
    paths: list[str]
    selection: Selection
    external: External = "recorded"
    share: int = 0
    shares: int = 1

    def takes(self, group: Group) -> bool:
        """Whether a session is in this job's share."""
        return crc32((group.root or "").encode(errors="replace")) % self.shares == self.share


def run_diff(
    job: Job, jobs: int = 0, traffic: Traffic | None = None, progress: Callable[[int, int], None] | None = None
) -> DiffReport:
    """Compare two policies. `traffic` is what was opened already, such as stdin, which no other process can read.

    `progress` is told how many of how many records are done.
    """
    own = traffic is None
    traffic = traffic or _open(job)
    try:
        groups = traffic.groups()
        records = sum(group.records for group in groups)
        jobs = jobs or min(os.cpu_count() or 1, 8)
        jobs = 1 if not own or records < SMALL else min(jobs, len(groups))
        job = msgspec.structs.replace(job, shares=jobs)
        mine = [group for group in groups if job.takes(group)]
        done = _scaled(progress, records, sum(group.records for group in mine))
        with _workers(job) as workers:
            return asyncio.run(_run(job, traffic, mine, done, workers))
    finally:
        traffic.close()


def _open(job: Job) -> Traffic:
    return Traffic([open_source(path) for path in job.paths], job.selection)


def _scaled(progress: Callable[[int, int], None] | None, records: int, own: int) -> Progress | None:
    """The progress of all processes, as far as the first one's tells."""
    return None if progress is None else lambda done: progress(done * records // max(own, 1), records)


async def _run(
    job: Job, traffic: Traffic, groups: list[Group], progress: Progress | None, workers: list[Connection]
) -> DiffReport:
    old, about_old = job.old.open(job.external)
    new, about_new = job.new.open(job.external)
    report = DiffReport(
        about_old.name, about_new.name,
        untrusted=sorted({*about_old.untrusted, *about_new.untrusted}),
        external=sorted({*about_old.external, *about_new.external}),
        places=about_old.places | about_new.places,
    )  # fmt: skip
    try:
        await Differ(old, new, report).run(traffic, groups, progress)
        for part in _results(workers):
            merge(report, part)
        if job.share == 0:
            await shrink_examples(report, old, new)
        return report
    finally:
        await old.hooks.aclose()
        await new.hooks.aclose()


def _results(workers: list[Connection]) -> Iterator[DiffReport]:
    """The reports of the other processes, as they come."""
    waiting = list(workers)
    while waiting:
        for ready in wait(waiting):
            one: Any = ready
            waiting.remove(one)
            try:
                is_report, data = one.recv()
            except EOFError:
                raise FairleadError("a process of the replay ended before it was done; try --jobs 1") from None
            if not is_report:
                raise FairleadError(data)
            yield msgspec.json.decode(data, type=DiffReport)


@contextmanager
def _workers(job: Job) -> Iterator[list[Connection]]:
    """The other processes. Whatever happens here, none of them is left."""
    context = multiprocessing.get_context("spawn")
    processes, ends = [], []
    try:
        for share in range(1, job.shares):
            here, there = context.Pipe(duplex=False)
            process = context.Process(
                target=_help, args=(msgspec.json.encode(msgspec.structs.replace(job, share=share)), there), daemon=True
            )
            process.start()
            there.close()
            processes.append(process)
            ends.append(here)
        yield ends
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
            process.join()
        for end in ends:
            end.close()


def _end_with_parent() -> None:
    """End this process when the first one ends, however that was: killed, too."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _help(encoded: bytes, end: Connection) -> None:
    """Judge a share of the sessions, in a process of its own, and send the report."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
    Thread(target=_end_with_parent, daemon=True).start()
    logger.addHandler(NullHandler())
    try:
        job = msgspec.json.decode(encoded, type=Job)
        traffic = _open(job)
        traffic.gaps = Gaps()  # which the first process has counted
        try:
            groups = [group for group in traffic.groups() if job.takes(group)]
            report = asyncio.run(_run(job, traffic, groups, None, []))
        finally:
            traffic.close()
        end.send((True, msgspec.json.encode(report)))
    except Exception as error:  # the first process says it
        end.send((False, str(error) if isinstance(error, FairleadError) else describe(error)))
