"""A journal with every event in it, and a browser's tab that is signed in to the inspector of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from starlette.testclient import TestClient
from ui_journal import write_journal

from fairlead.cli import main
from fairlead.journal.reading import Reader
from fairlead.ui.access import KEY_HEADER, TOKEN_HEADER, Access
from fairlead.ui.app import make_app

ORIGIN = "http://127.0.0.1:8000"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of their own for every test."""
    for name, folder in {"HOME": "home", "XDG_CONFIG_HOME": "config", "FAIRLEAD_STATE_DIR": "state"}.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path


@pytest.fixture(scope="session")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal that the tests share. They only read it."""
    path = tmp_path_factory.mktemp("ui") / "journal.db"
    writer = Thread(target=asyncio.run, args=(write_journal(path),))  # playwright has a loop on the test's own thread
    writer.start()
    writer.join()
    return path


@pytest.fixture
def reader(journal: Path) -> Iterator[Reader]:
    with Reader(journal) as reader:
        yield reader


class Tab:
    """A browser's tab. `get` and `post` send what a page of the inspector would send."""

    def __init__(self, journal: Path, **options: Any) -> None:
        self.access = Access()
        app = make_app(journal, self.access, is_ours=lambda scope: True, **options)
        self.client = TestClient(app, base_url=ORIGIN, follow_redirects=False, raise_server_exceptions=False)
        self.key = ""

    def sign_in(self) -> Tab:
        token = self.access.address(8000).partition("#")[2]
        answer = self.client.post("/sign-in", headers={TOKEN_HEADER: token, "origin": ORIGIN})
        assert answer.status_code == 200
        self.key = answer.json()["key"]
        return self

    def get(self, address: str, **headers: str) -> Any:
        return self.client.get(address, headers=_names(headers))

    def post(self, address: str, data: Any = None, **headers: str) -> Any:
        sent = {"origin": ORIGIN, KEY_HEADER: self.key} | _names(headers)
        return self.client.post(address, data=data, headers={name: value for name, value in sent.items() if value})


def _names(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@pytest.fixture
def new_tab(journal: Path) -> Callable[..., Tab]:
    """Makes a tab that is not signed in: `new_tab()`, or `new_tab(journal, code=AnswerCode(print))`."""
    return lambda path=journal, **options: Tab(path, **options)


@pytest.fixture
def tab(new_tab: Callable[..., Tab]) -> Tab:
    """A tab that is signed in."""
    return new_tab().sign_in()


@pytest.fixture
def fairlead(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command, and returns its exit code and what it printed."""

    def run(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main(list(words))
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *capsys.readouterr()

    return run
