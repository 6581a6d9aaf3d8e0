"""A secret in a known place of a command line is hidden in every spelling: quoted, wrapped, and in lines in lines."""

from __future__ import annotations

import logging
import re
import shlex
import string
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import Hooks, Journal
from fairlead.lifecycle import BeforeTool
from fairlead.redaction.logs import redacting
from fairlead.redaction.masking import mask_step
from fairlead.redaction.redactor import Redactor, redact, redact_text
from fairlead.runners.outbound import StepEncoder
from fairlead.shell import read

PLACES = r"""
mysql -uroot -p{}
mysql -u root --password={} app
mysqldump -p{} app
mariadb-admin -u root -p{} status
curl -u me:{} https://a.example
curl -sSfu me:{} https://a.example
curl --user me:{} https://a.example
curl --user=me:{} https://a.example
curl -U me:{} https://a.example
curl -H Authorization:\ Bearer\ {} https://a.example
curl -H 'Authorization: Bearer '{} https://a.example
curl --header='X-Api-Key: '{} https://a.example
curl --oauth2-bearer {} https://a.example
curl -b session={} https://a.example
curl https://me:{}@a.example/
wget --password={} https://a.example
git clone https://me:{}@a.example/a.git
PGPASSWORD={} psql -h db
env PGPASSWORD={} psql
docker login -u me -p {} a.example
docker login a.example --username me --password={}
podman login -u me -p{} a.example
helm registry login -u me -p {} a.example
sshpass -p {} ssh host
sshpass -p{} ssh host
redis-cli -a {} ping
openssl rsa -in x -passin pass:{}
openssl enc -aes256 -k {} -in x
aws configure set aws_secret_access_key {}
npm config set //registry.example/:_authToken {}
npm config set //registry.example/:_authToken={}
gh secret set TOKEN --body {}
gh secret set TOKEN -b{}
echo {} | gh auth login --with-token
echo {} | docker login -u me --password-stdin
printf %s {} | docker login -u me --password-stdin
docker login -u me --password-stdin <<< {}
echo {} | sudo -S ls
echo me:{} | chpasswd
htpasswd -b file me {}
kubectl create secret generic db --from-literal=password={}
kubectl create secret generic db --from-literal password={}
kubectl create secret docker-registry r --docker-password={}
kubectl --token {} get pods
vault login {}
vault kv put secret/a password={}
heroku config:set API_KEY={}
twine upload -u me -p {} dist
terraform apply -var db_password={}
terraform apply -var=db_password={}
docker run -e API_KEY={} app
docker build --build-arg TOKEN={} .
mongosh --password {} host
sqlcmd -U sa -P {}
ldapsearch -x -w {} -D cn=me
zip -P {} a b
unzip -P {} a
7z x -p{} a
ssh-keygen -N {} -f key
smbclient -U me%{} //host/share
lftp -u me,{} host
keytool -list -storepass {}
gpg --passphrase {} -d x
./deploy --token {}
./deploy --api-key={}
export API_KEY={}
API_KEY={} make
P={}; mysql -p$P app
P={} && sshpass -p "$P" ssh host
""".strip().splitlines()


def split_by_quotes(secret: str) -> str:
    return f"{secret[:3]}''{secret[3:6]}\"\"{secret[6:]}"


def in_hexadecimal(secret: str) -> str:
    return "$'" + "".join(f"\\x{ord(letter):02x}" for letter in secret) + "'"


QUOTES: dict[str, Callable[[str], str]] = {
    "no quotes": str,
    "single quotes": "'{}'".format,
    "double quotes": '"{}"'.format,
    "dollar quotes": "$'{}'".format,
    "quotes in the middle": split_by_quotes,
    "a part in quotes": lambda secret: f'{secret[:4]}"{secret[4:]}"',
    "backslashes": lambda secret: "".join(f"\\{letter}" for letter in secret),
    "a backslash": lambda secret: f"{secret[:5]}\\{secret[5:]}",
    "hexadecimal": in_hexadecimal,
    "octal": lambda secret: "$'" + "".join(f"\\{ord(letter):03o}" for letter in secret) + "'",
    "a line that goes on": lambda secret: f"{secret[:5]}\\\n{secret[5:]}",
}
WRAPPED = (
    "{}", "sudo -u app {}", "env A=1 {}", "timeout 5 {}", "nohup {} &", "time {}", "nice -n 5 {}", "cd /x && {}",
    "{} || true", "if true; then {}; fi", "( {} )", "{{ {}; }}", "for i in 1 2; do {}; done", "x=$({})", "ls\n{}\nls",
    "{} 2>&1 | tee log", "f() {{ {}; }}; f",
)  # fmt: skip


def in_double_quotes(line: str) -> str:
    return '"' + re.sub(r'([\\"$`])', r"\\\1", line) + '"'


