"""Whatever is changed, taken out, put in or put elsewhere in a journal, `verify` notices, and says where."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead import Hooks, deny, inject
from fairlead.journal import Journal, JournalError, writer
from fairlead.journal.anchor import AnchoredHead
from fairlead.journal.digest_chain import genesis, link, seal
from fairlead.journal.entry import COLUMNS, entry_of
from fairlead.journal.store import Head, sessions_of, write_head
from fairlead.journal.verify import VerifyResult, verify
from fairlead.lifecycle import BeforeModel, BeforeTool

quick = settings(
    deadline=None, max_examples=40, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
SAMPLE: dict[str, Path] = {}
RECORDS = 6


@pytest.fixture
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A journal that is made once, and copied by those who change it."""
    if "made" not in SAMPLE:
        path = tmp_path_factory.mktemp("sample") / "journal.db"
        with Journal(path) as journal:
            hooks = Hooks(journal=journal)
            hooks.add(
                lambda step: deny("no") if "rm" in step.target.command else inject("hm"), on="before_tool", name="a"
            )
            hooks.add(lambda step: None, on="before_tool", name="b")
            for number in range(RECORDS - 1):
                about = {"session_id": f"s{number}", "host": "h", "args": {"command": f"rm {number} " + "x" * 600}}
                hooks.dispatch_sync(BeforeTool(tool="bash", call_id=str(number), **about))
            journal.note("paused", who="me")
        _settle(path)
        SAMPLE["made"] = path
    return SAMPLE["made"]


def _settle(path: Path) -> None:
    """All of it in one file."""
    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def copy(sample: Path, folder: Path) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    for suffix in ("", ".head"):
        shutil.copy(sample.with_name(sample.name + suffix), folder / f"journal.db{suffix}")
    return folder / "journal.db"


@pytest.fixture
def changed(sample: Path, tmp_path: Path) -> Callable[..., VerifyResult]:
    """What is said of a journal after some statements."""

    def changed(*statements: str, values: tuple[Any, ...] = ()) -> VerifyResult:
        path = copy(sample, tmp_path / "copy")
        db = sqlite3.connect(path, isolation_level=None)
        for statement in statements:
            db.execute(statement, values)
        db.close()
        return verify(path)

    return changed


def test_an_unchanged_journal_verifies(sample: Path, tmp_path: Path) -> None:
    checked = verify(copy(sample, tmp_path / "copy"))
    assert (checked.verdict, checked.records) == ("consistent", RECORDS)


# --- any byte -------------------------------------------------------------------------------------------

CELLS = [
    *(("records", column, "seq") for column in ("body", "digest")),
    *(("records", column, "seq") for column in (*COLUMNS, "salt", "erased")),
    *(("sessions", column, "session") for column in ("session", "host", "first", "last", "began", "records", "denied")),
    *(("runs", column, "seq") for column in ("place", "hook", "outcome", "took", "control")),
    ("texts", "digest", "digest"),
    ("texts", "body", "digest"),
    ("meta", "value", "key"),
]


@quick
@given(cell=st.sampled_from(CELLS), data=st.data())
def test_any_changed_byte_is_noticed(
    sample: Path, tmp_path_factory: Any, cell: tuple[str, str, str], data: Any
) -> None:
    table, column, _ = cell
    path = copy(sample, tmp_path_factory.mktemp("changed"))
    db = sqlite3.connect(path, isolation_level=None)
    key = {"records": "seq", "runs": "seq, place", "texts": "digest", "meta": "key", "sessions": "session"}[table]
    rows = db.execute(f"SELECT {key}, typeof({column}), CAST({column} AS BLOB) FROM {table} ORDER BY 1, 2").fetchall()
    *at, kind, value = data.draw(st.sampled_from(rows))
    where = " AND ".join(f"{name} = ?" for name in key.split(", "))
    if kind == "null":
        new: Any = data.draw(st.sampled_from(["x", b"x", 1]))
    elif kind == "integer":
        new = int(value) ^ (1 << data.draw(st.integers(0, 30)))
    else:
        place = data.draw(st.integers(0, len(value) - 1))
        new = bytearray(value)
        new[place] ^= 1 << data.draw(st.integers(0, 7))
        new = bytes(new)
    cast = "CAST(? AS TEXT)" if kind == "text" and data.draw(st.booleans()) else "?"
    try:
        db.execute(f"UPDATE {table} SET {column} = {cast} WHERE {where}", (new, *at))
    except sqlite3.IntegrityError:
        return
    finally:
        db.close()
    assert verify(path).verdict == "bad"


