"""What a record says of a decision beyond the decision: what a replay needs, and who, where and how exactly."""

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import math
import uuid
from collections import OrderedDict
from collections.abc import Callable
from enum import Enum, IntEnum
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import Approval, Hooks, Verdict, ask, change, deny
from fairlead.config.restricted import RestrictedHook
from fairlead.enforcement import EnforcementSetting, EnforcementSwitch, write_setting
from fairlead.frozen import thaw
from fairlead.hook import form_of
from fairlead.hosts.clis.mapping import host_tools, hosts
from fairlead.journal import Journal
from fairlead.journal.exactness import inexact
from fairlead.journal.policy import policy_of, version_of
from fairlead.journal.reading import Filter, Reader
from fairlead.lifecycle import AfterTool, BeforeRequest, BeforeTool
from fairlead.runners.rule import Rule
from fairlead.tools import Tools
from fairlead.wire.decisions import decode_decision


@pytest.fixture
def last(path: Path) -> Callable[[], Any]:
    """The newest record."""

    def last() -> Any:
        with Reader(path) as reader:
            return list(reader.records())[-1]

    return last


# --- around a decision ------------------------------------------------------------------------------


def test_a_record_says_who_and_where(journal: Journal, keep: Any, last: Any) -> None:
    import os
    import pwd
    import socket

    keep(journal, 1)
    body = last().body
    assert (body["user"], body["machine"]) == (pwd.getpwuid(os.geteuid()).pw_name, socket.gethostname())


def test_records_are_found_by_user(journal: Journal, keep: Any, path: Path) -> None:
    keep(journal, 1, user_id="ann")
    keep(journal, 2, user_id="bob")
    with Reader(path) as reader:
        assert [record.body["step"]["call_id"] for record in reader.records(Filter(user="ann"))] == ["1"]


def test_a_record_says_the_project_and_a_digest_of_the_variables(journal: Journal, step: Any, last: Any) -> None:
    found = []
    for variables in ({"TOKEN": "one"}, {"TOKEN": "two"}, {"TOKEN": "one"}):
        hooks = Hooks(journal=journal)
        hooks.root, hooks.variables = "/work/project", variables
        hooks.dispatch_sync(step(1))
        journal.flush()
        assert last().body["root"] == "/work/project"
        found.append(last().body["variables"])
    assert found[0] == found[2] != found[1]


def test_a_digest_of_variables_cannot_be_worked_out_without_the_key(tmp_path: Path, step: Any) -> None:
    found = set()
    for name in ("one", "two"):
        with Journal(tmp_path / f"{name}.db") as journal:
            hooks = Hooks(journal=journal)
            hooks.variables = {"PIN": "1234"}
            hooks.dispatch_sync(step(1))
        with Reader(tmp_path / f"{name}.db") as reader:
            found |= {record.body["variables"] for record in reader.records()}
    assert len(found) == 2


@pytest.mark.parametrize(("until", "said"), [(None, "monitor"), (4e9, "paused")])
def test_a_record_says_that_nothing_was_enforced(
    until: float | None, said: str, journal: Journal, step: Any, last: Any, tmp_path: Path
) -> None:
    write_setting(EnforcementSetting("monitor", until), tmp_path / "state")
    hooks = Hooks(journal=journal)
    hooks.switch = EnforcementSwitch(tmp_path / "state")
    hooks.dispatch_sync(step(1))
    journal.flush()
    assert last().body["enforcement"] == said


def test_a_record_of_hooks_that_are_only_watched_says_so(journal: Journal, step: Any, last: Any) -> None:
    Hooks(journal=journal, enforce=False).dispatch_sync(step(1))
    journal.flush()
    assert last().body["enforcement"] == "monitor"


def test_a_record_of_what_is_enforced_says_nothing_of_it(journal: Journal, keep: Any, last: Any) -> None:
    keep(journal, 1)
    assert "enforcement" not in last().body


