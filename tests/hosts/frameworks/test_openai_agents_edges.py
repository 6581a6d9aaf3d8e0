"""The OpenAI Agents SDK: what odd models, other runners and careless callers do."""

from __future__ import annotations

from typing import Any

import pytest
from agents import ApplyPatchTool, LocalShellTool, Runner, RunState, ShellTool, SQLiteSession, function_tool, handoff
from agents.editor import ApplyPatchOperation
from agents.run import set_default_agent_runner
from driver import Call, Say, call
from driver_openai_agents import drained, function_call, message
from openai.types.responses.response_apply_patch_tool_call import OperationUpdateFile, ResponseApplyPatchToolCall
from openai.types.responses.response_output_item import LocalShellCall, LocalShellCallAction
from scene import has
from test_openai_agents import LS, Answer, Stage, answered, shell_call, with_helper
from test_openai_agents import _default_runner as _default_runner
from test_openai_agents import stage as stage

from fairlead import HookAborted, Hooks, abort, allow, ask, change, deny, extend, stop
from fairlead.hosts.frameworks import adapter
from fairlead.hosts.frameworks.openai_agents import Fairlead
from fairlead.hosts.frameworks.openai_agents.tool_calls import REPORTS_ERRORS
from fairlead.lifecycle import Notification

HOSTED = "environment" in ShellTool.__dataclass_fields__
MOVES = "move_to" in ApplyPatchOperation.__dataclass_fields__


def numbered(command: str, call_id: str = "call_0") -> Any:
    """A call of a model that numbers its calls anew each time."""
    made = function_call("shell", {"command": command})
    made.call_id = call_id
    return made


def secrets(on: str, stage: Stage) -> None:
    """Refuses every message with hunter2."""
    stage.add(lambda step: deny("secret") if "hunter2" in str(getattr(step, on)) else None, on=EVENT[on])


EVENT = {"input": "before_input", "content": "before_output", "output": "after_tool"}


async def go(stage: Stage, agent: Any, given: Any, streaming: bool, **options: Any) -> Any:
    if streaming:
        return await drained(stage.runner.run_streamed(agent, given, **options), stage.played)
    return await stage.runner.run(agent, given, **options)


# --- approvals --------------------------------------------------------------------------------------


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("same", [False, True])
async def test_an_answer_is_one_to_the_question_of_its_own_run(
    stage: Stage,
    written: bool,
    same: bool,
) -> None:
    stage.add(ask("May it?"), on="before_tool")
    alice, bob = stage.agent([numbered("ls")]), stage.agent([numbered("ls" if same else "rm -rf /")])
    result = await stage.runner.run(alice, "List.", session=SQLiteSession("alice"))
    await stage.runner.run(bob, "Delete.", session=SQLiteSession("bob"))
    state = result.to_state()
    if written:
        state = await RunState.from_string(stage.runner.agent(alice), state.to_string())
    state.approve(state.get_interruptions()[0])
    await stage.runner.run(alice, state, session=SQLiteSession("alice"))
    assert stage.ran == ["ls"]
    assert [step.session_id for step in stage.steps("after_tool")] == ["alice"]


async def test_a_question_says_why_and_with_which_arguments(stage: Stage) -> None:
    stage.add(ask("Hidden files, too?"), on="before_permission")
    stage.add(change(args={"command": "ls -a"}), on="before_tool", name="wider")
    result = await stage.runner.run(stage.agent([numbered("ls")]), "List.")
    asked = stage.runner.question(result.interruptions[0])
    assert asked is not None
    assert (asked.reason, asked.step.args["command"]) == ("Hidden files, too?", "ls -a")
    state = result.to_state()
    state.approve(result.interruptions[0])
    await stage.runner.run(result.last_agent, state)
    assert (stage.ran, stage.runner.question(result.interruptions[0])) == (["ls -a"], None)


