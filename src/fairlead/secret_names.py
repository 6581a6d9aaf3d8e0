"""What is given to a secret's name: `password = "..."`, `API_TOKEN=...`, `--secret ...`, `"passwd": "..."`.

Names are easy to find; the work is in telling a value from code that computes one (`token = next_token()`),
from a type (`token: str`) and from prose. Where that is in doubt, a value that is written out is a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from .secret_shapes import FILLED_IN, Span

# --- names -------------------------------------------------------------------------------------------

WORDS = ("pass", "pwd", "secret", "token", "cred", "key", "auth", "cookie")
"""One of these is in every secret's name."""

_OF_A_KEY = (
    "api|access|secret|private|auth|client|session|encryption|encrypt|decryption|signing|sign|master|account|storage"
    "|shared|webhook|hmac|aes|ssh|deploy|jwt|cipher|admin|app|service|license|root"
)
_SECRET = re.compile(
    r"(?:.*(?:password|passwd|passphrase|passcode|secret|token|credentials?)"
    rf"|.*(?:{_OF_A_KEY})_?(?:access_?)?key|(?:.*_)?(?:pass|pwd|passw|pword|creds|auth|cookie|client_key_data)"
    r"|.*(?:authorization|cookies?|pgpass))"
    r"(?:_?(?:\d{1,3}|old|new|prod|dev|staging|live|base|value|plain|b64|base64|string))?"
)
_NO_SECRET = re.compile(
    r"(?:.*_)?(?:next|page|eos|bos|pad|unk|sep|cls|mask|stop|end|start|special|continuation|cancel|cancellation|sync"
    r"|resume|max|min|num|last|current|prev|previous|first|per|parse)_(?:token|key|auth|pass)"
    r"|(?:no|has|is|use|require|requires|with|allow|ask|need|needs)_\w*|.*auth\d+"
)
_WEAK = re.compile(r"(?:.*_)?(?:auth|cookies?)")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_JOINT = re.compile(r"[-.\s]+")


def plain_name(name: str) -> str:
    """A name in one spelling: `clientSecret`, `Client-Secret` and `CLIENT_SECRET` are the same."""
    return _JOINT.sub("_", _HUMP.sub("_", name)).lower().strip("_")


@lru_cache(2048)
def is_secret_name(name: str) -> bool:
    """Whether what goes by this name is a secret."""
    if len(name) > 128:
        return False
    plain = plain_name(name)
    return _SECRET.fullmatch(plain) is not None and _NO_SECRET.fullmatch(plain) is None


# --- values ------------------------------------------------------------------------------------------

