"""Containers and clusters: volumes, images, namespaces, and ways out of a container."""

from __future__ import annotations

import re

from ..shell import Command
from .flows import feeders
from .lines import PackLine
from .rules import Objection, Pack

containers = Pack("containers", "Keeps volumes, images and what runs in clusters, and the walls of containers.")
_DOCKER = ("docker", "podman", "nerdctl", "docker-compose", "podman-compose", "buildah", "finch", "lima", "colima")
_KUBE = ("kubectl", "oc", "k", "microk8s.kubectl", "k3s", "kubectl-ns")


def _looks_only(command: Command) -> bool:
    return command.has("--help", "--version") or any(
        word.startswith("--dry-run") and not word.endswith("=none") for word in command.args
    )


def _compose(command: Command) -> list[str]:
    words = [str(word) for word in command.operands]
    rest = words[1:] if words[:1] == ["compose"] else words if command.program.endswith("-compose") else []
    return [
        word
        for word in rest
        if word in ("up", "down", "rm", "stop", "kill", "run", "exec", "build", "pull", "logs", "ps")
    ]


@containers.rule(
    "prune",
    level="destructive",
    programs=_DOCKER,
    why="This deletes images, volumes or networks that nothing uses just now; volumes hold data.",
    instead="Look first: `docker system df`",
    stops=[
        "docker system prune -af --volumes",
        "docker volume prune -f",
        "podman system reset -f",
        "docker container prune",
    ],
    passes=["docker system df", "docker images", "docker ps -a", "docker image prune --help", "docker volume ls"],
)
def prune(command: Command, line: PackLine) -> Objection:
    words = command.operands[:2]
    if _looks_only(command) or len(words) < 2:
        return None
    if words[0] in ("buildx", "builder"):
        return False
    if words[0] in ("image", "network"):  # what nothing uses: it can be built again
        return False
    return words[1] == "prune" or words == ["system", "reset"]


@containers.rule(
    "prune-cache",
    level="strict",
    programs=_DOCKER,
    why="This deletes images, networks or build caches that nothing uses just now. They take long to make again.",
    instead="Look first: `docker system df`",
    stops=["docker image prune -a", "docker buildx prune", "docker network prune", "docker builder prune -f"],
    passes=["docker system df", "docker image ls", "docker image prune --help"],
)
def prune_cache(command: Command, line: PackLine) -> Objection:
    words = command.operands[:2]
    return not _looks_only(command) and words[1:] == ["prune"] and words[0] in ("buildx", "builder", "image", "network")


@containers.rule(
    "delete-volumes",
    level="destructive",
    programs=_DOCKER,
    why="This deletes volumes, and the data in them.",
    instead="Stop it, and keep the volumes: `docker compose down`",
    stops=[
        "docker volume rm x",
        "docker compose down -v",
        "docker-compose down --volumes",
        "docker rm -fv x",
        "docker compose rm -sv",
        "docker compose -f c.yml down --rmi all -v",
    ],
    passes=[
        "docker compose down",
        "docker rm x",
        "docker volume inspect x",
        "docker run -v /srv/x:/x image",
        "docker run --rm image",
    ],
)
def delete_volumes(command: Command, line: PackLine) -> Objection:
    if _looks_only(command):
        return None
    words = command.operands
    if words[:2] in (["volume", "rm"], ["volume", "remove"]):
        return True
    if words[:2] == ["pod", "rm"]:
        return command.has("--force", "--all", "-a")
    if _compose(command)[:1] in (["down"], ["rm"]):
        return any(
            word == "--volumes" or re.fullmatch(r"-[a-z]*v[a-z]*", word)
            for word in _after(command, _compose(command)[0])
        )
    return words[:1] == ["rm"] and command.has("--volumes")


def _after(command: Command, word: str) -> list[str]:
    args = list(map(str, command.args))
    return args[args.index(word) + 1 :] if word in args else args


