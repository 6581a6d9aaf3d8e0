"""Finds out whether a process runs under an agent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

AGENTS = frozenset({
    "aider", "amp", "claude", "cline", "codex", "copilot", "crush", "cursor-agent", "droid", "gemini", "goose",
    "kiro-cli", "opencode", "qwen",
})  # fmt: skip
_VARIABLES = ("CLAUDECODE", "CODEX_SANDBOX", "CURSOR_AGENT", "GEMINI_CLI", "OPENCODE", "QWEN_CODE", "FAIRLEAD_AGENT")


def agent_around(environ: Mapping[str, str] | None = None, pid: int | None = None) -> str | None:
    """The agent that a process runs under, or None; without a `pid`, of this process.

    An agent must not trust hooks, answer questions or switch hooks off.
    """
    if environ is None:
        environ = os.environ if pid is None else _environ_of(pid)
    for name in _VARIABLES:
        if environ.get(name):
            return f"{name} is set"
    for words in _ancestors(os.getppid() if pid is None else pid):
        for word in [word for word in words if not word.startswith("-")][:2]:  # the program, or its script
            name = os.path.basename(word).removesuffix(".js").removesuffix(".exe")
            if name in AGENTS:
                return f"this runs under {name}"
    return None


def _environ_of(pid: int) -> dict[str, str]:
    """The variables that a process was started with; none where the system does not show them."""
    try:
        pairs = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def _ancestors(pid: int) -> Iterator[list[str]]:
    """The command lines of a process and its ancestors."""
    from subprocess import run

    for _ in range(64):
        if pid <= 1:
            return
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
        except OSError:
            if os.path.isdir("/proc/self"):
                return
            shown = run(  # noqa: S603 (a number is all that varies)
                ["/bin/ps", "-o", "ppid=,command=", "-p", str(pid)], capture_output=True, text=True, check=False
            )
            parent, _, command = shown.stdout.strip().partition(" ")
            words = command.split()
        yield words
        if not parent.isdigit():
            return
        pid = int(parent)
