"""JavaScript that only reads and prints: `node -p 'require("./package.json").version'`."""

from __future__ import annotations

import re

_LONGEST = 500
_TEXT = r"""(?:"[^"\\\n]*"|'[^'\\\n]*')"""
_REQUIRES = re.compile(rf"\brequire\(({_TEXT})\)")
_VALUES = [
    (re.compile(rf"§fs§\.readFileSync\({_TEXT}(?:,\s*{_TEXT})?\)(?:\.toString\(\))?"), "§§"),
    (re.compile(r"\bJSON\.parse\(§§\)|\bObject\.(?:keys|values|entries)\(§§\)|\bconsole\.log\(§§\)"), "§§"),
    (re.compile(r"\bJSON\.stringify\(§§(?:,\s*null,\s*\d)?\)"), "§§"),
    (re.compile(rf"§§(?:\.[A-Za-z_]\w*(?![\w(])|\[\d+\]|\[{_TEXT}\](?!\())"), "§§"),
]
"""What is a value, once those in it are written as `§§`."""


def only_prints(code: str) -> bool:
    """Does code consist of one expression that reads JSON, and maybe prints it? In doubt, it does not."""
    if len(code) > _LONGEST or "§" in code:
        return False
    code = _REQUIRES.sub(_module, code.strip().rstrip(";"))
    for _ in range(_DEEPEST):
        before = code
        for pattern, value in _VALUES:
            code = pattern.sub(value, code)
        if code == before:
            break
    return code == "§§"


_DEEPEST = 20


def _module(found: re.Match[str]) -> str:
    name = found[1][1:-1]
    return "§fs§" if name in ("fs", "node:fs") else "§§" if name.endswith(".json") else found[0]
