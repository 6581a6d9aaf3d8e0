"""The options of a command in one form: `-rf`, `-r -f` and `--recursive --force` are the same.

Tables say which short options of a program have a long form, and which take a value. Of a program that is not in
them, each letter after one dash is an option, and no option takes the word after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

Table = tuple[dict[str, str], frozenset[str], frozenset[str]]
"""The long form of each short option, the options that take a value, and all that are known."""


class Options(NamedTuple):
    """The options and operands of one command."""

    options: dict[str, str | None]
    operands: list[str]
    table: Table

    def spellings(self) -> Iterator[tuple[str, str | None]]:
        """Every option with its value, under each of its names."""
        for name, value in self.options.items():
            yield name, value
            for short, long in self.table[0].items():
                if long == name:
                    yield short, value

    def has(self, names: Iterable[str]) -> bool:
        """Is any of these there, in whatever spelling? An option may be shortened: `--forc`."""
        long = self.table[0]
        for name in names:
            name = name if name.startswith("-") else f"--{name}"
            name = long.get(name, name)
            if name in self.options:
                return True
        return False


_SPECS = """
rm | r:recursive R:recursive f:force i:interactive v:verbose d:dir
cp | r:recursive R:recursive a:archive f:force i:interactive n:no-clobber v:verbose t:target-directory= S:suffix=
  p:preserve l:link s:symbolic-link u:update T:no-target-directory
mv | f:force i:interactive n:no-clobber v:verbose t:target-directory= S:suffix= u:update T:no-target-directory
ln | s:symbolic f:force n:no-dereference t:target-directory= S:suffix= v:verbose r:relative
mkdir | p:parents m:mode= v:verbose
chmod | R:recursive v:verbose f:silent c:changes --reference=
chown | R:recursive v:verbose f:silent h:no-dereference --reference= --from=
chgrp | R:recursive
ls | a:all l: r:reverse R:recursive h:human-readable t: S: d:directory I:ignore= w:width=
grep | r:recursive R:dereference-recursive i:ignore-case n:line-number v:invert-match l:files-with-matches e:regexp=
  f:file= A:after-context= B:before-context= C:context= m:max-count= E:extended-regexp F:fixed-strings P:perl-regexp
  w:word-regexp o:only-matching q:quiet c:count H:with-filename --include= --exclude= --exclude-dir= --color
sed | i:in-place n:quiet e:expression= f:file= E:regexp-extended r:regexp-extended s:separate
awk | F:field-separator= v:assign= f:file=
gawk | F:field-separator= v:assign= f:file= i:include=
tee | a:append i:ignore-interrupts
truncate | s:size= r:reference= c:no-create
shred | u:remove f:force n:iterations= z:zero s:size=
tar | x:extract c:create f:file= C:directory= z:gzip v:verbose t:list r:append u:update --delete j:bzip2 J:xz
unzip | d: o: q:
zip | r:recurse-paths m:move d:delete
curl | d:data= F:form= T:upload-file= o:output= O:remote-name X:request= H:header= u:user= A:user-agent= e:referer=
  b:cookie= c:cookie-jar= k:insecure L:location s:silent S:show-error f:fail K:config= x:proxy= m:max-time=
  w:write-out= G:get I:head E:cert= --data-binary= --data-raw= --data-urlencode= --json= --url= --connect-timeout=
  --retry= --resolve=
wget | O:output-document= P:directory-prefix= q:quiet o:output-file= i:input-file= U:user-agent= e:execute=
  c:continue --post-data= --post-file= --body-file= --header= --method=
git | C:= c:= --git-dir= --work-tree= --namespace= --exec-path p:paginate
git push | f:force d:delete n:dry-run u:set-upstream o:push-option= q:quiet v:verbose --receive-pack= --repo=
  --force-with-lease --force-if-includes --mirror --all --tags --prune --no-verify
git commit | m:message= F:file= C:reuse-message= c:reedit-message= a:all n:no-verify t:template= s:signoff
  S:gpg-sign p:patch v:verbose q:quiet --author= --date= --fixup= --squash= --amend
git checkout | f:force b:= B:= q:quiet t:track d:detach p:patch m:merge --orphan= --conflict= --pathspec-from-file=
git switch | f:force c:create= C:force-create= d:detach q:quiet t:track --discard-changes --orphan=
git branch | d:delete D:delete-force f:force m:move M:move-force c:copy a:all r:remotes v:verbose u:set-upstream-to=
  --contains --merged --sort= --format=
git reset | q:quiet p:patch N:intent-to-add --hard --soft --mixed --merge --keep
git clean | f:force d: x: X: n:dry-run e:exclude= q:quiet i:interactive
git restore | S:staged W:worktree s:source= p:patch q:quiet --ours --theirs
git stash | u:include-untracked a:all p:patch k:keep-index m:message= q:quiet S:staged
git rebase | i:interactive x:exec= X:strategy-option= s:strategy= --onto= --abort --continue
git log | n:max-count= p:patch S:= G:= L:= --grep= --author= --format= --pretty= --since= --until= --after=
  --before= --oneline --all --graph
git config | f:file= --global --local --system --unset --get --add --unset-all --edit e:edit
git add | f:force A:all u:update p:patch n:dry-run i:interactive
git rm | f:force r: n:dry-run q:quiet --cached
git worktree | f:force b:= B:= --detach --lock
git clone | b:branch= o:origin= u:upload-pack= c:config= --depth= --reference= --template= --recursive q:quiet
git tag | d:delete f:force m:message= F:file= a:annotate s:sign l:list n:
docker | H:host= D:debug c:context= l:log-level= --config=
docker run | e:env= v:volume= p:publish= u:user= w:workdir= d:detach i:interactive t:tty m:memory= h:hostname=
  l:label= --name= --network= --entrypoint= --mount= --platform= --env-file= --rm --privileged --cap-add= --gpus=
