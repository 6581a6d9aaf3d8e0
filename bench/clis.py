"""One before-tool hook of an agent CLI: launcher, thin client and a warm daemon, beside a plain Python hook.

Part of `make bench`. All are started as a CLI starts them, `sh -c COMMAND` with the step on stdin, in turn, and say the
same. Prints a table and how the figures stand to the target; asserts nothing.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from fairlead.hosts.clis.launcher import base_interpreter

ROUNDS, EACH = 12, 10
LIMIT = 3.0
CONFIG = """
[[hook]]
name = "no-force-push"
on = "before_tool"
match = { kind = "shell" }
phase = "gate"
rule = 'target.command.contains("--force")'
deny = "no"
"""
PLAIN = """#!/usr/bin/env python3
import json
import sys

step = json.load(sys.stdin)
if "--force" in step["tool_input"]["command"]:
    reason = "[no-force-push] no"
    answer = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason}
    print(json.dumps({"hookSpecificOutput": answer}, separators=(",", ":")))
"""
STEP = {
    "session_id": "s-1", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "toolu_1",
    "tool_input": {"command": "git push --force"},
}  # fmt: skip


def main() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        environ = prepared(folder)
        launcher = folder / "state/bin/fairlead-hook"
        plain = folder / "hook.py"
        plain.write_text(PLAIN)
        python = base_interpreter()  # as it is on this machine, and not by way of a script that looks for it
        commands = {
            "fairlead": f"{shlex.quote(str(launcher))} 110 before_tool claude_code PreToolUse",
            "plain": f"{shlex.quote(python)} {shlex.quote(str(plain))}",
            "bare": f"{shlex.quote(python)} -I -S {shlex.quote(str(plain))}",
            "nothing": f"{shlex.quote(python)} -I -S -c pass",
            "true": "true",
        }
        try:
            compare(commands, environ, folder)
        finally:
            subprocess.run([sys.executable, "-m", "fairlead.cli", "serve", "--stop"], env=environ, capture_output=True)


def prepared(folder: Path) -> dict[str, str]:
    """A home with one rule for the user, and the launcher."""
    (folder / "state").mkdir(mode=0o700)
    config = folder / "config/fairlead/fairlead.toml"
    config.parent.mkdir(parents=True)
    config.write_text(CONFIG)
    environ = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "FAIRLEAD_STATE_DIR": str(folder / "state"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }  # fmt: skip
    write = "from fairlead.hosts.clis.launcher import write_launcher; from fairlead.folders import from_environment; "
    write += "write_launcher(from_environment())"
    subprocess.run([sys.executable, "-c", write], env=environ, check=True)
    return environ


def compare(commands: dict[str, str], environ: dict[str, str], folder: Path) -> None:
    answers = {name: run(command, environ, folder)[1] for name, command in commands.items()}
    if not answers["fairlead"] or json.loads(answers["fairlead"]) != json.loads(answers["plain"]):
        raise RuntimeError(f"their answers differ: {answers}")
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            taken[name] += [run(command, environ, folder)[0] for _ in range(EACH)]
    ordered = {name: sorted(times[EACH:]) for name, times in taken.items()}
    p50, p99 = ({name: times[int(len(times) * part)] for name, times in ordered.items()} for part in (0.5, 0.99))
    named = {
        "fairlead": "launcher, thin client, warm daemon",
        "plain": "a plain Python hook that says the same",
        "bare": "the same, with python -I -S",
        "nothing": "python -I -S -c pass: less cannot be had",
        "true": "sh -c true",
    }
    print(f"{'one before-tool hook':<44}{'p50':>10}{'p99':>10}   fairlead is")
    for name, what in named.items():
        ratio = p50[name] / p50["fairlead"]
        words = "" if name == "fairlead" else f"   {ratio:.2f}x faster" if ratio > 1 else f"   {1 / ratio:.2f}x slower"
        print(f"{what:<44}{p50[name]:>7.1f} ms{p99[name]:>7.1f} ms{words}")
    over = p50["plain"] / p50["fairlead"] < LIMIT
    print(f"  at least {LIMIT:g}x faster than the plain hook{'   OVER' if over else ''}")


def run(command: str, environ: dict[str, str], folder: Path) -> tuple[float, str]:
    started = perf_counter()
    done = subprocess.run(
        ["/bin/sh", "-c", command], input=json.dumps({**STEP, "cwd": str(folder)}), env=environ, cwd=folder,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return (perf_counter() - started) * 1e3, done.stdout


if __name__ == "__main__":
    main()
