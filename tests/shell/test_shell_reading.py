"""Which commands a line runs: through quotes, variables, loops, functions and the programs that run others."""

from __future__ import annotations

import pytest

from fairlead.shell import Command, Word, read

HOME = {"HOME": "/home/me"}


def shown(line: str) -> list[str]:
    """Every command as its words, with what runs it behind `<`."""
    return [
        " ".join([command.program, *command.args]) + "".join(f" < {via}" for via in reversed(command.via))
        for command in read(line, "/work", HOME).commands
        if command.program
    ]


def only(line: str, program: str) -> Command:
    (command,) = [command for command in read(line, "/work", HOME).commands if command.program == program]
    return command


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("git push --force", ["git push --force"]),
        ("a && b || c; d & e", ["a", "b", "c", "d", "e"]),
        ("a | b |& c", ["a", "b", "c"]),
        ("! a; time b; time -p c", ["a", "b", "c"]),
        ("# only a comment", []),
        ("a # b\nc", ["a", "c"]),
        ("a \\\n  b", ["a b"]),
        ("{ a; b; }; (c; d)", ["a", "b", "c", "d"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]),
        ("case x in a|b) c;; (*) d;& esac", ["c", "d"]),
        ("for ((i=0; i<3; i++)); do a; done", ["a"]),
        ("select x in 1; do a $x; done", ["a 1"]),
        ("[[ -f $(a) && x =~ ^(b|c)$ ]] && d", ["a < $(...)", "d"]),
        ("coproc a; coproc NAME { b; }", ["a", "b"]),
        ("function f { a; }; f", ["f", "a < f()"]),
        ("(( x = $(a) ))", ["a < $(...)"]),
        ("x=1 y=2 a", ["a"]),
        ("a >b 2>&1 <c", ["a"]),
        ("{fd}>out a", ["a"]),
        ("if(a);then(b);elif(c);then(d);else(e);fi", ["a", "b", "c", "d", "e"]),
        ("while((1));do(a);done; until(b)do(c)done", ["a", "b", "c"]),
        ("for((;;))do a;done", ["a"]),
        ("!(a); time(b); coproc(c); {(d);}", ["a", "b", "c", "d"]),
        ("f(){(a);};f", ["f", "a < f()"]),
    ],
)
def test_every_command_of_the_grammar_is_found(line: str, commands: list[str]) -> None:
    assert shown(line) == commands
    assert read(line).sure or "$(" in line


@pytest.mark.parametrize(
    ("word", "text"),
    [
        ("'a b'", "a b"),
        ('"a b"', "a b"),
        (r"a\ b", "a b"),
        ("$'a\\x20b'", "a b"),
        ("$'\\162\\155'", "rm"),
        ("\"a\"'b'c", "abc"),
        ('"a\\"b"', 'a"b'),
        ('"a\\b"', "a\\b"),
        ("''", ""),
        ("a\\\nb", "ab"),
        ("$((1 + 2 * 3))", "7"),
        ("$((1<<4))", "16"),
        ("~/x", "~/x"),
        ("'*'", "*"),
        ("a#b", "a#b"),
    ],
)
def test_a_quoted_word_is_what_the_program_is_given(word: str, text: str) -> None:
    (command,) = read(f"p {word}").commands
    assert command.args == [text]
    assert type(command.args[0]) is str


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("X=rm; $X y", "rm y"),
        ('X="rm -rf"; $X y', "rm -rf y"),
        ('X="a b"; p "$X"', "p a b"),
        ("X=r Y=m; ${X}${Y} y", "rm y"),
        ("rm${IFS}y", "rm y"),
        ("X=xrmx; Y=${X#x}; ${Y%x} y", "rm y"),
        ("X=axm; ${X/ax/r} y", "rm y"),
        ("X=RM; ${X,,} y", "rm y"),
        ("X=firmware; ${X:2:2} y", "rm y"),
        ("a=(rm -f); ${a[@]} y", "rm -f y"),
        ("declare -a a=(rm -f); ${a[@]} y", "rm -f y"),
        ("set -- rm y; $1 $2", "rm y"),
        ("X=$(echo rm); $X y", "rm y"),
        ("X=`printf %s rm`; $X y", "rm y"),
        ("export X=rm; $X y", "rm y"),
        ("read X <<< rm; $X y", "rm y"),
        ("printf -v X rm; $X y", "rm y"),
        ("X=rm Y=X; ${!Y} y", "rm y"),
        ("{rm,y}", "rm y"),
        ("alias x='rm -f'; x y", "rm -f y"),
        ("for f in y; do rm $f; done", "rm y"),
        ("f() { rm $1; }; f y", "rm y"),
    ],
)
def test_what_the_line_itself_says_is_followed(line: str, command: str) -> None:
    assert any(text.partition(" < ")[0] == command for text in shown(line)), shown(line)


