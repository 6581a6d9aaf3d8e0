"""Redaction: what looks like a secret is replaced before it leaves the process.

A value is a secret by its shape (well-known keys and tokens, private keys, passwords in addresses)
or by the name it is given to (`password`, `api_key`, ...). What is left says what kind it was.
"""

from __future__ import annotations

import re
from typing import Any

_NAMES = r"(?:api|access|secret|private|auth|client)[-_]?(?:key|token|secret)|password|passwd|secret|token|credentials?"

SHAPES: dict[str, re.Pattern[str]] = {
    "private key": re.compile(
        r"-----BEGIN (?:[A-Z]{1,20} ){0,3}PRIVATE KEY-----.*?(?:-----END (?:[A-Z]{1,20} ){0,3}PRIVATE KEY-----|\Z)",
        re.DOTALL,
    ),
    "jwt": re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{8,}"),
    "aws key": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "github token": re.compile(r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,})"),
    "gitlab token": re.compile(r"\bglpat-[\w-]{16,}"),
    "slack token": re.compile(r"\bxox[abeprs]-[\w-]{10,}"),
    "google key": re.compile(r"\bAIza[\w-]{30,}"),
    "api key": re.compile(r"\b(?:sk|pk|rk)[-_](?:[a-z]{2,10}[-_])?[\w-]{16,}"),
    "npm token": re.compile(r"\bnpm_\w{30,}"),
    "bearer": re.compile(r"(?i)(?<=\bbearer )[\w.~+/-]{8,}=*"),
    "password": re.compile(r"(?<=://)([^\s:/@]{0,100}):[^\s/@]{1,200}(?=@)"),
    "secret": re.compile(
        rf"(?i)\b((?:\w{{0,40}}[-_])?(?:{_NAMES})[\"']?\s{{0,4}}[=:]\s{{0,4}})([\"']?)[^\s\"',;&]{{4,}}\2"
    ),
}
"""What a secret looks like, and what it is called once it is gone."""

_SECRET_NAME = re.compile(rf"(?i)(?:.{{0,40}}[-_.])?(?:{_NAMES}|authorization|cookie)")


def redact(value: Any) -> Any:
    """A copy of some JSON in which no secret is left that can be recognised."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return {key: _redact_named(key, item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact(item) for item in value]
    return value


def _redact_named(name: Any, value: Any) -> Any:
    if isinstance(value, str) and value and isinstance(name, str) and _SECRET_NAME.fullmatch(name):
        return "[redacted: secret]"
    return redact(value)


def redact_text(text: str) -> str:
    """A text without the secrets in it."""
    for kind, shape in SHAPES.items():
        mark = f"[redacted: {kind}]"
        if kind == "password":
            text = shape.sub(rf"\1:{mark}", text)
        elif kind == "secret":
            text = shape.sub(rf"\1{mark}", text)
        else:
            text = shape.sub(mark, text)
    return text
