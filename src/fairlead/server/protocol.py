"""Connections: who is at the other end, and how long it may take to say what it wants."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from ..logs import logger
from ..peers import peer_of
from .app import UNIX

PATIENCE = 5.0
"""Seconds in which a request's headers must have arrived."""
BODY_PATIENCE = 10.0
"""Seconds in which its body must have."""


def protocol(users: frozenset[int] | None) -> type[H11Protocol]:
    """The protocol of a daemon that these users may speak to; None is everybody on this machine."""

    class Protocol(H11Protocol):
        """HTTP for callers that we know, and that do not dawdle."""

        _slow: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            connection: socket.socket = transport.get_extra_info("socket")
            if connection.family == socket.AF_UNIX and not self._identify(connection):
                transport.abort()
                return
            self._hurry(PATIENCE)

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

        def _hurry(self, patience: float) -> None:
            self._relax()
            self._slow = self.loop.call_later(patience, self.transport.abort)

        def _relax(self) -> None:
            if self._slow is not None:
                self._slow.cancel()
                self._slow = None

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            idle = before is None or before.response_complete
            super().data_received(data)
            begun = self.cycle is not before  # the headers are all there
            if self.cycle is not None and (begun or not idle):
                if not self.cycle.more_body:
                    self._relax()  # so is the body: the usual case, in which nobody hurries anybody
                elif begun or self._slow is None:
                    self._hurry(BODY_PATIENCE)
            elif self._slow is None:
                self._hurry(PATIENCE)  # the first bytes of another request on this connection

        def connection_lost(self, exc: Exception | None) -> None:
            self._relax()
            super().connection_lost(exc)

    return Protocol
