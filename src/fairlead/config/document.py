"""A TOML file that knows the line and column of each key, so that errors name the place of a mistake.

`tomllib` says what a file means; the scanner here, which only ever sees what `tomllib` has
accepted, says where each key and value begins.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from ..errors import FairleadError

SIZE_LIMIT = 1 << 20
MISTAKES = 100
"""What is shown of a file that has more."""
_TOO_DEEP = re.compile(rb"(?<![\w\"'-])(?:[\w\"'-]+\s*\.\s*){100}")  # a dotted key costs the square of its length

Keys = tuple[str | int, ...]
"""Where something stands in a document: `("hook", 2, "match", "kind")`."""


class Mistake(msgspec.Struct, frozen=True):
    """Something wrong in a configuration file, and where."""

    file: str
    line: int
    column: int
    text: str  # the offending line
    problem: str  # with a suggestion

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}:{self.column}: {self.problem}"
        if not self.text.strip():
            return where
        margin = " " * (self.column - 1)
        return f"{where}\n    {self.text}\n    {margin}^"


class ConfigError(FairleadError):
    """A configuration that cannot be used. `mistakes` has all of them."""

    def __init__(self, mistakes: Iterable[Mistake]) -> None:
        self.mistakes = tuple(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class Document:
    """A TOML file: its data, and where each part of it stands."""

    def __init__(self, path: str | Path, content: bytes | None = None) -> None:
        self.path = str(path)
        self.data: dict[str, Any] = {}
        self.mistakes: list[Mistake] = []
        self.content = b""
        self.digest = ""
        self._text = ""
        self._places: dict[Keys, tuple[int, int]] = {}
        try:
            content = _read(Path(path)) if content is None else content
            self.content, self.digest = content, sha256(content).hexdigest()
            if _TOO_DEEP.search(content):
                raise RecursionError
            self._text = content.decode().replace("\r\n", "\n")
            self.data = tomllib.loads(self._text)
            self._places = _TomlScanner(self._text).places
        except tomllib.TOMLDecodeError as error:
            self._syntax_mistake(str(error))
        except UnicodeDecodeError as error:
            line = content[: error.start].count(b"\n") + 1 if content else 1
            self.mistakes.append(Mistake(self.path, line, 1, "", "not UTF-8; save the file as UTF-8"))
        except ValueError as error:
            self.mistakes.append(Mistake(self.path, 1, 1, "", f"not TOML: {error}"))
        except RecursionError:
            self.mistakes.append(Mistake(self.path, 1, 1, "", "nested too deeply"))
        except OSError as error:
            self.mistakes.append(Mistake(self.path, 1, 1, "", f"cannot be read: {error.strerror or error}"))

    @property
    def hopeless(self) -> bool:
        """Whether there are so many mistakes that listing more does not help the user."""
        return len(self.mistakes) >= MISTAKES

    def wrong(self, keys: Keys, problem: str, *, value: bool = False) -> None:
        """Note a mistake at a key, or at its value."""
        if not self.hopeless:
            self.mistakes.append(self.mistake_at(keys, problem, value=value))

    def mistake_at(self, keys: Keys, problem: str, *, value: bool = False) -> Mistake:
        while keys and keys not in self._places:
            keys = keys[:-1]
        return self._mistake(self._places[keys][value] if keys else 0, problem)

    def line_of(self, keys: Keys) -> int:
        return self._text.count("\n", 0, self._places.get(keys, (0, 0))[0]) + 1

    def _mistake(self, offset: int, problem: str) -> Mistake:
        start = self._text.rfind("\n", 0, offset) + 1
        end = self._text.find("\n", offset)
        text = _printable(self._text[start : end if end >= 0 else None])
        from ..redaction.redactor import redact_text  # only a mistake should pay for it

        line, column = self._text.count("\n", 0, offset) + 1, offset - start + 1
        return Mistake(self.path, line, column, text, redact_text(problem))

    def _syntax_mistake(self, message: str) -> None:
        found = re.search(r"\(at line (\d+), column (\d+)\)", message)
        line, column = (int(found[1]), int(found[2])) if found else (self._text.count("\n") + 1, 1)
        lines = self._text.split("\n")
        text = lines[line - 1] if line <= len(lines) else ""
        problem = message.partition(" (at ")[0]
        self.mistakes.append(Mistake(self.path, line, column, _printable(text), f"not TOML: {problem}"))


def _printable(line: str) -> str:
    """A line as it is shown. It is redacted before it is cut, as half a secret would not be known as one."""
    from ..redaction.redactor import redact_text

    return "".join(c if c.isprintable() else " " if c == "\t" else "\ufffd" for c in redact_text(line[: 1 << 16])[:200])


def _read(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise OSError("it is not a regular file")  # reading a pipe could take for ever
    with path.open("rb") as file:
        content = file.read(SIZE_LIMIT + 1)
    if len(content) > SIZE_LIMIT:
        raise OSError(f"larger than {SIZE_LIMIT >> 20} MiB")
    return content


class _TomlScanner:
    """Finds where each key and each value begins, in a text that is known to be TOML."""

    _BLANK = re.compile(r"(?:[ \t\n]|#[^\n]*)*")
    _SPACE = re.compile(r"[ \t]*")
    _BARE = re.compile(r"[A-Za-z0-9_-]+")
    _SCALAR = re.compile(r"[^,\]}\n#]+")
    _STRING = re.compile(
        r'"""(?:\\.|[^\\])*?"""(?:"{0,2})' + r"|'''.*?'''(?:'{0,2})" + r'|"(?:\\.|[^"\\])*"' + r"|'[^']*'", re.DOTALL
    )

    def __init__(self, text: str) -> None:
        self.places: dict[Keys, tuple[int, int]] = {}
        self._text = text
        self._at = 0
        self._counts: dict[Keys, int] = {}  # of the arrays of tables
        table: Keys = ()
        while self._skip(self._BLANK) < len(text):
            if text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _skip(self, pattern: re.Pattern[str]) -> int:
        found = pattern.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at

    def _header(self) -> Keys:
        start, width = self._at, 2 if self._text.startswith("[[", self._at) else 1
        self._at += width
        table: Keys = ()
        keys = self._key()
        for i, key in enumerate(keys):
            table = (*table, key)
            if table in self._counts and (i < len(keys) - 1 or width == 1):
                table = (*table, self._counts[table])
            self.places.setdefault(table, (start, start))
        if width == 2:
            self._counts[table] = self._counts.get(table, -1) + 1
            table = (*table, self._counts[table])
            self.places[table] = (start, start)
        self._skip(self._SPACE)
        self._at += width
        return table

    def _key(self) -> list[str]:
        keys = []
        while True:
            start = self._skip(self._SPACE)
            if self._text[start] in "\"'":
                self._skip(self._STRING)
                keys.append(tomllib.loads(f"key = {self._text[start : self._at]}")["key"])
            else:
                self._skip(self._BARE)
                keys.append(self._text[start : self._at])
            self._skip(self._SPACE)
            if not self._text.startswith(".", self._at):
                return keys
            self._at += 1

    def _pair(self, table: Keys) -> None:
        start = self._at
        path = table
        for key in self._key():
            path = (*path, key)
            self.places.setdefault(path, (start, start))
        self._at += 1  # the equals sign
        self.places[path] = (start, self._skip(self._SPACE))
        self._value(path)

    def _value(self, path: Keys) -> None:
        opening = self._text[self._at]
        if opening in "[{":
            self._at += 1
            index = 0
            while self._text[self._skip(self._BLANK)] not in "]}":
                if opening == "[":
                    self.places[(*path, index)] = (self._at, self._at)
                    self._value((*path, index))
                    index += 1
                else:
                    self._pair(path)
                if self._text[self._skip(self._BLANK)] == ",":
                    self._at += 1
            self._at += 1
        elif opening in "\"'":
            self._skip(self._STRING)
        else:
            self._skip(self._SCALAR)
