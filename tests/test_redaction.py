"""Redaction: what is recognised, what is left alone, and how long it may take."""

from __future__ import annotations

import copy
import json
import threading
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.redaction import redact, redact_text
from fairlead.secret_shapes import SHAPES

quick = settings(deadline=None, max_examples=80, derandomize=True, database=None)

KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"

EXAMPLES: dict[str, list[str]] = {
    "private key": [
        f"-----BEGIN {kind}PRIVATE KEY-----\n{KEY}\n-----END {kind}PRIVATE KEY-----"
        for kind in ("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED ")
    ],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"],
    "aws key": ["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"],
    "github token": [
        *(f"gh{kind}_16C7e42F292c6912E7710c838347Ae178B4a" for kind in "pousr"),
        "github_pat_11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz0123456789",
    ],
    "gitlab token": ["glpat-abcdEFGH1234-5678_90"],
    "slack token": [f"xox{kind}-123456789012-abcdefABCDEF" for kind in "abeprs"],
    "google key": ["AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY"],
    "api key": [
        "sk-abcdefghij0123456789ABCDEFGHIJ",
        "sk-proj-abcdefghij0123456789",
        "sk-ant-api03-abcdefghij0123456789",
        "sk_live_4eC39HqLyjWDarjtT1zdp7dc",
        "pk_test_TYooMQauvdEDq54NiTphI7jx",
        "rk_live_4eC39HqLyjWDarjtT1zdp7dc",
    ],
    "npm token": ["npm_abcdefghijklmnopqrstuvwxyz0123456789"],
}
"""One or more of each kind that stands for itself; the kinds that need something around them are below."""

STANDING_ALONE = [pytest.param(kind, text, id=f"{kind}-{text[:20]}") for kind in EXAMPLES for text in EXAMPLES[kind]]


# --- by shape ------------------------------------------------------------------------------------


def test_every_shape_has_an_example_here():
    in_their_place = {"basic", "bearer", "option", "password", "quoted", "secret", "user"}
    assert EXAMPLES.keys() | in_their_place == SHAPES.keys()


@pytest.mark.parametrize(("kind", "secret"), STANDING_ALONE)
def test_a_known_shape_is_replaced_by_its_kind(kind: str, secret: str):
    assert redact_text(secret) == f"[redacted: {kind}]"


@pytest.mark.parametrize(("kind", "secret"), STANDING_ALONE)
@pytest.mark.parametrize(
    "around", ["echo {} > file", '"{}"', "<{}>", "({}),", "a\n{}\nb", "x={};", "https://h/?k={}&b=1"]
)
def test_a_known_shape_is_found_inside_a_text(kind: str, secret: str, around: str):
    assert redact_text(around.format(secret)) == around.format(f"[redacted: {kind}]")


def test_all_secrets_of_a_text_are_replaced():
    text = " ".join(secret for secrets in EXAMPLES.values() for secret in secrets)
    marks = [f"[redacted: {kind}]" for kind, secrets in EXAMPLES.items() for _ in secrets]
    assert redact_text(text) == " ".join(marks)


def test_a_private_key_that_was_cut_off_is_replaced_to_the_end():
    assert redact_text(f"key: -----BEGIN RSA PRIVATE KEY-----\n{KEY}") == "key: [redacted: private key]"


def test_only_the_key_is_replaced_not_what_follows_it():
    key = EXAMPLES["private key"][0]
    assert redact_text(f"{key}\nkept\n{key}") == "[redacted: private key]\nkept\n[redacted: private key]"


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_a_bearer_token_is_replaced_and_its_scheme_kept(scheme: str):
    text = f"curl -H 'Authorization: {scheme} mF_9.B5f-4.1JqM=' https://api.example.com"
    expected = f"curl -H 'Authorization: {scheme} [redacted: bearer]' https://api.example.com"
    assert redact_text(text) == expected


@pytest.mark.parametrize("user", ["admin", "", "a%40b"])
def test_a_password_in_an_address_is_replaced_and_the_rest_kept(user: str):
    text = f"psql postgres://{user}:hunter2@db.example.com:5432/app"
    assert redact_text(text) == f"psql postgres://{user}:[redacted: password]@db.example.com:5432/app"


