"""HTTP hooks: real servers on loopback, every way to answer, and where a step may go at all."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
from aiohttp import web

from fairlead import Decision, Hooks, UnknownName
from fairlead.runners.http import BadUrl, Url
from fairlead.runners.process import OUTPUT_LIMIT
from fairlead.signing import NONCE, SIGNATURE, TIMESTAMP, BadSignature, sign, verify
from fairlead.testing import step
from fairlead.wire.steps import encode_step

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
Talk = Callable[[int, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

DENY = b'{"control": "deny", "reason": "no"}'
NO_OPINION = b"HTTP/1.1 204 No Content\r\n\r\n"


def answering(body: bytes | str = b"", status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body, status=status, headers=headers)

    return answer


class Service:
    """A server that keeps what it was sent. Leaving it closes everything."""

    def __init__(self) -> None:
        self.answer = answering(status=204)
        self.requests: list[web.BaseRequest] = []
        self.bodies: list[bytes] = []
        self.connections: set[object] = set()
        self.url = ""

    async def start(self, port: int = 0) -> None:
        server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}/steps"

    async def stop(self) -> None:
        await self._runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.bodies.append(await request.read())
        self.requests.append(request)
        self.connections.add(request.transport)
        return await self.answer(request)

    @property
    def envelopes(self) -> list[Any]:
        return [json.loads(body) for body in self.bodies]


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    async with Service() as running:
        yield running


@asynccontextmanager
async def speaking(talk: Talk, **options: Any) -> AsyncIterator[int]:
    """A server of bytes: `talk(number, reader, writer)` is run for each connection. Gives its port."""
    numbers, tasks = count(1), set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        with suppress(asyncio.CancelledError, asyncio.IncompleteReadError, ConnectionError):
            await talk(next(numbers), reader, writer)
        writer.close()
        with suppress(asyncio.CancelledError, ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, **options)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def read_request(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return head + await reader.readexactly(int(length.split(b":")[1]))


def hooked(url: Url, event: str = "before_tool", **options: Any) -> Hooks:
    hooks = Hooks(record=True)
    hooks.add(url, on=event, name="service", **options)
    return hooks


async def decide(url: Url | str, event: str = "before_tool", *, given: Any = None, **options: Any) -> Decision[Any]:
    async with hooked(Url(url) if isinstance(url, str) else url, event, **options) as hooks:
        return await hooks.dispatch(step(event) if given is None else given)


def bash(command: str, **args: Any) -> Any:
    return step("before_tool", args={"command": command, **args})


def assert_failed(decision: Decision[Any], *words: str) -> None:
    assert (decision.control, decision.cause, decision.failures[0].kind) == ("deny", "failure", "error")
    assert [word for word in words if word not in decision.reason] == []


# --- what is sent, and what an answer means --------------------------------------------------------


async def test_the_envelope_is_posted(service: Service):
    given = bash("ls", deep={"list": [1, 2.5, None, "ü"]})
    await decide(service.url, given=given)
    (request,) = service.requests
    assert (request.method, request.path, request.content_type) == ("POST", "/steps", "application/json")
    assert service.envelopes == [json.loads(encode_step(given))]


async def test_the_query_of_the_address_is_kept(service: Service):
    await decide(f"{service.url}?team=blue")
    assert service.requests[0].query_string == "team=blue"


async def test_json_is_a_verdict(service: Service):
    service.answer = answering(DENY)
    decision = await decide(service.url)
    assert (decision.control, decision.reason, decision.cause) == ("deny", "no", "policy")


async def test_a_verdict_needs_no_content_type(service: Service):
    service.answer = answering(DENY, headers={"Content-Type": "text/html"})
    assert (await decide(service.url)).reason == "no"


@pytest.mark.parametrize(("status", "body"), [(204, b""), (200, b""), (200, b" \r\n\t")])
async def test_nothing_is_no_opinion(service: Service, status: int, body: bytes):
    service.answer = answering(body, status)
    decision = await decide(service.url)
    assert (decision.control, decision.runs[0].outcome) == ("proceed", "none")


@pytest.mark.parametrize("status", [201, 202, 206, 300, 304, 400, 401, 403, 404, 409, 429, 500, 502, 503])
async def test_any_other_status_is_a_failure_that_names_it(service: Service, status: int):
    service.answer = answering(b"" if status == 304 else b'{"control": "allow"}', status)
    assert_failed(await decide(service.url), "127.0.0.1", str(status))


async def test_a_failure_says_what_the_service_said(service: Service):
    service.answer = answering("disk is full", 507)
    assert_failed(await decide(service.url), "127.0.0.1 answered 507: disk is full")


async def test_what_the_service_said_is_cleaned_and_cut(service: Service):
    service.answer = answering("\x1b[31mred\u202e" + "x" * 10_000, 500)
    reason = (await decide(service.url)).reason
    assert ("[31mred" in reason, reason.isprintable(), len(reason) < 400) == (True, True, True)


@pytest.mark.parametrize("said", ["nonsense", "[]", "7", '{"control": "dney"}', '{"controll": "deny"}', "{", b"\xff"])
async def test_what_is_no_verdict_is_malformed(service: Service, said: bytes | str):
    service.answer = answering(said)
    decision = await decide(service.url)
    assert (decision.control, decision.failures[0].kind) == ("deny", "malformed")


async def test_a_packed_answer_is_not_unpacked(service: Service):
    """Else a kilobyte could become a gigabyte."""
    service.answer = answering(gzip.compress(DENY), headers={"Content-Encoding": "gzip"})
    decision = await decide(service.url)
    assert (decision.failures[0].kind, service.requests[0].headers["Accept-Encoding"]) == ("malformed", "identity")


# --- the record ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [(204, b"", "none"), (200, DENY, "verdict"), (500, b"", "error"), (200, b"nonsense", "malformed")],
)
async def test_the_status_is_in_the_record(service: Service, status: int, body: bytes, outcome: str):
    service.answer = answering(body, status)
    (run,) = (await decide(service.url)).runs
    assert (run.outcome, run.details) == (outcome, {"status": status})


async def test_the_status_is_in_the_journal(service: Service):
    written: list[Decision[Any]] = []
    hooks = Hooks(journal=written.append)
    hooks.add(Url(service.url), on="before_tool", name="service")
    async with hooks:
        await hooks.dispatch(step("before_tool"))
    assert written[0].runs[0].details == {"status": 204}


# --- how much ------------------------------------------------------------------------------------


async def test_an_answer_of_one_mebibyte_is_read(service: Service):
    service.answer = answering(DENY.ljust(OUTPUT_LIMIT))
    assert (await decide(service.url)).reason == "no"


async def test_a_larger_answer_is_a_clear_error(service: Service):
    service.answer = answering(DENY.ljust(OUTPUT_LIMIT + 1))
    assert_failed(await decide(service.url), "127.0.0.1", "more than 1 MiB")


@pytest.mark.parametrize("status", [200, 500])
async def test_an_answer_without_end_is_cut_off(service: Service, status: int):
    gone = asyncio.Event()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(status=status)
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65_536)
        finally:
            gone.set()

    service.answer = answer
    assert_failed(await decide(service.url), "more than 1 MiB")
    await asyncio.wait_for(gone.wait(), 5)


@pytest.mark.parametrize("line", [b"X-Filler: 1\r\n", b"x"], ids=["headers", "one header"])
async def test_headers_without_end_are_a_failure(line: bytes):
    async def talk(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            writer.write(line * 4096)
            await writer.drain()
            await asyncio.sleep(0)

    async with speaking(talk) as port:
        assert_failed(await decide(f"http://127.0.0.1:{port}"), "127.0.0.1")


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}", b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 200"]
)
async def test_an_answer_that_is_cut_short_or_no_http_is_a_failure(said: bytes):
    async def talk(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(said)

    async with speaking(talk) as port:
        assert_failed(await decide(f"http://127.0.0.1:{port}"), "127.0.0.1")


# --- connections ---------------------------------------------------------------------------------


async def test_fifty_steps_after_another_share_one_connection(service: Service):
    async with hooked(Url(service.url)) as hooks:
        for i in range(50):
            await hooks.dispatch(bash(f"c{i}"))
    assert (len(service.requests), len(service.connections)) == (50, 1)


async def test_steps_at_the_same_time_have_a_connection_each(service: Service):
    everybody = asyncio.Barrier(8)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        await everybody.wait()
        return web.Response(status=204)

    service.answer = answer
    async with hooked(Url(service.url)) as hooks:
        decisions = await asyncio.gather(*(hooks.dispatch(bash(f"c{i}")) for i in range(8)))
    assert ([d.failures for d in decisions], len(service.connections)) == ([()] * 8, 8)


async def test_many_steps_at_once_each_get_their_own_verdict(service: Service):
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        command = json.loads(await request.read())["args"]["command"]
        return web.json_response({"control": "deny", "reason": command})

    service.answer = answer
    async with hooked(Url(service.url)) as hooks:
        decisions = await asyncio.gather(*(hooks.dispatch(bash(f"c{i}")) for i in range(200)))
    assert [d.reason for d in decisions] == [f"c{i}" for i in range(200)]


async def test_a_connection_that_the_service_does_not_keep_is_not_used_again(service: Service):
    service.answer = answering(headers={"Connection": "close"})
    async with hooked(Url(service.url)) as hooks:
        decisions = [await hooks.dispatch(step("before_tool")) for _ in range(3)]
    assert ([d.failures for d in decisions], len(service.connections)) == ([()] * 3, 3)


async def test_a_service_that_closes_an_idle_connection_is_asked_again_once():
    """It closes just when the step is on its way."""

    async def talk(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(NO_OPINION if number == 1 else b"HTTP/1.1 200 OK\r\nContent-Length: 35\r\n\r\n" + DENY)
        if number == 1:
            await read_request(reader)

    async with speaking(talk) as port, hooked(Url(f"http://127.0.0.1:{port}")) as hooks:
        decisions = [await hooks.dispatch(step("before_tool")) for _ in range(2)]
    assert [(d.control, d.cause) for d in decisions] == [("proceed", None), ("deny", "policy")]


async def test_a_service_that_always_hangs_up_is_not_asked_for_ever():
    asked: list[bytes] = []

    async def talk(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await read_request(reader))

    async with speaking(talk) as port:
        assert_failed(await decide(f"http://127.0.0.1:{port}"), "127.0.0.1 hung up")
    assert len(asked) == 1


async def test_a_refused_connection_is_a_failure_that_names_the_host():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert_failed(await decide(f"http://127.0.0.1:{port}"), "127.0.0.1 cannot be asked", str(port))


async def test_a_service_that_comes_back_is_asked_as_before(service: Service):
    async with hooked(Url(service.url)) as hooks:
        before = await hooks.dispatch(step("before_tool"))
        await service.stop()
        meanwhile = await hooks.dispatch(step("before_tool"))
        await service.start(service.port)
        after = await hooks.dispatch(step("before_tool"))
    assert [d.control for d in (before, meanwhile, after)] == ["proceed", "deny", "proceed"]


async def test_closing_closes_the_connections():
    closed = asyncio.Event()

    async def talk(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(NO_OPINION)
        assert await reader.read() == b""
        closed.set()

    async with speaking(talk) as port:
        hooks = hooked(Url(f"http://127.0.0.1:{port}"))
        await hooks.dispatch(step("before_tool"))
        assert not closed.is_set()
        await hooks.aclose()
        await asyncio.wait_for(closed.wait(), 5)


async def test_closing_leaves_nothing_to_warn_of(service: Service):
    gc.collect()  # what other tests left is not ours
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        await decide(service.url)
        gc.collect()
    assert [str(warning.message) for warning in seen] == []


async def test_closing_twice_or_before_any_step_is_fine(service: Service):
    url = Url(service.url)
    await url.aclose()
    await decide(url)
    await url.aclose()


async def test_a_hook_that_was_closed_connects_anew(service: Service):
    url = Url(service.url)
    decisions = [await decide(url), await decide(url)]
    assert ([d.failures for d in decisions], len(service.connections)) == ([(), ()], 2)


# --- time ----------------------------------------------------------------------------------------


@pytest.fixture
def waiting(service: Service) -> Service:
    """A service that never answers. `started` and `cancelled` are set when they happen."""
    service.started, service.cancelled = asyncio.Event(), asyncio.Event()  # type: ignore[attr-defined]

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        service.started.set()  # type: ignore[attr-defined]
        try:
            await asyncio.Event().wait()
        finally:
            service.cancelled.set()  # type: ignore[attr-defined]
        raise AssertionError("unreachable")

    service.answer = answer
    return service


async def test_a_time_out_cancels_the_request(waiting: Any):
    decision = await decide(waiting.url, timeout=0.1)
    assert (decision.control, decision.failures[0].kind) == ("deny", "timeout")
    await asyncio.wait_for(waiting.cancelled.wait(), 5)


async def test_the_step_after_a_time_out_is_answered(waiting: Any):
    async with hooked(Url(waiting.url), timeout=0.1) as hooks:
        late = await hooks.dispatch(bash("a"))
        waiting.answer = answering(DENY)
        decision = await hooks.dispatch(bash("b"))
    assert (late.cause, decision.cause, decision.reason) == ("failure", "policy", "no")


async def test_cancelling_the_caller_cancels_the_request(waiting: Any):
    async with hooked(Url(waiting.url), timeout=None) as hooks:
        task = asyncio.create_task(hooks.dispatch(step("before_tool")))
        await waiting.started.wait()
        task.cancel()
        await asyncio.wait([task])
        await asyncio.wait_for(waiting.cancelled.wait(), 5)
    assert task.cancelled()


# --- loops ---------------------------------------------------------------------------------------


async def test_a_service_answers_sync_dispatches_too(service: Service):
    service.answer = answering(DENY)
    async with hooked(Url(service.url)) as hooks:
        assert (await asyncio.to_thread(hooks.dispatch_sync, step("before_tool"))).reason == "no"


async def test_one_hook_serves_two_event_loops(service: Service):
    service.answer = answering(DENY)
    async with hooked(Url(service.url)) as hooks:
        decisions = [
            await hooks.dispatch(bash("here")),
            await asyncio.to_thread(hooks.dispatch_sync, bash("there")),
            await hooks.dispatch(bash("here again")),
            await asyncio.to_thread(hooks.dispatch_sync, bash("there again")),
        ]
    assert ([d.reason for d in decisions], len(service.connections)) == (["no"] * 4, 2)


async def test_closing_on_one_loop_closes_the_connections_of_the_other():
    closed = asyncio.Event()

    async def talk(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(NO_OPINION)
        assert await reader.read() == b""
        closed.set()

    async with speaking(talk) as port:
        hooks = hooked(Url(f"http://127.0.0.1:{port}"))
        await asyncio.to_thread(hooks.dispatch_sync, step("before_tool"))
        await hooks.aclose()
        await asyncio.wait_for(closed.wait(), 5)


# --- headers and signatures ----------------------------------------------------------------------

SECRET = "a shared secret"


async def test_the_headers_of_a_hook_are_sent(service: Service):
    await decide(Url(service.url, headers={"Authorization": "Bearer b", "X-Team": "blau"}))
    headers = service.requests[0].headers
    assert (headers["Authorization"], headers["X-Team"]) == ("Bearer b", "blau")


async def test_a_header_of_the_hook_takes_the_place_of_ours_in_any_case(service: Service):
    await decide(Url(service.url, headers={"content-type": "application/x-step"}))
    assert service.requests[0].headers.getall("Content-Type") == ["application/x-step"]


@pytest.mark.parametrize("bad", ["\r", "\n", "\0", "\r\nX-Admin: 1"])
def test_a_line_break_in_a_header_is_refused_when_the_hook_is_made(bad: str):
    for headers in ({"X-Team": f"blue{bad}"}, {f"X-Team{bad}": "blue"}):
        with pytest.raises(BadUrl, match="line break"):
            Url("https://example.com", headers=headers)


async def test_a_request_is_signed_over_timestamp_nonce_and_body(service: Service):
    await decide(Url(service.url, secret=SECRET))
    headers, body = service.requests[0].headers, service.bodies[0]
    verify(SECRET, headers, body)
    with pytest.raises(BadSignature):
        verify(SECRET, headers, body + b" ")
    with pytest.raises(BadSignature):
        verify(SECRET, {**headers, TIMESTAMP: str(int(headers[TIMESTAMP]) - 1)}, body)
    with pytest.raises(BadSignature):
        verify(SECRET, {**headers, NONCE: "0" * 32}, body)


async def test_without_a_secret_nothing_is_signed(service: Service):
    await decide(service.url)
    assert not {SIGNATURE, NONCE, TIMESTAMP} & set(service.requests[0].headers)


async def test_a_secret_is_never_shown_or_sent(service: Service):
    url = Url(service.url, secret=SECRET)
    decision = await decide(url)
    sent = b"".join(name + value for name, value in service.requests[0].raw_headers) + service.bodies[0]
    assert SECRET not in repr(url) + str(decision) + sent.decode()


def signing(body: bytes, status: int = 200, /, **changes: Any) -> Answer:
    """Answers signed as they should be, but for the changes: other arguments of `sign`, or other headers."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        how = {"secret": SECRET, "body": body, "answers": request.headers[SIGNATURE]}
        headers = sign(**(how | {key: value for key, value in changes.items() if key != "headers"}))
        return web.Response(body=body, status=status, headers=headers | changes.get("headers", {}))

    return answer


