"""Measures how fast recorded steps are read and judged again, per second of processor time of one core.

Part of `make bench`. Prints figures and compares them with the targets; asserts nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fairlead import Hooks, Verdict, deny
from fairlead.journal.entry import Entry, make_entry
from fairlead.journal.policy import policy_of
from fairlead.journal.store import JournalFile
from fairlead.lifecycle import AfterModel, AfterTool, BeforeModel, BeforeTool, SessionStart, Step, ToolRequested
from fairlead.redaction.redactor import Redactor
from fairlead.replay.diff import Differ
from fairlead.replay.judge import Judge
from fairlead.replay.parallel import Job, run_diff
from fairlead.replay.policies import Policy
from fairlead.replay.report import DiffReport, ReplayReport
from fairlead.replay.reproduce import Reproducer
from fairlead.replay.sources import Selection, Traffic, open_source
from fairlead.runners.rule import Rule
from fairlead.wire.steps import envelope

PER_SESSION = 100
BEGAN = 1_790_000_000
COMMANDS = (
    "git status --short", "git diff --stat", "ls -la src", "pytest -q tests/test_{n}.py", "git push origin feature-{n}",
    "git push --force origin feature-{n}", "cat src/module_{n}.py", "grep -rn 'def f{n}' src", "npm test",
    "rm -rf build/{n}", "python -m tool --seed {n}", "docker ps", "make check", "git log --oneline -{n}",
)  # fmt: skip
RULES = {
    "no-force-push": ('target.command.matches("git push.*(--force|-f)( |$)")', "deny"),
    "no-rm": ('target.command.matches("rm -rf /( |$)")', "deny"),
    "no-sudo": ('target.command.contains("sudo ")', "deny"),
    "no-curl-sh": ('target.command.matches("curl .*[|] *sh")', "deny"),
    "ask-docker": ('target.command.contains("docker rm")', "ask"),
    "no-reset": ('target.command.matches("git reset --hard")', "deny"),
    "no-chmod": ('target.command.matches("chmod -R 777")', "deny"),
    "no-dd": ('target.command.matches("dd if=.* of=/dev/")', "deny"),
    "ask-publish": ('target.command.matches("npm publish|twine upload")', "ask"),
    "no-history": ('target.command.contains("history -c")', "deny"),
}


def steps_of(number: int, rng: random.Random) -> Iterator[Step]:
    """The steps of one session."""
    session, cwd, user = f"s-{number:06}", f"/repo-{number % 40}", f"user-{number % 12}"
    about: dict[str, Any] = {
        "session_id": session, "root_session_id": session, "host": "loop", "cwd": cwd, "user_id": user,
    }  # fmt: skip
    yield SessionStart(**about, sequence=1)
    sequence = 1
    messages: list[dict[str, str]] = [{"role": "user", "content": f"Please fix issue {number} of the parser. " * 4}]
    while sequence < PER_SESSION:
        sequence += 1
        about["sequence"] = sequence
        about["turn_id"] = f"t-{sequence // 10}"
        at, n = sequence % 7, rng.randrange(400)
        call: dict[str, Any] = {
            "tool": "bash",
            "args": {"command": rng.choice(COMMANDS).format(n=n)},
            "call_id": f"c{n}",
        }
        if at == 0:
            messages = [*messages[-7:], {"role": "assistant", "content": f"I read file {n} and found it. " * 6}]
            yield BeforeModel(**about, model="m-1", messages=list(messages), message_count=sequence)
        elif at == 1:
            yield AfterModel(**about, model="m-1", output="I look at the files first.", stop_reason="tool_use")
        elif at in (2, 5):
            yield ToolRequested(**about, **call)
        elif at in (3, 6):
            yield BeforeTool(**about, **call)
        else:
            yield AfterTool(**about, **call, output="ok\n" * rng.randrange(20), duration=0.1)


def make_journal(path: Path, records: int, seed: int = 22) -> None:
    """Write a journal of this many decisions, by `rules`, without waiting for any."""
    hooks = with_rules()
    policy = policy_of(hooks.table)
    store, redactor = JournalFile(path), Redactor()
    rng, entries, written = random.Random(seed), [], 0
    while written < records:
        group: list[Entry] = []
        for step in steps_of(written // PER_SESSION, rng):
            at = (BEGAN + written) * 10**9 + rng.randrange(10**9)
            facts: dict[str, Any] = {
                "v": 2, "id": f"r{written}-{len(group)}", "machine": "m", "user": "dev", "kind": "decision", "at": at,
                "took": 0.0001, "control": "proceed", "step": envelope(step),
                "runs": [[name, "gate", "none", 0.00001] for name in RULES] if isinstance(step, BeforeTool) else [],
            }  # fmt: skip
            group.append(make_entry(facts, redactor, policy))
        entries += group
        written += len(group)
        if len(entries) >= 5_000 or written >= records:
            store.append(entries)
            entries = []
    store.close()


# --- policies -------------------------------------------------------------------------------


def with_rules(changed: str | None = None) -> Hooks:
    hooks = Hooks()
    for name, (expression, control) in RULES.items():
        if name == changed:
            expression = expression.replace("(--force|-f)", "--force-with-lease")
        rule: Any = Rule(expression, on="before_tool", **{control: "not here"})
        hooks.add(rule, on="before_tool", name=name, kind="shell", phase="gate")
    return hooks


def with_functions() -> Hooks:
    hooks = Hooks()
    for number in range(10):

        def look(step: Any, number: int = number) -> Verdict | None:
            return deny("no") if getattr(step, "call_id", None) == number else None

        hooks.add(look, on="*", name=f"look-{number}")
    return hooks


def policy_file(folder: Path, name: str, count: int, without: str | None = None) -> Path:
    """A file with this many rules beside the ten."""
    entry = """
