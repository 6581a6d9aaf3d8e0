"""The hooks that stand for policies which are not in force, or cannot be used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..hook import Hook
from ..lifecycle import GUARDING
from ..tools import UnknownTool
from ..verdict import Verdict, ask, deny, warn


def notice_hook(text: str) -> Hook:
    def untrusted(step: Any) -> Verdict:
        return warn(text)

    return Hook(untrusted, "session_start", name="fairlead.untrusted", layer="builtin")


def untrusted_hooks(policy: UnknownTool, lines: Sequence[str]) -> Iterator[Hook]:
    """The gate that carries out what agents may do in a project that was never trusted."""

    def untrusted_project(step: Any) -> Verdict:
        return {"ask": ask, "deny": deny}[policy](lines[0])

    if policy != "proceed" and lines:
        yield Hook(untrusted_project, "before_tool", phase="gate", name="fairlead.toml.untrusted", layer="builtin")


def claimed_hooks(claims: Sequence[str]) -> Iterator[Hook]:
    """The gate of a folder in which git would use a trusted repository without its policy."""

    def claimed_repository(step: Any) -> Verdict:
        return deny(claims[0])

    if claims:
        yield Hook(claimed_repository, GUARDING, phase="gate", name="fairlead.toml.claimed", layer="builtin")


def unusable_hooks(problems: Iterable[str]) -> Iterator[Hook]:
    """The gate that stands for a policy that was trusted and cannot be used: what it would deny is not known."""
    first = next(iter(problems), None)

    def unusable_policy(step: Any) -> Verdict:
        return deny(f"the policy that was trusted cannot be used: {first}")

    if first is not None:
        yield Hook(unusable_policy, GUARDING, phase="gate", name="fairlead.toml.unusable", layer="builtin")
