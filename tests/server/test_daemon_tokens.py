"""Tokens: shown once, kept as digests, taken back at once; and what a foreign caller may make of them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import Machine, wait_until

from fairlead import paths as places
from fairlead.cli import main
from fairlead.errors import FairleadError
from fairlead.samples import step
from fairlead.server.tokens import SCOPES, Tokens
from fairlead.wire.steps import envelope


@pytest.fixture
def tokens(machine: Machine) -> Tokens:
    return Tokens(machine.state)


def test_a_token_allows_what_it_was_made_for(tokens: Tokens) -> None:
    assert tokens.scopes_of(tokens.add("a", ["dispatch", "read"])) == {"dispatch", "read"}


@given(text=st.text())
def test_nothing_that_was_not_made_allows_anything(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    tokens = Tokens(tmp_path_factory.mktemp("state"))
    tokens.add("a", [*SCOPES])
    assert tokens.scopes_of(text) == frozenset()


def test_only_a_digest_is_written_down(machine: Machine, tokens: Tokens) -> None:
    token = tokens.add("a", ["admin"])
    written = b"".join(path.read_bytes() for path in machine.state.rglob("*") if path.is_file())
    assert (token.encode() in written, token.removeprefix("fairlead_").encode() in written) == (False, False)


def test_the_file_is_the_users_alone(machine: Machine, tokens: Tokens) -> None:
    tokens.add("a", ["admin"])
    assert (machine.state / "tokens.json").stat().st_mode & 0o777 == 0o600


def test_a_revoked_token_allows_nothing_at_once(tokens: Tokens, machine: Machine) -> None:
    daemons = Tokens(machine.state)
    token = tokens.add("a", ["read"])
    before = daemons.scopes_of(token)
    tokens.revoke("a")
    assert (before, daemons.scopes_of(token)) == ({"read"}, frozenset())


def test_tokens_made_one_after_another_all_count(tokens: Tokens, machine: Machine) -> None:
    """However fast: a file that was changed twice in a moment may look as if it were the first."""
    daemons = Tokens(machine.state)
    for number in range(50):
        token = tokens.add(str(number), ["read"])
        assert daemons.scopes_of(token) == {"read"}
        tokens.revoke(str(number))
        assert daemons.scopes_of(token) == frozenset()


def test_two_tokens_do_not_have_one_name(tokens: Tokens) -> None:
    tokens.add("a", ["read"])
    with pytest.raises(FairleadError, match="already"):
        tokens.add("a", ["admin"])


@pytest.mark.parametrize("scopes", [[], ["root"], ["read", "everything"]])
def test_a_token_needs_scopes_that_there_are(tokens: Tokens, scopes: list[str]) -> None:
    with pytest.raises(FairleadError):
        tokens.add("a", scopes)


def test_what_is_not_there_cannot_be_revoked(tokens: Tokens) -> None:
    with pytest.raises(FairleadError, match="token"):
        tokens.revoke("a")


@pytest.mark.parametrize("content", [b"garbage", b"{}", b"\xff", b'[{"name": 1}]', b"[" * 100_000])
def test_a_file_that_cannot_be_read_allows_nothing(machine: Machine, tokens: Tokens, content: bytes) -> None:
    (machine.state / "tokens.json").write_bytes(content)
    with pytest.raises(FairleadError, match=r"tokens\.json"):
        tokens.scopes_of("x")


# --- the command --------------------------------------------------------------------------------


@pytest.mark.usefixtures("unwatched")
def test_a_token_is_made_shown_and_revoked_at_a_terminal(machine: Machine) -> None:
    token = machine.at_terminal("tokens", "add", "ci", "--scope", "dispatch").out.strip()
    listed = machine.run("tokens", "--json")
    assert Tokens(machine.state).scopes_of(token) == {"dispatch"}
    assert ([one["name"] for one in listed.json], token in listed.out) == (["ci"], False)
    assert machine.at_terminal("tokens", "revoke", "ci").code == 0
    assert Tokens(machine.state).scopes_of(token) == frozenset()


@pytest.mark.parametrize("words", [("add", "a", "--scope", "admin"), ("revoke", "a")])
def test_tokens_are_changed_at_a_terminal_only(machine: Machine, words: tuple[str, ...]) -> None:
    ended = machine.run("tokens", *words)
    assert (ended.code, "terminal" in ended.err) == (1, True)


def test_an_agent_makes_no_token(machine: Machine) -> None:
    claude = machine.program("claude", '#!/bin/sh\n"$@"\n')
    argv = [str(claude), sys.executable, "-m", "fairlead.cli"]
    ended = machine.at_terminal("tokens", "add", "a", "--scope", "admin", argv=argv)
    assert (ended.code, Tokens(machine.state).all()) == (1, [])


# --- callers that are not the daemon's user -----------------------------------------------------

JUDGE = '[[hook]]\nname = "judge"\non = "before_tool"\ncommand = ["judge"]\n'
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def judged(machine: Machine) -> dict[str, Any]:
    """A hook that denies, and a body that would have another program judge."""
    machine.program("judge", "#!/bin/sh\necho 'the judge says no' >&2; exit 2\n")
    machine.user(JUDGE)
    evil = machine.folder / "evil"
    evil.mkdir()
    (evil / "judge").write_text("#!/bin/sh\nexit 0\n")
    (evil / "judge").chmod(0o755)
    fields = {"event": "before_tool", "tool": "bash", "args": {"command": "ls"}}
    return {"step": fields, "env": {"PATH": f"{evil}:/usr/bin:/bin"}}


def test_who_only_may_dispatch_does_not_say_which_program_judges(machine: Machine, judged: dict[str, Any]) -> None:
    """Over TCP, a caller's PATH is not the user's."""
    daemon = machine.start(env=machine.env | {"PATH": f"{machine.outside}:/usr/bin:/bin"})
    token = Tokens(machine.state).add("a", ["dispatch"])
    answer = daemon.ask("POST", "/v1/dispatch", judged, tcp=True, token=token)
    assert answer.body["reason"] == "the judge says no"


OTHER_USER = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from machines import ask
os.setgid(65534); os.setuid(65534)
for method, path, body in json.loads(sys.argv[3]):
    answer = ask(sys.argv[2], method, path, body)
    print(json.dumps([answer.status, answer.body]))
"""


