"""Test cases of a policy: how they are read, run and saved, on the command line and in pytest."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replay_scenes import PURE, SECRET, Human, dispatch_all, hooks_of, record, traffic_of

from fairlead import Hooks
from fairlead.errors import FairleadError
from fairlead.lifecycle import BeforeTool
from fairlead.replay.cases import CaseWriter, read_cases, run_cases
from fairlead.replay.coverage import PolicyCoverage, explain
from fairlead.replay.judge import Judge
from fairlead.replay.report import ReplayReport
from fairlead.replay.reproduce import Reproducer

POLICY = """
[[hook]]
name = "no-force-push"
on = "before_tool"
match = { kind = "shell" }
phase = "gate"
rule = 'target.command.contains("--force")'
deny = "Force-push is off here."
"""


def problems(cases: Path, hooks: Hooks) -> list[str | None]:
    return [one.problem for one in asyncio.run(run_cases(Judge(hooks), read_cases(cases)))]


def save(journal: Path, hooks: Hooks, cases: Path, **options: bool) -> None:
    writer = CaseWriter(**options)
    with traffic_of(journal) as traffic, cases.open("wb") as file:
        reproducer = Reproducer(
            Judge(hooks, enforced=False),
            ReplayReport("p"),
            lambda recorded, same, cold: file.write(writer.line(recorded, reproduced=same, cold=cold)),
        )
        asyncio.run(reproducer.run(traffic, traffic.groups()))


# --- running --------------------------------------------------------------------------------


def test_a_case_checks_what_it_names(tmp_path: Path):
    file = tmp_path / "cases.toml"
    file.write_text("""
[[case]]
command = "git push --force"
control = "deny"
hook = "force_push"

[[case]]
command = "git status"
control = "proceed"
change = { command = "git status -v" }

[[case]]
command = "git push --force"
control = "proceed"

[[case]]
command = "ls"
hook = "force_push"

