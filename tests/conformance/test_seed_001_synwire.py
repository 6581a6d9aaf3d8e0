"""Seed 001, synwire: typed payloads, tool globs, time-outs.

How its words map to ours:

- `Continue` is None, `Abort(message)` is `abort(message)`. A run's result is the decision; nothing is raised.
- `HookMatcher{tool_name_pattern, timeout}` is `tool=` and `timeout=`. A hook that times out is skipped with
  a warning: that is `on_failure="open"`. The warning is logged, and it is in `decision.warnings`.
- `PreToolUse` is before_tool. `PostToolUse` and `PostToolUseFailure` are after_tool with `outcome="ok"` and
  `outcome="error"`. `PreCompact` and `PostCompact` are before_compact and after_compact; the other five keep
  their names. A resumed session is session_start with the source "resume".

Steps are built by a session and go over the wire before hooks see them. Lines are those of the seed's file, which
begins with a page's header: the Rust source is six lines shorter.
"""

import asyncio
import re
import threading

import pytest
from behaviours import behaviour
from hypothesis import given
from hypothesis import strategies as st

from fairlead import (
    Hook,
    Hooks,
    ReadOnlyError,
    RegistrationError,
    UnknownName,
    abort,
    decode_step,
    deny,
    encode_step,
    extend,
)
from fairlead.hosts.loop import Agent
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

SESSION = Hooks().session("s-1", agent="coder")


def received(kind, **fields):
    """A step of session s-1, as another process receives it."""
    return decode_step(encode_step(SESSION.step(kind, **fields)))


class Event:
    """One of the seed's events: the step, the fields of its payload, and what a hook for it is registered with."""

    def __init__(self, kind, payload, **options):
        self.step = received(kind, **{name: value for name, value in payload.items() if name != "session_id"})
        self.payload, self.options = payload, {"on": self.step.event, **options}

    @property
    def seen(self):
        return {name: getattr(self.step, name) for name in self.payload}


CALL = {"tool": "read_file", "args": {"path": "a"}}
EVENTS = {
    "PreToolUse": Event(BeforeTool, CALL),
    "PostToolUse": Event(AfterTool, {**CALL, "outcome": "ok", "output": {"text": "x"}}, outcome="ok"),
    "PostToolUseFailure": Event(AfterTool, {**CALL, "outcome": "error", "error": "no such file"}, outcome="error"),
    "Notification": Event(Notification, {"message": "disk is full", "level": "warning"}),
    "SubagentStart": Event(SubagentStart, {"agent_name": "scout", "initial_message": "look around"}),
    "SubagentStop": Event(SubagentStop, {"agent_name": "scout", "reason": "done"}),
    "PreCompact": Event(BeforeCompact, {"message_count": 40, "token_estimate": 9000}),
    "PostCompact": Event(AfterCompact, {"message_count": 4, "tokens_after": 800}),
    "SessionStart": Event(SessionStart, {"session_id": "s-1", "source": "resume"}),
    "SessionEnd": Event(SessionEnd, {"session_id": "s-1", "reason": "user left"}),
}
TOOL_EVENTS = ["PreToolUse", "PostToolUse", "PostToolUseFailure"]
OTHER_EVENTS = [name for name in EVENTS if name not in TOOL_EVENTS]
each_event = pytest.mark.parametrize("event", EVENTS)
each_tool_event = pytest.mark.parametrize("event", TOOL_EVENTS)
READ_FILE = EVENTS["PreToolUse"].step
LOOK = ("Looking.", [("look", {"at": "a"})])
CRASH = ("Trying.", [("crash", {"at": "a"})])
HELP = ("Asking.", [("helper", {"message": "Help me."})])


@pytest.fixture
def hooks():
    return Hooks()


def aborting(message):
    async def hook(step):
        return abort(message)

    return hook


async def aborts_later(step):
    """Returns an abort, but only after any time-out used here."""
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(2, later.set)
    await later.wait()
    return abort("late abort")


async def played(scene, event):
    """The steps of one of the seed's events, as the loop fires them in a scene."""
    lines, options = SCENES.get(event, ((LOOK, CRASH, HELP), {}))
    one = scene(*lines, **options)
    await one.play()
    wanted = EVENTS[event]
    outcome = wanted.options.get("outcome")
    return [step for step in one.steps(wanted.step.event) if outcome in (None, getattr(step, "outcome", None))]


SCENES = {
    "PreCompact": ((LOOK, LOOK), {"token_budget": 1}),
    "PostCompact": ((LOOK, LOOK), {"token_budget": 1}),
    "Notification": ((("Touching.", [("touch", {})]),), {"policy": "ask-writes"}),
}