def as_another_user(machine: Machine, *requests: tuple[str, str, Any]) -> list[Any]:
    """What another user of the machine is answered."""
    here = str(Path(__file__).parent)
    process = machine.spawn(OTHER_USER, here, str(machine.folder / "managed/v1.sock"), json.dumps(requests))
    out, err = process.communicate(timeout=30)
    assert not err
    return [json.loads(line) for line in out.splitlines()]


def manage(machine: Machine) -> None:
    """A daemon that serves other users, too."""
    machine.folder.chmod(0o755)
    env = machine.env | {"PATH": f"{machine.outside}:/usr/bin:/bin"}
    settings = f"socket={str(machine.folder / 'managed/v1.sock')!r}, tcp=0, idle=None, managed=True"
    machine.start_with("", settings, env=env)


@needs_root
def test_another_user_of_a_managed_daemon_does_not_say_which_program_judges(
    machine: Machine, judged: dict[str, Any]
) -> None:
    """It would be run as the daemon's user."""
    manage(machine)
    ((status, body),) = as_another_user(machine, ("POST", "/v1/dispatch", judged))
    assert (status, body.get("reason")) == (200, "the judge says no")


@needs_root
def test_another_user_of_a_managed_daemon_may_dispatch_and_nothing_else(machine: Machine) -> None:
    manage(machine)
    import msgspec

    body = {"step": msgspec.to_builtins(envelope(step("turn_start")))}
    routes = [("GET", "/v1/sessions"), ("GET", "/v1/approvals"), ("POST", "/v1/approvals/x"), ("GET", "/v1/decisions"),
              ("POST", "/v1/reload"), ("POST", "/v1/stop"), ("DELETE", "/v1/sessions/x")]  # fmt: skip
    answers = as_another_user(machine, ("POST", "/v1/dispatch", body), *((*route, {}) for route in routes))
    assert [status for status, _ in answers] == [200] + [403] * len(routes)


def test_root_and_the_user_of_the_machines_daemon_read_its_journal(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon = machine.start()
    assert daemon.ask("POST", "/v1/dispatch", {"step": {"event": "turn_start", "session_id": "s-1"}}).status == 200
    kept = daemon.health()["journal"]
    monkeypatch.setattr(places, "MANAGED", machine.state / "run")
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(machine.folder / "of-another-user"))
    wait_until(lambda: main(["verify"]) in (0, 3))  # once the record is written
    assert kept in capsys.readouterr().out
    daemon.end()
    assert main(["verify"]) == 1, "without the daemon, it is the user's own"
    assert str(machine.folder / "of-another-user") in capsys.readouterr().err
