"""Entries: long texts are folded away and come back, whatever else is there."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.journal.entry import _fold, columns_of, make_entry, references, runs_of, unfold
from fairlead.redaction.redactor import Redactor

thorough = settings(deadline=None, max_examples=40, derandomize=True, database=None)
keys = st.sampled_from(["$text", "$plain", "messages", "a", "b"]) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=5
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=10) | st.sampled_from(
    ["x" * 511, "x" * 512, "y" * 3000]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=20,
)


@thorough
@given(values)
def test_what_was_folded_comes_back(value: Any) -> None:
    texts: dict[bytes, bytes] = {}
    folded = msgspec.json.decode(msgspec.json.encode(_fold(value, texts)))
    assert unfold(folded, texts) == value


@thorough
@given(values)
def test_a_folded_value_refers_to_its_texts_and_no_others(value: Any) -> None:
    texts: dict[bytes, bytes] = {}
    assert references(_fold(value, texts)) == texts.keys()


@thorough
@given(values)
def test_no_long_text_is_left_in_a_folded_value(value: Any) -> None:
    def longest(folded: Any) -> int:
        if isinstance(folded, dict):
            return max(map(longest, folded.values()), default=0)
        if isinstance(folded, list):
            return max(map(longest, folded), default=0)
        return len(folded) if isinstance(folded, str) else 0

    assert longest(_fold(value, {})) < 512


def test_a_missing_text_is_said_in_its_place() -> None:
    folded = _fold("x" * 600, {})
    assert unfold(folded, {}) == f"[text {folded['$text'][:12]} is missing]"


anything = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5) | st.builds(object),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=5) | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=10,
)


@thorough
@given(anything)
def test_whatever_the_facts_are_there_is_an_entry(value: Any) -> None:
    facts = {"v": 1, "id": "w-1", "at": 5, "kind": "decision", "step": {"event": "before_tool", "args": value}}
    entry = make_entry(facts, Redactor())
    assert msgspec.json.decode(entry.body)["id"] == "w-1"


@thorough
@given(anything)
def test_columns_and_runs_follow_from_the_bytes(value: Any) -> None:
    run = ["hook", "gate", "verdict", 0.5, {"details": value}]
    said = [{"hook": "hook", "verdict": {"control": "deny"}}]
    facts = {"v": 1, "id": "w-1", "at": 5, "kind": "decision", "step": {"event": "e"}, "runs": [run], "said": said}
    entry = make_entry(facts, Redactor())
    body = msgspec.json.decode(entry.body)
    assert (columns_of(body), runs_of(body)) == (entry.columns, entry.runs)


def test_a_secret_is_taken_out_before_anything_is_folded() -> None:
    secret = "sk-ant-api03-" + "a1B2" * 20
    entry = make_entry(
        {"v": 1, "id": "w-1", "at": 5, "kind": "note", "note": "x", "value": "long " * 200 + secret}, Redactor()
    )
    assert secret.encode() not in entry.body + b"".join(entry.texts.values())


def test_what_was_taken_out_is_listed() -> None:
    secret = "sk-ant-api03-" + "a1B2" * 20
    entry = make_entry({"v": 1, "id": "w-1", "at": 5, "kind": "note", "note": "x", "value": secret}, Redactor())
    ((where, _, digest),) = msgspec.json.decode(entry.body)["redacted"]
    assert where == "value"
    assert digest
