"""Redaction: what is recognised, what is left alone, and how long it may take."""

from __future__ import annotations

import base64
import copy
import io
import json
import logging
import math
import subprocess
import sys
import threading
from collections.abc import Iterator
from random import Random
from time import process_time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.errors import FairleadError
from fairlead.redaction import redactor as redaction
from fairlead.redaction.logs import RedactingFilter, logger, redacting
from fairlead.redaction.redactor import Redaction, Redactor, redact, redact_text
from fairlead.redaction.shapes import PLACES, SHAPES

quick = settings(deadline=None, max_examples=80, derandomize=True, database=None)


@pytest.fixture(autouse=True)
def the_redactor_of_the_process() -> Iterator[None]:
    """Whatever the environment of the tests holds, it is not removed from what they compare."""
    redaction.configure(Redactor())
    yield
    redaction.configure(None)


def any_of(letters: str, length: int) -> str:
    """The same letters in every run; with them, no secret has to be written out here."""
    return "".join(Random(length).choices(letters, k=length))


HEX, UPPER = "0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
WORD = UPPER + "abcdefghijklmnopqrstuvwxyz"

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
    **{
        kind: [start.replace("~", "") + any_of(letters, length)]
        for kind, start, letters, length in (
            ("google secret", "GOC~SPX-", WORD, 28), ("google token", "ya~29.", WORD, 60), ("groq key",
            "gs~k_", WORD, 52),
            ("xai key", "xa~i-", WORD, 80), ("perplexity key", "pp~lx-", WORD, 48), ("replicate token",
            "r~8_", WORD, 37),
            ("tavily key", "tv~ly-", WORD, 32), ("langsmith key", "lsv2_~pt_", HEX, 43), ("webhook secret",
            "wh~sec_", WORD, 32),
            ("hugging face token", "h~f_", WORD, 34), ("twilio key", "S~K", HEX, 32), ("mailgun key", "ke~y-", HEX, 32),
            ("brevo key", "xkey~sib-", HEX, 64), ("pypi token", "py~pi-AgE", WORD, 60), ("rubygems key",
            "ruby~gems_", HEX, 48),
            ("docker token", "dckr_~pat_", WORD, 27), ("digitalocean token", "dop_~v1_", HEX, 64),
            ("telegram token", "123456789~:AA", WORD, 33), ("age key", "AGE-SECRET-~KEY-1", UPPER, 58),
            ("databricks token", "da~pi", HEX, 32), ("linear key", "lin_~api_", WORD, 40), ("notion token",
            "nt~n_", WORD, 46),
            ("shopify token", "shp~at_", HEX, 32), ("square token", "sq0~atp-", WORD, 22), ("fly token",
            "fm~2_", WORD, 60),
            ("grafana token", "gl~sa_", WORD, 41), ("sentry token", "sntr~ys_", WORD, 60), ("new relic key",
            "NR~AK-", UPPER, 27),
            ("doppler token", "dp.~pt.", WORD, 43), ("planetscale token", "pscale_~tkn_", WORD, 43),
            ("supabase token", "sb~p_", HEX, 40),
            ("figma token", "fi~gd_", WORD, 40), ("postman key", "PM~AK-", HEX, 59), ("tailscale key",
            "ts~key-auth-", WORD, 30),
            ("terraform token", "abcdefghijklmn.~atlasv1.", WORD, 67), ("heroku key", "HR~KU-", HEX, 36),
            ("dynatrace token", "dt0c~01." + any_of(UPPER, 24) + ".", UPPER, 64), ("atlassian token",
            "ATATT~3xFf", WORD, 60),
            ("hubspot token", "pat-~na1-", HEX, 36), ("typeform token", "tf~p_", WORD, 44), ("pulumi token",
            "pu~l-", HEX, 40),
            ("circleci token", "CCI~PAT_", WORD, 40), ("buildkite token", "bk~ua_", HEX, 40), ("contentful token",
            "CF~PAT-", WORD, 43),
            ("1password token", "op~s_eyJ", WORD, 80), ("adafruit key", "ai~o_", WORD, 28), ("duffel token",
            "duffel_~test_", WORD, 43),
            ("flutterwave key", "FLW~SECK-", WORD, 32), ("prefect key", "pn~u_", WORD, 36), ("alibaba key",
            "LT~AI", WORD, 20),
            ("vault token", "hv~s.", WORD, 90), ("sendgrid key", "S~G." + any_of(WORD, 22) + ".", WORD, 43),
        )
    },
}  # fmt: skip
"""One or more of each kind that stands for itself; the kinds that need something around them are below."""

