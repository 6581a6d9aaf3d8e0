"""Registering hooks: every way in, every mistake refused by name, swapping sources at once, and matching."""

import functools
import re
import threading
from typing import Any

import pytest

from fairlead import EVENTS, Agent, FairleadError, Hook, Hooks, RegistrationError, UnknownName, deny
from fairlead.lifecycle import (
    AfterTool,
    BeforePermission,
    BeforeTool,
    Notification,
    SessionStart,
    Step,
    ToolRequested,
    TurnEnd,
)

ABOUT_TOOLS = ["tool_requested", "before_tool", "before_permission", "after_permission", "after_tool"]


def nothing(step: Any) -> None:
    """A hook without an opinion."""


async def nothing_async(step: Any) -> None:
    """The same, async."""


def step_of(event: str) -> Any:
    return EVENTS[event].step(**({"tool": "Bash"} if event in ABOUT_TOOLS else {}))


class Spy:
    """A hook that remembers which events it saw."""

    __name__ = "spy"

    def __init__(self) -> None:
        self.events: list[str] = []

    def __call__(self, step: Any) -> None:
        self.events.append(step.event)


def names(hooks: Hooks) -> list[str]:
    return [hook.name for hook in hooks]


# --- ways in ----------------------------------------------------------------------------------


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_has_a_bare_decorator(event: str) -> None:
    hooks, spy = Hooks(), Spy()
    getattr(hooks.on, event)(spy)
    hooks.dispatch_sync(step_of(event))
    assert spy.events == [event]


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_has_a_decorator_with_options(event: str) -> None:
    hooks, spy = Hooks(), Spy()
    getattr(hooks.on, event)(name="mine", priority=7)(spy)
    hooks.dispatch_sync(step_of(event))
    assert spy.events == [event]
    assert [(hook.name, hook.priority) for hook in hooks] == [("mine", 7)]


def test_a_bare_decorator_gives_the_function_back() -> None:
    assert Hooks().on.before_tool(nothing) is nothing


def test_a_decorator_with_options_gives_the_function_back() -> None:
    assert Hooks().on.before_tool(priority=1)(nothing) is nothing


def test_a_decorator_for_several_events_gives_the_function_back() -> None:
    assert Hooks().on("before_tool", "after_tool")(nothing) is nothing


def test_a_decorated_function_is_named_after_itself() -> None:
    hooks = Hooks()
    hooks.on.before_tool(nothing)
    assert names(hooks) == ["nothing"]


OPTIONS: dict[str, Any] = {
    "name": "mine",
    "tool": "Bash",
    "kind": "shell",
    "safety": "mutating",
    "outcome": "ok",
    "agent": "coder",
    "host": "codex",
    "phase": "gate",
    "priority": 3,
    "timeout": 1.5,
    "on_failure": "open",
    "blocking": True,
    "enforce": False,
    "quarantine": (5, 30),
}
KEPT = OPTIONS | {field: (OPTIONS[field],) for field in ("tool", "kind", "safety", "outcome", "agent", "host")}
KEPT.pop("quarantine")


@pytest.mark.parametrize("option", OPTIONS)
def test_the_decorator_takes_every_option(option: str) -> None:
    hooks = Hooks()
    hooks.on.after_tool(**{option: OPTIONS[option]})(nothing)
    assert len(hooks) == 1


@pytest.mark.parametrize("option", KEPT)
def test_an_option_is_kept_on_the_hook(option: str) -> None:
    hook = Hooks().add(nothing, on="after_tool", **{option: OPTIONS[option]})
    assert getattr(hook, option) == KEPT[option]


def test_the_decorator_takes_all_options_at_once() -> None:
    hooks = Hooks()
    hooks.on.after_tool(**OPTIONS)(nothing)
    hook = next(iter(hooks))
    assert {option: getattr(hook, option) for option in KEPT} == KEPT


def test_an_observer_may_be_detached() -> None:
    hook = Hooks().add(nothing, on="before_tool", phase="observe", detached=True)
    assert isinstance(hook, Hook)
    assert hook.detached


def test_a_hook_without_options_has_the_defaults() -> None:
    hook: Any = Hooks().add(nothing, on="before_tool")
    kept = (hook.phase, hook.priority, hook.timeout, hook.on_failure, hook.blocking, hook.detached, hook.enforce)
    assert kept == ("transform", 50, 5.0, "closed", False, False, True)
    assert (hook.tool, hook.kind, hook.safety, hook.outcome, hook.agent, hook.host, hook.quarantine) == (None,) * 7


def test_no_time_out_is_none() -> None:
    hook: Any = Hooks().add(nothing_async, on="before_tool", timeout=None)
    assert hook.timeout is None


def test_add_gives_the_hook() -> None:
    hook = Hooks().add(nothing, on="before_tool")
    assert isinstance(hook, Hook)
    assert (hook.name, hook.events, hook.fn) == ("nothing", {"before_tool"}, nothing)


@pytest.mark.parametrize(
    "on", [["before_tool", "turn_end"], ("before_tool", "turn_end"), {"before_tool", "turn_end"}, "before_tool"]
)
def test_add_takes_one_event_or_several(on: Any) -> None:
    hooks, spy = Hooks(), Spy()
    hooks.add(spy, on=on)
    hooks.dispatch_sync(step_of("before_tool"))
    hooks.dispatch_sync(step_of("turn_end"))
    hooks.dispatch_sync(step_of("session_start"))
    assert spy.events == (["before_tool"] if on == "before_tool" else ["before_tool", "turn_end"])


def test_on_takes_several_events() -> None:
    hooks, spy = Hooks(), Spy()
    hooks.on("before_tool", "after_tool", priority=3)(spy)
    for event in ("before_tool", "after_tool", "turn_end"):
        hooks.dispatch_sync(step_of(event))
    assert spy.events == ["before_tool", "after_tool"]


