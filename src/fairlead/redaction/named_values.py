"""Whether a value is a secret that has a secret's name.

A value has to be told from code that computes one (`token = next_token()`), from a type (`token: str`) and from prose.
Where that is in doubt, a value that is written out is a secret.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from .names import SECRET_WORDS, is_secret_name, may_be_secret_name, plain_name
from .shapes import FILLED_IN, atomic, looks_random

_WEAK_NAME = re.compile(r"(?:.*_)?(?:auth|cookies?)")
_FILLED_IN = re.compile(
    rf"(?:[a-z]{{1,8}}[-_:/ ])?{FILLED_IN}{atomic('more', f'(?:[-_:/.@]?{FILLED_IN})*')}[\w.:/)}}-]{{0,3}}|:?\*{{3,}}",
    re.IGNORECASE,
)
_NO_VALUES = """
    str bytes int float bool dict list tuple set object string number boolean any none null nil true false yes no on
    off undefined optional required secret password token text binary varchar char self cls void auto default empty
    unset secretstr bytearray callable sensitive hidden masked redacted removed omitted invalid missing disabled enabled
    sha256 sha512 base64 utf8 utf16 md5 sha1 int32 int64 uint8 uint32 uint64 float32 float64 ed25519 rs256 hs256 es256
    oauth2 bearer basic jwt prompt stdin file env vault keyring keychain plain plaintext include same-origin omit
    base64url sha384 sha224 pbkdf2 argon2 argon2id aes256 aes128 hmacsha256 oauth1 http1 http2 ipv4 ipv6 win32
"""
TYPE_WORDS = frozenset(_NO_VALUES.split())
_MESSAGE = re.compile(
    r"[A-Z]\S*(?: [^A-Z\s]\S*){2,}|.* .*[.:?]|\W*\w+:\s*|.*\\[wsdS][+*].*|[\w ]*%[sdr]\b.*|.*\][+*{].*|\s+--?\w.*"
)
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:\.\d+)?|0[xX][0-9a-fA-F]{1,16}[uUlL]{0,3}|0b[01]+|0o[0-7]+|\d+\.\d+|\d+e\d+)")
_PATH = re.compile(
    r"(?:~|\.{1,2}|[A-Za-z]:|file:)?(?:[/\\][\w.@~%-]{0,40})+\*?|[a-z][a-z_.-]{0,40}(?:/[a-z_.*-]{1,40})+"
    r"|[\w-]{1,40}\.(?:pem|key|pub|crt|cer|der|p12|pfx|jks|asc|gpg|json|ya?ml|toml|ini|conf|cfg|txt|env|log|md|html?|xml"
    r"|py|js|ts|go|rs|rb|sh|sock|csv|zip)"
)
_CODE_NAME = r"[A-Za-z_$]+(?:\d{1,2}[A-Za-z_$]*)?"
CODE = re.compile(
    r"[A-Za-z_](?:[\w.]|::|->)*[(\[{].*|[\[({].*"  # a call, an index, a list
    rf"|{_CODE_NAME}(?:(?:\.|\?\.|->|::){_CODE_NAME})+[?!]?"  # an attribute
    r"|\d{1,3}[-+*/%][A-Za-z_]+|[A-Za-z_]+(?:==|!=|\+=|[-+*/%=])[A-Za-z_.:(\[>-]*\d?"  # a calculation
    r"|\\?\$\w+(?:\[|->|::).*"  # a variable's
    r"|[-=+*/%!<>|&:.,?~^@#]+|&(?:mut\s)?[A-Za-z_]+|[@!][A-Za-z_]+"  # an operator, a reference
    r"|[A-Za-z_]+[.!?:…]*|[A-Za-z]+'[a-z]+|[a-z]+_[a-z_]+\d?",  # a name, a word
    re.DOTALL,
)
_IDENTIFIER = re.compile(
    r"__\w+__|[a-z]+\d{0,5}(?:[._][a-z]+\d{0,5}){2,}"  # __root__, a.module.name
    r"|[A-Z]+\d?(?: [A-Z]+\d?)+|_{0,2}[A-Z][A-Z0-9]*(?:_[A-Z0-9]+){2,}"  # EC PRIVATE KEY, A_CONSTANT_NAME
)
_MODULE = re.compile(r"\.?[a-z][a-z_]+\d{0,2}(?:[a-z_]*\.[a-z_]{2,}\d{0,2})+|\.[a-z_]{2,}")
_SNAKE = re.compile(r"_?[a-z]+(?:_[a-z]+)*(?:_v?\d)?")
_WORDS_WITH_NUMBERS = re.compile(r"[A-Za-z]+\d{0,4}(?:[-_. ](?:[A-Za-z]+\d{0,4}|\d{1,4}))+")
_FIELD = re.compile(
    r"(?:user|db|my|new|old|admin|root|api|access|auth|client|app|id|refresh|bearer|session|csrf|xsrf|the|your|some|test"
    r"|current|confirm|login|master|service|smtp|ftp|ssh|private|public|secret|bot)?"
    r"(?:pass(?:word|wd|code|phrase)?|pwd|secret|token|key|auth|cookie|credential|authorization)s?"
)
_PATTERN = re.compile(r"\\[swdSW.]|\(?\.[*+]|\[\^")
_PROSE = frozenset({
    "option", "options", "flag", "argument", "parameter", "is", "to", "and", "or", "for", "the", "from", "with", "if",
    "in", "was", "must", "can", "may", "should", "when", "as", "of", "instead", "here", "there", "then", "that", "this",
})  # fmt: skip
_MOUNTED = re.compile(r"(?:id|src|source|type|target|env)=")
_COUNTED = re.compile(r"[A-Za-z_]{1,24}?_?\d{1,2}")
_ADDRESS = re.compile(r"[a-z]+://[^\s:@]*")
MIXED = re.compile(r"(?=.*\d)(?=.*[A-Za-z])\S{6,}", re.DOTALL)
LETTERS = re.compile(r"[A-Za-z][A-Za-z_-]*")
_SEVERAL_DIGITS = re.compile(r"\d.*\d")
_SHORTEST_MIXED, _SHORTEST_RANDOM = 10, 20
_ODD_SIGN = re.compile(r"[\w][!#%^*@~?$&|;()][\w]")
_FEWEST_WORDS = 11  # of spaces between the words of a wallet
_PAIR = re.compile(r"[\w.$-]{1,80}=.")
LIKE_A_PATTERN = re.compile(r"\\|\(\?|\.[*+]|\[.*\]")


def stands_for_a_secret(value: str) -> bool:
    """Whether this only holds the place of a secret: a variable, a template, stars."""
    return _FILLED_IN.fullmatch(value[:300]) is not None


def _is_path(value: str) -> bool:
    """Whether it is a path. A secret key of AWS may look like one, but has 40 letters of every kind."""
    return _PATH.fullmatch(value) is not None and not (len(value) == 40 and any(map(str.isdigit, value)))


class NamedValue(NamedTuple):
    """A value, and how it is given to a secret's name."""

    name: str
    value: str
    how: str
    sure: bool
    before: str = ""
    after: str = ""
    first: bool = False
    last: bool = False

    @property
    def is_shell(self) -> bool:
        """As in a shell, an environment, an address or a connection string, where nothing but a value can stand."""
        return self.how == "=" and (self.before in ("?", "&", ";") or self.name.upper() == self.name)

    @property
    def is_connection_string(self) -> bool:
        """As in `Server=db;Uid=sa;Pwd=x;`, where even a short word is a password."""
        named = self.name.lower() in ("pwd", "password")
        return named and self.how == "=" and self.before == ";" and self.after in (";", '"', "'", "")


