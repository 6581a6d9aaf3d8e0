"""The machine: disks, power, users, services, logs, and programs that use it up."""

from __future__ import annotations

import re
from datetime import date

from ..shell import Command
from ..shell.words import is_number, unknown_of
from .lines import PackLine
from .rules import Objection, Pack

system = Pack("system", "Keeps disks, power, users, services and logs of the machine as they are.")
MISUSE = "ASI02 Tool Misuse and Exploitation"
_PRIVILEGE = "ASI03 Identity and Privilege Abuse"


def looks_only(command: Command) -> bool:
    return command.has("--help", "--version", "--dry-run", "--usage", "--test", "--no-act")


@system.rule(
    "power",
    level="destructive",
    programs=["shutdown", "reboot", "poweroff", "halt", "init", "telinit", "systemctl", "pmset", "kexec"],
    why="This turns the machine off or starts it anew, with all that runs on it.",
    instead="Tell the user that a restart is needed; to end your own program: `kill %1`",
    risk=MISUSE,
    stops=[
        "shutdown -h now",
        "reboot",
        "sudo poweroff",
        "systemctl reboot",
        "init 0",
        "halt -f",
        "shutdown",
    ],
    passes=[
        "kill %1",
        "systemctl suspend",
        "systemctl halt --when=cancel",
        "systemctl isolate graphical.target",
        "shutdown -c",
        "systemctl status x",
        "reboot --help",
        "last reboot",
        "init --version",
        "shutdown --help",
    ],
)
def power(command: Command, line: PackLine) -> Objection:
    program, words = command.program, command.operands
    if command.has("--help", "--version", "--show", "-w", "--wtmp-only") or {"cancel", "--when=cancel"} & set(
        command.args
    ):
        return None
    if program == "systemctl":
        ends = ("reboot", "poweroff", "halt", "kexec", "emergency", "rescue", "soft-reboot")
        return words[:1] and (
            words[0] in ends
            or (words[0] in ("isolate", "start") and any(str(word).partition(".")[0] in ends for word in words[1:]))
        )
    if program in ("init", "telinit"):
        return words[:1] and words[0] in ("0", "1", "6", "s", "S")
    if program == "pmset":
        return words[:1] and words[0] in ("restart", "shutdown")
    if program == "kexec":
        return command.has("-e", "--exec")
    return program != "shutdown" or not command.has("-c")


_SETS_EDITOR = re.compile(
    r"\b(?:SUDO_EDITOR|EDITOR|VISUAL)=(?!['\"]?(?:/usr/bin/)?(?:vim?|nvim|nano|emacs|editor|code)\b['\"]?\s)"
)


@system.rule(
    "users",
    level="destructive",
    programs=[
        "userdel",
        "deluser",
        "groupdel",
        "usermod",
        "passwd",
        "chpasswd",
        "useradd",
        "adduser",
        "visudo",
        "gpasswd",
        "vipw",
        "dscl",
        "net",
        "chage",
    ],
    why="This changes who may use the machine.",
    instead="Ask the user to do it; to see who there is: `getent passwd`",
    risk=_PRIVILEGE,
    stops=[
        "userdel -r bob",
        "useradd -o -u 0 x",
        "usermod -aG sudo me",
        "passwd root",
        "deluser bob",
        "echo x:y | chpasswd",
        "gpasswd -a me docker",
        "EDITOR='tee -a' visudo",
        "chage -E 0 bob",
        "chage -E 2020-01-01 bob",
        "chage --expiredate=18000 bob",
    ],
    passes=[
        "getent passwd",
        "passwd -S me",
        "visudo -c",
        "useradd --help",
        "groups",
        "usermod --help",
        "chage -l me",
        "chage -E 2040-01-31 me",
        "chage -E -1 me",
    ],
)
def users(command: Command, line: PackLine) -> Objection:
    program, words = command.program, command.operands
    if command.has("--help", "--version", "--status", "-S"):
        return None
    if program in ("visudo", "vipw"):
        return _SETS_EDITOR.search(line.text) is not None and not command.has("-c", "--check", "-V", "-h")
    if program == "deluser" and len(words) == 2:
        return None  # it takes a user from a group
    if program in ("userdel", "deluser", "groupdel", "chpasswd"):
        return True
    if program in ("usermod", "gpasswd"):
        strong = {"sudo", "wheel", "root", "docker", "admin", "adm", "lxd", "disk", "shadow"}
        return command.has("-o", "-p", "--password", "-u", "--uid") or any(
            strong & set(re.split("[,]", str(word))) for word in words
        )
    if program in ("useradd", "adduser"):
        return command.has("-o", "--non-unique") or "0" in words or "sudo" in words
    if program == "passwd":
        return bool(command.args) or command.reads is not None or command.stdin is not None or bool(command.via)
    if program == "chage":
        ends = re.search(r"(?:-E|--expiredate)[ =]?(\d[\d-]*)", " ".join(map(str, command.args)))
        return ends and _is_past(ends[1]) and "the account ends at once"
    if program == "dscl":
        return any(word in ("-delete", "-create", "-passwd", "-append") for word in command.args)
    return (
        program == "net"
        and words[:1]
        and words[0] in ("user", "localgroup")
        and any(word.lower() in ("/add", "/delete") for word in command.args)
    )


