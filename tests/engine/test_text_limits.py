"""Texts of hooks are cut at a limit, with a warning. A hook may set its own limit."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead import Approval, ApprovalRequest, Hooks, RegistrationError, ask, change, deny, extend, inject
from fairlead.lifecycle import BeforeTool, BeforeTurnEnd
from fairlead.verdict import TEXT_LIMIT, clean
from fairlead.wire.decisions import decode_decision, encode_decision
from fairlead.worker import verdict_of

BASH = BeforeTool(tool="bash", args={"command": "ls"})
LONG = "word " * 2000


def decide(verdict: Any, step: Any = BASH, **options: Any) -> Any:
    hooks = Hooks()
    hooks.add(lambda step: verdict, on=step.event, name="h", **options)
    return hooks.dispatch_sync(step)


@pytest.mark.parametrize(
    ("verdict", "part"),
    [
        (deny(LONG), "reason"), (inject(LONG), "context"), (inject(["short", LONG]), "context"),
        (change(warnings=LONG), "warning"),
    ],
)  # fmt: skip
def test_what_is_cut_is_warned_of(verdict: Any, part: str) -> None:
    warnings = decide(verdict).warnings
    assert warnings[-1] == f"hook 'h': a {part} of 10,000 bytes was cut to 4,096; text_limit= sets the limit"


@pytest.mark.parametrize("verdict", [deny(LONG), inject(LONG), change(warnings=LONG)])
def test_a_hook_s_own_limit_lets_longer_texts_pass(verdict: Any) -> None:
    decision = decide(verdict, text_limit=10_000)
    assert LONG in (decision.reason, *decision.context, *decision.warnings)
    assert [warning for warning in decision.warnings if "was cut" in warning] == []


@pytest.mark.parametrize("options", [{}, {"text_limit": 10_000}, {"text_limit": 12}])
def test_a_question_has_the_same_limit_whatever_the_hook_s_own(options: Any) -> None:
    questions: list[str | None] = []

    async def approve(request: ApprovalRequest) -> Approval:
        questions.append(request.question)
        return Approval("allow")

    hooks = Hooks(approver=approve)
    hooks.add(lambda step: ask(LONG), on="before_tool", name="h", **options)
    decision = hooks.dispatch_sync(BASH)
    assert len(str(questions[0]).encode()) in range(TEXT_LIMIT - 300, TEXT_LIMIT + 1)
    assert decision.warnings[-1] == "hook 'h': a question of 10,000 bytes was cut to 4,096"


def test_a_limit_may_be_lower() -> None:
    decision = decide(inject("a fairly short text"), text_limit=12)
    assert (decision.context, len(decision.warnings)) == (("a [cut]",), 1)


def test_feedback_is_cut_like_a_reason() -> None:
    decision = decide(extend(LONG), BeforeTurnEnd())
    assert (decision.context[0].endswith("[cut]"), len(decision.warnings)) == (True, 1)


def test_a_reason_that_is_cut_to_make_room_for_a_note_is_warned_of_once() -> None:
    hooks = Hooks()
    hooks.add(lambda step: deny(LONG, context=LONG), on="before_tool", name="h").note = "ask the platform team"
    decision = hooks.dispatch_sync(BASH)
    assert str(decision.reason).endswith("(ask the platform team)")
    assert [warning.split(" of ")[0] for warning in decision.warnings] == ["hook 'h': a reason", "hook 'h': a context"]


def test_characters_that_are_taken_out_do_not_count() -> None:
    decision = decide(inject("\u202e" * 5000 + "text"))
    assert (decision.context, decision.warnings) == (("text",), ())


@pytest.mark.parametrize("limit", [None, 10_000])
def test_a_record_keeps_the_limit(limit: int | None) -> None:
    decision = decide(inject(LONG), text_limit=limit)
    again = decode_decision(json.loads(msgspec.json.encode(encode_decision(decision))))
    assert (again.context, again.warnings) == (decision.context, decision.warnings)


def test_a_worker_cuts_nothing_so_that_the_hook_s_limit_counts() -> None:
    verdict = verdict_of(decide(inject(LONG)))
    assert verdict is not None
    assert verdict["additional_context"] == [LONG]
    assert decide(verdict, text_limit=10_000).context == (LONG,)


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "4096", (1 << 20) + 1])
def test_a_limit_that_is_no_size_is_refused(limit: Any) -> None:
    with pytest.raises(RegistrationError, match="text_limit must be a number of bytes, 1,048,576 at most"):
        decide(inject("x"), text_limit=limit)


@given(st.text(), st.integers(1, 50))
def test_no_text_is_longer_than_its_limit(text: str, limit: int) -> None:
    assert len(clean(text, limit).encode()) <= max(limit, len(" [cut]"))
    assert len(clean(text).encode()) <= TEXT_LIMIT
