"""Secrets that only their shape gives away: one example per vendor and token type, alone in a text."""

from __future__ import annotations

import base64
import json
import random
import re
import string
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from time import process_time

import pytest
from test_redaction_corpus import ALNUM, HEX, UPPER, URL, Dice

from fairlead.redaction import redactor as redaction
from fairlead.redaction.names import WORDS
from fairlead.redaction.redactor import Redactor
from fairlead.redaction.shapes import PLACES, SHAPES, known_secrets

# --- the list --------------------------------------------------------------------------------------------

LETTERS = {
    "a": ALNUM, "h": HEX, "H": HEX.upper(), "u": UPPER, "w": URL, "d": string.digits, "b": ALNUM + "+/",
    "l": string.ascii_lowercase + string.digits, "n": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "2": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "q": "qpzry9x8gf2tvdw0s3jn54khce6mua7l",
}  # fmt: skip
FIELD = re.compile(r"\{(\w)(\d+)\}|\{uuid\}")

VENDORS = """
# cloud
aws access key               | AK~IA{216}
aws temporary key            | AS~IA{216}
aws bearer key               | AB~IA{216}
aws context key              | AC~CA{216}
aws bedrock key              | ABSK~QmVkcm9ja0FQSUtleS{b110}
aws bedrock short-term key   | bedrock-api-key-~YmVkcm9jay5hbWF6b25hd3MuY29t{b200}
aws appsync key              | da~2-{l26}
amazon mws token             | amzn.~mws.{uuid}
amazon client secret         | amzn1.~oa2-cs.v1.{h64}
google api key               | AI~za{w35}
google client secret         | GOC~SPX-{w28}
google access token          | ya~29.{w68}
google refresh token         | 1//~0{w60}
google hmac key              | GOO~G1E{a57}
google gemini key            | AQ~.Ab8{w48}
firebase server key          | AAAA{w7}:APA~91b{w134}
azure storage key            | {b76}+AS~t{b6}==
azure cosmos key             | {b76}AC~Db{b6}==
azure function key           | {w44}AzF~u{w5}w==
azure service key            | {a52}JQQ~J99{u4}AC{a20}
azure devops token           | {a76}AZ~DO{a4}
azure client secret          | {a3}8Q~~{w34}
digitalocean token           | dop_~v1_{h64}
digitalocean oauth token     | doo_~v1_{h64}
digitalocean refresh token   | dor_~v1_{h64}
digitalocean spaces key      | DO0~0{u16}
alibaba access key           | LT~AI5t{a18}
tencent secret id            | AK~ID{a32}
volcengine access key        | AK~LT{a44}
yandex api key               | AQ~VN{w36}
yandex oauth token           | y0~_{w55}
yandex iam token             | t1.~{w90}.{w86}
scaleway access key          | SC~W{u17}
exoscale key                 | EX~O{h26}
upcloud token                | uc~at_{u26}
cloudflare origin ca key     | v1~.0-{h24}-{h146}
cloudflare user token        | cf~ut_{a48}
cloudflare account token     | cf~at_{a48}
vercel token                 | vc~p_{a56}
vercel ai gateway key        | vc~k_{a56}
vercel blob token            | vercel_~blob_rw_{a16}_{a30}
netlify token                | nf~p_{a36}
netlify oauth token          | nf~o_{a36}
render key                   | rn~d_{a28}
fly token                    | fm~2_{b120}
heroku key                   | HR~KU-AA{w58}
heroku uuid key              | HR~KU-{uuid}
deno deploy token            | dd~p_{a36}
supabase token               | sb~p_{h40}
supabase secret key          | sb_~secret_{w31}
neon key                     | na~pi_{l64}
neon password                | np~g_{a12}
planetscale token            | pscale_~tkn_{w43}
planetscale password         | pscale_~pw_{w43}
cockroach key                | CCDB~1_{a22}_{a40}
mongodb atlas secret         | mdb_~sa_sk_{w40}
xata key                     | xa~u_{a40}
aiven password               | AVN~S_{w19}
clickhouse key               | 4b~1d{a38}
databricks token             | da~pi{h32}
databricks token, versioned  | da~pi{h32}-2
databricks oauth secret      | do~se{h32}
dbt token                    | dbt~u_{w39}
elastic cloud key            | es~su_{b70}
openshift token              | sha~256~~{w43}
scalingo token               | tk-~us-{w48}
# code and builds
github token                 | gh~p_{a36}
github oauth token           | gh~o_{a36}
github user token            | gh~u_{a36}
github app token             | gh~s_{a36}
github refresh token         | gh~r_{a76}
github fine-grained token    | github_~pat_{a22}_{a59}
gitlab token                 | glp~at-{w20}
gitlab routable token        | glp~at-{w27}.01.{l9}
gitlab deploy token          | gld~t-{w20}
gitlab runner token          | glr~t-{w20}
gitlab job token             | glc~bt-64_{w20}
gitlab trigger token         | glp~tt-{h40}
gitlab feed token            | glf~t-{w20}
gitlab scim token            | glso~at-{w20}
gitlab mail token            | gli~mt-{w25}
gitlab agent token           | glag~ent-{w50}
gitlab oauth secret          | glo~as-{h64}
gitlab feature flag token    | glff~ct-{w20}
gitlab runner registration   | GR13~48941{w20}
bitbucket app password       | AT~BB{a32}
bitbucket access token       | ATCTT3~xFfGN0{w170}={H8}
bitbucket server token       | BB~DC-{b44}
atlassian token              | ATATT3~xFfGF0{w170}={H8}
trello token                 | AT~TA{h64}
buildkite token              | bk~ua_{h40}
circleci token               | CCI~PAT_{a22}_{h40}
circleci project token       | CCI~PRJ_{a22}_{h40}
sonarqube token              | sq~p_{h40}
sonarqube user token         | sq~u_{h40}
sonarqube analysis token     | sq~a_{h40}
snyk token                   | snyk_~uat.{h8}.{w70}.{w10}.{w86}
sourcegraph token            | sg~p_{h16}_{h40}
sourcegraph short token      | sg~p_{h40}
percy token                  | web~_{h64}
gitpod token                 | gitpod_~pat_{w44}
depot token                  | depot_~project_{h64}
octopus key                  | AP~I-{u30}
artifactory key              | AK~Cp{a69}
artifactory reference token  | cmVm~dGtuOj{a54}
npm token                    | np~m_{a36}
pypi token                   | py~pi-AgEIcHlwaS5vcmc{w150}
rubygems key                 | ruby~gems_{h48}
cargo token                  | ci~o{a32}
nuget key                    | oy~2{l43}
clojars token                | CLO~JARS_{h60}
packagist token              | packagist_~ack_{h60}
docker token                 | dckr_~pat_{w27}
docker organisation token    | dckr_~oat_{w32}
harness token                | pat.~{w22}.{h24}.{a20}
terraform token              | {a14}.atlas~v1.{w67}
pulumi token                 | pu~l-{h40}
vault token                  | hv~s.{w95}
vault batch token            | hv~b.{w140}
vault old token              | s~.{a24}
doppler token                | dp.~pt.{a43}
doppler service token        | dp.~st.prd.{a43}
infisical token              | st.~{h24}.{h32}.{h32}
1password token              | op~s_eyJ{b250}
1password secret key         | A3-{u6}-{u6}-{u5}-{u5}-{u5}-{u5}
bitwarden token              | 0.{uuid}.{a30}:{b22}==
tailscale key                | ts~key-auth-{a12}CNTRL-{a32}
tailscale api key            | ts~key-api-{a12}CNTRL-{a32}
defined networking token     | dn~key-{l26}-{l52}
portainer key                | pt~r_{b43}=
postman key                  | PM~AK-{h24}-{h34}
postman collection key       | PM~AT-{u26}
sandbox secret key           | test~sk_{a32}
wakatime key                 | wa~ka_{uuid}
rapidapi key                 | {h10}ms~h{h15}p1{h6}jsn{h12}
socket key                   | skt~sec_{w40}_api
prefect key                  | pn~u_{a36}
trigger.dev key              | tr_~prod_{a20}
inngest key                  | signkey-~prod-{h64}
unkey root key               | unkey~_{a24}
zuplo key                    | zp~ka_{h32}_{h8}
readme key                   | rd~me_{l70}
kubernetes service account   | jwt
jwt                          | jwt
# models
openai key                   | sk~-{a20}T3BlbkFJ{a20}
openai project key           | sk~-proj-{w74}T3BlbkFJ{w74}
openai service key           | sk~-svcacct-{w74}T3BlbkFJ{w74}
openai admin key             | sk~-admin-{w58}T3BlbkFJ{w58}
anthropic key                | sk-~ant-api03-{w93}AA
anthropic admin key          | sk-~ant-admin01-{w93}AA
anthropic oauth token        | sk-~ant-oat01-{w95}
openrouter key               | sk-~or-v1-{h64}
deepseek key                 | sk~-{h32}
langfuse key                 | sk~-lf-{uuid}
langsmith key                | lsv2_~pt_{h32}_{h10}
groq key                     | gs~k_{a52}
xai key                      | xa~i-{a80}
perplexity key               | pp~lx-{a48}
replicate token              | r~8_{a37}
hugging face token           | h~f_{a34}
hugging face org token       | api_~org_{a34}
together key                 | tgp_~v1_{w43}
fireworks key                | f~w_{a24}
cerebras key                 | cs~k-{l48}
nvidia key                   | nv~api-{w64}
pinecone key                 | pc~sk_{a5}_{a63}
voyage key                   | pa~-{w43}
jina key                     | ji~na_{h32}{w28}
nomic key                    | nk~-{w43}
llamacloud key               | ll~x-{a48}
tavily key                   | tv~ly-{a32}
tavily dev key               | tv~ly-dev-{a32}
brave search key             | BS~A{w28}
firecrawl key                | f~c-{h32}
e2b key                      | e2~b_{h40}
browserbase key              | bb_~live_{w27}
apify token                  | apify_~api_{a36}
elevenlabs key               | sk~_{h48}
runpod key                   | rp~a_{u44}
anyscale key                 | ese~cret_{w26}
modal token                  | as~-{a22}
mem0 key                     | m0~-{a40}
cursor key                   | cr~sr_{h64}
dify key                     | ap~p-{a24}
weights and biases key       | wandb_~v1_{a27}_{a56}
friendli token               | fl~p_{a44}
helicone key                 | sk-~helicone-{l7}-{l7}-{l7}-{l7}
mapbox secret token          | sk.~eyJ1Ijoi{w80}.{w22}
mapbox public token          | pk.~eyJ1Ijoi{w80}.{w22}
# money
stripe key                   | sk_~live_{a24}
stripe test key              | sk_~test_51{a97}
stripe restricted key        | rk_~live_{a99}
stripe webhook secret        | wh~sec_{a32}
square token                 | sq0~atp-{w22}
square oauth secret          | sq0~csp-{w43}
square access token          | EA~AA{w60}
braintree token              | access_~token$production${l16}${h32}
razorpay key                 | rzp_~live_{a14}
paystack key                 | sk_~live_{h40}
flutterwave key              | FLWS~ECK-{h32}-X
mollie key                   | li~ve_{a30}
gocardless token             | li~ve_{w40}
plaid token                  | access-~production-{uuid}
paddle key                   | pdl_~live_apikey_{l26}_{a22}_{a3}
polar token                  | polar_~oat_{a43}
adyen key                    | AQ~Eyhm{b100}
shippo token                 | shippo_~live_{h40}
easypost key                 | EZ~AK{a54}
easypost test key            | EZ~TK{a54}
duffel token                 | duffel_~test_{w43}
woocommerce key              | c~k_{h40}
woocommerce secret           | c~s_{h40}
shopify token                | shp~at_{h32}
shopify custom app token     | shp~ca_{h32}
shopify private app password | shp~pa_{h32}
shopify shared secret        | shp~ss_{h32}
klarna key                   | klarna_~live_api_{w60}
# talk, mail, people
slack bot token              | xo~xb-{d12}-{d13}-{a24}
slack user token             | xo~xp-{d12}-{d12}-{d12}-{h32}
slack app token              | xa~pp-1-A{u10}-{d13}-{h64}
slack refresh token          | xo~xe-1-{a146}
slack webhook                | https://hooks.slack.com/services/T{u8}/B{u10}/{a24}
discord token                | discord
discord webhook              | https://discord.com/api/webhooks/123456789012345678/{w68}
telegram token               | {d10}:A~A{w33}
teams webhook                | https://contoso.webhook.office.com/webhookb2/{uuid}@{uuid}/IncomingWebhook/{h32}/{uuid}
teams old webhook            | https://outlook.office.com/webhook/{uuid}@{uuid}/IncomingWebhook/{h32}/{uuid}
zapier webhook               | https://hooks.zapier.com/hooks/catch/{d7}/{l7}/
twilio key                   | S~K{h32}
sendgrid key                 | S~G.{w22}.{w43}
mailgun key                  | ke~y-{h32}
mailgun new key              | {h32}-{h8}-{h8}
mailchimp key                | {h32}-us~12
mandrill key                 | m~d-{w22}
resend key                   | r~e_{a8}_{a24}
brevo key                    | xkey~sib-{h64}-{a16}
brevo smtp key               | xsmtp~sib-{h64}-{a16}
intercom token               | dG9~rO{b55}=
hubspot token                | pat-~na1-{uuid}
salesforce token             | 00~D{a12}!AQ{a94}
salesforce refresh token     | 5Ae~p861{a80}
onesignal key                | os_~v2_app_{l103}
pubnub secret                | sec-~c-{b48}
ably key                     | {a6}.{a6}:{w43}
facebook token               | EA~ACEdEose0cBA{a120}
facebook long token          | EA~A{a180}
instagram token              | IGQ~VJ{w150}
twitter bearer token         | AAAAAAAAAAAAAAAAAAAAA{a80}
linkedin secret              | WPL_~AP1.{a16}.{b8}==
pinterest token              | pi~na_{u80}
twitch stream key            | li~ve_{d9}_{a30}
twitch oauth token           | oauth~:{l30}
dropbox token                | sl~.{w135}
dropbox short-lived token    | sl~.u.{w140}
notion token                 | secret~_{a43}
notion new token             | nt~n_{d11}{a35}
airtable token               | pat{a14}.{h64}
asana token                  | 1/{d16}:{h32}
asana new token              | 2/{d16}/{d16}:{h32}
linear key                   | lin_~api_{a40}
clickup token                | p~k_{d8}_{u32}
figma token                  | fi~gd_{w40}
miro token                   | eyJtaX~JvLm9yaWdpbiI6{a8}_{w27}
contentful token             | CF~PAT-{w43}
sanity token                 | s~k{a178}
typeform token               | tf~p_{w44}
calcom key                   | cal_~live_{h32}
frame.io token               | fi~o-u-{w64}
stytch secret                | secret-~live-{w44}=
okta token                   | 0~0{w40}
ory token                    | ory_~pat_{a32}
klaviyo key                  | p~k_{h34}
courier key                  | pk_~prod_{u28}
lob key                      | li~ve_{h35}
onfido token                 | api_~live.{w11}.{w32}
nightfall key                | N~F-{a32}
maxmind key                  | {a6}_{a29}_mm~k
beamer key                   | b~_{w44}
adafruit key                 | ai~o_{a28}
adobe client secret          | p8~e-{w32}
intra42 secret               | s-s4t2~ud-{h64}
coralogix key                | cxt~p_{a30}
checkly key                  | cu~_{h32}
settlemint token             | sm_~pat_{a16}
authress key                 | sc~_{l10}.{l4}.acc_{l20}.{w50}
# watching
datadog app key              | dda~pp_{a40}
grafana token                | gl~sa_{a32}_{h8}
grafana cloud token          | gl~c_eyJ{b90}
grafana old key              | eyJ~rIjoi{b70}==
sentry token                 | sntr~ys_eyJ{b100}=_{b43}
sentry user token            | sntr~yu_{h64}
new relic user key           | NR~AK-{u27}
new relic insert key         | NR~II-{w32}
new relic browser key        | NR~JS-{h19}
new relic query key          | NR~IQ-{w32}
new relic license key        | {h36}NR~AL
dynatrace token              | dt0~c01.{224}.{264}
honeycomb key                | hc~aik_{l26}{l32}
axiom token                  | xa~at-{uuid}
posthog project key          | ph~c_{a43}
posthog personal key         | ph~x_{a43}
launchdarkly sdk key         | sd~k-{uuid}
launchdarkly api key         | ap~i-{uuid}
statsig secret               | secret~-{a43}
configcat key                | configcat-~sdk-1/{w22}/{w22}
flagsmith key                | se~r.{a22}
dependency-track key         | od~t_{a32}
# less well known
datastax token               | Astra~CS:{a24}:{h64}
fauna key                    | fn~A{w37}
materialize key              | mz~p_{h64}
jdcloud key                  | JD~C_{u28}
workato token                | wrk~aus-{w80}
rancher token                | tok~en-{l5}:{l54}
baidu key                    | bce-v3/AL~TAK-{a21}/{h40}
open vsx token               | ovs~xat_{uuid}
jetbrains token              | perm~:{a12}==.{a8}==.{a42}
jenkins token                | 1~1{h32}
codesandbox token            | csb_~v1_{w43}
val town token               | vt~wn_{a27}
daytona key                  | dt~n_{h64}
mergify key                  | mk~a_{a43}
thunderstore token           | ts~s_{a40}
lightdash token              | ld~pat_{h32}
metabase key                 | m~b_{b43}=
retool token                 | ret~ool_01{l26}
stackhawk key                | ha~wk.{a20}.{a20}
infracost key                | ic~o-{a32}
vantage token                | vntg_~tkn_{h40}
permit key                   | permit_~key_{a60}
n8n key                      | n8n_~api_{h80}
iterative token              | is~at_{a40}
langsmith old key            | l~s__{h32}
logfire token                | pylf_~v1_us_{a43}
braintrust key               | bt-~st-{a48}
turbopuffer key              | tp~uf_{a32}
twelve labs key              | tl~k_{u30}
you.com key                  | ydc-~sk-{a32}
steel key                    | st~e-{a64}
toolhouse key                | t~h-{w43}
kaggle token                 | KG~AT_{h32}
coze token                   | pa~t_{a64}
cashfree key                 | cfsk_~ma_prod_{h32}_{h8}
xendit key                   | xnd_~production_{a50}
midtrans key                 | Mid-~server-{w24}
mercado pago token           | APP_~USR-{d16}-{d6}-{h32}-{d9}
asaas key                    | $aa~ct_{a60}
ramp secret                  | ramp_~sec_{a40}
circle key                   | LIVE_~API_KEY:{h32}:{h32}
ebay key                     | PR~D-{h12}-{h4}-{h4}-{h4}-{h4}
dynamic token                | dy~n_{a56}
make webhook                 | https://hook.eu1.make.com/{l32}
ifttt webhook                | https://maker.ifttt.com/trigger/x/with/key/{w43}
feishu webhook               | https://open.feishu.cn/open-apis/bot/v2/hook/{uuid}
oculus token                 | O~C|{d16}|{h32}
lichess token                | li~p_{a20}
matrix token                 | sy~t_{a8}_{a20}_{a6}
telnyx key                   | KE~Y0{H31}_{a22}
samsara token                | samsara_~api_{a30}
persona key                  | persona_~production_{uuid}
ionic token                  | io~n_{a42}
canva secret                 | cnv~ca{w45}
deepl key                    | {uuid}:f~x
fal key                      | {uuid}:{h32}
ghost key                    | {h24}:{h64}
close key                    | api_{a22}.{a22}
devcycle key                 | dvc_~server_{a40}
rootly key                   | root~ly_{h64}
logicmonitor token           | lm~b_{b60}
minisign key                 | RWRTY~0Iy{b100}
crossmint key                | sk_~production_{a60}
clearbit key                 | s~k_{h32}
fillout key                  | sk_~prod_{a60}
liveblocks key               | sk_~prod_{w40}
acme, an unknown vendor  | acme_~sk_{a32}
acme, another                | acme_~live_{h40}
acme, a personal token       | acme_~pat_{a40}
# and more
aws session token            | IQoJ~b3JpZ2luX2Vj{b300}
aws older session token      | FwoG~ZXIvYXdzE{b300}
google authorization code    | 4/0~AX4{w70}
confluent secret             | cf~lt{b60}
swarm join token             | SWM~TKN-1-{l50}-{l25}
swarm unlock key             | SWM~KEY-1-{b43}
k3s token                    | K1~0{h64}::server:{h32}
zoho token                   | 10~00.{h32}.{h32}
spectral key                 | sp~u-{h32}
endor key                    | en~dr+{a16}
jumpcloud key                | jc~a_{a36}
pangea token                 | pt~s_{l32}
secret-token address         | secret-~token:{w43}
openai session               | se~ss-{a40}
voiceflow key                | VF~.DM.{h24}.{a16}
scrapfly key                 | scp-~live-{h32}
alchemy token                | al~cht_{a30}
robinhood key                | rh-~api-{uuid}
linear webhook secret        | lin_~wh_{a40}
salesloft key                | v2_~ak_101_{h64}
ubidots token                | BB~FF-{a30}
locationiq key               | pk~.{h32}
ngrok token                  | 2{a26}_{a21}
branch.io key                | key_~live_{a32}
bcrypt hash                  | $2~b$12${a53}
sha512-crypt hash            | $6~${a16}${a86}
apache hash                  | $ap~r1${a8}${a22}
argon2 hash                  | $arg~on2id$v=19$m=65536,t=3,p=4${a22}${b43}
django hash                  | pbk~df2_sha256$600000${a22}${b43}=
# keys
age key                      | AGE-SECRET-~KEY-1{258}
bitcoin private key          | L{n51}
bitcoin extended key         | xp~rv9{n107}
nostr key                    | ns~ec1{q58}
stellar seed                 | S{255}
private key                  | pem
openssh key                  | openssh
pgp key                      | pgp
putty key                    | putty
encoded private key          | kubeconfig
jwk                          | jwk
laravel key                  | base64:{b43}=
"""
"""`name | what it looks like`: `{a36}` are 36 letters and digits; `~` parts a prefix in two, so that no scanner of this
repository takes the list for keys. Written from what vendors publish; what is not recognised stays in the list.
"""


