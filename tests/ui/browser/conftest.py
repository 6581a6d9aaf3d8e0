"""A real browser, Chromium from the distribution, and `fairlead ui` as a process of its own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="run `make e2e-ui`")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run",
)  # fmt: skip
SCREENSHOTS = Path(__file__).parents[3] / "build" / "screenshots"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.fail("there is no Chromium; install it with `apt-get install chromium`")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        yield browser
        browser.close()


@pytest.fixture
def new_context(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Makes contexts of the browser, each like a browser of its own. Their pages end with the test."""
    made: list[Any] = []

    def make(**options: Any) -> Any:
        made.append(chromium.new_context(**options))
        return made[-1]

    yield make
    # `context.close()` has no time-out, and can wait without end for a page that loads. The browser's end closes all.
    for page in [page for context in made for page in context.pages]:
        with suppress(playwright.Error):
            page.goto("about:blank", timeout=5_000)


class Inspector:
    """`fairlead ui` as a user starts it: a process, and the address that it prints."""

    def __init__(self, journal: Path, *options: str) -> None:
        words = [sys.executable, "-m", "fairlead", "ui", "--no-open", "--journal", str(journal), *options]
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.address = re.search(r"http\S+", self.process.stdout.readline())[0]
        self.base = self.address.partition("/sign-in")[0]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture(scope="session")
def keep() -> Callable[[Any, str], None]:
    """Keeps a picture of a page, for a person to look at. None is committed."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    return lambda page, name: page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


@pytest.fixture
def inspector() -> Iterator[Callable[..., Inspector]]:
    """Starts an inspector of a journal."""
    started: list[Inspector] = []

    def start(journal: Path, *options: str) -> Inspector:
        started.append(Inspector(journal, *options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def inspectors() -> list[Inspector]:
    """Those that `open_page` started."""
    return []


@pytest.fixture
def said() -> list[str]:
    """What the consoles of the pages say."""
    return []


@pytest.fixture
def open_page(
    new_context: Callable[..., Any],
    inspector: Callable[..., Inspector],
    inspectors: list[Inspector],
    journal: Path,
    said: list[str],
) -> Iterator[Callable[..., Any]]:
    """Opens a page in a tab that is signed in. At the end of the test, no console may have said anything."""

    def open_(path: str = "/", width: int = 1280, scheme: str = "light", *, of: Path = journal) -> Any:
        inspectors.append(inspector(of))
        page = new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page()
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.goto(inspectors[-1].address)
        page.wait_for_url(lambda address: "/sign-in" not in address)
        if path != "/":
            page.goto(inspectors[-1].base + path)
        return page

    yield open_
    assert said == []
