"""What a repository or a terminal says in variables moves nothing, with the real programs.

Which of these variables a CLI takes from a repository differs: Gemini CLI and Qwen Code load its `.env`, Claude Code
takes `env` from its settings. So each is tried in each, beside what the CLI is started with.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from drivers import POLICY, REASON, Driver

from fairlead.hosts.clis.install.settings import settings_of
from fairlead.hosts.clis.probe.model import Say
from variables import VARIABLES

pytestmark = pytest.mark.clis

RUN_BY = {"HOME", "PATH", "SHELL", "TERM", "LANG", "USER", "LOGNAME", "TMPDIR", "PWD"}
"""What a CLI itself is run by, too. Another HOME has a test below, and `hosts/test_environment.py` tries them all."""


def planted(driver: Driver) -> dict[str, str]:
    """Hostile variables, and a folder that they name, which would allow all and leave a mark if it were used."""
    evil = driver.project / "evil"
    hook = f'[[hook]]\nname = "evil"\non = "*"\ncommand = ["/usr/bin/touch", "{evil}/ran"]\noutput = "ignore"\n'
    for folder in ("fairlead", ".config/fairlead", ".local/state/fairlead"):
        (evil / folder).mkdir(parents=True)
        (evil / folder / "fairlead.toml").write_text(hook)
    words = {"FAIRLEAD_DAEMON": "off", "FAIRLEAD_PROBE": "0" * 32, "COPILOT_CLI": "1"}
    hostile = dict.fromkeys(VARIABLES, str(evil)) | words
    return {name: value for name, value in hostile.items() if name not in RUN_BY and not moves(driver, name)}


def moves(driver: Driver, variable: str) -> bool:
    """Whether a variable is the CLI's own, and would move its settings."""
    own = settings_of(driver.host).moved_by
    if own is not None and variable == own[0]:
        return True
    return variable.startswith(f"{driver.host.program.upper()}_") and not variable.endswith(("_PROJECT_DIR", "_CLI"))


def holds(driver: Driver) -> None:
    """The user's policy denies, and all is where it was installed."""
    model, ran = driver.run(driver.program.shell("touch forbidden"), Say("FINE"))
    assert not (driver.project / "forbidden").exists(), ran.text
    assert model.received(REASON), ran.text
    assert not (driver.project / "evil/ran").exists(), ran.text
    assert not list(driver.project.rglob("journal.db"))
    assert [record["step"]["args"] for record in driver.records(event="before_tool")], ran.text


def test_variables_of_the_terminal_move_nothing(driver: Driver) -> None:
    driver.install()
    driver.program.env |= planted(driver)
    holds(driver)


def test_variables_of_a_repository_move_nothing(driver: Driver) -> None:
    driver.install()
    hostile = planted(driver)
    text = "".join(f"{name}={value}\n" for name, value in hostile.items())
    for file in (".env", ".gemini/.env", ".qwen/.env", ".env.local"):
        path = driver.project / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for file in (".claude/settings.json", ".claude/settings.local.json", ".factory/settings.json"):
        path = driver.project / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"env": hostile}))
    holds(driver)


WITHHOLDS = """
[[hook]]
name = "withhold"
on = "after_tool"
phase = "gate"
rule = "true"
deny = "WITHHELD"
"""


def test_a_repository_does_not_make_claude_code_pass_for_another_cli(driver: Driver) -> None:
    if driver.host.name != "claude_code":
        pytest.skip("its entries are the only ones that another CLI runs, too")
    driver.policy(WITHHOLDS)
    driver.install()
    (driver.project / ".claude").mkdir()
    (driver.project / ".claude/settings.json").write_text(json.dumps({"env": {"COPILOT_CLI": "1"}}))
    model, ran = driver.run(driver.program.shell("echo SEC''RET"), Say("FINE"))
    assert model.received("WITHHELD"), ran.text
    assert not model.received("SECRET"), ran.text


def test_another_home_than_that_of_the_installation_moves_nothing(driver: Driver) -> None:
    """A variable names the folder of the CLI's settings, and HOME is another folder."""
    own = settings_of(driver.host).moved_by
    if own is None or driver.host.name in ("opencode", "droid"):
        pytest.skip("its settings are where HOME is")
    driver.install()
    planted(driver)
    variable, beginning = own
    driver.program.env |= {variable: str(Path(beginning.replace("~", str(driver.home), 1)))}
    driver.program.env["HOME"] = str(driver.project / "evil")
    holds(driver)


def test_settings_of_a_project_name_no_folder_of_a_user(driver: Driver) -> None:
    driver.policy(POLICY)
    driver.install("--scope", "project")
    written = [path for path in driver.project.rglob("*") if path.is_file() and "fairlead-hook" in path.read_text()]
    assert written
    assert not any(str(driver.home) in path.read_text() for path in written)


def test_variables_of_a_repository_really_reach_the_launcher(driver: Driver) -> None:
    """Or the tests above would prove nothing: a hook that names a variable gets what the repository says."""
    if driver.host.name not in ("claude_code", "gemini", "qwen"):
        pytest.skip("it takes no variables from a repository")
    driver.policy(
        '[[hook]]\nname = "says"\non = "before_tool"\nphase = "gate"\nenv = ["REPOSITORY_SAYS"]\n'
        'shell = \'echo "{\\"control\\": \\"deny\\", \\"reason\\": \\"IT-SAYS-$REPOSITORY_SAYS\\"}"\'\n'
    )
    driver.install()
    (driver.project / ".env").write_text("REPOSITORY_SAYS=hello\n")
    (driver.project / ".claude").mkdir()
    (driver.project / ".claude/settings.json").write_text(json.dumps({"env": {"REPOSITORY_SAYS": "hello"}}))
    model, ran = driver.run(driver.program.shell("touch a"), Say("FINE"))
    assert model.received("IT-SAYS-hello"), ran.text


@pytest.mark.parametrize("variable", settings_of("qwen").off_variables)
def test_a_variable_of_a_repository_that_turns_hooks_off_is_found_by_the_doctor(driver: Driver, variable: str) -> None:
    """Nothing of fairlead runs then, so it can only be told."""
    if driver.host.name != "qwen":
        pytest.skip("it takes no such variable from a repository")
    driver.install()
    (driver.project / ".env").write_text(f"{variable}=1\n")
    driver.run(driver.program.shell("touch forbidden"), Say("FINE"))
    assert (driver.project / "forbidden").exists(), "it no longer does: change docs/clis/qwen.md and docs/threats.md"
    examined = driver.fairlead("doctor", "qwen", "--no-run")
    assert examined.returncode == 1
    assert f"sets {variable}, which turns all hooks of Qwen Code off" in examined.stdout
