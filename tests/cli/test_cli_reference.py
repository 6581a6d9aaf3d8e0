"""What a person or a program can look up: help, events, schemas, completion. And what a wrong call says."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from jsonschema import Draft202012Validator

import fairlead
from fairlead.cli import make_parser
from fairlead.cli.test import SAMPLES
from fairlead.lifecycle import EVENTS

NAMES = [name for action in make_parser()._actions if isinstance(action.choices, dict) for name in action.choices]


# --- help ------------------------------------------------------------------------------------------


def test_help_lists_every_command(run):
    ended = run("--help")
    assert ended.code == 0
    assert set(NAMES) <= set(ended.out.split())


def test_there_are_these_commands():
    assert {"init", "check", "hooks", "events", "schema", "trust", "test", "completion"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_explains_itself(run, name):
    ended = run(name, "--help")
    usage, description, *_ = ended.out.split("\n\n")
    assert (ended.code, ended.err) == (0, "")
    assert usage.startswith(f"usage: fairlead {name} ")
    assert len(description.split()) > 4


def test_the_help_of_test_names_the_samples_and_the_exit_codes(run):
    out = " ".join(run("test", "--help").out.split())
    assert all(sample in out for sample in SAMPLES)
    assert "Ends with 0 if the step may proceed, with 2 for any other decision, with 1 if it could not be run" in out


def test_the_version(run):
    assert run("--version").out == f"fairlead {fairlead.__version__}\n"


def test_it_runs_as_a_process(spawn):
    assert spawn("--version").out == f"fairlead {fairlead.__version__}\n"


# --- wrong calls -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("nope",),
        ("--nope",),
        ("check", "--nope"),
        ("check", "more"),
        ("check", "-C"),
        ("test", "--set"),
        ("test", "before_tool", "after_tool"),
        ("schema", "--envelope", "--verdict"),
        ("completion",),
        ("completion", "nope"),
        ("trust", "--expect"),
    ],
)
def test_a_wrong_call_ends_with_1_and_shows_the_usage(run, words):
    ended = run(*words)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("usage: fairlead")


def test_no_command_at_all_shows_the_help(run):
    ended = run()
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == run("--help").out


def test_the_package_runs_as_a_program():
    said = subprocess.run([sys.executable, "-m", "fairlead", "--version"], capture_output=True, text=True)
    assert (said.returncode, said.stdout.split()[0], said.stderr) == (0, "fairlead", "")


def test_a_wrong_call_of_a_process_ends_with_1_too(spawn):
    ended = spawn("test", "--nope")
    assert (ended.code, "Traceback" in ended.err) == (1, False)


@pytest.mark.parametrize("command", ["test", "events", "schema"])
def test_an_unknown_event_comes_with_a_suggestion(run, command):
    ended = run(command, "before_tol")
    assert (ended.code, ended.out) == (1, "")
    assert "did you mean 'before_tool'?" in ended.err


# --- events ------------------------------------------------------------------------------------------


def test_events_lists_all_in_order(run):
    head, *rows = run("events").out.splitlines()
    assert head.split() == ["EVENT", "MAY", "CHANGE", "CONTROLS", "VETO"]
    assert [row.split()[0] for row in rows] == list(EVENTS)


def test_an_event_in_full(run):
    out = run("events", "before_tool").out
    assert out.startswith(f"before_tool: {EVENTS['before_tool'].step.__doc__}\n")
    lines = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.startswith("  ")}
    assert lines["changes"] == ["args", "result", "is_error"]
    assert lines["veto"] == ["deny"]
    assert {"deny", "ask", "allow"} <= set(lines["controls"])
    assert {"tool", "args", "kind", "target"} <= set(lines["fields"])


def test_events_as_data(run):
    every = run("events", "--json").json
    assert list(every) == list(EVENTS)
    assert run("events", "before_compact", "--json").json == every["before_compact"]
    assert every["before_compact"]["veto"] == "skip"


# --- schemas -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", ["envelope", "verdict"])
def test_every_schema_is_one(run, part):
    schemas = run("schema", f"--{part}").json
    assert list(schemas) == list(EVENTS)
    for schema in schemas.values():
        Draft202012Validator.check_schema(schema)


def test_all_schemas_together(run):
    schemas = run("schema").json
    assert {name: both.keys() for name, both in schemas.items()} == {name: {"envelope", "verdict"} for name in EVENTS}


def test_the_schema_of_a_verdict_takes_what_the_event_takes(run):
    verdicts = Draft202012Validator(run("schema", "before_tool", "--verdict").json)
    assert verdicts.is_valid({"control": "deny", "reason": "no"})
    assert verdicts.is_valid({"args": {"command": "ls"}})
    assert not verdicts.is_valid({"control": "extend"})
    assert not verdicts.is_valid({"contrl": "deny"})


def test_the_schema_of_an_envelope_takes_what_test_shows(run):
    for event, schema in run("schema", "--envelope").json.items():
        Draft202012Validator(schema).validate(run("test", event, "--json").json["step"])


# --- completion --------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_sound(run, machine, shell):
    ended = run("completion", shell)
    assert ended.code == 0
    assert all(name in ended.out for name in NAMES)
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} here")
    script = machine.file(f"complete.{shell}", ended.out)
    checked = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True)
    assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_bash_completes_with_it(run, machine):
    machine.file("complete.bash", run("completion", "bash").out)
    line = ". ./complete.bash && complete -p fairlead"
    tried = subprocess.run(["bash", "--norc", "-c", line], capture_output=True, text=True)
    assert (tried.returncode, tried.stderr) == (0, "")
    assert tried.stdout.startswith("complete ")
