"""Stands in for redacted secrets: a step is judged with the mark, with a sample secret, and with nothing.

If all three answers agree, the secret does not matter. If they differ, the answer is not known.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from ..lifecycle import Step
from .records import AnyStep, Recorded

_MARK: Final = re.compile(r"\[redacted: ([a-z0-9.]+(?: [a-z0-9.]+){0,3})\]")
_LETTERS, _HEX = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7", "0123456789abcdef"

# In two parts, so that no scanner takes this file for a leak.
_SAMPLES: Final = {
    "github token": "gh" + "p_" + (_LETTERS * 2)[:36],
    "gitlab token": "glp" + "at-" + _LETTERS[:20],
    "aws key": "AK" + "IA" + "Q3EGXAMPLE7KEYZ2",
    "api key": "sk" + "-" + (_LETTERS * 2)[:48],
    "slack token": "xox" + "b-123456789012-123456789012-" + _LETTERS[:24],
    "npm token": "npm" + "_" + (_LETTERS * 2)[:36],
    "pypi token": "py" + "pi-AgEIcHlwaS5vcmc" + (_LETTERS * 3)[:60],
    "google key": "AI" + "za" + (_LETTERS * 2)[:35],
    "hugging face token": "h" + "f_" + (_LETTERS * 2)[:34],
    "jwt": "ey" + "JhbGciOiJIUzI1NiJ9." + "ey" + "JzdWIiOiIxIn0." + (_LETTERS * 2)[:43],
    "private key": "-----BEGIN " + "PRIVATE KEY-----\n" + _LETTERS * 4 + "\n-----END " + "PRIVATE KEY-----",
    "password": "Tr0ub4dor" + "-and-3",
    "bearer": _LETTERS,
    "basic": "dXNlcjpw" + "YXNzd29yZA==",
}
_ANY_SAMPLE: Final = "s3cr3t" + "-" + _HEX * 2


def sample_of(kind: str) -> str:
    """A made-up secret of this kind."""
    return _SAMPLES.get(kind, _ANY_SAMPLE)


def variants(recorded: Recorded) -> list[Step]:
    """The step with each of the three stand-ins; the step alone if nothing in it was redacted."""
    if not recorded.redacted_places:
        return [recorded.step]
    fields = {place.split(".")[1] for place, _ in recorded.redacted_places}
    return [
        recorded.step,
        _with_marks(recorded.step, fields, sample_of),
        _with_marks(recorded.step, fields, lambda _: ""),
    ]


def _with_marks(step: Step, fields: set[str], stand_in: Callable[[str], str]) -> Step:
    def put(value: Any) -> Any:
        if isinstance(value, str):
            return _MARK.sub(lambda mark: stand_in(mark[1]), value)
        if isinstance(value, list):
            return [put(item) for item in value]
        if isinstance(value, dict):
            return {put(key): put(item) for key, item in value.items()}
        return value

    data = msgspec.to_builtins(step, str_keys=True)
    new = {name: put(value) if name in fields else value for name, value in data.items()}
    return msgspec.convert(new, AnyStep)
