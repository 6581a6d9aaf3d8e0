"""Grants: an answer that holds for later calls, and for exactly the call that was shown."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import Hooks, Verdict, ask, change
from fairlead.config.approvals import ApprovalSettings
from fairlead.decision import Decision
from fairlead.errors import FairleadError
from fairlead.hook import Hook
from fairlead.lifecycle import Agent, BeforeTool
from fairlead.packs import Pack
from fairlead.packs.judging import PackOptions, pack_hook
from fairlead.server import clocks, grants
from fairlead.server.approvals import AlreadyAnswered, ApprovalContext, ApprovalStore, Question, approval_context
from fairlead.server.grants import GrantRequest, NoSuchGrant

ROOT = "/srv/project"
TOKENS = ("ghp_" + "a1B2c3D4e5" * 4, "ghp_" + "z9Y8x7W6v5" * 4)


def asks(step: Any) -> Verdict:
    return ask("may it?")


class Desk:
    """Hooks that ask, and the store that takes the answers. Nothing waits for one."""

    def __init__(self, path: Path, *hooks: Hook) -> None:
        self.path = path
        self.store = ApprovalStore(path)
        self.hooks = Hooks(approver=self.store, approval_timeout=None)
        self.install(*(hooks or (self.hook(),)))
        self.context: dict[str, Any] = {}

    def hook(self, fn: Any = asks, name: str = "may", version: str = "1", **options: Any) -> Hook:
        return Hook(fn, "before_tool", name=name, phase="gate", layer="user", version=version, **options)

    def install(self, *hooks: Hook) -> None:
        self.hooks.replace_all(list(hooks), source="code")

    async def judge(self, step: BeforeTool) -> Decision[BeforeTool]:
        approval_context.set(ApprovalContext(**{"root": ROOT, "policy": "p", "deadline": 0.0} | self.context))
        return await self.hooks.dispatch(step)

    async def runs(self, step: BeforeTool) -> bool:
        return not (await self.judge(step)).denied

    async def question(self, step: BeforeTool) -> Question:
        """What is asked about a step that nothing lets through."""
        assert not await self.runs(step)
        return self.store.questions()[-1]

    async def grant(self, step: BeforeTool, scope: Any = "project", lasts: float | None = None) -> str:
        """Grant a step. Returns the grant's id."""
        for one in [await self.question(step), *self.store.questions()[:-1]]:
            self.store.answer(one.id, True, "ann", "it is fine", grant=GrantRequest(scope, lasts))
        return self.store.list_grants()[-1].id

    def restart(self) -> None:
        """Open the file again, as the next daemon does."""
        self.store.close()
        self.store = self.hooks.approver = ApprovalStore(self.path)  # type: ignore[assignment]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path / "state" / "approvals.db")
    yield made
    made.store.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "work"
    made.mkdir()
    return made


@pytest.fixture
def bash(folder: Path) -> Any:
    """Makes calls of a shell in a folder that is there."""

    def call(command: str = "make tea", **fields: Any) -> BeforeTool:
        args = {"command": command, **fields.pop("args", {})}
        return BeforeTool(**{"tool": "bash", "args": args, "cwd": str(folder), "session_id": "s"} | fields)

    return call


# --- what a grant lets through --------------------------------------------------------------------


async def test_a_grant_lets_the_same_call_run_again_and_again(desk: Desk, bash: Any) -> None:
    name = await desk.grant(bash())
    assert [await desk.runs(bash()) for _ in range(3)] == [True] * 3
    assert [(one.id, one.uses) for one in desk.store.list_grants()] == [(name, 3)]


@pytest.mark.parametrize("spelling", ["make  tea", "make 'tea'", ' make "te"a', "make tea\n"])
async def test_the_same_words_are_the_same_command(spelling: str, desk: Desk, bash: Any) -> None:
    await desk.grant(bash())
    assert await desk.runs(bash(spelling)) is ("\n" not in spelling)


async def test_how_a_model_words_the_call_does_not_matter(desk: Desk, bash: Any) -> None:
    await desk.grant(bash(args={"description": "Makes tea"}))
    assert await desk.runs(bash(args={"description": "Let me make some tea", "timeout": 3000}, call_id="c2"))


