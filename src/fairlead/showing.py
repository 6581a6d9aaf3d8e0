"""What a human who decides is shown of a step: all of it, with nothing hidden but secrets inside words.

What is approved is what was shown. So a mark here stands for characters of one word and never for whitespace, for
shell syntax or for another command, and a shell would read the same commands with the marks in place. A text in which
a secret cannot be hidden like that is left as it is, and said to be.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .commandline import Command, Line, TooMuch, Work
from .errors import FairleadError
from .escaping import escape
from .guard import SHELLS
from .lifecycle import Step
from .redaction import Redactor, Scope, current, redact, within
from .secret_shapes import Span
from .wire import plain

if TYPE_CHECKING:
    from .approvals import ApprovalRequest

SHOWN = 32_768
"""Characters of one value that are shown. How many more there are is said."""
LONG = 20
"""Lines of a value above which their number is said, since the first ones may have scrolled away."""
WIDE = 32
"""Characters of a name up to which all others are aligned with it."""

_SYNTAX = frozenset(";|&<>()$`\"'\\{}*?[]#!~")
_BREAKS = re.compile(r"[\s;|&<>()`\x00-\x1f\x7f-\x9f]+")
_KEY_LINE = re.compile(r"-----(?:BEGIN|END) [A-Z0-9 ]{1,80}-----")
_RANDOM = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*\d)[\w+=][\w+/=.-]{15,}", re.ASCII)
_KEY_TAIL = re.compile(r"(?:\\*[nr])?[A-Za-z0-9+/=]{1,15}")
_FIRST_TOKEN = 0xF0000  # of a private plane of Unicode, which commands do not use


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
    """A step for a human to judge, and the paths where a secret was not hidden, because that would hide more."""
    data = plain(step, str)
    target = data.get("target")
    masker = _Masker(current(), str(target.get("command") or "") if isinstance(target, dict) else "")
    shown = redact(data)
    judged = {name: data[name] for name in ("tool", "args", "target") if name in data}
    return shown | masker.mask(judged, {name: shown[name] for name in judged}, ""), masker.unhidden


def mask_text(text: str) -> tuple[str, bool]:
    """A text for a human to judge by, and whether all secrets in it are hidden."""
    masker = _Masker(current(), "")
    return masker.text(text, current().text(text), "text"), not masker.unhidden


def show(request: ApprovalRequest) -> tuple[str | None, dict[str, Any]]:
    """The question and the step of a request for a list that is kept and sent around.

    Raises `CannotBeShown` where a secret cannot be hidden without hiding what runs.
    """
    step, paths = mask_step(request.step)
    question, hidden = (None, True) if request.question is None else mask_text(request.question)
    if paths or not hidden:
        raise CannotBeShown([*paths, *([] if hidden else ["the question"])])
    return question, step


def show_with(redactor: Redactor, request: ApprovalRequest) -> tuple[str | None, dict[str, Any]]:
    """`show` with this redactor, also in another process."""
    with within(Scope.of(redactor)):
        return show(request)


class _Masker:
    """Walks a value beside its redacted copy, and hides what the copy hides, as far as that is inside words."""

    def __init__(self, redactor: Redactor, command: str) -> None:
        self.unhidden: list[str] = []
        self._redactor = redactor
        self._command = command
        self._masked: dict[tuple[str, str], str | None] = {}  # a command is among the arguments and in the target

    def mask(self, value: Any, clean: Any, path: str) -> Any:
        if isinstance(value, dict) and isinstance(clean, dict):
            return dict(self._items(value, clean, path))
        if isinstance(value, (list, tuple)) and isinstance(clean, list):
            both = zip(value, clean, strict=True)
            return [self.mask(item, other, f"{path}.{at}") for at, (item, other) in enumerate(both)]
        if isinstance(value, (bytes, bytearray)):  # which JSON would hide in base64
            value = repr(bytes(value))
            clean = clean if isinstance(clean, str) else self._redactor.text(value)
        if isinstance(value, str) and isinstance(clean, str):
            return self.text(value, clean, path)
        if isinstance(value, (dict, list, tuple)):  # nested too deeply for the redactor
            self.unhidden.append(path)
            return value
        return value if value == clean else _mark("value")  # a number is one word

    def _items(self, value: dict[Any, Any], clean: dict[Any, Any], path: str) -> Iterator[tuple[Any, Any]]:
        taken: set[Any] = set()
        for (key, item), (other, rest) in zip(value.items(), clean.items(), strict=True):
            free = name = self.text(key, other, f"{path}.{other}") if isinstance(key, str) else key
            number = 2
            while free in taken:
                free, number = f"{name} {number}", number + 1
            taken.add(free)
            yield free, self.mask(item, rest, f"{path}.{other}" if path else str(other))

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
        spans = self._redactor.spans(text)
        if _with_marks(text, spans, (f"[redacted: {kind}]" for _, _, kind in spans)) != clean:
            spans = [(0, len(text), "secret")]  # for the name of its key: it is one as a whole
        masks = _masks(text, spans)
        if masks is None or (self._is_run(text) and not _reads_alike(text, masks)):
            return None
        return _with_marks(text, masks, (_mark(kind) for _, _, kind in masks))

    def _is_run(self, text: str) -> bool:
        """Whether a text is the command of a step, or a part of it that is more than a word."""
        return text == self._command or (text in self._command and not all(map(_is_plain, text)))


def _mark(kind: str) -> str:
    """A mark that is one word, so that a command has as many words as before."""
    return f"[redacted:{kind.replace(' ', '-')}]"


def _is_plain(character: str) -> bool:
    """Whether a mark may hide this: it is no whitespace, no shell syntax, and can be seen."""
    return character.isprintable() and not character.isspace() and character not in _SYNTAX


def _masks(text: str, spans: list[Span]) -> list[Span] | None:
    """What marks stand for: the plain characters of each secret. None if that might hide more than a secret.

    Where a secret ends that runs on over whitespace or syntax is not known. Beyond its first word, only what looks
    random is taken for one.
    """
    masks: list[Span] = []
    for start, end, kind in spans:
        key_lines = [(found.start() + start, found.end() + start) for found in _KEY_LINE.finditer(text[start:end])]
        for first, last, word in _words(text, start, end, key_lines):
            runs = list(_runs(text, word[0], word[1]))
            if first or all(_RANDOM.fullmatch(text, *run) for run in runs):
                masks += [(*run, kind) for run in runs]
            elif not (last and key_lines and _KEY_TAIL.fullmatch(text, *word)):  # a key's last few letters may be seen
                return None
    return masks


def _words(
    text: str, start: int, end: int, key_lines: list[tuple[int, int]]
) -> Iterator[tuple[bool, bool, tuple[int, int]]]:
    """The words of a secret but for the first and last lines of a key: whether first, whether before such a line."""
    at = start
    for stop, after in [*key_lines, (end, end)]:
        gaps = [*_BREAKS.finditer(text, at, stop)]
        edges = [at, *(edge for gap in gaps for edge in gap.span()), stop]
        words = [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]
        for word in words:
            yield word[0] == start, word == words[-1] and stop < end, word
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


# --- reading commands -----------------------------------------------------------------------------------


def _reads_alike(text: str, masks: list[Span]) -> bool:
    """Whether a shell would find the same commands and words with marks in place, and every program in sight."""
    hidden = {chr(_FIRST_TOKEN + n): text[start:end] for n, (start, end, _) in enumerate(masks)}
    if any(token in text for token in hidden):
        return False
    try:
        return _is_same(_with_marks(text, masks, hidden), text, hidden, 0)
    except TooMuch:
        return False


def _is_same(masked: str, text: str, hidden: dict[str, str], depth: int) -> bool:
    found, run = (Line(one, "/", Work({"HOME": "~"}), depth) for one in (masked, text))
    if not (found.sound and run.sound) or [*map(len, found.pipelines)] != [*map(len, run.pipelines)]:
        return False
    if _is_expanded([word for pipeline in found.pipelines for command in pipeline for word in command.words], hidden):
        return False
    both = zip(found.pipelines, run.pipelines, strict=True)
    return all(_is_same_pipeline(shown, truly, hidden, depth) for shown, truly in both)


def _is_expanded(words: list[str], hidden: Mapping[str, str]) -> bool:
    """Whether a variable brings something hidden to the start of a word: `T=--upload-file=x; curl $T`.

    There it may be an option, a file or a program. What looks random is none of these.
    """
    for token, value in hidden.items():
        holding = [word for word in words if token in word]
        if len(holding) > 1 and not _RANDOM.fullmatch(value) and any(word.startswith(token) for word in holding):
            return True
    return False


def _is_same_pipeline(found: list[Command], run: list[Command], hidden: dict[str, str], depth: int) -> bool:
    quoted: list[tuple[str, str]] = []
    for shown, truly in zip(found, run, strict=True):
        texts, others = ([*one.words, *one.outputs, *one.given, one.input, one.folder] for one in (shown, truly))
        program = shown.program()[0]
        if [_restore(text, hidden) for text in texts] != others or program != truly.program()[0]:
            return False
        if any(os.path.basename(word) == program and hidden.keys() & set(word) for word in shown.words):
            return False  # the folder of a program says which one it is
        quoted += [(a, b) for a, b in zip(texts, others, strict=True) if a != b]
    if not any(SHELLS & set(map(os.path.basename, command.words)) for command in run):
        return True
    return all(_is_same_in_shell(*both, hidden, depth) for both in quoted)


def _is_same_in_shell(masked: str, text: str, hidden: dict[str, str], depth: int) -> bool:
    """Whether what a shell is given, and so may run, has its commands in sight. What looks random is no command."""
    if not all(map(_is_plain, text)):
        return _is_same(masked, text, hidden, depth + 1)
    return all(_RANDOM.fullmatch(value) for token, value in hidden.items() if token in masked)


def _restore(text: str, hidden: Mapping[str, str]) -> str:
    return "".join(hidden.get(character, character) for character in text) if not text.isascii() else text


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
    """What must be said of a text, and its lines."""
    rest = len(text) - SHOWN
    parts = escape(text[:SHOWN], keep_lines=True).split("\n")
    notes = [f"{len(parts)} lines"] if len(parts) > LONG else []
    return [*notes, *([f"NOT ALL OF IT IS SHOWN: {rest} more characters"] if rest > 0 else [])], parts
