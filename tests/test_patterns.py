"""No regular expression of fairlead's means something else in another supported Python.

Up to 3.11.4, `re` matches atomic groups and possessive quantifiers wrongly. Both ways are looked at to find one: the
strings that patterns are made of, and the patterns that were made.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlead
from fairlead import FairleadError
from fairlead.redaction import shapes as secret_shapes
from fairlead.redaction.redactor import Redactor, gives_nothing_back

SOURCE = Path(fairlead.__file__).parent
NO_PATTERNS = {"+++", "++"}


def strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The strings of a module, and the parts of its f-strings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)) and id(node) not in docstrings:
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            yield node.lineno, text


@pytest.mark.parametrize("text", ["a*+", "[^x]++", "(?:a|b){1,2}+", "(?>a)", "*+", "{0,80}+", r"\d?+b"])
def test_the_search_finds_what_gives_nothing_back(text: str):
    assert gives_nothing_back(text)


@pytest.mark.parametrize("text", ["a*", r"\*+", "[*+]+", "a+b", "(?:a)+", r"\++", "(+)", "{}+", "[]*+]x", r"[\]*+]"])
def test_the_search_finds_nothing_in_other_patterns(text: str):
    assert not gives_nothing_back(text)


def test_no_string_of_the_source_is_part_of_a_pattern_that_gives_nothing_back():
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text[:80]!r}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, text in strings(ast.parse(path.read_text()))
        if text not in NO_PATTERNS and gives_nothing_back(text)
    ]
    assert found == []


def nodes(parsed: Any) -> Iterator[str]:
    """The names of everything in a parsed pattern."""
    if type(parsed).__name__ == "_NamedIntConstant":
        yield parsed.name
    elif isinstance(parsed, (list, tuple)) or type(parsed).__name__ == "SubPattern":
        for part in parsed:
            yield from nodes(part)


def patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Every pattern that the package compiles when it is imported, and those that wait for their first use."""
    for module in pkgutil.walk_packages(fairlead.__path__, "fairlead."):
        if module.name.endswith("__main__"):
            continue
        try:
            loaded = importlib.import_module(module.name)
        except ImportError:  # of an extra that is not installed; its strings were looked at above
            continue
        holders = [loaded, *(value for value in vars(loaded).values() if isinstance(value, type))]
        for holder in holders:
            for name, value in list(vars(holder).items()):
                if isinstance(value, re.Pattern):
                    yield f"{module.name}.{name}", value
    lazy = [name for name, value in vars(secret_shapes).items() if name.startswith("_") and isinstance(value, str)]
    for name in lazy:
        try:
            yield f"secret_shapes.{name}", re.compile(getattr(secret_shapes, name))
        except re.error:  # part of one, with a group of another part
            continue
    for shape in (*secret_shapes.SHAPES, *(place.shape for place in secret_shapes.PLACES)):
        yield f"the shape of a {shape.kind}", re.compile(shape.pattern)


def test_no_pattern_gives_nothing_back():
    parser = importlib.import_module("re._parser")
    seen = dict(patterns())
    bad = {"ATOMIC_GROUP", "POSSESSIVE_REPEAT"}
    found = [name for name, one in seen.items() if bad & set(nodes(parser.parse(one.pattern, one.flags)))]
    assert (found, len(seen) > 300) == ([], True)


@pytest.mark.parametrize("pattern", ["acme-[0-9]++", "(?>acme|ac)-[0-9]+", "acme-(?:[0-9]{4}-)*+x"])
def test_a_pattern_of_the_user_s_that_gives_nothing_back_is_refused(pattern: str):
    with pytest.raises(FairleadError, match="other versions of Python"):
        Redactor(patterns=[pattern])


@pytest.mark.parametrize("pattern", [r"acme\++[0-9]+", "acme-[*+]+", r"acme-(?P<secret>[0-9]+)"])
def test_other_patterns_of_the_user_s_are_taken(pattern: str):
    Redactor(patterns=[pattern])