async def test_a_signed_verdict_is_taken(service: Service):
    service.answer = signing(DENY)
    assert (await decide(Url(service.url, secret=SECRET))).cause == "policy"


@pytest.mark.parametrize("status", [200, 204])
async def test_nothing_signed_is_no_opinion(service: Service, status: int):
    service.answer = signing(b"", status)
    assert (await decide(Url(service.url, secret=SECRET))).runs[0].outcome == "none"


@pytest.mark.parametrize(("status", "body"), [(200, b'{"control": "allow"}'), (200, b""), (204, b"")])
async def test_with_a_secret_an_unsigned_answer_is_a_failure(service: Service, status: int, body: bytes):
    service.answer = answering(body, status)
    assert_failed(await decide(Url(service.url, secret=SECRET)), "127.0.0.1", "not to be trusted", "not signed")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        pytest.param({"secret": "another"}, "does not match", id="another secret"),
        pytest.param({"body": b"{}"}, "does not match", id="another body"),
        pytest.param({"answers": ""}, "does not match", id="no request"),
        pytest.param({"answers": "v2=" + "0" * 64}, "does not match", id="another request"),
        pytest.param({"headers": {TIMESTAMP: "1"}}, "does not match", id="another time"),
        pytest.param({"headers": {NONCE: "0" * 32}}, "does not match", id="another nonce"),
        pytest.param({"headers": {SIGNATURE: "v2="}}, "does not match", id="half a signature"),
        pytest.param({"headers": {SIGNATURE: "sha256=" + "0" * 64}}, "update", id="an older signature"),
        pytest.param({"now": time.time() - 3600}, "clocks", id="long ago"),
        pytest.param({"now": time.time() + 3600}, "clocks", id="ahead of time"),
    ],
)
async def test_with_a_secret_a_badly_signed_verdict_is_a_failure(service: Service, changes: Any, problem: str):
    service.answer = signing(b'{"control": "allow"}', **changes)
    assert_failed(await decide(Url(service.url, secret=SECRET)), "not to be trusted", problem)


