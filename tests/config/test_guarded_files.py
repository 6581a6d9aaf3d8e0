"""The files that hooks name: an agent works around them as ever, and changes none of them."""

# ruff: noqa: E501 (commands, one after another)
from __future__ import annotations

import time
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trusted import decide, make_project, program, trust

from fairlead.config import load
from fairlead.config.hook_files import files_of
from fairlead.lifecycle import BeforeTool
from fairlead.packs.guard import Guard
from fairlead.packs.guarded_files import matches


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


# --- commands, one by one -------------------------------------------------------------------------------


class Place:
    """A home with hooks, and a workspace whose own hooks are named as much else is."""

    def __init__(self, home: Path) -> None:
        self.workspace, self.hooks = home / "ws", home / "hooks"
        own = [self.workspace / name for name in ("run", "test", "config", "judge.py", "requirements.txt")]
        users = [self.hooks / name for name in ("judge.sh", "main.py")]
        for path in (*own, *users):
            program(path, "")
        (self.workspace / "link").symlink_to(self.hooks / "judge.sh")
        (self.workspace / "folder").symlink_to(self.hooks)
        system = [Path("/usr/bin/sh"), Path("/bin/sh"), Path("/usr/bin/python3")]
        self.guard = Guard(home / "state", files=[*own, *users, *system])

    def denies(self, tool: str, args: dict[str, Any]) -> bool:
        verdict = self.guard(BeforeTool(tool=tool, args=args, cwd=str(self.workspace)))
        assert verdict is None or "could not be read" not in (verdict.reason or "")
        return verdict is not None

    def denies_command(self, command: str) -> bool:
        command = command.replace("@hooks@", str(self.hooks)).replace("\\n", "\n")
        return self.denies("Bash", {"command": command})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("HOME", str(tmp_path))
    return Place(tmp_path)


