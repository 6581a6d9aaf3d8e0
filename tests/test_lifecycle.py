"""The lifecycle: 26 events, what each step carries, what a hook may do about it, and that steps are read-only.

`TABLE` is DESIGN's lifecycle table written out by hand. It must not be derived from the source.
"""

import copy
import pickle
from typing import Any, NamedTuple, Union

import msgspec
import pytest

import fairlead
from fairlead import EVENTS, Agent, Hooks, ReadOnlyError, Step, Target, UnknownName, lifecycle, thaw
from fairlead.lifecycle import (
    AfterModel,
    AfterRequest,
    AfterTool,
    AfterToolBatch,
    BeforeInput,
    BeforeModel,
    BeforeOutput,
    BeforeRequest,
    BeforeResponse,
    BeforeTool,
    FailurePolicy,
    Notification,
    SessionStart,
)

HEADER = {
    "session_id", "root_session_id", "turn_id", "request_id", "checkpoint_id", "agent", "host", "cwd", "user_id",
    "channel", "thread_id", "sequence", "metadata",
}  # fmt: skip
T = "tool kind target args safety call_id origin"


class Row(NamedTuple):
    event: str
    carries: str
    changes: str = ""
    controls: str = ""
    veto: str | None = None


TABLE = [
    Row("session_start", "source", "", "deny", "abort"),
    Row("session_end", "reason", "", "deny"),
    Row("before_request", "state", "state session_id checkpoint_id", veto="abort"),
    Row("after_request", "state error", "state checkpoint_id", veto="abort"),
    Row("before_input", "source input", "input prepend_input", "deny", "deny"),
    Row("after_input", "committed_len", veto="stop"),
    Row("turn_start", "is_subagent agent_type", veto="stop"),
    Row("before_prompt", "system_prompt user_message", "system_prompt", veto="stop"),
    Row("before_compact", "message_count token_estimate threshold", "", "skip", "skip"),
    Row("after_compact", "message_count tokens_before tokens_after"),
    Row("before_model", "model messages message_count attempt", "model messages assistant", "deny", "stop"),
    Row("after_model", "model output usage stop_reason error", "output", "deny", "deny"),
    Row("tool_requested", T),
    Row("before_tool", T, "args result is_error", "deny ask allow", "deny"),
    Row("before_permission", f"{T} proposed", "resolved", "deny ask allow", "deny"),
    Row("after_permission", f"{T} granted"),
    Row(
        "after_tool",
        f"{T} outcome executed output is_error error duration attempt",
        "output",
        "deny retry",
        "deny",
    ),
    Row("after_tool_batch", "results", veto="stop"),
    Row("before_turn_end", "stop_reason continues_so_far voluntary", "", "extend", "extend"),
    Row("before_response", "response", "response", "deny", "deny"),
    Row("before_output", "content", "content", "deny", "deny"),
    Row("turn_end", "stop_reason iterations response_length"),
    Row("subagent_start", "agent_name initial_message", "initial_message", "deny", "deny"),
    Row("subagent_stop", "agent_name reason continues_so_far", "", "extend", "extend"),
    Row("notification", "message level", "message", "skip", "skip"),
    Row("error", "error where"),
]
NAMES = [row.event for row in TABLE]
TAKE_STOP = ["session_start", *NAMES[NAMES.index("before_input") : NAMES.index("before_turn_end") + 1]]
TAKE_NO_CONTEXT = {"session_end", "turn_end", "before_response", "before_output", "notification", "error"}
ABOUT_TOOLS = {"tool_requested", "before_tool", "before_permission", "after_permission", "after_tool"}

rows = pytest.mark.parametrize("row", TABLE, ids=NAMES)


def build(event: str, **fields: Any) -> Any:
    """A step with nothing given but what it needs."""
    if event in ABOUT_TOOLS:
        fields = {"tool": "Bash", "args": {"command": "ls"}} | fields
    return EVENTS[event].step(**fields)


# --- the table ------------------------------------------------------------------------------


def test_there_are_26_events() -> None:
    assert len(EVENTS) == 26


def test_events_have_the_names_and_the_order_of_the_design() -> None:
    assert list(EVENTS) == NAMES


@rows
def test_an_event_knows_its_name(row: Row) -> None:
    assert EVENTS[row.event].name == row.event


@rows
def test_a_step_knows_its_event(row: Row) -> None:
    assert build(row.event).event == row.event


@rows
def test_a_step_class_is_named_after_its_event(row: Row) -> None:
    assert EVENTS[row.event].step.__name__ == row.event.title().replace("_", "")