def vendors() -> dict[str, str]:
    rows = [line.split("|", 1) for line in VENDORS.split("\n") if line and not line.startswith("#")]
    return {name.strip(): shape.strip() for name, shape in rows}


def pem(dice: Dice, kind: str) -> str:
    lines = [dice.word(64, LETTERS["b"]) for _ in range(6)]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, dice.word(20) + "==", f"-----END {kind}-----"])


def putty(dice: Dice) -> str:
    lines = [dice.word(64, LETTERS["b"]) for _ in range(7)] + [dice.word(39, LETTERS["b"]) + "="]
    return "\n".join([
        "PuTTY-User-Key-File-3: ssh-ed25519", "Encryption: none", "Comment: me@host", "Public-Lines: 2",
        "AAAAC3NzaC1lZDI1NTE5AAAAIJ8fQ0o2P3v4b5n6m7l8k9j0h1g2f3d4s5a6q7w8", "e9r0t1y2u3i4",
        f"Private-Lines: {len(lines)}", *lines, "Private-MAC: " + dice.word(64, HEX),
    ])  # fmt: skip


def made(shape: str, dice: Dice) -> str:
    """A secret of this shape."""
    if shape == "jwt":
        head, body = ({"alg": "HS256", "typ": "JWT"}, {"sub": dice.word(12), "iat": 1516239022})
        parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in (head, body)]
        return ".".join([*parts, dice.word(43, URL)])
    if shape == "discord":
        return "M" + f"T{dice.word(24)}.{dice.word(6, URL)}.{dice.word(38, URL)}"
    if shape == "kubeconfig":
        return base64.b64encode(pem(dice, "EC PRIVATE" + " KEY").encode()).decode()
    if shape == "jwk":
        return json.dumps({"kty": "EC", "crv": "P-256", "x": "public", "y": "0", "d": dice.word(43, URL)})
    kinds = {"pem": "RSA PRIVATE" + " KEY", "openssh": "OPENSSH PRIVATE" + " KEY", "pgp": "PGP PRIVATE" + " KEY BLOCK"}
    if shape in kinds:
        return pem(dice, kinds[shape])
    if shape == "putty":
        return putty(dice)
    return FIELD.sub(lambda field: letters(field, dice), shape.replace("~~", "\0").replace("~", "").replace("\0", "~"))


