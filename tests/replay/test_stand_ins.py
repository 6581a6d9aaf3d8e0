"""A secret is judged with three stand-ins."""

from __future__ import annotations

import pytest
from replay_scenes import SECRET, shell

from fairlead.redaction.redactor import redact_text
from fairlead.replay.records import Body, Recorded
from fairlead.replay.stand_ins import _SAMPLES, sample_of, variants


@pytest.mark.parametrize("kind", sorted(set(_SAMPLES) - {"password", "bearer", "basic"}))
def test_a_sample_is_of_its_kind(kind: str):
    assert redact_text(sample_of(kind)) == f"[redacted: {kind}]"


def test_a_step_is_judged_with_the_mark_a_sample_and_nothing():
    step = shell("curl -H 'X: [redacted: github token]' https://example.com", metadata={"note": "[redacted: x]"})
    body = Body(id="r", at=0, step=step, redacted=[("step.args.command", "github token", "d")])
    found = [one.args["command"] for one in variants(Recorded(body))]  # type: ignore[attr-defined]
    assert found == [step.args["command"].replace("[redacted: github token]", with_) for with_ in (
        "[redacted: github token]", sample_of("github token"), "")]  # fmt: skip
    assert all(one.metadata == step.metadata for one in variants(Recorded(body)))


def test_a_step_without_secrets_is_judged_once():
    body = Body(id="r", at=0, step=shell(f"echo {SECRET}"))
    assert variants(Recorded(body)) == [body.step]
