"""Lines that change the protected file by what a shell evaluates a second time, opens again, or loads by itself.

Each passed the guard once, and each has been run: see `test_guard_spellings`. The classes, in this order: shortened
options, what awk writes, settings and aliases in the environment of git, files that are opened again by their
descriptor, keys of arrays, completion and callbacks, subscripts and prompts that are evaluated, lists of files,
`env -S`, programs that run any shell, and files that programs load without being told. Then the same again, from other
programs.
"""

from __future__ import annotations

_TEXT = r"""
sort --outp=fairlead.toml a.py
sort --ou fairlead.toml a.py
sed --in 1d fairlead.toml
sed --i 1d fairlead.toml
sed --in-p=.b 1d fairlead.toml
awk '{print>"" FILENAME; exit}' fairlead.toml
awk '{printf "\"" > FILENAME; exit}' fairlead.toml
awk '{print /}/ > FILENAME; exit}' fairlead.toml
awk '{print \¶ > FILENAME; exit}' fairlead.toml
awk '{("rm " FILENAME) | getline; exit}' fairlead.toml
awk '{c="sh"; print "rm " FILENAME | c; exit}' fairlead.toml
V='!rm fairlead.toml' git --config-env=alias.x=V x
GIT_CONFIG_PARAMETERS="'alias.x=!rm fairlead.toml'" git x
printf '[alias]\nx = !rm fairlead.toml\n' >> .git/config; git x
exec 3<fairlead.toml; echo x > /dev/fd/3
{ echo x >/dev/stdin; } <fairlead.toml
truncate -s0 /dev/stdin < fairlead.toml
cp a.py /dev/stdin < fairlead.toml
tee /dev/stdin < fairlead.toml
exec < fairlead.toml; echo x > /dev/stdin
cat a.py 3<fairlead.toml > /dev/fd/3
rm $(compgen -f fairlead.t)
declare -A m; m[fairlead.toml]=1; rm "${!m[@]}"
declare -A m=([fairlead.toml]=1); for k in "${!m[@]}"; do rm "$k"; done
compgen -W '$(rm fairlead.toml)' x
compgen -C 'rm fairlead.toml;' x
mapfile -C 'rm fairlead.toml #' -c 1 x < a.py
readarray -c1 -C 'rm fairlead.toml;:' x < a.py
printf -v 'a[$(rm fairlead.toml)]' x
test -v 'a[$(rm fairlead.toml)]'
a=1; unset 'a[$(rm fairlead.toml)]'
read 'a[$(rm fairlead.toml)]' <<< 1
declare 'a[$(rm fairlead.toml)]=1'
let 'a[$(rm fairlead.toml)]=1'
x='a[$(rm fairlead.toml)]'; echo $((x))
x='a[$(rm fairlead.toml)]'; [[ x -eq 1 ]]
x='a[$(rm fairlead.toml)]'; let x
x='a[$(rm fairlead.toml)]'; declare -i y=x
x='a[$(rm fairlead.toml)]'; v=abc; echo ${v:x}
x='a[$(rm fairlead.toml)]'; ((x++))
x='$(rm fairlead.toml)'; echo "${x@P}"
x='a[$(rm fairlead.toml)]'; a=1; echo ${!x}
find . -iname FAIRLEAD.TOML -exec unlink {} \;
git rm -qf --pathspec-from-file=- <<< fairlead.toml
git restore --pathspec-from-file=- <<< fairlead.toml
echo fairlead.toml > x; git stash push --pathspec-from-file=x
env -S'rm\_fairlead.toml'
env --spl='rm fairlead.toml'
choom -n 0 -- sh -c 'rm fairlead.toml'
source /dev/stdin fairlead.toml <<< 'rm $1'
echo rm fairlead.toml > .bashrc; HOME=$PWD bash -i <<< :
echo rm fairlead.toml > .profile; HOME=. bash -l -c :
printf 'import os\nos.remove("fairlead.toml")' > sitecustomize.py; PYTHONPATH=. python3 -c 1
printf 'import os\nos.remove("fairlead.toml")' > x.py; python3 -m x
printf 'import os\nos.remove("fairlead.toml")' > x.py; python3 -c 'import x'
printf 'import os\nos.remove("fairlead.toml")' > x.py; PYTHONSTARTUP=x.py python3 -i <<< 1
printf 'unlink "fairlead.toml"; 1' > x.pm; perl -I. -Mx -e 1
printf 'require("fs").unlinkSync("fairlead.toml")' > x.js; NODE_OPTIONS='-r ./x.js' node -e 1
!(rm fairlead.toml)
declare -n r='a[$(rm fairlead.toml)]'; echo $r
x='a[$(rm fairlead.toml)]'; echo ${a[x]}
x='a[$(rm fairlead.toml)]'; a[x]=1
x='a[$(rm fairlead.toml)]'; y=x; echo $((y+1))
f() { echo $(($1)); }; f 'a[$(rm fairlead.toml)]'
set -- 'a[$(rm fairlead.toml)]'; echo $(($1))
for x in 'a[$(rm fairlead.toml)]'; do ((x)); done
read -r x <<< 'a[$(rm fairlead.toml)]'; echo $((x))
RANDOM='a[$(rm fairlead.toml)]'
declare -i y; y='a[$(rm fairlead.toml)]'
f() { local -i y='a[$(rm fairlead.toml)]'; }; f
typeset -i y='a[`rm fairlead.toml`]'
[ -v 'a[$(rm fairlead.toml)]' ]
[[ 'a[$(rm fairlead.toml)]' -gt 0 ]]
[[ -v 'a[$(rm fairlead.toml)]' ]]
x='`rm fairlead.toml`'; : "${x@P}"
x='\$(rm fairlead.toml)'; x=${x#\\}; : ${x@P}
x=('$(rm fairlead.toml)'); : "${x[@]@P}"
env 'BASH_FUNC_ls%%=() { rm fairlead.toml; }' bash -c ls
BASH_FUNC_x=1; env "BASH_FUNC_true%%=() { rm fairlead.toml;}" bash -c true
HISTFILE=fairlead.toml bash -i <<< 'echo x; history -a'
HISTFILE=fairlead.toml; set -o history; history -s x; history -w
BASH_ALIASES[x]='rm fairlead.toml'; shopt -s expand_aliases¶x
f() { rm "${@: -1}"; }; f a b fairlead.toml
x=$(sed 's/_/./' <<< fairlead_toml); rm $x
x=$(git ls-files | grep fairl); rm $x
ls | grep '^fair' | while read x; do rm "$x"; done
echo 'rm fairlead.toml' | sed e
exec > >(sh); echo 'rm fairlead.toml'; exec >x; sleep 0.3
coproc sh; echo 'rm fairlead.toml' >&${COPROC[1]}; sleep 0.3
exec 7> >(sh); echo 'rm fairlead.toml' >&7; exec 7>&-; sleep 0.3
git checkout HEAD -- ':(icase)FAIRLEAD.TOML'
git diff -R fairlead.toml > x; git apply x
GIT_TRACE=$PWD/fairlead.toml git status
GIT_TRACE2=$PWD/fairlead.toml git status
GIT_TRACE_PERFORMANCE=$PWD/fairlead.toml git log
GIT_TRACE2_EVENT=$PWD/fairlead.toml git status
PYTHONSTARTUP=<(echo 'import os; os.remove("fairlead.toml")') python3 -i <<< ''
PERL5DB='BEGIN{unlink "fairlead.toml"}' perl -d -e 1
PERL5OPT='-d' PERL5DB='BEGIN{unlink "fairlead.toml"}' perl -e 1
TAR_OPTIONS='--checkpoint=1 --checkpoint-action=exec=rm\ fairlead.toml' tar cf x a.py
TAR_OPTIONS=--remove-files tar cf x fairlead.toml
cd src; zip -q ../x fairlead.toml; cd ..; unzip -qo x
install -C a.py fairlead.toml
curl -sK- file:///scratch/home/ws/a.py <<< 'output=fairlead.toml'
make -s --eval='$(shell rm fairlead.toml)' 2>x
rm ${X}fairlead.toml
rm fairlead.toml$X
rm "fairlead.toml"$X
rm fairlead${X}.toml
echo x > fairlead.toml$X
read <<< 'rm fairlead.toml'; $REPLY
rm "$(python3 -c 'print("fairlead"+".toml")')"
curl -sSLofairlead.toml file:///scratch/home/ws/a.py
tar -czffairlead.toml a.py
find . -name 'fair*' -exec sh -c 'echo hi > "$1"' _ {} \;
find . -name 'fair*' -exec sh -c 'sed -i s/x/y/ "$1"' _ {} \;
find . -name 'fair*' -exec sh -c 'echo hi > {}' \;
cat <(echo rm fairlead.toml) | sh
echo rm fairlead.toml | head -1 | sh
printf '%s\n' ls 'rm fairlead.toml' | grep rm | sort -u | bash
sed s/X/rm/ <<< 'X fairlead.toml' | sh
echo fairlead.toml | sed 's/^/rm /' | sh
echo fairlead.toml | tail -n 1 | xargs rm
x=$(echo rm fairlead.toml | head -1); $x
eval $(echo rm fairlead.toml | sort)
rm $(echo xfairlead.toml | grep -o 'fair.*')
ls -a | grep fairl | sort | head -3 | xargs rm
mv -vt src fairlead.toml
cp -ft . src/fairlead.toml
""".strip("\n").split("\n")

LATE = [line.replace("¶", "\n") for line in _TEXT]