@pytest.mark.parametrize("second", ["rm -rf /", "ls"], ids=["for another step", "for the same step"])
async def test_a_verdict_cannot_be_played_again(service: Service, monkeypatch: pytest.MonkeyPatch, second: str):
    """Not even within the same second."""
    monkeypatch.setattr("fairlead.signing.time", SimpleNamespace(time=lambda: 1_700_000_000.5))
    service.answer = signing(b'{"control": "allow"}')
    async with hooked(Url(service.url, secret=SECRET)) as hooks:
        fresh = await hooks.dispatch(bash("ls"))
        old = sign(SECRET, b'{"control": "allow"}', answers=service.requests[0].headers[SIGNATURE])
        service.answer = answering(b'{"control": "allow"}', headers=old)
        replayed = await hooks.dispatch(bash(second))
    assert fresh.control == "allow"
    assert_failed(replayed, "does not match")


async def test_a_request_sent_back_is_no_verdict(service: Service):
    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        signed = {name: request.headers[name] for name in (TIMESTAMP, NONCE, SIGNATURE)}
        return web.Response(body=await request.read(), headers=signed)

    service.answer = answer
    assert_failed(await decide(Url(service.url, secret=SECRET)), "does not match")


async def test_an_untrusted_answer_keeps_its_status_in_the_record(service: Service):
    decision = await decide(Url(service.url, secret=SECRET))
    assert decision.runs[0].details == {"status": 204}


