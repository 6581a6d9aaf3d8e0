"""The options of a command in one form: `-rf`, `-r -f` and `--recursive --force` are the same.

Tables say which short options of a program have a long form, and which take a value. Of a program that is not in
them, each letter after one dash is an option, and no option takes the word after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

OptionTable = tuple[dict[str, str], frozenset[str], frozenset[str], frozenset[str]]
"""The long form of each short option, the options that take a value, all that are known, and those whose value can
only stand in the same word."""


class Argument(NamedTuple):
    """An option or an operand among the words of a command."""

    option: str
    """The option in its long form if that is known. Empty for an operand."""
    value: str | None
    """The value of the option, or the operand."""
    at: int
    """Which word has the value. For an option without a value, the word of the option."""
    start: int = 0
    """Where in that word the value begins."""


class Options(NamedTuple):
    """The options and operands of one command."""

    options: dict[str, str | None]
    operands: list[str]
    table: OptionTable

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
unzip | d= P= o: q:
zip | P:password= r:recurse-paths m:move d:delete e:encrypt x:exclude=
curl | d:data= F:form= T:upload-file= o:output= O:remote-name X:request= H:header= u:user= A:user-agent= e:referer=
  b:cookie= c:cookie-jar= k:insecure L:location s:silent S:show-error f:fail K:config= x:proxy= m:max-time=
  w:write-out= G:get I:head E:cert= U:proxy-user= --data-binary= --data-raw= --data-urlencode= --json= --url=
  --connect-timeout= --retry= --resolve= --oauth2-bearer= --proxy-header= --pass= --proxy-pass= --tlspassword=
wget | O:output-document= P:directory-prefix= q:quiet o:output-file= i:input-file= U:user-agent= e:execute=
  c:continue --post-data= --post-file= --body-file= --header= --method= --user= --password= --http-user=
  --http-password= --ftp-user= --ftp-password= --proxy-user= --proxy-password=
http | a:auth= A:auth-type= b:body h:headers p:print= o:output= --session= --proxy= --timeout= --cert= --cert-key=
git | C:= c:= --git-dir= --work-tree= --namespace= --exec-path p:paginate
git push | f:force d:delete n:dry-run u:set-upstream o:push-option= q:quiet v:verbose --receive-pack= --repo=
  --force-with-lease --force-if-includes --mirror --all --tags --prune --no-verify
git commit | m:message= F:file= C:reuse-message= c:reedit-message= a:all n:no-verify t:template= s:signoff
  S:gpg-sign p:patch v:verbose q:quiet --author= --date= --fixup= --squash= --amend
git checkout | f:force b:= B:= q:quiet t:track d:detach p:patch m:merge U:unified=
  --inter-hunk-context= --orphan= --conflict= --pathspec-from-file=
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
git stage | f:force A:all u:update p:patch n:dry-run i:interactive
git rm | f:force r: n:dry-run q:quiet --cached
git worktree | f:force b:= B:= --detach --lock
git clone | b:branch= o:origin= u:upload-pack= c:config= --depth= --reference= --template= --recursive q:quiet
git tag | d:delete f:force m:message= F:file= a:annotate s:sign l:list n:
docker | H:host= D:debug c:context= l:log-level= --config=
docker run | e:env= v:volume= p:publish= u:user= w:workdir= d:detach i:interactive t:tty m:memory= h:hostname=
  l:label= --name= --network= --entrypoint= --mount= --platform= --env-file= --rm --privileged --cap-add= --gpus=
docker exec | e:env= u:user= w:workdir= d:detach i:interactive t:tty --privileged
docker rm | f:force v:volumes l:link
docker build | t:tag= f:file= --build-arg= --target= --secret= --label= --platform= --network= --cache-from= q:quiet
docker login | u:username= p:password= --password-stdin
podman run | e:env= v:volume= p:publish= u:user= w:workdir= d:detach i:interactive t:tty m:memory= h:hostname=
  l:label= --name= --network= --entrypoint= --mount= --env-file= --rm --privileged
podman login | u:username= p:password= --password-stdin --authfile=
nerdctl login | u:username= p:password= --password-stdin
buildah login | u:username= p:password= --password-stdin --authfile=
skopeo login | u:username= p:password= --password-stdin --authfile=
oras login | u:username= p:password= --password-stdin
crane auth | u:username= p:password= --password-stdin
az login | u:username= p:password= t:tenant= --service-principal --federated-token=
cf login | a= u= p= o= s= --sso-passcode=
helm registry | u:username= p:password= --password-stdin
twine upload | u:username= p:password= r:repository= i:identity= c:comment= --repository-url= --config-file=
gh auth | h:hostname= p:git-protocol= s:scopes= w:web --with-token
gh secret | b:body= e:env= o:org= f:env-file= R:repo= r:repos= a:app= v:visibility=
glab auth | h:hostname= t:token= --stdin
aws | --profile= --region= --output= --endpoint-url= --query=
vault | --address= -address= --namespace= -namespace= --format= -format=
terraform | -chdir=
terraform plan | -var= -var-file= -out= -target=
terraform apply | -var= -var-file= -out= -target= -auto-approve
tofu plan | -var= -var-file= -out= -target=
tofu apply | -var= -var-file= -out= -target= -auto-approve
openssl enc | -k= -K= -iv= -S= -pass= -in= -out= -kfile= -e -d -a -salt -pbkdf2 -iter= -md=
openssl | -passin= -passout= -pass= -in= -out= -inkey= -keyout= -days= -subj= -CA= -CAkey= -config= -password=
kubectl | n:namespace= f:filename= l:selector= o:output= c:container= A:all-namespaces R:recursive --context=
  --kubeconfig= --dry-run --force --grace-period= --replicas= --token= --password= --username= --user= --cluster=
kubectl create | --from-literal= --from-file= --from-env-file= --type= --docker-server= --docker-username=
  --docker-password= --docker-email= --cert= --key=
oc login | u:username= p:password= n:namespace= --token= --server=
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
mysql | e:execute= D:database= u:user= h:host= P:port= S:socket= p:password?
mysqldump | u:user= h:host= P:port= S:socket= r:result-file= B:databases A:all-databases p:password?
mysqladmin | u:user= h:host= P:port= S:socket= p:password?
mysqlimport | u:user= h:host= P:port= S:socket= p:password?
mysqlshow | u:user= h:host= P:port= S:socket= p:password?
mysqlcheck | u:user= h:host= P:port= S:socket= p:password?
mysqlslap | u:user= h:host= P:port= S:socket= p:password?
mysqlbinlog | u:user= h:host= P:port= S:socket= r:result-file= p:password?
mariadb | e:execute= D:database= u:user= h:host= P:port= S:socket= p:password?
mariadb-dump | u:user= h:host= P:port= S:socket= r:result-file= B:databases A:all-databases p:password?
mariadb-admin | u:user= h:host= P:port= S:socket= p:password?
redis-cli | a:pass= h:host= p:port= n:db= u:uri= s:socket= r:repeat= i:interval= --user= --eval= --pass= --cacert=
mongo | u:username= p:password= h:host= --authenticationDatabase= --eval= --port=
mongosh | u:username= p:password= h:host= --authenticationDatabase= --eval= --port= f:file=
mongodump | u:username= p:password= h:host= d:db= c:collection= o:out= --authenticationDatabase= --port= --uri=
mongorestore | u:username= p:password= h:host= d:db= c:collection= --authenticationDatabase= --port= --uri=
sqlcmd | S= U= P= d= Q= q= i= o= v=
bcp | S= U= P= d= c T
ldapsearch | w= D= H= b= x h= p= s= y=
ldapmodify | w= D= H= x h= p= f= y=
ldapadd | w= D= H= x h= p= f= y=
ldapwhoami | w= D= H= x h= p= y=
ldappasswd | w= D= H= x h= p= s= a= y=
sshpass | p= f= d= P= e v
keytool | -storepass= -keypass= -alias= -keystore= -file= -keyalg= -list -v
jarsigner | -storepass= -keypass= -keystore= -signedjar=
gpg | --passphrase= --passphrase-file= u:local-user= r:recipient= o:output= d:decrypt c:symmetric e:encrypt s:sign
  --batch --homedir= --pinentry-mode= --passphrase-fd=
plink | P= l= i= m= -pw=
smbclient | U:user= c:command= W:workgroup= I:ip-address= p:port= A:authentication-file= k:kerberos N:no-pass
rpcclient | U:user= c:command= W:workgroup= I:dest-ip= p:port= A:authentication-file= N:no-pass
lftp | u= e= c= p= f=
7z | p? o? m? t?
7za | p? o? m? t?
7zz | p? o? m? t?
rar | p? -hp? m?
unrar | p? o?
ssh-keygen | t= b= f= N= P= C= m= y p q
htpasswd | b c n m B C= D i
systemctl | t:type= p:property= H:host= M:machine= n:lines= o:output= f:force --user --now
compgen | A:= G:= W:= F:= C:= X:= P:= S:= o:=
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
"""A line per program, or per its first operand where that matters: letter:long-name, with = if it takes a value.