STANDING_ALONE = [pytest.param(kind, text, id=f"{kind}-{text[:20]}") for kind in EXAMPLES for text in EXAMPLES[kind]]


# --- by shape ------------------------------------------------------------------------------------


def test_the_kinds_of_the_examples_are_those_of_the_shapes():
    in_their_place = {"azure key", "azure secret", "azure signature", "slack webhook", "discord webhook"}
    assert EXAMPLES.keys() | in_their_place <= {shape.kind for shape in SHAPES} | {"private key"}
    assert len({shape.kind for shape in SHAPES}) >= 45


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


# --- places --------------------------------------------------------------------------------------


def test_every_place_is_tried_somewhere_here():
    kinds = {"bearer", "basic", "authorization", "cookie", "token", "password", "signature"}
    assert {place.shape.kind for place in PLACES} == kinds


@pytest.mark.parametrize(
    "text",
    [
        "redis://:{}@cache:6379/0", "amqp://u:{}@mq//", "https://{}@github.com/org/repo.git",
        "sshpass -p {} ssh me@host", "sshpass -p '{}' ssh me@host", "mysql -u root -p{} app", "mysqldump -p'{}' app",
        "redis-cli -h h -a {} ping", "ldapsearch -x -w {} -b dc=x", "zip -P {} a.zip b", "sqlcmd -S h -U sa -P {}",
        "machine h login me password {}", "machine h\n  login me\n  password {}\n", "requirepass {}",
        "htpasswd -nb me x{}", "htpasswd -bc file me {}", "openssl rsa -passin pass:{}", "docker login -u me -p {} r",
        "CREATE USER me IDENTIFIED BY '{}'", "ALTER ROLE me WITH PASSWORD '{}'", "curl --user me:{} https://h",
        "curl --proxy-user=me:{} https://h", "Authorization: token {}", "authorization: ApiKey {}", "Authorization: {}",
        '"Authorization": "Digest {}"', "Cookie: a=1; session={}", "Set-Cookie: sid={}; HttpOnly", '"Cookie": "sid={}"',
        "https://h/?sig={}&x=1", "https://h/?a=b&key={}", "https://h/?X-Amz-Signature={}", "x?token={}", "x&api_key={}",
        "DefaultEndpointsProtocol=https;AccountKey={}==;X=y", "Endpoint=sb://x/;SharedAccessKey={}=",
        "https://hooks.slack.com/services/T0000/B0000/{}", "https://discord.com/api/webhooks/123456789012345678/{}",
    ],
)  # fmt: skip
def test_a_secret_is_known_by_where_it_stands(text: str):
    secret = any_of(WORD, 44) + "7"
    assert secret not in redact_text(text.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        "Server=db;User Id=sa;Password={};Encrypt=true", "Server=db;Uid=sa;Pwd={};", "pwd={}", "DB_PASS={}",
        "export pass={}",
        "password: {}\nuser: me", "  password:   '{}'", "password: |\n  {}\n", "password = {}\n", "[x]\npasswd={}\n",
        "TOKEN={}\\nUSER=me", '{{\\\\\\"token\\\\\\": \\\\\\"{}\\\\\\"}}', '"password":\n    "{}"', "token: str = '{}'",
        "const apiKey: string = \"{}\"", "<password>{}</password>", '<add key="Password" value="{}"/>',
        "x.password('{}')",
        '{{"name": "API_TOKEN", "value": "{}"}}', "- name: API_TOKEN\n  value: {}", "('Authorization', '{}')",
        "{{'api_key': b'{}'}}",
        'password="{}', "${{TOKEN:-{}}}", "ENV API_KEY={}", "ARG API_KEY={}", "client_secret: \"{}\" # mine",
        "secretString={}",
        "MASTER_KEY={}", "encryption-key: {}", "signingKey={}", "PRIVATE_KEY={}", "SECRET_KEY_BASE={}", "API_KEY_2={}",
        "//r.example.com/:_authToken={}", '{{"auths": {{"r": {{"auth": "{}"}}}}}}', "--client-secret '{}'",
        "-password {}",
    ],
)  # fmt: skip
def test_a_secret_is_known_by_its_name_in_every_language(text: str):
    secret = any_of(WORD, 19) + "7"
    assert secret not in redact_text(text.format(secret))


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASS=swordfish",
        "x --password swordfish --now",
        "password: swordfish",
        "password=swordfish",
        "-H 'X-Api-Key: swordfish'",
    ],
)
def test_a_word_is_a_secret_where_nothing_but_a_value_can_stand(text: str):
    assert "swordfish" not in redact_text(text)


