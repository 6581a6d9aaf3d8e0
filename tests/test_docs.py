"""The README, the docs and the examples do what they say: every Python block is run, page by page."""

from __future__ import annotations

import ast
import inspect
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.hosts.clis.mapping import ALL, host_named

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)")


# Those of the frameworks run in the frameworks' own environments: tests/hosts/frameworks/test_page.py.
WITH_CODE = [page for page in PAGES if BLOCK.search(page.read_text()) and page.parent.name != "frameworks"]


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.name)
async def test_the_examples_on_a_page_run(page: Path):
    names: dict[str, object] = {"__name__": "docs"}
    for block in BLOCK.findall(page.read_text()):
        code = compile(block, page.name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(code, names)
        if inspect.iscoroutine(result):
            await result


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path):
    for target in LINK.findall(FENCED.sub("", page.read_text())):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_an_example_runs(example: Path):
    result = subprocess.run([sys.executable, example], capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr


def test_the_tour_shows_what_it_promises():
    shown = subprocess.run([sys.executable, ROOT / "examples" / "tour.py"], capture_output=True, text=True).stdout
    for part in ("deny by no_force_push", "terraform plan prod", "(approval)", "[redacted]", "(timeout)", "monitored"):
        assert part in shown


@pytest.mark.parametrize(
    ("name", "file"), re.findall(r"`([A-Za-z_][\w.]*)` in `([\w/]+\.py)`", (ROOT / "docs/internals.md").read_text())
)
def test_what_the_page_about_the_internals_names_is_where_it_says(name: str, file: str):
    sources = [path for path in (ROOT / "src/fairlead").rglob("*.py") if str(path).endswith(f"/{file}")]
    last = name.rpartition(".")[2]
    assert any(re.search(rf"(?:def|class) {last}\b|^{last}\b.* = ", path.read_text(), re.MULTILINE) for path in sources)


def test_every_file_that_the_page_about_the_internals_names_exists():
    named = set(re.findall(r"`((?:\w+/)*\w+\.py)`", (ROOT / "docs/internals.md").read_text()))
    there = (path for folder in ("src/fairlead", "docs") for path in (ROOT / folder).rglob("*.py"))
    sources = [f"/{path.relative_to(ROOT)}" for path in there]
    assert sorted(file for file in named if not any(path.endswith(f"/{file}") for path in sources)) == []
    assert len(named) > 50


def test_the_readme_names_the_two_commands_that_do_everything():
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text


FROM_AN_INDEX = re.compile(r"(?:\binstall|\badd|--with|\buvx|pipx run)\s+(?:-\S+\s+)*['\"]?fairlead(?![\w/-])")
COMMANDS = re.compile(r"\b(?:pip|pipx|uv|uvx|poetry|pdm|rye|hatch)\b[^\n]*")


def test_no_page_and_no_message_installs_fairlead_from_an_index():
    # There is no release yet, and the project of this name on PyPI is another one.
    texts = {file: file.read_text() for file in (*PAGES, ROOT / "CONTRIBUTING.md", *(ROOT / "src").rglob("*.py"))}
    commands = [(file.name, command) for file, text in texts.items() for command in COMMANDS.findall(text)]
    assert [found for found in commands if FROM_AN_INDEX.search(found[1])] == []


def test_a_command_that_installs_from_an_index_is_seen():
    for command in ("pip install fairlead", "pip install -U 'fairlead[all]'", "uv add fairlead", "uvx fairlead"):
        assert FROM_AN_INDEX.search(command), command
    for command in ("pip install '.[all]'", "pip install '../fairlead[all]'", "uv pip install fairlead-packs"):
        assert not FROM_AN_INDEX.search(command), command


def test_the_guide_has_every_option():
    from fairlead.hook import HookOptions

    guide = (ROOT / "docs" / "guide.md").read_text()
    for option in HookOptions.__annotations__:
        assert f"`{option}`" in guide


def test_the_guide_has_every_verdict():
    guide = (ROOT / "docs" / "guide.md").read_text()
    for name in ("deny", "ask", "allow", "skip", "stop", "extend", "retry", "abort", "skip_rest", "change", "inject"):
        assert f"`{name}(" in guide


SHOWN_BY = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")


@pytest.mark.parametrize("page", ["journal.md", "threats.md"])
def test_every_promise_and_every_threat_has_its_tests(page: str):
    rows = [
        line
        for line in (ROOT / "docs" / page).read_text().splitlines()
        if line.startswith("| ") and "](../tests" in line
    ]
    assert len(rows) >= 15
    for name, file in (found for row in rows for found in SHOWN_BY.findall(row)):
        assert re.search(rf"^(?:async )?def {name}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file} has no {name}"


# --- the command line, as the pages show it -----------------------------------------------------------

CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
TOML = re.compile(r"^```toml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_three_commands_say_what_the_quickstart_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("HOME", "XDG_CONFIG_HOME", "FAIRLEAD_STATE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    here = tmp_path / "project"
    here.mkdir()
    (session,) = CONSOLE.findall((ROOT / "docs" / "quickstart.md").read_text())
    for shown in session.split("$ ")[1:]:
        command, _, expected = shown.partition("\n")
        run = [sys.executable, "-m", "fairlead.cli", *shlex.split(command)[1:]]
        said = subprocess.run(run, cwd=here, capture_output=True, text=True, check=False)
        expected, printed = (
            re.sub(" +", " ", text.strip()) for text in (expected, said.stdout)
        )  # durations set columns
        pattern = ".*?".join(map(re.escape, expected.split("...")))
        assert re.fullmatch(pattern, printed, re.DOTALL), said.stdout + said.stderr


def test_the_configuration_page_has_no_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from fairlead.config.layers import Sources, read
    from fairlead.config.trust import Trust

    (tmp_path / "pytest").write_text("#!/bin/sh\n")
    (tmp_path / "pytest").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("ACME_TOKEN", "token")
    monkeypatch.setenv("ACME_SECRET", "secret")
    system, user = tmp_path / "system.toml", tmp_path / "user.toml"
    system.write_text('[[hook]]\nname = "noisy-audit"\non = "*"\nphase = "observe"\nshell = "true"\n')
    user.write_text("\n".join(TOML.findall((ROOT / "docs" / "configuration.md").read_text())))
    config = read(Sources(system, user), Trust(tmp_path / "state"))
    assert not config.mistakes, "\n".join(map(str, config.mistakes))
    assert [c.hook.name for c in config.hooks] == ["no-force-push", "tests-before-done", "org-policy", "careful"]


@pytest.mark.parametrize(
    ("test", "control"), [(None, "proceed"), ("assert 1", "proceed"), ("assert 0", "extend")], ids=["none", "ok", "bad"]
)
@pytest.mark.parametrize("layer", ["user", "project"])
async def test_the_recipe_with_pytest_holds_also_where_there_are_no_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layer: str, test: str | None, control: str
):
    from fairlead import Hooks
    from fairlead.config.document import Document
    from fairlead.config.layers import Sources, find, read
    from fairlead.config.survey import survey
    from fairlead.config.trust import Trust
    from fairlead.testing import step

    program = tmp_path / "bin" / "pytest"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest -p no:cacheprovider "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    page = "\n".join(TOML.findall((ROOT / "docs" / "configuration.md").read_text()))
    (recipe,) = [part for part in page.split("[[hook]]") if "tests-before-done" in part]
    file = tmp_path / "home" / "fairlead.toml"
    file.parent.mkdir()
    file.write_text(f"[[hook]]{recipe}")
    if test is not None:
        (file.parent / "test_it.py").write_text(f"def test_it():\n    {test}\n")
    hooks = Hooks()
    if layer == "user":
        read(Sources(None, file)).apply(hooks)
    else:
        for name in ("HOME", "XDG_CONFIG_HOME", "FAIRLEAD_STATE_DIR"):
            monkeypatch.setenv(name, str(tmp_path / name))
        Trust().pin(survey(Document(file), file.parent), unpinned=True)
        read(find(file.parent)).apply(hooks)
    decision = await hooks.dispatch(step("before_turn_end"))
    assert (decision.control, decision.failures) == (control, ()), decision
    assert [context.hook for context in decision.context if "1 failed" in context] == ["tests-before-done"][
        : control == "extend"
    ]


def test_every_command_is_in_the_docs():
    from fairlead.cli import make_parser

    text = "".join(page.read_text() for page in PAGES) + (ROOT / "CHANGELOG.md").read_text()
    for action in make_parser()._actions:
        for name in action.choices if isinstance(action.choices, dict) else ():
            assert f"`{name}`" in text or f"fairlead {name}" in text, name


def test_the_drawing_of_a_run_is_the_one_the_table_gives():
    from fairlead.reference import run_diagram

    assert run_diagram() in (ROOT / "docs" / "loop.md").read_text()


def test_every_event_is_in_the_drawing_of_a_run():
    from fairlead.lifecycle import EVENTS
    from fairlead.reference import RUN

    assert set(RUN.split()) - {"{", "}"} == EVENTS.keys() - {"subagent_start", "subagent_stop", "notification", "error"}


def test_every_pack_has_a_page_of_its_rules(tmp_path: Path):
    from fairlead.packs import packs
    from fairlead.reference import write

    write(tmp_path)
    index = (tmp_path / "packs/index.md").read_text()
    for pack in packs("recommended"):
        assert f"({pack.name}.md)" in index
        page = (tmp_path / "packs" / f"{pack.name}.md").read_text()
        headings = re.findall(r"^## (\S+/\S+)$", page, re.MULTILINE)
        assert headings == [rule.id for rule in pack]
        for rule in pack:
            anchor = "".join(c for c in rule.id if c.isalnum() or c in "-_")  # as Markdown makes them of headings
            assert f"[`{rule.id}`](#{anchor})" in page
            for example in (*rule.stops, *rule.passes):
                assert not isinstance(example, str) or example in page


# --- the agent CLIs -----------------------------------------------------------------------------------


def test_the_page_of_the_clis_has_the_tables_as_they_are():
    from fairlead.reference import hosts_matrix, rules_table

    page = (ROOT / "docs" / "clis.md").read_text()
    assert hosts_matrix() in page
    assert rules_table() in page


@pytest.mark.parametrize("name", ALL)
def test_every_cli_has_a_page_that_names_the_version_it_was_tried_with(name: str):
    page = (ROOT / "docs" / "clis" / f"{name}.md").read_text()
    assert f"version {host_named(name).proven}" in page