# --- what a hook is -------------------------------------------------------------------------------


@behaviour("001-1", lines="6-8", kind="same", about="hooks are async callbacks; fairlead takes sync functions, too")
@pytest.mark.parametrize("form", ["async", "sync"])
async def test_a_hook_is_a_callback(hooks, form):
    hooks.add(aborting("blocked") if form == "async" else lambda step: abort("blocked"), on="before_tool", name="h")
    assert (await hooks.dispatch(READ_FILE)).reason == "blocked"


@behaviour("001-2", lines="8-9", kind="same", about="hooks fire at well-defined points of an agent's life")
@each_event
async def test_the_loop_fires_the_event(scene, event):
    assert len(await played(scene, event)) >= 1


@behaviour("001-3", lines="9", kind="same", about="each event carries its own payload, as the loop gives it")
@each_event
async def test_the_loop_gives_the_payload(scene, event):
    step = (await played(scene, event))[0]
    given = {name: getattr(step, name) for name in EVENTS[event].payload}
    assert {name for name, value in given.items() if value is None} == set()
    assert decode_step(encode_step(step)) == step


@behaviour("001-4", lines="202-218", kind="same", about="a hook may be called from any thread")
def test_a_hook_may_be_called_from_any_thread(hooks):
    reasons = []
    hooks.add(aborting("blocked"), on="before_tool")
    threads = [threading.Thread(target=lambda: reasons.append(hooks.dispatch_sync(READ_FILE).reason)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert reasons == ["blocked"] * 4


# --- the ten payloads -----------------------------------------------------------------------------


async def seen_by_a_hook(event):
    """The payload that a hook for one of the seed's events reads."""
    hooks, seen = Hooks(), []

    async def watch(step):
        seen.append({name: getattr(step, name) for name in EVENTS[event].payload})

    hooks.add(watch, **EVENTS[event].options)
    await hooks.dispatch(EVENTS[event].step)
    return seen


@behaviour("001-5", lines="30", kind="same", about="PreToolUse: tool_name is `tool`")
@behaviour("001-6", lines="32", kind="same", about="PreToolUse: arguments are `args`")
async def test_pre_tool_use_has_the_tool_and_its_arguments():
    assert await seen_by_a_hook("PreToolUse") == [{"tool": "read_file", "args": {"path": "a"}}]


@behaviour("001-7", lines="39", kind="same", about="PostToolUse: tool_name is `tool`")
@behaviour("001-8", lines="41", kind="same", about="PostToolUse: arguments are `args`")
@behaviour("001-9", lines="43", kind="same", about="PostToolUse: `output`")
async def test_post_tool_use_has_the_call_and_its_output():
    (seen,) = await seen_by_a_hook("PostToolUse")
    assert seen == {"tool": "read_file", "args": {"path": "a"}, "outcome": "ok", "output": {"text": "x"}}


@behaviour("001-10", lines="50", kind="same", about="PostToolUseFailure: tool_name is `tool`")
@behaviour("001-11", lines="52", kind="same", about="PostToolUseFailure: arguments are `args`")
@behaviour("001-12", lines="54", kind="same", about="PostToolUseFailure: `error`, a text")
async def test_post_tool_use_failure_has_the_call_and_its_error():
    (seen,) = await seen_by_a_hook("PostToolUseFailure")
    assert seen == {"tool": "read_file", "args": {"path": "a"}, "outcome": "error", "error": "no such file"}


@behaviour("001-13", lines="61", kind="same", about="Notification: `message`")
@behaviour("001-14", lines="63", kind="same", about="Notification: `level`")
async def test_notification_has_its_message_and_level():
    assert await seen_by_a_hook("Notification") == [{"message": "disk is full", "level": "warning"}]


@behaviour("001-15", lines="63", kind="same", about="a level is any text")
def test_a_level_is_any_text():
    assert received(Notification, message="x", level="quite serious").level == "quite serious"


@behaviour("001-16", lines="70", kind="same", about="SubagentStart: `agent_name`")
@behaviour("001-17", lines="72", kind="same", about="SubagentStart: `initial_message`")
async def test_subagent_start_has_the_agent_and_its_message():
    assert await seen_by_a_hook("SubagentStart") == [{"agent_name": "scout", "initial_message": "look around"}]


@behaviour("001-18", lines="72", kind="same", about="initial_message is optional")
def test_a_subagent_may_start_without_a_message():
    assert received(SubagentStart, agent_name="scout").initial_message is None


@behaviour("001-19", lines="79", kind="same", about="SubagentStop: `agent_name`")
@behaviour("001-20", lines="81", kind="same", about="SubagentStop: `reason`")
async def test_subagent_stop_has_the_agent_and_the_reason():
    assert await seen_by_a_hook("SubagentStop") == [{"agent_name": "scout", "reason": "done"}]


@behaviour("001-21", lines="88", kind="same", about="PreCompact: `message_count`")
@behaviour("001-22", lines="90", kind="same", about="PreCompact: token_count is `token_estimate`")
async def test_pre_compact_has_both_counts():
    assert await seen_by_a_hook("PreCompact") == [{"message_count": 40, "token_estimate": 9000}]


@behaviour("001-23", lines="97", kind="same", about="PostCompact: `message_count`")
@behaviour("001-24", lines="99", kind="same", about="PostCompact: token_count is `tokens_after`")
async def test_post_compact_has_both_counts():
    assert await seen_by_a_hook("PostCompact") == [{"message_count": 4, "tokens_after": 800}]


@behaviour("001-25", lines="106", kind="same", about="SessionStart: `session_id`")
@behaviour("001-26", lines="108", kind="same", about='SessionStart: resumed is source="resume"')
async def test_session_start_has_its_id_and_whether_it_is_resumed():
    assert await seen_by_a_hook("SessionStart") == [{"session_id": "s-1", "source": "resume"}]


@behaviour("001-27", lines="108", kind="same", about='a session that is not resumed has source="new"')
async def test_the_loop_says_whether_a_session_is_resumed(scene):
    one = await scene().play()
    (first,) = one.steps("session_start")
    again = Agent(one.model.model, hooks=one.hooks, messages=one.agent.messages)
    await again.run("Go on.")
    await again.close()
    assert (first.source, one.steps("session_start")[1].source) == ("new", "resume")


@behaviour("001-28", lines="115", kind="same", about="SessionEnd: `session_id`")
@behaviour("001-29", lines="117", kind="same", about="SessionEnd: `reason`")
async def test_session_end_has_its_id_and_the_reason():
    assert await seen_by_a_hook("SessionEnd") == [{"session_id": "s-1", "reason": "user left"}]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@behaviour("001-30", lines="43", kind="same", about="an output is any JSON value, and survives the wire")
@given(json_values)
def test_an_output_is_any_json_value(value):
    assert received(AfterTool, tool="t", output=value).output == value


@behaviour("001-31", lines="32, 41, 52", kind="different", about="arguments are an object; anything else is refused")
@pytest.mark.parametrize("args", [["ls"], "ls", 7, True])
def test_arguments_are_an_object(args):
    with pytest.raises(TypeError, match="args of a BeforeTool must be a dict"):
        SESSION.step(BeforeTool, tool="t", args=args)


@behaviour("001-32", lines="32", kind="same", about="arguments hold any JSON value, nested ones included")
@given(st.dictionaries(st.text(max_size=5), json_values, max_size=3))
def test_arguments_hold_any_json_value(args):
    assert received(BeforeTool, tool="t", args=args).args == args


@behaviour("001-33", lines="27, 364", kind="otherwise", about="a hook gets no copy of the payload: a step is read-only")
async def test_a_hook_cannot_change_what_the_next_one_reads(hooks):
    read = []

    def edits(step):
        with pytest.raises(ReadOnlyError):
            step.args["path"] = "b"

    hooks.add(edits, on="before_tool")
    hooks.add(lambda step: read.append(step.args), on="before_tool", name="reads")
    await hooks.dispatch(READ_FILE)
    assert read == [{"path": "a"}]


@behaviour("001-34", lines="27, 35", kind="same", about="a payload can be printed")
@each_event
def test_a_payload_can_be_printed(event):
    text = repr(EVENTS[event].step)
    assert [value for value in EVENTS[event].seen.values() if isinstance(value, str) and value not in text] == []


@behaviour("001-35", lines="38, 49", kind="same", about="success and failure are told apart")
@pytest.mark.parametrize(("registered", "happened"), [TOOL_EVENTS[1:], TOOL_EVENTS[:0:-1]])
async def test_success_and_failure_hooks_are_kept_apart(hooks, registered, happened):
    hooks.add(aborting("blocked"), **EVENTS[registered].options)
    assert (await hooks.dispatch(EVENTS[happened].step)).control == "proceed"


@behaviour(
    "001-92", lines="221-230", kind="otherwise", about="an error about the seed's name of an event suggests ours"
)
@each_event
def test_the_seed_s_name_of_an_event_is_suggested(hooks, event):
    registering = "on" + re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", event)  # such as on_pre_tool_use
    for name in (event, registering):
        with pytest.raises(UnknownName, match=f"did you mean '{EVENTS[event].step.event}'"):
            hooks.add(aborts_later, on=name)


# --- results --------------------------------------------------------------------------------------


@behaviour("001-36", lines="128-129, 375", kind="otherwise", about="Continue is None")
@each_event
async def test_continue_goes_on(hooks, event):
    ran = []
    for name in "ab":
        hooks.add(lambda step, name=name: ran.append(name), name=name, **EVENTS[event].options)
    decision = await hooks.dispatch(EVENTS[event].step)
    assert (decision.control, ran) == ("proceed", ["a", "b"])


@behaviour("001-37", lines="130-131", kind="same", about="Abort(message) fails the operation, with its message")
@each_event
async def test_every_event_can_be_aborted(hooks, event):
    hooks.add(aborting("blocked"), **EVENTS[event].options)
    decision = await hooks.dispatch(EVENTS[event].step)
    assert (decision.control, decision.reason) == ("abort", "blocked")


@behaviour("001-38", lines="126", kind="same", about="HookResult is open for more: fairlead has ten controls")
async def test_there_are_more_results_than_two(hooks):
    hooks.add(lambda step: deny("not here"), on="before_tool", name="h")
    assert (await hooks.dispatch(READ_FILE)).control == "deny"


@behaviour(
    "001-39", lines="130", kind="otherwise", about="Abort of one operation, and not of the request, is deny(message)"
)
async def test_one_operation_is_refused_with_deny(scene):
    one = scene(LOOK)
    one.add(deny("blocked"), on="before_tool")
    await one.play()
    assert (one.ran, one.output, one.error) == ([], "Done.", None)


@behaviour("001-40", lines="130", kind="same", about="the message of an abort reaches the caller of the agent")
@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "SubagentStart", "SessionStart"])
async def test_the_caller_of_the_agent_reads_the_message(scene, event):
    one = scene(LOOK, HELP)
    one.add(abort("blocked"), on=EVENTS[event].options["on"], name="policy")
    await one.play()
    assert str(one.error) == "[policy:hook_abort] blocked"


