"""Seed 001, synwire: typed payloads, tool globs, time-outs.

How its words map to ours:

- `Continue` is None, `Abort(message)` is `abort(message)`.
- `HookMatcher{tool_name_pattern, timeout}` is `tool=` and `timeout=`. A hook that times out is skipped with
  a warning: that is `on_failure="open"`, and the warning is in `decision.warnings`.
- `PreToolUse` is before_tool. `PostToolUse` and `PostToolUseFailure` are after_tool with `outcome="ok"` and
  `outcome="error"`. `PreCompact` and `PostCompact` are before_compact and after_compact; the other five keep
  their names. A resumed session is session_start with the source "resume".
"""

import asyncio

import pytest

from fairlead import Hooks, abort
from fairlead.lifecycle import (
    AfterCompact,
    AfterTool,
    BeforeCompact,
    BeforeTool,
    Notification,
    SessionEnd,
    SessionStart,
    SubagentStart,
    SubagentStop,
)


@pytest.fixture
def hooks():
    return Hooks()


def aborting(message):
    async def hook(step):
        return abort(message)

    return hook


async def aborts_later(step):
    """Says abort, but only after any time-out used here."""
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(2, later.set)
    await later.wait()
    return abort("late abort")


READ_FILE = BeforeTool(tool="read_file")


# --- continue and abort -------------------------------------------------------------------------


async def test_no_hooks_proceed(hooks):
    decision = await hooks.dispatch(READ_FILE)
    assert decision.control == "proceed"


async def test_abort_is_returned(hooks):
    hooks.add(aborting("blocked"), on="before_tool")
    decision = await hooks.dispatch(READ_FILE)
    assert (decision.control, decision.reason) == ("abort", "blocked")


async def test_first_abort_wins(hooks):
    hooks.add(aborting("first"), on="before_tool", name="first")
    hooks.add(aborting("second"), on="before_tool", name="second")
    decision = await hooks.dispatch(READ_FILE)
    assert decision.reason == "first"


async def test_hooks_run_in_registration_order_up_to_the_abort(hooks):
    ran = []
    hooks.add(lambda step: ran.append("b"), on="before_tool", name="b")
    hooks.add(lambda step: ran.append("a"), on="before_tool", name="a")
    hooks.add(aborting("blocked"), on="before_tool", name="abort")
    hooks.add(lambda step: ran.append("c"), on="before_tool", name="c")
    await hooks.dispatch(READ_FILE)
    assert ran == ["b", "a"]


# --- the tool glob ------------------------------------------------------------------------------


async def test_pattern_that_does_not_match_proceeds(hooks):
    hooks.add(aborting("blocked"), on="before_tool", tool="write_*")
    decision = await hooks.dispatch(READ_FILE)
    assert decision.control == "proceed"


@pytest.mark.parametrize(
    ("pattern", "tool", "matches"),
    [
        ("*", "anything", True),
        ("write_*", "write_file", True),
        ("write_*", "read_file", False),
        ("*_file", "read_file", True),
        ("*_file", "read_file_2", False),
        ("re*le", "read_file", True),
        ("exact", "exact", True),
        ("exact", "not_exact", False),
    ],
)
async def test_glob(hooks, pattern, tool, matches):
    hooks.add(aborting("blocked"), on="before_tool", tool=pattern)
    decision = await hooks.dispatch(BeforeTool(tool=tool))
    assert (decision.control == "abort") is matches


@pytest.mark.parametrize(("tool", "control"), [("write_file", "abort"), ("read_file", "proceed")])
@pytest.mark.parametrize("outcome", ["ok", "error"])
async def test_pattern_applies_after_the_tool_too(hooks, outcome, tool, control):
    hooks.add(aborting("blocked"), on="after_tool", outcome=outcome, tool="write_*")
    decision = await hooks.dispatch(AfterTool(tool=tool, outcome=outcome))
    assert decision.control == control


# --- time-outs ----------------------------------------------------------------------------------


async def test_hook_that_times_out_does_not_abort_though_it_would_later(hooks):
    hooks.add(aborts_later, on="before_tool", timeout=0.02, on_failure="open")
    decision = await hooks.dispatch(READ_FILE)
    assert decision.control == "proceed"


async def test_abort_said_after_the_deadline_is_discarded(hooks):
    @hooks.on.before_tool(timeout=0.02, on_failure="open")
    async def stubborn(step):
        try:
            await aborts_later(step)
        except asyncio.CancelledError:
            return abort("late abort")

    decision = await hooks.dispatch(READ_FILE)
    assert decision.control == "proceed"


async def test_hooks_after_one_that_timed_out_still_run(hooks):
    hooks.add(aborts_later, on="before_tool", timeout=0.02, on_failure="open")
    hooks.add(aborting("in time"), on="before_tool", name="second")
    decision = await hooks.dispatch(READ_FILE)
    assert decision.reason == "in time"


async def test_time_out_warning_names_hook_limit_and_event(hooks):
    hooks.add(aborts_later, on="before_tool", name="slow-policy", timeout=0.02, on_failure="open")
    (warning,) = (await hooks.dispatch(READ_FILE)).warnings
    assert [part for part in ("slow-policy", "0.02 s", "before_tool") if part not in warning] == []


async def test_hook_in_time_is_not_warned_of(hooks):
    @hooks.on.before_tool(timeout=30, on_failure="open")
    async def quick(step):
        await asyncio.sleep(0)

    assert (await hooks.dispatch(READ_FILE)).warnings == ()


# --- the ten events and their payloads ----------------------------------------------------------

PAYLOADS = {
    "PreToolUse": (BeforeTool, {"tool": "read_file", "args": {"path": "a"}}),
    "PostToolUse": (AfterTool, {"tool": "read_file", "args": {"path": "a"}, "outcome": "ok", "output": {"text": "x"}}),
    "PostToolUseFailure": (AfterTool, {"tool": "read_file", "args": {"path": "a"}, "outcome": "error", "error": "no"}),
    "Notification": (Notification, {"message": "disk is full", "level": "warning"}),
    "SubagentStart": (SubagentStart, {"agent_name": "scout", "initial_message": "look around"}),
    "SubagentStop": (SubagentStop, {"agent_name": "scout", "reason": "done"}),
    "PreCompact": (BeforeCompact, {"message_count": 40, "token_estimate": 9000}),
    "PostCompact": (AfterCompact, {"message_count": 4, "tokens_after": 800}),
    "SessionStart": (SessionStart, {"session_id": "s-1", "source": "resume"}),
    "SessionEnd": (SessionEnd, {"session_id": "s-1", "reason": "user left"}),
}


@pytest.mark.parametrize("event", PAYLOADS)
async def test_event_fires_with_its_payload(hooks, event):
    kind, payload = PAYLOADS[event]
    seen = []

    @hooks.on(kind.event)
    async def watch(step):
        seen.append({field: getattr(step, field) for field in payload})

    await hooks.dispatch(kind(**payload))
    assert seen == [payload]


@pytest.mark.parametrize("event", PAYLOADS)
async def test_every_event_can_be_aborted(hooks, event):
    kind, payload = PAYLOADS[event]
    hooks.add(aborting("blocked"), on=kind.event)
    decision = await hooks.dispatch(kind(**payload))
    assert decision.control == "abort"


@pytest.mark.parametrize(("registered", "happened"), [("ok", "error"), ("error", "ok")])
async def test_success_and_failure_hooks_are_kept_apart(hooks, registered, happened):
    hooks.add(aborting("blocked"), on="after_tool", outcome=registered)
    decision = await hooks.dispatch(AfterTool(tool="read_file", outcome=happened))
    assert decision.control == "proceed"