@rows
def test_a_step_class_is_found_in_the_lifecycle_module(row: Row) -> None:
    step = EVENTS[row.event].step
    assert getattr(lifecycle, step.__name__) is step
    assert step.__name__ in lifecycle.__all__


@rows
def test_a_step_carries_the_fields_of_its_event(row: Row) -> None:
    own = set(EVENTS[row.event].step.__struct_fields__) - HEADER
    assert own == {*row.carries.split(), *row.changes.split()} - HEADER


@rows
def test_an_event_says_which_fields_may_change(row: Row) -> None:
    assert set(EVENTS[row.event].changes) == set(row.changes.split())


@rows
def test_an_event_takes_its_controls(row: Row) -> None:
    stop = {"stop"} if row.event in TAKE_STOP else set()
    assert set(EVENTS[row.event].controls) == {"proceed", "abort", "skip_rest", *row.controls.split(), *stop}


@rows
def test_an_event_says_what_veto_means(row: Row) -> None:
    assert EVENTS[row.event].veto == row.veto


@rows
def test_an_event_says_whether_it_takes_context(row: Row) -> None:
    assert EVENTS[row.event].context is (row.event not in TAKE_NO_CONTEXT)


@rows
def test_an_event_says_whether_it_is_about_a_tool(row: Row) -> None:
    assert EVENTS[row.event].about_tool is (row.event in ABOUT_TOOLS)


def test_every_veto_is_a_control_the_event_takes() -> None:
    vetoes = {name: event.veto for name, event in EVENTS.items() if event.veto is not None}
    assert vetoes == {row.event: row.veto for row in TABLE if row.veto is not None}
    assert [name for name, veto in vetoes.items() if veto not in EVENTS[name].controls] == []


@rows
@pytest.mark.parametrize("policy", ["closed", "open", "abort"])
def test_an_event_says_what_a_failure_leads_to(row: Row, policy: FailurePolicy) -> None:
    closed = None if row.veto in ("skip", "extend") else row.veto
    wanted = {"closed": closed, "open": None, "abort": "abort"}[policy]
    assert EVENTS[row.event].control_on_failure(policy) == wanted


def test_stop_is_taken_by_sixteen_events() -> None:
    assert [name for name, event in EVENTS.items() if "stop" in event.controls] == TAKE_STOP
    assert len(TAKE_STOP) == 16


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (row.event, field)
        for row in TABLE
        for field in row.changes.split()
        if field not in row.carries.split() and field not in HEADER
    ],
)
def test_a_field_that_may_only_be_changed_is_none_until_set(event: str, field: str) -> None:
    assert getattr(build(event), field) is None


@pytest.mark.parametrize("name", ["befor_tool", "BeforeTool", "", None, 5, [], "before tool"])
def test_an_unknown_event_is_refused(name: Any) -> None:
    with pytest.raises(UnknownName):
        lifecycle.event_named(name)


def test_an_unknown_event_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"befor_tool.*did you mean 'before_tool'"):
        lifecycle.event_named("befor_tool")


def test_the_step_and_its_parts_are_public() -> None:
    assert {"EVENTS", "Step", "ToolStep", "Agent", "Target", "thaw"} <= set(fairlead.__all__)


# --- the header -----------------------------------------------------------------------------


@rows
def test_every_step_carries_the_header(row: Row) -> None:
    assert set(EVENTS[row.event].step.__struct_fields__) >= HEADER


@rows
def test_header_fields_are_none_until_given(row: Row) -> None:
    step = build(row.event)
    assert {name: getattr(step, name) for name in HEADER} == dict.fromkeys(HEADER)


HEADER_VALUES: dict[str, Any] = {
    "session_id": "s1", "root_session_id": "s0", "turn_id": "t1", "request_id": "r1", "checkpoint_id": "c1",
    "agent": Agent("a1", "coder", "a0"), "host": "codex", "cwd": "/srv", "user_id": "u1", "channel": "web",
    "thread_id": "th1", "sequence": 7, "metadata": {"k": [1]},
}  # fmt: skip


@rows
def test_every_step_takes_every_header_field(row: Row) -> None:
    step = build(row.event, **HEADER_VALUES)
    assert {name: getattr(step, name) for name in HEADER} == HEADER_VALUES


def test_dispatch_does_not_fill_the_header() -> None:
    hooks, seen = Hooks(), []
    hooks.add(lambda step: seen.append(step), on="session_start", name="spy")
    hooks.dispatch_sync(SessionStart())
    assert {name: getattr(seen[0], name) for name in HEADER} == dict.fromkeys(HEADER)


