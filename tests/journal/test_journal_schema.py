"""Schema 2: an old journal goes on, bodies can be erased, and sessions are counted as they are written."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead import Hooks, change, deny
from fairlead.journal import Journal, JournalError, writer
from fairlead.journal import store as store_module
from fairlead.journal.digest_chain import genesis, old_link, seal
from fairlead.journal.entry import OLD_COLUMNS, entry_of
from fairlead.journal.erasing import erase
from fairlead.journal.reading import Filter, Reader
from fairlead.journal.schema import APPLICATION, RARE, SCHEMA, SCRIPTS
from fairlead.journal.store import Head, JournalFile, write_head
from fairlead.journal.verify import verify
from fairlead.lifecycle import BeforeTool

NAME = "0" * 32


def old_body(number: int, **more: Any) -> dict[str, Any]:
    """A record as schema 1 had it."""
    step = {
        "fairlead": 1, "event": "before_tool", "session_id": f"s{number % 2}", "tool": "bash", "user_id": "ann",
        "args": {"command": f"echo {number}"}, "call_id": str(number),
    }  # fmt: skip
    control = "deny" if number % 3 == 0 else "proceed"
    said = {"said": [{"hook": "judge", "verdict": {"control": "deny", "reason": "no"}}]} if control == "deny" else {}
    ran = [["judge", "transform", "verdict" if said else "none", 0.001]]
    about = {"v": 1, "id": f"old-{number}", "at": number * 10**9, "kind": "decision", "took": 0.001, "control": control}
    return {**about, "step": step, "runs": ran, **said, **more}


def old_journal(path: Path, count: int = 6) -> Path:
    """A journal of schema 1, written as the program of that time did."""
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(f"PRAGMA application_id = {APPLICATION}; PRAGMA auto_vacuum = INCREMENTAL")
    db.executescript(f"{SCRIPTS[1]} INSERT INTO meta VALUES ('journal', '{NAME}'); PRAGMA user_version = 1")
    digest = genesis(NAME)
    for seq in range(1, count + 1):
        entry = entry_of(old_body(seq))
        digest = old_link(digest, seq, entry.body)
        row = (seq, *entry.columns[: len(OLD_COLUMNS)], entry.body, digest)
        db.execute(f"INSERT INTO records VALUES ({', '.join('?' * len(row))})", row)
        db.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", [(seq, *run) for run in entry.runs])
    db.close()
    write_head(path, Head(count, digest.hex(), NAME))
    return path


@pytest.fixture
def old(path: Path) -> Path:
    return old_journal(path)


# --- old journals ---------------------------------------------------------------------------------


def test_an_old_journal_is_read_as_it_is(old: Path) -> None:
    with Reader(old) as reader:
        assert [record.effect for record in reader.records()] == ["proceed", "proceed", "deny"] * 2
        assert [record.seq for record in reader.records(Filter(decision="deny"))] == [3, 6]
        assert reader.counts() == {"proceed": 4, "deny": 2}
        assert [stats.denials for stats in reader.stats()] == [2]


def test_an_old_journal_verifies_as_it_is(old: Path) -> None:
    assert verify(old).verdict == "consistent"


def test_an_old_journal_goes_on_under_a_note(old: Path, keep: Any, open_journal: Any, records: Any, notes: Any) -> None:
    journal = open_journal()
    keep(journal, "new")
    journal.close()
    assert [(note["note"], note["was"], note["now"]) for note in notes()] == [("schema", 1, SCHEMA)]
    assert [record.body["v"] for record in records()] == [1] * 6 + [2, 2]
    assert verify(old).verdict == "consistent"


def test_an_old_journal_that_went_on_has_the_tables_of_a_new_one(
    old: Path, tmp_path: Path, keep: Any, open_journal: Any, sql: Any
) -> None:
    keep(open_journal(), "new")
    keep(open_journal(tmp_path / "fresh.db"), "new")
    tables = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
    assert sql(tables) == sql(tables, where=tmp_path / "fresh.db")


def test_what_an_old_journal_has_is_found_and_counted_after_it_went_on(old: Path, keep: Any, open_journal: Any) -> None:
    journal = open_journal()
    keep(journal, "new", session_id="s1")
    journal.close()
    with Reader(old) as reader:
        assert [record.seq for record in reader.records(Filter(decision="deny"))] == [3, 6]
        assert {row.session: (row.records, row.denied) for row in reader.sessions()} == {"s0": (3, 1), "s1": (4, 1)}


@pytest.mark.parametrize("seq", range(1, 7))
def test_a_changed_record_of_an_old_journal_is_found_after_it_went_on(
    seq: int, old: Path, keep: Any, open_journal: Any, sql: Any
) -> None:
    journal = open_journal()
    keep(journal, "new")
    journal.close()
    sql("UPDATE records SET body = replace(CAST(body AS TEXT), 'echo', 'ohce') WHERE seq = ?", seq)
    sql("UPDATE records SET body = CAST(body AS BLOB) WHERE seq = ?", seq)
    assert verify(old).record == seq


def test_a_record_without_a_salt_after_the_note_is_bad(old: Path, keep: Any, open_journal: Any, sql: Any) -> None:
    journal = open_journal()
    keep(journal, "new")
    journal.close()
    sql("UPDATE records SET salt = NULL WHERE seq = 8")
    assert verify(old).record == 8


def test_an_old_journal_with_tables_of_others_does_not_go_on(old: Path, keep: Any, open_journal: Any, sql: Any) -> None:
    sql("CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END")
    with pytest.raises(JournalError, match="trigger 't' is none of fairlead's"):
        keep(open_journal(on_failure="closed"), "new")


@pytest.mark.parametrize("loss", ["records", "head"])
def test_what_an_old_journal_has_lost_is_still_told_after_it_went_on(
    loss: str, old: Path, keep: Any, open_journal: Any, sql: Any, notes: Any
) -> None:
    if loss == "records":
        for table in ("records", "runs"):
            sql(f"DELETE FROM {table} WHERE seq > 3")
    else:
        old.with_name("journal.db.head").unlink()
    assert verify(old).verdict in ("bad", "unproven")
    journal = open_journal()
    keep(journal, "new")
    journal.close()
    assert [note["note"] for note in notes()] == ["damaged", "schema"]
    assert verify(old).verdict == "bad"


def test_a_kill_while_an_old_journal_goes_on_leaves_the_old_one(old: Path, run: Any) -> None:
    code = """
