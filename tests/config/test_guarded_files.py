"""The files that hooks name: an agent works around them as ever, and changes none of them."""

# ruff: noqa: E501 (commands, one after another)
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trusted import decide, make_project, program, trust


async def judged(root: Path, **fields: Any) -> str | None:
    decision = await decide(root, **fields)
    return decision.hook if decision.control != "proceed" else None


@pytest.fixture
def ordinary(machine: Any) -> Path:
    """A project whose hooks are named as others are, too; they let everything pass."""
    root = make_project(machine.workspace)
    for name in ("run", "test", "config"):
        program(root / name, "#!/bin/sh\nexit 0\n")
    (root / "judge.py").write_text("")
    (root / "requirements.txt").write_text("")
    words = (
        '"./run"',
        '"./test", "config"',
        '"sh", "run"',
        '"python3", "judge.py", "requirements.txt"',
        '"bash", "run"',
    )
    entry = '[[hook]]\nname = "h{}"\non = "before_tool"\ncommand = [{}]\n'
    (root / "fairlead.toml").write_text("".join(entry.format(i, argv) for i, argv in enumerate(words)))
    trust(root)
    return root


ORDINARY = [
    "pytest -q", "npm run test", "make test", "git add -A", "git commit -m 'run the test config'", "ls", "./run", "sh run",
    "git checkout -b test", "git merge config", "git stash push -m test", "docker compose run test", "git switch config",
    "python3 -c 'import subprocess; subprocess.run([\"sh\", \"-c\", \"ls\"])'",
    "python3 -c 'from subprocess import run; run([\"ls\"])'",
    "python3 -c 'import app; app.load(config)'",
    "python3 - <<'E'\nfrom subprocess import run\nrun(['ls'])\nE",
    "node -e 'const config = require(\"./x\"); console.log(config)'",
    "pip install -r requirements.txt", "python3 -m pip install -r requirements.txt", "uv pip install -r requirements.txt",
    "find . -name '*.sh' -exec /bin/sh -n {} ';'", "ln -s /usr/bin/python3 /tmp/py", "cp run /tmp/copy",
    "tar czf /tmp/x.tgz run test", "git bisect run sh t.sh", "git bisect run /bin/sh t.sh", "env python3 x.py",
    "sed -n 's/run (test)/x/p' notes.md", "sed -i 's/the test/a test/' notes.md", "cp notes.md src/test",
    "perl -ne 'print if /run test/' notes.md", "git log -- run", "git diff run", "git restore --staged run",
    "rm -rf build dist", "mkdir config.d", "mv a.py b.py", "grep -rn run .", "curl -o /tmp/x https://example.com/test",
    "curl https://example.com/run", "chmod +x other.sh", "touch src/run", "git push origin config", "git rebase test",
    "find . -type f -name '*.py' | xargs grep run", "echo test | tee out.txt", "bash -c 'echo run; ls config'",
    "python3 manage.py test config", "git worktree add ../x test", "git fetch origin test", "rsync -a run /tmp/x",
    "git apply fix.patch", "patch -p1 < fix.patch", "sort config", "python3 -c 'print(\"test\")'", "sed -n 1,5p run",
    "awk '{print}' config", "git branch -d test", "git reset --soft HEAD~1", "git cherry-pick test",
]  # fmt: skip


@pytest.mark.parametrize("command", ORDINARY)
async def test_ordinary_work_goes_on(ordinary: Path, command: str):
    assert await judged(ordinary, tool="bash", args={"command": command}) is None


@pytest.mark.parametrize("args", [{"action": "test"}, {"command": "run"}, {"file": "README.md", "mode": "config"}])
async def test_a_word_in_the_arguments_of_a_tool_is_no_file(ordinary: Path, args: dict[str, str]):
    assert await judged(ordinary, tool="mcp__ci__start", args=args) is None


UNDERMINING = [
    "perl -pi -e 's/exit 2/exit 0/' {}", "ruby -i -pe '$_.sub!(/2/, \"0\")' {}", "gzip {}", "rm {:*}", "sed -i s/2/0/ {:*}",
    "python3 -c 'import sys; open(sys.argv[1], \"w\")' {}", "node -e 'fs.writeFileSync(process.argv[1], \"\")' {}",
    "sh -c 'echo > $0' {}", "sh -c 'echo > $1' x {}", "black {}", "prettier --write {}", "dos2unix {}", "strip {}",
    "cp x {}", "dd if=/dev/null of={}", "busybox rm {}", "xargs rm < list {}", "echo {} | xargs rm", "mkfifo {}",
    "zip -m x.zip {}", "ln -sf /bin/true {}", "cat x > {}", "echo x | sudo tee {}", "setcap -r {}", "unlink {}",
    "rename s/a/b/ {}", "7z x -so a > {}", "git checkout HEAD~1 {}", "git restore {}", "git stash push {}",
    "truncate -s0 {}", "install /bin/true {}", "python3 -m black {}", "chmod 000 {}", "mv {} /tmp", "xz {}", "crudini --set {}",
]  # fmt: skip


@pytest.mark.parametrize("command", UNDERMINING)
async def test_no_agent_changes_a_script_of_the_users_hooks(machine: Any, command: str):
    judge = machine.script("judge.sh", "#!/bin/sh\nexit 0\n")
    machine.write(user=f'[[hook]]\nname = "u"\non = "before_tool"\ncommand = ["{judge}"]\n')
    command = command.replace("{:*}", str(judge).replace("judge", "jud*")).replace("{}", str(judge))
    assert await judged(machine.workspace, tool="bash", args={"command": command}) == "fairlead.guard"


NAMING = {
    "a shell line": 'shell = "{judge}; true"',
    "a shell line, by a variable": 'shell = "$HOME/hooks/judge.sh"',
    "a shell line, by ~": 'shell = "~/hooks/judge.sh"',
    "a shell line, quoted": "shell = \"cd {folder} && './judge.sh'\"",
    "a variable": 'command = ["{judge}"]\nenv = {{ RULES = "{folder}/rules.d/x" }}',
    "a first line": 'command = ["{judge}"]',
}


@pytest.mark.parametrize("how", NAMING)
async def test_the_guard_covers_a_file_however_a_hook_of_the_user_names_it(machine: Any, how: str):
    folder = machine.home / "hooks"
    (folder / "rules.d").mkdir(parents=True)
    (folder / "rules.d/x").write_text("x")
    inner = program(folder / "tools/run", "#!/bin/sh\nexit 0\n")
    judge = program(folder / "judge.sh", f"#!{inner}\n" if how == "a first line" else "#!/bin/sh\nexit 0\n")
    entry = NAMING[how].format(judge=judge, folder=folder)
    machine.write(user=f'[[hook]]\nname = "u"\non = "before_tool"\n{entry}\n')
    target = {"a variable": folder / "rules.d/x", "a first line": inner}.get(how, judge)
    assert await judged(machine.workspace, tool="Write", args={"file_path": str(target), "content": ""}) == (
        "fairlead.guard"
    )
