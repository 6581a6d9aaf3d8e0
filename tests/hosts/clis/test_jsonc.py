"""JSON with comments, changed in place: what is not changed stays as it is, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.hosts.clis.install.jsonc import BadJson, JsonDocument, JsonNode

# --- documents as people write them -------------------------------------------------------------------

names = st.text(max_size=6)
plain = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(allow_nan=False, allow_infinity=False), names
)
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))
remarks = st.text(st.characters(exclude_characters="\r\n*/", exclude_categories=("Cs",)), max_size=6)
gaps = st.lists(
    st.one_of(
        st.sampled_from(["", " ", "\n", "\r\n", "\t", "\n    "]),
        remarks.map("//{}\n".format),
        remarks.map("/*{}*/".format),
    ),
    max_size=3,
).map("".join)


@st.composite
def documents(draw: Any, inner: Any = values) -> str:
    """A text that means something, with gaps, comments and trailing commas wherever they may be."""

    def gap() -> str:
        return draw(gaps)

    def written(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + held([f"{json.dumps(k)}{gap()}:{gap()}{written(v)}" for k, v in value.items()]) + "}"
        if isinstance(value, list):
            return "[" + held([written(item) for item in value]) + "]"
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    def held(parts: list[str]) -> str:
        text = ",".join(f"{gap()}{part}{gap()}" for part in parts)
        return text + ("," + gap() if parts and draw(st.booleans()) else gap())

    return draw(st.sampled_from(["", "\ufeff"])) + gap() + written(draw(inner)) + gap()


def holders(node: JsonNode, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all objects and arrays that can be told by their path."""
    if node.kind == "plain":
        return []
    found = [path]
    for index, part in enumerate(node.parts):
        if part.key is None or [other.key for other in node.parts].count(part.key) == 1:
            found += holders(part.node, (*path, index if part.key is None else part.key))
    return found


def exact(node: JsonNode, text: str) -> bool:
    """Whether it has something in it, or nothing at all: an empty one on two lines may end up on one."""
    inside = text[node.start + 1 : node.end - 1]
    return bool(node.parts) or not inside or (bool(inside.strip()) and "\n" in inside[len(inside.rstrip()) :])


# --- reading ------------------------------------------------------------------------------------------


@given(values)
def test_json_means_what_it_means_elsewhere(value):
    for text in (json.dumps(value), json.dumps(value, indent="\t", ensure_ascii=False)):
        assert JsonDocument(text).root.value == value


@given(st.data())
def test_comments_and_trailing_commas_change_no_meaning(data):
    value = data.draw(values)
    assert JsonDocument(data.draw(documents(st.just(value)))).root.value == value


@given(st.text(st.sampled_from('{}[]:,"\\/*ab10.e- \n'), max_size=12))
def test_what_others_take_for_json_is_taken_here_and_the_rest_is_not(text):
    try:
        value = json.loads(text)
    except ValueError:
        try:
            document = JsonDocument(text)
        except BadJson:
            return
        assert document.comment is not None or document.trailing is not None
    else:
        assert JsonDocument(text).root.value == value


def test_it_is_said_where_the_first_comment_and_the_first_trailing_comma_are():
    document = JsonDocument('{\n  "a": 1, // one\n  "b": [1,],\n}')
    assert (document.where(document.comment), document.where(document.trailing)) == ((2, 11), (3, 10))
    assert (JsonDocument("{}").comment, JsonDocument("{}").trailing) == (None, None)


def test_what_looks_like_a_comment_in_a_text_is_none():
    document = JsonDocument('{"a": "// b", "c": "/* d */"}')
    assert (document.comment, document.root.value) == (None, {"a": "// b", "c": "/* d */"})


@pytest.mark.parametrize(
    ("text", "problem", "line", "column"),
    [
        ("", "there is nothing in it", 1, 1),
        (" // nothing\n", "there is nothing in it", 2, 1),
        ("{", "it ends before }", 1, 2),
        ('{"a": 1', "it ends before }", 1, 8),
        ('{\n  "a": 1\n  "b": 2\n}', "a , or a } is missing", 3, 3),
        ('{\r\n  "a" 1}', 'a : is missing after "a"', 2, 7),
        ("{a: 1}", 'a name in "..." is missing', 1, 2),
        ("{,}", 'a name in "..." is missing', 1, 2),
        ("[1,,2]", "a value is missing", 1, 4),
        ("[1 2]", "a , or a ] is missing", 1, 4),
        ("[", "it ends before ]", 1, 2),
        ('{"a": }', "a value is missing", 1, 7),
        ('{"a": nope}', "nope is no value", 1, 7),
        ('{"a": NaN}', "NaN is no value", 1, 7),
        ('{"a": 01}', "01 is no value", 1, 7),
        ('{"a": +1}', "+1 is no value", 1, 7),
        ('{"a": "x\ny"}', "a text that does not end, or has a character in it that must be escaped", 1, 7),
        (r'{"a": "\x"}', "a text that does not end, or has a character in it that must be escaped", 1, 7),
        ("{'a': 1}", 'a name in "..." is missing', 1, 2),
        ("{} {}", "something follows the end", 1, 4),
        ("{} # no", "something follows the end", 1, 4),
        ("{\n/* for ever", "a comment that does not end", 2, 1),
        ("\ufeff{", "it ends before }", 1, 2),
        ("[" * 300, "it is nested too deeply", 1, 201),
    ],
)
def test_a_mistake_has_a_line_and_a_column(text, problem, line, column):
    with pytest.raises(BadJson) as raised:
        JsonDocument(text)
    assert (raised.value.problem, raised.value.line, raised.value.column) == (problem, line, column)
    assert str(raised.value) == f"{problem} (line {line}, column {column})"