import fairlead.journal.store as store
store.JournalFile._count_sessions = lambda self, written: os.kill(os.getpid(), signal.SIGKILL)
Hooks(journal=Journal(path, durability="full")).dispatch_sync(step(1))
"""
    assert run(code).code == -9
    assert verify(old).verdict == "consistent"
    with Reader(old) as reader:
        assert reader.version == 1


# --- erasing --------------------------------------------------------------------------------------


def in_the_file(path: Path, text: str) -> bool:
    files = [path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))]
    return any(text.encode() in file.read_bytes() for file in files if file.exists())


@pytest.fixture
def private(path: Path, open_journal: Any, keep: Any) -> Path:
    """Three records, the second with something that must go: in a short text and in a long one."""
    journal = open_journal()
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: deny("no") if "PRIVATE" in step.args["command"] else None, on="before_tool", name="judge")
    shared = "this is in two of them " + "s" * 600
    for number, command in enumerate(["ls", "echo PRIVATE-SHORT", shared]):
        about = {"session_id": "s", "metadata": {"long": f"PRIVATE-LONG{number}" + "x" * 600, "shared": shared}}
        keep(journal, number, hooks=hooks, args={"command": command}, **about)
    journal.close()
    return path


def test_a_journal_with_an_erased_body_still_verifies_and_says_so(private: Path, records: Any, cli: Any) -> None:
    assert erase(private, [records()[1].id], why="ann asked for it") == [2]
    checked = verify(private)
    assert (checked.verdict, checked.erased) == ("consistent", 1)
    assert "erased the bodies of records [2]" in checked.notes[0]
    ended = cli("verify", "--journal", private)
    assert ended.code == 0
    assert "the bodies of 1 records are erased" in ended.out


def test_nothing_of_an_erased_body_is_left_in_the_file(private: Path) -> None:
    assert in_the_file(private, "PRIVATE-SHORT")
    assert in_the_file(private, "PRIVATE-LONG1")
    erase(private, ["2"])
    assert not in_the_file(private, "PRIVATE-SHORT")
    assert not in_the_file(private, "PRIVATE-LONG1")


def test_what_other_records_have_is_not_erased(private: Path, records: Any) -> None:
    erase(private, ["2"])
    kept = [record.body["step"]["metadata"] for record in records() if record.is_whole]
    assert [about["long"][:13] for about in kept] == ["PRIVATE-LONG0", "PRIVATE-LONG2"]
    assert all("is missing" not in about["shared"] for about in kept)


def test_an_erased_record_is_still_listed_and_counted(private: Path, cli: Any, records: Any) -> None:
    name = records()[1].id
    erase(private, ["2"])
    ended = cli("log", "--decision", "deny", "--journal", private)
    assert name in ended.out
    assert "its body was erased" in ended.out
    assert cli("show", name, "--journal", private).code == 0
    assert cli("export", "--format", "otlp", "--journal", private).code == 0
    with Reader(private) as reader:
        assert [stats.denials for stats in reader.stats()] == [1]


def erase_by_hand(sql: Any, seq: int) -> None:
    ((salt, body),) = sql("SELECT salt, body FROM records WHERE seq = ?", seq)
    sql("UPDATE records SET body = x'', salt = NULL, erased = ? WHERE seq = ?", seal(salt, body), seq)


def test_a_body_that_is_gone_without_a_note_is_a_doubt(private: Path, sql: Any) -> None:
    erase(private, ["2"])
    erase_by_hand(sql, 1)
    checked = verify(private)
    assert (checked.verdict, checked.erased) == ("unproven", 2)
    assert "no note in the chain says who erased them: the first is that of record 1" in str(checked.doubt)


def test_a_note_covers_no_body_that_is_erased_after_it(private: Path, sql: Any, open_journal: Any, keep: Any) -> None:
    """A note that names numbers ahead of itself must not excuse what is erased there later."""
    store = JournalFile(private)
    told = {"v": 2, "id": "x-1", "at": 1, "kind": "note", "note": "erased", "records": [5], "user": "eve"}
    store.append([entry_of(told)])
    store.close()
    keep(open_journal(), "later")
    erase_by_hand(sql, 5)
    assert verify(private).verdict == "unproven"


def test_a_note_is_not_erased(private: Path, open_journal: Any, keep: Any) -> None:
    private.with_name("journal.db.head").unlink()
    journal = open_journal()
    keep(journal, "next")
    journal.close()
    with pytest.raises(JournalError, match=r"record 4 of .* is a note, and cannot be erased"):
        erase(private, ["1", "4"])
    checked = verify(private)
    assert (checked.verdict, checked.record, checked.erased) == ("bad", 4, 0)


def test_a_note_that_was_erased_by_hand_is_bad(private: Path, open_journal: Any, sql: Any) -> None:
    with open_journal() as journal:
        journal.note("paused", who="me")
    erase_by_hand(sql, 4)
    assert (verify(private).verdict, verify(private).record) == ("bad", 4)


@pytest.fixture
def reading(private: Path) -> Iterator[sqlite3.Connection]:
    """A process that reads, and so keeps the pages as they were."""
    with closing(sqlite3.connect(private, isolation_level=None, check_same_thread=False)) as db:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM records").fetchone()
        yield db


def test_erasing_says_that_a_reader_keeps_the_body_in_the_file(
    private: Path, reading: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "LOCK_TIMEOUT", 0.1)
    with pytest.raises(JournalError, match=r"still in the file .* erase the same records again"):
        erase(private, ["2"])
    assert in_the_file(private, "PRIVATE-SHORT")
    reading.close()
    erase(private, ["2"])
    assert not in_the_file(private, "PRIVATE-SHORT")
    assert verify(private).verdict == "consistent"


def test_erasing_waits_for_a_reader_while_others_write(
    private: Path, reading: sqlite3.Connection, open_journal: Any, keep: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = open_journal()
    tries: list[float] = []

    def sleep(seconds: float) -> None:
        if seconds != store_module.CHECKPOINT_POLL:
            return
        tries.append(seconds)
        if len(tries) == 1:
            threading.Thread(target=keep, args=(journal, "meanwhile")).start()
            written.wait(10)
        else:
            reading.close()

    written, append = threading.Event(), JournalFile.append
    monkeypatch.setattr(JournalFile, "append", lambda *args: (append(*args), written.set())[0])
    monkeypatch.setattr(store_module.time, "sleep", sleep)
    erase(private, ["2"])
    assert written.is_set()
    assert not in_the_file(private, "PRIVATE-SHORT")


def test_a_cut_is_still_told_after_something_was_erased(private: Path, sql: Any) -> None:
    for statement in ("DELETE FROM records WHERE seq = 3", "DELETE FROM runs WHERE seq = 3"):
        sql(statement)
    assert verify(private).record == 3
    erase(private, ["1"])
    assert "records 3 to 3 are missing at the end" in str(verify(private).problem)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET erased = x'00' WHERE seq = 2",
        "UPDATE records SET body = x'7b7d' WHERE seq = 2",
        "UPDATE records SET salt = x'00' WHERE seq = 2",
        "UPDATE records SET tool = 'other' WHERE seq = 2",
        "UPDATE records SET effect = 'proceed' WHERE seq = 2",
        "UPDATE records SET user = 'bob' WHERE seq = 2",
        "UPDATE runs SET hook = 'other' WHERE seq = 2",
        "DELETE FROM runs WHERE seq = 2",
        "UPDATE sessions SET denied = 0",
    ],
)
def test_what_is_left_of_an_erased_record_cannot_be_changed_unnoticed(statement: str, private: Path, sql: Any) -> None:
    erase(private, ["2"])
    sql(statement)
    assert verify(private).verdict == "bad"


def test_a_short_body_cannot_be_guessed_from_its_digest(private: Path, sql: Any) -> None:
    """Two records with the same bytes have digests that say nothing of each other: their salts are random."""
    salts = {salt for (salt,) in sql("SELECT salt FROM records")}
    assert len(salts) == 3
    assert all(len(salt) == 16 for salt in salts)


def test_a_record_of_schema_1_is_not_erased(old: Path, keep: Any, open_journal: Any) -> None:
    journal = open_journal()
    keep(journal, "new")
    journal.close()
    with pytest.raises(JournalError, match="schema 1, and cannot be erased"):
        erase(old, ["3"])
    assert verify(old).verdict == "consistent"


def test_erasing_nothing_is_refused(private: Path) -> None:
    with pytest.raises(JournalError, match="name the records"):
        erase(private, [])


# --- what is rare, and sessions ---------------------------------------------------------------------


def test_what_is_rare_is_found_by_its_index(private: Path, sql: Any) -> None:
    condition, values = Filter(decision="deny").where()
    assert RARE in condition
    query = f"EXPLAIN QUERY PLAN SELECT seq FROM records WHERE {condition} AND seq > 0 ORDER BY seq DESC LIMIT 50"
    assert "by_effect" in str(sql(query, *values))


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", None]), st.sampled_from(["ls", "rm", "fix", "break"]), st.sampled_from(["h", None])
    ),
    min_size=1,
    max_size=25,
)


@settings(deadline=None, max_examples=10, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(actions=ACTIONS, max_size=st.sampled_from([1, 60_000, 1 << 30]))
def test_the_rows_of_sessions_are_what_their_records_come_to(
    tmp_path_factory: Any, actions: list[tuple[Any, ...]], max_size: int
) -> None:
    path = tmp_path_factory.mktemp("sessions") / "journal.db"
    counted: dict[str, Counter[str]] = {}
    writer.PRUNE_INTERVAL, before = 0.0, writer.PRUNE_INTERVAL
    try:
        with Journal(path, max_size=max_size) as journal:
            hooks = Hooks(journal=journal)
            hooks.add(_judge, on="before_tool", name="judge", on_failure="open")
            for session, command, host in actions:
                hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": command}, session_id=session, host=host))
                if session is not None:
                    kinds = {"rm": "denied", "fix": "changed", "break": "failed"}
                    counted.setdefault(session, Counter()).update(("records", kinds.get(command, "")))
                journal.flush()
    finally:
        writer.PRUNE_INTERVAL = before
    assert verify(path).problem is None
    with Reader(path) as reader:
        rows = {row.session: row for row in reader.sessions()}
    if max_size == 1 << 30:  # else some are pruned as a whole
        assert rows.keys() == counted.keys()
    for session, row in rows.items():
        told = counted[session]
        assert (row.records, row.denied, row.changed, row.failed) == (
            told["records"], told["denied"], told["changed"], told["failed"],
        )  # fmt: skip


def _judge(step: Any) -> Any:
    match step.args["command"]:
        case "rm":
            return deny("no")
        case "fix":
            return change(args={"command": "fixed"})
        case "break":
            raise RuntimeError("broken")
    return None


def test_the_newest_sessions_come_first_and_page_by_page(open_journal: Any, path: Path, keep: Any) -> None:
    journal = open_journal()
    for number in range(5):
        keep(journal, number, session_id=f"s{number}")
    with Reader(path) as reader:
        first = reader.sessions(limit=2)
        assert [row.session for row in first] == ["s4", "s3"]
        assert [row.session for row in reader.sessions(limit=2, before=first[-1].last)] == ["s2", "s1"]


# --- a clock that leaps -----------------------------------------------------------------------------

LEAPS: dict[str, Callable[[int], int]] = {
    "400 days ahead": lambda now: now + 400 * 86400 * 10**9,
    "40 years ahead": lambda now: now + 40 * 366 * 86400 * 10**9,
    "two days ahead": lambda now: now + 2 * 86400 * 10**9,
    "back to 1970": lambda now: 1,
}


@pytest.mark.parametrize("leap", LEAPS.values(), ids=LEAPS.keys())
def test_one_leap_of_the_clock_prunes_nothing(
    leap: Callable[[int], int], open_journal: Any, keep: Any, kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PRUNE_INTERVAL", 0.0)
    journal, now = open_journal(max_age=86400), writer.time.time_ns()
    hooks = keep(journal, *range(20))
    monkeypatch.setattr(writer.time, "time_ns", lambda: leap(now))
    keep(journal, "leapt", hooks=hooks)
    monkeypatch.setattr(writer.time, "time_ns", lambda: now + 10**9)
    keep(journal, "back", hooks=hooks)
    assert len(kept()) == 22


def test_a_clock_that_goes_on_after_a_leap_is_believed(
    open_journal: Any, keep: Any, kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that was off for a year prunes once it has written for an hour."""
    monkeypatch.setattr(writer, "PRUNE_INTERVAL", 0.0)
    journal, later = open_journal(max_age=86400), writer.time.time_ns() + 400 * 86400 * 10**9
    hooks = keep(journal, *range(5))
    for minutes in (0, 30, 59):
        monkeypatch.setattr(writer.time, "time_ns", lambda at=later + minutes * 60 * 10**9: at)
        keep(journal, f"later{minutes}", hooks=hooks)
    assert len(kept()) == 8
    monkeypatch.setattr(writer.time, "time_ns", lambda: later + 61 * 60 * 10**9)
    keep(journal, "later61", hooks=hooks)
    assert kept() == ["4", "later0", "later30", "later59", "later61"]


