"""`fairlead run`: one task, the configured hooks, a model on loopback."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator

import pytest
from aiohttp import web

RULE = """[[hook]]
name = "no-force-push"
on = "before_tool"
rule = 'target.command.contains("--force")'
deny = "not here"
"""


def reply(message: dict) -> dict:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny", "choices": [choice], "usage": usage}


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict]]:
    """An OpenAI-compatible server: it wants a force-push, and then says what it was told. Gives what it was asked."""
    asked: list[dict] = []
    push = {"name": "shell", "arguments": json.dumps({"command": "git push --force"})}

    async def complete(request: web.Request) -> web.Response:
        asked.append(await request.json())
        if len(asked) == 1:
            call = {"id": "call-1", "type": "function", "function": push}
            return web.json_response(reply({"content": None, "tool_calls": [call]}))
        return web.json_response(reply({"content": f"I was told: {asked[-1]['messages'][-1]['content']}"}))

    loop, started, port = asyncio.new_event_loop(), threading.Event(), 0

    async def serve() -> None:
        nonlocal port
        app = web.Application()
        app.router.add_post("/v1/chat/completions", complete)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        started.set()
        await stopped.wait()
        await runner.cleanup()

    stopped = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    started.wait()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody-knows-0123456789")
    yield asked
    loop.call_soon_threadsafe(stopped.set)
    thread.join()
    loop.close()


def test_a_task_is_run_with_the_configured_hooks(machine, spawn, model):
    machine.user(RULE)
    ended = spawn("run", "Push it.", "--model", "openai-chat:tiny")
    assert ended.code == 0
    for part in ("user   Push it.", "DENY by no-force-push: not here", "hooks run"):
        assert part in ended.out
    assert "Hook blocked tool 'shell': not here" in ended.out.partition(" answer ")[2]


def test_the_model_is_told_which_tools_there_are(machine, spawn, model):
    spawn("run", "Push it.", "--model", "openai-chat:tiny")
    assert [tool["function"]["name"] for tool in model[0]["tools"]] == ["shell", "read", "write", "list"]


def test_a_missing_key_is_said_in_words(machine, run, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    ended = run("run", "Hi.", "--model", "openai:gpt-5")
    assert (ended.code, "needs a key" in ended.err, "OPENAI_API_KEY" in ended.err) == (1, True, True)


@pytest.mark.parametrize("name", ["nope:x", "gpt"])
def test_an_unknown_model_is_said_in_words(machine, run, name):
    ended = run("run", "Hi.", "--model", name)
    assert (ended.code, f"there is no model {name}" in ended.err) == (1, True)


def test_a_refused_connection_is_said_in_words(machine, spawn, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody-knows-0123456789")
    ended = spawn("run", "Hi.", "--model", "openai-chat:tiny")
    assert (ended.code, "cannot be reached" in ended.err, "sk-nobody" in ended.all) == (1, True, False)


def test_a_mistake_in_the_configuration_comes_first(machine, run):
    machine.user("[[hook]]\n")
    ended = run("run", "Hi.", "--model", "openai:gpt-5")
    assert (ended.code, "a hook needs a name" in ended.err) == (1, True)
