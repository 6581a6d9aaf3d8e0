"""Spans and metrics, as the real OpenTelemetry SDK sees them. Each in a process of its own: providers are set once."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

PRELUDE = """
import asyncio, json, sys
from fairlead import Hooks, deny
from fairlead.lifecycle import Agent, BeforeModel, BeforeTool, TurnStart
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))

def broken(step):
    raise RuntimeError("broken by token=ghp_0123456789abcdefghijABCDEFGHIJ456789")

def traced():
    trace.set_tracer_provider(provider)

def told():
    return [
        {
            "name": span.name,
            "id": span.context.span_id,
            "trace": span.context.trace_id,
            "parent": span.parent and span.parent.span_id,
            "about": dict(span.attributes),
            "status": span.status.status_code.name,
            "description": span.status.description,
            "start": span.start_time,
            "end": span.end_time,
        }
        for span in exporter.get_finished_spans()
    ]

def done(what):
    print(json.dumps(what))
    sys.exit()
"""

DISPATCHED = """
traced()
hooks = Hooks()
hooks.add(lambda step: None, on="before_tool", name="first")
hooks.add(broken, on="before_tool", name="broken", on_failure="open")
hooks.add(lambda step: deny("no ghp_0123456789abcdefghijABCDEFGHIJ456789"), on="before_tool", name="no", phase="gate")
with trace.get_tracer("caller").start_as_current_span("caller"):
    hooks.dispatch_sync(BeforeTool(
        tool="bash", args={"command": "ls"}, session_id="s1", call_id="c1", host="h", agent=Agent(id="a1", name="main")
    ))
done(told())
"""


def run(code: str) -> Any:
    ended = subprocess.run([sys.executable, "-c", PRELUDE + code], capture_output=True, text=True, timeout=30)
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


DONE: dict[str, Any] = {}


@pytest.fixture
def spans() -> dict[str, dict[str, Any]]:
    if not DONE:
        DONE.update({span["name"]: span for span in run(DISPATCHED)})
    return DONE


def test_a_dispatch_is_a_span_under_the_callers(spans: Any) -> None:
    assert spans["before_tool bash"]["parent"] == spans["caller"]["id"]


def test_hooks_are_spans_under_the_dispatch(spans: Any) -> None:
    assert {spans[name]["parent"] for name in ("first", "broken", "no")} == {spans["before_tool bash"]["id"]}


def test_all_of_them_are_one_trace(spans: Any) -> None:
    assert len({span["trace"] for span in spans.values()}) == 1


def test_a_span_speaks_of_generative_ai(spans: Any) -> None:
    about = spans["before_tool bash"]["about"]
    expected = {
        "fairlead.operation.name": "decide",
        "gen_ai.tool.name": "bash",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.conversation.id": "s1",
        "gen_ai.agent.id": "a1",
        "gen_ai.agent.name": "main",
        "fairlead.event": "before_tool",
        "fairlead.control": "deny",
        "fairlead.effect": "deny",
        "fairlead.hook": "no",
        "fairlead.cause": "policy",
        "fairlead.host": "h",
        "fairlead.tool.kind": "shell",
    }
    assert {key: about.get(key) for key in expected} == expected


def test_a_hook_s_span_says_that_it_is_one(spans: Any) -> None:
    assert {spans[name]["about"]["fairlead.operation.name"] for name in ("first", "broken", "no")} == {"run_hook"}


def test_no_decision_is_counted_as_what_it_is_about() -> None:
    code = """
from fairlead.lifecycle import EVENTS
traced()
hooks = Hooks()
hooks.add(lambda step: None, on="*", name="any")
for event in EVENTS.values():
    hooks.dispatch_sync(event.step(**({"tool": "bash"} if "tool" in event.step.__struct_fields__ else {})))
done([[span["name"], span["about"]] for span in told()])
"""
    spans = run(code)
    assert len(spans) >= 2 * 26
    assert [name for name, about in spans if "gen_ai.operation.name" in about or "execute_tool" in name] == []


def test_secrets_do_not_reach_a_span(spans: Any) -> None:
    assert "ghp_0123456789" not in json.dumps(list(spans.values()))


def test_what_is_secret_within_a_request_does_not_reach_its_spans() -> None:
    code = """
traced()
from fairlead.redaction.redactor import Scope, within
hooks = Hooks()
hooks.add(lambda step: deny("no correct-horse-9"), on="before_tool", name="no")
for scope in (Scope(environ={"DEPLOY_TOKEN": "correct-horse-9"}), Scope()):
    with within(scope):
        hooks.dispatch_sync(BeforeTool(tool="bash"))
done([span["about"]["fairlead.reason"] for span in told() if span["name"] == "before_tool bash"])
"""
    assert run(code) == ["no [redacted: value]", "no correct-horse-9"]


def test_a_failure_is_an_error_of_the_dispatch(spans: Any) -> None:
    assert (spans["before_tool bash"]["status"], spans["broken"]["status"]) == ("ERROR", "ERROR")


def test_what_did_not_fail_is_no_error(spans: Any) -> None:
    assert {spans[name]["status"] for name in ("first", "no", "caller")} == {"UNSET"}


def test_what_a_hook_came_to_is_in_its_span(spans: Any) -> None:
    about = [
        (spans[name]["about"]["fairlead.phase"], spans[name]["about"]["fairlead.outcome"])
        for name in ("first", "broken", "no")
    ]
    assert about == [("transform", "none"), ("transform", "error"), ("gate", "verdict")]


def test_hooks_ran_within_the_dispatch(spans: Any) -> None:
    top = spans["before_tool bash"]
    for name in ("first", "broken", "no"):
        assert top["start"] <= spans[name]["start"] <= spans[name]["end"] <= top["end"]


def test_an_async_dispatch_is_under_the_callers_span() -> None:
    found = run("""
