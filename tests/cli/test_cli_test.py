"""`fairlead test`: a step goes through the hooks, and the whole story is told."""

from __future__ import annotations

import io
import json
import os
import re
import sys

import pytest

from fairlead.cli.test import SAMPLES
from fairlead.lifecycle import EVENTS
from fairlead.testing import step
from fairlead.wire.steps import encode_step

NO_FORCE_PUSH = """
[[hook]]
name = "no-force-push"
on = "before_tool"
match = { kind = "shell" }
phase = "gate"
rule = 'target.command.matches("push .*--force")'
deny = "Force-push is off here."
"""


def says(verdict: dict[str, object], on: str = "before_tool", name: str = "judge", *lines: str) -> str:
    """A hook that says this, whatever the step."""
    line = json.dumps(f"echo '{json.dumps(verdict)}'")
    return "\n".join([f'[[hook]]\nname = "{name}"\non = "{on}"\nshell = {line}', *lines, ""])


# --- how it ends -----------------------------------------------------------------------------------


def test_a_step_that_nothing_stands_in_the_way_of_ends_with_0(machine, run):
    machine.user(NO_FORCE_PUSH)
    assert run("test", "before_tool").code == 0


def test_without_any_hook_a_step_proceeds(run):
    ended = run("test", "before_input")
    assert (ended.code, "no hook applies" in ended.out) == (0, True)


@pytest.mark.parametrize(
    ("event", "control", "code"),
    [
        ("before_tool", "proceed", 0),
        ("before_tool", "allow", 0),
        ("before_tool", "skip_rest", 0),
        ("before_tool", "deny", 2),
        ("before_tool", "ask", 2),
        ("before_tool", "stop", 2),
        ("before_tool", "abort", 2),
        ("before_compact", "skip", 2),
        ("before_turn_end", "extend", 2),
        ("after_tool", "retry", 2),
    ],
)
def test_the_exit_code_is_0_for_proceed_and_2_for_what_stands_in_the_way(machine, run, event, control, code):
    machine.user(says({"control": control}, event))
    assert run("test", event).code == code


def test_a_question_to_a_human_is_the_decision(machine, run):
    machine.user(says({"control": "ask", "reason": "Sure?"}))
    out = run("test", "before_tool").out
    assert "ask: Sure?" in out
    assert "\nask by judge (approval): Sure?" in out


def test_a_hook_that_breaks_refuses_and_says_that_it_broke(machine, run):
    machine.user('[[hook]]\nname = "judge"\non = "before_tool"\nshell = "echo oops >&2; exit 7"\n')
    ended = run("test", "before_tool")
    assert ended.code == 2
    assert "deny by judge (failure)" in ended.out
    assert "exit=7" in ended.out
    assert "stderr=oops" in ended.out


def test_a_hook_that_breaks_open_lets_the_step_pass(machine, run):
    machine.user('[[hook]]\nname = "judge"\non = "before_tool"\nshell = "exit 7"\non_failure = "open"\n')
    ended = run("test", "before_tool")
    assert (ended.code, "warning      hook 'judge' failed" in ended.out) == (0, True)


def test_a_monitored_hook_denies_nothing(machine, run):
    machine.user(says({"control": "deny", "reason": "no"}, "before_tool", "judge", "enforce = false"))
    ended = run("test", "before_tool")
    assert (ended.code, "would deny: no" in ended.out) == (0, True)


# --- which step --------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_alone_is_an_ordinary_step_of_it(run, event):
    ended = run("test", event, "--json")
    assert (ended.code, ended.json["step"]["event"]) == (0, event)


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_a_step_with_a_name(run, sample):
    event, fields = SAMPLES[sample]
    step = run("test", sample, "--json").json["step"]
    assert step["event"] == event
    assert step.items() >= fields.items()


def test_a_field_is_set_by_its_name(machine, run):
    machine.user(NO_FORCE_PUSH)
    words = ("--set", "tool=bash", "--set", 'args.command=git push --force "origin"')
    ended = run("test", "before_tool", *words, "--json")
    assert ended.code == 2
    assert ended.json["step"]["args"] == {"command": 'git push --force "origin"'}


def test_setting_a_tool_leaves_no_arguments_of_another(run):
    assert run("test", "before_tool", "--set", "tool=deploy", "--json").json["step"]["args"] == {}


def test_setting_an_argument_of_a_sample_keeps_the_others(run):
    step = run("test", "write-file", "--set", "args.content=x", "--json").json["step"]
    assert step["args"] == {"file_path": "src/app.py", "content": "x"}


