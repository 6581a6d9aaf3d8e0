"""Redaction at scale: no secret that was planted survives, and ordinary code, commands and logs stay as they are."""

from __future__ import annotations

import base64
import json
import string
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairlead.redaction.redactor import Redactor

# --- planted secrets -------------------------------------------------------------------------------------

ALNUM, HEX, URL = string.ascii_letters + string.digits, "0123456789abcdef", string.ascii_letters + string.digits + "-_"
UPPER = string.ascii_uppercase + string.digits


class Dice(Random):
    def word(self, length: int, letters: str = ALNUM) -> str:
        return "".join(self.choices(letters, k=length))

    def password(self) -> str:
        """Something that only its name gives away, with a digit so that it is no word."""
        return self.word(9) + self.choice(string.digits) + self.word(8, ALNUM + "!@^*_-+") + self.word(3)


def jwt(dice: Dice) -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
    body = base64.urlsafe_b64encode(json.dumps({"sub": dice.word(12)}).encode()).decode().rstrip("=")
    return f"{head}.{body}.{dice.word(43, URL)}"


def pem(kind: str) -> Callable[[Dice], str]:
    def made(dice: Dice) -> str:
        lines = [dice.word(64, ALNUM + "+/") for _ in range(6)]
        return "\n".join([f"-----BEGIN {kind}-----", *lines, dice.word(20) + "==", f"-----END {kind}-----"])

    return made


def prefixed(*rows: tuple[str, str, int, str]) -> dict[str, Callable[[Dice], str]]:
    """Prefixes are written in two halves, so that no scanner of this repository takes them for keys."""
    return {
        a + b: lambda dice, a=a, b=b, n=n, letters=letters: a + b + dice.word(n, letters) for a, b, n, letters in rows
    }


SHAPES: dict[str, Callable[[Dice], str]] = {
    **prefixed(
        ("AK", "IA", 16, UPPER), ("AS", "IA", 16, UPPER), ("gh", "p_", 36, ALNUM), ("gh", "o_", 36, ALNUM),
        ("gh", "s_", 36, ALNUM), ("github_", "pat_", 82, ALNUM + "_"), ("glp", "at-", 20, URL), ("gld", "t-", 20, URL),
        ("glr", "t-", 20, URL), ("glc", "bt-", 24, URL), ("xo", "xb-", 52, ALNUM), ("xa", "pp-1-", 60, ALNUM),
        ("AI", "za", 35, URL), ("GOC", "SPX-", 28, URL), ("ya", "29.", 68, URL), ("sk", "-", 48, ALNUM),
        ("sk", "-proj-", 64, URL), ("sk-", "ant-api03-", 93, URL), ("sk_", "live_", 24, ALNUM),
        ("rk_", "live_", 24, ALNUM),
        ("wh", "sec_", 32, ALNUM), ("S", "K", 32, HEX), ("ke", "y-", 32, HEX), ("np", "m_", 36, ALNUM),
        ("py", "pi-AgEIcHlwaS5vcmc", 80, URL), ("h", "f_", 34, ALNUM), ("dop", "_v1_", 64, HEX), ("da", "pi", 32, HEX),
        ("lin_", "api_", 40, ALNUM), ("nt", "n_", 46, ALNUM), ("shp", "at_", 32, HEX), ("sq0", "atp-", 22, URL),
        ("dckr_", "pat_", 27, URL), ("gl", "sa_", 41, ALNUM), ("sntr", "ys_", 60, ALNUM), ("NR", "AK-", 27, UPPER),
        ("dp.", "pt.", 43, ALNUM), ("pscale_", "tkn_", 43, ALNUM), ("sb", "p_", 40, HEX), ("fi", "gd_", 40, URL),
        ("PM", "AK-", 59, HEX), ("gs", "k_", 52, ALNUM), ("r", "8_", 37, ALNUM), ("xa", "i-", 80, ALNUM),
        ("pp", "lx-", 48, ALNUM), ("ts", "key-auth-", 40, ALNUM), ("hv", "s.", 90, URL),
        ("AGE-SECRET-", "KEY-1", 58, UPPER),
        ("fm", "2_", 80, ALNUM), ("rubygems", "_", 48, HEX), ("xkey", "sib-", 64, HEX), ("CCI", "PAT_", 40, ALNUM),
    ),
    "sendgrid": lambda dice: "SG" + f".{dice.word(22, URL)}.{dice.word(43, URL)}",
    "telegram": lambda dice: f"{dice.randint(10**8, 10**9)}:" + "AA" + dice.word(33, URL),
    "discord": lambda dice: "MT" + f"{dice.word(24)}.{dice.word(6, URL)}.{dice.word(38, URL)}",
    "terraform": lambda dice: f"{dice.word(14)}." + "atlas" + f"v1.{dice.word(67, URL)}",
    "jwt": jwt,
    **{kind: pem(kind) for kind in ("PRIVATE" + " KEY", "RSA PRIVATE" + " KEY", "OPENSSH PRIVATE" + " KEY")},
    "pgp": pem("PGP PRIVATE" + " KEY BLOCK"),
    "kubeconfig": lambda dice: base64.b64encode(pem("EC PRIVATE" + " KEY")(dice).encode()).decode(),
}  # fmt: skip