DENIED = r"""
rm @hooks@/judge.sh
cp /tmp/judge.sh ~/hooks/
cp -t ~/hooks /tmp/judge.sh
mv /tmp/judge.sh @hooks@
rsync /tmp/judge.sh @hooks@/
rsync -a --delete empty/ @hooks@/
chmod -R 000 @hooks@
chown -R nobody @hooks@
rm -rf @hooks@
rm -rf ~/hooks
mv ~/hooks /tmp/x
sudo -u root rm @hooks@/judge.sh
sudo -u root sh -c 'rm @hooks@/judge.sh'
npx prettier@3 --write @hooks@/judge.sh
uvx black judge.py
uv run black judge.py
poetry run black judge.py
python3 -m black judge.py
uv run python -m black judge.py
ruff format judge.py
ruff check --fix judge.py
for f in run test; do rm $f; done
for f in run; do echo x > $f; done
echo run | while read f; do rm "$f"; done
ls run | xargs rm
echo run | xargs -I{} mv {} /tmp
echo run | xargs -I{} cp x {}
find . -name run -delete
find . -name 'ru*' -exec rm {} +
find ~/hooks -exec sh -c 'rm $0' {} ;
find . -type f -name '*.py' -exec sed -i s/a/b/ {} +
find ~ -path '*hooks/judge.sh' -delete
find . ! -name x -delete
rm run
rm ./run
rm ru*
rm -f r?n
rm {run,x}
sed -i s/2/0/ run
echo x > run
: > ./run
> run
echo x >> config
tee run < x
truncate -s0 run
git checkout run
git checkout -- run
git checkout HEAD~1 -- run config
git restore run
git restore -SW run
git stash push run
git stash -- run
git rm run
git mv run x
git clean -f run
git config -f config a.b c
tar xf x.tar run
tar xf x.tar ./run
tar cf run x
tar -cf run x
tar czf x.tgz --remove-files run
zip -rm x.zip run
zip run x
curl -o run https://x
curl -orun https://x
curl -O https://x/run
wget -O run https://x
wget -Orun https://x
gcc x.c -o run
sort x -o config
sort -o config x
awk '{print > "./run"}' x
awk '{print > "judge.py"}' x
sed -n 'w judge.py' x
python3 -c 'open("run", "w")'
python3 -c 'from pathlib import Path; (Path.home() / "hooks" / "judge.sh").unlink()'
python3 -c "import os; os.chdir('@hooks@'); open('judge.sh','w')"
python3 -c "import os; os.remove('judge.py')"
python3 -c "import os; os.remove('./run')"
python3 - run <<E\nimport sys; open(sys.argv[1], 'w')\nE
python3 - <<E\nopen('judge.py','w')\nE
node -e "fs.writeFileSync('run','')"
node --eval "fs.writeFileSync(process.argv[1],'')" run
perl -e 'unlink "run"'
perl -i.bak -pe s/a/b/ run
perl -pi.bak -e s/a/b/ run
perl -0pi -e s/a/b/ run
ruby -pi -e x run
bash -lc 'echo > $0' run
bash -c 'rm run'
bash -c "echo > run"
cd ~/hooks && rm judge.sh
cd ~/hooks; echo > judge.sh
cd @hooks@ && cp /tmp/x main.py
rm link
echo > link
echo > folder/judge.sh
rm folder/judge.sh
sed -i s/a/b/ folder/jud*
ln @hooks@/judge.sh x
ln -f x run
cp -l @hooks@/judge.sh x
install -m 755 /bin/true run
dd if=/dev/zero of=run
gunzip run
gzip -9 run
patch run < x
patch -p1 <<E\n--- a/run\n+++ b/run\nE
git apply <<E\n--- a/run\n+++ b/run\nE
apply_patch <<E\n*** Begin Patch\n*** Update File: run\n*** End Patch\nE
env rm run
env X=1 rm run
nohup rm run &
timeout 5 rm run
time rm run
eval rm run
eval "rm run"
command rm run
busybox sed -i s/a/b/ run
$(echo rm) run
rm $(echo run)
F=run; rm $F
F=./run && echo x > "$F"
cat x | sudo tee run
vim run
ed run
chmod -x run
touch run
shred run
echo {} | tee -a config
yq -i .a=1 config
shfmt -w run
gofmt -w run
jq . x | sponge config
xxd -r x config
split x config
cp x /usr/bin/python3
rm /usr/bin/python3
cd /usr/bin && echo x > python3
ln -sf /bin/true /bin/sh
rename s/a/b/ run
true && rm run
(rm run)
if true; then rm run; fi
rm -- run
parallel rm ::: run
xargs -a list rm run
script -c 'rm run'
trap 'rm run' EXIT
""".strip().splitlines()