@containers.rule(
    "delete-services",
    level="destructive",
    programs=_DOCKER,
    why="This takes down services that run on a swarm, for everyone who uses them.",
    instead="Look first: `docker service ls`",
    stops=["docker stack rm prod", "docker service rm web", "docker swarm leave --force", "docker service scale web=0"],
    passes=["docker service ls", "docker stack ps prod", "docker swarm leave", "docker service scale web=3"],
)
def delete_services(command: Command, line: PackLine) -> Objection:
    words = [str(word) for word in command.operands]
    if _looks_only(command):
        return None
    if words[:2] == ["swarm", "leave"]:
        return command.has("--force")
    if words[:2] == ["service", "scale"]:
        return any(word.endswith("=0") for word in words[2:])
    return words[:1] in (["stack"], ["service"]) and words[1:2] in (["rm"], ["remove"], ["down"]) and len(words) > 2


@containers.rule(
    "delete-all",
    level="destructive",
    programs=_DOCKER,
    why="This deletes every container or image, those of others included.",
    instead="Name yours: `docker rm my-container`",
    stops=[
        "docker rm -f $(docker ps -aq)",
        "docker rmi -f $(docker images -q)",
        "docker kill $(docker ps -q)",
        "docker ps -aq | xargs docker rm -f",
        "docker stop `docker ps -q`",
        "podman rm -fa",
        "docker container rm -f $(docker ps -aq)",
    ],
    passes=[
        "docker rm my-container",
        "docker rmi image:tag",
        "docker ps -q",
        "docker stop web",
        "docker rm -f $NAME",
        "docker rm $(docker ps -aq -f status=exited)",
    ],
)
def delete_all(command: Command, line: PackLine) -> Objection:
    words = command.operands[1:] if command.operands[:1] in (["container"], ["image"]) else command.operands
    if words[:1] not in (["rm"], ["rmi"], ["kill"], ["stop"]) or _looks_only(command):
        return None
    if command.program == "podman" and words[0] in ("rm", "rmi"):
        letters = "".join(word[1:] for word in command.args if re.fullmatch(r"-[a-z]+", word))
        if "f" in letters and "a" in letters:
            return "all of them"
    lists = [one for one in feeders(command, line) if one.program in _DOCKER and not one.has("--filter", "-f")]
    return any(
        one.has("-q", "-aq", "--quiet") or any(re.fullmatch(r"-[a-z]*q[a-z]*", word) for word in one.args)
        for one in lists
    )


@containers.rule(
    "delete-machine",
    level="destructive",
    programs=[
        "virsh",
        "lxc",
        "incus",
        "multipass",
        "qm",
        "pct",
        "vboxmanage",
        "VBoxManage",
        "wsl",
        "wsl.exe",
        "limactl",
    ],
    why="This deletes a virtual machine with its disks.",
    instead="Stop it, and keep its disks: `virsh shutdown vm`",
    stops=[
        "virsh undefine vm --remove-all-storage",
        "lxc delete --force x",
        "multipass delete --all --purge",
        "qm destroy 100",
        "wsl --unregister Ubuntu",
        "VBoxManage unregistervm x --delete",
    ],
    passes=["virsh shutdown vm", "lxc list", "multipass list", "wsl --list"],
)
def delete_machine(command: Command, line: PackLine) -> Objection:
    words = [str(word) for word in command.operands]
    if _looks_only(command):
        return None
    match command.program:
        case "virsh":
            return command.has("--remove-all-storage", "--storage") and "undefine" in words
        case "lxc" | "incus" | "limactl":
            return words[:1] == ["delete"] and command.has("--force", "-f")
        case "multipass":
            return words[:1] == ["delete"] and command.has("--purge", "-p")
        case "qm" | "pct":
            return words[:1] == ["destroy"]
        case "vboxmanage" | "VBoxManage":
            return words[:1] == ["unregistervm"] and "--delete" in command.args
    return "--unregister" in command.args


