"""What secrets look like: the well-known keys and tokens, and the places that hold nothing but a secret.

Each shape names short texts, its anchors, one of which is in every such secret. Looking for those is cheap; a
pattern is only tried where an anchor was found, and is written so that no run of text is read over and over.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

Span = tuple[int, int, str]
"""Where a secret starts and ends, and its kind."""

OPERATOR = r"[;&|<>`]|\$\("
"""What ends a command or begins another one in a shell. Outside of quotes, no secret goes beyond it."""

BARE = r"(?:[^\s\"'`;&|<>()$\\]|\$(?!\()|\\(?![;&|<>()`\s]|\$\(|\Z|\\{0,7}[nrt\"']))"
"""A character of a value without quotes. A backslash that ends a quoted line, or comes before an operator, is none."""

FILLED_IN = (
    r"(?:\$\{[^}\n]{0,80}\}?|\$\([^)\n]{0,80}\)?|\$(?-i:[A-Z_][A-Z0-9_]*|[a-z_]+|\d)\b|%\(\w{1,80}\)[sdr]|%[sdrq]\b"
    r"|%[A-Z_]+%|#?\{\{?[^{}\n]{0,80}\}{1,2}|<[a-z _-]{1,80}>?|<[^<>\n]{0,80}>|\*{3,}|x{4,}|\.{3,}|…|\[[A-Z _-]+\]"
    r"|your[-_ ][\w -]{1,80})"
)
"""What stands for a secret in shells, templates, formats and documentation, and is none itself."""


def atomic(name: str, pattern: str) -> str:
    """A pattern that never gives back what it has matched. It takes a group, with a name of its own.

    Python 3.11 and later have `(?>...)` and `*+` for this, but up to 3.11.4 these match wrongly.
    """
    return f"(?=(?P<{name}>{pattern}))(?P={name})"


class Shape(NamedTuple):
    """One kind of secret. Its pattern is tried at its anchors, so it starts with one of them.

    If the pattern has groups, the last one is the secret. `back` matches what belongs to it before the anchor, read
    backwards. `random`: ordinary words start like it, too, so the rest has to look random. `plain`: no long word
    follows the anchor, so that the anchor itself is looked for.
    """

    kind: str
    anchors: tuple[str, ...]
    pattern: str
    back: str = ""
    random: bool = False
    plain: bool = False


# --- secrets known by themselves -----------------------------------------------------------------------

# A letter before a prefix makes it part of another word, unless it ends an escape: \n in JSON, %3D in an address.
_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))"
_END = r"(?![A-Za-z0-9])"
_BASE58 = "[1-9A-HJ-NP-Za-km-z]"
UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def _shape(kind: str, anchors: str, rest: str, *, back: str = "", random: bool = False, plain: bool = False) -> Shape:
    """A row of the table. Anchors that are part of ordinary words, too, say `<` at the start of a word."""
    edge, starts = (_EDGE, anchors[1:].split()) if anchors.startswith("<") else ("", anchors.split())
    return Shape(kind, tuple(starts), f"{edge}(?:{'|'.join(map(re.escape, starts))}){rest}", back, random, plain)


SHAPES: tuple[Shape, ...] = (
    # --- clouds
    _shape("aws key", "<AKIA ASIA ABIA ACCA A3T", r"[0-9A-Z]{16,}"),
    # In the file that AWS hands out, the secret key follows its id.
    _shape("aws key", "<AKIA ASIA ABIA ACCA A3T",
           r"[0-9A-Z]{16,}[\"',:\s]{1,4}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+])", random=True),
    _shape("aws key", "<ABSK", r"[A-Za-z0-9+/]{40,}={0,2}"),
    _shape("aws key", "bedrock-api-key-", r"[\w+/=%-]{20,}"),
    _shape("aws token", "<IQoJb3JpZ2lu FwoGZXIvYXdz FQoGZXIvYXdz", r"[A-Za-z0-9+/%]{60,}={0,2}"),
    _shape("aws key", "<da2-", rf"[a-z0-9]{{26}}{_END}"),
    _shape("amazon token", "amzn.mws. amzn1.oa2-cs.v1.", r"[\w.-]{20,}"),
    _shape("google key", "AIza", r"[\w-]{30,}"),
    _shape("google key", "<AQ.Ab", r"[\w-]{30,}"),
    _shape("google secret", "GOCSPX-", r"[\w-]{20,}"),
    _shape("google secret", "<GOOG1E", r"[A-Za-z0-9]{40,}"),
    _shape("google token", "<ya29.", r"[\w-]{20,}"),
    _shape("google token", "<4/0A", r"[\w-]{40,}"),
    _shape("google token", "<1//0", r"[\w-]{30,}"),
    _shape("firebase key", ":APA91b", r"(?<=[\w-]{11}:APA91b)[\w-]{80,}", back=r"[\w-]*"),
    _shape("azure key", "AccountKey= SharedAccessKey= accountkey= sharedaccesskey=", r"([\w+/%]{20,}={0,2})"),
    _shape("azure key", "+ASt ACDb +ABa +AEh +ASb AIoT +ACR +AMC",
           r"(?<=[\w+/-]{36}.{4})[\w+/-]{5,6}={1,2}", back=r"[\w+/-]*"),
    _shape("azure key", "AzFu AzSe AzCa", r"(?<=[\w-]{40}.{4})[\w-]{4,12}={0,2}", back=r"[\w-]*"),
    _shape("azure key", "JQQJ99", r"(?<=[A-Za-z0-9]{50}JQQJ99)[A-Za-z0-9]{20,}", back=r"\w*"),
    _shape("azure signature", "<sig=", r"([\w%+/-]{24,}={0,2})"),
    _shape("azure secret", "Q~", r"(?<=[\w.~-]{3}\dQ~)[\w.~-]{31,}", back=r"[\w.~-]{0,4}"),
    _shape("azure devops token", "AZDO", rf"(?<=[A-Za-z0-9]{{76}}AZDO)[A-Za-z0-9]{{4}}{_END}", back=r"\w*"),
    _shape("digitalocean token", "dop_v1_ doo_v1_ dor_v1_", r"[A-Za-z0-9]{40,}"),
    _shape("digitalocean token", "<DO00 DO801", rf"[A-Z0-9]{{15,16}}{_END}"),
    _shape("alibaba key", "<LTAI", rf"[A-Za-z0-9]{{12,24}}{_END}"),
    _shape("tencent key", "<AKID", rf"[A-Za-z0-9]{{32}}{_END}"),
    _shape("volcengine key", "<AKLT", r"[\w-]{40,}"),
    _shape("baidu key", "bce-v3/ALTAK-", r"[\w/-]{30,}"),
    _shape("yandex key", "<AQVN", r"[\w-]{34,}"),
    _shape("yandex key", "<y0_ y1_ y2_ y3_", r"[\w-]{50,}"),
    _shape("yandex key", "<t1.", r"[\w-]{40,}={0,2}\.[\w-]{80,}={0,2}"),
    _shape("yandex key", "<YC", rf"[\w-]{{38}}{_END}", random=True),
    _shape("scaleway key", "<SCW", rf"[A-Z0-9]{{17}}{_END}", random=True),
    _shape("exoscale key", "<EXO", rf"[0-9a-f]{{24,32}}{_END}"),
    _shape("upcloud token", "<ucat_", r"[A-Za-z0-9]{24,}", random=True),
    _shape("cloudflare key", "<v1.0-", r"[0-9a-f]{24}-[0-9a-f]{100,}"),
    _shape("cloudflare key", "<cfut_ cfat_ cfk_", r"\w{30,}", random=True),
    _shape("vercel token", "<vcp_ vck_ vci_ vca_ vcr_", r"[A-Za-z0-9]{24,}", random=True),
    _shape("vercel token", "vercel_blob_rw_", r"\w{20,}"),
    _shape("netlify token", "<nfp_ nfc_ nfo_ nfu_ nfb_", r"[A-Za-z0-9]{30,}"),
    _shape("render key", "<rnd_", r"[A-Za-z0-9]{20,}", random=True),
    _shape("fly token", "<fm1_ fm1r_ fm1a_ fm2_ fo1_", r"[\w+/=,-]{30,}"),
    _shape("heroku key", "HRKU-", r"[\w-]{30,}"),
    _shape("deno token", "<ddp_ ddw_ ddo_", r"[A-Za-z0-9]{30,}"),
    _shape("supabase token", "<sbp_ sb_secret_", r"[\w-]{20,}"),
    _shape("neon key", "<napi_", r"[A-Za-z0-9]{40,}", random=True),
    _shape("neon key", "<npg_", rf"[A-Za-z0-9]{{12,24}}{_END}", random=True, plain=True),
    _shape("planetscale token", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[\w.=-]{24,}"),
    _shape("cockroach key", "CCDB1_", r"\w{30,}"),
    _shape("mongodb key", "mdb_sa_sk_", r"[\w-]{24,}"),
    _shape("xata key", "<xau_", r"[A-Za-z0-9]{30,}"),
    _shape("datastax token", "AstraCS:", r"[\w:-]{40,}"),
    _shape("fauna key", "<fnA", rf"[\w-]{{37,53}}{_END}", random=True),
    _shape("materialize key", "<mzp_", r"[A-Za-z0-9]{36,}", random=True),
    _shape("aiven password", "AVNS_", r"[\w-]{12,}"),
    _shape("clickhouse key", "<4b1d", rf"[A-Za-z0-9]{{38}}{_END}", random=True),
    _shape("databricks token", "<dapi dose dkea dsap", rf"[0-9a-f]{{32}}(?:-\d)?{_END}"),
    _shape("dbt token", "<dbtu_ dbtc_ dbts_", r"[\w-]{30,}"),
    _shape("elastic key", "<essu_", r"[A-Za-z0-9+/]{40,}={0,2}"),
    _shape("openshift token", "<sha256~", rf"[\w-]{{43}}{_END}"),
    _shape("rancher token", "<token-", r"[a-z0-9]{5}:[a-z0-9]{50,}", plain=True),
    _shape("scalingo token", "tk-us-", r"[\w-]{40,}"),
    _shape("workato token", "wrkaus- wrkeu- wrkprod-", r"[\w-]{30,}"),
    _shape("confluent secret", "<cflt", r"[A-Za-z0-9+/]{50,}"),
    _shape("swarm token", "SWMTKN-1- SWMKEY-1-", r"[\w+/-]{40,}"),
    _shape("k3s token", "<K10", r"[0-9a-f]{64}::[\w-]{1,40}:[0-9a-f]{16,}"),
    _shape("zoho token", "<1000.", r"[0-9a-f]{32}\.[0-9a-f]{32}"),
    _shape("jdcloud key", "<JDC_", r"[A-Z0-9]{24,}"),
    # --- code, builds and packages
    _shape("github token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", r"\w{20,}"),
    _shape("gitlab token", "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glsoat- glimt- glagent- gloas- glffct- glwt-",
           r"[\w-]{16,}(?:\.[a-z0-9]{2}\.?[a-z0-9]{7,9})?"),
    _shape("gitlab token", "<GR1348941", r"[\w-]{20}"),
    _shape("bitbucket token", "<ATBB", r"[\w-]{24,}=?"),
    _shape("bitbucket token", "<BBDC-", r"[A-Za-z0-9+/@_-]{40,}"),
    _shape("atlassian token", "ATATT3 ATCTT3", r"[\w=-]{24,}"),
    _shape("trello token", "<ATTA", r"[A-Za-z0-9]{60,}"),
    _shape("buildkite token", "bkua_ bkpt_ bkaj_ bkct_ bkar_", r"\w{30,}"),
    _shape("circleci token", "CCIPAT_ CCIPRJ_", r"\w{20,}"),
    _shape("sonarqube token", "<sqp_ squ_ sqa_ sqb_", r"[A-Za-z0-9]{36,}", random=True),
    _shape("snyk token", "snyk_uat. snyk_sat.", r"[\w.-]{30,}"),
    _shape("sourcegraph token", "<sgp_ sgd_ slk_ sgph_", r"(?:local_|[0-9a-f]{16}_)?[A-Za-z0-9]{40,}", random=True),
    _shape("percy token", "<web_ ppy_ auto_ ss_", rf"[0-9a-f]{{64}}{_END}"),
    _shape("gitpod token", "gitpod_pat_", r"[\w.-]{20,}"),
    _shape("depot token", "depot_project_ depot_org_ depot_user_", r"\w{30,}"),
    _shape("octopus key", "<API-", rf"[A-Z0-9]{{25,36}}{_END}"),
    _shape("artifactory key", "<AKCp", r"[A-Za-z0-9]{28,}"),
    _shape("artifactory key", "<cmVmdGtu", r"[A-Za-z0-9]{40,}={0,2}"),
    _shape("npm token", "npm_", r"\w{30,}"),
    _shape("pypi token", "pypi-", r"Ag[EN][\w-]{30,}"),
    _shape("rubygems key", "rubygems_", r"[A-Za-z0-9]{40,}", random=True),
    _shape("cargo token", "<cio", rf"[A-Za-z0-9]{{32}}{_END}", random=True),
    _shape("nuget key", "<oy2", rf"[a-z0-9]{{43}}{_END}"),
    _shape("clojars token", "CLOJARS_", r"[0-9a-z]{50,}"),
    _shape("packagist token", "packagist_ack_ packagist_out_ packagist_uut_ packagist_ori_", r"[0-9a-f]{40,}"),
    _shape("open vsx token", "ovsxat_", r"[\w-]{30,}"),
    _shape("docker token", "dckr_pat_ dckr_oat_", r"[\w-]{20,}"),
    _shape("harness token", "<pat. sat.", r"[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    _shape("jetbrains token", "<perm: perm-", r"[\w=+/]{6,}\.[\w=+/-]{4,}\.[\w=+/-]{20,}", plain=True),
    _shape("jenkins token", "<11", rf"[0-9a-f]{{32}}{_END}"),
    _shape("codesandbox token", "csb_v1_", r"[\w-]{20,}"),
    _shape("val town token", "vtwn_", r"[A-Za-z0-9]{20,}"),
    _shape("daytona key", "<dtn_", r"[A-Za-z0-9]{36,}", random=True),
    _shape("cursor key", "<crsr_", r"[A-Za-z0-9]{36,}"),
    _shape("spectral key", "<spu-", r"[0-9a-f]{32}"),
    _shape("endor key", "<endr+", r"[A-Za-z0-9-]{16,}"),
    _shape("mergify key", "<mka_", r"[\w-]{30,}"),
    _shape("thunderstore token", "<tss_", r"[A-Za-z0-9]{30,}"),
    # --- vaults, networks and tools of operation
    _shape("terraform token", ".atlasv1.", r"(?<=[A-Za-z0-9]{14}\.atlasv1\.)[\w=-]{40,}", back=r"\w{0,14}"),
    _shape("pulumi token", "<pul-", r"[A-Za-z0-9]{40}", random=True),
    _shape("vault token", "<hvs. hvb. hvr.", r"[\w-]{20,}"),
    _shape("vault token", "<s. b. r.", r"(?=\w{0,23}\d)(?=\w{0,23}[A-Z])(?=\w{0,23}[a-z])[A-Za-z0-9]{24}(?![\w.(\[])"),
    _shape("doppler token", "<dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", r"[\w.-]{30,}"),
    _shape("infisical token", "<st.", r"[0-9a-f-]{24,}\.[0-9a-f]{20,}\.[0-9a-f]{20,}"),
    _shape("1password token", "<ops_", r"eyJ[\w+/=-]{60,}"),
    _shape("1password key", "<A3-", r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    _shape("bitwarden token", "<0.", rf"{UUID}\.[A-Za-z0-9]{{30}}:[A-Za-z0-9+/]{{20,}}={{0,2}}"),
    _shape("tailscale key", "tskey-", r"[\w-]{16,}"),
    _shape("defined networking key", "dnkey-", r"[a-z0-9]{20,}-[a-z0-9]{40,}"),
    _shape("portainer key", "<ptr_", r"[A-Za-z0-9+/]{40,}={0,2}"),
    _shape("lightdash token", "<ldpat_", r"[A-Za-z0-9]{24,}"),
    _shape("metabase key", "<mb_", r"[A-Za-z0-9+/]{43}="),
    _shape("retool token", "<retool_", r"[A-Za-z0-9]{20,}", random=True),
    _shape("stackhawk key", "<hawk.", r"[\w-]{20}\.[\w-]{20}"),
    _shape("infracost key", "<ico-", rf"[A-Za-z0-9]{{32}}{_END}"),
    _shape("vantage token", "vntg_tkn_", r"[A-Za-z0-9]{30,}"),
    _shape("prefect key", "<pnu_ pnb_", r"[A-Za-z0-9]{36}"),
    _shape("trigger.dev key", "<tr_prod_ tr_dev_ tr_stg_ tr_pat_ tr_preview_", r"[A-Za-z0-9]{16,}"),
    _shape("inngest key", "signkey-", r"[a-z]{2,10}-[0-9a-f]{40,}"),
    _shape("unkey key", "<unkey_", r"[A-Za-z0-9]{16,}", random=True),
    _shape("zuplo key", "<zpka_ zpk_", r"\w{32,}"),
    _shape("readme key", "rdme_", r"[A-Za-z0-9]{40,}"),
    _shape("socket key", "sktsec_", r"[\w-]{20,}"),
    _shape("jumpcloud key", "<jca_", r"[A-Za-z0-9]{30,}"),
    _shape("pangea token", "<pts_", r"[A-Za-z0-9]{30,}", random=True),
    _shape("secret", "secret-token:", r"[\w%.~-]{8,}", plain=True),
    _shape("permit key", "permit_key_", r"[A-Za-z0-9]{40,}"),
    _shape("ory token", "ory_pat_ ory_at_ ory_rt_ ory_st_ ory_ac_ ory_apikey_ ory_wk_", r"[\w.-]{24,}"),
    _shape("authress key", ".acc_ .acc-", r"[a-z0-9-]{10,32}\.[\w+/=-]{30,}", back=r"[\w.]*"),
    _shape("postman key", "PMAK- PMAT-", r"[\w-]{24,}"),
    _shape("wakatime key", "<waka_", UUID),
    _shape("rapidapi key", "jsn",
           rf"(?<=[0-9a-f]{{10}}msh[0-9a-f]{{15}}p1[0-9a-f]{{6}}jsn)[0-9a-f]{{12}}{_END}", back=r"\w*"),
    _shape("n8n key", "n8n_api_", r"[A-Za-z0-9]{36,}"),
    _shape("iterative token", "<isat_", r"[A-Za-z0-9]{24,}"),
    # --- models and what agents use
    _shape("api key", "<sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-v1- sk_live_ sk_test_ pk_live_ pk_test_ rk_live_ "
           "rk_test_ sk-lf- pk-lf- sk-helicone- pk-helicone-", r"[\w-]{16,}"),
    _shape("api key", "<testsk_ livesk_", r"(?=[A-Za-z]{0,80}\d)\w{16,}"),
    _shape("api key", "<pk_", r"\d{6,10}_[A-Z0-9]{30,}"),
    _shape("api key", "<sk- pk- rk- sk_ pk_ rk_", r"(?=[A-Za-z]{0,80}\d)[A-Za-z0-9]{20,}"),
    _shape("api key", "<sk- pk- rk- sk_ pk_ rk_", r"(?:[a-z0-9]{2,12}[-_]){0,2}[\w-]{16,}", random=True),
    _shape("groq key", "<gsk_", r"[A-Za-z0-9]{32,}"),
    _shape("xai key", "<xai-", r"[A-Za-z0-9]{32,}"),
    _shape("perplexity key", "<pplx-", r"[A-Za-z0-9]{32,}"),
    _shape("replicate token", "<r8_", r"[A-Za-z0-9]{30,}"),
    _shape("tavily key", "<tvly-", r"[\w-]{24,}"),
    _shape("langsmith key", "lsv2_pt_ lsv2_sk_", r"\w{32,}"),
    _shape("langsmith key", "<ls__", r"[0-9a-f]{32}"),
    _shape("hugging face token", "<hf_ api_org_", r"[A-Za-z0-9]{30,}"),
    _shape("together key", "<tgp_v1_", r"[\w-]{30,}"),
    _shape("fireworks key", "<fw_", rf"[A-Za-z0-9]{{20,32}}{_END}", random=True),
    _shape("cerebras key", "<csk-", r"[A-Za-z0-9]{36,}", random=True),
    _shape("nvidia key", "nvapi-", r"[\w-]{24,}"),
    _shape("pinecone key", "<pcsk_", r"\w{30,}"),
    _shape("voyage key", "<pa-", rf"[\w-]{{40,46}}{_END}", random=True),
    _shape("jina key", "<jina_", r"[\w-]{40,}"),
    _shape("nomic key", "<nk-", rf"[\w-]{{40,46}}{_END}", random=True),
    _shape("llamacloud key", "<llx-", r"[A-Za-z0-9]{40,}"),
    _shape("brave key", "<BSA", rf"[\w-]{{27,28}}{_END}", random=True),
    _shape("firecrawl key", "<fc-", r"[A-Za-z0-9]{28,}", random=True),
    _shape("e2b key", "<e2b_", r"[A-Za-z0-9]{30,}", random=True),
    _shape("browserbase key", "bb_live_ bb_test_", r"[\w-]{20,}"),
    _shape("apify token", "apify_api_", r"[A-Za-z0-9]{30,}"),
    _shape("runpod key", "<rpa_", r"[A-Za-z0-9]{36,}", random=True),
    _shape("anyscale key", "<esecret_ aph0_", r"[\w-]{20,}", random=True),
    _shape("modal token", "<ak- as-", rf"[A-Za-z0-9]{{22}}{_END}", random=True),
    _shape("mem0 key", "<m0-", r"[A-Za-z0-9]{36,}"),
    _shape("dify key", "<app- dataset-", rf"[A-Za-z0-9]{{24}}{_END}", random=True),
    _shape("weights and biases key", "wandb_v1_", r"\w{40,}"),
    _shape("friendli token", "<flp_", r"[A-Za-z0-9]{30,}"),
    _shape("logfire token", "pylf_v1_ pylf_v2_", r"\w{24,}"),
    _shape("braintrust key", "bt-st-", r"[A-Za-z0-9]{24,}"),
    _shape("turbopuffer key", "<tpuf_", r"[A-Za-z0-9]{24,}"),
    _shape("twelve labs key", "<tlk_", r"[A-Z0-9]{24,}"),
    _shape("you.com key", "ydc-sk-", r"[\w-]{20,}"),
    _shape("steel key", "<ste-", r"[A-Za-z0-9]{40,}", random=True),
    _shape("toolhouse key", "<th-", rf"[\w-]{{40,46}}{_END}", random=True),
    _shape("kaggle token", "<KGAT_", r"[A-Za-z0-9]{28,}"),
    _shape("openai session", "<sess-", r"[A-Za-z0-9]{38,}"),
    _shape("voiceflow key", "<VF.DM. VF.WS.", r"[0-9a-f]{20,}\.[A-Za-z0-9]{12,}"),
    _shape("scrapfly key", "scp-live- scp-test-", r"[0-9a-f]{30,}"),
    _shape("coze token", "<pat_", r"[A-Za-z0-9]{50,}"),
    # --- money and shops
    _shape("webhook secret", "whsec_", r"[\w+/=-]{20,}"),
    _shape("square token", "sq0atp- sq0csp- sq0idp-", r"[\w-]{22,}"),
    _shape("square token", "<EAAA", rf"[\w-]{{56,60}}{_END}", random=True),
    _shape("braintree token", "access_token$", r"[a-z]{4,12}\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    _shape("razorpay key", "rzp_live_ rzp_test_", r"[A-Za-z0-9]{14,}", plain=True),
    _shape("plaid token", "access-production- access-sandbox- access-development-", UUID),
    _shape("paddle key", "pdl_live_apikey_ pdl_sdbx_apikey_", r"\w{30,}"),
    _shape("polar token", "polar_oat_ polar_pat_ polar_whs_ polar_cst_ polar_at_u_ polar_at_o_ polar_rt_", r"\w{24,}"),
    _shape("adyen key", "<AQE", r"[A-Za-z]hm[A-Za-z0-9+/=_.-]{40,}"),
    _shape("flutterwave key", "FLWSECK_TEST- FLWSECK-", r"[\w-]{12,}", plain=True),
    _shape("cashfree key", "cfsk_ma_", r"\w{30,}"),
    _shape("xendit key", "xnd_production_ xnd_development_", r"\w{30,}"),
    _shape("midtrans key", "Mid-server-", r"[\w-]{20,}"),
    _shape("mercado pago token", "APP_USR-", r"[\w-]{40,}"),
    _shape("asaas key", "$aact_", r"[\w:+/=-]{40,}"),
    _shape("ramp secret", "ramp_sec_", r"[A-Za-z0-9]{30,}"),
    _shape("circle key", "LIVE_API_KEY: TEST_API_KEY:", r"[0-9a-f]{20,}:[0-9a-f]{20,}"),
    _shape("shippo token", "shippo_live_ shippo_test_", r"[A-Za-z0-9]{30,}"),
    _shape("easypost key", "<EZAK EZTK", r"[A-Za-z0-9]{50,}"),
    _shape("duffel token", "duffel_test_ duffel_live_", r"[\w=-]{40,}"),
    _shape("woocommerce key", "<ck_ cs_", rf"[A-Za-z0-9]{{40}}{_END}", random=True),
    _shape("shopify token", "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_", r"[A-Za-z0-9]{28,}"),
    _shape("klarna key", "klarna_live_ klarna_test_", r"[\w+/=-]{30,}"),
    _shape("alchemy token", "<alcht_", r"[A-Za-z0-9]{28,}"),
    _shape("robinhood key", "<rh-api-", UUID),
    _shape("ebay key", "<PRD- SBX-", r"[0-9a-f]{12}(?:-[0-9a-f]{4}){3}(?:-[0-9a-f]{4})?"),
    _shape("dynamic token", "<dyn_", r"[A-Za-z0-9]{50,}"),
    # --- talk, mail and people
    _shape("slack token", "<xoxa- xoxb- xoxc- xoxd- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xapp- xwfp-", r"[\w%.-]{10,}"),
    _shape("slack webhook", "hooks.slack.", r"com/(?:services|workflows|triggers)/([\w/-]{20,})"),
    _shape("telegram token", ":AA", r"(?<=\d{8}:AA)[\w-]{32,}", back=r"[\w-]*"),
    _shape("discord webhook", "discord. discordapp.", r"com/api/(?:v\d{1,2}/)?webhooks/\d{6,24}/([\w-]{20,})"),
    _shape("teams webhook", ".webhook.office. outlook.office.",
           r"com/(?:webhookb?2?)/([\w@-]{30,}/IncomingWebhook/[\w/-]{20,})"),
    _shape("webhook", "hooks.zapier.", r"com/hooks/(?:catch|standard)/([\w/]{8,})"),
    _shape("webhook", ".make.", r"com/([a-z0-9]{28,40})(?![\w/])"),
    _shape("webhook", "maker.ifttt.", r"com/(?:trigger/[\w-]{1,60}/(?:json/)?with/key|use)/([\w-]{16,})"),
    _shape("webhook", "/open-apis/bot/v2/hook/", rf"({UUID})"),
    _shape("twilio key", "<SK", rf"[0-9a-f]{{32}}{_END}"),
    _shape("sendgrid key", "<SG.", r"[\w-]{16,}\.[\w-]{16,}"),
    _shape("mailgun key", "<key-", r"[A-Za-z0-9]{32,}", random=True),
    _shape("mailchimp key", "-us", rf"(?<=[0-9a-f]{{32}}-us)\d{{1,2}}{_END}", back=r"\w*"),
    _shape("mandrill key", "<md-", rf"[\w-]{{22}}{_END}", random=True),
    _shape("resend key", "<re_", rf"[A-Za-z0-9]{{8}}_[A-Za-z0-9]{{20,24}}{_END}"),
    _shape("brevo key", "xkeysib- xsmtpsib-", r"[\w-]{30,}"),
    _shape("intercom token", "<dG9rO", r"[A-Za-z0-9+/]{40,}={0,2}"),
    _shape("hubspot token", "<pat-", r"[a-z]{2}\d-[0-9a-f-]{36}"),
    _shape("salesforce token", "!AQ", r"(?<=00D[A-Za-z0-9]{12}!AQ)[\w.]{60,}", back=r"\w{0,15}"),
    _shape("salesforce token", "<5Aep861", r"[\w.]{60,}"),
    _shape("onesignal key", "os_v2_app_ os_v2_org_", r"[a-z0-9]{60,}"),
    _shape("pubnub key", "<sec-c-", r"[\w+/=-]{30,}"),
    _shape("facebook token", "<EAA", r"[A-Za-z0-9]{80,}", random=True),
    _shape("instagram token", "<IGQV IGAA", r"[\w-]{80,}"),
    _shape("oculus token", "<OC|", r"\d{8,20}\|\w{20,}"),
    _shape("twitter token", "<AAAAAAAAAAAAAAAAAAAA",
           r"(?:A{8}|A{0,7}(?!A))(?![A-Za-z0-9%]*[+/=])[A-Za-z0-9%]{60,}", random=True),
    _shape("linkedin secret", "WPL_AP1.", r"[\w.+/=-]{16,}"),
    _shape("pinterest token", "<pina_", r"[A-Za-z0-9]{40,}"),
    _shape("twitch token", "<oauth:", rf"[a-z0-9]{{30}}{_END}"),
    _shape("dropbox token", "<sl. sl.u.", r"[\w-]{80,}"),
    _shape("notion token", "<ntn_ secret_", r"(?=\w{0,42}\d)[A-Za-z0-9]{40,}"),
    _shape("linear key", "lin_api_ lin_oauth_ lin_wh_", r"\w{30,}"),
    _shape("figma token", "figd_ figo_ figu_ figoh_ figor_", r"[\w-]{24,}"),
    _shape("miro token", "<eyJtaXJvLm9yaWdpbiI6", r"[\w=-]{20,}"),
    _shape("contentful token", "CFPAT-", r"[\w-]{40,}"),
    _shape("sanity token", "<sk", rf"[A-Za-z0-9]{{80,}}{_END}", random=True),
    _shape("typeform token", "<tfp_", r"[\w.=-]{40,}"),
    _shape("cal.com key", "<cal_live_ cal_", rf"[0-9a-f]{{32}}{_END}"),
    _shape("frame.io token", "<fio-u-", r"[\w=-]{40,}"),
    _shape("okta token", "<00", rf"(?=[\w-]{{0,40}}[A-Z])(?=[\w-]{{0,40}}[g-z])[\w-]{{40}}{_END}", random=True),
    _shape("onfido token", "api_live. api_live_us. api_live_ca. api_sandbox. api_sandbox_us. api_sandbox_ca.",
           r"[\w-]{11}\.[\w-]{32}"),
    _shape("nightfall key", "<NF-", rf"[A-Za-z0-9]{{32}}{_END}"),
    _shape("maxmind key", "_mmk", rf"(?<=[A-Za-z0-9]{{6}}_[A-Za-z0-9]{{29}}_mmk){_END}", back=r"\w*"),
    _shape("beamer key", "<b_", rf"[\w=-]{{44}}{_END}", random=True),
    _shape("adafruit key", "<aio_", r"[A-Za-z0-9]{24,}", random=True),
    _shape("adobe secret", "<p8e-", r"[\w-]{32}"),
    _shape("intra42 secret", "s-s4t2ud- s-s4t2af-", r"[0-9a-f]{64}"),
    _shape("lichess token", "<lip_ lio_", r"[A-Za-z0-9]{16,24}", random=True),
    _shape("matrix token", "<syt_", r"[\w+/=-]{20,}"),
    _shape("telnyx key", "<KEY0", r"[0-9A-Fa-f]{31}_[A-Za-z0-9]{22}"),
    _shape("samsara token", "samsara_api_", r"[A-Za-z0-9]{24,}"),
    _shape("persona key", "persona_production_ persona_sandbox_", r"[\w-]{30,}"),
    _shape("settlemint token", "sm_aat_ sm_pat_ sm_sat_", r"[A-Za-z0-9]{16}"),
    _shape("ionic token", "<ion_", r"[A-Za-z0-9]{40,}"),
    _shape("salesloft key", "v2_ak_", r"\d{1,8}_[0-9a-f]{40,}"),
    _shape("ubidots token", "<BBFF- BBUS-", r"[A-Za-z0-9]{28,}"),
    _shape("locationiq key", "<pk. sk.", rf"[0-9a-f]{{32}}{_END}"),
    _shape("canva secret", "cnvca", r"[\w-]{40,}"),
    _shape("deepl key", ":fx", rf"(?<=-[0-9a-f]{{12}}:fx){_END}", back=r"[\w-]*"),
    # --- watching
    _shape("datadog key", "<ddapp_ ddapi_ ddpat_", r"[A-Za-z0-9]{30,}"),
    _shape("grafana token", "<glsa_ glc_", r"[\w+/=]{30,}"),
    _shape("grafana token", "<eyJrIjoi", r"[\w+/-]{30,}={0,3}"),
    _shape("sentry token", "sntrys_ sntryu_ sntrya_", r"[\w+/=]{30,}"),
    _shape("new relic key", "NRAK- NRII- NRJS- NRSP- NRIQ- NRAA- NRRA- NRBR-", r"[\w-]{16,}"),
    _shape("new relic key", "NRAL", rf"(?<=[0-9A-Za-z]{{36}}NRAL){_END}", back=r"\w*"),
    _shape("dynatrace token", "dt0c01. dt0s01. dt0s02. dt0s16.", r"[A-Z0-9]{20,}\.[A-Z0-9]{40,}"),
    _shape("honeycomb key", "<hcaik_ hcaic_ hcxik_ hcalk_ hcamk_ hcbik_ hcbmk_", r"[A-Za-z0-9]{30,}"),
    _shape("axiom token", "<xaat- xapt-", UUID),
    _shape("posthog key", "<phc_ phx_ phs_", r"[A-Za-z0-9]{30,}"),
    _shape("launchdarkly key", "<sdk- mob- api- rel-", UUID),
    _shape("configcat key", "configcat-sdk-", r"\d/[\w-]{20,}/[\w-]{20,}"),
    _shape("flagsmith key", "<ser.", rf"[A-Za-z0-9]{{22}}{_END}", random=True),
    _shape("devcycle key", "dvc_server_ dvc_mobile_ dvc_client_", r"\w{20,}"),
    _shape("dependency track key", "<odt_", r"[A-Za-z0-9]{32,}\w*"),
    _shape("coralogix key", "<cxtp_ cxup_", r"[A-Za-z0-9]{28,}"),
    _shape("checkly key", "<cu_", rf"[A-Za-z0-9]{{32}}{_END}", random=True),
    _shape("rootly key", "<rootly_", r"[A-Za-z0-9]{36,}"),
    _shape("logicmonitor token", "<lmb_", r"[\w+/=-]{30,}"),
    # --- keys
    _shape("jwt", "eyJ", r"(?:(?<![\w-]eyJ)|(?<=\\[nrt]eyJ))[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]{6,}){1,3}"),
    _shape("mapbox token", "<pk. sk. tk.", r"eyJ[\w-]{20,}\.[\w-]{20,}"),
    _shape("age key", "AGE-SECRET-KEY-", r"[A-Za-z0-9]{20,}"),
    _shape("wallet key", "<xprv yprv zprv tprv", rf"{_BASE58}{{90,}}"),
    _shape("nostr key", "<nsec1", r"[02-9ac-hj-np-z]{50,}"),
    _shape("minisign key", "<RWRTY0Iy", r"[A-Za-z0-9+/]{40,}={0,2}"),
    _shape("password hash", "$2a$ $2b$ $2y$", r"\d\d\$[\w./]{53}", plain=True),
    _shape("password hash", "$1$ $5$ $6$ $apr1$ $y$", r"(?:[\w=]{1,20}\$)?[\w./]{1,24}\$[\w./]{22,}", plain=True),
    _shape("password hash", "$argon2id$ $argon2i$", r"[\w=,$]{10,60}\$[\w+/]{8,}\$[\w+/]{20,}", plain=True),
    _shape("password hash", "pbkdf2_sha256$ pbkdf2_sha1$", r"\d{1,8}\$\w{1,40}\$[\w+/]{20,}={0,2}", plain=True),
    _shape("app key", "<base64:", r"[A-Za-z0-9+/]{43}=(?![\w=])"),
    # --- any vendor whose prefix says that this is a secret, and for which of two worlds
    _shape("api key", "<secret-live- secret-test-", r"[\w=-]{30,}"),
    _shape("api key", "<live_", r"\d{6,12}_[A-Za-z0-9]{24,}"),
    _shape("api key", "<live_ test_ sandbox_ prod_ production_", r"[\w-]{24,}", random=True),
    _shape("api key", "_live_ _test_ _sandbox_ _prod_ _sk_ _pat_ _key_ _secret_ _token_ _apikey_ _api_",
           r"[A-Za-z0-9]{20,}", back=r"[a-z0-9_]*", random=True),
    _shape("api key", "<key_ token_ secret_ secret- token- apikey- apikey_ pat_ tok_",
           r"[A-Za-z0-9]{24,}", random=True),
)  # fmt: skip
"""The kinds that marks show in place of a secret. If several fit, the first one counts."""

# Most anchors end in a joint that a long word follows, or begin such a word. The others are looked for one by one.
_JOINT = re.compile(r"[_.:=-](?!--|__)(?=[A-Za-z0-9_+/%.-]{16})")
_WORD = re.compile(r"[A-Za-z0-9_-]{16,}")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{40}")
_PART = re.compile(r"[A-Za-z0-9]{2,}")

_Start = tuple[int, int, str]
"""The number of a shape, where it may start, and its anchor there."""

_BY_END: dict[str, list[tuple[int, str]]] = {}
_BY_START: dict[str, list[tuple[int, str]]] = {}
_IN_WORDS: list[tuple[int, str]] = []
_IN_BASE64: list[tuple[int, str]] = []
_ELSEWHERE: list[tuple[int, str]] = []


def _file(number: int, anchor: str, shape: Shape) -> None:
    """Put an anchor where it is looked for. In base64, a sign may part the word that follows it."""
    if shape.plain:
        _ELSEWHERE.append((number, anchor))
    elif anchor[-1] in "_.:=-":
        _BY_END.setdefault(anchor[-3:], []).append((number, anchor))
    elif "+/" in shape.pattern + shape.back:
        _IN_BASE64.append((number, anchor))
    elif not shape.back and anchor.isalnum():
        _BY_START.setdefault(anchor[:2], []).append((number, anchor))
    elif shape.back and _WORD.fullmatch(anchor * 16):
        _IN_WORDS.append((number, anchor))
    else:
        _ELSEWHERE.append((number, anchor))


for _number, _one in enumerate(SHAPES):
    for _anchor in _one.anchors:
        _file(_number, _anchor, _one)

# Tokens without any fixed text: what joins their parts is looked for. `back` is as in a shape.
_JOINED = (
    ("discord token", r"\.(?<=[\w-]{23}\.)[\w-]{6}\.[\w-]{27,}", r"[\w-]*"),
    ("mailgun key", r"-(?<=[0-9a-f]{32}-)[0-9a-f]{8}-[0-9a-f]{8}(?![\w-])", r"\w*"),
    ("airtable token", r"\.(?<=pat[A-Za-z0-9]{14}\.)[0-9a-f]{64}(?!\w)", r"\w*"),
    ("close key", r"\.(?<=api_[A-Za-z0-9]{22}\.)[A-Za-z0-9]{22}(?!\w)", r"\w*"),
    ("ably key", r"\.(?<=[\w-]{6}\.)[\w-]{6}:[\w-]{43}(?![\w-])", r"[\w-]*"),
    ("fal key", r":(?<=-[0-9a-f]{12}:)[0-9a-f]{32}(?!\w)", r"[\w-]*"),
    ("ghost key", r":(?<=[0-9a-f]{24}:)[0-9a-f]{64}(?!\w)", r"\w*"),
    ("truenas key", r"-(?<=\d-)(?=[a-z0-9]{0,60}[A-Z])[A-Za-z0-9]{64}(?!\w)", r"\d*"),
    ("ngrok token", r"_(?<=2[A-Za-z0-9]{26}_)(?=[A-Za-z]{0,20}\d)[A-Za-z0-9]{20,22}(?!\w)", r"\w*"),
    ("asana token", r"/\d{13,20}:[0-9a-f]{32}(?!\w)", r"[\d/]*"),
)
_WHOLE_WORDS = (
    ("wallet key", r"S(?<![\w+/]S)(?=[A-Z]{0,54}[2-7][A-Z]{0,54}[2-7])[A-Z2-7]{55}(?![\w+/=])"),
    ("wallet key", rf"[5KL](?<![\w+/].)(?=[A-Za-z]{{0,50}}\d)(?=[A-Z1-9]{{0,50}}[a-z]){_BASE58}{{50,51}}(?![\w+/=])"),
)
_SHORTEST_JOINED, _WALLET_LENGTHS = 22, frozenset({51, 52, 56})


def known_secrets(text: str) -> Iterator[Span]:
    """The secrets in a text that are known by their shape."""
    words = [word.span() for word in _WORD.finditer(text)]
    starts = [*_starts_at_joints(text), *_starts_of_words(text, words)]
    if words or starts:
        starts += _starts_of(_IN_WORDS, text, " ".join([text[start:end] for start, end in words]))
        starts += _starts_of(_ELSEWHERE, text, text)
    if _BASE64.search(text):
        starts += _starts_of(_IN_BASE64, text, text)
    if starts:
        yield from _secrets_at(text, starts)
    lengths = {end - start for start, end in words}
    if max(lengths, default=0) >= _SHORTEST_JOINED:
        yield from _joined_secrets(text)
        yield from _keys_beside_vendors(text)
    if not _WALLET_LENGTHS.isdisjoint(lengths):
        for kind, pattern in _WHOLE_WORDS:
            yield from ((*found.span(), kind) for found in _compiled(pattern).finditer(text))
    yield from _keys(text)


def _joined_secrets(text: str) -> Iterator[Span]:
    for kind, pattern, back in _JOINED:
        for found in _compiled(pattern).finditer(text):
            yield found.start() - _length_before(text, found.start(), back), found.end(), kind


_VENDORS = (
    "postmark", "heroku", "railway", "snyk", "opsgenie", "pinecone", "sambanova", "sendbird", "squarespace", "shortcut",
    "braze", "scaleway", "nomad", "consul", "linkup", "leonardo", "helius", "codecov",
)  # fmt: skip
_AFTER_A_VENDOR = rf"(?:{'|'.join(_VENDORS)})[\w -]{{0,24}}[\"']?\s{{0,3}}[:=,(]\s{{0,3}}[\"']?\Z"
_END_OF_A_UUID = r"-(?<=[0-9a-f]{8}-)[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?!\w)"


def _keys_beside_vendors(text: str) -> Iterator[Span]:
    """The keys of vendors that are UUIDs, as so much else is: only the vendor's name tells."""
    for found in _compiled(_END_OF_A_UUID).finditer(text):
        start = found.start() - 8
        before = text[max(0, start - 48) : start].lower()
        if any(vendor in before for vendor in _VENDORS) and _compiled(_AFTER_A_VENDOR).search(before):
            yield start, found.end(), "api key"