PASS = r"""
cat run
./run
sh run
bash run config
python3 judge.py requirements.txt
python3 -u judge.py
pip install -r requirements.txt
sudo pip install -r requirements.txt
uv pip install -r requirements.txt
uv run pytest test
uv run python judge.py
uv sync
npm run test
npm install
npm test
yarn test
npx jest config
make test config
docker build -f config .
docker run --rm -v $PWD:/w img ./run
cargo test
cargo run
go test ./...
go run .
black src
black --check judge.py
ruff check judge.py
ruff check
ruff format --check src
mypy judge.py
prettier --check config
prettier --write src
gofmt -l run
shellcheck run
cp run /tmp
cp -r . /tmp/copy
cp run run.bak
ln -s run latest
scp run host:
rsync -a run host:/tmp
rsync -a --exclude test src/ /tmp/x
tar czf /tmp/x.tgz run test
tar tf x.tgz
tar xf x.tgz
zip x.zip run
unzip x.zip
gzip -k run
gzip -c run > /tmp/x.gz
git checkout -b run
git checkout main
git switch test
git merge test
git stash push -m test
git stash pop
git stash
git restore --staged run
git restore --source test src/a.py
git reset run
git log run
git blame run
git add run test
git commit run -m x
git diff test -- run
git worktree add ../x test
git rebase test
git tag test
git branch -D test
git bisect run ./run
sed -n 1,5p run
sed -i 's/the test/a test/' notes.md
sed -i 's/judge.py/x.py/' notes.md
sed -i s/run/test/ src/a.py
sed s/a/b/ run
awk '{print}' config
awk '/test/ {print $1}' run
perl -ne 'print if /run test/' notes.md
python3 -c 'print("test")'
python3 -c 'from subprocess import run; run(["ls"])'
python3 -c 'import test, config'
python3 -c 'open("src/main.py")'
python3 -c 'open("main.py")'
python3 -c 'open("src/run", "w")'
python3 -c 'import subprocess; subprocess.run(["/bin/sh", "-c", "ls"])'
python3 -m pytest test
python3 -m unittest test config
python3 -m test
python3 -m venv test2
node -e 'const config = require("./x"); console.log(config)'
for f in run test; do cat $f; done
for f in run test; do shellcheck $f; done
for f in src/*; do rm $f; done
for f in run test; do ./$f > $OUT; rm $TMP; done
find . -name '*.pyc' -delete
find . -name '*.sh' -exec /bin/sh -n {} ;
find . -name run
find . -type d -name __pycache__ -exec rm -rf {} +
find . -name '*.orig' -exec rm {} +
find . -type f -name '*.py' | xargs grep run
grep -rl test . | xargs wc
cat requirements.txt | xargs pip install
cat config | jq .
cat run | sh
./run > out.txt
./run > /tmp/x; rm /tmp/x
./test && rm -rf build
rm -rf build dist
rm -f *.pyc
rm run.bak
rm src/run
mkdir -p config.d test.d
mv a.py b.py
mv src/run src/run2
touch src/test
chmod +x other.sh
chmod -R u+w .
chown -R me src
curl https://x/run
curl -o /tmp/x https://x/test
curl -O https://x/other.tgz
wget https://x/test
wget -O /tmp/x https://x/run
gcc run.c -o /tmp/run
pytest -q test
pytest -o log_cli=true run
sudo apt-get install python3
sudo systemctl restart test
env python3 x.py
env FOO=run ./test
timeout 60 ./run
time ./run
nohup ./run &
watch ./run
xargs -n1 ./run < list
strace ./run
bash -c './run && cat config'
bash -lc 'make test'
bash -x run
sh -n run
echo run
echo "the test config" > notes.md
cat > notes.md <<E\nrm run\nopen('judge.py','w')\nE
cat run > /tmp/copy
diff run /tmp/copy
ssh host ./run
kubectl exec x -- ./run
terraform plan -var-file=config
eslint judge.py
ls ~/hooks
ls /usr/bin
/usr/bin/python3 x.py
/bin/sh run
.venv/bin/python x.py
md5sum @hooks@/judge.sh
@hooks@/judge.sh --help
cat @hooks@/judge.sh
test -f run && ./run
[ -x run ]
source config
. ./config
export CONFIG=./config
jq . config > /tmp/x
yq . config
git diff > /tmp/x.patch
patch -p1 < fix.patch
git apply fix.patch
cd ~/hooks && ls
cd ~/hooks && cat judge.sh
ruff format
vim src/run
""".strip().splitlines()


@pytest.mark.parametrize("command", DENIED)
def test_a_command_that_changes_a_file_of_a_hook_is_denied(place: Place, command: str):
    assert place.denies_command(command)


@pytest.mark.parametrize("command", PASS)
def test_a_command_that_runs_or_reads_a_file_of_a_hook_passes(place: Place, command: str):
    assert not place.denies_command(command)


