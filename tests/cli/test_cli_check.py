"""`fairlead check` and `fairlead hooks`: is it sound, and what runs when?"""

from __future__ import annotations

import pytest


def hook(name: str, *lines: str, on: str = "before_tool") -> str:
    """A hook that only warns, so that all that come after it still run."""
    return "\n".join([f'[[hook]]\nname = "{name}"\non = "{on}"\nrule = "true"\nwarn = "{name}"', *lines, ""])


SOUND = hook("judge")


# --- running order ------------------------------------------------------------------------------


def test_hooks_are_shown_in_running_order(machine, run, trust):
    machine.system(
        hook("system-gate", 'phase = "gate"'), hook("system-late", "priority = 60"), hook("system-transform")
    )
    machine.user(hook("user-early", "priority = 10"), hook("user-second"), hook("user-third"))
    machine.hooks(
        hook("project-observer", 'phase = "observe"', "priority = 1"),
        hook("project-early-gate", 'phase = "gate"', "priority = 10"),
        hook("project-transform"),
    )
    trust()
    shown = [hook["name"] for hook in run("check", "--json").json["events"]["before_tool"]]
    assert shown == [
        "user-early", "system-transform", "user-second", "user-third", "project-transform", "system-late",
        "project-early-gate", "system-gate",
        "project-observer",
    ]  # fmt: skip
    ran = [hook["hook"] for hook in run("test", "before_tool", "--json").json["hooks"]]
    assert [name for name in ran if name != "fairlead.guard"] == shown


def test_the_same_order_is_shown_to_a_person(machine, run):
    machine.user(hook("last", 'phase = "observe"'), hook("middle", 'phase = "gate"'), hook("first"))
    out = run("check").out
    assert out.index("first") < out.index("middle") < out.index("last")


def test_each_event_has_its_own_chain_in_the_order_of_the_lifecycle(machine, run):
    machine.user(hook("late", on="turn_end"), hook("tool"), hook("early", on="session_start"))
    chains = run("check", "--json").json["events"]
    assert [(event, [hook["name"] for hook in chain]) for event, chain in chains.items()] == [
        ("session_start", ["early"]),
        ("before_tool", ["tool"]),
        ("turn_end", ["late"]),
    ]


def test_a_hook_for_everything_is_in_every_chain(machine, run):
    machine.user(hook("audit", 'phase = "observe"', on="*"))
    assert len(run("check", "--json").json["events"]) == 26


def test_each_hook_is_shown_with_its_phase_layer_and_place(machine, run):
    machine.user(SOUND, hook("gate", 'phase = "gate"', 'match = { kind = "shell" }'))
    (line,) = (line for line in run("check").out.splitlines() if " gate " in line)
    assert line.split() == ["gate", "gate", "rule", "user", f"{machine.user_file}:7", "kind=shell"]


def test_what_cannot_be_enforced_is_said(machine, run):
    machine.user(
        hook("monitored", "enforce = false"),
        hook("open", 'on_failure = "open"'),
        hook("powerless", on="after_compact"),
        hook("strict"),
    )
    chains = run("check", "--json").json["events"]
    notes = {hook["name"]: hook["notes"] for chain in chains.values() for hook in chain}
    assert notes == {
        "monitored": ["only monitored"],
        "open": ["if it fails, the agent goes on: on_failure is open"],
        "powerless": ["if it fails, the agent goes on: there is nothing to refuse here"],
        "strict": [],
    }
    assert "      only monitored\n" in run("check").out


# --- mistakes ------------------------------------------------------------------------------------


def test_a_sound_configuration_ends_with_0(machine, run):
    machine.user(SOUND)
    ended = run("check")
    assert (ended.code, ended.err) == (0, "")
    assert "1 hook, no mistakes." in ended.out


def test_without_any_file_it_says_how_to_start(run):
    ended = run("check")
    assert (ended.code, "`fairlead init`" in ended.out) == (0, True)


