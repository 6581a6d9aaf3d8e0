"""What was trusted stays in force: whatever becomes of the files, until a human trusts something else or forgets it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import string
import tempfile
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from trusted import GATE, HARMLESS, decide, git, make_project, program, trust

from fairlead import Approval, Hooks
from fairlead.config import ConfigError, load
from fairlead.config import programs as programs_module
from fairlead.config.document import Document
from fairlead.config.fallback_file import changing_folders, read_folders
from fairlead.config.project import projects_around
from fairlead.config.reload import Reloader
from fairlead.config.repository import Repository
from fairlead.config.stand_ins import unusable_hooks
from fairlead.config.survey import path_spans, shebang_of, survey
from fairlead.config.survey_budget import Untrustworthy, glob_files
from fairlead.config.trust import Trust
from fairlead.errors import FairleadError
from fairlead.lifecycle import GUARDING
from fairlead.testing import step


@pytest.fixture
def project(machine: Any) -> Path:
    """A trusted project in a git repository, all of it committed."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    root = make_project(machine.workspace)
    shutil.rmtree(root / ".git")
    git("init", "-q", cwd=root)
    git("add", "-A", cwd=root)
    git("commit", "-qm", "policy", cwd=root)
    trust(root)
    return root


TAMPERING: dict[str, Callable[[Path], Any]] = {
    "a hook is added": lambda root: (root / "fairlead.toml").write_text(GATE + HARMLESS),
    "a hook is taken out": lambda root: (root / "fairlead.toml").write_text(HARMLESS),
    "the file is empty": lambda root: (root / "fairlead.toml").write_text(""),
    "the file is broken": lambda root: (root / "fairlead.toml").write_text("[[hook"),
    "the file has a mistake": lambda root: (root / "fairlead.toml").write_text(GATE + "phrase = 1\n"),
    "the file is not UTF-8": lambda root: (root / "fairlead.toml").write_bytes(b"\xff\xfe"),
    "the file is deleted": lambda root: (root / "fairlead.toml").unlink(),
    "the file is a folder": lambda root: ((root / "fairlead.toml").unlink(), (root / "fairlead.toml").mkdir()),
    "the file is a dead link": lambda root: (
        (root / "fairlead.toml").unlink(),
        (root / "fairlead.toml").symlink_to("nowhere"),
    ),
    "the gate only watches": lambda root: (root / "fairlead.toml").write_text(GATE + "enforce = false\n"),
    "the script is edited": lambda root: program(root / "gate.sh", "#!/bin/sh\nexit 0\n"),
    "the script is deleted": lambda root: (root / "gate.sh").unlink(),
    "the script cannot be run": lambda root: (root / "gate.sh").chmod(0o644),
    "the script leads out of the project": lambda root: (
        (root / "gate.sh").unlink(),
        (root / "gate.sh").symlink_to("/bin/true"),
    ),
    "a file it is given is edited": lambda root: (root / "rules.txt").write_text(""),
    "a file it is given is deleted": lambda root: (root / "rules.txt").unlink(),
    "everything is stashed": lambda root: (
        (root / "fairlead.toml").write_text(GATE + HARMLESS),
        git("stash", "-u", cwd=root),
        git("rm", "-q", "--cached", "fairlead.toml", cwd=root),
        (root / "fairlead.toml").unlink(),
    ),
    "another branch is checked out": lambda root: (
        git("checkout", "-q", "--orphan", "other", cwd=root),
        git("rm", "-rqf", ".", cwd=root),
    ),
    "all but the repository is deleted": lambda root: [path.unlink() for path in root.iterdir() if path.is_file()],
    "the repository is deleted": lambda root: (shutil.rmtree(root / ".git"), (root / "fairlead.toml").unlink()),
    "a subfolder has a file of its own": lambda root: (
        (root / "src").mkdir(),
        (root / "src/fairlead.toml").write_text(HARMLESS),
        (root / "fairlead.toml").unlink(),
    ),
}
SAYS_NOTHING = {"the script cannot be run"}  # which changes no content


@pytest.mark.parametrize("tamper", TAMPERING.values(), ids=TAMPERING.keys())
async def test_the_policy_holds_after_a_new_start(project: Path, tamper: Callable[[Path], Any]):
    tamper(project)
    decision = await decide(project)
    assert (decision.control, decision.hook, decision.cause) == ("deny", "gate", "policy")
    assert decision.reason.startswith("as trusted")


@pytest.mark.parametrize("tamper", TAMPERING.values(), ids=TAMPERING.keys())
async def test_the_policy_holds_while_it_runs(project: Path, tamper: Callable[[Path], Any]):
    async with Hooks(record=True) as hooks:
        reloader = Reloader(hooks, project)
        tamper(project)
        await reloader.reload()
        decision = await hooks.dispatch(step("before_tool", cwd=str(project)))
    assert (decision.control, decision.hook, decision.cause) == ("deny", "gate", "policy")


def _make_work_tree(project: Path, folder: Path) -> None:
    git("worktree", "add", "-q", "--detach", str(folder), cwd=project)
    (folder / "fairlead.toml").unlink()


BECOMES: dict[str, Callable[[Path, Path], Any]] = {
    "it becomes a work tree": lambda project, folder: _make_work_tree(project, folder),
    "a folder above it becomes a work tree": lambda project, folder: (
        (folder.parent / "plain").rename(folder.parent / "before"),
        _make_work_tree(project, folder),
        (folder / "inner").mkdir(),
    ),
    "a link leads to the project": lambda project, folder: (shutil.rmtree(folder), folder.symlink_to(project)),
    "the project is moved there": lambda project, folder: (shutil.rmtree(folder), project.rename(folder)),
}


@pytest.mark.parametrize("change", BECOMES)
async def test_a_folder_that_comes_to_belong_to_a_trusted_project_has_its_policy(project: Path, change: str):
    """Without a reload that is asked for."""
    folder = project.parent / "plain"
    folder.mkdir()
    (project / "inner").mkdir()
    cwd = folder
    if "above" in change:
        cwd = folder / "inner"
        cwd.mkdir()
    async with Hooks(record=True) as hooks:
        reloader = Reloader(hooks, cwd)
        assert (await hooks.dispatch(step("before_tool", cwd=str(cwd)))).proceeds
        BECOMES[change](project, folder)
        await reloader.look()
        assert (await hooks.dispatch(step("before_tool", cwd=str(cwd)))).hook == "gate"


