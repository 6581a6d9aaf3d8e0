"""Lines that change the protected file `fairlead.toml`, in a folder that has `a.py` and `src/` besides.

`combined` makes lines: a writer changes the file, a way of naming says how the file is named, and a wrapper says how
the writer comes to run. `BY_HAND` are lines of their own.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from shlex import quote

NAME = "fairlead.toml"
Wrapper = Callable[[str], str]

WRITERS = [
    "rm {}", "rm -f -- {}", "unlink {}", "mv {} off", "mv -t src {}", "mv a.py {}", "cp a.py {}", "cp -T a.py {}",
    "ln -sf a.py {}", "install a.py {}", "truncate -s 0 {}", "shred -u {}", "echo x > {}", "echo x >> {}", "> {}",
    "echo x >| {}", "echo x &> {}", "ls nothing 2> {}", "echo x 1<> {}", "echo x | tee {}", "tee -a {} < a.py",
    "dd if=a.py of={}", "sed -i s/x/y/ {}", "sed -Ei.bak s/x/y/ {}", "perl -pi -e s/x/y/ {}", "sort -o {} a.py",
    "sort -uo {} a.py", "chmod 600 {}", "uniq a.py {}", "xxd a.py {}", "cat a.py > {}", "cat > {} <<< x",
    "sponge {} < a.py", "find {} -delete", "xargs rm <<< {}", "echo {} | xargs rm",
    "find src -maxdepth 0 -exec rm {} ';'",
    "awk '{{print > ARGV[1]; exit}}' {}", "exec 3> {}", "gzip {}",
]  # fmt: skip
"""Commands that change the file `{}`."""

NAMINGS = [
    NAME, f"'{NAME}'", f'"{NAME}"', 'fair"lead".toml', "fairlead\\.toml", f"./{NAME}", f".//./{NAME}", f"src/../{NAME}",
    f"../ws/{NAME}", f"$PWD/{NAME}", f'"$PWD"/{NAME}', f"~/ws/{NAME}", f'"$HOME/ws/{NAME}"', f"${{HOME}}/ws/{NAME}",
    "fair*.toml", "fairlead.tom?", "fairlead.[t]oml", "{fair,}lead.toml", "fairlead.{toml,}", f"$'{NAME}'",
    "$'\\x66airlead\\056toml'", f"$(echo {NAME})", f'"$(printf %s {NAME})"', f"`echo {NAME}`", f"${{NONE:-{NAME}}}",
    "$(echo fairlead).toml", "$(printf fair%s.toml lead)", "$(rev <<< lmot.daelriaf)",
]  # fmt: skip
"""Ways to write its name."""
ONE_WORD = [naming for naming in NAMINGS if naming not in ("{fair,}lead.toml", "fairlead.{toml,}")]
"""Those that are one word whatever there is: a redirection takes no other."""

WRAPPERS: dict[str, Wrapper] = {
    "plain": lambda line: line,
    "subshell": lambda line: f" ( {line} )",
    "group": lambda line: f"{{ {line}\n}}",
    "if": lambda line: f"if true; then {line}\nfi",
    "else": lambda line: f"if false; then :; else {line}\nfi",
    "elif": lambda line: f"if false; then :; elif {line}\nthen :; fi",
    "and": lambda line: f"true && {line}",
    "or": lambda line: f"false || {line}",
    "not": lambda line: f"! {line}",
    "after": lambda line: f"cat a.py; {line}",
    "line": lambda line: f"echo a # it's\n{line}",
    "arithmetic": lambda line: f"echo $((1<<E))\n{line}",
    "document": lambda line: f"cat <<E\nx\nE\n{line}",
    "background": lambda line: f"{line} & wait",
    "time": lambda line: f"time {line}",
    "for": lambda line: f"for i in 1; do {line}\ndone",
    "while": lambda line: f"while true; do {line}\nbreak; done",
    "until": lambda line: f"until false; do {line}\nbreak; done",
    "case": lambda line: f"case x in y|x) {line}\n;; esac",
    "function": lambda line: f"f() {{ {line}\n}}; f",
    "function keyword": lambda line: f"function f {{ {line}\n}}\nf",
    "name of a reader": lambda line: f"cat() {{ {line}\n}}; cat a.py",
    "coproc": lambda line: f"coproc {{ {line}\n}}; wait",
    "substitution": lambda line: f"echo $({line})",
    "quoted substitution": lambda line: f'echo "a $({line}) b"',
    "assigned substitution": lambda line: f"x=$({line})",
    "process": lambda line: f"cat <({line})",
    "sh -c": lambda line: f"bash -c {quote(line)}",
    "sh -ec": lambda line: f"bash -ec {quote(line)}",
    "env sh": lambda line: f"env A=1 bash -c {quote(line)}",
    "nohup": lambda line: f"nohup timeout 5 nice bash -c {quote(line)}",
    "exec": lambda line: f"exec bash -c {quote(line)}",
    "command": lambda line: f"command bash -c {quote(line)}",
    "eval": lambda line: f"eval {quote(line)}",
    "builtin eval": lambda line: f"builtin eval {quote(line)}",
    "variable": lambda line: f"x={quote(line)}; eval \"$x\"",
    "variable to sh": lambda line: f"x={quote(line)}; bash -c \"$x\"",
    "argument": lambda line: f"bash -c 'eval \"$1\"' _ {quote(line)}",
    "name of the shell": lambda line: f"bash -c 'eval \"$0\"' {quote(line)}",
    "echo to sh": lambda line: f"printf '%s\\n' {quote(line)} | bash",
    "echo to sh -s": lambda line: f"printf %s {quote(line)} | bash -s",
    "tee to sh": lambda line: f"printf %s {quote(line)} | tee x | bash",
    "here-string": lambda line: f"bash <<< {quote(line)}",
    "here-document": lambda line: f"bash <<'E'\n{line}\nE",
    "document to sh": lambda line: f"cat <<'E' | bash\n{line}\nE",
    "file of a process": lambda line: f"bash <(printf '%s\\n' {quote(line)})",
    "source": lambda line: f"source <(printf '%s\\n' {quote(line)})",
    "dot": lambda line: f". <(printf '%s\\n' {quote(line)})",
    "source of a document": lambda line: f"source /dev/stdin <<'E'\n{line}\nE",
    "base64": lambda line: f"echo {base64.b64encode(line.encode()).decode()} | base64 -d | bash",
    "trap": lambda line: f"trap {quote(line)} EXIT",
    "xargs": lambda line: f"printf %s {quote(line)} | xargs -0 bash -c",
    "xargs -I": lambda line: f"echo x | xargs -I{_mark(line)} bash -c {quote(line)}",
    "find": lambda line: f"find . -maxdepth 0 -exec bash -c {quote(line)} ';'",
    "git alias": lambda line: "git -c alias.x=" + quote("!bash -c " + quote(line)) + " x",
    "git config": lambda line: "git config alias.x " + quote("!bash -c " + quote(line)) + "; git x",
    "perl": lambda line: "perl -e " + quote('exec("bash", "-c", "' + _in_double(line) + '")'),
    "prompt": lambda line: f"PROMPT_COMMAND={quote(line)} bash -i",
    "mapfile": lambda line: f"mapfile -d '' x <<< {quote(line)}; eval \"$x\"",
    "read": lambda line: f"IFS= read -rd '' x <<< {quote(line)}; eval \"$x\"",
    "printf -v": lambda line: f"printf -v x %s {quote(line)}; eval \"$x\"",
    "array": lambda line: f"x=(bash -c {quote(line)}); \"${{x[@]}}\"",
    "set": lambda line: f"set -- {quote(line)}; eval \"$1\"",
    "alias": lambda line: f"shopt -s expand_aliases\nalias x={quote(line)}\nx",
    "folder": lambda line: f"cd src && cd .. && {line}",
    "pushd": lambda line: f"pushd src > x; popd > x; {line}",
    "sed to sh": lambda line: f"printf '%s\\n' {quote(line)} | cat | bash",
}  # fmt: skip
"""Ways in which a line comes to run."""


def _mark(line: str) -> str:
    """What stands nowhere in a line."""
    return next(mark for mark in ("@", "%", "@@", "%%", "@%") if mark not in line)


def _in_double(line: str) -> str:
    """A text in double quotes of Perl."""
    return "".join("\\" + sign if sign in '\\"$@' else sign for sign in line)


def line_of(writer: str, naming: str, *wrappers: str) -> str:
    line = writer.format(naming)
    for wrapper in wrappers:
        line = WRAPPERS[wrapper](line)
    return line


def combined() -> Iterator[str]:
    """Every writer with every naming, every writer in every wrapper, and every naming in every wrapper."""
    for writer in WRITERS:
        for naming in ONE_WORD:
            yield line_of(writer, naming)
        for wrapper in WRAPPERS:
            yield line_of(writer, NAME, wrapper)
    for naming in NAMINGS:
        for wrapper in WRAPPERS:
            yield line_of("rm -f {}", naming, wrapper)


_TEXT = rf"""
cat <<E | sh¶rm {NAME}¶E
echo $((1<<E))¶rm {NAME}
cat(){{ rm "$@"; }}; cat {NAME}
echo() {{ command rm "$1"; }}; echo {NAME}
rm${{IFS}}{NAME}
{{rm,-f,{NAME}}}
$SHELL -c "rm {NAME}"
xargs rm <<< {NAME}
xargs -n1 rm < <(echo {NAME})
echo {NAME} | xargs -I% mv % off
printf '{NAME}\0' | xargs -0 rm
xargs -a <(echo {NAME}) rm
{{fd}}>{NAME} true
exec {{fd}}>{NAME}
true 3>{NAME}
echo x >&{NAME}
{{ echo x; }} > {NAME}
for i in 1; do echo $i; done > {NAME}
if true; then echo x; fi > {NAME}
(echo x) > {NAME}
echo x | cat > {NAME}
cat a.py | tee src/x {NAME}
cat a.py > >(cat > {NAME}); sleep 0.2
tee >(cat > {NAME}) < a.py; sleep 0.2
git -c alias.x='!rm {NAME}' x
git -c core.pager='rm {NAME};' -p log; git -c alias.y='!rm {NAME};' y
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0='!rm {NAME}' git x
printf 'rm %s' {NAME} | sh
a=rm b={NAME}; $a $b
a='rm {NAME}'; $a
a=(rm {NAME}); "${{a[@]}}"
f={NAME}x; rm ${{f%x}}
f=x{NAME}; rm ${{f#x}}
f=fairlead; rm $f.toml
f=fairlead; f+=.toml; rm $f
f=FAIRLEAD.TOML; rm ${{f,,}}
f={NAME}; g=f; rm ${{!g}}
declare -n r=f; f={NAME}; rm $r
: ${{f:={NAME}}}; rm $f
set -- rm {NAME}; "$@"
set -- {NAME}; rm "${{@:1}}"
read f <<< {NAME}; rm $f
read -r a b <<< 'rm {NAME}'; $a $b
IFS=, read a b <<< rm,{NAME}; $a $b
mapfile -t a <<< {NAME}; rm "${{a[0]}}"
printf -v f %s {NAME}; rm $f
f=$(echo {NAME}); rm $f
f=`echo {NAME}`; rm "$f"
f=$(cat <<< {NAME}); rm $f
f=$(ls | grep {NAME}); rm $f
echo {NAME} | while read f; do rm $f; done
echo {NAME} | {{ read f; rm $f; }}
while read f; do rm $f; done <<< {NAME}
while read f; do rm $f; done < <(echo {NAME})
ls {NAME} | while read -r f; do rm "$f"; done
ls | grep {NAME} | xargs rm
ls fair* | xargs rm
find . -name {NAME} | xargs rm
find . -name 'fair*' -print0 | xargs -0 rm
find . -name {NAME} -exec rm {{}} +
find . -maxdepth 1 -name 'fair*.toml' -delete
find . -maxdepth 1 -type f -name {NAME} -execdir sh -c 'rm "$1"' _ {{}} ';'
find . -maxdepth 1 -name a.py -fprint {NAME}
for f in *.toml; do rm $f; done
for f in a.py {NAME}; do [ $f = a.py ] || rm $f; done
for f in fair*; do : > "$f"; done
f() {{ rm "$1"; }}; f {NAME}
f() {{ rm {NAME}; }}; g() {{ f; }}; g
f() {{ "$@"; }}; f rm {NAME}
shopt -s expand_aliases¶alias ls='rm -f'¶ls {NAME}
trap 'rm {NAME}' EXIT
trap 'rm {NAME}' DEBUG; true
coproc rm {NAME}; wait
env -S 'rm {NAME}'
env -C . rm {NAME}
env -C src rm ../{NAME}
env rm {NAME}
nohup rm {NAME}
timeout 5 rm {NAME}
nice -n 5 stdbuf -oL rm {NAME}
setsid -w rm {NAME}
command rm {NAME}
exec rm {NAME}
command -p rm {NAME}
eval rm {NAME}
eval "$(echo rm {NAME})"
source <(echo rm {NAME})
. /dev/stdin <<< 'rm {NAME}'
bash -c 'rm $0' {NAME}
bash -c 'rm "$@"' _ {NAME}
sh -c 'rm $1' sh {NAME}
bash -O extglob -c 'rm {NAME}'
bash -o pipefail -c 'rm {NAME}'
bash --norc -c 'rm {NAME}'
bash -s {NAME} <<< 'rm $1'
bash -s -- {NAME} <<< 'rm "$@"'
echo 'rm {NAME}' | bash -
echo 'rm {NAME}' | bash /dev/stdin
bash < <(echo rm {NAME})
bash --rcfile <(echo rm {NAME}) -i -c true
BASH_ENV=<(echo rm {NAME}) bash -c true
echo 'rm {NAME}' > x.sh; sh x.sh
echo 'rm {NAME}' > x.sh; . ./x.sh
cat > x.sh <<E; bash x.sh¶rm {NAME}¶E
printf 'rm {NAME}' > x.sh && chmod +x x.sh && ./x.sh
tee x.sh <<< 'rm {NAME}' && bash x.sh
rm $'fair\154ead.toml'
rm $'\u0066airlead.toml'
rm fair''lead.toml
rm "fair"'lead'.toml
r\m fairlead.toml
'rm' {NAME}
r''m {NAME}
$'rm' {NAME}
$(echo rm) {NAME}
$(printf '\162\155') {NAME}
`echo rm` {NAME}
$(echo rm {NAME})
rm $(echo {NAME} | tr -d x)
rm "$(basename src/{NAME})"
rm $(dirname {NAME}/x)
rm $(printf '%s.%s' fairlead toml)
rm $(echo lmot.daelriaf | rev)
base64 -d <<< cm0gZmFpcmxlYWQudG9tbA== | sh
rm fair*.toml
rm f*d.toml
rm ?airlead.toml
rm [f]airlead.toml
rm {{a,fairlead}}.toml
rm ./{NAME}
rm ~/ws/{NAME}
rm ~+/{NAME}
rm "$PWD/{NAME}"
rm $OLDPWD/{NAME} || cd . && rm {NAME}
cd src && rm ../{NAME}
cd .. && rm ws/{NAME}
cd ..; rm */{NAME}
(cd ..; rm ws/{NAME})
pushd ..; rm ws/{NAME}
cd src; cd -; rm {NAME}
CDPATH=..; cd ws; rm {NAME}
mv {NAME} x
mv -t src {NAME}
mv a.py {NAME}
mv src/../{NAME} x
cd .. && mv ws other
cp a.py {NAME}
cp --target-directory=. src/{NAME}
cp src/{NAME} .
cp src/* .
cp /dev/null {NAME}
ln -sf a.py {NAME}
ln -f a.py {NAME}
install -m 600 a.py {NAME}
install -t . src/{NAME}
dd of={NAME} if=a.py
dd of={NAME} <<< x
truncate -s0 {NAME}
truncate --size=0 -- {NAME}
shred {NAME}
sed -i 1d {NAME}
sed -i -e 1d -- {NAME}
sed --in-place=.b 1d {NAME}
sed -n wfairlead.toml a.py
sed -n 'w {NAME}' a.py
sed 's/a/b/w {NAME}' a.py
sed '1e rm {NAME}' a.py
sed -i 's/x/y/' *.toml
sed --expression=w{NAME} a.py
perl -i -pe s/x/y/ {NAME}
perl -e 'unlink "{NAME}"'
perl -e 'unlink $ARGV[0]' {NAME}
perl -e 'open F, ">", "fairlead" . ".toml"; print F 1'; rm {NAME}
perl -we 'rename "{NAME}", "x"'
perl <<< 'unlink "{NAME}"'
echo 'unlink "{NAME}"' | perl
awk 'BEGIN {{ print "x" > "{NAME}" }}'
awk 'BEGIN {{ system("rm {NAME}") }}'
awk '{{ print > FILENAME; exit }}' {NAME}
awk -v f={NAME} 'BEGIN {{ print 1 > f }}'
awk 'BEGIN {{ print 1 > ARGV[1] }}' {NAME}
awk 'BEGIN {{ print "rm {NAME}" | "sh" }}'
awk 'BEGIN {{ print "rm {NAME}" }}' | sh
echo {NAME} | awk '{{ system("rm " $0) }}'
sort -o{NAME} a.py
sort --output={NAME} a.py
sort -uo {NAME} a.py
uniq a.py {NAME}
xxd a.py {NAME}
xxd -r -p - {NAME} <<< 61
split -b 1k --filter='cat > {NAME}' a.py
split --filter='rm {NAME}' a.py
tar -cf {NAME} a.py
tar -c a.py --file={NAME}
tar cf x.tar --remove-files {NAME}
tar -cf x.tar -C src {NAME} && tar -xf x.tar
tar -cf - -C src {NAME} | tar -xf -
tar -cf x a.py --checkpoint=1 --checkpoint-action=exec='rm {NAME}'
tar -cf x a.py --use-compress-program='sh -c "rm {NAME}"'
gzip {NAME}
gzip -f {NAME}
chmod 000 {NAME}
chmod 600 *.toml
find . -name '*.toml' -exec chmod 600 {{}} ';'
csplit -f {NAME} -n 1 a.py 1; rm {NAME}
git rm -f --cached {NAME}; rm {NAME}
git rm -qf {NAME}
git mv {NAME} x
git checkout HEAD -- {NAME}
git checkout {NAME}
git restore {NAME}
git restore --source=HEAD -- {NAME}
git stash push {NAME}
git -C . checkout HEAD {NAME}
git checkout -- '*.toml'
git show HEAD:{NAME} > {NAME}
git diff --output={NAME}
git log -1 --output={NAME}
git cat-file -p HEAD:{NAME} | tee {NAME}
git archive HEAD {NAME} -o {NAME}
git update-index --remove {NAME}; rm {NAME}
git apply <<E¶--- a/{NAME}¶+++ b/{NAME}¶@@ -1,2 +1,2 @@¶-x x¶+y¶ end¶E
git checkout-index -f {NAME}
git -c core.editor='rm {NAME};:' commit --allow-empty
GIT_EDITOR='rm {NAME};:' git commit --allow-empty
GIT_EDITOR='rm {NAME};:' git config -e
EDITOR='rm {NAME};:' git commit --allow-empty
git bisect start; git bisect run rm {NAME}; git bisect reset; rm -f {NAME}
git commit -qam x; git rebase -q --exec 'rm {NAME}' --root
git difftool -y -x 'rm {NAME};:' HEAD
git commit -qam x; FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --tree-filter 'rm {NAME}' HEAD
GIT_SSH_COMMAND='rm {NAME};' git fetch ssh://x/y
git -c protocol.ext.allow=always fetch 'ext::sh -c rm% {NAME}'
sh -c "$(cat <<'E'¶rm {NAME}¶E¶)"
sh -c "$(printf 'rm %s\n' {NAME})"
bash -c "bash -c 'rm {NAME}'"
bash -c "bash -c \"bash -c 'rm {NAME}'\""
true | rm {NAME}
rm {NAME} | true
yes | rm -i {NAME}
rm {NAME} 2>/dev/null || true
[ -f {NAME} ] && rm {NAME}
[[ -n $(rm {NAME}) ]]
(( $(rm {NAME}; echo 1) ))
echo ${{x:-$(rm {NAME})}}
echo "${{x:-`rm {NAME}`}}"
echo $(( $(rm {NAME}; echo 1) + 1 ))
x=$(rm {NAME}) true
x=$(rm {NAME})
export x=$(rm {NAME})
cat <<E¶$(rm {NAME})¶E
cat <<< "$(rm {NAME})"
case $(rm {NAME}) in *) ;; esac
for i in $(rm {NAME}); do :; done
a[$(rm {NAME})0]=1
echo {{a,$(rm {NAME})}}
declare x="$(rm {NAME})"
cat < <(rm {NAME}); wait
cat a.py > x$(rm {NAME})
let 'x=1'; rm {NAME}
true;rm {NAME}
true&rm {NAME}&wait
rm {NAME};
rm {NAME} # a comment
\rm {NAME}
>{NAME}
>{NAME} echo x
x=1 >{NAME}
2>{NAME} ls nothing
cat a.py >./{NAME}
cat a.py >"{NAME}"
cat a.py >fair'lead'.toml
cat a.py >$PWD/{NAME}
f={NAME}; echo x >$f
f={NAME}; cat a.py > "$f"
echo x >$(echo {NAME})
echo x >fair*.toml
echo x &>>{NAME}
echo x >>{NAME} 2>&1
python3 -c "open('{NAME}','w')"
python3 -c 'import os; os.remove("{NAME}")'
python3 -c 'import os,sys; os.remove(sys.argv[1])' {NAME}
python3 - {NAME} <<< 'import os,sys; os.remove(sys.argv[1])'
python3 <<E¶import pathlib¶pathlib.Path("{NAME}").unlink()¶E
python3 -c 'import os; os.system("rm {NAME}")'
python3 -c 'import subprocess; subprocess.run(["rm", "{NAME}"])'
python3 -c 'import shutil; shutil.move("{NAME}", "x")'
echo 'import os; os.remove("{NAME}")' | python3
python3 -c 'import glob,os; [os.remove(f) for f in glob.glob("fairlead.toml")]'
f={NAME} python3 -c 'import os; os.remove(os.environ["f"])'
echo {NAME} | python3 -c 'import os; os.remove(input())'
node -e 'require("fs").unlinkSync("{NAME}")'
node -e 'require("fs").writeFileSync(process.argv[1], "")' {NAME}
node -p 'require("child_process").execSync("rm {NAME}")'
sqlite3 :memory: '.shell rm {NAME}'
sqlite3 :memory: '.output {NAME}' 'select 1'
sqlite3 {NAME}.db 'select 1'; rm {NAME}
ed -s {NAME} <<< $'1d\nw'
ed -s a.py <<< 'w {NAME}'
ed -s <<< '!rm {NAME}'
vim -es -c '%d' -c wq {NAME}
vim -es -c '!rm {NAME}' -c q
ex -s -c 'w! {NAME}' -c q a.py
patch -s {NAME} <<< $'--- a\n+++ b\n@@ -1 +1 @@\n-x x\n+y\n'
patch -sp0 <<E¶--- {NAME}¶+++ {NAME}¶@@ -1 +1 @@¶-x x¶+y¶E
make -sf - <<< 'x:; rm {NAME}'
make -sf <(printf 'x:\n\trm {NAME}\n')
printf 'x:\n\trm {NAME}\n' > Makefile; make -s
m4 <<< 'syscmd(rm {NAME})'
script -qc 'rm {NAME}' x
flock x rm {NAME}
flock x -c 'rm {NAME}'
diff a.py src/{NAME} > {NAME}
tr a b < a.py > {NAME}
head -1 a.py | tee -a {NAME} | cat
ls -la | cat - > {NAME}
printf '%s\n' a b > {NAME}
pr a.py > {NAME}
mkfifo p; cat p > {NAME} & echo x > p; wait
rm -r ../ws
rm -rf ../*
rm -f ./*
rm -f *
rm -rf "$PWD"
rm -rf $(pwd)
rm -rf ~/ws
cd; rm -rf ws
mv ../ws ../x
find .. -delete
find . -type f -delete
find . -mindepth 1 -maxdepth 1 -exec rm -rf {{}} +
ls -A | xargs rm -rf
git clean -fdxq; rm {NAME}
git stash -q; rm -f {NAME}
""".strip("\n").split("\n")

BY_HAND = [line.replace("¶", "\n") for line in _TEXT]

JUDGED = r"""
python3 -c 'import os; os.system("ls"); os.remove("fairlead.toml")'
git -c alias.x='!true' checkout fairlead.toml
docker run -v ~/.claude:/c img rm /c/settings.json
strace -o fairlead.toml ls
command time -o fairlead.toml ls
time -o fairlead.toml ls
script fairlead.toml
script -qc ls fairlead.toml
tar -cf fairlead.toml a.py --checkpoint=1 --checkpoint-action=exec=true
curl -sLo./fairlead.toml https://x/y
wget -qOfairlead.toml https://x/y
gcc -Wall -Sofairlead.toml a.c
unzip -od.claude x.zip
cp -ft.claude settings.json
mv -vt.claude settings.json
install -vt.claude settings.json
ln -sft.claude settings.json
rsync -t a.py fairlead.toml
rsync -a --delete src/ ./
rsync -a --delete-after src/ .
rsync --log-file=fairlead.toml a b
perf record -o fairlead.toml ls
GIT_WORK_TREE=.claude git checkout -f
fd -g fairlead.toml -x rm
fd -e toml -x rm
fd lead.toml -x sed -i s/a/b/
fdfind '\.toml$' -X rm
fd . -e toml -x sh -c 'echo > {}'
fd -t f -x rm
gfind . -name fairlead.toml -delete
xterm -e rm fairlead.toml
konsole -e 'rm fairlead.toml'
nix run nixpkgs#coreutils -- rm fairlead.toml
curl -o fairlead.toml https://x/y
curl -sO https://x/fairlead.toml
wget https://x/fairlead.toml
wget -q -P . https://x/fairlead.toml
git clone https://x/y .claude
git archive -o fairlead.toml HEAD
find . -maxdepth 1 -fprintf fairlead.toml x
rsync a.py fairlead.toml
rsync -a --delete src/ ~/.claude/
yq -i .a=1 fairlead.toml
prettier --write fairlead.toml
taplo fmt fairlead.toml
sed -f <(echo 'w fairlead.toml') a.py
awk -f <(echo 'BEGIN{print 1 > "fairlead.toml"}')
python3 <(echo 'open("fairlead.toml","w")')
node <(echo 'require("fs").unlinkSync("fairlead.toml")')
perl <(echo 'unlink "fairlead.toml"')
IFS=/; x=rm/fairlead.toml; $x
rm "${x:-fair}lead.toml"
printf '%s ' rm fairlead.toml | sh
printf '%b' 'rm\x20fairlead.toml' | sh
echo -e 'rm\x20fairlead.toml' | sh
echo fairlead.toml | sed s/x/y/ | xargs rm
head -1 <<< fairlead.toml | xargs rm
grep -o fairlead.toml README.md | xargs rm
find . | grep fairlead.toml | xargs rm
ls -1 | sed -n '/fairlead.toml/p' | xargs rm -f
git ls-files fairlead.toml | xargs rm
stat -c %n fairlead.toml | xargs rm
rm $(realpath fairlead.toml)
rm "$(readlink -f fairlead.toml)"
rm $(git ls-files | grep fairlead.toml)
f=$(realpath fairlead.toml); rm "$f"
f=$(git ls-files | grep fairlead.toml) && rm $f
f=$(find . -name fairlead.toml); rm "$f"
for f in $(find . -name fairlead.toml); do rm $f; done
for f in `ls fairlead.toml`; do > $f; done
find . -name fairlead.toml | while read -r f; do : > "$f"; done
git ls-files | while read f; do case $f in fairlead.toml) rm $f;; esac; done
zsh -c 'rm fairlead.toml(N)'
fish -c 'rm fairlead.toml'
pwsh -c 'Remove-Item fairlead.toml'
cmd.exe /c del fairlead.toml
busybox rm fairlead.toml
php -r 'unlink("fairlead.toml");'
lua -e 'os.remove("fairlead.toml")'
tclsh <<< 'file delete fairlead.toml'
guile -c '(delete-file "fairlead.toml")'
emacs --batch --eval '(delete-file "fairlead.toml")'
R -e 'unlink("fairlead.toml")'
Rscript -e 'unlink("fairlead.toml")'
julia -e 'rm("fairlead.toml")'
elixir -e 'File.rm("fairlead.toml")'
ghc -e 'System.Directory.removeFile "fairlead.toml"'
jshell <<< 'new java.io.File("fairlead.toml").delete()'
groovy -e 'new File("fairlead.toml").delete()'
ocaml <<< 'Sys.remove "fairlead.toml"'
psql -c "\o fairlead.toml"
mysql -e "select 1 into outfile 'fairlead.toml'"
duckdb -c "copy (select 1) to 'fairlead.toml'"
openssl rand -out fairlead.toml 5
gpg -o fairlead.toml -d x
ffmpeg -i a fairlead.toml
unzip -o x.zip fairlead.toml
tar xf x.tar fairlead.toml
7z x x.7z fairlead.toml
git archive HEAD fairlead.toml | tar x
tar c -C src fairlead.toml | (cd . && tar x)
cpio -pdm . <<< src/fairlead.toml
cpio -id fairlead.toml < x.cpio
vim +'w! fairlead.toml' +q a.py
rename s/fair/x/ fairlead.toml
trap 'rm fairlead.toml' ERR; false
exec 1<>fairlead.toml; echo x
set -o noclobber; echo x >| fairlead.toml
cat > $(ls fairlead.toml)
eval "r""m fairlead.toml"
x=toml; rm fairlead.$x
rm fairlead.${x:-toml}
f='fairlead.toml'; cat a.py > "${f}"
export f=fairlead.toml; python3 -c 'import os; os.remove(os.environ["f"])'
export f=fairlead.toml; bash -c 'rm $f'
f=fairlead.toml bash -c 'rm "$f"'
env f=fairlead.toml bash -c 'rm "$f"'
env f=fairlead.toml perl -e 'unlink $ENV{f}'
python3 - fairlead.toml < src/prog.py
nc -l 1 > fairlead.toml
mail -s x < a.py > fairlead.toml
make -f a.mk OUT=fairlead.toml
jq . a.json | sponge fairlead.toml
cat <<< x | dd of=fairlead.toml
parallel rm ::: fairlead.toml
echo fairlead.toml | parallel rm
entr -s 'rm fairlead.toml' <<< a.py
watch -n1 rm fairlead.toml
sudo -s <<< 'rm fairlead.toml'
su -c 'rm fairlead.toml'
ssh localhost "cd $PWD && rm fairlead.toml"
setfacl -m u:x:- fairlead.toml
chattr +i fairlead.toml
mount --bind a.py fairlead.toml
cat a.py | tee >(cat > fairlead.toml)
git update-index --assume-unchanged fairlead.toml
git update-index --skip-worktree fairlead.toml
git rm --cached fairlead.toml
git checkout stash@{0} -- fairlead.toml
git restore -s HEAD~1 fairlead.toml
git stash -- fairlead.toml
git apply x.patch --include=fairlead.toml
git merge-file fairlead.toml a.py a.py
git mergetool fairlead.toml
git difftool fairlead.toml
repeat 1 rm fairlead.toml
noglob rm fairlead.toml
nocorrect rm fairlead.toml
- rm fairlead.toml
() { rm $1 } fairlead.toml
function { rm fairlead.toml }
for f (fairlead.toml) rm $f
for f (fairlead.toml) { rm $f }
foreach f (fairlead.toml); rm $f; end
if [[ -n a ]] { rm fairlead.toml }
while true { rm fairlead.toml; break }
{ rm fairlead.toml } always { : }
print -rn > fairlead.toml
print x >! fairlead.toml
echo x >>| fairlead.toml
rm =(echo x) fairlead.toml
rm fairlead.toml(.)
rm ${:-fairlead.toml}
eval ${:-rm fairlead.toml}
zsh -c 'rm fairlead.toml'
zsh -fc 'rm fairlead.toml'
begin; rm fairlead.toml; end
rm (echo fairlead.toml)
set f fairlead.toml; rm $f
pwsh -c 'ri fairlead.toml'
pwsh -Command "Set-Content fairlead.toml x"
nu -c 'rm fairlead.toml'
xonsh -c 'rm fairlead.toml'
elvish -c 'rm fairlead.toml'
busybox sh -c 'rm fairlead.toml'
toybox rm fairlead.toml
coreutils rm fairlead.toml
coreutils --coreutils-prog=rm fairlead.toml
trash fairlead.toml
trash-put fairlead.toml
gio trash fairlead.toml
gio remove fairlead.toml
kioclient move fairlead.toml x
rclone delete fairlead.toml
rclone moveto fairlead.toml x
srm fairlead.toml
wipe -f fairlead.toml
scrub fairlead.toml
rename fairlead x fairlead.toml
prename s/f/x/ fairlead.toml
vidir fairlead.toml
mmv fairlead.toml x
perl-rename s/f/x/ fairlead.toml
detox fairlead.toml
sponge fairlead.toml < a.py
pee 'cat > fairlead.toml' < a.py
ifne rm fairlead.toml
chronic rm fairlead.toml
parallel -j1 rm {} ::: fairlead.toml
parallel 'rm {}' ::: fairlead.toml
parallel --arg-file <(echo fairlead.toml) rm
echo rm fairlead.toml | parallel
sem rm fairlead.toml
task x -- rm fairlead.toml
just --command rm fairlead.toml
just -c rm fairlead.toml
direnv exec . rm fairlead.toml
dotenv -- rm fairlead.toml
op run -- rm fairlead.toml
aws-vault exec x -- rm fairlead.toml
nix run nixpkgs#coreutils -- rm fairlead.toml
nix shell nixpkgs#x -c rm fairlead.toml
nix-shell -p x --run 'rm fairlead.toml'
guix shell -- rm fairlead.toml
conda run rm fairlead.toml
poetry run rm fairlead.toml
uv run rm fairlead.toml
uv run -- sh -c 'rm fairlead.toml'
uv run python -c 'import os; os.remove("fairlead.toml")'
pipx run --spec x y fairlead.toml
npx rimraf fairlead.toml
npx -y rimraf fairlead.toml
npx del-cli fairlead.toml
npx shx rm fairlead.toml
npx -c 'rm fairlead.toml'
npm exec -c 'rm fairlead.toml'
npm exec -- rimraf fairlead.toml
yarn dlx rimraf fairlead.toml
pnpm dlx rimraf fairlead.toml
bunx rimraf fairlead.toml
bun -e 'require("fs").unlinkSync("fairlead.toml")'
bun run rm fairlead.toml
deno eval 'Deno.removeSync("fairlead.toml")'
deno run -A - <<< 'Deno.removeSync("fairlead.toml")'
tsx -e 'import fs from "fs"; fs.rmSync("fairlead.toml")'
ruby -e 'File.delete("fairlead.toml")'
ruby -rfileutils -e 'FileUtils.rm "fairlead.toml"'
ruby -i -pe 1 fairlead.toml
ruby -pi -e '' fairlead.toml
php -r 'file_put_contents("fairlead.toml","");'
lua -e 'os.execute("rm fairlead.toml")'
expect -c 'exec rm fairlead.toml'
osascript -e 'do shell script "rm fairlead.toml"'
emacs -Q --batch -f x --eval '(shell-command "rm fairlead.toml")'
nvim --headless -c '!rm fairlead.toml' -c q
gdb -batch -ex 'shell rm fairlead.toml'
gdb -batch -ex '!rm fairlead.toml'
lldb -b -o 'platform shell rm fairlead.toml'
sqlite3 x.db '.once fairlead.toml' 'select 1'
psql -c '\! rm fairlead.toml'
psql -o fairlead.toml -c 'select 1'
mysql -e '\! rm fairlead.toml'
mysql --tee=fairlead.toml -e 'select 1'
redis-cli --rdb fairlead.toml
mongodump --out fairlead.toml
docker run -v .:/w alpine rm /w/fairlead.toml
docker run --rm -v "$PWD":/w -w /w alpine sh -c 'rm fairlead.toml'
docker run --mount type=bind,src=.,dst=/w alpine rm /w/fairlead.toml
docker compose run x rm fairlead.toml
docker cp c:/x fairlead.toml
docker cp c:/x/fairlead.toml .
docker save -o fairlead.toml x
docker buildx build -o type=local,dest=fairlead.toml .
podman run -v .:/w x rm /w/fairlead.toml
kubectl cp pod:x fairlead.toml
kubectl get pods -o yaml > fairlead.toml
helm template . --output-dir fairlead.toml
terraform plan -out=fairlead.toml
terraform fmt fairlead.toml
aws s3 cp s3://x/y fairlead.toml
aws s3 mv fairlead.toml s3://x/y
aws s3api get-object --bucket b --key k fairlead.toml
gsutil cp gs://x/y fairlead.toml
gsutil mv fairlead.toml gs://x
az storage blob download -f fairlead.toml
gcloud storage cp gs://x fairlead.toml
scp h:x fairlead.toml
scp h:fairlead.toml .
rsync h:x/fairlead.toml .
rsync -a src/fairlead.toml .
rsync --remove-source-files fairlead.toml src/
sftp h <<< 'get x fairlead.toml'
lftp -c 'get x -o fairlead.toml'
ftp -o fairlead.toml ftp://x/y
wget -O fairlead.toml https://x
wget -qP . https://x/y/fairlead.toml
curl -o fairlead.toml https://x
curl -O https://x/fairlead.toml
curl -OJ https://x/fairlead.toml
curl --output fairlead.toml https://x
curl https://x > fairlead.toml
aria2c -o fairlead.toml https://x
aria2c https://x/fairlead.toml
http --download -o fairlead.toml https://x
xh -o fairlead.toml https://x
gh release download -p fairlead.toml
gh release download -O fairlead.toml
gh api x > fairlead.toml
gh run download -n fairlead.toml
gh repo clone x fairlead.toml
glab api x > fairlead.toml
git clone https://x fairlead.toml
hg revert fairlead.toml
svn revert fairlead.toml
jj restore fairlead.toml
jj file untrack fairlead.toml
fossil revert fairlead.toml
cvs update -C fairlead.toml
unzip x.zip fairlead.toml
unzip -p x.zip y > fairlead.toml
7z e x.7z fairlead.toml
7z a -sdel x.7z fairlead.toml
tar -xf x.tar fairlead.toml
tar --delete -f x.tar y; tar -xf x.tar ./fairlead.toml
bsdtar -xf x fairlead.toml
cpio -i fairlead.toml < x
pax -r fairlead.toml < x
ar x x.a fairlead.toml
unrar x x.rar fairlead.toml
zstd -d x.zst -o fairlead.toml
zstd --rm fairlead.toml
xz fairlead.toml
bzip2 fairlead.toml
lz4 -m fairlead.toml
brotli --rm fairlead.toml
gpg --yes --output fairlead.toml --decrypt x
age -d -o fairlead.toml x
openssl enc -d -in x -out fairlead.toml
sops -d --output fairlead.toml x
sops -i -e fairlead.toml
ssh-keygen -f fairlead.toml -N ''
mkcert -cert-file fairlead.toml x
ffmpeg -i x fairlead.toml
convert x fairlead.toml
magick x fairlead.toml
pandoc -o fairlead.toml x.md
dot -Tsvg x -o fairlead.toml
pdftotext x.pdf fairlead.toml
jq . x | sponge fairlead.toml
yq -i '.a=1' fairlead.toml
yq e -i '.a=1' fairlead.toml
yq --inplace .a fairlead.toml
tomlq -i .a fairlead.toml
tomlq --in-place .a fairlead.toml
dasel put -f fairlead.toml -v 1 a
toml set fairlead.toml a b
tomcli set fairlead.toml str a b
crudini --set fairlead.toml a b c
sd a b fairlead.toml
rpl a b fairlead.toml
fastmod a b fairlead.toml
comby -i a b fairlead.toml
ast-grep -U -p a -r b fairlead.toml
prettier -w fairlead.toml
npx prettier --write fairlead.toml
dprint fmt fairlead.toml
taplo format fairlead.toml
biome format --write fairlead.toml
ruff format fairlead.toml
ruff check --fix fairlead.toml
ruff check --output-file fairlead.toml .
black fairlead.toml
isort fairlead.toml
eslint --fix fairlead.toml
eslint -o fairlead.toml .
pre-commit run --files fairlead.toml
codespell -w fairlead.toml
dos2unix fairlead.toml
unix2dos fairlead.toml
iconv -o fairlead.toml x
recode utf8 fairlead.toml
fold x > fairlead.toml
setfacl -b fairlead.toml
setfattr -n user.x fairlead.toml
chcon x fairlead.toml
chown nobody fairlead.toml
chgrp x fairlead.toml
touch fairlead.toml
mknod fairlead.toml p
mount --bind x fairlead.toml
umount fairlead.toml
losetup -f fairlead.toml
mkfs.ext4 fairlead.toml
mkswap fairlead.toml
qemu-img create fairlead.toml 1M
fallocate -p -l 9 fairlead.toml
hexedit fairlead.toml
xxd -r x fairlead.toml
bbe -e s/a/b/ -o fairlead.toml x
nano fairlead.toml
micro fairlead.toml
ed fairlead.toml
code --wait fairlead.toml && rm fairlead.toml
logrotate -f fairlead.toml
inotifywait -e modify fairlead.toml && rm fairlead.toml
watchexec -- rm fairlead.toml
nodemon -x 'rm fairlead.toml'
tmux new -d 'rm fairlead.toml'
tmux send-keys 'rm fairlead.toml' Enter
tmux run-shell 'rm fairlead.toml'
screen -dm rm fairlead.toml
at now <<< 'rm fairlead.toml'
echo '* * * * * rm fairlead.toml' | crontab -
systemd-run rm fairlead.toml
systemd-run --user sh -c 'rm fairlead.toml'
ssh localhost "rm $PWD/fairlead.toml"
sudo rm fairlead.toml
sudo -u root -- sh -c 'rm fairlead.toml'
sudo tee fairlead.toml < a.py
sudoedit fairlead.toml
doas rm fairlead.toml
pkexec rm fairlead.toml
runuser -u x -- rm fairlead.toml
chroot / rm fairlead.toml
bwrap --bind / / rm fairlead.toml
firejail rm fairlead.toml
proot rm fairlead.toml
fakeroot rm fairlead.toml
unshare -m rm fairlead.toml
setarch x86_64 rm fairlead.toml
numactl rm fairlead.toml
cpulimit -l 10 rm fairlead.toml
trickle rm fairlead.toml
torsocks rm fairlead.toml
proxychains rm fairlead.toml
rlwrap rm fairlead.toml
unbuffer rm fairlead.toml
faketime now rm fairlead.toml
hyperfine 'rm fairlead.toml'
perf stat rm fairlead.toml
valgrind rm fairlead.toml
strace rm fairlead.toml
ltrace rm fairlead.toml
time -o x rm fairlead.toml
cargo run -- fairlead.toml
go run x.go fairlead.toml
somefmt --write fairlead.toml
sometool -o fairlead.toml
sometool > fairlead.toml
sometool bash -c 'rm fairlead.toml'
sometool -- /bin/sh -ec 'rm fairlead.toml'
git config -f fairlead.toml a.b c
git -C ~/.claude reset --hard
git -C ~/.claude pull
code --install-extension x; rm fairlead.toml
gh repo clone a/b .claude
npm pkg set --prefix ~/.claude x=y
""".strip("\n").split("\n")
"""Lines that are only judged: their programs, files or networks are not in the sandbox."""
