"""Documents: what a file says, and the place of every part of it, however it is written."""

from __future__ import annotations

import json
import random
import re
import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.config.document import SIZE_LIMIT, ConfigError, Document, Mistake

quick = settings(deadline=None, max_examples=100, derandomize=True, database=None)

Keys = tuple[str | int, ...]


def read(text: str | bytes) -> Document:
    return Document("fairlead.toml", text if isinstance(text, bytes) else text.encode())


def place(document: Document, keys: Keys, *, value: bool = False) -> tuple[int, int]:
    """Where a mistake at these keys is shown."""
    document.wrong(keys, "wrong", value=value)
    mistake = document.mistakes.pop()
    return mistake.line, mistake.column


# --- places, by example ----------------------------------------------------------------------------

EXAMPLE = """\
disable = ["a",
  "b"]                         # a comment, with [brackets] and "quotes"
defaults.timeout = 5

[[hook]]
name = "first"
  match = { kind = "shell", "tool" = 'ba*' }

[[hook]]
name = '''
multi # not a comment
[[hook]]
'''
exit.1 = "veto"

[hook.change.response]
append = "x"
"""


@pytest.mark.parametrize(
    ("keys", "key", "value"),
    [
        (("disable",), (1, 1), (1, 11)),
        (("disable", 0), (1, 12), (1, 12)),
        (("disable", 1), (2, 3), (2, 3)),
        (("defaults",), (3, 1), (3, 1)),
        (("defaults", "timeout"), (3, 1), (3, 20)),
        (("hook",), (5, 1), (5, 1)),
        (("hook", 0), (5, 1), (5, 1)),
        (("hook", 0, "name"), (6, 1), (6, 8)),
        (("hook", 0, "match"), (7, 3), (7, 11)),
        (("hook", 0, "match", "kind"), (7, 13), (7, 20)),
        (("hook", 0, "match", "tool"), (7, 29), (7, 38)),
        (("hook", 1), (9, 1), (9, 1)),
        (("hook", 1, "name"), (10, 1), (10, 8)),
        (("hook", 1, "exit", "1"), (14, 1), (14, 10)),
        (("hook", 1, "change"), (16, 1), (16, 1)),
        (("hook", 1, "change", "response", "append"), (17, 1), (17, 10)),
    ],
)
def test_every_key_and_value_has_its_place(keys: Keys, key: tuple[int, int], value: tuple[int, int]):
    document = read(EXAMPLE)
    assert (place(document, keys), place(document, keys, value=True)) == (key, value)


def test_places_are_the_same_with_windows_line_ends():
    document = read(EXAMPLE.replace("\n", "\r\n"))
    assert place(document, ("hook", 1, "change", "response", "append"), value=True) == (17, 10)


def test_what_is_not_in_the_file_is_shown_at_what_would_hold_it():
    document = read(EXAMPLE)
    assert place(document, ("hook", 0, "match", "nothing", "such")) == (7, 3)


def test_what_nothing_would_hold_is_shown_at_the_top():
    assert place(read(EXAMPLE), ("nothing",)) == (1, 1)


def test_the_line_of_an_entry_is_that_of_its_header():
    assert read(EXAMPLE).line_of(("hook", 1)) == 9


def test_columns_are_characters_not_bytes():
    assert place(read('"ключ" = { "ü" = 1 }'), ("ключ", "ü"), value=True) == (1, 18)


# --- places, whatever the document -------------------------------------------------------------------