@quick
@given(seq=st.integers(1, RECORDS), column=st.sampled_from(["body", "digest"]), data=st.data())
def test_a_changed_record_is_named(sample: Path, tmp_path_factory: Any, seq: int, column: str, data: Any) -> None:
    path = copy(sample, tmp_path_factory.mktemp("changed"))
    db = sqlite3.connect(path, isolation_level=None)
    ((value,),) = db.execute(f"SELECT {column} FROM records WHERE seq = ?", (seq,)).fetchall()
    place = data.draw(st.integers(0, len(value) - 1))
    new = value[:place] + bytes([value[place] ^ 1]) + value[place + 1 :]
    db.execute(f"UPDATE records SET {column} = ? WHERE seq = ?", (new, seq))
    db.close()
    assert verify(path).record == seq


@quick
@given(data=st.data())
def test_a_byte_of_the_file_never_breaks_verify(sample: Path, tmp_path_factory: Any, data: Any) -> None:
    path = copy(sample, tmp_path_factory.mktemp("changed"))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 20))):
        content[data.draw(st.integers(100, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    assert verify(path).verdict in ("bad", "consistent")  # which it is where nothing was written yet


STRANGE_TYPES = {
    "a number as bytes": "UPDATE runs SET seq = x'31' WHERE seq = 2",
    "a number as a text": "UPDATE runs SET seq = 'two' WHERE seq = 2",
    "a body as a text": "UPDATE records SET body = CAST(body AS TEXT) WHERE seq = 2",
    "a name as bytes": "UPDATE meta SET value = CAST(value AS BLOB)",
    "a name as a number": "UPDATE meta SET value = 5",
    "a time as a text": "UPDATE records SET at = 'now' WHERE seq = 2",
    "a text that is none": "UPDATE records SET tool = CAST(x'ff' AS TEXT) WHERE seq = 2",
    "no name": "DELETE FROM meta",
    "no table": "DROP TABLE runs",
    "no texts": "DROP TABLE texts",
}


@pytest.mark.parametrize("statement", STRANGE_TYPES.values(), ids=STRANGE_TYPES.keys())
def test_a_value_of_another_type_is_noticed(statement: str, changed: Any) -> None:
    assert changed(statement).verdict == "bad"


# --- any record -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seq", range(1, RECORDS + 1))
@pytest.mark.parametrize("with_runs", [True, False])
def test_a_deleted_record_is_missed(seq: int, with_runs: bool, changed: Any) -> None:
    deletions = [f"DELETE FROM records WHERE seq = {seq}"]
    if with_runs:
        deletions.append(f"DELETE FROM runs WHERE seq = {seq}")
    checked = changed(*deletions)
    assert (checked.verdict, checked.record) == ("bad", seq)


@pytest.mark.parametrize("condition", ["seq > 1", "seq < 5", "seq IN (2, 4)", "seq >= 5", "1"])
def test_several_deleted_records_are_missed(condition: str, changed: Any) -> None:
    assert changed(f"DELETE FROM records WHERE {condition}", f"DELETE FROM runs WHERE {condition}").verdict == "bad"


def test_the_newest_record_cannot_be_cut_off_unnoticed(changed: Any) -> None:
    checked = changed(f"DELETE FROM records WHERE seq = {RECORDS}", f"DELETE FROM runs WHERE seq = {RECORDS}")
    assert f"record {RECORDS} is missing" in checked.problem


def test_deleted_records_that_leave_no_gap_are_missed(changed: Any) -> None:
    gone = [f"DELETE FROM {table} WHERE seq = 2" for table in ("records", "runs")]
    moved = [
        f"UPDATE {table} SET seq = seq - 1 WHERE seq = {seq}"
        for seq in range(3, RECORDS + 1)
        for table in ("records", "runs")
    ]
    assert changed(*gone, *moved).record == 2


def test_two_records_that_changed_places_are_noticed(changed: Any) -> None:
    swap = [
        f"UPDATE {table} SET seq = {new} WHERE seq = {old}"
        for old, new in ((2, 100), (3, 2), (100, 3))
        for table in ("records", "runs")
    ]
    assert changed(*swap).record == 2


def forged(path: Path, seq: int) -> None:
    """Put a record in, and count on from there."""
    db = sqlite3.connect(path, isolation_level=None)
    (last,) = db.execute("SELECT max(seq) FROM records").fetchone()
    for at in range(last, seq - 1, -1):
        for table in ("records", "runs"):
            db.execute(f"UPDATE {table} SET seq = seq + 1 WHERE seq = ?", (at,))
    ((before,),) = db.execute("SELECT digest FROM records WHERE seq = ?", (seq - 1,)).fetchall()
    entry = entry_of({"v": 2, "id": "forged-1", "kind": "note", "at": 1, "note": "forged"})
    digest = link(before, seq, entry.columns, entry.runs, seal(b"salt", entry.body))
    db.execute(
        "INSERT INTO records (seq, id, at, kind, body, digest, salt) VALUES (?, 'forged-1', 1, 'note', ?, ?, ?)",
        (seq, entry.body, digest, b"salt"),
    )
    db.close()


@pytest.mark.parametrize("seq", [2, 4, RECORDS])
def test_a_forged_record_is_noticed_at_the_next_one(seq: int, sample: Path, tmp_path: Path) -> None:
    path = copy(sample, tmp_path / "copy")
    forged(path, seq)
    assert verify(path).record in (seq, seq + 1)


@pytest.mark.parametrize("seq", [0, -1, RECORDS + 2])
def test_a_record_out_of_the_row_is_noticed(seq: int, changed: Any) -> None:
    columns = "at, kind, body, digest"
    twin = f"INSERT INTO records (seq, id, {columns}) SELECT ?, 'forged-1', {columns} FROM records LIMIT 1"
    assert changed(twin, values=(seq,)).verdict == "bad"


@pytest.mark.parametrize(
    "statement", ["DELETE FROM texts", "DELETE FROM texts WHERE rowid = (SELECT max(rowid) FROM texts)"]
)
def test_deleted_texts_are_missed(statement: str, changed: Any) -> None:
    checked = changed(statement)
    assert "has lost a text" in checked.problem
    assert checked.record is not None


@pytest.mark.parametrize("seq", range(1, RECORDS))
def test_deleted_runs_are_missed(seq: int, changed: Any) -> None:
    assert changed(f"DELETE FROM runs WHERE seq = {seq}").record == seq


def test_a_run_that_was_put_in_is_noticed(changed: Any) -> None:
    assert changed("INSERT INTO runs VALUES (3, 9, 'x', 'none', 1, NULL)").record == 3


def test_a_run_of_no_record_is_noticed(changed: Any) -> None:
    assert changed(f"INSERT INTO runs VALUES ({RECORDS + 5}, 0, 'x', 'none', 1, NULL)").verdict == "bad"


# --- the head -----------------------------------------------------------------------------------------------


@pytest.fixture
def with_head(sample: Path, tmp_path: Path) -> Callable[[bytes | None], VerifyResult]:
    """What is said of a journal with another head."""

    def with_head(content: bytes | None) -> VerifyResult:
        path = copy(sample, tmp_path / "copy")
        head = path.with_name("journal.db.head")
        head.unlink()
        if content is not None:
            head.write_bytes(content)
        return verify(path)

    return with_head


def head_of(sample: Path) -> dict[str, Any]:
    return dict(json.loads(sample.with_name("journal.db.head").read_bytes()))


@pytest.mark.parametrize("content", [None, b"", b"garbage", b"{}", b"\xff", b'{"seq": "1", "digest": 1, "journal": 2}'])
def test_a_head_that_is_gone_or_garbage_is_missed(content: bytes | None, with_head: Any) -> None:
    checked = with_head(content)
    assert checked.verdict == "unproven"
    assert "head beside the file is missing" in checked.doubt


CHANGED_HEADS = {
    "another digest": {"digest": "0" * 64},
    "a later number": {"seq": RECORDS + 1},
    "an earlier number": {"seq": RECORDS - 1},
    "number 0": {"seq": 0},
    "a number below 0": {"seq": -5},
    "another journal": {"journal": "0" * 32},
}


@pytest.mark.parametrize("change", CHANGED_HEADS.values(), ids=CHANGED_HEADS.keys())
def test_a_changed_head_is_noticed(change: dict[str, Any], sample: Path, with_head: Any) -> None:
    assert with_head(json.dumps(head_of(sample) | change).encode()).verdict == "bad"


def test_the_head_of_another_journal_is_noticed(with_head: Any, tmp_path: Path, keep: Any, open_journal: Any) -> None:
    keep(open_journal(tmp_path / "other.db"), *range(RECORDS))
    assert "another journal" in with_head((tmp_path / "other.db.head").read_bytes()).problem


def test_a_head_from_before_the_oldest_record_is_noticed(
    open_journal: Any, keep: Any, path: Path, monkeypatch: Any
) -> None:
    journal = open_journal()
    keep(journal, *range(5))
    old = path.with_name("journal.db.head").read_bytes()
    keep(journal, *range(50))
    journal.close()
    monkeypatch.setattr(writer, "PRUNE_INTERVAL", 0.0)
    again = open_journal(max_size=1)
    keep(again, "last")
    again.close()
    path.with_name("journal.db.head").write_bytes(old)
    assert verify(path).verdict == "bad"


def test_a_writer_notes_what_it_found_cut_off(
    rich: Path, sql: Any, open_journal: Any, keep: Any, notes: Any, log: Any
) -> None:
    sql("DELETE FROM records WHERE seq = (SELECT max(seq) FROM records)")
    keep(open_journal(), "next")
    assert [note["note"] for note in notes()][-1] == "damaged"
    assert "missing at the end" in log.text


def test_what_was_cut_off_stays_noticed_though_the_journal_goes_on(
    rich: Path, sql: Any, open_journal: Any, keep: Any
) -> None:
    for table in ("records", "runs"):
        sql(f"DELETE FROM {table} WHERE seq = (SELECT max(seq) FROM records)")
    keep(open_journal(), "next")
    assert verify(rich).verdict == "bad"


CUTS = {"the newest": "seq = (SELECT max(seq) FROM records)", "all": "seq > 0", "all but one": "seq > 1"}


@pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS.keys())
@pytest.mark.parametrize("durability", ["normal", "full"])
def test_what_is_cut_off_under_a_living_writer_stays_noticed(
    cut: str, durability: str, path: Path, sql: Any, open_journal: Any, keep: Any, log: Any
) -> None:
    journal = open_journal(durability=durability)
    hooks = keep(journal, *range(5))
    sql(f"DELETE FROM records WHERE {cut}")
    keep(journal, "next", hooks=hooks)
    keep(journal, "after", hooks=hooks)
    journal.close()
    assert "the journal was found damaged: records" in str(verify(path).problem)
    assert log.text.count("missing at the end") == 1


@pytest.mark.parametrize("change", CHANGED_HEADS.values(), ids=CHANGED_HEADS.keys())
def test_a_head_that_is_changed_under_a_living_writer_stays_noticed(
    change: dict[str, Any], path: Path, open_journal: Any, keep: Any
) -> None:
    journal = open_journal()
    hooks = keep(journal, *range(RECORDS))
    path.with_name("journal.db.head").write_bytes(json.dumps(head_of(path) | change).encode())
    keep(journal, "next", hooks=hooks)
    journal.close()
    assert "the journal was found damaged" in str(verify(path).problem)


def test_a_head_that_is_deleted_under_a_living_writer_stays_noticed(path: Path, open_journal: Any, keep: Any) -> None:
    journal = open_journal()
    hooks = keep(journal, 1)
    path.with_name("journal.db.head").unlink()
    keep(journal, "next", hooks=hooks)
    journal.close()
    assert "the head beside the file is missing" in str(verify(path).problem)


def test_a_head_that_lags_since_its_writer_was_killed_is_no_damage(path: Path, open_journal: Any, keep: Any) -> None:
    journal, head = open_journal(), path.with_name("journal.db.head")
    heads = []
    for number in range(3):
        keep(journal, number)
        heads.append(head.read_bytes())
    for old in heads:
        head.write_bytes(old)
        keep(journal, "next")
    journal.close()
    assert verify(path).verdict == "consistent"


def test_an_emptied_journal_without_a_head_is_unproven(sample: Path, tmp_path: Path, sql: Any) -> None:
    path = copy(sample, tmp_path / "copy")
    for table in ("records", "runs", "sessions", "texts", "uses"):
        sql(f"DELETE FROM {table}", where=path)
    assert verify(path).verdict == "bad"
    path.with_name("journal.db.head").unlink()
    assert verify(path).verdict == "unproven"


def test_an_emptied_journal_without_a_head_is_not_made_good_by_a_writer(
    rich: Path, sql: Any, open_journal: Any, keep: Any
) -> None:
    for table in ("records", "runs", "sessions", "texts", "uses"):
        sql(f"DELETE FROM {table}")
    rich.with_name("journal.db.head").unlink()
    keep(open_journal(), "next")
    assert verify(rich).verdict == "bad"


def test_a_record_that_is_cut_off_is_named_though_its_session_counts_it(
    path: Path, open_journal: Any, keep: Any
) -> None:
    journal = open_journal()
    keep(journal, *range(5), session_id="s")
    journal.close()
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("DELETE FROM records WHERE seq = 5")
    db.close()
    assert verify(path).record == 5


# --- made anew ------------------------------------------------------------------------------------------------


def remade(path: Path, without: int | None = None, first: int = 1, before: str | None = None) -> None:
    """Make a journal anew as a whole, its chain and its head consistent, one record less, or as if it was pruned."""
    db = sqlite3.connect(path, isolation_level=None)
    (name,) = db.execute("SELECT value FROM meta WHERE key = 'journal'").fetchone()
    if without is not None:
        db.execute("DELETE FROM records WHERE seq = ?", (without,))
        db.execute("DELETE FROM runs WHERE seq = ?", (without,))
    digest, seq = genesis(name) if before is None else bytes.fromhex(before), first - 1
    entries = []
    rows = db.execute("SELECT seq, body, salt FROM records ORDER BY seq").fetchall()
    for seq, (old, body, salt) in enumerate(rows, first):
        entry = entry_of(json.loads(body), body)
        entries.append((seq, entry.columns, entry.counts))
        digest = link(digest, seq, entry.columns, entry.runs, seal(salt, body))
        db.execute("UPDATE runs SET seq = ? WHERE seq = ?", (1000 + seq, old))
        db.execute("UPDATE records SET seq = ?, digest = ? WHERE seq = ?", (1000 + seq, digest, old))
    for table in ("records", "runs"):
        db.execute(f"UPDATE {table} SET seq = seq - 1000")
    db.execute("DELETE FROM sessions")
    for session, row in sessions_of(entries).items():
        db.execute(f"INSERT INTO sessions VALUES ({', '.join('?' * 11)})", (session, *row))
    db.close()
    write_head(path, Head(seq, digest.hex(), name))


def test_a_journal_made_anew_is_consistent(sample: Path, tmp_path: Path) -> None:
    path = copy(sample, tmp_path / "copy")
    remade(path, without=3)
    assert verify(path).verdict == "consistent"


def test_an_anchor_shows_a_journal_made_anew(sample: Path, tmp_path: Path) -> None:
    head = head_of(sample)
    path = copy(sample, tmp_path / "copy")
    remade(path, without=3)
    assert verify(path, [AnchoredHead(head["seq"], head["digest"], head["journal"])]).verdict == "bad"


def test_an_anchor_vouches_for_what_is_as_it_was(sample: Path, tmp_path: Path) -> None:
    head = head_of(sample)
    checked = verify(copy(sample, tmp_path / "copy"), [AnchoredHead(head["seq"], head["digest"], head["journal"])])
    assert (checked.verdict, checked.anchored) == ("untampered", RECORDS)


def test_the_anchors_of_another_journal_vouch_for_nothing(sample: Path, tmp_path: Path) -> None:
    head = head_of(sample)
    checked = verify(copy(sample, tmp_path / "copy"), [AnchoredHead(head["seq"], head["digest"], "another")])
    assert "another journal's" in (checked.problem or "")


def test_an_anchor_of_what_was_pruned_vouches_for_nothing(
    open_journal: Any, keep: Any, path: Path, monkeypatch: Any
) -> None:
    journal = open_journal()
    keep(journal, *range(5))
    head = json.loads(path.with_name("journal.db.head").read_bytes())
    keep(journal, *range(50))
    journal.close()
    monkeypatch.setattr(writer, "PRUNE_INTERVAL", 0.0)
    again = open_journal(max_size=1)
    keep(again, "last")
    again.close()
    checked = verify(path, [AnchoredHead(head["seq"], head["digest"], head["journal"])])
    assert checked.verdict == "unproven"
    assert f"record {head['seq']} is the newest that was anchored" in checked.doubt


def invented(sample: Path, folder: Path, first: int, before: str | None = None) -> Path:
    """A journal under the name of another, which begins with some number and says that what was before is pruned."""
    path = copy(sample, folder)
    name = head_of(sample)["journal"]
    through = before or genesis(name).hex()
    note = {"v": 2, "id": "x-1", "at": 1, "kind": "note", "note": "pruned", "through": first - 1, "digest": through}
    entry = entry_of(note)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(
        "INSERT INTO records (seq, id, at, kind, body, digest, salt) VALUES (500, 'x-1', 1, 'note', ?, x'00', x'01')",
        (entry.body,),
    )
    db.close()
    remade(path, first=first, before=before)
    assert head_of(path)["journal"] == name
    return path


def test_a_forged_journal_that_begins_after_the_last_anchor_is_not_believed(sample: Path, tmp_path: Path) -> None:
    head = head_of(sample)
    path = invented(sample, tmp_path / "copy", first=head["seq"] + 2)
    assert verify(path).verdict == "consistent"
    checked = verify(path, [AnchoredHead(head["seq"], head["digest"], head["journal"])])
    assert (checked.verdict, checked.anchored) == ("unproven", None)


def test_a_forged_journal_that_begins_right_after_the_last_anchor_is_bad(sample: Path, tmp_path: Path) -> None:
    head = head_of(sample)
    path = invented(sample, tmp_path / "copy", first=head["seq"] + 1)
    assert verify(path, [AnchoredHead(head["seq"], head["digest"], head["journal"])]).verdict == "bad"


def test_a_forged_journal_that_names_the_anchored_digest_is_not_believed(sample: Path, tmp_path: Path) -> None:
    head = head_of(sample)
    path = invented(sample, tmp_path / "copy", first=head["seq"] + 1, before=head["digest"])
    assert verify(path).verdict == "consistent"
    checked = verify(path, [AnchoredHead(head["seq"], head["digest"], head["journal"])])
    assert (checked.verdict, checked.anchored) == ("unproven", None)


def test_no_anchors_at_all_prove_nothing(sample: Path, tmp_path: Path) -> None:
    assert verify(copy(sample, tmp_path / "copy"), []).verdict == "unproven"


# --- tables that are not ours -----------------------------------------------------------------------------------

STRANGE_TABLES = {
    "a trigger that drops": "CREATE TRIGGER t AFTER INSERT ON records BEGIN DELETE FROM records; END",
    "a trigger that changes": "CREATE TRIGGER t AFTER INSERT ON runs BEGIN UPDATE runs SET hook = 'x'; END",
    "a trigger on a session": "CREATE TRIGGER t BEFORE UPDATE ON sessions BEGIN SELECT RAISE(IGNORE); END",
    "a view": "CREATE VIEW v AS SELECT * FROM records",
    "another table": "CREATE TABLE other (x)",
    "another index": "CREATE INDEX other ON records (tool)",
    "another column": "ALTER TABLE runs ADD COLUMN x",
    "no index": "DROP INDEX by_session",
    "a renamed table": "ALTER TABLE uses RENAME TO used",
}


@pytest.mark.parametrize("statement", STRANGE_TABLES.values(), ids=STRANGE_TABLES.keys())
def test_a_file_with_other_tables_is_bad(statement: str, changed: Any) -> None:
    checked = changed(statement)
    assert checked.verdict == "bad"
    assert "tables are not what fairlead makes" in checked.problem


@pytest.mark.parametrize("statement", STRANGE_TABLES.values(), ids=STRANGE_TABLES.keys())
def test_a_writer_acknowledges_nothing_in_a_file_with_other_tables(
    statement: str, open_journal: Any, keep: Any, sql: Any, log: Any
) -> None:
    journal = open_journal(on_failure="closed")
    hooks = keep(journal, 1)
    sql(statement)
    with pytest.raises(JournalError, match="cannot be trusted to keep"):
        keep(journal, 2, hooks=hooks)
    assert sql("SELECT count(*) FROM records")[0][0] == 1


TRIGGER = (
    "CREATE TRIGGER {} AFTER INSERT ON records WHEN new.seq > 0 BEGIN DELETE FROM records WHERE seq = new.seq; END"
)
HIDDEN = {
    "a trigger with a name of statistics": ("trigger", "sqlite_stat7", "records", TRIGGER.format("sqlite_stat7")),
    "a trigger that says it is statistics": ("table", "sqlite_stat1", "sqlite_stat1", TRIGGER.format("t")),
    "a trigger without a name": ("trigger", None, "records", TRIGGER.format("t")),
    "a trigger without a type": (None, "t", "records", TRIGGER.format("t")),
    "a trigger with the name of an index": ("index", "by_id", "records", TRIGGER.format("t")),
    "a table with a name of SQLite's": ("table", "sqlite_other", "sqlite_other", "CREATE TABLE sqlite_other (x)"),
}
CHANGED_TABLES = {
    "a collation": ("records", "id TEXT", "id TEXT COLLATE NOCASE"),
    "a default": ("records", "salt BLOB", "salt BLOB DEFAULT x'00'"),
    "a check": ("records", "salt BLOB", "salt BLOB CHECK (seq < 100)"),
    "a conflict that is ignored": ("records", "session TEXT", "session TEXT NOT NULL ON CONFLICT IGNORE"),
    "a key that is none": ("records", "PRIMARY KEY", "PRIMARY\u00a0KEY"),
    "a comment": ("meta", "WITHOUT ROWID", "/* x */ WITHOUT ROWID"),
}


@pytest.fixture
def hide() -> Callable[[Path, str], None]:
    """Change what the file says of its tables, as `sqlite3` would not. The cookie of the schema may stay as it was."""

    def hide(path: Path, case: str, *, told: bool = True) -> None:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA writable_schema = ON")
        (cookie,) = db.execute("PRAGMA schema_version").fetchone()
        if case in HIDDEN:
            what, name, table, sql = HIDDEN[case]
            db.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, 0, ?)", (what, name, table, sql))
        else:
            table, old, new = CHANGED_TABLES[case]
            db.execute("UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE name = ?", (old, new, table))
        if told:
            db.execute(f"PRAGMA schema_version = {cookie + 1}")
        db.close()

    return hide


@pytest.mark.parametrize("case", [*HIDDEN, *CHANGED_TABLES])
def test_a_hidden_change_of_the_tables_is_bad(case: str, sample: Path, tmp_path: Path, hide: Any) -> None:
    path = copy(sample, tmp_path / "copy")
    hide(path, case)
    assert verify(path).verdict == "bad"


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("case", [*HIDDEN, *CHANGED_TABLES])
def test_a_writer_acknowledges_nothing_in_a_file_with_a_hidden_change(
    case: str, told: bool, path: Path, open_journal: Any, keep: Any, hide: Any
) -> None:
    journal = open_journal(on_failure="closed")
    hooks = keep(journal, 1)
    hide(path, case, told=told)
    with pytest.raises(JournalError):
        keep(journal, 2, hooks=hooks)


def test_statistics_for_the_query_planner_are_no_tampering(changed: Any) -> None:
    assert changed("ANALYZE").verdict == "consistent"


# --- the command line -------------------------------------------------------------------------------------------


def test_the_command_ends_with_3_for_a_copy_without_its_head(sample: Path, tmp_path: Path, cli: Any) -> None:
    path = copy(sample, tmp_path / "copy")
    path.with_name("journal.db.head").unlink()
    ended = cli("verify", "--journal", path)
    assert ended.code == 3
    assert "unproven" in ended.out
    assert "the head beside the file is missing" in ended.out


def test_the_command_ends_with_3_for_anchors_that_vouch_for_nothing(sample: Path, tmp_path: Path, cli: Any) -> None:
    (tmp_path / "anchors").write_text("")
    ended = cli("verify", "--json", "--anchor", tmp_path / "anchors", "--journal", copy(sample, tmp_path / "copy"))
    assert (ended.code, ended.json["verdict"]) == (3, "unproven")
    assert "no anchors to compare with" in ended.json["checked"]["doubt"]


def test_the_command_ends_with_0_for_a_sound_journal(sample: Path, tmp_path: Path, cli: Any) -> None:
    assert cli("verify", "--journal", copy(sample, tmp_path / "copy")).code == 0


def test_the_command_ends_with_2_and_names_the_record(sample: Path, tmp_path: Path, cli: Any, sql: Any) -> None:
    path = copy(sample, tmp_path / "copy")
    sql("UPDATE records SET body = x'7b7d' WHERE seq = 3", where=path)
    ended = cli("verify", "--journal", path)
    assert ended.code == 2
    assert "record 3 was changed" in ended.out


def test_the_command_says_it_as_json(sample: Path, tmp_path: Path, cli: Any, sql: Any) -> None:
    path = copy(sample, tmp_path / "copy")
    sql("DELETE FROM records WHERE seq = 3", where=path)
    ended = cli("verify", "--json", "--journal", path)
    assert (ended.code, ended.json["verdict"], ended.json["checked"]["record"]) == (2, "bad", 3)


@pytest.mark.parametrize("statement", STRANGE_TYPES.values(), ids=STRANGE_TYPES.keys())
def test_the_command_ends_with_2_whatever_is_wrong(
    statement: str, sample: Path, tmp_path: Path, cli: Any, sql: Any
) -> None:
    path = copy(sample, tmp_path / "copy")
    sql(statement, where=path)
    assert cli("verify", "--journal", path).code == 2


def test_the_command_ends_with_1_without_a_journal(tmp_path: Path, cli: Any) -> None:
    ended = cli("verify", "--journal", tmp_path / "none.db")
    assert ended.code == 1
    assert "there is no journal" in ended.err


# --- never without reason -----------------------------------------------------------------------------------------

texts = st.text(max_size=20) | st.sampled_from(["x" * 600, "$text", "$plain", "\x1b[31m", "\u202e"])
values = st.recursive(
    texts | st.integers() | st.none() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
actions = st.lists(
    st.tuples(st.just("tool"), values)
    | st.tuples(st.just("model"), st.lists(values, max_size=3))
    | st.tuples(st.just("note"), values)
    | st.tuples(st.just("close"), st.none()),
    max_size=12,
)


@settings(quick, max_examples=12)
@given(actions=actions, max_size=st.sampled_from([1, 60_000, 1 << 30]))
def test_an_unchanged_journal_never_fails_verification(
    tmp_path_factory: Any, actions: list[tuple[str, Any]], max_size: int
) -> None:
    path = tmp_path_factory.mktemp("unchanged") / "journal.db"
    writer.PRUNE_INTERVAL, before = 0.0, writer.PRUNE_INTERVAL
    try:
        with Journal(path, max_size=max_size) as journal:
            journal.note("begun")
            hooks = Hooks(journal=journal)
            hooks.add(lambda step: deny("no") if len(str(step.args)) % 2 else None, on="before_tool", name="odd")
            for what, value in actions:
                if what == "tool":
                    hooks.dispatch_sync(BeforeTool(tool="bash", args={"value": value}))
                elif what == "model":
                    hooks.dispatch_sync(BeforeModel(messages=value))
                elif what == "note":
                    journal.note("said", value=value)
                else:
                    journal.close()
    finally:
        writer.PRUNE_INTERVAL = before
    assert verify(path).problem is None


def test_a_digest_covers_the_one_before_the_number_the_columns_and_the_salted_bytes() -> None:
    columns, content = sha256(b'[["id",1,null],[[0,"hook"]]]').digest(), sha256(b"salt" + b"body").digest()
    assert seal(b"salt", b"body") == content
    expected = sha256(b"before" + (7).to_bytes(8, "big") + columns + content).digest()
    assert link(b"before", 7, ("id", 1, None), ((0, "hook"),), content) == expected