def _starts_at_joints(text: str) -> Iterator[_Start]:
    for joint in _JOINT.finditer(text):
        end = joint.end()
        for ending in (text[max(0, end - 3) : end], text[max(0, end - 2) : end]):
            for number, anchor in _BY_END.get(ending, ()):
                if text.startswith(anchor, end - len(anchor)):
                    yield number, end - len(anchor), anchor


def _starts_of_words(text: str, words: list[tuple[int, int]]) -> Iterator[_Start]:
    """Where a part of a long word begins, also after an escape: \\n in JSON, %3D in an address."""
    for start, end in words:
        for part in _PART.finditer(text, start, end):
            at = part.start()
            escaped = {"\\": 1, "%": 2}.get(text[at - 1 : at], 0)
            for number, anchor in _BY_START.get(text[at + escaped : at + escaped + 2], ()):
                if text.startswith(anchor, at + escaped):
                    yield number, at + escaped, anchor


def _starts_of(anchors: list[tuple[int, str]], text: str, near: str) -> Iterator[_Start]:
    """Where one of these anchors is in a text, if it is in a shorter text, too."""
    for number, anchor in anchors:
        if anchor in near:
            at = text.find(anchor)
            while at >= 0:
                yield number, at, anchor
                at = text.find(anchor, at + len(anchor))


