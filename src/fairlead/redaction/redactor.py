"""Redaction replaces what looks like a secret before it leaves the process.

A value is a secret by its shape (well-known keys and tokens, private keys), by where it stands (passwords in
addresses), by the name it is given to (`password`, `api_key`, ...), or because the user listed it. A mark
says what kind it was: `[redacted: github token]`.
"""

from __future__ import annotations

import copy
import os
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, NamedTuple

from ..errors import FairleadError
from .command_lines import command_secrets
from .named_secrets import named_secrets
from .named_values import stands_for_a_secret
from .names import WORDS, is_secret_name, plain_name
from .shapes import KINDS, Span, known_secrets, placed_secrets

_MARK = re.compile(r"\[redacted: [a-z0-9.]+(?: [a-z0-9.]+){0,3}\]")
_MARKS = "[redacted: "
_SHORTEST = 7  # pwd=abc
_SHORT, _REMEMBERED = 64, 4096
_BESIDE = 3  # lines, with its own
_READ_AGAIN = 4096  # characters of a text, at most
_SHORTEST_LAST, _LONGEST_LAST = 1 << 8, 1 << 16
_DEEPEST = 250
_SHORTEST_LISTED, _SHORTEST_VARIABLE = 4, 8
_ORDINARY = re.compile(r"[A-Za-z]+|[\d.:-]+|[~.]{0,2}(?:/[\w.@~+-]*)+|[a-z]+://[^@]*")
_PROCESS_KEY = os.urandom(32)

Path = tuple[Any, ...]
"""Where something is: the path of what holds it, and its key or index there; () at the top."""


Environ = Mapping[str, str]


class Redaction(NamedTuple):
    """A secret that was taken out: where, its kind, and a keyed digest that equal secrets share."""

    path: str
    kind: str
    digest: str


