"""The driver of the Claude Agent SDK: the CLI that it ships, and a scripted Messages API on loopback.

The CLI takes seconds to start, so it is started once per conversation, and the requests of all tests follow one
another in it. What it asks the SDK goes to whatever is at the driver by then. It lives on a loop of its own.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import shutil
import tempfile
import threading
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

import driver
from claude_agent_sdk import (
    AgentDefinition,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    HookMatcher,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    StreamEvent,
    create_sdk_mcp_server,
    tool,
)
from driver import Call, Played, Say, Way, Workbench

from fairlead import Hooks
from fairlead.hosts.clis.probe import anthropic, dialects, model
from fairlead.hosts.frameworks.claude_agent_sdk import FRAMEWORK, Fairlead

ARGUMENTS = {"shell": "command", "read": "path", "fail": "why", "flaky": "why", "slow": "name"}
PREFIX = "mcp__bench__"
LONGEST = 60
"""Requests in one conversation with a CLI. Then it is another's turn, before it thinks of compacting."""


def variables(url: str, home: str) -> dict[str, str]:
    """What makes the CLI connect only to the model on loopback."""
    return {
        "HOME": home, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-dummy", "IS_SANDBOX": "1",
        "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    }  # fmt: skip


# --- the model --------------------------------------------------------------------------------------


class Table:
    """The request that runs now."""

    def __init__(self) -> None:
        self.script: list[Any] = []
        self.subagent: list[Any] = []
        self.played = Played()
        self.bench = Workbench()
        self.given = ""
        self.hooks: dict[str, list[HookMatcher]] = {}
        self.permit: Any = None


class Scripted(model.Model):
    """Says what is on the table."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table, self.number = table, 0

    def answer(self, method: str, path: str, body: dict[str, Any]) -> dialects.HttpReply:
        if method != "POST" or not path.startswith("/v1/messages") or "count_tokens" in path:
            return dialects.HttpReply(200, "application/json", b'{"data": [], "input_tokens": 1}')
        if not body.get("tools"):
            return anthropic.reply(model.Say("ok"), body, path, 0)
        table = self.table
        driver.tick()
        with self._lock:
            self.number += 1
            helps = "You are the helper." in json.dumps(body.get("system"))
            lines, head = shown(body), len(body.get("system") or ())
            start = max((n for n, line in enumerate(lines) if line == f"user: {table.given}"), default=head)
            table.played.sent.append([*lines[:head], *_said_before(lines[head:start]), *lines[start:]])
            table.played.models.append(str(body["model"]))
            script = table.subagent if helps else table.script
            fails = bool(script) and isinstance(script[0], Exception)  # each time: the CLI tries again
            said = script[0] if fails else script.pop(0) if script else Say("Done.")
        if isinstance(said, Exception):
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": str(said)}}
            return dialects.HttpReply(400, "application/json", json.dumps(error).encode())
        return anthropic.reply(turn(said), body, path, self.number)


def turn(said: Say | Call) -> model.ScriptedTurn:
    if isinstance(said, Say):
        return model.Say(said.text)
    return tuple(model.ScriptedCall(*native(name, args)) for name, args in said.tools)


def native(name: str, args: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if name == "helper":
        return "Agent", {"subagent_type": "helper", "description": "help", "prompt": args["message"]}
    return (f"{PREFIX}{name}" if name in ARGUMENTS else name), args


def shown(body: dict[str, Any]) -> list[str]:
    """What a model is sent, as `role: text`."""
    lines = [f"system: {block['text']}" for block in body.get("system") or ()]
    for message in body["messages"]:
        content = message["content"]
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            if block["type"] == "text":
                lines.append(f"{message['role']}: {_fresh(block['text'])}")
            elif block["type"] == "tool_use":
                args = json.dumps(block["input"], sort_keys=True)
                lines.append(f"assistant: calls {block['name'].removeprefix(PREFIX)} {args}")
            elif block["type"] == "tool_result":
                lines.append(f"tool: {_text(block.get('content'))}")
    return lines


def _said_before(lines: list[str]) -> list[str]:
    """What hooks have to say to what the user says, where a CLI puts it before that: older ones do."""
    last = max((n for n, line in enumerate(lines, 1) if not line.startswith("user")), default=0)
    return [line for line in lines[last:] if "UserPromptSubmit hook" in line]


def _fresh(text: str) -> str:
    """Without why the turn before was ended, of which the CLI tells in the next one."""
    return "\n\n".join(part for part in text.split("\n\n") if "hook stopped continuation" not in part)


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


# --- the CLI ----------------------------------------------------------------------------------------


class Conversation:
    """One CLI, and the client that talks to it."""

    def __init__(self) -> None:
        self.table = Table()
        self.asked = 0
        self.home = tempfile.mkdtemp(prefix="fairlead-sdk-")

    async def start(self, streaming: bool, hooks: Any = None) -> None:
        """With the hooks of whatever is on the table by then, or with these and no others."""
        self.model = Scripted(self.table).__enter__()
        tools = [tool(name, f"{name}.", {ARGUMENTS[name]: str})(partial(self._run, name)) for name in ARGUMENTS]
        options = ClaudeAgentOptions(
            model="first", system_prompt="Be brief.", tools=["Agent", "Task"], setting_sources=[], cwd=self.home,
            env=variables(self.model.url, self.home), include_partial_messages=streaming,
            mcp_servers={"bench": create_sdk_mcp_server("bench", tools=tools)},
            agents={"helper": AgentDefinition(description="Helps.", prompt="You are the helper.")},
            **(
                {"hooks": hooks, "allowed_tools": [f"{PREFIX}shell"]} if hooks is not None else
                {"hooks": {name: self._forward(name, one[0]) for name, one in Fairlead().items()},
                 "can_use_tool": self._permit}
            ),
        )  # fmt: skip
        self.client = ClaudeSDKClient(options)
        await self.client.connect()

    def _forward(self, name: str, matcher: HookMatcher) -> list[HookMatcher]:
        """The same registration, with a callback that goes to whichever hooks are on the table."""

        async def forward(payload: Any, call_id: str | None, context: Any) -> Any:
            found = self.table.hooks.get(name) or []
            return await found[0].hooks[0](payload, call_id, context) if found else {}

        return [type(matcher)(**{**vars(matcher), "hooks": [forward]})]

    async def _permit(self, *asked: Any) -> Any:
        return await self.table.permit(*asked)

    async def _run(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        value = getattr(self.table.bench, name)(**args)
        return {"content": [{"type": "text", "text": await value if asyncio.iscoroutine(value) else value}]}

    async def play(self, table: Table) -> ResultMessage | None:
        self.asked += 1
        vars(self.table).update(vars(table))
        await self.client.query(table.given)
        result = None
        async for message in self.client.receive_response():
            if isinstance(message, StreamEvent) and message.parent_tool_use_id is None:
                delta = message.event.get("delta") or {}
                table.played.pieces += [delta["text"]] if delta.get("type") == "text_delta" else []
            result = message if isinstance(message, ResultMessage) else result
        self.table.hooks = {}
        return result

    async def close(self) -> None:
        with suppress(Exception):
            await self.client.disconnect()
        self.model.__exit__()
        shutil.rmtree(self.home, ignore_errors=True)


class Conversations:
    """All that are under way, on a loop of their own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.open: dict[tuple[str, bool], Conversation] = {}
        self.working: dict[tuple[int, int], Conversation] = {}
        threading.Thread(target=self.loop.run_forever, daemon=True).start()
        atexit.register(self.close)

    async def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    async def play(self, name: str, streaming: bool, table: Table) -> ResultMessage | None:
        found = self.open.get((name, streaming))
        if found is not None and found.asked >= LONGEST:
            await found.close()
            found = None
        if found is None:
            found = self.open[name, streaming] = Conversation()
            await found.start(streaming)
        return await found.play(table)

    async def work(self, which: tuple[int, int], hooks: Any, table: Table) -> None:
        found = self.working.get(which)
        if found is None:
            found = self.working[which] = Conversation()
            await found.start(False, hooks)
        await found.play(table)

    def close(self) -> None:
        for conversation in (*self.open.values(), *self.working.values()):
            with suppress(Exception):
                asyncio.run_coroutine_threadsafe(conversation.close(), self.loop).result(10)
        self.open.clear()
        self.working.clear()


class Driver(driver.Driver):
    framework = FRAMEWORK
    interrupts = True
    helpers = True
    module = "claude_agent_sdk"
    native = True

    def __init__(self) -> None:
        self.conversations = Conversations()

    def adapter(self, hooks: Hooks) -> Fairlead:
        return Fairlead(hooks, own=["bench"])

    async def close(self, adapter: Any) -> None:
        await self.conversations.run(adapter.aclose())

    async def play(
        self,
        hooks: Hooks,
        *script: Say | Call | Exception,
        given: str = "Go.",
        bench: Workbench | None = None,
        streaming: bool = False,
        sync: bool = False,
        session_id: str | None = None,
        approve: bool | None = None,
        helper: list[Say | Call | Exception] | None = None,
        system_prompt: str = "Be brief.",
        adapter: Any = None,
    ) -> Played:
        fairlead = adapter or self.adapter(hooks)

        async def asked(name: str, args: dict[str, Any], context: Any) -> Any:
            """The application: it lets its own tools run, unless a hook asks."""
            if context.decision_reason is not None:
                played.asked.append(context.decision_reason)
            if context.decision_reason is None or approve:
                return PermissionResultAllow()
            return PermissionResultDeny(message="no")

        options = fairlead.options(ClaudeAgentOptions(can_use_tool=asked))
        table = Table()
        table.script, table.subagent, table.given = list(script), list(helper or ()), given
        table.bench, table.hooks, table.permit = bench or Workbench(), options.hooks, options.can_use_tool
        played = table.played
        try:
            result = await self.conversations.run(self.conversations.play(session_id or "", streaming, table))
            if result is not None:
                played.output = result.result or fairlead.why(result.session_id)
                played.error = RuntimeError(result.result) if result.is_error else None
        except Exception as error:
            played.error = error
        finally:
            if adapter is None:
                await self.close(fairlead)
        return played

    # --- for the bench ----------------------------------------------------------------------

    async def work(self, calls: int, *, hooks: Hooks | None = None, native: int = 0, way: Way = "plain") -> None:
        """In a conversation of its own for each kind of work: it takes the CLI seconds to begin one."""

        async def nothing(payload: Any, call_id: str | None, context: Any) -> dict[str, Any]:
            return {}

        table = Table()
        table.given, table.script = "Go.", [driver.call("shell", command="ls") for _ in range(calls)]
        own = {name: [HookMatcher(hooks=[nothing]) for _ in range(native)] for name in ("PreToolUse", "PostToolUse")}
        with_hooks = Fairlead(hooks) if hooks is not None else own if native else {}
        await self.conversations.run(self.conversations.work((id(hooks), native), with_hooks, table))
