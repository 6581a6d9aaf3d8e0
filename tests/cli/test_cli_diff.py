"""`fairlead diff` and `fairlead replay`: what they say of recorded traffic, and how they end."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import COMMAND, DEADLINE, Machine, Run
from fairlead import Hooks, Journal
from fairlead.config.layers import load_usable
from fairlead.journal.reading import Reader
from fairlead.lifecycle import BeforeTool

RULE = """
[[hook]]
name = "{name}"
on = "before_tool"
match = {{ kind = "shell" }}
phase = "gate"
rule = '''{rule}'''
{control} = "not here"
"""
FORCE = RULE.format(name="no-force-push", rule='target.command.matches("git push.*--force")', control="deny")
DOCKER = RULE.format(name="ask-docker", rule='target.command.contains("docker rm")', control="ask")
RM = RULE.format(name="no-rm", rule='target.command.contains("rm -rf")', control="deny")
LINT = """
[[hook]]
name = "lint"
on = "before_tool"
phase = "gate"
command = ["{program}", "{marker}"]
"""
COMMANDS = ("git push --force origin v1", "git push --force origin v22", "git status", "docker rm c3", "rm -rf build")


def record(path: Path, commands: tuple[str, ...] = COMMANDS, folder: str = "/repo", **options: Any) -> list[str]:
    """Record these commands under the policy in force. Returns the ids of the records."""

    async def work() -> None:
        config = load_usable(folder if Path(folder).exists() else ".")
        with Journal(path) as journal:
            hooks = Hooks(journal=journal, **options)
            config.apply(hooks)
            for number in range(2):
                session = hooks.session(f"s-{number}", host="loop", cwd=folder, user_id=f"user-{number}")
                for command in commands:
                    await session.dispatch(session.step(BeforeTool, tool="bash", args={"command": command}))
            await hooks.aclose()

    asyncio.run(work())
    with Reader(path) as reader:
        return [one.id for one in reader.records()]


@pytest.fixture
def journal(machine: Machine) -> Path:
    path = machine.home / "journal.db"
    record(path)
    return path


@pytest.fixture
def policies(machine: Machine) -> tuple[Path, Path]:
    old, new = machine.project / "old.toml", machine.project / "new.toml"
    old.write_text(FORCE + DOCKER)
    new.write_text(DOCKER + RM)
    return old, new


def diff(run: Run, journal: Path | str, *words: str) -> Any:
    return run("diff", "--journal", str(journal), *words)


# --- what is said ---------------------------------------------------------------------------


def test_a_policy_does_not_differ_from_itself(run: Run, journal: Path, policies: tuple[Path, Path]):
    ended = diff(run, journal, str(policies[0]), str(policies[0]))
    assert ended.code == 0
    assert "10 the same, 0 changed, 0 unknown" in ended.out


def test_loosened_and_tightened_steps_are_classes_with_their_reach(
    run: Run, journal: Path, policies: tuple[Path, Path]
):
    ended = diff(run, journal, *map(str, policies), "--json")
    assert ended.code == 2
    loosened, tightened = ended.json["changes"]
    assert (loosened["direction"], loosened["before"]["control"], loosened["after"]["control"]) == (
        "loosened", "deny", "proceed",
    )  # fmt: skip
    assert (loosened["shape"], loosened["spread"]["count"]) == ("bash: git push --force origin vN", 4)
    assert tightened["before"]["control"] == "proceed"
    assert (tightened["after"]["control"], tightened["after"]["hook"]) == ("deny", "no-rm")
    assert tightened["spread"]["sessions"] == 2
    assert tightened["spread"]["users"] == ["user-0", "user-1"]
    assert tightened["spread"]["folders"]


def test_an_example_is_the_smallest_step_shrunk_and_its_record_can_be_shown(
    run: Run, journal: Path, policies: tuple[Path, Path]
):
    ended = diff(run, journal, *map(str, policies), "--json")
    examples = {one["after"]["control"]: one["example"] for one in ended.json["changes"]}
    assert examples["deny"]["text"] == "rm -rf build"
    assert examples["deny"]["shrunk"] == "rm -rf"
    assert run("show", examples["deny"]["record"], "--journal", str(journal)).code == 0


def test_like_calls_are_one_class(run: Run, machine: Machine, policies: tuple[Path, Path]):
    path = machine.home / "many.db"
    record(path, tuple(f"git push --force origin feature-{n}" for n in range(30)))
    ended = diff(run, path, *map(str, policies), "--json")
    (change,) = ended.json["changes"]
    assert change["shape"] == "bash: git push --force origin feature-N"
    assert change["spread"]["count"] == 60


@pytest.mark.parametrize(
    ("fail_on", "code"), [("loosened", 2), ("tightened", 0), ("unknown", 0), ("any", 2)]
)  # fmt: skip
def test_what_it_fails_on_can_be_chosen(run: Run, journal: Path, policies: tuple[Path, Path], fail_on: str, code: int):
    policies[1].write_text(DOCKER)
    assert diff(run, journal, *map(str, policies), "--fail-on", fail_on).code == code


def test_a_question_that_was_not_put_is_no_deny(run: Run, journal: Path, policies: tuple[Path, Path]):
    policies[0].write_text(FORCE)
    policies[1].write_text(FORCE + DOCKER)
    ended = diff(run, journal, *map(str, policies), "--json")
    (change,) = ended.json["changes"]
    assert change["after"]["control"] == "ask"
    assert ended.json["totals"]["would_ask"] == 2


def test_only_steps_since_a_time_and_of_a_session_count(run: Run, journal: Path, policies: tuple[Path, Path]):
    words = [*map(str, policies), "--json"]
    assert diff(run, journal, *words, "--session", "s-1").json["totals"]["steps"] == 5
    assert diff(run, journal, *words, "--since", "1h").json["totals"]["steps"] == 10
    assert diff(run, journal, *words, "--until", "2020-01-01").json["totals"]["steps"] == 0
    assert diff(run, journal, *words, "--session", "s-9").code == 1
    assert diff(run, journal, *words, "--project", "/repo").json["totals"]["steps"] == 10
    assert diff(run, journal, *words, "--project", "/other").json["totals"]["steps"] == 0


# --- accepted changes -----------------------------------------------------------------------

ACCEPTED = """
[[accepted]]
change = "deny -> proceed"
hook = "no-force-push"
shape = "bash: git push *"
who = "ana"
why = "we protect the branch on the server now"
until = {until}
"""


def test_an_accepted_change_does_not_fail(run: Run, journal: Path, policies: tuple[Path, Path], tmp_path: Path):
    policies[1].write_text(DOCKER)
    file = tmp_path / "accepted.toml"
    file.write_text(ACCEPTED.format(until="2999-01-01"))
    ended = diff(run, journal, *map(str, policies), "--accept", str(file))
    assert ended.code == 0
    assert "we protect the branch on the server now" in ended.out


def test_an_acceptance_ends_and_that_is_said(run: Run, journal: Path, policies: tuple[Path, Path], tmp_path: Path):
    policies[1].write_text(DOCKER)
    file = tmp_path / "accepted.toml"
    file.write_text(ACCEPTED.format(until="2001-01-01"))
    ended = diff(run, journal, *map(str, policies), "--accept", str(file))
    assert ended.code == 2
    assert "no longer accepted: ana" in ended.out


@pytest.mark.parametrize("key", ["change", "who", "why", "until"])
def test_an_acceptance_says_who_why_and_until_when(
    run: Run, journal: Path, policies: tuple[Path, Path], tmp_path: Path, key: str
):
    lines = ACCEPTED.format(until="2999-01-01").splitlines()
    file = tmp_path / "accepted.toml"
    file.write_text("\n".join(line for line in lines if not line.startswith(f"{key} ")))
    ended = diff(run, journal, *map(str, policies), "--accept", str(file))
    assert ended.code == 1
    assert key in ended.err


# --- what is published ----------------------------------------------------------------------


@pytest.mark.parametrize(("option", "start"), [
    ("--junit", "<?xml"), ("--sarif", "{"), ("--github", "::error"), ("--markdown", "<!-- fairlead -->"),
    ("--html", "<!doctype html>"),
])  # fmt: skip
def test_a_format_is_printed_and_the_exit_code_stays(
    run: Run, journal: Path, policies: tuple[Path, Path], option: str, start: str
):
    ended = diff(run, journal, *map(str, policies), option)
    assert ended.code == 2
    assert ended.out.startswith(start)


def test_formats_are_written_to_files_beside_the_text(
    run: Run, journal: Path, policies: tuple[Path, Path], tmp_path: Path
):
    files = {name: tmp_path / f"report.{name}" for name in ("junit", "html")}
    ended = diff(run, journal, *map(str, policies), *(f"--output={name}={file}" for name, file in files.items()))
    assert "loosened: " in ended.out
    assert files["junit"].read_text().startswith("<?xml")
    assert files["html"].read_text().startswith("<!doctype html>")


@pytest.mark.parametrize("words", ["juni=x", "junit", "junit=", "junit=/nowhere/at/all/x.xml"])
def test_a_wrong_output_is_said_before_anything_is_judged(
    run: Run, journal: Path, policies: tuple[Path, Path], words: str
):
    ended = diff(run, journal, *map(str, policies), "--output", words)
    assert (ended.code, ended.out) == (1, "")


# --- revisions of git -----------------------------------------------------------------------


@pytest.fixture
def repository(machine: Machine) -> Path:
    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words], cwd=machine.project,
                       check=True, capture_output=True)  # fmt: skip

    git("init", "-b", "main")
    machine.project_file.write_text(FORCE + DOCKER)
    git("add", "fairlead.toml")
    git("commit", "-m", "one")
    git("switch", "-c", "feature")
    machine.project_file.write_text(DOCKER)
    git("commit", "-am", "two")
    return machine.project


@pytest.mark.parametrize("words", [("main..HEAD",), ("main", "HEAD"), ("main",), ("main", "."), ("main..feature",)])
def test_two_revisions_are_compared(run: Run, journal: Path, repository: Path, words: tuple[str, ...]):
    ended = diff(run, journal, *words, "--json")
    assert ended.code == 2
    assert {one["direction"] for one in ended.json["changes"]} == {"loosened"}


def test_a_revision_is_read_without_touching_the_work_tree(run: Run, journal: Path, repository: Path):
    (repository / "fairlead.toml").write_text("not = 'sound'")
    before = {path: path.stat().st_mtime_ns for path in repository.rglob("*") if path.is_file()}
    assert diff(run, journal, "main..HEAD").code == 2
    assert {path: path.stat().st_mtime_ns for path in repository.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("word", ["nowhere", "--help-me", "main:../x", "HEAD~99", ""])
def test_what_is_no_policy_is_refused(run: Run, journal: Path, repository: Path, word: str):
    ended = diff(run, journal, "main", word) if not word.startswith("-") else diff(run, journal, "main", "--", word)
    assert ended.code == 1
    assert "Traceback" not in ended.all


# --- what never runs ------------------------------------------------------------------------


def with_lint(machine: Machine, program: str = "touch") -> tuple[str, Path]:
    marker = machine.home / "it-ran"
    return LINT.format(program=f"/usr/bin/{program}", marker=marker), marker


def test_code_of_a_revision_never_runs(run: Run, journal: Path, machine: Machine, repository: Path):
    lint, marker = with_lint(machine)
    machine.project_file.write_text(FORCE + DOCKER + lint)
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-am", "x"], check=True,
                   capture_output=True)  # fmt: skip
    for external in ("recorded", "run"):
        ended = diff(run, journal, "main..HEAD", "--external", external, "--json")
        assert {one["why"] for one in ended.json["unknown"]} == {"untrusted code"}
        assert ended.json["untrusted"] == ["lint"]
    assert not marker.exists()


def test_an_untrusted_project_never_runs_whatever_it_is_called(
    run: Run, journal: Path, machine: Machine, policies: tuple[Path, Path]
):
    lint, marker = with_lint(machine)
    policies[1].write_text(FORCE + DOCKER + lint)
    machine.project_file.write_text(FORCE + DOCKER + lint)
    for new in (policies[1], machine.project_file, machine.project):
        ended = diff(run, journal, str(policies[0]), str(new), "--external", "run", "--json")
        assert ended.json["totals"]["unknown"] == 10
    assert not marker.exists()


def test_the_users_own_hook_runs_only_if_told_to(
    run: Run, journal: Path, machine: Machine, policies: tuple[Path, Path]
):
    lint, marker = with_lint(machine)
    machine.user(FORCE, DOCKER, lint)
    words = (str(policies[0]), str(machine.user_file))
    ended = diff(run, journal, *words, "--json")
    assert {one["why"] for one in ended.json["unknown"]} == {"external"}
    assert not marker.exists()
    assert diff(run, journal, *words, "--external", "skip").code == 0
    assert not marker.exists()
    diff(run, journal, *words, "--external", "run")
    assert marker.exists()


def test_a_recorded_verdict_stands_for_the_same_hook(run: Run, machine: Machine, policies: tuple[Path, Path]):
    lint, _ = with_lint(machine, "false")
    machine.user(FORCE, lint + '\nexit = { "1" = "deny" }\n')
    path = machine.home / "linted.db"
    record(path, ("ls",))
    same = machine.user_file.read_text()
    policies[0].write_text(same)
    ended = diff(run, path, str(machine.user_file), str(policies[0]), "--json")
    assert ended.code == 0
    assert (ended.json["totals"]["same"], ended.json["totals"]["unknown"]) == (2, 0)
    policies[1].write_text(same.replace('"1" = "deny"', '"1" = "ask"'))
    ended = diff(run, path, str(machine.user_file), str(policies[1]), "--json")
    assert {one["what"] for one in ended.json["unknown"]} == {"lint"}


def test_a_trusted_project_has_its_recorded_verdicts_until_a_file_of_it_changes(
    run: Run, machine: Machine, trust: Callable[..., None]
):
    script = machine.file("check.sh", "#!/bin/sh\nexit 1\n", 0o755)
    entry = LINT.replace(', "{marker}"', "").format(program="./check.sh") + 'exit = { "1" = "deny" }\n'
    machine.hooks(FORCE, entry)
    trust()
    path = machine.home / "trusted.db"
    record(path, ("ls",), str(machine.project))
    ended = diff(run, path, str(machine.project), str(machine.project), "--json")
    assert (ended.json["totals"]["same"], ended.json["totals"]["unknown"], ended.json["untrusted"]) == (2, 0, [])
    script.write_text("#!/bin/sh\nexit 0\n")
    ended = diff(run, path, str(machine.project), str(machine.project), "--json", "--external", "run")
    assert ended.json["untrusted"] == ["lint"]


def test_nothing_is_written(run: Run, journal: Path, machine: Machine, policies: tuple[Path, Path]):
    machine.user(FORCE)
    before = journal.read_bytes()
    names = {path.name for path in machine.home.iterdir()}
    diff(run, journal, *map(str, policies))
    run("replay", "--journal", str(journal))
    assert journal.read_bytes() == before
    assert {path.name for path in machine.home.iterdir()} - names <= {"journal.db-shm", "journal.db-wal"}


# --- secrets --------------------------------------------------------------------------------


def test_a_rule_that_looks_for_a_secret_is_unknown_and_another_is_not(
    run: Run, machine: Machine, policies: tuple[Path, Path]
):
    path = machine.home / "secret.db"
    token = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7aB3dE6gH9"
    record(path, (f"curl -H 'X-Token: {token}' https://example.com",))
    policies[0].write_text(DOCKER)
    by_token = RULE.format(name="no-token", rule='target.command.contains("gh" + "p_")', control="deny")
    policies[1].write_text(DOCKER + by_token)
    ended = diff(run, path, *map(str, policies), "--json")
    assert [(one["why"], one["what"]) for one in ended.json["unknown"]] == [
        ("redacted", "step.args.command (github token)")
    ]
    assert ended.code == 0
    assert diff(run, path, *map(str, policies), "--fail-on", "unknown").code == 2
    by_verb = RULE.format(name="no-curl", rule='target.command.contains("curl")', control="deny")
    policies[1].write_text(DOCKER + by_verb)
    ended = diff(run, path, *map(str, policies), "--json")
    assert (ended.json["totals"]["changed"], ended.json["totals"]["unknown"]) == (2, 0)


# --- sources --------------------------------------------------------------------------------


def test_an_exported_file_and_stdin_say_the_same_as_the_journal(
    run: Run, journal: Path, machine: Machine, policies: tuple[Path, Path]
):
    file = machine.home / "journal.jsonl"
    file.write_text(run("export", "--journal", str(journal)).out)
    words = [*map(str, policies), "--json"]
    wanted = diff(run, journal, *words).json["changes"]
    found = [diff(run, file, *words).json["changes"]]
    with file.open("rb") as stdin:
        done = subprocess.run(
            [*COMMAND, "diff", "--journal", "-", *words], stdin=stdin, capture_output=True, check=False
        )
    found.append(json.loads(done.stdout)["changes"])
    for changes in found:
        assert [_without_journal(one) for one in changes] == [_without_journal(one) for one in wanted]


def _without_journal(change: dict[str, Any]) -> dict[str, Any]:
    return {**change, "example": {**change["example"], "journal": ""}}


def test_several_journals_are_read_as_one(run: Run, journal: Path, machine: Machine, policies: tuple[Path, Path]):
    other = machine.home / "other.db"
    record(other)
    ended = run("diff", "--journal", str(journal), "--journal", str(other), *map(str, policies), "--json")
    assert ended.json["totals"]["steps"] == 20


def test_several_processes_find_what_one_finds(
    run: Run, journal: Path, policies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    from fairlead.replay import parallel

    words = [*map(str, policies), "--json"]
    alone = diff(run, journal, *words, "--jobs", "1").json
    monkeypatch.setattr(parallel, "SMALL", 0)
    together = diff(run, journal, *words, "--jobs", "2").json
    for one in (alone, together):
        one["totals"].pop("took")
    assert together == alone


@pytest.mark.parametrize(
    "content",
    [b"", b"SQLite format 3\0", b"SQLite format 3\0" + b"x" * 5000, b"hello", b"{}\n{\n", b'{"a": 1}\n', b"\0"],
)
def test_a_file_that_is_no_journal_is_said(run: Run, machine: Machine, policies: tuple[Path, Path], content: bytes):
    path = machine.home / "odd"
    path.write_bytes(content)
    ended = diff(run, path, *map(str, policies))
    assert "Traceback" not in ended.all
    assert ended.code == 1 or "is no record" in ended.out


def test_a_missing_journal_is_said(run: Run, policies: tuple[Path, Path]):
    ended = run("diff", *map(str, policies))
    assert ended.code == 1
    assert "there is no journal" in ended.err


def test_a_damaged_record_is_counted_and_named(run: Run, journal: Path, policies: tuple[Path, Path]):
    import sqlite3

    db = sqlite3.connect(journal)
    db.execute("UPDATE records SET body = ? WHERE seq = 3", (b'{"step": 7',))
    db.execute("DELETE FROM records WHERE seq = 5")
    db.commit()
    db.close()
    ended = diff(run, journal, *map(str, policies), "--json")
    assert ended.json["totals"]["steps"] == 8
    assert (ended.json["gaps"]["unreadable"], ended.json["gaps"]["missing_numbers"]) == (1, 1)
    assert "record 3 of" in ended.json["gaps"]["first_bad"]


def test_a_policy_with_mistakes_is_said_with_the_line(run: Run, journal: Path, policies: tuple[Path, Path]):
    policies[1].write_text(FORCE.replace("deny =", "dent ="))
    ended = diff(run, journal, *map(str, policies))
    assert ended.code == 1
    assert "new.toml" in ended.err
    assert "dent" in ended.err


def test_an_interruption_ends_it_and_is_said(
    run: Run, journal: Path, policies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    from fairlead.cli.diff import Bar

    monkeypatch.setattr(Bar, "__call__", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    for words in (("diff", *map(str, policies)), ("replay",)):
        ended = run(*words, "--journal", str(journal))
        assert ended.code == 130
        assert "interrupted" in ended.err
        assert ended.out == ""


def test_an_interruption_leaves_no_process(
    run: Run, journal: Path, policies: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
):
    from fairlead.cli.diff import Bar
    from fairlead.replay import parallel

    monkeypatch.setattr(parallel, "SMALL", 0)
    monkeypatch.setattr(Bar, "__call__", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    assert diff(run, journal, *map(str, policies), "--jobs", "2").code == 130
    assert multiprocessing.active_children() == []


def test_an_interruption_while_stdin_is_read_ends_it(policies: tuple[Path, Path]):
    process = subprocess.Popen([*COMMAND, "diff", "--journal", "-", *map(str, policies)], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(b"{}\n" * 200_000)  # more than a pipe holds, so it is being read when this ends
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130
    assert b"Traceback" not in err


# --- replay ---------------------------------------------------------------------------------


def test_replay_reproduces_a_journal_of_the_policy_in_force(run: Run, machine: Machine):
    machine.user(FORCE, DOCKER)
    path = machine.home / "own.db"
    record(path)
    ended = run("replay", "--journal", str(path))
    assert ended.code == 0, ended.all
    assert "10 of 10 decisions reproduced" in ended.out


def test_replay_says_which_hook_is_another_one(run: Run, machine: Machine):
    machine.user(FORCE, DOCKER)
    path = machine.home / "own.db"
    record(path)
    machine.user(DOCKER)
    ended = run("replay", "--journal", str(path), "--json")
    assert ended.code == 2
    assert {(one["cause"], one["what"]) for one in ended.json["differences"]} == {("policy", "no-force-push")}