class Writer:
    """Writes a structure as TOML, each part in a style picked at random, and notes where everything goes."""

    def __init__(self, pick: random.Random) -> None:
        self.text = ""
        self.places: dict[Keys, tuple[int, int]] = {}
        self._pick = pick

    def document(self, data: dict[str, Any]) -> None:
        self._noise()
        self._table(data, (), [])

    def _put(self, text: str) -> int:
        at = len(self.text)
        self.text += text
        return at

    def _maybe(self, *texts: str) -> str:
        return self._pick.choice(["", *texts])

    def _comment(self) -> str:
        return self._pick.choice(["# plain", "#", '# key = "not one', "# [[x]] ''' { \"\"\"", "#\tü"])

    def _noise(self) -> None:
        """What may stand between two lines."""
        for _ in range(self._pick.randrange(3)):
            self._put(self._maybe("  ", "\t") + self._maybe(self._comment()) + "\n")

    def _end_line(self) -> None:
        self._put(self._maybe(" ", "\t", f" {self._comment()}", self._comment()) + "\n")
        self._noise()

    # --- tables ---

    def _table(self, table: dict[str, Any], path: Keys, header: list[str]) -> None:
        """The pairs of a table, then the tables within it that get a header of their own."""
        later = []
        for key, value in table.items():
            if (isinstance(value, dict) or _tables(value)) and self._pick.random() < 0.6:
                later.append((key, value))
            else:
                self._put(self._maybe("  ", "\t"))
                self._pair([key], value, path)
        for key, value in later:
            words = [*header, self._key_text(key)]
            if isinstance(value, list):
                for index, item in enumerate(value):
                    at = self._header(words, path, "[[", "]]")
                    self._note((*path, key), at, at)
                    self._note((*path, key, index), at, at)
                    self._table(item, (*path, key, index), words)
            else:
                headless = bool(value) and all(isinstance(v, dict) for v in value.values())
                if headless and self._pick.random() < 0.5:  # it is there by its parts, which all have headers
                    self._parts(value, (*path, key), words)
                else:
                    at = self._header(words, path, "[", "]")
                    self._note((*path, key), at, at)
                    self._table(value, (*path, key), words)

    def _parts(self, table: dict[str, Any], path: Keys, words: list[str]) -> None:
        for key, value in table.items():
            inner = [*words, self._key_text(key)]
            at = self._header(inner, path, "[", "]")
            self._note(path, at, at)
            self._note((*path, key), at, at)
            self._table(value, (*path, key), inner)

    def _header(self, words: list[str], path: Keys, opening: str, closing: str) -> int:
        self._put(self._maybe("  "))
        dot = self._pick.choice([".", " . ", ".\t"])
        at = self._put(opening + self._maybe(" ") + dot.join(words) + self._maybe(" ") + closing)
        self._end_line()
        return at

    # --- pairs ---

    def _pair(self, keys: list[str], value: Any, path: Keys, *, inline: bool = False) -> None:
        if isinstance(value, dict) and value and self._pick.random() < 0.4:  # dotted
            for number, (key, item) in enumerate(value.items()):
                if inline and number:
                    self._put("," + self._maybe(" "))
                self._pair([*keys, key], item, path, inline=inline)
            return
        dot = self._pick.choice([".", ". ", " ."])
        start = self._put(dot.join(map(self._key_text, keys)))
        self._put(self._maybe(" ", "\t") + "=" + self._maybe(" ", "\t"))
        for length in range(1, len(keys)):
            self._note((*path, *keys[:length]), start, start)
        self._note((*path, *keys), start, len(self.text))
        self._value(value, (*path, *keys), inline=inline)
        if not inline:
            self._end_line()

    def _note(self, keys: Keys, key: int, value: int) -> None:
        self.places.setdefault(keys, (key, value))

    def _key_text(self, key: str) -> str:
        styles = [f'"{_escaped(key)}"']
        if key and re.fullmatch(r"[A-Za-z0-9_-]+", key):
            styles += [key, key, f"'{key}'"]
        elif "'" not in key and _is_plain(key):
            styles.append(f"'{key}'")
        return self._pick.choice(styles)

    def _value(self, value: Any, path: Keys, *, inline: bool) -> None:
        if isinstance(value, dict):
            self._put("{" + self._maybe(" "))
            for number, (key, item) in enumerate(value.items()):
                if number:
                    self._put("," + self._maybe(" "))
                self._pair([key], item, path, inline=True)
            self._put(self._maybe(" ") + "}")
        elif isinstance(value, list):
            self._put("[" + self._gap())
            for index, item in enumerate(value):
                self._note((*path, index), len(self.text), len(self.text))
                self._value(item, (*path, index), inline=True)
                last = index == len(value) - 1
                self._put(self._gap() + ("," if not last else self._maybe(",")) + self._gap())
            self._put("]")
        else:
            self._put(self._pick.choice(list(_scalars(value))))

    def _gap(self) -> str:
        """Within an array, lines may break."""
        return self._maybe(" ", "\n", f" {self._comment()}\n  ", "\n\t\n")


