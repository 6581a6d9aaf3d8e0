"""Whatever is said to the daemon, it is refused or served, never confused, and it goes on serving."""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machines import Daemon, Machine, connect, exchange, receive_all, wait_until

from fairlead.client import AsyncClient
from fairlead.lifecycle import BeforeTool
from fairlead.server.limits import BODY
from fairlead.server.tokens import SCOPES, Tokens

ROUTES = {
    ("POST", "/v1/dispatch"): "dispatch",
    ("GET", "/v1/sessions"): "read",
    ("GET", "/v1/sessions/some"): "read",
    ("DELETE", "/v1/sessions/some"): "admin",
    ("GET", "/v1/approvals"): "read",
    ("POST", "/v1/approvals/some"): "approve",
    ("GET", "/v1/decisions"): "read",
    ("GET", "/v1/decisions/some"): "read",
    ("POST", "/v1/reload"): "admin",
}  # /v1/stop has a test of its own: who may, does
RULE = """
[[hook]]
name = "echo"
on = "before_tool"
rule = 'args.command.startsWith("no ")'
deny = "no"
"""


@pytest.fixture(scope="module")
def tokens(shared: Machine) -> dict[str, str]:
    """A token for each scope."""
    made = Tokens(shared.state)
    return {scope: made.add(scope, [scope]) for scope in SCOPES}


@pytest.fixture(scope="module")
def root(shared: Machine) -> Path:
    return shared.project("p", RULE)


@pytest.fixture
def still_serving(daemon: Daemon) -> Iterator[None]:
    """Afterwards it is the same daemon, and it answers."""
    yield
    assert daemon.ask("GET", "/v1/health").body["pid"] == daemon.pid


def body(text: str, root: Path | None = None) -> dict[str, Any]:
    step = {"fairlead": 1, "event": "before_tool", "tool": "bash", "args": {"command": text}}
    return {"step": step, **({} if root is None else {"root": str(root)})}


def raw(method: str, path: str, content: bytes = b"", **headers: str) -> bytes:
    """A request as it goes over the wire."""
    given = {"Host": "localhost", "Content-Length": str(len(content)), **headers}
    lines = [f"{method} {path} HTTP/1.1", *(f"{k.replace('_', '-')}: {v}" for k, v in given.items())]
    return "\r\n".join([*lines, "", ""]).encode() + content


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


# --- who may ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("scope", SCOPES)
def test_a_token_allows_its_scope_and_nothing_else(
    daemon: Daemon, tokens: dict[str, str], method: str, path: str, scope: str
) -> None:
    answer = daemon.ask(method, path, {}, tcp=True, token=tokens[scope])
    refused = answer.status == 403 and answer.body["error"] == "wrong_scope"
    assert refused == (ROUTES[method, path] != scope)


@pytest.mark.parametrize(("method", "path"), [*ROUTES, ("POST", "/v1/stop")])
def test_nothing_is_done_over_tcp_without_a_token(daemon: Daemon, method: str, path: str) -> None:
    answer = daemon.ask(method, path, {}, tcp=True)
    assert (answer.status, answer.body["error"]) == (401, "no_token")


@pytest.mark.parametrize("scope", [scope for scope in SCOPES if scope != "admin"])
@pytest.mark.usefixtures("still_serving")
def test_only_an_administrator_stops_it(daemon: Daemon, tokens: dict[str, str], scope: str) -> None:
    assert daemon.ask("POST", "/v1/stop", tcp=True, token=tokens[scope]).status == 403


@pytest.mark.parametrize("wrong", ["", "x", "fairlead_" + "A" * 43, "é" * 10, "dispatch", "a b c", "x" * 5000])
def test_a_wrong_token_is_refused(daemon: Daemon, tokens: dict[str, str], wrong: str) -> None:
    header = f"Bearer {wrong}".encode().decode("latin-1")
    assert daemon.ask("POST", "/v1/dispatch", body("x"), tcp=True, Authorization=header).status in (401, 403)


def test_a_token_in_another_scheme_is_refused(daemon: Daemon, tokens: dict[str, str]) -> None:
    header = f"Basic {tokens['dispatch']}"
    assert daemon.ask("POST", "/v1/dispatch", body("x"), tcp=True, Authorization=header).status == 403


