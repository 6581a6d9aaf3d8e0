"""Trust: a project's hooks run once a human has looked at them, and only as they were then."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead import Hooks, agent_process
from fairlead.agent_process import agent_around
from fairlead.config import layers, load
from fairlead.config import survey as survey_module
from fairlead.config.document import ConfigError, Document
from fairlead.config.layers import Config
from fairlead.config.survey import Survey, survey
from fairlead.config.survey_budget import Untrustworthy
from fairlead.config.trust import Trust, state_folder
from fairlead.decision import Decision
from fairlead.errors import FairleadError
from fairlead.testing import step

MARKS = ("CLAUDECODE", "CODEX_SANDBOX", "CURSOR_AGENT", "GEMINI_CLI", "OPENCODE", "QWEN_CODE", "FAIRLEAD_AGENT")

SAYS_ARGUMENT = '#!/bin/sh\ncat "$1" >&2; exit 2\n'
HACKED = "#!/bin/sh\necho hacked >&2; exit 2\n"


class Project:
    """A project in a folder of its own, and what becomes of its hooks."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True)

    def hook(self, *lines: str, on: str = "before_tool", name: str = "judge") -> None:
        """A file with this one hook."""
        self.file("fairlead.toml", f'[[hook]]\nname = "{name}"\non = "{on}"\n' + "\n".join(lines) + "\n")

    def file(self, name: str, text: str, mode: int = 0o644) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        return path

    def program(self, name: str, text: str) -> Path:
        return self.file(name, text, 0o755)

    def survey(self) -> Survey:
        return survey(Document(self.root / "fairlead.toml"), self.root).resolve()

    def pin(self, *, unpinned: bool = False) -> Survey:
        seen = self.survey()
        Trust().pin(seen, unpinned=unpinned)
        return seen

    def load(self) -> Config:
        return load(self.root)

    @property
    def trusted(self) -> bool:
        return not self.load().untrusted

    def decide(
        self, event: str = "before_tool", *, after_loading: Callable[[], Any] = lambda: None, **fields: Any
    ) -> Decision[Any]:
        async def dispatch() -> Decision[Any]:
            async with Hooks(record=True) as hooks:
                self.load().apply(hooks)
                after_loading()
                return await hooks.dispatch(step(event, **fields))

        return asyncio.run(dispatch())

    def says(self, verdict: dict[str, Any], *lines: str, on: str = "before_tool") -> Decision[Any]:
        """The decision when the project's hook, trusted, says this."""
        self.file("verdict.json", json.dumps(verdict))
        self.program("say.sh", '#!/bin/sh\ncat "$1"\n')
        self.hook('command = ["./say.sh", "verdict.json"]', *lines, on=on)
        self.pin()
        return self.decide(on)


@pytest.fixture(autouse=True)
def _private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing outside of tmp_path is read or written."""
    for name, folder in {"HOME": "home", "XDG_CONFIG_HOME": "config", "FAIRLEAD_STATE_DIR": "pins"}.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    for name in ("XDG_STATE_HOME", *MARKS):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(layers, "SYSTEM_FILE", tmp_path / "etc" / "fairlead.toml")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of programs in PATH that is not the project's."""
    folder = tmp_path / "tools"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


