"""What a human who decides is shown of a step: all of it, with nothing hidden but what looks random.

What is approved is what was shown. So a mark here stands for characters of one word and never for whitespace, for
shell syntax or for another command, and a shell would read the same programs with the marks in place. In a command it
stands for nothing that could mean something: no program, option, path, host or word looks random, whatever the name
is that it was given to, and however a shell comes to run it. Beside what runs or decodes a text, a mark could stand for
a whole program, so nothing is hidden there. What a caller has brought in its variables hides nothing at all. A text in
which a secret cannot be hidden like that is left as it is, and said to be.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

from .commandline import WRAPPERS, Command, Line, TooMuch, Work
from .errors import FairleadError
from .escaping import escape
from .guard import CODE, LIMIT, SHELLS
from .guarded_files import CHANGES, COPIES
from .lifecycle import Step
from .redaction import Redactor, Scope, current, current_base, redact, within
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
_OF_A_SHELL = re.compile(r"[;|&$`]")
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
    masker = _Masker(data)
    shown = redact(data)
    judged = {name: data[name] for name in ("tool", "args", "target", "cwd") if name in data}
    return shown | masker.mask(judged, {name: shown[name] for name in judged}, ""), masker.unhidden


def mask_text(text: str, step: Step) -> tuple[str, bool]:
    """A text for a human to judge a step by, and whether all secrets in it are hidden."""
    masker = _Masker(plain(step, str))
    return masker.text(text, current().text(text), "text"), not masker.unhidden


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


def show_with(redactor: Redactor, base: Redactor, request: ApprovalRequest) -> tuple[str | None, dict[str, Any]]:
    """`show` in a scope of these redactors, also in another process."""
    with within(Scope.of(redactor, base)):
        return show(request)


class _Masker:
    """Walks a value beside its redacted copy, and hides what the copy hides, as far as that looks random.

    Beside a command, only what no command could mean is hidden. Elsewhere, what has the look of a password is, too.
    """

    def __init__(self, step: Mapping[str, Any]) -> None:
        self.unhidden: list[str] = []
        self._redactor, self._base = current(), current_base()
        self._args = step.get("args")
        self._command = _command_of(step)
        self._in_a_command = False  # whether this is among the words of a list that runs or decodes one of them
        self._masked: dict[tuple[str, str], str | None] = {}  # a command is among the arguments and in the target

    @cached_property
    def _hides_nothing(self) -> bool:
        """Whether a step may run or decode what stands anywhere in it: its command does, or any of its arguments."""
        if self._command:
            return not _reads_alike(self._command, [])
        return _runs_or_decodes(_joined(self._args))

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
        """A list with marks. It may be the words of a command, of which a shell's script is judged by itself."""
        outer, inner = self._in_a_command, self._in_a_command or _runs_or_decodes(_joined(value))
        masked = []
        for at, (item, other) in enumerate(zip(value, clean, strict=True)):
            self._in_a_command = inner and item != self._command
            masked.append(self.mask(item, other, f"{path}.{at}"))
        self._in_a_command = outer
        return masked

    def text(self, text: str, clean: str, path: str) -> str:
        if text == clean:
            return text
        if (text, clean) not in self._masked:
            self._masked[text, clean] = self._with_marks(text, clean)
        masked = None if self._in_a_command else self._masked[text, clean]
        if masked is None:
            self.unhidden.append(path)
        return text if masked is None else masked

    def _with_marks(self, text: str, clean: str) -> str | None:
        """The text with marks inside words; None if these would hide more than secrets."""
        spans = self._base.spans(text)
        found = self._redactor.spans(text)
        if self._redactor is not self._base and not _is_covered(found, spans):
            return None  # what a caller has brought hides nothing from who judges what the caller does
        if _with_marks(text, found, (f"[redacted: {kind}]" for _, _, kind in found)) != clean:
            spans = [(0, len(text), "secret")]  # for the name of its key: it is one as a whole
        if self._hides_nothing or _runs_or_decodes(text):
            return None
        may_run = self._is_run(text)
        masks = _masks(text, spans, _looks_random if may_run or self._command else _looks_secret)
        is_address = not self._command and _ADDRESS.fullmatch(text)
        if masks is None or (may_run and not is_address and not _reads_alike(text, masks)):
            return None
        return _with_marks(text, masks, (_mark(kind) for _, _, kind in masks))

    def _is_run(self, text: str) -> bool:
        """Whether a shell may run a text: it is a step's command or more than a word of it, or has a shell's syntax.

        Any argument of a tool that is not known, and any file, may be a script.
        """
        if _OF_A_SHELL.search(text) or text == self._command:
            return True
        return text in self._command and not all(map(_is_plain, text))


