"""Redaction: what looks like a secret is replaced before it leaves the process.

A value is a secret by its shape (well-known keys and tokens, private keys, passwords in addresses)
or by the name it is given to (`password`, `api_key`, ...). What is left says what kind it was.
"""

from __future__ import annotations

import re
from typing import Any

_NAMES = (
    r"(?:api|access|secret|private|auth|client|session)[-_]?(?:access[-_]?)?(?:key|token|secret)"
    r"|password|passwd|passphrase|secret|token|credentials?"
)
_QUOTE = r"\\?[\"']"
_MARKED = r"(?!\[redacted: )"

SHAPES: dict[str, re.Pattern[str]] = {
    "private key": re.compile(
        r"-----BEGIN (?:[A-Z]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----.*?"
        r"(?:-----END (?:[A-Z]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----|\Z)",
        re.DOTALL,
    ),
    "jwt": re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"),
    "aws key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "github token": re.compile(r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,})"),
    "gitlab token": re.compile(r"\bglpat-[\w-]{16,}"),
    "slack token": re.compile(r"\bxox[abeprs]-[\w-]{10,}"),
    "google key": re.compile(r"\bAIza[\w-]{30,}"),
    "api key": re.compile(r"\b(?:sk|pk|rk)[-_](?=[\w-]{0,60}\d)(?:[a-z]{2,10}[-_])?[\w-]{16,}"),
    "npm token": re.compile(r"\bnpm_\w{30,}"),
    "bearer": re.compile(r"(?i)(?<=\bbearer )(?=[\w.~+/-]{0,60}\d)[\w.~+/-]{8,}=*"),
    "basic": re.compile(r"(?i)(?<=\bbasic )(?=[\w+/]{0,60}[\dA-Z=])[\w+/]{8,}=*"),
    "password": re.compile(rf"(?<=://)([^\s:/@]{{0,100}}):{_MARKED}[^\s/]{{1,200}}(?=@)"),
    "user": re.compile(rf"(?<=\s-u )([^\s:]{{1,100}}):{_MARKED}\S{{1,200}}"),
    "quoted": re.compile(
        rf"(?i)((?:{_NAMES})(?:{_QUOTE})?\s{{0,4}}(?:=>|:=|[=:])\s{{0,4}}({_QUOTE})){_MARKED}[^\"'\n]{{4,2000}}(?=\2)"
    ),
    "option": re.compile(rf"(?i)(?<=\s)(--?(?:{_NAMES})\s{{1,4}}){_MARKED}[^\s-]\S{{3,}}"),
    "secret": re.compile(
        rf"(?i)((?:{_NAMES})(?:{_QUOTE})?\s{{0,4}}(?:=>|:=|[=:])\s{{0,4}}){_MARKED}(?!{_QUOTE})[^\s\"',;&)]{{4,}}"
    ),
}
"""What a secret looks like. The names are what is said of it once it is gone."""
_GIVEN = ("password", "user", "quoted", "option", "secret")  # of these, what stands before it is kept

_SECRET_NAME = re.compile(rf"(?i).{{0,60}}?(?:{_NAMES}|authorization|cookie)")


def redact(value: Any) -> Any:
    """A copy of some JSON in which no secret is left that can be recognised."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {_key(key): _redact_named(key, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact(item) for item in value]
    return value


def _key(key: Any) -> Any:
    return redact_text(key) if isinstance(key, str) else key


def _redact_named(name: Any, value: Any) -> Any:
    return _blank(value) if isinstance(name, str) and _SECRET_NAME.fullmatch(name) else redact(value)


def _blank(value: Any) -> Any:
    """What was given to a secret's name: nothing of it is left."""
    if isinstance(value, dict):
        return {_key(key): _blank(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_blank(item) for item in value]
    return value if value is None or value == "" or isinstance(value, bool) else "[redacted: secret]"


def redact_text(text: str) -> str:
    """A text without the secrets in it."""
    for kind, shape in SHAPES.items():
        if kind in _GIVEN:
            colon = ":" if kind in ("password", "user") else ""
            text = shape.sub(rf"\1{colon}[redacted: {'password' if colon else 'secret'}]", text)
        else:
            text = shape.sub(f"[redacted: {kind}]", text)
    return text