def letters(field: re.Match[str], dice: Dice) -> str:
    return dice.word(int(field[2]), LETTERS[field[1]]) if field[1] else str(uuid.UUID(int=dice.getrandbits(128)))


ALONE = [
    "{}", "found {} in the log", "`{}`", '["a", "{}"]', "use {}, then go on", "({})", "- {}\n- b", 'see "{}".',
    "it printed\n{}\nand ended", "2026-01-02T03:04:05Z INFO sent {} to 10.0.0.1", "call('{}')", "<td>{}</td>",
    "a | {} | b", "x\t{}\ty",
]  # fmt: skip
"""No name is near: only the shape can tell."""


def left_of(secret: str, text: str, public: set[str]) -> bool:
    """Whether a piece of a secret is still in a text, other than those that all secrets of its kind have."""
    return any(piece in text for piece in pieces(secret) - public)


def pieces(secret: str) -> set[str]:
    return {secret[at : at + 10] for at in range(max(1, len(secret) - 9))}


def planted() -> Iterator[tuple[str, str, bool]]:
    """(vendor, place, whether anything of the secret is left)."""
    dice, redactor = Dice(20270305), Redactor()
    for vendor, shape in vendors().items():
        public = pieces(made(shape, dice)) & pieces(made(shape, dice))
        for place in ALONE:
            secret = made(shape, dice)
            yield vendor, place, left_of(secret, redactor.text(place.replace("{}", secret)), public)