_FILLED_IN = re.compile(
    rf"(?:[a-z]{{1,8}}[-_:/ ])?{FILLED_IN}(?:[-_:/.@]?{FILLED_IN})*+[\w.:/)}}-]{{0,3}}", re.IGNORECASE
)
_NO_VALUES = """
    str bytes int float bool dict list tuple set object string number boolean any none null nil true false yes no on
    off undefined optional required secret password token text binary varchar char self cls void auto default empty
    unset secretstr bytearray callable sensitive hidden masked redacted removed omitted invalid missing disabled enabled
    sha256 sha512 base64 utf8 utf16 md5 sha1 int32 int64 uint8 uint32 uint64 float32 float64 ed25519 rs256 hs256 es256
    oauth2 bearer basic jwt prompt stdin file env vault keyring keychain plain plaintext include same-origin omit
"""
_TYPE_WORDS = frozenset(_NO_VALUES.split())
_MESSAGE = re.compile(
    r"[A-Z]\S*(?: [^A-Z\s]\S*){2,}|.* .*[.:?]|\W*\w+:\s*|.*\\[wsdS][+*].*|[\w ]*%[sdr]\b.*|.*\][+*{].*|\s+--?\w.*"
)
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:\.\d+)?|0[xob]\w+|\d+\.\d+|\d+e\d+)")
_PATH = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:|file:)?(?:[/\\][\w.@~%-]{0,40})+\*?|[a-z][a-z_.-]{0,40}(?:/[a-z_.*-]{1,40})+"
)
_CODE_NAME = r"[A-Za-z_]+(?:\d{1,2}[A-Za-z_]*)?"
_CODE = re.compile(
    r"[A-Za-z_][\w.]*[(\[{].*|[\[({].*"  # a call, an index, a list
    rf"|{_CODE_NAME}(?:(?:\.|\?\.|->|::){_CODE_NAME})+[?!]?"  # an attribute
    r"|\d{1,3}[-+*/%][A-Za-z_]+|[A-Za-z_]+(?:==|!=|\+=|[-+*/%=])[A-Za-z_.:(\[>-]*\d?"  # a calculation
    r"|[-=+*/%!<>|&:.,?~^@#]+|&(?:mut\s)?[A-Za-z_]+|[@!][A-Za-z_]+"  # an operator, a reference
    r"|[A-Za-z_]+[.!?:…]*|[A-Za-z]+'[a-z]+|[a-z]+_[a-z_]+\d?",  # a name, a word
    re.DOTALL,
)
_PATTERN = re.compile(r"`|\\[swdSW.]|\(?\.[*+]|\[\^")
_PROSE = frozenset({
    "option", "options", "flag", "argument", "parameter", "is", "to", "and", "or", "for", "the", "from", "with", "if",
    "in", "was", "must", "can", "may", "should", "when", "as", "of", "instead", "here", "there", "then", "that", "this",
})  # fmt: skip
_MOUNTED = re.compile(r"(?:id|src|source|type|target|env)=")
_BRACES = re.compile(r"\{[^{}]*\}")
_COUNTED = re.compile(r"[A-Za-z_]{1,24}?_?\d{1,2}")
_ADDRESS = re.compile(r"[a-z]+://[^\s:@]*")
_MIXED = re.compile(r"(?=.*\d)(?=.*[A-Za-z])\S{6,}", re.DOTALL)
_LETTERS = re.compile(r"[A-Za-z][A-Za-z_-]*")


def stands_for_a_secret(value: str) -> bool:
    """Whether this only holds the place of a secret: a variable, a template, stars."""
    return _FILLED_IN.fullmatch(value[:300]) is not None


def _is_path(value: str) -> bool:
    """Whether it is a path. A secret key of AWS may look like one, but has 40 letters of every kind."""
    return _PATH.fullmatch(value) is not None and not (len(value) == 40 and any(map(str.isdigit, value)))


class _Given(NamedTuple):
    """A value, and how it is given to a secret's name."""

    name: str
    value: str
    how: str
    before: str
    after: str
    first: bool
    last: bool

    @property
    def is_shell(self) -> bool:
        """As in a shell, an environment, an address or a connection string, where nothing but a value can stand."""
        return self.how == "=" and (self.before in ("?", "&", ";") or self.name.upper() == self.name)


def _is_literal(given: _Given) -> bool:
    """Whether a value without quotes is written out, or is code, a type or prose."""
    value = given.value
    if len(value) < 4 or _is_no_value(value) or "://" in value:
        return False
    if given.how == " ":
        metavar = value.isupper() and _LETTERS.fullmatch(value)
        return not metavar and value not in _PROSE and value[0] not in "-<>|&;(" and not _MOUNTED.match(value)
    if given.is_shell:
        return value[:2] not in ("((", "[[") and plain_name(value) != plain_name(given.name)
    if value.isdigit():
        return len(value) >= 8 or "pass" in given.name.lower() or "pwd" in given.name.lower()
    if _CODE.fullmatch(value):
        return _is_setting(given)
    return not (_COUNTED.fullmatch(value) and _names_a_secret(value.rstrip("0123456789_")))


def _is_no_value(value: str) -> bool:
    """Whether this is a type, a variable, a pattern, a number or a path, wherever it stands."""
    if value.strip().lower() in _TYPE_WORDS or stands_for_a_secret(value) or _is_path(value):
        return True
    return bool(_PATTERN.match(value) or _NUMBER.fullmatch(value))