def is_secret_value(candidate: NamedValue, is_value: Callable[[NamedValue], bool]) -> bool:
    """Whether a value is a secret. What has to convince by itself has to look random, whatever it is given to."""
    value, plain = candidate.value, plain_name(candidate.name)
    if candidate.sure and candidate.is_connection_string:
        return not stands_for_a_secret(value) and value[0] not in "[{<"
    if len(value) < 4 or is_no_value(value):
        return False
    if plain.endswith("pat") and LIKE_A_PATTERN.search(value):
        return False
    if not candidate.sure:
        return _is_written_out(value, candidate.name.isupper())
    if plain.endswith(("mnemonic", "_phrase")):
        return value.count(" ") >= _FEWEST_WORDS
    if plain.endswith(("cookie", "cookie2")) and _PAIR.match(value):
        return False  # each of a header's cookies has a value of its own
    if _WEAK_NAME.fullmatch(plain) and not MIXED.fullmatch(value[:200]):
        return False
    return is_value(candidate)


def _is_written_out(value: str, is_variable: bool) -> bool:
    """Whether a value can only be a secret: it looks random, or mixed if an environment's variable has it."""
    if value[0] in "$*&" or "://" in value or not MIXED.fullmatch(value):
        return False
    if CODE.fullmatch(value) or _is_named_so(value):
        return False
    several = _SEVERAL_DIGITS.search(value) is not None
    if looks_random(value) and (several or len(value) >= _SHORTEST_RANDOM):
        return True
    return several and len(value) >= _SHORTEST_MIXED and (is_variable or _ODD_SIGN.search(value) is not None)