@pytest.mark.parametrize(
    "register", [lambda hooks, fn: hooks.on("*")(fn), lambda hooks, fn: hooks.add(fn, on="*")], ids=["on", "add"]
)
def test_a_star_is_every_event(register: Any) -> None:
    hooks, spy = Hooks(), Spy()
    register(hooks, spy)
    for event in EVENTS:
        hooks.dispatch_sync(step_of(event))
    assert spy.events == list(EVENTS)


def test_a_partial_is_named_after_its_function() -> None:
    def judge(limit: int, step: Any) -> None: ...

    hook: Any = Hooks().add(functools.partial(judge, 5), on="before_tool")
    assert hook.name == "judge"


def test_a_callable_object_is_named_after_its_class() -> None:
    class Budget:
        def __call__(self, step: Any) -> None: ...

    hook: Any = Hooks().add(Budget(), on="before_tool")
    assert hook.name == "Budget"


@pytest.mark.parametrize("fn", [lambda step: None, lambda step, more=1: None, lambda *steps: None, nothing_async])
def test_whatever_can_be_called_with_a_step_is_a_hook(fn: Any) -> None:
    hooks = Hooks()
    hooks.add(fn, on="before_tool", name="h", on_failure="closed")
    assert hooks.dispatch_sync(step_of("before_tool")).failures == ()


@pytest.mark.parametrize("fn", [lambda step: None, lambda step, decision: None, nothing_async])
def test_whatever_can_be_called_with_a_step_and_a_decision_is_an_observer(fn: Any) -> None:
    hooks = Hooks()
    hooks.add(fn, on="before_tool", name="h", phase="observe")
    assert hooks.dispatch_sync(step_of("before_tool")).failures == ()


# --- objects ----------------------------------------------------------------------------------


class Policy:
    """An object with methods named after events, and some that are not."""

    limit = 5

    def __init__(self) -> None:
        self.seen: list[str] = []

    def before_tool(self, step: Any) -> Any:
        self.seen.append("before_tool")
        return deny("no")

    async def turn_end(self, step: Any) -> None:
        self.seen.append("turn_end")

    def reset(self) -> None:
        self.seen.clear()

    def _before_input(self, step: Any) -> None: ...


def test_the_methods_of_an_object_are_registered_for_the_events_they_are_named_after() -> None:
    hooks, policy = Hooks(), Policy()
    hooks.add(policy)
    for event in EVENTS:
        hooks.dispatch_sync(step_of(event))
    assert policy.seen == ["before_tool", "turn_end"]


def test_an_objects_hooks_are_named_after_its_class_and_methods() -> None:
    hooks = Hooks()
    hooks.add(Policy())
    assert sorted(names(hooks)) == ["Policy.before_tool", "Policy.turn_end"]


def test_an_objects_hooks_take_the_name_they_are_given() -> None:
    hooks = Hooks()
    hooks.add(Policy(), name="mine")
    assert sorted(names(hooks)) == ["mine.before_tool", "mine.turn_end"]


def test_an_objects_hooks_take_options() -> None:
    hooks = Hooks()
    hooks.add(Policy(), phase="gate", priority=3)
    assert {(hook.phase, hook.priority) for hook in hooks} == {("gate", 3)}


def test_adding_an_object_gives_its_hooks() -> None:
    hooks = Hooks()
    added = hooks.add(Policy())
    assert added == tuple(hooks)


def test_an_object_is_unregistered_by_its_name() -> None:
    hooks = Hooks()
    hooks.add(Policy())
    hooks.add(nothing, on="before_tool")
    hooks.unregister("Policy")
    assert names(hooks) == ["nothing"]


def test_one_method_of_an_object_is_unregistered_by_its_full_name() -> None:
    hooks = Hooks()
    hooks.add(Policy())
    hooks.unregister("Policy.turn_end")
    assert names(hooks) == ["Policy.before_tool"]


@pytest.mark.parametrize(
    ("method", "meant"),
    [
        ("before_tol", "before_tool"),
        ("before_toolcall", "before_tool"),
        ("after_tools", "after_tool"),
        ("befor_tool", "before_tool"),
        ("sesion_start", "session_start"),
        ("turn_ends", "turn_end"),
    ],
)
def test_a_misspelt_event_method_is_refused(method: str, meant: str) -> None:
    misspelt = type("Misspelt", (Policy,), {method: lambda self, step: None})()
    hooks = Hooks()
    with pytest.raises(UnknownName, match=f"{method}.*{meant}"):
        hooks.add(misspelt)
    assert len(hooks) == 0


@pytest.mark.parametrize("thing", [object(), 5, "before_tool", nothing, type("Empty", (), {})()])
def test_what_has_no_event_methods_needs_an_event(thing: Any) -> None:
    with pytest.raises(RegistrationError, match="on="):
        Hooks().add(thing)


def test_an_object_with_a_method_of_the_wrong_arity_registers_none_of_its_hooks() -> None:
    bad = type("Bad", (Policy,), {"session_end": lambda self: None})()
    hooks = Hooks()
    with pytest.raises(RegistrationError, match=r"Bad\.session_end"):
        hooks.add(bad)
    assert len(hooks) == 0


# --- names --------------------------------------------------------------------------------------


def test_names_are_unique() -> None:
    hooks = Hooks()
    hooks.add(nothing, on="before_tool", name="mine")
    with pytest.raises(RegistrationError, match=r"'mine'.*already registered.*replace=True"):
        hooks.add(nothing, on="turn_end", name="mine")
    assert [hook.events for hook in hooks] == [{"before_tool"}]


def test_names_are_unique_for_decorators_too() -> None:
    hooks = Hooks()
    hooks.on.before_tool(nothing)
    with pytest.raises(RegistrationError, match="'nothing'"):
        hooks.on.turn_end(nothing)


REPLACING = {
    "add": lambda hooks, fn: hooks.add(fn, on="before_tool", name="mine", replace=True),
    "decorator": lambda hooks, fn: hooks.on.before_tool(name="mine", replace=True)(fn),
    "on": lambda hooks, fn: hooks.on("before_tool", "after_tool", name="mine", replace=True)(fn),
}