@behaviour("001-41", lines="362, 379-382", kind="otherwise", about="Ok(result) is the decision: nothing is raised")
async def test_a_run_never_raises(hooks):
    hooks.add(aborting("blocked"), on="before_tool")
    decision = await hooks.dispatch(READ_FILE)
    assert decision.hook == "hook"


# --- the matcher ----------------------------------------------------------------------------------


async def matches(pattern, tool):
    hooks = Hooks()
    hooks.add(aborting("blocked"), on="before_tool", tool=pattern)
    return (await hooks.dispatch(received(BeforeTool, tool=tool))).control == "abort"


@behaviour("001-42", lines="141-142, 161", kind="same", about="a pattern is optional; None matches every tool")
@behaviour("001-43", lines="151", kind="same", about="without a pattern every tool matches: that is the default")
@pytest.mark.parametrize("options", [{}, {"tool": None}])
async def test_no_pattern_matches_every_tool(hooks, options):
    hooks.add(aborting("blocked"), on="before_tool", **options)
    assert (await hooks.dispatch(READ_FILE)).control == "abort"


@behaviour("001-44", lines="145", kind="same", about="the time-out is an option of each hook")
async def test_each_hook_has_its_own_timeout(hooks):
    hooks.add(aborts_later, on="before_tool", timeout=0.02, on_failure="open", name="short")
    hooks.add(aborting("in time"), on="before_tool", timeout=60, name="long")
    assert (await hooks.dispatch(READ_FILE)).reason == "in time"


