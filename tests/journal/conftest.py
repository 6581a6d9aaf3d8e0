"""Journals in a folder of their own, programs that write them, and the command line that reads them."""

from __future__ import annotations

import json
import logging
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from fairlead import Hooks, Verdict, change, deny, inject
from fairlead.cli import main
from fairlead.config import layers
from fairlead.journal import Journal
from fairlead.journal.reading import Filter, Reader, Record
from fairlead.lifecycle import BeforeTool

DEADLINE = 20
PRELUDE = """
import asyncio, logging, os, signal, sys, threading
from pathlib import Path
from fairlead import Hooks, deny
from fairlead.journal import Journal
from fairlead.journal.reading import Reader
from fairlead.lifecycle import BeforeTool
path = Path(sys.argv[1])

def step(number):
    return BeforeTool(tool="bash", args={"command": f"echo {number}"}, call_id=str(number))

def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())

"""


class Ended(NamedTuple):
    """How a program ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user and a system of their own for every test."""
    for name in ("NO_COLOR", "COLUMNS", "XDG_STATE_HOME", "PYTHONUNBUFFERED", "PYTHONIOENCODING"):
        monkeypatch.delenv(name, raising=False)
    for name, folder in {"HOME": "home", "XDG_CONFIG_HOME": "config", "FAIRLEAD_STATE_DIR": "state"}.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    (tmp_path / "home").mkdir()
    monkeypatch.setattr(layers, "SYSTEM_FILE", tmp_path / "etc/fairlead.toml")
    return tmp_path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
def open_journal(path: Path) -> Iterator[Callable[..., Journal]]:
    """Make a journal, at `path` unless told otherwise. It is closed when the test is over."""
    made: list[Journal] = []

    def open_journal(where: Path | None = None, **options: Any) -> Journal:
        made.append(Journal(where or path, **options))
        return made[-1]

    yield open_journal
    for journal in made:
        journal.close(2)


@pytest.fixture
def journal(open_journal: Callable[..., Journal]) -> Journal:
    return open_journal()


def step(number: object = 1, **about: Any) -> BeforeTool:
    return BeforeTool(**{"tool": "bash", "args": {"command": f"echo {number}"}, "call_id": str(number), **about})


@pytest.fixture(name="step")
def _step() -> Callable[..., BeforeTool]:
    return step


@pytest.fixture
def keep(step: Callable[..., BeforeTool]) -> Callable[..., Hooks]:
    """Dispatch some numbered steps with a journal, and wait until they are written."""

    def keep(journal: Journal, *numbers: object, flush: bool = True, hooks: Hooks | None = None, **about: Any) -> Hooks:
        hooks = hooks or Hooks(journal=journal)
        for number in numbers:
            hooks.dispatch_sync(step(number, **about))
        if flush:
            journal.flush()
        return hooks

    return keep


@pytest.fixture
def rich(path: Path, open_journal: Callable[..., Journal]) -> Path:
    """A closed journal that has something in every table and column: runs, texts, notes, sessions, failures."""
    journal = open_journal()
    hooks = Hooks(journal=journal)

    def broken(step: BeforeTool) -> None:
        raise RuntimeError("broken")

    def no_rm(step: BeforeTool) -> Verdict | None:
        return deny("not that") if step.args["command"].startswith("rm") else None

    hooks.add(no_rm, on="before_tool", name="no-rm", phase="gate")
    hooks.add(lambda step: inject("be careful"), on="before_tool", name="careful", tool="ba*")
    hooks.add(lambda step: change(args={"command": "ls -l"}), on="before_tool", name="lister", tool="ls")
    hooks.add(broken, on="before_tool", name="broken", on_failure="open", host="b")
    for number, (tool, command, host) in enumerate(
        [("bash", "echo 1", "a"), ("bash", "rm -r /", "b"), ("ls", "ls " + "x" * 600, "b"), ("bash", "echo 2", "a")]
    ):
        about = {"tool": tool, "args": {"command": command}, "host": host, "session_id": f"s{number % 2}"}
        hooks.dispatch_sync(step(number, **about))
    journal.note("paused", who="me")
    hooks.dispatch_sync(step("last", session_id="s0", host="a"))
    journal.close()
    return path


@pytest.fixture
def records(path: Path) -> Callable[..., list[Record]]:
    """All records of a journal, or some."""

    def records(where: Path | None = None, which: Filter | None = None) -> list[Record]:
        with Reader(where or path) as reader:
            return list(reader.records(which))

    return records


@pytest.fixture
def kept(records: Callable[..., list[Record]]) -> Callable[..., list[str]]:
    """The numbers of the steps that a journal has, in its order."""

    def kept(where: Path | None = None) -> list[str]:
        return [str(record.body["step"]["call_id"]) for record in records(where) if not record.is_note]

    return kept


@pytest.fixture
def notes(records: Callable[..., list[Record]]) -> Callable[..., list[dict[str, Any]]]:
    def notes(where: Path | None = None) -> list[dict[str, Any]]:
        return [record.body for record in records(where) if record.is_note]

    return notes


@pytest.fixture
def sql(path: Path) -> Callable[..., list[Any]]:
    """Do something to a journal's file behind its back."""

    def sql(statement: str, *values: Any, where: Path | None = None) -> list[Any]:
        db = sqlite3.connect(where or path, isolation_level=None)
        try:
            return db.execute(statement, values).fetchall()
        finally:
            db.close()

    return sql


@pytest.fixture
def start(path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a program that begins with `PRELUDE`. Whatever is left of it is killed when the test is over."""
    started: list[subprocess.Popen[bytes]] = []

    def start(code: str, *words: object, where: Path | None = None, **options: Any) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-c", PRELUDE + code, str(where or path), *map(str, words)]
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **options,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        with suppress(ProcessLookupError):  # also what it has started, should that be left
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


Run = Callable[..., Ended]


@pytest.fixture
def run(start: Callable[..., subprocess.Popen[bytes]]) -> Run:
    """Run a program that begins with `PRELUDE` to its end."""

    def run(code: str, *words: object, **options: Any) -> Ended:
        process = start(code, *words, **options)
        out, err = process.communicate(timeout=DEADLINE)
        return Ended(process.returncode, out.decode(), err.decode())

    return run


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command of the command line in this process."""

    def cli(*words: object) -> Ended:
        capsys.readouterr()
        before = {end: signal.getsignal(end) for end in (signal.SIGTERM, signal.SIGHUP)}
        try:
            code = main([str(word) for word in words])
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            for end, handler in before.items():
                signal.signal(end, handler)
        return Ended(code, *capsys.readouterr())

    return cli


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.WARNING, "fairlead")
    return caplog
