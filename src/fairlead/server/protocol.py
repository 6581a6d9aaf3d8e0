"""Connections: the daemon identifies callers and hangs up on slow ones."""

from __future__ import annotations

import asyncio
import os
import select
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..peers import peer_of
from ..redaction.logs import logger
from .app import HUNG_UP, UNIX

HEADER_TIMEOUT = 5.0
"""Seconds in which the headers of a request must arrive."""
BODY_TIMEOUT = 10.0
"""Seconds in which the body of a request must arrive."""
ANSWER_TIMEOUT = 30.0
"""Seconds in which the caller must have read its answer."""
_OVER = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
READ = 16 << 10
"""Bytes that are read and parsed at once. Other connections have their turn in between."""


class _WholeAnswers:
    """A transport that sends an answer's head with the beginning of its body, so that its caller wakes up once."""

    def __init__(self, transport: Any, connection: h11.Connection) -> None:
        self._transport = transport
        self._connection = connection
        self._head = b""
        self._in_body = False
        self.is_closing, self.get_write_buffer_size = transport.is_closing, transport.get_write_buffer_size  # at hand

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        was_in_body, self._in_body = self._in_body, self._connection.our_state is h11.SEND_BODY
        if self._in_body and not was_in_body:
            self._head = data
        else:
            head, self._head = self._head, b""
            if head or data:
                self._transport.write(head + data)

    def close(self) -> None:
        if self._head:
            self._transport.write(self._head)
        self._transport.close()


def protocol(users: frozenset[int] | None) -> type[H11Protocol]:
    """The protocol class of a daemon for these users; None allows all users of this machine."""

    class Protocol(H11Protocol):
        """HTTP for known callers, with a time-out for each part of a request."""

        _expected: tuple[float, Any] | None = None  # the time-out that runs, and the request it is for
        _deadline = 0.0  # when it ends
        _timer: asyncio.TimerHandle | None = None  # for the deadline, or earlier: it is not set anew for every request

        def connection_made(self, transport: Any) -> None:
            super().connection_made(_WholeAnswers(transport, self.conn))  # type: ignore[arg-type]
            transport.max_size = READ
            connection: socket.socket = transport.get_extra_info("socket")
            if connection.family == socket.AF_UNIX and not self._identify(connection):
                transport.abort()
                return
            self.app_state = {**self.app_state, HUNG_UP: self._hung_up}
            self._expect(HEADER_TIMEOUT)

        def _hung_up(self) -> bool:
            """Whether the caller has hung up. The socket knows before the event loop reads from it."""
            if self.transport.is_closing():
                return True
            connection = select.poll()
            connection.register(self.transport.get_extra_info("socket"), 0 | getattr(select, "POLLRDHUP", 0))
            return any(event & _OVER for _, event in connection.poll(0))

        def _identify(self, connection: socket.socket) -> bool:
            try:
                peer = peer_of(connection)
            except OSError as error:
                logger.error("a caller was refused: its user cannot be found out (%s)", error)
                return False
            if users is not None and peer.uid not in users:
                logger.warning("process %d of user %d was refused: this is user %d's", peer.pid, peer.uid, os.geteuid())
                return False
            self.client = (f"{UNIX}{peer.uid}", peer.pid)
            return True

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._update_timer()

        def on_response_complete(self) -> None:
            super().on_response_complete()  # this may begin the next, pipelined request
            self._update_timer()
            if self.transport.get_write_buffer_size():
                self.loop.call_later(ANSWER_TIMEOUT, self._abort_if_unread)

        def _abort_if_unread(self) -> None:
            """Hang up on a caller that does not read its answer, which would stay in memory."""
            if self.transport.get_write_buffer_size():
                self.transport.abort()

        def _update_timer(self) -> None:
            """Set the time-out for the part of a request that is still to come; usually there is none."""
            state = self.conn.their_state
            if state is h11.SEND_BODY:
                self._expect(BODY_TIMEOUT)
            elif state is h11.IDLE and self.conn.trailing_data[0]:
                self._expect(HEADER_TIMEOUT)
            elif state is h11.IDLE and self.timeout_keep_alive_task is None:
                self._expect(self.timeout_keep_alive)  # after an early answer, uvicorn sets no time-out
            else:
                self._expect(None)

        def _expect(self, seconds: float | None) -> None:
            """Hang up after some seconds. Each part of each request has its own time-out."""
            expected = None if seconds is None else (seconds, self.cycle)
            if expected == self._expected or self.transport.is_closing():
                return
            self._expected = expected
            if seconds is None:
                return
            self._deadline = self.loop.time() + seconds
            if self._timer is None:
                self._set_timer()
            elif self._deadline < self._timer.when():
                self._timer.cancel()
                self._set_timer()

        def _set_timer(self) -> None:
            self._timer = self.loop.call_at(self._deadline, self._on_timer, self._deadline)

        def _on_timer(self, at: float) -> None:
            self._timer = None
            if self._expected is None:
                return
            if self._deadline <= at:
                self.transport.abort()
            else:
                self._set_timer()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._timer is not None:
                self._timer.cancel()
            super().connection_lost(exc)

    return Protocol