async def test_what_git_does_in_its_folder_reads_nothing_again(project: Path):
    async with Hooks() as hooks:
        reloader = Reloader(hooks, project)
        before = reloader.config
        (project / ".git/index.lock").touch()
        await reloader.look()
        assert reloader.config is before


@pytest.mark.parametrize("tamper", [t for name, t in TAMPERING.items() if name not in SAYS_NOTHING])
async def test_every_denial_says_that_the_file_is_another_and_names_both_commands(
    project: Path, tamper: Callable[[Path], Any]
):
    tamper(project)
    reason = (await decide(project)).reason
    assert str(project / "fairlead.toml") in reason
    assert "`fairlead trust`" in reason
    assert "`fairlead trust --forget`" in reason


APPROVERS: dict[str, Any] = {
    "there is no approver": None,
    "a human refuses": lambda request: Approval("deny", "ann", "not today"),
    "a human refuses at length": lambda request: Approval("deny", "ann", "no " * 4000),
    "a human refuses without a reason": lambda request: Approval("deny"),
    "the question waits": lambda request: Approval("deny", why="approval 1 pending"),
    "the approver breaks": lambda request: 1 / 0,
}


@pytest.mark.parametrize("answer", APPROVERS)
async def test_a_denial_of_a_question_says_that_the_file_is_another(project: Path, answer: str):
    asks = '[[hook]]\nname = "asks"\non = "before_tool"\nphase = "gate"\nrule = "true"\nask = "ok?"\n'
    (project / "fairlead.toml").write_text(asks)
    trust(project)
    (project / "fairlead.toml").unlink()
    async with Hooks(record=True, approver=APPROVERS[answer]) as hooks:
        load(project).apply(hooks)
        decision = await hooks.dispatch(step("before_tool", cwd=str(project)))
    assert (decision.control, decision.cause) == ("deny", "approval")
    assert decision.reason.count("is gone; the policy that was trusted stays in force") == 1
    assert "`fairlead trust --forget`" in decision.reason


async def test_a_denial_of_a_policy_that_is_as_it_was_says_nothing_more(project: Path):
    assert (await decide(project)).reason == "as trusted"


async def test_a_hook_that_breaks_says_so_too(project: Path):
    (project / "fairlead.toml").write_text(GATE.replace("rules.txt", "gone.txt"))
    (project / "gone.txt").write_text("x")
    program(project / "gate.sh", "#!/bin/sh\nexit 9\n")
    trust(project)
    (project / "fairlead.toml").unlink()
    decision = await decide(project)
    assert (decision.control, decision.cause) == ("deny", "failure")
    assert "`fairlead trust --forget`" in decision.reason


async def test_a_reason_that_fills_its_limit_does_not_push_the_note_out(project: Path):
    program(project / "gate.sh", "#!/bin/sh\nhead -c 20000 /dev/zero | tr '\\0' x >&2; exit 2\n")
    trust(project)
    (project / "fairlead.toml").unlink()
    assert "`fairlead trust --forget`" in (await decide(project)).reason


@given(content=st.binary(max_size=400))
@settings(max_examples=60, deadline=None)
def test_no_content_of_the_file_opens_anything(tmp_path_factory: pytest.TempPathFactory, content: bytes):
    folder = tmp_path_factory.mktemp("any")
    root, state = folder / "p", Trust(folder / "state")
    root.mkdir()
    (root / "fairlead.toml").write_text('[[hook]]\nname = "gate"\non = "before_tool"\nrule = "true"\ndeny = "no"\n')
    seen = survey(Document(root / "fairlead.toml"), root)
    state.pin(seen)
    (root / "fairlead.toml").write_bytes(content)
    config = load(root, trust=state)
    assert "gate" in [configured.name for configured in config.hooks]


# --- what a human says ------------------------------------------------------------------------------


async def test_trusting_something_else_supersedes(project: Path):
    before = (project / "fairlead.toml").read_text()
    (project / "fairlead.toml").write_text(HARMLESS)
    trust(project)
    assert (await decide(project)).control == "proceed"
    (project / "fairlead.toml").write_text(before)  # git checkout OLD -- fairlead.toml
    decision = await decide(project)
    assert decision.control == "proceed"
    assert "has changed since it was trusted" in load(project).untrusted[0]


async def test_an_older_weaker_policy_never_returns_by_itself(project: Path):
    stronger = (project / "fairlead.toml").read_text()
    (project / "fairlead.toml").write_text(HARMLESS)
    trust(project)
    (project / "fairlead.toml").write_text(stronger)
    trust(project)
    (project / "fairlead.toml").write_text(HARMLESS)
    assert (await decide(project)).control == "deny"


async def test_forgetting_ends_it(project: Path):
    (project / "fairlead.toml").unlink()
    Trust().forget(project)
    assert (await decide(project)).control == "proceed"
    assert load(project).untrusted == []


async def test_also_keeps_the_policy_of_another_branch(project: Path):
    main = (project / "fairlead.toml").read_text()
    (project / "fairlead.toml").write_text(HARMLESS)
    trust(project, also=True)
    assert (await decide(project)).control == "proceed"
    assert load(project).untrusted == []
    (project / "fairlead.toml").write_text(main)
    assert (await decide(project)).reason == "as trusted"


async def test_a_file_that_matches_none_of_several_puts_all_in_force(project: Path):
    (project / "fairlead.toml").write_text(HARMLESS)
    trust(project, also=True)
    (project / "fairlead.toml").write_text("# nothing\n")
    assert {configured.name for configured in load(project).hooks} == {"gate", "harmless"}
    assert (await decide(project)).control == "deny"


NO = '[[hook]]\nname = "{0}"\non = "before_tool"\nphase = "gate"\nrule = \'target.command == "{0}"\'\ndeny = "{0}"\n'
ASKS = '[[hook]]\nname = "asks"\non = "turn_end"\nphase = "gate"\nurl = "http://127.0.0.1:1/x"\non_failure = "open"\n'
MISTAKEN = {"the first": (0,), "the second": (1,), "the last": (2,), "two": (0, 2), "all": (0, 1, 2)}