@pytest.mark.parametrize("register", REPLACING.values(), ids=REPLACING)
def test_replace_puts_a_hook_in_the_place_of_its_namesake(register: Any) -> None:
    hooks, old, new = Hooks(), Spy(), Spy()
    hooks.add(old, on="before_tool", name="mine")
    register(hooks, new)
    hooks.dispatch_sync(step_of("before_tool"))
    assert (old.events, new.events, names(hooks)) == ([], ["before_tool"], ["mine"])


def test_replace_needs_nothing_to_replace() -> None:
    hooks = Hooks()
    hooks.add(nothing, on="before_tool", replace=True)
    assert names(hooks) == ["nothing"]


def test_an_object_one_of_whose_names_is_taken_registers_none_of_its_hooks() -> None:
    hooks = Hooks()
    hooks.add(nothing, on="before_tool", name="Policy.turn_end")
    with pytest.raises(RegistrationError, match=r"Policy\.turn_end"):
        hooks.add(Policy())
    assert names(hooks) == ["Policy.turn_end"]


@pytest.mark.parametrize("name", ["", 5, [], ("a",)])
def test_a_name_is_a_text(name: Any) -> None:
    with pytest.raises(RegistrationError, match="name"):
        Hooks().add(nothing, on="before_tool", name=name)


# --- looking around -----------------------------------------------------------------------------


def test_hooks_are_iterated_in_registration_order() -> None:
    hooks = Hooks()
    for at, name in enumerate("cab"):
        hooks.add(nothing, on="before_tool", name=name, priority=9 - at)
    assert names(hooks) == ["c", "a", "b"]


def test_hooks_have_a_length() -> None:
    hooks = Hooks()
    assert len(hooks) == 0
    hooks.add(nothing, on=["before_tool", "after_tool"])
    assert len(hooks) == 1


def test_a_hook_is_in_hooks_by_its_name() -> None:
    hooks = Hooks()
    hooks.add(nothing, on="before_tool")
    assert "nothing" in hooks
    assert "something" not in hooks


def test_has_hooks_says_whether_a_hook_subscribes() -> None:
    hooks = Hooks()
    hooks.add(nothing, on=["before_tool", "turn_end"])
    assert [event for event in EVENTS if hooks.has_hooks(event)] == ["before_tool", "turn_end"]


def test_has_hooks_counts_a_star() -> None:
    hooks = Hooks()
    hooks.add(nothing, on="*")
    assert all(map(hooks.has_hooks, EVENTS))


def test_has_hooks_refuses_an_unknown_event() -> None:
    with pytest.raises(UnknownName, match=r"befor_tool.*did you mean 'before_tool'"):
        Hooks().has_hooks("befor_tool")


def test_an_unregistered_hook_no_longer_runs() -> None:
    hooks, spy = Hooks(), Spy()
    hooks.add(spy, on="before_tool", name="mine")
    hooks.dispatch_sync(step_of("before_tool"))
    hooks.unregister("mine")
    hooks.dispatch_sync(step_of("before_tool"))
    assert (spy.events, "mine" in hooks, hooks.has_hooks("before_tool")) == (["before_tool"], False, False)


def test_a_name_is_free_again_after_unregistering() -> None:
    hooks = Hooks()
    hooks.add(nothing, on="before_tool")
    hooks.unregister("nothing")
    hooks.add(nothing, on="before_tool")
    assert names(hooks) == ["nothing"]


def test_unregistering_an_unknown_hook_suggests_the_nearest() -> None:
    hooks = Hooks()
    hooks.add(nothing, on="before_tool")
    with pytest.raises(UnknownName, match=r"nothin'.*did you mean 'nothing'"):
        hooks.unregister("nothin")


def test_a_hook_registered_after_a_dispatch_runs_at_the_next() -> None:
    hooks, spy = Hooks(), Spy()
    hooks.dispatch_sync(step_of("before_tool"))
    hooks.add(spy, on="before_tool")
    hooks.dispatch_sync(step_of("before_tool"))
    assert spy.events == ["before_tool"]


def test_iterating_is_not_disturbed_by_registering() -> None:
    hooks = Hooks()
    hooks.add(nothing, on="before_tool", name="a")
    hooks.add(nothing, on="before_tool", name="b")
    seen = []
    for hook in hooks:
        seen.append(hook.name)
        hooks.add(nothing, on="before_tool", name=f"{hook.name}2")
    assert seen == ["a", "b"]


# --- replacing one source's hooks ---------------------------------------------------------------


def hook(name: str, fn: Any = nothing, **options: Any) -> Hook:
    return Hook(fn, "before_tool", name=name, **options)


@pytest.fixture
def sourced() -> Hooks:
    """Hooks of code (c1) and of two files (u1, u2 and p1)."""
    hooks = Hooks()
    hooks.add(nothing, on="before_tool", name="c1")
    hooks.replace_all([hook("u1"), hook("u2")], source="user.toml")
    hooks.replace_all([hook("p1")], source="project.toml")
    return hooks


def test_replace_all_swaps_the_hooks_of_one_source(sourced: Hooks) -> None:
    sourced.replace_all([hook("u2"), hook("u3")], source="user.toml")
    assert sorted(names(sourced)) == ["c1", "p1", "u2", "u3"]


def test_replace_all_with_nothing_removes_the_source(sourced: Hooks) -> None:
    sourced.replace_all([], source="user.toml")
    assert sorted(names(sourced)) == ["c1", "p1"]


def test_replace_all_notes_the_source(sourced: Hooks) -> None:
    assert {hook.name: hook.source for hook in sourced} == {
        "c1": "code",
        "u1": "user.toml",
        "u2": "user.toml",
        "p1": "project.toml",
    }