AT_LEAST = 0.98
"""What the acceptance asks for is 85 in a hundred, of a list of its own."""


def test_secrets_of_hundreds_of_vendors_are_known_by_their_shape():
    found = list(planted())
    missed = [(vendor, place) for vendor, place, left in found if left]
    rate = 1 - len(missed) / len(found)
    print(f"{len(vendors())} shapes, {len(found)} planted, {rate:.2%} taken out")
    assert len(vendors()) >= 350
    assert rate >= AT_LEAST, missed


def test_no_vendor_is_missed_as_a_rule():
    """Chance may make a token look like a word; then it is left, but seldom."""
    dice, redactor = Dice(7), Redactor()
    often = [
        vendor
        for vendor, shape in vendors().items()
        if sum(redactor.text(secret) == secret for secret in (made(shape, dice) for _ in range(40))) > 6
    ]
    assert often == []


def test_every_kind_of_secret_is_in_the_list():
    dice = Dice(8)
    text = "\n\n".join(made(shape, dice) for _ in range(4) for shape in vendors().values())
    in_their_place = {"azure signature", "azure key"}  # these stand beside a name
    assert {shape.kind for shape in SHAPES} - {kind for _, _, kind in known_secrets(text)} <= in_their_place


@pytest.mark.parametrize(
    "text",
    [
        "toolu_01T1x1fJ34qAmk2tNTrN7Up6", "call_62136354f6e14bd8a1b2c3d4", "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
        "msg_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b", "req_018EeWyXxfu5pfWkrYcMdjWG",
        "resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b452d3795b", "run-4bf92f3577b34da6a3ce929d0e0e4736",
        "session_01HZX3V9K7Q2M4N6P8", "file-abc123XyZ987", "evt_1NG8Du2eZvKYlo2CUI79vXWy", "i-0123456789abcdef0",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060", "cus_NffrFeUfNV2Hib",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "org-AbC123dEf456GhI789jKl012",
        "web-6d4cf56db6-abcde", "sk_X509_EXTENSION_value_of_the_stack", "pk_order_line_items_product",
        "test_sha256_digest_of_an_empty_file_is_known", "prod-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b",
        "deploy-4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    ],
)  # fmt: skip
def test_an_identifier_is_no_secret(text: str):
    """What agents, clouds and builds call things by, and a journal has to keep."""
    assert Redactor().text(f"see {text} there") == f"see {text} there"


@pytest.mark.parametrize(
    "text",
    [
        "PRIVATE_KEY=0x{}", "export DEPLOYER_PRIVATE_KEY=0x{}", "cast send --private-key 0x{} --rpc-url u",
        '"privateKey": "0x{}"', "private_key = 0x{}", "Private Key: 0x{}", "new ethers.Wallet('0x{}')",
        'Account.from_key("0x{}")', "privateKeyToAccount('0x{}')", "private key is 0x{}",
        "Private Keys\n==================\n(0) 0x{}\n", "accounts: ['0x{}']",
        'accounts: [ "0x{}" ]', "DEPLOYER_PK=0x{}",
    ],
)  # fmt: skip
def test_a_key_of_a_wallet_is_known_by_what_is_beside_it(text: str):
    """A hash looks the same, so it takes more than a shape."""
    secret = Dice(9).word(64, HEX)
    assert secret not in Redactor().text(text.replace("{}", secret))


# --- time ------------------------------------------------------------------------------------------------

FILLINGS = ("", "a1B2-", "='a [")
SIZE = 1 << 13


@pytest.mark.e2e
def test_no_anchor_makes_a_long_text_slow():
    """Quadratic work on the worst text of an anchor would take hundreds of times as long as that of most others."""
    anchors = {anchor for shape in [*SHAPES, *(place.shape for place in PLACES)] for anchor in shape.anchors} | {*WORDS}
    taken = {}
    for anchor in sorted(anchors):
        for filling in FILLINGS:
            unit, redactor = anchor + filling, Redactor()
            started = process_time()
            redactor.text((unit * (SIZE // len(unit) + 1))[:SIZE])
            redactor.text((anchor + filling * SIZE)[: SIZE // 2])
            taken[unit] = process_time() - started
    usual = max(median(taken.values()), 0.001)
    assert {unit: seconds for unit, seconds in taken.items() if seconds > 40 * usual} == {}


SIGNS = [
    *"'\"`=:,;&|<>()[]{}$\\/@#!?%+*~-_. \n\t",
    '\\"',
    "=>",
    ":=",
    "://",
    "'''",
    "$(",
    "${",
    " = ",
    ": ",
    "aB3xY7",
    "\u0130",
]
MOST_TIMES = 40
"""How much longer a text may take than ordinary code. When each hit read its whole line, one took 150 times as long."""


def slowest(units: Iterable[str], size: int = 1 << 12) -> dict[str, float]:
    """The texts that take too long, made of many of each unit, and how many times as long as code they take."""
    code = Path(redaction.__file__).read_text()[: 4 * size]
    redactor = Redactor()

    def seconds(text: str) -> float:
        started = process_time()
        redactor.spans(text)
        return (process_time() - started) / len(text)

    usual = sorted(seconds(code + str(n)) for n in range(9))[4]
    taken = {unit: seconds((unit * (size // len(unit) + 1))[:size]) / usual for unit in units}
    again = {
        unit: seconds((unit * (size // len(unit) + 2))[: size + 1]) / usual
        for unit in taken
        if taken[unit] > MOST_TIMES
    }
    return {unit: times for unit, times in again.items() if times > MOST_TIMES}


def test_no_name_with_signs_around_it_makes_a_text_slow():
    assert (
        slowest(f"{sign}{name}{given}" for name in ("token", "key") for sign in SIGNS for given in ("=", "='", '="'))
        == {}
    )


@pytest.mark.e2e
@pytest.mark.parametrize("seed", range(4))
def test_no_text_of_anchors_and_signs_takes_much_longer_than_code(seed: int):
    anchors = sorted({anchor for shape in [*SHAPES, *(p.shape for p in PLACES)] for anchor in shape.anchors} | {*WORDS})
    dice = random.Random(seed)
    units = ["".join(dice.choice(dice.choice([anchors, SIGNS])) for _ in range(dice.randint(1, 4))) for _ in range(900)]
    assert slowest([*filter(None, units), *(word + sign for word in WORDS for sign in SIGNS)]) == {}


def test_an_encoded_key_beside_letters_of_other_alphabets_is_read():
    assert redaction.redact_text("LS0tLS1CRUdJTi" + "\u0130a" * 20)
