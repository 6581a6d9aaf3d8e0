"""Reloading: a change takes effect whole or not at all, layer by layer, and disturbs nothing that did not change."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from fairlead import Hooks
from fairlead.config import ConfigError, Mistake, reload
from fairlead.config.reload import Reloader
from fairlead.testing import step


def denies(name: str, *lines: str) -> str:
    return "\n".join(["[[hook]]", f'name = "{name}"', 'on = "before_tool"', 'rule = "true"', 'deny = "no"', *lines, ""])


def names(hooks: Hooks) -> list[str]:
    return [hook.name for hook in hooks if hook.name != "fairlead.guard"]


def by_name(hooks: Hooks) -> dict[str, Any]:
    return {hook.name: hook for hook in hooks}


@pytest.fixture
def reloader(machine, hooks: Hooks) -> Callable[..., Reloader]:
    """Makes a reloader for these layers."""

    def make(**texts: str | None) -> Reloader:
        machine.write(**texts)
        return Reloader(hooks, machine.workspace)

    return make


# --- the first reading -------------------------------------------------------------------------------------


def test_the_first_reading_takes_effect_at_once(reloader, hooks):
    reloader(user=denies("a"))
    assert names(hooks) == ["a"]


def test_a_mistake_at_the_first_reading_refuses_to_start(reloader, hooks):
    with pytest.raises(ConfigError, match="unknown key 'nonsense'"):
        reloader(user=denies("a") + "nonsense = 1")
    assert names(hooks) == []


async def test_a_hook_that_lacked_its_program_runs_once_the_program_is_there(reloader, hooks, machine, monkeypatch):
    monkeypatch.setattr(reload, "RETRY", 0.0)
    text = f'[[hook]]\nname = "a"\non = "before_tool"\ncommand = ["{machine.outside}/later"]\n'
    reloading = reloader(user=text)
    assert (await hooks.dispatch(step("before_tool"))).cause == "failure"
    await reloading.look()
    assert (await hooks.dispatch(step("before_tool"))).cause == "failure"
    machine.script("later", "#!/bin/sh\necho judged >&2; exit 2\n")
    await reloading.look()
    assert (await hooks.dispatch(step("before_tool"))).reason == "judged"


# --- reloading by hand ---------------------------------------------------------------------------------------


async def test_a_change_takes_effect(reloader, hooks, machine):
    made = reloader(user=denies("a"))
    machine.write(user=denies("b"))
    assert (await made.reload(), names(hooks)) == ([], ["b"])


async def test_a_new_file_adds_its_hooks(reloader, hooks, machine):
    made = reloader(system=denies("a"))
    machine.write(user=denies("b"))
    await made.reload()
    assert names(hooks) == ["a", "b"]


async def test_a_file_that_is_deleted_takes_its_hooks_with_it(reloader, hooks, machine):
    made = reloader(system=denies("a"), user=denies("b"))
    machine.write(user=None)
    await made.reload()
    assert names(hooks) == ["a"]


async def test_hooks_in_code_stay(reloader, hooks, machine):
    hooks.add(lambda step: None, on="before_tool", name="code")
    made = reloader(user=denies("a"))
    machine.write(user=denies("b"))
    await made.reload()
    assert names(hooks) == ["code", "b"]


async def test_tools_defaults_and_disabling_take_effect(reloader, hooks, machine):
    made = reloader(system=denies("a"))
    machine.write(user='disable = ["a"]\n[defaults]\nunknown_tool = "deny"\n[[tool]]\nname = "mine"\nkind = "read"\n')
    await made.reload()
    decisions = [await hooks.dispatch(step("before_tool", tool=tool)) for tool in ("mine", "other")]
    assert [decision.control for decision in decisions] == ["proceed", "deny"]


async def test_a_mistake_keeps_the_old_hooks_of_its_layer(reloader, hooks, machine):
    made = reloader(user=denies("a") + denies("b"))
    machine.write(user=denies("a") + denies("c") + "nonsense = 1")
    (mistake,) = await made.reload()
    assert "unknown key 'nonsense'" in mistake.problem
    assert names(hooks) == ["a", "b"]


@pytest.mark.parametrize("broken", ["= nonsense", b"\xff", denies("x") * 2])
async def test_a_mistake_in_one_layer_does_not_hold_up_another(broken: Any, reloader, hooks, machine):
    made = reloader(system=denies("s1"), user=denies("u1"))
    machine.write(system=broken, user=denies("u2"))
    mistakes = await made.reload()
    assert {mistake.file for mistake in mistakes} == {str(machine.system)}
    assert names(hooks) == ["s1", "u2"]


async def test_a_mistake_in_the_lower_layer_does_not_hold_up_the_higher(reloader, hooks, machine):
    made = reloader(system=denies("s1"), user=denies("u1"))
    machine.write(system=denies("s2"), user="= nonsense")
    await made.reload()
    assert names(hooks) == ["s2", "u1"]


async def test_a_mistake_that_is_fixed_takes_effect(reloader, hooks, machine):
    made = reloader(user=denies("a"))
    machine.write(user="= nonsense")
    await made.reload()
    machine.write(user=denies("b"))
    assert (await made.reload(), names(hooks)) == ([], ["b"])


async def test_a_file_that_is_new_and_wrong_adds_nothing(reloader, hooks, machine):
    made = reloader(system=denies("a"))
    machine.write(user=denies("b") + "nonsense = 1")
    assert len(await made.reload()) == 1
    assert names(hooks) == ["a"]


async def test_a_hook_that_is_locked_later_comes_back_in_force(reloader, hooks, machine):
    made = reloader(system=denies("a"), user='disable = ["a"]\n' + denies("b"))
    machine.write(system=denies("a", "locked = true"))
    (mistake,) = await made.reload()
    assert (mistake.file, "is locked" in mistake.problem) == (str(machine.user), True)
    assert names(hooks) == ["a", "b"]


async def test_a_name_that_a_hook_in_code_has_keeps_everything_as_it_was(reloader, hooks, machine):
    hooks.add(lambda step: None, on="before_tool", name="code")
    made = reloader(system=denies("s"), user=denies("a"))
    machine.write(system=denies("s2"), user=denies("code"))
    (mistake,) = await made.reload()
    assert "a hook named 'code' is already registered" in mistake.problem
    assert names(hooks) == ["code", "s", "a"]


async def test_mistakes_are_logged(reloader, machine, caplog):
    made = reloader(user=denies("a"))
    machine.write(user="nonsense = 1")
    with caplog.at_level(logging.ERROR, "fairlead"):
        await made.reload()
    assert f"{machine.user}:1:1: unknown key 'nonsense'" in caplog.text


async def test_on_reload_is_told_the_mistakes(machine, hooks):
    told: list[Sequence[Mistake]] = []
    machine.write(user=denies("a"))
    made = Reloader(hooks, machine.workspace, on_reload=told.append)
    machine.write(user="nonsense = 1")
    await made.reload()
    machine.write(user=denies("b"))
    await made.reload()
    assert [len(mistakes) for mistakes in told] == [1, 0]


async def test_a_project_runs_once_it_is_trusted(reloader, hooks, machine):
    made = reloader(project=denies("p"))
    before = names(hooks)
    machine.trust()
    await made.reload()
    assert (before, names(hooks)) == (["fairlead.untrusted"], ["p"])


async def test_a_project_that_changes_keeps_the_hooks_that_were_trusted(reloader, hooks, machine):
    machine.write(project=denies("p"))
    machine.trust()
    made = reloader()
    machine.write(project=denies("q"))
    (mistake,) = await made.reload()
    assert "has changed since it was trusted" in mistake.problem
    assert names(hooks) == ["p", "fairlead.untrusted"]


async def test_a_trusted_project_whose_file_is_deleted_keeps_its_hooks(reloader, hooks, machine):
    machine.write(project=denies("p"))
    machine.trust()
    made = reloader()
    machine.write(project=None)
    (mistake,) = await made.reload()
    assert "is gone; the policy that was trusted stays in force" in mistake.problem
    assert names(hooks) == ["p", "fairlead.untrusted"]


async def test_a_project_that_changes_and_is_trusted_again_is_in_force(reloader, hooks, machine):
    machine.write(project=denies("p"))
    machine.trust()
    made = reloader()
    machine.write(project=denies("q"))
    machine.trust()
    assert await made.reload() == []
    assert names(hooks) == ["q"]


# --- what is in flight, what stays ---------------------------------------------------------------------------


async def test_a_dispatch_in_flight_keeps_the_hooks_it_started_with(reloader, hooks, machine):
    started, go = asyncio.Event(), asyncio.Event()

    async def hold(step: Any) -> None:
        started.set()
        await go.wait()

    hooks.add(hold, on="before_tool", name="hold", priority=1)
    made = reloader(user=denies("old"))
    in_flight = asyncio.create_task(hooks.dispatch(step("before_tool")))
    await started.wait()
    machine.write(user="")
    await made.reload()
    go.set()
    assert (await in_flight).hook == "old"
    assert (await hooks.dispatch(step("before_tool"))).proceeds


async def test_no_dispatch_ever_sees_half_of_a_change(reloader, hooks, machine):
    """Each file has two hooks that are always changed together."""
    pairs = [
        "".join(denies(f"{word}{i}", 'phase = "gate"', f"priority = {i}") for i in (1, 2)) for word in ("old", "new")
    ]
    made = reloader(user=pairs[0])
    seen: set[tuple[str, ...]] = set()

    async def look() -> None:
        while not done:
            decision = await hooks.dispatch(step("before_tool"))
            seen.add(tuple(hook_verdict.hook.name for hook_verdict in decision.verdicts))
            await asyncio.sleep(0)

    done = False
    looking = asyncio.create_task(look())
    for turn in range(20):
        machine.write(user=pairs[turn % 2])
        await made.reload()
        await asyncio.sleep(0)
    done = True
    await looking
    assert seen == {("old1", "old2"), ("new1", "new2")}


async def test_a_layer_that_did_not_change_keeps_its_very_hooks(reloader, hooks, machine):
    made = reloader(system=denies("s"), user=denies("u"))
    before = by_name(hooks)
    machine.write(user=denies("u") + denies("v"))
    await made.reload()
    after = by_name(hooks)
    assert after["s"] is before["s"]
    assert after["u"] is not before["u"]


async def test_a_layer_that_comes_back_to_what_it_was_keeps_its_very_hooks(reloader, hooks, machine):
    made = reloader(user=denies("u"))
    before = by_name(hooks)["u"]
    machine.write(user="= nonsense")
    await made.reload()
    machine.write(user=denies("u"))
    await made.reload()
    assert by_name(hooks)["u"] is before


PID = '[[hook]]\nname = "pid"\non = "before_tool"\nworker = ["/bin/sh", "worker.sh"]\n'
WORKER = """\
while IFS= read -r line; do id=${line#*:}; id=${id%%,*}
printf '{"id":%s,"verdict":{"control":"deny","reason":"%s"}}\\n' "$id" $$; done
"""


async def pid(hooks: Hooks) -> int:
    decision = await hooks.dispatch(step("before_tool"))
    assert decision.cause == "policy", decision.reason
    return int(decision.reason or "")


async def gone(pid: int) -> None:
    """Wait until a process runs no more, five seconds at most."""
    until = monotonic() + 5
    while _running(pid):
        assert monotonic() < until, "still running"
        await asyncio.sleep(0.01)


def _running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def working(machine) -> None:
    for layer in (machine.system, machine.user):
        (layer.parent / "worker.sh").write_text(WORKER)


@pytest.mark.usefixtures("working")
async def test_the_process_of_a_layer_that_did_not_change_goes_on(reloader, hooks, machine):
    made = reloader(system=PID)
    async with hooks:
        before = await pid(hooks)
        machine.write(user=denies("late", "priority = 90"))
        await made.reload()
        assert await pid(hooks) == before


@pytest.mark.usefixtures("working")
async def test_the_process_of_a_layer_with_a_mistake_goes_on(reloader, hooks, machine):
    made = reloader(user=PID)
    async with hooks:
        before = await pid(hooks)
        machine.write(user=PID + "nonsense = 1")
        await made.reload()
        assert await pid(hooks) == before


@pytest.mark.usefixtures("working")
async def test_the_process_of_a_hook_that_is_removed_ends(reloader, hooks, machine):
    made = reloader(user=PID)
    async with hooks:
        before = await pid(hooks)
        machine.write(user="")
        await made.reload()
        await gone(before)


@pytest.mark.usefixtures("working")
async def test_the_process_of_a_hook_that_is_disabled_ends(reloader, hooks, machine):
    made = reloader(system=PID)
    async with hooks:
        before = await pid(hooks)
        machine.write(user='disable = ["pid"]')
        await made.reload()
        await gone(before)


@pytest.mark.usefixtures("working")
async def test_a_hook_that_changed_gets_a_new_process(reloader, hooks, machine):
    made = reloader(user=PID)
    async with hooks:
        before = await pid(hooks)
        machine.write(user=PID + "timeout = 9\n")
        await made.reload()
        assert await pid(hooks) != before
        await gone(before)


async def test_a_step_that_a_removed_process_works_on_is_still_answered(reloader, hooks, machine):
    machine.user.with_name("worker.sh").write_text(
        "read -r line; id=${line#*:}; id=${id%%,*}; touch asked; while [ ! -e go ]; do sleep 0.01; done\n"
        'printf \'{"id":%s,"verdict":{"control":"deny","reason":"late"}}\\n\' "$id"\n'
    )
    made = reloader(user=PID)
    in_flight = asyncio.create_task(hooks.dispatch(step("before_tool")))
    while not machine.user.with_name("asked").exists():
        await asyncio.sleep(0.01)
    machine.write(user="")
    reloading = asyncio.create_task(made.reload())
    machine.user.with_name("go").touch()
    assert (await in_flight).reason == "late"
    await reloading


# --- watching ------------------------------------------------------------------------------------------------


class Watched:
    """A reloader that watches, and when it has read the files again."""

    def __init__(self, hooks: Hooks, cwd: Path) -> None:
        self._read: asyncio.Queue[Sequence[Mistake]] = asyncio.Queue()
        self.reloader = Reloader(hooks, cwd, on_reload=self._read.put_nowait)

    async def reads(self, done: Callable[[], bool] = lambda: True) -> Sequence[Mistake]:
        """What was found wrong by the reading after which this is so."""
        async with asyncio.timeout(10):
            while True:
                mistakes = await self._read.get()
                if done():
                    return mistakes


@asynccontextmanager
async def watching(hooks: Hooks, cwd: Path) -> AsyncIterator[Watched]:
    watched = Watched(hooks, cwd)
    async with watched.reloader.watching() as reloader:
        assert reloader is watched.reloader
        await asyncio.sleep(0)  # the watch begins
        yield watched


@pytest.mark.parametrize("layer", ["system", "user"])
async def test_a_file_that_changes_is_read_again(layer: str, hooks, machine):
    machine.write(**{layer: denies("a")})
    async with watching(hooks, machine.workspace) as watched:
        machine.write(**{layer: denies("b")})
        await watched.reads(lambda: names(hooks) == ["b"])


async def test_a_project_that_changes_is_read_again(hooks, machine):
    machine.write(project=denies("p"))
    machine.trust()
    async with watching(hooks, machine.workspace) as watched:
        machine.write(project=denies("q"))
        machine.trust()
        await watched.reads(lambda: names(hooks) == ["q"])


async def test_a_file_that_is_created_is_read(hooks, machine):
    async with watching(hooks, machine.workspace) as watched:
        machine.write(user=denies("a"))
        await watched.reads(lambda: names(hooks) == ["a"])


async def test_a_file_that_is_deleted_is_noticed(hooks, machine):
    machine.write(user=denies("a"))
    async with watching(hooks, machine.workspace) as watched:
        machine.write(user=None)
        await watched.reads(lambda: names(hooks) == [])


async def test_a_file_that_is_replaced_as_editors_do_is_read_again(hooks, machine):
    machine.write(user=denies("a"))
    async with watching(hooks, machine.workspace) as watched:
        new = machine.user.with_name(".fairlead.toml.new")
        new.write_text(denies("b"))
        new.replace(machine.user)
        await watched.reads(lambda: names(hooks) == ["b"])


async def test_a_mistake_while_watching_is_told_and_fixing_it_takes_effect(hooks, machine):
    machine.write(user=denies("a"))
    async with watching(hooks, machine.workspace) as watched:
        machine.write(user="nonsense = 1")
        (mistake,) = await watched.reads()
        assert ("nonsense" in mistake.problem, names(hooks)) == (True, ["a"])
        machine.write(user=denies("b"))
        await watched.reads(lambda: names(hooks) == ["b"])


async def test_trust_that_is_given_while_watching_takes_effect(hooks, machine):
    (machine.state / "fairlead").mkdir()
    machine.write(project=denies("p"))
    async with watching(hooks, machine.workspace) as watched:
        machine.trust()
        await watched.reads(lambda: names(hooks) == ["p"])


async def test_a_hangup_reloads(hooks, machine, monkeypatch):
    async def never(self: Reloader) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(Reloader, "watch", never)  # so that it is the signal and nothing else
    machine.write(user=denies("a"))
    async with watching(hooks, machine.workspace) as watched:
        machine.write(user=denies("b"))
        os.kill(os.getpid(), signal.SIGHUP)
        assert list(await watched.reads()) == []
    assert names(hooks) == ["b"]


async def test_after_watching_a_hangup_is_as_it_was(hooks, machine):
    before = signal.getsignal(signal.SIGHUP)
    async with watching(hooks, machine.workspace):
        assert signal.getsignal(signal.SIGHUP) != before
    assert signal.getsignal(signal.SIGHUP) == before


async def test_after_watching_nothing_of_it_runs_on(hooks, machine):
    before = asyncio.all_tasks()
    async with watching(hooks, machine.workspace):
        assert asyncio.all_tasks() > before
    assert asyncio.all_tasks() == before


# --- what seed 003 says of reloading -------------------------------------------------------------------------


async def test_seed_003_a_reload_replaces_the_whole_table_or_nothing(reloader, hooks, machine):
    made = reloader(user=denies("a") + denies("b"))
    machine.write(user=denies("c") + denies("d", "nonsense = 1"))
    await made.reload()
    assert names(hooks) == ["a", "b"]
    machine.write(user=denies("c") + denies("d"))
    await made.reload()
    assert names(hooks) == ["c", "d"]


async def test_seed_003_a_dispatch_in_flight_keeps_the_old_table(reloader, hooks, machine):
    made = reloader(user=denies("old", "priority = 90"))

    async def reload(step: Any) -> None:
        machine.write(user=denies("new", "priority = 90"))
        await made.reload()

    hooks.add(reload, on="before_tool", name="reload", priority=1)
    first, second = await hooks.dispatch(step("before_tool")), await hooks.dispatch(step("before_tool"))
    assert (first.hook, second.hook) == ("old", "new")