def _is_past(day: str) -> bool:
    """Is a day past: `2020-01-31`, or a number of days since 1970?"""
    if is_number(day):
        return int(day[:9]) <= (date.today() - date(1970, 1, 1)).days
    return day <= date.today().isoformat()


_GUARDS = re.compile(
    r"(?:ufw|firewalld|iptables|nftables|apparmor|auditd|rsyslog|syslog|systemd-journald|fail2ban|clamav\S*|falcon-sensor|crowdstrike\S*|"
    r"osqueryd|wazuh\S*|sshd?|selinux|snort|suricata|falco|docker|containerd|cron|crond|dbus|NetworkManager|systemd-networkd|networking)(?:\.service)?"
)


@system.rule(
    "protection-off",
    level="destructive",
    programs=[
        "ufw",
        "iptables",
        "ip6tables",
        "nft",
        "setenforce",
        "firewall-cmd",
        "systemctl",
        "service",
        "auditctl",
        "aa-teardown",
        "spctl",
        "csrutil",
        "pfctl",
        "aa-disable",
        "aa-complain",
        "netsh",
        "swapoff",
        "sysctl",
        "modprobe",
        "rmmod",
        "insmod",
    ],
    why="This turns off a part of the machine that protects it or that others depend on.",
    instead="Look at it, and ask: `systemctl status ufw`",
    risk=_PRIVILEGE,
    stops=[
        "ufw disable",
        "iptables -F",
        "setenforce 0",
        "systemctl stop auditd",
        "systemctl disable --now ufw",
        "service rsyslog stop",
        "nft flush ruleset",
        "systemctl mask sshd",
        "auditctl -e 0",
        "spctl --master-disable",
    ],
    passes=[
        "systemctl status ufw",
        "iptables -L",
        "ufw status",
        "systemctl restart nginx",
        "systemctl stop myapp",
        "getenforce",
        "sysctl -a",
        "nft list ruleset",
    ],
)
def protection_off(command: Command, line: PackLine) -> Objection:
    program, words = command.program, command.operands
    if looks_only(command):
        return None
    match program:
        case "ufw":
            return words[:1] and words[0] in ("disable", "reset")
        case "iptables" | "ip6tables":
            return command.has("-F", "--flush", "-X", "-Z") or (
                command.has("-P", "--policy") and "ACCEPT" in command.args
            )
        case "nft":
            return words[:1] and words[0] in ("flush", "delete", "destroy")
        case "setenforce":
            return words[:1] and str(words[0]).lower() in ("0", "permissive")
        case "systemctl":
            return (
                len(words) > 1
                and words[0] in ("stop", "disable", "mask", "kill")
                and any(_GUARDS.fullmatch(str(word)) for word in words[1:])
            )
        case "service":
            return len(words) > 1 and words[1] == "stop" and bool(_GUARDS.fullmatch(str(words[0])))
        case "auditctl":
            return command.has("-D") or re.search(r"-e\s*0", " ".join(command.args)) is not None
        case "spctl":
            return command.has("--master-disable", "--global-disable")
        case "csrutil":
            return words[:1] == ["disable"]
        case "pfctl":
            return command.has("-d", "-F")
        case "aa-teardown" | "aa-disable":
            return not command.has("-h")
        case "netsh":
            return "off" in words
        case "firewall-cmd":
            return command.has("--panic-off", "--complete-reload") or any(
                word.startswith("--set-default-zone=trusted") for word in command.args
            )
    return None


