"""The same fairlead.toml in every agent CLI, with the real programs and a model that says a script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from drivers import POLICY, REASON, Driver

from fairlead.hosts.clis.probe.model import Say

pytestmark = pytest.mark.clis

REWRITE = """
import json, sys
step = json.load(sys.stdin)
args = step["args"]
new = json.loads(json.dumps(args).replace("original", "rewritten"))
print(json.dumps({"args": new} if new != args else {}))
"""
KEEP = """
import json, sys
step = json.load(sys.stdin)
print(json.dumps({"control": "extend", "reason": "KEEP-GOING"} if step["continues_so_far"] == 0 else {}))
"""


def hook(name: str, on: str, command: list[str], more: str = "") -> str:
    return f'[[hook]]\nname = "{name}"\non = "{on}"\ncommand = {command!r}\n{more}\n'


def script(driver: Driver, name: str, text: str) -> list[str]:
    path = driver.home / name
    path.write_text(text)
    return [sys.executable, str(path)]


def saying(on: str, words: str) -> str:
    return hook(words.lower(), on, ["/bin/echo", words], 'output = "context"')


def exists(driver: Driver, name: str) -> bool:
    return (driver.project / name).exists()


def test_a_denied_command_does_not_run_and_the_model_reads_why(driver: Driver) -> None:
    driver.install()
    model, ran = driver.run(driver.program.shell("touch forbidden"), Say("FINE"))
    assert not exists(driver, "forbidden"), ran.text
    assert model.received(REASON), [request.text[-3000:] for request in model.requests]


def test_another_command_runs(driver: Driver) -> None:
    driver.install()
    _, ran = driver.run(driver.program.shell("touch allowed"), Say("FINE"))
    assert exists(driver, "allowed"), ran.text


def test_without_the_hook_the_command_would_run(driver: Driver) -> None:
    _, ran = driver.run(driver.program.shell("touch forbidden"), Say("FINE"))
    assert exists(driver, "forbidden"), ran.text


def test_an_argument_is_rewritten_or_the_model_is_told_how(driver: Driver) -> None:
    driver.policy(POLICY + hook("rewrite", "before_tool", script(driver, "rewrite.py", REWRITE)))
    driver.install()
    model, ran = driver.run(driver.program.shell("touch original"), Say("FINE"))
    assert not exists(driver, "original"), ran.text
    if "args" in driver.host.can("before_tool"):
        assert exists(driver, "rewritten"), ran.text
    else:
        assert model.received("touch rewritten")


def test_context_reaches_the_model_from_the_start_the_prompt_and_a_tool(driver: Driver) -> None:
    words = {"session_start": "WORDS-AT-START", "before_input": "WORDS-AT-PROMPT", "after_tool": "WORDS-AFTER-TOOL"}
    driver.policy("".join(saying(on, text) for on, text in words.items()))
    driver.install()
    model, ran = driver.run(driver.program.shell("touch a"), driver.program.shell("touch b"), Say("FINE"))
    unseen = {"droid": {"before_input"}, "cline": {"before_input"}}.get(driver.host.name, set())
    for event, text in words.items():
        assert model.received(text) is (event not in unseen), (event, ran.text)


def test_a_turn_is_kept_alive_once(driver: Driver) -> None:
    driver.policy(hook("keep", "before_turn_end", script(driver, "keep.py", KEEP)))
    driver.install()
    model, ran = driver.run(Say("ONE"), Say("TWO"))
    if "extend" in driver.host.can("before_turn_end"):
        assert len(model.requests) == 2, ran.text
        assert model.received("KEEP-GOING")
    else:
        assert len(model.requests) == 1


def test_every_event_is_in_one_journal(driver: Driver) -> None:
    driver.install()
    driver.run(driver.program.shell("touch a"), driver.program.shell("touch forbidden"), Say("FINE"))
    records = driver.records()
    events = {record["step"]["event"] for record in records if "step" in record}
    missing = {"droid": {"before_input", "turn_start"}, "cline": {"before_input", "turn_start", "session_end"}}
    missing |= {"opencode": {"session_end"}, "qwen": {"session_end"}}
    wanted = {"session_start", "before_input", "turn_start", "before_tool", "after_tool", "before_turn_end", "turn_end"}
    wanted |= {"session_end"}
    assert events >= wanted - missing.get(driver.host.name, set())
    assert {record["step"]["host"] for record in records if "step" in record} == {driver.host.name}


def test_the_steps_of_a_session_have_one_session_id_and_a_denied_call_is_over_too(driver: Driver) -> None:
    driver.install()
    driver.run(driver.program.shell("touch a"), driver.program.shell("touch forbidden"), Say("FINE"))
    records = [record for record in driver.records() if "step" in record]
    assert len({record["step"]["session_id"] for record in records}) == 1
    over = [record["step"] for record in records if record["step"]["event"] == "after_tool"]
    assert [step["outcome"] for step in over].count("denied") == 1


def test_a_counter_counts_across_the_calls_of_a_session(driver: Driver) -> None:
    (driver.home / "counting.py").write_text(
        "from collections import Counter\n"
        "from fairlead import deny\n"
        "calls = Counter()\n"
        "def limit(step):\n"
        "    calls[step.session_id] += 1\n"
        "    if calls[step.session_id] > 1:\n"
        "        return deny('ONE-IS-ENOUGH')\n"
    )
    driver.policy(
        f'[[hook]]\nname = "limit"\non = "before_tool"\nphase = "gate"\npython = "{driver.home}/counting.py:limit"\n'
    )
    driver.install()
    model, ran = driver.run(driver.program.shell("touch a"), driver.program.shell("touch b"), Say("FINE"))
    assert exists(driver, "a"), ran.text
    assert not exists(driver, "b"), ran.text
    assert model.received("ONE-IS-ENOUGH")


def test_coverage_finds_no_gap_and_then_the_one_that_is_made(driver: Driver) -> None:
    driver.install()
    driver.run(driver.program.shell("touch a"), driver.program.shell("touch forbidden"), Say("FINE"))
    driver.stop_daemon()
    seen = driver.fairlead("coverage", "--json")
    assert seen.returncode == 0, seen.stdout + seen.stderr
    driver.uninstall()
    driver.run(driver.program.shell("touch unseen"), Say("FINE"))
    seen = driver.fairlead("coverage", "--json")
    assert seen.returncode == 1, seen.stdout + seen.stderr
    assert "touch unseen" in seen.stdout


# --- a project's policy, whatever becomes of its files ------------------------------------------------


def git(driver: Driver, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *words], cwd=driver.project, check=True, capture_output=True, env=driver.environ)


def trusted_project(driver: Driver) -> None:
    """A project with a committed policy that is in force, and nothing in the user's own file."""
    driver.policy("")
    (driver.project / "gate.sh").write_text(f'grep -q forbidden && {{ echo "{REASON}" >&2; exit 2; }}\nexit 0\n')
    gate = 'on = "before_tool"\nmatch = { kind = "shell" }\nphase = "gate"\ncommand = ["/bin/sh", "gate.sh"]\n'
    (driver.project / "fairlead.toml").write_text(f'[[hook]]\nname = "gate"\n{gate}')
    git(driver, "init", "-q")
    git(driver, "commit", "-qm", "nothing yet", "--allow-empty")
    git(driver, "branch", "before")
    git(driver, "add", "-A")
    git(driver, "commit", "-qm", "policy")
    digest = json.loads(driver.fairlead("trust", "--json").stdout)["digest"]
    trusted = driver.fairlead("trust", "--expect", digest)
    assert trusted.returncode == 0, trusted.stderr