@behaviour(
    "001-45", lines="152", kind="otherwise", about="the default time-out of 30 s is Hooks(timeout=30); ours is 5 s"
)
def test_the_default_timeout_can_be_30_seconds():
    assert Hooks(timeout=30).add(aborts_later, on="before_tool").timeout == 30
    assert Hooks().add(aborts_later, on="before_tool").timeout == 5


@behaviour("001-46", lines="158-164", kind="same", about="matches_tool: whether a hook applies to a tool")
def test_a_hook_says_whether_it_applies():
    hook = Hook(aborts_later, "before_tool", tool="write_*")
    steps = [received(BeforeTool, tool=tool) for tool in ("write_file", "read_file")]
    assert [hook.applies(step) for step in steps] == [True, False]


@behaviour("001-47", lines="169-171", kind="same", about="`*` alone matches everything")
@pytest.mark.parametrize("tool", ["anything", "", "a b", "*"])
async def test_a_star_matches_everything(tool):
    assert await matches("*", tool)


@behaviour("001-48", lines="172-175", kind="same", about="a pattern without a star is a name")
@pytest.mark.parametrize(("tool", "is_it"), [("exact", True), ("exact_2", False), ("not_exact", False), ("", False)])
async def test_a_pattern_without_a_star_is_a_name(tool, is_it):
    assert await matches("exact", tool) is is_it