@pytest.mark.parametrize("was_in_force", [True, False])
@pytest.mark.parametrize("mistaken", MISTAKEN)
async def test_a_mistake_in_one_of_several_policies_opens_none(
    machine: Any, project: Path, mistaken: str, was_in_force: bool
):
    """They were trusted when the user's file allowed a host, which it does no longer."""
    machine.write(user='[defaults]\nallow_hosts = ["127.0.0.1"]\n')
    file = project / "fairlead.toml"
    for i, name in enumerate("abc"):
        file.write_text(NO.format(name) + (ASKS if i in MISTAKEN[mistaken] else ""))
        trust(project, also=i > 0)
    if was_in_force:
        file.write_text("")
    async with Hooks(record=True) as hooks:
        reloader = Reloader(hooks, project)
        file.write_text("# none of them\n")
        machine.write(user="")
        await reloader.reload()
        for name in "abc":
            decision = await hooks.dispatch(step("before_tool", tool="bash", args={"command": name}))
            assert decision.denied, (name, decision)


async def test_two_policies_with_a_hook_of_the_same_name_both_hold(project: Path):
    (project / "fairlead.toml").write_text(GATE.replace("rules.txt", "other.txt"))
    (project / "other.txt").write_text("nothing\n")
    trust(project, also=True)
    (project / "fairlead.toml").unlink()
    assert [configured.name for configured in load(project).hooks] == ["gate", "project:gate"]
    assert (await decide(project)).control == "deny"


# --- programs outside the project --------------------------------------------------------------------


@pytest.fixture
def outside(machine: Any) -> Path:
    """A project with two gates: one uses a program of the user's, the other a rule."""
    judge = machine.script("judge", "#!/bin/sh\nexit 0\n")
    (machine.workspace / "fairlead.toml").write_text(
        f'[[hook]]\nname = "mine"\non = "before_tool"\nphase = "gate"\ncommand = ["{judge}"]\n'
        '[[hook]]\nname = "rule"\non = "after_tool"\nrule = "false"\nwarn = "x"\n'
    )
    trust(machine.workspace, unpinned=True)
    return judge


VANISHING: dict[str, tuple[Callable[[Path], Any], str]] = {
    "changed": (lambda path: program(path, "#!/bin/sh\nexit 0\n#\n"), "has changed since it was trusted"),
    "deleted": (lambda path: path.unlink(), "is gone or cannot be read"),
}


@pytest.mark.parametrize("running", [True, False], ids=["in a running table", "after a new start"])
@pytest.mark.parametrize("how", VANISHING)
async def test_a_program_that_changes_fails_its_own_hook_and_no_other(
    machine: Any, outside: Path, how: str, running: bool
):
    change, problem = VANISHING[how]
    async with Hooks(record=True) as hooks:
        if running:
            load(machine.workspace).apply(hooks)
            assert (await hooks.dispatch(step("before_tool"))).control == "proceed"
        change(outside)
        if not running:
            load(machine.workspace).apply(hooks)
        decision = await hooks.dispatch(step("before_tool"))
        other = await hooks.dispatch(step("after_tool"))
    assert (decision.control, decision.hook, decision.cause) == ("deny", "mine", "failure")
    assert "`fairlead trust`" in decision.reason
    if not (how == "deleted" and not running):
        assert problem in decision.reason
    assert other.failures == ()


async def test_a_program_that_changes_fails_open_where_the_hook_says_so(machine: Any, outside: Path):
    file = machine.workspace / "fairlead.toml"
    file.write_text(file.read_text().replace('phase = "gate"\n', 'phase = "gate"\non_failure = "open"\n', 1))
    trust(machine.workspace, unpinned=True)
    program(outside, "#!/bin/sh\nexit 2\n")
    decision = await decide(machine.workspace)
    assert (decision.control, [failure.hook for failure in decision.failures]) == ("proceed", ["mine"])


async def test_a_program_that_this_user_cannot_write_may_be_upgraded(
    machine: Any, outside: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(programs_module, "can_write", lambda path: False)
    trust(machine.workspace, unpinned=True)
    program(outside, "#!/bin/sh\necho upgraded >&2; exit 2\n")
    assert (await decide(machine.workspace)).reason == "upgraded"


async def test_a_program_that_becomes_writable_is_the_trusted_one_no_longer(
    machine: Any, outside: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(programs_module, "can_write", lambda path: False)
    trust(machine.workspace, unpinned=True)
    monkeypatch.setattr(programs_module, "can_write", lambda path: True)
    assert "can be written by this user" in (await decide(machine.workspace)).reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_whether_a_user_can_write_a_program_is_told_by_mode_owner_and_folders(tmp_path: Path):
    def can_write_as_nobody(path: Path) -> bool:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a child that only looks at a file and ends may be forked
            child = os.fork()
        if not child:
            code = 2
            try:
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
                code = int(programs_module.can_write(str(path)))
            finally:
                os._exit(code)
        return {0: False, 1: True}[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]

    assert can_write_as_nobody(Path("/usr/bin/env")) is False
    assert can_write_as_nobody(Path("/tmp")) is True
    link = Path("/usr/bin/awk")
    assert can_write_as_nobody(link) is False
    with tempfile.NamedTemporaryFile(dir="/tmp") as file:
        assert can_write_as_nobody(Path(file.name)) is True  # the folder is open to everybody


# --- what is pinned, however it is named ---------------------------------------------------------------


NAMED = {
    "an argument": ("sh", "gate.sh", "lib.sh"),
    "after an equals sign": ("sh", "gate.sh", "--lib=lib.sh"),
    "glued to an option": ("sh", "gate.sh", "-clib.sh"),
    "before a comma": ("sh", "gate.sh", "lib.sh,x"),
    "between colons": ("sh", "gate.sh", "a:lib.sh:b"),
    "glued, in a list": ("sh", "gate.sh", "-clib.sh,x"),
    "by its full path": ("sh", "gate.sh", "{root}/lib.sh"),
    "a folder": ("sh", "gate.sh", "lib"),
    "a folder, glued": ("sh", "gate.sh", "-Ilib/"),
}


@pytest.mark.parametrize("words", NAMED.values(), ids=NAMED.keys())
async def test_a_file_is_pinned_however_a_command_names_it(machine: Any, words: tuple[str, ...]):
    root = machine.workspace
    for file in (root / "lib.sh", root / "lib/inner.sh"):
        file.parent.mkdir(exist_ok=True)
        file.write_text("as trusted")
    (root / "gate.sh").write_text(
        'for word in "$@"; do case $word in *pinned/*) p="/${word#*/}"; p="${p%%,*}"; p="${p%%:*}"\n'
        '  if [ -d "$p" ]; then cat "$p"/* >&2; else cat "$p" >&2; fi;; esac; done; exit 2\n'
    )
    argv = ", ".join(f'"{word.format(root=root)}"' for word in words)
    (root / "fairlead.toml").write_text(f'[[hook]]\nname = "gate"\non = "before_tool"\ncommand = [{argv}]\n')
    trust(root)
    for file in (root / "lib.sh", root / "lib/inner.sh"):
        file.write_text("hacked")
    (root / "lib/more.sh").write_text("hacked")
    decision = await decide(root)
    assert decision.reason.startswith("as trusted (")


SHEBANGS = {
    "by its path in the project": "#!./tools/run\n",
    "by its full path": "#!{root}/tools/run\n",
    "as an argument": "#!/bin/sh tools/run\n",
    "found by env": "#!/usr/bin/env -S sh tools/run\n",
}


@pytest.mark.parametrize("line", SHEBANGS.values(), ids=SHEBANGS.keys())
async def test_a_file_named_in_the_first_line_of_a_script_is_pinned(machine: Any, line: str):
    root = machine.workspace
    program(root / "tools/run", "#!/bin/sh\necho as trusted >&2; exit 2\n")
    program(root / "gate", line.format(root=root))
    (root / "fairlead.toml").write_text('[[hook]]\nname = "gate"\non = "before_tool"\ncommand = ["./gate"]\n')
    trust(root)
    program(root / "tools/run", "#!/bin/sh\nexit 0\n")
    assert (await decide(root)).reason.startswith("as trusted (")


async def test_a_program_that_env_finds_is_the_one_that_was_found_when_it_was_trusted(
    machine: Any, monkeypatch: pytest.MonkeyPatch
):
    machine.script("interpret", "#!/bin/sh\necho as trusted >&2; exit 2\n")
    program(machine.workspace / "gate", "#!/usr/bin/env interpret\n")
    (machine.workspace / "fairlead.toml").write_text(
        '[[hook]]\nname = "gate"\non = "before_tool"\ncommand = ["./gate"]\n'
    )
    monkeypatch.setenv("PATH", f"{machine.outside}:{os.environ['PATH']}")
    trust(machine.workspace, unpinned=True)
    program(machine.home / "bin/interpret", "#!/bin/sh\nexit 0\n")
    monkeypatch.setenv("PATH", f"{machine.home / 'bin'}:{os.environ['PATH']}")
    assert (await decide(machine.workspace)).reason == "as trusted"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"#!/bin/sh\n", ["/bin/sh"]),
        (b"#! /usr/bin/awk -f \n", ["/usr/bin/awk", "-f"]),
        (b"#!/bin/sh -e -u\n", ["/bin/sh", "-e -u"]),  # the kernel gives one argument
        (b"#!/usr/bin/env python3\n", ["python3"]),
        (b"#!/usr/bin/env -S python3 -u x\n", ["python3", "-u", "x"]),
        (b"\x7fELF", []),
        (b"#!", []),
        (b"", []),
    ],
)
def test_the_first_line_of_a_script_is_read_as_the_kernel_does(content: bytes, words: list[str]):
    assert shebang_of(content) == words


