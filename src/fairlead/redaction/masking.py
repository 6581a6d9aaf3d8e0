"""Shows a step to the human who approves it: all of it, with marks in place of secrets.

What the human approves is what runs. So a mark hides only characters that look random, and never whitespace, shell
syntax or another command. In a command, it stands only where a program takes plain data (see `data_places`). Values
that the caller brought in its variables hide nothing. Where a secret cannot be hidden like that, the text stays as it
is, and its path is returned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import FairleadError
from ..escaping import escape
from ..lifecycle import Step
from ..rendering import DERIVED
from ..wire.steps import plain_envelope
from .data_places import FIRST_MARK, holds_only_data
from .redactor import Redactor, Scope, current, current_base, redact, redact_text, within
from .shapes import Span

if TYPE_CHECKING:
    from ..approvals import ApprovalRequest

LIMIT = 64 << 10
"""In a text with more characters, nothing is hidden."""
SHOWN = 32_768
"""How many characters of a value are shown. A note says how many more there are."""
LONG = 20
"""A value with more lines gets a note with their number, since the first ones may scroll away."""
WIDE = 32
"""Characters of a name up to which all others are aligned with it."""

_SYNTAX = frozenset(";|&<>()$`\"'\\{}*?[]#!~")
_OF_A_SHELL = re.compile(r"[;|&$`]")
_PROGRAM = re.compile(r"\s*[\w./-]*[A-Za-z][\w./-]*(?:\s+-\S*)*\s+[\"']?")
_RUNNER = re.compile(
    r"(?:\A|[\s\"'/])(?:(?:\w{0,4}sh|eval|exec|sudo|doas|su|env|xargs|watch|nohup|timeout)\s"
    r"|(?:python|pypy|node|deno|bun|perl|ruby|php|lua)[\d.]*\s+-)"
)
"""A program before a text that runs what a later word of its line says, such as `ssh HOST '...'`."""
_CODE = re.compile(r"\w\s*\(|<<")
LONGEST_PROGRAM = 128
_ADDRESS = re.compile(r"https?://[^\s;|$`]*")
_BREAKS = re.compile(r"[\s;|&<>()`\x00-\x1f\x7f-\x9f]+")
_KEY_LINE = re.compile(r"-----(?:BEGIN|END) [A-Z0-9 ]{1,80}-----")
_KEY_TAIL = re.compile(r"(?:\\*[nr])?[A-Za-z0-9+/=]{1,15}")
_WORD = re.compile(r"[A-Za-z][a-z]{3,}|[A-Z]{4,}")
_NO_LETTER = re.compile(r"[^A-Za-z0-9]")
_OF_A_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_+/.~%:^*!#?-]*={0,2}")
_HOST = re.compile(r"(?:[\w-]+\.)+[A-Za-z]{2,24}(?:[:/].*)?")  # or a file
_FOLDER = re.compile(r"/[a-z_.-]{2,}(?=/|\Z)|\A[a-z_.-]{2,}/")
_OF_A_PASSWORD = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[^\s/-][^\s/]{5,}")
_NAME = re.compile(r"[A-Za-z]+\d*(?:[-_.:=][A-Za-z0-9]+)+")
_SHORTEST_RANDOM = 12


class CannotBeShown(FairleadError):
    """A secret in a question cannot be hidden without hiding more. It names the places."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = list(paths)
        super().__init__(
            f"could not be shown: {', '.join(self.paths)}; a secret there cannot be hidden without hiding what runs, "
            "so hand it over in a variable or a file"
        )

    def __reduce__(self) -> Any:  # it may come from another process
        return type(self), (self.paths,)


# --- hiding secrets -------------------------------------------------------------------------------------


def mask_step(step: Step) -> tuple[dict[str, Any], list[str]]:
    """A step for a human to judge, and the paths where a secret could not be hidden."""
    data = plain_envelope(step, str)
    masker = _Masker(data)
    shown = redact(data)
    judged = {name: data[name] for name in ("tool", "args", "target", "cwd") if name in data}
    return shown | masker.mask(judged, {name: shown[name] for name in judged}, ""), masker.unhidden


def mask_text(text: str, step: Step) -> tuple[str, bool]:
    """A text for a human to judge a step by, and whether all secrets in it are hidden."""
    masker = _Masker(plain_envelope(step, str))
    return "".join(masker.text(part, current().text(part), "text") for part in masker.parts(text)), not masker.unhidden


def _command_of(step: Mapping[str, Any]) -> str:
    target = step.get("target")
    return str(target.get("command") or "") if isinstance(target, dict) else ""