# --- building -------------------------------------------------------------------------------


@rows
def test_an_unknown_field_is_named_when_a_step_is_built(row: Row) -> None:
    with pytest.raises(UnknownName, match="sesion_id"):
        build(row.event, sesion_id="s1")


@pytest.mark.parametrize(
    ("event", "field", "meant"),
    [
        ("before_tool", "arg", "args"),
        ("before_tool", "tol", "tool"),
        ("before_input", "inputs", "input"),
        ("before_model", "mesages", "messages"),
        ("after_tool", "durration", "duration"),
        ("error", "wher", "where"),
        ("session_start", "sesion_id", "session_id"),
    ],
)
def test_an_unknown_field_suggests_the_nearest(event: str, field: str, meant: str) -> None:
    with pytest.raises(UnknownName, match=f"{field}.*did you mean '{meant}'"):
        build(event, **{field: "x"})


def test_an_unknown_field_names_the_step_it_is_not_a_field_of() -> None:
    with pytest.raises(UnknownName, match="SessionStart"):
        SessionStart(tool="Bash")


def test_a_missing_tool_is_named() -> None:
    with pytest.raises(TypeError, match="tool"):
        BeforeTool()


# --- read-only ------------------------------------------------------------------------------

SAYS_WHAT_TO_DO = r"return change\("


@rows
def test_no_attribute_of_a_step_can_be_set(row: Row) -> None:
    step = build(row.event)
    for name in step.__struct_fields__:
        before = getattr(step, name)
        with pytest.raises(ReadOnlyError, match=SAYS_WHAT_TO_DO):
            setattr(step, name, "other")
        assert getattr(step, name) == before


@rows
def test_no_attribute_can_be_added_to_a_step(row: Row) -> None:
    step = build(row.event)
    with pytest.raises(ReadOnlyError, match=SAYS_WHAT_TO_DO):
        step.notes = 1
    assert not hasattr(step, "notes")


def test_no_attribute_of_a_step_can_be_deleted() -> None:
    step = build("before_tool", session_id="s1")
    with pytest.raises(ReadOnlyError, match=SAYS_WHAT_TO_DO):
        del step.session_id
    assert step.session_id == "s1"


def test_the_error_names_the_field_that_was_set() -> None:
    with pytest.raises(ReadOnlyError, match=r"change\(args=\.\.\.\)"):
        build("before_tool").args = {}


def test_a_target_cannot_be_edited() -> None:
    step = build("before_tool")
    with pytest.raises(AttributeError):
        step.target.command = "rm -rf /"
    assert step.target.command == "ls"


def test_an_agent_cannot_be_edited() -> None:
    step = build("before_tool", agent=Agent("a1", "coder"))
    with pytest.raises(AttributeError):
        step.agent.name = "root"
    assert step.agent.name == "coder"


def _in_place_or(value: Any) -> None:
    value |= {"x": 1}


def _in_place_add(value: Any) -> None:
    value += [1]


def _in_place_times(value: Any) -> None:
    value *= 2


def _del_item(key: Any) -> Any:
    def edit(value: Any) -> None:
        del value[key]

    return edit


def _set_item(key: Any, new: Any = "new") -> Any:
    def edit(value: Any) -> None:
        value[key] = new

    return edit


DICT_EDITS = {
    "setitem, new key": _set_item("new"),
    "setitem, old key": _set_item("a"),
    "delitem": _del_item("a"),
    "clear": lambda d: d.clear(),
    "pop": lambda d: d.pop("a"),
    "pop with default": lambda d: d.pop("none", None),
    "popitem": lambda d: d.popitem(),
    "setdefault, new key": lambda d: d.setdefault("new", 1),
    "setdefault, old key": lambda d: d.setdefault("a", 1),
    "update with dict": lambda d: d.update({"a": 0}),
    "update with keywords": lambda d: d.update(a=0),
    "in-place or": _in_place_or,
}
LIST_EDITS = {
    "setitem": _set_item(0),
    "setitem, slice": _set_item(slice(None), []),
    "delitem": _del_item(0),
    "delitem, slice": _del_item(slice(None)),
    "append": lambda v: v.append(1),
    "clear": lambda v: v.clear(),
    "extend": lambda v: v.extend([1]),
    "insert": lambda v: v.insert(0, 1),
    "pop": lambda v: v.pop(),
    "pop at": lambda v: v.pop(0),
    "remove": lambda v: v.remove(1),
    "reverse": lambda v: v.reverse(),
    "sort": lambda v: v.sort(),
    "sort by key": lambda v: v.sort(key=str),
    "in-place add": _in_place_add,
    "in-place times": _in_place_times,
}


