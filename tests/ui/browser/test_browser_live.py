"""What is live in a real browser: a session of an agent CLI, a first session, several tabs, a minute of rows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from real.drivers import Driver, a_driver, binary

from fairlead import Hooks, deny
from fairlead.hosts.clis.probe.model import Model, Say
from fairlead.journal import Journal
from fairlead.lifecycle import BeforeInput, BeforeTool

CLIS = ("codex", "claude_code")
A_SECOND = 1000.0
"""Milliseconds within which a session of a CLI must be on the page."""
RATE, MINUTE = 50, 60
"""Decisions a second, and for how many seconds."""
ARRIVED = """(selector) => new Promise((done) => {
  const look = () => document.querySelector(selector) ? done(Date.now()) : requestAnimationFrame(look);
  look();
})"""


@pytest.fixture(params=CLIS)
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    if not binary(request.param).exists():
        pytest.skip(f"{request.param} is not installed: `make e2e-ui` fetches it")
    with a_driver(request.param, tmp_path_factory.mktemp("d")) as made:
        yield made


def test_a_live_session_of_an_agent_cli_appears_within_a_second(open_page, driver: Driver, keep) -> None:
    """Counted from when its first record was made to when its row is in the page."""
    driver.install()
    page = open_page("/", of=driver.state / "journal.db")
    page.get_by_text("No session has been recorded yet").wait_for()
    page.evaluate(f"() => {{ window.arrived = ({ARRIVED})('#rows > tr'); }}")  # does not wait for it
    with Model(driver.program.shell("touch forbidden"), Say("FINE")) as model:
        driver.program.run("do it", model, timeout=120)
    arrived = page.evaluate("window.arrived")
    page.locator("#rows .badge", has_text="denied").wait_for()
    keep(page, f"live-{driver.host.name}")
    page.locator("#rows a.title").first.click()
    page.locator(".standing-out a", has_text="forbidden").wait_for()
    made = min(body["at"] for body in driver.records(notes=False)) / 1e6
    assert arrived - made < A_SECOND


async def write(path: Path, calls: range, rate: float = 0.0) -> None:
    """Record a message and decisions on calls, `rate` in a second: every tenth is a denial."""
    journal = Journal(path)
    async with Hooks(journal=journal) as hooks:
        hooks.add(
            lambda step: deny("no") if step.args["command"].endswith("0") else None, on="before_tool", name="tens"
        )
        await hooks.dispatch(BeforeInput(input="count", session_id="s"))
        began = time.monotonic()
        for done, number in enumerate(calls, 1):
            args = {"command": f"echo {number}"}
            await hooks.dispatch(BeforeTool(tool="bash", args=args, call_id=f"call-{number}", session_id="s"))
            if rate:
                await asyncio.sleep(max(began + done / rate - time.monotonic(), 0))
    journal.close()


def in_thread(path: Path, calls: range, rate: float = 0.0) -> Thread:
    """The same beside the browser, whose library has a loop on this thread."""
    writer = Thread(target=lambda: asyncio.run(write(path, calls, rate)))
    writer.start()
    return writer


def memory_of(process: int) -> int:
    """The kilobytes that a process has in memory."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


COUNT = """() => {
  window.seen = new Set();
  const rows = document.getElementById("rows");
  for (const row of rows.children) window.seen.add(row.id);
  new MutationObserver((changes) => {
    for (const change of changes) for (const row of change.addedNodes) if (row.id) window.seen.add(row.id);
  }).observe(rows, { childList: true });
}"""


def test_of_fifty_decisions_a_second_for_a_minute_none_is_lost(open_page, inspectors, tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    in_thread(path, range(1)).join()
    page = open_page("/session?id=s", of=path)
    page.wait_for_selector("#live.on")
    page.evaluate(COUNT)
    writer = in_thread(path, range(1, RATE * MINUTE + 1), RATE)
    used = []
    while writer.is_alive():
        page.wait_for_timeout(2000)
        used.append(memory_of(inspectors[-1].process.pid))
    every = RATE * MINUTE + 3  # and two messages, and the first call
    until = time.monotonic() + 60
    while page.evaluate("window.seen.size") < every and time.monotonic() < until:
        page.wait_for_timeout(200)
    assert page.evaluate("window.seen.size") == every
    assert page.locator("#rows > li").count() <= 500
    half = len(used) // 2
    assert max(used[half:]) - max(used[2:half]) < 4_000  # kilobytes


def test_two_tabs_and_six_feeds_leave_room_for_pages(open_page, journal: Path) -> None:
    """A browser has six connections to a server. A tab that is hidden gives its own back."""
    first = open_page("/")
    base = first.url.rstrip("/")
    tabs = [first]
    for address in ("/session?id=calls", "/", "/approvals", "/session?id=every-event", "/"):
        tabs.append(first.context.new_page())
        tabs[-1].goto(base + address, wait_until="domcontentloaded")
    for tab in tabs[1:-1]:
        tab.evaluate(HIDE)
    for tab in (tabs[0], tabs[-1]):
        tab.wait_for_selector("#live.on")
    seventh = first.context.new_page()
    seventh.goto(f"{base}/decisions", wait_until="domcontentloaded", timeout=10_000)
    assert seventh.locator("#rows > li").count() > 10
    seventh.goto(f"{base}/hooks", wait_until="domcontentloaded", timeout=10_000)


HIDE = """() => {
  Object.defineProperty(document, "hidden", { value: true, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_tab_that_was_hidden_goes_on_where_it_was(open_page, tmp_path: Path) -> None:
    path = tmp_path / "live.db"
    in_thread(path, range(3)).join()
    page = open_page("/session?id=s", of=path)
    page.wait_for_selector("#live.on")
    page.evaluate(HIDE)
    page.get_by_text("paused").wait_for()
    in_thread(path, range(3, 20)).join()
    page.evaluate('delete document.hidden; document.dispatchEvent(new Event("visibilitychange"))')
    page.wait_for_selector("#live.on")
    page.locator("#rows > li", has_text="echo 19").wait_for()
    assert page.locator("#rows > li").count() == 1 + 3 + 1 + 17
