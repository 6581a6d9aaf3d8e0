"""APIs: requests that delete something on a server, by a program, by code, or by a tool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..shell import Command
from .files import code_of
from .flows import is_interpreter, urls_of
from .lines import PackLine
from .rules import Objection, Pack

if TYPE_CHECKING:
    from ..lifecycle import BeforeTool

apis = Pack("apis", "Keeps requests from deleting things on servers.")
_MUTATION = re.compile(r"mutation\b[^{]*\{\s*\w*(?:delete|destroy|remove|drop|purge|wipe|terminate)\w*", re.I)
_ACTION = re.compile(
    r"/(?:delete|destroy|terminate|purge|wipe|drop|_delete_by_query|reset|deactivate|factory-?reset)(?:[/?]|$)", re.I
)
_METHOD = re.compile(
    r"\bmethod\s*[:=]\s*['\"]?DELETE|requests\.delete\(|httpx\.delete\(|axios\.delete\(|\.delete\(\s*['\"]https?:|http\.delete\(",
    re.I,
)


def _requests(command: Command) -> Iterator[tuple[str, str, str]]:
    """The method, the address and the body of each request that a command makes."""
    program, options = command.program, command.options
    urls = urls_of(command)
    if program == "curl":
        body = " ".join(
            str(options.get(name) or "")
            for name in ("--data", "--data-raw", "--data-binary", "--json", "--data-urlencode")
        )
        method = str(options.get("--request") or ("POST" if body.strip() else "GET"))
        yield from ((method.upper(), str(url), f"{body} {command.stdin or ''}") for url in urls or [""])
    elif program == "wget":
        method = next((word.partition("=")[2] for word in command.args if word.startswith("--method=")), "GET")
        yield from ((method.upper(), str(url), "") for url in urls)
    elif program in ("http", "https", "xh", "httpie", "curlie"):
        words = [str(word) for word in command.operands]
        method = words[0] if words and re.fullmatch("[A-Z]+", words[0]) else "GET"
        yield (method, str(urls[0]) if urls else "", " ".join(words))
    elif program in ("gh", "glab") and command.operands[:1] == ["api"]:
        given = re.search(r"(?:-X|--method)[ =]?(\w+)", " ".join(map(str, command.args)))
        method = given[1] if given else "GET"
        yield (method.upper(), " ".join(map(str, command.operands[1:])), " ".join(map(str, command.args)))


@apis.rule(
    "delete",
    level="destructive",
    programs=[
        "curl",
        "wget",
        "http",
        "https",
        "xh",
        "curlie",
        "gh",
        "glab",
        "irm",
        "iwr",
        "invoke-restmethod",
        "invoke-webrequest",
    ],
    why="This request deletes something on a server, and a server has no way back.",
    instead="Look first: `curl https://api.example.com/items/3`",
    incident="2026-04: an agent deleted a production volume by one request, with a token that it had found.",
    stops=[
        "curl -X DELETE https://api.example.com/items/3",
        "curl --request=DELETE https://x.example/y",
        "http DELETE https://x.example/y",
        'curl https://x.example/graphql -d \'{"query": "mutation { volumeDelete(id: 1) }"}\'',
        "gh api -X DELETE repos/a/b",
        "curl -XPOST https://x.example/v1/volumes/3/delete",
        "wget --method=DELETE https://x.example/y",
        "curl -X POST https://es.example/index/_delete_by_query -d '{}'",
    ],
    passes=[
        "curl https://api.example.com/items/3",
        "curl -X DELETE http://localhost:8000/items/3",
        "curl -X POST https://x.example/items -d '{}'",
        "gh api repos/a/b",
        "http GET https://x.example/y",
        "curl https://x.example/docs/delete",
        "curl -X GET https://x.example/delete",
    ],
)
def delete(command: Command, line: PackLine) -> Objection:
    for method, url, body in _requests(command):
        if line.is_allowed(url):
            continue
        if method == "DELETE":
            return f"DELETE {url[:80]}"
        if method not in ("GET", "HEAD", "OPTIONS") and _ACTION.search(url):
            return f"{method} {url[:80]}"
        if found := _deletes_by_mutation(body):
            return found
    words = [str(word).lower() for word in command.args]
    return command.program.startswith(("irm", "iwr", "invoke")) and "-method" in words and "delete" in words


def _deletes_by_mutation(text: str) -> str:
    plain = text.replace("\\n", " ").replace('\\"', '"')
    found = _MUTATION.search(plain) or re.search(r"mutation\b[^}]*\b(\w*(?:Delete|Destroy|Remove)\w*)\s*\(", plain)
    return found[0].strip()[:80] if found else ""


@apis.rule(
    "delete-in-code",
    level="destructive",
    why="This code deletes something on a server.",
    instead="Look first: `curl https://api.example.com/items/3`",
    stops=[
        "python3 -c 'import requests; requests.delete(\"https://x.example/y\")'",
        'node -e \'fetch("https://x.example/y", {method: "DELETE"})\'',
    ],
    passes=[
        "python3 -c 'import requests; requests.get(\"https://x.example/y\")'",
        "python3 -c 'd.delete(1)'",
        "python3 -c 'import requests; requests.delete(\"http://localhost/y\")'",
    ],
)
def delete_in_code(command: Command, line: PackLine) -> Objection:
    if not is_interpreter(command.program):
        return None
    code = code_of(command)
    found = _METHOD.search(code) if code else None
    if found is None:
        return None
    addresses = re.findall(r"https?://[^\s'\"]+", code)
    return None if addresses and all(map(line.is_allowed, addresses)) else found[0][:80]


_NAMES = re.compile(
    r"(?:^|[_.-])(?:delete|destroy|drop|purge|wipe|truncate|terminate|remove_all|reset)(?:$|[_.-])|^(?:delete|destroy|drop|purge|wipe|terminate)(?=[A-Z])"
)


@apis.tool_rule(
    "delete-by-tool",
    kinds=["mcp", "fetch", "unknown"],
    level="destructive",
    why="This tool deletes something on a server, and a server has no way back.",
    instead="Look first: list or read it with the tool that does only that, and ask",
    stops=[
        {"tool": "fetch", "args": {"url": "https://x.example/y", "method": "DELETE"}},
        {"tool": "mcp__railway__volume_delete", "args": {"id": 1}},
        {"tool": "mcp__db__query", "args": {"query": "mutation { volumeDelete(id: 1) }"}},
    ],
    passes=[
        {"tool": "fetch", "args": {"url": "https://x.example/y"}},
        {"tool": "mcp__x__list_items", "args": {}},
        {"tool": "fetch", "args": {"url": "http://localhost:80/y", "method": "DELETE"}},
    ],
)
def delete_by_tool(step: BeforeTool, line: PackLine) -> Objection:
    args = step.args if isinstance(step.args, dict) else {}
    url = str(step.target.url or args.get("url") or "")
    if str(args.get("method", "")).upper() == "DELETE" and not (url and line.is_allowed(url)):
        return f"DELETE {url[:80]}"
    for text in _texts(args):
        if found := _deletes_by_mutation(text):
            return found
    name = step.tool.rpartition("__")[2]
    return f"{step.tool}" if _NAMES.search(name) and step.safety != "read_only" and step.kind != "fetch" else None


def _texts(value: Any, left: int = 200) -> Iterator[str]:
    values = [value]
    while values and left:
        left -= 1
        one = values.pop()
        if isinstance(one, str):
            yield one[:20_000]
        elif isinstance(one, dict):
            values += one.values()
        elif isinstance(one, list):
            values += one
