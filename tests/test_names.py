"""One name has one meaning, and words name their actor: checked over all of src, and over the docs."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fairlead"

SHARED = {
    "Agent": "the agent of a step, and the reference loop's own",
    "Command": "a hook that is a command, and a command of a line: both are documented under this name",
    "Fairlead": "the adapter of each framework",
    "Call": "a command of a flow; and the name that a scripted call of a model had in earlier versions",
    "ToolFailed": "an adapter's exception for a tool that failed",
    "Worker": "the daemon's side of a worker, and the program's: both are documented under this name",
    "_TranscriptReader": "each CLI's reader of its transcripts",
} | dict.fromkeys(("Block", "Carrier", "Pipeline", "Simple"), "the same part of a POSIX line and of a Windows line")
"""Names of classes and types that several modules define, and why."""

STORED = {("server/grants.py", "given"), ("ui/findings.py", "said")} | {
    (module, "asked")
    for module in ("journal/entry.py", "journal/reading.py", "server/approvals.py", "server/notifications.py")
}
"""Names of columns and keys in files that users have, and in what the daemon sends."""
OF_SPEECH = re.compile(
    r"_?(heard|unheard|listens|said|told|tell|tells|hears|spoken|given|begun|asked|asking|patience|woven)"
)
PERSONS = re.compile(r"\b(nobody|somebody|whoever|anybody)\b", re.IGNORECASE)


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield str(path.relative_to(SOURCE)), ast.parse(path.read_text("utf-8"))


def types_in(tree: ast.Module) -> Iterator[str]:
    """The classes of a module, and the names that it gives to types."""
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name) and re.fullmatch(r"_?[A-Z]\w*[a-z]\w*", target.id):
                yield target.id


def names_in(tree: ast.Module) -> Iterator[str]:
    """Every name that a module gives to something."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def test_a_class_name_has_one_meaning() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for module, tree in trees():
        for name in types_in(tree):
            places[name].add(module)
    several = {name: sorted(found) for name, found in places.items() if len(found) > 1}
    assert {name: found for name, found in several.items() if name not in SHARED} == {}


def test_no_name_is_a_word_of_speech() -> None:
    found = {(module, name) for module, tree in trees() for name in names_in(tree) if OF_SPEECH.fullmatch(name)}
    assert found - STORED == set()


def test_comments_and_pages_name_the_actor() -> None:
    pages = [*SOURCE.rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    prose = re.compile(r"-u nobody|`[^`\n]*`|\]\([^)]*\)|tests/[\w/.:]+")  # what programs print, and links
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in pages
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if PERSONS.search(prose.sub("", line))
    ]
    assert found == []