def _secrets_at(text: str, starts: Iterable[_Start]) -> Iterator[Span]:
    """The secrets that start where they may, by the order of the shapes. None is read again from within itself."""
    last, read = -1, 0
    for number, at, anchor in sorted(starts):
        if number == last and at < read:
            continue
        shape = SHAPES[number]
        if match := _compiled(shape.pattern).match(text, at):
            start, read, last = *match.span(match.re.groups), number
            body = text[start + (len(anchor) if start == at else 0) : read]
            if (shape.back or body.strip("xX")) and (not shape.random or looks_random(body)):
                yield start - _length_before(text, start, shape.back), read, shape.kind


def _at(anchor: str, place: SecretPlace, text: str, lowered: str) -> Iterator[Span]:
    """Every secret in a place that starts with this anchor."""
    _, shape, after, more = place
    if after and not _compiled(after.removesuffix(r"\Z")).search(lowered):
        return
    pattern, tries = _compiled(shape.pattern), _RARE + len(text) // _RARE
    at = lowered.find(anchor)
    while at >= 0:
        tries -= 1
        match = (pattern.match if tries > 0 else pattern.search)(text, at)  # one by one only as long as it is rare
        if match is None and tries <= 0:
            return
        end = at + len(anchor) if match is None else match.start() + len(anchor)
        if match and (not after or _compiled(after).search(_command_before(lowered, match.start()))):
            start, end = match.span(pattern.groups)
            if not shape.random or looks_random(text[start:end]):
                yield start, end, shape.kind
                yield from _more(more, shape.kind, text, end)
        at = lowered.find(anchor, end)