With ? the value can only stand in the same word, as in `mysql -pSECRET`. A name with a dash before it has no letter.
"""


@cache
def _specs() -> dict[str, str]:
    """The lines above by their names. A line that begins with blanks goes on with the one before."""
    entries = (line.partition(" | ") for line in _SPECS.replace("\n  ", " ").strip().splitlines())
    return {name: spec for name, _, spec in entries}


def takes_subcommand(program: str) -> bool:
    """Is the first operand of this program a command of its own, as in `git push`?"""
    return program in _with_subcommands()


@cache
def _with_subcommands() -> frozenset[str]:
    return frozenset(name.split()[0] for name in _specs() if " " in name)


@cache
def _table(name: str) -> OptionTable:
    long: dict[str, str] = {}
    valued: set[str] = set()
    known: set[str] = set()
    glued: set[str] = set()
    for word in _specs().get(name, "").split():
        sign = word[-1] if word[-1] in "=?" else ""
        word = word.rstrip("=?")
        if word.startswith("-"):
            option = long[word] = word
        else:
            letter, _, full = word.partition(":")
            option = f"--{full}" if full else f"-{letter}"
            long[f"-{letter}"] = option
        known.add(option)
        if sign:
            (valued if sign == "=" else glued).add(option)
    return long, frozenset(valued), frozenset(known), frozenset(glued)


def has_table(program: str) -> bool:
    """Are the options of this program known?"""
    return program in _specs()


def read_options(program: str, args: list[str]) -> Options:
    """The options and operands of a command."""
    options: dict[str, str | None] = {}
    operands: list[str] = []
    for argument in arguments(program, args):
        if argument.option:
            options[argument.option] = argument.value
        else:
            operands.append("" if argument.value is None else argument.value)
    return Options(options, operands, _merged(program, operands[0]) if operands else _table(program))


def arguments(program: str, args: list[str]) -> Iterator[Argument]:
    """The options and operands of a command in order. A word of several short options gives one for each."""
    table, operands, at = _table(program), 0, 0
    while at < len(args):
        word = args[at]
        if word == "--":
            yield from (Argument("", value, place) for place, value in enumerate(args[at + 1 :], at + 1))
            return
        if word[:1] == "-" and len(word) > 1:
            for argument in _options_of(word, at, args[at + 1 : at + 2], table):
                at = argument.at
                yield argument
        else:
            yield Argument("", word, at)
            operands += 1
            if operands == 1 and program in _with_subcommands():
                table = _merged(program, word)
        at += 1


def _options_of(word: str, at: int, after: list[str], table: OptionTable) -> Iterator[Argument]:
    """`--output=file`, `--output file`, `-rf`, `-ofile`, `-o file`.

    A word of which no letter is known, such as `-name`, is also one option by itself.
    """
    long, valued, known, glued = table
    name, sign, value = word.partition("=")
    name = _in_full(name, table) if word[:2] == "--" else name
    if word[:2] == "--" or (len(name) > 2 and name in known):
        if sign:
            yield Argument(name, value, at, len(word) - len(value))
        elif name in valued and after:
            yield Argument(name, after[0], at + 1)
        else:
            yield Argument(name, None, at)
        return
    if glued and (short := next((one for one in long if word.startswith(one) and long[one] in glued), "")):
        yield Argument(long[short], word[len(short) :] or None, at, len(short))
        return
    for place, letter in enumerate(word[1:], 2):
        name = long.get(f"-{letter}", f"-{letter}")
        if name in valued:
            if len(word) > 2:
                yield Argument(str(word), None, at)
            rest = word[place:]
            yield Argument(name, rest or None, at, place) if rest or not after else Argument(name, after[0], at + 1)
            return
        yield Argument(name, None, at)
    if len(word) > 2:
        yield Argument(str(word), None, at)


def _in_full(name: str, table: OptionTable) -> str:
    """A long option that is shortened as far as only one could be meant: `--recurs`."""
    if len(name) < 4 or name in table[2]:
        return name
    meant = [known for known in table[2] if known.startswith(name)]
    return meant[0] if len(meant) == 1 else name


@cache
def _merged_table(program: str, subcommand: str) -> OptionTable:
    of_program, own = _table(program), _table(f"{program} {subcommand}")
    return ({**of_program[0], **own[0]}, of_program[1] | own[1], of_program[2] | own[2], of_program[3] | own[3])


def _merged(program: str, subcommand: str) -> OptionTable:
    return _merged_table(program, str(subcommand)) if f"{program} {subcommand}" in _specs() else _table(program)