SPELLINGS = [
    "judge.sh", "./judge.sh", "@hooks@/judge.sh", "~/hooks/judge.sh", "$HOME/hooks/judge.sh", '"$HOME"/hooks/judge.sh',
    "'judge.sh'", 'judge".sh"', "jud*.sh", "judge.s?", "j[u]dge.sh", "{x,judge.sh}", "../hooks/judge.sh", "//@hooks@/judge.sh",
    "../ws/link", "../ws/folder/judge.sh", "$(echo judge.sh)", "${NONE:-judge.sh}",
]  # fmt: skip
CHANGING = [
    "rm {}", "sudo -u root rm {}", "sed -i s/a/b/ {}", "perl -pi -e s/a/b/ {}", "mv {} /tmp", "cp /tmp/x {}", "tee {}", "black {}",
    "chmod -x {}", "ln -sf /bin/true {}", "truncate -s0 {}", "echo > {}", "npx prettier --write {}", "env X=1 gzip {}",
    "python3 -c 'import sys; open(sys.argv[1], \"w\")' {}", "git checkout -- {}", "for f in {}; do rm $f; done",
    "echo {} | xargs rm",
]  # fmt: skip
READING = [
    "cat {}", "sh {}", "head -5 {}", "shellcheck {}", "cp {} /tmp", "black --check {}", "tar cf /tmp/x.tar {}", "pytest {}",
    "git log -- {}", "git restore --staged {}", "for f in {}; do cat $f; done", "echo {} | xargs wc", "bash {} x", "diff {} /tmp/x",
]  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_however_a_file_is_spelled_changing_it_is_denied_and_reading_it_is_not(place: Place, spelling: str):
    for command in CHANGING:
        assert place.denies_command("cd ~/hooks; " + command.replace("{}", spelling)), command
    substituted = spelling.startswith("$(")  # where that stands is not known, so the copy of one counts
    for command in READING:
        if substituted and command.startswith("cp "):
            continue
        assert not place.denies_command("cd ~/hooks; " + command.replace("{}", spelling)), command


@pytest.mark.parametrize(
    "args",
    [
        {"path": "run"}, {"path": "~/hooks/judge.sh"}, {"file": "judge.py", "text": "x"}, {"argv": ["rm", "run"]},
        {"command": ["rm", "./run"]}, {"shell_line": "x; rm ./run"}, {"cmd": "rm", "args": ["judge.py"]},
        {"code": "open('judge.py', 'w')"}, {"options": {"where": [{"deep": "~/hooks/judge.sh"}]}},
        {"patch": "--- a/run\n+++ b/run\n"}, {"to": "./link"},
    ],
)  # fmt: skip
def test_an_unknown_tool_does_not_change_a_file_of_a_hook(place: Place, args: dict[str, Any]):
    assert place.denies("mcp__a__b", args)


@pytest.mark.parametrize(
    "args",
    [
        {"command": "./run"}, {"command": ["sh", "./run"]}, {"command": "cat judge.py"}, {"title": "Run the test config"},
        {"body": "see judge.py\nand run"}, {"name": "test"}, {"query": "run"}, {"branch": "config"}, {"script": "test"},
    ],
)  # fmt: skip
def test_an_unknown_tool_may_run_and_read_a_file_of_a_hook(place: Place, args: dict[str, Any]):
    assert not place.denies("mcp__a__b", args)


def test_a_file_of_a_hook_counts_in_a_command_that_is_too_long_to_take_apart(place: Place):
    assert place.denies_command(": " + "x" * 70_000 + "; rm ./judge.py")
    assert place.denies_command(": ;" * 5000 + "rm ~/hooks/judge.sh")
    assert not place.denies_command(": " + "test run " * 10_000)


PIECES = st.sampled_from(
    ["rm", " ", "run", "./run", "judge.sh", ">", "$(", ")", "'", '"', "|", "\n", "<<E", "*", "find . -exec ", "-delete", "git ",
     "checkout ", "xargs ", "for f in ", "; do ", "$f", "sh -c ", "python3 -c ", "-o", "=", "tar ", "x", "f", "cp ", "-t ", "{}"]
)  # fmt: skip


@settings(deadline=None, max_examples=300, derandomize=True, database=None)
@given(command=st.lists(PIECES, max_size=30).map("".join))
def test_nothing_makes_it_raise(tmp_path_factory: pytest.TempPathFactory, command: str):
    place = Place(tmp_path_factory.mktemp("home"))
    place.denies_command(command)
    place.denies("mcp__a__b", {"command": command, "code": command, "path": command})


UNITS = [
    "-exec rm ",
    "-a ",
    "for a in b; rm $a;",
    "write",
    "open('",
    "run ",
    "--- a/run\n",
    "*x/ ",
    "-o a ",
    "sudo ",
    "-m ",
]


