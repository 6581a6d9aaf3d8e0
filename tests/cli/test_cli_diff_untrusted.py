"""No code of a revision runs in a diff: not its hooks, and not what its repository tells git to run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from test_cli_diff import DOCKER, FORCE, record

from conftest import Machine, Run

Git = Callable[..., str]


@pytest.fixture
def journal(machine: Machine) -> Path:
    path = machine.home / "journal.db"
    record(path)
    return path


@pytest.fixture
def git(machine: Machine) -> Git:
    """Git in a repository with two revisions of the policy: `main` and `feature`."""

    def git(*words: str) -> str:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "protocol.file.allow=always")
        done = subprocess.run(
            ["git", *identity, *words], cwd=machine.project, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    git("init", "-b", "main")
    machine.project_file.write_text(FORCE + DOCKER)
    git("add", "fairlead.toml")
    git("commit", "-m", "one")
    git("switch", "-c", "feature")
    return git


def commit(git: Git, machine: Machine, text: str) -> None:
    machine.project_file.write_text(text)
    git("add", "-A")
    git("commit", "-m", "two")


@pytest.fixture
def script(machine: Machine) -> Path:
    """A program that leaves a mark, if it runs."""
    path = machine.home / "evil.sh"
    path.write_text(f"#!/bin/sh\n/usr/bin/touch {machine.home}/it-ran\nexec cat\n")
    path.chmod(0o755)
    return path


FORMS = {
    "python": 'python = "./evil.py:hook"',
    "command": 'command = ["./evil.sh"]',
    "shell": 'shell = "./evil.sh"',
    "worker": 'worker = ["./evil.sh"]',
    "prompt": 'prompt = "is it fine?"\nmodel = "http://127.0.0.1:9/v1/x"',
    "url": 'url = "http://127.0.0.1:9/"',
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layer", ["auto", "user", "system"])
def test_a_hook_of_a_revision_is_untrusted_code(
    run: Run, journal: Path, machine: Machine, git: Git, form: str, layer: str
):
    mark = machine.home / "it-ran"
    machine.file("evil.py", f"open({str(mark)!r}, 'w')\ndef hook(step): return None\n")
    machine.file("evil.sh", f"#!/bin/sh\n/usr/bin/touch {mark}\n", 0o755)
    commit(git, machine, f'{FORCE}\n[[hook]]\nname = "evil"\non = "before_tool"\nphase = "gate"\n{FORMS[form]}\n')
    for external in ("recorded", "run"):
        ended = run("diff", "--journal", str(journal), "main..feature", "--json", "--external", external,
                    "--layer", layer)  # fmt: skip
        assert not mark.exists()
        if ended.code == 1:  # it is a mistake in a project's file
            assert "fairlead.toml" in ended.err
        else:
            assert {one["why"] for one in ended.json["unknown"]} == {"untrusted code"}
            assert ended.json["untrusted"] == ["evil"]


@pytest.mark.parametrize("layer", ["auto", "user", "system"])
def test_a_pack_of_another_package_is_untrusted_code(
    run: Run, journal: Path, machine: Machine, git: Git, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, layer: str
):
    mark = machine.home / "it-ran"
    site = tmp_path / "site"
    info = site / "acme-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[fairlead.packs]\nacme = acme_packs:acme\n")
    (site / "acme_packs.py").write_text(f"open({str(mark)!r}, 'w')\nfrom fairlead.packs.rules import Pack\n"
                                        "acme = Pack('acme', ())\n")  # fmt: skip
    monkeypatch.syspath_prepend(site)
    commit(git, machine, f'packs = ["acme", "git", "acme"]\n{FORCE}{DOCKER}')
    ended = run("diff", "--journal", str(journal), "main..feature", "--json", "--layer", layer)
    assert not mark.exists()
    assert "acme_packs" not in sys.modules
    if layer == "auto":
        assert ended.code == 1
        assert "a project's file cannot load a pack of another package" in ended.err
    else:
        assert {(one["why"], one["what"]) for one in ended.json["unknown"]} == {("untrusted code", "fairlead.acme")}
        assert ended.json["totals"]["same"] == 0


def test_what_a_repository_tells_git_to_run_does_not_run(
    run: Run, journal: Path, machine: Machine, git: Git, script: Path
):
    machine.file(".gitattributes", "* filter=evil diff=evil merge=evil\n")
    commit(git, machine, DOCKER)
    for key in ("core.fsmonitor", "core.pager", "core.sshCommand", "core.gitProxy", "core.editor", "diff.external",
                "diff.evil.textconv", "diff.evil.command", "filter.evil.smudge", "filter.evil.clean",
                "filter.evil.process", "pager.rev-parse", "pager.cat-file", "gpg.program", "credential.helper",
                "core.alternateRefsCommand", "uploadpack.packObjectsHook", "core.askPass"):  # fmt: skip
        git("config", key, str(script))
    for alias in ("rev-parse", "cat-file"):
        git("config", f"alias.{alias}", f"!{script}")
    git("config", "core.hooksPath", str(script.parent))
    for hook in ("post-checkout", "reference-transaction", "post-index-change", "pre-commit"):
        (script.parent / hook).write_text(script.read_text())
        (script.parent / hook).chmod(0o755)
    (machine.home / "it-ran").unlink(missing_ok=True)
    ended = run("diff", "--journal", str(journal), "main..feature", "--json")
    assert ended.code == 2, ended.all
    assert not (machine.home / "it-ran").exists()


def test_a_missing_object_is_not_fetched(run: Run, journal: Path, machine: Machine, git: Git, script: Path):
    commit(git, machine, DOCKER)
    blob = git("rev-parse", "feature:fairlead.toml")
    (machine.project / ".git/objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{script} %S", "protocol.ext.allow": "always", "protocol.allow": "always",
        "remote.origin.uploadpack": str(script), "remote.origin.partialclonefilter": "blob:none",
    }.items():  # fmt: skip
        git("config", key, value)
    for url in (f"ext::{script} %S", str(machine.project), f"file://{machine.project}", "ssh://example.invalid/x"):
        git("config", "remote.origin.url", url)
        ended = run("diff", "--journal", str(journal), "main..feature")
        assert ended.code == 1
        assert not (machine.home / "it-ran").exists()


def test_a_link_in_a_revision_is_not_followed(run: Run, journal: Path, machine: Machine, git: Git):
    machine.user(DOCKER)
    machine.project_file.unlink()
    machine.project_file.symlink_to(machine.user_file)
    git("add", "-A")
    git("commit", "-m", "link")
    ended = run("diff", "--journal", str(journal), "main..feature")
    assert ended.code == 1
    assert "is a symbolic link" in ended.err


def test_a_submodule_and_a_folder_are_no_policy(run: Run, journal: Path, machine: Machine, git: Git):
    other = machine.home / "other"
    subprocess.run(["git", "clone", "-q", str(machine.project), str(other)], check=True, capture_output=True)
    git("submodule", "add", str(other), "sub")
    git("commit", "-m", "sub")
    for word in ("feature:sub", "feature:sub/fairlead.toml", "feature:", "feature:nothing"):
        ended = run("diff", "--journal", str(journal), "main", word)
        assert ended.code == (0 if word == "feature:" else 1), ended.all
        assert "Traceback" not in ended.all


def test_a_replaced_object_does_not_stand_for_the_real_one(run: Run, journal: Path, machine: Machine, git: Git):
    commit(git, machine, DOCKER)
    git("replace", git("rev-parse", "feature:fairlead.toml"), git("rev-parse", "main:fairlead.toml"))
    assert run("diff", "--journal", str(journal), "main..feature").code == 2


def test_variables_that_a_policy_names_need_not_be_set(run: Run, journal: Path, machine: Machine, git: Git):
    commit(
        git,
        machine,
        f"""{FORCE}{DOCKER}
[[hook]]
name = "judge"
on = "before_tool"
phase = "gate"
url = "https://judge.example/"
headers = {{ Authorization = {{ env = "NOT_SET_ANYWHERE" }} }}
""",
    )
    ended = run("diff", "--journal", str(journal), "main..feature", "--json")
    assert ended.code == 0, ended.err
    assert {one["why"] for one in ended.json["unknown"]} == {"untrusted code"}
