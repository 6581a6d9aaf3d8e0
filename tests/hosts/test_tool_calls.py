"""One tool call under hooks, without a framework: judged, permitted, run and reported in each way that hosts use."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Any

import pytest

from fairlead import (
    Approval,
    ArgumentsChanged,
    HookAborted,
    Hooks,
    Verdict,
    abort,
    answer,
    ask,
    change,
    deny,
    retry,
    stop,
)
from fairlead.hosts.frameworks.flow import run_flow
from fairlead.hosts.frameworks.framework import WHOLE, Framework
from fairlead.hosts.frameworks.tool_call import ToolCall, ToolError, ToolResult
from fairlead.hosts.frameworks.turn import Sessions, Turn

FRAMEWORK = Framework(name="some", title="Some", package="some", versions=">=1", can=WHOLE)
STOPPED = "not run: the turn was stopped"


async def slow(call: ToolCall) -> ToolResult:
    return await run_flow(call.perform())


async def fast(call: ToolCall) -> ToolResult:
    left = await call.judge_fast()
    return await run_flow(call.finish() if left is None else call.perform(left))


async def judged_first(call: ToolCall) -> ToolResult:
    await call.judge_async()
    return await run_flow(call.finish())


ways = pytest.mark.parametrize("way", [slow, fast, judged_first])


class Scene:
    """A turn with hooks that return verdicts, and a tool that keeps its arguments."""

    def __init__(self, **verdicts: Verdict) -> None:
        self.hooks = Hooks()
        self.ran: list[Any] = []
        for event, verdict in verdicts.items():
            self.hooks.add(lambda step, verdict=verdict: verdict, on=event, name=event)

    async def begin(self) -> Turn:
        turn = Sessions(self.hooks, FRAMEWORK).turn("s1")
        await run_flow(turn.begin("Go."))
        return turn

    async def call(self, run: Any = None, **how: Any) -> ToolCall:
        turn = await self.begin()
        return turn.tool("shell", {"command": "ls"}, "c1", run or self.run, **how)

    def run(self, args: Any) -> str:
        self.ran.append(args)
        return "files"

    def record(self, event: str) -> list[Any]:
        steps: list[Any] = []
        self.hooks.add(steps.append, on=event, name=f"record {event}", phase="observe")
        return steps


def fields(called: ToolResult) -> tuple[str, Any, bool, bool]:
    return called.outcome, called.output, called.replaced, called.is_error


JUDGED: dict[str, tuple[dict[str, Verdict], tuple[str, Any, bool, bool]]] = {
    "no hook": ({}, ("ok", "files", False, False)),
    "a hook that only warns": ({"before_tool": change(warnings="hm")}, ("ok", "files", False, False)),
    "denied": ({"before_tool": deny("no")}, ("denied", "Hook blocked tool 'shell': no", True, True)),
    "denied for no reason": ({"before_tool": deny()}, ("denied", "Hook blocked tool 'shell': denied", True, True)),
    "answered": ({"before_tool": answer("cached")}, ("answered", "cached", True, False)),
    "answered with an error": ({"before_tool": answer("none", is_error=True)}, ("answered", "none", True, True)),
    "stopped when requested": ({"tool_requested": stop()}, ("aborted", STOPPED, True, True)),
    "stopped": ({"before_tool": stop()}, ("aborted", STOPPED, True, True)),
    "not permitted": (
        {"before_permission": deny("no")},
        ("denied", "Permission denied for tool 'shell': no", True, True),
    ),
    "stopped before it is permitted": ({"before_permission": stop()}, ("aborted", STOPPED, True, True)),
    "stopped when it is permitted": ({"after_permission": stop()}, ("aborted", STOPPED, True, True)),
}


@ways
async def test_code_that_keeps_the_arguments_cannot_change_them_while_hooks_judge(way: Any) -> None:
    scene = Scene()
    paths = ["a"]
    scene.hooks.add(lambda step: paths.append("b"), on="before_tool", name="slow")
    scene.hooks.add(lambda step: paths.append("c"), on="before_permission", name="slower")
    turn = await scene.begin()
    await way(turn.tool("read", {"paths": paths}, "1", scene.ran.append))
    assert scene.ran == [{"paths": ["a"]}]


@ways
@pytest.mark.parametrize(("verdicts", "expected"), JUDGED.values(), ids=JUDGED)
async def test_a_call_ends_as_hooks_judge_it(way: Any, verdicts: dict[str, Verdict], expected: Any) -> None:
    scene = Scene(**verdicts)
    called = await way(await scene.call())
    assert fields(called) == expected
    assert len(scene.ran) == (expected[0] == "ok")


@ways
async def test_a_call_runs_with_the_arguments_that_hooks_leave(way: Any) -> None:
    scene = Scene(before_tool=change(args={"command": "pwd"}))
    await way(await scene.call())
    assert scene.ran == [{"command": "pwd"}]


@ways
async def test_a_call_of_a_turn_that_is_over_asks_no_hook(way: Any) -> None:
    scene = Scene()
    seen = [*map(scene.record, ("tool_requested", "before_tool", "before_permission", "after_permission"))]
    call = await scene.call()
    call.turn.stop("enough")
    assert fields(await way(call)) == ("aborted", STOPPED, True, True)
    assert seen == [[], [], [], []]


@ways
@pytest.mark.parametrize("proposed", ["deny", lambda args: "deny"])
async def test_a_call_that_the_host_refuses_does_not_run(way: Any, proposed: Any) -> None:
    scene = Scene()
    called = await way(await scene.call(proposed=proposed))
    assert (called.output, scene.ran) == ("Permission denied for tool 'shell': refused", [])


@ways
async def test_a_question_without_anyone_to_ask_is_a_deny(way: Any) -> None:
    scene = Scene()
    called = await way(await scene.call(proposed="ask"))
    assert (called.output, scene.ran) == ("Permission denied for tool 'shell': no approver is configured", [])


@ways
async def test_the_host_is_shown_the_decision_before_its_own_question(way: Any) -> None:
    scene, shown = Scene(before_tool=change("tidier", args={"command": "pwd"})), []

    def approve(decision: Any) -> Approval:
        shown.append(decision.reason if decision.control == "ask" else decision.changed)
        return Approval("allow")

    await way(await scene.call(proposed="ask", ask=approve))
    assert (len(shown), len(scene.ran)) == (1, 1)
    assert "args" in shown[0]


@ways
async def test_each_event_of_a_call_is_dispatched_once(way: Any) -> None:
    scene = Scene(before_tool=change(warnings="hm"))
    events = ("tool_requested", "before_tool", "before_permission", "after_permission", "after_tool")
    seen = [*map(scene.record, events)]
    await way(await scene.call())
    assert [len(steps) for steps in seen] == [1] * 5


@ways
async def test_a_call_is_judged_once_where_no_hook_looks_at_its_request(way: Any) -> None:
    scene = Scene()
    judged, permitted = scene.record("before_tool"), scene.record("before_permission")
    await way(await scene.call())
    assert (len(judged), len(permitted)) == (1, 1)


@ways
async def test_a_call_of_a_tool_that_is_not_there_is_an_error_that_no_hook_judges(way: Any) -> None:
    scene = Scene(before_tool=deny("no"), tool_requested=change(warnings="hm"))
    call = await scene.call()
    call.missing = "no such tool"
    assert fields(await way(call)) == ("error", "no such tool", True, True)


@ways
async def test_no_human_is_asked_once_the_turn_is_stopped(way: Any) -> None:
    scene, asked = Scene(before_permission=stop()), []
    called = await way(await scene.call(proposed="ask", ask=asked.append))
    assert (called.output, asked) == (STOPPED, [])


@ways
async def test_a_call_that_is_denied_and_stopped_is_denied(way: Any) -> None:
    scene = Scene()
    scene.hooks.add(lambda step: stop(), on="before_permission", name="stops", phase="gate")
    scene.hooks.add(lambda step: deny("no"), on="before_permission", name="denies", phase="gate")
    assert (await way(await scene.call())).outcome == "denied"


async def test_a_human_may_refuse_without_a_reason() -> None:
    call = await Scene().call(proposed="ask", ask=lambda decision: Approval("deny"))
    assert (await slow(call)).output == "Permission denied for tool 'shell': not approved: no reason given"


async def test_a_human_may_refuse_with_a_reason() -> None:
    scene = Scene(before_tool=change("tidier", args={"command": "pwd"}))
    call = await scene.call(proposed="ask", ask=lambda decision: Approval("deny", None, "too risky"))
    assert (await slow(call)).output == "Permission denied for tool 'shell': too risky"


# --- what the framework may do by itself ----------------------------------------------------------


@pytest.mark.parametrize(
    ("verdicts", "natively"),
    [
        ({}, True),
        ({"before_tool": change(warnings="hm")}, True),
        ({"before_tool": deny("no")}, False),
        ({"after_tool": change(warnings="hm")}, False),
        ({"after_tool_batch": change(warnings="hm")}, False),
        ({"error": change(warnings="hm")}, False),
    ],
)
async def test_a_call_runs_natively_if_it_may_run_and_no_hook_looks_at_its_end(
    verdicts: dict[str, Verdict], natively: bool
) -> None:
    call = await Scene(**verdicts).call()
    assert await call.judge_async() is natively


@pytest.mark.parametrize("quiet", [True, False])
async def test_a_call_that_no_hook_objects_to_has_nothing_left_to_judge(quiet: bool) -> None:
    scene = Scene()
    if quiet:
        scene.hooks.add(lambda step: None, on="before_tool", name="quiet")
    assert await (await scene.call()).judge_fast() is None


@pytest.mark.parametrize("times", [0, 1])
async def test_a_native_result_is_reported_and_a_retry_runs_the_tool_again(times: int) -> None:
    scene = Scene()
    scene.hooks.add(lambda step: retry() if step.attempt <= times else None, on="after_tool", name="again")
    seen = scene.record("after_tool")
    call = await scene.call()
    await call.judge_async()
    call.take_native_result(lambda: "native")
    await run_flow(call.finish())
    assert [step.output for step in seen] == ["native", *["files"] * times]


@pytest.mark.parametrize(
    ("end", "outcome", "is_error"), [({"output": "x"}, "ok", False), ({"error": OSError("gone")}, "error", True)]
)
async def test_a_native_end_is_part_of_the_batch(end: dict[str, Any], outcome: str, is_error: bool) -> None:
    scene = Scene()
    call = await scene.call()
    await call.judge_async()
    batches = scene.record("after_tool_batch")
    called = call.record_native_end(**end)
    await run_flow(call.turn.end_batch())
    assert (called.output, called.error) == (end.get("output"), end.get("error"))
    assert batches[0].results == [{"tool": "shell", "call_id": "c1", "outcome": outcome, "is_error": is_error}]


# --- its end --------------------------------------------------------------------------------------


async def test_a_withheld_output_says_who_withholds_it_and_why() -> None:
    called = await slow(await Scene(after_tool=deny("secret")).call())
    assert fields(called) == ("ok", "[withheld by after_tool] secret", True, True)


async def test_a_changed_output_replaces_the_tools_own() -> None:
    called = await slow(await Scene(after_tool=change(output="masked")).call())
    assert fields(called) == ("ok", "masked", True, False)


def fail(error: BaseException) -> Any:
    def run(args: Any) -> None:
        raise error

    return run


async def test_an_error_of_the_tool_is_reported_and_kept_for_the_framework() -> None:
    scene, error = Scene(), OSError("gone")
    errors, ends = scene.record("error"), scene.record("after_tool")
    called = await slow(await scene.call(fail(error)))
    assert (called.outcome, called.is_error, called.error, called.replaced) == ("error", True, error, False)
    assert [(step.error, step.where) for step in errors] == [("OSError: gone", "tool shell")]
    assert [(step.outcome, step.error, step.executed) for step in ends] == [("error", "OSError: gone", True)]


async def test_a_message_of_the_tool_to_the_model_is_no_failure() -> None:
    scene = Scene()
    errors = scene.record("error")
    called = await slow(await scene.call(fail(ToolError("no such file"))))
    assert (called.outcome, errors) == ("error", [])


@pytest.mark.parametrize("error", [KeyError("theirs"), HookAborted("h", "no")])
async def test_the_frameworks_own_exceptions_and_aborts_pass_and_end_nothing(error: Exception) -> None:
    scene = Scene()
    ends = scene.record("after_tool")
    with pytest.raises(type(error)):
        await slow(await scene.call(fail(error), through=(KeyError,)))
    assert ends == []


async def test_a_cancelled_call_has_an_end() -> None:
    scene = Scene()
    ends = scene.record("after_tool")
    with pytest.raises(asyncio.CancelledError):
        await slow(await scene.call(fail(asyncio.CancelledError())))
    assert [(step.outcome, step.error, step.executed) for step in ends] == [
        ("aborted", "the request was cancelled", True)
    ]


async def test_a_call_that_is_cancelled_when_it_is_tried_again_has_an_end() -> None:
    scene, results = Scene(), iter(["first"])

    def run(args: Any) -> str:
        for result in results:
            return result
        raise asyncio.CancelledError

    scene.hooks.add(lambda step: retry() if step.outcome == "ok" else None, on="after_tool", name="again")
    ends = scene.record("after_tool")
    with pytest.raises(asyncio.CancelledError):
        await slow(await scene.call(run))
    assert [step.outcome for step in ends] == ["ok", "aborted"]


@pytest.mark.parametrize(
    ("verdicts", "output", "error"),
    [
        ({}, "read files", None),
        ({"before_tool": answer("cached")}, "cached", None),
        ({"before_tool": deny("no")}, "Hook blocked tool 'shell': no", "Hook blocked tool 'shell': no"),
    ],
)
async def test_the_end_has_what_the_model_reads_and_the_error(
    verdicts: dict[str, Verdict], output: str, error: str | None
) -> None:
    scene = Scene(**verdicts)
    seen = scene.record("after_tool")
    await slow(await scene.call(read=lambda output: f"read {output}"))
    assert [(step.output, step.error) for step in seen] == [(output, error)]


@pytest.mark.parametrize(("verdicts", "executed"), [({}, True), ({"before_tool": deny("no")}, False)])
async def test_the_end_says_whether_the_tool_ran_and_for_how_long(verdicts: dict[str, Verdict], executed: bool) -> None:
    scene = Scene(**verdicts)
    ends = scene.record("after_tool")
    await slow(await scene.call())
    assert ends[0].executed is executed
    assert (ends[0].duration is not None and 0 <= ends[0].duration < 60) is executed


async def test_only_the_first_attempt_counts_from_when_the_framework_began() -> None:
    scene = Scene()
    scene.hooks.add(lambda step: retry() if step.attempt == 1 else None, on="after_tool", name="again")
    ends = scene.record("after_tool")
    call = await scene.call()
    await call.judge_async()
    call.began = monotonic() - 1000
    await run_flow(call.finish())
    assert [step.duration >= 1000 for step in ends] == [True, False]


@pytest.mark.parametrize(("judges", "ends"), [(False, 0), (True, 1)])
async def test_a_call_that_was_requested_has_one_end_when_its_request_ends_first(judges: bool, ends: int) -> None:
    scene = Scene()
    seen = scene.record("after_tool")
    call = await scene.call()
    if judges:
        await run_flow(call.judge())
    await run_flow(call.abort("gone"))
    await run_flow(call.abort("gone again"))
    assert [(step.outcome, step.error, step.executed) for step in seen] == [("aborted", "gone", False)] * ends


async def test_a_call_that_has_ended_is_not_aborted() -> None:
    scene = Scene()
    seen = scene.record("after_tool")
    call = await scene.call()
    await slow(call)
    await run_flow(call.abort("gone"))
    assert [step.outcome for step in seen] == ["ok"]


async def test_a_hook_that_aborts_does_not_keep_a_call_from_being_aborted() -> None:
    call = await Scene(after_tool=abort("no")).call()
    await run_flow(call.judge())
    await run_flow(call.abort("gone"))
    assert call.result.outcome == "aborted"


@pytest.mark.parametrize(
    ("verdicts", "output"), [({}, STOPPED), ({"before_tool": deny("no")}, "Hook blocked tool 'shell': no")]
)
async def test_a_call_that_may_run_can_be_left_out(verdicts: dict[str, Verdict], output: str) -> None:
    call = await Scene(**verdicts).call()
    await run_flow(call.judge())
    call.skip()
    assert call.result.output == output


# --- what hooks and the framework read ------------------------------------------------------------


async def test_hooks_read_what_the_framework_tells_the_model_about_a_failure() -> None:
    scene = Scene()
    seen = scene.record("after_tool")

    def fail(args: Any) -> None:
        call.failure_text = "Try again with a path."
        raise ValueError("no path")

    call = await scene.call(fail)
    result = await run_flow(call.perform())
    assert [(step.outcome, step.output, step.error) for step in seen] == [
        ("error", "Try again with a path.", "ValueError: no path")
    ]
    assert isinstance(result.error, ValueError)


async def test_hooks_read_the_reason_of_a_refusal_and_not_an_earlier_failure() -> None:
    scene = Scene(before_tool=deny("not here"))
    seen = scene.record("after_tool")
    call = await scene.call()
    call.failure_text = "Try again with a path."
    await run_flow(call.perform())
    assert [step.output for step in seen] == ["Hook blocked tool 'shell': not here"]


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("output", "read"),
    [
        (None, None),
        ("text", "text"),
        ({"a": 1}, {"a": 1}),
        ([{"type": "text"}], [{"type": "text"}]),
        (({"type": "text"},), [{"type": "text"}]),
        ([1, 2], "[1,2]"),
        (7, "7"),
        ({1, 2}, "[1,2]"),
        (Approval, f'"{Approval}"'),
        (ENDLESS, "[[...]]"),
    ],
)
async def test_hooks_read_any_output_as_a_text_an_object_or_blocks(output: Any, read: Any) -> None:
    scene = Scene()
    ends = scene.record("after_tool")
    called = await slow(await scene.call(lambda args: output))
    assert called.output is output
    assert ends[0].output == read


def test_the_result_of_a_call_is_its_output() -> None:
    assert ToolResult(output="x").result() == "x"


def test_the_result_of_a_call_that_failed_is_raised() -> None:
    with pytest.raises(OSError, match="gone"):
        ToolResult("error", is_error=True, error=OSError("gone")).result()


def test_the_result_of_a_call_whose_error_was_replaced_is_what_replaces_it() -> None:
    replaced = ToolResult("error", "masked", replaced=True, is_error=True, error=OSError("gone"))
    assert (replaced.result(), replaced.error_text) == ("masked", "masked")


async def test_a_question_of_a_hook_is_refused_with_what_it_asked() -> None:
    scene = Scene(before_tool=ask("delete it?"))
    turn = Sessions(scene.hooks, FRAMEWORK, asks=True).turn("s1")
    await run_flow(turn.begin("Go."))
    call = turn.tool("shell", {"command": "ls"}, "c1", scene.run, ask=lambda decision: Approval("deny"))
    called = await slow(call)
    assert "delete it?" in called.output


# --- what reaches the tool ------------------------------------------------------------------------------


async def test_arguments_that_were_not_judged_do_not_reach_the_tool() -> None:
    scene = Scene(before_tool=change(args={"command": "ls -l"}))
    call = await scene.call()
    await run_flow(call.judge())
    call.check({"command": "ls -l"})
    with pytest.raises(ArgumentsChanged, match="middleware of yours") as raised:
        call.check({"command": "ls"}, "middleware of yours")
    assert ("shell" in str(raised.value), "c1" in str(raised.value)) == (True, True)


async def test_without_a_hook_that_judges_a_call_its_arguments_are_free() -> None:
    call = await Scene().call()
    await run_flow(call.judge())
    call.check({"command": "rm"})


SERVED: dict[str, tuple[dict[str, Any], tuple[str, str | None]]] = {
    "a tool of no server": ({}, ("unknown", None)),
    "a tool of no server, whatever it is called elsewhere": ({"remote": "bash"}, ("unknown", None)),
    "a tool of a server": ({"server": "box"}, ("mcp", "box")),
    "a tool of a server, by the name that it has there": ({"server": "box", "remote": "bash"}, ("shell", "box")),
}


@pytest.mark.parametrize(("about", "expected"), SERVED.values(), ids=SERVED)
async def test_the_kind_of_a_tool_of_a_server(about: dict[str, Any], expected: tuple[str, str | None]) -> None:
    scene = Scene()
    seen = scene.record("before_tool")
    turn = await scene.begin()
    await run_flow(turn.tool("box_run", {}, "c1", scene.run, **about).perform())
    assert [(step.kind, step.target.server) for step in seen] == [expected]


async def test_a_tool_of_a_server_that_the_user_describes_is_what_the_user_says() -> None:
    scene = Scene()
    scene.hooks.tools.add("box_run", "read")
    seen = scene.record("before_tool")
    turn = await scene.begin()
    await run_flow(turn.tool("box_run", {"path": "a"}, "c1", scene.run, server="box", remote="bash").perform())
    assert [(step.kind, step.target.server) for step in seen] == [("read", "box")]


REVISED = {"as it is": (None, False), "changed": (change(output="2 files"), True), "withheld": (deny("no"), True)}


@pytest.mark.parametrize(("verdict", "revised"), REVISED.values(), ids=REVISED)
async def test_a_result_says_whether_a_hook_has_revised_it(verdict: Verdict | None, revised: bool) -> None:
    call = await (Scene() if verdict is None else Scene(after_tool=verdict)).call()
    assert (await slow(call)).revised is revised