def test_replace_all_puts_the_new_hooks_to_work_and_the_old_ones_out_of_it() -> None:
    hooks, old, new = Hooks(), Spy(), Spy()
    hooks.replace_all([hook("mine", old)], source="user.toml")
    hooks.dispatch_sync(step_of("before_tool"))
    hooks.replace_all([hook("mine", new)], source="user.toml")
    hooks.dispatch_sync(step_of("before_tool"))
    assert (old.events, new.events) == (["before_tool"], ["before_tool"])


BAD_SOURCES = {
    "not a hook": lambda: [hook("u9"), nothing],
    "twice the same name": lambda: [hook("u9"), hook("u9")],
    "a name of another source": lambda: [hook("u9"), hook("p1")],
    "a name of code": lambda: [hook("u9"), hook("c1")],
    "one that raises": lambda: (hook(name, phase=phase) for name, phase in [("u9", "gate"), ("u8", "gates")]),
}


@pytest.mark.parametrize("make", BAD_SOURCES.values(), ids=BAD_SOURCES)
def test_replace_all_changes_nothing_when_one_is_bad(sourced: Hooks, make: Any) -> None:
    before = list(sourced)
    with pytest.raises(FairleadError):
        sourced.replace_all(make(), source="user.toml")
    assert list(sourced) == before


@pytest.mark.parametrize("make", BAD_SOURCES.values(), ids=BAD_SOURCES)
def test_a_refused_replacement_leaves_the_old_hooks_running(make: Any) -> None:
    hooks, old = Hooks(), Spy()
    hooks.add(nothing, on="before_tool", name="c1")
    hooks.replace_all([hook("p1")], source="project.toml")
    hooks.replace_all([hook("u1", old)], source="user.toml")
    with pytest.raises(FairleadError):
        hooks.replace_all(make(), source="user.toml")
    hooks.dispatch_sync(step_of("before_tool"))
    assert old.events == ["before_tool"]


def test_replace_all_is_seen_whole_by_a_dispatch_in_flight() -> None:
    hooks, late, new = Hooks(), Spy(), Spy()

    def reload(step: Any) -> None:
        hooks.replace_all([hook("new", new)], source="user.toml")

    hooks.replace_all([hook("reload", reload), hook("late", late)], source="user.toml")
    hooks.dispatch_sync(step_of("before_tool"))
    assert (late.events, new.events) == (["before_tool"], [])


# --- mistakes -----------------------------------------------------------------------------------


def gen(step: Any) -> Any:
    yield None


async def agen(step: Any) -> Any:
    yield None


MISTAKES: dict[str, tuple[Any, dict[str, Any], str]] = {
    "unknown event": (nothing, {"on": "befor_tool"}, r"befor_tool.*did you mean 'before_tool'"),
    "unknown event among several": (nothing, {"on": ["before_tool", "turn_ned"]}, r"turn_ned.*did you mean 'turn_end'"),
    "a star among several": (nothing, {"on": ["before_tool", "*"]}, r"'\*'"),
    "an event that is no text": (nothing, {"on": [5]}, "5"),
    "no event": (nothing, {"on": []}, "on="),
    "unknown option": (nothing, {"priorty": 5}, r"priorty.*did you mean 'priority'"),
    "unknown option, timeout": (nothing, {"time_out": 5}, r"time_out.*did you mean 'timeout'"),
    "unknown phase": (nothing, {"phase": "gates"}, r"phase 'gates'.*'mine'.*did you mean 'gate'"),
    "unknown on_failure": (nothing, {"on_failure": "close"}, r"on_failure 'close'.*'mine'.*did you mean 'closed'"),
    "empty on_failure": (nothing, {"on_failure": ""}, "on_failure"),
    "unknown kind": (nothing, {"kind": "shel"}, r"kind 'shel'.*'mine'.*did you mean 'shell'"),
    "unknown kind among several": (nothing, {"kind": ["read", "wrote"]}, r"kind 'wrote'.*did you mean 'write'"),
    "unknown safety": (nothing, {"safety": "readonly"}, r"safety 'readonly'.*did you mean 'read_only'"),
    "unknown outcome": (nothing, {"on": "after_tool", "outcome": "eror"}, r"outcome 'eror'.*did you mean 'error'"),
    "bad glob, open": (nothing, {"tool": "mcp__{a,b"}, r"mcp__\{a,b'.*did you mean"),
    "bad glob, closed": (nothing, {"tool": "mcp__a}"}, r"mcp__a\}'.*did you mean 'mcp__a'"),
    "bad glob, empty": (nothing, {"tool": ""}, "glob"),
    "bad glob among several": (nothing, {"tool": ["Bash", "{"]}, "glob"),
    "bad glob, no text": (nothing, {"tool": [5]}, "glob.*5"),
    "bad glob, a list": (nothing, {"tool": [["Bash"]]}, "glob.*Bash"),
    "a tool that is no text": (nothing, {"tool": 5}, "tool.*5|5.*tool"),
    "no time": (nothing, {"timeout": 0}, "'mine'.*timeout.*0"),
    "negative time": (nothing, {"timeout": -1}, "'mine'.*timeout.*-1"),
    "endless time": (nothing, {"timeout": float("inf")}, "'mine'.*timeout.*inf"),
    "time that is no number": (nothing, {"timeout": float("nan")}, "'mine'.*timeout.*nan"),
    "time in words": (nothing, {"timeout": "5s"}, "'mine'.*timeout.*5s"),
    "time that is true": (nothing, {"timeout": True}, "'mine'.*timeout.*True"),
    "priority in words": (nothing, {"priority": "high"}, "'mine'.*priority.*high"),
    "priority in parts": (nothing, {"priority": 1.5}, r"'mine'.*priority.*1\.5"),
    "no priority": (nothing, {"priority": None}, "'mine'.*priority.*None"),
    "priority that is true": (nothing, {"priority": True}, "'mine'.*priority.*True"),
    "quarantine of one part": (nothing, {"quarantine": (5,)}, r"'mine'.*quarantine.*\(5,\)"),
    "quarantine of three parts": (nothing, {"quarantine": (5, 30, 1)}, "'mine'.*quarantine"),
    "quarantine as a number": (nothing, {"quarantine": 5}, "'mine'.*quarantine.*5"),
    "quarantine after no failures": (nothing, {"quarantine": (0, 30)}, "'mine'.*quarantine"),
    "quarantine for no time": (nothing, {"quarantine": (5, 0)}, "'mine'.*quarantine"),
    "quarantine in words": (nothing, {"quarantine": ("5", "30")}, "'mine'.*quarantine"),
    "quarantine for ever": (nothing, {"quarantine": (5, float("inf"))}, "'mine'.*quarantine"),
    "outcome off after_tool": (nothing, {"outcome": "ok"}, "'mine'.*outcome.*after_tool"),
    "outcome on more than after_tool": (
        nothing,
        {"on": ["after_tool", "before_tool"], "outcome": "ok"},
        "'mine'.*outcome.*after_tool",
    ),
    "detached transform": (nothing, {"detached": True}, "'mine'.*observe"),
    "detached gate": (nothing, {"detached": True, "phase": "gate"}, "'mine'.*observe"),
    "observer that fails closed": (nothing, {"phase": "observe", "on_failure": "closed"}, "'mine'.*on_failure"),
    "observer that aborts": (nothing, {"phase": "observe", "on_failure": "abort"}, "'mine'.*on_failure"),
    "blocking async": (nothing_async, {"blocking": True}, "'mine'.*blocking.*async"),
    "generator": (gen, {}, "'mine'.*yield"),
    "async generator": (agen, {}, "'mine'.*yield"),
    "no parameter": (lambda: None, {}, r"'mine'.*\(step\)"),
    "two parameters": (lambda step, decision: None, {}, r"'mine'.*\(step\)"),
    "two parameters of a gate": (lambda step, decision: None, {"phase": "gate"}, r"'mine'.*\(step\)"),
    "three parameters of an observer": (
        lambda step, decision, more: None,
        {"phase": "observe"},
        r"'mine'.*\(step, decision\)",
    ),
    "only keyword parameters": (lambda *, step: None, {}, r"'mine'.*\(step\)"),
    "a keyword parameter without a value": (lambda step, *, limit: None, {}, r"'mine'.*\(step\)"),
    "not callable": (5, {}, "'mine'.*5"),
    "a text": ("nothing", {}, "'mine'.*nothing"),
    "nothing at all": (None, {}, "'mine'.*None"),
    "unknown layer": (nothing, {"layer": "root"}, "layer 'root'"),
}


