"""The page of a framework does what it says: its example is a whole program, and runs without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from driver import NAME

from fairlead.hosts.frameworks.framework import framework_named

ROOT = Path(__file__).parents[3]
PAGE = ROOT / f"docs/frameworks/{NAME}.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.skipif(NAME == "loop", reason="the loop is no framework, and has its own page")
def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    programs = [block for block in BLOCK.findall(PAGE.read_text()) if "__main__" in block or "print(" in block]
    assert programs
    for program in programs:
        environment = os.environ | {"HOME": str(tmp_path), "FAIRLEAD_STATE_DIR": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()


@pytest.mark.skipif(NAME == "loop", reason="the loop is no framework, and has no versions")
def test_the_extra_and_the_page_name_the_range_that_is_tried() -> None:
    framework = framework_named(NAME)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extras[NAME.replace("_", "-")] == [f"{framework.package}{framework.versions}"]
    tried = tomllib.loads((ROOT / "tests/hosts/frameworks/versions.toml").read_text())[NAME]
    assert tried["old"][0].split("==")[1].startswith(framework.versions.split(",")[0].removeprefix(">="))
    installed = version(framework.package)
    assert f"{framework.package}=={installed}" in (tried["old"][0], tried["new"][0])