async def test_an_approval_is_not_one_of_a_later_call_with_the_same_id(stage: Stage) -> None:
    stage.add(ask("May it?"), on="before_tool")
    agent = stage.agent([numbered("ls")], [numbered("rm -rf /")])
    state = (await stage.runner.run(agent, "Go.")).to_state()
    state.approve(state.get_interruptions()[0])
    try:
        await stage.runner.run(agent, state)
    except Exception as error:  # newer ones have none of it
        assert "unique call ID" in str(error)  # noqa: PT017
    assert stage.ran == ["ls"]


async def test_a_tool_that_is_approved_for_good_is_not_asked_about_again(stage: Stage) -> None:
    stage.add(ask("May it?"), on="before_tool")
    agent = stage.agent(LS, call("shell", command="pwd"))
    state = (await stage.runner.run(agent, "Go.")).to_state()
    state.approve(state.get_interruptions()[0], always_approve=True)
    await stage.runner.run(agent, state)
    assert stage.ran == ["ls", "pwd"]


@pytest.mark.same_ids
@pytest.mark.parametrize("bad", ["ls", "pwd"])
async def test_calls_of_one_answer_with_the_same_id_are_told_apart(stage: Stage, bad: str) -> None:
    stage.add(lambda step: deny("no") if step.args["command"] == bad else None, on="before_tool")
    try:
        await stage.runner.run(stage.agent([numbered("ls"), numbered("pwd")]), "Go.")
    except Exception as error:
        assert "unique call ID" in str(error)  # noqa: PT017
    else:
        assert stage.ran == ["pwd" if bad == "ls" else "ls"]
        assert [step.args["command"] for step in stage.steps("after_tool")] == [bad, *stage.ran]


@pytest.mark.parametrize("says", [None, allow()])
async def test_a_tool_s_need_for_approval_is_that_of_the_arguments_it_runs_with(
    stage: Stage,
    says: Any,
) -> None:
    async def needs(context: Any, args: dict[str, Any], call_id: str) -> bool:
        return "/etc" in args["command"]

    stage.shell.needs_approval = needs
    stage.add(change(args={"command": "cat /etc/passwd"}), on="before_tool", name="rewrite")
    stage.add(says, on="before_tool", phase="gate")
    result = await stage.runner.run(stage.agent(LS), "Go.")
    assert (stage.ran, len(result.interruptions)) == (([], 1) if says is None else (["cat /etc/passwd"], 0))


async def test_a_question_that_is_forgotten_has_ended(stage: Stage, monkeypatch: Any) -> None:
    monkeypatch.setattr(adapter, "SESSIONS", 1)
    stage.add(ask("May it?"), on="before_tool")
    for _ in range(2):
        await stage.runner.run(stage.agent(LS), "Go.")
    assert [stage.events.count(name) for name in ("turn_start", "turn_end", "session_end")] == [2, 1, 1]


# --- tools ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [False, True])
async def test_a_tool_s_output_is_judged_whatever_its_agent_waits_for(
    stage: Stage,
    answers: bool,
) -> None:
    helper = stage.agent(LS, Say("Helped."), name="helper")

    @function_tool(name_override="helper")
    async def help_out(message: str) -> str:
        """Help."""
        result = await Runner.run(helper, message)
        if answers:
            state = result.to_state()
            state.approve(result.interruptions[0])
            result = await Runner.run(helper, state)
        return f"{result.final_output} It is hunter2."

    stage.add(ask("May it?"), on="before_tool", tool="shell", name="asks")
    secrets("output", stage)
    await stage.runner.run(stage.agent(call("helper", message="Help."), tools=[help_out]), "Go.")
    assert not has(stage.played.sent[-1], "hunter2")
    assert [step.outcome for step in stage.steps("after_tool")] == ["ok"] * (2 if answers else 1)


