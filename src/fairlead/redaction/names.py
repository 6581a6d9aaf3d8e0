"""Which names are names of secrets: `password`, `API_TOKEN`, `clientSecret`."""

from __future__ import annotations

import re
from functools import lru_cache

WORDS = (
    "pass", "pw", "secret", "token", "cred", "key", "auth", "cookie", "psk", "pat", "login", "licen", "salt", "seed",
    "jwt", "session", "mnemonic", "phrase",
)  # fmt: skip
"""One of these is in every secret's name."""

_OF_A_KEY = (
    "api|access|secret|private|auth|client|session|encryption|encrypt|decryption|decrypt|signing|sign|master|account"
    "|storage|shared|webhook|hmac|aes|rsa|ssh|gpg|deploy|jwt|cipher|admin|app|application|service|service_role|license"
    "|licence|root|server|sdk|ca|tls|ssl|subscription|functions?|consumer|merchant|fernet|pre_?shared|validation|unseal"
    "|vapid|recaptcha|turnstile|openai|anthropic|stripe|mailgun|sendgrid|twilio|supabase|cosmos|wallet|deployer|cert|https"
    "|instrumentation"
)
_SECRET = re.compile(
    r"(?:.*(?:password|passwd|passphrase|passcode|secret|token|credentials?)"
    rf"|.*(?:{_OF_A_KEY})_?(?:access_?)?key|(?:.*_)?(?:pass|pw|pwd|passw|pword|creds|auth|cookie|psk|client_key_data)"
    r"|.*(?:authorization|cookies?|pgpass|mnemonic|(?:seed|recovery|secret)_phrase)"
    r"|(?:.*_)?(?:github|gitlab|gh|azure|ado|devops(?:_ext)?|bitbucket|jira|airtable|docker|npm|personal)_pat)"
    r"(?:_?(?:\d{1,3}|old|new|prod|dev|staging|live|base|value|plain|b64|base64|string|bedrock|main|primary|secondary))?"
)
_NO_SECRET = re.compile(
    r"(?:.*_)?(?:next|page|eos|bos|pad|unk|sep|cls|mask|stop|end|start|special|continuation|cancel|cancellation|sync"
    r"|resume|max|min|num|last|current|prev|previous|first|per|parse|output|input)_(?:token|key|auth|pass)"
    r"|(?:no|has|is|use|require|requires|with|allow|ask|need|needs)_\w*|.*auth\d+"
)
_OF_SECRETS = """
    key token secret password passwd pass pwd auth credential credentials creds pat psk login license licence salt seed
    jwt session mnemonic phrase
"""
_OF_OTHER_KEYS = "public pub cache idempotency partition sort range object trace span request bucket"
_ABOUT_SECRETS = """
    id ids name names url uri path file dir type arn hash digest fingerprint thumbprint checksum version count length
    size index format class alg algorithm endpoint host port region date time expiry expires ttl prefix suffix header
    field column table label kind code etag ref
"""
SECRET_WORDS, _HARDLY = frozenset(_OF_SECRETS.split()), frozenset(_OF_OTHER_KEYS.split())
_ABOUT = frozenset(_ABOUT_SECRETS.split())
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_JOINT = re.compile(r"[-.\s]+")


def plain_name(name: str) -> str:
    """A name in one spelling: `clientSecret`, `Client-Secret` and `CLIENT_SECRET` are the same."""
    return _JOINT.sub("_", _HUMP.sub("_", name)).lower().strip("_")


@lru_cache(2048)
def is_secret_name(name: str) -> bool:
    """Whether what goes by this name is a secret."""
    if len(name) > 128:
        return False
    if name.isupper() and name.endswith("_PAT"):  # in lower case, it is a pattern more often than a token
        return True
    plain = plain_name(name)
    return _SECRET.fullmatch(plain) is not None and _NO_SECRET.fullmatch(plain) is None


@lru_cache(2048)
def may_be_secret_name(name: str) -> bool:
    """Whether a value that looks random is a secret if it goes by this name."""
    parts = plain_name(name[:128]).split("_")
    return not SECRET_WORDS.isdisjoint(parts) and _HARDLY.isdisjoint(parts) and parts[-1] not in _ABOUT
