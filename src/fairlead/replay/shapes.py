"""The shape of a step's target: what is left when numbers, paths, addresses and quoted texts are folded.

Calls of one shape differ in their details only, so a report counts them as one line.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from ..lifecycle import Step, ToolStep

WORDS: Final = 8
"""Words of a command that its shape has."""
LONGEST: Final = 4096
"""Characters of a command that are looked at."""

_WORD = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|\\.|[^\s;&|<>])+|[;&|<>]+""", re.DOTALL)
_QUOTED = re.compile(r"""["'].*["']|.*\s.*""", re.DOTALL)
_ADDRESS = re.compile(r"[a-z][a-z+.-]*://\S+|[\w.-]+@[\w.-]+:\S+", re.IGNORECASE)
_HASH = re.compile(r"\b[0-9a-f]{7,64}\b")
_NUMBER = re.compile(r"\d+")
_NAME = re.compile(r"[\w.@+~-]*/[\w.@+~/*-]*|[\w+~-]+\.[A-Za-z]\w{0,5}|~[\w/.-]*|\.{1,2}")


def shape_of(step: Step) -> str:
    """The tool and the shape of its target; the event's name for a step that is about no tool."""
    if not isinstance(step, ToolStep):
        return step.event
    target = step.target
    if target.command:
        shown = _of_command(target.command[:LONGEST])
    elif target.paths:
        shown = " ".join(sorted({_of_path(path) for path in target.paths}))
    elif target.url:
        shown = _of_address(target.url)
    else:
        shown = ""
    return f"{step.tool}: {shown}" if shown else step.tool


@lru_cache(4096)
def _of_command(command: str) -> str:
    words = _WORD.findall(command)
    shape = [_of_word(word, at == 0 or words[at - 1][0] in ";&|") for at, word in enumerate(words[:WORDS])]
    return " ".join(shape) + (" ..." if len(words) > WORDS else "")


def _of_word(word: str, is_program: bool) -> str:
    if is_program and "/" in word:
        return PurePosixPath(word).name or word
    option, equals, value = word.partition("=")
    if equals and option[:1] == "-":
        return f"{option}={_of_word(value, False)}"
    if _ADDRESS.fullmatch(word):
        return "URL"
    if _QUOTED.fullmatch(word):
        return "TEXT"
    if _NAME.fullmatch(word) and not is_program:
        return "PATH"
    return _NUMBER.sub("N", _HASH.sub(lambda one: "HASH" if any(map(str.isdigit, one[0])) else one[0], word))


def _of_path(path: str) -> str:
    suffix = PurePosixPath(path).suffix
    return f"*{suffix}" if suffix and not any(map(str.isdigit, suffix)) else "PATH"


def _of_address(url: str) -> str:
    try:
        return urlsplit(url).hostname or "URL"
    except ValueError:
        return "URL"


def target_text(step: Step) -> str:
    """What a call works on, in full: its command, its paths or its address."""
    if not isinstance(step, ToolStep):
        found: Any = next((value for name in ("input", "message", "response", "content", "error")
                           if isinstance(value := getattr(step, name, None), str)), "")  # fmt: skip
        return str(found)
    target = step.target
    return target.command or " ".join(target.paths) or target.url or ""