def _tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _is_plain(text: str) -> bool:
    return all(c == "\t" or (c >= " " and c != "\x7f") for c in text)


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1].replace("\x7f", "\\u007f")


def _scalars(value: Any) -> Iterator[str]:
    """Ways to write a value."""
    if isinstance(value, str):
        yield f'"{_escaped(value)}"'
        if _is_plain(value) and "'" not in value:
            yield f"'{value}'"
        if _is_plain(value.replace("\n", "")) and "'''" not in value and not value.endswith("'"):
            yield f"'''\n{value}'''"
            yield f"'''{value}'''" if not value.startswith("\n") else f"'''\n{value}'''"
        escaped = "\n".join(map(_escaped, value.split("\n")))
        yield f'"""\n{escaped}"""'
        yield f'"""\\\n   \n  {escaped}"""' if value[:1] not in ("", " ", "\t", "\n") else f'"""\n{escaped}"""'
        if value.endswith('"') and not value.endswith('""'):
            yield f'"""\n{escaped[:-2]}""""'  # a quote just before the closing ones
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif isinstance(value, int):
        yield from (str(value), f"{value:_}", *([hex(value), oct(value), bin(value)] if value >= 0 else []))
    elif isinstance(value, float):
        yield repr(value)
    else:
        yield value.isoformat()
        if isinstance(value, datetime):
            yield value.isoformat(" ")


keys = st.one_of(
    st.sampled_from(["a", "b", "name", "1", "-", "on"]),
    st.text(st.characters(codec="utf-8"), max_size=6),
    st.text(st.sampled_from("ab.\"'#=[]{}, \n\t\\"), max_size=6),
)
texts = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12), st.text(st.sampled_from("ab.\"'#=[]{}, \n\t\\"), max_size=12)
)
scalars = st.one_of(
    texts,
    st.booleans(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False),
    st.dates(date(1000, 1, 1)),
    st.times().map(lambda t: t.replace(microsecond=0)),
    st.datetimes(datetime(1000, 1, 1)).map(lambda d: d.replace(microsecond=0)),
    st.just(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    st.just(time(1, 2, 3)),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(keys, inner, max_size=3),
        st.lists(st.dictionaries(keys, inner, max_size=3), min_size=1, max_size=3),
    ),
    max_leaves=12,
)


def paths(value: Any, at: Keys = ()) -> Iterator[Keys]:
    """Every path that leads anywhere."""
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*at, key)
            yield from paths(item, (*at, key))


@quick
@given(st.dictionaries(keys, values, max_size=4), st.randoms(use_true_random=False), st.booleans())
def test_every_part_of_any_document_is_found_just_where_it_was_written(
    data: dict[str, Any], pick: random.Random, windows: bool
):
    writer = Writer(pick)
    writer.document(data)
    document = read(writer.text.replace("\n", "\r\n") if windows else writer.text)
    assert document.data == data
    for path in paths(data):
        for value in (False, True):
            offset = writer.places[path][value]
            line = writer.text.count("\n", 0, offset) + 1
            column = offset - writer.text.rfind("\n", 0, offset)
            assert place(document, path, value=value) == (line, column), (path, value, writer.text)


# --- what cannot be read ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "column", "shown"),
    [
        ('a = 1\nb = "open\n', 2, 10, 'b = "open'),
        ("a = 1\na = 2\n", 2, 6, "a = 2"),
        ("[[hook]\n", 1, 7, "[[hook]"),
        ("a = 1\r\nb = = 1\r\n", 2, 5, "b = = 1"),
    ],
)
def test_a_syntax_error_is_a_mistake_in_its_place(text: str, line: int, column: int, shown: str):
    (mistake,) = read(text).mistakes
    assert (mistake.line, mistake.column, mistake.text) == (line, column, shown)
    assert mistake.problem.startswith("not TOML: ")


