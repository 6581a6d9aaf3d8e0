"""A full disk and a file that cannot be written: a clear error, and all goes on when the disk does."""

from __future__ import annotations

import os
import subprocess
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import Hooks
from fairlead.journal import JournalError, writer
from fairlead.journal.verify import verify
from fairlead.journal.writers import WriterMark


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "RETRY_DELAY", 0.05)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if mounted.returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Fill a disk to the last byte."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (65536, 4096, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                pass
    return ballast


def big(step: Any, number: object) -> Any:
    return step(number, args={"command": "x" * 2000 + str(number)})


def test_a_full_disk_is_said_with_the_file_and_the_way_out(
    small_disk: Path, open_journal: Any, keep: Any, step: Any
) -> None:
    journal = open_journal(small_disk / "journal.db")
    hooks = keep(journal, 1)
    fill(small_disk)
    for number in range(50):
        hooks.dispatch_sync(big(step, number))
    with pytest.raises(JournalError, match=r"disk/journal\.db cannot be written: .*free some space"):
        journal.flush()


def test_open_the_agent_goes_on_with_a_full_disk(
    small_disk: Path, open_journal: Any, keep: Any, step: Any, kept: Any
) -> None:
    journal = open_journal(small_disk / "journal.db")
    hooks = keep(journal, 1)
    ballast = fill(small_disk)
    for number in range(50):
        assert hooks.dispatch_sync(big(step, number)).control == "proceed"
    with pytest.raises(JournalError):
        journal.flush()
    ballast.unlink()
    journal.flush()
    assert kept(journal.path) == ["1", *(str(number) for number in range(50))]


def test_open_the_losses_are_counted_and_noted(
    small_disk: Path, open_journal: Any, keep: Any, step: Any, notes: Any, kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "QUEUE_LIMIT", 10)
    journal = open_journal(small_disk / "journal.db")
    hooks = keep(journal, "first")
    ballast = fill(small_disk)
    for number in range(50):
        hooks.dispatch_sync(big(step, number))
    with pytest.raises(JournalError):
        journal.flush()
    for number in range(50):
        hooks.dispatch_sync(big(step, f"more{number}"))
    ballast.unlink()
    journal.flush()
    assert sum(note["records"] for note in notes(journal.path)) + len(kept(journal.path)) == 101


def test_closed_a_full_disk_stops_the_agent(small_disk: Path, open_journal: Any, keep: Any, step: Any) -> None:
    journal = open_journal(small_disk / "journal.db", durability="full")
    hooks = keep(journal, 1)
    fill(small_disk)
    with pytest.raises(JournalError, match="free some space"):
        deque((hooks.dispatch_sync(big(step, number)) for number in range(50)), maxlen=0)


def test_closed_it_recovers_with_the_disk(small_disk: Path, open_journal: Any, keep: Any, step: Any, kept: Any) -> None:
    journal = open_journal(small_disk / "journal.db", durability="full")
    hooks = keep(journal, "first")
    ballast = fill(small_disk)
    went = ["first"]
    for number in range(20):
        try:
            hooks.dispatch_sync(big(step, number))
            went.append(str(number))
        except JournalError:
            pass
    ballast.unlink()
    journal.flush()
    hooks.dispatch_sync(big(step, "last"))
    assert kept(journal.path) == [*went, "last"]


def test_a_full_disk_corrupts_nothing(small_disk: Path, open_journal: Any, keep: Any, step: Any) -> None:
    journal = open_journal(small_disk / "journal.db")
    hooks = keep(journal, 1)
    for _ in range(3):
        ballast = fill(small_disk)
        for number in range(20):
            hooks.dispatch_sync(big(step, number))
        with pytest.raises(JournalError):
            journal.flush()
        ballast.unlink()
        journal.flush()
    assert verify(journal.path).problem is None


# A file may not grow beyond some size, which every Unix can be told.
LIMITED = """
import resource
from fairlead.journal import JournalError
import fairlead.journal.writer as writer
writer.RETRY_DELAY = 0.05
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = Journal(path, durability=sys.argv[2], on_failure=sys.argv[3])
hooks = Hooks(journal=journal)
hooks.dispatch_sync(step("first"))
journal.flush()
size = path.with_name("journal.db-wal").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, resource.RLIM_INFINITY))
logging.disable()
raised = went = 0
for number in range(60):
    try:
        hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": "x" * 3000 + str(number)}, call_id=str(number)))
        went += 1
    except JournalError as error:
        raised += 1
try:
    journal.flush()
except JournalError as error:
    say("flush", error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.flush()
hooks.dispatch_sync(step("last"))
journal.close()
say(went, raised)
"""


@pytest.mark.parametrize(("durability", "on_failure"), [("normal", "open"), ("full", "open"), ("full", "closed")])
def test_what_went_on_is_kept_once_the_file_can_grow_again(
    durability: str, on_failure: str, run: Any, kept: Any, path: Path
) -> None:
    ended = run(LIMITED, durability, on_failure)
    went, _ = ended.lines[-1].split()
    assert len(kept()) == int(went) + 2
    assert verify(path).problem is None


def test_a_file_that_cannot_grow_is_said_with_the_way_out(run: Any, path: Path) -> None:
    said = run(LIMITED, "normal", "open").lines[0]
    assert said.startswith(f"flush the journal {path} cannot be written: ")
    assert "free some space" in said


def test_closed_a_file_that_cannot_grow_stops_the_agent(run: Any) -> None:
    _, raised = run(LIMITED, "full", "closed").lines[-1].split()
    assert int(raised) > 0


