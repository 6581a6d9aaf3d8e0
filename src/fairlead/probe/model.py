"""A model that says what was written for it, in the four dialects that the agent CLIs speak, on loopback only."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from . import dialects


@dataclass(frozen=True)
class Say:
    """The model says something, and its turn is over."""

    text: str


@dataclass(frozen=True)
class Call:
    """The model calls a tool, by the CLI's own name for it."""

    tool: str
    args: dict[str, Any] = field(default_factory=dict)


Turn = Say | Call | tuple[Call, ...]
"""What the model does when it is asked once: a tuple is several calls in parallel."""


@dataclass(frozen=True)
class Asked:
    """One request of the CLI's: where, and what."""

    path: str
    body: dict[str, Any]

    @property
    def text(self) -> str:
        """All that the model was told, to look for words in."""
        return json.dumps(self.body, ensure_ascii=False)


class Model:
    """Serves a script: each request that offers tools takes the next turn; when it is over, it says DONE.

    Requests that offer no tools (titles, summaries) are answered with a word, and take no turn.
    """

    def __init__(self, *script: Turn) -> None:
        self._script: list[Turn] = list(script)
        self._lock = threading.Lock()
        self.asked: list[Asked] = []
        """The requests that took a turn."""
        self.others: list[Asked] = []

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def told(self, words: str) -> bool:
        """Whether the model was ever told these words."""
        return any(words in asked.text for asked in self.asked)

    def answer(self, method: str, path: str, body: dict[str, Any]) -> dialects.Reply:
        api = dialects.of(path)
        if api is None or method != "POST":
            return dialects.Reply(200, "application/json", b'{"data": [], "models": []}')
        with self._lock:
            asked = Asked(path, body)
            main = api.offers_tools(body)
            (self.asked if main else self.others).append(asked)
            turn: Turn = Say("ok") if not main else self._script.pop(0) if self._script else Say("DONE")
            number = len(self.asked) + len(self.others)
        reply: dialects.Reply = api.reply(turn, body, path, number)
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
