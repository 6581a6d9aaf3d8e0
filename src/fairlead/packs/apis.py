"""APIs: requests that delete something on a server, by a program, by code, or by a tool."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b
from typing import TYPE_CHECKING

from ..redaction.shapes import known_secrets, looks_random
from ..shell import Command
from .files import code_of
from .flows import is_interpreter, urls_of
from .lines import PackLine, texts_of
from .rules import Memory, Objection, Pack

if TYPE_CHECKING:
    from ..lifecycle import AfterTool, BeforeTool

apis = Pack("apis", "Keeps requests from deleting things on servers.")
_MUTATION = re.compile(r"mutation\b[^{]*\{\s*\w*(?:delete|destroy|remove|drop|purge|wipe|terminate)\w*", re.I)
_ACTION = re.compile(
    r"[/.](?:delete|destroy|terminate|purge|purge_cache|wipe|drop|_delete_by_query|reset|deactivate|factory-?reset)(?:[/?]|$)|"
    r"/(?:delete|destroy)(?-i:[A-Z])\w*(?:[/?]|$)|[?&](?:action|method|op|_method)=(?:delete|destroy|drop)\b|"
    r"//api\.stripe\.com/v1/(?:refunds|charges|transfers|payouts)\b",
    re.I,
)
_OVERRIDES = re.compile(r"(?i)x-(?:http-)?method(?:-override)?:\s*delete|\b_method=delete\b")
_ADMIN = re.compile(
    r"^[^?#]*/(?:admin|superuser|internal/admin|_admin|wp-admin|actuator/(?:shutdown|restart))(?:[/?]|$)", re.I
)
_METHOD = re.compile(
    r"\bmethod\s*[:=]\s*['\"]?DELETE|\.request\(\s*(?:method\s*=\s*)?['\"]DELETE|requests\.delete\(|httpx\.delete\(|axios\.delete\(|\.delete\(\s*['\"]https?:|CURLOPT_CUSTOMREQUEST\s*,\s*['\"]DELETE|Net::HTTP\S*\.delete\(|http\.delete\(",
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
        sends = body.strip() and not command.has("--get", "-G")
        method = str(options.get("--request") or ("POST" if sends else "GET"))
        yield from ((method.upper(), str(url), f"{body} {command.stdin or ''}") for url in urls or [""])
    elif program == "wget":
        method = next((word.partition("=")[2] for word in command.args if word.startswith("--method=")), "GET")
        yield from ((method.upper(), str(url), "") for url in urls)
    elif program in ("http", "https", "xh", "httpie", "curlie"):
        words = [str(word) for word in command.operands]
        method = words[0].upper() if words and re.fullmatch("(?i)[a-z]+", words[0]) and len(words) > 1 else "GET"
        yield (method, str(urls[0]) if urls else "", " ".join(words))
    elif program in ("gh", "glab") and command.operands[:1] == ["api"]:
        named = re.search(r"(?:-X|--method)[ =]?(\w+)", " ".join(map(str, command.args)))
        method = named[1] if named else "GET"
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
        "grpcurl",
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
        "xh delete https://x.example/y",
        "gh api -X DELETE repos/a/b",
        "curl -XPOST https://x.example/v1/volumes/3/delete",
        "wget --method=DELETE https://x.example/y",
        "curl -X POST https://es.example/index/_delete_by_query -d '{}'",
        "curl -X PUT https://x.example/api/admin/users/3 -d '{}'",
        "curl -X POST -H 'X-HTTP-Method-Override: DELETE' https://x.example/y",
        "curl 'https://x.example/items?action=delete&id=1'",
        "curl -X POST https://x.example/api/conversations.delete -d channel=C",
        "curl -X POST https://api.stripe.com/v1/refunds -d charge=c",
        "grpcurl -d '{}' x.example:443 svc.Users/DeleteUser",
    ],
    passes=[
        "curl https://api.example.com/items/3",
        "curl -X DELETE http://localhost:8000/items/3",
        "curl -X POST https://x.example/items -d '{}'",
        "gh api repos/a/b",
        "http GET https://x.example/y",
        "curl https://x.example/docs/delete",
        {"tool": "powershell", "args": {"command": "irm -Method Delete -Uri http://localhost:5000/x"}},
        "curl -X GET https://x.example/delete",
        "curl -X POST https://x.example/deletes -d x",
        "grpcurl x.example:443 svc.Users/GetUser",
        "grpcurl x.example:443 describe svc.Users.DeleteUser",
        "curl -G https://api.stripe.com/v1/charges -d limit=3",
    ],
)
def delete(command: Command, line: PackLine) -> Objection:
    for method, url, body in _requests(command):
        if line.is_allowed(url):
            continue
        if method == "DELETE":
            return f"DELETE {url[:80]}"
        if method not in ("GET", "HEAD", "OPTIONS") and (_ACTION.search(url) or _ADMIN.search(url)):
            return f"{method} {url[:80]}"
        if found := _deletes_by_mutation(body):
            return found
        overrides = _OVERRIDES.search(" ".join(map(str, command.args)))
        if overrides is not None:
            return f"{overrides[0]} {url[:80]}"
        if method == "GET" and re.search(r"[?&](?:action|_method)=delete\b", url):
            return f"{method} {url[:80]}"
    if command.program == "grpcurl":
        if {"describe", "list"} & set(command.operands[:2]) and not command.has("-d", "-data"):
            return None
        return next((word for word in command.operands if re.search(r"[./](?:Delete|Destroy|Purge|Drop)", word)), None)
    words = [str(word).lower() for word in command.args]
    if not command.program.startswith(("irm", "iwr", "invoke")) or "-method" not in words or "delete" not in words:
        return None
    addresses = [word for word in words if "://" in word]
    return not addresses or not all(map(line.is_allowed, addresses))


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
        'python3 -c \'import httpx; httpx.request("DELETE", "https://x.example/y")\'',
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
    code = code_of(command, line)
    found = _METHOD.search(code) if "delete" in code.lower() else None
    if found is None:
        return None
    addresses = re.findall(r"https?://[^\s'\"]+", code)
    return None if addresses and all(map(line.is_allowed, addresses)) else found[0][:80]


_OF_GIT = re.compile(r"(?:git_)?(?:push|reset|clean|checkout|branch)", re.I)
_FORCES = ("force", "hard", "delete", "--force", "--hard")
_NAMES = re.compile(
    r"(?:^|[_.-])(?:delete|destroy|drop|purge|wipe|truncate|terminate|revoke|uninstall|flush_?all|flush_?db|"
    r"remove_(?:all|volume|container|database|table|bucket|branch|repo(?:sitory)?|user|member|project)|"
    r"reset_(?:all|db|database|schema|data|password|branch|hard)|cancel_subscription)(?:$|[_.-])|"
    r"^(?:delete|destroy|drop|purge|wipe|terminate|truncate|revoke)(?=[A-Z])|[a-z](?:Delete|Destroy|Purge)(?:$|[A-Z])"
)
_MOVES_MONEY = re.compile(
    r"(?i)(?:^|[_.-])(?:transfer|pay|send_?(?:money|payment|funds)|withdraw|refund|charge|checkout|purchase|buy|place_?order|"
    r"create_?(?:payment|transfer|payout|charge)|schedule_?transaction)(?:$|[_.-])|^(?:transfer|withdraw|refund|charge)(?=[A-Z])"
)


@apis.tool_rule(
    "delete-by-tool",
    kinds=["mcp", "fetch", "unknown"],
    level="destructive",
    why="This tool deletes something on a server, and a server has no way back.",
    instead="Look first: list or read it with the tool that does only that, and ask",
    stops=[
        {"tool": "fetch", "args": {"url": "https://x.example/y", "method": "DELETE"}},
        {"tool": "fetch", "args": {"url": "https://x.example/admin/users/3", "method": "PUT"}},
        {"tool": "mcp__railway__volume_delete", "args": {"id": 1}},
        {"tool": "mcp__github__deleteRepository", "args": {"repo": "x"}},
        {"tool": "mcp__k8s__drop_namespace", "args": {"name": "x"}},
        {"tool": "mcp__x__remove_all_users", "args": {}},
        {"tool": "mcp__db__query", "args": {"query": "mutation { volumeDelete(id: 1) }"}},
        {"tool": "mcp__git__git_push", "args": {"force": True}},
        {"tool": "mcp__redis__flushall", "args": {}},
    ],
    passes=[
        {"tool": "fetch", "args": {"url": "https://x.example/y"}},
        {"tool": "mcp__x__list_items", "args": {}},
        {"tool": "mcp__x__list_deleted_items", "args": {}},
        {"tool": "fetch", "args": {"url": "https://x.example/admin/users"}},
        {"tool": "mcp__browser__remove_highlight", "args": {}},
        {"tool": "mcp__git__git_push", "args": {"force": False}},
        {"tool": "mcp__git__git_reset", "args": {"path": "a.py"}},
        {"tool": "mcp__time__reset_timer", "args": {}},
        {"tool": "fetch", "args": {"url": "http://localhost:80/y", "method": "DELETE"}},
    ],
)
def delete_by_tool(step: BeforeTool, line: PackLine) -> Objection:
    args = step.args if isinstance(step.args, dict) else {}
    url = str(step.target.url or args.get("url") or "")
    method = str(args.get("method", "")).upper()
    if not (url and line.is_allowed(url)):
        if method == "DELETE":
            return f"DELETE {url[:80]}"
        if method not in ("", "GET", "HEAD", "OPTIONS") and (_ACTION.search(url) or _ADMIN.search(url)):
            return f"{method} {url[:80]}"
    for _, text in texts_of(args):
        if found := _deletes_by_mutation(text):
            return found
    name = step.tool.rpartition("__")[2]
    if _OF_GIT.fullmatch(name):
        forced = next((key for key in _FORCES if args.get(key)), "hard" if args.get("mode") == "hard" else None)
        return forced and f"{step.tool}: {forced}"
    return f"{step.tool}" if _NAMES.search(name) and step.safety != "read_only" and step.kind != "fetch" else None


@apis.tool_rule(
    "move-money",
    kinds=["mcp", "unknown"],
    level="destructive",
    why="This moves money, or buys something, and that is not undone by asking.",
    instead="Show the user what it would do, and ask.",
    risk="ASI03 Identity and Privilege Abuse",
    stops=[
        {"tool": "mcp__bank__transfer", "args": {"to": "x", "amount": 1}},
        {"tool": "send_money", "args": {"recipient": "x", "amount": 1}},
        {"tool": "mcp__stripe__create_refund", "args": {"charge": "x"}},
    ],
    passes=[
        {"tool": "mcp__bank__list_transfers", "args": {}},
        {"tool": "mcp__bank__get_balance", "args": {}},
        {"tool": "mcp__stripe__list_refunds", "args": {}},
    ],
)
def move_money(step: BeforeTool, line: PackLine) -> Objection:
    name = step.tool.rpartition("__")[2]
    return bool(_MOVES_MONEY.search(name)) and not re.match(r"(?i)(?:list|get|search|read|show|describe)", name)


# --- credentials that turn up in a session ------------------------------------------------------------------------

_MOST = 500
"""How many credentials of a session are remembered."""
_CANDIDATE = re.compile(r"[A-Za-z0-9_+/=.~-]{16,4096}")
_NAMED_TOKEN = re.compile(
    r"(?i)(?:token|secret|password|passwd|api[_-]?key|access[_-]?key|credential|bearer|authorization)"
    r"[\"']?\s*[:= ]\s*[\"']?(?:bearer\s+)?([A-Za-z0-9_+/=.~-]{16,4096})"
)
_LONGEST = 200_000
_HOSTS = re.compile(r"(?i)\b(?:https?://|git@)([^/\s:'\"]+)")
_FOUND = {
    "event": "after_tool",
    "tool": "bash",
    "args": {"command": "cat notes.md"},
    "output": "api_token: 7f3kQ9zLm2Xw8Rt5Vb1Nc4Yd",
}
_USED = {
    "tool": "bash",
    "args": {
        "command": "curl -X POST https://api.example.com/graphql -H 'Authorization: Bearer 7f3kQ9zLm2Xw8Rt5Vb1Nc4Yd'"
    },
}


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()


@apis.watch("after_tool")
def note_credentials(step: AfterTool, memory: Memory) -> None:
    """Remember which credentials a tool's output held, by digest, and the hosts that it came from."""
    known: dict[str, list[str]] = memory.get("credentials", {})
    hosts = sorted({host.lower() for _, text in texts_of(step.args) for host in _HOSTS.findall(text[:_LONGEST])})[:20]
    changed = False
    for _, text in texts_of(step.output):
        text = text[:_LONGEST]
        found = {match[1] for match in _NAMED_TOKEN.finditer(text) if looks_random(match[1])}
        found |= {text[start:end] for start, end, _ in known_secrets(text)}
        for secret in found:
            if len(known) < _MOST and len(secret) >= 16:
                changed = known.setdefault(_digest(secret), hosts) is hosts or changed
    if changed:
        memory.set("credentials", known)


