"""Clouds and infrastructure as code: what a command deletes there is gone for everyone."""

from __future__ import annotations

import re

from ..shell import Command
from .lines import PackLine
from .rules import Objection, Pack

cloud = Pack("cloud", "Keeps what runs in a cloud, and the state of infrastructure, from being deleted.")
_MISUSE = "ASI02 Tool Misuse and Exploitation"
_ASKS = frozenset(
    {"--help", "help", "--dry-run", "--dryrun", "--what-if", "--generate-cli-skeleton", "--version", "--dry-run=true"}
)


def _looks_only(command: Command) -> bool:
    return any(word in _ASKS or word.startswith("--generate-cli-skeleton") for word in command.args)


_AWS_DELETES = re.compile(
    r"(?:admin-)?(?:delete|terminate|deregister|destroy|purge|remove|release|revoke|disable|reset|schedule-key-deletion|batch-delete|leave-organization|stop)(?:-|$)"
)
_AWS_KEEPS = re.compile(
    r"(?:delete-(?:item|message(?:-batch)?)$)|[a-z-]+-(?:rules?|alarms?|dashboards?|report-definition|membership|analyzer|tags?|subscription|route)$|"
    r"(?:remove-tags|untag|delete-tags|disassociate|reset-cache|release-hosts|stop-(?:query|logging|build|execution))"
)


@cloud.rule(
    "aws-delete",
    level="destructive",
    programs=["aws", "awslocal"],
    why="This deletes something in AWS, for everyone who uses it.",
    instead="Look first: `aws ec2 describe-instances`",
    incident="2025-12: an agent deleted and remade a production environment of AWS itself: down for 13 hours.",
    stops=[
        "aws ec2 terminate-instances --instance-ids i-1",
        "aws s3 rb s3://b --force",
        "aws s3 rm s3://b/x --recursive",
        "aws rds delete-db-instance --db-instance-identifier x",
        "aws s3 sync . s3://b --delete",
        "aws --profile p dynamodb delete-table --table-name t",
        "aws cloudformation delete-stack --stack-name s",
        "aws kms schedule-key-deletion --key-id k",
        "aws cloudtrail stop-logging --name main",
    ],
    passes=[
        "aws ec2 describe-instances",
        "aws s3 ls",
        "aws s3 cp x s3://b/x",
        "aws s3 sync . s3://b",
        "aws ec2 terminate-instances --dry-run --instance-ids i-1",
        "aws ec2 delete-vpc help",
        "aws s3 sync . s3://b --delete --dryrun",
        "aws s3 presign s3://b/x",
        "aws dynamodb delete-item --table-name t --key file://k.json",
    ],
)
def aws_delete(command: Command, line: PackLine) -> Objection:
    if _looks_only(command):
        return None
    words = [word for word in command.operands if re.fullmatch(r"[a-z0-9-]+", word)]
    if "s3" in words[:2] or "s3" in words:
        verbs = set(command.operands)
        return "rb" in verbs or ("rm" in verbs) or ("sync" in verbs and command.has("--delete"))
    if words[:1] in (["cloudtrail"], ["configservice"], ["guardduty"]) and words[1:2] and words[1].startswith("stop-"):
        return f"aws {words[0]} {words[1]}"
    if words[:2] == ["route53", "change-resource-record-sets"]:
        return re.search(r'"Action"\s*:\s*"DELETE"', " ".join(map(str, command.args))) is not None
    found = next((word for word in words[1:3] if _AWS_DELETES.match(word) and not _AWS_KEEPS.match(word)), None)
    return found and not found.startswith("stop-") and f"aws {words[0]} {found}"


_DELETES = frozenset(
    [
        "delete",
        "destroy",
        "purge",
        "remove",
        "rm",
        "terminate",
        "uninstall",
        "teardown",
        "nuke",
        "wipe",
        "decommission",
    ]
)

_DELETING = ("delete-", "destroy-", "terminate-")


