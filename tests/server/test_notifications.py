"""Notifications: a person is told that a hook asks, without delay, without secrets, and without a say in the matter."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import Daemon, Machine, questions_of, wait_until

from fairlead.samples import step
from fairlead.server.approvals import Question
from fairlead.server.inspector import announced, question_link
from fairlead.server.notifications import LONGEST, desktop_command, notice_of, slack_body
from fairlead.signing import verify

ASKS = """
[[hook]]
name = "may"
on = "before_tool"
rule = "true"
phase = "gate"
ask = "may it?"
"""
TOKEN = "ghp_" + "a1B2c3D4e5" * 4


class Service(ThreadingHTTPServer):
    """A web service that keeps what it is sent."""

    def __init__(self, status: int = 200) -> None:
        self.received: list[tuple[dict[str, str], bytes]] = []
        self.answering = threading.Event()
        self.answering.set()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.received.append((dict(self.headers), body))
                service.answering.wait(30)
                self.send_response(status)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        service = self
        self.url = f"http://127.0.0.1:{self.server_port}/hooks/T0/abc"
        threading.Thread(target=self.serve_forever, daemon=True).start()


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    yield made
    made.answering.set()
    made.shutdown()
    made.server_close()


def asked(daemon: Daemon, command: str = "make tea", session: str = "s") -> Any:
    with daemon.client() as client:
        return client.dispatch(step("before_tool", session_id=session, args={"command": command}), deadline=0.0)


def deliveries(daemon: Daemon) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.health()["notifications"]
    return found


def sent(daemon: Daemon) -> dict[str, Any]:
    """What became of the only notification, once it is over."""
    (one,) = wait_until(lambda: [one for one in deliveries(daemon) if one["sent"] + one["failed"]])
    return dict(one)


def test_a_command_reads_the_question(machine: Machine) -> None:
    into = machine.folder / "told"
    page = machine.program("page-me", f'#!/bin/sh\ncat > {into}.new; echo "$1" >> {into}.new; mv {into}.new {into}\n')
    machine.user(f'[approvals]\nnotify = [{{ command = ["{page}", "--now"] }}]\n{ASKS}')
    asked(machine.start())
    line, word = wait_until(lambda: into.exists() and into.read_text().splitlines())
    notice = json.loads(line)
    assert (notice["hook"], notice["question"], notice["summary"], word) == ("may", "may it?", "make tea", "--now")
    assert notice["answer"] == f"fairlead approvals watch {notice['id']}"


def test_a_webhook_is_signed(machine: Machine, service: Service) -> None:
    machine.user('[approvals]\nnotify = [{ url = { env = "WHERE" }, secret = { env = "WITH" } }]\n' + ASKS)
    daemon = machine.start()
    body = {"step": {"event": "before_tool", "tool": "bash", "args": {"command": "make tea"}}, "deadline": 0.0}
    first = daemon.ask("POST", "/v1/dispatch", body)
    assert (first.status, first.body["variables"]) == (428, ["WHERE", "WITH"])
    daemon.ask("POST", "/v1/dispatch", body | {"env": {"WHERE": service.url, "WITH": "open sesame"}})
    headers, text = wait_until(lambda: service.received)[0]
    verify("open sesame", headers, text)
    assert json.loads(text)["question"] == "may it?"
    assert sent(daemon)["error"] is None


def test_slack_gets_its_own_form(machine: Machine, service: Service) -> None:
    machine.user(f'[approvals]\nnotify = [{{ url = "{service.url}", body = "slack" }}]\n{ASKS}')
    asked(machine.start())
    _, text = wait_until(lambda: service.received)[0]
    said = json.loads(text)
    assert list(said) == ["text"]
    assert [part for part in ("may it?", "make tea") if part not in said["text"]] == []


def test_the_desktop_is_told_by_a_program_with_arguments(machine: Machine) -> None:
    into = machine.folder / "told"
    machine.program("notify-send", f'#!/bin/sh\nfor word; do echo "<$word>"; done > {into}.new; mv {into}.new {into}\n')
    machine.user(f'[approvals]\nnotify = ["desktop"]\n{ASKS}')
    env = machine.env | {"PATH": f"{machine.outside}:{os.environ['PATH']}"}
    daemon = machine.start(env=env)
    body = {"step": {"event": "before_tool", "tool": "bash", "args": {"command": "make 'a' && <b>tea</b>"}}}
    daemon.ask("POST", "/v1/dispatch", body | {"deadline": 0.0, "env": {"PATH": env["PATH"]}})
    words = wait_until(lambda: into.exists() and into.read_text())
    assert "<--app-name=fairlead>\n<-->\n<may asks: may it?>\n" in words
    assert "bash: make 'a' &amp;&amp; &lt;b&gt;tea&lt;/b&gt;" in words


def test_a_notification_links_to_the_question_while_the_inspector_runs(machine: Machine, service: Service) -> None:
    machine.user(f'[approvals]\nnotify = [{{ url = "{service.url}" }}]\n{ASKS}')
    daemon = machine.start()
    asked(daemon, "make tea")
    wait_until(lambda: service.received)
    with machine.terminal("ui", "--approve", "--no-open") as terminal:
        (base,) = re.findall(r"(http://\S+)/sign-in", terminal.until("Ctrl-C to end."))
        asked(daemon, "make coffee")
        wait_until(lambda: len(service.received) == 2)
        terminal.process.kill()
        terminal.process.wait()
    asked(daemon, "make water")
    before, during, after = (
        json.loads(text) for _, text in wait_until(lambda: service.received[2:] and service.received)
    )
    assert (before["link"], after["link"]) == (None, None)
    assert during["link"] == f"{base}/approvals#question-{during['id']}"


@pytest.mark.parametrize("text", [b"", b"8080", b"evil.example:80"])
def test_a_file_that_no_inspector_holds_gives_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes
) -> None:
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(tmp_path))
    (tmp_path / "inspector.port").write_bytes(text)
    assert question_link("a") is None


def test_the_first_of_two_inspectors_is_linked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    with announced(1234):
        with announced(5678):
            assert question_link("a") == "http://127.0.0.1:1234/approvals#question-a"
        assert question_link("a") == "http://127.0.0.1:1234/approvals#question-a"
    assert question_link("a") is None


def test_no_secret_is_sent(machine: Machine, service: Service) -> None:
    machine.user(f'[approvals]\nnotify = [{{ url = "{service.url}" }}]\n{ASKS}')
    asked(machine.start(), f"curl -H 'Authorization: Bearer {TOKEN}' https://x.example")
    _, text = wait_until(lambda: service.received)[0]
    assert TOKEN.encode() not in text
    assert b"redacted" in text


def test_a_slow_target_delays_no_question(machine: Machine, service: Service) -> None:
    service.answering.clear()
    machine.user(f'[approvals]\nnotify = [{{ url = "{service.url}" }}]\n{ASKS}')
    daemon = machine.start()
    begin = monotonic()
    decisions = [asked(daemon, f"make {number}") for number in range(5)]
    assert monotonic() - begin < 5
    assert [decision.control for decision in decisions] == ["deny"] * 5
    assert deliveries(daemon)[0]["sent"] == 0


def test_a_target_that_fails_decides_nothing_and_is_reported(machine: Machine, unwatched: None) -> None:
    page = machine.program("page-me", "#!/bin/sh\necho 'no network' >&2\nexit 3\n")
    machine.user(f'[approvals]\nnotify = [{{ command = ["{page}"] }}]\n{ASKS}')
    daemon = machine.start()
    assert asked(daemon).control == "deny"
    assert sent(daemon)["error"] == "page-me ended with 3: no network"
    assert "page-me ended with 3: no network" in machine.run("approvals").err
    assert "page-me ended with 3: no network" in machine.run("doctor", "--no-run").out
    with daemon.client() as client:
        client.answer(questions_of(client, "s")[0]["id"], True)
    assert asked(daemon).control == "allow"


def test_an_address_that_is_a_secret_is_in_no_error(machine: Machine) -> None:
    refusing = Service(403)
    machine.user(f'[approvals]\nnotify = [{{ url = "{refusing.url}" }}]\n{ASKS}')
    daemon = machine.start()
    asked(daemon)
    one = sent(daemon)
    refusing.shutdown()
    refusing.server_close()
    assert (one["error"], "abc" in json.dumps(one)) == ("the service answered 403", False)


def test_a_question_that_is_asked_again_notifies_once(machine: Machine, service: Service) -> None:
    machine.user(f'[approvals]\nnotify = [{{ url = "{service.url}" }}]\n{ASKS}')
    daemon = machine.start()
    asked(daemon)
    asked(daemon)
    asked(daemon, "make coffee")
    wait_until(lambda: deliveries(daemon)[0]["sent"] == 2)
    assert len(service.received) == 2


def test_the_terminal_rings_when_a_hook_asks(machine: Machine) -> None:
    machine.user(ASKS)
    daemon = machine.start()
    asked(daemon, "make first")
    with machine.terminal("tail") as terminal:
        terminal.until("make first")
        asked(daemon, "make second")
        seen = terminal.until("\a")
    assert "[asked]" in seen


# --- what it says -------------------------------------------------------------------------------


def question(text: str, command: str = "ls") -> Question:
    data = {"tool": "bash", "kind": "shell", "args": {"command": command}, "target": {"command": command}}
    return Question("0" * 32, "pending", "may", text, data, "s", "/p", 0.0, 1.0)


@given(st.text(), st.text())
def test_a_notice_is_short_and_can_be_shown_anywhere(text: str, command: str) -> None:
    notice = notice_of(question(text, command))
    for said in (notice.question, notice.summary or ""):
        assert len(said) <= LONGEST
        assert said.isprintable()


@given(st.text())
def test_nothing_in_a_message_for_slack_mentions_or_links(text: str) -> None:
    said = json.loads(slack_body(notice_of(question(text, text))))["text"]
    assert [part for part in ("<", ">", "@here", "@channel") if part in said] == []


@given(st.text(), st.sampled_from(["/usr/bin/notify-send", "/usr/bin/osascript"]))
def test_no_text_is_an_option_or_a_script_of_a_desktop_program(text: str, program: str) -> None:
    words = desktop_command(program, notice_of(question(text, text)))
    plain = desktop_command(program, notice_of(question("x", "x")))
    assert words[: words.index("--")] == plain[: plain.index("--")]
    assert len(words) == len(plain)


@pytest.mark.parametrize("size", [100, 20_000])
def test_half_a_secret_is_never_sent(size: int) -> None:
    notice = notice_of(question("may it?", "x " * size + TOKEN))
    assert TOKEN[:12] not in (notice.summary or "")
