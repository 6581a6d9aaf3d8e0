"""Hundreds of secrets come in by every way there is; none of them is found on disk or in anything that goes out.

An agent's process, a daemon and the command line, all of them real, run once for all tests here. Whatever they leave
behind is searched for every secret, as it is and as JSON, addresses and base64 write it, and for every piece of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from planting import ALL, DAEMON_VARIABLES, EACH, PLANTED_IN, VARIABLES, marker, survivors

from fairlead.approvals import ApprovalRequest
from fairlead.client import Client
from fairlead.config.trust import Trust
from fairlead.enforcement import EnforcementSetting, write_setting
from fairlead.hosts.clis.opening import open_hooks
from fairlead.journal import Journal
from fairlead.journal.reading import Reader, Record
from fairlead.lifecycle import BeforeTool
from fairlead.redaction import redactor as redaction
from fairlead.server import projects
from fairlead.server.approvals import ApprovalContext, binding
from fairlead.server.projects import Projects
from fairlead.server.tokens import SCOPES, Tokens

HERE = Path(__file__).parent
DEADLINE = 30
CLI = [sys.executable, "-m", "fairlead.cli"]
SHOW = """
import sys
from fairlead.cli import make_parser
parser = make_parser()  # once: that is most of what one call takes
for number in sys.argv[1].split(","):
    options = parser.parse_args(["show", number, *sys.argv[2:]])
    options.run(options)
"""
USER_FILE = """
[defaults]
timeout = 60

[redact]
names = ["door_badge"]
patterns = ['EMP-\\w{{24}}']
values = [{listed}]

[[hook]]
name = "daemon-command"
on = "before_tool"
match = {{ tool = "daemon-command" }}
shell = 'cat "{given}/daemon-command-$FAIRLEAD_SESSION_ID" >&2; exit 1'

[[hook]]
name = "daemon-environment"
on = "before_tool"
match = {{ tool = "daemon-environment" }}
shell = 'echo planted in daemon-environment >&2; printenv {names} >&2; exit 1'
env = [{quoted}]

[[hook]]
name = "daemon-error"
on = "before_tool"
match = {{ tool = "daemon-error" }}
python = "{script}:broken"

[[hook]]
name = "daemon-question"
on = "before_tool"
match = {{ tool = "daemon-question" }}
shell = 'cat "{given}/daemon-question-$FAIRLEAD_SESSION_ID"'
"""
BROKEN = """
import pathlib
def broken(step):
    raise ValueError(pathlib.Path(__file__).with_name("given").joinpath(f"daemon-error-{step.session_id}").read_text())
"""


class Unix(http.client.HTTPConnection):
    """A connection to a socket of this machine."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=DEADLINE)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self._path)