def _joined(value: Any) -> str:
    """The texts in a value, up to a few more characters than can be judged. Lines part the items of a dictionary."""
    pieces: list[str] = []
    left, size = [value], 0
    while left and size <= LIMIT:
        one = left.pop()
        if isinstance(one, dict):
            left += [text for pair in reversed([*one.items()]) for text in ("\n", *reversed(pair))]
        elif isinstance(one, (list, tuple)):
            left += reversed(one)
        else:
            text = one.decode(errors="replace") if isinstance(one, (bytes, bytearray)) else one
            pieces.append(text if isinstance(text, str) else "")
            size += len(pieces[-1]) + 1
    return " ".join(pieces)


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


# --- reading commands -----------------------------------------------------------------------------------

_EDGE = r"(?:^|[\s;|&<>()`\"'={}/!@])"
_PAST = r"(?=[\s;|&<>()`\"'{}]|$)"
_RUNS_OR_DECODES = re.compile(
    rf"{_EDGE}(?:"
    rf"(?:(?:ba|z|da|k|a|fi|c|tc|mk|rba|pw|s)?sh|powershell|cmd\.exe|eval|coproc|busybox|toybox|xargs){_PAST}"
    rf"|(?:python|pypy|ipython|node|nodejs|deno|bun|tsx|perl|ruby|php|lua|osascript|Rscript|tclsh)[\d.]*"
    r"(?:\s+-(?!m\s)|\s*(?:[;|&<>)`\"']|$))"
    rf"|(?:gunzip|zcat|bunzip2|bzcat|unxz|xzcat|unzstd|zstdcat|unlz4|uudecode|base64d|rev){_PAST}|tr\s+(?!-[ds])"
    r"|-(?:exec|execdir|ok|okdir)\s)"
    r"|\b(?:exec\w{0,9}|eval|system|popen|spawn\w{0,9})\s?\(|\b(?:subprocess|child_process)\b"
    r"|b(?:16|32|64|85)decode|fromhex|unhexlify|\batob\b|from_base64|codecs\.decode|FromBase64"
    r"|(?:^|[;|&({`])[^\S\n]*\.\s",
    re.MULTILINE,
)
"""What runs a text as code, or makes another text of it. A mark beside one could stand for a whole program."""
_CODER = re.compile(
    rf"{_EDGE}(?:base(?:16|32|64|nc)|gzip|bzip2|xz|zstd|lz4|brotli|openssl|gpg2?|age|xxd|uuencode){_PAST}"
)
_DECODING = re.compile(r"(?<![\w-])(?:-[a-zA-Z]*[dDr]|--(?:[dr]|un))")  # GNU takes the first letters of an option
_SEPARATOR = re.compile(r"[;|&\n]")
_QUOTING = str.maketrans("", "", "\"'\\")
_RUNS_A_WORD = """
    source alias function hash enable complete bind at batch crontab flock strace ltrace gdb chroot unshare nsenter
    runuser systemd-run taskset chrt setarch entr expect ld.so nu xonsh elvish awk gawk mawk
"""
_RUNS = (SHELLS - {"env", "find"}) | frozenset(_RUNS_A_WORD.split())
"""What runs a word that it is given, or what it reads. A shell's alias or function is such a word."""
_RUNS_NO_WORD = """
    : echo printf cat export declare local readonly typeset unset read set test [ [[ grep egrep fgrep rg ag jq curl wget
    http https aws vault psql mysql redis-cli mongosh htpasswd ls stat head tail wc cut sort uniq
"""
_TELLS = frozenset(_RUNS_NO_WORD.split())
"""What never runs a word that it is given, but for what an option says."""
_CHANGES_FILES = CHANGES | COPIES | {"mkdir", "dd", "tar", "zip"}
_SUBSTITUTES = re.compile(r"s([/|,#@])(?:(?!\1).)*\1(?:(?!\1).)*\1[gIip]*|[\d,$]+[dp]|/[^/]*/[dp]")
_MORE_SCRIPTS = re.compile(r"-[a-zA-Z]*[ef]|--[ef]")
_SCRIPT = re.compile(r"(?!-)[\w./~-]*\w\.\w{1,5}|-m")
_OPTION = re.compile(r"--?\w")
_ATTACHED = re.compile(r"-|.*[=:@ ,\"'?]", re.DOTALL)
_RUN_BY_NAME = re.compile(
    r"!\s*\Z|\A-[a-zA-Z]*(?-i:[fK])=?\Z|(?:file|config|eval"
    r"|command|cmd|exec|program|prog|script|shell|rsh|pre|filter|hook|editor|pager|browser|preload|askpass|path"
    r"|env|opts|options|ps\d)=\Z",
    re.IGNORECASE,
)
"""What a program takes for another one, or for code: an option's or a variable's name, or an alias of git."""
_LEAVES_TO_A_SHELL = re.compile(r"(?:\A|[=\\])!|\b(?:system|program)\s", re.IGNORECASE)
"""What leaves the rest of a word to a shell: in an alias of git, and in what clients of databases are told."""


