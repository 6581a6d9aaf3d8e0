"""What secrets look like: the well-known keys and tokens, and the places that hold nothing but a secret.

Each shape names short texts, its anchors, one of which is in every such secret. Looking for those is cheap; a
pattern is only tried where an anchor was found, and is written so that no run of text is read over and over.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

Span = tuple[int, int, str]
"""Where a secret starts and ends, and what is said of it."""

FILLED_IN = (
    r"(?:\$\{[^}\n]{0,80}\}?|\$\([^)\n]{0,80}\)?|\$(?-i:[A-Z_][A-Z0-9_]*|[a-z_]+|\d)\b|%\(\w{1,80}\)[sdr]|%[sdrq]\b"
    r"|%[A-Z_]+%|#?\{\{?[^{}\n]{0,80}\}{1,2}|<[a-z _-]{1,80}>?|<[^<>\n]{0,80}>|\*{3,}|x{4,}|\.{3,}|…|\[[A-Z _-]+\]"
    r"|your[-_ ][\w -]{1,80})"
)
"""What stands for a secret in shells, templates, formats and documentation, and is none itself."""


class Shape(NamedTuple):
    """One kind of secret. Its pattern is tried at its anchors, so it starts with one of them.

    If the pattern has groups, the last one is the secret. `back`: the word before the anchor belongs to it.
    """

    kind: str
    anchors: tuple[str, ...]
    pattern: str
    back: bool = False


# --- secrets known by themselves -----------------------------------------------------------------------

# A letter before a prefix makes it part of another word, unless it ends an escape: \n in JSON, %3D in an address.
_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"


def _shape(kind: str, anchors: str, rest: str, *, back: bool = False) -> Shape:
    """A row of the table. Anchors that are part of ordinary words, too, say `<` at the start of a word."""
    edge, starts = (_EDGE, anchors[1:].split()) if anchors.startswith("<") else ("", anchors.split())
    return Shape(kind, tuple(starts), f"{edge}(?:{'|'.join(map(re.escape, starts))}){rest}", back)


SHAPES: tuple[Shape, ...] = (
    # In the file that AWS hands out, the secret key follows its id.
    _shape("aws key", "<AKIA ASIA", r"[0-9A-Z]{16,}+(?:[\"',:\s]{1,4}[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+]))?"),
    _shape("github token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"\w{20,}"),
    _shape("gitlab token", "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glimt- glagent- gloas-", r"[\w-]{16,}"),
    _shape("slack token", "<xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp-", r"[\w%.-]{10,}"),
    _shape("slack webhook", "hooks.slack.", r"com/(?:services|workflows|triggers)/([\w/-]{20,})"),
    _shape("google key", "AIza", r"[\w-]{30,}"),
    _shape("google secret", "GOCSPX-", r"[\w-]{20,}"),
    _shape("google token", "<ya29.", r"[\w-]{20,}"),
    _shape("api key", "<sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-v1- sk_live_ sk_test_ pk_live_ pk_test_ rk_live_ "
           "rk_test_ sk-lf- pk-lf-", r"[\w-]{16,}"),
    _shape("api key", "<sk- pk- rk- sk_ pk_ rk_",
           r"(?=[\w-]{0,60}?\d[\w-]{0,60}?[\dA-Z])(?:[a-z]{2,10}[-_])?[\w-]{16,}"),
    _shape("groq key", "<gsk_", r"[A-Za-z0-9]{32,}"),
    _shape("xai key", "<xai-", r"[A-Za-z0-9]{32,}"),
    _shape("perplexity key", "<pplx-", r"[A-Za-z0-9]{32,}"),
    _shape("replicate token", "<r8_", r"[A-Za-z0-9]{30,}"),
    _shape("tavily key", "<tvly-", r"[\w-]{24,}"),
    _shape("langsmith key", "lsv2_pt_ lsv2_sk_", r"\w{32,}"),
    _shape("hugging face token", "<hf_ api_org_", r"[A-Za-z0-9]{30,}"),
    _shape("webhook secret", "whsec_", r"[\w+/=-]{20,}"),
    _shape("twilio key", "<SK", r"[0-9a-f]{32}"),
    _shape("sendgrid key", "<SG.", r"[\w-]{16,}+\.[\w-]{16,}"),
    _shape("mailgun key", "<key-", r"[0-9a-f]{32}"),
    _shape("brevo key", "xkeysib- xsmtpsib-", r"[\w-]{30,}"),
    _shape("npm token", "npm_", r"\w{30,}"),
    _shape("pypi token", "pypi-", r"Ag[EN][\w-]{30,}"),
    _shape("rubygems key", "rubygems_", r"[0-9a-f]{40,}"),
    _shape("docker token", "dckr_pat_ dckr_oat_", r"[\w-]{20,}"),
    _shape("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{40,}"),
    _shape("telegram token", ":AA", r"(?<=\d{8}:AA)[\w-]{32,}", back=True),
    _shape("discord webhook", "discord. discordapp.", r"com/api/(?:v\d{1,2}/)?webhooks/\d{6,24}/([\w-]{20,})"),
    _shape("azure key", "AccountKey= SharedAccessKey= accountkey= sharedaccesskey=", r"([\w+/%]{20,}={0,2})"),
    _shape("azure signature", "<sig=", r"([\w%+/-]{24,}={0,2})"),
    _shape("azure secret", "8Q~", r"(?<=\w{3}8Q~)[\w.~-]{31,}", back=True),
    _shape("jwt", "eyJ", r"(?:(?<![\w-]eyJ)|(?<=\\[nrt]eyJ))[\w-]{8,}+\.[\w-]{8,}+(?:\.[\w-]{6,}+){1,3}"),
    _shape("age key", "AGE-SECRET-KEY-", r"[A-Za-z0-9]{20,}"),
    _shape("vault token", "<hvs. hvb. hvr.", r"[\w-]{20,}"),
    _shape("vault token", "<s. b.", r"(?=\w{0,23}\d)(?=\w{0,23}[A-Z])(?=\w{0,23}[a-z])[A-Za-z0-9]{24}(?![\w.(\[])"),
    _shape("databricks token", "<dapi", r"[0-9a-f]{32}(?:-\d)?"),
    _shape("linear key", "lin_api_ lin_oauth_", r"\w{30,}"),
    _shape("notion token", "<ntn_ secret_", r"(?=\w{0,42}\d)[A-Za-z0-9]{40,}"),
    _shape("shopify token", "shpat_ shpca_ shppa_ shpss_", r"[0-9a-fA-F]{32}"),
    _shape("square token", "sq0atp- sq0csp- sq0idp-", r"[\w-]{22,}"),
    _shape("fly token", "<fm1_ fm1r_ fm1a_ fm2_ fo1_", r"[\w+/=,-]{30,}"),
    _shape("grafana token", "<glsa_ glc_", r"[\w+/=]{30,}"),
    _shape("sentry token", "sntrys_ sntryu_ sntrya_", r"[\w+/=]{30,}"),
    _shape("new relic key", "NRAK- NRII- NRJS- NRSP-", r"[\w-]{16,}"),
    _shape("doppler token", "<dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[\w.-]{30,}"),
    _shape("planetscale token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w.=-]{24,}"),
    _shape("supabase token", "<sbp_ sb_secret_", r"[\w-]{20,}"),
    _shape("figma token", "figd_ figo_ figu_", r"[\w-]{24,}"),
    _shape("postman key", "PMAK-", r"[\w-]{24,}"),
    _shape("terraform token", ".atlasv1.", r"(?<=[A-Za-z0-9]{14}\.atlasv1\.)[\w=-]{40,}", back=True),
    _shape("tailscale key", "tskey-", r"[\w-]{16,}"),
    _shape("heroku key", "HRKU-", r"[\w-]{30,}"),
    _shape("dynatrace token", "dt0c01. dt0s01. dt0s16.", r"[A-Z0-9]{20,}+\.[A-Z0-9]{40,}"),
    _shape("atlassian token", "ATATT3xFf ATCTT3xFf", r"[\w=-]{24,}"),
    _shape("hubspot token", "pat-na1- pat-eu1-", r"[0-9a-f-]{36}"),
    _shape("typeform token", "<tfp_", r"[\w.=-]{40,}"),
    _shape("pulumi token", "<pul-", r"[0-9a-f]{40}"),
    _shape("circleci token", "CCIPAT_ CCIPRJ_", r"\w{20,}"),
    _shape("buildkite token", "bkua_ bkpt_", r"\w{30,}"),
    _shape("contentful token", "CFPAT-", r"[\w-]{40,}"),
    _shape("1password token", "<ops_", r"eyJ[\w+/=-]{60,}"),
    _shape("adafruit key", "<aio_", r"[A-Za-z0-9]{28}"),
    _shape("duffel token", "duffel_test_ duffel_live_", r"[\w=-]{40,}"),
    _shape("flutterwave key", "FLWSECK_TEST- FLWSECK-", r"[\w-]{12,}"),
    _shape("prefect key", "<pnu_ pnb_", r"[A-Za-z0-9]{36}"),
    _shape("alibaba key", "<LTAI", r"[A-Za-z0-9]{20}"),
)  # fmt: skip
"""The kinds are what is said of a secret once it is gone. Of several that fit, the first one names it."""

# Most anchors end in one of these and have a long word after them, which ordinary text seldom has.
_LONG_WORD = re.compile(r"[_.:=-][A-Za-z0-9_+/%-]{16}")
_PREFIX = 16
_ANCHORS = tuple((anchor, shape) for shape in SHAPES for anchor in shape.anchors)
_BEFORE_WORDS = tuple((anchor, shape) for anchor, shape in _ANCHORS if anchor[-1] in "_.:=-")
_ANYWHERE = {anchor: shape for anchor, shape in _ANCHORS if anchor[-1] not in "_.:=-"}
_ANY_OF_THEM = re.compile("|".join(map(re.escape, [*_ANYWHERE, "PRIVATE KEY", "LS0tLS1CRUdJTi"])))
# The one token without any fixed text: three words, of which the second has six letters.
_DISCORD = re.compile(r"[MNO](?:(?<![\w.-][MNO])|(?<=\\[nrt][MNO]))[\w-]{22,27}\.[\w-]{6}\.[\w-]{27,}")
_LIKE_DISCORD = re.compile(r"\.[\w-]{6}\.[\w-]{16}")


def known_secrets(text: str) -> Iterator[Span]:
    """The secrets in a text that are known by their shape."""
    if _LONG_WORD.search(text):
        yield from _secrets_with_a_prefix(text)
    if _ANY_OF_THEM.search(text):
        for anchor in dict.fromkeys(_ANY_OF_THEM.findall(text)):
            if anchor in _ANYWHERE:
                yield from _at(anchor, _ANYWHERE[anchor], text, text)
            else:
                yield from _encoded_private_keys(text) if anchor == _ENCODED else _private_keys(text)


def _secrets_with_a_prefix(text: str) -> Iterator[Span]:
    near = "\n".join([text[max(0, at.start() - _PREFIX) : at.end()] for at in _LONG_WORD.finditer(text)])
    for anchor, shape in _BEFORE_WORDS:
        if anchor in near:
            yield from _at(anchor, shape, text, text)
    if _LIKE_DISCORD.search(near):
        yield from ((*at.span(), "discord token") for at in _DISCORD.finditer(text))


def _at(anchor: str, shape: Shape, text: str, haystack: str, after: str = "") -> Iterator[Span]:
    """Every place where an anchor starts such a secret. `haystack` is the text as the anchor is spelt."""
    pattern = _compiled(shape.pattern)
    at = haystack.find(anchor)
    while at >= 0:
        end = at + len(anchor)
        match = pattern.match(text, at)
        if match and (not after or _compiled(after).search(haystack[max(0, at - 200) : at + 1])):
            start, end = match.span(pattern.groups)
            if shape.back:
                start -= _word_before(text, start)
            yield start, end, shape.kind
        at = haystack.find(anchor, end)


# Compiling them all would be most of what importing this costs, and most are never needed.
_compiled = lru_cache(maxsize=None)(re.compile)
_WORD = re.compile(r"[\w-]*")


def _word_before(text: str, at: int) -> int:
    """The length of the word that ends here."""
    match = _WORD.match(text[max(0, at - 64) : at][::-1])
    return match.end() if match else 0


# --- private keys --------------------------------------------------------------------------------------

_BEGIN = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_END = re.compile(r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_BREAK = r"(?:\\{0,7}[nr]|\s|[\"'+,>|→\\]|\d{1,6}[\t→|:])"
_KEY_LINE = r"(?:[A-Za-z0-9+/=]{40,}|(?:[A-Za-z0-9+/=]+|[A-Z][A-Za-z-]{1,20}: [^\n\\]{0,200})(?![^\n\r\\\"',]))"
_BODY = re.compile(rf"(?:{_BREAK}{{1,24}}+{_KEY_LINE})++")
_KEY_WORD = re.compile(r"[A-Za-z0-9+/=]{16}")
_TEMPLATE = re.compile(r"[{%$]|\.\.\.|\+ *\w")
_LONGEST = 1 << 16
_ENCODED = "LS0tLS1CRUdJTi"  # "-----BEGIN ", as in a kubeconfig
_ENCODED_KEY = re.compile(r"LS0tLS1CRUdJTi[\w+/=-]{20,}")


def _private_keys(text: str) -> Iterator[Span]:
    """Private keys as files hold them; of one that was cut off, the lines that look like one."""
    at, closed = 0, _END.search(text)
    while begin := _BEGIN.search(text, at):
        at = begin.end()
        if closed and closed.start() < at:
            closed = _END.search(text, at)
        body = _BODY.match(text, at)
        end = body.end() if body else at
        if closed and closed.start() - at < _LONGEST and _is_key(text[at : closed.start()]):
            end = closed.end()
        if end > at:
            yield begin.start(), end, "private key"
            at = end


def _is_key(between: str) -> bool:
    """Whether this is a key, or the code between two constants that name the first and the last line of one."""
    if "-----BEGIN" in between:
        return False
    return bool(_KEY_WORD.search(between)) or (between[:1] in ("\r", "\n", "\\") and not _TEMPLATE.search(between))


def _encoded_private_keys(text: str) -> Iterator[Span]:
    for match in _ENCODED_KEY.finditer(text):
        start = match.group()[:64].replace("-", "+").replace("_", "/")
        if b"PRIVATE KEY" in base64.b64decode(start[: len(start) // 4 * 4]):
            yield *match.span(), "private key"


# --- places that hold a secret ---------------------------------------------------------------------------

_VALUE = rf"[\"']?(?!{FILLED_IN}|-)([^\s\"']{{3,}})"
_OPEN = r"(?:\\{0,7}[\"'])?"
_NOT_ENDED = r"\s[^\n|;&]*\Z"
_MYSQL = rf"(?:mysql|mariadb)[\w-]{{0,10}}{_NOT_ENDED}"
_LOGIN = rf"(?:(?:docker|podman|az|registry) login|sshpass|mongo\w{{0,8}}|plink|pscp){_NOT_ENDED}"
_ZIP = rf"(?:zip|sqlcmd){_NOT_ENDED}"
_DIRECTORY = rf"(?:redis-cli|ldap[a-z]{{3,8}}){_NOT_ENDED}"
_SQL = r"\b(?:user|role|alter|grant|to)\s[^\n;]*\Z"
_NETRC = r"(?:login|machine|account)\s{1,8}\S{1,100}\s{1,8}\Z"
_SCHEME = r"(?:(?!bearer|basic)[a-z][\w-]{2,20}[ \t]{1,3})?"


class Place(NamedTuple):
    """Where a secret stands, whatever it looks like. `gate` is in every text that has one, in lower case.

    `after` has to be found before the anchor: most options mean a password to a few programs only.
    """

    gate: str
    shape: Shape
    after: str = ""


def _place(gate: str, kind: str, anchors: str, pattern: str, after: str = "") -> Place:
    return Place(gate, Shape(kind, tuple(anchors.split("|")), f"(?i){pattern}"), after)


PLACES: tuple[Place, ...] = (
    _place("bearer", "bearer", "bearer",
           r"bearer(?: |:|\+|%20){1,2}(?=[\w.~+/-]{0,200}[\d=])([\w.~+/-]{8,}={0,2})"),
    _place("basic", "basic", "basic",
           r"basic(?: |\+|%20)(?=[\w+/]{0,60}(?:[\d=]|(?-i:[a-z][A-Z])))([\w+/]{8,}={0,2})"),
    _place("authorization", "authorization", "authorization",
           rf"authorization{_OPEN}\s{{0,3}}[:=,]\s{{0,3}}{_OPEN}{_SCHEME}(?=[^\s\"']{{0,80}}\d)(?![\w.]{{1,80}}[(\[])"
           r"([^\s\"'\\\[({$<]{6,}+[^\s\"'\\]*+)"),
    _place("cookie", "cookie", "cookie",
           rf"cookie2?{_OPEN}:\s{{0,3}}{_OPEN}(?=[^\n\d\\\"']{{0,200}}+\d|[\w.$-]{{1,80}}=\S{{16}})"
           r"([\w.$-]{1,80}=[^\s;\"'\\]+[^\n\"'\\]*)"),
    _place("://", "token", "://", r"://(?=[\w-]{0,100}\d)([\w-]{20,200}+)@"),
    _place("://", "password", "://",
           rf"://[^\s:/@\"'<>]{{0,100}}:(?!{FILLED_IN}@|\d{{2,5}}[?#])([^\s/\"'<>]{{1,200}})(?=@)"),
    _place(" -", "password", " -u| --user| --proxy-user", r"\s(?:-u|--(?:proxy-)?user)(?:\s{1,3}|=)[\"']?"
           rf"([^\s:\"'$={{]{{1,100}}):(?!{FILLED_IN}|\d{{1,6}}\b|\1\b|/)([^\s\"']{{1,200}})"),
    _place(" -", "password", " -p", rf"\s(?-i:-p)(?=\S){_VALUE}", _MYSQL),
    _place(" -", "password", " -p", rf"\s(?-i:-pw?)\s{{1,3}}(?!\d{{1,5}}(?:\s|:|$)){_VALUE}", _LOGIN),
    _place(" -", "password", " -p", rf"\s(?-i:-P)\s{{1,3}}{_VALUE}", _ZIP),
    _place(" -", "password", " -a | -w ", rf"\s-[aw]\s{{1,3}}{_VALUE}", _DIRECTORY),
    _place("pass", "password", "htpasswd",
           rf"htpasswd\s{{1,3}}-\w{{0,4}}b\w{{0,4}}(?:\s{{1,3}}\S{{1,200}}){{1,2}}?\s{{1,3}}{_VALUE}(?=\s*(?:$|[|;&\n]))"),
    _place("pass", "password", " pass:", rf"\spass:{_VALUE}"),
    _place("pass", "password", "requirepass", rf"requirepass\s{{1,4}}(?![=:(]){_VALUE}"),
    _place("pass", "password", "with password|encrypted password",
           r"(?:with|encrypted) password\s{1,3}'([^'\n]{2,200})"),
    _place("pass", "password", " password |\npassword ", rf"\spassword\s{{1,8}}(?![=:]){_VALUE}", _NETRC),
    _place("identified by", "password", "identified by",
           r"identified by\s{1,3}(?:password\s{1,3})?['\"]([^'\"\n]{2,200})", _SQL),
    _place("=", "signature", "?|&|;", r"[?&;](?:sig|signature|key|hmac|auth|x-amz-signature|x-goog-signature)="
           r"(?=[^&\s]{0,60}\d)([\w%+/=.~-]{8,})"),
)  # fmt: skip
_GATES = tuple({place.gate: [each for each in PLACES if each.gate == place.gate] for place in PLACES}.items())


def placed_secrets(text: str, lowered: str) -> Iterator[Span]:
    """The secrets in a text that are known by where they stand."""
    for gate, places in _GATES:
        if gate in lowered:
            for _, shape, after in places:
                for anchor in shape.anchors:
                    if anchor in lowered:
                        yield from _at(anchor, shape, text, lowered, after)


KINDS = frozenset({shape.kind for shape in SHAPES} | {place.shape.kind for place in PLACES} | {"private key"})