@pytest.mark.parametrize(("fn", "options", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_by_name(fn: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(FairleadError, match=message):
        Hooks().add(fn, **{"on": "before_tool", "name": "mine", **options})


@pytest.mark.parametrize(("fn", "options", "message"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_registers_nothing(fn: Any, options: dict[str, Any], message: str) -> None:
    hooks = Hooks()
    with pytest.raises(Exception):  # noqa: B017 -- which one is the test above's business
        hooks.add(fn, **{"on": "before_tool", "name": "mine", **options})
    assert len(hooks) == 0


@pytest.mark.parametrize("option", [{"tool": "Bash"}, {"kind": "shell"}, {"safety": "mutating"}], ids=str)
@pytest.mark.parametrize("event", [event for event in EVENTS if event not in ABOUT_TOOLS])
def test_a_tool_filter_on_an_event_without_a_tool_is_refused(event: str, option: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError, match=f"'mine'.*{next(iter(option))}=.*{event}"):
        Hooks().add(nothing, on=event, name="mine", **option)


@pytest.mark.parametrize("option", [{"tool": "Bash"}, {"kind": "shell"}, {"safety": "mutating"}], ids=str)
def test_a_tool_filter_on_several_events_needs_a_tool_in_all_of_them(option: dict[str, Any]) -> None:
    with pytest.raises(RegistrationError, match="turn_end"):
        Hooks().add(nothing, on=["before_tool", "turn_end"], **option)


@pytest.mark.parametrize("event", ABOUT_TOOLS)
def test_a_tool_filter_is_taken_by_every_event_about_a_tool(event: str) -> None:
    hooks = Hooks()
    hooks.add(nothing, on=event, tool="Bash", kind="shell", safety="mutating")
    assert len(hooks) == 1


@pytest.mark.parametrize(
    ("misspelt", "meant"), [("befor_tool", "before_tool"), ("notificaton", "notification"), ("erorr", "error")]
)
def test_a_misspelt_decorator_suggests_the_nearest(misspelt: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"{misspelt}.*did you mean '{meant}'"):
        getattr(Hooks().on, misspelt)


def test_a_misspelt_decorator_is_an_unknown_name() -> None:
    with pytest.raises(UnknownName, match="befor_tool"):
        Hooks().on.befor_tool  # noqa: B018


@pytest.mark.parametrize("events", [("befor_tool",), ("before_tool", "befor_tool"), ("*", "befor_tool")])
def test_on_refuses_an_unknown_event(events: tuple[str, ...]) -> None:
    with pytest.raises(UnknownName):
        Hooks().on(*events)(nothing)


def test_on_needs_an_event() -> None:
    with pytest.raises(RegistrationError, match="which event"):
        Hooks().on()(nothing)


def test_a_decorator_refuses_an_unknown_option() -> None:
    with pytest.raises(UnknownName, match=r"tmeout.*did you mean 'timeout'"):
        Hooks().on.before_tool(tmeout=5)(nothing)  # type: ignore[call-arg]


# --- matching -----------------------------------------------------------------------------------


def runs(step: Step, on: Any = None, **filters: Any) -> bool:
    hooks, spy = Hooks(), Spy()
    hooks.add(spy, on=on or step.event, **filters)
    hooks.dispatch_sync(step)
    return bool(spy.events)


BASH = BeforeTool(tool="Bash", args={"command": "ls"})
READ = BeforeTool(tool="Read", args={"file_path": "a"})


@pytest.mark.parametrize(
    ("tool", "wanted"),
    [
        ("Bash", True),
        ("bash", False),
        ("Bas", False),
        ("Bash2", False),
        ("B*", True),
        ("*", True),
        ("*sh", True),
        ("B??h", True),
        ("B?h", False),
        ("{Bash,Read}", True),
        ("{Read,Write}", False),
        ("{B*,Read}", True),
        (["Read", "Bash"], True),
        (("Read", "Bash"), True),
        ({"Read", "Bash"}, True),
        (["Read", "B*"], True),
        (["Read", "Write"], False),
        ("[B]ash", False),
        ("[B]as?", False),
        ("B.sh", False),
        ("B.s*", False),
        ("^B*", False),
        ("B*|Read", False),
    ],
)
def test_a_hook_is_matched_by_its_tool(tool: Any, wanted: bool) -> None:
    assert runs(BASH, tool=tool) is wanted


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({"kind": "shell"}, True),
        ({"kind": "read"}, False),
        ({"kind": ["read", "shell"]}, True),
        ({"kind": ["read", "write"]}, False),
        ({"safety": "mutating"}, True),
        ({"safety": "read_only"}, False),
        ({"safety": ["read_only", "mutating"]}, True),
        ({"tool": "Bash", "kind": "shell", "safety": "mutating"}, True),
        ({"tool": "Bash", "kind": "read"}, False),
        ({"tool": "Read", "kind": "shell"}, False),
        ({"kind": "shell", "safety": "read_only"}, False),
    ],
    ids=str,
)
def test_a_hook_is_matched_by_kind_and_safety(filters: dict[str, Any], wanted: bool) -> None:
    assert runs(BASH, **filters) is wanted


@pytest.mark.parametrize("outcome", ["ok", "error", "denied", "aborted", "answered"])
def test_a_hook_is_matched_by_outcome(outcome: Any) -> None:
    hooks, spies = Hooks(), {name: Spy() for name in ("ok", "error", "denied", "aborted", "answered")}
    for name, spy in spies.items():
        hooks.add(spy, on="after_tool", outcome=name, name=name)
    hooks.dispatch_sync(AfterTool(tool="Bash", outcome=outcome))
    assert [name for name, spy in spies.items() if spy.events] == [outcome]


def test_a_hook_is_matched_by_several_outcomes() -> None:
    ran = [runs(AfterTool(tool="x", outcome=o), outcome=["ok", "error"]) for o in ("ok", "error", "denied")]  # type: ignore[arg-type]
    assert ran == [True, True, False]


@pytest.mark.parametrize(
    ("agent", "filters", "wanted"),
    [
        (Agent("1", "coder"), "coder", True),
        (Agent("1", "coder"), "tester", False),
        (Agent("1", "coder"), ["tester", "coder"], True),
        (Agent("coder", "other"), "coder", False),
        (Agent("1", None), "coder", False),
        (None, "coder", False),
    ],
)
@pytest.mark.parametrize("step", [BeforeTool, SessionStart], ids=["tool", "no tool"])
def test_a_hook_is_matched_by_the_name_of_the_agent(step: Any, agent: Any, filters: Any, wanted: bool) -> None:
    fields = {"tool": "Bash"} if step is BeforeTool else {}
    assert runs(step(agent=agent, **fields), agent=filters) is wanted


@pytest.mark.parametrize(
    ("host", "filters", "wanted"),
    [
        ("codex", "codex", True),
        ("codex", "claude_code", False),
        ("codex", ["claude_code", "codex"], True),
        (None, "codex", False),
    ],
)
@pytest.mark.parametrize("step", [BeforeTool, SessionStart], ids=["tool", "no tool"])
def test_a_hook_is_matched_by_host(step: Any, host: Any, filters: Any, wanted: bool) -> None:
    fields = {"tool": "Bash"} if step is BeforeTool else {}
    assert runs(step(host=host, **fields), host=filters) is wanted


def test_all_filters_must_match() -> None:
    filters = {"tool": "B*", "kind": "shell", "safety": "mutating", "agent": "coder", "host": "codex"}
    fields = {"tool": "Bash", "agent": Agent("1", "coder"), "host": "codex"}
    others = {"tool": "Bashful", "agent": Agent("1", "other"), "host": "other"}
    ran = [runs(BeforeTool(**fields | {field: others[field]}), **filters) for field in others]
    assert (runs(BeforeTool(**fields), **filters), ran) == (True, [False] * 3)


@pytest.mark.parametrize("option", [{"tool": "*"}, {"kind": "shell"}, {"safety": "mutating"}], ids=str)
@pytest.mark.parametrize("event", EVENTS)
def test_under_a_star_a_tool_filter_never_matches_an_event_without_a_tool(event: str, option: dict[str, Any]) -> None:
    assert runs(step_of(event), on="*", **option) is (event in ABOUT_TOOLS)


@pytest.mark.parametrize("event", EVENTS)
def test_under_a_star_an_outcome_filter_matches_after_tool_only(event: str) -> None:
    assert runs(step_of(event), on="*", outcome="ok") is (event == "after_tool")


@pytest.mark.parametrize("event", EVENTS)
def test_under_a_star_agent_and_host_filters_match_everywhere(event: str) -> None:
    fields = {"tool": "Bash"} if event in ABOUT_TOOLS else {}
    step = EVENTS[event].step(agent=Agent("1", "coder"), host="codex", **fields)
    assert runs(step, on="*", agent="coder", host="codex")


def test_different_filters_do_not_get_in_each_others_way() -> None:
    hooks, ran = Hooks(), []
    filters: dict[str, dict[str, Any]] = {
        "exact": {"tool": "Bash"},
        "glob": {"tool": "R*"},
        "kind": {"kind": "read"},
        "safety": {"safety": "mutating"},
        "host": {"host": "codex"},
        "agent": {"agent": "coder"},
        "all": {},
    }
    for name, options in filters.items():
        hooks.add(lambda step, name=name: ran.append(name), on="before_tool", name=name, **options)

    def seen(step: Step) -> list[str]:
        ran.clear()
        hooks.dispatch_sync(step)
        return list(ran)

    coder = Agent("1", "coder")
    for _ in range(2):  # the second time from the cache
        assert seen(BASH) == ["exact", "safety", "all"]
        assert seen(READ) == ["glob", "kind", "all"]
        assert seen(BeforeTool(tool="Bash", host="codex")) == ["exact", "safety", "host", "all"]
        assert seen(BeforeTool(tool="Read", agent=coder)) == ["glob", "kind", "agent", "all"]
        assert seen(BeforeTool(tool="x", agent=coder, host="codex")) == ["safety", "host", "agent", "all"]


def test_more_tools_than_the_cache_holds_are_still_matched() -> None:
    hooks, ran = Hooks(), []
    hooks.add(lambda step: ran.append(step.tool), on="before_tool", tool="t*9", name="nines")
    for at in range(5000):
        hooks.dispatch_sync(BeforeTool(tool=f"t{at}", kind="unknown", safety="mutating"))
    assert ran == [f"t{at}" for at in range(5000) if at % 10 == 9]


@pytest.mark.parametrize("step", [ToolRequested(tool="Bash"), BeforePermission(tool="Bash")])
def test_a_hook_for_one_event_does_not_run_at_another(step: Step) -> None:
    assert not runs(step, on="before_tool", tool="Bash")


@pytest.mark.parametrize("step", [TurnEnd(), Notification(message="x")])
def test_a_hook_without_filters_matches_every_step_of_its_event(step: Step) -> None:
    assert runs(step)


@pytest.mark.parametrize("step", [None, 5, "before_tool", {"event": "before_tool"}, BeforeTool, object()])
def test_what_is_not_a_step_cannot_be_dispatched(step: Any) -> None:
    with pytest.raises(TypeError, match="step"):
        Hooks().dispatch_sync(step)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"enforce": "no"}, "enforce must be True or False"),
        ({"detached": "no", "phase": "observe"}, "detached must be True or False"),
        ({"blocking": 1}, "blocking must be True or False"),
        ({"quarantine": (True, 30)}, "quarantine must be"),
    ],
    ids=["enforce", "detached", "blocking", "quarantine"],
)
def test_a_switch_is_true_or_false(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RegistrationError, match=message):
        Hooks().add(lambda step: None, on="before_tool", **options)


