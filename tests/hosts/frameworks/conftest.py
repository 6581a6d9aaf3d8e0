"""The portable suite runs for one framework at a time: the one that FAIRLEAD_FRAMEWORK names.

Where nothing is named, it is our own loop, which shows that the suite asks for what the lifecycle means.
`make test-frameworks` runs it for all of them, each in an environment of its own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import boundary
import driver as drivers
import pytest
from boundary import Boundary
from driver import NAME, Driver
from scene import Scene

from fairlead.hosts.frameworks.framework import ALL

HERE = Path(__file__).parent

collect_ignore_glob = [f"test_{name}*.py" for name in (*ALL, "together") if name != NAME]
if NAME == "together":  # two frameworks in one process, and no suite
    collect_ignore_glob += [
        "test_cells.py",
        "test_one_liners.py",
        "test_portable.py",
        "test_page.py",
        "test_unrecorded.py",
        "test_ways_around.py",
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):  # what a framework warns its users of is no failure of ours
            item.add_marker(pytest.mark.filterwarnings("default"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "same_ids: the model gives several calls one id")
    config.addinivalue_line(
        "markers", "ungoverned(text): shows a way around the hooks that the page lists with this text"
    )
    if NAME != "together":
        drivers.Driver.tapped = import_module(f"driver_{NAME}").Driver.tap()


@pytest.fixture(autouse=True)
def judged(request: pytest.FixtureRequest) -> Iterator[Boundary]:
    """The boundary check of one test.

    A test of a way around the hooks is marked `ungoverned("words")`: it must show one, and the page of the framework
    must have these words under "Not governed".
    """
    with pytest.MonkeyPatch.context() as patch, boundary.watched(patch) as watched:
        watched.same_ids = request.node.get_closest_marker("same_ids") is not None
        yield watched
    way_around = request.node.get_closest_marker("ungoverned")
    if way_around is not None:
        assert way_around.args[0] in boundary.not_governed(NAME), f"the page of {NAME} does not list it"
        assert watched.ways_around, "every tool ran as it was judged: this is no way around the hooks any more"
    else:
        assert not watched.ways_around, "tools ran that were not judged: " + "; ".join(watched.ways_around)


@pytest.fixture(scope="session")
def driver() -> Driver:
    made: Driver = import_module(f"driver_{NAME}").Driver()
    return made


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """In all ways in which the framework can be run."""
    if "way" in metafunc.fixturenames:
        kind = import_module(f"driver_{NAME}").Driver
        ways = ["async", *(["streaming"] if kind.streams else []), *(["sync"] if kind.sync else [])]
        metafunc.parametrize("way", ways)


@pytest.fixture
def scene(driver: Driver, way: str) -> Scene:
    return Scene(driver, way)


# --- results ----------------------------------------------------------------------------------------

_RESULTS: dict[str, Any] = {}


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Keep what was seen, for the matrix: whether it worked, or was reported as something the framework cannot do."""
    report = (yield).get_result()
    scene = getattr(item, "funcargs", {}).get("scene")
    if report.when == "call" and isinstance(scene, Scene):
        name = re.sub(r"\[.*", "", item.name)
        cell = getattr(item, "callspec", None)
        about = cell.params.get("cell") if cell is not None else None
        key = f"{about[0]} {about[1]}" if about else name
        seen = scene.seen if report.passed else "failed"
        kept = _RESULTS.setdefault(key, {})
        kept[scene.way] = seen if kept.get(scene.way, seen) == seen else "failed"
        if name == "test_the_events_that_fire_are_those_of_the_table" and scene.way == "async":
            kept["events"] = " ".join(sorted(set(scene.events)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    folder = os.environ.get("FAIRLEAD_RESULTS")
    if folder and _RESULTS:
        framework = import_module(f"driver_{NAME}").Driver.framework
        told = {"title": framework.title, "version": version(framework.package), "results": _RESULTS}
        Path(folder).mkdir(parents=True, exist_ok=True)
        Path(folder, f"{NAME}-{told['version']}.json").write_text(json.dumps(told, indent=1, sort_keys=True))
