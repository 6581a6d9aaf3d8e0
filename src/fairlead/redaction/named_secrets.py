"""Finds values of secrets by name: `password = "..."`, `API_TOKEN=...`, `--secret ...`, `"passwd": "..."`.

`names.py` says which names are those of secrets, and `named_values.py` whether a value is one.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .named_values import (
    CODE,
    LETTERS,
    LIKE_A_PATTERN,
    MIXED,
    TYPE_WORDS,
    NamedValue,
    is_literal,
    is_quoted_literal,
    is_secret_value,
    stands_for_a_secret,
)
from .names import WORDS, is_secret_name, may_be_secret_name
from .shapes import BARE, FILLED_IN, OPERATOR, Span, looks_random

_QUOTE = r"\\{0,7}[\"']"
_ASSIGNMENT = re.compile(
    rf"(?P<rest>(?:[\w-]{{0,39}}(?![\w-])|[\w-]{{40}})(?: \d{{1,2}}(?=:))?)(?:(?P<close>{_QUOTE})[\])]?|\[\w{{0,8}}\])?"
    rf"(?:(?P<typed>\s?:\s{{0,2}}&?[A-Za-z'][\w.\[\], |&'<>?]{{0,40}}?(?:\s=\s|=(?={_QUOTE}))"
    rf"|\s[a-z][\w.]{{0,20}}\s=\s(?={_QUOTE}))"
    rf"|\s{{0,8}},?(?:\s|\\{{1,7}}[nrt]){{0,12}}(?:{_QUOTE})?(?P<pair>[vV]alue|content)(?:{_QUOTE})?\s{{0,4}}[:=]\s{{0,4}}"
    r"|(?P<hcl>\s{0,4}\{\s{0,12}(?:(?:type|description|sensitive)\s{0,8}=[^\n]{1,80}\n\s{0,8}){0,3}default\s{0,8}=\s{0,8})"
    rf"|(?(close)(?P<json>\s{{0,8}}:\s{{0,40}})(?={_QUOTE})|(?!))"
    r"|(?P<below>:[ \t]{0,4}\r?\n[ \t]{1,16})(?=\S{6,160}[ \t]{0,8}(?:\r?\n|\Z))"
    r"|(?P<cell>[ \t]{1,24}\|[ \t]{1,24}(?=[^\s|]{4,160}[ \t]{1,24}\|)|\|(?=[^\s|()\"']{6,160}(?:\||\r?\n|\Z)))"
    r"|(?P<gap>[ \t]{0,24})(?P<op>=>|:=|[=!]={1,2}|\+?=|\?\??=|\|\|=|<<?-|:)(?P<space>[ \t]{0,40})"
    r"(?P<block>[|>][+-]?[ \t]{0,4}\n[ \t]{1,16})?"
    r"|(?P<plist></(?:key|name)>\s{0,12}<(?:string|value)>)"
    rf"|(?P<tag>>)|(?P<call>\()(?={_QUOTE})|(?P<comma>,\s{{0,8}})(?=[bru]?{_QUOTE})"
    rf"|(?P<other>\s{{1,3}}(?:\|\||\?\?|or)\s{{1,3}}(?={_QUOTE}))"
    r"|(?P<prose>[ \t](?:is|was):?[ \t])|(?P<body>[ \t]{1,4}(?:--(?:type|tier|key-id|region)[ =][\w/:-]{1,40}[ \t]{1,4}"
    r"|--overwrite[ \t]{1,4}){0,3}(?:--body|--value|-b)[ =])|(?P<flag>[ \t]{1,4}))"
)
_BRACES = re.compile(r"\{[^{}]*\}")
_CLOSED = re.compile(r"\s*(?:[+%.]\s|[,)](?:\s|$)|\.format)")
_OPENED = re.compile(rf"[bBrRuUfF]{{0,2}}(?P<quote>\"\"\"|\'\'\'|{_QUOTE})")
_TEMPLATE = re.compile(r"`((?:[^`\s;<>()\"'\\$]|\$(?![({])){8,200})`")
_ELEMENT = re.compile(r"(?:[^\s<>()`;$\"']|\$(?!\()|&\w{1,8};){4,160}(?=</)")
_LOOKED_AT, _JUDGED, _LONGEST = 160, 300, 1 << 14
_BARE = re.compile(rf"(?:{BARE}|\({BARE}{{0,80}}\)){{1,{_LOOKED_AT}}}")
_BARE_REST = re.compile(rf"{BARE}*")
_CUT = re.compile(r"[,)}\]](?=$|[,)}\];:.]|/[/*]|[\w.-]{1,40}[=:])")
_NAME_BEFORE = re.compile(r"[\w-]*")
_NO_NAME = ("", " ", '"', "'", "\n", ".", "(")  # what stands before most names
_WORD_BEFORE = re.compile(r"[A-Za-z]{2,20} \Z")
_ATTRIBUTE = re.compile(r"(?:name|key|id)=[\"']\Z")
_SETTER = re.compile(r"(?:with|use|set|add)_?(?=[A-Z])")
_SETTING = """
    define #define def setq defvar defparameter set setx setenv export env arg declare local let my fastcgi_param
    proxy_set_header add_header config:set
