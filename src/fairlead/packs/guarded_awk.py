"""What a script of awk writes or runs that stands nowhere in it: `print > FILENAME`, `system("rm " $1)`."""

from __future__ import annotations

import re

from ..shell import read

_TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*")|(?P<skip>(?:[ \t\r]|\\\r?\n|\#[^\n]*)+)|(?P<word>[A-Za-z_]\w*|\d[\w.]*)
    |>>|\|\||&&|\|&|[<>=!]=|.""",
    re.VERBOSE | re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:[^\]\\\n]|\\.)*\])*/")
_TAKES_REGEX = frozenset({
    "", "print", "printf", "return", "in", "(", ",", "{", "}", ";", "\n", "!", "~", "&&", "||", "?", ":", "=",
})  # fmt: skip
"""After these a slash begins an expression. After a word or a text it divides."""
_ENDS = frozenset({";", "}", "\n", ""})
_SORTS = frozenset({"sort", "uniq", "head", "tail", "wc", "cat", "column", "cut", "tr", "grep"})
"""What scripts of awk often print to. Where these write a file, they are judged like any command."""
_LONGEST = 4096


def writes_unknown(script: str) -> bool:
    """May a script write a file, or run a line, that it does not name in a text of its own?"""
    if len(script) > _LONGEST:
        return True
    tokens = _tokens(script)
    if tokens is None:
        return True
    depth, printing = 0, -1  # how deep in brackets the statement stands that prints
    for at, sign in enumerate(tokens):
        depth += (sign in ("(", "[")) - (sign in (")", "]"))
        if sign in ("print", "printf"):
            printing = depth
        elif sign in _ENDS:
            printing = -1
        elif sign == "@":
            return True
        elif sign == "system":
            if tokens[at + 1] != "(" or not _is_text(tokens[at + 2]) or tokens[at + 3] != ")":
                return True
        elif sign in (">", ">>"):
            if printing == depth and not (_is_text(tokens[at + 1]) and tokens[at + 2] in _ENDS):
                return True
        elif sign in ("|", "|&") and not _is_harmless(tokens, at):
            return True
    return False


def _is_text(token: str) -> bool:
    return token[:1] == '"'


def _tokens(script: str) -> list[str] | None:
    """The tokens of a script, with a few empty ones behind. None if a slash may divide or begin an expression."""
    tokens: list[str] = []
    at, last = 0, ""
    while at < len(script):
        if script[at] == "/" and last in _TAKES_REGEX:
            found = _REGEX.match(script, at)
            if found is None:
                return None
            at, last = found.end(), "0"
            tokens.append(last)
            continue
        found = _TOKEN.match(script, at)
        if found is None or found[0] == '"' or (found[0] == "/" and last in (")", "]")):
            return None
        at = found.end()
        if found["skip"] is None:
            last = found[0]
            tokens.append(last)
    return [*tokens, "", "", "", ""]


def _is_harmless(tokens: list[str], at: int) -> bool:
    """Does a pipe at this place lead to or from a command that the script names, and that only reads?"""
    if tokens[at + 1] == "getline":
        before = tokens[at - 2] if at > 1 else ""
        return _is_text(tokens[at - 1]) and before in (*_ENDS, "(", "{", "=", "!", "&&", "||")
    if not _is_text(tokens[at + 1]) or tokens[at + 2] not in _ENDS:
        return False
    return all(one.program in _SORTS and one.sure for one in read(tokens[at + 1][1:-1]).commands)
