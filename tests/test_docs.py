"""The README, the docs and the examples do what they say: every Python block is run, page by page."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda p: p.name)
async def test_the_examples_on_a_page_run(page: Path):
    names: dict[str, object] = {"__name__": "docs"}
    for block in BLOCK.findall(page.read_text()):
        code = compile(block, page.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, names)
        if inspect.iscoroutine(result):
            await result


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_an_example_runs(example: Path):
    result = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr


def test_the_tour_shows_what_it_promises():
    shown = subprocess.run([sys.executable, ROOT / "examples" / "tour.py"], capture_output=True, text=True).stdout
    for part in ("deny by no_force_push", "terraform plan prod", "(approval)", "[redacted]", "(timeout)", "monitored"):
        assert part in shown


def test_the_readme_names_the_two_commands_that_do_everything():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text


def test_the_guide_has_every_option():
    from fairlead.hook import Options

    guide = (ROOT / "docs" / "guide.md").read_text()
    for option in Options.__annotations__:
        assert f"`{option}`" in guide


def test_the_guide_has_every_verdict():
    guide = (ROOT / "docs" / "guide.md").read_text()
    for name in ("deny", "ask", "allow", "skip", "stop", "extend", "retry", "abort", "skip_rest", "change", "inject"):
        assert f"`{name}(" in guide
