"""A journal that a newer fairlead has made: records wait beside it, and are taken in once."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.journal import Journal, JournalError
from fairlead.journal.schema import SCHEMA
from fairlead.journal.verify import verify
from fairlead.lifecycle import BeforeTool


def spools(path: Path) -> list[Path]:
    return sorted(path.with_name("journal.db.spool").glob("*"))


@pytest.fixture
def newer(rich: Path, sql: Any) -> Path:
    """A journal of a newer fairlead's."""
    sql("PRAGMA user_version = 99")
    return rich


@pytest.fixture
def older(sql: Any) -> Any:
    return lambda: sql(f"PRAGMA user_version = {SCHEMA}")


def test_an_older_program_leaves_a_newer_journal_as_it_is(newer: Path, journal: Journal, keep: Any, sql: Any) -> None:
    before = sql("SELECT count(*) FROM records")
    keep(journal, "spooled")
    assert sql("SELECT count(*) FROM records") == before


def test_an_older_program_spools_beside_it(newer: Path, journal: Journal, keep: Any) -> None:
    keep(journal, "spooled")
    assert len(spools(newer)) == 1


def test_an_older_program_says_so(newer: Path, journal: Journal, keep: Any, log: Any) -> None:
    keep(journal, "spooled")
    assert "update fairlead" in log.text
    assert str(spools(newer)[0]) in log.text


def test_a_journal_that_becomes_newer_meanwhile_is_spooled_too(
    rich: Path, journal: Journal, keep: Any, sql: Any
) -> None:
    hooks = keep(journal, "before")
    sql("PRAGMA user_version = 99")
    keep(journal, "spooled", hooks=hooks)
    assert len(spools(rich)) == 1


def test_the_next_writer_takes_the_spool_in(newer: Path, open_journal: Any, keep: Any, kept: Any, older: Any) -> None:
    journal = open_journal()
    keep(journal, "spooled", "spooled too")
    journal.close()
    older()
    keep(open_journal(), "next")
    assert kept()[-3:] == ["spooled", "spooled too", "next"]


def test_a_spool_that_was_taken_in_is_gone(newer: Path, open_journal: Any, keep: Any, older: Any) -> None:
    journal = open_journal()
    keep(journal, "spooled")
    journal.close()
    older()
    keep(open_journal(), "next")
    assert spools(newer) == []


def test_long_texts_come_with_the_spool(newer: Path, open_journal: Any, keep: Any, records: Any, older: Any) -> None:
    journal = open_journal()
    keep(journal, "spooled", args={"command": "x" * 5000})
    journal.close()
    older()
    keep(open_journal(), "next")
    assert records()[-2].body["step"]["args"] == {"command": "x" * 5000}
    assert verify(newer).problem is None


def test_a_spool_is_taken_in_once_though_its_taker_was_killed(
    newer: Path, open_journal: Any, keep: Any, kept: Any, older: Any, run: Any
) -> None:
    journal = open_journal()
    keep(journal, "spooled")
    journal.close()
    older()
    code = """
Path.unlink = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
Hooks(journal=Journal(path, durability="full")).dispatch_sync(step("never"))
"""
    assert run(code).code == -9
    keep(open_journal(), "next")
    assert kept()[-2:] == ["spooled", "next"]


def test_the_spool_of_a_living_writer_is_left_to_it(
    newer: Path, open_journal: Any, keep: Any, kept: Any, older: Any
) -> None:
    keep(open_journal(), "spooled")
    older()
    keep(open_journal(), "next")
    assert kept()[-1:] == ["next"]
    assert len(spools(newer)) == 1


def test_a_spool_that_cannot_be_written_whole_loses_nothing(
    newer: Path, run: Any, older: Any, open_journal: Any, keep: Any, kept: Any
) -> None:
    code = """
import resource
import fairlead.journal.writer as writer
writer.RETRY_DELAY = 0.05
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
logging.disable()
journal = Journal(path)
hooks = Hooks(journal=journal)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
for number in range(20):
    hooks.dispatch_sync(step(f"spooled{number}"))
try:
    journal.flush()
except Exception as error:
    say(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
journal.close()
"""
    assert "cannot be written" in run(code).out
    older()
    keep(open_journal(), "next")
    assert kept()[-21:] == [*(f"spooled{number}" for number in range(20)), "next"]


