"""Signed trust files: one person looks, and everyone who lists that person's key relies on it."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from test_trust_in_force import GATE, HARMLESS, decide, git, make_project

from fairlead import Hooks
from fairlead.config import load
from fairlead.config.document import Document
from fairlead.config.reload import Reloader
from fairlead.config.signed import newest_signed, write_signed
from fairlead.config.survey import survey
from fairlead.config.trust import Trust
from fairlead.testing import step

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")


@pytest.fixture
def key(tmp_path: Path) -> Path:
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "team@example.com", "-f", tmp_path / "key"], check=True
    )
    return tmp_path / "key"


def sign(root: Path, key: Path, *, also: bool = False) -> float:
    return write_signed(survey(Document(root / "fairlead.toml"), root), str(key), unpinned=False, also=also)


def signer(machine: Any, key: Path) -> None:
    public = key.with_suffix(".pub").read_text().strip()
    machine.write(user=f'[defaults]\ntrust_signers = ["{public}"]\n')


async def test_what_a_signer_signed_is_trusted_without_a_look(machine: Any, key: Path):
    root = make_project(machine.workspace)
    sign(root, key)
    assert load(root).never_trusted
    signer(machine, key)
    assert (await decide(root)).reason == "as trusted"
    assert Trust().project(root).snapshots[0].signer == "team@example.com"


def test_another_key_signs_nothing(machine: Any, key: Path, tmp_path: Path):
    root = make_project(machine.workspace)
    sign(root, key)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    signer(machine, tmp_path / "other")
    assert load(root).never_trusted


@pytest.mark.parametrize("part", ["fairlead.toml", "gate.sh", "rules.txt", "fairlead.trust"])
def test_a_change_to_any_part_is_not_what_was_signed(machine: Any, key: Path, part: str):
    root = make_project(machine.workspace)
    sign(root, key)
    signer(machine, key)
    text = (root / part).read_text()
    (root / part).write_text(
        text.replace("sha256:", "sha256:0") if part.endswith("trust") else text + "# x\n[redact]\n"
    )
    assert load(root).never_trusted


def test_a_digest_put_into_a_signed_file_is_not_signed(machine: Any, key: Path):
    root = make_project(machine.workspace)
    sign(root, key)
    signer(machine, key)
    (root / "rules.txt").write_text("")
    digest = survey(Document(root / "fairlead.toml"), root).digest
    file = root / "fairlead.trust"
    file.write_text(file.read_text().replace('"digests": [', f'"digests": ["{digest}", '))
    assert load(root).never_trusted


async def test_an_older_signed_file_never_takes_the_place_of_a_newer_one(machine: Any, key: Path):
    root = make_project(machine.workspace)
    signer(machine, key)
    (root / "fairlead.toml").write_text(HARMLESS)
    sign(root, key)
    weaker = (root / "fairlead.trust").read_bytes()
    (root / "fairlead.toml").write_text(GATE)
    sign(root, key)
    assert (await decide(root)).control == "deny"
    (root / "fairlead.toml").write_text(HARMLESS)  # git checkout OLD -- fairlead.toml fairlead.trust
    (root / "fairlead.trust").write_bytes(weaker)
    assert (await decide(root)).reason.startswith("as trusted (")


async def test_a_newer_signed_file_takes_effect_while_it_runs(machine: Any, key: Path):
    root = make_project(machine.workspace)
    signer(machine, key)
    sign(root, key)
    async with Hooks(record=True) as hooks:
        reloader = Reloader(hooks, root)
        (root / "fairlead.toml").write_text(HARMLESS)
        sign(root, key)
        await reloader.look()
        assert (await hooks.dispatch(step("before_tool"))).control == "proceed"


async def test_several_digests_in_one_file_are_for_several_branches(machine: Any, key: Path):
    root = make_project(machine.workspace)
    signer(machine, key)
    sign(root, key)
    (root / "fairlead.toml").write_text(HARMLESS)
    sign(root, key, also=True)
    assert (await decide(root)).control == "proceed"
    (root / "fairlead.toml").write_text(GATE)
    assert (await decide(root)).reason == "as trusted"
    (root / "fairlead.toml").write_text("# neither\n")
    assert (await decide(root)).control == "deny"


def test_a_signed_file_from_the_future_is_not_believed(machine: Any, key: Path, monkeypatch: pytest.MonkeyPatch):
    root = make_project(machine.workspace)
    signer(machine, key)
    now = time.time()
    with monkeypatch.context() as later:
        later.setattr(time, "time", lambda: now + 10 * 86400)
        sign(root, key)
    assert load(root).never_trusted


@pytest.mark.parametrize("text", ["", "{", "[]", '{"statement": 1}', "\x00"])
def test_garbage_is_no_signed_file(machine: Any, key: Path, text: str):
    root = make_project(machine.workspace)
    signer(machine, key)
    (root / "fairlead.trust").write_text(text)
    assert load(root).never_trusted


def test_a_signer_that_is_no_key_is_a_mistake(machine: Any):
    for text in ("* ssh-ed25519", "cert-authority x", "", "ssh-ed25519 AAAAxx", f"ssh-ed25519 {'A' * 68}"):
        (mistake,) = machine.mistakes(user=f'[defaults]\ntrust_signers = ["{text}"]\n')
        assert "public keys" in mistake.problem


@pytest.mark.parametrize("ahead", [0.0, 3600.0], ids=["a right clock", "a clock that is ahead"])
@pytest.mark.parametrize("by_hand", [True, False])
def test_what_was_forgotten_does_not_return_with_the_file_that_was_signed(
    machine: Any, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float, by_hand: bool
):
    root = make_project(machine.workspace)
    shutil.rmtree(root / ".git")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        git(*words, cwd=root)
    if by_hand:
        Trust().pin(survey(Document(root / "fairlead.toml"), root))
    now = time.time
    with monkeypatch.context() as clock:
        clock.setattr("fairlead.config.signed.time.time", lambda: now() + ahead)
        sign(root, key)
    git("add", "-A", cwd=root)
    git("commit", "-qm", "signed", cwd=root)
    signer(machine, key)
    assert load(root).hooks
    assert Trust().forget(root, newest_signed([root]))
    git("worktree", "add", "-q", "-b", "feature", str(tmp_path / "feature"), cwd=root)
    assert load(root).hooks == ()
    assert load(tmp_path / "feature").hooks == ()