class Redactor:
    """Takes secrets out of texts and of JSON.

    To what it knows by itself come `names` whose values are secret, `patterns` (regular expressions; a group named
    `secret` is all that is taken out, if there is one), `values` to remove wherever they appear, and the values of the
    variables of `environ` that have a secret's name. Digests are made with `key`, or else with a key of this process.
    """

    def __init__(
        self,
        *,
        names: Iterable[str] = (),
        patterns: Iterable[str] = (),
        values: Iterable[str] = (),
        key: bytes | None = None,
        environ: Environ | Iterable[tuple[str, str]] | None = None,
    ) -> None:
        variables = environ.items() if isinstance(environ, Mapping) else environ or ()
        self._settings = (tuple(names), tuple(patterns), tuple(values), tuple(variables))
        names, patterns, values, variables = self._settings
        self._names = frozenset(plain_name(name) for name in names) - {""}
        self._words = WORDS + tuple(sorted({max(name.split("_"), key=len) for name in self._names}))
        self._patterns = tuple(_compiled(pattern) for pattern in patterns)
        listed = [*map(check_value, values), *self._variables(variables)]
        self._forms = {form: value for value in dict.fromkeys(listed) for form in _forms_of(value)}
        self._harmless: set[str] = set()  # short texts come again and again
        self._ordinary: set[str] = set()  # keys even more so: these are harmless, and no secret's name
        self._key = _PROCESS_KEY if key is None else key
        self._keyed: Redactor | None = None
        self._last: list[tuple[str, list[Span]]] = [("", [])]  # also of the one with another key

    def text(self, text: str) -> str:
        """A text without the secrets in it."""
        return self._clean(text, None, ())

    def value(self, value: Any) -> Any:
        """A copy of some JSON in which no secret is left that can be recognised."""
        return self._walk(value, (), None, 0)

    def record(self, value: Any, path: str = "") -> tuple[Any, list[Redaction]]:
        """The same copy, and a list of what was taken out of it."""
        found: list[Redaction] = []
        return self._walk(value, ((), path) if path else (), found, 0), found

    def keyed(self, key: bytes) -> Redactor:
        """The same, but for the key of its digests. It is made once."""
        twin = self._keyed
        if twin is None or twin._key != key:
            twin = copy.copy(self)
            twin._key = key
            self._keyed = twin
        return twin

    def extended(
        self, names: Iterable[str], patterns: Iterable[str], values: Iterable[str], environ: Environ
    ) -> Redactor:
        """One that takes out more. A variable that has another value here has both."""
        known = self._settings
        more = (
            tuple(dict.fromkeys((*known[0], *names))), tuple(dict.fromkeys((*known[1], *patterns))),
            tuple(dict.fromkeys((*known[2], *values))), tuple(dict.fromkeys((*known[3], *environ.items()))),
        )  # fmt: skip
        if more == known:
            return self
        return Redactor(names=more[0], patterns=more[1], values=more[2], environ=more[3], key=self._key)

    # --- texts

    def spans(self, text: str) -> list[Span]:
        """Where the secrets of a text are and of which kind, in order. What `text` replaces is just this."""
        last, found = self._last[0]
        if last == text:  # a command is among the arguments of a step and in its target
            return found
        found = _merged(text, list(self._spans(text)))
        if found:
            found = self._with_those_beside(text, found)
        if _SHORTEST_LAST < len(text) <= _LONGEST_LAST:
            self._last[0] = (text, found)
        return found

    def _with_those_beside(self, text: str, found: list[Span]) -> list[Span]:
        """The secrets of a text, with those that are only seen to be ones once the others have marks."""
        marked, marks = _mark(text, found)
        beside = _lines_beside(marked, marks)
        if sum(end - start for start, end in beside) > _READ_AGAIN:
            return found
        more = [
            (start + at, start + stop, kind)
            for start, end in beside
            for at, stop, kind in _merged(marked[start:end], list(self._spans(marked[start:end])))
        ]
        placed = [(_origin(start, marks), _origin(end, marks, end=True), kind) for start, end, kind in more]
        ends = [(start, end) for start, end, _ in placed]
        return sorted([*placed, *(span for span in found if not _is_within(*span[:2], ends))])

    def _clean(self, text: str, found: list[Redaction] | None, path: Path) -> str:
        if text in self._harmless:
            return text
        spans = self.spans(text)
        if found is not None and spans:
            where = _dotted(path)
            found += [Redaction(where, kind, self._digest(text[start:end])) for start, end, kind in spans]
        if not spans and len(text) <= _SHORT:
            _remember(text, self._harmless)
        return _mark(text, spans)[0] if spans else text

    def _spans(self, text: str) -> Iterator[Span]:
        """Every secret in a text, of those that overlap the one first that is to name it."""
        for form in self._forms:
            at = text.find(form)
            while at >= 0:
                yield at, at + len(form), "value"
                at = text.find(form, at + 1)
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                yield *match.span("secret" if "secret" in pattern.groupindex else 0), "pattern"
        if len(text) >= _SHORTEST:
            yield from known_secrets(text)
            lowered = _lowered(text)
            yield from placed_secrets(text, lowered)
            yield from named_secrets(text, lowered, self._words, self._is_secret_name)
            yield from command_secrets(text, lowered, self._in_a_word)

    def _in_a_word(self, word: str) -> Iterator[Span]:
        """The secrets of a word of a command line, without its quotes."""
        lowered = _lowered(word)
        found = [*known_secrets(word), *placed_secrets(word, lowered)]
        found += named_secrets(word, lowered, self._words, self._is_secret_name)
        yield from _merged(word, found)

    def _digest(self, secret: str) -> str:
        """Equal secrets have equal digests. Without the key, a secret cannot be guessed from its digest."""
        import hashlib  # only who finds a secret pays for it
        import hmac

        known = self._forms.get(secret, secret).encode("utf-8", "surrogatepass")
        return "hmac-sha256:" + hmac.new(self._key, known, hashlib.sha256).hexdigest()[:32]

    # --- JSON

    def _walk(self, value: Any, path: Path, found: list[Redaction] | None, depth: int) -> Any:
        if isinstance(value, str):
            return self._clean(value, found, path)
        if isinstance(value, (bytes, bytearray)):
            return self._walk_bytes(value, path, found)
        if isinstance(value, (dict, list, tuple)):
            if depth >= _DEEPEST:
                return self._blank("", path, found, depth, "too deep")
            return (self._walk_dict if isinstance(value, dict) else self._walk_list)(value, path, found, depth + 1)
        if self._forms and value is not None and not isinstance(value, bool):
            return self._walk_number(value, path, found)
        return value

    def _walk_dict(self, value: Any, path: Path, found: list[Redaction] | None, depth: int) -> dict[Any, Any]:
        clean: dict[Any, Any] = {}
        label = value.get("name", value.get("key")) if "value" in value else None  # {"name": "TOKEN", "value": ...}
        for key, item in value.items():
            if key in self._ordinary and label is None:
                harmless = item.__class__ is str and item in self._harmless
                clean[key] = item if harmless else self._walk(item, (path, key), found, depth)
                continue
            place = self._key_of(key, clean, path, found)
            name = label if key == "value" and label is not None else key
            secret = isinstance(name, str) and self._is_secret_name(name)
            walk = self._blank if secret else self._walk
            clean[place] = walk(item, (path, place), found, depth)
            if name is key and not secret and key in self._harmless:
                _remember(key, self._ordinary)
        return clean

    def _key_of(self, key: Any, taken: Mapping[Any, Any], path: Path, found: list[Redaction] | None) -> Any:
        """A key without the secrets in it. Two keys that were secrets stay two."""
        if not isinstance(key, str):
            return key
        taken_out: list[Redaction] = []
        clean = free = self._clean(key, taken_out, ())
        number = 2
        while free in taken:
            free, number = f"{clean} {number}", number + 1
        if taken_out and found is not None:
            found += [one._replace(path=_dotted((path, free))) for one in taken_out]
        return free

    def _walk_list(self, value: Any, path: Path, found: list[Redaction] | None, depth: int) -> list[Any]:
        clean: list[Any] = []
        before: Any = None
        for index, item in enumerate(value):
            # ["mysql", "--password", "..."]
            secret = isinstance(before, str) and before[:1] == "-" and isinstance(item, str) and item[:1] != "-"
            walk = self._blank if secret and self._is_secret_name(before.strip("-")) else self._walk
            clean.append(walk(item, (path, index), found, depth))
            before = item
        return clean

    def _walk_bytes(self, value: bytes | bytearray, path: Path, found: list[Redaction] | None) -> Any:
        """Bytes, which JSON would hide in base64. Those with a secret in them become a text."""
        text = value.decode("utf-8", "replace")
        clean = self._clean(text, found, path)
        return value if clean == text else clean

    def _walk_number(self, value: Any, path: Path, found: list[Redaction] | None) -> Any:
        text = _shown(value)
        return self._blank(value, path, found, 0, "value") if any(form in text for form in self._forms) else value

    def _blank(self, value: Any, path: Path, found: list[Redaction] | None, depth: int, kind: str = "secret") -> Any:
        """What was given to a secret's name: nothing of it is left."""
        if isinstance(value, (dict, list, tuple)) and depth < _DEEPEST:
            if isinstance(value, dict):
                clean: dict[Any, Any] = {}
                for key, item in value.items():
                    place = self._key_of(key, clean, path, found)
                    clean[place] = self._blank(item, (path, place), found, depth + 1, kind)
                return clean
            return [self._blank(item, (path, at), found, depth + 1, kind) for at, item in enumerate(value)]
        if value is None or isinstance(value, bool) or (value == "" and kind == "secret"):
            return value
        if isinstance(value, str) and (_MARK.fullmatch(value) or stands_for_a_secret(value)):
            return self._clean(value, found, path)
        if found is not None:
            found.append(Redaction(_dotted(path), kind, self._digest(_shown(value))))
        return f"{_MARKS}{kind}]"

    # --- names and variables

    def _is_secret_name(self, name: str) -> bool:
        if is_secret_name(name):
            return True
        if not self._names:
            return False
        plain = plain_name(name)
        return plain in self._names or any(plain.endswith(f"_{own}") for own in self._names)

    def _variables(self, variables: Iterable[tuple[str, str]]) -> Iterator[str]:
        """The values of variables with a secret's name, unless the value is a word that any text may have."""
        for name, value in variables:
            ordinary = len(value) < _SHORTEST_VARIABLE or _ORDINARY.fullmatch(value) or stands_for_a_secret(value)
            if not ordinary and self._is_secret_name(name) and not _is_in_marks(value):
                yield value


