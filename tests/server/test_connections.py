"""A connection: an answer is sent at once, and each part of a request has a time-out of its own."""

from __future__ import annotations

import asyncio
import heapq
import os
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from fairlead.server.protocol import BODY_TIMEOUT, HEADER_TIMEOUT, protocol

HEAD = b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
KEEP_ALIVE = 30


async def answer(scope: Any, receive: Any, send: Any) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    length = str(len(body)).encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    await send({"type": "http.response.body", "body": body})


async def fail_halfway(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"9")]})
    await send({"type": "http.response.body", "body": b"half", "more_body": True})
    raise RuntimeError("the application is broken")


class FakeTransport(asyncio.Transport):
    """Keeps what is written to it, each piece for itself."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__({"socket": connection})
        self.written: list[bytes] = []
        self.closed = self.aborted = False

    def write(self, data: Any) -> None:
        if data:
            self.written.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0


@pytest.fixture
def transport() -> Iterator[FakeTransport]:
    here, there = socket.socketpair()
    with here, there:
        yield FakeTransport(here)


def connection_of(transport: FakeTransport, app: Any, loop: Any) -> Any:
    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, timeout_keep_alive=KEEP_ALIVE)
    config.load()
    made = protocol(frozenset({os.geteuid()}))(config, ServerState(), {}, loop)
    made.connection_made(transport)
    return made


async def until_answered(connection: Any) -> None:
    await asyncio.wait(connection.tasks, timeout=5)


# --- answers ------------------------------------------------------------------------------------


async def test_head_and_body_of_an_answer_are_sent_at_once(transport: FakeTransport) -> None:
    connection = connection_of(transport, answer, asyncio.get_running_loop())
    for times in (1, 2):
        connection.data_received(HEAD + b"\r\n")
        connection.data_received(b"ok")
        await until_answered(connection)
        assert len(transport.written) == times
        assert transport.written[-1].startswith(b"HTTP/1.1 200 ")
        assert transport.written[-1].endswith(b"\r\n\r\nok")


async def test_a_caller_that_waits_for_continue_gets_it_before_it_sends_the_body(transport: FakeTransport) -> None:
    connection = connection_of(transport, answer, asyncio.get_running_loop())
    connection.data_received(HEAD + b"Expect: 100-continue\r\n\r\n")
    for _ in range(3):
        await asyncio.sleep(0)
    assert [piece.split(b"\r\n")[0] for piece in transport.written] == [b"HTTP/1.1 100 Continue"]
    connection.data_received(b"ok")
    await until_answered(connection)
    assert len(transport.written) == 2


async def test_a_request_that_is_no_http_is_refused_before_the_connection_closes(transport: FakeTransport) -> None:
    connection = connection_of(transport, answer, asyncio.get_running_loop())
    connection.data_received(b"what is this?\r\n\r\n")
    assert len(transport.written) == 1
    assert transport.written[0].startswith(b"HTTP/1.1 400 ")
    assert transport.closed


async def test_an_answer_that_breaks_off_is_sent_as_far_as_it_goes(transport: FakeTransport) -> None:
    connection = connection_of(transport, fail_halfway, asyncio.get_running_loop())
    connection.data_received(HEAD + b"\r\nok")
    await until_answered(connection)
    assert b"".join(transport.written).endswith(b"\r\n\r\nhalf")
    assert transport.closed


# --- time-outs ----------------------------------------------------------------------------------


class Timer:
    """A timer of `FakeLoop`."""

    def __init__(self, at: float, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._at, self._call, self._args = at, call, args
        self.cancelled = False

    def __lt__(self, other: Timer) -> bool:
        return self._at < other._at

    def when(self) -> float:
        return self._at

    def cancel(self) -> None:
        self.cancelled = True

    def run(self) -> None:
        if not self.cancelled:
            self._call(*self._args)


class FakeLoop:
    """An event loop whose clock moves only when it is told to, and whose tasks never run."""

    def __init__(self) -> None:
        self._now = 0.0
        self._timers: list[Timer] = []

    def time(self) -> float:
        return self._now

    def call_at(self, when: float, call: Callable[..., Any], *args: Any) -> Timer:
        timer = Timer(when, call, args)
        heapq.heappush(self._timers, timer)
        return timer

    def call_later(self, delay: float, call: Callable[..., Any], *args: Any) -> Timer:
        return self.call_at(self._now + delay, call, *args)

    def create_task(self, work: Any) -> asyncio.Future[None]:
        work.close()
        return asyncio.Future()

    def advance(self, seconds: float) -> None:
        until = self._now + seconds
        while self._timers and self._timers[0].when() <= until:
            timer = heapq.heappop(self._timers)
            self._now = max(self._now, timer.when())
            timer.run()
        self._now = until

    @property
    def running(self) -> int:
        return sum(not timer.cancelled for timer in self._timers)


def answer_by_hand(connection: Any) -> None:
    for message in (
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]},
        {"type": "http.response.body", "body": b""},
    ):
        with pytest.raises(StopIteration):
            connection.cycle.send(message).send(None)


async def test_each_request_of_a_connection_has_its_whole_time(transport: FakeTransport) -> None:
    loop = FakeLoop()
    connection = connection_of(transport, answer, loop)
    for _ in range(5):
        connection.data_received(HEAD + b"\r\n")
        loop.advance(BODY_TIMEOUT * 0.7)  # the time-outs of earlier requests end in the midst of this one
        connection.data_received(b"ok")
        answer_by_hand(connection)
        assert not transport.is_closing()
    connection.data_received(HEAD + b"\r\n")
    loop.advance(BODY_TIMEOUT - 0.01)
    assert not transport.aborted
    loop.advance(0.02)
    assert transport.aborted


async def test_a_shorter_time_ends_before_the_rest_of_a_longer_one(transport: FakeTransport) -> None:
    assert HEADER_TIMEOUT < BODY_TIMEOUT
    loop = FakeLoop()
    connection = connection_of(transport, answer, loop)
    connection.data_received(HEAD + b"\r\n")  # its body may take longer than a head
    connection.data_received(b"ok")
    answer_by_hand(connection)
    connection.data_received(b"POST /x HT")
    loop.advance(HEADER_TIMEOUT - 0.01)
    assert not transport.aborted
    loop.advance(0.02)
    assert transport.aborted


async def test_a_connection_sets_no_timer_anew_for_every_request(transport: FakeTransport) -> None:
    loop = FakeLoop()
    connection = connection_of(transport, answer, loop)
    for _ in range(100):
        connection.data_received(HEAD + b"\r\n")
        connection.data_received(b"ok")
        answer_by_hand(connection)
    ours = [timer for timer in loop._timers if "on_timer" in timer._call.__name__]
    assert len(ours) <= 2  # for the first head, and for the first body