class Machine:
    """A user's folders, and what goes out of the processes there: one text for each way out."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="fl", dir="/tmp"))
        self.state, self.project = self.folder / "s", self.folder / "project"
        self.out: dict[str, str] = {}
        for made in ("home", "out", "given", "config/fairlead", "project", "s"):
            (self.folder / made).mkdir(parents=True, mode=0o700)
        (self.folder / "hooks.py").write_text(BROKEN)
        for place in ("daemon-command", "daemon-error", "daemon-question"):
            for one in ALL[place]:
                said = one.text if place != "daemon-question" else json.dumps({"control": "ask", "reason": one.text})
                (self.folder / "given" / f"{place}-{one.number}").write_text(said)
        names = list(DAEMON_VARIABLES)
        settings = USER_FILE.format(
            given=self.folder / "given", script=self.folder / "hooks.py", names=" ".join(names),
            quoted=", ".join(map(json.dumps, names)),
            listed=", ".join(f'{{ env = "{name}" }}' for name in VARIABLES if name.startswith("PLAIN_")),
        )  # fmt: skip
        file = self.folder / "config/fairlead/fairlead.toml"
        file.write_text(settings)
        file.chmod(0o644)
        mistakes = [f"nope_{one.number} = {json.dumps(one.text)}" for one in ALL["daemon-config"]]
        (self.project / "fairlead.toml").write_text("\n".join(mistakes))

    @property
    def env(self) -> dict[str, str]:
        own = {"HOME": "home", "XDG_CONFIG_HOME": "config", "FAIRLEAD_STATE_DIR": "s"}
        kept = {name: value for name in ("PATH", "PYTHONPATH") if (value := os.environ.get(name))}
        return kept | {name: str(self.folder / place) for name, place in own.items()}

    def run(self, name: str, *argv: str, ends: tuple[int, ...] = (0,), **env: str) -> str:
        """Run a program to its end. What it writes goes out by this name; what it prints is also given back."""
        ended = subprocess.run(
            argv, env=self.env | env, capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL,
            cwd=self.folder / "home", check=False,
        )  # fmt: skip
        assert ended.returncode in ends, f"{name} ended with {ended.returncode}"
        self.out[name] = ended.stdout + ended.stderr
        return ended.stdout

    # --- the agent's process

    def run_agents(self) -> None:
        planting = (sys.executable, str(HERE / "planting.py"))
        self.run("the agent's stdout and stderr", *planting, "agent", str(self.folder), **VARIABLES)
        for way in ("failures", "handler.log", "metrics", "spans", "sent"):
            self.out[way] = (self.folder / "out" / way).read_text()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda n: self.run(f"another agent {n}", *planting, "again", str(self.folder)), (1, 2)))

    # --- the daemon

    def run_daemon(self) -> None:
        token = Tokens(self.state).add("test", list(SCOPES))
        with (self.state / "daemon.log").open("ab") as log:
            daemon = subprocess.Popen([*CLI, "serve", "--tcp", "0"], env=self.env, stdout=subprocess.PIPE, stderr=log)
        try:
            assert daemon.stdout is not None
            daemon.stdout.readline()
            port = int(daemon.stdout.readline().rpartition(b":")[2])
            tcp = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
            with closing(tcp), closing(Unix(self.state / "run" / "v1.sock")) as unix:
                self._talk(unix, tcp, token)
            self._ask_as_a_client(port, token)
        finally:
            daemon.terminate()
            daemon.communicate(timeout=DEADLINE)

    def _talk(self, unix: http.client.HTTPConnection, tcp: http.client.HTTPConnection, token: str) -> None:
        refused: list[str] = []
        failed: list[str] = []
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder / "home"), **DAEMON_VARIABLES, **VARIABLES}

        def ask(method: str, path: str, body: Any = None, connection: Any = unix, **headers: str) -> Any:
            headers = {"Authorization": f"Bearer {token}", **headers}
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status != 200:
                refused.append(text)
            return json.loads(text)

        def dispatch(tool: str, number: object, **args: Any) -> Any:
            step = {"event": "before_tool", "tool": tool, "session_id": str(number), "args": args}
            answer = ask("POST", "/v1/dispatch", {"step": step, "env": env, "root": env["HOME"], "deadline": 0})
            failed.extend(json.dumps(said["failure"]) for said in answer.get("said", ()) if "failure" in said)
            failed.append(json.dumps(answer.get("warnings")))
            if answer.get("cause") == "failure":
                failed.append(answer["reason"])
            return answer

        dispatch("daemon-environment", 0, command="ls")
        for n in range(EACH):
            dispatch("daemon-command", n)
            dispatch("daemon-error", n)
            # What cannot be shown without its secret is not asked: the refusal goes out, too.
            dispatch("daemon-question", n, text=ALL["daemon-args"][n].text, found=ALL["daemon-environment"][n].text)
            dispatch("daemon-question", n, text=ALL["daemon-args"][n].text)
            dispatch("daemon-question", n, text="nothing")
        questions = ask("GET", "/v1/approvals")["approvals"]
        assert len(questions) >= EACH, questions
        for question, one in zip(questions, ALL["daemon-answer"], strict=False):
            answer = {"approve": bool(one.number % 2), "why": one.text, "who": one.text}
            self.out[f"the daemon's answer to an answer {one.number}"] = json.dumps(
                ask("POST", f"/v1/approvals/{question['id']}", answer, tcp)  # an agent may not, on the unix socket
            )
            dispatch("daemon-question", one.number, text=ALL["daemon-args"][one.number].text)
        self.out["the daemon's list of questions"] = json.dumps(ask("GET", "/v1/approvals?all=1"))
        self.out["the daemon's list of decisions"] = json.dumps(ask("GET", "/v1/decisions?limit=1000"))
        ask("POST", "/v1/dispatch", {"step": {"event": "turn_start"}, "root": str(self.project), "env": env})
        for one in ALL["daemon-words"]:
            for method, path, body in wrong_requests(one.text):
                ask(method, path, body)
            ask("GET", "/v1/health", None, Host=one.text)
        self.out["the daemon's refusals"] = "\n".join(refused)
        self.out["failures in the daemon's answers"] = "\n".join(failed)

    def _ask_as_a_client(self, port: int, token: str) -> None:
        told: list[str] = []
        for one in ALL["client-words"]:
            address = f"http://me:{quote(one.secret, safe='')}@127.0.0.1:1"
            for options in ({"url": address, "start": False}, {"url": f"http://127.0.0.1:{port}", "token": token}):
                with Client(None, **options) as client:
                    decision = client.dispatch(BeforeTool(tool="bash", args={}), root=f"/{one.text}")
                told += [str(decision), repr(decision), str(decision.reason), *map(str, decision.failures)]
                told += map(repr, decision.failures)
        self.out["failures of a client"] = "\n".join(told)

    # --- the command line

    def run_commands(self) -> None:
        every = self.run("export", *CLI, "export").splitlines()
        first = [next((n for n, line in enumerate(every, 1) if marker(place) in line), 1) for place in PLANTED_IN]
        numbers = ",".join(map(str, sorted({*first, *range(1, len(every), 10)})))  # one of every place, and some
        (self.folder / "step.json").write_text('{"event": "before_tool", "tool": "daemon-command", "session_id": "3"}')
        words = [word for one in ALL["daemon-words"] for word in ("--set", f"metadata.x={one.text}")]
        commands: dict[str, tuple[str, ...]] = {
            "log": (*CLI, "log", "-n", "0"),
            "log as JSON": (*CLI, "log", "-n", "0", "--json"),
            "show": (sys.executable, "-c", SHOW, numbers),
            "show as JSON": (sys.executable, "-c", SHOW, numbers, "--json"),
            "stats": (*CLI, "stats"),
            "stats as JSON": (*CLI, "stats", "--json"),
            "export as OTLP": (*CLI, "export", "--format", "otlp"),
            "verify": (*CLI, "verify"),
            "verify as JSON": (*CLI, "verify", "--json"),
            "approvals": (*CLI, "approvals", "--all"),
            "approvals as JSON": (*CLI, "approvals", "--all", "--json"),
            "check": (*CLI, "check", "-C", str(self.project)),
            "check as JSON": (*CLI, "check", "-C", str(self.project), "--json"),
            "test of a bad file": (*CLI, "test", "turn_start", "-C", str(self.project)),
            "test of a bad file as JSON": (*CLI, "test", "turn_start", "-C", str(self.project), "--json"),
            "test of a bad step": (*CLI, "test", "turn_start", *words, "--set", "sequence=x"),
        }
        with ThreadPoolExecutor(2) as pool:
            running = [pool.submit(self.run, name, *argv, ends=(0, 1)) for name, argv in commands.items()]
            running.append(pool.submit(self._tail, len(every)))
            for one in running:
                one.result()
        said = subprocess.run(
            [*CLI, "test", "--step", str(self.folder / "step.json")], env=self.env | DAEMON_VARIABLES, check=False,
            capture_output=True, text=True, timeout=DEADLINE, cwd=self.folder / "home",
        )  # fmt: skip
        assert said.returncode == 2
        self.out["stderr of test"] = said.stderr

    def _tail(self, records: int) -> None:
        argv = [*CLI, "tail", "-n", str(records)]
        with subprocess.Popen(argv, env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as tail:
            assert tail.stdout is not None
            self.out["tail"] = "".join(tail.stdout.readline() for _ in range(records))
            tail.send_signal(signal.SIGINT)

    def read_disk(self) -> None:
        """Every file there is, and the databases also row by row: a page may end within a word."""
        for path in self.state.rglob("*"):
            if path.is_file():
                self.out[f"disk: {path.relative_to(self.state)}"] = path.read_bytes().decode("latin-1")
        for path in self.state.glob("*.db"):
            db = sqlite3.connect(path)
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            rows = [str(row) for table in tables for row in db.execute(f"SELECT * FROM {table}")]
            db.close()
            self.out[f"rows of {path.name}"] = "\n".join(rows)


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    made = Machine()
    try:
        made.run_agents()
        made.run_daemon()
        made.run_commands()
        made.read_disk()
        yield made
    finally:
        shutil.rmtree(made.folder)


def wrong_requests(text: str) -> list[tuple[str, str, Any]]:
    """Ways to say something to the daemon that it does not understand."""
    word = quote(text, safe="")
    steps: list[Any] = [
        {"event": text}, {"event": "session_start", "source": text}, {"event": "turn_start", text: 1},
        {"event": "turn_start", "sequence": text}, {"event": "before_tool", "tool": "x", "args": text},
        {"fairlead": text, "event": "turn_start"},
    ]  # fmt: skip
    bodies: list[Any] = [
        *({"step": step} for step in steps), {"step": {"event": "turn_start"}, "root": f"/{text}"}, {text: 1},
        {"step": {"event": "turn_start"}, "root": text}, {"step": {"event": "turn_start"}, "deadline": text},
        {"step": {"event": "turn_start"}, "capabilities": {text: []}}, text,
    ]  # fmt: skip
    return [
        *(("POST", "/v1/dispatch", body) for body in bodies),
        ("GET", f"/v1/sessions/{word}", None), ("DELETE", f"/v1/sessions/{word}?root={word}", None),
        ("POST", f"/v1/approvals/{word}", {"approve": True}), ("POST", "/v1/approvals/x", {"approve": text}),
        ("POST", "/v1/approvals/x", {text: True}), ("GET", f"/v1/decisions?{word}=1", None),
        ("GET", f"/v1/decisions?since={word}", None), ("GET", f"/v1/decisions?limit={word}", None),
        ("GET", f"/v1/decisions/{word}", None), ("GET", f"/{word}", None), ("PUT", f"/v1/{word}", None),
    ]  # fmt: skip


# --- enough is planted, and it arrives ------------------------------------------------------------------------


def test_hundreds_of_secrets_of_many_shapes_are_planted():
    secrets = [one for place in ALL.values() for one in place]
    assert len({one.secret for one in secrets}) == len(secrets) >= 300
    assert len({one.shape for one in secrets}) >= 30


SILENT = {
    "bytes": "bytes are no text",
    "cancelled-hook": "a hook that is late is not heard",
    "command-stdout": "what is no JSON is not repeated",
    "command-slow": "a program that is late is not heard",
    "environment": "a value by itself",
    "listed-values": "a value by itself",
    "listed-names": "a value by itself",
    "listed-patterns": "a value by itself",
    "spooled": "base64",
}
"""Where no text is to be seen, or none that a mark could stand in."""


@pytest.mark.parametrize("place", [place for place in PLANTED_IN if place not in SILENT])
def test_what_is_planted_comes_out_without_its_secret(machine: Machine, place: str):
    """Otherwise nothing would be shown by not finding secrets."""
    assert any(marker(place) in text for text in machine.out.values())


@pytest.mark.parametrize("place", ["environment", "listed-values", "listed-names", "listed-patterns"])
def test_what_is_known_by_its_value_is_redacted_in_the_journal(machine: Machine, place: str):
    kind = {"listed-names": "secret", "listed-patterns": "pattern"}.get(place, "value")
    words = {"listed-names": "door_badge = ", "listed-patterns": "who: ", "listed-values": "the badge is "}
    said = words.get(place, "it is ") + ("'" if kind == "secret" else "") + f"[redacted: {kind}]"
    assert machine.out["export"].count(said) >= EACH


# --- nothing goes out -----------------------------------------------------------------------------------------

PRINTED = (
    "the agent's stdout and stderr", "another agent 1", "failures", "handler.log", "metrics", "spans", "sent",
    "the daemon's refusals", "failures in the daemon's answers", "failures of a client",
    "the daemon's list of questions", "the daemon's list of decisions", "the daemon's answer to an answer 1", "export",
    "export as OTLP", "log", "log as JSON", "tail", "show", "show as JSON", "stats", "stats as JSON", "verify",
    "verify as JSON", "approvals", "approvals as JSON", "check", "check as JSON", "test of a bad file",
    "test of a bad file as JSON", "test of a bad step", "stderr of test",
)  # fmt: skip
QUIET = ("another agent 1", "stderr of test")
ON_DISK = (
    "journal.db", "journal.db.head", "newer.db", "approvals.db", "daemon.log", "sessions.json", "tokens.json",
)  # fmt: skip


@pytest.mark.parametrize("way", PRINTED)
def test_no_secret_goes_out_by(machine: Machine, way: str):
    assert machine.out[way] or way in QUIET, "nothing was said at all"
    assert survivors(machine.out[way]) == []


@pytest.mark.parametrize("file", ON_DISK)
def test_no_secret_is_on_disk_in(machine: Machine, file: str):
    if file != "daemon.log":  # which has nothing to say if all is well
        assert machine.out[f"disk: {file}"]
    assert survivors(machine.out[f"disk: {file}"]) == []


@pytest.mark.parametrize("file", ["journal.db", "newer.db", "approvals.db"])
def test_no_secret_is_in_a_row_of(machine: Machine, file: str):
    assert survivors(machine.out[f"rows of {file}"]) == []


def test_no_secret_is_anywhere(machine: Machine):
    """In no file, whichever it is, and in no output."""
    left = {way: found for way, text in machine.out.items() if (found := survivors(text))}
    assert left == {}


def test_the_spool_is_looked_through(machine: Machine):
    spools = [text for way, text in machine.out.items() if way.startswith("disk: newer.db.spool/")]
    assert sum(text.count("\n") for text in spools) >= EACH


# --- and the search would find it -----------------------------------------------------------------------------


def a_piece(secret: str) -> str:
    lines = [line for line in secret.split("\n") if not line.startswith("---")]
    line = lines[len(lines) // 2]
    return line[len(line) // 2 - 7 :][:14]


@pytest.mark.parametrize("form", ["plain", "json", "percent", "base64", "base64 1", "base64 2", "a piece"])
def test_the_search_finds_what_is_there(form: str):
    from base64 import b64encode

    missed = []
    for one in (one for place in ALL.values() for one in place):
        written = {
            "plain": one.text, "json": json.dumps(one.text), "percent": quote(one.text), "a piece": a_piece(one.secret),
            "base64": b64encode(one.text.encode()).decode(), "base64 1": b64encode(b"x" + one.text.encode()).decode(),
            "base64 2": b64encode(b"xy" + one.text.encode()).decode(),
        }  # fmt: skip
        if one not in survivors(written[form]):
            missed.append(one)
    assert missed == []


# --- what is left in its place --------------------------------------------------------------------------------


def records(machine: Machine) -> list[Record]:
    with Reader(machine.state / "journal.db") as reader:
        return list(reader.records())


def test_each_redaction_is_listed_with_its_path_and_a_digest(machine: Machine):
    """One line for each mark that is left, however many marks there are in one text."""
    for record in records(machine):
        body = {name: value for name, value in record.body.items() if name not in ("redacted", "policy", "policy_id")}
        for path, kind, digest in record.body.get("redacted", ()):
            assert digest.startswith("hmac-sha256:")
            assert f"[redacted: {kind}]" in json.dumps(at(body, path)), (record.seq, path)


def at(value: Any, path: str) -> Any:
    """What is at a path, keys and all. A key may have dots in it, so the longest that fits is taken."""
    if not path:
        return value
    if isinstance(value, list):
        head, _, rest = path.partition(".")
        return at(value[int(head)], rest)
    key = max((key for key in value if path == key or path.startswith(f"{key}.")), key=len)
    return [key, at(value[key], path[len(key) + 1 :])]


def of_two_processes(machine: Machine) -> list[Record]:
    """What two processes have written of the same text."""
    return [record for record in records(machine) if record.body.get("step", {}).get("session_id") == "twice"]


def test_equal_secrets_of_two_processes_have_equal_digests(machine: Machine):
    twice = of_two_processes(machine)
    assert len({record.id.partition("-")[0] for record in twice}) == 2, "two processes have written"
    first, second = ([entry[2] for entry in record.body["redacted"]] for record in twice)
    assert first == second


def test_equal_secrets_in_two_journals_have_different_digests(machine: Machine, tmp_path: Path):
    with Journal(tmp_path / "journal.db") as journal:
        journal.note("remark", text=ALL["other-process"][0].text)
    with Reader(tmp_path / "journal.db") as reader:
        (record,) = reader.records()
    assert record.body["redacted"][0][2] != of_two_processes(machine)[0].body["redacted"][0][2]


def test_the_key_of_the_digests_is_the_users_alone(machine: Machine):
    key = machine.state / "journal.db.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert len(set(key.read_bytes())) > 8


def test_digests_cannot_be_guessed(machine: Machine):
    """They are of the secret, with the journal's key, and with nothing that everybody has."""
    secret = ALL["environment"][0].secret.encode()
    key = (machine.state / "journal.db.key").read_bytes()
    journal = machine.out["export"]
    assert hmac.new(key, secret, "sha256").hexdigest()[:32] in journal
    with sqlite3.connect(machine.state / "journal.db") as db:
        (name,) = db.execute("SELECT value FROM meta WHERE key = 'journal'").fetchone()
    db.close()
    guesses = [b"", b"\0" * 32, b"fairlead", b"hmac-sha256", name.encode(), bytes.fromhex(name)]
    digests = [hashlib.new(how, secret).hexdigest() for how in ("sha256", "sha1", "md5", "sha512", "blake2b")]
    digests += [hmac.new(guess, secret, "sha256").hexdigest() for guess in guesses]
    assert not [digest for digest in digests if digest[:16] in journal]


