"""What is redacted within one request only: in its own records, logs, traces and observers, and nowhere else."""

from __future__ import annotations

import asyncio
import io
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_redaction_corpus import GIVEN, PLANTED

from fairlead import Hooks
from fairlead.journal import Journal
from fairlead.journal.reading import Reader
from fairlead.lifecycle import BeforeInput
from fairlead.redaction import redactor as redaction
from fairlead.redaction.logs import logger
from fairlead.redaction.redactor import Redactor, Scope, current, process_redactor, redact_text, within

HERS, HIS = "correct-horse-9", "battery-staple-7"


@pytest.fixture(autouse=True)
def the_redactor_of_the_process() -> Iterator[None]:
    redaction.configure(Redactor())
    yield
    redaction.configure(None)


def scope(value: str = HERS, name: str = "DEPLOY_TOKEN") -> Scope:
    return Scope(environ={name: value})


def test_within_a_scope_its_variables_are_redacted_and_outside_they_are_not():
    with within(scope()):
        assert redact_text(f"it is {HERS}") == "it is [redacted: value]"
    assert redact_text(f"it is {HERS}") == f"it is {HERS}"


def test_values_of_a_scope_are_redacted_too():
    with within(Scope(values=[HERS])):
        assert redact_text(HERS) == "[redacted: value]"


def test_scopes_do_not_see_each_other():
    with within(scope(HERS)):
        with within(scope(HIS)):
            assert redact_text(f"{HERS} {HIS}") == f"{HERS} [redacted: value]"
        assert redact_text(f"{HERS} {HIS}") == f"[redacted: value] {HIS}"


async def test_scopes_of_concurrent_tasks_do_not_mix():
    async def ask(value: str) -> str:
        with within(scope(value)):
            await asyncio.sleep(0)
            return await asyncio.create_task(asyncio.to_thread(redact_text, f"{HERS} {HIS}"))

    assert await asyncio.gather(ask(HERS), ask(HIS)) == [f"[redacted: value] {HIS}", f"{HERS} [redacted: value]"]


def test_a_scope_takes_out_what_the_process_does_also_what_it_learns_later():
    one = Scope(values=[HERS])
    with within(one):
        assert redact_text(f"{HERS} {HIS}") == f"[redacted: value] {HIS}"
        redaction.extend(values=[HIS])
        assert redact_text(f"{HERS} {HIS}") == "[redacted: value] [redacted: value]"


def test_the_process_learns_nothing_from_a_scope():
    with within(scope()):
        redaction.extend(values=[HIS])
    assert redact_text(f"{HERS} {HIS}") == f"{HERS} [redacted: value]"


def test_a_name_that_the_process_has_too_hides_neither_value():
    redaction.configure(Redactor(environ={"DEPLOY_TOKEN": HIS}))
    with within(scope(HERS)):
        assert redact_text(f"{HERS} {HIS}") == "[redacted: value] [redacted: value]"


def test_a_name_that_is_no_secrets_is_none_in_a_scope_either():
    with within(scope(HERS, "HAS_TOKEN")):
        assert redact_text(HERS) == HERS


def test_a_redactor_is_made_once_for_a_scope():
    one = scope()
    with within(one):
        first = current()
        assert current() is first is one.redactor
    assert current() is process_redactor() is not first


def test_logs_are_redacted_in_the_scope_that_they_are_written_in():
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    logger.addHandler(handler)
    try:
        with within(scope()):
            logger.warning("it is %s", HERS)
        logger.warning("it is %s", HERS)
    finally:
        logger.removeHandler(handler)
    assert out.getvalue() == f"it is [redacted: value]\nit is {HERS}\n"


@pytest.mark.parametrize("elsewhere", [False, True], ids=["by the journal's thread", "by another"])
def test_a_record_is_redacted_in_the_scope_of_its_request_on_any_thread(tmp_path: Path, elsewhere: bool):
    with Journal(tmp_path / "journal.db") as journal:
        hooks = Hooks(journal=journal)
        hooks.dispatch_sync(BeforeInput(input="first"))
        journal.flush()
        for value in (HERS, HIS):
            with within(scope(value)):
                hooks.dispatch_sync(BeforeInput(input=f"{HERS} {HIS}"))
            if elsewhere and (record := journal.newest_queued()) is not None:
                made = threading.Thread(target=journal.prepare, args=(record,))
                made.start()
                made.join()
        hooks.dispatch_sync(BeforeInput(input=f"{HERS} {HIS}"))
    with Reader(tmp_path / "journal.db") as reader:
        inputs = [record.body["step"]["input"] for record in reader.records()]
    assert sorted(inputs) == sorted(
        ["first", f"[redacted: value] {HIS}", f"{HERS} [redacted: value]", f"{HERS} {HIS}"]
    )  # fmt: skip


def test_equal_secrets_of_two_scopes_have_equal_digests_in_a_journal(tmp_path: Path):
    with Journal(tmp_path / "journal.db") as journal:
        for _ in range(2):
            with within(scope()):
                journal.note("remark", text=HERS)
    with Reader(tmp_path / "journal.db") as reader:
        digests = {record.body["redacted"][0][2] for record in reader.records()}
    assert len(digests) == 1


async def test_hooks_observers_and_what_is_detached_work_in_the_scope_of_their_request():
    seen: list[str] = []

    def look(step: BeforeInput) -> None:
        seen.append(redact_text(HERS))

    async with Hooks() as hooks:
        hooks.add(look, on="before_input", name="on a thread", blocking=True)
        hooks.add(look, on="before_input", name="observes", phase="observe")
        hooks.add(look, on="before_input", name="observes later", phase="observe", detached=True)
        with within(scope()):
            await hooks.dispatch(BeforeInput(input="x"))
    assert seen == ["[redacted: value]"] * 3


# --- where secrets are --------------------------------------------------------------------------------


def with_marks(text: str, redactor: Redactor) -> str:
    pieces, done = [], 0
    for start, end, kind in redactor.spans(text):
        assert done <= start < end
        pieces += [text[done:start], f"[redacted: {kind}]"]
        done = end
    return "".join([*pieces, text[done:]])


def test_spans_are_just_what_redaction_replaces():
    redactor = Redactor(values=["hunter22"], patterns=["EMP-[0-9]+"])
    for _, text, _ in PLANTED:
        for whole in (text, f"{text}\n{text}", f"password={text}", f"hunter22{text}EMP-12"):
            assert with_marks(whole, redactor) == redactor.text(whole)


PIECES = st.sampled_from([place.split("{}")[0] for place in GIVEN]) | st.sampled_from(
    ["hunter22", "[redacted: secret]", " ", ";", '"', "'", "\n", "a1b2c3d4e5f6", "Cookie: a=1;", "sk-"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES | st.text(max_size=4), max_size=8).map("".join))
def test_spans_of_any_text_are_just_what_redaction_replaces(text: str):
    redactor = Redactor(values=["hunter22"])
    assert with_marks(text, redactor) == redactor.text(text)