@pytest.mark.parametrize(
    "text",
    [
        "password: !Qwerty99", "password=@dmin1234", "password: abc-123-def", "token: 1234-abcdef", "password=$ecret99",
        "DB_PASSWORD=?abc1234", "password='-Abc12345'", "password: 'correct horse battery staple!'", "pwd=Abc.1def",
        'password="Correct Horse Battery 9"', "PASSWORD=\\$ecret99", "password='a\\nb12345'", "DB_PASS=p(ss)w0rd",
        "DB_PASS=a,b,c12345", "auth_token=ab/12/cd",
    ],
)  # fmt: skip
def test_an_odd_value_is_a_secret_too(text: str):
    assert redact_text(text).partition("[")[2].startswith("redacted: secret]")


def test_a_private_key_in_a_kubeconfig_is_replaced_and_a_certificate_is_not():
    key, certificate = (
        base64.b64encode(f"-----BEGIN {kind}-----\n{KEY}\n-----END {kind}-----\n".encode()).decode()
        for kind in ("EC PRIVATE KEY", "CERTIFICATE")
    )
    left = redact_text(f"certificate-authority-data: {certificate}\nclient-key-data: {key}\n")
    assert left == f"certificate-authority-data: {certificate}\nclient-key-data: [redacted: private key]\n"


def test_arguments_of_a_program_are_known_by_the_option_before_them():
    value = ["mysql", "--password", "x1 y", "--host", "db"]
    assert redact(value) == ["mysql", "--password", "[redacted: secret]", "--host", "db"]


def test_a_value_is_known_by_the_name_beside_it():
    assert redact([{"name": "TOKEN", "value": "x1"}, {"name": "PATH", "value": "x1"}]) == [
        {"name": "TOKEN", "value": "[redacted: secret]"},
        {"name": "PATH", "value": "x1"},
    ]


def test_keys_that_were_secrets_stay_apart():
    value = {f"AKIA{'A' * 15}{n}": n for n in range(3)}
    assert list(redact(value).values()) == [0, 1, 2]


# --- a redactor of one's own -----------------------------------------------------------------------


def test_more_names():
    redactor = Redactor(names=["acme_pin"])
    assert redactor.value({"acme_pin": "12ab", "acmePin": "12ab", "pin": "12ab"}) == {
        "acme_pin": "[redacted: secret]",
        "acmePin": "[redacted: secret]",
        "pin": "12ab",
    }
    assert redactor.text("ACME_PIN=12ab x") == "ACME_PIN=[redacted: secret] x"


def test_a_key_is_judged_by_its_own_name_also_after_it_stood_beside_another():
    """What is remembered of a key is not what another name has said of its value."""
    redactor = Redactor(names=["value"])
    assert redactor.value({"name": "colour", "value": "green as grass"}) == {
        "name": "colour",
        "value": "green as grass",
    }
    assert redactor.value({"value": "green as grass"}) == {"value": "[redacted: secret]"}


def test_patterns_take_out_what_they_match_or_their_group():
    redactor = Redactor(patterns=[r"EMP-\d{4}", r"badge (?P<secret>\w+)"])
    assert redactor.text("EMP-1234 has badge x7") == "[redacted: pattern] has badge [redacted: pattern]"


@pytest.mark.parametrize(("pattern", "why"), [("(", "no regular expression"), ("a*", "empty"), ("x?", "empty")])
def test_a_bad_pattern_is_refused_by_name(pattern: str, why: str):
    with pytest.raises(FairleadError, match=why) as error:
        Redactor(patterns=[pattern])
    assert repr(pattern) in str(error.value)


@pytest.mark.parametrize("value", ["", "abc", "secret", "redacted", "github"])
def test_a_value_that_every_text_may_have_is_refused(value: str):
    with pytest.raises(FairleadError):
        Redactor(values=[value])


@pytest.mark.parametrize(
    "text",
    ["say {}", '{{"a": "{}"}}', "x{}y", "{}{}"],
)
def test_a_listed_value_is_removed_wherever_it_is(text: str):
    redactor = Redactor(values=["open sesame"])
    assert "sesame" not in redactor.text(text.replace("{}", "open sesame"))