def _remember(text: str, known: set[str]) -> None:
    if len(known) >= _REMEMBERED:
        known.clear()
    known.add(text)


def _merged(text: str, spans: list[Span]) -> list[Span]:
    """The spans in order; those that overlap, also with a mark of before, are one, which the first found names."""
    marks = [mark.span() for mark in _MARK.finditer(text)] if spans and _MARKS in text else []
    ranked = [
        (start, end, rank, kind)
        for rank, (start, end, kind) in enumerate(spans)
        if start < end and not _is_within(start, end, marks)
    ]
    if not ranked:
        return []
    ranked += [(start, end, len(spans), "") for start, end in marks]
    merged: list[tuple[int, int, int, str]] = []
    for start, end, rank, kind in sorted(ranked):
        if merged and start < merged[-1][1]:
            first, last, known, kept = merged[-1]
            merged[-1] = (first, max(last, end), *min((known, kept), (rank, kind)))
        else:
            merged.append((start, end, rank, kind))
    return [(start, end, kind) for start, end, _, kind in merged if kind]


_Moved = tuple[int, int, int, int]
"""A mark's start and end, and those of what it stands for."""


def _mark(text: str, spans: list[Span]) -> tuple[str, list[_Moved]]:
    """A text with marks in place of some spans, and where these are."""
    pieces: list[str] = []
    marks: list[_Moved] = []
    done = length = 0
    for start, stop, kind in spans:
        mark = f"{_MARKS}{kind}]"
        at = length + start - done
        pieces += [text[done:start], mark]
        marks.append((at, at + len(mark), start, stop))
        done, length = stop, at + len(mark)
    return "".join([*pieces, text[done:]]), marks