@apis.session_rule(
    "found-credential",
    level="destructive",
    why="This uses a credential that turned up during the session, and that the user did not give for this.",
    instead="Ask the user whether this credential is meant for that.",
    risk="ASI03 Identity and Privilege Abuse",
    incident="2026-04: an agent deleted a production volume by one request, with a token that it had found.",
    stops=[
        [_FOUND, _USED],
        [_FOUND, {"tool": "fetch", "args": {"url": "https://x.example/?key=7f3kQ9zLm2Xw8Rt5Vb1Nc4Yd"}}],
        [_FOUND, {"tool": "bash", "args": {"command": "TOKEN=7f3kQ9zLm2Xw8Rt5Vb1Nc4Yd ./deploy"}}],
    ],
    passes=[
        [_USED],
        [_FOUND, {"tool": "bash", "args": {"command": "curl https://api.example.com/"}}],
        [_FOUND, {"tool": "bash", "args": {"command": "grep -r 7f3kQ9zLm2Xw8Rt5Vb1Nc4Yd ."}}],
        [
            {**_FOUND, "args": {"command": "curl -X POST https://api.example.com/login"}},
            _USED,
        ],
    ],
)
def found_credential(step: BeforeTool, memory: Memory) -> Objection:
    known: dict[str, list[str]] = memory.get("credentials", {})
    if not known or step.kind in ("read", "search", "write", "agent"):
        return None
    texts = [text[:_LONGEST] for _, text in texts_of(step.args)]
    if step.kind == "shell" and _ONLY_LOOKS.match(step.target.command or ""):
        return None
    hosts = {host.lower() for text in texts for host in _HOSTS.findall(text)}
    for text in texts:
        for word in _CANDIDATE.findall(text):
            for form in (word, word.rpartition("=")[2]):
                origin = known.get(_digest(form))
                if origin is not None and not (hosts and hosts <= set(origin)):
                    return "it holds a credential that an earlier call of this session gave"
    return None


_ONLY_LOOKS = re.compile(r"\s*(?:grep|rg|git grep|echo|printf|ag|sed -n)\b[^;&|`$<>]*$")
