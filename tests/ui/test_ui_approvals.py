"""The page of approvals: it shows what is asked, and takes an answer only with the code of the terminal."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from fairlead import Hooks, Verdict, ask, change
from fairlead.errors import FairleadError
from fairlead.hook import Hook
from fairlead.lifecycle import BeforeTool
from fairlead.server.approvals import ApprovalContext, ApprovalStore, Question, approval_context
from fairlead.ui.answer_code import LENGTH, LETTERS, TOO_MANY, WRONG, AnswerCode, WrongCode


class Store:
    """Questions that are open in the user's file; no daemon runs."""

    def __init__(self, path: Path) -> None:
        self.store = ApprovalStore(path)
        self.texts = ["may it?"]

    def put(self, command: str = "make tea", *, changed_from: str | None = None, **fields: Any) -> Question:
        """Ask about a call that does not wait."""
        asks = [
            Hook(lambda step, text=text: ask(text), "before_tool", name=f"hook{number}", phase="gate", version="1")
            for number, text in enumerate(self.texts)
        ]

        def rewrite(step: Any) -> Verdict:
            return change(command=command)

        changing = [] if changed_from is None else [Hook(rewrite, "before_tool", name="trash", version="1")]
        hooks = Hooks(approver=self.store, approval_timeout=None)
        hooks.replace_all([*changing, *asks], source="code")
        args = {"command": changed_from or command}
        step = BeforeTool(**{"tool": "bash", "args": args, "cwd": "/srv", "session_id": "s"} | fields)

        async def dispatch() -> None:
            approval_context.set(ApprovalContext("/srv", "p", 0.0))
            await hooks.dispatch(step)

        asyncio.run(dispatch())
        return self.store.questions()[-1]

    def state(self, question: Question) -> str:
        return self.store.question(question.id).state


@pytest.fixture
def asked(home: Path) -> Iterator[Store]:
    (home / "state").mkdir(mode=0o700)
    made = Store(home / "state" / "approvals.db")
    yield made
    made.store.close()