@system.rule(
    "wipe-traces",
    level="destructive",
    programs=[
        "history",
        "journalctl",
        "truncate",
        "rm",
        "shred",
        "unset",
        "wevtutil",
        "dmesg",
        "logrotate",
        "export",
        "tee",
        "ln",
        "cp",
        "cat",
        ":",
        "true",
        "echo",
        "",
    ],
    why="This deletes the traces of what was done.",
    instead="Leave them; to see them: `journalctl -n 50`",
    risk="ASI10 Rogue Agents",
    stops=[
        "history -c",
        "rm ~/.bash_history",
        "journalctl --vacuum-time=1s",
        "> ~/.bash_history",
        "rm -rf /var/log",
        "truncate -s 0 /var/log/auth.log",
        "unset HISTFILE",
        "export HISTFILE=/dev/null",
        "echo > /var/log/syslog",
        "wevtutil cl Security",
        "ln -sf /dev/null ~/.bash_history",
    ],
    passes=[
        "history",
        "journalctl -n 50",
        "rm build.log",
        "history -w",
        "tail /var/log/syslog",
        "cat ~/x > y",
        "export HISTSIZE=1000",
        "dmesg",
    ],
)
def wipe_traces(command: Command, line: PackLine) -> Objection:
    program = command.program
    trace = re.compile(r"_history$|/var/log/|^/var/log$|/\.local/share/fish/fish_history$|/audit\.log$")
    if program == "history":
        return command.has("-c") or (command.has("-d") and len(command.args) > 1)
    if program == "dmesg":
        return command.has("-C", "-c", "--clear", "--read-clear")
    if program == "journalctl":
        kept = " ".join(map(str, command.args))
        return "--vacuum" in kept and not re.search(r"--vacuum-time[ =]\d+(?:d|days?|w|weeks?|months?|y)", kept)
    if program == "unset":
        return "HISTFILE" in command.operands
    if program == "wevtutil":
        return command.operands[:1] and command.operands[0] in ("cl", "clear-log")
    if command.assignments.get("HISTFILE") == "/dev/null" or any(
        word in ("HISTFILE=/dev/null", "HISTFILE=", "HISTSIZE=0", "HISTFILESIZE=0") for word in command.args
    ):
        return True
    if program in ("rm", "shred", "truncate", "tee") and any(
        trace.search(line.path(command, word)) for word in command.operands
    ):
        return True
    if program in ("ln", "cp") and command.operands[:1] == ["/dev/null"]:
        return any(trace.search(line.path(command, word)) for word in command.operands[1:])
    overwrites = any(
        one.writes and ">>" not in one.operator and trace.search(line.path(command, one.target))
        for one in command.redirects
    )
    return overwrites and program in (":", "true", "echo", "cat", "")


_FUNCTION = re.compile(r"([\w:.-]{1,80})\s*\(\)\s*\{(.{0,4000}?)\}", re.DOTALL)
_ENDLESS = re.compile(
    r"(?:while\s+(?:true|:|/bin/true|\[\[?\s+(?:1|true)\s+\]\]?|\(\(\s*1\s*\)\))|"
    r"until\s+(?:/usr/bin/|/bin/)?false|for\s*\(\(\s*[^;]*;\s*;[^)]*\)\))\s*;?\s*do\b(.*?)\bdone\b",
    re.DOTALL,
)


