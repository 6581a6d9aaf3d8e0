"""The JSON Schema of fairlead.toml takes what the reader takes, and refuses a key that the reader refuses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator

from fairlead.cli.init import starter
from fairlead.config import journaling, layers, reading
from fairlead.config.schema import config_schema

ROOT = Path(__file__).parents[2]
SCHEMA = config_schema()
VALIDATOR = Draft7Validator(SCHEMA)
BLOCK = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = {
    f"{page.relative_to(ROOT)}-{number}": block
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for number, block in enumerate(BLOCK.findall(page.read_text()))
    if re.search(r"^\[\[?(hook|tool|defaults|journal|redact|pack|exemption)\b", block, re.MULTILINE)
}  # of other programs' files there are examples, too

STARTERS = [starter(), starter(monitor=True)]


def errors(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(tomllib.loads(text))]


def test_it_is_a_schema():
    Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("text", [*STARTERS, *EXAMPLES.values()], ids=["starter", "watching", *EXAMPLES])
def test_every_example_is_valid(text: str):
    assert errors(text) == []


def test_the_examples_of_the_pages_are_found():
    assert len(EXAMPLES) >= 3


def tables(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], str]]:
    """Each key of a document that the schema knows by name, and where it is."""
    found = []
    for key, value in data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ():
        if isinstance(data, dict) and path[-1:] not in (("headers",), ("exit",), ("env",), ("change",), ("pack",)):
            found.append((path, key))
        if key != "change":
            found += tables(value, (*path, key))
    return found


@pytest.mark.parametrize("text", [*STARTERS, *EXAMPLES.values()], ids=["starter", "watching", *EXAMPLES])
def test_a_misspelt_key_is_refused_wherever_it_is(text: str):
    for path, key in tables(tomllib.loads(text)):
        data = tomllib.loads(text)
        table: Any = data
        for part in path:
            table = table[part]
        if isinstance(table, dict):
            table[f"{key}x"] = table.pop(key)
            assert not VALIDATOR.is_valid(data), (path, key)


def test_every_key_that_the_reader_knows_is_in_it():
    properties = SCHEMA["properties"]
    forms = [form for form in reading.FORMS if form not in reading.LATER]
    assert set(properties) == set(layers.TOP)
    assert set(properties["defaults"]["properties"]) == set(layers.DEFAULTS)
    assert set(properties["tool"]["items"]["properties"]) == set(layers.TOOL)
    assert set(properties["journal"]["properties"]) == set(journaling.JOURNAL)
    known = {*reading.COMMON, *forms, *(key for keys in reading.OF_FORM.values() for key in keys)}
    assert set(properties["hook"]["items"]["properties"]) == known


@pytest.mark.parametrize("form", reading.OF_FORM)
def test_a_key_of_another_form_is_refused(form: str, machine):
    value = '["true"]' if form in ("command", "worker") else '"x"'
    others = {key for keys in reading.OF_FORM.values() for key in keys} - set(reading.OF_FORM[form])
    for key in sorted(others):
        text = f'[[hook]]\nname = "a"\non = "before_tool"\n{form} = {value}\n{key} = "x"\n'
        assert any("takes no" in mistake.problem for mistake in machine.problems(user=text)), key
        assert errors(text), key


@pytest.mark.parametrize(
    "wrong",
    ['phase = "gates"', 'on_failure = "opened"', "timeout = true", 'match = { kind = "shel" }', 'exit = { 0 = "go" }',
     'may = ["fly"]', 'shell = "a second way to run"', "priority = 1.5"],
)  # fmt: skip
def test_a_wrong_value_is_refused_by_both(wrong: str, machine):
    text = f'[[hook]]\nname = "a"\non = "before_tool"\ncommand = ["true"]\n{wrong}\n'
    assert machine.mistakes(user=text)
    assert errors(text)
