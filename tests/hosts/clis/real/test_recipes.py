"""The recipes of docs/clis/machines.md, as they stand there, on a clean machine with the real CLIs."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from drivers import CLIS, POLICY, REASON, Driver, a_driver, binary
from machine import OwnMachine

from fairlead.hosts.clis.probe.model import Model, Say

pytestmark = pytest.mark.clis
PAGE = Path(__file__).parents[4] / "docs/clis/machines.md"
WHEELS = CLIS / "recipes"


def recipe(title: str) -> list[str]:
    """The commands of a section: the steps of a workflow, the lines of a Dockerfile, or a script."""
    section = PAGE.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    kind, _, block = section.partition("```")[2].partition("```")[0].partition("\n")
    if kind == "yaml":
        steps = re.findall(r"^( *)(?:- )?run: \|\n((?:\1 +.*\n)+)", block, re.MULTILINE)
        return [re.sub(r"^ +", "", body, flags=re.MULTILINE) for _, body in steps]
    if kind == "dockerfile":
        copied = [f"cp -r {line.split()[1]} {line.split()[2]}" for line in block.splitlines() if "COPY" in line]
        return [*copied, *(line.removeprefix("RUN ") for line in block.splitlines() if line.startswith("RUN "))]
    return [block]


class CleanMachine:
    """A machine with a clean home, a clone of a project with a reviewed policy, and nothing of fairlead."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        if not (WHEELS / "fetched").exists():
            pytest.skip("fairlead's wheels are not here: `make e2e-recipes` makes them")
        self.machine = OwnMachine(driver.home.parent, driver.home)
        (driver.home / ".config/fairlead/fairlead.toml").unlink()
        policy = driver.project / "policy"
        policy.mkdir()
        (policy / "fairlead.toml").write_text(POLICY)
        digest = hashlib.sha256(POLICY.encode()).hexdigest()
        (policy / "fairlead.toml.sha256").write_text(f"{digest}  policy/fairlead.toml\n")
        self.bin = driver.home.parent / "bin"
        self.bin.mkdir()
        (self.bin / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        (self.bin / "sudo").chmod(0o755)
        driver.prefix = self.machine.prefix

    def run(self, script: str, *, fails: bool = False, **variables: str) -> str:
        """Run a step as a runner does: with `sh -e`, in the clone."""
        path = f"{self.bin}:{binary(self.driver.host.name).parent}:{self.driver.environ['PATH']}"
        about = {"PATH": path, "FAIRLEAD": "fairlead[rules,serve]", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(WHEELS)}
        ran = subprocess.run(
            [*self.driver.prefix, "/bin/sh", "-e", "-c", script], cwd=self.driver.project, timeout=240,
            env=self.driver.environ | about | variables, capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert (ran.returncode != 0) is fails, ran.stdout[-3000:] + ran.stderr[-3000:]
        return ran.stdout

    def run_agent(self, *, words: str | None = None) -> Model:
        """Let the agent try a denied and a harmless command: by a step of the recipe, or as it is run headless."""
        program = self.driver.program
        with Model(program.shell("touch forbidden"), program.shell("touch allowed"), Say("FINE")) as model:
            program.prepare(model)
            argv = [*self.driver.prefix, *program.argv("do it")] if words is None else None
            variables = program.variables(model) | {"TERM": "dumb"}
            if argv is None:
                self.run(str(words), **variables)
            else:
                subprocess.run(
                    argv, cwd=self.driver.project, env=self.driver.environ | variables, timeout=120,
                    stdin=subprocess.DEVNULL, capture_output=True, check=False,
                )  # fmt: skip
        return model

    def ran(self, name: str) -> bool:
        return (self.driver.project / name).exists()

    def assert_that_the_policy_holds(self, model: Model) -> None:
        assert (self.ran("forbidden"), self.ran("allowed")) == (False, True), [r.text[-500:] for r in model.requests]
        assert model.received(REASON)


@pytest.fixture
def clean(request: pytest.FixtureRequest, folder: Path) -> Iterator[CleanMachine]:
    cli = request.param
    if not binary(cli).exists():
        pytest.skip(f"{cli} is not installed: `make e2e-clis` fetches it")
    with a_driver(cli, folder) as driver:
        yield CleanMachine(driver)


def on(*clis: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("clean", clis, indirect=True)


@on("claude_code")
def test_github_actions(clean: CleanMachine) -> None:
    set_up, agent, keep = recipe("GitHub Actions")
    clean.run(set_up)
    clean.assert_that_the_policy_holds(clean.run_agent(words=agent))
    clean.run(keep)
    lines = [json.loads(line) for line in (clean.driver.project / "fairlead.jsonl").read_text().splitlines()]
    steps = [line["step"] for line in lines if "step" in line]
    commands = [step["target"]["command"] for step in steps if step["event"] == "before_tool"]
    assert commands == ["touch forbidden", "touch allowed"]


@on("claude_code")
def test_another_policy_than_the_one_that_was_reviewed_ends_the_job(clean: CleanMachine) -> None:
    (clean.driver.project / "policy/fairlead.toml").write_text("")
    clean.run(recipe("GitHub Actions")[0], fails=True)
    assert not (clean.machine.etc / "claude-code/managed-settings.json").exists()


@on("claude_code", "codex")
def test_devcontainers(clean: CleanMachine) -> None:
    for command in recipe("Devcontainers"):
        clean.run(command)
    clean.assert_that_the_policy_holds(clean.run_agent())


def commit_entries(clean: CleanMachine) -> None:
    """What a developer commits: the project's entries, from another machine."""
    ran = clean.driver.fairlead("install", clean.driver.host.name, "--scope", "project", HOME=str(clean.bin.parent))
    assert ran.returncode == 0, ran.stderr


@on("copilot")
def test_copilots_cloud_agent(clean: CleanMachine) -> None:
    commit_entries(clean)
    for step in recipe("Copilot's cloud agent"):
        clean.run(step)
    clean.assert_that_the_policy_holds(clean.run_agent())


@on("claude_code")
def test_claude_codes_cloud_sessions(clean: CleanMachine) -> None:
    commit_entries(clean)
    for script in recipe("Claude Code's cloud sessions"):
        clean.run(script, CLAUDE_PROJECT_DIR=str(clean.driver.project))
    clean.assert_that_the_policy_holds(clean.run_agent())


@on("claude_code", "copilot")
def test_where_the_set_up_failed_the_entry_itself_refuses(clean: CleanMachine) -> None:
    commit_entries(clean)
    clean.run_agent()
    assert (clean.ran("forbidden"), clean.ran("allowed")) == (False, False)
