"""The same fairlead.toml in every agent CLI, with the real programs and a model that says a script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import pytest
from seats import POLICY, REASON, Seat

from fairlead.probe.model import Say

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


def script(seat: Seat, name: str, text: str) -> list[str]:
    path = seat.home / name
    path.write_text(text)
    return [sys.executable, str(path)]


def saying(on: str, words: str) -> str:
    return hook(words.lower(), on, ["/bin/echo", words], 'output = "context"')


def exists(seat: Seat, name: str) -> bool:
    return (seat.project / name).exists()


def test_a_denied_command_does_not_run_and_the_model_hears_why(seat: Seat) -> None:
    seat.install()
    model, ran = seat.run(seat.program.shell("touch forbidden"), Say("FINE"))
    assert not exists(seat, "forbidden"), ran.text
    assert model.told(REASON), [asked.text[-3000:] for asked in model.asked]


def test_another_command_runs(seat: Seat) -> None:
    seat.install()
    _, ran = seat.run(seat.program.shell("touch allowed"), Say("FINE"))
    assert exists(seat, "allowed"), ran.text


def test_without_the_hook_the_command_would_run(seat: Seat) -> None:
    _, ran = seat.run(seat.program.shell("touch forbidden"), Say("FINE"))
    assert exists(seat, "forbidden"), ran.text


def test_an_argument_is_rewritten_or_the_model_is_told_how(seat: Seat) -> None:
    seat.policy(POLICY + hook("rewrite", "before_tool", script(seat, "rewrite.py", REWRITE)))
    seat.install()
    model, ran = seat.run(seat.program.shell("touch original"), Say("FINE"))
    assert not exists(seat, "original"), ran.text
    if "args" in seat.host.can("before_tool"):
        assert exists(seat, "rewritten"), ran.text
    else:
        assert model.told("touch rewritten")


def test_context_reaches_the_model_from_the_start_the_prompt_and_a_tool(seat: Seat) -> None:
    words = {"session_start": "WORDS-AT-START", "before_input": "WORDS-AT-PROMPT", "after_tool": "WORDS-AFTER-TOOL"}
    seat.policy("".join(saying(on, text) for on, text in words.items()))
    seat.install()
    model, ran = seat.run(seat.program.shell("touch a"), seat.program.shell("touch b"), Say("FINE"))
    unseen = {"droid": {"before_input"}, "cline": {"before_input"}}.get(seat.host.name, set())
    for event, text in words.items():
        assert model.told(text) is (event not in unseen), (event, ran.text)


def test_a_turn_is_kept_alive_once(seat: Seat) -> None:
    seat.policy(hook("keep", "before_turn_end", script(seat, "keep.py", KEEP)))
    seat.install()
    model, ran = seat.run(Say("ONE"), Say("TWO"))
    if "extend" in seat.host.can("before_turn_end"):
        assert len(model.asked) == 2, ran.text
        assert model.told("KEEP-GOING")
    else:
        assert len(model.asked) == 1


def test_every_event_is_in_one_journal(seat: Seat) -> None:
    seat.install()
    seat.run(seat.program.shell("touch a"), seat.program.shell("touch forbidden"), Say("FINE"))
    records = seat.records()
    events = {record["step"]["event"] for record in records if "step" in record}
    missing = {"droid": {"before_input", "turn_start"}, "cline": {"before_input", "turn_start", "session_end"}}
    missing |= {"opencode": {"session_end"}, "qwen": {"session_end"}}
    wanted = {"session_start", "before_input", "turn_start", "before_tool", "after_tool", "before_turn_end", "turn_end"}
    wanted |= {"session_end"}
    assert events >= wanted - missing.get(seat.host.name, set())
    assert {record["step"]["host"] for record in records if "step" in record} == {seat.host.name}


def test_the_steps_of_a_session_have_one_session_id_and_a_denied_call_is_over_too(seat: Seat) -> None:
    seat.install()
    seat.run(seat.program.shell("touch a"), seat.program.shell("touch forbidden"), Say("FINE"))
    records = [record for record in seat.records() if "step" in record]
    assert len({record["step"]["session_id"] for record in records}) == 1
    over = [record["step"] for record in records if record["step"]["event"] == "after_tool"]
    assert [step["outcome"] for step in over].count("denied") == 1


def test_a_counter_counts_across_the_calls_of_a_session(seat: Seat) -> None:
    (seat.home / "counting.py").write_text(
        "from collections import Counter\n"
        "from fairlead import deny\n"
        "calls = Counter()\n"
        "def limit(step):\n"
        "    calls[step.session_id] += 1\n"
        "    if calls[step.session_id] > 1:\n"
        "        return deny('ONE-IS-ENOUGH')\n"
    )
    seat.policy(
        f'[[hook]]\nname = "limit"\non = "before_tool"\nphase = "gate"\npython = "{seat.home}/counting.py:limit"\n'
    )
    seat.install()
    model, ran = seat.run(seat.program.shell("touch a"), seat.program.shell("touch b"), Say("FINE"))
    assert exists(seat, "a"), ran.text
    assert not exists(seat, "b"), ran.text
    assert model.told("ONE-IS-ENOUGH")


def test_coverage_finds_no_gap_and_then_the_one_that_is_made(seat: Seat) -> None:
    seat.install()
    seat.run(seat.program.shell("touch a"), seat.program.shell("touch forbidden"), Say("FINE"))
    seat.stop_daemon()
    seen = seat.fairlead("coverage", "--json")
    assert seen.returncode == 0, seen.stdout + seen.stderr
    seat.uninstall()
    seat.run(seat.program.shell("touch unseen"), Say("FINE"))
    seen = seat.fairlead("coverage", "--json")
    assert seen.returncode == 1, seen.stdout + seen.stderr
    assert "touch unseen" in seen.stdout


# --- a project's policy, whatever becomes of its files ------------------------------------------------


def git(seat: Seat, *words: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *identity, *words], cwd=seat.project, check=True, capture_output=True, env=seat.environ)


def trusted_project(seat: Seat) -> None:
    """A project with a committed policy that is in force, and nothing in the user's own file."""
    seat.policy("")
    (seat.project / "gate.sh").write_text(f'grep -q forbidden && {{ echo "{REASON}" >&2; exit 2; }}\nexit 0\n')
    gate = 'on = "before_tool"\nmatch = { kind = "shell" }\nphase = "gate"\ncommand = ["/bin/sh", "gate.sh"]\n'
    (seat.project / "fairlead.toml").write_text(f'[[hook]]\nname = "gate"\n{gate}')
    git(seat, "init", "-q")
    git(seat, "commit", "-qm", "nothing yet", "--allow-empty")
    git(seat, "branch", "before")
    git(seat, "add", "-A")
    git(seat, "commit", "-qm", "policy")
    digest = json.loads(seat.fairlead("trust", "--json").stdout)["digest"]
    trusted = seat.fairlead("trust", "--expect", digest)
    assert trusted.returncode == 0, trusted.stderr


