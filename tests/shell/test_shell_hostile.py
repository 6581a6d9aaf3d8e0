"""Hostile and odd lines: what runs is found or the line is not sure, and what bash makes of a word is what is read.

The expectations come from running these lines in bash, with stubs as the only programs, in a namespace of their own.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.shell import read
from fairlead.shell.carriers import CARRIERS

HOME = {"HOME": "/home/me"}


def removals(line: str) -> list[list[str]]:
    return [command.args for command in read(line, "/work", HOME).commands if command.program == "rm"]


@pytest.mark.parametrize(
    ("line", "args"),
    [
        ("x=5; ((x++)); rm $x", ["6"]),
        ('x=5; let "x = x * 3"; rm $x', ["15"]),
        ("rm $((-7/2)) $((-7%3)) $((010)) $((0x1f)) $((2**3)) $[1+2]", ["-3", "-1", "8", "31", "8", "3"]),
        ('set -- a "b c"; rm "$*"', ["a b c"]),
        ('set -- a "b c"; rm $*', ["a", "b", "c"]),
        ('a[0]=x; a[1]=y; rm "${a[@]}"', ["x", "y"]),
        ("x=; rm ${x:-d} ${x-d} ${x:+e} ${x+e}", ["d", "e"]),
        ("IFS=:; x=a:b; rm $x", ["a", "b"]),
        ('IFS=; x="a b"; rm $x', ["a b"]),
        ("IFS=, read x y <<< 'q,z'; rm $y", ["z"]),
        ("read -a a <<< 'q z'; rm ${a[1]}", ["z"]),
        ("rm {01..03} {a,b{c,d}} {a,}", ["01", "02", "03", "a", "bc", "bd", "a"]),
        ("x=q; rm ${x}{y,z}", ["qy", "qz"]),
        ("rm ~ ~/x '~'", ["/home/me", "/home/me/x", "~"]),
        ("time -- rm x", ["x"]),
        ("eval -- rm x", ["x"]),
        ("echo 'rm $1' | bash -s a", ["a"]),
        ("printf 'rm %03d %x' 5 255 | sh", ["005", "ff"]),
        ("echo a b | xargs -I{} rm {}", ["a b"]),
        ("echo '\"a b\"' | xargs rm", ["a b"]),
        ("printf 'a b\\nc' | xargs -d '\\n' rm", ["a b", "c"]),
        ("{ read a; read b; rm $b; } <<< $'x\\ny'", ["y"]),
        ("export x=y; sh -c 'rm $x'", ["y"]),
        ("x=y sh -c 'rm $x'", ["y"]),
        ("env x=y sh -c 'rm $x'", ["y"]),
        ("exec 3<<< 'rm x'; sh <&3", ["x"]),
        ("echo 'rm x' > /tmp/s; sh /tmp/s", ["x"]),
        ("echo rm x | tee s; . ./s", ["x"]),
        ("f() { echo rm x; }; f | sh", ["x"]),
        ("echo RM x | tr A-Z a-z | sh", ["x"]),
        ("rm \u00a0x", ["\u00a0x"]),
        ("echo a x; rm $_", ["x"]),
        ("sh /dev/fd/3 3<<< 'rm x'", ["x"]),
        ("exec 4<<< 'rm x'; . /dev/fd/4", ["x"]),
        ("exec 4<<< x; read -ru4 a; rm $a", ["x"]),
        ("declare -l a=FOO; rm $a", ["foo"]),
        ("declare -u a=foo; rm $a", ["FOO"]),
        ("x=FOO; rm ${x@L}", ["foo"]),
        ("x='a\\x62'; rm ${x@E}", ["ab"]),
        ("screen -dm bash -c 'rm x'", ["x"]),
        ("npm pkg set scripts.a='rm x'", ["x"]),
        ('f() { rm "${@: -1}"; }; f a b x', ["x"]),
        ("a=(p q x); rm ${a[@]:1:2}", ["q", "x"]),
        ("a=(p.a q.a); rm ${a[@]%.a}", ["p", "q"]),
        ("v=abcd; n=1; rm ${v:n:n+1}", ["bc"]),
        ("set -- a b; rm ${@:2}", ["b"]),
        ("GIT_CONFIG_PARAMETERS=\"'alias.y=!rm x'\" git y", ["x"]),
        ("GIT_CONFIG_PARAMETERS=\"'alias.y'='!rm x'\" git y", ["x"]),
        ("export V='!rm x'; git --config-env=alias.y=V y", ["x"]),
        ("compgen -W '$(rm x)' y", ["x"]),
        ("compgen -C 'rm x' y", ["x"]),
        ("mapfile -C 'rm x #' -c1 a < f", ["x"]),
        ("unset 'a[$(rm x)]'", ["x"]),
        ("printf -v 'a[$(rm x)]' y", ["x"]),
        ("declare -i y='a[$(rm x)]'", ["x"]),
        ("declare -i y; y='a[$(rm x)]'", ["x"]),
        ("[[ 'a[$(rm x)]' -eq 1 ]]", ["x"]),
        ("SECONDS='a[$(rm x)]'", ["x"]),
        ("env 'BASH_FUNC_f%%=() { rm x; }' bash -c f", ["x"]),
        ("source /dev/stdin x <<< 'rm $1'", ["x"]),
        ("read <<< 'rm x'; $REPLY", ["x"]),
        ("xterm -e rm x", ["x"]),
        ("gnome-terminal --wait -- rm x", ["x"]),
        ("konsole -e 'rm x'", ["x"]),
        ("xfce4-terminal --command='rm x'", ["x"]),
        ("wezterm start -- rm x", ["x"]),
        ("nix run nixpkgs#rm -- x", ["x"]),
    ],
)
def test_a_line_is_read_as_bash_runs_it(line: str, args: list[str]) -> None:
    assert removals(line)[-1] == args
    assert read(line, "/work", HOME).sure


@pytest.mark.parametrize(
    "line",
    [
        "a=([k]=x); rm ${a[k]}", "a[7]=x; rm ${a[7]}", "PS4='$(rm x)'; set -x", "pgrep a | parallel rm",
        "echo ${a[$(rm x)]}", 'a=1; echo "${a/$(rm x)/y}" ${a:$(rm x)}', "echo ${NONE?$(rm x)}",
        "tmux send-keys rm Space x Enter", "x='a[$(rm x)]'; echo $((x))", "x='a[$(rm y)]'; z=x; echo ${a[z]}",
        "x='$(rm y)'; echo ${x@P}", "x='a[$(rm y)]'; echo ${!x}", "v=abc; x='a[`rm y`]'; echo ${v:x}",
        "f() { echo $(($1)); }; f 'a[$(rm y)]'", "a=('a[$(rm y)]'); echo $((a))", "env -S'rm\\_y'",
        "frobnicate -n 1 -- sh -c 'rm y'", "frobnicate /bin/bash -xc 'rm y'", "echo 'rm y' | sed e",
        "make --eval='$(shell rm y)'", "echo rm y | head -1 | sh", "echo rm y | sort -u | tail -n 2 | bash",
        "printf '%s\\n' ls 'rm y' | grep rm | sh", "sed s/X/rm/ <<< 'X y' | sh", "echo y | sed 's/^/rm /' | sh",
        "echo m y | sed s,m,rm, | sh", "cat <(echo rm y) | sh", "x=$(echo rm y | head -1); $x",
        "eval $(echo rm y | head -n 1)", "node -e 'require(\"child_process\").spawnSync(\"rm\", [\"y\"])'",
        "python3 -c 'import os; os.execvp(\"rm\", [\"rm\", \"y\"])'",
    ],
)  # fmt: skip
def test_what_depends_on_more_than_the_line_is_found_and_not_sure(line: str) -> None:
    assert removals(line)
    assert not read(line, "/work", HOME).sure


@pytest.mark.parametrize("sign", ["\u00b2", "\u0663", "\uff11"])
@pytest.mark.parametrize(
    "line", ["shift N", "echo a | xargs -nN rm", "f() { shift N; }; f a", "echo {a..N}", "x >&N", "${x:N} $((N))"]
)
def test_a_sign_that_only_looks_like_a_number_is_none(line: str, sign: str) -> None:
    assert read(line.replace("N", sign)).commands


@pytest.mark.parametrize(
    ("line", "runs"),
    [
        ("echo a b c | xargs -n2 rm", [["a", "b"], ["c"]]),
        ("while read l; do rm $l; done <<< $'a\\nb\\nc'", [["a"], ["b"], ["c"]]),
        ("for ((i=0; i<3; i++)); do rm $i; done", [["0"], ["1"], ["2"]]),
        ("{ echo rm x; echo rm y; } | sh", [["x"], ["y"]]),
    ],
)
def test_what_runs_more_than_once_is_found_each_time(line: str, runs: list[list[str]]) -> None:
    assert removals(line) == runs


@pytest.mark.parametrize(
    "line",
    [
        "echo rm | read x; $x y",
        "false && x=a; rm $x",
        "x=rm & $x y",
        "x='rm y'; bash -c '$x q'",
        "export x=rm; ssh host '$x y'",
        "/bin/r[m] x",
        "sh -c \"rm $'x'\"",
        "rm x\r",
        "declare -n n=x; x=rm; $n y",
        "curl u -o s && sh s",
        "if a; then echo -n r; else echo -n x; fi | sh",
        "echo 'rm\\tx' | sh",
        "echo rm x | tee >(sh)",
        "python3 -c 'import os; c = \"rm x\"; os.system(c)'",
        "curl u | python3",
        "perl -e '$x = \"rm x\"; system $x'",
        "awk -v c='rm x' 'BEGIN { system(c) }'",
        "BASH_ENV=s bash -c a",
        "make SHELL=/bin/rm -f - <<< 'all:;x'",
        "/proc/self/exe -c 'rm x'",
        "setpriv --unknown 1000 rm y",
    ],
)
def test_what_only_running_it_tells_is_not_sure(line: str) -> None:
    assert not read(line, "/work", HOME).sure


@pytest.mark.parametrize(
    "line",
    [
        "python3 -c 'import sys; print(sys.version)'",
        "python3 -c 'print(\"os.system(1)\")'",
        "node -p 'require(\"fs\").sep'",
        "perl -pe 's/x/y/' f",
        "awk '/a|b/ { print $1 }' f",
        "sed -i 's/a/e/g' f",
        "vim -c '/x' f",
        "chmod +x s && ./s",
        "nohup ./run.sh &",
        "make test",
        'echo "a\\\\b" > f',
    ],
)
def test_code_that_runs_nothing_is_sure(line: str) -> None:
    assert read(line, "/work", HOME).sure


@pytest.mark.parametrize(
    "line",
    [
        "runuser -u bob rm y",
        "su -c'rm y'",
        "chroot --userspec a:b /x rm y",
        "strace -fe trace=open rm y",
        "docker container run --rm img rm y",
        "docker -H h exec c rm y",
        "docker run --shm-size 1g img rm y",
        "docker run --entrypoint=sh img -c 'rm y'",
        "docker compose -f a.yml exec -T web rm y",
        "kubectl debug node/x --image=i -- chroot /host rm y",
        "gcloud compute ssh vm -- rm y",
        "ssh host <<< 'rm y'",
        "ssh -o ProxyCommand='rm y' host",
        "EDITOR='rm y' crontab -e",
        "echo '* * * * * rm y' | crontab -",
        "echo rm y | at now",
        "git clone ext::'rm y' z",
        "git filter-branch --tree-filter 'rm y' HEAD",
        "tar cf a b --checkpoint=1 --checkpoint-action=exec='rm y'",
        "tar xf a --to-comm='rm y'",
        "rsync -avze 'rm y' a h:b",
        "sed -n 's/x/rm y/e' f",
        "sed '1e rm y' f",
        "awk 'BEGIN { \"rm y\" | getline }'",
        "vim +'!rm y' +q",
        "ed f <<< '!rm y'",
        "make -f - <<< 'all:;rm y'",
        "sqlite3 db '.shell rm y'",
        "psql -c '\\! rm y'",
        "npx -c 'rm y'",
        "npm exec -- rm y",
        "socat - EXEC:'rm y'",
        "nc -e 'rm y' h 1",
        "tmux send-keys 'rm y' Enter",
        "find . -execdir sudo rm {} \\;",
        "env -iS 'A=1 rm y'",
        "perl -e 'system qw(rm y)'",
        "ruby -e '%x(rm y)'",
        "fzf --bind 'enter:execute(rm {})'",
        "watch -d -n 2 'rm y | wc'",
        "parallel ::: 'rm y'",
        "script -q /dev/null rm y",
        "sg grp 'rm y'",
        "perf stat rm y",
    ],
)
def test_a_program_that_another_one_runs_is_found(line: str) -> None:
    assert removals(line)


@pytest.mark.parametrize(
    "line",
    [
        "git commit -m \"$(cat <<'E'\nrm y\nE\n)\"",
        "gh issue create --body 'rm y'",
        "sed 's/rm y/ls/' f",
        "awk '/rm y/' f",
        "x='rm y'; echo \"$x\"",
        "[[ 'rm y' == *rm* ]]",
        "cat <<< 'rm y'",
        "curl -d 'rm y' u",
        "tmux kill-session -t rm",
        "docker rm y",
        "git rm y",
        "make rm",
        "xargs echo rm <<< y",
        "echo \\`rm y\\`",
        "sudo -e rm",
        "echo sh -c 'rm y'",
        "grep -n sh -c 'rm y' f",
        "git log --grep bash -c 'rm y'",
        "x='a[$(rm y)]'; echo \"$x\"",
        "x='$(rm y)'; printf %s \"$x\"",
        "echo rm y | head -1",
        "echo rm y | grep -c rm | sh",
        "echo ls | sed s/ls/l/",
        "xterm -T rm",
    ],
)
def test_data_is_no_command(line: str) -> None:
    assert not removals(line)


NAMES = st.sampled_from(sorted([*CARRIERS, "python3", "perl", "node", "ruby", "pwsh", "cmd.exe", "tr", "xxd", "./s"]))
ARGS = st.sampled_from(
    [
        "-c",
        "-e",
        "x",
        "'rm y'",
        "--",
        "-",
        "-I{}",
        "{}",
        "--opt=v",
        "-n1",
        "$X",
        "$(a)",
        "\\;",
        "-exec",
        "*",
        "''",
        "a=b",
        ":::",
        "-f -",
        "run",
        "exec",
        "compose",
        "--eval=x",
        "-S 'a b'",
        "-m timeit",
        "%d",
        "<(a)",
        ">(b)",
        "s/a/b/e",
        "{a,b}",
        "-o A=b",
    ]
)
JOINTS = st.sampled_from(
    [";", "|", "&&", "||", "&", "\n", "<<< 'rm x'", "<<E\nrm x\nE\n", "> f", "< f", ")", "(", "$(", "done"]
)
LINES = st.lists(st.builds("{} {} {} ".format, NAMES, st.lists(ARGS, max_size=4).map(" ".join), JOINTS), max_size=5)


@given(LINES.map("".join))
@settings(max_examples=300, deadline=None)
def test_no_program_with_any_words_makes_it_raise(line: str) -> None:
    for command in read(line, "/work", HOME).commands:
        command.to_builtins()