@given(word=st.text("ab-=,:/.", max_size=20), known=st.sets(st.text("ab./", min_size=1, max_size=4), max_size=5))
def test_the_paths_in_a_word_never_overlap_and_are_all_known(word: str, known: set[str]):
    spans = path_spans(word, known.__contains__)
    assert all(word[start:end] in known for start, end in spans)
    assert all(first[1] <= second[0] for first, second in pairwise(spans))
    for part in known & set(word.replace("=", " ").replace(",", " ").replace(":", " ").split()):
        assert any(part in word[start:end] for start, end in spans)


AROUND = [*sorted(set(string.punctuation) - set("/\\")), " ", "\t"]
BEFORE = [*AROUND, "--x=", "-vc", "-c ", "file://", "./", "a/../"]


@pytest.mark.parametrize("name", ["rules.txt", "rules", "sub/rules.txt", "my-rules_2.txt"])
def test_a_file_is_pinned_wherever_in_a_word_its_name_stands(machine: Any, name: str):
    """Its copy takes its place, or the hook fails as soon as it changes."""
    root = make_project(machine.workspace)
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("force-push\n")
    words = [*(f"{before}{name}" for before in BEFORE), *(f"{name}{after}x" for after in AROUND)]
    words += [f"({name})", f'"{name}"', f"{name}#L1-L2", f"{name[:-2]}*", f"{name[:-1]}?", f"{name[:-1]}[a-z]"]
    hooks = (GATE.replace("gate", f"g{i}", 1).replace('"rules.txt"', json.dumps(w)) for i, w in enumerate(words))
    (root / "fairlead.toml").write_text("".join(hooks))
    trust(root, unpinned=True)
    (root / name).write_text("")
    for configured, word in zip(load(root).hooks, words, strict=True):
        runner: Any = configured.hook.fn
        pins, argv = [], []
        while runner is not None:
            pins += [pin.path for pin in getattr(runner, "pins", ())]
            argv += getattr(runner, "argv", [])
            runner = getattr(runner, "fn", None)
        is_copy = any("/pinned/" in part and part != argv[0] for part in argv[-1:])
        assert is_copy or str(root / name) in pins, (word, argv, pins)


@pytest.mark.parametrize("word", ["allowlist", "allow.txt", "@allow", "--file=allow", "-callow", "allow*", "sub/*"])
async def test_a_file_that_was_not_there_and_appears_opens_nothing(machine: Any, word: str):
    root = machine.workspace
    (root / "fairlead.toml").write_text(GATE.replace('"rules.txt"', json.dumps(word)))
    program(root / "gate.sh", '#!/bin/sh\nf="${1#@}"; f="${f#--file=}"; [ -e "${f#-c}" ] || { echo no >&2; exit 2; }\n')
    (root / "sub").mkdir()
    trust(root)
    assert (await decide(root)).reason == "no"
    for name in ("allow", "allowlist", "allow.txt", "sub/allow"):
        (root / name).write_text("")
    assert (await decide(root)).denied


@pytest.mark.parametrize("word", ["d", "d/", "./d/", "d//", "--in=d/", "d/,d"])
async def test_a_folder_is_given_as_it_is_written(machine: Any, word: str):
    """`"$1"*` means other files with a slash at its end than without."""
    root = machine.workspace
    (root / "fairlead.toml").write_text(GATE.replace('"rules.txt"', json.dumps(word)))
    program(root / "gate.sh", '#!/bin/sh\necho "$1" >&2; exit 2\n')
    (root / "d").mkdir()
    (root / "d/rules").write_text("")
    trust(root)
    copied = (await decide(root)).reason
    assert re.sub(r"[^=,]*/pinned/[0-9a-f]+/", "", copied) == word.replace("./", "")


