"""The guard: what an agent may not write, run or end, and all that it may do as ever."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import Hooks
from fairlead.engine.threads import active_offload, threads
from fairlead.hosts.clis.install.settings import settings_of
from fairlead.hosts.clis.mapping import hosts
from fairlead.lifecycle import BeforeTool
from fairlead.packs import protected_paths
from fairlead.packs.guard import Guard, guard_hook
from fairlead.packs.guarded_files import GuardedFiles
from fairlead.packs.protected_paths import PROTECTED
from fairlead.tools import Target
from fairlead.verdict import Verdict

OVERRIDES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "XDG_CONFIG_HOME", "OPENCODE_CONFIG",
             "OPENCODE_CONFIG_DIR", "GEMINI_CLI_SYSTEM_SETTINGS_PATH", "QWEN_CODE_SYSTEM_SETTINGS_PATH")  # fmt: skip


class World:
    """A home, a workspace in it, and the guard over both."""

    def __init__(self, root: Path) -> None:
        self.home, self.ws = root / "home", root / "home/ws"
        self.state, self.run = self.home / ".local/state/fairlead", root / "run/fairlead"
        for folder in (self.ws / "src", self.ws / ".git", self.ws / ".github/hooks", self.home / ".claude", self.state):
            folder.mkdir(parents=True)
        for file in ("fairlead.toml", "README.md", "src/settings.json", "a.py", "pyproject.toml"):
            (self.ws / file).write_text("x")
        (self.home / ".claude/settings.json").write_text("{}")
        (self.ws / "link.json").symlink_to(self.home / ".claude/settings.json")
        (self.ws / "linked").symlink_to(self.home / ".claude")
        (self.ws / "state").symlink_to(self.state)
        (self.ws / "src/harmless").symlink_to(self.ws / "README.md")
        self.guard = self.make()

    def make(self) -> Guard:
        return Guard(self.state, self.run, [self.ws / "fairlead.toml"])

    def judge(self, tool: str, args: dict[str, Any], **fields: Any) -> Verdict | None:
        return self.guard(BeforeTool(tool=tool, args=args, **{"cwd": str(self.ws), **fields}))

    def fill(self, text: str) -> str:
        for name in ("home", "ws", "state", "run"):
            text = text.replace(f"@{name}@", str(getattr(self, name)))
        return text.replace("@pid@", str(os.getpid()))

    def shell(self, command: str, **fields: Any) -> Verdict | None:
        return self.judge("Bash", {"command": self.fill(command)}, **fields)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in OVERRIDES:
        monkeypatch.delenv(name, raising=False)
    return World(tmp_path)


def denied(verdict: Verdict | None) -> str:
    assert verdict is not None, "it was let through"
    assert verdict.control == "deny"
    assert verdict.reason is not None
    assert "could not be read" not in verdict.reason
    assert "yourself, in a terminal of your own" in verdict.reason
    return verdict.reason


# --- files ------------------------------------------------------------------------------------------


def lines(text: str, separator: str | None = "\n") -> list[str]:
    return text.strip().split(separator)


WRITES = lines(
    """