def test_a_subagent_s_record_names_its_parent_s_session(journal: Journal, last: Any) -> None:
    session = Hooks(journal=journal).session("parent")
    child = session.subagent("helper")
    child.dispatch_sync(child.step(BeforeTool, tool="bash", args={}))
    journal.flush()
    assert last().body["parent"] == "parent"


def test_a_record_says_what_the_host_could_do(journal: Journal, last: Any) -> None:
    session = Hooks(journal=journal).session("s", capabilities={"before_tool": ("deny", "args")}, lenient=True)
    session.dispatch_sync(session.step(BeforeTool, tool="bash", args={}))
    journal.flush()
    assert (last().body["can"], last().body["lenient"]) == (["args", "deny"], True)


def test_a_record_says_when_the_decision_began(journal: Journal, step: Any, last: Any) -> None:
    import time

    hooks = Hooks(journal=journal)
    hooks.add(lambda step: time.sleep(0.02), on="before_tool", name="slow")
    before = time.time()
    hooks.dispatch_sync(step(1))
    journal.flush()
    assert before - 0.005 <= last().began <= last().at - 0.02


async def test_a_detached_run_leaves_a_note_of_its_end(journal: Journal, step: Any, notes: Any) -> None:
    async with Hooks(journal=journal) as hooks:
        done = asyncio.Event()

        async def fine(step: Any) -> None:
            done.set()

        async def broken(step: Any) -> None:
            raise RuntimeError("it broke")

        hooks.add(fine, on="before_tool", phase="observe", detached=True, name="fine")
        hooks.add(broken, on="before_tool", phase="observe", detached=True, name="broken")
        await hooks.dispatch(step(1, session_id="s", sequence=7))
        await done.wait()
    journal.flush()
    told = {note["hook"]: note for note in notes()}
    assert (told["fine"]["note"], told["fine"]["outcome"]) == ("detached", "none")
    assert (told["fine"]["session"], told["fine"]["sequence"], told["fine"]["event"]) == ("s", 7, "before_tool")
    assert (told["broken"]["outcome"], told["broken"]["error"]) == ("error", "RuntimeError: it broke")


# --- exactness ----------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


class Word(str):
    __slots__ = ()


class Whole(int):
    pass


class Odd:
    pass


def kinds(value: Any) -> Any:
    """A value with the types of all that is in it, since 1 equals True, 1.0 and many more."""
    if type(value) is dict:
        return [(kinds(key), kinds(item)) for key, item in value.items()]
    return (type(value), [kinds(item) for item in value] if type(value) is list else repr(value))


LOSSY: dict[str, Any] = {
    "NaN": math.nan, "infinity": math.inf, "bytes": b"x", "a tuple": (1, 2), "a set": {1}, "a date": dt.date.min,
    "a decimal": decimal.Decimal("1.0"), "a uuid": uuid.UUID(int=1), "an enum": Colour.RED, "an object": Odd(),
    "a path": PurePosixPath("x"), "half a character": "a\ud800b", "a key that is a number": {1: "x"},
    "a key that is a fraction": {1.5: 1},
    "deep": {"a": [{"b": b"x"}]},
}  # fmt: skip


@pytest.mark.parametrize("value", LOSSY.values(), ids=LOSSY.keys())
def test_a_record_says_where_it_is_not_exact(value: Any, journal: Journal, step: Any, last: Any) -> None:
    Hooks(journal=journal).dispatch_sync(step(1, args={"command": "ls", "odd": value}))
    journal.flush()
    assert [place.startswith("step.args.odd") for place, _ in last().body["lossy"]] == [True]


def test_a_state_that_is_not_exact_is_named(journal: Journal, last: Any) -> None:
    Hooks(journal=journal).dispatch_sync(BeforeRequest(state={"when": dt.date.min}))
    journal.flush()
    assert last().body["lossy"] == [["step.state.when", "date"]]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5) | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