@system.line_rule(
    "fork-bomb",
    level="disaster",
    why="This starts programs without end until nothing else runs.",
    instead="Bound it: `for i in 1 2 3; do work; done`",
    risk=MISUSE,
    stops=[
        ":(){ :|:& };:",
        "bomb(){ bomb|bomb& }; bomb",
        "b(){ b& b& }; b",
        "while true; do work & done",
        "until false; do work & done",
        "for ((;;)); do work & done",
        "while [ 1 ]; do work & done",
        "one(){ two & }; two(){ one; }; one",
        "one(){ two; }; two(){ three | cat; }; three(){ one; }; one",
    ],
    passes=[
        "f(){ g | cat; }; g(){ ls; }; f",
        "f(){ test -e x && g; }; g(){ ls; }; f",
        "for i in 1 2 3; do work; done",
        "for i in 1 2 3; do work & done; wait",
        "while true; do sleep 1; done",
        "f(){ echo; }; f",
        "while true; do work & wait; done",
        "while read x; do work $x & done < list",
    ],
)
def fork_bomb(line: PackLine) -> Objection:
    text = line.text
    if "&" not in text and "|" not in text:
        return None
    bodies = dict(_FUNCTION.findall(text, 0, 20_000)[:50]) if re.search(r"\(\)\s*\{", text) else {}
    for name in bodies:
        calls, seen, forks = [name], set[str](), False
        while calls:
            body = bodies[calls.pop()]
            forks = forks or bool(re.search(r"[|&](?![&|])(?<![|&>]{2})", body))
            callees = {other for other in bodies if re.search(rf"(?<![\w.-]){re.escape(other)}(?![\w.-])", body)}
            calls += callees - seen
            seen |= callees
        if name in seen and forks:
            return f"{name} starts itself"
    for found in _ENDLESS.finditer(text) if "done" in text else ():
        body = found[1]
        last = body.rstrip().rstrip(";").rstrip()
        if (
            re.search(r"(?<![&>])&(?![&>])", body)
            and not re.search(r"&\s*;?\s*wait\s*;?\s*$", last)
            and not re.search(r"\b(read|sleep)\b", body)
        ):
            return "a loop without end starts programs in the background"
    return None


@system.rule(
    "kill-everything",
    level="disaster",
    programs=["kill", "killall", "pkill", "killall5", "taskkill"],
    why="This ends every program of the user or of the machine.",
    instead="End what you started: `kill %1`",
    risk=MISUSE,
    stops=[
        "kill -9 -1",
        "kill -1 -1",
        "killall -u root",
        "pkill -u me",
        "kill -KILL 1",
        "killall5",
        "pkill .",
        "pkill -9 -f .*",
    ],
    passes=[
        "kill %1",
        "kill 1234",
        "pkill -f myserver",
        "killall node",
        "kill -0 1",
        "kill -l",
        "pkill -u me myserver",
        "kill -1 4321",
        "kill -HUP 4321",
    ],
)
def kill_everything(command: Command, line: PackLine) -> Objection:
    program, args = command.program, command.args
    if program == "killall5":
        return True
    if program == "kill":
        if {"-l", "-L", "--list", "--table", "-0"} & set(args):
            return None
        targets = args[2:] if args[:1] in (["-s"], ["-n"]) else args[1:] if args[:1] and args[0][:1] == "-" else args
        return any(word in ("-1", "1") for word in targets)
    if program == "taskkill":
        return any(word == "*" for word in args)
    operands = [word for word in command.operands if not unknown_of(word) or unknown_of(word) == ("*",)]
    if any(word in (".", ".*", "*", "^") for word in operands):
        return True
    return command.has("--euid", "--uid", "-u", "-U", "--user") and not operands


_CHANGES_UNITS = frozenset({
    "stop", "disable", "mask", "kill", "suspend", "hibernate", "hybrid-sleep", "suspend-then-hibernate", "exit",
    "isolate", "enable", "reenable", "preset", "set-default", "add-wants", "add-requires", "set-environment",
    "unset-environment",
})  # fmt: skip


@system.rule(
    "set-clock-or-name",
    level="strict",
    programs=[
        "date",
        "timedatectl",
        "hostnamectl",
        "hostname",
        "systemctl",
        "service",
        "crontab",
        "launchctl",
        "sysctl",
        "update-rc.d",
        "chkconfig",
        "rc-update",
    ],
    why="This changes the machine for everything that runs on it.",
    instead="Ask; to look: `timedatectl status`",
    risk=MISUSE,
    stops=[
        "systemctl suspend",
        "systemctl enable nginx",
        "timedatectl set-time 12:00",
        "hostnamectl set-hostname x",
        "systemctl stop nginx",
        "sysctl -w net.ipv4.ip_forward=1",
        "systemctl disable x",
        "service nginx stop",
    ],
    passes=["timedatectl status", "date", "hostname", "systemctl status nginx", "sysctl net.ipv4.ip_forward"],
)
def set_clock_or_name(command: Command, line: PackLine) -> Objection:
    program, words = command.program, command.operands
    match program:
        case "date":
            return command.has("-s", "--set")
        case "timedatectl" | "hostnamectl":
            return words[:1] and words[0].startswith("set-")
        case "systemctl":
            return words[:1] and words[0] in _CHANGES_UNITS
        case "service":
            return words[1:2] == ["stop"]
        case "update-rc.d" | "chkconfig" | "rc-update":
            return bool(words) and not command.has("--list", "--help")
        case "sysctl":
            return command.has("-w", "--write") or any("=" in word for word in words)
    return None