@pytest.mark.parametrize("name", ["token", "access_token", "authorization", "Authorization", "bearer"])
def test_a_token_in_the_address_is_not_looked_at(daemon: Daemon, tokens: dict[str, str], name: str) -> None:
    assert daemon.ask("GET", f"/v1/sessions?{name}={tokens['read']}", tcp=True).status == 401


def test_a_token_does_not_make_a_unix_caller_another_user(daemon: Daemon, tokens: dict[str, str]) -> None:
    assert daemon.ask("GET", "/v1/sessions", token=tokens["dispatch"]).status == 200


@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil", "", "10.0.0.1", "x@localhost"],
)
def test_another_host_is_not_this_one(daemon: Daemon, tokens: dict[str, str], host: str, tcp: bool) -> None:
    answer = daemon.ask("POST", "/v1/dispatch", body("x"), tcp=tcp, token=tokens["dispatch"], Host=host)
    assert (answer.status, answer.body["error"]) == (421, "wrong_host")


@pytest.mark.parametrize("host", ["localhost", "localhost:4321", "127.0.0.1:4321", "[::1]", "[::1]:80", "fairlead"])
def test_this_host_has_some_names(daemon: Daemon, host: str) -> None:
    assert daemon.ask("GET", "/v1/health", Host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-origin", "Sec_Fetch_Mode": "no-cors"},
    ],
)
@pytest.mark.parametrize("tcp", [False, True])
def test_a_page_in_a_browser_is_refused(
    daemon: Daemon, tokens: dict[str, str], headers: dict[str, str], tcp: bool
) -> None:
    answer = daemon.ask("POST", "/v1/dispatch", body("x"), tcp=tcp, token=tokens["dispatch"], **headers)
    assert (answer.status, answer.body["error"]) == (403, "from_a_browser")


def test_no_page_may_read_what_is_answered(daemon: Daemon) -> None:
    assert not [name for name in daemon.ask("GET", "/v1/health").headers if name.startswith("access-control")]


