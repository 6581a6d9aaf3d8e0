"""The build of fairlead, beyond its version: a digest of its own source files.

Two checkouts of one version differ, and a daemon goes on with the files that it was started with.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from pathlib import Path


def source_digest() -> str:
    """A digest of the source files that are installed now."""
    root, found = Path(__file__).parent, sha256()
    for file in sorted(root.rglob("*.py")):
        with suppress(OSError):  # a broken link of an editor, or a file that is being replaced
            content = file.read_bytes()
            found.update(f"{file.relative_to(root).as_posix()}\0".encode() + sha256(content).digest())
    return found.hexdigest()[:16]
