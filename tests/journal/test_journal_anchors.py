"""Anchors: the newest digest is copied to another place now and then, and at the end."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from fairlead.journal.anchor import Anchor, read_anchors
from fairlead.journal.verify import verify


class Sink:
    """A server that keeps what is posted to it. `hold` keeps it from answering."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.status = 200
        self.free = threading.Event()
        self.free.set()
        self.asked = threading.Event()
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                sink.asked.set()
                sink.free.wait(20)
                sink.got.append(json.loads(body))
                self.send_response(sink.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()


@pytest.fixture
def sink() -> Iterator[Sink]:
    made = Sink()
    yield made
    made.free.set()
    made.server.shutdown()
    made.thread.join()
    made.server.server_close()


def head_of(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.with_name("journal.db.head").read_bytes()))


def told(anchored: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in anchored.items() if key != "at"}


def test_the_newest_digest_is_appended_to_a_file(tmp_path: Path, open_journal: Any, keep: Any, path: Path) -> None:
    file = tmp_path / "anchors"
    journal = open_journal(anchor=Anchor(file=str(file)))
    keep(journal, 1)
    journal.close()
    assert told(json.loads(file.read_text().splitlines()[-1])) == head_of(path)


def test_the_newest_digest_is_given_to_a_command(tmp_path: Path, open_journal: Any, keep: Any, path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"
    journal = open_journal(anchor=Anchor(command=(sys.executable, "-Sc", code, str(tmp_path / "said"))))
    keep(journal, 1)
    journal.close()
    assert told(json.loads((tmp_path / "said").read_text().splitlines()[-1])) == head_of(path)


def test_the_newest_digest_is_posted(sink: Sink, open_journal: Any, keep: Any, path: Path) -> None:
    journal = open_journal(anchor=Anchor(url=sink.url))
    keep(journal, 1)
    journal.close()
    assert told(sink.got[-1]) == head_of(path)


def test_many_records_are_few_anchors(sink: Sink, open_journal: Any, keep: Any) -> None:
    journal = open_journal(anchor=Anchor(url=sink.url, every=3600.0))
    for number in range(50):
        keep(journal, number)
    journal.close()
    assert len(sink.got) == 2


def test_the_last_anchor_is_of_the_last_record(sink: Sink, open_journal: Any, keep: Any) -> None:
    journal = open_journal(anchor=Anchor(url=sink.url, every=3600.0))
    for number in range(50):
        keep(journal, number)
    journal.close()
    assert sink.got[-1]["seq"] == 50


def test_what_has_not_changed_is_not_anchored_again(sink: Sink, open_journal: Any, keep: Any) -> None:
    journal = open_journal(anchor=Anchor(url=sink.url, every=0.0))
    keep(journal, 1)
    for _ in range(5):
        journal.flush()
    journal.close()
    assert len(sink.got) == 1


def test_a_sink_that_hangs_does_not_hold_up_the_writing(sink: Sink, open_journal: Any, keep: Any, kept: Any) -> None:
    sink.free.clear()
    journal = open_journal(anchor=Anchor(url=sink.url))
    hooks = keep(journal, 1)
    assert sink.asked.wait(10)
    keep(journal, *range(2, 20), hooks=hooks)
    assert len(kept()) == 19
    sink.free.set()


FAILING = {
    "a file in no folder": Anchor(file="/nowhere/at/all"),
    "a command that fails": Anchor(command=(sys.executable, "-Sc", "import sys; sys.exit('the sink is full')")),
    "a command that is not there": Anchor(command=("/nowhere/at/all",)),
    "no server at the address": Anchor(url="http://127.0.0.1:9/"),
    "no web address": Anchor(url="file:///etc/passwd"),
}


@pytest.mark.parametrize("anchor", FAILING.values(), ids=FAILING.keys())
def test_a_sink_that_fails_is_logged(anchor: Anchor, open_journal: Any, keep: Any, log: Any) -> None:
    journal = open_journal(anchor=anchor)
    keep(journal, 1)
    journal.close()
    assert "record 1 could not be anchored" in log.text


@pytest.mark.parametrize("anchor", FAILING.values(), ids=FAILING.keys())
def test_a_sink_that_fails_loses_no_record(anchor: Anchor, open_journal: Any, keep: Any, kept: Any) -> None:
    journal = open_journal(anchor=anchor)
    keep(journal, *range(5))
    journal.close()
    assert len(kept()) == 5


def test_what_a_command_said_is_in_the_log(open_journal: Any, keep: Any, log: Any) -> None:
    journal = open_journal(anchor=FAILING["a command that fails"])
    keep(journal, 1)
    journal.close()
    assert "the sink is full" in log.text


def test_a_sink_that_refused_is_told_again(sink: Sink, open_journal: Any, keep: Any) -> None:
    sink.status = 500
    journal = open_journal(anchor=Anchor(url=sink.url, every=0.01))
    keep(journal, 1)
    assert sink.asked.wait(10)
    sink.status = 200
    journal.close()
    assert [anchored["seq"] for anchored in sink.got][-1] == 1


@pytest.mark.parametrize("options", [{}, {"file": "a", "url": "http://b"}, {"command": ("a",), "file": "b"}])
def test_an_anchor_has_one_sink(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="one of file, command and url"):
        Anchor(**options)


def test_anchors_are_read_line_by_line() -> None:
    assert [
        a.seq
        for a in read_anchors(b'{"seq": 1, "digest": "a", "journal": "j"}\n\n{"seq": 2, "digest": "b", "journal": "j"}')
    ] == [1, 2]


@pytest.mark.parametrize("data", [b"x", b"{}", b"\xff", b'{"seq": "x", "digest": "a", "journal": "j"}'])
def test_what_is_no_anchor_is_named_by_its_line(data: bytes) -> None:
    with pytest.raises(ValueError, match="line 1 is not an anchor"):
        read_anchors(data)


def test_verify_compares_with_anchors_in_a_file(
    tmp_path: Path, open_journal: Any, keep: Any, path: Path, cli: Any
) -> None:
    file = tmp_path / "anchors"
    journal = open_journal(anchor=Anchor(file=str(file)))
    keep(journal, 1, 2)
    journal.close()
    ended = cli("verify", "--journal", path, "--anchor", file)
    assert ended.code == 0
    assert "untampered" in ended.out
    assert "up to record 2 an anchor vouches" in ended.out


def test_verify_says_what_it_cannot_tell_without_an_anchor(rich: Path, cli: Any) -> None:
    assert "no anchor: an attacker could have rebuilt all of it" in cli("verify", "--journal", rich).out


@pytest.mark.parametrize("content", [None, b"garbage"])
def test_anchors_that_cannot_be_read_are_said(content: bytes | None, rich: Path, tmp_path: Path, cli: Any) -> None:
    if content is not None:
        (tmp_path / "anchors").write_bytes(content)
    ended = cli("verify", "--journal", rich, "--anchor", tmp_path / "anchors")
    assert ended.code == 1
    assert "the anchors cannot be read" in ended.err


def test_verify_knows_the_configured_anchor(home: Path, open_journal: Any, keep: Any, cli: Any) -> None:
    file, config = home / "anchors", home / "config/fairlead/fairlead.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f'[journal]\npath = "{home}/journal.db"\nanchor = {{ file = "{file}" }}\n')
    journal = open_journal(home / "journal.db", anchor=Anchor(file=str(file)))
    keep(journal, 1)
    journal.close()
    assert "untampered" in cli("verify").out


def test_anchors_stand_though_the_journal_goes_on(tmp_path: Path, open_journal: Any, keep: Any, path: Path) -> None:
    file = tmp_path / "anchors"
    journal = open_journal(anchor=Anchor(file=str(file)))
    keep(journal, 1)
    journal.close()
    keep(open_journal(), 2, 3)
    checked = verify(path, read_anchors(file.read_bytes()))
    assert (checked.verdict, checked.anchored, checked.last) == ("untampered", 1, 3)