odd_values = st.sampled_from([
    b"x", (1,), frozenset({1}), math.nan, Odd(), "\udfff", PurePosixPath("y"), math.inf, Word("w"), Whole(3),
    Number.ONE, Colour.RED, dt.date.min, decimal.Decimal("1.5"), uuid.UUID(int=1), OrderedDict(a=1), -0.0, 2**70, 1e300,
])  # fmt: skip
keys = st.text(max_size=3) | st.sampled_from([
    1.5, -0.0, math.nan, math.inf, 1, True, None, 2**70, "\ud800", Word("w"), Number.ONE, Colour.RED, dt.date.min,
    uuid.UUID(int=1), decimal.Decimal("1.5"), "$text", "$plain", "",
])  # fmt: skip
values = st.recursive(
    json_values | odd_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=100, derandomize=True, database=None)
@given(value=values | st.dictionaries(keys, st.integers(), max_size=2))
def test_what_is_not_read_back_as_it_was_is_named_and_nothing_else(tmp_path_factory: Any, value: Any) -> None:
    path = tmp_path_factory.mktemp("exact") / "journal.db"
    step = BeforeTool(tool="anything", args={"value": value})
    with Journal(path) as journal:
        Hooks(journal=journal).dispatch_sync(step)
    with Reader(path) as reader:
        (record,) = reader.records()
    if "redacted" not in record.body and "unwritable" not in record.body:
        same = kinds(thaw(decode_decision(record.body).step.args)) == kinds(thaw(step.args))
        assert same is not bool(record.body.get("lossy")), record.body


@pytest.mark.parametrize("value", [None, 1, True, "text", [], {}, {"a": [1, None, "x", 1.5]}])
def test_what_json_holds_is_exact(value: Any) -> None:
    assert inexact(value, "here") == []


def test_a_record_names_only_so_many_places() -> None:
    assert len(inexact([b"x"] * 10_000, "here")) == 100


# --- the policy -----------------------------------------------------------------------------------------


def one_of(fn: Any, **options: Any) -> Any:
    hooks = Hooks()
    hooks.add(fn, on="before_tool", name="hook", **options)
    return next(iter(hooks))


def refusing(word: Any) -> Callable[[Any], Verdict | None]:
    def hook(step: Any) -> Verdict | None:
        return deny("no") if word in step.args.values() else None

    return hook


class Refuser:
    def __init__(self, word: str) -> None:
        self.word = word

    def before_tool(self, step: Any) -> Verdict | None:
        return deny("no") if self.word in step.args.values() else None

    __call__ = before_tool


def with_global(word: str) -> Any:
    names: dict[str, Any] = {"WORD": word, "deny": deny}
    exec("def helper(step):\n    return WORD in step.args\ndef hook(step):\n    return helper(step)", names)
    return names["hook"]


SURROUNDINGS: dict[str, Callable[[str], Any]] = {
    "a closure": refusing,
    "a closure in a closure": lambda word: refusing((word,)),
    "a global of a function that is called": with_global,
    "an object's method": lambda word: Refuser(word).before_tool,
    "an object that is called": Refuser,
}


@pytest.mark.parametrize("make", SURROUNDINGS.values(), ids=SURROUNDINGS.keys())
def test_hooks_over_different_words_have_different_versions(make: Callable[[str], Any]) -> None:
    first, again, other = (version_of(one_of(make(word))) for word in ("rm", "rm", "mv"))
    assert first == again != other


def test_functions_that_call_each_other_have_a_version() -> None:
    names: dict[str, Any] = {}
    exec("def one(step):\n    return two(step)\ndef two(step):\n    return one(step)", names)
    assert version_of(one_of(names["one"]))


def test_the_policy_says_the_form_of_each_hook(journal: Journal, step: Any, last: Any) -> None:
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: None, on="before_tool", name="function")
    hooks.add(Rule("tool == 'x'", on="before_tool", deny="no"), on="before_tool", name="rule")
    hooks.dispatch_sync(step(1))
    journal.flush()
    assert {hook["name"]: hook["form"] for hook in last().body["policy"]} == {"function": "python", "rule": "rule"}