docker exec | e:env= u:user= w:workdir= d:detach i:interactive t:tty --privileged
docker rm | f:force v:volumes l:link
kubectl | n:namespace= f:filename= l:selector= o:output= c:container= A:all-namespaces R:recursive --context=
  --kubeconfig= --dry-run --force --grace-period= --replicas=
npm | g:global D:save-dev --prefix= --registry=
pip | r:requirement= e:editable= i:index-url= c:constraint= t:target= U:upgrade q:quiet --extra-index-url=
  --find-links=
pip3 | r:requirement= e:editable= i:index-url= c:constraint= t:target= U:upgrade q:quiet --extra-index-url=
ssh | i:= p:= l:= o:= F:= J:= L:= R:= D:= W:= t: T: N: f: v: q: A: X: 4: 6:
scp | i:= P:= o:= F:= J:= r: p: q: C: v:
rsync | a:archive r:recursive e:rsh= n:dry-run z:compress v:verbose u:update --delete --exclude= --include=
  --files-from= --rsync-path=
xargs | I:= n:max-args= P:max-procs= L:max-lines= d:delimiter= 0:null a:arg-file= E:= s:max-chars= r:no-run-if-empty
  t:verbose
kill | s:signal= n:= l:list
pkill | f:full x:exact u:euid= U:uid= t:terminal= g:pgroup= P:parent= --signal= n:newest o:oldest
killall | s:signal= u:user= e:exact I:ignore-case r:regexp w:wait
psql | c:command= d:dbname= U:username= h:host= p:port= f:file= v:set= w:no-password
mysql | e:execute= D:database= u:user= h:host= P:port= p:password
systemctl | t:type= p:property= H:host= M:machine= n:lines= o:output= f:force --user --now
mapfile | d:= n:= O:= s:= u:= C:= c:= t:
readarray | d:= n:= O:= s:= u:= C:= c:= t:
base64 | d:decode D:decode w:wrap= i:ignore-garbage
install | m:mode= o:owner= g:group= t:target-directory= d:directory D: v:verbose
head | n:lines= c:bytes=
tail | n:lines= c:bytes= f:follow
sort | k:key= t:field-separator= o:output= r:reverse n:numeric-sort u:unique
cut | d:delimiter= f:fields= c:characters= b:bytes=
make | C:directory= f:file= j:jobs n:just-print B:always-make k:keep-going
touch | d:date= r:reference= t:= a: m: c:no-create
patch | p:strip= i:input= d:directory= R:reverse o:output= N:forward
python | c:= m:= W:= X:=
python3 | c:= m:= W:= X:=
"""
"""A line per program, or per its first operand where that matters: letter:long-name, with = if it takes a value."""


@cache
def _specs() -> dict[str, str]:
    """The lines above by their names. A line that begins with blanks goes on with the one before."""
    entries = (line.partition(" | ") for line in _SPECS.replace("\n  ", " ").strip().splitlines())
    return {name: spec for name, _, spec in entries}


@cache
def _with_subcommands() -> frozenset[str]:
    return frozenset(name.split()[0] for name in _specs() if " " in name)


@cache
def _table(name: str) -> Table:
    long: dict[str, str] = {}
    valued: set[str] = set()
    known: set[str] = set()
    for word in _specs().get(name, "").split():
        takes = word.endswith("=")
        word = word.rstrip("=")
        if word.startswith("--"):
            option = word
        else:
            letter, _, full = word.partition(":")
            option = f"--{full}" if full else f"-{letter}"
            long[f"-{letter}"] = option
        known.add(option)
        if takes:
            valued.add(option)
    return long, frozenset(valued), frozenset(known)


def has_table(program: str) -> bool:
    """Are the options of this program known?"""
    return program in _specs()


def read_options(program: str, args: list[str]) -> Options:
    """The options and operands of a command."""
    table = _table(program)
    options: dict[str, str | None] = {}
    operands: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            operands += words
        elif word[:2] == "--":
            name, sign, value = word.partition("=")
            name = _in_full(name, table)
            options[name] = value if sign else next(words, None) if name in table[1] else None
        elif word[:1] == "-" and len(word) > 1:
            _read_short(word, words, table, options)
        else:
            operands.append(word)
            if len(operands) == 1 and program in _with_subcommands():
                table = _merged(program, word)
    return Options(options, operands, table)


def _in_full(name: str, table: Table) -> str:
    """A long option that is shortened as far as only one could be meant: `--recurs`."""
    if len(name) < 4 or name in table[2]:
        return name
    meant = [known for known in table[2] if known.startswith(name)]
    return meant[0] if len(meant) == 1 else name


@cache
def _merged_table(program: str, subcommand: str) -> Table:
    of_program, own = _table(program), _table(f"{program} {subcommand}")
    return {**of_program[0], **own[0]}, of_program[1] | own[1], of_program[2] | own[2]


def _merged(program: str, subcommand: str) -> Table:
    return _merged_table(program, str(subcommand)) if f"{program} {subcommand}" in _specs() else _table(program)


def _read_short(word: str, words: Iterable[str], table: Table, options: dict[str, str | None]) -> None:
    """`-rf`, `-ofile`, `-o file`. A word of which no letter is known, such as `-name`, is also one option by itself."""
    long, valued, _ = table
    if word in long and len(word) > 2:
        options[long[word]] = None
        return
    for at, letter in enumerate(word[1:], 1):
        name = long.get(f"-{letter}", f"-{letter}")
        if name in valued:
            options[name] = word[at + 1 :] or next(iter(words), None)
            break
        options[name] = None
    if len(word) > 2:
        options.setdefault(str(word), None)