def nested() -> dict[str, Any]:
    """A dict and a list at each of three depths, one of them inside a tuple."""
    return {"a": 1, "list": [1, [2, {"a": 3}], {"a": [4]}], "dict": {"a": {"a": [5, 6]}}, "pair": ({"a": 1}, [7])}


DICTS = {
    "top": lambda args: args,
    "in a dict": lambda args: args["dict"],
    "in a dict in a dict": lambda args: args["dict"]["a"],
    "in a list": lambda args: args["list"][2],
    "in a list in a list": lambda args: args["list"][1][1],
    "in a tuple": lambda args: args["pair"][0],
}
LISTS = {
    "in a dict": lambda args: args["list"],
    "in a list": lambda args: args["list"][1],
    "in a dict in a list": lambda args: args["list"][2]["a"],
    "in a dict in a dict": lambda args: args["dict"]["a"]["a"],
    "in a tuple": lambda args: args["pair"][1],
}


@pytest.mark.parametrize("edit", DICT_EDITS.values(), ids=DICT_EDITS)
@pytest.mark.parametrize("pick", DICTS.values(), ids=DICTS)
def test_a_dict_at_any_depth_cannot_be_edited(pick: Any, edit: Any) -> None:
    step = BeforeTool(tool="x", args=nested())
    with pytest.raises(ReadOnlyError, match=SAYS_WHAT_TO_DO):
        edit(pick(step.args))
    assert step.args == nested()


@pytest.mark.parametrize("edit", LIST_EDITS.values(), ids=LIST_EDITS)
@pytest.mark.parametrize("pick", LISTS.values(), ids=LISTS)
def test_a_list_at_any_depth_cannot_be_edited(pick: Any, edit: Any) -> None:
    step = BeforeTool(tool="x", args=nested())
    with pytest.raises(ReadOnlyError, match=SAYS_WHAT_TO_DO):
        edit(pick(step.args))
    assert step.args == nested()


def _mutators(kind: type) -> set[str]:
    """The methods of a built-in container that its immutable counterpart lacks."""
    fixed: Any = type(vars(type)) if kind is dict else tuple
    not_edits = {"__getattribute__", "__init__", "__reversed__", "__class_getitem__", "__sizeof__", "copy", "fromkeys"}
    return {name for name in vars(kind) if name not in vars(fixed) and name not in not_edits}


@pytest.mark.parametrize("kind", [dict, list])
def test_no_mutating_method_of_a_builtin_is_left_as_it_was(kind: type) -> None:
    frozen = type(BeforeTool(tool="x", args={"d": {}, "l": []}).args["d" if kind is dict else "l"])
    assert [name for name in sorted(_mutators(kind)) if getattr(frozen, name) is getattr(kind, name)] == []


CONTAINERS = [
    (BeforeTool(tool="x", metadata={"a": [1]}), "metadata", dict),
    (BeforeTool(tool="x", result={"a": 1}), "result", dict),
    (BeforeTool(tool="x", result=[{"a": 1}]), "result", list),
    (AfterTool(tool="x", output=[{"a": 1}]), "output", list),
    (BeforeModel(messages=[{"a": 1}]), "messages", list),
    (BeforeModel(assistant={"a": 1}), "assistant", dict),
    (AfterModel(output=[{"a": 1}]), "output", list),
    (AfterModel(usage={"a": 1}), "usage", dict),
    (BeforeInput(input=[{"a": 1}]), "input", list),
    (BeforeInput(prepend_input=[{"a": 1}]), "prepend_input", list),
    (AfterToolBatch(results=[{"a": 1}]), "results", list),
    (BeforeResponse(response={"a": 1}), "response", dict),
    (BeforeOutput(content=[{"a": 1}]), "content", list),
]


@pytest.mark.parametrize(("step", "field", "kind"), CONTAINERS, ids=[f"{s.event}.{f}" for s, f, _ in CONTAINERS])
def test_every_field_that_holds_a_container_is_read_only(step: Step, field: str, kind: type) -> None:
    value = getattr(step, field)
    assert isinstance(value, kind)
    with pytest.raises(ReadOnlyError, match=SAYS_WHAT_TO_DO):
        value.clear()


