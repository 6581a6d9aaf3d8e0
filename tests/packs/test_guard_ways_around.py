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


VALUES_OF_OPTIONS = r"""
install -gstaff evil fairlead.toml
install -ostaff evil fairlead.toml
install -m0755t evil fairlead.toml
cp -Stxt evil fairlead.toml
mv -Sat evil fairlead.toml
unzip -Ppass -o x.zip fairlead.toml
unzip -P -p -o x.zip fairlead.toml
unzip -o x.zip fairlead.toml -dtmp/..
unzip -o x.zip -t fairlead.toml
gpg --verify --output=fairlead.toml x
gpg --verify --outp fairlead.toml x
gpg --verify -vofairlead.toml x
gpg --verify --log-file=fairlead.toml x
openssl dgst --out fairlead.toml x
cloc --out=fairlead.toml .
cloc --report-file=fairlead.toml .
scc -o fairlead.toml .
scc -cofairlead.toml .
node --redirect-warnings=fairlead.toml -p 'require("./a.json")'
node -p 'require("./a.json")' --redirect-warnings=fairlead.toml
NODE_REDIRECT_WARNINGS=fairlead.toml node -p 'require("./a.json")'
rm $(echo --help | grep z) fairlead.toml
fairlead pause $(echo --help | grep z)
""".strip().split("\n")
"""Values of options that look like options, and options that name a file to write."""
READS_ONLY = r"""
install -t build/ fairlead.toml
cp -vt build/ fairlead.toml
unzip -l x.zip fairlead.toml
unzip -qp x.zip fairlead.toml
unzip -P pass -t x.zip fairlead.toml
gpg --verify fairlead.toml.sig fairlead.toml
openssl dgst -sha256 fairlead.toml
cloc --json fairlead.toml
scc --by-file fairlead.toml
node -p 'require("./a.json").version'
node -p 'require("fs").readFileSync("fairlead.toml", "utf8")'
""".strip().split("\n")


@pytest.mark.parametrize("line", VALUES_OF_OPTIONS)
def test_a_value_of_an_option_exempts_nothing(world: World, line: str) -> None:
    denied(world.shell(line))


@pytest.mark.parametrize("line", READS_ONLY)
def test_programs_that_only_read_a_protected_file_pass(world: World, line: str) -> None:
    assert world.shell(line) is None


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