def show(request: ApprovalRequest) -> tuple[str | None, dict[str, Any]]:
    """The question and the step of a request for a list that is kept and sent around.

    Raises `CannotBeShown` where a secret cannot be hidden without hiding what runs.
    """
    step, paths = mask_step(request.step)
    question, hidden = (None, True) if request.question is None else mask_text(request.question, request.step)
    if paths or not hidden:
        raise CannotBeShown([*paths, *([] if hidden else ["the question"])])
    return question, step


class Change(NamedTuple):
    """What hooks changed of a step: a field, or an argument such as args.command. An absent value is None."""

    path: str
    before: Any
    after: Any


class QuestionView(NamedTuple):
    """A question as a human sees it: its text, the final step, and what hooks changed."""

    question: str | None
    step: dict[str, Any]
    changes: list[Change]


def show_all(request: ApprovalRequest) -> QuestionView:
    """`show`, and what hooks changed of the step."""
    question, step = show(request)
    return QuestionView(question, step, list(_changes(request, step)))


def show_with(redactor: Redactor, base: Redactor, request: ApprovalRequest) -> QuestionView:
    """`show_all` in a scope of these redactors, also in another process."""
    with within(Scope.of(redactor, base)):
        return show_all(request)


def _changes(request: ApprovalRequest, shown: dict[str, Any]) -> Iterator[Change]:
    """What differs between the step as it came and the final one.

    The texts themselves are compared, so that a change that only concerns a secret is listed, too. What came does not
    run: where a secret in it cannot be hidden without hiding more, more is hidden.
    """
    if request.original is None or request.original is request.step:
        return
    old, new = plain_envelope(request.original, str), plain_envelope(request.step, str)
    if old == new:
        return
    before, unhidden = mask_step(request.original)
    strict = redact(old)
    for path in _differing(old, new):
        hides_too_little = any(one == path or one.startswith(f"{path}.") for one in unhidden)
        yield Change(redact_text(path), _at(strict if hides_too_little else before, path), _at(shown, path))


def _differing(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*old, *new]):
        if name == "args":
            args, others = old.get(name) or {}, new.get(name) or {}
            yield from (f"args.{key}" for key in dict.fromkeys([*args, *others]) if args.get(key) != others.get(key))
        elif name not in DERIVED and old.get(name) != new.get(name):
            yield name


def _at(step: Mapping[str, Any], path: str) -> Any:
    name, _, key = path.partition(".")
    value = step.get(name)
    return value.get(key) if key and isinstance(value, dict) else None if key else value


