"""Runs a command where nothing but loopback can be reached: `python offline.py COMMAND...`.

It makes a network of its own, which needs no more than a user's rights where the system allows that. Where it does
not, the command is run as it is, and says so.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

UP = "--up"


def main(argv: list[str]) -> None:
    if argv[:1] == [UP]:
        bring_up("lo")
        os.execvp(argv[1], argv[1:])
    unshare = shutil.which("unshare")
    for options in (["-n"], ["-rn"]):
        if unshare and subprocess.run([unshare, *options, "true"], capture_output=True, check=False).returncode == 0:
            os.execv(unshare, [unshare, *options, sys.executable, __file__, UP, *argv])
    print("offline: no network of its own could be made; running with the machine's", file=sys.stderr)
    os.execvp(argv[0], argv)


def bring_up(interface: str) -> None:
    """What `ip link set lo up` does, where there is no `ip`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sh", interface.encode(), 0)
        flags = struct.unpack("16sh", fcntl.ioctl(control, 0x8913, request))[1]  # SIOCGIFFLAGS
        fcntl.ioctl(control, 0x8914, struct.pack("16sh", interface.encode(), flags | 1))  # SIOCSIFFLAGS, IFF_UP


if __name__ == "__main__":
    main(sys.argv[1:])
