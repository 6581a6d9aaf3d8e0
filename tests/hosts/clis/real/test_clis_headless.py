"""What the user of a headless run is shown: refused prompts, refused calls, warnings, and that fairlead is broken.

Where a CLI shows nothing, docs/clis.md says so: this is what it says it by.
"""

from __future__ import annotations

import shutil

import pytest
from drivers import POLICY, REASON, Driver

from fairlead.hosts.clis.probe.model import Say

pytestmark = pytest.mark.clis

NO_PROMPT = "NOT-THIS-PROMPT"
REFUSES_PROMPTS = f'[[hook]]\nname = "no-prompt"\non = "before_input"\nrule = "true"\ndeny = "{NO_PROMPT}"\n'

SHOWS_REFUSED_PROMPT = {"claude_code", "copilot", "gemini"}
SILENT_REFUSED_PROMPT = {"codex", "qwen"}
"""CLIs that refuse the prompt without showing the reason."""
UNHEARD_PROMPT = {"droid", "cline"}
"""CLIs that run no hook at the prompt of a headless run."""
SHOWS_REFUSED_CALL = {"codex", "copilot", "gemini", "qwen"}
IN_THE_TABLE = {"claude_code", "codex", "copilot", "droid", "gemini", "qwen"}


def only(driver: Driver, names: set[str]) -> None:
    if driver.host.name not in names:
        pytest.skip("it is another one")


def test_why_a_prompt_was_refused_is_shown_or_the_table_says_that_it_is_not(driver: Driver) -> None:
    only(driver, SHOWS_REFUSED_PROMPT | SILENT_REFUSED_PROMPT)
    driver.policy(REFUSES_PROMPTS)
    driver.install()
    model, ran = driver.run(Say("FINE"))
    assert not model.requests, ran.text
    assert (NO_PROMPT in ran.text) is (driver.host.name in SHOWS_REFUSED_PROMPT), ran.text


def test_a_prompt_that_no_hook_is_asked_about_goes_to_the_model(driver: Driver) -> None:
    only(driver, UNHEARD_PROMPT)
    driver.policy(REFUSES_PROMPTS)
    driver.install()
    model, _ = driver.run(Say("FINE"))
    assert model.requests, "it asks now: change docs/clis.md and the note of the host"


def test_that_fairlead_is_broken_is_shown_where_a_refused_prompt_is(driver: Driver) -> None:
    only(driver, SHOWS_REFUSED_PROMPT)
    driver.install()
    (driver.state / "bin/fairlead_hook.py").write_text("raise SystemExit(7)\n")
    shutil.rmtree(driver.state / "bin/__pycache__")
    model, ran = driver.run(Say("FINE"))
    assert not model.requests, ran.text
    assert "its client ended with 7" in ran.text


def test_why_a_call_was_refused_is_shown_or_left_to_the_model(driver: Driver) -> None:
    only(driver, IN_THE_TABLE)
    driver.install()
    model, ran = driver.run(driver.program.shell("touch forbidden"), Say("FINE"))
    assert model.received(REASON), ran.text
    assert (REASON in ran.text) is (driver.host.name in SHOWS_REFUSED_CALL), ran.text


def test_a_warning_reaches_the_model_which_is_to_tell_the_user(driver: Driver) -> None:
    """Of an untrusted project, say. No CLI shows the user of a headless run what hooks warn of."""
    only(driver, IN_THE_TABLE)
    (driver.project / "fairlead.toml").write_text(POLICY)
    driver.policy("")
    driver.install()
    model, ran = driver.run(driver.program.shell("touch a"), Say("FINE"))
    assert model.received("Tell the user of this warning in your answer"), ran.text
    assert model.received("look at it with `fairlead trust`")
