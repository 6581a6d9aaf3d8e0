"""Every page in a real browser: light and dark, narrow and wide, by keys alone, readable, with a silent console."""

from __future__ import annotations

import asyncio
import re
from itertools import product
from pathlib import Path
from threading import Thread

import pytest

from fairlead import Hooks, deny
from fairlead.journal import Journal
from fairlead.journal.reading import Reader
from fairlead.lifecycle import Agent, BeforeInput, BeforeTool

WIDTHS, SCHEMES = (420, 1000, 1600), ("light", "dark")
LOOKS = list(product(WIDTHS, SCHEMES))
PAGES = {
    "sessions": "/", "session": "/session?id=calls", "every-event": "/session?id=every-event",
    "decision": "/decision?id={denied}", "decisions": "/decisions", "denied": "/decisions?decision=deny&tool=bash",
    "texts": "/decisions/texts?q=nowhere", "approvals": "/approvals", "hooks": "/hooks", "policy": "/policy",
    "playground": "/playground?step=git+push+--force&policy=x+%3D+1", "replay": "/replay?record=1",
    "coverage": "/coverage", "journal": "/journal", "not-found": "/nowhere",
}  # fmt: skip
POLICY = """
packs = ["recommended"]

[[hook]]
name = "no-force-push"
on = "before_tool"
match = { kind = "shell" }
rule = 'target.command.contains("push --force")'
deny = "Force-push is off here."
"""
LONG = "a-name-that-a-platform-team-made-from-the-path-of-its-policy/acme.security.no-production-database-v2"

# The contrast of each text with what is behind it, as WCAG defines it, where it is below AA.
TOO_FAINT = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b]
    .map((value) => value / 255)
    .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour.length && (colour.length < 4 || colour[3] > 0)) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const marker = element.closest(".marker");
    const front = parse(element instanceof SVGElement ? style.fill : style.color);
    const back = marker ? parse(getComputedStyle(marker.querySelector("circle")).fill) : behind(element);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    seen += 1;
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (large ? 3 : 4.5)) faint.push(`${ratio.toFixed(2)}: ${node.textContent.trim().slice(0, 40)}`);
  }
  return { seen, faint };
}"""

TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def addresses(journal: Path) -> dict[str, str]:
    with Reader(journal) as reader:
        query = "SELECT id FROM records WHERE control = 'deny' AND session = 'calls' ORDER BY seq LIMIT 1"
        (denied,) = reader.db.execute(query).fetchone()
    return {name: address.format(denied=denied) for name, address in PAGES.items()}


@pytest.fixture
def policy(home: Path) -> None:
    """A user's file, with packs and a rule."""
    file = home / "config/fairlead/fairlead.toml"
    file.parent.mkdir(parents=True)
    file.write_text(POLICY)


def faults_of(page, name: str) -> list[str]:
    """What cannot be read on a page."""
    found = page.evaluate(TOO_FAINT)
    faults = [f"{name}: {faint}" for faint in found["faint"]]
    if (over := page.evaluate(TOO_WIDE)) > 0:
        faults.append(f"{name}: {over} pixels too wide")
    return faults if found["seen"] > 10 else [*faults, f"{name}: only {found['seen']} texts"]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_every_page_can_be_read_at_every_width_in_light_and_dark(
    open_page, policy, addresses, keep, said, width, scheme
):
    page = open_page("/", width, scheme)
    base = page.url.rstrip("/")
    faults = []
    for name, address in addresses.items():
        page.goto(base + address, wait_until="domcontentloaded")
        for summary in page.locator("#rows summary:visible").all()[1:4]:
            summary.click()
        page.wait_for_timeout(200)
        keep(page, f"{name}-{width}-{scheme}")
        faults += faults_of(page, name)
    said[:] = [line for line in said if "404" not in line]  # the page that is not there
    assert faults == []


def test_every_page_of_the_menu_was_looked_at(open_page):
    menu = open_page("/").locator("header nav a").evaluate_all("links => links.map((link) => link.pathname)")
    assert set(menu) <= {address.partition("?")[0] for address in PAGES.values()}


@pytest.fixture
def long_names(tmp_path: Path) -> Path:
    """A journal in which everything that a user names has a long name."""
    path = tmp_path / "long.db"

    async def write() -> None:
        journal = Journal(path)
        async with Hooks(journal=journal) as hooks:
            hooks.add(lambda step: deny(f"{LONG} " * 9), on="before_tool", phase="gate", name=LONG)
            for agent in (None, Agent(id="a", name=LONG, parent="root")):
                given = {"tool": f"mcp__{LONG}", "args": {LONG: LONG * 3}, "cwd": f"/{LONG}/{LONG}", "agent": agent}
                await hooks.dispatch(BeforeInput(input="w" * 400, session_id=LONG, cwd=f"/{LONG}", host=LONG))
                await hooks.dispatch(BeforeTool(session_id=LONG, host=LONG, **given))
        journal.close()

    writer = Thread(target=lambda: asyncio.run(write()))
    writer.start()
    writer.join()
    return path