async def test_a_damaged_copy_is_made_again_from_the_project(project: Path):
    for copy in (Trust().folder / "pinned").glob("*/*"):
        copy.chmod(0o700)
        copy.write_text("damaged")
    assert (await decide(project)).reason == "as trusted"


def test_a_damaged_copy_that_cannot_be_made_again_is_an_error(project: Path):
    shutil.rmtree(Trust().folder / "pinned")
    (project / "fairlead.toml").unlink()
    with pytest.raises(FairleadError, match=r"is damaged .* `fairlead trust`"):
        load(project)


# --- work trees, nested projects, other repositories ------------------------------------------------------


async def test_a_work_tree_of_a_trusted_repository_has_its_policy(project: Path, tmp_path: Path):
    git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "feature"), cwd=project)
    assert (await decide(tmp_path / "feature")).reason == "as trusted"
    (tmp_path / "feature/fairlead.toml").unlink()
    (tmp_path / "feature/src").mkdir()
    assert (await decide(tmp_path / "feature/src")).reason.startswith("as trusted (")


async def test_a_repository_made_inside_a_work_tree_does_not_leave_its_policy(project: Path, tmp_path: Path):
    git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "feature"), cwd=project)
    (tmp_path / "feature/inner").mkdir()
    git("init", "-q", cwd=tmp_path / "feature/inner")
    assert (await decide(tmp_path / "feature/inner")).control == "deny"


async def test_a_work_tree_inside_the_repository_has_the_policy_once(project: Path):
    git("worktree", "add", "-q", "-b", "feature", str(project / ".trees/feature"), cwd=project)
    assert [c.name for c in load(project / ".trees/feature").hooks] == ["gate"]
    assert (await decide(project / ".trees/feature")).reason == "as trusted"


async def test_hooks_run_in_the_work_tree_they_judge(project: Path, tmp_path: Path):
    program(project / "gate.sh", "#!/bin/sh\npwd >&2; exit 2\n")
    trust(project)
    git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "feature"), cwd=project)
    assert (await decide(tmp_path / "feature")).reason.startswith(str(tmp_path / "feature"))


async def test_a_folder_that_only_claims_to_be_a_work_tree_is_none(project: Path, tmp_path: Path):
    git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "feature"), cwd=project)
    (tmp_path / "claims").mkdir()
    shutil.copy(tmp_path / "feature/.git", tmp_path / "claims/.git")
    assert load(tmp_path / "claims").sources.projects == ()


