"""The loop with real clients: an OpenAI-compatible and an Anthropic-compatible server on loopback, streaming."""

from __future__ import annotations

import json
import socket
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from fairlead import Hooks, change, deny
from fairlead.hosts.loop.agent import Agent
from fairlead.hosts.loop.model import ModelFailed
from fairlead.hosts.loop.tools import Tool
from fairlead.testing import Recorder

KEY = "sk-test-4f9a8b7c6d5e4f3a2b1c0d9e"
WORDS = ["It ", "is ", "sunny."]
"""What the model says, in the pieces it comes in, once it has seen the result of its tool call."""


# --- the servers ----------------------------------------------------------------------------------


class Server:
    """Answers the first request with a tool call and every later one with text, in the provider's own format."""

    path: str

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.refuses: tuple[int, dict[str, Any]] | None = None
        self.breaks_off = False
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if self.refuses is not None:
            status, body = self.refuses
            return web.json_response(body, status=status)
        given = await request.json()
        assert given["stream"] is True
        self.requests.append(given)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in self.events(calls=len(self.requests) == 1):
            await response.write(event.encode())
            if self.breaks_off and request.transport is not None:
                request.transport.abort()
                return response
        await response.write_eof()
        return response

    def events(self, *, calls: bool) -> list[str]:
        raise NotImplementedError

    def results(self) -> list[tuple[str, str]]:
        """What the last request says came of the tool calls: the id and the content."""
        raise NotImplementedError

    def model(self, name: str = "tiny") -> Any:
        raise NotImplementedError


class OpenAI(Server):
    path = "/v1/chat/completions"

    def events(self, *, calls: bool) -> list[str]:
        call = {"index": 0, "id": "call-7", "type": "function", "function": {"name": "weather", "arguments": ""}}
        pieces = [{"index": 0, "function": {"arguments": piece}} for piece in ('{"city": ', '"Oslo"}')]
        if calls:
            deltas: list[dict[str, Any]] = [{"role": "assistant", "content": "Let me see."}, {"tool_calls": [call]}]
            deltas += [{"tool_calls": [piece]} for piece in pieces]
        else:
            deltas = [{"role": "assistant", "content": ""}, *({"content": word} for word in WORDS)]
        choices = [[{"index": 0, "delta": delta, "finish_reason": None}] for delta in deltas]
        choices.append([{"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}])
        usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
        head = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": "tiny"}
        chunks: list[dict[str, Any]] = [head | {"choices": choice} for choice in choices]
        chunks.append(head | {"choices": [], "usage": usage})
        return [*(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks), "data: [DONE]\n\n"]

    def results(self) -> list[tuple[str, str]]:
        return [(m["tool_call_id"], m["content"]) for m in self.requests[-1]["messages"] if m["role"] == "tool"]

    def system(self) -> str:
        return str(self.requests[-1]["messages"][0]["content"])

    def model(self, name: str = "tiny") -> Any:
        client = AsyncOpenAI(base_url=f"{self.url}/v1", api_key=KEY, max_retries=0)
        return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client)), client


class Anthropic(Server):
    path = "/v1/messages"

    def events(self, *, calls: bool) -> list[str]:
        message = {
            "id": "m-1", "type": "message", "role": "assistant", "model": "tiny", "content": [], "stop_reason": None,
            "stop_sequence": None, "usage": {"input_tokens": 9, "output_tokens": 1},
        }  # fmt: skip
        events: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
        events += self._block(
            0, {"type": "text", "text": ""}, "text_delta", "text", ["Let me see."] if calls else WORDS
        )
        if calls:
            block = {"type": "tool_use", "id": "call-7", "name": "weather", "input": {}}
            events += self._block(1, block, "input_json_delta", "partial_json", ['{"city": ', '"Oslo"}'])
        reason = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        events += [{"type": "message_delta", "delta": reason, "usage": {"output_tokens": 4}}, {"type": "message_stop"}]
        return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]

    def _block(self, n: int, block: dict[str, Any], kind: str, key: str, pieces: list[str]) -> list[dict[str, Any]]:
        deltas = [{"type": "content_block_delta", "index": n, "delta": {"type": kind, key: piece}} for piece in pieces]
        start = {"type": "content_block_start", "index": n, "content_block": block}
        return [start, *deltas, {"type": "content_block_stop", "index": n}]

    def results(self) -> list[tuple[str, str]]:
        found = [block for message in self.requests[-1]["messages"] for block in message["content"]]
        return [
            (block["tool_use_id"], content if isinstance(content := block["content"], str) else content[0]["text"])
            for block in found
            if isinstance(block, dict) and block["type"] == "tool_result"
        ]

    def system(self) -> str:
        system = self.requests[-1]["system"]
        return system if isinstance(system, str) else str(system[0]["text"])

    def model(self, name: str = "tiny") -> Any:
        client = AsyncAnthropic(base_url=self.url, api_key=KEY, max_retries=0)
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client)), client


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[Server]:
    app = web.Application()
    app.router.add_post(server.path, server.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


@pytest.fixture(params=[OpenAI, Anthropic], ids=["openai", "anthropic"])
async def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Any]:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with serving(request.param()) as served:
        yield served


Make = Callable[..., Agent]


