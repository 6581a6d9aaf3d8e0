"""Connections: who is at the other end, and how long it may take to say what it wants."""

from __future__ import annotations

import asyncio
import os
import select
import socket
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..logs import logger
from ..peers import peer_of
from .app import HUNG_UP, UNIX

PATIENCE = 5.0
"""Seconds in which a request's headers must have arrived."""
BODY_PATIENCE = 10.0
"""Seconds in which its body must have."""
ANSWER_PATIENCE = 30.0
"""Seconds in which its answer must have been taken."""
_OVER = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
READ = 16 << 10
"""Bytes that are read, and understood, in one go. Others have their turn after each."""


def protocol(users: frozenset[int] | None) -> type[H11Protocol]:
    """The protocol of a daemon that these users may speak to; None is everybody on this machine."""

    class Protocol(H11Protocol):
        """HTTP for callers that we know, and that do not dawdle."""

        _slow: asyncio.TimerHandle | None = None
        _slow_at: tuple[float, Any] | None = None  # what we wait for: how long, and in which request

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            transport.max_size = READ
            connection: socket.socket = transport.get_extra_info("socket")
            if connection.family == socket.AF_UNIX and not self._identify(connection):
                transport.abort()
                return
            self.app_state = {**self.app_state, HUNG_UP: self._hung_up}
            self._expect(PATIENCE)

        def _hung_up(self) -> bool:
            """Whether the caller is gone. The socket knows before the event loop has come to read it."""
            if self.transport.is_closing():
                return True
            connection = select.poll()
            connection.register(self.transport.get_extra_info("socket"), 0 | getattr(select, "POLLRDHUP", 0))
            return any(event & _OVER for _, event in connection.poll(0))

        def _identify(self, connection: socket.socket) -> bool:
            try:
                peer = peer_of(connection)
            except OSError as error:
                logger.error("a caller was refused: who it is cannot be told (%s)", error)
                return False
            if users is not None and peer.uid not in users:
                logger.warning("process %d of user %d was refused: this is user %d's", peer.pid, peer.uid, os.geteuid())
                return False
            self.client = (f"{UNIX}{peer.uid}", peer.pid)
            return True

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._look()

        def on_response_complete(self) -> None:
            super().on_response_complete()  # which may begin another request that came with this one
            self._look()
            if self.transport.get_write_buffer_size():
                self.loop.call_later(ANSWER_PATIENCE, self._give_up)

        def _give_up(self) -> None:
            """Hang up on a caller that does not take its answer, which would be kept for ever."""
            if self.transport.get_write_buffer_size():
                self.transport.abort()

        def _look(self) -> None:
            """What the other side still has to say of what it has begun. As a rule that is nothing."""
            state = self.conn.their_state
            if state is h11.SEND_BODY:
                self._expect(BODY_PATIENCE)
            elif state is h11.IDLE and self.conn.trailing_data[0]:
                self._expect(PATIENCE)
            elif state is h11.IDLE and self.timeout_keep_alive_task is None:
                self._expect(self.timeout_keep_alive)  # after an early answer, uvicorn would wait for ever
            else:
                self._expect(None)

        def _expect(self, patience: float | None) -> None:
            """Hang up unless it comes in time. Each part of each request has its own."""
            expected = None if patience is None else (patience, self.cycle)
            if expected == self._slow_at or self.transport.is_closing():
                return
            self._relax()
            self._slow_at = expected
            self._slow = expected and self.loop.call_later(expected[0], self.transport.abort)

        def _relax(self) -> None:
            if self._slow is not None:
                self._slow.cancel()

        def connection_lost(self, exc: Exception | None) -> None:
            self._relax()
            super().connection_lost(exc)

    return Protocol