CLAIMS: dict[str, Callable[[Path, Path, Path], Any]] = {
    "a work tree is moved by hand": lambda project, tree, folder: tree.rename(folder),
    "a work tree is copied": lambda project, tree, folder: shutil.copytree(tree, folder),
    "a file names the repository": lambda project, tree, folder: (
        folder.mkdir(),
        (folder / ".git").write_text(f"gitdir: {project}/.git\n"),
    ),
    "a link leads to the repository": lambda project, tree, folder: (
        folder.mkdir(),
        (folder / ".git").symlink_to(project / ".git"),
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("is_running", [False, True])
async def test_a_folder_in_which_git_uses_a_trusted_repository_that_does_not_name_it_is_closed(
    project: Path, tmp_path: Path, claim: str, is_running: bool
):
    """Its policy is not known to be that of the folder, and nothing of the folder was trusted: so nothing opens."""
    tree, folder = tmp_path / "tree", tmp_path / "folder"
    git("worktree", "add", "-q", "--detach", str(tree), cwd=project)
    (tree / "fairlead.toml").unlink()
    CLAIMS[claim](project, tree, folder)
    (folder / "inner").mkdir()
    git("status", cwd=folder)  # it works there
    for here in (folder, folder / "inner"):
        async with Hooks(record=True) as hooks:
            if is_running:
                Reloader(hooks, here)
            else:
                load(here).apply(hooks)
            decision = await hooks.dispatch(step("before_tool", cwd=str(here)))
        assert (decision.control, decision.hook) == ("deny", "fairlead.toml.claimed")
        assert all(text in decision.reason for text in (str(folder), str(project), "git worktree repair"))
        assert load(here).untrusted
    assert (await decide(project)).hook == "gate"


async def test_a_work_tree_that_was_moved_by_hand_has_the_policy_once_it_is_repaired(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("fairlead.config.reload.RETRY", 0)
    git("worktree", "add", "-q", "--detach", str(tmp_path / "tree"), cwd=project)
    (tmp_path / "tree").rename(tmp_path / "moved")
    async with Hooks(record=True) as hooks:
        reloader = Reloader(hooks, tmp_path / "moved")
        git("worktree", "repair", cwd=tmp_path / "moved")
        await reloader.look()
        assert (await hooks.dispatch(step("before_tool", cwd=str(tmp_path / "moved")))).hook == "gate"


@pytest.mark.parametrize("claim", CLAIMS)
async def test_a_folder_that_claims_a_repository_without_a_policy_is_not_closed(
    machine: Any, tmp_path: Path, claim: str
):
    plain, tree, folder = tmp_path / "plain", tmp_path / "tree", tmp_path / "folder"
    plain.mkdir()
    git("init", "-q", cwd=plain)
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=plain)
    git("worktree", "add", "-q", "--detach", str(tree), cwd=plain)
    CLAIMS[claim](plain, tree, folder)
    assert (await decide(folder)).proceeds


def test_a_clone_is_not_trusted(project: Path, tmp_path: Path):
    git("clone", "-q", str(project), str(tmp_path / "clone"), cwd=tmp_path)
    (line,) = load(tmp_path / "clone").never_trusted
    assert "the file has not been trusted" in line


async def test_nested_trusted_projects_add_up(project: Path):
    inner = project / "packages/a"
    inner.mkdir(parents=True)
    (inner / "fairlead.toml").write_text('[[hook]]\nname = "inner"\non = "before_input"\nrule = "true"\ndeny = "no"\n')
    trust(inner)
    assert [configured.name for configured in load(inner).hooks] == ["gate", "inner"]
    assert [configured.name for configured in load(project).hooks] == ["gate"]
    (project / "fairlead.toml").unlink()
    (inner / "fairlead.toml").unlink()
    assert [configured.name for configured in load(inner).hooks] == ["gate", "inner"]


def test_a_nested_file_that_was_not_trusted_is_told_and_takes_nothing_away(project: Path):
    inner = project / "packages/a"
    inner.mkdir(parents=True)
    (inner / "fairlead.toml").write_text(HARMLESS)
    config = load(inner)
    assert [configured.name for configured in config.hooks] == ["gate"]
    assert str(inner / "fairlead.toml") in config.never_trusted[0]


async def test_another_repository_at_the_same_path_is_told_and_opens_nothing(project: Path):
    git("remote", "add", "origin", "https://example.com/one.git", cwd=project)
    trust(project)
    assert load(project).untrusted == []
    git("remote", "set-url", "origin", "https://example.com/two.git", cwd=project)
    (line,) = load(project).untrusted
    assert "another repository" in line
    assert "https://example.com/two.git" in line
    assert (await decide(project)).reason.startswith("as trusted (")


# --- what was never trusted -----------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "control"), [("proceed", "proceed"), ("ask", "deny"), ("deny", "deny")])
async def test_the_user_decides_what_agents_may_do_in_an_untrusted_project(machine: Any, policy: str, control: str):
    machine.write(user=f'[defaults]\nuntrusted = "{policy}"\n', project=HARMLESS)
    decision = await decide(machine.workspace)
    assert decision.control == control
    if policy == "deny":
        assert "has not been trusted" in decision.reason
        assert "`fairlead trust`" in decision.reason


NEVER_TRUSTED: dict[str, Callable[[Path], Any]] = {
    "it has a mistake": lambda root: (root / "fairlead.toml").write_text(HARMLESS + "phrase = 1\n"),
    "it is broken": lambda root: (root / "fairlead.toml").write_text("[[hook"),
    "it is not UTF-8": lambda root: (root / "fairlead.toml").write_bytes(b"\xff\xfe"),
    "it has an unknown table": lambda root: (root / "fairlead.toml").write_text("[tooll]\nx = 1\n"),
    "it was empty before it was broken": lambda root: (root / "fairlead.toml").write_text("x = ["),
    "a repository begins in between": lambda root: (root / "in/.git").mkdir(),
    "a folder in between has a file that says nothing": lambda root: (root / "in/fairlead.toml").write_text("# none\n"),
    "a folder in between has a broken file": lambda root: (root / "in/fairlead.toml").write_text("[[hook"),
    "a folder in between has both": lambda root: (
        (root / "in/.git").write_text("gitdir: nowhere\n"),
        (root / "in/fairlead.toml").write_text(""),
    ),
}


@pytest.mark.parametrize("has_git", [True, False])
@pytest.mark.parametrize("change", NEVER_TRUSTED)
async def test_what_agents_may_do_in_an_untrusted_project_does_not_lapse(machine: Any, change: str, has_git: bool):
    """Neither in what runs already nor after a new start, in any folder of it."""
    machine.write(user='[defaults]\nuntrusted = "deny"\n', project="" if "was empty" in change else HARMLESS)
    inner = machine.workspace / "in/src"
    inner.mkdir(parents=True)
    if not has_git:
        (machine.workspace / ".git").rmdir()
    async with Hooks(record=True) as hooks:
        reloader = Reloader(hooks, inner)
        NEVER_TRUSTED[change](machine.workspace)
        await reloader.look()
        assert (await hooks.dispatch(step("before_tool", cwd=str(inner)))).hook == "fairlead.toml.untrusted"
    try:
        decision = await decide(inner)
    except ConfigError:
        return  # which is a failure of the dispatch: the caller's policy decides
    assert decision.hook == "fairlead.toml.untrusted"


@pytest.mark.parametrize("text", ["[[hook", "[tooll]\n", HARMLESS + "phrase = 1\n"])
async def test_a_broken_untrusted_file_in_a_trusted_project_counts_as_untrusted(machine: Any, project: Path, text: str):
    machine.write(user='[defaults]\nuntrusted = "deny"\n')
    trust(make_gateless(project))
    (project / "in").mkdir()
    (project / "in/fairlead.toml").write_text(text)
    assert (await decide(project / "in")).hook == "fairlead.toml.untrusted"


def make_gateless(root: Path) -> Path:
    (root / "fairlead.toml").write_text(HARMLESS)
    return root


async def test_the_strictest_layer_decides_about_an_untrusted_project(machine: Any):
    machine.write(system='[defaults]\nuntrusted = "deny"\n', user='[defaults]\nuntrusted = "proceed"\n')
    machine.write(project=HARMLESS)
    assert (await decide(machine.workspace)).control == "deny"


@pytest.mark.parametrize("text", ["", "# a comment\n", None])
async def test_where_nothing_needs_trust_untrusted_has_no_say(machine: Any, text: str | None):
    machine.write(user='[defaults]\nuntrusted = "deny"\n', project=text)
    assert (await decide(machine.workspace)).control == "proceed"


def test_a_project_cannot_say_what_happens_where_it_is_not_trusted(machine: Any):
    (mistake,) = machine.mistakes(project='[defaults]\nuntrusted = "proceed"\n')
    assert "a project has no untrusted" in mistake.problem


async def test_a_trusted_project_that_has_changed_is_not_an_untrusted_one(machine: Any, project: Path):
    machine.write(user='[defaults]\nuntrusted = "deny"\n')
    (project / "fairlead.toml").write_text(HARMLESS)
    assert (await decide(project)).hook == "gate"


# --- the guard --------------------------------------------------------------------------------------------


async def test_no_agent_changes_a_file_that_a_hook_in_force_names(machine: Any, project: Path):
    judge = machine.script("judge.sh", "#!/bin/sh\nexit 0\n")
    helper = machine.home / "hooks/helper.py"
    helper.parent.mkdir()
    helper.write_text("def judge(step): ...\n")
    machine.write(
        user=f'[[hook]]\nname = "u"\non = "before_tool"\ncommand = ["{judge}"]\n'
        f'[[hook]]\nname = "v"\non = "before_input"\npython = "{helper}:judge"\n'
    )
    async with Hooks(record=True) as hooks:
        load(project).apply(hooks)
        for path in (judge, helper, project / "gate.sh", project / "rules.txt"):
            for fields in (
                {"tool": "Write", "args": {"file_path": str(path), "content": ""}},
                {"tool": "Edit", "args": {"file_path": str(path), "old_string": "a", "new_string": "b"}},
                {"tool": "bash", "args": {"command": f"echo > {path}"}},
                {"tool": "bash", "args": {"command": f"rm -f {path}"}},
                {"tool": "bash", "args": {"command": f"cd {path.parent} && sed -i s/a/b/ {path.name}"}},
                {"tool": "bash", "args": {"command": f"python3 -c \"open('{path}', 'w')\""}},
                {"tool": "bash", "args": {"command": f"git checkout HEAD~1 -- {path}"}},
            ):
                decision = await hooks.dispatch(step("before_tool", cwd=str(project), **fields))
                assert decision.hook == "fairlead.guard", (path, fields)


async def test_an_agent_may_run_and_read_what_hooks_name(project: Path):
    program(project / "gate.sh", "#!/bin/sh\nexit 0\n")
    trust(project)
    for command in ("cat gate.sh", "./gate.sh rules.txt", "sh gate.sh", "grep x rules.txt", "pytest rules.txt", "ls"):
        assert (await decide(project, tool="bash", args={"command": command})).control == "proceed", command


async def test_no_agent_changes_the_installed_package(project: Path):
    import fairlead

    place = Path(fairlead.__file__).parent / "engine.py"
    for command in (f"sed -i s/deny/allow/ {place}", f"rm -rf {place.parent}", f"cp x {place}"):
        assert (await decide(project, tool="bash", args={"command": command})).hook == "fairlead.guard"
    write = {"tool": "Write", "args": {"file_path": str(place), "content": ""}}
    assert (await decide(project, **write)).hook == "fairlead.guard"


@pytest.mark.parametrize(
    "command",
    [
        "pip install fairlead==0.0.1", "pip install --force-reinstall ./x/fairlead-0.whl", "uv pip install -U fairlead",
        "pip install git+https://example.com/fairlead.git@v1", "python3 -m pip install 'fairlead[all]<1'",
        "pipx upgrade fairlead", "uv tool install fairlead@latest", "poetry add fairlead",
        "pip install -e ../fairlead/",
    ],
)  # fmt: skip
async def test_no_agent_installs_another_fairlead(project: Path, command: str):
    assert (await decide(project, tool="bash", args={"command": command})).hook == "fairlead.guard"


@pytest.mark.parametrize(
    "command",
    [
        "pip install fairlead-extras", "pip install /src/fairlead/requests.whl", "pip show fairlead",
        "uv run git add src/fairlead", "poetry run git add fairlead", "pip install -t vendor/fairlead requests",
    ],
)  # fmt: skip
async def test_an_agent_may_install_other_packages(machine: Any, command: str):
    machine.write(user=HARMLESS)
    assert (await decide(machine.workspace, tool="bash", args={"command": command})).control == "proceed"


async def test_no_agent_changes_a_folder_that_a_gate_of_the_user_names(machine: Any, monkeypatch: pytest.MonkeyPatch):
    rules = machine.outside / "rules"
    rules.mkdir()
    words = [str(machine.script("gate.sh", "#!/bin/sh\nexit 0\n")), str(rules), str(machine.workspace), "/tmp"]
    machine.write(user=f'[[hook]]\nname = "g"\non = "before_tool"\nphase = "gate"\ncommand = {json.dumps(words)}\n')
    for command, hook in {f"touch {rules}/a": "fairlead.guard", "touch a /tmp/a": None}.items():
        assert (await decide(machine.workspace, tool="bash", args={"command": command})).hook == hook, command


# --- mistakes and missing variables take away nothing else ---------------------------------------------------

BROKEN = (HARMLESS + "nonsense = 1\n", "[[hook", '[defaults]\ntimeout = "x"\n', "\0")


@pytest.mark.parametrize("content", BROKEN)
@pytest.mark.parametrize("policy", ["deny", "ask", "proceed"])
async def test_a_mistake_in_a_file_that_was_never_trusted_switches_nothing_off(machine: Any, content: str, policy: str):
    gate = '[[hook]]\nname = "own"\non = "before_input"\nrule = "true"\ndeny = "no"\n'
    machine.write(user=f'[defaults]\nuntrusted = "{policy}"\n{gate}', project=content)
    async with Hooks(record=True) as hooks:
        Reloader(hooks, machine.workspace)
        call = step("before_tool", tool="bash", args={"command": "ls"}, cwd=str(machine.workspace))
        expected = "proceed" if policy == "proceed" else "deny"  # here, no human can be asked
        assert (await hooks.dispatch(call)).control == expected
        assert (await hooks.dispatch(step("before_input"))).control == "deny"
        call = step("before_tool", tool="bash", args={"command": f"rm -r {machine.state}"}, cwd=str(machine.workspace))
        assert (await hooks.dispatch(call)).hook == "fairlead.guard"


def test_a_mistake_in_the_users_file_is_still_an_error(machine: Any):
    machine.write(user="[[hook", project=HARMLESS)
    with pytest.raises(ConfigError):
        Reloader(Hooks(), machine.workspace)


async def test_a_variable_that_is_not_set_fails_its_own_hook_and_no_other(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    url = '[[hook]]\nname = "u"\non = "before_input"\nurl = "https://example.com/"\nheaders = { A = { env = "TOK" } }\n'
    monkeypatch.setenv("TOK", "value-of-the-token")
    (project / "fairlead.toml").write_text(GATE + url)
    trust(project)
    monkeypatch.delenv("TOK")
    async with Hooks(record=True) as hooks:
        Reloader(hooks, project)
        assert (await hooks.dispatch(step("before_tool", cwd=str(project)))).reason == "as trusted"
        assert "TOK is not set" in (await hooks.dispatch(step("before_input", cwd=str(project)))).reason


# --- a survey ends ----------------------------------------------------------------------------------------

PIECES = ("a", "d/", "*", "*/", "../", "l/", ",", "=", "[a]", "?", "x.sh", "-c", "/", " ")
REPEATED = st.builds(
    lambda piece, n: piece * n, st.lists(st.sampled_from(PIECES), max_size=4).map("".join), st.integers(1, 3000)
)


@given(words=st.lists(REPEATED, min_size=1, max_size=20), hooks=st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_a_survey_ends_within_its_budget_whatever_commands_say(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], hooks: int
):
    root = tmp_path_factory.mktemp("any")
    for i in range(12):
        (root / f"d{i}/d").mkdir(parents=True)
    (root / "d").mkdir()
    (root / "l").symlink_to(".")
    (root / "x.sh").write_text("")
    entry = f'[[hook]]\nname = "x"\non = "before_tool"\ncommand = {json.dumps(["sh", *words])}\n'
    (root / "fairlead.toml").write_text(entry * hooks)
    with contextlib.suppress(Untrustworthy):  # without a budget it takes hours, and this test runs out of time
        survey(Document(root / "fairlead.toml"), root)


def test_what_a_survey_may_look_at_is_counted_over_all_words_and_hooks(machine: Any):
    machine.write(project=f'[[hook]]\nname = "x"\ncommand = {json.dumps(["sh", *["a,a"] * 50_000])}\n')
    with pytest.raises(Untrustworthy, match="takes too long"):
        survey(Document(machine.project), machine.workspace)


def test_a_folder_that_many_hooks_name_is_looked_through_once(machine: Any, monkeypatch: pytest.MonkeyPatch):
    (machine.workspace / "rules").mkdir()
    (machine.workspace / "rules/a").write_text("")
    walked: list[Any] = []
    walk = os.walk
    monkeypatch.setattr(os, "walk", lambda top: walked.append(top) or walk(top))
    machine.write(project='[[hook]]\nname = "x"\ncommand = ["sh", "rules"]\n' * 20)
    assert len(survey(Document(machine.project), machine.workspace).hooks) == 20
    assert len(walked) == 1


@pytest.mark.parametrize(
    ("words", "is_covered"),
    [
        (["node", "x.js"], True), (["bun", "x.js"], False), (["Rscript", "x.R"], False),
        (["Rscript", "--vanilla", "x.R"], True), (["gawk", "-f", "x.awk", "-v", "a=1"], True),
        (["gawk", "-f", "x.awk", "-i", "lib"], False), (["gawk", "-f", "x.awk", "--include=lib"], False),
    ],
)  # fmt: skip
def test_an_interpreter_that_loads_files_of_its_folder_is_not_covered(machine: Any, words: list[str], is_covered: bool):
    for name in ("x.js", "x.R", "x.awk"):
        (machine.workspace / name).write_text("")
    machine.write(project=f'[[hook]]\nname = "x"\non = "before_tool"\ncommand = {json.dumps(words)}\n')
    (seen,) = survey(Document(machine.project), machine.workspace).hooks
    assert (seen.uncovered is None) == is_covered


# --- repositories that come later, and forgetting ------------------------------------------------------------


async def test_work_trees_of_a_repository_made_after_trust_have_the_policy(project: Path, tmp_path: Path):
    shutil.rmtree(project / ".git")
    trust(project)
    git("init", "-q", cwd=project)
    git("add", "-A", cwd=project)
    git("commit", "-qm", "policy", cwd=project)
    git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "feature"), cwd=project)
    assert (await decide(tmp_path / "feature")).reason == "as trusted"


def test_forgetting_ends_the_policy_in_all_work_trees(project: Path, tmp_path: Path):
    git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "feature"), cwd=project)
    (tmp_path / "feature/fairlead.toml").write_text(GATE + HARMLESS)
    trust(tmp_path / "feature")
    assert Trust().forget(project)
    for folder in (project, tmp_path / "feature"):
        assert load(folder).hooks == ()
    assert not Trust().forget(project)


