"""Persistence: what makes something run again later, or lets someone in again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..shell import Command
from ..shell.outputs import input_of
from .flows import is_interpreter, written_by
from .lines import PackLine
from .rules import Objection, Pack

if TYPE_CHECKING:
    from ..lifecycle import BeforeTool

persistence = Pack("persistence", "Keeps an agent from leaving something behind that runs later, or lets someone in.")
_RISK = "ASI10 Rogue Agents"

_STARTS = re.compile(
    r"(?:^|/)\.(?:bashrc|bash_profile|bash_login|bash_logout|profile|zshrc|zshenv|zprofile|zlogin|zlogout|kshrc|cshrc|tcshrc|login|"
    r"inputrc|xinitrc|xprofile|xsession|xsessionrc|pam_environment|pythonrc|pythonstartup|npmrc|vimrc|gdbinit|lldbinit)$|"
    r"(?:^|/)\.config/(?:fish/config\.fish|fish/conf\.d/.*|autostart/.*|systemd/user/.*|environment\.d/.*|nvim/init\.(?:lua|vim))$|"
    r"^/etc/(?:profile|profile\.d/.*|bash\.bashrc|bashrc|zshrc|zsh/.*|environment|rc\.local|cron[\w.]*(?:/.*)?|anacrontab|init\.d/.*|"
    r"systemd/.*|xdg/autostart/.*|sudoers|sudoers\.d/.*|pam\.d/.*|pam\.conf|ld\.so\.preload|ld\.so\.conf(?:\.d/.*)?|passwd|group|"
    r"ssh/sshd_config(?:\.d/.*)?|hosts|resolv\.conf|nsswitch\.conf|modules-load\.d/.*|modprobe\.d/.*|udev/rules\.d/.*|apt/.*|polkit-1/.*|inittab|crypttab|fstab)$|"
    r"^/(?:usr/)?lib/systemd/.*|^/var/spool/(?:cron|at)/.*|(?:^|/)Library/(?:LaunchAgents|LaunchDaemons|StartupItems)/.*|"
    r"(?:^|/)\.ssh/(?:authorized_keys2?|config|rc|environment)$|(?:^|/)\.git/hooks/(?!.*\.sample$).*|(?:^|/)\.husky/.*|(?:^|/)\.git/config$|"
    r"(?:^|/)site-packages/(?:sitecustomize|usercustomize)\.py$|(?:^|/)(?:sitecustomize|usercustomize)\.py$|(?:^|/)[^/]+\.pth$|"
    r"(?:^|/)\.local/share/applications/.*\.desktop$"
)
_LETS_IN = re.compile(
    r"authorized_keys|/etc/sudoers|/etc/pam|ld\.so\.preload|/etc/passwd|/etc/group|sshd_config|/etc/shadow"
)


_IN_HOME = re.compile(r"(?:^|/)\.[a-z_]+$")
"""A start file that means something in a home only. A copy of it in the work tree does not run."""


def _runs_later(path: str, line: PackLine) -> bool:
    if not _STARTS.search(path) or _LETS_IN.search(path):
        return False
    absolute = line.absolute(path)
    is_copy = _IN_HOME.search(path) and line.place_of(absolute) == "inside" and os.path.dirname(absolute) != line.home
    return not is_copy


def _changed(command: Command, line: PackLine) -> Iterator[str]:
    """The files that a command writes, as absolute paths where these are known."""
    for word in written_by(command, line):
        yield line.path(command, word) or str(word)
    edits = command.program in ("ex", "ed", "vi", "vim", "nano", "emacs", "crudini", "augtool", "visudo")
    if edits or (command.program in ("sed", "perl") and command.has("--in-place", "-i")):
        for word in command.operands:
            yield line.path(command, word) or str(word)


@persistence.rule(
    "let-in",
    level="disaster",
    why="This lets someone log in, become the administrator, or load code into every program.",
    instead="Show the user what to add: `cat key.pub`",
    risk=_RISK,
    stops=[
        "echo 'ssh-rsa A' >> ~/.ssh/authorized_keys",
        "echo 'me ALL=(ALL) NOPASSWD:ALL' >> /etc/sudoers",
        "tee /etc/sudoers.d/x",
        "echo /x.so > /etc/ld.so.preload",
        "cat key.pub >> ~/.ssh/authorized_keys",
        "ssh-copy-id me@localhost",
        "sed -i 's/x/y/' /etc/ssh/sshd_config",
        "cp x /etc/pam.d/sudo",
    ],
    passes=[
        "cat key.pub",
        "cat ~/.ssh/authorized_keys",
        "ssh-keygen -l -f ~/.ssh/authorized_keys",
        "visudo -c",
        "cat /etc/sudoers.d/README",
        "cp /etc/pam.d/sudo .",
        "ssh-copy-id me@host.example",
    ],
)
def let_in(command: Command, line: PackLine) -> Objection:
    if command.program == "ssh-copy-id":  # on another machine, the user's key lets the user in
        return bool(command.operands) and all(map(line.is_allowed, command.operands))
    return next((f"{path} says who may" for path in _changed(command, line) if _LETS_IN.search(path)), None)


@persistence.rule(
    "give-capability",
    level="destructive",
    programs=["setcap"],
    why="Every user who runs this program then has the rights of the administrator.",
    instead="Show the user what it needs; to look: `getcap /usr/bin/ping`",
    risk="ASI03 Identity and Privilege Abuse",
    stops=["setcap cap_setuid+ep /usr/bin/python3", "setcap cap_sys_admin,cap_net_raw=eip x"],
    passes=["getcap /usr/bin/ping", "setcap -r x", "setcap cap_net_bind_service=+ep server"],
)
def give_capability(command: Command, line: PackLine) -> Objection:
    strong = (
        r"(?i)cap_(?:setuid|setgid|sys_admin|sys_ptrace|sys_module|sys_rawio|dac_override|dac_read_search|chown|fowner|"
        r"setfcap)|^all"
    )
    return next((str(word) for word in command.args if re.search(strong, word)), None)


@persistence.rule(
    "start-file",
    level="destructive",
    why="What stands there runs later: at each login, start, commit or hour.",
    instead="Show the user what to add: `cat bashrc.addition`",
    risk=_RISK,
    stops=[
        "echo x >> ~/.bashrc",
        "cp x.service /etc/systemd/system/",
        "tee ~/.config/autostart/x.desktop",
        "cp x .git/hooks/pre-commit",
        "echo x > ~/Library/LaunchAgents/x.plist",
        "echo '* * * * * x' > /etc/cron.d/x",
        "sed -i s/a/b/ ~/.zshrc",
        "./x completion bash >> ~/.bashrc",
        "gh completion -s bash > ~/.bashrc",
        "cp completion ~/.bashrc",
        "echo x | tee completion ~/.zshrc",
        "cat completion evil.sh >> ~/.bashrc",
        "sh completion >> ~/.bashrc",
        "strings completion bash >> ~/.bashrc",
        "gh() { echo x; }; gh completion -s bash >> ~/.bashrc",
        "gh completion -s bash >> ~/.bashrc > ~/.zshrc",
        "ln -s x ~/.config/systemd/user/x.service",
    ],
    passes=[
        "cat bashrc.addition",
        "cat ~/.bashrc",
        "grep x ~/.zshrc",
        "ls .git/hooks",
        "cp ~/.bashrc bashrc.backup",
        "cp ~/.vimrc dotfiles/",
        "echo x >> notes.md",
        "source ~/.bashrc",
        "gh completion -s bash >> ~/.bashrc",
        "starship init zsh >> ~/.zshrc",
        "npm completion >> ~/.bashrc",
        "rustup completions zsh >> ~/.zshrc",
        "cp .git/hooks/pre-commit.sample x",
    ],
)
def start_file(command: Command, line: PackLine) -> Objection:
    if adds_completion(command):
        return None
    return next(
        (f"{path} runs later" for path in _changed(command, line) if _runs_later(path, line)),
        None,
    )


def adds_completion(command: Command) -> bool:
    """Does an installed program add its own completion or prompt: `gh completion -s bash >> ~/.bashrc`?"""
    writes = [one.operator for one in command.redirects if one.writes]
    if not writes or set(writes) != {">>"} or "/" in command.path or command.inner or command.assignments:
        return False
    if command.program in _GIVES_ON or is_interpreter(command.program):
        return False
    words = command.operands
    if words[:1] not in (["completion"], ["completions"]):
        return words[:1] == ["init"] and len(words) == 2 and words[1] in _OF_SHELLS
    return all(word in _OF_SHELLS for word in words[1:])


_OF_SHELLS = frozenset(["bash", "zsh", "fish", "sh", "powershell", "pwsh", "script"])
_GIVES_ON = frozenset([
    "echo", "printf", "cat", "tac", "bat", "head", "tail", "tee", "cp", "mv", "install", "ln", "link", "dd", "less",
    "more", "grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "mawk", "cut", "sort", "uniq", "rev", "nl", "tr",
    "fold", "fmt", "pr", "paste", "join", "comm", "column", "expand", "unexpand", "strings", "base64", "base32",
    "xxd", "od", "zcat", "gunzip", "gzip", "bzcat", "xzcat", "jq", "yq", "envsubst", "m4", "curl", "wget", "make",
    "just", "source", ".", "eval", "iconv", "dos2unix", "get-content", "copy-item", "move-item", "add-content",
    "set-content", "write-output", "write-host", "out-file",
])  # fmt: skip
"""Programs that write what they read or are told: their word `completion` is a file or a text."""


@persistence.rule(
    "schedule",
    level="destructive",
    programs=[
        "crontab",
        "at",
        "batch",
        "launchctl",
        "systemctl",
        "systemd-run",
        "schtasks",
        "loginctl",
    ],
    why="This makes something run later, when no one looks.",
    instead="Run it now, or show the user what to schedule: `crontab -l`",
    risk=_RISK,
    stops=[
        "crontab x",
        "echo '* * * * * x' | crontab -",
        "at -f x.sh now + 1 hour",
        "echo x | at midnight",
        "systemctl link ./x.service",
        "launchctl load x.plist",
        "systemd-run --on-calendar=daily x",
        "crontab -r",
        "systemctl --user enable --now ./x.service",
        "schtasks /create /tn x /tr y",
    ],
    passes=[
        "crontab -l",
        "systemctl start x",
        "systemctl enable nginx",
        "crontab -e",
        "systemctl is-enabled x",
        "launchctl list",
        "at -l",
        "at now + 1 hour",
        "systemd-run ls",
        "atq",
    ],
)
def schedule(command: Command, line: PackLine) -> Objection:
    program, words = command.program, command.operands
    if command.has("--help", "--version"):
        return None
    match program:
        case "crontab":
            return not command.has("-l", "-V", "-e") and (bool(words) or command.has("-r") or "-" in command.args)
        case "at" | "batch":
            has_job = input_of(command) is not None or command.reads is not None or command.has("-f", "--file")
            has_job = has_job or any(one.operator == "<" for one in command.redirects)
            return has_job and not command.has("-l", "-c", "-d", "-r", "-V") and (bool(words) or program == "batch")
        case "launchctl":
            return words[:1] and words[0] in ("load", "bootstrap", "enable", "submit", "kickstart")
        case "systemctl":
            return words[:1] == ["link"] or (words[:1] == ["enable"] and any("/" in word for word in words[1:]))
        case "systemd-run":
            return any(re.match(r"--(on-|timer-|calendar)", word) for word in command.args)
        case "schtasks":
            return any(word.lower() in ("/create", "/change") for word in command.args)
        case "loginctl":
            return words[:1] == ["enable-linger"]
    return None


_FREES = {
    "claude": ("--dangerously-skip-permissions", "--allow-dangerously-skip-permissions", "bypassPermissions"),
    "codex": ("--dangerously-bypass-approvals-and-sandbox", "--yolo", "danger-full-access"),
    "gemini": ("--yolo", "-y", "yolo"),
    "qwen": ("--yolo", "-y", "yolo"),
    "copilot": ("--allow-all-tools", "--allow-all", "--yolo"),
    "cursor-agent": ("--force", "-f", "--yolo"),
    "q": ("--trust-all-tools", "-a"),
    "kiro-cli": ("--trust-all-tools", "-a"),
    "amp": ("--dangerously-allow-all",),
    "crush": ("--yolo", "-y"),
    "auggie": ("--dangerously-skip-permissions",),
    "droid": ("--skip-permissions-unsafe",),
    "aider": ("--yes-always",),
}
"""What lets an agent do whatever it likes, unasked."""


@persistence.rule(
    "unguarded-agent",
    level="destructive",
    programs=_FREES,
    why="This starts another agent that does whatever it likes, and no one is asked.",
    instead="Start it with its permissions: `claude -p 'fix the tests'`",
    risk=_RISK,
    incident="2025-08: malware in packages of nx ran agents with their permissions off, to look for keys.",
    stops=[
        "claude --dangerously-skip-permissions -p x",
        "claude --permission-mode bypassPermissions -p x",
        "codex exec --dangerously-bypass-approvals-and-sandbox x",
        "codex --sandbox=danger-full-access x",
        "gemini --yolo -p x",
        "gemini --approval-mode=yolo -p x",
        "q chat --trust-all-tools --no-interactive x",
        "copilot -p x --allow-all-tools",
        "cursor-agent -p --force x",
    ],
    passes=[
        "claude -p 'fix the tests'",
        "codex exec x",
        "gemini -p x",
        "codex --sandbox workspace-write x",
        "copilot --allow-tool write",
        "gemini extensions uninstall -y x",
        "claude -p 'what does --dangerously-skip-permissions do?'",
    ],
)
def unguarded_agent(command: Command, line: PackLine) -> Objection:
    if command.program in ("gemini", "qwen") and command.args[:1] in (["extensions"], ["mcp"]):
        return None  # it manages its parts, and asks no model
    frees = _FREES.get(command.program, ())
    words = (str(word).rpartition("=")[2] if str(word)[:2] == "--" else str(word) for word in command.args)
    return next((word for word in words if word in frees), None)


@persistence.rule(
    "inject",
    level="destructive",
    why="This puts code into every program that starts after it.",
    instead="Pass it to the one program that needs it: `python3 -X dev script.py`",
    risk=_RISK,
    stops=[
        "LD_PRELOAD=./x.so ls",
        "export LD_PRELOAD=/x.so",
        "export PROMPT_COMMAND='x'",
        "git config --global core.hooksPath /x",
        "git config --global core.fsmonitor x",
        "export BASH_ENV=x",
        "DYLD_INSERT_LIBRARIES=x ls",
        "git config --global alias.st '!x'",
        "alias sudo=x",
        "export PYTHONSTARTUP=x.py",
        "git config core.sshCommand x",
        "git config --global credential.helper '!x'",
        "LD_PRELOAD=/usr/lib/../../tmp/x.so ls",
        "cp x.so /usr/local/lib/x.so && LD_PRELOAD=/usr/local/lib/x.so ls",
        "gcc -shared -o /usr/local/lib/x.so x.c; LD_PRELOAD=/usr/local/lib/x.so ls",
        "cp x.so /usr/local/lib/; LD_PRELOAD=/usr/local/lib/x.so ls",
        "osascript -e 'tell application \"System Events\" to make login item at end'",
    ],
    passes=[
        "python3 -X dev script.py",
        "export PATH=$PATH:/x",
        "git config user.name x",
        "git config --global alias.st status",
        "export EDITOR=vim",
        "alias ll='ls -l'",
        "LD_LIBRARY_PATH=lib ./x",
        "LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2 ./bench",
        "git config --get core.hooksPath",
        "git config --global credential.helper store",
    ],
)
def inject(command: Command, line: PackLine) -> Objection:
    if command.program == "osascript" and re.search(r"(?i)make (?:new )?login item", " ".join(map(str, command.args))):
        return "it makes a login item"
    names = re.compile(
        r"(?:LD_PRELOAD|LD_AUDIT|DYLD_INSERT_LIBRARIES|BASH_ENV|PROMPT_COMMAND|PYTHONSTARTUP|PERL5OPT|RUBYOPT|NODE_OPTIONS(?==.*--require)|ENV|GIT_SSH_COMMAND|GIT_EXTERNAL_DIFF)"
    )
    for name in command.assignments:
        value = command.assignments[name]
        if names.fullmatch(name) and value and not (_OF_SYSTEM.match(value) and not _is_named(value, line)):
            return f"{name} loads code into other programs"
    if command.program in ("export", "declare", "typeset", "env", "set", "launchctl", "setx"):
        for word in command.args:
            name, sign, value = str(word).partition("=")
            if sign and value and (names.fullmatch(name) or (name == "NODE_OPTIONS" and "--require" in value)):
                return f"{name} loads code into other programs"
    if command.program == "alias":
        return next(
            (
                str(word)
                for word in command.args
                if re.match(r"(sudo|su|ssh|git|ls|cd|cat|passwd|gpg|docker|kubectl)=", word)
            ),
            None,
        )
    if command.runs("git config") and not command.has(
        "--get", "--unset", "--list", "-l", "--get-all", "--unset-all", "--get-regexp"
    ):
        words = [str(word) for word in command.operands[1:]]
        if len(words) < 2:
            return None
        runs = re.match(
            r"(?i)core\.(hookspath|fsmonitor|sshcommand|pager|editor|askpass|gitproxy)|diff\..*\.(command|textconv)|filter\..*|merge\..*\.driver|gpg\.program|sequence\.editor|url\..*\.insteadof|init\.templatedir|include",
            words[0],
        )
        if runs and not (runs[1] and runs[1].lower() in ("pager", "editor") and re.fullmatch(r"[\w. -]+", words[1])):
            return words[0]
        return words[0] if re.match(r"(?i)(alias\.|credential\.)", words[0]) and words[1].startswith("!") else None
    return None


def _is_named(path: str, line: PackLine) -> bool:
    """Does a command of the line name a file, or write it?"""
    return any(
        path in (word, line.path(one, word)) for one in line.commands for word in (*one.args, *written_by(one, line))
    )


_OF_SYSTEM = re.compile(r"/(?:usr/)?(?:local/)?lib(?:64|exec)?/(?!\S*\.\./)[\w./+-]+\.so[\d.]*$")
"""A library of the system, such as jemalloc, for one program."""


@persistence.tool_rule(
    "write-start-file",
    kinds=["write"],
    level="destructive",
    why="What stands there runs later: at each login, start, commit or hour.",
    instead="Show the user what to add: write `bashrc.addition`",
    risk=_RISK,
    stops=[
        {"tool": "Write", "args": {"file_path": "/home/me/.bashrc", "content": "x"}},
        {
            "tool": "Edit",
            "args": {"file_path": "/home/me/project/.git/hooks/pre-commit", "old_string": "a", "new_string": "b"},
        },
    ],
    passes=[
        {"tool": "Write", "args": {"file_path": "/home/me/project/bashrc.md", "content": "x"}},
        {"tool": "Write", "args": {"file_path": "/home/me/project/main.py", "content": "x"}},
    ],
)
def write_start_file(step: BeforeTool, line: PackLine) -> Objection:
    return next(
        (
            f"{path} runs later"
            for path in map(str, step.target.paths)
            if _LETS_IN.search(path) or _runs_later(path, line)
        ),
        None,
    )
