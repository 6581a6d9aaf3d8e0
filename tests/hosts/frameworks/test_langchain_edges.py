"""What may go wrong with LangChain at its edges: ids that recur, handovers, approvals, sessions."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from driver import Call, Played, Say
from driver_langchain import Scripted
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from fairlead import HookAborted, Hooks, UnknownName, abort, ask, change, deny, stop
from fairlead.hosts.frameworks import turn
from fairlead.hosts.frameworks.langchain import Fairlead


def built(fairlead: Fairlead, *script: Any, tools: Any = (), before: Any = (), **options: Any) -> Any:
    model = Scripted(script=list(script), played=Played())
    return create_agent(model, list(tools), middleware=[*before, fairlead], **options)


def said(text: str, **more: Any) -> Any:
    return {"messages": [{"role": "user", "content": text, **more}]}


def on(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


@tool
def hand_over(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command:
    """Hand over."""
    call = AIMessage("", tool_calls=[{"name": "hand_over", "args": {}, "id": tool_call_id}])
    told = ToolMessage("ok", tool_call_id=tool_call_id)
    return Command(goto="next", graph=Command.PARENT, update={"messages": [call, told]})


def graph(first: Any, then: Any) -> Any:
    builder = StateGraph(MessagesState)
    builder.add_node("first", first, destinations=("next",))
    builder.add_node("next", then)
    builder.add_edge(START, "first")
    builder.add_edge("next", END)
    return builder.compile(checkpointer=InMemorySaver())


def no_bad(hooks: Hooks) -> list[Any]:
    seen: list[Any] = []

    @hooks.on.before_input
    def judge(step: Any) -> Any:
        seen.append(step.input)
        return deny("no") if "bad" in str(step.input) else None

    return seen


def test_what_a_user_says_after_a_handover_to_no_agent_is_a_request_of_its_own() -> None:
    hooks = Hooks()
    seen, fairlead = no_bad(hooks), Fairlead(hooks)
    agent = built(fairlead, Call([("hand_over", {})]), Say("done"), tools=[hand_over])
    plain = graph(agent, lambda state: {"messages": [AIMessage("we will call you")]})
    plain.invoke(said("hello"), on("t"))
    told = plain.invoke(said("bad"), on("t"))
    assert told["messages"][-1].text == "[Message rejected: no]"
    assert seen == ["hello", "bad"]
    assert not fairlead._active
    assert not fairlead._handed


def test_handovers_with_the_same_call_id_do_not_mix() -> None:
    hooks, seen = Hooks(), []
    fairlead = Fairlead(hooks)

    @hooks.on.before_model
    def look(step: Any) -> None:
        seen.append((step.session_id, step.messages[0]["content"]))

    class Slow(AgentMiddleware):
        async def abefore_agent(self, state: Any, runtime: Any) -> None:
            await asyncio.sleep(0.2)

    def one() -> Any:
        agent = built(fairlead, Call([("hand_over", {})]), tools=[hand_over])
        return graph(agent, built(fairlead, Say("done"), before=[Slow()]))

    async def both() -> None:
        await asyncio.gather(*(one().ainvoke(said(name), on(name)) for name in ("alice", "bob")))

    asyncio.run(both())
    assert len(seen) == 4
    assert all(session == name for session, name in seen)
    assert not fairlead._active


def test_the_id_of_a_message_does_not_hide_it() -> None:
    hooks = Hooks()
    seen = no_bad(hooks)
    told = built(Fairlead(hooks), Say("done")).invoke(said("bad", id="fairlead-1"))
    assert told["messages"][-1].text == "[Message rejected: no]"
    assert seen == ["bad"]


def test_only_what_was_approved_runs() -> None:
    hooks, ran, times = Hooks(), [], []

    @hooks.on.before_tool
    def other(step: Any) -> Any:
        times.append(1)
        return change(args={"command": f"number {len(times)}"})

    @hooks.on.before_permission
    def may(step: Any) -> Any:
        return ask("May it?")

    @tool
    def shell(command: str) -> str:
        """Run."""
        ran.append(command)
        return "ran"

    call = Call([("shell", {"command": "x"})])
    agent = built(Fairlead(hooks), call, Say("done"), tools=[shell], checkpointer=InMemorySaver())
    agent.invoke(said("go"), on("t"))
    told = agent.invoke(Command(resume=True), on("t"))
    assert ran == []
    assert "not those that were approved" in told["messages"][-2].text


@pytest.mark.parametrize("late", [True, False])
def test_an_answer_to_the_tool_is_no_approval(late: bool) -> None:
    hooks, ran, times = Hooks(), [], []

    @hooks.on.before_tool
    def often(step: Any) -> Any:
        times.append(1)
        return ask("Again?") if not late or len(times) > 1 else None

    @tool
    def wipe(disk: str) -> str:
        """Wipe."""
        ran.append(interrupt("Fast?"))
        return "wiped"

    call = Call([("wipe", {"disk": "sda"})])
    agent = built(Fairlead(hooks), call, Say("done"), tools=[wipe], checkpointer=InMemorySaver())
    agent.invoke(said("go"), on("t"))
    told = agent.invoke(Command(resume=True), on("t"))
    if late:
        assert ran == []
        assert "a question of the tool itself" in told["messages"][-2].text
    else:  # first it is approved, then the tool asks
        assert told["__interrupt__"][0].value == "Fast?"
        agent.invoke(Command(resume="yes"), on("t"))
        assert ran == ["yes"]


def test_a_tool_node_forgets_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "SESSIONS", 3)

    @tool
    def shell(command: str) -> str:
        """Run."""
        return "ran"

    fairlead = Fairlead(Hooks())
    builder = StateGraph(MessagesState)
    builder.add_node("tools", fairlead.tool_node([shell]))
    builder.add_edge(START, "tools")
    compiled = builder.compile()
    call = {"name": "shell", "args": {"command": "x"}, "id": "1"}
    for number in range(9):
        compiled.invoke({"messages": [AIMessage("", tool_calls=[call])]}, on(str(number)))
    assert len(fairlead._nodes.sessions._entries) == 3


def test_what_is_no_hooks_is_said_to_be_none() -> None:
    with pytest.raises(TypeError, match="Hooks"):
        Fairlead([deny])  # type: ignore[arg-type]


@pytest.mark.parametrize("ends", ["deny", "abort", "allow"])
@pytest.mark.parametrize("sync", [True, False])
def test_calls_resumed_in_a_new_process_wait_for_before_input(sync: bool, ends: str) -> None:
    ran: list[str] = []
    seen: list[str] = []

    @tool
    def shell(command: str) -> str:
        """Run."""
        ran.append(command)
        return "ran"

    def asking() -> Hooks:
        hooks = Hooks()
        hooks.on.before_tool(name="asks")(lambda step: ask("May it?"))
        return hooks

    saver, later = InMemorySaver(), asking()
    calls = Call([("shell", {"command": one}) for one in "xyz"])
    told = built(Fairlead(asking()), calls, tools=[shell], checkpointer=saver).invoke(said("go"), on("t"))

    @later.on.before_input
    async def slow(step: Any) -> Any:
        seen.append(step.source)
        await asyncio.sleep(0.2)
        return {"deny": deny("not any more"), "abort": abort("not any more"), "allow": None}[ends]

    fairlead = Fairlead(later)
    agent = built(fairlead, Say("done"), tools=[shell], checkpointer=saver)
    answers = Command(resume={one.id: True for one in told["__interrupt__"]})

    def resume() -> Any:
        return agent.invoke(answers, on("t")) if sync else asyncio.run(agent.ainvoke(answers, on("t")))

    if ends == "abort":
        with pytest.raises(HookAborted):
            resume()
    else:
        resume()
    assert sorted(ran) == (["x", "y", "z"] if ends == "allow" else [])
    assert seen == ["continuation"]
    assert not fairlead._active
    assert not fairlead._beginning


def test_all_that_the_user_says_at_once_is_judged() -> None:
    hooks = Hooks()
    seen = no_bad(hooks)
    agent = built(Fairlead(hooks), Say("one"), Say("two"), checkpointer=InMemorySaver())
    agent.invoke(said("first"), on("t"))
    several = [{"role": "user", "content": "bad", "id": "fairlead-1"}, ("user", "fine")]
    told = agent.invoke({"messages": several}, on("t"))
    assert seen == ["first", "bad\n\nfine"]
    assert [one.text for one in told["messages"]] == ["first", "one", "[Message rejected: no]"]
    blocks = [{"type": "text", "text": "a picture"}, {"type": "image", "url": "x"}]
    told = agent.invoke({"messages": [("user", "look"), {"role": "user", "content": blocks}]}, on("t"))
    assert seen[-1] == [{"type": "text", "text": "look"}, *blocks]
    assert [one.text for one in told["messages"]][-3:] == ["look", "a picture", "two"]


@pytest.mark.parametrize("stops", [True, False])
def test_what_a_hook_makes_of_several_messages_is_one(stops: bool) -> None:
    hooks = Hooks()
    hooks.on.before_input(name="both")(lambda step: change(input=f"<{step.input}>"))
    if stops:
        hooks.on.turn_start(name="stops")(lambda step: stop("enough"))
    told = built(Fairlead(hooks), Say("done")).invoke({"messages": [("user", "a"), ("user", "b")]})
    assert [one.text for one in told["messages"]] == ["<a\n\nb>", "[Stopped: enough]" if stops else "done"]
    assert told["messages"][-1].response_metadata.get("fairlead") is None


def test_a_misspelt_keyword_is_told_of_at_once() -> None:
    with pytest.raises(UnknownName, match="did you mean 'models'"):
        Fairlead(Hooks(), modles={})
    Fairlead(Hooks(), models={}, session_id="s", user_id="u", agent="one")