def test_two_leaps_of_the_clock_prune_nothing(
    open_journal: Any, keep: Any, kept: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PRUNE_INTERVAL", 0.0)
    journal, now = open_journal(max_age=86400), writer.time.time_ns()
    for number, days in enumerate((0, 0, 400, 0, 400.05, 0)):
        monkeypatch.setattr(writer.time, "time_ns", lambda at=now + int(days * 86400e9) + number: at)
        keep(journal, number)
    assert len(kept()) == 6


HOUR = 3600 * 10**9
READINGS = st.lists(
    st.tuples(
        st.sampled_from([1, 60 * 10**9, HOUR // 2, HOUR, 5 * HOUR, 240 * HOUR]),  # since the reading before
        st.sampled_from([HOUR // 3, HOUR, 22 * HOUR, 9600 * HOUR, -HOUR, -9600 * HOUR])
        | st.integers(-(10**18), 10**18),
        st.booleans(),
    ),
    min_size=2,
    max_size=30,
)


@settings(deadline=None, max_examples=60, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(readings=READINGS, hours=st.sampled_from([1, 12, 720]))
def test_a_clock_that_leaps_now_and_then_prunes_no_young_record(
    tmp_path_factory: Any, readings: list[tuple[int, int, bool]], hours: int
) -> None:
    """No leap is next to another one. What is pruned is older than the limit by the clock that never leaps."""
    store = JournalFile(tmp_path_factory.mktemp("clock") / "journal.db")
    honest: dict[int, int] = {}
    now, leapt = 2 * 10**18, False
    try:
        for seq, (passed, leap, leaps) in enumerate(readings, 1):
            now += passed
            leapt = leaps and not leapt
            told = {"v": 2, "id": f"x-{seq}", "at": now + (leap if leapt else 0), "kind": "note", "note": "x"}
            store.append([entry_of(told)])
            honest[seq] = now
            keep = store.oldest_kept(1 << 40, hours * 3600.0)
            if keep is not None:
                assert all(now - honest[gone] > hours * HOUR for gone in honest if gone < keep)
                store.prune(keep)
    finally:
        store.close()


def test_an_entry_is_told_by_its_object_alone() -> None:
    body = old_body(3)
    assert entry_of(body) == entry_of(msgspec.json.decode(entry_of(body).body))