# Another user of this machine: no privileges, and the descriptor of the folder for a way to the socket.
OTHER_USER = """
import os, sys
sys.path.insert(0, sys.argv[3])
from machines import ask
os.setgid(65534); os.setuid(65534)
try:
    answer = ask(sys.argv[1], *sys.argv[2].split(), b'%s')
    print(answer.status, (answer.body or {}).get("error"))
except OSError as error:
    print("refused", type(error).__name__)
except Exception as error:
    print("refused", type(error).__name__)
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


def as_another_user(machine: Machine, where: Path, what: str, content: str = "") -> str:
    process = machine.spawn(OTHER_USER % content, str(where), what, str(Path(__file__).parent))
    out, err = process.communicate(timeout=30)
    assert not err
    return out.strip()


@needs_root
@pytest.mark.usefixtures("still_serving")
def test_another_user_is_hung_up_on(shared: Machine, daemon: Daemon) -> None:
    folders = [shared.folder, shared.state, shared.state / "run"]
    before = [folder.stat().st_mode & 0o777 for folder in (*folders, daemon.socket)]
    try:
        for folder in folders:
            folder.chmod(0o755)
        daemon.socket.chmod(0o666)
        assert as_another_user(shared, daemon.socket, "GET /v1/health").startswith("refused")
    finally:
        for path, mode in zip((*folders, daemon.socket), before, strict=True):
            path.chmod(mode)


@needs_root
def test_the_socket_cannot_be_reached_by_another_user(shared: Machine, daemon: Daemon) -> None:
    modes = [path.stat().st_mode & 0o777 for path in (daemon.socket.parent, daemon.socket)]
    assert modes == [0o700, 0o600]


# --- what is said -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v2/dispatch", "/v1/dispatch/", "/v1/nothing", "//", "/%00", "/v1/../etc"]
)
def test_an_unknown_route_is_not_found(daemon: Daemon, path: str) -> None:
    answer = daemon.ask("GET", path)
    assert (answer.status, answer.body["error"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/dispatch"), ("PUT", "/v1/dispatch"), ("OPTIONS", "/v1/dispatch"), ("TRACE", "/v1/health"),
     ("POST", "/v1/health"), ("BREW", "/v1/health"), ("PATCH", "/v1/sessions/a")],
)  # fmt: skip
def test_an_unknown_method_is_refused(daemon: Daemon, method: str, path: str) -> None:
    answer = daemon.ask(method, path)
    assert (answer.status, answer.body["error"]) == (405, "wrong_method")


GARBAGE = {
    "nothing": b"",
    "no JSON": b"hello",
    "half of it": b'{"step": {"event": "before_tool"',
    "a list": b"[]",
    "null": b"null",
    "no step": b"{}",
    "a step that is a list": b'{"step": []}',
    "another key": b'{"step": {"event": "turn_start"}, "colour": 1}',
    "an unknown event": b'{"step": {"event": "lunch"}}',
    "no event": b'{"step": {}}',
    "an event that is a list": b'{"step": {"event": []}}',
    "a later version": b'{"step": {"fairlead": 2, "event": "turn_start"}}',
    "an unknown field": b'{"step": {"event": "turn_start", "colour": 1}}',
    "a bad field": b'{"step": {"event": "before_tool", "tool": 7}}',
    "bytes that are no text": b'{"step": {"event": "\xff\xfe"}}',
    "half a character": b'{"step": {"event": "turn_start", "session_id": "\\ud800"}}',
    "a deep list": b'{"step": ' + b"[" * 40_000,
    "a deep step": b'{"step": {"event": "before_tool", "tool": "x", "args": '
    + b'{"a":' * 40_000
    + b"1"
    + b"}" * 40_002,
    "a number that is too large": b'{"step": {"event": "turn_start"}, "deadline": 1e999}',
    "a deadline that is none": b'{"step": {"event": "turn_start"}, "deadline": "soon"}',
    "an environment that is a list": b'{"step": {"event": "turn_start"}, "env": []}',
    "an environment of numbers": b'{"step": {"event": "turn_start"}, "env": {"A": 1}}',
    "an unknown event among capabilities": b'{"step": {"event": "turn_start"}, "capabilities": {"lunch": []}}',
    "a relative root": b'{"step": {"event": "turn_start"}, "root": "here"}',
    "a root that is not there": b'{"step": {"event": "turn_start"}, "root": "/nobody/has/this"}',
    "a root that is a file": b'{"step": {"event": "turn_start"}, "root": "/etc/passwd"}',
    "a root with a NUL": b'{"step": {"event": "turn_start"}, "root": "/tmp\\u0000"}',
    "a root that is too long": b'{"step": {"event": "turn_start"}, "root": "/' + b"a" * 5000 + b'"}',
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_is_refused_with_a_reason(daemon: Daemon, name: str) -> None:
    answer = daemon.ask("POST", "/v1/dispatch", GARBAGE[name])
    assert (answer.status, answer.body["error"]) == (400, "bad_request")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
@pytest.mark.usefixtures("still_serving")
def test_bytes_that_are_no_http_are_refused(daemon: Daemon, data: bytes) -> None:
    connection = daemon.connect()
    connection.sendall(data)
    connection.shutdown(socket.SHUT_WR)
    received = exchange(connection, b"")
    assert received == b"" or status(received) in (400, 404, 405, 421)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300))
def test_no_body_breaks_it(daemon: Daemon, data: bytes) -> None:
    assert daemon.ask("POST", "/v1/dispatch", data).status == 400


@pytest.mark.usefixtures("still_serving")
def test_a_body_that_says_it_is_too_large_is_refused(daemon: Daemon) -> None:
    connection = daemon.connect()
    connection.sendall(raw("POST", "/v1/dispatch").replace(b"Length: 0", b"Length: 104857600"))
    assert status(exchange(connection, b"")) == 413


@pytest.mark.usefixtures("still_serving")
def test_a_hundred_megabytes_are_refused(daemon: Daemon) -> None:
    answer = exchange(daemon.connect(), raw("POST", "/v1/dispatch", b" " * (100 << 20)))
    assert answer == b"" or status(answer) == 413  # who does not listen while it speaks may miss it


@pytest.mark.usefixtures("still_serving")
def test_zeros_before_a_length_do_not_make_it_smaller(daemon: Daemon) -> None:
    connection = daemon.connect()
    connection.sendall(raw("POST", "/v1/dispatch").replace(b"Length: 0", b"Length: 00000000000099999999"))
    assert status(exchange(connection, b"")) == 413


@pytest.mark.usefixtures("still_serving")
@pytest.mark.parametrize("size", [1, 0x100000], ids=["tiny", "large"])
def test_a_hundred_megabytes_in_chunks_are_refused(daemon: Daemon, size: int) -> None:
    head = b"POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"%x\r\n%b\r\n" % (size, b" " * size)
    answer = exchange(daemon.connect(), head + chunk * ((100 << 20) // len(chunk)) + b"0\r\n\r\n")
    assert answer == b"" or status(answer) == 411


def test_a_body_without_a_length_is_refused(daemon: Daemon) -> None:
    head = b"POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert status(exchange(daemon.connect(), head)) == 411


def test_what_just_fits_is_served(daemon: Daemon) -> None:
    content = json.dumps(body("x")).encode().ljust(BODY)
    assert daemon.ask("POST", "/v1/dispatch", content).status == 200


@pytest.mark.parametrize(
    "head",
    [
        b"POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 500_000 + b"\r\n\r\n",
        b"GET /" + b"a" * 500_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\n" + b"X: y\r\n" * 50_000 + b"\r\n",
        b"POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\n\r\n",
        b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nBad header\r\n\r\n",
    ],
    ids=[
        "long header",
        "long path",
        "many headers",
        "two lengths",
        "negative length",
        "two hosts",
        "no host",
        "no colon",
    ],
)
@pytest.mark.usefixtures("still_serving")
def test_a_head_that_is_wrong_is_refused(daemon: Daemon, head: bytes) -> None:
    answer = exchange(daemon.connect(), head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    assert answer == b"" or status(answer) in (400, 421)


# --- slowness -----------------------------------------------------------------------------------

IMPATIENT = """
from fairlead.server import daemon, protocol
protocol.HEADER_TIMEOUT, protocol.BODY_TIMEOUT, protocol.ANSWER_TIMEOUT, daemon.KEEP_ALIVE = 0.3, 1, 0.5, 3
"""


@pytest.fixture(scope="module")
def impatient(shared: Machine, daemon: Daemon) -> Iterator[Daemon]:
    """A daemon that waits for no caller, beside the other."""
    from machines import a_machine

    with a_machine() as machine:
        yield machine.start_with(IMPATIENT)


@pytest.mark.parametrize("tcp", [False, True])
@pytest.mark.parametrize("said", [b"", b"G", b"GET /v1/health HTTP/1.1\r\nHost: local"])
def test_a_head_that_does_not_come_is_not_waited_for(impatient: Daemon, said: bytes, tcp: bool) -> None:
    assert exchange(impatient.connect(tcp=tcp), said) == b""


def answer_to(connection: socket.socket, said: bytes) -> bytes:
    """One answer, on a connection that stays open."""
    connection.settimeout(5)
    connection.sendall(said)
    received = b""
    while not received.endswith(b"}"):
        found = connection.recv(65536)
        assert found, "they hung up"
        received += found
    return received


def received_while_dribbling(connection: socket.socket, data: bytes) -> bytes:
    """What the daemon sends until it hangs up on a caller that goes on with single bytes."""
    over = threading.Event()

    def dribble() -> None:
        while not over.wait(0.05):
            try:
                connection.send(b"x")
            except OSError:
                return

    dribbling = threading.Thread(target=dribble)
    connection.settimeout(5)
    connection.sendall(data)
    dribbling.start()
    try:
        return receive_all(connection)
    finally:
        over.set()
        dribbling.join()
        connection.close()


def test_a_head_that_dribbles_is_not_waited_for(impatient: Daemon) -> None:
    said = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
    assert received_while_dribbling(impatient.connect(), said) == b""


@pytest.mark.parametrize("rest", [b"", b"x"])
def test_a_body_that_dribbles_after_another_request_is_not_waited_for(impatient: Daemon, rest: bytes) -> None:
    """The two came together, so nothing tells of the second one's head when it is read."""
    second = b"POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" + rest
    received = received_while_dribbling(impatient.connect(), raw("GET", "/v1/health") + second)
    assert received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "second", [b"POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n", b"GE"]
)
def test_what_does_not_come_after_another_request_is_not_waited_for(impatient: Daemon, second: bytes) -> None:
    assert exchange(impatient.connect(), raw("GET", "/v1/health") + second).count(b"HTTP/1.1 ") == 1