PLACES = [
    "{}", "echo {} > out", "export X={}", 'curl "https://api.example.com/v1?x={}&y=1"', "<{}>", "- {}\n- b",
    "2026-01-02T03:04:05Z INFO sent {} to 10.0.0.1", "  File \"a.py\", line 3, in f\n    call('{}')\nValueError: {}",
    '{{"a": "{}"}}', "a: {}\nb: 1", "git clone https://x:{}@example.com/a.git", "+{}", "   12\t{}\n   13\tend", "`{}`",
]  # fmt: skip
"""Anywhere: these secrets are known by their shape."""

GIVEN = [
    "DB_PASSWORD={}", "export API_TOKEN={} && make", "PGPASSWORD={} psql -h db", 'password = "{}"', "password: {}",
    '{{"password": "{}"}}', '{{\\"client_secret\\": \\"{}\\"}}', "  api_key: '{}'", "[db]\npasswd = {}\n", "token={}",
    "postgres://app:{}@db:5432/app", "redis://:{}@cache:6379/0", "mysql -u root -p{} app", "sshpass -p {} ssh me@host",
    "curl -u me:{} https://example.com", "Authorization: Bearer {}", "-H 'X-Api-Key: {}'", "deploy --token {} --now",
    "deploy --api-key={} --now", "machine example.com login me password {}", "Server=db;Uid=sa;Pwd={};Encrypt=yes",
    "https://example.com/cb?access_token={}&state=1", "docker run -e MYSQL_ROOT_PASSWORD={} mysql:8", "DB_PASS={}",
    "ENV SECRET_KEY={}", "<password>{}</password>", "connect(password='{}')", "const apiKey: string = \"{}\"",
    "- name: DB_PASSWORD\n  value: {}", '{{"name": "AWS_SECRET_ACCESS_KEY", "value": "{}"}}', "'secret' => '{}',",
    "ALTER USER me WITH PASSWORD '{}'", "CREATE USER me IDENTIFIED BY '{}'", "//registry.npmjs.org/:_authToken={}",
    "set -x\n+ export GITHUB_TOKEN={}\n+ ls", "INFO config loaded: db_password={} db_host=x", "if password == \"{}\":",
    "Cookie: theme=dark; sessionid={}", "openssl rsa -passin pass:{} -in k", "docker login -u me -p {} r.example.com",
]  # fmt: skip
"""Where anything is a secret."""