@pytest.mark.parametrize("make", [lambda: BeforeTool(tool="x").args, lambda: AfterToolBatch().results])
def test_a_default_container_is_read_only(make: Any) -> None:
    value = make()
    with pytest.raises(ReadOnlyError):
        value.clear()


def test_what_a_hook_changed_is_read_only_to_the_next() -> None:
    hooks, errors = Hooks(), []

    def change_it(step: Any) -> Any:
        return fairlead.change(args={"deep": {"list": [1]}})

    def edit_it(step: Any) -> None:
        try:
            step.args["deep"]["list"].append(2)
        except ReadOnlyError as error:
            errors.append(error)

    hooks.add(change_it, on="before_tool")
    hooks.add(edit_it, on="before_tool")
    decision = hooks.dispatch_sync(BeforeTool(tool="x"))
    assert len(errors) == 1
    assert decision.step.args == {"deep": {"list": [1]}}


def test_a_read_only_error_in_a_hook_is_a_failure_that_says_what_to_do() -> None:
    hooks = Hooks()
    hooks.add(lambda step: step.args.update(command="ls"), on="before_tool", name="editor")
    decision = hooks.dispatch_sync(build("before_tool"))
    assert "return change(" in decision.failures[0].error


def test_read_only_values_are_real_dicts_and_lists() -> None:
    args = BeforeTool(tool="x", args=nested()).args
    assert isinstance(args, dict)
    assert isinstance(args["list"], list)
    assert args == nested()


# --- copies ---------------------------------------------------------------------------------

COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "pickle, oldest protocol": lambda value: pickle.loads(pickle.dumps(value, protocol=0)),
    "thaw": thaw,
}
copies = pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)


def all_types(value: Any) -> set[type]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return {type(value)}.union(*map(all_types, inside))


@copies
def test_a_copy_is_equal(duplicate: Any) -> None:
    assert duplicate(BeforeTool(tool="x", args=nested()).args) == nested()


@copies
def test_a_copy_is_plain_at_every_depth(duplicate: Any) -> None:
    assert all_types(duplicate(BeforeTool(tool="x", args=nested()).args)) == {dict, list, tuple, int}


@copies
def test_a_copied_list_is_plain_at_every_depth(duplicate: Any) -> None:
    assert all_types(duplicate(BeforeModel(messages=[[1], {"a": [2]}]).messages)) == {dict, list, int}


@copies
def test_editing_a_copy_leaves_the_step_alone(duplicate: Any) -> None:
    step = BeforeTool(tool="x", args=nested())
    mine = duplicate(step.args)
    mine["list"][1][1]["a"] = "mine"
    mine["dict"]["a"].clear()
    assert step.args == nested()


@rows
def test_a_step_survives_pickling(row: Row) -> None:
    step = build(row.event, **HEADER_VALUES)
    assert pickle.loads(pickle.dumps(step)) == step


@rows
def test_a_step_survives_deepcopy(row: Row) -> None:
    step = build(row.event, **HEADER_VALUES)
    assert copy.deepcopy(step) == step


def test_the_callers_dict_is_copied() -> None:
    mine = nested()
    step = BeforeTool(tool="x", args=mine)
    mine["list"][1][1]["a"] = "edited"
    mine["dict"]["a"]["a"].append("edited")
    mine["more"] = "edited"
    assert step.args == nested()


def test_the_callers_dict_stays_editable() -> None:
    mine = nested()
    BeforeTool(tool="x", args=mine)
    assert all_types(mine) == {dict, list, tuple, int}


def test_the_callers_metadata_is_copied() -> None:
    mine = {"tags": ["a"]}
    step = SessionStart(metadata=mine)
    mine["tags"].append("b")
    assert step.metadata == {"tags": ["a"]}


def test_the_callers_messages_are_copied() -> None:
    mine = [{"role": "user"}]
    step = BeforeModel(messages=mine)
    mine[0]["role"] = "system"
    mine.append({})
    assert step.messages == [{"role": "user"}]


@pytest.mark.parametrize("kind", [BeforeRequest, AfterRequest])
def test_state_is_the_callers_own_and_may_be_edited(kind: type) -> None:
    state: dict[str, Any] = {"seen": []}
    step = kind(state=state)
    step.state["seen"].append("x")
    assert step.state is state
    assert state == {"seen": ["x"]}