@cloud.rule(
    "cloud-delete",
    level="destructive",
    programs=[
        "gcloud",
        "az",
        "doctl",
        "openstack",
        "linode-cli",
        "hcloud",
        "ibmcloud",
        "oci",
        "scw",
        "vultr-cli",
        "heroku",
        "fly",
        "flyctl",
        "vercel",
        "netlify",
        "railway",
        "firebase",
        "supabase",
        "wrangler",
        "eb",
        "eksctl",
        "gsutil",
        "bq",
        "nova",
        "exo",
        "civo",
        "sam",
        "serverless",
        "sls",
        "cf",
        "render",
        "planetscale",
        "pscale",
        "neonctl",
        "turso",
        "atlas",
        "cloudflared",
        "aliyun",
        "tccli",
        "yc",
        "mc",
        "s3cmd",
        "azcopy",
        "b2",
        "kops",
        "gcloud.cmd",
        "doppler",
        "op",
        "stripe",
        "avn",
        "infisical",
        "confluent",
        "upstash",
        "databricks",
        "airflow",
        "mlflow",
        "s5cmd",
        "flarectl",
        "okteto",
    ],
    why="This deletes something in a cloud, for everyone who uses it.",
    instead="Look first: `gcloud compute instances list`",
    incident="2025-07: an agent deleted a production database during a code freeze.",
    stops=[
        "gcloud projects delete p",
        "gcloud compute instances delete x -q",
        "az group delete -n x --yes",
        "az group delete -n fw --yes",
        "gcloud compute instances delete fw prod-db",
        "gcloud tag delete x",
        "doctl compute droplet delete 3",
        "openstack server delete x",
        "gsutil rm -r gs://b",
        "heroku apps:destroy x",
        "fly apps destroy x",
        "firebase firestore:delete --all-collections",
        "railway down",
        "bq rm -r d",
        "vercel rm x",
        "hcloud server delete x",
        "gsutil rsync -d -r empty gs://b",
        "doppler secrets delete KEY -y",
        "op item delete db",
        "stripe customers delete cus_1",
        "databricks fs rm -r dbfs:/x",
        "airflow dags delete x -y",
        "ibmcloud resource service-instance-delete x",
        "s5cmd rm 's3://b/*'",
    ],
    passes=[
        "gcloud compute instances list",
        "az group list",
        "doctl auth remove",
        "gsutil ls",
        "az vm list --help",
        "az group delete --help",
        "gcloud config unset project",
        "fly status",
        "heroku logs",
        "az logout",
        "gcloud auth revoke x",
        "vercel env ls",
        "az tag delete -n x --yes",
        "doctl d fw rm database_id rule_uuid",
    ],
)
def cloud_delete(command: Command, line: PackLine) -> Objection:
    if _looks_only(command):
        return None
    words = [str(word) for word in command.operands if re.fullmatch(r"[a-z0-9:_-]+", word)][:6]
    if command.program == "az" and (words[:1] in (["bicep"], ["tag"]) or words[:2] == ["storage", "entity"]):
        return None  # a tool on this machine, a label, one row
    if command.program == "doctl" and words[1:2] == ["fw"]:
        return None  # a rule of a firewall
    if words[:1] and words[0] in (
        "auth",
        "config",
        "login",
        "logout",
        "context",
        "alias",
        "extension",
        "components",
        "plugins",
        "profile",
        "completion",
    ):
        return None
    program = command.program
    if program in ("gsutil", "s3cmd", "mc", "b2", "bq"):
        removes = {"rm", "rb", "del", "rmr", "delete", "purge", "mirror", "cancel"} - (
            {"mirror", "cancel"} if program != "mc" else {"cancel"}
        )
        if program == "gsutil" and "rsync" in words:
            return command.has("-d")
        if program == "mc" and "mirror" in words:
            return command.has("--remove")
        return any(word in removes or word.startswith("delete") for word in words[:2])
    if (program, words[:1]) in (("railway", ["down"]), ("heroku", ["pg:reset"])):
        return True
    for word in words[:5]:
        parts = re.split(r"[:]", word)
        if any(part in _DELETES or part.startswith(_DELETING) or part.endswith("-delete") for part in parts):
            return f"{program} {' '.join(words[:5])}"
    return None