def test_all_mistakes_of_all_layers_are_shown(machine, run):
    machine.system(hook("a", "timeout = -1"))
    machine.user(hook("b", 'phase = "gat"'), hook("c", on="before_tol"))
    ended = run("check")
    assert ended.code == 1
    assert f"{machine.system_file}:6:" in ended.err
    assert f"{machine.user_file}:6:" in ended.err
    assert f"{machine.user_file}:10:" in ended.err
    assert "\n3 mistakes.\n" in ended.err


def test_a_mistake_has_its_place_the_line_and_a_suggestion(machine, run):
    machine.user(SOUND, 'matsch = { kind = "shell" }')
    assert run("check").err.splitlines()[:3] == [
        f"{machine.user_file}:7:1: unknown key 'matsch'; did you mean 'match'?",
        '    matsch = { kind = "shell" }',
        "    ^",
    ]


@pytest.mark.parametrize("text", ["[[hook]", "a = ", 'a = "\x01"', "[[hook]]\nname = 'x'\nname = 'y'"])
def test_a_file_that_is_no_toml_is_a_mistake(machine, run, text):
    machine.user(text)
    ended = run("check")
    assert (ended.code, "not TOML" in ended.err) == (1, True)


def test_json_is_json_with_mistakes_too(machine, run):
    machine.user(SOUND, 'matsch = { kind = "shell" }')
    ended = run("check", "--json")
    assert ended.code == 1
    (mistake,) = ended.json["mistakes"]
    assert (mistake["file"], mistake["line"], mistake["column"]) == (str(machine.user_file), 7, 1)
    assert mistake["problem"] == "unknown key 'matsch'; did you mean 'match'?"


def test_json_is_json_where_a_file_is_no_toml(machine, run):
    machine.user("[[hook]")
    assert len(run("check", "--json").json["mistakes"]) == 1


def test_json_names_the_files(machine, run, trust):
    machine.user(SOUND)
    machine.hooks(SOUND)
    trust()
    assert run("check", "--json").json["files"] == [
        {"layer": "user", "file": str(machine.user_file)},
        {"layer": "project", "file": str(machine.project_file)},
    ]


def test_another_folder_can_be_checked(machine, run, tmp_path, monkeypatch):
    machine.hooks(SOUND)
    monkeypatch.chdir(tmp_path)
    assert run("check", "--json").json["files"] == []
    assert run("check", "--json", "-C", "project").json["files"][0]["file"] == str(machine.project_file)


# --- hooks -----------------------------------------------------------------------------------------


def test_hooks_lists_those_that_run(machine, run):
    machine.user(SOUND, hook("gate", 'phase = "gate"', on="before_input"))
    head, *rows = run("hooks").out.splitlines()
    assert head.split() == ["NAME", "LAYER", "PHASE", "ON", "RUNS"]
    assert [row.split() for row in rows] == [
        ["judge", "user", "transform", "before_tool", "rule", "true"],
        ["gate", "user", "gate", "before_input", "rule", "true"],
    ]


def test_hooks_as_data(machine, run):
    machine.user(hook("judge", "timeout = 2", "locked = true", 'match = { tool = "bash" }'))
    assert run("hooks", "--json").json == [
        {
            "name": "judge", "layer": "user", "file": str(machine.user_file), "line": 1, "form": "rule",
            "runs": "true", "on": "before_tool", "phase": "transform", "priority": 50, "match": {"tool": "bash"},
            "timeout": 2, "on_failure": "closed", "enforce": True, "locked": True, "may": None,
        }
    ]  # fmt: skip


def test_no_hooks_is_no_mistake(run):
    assert run("hooks").code == 0
    assert run("hooks", "--json").json == []


def test_hooks_of_a_file_with_a_mistake_are_not_listed(machine, run):
    machine.user(SOUND, "matsch = 1")
    ended = run("hooks")
    assert (ended.code, ended.out) == (1, "")
    assert "did you mean 'match'?" in ended.err


