"""Compares a dispatch over the daemon's socket with a bare ASGI application that echoes the same bytes.

Part of `make bench`. Each server runs under uvicorn in its own process, and one client uses them in turn: in bursts of
some hundred requests, between which the journal is written, and then without a pause, so that it is written during the
requests. At the end, another process sends large requests of every shape, and the table shows how long small ones take
in the meantime. Prints tables and compares them with the targets; asserts nothing.
"""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from time import perf_counter

import msgspec

from fairlead.config.document import Document
from fairlead.config.survey import survey
from fairlead.config.trust import Trust
from fairlead.lifecycle import BeforeInput, BeforeTool
from fairlead.wire.steps import envelope

ROUNDS, EACH, QUIET, STEADY = 20, 500, 0.3, 5000
LIMIT = 1.5
DELAY, SECONDS = 100.0, 2.0
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "server"))

LOAD = """
import socket, sys
body = sys.stdin.buffer.read()
lines = [f"POST {sys.argv[2]} HTTP/1.1", "Host: localhost", "Connection: close", f"Content-Length: {len(body)}", "", ""]
while True:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(sys.argv[1])
        connection.sendall("\\r\\n".join(lines).encode() + body)
        status = connection.recv(12)
        while connection.recv(1 << 20):
            pass
    print(status[-3:].decode(), flush=True)
"""
ECHO = """
import sys, uvicorn

async def app(scope, receive, send):
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})

uvicorn.run(app, uds=sys.argv[1], log_level="critical", lifespan="off", http="h11", access_log=False)
"""
CONFIG = """
[[hook]]
name = "no-force-push"
on = "before_tool"
match = { kind = "shell" }
phase = "gate"
rule = 'target.command.contains("--force")'
deny = "no"
"""


class UnixConnection(http.client.HTTPConnection):
    """One connection to a unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(self._path))

    def send_step(self, body: bytes) -> float:
        started = perf_counter()
        self.request("POST", "/v1/dispatch", body, {"content-type": "application/json"})
        answer = self.getresponse()
        content = answer.read()
        took = perf_counter() - started
        if answer.status != 200:
            raise RuntimeError(content.decode())
        return took * 1e6

    def burst(self, body: bytes, times: int) -> list[float]:
        """Send a request many times, on a new connection: the server may have closed an idle one."""
        self.close()
        self.connect()
        return [self.send_step(body) for _ in range(times)]


def wait_for(path: Path) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            UnixConnection(path).connect()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f"nothing answers on {path}")


def main() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        project, state = folder / "project", folder / "state"
        project.mkdir()
        state.mkdir(mode=0o700)
        (project / "fairlead.toml").write_text(CONFIG)
        Trust(state).pin(survey(Document(project / "fairlead.toml"), project))
        environ = {**os.environ, "FAIRLEAD_STATE_DIR": str(state)}
        echo, ours = folder / "echo.sock", state / "run" / "v1.sock"
        started = [
            subprocess.Popen([sys.executable, "-c", ECHO, str(echo)]),
            subprocess.Popen([sys.executable, "-m", "fairlead.server"], env=environ, stderr=subprocess.DEVNULL),
        ]
        try:
            wait_for(echo)
            wait_for(ours)
            compare(UnixConnection(echo), UnixConnection(ours), project)
            delays(ours, project)
        finally:
            for process in started:
                process.terminate()
                process.wait()


def compare(echo: UnixConnection, ours: UnixConnection, project: Path) -> None:
    header = {"session_id": "s-1", "cwd": str(project), "host": "bench"}
    judged = BeforeTool(tool="bash", args={"command": "git status"}, **header)
    free = BeforeInput(source="user", input="git status", **header)
    bodies = {
        kind: msgspec.json.encode({"step": envelope(step), "root": str(project), "env": {}})
        for kind, step in (("echo", free), ("dispatch", free), ("judged", judged), ("steady", free))
    }
    taken: dict[str, list[float]] = {kind: [] for kind in bodies}
    steady = bodies.pop("steady")
    for _ in range(ROUNDS):
        for kind, body in bodies.items():
            time.sleep(QUIET)  # so that no burst pays for the records of the one before
            connection = echo if kind == "echo" else ours
            taken[kind] += connection.burst(body, EACH)
    taken["steady"] = ours.burst(steady, STEADY)
    warm = {kind: sorted(times[EACH:]) for kind, times in taken.items()}
    p50, p99 = ({kind: times[int(len(times) * part)] for kind, times in warm.items()} for part in (0.5, 0.99))
    print(f"{'over a unix socket':<50}{'p50':>10}{'p99':>10}")
    named = {
        "echo": "a bare ASGI echo",
        "dispatch": "a dispatch, journaled, to which no hook applies",
        "judged": "a dispatch with the guard and one rule",
        "steady": "one to which no hook applies, without a pause",
    }
    for kind, what in named.items():
        ratios = f"   {p50[kind] / p50['echo']:.2f}x {p99[kind] / p99['echo']:.2f}x" if kind != "echo" else ""
        print(f"{what:<50}{p50[kind]:>7.0f} us{p99[kind]:>7.0f} us{ratios}")
    for kind in ("dispatch", "judged"):
        over = [part for part, figures in (("p50", p50), ("p99", p99)) if figures[kind] > LIMIT * figures["echo"]]
        print(f"  {named[kind]}: at most {LIMIT}x{'   OVER: ' + ', '.join(over) if over else ''}")


def delays(ours: Path, project: Path) -> None:
    """How long small requests take while large ones of each shape are sent."""
    from shapes import REFUSED, SERVED

    step = BeforeTool(tool="bash", args={"command": "git status"}, session_id="s-1", cwd=str(project))
    small = msgspec.json.encode({"step": envelope(step), "root": str(project)})
    connection = UnixConnection(ours)

    def row(what: str, size: float, status: str) -> float:
        taken = [microseconds / 1e3 for microseconds in connection.burst(small, 1)]
        until = perf_counter() + SECONDS
        while perf_counter() < until:
            taken.append(connection.send_step(small) / 1e3)
            time.sleep(0.002)
        p50, p99 = (sorted(taken)[int(len(taken) * part)] for part in (0.5, 0.99))
        over = "   OVER" if max(taken) > DELAY else ""
        print(f"{what:<42}{size:>6.2f}{status:>8}{p50:>8.1f}{p99:>8.1f}{max(taken):>8.1f}{over}")
        return max(taken)

    print(
        f"\n{'small requests, while large ones are sent (ms)':<42}{'MiB':>6}{'status':>8}{'p50':>8}{'p99':>8}{'max':>8}"
    )
    row("none", 0, "")
    worst = 0.0
    for name, shape in [*SERVED.items(), *((f"too large: {name}", shape) for name, shape in REFUSED.items())]:
        path, body = shape(str(project))
        command = [sys.executable, "-c", LOAD, str(ours), path]
        load = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert load.stdin is not None
        assert load.stdout is not None
        try:
            load.stdin.write(body)
            load.stdin.close()
            status = load.stdout.readline().decode().strip()
            worst = max(worst, row(name, len(body) / (1 << 20), status))
        finally:
            load.kill()
            load.wait()
            load.stdout.close()
    print(f"  no request delays another by more than {DELAY:.0f} ms{'   OVER' if worst > DELAY else ''}")


if __name__ == "__main__":
    main()