def edit(driver: Driver) -> None:
    (driver.project / "fairlead.toml").write_text("# nothing any more\n")


def edit_script(driver: Driver) -> None:
    (driver.project / "gate.sh").write_text("exit 0\n")


def delete(driver: Driver) -> None:
    (driver.project / "fairlead.toml").unlink()


def stash(driver: Driver) -> None:
    git(driver, "rm", "-rq", "--cached", ".")
    git(driver, "commit", "-qm", "no policy")
    git(driver, "stash", "-u")


def switch_branch(driver: Driver) -> None:
    git(driver, "checkout", "-qf", "before")


@pytest.mark.parametrize("restarted", [False, True], ids=["the daemon runs on", "the daemon is restarted"])
@pytest.mark.parametrize("tamper", [edit, edit_script, delete, stash, switch_branch])
def test_a_policy_that_is_tampered_with_still_denies(
    driver: Driver, tamper: Callable[[Driver], None], restarted: bool
) -> None:
    trusted_project(driver)
    driver.install()
    _, ran = driver.run(driver.program.shell("touch allowed"), Say("FINE"))
    assert exists(driver, "allowed"), ran.text
    tamper(driver)
    if restarted:
        driver.stop_daemon()
    model, ran = driver.run(driver.program.shell("touch forbidden"), Say("FINE"))
    assert not exists(driver, "forbidden"), ran.text
    assert model.received(REASON), ran.text
    assert model.received("fairlead trust --forget"), "the denial does not say that the file is another by now"