"""
_VERBS = frozenset(_SETTING.split())
_PUTS = re.compile(r"\b(?:put|set[A-Za-z]{0,12}|setenv)\([\"']\Z")
_ENVIRONMENT = re.compile(r"(?:\bgit config(?: --\w+){0,2} (?!user\.)[\w.-]{1,40}\.|\bSet-(?:Item|Content) [Ee]nv:)\Z")
_CALLED = re.compile(r"[A-Za-z_][\w.]*")
_MORE = re.compile(r"[ \t]*(?:[#}),\]\r\n\\;]|$)")
_OPERATOR = re.compile(OPERATOR)
_SUBSTITUTION = re.compile(r"`[^`]{0,400}`|\$\([^)]{0,400}\)")
_SPACE = re.compile(r"\s")
_TEXT_IN_QUOTES = re.compile(r"\\.|\"[^\"\n]*\"?|'[^'\n]*'?")
_CROWD, _CROWDED = 64, 1536
"""How many names there are within so many characters where they are crowded."""
_CROWDED_VALUE = re.compile(rf"(?:{_QUOTE})?(?!{FILLED_IN})({BARE}{{4,{_LOOKED_AT}}})")


def named_secrets(
    text: str, lowered: str, words: tuple[str, ...] = WORDS, is_secret: Callable[[str], bool] = is_secret_name
) -> Iterator[Span]:
    """The secrets in a text that are known by the name they are given to.

    Where names are as crowded as only a text has them that is made to keep its reader busy, each word that is given to
    a secret's name is taken for a secret. To judge it would take longer than the rest of the text.
    """
    quotes, named, found_to = _Quotes(text), 0, dict.fromkeys(words, 0)
    tried: deque[int] = deque([-_CROWDED] * _CROWD, _CROWD)
    for at, word in _hits(lowered, words):
        if at < named or at < found_to[word]:  # a name with two of the words in it is tried once
            continue
        match = _ASSIGNMENT.match(text, at + len(word))
        if match is None:
            continue
        named = match.end("rest")
        if (candidate := _named(text, at, match, is_secret)) is None:
            continue
        tried.append(at)
        if at - tried[0] < _CROWDED:
            if candidate.sure and (value := _CROWDED_VALUE.match(text, match.end())) and value[1] not in TYPE_WORDS:
                yield *value.span(1), "secret"
                named = value.end()
        elif found := _value_of(text, candidate, match, quotes):
            yield found
            found_to[word] = found[1]


def _hits(lowered: str, words: tuple[str, ...]) -> list[tuple[int, str]]:
    """Where these words are, in order."""
    hits: list[tuple[int, str]] = []
    for word in words:
        at = lowered.find(word)
        while at >= 0:
            if word != "pat" or not lowered[at + 3 : at + 4].isalpha():
                hits.append((at, word))
            at = lowered.find(word, at + len(word))
    hits.sort()
    return hits


class _Name(NamedTuple):
    """A name that a value is given to: where it starts, how that is done, and whether it is surely a secret's."""

    name: str
    start: int
    how: str
    sure: bool


def _named(text: str, at: int, match: re.Match[str], is_secret: Callable[[str], bool]) -> _Name | None:
    """The name around `at`, if it may be a secret's and is given a value."""
    left = _NAME_BEFORE.match(text[max(0, at - 64) : at][::-1]) if text[at - 1 : at] not in _NO_NAME else None
    start = at - (left.end() if left else 0)
    how = _how(match, text, start)
    if not how:
        return None
    name = text[start : match.end("rest")]
    if match["call"]:
        name = _SETTER.sub("", name)
    if name in ("key", "Key", "KEY") and (word := _WORD_BEFORE.search(text[max(0, start - 24) : start])):
        name = word[0] + name  # API key: ...
    sure = is_secret(name.strip("-"))
    return _Name(name, start, how, sure) if sure or may_be_secret_name(name) else None