def test_a_connection_whose_request_was_refused_early_is_kept_as_any_other_is(impatient: Daemon) -> None:
    """Once the rest of that request has come, the caller is not hurried. The connection is not kept for ever."""
    connection = impatient.connect()
    half = b"POST /v1/dispatch HTTP/1.1\r\nHost: evil\r\nContent-Length: 10\r\n\r\n12345"
    assert status(answer_to(connection, half)) == 421
    began = time.monotonic()
    assert exchange(connection, b"67890") == b""
    assert time.monotonic() - began > 2


def test_the_second_head_on_a_connection_is_not_waited_for_either(impatient: Daemon) -> None:
    connection = impatient.connect()
    assert status(answer_to(connection, raw("GET", "/v1/health"))) == 200
    assert exchange(connection, b"GET /v1/hea") == b""


@pytest.mark.parametrize("length", [100, 1_000_000])
def test_a_body_that_does_not_come_is_not_waited_for(impatient: Daemon, length: int) -> None:
    head = f"POST /v1/dispatch HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode()
    assert exchange(impatient.connect(), head + b'{"step') == b""


@pytest.mark.parametrize("last", [True, False], ids=["its last", "one of many"])
def test_an_answer_that_is_not_taken_is_not_kept(machine: Machine, last: bool) -> None:
    step = {"event": "before_input", "source": "user", "input": "x" * (4 << 20)}
    connection = machine.start_with(IMPATIENT).connect()
    headers = {"Connection": "close"} if last else {}
    connection.sendall(raw("POST", "/v1/dispatch", json.dumps({"step": step}).encode(), **headers))
    hung_up = select.poll()
    hung_up.register(connection, select.POLLHUP)
    wait_until(lambda: hung_up.poll(0))
    assert 0 < len(exchange(connection, b"")) < 4 << 20