@system.rule(
    "administrator",
    level="strict",
    why="This runs as the administrator of the machine.",
    instead="Run it as yourself: `make install PREFIX=build`",
    risk=_PRIVILEGE,
    stops=["sudo apt install x", "doas rm x", "su -c ls"],
    passes=["make install PREFIX=build", "apt list"],
)
def administrator(command: Command, line: PackLine) -> Objection:
    return command.program in ("sudo", "doas", "pkexec", "su", "runas", "gsudo")


_ESSENTIAL = re.compile(
    r"(?:libc6|libc-bin|glibc|musl|systemd|init|sudo|bash|dash|coreutils|util-linux|apt|dpkg|rpm|dnf|yum|pacman|python3?|"
    r"python3-minimal|perl-base|openssh-server|openssl|login|passwd|base-files|grub\S*|linux-(?:image|generic|base)\S*|kernel\S*|"
    r"network-manager|netplan\.io|ca-certificates|\S*\*\S*)"
)
_REMOVES = {
    "apt": ("remove", "purge", "autopurge"),
    "apt-get": ("remove", "purge", "autopurge"),
    "aptitude": ("remove", "purge"),
    "dnf": ("remove", "erase"),
    "yum": ("remove", "erase"),
    "microdnf": ("remove",),
    "zypper": ("remove", "rm"),
    "apk": ("del",),
    "brew": ("uninstall", "remove", "rm"),
    "snap": ("remove",),
    "flatpak": ("uninstall", "remove"),
    "pkg": ("delete", "remove"),
}


def _removed_packages(command: Command) -> list[str] | None:
    """The packages that a package manager of the system removes. None if it removes none."""
    program, words = command.program, [str(word) for word in command.operands]
    if looks_only(command) or command.has("--simulate", "--assumeno", "--print"):
        return None
    if program in ("apt", "apt-get", "aptitude") and any(
        re.fullmatch(r"-[a-z]*s[a-z]*", word) for word in command.args
    ):
        return None
    if program in ("dpkg", "rpm", "pacman"):
        flags = ("-r", "-P", "--remove", "--purge") if program == "dpkg" else ("-e", "--erase")
        removes = (
            any(re.fullmatch(r"-R[a-z]*|--remove", word) for word in command.args)
            if program == "pacman"
            else command.has(*flags)
        )
        return words if removes else None
    return words[1:] if words[:1] and words[0] in _REMOVES.get(program, ()) else None


@system.rule(
    "remove-essential",
    level="destructive",
    programs=(*_REMOVES, "dpkg", "rpm", "pacman"),
    why="The system needs this package, or what depends on it is removed, too.",
    instead="See what would go: `apt-get remove -s libc6`",
    risk=MISUSE,
    stops=[
        "apt-get purge -y libc6",
        "apt remove -y python3",
        "dnf remove -y systemd",
        "pacman -Rns --noconfirm glibc",
        "rpm -e --nodeps glibc",
        "dpkg --purge --force-all sudo",
        "apt-get remove --purge -y 'postgresql*'",
    ],
    passes=[
        "apt-get remove -s libc6",
        "apt-get remove -y nodejs-doc",
        "apt install python3",
        "rpm -qa",
        "brew uninstall node",
    ],
)
def remove_essential(command: Command, line: PackLine) -> Objection:
    packages = _removed_packages(command)
    if packages is None:
        return None
    if any(word.startswith(("--force-", "--nodeps", "--allow-remove-essential")) for word in command.args):
        return "it removes whatever depends on it"
    return next(
        (f"{name} is a part of the system" for name in packages if _ESSENTIAL.fullmatch(name.partition(":")[0])), None
    )


@system.rule(
    "remove-packages",
    level="strict",
    programs=(*_REMOVES, "dpkg", "rpm", "pacman"),
    why="This removes programs from the machine.",
    instead="See what would go: `apt-get remove -s nginx`",
    risk=MISUSE,
    stops=["apt-get remove -y nginx", "brew uninstall node", "pacman -R vim"],
    passes=["apt-get remove -s nginx", "apt-get install nginx", "pacman -S vim"],
)
def remove_packages(command: Command, line: PackLine) -> Objection:
    return bool(_removed_packages(command))