def _command_before(lowered: str, at: int) -> str:
    """What stands before a place in the same command, as far as it matters."""
    near = lowered[max(0, at - 200) : at + 1]
    return near[max(near.rfind(end, 0, -1) for end in _ENDS) + 1 :]


def _more(pattern: str, kind: str, text: str, end: int) -> Iterator[Span]:
    """The values that follow one in the same list, as in a header of cookies."""
    while pattern and (match := _compiled(pattern).match(text, end)):
        yield *match.span(1), kind
        end = match.end()


# Compiling them all would be most of what importing this costs, and most are never needed.
_compiled = lru_cache(maxsize=None)(re.compile)
_LONGEST_BACK = 128
_RARE = 64


def _length_before(text: str, at: int, letters: str) -> int:
    """How many of these letters stand directly before a place."""
    match = _compiled(letters).match(text[max(0, at - _LONGEST_BACK) : at][::-1]) if letters else None
    return match.end() if match else 0


_RUN = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_NO_LETTER = re.compile(r"[^A-Za-z0-9]")


def looks_random(word: str) -> bool:
    """Whether letters and digits change in a word as often as they do by chance, and not as in names of things."""
    word = word[:128]
    letters = _NO_LETTER.sub("", word)
    runs, digits = len(_RUN.findall(letters)), sum(map(str.isdigit, letters))
    joints = len(word) - len(letters)
    if len(letters) < 12 or joints * (5 if digits > 2 else 8) > len(word):
        return False
    if letters.isupper() or letters.islower():
        return digits > 1 and joints * 8 <= len(word) and runs * 6 >= len(letters)
    if not digits:
        return runs * 2.4 >= len(letters) and sum(map(str.isupper, letters)) * 3 > len(letters)
    return runs * (3 if joints * 8 <= len(word) else 2) >= len(letters)