# --- by name -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("password=hunter22", "password=[redacted: secret]"),
        ("PASSWORD=hunter22 make", "PASSWORD=[redacted: secret] make"),
        ("passwd: hunter22", "passwd: [redacted: secret]"),
        ("secret = hunter22", "secret = [redacted: secret]"),
        ("docker run -e TOKEN=hunter22 image", "docker run -e TOKEN=[redacted: secret] image"),
        ("deploy --api-key=hunter22 --now", "deploy --api-key=[redacted: secret] --now"),
        ("apiKey: hunter22", "apiKey: [redacted: secret]"),
        ("X-Api-Key: hunter22", "X-Api-Key: [redacted: secret]"),
        ("DB_PASSWORD=hunter22", "DB_PASSWORD=[redacted: secret]"),
        ("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG", "AWS_SECRET_ACCESS_KEY=[redacted: secret]"),
        ("https://h/cb?access_token=hunter22&state=1", "https://h/cb?access_token=[redacted: secret]&state=1"),
    ],
)
def test_what_a_text_gives_to_a_secrets_name_is_replaced(text: str, expected: str):
    assert redact_text(text) == expected


@pytest.mark.parametrize(
    "text", ["client_secret='hunter22'", '{"password": "hunter22", "user": "me"}', "token : 'hunter22' # mine"]
)
def test_a_quoted_value_is_replaced_too(text: str):
    assert "hunter22" not in redact_text(text)


@pytest.mark.parametrize(
    "name",
    [
        "password", "Password", "passwd", "secret", "token", "credential", "credentials", "api_key", "api-key",
        "apiKey", "APIKEY", "access_token", "accessToken", "access_key", "secret_key", "private_key", "auth_token",
        "client_secret", "authorization", "Authorization", "Proxy-Authorization", "cookie", "Set-Cookie", "X-Api-Key",
        "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "db.password", "my-db_password",
    ],
)  # fmt: skip
def test_the_value_of_a_secrets_name_is_replaced(name: str):
    assert redact({name: "x1"}) == {name: "[redacted: secret]"}


@pytest.mark.parametrize(
    "name", ["token_estimate", "input_tokens", "max_tokens", "secretary", "passwordless", "key", "author", "path", ""]
)
def test_the_value_of_another_name_is_kept(name: str):
    assert redact({name: "x1"}) == {name: "x1"}


def test_an_empty_value_is_no_secret():
    assert redact({"password": "", "token": None}) == {"password": "", "token": None}


# --- values --------------------------------------------------------------------------------------


def test_secrets_are_found_however_deep_they_are():
    value = {"args": [{"env": {"GITHUB_TOKEN": "x1"}}, ["AKIAIOSFODNN7EXAMPLE", {"url": "https://u:p@h"}]]}
    assert redact(value) == {
        "args": [
            {"env": {"GITHUB_TOKEN": "[redacted: secret]"}},
            ["[redacted: aws key]", {"url": "https://u:[redacted: password]@h"}],
        ]
    }


@pytest.mark.parametrize("value", [None, True, False, 0, -1, 1.5, "", "text", [], {}, [None, 1], {"a": {"b": [2.5]}}])
def test_what_holds_no_secret_stays_as_it_is(value: Any):
    assert redact(value) == value


def test_what_was_given_is_not_changed():
    value = {"password": "x1", "list": ["AKIAIOSFODNN7EXAMPLE"]}
    before = copy.deepcopy(value)
    redact(value)
    assert value == before


def test_the_order_of_keys_is_kept():
    assert list(redact({"b": 1, "password": "x1", "a": 2})) == ["b", "password", "a"]


# --- what is no secret ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "git push --force",
        "git clone git@github.com:org/repo.git",
        "git commit -m 'Rotate the token and the api key'",
        "pip install scikit-learn",
        "kubectl get secret my-secret -o yaml",
        "rsync -a user@host:/srv/data .",
        "docker run -p 8080:80 -v /a:/b image:tag",
        "curl https://example.com:8443/path?q=a:b@c",
        "ssh-keygen -t ed25519 -f ~/.ssh/id_ed25519",
        "grep -rn 'password' src/ | head -5",
        "pytest tests/test_token.py::test_secret -k password",
        "token_estimate: 5",
        "token_estimate: 90000",
        '{"input_tokens": 12345, "max_tokens": 4096}',
        "max_tokens=4096",
        "It is no secret that tokens expire.",
        "Keep it secret; keep it safe.",
        "She forgot her password, then her token was revoked.",
        "Please reset the password and send the credentials to the owner.",
        "The bearer of this letter is my friend.",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "def task(desk, risk): return desk - risk",
        "Ein Geheimnis: 秘密 🔑",
    ],
)
def test_ordinary_text_is_left_alone(text: str):
    assert redact_text(text) == text