def planted() -> Iterator[tuple[str, str, str]]:
    """(what it is, the text that has it, the secret)."""
    dice = Dice(20261116)
    for name, make in SHAPES.items():
        for place in dice.sample(PLACES, 6):
            secret = make(dice)
            if "\n" in secret and "://" in place:
                continue
            yield f"{name} in {place!r}", place.format(*[secret] * place.count("{}")), secret
    for place in GIVEN:
        for _ in range(4):
            secret = dice.password().replace("@", "^") if "://" in place else dice.password()
            yield f"a password in {place!r}", place.format(secret), secret


PLANTED = list(planted())


def survivor(secret: str, left: str) -> str | None:
    """A piece of a secret that is still there. What every secret of its kind begins with is no secret."""
    body = "".join(line for line in secret.split("\n") if not line.startswith("---"))
    pieces = (body[at : at + 12] for at in range(max(1, len(body) - 11)))
    public = ("LS0tLS1", "eyJhbGci", "pypi-AgEI", "github_pat", "sk-ant-api")
    return next((piece for piece in pieces if piece in left and not piece.startswith(public)), None)


def test_enough_is_planted():
    assert len(PLANTED) >= 300
    assert len(SHAPES) >= 45


def test_no_planted_secret_survives_in_a_text():
    redactor = Redactor()
    left = [(what, redactor.text(text)) for what, text, secret in PLANTED if survivor(secret, redactor.text(text))]
    assert left == []


def test_no_planted_secret_survives_in_json():
    """Inside nested values, as text of JSON inside JSON, and as keys."""
    redactor = Redactor()
    for what, text, secret in PLANTED:
        value: Any = {
            "step": {"args": {"command": text, "list": [1, [text]]}, "raw": json.dumps({"out": text})},
            text: 1,
        }
        left = json.dumps(redactor.value(value), ensure_ascii=False).replace("\\n", "\n")
        assert survivor(secret, left) is None, (what, left)


def test_no_planted_secret_survives_under_a_secrets_name():
    redactor = Redactor()
    for _, _, secret in PLANTED:
        left = redactor.value({"env": {"MY_TOKEN": secret}, "headers": [{"name": "api_key", "value": secret}]})
        assert survivor(secret, json.dumps(left)) is None


def test_the_list_of_what_was_taken_out_shows_none_of_it():
    redactor = Redactor(key=b"k")
    for what, text, secret in PLANTED:
        clean, taken = redactor.record({"a": [text], text: 1})
        assert taken, what
        assert survivor(secret, repr(taken) + repr(clean).replace("\\n", "\n")) is None, what


# --- ordinary text ---------------------------------------------------------------------------------------

STDLIB = """
__future__ abc aifc antigravity argparse ast base64 bdb bisect bz2 calendar cgi chunk cmd code codecs codeop colorsys
compileall configparser contextlib contextvars copy copyreg csv dataclasses datetime decimal difflib dis doctest enum
filecmp fileinput fnmatch fractions ftplib functools genericpath getopt getpass gettext glob graphlib gzip hashlib heapq
hmac imaplib imghdr inspect io ipaddress keyword linecache locale lzma mailbox mailcap mimetypes modulefinder netrc
nntplib ntpath numbers opcode operator optparse os pathlib pdb pickle pickletools pkgutil platform plistlib poplib
posixpath pprint profile pstats pty py_compile pyclbr pydoc queue quopri random reprlib rlcompleter runpy sched secrets
selectors shelve shlex shutil signal site smtplib sndhdr socket socketserver sre_compile ssl stat statistics string
stringprep struct subprocess sunau symtable sysconfig tabnanny tarfile telnetlib tempfile textwrap this threading timeit
token tokenize trace traceback tracemalloc tty turtle types typing uu uuid warnings wave weakref webbrowser xdrlib
zipapp zipfile zipimport asyncio/base_events asyncio/events asyncio/sslproto asyncio/streams asyncio/tasks
asyncio/unix_events concurrent/futures/process concurrent/futures/thread email/_header_value_parser email/generator
email/header email/message email/parser email/policy html/parser http/client http/cookiejar http/cookies http/server
importlib/_bootstrap importlib/_bootstrap_external importlib/metadata/__init__ json/decoder json/encoder json/scanner
logging/__init__ logging/config logging/handlers multiprocessing/connection multiprocessing/managers
multiprocessing/pool multiprocessing/process sqlite3/dump unittest/case unittest/loader unittest/mock urllib/error
urllib/parse urllib/request urllib/robotparser wsgiref/handlers xml/dom/minidom xml/etree/ElementTree xml/sax/saxutils
xmlrpc/client xmlrpc/server zoneinfo/_zoneinfo
"""
"""Those that this Python does not have are left out."""