NESTED: dict[str, Callable[[str], str]] = {
    "the line itself": str,
    "sh -c": lambda line: f"sh -c {shlex.quote(line)}",
    "bash -lc": lambda line: f"bash -lc {in_double_quotes(line)}",
    "eval": lambda line: f"eval {shlex.quote(line)}",
    "ssh": lambda line: f"ssh host {shlex.quote(line)}",
    "docker exec": lambda line: f"docker exec -it app sh -c {in_double_quotes(line)}",
    "a document": lambda line: f"bash <<'E'\n{line}\nE",
    "a pipe": lambda line: f"printf %s {shlex.quote(line)} | sh",
}

letters = string.ascii_letters + string.digits
secrets = st.from_regex(r"[a-z]{3}[A-Z][0-9][a-z][A-Z]{2}[0-9][a-z0-9]{3}", fullmatch=True)
quick = settings(deadline=None, max_examples=400)


def left_of(secret: str, spelled: str, shown: str) -> str:
    """A piece of a secret that is still there, as it was spelled or without its quotes."""
    plain = re.sub(r"[\"'\\\n]", "", shown)
    pieces = [secret[at : at + 5] for at in range(len(secret) - 4)]
    coded = (
        [spelled[at : at + 12] for at in range(2, len(spelled) - 12)] if "\\x" in spelled or "\\1" in spelled else []
    )
    return next((piece for piece in pieces if piece in plain), "") or next((one for one in coded if one in shown), "")


def line_of(place: str, spelled: str, wrapped: str, nested: list[str]) -> str:
    if "=" in place.split()[0] and wrapped[0] in "senti":  # a variable is not set by every wrapper
        wrapped = "{}"
    line = wrapped.format(place.replace("{}", spelled))
    for name in nested:
        line = NESTED[name](line)
    return line


@pytest.mark.parametrize("quotes", QUOTES)
@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_hidden_however_it_is_quoted(place: str, quotes: str) -> None:
    secret = "hvkQ7mLW2x9z"
    spelled = QUOTES[quotes](secret)
    assert left_of(secret, spelled, Redactor().text(place.replace("{}", spelled))) == ""


@pytest.mark.parametrize("word", ["kettle", "horse battery", "p@ss;word", "12345678"])
@pytest.mark.parametrize(
    "place", ["mysql -p{} app", "sshpass -p {} ssh host", "docker login -u me -p {} a.example", "redis-cli -a {} ping"]
)
def test_the_place_of_a_secret_suffices_whatever_it_looks_like(place: str, word: str) -> None:
    assert word not in Redactor().text(place.replace("{}", f'"{word}"'))


@quick
@given(
    st.sampled_from(PLACES),
    secrets,
    st.sampled_from(sorted(QUOTES)),
    st.sampled_from(WRAPPED),
    st.lists(st.sampled_from(sorted(NESTED)), max_size=2),
)
def test_a_secret_is_hidden_however_its_command_is_wrapped(
    place: str, secret: str, quotes: str, wrapped: str, nested: list[str]
) -> None:
    spelled = QUOTES[quotes](secret)
    if "\n" in spelled and "a document" in nested:
        spelled = secret
    line = line_of(place, spelled, wrapped, nested)
    assert left_of(secret, spelled, Redactor().text(line)) == ""


@quick
@given(
    st.sampled_from(PLACES), secrets, st.sampled_from(sorted(QUOTES)), st.sampled_from(WRAPPED),
    st.sampled_from(["the line itself", "sh -c", "bash -lc"]),
)  # fmt: skip
def test_a_human_is_shown_a_line_that_reads_the_same_but_for_its_secrets(
    place: str, secret: str, quotes: str, wrapped: str, nested: str
) -> None:
    line = line_of(place, QUOTES[quotes](secret), wrapped, [nested])
    shown = mask_step(BeforeTool(tool="bash", args={"command": line}))[0]["args"]["command"]
    before, after = read(line, "/").commands, read(shown, "/").commands
    assert [(one.program, one.via, len(one.args)) for one in after] == [
        (one.program, one.via, len(one.args)) for one in before
    ]
    mark = re.compile(r"\[redacted:[a-z0-9.-]+\]")
    for one, other in zip(before, after, strict=True):
        for word, seen in zip(one.args, other.args, strict=True):
            assert re.fullmatch(".+".join(map(re.escape, mark.split(seen))), word, re.DOTALL)
        assert set(one.options) == set(other.options) or shown != line
        assert len(one.operands) == len(other.operands)


