"""What an assignment of a line sets: `a=1`, `a+=1`, `a[1]=x`, `a=(1 2)`, `a=([k]=v)`."""

from __future__ import annotations

import re

from .syntax import Parser
from .tree import Assignment
from .words import Expander, Value, Word, made

_KEYED = re.compile(r"\[[^\]]*\]\+?=")


def assigned_value(words: Expander, one: Assignment, depth: int) -> Value:
    """The new value of a variable."""
    old = words.variables.get(one.name)
    if isinstance(one.value, list):
        items = [field for word in one.value for field in words.fields(word)]
        if any(_KEYED.match(item) for item in items):  # in what order they come is not followed
            return [Word(_KEYED.sub("", item, count=1), (f"${one.name}",)) for item in items]
        return [*old, *items] if one.adds and isinstance(old, list) else None if one.adds and old is None else items
    text = words.text(one.value)
    if one.item is not None:
        if "$(" in one.item or "`" in one.item:
            words.text(Parser(one.item, words.budget, depth).parse_text())  # what runs in it counts
        index = words.calculated(one.item)
        return _with_item(old, index, text) if not one.adds else None
    if one.name in words.integers:
        words.evaluate(text)
    if one.adds:
        return made((old, text)) if isinstance(old, str) else None
    return text


def _with_item(old: Value, index: str | None, text: str) -> Value:
    """`a[1]=x`: an array with one more item. Where it has gaps or keys, no item is known for sure."""
    items = list(old) if isinstance(old, list) else [] if old is None else [old]
    if index is None or not 0 <= int(index) <= len(items):
        return [Word(item, ("[...]",)) for item in (*items, text)]
    return [*items[: int(index)], text, *items[int(index) + 1 :]]