def test_a_file_that_ends_too_soon_is_a_mistake_on_its_last_line():
    (mistake,) = read("a = 1\nb = [1,").mistakes
    assert (mistake.line, mistake.text) == (2, "b = [1,")


def test_a_file_with_a_syntax_error_says_nothing():
    assert read('[[hook]]\nname = "a"\nb = = 1').data == {}


def test_what_is_not_utf_8_is_a_mistake_on_its_line():
    (mistake,) = read(b"a = 1\nb = '\xff'\n").mistakes
    assert (mistake.line, "not UTF-8" in mistake.problem) == (2, True)


def test_a_file_that_is_too_large_is_a_mistake(tmp_path: Path):
    path = tmp_path / "fairlead.toml"
    path.write_bytes(b"#" * (SIZE_LIMIT + 1))
    (mistake,) = Document(path).mistakes
    assert "larger than 1 MiB" in mistake.problem


def test_a_file_of_just_the_limit_is_read(tmp_path: Path):
    path = tmp_path / "fairlead.toml"
    path.write_bytes(b"a = 1\n" + b"#" * (SIZE_LIMIT - 6))
    document = Document(path)
    assert (document.data, document.mistakes) == ({"a": 1}, [])


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path):
    (mistake,) = Document(tmp_path / "none.toml").mistakes
    assert "cannot be read: No such file" in mistake.problem


def test_a_folder_is_a_mistake(tmp_path: Path):
    (mistake,) = Document(tmp_path).mistakes
    assert (mistake.file, "cannot be read: it is not a regular file" in mistake.problem) == (str(tmp_path), True)


@pytest.mark.parametrize("text", ["a = " + "[" * 5000 + "]" * 5000, "a = " + "{a = " * 5000 + "1" + "}" * 5000])
def test_nesting_without_end_is_a_mistake(text: str):
    (mistake,) = read(text).mistakes
    assert "nested too deeply" in mistake.problem


def test_an_empty_file_says_nothing_and_is_no_mistake():
    document = read(b"")
    assert (document.data, document.mistakes) == ({}, [])


def test_the_digest_is_that_of_the_bytes():
    assert read(b"a = 1\r\n").digest == sha256(b"a = 1\r\n").hexdigest()


# --- mistakes --------------------------------------------------------------------------------------


def test_a_mistake_shows_the_file_the_place_the_line_and_what_is_wrong():
    document = Document("/etc/fairlead.toml", b'[[hook]]\n  nam = "a"\n')
    document.wrong(("hook", 0, "nam"), "unknown key 'nam'; did you mean 'name'?")
    assert str(document.mistakes[0]) == (
        "/etc/fairlead.toml:2:3: unknown key 'nam'; did you mean 'name'?\n"
        '      nam = "a"\n'
        "      ^"
    )  # fmt: skip


def test_a_mistake_without_a_line_is_shown_without_one():
    assert str(Mistake("f.toml", 1, 1, "", "cannot be read")) == "f.toml:1:1: cannot be read"


def test_a_very_long_line_is_cut():
    document = read("a = '" + "x" * 5000 + "'")
    document.wrong(("a",), "wrong")
    assert len(document.mistakes[0].text) == 200


def test_an_error_has_all_mistakes_and_shows_them():
    first, second = Mistake("f.toml", 1, 1, "", "this"), Mistake("f.toml", 2, 1, "", "that")
    error = ConfigError([first, second])
    assert error.mistakes == (first, second)
    assert str(error) == "f.toml:1:1: this\nf.toml:2:1: that"


def test_the_scanner_agrees_with_tomllib_on_the_configuration_in_the_docs():
    text = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    for block in re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        document = read(block)
        assert document.data == tomllib.loads(block)
        for path in paths(document.data):
            line, column = place(document, path)
            shown = block.split("\n")[line - 1][column - 1 :]
            assert shown.startswith(("[", str(path[-1]), '"')) or isinstance(path[-1], int)