def _is_setting(given: _Given) -> bool:
    """Whether a word is a value in a file of settings: alone on its line with its name, or a whole header."""
    if not _LETTERS.fullmatch(given.value) or _names_a_secret(given.value) or given.how not in ("=", ":", ": ", " = "):
        return False
    if given.before in ("'", '"') and given.after in ("'", '"'):
        return True
    if given.how == " = " and given.before not in ("", "\n"):
        return False  # in files of settings, nothing stands before a name
    return given.first and given.last and given.value.islower() and "_" not in given.value


def _names_a_secret(value: str) -> bool:
    return is_secret_name(value) or value.lower() in ("tok", "pw", "key", "arg", "val", "value", "data", "line", "name")


def _is_quoted_literal(given: _Given) -> bool:
    """Whether what stands in quotes is a value, or a name, a message or a template."""
    value = given.value
    if len(value) < 4 or _is_no_value(value):
        return False
    if given.how in ("==", ",", "("):
        return _MIXED.fullmatch(value[:200]) is not None
    if _LETTERS.fullmatch(value) and _names_a_secret(value):
        return False
    return not (_MESSAGE.fullmatch(value[:300]) or _ADDRESS.fullmatch(value))


# --- finding them --------------------------------------------------------------------------------------

_QUOTE = r"\\{0,7}[\"']"
_GIVEN = re.compile(
    rf"(?P<rest>[\w-]{{0,40}}+)(?P<close>{_QUOTE})?\]?"
    rf"(?:(?P<typed>\s?:\s{{0,2}}[A-Za-z][\w.\[\], |]{{0,40}}?(?:\s=\s|=(?={_QUOTE})))"
    rf"|\s{{0,8}},?(?:\s|\\{{1,7}}[nrt]){{0,12}}(?:{_QUOTE})?(?P<pair>[vV]alue)(?:{_QUOTE})?\s{{0,4}}[:=]\s{{0,4}}"
    rf"|(?(close)(?P<json>\s{{0,8}}:\s{{0,40}})(?={_QUOTE})|(?!))"
    r"|(?P<gap>[ \t]{0,8})(?P<op>=>|:=|[=!]={1,2}|\+?=|:)(?P<space>[ \t]{0,8})(?:[|>][+-]?[ \t]{0,4}\n[ \t]{1,16})?"
    rf"|(?P<tag>>)|(?P<call>\()(?={_QUOTE})|(?P<comma>,\s{{0,8}})(?=[bru]?{_QUOTE})|(?P<flag>[ \t]{{1,4}}))"
)
_CLOSED = re.compile(r"\s*(?:[+%.]\s|[,)](?:\s|$)|\.format)")
_OPENED = re.compile(rf"[bBrRuUfF]{{0,2}}(?P<quote>\"\"\"|'''|{_QUOTE})")
_LOOKED_AT = 160
_BARE = re.compile(rf"(?:\\(?![nrt\"'])|[^\s\"'`;&|<>\\]|(?<==)[&|<>](?=\w)){{1,{_LOOKED_AT}}}+")
_BARE_REST = re.compile(r"[^\s\"'`;&|<>\\]*+")
_CUT = re.compile(r"[,)}\]](?=$|[,)}\];:.]|[\w.-]{1,40}[=:])")
_NAME_BEFORE = re.compile(r"[\w-]*")
_MORE = re.compile(r"[ \t]*(?:[#}),\]\r\n\\;]|$)")


def given_secrets(
    text: str, lowered: str, words: tuple[str, ...] = WORDS, is_secret: Callable[[str], bool] = is_secret_name
) -> Iterator[Span]:
    """The secrets in a text that are known by the name they are given to."""
    for word in words:
        at = lowered.find(word)
        while at >= 0:
            end = at + len(word)
            match = _GIVEN.match(text, end)
            if match and (found := _given(text, at, match, is_secret)):
                yield found
                end = max(end, found[1])
            at = lowered.find(word, end)