def _value_of(text: str, candidate: _Name, match: re.Match[str], quotes: _Quotes) -> Span | None:
    """The secret that is given to a name, if it is one."""
    if opener := _OPENED.match(text, match.end()):
        before = text[candidate.start - 1 : candidate.start]
        if not match["close"] and (opener["quote"] == before or _CLOSED.match(text, opener.end())):
            return None  # "Password: " + password
        return _quoted(text, candidate, opener, quotes)
    if template := _TEMPLATE.match(text, match.end()):
        return _in_a_template(candidate, template)
    return None if candidate.how in ("==", ",", "put", "(", "or") else _unquoted(text, candidate, match.end())


def _how(match: re.Match[str], text: str, start: int) -> str:
    """How a value is given, in a word: `=` in a shell, ` = ` in code, ` ` to an option, ..."""
    if match["below"] or match["cell"]:
        return _how_beside(match, text, start)
    if match["flag"]:
        if text[start] == "-":
            return " "
        before = text[max(0, start - 48) : start].rpartition("\n")[2]
        if _ENVIRONMENT.search(before):
            return "verb"
        words = [word for word in before.split() if word[0] != "-"]
        if words == ["ENV"]:
            return "ENV"
        if words and words[-1].lower().lstrip("($") in _VERBS and before[-1].isspace():
            return "verb"
        return "gap" if _starts_line(text, start) else ""
    if match["tag"]:
        attribute = match["close"] and _ATTRIBUTE.search(text[max(0, start - 8) : start])
        return ">" if attribute or text[start - 1 : start] == "<" else ""
    if match["op"]:
        if match["op"] in ("==", "===", "!=", "!=="):
            return "=="
        if match["op"] == ":" and text[match.end("op") : match.end("op") + 1] == ":":
            return ""  # a::b
        if match["block"]:
            return "block"
        return f" {match['op']} " if match["gap"] else match["op"] + (" " if match["space"] else "")
    if match["call"] or match["comma"]:
        if match["close"] and _PUTS.search(text[max(0, start - 24) : start]):
            return "put"
        return "(" if match["call"] else "," if match["close"] else ""
    if match["other"] or match["prose"]:
        return "or" if match["other"] else "is"
    if match["json"] and match["close"] == '"' and text[start - 1 : start] == '"':
        return "json"
    return ">" if match["plist"] else " " if match["body"] else ": "


def _how_beside(match: re.Match[str], text: str, start: int) -> str:
    """How a value is given that stands in the next cell of a table, or alone on the next line and further in."""
    line = text[max(0, start - 80) : start].rpartition("\n")[2]
    if match["cell"]:
        begins_row = match["cell"] == "|" and not line.strip()
        return "cell" if begins_row or line.rstrip(" \t*`").endswith("|") else ""
    indent = match["below"].rpartition("\n")[2]
    return "below" if not line.strip(" \t-") and len(indent) > len(line) else ""


def _starts_line(text: str, start: int) -> bool:
    return text[max(0, start - 40) : start].rpartition("\n")[2].strip(" \t-") in ("", "export", "set", "ENV", "- ")


def _quoted(text: str, to: _Name, opener: re.Match[str], quotes: _Quotes) -> Span | None:
    quote, start = opener["quote"], opener.end()
    if quote in ('"""', "'''") and text[start : start + 1] == "\n":
        start += 1
    end, whole = _closing(text, opener, start, quotes, to.how == "json")
    candidate = NamedValue(to.name, text[start : min(end, start + _JUDGED)], to.how, to.sure)
    if end < whole and LIKE_A_PATTERN.search(text, start, min(whole, start + _JUDGED)):
        return None
    if opener[0][0] in "fF" and "{" in candidate.value and not MIXED.fullmatch(_BRACES.sub("", candidate.value[:200])):
        return None
    return (start, end, "secret") if is_secret_value(candidate, is_quoted_literal) else None