class _Masker:
    """Walks a value beside its redacted copy, and hides what the copy hides where that is safe.

    In a step with a command, it hides only what looks random. In others, it also hides what looks like a password.
    """

    def __init__(self, step: Mapping[str, Any]) -> None:
        self.unhidden: list[str] = []
        self._redactor, self._base = current(), current_base()
        self._args = step.get("args")
        self._command = _command_of(step)
        self._masked: dict[tuple[str, str], str | None] = {}  # a command is among the arguments and in the target

    @cached_property
    def _hides_nothing(self) -> bool:
        """Whether a program or code of the step may run or decode anything in it."""
        if self._command and not holds_only_data(self._command, self._command, {}):
            return True
        return _has_code(self._args, self._command)

    def mask(self, value: Any, clean: Any, path: str) -> Any:
        if isinstance(value, dict) and isinstance(clean, dict):
            return dict(self._items(value, clean, path))
        if isinstance(value, (list, tuple)) and isinstance(clean, list):
            return self._list(value, clean, path)
        if isinstance(value, (bytes, bytearray)):  # which JSON would hide in base64
            value = repr(bytes(value))
            clean = clean if isinstance(clean, str) else self._redactor.text(value)
        if isinstance(value, str) and isinstance(clean, str):
            return self.text(value, clean, path)
        if isinstance(value, (dict, list, tuple)):  # nested too deeply for the redactor
            self.unhidden.append(path)
            return value
        if value != clean:
            self.unhidden.append(path)  # no number looks random
        return value

    def _items(self, value: dict[Any, Any], clean: dict[Any, Any], path: str) -> Iterator[tuple[Any, Any]]:
        taken: set[Any] = set()
        for (key, item), (other, rest) in zip(value.items(), clean.items(), strict=True):
            free = name = self.text(key, other, f"{path}.{other}") if isinstance(key, str) else key
            number = 2
            while free in taken:
                free, number = f"{name} {number}", number + 1
            taken.add(free)
            yield free, self.mask(item, rest, f"{path}.{other}" if path else str(other))

    def _list(self, value: list[Any] | tuple[Any, ...], clean: list[Any], path: str) -> list[Any]:
        """A list with marks. Its texts may be the words of a command, so only the step's own command gets marks."""
        masked = []
        for at, (item, other) in enumerate(zip(value, clean, strict=True)):
            if isinstance(item, str) and item not in (other, self._command):
                self.unhidden.append(f"{path}.{at}")
                masked.append(item)
            else:
                masked.append(self.mask(item, other, f"{path}.{at}"))
        return masked

    def parts(self, text: str) -> list[str]:
        """A text, split around an argument that it quotes, unless that would change which secrets are found in it."""
        args = [*self._args.values()] if isinstance(self._args, dict) else []
        quotes = [arg for arg in (self._command, *args) if isinstance(arg, str) and arg and arg in text]
        parts = [*text.partition(max(quotes, key=len))] if quotes else [text]
        starts = accumulate(map(len, parts), initial=0)
        spans = [
            (start + at, end + at, kind)
            for at, part in zip(starts, parts, strict=False)
            for start, end, kind in self._redactor.spans(part)
        ]
        return parts if spans == self._redactor.spans(text) else [text]

    def text(self, text: str, clean: str, path: str) -> str:
        if text == clean:
            return text
        if (text, clean) not in self._masked:
            self._masked[text, clean] = self._with_marks(text, clean)
        masked = self._masked[text, clean]
        if masked is None:
            self.unhidden.append(path)
        return text if masked is None else masked

    def _with_marks(self, text: str, clean: str) -> str | None:
        """The text with marks inside words; None if these would hide more than secrets."""
        spans = self._base.spans(text)
        found = self._redactor.spans(text)
        if self._redactor is not self._base and not _is_covered(found, spans):
            return None  # a caller must not choose what is hidden of its own call
        if _with_marks(text, found, (f"[redacted: {kind}]" for _, _, kind in found)) != clean:
            spans = [(0, len(text), "secret")]  # for the name of its key: it is one as a whole
        if self._hides_nothing or len(text) > LIMIT:
            return None
        may_run = self._is_run(text, spans)
        if not may_run and _CODE.search(text):
            return None
        masks = _masks(text, spans, _looks_random if may_run or self._command else _looks_secret)
        if masks is None or (may_run and not _holds_only_data(text, masks)):
            return None
        return _with_marks(text, masks, (_mark(kind) for _, _, kind in masks))

    def _is_run(self, text: str, spans: list[Span]) -> bool:
        """Whether a shell may run a text: it is a step's command or more than a word of it, or reads like a script.

        Any argument of a tool that is not known, and any file, may be a script.
        """
        if text == self._command or (text in self._command and not all(map(_is_plain, text))):
            return True
        if _ADDRESS.fullmatch(text):
            return False
        return _OF_A_SHELL.search(text) is not None or any(
            _PROGRAM.fullmatch(line) or _RUNNER.search(line) for line in (_line_before(text, at) for at, _, _ in spans)
        )


def _line_before(text: str, at: int) -> str:
    return text[max(text.rfind("\n", 0, at) + 1, at - LONGEST_PROGRAM) : at]


def _has_code(value: Any, command: str) -> bool:
    """Whether any text in a value calls a function, or any list in it may be the words of a command."""
    left, size = [value], 0
    while left:
        one = left.pop()
        if isinstance(one, dict):
            left += chain.from_iterable(one.items())
        elif isinstance(one, (list, tuple)):
            if any(isinstance(item, str) for item in one) and command not in one:
                return True
            left += one
        else:
            text = one.decode(errors="replace") if isinstance(one, (bytes, bytearray)) else one
            size += len(text) if isinstance(text, str) else 0
            if size > LIMIT or (isinstance(text, str) and text != command and _CODE.search(text)):
                return True
    return False


def _holds_only_data(text: str, masks: list[Span]) -> bool:
    hidden = {chr(FIRST_MARK + at): text[start:end] for at, (start, end, _) in enumerate(masks)}
    return holds_only_data(text, _with_marks(text, masks, hidden), hidden)


def _mark(kind: str) -> str:
    """A mark that is one word, so that a command has as many words as before."""
    return f"[redacted:{kind.replace(' ', '-')}]"


def _is_plain(character: str) -> bool:
    """Whether a mark may hide this: it is no whitespace, no shell syntax, and can be seen."""
    return character.isprintable() and not character.isspace() and character not in _SYNTAX


def _is_covered(spans: list[Span], by: list[Span]) -> bool:
    """Whether each of these spans is within one of the others. Both are in order."""
    others = iter(by)
    first = last = -1
    for start, end, _ in spans:
        while last < end and (other := next(others, None)):
            first, last, _ = other
        if not first <= start or last < end:
            return False
    return True


