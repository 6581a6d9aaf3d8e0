"""Importing the core is cheap; and every path that users import leads somewhere."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

import pytest

from fairlead.moved import MOVED

HEAVY = ("pydantic", "httpx", "aiohttp", "starlette", "uvicorn", "opentelemetry", "pytest", "jsonschema", "watchfiles")


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_the_core_imports_nothing_but_the_standard_library_and_msgspec():
    loaded = json.loads(
        run(
            "import sys, json, asyncio, msgspec; before = set(sys.modules); from fairlead import *;"
            "print(json.dumps(sorted({m.split('.')[0] for m in set(sys.modules) - before})))"
        )
    )
    assert set(loaded) - set(sys.stdlib_module_names) == {"fairlead"}


def test_no_extra_is_imported():
    loaded = run("import sys; from fairlead import *; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_every_public_name_exists_and_is_documented():
    import fairlead

    for name in fairlead.__all__:
        thing = getattr(fairlead, name)
        assert thing is not None
        if callable(thing):
            assert thing.__doc__, name


def test_the_package_says_it_is_typed():
    from importlib.resources import files

    assert (files("fairlead") / "py.typed").is_file()


# --- paths that users have in their code --------------------------------------------------------------

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
CODE_NAME = re.compile(r"`(fairlead(?:\.[a-z_]+)+)[`(]|python -m (fairlead(?:\.[a-z_]+)+)")
TOP = {path.stem for path in (ROOT / "src" / "fairlead").iterdir()}

IMPORT = """
import importlib, json, sys, warnings
found = {}
for name in sys.argv[1:]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        module = importlib.import_module(name)
    found[name] = [module.__name__, [str(w.message) for w in caught if w.category is DeprecationWarning]]
print(json.dumps(found))
"""


def imported(*names: str) -> dict[str, tuple[str, list[str]]]:
    """What each path leads to, and what is warned of, in a fresh process."""
    ran = subprocess.run([sys.executable, "-c", IMPORT, *names], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, tuple[str, list[str]]] = json.loads(ran.stdout)
    return found


def test_every_path_of_an_earlier_version_still_works_and_says_the_new_one():
    for old, (found, warned) in imported(*MOVED).items():
        assert found == MOVED[old]
        assert f"{old} is now {found}; the old path goes away in the next release" in warned


def test_a_module_of_a_package_that_moved_is_the_same_under_both_paths():
    pair = ("fairlead.probe.model", "fairlead.hosts.clis.probe.model")
    assert [found for found, _ in imported(*pair).values()] == [pair[1], pair[1]]
    assert imported(*pair)[pair[0]][1][-1].startswith("fairlead.probe.model is now fairlead.hosts.clis.probe.model;")


def documented() -> dict[str, set[str]]:
    """The modules that pages and examples import or name, and what they import from each."""
    sources = [block for page in PAGES for block in BLOCK.findall(page.read_text())]
    sources += [example.read_text() for example in (ROOT / "examples").glob("*.py")]
    found: dict[str, set[str]] = {}
    for node in (node for source in sources for node in ast.walk(ast.parse(source))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fairlead":
            found.setdefault(str(node.module), set()).update(alias.name for alias in node.names)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "fairlead":
                    found.setdefault(alias.name, set())
    for name in (name for page in PAGES for pair in CODE_NAME.findall(page.read_text()) for name in pair if name):
        first = name.split(".")[1]
        if first in TOP and name not in ("fairlead.hook.duration",):  # which is a metric
            found.setdefault(name, set())
    return found


@pytest.mark.parametrize("path", sorted(documented()))
def test_a_documented_path_imports_without_a_warning(path: str):
    names = documented()[path]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            module = importlib.import_module(path)
        except ModuleNotFoundError as missing:
            if missing.name is None or not missing.name.startswith("fairlead"):
                pytest.skip(f"{missing.name} is not installed")  # the frameworks' own tests import it
            owner, _, attribute = path.rpartition(".")
            assert hasattr(importlib.import_module(owner), attribute), path
            return
    assert path not in MOVED
    for name in names:
        assert hasattr(module, name), f"{path} has no {name}"


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("fairlead.redaction", "Redactor redact redact_text"),
        ("fairlead.wire", "encode_step decode_step envelope_schema verdict_schema schemas"),
        ("fairlead.hosts.loop", "Agent Result PermissionPolicy"),
        ("fairlead.config", "load"),
        ("fairlead.journal.reading", "Reader Filter"),
    ],
)
def test_packages_export_what_programs_import_from_them(module: str, names: str):
    for name in names.split():
        assert getattr(import_module(module), name) is not None