_IAC = (
    "terraform",
    "tofu",
    "terragrunt",
    "pulumi",
    "cdk",
    "cdktf",
    "sam",
    "serverless",
    "sls",
    "ansible-playbook",
    "ansible",
    "vagrant",
    "packer",
    "nomad",
    "consul",
    "vault",
    "salt",
    "kustomize",
    "copilot",
    "amplify",
    "sst",
    "cdklocal",
    "tflocal",
)


@cloud.rule(
    "infrastructure-destroy",
    level="destructive",
    programs=_IAC,
    why="This tears down what the code describes, data included, or forgets what exists.",
    instead="Look at the plan: `terraform plan -destroy`",
    incident="2026-02: an agent ran `terraform destroy` on production, and 2.5 years of data were gone.",
    stops=[
        "terraform destroy",
        "terraform -chdir=x destroy -auto-approve",
        "tofu destroy",
        "terraform apply -destroy",
        "pulumi destroy --yes",
        "cdk destroy",
        "terraform state rm x.y",
        "terraform workspace delete x",
        "sls remove",
        "vagrant destroy -f",
        "pulumi stack rm x",
        "vault delete secret/x",
        "consul kv delete -recurse x",
        "consul kv delete -recurse=true one/",
        "nomad job stop -purge x",
        "terraform force-unlock 1",
        "pulumi state delete urn:x",
        "ansible all -b -m reboot",
        "ansible all -b -m file -a 'path=/data state=absent'",
        "terraform apply -auto-approve -replace=aws_db_instance.x",
    ],
    passes=[
        "terraform plan -destroy",
        "terraform plan",
        "terraform init",
        "terraform state list",
        "pulumi preview",
        "cdk diff",
        "terraform apply",
        "vagrant halt",
        "consul kv delete one/key",
        "terraform destroy -help",
        "vault read x",
    ],
)
def infrastructure_destroy(command: Command, line: PackLine) -> Objection:
    words = [str(word) for word in command.args if word[:1] != "-"]
    if _looks_only(command) or {"-help", "-h"} & set(command.args):
        return None
    first = words[0] if words else ""
    if first == "run-all" or (first in ("run", "stack") and command.program == "terragrunt"):
        words = words[1:]
        first = words[0] if words else ""
    if first == "destroy" or (first == "apply" and command.has("-destroy", "--destroy")):
        return True
    replaces = any(re.match(r"--?replace\b", word) for word in command.args)
    if first == "apply" and replaces and command.has("-auto-approve", "--auto-approve"):
        return "it replaces what exists"
    two = " ".join(words[:2])
    if command.program == "ansible":
        text = " ".join(words)
        return bool({"reboot", "ansible.builtin.reboot", "community.general.shutdown"} & set(words)) or (
            "state=absent" in text and re.search(r"\b(?:file|user)\b", text) is not None
        )
    if two in (
        "state delete",
        "state push",
        "state rm",
        "workspace delete",
        "stack rm",
        "env delete",
        "app delete",
        "job stop",
        "kv delete",
        "snapshot delete",
        "kv destroy",
        "kv metadata",
        "secrets disable",
        "auth disable",
        "operator seal",
    ):
        if (command.program, two) == ("consul", "kv delete"):
            recurses = any(re.match(r"--?recurse(?:=(?!false)|$)", word) for word in command.args)
            return recurses and two  # else it is one key
        return two != "job stop" or command.has("-purge", "--purge")
    if first in ("force-unlock", "remove", "teardown") and command.program not in (
        "ansible-playbook",
        "ansible",
        "consul",
    ):
        return True
    if command.program in ("sam", "amplify", "vault") and first in ("delete", "seal"):
        return True
    return None


_BACKUPS = {
    "restic": ("forget", "prune", "key remove"),
    "borg": ("delete",),
    "kopia": ("snapshot delete",),
    "velero": ("delete", "backup delete", "schedule delete", "restore delete"),
    "rustic": ("forget", "prune"),
    "tmutil": ("delete", "deletelocalsnapshots"),
    "pgbackrest": ("stanza-delete",),
    "barman": ("delete",),
    "wal-g": ("delete",),
}