@pytest.mark.parametrize(
    ("line", "via"),
    [
        ("sudo -u root -- rm y", ("sudo",)),
        ("env -i A=1 rm y", ("env",)),
        ("nohup nice -n 5 timeout 5s rm y", ("nohup", "nice", "timeout")),
        ("sh -c 'rm y'", ("sh -c",)),
        ("bash -xec 'rm \"$1\"' _ y", ("bash -c",)),
        ("$SHELL -c 'rm y'", ("sh -c",)),
        ("eval rm y", ("eval",)),
        ("eval 'rm' 'y'", ("eval",)),
        ("echo rm y | sh", ("sh",)),
        ("printf 'rm %s' y | bash -s", ("bash",)),
        ("echo cm0geQo= | base64 -d | sh", ("sh",)),
        ("cat <<E | sh\nrm y\nE", ("sh",)),
        ("sh <<< 'rm y'", ("sh",)),
        ("bash <(echo rm y)", ("bash",)),
        ("source <(echo rm y)", ("source",)),
        ("echo y | xargs rm", ("xargs",)),
        ("xargs rm <<< y", ("xargs",)),
        ("xargs -I % rm % <<< y", ("xargs",)),
        ("ssh host rm y", ("ssh",)),
        ("ssh -p 22 host 'rm y'", ("ssh",)),
        ("docker exec -it box rm y", ("docker exec",)),
        ("docker run --rm -v a:b image rm y", ("docker run",)),
        ("kubectl exec pod -c box -- rm y", ("kubectl exec",)),
        ("su - root -c 'rm y'", ("su -c",)),
        ("watch -n 1 rm y", ("watch",)),
        ("parallel rm ::: y", ("parallel",)),
        ("busybox rm y", ("busybox",)),
        ("trap 'rm y' EXIT", ("trap",)),
        ("command rm y", ("command",)),
        ("python3 -c 'import os; os.system(\"rm y\")'", ("python3 code",)),
        ('python -c \'import subprocess as s; s.run(["rm", "y"])\'', ("python code",)),
        ("perl -e 'system(\"rm y\")'", ("perl code",)),
        ('node -e \'require("child_process").execSync("rm y")\'', ("node code",)),
        ("git -c alias.x='!rm y' x", ("git -c",)),
        ("git rebase --exec 'rm y' main", ("git --exec",)),
        ("uv run rm y", ("uv run",)),
        ("echo $(rm y)", ("$(...)",)),
        ("cat <(rm y)", ("<(...)",)),
        ("f() { rm y; }; f", ("f()",)),
        ("sudo sh -c 'env rm y'", ("sudo", "sh -c", "env")),
    ],
)
def test_a_command_that_another_program_runs_is_found_and_says_how(line: str, via: tuple[str, ...]) -> None:
    command = only(line, "rm")
    assert command.args == ["y"]
    assert command.via == via


