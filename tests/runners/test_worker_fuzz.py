"""Whatever a worker writes, a step ends: by its answer, if it is one, else by policy. Never a silent allow."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead import Decision, Hooks
from fairlead.runners.worker import Worker
from fairlead.testing import step

ANSWERS = [
    {"id": 1, "verdict": None}, {"id": 1}, {"id": 1, "verdict": {}}, {"id": 1, "verdict": {"control": "deny"}},
    {"id": 1, "verdict": {"control": "alow"}}, {"id": 1, "verdict": []}, {"id": 1, "verdict": "allow"},
    {"id": 1, "error": "broken"}, {"id": "1", "verdict": None}, {"id": 2, "verdict": None}, {"id": None}, {},
    {"id": 1, "control": "deny"}, {"id": 1, "verdct": {"control": "deny"}}, {"id": 1, "Error": "broken"},
    {"id": 1.5, "verdict": None}, {"id": True, "verdict": None}, {"verdict": None}, {"id": 10**30, "verdict": None},
]  # fmt: skip
LINES = st.one_of(
    st.sampled_from(ANSWERS).map(lambda answer: json.dumps(answer).encode()),
    st.sampled_from(ANSWERS).map(lambda answer: json.dumps(answer).encode()[:-1]),
    st.binary(max_size=40),
    st.sampled_from([b"", b" ", b"null", b"[1]", b"\xff\xfe", b"[" * 2000, b'{"id":1,"id":1}', b"ready."]),
)
# Reads one line, then writes what the file says and ends.
REPLAY = ["/bin/sh", "-c", 'IFS= read -r line; cat "$1"', "sh"]


def silently_agreed(written: bytes) -> bool:
    """Whether the first line that says anything is an answer to step 1 without an objection."""
    for line in written.split(b"\n")[:-1]:
        if line.strip():
            try:
                answer = json.loads(line)
            except (ValueError, RecursionError):
                return False
            number = answer.get("id") if isinstance(answer, dict) else None
            agreed = type(number) is int and number == 1 and answer.get("error") is None
            return agreed and "verdict" in answer and answer["verdict"] in (None, {})
    return False


async def asked(written: bytes, folder: Path) -> Decision:
    file = folder / "written"
    file.write_bytes(written)
    async with Hooks() as hooks:
        hooks.add(Worker([*REPLAY, str(file)]), on="before_tool", name="worker", timeout=10.0)
        return await hooks.dispatch(step("before_tool"))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(LINES, max_size=4).map(lambda lines: b"".join(line + b"\n" for line in lines)))
def test_a_worker_that_writes_anything_at_all_is_never_mistaken_for_consent(tmp_path: Path, written: bytes):
    decision = asyncio.run(asked(written, tmp_path))
    assert decision.proceeds == silently_agreed(written), decision


@pytest.mark.parametrize("mode", ["def", "async def"])
def test_a_python_worker_survives_lines_that_are_no_steps(mode: str, tmp_path: Path):
    script = tmp_path / "worker.py"
    script.write_text(
        "from fairlead import deny\nfrom fairlead.worker import Worker\nworker = Worker()\n"
        f"@worker.on.before_tool\n{mode} no(step):\n    return deny('no')\nworker.run()\n"
    )
    lines = [b"", b"nonsense", b"\xff", b'{"id":1}', b'{"id":"x","step":{}}', b'{"id":3,"step":{"event":"nope"}}']
    lines.append(b'{"id":4,"step":{"fairlead":1,"event":"before_tool","tool":"bash"}}\n')
    ran = subprocess.run([sys.executable, script], input=b"\n".join(lines), capture_output=True, timeout=30, check=True)
    third, fourth = map(json.loads, ran.stdout.splitlines())
    assert (third["id"], fourth["id"]) == (3, 4)
    assert "nope" in third["error"]
    assert fourth["verdict"]["control"] == "deny"
