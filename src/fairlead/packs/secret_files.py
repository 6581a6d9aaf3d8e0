"""Files that hold secrets, by name and place."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from functools import lru_cache

_PATTERNS = r"""
(^|/)\.env(\.(?!(?:[\w-]+\.)*(?:example|sample|template|dist|defaults|schema)\b|test$)[\w.-]+)?$
(^|/)\.envrc$
(^|/)\.ssh(/(?!.*\.pub$|known_hosts|config$|authorized_keys|rc$).*)?$
(^|/)id_(rsa|dsa|ecdsa|ed25519)(_sk)?([._-](?!pub$)[\w.-]+)?$
(^|/)\.aws/(credentials|config|sso/cache|cli/cache)?(/.*)?$
(^|/)\.aws$
(^|/)\.azure(/(accessTokens|azureProfile|msal_token_cache|service_principal).*)?$
(^|/)\.config/gcloud(/.*)?$
(^|/)(application_default_credentials|service[-_]account[\w-]*|client_secret[\w.-]*|(?=[\w-]*firebase-adminsdk)[\w-]+)\.json$
(^|/)\.(claude/\.credentials|codex/auth|gemini/(oauth_creds|google_accounts)|qwen/oauth_creds|local/share/opencode/auth)\.json$
(^|/)\.config/(github-copilot|solana)/.+\.json$
\.tfstate(\.backup)?$
(^|/)\.(netrc|pgpass|pypirc|npmrc|yarnrc|git-credentials|my\.cnf|boto|s3cfg|htpasswd|dockercfg|vault-token|pip/pip\.conf|config/pip/pip\.conf|terraformrc)$
(^|/)_netrc$
(^|/)\.docker/config\.json$
(^|/)\.config/containers/auth\.json$
(^|/)\.kube(/(?!cache).*)?$
(^|/)kubeconfig$
(^|/)etc/kubernetes/.*\.conf$
(^|/)\.gnupg(/.*)?$
(^|/)\.password-store(/.*)?$
(^|/)\.config/(gh|glab-cli|hub|op|doctl|heroku|stripe|flyctl|netlify|sops|age|rclone|configstore|pypoetry)(/.*)?$
(^|/)\.(cargo/credentials|gem/credentials|bundle/config|m2/settings(-security)?\.xml|gradle/gradle\.properties|composer/auth\.json)(\.toml)?$
(^|/)\.terraform\.d/credentials\.tfrc\.json$
(^|/)etc/(shadow|gshadow|sudoers|sudoers\.d/.*|krb5\.keytab|ssl/private/.*|ssh/ssh_host_\w+_key)$
(^|/)proc/(\d+|self|\*|thread-self)/environ$
(^|/)(Library/)?Keychains/.*
(^|/)\.(mozilla|thunderbird)/.*(logins\.json|key[34]\.db|cookies\.sqlite)$
(^|/)(google-chrome|chromium|Chrome|BraveSoftware)/.*(Login Data|Cookies|Web Data)$
(^|/)(wallet\.dat|\.bitcoin|\.ethereum|\.solana|\.electrum)(/.*)?$
(^|/)\.(bash|zsh|sh|python|node_repl|psql|mysql|rediscli|sqlite)_history$
(^|/)(secrets?|credentials?)\.(ya?ml|json|toml|ini|env|txt|enc|xml|properties|cfg|conf)$
(^|/)credentials$
(^|/)(var/)?run/secrets/.+
[\w-]\.(key|pem|p12|pfx|jks|keystore|kdbx|ppk|asc\.key)$
"""
_SECRET = re.compile("|".join(f"(?:{line})" for line in _PATTERNS.split("\n") if line))
_PUBLIC = re.compile(
    r"\.pub$|(^|/)(cert|ca|chain|fullchain|public|cacert|ca-bundle)[\w-]*\.(pem|key|crt)$|/etc/ssl/certs/|(^|/)(tests?|testdata|fixtures?|examples?|docs?)/(.*/)?[^/]+\.(pem|key|p12|pfx|jks)$"
)
_HINT = re.compile(
    r"\.env|ssh|id_|aws|azure|gcloud|credential|secret|account|netrc|pgpass|pypirc|npmrc|yarnrc|my\.cnf|boto|s3cfg|htpasswd|"
    r"docker|containers|kube|gnupg|password|config/|cargo|gem/|bundle|m2/|gradle|composer|terraform|shadow|sudoers|krb5|environ|"
    r"[Kk]eychain|mozilla|thunderbird|hrome|BraveSoft|wallet|bitcoin|ethereum|solana|electrum|history|\.(?:key|pem|p12|pfx|jks|"
    r"keystore|kdbx|ppk)\b|vault|pip\.conf|dockercfg|codex|opencode|oauth|copilot|tfstate|firebase"
)

_LONGEST_PATH, _LONGEST_NAME = 4096, 255
"""No path that a program can open is longer, and no name of a file."""
_NAMES = (".env", ".env.local", "id_rsa", "id_ed25519", "x.pem", "x.key", ".netrc")
"""Names of such files, to see whether a pattern may mean one."""


def may_name_secrets(text: str) -> bool:
    """Might a text name a file of secrets? Quick, for texts that mostly do not."""
    return _HINT.search(text) is not None


@lru_cache(maxsize=1024)
def is_secret_file(path: str) -> bool:
    """Does a path, by its name, hold secrets? A pattern counts if it may mean such a file."""
    if not _HINT.search(path):
        return False
    path = os.path.normpath(re.sub(r"\*{3,}", "**", path))[-_LONGEST_PATH:] if path else ""
    plain = re.sub(r"\*\*?/|/\*$|\*$", "/", path).replace("?", "").rstrip("/") if re.search(r"[*?]", path) else path
    if any(bool(_SECRET.search(one)) and not _PUBLIC.search(one) for one in {path, plain}):
        return True
    name = re.sub(r"\*+", "*", os.path.basename(path))
    is_pattern = re.search(r"[*?]", name) is not None and len(name) <= _LONGEST_NAME
    return is_pattern and len(name.strip("*?")) > 2 and any(fnmatchcase(one, name) for one in _NAMES)


__all__ = ["is_secret_file", "may_name_secrets"]