# --- private keys --------------------------------------------------------------------------------------

_BEGIN = r"-{4,5} ?BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_END_OF_KEY = r"-{4,5} ?END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)? ?-{4,5}"
_LINE_END = r"(?:\\{1,7}[nr]|\s)"
_BREAK = rf"(?:{_LINE_END}|[\"'+,\\])"
_MARGIN = rf"(?:{_BREAK}|[>|→]|\d{{1,6}}[\t→|:])"  # of a quotation, a diff or numbered lines
_KEY_LINE = r"(?=(?:[a-z0-9+/=]*[A-Z]){4})[A-Za-z0-9+/=]{40,}"
_LAST_LINE = r"(?![a-z/]+(?![\w+/=]))[A-Za-z0-9+/=]{1,39}(?![^\s\\\"',-])"
_HEADER = r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|Subject): [^\n\\;&|<>`$]{0,120}"
_BODY = (
    atomic("headers", f"(?:{atomic('margin1', f'{_BREAK}{{1,24}}')}{_HEADER})*")
    + f"(?:(?:{atomic('margin2', f'{_MARGIN}{{1,24}}')}{_KEY_LINE})+"
    + f"(?:{atomic('margin3', f'{_BREAK}{{1,24}}')}{_LAST_LINE}){{0,2}}|"
    + atomic("short", rf"(?:[ \"',+]{{0,4}}(?:\\{{1,7}}[nr]|[\r\n]){{1,8}}[ \t]{{0,8}}{_LAST_LINE}){{1,2}}")
    + rf"(?={atomic('margin4', f'{_MARGIN}{{0,24}}')}(?:{_END_OF_KEY}|\Z)))"
)
_CLOSED = atomic("margin", f"{_MARGIN}{{0,24}}") + _END_OF_KEY
_KEY_WORD = r"(?<![\w+/])(?=(?:[a-z0-9+/=]*[A-Z]){3})(?=[A-Za-z+/=]*\d)[A-Za-z0-9+/=]{20,}"
_LONGEST = 1 << 16
_PUTTY = r"Private-Lines:(?: |\t)?\d{1,4}"
_PUTTY_LINES = (
    rf"(?:{_LINE_END}{{1,4}}[A-Za-z0-9+/]{{64}}(?![^\s\\]))*"
    rf"(?:{_LINE_END}{{1,4}}(?![a-z/]+(?![\w+/=]))[A-Za-z0-9+/]{{4,63}}={{0,2}}(?![^\s\\]))?"
)
_PUTTY_MAC = rf"{_LINE_END}{{1,4}}Private-(?:MAC|Hash):(?: |\t)?([0-9a-f]{{32,}})"
_WALLET_KEY = r"0x[0-9a-fA-F]{64}(?![0-9a-fA-F])"
_WALLET = (
    r"(?i)(?:(?:wallet|signer|from_?key|private_?key|to_?account)\w{0,20}\(|\baccounts[\"']?\s{0,3}[:=]\s{0,3}\["
    r"|(?:\b|_)pk[\"']?\s{0,3}[:=])\s{0,3}[\"']?\Z"
)
_LISTED = r"\(\d{1,3}\) \Z"
_JWK_PART = r"\"(?:d|p|q|dp|dq|qi|k)\"\s{0,3}:\s{0,3}\"([\w-]{20,})\""
_ENCODED = "LS0tLS1CRUdJTi"  # "-----BEGIN ", as in a kubeconfig
_ENCODED_KEY = r"LS0tLS1CRUdJTi[A-Za-z0-9_+/=-]{20,}"


def _keys(text: str) -> Iterator[Span]:
    if "PRIVATE KEY" in text:
        yield from _private_keys(text)
    if "0x" in text:
        yield from _wallet_keys(text)
    if '"kty"' in text:
        yield from ((*part.span(1), "private key") for part in _compiled(_JWK_PART).finditer(text))
    if "Private-Lines:" in text:
        yield from _putty_keys(text)
    if _ENCODED in text:
        yield from _encoded_private_keys(text)


def _private_keys(text: str) -> Iterator[Span]:
    """Private keys as files hold them: the lines between the first and the last one, and only if they look like one."""
    begins = [begin.span() for begin in _compiled(_BEGIN).finditer(text)]
    limits = [start for start, _ in begins[1:]] + [len(text)]
    for (start, at), limit in zip(begins, limits, strict=False):
        body = _compiled(_BODY).match(text, at)
        end = body.end() if body else at
        closed = _compiled(_CLOSED).match(text, end) if end > at else None
        if end > at:
            yield start, closed.end() if closed else end, "private key"
        if not closed and (closed := _compiled(_END_OF_KEY).search(text, end, min(limit, end + _LONGEST))):
            # Its lines have something else beside them.
            for word in _compiled(_KEY_WORD).finditer(text, end, closed.start()):
                yield *word.span(), "private key"


def _putty_keys(text: str) -> Iterator[Span]:
    """The private lines of a key of PuTTY, and the code that a passphrase can be tried on."""
    for begin in _compiled(_PUTTY).finditer(text):
        if (lines := _compiled(_PUTTY_LINES).match(text, begin.end())) and lines[0]:
            start = lines.start() + len(lines[0]) - len(lines[0].lstrip())
            yield start, lines.end(), "private key"
            if code := _compiled(_PUTTY_MAC).match(text, lines.end()):
                yield *code.span(1), "private key"


def _wallet_keys(text: str) -> Iterator[Span]:
    """The keys of wallets that are given to a function, or listed. Any hash looks like one; names tell the others."""
    for found in _compiled(_WALLET_KEY).finditer(text):
        before = text[max(0, found.start() - 2000) : found.start()]
        if _compiled(_WALLET).search(before[-48:]) or (
            _compiled(_LISTED).search(before[-8:]) and "rivate Keys" in before
        ):
            yield *found.span(), "wallet key"


def _encoded_private_keys(text: str) -> Iterator[Span]:
    for match in _compiled(_ENCODED_KEY).finditer(text):
        start = match.group()[:64].replace("-", "+").replace("_", "/")
        if b"PRIVATE KEY" in base64.b64decode(start[: len(start) // 4 * 4]):
            yield *match.span(), "private key"


# --- places that hold a secret ---------------------------------------------------------------------------

_SPACED = r"[^\"'\n;&|<>()`$]"
_CLOSED_UP = r"(?:[^\s\"'`$]|\$(?!\())"
_VALUE = (
    rf"(?P<quote>[\"'])?(?!{FILLED_IN}|-)"
    rf"((?(quote)(?:{_CLOSED_UP}{{3,200}}(?=[\"'])|{_SPACED}{{3,200}}(?=[\"'])|{BARE}{{3,}})|{BARE}{{3,}}))"
)
"""A value with quotes around it, or up to where a shell would end it. In quotes, too, it has no spaces and operators
at once: that would be a command, and the quotes those of two other texts.
"""
_IN_QUOTES = rf"(?P<quote>[\"'])({_CLOSED_UP}{{2,200}}(?=[\"'])|{_SPACED}{{2,200}}(?=[\"']))"
_OPEN = r"(?:\\{0,7}[\"'])?"
_ENDS = ("\n", "|", ";", "&", "\\n")
"""What ends a command, so that options after it are those of another program."""
_MYSQL = r"(?:mysql|mariadb)[\w-]{0,10}\s"
_LOGIN = (
    r"(?:(?:docker|podman|az|registry|oras|skopeo|buildah|nerdctl|helm|cf|auth) login|sshpass|mongo\w{0,8}|plink|pscp"
    r"|psftp|psexec\w{0,4}(?:\.exe)?|rdesktop|winexe|twine|curl)\s"
)
_ZIP = r"(?:zip|sqlcmd|bcp|isql|osql|tsql)\s"
_PACKED = r"\b(?:7z[a-z]{0,2}|rar|unrar)\s"
_DIRECTORY = r"(?:redis-cli|ldap[a-z]{3,8})\s"
_SAMBA = r"(?:smbclient|rpcclient|smbget|smbmap|crackmapexec)\s"
_SQL = r"\b(?:user|role|alter|grant|to)\s"
_NETRC = r"(?:login|machine|account|default)\s{1,8}\S{1,100}\s{1,8}\Z"
_SCHEME = r"(?:(?!bearer|basic)[a-z][\w-]{2,20}[ \t]{1,3})?"
_STDIN = (
    r"(?:sudo -S|passwd\b|cryptsetup|(?:docker|podman|helm|skopeo|oras|gh|glab|registry|auth)\b[^\n|;&]{0,80}"
    r"(?:--password-stdin|--with-token|--stdin))"
)
_COOKIE = r"[\w.$-]{1,80}=((?:[^\s;\"'\\,<>|&()`$]|\$(?!\())+)"
_COOKIES = rf"(?=[\w.$-]{{1,80}}=)(?=[^\n\d\\\"']{{0,200}}\d|[\w.$-]{{1,80}}=\S{{16}}){_COOKIE}"
_MORE_COOKIES = (
    r"(?i)[^\s;\"'\\]*;\s{0,2}(?!(?:path|domain|expires|max-age|samesite|version|priority)=)"
    rf"{_COOKIE}(?=[;\"'\\]|\s*(?:[,)\]}}]|[\r\n]|$))"
)
_USER = (
    r"\s(?:-u|--(?:proxy-)?user)(?:\s{1,3}|=)[\"']?"
    rf"([^\s:\"'$={{;&|<>`]{{1,100}}):(?!{FILLED_IN}|\d{{1,6}}\b|\1\b|/|pass(?:word|wd)?\b)({BARE}{{1,200}})"
)
_CALL = (
    r"(?:basicauth|auth=|passwordauthentication|networkcredential|credentials|pscredential|getconnection|directoryentry)"
    rf"\((?:[^,()\n]{{1,200}},\s{{0,12}}){{1,2}}(?=[\"'](?:[^\"'\n]{{0,80}}\d|(?!\w{{0,20}}(?:pass|user|name|secret))\w{{8}})){_IN_QUOTES}"
)