def test_a_number_of_a_million_digits_is_a_number():
    assert JsonDocument("1" * 1_000_000).root.value == float("inf")


# --- changing -----------------------------------------------------------------------------------------


@given(st.data(), names, values)
def test_what_was_put_in_comes_out_again_and_leaves_no_trace(data, name, value):
    document = JsonDocument(data.draw(documents()))
    for path in holders(document.root):
        node = document.find(path)
        if not exact(node, document.text):
            continue
        if node.kind == "array":
            put, place = document.append(path, value), (*path, len(node.parts))
        elif all(part.key != name for part in node.parts):
            put, place = document.put((*path, name), value), (*path, name)
        else:
            continue
        assert put.find(place).value == value
        assert put.remove(place).text == document.text


@given(st.data(), values)
def test_nothing_else_means_anything_else_then(data, value):
    document = JsonDocument(data.draw(documents(st.dictionaries(names, values, max_size=3))))
    before = document.root.value
    assert document.put(("new one",), value).root.value == before | {"new one": value}
    for name in before:
        assert document.put((name,), value).root.value == before | {name: value}


@given(st.data())
def test_whatever_is_taken_out_the_rest_stays(data):
    document = JsonDocument(data.draw(documents(st.dictionaries(names, values, min_size=1, max_size=3))))
    name = data.draw(st.sampled_from(sorted(document.root.value)))
    rest = {key: value for key, value in document.root.value.items() if key != name}
    assert document.remove((name,)).root.value == rest


@given(st.data())
def test_no_comment_around_what_is_taken_out_is_lost(data):
    document = JsonDocument(data.draw(documents(st.lists(plain, min_size=1, max_size=4))))
    index = data.draw(st.integers(0, len(document.root.parts) - 1))
    part = document.root.parts[index]
    outside = document.text[: part.start] + document.text[part.node.end :]
    assert sorted("".join(document.remove((index,)).text.split()).replace(",", "")) == sorted(
        "".join(outside.split()).replace(",", "")
    )


@given(st.data(), st.lists(values, min_size=1, max_size=4), st.randoms())
def test_several_come_out_in_any_order(data, added, random):
    document = put = JsonDocument(data.draw(documents(st.dictionaries(st.text("abc"), values, min_size=1, max_size=3))))
    for n, value in enumerate(added):
        put = put.put((f"new {n}",), value)
    for n in random.sample(range(len(added)), len(added)):
        put = put.remove((f"new {n}",))
    assert put.text == document.text


def test_it_is_written_as_the_rest_is():
    document = JsonDocument('{\n\t"a": {\n\t\t"b": 1\n\t}\n}\n')
    assert document.put(("c",), {"d": [1]}).text == (
        '{\n\t"a": {\n\t\t"b": 1\n\t},\n\t"c": {\n\t\t"d": [\n\t\t\t1\n\t\t]\n\t}\n}\n'
    )
    assert document.put(("a", "c"), 2).text == '{\n\t"a": {\n\t\t"b": 1,\n\t\t"c": 2\n\t}\n}\n'


def test_lines_end_as_the_others_do():
    assert JsonDocument('{\r\n  "a": 1\r\n}').put(("b",), {"c": 1}).text == (
        '{\r\n  "a": 1,\r\n  "b": {\r\n    "c": 1\r\n  }\r\n}'
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", '{\n  "new": 1\n}'),
        ("{\n}", '{\n  "new": 1\n}'),
        ('{"a": 1}', '{"a": 1,\n  "new": 1}'),
        ('{\n  "a": 1\n}\n', '{\n  "a": 1,\n  "new": 1\n}\n'),
        ('{\n  "a": 1,\n}\n', '{\n  "a": 1,\n  "new": 1,\n}\n'),
        ('{\n  "a": 1 // one\n}', '{\n  "a": 1, // one\n  "new": 1\n}'),
        ('{\n  "a": 1\n  // "b": 2\n}', '{\n  "a": 1,\n  // "b": 2\n  "new": 1\n}'),
        ('{\n  // nothing yet\n}', '{\n  // nothing yet\n  "new": 1\n}'),
        ('\ufeff{"a": 1}', '\ufeff{"a": 1,\n  "new": 1}'),
        ('  {\n    "a": 1\n  }', '  {\n    "a": 1,\n    "new": 1\n  }'),
    ],
)  # fmt: skip
def test_a_member_is_put_last(before, after):
    assert JsonDocument(before).put(("new",), 1).text == after


def test_of_two_members_of_one_name_the_last_one_counts_and_is_changed():
    document = JsonDocument('{"a": {"b": 1}, "a": {"b": 2}}')
    assert document.find(("a", "b")).value == 2
    assert document.put(("a", "b"), 3).text == '{"a": {"b": 1}, "a": {"b": 3}}'
    assert document.remove(("a",)).text == '{"a": {"b": 1}}'


@pytest.mark.parametrize("path", [("a", 0), ("b",), ("a", "b"), (0,)])
def test_what_is_not_there_is_not_found_and_cannot_be_taken_out(path):
    document = JsonDocument('{"a": 1}')
    assert document.find(path) is None
    with pytest.raises(KeyError):
        document.remove(path)


@pytest.mark.parametrize(("path", "do"), [(("a", "b"), "put"), (("b",), "append"), ((), "append")])
def test_nothing_is_put_where_nothing_can_be(path, do):
    with pytest.raises(KeyError):
        getattr(JsonDocument('{"a": 1}'), do)(path, 1)
