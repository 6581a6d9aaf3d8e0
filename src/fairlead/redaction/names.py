"""Finds values of secrets by name: `password = "..."`, `API_TOKEN=...`, `--secret ...`, `"passwd": "..."`.

Names are easy to find; the work is in telling a value from code that computes one (`token = next_token()`),
from a type (`token: str`) and from prose. Where that is in doubt, a value that is written out is a secret.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from .shapes import BARE, FILLED_IN, OPERATOR, Span, atomic, looks_random

# --- names -------------------------------------------------------------------------------------------

WORDS = (
    "pass", "pw", "secret", "token", "cred", "key", "auth", "cookie", "psk", "pat", "login", "licen", "salt", "seed",
    "jwt", "session", "mnemonic", "phrase",
)  # fmt: skip
"""One of these is in every secret's name."""

_OF_A_KEY = (
    "api|access|secret|private|auth|client|session|encryption|encrypt|decryption|decrypt|signing|sign|master|account"
    "|storage|shared|webhook|hmac|aes|rsa|ssh|gpg|deploy|jwt|cipher|admin|app|application|service|service_role|license"
    "|licence|root|server|sdk|ca|tls|ssl|subscription|functions?|consumer|merchant|fernet|pre_?shared|validation|unseal"
    "|vapid|recaptcha|turnstile|openai|anthropic|stripe|mailgun|sendgrid|twilio|supabase|cosmos|wallet|deployer|cert|https"
    "|instrumentation"
)
_SECRET = re.compile(
    r"(?:.*(?:password|passwd|passphrase|passcode|secret|token|credentials?)"
    rf"|.*(?:{_OF_A_KEY})_?(?:access_?)?key|(?:.*_)?(?:pass|pw|pwd|passw|pword|creds|auth|cookie|psk|client_key_data)"
    r"|.*(?:authorization|cookies?|pgpass|mnemonic|(?:seed|recovery|secret)_phrase)"
    r"|(?:.*_)?(?:github|gitlab|gh|azure|ado|devops(?:_ext)?|bitbucket|jira|airtable|docker|npm|personal)_pat)"
    r"(?:_?(?:\d{1,3}|old|new|prod|dev|staging|live|base|value|plain|b64|base64|string|bedrock|main|primary|secondary))?"
)
_NO_SECRET = re.compile(
    r"(?:.*_)?(?:next|page|eos|bos|pad|unk|sep|cls|mask|stop|end|start|special|continuation|cancel|cancellation|sync"
    r"|resume|max|min|num|last|current|prev|previous|first|per|parse|output|input)_(?:token|key|auth|pass)"
    r"|(?:no|has|is|use|require|requires|with|allow|ask|need|needs)_\w*|.*auth\d+"
)
_OF_SECRETS = """
    key token secret password passwd pass pwd auth credential credentials creds pat psk login license licence salt seed
    jwt session mnemonic phrase
"""
_OF_OTHER_KEYS = "public pub cache idempotency partition sort range object trace span request bucket"
_ABOUT_SECRETS = """
    id ids name names url uri path file dir type arn hash digest fingerprint thumbprint checksum version count length
    size index format class alg algorithm endpoint host port region date time expiry expires ttl prefix suffix header
    field column table label kind code etag ref
"""
_MAYBE, _HARDLY = frozenset(_OF_SECRETS.split()), frozenset(_OF_OTHER_KEYS.split())
_ABOUT = frozenset(_ABOUT_SECRETS.split())
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
    if name.isupper() and name.endswith("_PAT"):  # in lower case, it is a pattern more often than a token
        return True
    plain = plain_name(name)
    return _SECRET.fullmatch(plain) is not None and _NO_SECRET.fullmatch(plain) is None


@lru_cache(2048)
def _may_be_secret_name(name: str) -> bool:
    """Whether a value that looks random is a secret if it goes by this name."""
    parts = plain_name(name[:128]).split("_")
    return not _MAYBE.isdisjoint(parts) and _HARDLY.isdisjoint(parts) and parts[-1] not in _ABOUT