@cloud.rule(
    "backup-delete",
    level="destructive",
    programs=_BACKUPS,
    why="This deletes backups: what is lost later cannot be brought back.",
    instead="Look first: `restic snapshots`",
    stops=[
        "restic forget --keep-last 1 --prune",
        "restic -r repo prune",
        "borg delete repo::archive",
        "velero backup delete nightly --confirm",
        "pgbackrest --stanza=main stanza-delete",
    ],
    passes=[
        "restic snapshots",
        "restic backup src",
        "borg list repo",
        "borg prune --keep-daily=7 repo",
        "velero backup get",
    ],
)
def backup_delete(command: Command, line: PackLine) -> Objection:
    if _looks_only(command) or command.has("-n"):
        return None
    words = [str(word) for word in command.operands]
    for verb in _BACKUPS.get(command.program, ()):
        first, *rest = verb.split()
        if first in words[:3] and (not rest or rest[0] in words[:4]):
            return f"{command.program} {verb}"
    return None


@cloud.rule(
    "infrastructure-apply",
    level="strict",
    programs=_IAC,
    why="This changes what runs without anyone having seen the plan.",
    instead="Show the plan: `terraform plan -out plan.bin`",
    stops=[
        "terraform apply -auto-approve",
        "pulumi up --yes",
        "tofu apply",
        "cdk deploy --require-approval never",
        "terragrunt run-all apply",
    ],
    passes=["terraform plan -out plan.bin", "terraform validate", "pulumi preview"],
)
def infrastructure_apply(command: Command, line: PackLine) -> Objection:
    return (
        not _looks_only(command)
        and any(word in ("apply", "up", "deploy") for word in command.operands[:2])
        and command.program not in ("vagrant", "ansible-playbook", "ansible")
    )


_OPENS = re.compile(
    r"--acl[ =]public|0\.0\.0\.0/0|::/0|\ballUsers\b|\ballAuthenticatedUsers\b|AdministratorAccess|"
    r"roles/owner|create-access-key|"
    r"service-accounts keys create|role assignment create.*\bOwner\b|"
    r"update-assume-role-policy|deactivate-mfa-device|\brds\b.* --publicly-accessible|"
    r"createVolumePermission.*all|"
    r"create-volume-permission.*Group=all|BlockPublic\w+=false|\"Action\"\s*:\s*\"\*\"|"
    r"--source-address-prefix(?:es)?[ =](?:\*|Internet|0\.0\.0\.0/0).*--access[ =]Allow|"
    r"--public-access (?!.*none)|"
    r"put-bucket-policy.*\"Principal\"\s*:\s*(?:\"\*|\{\s*\"AWS\"\s*:\s*\"\*)"
)
"""What lets everyone in, or makes someone an administrator."""


@cloud.rule(
    "open-to-the-world",
    level="destructive",
    programs=["aws", "gcloud", "gsutil", "az"],
    why="This lets everyone on the internet in, or makes someone an administrator.",
    instead="Name who may: `aws iam list-attached-user-policies --user-name me`",
    risk="ASI03 Identity and Privilege Abuse",
    stops=[
        "aws s3api put-bucket-acl --bucket b --acl public-read",
        "aws ec2 authorize-security-group-ingress --group-id g --cidr 0.0.0.0/0",
        "gsutil iam ch allUsers:objectViewer gs://b",
        "aws iam attach-user-policy --policy-arn arn:aws:iam::aws:policy/AdministratorAccess --user-name me",
        "gcloud projects add-iam-policy-binding p --member=allUsers --role=roles/viewer",
        "aws iam create-access-key --user-name x",
        "gcloud iam service-accounts keys create k.json --iam-account sa",
        "aws rds modify-db-instance --db-instance-identifier x --publicly-accessible",
        "az role assignment create --assignee x --role Owner",
    ],
    passes=[
        "aws iam list-attached-user-policies --user-name me",
        "aws s3api get-bucket-acl --bucket b",
        "aws ec2 authorize-security-group-ingress --group-id g --cidr 10.0.0.0/8",
    ],
)
def open_to_the_world(command: Command, line: PackLine) -> Objection:
    if _looks_only(command):
        return None
    text = " ".join(map(str, command.args))
    return bool(_OPENS.search(text)) and not re.search(r"\b(describe|get|list|revoke|remove|delete)[-\w]*", text)