def test_the_policy_has_the_tools_that_were_described(journal: Journal, step: Any, last: Any) -> None:
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: None, on="before_tool", name="function")
    without = policy_of(hooks.table)[0]
    hooks.tools.add("run_*", "shell", command="line", host="codex")
    project = Tools()
    project.add("deploy", "fetch")
    hooks.tools.configure(Tools(), project)
    hooks.dispatch_sync(step(1))
    journal.flush()
    policy = last().body["policy"]
    assert policy["tools"] == [
        {"tool": "run_*", "host": "codex", "kind": "shell", "safety": "mutating", "command": ["line"]}
    ]
    assert policy["unknown_tools"] == [{"tool": "deploy", "kind": "fetch", "safety": "network"}]
    assert [hook["name"] for hook in last().policy_hooks] == ["function"]
    assert last().policy not in (None, without.hex())


def test_the_policy_has_the_tables_of_the_clis(journal: Journal, step: Any, last: Any) -> None:
    hooks = Hooks(journal=journal)
    hooks.tools.extend(host_tools())
    hooks.dispatch_sync(step(1))
    journal.flush()
    known = {(tool["host"], tool["tool"]) for tool in last().body["policy"]["tools"]}
    described = host_tools().to_builtins()["tools"]
    assert known == {(tool["host"], tool["tool"]) for tool in described}
    assert {host.name for host in hosts() if host.tools} <= {host for host, _ in known}


def test_every_runner_has_a_form() -> None:
    from fairlead.runners.command import Command
    from fairlead.runners.http import Url
    from fairlead.runners.prompt import Prompt
    from fairlead.runners.worker import Worker

    assert [kind.form for kind in (Command, Worker, Url, Prompt, Rule)] == [
        "command",
        "worker",
        "url",
        "prompt",
        "rule",
    ]
    assert form_of(one_of(Command(["/bin/true"]))) == "command"


def test_a_hook_that_may_not_do_everything_has_the_form_of_what_it_runs() -> None:
    rule = Rule("tool == 'x'", on="before_tool", deny="no")
    assert form_of(one_of(RestrictedHook(rule, ("deny",)))) == "rule"
    assert form_of(one_of(RestrictedHook(lambda step: None, ("deny",)))) == "python"


# --- on the command line ----------------------------------------------------------------------------------


@pytest.fixture
def told(path: Path, open_journal: Any, step: Any) -> Path:
    """A deny with a reason, a rewrite, a watched deny and an approval, in a project."""

    async def approve(request: Any) -> Approval:
        return Approval("allow", "ann", "fine by me")

    journal = open_journal()
    hooks = Hooks(journal=journal, approver=approve)
    hooks.root = "/work/shop"
    says: dict[str, Verdict] = {
        "rm": deny("nothing is deleted\nhere"), "ls": change(args={"command": "ls -l"}), "mv": ask("may it?"),
    }  # fmt: skip
    hooks.add(lambda step: says.get(step.args["command"]), on="before_tool", name="judge")
    hooks.add(
        lambda step: deny("not that") if step.args["command"] == "cp" else None,
        on="before_tool", name="watcher", enforce=False,
    )  # fmt: skip
    for command in ("rm", "ls", "mv", "cp"):
        hooks.dispatch_sync(step(command, args={"command": command}))
    journal.close()
    return path


def test_the_log_shows_reasons_rewrites_and_projects(told: Path, cli: Any) -> None:
    denied, rewritten, asked, watched = cli("log", "--journal", told).lines
    assert "(by judge: nothing is deleted here)" in denied
    assert "bash ls  -> ls -l" in rewritten
    assert "(by judge (approval): " in asked
    assert "(watched: watcher would deny)" in watched
    assert all("in shop" in line for line in (denied, rewritten, asked, watched))