@pytest.mark.parametrize("width", WIDTHS)
def test_long_names_do_not_push_a_page_out_of_the_screen(open_page, long_names, keep, width):
    with Reader(long_names) as reader:
        (denied,) = reader.db.execute("SELECT id FROM records WHERE control = 'deny' LIMIT 1").fetchone()
    page = open_page("/", width, of=long_names)
    base = page.url.rstrip("/")
    faults = []
    for address in ("/", f"/session?id={LONG}", f"/decision?id={denied}", "/decisions", "/hooks", "/replay?record=1"):
        page.goto(base + address, wait_until="domcontentloaded")
        for summary in page.locator("#rows summary:visible").all():
            summary.click()
        page.wait_for_timeout(200)
        keep(page, f"long{address.partition('?')[0].replace('/', '-')}-{width}")
        faults += faults_of(page, address[:20])
    assert faults == []


def test_a_denied_call_and_its_reason_are_not_cut_off(open_page):
    """Which call was denied, why, and by whom: a person reads it in the first lines, at any width."""
    for width in WIDTHS:
        page = open_page("/session?id=calls", width)
        line = page.locator(".standing-out a", has_text="denied").first
        assert line.is_visible()
        for part in (".what", ".why", ".by"):
            cut = "e => e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1"
            assert not line.locator(part).evaluate(cut), (width, part)
            assert line.locator(part).is_visible()


def test_the_accessibility_tree_of_a_session_says_what_the_picture_says(open_page, addresses):
    tree = open_page(addresses["session"]).locator("main").aria_snapshot()
    assert '- heading "Fix the failing test, and save the work." [level=1]' in tree
    assert '- heading "What stands out 8" [level=2]' in tree
    assert re.search(r"link .*denied bash git push --force origin main Force-push is off here\. no-force-push", tree)
    assert re.search(r"img .*moments in lanes", tree)
    assert '- heading "Every moment" [level=2]' in tree


def test_the_accessibility_tree_of_the_sessions_has_a_table(open_page):
    tree = open_page("/").locator("main").aria_snapshot()
    assert '- heading "Sessions" [level=1]' in tree
    assert "- columnheader" in tree
    assert re.search(r'- row ".*Fix the failing test.*2 denied', tree)


def test_keys_alone_lead_from_the_list_to_the_reason_of_a_denial(open_page):
    page = open_page("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    for _ in range(20):
        page.keyboard.press("j")
        if page.evaluate("document.activeElement.textContent").startswith("Fix the failing test"):
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/session?id=calls")
    for _ in range(40):
        page.keyboard.press("j")
        if "git push" in page.evaluate("document.activeElement.textContent"):
            break
    page.keyboard.press("Enter")
    page.locator("details[open] .hooks").first.wait_for()
    opened = page.locator("details[open]").inner_text()
    assert "Force-push is off here." in opened
    assert "no-force-push" in opened


def test_the_focus_can_be_seen(open_page):
    page = open_page("/session?id=calls")
    page.keyboard.press("j")
    style = "getComputedStyle(document.activeElement)"
    assert page.evaluate(f"{style}.outlineStyle") == "solid"
    assert float(page.evaluate(f"parseFloat({style}.outlineWidth)")) >= 2


def test_what_stands_out_leads_to_its_moment_and_opens_it(open_page):
    page = open_page("/session?id=calls")
    page.locator(".standing-out a", has_text="denied").first.click()
    page.locator("details[open] .hooks").first.wait_for()
    assert "git push" in page.locator("details[open] > summary").inner_text()


def test_quiet_moments_are_hidden_until_they_are_asked_for(open_page):
    page = open_page("/session?id=every-event")
    hidden = page.locator("#rows > .quiet").first
    assert not hidden.is_visible()
    page.locator("#show-quiet").check()
    assert hidden.is_visible()


def test_the_page_works_without_the_script_once_signed_in(new_context, inspector, journal):
    running = inspector(journal)
    context = new_context()
    page = context.new_page()
    page.goto(running.address)
    page.wait_for_url(lambda address: "/sign-in" not in address)
    without = new_context(java_script_enabled=False, storage_state=context.storage_state())
    page = without.new_page()
    page.goto(f"{running.base}/session?id=calls")
    page.locator("#rows > li", has_text="git push").locator("summary").click()
    page.locator("details[open] a", has_text="Details").click()
    assert "Force-push is off here." in page.locator("main").inner_text()
