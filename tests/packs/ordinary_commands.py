"""Commands of an ordinary day near protected files and names. `¶` is a newline."""

from __future__ import annotations

import re

_READS = """
cat {}|less {}|head -n 20 {}|tail -5 {}|bat {}|wc -l {}|grep -n hook {}|grep -c deny {}|egrep 'a.b' {}|
rg -n hook {}|ag hook {}|stat {}|stat -c %Y {}|ls -l {}|ls -la {} src|file {}|diff {} src/settings.json|
diff -u {} /tmp/old|cmp {} a.py|md5sum {}|sha256sum {}|sha256sum {} > sums.txt|realpath {}|readlink -f {}|
basename {}|dirname {}|test -f {}|[ -f {} ] && echo yes|[[ -e {} ]] && cat {}|if [ -s {} ]; then head -1 {}; fi|
sed -n 1,10p {}|sed -n '/hook/p' {}|sed 's/a/b/' {}|sed -e 1d {} > /tmp/x|awk '{{print $1}}' {}|
awk -F= '/deny/ {{print $2}}' {}|awk '$1 > 3 {{print NR}}' {}|cut -d= -f1 {}|sort {}|sort -u {} | uniq -c|uniq {}|
tr a-z A-Z < {}|nl {}|od -c {} | head|xxd {} | head -3|hexdump -C {}|strings {}|tac {}|rev {}|column -t {}|
paste {} a.py|jq . {}|jq -r .hooks {}|yq .hooks {}|cp {} /tmp/|cp {} /tmp/backup.json|cp -p {} {}.bak|
cp -a {} ~/backup/|install -m 644 {} /tmp/x|rsync -a {} /tmp/backup/|scp {} host:/tmp/|tar czf /tmp/x.tgz {}|
zip /tmp/x.zip {}|gzip -c {} > /tmp/x.gz|base64 {}|cat {} | grep -v '^#'|cat {} a.py > /tmp/both|
cat {} | tee /tmp/x | wc -l|cat {} >> notes.md|x=$(cat {}); echo "$x"|echo "$(< {})"|
while read -r l; do echo "$l"; done < {}|mapfile -t a < {}; echo "${{#a[@]}}"|python3 -m json.tool {}|code {}|
code --diff {} a.py|sudo cat {}|timeout 5 cat {}|time wc {}|xargs -a {} echo|find . -name x -newer {}|git diff {}|
git diff HEAD~1 -- {}|git log --oneline -- {}|git log -p -1 {}|git blame {}|git show HEAD:{}|git add {}|
git add -p {}|git commit -m 'update' {}|git status {}|git ls-files {}|git grep hook -- {}|git check-ignore -v {}|
git show HEAD:{} > /tmp/old|git diff --stat main {}|git stash show -p stash@{{0}} -- {}|git hash-object {}|
git log --follow {}
"""
_NAMES = ("fairlead.toml", ".claude/settings.json", "~/.codex/config.toml")

