"""A scripted model on loopback, which speaks the four dialects of model APIs that agent CLIs use."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from . import dialects


@dataclass(frozen=True)
class Say:
    """The model answers with a text, and its turn is over."""

    text: str


@dataclass(frozen=True)
class ScriptedCall:
    """The model calls a tool, by the CLI's own name for it."""

    tool: str
    args: dict[str, Any] = field(default_factory=dict)


Call = ScriptedCall  # its name in earlier versions, which the docs gave

ScriptedTurn = Say | ScriptedCall | tuple[ScriptedCall, ...]
"""What the model does at one request: a tuple is several calls in parallel."""


@dataclass(frozen=True)
class ModelRequest:
    """One request of the CLI to the model."""

    path: str
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """The whole request as text, to look for words in."""
        return json.dumps(self.body, ensure_ascii=False)


class Model:
    """Serves a script: each request that offers tools takes the next turn. After the last, the answer is DONE.

    Requests that offer no tools (titles, summaries) are answered with a word, and take no turn.
    """

    def __init__(self, *script: ScriptedTurn) -> None:
        self._script: list[ScriptedTurn] = list(script)
        self._lock = threading.Lock()
        self.requests: list[ModelRequest] = []
        """The requests that took a turn."""
        self.other_requests: list[ModelRequest] = []

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def received(self, words: str) -> bool:
        """Whether any request that took a turn had these words."""
        return any(words in request.text for request in self.requests)

    def answer(self, method: str, path: str, body: dict[str, Any]) -> dialects.HttpReply:
        api = dialects.of(path)
        if api is None or method != "POST":
            return dialects.HttpReply(200, "application/json", b'{"data": [], "models": []}')
        with self._lock:
            request = ModelRequest(path, body)
            main = api.offers_tools(body)
            (self.requests if main else self.other_requests).append(request)
            turn: ScriptedTurn = Say("ok") if not main else self._script.pop(0) if self._script else Say("DONE")
            number = len(self.requests) + len(self.other_requests)
        reply: dialects.HttpReply = api.reply(turn, body, path, number)
        return reply

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self._do("POST")

            def do_GET(self) -> None:
                self._do("GET")

            def do_HEAD(self) -> None:
                self._do("HEAD")

            def _do(self, method: str) -> None:
                content = self.rfile.read(int(self.headers.get("content-length") or 0))
                try:
                    body = json.loads(content or b"{}")
                except ValueError:
                    body = {}
                reply = model.answer(method, self.path, body if isinstance(body, dict) else {})
                self.send_response(reply.status)
                self.send_header("content-type", reply.kind)
                self.send_header("content-length", str(len(reply.content)))
                self.end_headers()
                if method != "HEAD":
                    self.wfile.write(reply.content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