@pytest.mark.parametrize(
    ("given", "args"),
    [
        ("args.n:=5", {"n": 5}),
        ("args.n=5", {"n": "5"}),
        ("args.n:=null", {"n": None}),
        ('args.n:={"a": [1.5, true]}', {"n": {"a": [1.5, True]}}),
        ("args.a.b=x", {"a": {"b": "x"}}),
        ('args:={"all": "of them"}', {"all": "of them"}),
        ("args.text=a=b:=c", {"text": "a=b:=c"}),
        ("args.text=", {"text": ""}),
    ],
)
def test_text_and_json_are_told_apart(run, given, args):
    assert run("test", "before_tool", "--set", "tool=x", "--set", given, "--json").json["step"]["args"] == args


@pytest.mark.parametrize(
    ("event", "given", "field", "value"),
    [
        ("before_tool", "sequence=7", "sequence", 7),
        ("after_tool", "duration=1.5", "duration", 1.5),
        ("after_tool", "executed=false", "executed", False),
        ("after_permission", "granted=false", "granted", False),
        ("session_start", "source=resume", "source", "resume"),
        ("before_input", "input=42", "input", "42"),
    ],
)
def test_text_is_read_as_what_the_field_holds(run, event, given, field, value):
    assert run("test", event, "--set", given, "--json").json["step"][field] == value


def test_a_field_of_the_header_can_be_set(run):
    assert run("test", "turn_start", "--set", "user_id=ann", "--json").json["step"]["user_id"] == "ann"


def test_a_step_comes_from_the_current_folder(machine, run):
    assert run("test", "before_tool", "--json").json["step"]["cwd"] == str(machine.project)


def test_the_step_is_of_the_folder_that_is_named(machine, run, tmp_path, monkeypatch):
    """As in production: an agent whose hooks these are works there."""
    there = f"cwd == '{machine.project}'"
    machine.user(f'[[hook]]\nname = "there"\non = "before_tool"\nrule = "{there}"\ndeny = "no"\n')
    monkeypatch.chdir(tmp_path)
    for folder in (str(machine.project), os.path.relpath(machine.project)):
        ended = run("test", "before_tool", "-C", folder, "--json")
        assert (ended.code, ended.json["step"]["cwd"]) == (2, str(machine.project))
    assert run("test", "before_tool", "-C", folder, "--set", "cwd=/elsewhere").code == 0


def test_a_step_is_read_from_a_file(machine, run):
    machine.user(NO_FORCE_PUSH)
    envelope = encode_step(step("before_tool", tool="bash", args={"command": "git push --force"}))
    machine.file("step.json", envelope)
    ended = run("test", "--step", "step.json", "--json")
    assert (ended.code, ended.json["step"]) == (2, json.loads(envelope))


def test_a_step_is_read_from_stdin(machine, run, monkeypatch):
    envelope = encode_step(step("before_input", input="hello"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(envelope)))
    assert run("test", "--step", "-", "--json").json["step"] == json.loads(envelope)


def test_a_step_that_was_shown_can_be_tried_again(machine, run):
    machine.user(NO_FORCE_PUSH)
    first = run("test", "force-push", "--json").json
    machine.file("step.json", json.dumps(first["step"]))
    again = run("test", "--step", "step.json", "--json").json
    assert (again["step"], again["decision"]) == (first["step"], first["decision"])


# --- what is shown ----------------------------------------------------------------------------------


def test_it_shows_what_matched_and_what_each_said_and_how_long_it_took(machine, run):
    machine.user(
        NO_FORCE_PUSH,
        says({"warnings": ["careful"]}, name="warner"),
        '[[hook]]\nname = "quiet"\non = "before_tool"\nshell = "true"\n',
        '[[hook]]\nname = "elsewhere"\non = "before_tool"\nmatch = { tool = "other" }\nrule = "true"\ndeny = "x"\n',
    )
    out = run("test", "force-push").out
    for ran in (
        r"warner \(transform\) +in \d+\.\d\d\d ms: warn: careful",
        r"quiet \(transform\) +in \d+\.\d\d\d ms: no opinion",
        r"no-force-push \(gate\) +in \d+\.\d\d\d ms: deny: Force-push is off here.",
    ):
        assert re.search(rf"^  ran          {ran}", out, re.MULTILINE), out
    assert "elsewhere" not in out
    assert out.endswith("\ndeny by no-force-push: Force-push is off here.\n")