def test_a_state_that_a_hook_gave_may_be_edited() -> None:
    hooks, state = Hooks(), {"n": [1]}
    hooks.add(lambda step: fairlead.change(state=state), on="before_request", name="h")
    decision = hooks.dispatch_sync(BeforeRequest(state={}))
    decision.step.state["n"].append(2)
    assert decision.step.state == {"n": [1, 2]}


# --- JSON -----------------------------------------------------------------------------------

FULL: dict[str, dict[str, Any]] = {
    "session_start": {"source": "fork"},
    "session_end": {"reason": "logout"},
    "before_request": {"state": {"n": [1]}},
    "after_request": {"state": {"n": [1]}, "error": "boom"},
    "before_input": {"source": "background", "input": ["a", {"type": "text"}], "prepend_input": "b"},
    "after_input": {"committed_len": 3},
    "turn_start": {"is_subagent": True, "agent_type": "coder"},
    "before_prompt": {"system_prompt": "be kind", "user_message": "hi"},
    "before_compact": {"message_count": 3, "token_estimate": 4, "threshold": 5},
    "after_compact": {"message_count": 3, "tokens_before": 4, "tokens_after": 2},
    "before_model": {"model": "m", "messages": [{"role": "user"}], "message_count": 1, "attempt": 2, "assistant": "a"},
    "after_model": {"model": "m", "output": [{"t": 1}], "usage": {"in": 1}, "stop_reason": "end_turn", "error": "e"},
    "tool_requested": {"call_id": "c1", "origin": "job-1"},
    "before_tool": {"args": nested() | {"pair": [1]}, "result": {"a": 1}, "is_error": True},
    "before_permission": {"proposed": "ask", "resolved": False},
    "after_permission": {"granted": True},
    "after_tool": {"outcome": "error", "output": "o", "is_error": True, "error": "e", "duration": 0.5, "attempt": 2},
    "after_tool_batch": {"results": [{"call_id": "c1", "output": [1]}]},
    "before_turn_end": {"stop_reason": "max_tokens", "continues_so_far": 2, "voluntary": False},
    "before_response": {"response": [{"type": "text"}]},
    "before_output": {"content": {"text": "hi"}},
    "turn_end": {"stop_reason": "end_turn", "iterations": 3, "response_length": 4},
    "subagent_start": {"agent_name": "coder", "initial_message": "go"},
    "subagent_stop": {"agent_name": "coder", "reason": "done", "continues_so_far": 1},
    "notification": {"message": "m", "level": "warning"},
    "error": {"error": "e", "where": "model"},
}
ANY_STEP = Union[tuple(event.step for event in EVENTS.values())]


@rows
def test_a_bare_step_survives_json(row: Row) -> None:
    step = build(row.event)
    assert msgspec.json.decode(msgspec.json.encode(step), type=type(step)) == step


@rows
def test_a_full_step_survives_json(row: Row) -> None:
    step = build(row.event, **HEADER_VALUES, **FULL[row.event])
    assert msgspec.json.decode(msgspec.json.encode(step), type=type(step)) == step


@rows
def test_json_says_which_event_it_is(row: Row) -> None:
    assert msgspec.json.decode(msgspec.json.encode(build(row.event)))["event"] == row.event


@rows
def test_json_finds_the_step_class_by_its_event(row: Row) -> None:
    step = build(row.event, **HEADER_VALUES, **FULL[row.event])
    assert msgspec.json.decode(msgspec.json.encode(step), type=ANY_STEP) == step


def test_a_step_read_from_json_is_read_only() -> None:
    step = msgspec.json.decode(b'{"event":"before_tool","tool":"Bash","args":{"a":{"b":[]}}}', type=BeforeTool)
    with pytest.raises(ReadOnlyError):
        step.args["a"]["b"].append(1)


def test_a_tool_step_read_from_json_knows_its_target() -> None:
    step = msgspec.json.decode(b'{"event":"before_tool","tool":"Bash","args":{"command":"ls"}}', type=BeforeTool)
    assert (step.kind, step.target) == ("shell", Target(command="ls"))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (SessionStart, b'{"event":"session_start","source":"reborn"}'),
        (BeforeInput, b'{"event":"before_input","source":"alien"}'),
        (AfterTool, b'{"event":"after_tool","tool":"x","outcome":"great"}'),
        (BeforeTool, b'{"event":"before_tool","tool":"x","safety":"harmless"}'),
        (BeforeTool, b'{"event":"before_tool","tool":"x","kind":"spell"}'),
        (Notification, b'{"event":"error"}'),
    ],
)
def test_json_outside_the_lifecycle_is_refused(kind: type, text: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(text, type=kind)
