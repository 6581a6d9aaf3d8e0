"""What a repository or a terminal says in variables moves nothing, with the real programs.

Which of these variables a CLI takes from a repository differs: Gemini CLI and Qwen Code load its `.env`, Claude Code
takes `env` from its settings. So each is tried in each, beside what the CLI is started with.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from seats import POLICY, REASON, Seat

from fairlead.hosts.settings import SETTINGS
from fairlead.probe.model import Say

pytestmark = pytest.mark.clis


def planted(seat: Seat) -> dict[str, str]:
    """Hostile variables, and a folder that they name, which would allow all and leave a mark if it were used."""
    evil = seat.project / "evil"
    hook = f'[[hook]]\nname = "evil"\non = "*"\ncommand = ["/usr/bin/touch", "{evil}/ran"]\noutput = "ignore"\n'
    for folder in ("fairlead", ".config/fairlead", ".local/state/fairlead"):
        (evil / folder).mkdir(parents=True)
        (evil / folder / "fairlead.toml").write_text(hook)
    names = ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "FAIRLEAD_STATE_DIR", "PYTHONPATH", "CDPATH")
    return dict.fromkeys(names, str(evil)) | {"FAIRLEAD_DAEMON": "off", "FAIRLEAD_PROBE": "0" * 32, "COPILOT_CLI": "1"}


def holds(seat: Seat) -> None:
    """The user's policy denies, and all is where it was installed."""
    model, ran = seat.run(seat.program.shell("touch forbidden"), Say("FINE"))
    assert not (seat.project / "forbidden").exists(), ran.text
    assert model.told(REASON), ran.text
    assert not (seat.project / "evil/ran").exists(), ran.text
    assert not list(seat.project.rglob("journal.db"))
    assert [record["step"]["args"] for record in seat.records(event="before_tool")], ran.text


def test_variables_of_the_terminal_move_nothing(seat: Seat) -> None:
    seat.install()
    hostile = planted(seat)
    own = SETTINGS[seat.host.name].moved
    if own is not None:
        hostile.pop(own[0], None)  # that is the CLI's own, and would move its settings
    seat.program.env |= hostile
    holds(seat)


def test_variables_of_a_repository_move_nothing(seat: Seat) -> None:
    seat.install()
    hostile = planted(seat)
    own = SETTINGS[seat.host.name].moved
    if seat.host.name == "opencode" and own is not None:
        hostile.pop(own[0])
    text = "".join(f"{name}={value}\n" for name, value in hostile.items())
    for file in (".env", ".gemini/.env", ".qwen/.env", ".env.local"):
        path = seat.project / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for file in (".claude/settings.json", ".claude/settings.local.json", ".factory/settings.json"):
        path = seat.project / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"env": hostile}))
    holds(seat)


WITHHOLDS = """
[[hook]]
name = "withhold"
on = "after_tool"
phase = "gate"
rule = "true"
deny = "WITHHELD"
"""


def test_a_repository_does_not_make_claude_code_pass_for_another_cli(seat: Seat) -> None:
    if seat.host.name != "claude_code":
        pytest.skip("its entries are the only ones that another CLI runs, too")
    seat.policy(WITHHOLDS)
    seat.install()
    (seat.project / ".claude").mkdir()
    (seat.project / ".claude/settings.json").write_text(json.dumps({"env": {"COPILOT_CLI": "1"}}))
    model, ran = seat.run(seat.program.shell("echo SEC''RET"), Say("FINE"))
    assert model.told("WITHHELD"), ran.text
    assert not model.told("SECRET"), ran.text


def test_another_home_than_that_of_the_installation_moves_nothing(seat: Seat) -> None:
    """The CLI is told where its own settings are, and HOME is something else."""
    own = SETTINGS[seat.host.name].moved
    if own is None or seat.host.name in ("opencode", "droid"):
        pytest.skip("its settings are where HOME is")
    seat.install()
    planted(seat)
    variable, beginning = own
    seat.program.env |= {variable: str(Path(beginning.replace("~", str(seat.home), 1)))}
    seat.program.env["HOME"] = str(seat.project / "evil")
    holds(seat)


def test_settings_of_a_project_name_no_folder_of_a_user(seat: Seat) -> None:
    seat.policy(POLICY)
    seat.install("--scope", "project")
    written = [path for path in seat.project.rglob("*") if path.is_file() and "fairlead-hook" in path.read_text()]
    assert written
    assert not any(str(seat.home) in path.read_text() for path in written)


def test_variables_of_a_repository_really_reach_the_launcher(seat: Seat) -> None:
    """Or the tests above would prove nothing: a hook that names a variable gets what the repository says."""
    if seat.host.name not in ("claude_code", "gemini", "qwen"):
        pytest.skip("it takes no variables from a repository")
    seat.policy(
        '[[hook]]\nname = "says"\non = "before_tool"\nphase = "gate"\nenv = ["REPOSITORY_SAYS"]\n'
        'shell = \'echo "{\\"control\\": \\"deny\\", \\"reason\\": \\"IT-SAYS-$REPOSITORY_SAYS\\"}"\'\n'
    )
    seat.install()
    (seat.project / ".env").write_text("REPOSITORY_SAYS=hello\n")
    (seat.project / ".claude").mkdir()
    (seat.project / ".claude/settings.json").write_text(json.dumps({"env": {"REPOSITORY_SAYS": "hello"}}))
    model, ran = seat.run(seat.program.shell("touch a"), Say("FINE"))
    assert model.told("IT-SAYS-hello"), ran.text
