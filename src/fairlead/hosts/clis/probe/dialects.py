"""The dialects of model APIs that the agent CLIs speak. Each is a module with `offers_tools` and `reply`.

`offers_tools(body)` says whether a request is one of the agent's own (it offers tools), and not one for a title.
`reply(turn, body, path, number)` renders a turn in that dialect: streamed (SSE) if the request asks for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class HttpReply:
    status: int
    kind: str
    content: bytes


def of(path: str) -> Any:
    """The dialect of a path; None for requests that the script does not answer (lists of models, telemetry)."""
    from . import anthropic, chat, gemini, responses

    path = path.partition("?")[0]
    if path.endswith("/messages"):
        return anthropic
    if path.endswith("/responses"):
        return responses
    if path.endswith("/chat/completions"):
        return chat
    if ":generateContent" in path or ":streamGenerateContent" in path:
        return gemini
    return None