def edit(seat: Seat) -> None:
    (seat.project / "fairlead.toml").write_text("# nothing any more\n")


def edit_script(seat: Seat) -> None:
    (seat.project / "gate.sh").write_text("exit 0\n")


def delete(seat: Seat) -> None:
    (seat.project / "fairlead.toml").unlink()


def stash(seat: Seat) -> None:
    git(seat, "rm", "-rq", "--cached", ".")
    git(seat, "commit", "-qm", "no policy")
    git(seat, "stash", "-u")


def switch_branch(seat: Seat) -> None:
    git(seat, "checkout", "-qf", "before")


@pytest.mark.parametrize("restarted", [False, True], ids=["the daemon runs on", "the daemon is restarted"])
@pytest.mark.parametrize("tamper", [edit, edit_script, delete, stash, switch_branch])
def test_a_policy_that_is_tampered_with_still_denies(
    seat: Seat, tamper: Callable[[Seat], None], restarted: bool
) -> None:
    trusted_project(seat)
    seat.install()
    _, ran = seat.run(seat.program.shell("touch allowed"), Say("FINE"))
    assert exists(seat, "allowed"), ran.text
    tamper(seat)
    if restarted:
        seat.stop_daemon()
    model, ran = seat.run(seat.program.shell("touch forbidden"), Say("FINE"))
    assert not exists(seat, "forbidden"), ran.text
    assert model.told(REASON), ran.text
    assert model.told("fairlead trust --forget"), "the denial does not say that the file is another by now"