@behaviour("001-49", lines="181-185", kind="same", about="what comes before the first star is a prefix")
@pytest.mark.parametrize(("tool", "is_it"), [("write_file", True), ("write_", True), ("read_file", False)])
async def test_a_prefix(tool, is_it):
    assert await matches("write_*", tool) is is_it


@behaviour("001-50", lines="192-194", kind="same", about="what comes after the last star is a suffix")
@pytest.mark.parametrize(("tool", "is_it"), [("read_file", True), ("_file", True), ("read_file_2", False)])
async def test_a_suffix(tool, is_it):
    assert await matches("*_file", tool) is is_it


@behaviour("001-51", lines="186-190", kind="same", about="what comes between stars is found in order")
@pytest.mark.parametrize(
    ("pattern", "tool", "is_it"),
    [
        ("re*le", "read_file", True), ("*ad*il*", "read_file", True), ("*il*ad*", "read_file", False),
        ("a*b*c", "a-b-c", True), ("a*b*c", "acb", False), ("ab*ba", "aba", False), ("a*a", "a", False),
    ],
)  # fmt: skip
async def test_parts_between_stars_are_found_in_order(pattern, tool, is_it):
    assert await matches(pattern, tool) is is_it


@behaviour("001-52", lines="178-180", kind="same", about="several stars in a row are one")
@pytest.mark.parametrize(("tool", "is_it"), [("read_file", True), ("read_file_2", False)])
async def test_several_stars_in_a_row_are_one(tool, is_it):
    assert await matches("**_file", tool) is is_it


@behaviour("001-53", lines="174, 182", kind="same", about="a pattern minds upper and lower case")
async def test_a_pattern_minds_the_case():
    assert not await matches("Write_*", "write_file")


@behaviour("001-54", lines="186-194", kind="different", about="*_file matches read_file_file, which synwire misses")
async def test_a_suffix_that_occurs_twice_matches():
    assert await matches("*_file", "read_file_file")


@behaviour(
    "001-55",
    lines="167",
    kind="different",
    about="`?` and `{a,b}` mean something in a glob; synwire reads them as they are",
)
@pytest.mark.parametrize(("pattern", "tool"), [("rea?_file", "read_file"), ("{read,write}_file", "write_file")])
async def test_a_glob_has_more_than_stars(pattern, tool):
    assert await matches(pattern, tool)


@behaviour("001-56", lines="174", kind="different", about="an empty pattern is refused; synwire's matches no tool")
def test_an_empty_pattern_is_refused(hooks):
    with pytest.raises(RegistrationError, match="bad glob"):
        hooks.add(aborts_later, on="before_tool", tool="")


@behaviour("001-57", lines="172-195", kind="same", about="a star is any text, and what synwire matches, a glob matches")
@given(st.text("ab*", min_size=1, max_size=6), st.text("ab", max_size=6))
def test_a_star_is_any_text_and_a_glob_matches_what_synwire_matches(pattern, tool):
    applies = Hook(aborts_later, "before_tool", tool=pattern).applies(received(BeforeTool, tool=tool))
    assert applies == bool(re.fullmatch(pattern.replace("*", ".*"), tool))
    assert applies or not synwire_glob_match(pattern, tool)


def synwire_glob_match(pattern, text):
    """The seed's own matching, lines 168 to 196."""
    if pattern == "*":
        return True
    first, *others = pattern.split("*")
    if not others:
        return pattern == text
    if not text.startswith(first):
        return False
    text = text[len(first) :]
    for part in filter(None, others):
        if part not in text:
            return False
        text = text[text.index(part) + len(part) :]
    return pattern.endswith("*") or not text


# --- the registry ---------------------------------------------------------------------------------


@behaviour("001-58", lines="261-265", kind="same", about="a new registry is empty")
def test_a_new_registry_is_empty(hooks):
    assert list(hooks) == []


@behaviour("001-59", lines="375, 395, 415", kind="same", about="without hooks every event goes on")
@each_event
async def test_no_hooks_proceed(hooks, event):
    assert (await hooks.dispatch(EVENTS[event].step)).control == "proceed"


@behaviour(
    "001-60",
    lines="233-248, 255",
    kind="otherwise",
    about="a registry prints the names of its hooks, and each hook its event",
)
def test_a_registry_can_be_printed(hooks):
    hook = hooks.add(aborts_later, on="before_tool", tool="write_*", name="guard")
    assert (repr(hooks), "'guard' on before_tool" in repr(hook)) == ("<Hooks: guard>", True)