def test_a_body_that_is_never_read_keeps_no_connection(impatient: Daemon) -> None:
    """To a route that takes no body."""
    connection = impatient.connect()
    connection.sendall(b"POST /v1/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n")
    assert status(exchange(connection, b"x" * 1000)) == 200


def test_slow_callers_keep_no_other_from_being_served(impatient: Daemon) -> None:
    slow = [impatient.connect() for _ in range(100)]
    assert impatient.ask("GET", "/v1/health").status == 200
    for connection in slow:
        connection.close()


# --- many at once, and in odd ways --------------------------------------------------------------


async def test_two_hundred_clients_at_once_get_their_own_answers(daemon: Daemon, root: Path) -> None:
    async def one(number: int) -> bool:
        async with AsyncClient(daemon.socket, start=False) as client:
            step = BeforeTool(tool="bash", args={"command": f"no {number}"}, session_id=f"s{number}")
            decision = await client.dispatch(step, root=str(root))
            return (
                decision.reason == "no" and decision.step.args == step.args and decision.step.session_id == f"s{number}"
            )

    assert all(await asyncio.gather(*(one(number) for number in range(200))))


def test_threads_may_share_a_client(daemon: Daemon, root: Path) -> None:
    with daemon.client() as client, ThreadPoolExecutor(20) as threads:

        def one(number: int) -> tuple[str | None, Any]:
            decision = client.dispatch(BeforeTool(tool="bash", args={"command": f"no {number}"}), root=str(root))
            return decision.reason, decision.step.args["command"]

        assert list(threads.map(one, range(200))) == [("no", f"no {number}") for number in range(200)]


def answers(data: bytes) -> list[Any]:
    """The bodies of all answers on a connection."""
    found = []
    while data:
        head, _, rest = data.partition(b"\r\n\r\n")
        length = int(
            next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length")).split()[1]
        )
        found.append(json.loads(rest[:length]))
        data = rest[length:]
    return found


def test_pipelined_requests_are_answered_in_turn(daemon: Daemon, root: Path) -> None:
    texts = [f"no {number}" for number in range(50)]
    requests = [raw("POST", "/v1/dispatch", json.dumps(body(text, root)).encode()) for text in texts[:-1]]
    last = raw("POST", "/v1/dispatch", json.dumps(body(texts[-1], root)).encode(), Connection="close")
    received = exchange(daemon.connect(), b"".join([*requests, last]))
    assert [answer["step"]["args"]["command"] for answer in answers(received)] == texts