# --- redaction -----------------------------------------------------------------------------------

LEAKY = bash("curl -H 'Authorization: Bearer abcdefgh12345'", env={"API_KEY": "k1", "PAGER": "less"})


async def test_an_observer_is_sent_redacted_steps(service: Service):
    decision = await decide(service.url, given=LEAKY, phase="observe")
    assert decision.failures == ()
    assert service.envelopes[0]["args"] == {
        "command": "curl -H 'Authorization: Bearer [redacted: bearer]'",
        "env": {"API_KEY": "[redacted: secret]", "PAGER": "less"},
    }


@pytest.mark.parametrize("phase", ["transform", "gate"])
async def test_a_judge_fails_where_redaction_would_change_what_it_judges(service: Service, phase: Any):
    decision = await decide(service.url, given=LEAKY, phase=phase)
    assert_failed(decision, "could not be shown: args.command, args.env.API_KEY, target.command;", "raw = true")
    assert service.bodies == []


async def test_its_failure_policy_decides_then(service: Service):
    decision = await decide(service.url, given=LEAKY, phase="gate", on_failure="open")
    assert (decision.control, decision.failures[0].kind, service.bodies) == ("proceed", "error", [])


async def test_a_hook_that_only_reports_judges_like_one_that_is_enforced(service: Service):
    decision = await decide(service.url, given=LEAKY, phase="gate", enforce=False)
    (monitored,) = decision.monitored
    assert (monitored.cause, monitored.verdict.control, service.bodies) == ("failure", "deny", [])


async def test_a_judge_is_sent_steps_without_a_secret_as_they_are(service: Service):
    await decide(service.url, given=bash("git push --force"), phase="gate")
    assert service.bodies == [encode_step(bash("git push --force"))]