def _lines_beside(text: str, marks: list[_Moved]) -> list[tuple[int, int]]:
    """The lines of marks, with a few before and after them. None of them is there twice."""
    stretches: list[tuple[int, int]] = []
    for at, stop, _, _ in marks:
        if stretches and stop <= stretches[-1][1]:
            continue
        start, end = at, stop
        for _ in range(_BESIDE):
            start, end = text.rfind("\n", 0, max(start - 1, 0)) + 1, text.find("\n", end) + 1 or len(text)
        if stretches and start < stretches[-1][1]:
            start, _ = stretches.pop()
        stretches.append((start, end))
    return stretches


def _origin(at: int, marks: list[_Moved], *, end: bool = False) -> int:
    """Where a place of a marked text was before. Within a mark, that is an end of what the mark stands for."""
    before = (bisect_left if end else bisect_right)(marks, (at, 0, 0, 0) if end else (at, sys.maxsize)) - 1
    if before < 0:
        return at
    _, last, start, stop = marks[before]
    if at < last or (end and at == last):
        return stop if end else start
    return at + stop - last


def _is_within(start: int, end: int, marks: list[tuple[int, int]]) -> bool:
    at = bisect_right(marks, (start, sys.maxsize)) - 1
    return at >= 0 and end <= marks[at][1]


def _lowered(text: str) -> str:
    """The text in lower case, letter for letter: only this one becomes two."""
    return text.replace("\u0130", "I").lower()


def _dotted(path: Path) -> str:
    parts: list[str] = []
    while path:
        path, key = path
        parts.append(str(key))
    return ".".join(reversed(parts))


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return str(value)
    except Exception:  # an integer of too many digits
        return hex(value) if isinstance(value, int) else type(value).__name__


# --- what users give -------------------------------------------------------------------------------------


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise FairleadError(f"redaction: the pattern {pattern!r} is no regular expression: {error}") from None
    if gives_nothing_back(pattern):
        raise FairleadError(f"redaction: the pattern {pattern!r} {NOT_PORTABLE}")
    if compiled.search(""):
        raise FairleadError(f"redaction: the pattern {pattern!r} matches the empty text; say what a secret looks like")
    return compiled


_ESCAPE_OR_SET = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_ATOMIC = re.compile(r"\(\?>|(?:[*+?]|\{(?:\d+,?\d*|,\d+)\})\+")
NOT_PORTABLE = (
    "has an atomic group or a possessive quantifier, which other versions of Python match wrongly; write it without"
)


def gives_nothing_back(pattern: str) -> bool:
    """Whether a pattern has an atomic group or a possessive quantifier. Python matches those wrongly up to 3.11.4."""
    return _ATOMIC.search(_ESCAPE_OR_SET.sub("x", pattern)) is not None


