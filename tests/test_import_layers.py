"""No lower part of fairlead imports a higher one. docs/import_graph.py has the table, and draws it."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


def load(path: Path) -> ModuleType:
    spec = spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[path.stem] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


graph = load(Path(__file__).parents[1] / "docs" / "import_graph.py")


@cache
def imports() -> list[Any]:
    """All imports of the tree. Reading them takes over a second."""
    return graph.read_imports()


def test_no_lower_part_imports_a_higher_one():
    found = graph.violations(imports())
    assert not found, "\n".join(found)


def test_every_module_is_in_a_layer():
    for one in imports():
        for module in filter(None, one[:2]):
            graph.part_of(module)


def test_every_late_import_that_goes_up_has_a_reason():
    assert all(graph.LATE.values())


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("errors.py", "from .cli import main", "errors (basics) imports cli (cli)"),
        ("errors.py", "from . import registry", "errors (basics) imports registry (hooks)"),
        ("errors.py", "import fairlead.registry", "errors (basics) imports registry (hooks)"),
        ("errors.py", "from fairlead.cli.test import run", "errors (basics) imports cli.test (cli)"),
        ("errors.py", "def f():\n    from .server import app", "imports server.app (server) inside a function"),
        ("errors.py", "try:\n    from .config import load\nexcept ImportError:\n    pass", "imports config (config)"),
        ("server/app.py", "from ..cli.test import run", "server.app (server) imports cli.test (cli)"),
        ("server/app.py", "from ..errors import FairleadError", None),
        ("errors.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .cli import main", None),
    ],
)  # fmt: skip
def test_an_import_that_goes_up_is_found(tmp_path: Path, file: str, text: str, expected: str | None):
    for name in ("errors.py", "registry.py", "server/app.py", "cli/test.py", "cli/__init__.py", "config/__init__.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text if name == file else "")
    found = [line for line in graph.violations(graph.read_imports(tmp_path)) if "no import needs" not in line]
    if expected is None:
        assert found == []
    else:
        assert len(found) == 1
        assert expected in found[0]


def test_the_picture_has_every_part():
    picture = ET.fromstring(graph.draw(imports()))
    shown = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    used = {graph.part_of(one.importer) for one in imports() if one.importer}
    assert used <= set(shown)


def test_the_page_about_the_internals_shows_the_layers():
    page = (Path(__file__).parents[1] / "docs" / "internals.md").read_text()
    assert f"```\n{graph.layers(imports())}```" in page
