"""Claude Code started by other programs than a terminal, with their variables, and in another agent's shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from drivers import REASON, WANTED, Driver, a_driver, binary

from fairlead.hosts.clis.claude_code.probe import ClaudeCode
from fairlead.hosts.clis.probe.model import Model, Say

pytestmark = pytest.mark.clis

ENTRY_POINTS = ("claude-desktop", "remote", "claude-code-github-action", "sdk-ts", "sdk-py", "ssh-remote")


def driver_of(cli: str, folder: Path) -> Iterator[Driver]:
    for needed in {cli, "claude_code"}:
        if needed not in WANTED or not binary(needed).exists():
            pytest.skip(f"{needed} is not here: `make e2e-clis` fetches it")
    with a_driver(cli, folder) as made:
        yield made


@pytest.fixture
def claude(folder: Path) -> Iterator[Driver]:
    yield from driver_of("claude_code", folder)


@pytest.fixture
def copilot(folder: Path) -> Iterator[Driver]:
    yield from driver_of("copilot", folder)


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
def test_the_policy_holds_at_each_entry_point_and_the_record_names_it(claude: Driver, entry_point: str) -> None:
    claude.install()
    claude.program.env["CLAUDE_CODE_ENTRYPOINT"] = entry_point
    model, ran = claude.run(claude.program.shell("touch forbidden"), Say("FINE"))
    assert not (claude.project / "forbidden").exists(), ran.text
    assert model.received(REASON)
    (record,) = claude.records(event="before_tool")
    assert record["step"]["metadata"] == {"entry_point": entry_point}
    assert claude.fairlead("coverage").returncode == 0
    assert entry_point in claude.fairlead("coverage").stdout


def test_claude_code_in_the_shell_of_copilot_is_claude_code(copilot: Driver) -> None:
    copilot.install()
    assert copilot.fairlead("install", "claude").returncode == 0
    inner = ClaudeCode(binary("claude_code"), copilot.home, copilot.project)
    with Model(inner.shell("touch forbidden"), inner.shell("touch allowed"), Say("FINE")) as model:
        variables = [f"{name}={shlex.quote(value)}" for name, value in inner.variables(model).items()]
        command = " ".join([*variables, *map(shlex.quote, inner.argv("do it"))])
        copilot.run(copilot.program.shell(command), Say("FINE"))
    assert model.received(REASON)
    assert not (copilot.project / "forbidden").exists()
    assert (copilot.project / "allowed").exists()
    hosts = [record["step"]["host"] for record in copilot.records(event="before_tool")]
    assert sorted(hosts) == ["claude_code", "claude_code", "copilot"]