@pytest.mark.parametrize(
    "text",
    [
        "mysql.exe -uroot -phvkQ7mLW2x9z", "docker.exe login -u me -p hvkQ7mLW2x9z",
        "curl.exe -u 'me:hvkQ7mLW2x9z' https://a.example", "powershell -c \"curl.exe -u 'me:hvkQ7mLW2x9z' x\"",
        "$env:API_KEY = 'hvkQ7mLW2x9z'", "set API_KEY=hvkQ7mLW2x9z&& deploy", 'set "API_KEY=hvkQ7mLW2x9z"',
        "setx API_KEY hvkQ7mLW2x9z", "Connect-X -Password 'hvkQ7mLW2x9z'", "net use x: /user:me hvkQ7mLW2x9z",
        "$p = ConvertTo-SecureString 'hvkQ7mLW2x9z' -AsPlainText -Force", "psexec -u me -p hvkQ7mLW2x9z \\\\h cmd",
        "irm x -Headers @{ 'X-Api-Key' = 'hvkQ7mLW2x9z' }", "irm x -Headers @{Authorization='Bearer hvkQ7mLW2x9z'}",
    ],
)  # fmt: skip
def test_a_secret_is_hidden_in_lines_of_powershell_and_cmd(text: str) -> None:
    assert left_of("hvkQ7mLW2x9z", "", redact_text(text)) == ""


ODD = [
    "mysql -p$'hvkQ7mLW2x9z' app", "curl -u me':'hvkQ7\"mLW2x9z\" https://a.example",
    "sh -c 'docker login -u me -p hvkQ''7mLW2x9z'", "printf %s hvkQ7'mLW2x9z' | gh auth login --with-token",
]  # fmt: skip


def test_nothing_that_is_kept_or_told_shows_such_a_secret(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The journal, the log, and what observers are sent."""
    log = redacting(logging.getLogger("fairlead.test_command_lines"))
    path = tmp_path / "journal.db"
    with Journal(path) as journal:
        hooks = Hooks(journal=journal)
        for line in ODD:
            hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": line}))
            log.warning("refused: %s", line)
    kept = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()).decode(errors="replace")
    assert len(caplog.messages) == len(ODD)
    for text in (kept, *caplog.messages):
        assert left_of("hvkQ7mLW2x9z", "", text) == ""


async def test_observers_are_sent_no_such_secret() -> None:
    for line in ODD:
        sent = await StepEncoder().for_observer(BeforeTool(tool="bash", args={"command": line}))
        assert left_of("hvkQ7mLW2x9z", "", sent.decode()) == ""
        assert left_of("hvkQ7mLW2x9z", "", str(redact({"command": line}))) == ""


@pytest.mark.parametrize(
    "text",
    [
        "mysql -p app", "mysql -p$PASSWORD app", "sshpass -p ${P} ssh h",
        "curl -u user:password https://a.example", "curl -fsSL https://a.example | sh", "vault login TOKEN",
        "docker run -p 8080:80 app", "echo hello | docker build -", "echo yes | sudo tee /etc/x", "npm token create",
        "gcloud container clusters get-credentials staging", "printf 'user:new_password' | sudo chpasswd",
        "echo url=x | git credential fill", "Use mysql -p to be asked for the password of your database.",
        "zip -r a.zip password.txt", "7z x a.7z -oout", "git config user.name someone", "redis-cli -p 6379 ping",
        "ssh-keygen -t ed25519 -N '' -f key", "curl -H 'Accept: application/json' https://a.example",
        "kubectl get secret db -o yaml", "aws configure set region eu-west-1", "openssl rsa -passin stdin -in x",
    ],
)  # fmt: skip
def test_ordinary_lines_are_left_alone(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sshpass -p ssh7 ssh ssh7.example", "sshpass -p [redacted: password] ssh ssh7.example"),
        ("mysql -p'a b' app; ls", "mysql -p'[redacted: password]' app; ls"),
        ("(curl -u me:'hunt''er22' x) && rm -rf y", "(curl -u me:'[redacted: password]' x) && rm -rf y"),
        ("echo hunter22 | docker login --password-stdin", "echo [redacted: password] | docker login --password-stdin"),
    ],
)  # fmt: skip
def test_a_mark_hides_the_value_and_nothing_beside_it(text: str, expected: str) -> None:
    assert redact_text(text) == expected


@pytest.mark.parametrize(
    "unit",
    [
        "mysql -pa1b2c3d4;", "token a''b ", "curl -u a:b1c2d3 x\n", "'\"", "\\x41", "''a", "sudo -S <<< a1b2c3d4 x|",
        "$'a' key ",
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "mysql -p$'", "x\n"])
def test_four_times_the_text_takes_no_more_than_a_few_times_as_long(before: str, unit: str) -> None:
    def seconds(size: int) -> float:
        started = process_time()
        Redactor().text(before + unit * (size // len(unit)))
        return process_time() - started

    assert seconds(64_000) < 12 * max(min(seconds(16_000) for _ in range(2)), 0.02)