# --- any value at all ----------------------------------------------------------------------------

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30)
names = st.sampled_from(["password", "token", "a"]) | st.text(max_size=10)
SECRETS = [secret for secrets in EXAMPLES.values() for secret in secrets]


def json_of(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4))


def outline(value: Any) -> Any:
    """The outline of a value: which keys it has, and how many items, but not what they hold."""
    if isinstance(value, dict):
        return [outline(item) for item in value.values()]
    return [outline(item) for item in value] if isinstance(value, list) else None


@quick
@given(json_of(scalars | st.sampled_from(SECRETS)))
def test_any_json_keeps_its_outline(value: Any):
    assert outline(redact(value)) == outline(value)


@quick
@given(json_of(st.sampled_from(SECRETS)))
def test_no_secret_is_left_in_any_json(value: Any):
    left = json.dumps(redact(value))
    assert [secret for secret in SECRETS if json.dumps(secret)[1:-1] in left] == []


@quick
@given(st.text(), st.sampled_from(SECRETS), st.text())
def test_no_secret_is_left_between_any_two_texts(before: str, secret: str, after: str):
    assert secret not in redact_text(f"{before} {secret} {after}")


@quick
@given(st.lists(st.sampled_from([*"aZ09_-.=:/@'\" \n", "token", "sk-", "eyJ", "://", "-----BEGIN "])).map("".join))
def test_no_text_is_too_odd(text: str):
    assert isinstance(redact_text(text), str)


# --- a megabyte of the worst ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit",
    [
        "eyJ-", "eyJaaaaaaaa.", "sk-", "-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "password=", "token='", "a_", "a-",
        "://a:", "bearer ", "secret    ",
    ],
)  # fmt: skip
def test_a_megabyte_of_something_like_a_secret_takes_no_minutes(unit: str):
    text, done = unit * (1_000_000 // len(unit)), threading.Event()
    threading.Thread(target=lambda: (redact_text(text), done.set()), daemon=True).start()
    assert done.wait(20)


PIECES = [*"aZ09_-.=:/@'\" \n[],;&", "token", "password", "secret", "sk-", "eyJ", "://", "bearer ", "hunter22",
          "AKIAIOSFODNN7EXAMPLE", "ghp_16C7e42F292c6912E7710c838347Ae178B4a", "[redacted: secret]",
          "-----BEGIN PRIVATE KEY-----"]  # fmt: skip


@quick
@given(st.lists(st.sampled_from(PIECES)).map("".join))
@example("password=hunter22")
@example("token=ghp_16C7e42F292c6912E7710c838347Ae178B4a")
def test_what_was_redacted_is_not_redacted_again(text: str):
    once = redact_text(text)
    assert redact_text(once) == once


def test_a_token_given_to_a_name_leaves_one_whole_mark():
    assert redact_text("token=ghp_16C7e42F292c6912E7710c838347Ae178B4a") == "token=[redacted: github token]"


def test_a_secret_that_is_a_key_is_replaced():
    assert "AKIAIOSFODNN7EXAMPLE" not in str(redact({"AKIAIOSFODNN7EXAMPLE": 1}))


@pytest.mark.parametrize("value", [12345678, ["hunter22"], {"value": "hunter22"}])
def test_whatever_is_given_to_a_secrets_name_is_replaced(value: Any):
    left = str(redact({"password": value}))
    assert ("hunter22" in left, "12345678" in left) == (False, False)


@pytest.mark.parametrize(
    "text",
    [
        "PGPASSWORD=hunter22 psql",
        'password="hunter22 hunter22"',
        "password='a,hunter22'",
        '{\\"password\\": \\"hunter22\\"}',
        '{"SecretAccessKey": "hunter22", "Expiration": ""}',
        '{"SessionToken": "hunter22"}',
        "Authorization: Basic hunter22",
        "mysql --password hunter22",
        'password := "hunter22"',
        "'password' => 'hunter22'",
        "curl -u admin:hunter22 https://example.com",
        "postgres://u:p@hunter22@h/db",
        f"{'A' * 41}_PASSWORD=hunter22",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\nhunter22\n-----END PGP PRIVATE KEY BLOCK-----",
        "passphrase=hunter22",
    ],
)
def test_a_secret_is_found_however_it_is_given(text: str):
    assert "hunter22" not in redact_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "The API uses bearer authentication.",
        "CONSTRAINT pk_order_line_items_product PRIMARY KEY (id)",
        "def login(user: str, password: str) -> None:",
    ],
)
def test_what_only_sounds_like_a_secret_is_left_alone(text: str):
    assert redact_text(text) == text