def test_the_log_shows_what_became_of_a_call_and_in_which_host(path: Path, open_journal: Any, cli: Any) -> None:
    with open_journal() as journal:
        hooks = Hooks(journal=journal)
        for outcome in ("ok", "denied", "error"):
            call = {"tool": "bash", "args": {"command": "git push --force"}, "host": "claude_code"}
            hooks.dispatch_sync(AfterTool(outcome=outcome, executed=outcome != "denied", **call))
    ran, denied, failed = cli("log", "--journal", path).lines
    assert [" proceed " in ran, " denied " in denied, " error " in failed] == [True] * 3
    assert not any(" proceed " in line for line in (denied, failed))
    assert all("claude_code" in line for line in (ran, denied, failed))
    assert len(cli("log", "--host", "claude", "--journal", path).lines) == 3, "as `install claude` names it"


def test_a_host_that_is_unknown_and_has_no_record_is_refused(told: Path, cli: Any) -> None:
    ended = cli("log", "--host", "clade", "--journal", told)
    assert (ended.code, "host 'clade'" in ended.err) == (1, True), ended
    assert cli("log", "--host", "codex", "--journal", told).code == 0, "it is known, and has done nothing"


def test_a_watched_deny_is_no_deny_anywhere(told: Path, cli: Any) -> None:
    assert len(cli("log", "--decision", "deny", "--journal", told).lines) == 1
    stats = cli("stats", "--json", "--journal", told).json
    counted = {hook["hook"]: (hook["denials"], hook["monitored"]) for hook in stats["hooks"]}
    assert counted == {"judge": (1, 0), "watcher": (0, 1)}
    assert stats["decisions"]["deny"] == 1
    assert "would stop" in cli("stats", "--journal", told).out


def test_the_log_says_what_was_decided_where_something_else_was_carried_out(
    open_journal: Any, path: Path, cli: Any
) -> None:
    journal = open_journal()
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: deny("too late"), on="before_tool", name="judge")
    session = hooks.session("s", capabilities={"before_tool": ()}, lenient=True)
    session.dispatch_sync(session.step(BeforeTool, tool="bash", args={}))
    journal.close()
    (line,) = cli("log", "--journal", path).lines
    assert "proceed" in line
    assert "(decided: deny)" in line
    assert "(in effect: proceed)" in cli("show", "1", "--journal", path).out
    assert [record["effective"] for record in cli("log", "--json", "--journal", path).json] == ["proceed"]


@pytest.mark.parametrize(("since", "lines"), [("today", 4), ("yesterday", 4), ("2h", 4), ("2100-01-01", 0)])
def test_since_takes_a_day_a_duration_or_a_date(since: str, lines: int, told: Path, cli: Any) -> None:
    assert len(cli("log", "--since", since, "--journal", told).lines) == lines


def test_several_journals_are_read_as_one(told: Path, tmp_path: Path, open_journal: Any, keep: Any, cli: Any) -> None:
    other = tmp_path / "other.db"
    journal = open_journal(other)
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: deny("no"), on="before_tool", name="judge")
    keep(journal, "elsewhere", hooks=hooks)
    journal.close()
    both = ("--journal", told, "--journal", other)
    found = cli("log", "--json", *both).json
    assert [record["at"] for record in found] == sorted(record["at"] for record in found)
    assert [record["journal"] for record in found] == [str(told)] * 4 + [str(other)]
    assert [record["step"]["call_id"] for record in cli("log", "-n", "1", "--json", *both).json] == ["elsewhere"]
    stats = cli("stats", "--json", *both).json
    assert stats["decisions"]["deny"] == 2
    assert {hook["hook"]: (hook["runs"], hook["denials"]) for hook in stats["hooks"]}["judge"] == (5, 2)
    assert cli("show", found[-1]["id"], *both).code == 0
    ended = cli("show", "1", *both)
    assert ended.code == 1
    assert "several journals have a record '1'" in ended.err
    assert len(cli("export", *both).lines) == 5


def test_show_tells_what_was_so_around_a_decision(told: Path, cli: Any) -> None:
    shown = cli("show", "1", "--journal", told).out
    assert "/work/shop" in shown
    assert "machine" in shown