[[hook]]
name = '{}'
on = 'before_tool'
match = {{ kind = 'shell' }}
phase = 'gate'
rule = '''{}'''
{} = 'not here'
"""
    lines = [entry.format(rule, *what) for rule, what in RULES.items() if rule != without]
    lines += [entry.format(f"more-{n}", f'target.command.contains("tool-{n}-never")', "deny") for n in range(count)]
    path = folder / name
    path.write_text("\n".join(lines))
    return path


# --- measuring ------------------------------------------------------------------------------


def rate(work: Callable[[], int]) -> float:
    """Steps per second of processor time."""
    began = time.process_time()
    count = work()
    return count / (time.process_time() - began)


def replayed(path: Path, hooks: Hooks) -> Callable[[], int]:
    def work() -> int:
        report = ReplayReport("bench")
        traffic = Traffic([open_source(str(path))])
        asyncio.run(Reproducer(Judge(hooks), report).run(traffic, traffic.groups()))
        traffic.close()
        return report.totals.steps

    return work


def diffed(path: Path, old: Hooks, new: Hooks) -> Callable[[], int]:
    def work() -> int:
        report = DiffReport("old", "new")
        traffic = Traffic([open_source(str(path))])
        asyncio.run(Differ(Judge(old), Judge(new), report).run(traffic, traffic.groups()))
        traffic.close()
        return report.totals.steps

    return work


def peak() -> float:
    """The most memory that this process has had, in MiB."""
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def live(hooks: Hooks, count: int = 3_000) -> float:
    """Microseconds of one live dispatch of a shell call."""
    rng = random.Random(1)
    steps = [BeforeTool(tool="bash", args={"command": rng.choice(COMMANDS).format(n=n % 400)}) for n in range(count)]

    async def run() -> None:
        for step in steps:
            await hooks.dispatch(step)

    began = time.process_time()
    asyncio.run(run())
    return (time.process_time() - began) / count * 1e6


def report(what: str, found: float, target: float, unit: str = "/s") -> None:
    met = "" if not target else f"  (target {target:,.0f}: {'met' if found >= target else 'MISSED'})"
    print(f"  {what:<52} {found:>12,.0f} {unit}{met}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--journal", type=Path, help="made before; it is made here if it is not there")
    options = parser.parse_args()
    with TemporaryDirectory() as folder:
        path = options.journal or Path(folder) / "journal.db"
        if not path.exists():
            make_journal(path, options.records)
        print(f"replay: {options.records:,} records, {path.stat().st_size >> 20} MiB, per second of one core:")
        report("read, ten Python hooks at every event", rate(replayed(path, with_functions())), 100_000)
        report("read, ten rules at before_tool", rate(replayed(path, with_rules())), 70_000)
        changed = with_rules("no-force-push")
        report("two policies of ten rules", rate(diffed(path, with_rules(), changed)), 50_000)
        report("the most memory so far", peak(), 0, "MiB")
        report("a live dispatch of ten rules", live(with_rules()), 0, "us")
        old = policy_file(Path(folder), "old.toml", 190)
        new = policy_file(Path(folder), "new.toml", 190, without="no-force-push")
        policies = [Policy(one.name, str(one), one.read_bytes(), "user") for one in (old, new)]
        began = time.perf_counter()
        found = run_diff(Job(policies[0], policies[1], [str(path)], Selection()), jobs=2)
        report("seconds for 200 rules against 199, on two cores", time.perf_counter() - began, 0, "s")
        loosened = [change for change in found.changes if change.direction == "loosened"]
        print(f"  {found.totals.changed:,} steps changed in {len(found.changes)} classes, {len(loosened)} loosened")


if __name__ == "__main__":
    main()
