"""Files that hold secrets, by name and place."""

from __future__ import annotations

import os
import re
from functools import lru_cache

_PATTERNS = r"""
(^|/)\.env(\.(?!example|sample|template|dist|defaults|schema|test$)[\w.-]+)?$
(^|/)\.envrc$
(^|/)\.ssh(/(?!.*\.pub$|known_hosts|config$|authorized_keys|rc$).*)?$
(^|/)id_(rsa|dsa|ecdsa|ed25519)(_sk)?([._-](?!pub$)[\w.-]+)?$
(^|/)\.aws/(credentials|config|sso/cache|cli/cache)?(/.*)?$
(^|/)\.aws$
(^|/)\.azure(/(accessTokens|azureProfile|msal_token_cache|service_principal).*)?$
(^|/)\.config/gcloud(/.*)?$
(^|/)(application_default_credentials|service[-_]account[\w-]*|client_secret[\w.-]*)\.json$
(^|/)\.(netrc|pgpass|pypirc|npmrc|yarnrc|git-credentials|my\.cnf|boto|s3cfg|htpasswd|dockercfg|vault-token|pip/pip\.conf|terraformrc)$
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
[\w-]+\.(key|pem|p12|pfx|jks|keystore|kdbx|ppk|asc\.key)$
"""
_SECRET = re.compile("|".join(f"(?:{line})" for line in _PATTERNS.split("\n") if line))
_PUBLIC = re.compile(
    r"\.pub$|(^|/)(cert|ca|chain|fullchain|public|cacert|ca-bundle)[\w-]*\.(pem|key|crt)$|/etc/ssl/certs/|(^|/)(tests?|testdata|fixtures?|examples?|docs?)/(.*/)?[^/]+\.(pem|key|p12|pfx|jks)$"
)
_HINT = re.compile(
    r"\.env|ssh|id_|aws|azure|gcloud|credential|secret|account|netrc|pgpass|pypirc|npmrc|yarnrc|my\.cnf|boto|s3cfg|htpasswd|"
    r"docker|containers|kube|gnupg|password|config/|cargo|gem/|bundle|m2/|gradle|composer|terraform|shadow|sudoers|krb5|environ|"
    r"[Kk]eychain|mozilla|thunderbird|hrome|BraveSoft|wallet|bitcoin|ethereum|solana|electrum|history|\.(?:key|pem|p12|pfx|jks|"
    r"keystore|kdbx|ppk)\b|vault|pip\.conf|dockercfg"
)


def may_name_secrets(text: str) -> bool:
    """Might a text name a file of secrets? Quick, for texts that mostly do not."""
    return _HINT.search(text) is not None


@lru_cache(maxsize=1024)
def is_secret_file(path: str) -> bool:
    """Does a path, by its name, hold secrets? A pattern counts if it may mean such a file."""
    if not _HINT.search(path):
        return False
    path = os.path.normpath(path) if path else ""
    plain = re.sub(r"\*\*?/|/\*$", "/", path).replace("?", "").rstrip("/") if re.search(r"[*?]", path) else path
    return any(bool(_SECRET.search(one)) and not _PUBLIC.search(one) for one in {path, plain})


__all__ = ["is_secret_file", "may_name_secrets"]
