"""What the benchmarks are made of is there, on a fresh machine, too."""

from __future__ import annotations

import ast
import re
import socket
import tomllib
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest

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


IMPORT = re.compile(r"from (fairlead[\w.]*) import (\w+(?:, \w+)*)")


def imports_of_fairlead(text: str) -> Iterator[tuple[str, str]]:
    """The modules and names of fairlead that a benchmark imports, in the scripts that it starts, too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fairlead":
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from ((module, name) for module, names in IMPORT.findall(node.value) for name in names.split(", "))


@pytest.mark.parametrize("file", sorted((ROOT / "bench").glob("*.py")), ids=lambda file: file.stem)
def test_what_a_benchmark_imports_of_fairlead_is_there(file: Path):
    for module, name in imports_of_fairlead(file.read_text()):
        assert hasattr(import_module(module), name) or find_spec(f"{module}.{name}"), f"{module} has no {name}"


def test_a_burst_needs_no_connection_from_before(tmp_path: Path, monkeypatch):
    """On a busy machine, a server has closed the connection that was idle while another was measured."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)  # a socket's path is not to be long
    from bench.server import UnixConnection

    def serve(listening: socket.socket) -> None:
        for _ in range(2):
            connection, _ = listening.accept()
            with connection:
                for _ in range(3):
                    connection.recv(1 << 16)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        listening.listen()
        server = Thread(target=serve, args=(listening,), daemon=True)
        server.start()
        connection = UnixConnection(Path("s"))
        assert [len(connection.burst(b"", 3)) for _ in range(2)] == [3, 3]
        connection.close()
        server.join(10)


def test_the_benchmark_of_replay_runs_on_a_small_journal(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(ROOT))
    from bench import replay

    monkeypatch.setattr("sys.argv", ["replay", "--records", "300"])
    replay.main()
    assert "loosened" in capsys.readouterr().out