_BY_HAND = r"""
ls
ls -la ~/.claude
ls ~/.claude ~/.codex ~/.gemini
ls ~/.claude/hooks
tree -a -L 2 ~/.claude
tree -L 1 .
du -sh ~/.claude ~/.local/state/fairlead
du -sh * | sort -h
find ~/.claude -name '*.json'
find . -name fairlead.toml -not -path './.git/*'
find . -name 'fair*'
find . -name '*.toml' -exec grep -l hook {} +
find . -type f -exec wc -l {} +
find . -type f -name '*.py' -exec sed -i s/a/b/ {} +
find . -type f | xargs grep -l fairlead
find . -type f -print0 | xargs -0 wc -c
find src -name '*.py' -delete
find . -name '*.pyc' -delete
find . -name __pycache__ -exec rm -rf {} +
find . -name __pycache__ -type d -prune -exec rm -r {} ';'
find . -maxdepth 1 -type f -name '*.log' | xargs rm -f
find /tmp -name 'x*' -mtime +7 -delete
grep -rn fairlead src
grep -rn "fairlead.toml" docs | head
grep -rl 'settings.json' . | sort | uniq
grep -r --include='*.md' 'claude/settings' .
rg -uu 'disableAllHooks' ~/.claude
rg 'pkill -f fairlead' docs
git status
git status --short
git diff
git diff --cached --stat
git log --oneline -10
git log --grep fairlead
git log -S fairlead.toml --oneline
git add .
git add -A
git add fairlead.toml .claude/settings.json
git commit -am 'fairlead pause explained'
git commit -m 'Document `fairlead pause`'
git commit -m "rm fairlead.toml is denied now"
git commit -m 'pkill -f fairlead, kill and rm ~/.claude/settings.json are denied'
git commit -F - <<'E'¶Remove fairlead.toml from the docs¶¶rm -rf ~/.claude is denied.¶E
git commit --amend -m 'guard: stop `echo x > fairlead.toml`'
git tag -a v1 -m 'fairlead.toml is read'
git push
git push origin HEAD
git push -u origin fix-fairlead-toml
git pull --rebase
git fetch --all
git checkout -b fairlead-toml-docs
git checkout main
git switch main
git switch -c claude-settings
git merge fairlead-docs
git rebase main
git rebase -i HEAD~3
git branch -D fairlead-docs
git stash
git stash push src
git stash pop
git stash list
git clean -n
git clean -nfd
git clean -fd build
git restore src/a.py
git restore --staged fairlead.toml
git reset -q fairlead.toml
git reset HEAD fairlead.toml
git checkout -- src/a.py
git rm -q src/old.py
git mv src/a.py src/b.py
git worktree add ../wt main
git bisect start HEAD v1
git remote -v
git config user.name
git config --get remote.origin.url
git ls-tree -r HEAD
git archive HEAD | gzip > /tmp/x.tgz
git format-patch -1 -o /tmp/patches
git apply --check /tmp/x.patch
git show --stat HEAD
git shortlog -sn
git describe --tags
git cherry-pick abc123
gh pr create --title 'Guard fairlead.toml' --body 'It denies `rm fairlead.toml` and `fairlead pause`.'
gh pr comment 3 --body 'see ~/.claude/settings.json'
gh issue list --search fairlead
gh issue create -t 'fairlead.toml' -b 'cannot edit .claude/settings.json'
echo fairlead
echo 'rm fairlead.toml'
echo "fairlead pause"
echo 'to end it: pkill -f fairlead'
echo 'see fairlead.toml' >> README.md
echo "# fairlead.toml" > docs.md
printf '%s\n' 'rm -rf ~/.claude' > notes.txt
printf 'fairlead.toml\n' >> .gitignore
cat <<'E' > docs.md¶Do not run `fairlead pause` or rm fairlead.toml.¶E
cat >> README.md <<E¶See fairlead.toml and ~/.claude/settings.json.¶E
tee docs.md <<< 'edit fairlead.toml yourself' > /dev/null
touch src/settings.json
touch settings.json hooks.json config.toml
mkdir -p .claude/commands .claude/agents .codex-notes
echo x > .claude/commands/a.md
cp docs/a.md .claude/commands/
rm .claude/commands/a.md
rm -rf .claude/commands
echo '# rules' > ~/.claude/CLAUDE.md
echo x > .github/workflows/ci.yml
sed -i s/a/b/ .github/workflows/ci.yml
mv .github/workflows/ci.yml .github/workflows/test.yml
rm .github/workflows/old.yml
echo x > .gemini/GEMINI.md
mkdir -p .cursor/rules && echo x > .cursor/rules/a.mdc
rm -rf build
rm -rf build dist *.egg-info
rm -rf node_modules package-lock.json
rm -rf ./build/*
rm -rf -- dist
rm -rf /tmp/fairlead-test
rm -rf target/debug
rm -f *.log
rm -f src/*.pyc
rm -r src/__pycache__ .pytest_cache .mypy_cache .ruff_cache
rm a.py
rm -f fairlead.toml.bak
rm my-fairlead.toml.txt
rm src/fairlead.py
rm -rf src/fairlead/old
rm /tmp/fairlead.log
rmdir empty
unlink src/x
mv a.py src/
mv src/a.py src/b.py
mv fairlead.md docs/
mv build /tmp
cp a.py b.py
cp -r src /tmp/src
cp -r . /tmp/copy
cp -r ~/.claude /tmp/claude-backup
cp ~/.claude/settings.json .
cp .claude/settings.json src/settings.json
cp fairlead.toml examples/fairlead.toml.example
cp fairlead.toml ../backup-fairlead.toml
cp -n a.py b.py
rsync -av src/ /tmp/src/
rsync -av --delete src/ /tmp/src/
rsync -av . host:/srv/app
tar czf ../backup.tgz .
tar czf /tmp/claude.tgz ~/.claude
tar tzf backup.tgz
tar xzf src.tgz -C /tmp/src
tar xzf release.tgz
zip -r out.zip src
unzip -l x.zip
unzip -q x.zip -d /tmp/x
ln -s ../a.py src/link.py
ln -sf /opt/tool/bin/tool ~/bin/tool
chmod +x run.sh
chmod -R u+w src
chmod 644 src/settings.json
chown -R me src
truncate -s 0 app.log
sed -i 's/fairlead.toml/config.toml/g' README.md
sed -i 's#~/.claude/settings.json#settings#' docs/a.md
sed -i '/fairlead/d' requirements.txt
sed -i.bak s/1/2/ pyproject.toml
sed -n '/fairlead/,/^$/p' pyproject.toml
perl -pi -e 's/fairlead/x/' README.md
perl -ne 'print if /hook/' fairlead.toml.bak
awk '/fairlead/ {print > "/tmp/x"}' README.md
awk '{s += $1} END {print s}' numbers.txt
sort -o words.txt words.txt
tee app.log < a.py
dd if=/dev/zero of=/tmp/zero bs=1M count=1
python a.py
python -m pytest
python -m pytest tests/packs/test_guard.py -k fairlead
python -m pytest -k 'not claude' tests
python -c 'import fairlead; print(fairlead.__version__)'
python -c 'import fairlead; print(fairlead.__file__)'
python -c "from fairlead import Hooks; print(Hooks())"
python -c "import tomllib; print(tomllib.load(open('pyproject.toml','rb')))"
python3 -c 'import sys; print(sys.version)'
python3 - <<E¶import json¶print(json.dumps({"a": 1}))¶E
python -m fairlead check
python -m fairlead --version
python -m build
python -m http.server 8000
python -m venv .venv
pytest -q
pytest tests -x --lf
uv run pytest tests/test_fairlead.py
uv sync
uv pip install -r requirements.txt
uv pip list
uv add requests
pip install -r requirements.txt
pip install requests
pip install -e .
pip show fairlead
pip list | grep fairlead
pip freeze > requirements.txt
pip install fairlead-plugin
pip uninstall -y requests
pipx list
poetry add requests
poetry run pytest
ruff check --fix .
ruff format src
black src
mypy src
npm ci
npm test
npm run build
npm run lint -- --fix
npm install --save-dev typescript
npx prettier --write src
npx tsc --noEmit
npx eslint . --fix
yarn install
pnpm -r build
node index.js
node -e 'console.log(1)'
node -e 'console.log(require("./package.json").version)'
bun test
deno test
cargo build --release
cargo test
cargo clean
go build ./...
go test ./...
make
make test
make clean
make -j4 check
make -C docs html
cmake -B build && cmake --build build
docker build -t app .
docker run --rm app
docker run --rm -v "$PWD:/w" -w /w node:20 npm test
docker run --rm -v ~/.claude:/c:ro img cat /c/settings.json
docker compose up -d
docker ps -a
docker logs app
docker exec app ls /etc
docker system df
docker rm -f app
kubectl get pods
kubectl logs deploy/app
terraform plan
fairlead check
fairlead check --json
fairlead explain 'rm fairlead.toml'
fairlead explain 'fairlead pause' --json
fairlead test before_tool --set tool=bash --set args.command='rm fairlead.toml'
fairlead hooks
fairlead events
fairlead log
fairlead log --last 20
fairlead log | grep deny
fairlead tail
fairlead show 12
fairlead stats
fairlead verify
fairlead doctor
fairlead coverage
fairlead approvals
fairlead approvals list
fairlead --help
fairlead pause --help
fairlead trust --help
fairlead help
fairlead schema > schema.json
fairlead export > /tmp/journal.json
fairlead completion bash
fairlead demo
fairlead init
man fairlead
which fairlead
command -v fairlead
type fairlead
whereis fairlead
ls -l $(which fairlead)
file "$(command -v fairlead)"
head -1 $(which fairlead)
ps aux
ps aux | grep fairlead
ps -ef | grep '[f]airlead' | wc -l
pgrep -fa fairlead
pgrep -f fairlead | wc -l
pidof fairlead
lsof -U | grep fairlead
ss -lx | grep fairlead
top -b -n1 | head
kill 12345
kill -9 12345
kill %1
kill $(cat app.pid)
kill $(lsof -t -i:3000)
kill -l
kill -0 $$
pkill -f 'npm run dev'
pkill -f pytest
pkill node
pkill -f 'vite'
killall node
killall -q webpack
pgrep node | xargs kill
lsof -ti:8080 | xargs kill -9
fuser -k 3000/tcp
systemctl status fairlead
systemctl --user status fairlead.service
systemctl --user list-units | grep fair
systemctl restart nginx
journalctl --user -u fairlead -n 20
launchctl list | grep fairlead
service nginx restart
claude --version
claude --help
claude -p 'hello'
claude -p 'what does fairlead.toml do?' --output-format json
claude mcp list
codex --version
codex exec 'explain fairlead.toml'
gemini -p 'hi'
opencode run 'fix the test'
npx @anthropic-ai/claude-code --version
which claude codex gemini
env | grep FAIRLEAD
printenv HOME
echo $FAIRLEAD_STATE_DIR
echo $CLAUDE_CONFIG_DIR
ls $CLAUDE_CONFIG_DIR/
ls ${CODEX_HOME:-~/.codex}
FAIRLEAD_STATE_DIR=/tmp/x pytest tests
FAIRLEAD_STATE_DIR=/tmp/x fairlead check
HOME=/tmp/x npm test
export PATH=$HOME/.local/bin:$PATH
export FAIRLEAD_LOG=1
source .venv/bin/activate
. .venv/bin/activate && pytest
source ~/.bashrc
cd ~/.claude && ls
cd ~/.claude && cat settings.json
cd ~/.claude; cat settings.json; cd -; rm -f a.py
cd src && rm -f a.py && cd ..
(cd build && rm -rf *)
cd /tmp && rm -rf x
pushd docs && make html; popd
curl -s https://example.com/fairlead.toml
curl -o /tmp/fairlead.toml.txt https://example.com/x
curl -sSL https://example.com -o page.html
wget -q https://example.com/a.tgz
sqlite3 app.db 'select count(*) from users'
sqlite3 app.db < schema.sql
psql -c 'select 1'
ssh host 'ls ~/.claude'
ssh host uptime
scp host:/tmp/x .
for f in src/*.py; do echo $f; done
for f in *.toml; do echo "$f"; done
for f in *.toml; do wc -l "$f"; done
for f in fairlead.toml a.py; do cat $f; done
for i in 1 2 3; do sleep 1; done
while read -r f; do echo "$f"; done < <(git ls-files)
ls *.toml | while read f; do grep -c hook "$f"; done
ls | xargs wc -l
ls | wc -l
git ls-files | xargs grep -l fairlead
git ls-files '*.py' | xargs sed -i s/a/b/
f=$(mktemp); cp fairlead.toml $f; diff fairlead.toml $f; rm $f
d=$(mktemp -d) && cp -r ~/.claude "$d" && ls "$d"
t=$(mktemp); cat fairlead.toml > "$t"; wc "$t"; rm -f "$t"
cat fairlead.toml; rm -rf $BUILD
x=fairlead; echo $x
name=fairlead.toml; cat "$name"
test -d ~/.claude || echo none
[ -d .git ] && git status -s
case $x in fairlead.toml) echo config;; esac
if grep -q deny fairlead.toml; then echo strict; fi
alias ll='ls -la'
type ll
history | grep fairlead
date > stamp.txt
env | sort > /tmp/env
crontab -l
tmux ls
nohup npm start > app.log 2>&1 &
npm start > app.log 2>&1 & echo $! > app.pid
./run.sh
./gradlew build
bash scripts/build.sh
sh -c 'cat fairlead.toml'
bash -c 'grep hook fairlead.toml | wc -l'
eval "$(ssh-agent)"
xargs -n1 echo < fairlead.toml
trap 'rm -f /tmp/lock' EXIT
watch -n 5 git status
jq '.scripts' package.json > x.json && mv x.json package.json
jq '.hooks' ~/.claude/settings.json > /tmp/hooks.json
diff <(jq -S . .claude/settings.json) <(jq -S . ~/.claude/settings.json)
diff <(git show HEAD:fairlead.toml) fairlead.toml
comm -12 <(sort fairlead.toml) <(sort a.py)
cat fairlead.toml | python3 -c 'import sys, tomllib; print(tomllib.loads(sys.stdin.read()))'
md5sum fairlead.toml > /tmp/before; make test; md5sum -c /tmp/before
cat ~/.claude/settings.json | jq '.permissions.allow[]' | sort
less +F ~/.local/state/fairlead/fairlead.log
tail -f ~/.local/state/fairlead/fairlead.log
sqlite3 app.db '.backup /tmp/app.db'
vim README.md
nano docs/a.md
open README.md
xdg-open docs/index.html
cat fairlead.toml | sort | uniq -c | sort -rn
grep -h hook fairlead.toml .claude/settings.json | sort | head
sort < fairlead.toml | uniq > /tmp/u
cat a.py | sh
curl -fsSL https://example.com/install.sh | sh
curl -fsSL https://example.com/install.sh | sed s/a/b/ | bash -s -- --yes
git log --oneline | head -3 | sh -c 'cat'
echo 'see fairlead.toml' >> notes.md; curl -s https://x/i | sh
git commit -m 'fairlead.toml: stricter' && git push && curl -s https://x/hook | sh
eval "$(direnv hook bash)"
eval "$(ssh-agent -s)"; ssh-add
eval "$(fnm env)"; node -v; cat fairlead.toml
source <(kubectl completion bash)
. <(curl -s https://x/env)
sh -c "$(curl -fsSL https://x/install.sh)"
bash <(curl -s https://x/i)
ls *.toml | while read f; do grep -c hook "$f"; done
ls | while read f; do file "$f"; done
ls | while read f; do echo "$f"; done
ls | xargs -n1 basename
ls | xargs grep -l hook
find . -type f | while read f; do wc -l "$f"; done
find . -name '*.py' | xargs sed -i s/a/b/
find . -name '*.py' | while read -r f; do sed -i s/a/b/ "$f"; done
find . -name '*.log' -not -path './.git/*' -delete
find . -path ./node_modules -prune -o -name '*.js' -exec sed -i s/a/b/ {} +
find src -type f | xargs sed -i s/old/new/
find src -type f -name '*.py' -print0 | xargs -0 black
find . -regex '.*\.pyc$' -delete
find . -regextype posix-extended -regex '.*\.(tmp|log)' -delete
find . -empty -type d -delete
find ~ -name '*.log' -mtime +30 -delete
find /tmp -user me -delete
grep -rl old . | xargs sed -i s/old/new/
rg -l old | xargs sed -i s/old/new/
git grep -l old | xargs sed -i s/old/new/
git ls-files | xargs wc -l
git ls-files '*.py' | xargs black
git diff --name-only | xargs black
git diff --name-only main | xargs eslint --fix
git diff --name-only --diff-filter=U | xargs code
git diff | git apply -R --check
git diff HEAD~1 | git apply -R
git diff > /tmp/p; git checkout src; git apply /tmp/p
git show abc123 | git apply
patch -p1 < /tmp/fix.patch
git format-patch -1 --stdout | git am
git checkout -- . ':!fairlead.toml'
git add . ':!fairlead.toml'
git checkout main -- src
git restore src
git checkout -f main
git reset --hard
git add -A && git commit -m wip
git add a.py && git stash
git add src && git reset --hard
git stash && git pull && git stash pop
git rm -r --cached .
git rm -r --cached . && git add .
git rm -r docs/old
git rm '*.pyc'
git clean -n -d
git config clean.requireForce
git clean -fd src
git switch -f main
sudo ls -la /etc
sudo apt-get install -y jq
sudo npm i -g @openai/codex
sudo systemctl restart nginx && claude --version
apt list --installed | grep fairlead
brew list | grep fairlead
brew services list
brew upgrade
pacman -Qs fairlead
dpkg -l | grep fairlead
dpkg -S fairlead
rpm -qa | grep fairlead
apt-cache policy fairlead
pip index versions fairlead
pip download fairlead -d /tmp
pip show -f fairlead
uv pip show fairlead
uv tree | grep fairlead
systemctl --user status fairlead | head
systemctl --user show -p MainPID --value fairlead
kill $(systemctl --user show -p MainPID --value myapp)
kill $(pgrep -f 'npm run dev')
pgrep -f node | xargs -r kill
pgrep -f fairlead | xargs ps -o pid,cmd -p
ps -o rss= -p $(pgrep -f fairlead)
ps aux | awk '/fairlead/{print $2}'
ps aux | awk '/node/{print "kill " $2}' | sh
ps aux | awk '/node/{system("kill " $2)}'
pkill -f 'python app.py'
pkill -f 'python -m http.server'
pkill -f uvicorn
pkill -f 'node server.js'
pkill -f server.js
pkill -f webpack-dev-server
pkill -f jest
killall -9 node
kill -l TERM
brew services restart postgresql
supervisorctl restart app
rc-service nginx restart
sv restart app
service postgresql status
python3 -c 'import fairlead; help(fairlead)'
python3 -c 'from fairlead.shell import read; print(read("git push -f").commands)'
python3 -c 'from fairlead.shell import read; print(read("rm x").commands)'
python3 -c 'from fairlead import __version__; print(__version__)'
python3 -c 'import glob; print(glob.glob("*.toml"))'
python3 -c 'import glob; [print(open(f).read()) for f in glob.glob("*.toml")]'
python3 -c 'import os; os.remove("a.log")'
python3 -c 'import glob, os; [os.remove(f) for f in glob.glob("build/*.o")]'
python3 -c 'import glob, os; [os.remove(f) for f in glob.glob("*.pyc")]'
python3 -c 'print("fair" + "lead")'
python3 -c 'import subprocess; subprocess.run(["git", "status"])'
python3 -c 'import subprocess; subprocess.run(["fairlead", "check"])'
node -e 'require("fs").unlinkSync("x.log")'
node -e 'require("child_process").execSync("npm test")'
perl -e 'unlink glob "*.bak"'
perl -ne 'print if /fairlead/' README.md
awk '/hook/{print FILENAME": "$0}' fairlead.toml a.py
awk -f prog.awk fairlead.toml
awk -f prog.awk fairlead.toml > /tmp/out
sed -n -f x.sed fairlead.toml
awk 'BEGIN{print ENVIRON["HOME"]}'
FOO=fairlead.toml awk 'BEGIN{print ENVIRON["FOO"]}'
make -f a.mk
make -f - <<< 'x: ; echo fine'
printf 'test:\n\tpytest\n' > Makefile; make test
printf 'check:\n\tfairlead check\n' > Makefile && make check
cat > Makefile <<'E'¶lint:¶	fairlead check fairlead.toml¶E
ln -s ../../a.py bin/run; cat fairlead.toml
cp a.py cat.py; cat fairlead.toml
cp tool ls-extra; ls fairlead.toml
mkdir -p bin && ln -sf ../a.py bin/grepx && grep x fairlead.toml
declare -A m=([k]=v); echo "${m[k]}"
declare -A files=([cfg]=fairlead.toml); cat "${files[cfg]}"
f=(fairlead.toml a.py); wc -l "${f[@]}"
f=(fairlead.toml a.py); for x in "${f[@]}"; do head -1 "$x"; done
x=fairlead.toml; head -1 "$x"; rm -f "$TMPDIR/x"
cat fairlead.toml; echo "$_"
mkdir -p build/x && cd $_
mkdir newdir && cd "$_" && touch a
tmux new-session -d -s dev 'npm run dev'
tmux send-keys -t dev 'npm test' Enter
tmux send-keys -t dev C-c
screen -dmS dev npm start
echo 'npm test' | at now
crontab -l | grep fairlead
npm pkg set scripts.lint='fairlead check'
npm pkg get scripts
rm -rf !(src|fairlead.toml)/node_modules
shopt -s extglob; ls !(src)
shopt -s nocaseglob; ls *.TOML
env -u FOO claude --version
env -u VIRTUAL_ENV uv sync
unset VIRTUAL_ENV; uv sync
read -r x <<< a; echo $x
printf -v x '%s' a; echo $x
exec 3< fairlead.toml; read -u 3 l; echo "$l"
exec 3<> /tmp/x; echo hi >&3
while IFS= read -r l; do printf '%s\n' "$l"; done 3< fairlead.toml <&3
PS4='+ $LINENO: '; set -x; make
PS1='$(git branch) $ '
diff <(sort fairlead.toml) <(sort /tmp/x) | sh -c 'wc -l'
xargs -a <(ls) wc -l
xargs rm -f < /tmp/list
cat /tmp/list | xargs rm -f
cat list.txt | xargs -I{} mv {} archive/
ls build | xargs -I{} rm -rf build/{}
ls -d build/* | xargs rm -rf
ls src | xargs -I{} cp src/{} /tmp/
ls /tmp | xargs -n1 echo
ls | head
printf '%s\n' a b | xargs touch
printf '%s\n' a b | parallel echo
parallel --jobs 2 pytest ::: a b
base64 -d x.b64 > x.bin
echo aGk= | base64 -d
tr -d '\r' < a.py > b.py
tr a-z A-Z < fairlead.toml
echo "$PATH" | tr : '\n'
git checkout -b feature/fairlead-toml
git switch -
git reset --soft HEAD~1
git reset HEAD~1 -- fairlead.toml
cat -n fairlead.toml | head -40
less fairlead.toml
head -20 fairlead.toml
tail -f ~/.claude/settings.json
grep -n rule fairlead.toml
grep -rn fairlead . --include='*.toml'
rg fairlead.toml
rg -n 'hooks' ~/.claude/settings.json
diff fairlead.toml src/settings.json
diff -u <(cat fairlead.toml) <(git show HEAD:fairlead.toml)
wc -l fairlead.toml .claude/settings.json
stat fairlead.toml
stat -c %y fairlead.toml
ls -la fairlead.toml ~/.claude
ls -la ~/.claude/hooks
sha256sum fairlead.toml
md5sum ~/.codex/config.toml
test -f fairlead.toml && echo yes
[ -f fairlead.toml ] || echo none
[[ -e ~/.claude/settings.json ]] && echo there
jq . ~/.claude/settings.json
jq '.hooks | keys' ~/.claude/settings.json
jq -r '.permissions.allow[]' .claude/settings.json
python3 -m json.tool ~/.claude/settings.json
python3 -m json.tool < ~/.claude/settings.json
cat ~/.claude/settings.json | jq .hooks
cat fairlead.toml | grep -c hook
sed -n 1,20p fairlead.toml
sed -n '/hook/,/^$/p' fairlead.toml
sed 's/deny/DENY/' fairlead.toml
sed s/a/b/ fairlead.toml | diff - fairlead.toml
awk '/hook/ {print NR": "$0}' fairlead.toml
awk -F= '{print $1}' fairlead.toml | sort | uniq -c
awk '{ if ($1 > 3) print $2 }' fairlead.toml
awk 'NR>1 && $1 != "" {print}' fairlead.toml
awk '{print $1 | "sort -u"}' fairlead.toml
awk 'length($0) > 80 {print FILENAME": "FNR}' fairlead.toml
sort fairlead.toml | uniq
nl -ba fairlead.toml
xxd fairlead.toml | head
od -c fairlead.toml | head
base64 fairlead.toml
cut -d= -f1 fairlead.toml
tr -d '\r' < fairlead.toml | wc -l
cp fairlead.toml /tmp/fairlead.bak
cp fairlead.toml fairlead.toml.bak
cp ~/.claude/settings.json /tmp/s.json
git diff HEAD~1 -- fairlead.toml
git log -p -- fairlead.toml
git log --oneline --follow fairlead.toml
git blame fairlead.toml
git show HEAD:fairlead.toml
git add .claude/settings.json && git commit -m "Add settings"
git commit -m "fairlead.toml: deny force pushes"
git commit -am 'Explain rm fairlead.toml in docs'
git ls-files fairlead.toml
git grep fairlead
git grep -n 'fairlead.toml' -- docs
git push origin main
git stash show -p
git checkout -b fairlead-rules
git fetch --all --prune
git log --grep=fairlead
git tag -a v1 -m 'fairlead 1'
git branch -d fairlead-old
git worktree list
gh pr create --title 'Edit fairlead.toml' --body 'This changes fairlead.toml'
gh pr view 12 --json title
echo "see fairlead.toml"
echo 'rm fairlead.toml'
echo "edit ~/.claude/settings.json by hand" >> README.md
printf '%s\n' 'fairlead.toml is protected' > notes.txt
cat > notes.md <<'E'¶Edit fairlead.toml yourself.¶rm ~/.claude/settings.json¶E
cat <<'E' >> README.md¶## fairlead¶See `fairlead.toml`.¶E
find . -name fairlead.toml
find ~ -name settings.json -path '*claude*'
find . -type f -name '*.pyc' -delete
find . -name '*.toml' -print0 | xargs -0 grep -n rule
find . -name node_modules -prune -o -name '*.js' -print
find . -newer fairlead.toml -name '*.py'
ls *.toml
ls -d .*/
for f in *.toml; do echo $f; done
while read l; do echo "$l"; done < fairlead.toml
mapfile -t lines < fairlead.toml; echo ${#lines[@]}
x=$(grep -c hook fairlead.toml) && echo $x
if grep -q deny fairlead.toml; then echo ok; fi
python3 -c "import tomllib; print(tomllib.load(open('a.py','rb')))"
python3 -c "print('hello')"
python3 - <<E¶import json¶print(json.dumps({}))¶E
python3 x.py --config pyproject.toml
pytest -q tests
pytest -q -k fairlead
npm install
pip install fairlead-extras-not-ours
python3 -c 'import fairlead; print(fairlead.__version__)'
fairlead --version
fairlead check fairlead.toml
fairlead log --json | jq .
fairlead explain 'rm -rf /'
fairlead explain 'git push -f' --json
fairlead test
pgrep -f fairlead
pgrep -af fairlead
systemctl --user status fairlead
systemctl status nginx
kill 999999
pkill -f webpack
lsof -i :8080
lsof -ti :3000 | xargs kill
docker stop web
docker ps
docker run --rm -v $PWD:/w -w /w python:3 pytest
docker exec web ls
tar czf backup.tgz src
tar czf backup.tgz fairlead.toml src
tar tf backup.tgz
zip -r x.zip src fairlead.toml
rsync -a src/ backup/
cp -r src backup
mv a.py b.py
mv src/settings.json src/old.json
rm -f *.pyc
rm -rf build dist
rm -rf node_modules
rm -rf .pytest_cache .mypy_cache
rm src/settings.json
mkdir -p src/.config
touch a.py
chmod +x a.py
chmod +x scripts/*.sh
sed -i 's/a/b/' a.py
sed -i.bak s/x/y/ src/settings.json
sed -i 's/fairlead/other/' README.md
sed -ni '/x/p' a.py
perl -pi -e 's/a/b/' README.md
perl -ne 'print if /hook/' README.md
awk '{print > "out.txt"}' a.py
awk '{print $1 > $2".txt"}' a.py
awk '{ print $2 | "sort" }' a.py
awk -i inplace '{print}' a.py
sort -o a.txt a.py
sort --output=a.txt a.py
echo hello > a.py
echo x | tee out.log
make -j4 test
make -f x.mk
ssh host 'ls -la'
ssh host "cat /etc/hosts"
scp a.py host:/tmp
curl -o x.json https://example.com/x
curl -fsSL https://example.com/install | tar xz
export PATH=$PATH:~/bin
export NODE_ENV=test; npm test
HOME=/tmp/x npm install
HOME=/tmp/h git config --list
PYTHONPATH=src pytest -q
cd src && pytest
cd /tmp && ls
code fairlead.toml
claude -p 'what is fairlead?'
gemini -p hi
sudo systemctl restart nginx
watch -n1 'git status'
xargs -n1 echo < a.py
ls | xargs -I{} echo {}
git ls-files '*.py' | xargs wc -l
git ls-files -z | xargs -0 grep -l fairlead
tree -L 2 -a
du -sh ~/.claude
realpath fairlead.toml
readlink -f link.json
basename fairlead.toml .toml
dirname ~/.claude/settings.json
date -r fairlead.toml
cmp fairlead.toml fairlead.toml.bak
cksum fairlead.toml
yq .hook fairlead.toml
tomlq .hook fairlead.toml
bat fairlead.toml
view -R a.py
vim a.py
npx prettier --check fairlead.toml
ruff check .
ruff check fairlead.toml
taplo check fairlead.toml
taplo lint fairlead.toml
shasum -a 256 fairlead.toml
python3 -c 'import tomllib,sys; print(tomllib.load(sys.stdin.buffer))' < fairlead.toml
cat < fairlead.toml > /tmp/copy.toml
exec 3< fairlead.toml; cat <&3
cat fairlead.toml > /dev/stdout
cat fairlead.toml | tee /dev/stderr
cat fairlead.toml > /dev/null
grep hook fairlead.toml >/dev/null 2>&1 && echo found
tee copy.toml < fairlead.toml
cat fairlead.toml > copy.toml
dd if=fairlead.toml of=/tmp/x
install -m 644 fairlead.toml /tmp/x.toml
base64 fairlead.toml > x.b64
gzip -k fairlead.toml
gzip -c fairlead.toml > x.gz
git archive HEAD -o x.tgz
git format-patch -1
git diff > x.patch
git apply x.patch
git merge origin/main
git stash push -m wip a.py
git checkout -- a.py
git checkout main -- README.md
git config user.name x
git config --get alias.co
git config alias.co checkout
git -c color.ui=always log
git submodule update --init
let x=1+2; echo $x
x=5; echo $((x*2))
a=(1 2 3); echo ${a[1]}; unset 'a[1]'
declare -A m=([a]=1); echo ${!m[@]}
declare -A m; m[fairlead.toml]=1; echo ${!m[@]}
read -r x y <<< "a b"; echo $x
printf -v x '%03d' 5; echo $x
compgen -c | grep fairlead
mapfile -t a < <(git ls-files); echo ${#a[@]}
trap 'rm -f x.tmp' EXIT
trap cleanup EXIT
echo "$(cat fairlead.toml)"
cat > setup.py <<E¶from setuptools import setup¶setup()¶E
cat > x.py <<E¶print(open("fairlead.toml").read())¶E
cat > x.sh <<E¶cat fairlead.toml¶E
cat > test_x.py <<'E'¶def test(): assert "fairlead.toml"¶E
python3 -c "print(open('fairlead.toml').read())"
cat > .github/workflows/ci.yml <<E¶run: fairlead check fairlead.toml¶E
cat > .github/workflows/ci.yml <<E; git add .github; git commit -m ci¶run: fairlead check fairlead.toml¶E
cat > README.md <<E; git add -A; git commit -m docs¶Edit fairlead.toml¶E
cat > conftest.py <<E; pytest -q¶import pytest¶E
cat > Makefile <<E; make lint¶lint:¶	ruff check .¶E
docker cp
docker cp fairlead.toml web:/etc/x
docker save -o x.tar img
docker run -v $PWD:/w:ro alpine ls /w
docker run --rm -it -v ~/x:/x alpine sh
sftp host <<< 'ls'
7z l x.7z
unzip x.zip
bwrap --ro-bind / / ls
tar xf x.tar.gz
cpio -id < x
aria2c https://x/y.iso
nu -c 'ls'
make --eval='x:; echo hi' x
HISTFILE=/dev/null bash -c ls
GIT_TRACE=1 git status
COVERAGE_FILE=.coverage.x pytest
RUST_LOG=debug cargo run
LOG_FILE=out.log ./run.sh
NODE_OPTIONS=--max-old-space-size=4096 npm run build
NODE_OPTIONS='--require ./x.js' node a.js
PYTHONSTARTUP=~/.pythonrc python3
JAVA_TOOL_OPTIONS=-Xmx1g mvn test
LD_PRELOAD=libjemalloc.so ./server
BASH_ENV=~/.env bash -c ls
PS1='$(git branch --show-current) $ ' bash
export PS1='\u@\h $(date) '
coproc cat; echo hi >&${COPROC[1]}
exec > >(tee log.txt); echo hi
exec 3<file.txt; read -u 3 x; echo $x > /dev/stdout
cat < fairlead.toml 2>/dev/null
while read l; do echo $l; done < fairlead.toml > out.txt
echo $(( $(wc -l < fairlead.toml) + 1 ))
x='a[0]'; echo $((x))
a=(1 2 3); unset 'a[0]'; echo ${a[@]:1:1}
complete -W 'start stop' svc
compgen -W 'a b' a
mapfile -t -C 'echo' -c 10 lines < a.py
echo "bash -c 'rm fairlead.toml'"
git commit -m "do not run sh -c 'rm fairlead.toml'"
gh issue create -t x -b "run bash -c 'cat fairlead.toml'"
ls | grep '^src' | xargs ls
ls | grep -v pyc | xargs wc -l
git ls-files | grep test | xargs rm
find . -name '*.log' | xargs rm -f
find . -iname '*.TMP' -delete
ls *.log | while read f; do rm "$f"; done
x=$(git ls-files '*.orig'); rm -f $x
d=$(mktemp -d); rm -rf "$d"
d=$(python3 -c 'import site; print(site.getsitepackages()[0])'); ls "$d"
ps aux | awk '/node/{print $2}' | xargs kill
pkill -f '[[:alpha:]]-worker'
loginctl list-sessions
loginctl show-session
exec -a worker sleep 1
export -n DEBUG
env -i PATH=$PATH ls
unset DEBUG; npm test
pip3.11 install requests
pip3 uninstall -y requests
sed --in-place s/a/b/ a.py
sort --output=b.txt a.py
truncate -s 0 log.txt
cat > package.json <<E; npm install¶{"name":"x","scripts":{"test":"fairlead check"}}¶E
cat > .git/hooks/pre-commit <<E; chmod +x .git/hooks/pre-commit¶ruff check¶E
cat > conftest.py <<E; pytest¶import pytest, os¶os.environ["X"]="1"¶E
cat > x.py <<E; python3 x.py¶print(1)¶E
echo 'export PATH=$PATH:~/bin' >> ~/.bashrc; bash -ic 'echo $PATH'
Get-Content fairlead.toml
Get-Content -Path fairlead.toml -TotalCount 20
Select-String -Path fairlead.toml -Pattern hook
Test-Path fairlead.toml
Get-FileHash fairlead.toml
gci -Force
cd ~/ws && cat fairlead.toml && cd -
for f in fairlead.toml pyproject.toml; do echo "== $f"; cat "$f"; done
for f in $(git ls-files '*.toml'); do python3 -c "import tomllib,sys; tomllib.load(open('$f','rb'))"; done
python3 -c "import tomllib; d=tomllib.load(open('fairlead.toml','rb')); print(d['hook'])"
python3 - <<'E'¶import tomllib¶with open("fairlead.toml","rb") as f:¶    print(tomllib.load(f))¶E
python3 -c "import json; print(json.load(open('~/.claude/settings.json')).keys())"
python3 -c 'import os; print(os.path.exists("fairlead.toml"))'
python3 -c 'from pathlib import Path; print(Path("fairlead.toml").stat().st_size)'
node -e 'console.log(JSON.parse(require("fs").readFileSync("package.json")).version)'
node -p 'require("./package.json").version'
ruby -e 'puts File.read("a.py")'
perl -ne 'print if /x/' fairlead.toml
perl -lane 'print $F[0]' fairlead.toml
grep -o '"hooks"' ~/.claude/settings.json | wc -l
jq -e '.hooks.PreToolUse' ~/.claude/settings.json >/dev/null && echo on
jq --arg x 1 '.a=$x' ~/.claude/settings.json
jq -s 'add' ~/.claude/settings.json .claude/settings.json
diff <(jq -S . ~/.claude/settings.json) <(jq -S . /tmp/s.json)
comm -12 <(sort fairlead.toml) <(sort fairlead.toml.bak)
vimdiff -R fairlead.toml fairlead.toml.bak
git difftool --tool=vimdiff HEAD~1 -- src
git log --stat --since=1.week -- fairlead.toml .claude
git show --stat HEAD -- .claude
git diff --name-only | grep -v fairlead.toml | xargs ruff check
git diff --cached --name-only -- '*.toml'
git ls-tree -r HEAD --name-only | grep toml
git rev-list --count HEAD -- fairlead.toml
git shortlog -sn -- fairlead.toml
git bisect start; git bisect bad; git bisect good v1
git rm --cached src/settings.json
git mv a.py b.py
git clean -ndx
git stash show --include-untracked
git notes add -m 'fairlead.toml'
git tag fairlead-1.0
git branch fairlead
git checkout -b fix/fairlead-toml
git worktree add ../wt
git remote add fairlead https://example.com/fairlead
git commit --amend --no-edit
git commit -F- <<E¶Describe fairlead.toml¶¶rm fairlead.toml no longer works¶E
git commit -m "$(cat <<'E'¶Guard: rm fairlead.toml¶E¶)"
gh pr create --fill --body "$(cat <<'E'¶Do not `rm fairlead.toml`.¶E¶)"
gh pr comment 1 -b 'rm ~/.claude/settings.json would be denied'
gh api repos/x/y/contents/fairlead.toml
gh run view --log | grep fairlead
curl -s http://localhost:8080/fairlead.toml | head
curl -X POST -d @fairlead.toml http://localhost:8080/check
curl -F file=@fairlead.toml http://localhost:8080/check
wget --spider https://example.com/fairlead.toml
ssh host cat fairlead.toml
ssh host 'grep hook fairlead.toml'
scp fairlead.toml host:
rsync -avz --exclude fairlead.toml src/ host:src/
rsync -av fairlead.toml host:backup/
docker build -t x . && docker run --rm x fairlead check
docker run --rm -v $PWD/fairlead.toml:/etc/fairlead.toml:ro img check
docker logs fairlead
docker ps --filter name=fairlead
docker compose logs -f fairlead
kubectl get configmap fairlead -o yaml
kubectl logs deploy/fairlead
kubectl create configmap x --from-file=fairlead.toml --dry-run=client -o yaml
helm lint .
journalctl --user -u fairlead -n 50
systemctl --user is-active fairlead
ps -ef | grep [f]airlead
pgrep -fl fairlead | head
lsof -p $(pgrep -f fairlead)
top -b -n1 | grep fairlead
strace -c ls
tail -n 100 ~/.local/state/fairlead/log.txt
ls -la ~/.local/state/fairlead
du -sh ~/.local/state/fairlead
sqlite3 -readonly ~/.local/state/fairlead/journal.db .tables
file ~/.local/state/fairlead/journal.db
fairlead log -n 20
fairlead log --since 1h | grep deny
fairlead show --last
fairlead stats --json
fairlead export --format jsonl > out.jsonl
fairlead diff a.toml b.toml
fairlead replay --help
fairlead packs git
fairlead schema > fairlead.schema.json
fairlead explain "$(cat cmd.txt)"
fairlead explain - < cmd.txt
echo 'rm -rf x' | fairlead explain -
fairlead completion bash > ~/.fairlead-completion
uv run fairlead check
uv run pytest tests/packs -k guard
python -m fairlead explain 'git push -f'
python3 -m pytest --cov=fairlead
python3 -m pip show fairlead
pip download fairlead --no-deps -d /tmp/x
pip install -e '.[dev]'
pip install 'requests>=2' rich
uv add httpx
npm i -D prettier && npx prettier --check .
npx eslint src --ext .ts
yarn workspace web build
cargo clippy -- -D warnings
go vet ./... && go test ./...
make lint test
make clean && make
cmake -B build && cmake --build build -j
bazel test //...
terraform plan -out=tfplan
ansible-playbook -i hosts site.yml --check
export CLAUDE_CODE_USE_BEDROCK=1
claude -p "summarise fairlead.toml" --output-format json
codex exec 'read fairlead.toml and explain'
opencode run 'hi'
cursor-agent --help
gemini --version
goose --help
XDG_CACHE_HOME=/tmp/c npm ci
HOME=$PWD/home ./configure
TMPDIR=/tmp/x pytest
env FOO=1 python3 a.py
env -u PYTHONPATH python3 a.py
set -euo pipefail; ls
set -a; . ./.env; set +a; env | sort
source .venv/bin/activate && pytest
. ~/.nvm/nvm.sh && nvm use 20
eval "$(ssh-agent -s)"
eval "$(direnv export bash)"
bash -lc 'node -v'
bash -c 'for f in *.toml; do echo $f; done'
sh -c 'cat fairlead.toml | wc -l'
chmod +x scripts/build.sh && ./scripts/build.sh
cat > scripts/x.sh <<'E' && chmod +x scripts/x.sh && ./scripts/x.sh¶#!/bin/sh¶ls -la¶E
cat > x.awk <<'E'; awk -f x.awk a.py¶{ print $1 > "out.txt" }¶E
cat > new.toml <<'E'¶[[hook]]¶name = "x"¶E
cat > examples/fairlead.toml <<'E'¶[[hook]]¶E
tee -a README.md <<< 'See fairlead.toml'
sed -i 's#fairlead.toml#policy.toml#' README.md
sed -i '/fairlead/d' README.md
sed -n '/\[\[hook\]\]/,/^$/p' fairlead.toml
sed -e 's/#.*//' -e '/^$/d' fairlead.toml
awk 'BEGIN{FS="="} /name/{gsub(/"/,"",$2); print $2}' fairlead.toml
awk '/^\[\[/{n++} END{print n}' fairlead.toml
awk -v n=3 'NR<=n' fairlead.toml
awk '{ sum += $1 } END { printf "%d\n", sum }' a.py
awk '$3 >= 10 && $2 ~ /x|y/ { print $0 }' data.txt
find . -name '*.toml' -not -path './node_modules/*' -print
find . -name '*.toml' | xargs grep -l hook
find . -name '*.bak' -delete
find . -type d -name __pycache__ -exec rm -rf {} +
find . -name '*.pyc' | xargs rm -f
find build -type f -mtime +7 -delete
find /tmp -name 'fairlead-*' -maxdepth 1
fd -e toml
fd fairlead
tree -a -I .git
ls -A | wc -l
rm -rf dist/ build/ *.egg-info
rm -f /tmp/fairlead.sock.bak
mv build/out.txt .
mv notes.md docs/
cp -r templates/. out/
cp pyproject.toml pyproject.toml.bak
ln -s ../a.py src/b.py
touch src/__init__.py
mkdir -p .claude/commands && cat > .claude/commands/x.md <<< hi
echo x >> .claude/CLAUDE.md
cat > CLAUDE.md <<E¶Do not edit fairlead.toml¶E
mkdir -p .github/workflows; cp ci.yml .github/workflows/
echo '*.log' >> .gitignore
pkill -f "python -m http.server"
kill -HUP $(cat nginx.pid)
jobs -p | xargs kill
wait; echo done
sleep 1 && curl -s localhost:3000
(sleep 5; echo late) &
nohup python3 -m http.server 8000 > server.log 2>&1 &
timeout 30 npm start || true
time make -j8
watch -n5 kubectl get pods
seq 1 5 | xargs -I{} echo item {}
printf '%s\n' a b | while read x; do echo "$x"; done
date +%s; date -u -d '1 day ago'
openssl rand -hex 16
base64 -d <<< aGVsbG8=
echo aGVsbG8= | base64 -d > out.bin
tar czf - src | ssh host 'tar xzf -'
zip -r out.zip . -x 'node_modules/*'
join fairlead.toml /tmp/x
pr fairlead.toml
iconv -f latin1 -t utf8 fairlead.toml
expand -t4 fairlead.toml
openssl dgst -sha256 fairlead.toml
gpg --verify fairlead.toml.sig fairlead.toml
exa -l fairlead.toml
node -p 'JSON.parse(require("fs").readFileSync(".claude/settings.json"))'
node -p 'require("./.claude/settings.json").hooks'
node -e 'console.log(Object.keys(JSON.parse(require("fs").readFileSync(".claude/settings.json", "utf8"))))'
find ~ -name '*.pyc' -delete
find ~ -name '*.orig' -exec rm {} +
find . -name '*.toml' -exec sh -c 'wc -l "$1" > /dev/null' _ {} \;
find . -name '*.py' -exec sh -c 'sed -i s/a/b/ "$1"' _ {} \;
find . -name '*.toml' -exec sh -c 'grep -c x "$1" >> counts.txt' _ {} \;
fd -e pyc -x rm
fd -e py -x sed -i s/a/b/
fd '\.orig$' -X rm
fd -g fairlead.toml
fd -e toml -x cat
fd -e js . src -x prettier --check
find . -name '*.toml' -exec sh -c 'echo "$1" >> counts.txt' _ {} \;
unzip -p x.zip fairlead.toml
mv -t .. a.py
rsync -a --delete src/ /tmp/copy/
rsync -a --delete ./ host:/srv/app/
rsync -a --delete build/ dist/
rsync -rt src/ /tmp/copy/
cp -at /tmp fairlead.toml
tar -czf/tmp/x.tgz fairlead.toml
tar czf /tmp/x.tgz fairlead.toml .claude
ls -a | grep claude | head -3
cat fairlead.toml | grep name | sort | head -2
sed s/deny/allow/ fairlead.toml | diff fairlead.toml -
xterm -e less fairlead.toml
python3 -m pdb a.py
python3 -m cProfile -m pytest
""".strip().split("\n")

_READERS = [one.replace("{}", "{0}") for one in re.split(r"\|(?! )", _READS.replace("\n", ""))]
ORDINARY = [*(reader.format(_NAMES[number % 3]) for number, reader in enumerate(_READERS)), *_BY_HAND]
"""Commands of an ordinary day near protected files and names."""