@pytest.mark.parametrize("unit", UNITS)
def test_no_command_takes_long(place: Place, unit: str):
    for start in ("rm ", "find . ", "git ", "cp ", "python3 -c '", "for f in run; do rm $f; "):
        before = time.perf_counter()
        place.denies_command(start + unit * (60_000 // len(unit)) + " run")
        assert time.perf_counter() - before < 5


# --- which files hooks name -----------------------------------------------------------------------------


@pytest.mark.parametrize("can_write", [True, False])
def test_a_program_of_the_system_is_guarded_if_this_user_can_write_it(
    machine: Any, monkeypatch: pytest.MonkeyPatch, can_write: bool
):
    monkeypatch.setattr("fairlead.config.hook_files.can_write", lambda path: can_write)
    judge = machine.script("judge.sh", "#!/bin/sh\n")
    machine.write(user=f'[[hook]]\nname = "u"\non = "before_tool"\ncommand = ["{judge}"]\n')
    files = set(files_of(load(machine.workspace).hooks))
    assert files == ({judge, Path("/bin/sh")} if can_write else {judge})


def named(machine: Any, entry: str) -> set[Path]:
    machine.write(user=f'[[hook]]\nname = "u"\non = "before_tool"\n{entry}\n')
    return {path for path in files_of(load(machine.workspace).hooks) if path.is_relative_to(machine.home)}


def test_every_way_to_name_a_file_is_seen(machine: Any):
    hooks = machine.home / "hooks"
    judge = program(hooks / "judge.sh", "#!/bin/sh\n")
    rules = program(hooks / "rules.txt", "x")
    inner = program(hooks / "inner", "#!/bin/sh\n")
    outer = program(hooks / "outer", f"#!{inner}\n")
    script = program(hooks / "script", f"#!{outer} {rules}\n")
    beside = program(machine.home / ".config/fairlead/checks/deep.py", "def judge(step): ...\n")
    for entry, expected in (
        (f'command = ["{judge}", "--rules={rules}"]', {judge, rules}),
        (f'command = ["{script}"]', {script, outer, inner, rules}),
        (f'command = ["sh", "-c", "{judge}; cat \'{rules}\'"]', {judge, rules}),
        (f'worker = ["sh", "{judge}"]', {judge}),
        ('shell = "cd ~/hooks && ./judge.sh < rules.txt"', {judge, rules}),
        ('shell = "cd $HOME; cd hooks; ./judge.sh|cat"', {judge}),
        ('shell = "${HOME}/hooks/judge.sh"', {judge}),
        (f'shell = "$D/judge.sh"\nenv = {{ D = "{hooks}" }}', {judge}),
        (f'command = ["{judge}"]\nenv = {{ RULES = "{rules}" }}', {judge, rules}),
        ('python = "checks.deep:judge"', {beside}),
        (f'shell = "ls {hooks}"', set()),
    ):
        assert named(machine, entry) == expected, entry


# --- patterns of a shell ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern", ["[^x]airlead.toml", "[!x]airlead.toml", "[[:alpha:]]airlead.toml", "[[.f.]]airlead.toml", "fair[k-m]*",
                "[]f]airlead.toml", "f*d.to?l", "*.toml", "[A-Z]airlead.toml", "[f-]airlead.toml"],
)  # fmt: skip
def test_a_pattern_of_a_shell_takes_what_a_shell_would(pattern):
    assert matches(pattern, "fairlead.toml")


@pytest.mark.parametrize("pattern", ["[^f]airlead.toml", "[xy]airlead.toml", "fairlead", "?fairlead.toml", "[f", "*x"])
def test_a_pattern_takes_nothing_else(pattern):
    assert not matches(pattern, "fairlead.toml")


SIGNS = st.text("ab.-]![^*?", max_size=8)


@given(SIGNS, st.text("ab.-", min_size=1, max_size=6))
def test_what_a_shell_matches_is_matched(pattern, name):
    """As fnmatch has it, which knows neither classes nor `[^...]`."""
    if "[^" not in pattern and fnmatchcase(name, pattern):
        assert matches(pattern, name)


@pytest.mark.parametrize("pattern", ["*a" * 2000 + "c", "[" + "[:" * 2000, "[" * 4000, "[[:a:]" * 600, "[!" * 2000])
def test_no_pattern_takes_long(pattern):
    """Each of these would take minutes if it were searched anew from every character."""
    assert not matches(pattern, "a" * 2000)
