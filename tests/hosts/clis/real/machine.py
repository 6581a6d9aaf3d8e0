"""A machine for a test: its own user database, settings of the machine and launcher, and nothing of the real one's."""

from __future__ import annotations

import shutil
from pathlib import Path

from console import namespace

MOUNT = 'mount --bind "$0" /etc && mount --bind "$1" /usr/local/lib && mount --bind "$2" /opt && shift 2 && exec "$@"'


class OwnMachine:
    """Folders that commands see in place of /etc, /usr/local/lib and /opt. Raises `RuntimeError` if none can."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._namespace = namespace()
        self.etc, self.lib, self.opt = folder / "etc", folder / "lib", folder / "opt"
        shutil.copytree("/etc", self.etc, symlinks=True, ignore=shutil.ignore_patterns("shadow*", "gshadow*"))
        (self.etc / "passwd").write_text(f"root:x:0:0:root:{home}:/bin/sh\n")
        for made in (self.lib, self.opt):
            made.mkdir()

    @property
    def prefix(self) -> list[str]:
        """The words before a command that is to run on this machine."""
        return [*self._namespace, "/bin/sh", "-c", MOUNT, str(self.etc), str(self.lib), str(self.opt)]