class Terminal:
    """The terminal that runs `fairlead ui --approve`."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @property
    def code(self) -> str:
        return self.lines[-1].rpartition(" ")[2]


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.fixture
def page(new_tab: Any, terminal: Terminal) -> Any:
    """A tab whose inspector was started with `--approve`."""
    return new_tab(code=AnswerCode(terminal.lines.append)).sign_in()


def form(question: Question, answer: str, code: str, **more: str) -> dict[str, Any]:
    return {"shown": f"{question.id} {question.shown}", "answer": answer, "code": code, **more}


def send(page: Any, data: dict[str, Any], **headers: str) -> Any:
    return page.post("/approvals/answer", data, **headers)


# --- what it shows --------------------------------------------------------------------------------


def test_nothing_asked_is_said(tab: Any) -> None:
    assert "No hook asks anything now" in tab.get("/approvals").text


def test_a_question_is_shown_with_its_hook_its_call_and_what_was_changed(tab: Any, asked: Store) -> None:
    asked.put("mkdir .trash", changed_from="rm -rf build")
    shown = unescape(tab.get("/approvals").text)
    for part in ("may it?", "hook0", "mkdir .trash", "-rm -rf build", "trash", "/srv", "the call does not wait"):
        assert part in shown


def test_all_questions_of_a_call_are_on_one_card(tab: Any, asked: Store) -> None:
    asked.texts = ["may it?", "and this?"]
    asked.put()
    shown = tab.get("/approvals").text
    assert (shown.count("<article"), "and this?" in shown) == (1, True)


def test_without_approve_there_is_no_form_and_a_way_out(tab: Any, asked: Store) -> None:
    asked.put()
    shown = tab.get("/approvals").text
    assert ("<form" in shown, "fairlead approvals watch" in shown, "fairlead ui --approve" in shown) == (
        False,
        True,
        True,
    )


def test_without_approve_nothing_is_answered(tab: Any, asked: Store) -> None:
    question = asked.put()
    answer = send(tab, form(question, "approve", "ABCD-EFGH"))
    assert (answer.status_code, asked.state(question)) == (403, "pending")


def test_a_call_that_cannot_be_granted_says_why(page: Any, asked: Store) -> None:
    asked.put("make $TEA")
    shown = page.get("/approvals").text
    assert "It can only be approved once: the command line does not say everything that it runs" in unescape(shown)
    assert "In this session" not in shown


def test_enter_answers_nothing(page: Any, asked: Store) -> None:
    """The first button of a form is the one that Enter presses. Here it is disabled."""
    asked.put()
    first = re.search(r"<form.*?(<button[^>]*>)", page.get("/approvals").text)
    assert first is not None
    assert " disabled" in first[1]


@pytest.mark.parametrize("text", ["<img src=x onerror=alert(1)>", "\x1b[31m", "\u202e", '"><script>alert(1)</script>'])
def test_whatever_a_call_says_is_shown_as_text(page: Any, asked: Store, text: str) -> None:
    asked.texts = [f"may it {text}?"]
    asked.put(f"echo '{text}'")
    shown = page.get("/approvals").text
    assert [bad for bad in ("<img", "<script>a", "\x1b", "\u202e") if bad in shown] == []


# --- answering ------------------------------------------------------------------------------------


def test_an_approval_needs_the_code_of_the_terminal(page: Any, asked: Store, terminal: Terminal) -> None:
    question = asked.put()
    assert send(page, form(question, "approve", terminal.code)).status_code == 200
    assert asked.state(question) == "approved"


@pytest.mark.parametrize("spelling", [str.lower, lambda code: code.replace("-", ""), lambda code: f" {code} "])
def test_the_code_may_be_typed_in_any_way(page: Any, asked: Store, terminal: Terminal, spelling: Any) -> None:
    assert send(page, form(asked.put(), "approve", spelling(terminal.code))).status_code == 200


@pytest.mark.parametrize("answer", ["approve", "deny", "session", "project", "until"])
@pytest.mark.parametrize("code", ["", "ABCD-EFGH", "ü" * 8])
def test_a_wrong_code_answers_nothing(page: Any, asked: Store, answer: str, code: str) -> None:
    question = asked.put()
    refused = send(page, form(question, answer, code, until="23:59"))
    assert (refused.status_code, asked.state(question)) == (403, "pending")
    assert "not the code that the terminal shows" in refused.text


def test_a_code_is_good_for_one_answer(page: Any, asked: Store, terminal: Terminal) -> None:
    code = terminal.code
    first, second = asked.put("make tea"), asked.put("make coffee")
    assert send(page, form(first, "approve", code)).status_code == 200
    assert send(page, form(second, "approve", code)).status_code == 403
    assert send(page, form(second, "approve", terminal.code)).status_code == 200


def test_no_page_has_the_code(page: Any, asked: Store, terminal: Terminal) -> None:
    asked.put()
    shown = page.get("/approvals").text
    assert (terminal.code in shown, terminal.code.replace("-", "") in shown) == (False, False)


def test_a_refusal_says_why(page: Any, asked: Store, terminal: Terminal) -> None:
    question = asked.put()
    send(page, form(question, "deny", terminal.code, why="not on a Friday"))
    answered = asked.store.question(question.id)
    assert (answered.state, answered.why) == ("denied", "not on a Friday")


@pytest.mark.parametrize(("answer", "scope"), [("session", "session"), ("project", "project"), ("until", "project")])
def test_a_grant_is_given_listed_and_revoked(
    page: Any, asked: Store, terminal: Terminal, answer: str, scope: str
) -> None:
    send(page, form(asked.put(), answer, terminal.code, until="23:59"))
    (grant,) = asked.store.list_grants()
    assert (grant.scope, grant.summary) == (scope, "make tea")
    assert f"Revoke grant {grant.id}" in page.get("/approvals").text
    assert page.post("/approvals/revoke", {"grant": grant.id}).status_code == 200
    assert asked.store.list_grants() == []


def test_all_questions_of_a_call_are_answered_at_once(page: Any, asked: Store, terminal: Terminal) -> None:
    asked.texts = ["may it?", "and this?"]
    asked.put()
    both = asked.store.questions()
    shown = [f"{question.id} {question.shown}" for question in both]
    send(page, {"shown": shown, "answer": "approve", "code": terminal.code})
    assert [asked.state(question) for question in both] == ["approved", "approved"]


def test_an_answer_is_for_what_was_shown(page: Any, asked: Store, terminal: Terminal) -> None:
    question = asked.put()
    data = form(question, "approve", terminal.code) | {"shown": f"{question.id} {'0' * 64}"}
    answer = send(page, data)
    assert (answer.status_code, asked.state(question)) == (409, "pending")


@pytest.mark.parametrize("change", [{"answer": "maybe"}, {"shown": ""}, {"until": "yesterday", "answer": "until"}])
def test_an_answer_that_makes_no_sense_uses_no_code_up(
    page: Any, asked: Store, terminal: Terminal, change: dict[str, str]
) -> None:
    question = asked.put()
    refused = send(page, form(question, "approve", terminal.code) | change)
    assert (refused.status_code in (403, 409), asked.state(question)) == (True, "pending")
    if "shown" not in change:
        assert len(terminal.lines) == 1


def test_a_long_answer_is_refused(page: Any, asked: Store, terminal: Terminal) -> None:
    question = asked.put()
    assert send(page, form(question, "deny", terminal.code, why="x" * (65 << 10))).status_code == 413
    assert asked.state(question) == "pending"


@pytest.mark.parametrize("path", ["/approvals/answer", "/approvals/revoke"])
@pytest.mark.parametrize(
    "headers", [{"x_fairlead_key": ""}, {"x_fairlead_key": "wrong"}, {"origin": "http://127.0.0.1:9"}, {"origin": ""}]
)
def test_another_page_answers_nothing(
    page: Any, asked: Store, terminal: Terminal, path: str, headers: dict[str, str]
) -> None:
    question = asked.put()
    refused = page.post(path, form(question, "approve", terminal.code), **headers)
    assert (refused.status_code, asked.state(question), len(terminal.lines)) == (403, "pending", 1)


def test_an_answer_is_never_a_link(page: Any, asked: Store) -> None:
    assert page.get("/approvals/answer").status_code == 405


# --- the code -------------------------------------------------------------------------------------


def test_the_terminal_hears_of_wrong_codes_and_gets_a_new_one(terminal: Terminal) -> None:
    code = AnswerCode(terminal.lines.append)
    first = terminal.code
    for _ in range(WRONG):
        with pytest.raises(WrongCode):
            code.use("WRONG")
    assert terminal.lines[-1].startswith("Wrong codes were typed into the page")
    with pytest.raises(WrongCode):
        code.use(first)


def test_after_too_many_wrong_codes_no_code_is_right(terminal: Terminal) -> None:
    code = AnswerCode(terminal.lines.append)
    for _ in range(TOO_MANY):
        with pytest.raises(WrongCode):
            code.use("WRONG")
    codes = [line.rpartition(" ")[2] for line in terminal.lines]
    for one in codes:
        with pytest.raises(FairleadError, match="too many wrong codes"):
            code.use(one)


def test_codes_cannot_be_guessed() -> None:
    seen: list[str] = []
    for _ in range(200):
        AnswerCode(seen.append)
    codes = {line.rpartition(" ")[2].replace("-", "") for line in seen}
    assert len(codes) == 200
    assert all(len(code) == LENGTH and set(code) <= set(LETTERS) for code in codes)
    assert len(LETTERS) ** LENGTH > 2**38


@pytest.mark.parametrize("variable", ["CLAUDECODE", "FAIRLEAD_AGENT"])
def test_below_an_agent_no_page_answers(fairlead: Any, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    code, _, err = fairlead("ui", "--approve", "--no-open")
    assert (code != 0, "an agent cannot approve" in err) == (True, True)


def test_codes_go_to_a_terminal_and_nowhere_else(fairlead: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.agent_process.agent_around", lambda *_, **__: None)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    code, out, err = fairlead("ui", "--approve", "--no-open")
    assert (code != 0, out, "shows its codes on the terminal" in err) == (True, "", True)


def test_without_a_terminal_no_page_answers(fairlead: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.agent_process.agent_around", lambda *_, **__: None)
    code, _, err = fairlead("ui", "--approve", "--no-open")
    assert (code != 0, "needs a terminal" in err) == (True, True)