OTHERS: dict[str, dict[str, Any]] = {
    "another command": {"command": "make coffee"},
    "one more word": {"command": "make tea now"},
    "another order": {"command": "tea make"},
    "another program of that name": {"command": "./make tea"},
    "one more command": {"command": "make tea; make coffee"},
    "in the background": {"command": "make tea &"},
    "with a variable": {"command": "TEA=green make tea"},
    "into a file": {"command": "make tea > cup"},
    "from a file": {"command": "make tea < cup"},
    "of another program": {"command": "sudo make tea"},
    "negated": {"command": "! make tea"},
    "in a subshell": {"command": "(make tea)"},
    "with an argument that matters": {"args": {"dangerouslyDisableSandbox": True}},
    "in another folder of the call": {"args": {"workdir": "/srv"}},
    "of another tool": {"tool": "shell"},
    "of another agent": {"agent": Agent(name="reviewer")},
    "of another user": {"user_id": "bob"},
    "of another host": {"host": "codex"},
    "in another folder": {"cwd": "/srv"},
}  # fmt: skip


@pytest.mark.parametrize("how", OTHERS)
async def test_a_call_that_differs_is_asked_about(how: str, desk: Desk, bash: Any) -> None:
    await desk.grant(bash())
    assert not await desk.runs(bash(**OTHERS[how]))


async def test_the_order_of_arguments_counts(desk: Desk, bash: Any) -> None:
    await desk.grant(bash("rm a b"))
    assert not await desk.runs(bash("rm b a"))


async def test_another_project_is_asked_about(desk: Desk, bash: Any) -> None:
    await desk.grant(bash())
    desk.context["root"] = "/srv/other"
    assert not await desk.runs(bash())


async def test_another_caller_is_asked_about(desk: Desk, bash: Any) -> None:
    await desk.grant(bash())
    desk.context["root"] = f"token 'ci': {ROOT}"
    assert not await desk.runs(bash())


async def test_commands_that_differ_in_a_hidden_secret_are_two(desk: Desk, bash: Any) -> None:
    one, other = (bash(f"curl -H 'Authorization: Bearer {token}' https://x.example") for token in TOKENS)
    shown = [(await desk.question(step)).step["args"] for step in (one, other)]
    assert shown[0] == shown[1]
    first = desk.store.questions()[0]
    desk.store.answer(first.id, True, "ann", None, grant=GrantRequest("project"))
    assert (await desk.runs(one), await desk.runs(other)) == (True, False)