def test_it_shows_the_step(run):
    out = run("test", "before_tool", "--set", "tool=bash", "--set", "args.command=ls").out
    assert out.startswith('before_tool tool=bash args={"command":"ls"} kind=shell')


def test_it_shows_what_changed(machine, run):
    machine.user(says({"args": {"command": "ls -l", "cwd": "/tmp"}}))
    out = run("test", "before_tool", "--set", "tool=bash", "--set", "args.command=ls", "--set", "args.old=1").out
    for line in ("- args.command: ls", "+ args.command: ls -l", "+ args.cwd: /tmp", "- args.old: 1"):
        assert f"  {line}\n" in out


def test_it_shows_context_and_warnings(machine, run):
    machine.user(says({"additional_context": ["You are on main."], "warnings": ["careful"]}))
    out = run("test", "before_tool").out
    assert "  context      'You are on main.' (from judge)\n" in out
    assert "  warning      careful\n" in out


def test_json_tells_the_same_story(machine, run):
    machine.user(says({"args": {"command": "ls"}, "additional_context": ["why"]}), NO_FORCE_PUSH)
    told = run("test", "before_tool", "--set", "tool=bash", "--set", "args.command=git push --force", "--json").json
    assert [(hook["hook"], hook["phase"], hook["outcome"]) for hook in told["hooks"]] == [
        ("judge", "transform", "verdict"),
        ("fairlead.guard", "gate", "none"),
        ("no-force-push", "gate", "none"),
    ]
    assert all(hook["duration"] > 0 for hook in told["hooks"])
    assert told["changed"] == {"args.command": {"from": "git push --force", "to": "ls"}}
    assert (told["decision"]["control"], told["decision"]["context"]) == ("proceed", ["why"])


def test_json_says_who_decided_and_why(machine, run):
    machine.user(NO_FORCE_PUSH)
    decision = run("test", "force-push", "--json").json["decision"]
    assert (decision["control"], decision["hook"], decision["cause"], decision["reason"]) == (
        "deny", "no-force-push", "policy", "Force-push is off here.",
    )  # fmt: skip


def test_text_in_any_language_is_shown_as_it_is(machine, run):
    machine.user(says({"control": "deny", "reason": "ここでは禁止 défense ✋"}))
    out = run("test", "before_tool", "--set", "tool=bash", "--set", "args.command=echo ünïcödé").out
    assert "ここでは禁止 défense ✋" in out
    assert "echo ünïcödé" in out


def test_long_values_are_cut(machine, run):
    machine.user(says({"control": "deny", "reason": "n" * 3000}))
    out = run("test", "before_tool", "--set", "tool=bash", "--set", f"args.command={'x' * 100_000}").out
    assert "xxx..." in out
    assert len(out) < 5000


def test_json_has_long_values_in_full(run):
    told = run("test", "before_tool", "--set", "tool=bash", "--set", f"args.command={'x' * 100_000}", "--json").json
    assert told["step"]["args"]["command"] == "x" * 100_000


# --- what cannot be run ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("before_tol",), "did you mean 'before_tool'?"),
        (("force-psuh",), "did you mean 'force-push'?"),
        ((), "which step?"),
        (("before_tool", "--set", "args.command"), "--set takes FIELD=TEXT"),
        (("before_tool", "--set", "=x"), "--set takes FIELD=TEXT"),
        (("before_tool", "--set", ":=1"), "--set takes FIELD=TEXT"),
        (("before_tool", "--set", "toool=x"), "did you mean 'tool'?"),
        (("before_input", "--set", "tool=x"), "unknown field 'tool' of before_input"),
        (("before_tool", "--set", "args:={"), "--set args:={"),
        (("before_tool", "--set", "args=x"), "--set args=x"),
        (("before_tool", "--set", "tool:=5"), "Expected `str`"),
        (("before_tool", "--set", "sequence=abc"), "--set sequence=abc"),
        (("before_tool", "--set", "kind=shel"), "--set kind=shel"),
        (("before_tool", "--set", "args.a=x", "--set", "args.a.b=y"), "a has no parts"),
        (("--step", "nowhere.json"), "nowhere.json cannot be read: No such file or directory"),
        (("--step", "."), ". cannot be read: Is a directory"),
        (("before_tool", "--step", "step.json"), "leave out the event and --set"),
        (("--step", "step.json", "--set", "tool=x"), "leave out the event and --set"),
    ],
)
def test_a_step_that_cannot_be_made_ends_with_1(run, words, message):
    ended = run("test", *words)
    assert (ended.code, ended.out) == (1, "")
    assert message in ended.err


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\xff", b"null", b"[]", b"{", b"{}", b'{"event": "before_tool"}', b'{"event": "nope"}',
        b'{"event": 5}', b'{"event": ["before_tool"]}', b'{"event": "before_tool", "tool": 5}',
        b'{"event": "before_tool", "tool": "x", "nope": 1}', b'{"event": "before_tool", "tool": "x", "args": 5}',
        b'{"event": "before_tool", "tool": "x", "agent": 5}', b'{"event": "before_tool", "tool": "x", "kind": "x"}',
        b'{"event": "before_tool", "tool": "x", "fairlead": 99}', b"[" * 100_000,
    ],
)  # fmt: skip
def test_a_file_that_is_no_envelope_ends_with_1(machine, run, content):
    machine.file("step.json", content)
    ended = run("test", "--step", "step.json")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("fairlead: ")