@behaviour("001-61", lines="269-354", kind="same", about="a hook is registered for one event, and runs at no other")
@each_event
async def test_a_hook_runs_at_its_own_event_only(hooks, event):
    hooks.add(aborting("blocked"), **EVENTS[event].options)
    controls = {name: (await hooks.dispatch(other.step)).control for name, other in EVENTS.items()}
    assert [name for name, control in controls.items() if control == "abort"] == [event]


@behaviour("001-62", lines="274, 282-283", kind="same", about="an event may have any number of hooks")
@behaviour("001-63", lines="358", kind="same", about="hooks run in the order in which they were registered")
@each_event
async def test_hooks_run_in_registration_order(hooks, event):
    ran = []
    for name in "badc":
        hooks.add(lambda step, name=name: ran.append(name), name=name, **EVENTS[event].options)
    await hooks.dispatch(EVENTS[event].step)
    assert ran == ["b", "a", "d", "c"]


@behaviour(
    "001-64", lines="269-275", kind="different", about="hooks have names of their own: the same name twice is an error"
)
async def test_the_same_function_twice_needs_a_name(hooks):
    hooks.add(aborting("first"), on="before_tool")
    with pytest.raises(RegistrationError, match="already registered"):
        hooks.add(aborting("second"), on="before_tool")
    hooks.add(aborting("second"), on="before_tool", name="second")
    assert (await hooks.dispatch(READ_FILE)).reason == "first"


# --- running --------------------------------------------------------------------------------------


@behaviour("001-65", lines="360", kind="same", about="the first Abort is returned")
@behaviour("001-66", lines="371", kind="same", about="hooks after the first Abort do not run")
@each_event
async def test_the_first_abort_is_returned_and_the_rest_stay_idle(hooks, event):
    ran, options = [], EVENTS[event].options
    hooks.add(lambda step: ran.append("before"), name="before", **options)
    hooks.add(aborting("first"), name="first", **options)
    hooks.add(lambda step: ran.append("after"), name="after", **options)
    hooks.add(aborting("second"), name="second", **options)
    decision = await hooks.dispatch(EVENTS[event].step)
    assert (decision.reason, decision.hook, ran) == ("first", "first", ["before"])


@behaviour(
    "001-67",
    lines="365-367, 385-387, 405-407",
    kind="same",
    about="at the tool events, a hook whose pattern does not match is left out",
)
@each_tool_event
@pytest.mark.parametrize(("pattern", "control"), [("read_*", "abort"), ("write_*", "proceed")])
async def test_the_pattern_applies_to_the_tool_events(hooks, event, pattern, control):
    hooks.add(aborting("blocked"), tool=pattern, **EVENTS[event].options)
    assert (await hooks.dispatch(EVENTS[event].step)).control == control


@behaviour(
    "001-68", lines="365-367", kind="same", about="a hook that does not match does not keep the next from running"
)
@each_tool_event
async def test_the_hook_after_one_that_does_not_match_runs(hooks, event):
    hooks.add(aborting("no"), tool="write_*", name="other", **EVENTS[event].options)
    hooks.add(aborting("yes"), tool="read_*", name="this", **EVENTS[event].options)
    assert (await hooks.dispatch(EVENTS[event].step)).reason == "yes"


@behaviour(
    "001-69",
    lines="424-429, 440-445",
    kind="different",
    about="a pattern at an event without a tool is refused; synwire does not look at it",
)
@pytest.mark.parametrize("event", OTHER_EVENTS)
def test_a_pattern_at_an_event_without_a_tool_is_refused(hooks, event):
    with pytest.raises(RegistrationError, match="needs an event about a tool"):
        hooks.add(aborts_later, tool="write_*", **EVENTS[event].options)


@behaviour(
    "001-70", lines="364, 370", kind="same", about="one hook runs after another, each when the one before has ended"
)
async def test_one_hook_runs_after_another(hooks):
    log = []
    for name in "ab":

        async def hook(step, name=name):
            log.append(f"{name} starts")
            await asyncio.sleep(0)
            log.append(f"{name} ends")

        hooks.add(hook, on="before_tool", name=name)
    await hooks.dispatch(READ_FILE)
    assert log == ["a starts", "a ends", "b starts", "b ends"]


@behaviour("001-71", lines="434-447", kind="same", about="session hooks may abort the start of a session")
async def test_an_aborted_session_does_not_start(scene):
    one = scene()
    one.add(abort("closed"), on="session_start")
    await one.play()
    assert (one.sent, one.events) == ([], ["session_start", "session_end"])


