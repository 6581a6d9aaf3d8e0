"""The process at the other end of a unix socket, as the kernel reports it."""

from __future__ import annotations

import socket
import struct
import sys
from functools import lru_cache
from typing import NamedTuple


class Peer(NamedTuple):
    """The process at the other end of a socket: its user id and its process id."""

    uid: int
    pid: int


def peer_of(connection: socket.socket) -> Peer:
    """The process that connected, or that listens. Raises `OSError` where the kernel does not say."""
    if sys.platform == "darwin":
        # struct xucred: version, uid, number of groups, groups
        credentials = connection.getsockopt(0, 0x001, 76)
        _, uid = struct.unpack("=II", credentials[:8])
        (pid,) = struct.unpack("=i", connection.getsockopt(0, 0x002, 4))
        return Peer(uid, pid)
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    pid, uid, _ = struct.unpack("3i", credentials)
    return Peer(uid, pid)


@lru_cache(1024)
def user_name(uid: int) -> str:
    """A user's name, by number. A user that the system does not know has only the number."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
