"""Four tools for the demo and the tests: shell, read, write, list, in a folder that paths cannot leave."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ...tools import Kind, Safety
from ..frameworks.tool_call import ToolError

__all__ = ["Tool", "ToolError", "Workspace", "text_tool"]

OUTPUT_LIMIT = 64 << 10


class Tool(msgspec.Struct, frozen=True):
    """A tool that a model may call. `run` takes the arguments."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[dict[str, Any]], Awaitable[Any]]
    kind: Kind | None = None
    safety: Safety | None = None


def text_tool(
    name: str, description: str, run: Callable[..., Awaitable[Any]], *required: str, kind: Kind, safety: Safety
) -> Tool:
    """Return a tool whose arguments are texts. It refuses all others with a `ToolError`."""
    parameters = {
        "type": "object",
        "properties": {argument: {"type": "string"} for argument in required},
        "required": list(required),
        "additionalProperties": False,
    }

    async def checked(args: dict[str, Any]) -> Any:
        wrong = [key for key in required if not isinstance(args.get(key), str)] + [k for k in args if k not in required]
        if wrong:
            raise ToolError(f"{name} takes {', '.join(required)}, each a text; see {', '.join(wrong)}")
        return await run(**args)

    return Tool(name, description, parameters, checked, kind, safety)


class Workspace:
    """A folder, and the tools that work in it."""

    def __init__(self, root: str | Path, *, timeout: float = 60.0) -> None:
        self.root = Path(root).resolve()
        self._timeout = timeout

    @property
    def tools(self) -> list[Tool]:
        return [
            text_tool("shell", "Run a command with /bin/sh.", self.shell, "command", kind="shell", safety="mutating"),
            text_tool("read", "Read a file.", self.read, "path", kind="read", safety="read_only"),
            text_tool("write", "Write a file.", self.write, "path", "content", kind="write", safety="mutating"),
            text_tool("list", "List a folder.", self.list, "path", kind="read", safety="read_only"),
        ]

    def path(self, name: str) -> Path:
        """Resolve a path, links included. Raises `ToolError` if it leaves the workspace."""
        path = (self.root / name).resolve()
        if not path.is_relative_to(self.root):
            raise ToolError(f"{name} is outside the workspace")
        return path

    async def shell(self, command: str) -> str:
        """Run a command. If it is cancelled or takes too long, all its processes are killed."""
        process = await self._start(command)
        try:
            async with asyncio.timeout(self._timeout):
                text = await _head(process.stdout)
                await process.wait()
        except BaseException as error:
            await _kill(process)
            if isinstance(error, TimeoutError):
                raise ToolError(f"the command did not end within {self._timeout:g} s") from None
            raise
        if process.returncode:
            raise ToolError(f"exit {process.returncode}\n{text}".rstrip())
        return text

    async def _start(self, command: str) -> asyncio.subprocess.Process:
        """Start a command. A cancellation leaves no half-started process behind."""
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                "/bin/sh", "-c", command, cwd=self.root, start_new_session=True,
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            )
        )  # fmt: skip
        try:
            return await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait([starting])
            if starting.exception() is None:
                await _kill(starting.result())
            raise

    async def read(self, path: str) -> str:
        try:
            if self.path(path).exists() and not self.path(path).is_file():
                raise ToolError(f"{path}: not a file")  # reading a pipe could take for ever
            return self.path(path).read_text(errors="replace")[:OUTPUT_LIMIT]
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}") from None

    async def write(self, path: str, content: str) -> str:
        file = self.path(path)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}") from None
        return f"wrote {len(content)} characters to {path}"

    async def list(self, path: str) -> str:
        try:
            return "\n".join(sorted(f"{p.name}/" if p.is_dir() else p.name for p in self.path(path).iterdir()))
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}") from None


async def _head(stream: asyncio.StreamReader | None) -> str:
    """Return the first part of an output. The rest is read, so that the process can end, and dropped."""
    kept, cut = bytearray(), False
    while stream is not None and (data := await stream.read(OUTPUT_LIMIT)):
        room = OUTPUT_LIMIT - len(kept)
        kept += data[:room]
        cut = cut or len(data) > room
    return kept.decode(errors="replace") + ("\n[cut]" if cut else "")


async def _kill(process: asyncio.subprocess.Process) -> None:
    """Kill a command and its process group, also if the shell itself has ended already."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    transport: Any = process._transport  # type: ignore[attr-defined]
    transport.close()  # do not wait for a process of another group that still holds the pipe
    await process.wait()