@containers.rule(
    "escape",
    level="destructive",
    programs=("docker", "podman", "nerdctl", "docker-compose", "kubectl", "nsenter", "chroot", "runc", "ctr"),
    why="This container can do whatever it wants with the machine.",
    instead="Give it what it needs only: `docker run -v ./data:/data image`",
    risk="ASI03 Identity and Privilege Abuse",
    stops=[
        "docker run --privileged image",
        "kubectl run x --image=y --privileged",
        "docker run -v /:/host image",
        "docker run -v /var/run/docker.sock:/var/run/docker.sock image",
        "docker run --pid=host image",
        "docker run --cap-add=SYS_ADMIN image",
        "docker run --mount type=bind,source=/,target=/x image",
        "nsenter -t 1 -m -u sh",
        "docker run -v /etc:/etc image",
        "docker run --device /dev/sda image",
        "kubectl create clusterrolebinding x --clusterrole=cluster-admin --user=me",
    ],
    passes=[
        "docker run -v ./data:/data image",
        "docker run image",
        "docker exec x ls",
        "docker run -v $PWD:/src image",
        "docker run -p 80:80 image",
        "docker run -v /srv/x:/x image",
    ],
)
def escape(command: Command, line: PackLine) -> Objection:
    if command.program == "kubectl":
        text = " ".join(map(str, command.args))
        if command.runs("kubectl create") and "clusterrolebinding" in command.operands[1:2]:
            return "cluster-admin" in text
        return (command.runs("kubectl run") and command.has("--privileged")) or (
            re.search(r'--overrides.*(?:"privileged"\s*:\s*true|"host(?:PID|Network|IPC)"\s*:\s*true|"hostPath")', text)
            is not None
        )
    if command.program == "nsenter":
        return re.search(r"(-t|--target)[ =]?1\b", " ".join(command.args)) is not None
    if command.program not in ("docker", "podman", "nerdctl", "docker-compose") or not {"run", "create", "exec"} & set(
        command.operands[:3]
    ):
        return None
    words = list(map(str, command.args))
    for before, word in zip(["", *words], words, strict=False):
        if word in ("--privileged", "--privileged=true") or re.match(r"--(pid|ipc|uts|userns|cgroupns)=host", word):
            return word
        if re.match(r"(--cap-add=?)?(ALL|SYS_ADMIN|SYS_PTRACE|SYS_MODULE|CAP_SYS_ADMIN)$", word) and (
            "cap-add" in word or before == "--cap-add"
        ):
            return word
        if (word.startswith("--security-opt") and "unconfined" in word) or (
            before == "--security-opt" and "unconfined" in word
        ):
            return word
        mount = (
            word.partition("=")[2]
            if word.startswith(("--volume=", "-v="))
            else word[2:]
            if word.startswith("-v/")
            else word
            if before in ("-v", "--volume", "--device")
            else ""
        )
        mount = (
            mount or (re.search(r"(?:source|src)=([^,]+)", word) or ["", ""])[1]
            if before == "--mount" or word.startswith("--mount=")
            else mount
        )
        source = mount.partition(":")[0]
        if source and (
            source in ("/", "/etc", "/root", "/proc", "/sys", "/boot", "/usr", "/bin", "/var", "/home", "/dev")
            or "docker.sock" in source
            or re.match(r"/dev/(sd|nvme|mem|disk)", source)
        ):
            return f"{source} of the machine is in it"
    return None


_KUBE_WHOLE = frozenset(
    [
        "ns",
        "namespace",
        "namespaces",
        "node",
        "nodes",
        "no",
        "pv",
        "persistentvolume",
        "persistentvolumes",
        "pvc",
        "persistentvolumeclaim",
        "persistentvolumeclaims",
        "crd",
        "crds",
        "customresourcedefinition",
        "customresourcedefinitions",
        "clusterrole",
        "clusterroles",
        "all",
    ]
)

_UNINSTALLERS = ("k3s-uninstall.sh", "k3s-agent-uninstall.sh", "rke2-uninstall.sh")


