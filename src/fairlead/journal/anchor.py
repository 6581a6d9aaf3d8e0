"""Anchors: the newest digest, told to somebody whom whoever changes the journal does not control.

Without one a journal can only be consistent: whoever may write it could make all of it anew.
"""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from ..logs import logger
from .store import Head

EVERY = 60.0
"""Seconds between two anchors, while there is something new."""
LIMIT = 10.0
"""Seconds an anchor may take."""


class Anchor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where digests are sent: a file that is appended to, a command that reads one line, a URL that takes a POST."""

    file: str | None = None
    command: tuple[str, ...] | None = None
    url: str | None = None
    every: float = EVERY

    def __post_init__(self) -> None:
        if sum(sink is not None for sink in (self.file, self.command, self.url)) != 1:
            raise ValueError("an anchor is one of file, command and url")

    def send(self, head: Head) -> None:
        """Tell it. Raises whatever goes wrong."""
        line = msgspec.json.encode(Anchored(head.seq, head.digest, head.journal, time.time()))
        if self.file is not None:
            with Path(self.file).open("ab") as file:
                file.write(line + b"\n")
        elif self.command is not None:
            subprocess.run(self.command, input=line + b"\n", timeout=LIMIT, check=True, capture_output=True)  # noqa: S603
        else:
            _post(str(self.url), line)

    def known(self) -> list[Anchored]:
        """The digests that were anchored, where the sink can be read."""
        return read_anchors(Path(self.file).read_bytes()) if self.file is not None else []


class Anchored(msgspec.Struct, frozen=True):
    """A digest as it was sent."""

    seq: int
    digest: str
    journal: str
    at: float = 0.0


def read_anchors(data: bytes) -> list[Anchored]:
    """Anchors, one JSON object per line. Raises `ValueError` for anything else."""
    found = []
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                found.append(msgspec.json.decode(line, type=Anchored))
            except (msgspec.MsgspecError, UnicodeError) as error:
                raise ValueError(f"line {number} is no anchor: {error}") from None
    return found


def _post(url: str, body: bytes) -> None:
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url} is no web address")
    request = Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 (http or https)
    try:
        with urlopen(request, timeout=LIMIT) as answer:  # noqa: S310
            answer.read(1024)
    except HTTPError as error:
        error.close()
        raise


class Anchoring:
    """Sends the newest head now and then, on a thread of its own: a slow sink must not hold up the journal."""

    def __init__(self, anchor: Anchor) -> None:
        self._anchor = anchor
        self._newest: Head | None = None
        self._sent: Head | None = None
        self.error: str | None = None
        """Why the newest head could not be sent. None: it was, or there is none yet."""
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="fairlead-anchor", daemon=True)
        self._thread.start()

    def reached(self, head: Head) -> None:
        self._newest = head
        self._wake.set()

    def close(self) -> None:
        """Send the last one."""
        self._closing.set()
        self._wake.set()
        self._thread.join(LIMIT + 1)

    def _work(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            self._send()
            self._closing.wait(self._anchor.every)
        self._send()

    def _send(self) -> None:
        head = self._newest
        if head is None or head == self._sent:
            return
        try:
            self._anchor.send(head)
            self._sent, self.error = head, None
        except Exception as error:
            told: Any = getattr(error, "stderr", None) or error
            self.error = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
            logger.error("record %d could not be anchored: %s", head.seq, told)
