"""Who is at the other end of a socket of this machine, as the kernel reports it."""

from __future__ import annotations

import socket
import struct
import sys
from functools import lru_cache
from pathlib import Path
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


_CONNECTIONS = Path("/proc/net/tcp")


def user_of_connection(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """The user whose process connected to a port of this machine; None where the kernel does not say.

    Raises `LookupError` if there is no such connection: it is over, or was never there.
    """
    try:
        lines = _CONNECTIONS.read_text().splitlines()[1:]
    except OSError:
        return None
    ends = [_as_kernel(*client), _as_kernel(*server)]
    for line in lines:
        words = line.split()
        if words[1:3] == ends:
            return int(words[7])
    raise LookupError(f"no connection from {client[0]}:{client[1]}")


def _as_kernel(address: str, port: int) -> str:
    """An address as Linux prints it: `0100007F:1F90` is 127.0.0.1:8080."""
    number = int.from_bytes(socket.inet_aton(address), sys.byteorder)
    return f"{number:08X}:{port:04X}"


@lru_cache(1024)
def user_name(uid: int) -> str:
    """A user's name, by number. A user that the system does not know has only the number."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
