"""What services and models of fairlead.toml are sent of a step, and who says so."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

from fairlead import Hooks
from fairlead.testing import step

SECRET = "curl -u me:hunter22 https://a.example"


class Service:
    """Keeps what it is sent."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.url = ""

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.sent.append(json.loads(await request.read()))
        return web.Response()


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    made = Service()
    runner = web.ServerRunner(web.Server(made.answer, access_log=None), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    yield made
    await runner.cleanup()


def hook(service: Service, *lines: str, on: str = "before_tool") -> str:
    return "\n".join(["[[hook]]", 'name = "a"', f'on = "{on}"', f'url = "{service.url}"', *lines, ""])


async def decide(hooks: Hooks, **fields: Any) -> Any:
    async with hooks:
        return await hooks.dispatch(step("before_tool", **({"args": {"command": SECRET}} | fields)))


@pytest.mark.parametrize("phase", ["gate", "transform"])
@pytest.mark.parametrize("may", ["", 'may = ["deny"]'])
async def test_a_judge_is_not_sent_a_redacted_step(machine, service: Service, phase: str, may: str):
    decision = await decide(machine.hooks(user=hook(service, f'phase = "{phase}"', may)))
    assert (decision.control, decision.cause, service.sent) == ("deny", "failure", [])
    assert "could not be shown: args.command, target.command;" in decision.reason


@pytest.mark.parametrize("more", [(), ('may = ["deny"]',)])
async def test_an_observer_is_sent_one(machine, service: Service, more: tuple[str, ...]):
    decision = await decide(machine.hooks(user=hook(service, 'phase = "observe"', *more)))
    assert decision.failures == ()
    assert service.sent[0]["args"]["command"] == "curl -u me:[redacted: password] https://a.example"


@pytest.mark.parametrize("phase", ["gate", "transform", "observe"])
async def test_with_raw_all_are_sent_the_step_as_it_is(machine, service: Service, phase: str):
    await decide(machine.hooks(user=hook(service, f'phase = "{phase}"', "raw = true")))
    assert service.sent[0]["args"]["command"] == SECRET


async def test_a_hook_lists_what_else_it_judges(machine, service: Service):
    hooks = machine.hooks(user=hook(service, 'fields = ["metadata"]'))
    decision = await decide(hooks, args={"command": "ls"}, metadata={"x": "password=hunter22"})
    assert "could not be shown: metadata.x;" in decision.reason


async def test_a_hook_of_many_events_lists_fields_of_any_of_them(machine, service: Service):
    text = hook(service, 'fields = ["result", "source", "cwd"]', on="X").replace(
        '"X"', '["before_tool", "before_input"]'
    )
    assert (await decide(machine.hooks(user=text), args={"command": "ls"})).failures == ()


# --- in a project -----------------------------------------------------------------------------------

ALLOWED = '[defaults]\nallow_hosts = ["127.0.0.1"]\n'


def test_a_project_says_in_may_that_steps_are_sent_as_they_are(machine, service: Service):
    (mistake,) = machine.mistakes(user=ALLOWED, project=hook(service, "raw = true"))
    assert 'a project\'s hook is sent steps as they are only with may = ["raw"]' in mistake.problem
    assert (mistake.line, mistake.column) == (5, 7)


@pytest.mark.parametrize("phase", ["gate", "observe"])
async def test_then_they_are(machine, service: Service, phase: str):
    machine.write(user=ALLOWED, project=hook(service, "raw = true", 'may = ["raw"]', f'phase = "{phase}"'))
    machine.trust()
    await decide(machine.hooks())
    assert service.sent[0]["args"]["command"] == SECRET


async def test_raw_is_no_power_over_the_agent(machine, service: Service):
    """A hook that may be sent everything may do no more than any hook of a project."""

    async def injects(request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"additional_context": ["x"]})

    runner = web.ServerRunner(web.Server(injects, access_log=None), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    service.url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    machine.write(user=ALLOWED, project=hook(service, "raw = true", 'may = ["raw"]'))
    machine.trust()
    decision = await decide(machine.hooks())
    await runner.cleanup()
    assert (decision.control, decision.cause) == ("deny", "failure")
    assert "may" in decision.reason


def test_a_prompt_of_a_project_says_so_too(machine):
    text = '[[hook]]\nname = "a"\non = "before_tool"\nprompt = "Judge."\nmodel = "test"\nraw = true\n'
    (mistake,) = machine.mistakes(project=text)
    assert "as they are only with may" in mistake.problem
    machine.write(project=text + 'may = ["raw"]\n')
    machine.trust()
    assert [hook.name for hook in machine.hooks() if hook.layer == "project"] == ["a"]