FALSE_ALARMS_PER_1000_LINES = 0.05


def changed_lines(text: str) -> list[str]:
    """The lines that are not as they were. A secret over several lines would shorten the text: all of it, then."""
    left = Redactor().text(text).split("\n")
    lines = text.split("\n")
    return lines if len(left) != len(lines) else [a for a, b in zip(lines, left, strict=True) if a != b]


def test_the_standard_library_is_left_alone():
    root = Path(sysconfig.get_path("stdlib"))
    sources = [path.read_text("utf-8") for name in STDLIB.split() if (path := root / f"{name}.py").exists()]
    lines = sum(source.count("\n") for source in sources)
    changed = [line.strip() for source in sources for line in changed_lines(source)]
    rate = len(changed) / lines * 1000
    print(f"{len(sources)} modules, {lines} lines: {len(changed)} false alarms, {rate:.3f} per 1000 lines")
    assert len(sources) >= 100
    assert rate < FALSE_ALARMS_PER_1000_LINES, changed


ORDINARY = r"""
git status
git push --force origin main
git commit -m 'Rotate the token and the api key'
git commit -am "fix: token: refresh before expiry"
git log --oneline -20 -- src/auth/token.py
git show 4b825dc642cb6eb9a060e54bf8d69288fbee4904
git checkout -b feature/password-reset
git clone git@github.com:org/repo.git
git clone https://github.com/org/repo.git --depth 1
git remote set-url origin https://github.com/org/secret-santa.git
git diff HEAD~1 --stat
git rebase -i 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b
git config --global credential.helper store
git config user.signingkey 3AA5C34371567BD2
git grep -n 'password' -- '*.py'
git cherry-pick a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8a9b0
git stash push -u -m "wip: tokens"
git tag -s v1.2.3 -m "v1.2.3"
git submodule update --init --recursive
pip install scikit-learn==1.4.2
pip install --index-url https://pypi.org/simple fairlead
pip freeze | grep -i token
python -m pytest tests/test_token.py::test_secret -k password -x
python -c 'import secrets; print(secrets.token_hex(16))'
python manage.py changepassword admin
pytest -q --tb=short -p no:cacheprovider
ruff check --fix src tests
mypy --strict src
uv run pytest -n 4
npm ci --prefer-offline
npm run build -- --mode production
npm config set registry https://registry.npmjs.org/
npx task-master-ai init
yarn add jsonwebtoken
cargo build --release
cargo login
go test ./... -run TestToken -count=1
make -j8 test
docker build -t app:latest --secret id=npmrc,src=/root/.npmrc .
docker run --rm -u 1000:1000 -p 8080:80 -v /a:/b image:tag
docker run -u $(id -u):$(id -g) alpine
docker run -e PASSWORD -e TOKEN image
docker run -e TOKEN=$TOKEN -e PASSWORD="${DB_PASSWORD}" image
docker run -e POSTGRES_PASSWORD_FILE=/run/secrets/pg postgres:16
docker login -u me --password-stdin registry.example.com
docker ps --format '{{.Names}}: {{.Status}}'
docker inspect sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
docker exec -it db psql -U postgres
docker compose up -d --build
kubectl get secret my-secret -o yaml
kubectl create secret generic db --from-file=password=./password.txt
kubectl describe pod token-service-6d4cf56db6-abcde
kubectl get pods -n kube-system -o wide
kubectl create token my-service-account
kubectl -n prod logs deploy/auth --since=1h
kubectl config use-context prod
helm upgrade app ./chart --set image.tag=1.2.3
helm registry login registry.example.com
terraform plan -var-file=prod.tfvars
terraform apply -var "db_password=${TF_VAR_db_password}"
aws s3 cp s3://bucket/key/name.txt .
aws s3 ls s3://my-bucket/path --recursive
aws secretsmanager get-secret-value --secret-id prod/db/password
aws sts get-caller-identity
aws ssm get-parameter --name /prod/db/password --with-decryption
aws configure set region eu-west-1
gcloud auth print-access-token
gcloud auth login
gcloud secrets versions access latest --secret=db-password
az keyvault secret show --name db-password --vault-name kv
az login
gh auth token
gh auth login --with-token < token.txt
gh secret set API_KEY < key.txt
gh secret set API_KEY --body "$API_KEY"
gh pr create --title 'Reset password flow' --body 'See #12'
gh api repos/org/repo/actions/secrets
vault kv get secret/data/app
vault token lookup
vault write auth/approle/login role_id=$ROLE_ID secret_id=$SECRET_ID
ssh -i ~/.ssh/id_ed25519 user@host
ssh-keygen -t ed25519 -f ~/.ssh/id_ed25519 -N ''
ssh-add ~/.ssh/id_rsa
scp -P 2222 user@host:/srv/data.tar.gz .
rsync -a user@host:/srv/data .
curl -s https://example.com:8443/path?q=a:b@c
curl -fsSL https://example.com/install.sh | sh
curl -H "Authorization: Bearer $TOKEN" https://api.example.com
curl -H "Authorization: Bearer ${TOKEN}" https://api.example.com
curl -H "X-Api-Key: $API_KEY" https://api.example.com
curl -u "$USER:$PASSWORD" https://example.com
curl -u $USER:$PASSWORD https://example.com
curl -u user https://example.com
curl --user "${USER}:${PASS}" https://example.com
curl https://$USER:$PASS@example.com
curl https://${USER}:${PASS}@example.com
curl "https://api.example.com/v1?token=$TOKEN"
curl "https://api.example.com/v1?api_key=${API_KEY}&q=x"
curl 'https://example.com/search?key=name&sort=asc'
curl -d @body.json -X POST https://example.com/token
curl -d 'grant_type=client_credentials' https://example.com/oauth/token
wget -q -O - https://example.com/a.tar.gz
grep -rn 'password' src/ | head -5
grep -rn "token=" src
grep -E 'password|secret|token' config.yml
grep -c 'api_key' .env.example
rg -n "password\s*=" --type py
rg 'secret:' charts
sed -i 's/password=.*/password=REDACTED/' config.ini
sed -n 1,40p src/token.py
awk -F: '{print $1}' /etc/passwd
cat /etc/passwd | cut -d: -f1
cat .env.example
find . -name '*token*' -not -path './node_modules/*'
ls -la ~/.aws/credentials
export PATH=$PATH:/usr/local/bin
export TOKEN=$(cat /run/secrets/token)
export TOKEN=$(vault read -field=token secret/ci)
export TOKEN="$(gh auth token)"
export API_KEY=$OTHER_KEY
export PASSWORD="$1"
export DB_PASSWORD=${DB_PASSWORD:-}
export GITHUB_TOKEN=${{ secrets.GITHUB_TOKEN }}
export SSH_AUTH_SOCK=/tmp/ssh-XXXX/agent.123
export KEY_FILE=/etc/ssl/private/server.key
TOKEN=`cat token.txt`
read -s -p "Password: " password
read -rsp "Token: " TOKEN
echo "Token: $TOKEN"
echo "token is ${#TOKEN} characters long"
echo "password changed for $USER"
echo -n "$PASSWORD" | docker login -u "$USER" --password-stdin
if [ -z "$TOKEN" ]; then echo "TOKEN is not set"; exit 1; fi
[[ -n $PASSWORD ]] && echo set
unset TOKEN PASSWORD
: "${API_KEY:?API_KEY must be set}"
pwd
cd $(pwd)
PWD=/home/me
OLDPWD=/home/me/src
cd "$(dirname "$0")" && pwd -P
mysql -u root -p app < dump.sql
mysql -u root -p -h localhost
mysql -h db -P 3306 -u app -p"$MYSQL_PASSWORD" app
mysqldump --single-transaction -u root -p app > dump.sql
psql postgres://localhost:5432/app
psql -h db -U app -d app -c 'select 1'
psql "postgres://$PGUSER:$PGPASSWORD@db:5432/app"
redis-cli -h cache -p 6379 ping
mongo --host db --port 27017
sshpass -e ssh user@host
sshpass -p "$SSH_PASS" ssh user@host
openssl req -new -key server.key -out server.csr
openssl rsa -in key.pem -passin env:KEY_PASS -out out.pem
openssl rand -hex 32
openssl x509 -in cert.pem -noout -fingerprint -sha256
gpg --batch --passphrase-file pass.txt -d a.gpg
gpg --keyserver hkps://keys.openpgp.org --recv-keys 0x3AA5C34371567BD2
zip -r out.zip dist -x '*.map'
unzip -p archive.zip name.txt
tar -czf out.tar.gz --exclude=.git .
htpasswd -c .htpasswd me
passwd root
sudo passwd -l me
chown -R 1000:1000 /srv
chmod 600 ~/.netrc
useradd -m -s /bin/bash deploy
systemctl status auth-token.service
journalctl -u token-refresh --since today
crontab -l
tail -f /var/log/auth.log
watch -n 5 kubectl get pods
ansible-vault encrypt_string --vault-password-file ~/.vault_pass
ansible-playbook -i hosts site.yml --ask-vault-pass
jq -r '.access_token' response.json
jq '.token' < out.json
yq '.password' values.yaml
node -e 'console.log(process.env.TOKEN)'
deploy --token "$TOKEN" --now
deploy --token=$TOKEN
deploy --password ${PASSWORD}
deploy --api-key <your-key>
usage: tool [--token TOKEN] [--password PASSWORD] file
  --token TOKEN         the token to use
  --password PASSWORD   the password (default: ask)
  --api-key-env NAME    where the key is
token = self._next_token()
token = next(tokens)
token = tokens[0]
token = tok
token = None
token = ""
token = lexer.token()
token, rest = line.split(" ", 1)
self.token = token
self._token: str | None = None
token: str
token: str = ""
token: Optional[str] = None
token: string;
token?: string
secret: bytes
password: SecretStr
password: &str,
pub token: String,
Token string `json:"token"`
def f(secret: bytes) -> bytes:
def login(user: str, password: str) -> None:
def __init__(self, token=None, secret=None):
async def refresh(self, token: Token) -> Token: ...
password=password
password=password, user=user)
login(user=user, password=passwd)
connect(host, password=args.password, token=config.token)
connect(password=os.environ["X"])
password = os.environ.get("DB_PASSWORD")
password = os.getenv("DB_PASSWORD", "")
password = getpass.getpass("Password: ")
password = input("Password: ")
api_key = settings.API_KEY
api_key=settings.api_key,
api_key = config["api_key"]
api_key: process.env.API_KEY,
apiKey: process.env.OPENAI_API_KEY!,
const token = await getToken(user)
const { token, secret } = await login()
const token = req.headers["x-access-token"]
let token = localStorage.getItem('token')
token => token.type === 'NAME'
if (token === undefined) return
if token == "(":
if token.type == "NAME":
if not password:
if password is None: raise ValueError("password is required")
while token := next(stream): pass
lambda token: token.lower()
return {"token": token, "secret": secret}
{"token": "string", "type": "object"}
{"type": "password", "name": "pw"}
{"password": {"type": "string", "minLength": 8}}
{"required": ["password", "token"]}
{"input_tokens": 12345, "max_tokens": 4096}
{"token": null, "password": ""}
{"has_password": true, "secret": false}
{"next_page_token": "CAUQAA"}
"password": "********"
"password": "<password>"
"password": "${DB_PASSWORD}"
"token": "{{ token }}"
"Authorization": "Bearer {token}"
headers = {"Authorization": f"Bearer {token}"}
headers["Authorization"] = "Bearer " + token
headers={"X-Api-Key": api_key}
Authorization: Bearer <your-token>
Authorization: Bearer $TOKEN
Authorization: required
url = f"postgres://{user}:{password}@{host}/{db}"
url = "postgres://%s:%s@%s/%s" % (user, password, host, db)
dsn = "postgres://user:${PASSWORD}@host/db"
DATABASE_URL=postgres://localhost/app
DATABASE_URL=postgres://app:$DB_PASSWORD@db/app
"%(user)s:%(password)s@%(host)s"
password=%(password)s
password = %s
password: {{ .Values.db.password }}
password: ${{ secrets.DB_PASSWORD }}
password: !vault |
passwordSecretRef: {name: db, key: password}
secretName: db-credentials
secretKeyRef:
imagePullSecrets: [{name: regcred}]
tokens=4096
tokens: 128000
max_tokens: 2000
max_tokens=4096
token_count = 1024
token_estimate: 90000
total tokens: 15234 (prompt: 12000, completion: 3234)
n_tokens=512 eos_token_id=50256
key = value
key: value
key=name
keys = sorted(tokens)
primary_key = True
sort_key="created_at"
public_key = load_public_key(path)
key = (host, port)
cache_key = f"user:{user_id}"
dict(key=1, value=2)
for key, value in tokens.items():
import secrets
from secrets import token_hex
from auth import token, password
class TokenError(Exception):
raise InvalidToken("token expired")
print("Password: ", end="")
logger.info("token refreshed for %s", user)
logger.debug("secret: %s", mask(secret))
assert token != password
parser.add_argument("--token", help="the API token")
parser.add_argument("--password", default=None)
@click.option("--api-key", envvar="API_KEY")
CREATE TABLE users (id int primary key, password varchar(255) not null);
SELECT token, secret FROM sessions WHERE token = $1
SELECT * FROM users WHERE password = ?
ALTER TABLE users ADD COLUMN password_hash text
CONSTRAINT pk_order_line_items_product PRIMARY KEY (id)
UPDATE users SET password = %s WHERE id = %s
<input type="password" name="password" id="password">
<label for="password">Password</label>
<password></password>
The secret: never give up.
It is no secret that tokens expire.
Keep it secret; keep it safe.
Password: must have at least 8 characters
Token: the thing a lexer returns
Note: the token is valid for one hour.
She forgot her password, then her token was revoked.
Please reset the password and send the credentials to the owner.
The bearer of this letter is my friend.
The API uses bearer authentication.
Basic understanding of tokens: see chapter 3.
Cookies: we use them to keep you logged in.
sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  a.tar.gz
"integrity": "sha512-Z2a9LWsRjT4mU1Zc6Vd2QpS0XqYw1t3bN8kF7hJ5gH4vC9xB2nM6lK0jP1oI8uY7tR5eW3qA=="
commit 4b825dc642cb6eb9a060e54bf8d69288fbee4904
6ba7b810-9dad-11d1-80b4-00c04fd430c8
request_id=6ba7b810-9dad-11d1-80b4-00c04fd430c8 status=200
session_id: 01HZX3V9K7Q2M4N6P8R0S2T4V6
etag: "33a64df551425fcc55e4d42a148795d9f25f89d4"
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8fQ0o2P3v4b5n6m7l8k9j0h1g2f3d4s5a6q7w8e9r0 me@host
ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7VJTUt9Us8cKjMzEfYyjiWA4R4/M2bS1GB4t7NXp98C3SC6dVMvDuictGeurT8jNbvJZHtCSuYEvu me
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
PEM_HEADER = "-----BEGIN PRIVATE KEY-----"
if "-----BEGIN RSA PRIVATE KEY-----" in text:
2026-01-02T03:04:05Z INFO  auth: token refreshed in 12ms
2026-01-02 03:04:05,123 WARNING token expired at 2026-01-02T03:00:00Z
127.0.0.1 - - [02/Jan/2026:03:04:05 +0000] "POST /oauth/token HTTP/1.1" 200 512
ERROR 401 Unauthorized: invalid token
KeyError: 'password'
AttributeError: 'NoneType' object has no attribute 'token'
TypeError: login() missing 1 required positional argument: 'password'
E   AssertionError: assert 'token' == 'secret'
tests/test_token.py::test_secret_is_hidden PASSED [ 50%]
src/auth/password.py:12: error: Incompatible types in assignment
Downloading token_utils-1.2.3-py3-none-any.whl (12 kB)
Successfully installed PyJWT-2.8.0 passlib-1.7.4 python-jose-3.3.0
http://localhost:8080/login?next=/account/password
https://example.com/reset-password?step=2
https://user@example.com/path
http://[::1]:8080/token
ftp://ftp.example.com/pub/README
file:///home/me/.config/token
redis://localhost:6379/0
amqp://guest@localhost:5672//
postgresql+asyncpg://localhost/test
mailto:me@example.com?subject=password
image: registry.example.com/team/token-service:1.2.3
entrypoint: ["/bin/auth", "--token-file", "/run/token"]
  password_policy: strict
  token_endpoint: https://auth.example.com/oauth/token
  token_endpoint_auth_method: client_secret_post
  token_type: bearer
  tokenExpiry: 3600
  secret_rotation_days: 30
  auth: none
  auth: oauth2
  auth_type = password
  cookie_secure = true
  cookie: false
  credentials: include
  credentials: same-origin
  allow_credentials=True,
credentials = service_account.Credentials.from_service_account_file(path)
ACCESS_TOKEN_EXPIRE_MINUTES=30
PASSWORD_MIN_LENGTH=12
TOKEN_URL=https://auth.example.com/oauth/token
SECRET_NAME=prod/db
KEY_ID=alias/app
AWS_PROFILE=dev
AWS_REGION=eu-west-1
NODE_ENV=production
DEBUG=true
SECRET_KEY=
API_KEY=<your-api-key>
API_KEY=your-api-key-here
API_KEY=xxxxxxxxxxxxxxxx
API_KEY=...
TOKEN=""
PASSWORD=''
task-runner-configuration-for-the-project-2024
risk-assessment-report-final-version-2.pdf
.sk-circle1-before-animation-delay { color: red }
basket_key-value_store_for_sessions
tests/fixtures/s.py
Ein Geheimnis: 秘密 🔑
"""
"""One ordinary line each: what agents run, print and read all day."""

LINES = [line for line in ORDINARY.split("\n") if line]
SNIPPETS = [
    "if token:\n  return 1234",
    "services:\n  db:\n    image: postgres:16\n    environment:\n      POSTGRES_PASSWORD: ${DB_PASSWORD}\n",
    "env:\n  - name: DB_PASSWORD\n    valueFrom:\n      secretKeyRef:\n        name: db\n        key: password\n",
    "BEGIN = '-----BEGIN PRIVATE KEY-----'\nEND = '-----END PRIVATE KEY-----'\n",
    "class Token(NamedTuple):\n    kind: str\n    token: str\n    secret: bytes = b''\n",
    "-----BEGIN CERTIFICATE-----\nMIIB" + "A" * 60 + "\n-----END CERTIFICATE-----",
]


def test_ordinary_commands_settings_and_logs_are_left_alone():
    redactor = Redactor()
    assert len(LINES) >= 300
    assert [(line, redactor.text(line)) for line in LINES + SNIPPETS if redactor.text(line) != line] == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\\n"])
def test_ordinary_lines_are_left_alone_together(end: str):
    """What is harmless alone stays so with its neighbours, also as one line of JSON."""
    text = end.join(line for line in LINES)
    assert Redactor().text(text) == text