def test_a_question_on_disk_has_no_digest_by_which_to_guess_its_secrets(machine: Machine):
    """All of a step but its secret may be known, so a plain digest of the step would tell whether a guess is right."""
    db = sqlite3.connect(machine.state / "approvals.db")
    rows = db.execute("SELECT bound, session FROM approvals").fetchall()
    db.close()
    n = int(rows[0][1])
    args = {"text": ALL["daemon-args"][n].text, "found": ALL["daemon-environment"][n].text}
    step = BeforeTool(tool="daemon-question", session_id=str(n), args=args)
    (policy,) = {
        record["policy_id"] for line in machine.out["export"].splitlines()
        if (record := json.loads(line)).get("step", {}).get("tool") == "daemon-question"
    }  # fmt: skip
    try:
        guess = binding(ApprovalRequest(step, "daemon-question"), ApprovalContext(str(machine.folder / "home"), policy))
    except TypeError:
        return  # it takes a key, which a reader of only the file does not have
    assert guess not in {bound for bound, _ in rows}


# --- in this process ------------------------------------------------------------------------------------------


@pytest.fixture
def own_redactor() -> Iterator[None]:
    before = redaction._current
    redaction.configure(None)
    yield
    redaction.configure(before)


async def test_the_daemon_keeps_every_callers_variables_secret_in_its_requests_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_redactor: None
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setattr(projects, "LIMIT", 4)
    (tmp_path / "fairlead").mkdir()
    hook = '[[hook]]\nname = "a"\non = "turn_start"\ncommand = ["/bin/true"]\nenv = ["CALLERS_TOKEN"]\n'
    (tmp_path / "fairlead/fairlead.toml").write_text(hook)
    (tmp_path / "fairlead/fairlead.toml").chmod(0o644)
    found = Projects(open_hooks, Trust(tmp_path / "state"))
    callers = [one for place in ("environment", "listed-values") for one in ALL[place]][:12]
    text = " and ".join(one.secret for one in callers)
    for one in callers:
        project = await found.find(str(tmp_path), {"CALLERS_TOKEN": one.secret})
        with redaction.within(project.scope):
            assert redaction.redact_text(text) == text.replace(one.secret, "[redacted: value]")
        assert redaction.redact_text(text) == text
    await found.aclose()


def test_the_reason_of_a_pause_is_kept_without_its_secrets(tmp_path: Path):
    for one in ALL["note"]:
        write_setting(EnforcementSetting("monitor", None, one.text, "me"), tmp_path)
        assert survivors((tmp_path / "switch.json").read_text()) == []


async def test_a_crashed_writer_leaves_nothing_unredacted(tmp_path: Path):
    """Killed in the middle of writing: what is on disk by then is redacted already."""
    code = """
import os, sys
sys.path.insert(0, sys.argv[1])
from planting import ALL
from fairlead import Hooks
from fairlead.journal import Journal
from fairlead.lifecycle import BeforeInput
journal = Journal(sys.argv[2], durability="full")
hooks = Hooks(journal=journal)
for one in ALL["user-input"]:
    hooks.dispatch_sync(BeforeInput(input=one.text))
os.kill(os.getpid(), 9)
"""
    killed = await asyncio.create_subprocess_exec(sys.executable, "-c", code, str(HERE), str(tmp_path / "j.db"))
    assert await killed.wait() == -signal.SIGKILL
    files = {path.name: path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()}
    assert marker("user-input") in files["j.db-wal"]
    assert {name: found for name, text in files.items() if (found := survivors(text))} == {}