def _runs_or_decodes(text: str) -> bool:
    """Whether a text may run or decode another one, whatever it quotes. A very long one may do anything."""
    if len(text) > LIMIT:
        return True
    unquoted = text.replace("\\\n", " ").translate(_QUOTING)
    return any(_RUNS_OR_DECODES.search(one) or any(map(_decodes, _SEPARATOR.split(one))) for one in {text, unquoted})


def _decodes(command: str) -> bool:
    """Whether a program that encodes or decodes is told to decode. Each character is looked at once or twice."""
    coder = _CODER.search(command)
    return coder is not None and _DECODING.search(command, coder.end()) is not None


def _reads_alike(text: str, masks: list[Span]) -> bool:
    """Whether a shell would find the same commands and words with marks in place, and all that runs is in sight."""
    hidden = {chr(_FIRST_TOKEN + n): text[start:end] for n, (start, end, _) in enumerate(masks)}
    if any(token in text for token in hidden) or _runs_or_decodes(text):
        return False
    try:
        found, run = (Line(one, "/", Work({"HOME": "~"}), 0) for one in (_with_marks(text, masks, hidden), text))
    except TooMuch:
        return False
    if not (found.sound and run.sound) or [*map(len, found.pipelines)] != [*map(len, run.pipelines)]:
        return False
    shown, truly = (chain.from_iterable(line.pipelines) for line in (found, run))
    return all(_is_same(*both, hidden) for both in zip(shown, truly, strict=True))


def _is_same(shown: Command, truly: Command, hidden: dict[str, str]) -> bool:
    """Whether a command that is shown with marks says all that is run, by it or by what it is given to."""
    texts, others = ([*one.words, *one.outputs, *one.given, one.input, one.folder] for one in (shown, truly))
    program, rest = shown.program()
    if [_restore(text, hidden) for text in texts] != others or program != truly.program()[0]:
        return False
    if _runs_or_decodes(" ".join(others)):  # a name may be put together of quotes and variables
        return False
    if any(os.path.basename(word) == program and hidden.keys() & set(word) for word in shown.words):
        return False  # the folder of a program says which one it is
    return _shows_what_runs(program, rest, shown.words) and all(
        _is_no_program(word, before, program, hidden) for before, word in pairwise(["", *shown.words])
    )


def _shows_what_runs(program: str, rest: list[str], words: list[str]) -> bool:
    """Whether a program is known by its name, and runs nothing but a script that it names."""
    if program in _RUNS or program[:1] in ("-", "$") or (not program and WRAPPERS & set(map(os.path.basename, words))):
        return False  # a wrapper's option that is not known may be followed by anything
    if not CODE.fullmatch(program):
        return True
    if program == "sed":
        script = next((word for word in rest if word[:1] != "-"), "")
        return _SUBSTITUTES.fullmatch(script) is not None and not any(map(_MORE_SCRIPTS.match, rest))
    return bool(rest) and _SCRIPT.fullmatch(rest[0]) is not None


def _is_no_program(word: str, before: str, program: str, hidden: Mapping[str, str]) -> bool:
    """Whether what a mark hides in a word is only told to a program: a value, or what belongs to one."""
    marks = [at for at, character in enumerate(word) if character in hidden]
    if not marks:
        return True
    if _LEAVES_TO_A_SHELL.search(word, 0, marks[-1]):
        return False
    if any(_RUN_BY_NAME.search(word, start, at) for start, at in pairwise([0, *marks])):
        return False
    if _ATTACHED.match(word, 0, marks[0]):
        return True
    if _OPTION.match(before):
        return program not in _CHANGES_FILES and not _RUN_BY_NAME.search(f"{before}=")
    return program in _TELLS


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