async def test_a_tool_s_output_is_judged_where_one_of_its_agents_may_not_start(stage: Stage) -> None:
    first, second = stage.agent(name="first"), stage.agent(Say("It is hunter2."), name="second")

    @function_tool
    async def both(message: str) -> str:
        """Ask both."""
        return " ".join([str((await Runner.run(agent, message)).final_output) for agent in (first, second)])

    stage.add(lambda step: deny("no") if step.agent_name == "first" else None, on="subagent_start", name="no-first")
    secrets("output", stage)
    await stage.runner.run(stage.agent(call("both", message="Help."), tools=[both]), "Go.")
    assert not has(stage.played.sent[-1], "hunter2")


async def test_hooks_see_where_a_local_shell_runs_its_command(stage: Stage) -> None:
    action = LocalShellCallAction(command=["cat", "shadow"], env={"A": "b"}, type="exec", working_directory="/etc")
    asked = LocalShellCall(id="l1", call_id="c1", status="completed", type="local_shell_call", action=action)

    def execute(request: Any) -> str:
        stage.ran.append(request.data.action.working_directory)
        return "done"

    stage.add(lambda step: change(args={**step.args, "working_directory": "/tmp"}), on="before_tool")
    await stage.runner.run(stage.agent([asked], tools=[LocalShellTool(executor=execute)]), "Go.")
    assert stage.ran == ["/tmp"]
    assert action.working_directory == "/etc"  # what the model asked for stays as it is


@pytest.mark.skipif(not MOVES, reason="older ones do not move files")
async def test_where_a_patch_moves_a_file_to_is_one_of_its_targets(stage: Stage) -> None:
    class Editor:
        def update_file(self, operation: Any) -> None:
            stage.ran.append(operation.move_to)

        create_file = delete_file = update_file

    operation = OperationUpdateFile(path="a.txt", diff="+x", type="update_file")
    operation.move_to = "/etc/x"  # type: ignore[attr-defined]
    patch = ResponseApplyPatchToolCall(
        id="ap_1", call_id="c1", status="completed", type="apply_patch_call", operation=operation
    )
    stage.add(lambda step: deny("no") if "/etc/x" in step.target.paths else None, on="before_tool", kind="write")
    await stage.runner.run(stage.agent([patch], tools=[ApplyPatchTool(editor=Editor())]), "Go.")
    assert stage.ran == []


# --- agents -----------------------------------------------------------------------------------------


async def test_a_subagent_is_under_the_hooks_of_its_caller(stage: Stage) -> None:
    other = Stage()
    set_default_agent_runner(other.runner)
    stage.add(deny("no"), on="before_tool", tool="shell")
    await stage.runner.run(with_helper(stage, LS, Say("Helped.")), "Go.")
    assert (stage.ran, other.events) == ([], [])
    await Runner.run(other.agent(LS), "Go.")  # and all others still are under those of the default
    assert (other.ran, other.events.count("before_tool")) == (["ls"], 1)


async def test_a_handoff_that_is_added_while_the_agent_runs_is_under_hooks(stage: Stage) -> None:
    helper = stage.agent(LS, name="helper")

    def instructions(context: Any, agent: Any) -> str:
        if not agent.handoffs:
            agent.handoffs.append(helper)
        return "Be brief."

    stage.add(deny("no"), on="before_tool", tool="shell")
    await stage.runner.run(stage.agent(call("transfer_to_helper"), instructions=instructions), "Go.")
    assert (stage.ran, stage.events.count("subagent_start")) == ([], 1)


async def test_a_handoff_that_is_refused_leaves_the_conversation_as_it_is(stage: Stage) -> None:
    from dataclasses import replace

    item = handoff(stage.agent(name="helper"), input_filter=lambda data: replace(data, input_history=()))
    stage.add(deny("no"), on="subagent_start")
    await stage.runner.run(stage.agent(call("transfer_to_helper"), handoffs=[item]), "Go.")
    assert stage.played.sent[1][0] == "user: Go."


# --- what the user says and sees --------------------------------------------------------------------


