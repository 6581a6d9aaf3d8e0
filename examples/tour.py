"""A tour of fairlead: real steps through real hooks, and what became of each.

Run it with `make demo`, or `python examples/tour.py`. It needs no key and no network.
"""

from __future__ import annotations

import asyncio

from fairlead import Approval, ApprovalRequest, Hooks, Step, Verdict, ask, change, current_session, deny, extend, inject
from fairlead.lifecycle import AfterTool, BeforeInput, BeforeTool, BeforeTurnEnd


async def anna(request: ApprovalRequest) -> Approval:
    """Stands in for a human: says yes to one thing."""
    return Approval("allow", "anna", "it is a scratch folder")


hooks = Hooks(approver=anna, record=True)


@hooks.on.before_tool(kind="shell", phase="gate")
def no_force_push(step: BeforeTool) -> Verdict | None:
    if step.target.runs("git push", "--force"):
        return deny("force-push is off; open a pull request")
    return None


@hooks.on.before_tool(kind="shell")
def dry_run_first(step: BeforeTool) -> Verdict | None:
    command = step.target.command or ""
    if command.startswith("terraform apply"):
        return change("a dry run first", command=command.replace("apply", "plan"))
    return None


@hooks.on.before_tool(kind="shell", phase="gate")
def ask_before_deleting(step: BeforeTool) -> Verdict | None:
    if step.target.runs("rm", "--recursive"):
        return ask(f"Really run {step.target.command!r}?")
    return None


@hooks.on.after_tool
def redact_tokens(step: AfterTool) -> Verdict | None:
    if isinstance(step.output, str) and "ghp_" in step.output:
        return change(output=step.output.split("ghp_")[0] + "[redacted]")
    return None


@hooks.on.before_input
def say_where_we_are(step: BeforeInput) -> Verdict:
    return inject("You are on branch main; the build is red.")


@hooks.on.before_turn_end
def tests_first(step: BeforeTurnEnd) -> Verdict | None:
    session = current_session()
    if session is not None and not session.state.get("tests pass"):
        return extend("The tests still fail. Fix them before you stop.")
    return None


@hooks.on.before_tool(tool="deploy", timeout=0.05)
async def change_calendar(step: BeforeTool) -> None:
    await asyncio.Event().wait()  # the calendar service never answers


@hooks.on.before_tool(tool="WebFetch", phase="gate", enforce=False)
def internal_only(step: BeforeTool) -> Verdict | None:
    if "acme.example" not in (step.target.url or ""):
        return deny("only internal pages")
    return None


async def main() -> None:
    print("fairlead: eight steps through eight hooks\n")
    async with hooks.session(agent="demo", host="tour") as session:

        async def show(title: str, step: Step) -> None:
            print(f"# {title}")
            print(f"{await session.dispatch(step)}\n")

        def bash(command: str) -> BeforeTool:
            return session.step(BeforeTool, tool="bash", args={"command": command})

        await show(
            "A message arrives, and a hook adds what the model should know", session.step(BeforeInput, input="hi")
        )
        await show("A dangerous command is denied, with a reason the model sees", bash("git push --force"))
        await show("An argument is rewritten before anything judges it", bash("terraform apply prod"))
        await show("A human is asked, and says yes", bash("rm -r /tmp/scratch"))
        leak = session.step(AfterTool, tool="bash", args={"command": "env"}, output="TOKEN=ghp_abcdef")
        await show("A secret is taken out of a tool's output", leak)
        await show("A hook hangs: it is cut off, and the call falls closed", session.step(BeforeTool, tool="deploy"))
        fetch = session.step(BeforeTool, tool="WebFetch", args={"url": "https://example.org"})
        await show("A policy on trial: recorded, not enforced", fetch)
        await show("The turn may not end yet", session.step(BeforeTurnEnd))


if __name__ == "__main__":
    asyncio.run(main())