def test_an_event_that_is_no_text_is_unknown() -> None:
    with pytest.raises(UnknownName, match="unknown event 5"):
        Hooks().add(lambda step: None, on=5)  # type: ignore[call-overload]


def test_a_class_in_place_of_an_object_is_refused() -> None:
    class Policy:
        def before_tool(self, step: BeforeTool) -> None: ...

    with pytest.raises(RegistrationError, match=r"hooks\.add\(Policy\(\)\)"):
        Hooks().add(Policy)


def test_an_observer_may_make_its_decision_optional() -> None:
    hooks, seen = Hooks(), []
    hooks.add(lambda step, decision=None: seen.append(decision), on="before_tool", phase="observe", name="watch")
    decision = hooks.dispatch_sync(BeforeTool(tool="bash"))
    assert seen == [decision]


# --- subscriptions ------------------------------------------------------------------------------


def test_no_step_is_subscribed_to_without_hooks() -> None:
    assert Hooks().subscribed_steps == frozenset()


def test_steps_are_subscribed_to_as_long_as_a_hook_is_there() -> None:
    hooks = Hooks()
    hooks.add(nothing, on=["before_tool", "turn_end"])
    assert hooks.subscribed_steps == {BeforeTool, TurnEnd}
    hooks.unregister("nothing")
    assert hooks.subscribed_steps == frozenset()