def test_what_was_trusted_last_counts_whatever_the_clock_says(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("one", "two"):
        git("worktree", "add", "-q", "-b", name, str(tmp_path / name), cwd=project)
    (tmp_path / "one/fairlead.toml").write_text(GATE + HARMLESS)
    monkeypatch.setattr("fairlead.config.trust.time.time", lambda: 1.0)
    trust(tmp_path / "one")
    assert [configured.name for configured in load(tmp_path / "two").hooks] == ["gate", "harmless"]


async def test_another_repository_with_another_file_is_told_of_both(project: Path):
    shutil.rmtree(project / ".git")
    git("init", "-q", cwd=project)
    (project / "fairlead.toml").write_text(HARMLESS)
    (line,) = load(project).untrusted
    assert "has changed since it was trusted" in line
    assert "another repository" in line


def test_a_repository_on_the_inode_of_another_is_another():
    one = Repository("/a/.git", "/a", None, (1, 2), 10)
    assert one.is_replaced_by(replace(one, made=11))
    assert not one.is_same(replace(one, common="/b/.git", top="/b", made=11))
    assert one.is_same(replace(one, common="/b/.git", top="/b"))


def test_a_folder_is_closed_from_the_moment_it_is_trusted(project: Path):
    state = Trust().folder
    with changing_folders(state / "fallback.json") as folders:
        folders |= {key: {"before_tool": "open"} for key in (str(project), f"{project}/sub", str(project.parent))}
    trust(project)
    written = read_folders(state / "fallback.json")
    assert written.keys() == {str(project), str(project.parent)}
    assert set(written[str(project)].values()) == {"closed"}


# --- what another folder claims to be --------------------------------------------------------------------


@pytest.mark.parametrize("claim", ["file", "link"])
def test_a_folder_that_claims_the_repository_of_another_does_not_stand_in_for_it(tmp_path: Path, claim: str):
    strict, lax = make_project(tmp_path / "strict"), make_project(tmp_path / "lax")
    git("init", cwd=strict)
    git("add", ".", cwd=strict)
    git("commit", "-m", "x", cwd=strict)
    trust(strict)
    trust(lax)
    if claim == "file":
        (lax / ".git").write_text(f"gitdir: {strict}/.git\n")
    else:
        (lax / ".git").symlink_to(strict / ".git")
    git("worktree", "add", str(tmp_path / "tree"), cwd=strict)
    assert [source.key for source in projects_around(tmp_path / "tree", Trust())] == [str(strict)]
    Trust().forget(lax)
    assert Trust().projects[str(strict)].snapshots


@pytest.mark.parametrize("event", GUARDING)
async def test_a_trusted_policy_that_cannot_be_used_denies_wherever_something_can_be_refused(event: str):
    """As one does that a later version of fairlead does not understand."""
    layer: Any = SimpleNamespace(document=SimpleNamespace(mistakes=["line 3: unknown key"]))
    hooks = Hooks()
    hooks.replace_all(unusable_hooks([layer]), source="unusable")
    decision = await hooks.dispatch(step(event))
    assert (decision.denied, "line 3: unknown key" in (decision.reason or "")) == (True, True)


def test_a_project_whose_own_path_looks_like_a_pattern_has_its_files_found(tmp_path: Path):
    root = tmp_path / "app [1]*"
    program(root / "rules/a.sh", "#!/bin/sh\n")
    assert glob_files("rules/*.sh", root) == ["rules/a.sh"]


async def test_a_state_that_cannot_be_written_keeps_no_policy_from_being_found(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(*_: Any) -> None:
        raise FairleadError("it cannot be written")

    git("init", cwd=project)  # after it was trusted
    monkeypatch.setattr(Trust, "record_repositories", full)
    assert [source.key for source in projects_around(project, Trust())] == [str(project)]
