"""Spellings of one force-push: what each really does, and what a rule and the packs of `fairlead init` say of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import sandbox
from fairlead import Hooks
from fairlead.cli.init import starter
from fairlead.config.layers import Sources, read
from fairlead.lifecycle import BeforeTool

TOOLS = ("git", "env", "nohup", "timeout", "nice", "xargs", "setsid", "stdbuf", "find", "cat", "base64", "rev", "tr",
         "sh", "bash", "perl", "tee", "sed", "head", "tail", "grep", "sort")  # fmt: skip

PUSHES = [
    "git push --force origin main",
    "git push -f",
    "git push origin main -f",
    "git push origin +main",
    "git push origin '+HEAD:main'",
    "git push origin +refs/heads/main:refs/heads/main",
    "git push -uf origin main",
    "git push -fq origin HEAD",
    "git push --mirror",
    "git -C . push -f",
    "git --no-pager -c core.x=y push --force",
    "cd .. && git -C ws push origin --force",
    "git --git-dir=.git --work-tree . push -f",
    "'git' \"push\" '--force'",
    "g\\it pu''sh -\"f\"",
    "git push $'\\x2df'",
    "git push \\\n  --force \\\n  origin main",
    "git push 2>/dev/null -f",
    "G=git; $G push -f",
    'F=--force; git push "$F"',
    "P='git push'; $P -f",
    "a=(push -f); git \"${a[@]}\"",
    "git push ${X:---force}",
    "git push -{f,q} origin main",
    "{git,push,-f}",
    "git${IFS}push${IFS}-f",
    "git push $(echo --force)",
    "$(echo git) push -f",
    "`printf git` push -f",
    'p() { git push "$@"; }; p -f',
    "shopt -s expand_aliases\nalias p='git push -f'\np",
    "for f in -f; do git push $f; done",
    "if true; then git push -f; fi",
    "case a in a) git push -f;; esac",
    "! git push -f",
    "(git push -f) & wait",
    "coproc git push -f; wait",
    "trap 'git push -f' EXIT",
    "sh -c 'git push -f'",
    "bash -c 'git push \"$@\"' _ -f",
    "$SHELL -c 'git push -f'",
    "eval 'git push' -f",
    "echo git push -f | sh",
    "printf 'git push %s' -f | bash",
    "sh <<< 'git push -f'",
    "cat <<E | sh\ngit push -f\nE",
    "bash <(echo git push -f)",
    "source <(echo git push -f)",
    "base64 -d <<< Z2l0IHB1c2ggLWY= | sh",
    "echo 'f- hsup tig' | rev | sh",
    "env A=1 git push -f",
    "env -S 'git push -f'",
    "nohup timeout 9 nice -n 5 git push -f",
    "setsid -w stdbuf -oL git push -f",
    "command git push -f",
    "exec git push -f",
    "time git push -f",
    "echo -f | xargs git push",
    "xargs -I% git push % <<< --force",
    "find . -maxdepth 0 -exec git push -f ';'",
    "git -c alias.p='push -f' p",
    "git -c alias.p='!git push -f' p",
    "git config alias.p 'push --force'; git p",
    "git config alias.p '!f() { git push -f; }; f'; git p",
    "perl -e 'system(\"git push -f\")'",
    "perl -e 'exec(\"git\", \"push\", \"-f\")'",
    "perl -e 'open F, \"git push -f|\"; <F>'",
    "git -c remote.origin.push=+main push",
    "git -c remote.origin.mirror=true push",
    "git config remote.origin.push +main; git push",
    "GIT_CONFIG_PARAMETERS=\"'remote.origin.push=+main'\" git push",
    "git remote add --mirror=push other ../remote.git; git push other",
    "git send-pack --force ../remote.git main",
    "git send-pack ../remote.git +main",
    "git push --for${X}ce",
    "git $X push -f",
    "git pu${X}sh -f",
    "if(git push -f);then :;fi",
    "!(git push -f)",
    "x='a[$(git push -f >&2)]'; echo $((x))",
    "x='$(git push -f)'; : \"${x@P}\"",
    "f() { git push \"${@:2}\"; }; f a -f",
    "echo 'git push --force' > s; . ./s",
    "g${X}it push -f",
    "echo git push -f | head -1 | sh",
    "cat <(echo git push -f) | bash",
    "sed s/X/push/ <<< 'git X -f' | sh",
    "printf '%s\\n' : 'git push -f' | grep push | sort | sh",
    "x=$(echo git push -f | tail -n 1); $x",
    "perl -e 'exec(\"git\", (\"push\", \"-f\"))'",
]  # fmt: skip
"""Lines that replace the branch of the remote. Each has been run: see the first test."""

NEIGHBOURS = [
    "git push",
    "git push origin my-feature",
    "git push origin my-feature:feature--force",
    "git push --force-with-lease",
    "git push --force-with-lease=main --force-if-includes origin main",
    "git push --no-force origin main",
    "git push --tags",
    "git log --grep=--force",
    "git log --grep 'git push -f'",
    "echo git push --force",
    "git commit --allow-empty -m 'git push --force'",
    "git commit --allow-empty -m 'not this: git push origin +main'",
    "grep -rn 'git push --force' .",
    "cat <<'E' > notes.md\nNever use\ngit push -f\nE",
    "printf '%s\\n' 'git push -f' > script.sh",
    "git branch -f other; git push origin other",
    "git checkout -f my-feature",
    "git fetch -f",
    "git tag -f v1; git push origin v1",
    "git stash push -m force",
    "git add -f a; git push",
    "rm -f push; git push origin my-feature",
    "f=-f; git push origin my-feature; rm $f x",
    "sh -c 'git push origin my-feature' -f",
    "# git push -f\ngit status",
    "echo 'git push -f' | cat",
    "xargs echo git push <<< -f",
    "git push $NONE origin my-feature",
    "git -c remote.origin.push=main:my-feature push",
    "git -c remote.other.push=+main push origin my-feature",
    "git config remote.origin.push; git push origin my-feature",
    "echo git push -f | head -1",
    "echo git push -f | grep -c push | cat",
    "git push origin my-feature | sort | head -1",
]  # fmt: skip
"""Lines that do not, though they look like it."""


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A clone whose branch has left that of its remote, which has gone on since: only a push with force succeeds."""
    folder = tmp_path_factory.mktemp("push")
    environment = {"PATH": sandbox.SYSTEM_PATH, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for role in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{role}_NAME": "a", f"GIT_{role}_EMAIL": "a@example.com"}

    def git(*words: str, where: Path = folder) -> None:
        subprocess.run(["git", *words], cwd=where, env=environment, check=True, capture_output=True)

    home, ws, other = folder / "home", folder / "home/ws", folder / "other"
    home.mkdir()
    git("init", "-q", "--bare", "-b", "main", "home/remote.git")
    git("clone", "-q", "home/remote.git", str(ws))
    git("checkout", "-q", "-B", "main", where=ws)
    (ws / "a").write_text("1")
    git("add", "a", where=ws)
    git("commit", "-q", "-m", "first", where=ws)
    git("push", "-q", "-u", "origin", "main", where=ws)
    git("clone", "-q", "home/remote.git", str(other))
    git("commit", "-q", "--allow-empty", "-m", "of another", where=other)
    git("push", "-q", where=other)
    git("branch", "my-feature", where=ws)
    git("commit", "-q", "--allow-empty", "-m", "own", where=ws)
    git("config", "remote.origin.url", f"{sandbox.HOME}/remote.git", where=ws)
    git("config", "user.name", "a", where=ws)
    git("config", "user.email", "a@example.com", where=ws)
    for hooks in folder.glob("home/**/hooks/*.sample"):
        hooks.unlink()
    subprocess.run(["rm", "-rf", str(other)], check=True)
    return sandbox.packed_folder(folder)


def replaces_the_remote(line: str, repository: bytes) -> bool:
    """Run a line, and see whether the remote's branch is now the local one, and the other's commit is lost."""
    outcome = sandbox.run(line, repository, tools=TOOLS)
    if not outcome.proven:
        pytest.skip(outcome.why)
    branch = "home/remote.git/refs/heads/main"
    assert outcome.before[branch].content != outcome.before["home/ws/.git/refs/heads/main"].content
    assert branch in outcome.after, outcome.text("stderr")
    return outcome.after[branch].content == outcome.before["home/ws/.git/refs/heads/main"].content


def hooks_of(text: str, home: Path) -> Hooks:
    path = home / "fairlead.toml"
    path.write_text(text)
    hooks = Hooks()
    read(Sources(None, path)).apply(hooks)
    return hooks


@pytest.fixture(scope="module")
def rule(tmp_path_factory: pytest.TempPathFactory) -> Hooks:
    """The rule in the comments of the file that `fairlead init` writes, in force."""
    example = starter().partition("# [[hook]]\n")[2].partition("# [[hook]]\n")[0]
    lines = [line.removeprefix("# ") for line in example.splitlines()]
    return hooks_of("\n".join(["[[hook]]", *lines]), tmp_path_factory.mktemp("rule"))


@pytest.fixture(scope="module")
def packs(tmp_path_factory: pytest.TempPathFactory) -> Hooks:
    """The file that `fairlead init` writes, in force. No human is there to be asked."""
    return hooks_of(starter(), tmp_path_factory.mktemp("packs"))


def deciding_hook(hooks: Hooks, line: str) -> str | None:
    decision = hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": line}, cwd="/scratch"))
    return decision.hook if decision.control == "deny" else None


FEW = (*PUSHES[:4], *PUSHES[::9])
"""What `make test` runs. `make e2e` runs all."""


@pytest.mark.parametrize("line", FEW)
def test_some_spellings_are_that_push(repository: bytes, line: str) -> None:
    assert replaces_the_remote(line, repository)


@pytest.mark.sweep
@pytest.mark.parametrize("line", PUSHES)
def test_every_spelling_is_that_push(repository: bytes, line: str) -> None:
    assert replaces_the_remote(line, repository)


@pytest.mark.sweep
@pytest.mark.parametrize("line", NEIGHBOURS)
def test_no_neighbour_is_that_push(repository: bytes, line: str) -> None:
    assert not replaces_the_remote(line, repository)


@pytest.mark.parametrize("line", PUSHES)
def test_the_rule_denies_every_spelling(rule: Hooks, line: str) -> None:
    assert deciding_hook(rule, line) == "no-force-push"


@pytest.mark.parametrize("line", NEIGHBOURS)
def test_the_rule_lets_every_neighbour_pass(rule: Hooks, line: str) -> None:
    assert deciding_hook(rule, line) is None


@pytest.mark.parametrize("line", PUSHES)
def test_the_recommended_packs_stop_every_spelling(packs: Hooks, line: str) -> None:
    assert deciding_hook(packs, line) in ("fairlead.git", "fairlead.remote-code")


def test_the_tables_are_as_long_as_promised() -> None:
    assert len(set(PUSHES)) >= 26
    assert len(set(NEIGHBOURS)) >= 6