def _looks_random(value: str) -> bool:
    """Whether a text is nothing but random: no program, option, path, host, name or word of any language.

    It has letters and digits and few signs, and words are little more than half of it. Chance makes some.
    """
    letters = _NO_LETTER.sub("", value)
    digits = sum(map(str.isdigit, letters))
    joints = len(value.rstrip("=")) - len(letters)
    if len(letters) < _SHORTEST_RANDOM or not 2 <= digits <= len(letters) - 2 or joints * 8 > len(value):
        return False
    if not _OF_A_KEY.fullmatch(value) or _HOST.fullmatch(value) or (len(value) < 40 and _FOLDER.search(value)):
        return False
    return sum(map(len, _WORD.findall(value))) * 5 <= len(letters) * 3


def _looks_secret(value: str) -> bool:
    """Whether a text looks like a password: it has letters and digits, and is no option, path, host or name."""
    if _looks_random(value):
        return True
    return _OF_A_PASSWORD.fullmatch(value) is not None and not (_NAME.fullmatch(value) or _HOST.fullmatch(value))


def _masks(text: str, spans: list[Span], is_secret: Callable[[str], bool]) -> list[Span] | None:
    """What marks stand for: the plain characters of each secret. None if that might hide more than a secret."""
    masks: list[Span] = []
    for start, end, kind in spans:
        key_lines = [(found.start() + start, found.end() + start) for found in _KEY_LINE.finditer(text[start:end])]
        for last, word in _words(text, start, end, key_lines):
            if is_secret(text[slice(*word)]):
                masks += [(*run, kind) for run in _runs(text, *word)]
            elif not (last and key_lines and _KEY_TAIL.fullmatch(text, *word)):  # a key's last few letters may be seen
                return None
    return masks


def _words(text: str, start: int, end: int, key_lines: list[tuple[int, int]]) -> Iterator[tuple[bool, tuple[int, int]]]:
    """The words of a secret but for the first and last lines of a key, and whether one is before such a line."""
    at = start
    for stop, after in [*key_lines, (end, end)]:
        gaps = [*_BREAKS.finditer(text, at, stop)]
        edges = [at, *(edge for gap in gaps for edge in gap.span()), stop]
        words = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
        for word in words:
            yield word == words[-1] and stop < end, word
        at = after


def _runs(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The longest pieces of a text that have only plain characters."""
    first = start
    for at in range(start, end + 1):
        if at == end or not _is_plain(text[at]):
            if first < at:
                yield first, at
            first = at + 1


def _with_marks(text: str, masks: list[Span], marks: Iterable[str]) -> str:
    pieces, done = [], 0
    for (start, end, _), mark in zip(masks, marks, strict=True):
        pieces += [text[done:start], mark]
        done = end
    return "".join([*pieces, text[done:]])


# --- laying it out --------------------------------------------------------------------------------------


def rows_of(step: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What a human is shown of a step about a tool, given as JSON: the tool, all its arguments, and its target.

    The names of arguments are the caller's words, so they have a prefix that no other row has.
    """
    about = ", ".join(str(step[name]) for name in ("kind", "safety") if step.get(name))
    yield "tool", f"{step.get('tool')} ({about})"
    args, target = step.get("args") or {}, step.get("target") or {}
    yield from ((f"args.{name}", _written(value)) for name, value in args.items())
    shown = {_written(value) for value in args.values()}
    for name, value in target.items() if isinstance(target, Mapping) else ():
        texts = value if isinstance(value, (list, tuple)) else [value]
        if not {_written(text) for text in texts} <= shown:
            yield f"target.{name}", _written(value)
    if step.get("cwd"):
        yield "cwd", str(step["cwd"])


def _written(value: Any) -> str:
    import json

    return (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    )


def lay_out(rows: Iterable[tuple[str, str]], indent: str = "  ") -> str:
    """Rows of names and texts. All of a text is seen, and no text can pass for another row."""
    table = [(escape(name), *_seen(text)) for name, text in rows]
    width = max((len(name) for name, _, _ in table if len(name) <= WIDE), default=0)
    lines: list[str] = []
    for name, notes, parts in table:
        lines += [f"{indent}{name.ljust(width)}  {parts[0]}", *(f"{indent}{' ' * width}| {part}" for part in parts[1:])]
        lines += [f"{indent}{' ' * width}  ({note})" for note in notes]
    return "\n".join(line.rstrip() for line in lines)


def _seen(text: str) -> tuple[list[str], list[str]]:
    """The notes about a text, and its lines."""
    rest = len(text) - SHOWN
    parts = escape(text[:SHOWN], keep_lines=True).split("\n")
    notes = [f"{len(parts)} lines"] if len(parts) > LONG else []
    return [*notes, *([f"NOT ALL OF IT IS SHOWN: {rest} more characters"] if rest > 0 else [])], parts
