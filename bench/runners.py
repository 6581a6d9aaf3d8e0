"""Runners: what a hook costs in each form, side by side with starting the program by hand.

Part of `make bench`. Every row answers the same step with the same verdict. Prints a table and how
the figures stand to the targets; asserts nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from aiohttp import web

from fairlead import Hooks
from fairlead.lifecycle import BeforeTool
from fairlead.runners.command import Command
from fairlead.runners.environment import hook_environment
from fairlead.runners.http import Url
from fairlead.runners.rule import Rule
from fairlead.runners.worker import Worker
from fairlead.wire.steps import encode_step

from .timing import Contestant, Timing, awaiting, calling, measure

STEP = BeforeTool(tool="bash", args={"command": "git push --force origin main"})
VERDICT = '{"control":"deny","reason":"no"}'
EXPRESSION = 'target.command.matches("push .*(--force|-f)")'

PYTHON_HOOK = f"import json, sys\njson.load(sys.stdin)\nprint('{VERDICT}')\n"
PYTHON_WORKER = """
from fairlead import deny
from fairlead.worker import Worker
worker = Worker()
@worker.on.before_tool
def hook(step):
    return deny("no")
worker.run()
"""
NODE_HOOK = f"JSON.parse(require('fs').readFileSync(0)); console.log('{VERDICT}')"
NODE_WORKER = f"""
require("readline").createInterface({{ input: process.stdin }}).on("line", (line) => {{
  const {{ id }} = JSON.parse(line);
  process.stdout.write(`{{"id":${{id}},"verdict":{VERDICT}}}\\n`);
}});
"""


def hooked(runner: Any) -> tuple[Hooks, Callable[[Any], Awaitable[Any]]]:
    hooks = Hooks()
    hooks.add(runner, on="before_tool", name="hook")
    return hooks, hooks.dispatch


def spawning(argv: list[str]) -> Callable[[Any], Any]:
    """Starting a program by hand, with nothing around it."""
    envelope, around = encode_step(STEP), hook_environment()  # node, for one, starts faster without some variables
    return lambda _: subprocess.run(
        argv, input=envelope, capture_output=True, check=True, cwd=around.cwd, env=around.env
    )


async def process_rows(folder: Path, rounds: int) -> dict[str, Timing]:
    """Programs started for each step, by hand and as a hook."""
    script = folder / "hook.py"
    script.write_text(PYTHON_HOOK)
    programs = {"cat": ["cat"], "python": [sys.executable, str(script)]}
    if shutil.which("node"):
        programs["node"] = ["node", "-e", NODE_HOOK]
    if shutil.which("jq"):
        programs["jq"] = ["jq", "-c", '{control: "deny", reason: "no"}']
    field: list[Contestant] = []
    for name, argv in programs.items():
        argv = [shutil.which(argv[0]) or argv[0], *argv[1:]]
        field.append(calling(f"spawn {name}", spawning(argv), STEP))
        output: Any = "ignore" if name == "cat" else "verdict"
        field.append(awaiting(f"command {name}", hooked(Command(argv, output=output))[1], STEP))
    return await measure(field, rounds=rounds, budget_ms=60)


async def warm_rows(folder: Path, rounds: int) -> dict[str, Timing]:
    """Hooks that are there already: workers, a service."""
    script = folder / "worker.py"
    script.write_text(PYTHON_WORKER)
    workers = {"worker, python": Worker([sys.executable, str(script)])}
    if shutil.which("node"):
        workers["worker, node"] = Worker(["node", "-e", NODE_WORKER])
    answer = VERDICT.encode()

    async def judge(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=answer)

    app = web.Application()
    app.router.add_post("/", judge)
    server = web.AppRunner(app)
    await server.setup()
    await web.TCPSite(server, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{server.addresses[0][1]}/"
    made = {name: hooked(runner) for name, runner in workers.items()}
    made["url, redacting"], made["url, raw"] = hooked(Url(url)), hooked(Url(url, raw=True))
    try:
        return await measure(
            [awaiting(name, once, STEP) for name, (_, once) in made.items()], rounds=rounds, budget_ms=40
        )
    finally:
        for hooks, _ in made.values():
            await hooks.aclose()
        await server.cleanup()


async def rule_rows(rounds: int) -> dict[str, Timing]:
    """One rule, in four ways. cel-python is given what our rule is given: the fields it names."""
    from celpy import Environment, json_to_cel

    pattern = re.compile("push .*(--force|-f)")
    env = Environment()
    program = env.program(env.compile(EXPRESSION))
    step = json.loads(encode_step(STEP))
    return await measure(
        [
            calling("python predicate", lambda s: pattern.search(s.target.command) is not None, STEP),
            calling("rule", Rule(EXPRESSION, on="before_tool", deny="no"), STEP),
            calling("rule, no regex", Rule('tool == "bash"', on="before_tool", deny="no"), STEP),
            calling("cel-python", lambda _: program.evaluate({"target": json_to_cel(step["target"])}), STEP),
        ],
        rounds=rounds,
        budget_ms=20,
    )


def targets(rows: dict[str, Timing]) -> list[tuple[str, float, float]]:
    best = {name: timing.best for name, timing in rows.items()}
    found = [
        ("worker against spawning cat", best["worker, python"] / best["spawn cat"], 1 / 10),
        ("worker against spawning a Python hook", best["worker, python"] / best["spawn python"], 1 / 200),
    ]
    found += [
        (f"command against spawning {name}", best[f"command {name}"] / best[f"spawn {name}"], 1.3)
        for name in ("cat", "python", "node", "jq")
        if f"spawn {name}" in best
    ]
    return [*found, ("rule against cel-python", best["rule"] / best["cel-python"], 1.0)]


async def run() -> None:
    with TemporaryDirectory() as folder:
        rows = await process_rows(Path(folder), 15)
        rows |= await warm_rows(Path(folder), 25)
    rows |= await rule_rows(25)
    print(f"{'one step through one hook':<28}{'best':>12}{'median':>12}{'per second':>14}")
    for name, timing in sorted(rows.items(), key=lambda row: row[1].best):
        print(f"{name:<28}{timing.best / 1000:>9,.1f} us{timing.median / 1000:>9,.1f} us{1e9 / timing.best:>14,.0f}")
    print()
    for name, ratio, limit in targets(rows):
        print(f"{'ok  ' if ratio <= limit else 'OVER'} {name:<44}{ratio:>8.4f}x   at most {limit:.4f}x")


if __name__ == "__main__":
    asyncio.run(run())
