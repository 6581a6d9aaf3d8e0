"""Anchors copy the newest digest to where an attacker of the journal cannot edit it.

Without one, a journal can only be consistent: an attacker could forge all of it.
"""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from ..redaction.logs import logger
from .store import Head

EVERY = 60.0
"""Seconds between two anchors, if there are new records."""
SEND_TIMEOUT = 10.0
"""Seconds that sending may take."""


class Anchor(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where digests go: a file to append to, a command to feed, or a URL to POST to."""

    file: str | None = None
    command: tuple[str, ...] | None = None
    url: str | None = None
    every: float = EVERY

    def __post_init__(self) -> None:
        if sum(sink is not None for sink in (self.file, self.command, self.url)) != 1:
            raise ValueError("an anchor is one of file, command and url")

    def send(self, head: Head) -> None:
        """Send the head. Raises any error of the file, the command or the server."""
        line = msgspec.json.encode(AnchoredHead(head.seq, head.digest, head.journal, time.time()))
        if self.file is not None:
            with Path(self.file).open("ab") as file:
                file.write(line + b"\n")
        elif self.command is not None:
            subprocess.run(self.command, input=line + b"\n", timeout=SEND_TIMEOUT, check=True, capture_output=True)  # noqa: S603
        else:
            _post(str(self.url), line)

    def known(self) -> list[AnchoredHead]:
        """The heads that were sent, if the anchor is a file; otherwise none."""
        return read_anchors(Path(self.file).read_bytes()) if self.file is not None else []


class AnchoredHead(msgspec.Struct, frozen=True):
    """A head as it was sent."""

    seq: int
    digest: str
    journal: str
    at: float = 0.0


def read_anchors(data: bytes) -> list[AnchoredHead]:
    """Parse heads that were sent, one JSON object per line.

    Raises `ValueError` for anything else.
    """
    found = []
    for number, line in enumerate(data.splitlines(), 1):
        if line.strip():
            try:
                found.append(msgspec.json.decode(line, type=AnchoredHead))
            except (msgspec.MsgspecError, UnicodeError) as error:
                raise ValueError(f"line {number} is not an anchor: {error}") from None
    return found


def _post(url: str, body: bytes) -> None:
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url} is not a web address")
    request = Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 (http or https)
    try:
        with urlopen(request, timeout=SEND_TIMEOUT) as answer:  # noqa: S310
            answer.read(1024)
    except HTTPError as error:
        error.close()
        raise


class AnchorSender:
    """Sends the newest head once per interval, on its own thread, so that no record waits."""

    def __init__(self, anchor: Anchor) -> None:
        self._anchor = anchor
        self._newest: Head | None = None
        self._sent: Head | None = None
        self.error: str | None = None
        """Why the newest head could not be sent. None if it was sent, or if there is none yet."""
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="fairlead-anchor", daemon=True)
        self._thread.start()

    def update(self, head: Head) -> None:
        self._newest = head
        self._wake.set()

    def close(self) -> None:
        """Send the last head, and end the thread."""
        self._closing.set()
        self._wake.set()
        self._thread.join(SEND_TIMEOUT + 1)

    def _run(self) -> None:
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
            problem: Any = getattr(error, "stderr", None) or error
            self.error = problem.decode(errors="replace") if isinstance(problem, bytes) else str(problem)
            logger.error("record %d could not be anchored: %s", head.seq, problem)