class SecretPlace(NamedTuple):
    """Where a secret stands, whatever it looks like. `gate` is in every text that has one, in lower case.

    `after` has to be found before the anchor, in the same command: most options mean a password to a few programs only.
    `more` is what the next value of the same list looks like; its group is the secret.
    """

    gate: str
    shape: Shape
    after: str = ""
    more: str = ""


def _place(
    gate: str, kind: str, anchors: str, pattern: str, after: str = "", *, more: str = "", random: bool = False
) -> SecretPlace:
    starts = tuple(filter(None, anchors.split("|")))
    return SecretPlace(gate, Shape(kind, starts, f"(?i){pattern}", random=random), after, more)


# Those of commands are here as well as in `command_lines`, which reads them as a shell does. These expressions see a
# command in any text, in a literal of code or in JSON in JSON, where no shell could read it, at some MB a second.
PLACES: tuple[SecretPlace, ...] = (
    _place("bearer", "bearer", "bearer",
           r"bearer(?: |:|\+|%20){1,2}(?=[\w.~+/-]{0,200}[\d=])([\w.~+/-]{8,}={0,2})"),
    _place("basic", "basic", "basic", r"basic(?: |\+|%20)(?=[\w+/]{0,60}[\d=])([\w+/]{8,}={0,2})"),
    _place("auth", "authorization", "authorization",
           rf"authorization{_OPEN}\s{{0,3}}[:=,]\s{{0,3}}{_OPEN}{_SCHEME}(?=[^\s\"']{{0,80}}\d)(?![\w.]{{1,80}}[(\[])"
           rf"(?![\[{{$]|x-[a-z])({BARE}{{6,}})"),
    _place("auth", "authorization", "authorization",
           rf"authorization{_OPEN}\s{{0,3}}[:=,]\s{{0,3}}{_OPEN}(?:bearer|basic|token|apikey|bot)[ \t]{{1,3}}"
           rf"(?!{FILLED_IN})(?=[^\s\"']{{0,80}}(?:\d|(?-i:[a-z][A-Z])))({BARE}{{8,}})"),
    _place("cookie", "cookie", "cookie",
           rf"cookie2?{_OPEN}\s{{0,2}}[:=]\s{{0,3}}{_OPEN}{_COOKIES}", more=_MORE_COOKIES),
    _place("cookie", "cookie", " --cookie ", rf"\s--cookie\s{{1,2}}{_OPEN}{_COOKIES}", more=_MORE_COOKIES),
    _place(" -", "cookie", " -b ", rf"\s-b\s{{1,2}}{_OPEN}{_COOKIES}", r"(?:curl|http|wget)\s",
           more=_MORE_COOKIES),
    _place("://", "token", "://", r"://(?=[\w-]{0,100}\d)([\w-]{20,200})@"),
    _place("://", "password", "://",
           rf"://[^\s:/@\"'<>;|&`]{{0,100}}:(?!{FILLED_IN}@|\d{{2,5}}[?#]|(?:pass|password|passwd|pwd|redacted)@)"
           rf"((?:(?!/){BARE}){{1,200}})(?=@)"),
    _place(" -", "password", " -u|\n-u", _USER),
    _place(" -", "password", " --user| --proxy-user", _USER),
    _place(" -", "password", " -p", rf"\s(?-i:-p)(?=\S){_VALUE}", _MYSQL),
    _place(" -", "password", " -p", rf"\s(?-i:-p)(?=\S){_VALUE}", _PACKED),
    _place(" -", "password", " -hp", rf"\s(?-i:-hp)(?=\S){_VALUE}", _PACKED),
    _place(" -", "password", " -p", rf"\s(?-i:-pw?)\s{{1,3}}(?!\d{{1,5}}(?:\s|:|$)){_VALUE}", _LOGIN),
    _place(" -", "password", " -p", rf"\s(?-i:-P)\s{{1,3}}{_VALUE}", _ZIP),
    _place(" -", "password", " -a ", rf"\s-a\s{{1,3}}{_VALUE}", _DIRECTORY),
    _place(" -", "password", " -w ", rf"\s-w\s{{1,3}}{_VALUE}", _DIRECTORY),
    _place(" -", "password", " -n | -p ", rf"\s(?-i:-[NP])\s{{1,3}}{_VALUE}", r"ssh-keygen\s"),
    _place(" -", "password", " -k ", rf"\s-k\s{{1,3}}{_VALUE}", r"openssl enc\s"),
    _place(" -", "password", " -u ", rf"\s-U\s{{1,3}}[\"']?[^\s%\"';&|<>`]{{1,80}}%{_VALUE}", _SAMBA),
    _place(" -", "password", " -u ", rf"\s-u\s{{1,3}}[\"']?[^\s,\"';&|<>`]{{1,80}},{_VALUE}", r"lftp\s"),
    _place("freerdp", "password", " /p:", rf"\s/p:{_VALUE}", r"freerdp\w{0,4}\s"),
    _place("net us", "password", " /user:", rf"\s/user:\S{{1,80}}\s{{1,3}}{_VALUE}", r"net use\s"),
    _place("net us", "password", "net user ", rf"net user\s{{1,3}}[\w.-]{{1,40}}\s{{1,3}}(?![/*]){_VALUE}"),
    _place("@", "password", "sqlplus ", rf"sqlplus\s{{1,3}}(?:-\w{{1,8}}\s{{1,3}}){{0,3}}[\"']?[\w$#]{{1,40}}/"
           rf"(?!{FILLED_IN})((?:(?!@){BARE}){{3,80}})@"),
    _place("@", "password", ":thin:", rf":thin:[\w$#]{{1,40}}/(?!{FILLED_IN})((?:(?!@){BARE}){{1,80}})@"),
    _place("@tcp(", "password", ":", rf":(?!{FILLED_IN}@)((?:(?![@/:]){BARE}){{1,80}})@tcp\("),
    _place(":5432:", "password", ":5432:", rf":5432:[\w*-]{{1,60}}:[\w*.-]{{1,60}}:({BARE}{{3,}})"),
    _place("echo ", "password", "echo ", rf"echo\s{{1,2}}(?:-n\s{{1,2}})?{_VALUE}[\"']?\s{{0,2}}\|\s{{0,2}}{_STDIN}"),
    _place("echo ", "password", "echo ",
           rf"echo\s{{1,2}}[\"']?[\w.-]{{1,60}}:(?!{FILLED_IN})({BARE}{{3,80}})[\"']?\s{{0,2}}"
           r"\|\s{0,2}(?:sudo\s)?chpasswd"),
    _place("pass", "password", "htpasswd",
           rf"htpasswd\s{{1,3}}-\w{{0,4}}b\w{{0,4}}(?:\s{{1,3}}{BARE}{{1,200}}){{1,2}}?\s{{1,3}}{_VALUE}"
           r"(?=[\"']?\s*(?:$|[|;&\n)<>`]|\$\())"),
    _place("pass", "password", " pass:", rf"\spass:{_VALUE}"),
    _place("pass", "password", "requirepass|masterauth", rf"(?:requirepass|masterauth)\s{{1,4}}(?![=:(]){_VALUE}"),
    _place("pass", "password", "with password|encrypted password|set password", r"(?:with|encrypted|set) password"
           rf"(?:\s{{1,3}}for[^\n=]{{1,60}})?\s{{0,3}}=?\s{{0,3}}(?=['\"]){_IN_QUOTES}"),
    _place("pass", "password", " password |\npassword ",
           rf"\spassword\s{{1,8}}(?![=:]|(?:for|and|path|is|or|to|in|of)\b){_VALUE}", _NETRC),
    _place("identified", "password", "identified by",
           rf"identified by\s{{1,3}}(?:password\s{{1,3}})?(?=['\"]){_IN_QUOTES}", _SQL),
    _place("securestring", "password", "convertto-securestring",
           rf"convertto-securestring\s{{1,3}}(?:-asplaintext\s{{1,3}})?(?:-force\s{{1,3}})?(?:-string\s{{1,3}})?{_VALUE}"),
    _place("auth", "password", "basicauth(|auth=(|authentication(", _CALL),
    _place("cred", "password", "networkcredential(|credentials(|pscredential(", _CALL),
    _place("getconn", "password", "getconnection(", _CALL),
    _place("directoryentry", "password", "directoryentry(", _CALL),
    _place("secret", "password", " secret ", rf"\ssecret\s[05789]\s{{1,2}}({BARE}{{4,}})"),
    _place("pass", "password", " password ", rf"\spassword\s[05789]\s{{1,2}}({BARE}{{4,}})"),
    _place("auth", "token", "authtoken | auth ", rf"(?:authtoken|\sauth)\s{{1,2}}({BARE}{{16,}})", random=True),
    _place("login", "token", " login ", rf"\slogin\s{{1,2}}({BARE}{{16,}})", random=True),
    _place("unseal", "token", "unseal ", rf"unseal\s{{1,2}}({BARE}{{16,}})", random=True),
    _place("=", "signature", "", r"[?&;](?:sig|signature|key|hmac|auth|x-amz-signature|x-goog-signature)="
           r"(?=[^&\s]{0,60}\d)([\w%+/=.~-]{8,})"),
)  # fmt: skip
_GATES: dict[str, dict[str, list[SecretPlace]]] = {}
for _each in PLACES:
    for _anchor in _each.shape.anchors or ("",):
        _GATES.setdefault(_each.gate, {}).setdefault(_anchor, []).append(_each)


def placed_secrets(text: str, lowered: str) -> Iterator[Span]:
    """The secrets in a text that are known by where they stand."""
    for gate, anchors in _GATES.items():
        if gate in lowered:
            for anchor, places in anchors.items():
                if anchor in lowered:
                    for place in places:
                        yield from _at(anchor, place, text, lowered) if anchor else _anywhere(place, text)


def _anywhere(place: SecretPlace, text: str) -> Iterator[Span]:
    for found in _compiled(place.shape.pattern).finditer(text):
        yield *found.span(found.re.groups), place.shape.kind


KINDS = frozenset(
    {shape.kind for shape in SHAPES}
    | {place.shape.kind for place in PLACES}
    | {kind for kind, _, _ in _JOINED}
    | {"private key"}
)