@pytest.mark.parametrize(
    ("event", "fields", "path"),
    [
        ("before_input", {"input": "it is sk-abcdefghij0123456789ABCDEFGHIJ"}, "input"),
        ("before_input", {"input": ["a", {"text": "password=hunter22"}]}, "input.1.text"),
        ("before_tool", {"tool": "ghp_abcdefghij0123456789ABCDEFGHIJ"}, "tool"),
        ("after_tool", {"args": {"command": "mysql -u root -phunter22"}}, "args.command"),
        ("before_permission", {"args": {"url": "https://me:hunter22@example.com"}}, "args.url"),
    ],
)
async def test_what_is_judged_at_an_event(service: Service, event: str, fields: Any, path: str):
    decision = await decide(service.url, event, given=step(event, **fields), phase="gate")
    assert f"could not be shown: {path}" in decision.failures[0].error


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("before_model", {"messages": [{"role": "user", "content": "password=hunter22"}]}),
        ("before_tool", {"metadata": {"trace": "password=hunter22"}, "call_id": "password=hunter22"}),
        ("after_tool", {"output": "password=hunter22"}),
        ("before_output", {"content": "password=hunter22"}),
    ],
)
async def test_what_is_redacted_elsewhere_fails_nothing(service: Service, event: str, fields: Any):
    decision = await decide(service.url, event, given=step(event, **fields), phase="gate")
    assert decision.failures == ()
    assert b"[redacted: secret]" in service.bodies[0]
    assert b"hunter22" not in service.bodies[0]


async def test_a_hook_lists_what_else_it_judges(service: Service):
    given = step("before_output", content="password=hunter22")
    decision = await decide(Url(service.url, fields=["content"]), "before_output", given=given, phase="gate")
    assert_failed(decision, "could not be shown: content;")


def test_a_field_that_no_step_has_is_refused_when_the_hook_is_made():
    with pytest.raises(UnknownName, match="did you mean 'content'"):
        Url("https://example.com", fields=["contents"])
    with pytest.raises(TypeError, match="list of names"):
        Url("https://example.com", fields="content")


async def test_a_long_list_of_what_could_not_be_shown_is_cut(service: Service):
    given = step("before_tool", args={f"a{n}": "password=hunter22" for n in range(50)})
    decision = await decide(service.url, given=given, phase="gate")
    assert_failed(decision, "could not be shown: args.a0, ", "and 46 more", "raw = true")


async def test_a_raw_hook_is_sent_the_step_as_it_is(service: Service):
    await decide(Url(service.url, raw=True), given=LEAKY)
    await decide(Url(service.url, raw=True), given=LEAKY, phase="observe")
    assert service.bodies == [encode_step(LEAKY)] * 2


async def test_the_step_itself_is_not_redacted(service: Service):
    assert (await decide(service.url, given=LEAKY, phase="observe")).step == LEAKY


async def test_what_is_signed_is_what_is_sent(service: Service):
    await decide(Url(service.url, secret=SECRET), given=LEAKY, phase="observe")
    verify(SECRET, service.requests[0].headers, service.bodies[0])


async def test_one_service_may_judge_and_observe(service: Service):
    """The phase is the hook's, and not the runner's."""
    url = Url(service.url)
    async with Hooks() as hooks:
        hooks.add(url, on="before_tool", name="judges", phase="gate")
        hooks.add(url, on="before_tool", name="watches", phase="observe")
        hooks.add(url, on="before_tool", name="watches later", phase="observe", detached=True)
        decision = await hooks.dispatch(LEAKY)
    assert [failure.hook for failure in decision.failures] == ["judges"]
    assert [body.count(b"[redacted: secret]") for body in service.bodies] == [1, 1]


async def test_a_service_that_a_function_asks_judges(service: Service):
    """Its hook has not said that it only observes."""
    url = Url(service.url)

    async def ask(given: Any) -> Any:
        return await url(given)

    async with Hooks() as hooks:
        hooks.add(ask, on="before_tool", phase="observe")
        decision = await hooks.dispatch(LEAKY)
    await url.aclose()
    assert "could not be shown" in decision.failures[0].error
    assert service.bodies == []


async def test_a_raw_and_a_redacting_hook_do_not_mix_up_their_steps(service: Service):
    async with Hooks() as hooks:
        for i, raw in enumerate((True, False, True)):
            hooks.add(Url(service.url, raw=raw), on="before_tool", name=f"hook {i}", phase="observe")
        await hooks.dispatch(LEAKY)
    assert ["k1" in body.decode() for body in service.bodies] == [True, False, True]


@pytest.mark.parametrize("raw", [True, False])
async def test_state_that_hooks_edit_in_place_is_sent_as_it_is_now(service: Service, raw: bool):
    given = step("before_request", state={"n": 1})
    async with hooked(Url(service.url, raw=raw), "before_request") as hooks:
        await hooks.dispatch(given)
        given.state["n"] = 2
        await hooks.dispatch(given)
    assert [envelope["state"] for envelope in service.envelopes] == [{"n": 1}, {"n": 2}]


async def test_a_change_of_an_earlier_hook_is_sent(service: Service):
    async with Hooks() as hooks:
        hooks.add(Url(service.url), on="before_tool", name="before")
        hooks.add(lambda s: {"command": "new"}, on="before_tool", name="change")
        hooks.add(Url(service.url), on="before_tool", name="after")
        await hooks.dispatch(bash("old"))
    assert [envelope["args"]["command"] for envelope in service.envelopes] == ["old", "new"]


# --- seed 004, outbound webhooks: https only --------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/hook",
        "http://10.0.0.1/",
        "http://169.254.169.254/",
        "http://0.0.0.0/",
        "http://[::2]/",
        "http://localhost.example.com/",
        "http://127.0.0.1.example.com/",
        "http://example.com#@localhost/",
        "HTTP://EXAMPLE.COM/",
    ],
)
def test_seed_004_webhooks_are_https_only(url: str):
    with pytest.raises(BadUrl, match="not https"):
        Url(url)


@pytest.mark.parametrize(
    "url",
    ["http://localhost", "http://LOCALHOST:80/x", "http://127.0.0.1:80", "http://127.9.9.9/", "http://[::1]:8080/"]
    + ["http://[::ffff:127.0.0.1]/"],
)
def test_http_is_fine_on_this_machine(url: str):
    Url(url)


