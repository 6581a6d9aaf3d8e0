"""Every page in a real browser: light and dark, narrow and wide, by keys alone, readable, with a silent console."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from fairlead.journal.reading import Reader

WIDTHS, SCHEMES = (420, 1000, 1600), ("light", "dark")
LOOKS = list(product(WIDTHS, SCHEMES))
PAGES = {"sessions": "/", "session": "/session?id=calls", "decision": "/decision?id={denied}"}

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


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_a_page_can_be_read_at_every_width_in_light_and_dark(open_page, addresses, keep, name, width, scheme):
    page = open_page(addresses[name], width, scheme)
    for summary in page.locator("#rows summary").all()[1:4]:
        summary.click()
    page.wait_for_load_state("networkidle") if name == "decision" else page.wait_for_timeout(200)
    keep(page, f"{name}-{width}-{scheme}")
    assert page.evaluate(TOO_WIDE) <= 0
    found = page.evaluate(TOO_FAINT)
    assert found["seen"] > 10
    assert found["faint"] == []


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


def test_the_page_works_without_the_script_once_signed_in(chromium, inspector, journal):
    running = inspector(journal)
    context = chromium.new_context()
    page = context.new_page()
    page.goto(running.address)
    page.wait_for_url(lambda address: "/sign-in" not in address)
    without = chromium.new_context(java_script_enabled=False, storage_state=context.storage_state())
    page = without.new_page()
    page.goto(f"{running.base}/session?id=calls")
    page.locator("#rows > li", has_text="git push").locator("summary").click()
    page.locator("details[open] a", has_text="Details").click()
    assert "Force-push is off here." in page.locator("main").inner_text()
    without.close()
    context.close()