async def test_all_new_messages_are_judged(stage: Stage) -> None:
    secrets("input", stage)
    given: list[Any] = [{"role": "user", "content": "It is hunter2."}, {"role": "user", "content": "Go."}]
    result = await stage.runner.run(stage.agent(), given)
    assert (result.final_output, stage.played.sent) == ("[Message rejected: secret]", [])


async def test_several_messages_stay_as_they_are_where_no_hook_changes_them(stage: Stage) -> None:
    stage.add(lambda step: change(input="Clean.") if "dirty" in str(step.input) else None, on="before_input")
    blocks: list[Any] = [{"type": "input_text", "text": "Two."}]
    await stage.runner.run(stage.agent(), [{"role": "user", "content": "One."}, {"role": "user", "content": blocks}])
    await stage.runner.run(stage.agent(), [{"role": "user", "content": "dirty"}, {"role": "user", "content": "Two."}])
    assert stage.played.sent == [["user: One.", "user: Two."], ["user: Clean."]]


@pytest.mark.parametrize("text", ["", "I will look."])
async def test_an_output_that_a_tool_made_is_what_hooks_see(stage: Stage, text: str) -> None:
    @function_tool
    def look() -> Answer:
        """Look."""
        return Answer(text="hunter2")

    stage.add(lambda step: change(content=step.content.replace("hunter2", "***")), on="before_output")
    agent = stage.agent(
        Call([("look", {})], text), tools=[look], tool_use_behavior="stop_on_first_tool", output_type=Answer
    )
    result = await stage.runner.run(agent, "Go.")
    assert result.final_output == Answer(text="***")


@pytest.mark.parametrize("streaming", [False, True])
async def test_an_answer_after_one_without_words_is_judged(stage: Stage, streaming: bool) -> None:
    stage.add(lambda step: change(response=step.response.replace("hunter2", "***")), on="before_response")
    agent = stage.agent([message("")], answered("hunter2"), output_type=Answer)
    result = await go(stage, agent, "Go.", streaming)
    assert result.final_output == Answer(text="***")
    assert "hunter2" not in "".join(stage.played.pieces)
    assert stage.events.count("turn_end") == 1


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("on", ["after_tool", "before_output"])
async def test_nothing_is_an_output_too_where_one_of_some_type_is_wanted(
    stage: Stage,
    on: str,
    streaming: bool,
) -> None:
    stage.add(stop() if on == "after_tool" else deny("no"), on=on)
    agent = stage.agent(LS, answered("One."), answered("Two."), output_type=Answer)
    result = await go(stage, agent, "Go.", streaming)
    assert (result.final_output, stage.played.pieces) == (None, [])
    assert len(stage.played.sent) == (1 if on == "after_tool" else 2)


@pytest.mark.skipif(not HOSTED, reason="older ones have no shell at the provider")
@pytest.mark.parametrize("streaming", [False, True])
async def test_an_answer_beside_a_shell_at_the_provider_is_judged(stage: Stage, streaming: bool) -> None:
    secrets("content", stage)
    tool = ShellTool(environment={"type": "container_auto"})
    agent = stage.agent([shell_call(1, "ls"), message("It is hunter2.")], tools=[tool])
    result = await go(stage, agent, "Go.", streaming)
    assert (result.final_output, stage.played.pieces, len(stage.played.sent)) == (None, [], 1)
    assert stage.steps("after_model")[0].usage["other_calls"] == ["shell_call"]


@pytest.mark.parametrize("on", ["after_model", "before_turn_end"])
async def test_what_the_provider_keeps_is_not_sent_twice(stage: Stage, on: str) -> None:
    said = iter([deny("Not that.") if on == "after_model" else extend("Go on.")])
    stage.add(lambda step: next(said, None), on=on)
    await stage.runner.run(stage.agent(Say("First."), Say("Second.")), "Go.", conversation_id="c1")
    assert stage.played.sent == [["user: Go."], ["user: [judge] Not that." if on == "after_model" else "user: Go on."]]