[[case]]
command = "git status"
change = {}
""")
    found = problems(file, hooks_of("force_push", "verbose"))
    assert found[:2] == [None, None]
    assert found[2] == "expected proceed, got deny, change args by force_push"
    assert found[3] == "expected force_push to decide, and no hook did"
    assert found[4] is not None
    assert found[4].startswith("expected no change, got")


def test_cases_of_one_session_share_what_hooks_remember_and_others_do_not(tmp_path: Path):
    file = tmp_path / "cases.toml"
    one = '[[case]]\nstep = {{ event = "before_tool", session_id = "s" }}\ncontrol = "{}"\n'
    alone = '[[case]]\ncommand = "ls"\ncontrol = "proceed"\n'
    file.write_text("".join(one.format(control) for control in ("proceed",) * 3 + ("deny",)) + alone * 5)
    assert problems(file, hooks_of("rate")) == [None] * 9


@pytest.mark.parametrize("text", [
    "", "[[case]]\n", '[[case]]\ncommand = "ls"\ncontorl = "deny"', '[[case]]\ncommand = "ls"\ncontrol = "refuse"',
    '[[case]]\ncommand = "ls"\nchange = { nothing = 1 }', '[[case]]\nevent = "before_tol"', "case = 1", "x = 1",
    '[[case]]\ncommand = 1', "[[case]", '[[case]]\nstep = 1',
])  # fmt: skip
def test_a_mistake_in_a_file_of_cases_is_said_with_its_place(tmp_path: Path, text: str):
    file = tmp_path / "cases.toml"
    file.write_text(text)
    with pytest.raises(FairleadError, match=r"cases\.toml"):
        read_cases(file)


@pytest.mark.parametrize("line", [b"{", b"[]", b'{"step": {"event": "x"}}', b"\xff", b'{"step": {"fairlead": 9}}'])
def test_a_mistake_in_jsonl_is_said_with_its_line(tmp_path: Path, line: bytes):
    file = tmp_path / "cases.jsonl"
    file.write_bytes(b'{"command": "ls"}\n' + line)
    with pytest.raises(FairleadError, match=r"cases\.jsonl"):
        read_cases(file)


# --- saving ---------------------------------------------------------------------------------


@given(
    names=st.lists(st.sampled_from(sorted(PURE)), min_size=1, max_size=6, unique=True),
    commands=st.lists(
        st.lists(st.sampled_from(("ls", "git push --force", "rm -rf /home/ana/x", "boom", f"curl {SECRET}")),
                 min_size=1, max_size=10), min_size=1, max_size=3),
)  # fmt: skip
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
def test_what_is_saved_holds_for_the_policy_that_made_it(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], commands: list[list[str]]
):
    folder = tmp_path_factory.mktemp("saved")
    record(folder / "journal.db", hooks_of(*names, approver=Human()), lambda hooks: dispatch_all(hooks, commands))
    save(folder / "journal.db", hooks_of(*names), folder / "cases.jsonl")
    found = problems(folder / "cases.jsonl", hooks_of(*names))
    assert found == [None] * len(found)
    assert "broken" in names or len(found) == sum(map(len, commands))


def test_a_change_of_the_policy_fails_a_saved_case(tmp_path: Path):
    record(tmp_path / "j.db", hooks_of("force_push"), lambda hooks: dispatch_all(hooks, [["ls", "git push --force"]]))
    save(tmp_path / "j.db", hooks_of("force_push"), tmp_path / "cases.jsonl")
    assert problems(tmp_path / "cases.jsonl", hooks_of("budget")) == [None, "expected deny, got proceed"]


def test_names_are_not_saved_unless_asked_for(tmp_path: Path):
    async def work(hooks: Hooks) -> None:
        session = hooks.session("s", user_id="anastasia", cwd="/srv/secret-project")
        command = f"cat /home/anastasia/x /srv/secret-project/y {SECRET}"
        await session.dispatch(session.step(BeforeTool, tool="bash", args={"command": command}))

    record(tmp_path / "j.db", hooks_of("force_push"), work)
    save(tmp_path / "j.db", hooks_of("force_push"), tmp_path / "cases.jsonl")
    text = (tmp_path / "cases.jsonl").read_text()
    assert "cat /home/user/x /project-1/y" in text or "cat /home/user/x /project-2/y" in text
    for private in ("anastasia", "secret-project", SECRET):
        assert private not in text
    save(tmp_path / "j.db", hooks_of("force_push"), tmp_path / "cases.jsonl", who=True)
    assert "anastasia" in (tmp_path / "cases.jsonl").read_text()


# --- coverage -------------------------------------------------------------------------------


def test_coverage_says_why_a_hook_never_fires(tmp_path: Path):
    def hooks() -> Hooks:
        made = hooks_of("force_push")

        @made.on.before_tool(kind="fetch", phase="gate", name="fetches")
        def fetches(step: object) -> None: ...

        @made.on.before_tool(kind="shell", phase="gate", name="quiet")
        def quiet(step: object) -> None: ...

        @made.on.before_tool(phase="gate", name="twin")
        def twin(step: object) -> object:
            return PURE["force_push"](step)

        return made

    record(tmp_path / "j.db", hooks(), lambda made: dispatch_all(made, [["ls", "git push --force"]]))
    judge = Judge(hooks())
    coverage = PolicyCoverage(judge)
    with traffic_of(tmp_path / "j.db") as traffic:
        asyncio.run(Reproducer(judge, ReplayReport("p")).run(traffic, traffic.groups()))
    found = {one.name: one for one in coverage.hooks}
    assert {name: one.status for name, one in found.items()} == {
        "force_push": "shadowed", "twin": "shadowed", "quiet": "never fires", "fetches": "no candidates",
    }  # fmt: skip
    assert explain(found["quiet"]) == "never fires: none of 2 candidates"
    assert explain(found["twin"]) == "shadowed by force_push: fires 1 times among 2 candidates, never alone"
    assert coverage.percent == 50.0


def test_a_hook_that_another_one_always_ends_before_is_not_reached(tmp_path: Path):
    hooks = hooks_of("force_push")
    first = Hooks()
    first.add(lambda step: PURE["force_push"](step), on="before_tool", name="first", priority=1)
    first.add(lambda step: None, on="before_tool", name="second")
    record(tmp_path / "j.db", hooks, lambda made: dispatch_all(made, [["git push --force"]]))
    judge = Judge(first)
    coverage = PolicyCoverage(judge)
    with traffic_of(tmp_path / "j.db") as traffic:
        asyncio.run(Reproducer(judge, ReplayReport("p")).run(traffic, traffic.groups()))
    assert [one.status for one in coverage.hooks] == ["fires", "not reached"]


# --- pytest ---------------------------------------------------------------------------------


def test_pytest_runs_the_cases_that_its_configuration_lists(tmp_path: Path):
    (tmp_path / "fairlead.toml").write_text(POLICY)
    (tmp_path / "pytest.ini").write_text("[pytest]\nfairlead_cases = cases.jsonl\n")
    (tmp_path / "test_other.py").write_text("def test_one(): pass\n")
    (tmp_path / "other.jsonl").write_text("no case\n")
    lines = [
        {"name": "force", "command": "git push --force", "control": "deny"},
        {"name": "plain", "command": "git push", "control": "deny"},
    ]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0"], cwd=tmp_path,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 1
    assert "1 failed, 2 passed" in done.stdout
    assert "cases.jsonl:2: expected deny, got proceed" in done.stdout
