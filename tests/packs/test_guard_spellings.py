"""Spellings of a change to a protected file: each really changes it, and the guard denies it.

`make e2e` runs every line of the tables in the sandbox; `make test` runs a few. The guard judges all of them in both.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from fed_spellings import INDIRECT, fed
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from late_spellings import LATE
from spellings import BY_HAND, JUDGED, NAME, NAMINGS, ONE_WORD, WRAPPERS, WRITERS, combined, line_of
from test_guard import OVERRIDES, World, denied

import sandbox

TARGET = f"home/ws/{NAME}"
TOOLS = (
    "awk", "base64", "basename", "bash", "cat", "chmod", "choom", "cp", "csplit", "curl", "date", "dd", "diff",
    "dirname", "ed", "env", "ex", "expr", "find", "flock", "git", "grep", "gzip", "head", "install", "ln", "ls",
    "m4", "make", "mkdir", "mkfifo", "mv", "nice", "node", "nohup", "patch", "perl", "pr", "python3", "rev", "rm",
    "script", "sed", "setsid", "sh", "shred", "sleep", "sort", "split", "sponge", "sqlite3", "stdbuf", "tar", "tee",
    "timeout", "touch", "tr", "truncate", "uname", "uniq", "unlink", "unzip", "vim", "wc", "xargs", "xxd", "yes",
    "zip",
)  # fmt: skip
COMBINED = list(dict.fromkeys(combined()))
FEEDING = list(fed())
UNSEEN = [
    "cp -r src/. .",
    "chmod -R go+w .",
    "git checkout .",
    "git reset -q --hard",
    "python3 src/prog.py",
    "git stash -q",
    "git restore ':!a.py' ':!src'",
    "rm $(cut -c3- <<< xxfairlead.toml)",
]
"""What the guard does not see: a folder that is written as a whole, a program that was there before."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(root / "home"))
        for name in OVERRIDES:
            patch.delenv(name, raising=False)
        made = World(root)
        (made.ws / "src" / NAME).write_text("y")
        yield made


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The same files, in a repository whose `fairlead.toml` has another content than the one committed."""
    folder = tmp_path_factory.mktemp("files")
    ws = folder / "home/ws"
    (ws / "src").mkdir(parents=True)
    for path, text in (("a.py", "print(1)\n"), (f"src/{NAME}", "y\n"), (NAME, "old\n")):
        (ws / path).write_text(text)
    (ws / "src/prog.py").write_text(f"import os; os.remove('fair' + '{NAME[4:]}')\n")
    environment = {"PATH": sandbox.SYSTEM_PATH, "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    for words in (
        "init -q -b main", "config user.name a", "config user.email a@example.com", "add .", "commit -qm first",
    ):  # fmt: skip
        subprocess.run(["git", *words.split()], cwd=ws, env=environment, check=True, capture_output=True)
    (ws / NAME).write_text("x x\nend\n")
    return sandbox.packed_folder(folder)


def changes_it(line: str, files: bytes) -> bool:
    """Run a line, and see whether the protected file is another."""
    missing = [tool for tool in TOOLS if not sandbox.has(tool)]
    outcome = sandbox.run(line, files, tools=[tool for tool in TOOLS if tool not in missing])
    if not outcome.proven:
        pytest.skip(outcome.why)
    changed = outcome.changed(TARGET)
    if not changed and "not found" in outcome.text("stderr"):
        pytest.skip(f"not proven: {outcome.text('stderr').strip()[-100:]}")
    return changed


def identifier(line: str) -> str:
    return line[:60].encode("unicode_escape").decode()


FEW = [*BY_HAND[::40], *INDIRECT[::20], *LATE[::20], *COMBINED[::700]]


@pytest.mark.parametrize("line", FEW, ids=identifier)
def test_some_spellings_change_the_file(files: bytes, line: str) -> None:
    assert changes_it(line, files)


@pytest.mark.sweep
@pytest.mark.parametrize("line", [*BY_HAND, *INDIRECT, *LATE, *COMBINED[::13], *FEEDING[::7]], ids=identifier)
def test_every_spelling_changes_the_file(files: bytes, line: str) -> None:
    assert changes_it(line, files)


@pytest.mark.sweep
@pytest.mark.parametrize("line", UNSEEN)
def test_what_is_listed_as_unseen_changes_the_file_and_passes(world: World, files: bytes, line: str) -> None:
    assert changes_it(line, files)
    assert world.shell(line) is None


@pytest.mark.parametrize("line", [*BY_HAND, *INDIRECT, *LATE, *JUDGED], ids=identifier)
def test_no_spelling_by_hand_passes(world: World, line: str) -> None:
    denied(world.shell(line))


def test_no_combined_spelling_passes(world: World) -> None:
    assert len(COMBINED) > 5000
    assert [line for line in COMBINED if world.shell(line) is None] == []


def test_no_text_that_is_fed_to_a_shell_passes(world: World) -> None:
    assert [line for line in FEEDING if world.shell(line) is None] == []


LINES = st.builds(
    line_of,
    st.sampled_from(WRITERS),
    st.sampled_from(ONE_WORD),
    st.sampled_from(sorted(WRAPPERS)),
    st.sampled_from(sorted(WRAPPERS)),
)
"""Two wrappers around a writer: of these there are more than can be run."""


@settings(deadline=None, max_examples=200)
@given(line=LINES)
def test_no_spelling_in_two_wrappers_passes(world: World, line: str) -> None:
    denied(world.shell(line))


@pytest.mark.sweep
@settings(deadline=None, max_examples=60)
@given(line=LINES)
def test_a_spelling_in_two_wrappers_changes_the_file_and_is_denied(world: World, files: bytes, line: str) -> None:
    denied(world.shell(line))
    assume(changes_it(line, files))


QUOTED = st.lists(st.sampled_from("'\"\\$"), min_size=len(NAME), max_size=len(NAME)).map(
    lambda quotes: "".join(
        {"'": f"'{sign}'", '"': f'"{sign}"', "\\": f"\\{sign}", "$": f"$'\\x{ord(sign):02x}'"}[quote]
        for sign, quote in zip(NAME, quotes, strict=True)
    )
)


@settings(deadline=None, max_examples=100)
@given(name=QUOTED, writer=st.sampled_from(WRITERS), wrapper=st.sampled_from(sorted(WRAPPERS)))
def test_no_quoting_of_the_name_passes(world: World, name: str, writer: str, wrapper: str) -> None:
    denied(world.shell(line_of(writer, name, wrapper)))


def test_the_tables_are_as_long_as_promised() -> None:
    assert len(set(BY_HAND)) >= 300
    assert sum(NAME in line for line in BY_HAND) >= 250
    assert len(WRITERS) * len(NAMINGS) * len(WRAPPERS) > 50_000


def test_the_sandbox_has_no_file_of_this_machine(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    outcome = sandbox.run(
        f"ls ..{os.sep}..{os.sep}..{tmp_path}; rm -f ../../..{secret}; ls -d ../../../*", tools=["ls", "rm"]
    )
    if not outcome.proven:
        pytest.skip(outcome.why)
    assert secret.read_text() == "x"
    assert "No such file" in outcome.text("stderr")


@pytest.mark.parametrize(
    "line", ["/bin/rm x", "'/usr/bin/git' push", "a; \\/sbin/reboot", "$(/bin/echo rm) x", "x=/bin/rm; $x y"]
)
def test_a_line_that_names_a_program_by_its_path_is_never_run(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setattr(sandbox, "_run", lambda *_: pytest.fail("it was run"))
    outcome = sandbox.run(line)
    assert not outcome.proven
    assert "the line names /" in outcome.why


def test_where_there_is_no_namespace_nothing_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sandbox, "_NAMESPACES", ("--no-such-namespace",))
    sandbox.unavailable.cache_clear()
    outcome = sandbox.run(f"echo x > {NAME}")
    sandbox.unavailable.cache_clear()
    assert not outcome.proven
    assert "not proven" in outcome.why