def test_a_disabled_hook_is_not_listed(machine, run):
    machine.system(SOUND)
    machine.user('disable = ["judge"]')
    assert run("hooks", "--json").json == []


# --- what this machine lacks, and CI ---------------------------------------------------------------

LACKING = '[[hook]]\nname = "lacking"\non = "before_tool"\ncommand = ["no-such-program"]\n'


def test_a_hook_that_cannot_run_here_is_shown_in_its_place_and_the_rest_is_in_force(machine, run):
    machine.user(SOUND, LACKING)
    ended = run("check")
    assert (ended.code, "judge" in ended.out, "Traceback" in ended.all) == (1, True, False)
    line = machine.user_file.read_text().splitlines().index('command = ["no-such-program"]') + 1
    assert f"{machine.user_file}:{line}:11: hook 'lacking' cannot run here: program 'no-such-program'" in ended.err
    told = run("check", "--json").json
    assert (told["mistakes"], [one["line"] for one in told["unavailable"]]) == ([], [line])


@pytest.fixture
def clone(machine, monkeypatch):
    """A project that no human has trusted, as in CI: with a rule, a program in it, one of the system, and a secret."""
    monkeypatch.delenv("ACME_TOKEN", raising=False)
    machine.file("check.sh", "#!/bin/sh\n", 0o755)

    def write(*more: str) -> None:
        machine.hooks(
            hook("judge"),
            '[[hook]]\nname = "ours"\non = "before_tool"\ncommand = ["./check.sh"]\n',
            '[[hook]]\nname = "service"\non = "before_tool"\nurl = "https://a.example"\n'
            'headers = { X-Token = { env = "ACME_TOKEN" } }\n',
            *more,
        )

    write()
    return write


def test_a_fresh_clone_is_checked_in_ci_without_being_trusted(machine, run, clone):
    assert run("check").code == 1
    ended = run("check", "--ci")
    assert (ended.code, "NOT TRUSTED" in ended.all, "3 hooks, no mistakes" in ended.out) == (0, False, True)
    assert "note: ACME_TOKEN is not set here" in ended.out
    assert not (machine.state / "trust.json").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (hook("typo", "prioritty = 5"), "unknown key 'prioritty'"),
        (hook("loose", 'may = ["allow"]'), "unknown power 'allow' of a project's hook"),
        ('[[hook]]\nname = "gone"\non = "before_tool"\ncommand = ["./gone.sh"]\n', "'./gone.sh' is not there"),
        ('[[hook]]\nname = "gone"\non = "before_tool"\npython = "gone.py:f"\n', "'gone.py' is not in"),
        ("[journal]\nenabled = false\n", "a project cannot say anything about the journal"),
    ],
)
def test_a_mistake_in_the_repository_fails_ci(run, clone, more, said):
    clone(more)
    ended = run("check", "--ci")
    assert (ended.code, said in ended.err) == (1, True), ended.all


def test_a_program_that_only_this_machine_lacks_is_a_note_in_ci(run, clone):
    clone(LACKING)
    ended = run("check", "--ci")
    assert (ended.code, "hook 'lacking' cannot run here" in ended.out) == (0, True)
    assert len(run("check", "--ci", "--json").json["notes"]) == 2


def test_a_repository_without_a_file_fails_ci(run):
    assert run("check").code == 0
    ended = run("check", "--ci")
    assert (ended.code, "there is no fairlead.toml in" in ended.err) == (1, True)


def test_in_ci_a_mistake_is_told_without_a_word_of_trust(machine, run):
    machine.hooks('[[hook]]\nname = "a"\non = "before_tool"\nrule = "true"\nnonsense = 1\n')
    ended = run("check", "--ci")
    assert (ended.code, "NOT TRUSTED" in ended.out, "nonsense" in ended.err) == (1, False, True)