def program(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


# --- until a human has trusted them --------------------------------------------------------------


def test_an_untrusted_hook_does_not_run(project: Project):
    project.program("judge.sh", "#!/bin/sh\ntouch ran; exit 2\n")
    project.hook('command = ["./judge.sh"]')
    assert project.decide().control == "proceed"
    assert not (project.root / "ran").exists()


def test_the_start_of_a_session_warns_of_hooks_that_do_not_run(project: Project):
    project.hook('rule = "true"', 'deny = "no"')
    (warning,) = project.decide("session_start").warnings
    assert "judge" in warning
    assert str(project.root / "fairlead.toml") in warning
    assert "`fairlead trust`" in warning


def test_hooks_that_do_not_run_are_logged_when_a_configuration_is_applied(
    project: Project, caplog: pytest.LogCaptureFixture
):
    project.hook('rule = "true"', 'deny = "no"')
    with caplog.at_level(logging.WARNING, "fairlead"):
        project.load().apply(Hooks())
    assert [record.getMessage() for record in caplog.records] == project.load().untrusted


def test_nothing_warns_once_they_are_trusted(project: Project, caplog: pytest.LogCaptureFixture):
    project.hook('rule = "true"', 'deny = "no"')
    project.pin()
    assert project.decide("session_start").warnings == ()
    assert caplog.records == []


def test_it_says_why_they_do_not_run(project: Project):
    project.hook('rule = "true"', 'deny = "no"')
    assert "the file has not been trusted" in project.load().untrusted[0]
    project.pin()
    project.hook('rule = "true"', 'deny = "yes"')
    assert "has changed since it was trusted" in project.load().untrusted[0]


def test_the_user_s_own_hooks_run_without_trust(project: Project, tmp_path: Path):
    file = tmp_path / "config/fairlead/fairlead.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[[hook]]\nname = "mine"\non = "before_tool"\nrule = "true"\ndeny = "no"\n')
    assert project.decide().hook == "mine"


def test_a_project_that_says_nothing_needs_no_trust(project: Project):
    project.file("fairlead.toml", "# nothing yet\n")
    assert project.trusted


def test_a_hook_that_is_not_trusted_leaves_the_user_s_hooks_in_force(project: Project, tmp_path: Path):
    project.hook('rule = "true"', 'deny = "theirs"')
    file = tmp_path / "config/fairlead/fairlead.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[[hook]]\nname = "mine"\non = "before_tool"\nrule = "true"\ndeny = "mine"\n')
    assert project.decide().reason == "mine"


# --- what a digest covers ---------------------------------------------------------------------------


def test_trusted_hooks_run(project: Project):
    project.program("judge.sh", "#!/bin/sh\necho no >&2; exit 2\n")
    project.hook('command = ["./judge.sh"]')
    project.pin()
    decision = project.decide()
    assert (decision.control, decision.reason, decision.cause) == ("deny", "no", "policy")


def test_looking_twice_gives_the_same_digest(project: Project):
    project.program("judge.sh", SAYS_ARGUMENT)
    project.hook('command = ["./judge.sh"]', 'may = ["inject", "change"]', "exit = { 1 = 'veto', 3 = 'ask' }")
    assert project.survey().digest == project.survey().digest


def test_a_digest_is_a_sha256(project: Project):
    project.hook('rule = "true"', 'deny = "no"')
    algorithm, _, digits = project.survey().digest.partition(":")
    assert algorithm == "sha256"
    assert len(bytes.fromhex(digits)) == 32


CHANGES: dict[str, Callable[[Project], Any]] = {
    "an option": lambda project: project.hook('command = ["./judge.sh", "rules.txt"]', "timeout = 4"),
    "an argument": lambda project: project.hook('command = ["./judge.sh", "rules.txt", "-v"]'),
    "what it may": lambda project: project.hook('command = ["./judge.sh", "rules.txt"]', 'may = ["inject"]'),
    "its environment": lambda project: project.hook('command = ["./judge.sh", "rules.txt"]', 'env = ["EDITOR"]'),
    "the event": lambda project: project.hook('command = ["./judge.sh", "rules.txt"]', on="after_tool"),
    "the script": lambda project: project.program("judge.sh", HACKED),
    "a file it is given": lambda project: project.file("rules.txt", "other rules"),
    "one more hook": lambda project: (project.root / "fairlead.toml").write_text(
        (project.root / "fairlead.toml").read_text()
        + '[[hook]]\nname = "second"\non = "before_tool"\nrule = "true"\ndeny = "no"\n'
    ),
    "a default": lambda project: (project.root / "fairlead.toml").write_text(
        (project.root / "fairlead.toml").read_text() + "[defaults]\nenforce = false\n"
    ),
    "a tool": lambda project: (project.root / "fairlead.toml").write_text(
        (project.root / "fairlead.toml").read_text() + '[[tool]]\nname = "deploy"\nkind = "read"\n'
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_any_change_asks_again(project: Project, change: Callable[[Project], Any]):
    project.program("judge.sh", SAYS_ARGUMENT)
    project.file("rules.txt", "rules")
    project.hook('command = ["./judge.sh", "rules.txt"]')
    project.pin()
    assert project.trusted
    change(project)
    assert not project.trusted


KEEPING: dict[str, Callable[[Project], Any]] = {
    "the mode of a script": lambda project: (project.root / "judge.sh").chmod(0o700),
    "the time of a script": lambda project: os.utime(project.root / "judge.sh", (1, 1)),
    "a file that no hook names": lambda project: project.file("README.md", "hello"),
    "a comment": lambda project: (project.root / "fairlead.toml").write_text(
        "# why\n" + (project.root / "fairlead.toml").read_text()
    ),
}


@pytest.mark.parametrize("change", KEEPING.values(), ids=KEEPING.keys())
def test_what_changes_nothing_does_not_ask_again(project: Project, change: Callable[[Project], Any]):
    project.program("judge.sh", SAYS_ARGUMENT)
    project.hook('command = ["./judge.sh"]')
    project.pin()
    change(project)
    assert project.trusted


def test_a_change_that_is_taken_back_is_trusted_again(project: Project):
    project.program("judge.sh", SAYS_ARGUMENT)
    project.hook('command = ["./judge.sh"]')
    project.pin()
    project.program("judge.sh", HACKED)
    assert not project.trusted
    project.program("judge.sh", SAYS_ARGUMENT)
    assert project.trusted


def test_a_hook_whose_program_has_changed_fails_by_its_policy_and_names_the_way_out(project: Project, tools: Path):
    program(tools / "checker", "#!/bin/sh\nexit 0\n")
    project.hook('command = ["checker"]')
    project.pin(unpinned=True)
    program(tools / "checker", HACKED)
    decision = project.decide()
    assert (decision.control, decision.cause) == ("deny", "failure")
    assert f"{tools / 'checker'} has changed since it was trusted" in decision.reason
    assert "`fairlead trust`" in decision.reason


def test_the_program_that_was_trusted_runs_whatever_the_path_says_by_now(
    project: Project, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    program(tools / "checker", "#!/bin/sh\necho as trusted >&2; exit 2\n")
    project.hook('command = ["checker"]')
    project.pin(unpinned=True)
    (tmp_path / "others").mkdir()
    program(tmp_path / "others/checker", HACKED)
    monkeypatch.setenv("PATH", f"{tmp_path / 'others'}{os.pathsep}{os.environ['PATH']}")
    assert project.decide().reason == "as trusted"


def test_a_program_without_a_path_is_never_the_project_s(
    project: Project, tools: Path, monkeypatch: pytest.MonkeyPatch
):
    program(tools / "checker", "#!/bin/sh\nexit 0\n")
    project.program("bin/checker", HACKED)
    monkeypatch.setenv("PATH", f"{project.root / 'bin'}{os.pathsep}{os.environ['PATH']}")
    project.hook('command = ["checker"]')
    assert project.survey().hooks[0].program == str(tools / "checker")


def test_a_pin_is_for_one_folder(project: Project, tmp_path: Path):
    project.hook('rule = "true"', 'deny = "no"')
    project.pin()
    shutil.copytree(project.root, tmp_path / "copy")
    assert load(tmp_path / "copy").untrusted


def test_a_link_to_a_project_leads_to_its_pin(project: Project, tmp_path: Path):
    project.hook('rule = "true"', 'deny = "no"')
    project.pin()
    (tmp_path / "link").symlink_to(project.root)
    assert not load(tmp_path / "link").untrusted


def test_a_survey_names_what_a_hook_would_run(project: Project):
    project.program("judge.sh", SAYS_ARGUMENT)
    project.file("rules/a.txt", "rules")
    project.hook('command = ["./judge.sh", "rules/a.txt", "--strict"]', 'may = ["inject"]')
    (seen,) = project.survey().hooks
    assert (seen.name, seen.form, seen.runs) == ("judge", "command", "./judge.sh rules/a.txt --strict")
    assert (seen.programs, seen.may, seen.uncovered) == (["./judge.sh"], ["inject"], None)
    assert [pin.path for pin in seen.outside] == ["/bin/sh"]
    assert seen.files.keys() == {"judge.sh", "rules/a.txt"}


def test_a_file_named_after_an_equals_sign_is_covered(project: Project):
    project.program("judge.sh", SAYS_ARGUMENT)
    project.file("rules.txt", "rules")
    project.hook('command = ["./judge.sh", "--rules=rules.txt"]')
    assert "rules.txt" in project.survey().hooks[0].files


# --- what runs is what was hashed ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        '"./judge.sh", "rules.txt"',
        '"{root}/judge.sh", "{root}/rules.txt"',
        '"./judge.sh", "--rules=rules.txt"',
        '"folder/../judge.sh", "folder/../rules.txt"',
        '".//judge.sh", "./folder/..//rules.txt"',
    ],
)
def test_files_that_are_swapped_after_loading_run_as_they_were(project: Project, words: str):
    (project.root / "folder").mkdir()
    project.program("judge.sh", '#!/bin/sh\ncat "${1#--rules=}" >&2; exit 2\n')
    project.file("rules.txt", "as trusted")
    project.hook(f"command = [{words.format(root=project.root)}]")
    project.pin()

    def swap() -> None:
        project.program("judge.sh", HACKED)
        project.file("rules.txt", "hacked")

    assert project.decide(after_loading=swap).reason == "as trusted"


def test_a_script_of_an_interpreter_that_is_swapped_after_loading_runs_as_it_was(project: Project):
    project.file("judge.sh", "echo as trusted >&2; exit 2\n")
    project.hook('command = ["sh", "judge.sh"]')
    project.pin()
    assert project.decide(after_loading=lambda: project.file("judge.sh", HACKED)).reason == "as trusted"


def test_a_script_that_is_removed_after_loading_still_runs(project: Project):
    project.program("judge.sh", "#!/bin/sh\necho as trusted >&2; exit 2\n")
    project.hook('command = ["./judge.sh"]')
    project.pin()
    assert project.decide(after_loading=(project.root / "judge.sh").unlink).reason == "as trusted"


def test_a_function_that_is_swapped_after_loading_runs_as_it_was(project: Project):
    code = "from fairlead import deny\ndef judge(step):\n    return deny({!r})\n"
    project.file("hooks.py", code.format("as trusted"))
    project.hook('python = "hooks.py:judge"')
    project.pin()
    swap = lambda: project.file("hooks.py", code.format("hacked"))
    assert project.decide(after_loading=swap).reason == "as trusted"


def test_an_interpreter_that_is_swapped_after_loading_runs_as_it_was(project: Project):
    project.file("hooks.py", "from fairlead import deny\ndef judge(step):\n    return deny('as trusted')\n")
    project.program("python", f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    project.hook('python = "hooks.py:judge"', 'interpreter = "./python"')
    project.pin()
    swap = lambda: project.program("python", "#!/bin/sh\ntouch hacked\n")
    assert project.decide(after_loading=swap).reason == "as trusted"
    assert not (project.root / "hacked").exists()


def test_a_worker_that_is_swapped_after_loading_runs_as_it_was(project: Project):
    line = """while read -r line; do echo '{"id": 1, "verdict": {"control": "deny", "reason": "%s"}}'; done\n"""
    project.file("worker.sh", line % "as trusted")
    project.hook('worker = ["sh", "worker.sh"]')
    project.pin()
    assert project.decide(after_loading=lambda: project.file("worker.sh", line % "hacked")).reason == "as trusted"


def test_a_script_that_is_changed_before_the_next_load_runs_as_it_was(project: Project):
    project.program("judge.sh", "#!/bin/sh\necho as trusted >&2; exit 2\n")
    project.hook('command = ["./judge.sh"]')
    project.pin()
    project.program("judge.sh", HACKED)
    assert project.decide().reason.startswith("as trusted (")


def test_a_hook_runs_in_the_project_wherever_its_copy_lies(project: Project):
    project.program("judge.sh", "#!/bin/sh\npwd >&2; exit 2\n")
    project.hook('command = ["./judge.sh"]')
    project.pin()
    assert project.decide().reason == str(project.root)


def test_a_copy_that_was_tampered_with_is_made_anew(project: Project, tmp_path: Path):
    project.program("judge.sh", "#!/bin/sh\necho as trusted >&2; exit 2\n")
    project.hook('command = ["./judge.sh"]')
    project.pin()
    project.load()
    (copy,) = (tmp_path / "pins/pinned").glob("*/judge.sh")
    copy.chmod(0o700)
    copy.write_text(HACKED)
    assert project.decide().reason == "as trusted"


def test_a_copy_cannot_be_written_by_accident(project: Project, tmp_path: Path):
    project.program("judge.sh", SAYS_ARGUMENT)
    project.file("rules.txt", "rules")
    project.hook('command = ["./judge.sh", "rules.txt"]')
    project.pin()
    project.load()
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "pins/pinned").glob("*/*")}
    assert modes == dict.fromkeys(("fairlead.toml", "judge.sh", "rules.txt"), 0o500)


# --- what leads out of the project, and what cannot be covered -----------------------------------------


LEADING_OUT = {
    "a program": 'command = ["./link"]',
    "a script": 'command = ["sh", "link"]',
    "an argument": 'command = ["./judge.sh", "link"]',
    "an argument after an equals sign": 'command = ["./judge.sh", "--rules=link"]',
    "a worker": 'worker = ["./link"]',
    "a file in a folder": 'command = ["./folder/outside.sh"]',
    "a function": 'python = "link.py:judge"',
}


@pytest.mark.parametrize("line", LEADING_OUT.values(), ids=LEADING_OUT.keys())
def test_a_link_that_leads_out_of_the_project_is_refused(project: Project, tmp_path: Path, line: str):
    (tmp_path / "elsewhere").mkdir()
    outside = program(tmp_path / "elsewhere/outside.sh", HACKED)
    project.program("judge.sh", SAYS_ARGUMENT)
    for name in ("link", "link.py"):
        (project.root / name).symlink_to(outside)
    (project.root / "folder").symlink_to(tmp_path / "elsewhere")
    project.hook(line)
    with pytest.raises(Untrustworthy, match="leads out of the project"):
        project.survey()


def test_a_link_that_leads_out_is_why_hooks_do_not_run(project: Project, tmp_path: Path):
    program(tmp_path / "outside.sh", "#!/bin/sh\ntouch ran; exit 2\n")
    (project.root / "judge.sh").symlink_to(tmp_path / "outside.sh")
    project.hook('command = ["./judge.sh"]')
    assert "leads out of the project" in project.load().untrusted[0]
    assert project.decide().control == "proceed"


def test_a_link_within_the_project_is_covered_by_what_it_leads_to(project: Project):
    project.program("real.sh", "#!/bin/sh\necho as trusted >&2; exit 2\n")
    (project.root / "link.sh").symlink_to("real.sh")
    project.hook('command = ["./link.sh"]')
    project.pin()
    assert project.decide(after_loading=lambda: project.program("real.sh", HACKED)).reason == "as trusted"
    assert not project.trusted


def test_a_function_in_a_file_above_the_project_is_refused(project: Project, tmp_path: Path):
    (tmp_path / "above.py").write_text("def judge(step): ...\n")
    project.hook('python = "../above.py:judge"')
    with pytest.raises(Untrustworthy, match="is not in the project"):
        project.survey()


def test_a_file_that_is_too_large_is_refused(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(survey_module, "FILE_LIMIT", 8)
    project.program("judge.sh", SAYS_ARGUMENT)
    project.hook('command = ["./judge.sh"]')
    with pytest.raises(Untrustworthy, match="larger than"):
        project.survey()


UNCOVERED = {
    "a program that loads the project's code": 'command = ["checker", "-q"]',
    "a program that is given a file": 'command = ["checker", "judge.sh"]',
    "a shell line": 'shell = "./judge.sh"',
    "a shell line of a command": 'command = ["sh", "-c", ". ./judge.sh"]',
    "an interpreter alone": 'command = ["sh"]',
    "an interpreter that reads its code": 'command = ["python3", "-"]',
    "a module": 'command = ["python3", "-m", "judge"]',
    "a module of a worker": 'worker = ["python3", "-m", "judge"]',
    "a function in a module": 'python = "judge:judge"',
    "a folder": 'command = ["python3", "folder"]',
    "env": 'command = ["env", "sh", "judge.sh"]',
}


@pytest.mark.parametrize("line", UNCOVERED.values(), ids=UNCOVERED.keys())
def test_code_that_no_hash_covers_must_be_trusted_unpinned(project: Project, tools: Path, line: str):
    program(tools / "checker", "#!/bin/sh\nexit 0\n")
    project.program("judge.sh", SAYS_ARGUMENT)
    (project.root / "folder").mkdir()
    project.hook(line)
    with pytest.raises(Untrustworthy, match="--unpinned"):
        project.pin()
    assert Trust().project(project.root) is None


COVERED = {
    "a program of the project": 'command = ["./judge.sh"]',
    "a script of the project": 'command = ["sh", "judge.sh"]',
    "a script after options": 'command = ["sh", "-u", "judge.sh"]',
    "a worker of the project": 'worker = ["sh", "judge.sh"]',
    "a function in a file": 'python = "judge.py:judge"',
    "a rule": 'rule = "true"\ndeny = "no"',
}


@pytest.mark.parametrize("line", COVERED.values(), ids=COVERED.keys())
def test_code_that_a_hash_covers_is_pinned(project: Project, line: str):
    project.program("judge.sh", SAYS_ARGUMENT)
    project.file("judge.py", "def judge(step): ...\n")
    project.hook(line)
    project.pin()
    assert project.trusted


def test_code_that_was_trusted_unpinned_runs(project: Project):
    project.hook('shell = "echo no >&2; exit 2"')
    project.pin(unpinned=True)
    assert project.decide().reason == "no"


# --- what a project's hooks may do ------------------------------------------------------------------------


@pytest.mark.parametrize("control", ["deny", "stop"])
def test_a_project_s_hook_may_refuse_and_stop(project: Project, control: str):
    decision = project.says({"control": control})
    assert (decision.control, decision.cause) == (control, "policy")


def test_a_project_s_hook_may_ask(project: Project):
    decision = project.says({"control": "ask"})
    assert (decision.control, decision.cause) == ("deny", "approval")


def test_a_project_s_hook_may_warn(project: Project):
    assert project.says({"warnings": ["careful"]}).warnings == ("careful",)


MORE = {
    "change": ("before_tool", {"args": {"command": "ls"}}),
    "answer": ("before_tool", {"result": "cached"}),
    "inject": ("before_tool", {"additional_context": ["You are on main."]}),
    "abort": ("before_tool", {"control": "abort"}),
    "skip": ("before_compact", {"control": "skip"}),
    "extend": ("before_turn_end", {"control": "extend", "reason": "Tests fail"}),
    "retry": ("after_tool", {"control": "retry"}),
}


@pytest.mark.parametrize("word", MORE)
def test_more_needs_to_be_asked_for(project: Project, word: str):
    event, verdict = MORE[word]
    decision = project.says(verdict, on=event)
    (failure,) = decision.failures
    assert failure.kind == "malformed"
    assert f"add {word!r} to its may" in failure.error
    assert (decision.changed, decision.context) == ((), ())


@pytest.mark.parametrize("word", MORE)
def test_more_is_granted_where_it_was_asked_for(project: Project, word: str):
    event, verdict = MORE[word]
    decision = project.says(verdict, f'may = ["{word}"]', on=event)
    assert decision.failures == ()
    assert decision.control == verdict.get("control", "proceed")
    assert bool(decision.changed or decision.context) == (word in ("change", "answer", "inject", "extend"))


def test_a_verdict_that_does_more_than_it_may_is_not_applied_in_part(project: Project):
    decision = project.says({"control": "stop", "additional_context": ["psst"]})
    assert (decision.control, decision.cause, decision.context) == ("deny", "failure", ())


@pytest.mark.parametrize("word", ["allow", "skip_rest"])
def test_a_project_cannot_even_ask_to_loosen(project: Project, word: str):
    project.hook('rule = "true"', 'deny = "no"', f'may = ["{word}"]')
    with pytest.raises(ConfigError, match=f"unknown power '{word}' of a project's hook"):
        project.load()


@pytest.mark.parametrize(
    ("event", "verdict"),
    [
        ("before_tool", {"control": "allow"}),
        ("before_tool", {"control": "skip_rest"}),
        ("before_permission", {"resolved": True}),
    ],
)
def test_a_project_s_hook_that_loosens_has_failed(project: Project, event: str, verdict: dict[str, Any]):
    decision = project.says(verdict, on=event)
    assert (decision.control, decision.cause) == ("deny", "failure")


def test_a_rule_of_a_project_that_would_allow_is_a_mistake(project: Project):
    project.hook('rule = "true"', 'allow = "yes"')
    with pytest.raises(ConfigError, match="never may"):
        project.load()


# --- remembering --------------------------------------------------------------------------------------------


def test_pins_are_for_the_user_s_eyes_only(project: Project, tmp_path: Path):
    project.hook('rule = "true"', 'deny = "no"')
    before = os.umask(0)
    try:
        project.pin()
    finally:
        os.umask(before)
    assert (tmp_path / "pins").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "pins/trust.json").stat().st_mode & 0o777 == 0o600


def test_pinning_leaves_nothing_else_behind(project: Project, tmp_path: Path):
    project.hook('rule = "true"', 'deny = "no"')
    project.pin()
    project.pin()
    assert {path.name for path in (tmp_path / "pins").iterdir()} == {
        "fallback.json", "fallback.lock", "pinned", "trust.json", "trust.lock",
    }  # fmt: skip


def test_only_looking_writes_nothing(project: Project, tmp_path: Path):
    project.program("judge.sh", SAYS_ARGUMENT)
    project.hook('command = ["./judge.sh"]')
    project.survey()
    project.load()
    assert not (tmp_path / "pins").exists()


def test_what_is_forgotten_is_trusted_no_longer(project: Project):
    project.hook('rule = "true"', 'deny = "no"')
    project.pin()
    assert Trust().forget(project.root)
    assert not project.trusted
    assert not Trust().forget(project.root)


def test_forgetting_one_project_keeps_the_others(tmp_path: Path):
    first, second = Project(tmp_path / "first"), Project(tmp_path / "second")
    for project in (first, second):
        project.hook('rule = "true"', 'deny = "no"')
        project.pin()
    Trust().forget(first.root)
    assert (first.trusted, second.trusted) == (False, True)


PINNING = """
import sys
from pathlib import Path
from fairlead.config.survey import Survey
from fairlead.config.trust import Trust
print("ready", flush=True)
sys.stdin.readline()
for i in range(20):
    Trust().pin(Survey(f"{sys.argv[1]}/{i}", f"sha256:{i}", [], b""))
"""


def test_pinning_at_once_loses_nothing(tmp_path: Path):
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", PINNING, str(tmp_path / name)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        for name in "abcd"
    ]
    for writer in writers:
        assert writer.stdout.readline() == b"ready\n"
    for writer in writers:
        writer.stdin.write(b"go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=20)
        assert writer.returncode == 0
    pinned = [Trust().project(tmp_path / name / str(i)) for name in "abcd" for i in range(20)]
    assert [pin and pin.snapshots[0].digest for pin in pinned] == [f"sha256:{i}" for i in range(20)] * 4


CORRUPT = [b"", b"{", b"[]", b'{"/project": 1}', b'{"/project": {"digest": 5}}']


@pytest.mark.parametrize("content", CORRUPT)
def test_with_a_corrupt_trust_file_nothing_starts_and_the_error_says_what_to_do(
    project: Project, tmp_path: Path, content: bytes
):
    project.hook('rule = "true"', 'deny = "no"')
    project.pin()
    (tmp_path / "pins/trust.json").write_bytes(content)
    with pytest.raises(FairleadError, match="remove it and trust your projects anew") as raised:
        project.load()
    assert f"{tmp_path / 'pins/trust.json'} cannot be read" in str(raised.value)


def test_a_corrupt_trust_file_is_not_overwritten(project: Project, tmp_path: Path):
    project.hook('rule = "true"', 'deny = "no"')
    (tmp_path / "pins").mkdir()
    (tmp_path / "pins/trust.json").write_bytes(b"{")
    with pytest.raises(FairleadError, match="remove it"):
        project.pin()
    assert (tmp_path / "pins/trust.json").read_bytes() == b"{"


def test_pins_are_not_kept_in_the_project(project: Project, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(project.root / ".state"))
    project.hook('rule = "true"', 'deny = "no"')
    with pytest.raises(Untrustworthy, match="lies in the project"):
        project.pin()
    assert not (project.root / ".state").exists()


def test_pins_are_not_kept_where_a_link_leads_into_the_project(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "link").symlink_to(project.root)
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(tmp_path / "link" / "state"))
    project.hook('rule = "true"', 'deny = "no"')
    with pytest.raises(Untrustworthy, match="lies in the project"):
        project.pin()


