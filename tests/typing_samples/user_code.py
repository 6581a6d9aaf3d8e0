"""Typical user code, checked strictly: what an author writes type-checks as it stands."""

from __future__ import annotations

import asyncio
from typing import assert_type

from fairlead import (
    Approval,
    ApprovalRequest,
    Decision,
    Hook,
    Hooks,
    Session,
    Step,
    Verdict,
    change,
    current_session,
    deny,
    inject,
    thaw,
)
from fairlead.lifecycle import AfterTool, BeforeInput, BeforeTool, ShellCall, TurnStart
from fairlead.packs import Pack
from fairlead.packs.lines import PackLine
from fairlead.registry import Decorate
from fairlead.shell import Command


async def approver(request: ApprovalRequest) -> Approval:
    return Approval("allow", "me", request.question)


hooks = Hooks(approver=approver, record=True)

assert_type(hooks.on.before_tool, Decorate[BeforeTool])
assert_type(hooks.on.before_input, Decorate[BeforeInput])


@hooks.on.before_tool
def bare(step: BeforeTool) -> Verdict | None:
    return deny("no") if step.target.command == "rm" else None


@hooks.on.before_tool(kind="shell", phase="gate", timeout=2.5, on_failure="open")
async def with_options(step: BeforeTool) -> Verdict | None:
    await asyncio.sleep(0)
    return change(args={**step.args, "safe": True})


@hooks.on.before_tool(kind="shell", priority=10)
def narrowed(step: ShellCall) -> Verdict | None:
    assert_type(step.target.command, str)
    calls = current_session().store.increment("calls")
    return deny("enough") if "--force" in step.target.command or calls > 100 else None


@hooks.on.after_tool(outcome="error", priority=10)
def only_errors(step: AfterTool) -> Verdict:
    return inject(f"{step.tool} failed: {step.error}")


@hooks.on.after_tool(phase="observe", detached=True)
def audit(step: AfterTool, decision: Decision[AfterTool]) -> None:
    print(step.tool, decision.control, decision.reason)


@hooks.on("*", phase="observe")
def everything(step: Step) -> None:
    print(step.event, step.session_id)


class Guard:
    def before_tool(self, step: BeforeTool) -> Verdict | None:
        return None

    async def turn_start(self, step: TurnStart) -> None: ...


hooks.add(Guard(), priority=10)
hooks.add(bare, on=["before_tool"], name="again", replace=True)


async def main() -> None:
    async with hooks.session(agent="demo", state={"n": 1}) as session:
        step = session.step(BeforeTool, tool="bash", args={"command": "ls"})
        assert_type(step, BeforeTool)
        decision = await session.dispatch(step)
        assert_type(decision, Decision[BeforeTool])
        if decision.denied:
            print(decision.reason or "")
        arguments = thaw(decision.step.args)
        print(arguments, decision.context, [failure.kind for failure in decision.failures])
        assert_type(current_session(None), Session | None)
    assert_type(hooks.dispatch_sync(TurnStart()), Decision[TurnStart])


# --- packs --------------------------------------------------------------------------------------------

acme = Pack("acme", "What Acme never wants an agent to do.")


@acme.rule(
    "deploy-to-production",
    level="disaster",
    programs=["deploy"],
    why="A deployment to production needs two people.",
    instead="Deploy to staging: `deploy staging`",
    stops=["deploy production"],
    passes=["deploy staging"],
)
def deploy_to_production(command: Command, line: PackLine) -> bool:
    return "production" in command.operands


assert_type(hooks.use("recommended"), tuple[Hook, ...])
hooks.use(
    "git", "files", level="strict", verdict="ask", protect=["~/photos"], allow_hosts=["ci.example"], enforce=False
)
hooks.use(acme, replace=True)