def test_tools_of_one_s_own_add_no_subscription() -> None:
    hooks = Hooks()
    hooks.tools.add("deploy", "shell")
    assert hooks.subscribed_steps == frozenset()


def test_every_step_is_subscribed_to_where_decisions_are_recorded() -> None:
    assert Hooks(journal=lambda decision: None).subscribed_steps == {event.step for event in EVENTS.values()}


# --- defaults of Hooks, and options of an object ------------------------------------------------


async def later(step: Any) -> None: ...


async def later_method(self: Any, step: Any) -> None: ...


def test_hooks_have_defaults_for_the_hooks_that_set_nothing() -> None:
    hooks = Hooks(timeout=30, on_failure="open", priority=100)
    plain = hooks.add(later, on="before_tool", name="plain")
    own = hooks.add(later, on="before_tool", name="own", timeout=1, on_failure="abort", priority=7)
    assert (plain.timeout, plain.on_failure, plain.priority) == (30, "open", 100)
    assert (own.timeout, own.on_failure, own.priority) == (1, "abort", 7)


def test_defaults_hold_for_decorated_functions_and_objects() -> None:
    hooks = Hooks(timeout=None, on_failure="abort", priority=3)
    hooks.on.before_tool(later)
    hooks.on("turn_end", "error", name="both")(later)
    hooks.add(type("Guard", (), {"before_tool": later_method})())
    assert {(hook.timeout, hook.on_failure, hook.priority) for hook in hooks} == {(None, "abort", 3)}


def test_an_observer_takes_the_defaults_but_no_failure_policy() -> None:
    hooks = Hooks(timeout=30, on_failure="abort", priority=100)
    observer = hooks.add(later, on="before_tool", phase="observe")
    assert (observer.timeout, observer.priority) == (30, 100)
    with pytest.raises(RegistrationError, match="on_failure"):
        hooks.add(later, on="before_tool", phase="observe", name="other", on_failure="abort")


