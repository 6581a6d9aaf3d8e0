"""Measures how long the inspector's server takes for each page of a journal with a million records, and the browser.

Part of `make bench`. Prints figures and compares them with the limit; asserts nothing. `python -m bench.ui 100000`
takes fewer records, and `python -m bench.ui --keep FILE` keeps the journal.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sqlite3
import statistics
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from starlette.testclient import TestClient

from fairlead import Hooks, Journal, Verdict, change, deny
from fairlead.lifecycle import event_named
from fairlead.ui.access import TOKEN_HEADER, Access
from fairlead.ui.app import PAGES, make_app

MILLION, SESSIONS, CALLS = 1_000_000, 50, 6
LARGE = 4000
"""Calls of the largest session."""
ROUNDS = 5
LIMIT_MS = 100.0
ORIGIN = "http://127.0.0.1:8000"


def hooked(journal: Journal) -> Hooks:
    """Hooks like those of a user: a few gates, a change, an observer."""
    hooks = Hooks(journal=journal)

    @hooks.on.before_tool(kind="shell", phase="gate", name="no-force-push")
    def no_force_push(step: Any) -> Verdict | None:
        return deny("Force-push is off here.") if "push --force" in step.target.command else None

    @hooks.on.before_tool(kind="shell", name="trash")
    def trash(step: Any) -> Verdict | None:
        return change(command="mv build .trash/") if step.target.command.startswith("rm -rf") else None

    for name in ("secrets", "budget"):
        hooks.add(lambda step: None, on="before_tool", phase="gate", name=name)
    hooks.add(lambda step: None, on="after_tool", phase="observe", name="audit")
    return hooks


async def write_template(path: Path) -> None:
    """Some sessions as an agent has them: messages, model calls with long texts, tool calls, a few denials."""
    journal = Journal(path)
    async with hooked(journal) as hooks:
        for number in range(SESSIONS):
            await _session(hooks, f"s-{number}", CALLS, number)
        await _session(hooks, "large", LARGE, 0)
    journal.close()


async def _session(hooks: Hooks, name: str, calls: int, number: int) -> None:
    session = hooks.session(name, host="claude_code", cwd=f"/work/project-{number % 7}")

    async def at(event: str, **fields: Any) -> None:
        await session.dispatch(session.step(event_named(event).step, **fields))

    await at("before_input", input=f"Fix issue {number}, and save the work.")
    for call in range(calls):
        await at("before_model", model="scripted", message_count=call)
        await at("after_model", model="scripted", output=f"I will look at part {call} of {number}. " + "More. " * 100)
        rare = (number + call) % 97 == 0
        command = "git push --force" if rare else "rm -rf build" if (number + call) % 53 == 0 else f"pytest -k {call}"
        given = {"tool": "bash", "args": {"command": command}, "call_id": f"call-{call}"}
        for event in ("tool_requested", "before_tool"):
            await at(event, **given)
        await at("after_tool", outcome="denied" if rare else "ok", executed=not rare, output="done", **given)
    await at("before_turn_end", stop_reason="end_turn")
    await at("turn_end", stop_reason="end_turn")


def multiply(path: Path, records: int) -> int:
    """Copy the sessions of a journal under other names until it has that many records. Its digests are not right."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA synchronous = OFF")
    columns = [row[1] for row in db.execute("PRAGMA table_info(records)")]
    (last,) = db.execute("SELECT max(seq) FROM records WHERE session <> 'large'").fetchone()
    (top,) = db.execute("SELECT max(seq) FROM records").fetchone()
    copied = {"seq": "seq + :by", "id": "id || :mark", "at": "at + :by * 1000000", "session": "session || :mark"}
    copies = ", ".join(copied.get(name, name) for name in columns)
    counts = [row[1] for row in db.execute("PRAGMA table_info(sessions)")]
    moved = copied | {"first": "first + :by", "last": "last + :by", "began": copied["at"].replace("at", "began", 1)}
    moved["ended"] = copied["at"].replace("at", "ended", 1)
    sessions = ", ".join(moved.get(name, name) for name in counts)
    for number in range(1, max((records - top) // last, 0) + 1):
        about = {"by": top + (number - 1) * last, "mark": f"+{number}", "last": last}
        db.execute("BEGIN")
        db.execute(f"INSERT INTO records SELECT {copies} FROM records WHERE seq <= :last", about)
        db.execute(
            "INSERT INTO runs SELECT seq + :by, place, hook, outcome, took, control FROM runs WHERE seq <= :last", about
        )
        db.execute(f"INSERT INTO sessions SELECT {sessions} FROM sessions WHERE last <= :last", about)
        db.execute("COMMIT")
    (total,) = db.execute("SELECT count(*) FROM records").fetchone()
    db.close()
    return int(total)


def addresses(path: Path) -> Iterator[tuple[str, str]]:
    """The pages to measure: those of the menu, and those that are about one thing."""
    db = sqlite3.connect(path)
    (middle,) = db.execute("SELECT max(seq) / 2 FROM records").fetchone()
    (session,) = db.execute("SELECT session FROM records WHERE seq = ?", (middle,)).fetchone()
    db.close()
    for page in PAGES:
        if menu := getattr(page, "MENU", None):
            yield menu[0], menu[1]
        yield from getattr(page, "HEAVY", ())
    yield "sessions in the middle", f"/?before={middle}"
    yield "a session", f"/session?id={session}".replace("+", "%2B")
    yield "500 moments of a session", "/session?id=large"
    yield "a record in a large session", f"/session?id=large&at={middle // 1000 + LARGE}"
    yield "a decision", f"/decision?id={middle}"
    yield "details of a moment", f"/moment?record={middle}"


def milliseconds(client: TestClient, address: str) -> tuple[float, float, int]:
    """The processor's time for a page, the time until it is there, and its size. The median of some calls."""
    busy, taken, size = [], [], 0
    for _ in range(ROUNDS):
        began, started = process_time(), perf_counter()
        answer = client.get(address)
        taken.append((perf_counter() - started) * 1e3)
        busy.append((process_time() - began) * 1e3)
        assert answer.status_code == 200, (address, answer.text)
        size = len(answer.content)
    return statistics.median(busy), statistics.median(taken), size


def measure(path: Path) -> None:
    access = Access()
    client = TestClient(make_app(path, access, is_ours=lambda scope: True), base_url=ORIGIN)
    token = access.address(8000).partition("#")[2]
    client.post("/sign-in", headers={TOKEN_HEADER: token, "origin": ORIGIN})
    for name, address in addresses(path):
        busy, taken, size = milliseconds(client, address)
        mark = "" if busy <= LIMIT_MS else "   OVER"
        print(f"{name:<32} {busy:7.1f} ms of the processor, {taken:7.1f} ms in all, {size / 1e3:6.0f} kB{mark}")


PAINTED = """() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
  const [page] = performance.getEntriesByType("navigation");
  done([page.responseEnd - page.requestStart, performance.now() - page.responseEnd]);
})))"""


def in_browser(path: Path) -> None:
    """How long Chromium takes until a page of 500 moments is painted, and to open one of them."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or find_spec("playwright") is None:
        print("in the browser: not measured; install chromium, and fairlead[e2e-ui]")
        return
    from playwright.sync_api import sync_playwright

    words = [sys.executable, "-m", "fairlead", "ui", "--no-open", "--journal", str(path)]
    with (
        subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as running,
    ):
        address = server.stdout.readline().split()[-1]  # type: ignore[union-attr]
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.goto(address)
        page.wait_for_url(lambda url: "/sign-in" not in url)
        rounds = []
        for _ in range(ROUNDS):
            page.goto(address.partition("/sign-in")[0] + "/session?id=large", wait_until="load")
            answered, painted = page.evaluate(PAINTED)
            started = perf_counter()
            page.locator("#rows > li:not(.quiet) summary").last.click()
            page.locator("details[open] .details").first.wait_for()
            rounds.append((answered, painted, (perf_counter() - started) * 1e3))
        browser.close()
        server.terminate()
    answered, painted, opened = (statistics.median(times) for times in zip(*rounds, strict=True))
    figures = f"{answered:.0f} ms for the answer, {painted:.0f} ms until it is painted, {opened:.0f} ms to open a row"
    print(f"500 moments in Chromium: {figures}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("records", nargs="?", type=int, default=MILLION)
    parser.add_argument("--keep", type=Path, metavar="FILE")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        path = options.keep or Path(name) / "million.db"
        if not path.exists():
            asyncio.run(write_template(path))
            multiply(path, options.records)
        size = path.stat().st_size / 1e6
        print(f"{path.name}: {size:,.0f} MB; each page in at most {LIMIT_MS:g} ms of the server's time")
        measure(path)
        in_browser(path)


if __name__ == "__main__":
    main()