@pytest.fixture
async def make(server: Any) -> AsyncIterator[Make]:
    """Agents that talk to the server, with one tool."""
    clients: list[Any] = []

    async def weather(args: dict[str, Any]) -> str:
        return f"sun in {args['city']}"

    def agent(hooks: Hooks | None = None, name: str = "tiny", **about: Any) -> Agent:
        model, client = server.model(name)
        clients.append(client)
        schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        tools = [Tool("weather", "The weather.", schema, weather, "fetch", "read_only")]
        return Agent(model, tools, hooks, system_prompt="Be brief.", streaming=True, **about)

    yield agent
    for client in clients:
        await client.close()


# --- a conversation -------------------------------------------------------------------------------


async def test_a_tool_call_goes_there_and_back(server, make):
    async with make() as agent:
        result = await agent.run("The weather in Oslo?")
    assert (result.output, result.requests) == ("It is sunny.", 2)
    assert server.results() == [("call-7", "sun in Oslo")]


async def test_the_text_arrives_in_pieces(make):
    async with make() as agent:
        moments = [moment async for moment in agent.stream("The weather in Oslo?")]
    pieces = [moment.text for moment in moments if moment.text is not None]
    first = pieces.index("It ")
    assert pieces[first : first + 3] == WORDS


async def test_the_text_arrives_before_the_model_is_done(make):
    async with make() as agent:
        events = [moment.event async for moment in agent.stream("The weather in Oslo?")]
    assert events.index("before_model") < events.index("text") < events.index("after_model")


async def test_the_server_is_sent_the_system_prompt_that_hooks_made(server, make):
    hooks = Hooks()
    hooks.add(lambda step: change(system_prompt="Be kind."), on="before_prompt", name="kind")
    async with make(hooks) as agent:
        await agent.run("The weather in Oslo?")
    assert server.system() == "Be kind."


async def test_the_server_is_sent_the_reason_of_a_denied_call(server, make):
    hooks = Hooks()
    hooks.add(lambda step: deny("no forecasts"), on="before_tool", name="judge")
    async with make(hooks) as agent:
        await agent.run("The weather in Oslo?")
    ((call, content),) = server.results()
    assert (call, "Hook blocked tool 'weather': no forecasts" in content) == ("call-7", True)


async def test_usage_is_what_the_server_says(make):
    async with make() as agent:
        result = await agent.run("The weather in Oslo?")
    assert result.usage == {"input_tokens": 18, "output_tokens": 8}


async def test_a_second_turn_sends_the_first_along(server, make):
    async with make() as agent:
        await agent.run("The weather in Oslo?")
        await agent.run("And now?")
    said = json.dumps(server.requests[-1]["messages"])
    assert all(text in said for text in ("The weather in Oslo?", "sun in Oslo", "It is sunny.", "And now?"))


# --- what goes wrong ------------------------------------------------------------------------------


async def failure(agent: Agent) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        async with agent:
            await agent.run("Hi.")
    return caught.value


def told(error: BaseException) -> str:
    """All that a log would show of an error."""
    return "".join(traceback.format_exception(error))


async def test_a_refused_connection_says_that_the_model_cannot_be_reached(server, make):
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        server.url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        error = await failure(make())
    assert "cannot be reached" in str(error)


async def test_a_refused_key_says_that_the_model_needs_one(server, make):
    server.refuses = 401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid"}}
    assert "needs a key" in str(await failure(make()))


async def test_an_unknown_model_is_named(server, make):
    server.refuses = 404, {"type": "error", "error": {"type": "not_found_error", "message": "no such model"}}
    error = str(await failure(make(name="giant")))
    assert ("there is no model" in error, "giant" in error) == (True, True)


async def test_a_server_error_is_told(server, make):
    server.refuses = 500, {"type": "error", "error": {"type": "api_error", "message": "out of order"}}
    assert "out of order" in str(await failure(make()))


@pytest.mark.parametrize("status", [401, 404, 500])
async def test_no_failure_shows_the_key(status, server, make):
    server.refuses = status, {"type": "error", "error": {"type": "error", "message": "no"}}
    assert KEY not in told(await failure(make()))


async def test_a_failure_is_seen_by_hooks_and_ends_the_request_once(server, make):
    server.refuses = 401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid"}}
    hooks = Hooks()
    seen = Recorder(hooks)
    error = await failure(make(hooks))
    texts = [step.error for step in seen.steps if step.event in ("after_model", "error", "after_request")]
    assert texts == [str(error)] * 3
    assert [seen.events.count(name) for name in ("turn_end", "after_request", "session_end")] == [1, 1, 1]


async def test_an_answer_that_breaks_off_is_a_failure_and_not_an_answer(server, make):
    server.breaks_off = True
    assert "the model" in str(await failure(make()))


async def test_an_answer_that_makes_no_sense_is_a_failure(server, make):
    server.events = lambda calls: ["data: {not json\n\n"]
    assert "the model" in str(await failure(make()))


async def test_an_agent_goes_on_once_the_server_is_back(server, make):
    async with make() as agent:
        server.refuses = 500, {"type": "error", "error": {"type": "api_error", "message": "out of order"}}
        with pytest.raises(ModelFailed):
            await agent.run("The weather in Oslo?")
        server.refuses = None
        assert (await agent.run("The weather in Oslo?")).output == "It is sunny."


async def test_an_unknown_provider_is_named():
    error = await failure(Agent("no-provider:tiny"))
    assert ("there is no model no-provider:tiny" in str(error)) is True


async def test_a_missing_key_says_that_one_is_needed(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "the model openai:tiny needs a key" in str(await failure(Agent("openai:tiny")))