def test_a_default_time_out_leaves_a_sync_function_inline() -> None:
    hooks, ran_in = Hooks(timeout=30), []
    hooks.add(lambda step: ran_in.append(threading.get_ident()), on="before_tool", name="inline")
    hooks.dispatch_sync(BeforeTool(tool="bash"))
    assert ran_in == [threading.get_ident()]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"timeout": 0}, "timeout must be"),
        ({"timeout": "5"}, "timeout must be"),
        ({"on_failure": "opne"}, "did you mean 'open'"),
        ({"priority": 1.5}, "priority must be"),
    ],
)
def test_a_mistake_in_a_default_is_found_at_once(wrong: dict[str, Any], problem: str) -> None:
    with pytest.raises((RegistrationError, UnknownName), match=problem):
        Hooks(**wrong)


class Named:
    name = "guard"
    priority = 7
    timeout = None
    on_failure = "open"

    async def before_tool(self, step: Any) -> None: ...

    async def __call__(self, step: Any) -> None: ...


def test_an_object_s_attributes_are_options() -> None:
    hooks = Hooks(timeout=30, priority=100)
    (method,) = hooks.add(Named())
    called = hooks.add(Named(), on="before_tool")
    assert [hook.name for hook in (method, called)] == ["guard.before_tool", "guard"]
    for hook in (method, called):
        assert (hook.priority, hook.timeout, hook.on_failure) == (7, None, "open")


def test_an_object_s_property_is_an_option() -> None:
    class Computed(Named):
        priority = property(lambda self: 3 * 3)  # type: ignore[assignment]

    (hook,) = Hooks().add(Computed())
    assert hook.priority == 9


def test_a_wrong_option_of_an_object_is_an_error() -> None:
    with pytest.raises(RegistrationError, match="priority must be a whole number"):
        Hooks().add(type("Odd", (Named,), {"priority": "high"})())


@pytest.mark.parametrize("name", ["", 5])
@pytest.mark.parametrize("on", [None, "before_tool"])
def test_a_name_of_an_object_that_is_none_is_an_error(name: Any, on: str | None) -> None:
    with pytest.raises(RegistrationError, match="must be a non-empty string"):
        Hooks().add(type("Odd", (Named,), {"name": name})(), on=on)  # type: ignore[call-overload]


def test_a_mock_has_no_options() -> None:
    from unittest.mock import AsyncMock

    hook = Hooks().add(AsyncMock(), on="before_tool")
    assert (hook.name, hook.priority, hook.timeout) == ("AsyncMock", 50, 5)


# --- what other hook systems call the events ----------------------------------------------------

OTHERS = {
    "session_start": "after_session_enter SessionStart onSessionStart",
    "session_end": "SessionEnd onSessionEnd",
    "before_request": "BeforeRequest",
    "after_request": "AfterRequest",
    "before_input": "before_ingest beforeInbound Inbound",
    "after_input": "after_ingest",
    "turn_start": "after_turn_enter",
    "before_prompt": "BeforePromptBuild",
    "before_compact": "PreCompact on_pre_compact",
    "after_compact": "PostCompact",
    "before_model": "BeforeInference before_generate",
    "after_model": "AfterInference after_generate",
    "tool_requested": "ToolCallRequested",
    "before_tool": "BeforeToolExecution PreToolUse BeforeToolCall before_tool_apply beforeToolCall ToolCall",
    "before_permission": "BEFORE_PERMISSION",
    "after_permission": "AfterPermission",
    "after_tool": "AfterToolExecution ToolCallAborted PostToolUse PostToolUseFailure AfterToolCall after_tool_apply",
    "after_tool_batch": "afterToolBatch",
    "before_turn_end": "BeforeTurnEnd",
    "before_response": "transformResponse ResponseTransform",
    "before_output": "beforeOutbound Outbound",
    "turn_end": "AgentLoopEnd",
    "subagent_start": "SubagentStart",
    "subagent_stop": "SubagentStop on_subagent_stop",
    "notification": "Notification",
    "error": "Error",
}
NAMES = [(name, event) for event, names in OTHERS.items() for name in names.split()]


def test_every_event_has_a_row() -> None:
    assert list(OTHERS) == list(EVENTS)


@pytest.mark.parametrize(("name", "event"), NAMES)
def test_another_system_s_name_suggests_ours_in_any_casing(name: str, event: str) -> None:
    snake = re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
    for spelling in {name, snake, snake.upper(), snake.replace("_", "-"), snake.replace("_", "")} - EVENTS.keys():
        with pytest.raises(UnknownName, match=f"did you mean '{event}'"):
            Hooks().add(later, on=spelling)
        with pytest.raises(AttributeError, match=f"did you mean '{event}'"):
            getattr(Hooks().on, spelling)


@pytest.mark.parametrize(
    ("misspelt", "event"),
    [
        ("beforeInboud", "before_input"), ("BeforeInferrence", "before_model"), ("before_generation", "before_model"),
        ("after_session_entered", "session_start"), ("PostToolUsed", "after_tool"), ("pre_tol_use", "before_tool"),
        ("ToolCallAbort", "after_tool"), ("AGENT_LOOP_ENDED", "turn_end"), ("onSessonStart", "session_start"),
    ],
)  # fmt: skip
def test_a_misspelt_name_of_another_system_suggests_ours(misspelt: str, event: str) -> None:
    hooks = Hooks()
    for register in (
        lambda: hooks.add(later, on=misspelt),
        lambda: getattr(hooks.on, misspelt),
        lambda: hooks.has_hooks(misspelt),
    ):
        with pytest.raises(UnknownName, match=f"{misspelt}.*did you mean '{event}'"):
            register()


def test_a_misspelt_method_that_another_system_would_call_suggests_ours() -> None:
    with pytest.raises(UnknownName, match=r"before_generat'.*did you mean 'before_model'"):
        Hooks().add(type("Guard", (), {"before_generat": lambda self, step: None})())


@pytest.mark.parametrize("method", ["PreToolUse", "before_generate", "agent_loop_end"])
def test_a_method_that_another_system_would_call_is_an_error(method: str) -> None:
    with pytest.raises(UnknownName, match="did you mean"):
        Hooks().add(type("Guard", (), {method: lambda self, step: None, "error": lambda self, step: None})())