def _given(text: str, at: int, match: re.Match[str], is_secret: Callable[[str], bool]) -> Span | None:
    """The secret that is given to the name around `at`, if it is a name and a secret."""
    left = _NAME_BEFORE.match(text[max(0, at - 64) : at][::-1])
    start = at - (left.end() if left else 0)
    name = text[start : match.end("rest")]
    how = _how(match, text, start)
    if not how or not is_secret(name.strip("-")) or (name[0] == "-") < (how == " "):
        return None
    if opened := _OPENED.match(text, match.end()):
        if not match["close"] and (opened["quote"] == text[start - 1 : start] or _CLOSED.match(text, opened.end())):
            return None  # "Password: " + password
        return _quoted(text, name, how, opened)
    return None if how in ("==", ",", "(") else _unquoted(text, name, how, start, match.end())


def _how(match: re.Match[str], text: str, start: int) -> str:
    """How a value is given, in a word: `=` in a shell, ` = ` in code, ` ` to an option, ..."""
    if match["flag"]:
        return " "
    if match["tag"]:
        return ">" if text[start - 1 : start] == "<" else ""
    if match["op"]:
        if match["op"] in ("==", "===", "!=", "!=="):
            return "=="
        return f" {match['op']} " if match["gap"] else match["op"] + (" " if match["space"] else "")
    if match["call"] or match["comma"]:
        return "(" if match["call"] else "," if match["close"] else ""
    return ": "


def _quoted(text: str, name: str, how: str, opened: re.Match[str]) -> Span | None:
    quote, start = opened["quote"], opened.end()
    end = _closing(text, quote, start)
    given = _Given(name, text[start:end], how, "", "", False, False)
    if opened[0][0] in "fF" and "{" in given.value and not _MIXED.fullmatch(_BRACES.sub("", given.value[:200])):
        return None
    if _WEAK.fullmatch(plain_name(name)) and not _MIXED.fullmatch(given.value[:200]):
        return None
    return (start, end, "secret") if _is_quoted_literal(given) else None


def _closing(text: str, quote: str, start: int) -> int:
    """Where a quoted value ends: at its quote, or with its line if it was cut off."""
    end = text.find(quote, start)
    while end > 0 and text[end - 1] == "\\":
        end = text.find(quote, end + 1)
    end = len(text) if end < 0 else end
    line = -1 if quote in ('"""', "'''") else text.find("\n", start, end)
    return end if line < 0 else line


def _unquoted(text: str, name: str, how: str, start: int, at: int) -> Span | None:
    if text[start - 2 : start] == "${":  # ${TOKEN:-a default}, ${TOKEN:?an error}
        if text[at : at + 1] == "?":
            return None
        at += text[at : at + 1] == "-"
    bare = _BARE.match(text, at)
    if bare is None:
        return None
    value, end = bare.group(), bare.end()
    before = text[start - 1 : start]
    if cut := _CUT.search(value):
        whole = _Given(name, value, how, before, "", False, False)
        if not whole.is_shell or before in ("(", "[", "{", ",", "?", "&"):
            if _CODE.fullmatch(value) and not _LETTERS.fullmatch(value[: cut.start()]):
                return None
            value, end = value[: cut.start()], at + cut.start()
    line = text[max(0, start - 40) : start].rpartition("\n")[2].strip(" \t-")
    given = _Given(
        name, value, how, before, text[end : end + 1], line in ("", "export", "set", "ENV", "- "),
        _MORE.match(text, end) is not None,
    )  # fmt: skip
    if _WEAK.fullmatch(plain_name(name)) and not _MIXED.fullmatch(value):
        return None
    if not _is_literal(given):
        return None
    if end == at + _LOOKED_AT and (rest := _BARE_REST.match(text, end)):
        end = rest.end()
    return at, end, "secret"
