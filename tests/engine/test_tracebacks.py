"""A Python hook that raises: its traceback is in the failure, in the log once per place, and behind `HookAborted`."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from fairlead import Hooks
from fairlead.engine import tracebacks
from fairlead.errors import HookAborted, RunnerFailed
from fairlead.lifecycle import BeforeTool, event_named
from fairlead.wire.decisions import decode_decision, encode_decision

STEP = BeforeTool(tool="bash", args={"command": "ls"})


@pytest.fixture(autouse=True)
def nothing_was_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracebacks, "_logged", set())


def divides(step: Any) -> None:
    1 / 0  # noqa: B018


async def divides_later(step: Any) -> None:
    divides(step)


def misnames(step: Any) -> None:
    event_named("no_such_event")


async def misnames_later(step: Any) -> None:
    misnames(step)


def failing(fn: Any, **options: Any) -> Hooks:
    hooks = Hooks()
    hooks.add(fn, on="before_tool", name="broken", **options)
    return hooks


@pytest.mark.parametrize("options", [{}, {"timeout": 5}, {"phase": "gate"}, {"phase": "observe"}])
@pytest.mark.parametrize("fn", [divides, divides_later])
async def test_a_failure_keeps_the_traceback_from_the_hook_on(fn: Any, options: dict[str, Any]) -> None:
    (failure,) = (await failing(fn, **options).dispatch(STEP)).failures
    assert failure.traceback is not None
    assert "in divides" in failure.traceback
    assert failure.traceback.endswith("ZeroDivisionError: division by zero")
    assert "fairlead/engine.py" not in failure.traceback


def test_what_an_error_was_raised_from_is_there_too() -> None:
    def broken(step: Any) -> None:
        try:
            divides(step)
        except ZeroDivisionError as error:
            raise LookupError("no such rate") from error

    (failure,) = failing(broken).dispatch_sync(STEP).failures
    assert failure.traceback is not None
    assert "ZeroDivisionError" in failure.traceback
    assert failure.traceback.endswith("LookupError: no such rate")


def test_a_traceback_is_redacted() -> None:
    secret = "-".join(("Xy7", "secret", "91"))

    def broken(step: Any) -> None:
        raise ValueError(f"password={secret}")

    (failure,) = failing(broken).dispatch_sync(STEP).failures
    assert failure.traceback is not None
    assert secret not in failure.traceback


def test_a_traceback_is_bounded_and_keeps_its_end() -> None:
    def broken(step: Any) -> None:
        raise ValueError("long " * 1_000_000 + "the end")

    def recursing(step: Any) -> None:
        recursing(step)

    for fn, end in ((broken, "the end"), (recursing, "maximum recursion depth exceeded")):
        (failure,) = failing(fn).dispatch_sync(STEP).failures
        assert failure.traceback is not None
        assert len(failure.traceback) <= tracebacks.LIMIT
        assert end in failure.traceback


def test_an_error_that_cannot_be_shown_is_kept_all_the_same() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

        @property
        def __notes__(self) -> Any:
            raise RuntimeError("no notes")

    def broken(step: Any) -> None:
        raise Odd

    (failure,) = failing(broken).dispatch_sync(STEP).failures
    assert failure.traceback is not None
    assert "in broken" in failure.traceback


def test_what_a_runner_says_of_a_program_has_no_traceback() -> None:
    class Program:
        form = "command"

        def __call__(self, step: Any) -> None:
            raise RunnerFailed("the program ended with 3")

    (failure,) = failing(Program()).dispatch_sync(STEP).failures
    assert failure.traceback is None


@pytest.mark.parametrize("fn", [misnames, misnames_later])
async def test_an_error_of_fairlead_s_that_a_python_hook_runs_into_keeps_its_traceback(
    fn: Any, caplog: pytest.LogCaptureFixture
) -> None:
    (failure,) = (await failing(fn).dispatch(STEP)).failures
    assert failure.traceback is not None
    assert "in misnames" in failure.traceback
    assert "UnknownName" in failure.traceback
    assert "'broken' failed at" in caplog.text


def test_a_verdict_that_makes_no_sense_has_no_traceback() -> None:
    hooks = Hooks()
    hooks.add(lambda step: {"no_such_key": 1}, on="before_tool", name="broken")
    (failure,) = hooks.dispatch_sync(STEP).failures
    assert (failure.kind, failure.traceback) == ("malformed", None)


def test_a_hook_is_logged_once_for_each_place_where_it_fails(caplog: pytest.LogCaptureFixture) -> None:
    def broken(step: Any) -> None:
        if step.args["command"] == "ls":
            raise ValueError("one")
        raise ValueError("other")

    hooks = failing(broken)
    for command in ("ls", "ls", "cat", "ls", "cat"):
        hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": command}))
    logged = [record.message for record in caplog.records if "'broken' failed at before_tool" in record.message]
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 5
    assert [message.count("Traceback") for message in logged] == [1, 0, 1, 0, 0]
    assert [logged[n].rpartition("\n")[2] for n in (0, 2)] == ["ValueError: one", "ValueError: other"]


@pytest.mark.parametrize("phase", ["transform", "gate", "observe"])
async def test_every_failure_is_logged_with_its_hook_its_event_and_what_follows(
    phase: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def late(step: Any) -> None:
        await asyncio.Event().wait()

    hooks = Hooks()
    hooks.add(late, on="before_tool", name="late", phase=phase, timeout=0.01)
    hooks.add(lambda step: {"control": "explode"}, on="before_tool", name="odd", phase=phase, priority=60)
    session = hooks.session(agent="coder")
    decision = await session.dispatch(session.step(BeforeTool, tool="bash"))
    logged = [record.getMessage() for record in caplog.records]
    follows = "the agent goes on" if phase == "observe" else "deny"
    assert logged == [f"{failure} (agent coder); {follows}" for failure in decision.failures]
    assert [failure.kind for failure in decision.failures] == ["timeout", "malformed"][
        : 1 if phase == "transform" else 2
    ]


def test_a_hook_in_quarantine_is_not_logged_again(caplog: pytest.LogCaptureFixture) -> None:
    hooks = Hooks()
    hooks.add(divides, on="before_tool", quarantine=(2, 60))
    kinds = [hooks.dispatch_sync(STEP).failures[0].kind for _ in range(4)]
    assert (kinds, len(caplog.records)) == (["error", "error", "quarantined", "quarantined"], 2)


def test_two_hooks_that_fail_in_one_place_are_both_logged(caplog: pytest.LogCaptureFixture) -> None:
    hooks = Hooks()
    for name in ("a", "b"):
        hooks.add(divides, on="before_tool", name=name, on_failure="open")
    hooks.dispatch_sync(STEP)
    assert ["Traceback" in record.message for record in caplog.records] == [True, True]


def test_what_was_logged_is_forgotten_before_it_grows_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracebacks, "_PLACES", 2)
    for name in ("a", "b", "c", "d"):
        hooks = Hooks()
        hooks.add(divides, on="before_tool", name=name)
        hooks.dispatch_sync(STEP)
    assert len(tracebacks._logged) <= 2


@pytest.mark.parametrize("fn", [divides, divides_later])
async def test_hook_aborted_has_what_the_hook_raised_as_its_cause(fn: Any) -> None:
    decision = await failing(fn, on_failure="abort").dispatch(STEP)
    with pytest.raises(HookAborted) as aborted:
        decision.raise_for_abort()
    assert isinstance(aborted.value.__cause__, ZeroDivisionError)


def test_a_denial_holds_on_to_no_error() -> None:
    decision = failing(divides).dispatch_sync(STEP)
    assert [hook_verdict.error for hook_verdict in decision.verdicts] == [None]


def test_a_record_has_the_traceback() -> None:
    decision = failing(divides).dispatch_sync(STEP)
    (failure,) = decode_decision(_told(decision)).failures
    assert failure.traceback == decision.failures[0].traceback


def test_a_record_of_before_has_none() -> None:
    told = _told(failing(divides).dispatch_sync(STEP))
    for what in told["said"]:
        what.get("failure", {}).pop("traceback", None)
    assert [failure.traceback for failure in decode_decision(told).failures] == [None]


def _told(decision: Any) -> Any:
    import msgspec

    return msgspec.json.decode(msgspec.json.encode(encode_decision(decision)))
