"""`fairlead trust`: a person looks at a project's hooks, and says so."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from fairlead.config.trust import Trust

RULE = '[[hook]]\nname = "judge"\non = "before_tool"\nrule = "true"\ndeny = "no"\n'
SHELL = '[[hook]]\nname = "judge"\non = "before_tool"\nshell = "exit 2"\n'
SCRIPT = (
    '[[hook]]\nname = "judge"\non = "before_tool"\ncommand = ["./judge.sh", "rules.txt"]\nmay = ["inject", "extend"]\n'
)


def pinned(machine) -> bool:
    return Trust().project(machine.project) is not None


# --- a person at a terminal -----------------------------------------------------------------------


@pytest.mark.usefixtures("unwatched")
@pytest.mark.parametrize("answer", ["y", "Yes"])
def test_yes_trusts_them(machine, terminal, run, answer):
    machine.hooks(RULE)
    ended = terminal("trust", answer=f"{answer}\n")
    assert (ended.code, pinned(machine)) == (0, True)
    assert run("check").code == 0


@pytest.mark.usefixtures("unwatched")
@pytest.mark.parametrize("answer", ["n", "", "maybe"])
def test_anything_else_does_not(machine, terminal, answer):
    machine.hooks(RULE)
    ended = terminal("trust", answer=f"{answer}\n")
    assert (ended.code, pinned(machine)) == (1, False)
    assert "Not trusted." in ended.out


@pytest.mark.usefixtures("unwatched")
def test_ctrl_c_does_not(machine, terminal):
    machine.hooks(RULE)
    ended = terminal("trust", answer="\x03")
    assert (ended.code, pinned(machine)) == (130, False)
    assert "Traceback" not in ended.out


@pytest.mark.usefixtures("unwatched")
def test_they_are_shown_before_anything_is_asked(machine, terminal):
    machine.hooks(RULE)
    shown, asked, _ = terminal("trust", answer="n\n").out.partition("Let these hooks run?")
    assert asked
    assert "judge" in shown
    assert "rule: true" in shown


@pytest.mark.usefixtures("unwatched")
def test_code_that_cannot_be_pinned_is_refused_with_the_reason(machine, terminal):
    machine.hooks(SHELL)
    ended = terminal("trust")
    assert (ended.code, pinned(machine)) == (1, False)
    assert "a shell line can run anything" in ended.out
    assert "--unpinned" in ended.out


@pytest.mark.usefixtures("unwatched")
def test_code_that_cannot_be_pinned_can_be_trusted_all_the_same(machine, terminal, run):
    machine.hooks(SHELL)
    assert terminal("trust", "--unpinned", answer="y\n").code == 0
    assert run("test", "before_tool").code == 2


@pytest.mark.usefixtures("unwatched")
def test_hooks_that_are_trusted_are_not_asked_about(machine, terminal, trust):
    machine.hooks(RULE)
    trust()
    ended = terminal("trust")
    assert ended.code == 0
    assert "already trusted" in ended.out


def test_without_a_terminal_nothing_is_trusted(machine, run, digest):
    machine.hooks(RULE)
    ended = run("trust")
    assert (ended.code, pinned(machine)) == (1, False)
    assert "needs a terminal" in ended.err
    assert f"--expect {digest()}" in ended.err


def test_an_answer_through_a_pipe_trusts_nothing(machine, spawn):
    machine.hooks(RULE)
    ended = spawn("trust", input=b"y\n")
    assert (ended.code, pinned(machine)) == (1, False)


# --- a digest that is known -------------------------------------------------------------------------


def test_the_expected_digest_needs_no_terminal(machine, run, digest):
    machine.hooks(RULE)
    assert run("trust", "--expect", digest()).code == 0
    assert run("test", "before_tool").code == 2


@pytest.mark.parametrize("given", ["sha256:" + "0" * 64, "", "sha256:", "nonsense"])
def test_another_digest_is_refused(machine, run, given):
    machine.hooks(RULE)
    ended = run("trust", "--expect", given)
    assert (ended.code, pinned(machine)) == (1, False)


def test_the_digest_from_before_a_change_is_refused(machine, run, digest):
    machine.hooks(RULE)
    before = digest()
    machine.hooks(RULE.replace("true", "false"))
    ended = run("trust", "--expect", before)
    assert (ended.code, pinned(machine)) == (1, False)
    assert f"expected {before}, but the digest is {digest()}" in ended.err


def test_the_expected_digest_does_not_cover_what_no_digest_can(machine, run, digest):
    machine.hooks(SHELL)
    ended = run("trust", "--expect", digest())
    assert (ended.code, pinned(machine)) == (1, False)
    assert "--unpinned" in ended.err
    assert run("trust", "--expect", digest(), "--unpinned").code == 0
    assert pinned(machine)


# --- looking ------------------------------------------------------------------------------------------


def test_show_says_what_would_run_and_what_it_may_do(machine, run, digest):
    machine.file("judge.sh", "#!/bin/sh\n", 0o755)
    machine.file("rules.txt", "rules")
    machine.hooks(SCRIPT)
    out = run("trust", "--show").out
    for part in (
        str(machine.project_file), digest(), "judge", "command: ./judge.sh rules.txt", "rules.txt  sha256:",
        "uses /bin/sh", "judge.sh  sha256:", "may also inject, extend",
    ):  # fmt: skip
        assert part in out


RAW_URL = '[[hook]]\nname = "judge"\non = "before_tool"\nurl = "https://policy.example/a"\n'
RAW_PROMPT = '[[hook]]\nname = "judge"\non = "before_tool"\nprompt = "Judge."\nmodel = "acme:big-1"\n'


@pytest.mark.parametrize(
    ("hook", "where"), [(RAW_URL, "https://policy.example/a"), (RAW_PROMPT, "the model acme:big-1")]
)
def test_show_says_where_steps_go_as_they_are(machine, run, hook, where):
    machine.hooks(hook + 'raw = true\nmay = ["raw", "inject"]\n')
    out = run("trust", "--show").out
    assert f"is sent steps as they are, secrets included: they go to {where}\n" in out
    assert "may also inject\n" in out


@pytest.mark.parametrize("hook", [RAW_URL, RAW_PROMPT])
def test_show_says_nothing_of_steps_that_are_redacted(machine, run, hook):
    machine.hooks(hook + 'may = ["raw"]\n')
    out = run("trust", "--show").out
    assert ("as they are" in out, "may also" in out) == (False, False)


def test_show_trusts_nothing_and_ends_with_1_until_a_human_has(machine, run, trust):
    machine.hooks(RULE)
    assert (run("trust", "--show").code, pinned(machine)) == (1, False)
    trust()
    assert run("trust", "--show").code == 0


def test_json_says_the_same(machine, run):
    machine.file("judge.sh", "#!/bin/sh\n", 0o755)
    machine.file("rules.txt", "rules")
    machine.hooks(SCRIPT)
    ended = run("trust", "--json")
    (hook,) = ended.json["hooks"]
    assert (ended.code, ended.json["trusted"], ended.json["root"]) == (1, False, str(machine.project))
    assert (hook["name"], hook["runs"], hook["may"]) == ("judge", "./judge.sh rules.txt", ["inject", "extend"])
    assert hook["files"].keys() == {"judge.sh", "rules.txt"}
    assert not pinned(machine)


def test_json_of_trusted_hooks_ends_with_0(machine, run, trust):
    machine.hooks(RULE)
    trust()
    ended = run("trust", "--json")
    assert (ended.code, ended.json["trusted"]) == (0, True)


def test_a_project_is_found_from_a_folder_in_it(machine, run, monkeypatch):
    machine.hooks(RULE)
    (machine.project / "src/deep").mkdir(parents=True)
    monkeypatch.chdir(machine.project / "src/deep")
    assert run("trust", "--json").json["root"] == str(machine.project)


def test_a_project_can_be_named(machine, run, tmp_path, monkeypatch):
    machine.hooks(RULE)
    monkeypatch.chdir(tmp_path)
    assert run("trust", "--json", "-C", "project").json["root"] == str(machine.project)


def test_where_there_is_no_project_there_is_nothing_to_trust(machine, run):
    ended = run("trust")
    assert ended.code == 1
    assert f"there is no fairlead.toml in {machine.project} or above it" in ended.err


def test_a_file_with_a_mistake_is_not_trusted(machine, run):
    machine.hooks(RULE.replace("before_tool", "before_tol"))
    ended = run("trust", "--show")
    assert ended.code == 1
    assert "did you mean 'before_tool'?" in ended.err


def test_a_link_out_of_the_project_is_refused_with_where_it_leads(machine, run, tmp_path):
    (tmp_path / "outside.sh").write_text("#!/bin/sh\n")
    (tmp_path / "outside.sh").chmod(0o755)
    (machine.project / "judge.sh").symlink_to(tmp_path / "outside.sh")
    machine.file("rules.txt", "rules")
    machine.hooks(SCRIPT)
    ended = run("trust", "--show")
    assert ended.code == 1
    assert f"leads out of the project, to {tmp_path / 'outside.sh'}" in ended.err


# --- forgetting -----------------------------------------------------------------------------------------


def test_forget_takes_trust_back(machine, run, trust):
    machine.hooks(RULE)
    trust()
    assert run("trust", "--forget").code == 0
    assert run("check").code == 1


def test_forgetting_what_was_never_trusted_is_no_mistake(machine, run):
    machine.hooks(RULE)
    ended = run("trust", "--forget")
    assert (ended.code, "It was not trusted." in ended.err) == (0, True)


# --- agents ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "FAIRLEAD_AGENT"])
def test_an_agent_cannot_trust_even_a_digest_it_knows(machine, run, digest, monkeypatch, mark):
    machine.hooks(RULE)
    monkeypatch.setenv(mark, "1")
    ended = run("trust", "--expect", digest())
    assert (ended.code, pinned(machine)) == (1, False)
    assert f"an agent cannot trust hooks ({mark} is set)" in ended.err


def test_an_agent_may_look(machine, run, monkeypatch):
    machine.hooks(RULE)
    monkeypatch.setenv("CLAUDECODE", "1")
    assert "judge" in run("trust", "--show").out
    assert "an agent cannot" not in run("trust", "--json").err


@pytest.fixture
def claude(tmp_path):
    """A program of this name that runs another and waits for it, as an agent does."""
    path = tmp_path / "claude"
    path.write_text('#!/bin/sh\n"$@"\nexit $?\n')
    path.chmod(0o755)
    return str(path)


def test_a_process_that_an_agent_started_cannot_trust(machine, digest, claude):
    machine.hooks(RULE)
    words = [claude, sys.executable, "-m", "fairlead.cli", "trust", "--expect", digest()]
    ended = subprocess.run(words, capture_output=True, text=True)
    assert (ended.returncode, pinned(machine)) == (1, False)
    assert "an agent cannot trust hooks (this runs under claude)" in ended.stderr


def test_a_terminal_that_an_agent_opened_is_no_person(machine, terminal, claude):
    machine.hooks(RULE)
    argv = ["/bin/sh", "-c", f"{claude} {sys.executable} -m fairlead.cli trust; exit $?"]
    ended = terminal(answer="y\n", argv=argv)
    assert (ended.code, pinned(machine)) == (1, False)
    assert "an agent cannot trust hooks (this runs under claude)" in ended.out


# --- where trust is kept ------------------------------------------------------------------------------------


def test_a_state_folder_in_the_project_is_refused(machine, run, digest, monkeypatch):
    machine.hooks(RULE)
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(machine.project / ".fairlead"))
    ended = run("trust", "--expect", digest())
    assert (ended.code, "lies in the project" in ended.err) == (1, True)
    assert not (machine.project / ".fairlead").exists()


def test_a_corrupt_trust_file_is_an_error_that_says_what_to_do(machine, run, digest):
    machine.hooks(RULE)
    expected = digest()
    machine.state.mkdir()
    (machine.state / "trust.json").write_text("{")
    ended = run("trust", "--expect", expected)
    assert ended.code == 1
    assert "remove it and trust your projects anew" in ended.err


def test_the_trust_file_is_the_user_s_alone(machine, trust):
    machine.hooks(RULE)
    trust()
    assert (machine.state / "trust.json").stat().st_mode & 0o777 == 0o600
    assert machine.state.stat().st_mode & 0o777 == 0o700
    assert json.loads((machine.state / "trust.json").read_text())["projects"].keys() == {str(machine.project)}
    assert os.listdir(machine.project) == ["fairlead.toml"]


# --- every command says what does not run ---------------------------------------------------------------------


@pytest.mark.parametrize("words", [("check",), ("hooks",), ("test", "before_tool"), ("test", "session_start")])
def test_every_command_says_on_stderr_what_does_not_run(machine, run, words):
    machine.hooks(RULE)
    err = run(*words).err
    assert f"1 hook of {machine.project_file} (judge) does not run: the file has not been trusted" in err


@pytest.mark.parametrize("words", [("check",), ("hooks",), ("test", "before_tool")])
def test_what_does_not_run_leaves_json_alone(machine, run, words):
    machine.hooks(RULE)
    ended = run(*words, "--json")
    assert ended.json is not None
    assert "not run" in ended.err


def test_check_ends_with_1_while_hooks_do_not_run(machine, run, trust):
    machine.hooks(RULE)
    assert (run("check").code, run("check", "--json").json["untrusted"] != []) == (1, True)
    trust()
    assert (run("check").code, run("check", "--json").json["untrusted"]) == (0, [])


def test_a_session_starts_with_a_warning(machine, run):
    machine.hooks(RULE)
    (warning,) = run("test", "session_start", "--json").json["decision"]["warnings"]
    assert "(judge) does not run" in warning


def test_what_does_not_run_is_never_run(machine, run):
    machine.hooks('[[hook]]\nname = "judge"\non = "before_tool"\nshell = "touch ran; exit 2"\n')
    assert run("test", "before_tool").code == 1
    assert not (machine.project / "ran").exists()


# --- what was trusted stays -----------------------------------------------------------------------------


OTHER = '[[hook]]\nname = "other"\non = "before_tool"\nrule = "false"\ndeny = "no"\n'


def test_a_project_that_was_never_trusted_is_said_on_stdout_and_in_the_exit_code(machine, run):
    machine.hooks(RULE)
    for words in (("check",), ("test", "before_tool")):
        ended = run(*words)
        assert ended.code == 1
        assert "NOT TRUSTED: 1 hook of" in ended.out
    assert run("test", "before_tool", "--json").json["untrusted"]
    assert run("check", "--json").json["never_trusted"]


def test_a_step_that_another_hook_refuses_is_refused_also_where_a_project_was_never_trusted(machine, run):
    machine.hooks(OTHER)
    machine.user('[[hook]]\nname = "mine"\non = "before_tool"\nrule = "true"\ndeny = "no"\n')
    assert run("test", "before_tool").code == 2


def test_a_file_that_changed_is_judged_as_it_was_trusted(machine, run, trust):
    machine.hooks(RULE)
    trust()
    machine.hooks(OTHER)
    assert run("test", "before_tool").code == 2
    ended = run("check")
    assert ended.code == 1
    assert "has changed since it was trusted" in ended.err
    assert "judge" in ended.out


def test_trust_replaces_and_also_adds(machine, run, trust):
    machine.hooks(RULE)
    trust()
    machine.hooks(OTHER)
    trust("--also")
    assert len(Trust().project(machine.project).snapshots) == 2
    assert run("test", "before_tool").code == 0
    trust()
    assert len(Trust().project(machine.project).snapshots) == 1
    machine.hooks(RULE)
    assert run("test", "before_tool").code == 0


def test_a_policy_whose_file_is_gone_can_be_forgotten(machine, run, trust):
    machine.hooks(RULE)
    trust()
    machine.project_file.unlink()
    assert run("test", "before_tool").code == 2
    gone = run("trust")
    assert gone.code == 1
    assert "fairlead trust --forget" in gone.err
    forgotten = run("trust", "--forget")
    assert forgotten.code == 0
    assert str(machine.project) in forgotten.err
    assert run("test", "before_tool").code == 0


def test_an_agent_forgets_nothing(machine, run, trust, monkeypatch):
    machine.hooks(RULE)
    trust()
    monkeypatch.setenv("CLAUDECODE", "1")
    assert run("trust", "--forget").code == 1
    assert pinned(machine)


def test_a_program_that_changed_can_be_trusted_again(machine, run, trust, tmp_path):
    judge = tmp_path / "judge"
    judge.write_text("#!/bin/sh\nexit 0\n")
    judge.chmod(0o755)
    machine.hooks(f'[[hook]]\nname = "judge"\non = "before_tool"\ncommand = ["{judge}"]\n')
    trust("--unpinned")
    assert run("test", "before_tool").code == 0
    judge.write_text("#!/bin/sh\n\nexit 0\n")
    assert run("test", "before_tool").code == 2
    trust("--unpinned")
    assert run("test", "before_tool").code == 0


@pytest.mark.usefixtures("unwatched")
@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_signing_trusts_and_writes_the_file_for_the_team(machine, terminal, run, tmp_path):
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "me", "-f", tmp_path / "key"], check=True)
    machine.hooks(RULE)
    assert terminal("trust", "--sign", str(tmp_path / "key"), answer="y\n").code == 0
    assert run("test", "before_tool").code == 2
    shutil.rmtree(machine.state)  # a colleague's machine
    assert run("test", "before_tool").code == 1
    public = (tmp_path / "key.pub").read_text().strip()
    machine.user(f'[defaults]\ntrust_signers = ["{public}"]\n')
    assert run("test", "before_tool").code == 2
    assert run("check").code == 0
    assert run("trust", "--forget").code == 0
    assert run("test", "before_tool").code == 1  # what was forgotten does not come back by itself


@pytest.mark.usefixtures("unwatched")
def test_a_key_that_is_not_there_signs_nothing(machine, terminal, tmp_path):
    machine.hooks(RULE)
    ended = terminal("trust", "--sign", str(tmp_path / "no-key"), answer="y\n")
    assert (ended.code, pinned(machine)) == (1, False)
    assert not (machine.project / "fairlead.trust").exists()


def test_all_that_a_hook_says_is_shown_before_it_is_trusted(machine, run):
    machine.hooks(
        '[defaults]\nenforce = false\n[[hook]]\nname = "judge"\non = "after_tool"\nmatch = { tool = "nothing" }\n'
        'phase = "observe"\nrule = "true"\nwarn = "w"\ntimeout = 3\n'
    )
    out = run("trust", "--show").out
    for part in (
        '[defaults]  {"enforce": false}', 'on = "after_tool"', 'match = {"tool": "nothing"}', 'phase = "observe"',
        'warn = "w"', "timeout = 3",
    ):  # fmt: skip
        assert part in out


def test_check_finds_mistakes_in_a_file_that_waits_for_trust(machine, run, trust):
    machine.hooks(RULE)
    trust()
    machine.hooks(RULE.replace("deny", "dney"))
    ended = run("check")
    assert ended.code == 1
    assert "did you mean 'deny'?" in ended.err
    assert run("test", "before_tool").code == 2


@pytest.mark.parametrize("change", [lambda path: path.write_text("#!/bin/sh\n"), lambda path: path.unlink()])
def test_check_finds_a_program_that_is_not_the_one_that_was_trusted(machine, run, trust, tmp_path, change):
    judge = tmp_path / "judge"
    judge.write_text("#!/bin/sh\nexit 0\n")
    judge.chmod(0o755)
    machine.hooks(f'[[hook]]\nname = "judge"\non = "before_tool"\ncommand = ["{judge}"]\n')
    trust("--unpinned")
    assert run("check").code == 0
    change(judge)
    ended = run("check")
    assert ended.code == 1
    assert "hook 'judge' fails: " in ended.out or "hook 'judge' cannot run here: " in ended.err
    assert "`fairlead trust`" in ended.all
