"""A type checker knows the events, and the step of each."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

MISTAKES = {
    "the wrong step": (
        "@hooks.on.before_tool\ndef wrong(step: AfterTool) -> None: ...",
        "AfterTool",
    ),
    "the wrong step with options": (
        "@hooks.on.before_tool(phase='gate')\ndef wrong(step: AfterTool) -> None: ...",
        "AfterTool",
    ),
    "an unknown event": ("hooks.on.befor_tool_x.y + 1\nreveal: int = hooks.on.before_tool", "Decorate[BeforeTool]"),
    "an unknown option": ("hooks.on.before_tool(colour='red')", "colour"),
    "an option of the wrong type": ("hooks.on.before_tool(phase='gates')", "phase"),
    "a field the step does not have": ("BeforeTool(tool='x').comand", "comand"),
    "a step built with an unknown field": ("BeforeTool(tol='x')", "tol"),
    "a step that is not narrowed to a shell's": (
        "from fairlead.lifecycle import ShellCall\n@hooks.on.before_tool\ndef wrong(step: ShellCall) -> None: ...",
        "ShellCall",
    ),
    "a hook that returns nonsense": ("@hooks.on.before_tool\ndef wrong(step: BeforeTool) -> int: return 1", "int"),
}


def mypy(*files: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        str(ROOT / "pyproject.toml"),
        *map(str, files),
    ]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)


def test_typical_user_code_passes_strict_checking():
    result = mypy(ROOT / "tests" / "typing_samples" / "user_code.py")
    assert result.returncode == 0, result.stdout


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What mypy says about each mistake, from one run over all of them."""
    folder = tmp_path_factory.mktemp("mistakes")
    files: dict[str, Path] = {}
    for i, (title, (code, _)) in enumerate(MISTAKES.items()):
        files[title] = folder / f"mistake_{i}.py"
        files[title].write_text(
            "from fairlead import Hooks\nfrom fairlead.lifecycle import AfterTool, BeforeTool\n"
            f"hooks = Hooks()\n{code}\n"
        )
    lines = mypy(*files.values()).stdout.splitlines()
    return {title: "\n".join(line for line in lines if path.name in line) for title, path in files.items()}


@pytest.mark.parametrize("title", MISTAKES)
def test_a_type_checker_finds(title: str, findings: dict[str, str]):
    assert "error" in findings[title]
    assert MISTAKES[title][1] in findings[title]


# --- the pages --------------------------------------------------------------------------------------

BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if BLOCK.search(page.read_text())]


@pytest.fixture(scope="module")
def said_of_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What mypy says of the code on each page, from one run over all of them."""
    folder = tmp_path_factory.mktemp("pages")
    files = {}
    for page in PAGES:
        code = "".join(BLOCK.findall(page.read_text()))
        files[page.name] = folder / f"{page.stem.lower()}_page.py"
        # A page may await at its top, which only a function may.
        files[page.name].write_text("async def page() -> None:\n" + textwrap.indent(code, "    "))
    lines = mypy(*files.values()).stdout.splitlines()
    return {name: [line for line in lines if file.name in line] for name, file in files.items()}


@pytest.mark.parametrize("page", [page.name for page in PAGES])
def test_the_code_on_a_page_passes_strict_checking(page: str, said_of_pages: dict[str, list[str]]):
    assert said_of_pages[page] == []