@behaviour("001-72", lines="490-506", kind="same", about="an aborted compaction does not happen")
async def test_an_aborted_compaction_does_not_happen(scene):
    one = scene(LOOK, token_budget=1)
    one.add(abort("keep it"), on="before_compact")
    await one.play()
    assert ("compact" in one.ran, str(one.error)) == (False, "[judge:hook_abort] keep it")


@behaviour("001-73", lines="463-476", kind="same", about="an aborted subagent does not start")
async def test_an_aborted_subagent_does_not_start(scene):
    one = scene(HELP)
    one.add(abort("alone"), on="subagent_start")
    await one.play()
    assert (one.helper.sent, str(one.error)) == ([], "[judge:hook_abort] alone")


@behaviour("001-74", lines="479-493", kind="otherwise", about="SubagentStop can be kept from stopping: extend(message)")
async def test_a_subagent_may_be_kept_going(scene):
    one = scene(HELP, helper=("One.", "Two."))
    one.add(extend("not yet"), on="subagent_stop")
    await one.play()
    assert len(one.helper.sent) == 2


# --- time-outs ------------------------------------------------------------------------------------


@behaviour("001-75", lines="10-11, 526-528", kind="same", about="a time-out is enforced for every hook, at every event")
@behaviour("001-76", lines="531-532", kind="otherwise", about='a hook that times out is skipped: on_failure="open"')
@each_event
async def test_a_hook_that_times_out_is_skipped(hooks, event):
    hooks.add(aborts_later, timeout=0.02, on_failure="open", **EVENTS[event].options)
    assert (await hooks.dispatch(EVENTS[event].step)).control == "proceed"


@behaviour(
    "001-77",
    lines="531-532",
    kind="otherwise",
    about='Hooks(on_failure="open", timeout=30) is synwire\'s policy for all hooks',
)
async def test_all_hooks_may_fail_open():
    hooks = Hooks(on_failure="open", timeout=0.02)
    hooks.add(aborts_later, on="before_tool")
    assert (await hooks.dispatch(READ_FILE)).control == "proceed"


@behaviour(
    "001-78", lines="10-12", kind="different", about="unless it says so, a hook that times out at a tool call denies it"
)
async def test_a_hook_that_times_out_denies_by_default(hooks):
    hooks.add(aborts_later, on="before_tool", timeout=0.02)
    decision = await hooks.dispatch(READ_FILE)
    assert (decision.control, decision.cause) == ("deny", "failure")


@behaviour(
    "001-79", lines="361, 531", kind="same", about="a time-out is logged as a warning; ours names hook, limit and event"
)
async def test_a_timeout_is_logged(hooks, caplog):
    hooks.add(aborts_later, on="before_tool", name="slow-policy", timeout=0.02, on_failure="open")
    await hooks.dispatch(READ_FILE)
    (record,) = caplog.records
    wanted = ("slow-policy", "0.02 s", "before_tool")
    assert (record.levelname, [part for part in wanted if part not in record.getMessage()]) == ("WARNING", [])


@behaviour("001-80", lines="531", kind="otherwise", about="the warning is in decision.warnings, too")
async def test_the_warning_of_a_timeout_is_in_the_decision(hooks):
    hooks.add(aborts_later, on="before_tool", name="slow-policy", timeout=0.02, on_failure="open")
    (warning,) = (await hooks.dispatch(READ_FILE)).warnings
    assert [part for part in ("slow-policy", "0.02 s", "before_tool") if part not in warning] == []


@behaviour("001-81", lines="361", kind="same", about="hooks after one that timed out still run")
@each_event
async def test_hooks_after_one_that_timed_out_still_run(hooks, event):
    hooks.add(aborts_later, timeout=0.02, on_failure="open", **EVENTS[event].options)
    hooks.add(aborting("in time"), name="second", **EVENTS[event].options)
    assert (await hooks.dispatch(EVENTS[event].step)).reason == "in time"


@behaviour("001-82", lines="528-529", kind="same", about="a result in time is taken as it is, without a warning")
async def test_a_hook_in_time_is_not_warned_of(hooks):
    @hooks.on.before_tool(timeout=30, on_failure="open")
    async def quick(step):
        await asyncio.sleep(0)
        return abort("in time")

    decision = await hooks.dispatch(READ_FILE)
    assert (decision.reason, decision.warnings) == ("in time", ())


@behaviour("001-83", lines="527-528", kind="same", about="a hook that timed out is cancelled")
async def test_a_hook_that_timed_out_is_cancelled(hooks):
    ended = []

    @hooks.on.before_tool(timeout=0.02, on_failure="open")
    async def slow(step):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    await hooks.dispatch(READ_FILE)
    assert ended == ["cancelled"]