def check_value(value: str) -> str:
    """The value, if it can be removed wherever it appears."""
    if len(value) < _SHORTEST_LISTED:
        raise FairleadError(f"redaction: a value to remove needs {_SHORTEST_LISTED} or more characters")
    if _is_in_marks(value):
        raise FairleadError("redaction: a value to remove is part of what is left in its place, '[redacted: ...]'")
    return value


def _is_in_marks(value: str) -> bool:
    return any(value in f"{_MARKS}{kind}]" for kind in (*KINDS, "secret", "value", "pattern", "too deep"))


def _forms_of(value: str) -> Iterator[str]:
    """A value as it is, and as JSON, Python, an address or base64 write it."""
    import base64
    import json
    from urllib.parse import quote

    yield value
    for form in (json.dumps(value)[1:-1], repr(value)[1:-1], quote(value, safe="", errors="replace")):
        if form != value:
            yield form
    encoded = value.encode("utf-8", "surrogatepass")
    if len(encoded) >= _SHORTEST_VARIABLE:
        yield base64.b64encode(encoded).decode()[: len(encoded) * 8 // 6]


# --- the redactor of the process ---------------------------------------------------------------------------

_current: Redactor | None = None


def configure(redactor: Redactor | None) -> None:
    """Redact with this one from now on; None is the default again."""
    global _current
    _current = redactor


def process_redactor() -> Redactor:
    """The redactor of the process. By default it also removes what the secret variables of the environment hold."""
    global _current
    if _current is None:
        _current = Redactor(environ=os.environ)
    return _current


def extend(
    *,
    names: Iterable[str] = (),
    patterns: Iterable[str] = (),
    values: Iterable[str] = (),
    environ: Environ | None = None,
) -> None:
    """Take out more from now on and everywhere in this process, beside what it takes out already."""
    configure(process_redactor().extended(names, patterns, values, environ or {}))


# --- within one request -----------------------------------------------------------------------------------


class Scope:
    """What is redacted within some requests only, beyond what the process redacts: their caller's variables.

    What a caller brings must neither hide anything from another caller's judges nor pile up in the process.
    """

    def __init__(self, *, values: Iterable[str] = (), environ: Environ | None = None) -> None:
        self._values = tuple(values)
        self._environ = dict(environ or {})
        self._fixed: tuple[Redactor, Redactor] | None = None
        self._made: tuple[Redactor, Redactor] | None = None  # the process's, and what was made of it

    @classmethod
    def of(cls, redactor: Redactor, base: Redactor) -> Scope:
        """The scope in which just this redactor is used, which takes out more than the process's, `base`."""
        scope = cls()
        scope._fixed = (base, redactor)
        return scope

    @property
    def redactor(self) -> Redactor:
        """The process's redactor, taking out more."""
        if self._fixed is not None:
            return self._fixed[1]
        base, made = process_redactor(), self._made
        if made is None or made[0] is not base:
            made = self._made = (base, base.extended((), (), self._values, self._environ))
        return made[1]

    @property
    def base(self) -> Redactor:
        """The process's redactor, which knows nothing that a caller has brought."""
        return process_redactor() if self._fixed is None else self._fixed[0]


_scope: ContextVar[Scope | None] = ContextVar("fairlead_redaction", default=None)


class within:  # noqa: N801 (it is used like a function, and costs less than a generator)
    """All that is redacted in this context meanwhile is redacted in this scope."""

    __slots__ = ("_scope", "_token")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __enter__(self) -> None:
        self._token = _scope.set(self._scope)

    def __exit__(self, *_: object) -> None:
        _scope.reset(self._token)


current_scope = _scope.get
"""The scope of this context; None if there is none. For what is redacted later, in another context."""


def redactor_of(scope: Scope | None) -> Redactor:
    """The redactor of a scope; without one, the process's."""
    return process_redactor() if scope is None else scope.redactor


def current() -> Redactor:
    """The redactor of this context."""
    return redactor_of(_scope.get())


def current_base() -> Redactor:
    """The process's redactor, as the scope of this context has it: without what a caller has brought."""
    scope = _scope.get()
    return process_redactor() if scope is None else scope.base


def redact(value: Any) -> Any:
    """A copy of some JSON in which no secret is left that can be recognised."""
    return current().value(value)


def redact_text(text: str) -> str:
    """A text without the secrets in it."""
    return current().text(text)
