"""The pytest plugin: fixtures for testing hooks, and files of test cases of a policy.

It is active wherever fairlead is installed. The ini option `fairlead_cases` lists the files of cases, and
`fairlead_policy` names the policy that they test.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .registry import Hooks
    from .replay.cases import CaseResult
    from .testing import Recorder


@pytest.fixture
def hooks() -> Hooks:
    """An empty `Hooks` that records every run."""
    from .registry import Hooks

    return Hooks(record=True)


@pytest.fixture
def recorder(hooks: Hooks) -> Recorder:
    """Remembers every step and decision of the `hooks` fixture."""
    from .testing import Recorder

    return Recorder(hooks)


# --- test cases of a policy ------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("fairlead_cases", "files of test cases of a fairlead policy, TOML or JSONL", type="paths", default=[])
    parser.addini("fairlead_policy", "the policy that they test: a file or folder", type="paths", default=[])


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> CaseFile | None:
    if file_path.suffix not in (".toml", ".jsonl") or file_path not in parent.config.getini("fairlead_cases"):
        return None
    return CaseFile.from_parent(parent, path=file_path)


class CaseFile(pytest.File):
    """A file of cases. All of them are judged at once, in order: those of one session depend on one another."""

    def collect(self) -> Iterable[pytest.Item]:
        from .errors import FairleadError
        from .replay.cases import read_cases

        try:
            self._cases = read_cases(self.path)
        except FairleadError as error:
            raise self.CollectError(str(error)) from None
        self._results: dict[str, CaseResult] = {}
        for case in self._cases:
            if case.is_checked:
                yield CaseItem.from_parent(self, name=case.name, where=case.where)

    def result(self, where: str) -> CaseResult:
        """What the policy did about the case that stands there."""
        if not self._results:
            import asyncio

            from .replay.cases import run_cases
            from .replay.policies import find_policy

            named = self.config.getini("fairlead_policy")
            judge, _ = find_policy(str(named[0] if named else self.config.rootpath)).open()
            results = asyncio.run(run_cases(judge, self._cases))
            self._results = {one.case.where: one for one in results}
        return self._results[where]


class UnexpectedDecision(Exception):
    """The policy did not do what a case expects."""


class CaseItem(pytest.Item):
    """One case."""

    parent: CaseFile

    def __init__(self, *, where: str, **options: Any) -> None:
        super().__init__(**options)
        self.where = where

    def runtest(self) -> None:
        result = self.parent.result(self.where)
        if result.problem is not None:
            raise UnexpectedDecision(result.problem)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from .errors import FairleadError

        if excinfo.errisinstance((UnexpectedDecision, FairleadError)):
            return f"{self.where}: {excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name