def test_a_listed_value_is_removed_in_every_spelling():
    secret = 'a "quoted"\nline/é'
    redactor = Redactor(values=[secret])
    spellings = [json.dumps(secret), quote(secret, safe=""), repr(secret), base64.b64encode(secret.encode()).decode()]
    for spelt in spellings:
        assert "[redacted: value]" in redactor.text(f"x {spelt} y"), spelt
    assert len({found.digest for spelt in spellings for found in redactor.record(spelt)[1]}) == 1


def test_a_listed_number_is_removed_where_it_is_a_number():
    assert Redactor(values=["12345678"]).value([12345678, 1234]) == ["[redacted: value]", 1234]


def test_variables_with_a_secrets_name_are_removed_by_value():
    environ = {
        "MY_TOKEN": "zebra-crossing-9", "HOME": "/home/zebra-9", "DB_PASSWORD": "correcthorse", "API_KEY": "12345678",
        "SSH_AUTH_TOKEN": "/run/user/1000/x", "SHORT_SECRET": "ab12", "USE_TOKEN": "true",
    }  # fmt: skip
    text = " ".join(environ.values())
    assert Redactor(environ=environ).text(text) == text.replace("zebra-crossing-9", "[redacted: value]")
    assert Redactor().text(text) == text


def test_the_redactor_of_the_process_knows_the_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_TOKEN", "zebra-crossing-9")
    redaction.configure(None)
    assert redact_text("x zebra-crossing-9") == "x [redacted: value]"
    assert redaction.current() is redaction.current()


def test_the_redactor_of_the_process_can_be_replaced():
    own = Redactor(values=["open sesame"])
    redaction.configure(own)
    assert redaction.current() is own
    assert redact({"a": "open sesame"}) == {"a": "[redacted: value]"}


# --- the list of what was taken out ------------------------------------------------------------------


def test_a_record_lists_what_was_taken_out_and_where():
    key = EXAMPLES["aws key"][0]
    value = {"args": {"command": f"{key} postgres://u:hunter22@h"}, "messages": [{"content": key}], "password": 7}
    clean, taken = Redactor(key=b"k").record(value)
    assert clean == Redactor().value(value)
    assert [(found.path, found.kind) for found in taken] == [
        ("args.command", "aws key"),
        ("args.command", "password"),
        ("messages.0.content", "aws key"),
        ("password", "secret"),
    ]
    assert taken[0].digest == taken[2].digest != taken[1].digest


def test_a_path_may_start_somewhere():
    assert Redactor().record({"password": "x1"}, "step")[1][0].path == "step.password"
    assert Redactor().record("password=hunter22")[1][0].path == ""


def test_a_secret_key_is_not_in_its_path():
    key = EXAMPLES["aws key"][0]
    [taken] = Redactor().record({"a": {key: 1}})[1]
    assert taken == Redaction("a.[redacted: aws key]", "aws key", taken.digest)


def test_a_digest_is_keyed():
    digests = [Redactor(key=key).record("password=hunter22")[1][0].digest for key in (b"a", b"b", b"a")]
    assert digests[0] == digests[2] != digests[1]
    assert digests[0].startswith("hmac-sha256:")
    assert len(digests[0]) == len("hmac-sha256:") + 32


def test_without_a_key_digests_hold_for_the_process():
    assert Redactor().record("password=hunter22") == Redactor().record("password=hunter22")


# --- any JSON ---------------------------------------------------------------------------------------

huge = st.integers(5000, 5001).map(lambda digits: 10**digits)
surrogates = st.text(st.characters(categories=["Cs", "Lu", "Nd"]), max_size=9)
odd = scalars | huge | st.floats() | st.text(st.characters()) | surrogates | st.sampled_from([*SECRETS, *PIECES])


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, dict) and isinstance(other, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@quick
@given(json_of(odd))
def test_redacting_any_json_twice_changes_nothing_more(value: Any):
    once = Redactor().value(value)
    assert same(Redactor().value(once), once)


@quick
@given(json_of(odd))
def test_the_list_and_the_copy_agree(value: Any):
    redactor = Redactor()
    clean, taken = redactor.record(value)
    assert same(clean, redactor.value(value))
    assert bool(taken) == (not same(clean, json_copy(value)))


def json_copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: json_copy(item) for key, item in value.items()}
    return [json_copy(item) for item in value] if isinstance(value, (list, tuple)) else value