def _closing(text: str, opener: re.Match[str], start: int, quotes: _Quotes, is_json: bool = False) -> tuple[int, int]:
    """Where a quoted value ends, at its quote, with its line, or before a command; and where its quotes end.

    A shell runs what is substituted in double quotes, if the substitution ends there. JSON has none. An operator that
    comes with spaces, or after quotes that close others on the same line, may be a command between two quoted texts.
    """
    quote, limit = opener["quote"], start + _LONGEST
    end = text.find(quote, start, limit)
    while end > 0 and text[end - 1] == "\\":
        end = text.find(quote, end + 1, limit)
    closed = end >= 0
    end = min(len(text), limit) if end < 0 else end
    line = text.find("\n", start, end)
    closed, whole = closed and line < 0, end if line < 0 else line
    operator = _OPERATOR.search(text, start, whole)
    if operator and closed and not _SPACE.search(text, start, whole) and not quotes.is_open(opener.start("quote")):
        operator = _SUBSTITUTION.search(text, start, whole) if quote[-1] == '"' and not is_json else None
    end = operator.start() if operator else whole
    while end > start and text[end - 1].isspace():
        end -= 1
    return end, whole


def _in_a_template(to: _Name, template: re.Match[str]) -> Span | None:
    """What stands in backticks, as in JavaScript. A shell would run it, so it must be nothing that runs."""
    value = template[1]
    candidate = NamedValue(to.name, value, to.how, to.sure)
    if not MIXED.fullmatch(value) or (to.how == "=" and (not looks_random(value) or _OPERATOR.search(value))):
        return None
    return (*template.span(1), "secret") if is_secret_value(candidate, is_quoted_literal) else None


class _Quotes:
    """Where quotes are open in a text. Each line is read once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._line = (0, -1)
        self._opens: list[int] = []
        self._closes: list[int] = []

    def is_open(self, at: int) -> bool:
        """Whether a place is within quotes on its line, so that a quote there is none, or closes them."""
        if not self._line[0] <= at <= self._line[1]:
            self._read(at)
        last = bisect_left(self._opens, at) - 1
        return last >= 0 and at < self._closes[last]

    def _read(self, at: int) -> None:
        start, end = self._text.rfind("\n", 0, at) + 1, self._text.find("\n", at)
        self._line = start, len(self._text) if end < 0 else end
        self._opens.clear()
        self._closes.clear()
        for found in _TEXT_IN_QUOTES.finditer(self._text, *self._line):
            if (quoted := found[0])[0] != "\\":
                is_closed = len(quoted) > 1 and quoted[-1] == quoted[0]
                self._opens.append(found.start())
                self._closes.append(found.end() if is_closed else len(self._text) + 1)


def _past_backtick(text: str, end: int) -> int:
    """Where a value ends that has the only backtick of its text in it, which then substitutes nothing.

    A substitution may begin or end on any other line. Both searches stop at the next backtick, so many take no longer.
    """
    if text.find("`", end + 1) >= 0 or text.rfind("`", 0, end) >= 0:
        return end
    more = _BARE.match(text, end + 1)
    return more.end() if more else end


def _unquoted(text: str, to: _Name, at: int) -> Span | None:
    name, start, how, sure = to
    if text[start - 2 : start] == "${":  # ${TOKEN:-a default}, ${TOKEN:?an error}
        if text[at : at + 1] == "?":
            return None
        at += text[at : at + 1] == "-"
    bare = (_ELEMENT.match(text, at) if how == ">" else None) or _BARE.match(text, at)
    if bare is None:
        return None
    value, end = bare.group(), bare.end()
    if text[end : end + 1] == "`":
        end = _past_backtick(text, end)
        value = text[at:end]
    before = text[start - 1 : start]
    if how == ">" and (text[end : end + 2] not in ("</", "") or value[0] in ".@:/"):
        return None  # <token>.command is no element
    if text[end : end + 1] in ("(", "[") and _CALLED.fullmatch(value):
        return None
    if stands_for_a_secret(value.rstrip(",")):
        return None
    if cut := _CUT.search(value):
        whole = NamedValue(name, value, how, sure, before)
        if not whole.is_shell or before in ("(", "[", "{", ",", "?", "&"):
            if CODE.fullmatch(value) and not LETTERS.fullmatch(value[: cut.start()]):
                return None
            value, end = value[: cut.start()], at + cut.start()
    last = _MORE.match(text, end) is not None
    candidate = NamedValue(name, value, how, sure, before, text[end : end + 1], _starts_line(text, start), last)
    if not is_secret_value(candidate, is_literal):
        return None
    if end == at + _LOOKED_AT and (rest := _BARE_REST.match(text, end)):
        end = rest.end()
    return at, end, "secret"
