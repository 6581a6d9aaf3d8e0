"""Regular expressions whose time is bounded for every pattern and text.

RE2 takes time linear in the text, but the factor depends on both: a nanosecond per byte as a rule,
ten for each instruction of the compiled pattern at worst. A search cannot be interrupted. So a long
text is searched in ever longer parts. Each adds little even at worst, and between them the search
looks at how much processor time it took.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import thread_time
from typing import Any

from ..extras import MissingPackage, install_command
from .syntax import BadRule

MEMORY = 1 << 20
"""Bytes that a compiled pattern may take."""
FOREIGN_LENGTH, FOREIGN_MEMORY = 1_000, 1 << 16
"""Characters of a pattern that comes with a step, and bytes that it may take."""
COMPILING = 30e-6
"""Seconds per character that compiling such a pattern takes, in the worst case."""
SLOWEST = 10e-9
"""Seconds per byte and instruction, in the worst case."""
PART = 20e-3
"""Seconds that one part of a search may add."""
GROWTH_LIMIT = 8 << 20
"""Bytes that replacing may add to a text."""


class TooSlow(Exception):
    """A search takes too long, or a replacement grows too large."""


class Limit:
    """The processor time that a rule may take on this thread, and what replacing may add to its texts.

    A busy machine does not shorten the time.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds, self._room = seconds, GROWTH_LIMIT
        self._until: float | None = None
        self._seen = self._unseen = 0.0  # when the clock was read, and what began since

    def spend(self, seconds: float) -> None:
        """Something begins that takes so long at worst, beyond what it was last found to take.

        Raises `TooSlow` if that could be too long. Reading the clock takes time too, so it is not read for a trifle.
        """
        self._unseen += seconds
        if self._unseen < PART:
            return
        now = thread_time()
        if self._until is None:
            self._until, self._seen = now + self._seconds, now
        if now + (now - self._seen) + seconds > self._until:
            raise TooSlow
        self._seen, self._unseen = now, seconds

    def grow(self, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise TooSlow


class Regex:
    """A compiled pattern."""

    @classmethod
    def foreign(cls, pattern: str, limit: Limit) -> Regex:
        """A pattern that comes with a step, and may be hostile."""
        if len(pattern) > FOREIGN_LENGTH:
            raise BadRule(f"a regular expression that comes with a step has at most {FOREIGN_LENGTH} characters")
        limit.spend(len(pattern) * COMPILING)
        return cls(pattern, FOREIGN_MEMORY)

    def __init__(self, pattern: str, memory: int = MEMORY) -> None:
        self._compiled = _compile(pattern, memory)
        if (
            "$" in pattern or r"\z" in pattern
        ):  # a pattern that is anchored at the end would not be looked for in a part
            self._compiled = _compile(rf"(?:{pattern})|\b\B", memory)
        self._slowest = SLOWEST * (10 + max(self._compiled.programsize, self._compiled.reverseprogramsize))
        self._part = int(PART / self._slowest) + 1

    def search(self, text: str, limit: Limit) -> bool:
        """Whether the pattern is found anywhere."""
        data = text.encode()
        return any(self._compiled.search(data, 0, end) is not None for end in self._ends(data, 0, limit))

    def replace(self, text: str, new: str, limit: Limit) -> str:
        """The text with everything that the pattern finds replaced."""
        data, put = text.encode(), new.encode()
        pieces: list[bytes] = []
        start = done = 0
        while start <= len(data) and (span := self._first(data, start, limit)) is not None:
            limit.grow(len(put))
            pieces += [data[done : span[0]], put]
            done = span[1]
            start = done if done > start else _next_character(data, start)
        return b"".join([*pieces, data[done:]]).decode()

    def _first(self, data: bytes, start: int, limit: Limit) -> tuple[int, int] | None:
        """Where the first match stands. Only the whole text shows how far it goes."""
        found: Any = None
        for end in self._ends(data, start, limit):
            found = self._compiled.search(data, start, end)
        return None if found is None else found.span()

    def _ends(self, data: bytes, start: int, limit: Limit) -> Iterator[int]:
        """The ends of ever longer parts of the data, the last of which is all of it."""
        end = start + self._part
        while end < len(data):
            limit.spend(PART)
            yield end
            end += self._part
        limit.spend((len(data) - end + self._part) * self._slowest)
        yield len(data)


def _next_character(data: bytes, start: int) -> int:
    start += 1
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return start


def _compile(pattern: str, memory: int) -> Any:
    try:
        import re2
    except ImportError:
        problem = f"rules need packages that are not installed; run: {install_command('rules')}"
        raise MissingPackage(problem, "re2") from None
    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, memory
    try:
        return re2.compile(pattern, options)
    except UnicodeError as error:
        raise BadRule(f"bad regular expression {pattern!r}: {error}") from None
    except re2.error as error:
        why = error.args[0].decode() if error.args and isinstance(error.args[0], bytes) else error
        raise BadRule(f"bad regular expression {pattern!r}: {why}") from None