def test_a_refused_request_does_not_spoil_the_next_on_its_connection(daemon: Daemon, root: Path) -> None:
    good = raw("POST", "/v1/dispatch", json.dumps(body("no 7", root)).encode(), Connection="close")
    received = exchange(daemon.connect(), raw("POST", "/v1/dispatch", b"garbage") + raw("GET", "/v1/nothing") + good)
    assert [answer.get("error") for answer in answers(received)] == ["bad_request", "not_found", None]


def test_a_body_is_not_taken_for_another_request(daemon: Daemon) -> None:
    """Smuggled in a body that a route does not read."""
    hidden = raw("POST", "/v1/stop")
    received = exchange(daemon.connect(), raw("GET", "/v1/health", hidden, Connection="close"))
    assert [answer.get("status") for answer in answers(received)] == ["ok"]


def test_a_half_closed_connection_gets_its_answer(daemon: Daemon, root: Path) -> None:
    connection = daemon.connect()
    connection.sendall(raw("POST", "/v1/dispatch", json.dumps(body("no 1", root)).encode()))
    connection.shutdown(socket.SHUT_WR)
    received = exchange(connection, b"")
    assert received == b"" or answers(received)[0]["step"]["args"]["command"] == "no 1"


@pytest.mark.usefixtures("still_serving")
def test_callers_that_vanish_do_no_harm(daemon: Daemon, root: Path) -> None:
    content = raw("POST", "/v1/dispatch", json.dumps(body("no 1", root)).encode())
    for length in range(0, len(content) + 1, 7):
        with connect(str(daemon.socket)) as connection:
            connection.sendall(content[:length])


@pytest.mark.parametrize("tcp", [False, True])
def test_many_connections_that_say_nothing_can_be_open(daemon: Daemon, tcp: bool) -> None:
    opened = [daemon.connect(tcp=tcp) for _ in range(200)]
    assert daemon.ask("GET", "/v1/health", tcp=tcp).status == 200
    for connection in opened:
        connection.close()


# --- the rest of the API ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "limit=-1", "limit=x", "limit=", "limit=²", "limit=0010000", "colour=red", "since=x"],
)
def test_a_filter_that_makes_no_sense_is_refused(daemon: Daemon, query: str) -> None:
    from urllib.parse import quote

    assert daemon.ask("GET", f"/v1/decisions?{quote(query, safe='=')}").status == 400


def test_a_decision_that_is_not_there_is_not_found(daemon: Daemon, root: Path) -> None:
    with daemon.client() as client:
        client.dispatch(BeforeTool(tool="bash", args={}), root=str(root))
    assert daemon.ask("GET", "/v1/decisions/nobody").status == 404


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("path", ["/v1/decisions", "/v1/decisions/nobody"])
def test_before_anything_is_written_there_is_nothing_to_be_found(impatient: Daemon, path: str, begun: bool) -> None:
    """Also while the file is being made."""
    journal = impatient.socket.parents[1] / "journal.db"
    if begun:
        journal.touch()
    answer = impatient.ask("GET", path)
    journal.unlink(missing_ok=True)
    assert (answer.status, answer.body["error"]) == (404, "no_journal")


def test_a_session_that_is_not_there_is_not_found(daemon: Daemon) -> None:
    assert daemon.ask("GET", "/v1/sessions/nobody").status == 404
    assert daemon.ask("DELETE", "/v1/sessions/nobody").status == 404


def test_a_session_whose_id_has_a_slash_can_be_forgotten(daemon: Daemon, root: Path) -> None:
    with daemon.client() as client:
        client.dispatch(BeforeTool(tool="bash", args={}, session_id="a/b"), root=str(root))
    assert daemon.ask("DELETE", f"/v1/sessions/a%2Fb?root={root}").status == 200


def test_more_decisions_than_one_answer_holds_are_refused(machine: Machine) -> None:
    daemon = machine.start()
    for _ in range(3):
        step = {"event": "before_input", "source": "user", "input": "x" * (7 << 20)}
        assert daemon.ask("POST", "/v1/dispatch", {"step": step}).status == 200
    answer = wait_until(lambda: (found := daemon.ask("GET", "/v1/decisions?limit=50")).status == 413 and found)
    assert answer.body["error"] == "too_large"
    (newest,) = daemon.ask("GET", "/v1/decisions?limit=1").body["decisions"]
    assert len(newest["step"]["input"]) == 7 << 20
    assert daemon.ask("GET", f"/v1/decisions/{newest['id']}").body == newest
