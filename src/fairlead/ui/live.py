"""New rows as they are recorded, as server-sent events: beside the journal's file, whichever process writes it.

A feed looks for a new highest number ten times a second, and asks its page for the rows of what is new. An event's id
is that number, so that a browser whose connection broke goes on where it was.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import Self

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ..journal.errors import JournalError
from ..journal.reading import Reader
from ..redaction.logs import logger
from .layout import number, ui_of
from .markup import Html
from .searching import newest_number

POLL = 0.1
"""Seconds between two looks at the newest number."""
WITHOUT_JOURNAL = 0.5
"""Seconds between two looks for a journal that is not there yet, or cannot be read."""
ALIVE = 15.0
"""Seconds after which a feed without news says that it is there. Otherwise a broken connection is never noticed."""
RECONNECT = 1000
"""Milliseconds after which a browser connects again."""

NewRows = Callable[[Reader, int, int], Iterable[tuple[int, Html]]]
"""Gives the rows of the records after one number up to another, each with its number. It may keep a state."""


def feed(request: Request, new_rows: NewRows) -> Response:
    """The feed of a page: `new_rows` is called on a thread, and never twice at the same time."""
    known = request.headers.get("last-event-id", "")
    after = max(number(request, "after"), int(known) if known.isdecimal() and len(known) < 19 else 0)
    events = _events(ui_of(request).journal, after, new_rows)
    return StreamingResponse(events, media_type="text/event-stream")


async def _events(journal: Path, after: int, new_rows: NewRows) -> AsyncIterator[str]:
    yield f"retry: {RECONNECT}\n\n"
    with _JournalWatch(journal) as watch:
        silent, failed = 0.0, False
        while True:
            now = watch.newest()
            if watch.is_replaced():
                after = 0
            if now is not None and now > after:
                try:
                    for seq, row in await run_in_threadpool(_read, journal, new_rows, after, now):
                        yield event(seq, row)
                    after, silent, failed = now, 0.0, False
                except JournalError as error:  # such as one that is busy: the next look gets the same rows
                    if not failed:
                        logger.warning("the inspector's feed: %s", error)
                    failed = True
            elif silent >= ALIVE:
                yield f"id: {after}\n: alive\n\n"
                silent = 0.0
            pause = POLL if now is not None and not failed else WITHOUT_JOURNAL
            silent += pause
            await asyncio.sleep(pause)


def _read(journal: Path, new_rows: NewRows, after: int, now: int) -> list[tuple[int, Html]]:
    with Reader(journal) as reader:
        return list(new_rows(reader, after, now))


def event(seq: int, row: Html) -> str:
    """A row as a server-sent event. Each line of it is a line of data."""
    data = "\n".join(f"data: {line}" for line in row.split("\n"))
    return f"id: {seq}\nevent: row\n{data}\n\n"


class _JournalWatch:
    """Looks at the newest number, with a connection of its own. It opens a journal that was replaced again."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._reader: Reader | None = None
        self._file: tuple[int, int] | None = None
        self._replaced = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.db.close()
            self._reader = None

    def is_replaced(self) -> bool:
        """Whether another file took the place of the journal since the last call. Its numbers begin anew."""
        replaced, self._replaced = self._replaced, False
        return replaced

    def newest(self) -> int | None:
        """The newest number; None where there is no journal that can be read."""
        try:
            status = os.stat(self._journal)
            if self._reader is None or self._file != (status.st_dev, status.st_ino):
                self._close()
                self._replaced = self._file is not None
                self._reader, self._file = Reader(self._journal), (status.st_dev, status.st_ino)
            return newest_number(self._reader)
        except (OSError, JournalError):
            return None
        except Exception as error:  # SQLite's, while the file is being changed in another way
            logger.warning("the inspector's feed: %s", error)
            self._close()
            return None
