"""Reading: filters, one by one and together, in order, and what the hooks come to."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from fairlead import Hooks, deny
from fairlead.journal import Journal, JournalError
from fairlead.journal.reading import Filter, Reader
from fairlead.journal.store import JournalFile
from fairlead.lifecycle import Agent, BeforeTool, TurnStart

COMMANDS = ("log", "stats", "export", "verify")


@pytest.fixture
def filled(path: Path, open_journal: Any) -> Path:
    """Decisions on several tools, by several agents, in several sessions and at several hosts."""
    journal = open_journal()
    hooks = Hooks(journal=journal)
    hooks.add(
        lambda step: deny("no") if "rm" in step.target.command else None, on="before_tool", name="no-rm", kind="shell"
    )
    hooks.add(lambda step: None, on="before_tool", name="watch", tool="mcp__*")
    for number, (tool, command, agent, host) in enumerate(
        [("bash", "ls", "a", "x"), ("bash", "rm", "b", "x"), ("mcp__git", "", "a", "y"), ("mcp__web", "", "b", "y")]
    ):
        about = {"agent": Agent(name=agent), "host": host, "session_id": f"s{number % 2}"}
        hooks.dispatch_sync(BeforeTool(tool=tool, args={"command": command}, call_id=str(number), **about))
    hooks.dispatch_sync(TurnStart(session_id="s0", host="x"))
    journal.note("paused", who="me")
    journal.close()
    return path


def found(path: Path, **which: Any) -> list[int]:
    with Reader(path) as reader:
        return [record.seq for record in reader.records(Filter(**which))]


CASES: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [1, 2, 3, 4, 5, 6]),
    ({"notes": False}, [1, 2, 3, 4, 5]),
    ({"event": "turn_start"}, [5]),
    ({"tool": "bash"}, [1, 2]),
    ({"tool": "mcp__*"}, [3, 4]),
    ({"tool": "{bash,mcp__git}"}, [1, 2, 3]),
    ({"tool": "*"}, [1, 2, 3, 4]),
    ({"tool": "none"}, []),
    ({"decision": "deny"}, [2]),
    ({"decision": "proceed"}, [1, 3, 4, 5]),
    ({"hook": "no-rm"}, [1, 2]),
    ({"hook": "watch"}, [3, 4]),
    ({"session": "s0"}, [1, 3, 5]),
    ({"host": "y"}, [3, 4]),
    ({"agent": "b"}, [2, 4]),
    ({"agent": "b", "host": "y"}, [4]),
    ({"tool": "mcp__*", "session": "s0"}, [3]),
    ({"hook": "no-rm", "decision": "deny", "tool": "b*"}, [2]),
    ({"since": 0}, [1, 2, 3, 4, 5, 6]),
    ({"until": 0}, []),
    ({"since": 9e9}, []),
    ({"until": 9e9}, [1, 2, 3, 4, 5, 6]),
    ({"since": -1e15, "until": 1e15}, [1, 2, 3, 4, 5, 6]),
    ({"tool": "'; DROP TABLE records; --"}, []),
]


@pytest.mark.parametrize(("which", "expected"), CASES, ids=str)
def test_a_filter_finds(which: dict[str, Any], expected: list[int], filled: Path) -> None:
    assert found(filled, **which) == expected


def test_a_span_of_time_begins_and_ends_between_two_records(filled: Path, records: Any) -> None:
    times = [record.body["at"] for record in records()]
    between = (times[1] + times[2]) / 2e9
    assert (found(filled, until=between), found(filled, since=between)) == ([1, 2], [3, 4, 5, 6])


@pytest.mark.parametrize(("limit", "expected"), [(0, []), (1, [6]), (2, [5, 6]), (100, [1, 2, 3, 4, 5, 6])])
def test_a_limit_gives_the_newest_in_order(limit: int, expected: list[int], filled: Path) -> None:
    with Reader(filled) as reader:
        assert [record.seq for record in reader.records(limit=limit)] == expected


def test_a_limit_counts_what_fits_a_glob(filled: Path) -> None:
    with Reader(filled) as reader:
        assert [record.seq for record in reader.records(Filter(tool="mcp__*"), limit=1)] == [4]


def test_more_than_a_page_is_read_in_order(open_journal: Any, keep: Any, kept: Any) -> None:
    keep(open_journal(), *range(1201))
    assert kept() == [str(number) for number in range(1201)]


def test_a_record_is_found_by_its_id_and_by_its_number(filled: Path, records: Any) -> None:
    third = records()[2]
    with Reader(filled) as reader:
        assert reader.record(third.id) == reader.record("3") == third


@pytest.mark.parametrize("name", ["99", "no-session-1", "", "\u00b2", "1 OR 1", "9" * 30])
def test_a_record_that_is_not_there_is_said(name: str, filled: Path) -> None:
    with Reader(filled) as reader, pytest.raises(JournalError, match="has no record"):
        reader.record(name)


# --- what the hooks come to --------------------------------------------------------------------------------


def test_stats_count_runs_denials_and_failures(path: Path, journal: Journal, step: Any) -> None:
    hooks = Hooks(journal=journal)

    def broken(step: Any) -> None:
        raise RuntimeError("broken")

    hooks.add(lambda step: deny("no") if step.call_id == "1" else None, on="before_tool", name="no-one", phase="gate")
    hooks.add(broken, on="before_tool", name="broken", on_failure="open")
    for number in range(3):
        hooks.dispatch_sync(step(number))
    journal.flush()
    with Reader(path) as reader:
        stats = {one.hook: (one.runs, one.denials, one.failures) for one in reader.stats()}
    assert stats == {"no-one": (3, 1, 0), "broken": (3, 0, 3)}


def test_shares_of_the_time_make_a_whole(filled: Path) -> None:
    with Reader(filled) as reader:
        assert sum(one.share for one in reader.stats()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("which", "hooks"),
    [
        ({"tool": "bash"}, {"no-rm"}),
        ({"tool": "mcp__*"}, {"watch"}),
        ({"tool": "{bash,x}"}, {"no-rm"}),
        ({"host": "y"}, {"watch"}),
    ],
    ids=str,
)
def test_stats_are_of_what_a_filter_finds(which: dict[str, Any], hooks: set[str], filled: Path) -> None:
    with Reader(filled) as reader:
        assert {one.hook for one in reader.stats(Filter(**which))} == hooks


@pytest.mark.parametrize(
    ("which", "counts"),
    [
        ({}, {"proceed": 4, "deny": 1}),
        ({"tool": "mcp__*"}, {"proceed": 2}),
        ({"tool": "bash"}, {"proceed": 1, "deny": 1}),
    ],
    ids=str,
)
def test_counts_are_of_what_a_filter_finds(which: dict[str, Any], counts: dict[str, int], filled: Path) -> None:
    with Reader(filled) as reader:
        assert reader.counts(Filter(**which)) == counts


# --- the command line ---------------------------------------------------------------------------------------


def test_log_lists_the_newest_last(filled: Path, cli: Any) -> None:
    lines = cli("log", "--journal", filled).lines
    assert ["turn_start" in lines[4], "[paused]" in lines[5]] == [True, True]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--tool", "mcp__*"], [3, 4]),
        (["--decision", "deny"], [2]),
        (["--event", "turn_start"], [5]),
        (["--hook", "watch"], [3, 4]),
        (["--session", "s0", "--host", "x"], [1, 5]),
        (["--agent", "b"], [2, 4]),
        (["--since", "1h"], [1, 2, 3, 4, 5, 6]),
        (["--until", "1h"], []),
        (["--until", "9999-12-31"], [1, 2, 3, 4, 5, 6]),
        (["--since", "0100-01-01"], [1, 2, 3, 4, 5, 6]),
        (["--since", "999999999999w"], [1, 2, 3, 4, 5, 6]),
        (["-n", "2"], [5, 6]),
        (["-n", "0"], [1, 2, 3, 4, 5, 6]),
    ],
    ids=lambda one: " ".join(map(str, one)),
)
def test_log_takes_filters(words: list[str], expected: list[int], filled: Path, cli: Any) -> None:
    ended = cli("log", "--json", "--journal", filled, *words)
    assert [record["seq"] for record in ended.json] == expected


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--event", "before_tol"], "did you mean 'before_tool'?"),
        (["--decision", "dney"], "did you mean 'deny'?"),
        (["--tool", "{a"], "{a"),
        (["--since", "yesterdayish"], "is not a time"),
        (["--until", "5 parsecs"], "is not a time"),
        (["-n", "-5"], "-5"),
    ],
    ids=lambda one: one if isinstance(one, str) else " ".join(one),
)
def test_a_filter_that_means_nothing_is_said(words: list[str], says: str, filled: Path, cli: Any) -> None:
    ended = cli("log", "--journal", filled, *words)
    assert ended.code == 1
    assert says in ended.err


def test_log_says_that_there_is_nothing(filled: Path, cli: Any) -> None:
    ended = cli("log", "--journal", filled, "--tool", "none")
    assert (ended.code, ended.out, ended.err) == (0, "", "The journal has no such records.\n")


def test_log_of_nothing_is_still_json(filled: Path, cli: Any) -> None:
    assert cli("log", "--json", "--journal", filled, "--tool", "none").json == []


@pytest.mark.parametrize("command", [*COMMANDS, "tail"])
def test_a_journal_that_is_not_there_is_said(command: str, tmp_path: Path, cli: Any) -> None:
    ended = cli(command, "--journal", tmp_path / "none.db")
    assert ended.code == 1
    assert "there is no journal" in ended.err
    assert "after `fairlead install`" in ended.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_journal_in_which_nothing_is_yet_can_be_read(command: str, path: Path, cli: Any) -> None:
    JournalFile(path).close()
    assert cli(command, "--journal", path).code == 0


@pytest.mark.parametrize("command", ["log", "stats", "export"])
def test_a_damaged_journal_is_said(command: str, rich: Path, sql: Any, cli: Any) -> None:
    sql("UPDATE records SET body = x'7b' WHERE seq = 2")
    sql("UPDATE runs SET hook = CAST(x'ff' AS TEXT) WHERE seq = 2")
    ended = cli(command, "--journal", rich)
    assert ended.code == 1
    assert "fairlead verify" in ended.err


@pytest.mark.parametrize("change", ["took = 'x'", "took = NULL", "hook = NULL", "hook = x'ff'", "outcome = 5"])
def test_damaged_runs_are_no_traceback(change: str, rich: Path, sql: Any, cli: Any) -> None:
    sql(f"UPDATE runs SET {change} WHERE seq = 2")
    assert "Traceback" not in cli("stats", "--journal", rich).err


def test_show_tells_the_whole_story(rich: Path, cli: Any) -> None:
    out = cli("show", "2", "--journal", rich).out
    for part in ("deny", "no-rm", "not that", "broken", "careful", "session_id", "s1", "policy", "version", "digest"):
        assert part in out


def test_show_tells_where_a_hook_raised(rich: Path, cli: Any) -> None:
    out = cli("show", "2", "--journal", rich).out
    for part in ("traceback    of broken", ", in broken", 'raise RuntimeError("broken")', "    RuntimeError: broken"):
        assert part in out


def test_show_tells_what_changed_line_by_line(rich: Path, cli: Any) -> None:
    out = cli("show", "3", "--journal", rich).out
    assert "  + args.command: ls -l" in out


def test_show_tells_a_note(rich: Path, cli: Any) -> None:
    out = cli("show", "5", "--journal", rich).out
    assert "paused" in out
    assert "me" in out


def test_show_as_json(rich: Path, cli: Any) -> None:
    assert cli("show", "2", "--json", "--journal", rich).json["control"] == "deny"


def test_show_tells_what_was_redacted(journal: Journal, step: Any, path: Path, cli: Any) -> None:
    Hooks(journal=journal).dispatch_sync(step(1, args={"command": "x", "api_key": "sk-ant-api03-" + "a1B2" * 20}))
    journal.flush()
    out = cli("show", "1", "--journal", path).out
    assert "redacted before it was written (1)" in out
    assert "step.args.api_key" in out


def test_stats_show_a_table(filled: Path, cli: Any) -> None:
    out = cli("stats", "--journal", filled).out
    assert "5 decisions: 4 proceed, 1 deny" in out
    assert "no-rm" in out


def test_stats_as_json(filled: Path, cli: Any) -> None:
    told = cli("stats", "--json", "--journal", filled).json
    assert told["decisions"] == {"proceed": 4, "deny": 1}


def test_stats_heed_a_glob(filled: Path, cli: Any) -> None:
    told = cli("stats", "--json", "--journal", filled, "--tool", "mcp__*").json
    assert (told["decisions"], [hook["hook"] for hook in told["hooks"]]) == ({"proceed": 2}, ["watch"])


# --- what could not be written down in full ------------------------------------------------------------------


@pytest.fixture
def unwritable(journal: Journal, path: Path) -> Path:
    Hooks(journal=journal).dispatch_sync(BeforeTool(tool="bash", args={"x": {(1, 2): 3}}))
    journal.flush()
    return path


@pytest.mark.parametrize(
    "words", [["log"], ["show", "1"], ["stats"], ["export"], ["export", "--format", "otlp"]], ids=" ".join
)
def test_a_record_that_is_not_whole_can_be_read(words: list[str], unwritable: Path, cli: Any) -> None:
    assert cli(*words, "--journal", unwritable).code == 0


def test_show_says_why_a_record_is_not_whole(unwritable: Path, cli: Any) -> None:
    assert "TypeError" in cli("show", "1", "--journal", unwritable).out


# --- terminals -----------------------------------------------------------------------------------------------

NASTY = "\x1b]0;owned\x07 \x9b31m \u202e \r\n \x7f \u2066"


@pytest.fixture
def nasty(journal: Journal, path: Path) -> Path:
    hooks = Hooks(journal=journal)
    hooks.add(lambda step: deny(NASTY, context=NASTY, warnings=NASTY), on="before_tool", name=NASTY)
    about = {"session_id": NASTY, "host": NASTY, "agent": Agent(name=NASTY), "cwd": NASTY}
    hooks.dispatch_sync(BeforeTool(tool=NASTY, args={"command": NASTY, NASTY: NASTY}, **about))
    journal.note("odd", what=NASTY)
    journal.flush()
    return path


@pytest.mark.parametrize(
    "words",
    [
        ["log"], ["log", "--json"], ["show", "1"], ["show", "1", "--json"], ["show", "2"], ["stats"],
        ["stats", "--json"], ["export"], ["export", "--format", "otlp"], ["verify"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_nothing_that_was_recorded_can_take_over_a_terminal(words: list[str], nasty: Path, cli: Any) -> None:
    ended = cli(*words, "--journal", nasty)
    assert ended.code == 0
    assert sorted({c for c in ended.out + ended.err if not c.isprintable() and c != "\n"}) == []


@pytest.mark.parametrize("words", [["log"], ["show", "1"], ["verify"]], ids=" ".join)
def test_nothing_that_was_forged_can_take_over_a_terminal(words: list[str], rich: Path, sql: Any, cli: Any) -> None:
    ((body,),) = sql("SELECT body FROM records WHERE seq = 1")
    forged = json.loads(body) | {"control": NASTY, "id": NASTY, "winner": {"hook": NASTY, "cause": NASTY}}
    sql("UPDATE records SET body = ? WHERE seq = 1", json.dumps(forged).encode())
    ended = cli(*words, "--journal", rich)
    assert sorted({c for c in ended.out + ended.err if not c.isprintable() and c != "\n"}) == []


# --- tail ------------------------------------------------------------------------------------------------------


@pytest.fixture
def tail(path: Path) -> Any:
    """`fairlead tail`, as a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def tail(*words: str) -> subprocess.Popen[str]:
        argv = [sys.executable, "-m", "fairlead.cli", "tail", "--json", "--journal", str(path), *words]
        started.append(subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        return started[-1]

    yield tail
    for process in started:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def test_tail_begins_with_the_newest(filled: Path, tail: Any) -> None:
    process = tail("-n", "2")
    assert [line(process)["seq"], line(process)["seq"]] == [5, 6]


def test_tail_shows_what_another_process_writes(filled: Path, tail: Any, start: Any) -> None:
    process = tail("-n", "1")
    line(process)
    start('with Journal(path) as journal: Hooks(journal=journal).dispatch_sync(step("new"))').wait()
    assert line(process)["step"]["call_id"] == "new"


def test_tail_shows_only_what_is_asked_for(filled: Path, tail: Any, start: Any) -> None:
    process = tail("-n", "1", "--tool", "mcp__*")
    line(process)
    start("""
with Journal(path) as journal:
    hooks = Hooks(journal=journal)
    hooks.dispatch_sync(step("other"))
    hooks.dispatch_sync(BeforeTool(tool="mcp__x", call_id="mine"))
""").wait()
    assert line(process)["step"]["call_id"] == "mine"


def test_tail_ends_with_ctrl_c(filled: Path, tail: Any) -> None:
    process = tail("-n", "1")
    line(process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert (process.returncode, err) == (130, "")


def test_following_misses_nothing_and_shows_nothing_twice(path: Path, journal: Journal, keep: Any) -> None:
    keep(journal, "first")
    seen: list[str] = []

    def follow() -> None:
        with Reader(path) as reader:
            for record in reader.follow(after=0, every=0.001):
                if record is not None:
                    seen.append(record.body["step"]["call_id"])
                if len(seen) >= 301:
                    return

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    for number in range(30):
        keep(journal, *range(number * 10, number * 10 + 10))
    thread.join(10)
    assert seen == ["first", *(str(number) for number in range(300))]


# --- export -----------------------------------------------------------------------------------------------------


def test_export_gives_one_json_object_a_line(filled: Path, cli: Any) -> None:
    lines = cli("export", "--journal", filled).lines
    assert [json.loads(line)["seq"] for line in lines] == [1, 2, 3, 4, 5, 6]


def spans(ended: Any) -> list[list[dict[str, Any]]]:
    return [json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"] for line in ended.lines]


@pytest.fixture
def exported(rich: Path, cli: Any) -> list[list[dict[str, Any]]]:
    return spans(cli("export", "--format", "otlp", "--journal", rich))


def test_otlp_ids_are_hex_of_the_right_length(exported: Any) -> None:
    for span in (span for record in exported for span in record):
        assert (len(bytes.fromhex(span["traceId"])), len(bytes.fromhex(span["spanId"]))) == (16, 8)


def test_otlp_hooks_are_under_their_dispatch(exported: Any) -> None:
    for top, *under in exported:
        assert "parentSpanId" not in top
        assert {span["parentSpanId"] for span in under} <= {top["spanId"]}


def test_otlp_has_a_span_per_hook(exported: Any) -> None:
    assert [span["name"] for span in exported[1]] == ["before_tool bash", "careful", "broken", "no-rm"]


def test_otlp_times_are_within_the_dispatch(exported: Any) -> None:
    for top, *under in exported:
        for span in under:
            assert int(top["startTimeUnixNano"]) <= int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
            assert int(span["endTimeUnixNano"]) <= int(top["endTimeUnixNano"])


def test_otlp_times_are_texts_of_now(exported: Any) -> None:
    assert abs(int(exported[0][0]["endTimeUnixNano"]) / 1e9 - time.time()) < 3600


def test_otlp_spans_of_a_session_are_one_trace(exported: Any) -> None:
    assert exported[0][0]["traceId"] == exported[2][0]["traceId"] != exported[1][0]["traceId"]


def test_otlp_span_ids_are_all_different(exported: Any) -> None:
    ids = [span["spanId"] for record in exported for span in record]
    assert len(ids) == len(set(ids))


def test_exporting_twice_gives_the_same(rich: Path, cli: Any, exported: Any) -> None:
    assert spans(cli("export", "--format", "otlp", "--journal", rich)) == exported


def test_otlp_leaves_notes_out(exported: Any) -> None:
    assert len(exported) == 5


def test_otlp_failures_are_errors(exported: Any) -> None:
    by_name = {span["name"]: span["status"] for span in exported[2]}
    assert (by_name["broken"], by_name["lister"]) == ({"code": 2}, {})


def test_otlp_speaks_of_generative_ai(exported: Any) -> None:
    about = {one["key"]: one["value"] for one in exported[0][0]["attributes"]}
    assert about["fairlead.operation.name"] == {"stringValue": "decide"}
    assert "gen_ai.operation.name" not in about
    assert about["gen_ai.tool.name"] == {"stringValue": "bash"}
    assert about["gen_ai.conversation.id"] == {"stringValue": "s0"}
