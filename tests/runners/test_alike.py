"""The same hook in every form means the same: one suite, real processes, a real server."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fairlead import Decision, Hooks
from fairlead.runners.command import Command
from fairlead.runners.http import Url
from fairlead.runners.worker import Worker
from fairlead.testing import step

FORMS = ("python", "command", "worker", "url")
Make = Callable[..., Awaitable[Any]]


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Make]:
    """Makes a hook of a form that answers with this JSON text (None: with nothing), after some shell line."""
    scripts = (tmp_path / f"worker{i}.sh" for i in range(10))
    async with AsyncExitStack() as servers:

        async def make(form: str, said: str | None, *, before: str = "") -> Any:
            if form == "python":
                return python(said, before)
            if form == "command":
                return Command.shell(f"{before or ':'}; printf %s {shlex.quote(said or '')}")
            if form == "worker":
                return worker(next(scripts), said, before)
            return await url(servers, said, before)

        yield make


def python(said: str | None, before: str) -> Any:
    async def hook(s: Any) -> Any:
        if "sleep" in before:
            await asyncio.sleep(60)
        if "exit" in before:
            raise RuntimeError("gone")
        return None if said is None else json.loads(said)

    return hook


def worker(script: Path, said: str | None, before: str) -> Worker:
    script.write_text(
        f"while IFS= read -r line; do id=${{line#*:}}; id=${{id%%,*}}; {before or ':'}\n"
        f'printf \'{{"id":%s,"verdict":%s}}\\n\' "$id" {shlex.quote(said or "null")}; done\n'
    )
    return Worker(["/bin/sh", str(script)])


async def url(servers: AsyncExitStack, said: str | None, before: str) -> Url:
    async def answer(request: web.BaseRequest) -> web.Response:
        await request.read()
        if "sleep" in before:
            await asyncio.sleep(60)
        return web.Response(text=said or "", status=500 if "exit" in before else 200)

    runner = web.ServerRunner(web.Server(answer, handler_cancellation=True, access_log=None), shutdown_timeout=0.01)
    servers.push_async_callback(runner.cleanup)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return Url(f"http://127.0.0.1:{runner.addresses[0][1]}/")


async def decide(hook: Any, event: str, **options: Any) -> Decision[Any]:
    async with Hooks(record=True) as hooks:
        hooks.add(hook, on=event, name="hook", **options)
        return await hooks.dispatch(step(event))


CASES: dict[str, tuple[str, Any, Callable[[Decision[Any]], bool]]] = {
    "no opinion": ("before_tool", None, lambda d: (d.control, d.contributions) == ("proceed", ())),
    "an empty verdict": ("before_tool", {}, lambda d: d.control == "proceed"),
    "proceed": ("before_tool", {"control": "proceed"}, lambda d: d.control == "proceed"),
    "deny": ("before_tool", {"control": "deny", "reason": "no"}, lambda d: (d.control, d.reason) == ("deny", "no")),
    "veto": ("before_tool", {"control": "veto", "reason": "no"}, lambda d: d.denied and d.cause == "policy"),
    "allow": ("before_tool", {"control": "allow"}, lambda d: d.control == "allow"),
    "ask": ("before_tool", {"control": "ask"}, lambda d: (d.control, d.cause) == ("deny", "approval")),
    "stop": ("turn_start", {"control": "stop", "stop_reason": "refusal"}, lambda d: d.stop_reason == "refusal"),
    "break": ("turn_start", {"control": "break"}, lambda d: (d.control, d.stop_reason) == ("stop", "end_turn")),
    "extend": ("before_turn_end", {"control": "continue", "reason": "more"}, lambda d: list(d.context) == ["more"]),
    "skip": ("before_compact", {"control": "skip"}, lambda d: d.control == "skip"),
    "retry": ("after_tool", {"control": "retry"}, lambda d: d.control == "retry"),
    "abort": ("before_request", {"control": "abort", "name": "quota"}, lambda d: d.control == "abort"),
    "skip_rest": ("before_tool", {"control": "skip_rest"}, lambda d: d.control == "proceed"),
    "change": ("before_tool", {"args": {"command": "new"}}, lambda d: d.step.target.command == "new"),
    "change by target": ("before_tool", {"command": "new"}, lambda d: d.step.args["command"] == "new"),
    "change of input": ("before_input", {"input": "new"}, lambda d: d.step.input == "new"),
    "prepend": ("before_input", {"prepend_input": "so: "}, lambda d: d.step.input == "so: hello"),
    "inject": ("before_input", {"additional_context": ["a", "b"]}, lambda d: list(d.context) == ["a", "b"]),
    "answer": ("before_tool", {"result": "cached"}, lambda d: d.step.result == "cached"),
    "answer the model": ("before_model", {"assistant": "hi"}, lambda d: d.step.assistant == "hi"),
    "warn": ("before_tool", {"warnings": ["careful"]}, lambda d: d.warnings == ("careful",)),
    "metadata": ("before_tool", {"metadata": {"k": 1}}, lambda d: d.metadata == {"k": 1}),
    "resolved": ("before_permission", {"resolved": False}, lambda d: d.denied),
    "an unknown key": ("before_tool", {"controll": "deny"}, lambda d: d.failures[0].kind == "malformed"),
    "an unknown control": ("before_tool", {"control": "dney"}, lambda d: d.failures[0].kind == "malformed"),
    "a control of another event": ("before_tool", {"control": "extend"}, lambda d: d.failures[0].kind == "malformed"),
    "a field of another event": ("before_tool", {"output": "x"}, lambda d: d.failures[0].kind == "malformed"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", CASES)
async def test_a_hook_says_the_same_in_every_form(form: str, case: str, make: Make):
    event, said, expected = CASES[case]
    decision = await decide(await make(form, None if said is None else json.dumps(said)), event)
    assert expected(decision), str(decision)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("policy", "control"), [("closed", "deny"), ("open", "proceed"), ("abort", "abort")])
@pytest.mark.parametrize(("way", "kind"), [("exit 9", "error"), ("sleep 60", "timeout")])
async def test_a_hook_fails_the_same_in_every_form(
    form: str, policy: str, control: str, way: str, kind: str, make: Make
):
    decision = await decide(await make(form, "{}", before=way), "before_tool", on_failure=policy, timeout=0.3)
    assert (decision.control, decision.failures[0].kind) == (control, kind)
    assert [run.outcome for run in decision.runs] == [kind]


@pytest.mark.parametrize("form", FORMS)
async def test_a_hook_of_any_form_is_cancelled_with_its_caller(form: str, make: Make):
    hooks = Hooks()
    hooks.add(await make(form, "{}", before="sleep 60"), on="before_tool", name="hook", timeout=30)
    task = asyncio.create_task(hooks.dispatch(step("before_tool")))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.wait([task], timeout=2)
    assert task.cancelled()
    await hooks.aclose()


@pytest.mark.parametrize("form", FORMS)
async def test_gates_of_any_form_run_at_the_same_time(form: str, make: Make):
    async with Hooks() as hooks:
        for i in range(4):
            deny = json.dumps({"control": "deny", "reason": f"gate {i}"})
            hooks.add(await make(form, deny), on="before_tool", name=f"gate{i}", phase="gate")
        decision = await hooks.dispatch(step("before_tool"))
    assert (decision.reason, len(decision.verdicts)) == ("gate 0", 4)
