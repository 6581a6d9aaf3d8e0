"""Approving from the page, in a real browser: a call waits, a person types the code of the terminal, the call runs."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from machines import Daemon, Machine, Terminal, a_machine, wait_until, watched
from test_browser_pages import SCHEMES, TOO_FAINT, TOO_WIDE, WIDTHS

from fairlead.samples import step

RULES = """
[[hook]]
name = "trash"
on = "before_tool"
match = { kind = "shell" }
rule = "target.command.contains('rm -rf')"
change = { command = { match = "rm -rf", replace = "mv -t .trash" } }

[[hook]]
name = "budget"
on = "before_tool"
rule = "true"
phase = "gate"
ask = "This spends 5 EUR. May it?"
"""
pytestmark = pytest.mark.skipif(watched(), reason="an agent runs these tests, and it cannot do what only a person may")


@pytest.fixture
def machine() -> Iterator[Machine]:
    with a_machine() as made:
        made.user(RULES)
        yield made


class Call:
    """A call that waits for an answer in another thread."""

    def __init__(self, daemon: Daemon, command: str) -> None:
        self._step = step("before_tool", tool="bash", args={"command": command}, session_id="s", cwd="/srv")
        self._daemon = daemon
        self.control: str | None = None
        self._thread = threading.Thread(target=self._dispatch, daemon=True)
        self._thread.start()
        with daemon.client() as client:
            wait_until(lambda: self.control or client.approvals())

    def _dispatch(self) -> None:
        with self._daemon.client() as client:
            self.control = client.dispatch(self._step, deadline=120.0).control

    def end(self) -> str | None:
        self._thread.join(30)
        return self.control


class Desk:
    """`fairlead ui --approve` at a terminal, and a tab that is signed in."""

    def __init__(self, terminal: Terminal, context: Any) -> None:
        self._terminal = terminal
        self.said: list[str] = []
        terminal.until("Ctrl-C to end.")
        address = re.search(r"http://\S+", terminal.seen)[0]  # type: ignore[index]
        self.page = context.new_page()
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.goto(address)
        self.page.wait_for_url(lambda url: "/sign-in" not in url)
        self.page.goto(address.partition("/sign-in")[0] + "/approvals")

    @property
    def code(self) -> str:
        """The newest code on the terminal."""
        return re.findall(r"\b[A-Z0-9]{4}-[A-Z0-9]{4}\b", self._terminal.seen)[-1]

    def answer(self, button: str, code: str | None = None, why: str = "") -> None:
        card = self.page.locator(".question").first
        card.get_by_label("Code on the terminal").fill(code or self.code)
        card.get_by_label("Why").fill(why)
        card.get_by_role("button", name=button).click()


@pytest.fixture
def desk(machine: Machine, new_context: Callable[..., Any]) -> Iterator[Desk]:
    context = new_context(viewport={"width": 1000, "height": 900})
    with machine.terminal("ui", "--approve", "--no-open") as terminal:
        made = Desk(terminal, context)
        yield made
    assert [line for line in made.said if "status of 403" not in line] == []


def test_approving_from_the_page_lets_the_waiting_call_run(machine: Machine, desk: Desk) -> None:
    call = Call(machine.start(), "rm -rf build")
    desk.page.wait_for_selector(".question")  # it appears by itself
    shown = desk.page.locator(".question").inner_text()
    assert [
        part for part in ("This spends 5 EUR", "mv -t .trash build", "-rm -rf build", "waits") if part not in shown
    ] == []
    desk.answer("Approve once", why="it is fine")
    assert call.end() == "allow"
    desk.page.wait_for_selector("#no-question")


def test_a_refusal_and_a_wrong_code(machine: Machine, desk: Desk) -> None:
    call = Call(machine.start(), "make tea")
    desk.page.wait_for_selector(".question")
    desk.answer("Approve once", "ABCD-EFGH")
    desk.page.wait_for_selector("text=this is not the code")
    assert call.control is None
    desk.answer("Deny", why="not on a Friday")
    assert call.end() == "deny"


def test_a_grant_lets_the_same_call_run_again_until_it_is_revoked(machine: Machine, desk: Desk) -> None:
    daemon = machine.start()
    call = Call(daemon, "make tea")
    desk.page.wait_for_selector(".question")
    desk.answer("In this session")
    assert call.end() == "allow"
    assert Call(daemon, "make tea").end() == "allow"
    desk.page.get_by_role("button", name=re.compile("Revoke grant")).click()
    desk.page.wait_for_selector("text=There are no grants.")
    after = Call(daemon, "make tea")
    desk.page.wait_for_selector(".question")
    desk.page.reload()
    with daemon.client() as client:
        client.answer(client.approvals()[0]["id"], False)
    assert after.end() == "deny"


def test_by_keys_alone_and_enter_approves_nothing(machine: Machine, desk: Desk) -> None:
    call = Call(machine.start(), "make tea")
    desk.page.wait_for_selector(".question")
    desk.page.get_by_label("Code on the terminal").focus()
    desk.page.keyboard.type(desk.code)
    desk.page.keyboard.press("Enter")
    desk.page.wait_for_timeout(500)
    assert call.control is None
    desk.page.keyboard.press("Tab")
    desk.page.keyboard.type("it is fine")
    desk.page.keyboard.press("Tab")
    assert desk.page.evaluate("document.activeElement.textContent") == "Approve once"
    desk.page.keyboard.press("Enter")
    assert call.end() == "allow"


def test_a_card_that_is_being_answered_stays_when_another_comes_or_it_ends(machine: Machine, desk: Desk) -> None:
    daemon = machine.start()
    call = Call(daemon, "make tea")
    desk.page.wait_for_selector(".question")
    desk.page.get_by_label("Why").fill("half a reas")
    other = Call(daemon, "make coffee")
    wait_until(lambda: desk.page.locator(".question").count() == 2)
    assert desk.page.get_by_label("Why").first.input_value() == "half a reas"
    with daemon.client() as client:
        for question in client.approvals():
            client.answer(question["id"], False)
    assert (call.end(), other.end()) == ("deny", "deny")
    desk.page.wait_for_selector("text=This was answered elsewhere")
    assert desk.page.get_by_role("button", name="Approve once").is_disabled()


@pytest.mark.parametrize(("width", "scheme"), list(product(WIDTHS, SCHEMES)))
def test_the_page_can_be_read_at_every_width_in_light_and_dark(
    machine: Machine, desk: Desk, keep: Any, width: int, scheme: str
) -> None:
    daemon = machine.start()
    Call(daemon, "rm -rf build")
    with daemon.client() as client:
        client.answer(client.approvals()[0]["id"], True, grant={"scope": "project"})
    Call(daemon, "rm -rf other")
    desk.page.emulate_media(color_scheme=scheme)
    desk.page.set_viewport_size({"width": width, "height": 900})
    desk.page.reload()
    desk.page.wait_for_selector(".question")
    keep(desk.page, f"approvals-{width}-{scheme}")
    found = desk.page.evaluate(TOO_FAINT)
    assert (desk.page.evaluate(TOO_WIDE) <= 0, found["seen"] > 10, found["faint"]) == (True, True, [])
    tree = desk.page.locator("main").aria_snapshot()
    assert '- heading "This spends 5 EUR. May it?" [level=2]' in tree
    with daemon.client() as client:
        for question in client.approvals():
            client.answer(question["id"], False)