@pytest.mark.parametrize(
    "url",
    ["", "example.com", "localhost:80", "//example.com", "https://", "https:///x", "ftp://example.com", "file:///etc"]
    + ["unix:///run/x", "https://example.com:port", "https://example.com:99999", "https://[::1", "https://[nonsense]"],
)
def test_what_is_no_address_is_refused_when_the_hook_is_made(url: str):
    with pytest.raises(BadUrl, match="no address"):
        Url(url)


@pytest.mark.parametrize("user", ["user:hunter2", "user", ":hunter2", ""])
def test_a_password_in_the_address_is_refused_and_not_repeated(user: str):
    with pytest.raises(BadUrl, match="password") as caught:
        Url(f"https://{user}@example.com/")
    assert "hunter2" not in str(caught.value)


async def test_http_over_ipv6_on_this_machine():
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(NO_OPINION)
        writer.close()

    try:
        server = await asyncio.start_server(talk, "::1", 0)
    except OSError:
        pytest.skip("no IPv6 here")
    async with server:
        decision = await decide(f"http://[::1]:{server.sockets[0].getsockname()[1]}/")
    assert decision.failures == ()


async def test_an_untrusted_certificate_is_a_failure(tmp_path: Path):
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"]
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([openssl, "req", *kind, *name, "-out", cert, "-keyout", key], check=True, capture_output=True)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    received: list[bytes] = []

    async def talk(number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.read(1))

    async with speaking(talk, ssl=context) as port:
        assert_failed(await decide(f"https://127.0.0.1:{port}/"), "127.0.0.1", "certificate")
    assert b"".join(received) == b""


# --- seed 004: no redirects, and no detours ---------------------------------------------------------


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_seed_004_webhooks_follow_no_redirects(service: Service, status: int):
    async with Service() as target:
        service.answer = answering(status=status, headers={"Location": target.url})
        assert_failed(await decide(service.url), str(status), "redirects are not followed")
    assert (len(service.requests), target.requests) == (1, [])


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy"])
async def test_proxy_variables_are_ignored(service: Service, monkeypatch: pytest.MonkeyPatch, name: str):
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    async with Service() as proxy:
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        await decide(service.url)
    assert (len(service.requests), proxy.requests) == (1, [])


async def test_cookies_are_not_kept(service: Service, monkeypatch: pytest.MonkeyPatch):
    Network(monkeypatch, ["127.0.0.1"], reachable=True)  # a name, because cookies of an address are never kept
    service.answer = answering(headers={"Set-Cookie": "session=1; Path=/"})
    async with hooked(Url(f"http://localhost:{service.port}/")) as hooks:
        for command in ("a", "b"):
            await hooks.dispatch(bash(command))
    assert ["Cookie" in request.headers for request in service.requests] == [False, False]


async def test_the_passwords_in_netrc_are_not_used(service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password hunter2\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    await decide(service.url)
    assert "Authorization" not in service.requests[0].headers


# --- seed 004: bounded in flight --------------------------------------------------------------------


async def test_seed_004_webhooks_are_bounded_in_flight(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("fairlead.runners.http.CONNECTIONS", 2)
    pairs, flying, most = asyncio.Barrier(2), 0, 0

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal flying, most
        flying += 1
        most = max(most, flying)
        await pairs.wait()
        flying -= 1
        return web.Response(status=204)

    service.answer = answer
    async with hooked(Url(service.url)) as hooks:
        decisions = await asyncio.gather(*(hooks.dispatch(bash(f"c{i}")) for i in range(8)))
    assert ([d.failures for d in decisions], most) == ([()] * 8, 2)


# --- seed 004: private and metadata addresses are refused -------------------------------------------

NOT_PUBLIC = [
    "127.0.0.1", "127.255.255.254", "[::1]",  # loopback
    "10.0.0.1", "172.16.0.1", "172.31.255.254", "192.168.1.1", "[fd00::1]",  # private
    "169.254.169.254", "169.254.1.1", "[fe80::1]", "[fe80::1%25eth0]", "[fd00:ec2::254]",  # link-local, metadata
    "100.64.0.1", "100.100.100.200", "198.18.0.1",  # carriers, benchmarks
    "0.0.0.0", "[::]", "255.255.255.255", "224.0.0.1", "[ff02::1]", "240.0.0.1",  # no host at all
    "[::ffff:127.0.0.1]", "[::ffff:a9fe:a9fe]", "[::ffff:a00:1]", "[::ffff:100.64.0.1]",  # IPv4-mapped
    "[64:ff9b::127.0.0.1]", "[64:ff9b::a9fe:a9fe]",  # NAT64
    "[2002:7f00:1::]", "[2002:a9fe:a9fe::1]", "[2002:c0a8:101::]",  # 6to4
    "[2001:0:4136:e378:8000:63bf:f5ff:fffe]",  # Teredo
    "2130706433", "0x7f000001", "0x7f.1", "0x7F.0.0.1", "017700000001", "0177.0.0.1", "127.1", "127.0.1", "0",
    "2852039166", "0xa9fea9fe", "169.16689662", "0251.0376.0251.0376",
]  # fmt: skip
PUBLIC = ["93.184.216.34", "1.1.1.1", "[2606:4700:4700::1111]", "[::ffff:1.1.1.1]", "[64:ff9b::1.1.1.1]", "example.com"]


@pytest.mark.parametrize("host", NOT_PUBLIC)
def test_seed_004_webhooks_of_a_project_refuse_what_is_not_public(host: str):
    with pytest.raises(BadUrl, match=r"not public.*allow_hosts"):
        Url(f"https://{host}:8443/hook", layer="project")


@pytest.mark.parametrize("host", PUBLIC)
def test_a_project_may_reach_what_is_public(host: str):
    Url(f"https://{host}/hook", layer="project")


@pytest.mark.parametrize("layer", ["builtin", "system", "user"])
@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "[fd00::1]"])
def test_other_layers_may_reach_private_addresses(layer: Any, host: str):
    Url(f"https://{host}/hook", layer=layer)