@containers.rule(
    "delete-namespace",
    level="disaster",
    programs=(*_KUBE, "helm", "kubens", "kind", "minikube", "k3d", "eksctl", "kubeadm", "rancher", *_UNINSTALLERS),
    why="This deletes all that runs in it, and its data.",
    instead="Delete what you made: `kubectl delete pod mine`",
    stops=[
        "kubectl delete ns prod",
        "kubectl delete namespace/prod",
        "kubectl delete all --all",
        "kubectl delete pods --all -A",
        "kubectl delete pvc data",
        "kubectl delete node n1",
        "kubectl -n x delete pv y",
        "kubectl delete crd x",
        "oc delete project x",
        "kubeadm reset -f",
        "k3s-uninstall.sh",
    ],
    passes=[
        "kubectl delete pod mine",
        "kubectl get ns",
        "kubectl delete ns prod --dry-run=client",
        "kubectl describe node n1",
        "kubectl delete --help",
        "kubectl delete jobs --all",
        "helm list",
    ],
)
def delete_namespace(command: Command, line: PackLine) -> Objection:
    words = [str(word) for word in command.operands]
    if _looks_only(command):
        return None
    if command.program == "kubeadm":
        return words[:1] == ["reset"]
    if command.program.startswith(("k3s-", "rke2-")):
        return "it takes the cluster from this machine"
    if command.program not in _KUBE or words[:1] != ["delete"] or len(words) < 2:
        return None
    kinds = {part.partition("/")[0].partition(".")[0].lower() for word in words[1:2] for part in word.split(",")}
    if kinds & (_KUBE_WHOLE | {"project"}) and (len(words) > 2 or "/" in words[1] or "--all" in command.args):
        return f"{command.program} {' '.join(words[:3])}"
    return bool({"--all-namespaces", "-A"} & set(command.args)) and "--all" in command.args


@containers.rule(
    "delete-in-cluster",
    level="destructive",
    programs=(*_KUBE, "helm", "kind", "minikube", "k3d", "argocd", "flux", "istioctl", "helmfile"),
    why="This deletes or stops something that runs in a cluster.",
    instead="Look first: `kubectl get pods`",
    stops=[
        "kubectl delete deployment web",
        "kubectl delete -f app.yaml",
        "kubectl drain n1 --force",
        "oc adm drain n1 --force",
        "kubectl scale deploy/web --replicas=0",
        "kubectl replace --force -f x.yaml",
        "helm uninstall web",
        "minikube delete --all",
        "argocd app delete x",
        "kubectl delete secret x",
        "helm delete x",
        "kubectl apply --prune -f k8s/ -l app=web",
    ],
    passes=[
        "kubectl get pods",
        "kubectl apply -f app.yaml",
        "kubectl scale deploy/web --replicas=3",
        "kubectl delete pod x --dry-run=server",
        "helm upgrade web ./chart",
        "kubectl logs x",
        "helm uninstall web --dry-run",
        "kubectl delete pod mine",
        "kubectl rollout restart deploy/web",
    ],
)
def delete_in_cluster(command: Command, line: PackLine) -> Objection:
    words = [str(word) for word in command.operands]
    if _looks_only(command) or not words:
        return None
    if command.program in _KUBE:
        if words[:1] == ["adm"]:
            words = words[1:]
        first = words[0] if words else ""
        if first == "delete":
            return not (
                re.fullmatch(r"pods?(/.*)?|po|jobs?(/.*)?", words[1] if len(words) > 1 else "")
                and not {"--all", "--force"} & set(command.args)
            )
        if first == "drain":
            return command.has("--force", "--delete-emptydir-data", "--disable-eviction")
        if first == "apply":
            return command.has("--prune")
        if first == "replace":
            return command.has("--force")
        return first == "scale" and str(command.options.get("--replicas") or "") == "0"
    if command.program in ("helm", "helmfile"):
        return words[0] in ("uninstall", "delete", "destroy", "del", "un")
    if command.program in ("kind", "minikube", "k3d"):  # clusters on this machine, made to be thrown away
        return "--all" in command.args or command.has("--all", "--purge")
    return "delete" in words[:3] or words[0] == "uninstall"