fairlead.toml ./fairlead.toml src/../fairlead.toml sub/dir/fairlead.toml @ws@/fairlead.toml ../other/fairlead.toml
~/.config/fairlead/fairlead.toml ~/.config/fairlead/hooks/a.sh /etc/fairlead/fairlead.toml /etc//fairlead/x
@state@ @state@/trust.json @state@/pinned/abc/hook.sh ~/.local/state/fairlead/journal.db @run@/daemon.sock
~/.claude/settings.json ~/.claude/settings.local.json .claude/settings.json .claude/settings.local.json
.claude/hooks/pre.sh ~/.claude/hooks/a/b.py ~/.claude/plugins/p/hooks/hooks.json sub/.claude/settings.json .claude
/etc/claude-code/managed-settings.json /Library/Application_Support/ClaudeCode/managed-settings.json
~/.codex/config.toml ~/.codex/hooks.json ~/.codex/requirements.toml .codex/hooks.json .codex/config.toml .codex
/etc/codex/requirements.toml /etc/codex/managed_config.toml
~/.gemini/settings.json .gemini/settings.json ~/.gemini/trustedFolders.json .gemini/extensions/x/hooks/hooks.json
/etc/gemini-cli/settings.json ~/.qwen/settings.json .qwen/settings.json
.github/hooks/policy.json ~/.copilot/hooks/a.json ~/.copilot/config.json .github/copilot/settings.json
~/.claude/remote-settings.json ~/.claude/remote-settings.json.synced-at ~/.claude/policy-limits.json
~/.factory/settings.json .factory/settings.json .factory/hooks/x.sh ~/.factory/cache/org-managed-settings.json
.cline/hooks/PreToolUse .clinerules/hooks/PreToolUse ~/.cline/hooks/TaskStart ~/Documents/Cline/Hooks/PreToolUse
.opencode/plugin/a.ts .opencode/plugins/a.ts ~/.config/opencode/plugin/a.js ~/.config/opencode/opencode.json
opencode.json opencode.jsonc .cursor/hooks.json ~/.cursor/hooks.json .cursor/hooks/a.sh /etc/cursor/hooks.json
.windsurf/hooks.json ~/.codeium/windsurf/hooks.json .kiro/agents/dev.json ~/.kiro/agents/dev.json
~/.agents/plugins/x/hooks/hooks.json link.json linked/settings.json linked/new/../settings.json state/trust.json
linked/hooks/new.sh
""",
    None,
)


@pytest.mark.parametrize("path", WRITES)
def test_a_protected_file_is_not_written(world: World, path: str):
    path = world.fill(path).replace("_S", " S")
    reason = denied(world.judge("Write", {"file_path": path, "content": "{}"}))
    assert "belongs to" in reason
    denied(world.judge("edit_file", {"path": path}))
    denied(world.judge("apply_patch", {"input": f"*** Begin Patch\n*** Update File: {path}\n@@\n*** End Patch"}))
    denied(world.shell(f"printf x > '{path}'" if "~" not in path else f"printf x > {path}"))


@pytest.mark.parametrize(
    "path",
    lines(
        """
    my_fairlead.toml.md src/settings.json settings.json docs/fairlead.toml.md fairlead.toml.bak xfairlead.toml
    fairlead/toml fairlead.py .claude/commands/x.md ~/.claude/CLAUDE.md .claude/settings/notes.md .claude/agents/a.md
    .github/workflows/ci.yml .github/copilot-instructions.md .cursor/rules/a.mdc .gemini/GEMINI.md .kiro/steering/a.md
    .kiro/specs/a.md .clinerules/style.md .windsurf/rules/a.md .agents/skills/a.md opencode.md hooks/pre-commit
    src/hooks.json src/harmless codex/config.toml .config/other.toml ~/notes.md /tmp/x state.json .opencode/agent/a.md
    """,
        None,
    ),
)
def test_other_files_are_written_as_ever(world: World, path: str):
    assert world.judge("Write", {"file_path": path, "content": "see fairlead.toml and ~/.claude/settings.json"}) is None
    assert world.shell(f"printf 'see fairlead.toml' > {path}") is None


def test_every_host_of_the_table_is_tried_above(world: World):
    tried = "\n".join(str(world.judge("Write", {"file_path": world.fill(path)})) for path in WRITES)
    assert all(f"belongs to {whose}, which" in tried for whose in PROTECTED)


@pytest.mark.parametrize("name", [host.name for host in hosts() if settings_of(host).served])
def test_no_agent_writes_what_a_cli_keeps_of_served_settings(world: World, name: str):
    path = settings_of(name).served
    denied(world.judge("Write", {"file_path": path, "content": "{}"}))
    denied(world.shell(f"echo {{}} > {path}"))


def test_reading_and_searching_a_protected_file_is_fine(world: World):
    for tool in ("Read", "Grep", "Glob", "view"):
        assert world.judge(tool, {"path": "fairlead.toml", "file_path": "~/.claude/settings.json"}) is None


def test_a_tool_that_moves_is_judged_by_both_ends(world: World):
    denied(world.judge("move_file", {"source": "fairlead.toml", "destination": "x"}))
    denied(world.judge("move_file", {"source": "x", "destination": ".claude/settings.json"}))


def test_variables_that_move_a_folder_are_followed(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, place in (("CLAUDE_CONFIG_DIR", "cc"), ("CODEX_HOME", "cx"), ("XDG_CONFIG_HOME", "xdg")):
        monkeypatch.setenv(name, str(tmp_path / place))
    world.guard = world.make()
    for path in (
        "cc/settings.json",
        "cc/hooks/x",
        "cx/config.toml",
        "xdg/fairlead/fairlead.toml",
        "xdg/opencode/plugin/a.js",
    ):
        denied(world.judge("Write", {"file_path": f"{tmp_path}/{path}"}))
        denied(world.shell(f"echo > {tmp_path}/{path}"))
    denied(world.shell("rm $CLAUDE_CONFIG_DIR/settings.json"))
    denied(world.shell("rm -rf $CODEX_HOME"))
    assert world.judge("Write", {"file_path": f"{tmp_path}/cc/CLAUDE.md"}) is None


# --- commands -----------------------------------------------------------------------------------------

DENIED = r"""
echo x > fairlead.toml
echo x >> fairlead.toml
echo x >| ./fairlead.toml
echo x>fairlead.toml
echo x 2>fairlead.toml
echo x &> fairlead.toml
: > ~/.claude/settings.json
> ~/.claude/settings.json
cat a.py >~/.claude/settings.json
cat <<EOF > ~/.claude/settings.json\n{"hooks": {}}\nEOF
cat > fairlead.toml <<'EOF'\nx\nEOF
cat <<-EOF | tee fairlead.toml\n\tx\n\tEOF
echo {} | tee ~/.claude/settings.json
echo {} | sudo tee -a /etc/fairlead/fairlead.toml
sed -i s/closed/open/ fairlead.toml
sed -i.bak 's/closed/open/' ./fairlead.toml
sed --in-place -e s/a/b/ ~/.codex/config.toml
sed -Ei s/a/b/ .codex/hooks.json
sed -n 'w fairlead.toml' a.py
awk '{print > "fairlead.toml"}' a.py
perl -pi -e s/a/b/ fairlead.toml
cp a.py fairlead.toml
cp -r hooks ~/.claude/
cp x -t ~/.claude/hooks
mv fairlead.toml fairlead.toml.off
mv x ~/.claude/settings.json
mv ~/.claude ~/.claude.off
mv .github elsewhere
mv ~/.config/fairlead /tmp/x
rm fairlead.toml
rm -f -- fairlead.toml
rm -rf ~/.claude
rm -rf .claude .codex
rm -rf .github
rm -rf ~
rm -rf ~/.local
rm -rf /
rm -rf .
rm -rf *
rm *.toml
rm fair*.toml
rm fairlea?.toml
rm fairlead.[t]oml
rm ~/.claude/settings*.json
rm ~/.cl*/set*
rm ~/.claude/*
rm -rf ~/.c*
rm .{codex,x}/hooks.json
rm ~/.claude/{a,settings}.json
rm -rf ../*
rm "fairlead.toml"
rm 'fairlead'.toml
rm fair""lead.toml
rm fair\lead.toml
rm $'fairlead\x2etoml'
rm $'fairlead.toml\0x'
rm $'fairlead.toml\x00'y
rm "$HOME/.claude/settings.json"
rm ${HOME}/.claude/settings.json
rm "${HOME}"/.claude/"settings.json"
rm ${NOT_SET:-fairlead.toml}
rm $PWD/fairlead.toml
rm src/../fairlead.toml
rm ./././fairlead.toml
rm /tmp/../@ws@/fairlead.toml
F=~/.claude/settings.json; rm $F
F=fairlead.toml && rm "$F"
export F=fairlead.toml; rm ${F}
F=$(echo fairlead.toml); rm $F
rm $(echo fairlead.toml)
rm `echo fairlead.toml`
rm "$(echo fairlead.toml)"
$(echo rm) fairlead.toml
A=$(cat a.py) rm fairlead.toml
echo "$(rm fairlead.toml)"
echo "`rm fairlead.toml`"
cat <<EOF\n$(rm fairlead.toml)\nEOF
ln -sf /dev/null fairlead.toml
ln -s ~/.claude/settings.json x.json
chmod 000 fairlead.toml
chmod -x .claude/hooks/pre.sh
chown nobody ~/.codex/config.toml
dd if=/dev/zero of=fairlead.toml
truncate -s 0 fairlead.toml
install -m 644 x fairlead.toml
rsync -a x/ ~/.claude/
tar xf x.tar -C ~/.claude
unzip x.zip -d .codex
touch .claude/settings.json
mkdir -p .claude/hooks
curl -o ~/.claude/settings.json https://example.com
curl --output=fairlead.toml https://example.com
wget -Ofairlead.toml https://example.com
sort a.py -o fairlead.toml
git diff --output=fairlead.toml
find . -name fairlead.toml -delete
find ~/.claude -name '*.json' -exec rm {} +
find . -delete
find . -name x -exec sh -c 'rm fairlead.toml' ;
cd ~/.claude && rm settings.json
cd ~/.claude; echo {} > settings.json
cd ~ && cd .claude && rm settings.json
cd ~/.claude\nrm settings.json
cd /tmp; cd ~/.claude; cd /tmp; cd -; rm settings.json
pushd ~/.codex && rm config.toml
(cd ~/.claude && rm settings.json)
cd linked && rm settings.json
cd src/.. && rm fairlead.toml
git -C @ws@ checkout fairlead.toml
git -C ~/.claude checkout settings.json
env -C ~/.claude rm settings.json
env --chdir=@home@/.claude rm settings.json
make -C ~/.claude settings.json
git checkout -- fairlead.toml
git checkout HEAD~1 fairlead.toml
git restore fairlead.toml
git stash push fairlead.toml
git clean -fd .claude
git rm --cached fairlead.toml
git mv fairlead.toml x
git show HEAD:fairlead.toml > fairlead.toml
git apply <<EOF\n--- a/fairlead.toml\n+++ b/fairlead.toml\nEOF
apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: fairlead.toml\n*** End Patch\nEOF
sh -c 'rm fairlead.toml'
bash -lc "echo > ~/.claude/settings.json"
bash -c '>fairlead.toml'
bash -c "bash -c 'rm fairlead.toml'"
sudo bash -c 'rm /etc/fairlead/fairlead.toml'
sudo -u root rm fairlead.toml
sudo -u cat rm fairlead.toml
nohup rm fairlead.toml &
timeout 5 rm fairlead.toml
eval 'rm fairlead.toml'
eval rm fairlead.toml
bash <<EOF\nrm fairlead.toml\nEOF
bash <<< 'rm fairlead.toml'
echo 'rm fairlead.toml' | sh
echo fairlead.toml | xargs rm
ls ~/.claude/settings.json | xargs -n1 rm
echo fairlead.toml | while read f; do rm $f; done
for f in ~/.claude/*.json; do rm $f; done
if true; then rm fairlead.toml; fi
{ rm fairlead.toml; }
! rm fairlead.toml
true && rm fairlead.toml
true || rm fairlead.toml
true & rm fairlead.toml
true | rm fairlead.toml
true\nrm fairlead.toml
python -c "open('fairlead.toml','w')"
python3 -c "import os; os.remove(os.path.expanduser('~/.claude/settings.json'))"
python3 -c "from pathlib import Path; (Path.home() / '.claude' / 'settings.json').unlink()"
python3 -c "import shutil; shutil.rmtree('.claude')"
python3 - <<EOF\nopen("fairlead.toml", "w")\nEOF
echo "open('fairlead.toml','w')" | python3
node -e "fs.writeFileSync('.claude/settings.json','{}')"
perl -e 'unlink "fairlead.toml"'
ruby -e 'File.delete(".codex/hooks.json")'
vim fairlead.toml
ed fairlead.toml
yq -i .x=1 ~/.config/opencode/opencode.json
rm link.json
rm linked/set*
rm -rf l*/settings.json linked
exec 3> fairlead.toml
(echo a; echo b) > fairlead.toml
while true; do echo x; done > fairlead.toml
tee >(cat > fairlead.toml) < x
f() { rm fairlead.toml; }; f
echo a # it's fine\nrm fairlead.toml
echo x > link.json
echo x > linked/settings.json
rm -rf state/pinned
rm @state@/trust.json
rm @run@/daemon.sock
fuser -k @run@/daemon.sock
sqlite3 @state@/journal.db 'delete from runs'
rm 'fairlead.toml
(((((((((((((((((((((((((((((((((( rm fairlead.toml
pkill fairlead
pkill -f 'python -m fairlead serve'
killall -9 fairlead
kill @pid@
kill -9 $(pgrep -f fairlead)
kill `pidof fairlead`
pgrep fairlead | xargs kill
ps aux | grep fairlead | awk '{print $2}' | xargs kill -9
systemctl --user stop fairlead
sudo systemctl disable --now fairlead.service
fairlead trust
fairlead trust --yes
fairlead pause
fairlead monitor on
fairlead enforce
fairlead approvals approve 17
fairlead approvals deny 17
fairlead tokens
fairlead serve
fairlead install claude
fairlead uninstall claude
cd src && ../.venv/bin/fairlead pause
python -m fairlead pause
pip uninstall -y fairlead
python3 -m pip uninstall -y 'fairlead[all]'
uv pip uninstall fairlead
pip install fairlead pytest
pip install fairlead
pipx uninstall fairlead
poetry remove fairlead==0.1
python -m fairlead.cli trust
uv run fairlead pause
env X=1 fairlead pause
echo y | fairlead trust
sh -c 'fairlead pause'
claude --settings '{"disableAllHooks":true}' -p hi
claude --bare -p hi
CLAUDE_CONFIG_DIR=/tmp/x claude -p hi
export CLAUDE_CONFIG_DIR=/tmp/x; claude -p hi
env CODEX_HOME=/tmp/x codex exec hi
HOME=/tmp/x gemini -p hi
codex --disable hooks exec hi
codex -c features.hooks=false exec hi
""".strip().splitlines()

PASS = r"""
ls -la
git status
git diff fairlead.toml
git add fairlead.toml
git add -A && git commit -m "update fairlead.toml docs"
git commit -am 'move ~/.claude/settings.json to docs'
git commit -m "$(cat <<'EOF'\nDocument fairlead.toml\n\nSee ~/.claude/settings.json; it's new.\nEOF\n)"
git log --oneline -- fairlead.toml
git show HEAD:fairlead.toml
git show HEAD:fairlead.toml > /tmp/old.toml
git -C @ws@ diff fairlead.toml
git checkout main
git checkout -b fairlead-docs
git stash
git push origin main
cat fairlead.toml
cat ~/.claude/settings.json
cat fairlead.toml 2>/dev/null
cat fairlead.toml > /tmp/copy
cat fairlead.toml | head -5 | grep hook
cat < fairlead.toml
wc -l < fairlead.toml
head -n 20 @state@/trust.json
ls ~/.claude ~/.codex
ls -la ~/.claude/*.json | wc -l
grep -rn hooks ~/.claude/settings.json .codex
rg -n fairlead.toml src
sed -n 1,20p fairlead.toml
sed -n '1,20p' ~/.claude/settings.json
sed -i s/a/b/ README.md
sed -i 's/fairlead.toml/x.toml/' README.md
awk '{print $1}' fairlead.toml
jq .hooks ~/.claude/settings.json
find . -name fairlead.toml
find ~/.claude -name '*.json' | xargs cat
find . -name '*.pyc' -delete
diff fairlead.toml /tmp/fairlead.toml.bak
stat fairlead.toml && sha256sum fairlead.toml
test -f fairlead.toml && echo yes
[ -f ~/.claude/settings.json ] && echo "there"
if [ -e fairlead.toml ]; then cat fairlead.toml; fi
echo "see ~/.claude/settings.json"
echo "see ~/.claude/settings.json" > notes.md
printf 'edit %s\n' fairlead.toml
X=$(cat fairlead.toml); echo "$X"
cat fairlead.toml | python3 -c 'import sys; print(len(sys.stdin.read()))'
sudo cat /etc/fairlead/fairlead.toml
time cat fairlead.toml
cat > docs.md <<EOF\nPut it into fairlead.toml, then rm ~/.claude/settings.json; don't forget.\nEOF
tee notes.md <<'EOF'\nsee ~/.claude/settings.json\nEOF
gh pr create --title "Docs" --body "This explains ~/.claude/settings.json and fairlead.toml in detail"
cp my_fairlead.toml.md docs/
rm my_fairlead.toml.md
rm -rf build dist
rm -rf build/*
rm -f *.pyc
rm src/*.json
rm -rf node_modules && npm ci
rm -rf /tmp/x
mv a.py src/
mv a.py ..
mv src/a.py .
mkdir -p .claude/commands
echo hi > .claude/commands/hi.md
echo x > src/settings.json
cp x.json src/settings.json
touch settings.json
python -c "print('hello')"
python3 -c "import json; print(json.load(open('src/settings.json')))"
python -m pytest -q tests/test_fairlead.py
pytest -k 'claude and settings' -x
npm run build && npm test -- --watch=false
make -C fairlead install
cd fairlead && make install
cd /tmp && rm -f settings.json
(cd ~/.claude && ls) && rm -f settings.json
kill 999999
kill %1
pkill -f pytest
pip uninstall -y fairlead-plugin requests
pip install fairlead-plugin
kill -0 999999; echo $?
systemctl status fairlead
ps aux | grep fairlead
pgrep -f fairlead
fairlead check
fairlead check fairlead.toml
fairlead test before_tool --set tool=bash --set args.command="fairlead pause"
fairlead init
fairlead log --last 5
fairlead hooks | head
fairlead approvals list
fairlead --version
python -m fairlead check
which claude codex
claude --version
claude -p "what does fairlead.toml say?"
codex exec "explain the hooks"
echo 'fairlead pause'
docker run --rm -v "$PWD:/w" img ls
for f in src/*.py; do wc -l $f; done
cat a.py # don't touch fairlead.toml
tar czf /tmp/x.tgz src
curl -sS https://example.com/fairlead.toml.html -o /tmp/x
cat src/harmless > /tmp/y
echo x > src/harmless
ssh host uptime
[[ -n "$X" ]] && echo ok || echo no
echo $((1 + 2))
while sleep 1; do date; done
""".strip().splitlines()


@pytest.mark.parametrize("command", DENIED)
def test_a_command_that_changes_what_is_protected_is_denied(world: World, command: str):
    denied(world.shell(command.replace("\\n", "\n").replace("\\t", "\t")))


def test_what_says_that_fairlead_is_installed_is_protected(world: World) -> None:
    marks = [path.removesuffix("/**") for path in protected_paths.package_paths()]
    assert any("dist-info" in path for path in marks)
    for path in marks:
        denied(world.judge("write_file", {"path": path, "content": "x"}))
        denied(world.shell(f"rm -rf {path}"))
        denied(world.shell(f"cd {Path(path).parent} && rm *{Path(path).name[-8:]}"))


@pytest.mark.parametrize("command", PASS)
def test_ordinary_commands_pass(world: World, command: str):
    assert world.shell(command.replace("\\n", "\n")) is None


def test_the_tables_are_as_long_as_promised():
    assert len(set(DENIED)) + len(set(WRITES)) >= 80
    assert len(set(PASS)) >= 60


def test_the_folder_that_a_shell_is_told_to_run_in_counts(world: World):
    denied(world.judge("exec_command", {"cmd": "rm settings.json", "workdir": str(world.home / ".claude")}))
    denied(world.shell("rm settings.json", cwd=str(world.home / ".claude")))
    denied(world.shell("echo x > settings.json", cwd=str(world.ws / "linked")))
    denied(world.shell("rm trust.json", cwd=str(world.state)))
    assert world.shell("cat settings.json", cwd=str(world.home / ".claude")) is None
    assert world.judge("exec_command", {"cmd": "rm settings.json", "workdir": "/tmp"}) is None


SPELLINGS = [
    "cat <<E | sh\nrm fairlead.toml\nE", "echo $((1<<E))\nrm fairlead.toml", 'cat(){ rm "$@"; }; cat fairlead.toml',
    "rm${IFS}fairlead.toml", '$SHELL -c "rm fairlead.toml"', "xargs rm <<< fairlead.toml", "{fd}>fairlead.toml true",
    "git -c alias.x='!rm fairlead.toml' x", "printf 'rm %s' fairlead.toml | sh", "a=rm b=fairlead.toml; $a $b",
    "base64 -d <<< cm0gZmFpcmxlYWQudG9tbA== | sh", "rm $(echo lmot.daelriaf | rev)", "env -C . rm fairlead.toml",
    "echo fairlead.toml | while read f; do rm $f; done", 'trap "rm fairlead.toml" EXIT', "coproc rm fairlead.toml",
    "python -mfairlead.cli pause", "echo fairlead pause | sh", "pkill -f 'fair[l]ead'", "f=fairlead; $f pause",
    "FAIRLEAD_STATE_DIR=/tmp/x claude", "export HOME=/tmp; claude", "kill $(pgrep -f fairlead)",
    """python3 -c "import fairlead.cli; fairlead.cli.main(['pause'])" """,
]  # fmt: skip
"""Lines that got past a reader of words: each changes a protected file, or goes around fairlead."""
ORDINARY = [
    "cp fairlead.toml fairlead.toml.bak", "cp fairlead.toml /", "code fairlead.toml", "cat fairlead.toml; rm -rf $X",
    "cat <<E > README.md\nrm fairlead.toml\nE", "git commit -m 'rm fairlead.toml'", "sudo cat fairlead.toml | sort > x",
    "git stash", "git clean -n", "pkill node", "for f in *.py; do wc $f; done", "sh -c 'grep x fairlead.toml'",
]  # fmt: skip


@pytest.mark.parametrize("command", SPELLINGS)
def test_no_spelling_hides_what_a_line_does(world: World, command: str) -> None:
    denied(world.shell(command))


@pytest.mark.parametrize("command", ORDINARY)
def test_what_only_reads_copies_or_mentions_passes(world: World, command: str) -> None:
    assert world.shell(command) is None


@pytest.mark.parametrize("command", ["git stash -u", "git stash push --include-untracked", "git clean -fdx"])
def test_git_does_not_take_away_a_protected_file_that_it_does_not_track(world: World, command: str) -> None:
    (world.ws / ".git").mkdir(exist_ok=True)
    (world.ws / "fairlead.toml").touch()
    (world.ws / ".git/index").write_bytes(b"")
    denied(world.shell(command))
    (world.ws / ".git/index").write_bytes(b"DIRC... fairlead.toml ...")
    assert "fairlead.toml" not in str(world.shell(command))


@pytest.mark.parametrize("command", ["rm -rf /", "rm -rf --no-preserve-root /", "rm -rf /*", "rm -rf ~", "rm -rf ."])
def test_what_holds_a_protected_file_is_said_to_hold_it_and_why_that_is_protected(world: World, command: str) -> None:
    reason = denied(world.shell(command))
    assert "/ belongs to" not in reason
    assert "holds /" in reason or "may stand for" in reason
    assert "judges each call of this agent" in reason or "asks fairlead about each call" in reason


def test_a_reason_names_a_file_that_is_there(world: World) -> None:
    reason = denied(world.shell(f"rm -rf {world.home}"))
    assert Path(reason.partition(" holds ")[2].partition(", which")[0]).exists()


def test_the_reason_names_the_path_and_the_way_out(world: World):
    assert denied(world.shell("rm fairlead.toml")) == (
        f"{world.ws}/fairlead.toml belongs to fairlead, which judges each call of this agent: "
        "an agent does not change what judges it; "
        "edit it yourself, in a terminal of your own"
    )


# --- unknown tools --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("mcp__fs__put", {"path": "fairlead.toml", "text": "x"}),
        ("mcp__fs__put", {"uri": "file:///etc/fairlead/fairlead.toml"}),
        ("mcp__fs__put", {"options": {"where": ["a", {"deep": "~/.claude/settings.json"}]}}),
        ("mcp__sh__run", {"command": "rm fairlead.toml"}),
        ("mcp__sh__run", {"argv": ["rm", "-f", ".codex/hooks.json"]}),
        ("frobnicate", {"target_path": ".claude/hooks/x.sh"}),
        ("frobnicate", {"shell_line": "x; rm ~/.claude/settings.json"}),
        ("frobnicate", {"link": "link.json"}),
    ],
)
def test_an_unknown_tool_must_not_name_what_is_protected(world: World, tool: str, args: dict[str, Any]):
    denied(world.judge(tool, args))
    if "command" not in args:
        assert world.judge(tool, args, safety="read_only", kind="unknown") is None


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("mcp__gh__create_issue", {"title": "Docs", "body": "Explain fairlead.toml\nand ~/.claude/settings.json"}),
        ("TodoWrite", {"todos": [{"content": "Explain ~/.claude/settings.json", "status": "pending"}]}),
        ("mcp__fs__put", {"path": "src/settings.json", "text": "fairlead"}),
        ("mcp__x__y", {"n": 1, "flag": True, "none": None, "list": [1, 2.5]}),
    ],
)
def test_an_unknown_tool_that_only_talks_passes(world: World, tool: str, args: dict[str, Any]):
    assert world.judge(tool, args) is None


# --- robustness ---------------------------------------------------------------------------------------

BITS = st.sampled_from(
    ["rm", " ", "fairlead.toml", ">", "$(", ")", "`", "'", '"', "\\", "|", "\n", "<<E", "${", "}", "{", ",", "*", "[",
     "~", "/", ".claude", "settings.json", "cd", "$'", "\0", "\ud800", "sh -c ", "=", "-", "é", "git", "xargs", "F=",
     "$F"]
)  # fmt: skip
COMMANDS = st.one_of(st.text(), st.lists(BITS, max_size=40).map("".join))
VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | COMMANDS | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(COMMANDS, inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Guard:
    return Guard(tmp_path_factory.mktemp("state"))


@settings(deadline=None, max_examples=400, derandomize=True, database=None)
@given(command=COMMANDS, cwd=st.none() | COMMANDS, args=st.dictionaries(COMMANDS, VALUES, max_size=4))
def test_nothing_makes_it_raise(guard: Guard, command: str, cwd: str | None, args: dict[str, Any]):
    for step in (
        BeforeTool(tool="Bash", args={"command": command}, cwd=cwd),
        BeforeTool(tool="Write", args={"file_path": command}, cwd=cwd),
        BeforeTool(tool="strange", args=args, cwd=cwd),
        BeforeTool(tool="mcp__a__b", args=args, cwd=cwd),
        BeforeTool(tool="shell", args=args, target=Target(command=command), kind="shell", cwd=cwd),
    ):
        verdict = guard(step)
        assert verdict is None or (verdict.control == "deny" and "could not be read" not in (verdict.reason or ""))


def test_what_is_no_step_at_all_is_denied_not_raised(guard: Guard):
    for thing in (None, object(), "step"):
        verdict = guard(thing)
        assert verdict is not None
        assert verdict.control == "deny"


def test_a_huge_command_is_searched_not_parsed(world: World):
    denied(world.shell("x" * 100_000 + " && cat fairlead.toml"))
    denied(world.shell("echo " + "'" * 70_000 + " ~/.claude/settings.json"))
    assert world.shell("echo " + "x" * 1_000_000) is None


@pytest.mark.parametrize(
    "unit",
    ["'", '"', "\\", "$(", "${", "(", "`", "{", "{,", "a=", "a:", "<<E\n", "<<E ", "$(a ", "(a;", "a|xargs b|", "*",
     "[", "a/", "../", "F=$F$F;", '"$(a ', "*a", "a b=c;", "rm x*y/z;", "cd a;", "sh -c 'a;b' ", "\n", "#", "-C a ",
     "awk 'print", 'print"a" ', "a.", "a://", "w ", "kill 1 ", "x=$x; eval $x;"],
)  # fmt: skip
def test_no_command_takes_long(world: World, unit: str):
    for command in (unit * (60_000 // len(unit)), "rm " + unit * (60_000 // len(unit)) + " fairlead.toml"):
        before = time.process_time()
        world.shell(command)
        assert time.process_time() - before < 2


@pytest.mark.parametrize(
    "command",
    [
        "pkill -f '(.|.)*(.|.)*(.|.)*x'", "pkill -f '" + ".*" * 40 + "x'", "tar -" + "x" * 60_000 + "! fairlead.toml",
        "awk '" + 'print"a";' * 6000 + "' fairlead.toml", "base64 -" + "o" * 60_000 + "'\n' fairlead.toml",
        "curl " + "a." * 30_000 + "://x", "sed '" + "w " * 30_000 + "' fairlead.toml",
        f"python3 -c '{'kill ' * 12_000} {os.getpid()}'",
    ],
    ids=range(8),
)  # fmt: skip
def test_no_pattern_takes_long(world: World, command: str):
    before = time.process_time()
    world.shell(command)
    assert time.process_time() - before < 2


# --- as a hook ----------------------------------------------------------------------------------------


async def test_the_guard_is_the_first_gate_and_its_deny_decides(world: World):
    hooks = Hooks()
    hooks.replace_all([guard_hook(world.state, world.run, [world.ws / "fairlead.toml"])], source="builtin")
    patch = "*** Begin Patch\n*** Update File: fairlead.toml\n@@\n-a\n+b\n*** End Patch"
    for tool, args in (
        ("Bash", {"command": "echo > fairlead.toml"}),
        ("Write", {"file_path": str(world.home / ".claude/settings.json"), "content": "{}"}),
        ("apply_patch", {"input": patch}),
    ):
        decision = await hooks.dispatch(BeforeTool(tool=tool, args=args, cwd=str(world.ws)))
        assert decision.control == "deny"
        assert decision.hook == "fairlead.guard"
        assert decision.cause == "policy"
    for tool, args in (("Bash", {"command": "cat fairlead.toml"}), ("Write", {"file_path": "a.py", "content": "x"})):
        assert (await hooks.dispatch(BeforeTool(tool=tool, args=args, cwd=str(world.ws)))).control == "proceed"


def test_the_hook_says_what_it_is(world: World):
    hook = guard_hook(world.state)
    assert (hook.name, hook.phase, hook.layer, hook.events) == (
        "fairlead.guard", "gate", "builtin", frozenset({"before_tool"})
    )  # fmt: skip
    assert hook.priority < 0
    assert not hook.is_async


# --- long texts ---------------------------------------------------------------------------------

NAMES = st.sampled_from([".claude", "settings.json", "hooks", "fairlead.toml", ".codex", "/", " ", "'", '", "', "\n"])


@settings(deadline=None, max_examples=300)
@given(st.lists(NAMES | st.integers(1, 30).map(lambda number: "x" * number), max_size=12).map("".join))
def test_a_text_names_the_same_whether_it_is_searched_at_once_or_step_by_step(text: str) -> None:
    whole = Guard(Path("/state"))
    with pytest.MonkeyPatch.context() as patch:
        expected = whole._texts(text)
        patch.setattr(protected_paths, "_STEP", 7)
        assert whole._texts(text) == expected


@pytest.mark.parametrize("before", range(protected_paths._STEP - 60, protected_paths._STEP + 10, 3))
def test_a_name_is_found_wherever_it_is_in_a_long_text(before: int) -> None:
    found = Guard(Path("/state"))
    assert found._texts("x" * before + " .claude/settings.json " + "x" * 100_000) == ".claude/settings.json"
    assert found._texts("x" * before + " .claude" + " " * 9000 + "settings.json " + "x" * 100_000)
    assert found._texts("x" * before + " .claude/settings.jsonx " + "x" * 100_000) is None


@pytest.mark.parametrize("before", range(protected_paths._STEP - 40, protected_paths._STEP + 10, 3))
def test_a_file_of_a_hook_is_found_wherever_it_is_in_a_long_text(before: int) -> None:
    files = GuardedFiles([Path("/p/hooks/judge")])
    for code in ("/p/hooks/judge", "open('judge')", "\n+++ b/judge"):
        text = "x" * before + f" {code} " + "x" * 100_000
        assert files.mentioned(text, "/p/hooks", "/h") == "/p/hooks/judge"
        assert files.mentioned(text.replace("judge", "judges"), "/p/hooks", "/h") is None


@pytest.mark.parametrize("step", [1, 7, 64])
def test_a_search_step_by_step_finds_what_one_search_finds(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(protected_paths, "_STEP", step)
    text = "ab abab aab " * 2000
    for pattern in (re.compile("a+b"), re.compile(r"\bab"), re.compile(r"(?:ab)+(?! )")):
        expected = [found.span() for found in pattern.finditer(text)]
        assert [found.span() for found in protected_paths.find_all(pattern, text)] == expected


@pytest.mark.parametrize("tail", ["/.claude/settings.json", "/.claude/hooks/x", "/fairlead.toml"])
@pytest.mark.parametrize("long", ["./" * 4000, "a/../" * 2000, "a/" * 4000])
def test_a_path_that_is_too_long_for_any_system_is_judged_by_what_it_names(tail: str, long: str) -> None:
    judged = Guard(Path("/state"))(BeforeTool(tool="write", args={"path": f"/p/{long}{tail}"}, cwd="/p"))
    assert judged is not None
    assert judged.control == "deny"


async def test_a_large_call_is_judged_on_a_thread_and_as_any_other() -> None:
    """So that nothing else waits for it."""
    hooks, on_main = Hooks(), set[bool]()
    guard = Guard(Path("/state"))
    judge = guard._judge

    def noting(step: Any) -> str | None:
        on_main.add(threading.current_thread() is threading.main_thread())
        return judge(step)

    guard._judge = noting  # type: ignore[method-assign]
    hooks.add(guard, on="before_tool", phase="gate", name="guard")
    known = active_offload.set(threads.run)
    try:
        commands = ("rm -rf ~/.claude/hooks", "ls")
        decisions = [await hooks.dispatch(BeforeTool(tool="bash", args={"command": command})) for command in commands]
    finally:
        active_offload.reset(known)
    assert [decision.control for decision in decisions] == ["deny", "proceed"]
    assert on_main == {False}


@pytest.mark.parametrize(
    "line",
    [
        "find ~ -name trust.json -delete",
        "find / -name 'tr*.json' -exec rm {} +",
        "find ~ -path '*/pinned/*' -exec truncate -s0 {} \\;",
        "find ~ -name trust.json | xargs rm",
        "find ~ -name trust.json -exec sh -c 'echo x > \"$1\"' _ {} \\;",
        "fd -e json . ~ -x rm",
    ],
)
def test_a_search_that_comes_upon_files_of_the_state_folder_is_denied(world: World, line: str) -> None:
    assert world.shell(line.replace("trust.json", "none.json").replace("tr*.json", "none*")) is None or "fd" in line
    (world.state / "pinned").mkdir()
    for name in ("trust.json", "pinned/a.toml"):
        (world.state / name).write_text("x")
    denied(world.shell(line))


@pytest.mark.parametrize(
    "code",
    [
        'require("fs").writeFileSync(".claude/settings.json", "")',
        'const {rmSync: log} = require("fs"); log(".claude/settings.json")',
        'require("fs")["rm" + "Sync"](".claude/settings.json")',
        'const f = require("fs"); f.rmSync(".claude/settings.json")',
        'require("./x.js"); require(".claude/settings.json")',
        'let log = require; log("child_process"); require(".claude/settings.json")',
        'JSON.parse(require("fs").readFileSync(".claude/settings.json"), eval)',
        'const parse = require("fs").rmSync; parse(".claude/settings.json")',
        'console.log = require("fs").rmSync; console.log(".claude/settings.json")',
        'for (let [keys, rm] of Object.entries(require("fs"))) keys(".claude/settings.json")',
        '[".claude/settings.json"].map(require("fs").rmSync)',
        'Object.values(require("fs")).map(f => f(".claude/settings.json"))',
    ],
)
def test_javascript_that_does_more_than_read_is_denied(world: World, code: str) -> None:
    denied(world.shell(f"node -e '{code}'"))