@pytest.mark.parametrize("how", ["+", "append", "other"])
async def test_handoffs_that_an_agent_s_own_function_puts_there_are_judged(stage: Stage, how: str) -> None:
    stage.add(deny("not him"), on="subagent_start")
    one, two = stage.agent(Say("I am one."), name="one"), stage.agent(Say("I am two."), name="two")

    def instructions(context: Any, agent: Any) -> str:
        if how == "+" and len(agent.handoffs) < 2:
            agent.handoffs = agent.handoffs + [two]
        elif how == "append" and len(agent.handoffs) < 2:
            agent.handoffs.append(two)
        elif how == "other":
            agent.handoffs = [two, one]
        return "Hand over."

    agent = stage.agent(call("transfer_to_one"), Say("Main."), handoffs=[one], instructions=instructions)
    result = await stage.runner.run(agent, "Go.")
    assert result.final_output == "Main."
    assert agent.handoffs == [one]


@pytest.mark.parametrize("given", [{}, {"working_directory": "/etc", "user": "root"}])
async def test_where_a_local_shell_runs_is_what_a_hook_wants(stage: Stage, given: Any) -> None:
    seen: list[Any] = []

    def execute(request: Any) -> str:
        action = request.data.action
        seen.append((action.command, action.working_directory, action.user))
        return "ran"

    stage.add(change(args={"command": ["ls"], "working_directory": "/sandbox"}), on="before_tool")
    action = LocalShellCallAction(type="exec", command=["rm"], env={}, **given)
    made = LocalShellCall(id="1", call_id="c1", type="local_shell_call", status="completed", action=action)
    await stage.runner.run(stage.agent([made], tools=[LocalShellTool(executor=execute)]), "Go.")
    assert seen == [(["ls"], "/sandbox", None)]


# --- where no hook subscribes to the end of a call -------------------------------------------------

tells = pytest.mark.skipif(not REPORTS_ERRORS, reason="it does not tell of what a tool raises before 0.10.4")


@pytest.fixture
def quiet(stage: Stage) -> Stage:
    """Nothing is recorded, and only calls are judged."""
    stage.hooks = Hooks()
    stage.runner = Fairlead(stage.hooks)
    stage.add(None, on="before_tool", name="nothing")
    return stage


def add_late(stage: Stage, seen: list[Any]) -> None:
    stage.hooks.add(lambda step: seen.append((step.outcome, step.error)), on="after_tool", name="late", replace=True)


@tells
async def test_an_abort_that_a_tool_raises_fails_the_request(quiet: Stage) -> None:
    quiet.add(abort("no more"), on="notification", name="aborts")

    @function_tool
    async def notify(text: str) -> str:
        """Ask the hooks."""
        (await quiet.hooks.dispatch(Notification(message=text))).raise_for_abort()
        return "told"

    with pytest.raises(HookAborted, match="no more"):
        await quiet.runner.run(quiet.agent(call("notify", text="x"), tools=[notify]), "Go.")


@tells
async def test_a_hook_that_is_added_while_a_tool_with_its_own_error_text_fails_sees_it(quiet: Stage) -> None:
    received: list[Any] = []

    @function_tool(failure_error_function=lambda context, error: "sorry")
    def fail(why: str) -> str:
        """Fail."""
        add_late(quiet, received)
        raise ValueError(why)

    await quiet.runner.run(quiet.agent(call("fail", why="broken pipe"), tools=[fail]), "Go.")
    assert received == [("error", "ValueError: broken pipe")]
    assert has(quiet.played.sent[1], "sorry", "tool")


@tells
async def test_a_tool_that_only_speaks_of_an_error_has_not_failed(quiet: Stage) -> None:
    received: list[Any] = []

    @function_tool
    def log(name: str) -> str:
        """Read a log."""
        add_late(quiet, received)
        return "An error occurred while running the tool. It was in the log."

    await quiet.runner.run(quiet.agent(call("log", name="x"), tools=[log]), "Go.")
    assert received == [("ok", None)]