# --- values ------------------------------------------------------------------------------------------

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
_TYPE_WORDS = frozenset(_NO_VALUES.split())
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
_CODE = re.compile(
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
_BRACES = re.compile(r"\{[^{}]*\}")
_COUNTED = re.compile(r"[A-Za-z_]{1,24}?_?\d{1,2}")
_ADDRESS = re.compile(r"[a-z]+://[^\s:@]*")
_MIXED = re.compile(r"(?=.*\d)(?=.*[A-Za-z])\S{6,}", re.DOTALL)
_LETTERS = re.compile(r"[A-Za-z][A-Za-z_-]*")
_SEVERAL_DIGITS = re.compile(r"\d.*\d")
_SHORTEST_MIXED, _SHORTEST_RANDOM = 10, 20
_ODD_SIGN = re.compile(r"[\w][!#%^*@~?$&|;()][\w]")
_FEWEST_WORDS = 11  # of spaces between the words of a wallet
_PAIR = re.compile(r"[\w.$-]{1,80}=.")
_LIKE_A_PATTERN = re.compile(r"\\|\(\?|\.[*+]|\[.*\]")


def stands_for_a_secret(value: str) -> bool:
    """Whether this only holds the place of a secret: a variable, a template, stars."""
    return _FILLED_IN.fullmatch(value[:300]) is not None


def _is_path(value: str) -> bool:
    """Whether it is a path. A secret key of AWS may look like one, but has 40 letters of every kind."""
    return _PATH.fullmatch(value) is not None and not (len(value) == 40 and any(map(str.isdigit, value)))


class _NamedValue(NamedTuple):
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


def _is_secret(candidate: _NamedValue, is_value: Callable[[_NamedValue], bool]) -> bool:
    """Whether a value is a secret. What has to convince by itself has to look random, whatever it is given to."""
    value, plain = candidate.value, plain_name(candidate.name)
    if candidate.sure and candidate.is_connection_string:
        return not stands_for_a_secret(value) and value[0] not in "[{<"
    if len(value) < 4 or is_no_value(value):
        return False
    if plain.endswith("pat") and _LIKE_A_PATTERN.search(value):
        return False
    if not candidate.sure:
        return _is_written_out(value, candidate.name.isupper())
    if plain.endswith(("mnemonic", "_phrase")):
        return value.count(" ") >= _FEWEST_WORDS
    if plain.endswith(("cookie", "cookie2")) and _PAIR.match(value):
        return False  # each of a header's cookies has a value of its own
    if _WEAK.fullmatch(plain) and not _MIXED.fullmatch(value[:200]):
        return False
    return is_value(candidate)


def _is_written_out(value: str, is_variable: bool) -> bool:
    """Whether a value can only be a secret: it looks random, or mixed if an environment's variable has it."""
    if value[0] in "$*&" or "://" in value or not _MIXED.fullmatch(value):
        return False
    if _CODE.fullmatch(value) or _is_named_so(value):
        return False
    several = _SEVERAL_DIGITS.search(value) is not None
    if looks_random(value) and (several or len(value) >= _SHORTEST_RANDOM):
        return True
    return several and len(value) >= _SHORTEST_MIXED and (is_variable or _ODD_SIGN.search(value) is not None)


def _is_literal(candidate: _NamedValue) -> bool:
    """Whether a value without quotes is written out, or is code, a type or prose."""
    value = candidate.value
    if "://" in value:
        return False
    if candidate.how in ("gap", "verb", "is", "cell", "below"):
        return _is_after_a_name(candidate)
    if candidate.how == "ENV":
        return True  # of a container's file, where nothing but a value can stand
    if candidate.how == " ":
        metavar = value.isupper() and _LETTERS.fullmatch(value)
        return not metavar and value not in _PROSE and value[0] not in "-<>|&;(" and not _MOUNTED.match(value)
    if candidate.how == "block":
        return candidate.first and candidate.last and _MIXED.fullmatch(value) is not None
    if candidate.is_shell:
        return value[:2] not in ("((", "[[") and plain_name(value) != plain_name(candidate.name)
    if value.isdigit():
        return len(value) >= 8 or "pass" in candidate.name.lower() or "pwd" in candidate.name.lower()
    if _CODE.fullmatch(value):
        return _is_setting(candidate) or (value.isalnum() and looks_random(value))
    return not (_COUNTED.fullmatch(value) and _names_a_secret(value.rstrip("0123456789_")))


def _is_after_a_name(candidate: _NamedValue) -> bool:
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
    if not value[0].isalnum() or _CODE.fullmatch(value) or _is_named_so(value):
        return False
    return _MIXED.fullmatch(value) is not None and (candidate.how not in ("gap", "below") or candidate.last)


def is_given_secret(name: str, value: str, how: str) -> bool:
    """Whether a value that a command line gives to this name is a secret. `how` is `=`, or a space after an option."""
    if not name or not value:
        return False
    sure = is_secret_name(name)
    return (sure or _may_be_secret_name(name)) and _is_secret(_NamedValue(name, value, how, sure), _is_literal)


def is_no_value(value: str) -> bool:
    """Whether this is a type, a variable, a pattern, a number or a path, wherever it stands."""
    if value.strip().lower() in _TYPE_WORDS or stands_for_a_secret(value) or _is_path(value):
        return True
    return bool(_PATTERN.match(value) or _NUMBER.fullmatch(value))


def _is_setting(candidate: _NamedValue) -> bool:
    """Whether a word is a value in a file of settings: alone on its line with its name, or a whole header."""
    if (
        not _LETTERS.fullmatch(candidate.value)
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
    return bool(_SNAKE.fullmatch(value)) and not _MAYBE.isdisjoint(part.rstrip("s") for part in value.split("_"))


def _is_quoted_literal(candidate: _NamedValue) -> bool:
    """Whether what stands in quotes is a value, or a name, a message or a template."""
    value = candidate.value
    if candidate.how in ("==", "(", "or", "gap", "verb", "is", ",", "put"):
        written_out = _MIXED.fullmatch(value[:200]) is not None or looks_random(value)
        return written_out and not (candidate.how in (",", "or", "is") and _is_named_so(value))
    if _LETTERS.fullmatch(value) and _names_a_secret(value) and (not value.islower() or "_" in value or "-" in value):
        return False
    if _FIELD.fullmatch(value) or _is_identifier(value) or plain_name(value) == plain_name(candidate.name):
        return False
    return not (_MESSAGE.fullmatch(value[:300]) or _ADDRESS.fullmatch(value))


# --- finding them --------------------------------------------------------------------------------------

_QUOTE = r"\\{0,7}[\"']"
_GIVEN = re.compile(
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
        match = _GIVEN.match(text, at + len(word))
        if match is None:
            continue
        named = match.end("rest")
        if (candidate := _named(text, at, match, is_secret)) is None:
            continue
        tried.append(at)
        if at - tried[0] < _CROWDED:
            if candidate.sure and (value := _CROWDED_VALUE.match(text, match.end())) and value[1] not in _TYPE_WORDS:
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
    return _Name(name, start, how, sure) if sure or _may_be_secret_name(name) else None


def _value_of(text: str, candidate: _Name, match: re.Match[str], quotes: _Quotes) -> Span | None:
    """The secret that is given to a name, if it is one."""
    if opened := _OPENED.match(text, match.end()):
        before = text[candidate.start - 1 : candidate.start]
        if not match["close"] and (opened["quote"] == before or _CLOSED.match(text, opened.end())):
            return None  # "Password: " + password
        return _quoted(text, candidate, opened, quotes)
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


def _quoted(text: str, to: _Name, opened: re.Match[str], quotes: _Quotes) -> Span | None:
    quote, start = opened["quote"], opened.end()
    if quote in ('"""', "'''") and text[start : start + 1] == "\n":
        start += 1
    end, whole = _closing(text, opened, start, quotes, to.how == "json")
    candidate = _NamedValue(to.name, text[start : min(end, start + _JUDGED)], to.how, to.sure)
    if end < whole and _LIKE_A_PATTERN.search(text, start, min(whole, start + _JUDGED)):
        return None
    if opened[0][0] in "fF" and "{" in candidate.value and not _MIXED.fullmatch(_BRACES.sub("", candidate.value[:200])):
        return None
    return (start, end, "secret") if _is_secret(candidate, _is_quoted_literal) else None


def _closing(text: str, opened: re.Match[str], start: int, quotes: _Quotes, is_json: bool = False) -> tuple[int, int]:
    """Where a quoted value ends, at its quote, with its line, or before a command; and where its quotes end.

    A shell runs what is substituted in double quotes, if the substitution ends there. JSON has none. An operator that
    comes with spaces, or after quotes that close others on the same line, may be a command between two quoted texts.
    """
    quote, limit = opened["quote"], start + _LONGEST
    end = text.find(quote, start, limit)
    while end > 0 and text[end - 1] == "\\":
        end = text.find(quote, end + 1, limit)
    closed = end >= 0
    end = min(len(text), limit) if end < 0 else end
    line = text.find("\n", start, end)
    closed, whole = closed and line < 0, end if line < 0 else line
    operator = _OPERATOR.search(text, start, whole)
    if operator and closed and not _SPACE.search(text, start, whole) and not quotes.is_open(opened.start("quote")):
        operator = _SUBSTITUTION.search(text, start, whole) if quote[-1] == '"' and not is_json else None
    end = operator.start() if operator else whole
    while end > start and text[end - 1].isspace():
        end -= 1
    return end, whole


def _in_a_template(to: _Name, template: re.Match[str]) -> Span | None:
    """What stands in backticks, as in JavaScript. A shell would run it, so it must be nothing that runs."""
    value = template[1]
    candidate = _NamedValue(to.name, value, to.how, to.sure)
    if not _MIXED.fullmatch(value) or (to.how == "=" and (not looks_random(value) or _OPERATOR.search(value))):
        return None
    return (*template.span(1), "secret") if _is_secret(candidate, _is_quoted_literal) else None


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
        whole = _NamedValue(name, value, how, sure, before)
        if not whole.is_shell or before in ("(", "[", "{", ",", "?", "&"):
            if _CODE.fullmatch(value) and not _LETTERS.fullmatch(value[: cut.start()]):
                return None
            value, end = value[: cut.start()], at + cut.start()
    last = _MORE.match(text, end) is not None
    candidate = _NamedValue(name, value, how, sure, before, text[end : end + 1], _starts_line(text, start), last)
    if not _is_secret(candidate, _is_literal):
        return None
    if end == at + _LOOKED_AT and (rest := _BARE_REST.match(text, end)):
        end = rest.end()
    return at, end, "secret"