@pytest.mark.parametrize(("host", "named"), [("10.0.0.1", "10.0.0.1"), ("[::1]", "::1"), ("[FD00::A]", "fd00::a")])
def test_a_project_may_reach_an_address_that_the_user_names(host: str, named: str):
    Url(f"https://{host}/hook", layer="project", allow_hosts=[named])


@pytest.mark.parametrize("named", ["10.0.0.2", "10.0.0", "0.0.1", "example.com", "*"])
def test_naming_another_host_is_no_help(named: str):
    with pytest.raises(BadUrl, match="not public"):
        Url("https://10.0.0.1/hook", layer="project", allow_hosts=[named])


async def test_a_project_reaches_a_service_on_this_machine_if_the_user_names_it(service: Service):
    decision = await decide(Url(service.url, layer="project", allow_hosts=["127.0.0.1"]), layer="project")
    assert (decision.failures, len(service.requests)) == ((), 1)


# --- seed 004: names are resolved, checked and pinned ------------------------------------------------


class Network:
    """Names resolve as told: each time to the next answer. Who is connected to is kept, and refuses."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: list[str], reachable: bool = False) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.connected: list[str] = []
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "getaddrinfo", self._resolve)
        if not reachable:
            monkeypatch.setattr(loop, "sock_connect", self._connect)

    async def _resolve(self, host: str, port: int, **_: Any) -> list[Any]:
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(host)
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (ip, port, 0, 0))
            if ":" in ip
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, port))
            for ip in answer
        ]

    async def _connect(self, sock: socket.socket, address: tuple[Any, ...]) -> None:
        self.connected.append(address[0])
        raise ConnectionRefusedError("not in a test")


HIDDEN = ["127.0.0.1", "169.254.169.254", "10.1.2.3", "::1", "fd00:ec2::254", "fe80::1", "::ffff:10.0.0.1", "0.0.0.0"]


@pytest.mark.parametrize("ip", HIDDEN)
async def test_seed_004_webhooks_of_a_project_refuse_a_name_for_what_is_not_public(
    monkeypatch: pytest.MonkeyPatch, ip: str
):
    network = Network(monkeypatch, [ip])
    assert_failed(await decide(Url("https://hooks.example", layer="project")), "hooks.example", ip, "allow_hosts")
    assert network.connected == []


@pytest.mark.parametrize("bad", HIDDEN)
@pytest.mark.parametrize("first", [True, False])
async def test_one_bad_address_among_several_is_enough(monkeypatch: pytest.MonkeyPatch, bad: str, first: bool):
    good = ["93.184.216.34", "2606:4700:4700::1111"]
    network = Network(monkeypatch, [bad, *good] if first else [*good, bad])
    assert_failed(await decide(Url("https://hooks.example", layer="project")), bad)
    assert network.connected == []


async def test_seed_004_webhooks_connect_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch):
    """A name that is public when it is checked and loopback right after gets nowhere."""
    network = Network(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])
    await decide(Url("https://hooks.example", layer="project"))
    assert (network.asked, network.connected) == (["hooks.example"], ["93.184.216.34"])


async def test_seed_004_webhooks_check_a_name_again_for_every_connection(monkeypatch: pytest.MonkeyPatch):
    network = Network(monkeypatch, ["93.184.216.34"], ["127.0.0.1"])
    async with hooked(Url("https://hooks.example", layer="project")) as hooks:
        await hooks.dispatch(step("before_tool"))
        rebound = await hooks.dispatch(step("before_tool"))
    assert_failed(rebound, "127.0.0.1", "not public")
    assert network.connected == ["93.184.216.34"]


async def test_all_addresses_of_a_name_are_tried(monkeypatch: pytest.MonkeyPatch):
    network = Network(monkeypatch, ["93.184.216.34", "93.184.216.35"])
    await decide(Url("https://hooks.example", layer="project"))
    assert set(network.connected) == {"93.184.216.34", "93.184.216.35"}


@pytest.mark.parametrize("named", ["intranet.example", "Intranet.Example"])
async def test_a_project_reaches_a_private_name_if_the_user_names_it(monkeypatch: pytest.MonkeyPatch, named: str):
    network = Network(monkeypatch, ["10.1.2.3"])
    await decide(Url("https://INTRANET.example", layer="project", allow_hosts=[named]))
    assert network.connected == ["10.1.2.3"]


async def test_a_user_reaches_a_private_name(monkeypatch: pytest.MonkeyPatch):
    network = Network(monkeypatch, ["10.1.2.3"])
    await decide("https://intranet.example")
    assert network.connected == ["10.1.2.3"]


async def test_a_project_may_not_reach_localhost(service: Service):
    decision = await decide(Url(f"http://localhost:{service.port}", layer="project"))
    assert_failed(decision, "localhost", "not public")
    assert service.connections == set()


@pytest.mark.parametrize("ip", ["93.184.216.34", "10.1.2.3", "169.254.169.254", "::2", "::ffff:93.184.216.34"])
async def test_a_localhost_that_is_another_machine_is_refused(monkeypatch: pytest.MonkeyPatch, ip: str):
    network = Network(monkeypatch, [ip])
    assert_failed(await decide("http://localhost"), "localhost", ip, "use https")
    assert network.connected == []


async def test_a_name_is_not_resolved_while_its_connection_is_kept(service: Service, monkeypatch: pytest.MonkeyPatch):
    network = Network(monkeypatch, ["127.0.0.1"], ["93.184.216.34"], reachable=True)
    async with hooked(Url(f"http://localhost:{service.port}")) as hooks:
        decisions = [await hooks.dispatch(step("before_tool")) for _ in range(3)]
    assert ([d.failures for d in decisions], network.asked) == ([()] * 3, ["localhost"])


async def test_an_unknown_name_is_a_failure_that_names_it(monkeypatch: pytest.MonkeyPatch):
    async def unknown(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
    assert_failed(await decide("https://hooks.example"), "hooks.example cannot be asked", "not known")


async def test_a_name_without_an_address_is_a_failure_that_names_it(monkeypatch: pytest.MonkeyPatch):
    Network(monkeypatch, [])
    assert_failed(await decide("https://hooks.example"), "hooks.example")


# --- bug 1: the time-out is lost while data keeps coming (engine) -----------------------------------


async def test_a_service_that_never_stops_talking_is_held_to_the_time_out():
    """Interim answers without end: the hook's future is always done when the deadline looks at it."""
    server = socket.create_server(("127.0.0.1", 0))

    def talk() -> None:
        connection, _ = server.accept()
        connection.recv(65_536)
        with suppress(OSError):
            while True:
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        connection.close()

    thread = threading.Thread(target=talk, daemon=True)
    thread.start()
    async with hooked(Url(f"http://127.0.0.1:{server.getsockname()[1]}"), timeout=0.2) as hooks:
        decision = await asyncio.wait_for(hooks.dispatch(step("before_tool")), 5)
    thread.join(5)
    server.close()
    assert decision.failures[0].kind == "timeout"