@pytest.mark.parametrize(
    "line",
    [
        "echo rm y",
        "grep 'rm y' file",
        "git commit -m 'rm y'",
        "cat <<E > file\nrm y\nE",
        "cat > file <<'E'\n$(rm y)\nE",
        "printf '%s' 'rm y; rm z'",
        "command -v rm",
        "echo '$(rm y)'",
        "# rm y",
    ],
)
def test_text_that_is_only_data_is_no_command(line: str) -> None:
    assert "rm" not in {command.program for command in read(line).commands}


@pytest.mark.parametrize(
    ("line", "folder"),
    [
        ("p", "/work"),
        ("cd sub && p", "/work/sub"),
        ("cd /tmp; cd ..; p", "/"),
        ("cd; p", "/home/me"),
        ("cd ~/x; p", "/home/me/x"),
        ("cd /tmp; cd -; p", "/work"),
        ("(cd /tmp); p", "/work"),
        ("pushd /tmp; popd; p", "/work"),
        ("cd $UNKNOWN; p", ""),
        ("sh -c 'cd /tmp'; p", "/work"),
        ("eval cd /tmp; p", "/tmp"),
    ],
)
def test_a_command_runs_in_the_folder_that_the_line_went_to(line: str, folder: str) -> None:
    assert only(line, "p").folder == folder


@pytest.mark.parametrize(
    "line",
    [
        "rm $UNKNOWN",
        "$UNKNOWN y",
        "rm $(somewhere)",
        "curl x | sh",
        "sh <(curl x)",
        "eval $UNKNOWN",
        "if a; then F=x; else F=y; fi; rm $F",
        "rm 'y",
        "rm )",
        "while a",
        "echo a | xargs -d '\\n' rm $X",
    ],
)
def test_what_the_line_does_not_say_is_not_sure(line: str) -> None:
    assert not read(line).sure


def test_a_word_says_what_is_not_known_of_it() -> None:
    (command,) = read("rm $DIR/*.log").commands
    (word,) = command.args
    assert isinstance(word, Word)
    assert word == "$DIR/*.log"
    assert word.unknown == ("$DIR", "*")


def test_names_of_files_that_a_pattern_stands_for_are_no_doubt_about_the_command() -> None:
    assert read("rm *.log").sure


@pytest.mark.parametrize("line", ["git $X push -f", "g${X}it push -f", "git pu${X}sh -f", "$X git push --for${X}ce"])
def test_a_variable_that_nothing_sets_may_be_empty(line: str) -> None:
    (command,) = read(line).commands
    assert not command.sure
    assert command.runs("git push")
    assert command.has("--force")
    data = command.to_builtins()
    assert "git push" in data["runs"]
    assert "--force" in data["options"]


def test_redirections_say_what_they_write() -> None:
    (command,) = read("p >a 2>>b <c >&2 &>d").commands
    assert command.writes() == ["a", "b", "d"]


def test_a_here_document_is_read_however_long_it_is() -> None:
    text = "a line of text\n" * 7000
    command, after = read(f"cat <<END\n{text}END\nrm y").commands
    assert command.stdin == text
    assert after.args == ["y"]


def test_a_here_document_ends_only_at_its_word() -> None:
    line = read("cat <<E\nE x\n E\nEE\nE\nrm y")
    assert [command.program for command in line.commands] == ["cat", "rm"]


def test_commands_of_one_pipeline_have_one_number_and_their_positions() -> None:
    commands = read("a | b; c").commands
    assert [(command.pipeline, command.position) for command in commands] == [(1, 0), (1, 1), (2, 0)]
    assert commands[1].reads is commands[0]


def test_a_function_that_is_never_called_may_be_called_by_something_else() -> None:
    assert shown("f() { rm y; }") == ["rm y"]


def test_an_option_of_the_program_is_none_of_env() -> None:
    inner = read("env A=1 curl -sSfu me:x https://a.example").commands[1]
    assert (inner.program, inner.options["--user"], inner.via) == ("curl", "me:x", ("env",))
    assert any(one.runs("rm x") for one in read("env -S 'rm -rf x'").commands)
    assert [one.program for one in read("sudo -u app mysql -pelse app").commands] == ["sudo", "mysql"]
