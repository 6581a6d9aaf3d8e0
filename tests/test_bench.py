"""What the benchmarks are made of is there, on a fresh machine, too."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_framework_with_a_page_is_measured(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from bench.frameworks import SUITE, measurable

    table = tomllib.loads((SUITE / "versions.toml").read_text())
    pages = {page.stem for page in (ROOT / "docs/frameworks").glob("*.md")}
    assert set(measurable(table)) == pages


def test_every_module_that_make_bench_runs_is_there():
    ran = re.findall(r"-m bench\.(\w+)", (ROOT / "Makefile").read_text())
    assert "scale" in ran
    assert [name for name in ran if not (ROOT / f"bench/{name}.py").exists()] == []
