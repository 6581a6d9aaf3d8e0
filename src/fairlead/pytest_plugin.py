"""The pytest plugin: fixtures for testing hooks. It is active wherever fairlead is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .registry import Hooks
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