def test_open_a_durable_journal_that_fails_does_not_make_the_agent_wait(run: Any) -> None:
    code = LIMITED.replace("writer.RETRY_DELAY = 0.05", "writer.RETRY_DELAY = 3600")
    code = code[: code.index("try:\n    journal.flush()")] + "say(went)\nos._exit(0)"
    assert run(code, "full", "open").out == "60\n"


# --- not allowed -----------------------------------------------------------------------------------------

AS_NOBODY = """
with Journal(path.with_name("own.db")) as own:  # so that all it takes is imported
    Hooks(journal=own).dispatch_sync(step(0))
os.setgid(65534)
os.setuid(65534)
from fairlead.journal import JournalError
logging.disable()
journal = Journal(path, on_failure=sys.argv[2])
hooks = Hooks(journal=journal)
hooks.dispatch_sync(step("nobody's"))
try:
    journal.flush()
except JournalError as error:
    say(error)
try:
    hooks.dispatch_sync(step("next"))
    say("went on")
except JournalError:
    say("stopped")
os._exit(0)
"""
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def reachable(tmp_path: Path) -> None:
    """Let others in: temporary folders are private."""
    folder = tmp_path
    while folder != folder.parent:
        folder.chmod(folder.stat().st_mode | 0o055)
        folder = folder.parent


@root
@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize("mode", [0o755, 0o777], ids=["a folder of another user", "a file of another user"])
def test_a_journal_one_may_not_write_says_so(mode: int, tmp_path: Path, open_journal: Any, keep: Any, run: Any) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    journal = open_journal(folder / "journal.db")
    keep(journal, 1)
    journal.close()
    folder.chmod(mode)
    said = run(AS_NOBODY, "open", where=journal.path).lines[0]
    assert said.startswith(f"the journal {journal.path} cannot be written: ")
    assert said.endswith("make the file and its folder writable")


@root
@pytest.mark.usefixtures("reachable")
@pytest.mark.parametrize(("on_failure", "outcome"), [("open", "went on"), ("closed", "stopped")])
def test_a_journal_one_may_not_write_is_failed_as_told(on_failure: str, outcome: str, tmp_path: Path, run: Any) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o755)
    assert run(AS_NOBODY, on_failure, where=folder / "journal.db").lines[-1] == outcome


def test_a_disk_that_becomes_read_only_says_so(small_disk: Path, open_journal: Any, keep: Any) -> None:
    journal = open_journal(small_disk / "journal.db")
    hooks = keep(journal, 1)
    journal.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    keep(journal, 2, hooks=hooks, flush=False)
    with pytest.raises(
        JournalError, match=r"disk/journal\.db cannot be written: .*; make the file and its folder writable"
    ):
        journal.flush()


def test_a_disk_that_can_be_written_again_gets_what_waited(
    small_disk: Path, open_journal: Any, keep: Any, kept: Any
) -> None:
    journal = open_journal(small_disk / "journal.db")
    hooks = keep(journal, 1)
    journal.close()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    keep(journal, 2, hooks=hooks, flush=False)
    with pytest.raises(JournalError):
        journal.flush()
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    journal.flush()
    assert kept(journal.path) == ["1", "2"]


# --- not a journal ------------------------------------------------------------------------------------------


def _database(path: Path) -> None:
    import sqlite3

    db = sqlite3.connect(path)
    db.execute("CREATE TABLE theirs (x)")
    db.commit()
    db.close()


NOT_JOURNALS = {
    "a database of another program": _database,
    "a text": lambda path: path.write_text("dear diary\n" * 200),
    "garbage": lambda path: path.write_bytes(os.urandom(5000)),
    "a folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("make", NOT_JOURNALS.values(), ids=NOT_JOURNALS.keys())
def test_what_is_no_journal_is_not_written(make: Any, path: Path, open_journal: Any, keep: Any) -> None:
    make(path)
    before = None if path.is_dir() else path.read_bytes()
    journal = open_journal()
    keep(journal, 1, flush=False)
    with pytest.raises(JournalError, match=r"journal\.db"):
        journal.flush()
    assert (None if path.is_dir() else path.read_bytes()) == before


@pytest.mark.parametrize("make", NOT_JOURNALS.values(), ids=NOT_JOURNALS.keys())
@pytest.mark.parametrize("command", ["log", "verify", "stats", "export"])
def test_what_is_no_journal_is_not_read(command: str, make: Any, path: Path, cli: Any) -> None:
    make(path)
    ended = cli(command, "--journal", path)
    assert (ended.code, ended.out) == (1, "")
    assert str(path) in ended.err


def test_an_empty_file_becomes_a_journal(path: Path, journal: Any, keep: Any, kept: Any) -> None:
    path.touch()
    keep(journal, 1)
    assert kept() == ["1"]


def test_a_journal_that_lost_its_name_says_so(rich: Path, open_journal: Any, keep: Any, sql: Any) -> None:
    sql("DELETE FROM meta")
    journal = open_journal()
    keep(journal, 1, flush=False)
    with pytest.raises(JournalError, match=r"lost its name.*fairlead verify"):
        journal.flush()


def test_hooks_without_a_journal_touch_no_disk(step: Any, home: Path) -> None:
    Hooks().dispatch_sync(step(1))
    assert not (home / "state").exists()


def test_a_writer_that_could_not_be_marked_on_a_full_disk_is_marked_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lock of the first try must not keep the second one waiting."""

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(OSError, match="No space left"):
            WriterMark(tmp_path / "journal.db", "writer")
    mark = WriterMark(tmp_path / "journal.db", "writer")
    mark.close()