@quick
@given(st.lists(st.text(min_size=4, max_size=12), min_size=1, max_size=3), st.data())
def test_no_listed_value_is_left_in_any_json(values: list[str], data: st.DataObject):
    values = [
        value for value in values if not any(value in mark for mark in ("[redacted: value]", "[redacted: secret]"))
    ]
    try:
        redactor = Redactor(values=values)
    except FairleadError:
        return
    leaves = st.sampled_from([*values, *(f"a{value}b" for value in values), "x", "1"])
    left = redactor.value(data.draw(json_of(leaves)))
    assert [text for text in texts(left) for value in values if value in text.replace("[redacted: value]", "\0")] == []


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from (*texts(key), *texts(item))
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize("depth", [200, 5000])
def test_deep_json_is_no_way_out(depth: int):
    value: Any = EXAMPLES["aws key"][0]
    for level in range(depth):
        value = {"a": value} if level % 2 else [value]
    left, taken = Redactor().record(value)
    for _ in range(depth):
        if isinstance(left, str):
            break
        left = left["a"] if isinstance(left, dict) else left[0]
    assert left == ("[redacted: aws key]" if depth == 200 else "[redacted: too deep]")
    assert len(taken) == 1


# --- time -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "unit",
    [
        "a", "://", "token=", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----\n", "-----END PRIVATE KEY-----", '"', "'",
        '\\"',
        "://a:b@", "token=a(", "token = ", 'token="\\"', 'token="a ', "cookie: a=bcde ", "authorization: a ",
        "mysql -p ",
        "[redacted: ", "password=[redacted: secret]", "eyJaaaaaaaa.", "SG.aaaaaaaaaaaaaaaaaaaa", "12345678:AA",
        any_of(WORD + "+/", 1 << 16), "LS0tLS1CRUdJTi", "AKIAIOSFODNN7EXAMPLE", "secret=<", "key value ",
    ],
)  # fmt: skip
def test_twice_the_text_takes_no_more_than_a_few_times_as_long(unit: str):
    """Quadratic work would take 64 times as long for 8 times the text. The bound is wide, for busy machines."""

    def seconds(size: int) -> float:
        text, started = (unit * (size // len(unit) + 1))[:size], process_time()
        Redactor().text(text)
        return process_time() - started

    assert seconds(1 << 19) < 24 * max(min(seconds(1 << 16) for _ in range(3)), 0.01)


# --- logs -------------------------------------------------------------------------------------------


@pytest.fixture
def printed() -> Iterator[io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    logger.addHandler(handler)
    yield stream
    logger.removeHandler(handler)


def test_a_logged_message_is_redacted_with_its_arguments(printed: io.StringIO):
    logger.warning("could not connect to %s, password=%s", "postgres://u:hunter22@h", "hunter22")
    said = "WARNING could not connect to postgres://u:[redacted: password]@h, password=[redacted: secret]\n"
    assert printed.getvalue() == said


def test_a_logged_exception_is_redacted(printed: io.StringIO):
    try:
        raise ValueError("password=hunter22")
    except ValueError:
        logger.exception("it broke", stack_info=True)
    said = printed.getvalue()
    assert "hunter22" not in said.replace('raise ValueError("password=hunter22")', "")
    assert "Traceback (most recent call last)" in said
    assert "ValueError: password=[redacted: secret]" in said
    assert "Stack (most recent call last)" in said


def test_no_handler_gets_at_what_was_redacted(printed: io.StringIO):
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        raise ValueError("password=hunter22")
    except ValueError as error:
        logger.error("token=%s", "hunter22", exc_info=error)
    finally:
        logger.removeHandler(handler)
    [record] = records
    assert (record.args, record.exc_info) == ((), None)
    assert "hunter22" not in record.getMessage()


def test_arguments_that_do_not_fit_are_not_printed(printed: io.StringIO):
    logger.warning("no place for it", "hunter22")
    assert printed.getvalue() == "WARNING no place for it (with arguments that do not fit it)\n"


def test_a_logger_has_one_filter_however_often_it_is_asked_for():
    redacting(redacting(logger))
    assert sum(isinstance(one, RedactingFilter) for one in logger.filters) == 1


def test_the_logger_costs_no_import_of_redaction():
    code = "import sys, fairlead.redaction.logs; print('fairlead.redaction.redactor' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_two_keys_never_become_one():
    token = "gh" + "p_" + "a1B2" * 9
    clean = Redactor().value({token: "rm -rf /", "[redacted: github token]": "ls", "a": 1})
    assert sorted(map(str, clean.values())) == ["1", "ls", "rm -rf /"]