def spooled(body: Any) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return json.dumps({"body": base64.b64encode(data).decode(), "texts": []}).encode()


GARBAGE = {
    "no JSON": b"not a record",
    "no text": b"\xff\xfe",
    "half a record": spooled({"id": "x", "at": 1, "kind": "note"})[:20],
    "another object": b'{"a": 1}',
    "a list": b"[1, 2]",
    "no base64": b'{"body": "\xc3\xa9", "texts": []}',
    "a body that is no JSON": spooled(b"{"),
    "a body that is no object": spooled([1]),
    "no id": spooled({"at": 1, "kind": "note"}),
    "an id that is no text": spooled({"id": {"a": 1}, "at": 1, "kind": "note"}),
    "a time that is none": spooled({"id": "x", "at": [1], "kind": "note"}),
    "a time beyond all time": spooled({"id": "x", "at": 10**30, "kind": "note"}),
    "runs that are none": spooled({"id": "x", "at": 1, "kind": "decision", "step": {}, "runs": [["a"]]}),
    "a run that never ends": spooled(
        b'{"id":"x","at":1,"kind":"decision","step":{},"runs":[["a","gate","none",1e300]]}'
    ),
    "a run without a hook": spooled(
        {"id": "x", "at": 1, "kind": "decision", "step": {}, "runs": [[{}, "gate", "none", 1]]}
    ),
    "a decision without a step": spooled({"id": "x", "at": 1, "kind": "decision", "step": "s"}),
    "a very deep one": spooled(b'{"id":"x","at":1,"kind":"note","a":' + b"[" * 5000 + b"]" * 5000 + b"}"),
}


@pytest.mark.parametrize("line", GARBAGE.values(), ids=GARBAGE.keys())
def test_garbage_in_a_spool_is_left_out(
    line: bytes, rich: Path, open_journal: Any, keep: Any, kept: Any, log: Any
) -> None:
    folder = rich.with_name("journal.db.spool")
    folder.mkdir()
    (folder / "garbage.jsonl").write_bytes(line + b"\n")
    keep(open_journal(), "next")
    assert kept()[-1:] == ["next"]
    assert "garbage.jsonl, line 1: not a record" in log.text


def test_what_stands_beside_garbage_is_taken_in(
    newer: Path, open_journal: Any, keep: Any, kept: Any, older: Any
) -> None:
    journal = open_journal()
    keep(journal, "one", "two")
    journal.close()
    (spool,) = spools(newer)
    one, two = spool.read_bytes().splitlines()
    spool.write_bytes(b"\n".join([b"garbage", one, b'{"body": 1}', two, two[:50]]))
    older()
    keep(open_journal(), "next")
    assert kept()[-3:] == ["one", "two", "next"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
words = st.sampled_from(["id", "at", "kind", "step", "runs", "said", "winner", "control", "policy", "v"])


@settings(deadline=None, max_examples=12, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(words, json_values))
def test_no_line_of_a_spool_can_stop_a_journal(tmp_path_factory: Any, body: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("spooled") / "journal.db"
    folder = path.with_name("journal.db.spool")
    folder.mkdir()
    (folder / "garbage.jsonl").write_bytes(spooled({"id": "x", "at": 1, "kind": "note"} | body) + b"\n")
    with Journal(path) as journal:
        journal.note("after it")
        journal.flush(5)


def test_a_newer_journal_is_not_read(newer: Path, cli: Any) -> None:
    ended = cli("log", "--journal", newer)
    assert ended.code == 1
    assert "update fairlead" in ended.err


def test_a_newer_journal_is_not_verified(newer: Path) -> None:
    with pytest.raises(JournalError, match="update fairlead"):
        verify(newer)


def test_a_full_journal_spools_before_it_answers(newer: Path, open_journal: Any, step: Any) -> None:
    from fairlead import Hooks

    Hooks(journal=open_journal(durability="full")).dispatch_sync(BeforeTool(tool="bash"))
    assert spools(newer)[0].stat().st_size > 0