async def test_a_folder_that_is_a_link_to_another_one_now_is_another_folder(
    desk: Desk, bash: Any, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    link.symlink_to(tmp_path / "one")
    await desk.grant(bash(cwd=str(link)))
    assert await desk.runs(bash(cwd=str(link)))
    link.unlink()
    link.symlink_to(tmp_path / "two")
    assert not await desk.runs(bash(cwd=str(link)))


@pytest.mark.parametrize("command", ["rm -r build", "rm -r ./build", "rm --target=build x"])
async def test_a_path_that_becomes_a_link_is_another_path(command: str, desk: Desk, bash: Any, folder: Path) -> None:
    (folder / "build").mkdir()
    await desk.grant(bash(command))
    assert await desk.runs(bash(command))
    (folder / "build").rmdir()
    (folder / "build").symlink_to("/")
    assert not await desk.runs(bash(command))


async def test_a_tool_that_is_no_shell_needs_exactly_its_arguments(desk: Desk, bash: Any) -> None:
    fetch: dict[str, Any] = {"tool": "WebFetch", "args": {"url": "https://x.example/a", "prompt": "read"}}
    write: dict[str, Any] = {"tool": "Write", "args": {"file_path": "notes.txt", "content": "one"}}
    for call in (fetch, write):
        same = BeforeTool(cwd="/srv", session_id="s", **call)
        await desk.grant(same)
        assert await desk.runs(same)
        for name in call["args"]:
            other = BeforeTool(cwd="/srv", session_id="s", **call | {"args": {**call["args"], name: "other"}})
            assert not await desk.runs(other)
        assert not await desk.runs(BeforeTool(cwd="/srv", session_id="s", **call | {"tool": "Other"}))


# --- what transforms do ---------------------------------------------------------------------------


async def test_the_final_step_counts_and_not_what_came(desk: Desk, bash: Any) -> None:
    def trash(step: Any) -> Verdict | None:
        return change(command="mkdir -p .trash") if step.target.command == "rm -rf build" else None

    changing = Hook(trash, "before_tool", name="trash", version="1")
    desk.install(changing, desk.hook())
    question = await desk.question(bash("rm -rf build"))
    assert (question.step["args"]["command"], question.changed_by) == ("mkdir -p .trash", ("trash",))
    assert question.changes == (("args.command", "rm -rf build", "mkdir -p .trash"),)
    desk.store.answer(question.id, True, "ann", None, grant=GrantRequest("project"))
    assert await desk.runs(bash("rm -rf build"))
    desk.install(desk.hook())
    assert not await desk.runs(bash("rm -rf build"))


# --- several questions ----------------------------------------------------------------------------


async def test_a_grant_for_one_of_two_questions_answers_that_one_only(desk: Desk, bash: Any) -> None:
    first, second = desk.hook(name="one"), desk.hook(lambda step: ask("and this?"), name="two")
    desk.install(first)
    await desk.grant(bash())
    desk.install(first, second)
    assert not await desk.runs(bash())
    (open_one,) = desk.store.questions()
    assert (open_one.hook, desk.store.list_grants()[0].uses) == ("two", 0)
    desk.store.answer(open_one.id, True, "ann", None)
    assert await desk.runs(bash())
    assert not await desk.runs(bash())


async def test_a_question_in_other_words_is_another_question(desk: Desk, bash: Any) -> None:
    texts = iter(["spend 5 EUR?", "spend 500 EUR?", "spend 5 EUR?"])
    desk.install(desk.hook(lambda step: ask(next(texts))))
    await desk.grant(bash())
    assert [await desk.runs(bash()), await desk.runs(bash())] == [False, True]


# --- hooks that change ----------------------------------------------------------------------------


async def test_a_hook_that_is_not_what_it_was_asks_and_says_so(desk: Desk, bash: Any) -> None:
    name = await desk.grant(bash())
    desk.install(desk.hook(version="2"))
    question = await desk.question(bash())
    assert question.note == f"grant {name} does not answer this: the hook 'may' is not what it was"
    desk.install(desk.hook())
    assert await desk.runs(bash())


async def test_a_hook_of_another_layer_or_with_other_options_asks(desk: Desk, bash: Any) -> None:
    await desk.grant(bash())
    desk.install(Hook(asks, "before_tool", name="may", phase="gate", layer="project", version="1"))
    assert not await desk.runs(bash())
    desk.install(desk.hook(priority=1))
    assert not await desk.runs(bash())


# --- what has no grant ----------------------------------------------------------------------------


PACK = Pack("acme", "What Acme never wants.")
EXAMPLES: dict[str, Any] = {"why": "It is bad.", "instead": "Do not.", "programs": ["deploy"]}


@PACK.rule("disaster", level="disaster", stops=["deploy production"], passes=["deploy staging"], **EXAMPLES)
def deploy_production(command: Any, line: Any) -> bool:
    return "production" in command.operands


@PACK.rule("loss", level="destructive", stops=["deploy staging"], passes=["deploy nothing"], **EXAMPLES)
def deploy_staging(command: Any, line: Any) -> bool:
    return "staging" in command.operands


UNSURE = [
    "make $TEA", "make $(cat tea)", "make *.tea", "rm -rf build/[ab]", "cat {} | xargs rm", "eval \"$TEA\"",
    "cd $X && ls",
    "find . -exec rm {} +",
    "`tea`", "make \"", "for x in *; do rm $x; done", "cd \"$HOME/x\"; ls", "x" * 5000,
    " ".join(["w"] * 100), "",
]  # fmt: skip


@pytest.mark.parametrize("command", UNSURE)
async def test_a_command_that_is_not_fully_known_has_no_grant(command: str, desk: Desk, bash: Any) -> None:
    question = await desk.question(bash(command))
    assert (question.grants, question.no_grant is None) == ((), False)
    with pytest.raises(FairleadError, match="there is no grant for this question"):
        desk.store.answer(question.id, True, None, None, grant=GrantRequest("project"))
    assert desk.store.question(question.id).state == "pending"


async def test_a_line_that_sets_its_own_variable_or_alias_is_only_itself(desk: Desk, bash: Any) -> None:
    await desk.grant(bash("X=build; rm -rf $X"))
    await desk.grant(bash("alias wipe='rm -rf'; wipe build"))
    assert await desk.runs(bash("X=build; rm -rf $X"))
    for other in ("rm -rf build", "rm -rf $X", "X=src; rm -rf $X", "wipe build", "alias wipe=ls; wipe build"):
        assert not await desk.runs(bash(other))


@pytest.mark.parametrize(("tool", "dialect"), [("powershell", "powershell"), ("cmd.exe", "cmd")])
async def test_a_shell_that_is_not_fully_read_has_no_grant(tool: str, dialect: str, desk: Desk, folder: Path) -> None:
    step = BeforeTool(tool=tool, args={"command": "make tea"}, cwd=str(folder), session_id="s")
    question = await desk.question(step)
    assert (question.step["target"].get("dialect"), question.grants) == (dialect, ())


async def test_a_disaster_has_no_grant_and_a_loss_has(desk: Desk, bash: Any) -> None:
    desk.install(pack_hook(PACK, PackOptions(verdict="ask")))
    disaster, loss = await desk.question(bash("deploy production")), await desk.question(bash("deploy staging"))
    assert (disaster.rule, disaster.no_grant) == ("acme/disaster", "acme/disaster guards against disasters")
    assert (loss.rule, loss.level, loss.grants) == ("acme/loss", "destructive", ("session", "project"))
    desk.store.answer(loss.id, True, None, None, grant=GrantRequest("session"))
    assert await desk.runs(bash("deploy staging"))
    assert not await desk.runs(bash("deploy staging production"))


async def test_a_rule_that_a_hook_only_claims_counts_for_nothing(desk: Desk, bash: Any) -> None:
    texts = iter(["one?", "two?"])
    desk.install(desk.hook(lambda step: ask(next(texts), metadata={"rule": "acme/loss", "level": "strict"})))
    await desk.grant(bash())
    assert not await desk.runs(bash())
    assert desk.store.questions()[-1].rule is None


async def test_an_exempted_pack_is_another_pack(desk: Desk, bash: Any) -> None:
    desk.install(pack_hook(PACK, PackOptions(verdict="ask")))
    await desk.grant(bash("deploy staging"))
    desk.install(pack_hook(PACK, PackOptions(verdict="ask", level="strict")))
    assert not await desk.runs(bash("deploy staging"))


async def test_a_locked_hook_has_no_grant(desk: Desk, bash: Any) -> None:
    desk.install(desk.hook(locked=True))
    assert (await desk.question(bash())).no_grant == "the hook is locked"


async def test_a_hook_that_was_locked_since_uses_no_grant(desk: Desk, bash: Any) -> None:
    await desk.grant(bash())
    desk.install(desk.hook(locked=True))
    assert not await desk.runs(bash())


async def test_a_hook_that_fails_has_no_grant(desk: Desk, bash: Any) -> None:
    def broken(step: Any) -> Verdict:
        raise ValueError

    desk.install(desk.hook(broken, on_failure=ask("it is broken; go on?")))
    assert (await desk.question(bash())).no_grant == "the hook failed, and asks for that reason"


async def test_grants_can_be_forbidden_also_those_that_were_given(desk: Desk, bash: Any) -> None:
    await desk.grant(bash())
    desk.context["settings"] = ApprovalSettings(grants=False)
    question = await desk.question(bash())
    assert question.no_grant == "`grants = false` in [approvals] forbids grants"


async def test_a_call_in_no_known_folder_has_no_grant(desk: Desk, bash: Any) -> None:
    assert (await desk.question(bash(cwd=None))).grants == ()


async def test_a_call_of_no_session_is_granted_for_the_project_only(desk: Desk, bash: Any) -> None:
    question = await desk.question(bash(session_id=None))
    assert question.grants == ("project",)
    with pytest.raises(FairleadError, match="belongs to no session"):
        desk.store.answer(question.id, True, None, None, grant=GrantRequest("session"))


def test_a_refusal_is_no_grant(desk: Desk, bash: Any) -> None:
    question = asyncio.run(desk.question(bash()))
    with pytest.raises(FairleadError, match="a refusal is no grant"):
        desk.store.answer(question.id, False, None, None, grant=GrantRequest("project"))


# --- sessions, ends and clocks --------------------------------------------------------------------


async def test_a_grant_for_a_session_is_for_no_other(desk: Desk, bash: Any) -> None:
    await desk.grant(bash(), "session")
    assert (await desk.runs(bash()), await desk.runs(bash(session_id="t"))) == (True, False)


async def test_a_grant_for_a_project_is_for_all_its_sessions(desk: Desk, bash: Any) -> None:
    await desk.grant(bash(), "project")
    assert (await desk.runs(bash(session_id="t")), await desk.runs(bash(session_id=None))) == (True, True)


async def test_a_grant_for_a_session_ends_with_it(desk: Desk, bash: Any) -> None:
    await desk.grant(bash(), "session")
    desk.store.end_session(ROOT, "other")
    assert await desk.runs(bash())
    desk.store.end_session(ROOT, "s")
    assert not await desk.runs(bash())


@pytest.mark.parametrize("scope", ["session", "project"])
async def test_a_restart_ends_no_grant(scope: str, desk: Desk, bash: Any) -> None:
    await desk.grant(bash(), scope)
    desk.restart()
    assert await desk.runs(bash())


class Clock:
    """The clocks of a machine, and which start of it this is."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.wall, self.up, self.boot = 1e9, 1000.0, "first"
        patch.setattr(time, "time", lambda: self.wall)
        patch.setattr(clocks, "uptime", lambda: self.up)
        patch.setattr(clocks, "boot_id", lambda: self.boot)

    def forward(self, seconds: float) -> None:
        self.wall += seconds
        self.up += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def test_a_grant_ends(desk: Desk, bash: Any, clock: Clock) -> None:
    await desk.grant(bash(), lasts=600)
    clock.forward(599)
    assert await desk.runs(bash())
    clock.forward(2)
    assert not await desk.runs(bash())
    assert [one.state for one in desk.store.list_grants(every=True)] == ["ended"]


async def test_a_clock_that_is_set_back_makes_no_grant_last_longer(desk: Desk, bash: Any, clock: Clock) -> None:
    await desk.grant(bash(), lasts=600)
    clock.forward(300)
    clock.wall -= 86400
    assert not await desk.runs(bash())


async def test_a_clock_that_is_set_back_while_the_machine_is_off_ends_a_grant(
    desk: Desk, bash: Any, clock: Clock
) -> None:
    await desk.grant(bash(), lasts=86400)
    clock.forward(3600)
    assert await desk.runs(bash())
    clock.boot, clock.up, clock.wall = "second", 5.0, clock.wall - 1800
    assert not await desk.runs(bash())


async def test_a_clock_that_goes_back_a_little_ends_nothing(desk: Desk, bash: Any, clock: Clock) -> None:
    await desk.grant(bash(), lasts=86400)
    clock.wall -= 60
    assert await desk.runs(bash())


async def test_the_next_start_of_the_machine_ends_a_session_and_no_project(desk: Desk, bash: Any, clock: Clock) -> None:
    await desk.grant(bash("make tea"), "session")
    await desk.grant(bash("make coffee"), "project")
    clock.boot, clock.up = "second", 5.0
    assert (await desk.runs(bash("make tea")), await desk.runs(bash("make coffee"))) == (False, True)


@pytest.mark.parametrize(("scope", "days"), [("session", 1), ("project", 30)])
async def test_no_grant_lasts_for_ever(scope: Any, days: int, desk: Desk, bash: Any, clock: Clock) -> None:
    with pytest.raises(FairleadError, match=f"{days} days at most"):
        await desk.grant(bash(), scope, days * 86400 + 1)
    await desk.grant(bash("make coffee"), scope)
    clock.forward(days * 86400 + 1)
    assert not await desk.runs(bash("make coffee"))


@pytest.mark.parametrize("lasts", [0, -1, float("nan"), float("inf")])
async def test_a_grant_lasts_some_time(lasts: float, desk: Desk, bash: Any) -> None:
    with pytest.raises(FairleadError, match="at most"):
        await desk.grant(bash(), "project", lasts)


# --- revoking -------------------------------------------------------------------------------------


async def test_a_revoked_grant_lets_nothing_through(desk: Desk, bash: Any) -> None:
    name = await desk.grant(bash())
    assert desk.store.revoke(name[:4]).state == "revoked"
    assert not await desk.runs(bash())


async def test_a_grant_without_a_waiting_caller_leaves_no_approval_behind(desk: Desk, bash: Any) -> None:
    desk.store.revoke(await desk.grant(bash()))
    assert not await desk.runs(bash())


async def test_what_is_revoked_is_revoked_once(desk: Desk, bash: Any) -> None:
    name = await desk.grant(bash())
    desk.store.revoke(name)
    with pytest.raises(AlreadyAnswered):
        desk.store.revoke(name)
    for unknown in ("zzz", ""):
        with pytest.raises(NoSuchGrant):
            desk.store.revoke(unknown)


async def test_a_grant_is_revoked_while_another_question_of_the_call_waits(desk: Desk, bash: Any) -> None:
    first, second = desk.hook(name="one"), desk.hook(lambda step: ask("and this?"), name="two")
    desk.install(first)
    name = await desk.grant(bash())
    desk.install(first, second)
    desk.context["deadline"] = 30.0
    call = asyncio.create_task(desk.judge(bash()))
    while not desk.store.questions():
        await asyncio.sleep(0)
    desk.store.revoke(name)
    desk.store.answer(desk.store.questions()[0].id, True, None, None)
    assert (await call).denied


async def test_two_daemons_see_a_revocation_at_once(desk: Desk, bash: Any) -> None:
    name = await desk.grant(bash())
    other = ApprovalStore(desk.path)
    other.revoke(name)
    other.close()
    assert not await desk.runs(bash())


async def test_no_call_uses_a_grant_once_it_is_revoked_whoever_is_at_it(desk: Desk, bash: Any) -> None:
    """Calls run all the time, and another process revokes."""
    name = await desk.grant(bash())
    revoked = threading.Event()

    def revoke() -> None:
        other = ApprovalStore(desk.path)
        other.revoke(name)
        other.close()
        revoked.set()

    revoking = threading.Timer(0.05, revoke)
    revoking.start()
    before = after = 0
    while after < 20:
        was_revoked = revoked.is_set()
        ran = await desk.runs(bash())
        before += ran and not was_revoked
        after += was_revoked
        assert not (ran and was_revoked)
    revoking.join()
    assert before > 0
    assert desk.store.list_grants(every=True)[0].uses == before


async def test_a_grant_wakes_all_calls_that_wait_for_the_same(desk: Desk, bash: Any) -> None:
    desk.context["deadline"] = 30.0
    calls = [asyncio.create_task(desk.judge(bash(call_id=str(number)))) for number in range(5)]
    while len(desk.store.questions()) < 5:
        await asyncio.sleep(0)
    desk.store.answer(desk.store.questions()[2].id, True, "ann", None, grant=GrantRequest("session"))
    assert [(await call).denied for call in calls] == [False] * 5
    assert (desk.store.questions(), desk.store.list_grants()[0].uses) == ([], 5)


# --- what is kept ---------------------------------------------------------------------------------


async def test_a_decision_names_the_grant_its_giver_and_when(desk: Desk, bash: Any) -> None:
    name = await desk.grant(bash())
    approval = (await desk.judge(bash())).approval
    assert approval is not None
    assert (approval.answer, approval.who) == ("allow", "ann")
    day = time.strftime("%Y-%m-%d")
    assert approval.why is not None
    assert approval.why.startswith(f"grant {name} (for this project, given {day}")
    assert approval.why.endswith("by ann): it is fine")


async def test_no_secret_is_in_the_file(desk: Desk, bash: Any) -> None:
    await desk.grant(bash(f"curl -H 'Authorization: Bearer {TOKENS[0]}' https://x.example"))
    assert "redacted" in desk.store.list_grants()[0].summary
    desk.store.close()
    assert [file for file in desk.path.parent.iterdir() if TOKENS[0].encode() in file.read_bytes()] == []
    desk.store = ApprovalStore(desk.path)


async def test_only_the_user_reads_the_file(desk: Desk, bash: Any) -> None:
    await desk.grant(bash())
    assert desk.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "command",
    [
        "sqlite3 {} 'INSERT INTO grants VALUES (1)'",
        "cp mine.db {}",
        "python3 -c \"import sqlite3; sqlite3.connect('{}').execute('UPDATE grants SET wall = 9e9')\"",
        "rm {}",
        "fairlead approvals approve 3b99 --grant project",
    ],
)
def test_no_agent_writes_a_grant_into_the_file(command: str, tmp_path: Path) -> None:
    from fairlead.packs.guard import guard_hook

    hooks = Hooks()
    hooks.replace_all([guard_hook(tmp_path / "state")], source="guard")
    line = command.format(tmp_path / "state" / "approvals.db")
    assert hooks.dispatch_sync(BeforeTool(tool="bash", args={"command": line}, cwd="/srv")).denied


async def test_there_is_a_limit(desk: Desk, bash: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "LIMIT", 1)
    await desk.grant(bash())
    with pytest.raises(FairleadError, match="in force already"):
        await desk.grant(bash("make coffee"))
    assert len(desk.store.questions()) == 1


def test_a_file_of_an_older_fairlead_is_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "state" / "approvals.db"
    path.parent.mkdir(mode=0o700)
    with sqlite3.connect(path) as db:
        db.execute(
            "CREATE TABLE approvals (id TEXT PRIMARY KEY, bound TEXT NOT NULL, state TEXT NOT NULL, hook TEXT, "
            "question TEXT, step BLOB NOT NULL, session TEXT, root TEXT, asked REAL NOT NULL, wall REAL NOT NULL, "
            "uptime REAL NOT NULL, boot TEXT NOT NULL, who TEXT, why TEXT)"
        )
        end = clocks.Expiry.after(600)
        db.execute(
            "INSERT INTO approvals VALUES "
            "('a', 'b', 'pending', 'may', 'may it?', '{}', 's', '/p', 1, ?, ?, ?, NULL, NULL)",
            end,
        )
    db.close()
    store = ApprovalStore(path)
    (old,) = store.questions()
    assert (old.question, old.no_grant) == ("may it?", "the question was asked by an older fairlead")
    assert store.answer("a", True, None, None).state == "approved"
    store.close()


# --- any two calls --------------------------------------------------------------------------------

WORDS = st.text(st.sampled_from("ab-./='\" $*;&|~\\\t\n"), max_size=8)
LINES = st.lists(WORDS | st.sampled_from(["rm", "-rf", "build", "&&", "cd x", "A=1"]), max_size=5).map(" ".join)


class Binding:
    """Terms of calls, without a file."""

    def __init__(self) -> None:
        self.hook = Hook(asks, "before_tool", name="may", phase="gate", version="1")

    def terms(self, step: BeforeTool) -> grants.GrantTerms:
        from fairlead.approvals import ApprovalRequest
        from fairlead.verdict import HookVerdict

        request = ApprovalRequest(step, "may", "may it?", verdicts=(HookVerdict(self.hook, ask("may it?")),))
        return grants.terms_of(request, ApprovalContext(ROOT), b"key")


def shell_words(command: str) -> list[str] | None:
    """The words that a real shell makes of a line; None if it is no plain line."""
    import shlex

    try:
        return shlex.split(command)
    except ValueError:
        return None


def shell_step(command: str, **fields: Any) -> BeforeTool:
    return BeforeTool(tool="bash", args={"command": command}, cwd="/srv", **fields)


@settings(max_examples=300, deadline=None)
@given(LINES, LINES)
def test_two_lines_share_a_grant_only_if_their_words_are_the_same(one: str, other: str) -> None:
    first, second = (Binding().terms(shell_step(line)) for line in (one, other))
    if first.refusal is None and second.refusal is None and first.bound == second.bound:
        assert one == other or shell_words(one) == shell_words(other)


@settings(max_examples=200, deadline=None)
@given(LINES)
def test_the_same_call_has_the_same_terms(line: str) -> None:
    assert Binding().terms(shell_step(line)) == Binding().terms(shell_step(line))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4), lambda v: st.lists(v, max_size=2)
)


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.text(max_size=3), VALUES, max_size=3), st.dictionaries(st.text(max_size=3), VALUES, max_size=3)
)
def test_calls_of_other_tools_share_a_grant_only_if_their_arguments_are_the_same(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    first, second = (Binding().terms(BeforeTool(tool="custom", args=args, cwd="/srv")) for args in (one, other))
    if first.refusal is None and first.bound == second.bound:
        assert msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def test_a_folder_that_cannot_be_looked_at_breaks_nothing() -> None:
    assert Binding().terms(shell_step("ls")).refusal is None
    for folder in ("/srv/\0", "/" + "x" * 5000, os.path.join("/", *["x"] * 2000)):
        step = msgspec.structs.replace(shell_step("ls"), cwd=folder)
        assert Binding().terms(step).bound