def test_an_envelope_from_a_later_version_says_so(machine, run):
    machine.file("step.json", '{"fairlead": 99, "event": "turn_start"}')
    assert "update fairlead" in run("test", "--step", "step.json").err


def test_a_mistake_in_the_configuration_ends_with_1(machine, run):
    machine.user(NO_FORCE_PUSH, "matsch = 1")
    ended = run("test", "before_tool")
    assert (ended.code, ended.out) == (1, "")
    assert "did you mean 'match'?" in ended.err


def test_hooks_of_another_folder_can_be_tried(machine, run, trust, tmp_path, monkeypatch):
    machine.hooks(NO_FORCE_PUSH)
    trust()
    monkeypatch.chdir(tmp_path)
    assert run("test", "force-push").code == 0
    assert run("test", "force-push", "-C", "project").code == 2


# --- in CI ----------------------------------------------------------------------------------------

NO_FORCE = """[[hook]]
name = "no-force"
on = "before_tool"
match = { kind = "shell" }
rule = 'target.command.contains("--force")'
deny = "no"
"""


def test_in_ci_a_step_is_judged_by_the_rules_of_a_file_that_is_not_trusted(machine, run):
    machine.hooks(NO_FORCE)
    assert run("test", "force-push").code == 1
    ended = run("test", "--ci", "force-push")
    assert (ended.code, "deny by no-force" in ended.out, "NOT TRUSTED" in ended.out) == (2, True, False)
    assert run("test", "--ci", "fetch").code == 0


def test_in_ci_no_code_of_a_project_is_run(machine, run):
    machine.hooks(NO_FORCE, '[[hook]]\nname = "runs"\non = "before_tool"\nshell = "touch ran"\n')
    ended = run("test", "--ci", "force-push")
    assert (ended.code, "these hooks run more: runs" in ended.err) == (1, True)
    assert run("test", "--ci", "done").code == 0, "at another event nothing of it would run"
    assert not (machine.project / "ran").exists()


def test_what_a_human_would_be_asked_stays_a_question(machine, run):
    machine.user('[[hook]]\nname = "asks"\non = "before_tool"\nrule = "true"\nask = "Really?"\n')
    ended = run("test", "force-push")
    assert (ended.code, "ask by asks (approval): Really?" in ended.out) == (2, True), ended.out
    assert "approver=" not in ended.out


# --- how a hook failed ----------------------------------------------------------------------------

RAISES = """
def judge(step):
    raise RuntimeError("boom")
"""


@pytest.fixture
def raising(machine, trust):
    machine.file("check.py", RAISES)
    machine.hooks('[[hook]]\nname = "mine"\non = "before_tool"\npython = "check.py:judge"\n')
    trust("--unpinned")


def test_it_shows_where_a_python_hook_raised(raising, run):
    ended = run("test", "before_tool")
    assert ended.code == 2
    for part in ("traceback    of mine", ", in judge", 'raise RuntimeError("boom")', "    RuntimeError: boom"):
        assert part in ended.out, ended.out


def test_a_failure_is_said_once(raising, run):
    *_, conclusion = run("test", "before_tool").out.splitlines()
    assert conclusion.startswith("deny by mine (failure): hook 'mine' failed at before_tool (error): ")
    assert conclusion.endswith(": RuntimeError: boom")
    assert (conclusion.count("failed"), conclusion.count("boom")) == (1, 1)