def is_literal(candidate: NamedValue) -> bool:
    """Whether a value without quotes is written out, or is code, a type or prose."""
    value = candidate.value
    if "://" in value:
        return False
    if candidate.how in ("gap", "verb", "is", "cell", "below"):
        return _is_after_a_name(candidate)
    if candidate.how == "ENV":
        return True  # of a container's file, where nothing but a value can stand
    if candidate.how == " ":
        metavar = value.isupper() and LETTERS.fullmatch(value)
        return not metavar and value not in _PROSE and value[0] not in "-<>|&;(" and not _MOUNTED.match(value)
    if candidate.how == "block":
        return candidate.first and candidate.last and MIXED.fullmatch(value) is not None
    if candidate.is_shell:
        return value[:2] not in ("((", "[[") and plain_name(value) != plain_name(candidate.name)
    if value.isdigit():
        return len(value) >= 8 or "pass" in candidate.name.lower() or "pwd" in candidate.name.lower()
    if CODE.fullmatch(value):
        return _is_setting(candidate) or (value.isalnum() and looks_random(value))
    return not (_COUNTED.fullmatch(value) and _names_a_secret(value.rstrip("0123456789_")))


def _is_after_a_name(candidate: NamedValue) -> bool:
    """Whether a word is a value without a sign before it: `ENV TOKEN x`, `password x` on a line of its own."""
    value = candidate.value
    if (
        "(" in value
        or plain_name(value) == plain_name(candidate.name)
        or (candidate.how == "below" and value[-1] in ":,")
    ):
        return False
    if candidate.how == "verb" and candidate.name.isupper():
        return len(value) >= 8 or not value.isdigit()
    if not value[0].isalnum() or CODE.fullmatch(value) or _is_named_so(value):
        return False
    return MIXED.fullmatch(value) is not None and (candidate.how not in ("gap", "below") or candidate.last)


def is_secret_argument(name: str, value: str, how: str) -> bool:
    """Whether a value that a command line gives to this name is a secret. `how` is `=`, or a space after an option."""
    if not name or not value:
        return False
    sure = is_secret_name(name)
    return (sure or may_be_secret_name(name)) and is_secret_value(NamedValue(name, value, how, sure), is_literal)


def is_no_value(value: str) -> bool:
    """Whether this is a type, a variable, a pattern, a number or a path, wherever it stands."""
    if value.strip().lower() in TYPE_WORDS or stands_for_a_secret(value) or _is_path(value):
        return True
    return bool(_PATTERN.match(value) or _NUMBER.fullmatch(value))


def _is_setting(candidate: NamedValue) -> bool:
    """Whether a word is a value in a file of settings: alone on its line with its name, or a whole header."""
    if (
        not LETTERS.fullmatch(candidate.value)
        or _names_a_secret(candidate.value)
        or candidate.how not in ("=", ":", ": ", " = ")
    ):
        return False
    if candidate.before in ("'", '"') and candidate.after in ("'", '"'):
        return True
    if candidate.how == " = " and candidate.before not in ("", "\n"):
        return False  # in files of settings, nothing stands before a name
    return candidate.first and candidate.last and candidate.value.islower() and "_" not in candidate.value


def _names_a_secret(value: str) -> bool:
    return is_secret_name(value) or value.lower() in ("tok", "pw", "key", "arg", "val", "value", "data", "line", "name")


def _is_named_so(value: str) -> bool:
    """Whether a value is the name of something: of an algorithm, a header, a module."""
    return bool(_WORDS_WITH_NUMBERS.fullmatch(value) or _IDENTIFIER.fullmatch(value))


def _is_identifier(value: str) -> bool:
    """Whether a value names something in code: a module, a constant, or what has a secret's word in its name."""
    if _IDENTIFIER.fullmatch(value) or _MODULE.fullmatch(value):
        return True
    return bool(_SNAKE.fullmatch(value)) and not SECRET_WORDS.isdisjoint(part.rstrip("s") for part in value.split("_"))


def is_quoted_literal(candidate: NamedValue) -> bool:
    """Whether what stands in quotes is a value, or a name, a message or a template."""
    value = candidate.value
    if candidate.how in ("==", "(", "or", "gap", "verb", "is", ",", "put"):
        written_out = MIXED.fullmatch(value[:200]) is not None or looks_random(value)
        return written_out and not (candidate.how in (",", "or", "is") and _is_named_so(value))
    if LETTERS.fullmatch(value) and _names_a_secret(value) and (not value.islower() or "_" in value or "-" in value):
        return False
    if _FIELD.fullmatch(value) or _is_identifier(value) or plain_name(value) == plain_name(candidate.name):
        return False
    return not (_MESSAGE.fullmatch(value[:300]) or _ADDRESS.fullmatch(value))
