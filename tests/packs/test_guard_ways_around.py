"""Ways to pause, end, replace or go around fairlead are denied, and the commands of an ordinary day pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import process_time

import pytest
from ordinary_commands import ORDINARY
from test_guard import OVERRIDES, World, denied
from ways_around import AROUND, UNSEEN

THREATS = Path(__file__).parents[2] / "docs/threats.md"
FALSE_ALARMS = 5 / 418


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    root = tmp_path_factory.mktemp("world")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(root / "home"))
        for name in OVERRIDES:
            patch.delenv(name, raising=False)
        made = World(root)
        made.run.mkdir(parents=True)
        for name in ("daemon.sock", "daemon.pid"):
            (made.run / name).touch()
        yield made


@pytest.mark.parametrize("line", AROUND)
def test_no_way_around_passes(world: World, line: str) -> None:
    denied(world.shell(line.replace("¶", "\n")))


def test_hardly_any_ordinary_command_is_stopped(world: World) -> None:
    stopped = {line: world.shell(line.replace("¶", "\n")) for line in ORDINARY}
    assert len(stopped) >= 418
    found = [line for line, verdict in stopped.items() if verdict is not None]
    assert len(found) <= FALSE_ALARMS * len(stopped), found


@pytest.mark.parametrize(
    "unit",
    ["'BASH_FUNC_ls%%=()", 'print(open("fairlead.toml").read())', "length($0)'", "rm $x;", "x=$(a);rm $x;", "a|sh;"],
)
def test_a_long_line_of_many_commands_takes_less_than_a_second(world: World, unit: str) -> None:
    began = process_time()
    world.shell(unit * (30_000 // len(unit)))
    assert process_time() - began < 1


@pytest.mark.parametrize("line", UNSEEN)
def test_what_the_guard_cannot_see_is_listed(world: World, line: str) -> None:
    assert world.shell(line) is None
    assert f"`{line}`" in THREATS.read_text(encoding="utf-8").replace("\\|", "|")


def test_the_table_is_as_long_as_promised() -> None:
    assert len(set(AROUND)) >= 300
