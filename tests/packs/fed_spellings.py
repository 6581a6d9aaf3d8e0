"""Lines that change the protected file by way of a text that a shell is fed, and those of arrays, patches and patterns.

`fed` makes lines: a writer is printed, goes through filters, and a shell runs what comes out. Only running the filters
would tell what that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from spellings import NAME

FILTERS = [
    "cat", "sort", "uniq", "head -1", "cut -c1-", "awk 1", "sed p", "fold -w999", "tee x", "grep .", "dd 2> x",
    "tr -d '\\r'", "base64 | base64 -d", "gzip | gzip -d", "rev | rev", "cat | sort | cat", "sed 's/^x//'",
    "awk '{print $0}'", "perl -pe 1", "grep fair",
]  # fmt: skip
"""Programs that put out what they read."""
FED = [
    "{} | sh", "{} | bash -s", "{} | (bash)", "{} | {{ bash; }}", "{} | env bash", "{} | command bash", "{} > s; sh s",
    "{} > s; . ./s", "{} > s; bash < s", "{} > s; cat s | sh", "{} > s; sort s > t; sh t", "bash <({})", "source <({})",
    'eval "$({})"', 'bash -c "$({})"', 'x=$({}); eval "$x"', "bash <<< \"$({})\"", "{} | xargs -d '\\n' -n1 sh -c",
    "{} | while read -r l; do eval \"$l\"; done", "{} | xargs -I{{}} sh -c {{}}", "if true; then {} | sh; fi",
    "f() {{ {}; }}; f | sh", "exec 3< <({}); . /dev/fd/3",
]  # fmt: skip
"""Shells that run it."""


def fed() -> Iterator[str]:
    for writer in (f"rm -f {NAME}", f"echo x > {NAME}"):
        for text in FILTERS:
            for shell in FED:
                yield shell.format(f"echo {quote(writer)} | {text}")


_TEXT = r"""
declare -A m=([k]=fairlead.toml); rm "${m[k]}"
declare -a m; m[5]=fairlead.toml; rm "${m[5]}"
x=FAIRLEAD.toml; rm "${x@L}"
: > $_fairlead.toml; : fairlead.toml; : > $_
echo fairlead.toml; rm $_
shopt -s extglob¶rm !(a.py|src)
shopt -s nocaseglob; rm FAIR*.toml
ls | while IFS= read -r f; do [ -f "$f" ] && rm "$f"; done
ls | xargs truncate -s 0
find . -maxdepth 1 -type f | xargs sed -i d
find . -maxdepth 1 -not -name 'a*' -type f -delete
find . -maxdepth 1 -type f ! -name '*.py' -exec mv -t src {} +
find . -regex '.*fair.*' -delete
git checkout HEAD~0 -- ':(glob)*.toml'
git diff HEAD -R -- fairlead.toml | git apply
git diff fairlead.toml | patch -R -p1
git rm -rfq .
git stash -- ':(top)fairlead.toml'
awk 'BEGIN{f="fairlead" ".toml"; print > f}'
awk 'BEGIN{printf "" > ENVIRON["F"]}' ; F=fairlead.toml awk 'BEGIN{print > ENVIRON["F"]}'
awk -f /dev/stdin <<< 'BEGIN{print > "fairlead.toml"}'
echo fairlead.toml | awk '{print "rm", $0}' | sh
sed -f - a.py <<< 'w fairlead.toml'
perl -e 'unlink glob "*.toml"'
perl -e 'unlink <fair*>'
perl -e 'unlink "fairlead" . "." . "toml"'
python3 -c "import glob,os; [os.remove(f) for f in glob.glob('*.toml')]"
python3 /dev/fd/3 3<<< "import os; os.remove('fairlead.toml')"
printf 'F=fairlead.toml\nx:\n\trm ${F}\n' | make -sf -
bash /dev/fd/3 3<<< 'rm fairlead.toml'
. /dev/fd/3 3<<< 'rm fairlead.toml'
exec 4<<< 'rm fairlead.toml'; . /dev/fd/4
exec 4<<< 'rm fairlead.toml'; read -u 4 x; $x
exec 4<<< 'fairlead.toml'; read -ru4 x; rm "$x"
ln -s $(command -v rm) ./cat; ./cat fairlead.toml
PATH=.:$PATH; ln -s "$(type -P rm)" cat; cat fairlead.toml
PS4='$(rm fairlead.toml)'; set -x; :
tr a-z b-za <<< 'ql ezhqkdzc.snlk' | sh
echo 'RM FAIRLEAD.TOML' | tr A-Z a-z | sh
echo 'rm fairlead.toml' | head -1 | sh
echo 'rm fairlead.toml' | sort | sh
echo 'rm fairlead.toml' | uniq | sh
echo 'rm fairlead.toml' | sed p | sh
echo 'rm fairlead.toml' | grep rm | sh
echo 'rm fairlead.toml' | cut -c1- | sh
echo 'rm fairlead.toml' | awk 1 | sh
echo 'rm fairlead.toml' | gzip | gzip -d | sh
echo 'rm fairlead.toml' | base64 | base64 -d | sh
echo 'rm fairlead.toml' | dd 2>x | sh
echo 'rm fairlead.toml' | iconv | sh
echo 'rm fairlead.toml' | fold -w99 | sh
echo 'rm fairlead.toml' | nl -bn -w1 -s '' | sh
echo 'rm fairlead.toml' | paste -s | sh
printf 'rm\nfairlead.toml\n' | paste -sd' ' | sh
paste -d' ' <(echo rm) <(echo fairlead.toml) | sh
yes 'rm fairlead.toml' | head -1 | sh
expr rm : x; expr 'rm fairlead.toml' : '\(.*\)' | sh
date '+rm fairlead.toml' | sh
echo 'rm XX' | sed s/XX/fairlead.toml/ | sh
ls fairlead.toml | sed 's+^+rm +' | sh
find fair* -printf 'rm %p\n' | sh
find . -name fairlead.toml -printf 'rm %p\n' | sh
find . -name a.py -printf 'rm fairlead.toml\n' | sh
stat -c 'rm %n' fairlead.toml | sh
a=${a:+x}fairlead.toml; rm $a
declare -l a=FAIRLEAD.TOML; rm "$a"
echo ${a[$(rm fairlead.toml; echo 0)]}
""".strip("\n").split("\n")

INDIRECT = [line.replace("¶", "\n") for line in _TEXT]
"""Each of these passed before the guard looked at what feeds a shell, at pathspecs, and at what arrays hold."""