@behaviour("001-84", lines="527-532", kind="same", about="an abort after the deadline does not count")
async def test_an_abort_after_the_deadline_is_discarded(hooks):
    @hooks.on.before_tool(timeout=0.02, on_failure="open")
    async def stubborn(step):
        try:
            await aborts_later(step)
        except asyncio.CancelledError:
            return abort("late abort")

    assert (await hooks.dispatch(READ_FILE)).control == "proceed"


@behaviour("001-85", lines="527", kind="same", about="the time-out is that of each hook, and not of all together")
async def test_the_time_of_one_hook_is_not_taken_from_the_next(hooks):
    @hooks.on.before_tool(timeout=0.1, on_failure="open")
    async def uses_its_time(step):
        await asyncio.Event().wait()

    @hooks.on.before_tool(timeout=0.1)
    async def quick(step):
        await asyncio.sleep(0.01)
        return abort("in time")

    assert (await hooks.dispatch(READ_FILE)).reason == "in time"


@behaviour(
    "001-91",
    lines="526",
    kind="different",
    about="a default time-out leaves sync functions inline, where nothing can end them; one of their own ends them",
)
@pytest.mark.parametrize(("own", "control"), [({}, "abort"), ({"timeout": 0.02}, "proceed")])
async def test_a_sync_function_needs_a_timeout_of_its_own(own, control):
    hooks = Hooks(timeout=0.02, on_failure="open")

    def slow(step):
        threading.Event().wait(0.1)
        return abort("late abort")

    hooks.add(slow, on="before_tool", **own)
    assert (await hooks.dispatch(READ_FILE)).control == control


@behaviour(
    "001-93",
    lines="131, 371",
    kind="different",
    about="a message over 4 KiB is cut, with a warning, unless text_limit= is higher; control characters go",
)
@pytest.mark.parametrize(("options", "whole"), [({}, False), ({"text_limit": 10_000}, True)])
async def test_a_long_message_is_cut_with_a_warning(hooks, options, whole):
    hooks.add(aborting("\x1b" + "x" * 5000), on="before_tool", **options)
    decision = await hooks.dispatch(READ_FILE)
    assert (decision.reason == "x" * 5000) is whole
    assert any("was cut" in warning for warning in decision.warnings) is not whole


@behaviour(
    "001-94",
    lines="145, 527",
    kind="different",
    about="a time-out is above zero; synwire's hook with none at all is late unless it ends at once",
)
def test_a_timeout_is_above_zero(hooks):
    with pytest.raises(RegistrationError, match="above 0, or None, not 0"):
        hooks.add(aborts_later, on="before_tool", timeout=0)


@behaviour(
    "001-86", lines="526", kind="same", about="a hook that raises fails by its policy, and never the agent's caller"
)
async def test_a_hook_that_raises_is_skipped_like_one_that_is_late(hooks):
    @hooks.on.before_tool(on_failure="open")
    async def broken(step):
        raise RuntimeError("boom")

    hooks.add(aborting("next"), on="before_tool", name="next")
    assert (await hooks.dispatch(READ_FILE)).reason == "next"


# --- the seed's own tests -------------------------------------------------------------------------


@behaviour("001-87", lines="541-553", kind="same", about="test_pre_tool_use_abort")
async def test_pre_tool_use_abort(hooks):
    hooks.add(aborting("blocked"), on="before_tool")
    assert (await hooks.dispatch(received(BeforeTool, tool="read_file", args={}))).control == "abort"


@behaviour("001-88", lines="555-571", kind="same", about="test_tool_name_pattern_no_match")
async def test_tool_name_pattern_no_match(hooks):
    hooks.add(aborting("blocked"), on="before_tool", tool="write_*", timeout=5)
    assert (await hooks.dispatch(received(BeforeTool, tool="read_file", args={}))).control == "proceed"


@behaviour("001-89", lines="573-595", kind="same", about="test_timeout_skips_hook")
async def test_timeout_skips_hook(hooks):
    hooks.add(aborts_later, on="before_tool", timeout=0.01, on_failure="open")
    assert (await hooks.dispatch(received(BeforeTool, tool="read_file", args={}))).control == "proceed"


@behaviour("001-90", lines="597-605", kind="same", about="test_glob_match")
@pytest.mark.parametrize(
    ("pattern", "tool", "is_it"),
    [
        ("*", "anything", True), ("write_*", "write_file", True), ("write_*", "read_file", False),
        ("*_file", "read_file", True), ("exact", "exact", True), ("exact", "not_exact", False),
    ],
)  # fmt: skip
async def test_glob_match(pattern, tool, is_it):
    assert await matches(pattern, tool) is is_it
