"""Requests of every shape that takes long: as large as they may be, and larger.

Each is the body of a dispatch from a folder, or of a moment of an agent CLI.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fairlead.server.limits import ARGUMENTS, BODY, ESCAPES, NAME, PATH, VALUES, VARIABLES

ROOM = 2000
"""Bytes of a request beside what makes it large."""
MANY = VALUES - 100
TEXT = BODY - ROOM
Shape = Callable[[str], tuple[str, bytes]]


def of(event: str, **fields: Any) -> Shape:
    """A dispatch of a step with these fields."""
    return lambda root: ("/v1/dispatch", _json({"step": {"event": event, **fields}, "root": root}))


def tool(name: str, **args: Any) -> Shape:
    return of("before_tool", tool=name, args=args)


def beside(**more: Any) -> Shape:
    """A dispatch with something large beside its step."""
    return lambda root: ("/v1/dispatch", _json({"step": {"event": "turn_start"}, "root": root} | more))


def moment(event: str, **fields: Any) -> Shape:
    """A moment of Claude Code."""

    def body(root: str) -> tuple[str, bytes]:
        payload = {"session_id": "s", "cwd": root, "hook_event_name": event, "tool_name": "Bash", **fields}
        said = {"host": "claude_code", "event": event, "cwd": root, "payload": json.dumps(payload)}
        return "/v1/hook", _json(said)

    return body


def nested(depth: int) -> Shape:
    def body(root: str) -> tuple[str, bytes]:
        args = b'{"a":%b%b}' % (b"[" * depth, b"]" * depth)
        step = b'{"event":"before_tool","tool":"deep","args":%b}' % args
        return "/v1/dispatch", b'{"step":%b,"root":%b}' % (step, _json(root))

    return body


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def text(pattern: str, size: int = TEXT) -> str:
    """A pattern, again and again, as long as it has that many bytes in JSON."""
    return pattern * (size // len(_json(pattern)[1:-1]))


def said(pattern: str) -> Shape:
    return of("before_input", source="user", input=text(pattern))


def messages(number: int, length: int) -> Shape:
    block = {"type": "text", "text": "x" * length}
    return of("before_model", messages=[{"role": "user", "content": [block]}] * number)


SERVED: dict[str, Shape] = {
    "a text": said("x"),
    "words": said("some words of text, and more. "),
    "escaped characters": of("before_input", source="user", input="\n" * (ESCAPES - 100)),
    "quotes": of("before_input", source="user", input='"\\' * (ESCAPES // 3 - 100)),
    "escaped characters and a text": of("before_input", source="user", input="\n" * 2_000_000 + text("x", TEXT // 2)),
    "one wide character": of("before_input", source="user", input="\U0001f389" + text("x", TEXT - 8)),
    "letters of two bytes": said("é"),
    "base64": said("QUJDREVGR0hJSktMTU5PUA+/"),
    "a text like secrets": of("before_input", source="user", input=text("export A_TOKEN=", 200_000)),
    "an output": of("after_tool", tool="bash", args={"command": "ls"}, output=text("a line of text\n")),
    "messages": messages(MANY // 8, 100),
    "long messages": messages(100, TEXT // 120),
    "a command": tool("bash", command=text("x", ARGUMENTS - ROOM)),
    "a command of words": tool("bash", command=text("rm a ", ARGUMENTS - ROOM)),
    "a command of slashes": tool("bash", command="rm " + text("/a", ARGUMENTS - ROOM)),
    "a command of names": tool("run_anything", cmd=text(".claude/ ", ARGUMENTS - ROOM)),
    "a command of as many words as are small": tool("bash", command=text("a ", 15_000)),
    "a patch": tool("apply_patch", patch=text("*** Add File: a\n", ARGUMENTS - ROOM)),
    "a patch of newlines": tool("apply_patch", patch=text("\n", ARGUMENTS - ROOM)),
    "addresses": tool("web_fetch", prompt=text("http://a.b ", ARGUMENTS - ROOM)),
    "numbers": tool("run_anything", numbers=[0] * MANY),
    "lists": tool("run_anything", lists=[[]] * (MANY // 2)),
    "objects": tool("run_anything", objects=[{}] * (MANY // 2)),
    "short texts": tool("run_anything", cmd=["ab"] * MANY),
    "a list of words": tool("bash", command=["ab"] * MANY),
    "arguments that no shell has": tool("bash", what=["ab"] * MANY),
    "keys": tool("run_anything", **{f"k{number}": 1 for number in range(MANY)}),
    "paths": tool("write", paths=["/a/b"] * MANY),
    "depth": nested(200),
    "variables": beside(env={f"V{number}": "x" for number in range(VARIABLES // 8)}),
    "capabilities": beside(capabilities={"before_tool": ["deny"] * MANY}),
    "what a CLI's tool gave": moment("PostToolUse", tool_input={}, tool_response={"stdout": text("line\n", TEXT // 2)}),
    "what a CLI's tool is given": moment("PreToolUse", tool_input={"command": text("x", ARGUMENTS - ROOM)}),
    "many values of a CLI": moment("PreToolUse", tool_name="mcp__a__b", tool_input={"a": ["ab"] * MANY}),
}
REFUSED: dict[str, Shape] = {
    "numbers": tool("run_anything", numbers=[0] * (TEXT // 2)),
    "lists": tool("run_anything", lists=[[]] * (TEXT // 3)),
    "short texts": tool("run_anything", texts=[""] * (TEXT // 3)),
    "keys": tool("run_anything", **{f"k{number}": 1 for number in range(VALUES)}),
    "messages": messages(TEXT // 70, 10),
    "depth": nested(VALUES),
    "escaped characters": said("\n"),
    "quotes": said('"\\'),
    "a command": tool("bash", command=text("x")),
    "a command of slashes": tool("bash", command=text("/a")),
    "a patch": tool("apply_patch", patch=text("*** Add File: a\n")),
    "arguments of something that was done": of("after_tool", tool="write", args={"content": text("x")}, output=""),
    "the name of a tool": of("before_tool", tool=text("x"), args={}),
    "a name that is a little too long": of("before_tool", tool="x" * (NAME + 1), args={}),
    "the id of a session": of("turn_start", session_id=text("x")),
    "the id of a call": of("before_tool", tool="bash", call_id="x" * (NAME + 1)),
    "the name of an agent": of("turn_start", agent={"id": "a", "name": "x" * (NAME + 1)}),
    "a folder": of("before_tool", tool="bash", args={"command": "rm a"}, cwd="/" + text("x/")),
    "a folder that is a little too long": of("turn_start", cwd="/" + "x/" * (PATH // 2)),
    "variables": beside(env={"V": "x" * (VARIABLES + 1)}),
    "many variables": beside(env={f"V{number}": "x" for number in range(VALUES)}),
    "what a CLI's tool is given": moment("PreToolUse", tool_input={"command": text("x", ARGUMENTS * 2)}),
    "many values of a CLI": moment("PreToolUse", tool_input={"a": [0] * VALUES}),
    "the id of a CLI's session": moment("PreToolUse", session_id="x" * (NAME + 1), tool_input={}),
    "the long id of a CLI's session": moment("PreToolUse", session_id=text("x", TEXT // 2), tool_input={}),
    "the id of a CLI's call": moment("PreToolUse", tool_use_id="x" * (NAME + 1), tool_input={}),
    "the name of a CLI's tool": moment("PreToolUse", tool_name="x" * (NAME + 1), tool_input={}),
    "the name of a CLI's agent": moment("PreToolUse", agent_id="x" * (NAME + 1), agent_type="y", tool_input={}),
}
WRONG: dict[str, Shape] = {
    "an event": of(text("x")),
    "a field": of("turn_start", **{text("x"): 1}),
    "a field of a tool": of("before_tool", tool="bash", **{text("x"): 1}),
    "a folder": beside(root=text("x")),
    "a key": beside(**{text("x"): 1}),
    "a tool that is no text": of("before_tool", tool=[0] * MANY),
    "a CLI": lambda root: ("/v1/hook", _json({"host": text("x"), "event": "", "payload": ""})),
    "a moment": moment(text("x", TEXT // 3)),
    "a payload": lambda root: ("/v1/hook", _json({"host": "codex", "event": "PreToolUse", "payload": text("x")})),
    "no JSON": lambda root: ("/v1/dispatch", text("x").encode()),
    "no end": lambda root: ("/v1/dispatch", b'{"step":"' + text("x").encode()),
}
"""Requests that make no sense, at length. What is said of them must not be as long."""