traced()
hooks = Hooks()
async def slow(step):
    await asyncio.sleep(0)
hooks.add(slow, on="before_model", name="slow")
async def main():
    with trace.get_tracer("caller").start_as_current_span("caller"):
        await hooks.dispatch(BeforeModel(model="m-1"))
asyncio.run(main())
done(told())
""")
    by_name = {span["name"]: span for span in found}
    assert by_name["before_model"]["parent"] == by_name["caller"]["id"]
    assert by_name["before_model"]["about"]["gen_ai.request.model"] == "m-1"


def test_a_sync_dispatch_of_async_hooks_is_under_the_callers_span() -> None:
    found = run("""
traced()
hooks = Hooks()
async def slow(step):
    await asyncio.sleep(0)
hooks.add(slow, on="before_tool", name="slow")
with trace.get_tracer("caller").start_as_current_span("caller"):
    hooks.dispatch_sync(BeforeTool(tool="bash"))
done(told())
""")
    by_name = {span["name"]: span for span in found}
    assert by_name["before_tool bash"]["parent"] == by_name["caller"]["id"]


def test_a_dispatch_without_hooks_is_a_span() -> None:
    assert [span["name"] for span in run("traced()\nHooks().dispatch_sync(TurnStart())\ndone(told())")] == [
        "turn_start"
    ]


def test_without_a_provider_nothing_is_kept() -> None:
    assert run("hooks = Hooks()\ndone(hooks.sink_for(hooks.table) is None)") is True


def test_without_a_provider_nothing_is_recorded() -> None:
    code = """
hooks = Hooks()
hooks.add(lambda step: None, on="before_tool", name="first")
done(len(hooks.dispatch_sync(BeforeTool(tool="bash")).runs))
"""
    assert run(code) == 0


def test_decisions_are_counted_and_timed() -> None:
    found = run("""
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))
hooks = Hooks()
hooks.add(lambda step: deny("no") if step.tool == "rm" else None, on="before_tool", name="no-rm")
hooks.add(broken, on="before_tool", name="broken", on_failure="open", tool="odd")
for tool in ("ls", "rm", "ls", "odd"):
    hooks.dispatch_sync(BeforeTool(tool=tool))
points = {}
for metric in reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics:
    for point in metric.data.data_points:
        key = " ".join([metric.name, *(str(v) for _, v in sorted(point.attributes.items()))])
        points[key] = point.value if hasattr(point, "value") else point.count
done(points)
""")
    assert found == {
        "fairlead.decisions proceed proceed before_tool": 3,
        "fairlead.decisions deny deny before_tool": 1,
        "fairlead.dispatch.duration proceed proceed before_tool": 3,
        "fairlead.dispatch.duration deny deny before_tool": 1,
        "fairlead.failures broken error": 1,
        "fairlead.hook.duration no-rm none": 3,
        "fairlead.hook.duration no-rm verdict": 1,
        "fairlead.hook.duration broken error": 1,
    }


def test_a_deny_that_was_not_carried_out_is_told_apart() -> None:
    about, counted = run("""
traced()
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))
hooks = Hooks()
hooks.add(lambda step: deny("no"), on="before_tool", name="no")
session = hooks.session("s", host="h", capabilities={"before_tool": set()}, lenient=True)
session.dispatch_sync(session.step(BeforeTool, tool="bash", args={"command": "ls"}))
found = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
(point,) = next(metric for metric in found if metric.name == "fairlead.decisions").data.data_points
done([told()[-1]["about"], dict(point.attributes)])
""")
    assert (about["fairlead.control"], about["fairlead.effect"]) == ("deny", "proceed")
    assert (counted["fairlead.control"], counted["fairlead.effect"]) == ("deny", "proceed")


BREAKING = """
class Breaking(SpanProcessor):
    def on_start(self, span, parent_context=None):
        raise RuntimeError("no room for spans")
provider.add_span_processor(Breaking())
traced()
"""


def test_tracing_that_fails_does_not_fail_the_dispatch() -> None:
    code = BREAKING + 'done(Hooks().dispatch_sync(BeforeTool(tool="bash")).control)'
    assert run(code) == "proceed"


def test_tracing_that_fails_does_not_keep_a_decision_from_the_journal() -> None:
    code = (
        BREAKING
        + """
kept = []
try:
    Hooks(journal=kept.append).dispatch_sync(BeforeTool(tool="bash"))
except RuntimeError:
    pass
done(len(kept))
"""
    )
    assert run(code) == 1


def test_a_journal_and_traces_go_together() -> None:
    code = """
traced()
kept = []
Hooks(journal=kept.append).dispatch_sync(BeforeTool(tool="bash"))
done([len(kept), len(told())])
"""
    assert run(code) == [1, 1]