# --- another spelling of an address that only the client reads as one ---


@pytest.mark.parametrize(
    "host",
    ["\uff11\uff12\uff17.0.0.1", "\u2460\u2461\u2466.0.0.1", "169\u3002254\u3002169\u3002254", "\u00b2130706433"],
)
def test_an_address_in_other_digits_or_dots_is_refused(host: str):
    with pytest.raises(BadUrl):
        Url(f"https://{host}/hook", layer="project")


async def test_an_address_in_other_digits_is_never_connected_to_raw():
    connected = []

    async def talk(number, reader, writer):
        connected.append(number)

    async with speaking(talk) as port:
        with suppress(BadUrl):
            await decide(Url(f"https://\uff11\uff12\uff17.0.0.1:{port}/", layer="project"))
    assert connected == []


# --- not public, but taken for it ---


@pytest.mark.parametrize(
    "host",
    ["192.0.0.192", "[64:ff9b:1::7f00:1]", "[fec0::1]", "[::127.0.0.1]", "[::ffff:0:127.0.0.1]", "168.63.129.16",
     "192.0.0.9", "[2001:1::1]", "[2001:20::1]", "[2001:4:112::1]", "[2002:101:101::]", "[3fff::1]", "[5f00::1]",
     "[2001:db8::1]", "[100::1]", "[100:0:0:1::1]", "192.0.2.1", "198.51.100.1", "203.0.113.1"],
)  # fmt: skip
def test_more_that_is_not_public(host: str):
    with pytest.raises(BadUrl, match="not public"):
        Url(f"https://{host}/hook", layer="project")


# --- who is asked again ---


async def test_an_idle_connection_that_is_reset_is_asked_again_once():
    async def talk(number, reader, writer):
        await read_request(reader)
        writer.write(NO_OPINION)
        if number == 1:
            await reader.read(1)
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()

    async with speaking(talk) as port, hooked(Url(f"http://127.0.0.1:{port}")) as hooks:
        decisions = [await hooks.dispatch(step("before_tool")) for _ in range(2)]
    assert [d.failures for d in decisions] == [(), ()]


async def test_a_connection_that_was_closed_meanwhile_is_not_used_again():
    served: list[int] = []
    closed = asyncio.Event()

    async def talk(number, reader, writer):
        await read_request(reader)
        served.append(number)
        writer.write(NO_OPINION)
        await writer.drain()
        writer.close()
        await reader.read()
        closed.set()

    async with speaking(talk) as port, hooked(Url(f"http://127.0.0.1:{port}")) as hooks:
        first = await hooks.dispatch(step("before_tool"))
        await closed.wait()
        second = await hooks.dispatch(step("before_tool"))
    assert (first.failures, second.failures, served) == ((), (), [1, 2])


async def test_a_step_that_a_new_connection_took_is_not_posted_again():
    asked: list[bytes] = []

    async def talk(number, reader, writer):
        asked.append(await read_request(reader))

    async with speaking(talk) as port:
        assert_failed(await decide(f"http://127.0.0.1:{port}"), "127.0.0.1 hung up")
    assert len(asked) == 1


# --- connections of a loop that is closed; of a hook that is gone ---


def left_open(act) -> list[str]:
    gc.collect()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        act()
        gc.collect()
    return [str(warning.message) for warning in seen if issubclass(warning.category, ResourceWarning)]


async def test_the_connections_of_a_closed_loop_are_closed(service: Service):
    hooks = hooked(Url(service.url))

    def act() -> None:
        asyncio.run(hooks.dispatch(step("before_tool")))
        asyncio.run(hooks.aclose())

    assert await asyncio.to_thread(left_open, act) == []


async def test_the_connections_of_a_hook_that_was_removed_are_closed(service: Service):
    async def use() -> None:
        async with hooked(Url(service.url)) as hooks:
            await hooks.dispatch(step("before_tool"))
            hooks.unregister("service")

    assert await asyncio.to_thread(left_open, lambda: asyncio.run(use())) == []


# --- small ones ---


@pytest.mark.parametrize("url", ["ftp://u:hunter2@example.com", "https://u:hunter2@example.com:99999", "//u:hunter2@h"])
def test_a_password_is_not_repeated_whatever_else_is_wrong(url: str):
    with pytest.raises(BadUrl) as caught:
        Url(url)
    assert "hunter2" not in str(caught.value)


async def test_an_answer_that_is_too_large_keeps_its_status_in_the_record(service: Service):
    service.answer = answering(DENY.ljust(OUTPUT_LIMIT + 1))
    assert (await decide(service.url)).runs[0].details == {"status": 200}