def test_where_pins_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    assert state_folder() == tmp_path / "pins"
    monkeypatch.delenv("FAIRLEAD_STATE_DIR")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    assert state_folder() == tmp_path / "xdg/fairlead"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert state_folder() == tmp_path / "home/.local/state/fairlead"


def test_a_pin_remembers_when_and_how(project: Project):
    project.hook('shell = "true"')
    digest = project.pin(unpinned=True).digest
    (pin,) = Trust().project(project.root).snapshots
    assert (pin.digest, pin.unpinned, pin.at > 0) == (digest, True, True)


# --- who is asking ---------------------------------------------------------------------------------------------


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no agent had started these tests."""
    monkeypatch.setattr(agent_process, "_ancestors", lambda pid: iter(()))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("mark", MARKS)
def test_an_agent_is_known_by_the_variable_it_sets(monkeypatch: pytest.MonkeyPatch, mark: str):
    monkeypatch.setenv(mark, "1")
    assert agent_around() == f"{mark} is set"


@pytest.mark.usefixtures("alone")
def test_an_empty_variable_is_no_agent():
    assert agent_around({"CLAUDECODE": ""}) is None


@pytest.mark.usefixtures("alone")
def test_a_person_is_no_agent():
    assert agent_around() is None


ASKING = "from fairlead.agent_process import agent_around; print(agent_around({}))"


@pytest.mark.parametrize("name", ["claude", "codex", "gemini", "opencode.js"])
def test_an_agent_is_known_by_its_name(tmp_path: Path, name: str):
    agent = program(tmp_path / name, '#!/bin/sh\n"$@"\nexit $?\n')
    asked = subprocess.run([agent, sys.executable, "-c", ASKING], capture_output=True, text=True, check=True)
    assert asked.stdout == f"this runs under {name.removesuffix('.js')}\n"


def test_an_agent_is_known_however_far_above_it_is(tmp_path: Path):
    agent = program(tmp_path / "claude", '#!/bin/sh\n"$@"\nexit $?\n')
    between = program(tmp_path / "make", '#!/bin/sh\n"$@"\nexit $?\n')
    argv = [agent, between, between, sys.executable, "-c", ASKING]
    asked = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert asked.stdout == "this runs under claude\n"


def test_a_name_that_only_begins_like_an_agent_s_is_none(tmp_path: Path):
    claudette = program(tmp_path / "claudette", '#!/bin/sh\n"$@"\nexit $?\n')
    asked = subprocess.run([claudette, sys.executable, "-c", ASKING], capture_output=True, text=True, check=True)
    assert "claudette" not in asked.stdout


# --- what was once mistaken for covered, or crashed ---


@pytest.mark.parametrize("script", ["../outside.sh", "{tmp}/outside.sh"])
def test_a_script_outside_of_the_project_is_pinned_where_it_is(project, tmp_path, script):
    (tmp_path / "outside.sh").write_text("exit 0\n")
    project.hook(f'command = ["sh", "{script.format(tmp=tmp_path)}"]')
    project.pin()
    assert project.decide().control == "proceed"
    (tmp_path / "outside.sh").write_text("exit 2\n")
    assert "outside.sh has changed since it was trusted" in project.decide().reason


@pytest.mark.parametrize(
    "words",
    [
        '"python3", "-mpytest", "judge.sh"',
        '"python3", "-cimport judge", "judge.sh"',
        '"sh", "-ec", "judge.sh"',
        '"python3", "-Im", "judge.sh"',
        '"perl", "-ne", "judge.sh"',
        '"node", "--eval=require(1)", "judge.sh"',
    ],
)
def test_options_written_together_do_not_hide_code(project, tools, words):
    for name in ("node", "perl"):
        program(tools / name, "#!/bin/sh\n")
    project.program("judge.sh", SAYS_ARGUMENT)
    project.hook(f"command = [{words}]")
    with pytest.raises(Untrustworthy, match="--unpinned"):
        project.pin()


@pytest.mark.parametrize("name", ["phpunit", "shellcheck", "perlcritic", "nodemon", "python-config", "luarocks"])
def test_a_program_that_only_begins_like_an_interpreter_is_none(project, tools, name):
    program(tools / name, "#!/bin/sh\n")
    project.program("judge.sh", SAYS_ARGUMENT)
    project.hook(f'command = ["{name}", "judge.sh"]')
    with pytest.raises(Untrustworthy, match="--unpinned"):
        project.pin()


def test_the_program_that_runs_is_the_one_that_was_hashed_whatever_path_the_hook_sets(project):
    project.program("bin/sh", "#!/bin/bash\necho hacked >&2; exit 2\n")
    project.file("judge.sh", "echo as trusted >&2; exit 2\n")
    project.hook('command = ["sh", "judge.sh"]', f'env = {{ PATH = "{project.root}/bin" }}')
    try:
        project.pin()
    except Untrustworthy:
        return  # as well
    assert project.decide().reason == "as trusted"


def test_the_program_that_runs_is_the_one_that_was_hashed_in_a_home_too(project, monkeypatch):
    project.program("bin/sh", "#!/bin/bash\necho hacked >&2; exit 2\n")
    monkeypatch.setenv("HOME", str(project.root))
    monkeypatch.setenv("PATH", f"{project.root}/bin{os.pathsep}{os.environ['PATH']}")
    project.file("judge.sh", "echo as trusted >&2; exit 2\n")
    project.hook('command = ["sh", "judge.sh"]')
    project.pin()
    assert project.decide().reason == "as trusted"


@pytest.mark.parametrize(
    "env",
    [
        '{ BASH_ENV = "./evil.sh" }',
        '{ LD_PRELOAD = "./evil.so" }',
        '{ PYTHONPATH = "." }',
        '{ NODE_OPTIONS = "--require ./evil.js" }',
        '["LD_PRELOAD"]',
    ],
)
def test_an_environment_that_loads_code_is_not_covered(project, env):
    project.file("judge.sh", "exit 0\n")
    project.hook('command = ["bash", "judge.sh"]', f"env = {env}")
    with pytest.raises(Untrustworthy, match="--unpinned"):
        project.pin()


def test_a_copy_can_be_run_once_its_original_can(project):
    project.file("judge.sh", "#!/bin/sh\necho no >&2; exit 2\n")
    project.hook('command = ["sh", "judge.sh"]')
    project.pin()
    project.load()
    (project.root / "judge.sh").chmod(0o755)
    project.hook('command = ["./judge.sh"]')
    project.pin()
    assert project.decide().reason == "no"


def test_an_untrusted_project_cannot_say_what_an_unknown_tool_does(project, tmp_path):
    file = tmp_path / "config/fairlead/fairlead.toml"
    file.parent.mkdir(parents=True)
    file.write_text('[defaults]\nunknown_tool = "deny"\n')
    project.file("fairlead.toml", '[[tool]]\nname = "launch"\nkind = "read"\n')
    assert project.decide(tool="launch").control == "deny"


def test_a_trusted_project_that_has_lost_its_hooks_asks_again(project):
    project.hook('rule = "true"', 'deny = "no"')
    project.pin()
    project.file("fairlead.toml", "")
    assert not project.trusted


def test_pins_that_are_kept_in_the_project_are_not_believed(project, monkeypatch, tmp_path):
    project.hook('rule = "true"', 'deny = "no"')
    project.pin()
    (tmp_path / "pins").rename(project.root / ".state")
    monkeypatch.chdir(project.root)
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(project.root / ".state"))
    with pytest.raises(Untrustworthy, match="lies in the project"):
        project.load()


@pytest.mark.parametrize("line", ["hook = 5", "hook = true"])
def test_hooks_that_are_none_are_a_mistake(project, line):
    project.file("fairlead.toml", line)
    with pytest.raises(FairleadError, match=r"\[\[hook\]\]"):
        project.load()


@pytest.mark.parametrize(
    "line",
    [
        f'command = ["sh", "-c", "{"x" * 300}"]',
        f'command = ["{"x" * 300}/x"]',
        f'python = "{"x" * 300}.py:judge"',
        'command = ["./\\u0000"]',
        'python = "\\u0000.py:judge"',
        'python = "a.py:f"\ninterpreter = "./\\u0000"',
        'rule = "a\\u0000"\ndeny = "x"',
    ],
)
def test_odd_words_are_mistakes_or_untrusted_but_no_crash(project, line):
    project.file("a.py", "")
    project.hook(line)
    try:
        project.load()
    except FairleadError:
        pass


def test_a_trust_file_that_is_no_utf_8_is_corrupt(project, tmp_path):
    project.hook('rule = "true"', 'deny = "no"')
    project.pin()
    (tmp_path / "pins/trust.json").write_bytes(b'{"/\xff": {"digest": ""}}')
    with pytest.raises(FairleadError, match="remove it"):
        project.load()


def test_a_state_folder_that_cannot_be_written_is_an_error_in_words(project, tmp_path, monkeypatch):
    project.program("judge.sh", SAYS_ARGUMENT)
    project.hook('command = ["./judge.sh"]')
    (tmp_path / "pins").mkdir(mode=0o700)
    (tmp_path / "pins/pinned").write_text("in the way")
    with pytest.raises(FairleadError, match="cannot be written"):
        project.pin()


def test_a_state_folder_that_cannot_be_made_is_an_error_in_words(project, monkeypatch):
    project.hook('rule = "true"', 'deny = "no"')
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", "/dev/null/fairlead")
    with pytest.raises(FairleadError):
        project.pin()


@pytest.mark.parametrize("options", ["-u", "-u -e"])
def test_an_agent_is_known_behind_the_options_of_its_interpreter(tmp_path, options):
    agent = tmp_path / "gemini"
    agent.write_text('"$@"\nexit $?\n')
    asked = subprocess.run(
        ["sh", *options.split(), agent, sys.executable, "-c", ASKING], capture_output=True, text=True
    )
    assert asked.stdout == "this runs under gemini\n"


def test_a_project_s_hook_may_refuse_in_the_words_of_a_permission(project):
    decision = project.says({"resolved": False}, on="before_permission")
    assert (decision.control, decision.cause) == ("deny", "policy")


def test_marking_a_result_as_an_error_is_a_change(project):
    assert project.says({"is_error": True}).changed == ()


def test_failing_the_request_must_be_asked_for_also_by_failing(project):
    project.hook('shell = "exit 7"', 'on_failure = "abort"')
    try:
        project.pin(unpinned=True)
        assert project.decide().control != "abort"
    except FairleadError:
        pass


def test_no_error_proposes_to_ask_for_what_a_project_never_gets(project):
    assert "add 'allow'" not in project.says({"control": "allow"}).failures[0].error


@pytest.mark.parametrize(
    "words", ['"python3", "-I", "judge.py"', '"sh", "-e", "judge.sh"', '"bash", "-eu", "judge.sh"']
)
def test_flags_that_take_no_argument_hide_no_script(project, words):
    project.file("judge.sh", "exit 0\n")
    project.file("judge.py", "")
    project.hook(f"command = [{words}]")
    project.pin()
    assert project.trusted


def test_a_folder_that_others_can_write_is_no_place_for_pins(project, tmp_path):
    (tmp_path / "pins").mkdir()
    (tmp_path / "pins").chmod(0o777)
    project.hook('rule = "true"', 'deny = "no"')
    try:
        project.pin()
    except FairleadError:
        return
    assert (tmp_path / "pins").stat().st_mode & 0o777 == 0o700


def test_a_file_with_mistakes_is_not_said_to_have_no_hooks(project):
    from fairlead.config import find, read

    project.hook('rule = "true"', 'deny = "no"', "matsch = 1")
    assert all("0 hooks" not in line and "()" not in line for line in read(find(project.root)).untrusted)
    project.file("fairlead.toml", 'hok = 1\n[[hook]]\nname = "a"\non = "before_tool"\nrule = "true"\ndeny = "x"\n')
    assert all("do not run: ;" not in line for line in read(find(project.root)).untrusted)


@pytest.mark.parametrize("trick", ["a file that says nothing", "a repository"])
def test_a_trusted_project_holds_in_every_folder_below(project: Project, trick: str, monkeypatch: pytest.MonkeyPatch):
    project.hook('rule = "true"', 'deny = "no"')
    project.pin()
    folder = project.root / "below"
    (folder / ".git").mkdir(parents=True)
    if trick == "a file that says nothing":
        (folder / "fairlead.toml").write_text("")
    assert [c.name for c in load(folder).hooks] == ["judge"]


def test_a_trusted_file_that_is_gone_is_missed_in_every_folder_below(project: Project):
    project.hook('rule = "true"', 'deny = "no"')
    project.pin()
    (project.root / "fairlead.toml").unlink()
    (project.root / "below").mkdir()
    assert "is gone; the policy that was trusted stays in force" in load(project.root / "below").untrusted[0]
    assert [c.name for c in load(project.root / "below").hooks] == ["judge"]


@pytest.mark.parametrize(
    "words",
    ['"perl", "-Ilib", "judge.sh"', '"node", "-r", "./hook", "judge.sh"', '"node", "--require=./x", "judge.sh"'],
)
def test_options_that_load_something_are_not_covered(project: Project, words: str, tools: Path):
    for name in ("node", "perl"):
        program(tools / name, "#!/bin/sh\n")
    project.program("judge.sh", SAYS_ARGUMENT)
    project.hook(f"command = [{words}]")
    with pytest.raises(Untrustworthy, match="--unpinned"):
        project.pin()


def test_an_environment_that_is_set_is_not_covered(project: Project):
    project.program("judge.sh", SAYS_ARGUMENT)
    project.hook('command = ["./judge.sh"]', 'env = { HOME = "./evil" }')
    with pytest.raises(Untrustworthy, match="HOME can change what it loads"):
        project.pin()
