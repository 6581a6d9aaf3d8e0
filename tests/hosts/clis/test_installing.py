"""Installing into agent CLIs: what is written, and that all else stays as it is."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fairlead.errors import FairleadError
from fairlead.hosts.clis.codex.settings import trust_hash
from fairlead.hosts.clis.install import (
    Plan,
    apply,
    carry_out,
    launcher_for,
    plan_install,
    plan_uninstall,
    read_records,
    status,
    targets,
)
from fairlead.hosts.clis.install import plan as planning
from fairlead.hosts.clis.install import settings as where
from fairlead.hosts.clis.install.jsonc import JsonDocument
from fairlead.hosts.clis.install.settings import (
    LAUNCHER_GONE,
    LAUNCHER_NOT_IN_HOME,
    has_scope,
    settings_file,
    settings_of,
)
from fairlead.hosts.clis.mapping import ALL, EXPERIMENTAL, Host, host_named
from fairlead.hosts.clis.packages import load_part
from fairlead.lifecycle import GUARDING

HOSTS = (*ALL, *EXPERIMENTAL)
EVERYWHERE = [(name, scope) for name in HOSTS for scope in where.SCOPES if has_scope(host_named(name), scope)]
JSON = [name for name in HOSTS if settings_of(name).form in ("groups", "list")]
TOML = ("codex", "managed")
WRITTEN = """\
\ufeff// My settings. Hands off!
{
\t"theme": "dark", /* of course */
\t"unknown": {"a": [1, 2.50, 1e3, "\\u00e9"], "b": null},
\t"hooks": {
\t\t// what I do
\t\t"%s": [
\t\t\t%s // mine
\t\t],
\t\t"SomethingElse": []
\t},
\t"unknown": true
}
"""


class Home:
    """A user's home, a project and a machine, and what is in them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.project = folder, folder / "home", folder / "project"
        self.state, self.machine = folder / "state", folder / "machine"
        for made in (self.home, self.project, self.machine):
            made.mkdir()
        (folder / "machine/usr/local/lib").mkdir(parents=True)

    def install(self, *names: str, scope: Any = "user", timeout: float | None = None) -> Plan:
        plan = plan_install([host_named(name) for name in names], scope, self.project, timeout=timeout)
        carry_out(plan)
        return plan

    def uninstall(self, *names: str, scope: Any = "user") -> Plan:
        plan = plan_uninstall([host_named(name) for name in names], scope, self.project)
        carry_out(plan)
        return plan

    def status(self, name: str, scope: Any = "user") -> Any:
        return status(host_named(name), scope, self.project)

    def file(self, name: str, scope: Any = "user") -> Path:
        return settings_file(host_named(name), scope, self.project)

    def write(self, name: str, text: str | bytes, scope: Any = "user") -> Path:
        path = self.file(name, scope)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def all(self) -> dict[str, bytes | None]:
        """Every file, link and folder outside of fairlead's own."""
        found = {}
        for top in (self.home, self.project, self.machine):
            for path in sorted(top.rglob("*")):
                found[str(path.relative_to(self.folder))] = path.read_bytes() if path.is_file() else None
        own = ("machine/usr", "home/.local")
        return {name: each for name, each in found.items() if not name.startswith(own)}

    def commands(self, name: str, scope: Any = "user") -> dict[str, str]:
        """Our command line of each event, as it is written down."""
        return {event: entry[settings_of(name).command_key] for event, entry in self.entries(name, scope).items()}

    def entries(self, name: str, scope: Any = "user") -> dict[str, dict[str, Any]]:
        """Our entry of each event, whichever of the CLI's files it is in."""
        data = dict(JsonDocument(self.file(name, scope).read_text()).value["hooks"])
        for hook in self.standalone_hooks(name, scope):
            timeout = hook["timeout"] * settings_of(name).timeout_unit
            data[hook["trigger"]] = [{"command": hook["action"]["command"], settings_of(name).timeout_key: timeout}]
        found = {}
        for event, listed in data.items():
            hooks = [hook for each in listed for hook in each.get("hooks", [each])]
            ours = [hook for hook in hooks if "fairlead-hook" in str(hook)]
            assert len(ours) == 1, event
            found[event] = ours[0]
        return found

    def standalone_hooks(self, name: str, scope: Any) -> list[dict[str, Any]]:
        """The hooks of Kiro 3, which are in a file of their own."""
        file = self.file(name, scope).parent.parent / "hooks/fairlead.json"
        return json.loads(file.read_text())["hooks"] if name == "kiro" else []


VARIABLES = [moved[0] for name in HOSTS if (moved := settings_of(name).moved_by)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return make_home(tmp_path, monkeypatch)


def make_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = Home(folder)
    monkeypatch.setenv("HOME", str(made.home))
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(made.state))
    monkeypatch.setattr(where, "ROOT", made.machine)
    monkeypatch.setattr(planning, "is_root", lambda: True)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return made


def wanted(name: str) -> list[str]:
    return [event for event, moment in host_named(name).events.items() if moment.installed]


def guarding(host: Host) -> str:
    return next(event for event, moment in host.events.items() if moment.event == "before_tool" and moment.installed)


def started(command: str) -> list[str]:
    """The words that start the launcher, without those that look for it first."""
    return shlex.split(command.removesuffix(")").rpartition("; ")[2].removesuffix(" || exit 2"))


def by_hand(name: str) -> str:
    """A hook that the user has written, as this CLI has it."""
    return {
        "list": '{"command": "./mine.sh", "bash": "./mine.sh"}',
        "groups": '{"matcher": "Bash", "hooks": [{"type": "command", "command": "./mine.sh"}]}',
    }[settings_of(name).form]


def written_by_hand(name: str) -> str:
    return WRITTEN % (guarding(host_named(name)), by_hand(name))


# --- every CLI, every scope ---------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "scope"), EVERYWHERE)
def test_where_nothing_was_nothing_is_left(home, name, scope):
    before = home.all()
    home.install(name, scope=scope)
    assert home.all() != before
    home.uninstall(name, scope=scope)
    assert home.all() == before


@pytest.mark.parametrize(("name", "scope"), EVERYWHERE)
def test_a_second_install_changes_nothing(home, name, scope):
    home.install(name, scope=scope)
    before, records = home.all(), read_records()
    assert [change.action for change in home.install(name, scope=scope).changes if change.changes] == []
    assert (home.all(), read_records()) == (before, records)


@pytest.mark.parametrize(("name", "scope"), EVERYWHERE)
def test_it_is_known_to_be_installed_and_current(home, name, scope):
    assert home.status(name, scope) is None
    home.install(name, scope=scope)
    found = home.status(name, scope)
    assert (found.events, found.missing, found.outdated, found.current) == (wanted(name), [], [], True)
    assert (found.host, found.scope, found.file, found.foreign, found.problems) == (
        name, scope, home.file(name, scope), [], [],
    )  # fmt: skip
    home.uninstall(name, scope=scope)
    assert home.status(name, scope) is None


@pytest.mark.parametrize(
    ("name", "scope"), [each for each in EVERYWHERE if each[0] in JSON and each != ("codex", "managed")]
)
def test_what_was_written_by_hand_comes_back_byte_for_byte(home, name, scope):
    path = home.write(name, written_by_hand(name), scope)
    before = home.all()
    home.install(name, scope=scope)
    assert "fairlead-hook" in path.read_text()
    home.uninstall(name, scope=scope)
    assert home.all() == before


@pytest.mark.parametrize("name", JSON)
def test_hooks_of_others_stay_and_come_before_ours(home, name):
    home.write(name, written_by_hand(name))
    home.install(name)
    event = guarding(host_named(name))
    listed = JsonDocument(home.file(name).read_text()).value["hooks"][event]
    assert listed[0] == json.loads(by_hand(name))
    assert "fairlead-hook" in str(listed[1])
    assert len(listed) == 2
    assert home.status(name).foreign == [f"{event}: ./mine.sh"]


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("timeout", [None, 5.0, 30.0, 300.0])
def test_each_event_starts_the_launcher_and_the_cli_waits_longer_than_we_do(home, name, timeout):
    home.install(name, timeout=timeout)
    host, about = host_named(name), settings_of(name)
    entries = home.entries(name)
    assert list(entries) == wanted(name)
    for event, entry in entries.items():
        launcher, seconds, ours, by, told = started(entry[about.command_key])
        assert (launcher, ours, by, told) == (
            str(home.state / "bin/fairlead-hook"), host.events[event].event, name, event,
        )  # fmt: skip
        assert os.access(launcher, os.X_OK)
        theirs = host.events[event].fixed_timeout or timeout or 120
        assert 0 < float(seconds) < theirs
        if about.timeout_key is not None:
            assert entry[about.timeout_key] == theirs * about.timeout_unit


def test_by_default_the_cli_waits_for_120_seconds_and_we_take_110(home):
    home.install("claude", "gemini")
    entry = home.entries("claude_code")["PreToolUse"]
    assert (entry["timeout"], started(entry["command"])[1]) == (120, "110")
    entry = home.entries("gemini")["BeforeTool"]
    assert (entry["timeout"], started(entry["command"])[1]) == (120_000, "110")


@pytest.mark.parametrize(("name", "scope"), EVERYWHERE)
def test_another_time_out_takes_the_place_of_the_first(home, name, scope):
    home.install(name, scope=scope)
    first = home.all()
    home.install(name, scope=scope, timeout=60)
    assert home.all() != first
    assert home.status(name, scope).current
    home.install(name, scope=scope, timeout=120)
    assert home.all() == first


def test_the_time_out_that_was_asked_for_stays(home):
    home.install("claude", timeout=60)
    before = home.all()
    home.install("claude")
    assert home.all() == before


@pytest.mark.parametrize(("name", "scope"), [each for each in EVERYWHERE if each[1] == "user"])
def test_another_launcher_takes_the_place_of_the_first(home, name, scope, monkeypatch):
    home.install(name, scope=scope)
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(home.folder / "else where"))
    assert set(home.status(name, scope).outdated) == set(wanted(name))
    home.install(name, scope=scope)
    assert home.status(name, scope).current
    text = "".join((found or b"").decode() for found in home.all().values())
    assert str(home.state) not in text
    assert "else where" in text


@pytest.mark.parametrize("name", JSON)
def test_edits_that_were_made_since_stay(home, name):
    path = home.write(name, written_by_hand(name))
    home.install(name)
    edited = path.read_text().replace('"dark"', '"light"').replace("// mine", "// still mine")
    path.write_text(edited)
    home.uninstall(name)
    assert path.read_text() == written_by_hand(name).replace('"dark"', '"light"').replace("// mine", "// still mine")


@pytest.mark.parametrize("name", JSON)
def test_hooks_that_were_added_since_stay(home, name):
    home.install(name)
    path, event = home.file(name), guarding(host_named(name))
    path.write_text(JsonDocument(path.read_text()).append(("hooks", event), json.loads(by_hand(name))).text)
    home.uninstall(name)
    assert JsonDocument(path.read_text()).value["hooks"] == {event: [json.loads(by_hand(name))]}


@pytest.mark.parametrize(("name", "scope"), EVERYWHERE)
def test_without_a_record_what_is_ours_is_known_by_the_launcher(home, name, scope):
    before = home.all()
    home.install(name, scope=scope)
    (home.state / "installed.json").unlink()
    home.uninstall(name, scope=scope)
    assert home.status(name, scope) is None
    left = [found for file, found in home.all().items() if found and file not in before]
    pinned = ({"hooksConfig": {"enabled": True}}, {"disableAllHooks": False}, {"hooks": {"hooksDisabled": False}})
    said = ({}, settings_of(name).template, *pinned)
    assert all(JsonDocument(found.decode()).value in said for found in left)


@pytest.mark.parametrize("name", JSON)
def test_without_a_record_what_was_written_by_hand_comes_back_byte_for_byte(home, name):
    path = home.write(name, written_by_hand(name))
    home.install(name)
    (home.state / "installed.json").unlink()
    home.uninstall(name)
    assert path.read_text() == written_by_hand(name)


def test_a_record_that_cannot_be_read_is_no_obstacle(home):
    path = home.write("claude_code", written_by_hand("claude_code"))
    home.install("claude")
    (home.state / "installed.json").write_text("{")
    home.uninstall("claude")
    assert path.read_text() == written_by_hand("claude_code")


def test_after_edits_and_another_install_the_edits_are_what_comes_back(home):
    path = home.write("claude_code", written_by_hand("claude_code"))
    home.install("claude")
    path.write_text(path.read_text().replace('"dark"', '"light"'))
    home.install("claude", timeout=60)
    home.uninstall("claude")
    assert path.read_text() == written_by_hand("claude_code").replace('"dark"', '"light"')


def test_hooks_that_a_later_version_does_not_want_any_more_go(home):
    home.install("claude")
    path = home.file("claude_code")
    entry = {"hooks": [{"type": "command", "command": f"{home.state}/bin/fairlead-hook 1 x claude_code Old"}]}
    path.write_text(JsonDocument(path.read_text()).put(("hooks", "Old"), [entry]).text)
    home.install("claude")
    assert "Old" not in JsonDocument(path.read_text()).value["hooks"]


def test_what_is_ours_goes_from_a_group_that_is_not_ours(home):
    home.install("claude")
    path = home.file("claude_code")
    document = JsonDocument(path.read_text())
    path.write_text(document.append(("hooks", "Stop", 0, "hooks"), {"type": "command", "command": "true"}).text)
    home.install("claude", timeout=60)
    assert [hook.get("timeout") for hook in JsonDocument(path.read_text()).value["hooks"]["Stop"][0]["hooks"]] == [
        60,
        None,
    ]
    assert home.status("claude_code").current
    home.uninstall("claude")
    assert JsonDocument(path.read_text()).value["hooks"] == {
        "Stop": [{"hooks": [{"type": "command", "command": "true"}]}]
    }


def test_ours_are_not_doubled_and_doubles_go(home):
    home.install("claude")
    path = home.file("claude_code")
    once = path.read_text()
    document = JsonDocument(once)
    path.write_text(document.append(("hooks", "Stop"), document.find(("hooks", "Stop", 0)).value).text)
    assert home.status("claude_code").outdated == ["Stop"]
    home.install("claude")
    assert path.read_text() == once


@pytest.mark.parametrize(
    "command",
    [
        "echo fairlead-hook", "'fairlead-hook", "/usr/bin/not-fairlead-hook 1 2 3 4", "my.sh /x/fairlead-hook",
        "test -x /x/fairlead-hook", "test -x", "test -x /x/fairlead-hook && my.sh /x/fairlead-hook",
        "test -x /x/fairlead-hook || echo gone; my.sh",
    ],
)  # fmt: skip
def test_a_command_that_only_speaks_of_the_launcher_is_not_ours(home, command):
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}})
    path = home.write("claude_code", text)
    home.install("claude")
    (home.state / "installed.json").unlink()
    home.uninstall("claude")
    assert path.read_text() == text


# --- generated documents -----------------------------------------------------------------

handlers = st.sampled_from([
    {"type": "command", "command": "./mine.sh"}, {"type": "http", "url": "http://x"}, {}, None, "odd",
])  # fmt: skip
groups = st.one_of(
    st.lists(handlers, max_size=2).map(lambda hooks: {"hooks": hooks}), st.just({"matcher": "x"}), st.integers()
)
events = st.sampled_from(["PreToolUse", "Stop", "Unknown"])
hooks = st.dictionaries(events, st.lists(groups, max_size=3), max_size=3)
others = st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4) | st.lists(st.integers(), max_size=2))
remarks = st.sampled_from(["", " ", "\n", "\r\n\t", "// é\n", "/* , } */", "\n\n  "])


@st.composite
def documents(draw: Any) -> str:
    """Settings with hooks in them, and gaps, remarks and commas wherever they may be."""
    value = draw(others)
    value.pop("hooks", None)
    for place in draw(st.lists(st.integers(0, 4), max_size=2)):  # it may be there twice
        parts = list(value.items())
        value = dict([*parts[:place], (f"hooks{' ' * place}", draw(hooks)), *parts[place:]])

    def written(value: Any) -> str:
        if isinstance(value, dict):
            parts = [
                f"{json.dumps(k.strip() if 'hooks' in k else k)}{gap()}:{gap()}{written(v)}" for k, v in value.items()
            ]
            return "{" + held(parts) + "}"
        if isinstance(value, list):
            return "[" + held([written(item) for item in value]) + "]"
        return json.dumps(value)

    def gap() -> str:
        return draw(remarks)

    def held(parts: list[str]) -> str:
        text = ",".join(f"{gap()}{part}{gap()}" for part in parts)
        return text + ("," + gap() if parts and draw(st.booleans()) else gap())

    return draw(st.sampled_from(["", "\ufeff"])) + gap() + written(value) + gap()


lenient = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)


@pytest.fixture
def quick(home, monkeypatch) -> Home:
    """The launcher is not what matters here."""
    monkeypatch.setattr(apply, "write_launcher", lambda folders, folder: folder / "fairlead-hook")
    return home


@lenient
@given(text=documents())
def test_any_settings_come_back_byte_for_byte(quick, text):
    path = quick.write("claude_code", text)
    quick.install("claude")
    assert set(wanted("claude_code")) <= set(quick.status("claude_code").events)
    quick.uninstall("claude")
    assert path.read_bytes() == text.encode()


@lenient
@given(text=documents())
def test_any_settings_mean_the_same_afterwards_even_without_a_record(quick, text):
    path = quick.write("claude_code", text)
    quick.install("claude")
    (quick.state / "installed.json").unlink()
    quick.uninstall("claude")
    before, after = JsonDocument(text).value, JsonDocument(path.read_text()).value
    assert without_empty_hooks(after) == without_empty_hooks(before)


def without_empty_hooks(data: dict[str, Any]) -> dict[str, Any]:
    kept = {event: listed for event, listed in data.get("hooks", {}).items() if listed}
    return {key: value for key, value in data.items() if key != "hooks"} | ({"hooks": kept} if kept else {})


@lenient
@given(text=documents(), added=st.integers())
def test_any_edit_that_was_made_since_stays(quick, text, added):
    path = quick.write("claude_code", text)
    quick.install("claude")
    path.write_bytes(JsonDocument(path.read_bytes().decode()).put(("made since",), added).text.encode())
    quick.uninstall("claude")
    assert JsonDocument(path.read_bytes().decode()).value == JsonDocument(text).value | {"made since": added}


# --- files that are not what they should be --------------------------------------------------------------


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  "hooks": {,}\n}', ':2:13: a name in "..." is missing; it is unchanged'),
        ("{", ":1:2: it ends before }"),
        ("[]", ":1:1: the file must be an object: {...}"),
        ('"x"', ":1:1: the file must be an object: {...}"),
        ('{\n "hooks": []}', ":2:11: hooks must be an object: {...}"),
        ('{\n "hooks": 5}', ":2:11: hooks must be an object: {...}"),
        (b'{\n"a": "\xff"}', ":2:7: this is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_left_alone_and_it_is_said_where_it_is_wrong(home, name, text, said):
    path = home.write(name, text)
    before = home.all()
    with pytest.raises(FairleadError) as raised:
        home.install(name)
    assert f"{path}{said}" in str(raised.value)
    assert (home.all(), read_records()) == (before, {})


@pytest.mark.parametrize("name", JSON)
def test_nor_is_anything_taken_out_of_it(home, name):
    home.install(name)
    path = home.file(name)
    path.write_text(path.read_text() + "}")
    before = home.all()
    with pytest.raises(FairleadError, match="something follows the end; it is unchanged: fix it, and try again"):
        home.uninstall(name)
    assert home.all() == before


@pytest.mark.parametrize("name", JSON)
def test_what_has_nothing_of_ours_need_not_be_read_to_be_left_alone(home, name):
    home.write(name, "{")
    before = home.all()
    home.uninstall(name)
    assert home.all() == before


@pytest.mark.parametrize("name", JSON)
def test_an_event_that_is_no_list_is_left_alone(home, name):
    event = guarding(host_named(name))
    path = home.write(name, f'{{"hooks": {{\n"{event}": {{}}}}}}')
    with pytest.raises(FairleadError, match=rf":2:{len(event) + 5}: hooks.{event} must be a list"):
        home.install(name)
    assert path.read_text() == f'{{"hooks": {{\n"{event}": {{}}}}}}'


@pytest.mark.parametrize("name", JSON)
@pytest.mark.parametrize("text", ["", "\n", " \r\n", "\ufeff"])
def test_an_empty_file_is_one_without_settings(home, name, text):
    path = home.write(name, text)
    home.install(name)
    assert home.status(name).current
    home.uninstall(name)
    assert path.read_bytes() == text.encode()


@pytest.mark.parametrize(("name", "scope"), EVERYWHERE)
def test_a_folder_in_the_place_of_a_file_is_left_alone(home, name, scope):
    path = home.file(name, scope)
    (path / "PreToolUse" if settings_of(name).form == "files" else path).mkdir(parents=True)
    before = home.all()
    with pytest.raises(FairleadError, match="is a folder, and should be a file"):
        home.install(name, scope=scope)
    assert home.all() == before


def test_a_file_in_the_place_of_a_folder_is_left_alone(home):
    (home.home / ".claude").write_text("hm")
    with pytest.raises(FairleadError, match=r"settings\.json cannot be read: Not a directory"):
        home.install("claude")


def test_what_is_no_file_at_all_is_left_alone(home):
    path = home.file("claude_code")
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(FairleadError, match="is no file that could hold settings"):
        home.install("claude")


def test_of_a_file_that_cannot_be_written_the_text_is_given(home, monkeypatch):
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode & os.W_OK == 0 and real(path, mode))
    (change,) = home.install("claude").changes
    assert (change.action, home.all()) == ("left", {})
    assert json.loads(change.snippet)["hooks"].keys() == set(wanted("claude_code"))


def test_of_several_files_none_is_written_if_one_cannot_be_read(home):
    home.write("gemini", "{")
    before = home.all()
    with pytest.raises(FairleadError, match=r"\.gemini/settings\.json:1:2"):
        home.install("claude", "codex", "gemini")
    assert home.all() == before
    assert not (home.state / "bin").exists()


@pytest.mark.parametrize("do", ["install", "uninstall"])
def test_if_a_file_cannot_be_written_those_before_it_are_as_they_were(home, monkeypatch, do):
    home.write("gemini", written_by_hand("gemini"))
    if do == "uninstall":
        home.install("claude", "gemini", "qwen")
    before, real, written = home.all(), os.replace, []

    def replace(old: str, new: Any) -> None:
        if str(home.home) in str(new):
            written.append(new)
            if len(written) == (3 if do == "install" else 1):
                raise OSError(28, "No space left on device", str(new))
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(FairleadError, match="No space left on device; nothing was changed"):
        getattr(home, do)("claude", "gemini", "qwen")
    assert home.all() == before


@pytest.mark.parametrize("host", HOSTS)
def test_a_home_that_is_not_absolute_is_no_home(home, monkeypatch, host):
    """A launcher of which only the end is named is not found from another folder, and some CLIs then run the tool."""
    monkeypatch.setenv("HOME", "somewhere")
    for name in ("FAIRLEAD_STATE_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(FairleadError, match="HOME must be an absolute path, not 'somewhere'"):
        home.install(host)


def test_if_it_cannot_be_remembered_all_files_are_as_they_were(home):
    home.write("gemini", written_by_hand("gemini"))
    (home.state / "installed.json").mkdir(parents=True)
    home.state.chmod(0o700)
    before = home.all()
    with pytest.raises(FairleadError, match="nothing was changed"):
        home.install("claude", "gemini")
    assert home.all() == before


def test_a_file_that_is_changed_meanwhile_is_left_alone(home):
    plan = plan_install([host_named("claude")], "user", home.project)
    path = home.write("claude_code", '{"mine": 1}')
    with pytest.raises(FairleadError, match="was changed by another program just now"):
        carry_out(plan)
    assert path.read_text() == '{"mine": 1}'


# --- how files are written ------------------------------------------------------------------------------


def test_the_mode_of_a_file_stays(home):
    path = home.write("claude_code", "{}")
    path.chmod(0o640)
    home.install("claude")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    home.uninstall("claude")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_new_file_of_a_user_is_readable_by_its_owner_only(home):
    home.install("claude", "cline")
    assert stat.S_IMODE(home.file("claude_code").stat().st_mode) == 0o600
    assert stat.S_IMODE((home.file("cline") / "PreToolUse").stat().st_mode) == 0o700


def test_what_holds_for_a_machine_can_be_read_by_every_user(home):
    old = os.umask(0o077)
    try:
        home.install("claude", scope="managed")
    finally:
        os.umask(old)
    path, launcher = home.file("claude_code", "managed"), home.machine / "usr/local/lib/fairlead/fairlead-hook"
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, launcher, launcher.parent)] == [
        0o644, 0o755, 0o755, 0o755,
    ]  # fmt: skip
    assert started(home.commands("claude_code", "managed")["PreToolUse"])[0] == str(launcher)


def test_a_link_stays_a_link_and_the_file_behind_it_is_written(home):
    real = home.home / "dotfiles/claude.json"
    real.parent.mkdir()
    real.write_text('{"mine": 1}')
    path = home.file("claude_code")
    path.parent.mkdir()
    path.symlink_to(real)
    home.install("claude")
    assert path.is_symlink()
    assert "fairlead-hook" in real.read_text()
    home.uninstall("claude")
    assert (path.is_symlink(), real.read_text()) == (True, '{"mine": 1}')


def test_a_link_to_nothing_is_followed_too(home):
    path = home.file("claude_code")
    path.parent.mkdir()
    path.symlink_to(home.home / "dotfiles/claude.json")
    before = home.all()
    home.install("claude")
    assert home.status("claude_code").current
    home.uninstall("claude")
    assert (path.is_symlink(), home.all()) == (True, before)


def test_no_other_file_is_left_behind(home):
    home.install("claude", "codex")
    assert set(home.all()) == {
        "home/.claude", "home/.claude/settings.json",
        "home/.codex", "home/.codex/hooks.json", "home/.codex/config.toml",
    }  # fmt: skip


def test_a_copy_of_what_was_there_is_readable_by_its_owner_only(home):
    home.write("claude_code", '{"secret": 1}')
    home.install("claude")
    record = next(iter(read_records().values()))
    assert (record.host, record.scope, record.file, record.existed) == (
        "claude_code", "user", str(home.file("claude_code")), True,
    )  # fmt: skip
    backup = Path(record.backup)
    assert (backup.read_text(), backup.parent) == ('{"secret": 1}', home.state / "backups")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    home.uninstall("claude")
    assert (backup.exists(), read_records()) == (False, {})


def test_folders_that_other_programs_use_stay(home):
    home.install("claude")
    (home.home / ".claude/mine").write_text("")
    home.uninstall("claude")
    assert set(home.all()) == {"home/.claude", "home/.claude/mine"}


@pytest.mark.parametrize("name", JSON)
def test_a_file_of_ours_goes_even_if_its_entries_were_touched(home, name):
    home.install(name)
    path = home.file(name)
    path.write_text(path.read_text().replace(" 110 ", " 109 "))
    home.uninstall(name)
    assert home.all() == {}


def test_the_launcher_stays_as_long_as_anything_starts_it(home):
    home.install("claude", "codex")
    home.install("gemini", scope="project")
    launcher = home.state / "bin/fairlead-hook"
    home.uninstall("claude")
    assert launcher.exists()
    home.uninstall("gemini", scope="project")
    assert launcher.exists()
    home.uninstall("codex")
    assert not launcher.parent.exists()


def test_without_a_record_too(home):
    home.install("claude", "codex")
    (home.state / "installed.json").unlink()
    home.uninstall("claude")
    assert (home.state / "bin/fairlead-hook").exists()


# --- where -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "variable", "file"),
    [
        ("claude_code", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("qwen", "QWEN_HOME", "settings.json"),
        ("copilot", "COPILOT_HOME", "hooks/fairlead.json"),
        ("droid", "FACTORY_HOME_OVERRIDE", ".factory/settings.json"),
        ("cline", "CLINE_DIR", "hooks/PreToolUse"),
        ("opencode", "XDG_CONFIG_HOME", "opencode/plugin/fairlead.js"),
    ],
)
def test_a_variable_that_moves_a_folder_is_heeded(home, name, variable, file, monkeypatch):
    moved = home.home / "else where"
    monkeypatch.setenv(variable, str(moved))
    home.install(name)
    assert (moved / file).is_file()
    assert set(os.listdir(home.home)) == {"else where", ".local"}
    home.uninstall(name)
    assert home.all() == {}


def test_where_each_has_its_settings(home):
    assert {name: str(home.file(name).relative_to(home.home)) for name in HOSTS} == {
        "claude_code": ".claude/settings.json",
        "codex": ".codex/hooks.json",
        "gemini": ".gemini/settings.json",
        "qwen": ".qwen/settings.json",
        "copilot": ".copilot/hooks/fairlead.json",
        "droid": ".factory/settings.json",
        "cline": ".cline/hooks",
        "opencode": ".config/opencode/plugin/fairlead.js",
        "cursor": ".cursor/hooks.json",
        "windsurf": ".codeium/windsurf/hooks.json",
        "devin": ".config/devin/config.json",
        "kiro": ".kiro/agents/fairlead.json",
        "goose": ".agents/plugins/fairlead/hooks/hooks.json",
    }


@pytest.mark.parametrize("name", [name for name in HOSTS if not has_scope(host_named(name), "managed")])
def test_a_cli_without_settings_for_a_machine_says_so(home, name):
    with pytest.raises(FairleadError, match="has no settings that hold for a whole machine; use --scope user"):
        home.install(name, scope="managed")
    assert home.status(name, "managed") is None


def test_for_a_machine_an_interpreter_that_not_every_user_can_run_is_reported(home, monkeypatch):
    program = home.folder / "python"
    program.write_text("")
    program.chmod(0o700)
    monkeypatch.setattr(planning, "base_interpreter", lambda: str(program))
    assert f"{program}: all users must be able to run it, and only root to change it; {program} breaks that" in (
        home.install("claude", scope="managed").warnings
    )
    assert home.install("claude", scope="user").warnings == []


def test_only_root_installs_for_a_machine(home, monkeypatch):
    monkeypatch.setattr(planning, "is_root", lambda: False)
    with pytest.raises(FairleadError, match="holds for all users of this machine: run this as root"):
        home.install("claude", scope="managed")
    assert home.all() == {}
    plan_install([host_named("claude")], "managed", home.project, dry_run=True)


def test_a_launcher_in_a_place_that_would_be_expanded_is_an_error(home, monkeypatch):
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(home.folder / "a$b"))
    with pytest.raises(FairleadError, match=r"would expand the \$ in"):
        home.install("gemini")
    home.install("claude")
    assert "a$b" in home.commands("claude_code")["Stop"]


# --- one by one ---------------------------------------------------------------------------------------------


def test_claude_code_names_tools_where_there_are_any_and_is_closed_where_steps_are_guarded(home):
    home.install("claude")
    data = json.loads(home.file("claude_code").read_text())["hooks"]
    closed = {event for event, (group,) in data.items() if group["hooks"][0].get("onFailure") == "block"}
    assert closed == {"PreToolUse", "UserPromptSubmit", "PermissionRequest"}
    named = {event for event, (group,) in data.items() if group.get("matcher") == "*"}
    assert {"PreToolUse", "PostToolUse", "PermissionRequest"} <= named
    assert not named & {"Stop", "SessionStart", "UserPromptSubmit", "Notification"}


@pytest.mark.parametrize("name", JSON)
def test_what_fails_closed_is_what_guards_and_nothing_else(home, name):
    home.install(name)
    host, closed = host_named(name), settings_of(name).fail_closed
    for event, entry in home.entries(name).items():
        guards = host.events[event].event in GUARDING
        assert (closed.items() <= entry.items()) == (guards or not closed)


# --- a launcher that is gone ---------------------------------------------------------------------------------

LOOKING = ["claude_code", "codex", "qwen", "copilot", "droid", "cline", "windsurf", "devin", "kiro"]
"""Those that would run the tool, or whose entries are run by programs that would."""
ODD = """it's "odd" & \\ ; so"""


class Ran(NamedTuple):
    code: int
    out: str
    err: str


def run_as_written(home: Home, name: str, event: str) -> Ran:
    """What the CLI starts, as it starts it: by a shell, or as a program."""
    if settings_of(name).form == "files":
        argv = [str(home.file(name) / event)]
    else:
        argv = ["/bin/sh", "-c", home.commands(name)[event]]
    ran = subprocess.run(argv, input="{}", capture_output=True, text=True, cwd=home.project, timeout=30)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def write_one_that(home: Home, does: str) -> None:
    (home.state / "bin/fairlead-hook").write_text(f"#!/bin/sh\n{does}\n")


@pytest.fixture(params=["state", ODD])
def anywhere(home, monkeypatch, request) -> Home:
    """A home whose launcher is in a folder with any name."""
    home.state = home.folder / request.param
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(home.state))
    return home


def test_those_that_look_for_the_launcher_first_are_those_that_would_run_the_tool():
    assert [name for name in HOSTS if settings_of(name).if_launcher_gone] == LOOKING


@pytest.mark.parametrize("name", LOOKING)
@pytest.mark.parametrize("lose", [Path.unlink, lambda path: path.chmod(0o644)], ids=["deleted", "not executable"])
def test_without_its_launcher_what_guards_is_refused_and_told_why(anywhere, name, lose):
    anywhere.install(name)
    lose(anywhere.state / "bin/fairlead-hook")
    host = host_named(name)
    guards = [event for event in wanted(name) if host.events[event].event in GUARDING]
    assert guards
    for event in guards:
        ran = run_as_written(anywhere, name, event)
        assert ran.code == 2
        if name == "cline":
            head, _, told = ran.out.partition("\t")
            assert (head, json.loads(told)) == ("HOOK_CONTROL", {"cancel": True, "errorMessage": LAUNCHER_GONE})
        elif name == "copilot":
            assert refusal_in_json(ran.out) == LAUNCHER_GONE
            assert ran.err.splitlines()[0] == LAUNCHER_GONE
        else:
            assert (ran.out, ran.err.splitlines()[0]) == ("", LAUNCHER_GONE)


def refusal_in_json(text: str) -> str:
    """The reason of a refusal that holds at each event of Copilot, also where exit codes do not count."""
    said = json.loads(text)
    reasons = {said.pop(key) for key in ("permissionDecisionReason", "reason", "message")}
    assert said == {"permissionDecision": "deny", "decision": "block", "behavior": "deny"}
    (reason,) = reasons
    return reason


def test_a_projects_hooks_refuse_in_json_where_the_user_has_no_launcher(home):
    home.install("copilot", scope="project")
    (home.state / "bin/fairlead-hook").unlink(missing_ok=True)
    file = home.file("copilot", "project")
    hook = json.loads(file.read_text())["hooks"]["preToolUse"][0]["bash"].replace("/fairlead/", "/not-there/")
    ran = subprocess.run(["/bin/bash", "-c", hook], input="{}", capture_output=True, text=True, timeout=30)
    assert ran.returncode == 2
    assert refusal_in_json(ran.stdout) == LAUNCHER_NOT_IN_HOME
    assert LAUNCHER_NOT_IN_HOME in ran.stderr


@pytest.mark.parametrize("name", LOOKING)
def test_without_its_launcher_what_does_not_guard_refuses_nothing(home, name):
    home.install(name)
    (home.state / "bin/fairlead-hook").unlink()
    for event in wanted(name):
        if host_named(name).events[event].event not in GUARDING:
            ran = run_as_written(home, name, event)
            assert (ran.code, ran.out, "refused" in ran.err) == (127, "", False)


@pytest.mark.parametrize("name", LOOKING)
@pytest.mark.parametrize("code", [0, 2])
def test_with_its_launcher_the_answer_is_the_launchers(anywhere, name, code):
    anywhere.install(name)
    write_one_that(anywhere, f'read -r line; echo "$line $*"; echo because >&2; exit {code}')
    event = guarding(host_named(name))
    assert run_as_written(anywhere, name, event) == (code, f"{{}} 110 before_tool {name} {event}\n", "because\n")


@pytest.mark.parametrize("event", ["PreToolUse", "Stop"])
def test_a_here_document_after_the_line_reaches_the_launcher(home, event):
    """Cursor runs the entries of Claude Code so."""
    home.install("claude_code")
    write_one_that(home, "cat")
    command = f"{home.commands('claude_code')[event]} <<'END'\n{{}}\nEND"
    ran = subprocess.run(
        ["/bin/sh", "-c", command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
    )
    assert (ran.returncode, ran.stdout) == (0, "{}\n")


@pytest.mark.parametrize("name", ["claude_code", "codex", "qwen", "droid"])
def test_a_launcher_that_is_killed_is_a_refusal_too(home, name):
    home.install(name)
    write_one_that(home, "kill -9 $$")
    ran = run_as_written(home, name, guarding(host_named(name)))
    assert (ran.code, ran.err != "") == (2, True)  # without a word, it would be none


def of_an_older_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written before `install` looked for the launcher, and when a project's settings named one user's."""
    for name in LOOKING:
        monkeypatch.setattr(load_part(name, "settings"), "SETTINGS", replace(settings_of(name), if_launcher_gone=None))
    now = targets.command_of
    monkeypatch.setattr(targets, "command_of", lambda host, event, launcher, timeout, scope: now(
        host, event, launcher or launcher_for("user"), timeout
    ))  # fmt: skip


@pytest.mark.parametrize(("name", "scope"), [each for each in EVERYWHERE if each[0] in LOOKING])
@pytest.mark.parametrize("recorded", [True, False])
def test_hooks_of_an_older_version_are_replaced_and_go_byte_for_byte(home, name, scope, recorded):
    if name != "cline" and (name, scope) != TOML:
        home.write(name, written_by_hand(name), scope)
    before = home.all()
    with pytest.MonkeyPatch.context() as patch:
        of_an_older_version(patch)
        home.install(name, scope=scope)
        old = home.all()
    if not recorded:
        (home.state / "installed.json").unlink()
    assert home.status(name, scope).outdated
    home.install(name, scope=scope)
    found = home.status(name, scope)
    assert (found.current, found.trusted) == (True, True if name == "codex" and scope != "managed" else None)
    assert home.all() != old
    home.uninstall(name, scope=scope)
    if recorded:
        assert home.all() == before
    assert home.status(name, scope) is None


@pytest.mark.parametrize(("name", "scope"), [each for each in EVERYWHERE if each[0] in LOOKING])
def test_hooks_of_an_older_version_can_be_taken_out_at_once(home, name, scope):
    before = home.all()
    with pytest.MonkeyPatch.context() as patch:
        of_an_older_version(patch)
        home.install(name, scope=scope)
    home.uninstall(name, scope=scope)
    assert home.all() == before


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("claude_code", '{} // hm', 1), ("claude_code", '{\n"a": [1,]}', 2), ("codex", '\n{} // hm', 2),
        ("gemini", '{"a": 1,}', 1), ("droid", '{"a": 1,}', 1), ("copilot", "{} // hm", 1),
    ],
)  # fmt: skip
def test_what_the_cli_would_not_read_is_said(home, name, text, line):
    path = home.write(name, text)
    warnings = home.install(name).warnings
    assert len(warnings) == 1
    assert warnings[0].startswith(f"{path}:")
    assert "so none of its hooks run" in warnings[0]
    assert home.status(name).problems == warnings


@pytest.mark.parametrize(("name", "text"), [("gemini", "{} // fine"), ("droid", "/* fine */ {}"), ("qwen", "{}//")])
def test_what_the_cli_reads_is_not_spoken_of(home, name, text):
    home.write(name, text)
    assert home.install(name).warnings == []


@pytest.mark.parametrize(
    ("name", "text", "key"),
    [
        ("claude_code", '{"disableAllHooks": true}', "disableAllHooks"),
        ("gemini", '{"hooksConfig": {"enabled": false}}', "hooksConfig.enabled"),
        ("qwen", '{"disableAllHooks": true}', "disableAllHooks"),
        ("droid", '{"hooks": {"hooksDisabled": true}}', "hooks.hooksDisabled"),
    ],
)
def test_a_switch_that_turns_hooks_off_is_spoken_of(home, name, text, key):
    path = home.write(name, text)
    (warning,) = home.install(name).warnings
    assert f"{key} turns all hooks of {host_named(name).title} off" in warning
    home.uninstall(name)
    assert path.read_text() == text


def test_gemini_for_a_machine_cannot_be_turned_off_by_its_users(home):
    home.install("gemini", scope="managed")
    assert json.loads(home.file("gemini", "managed").read_text())["hooksConfig"] == {"enabled": True}


def test_of_two_files_droid_heeds_the_one_that_has_the_event(home):
    path = home.write("droid", '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]}}')
    winner = path.parent / "hooks.json"
    winner.write_text('{"PreToolUse": [{"hooks": [{"type": "command", "command": "b"}]}]} // mine\n')
    before = home.all()
    home.install("droid")
    assert list(JsonDocument(winner.read_text()).value) == ["PreToolUse"]
    assert len(JsonDocument(winner.read_text()).value["PreToolUse"]) == 2
    assert "PreToolUse" not in JsonDocument(path.read_text()).value["hooks"]
    assert len(JsonDocument(path.read_text()).value["hooks"]["Stop"]) == 2
    assert home.status("droid").events == wanted("droid")
    assert home.status("droid").foreign == ["PreToolUse: b", "Stop: a"]
    home.uninstall("droid")
    assert home.all() == before


def test_once_droid_has_made_the_other_file_ours_move_there(home):
    home.install("droid")
    path = home.file("droid")
    hooks = json.loads(path.read_text())["hooks"]
    (path.parent / "hooks.json").write_text(json.dumps({"PreToolUse": hooks["PreToolUse"]}))
    home.install("droid")
    assert "PreToolUse" not in json.loads(path.read_text())["hooks"]
    home.uninstall("droid")
    assert "fairlead-hook" not in "".join((found or b"").decode() for found in home.all().values())


def test_cline_has_a_program_for_each_event(home):
    home.install("cline")
    folder = home.file("cline")
    assert sorted(os.listdir(folder)) == sorted(wanted("cline"))
    text = (folder / "PostToolUse").read_text()
    assert text == f"#!/bin/sh\n{home.state}/bin/fairlead-hook 110 after_tool cline PostToolUse\n"
    assert os.access(folder / "PreToolUse", os.X_OK)


def test_cline_does_not_wait_longer_than_it_does(home):
    home.install("cline", timeout=600)
    assert " 110 before_tool " in (home.file("cline") / "PreToolUse").read_text()


def test_a_foreign_program_is_left_alone(home):
    mine = home.file("cline") / "PostToolUse"
    mine.parent.mkdir(parents=True)
    mine.write_text("#!/bin/sh\necho mine\n")
    before = home.all()
    with pytest.raises(FairleadError, match="PostToolUse exists, and fairlead did not write it; it is unchanged"):
        home.install("claude", "cline")
    assert home.all() == before
    home.uninstall("cline")
    assert home.all() == before


def test_lines_that_the_user_put_into_a_program_of_ours_stay(home):
    home.install("cline")
    path = home.file("cline") / "PreToolUse"
    path.write_text(path.read_text() + "echo mine\n")
    home.uninstall("cline")
    assert path.read_text() == "#!/bin/sh\necho mine\n"


def test_a_program_of_ours_with_lines_of_the_user_is_not_written_over(home):
    home.install("cline")
    path = home.file("cline") / "PreToolUse"
    path.write_text(path.read_text() + "echo mine\n")
    with pytest.raises(FairleadError, match="lines that are not fairlead's"):
        home.install("cline")


def test_a_program_of_another_name_runs_beside_ours(home):
    mine = home.file("cline") / "PreToolUse.sh"
    mine.parent.mkdir(parents=True)
    mine.write_text("#!/bin/sh\necho mine\n")
    home.install("cline")
    assert home.status("cline").foreign == [f"PreToolUse: {mine}"]


def test_kiro_has_them_in_every_agent(home):
    mine = home.file("kiro").parent / "mine.json"
    mine.parent.mkdir(parents=True)
    mine.write_text('{"name": "mine", "hooks": {"stop": [{"command": "say done"}]}}')
    before = home.all()
    home.install("kiro")
    assert not home.file("kiro").exists()
    assert len(json.loads(mine.read_text())["hooks"]["stop"]) == 2
    home.uninstall("kiro")
    assert home.all() == before


def test_opencode_has_a_module_of_ours(home):
    home.install("opencode")
    text = home.file("opencode").read_text()
    assert json.dumps(str(home.state / "bin/fairlead-hook")) in text
    home.file("opencode").write_text("export const mine = 1\n")
    with pytest.raises(FairleadError, match="fairlead did not write it"):
        home.install("opencode")


def test_goose_has_a_plugin_of_ours(home):
    home.install("goose")
    plugin = home.home / ".agents/plugins/fairlead/plugin.json"
    assert json.loads(plugin.read_text())["name"] == "fairlead"
    plugin.unlink()
    assert home.status("goose").problems == [f"{plugin} is missing, and the CLI ignores the hooks without it"]


# --- Codex ---------------------------------------------------------------------------------------------------


def config(home: Home) -> Path:
    return home.home / ".codex/config.toml"


def trusted(home: Home) -> dict[str, Any]:
    state: dict[str, Any] = tomllib.loads(config(home).read_text())["hooks"]["state"]
    return {key.removeprefix(f"{home.home}/.codex/hooks.json:"): each for key, each in state.items()}


def test_the_digest_is_the_one_that_codex_has_for_it():
    """Both were told by the real program."""
    hook = {"type": "command", "command": "'/x y/fairlead-hook' 110 before_tool codex PreToolUse", "timeout": 120}
    assert trust_hash("PreToolUse", {"hooks": [hook]}, hook).startswith("sha256:871961959f30e")
    hook = {"type": "command", "command": "x", "timeout": 1}
    assert trust_hash("SessionEnd", {"hooks": [hook]}, hook).startswith("sha256:f3041eae9d0be")


def test_codex_is_told_to_trust_ours_and_only_ours(home):
    home.write("codex", json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "mine"}]}]}}))
    home.install("codex")
    keys = set(trusted(home))
    assert "pre_tool_use:1:0" in keys
    assert "pre_tool_use:0:0" not in keys
    assert len(keys) == len(wanted("codex"))
    assert home.status("codex").trusted is True


def test_its_settings_come_back_byte_for_byte(home):
    path = config(home)
    path.parent.mkdir()
    text = '# mine\nmodel = "x"\n\n[hooks.state."/else/hooks.json:stop:0:0"]\ntrusted_hash = "sha256:1"\n# end\n'
    path.write_text(text)
    before = home.all()
    home.install("codex")
    assert tomllib.loads(path.read_text())["model"] == "x"
    home.uninstall("codex")
    assert home.all() == before
    home.install("codex")
    (home.state / "installed.json").unlink()
    home.uninstall("codex")
    assert home.all()["home/.codex/config.toml"] == text.encode()


def test_what_codex_writes_there_meanwhile_stays(home):
    home.install("codex")
    path = config(home)
    path.write_text(path.read_text() + '\n[projects."/x"]\ntrust_level = "trusted"\n')
    home.uninstall("codex")
    assert path.read_text().strip() == '[projects."/x"]\ntrust_level = "trusted"'


@pytest.mark.parametrize("first", ["user", "project"])
def test_two_scopes_have_their_own_trust(home, first):
    second = "project" if first == "user" else "user"
    config(home).parent.mkdir()
    config(home).write_text("# mine\n")
    before = home.all()
    home.install("codex", scope="user")
    home.install("codex", scope="project")
    home.uninstall("codex", scope=first)
    assert (home.status("codex", first), home.status("codex", second).trusted) == (None, True)
    home.uninstall("codex", scope=second)
    assert home.all() == before


def test_a_hook_that_stands_elsewhere_by_now_is_not_trusted_until_installed_again(home):
    home.install("codex")
    path = home.file("codex")
    document = JsonDocument(path.read_text())
    ours = document.find(("hooks", "Stop")).value
    path.write_text(document.put(("hooks", "Stop"), [{"hooks": [{"type": "command", "command": "mine"}]}, *ours]).text)
    assert home.status("codex").trusted is False
    home.install("codex")
    assert home.status("codex").trusted is True
    assert {key for key in trusted(home) if key.startswith("stop:")} == {"stop:1:0"}


def test_a_hook_that_was_switched_off_is_not_trusted(home):
    home.install("codex")
    text = config(home).read_text()
    config(home).write_text(text.replace("# fairlead install\n", "# fairlead install\nenabled = false\n", 1))
    assert home.status("codex").trusted is False
    home.install("codex")
    assert (home.status("codex").trusted, config(home).read_text()) == (True, text)


def test_trust_that_a_person_gave_is_taken_over(home):
    home.install("codex")
    text = config(home).read_text()
    config(home).write_text(text.replace(" # fairlead install", ""))
    home.install("codex", timeout=60)
    assert home.status("codex").trusted is True
    home.uninstall("codex")
    assert not config(home).exists()


@pytest.mark.parametrize("text", ['hooks = { state = {} }\n', '[hooks]\nstate = { a = 1 }\n'])  # fmt: skip
def test_settings_that_cannot_take_a_table_are_left_alone_and_it_is_said_what_to_write(home, text):
    config(home).parent.mkdir()
    config(home).write_text(text)
    before = home.all()
    with pytest.raises(FairleadError, match=r"write them yourself:\n\n\[hooks\.state\."):
        home.install("codex")
    assert home.all() == before


@pytest.mark.parametrize(("name", "scope"), [("config.toml", "user"), ("requirements.toml", "managed")])
def test_toml_that_is_none_is_left_alone(home, name, scope):
    path = home.file("codex", scope).parent / name
    path.parent.mkdir(parents=True)
    path.write_text('a = 1\nb = \n[hooks.state."x"]\n')
    before = home.all()
    for do in (home.install, home.uninstall):
        with pytest.raises(FairleadError, match=rf"{name}: .*line 2.*; it is unchanged"):
            do("codex", scope=scope)
    assert home.all() == before


def test_codex_with_hooks_switched_off_is_spoken_of(home):
    config(home).parent.mkdir()
    config(home).write_text("[features]\nhooks = false\n")
    assert home.install("codex").warnings == [
        f"{config(home)}: hooks = false in [features] turns all hooks of Codex off"
    ]


REQUIREMENTS = """\
# ours
allowed_approval_policies = ["never"]

[[hooks.PreToolUse]]
hooks = [{ command = "mine" }]
# end
"""


@pytest.mark.parametrize("text", ["", REQUIREMENTS, "[features]\nx = 1\n", "[features]", "[features]\nhooks = true\n"])
def test_for_a_machine_codex_has_them_in_its_requirements(home, text):
    path = home.write("codex", text, "managed")
    home.install("codex", scope="managed")
    data = tomllib.loads(path.read_text())
    assert data["features"]["hooks"] is True
    for event in wanted("codex"):
        hook = data["hooks"][event][-1]["hooks"][0]
        assert started(hook["command"])[0] == str(home.machine / "usr/local/lib/fairlead/fairlead-hook")
        assert hook["type"] == "command"
    found = home.status("codex", "managed")
    assert (found.current, found.trusted, found.problems) == (True, None, [])
    assert found.foreign == (["PreToolUse: mine"] if "mine" in text else [])
    home.uninstall("codex", scope="managed")
    assert path.read_text() == text
    home.install("codex", scope="managed")
    (home.state / "installed.json").unlink()
    home.uninstall("codex", scope="managed")
    assert path.read_text().rstrip("\n") in (text.rstrip("\n"), "")


@pytest.mark.parametrize("text", ["[features]\nhooks = false\n", "features = { x = 1 }\n"])
def test_requirements_that_have_hooks_off_are_left_alone(home, text):
    path = home.write("codex", text, "managed")
    with pytest.raises(FairleadError, match="features does not have hooks = true; say so there"):
        home.install("codex", scope="managed")
    assert path.read_text() == text


# --- looking ---------------------------------------------------------------------------------------------------


def test_what_is_missing_is_known(home):
    home.install("claude")
    path = home.file("claude_code")
    path.write_text(JsonDocument(path.read_text()).remove(("hooks", "PreToolUse")).text)
    found = home.status("claude_code")
    assert (found.missing, found.current) == (["PreToolUse"], False)
    assert "PreToolUse" not in found.events


@pytest.mark.parametrize(("old", "new"), [('"timeout": 120', '"timeout": 1'), ('"*"', '"Bash"')])
def test_what_the_user_has_changed_is_known(home, old, new):
    home.install("claude")
    path = home.file("claude_code")
    path.write_text(path.read_text().replace(old, new, 1))
    assert len(home.status("claude_code").outdated) == 1


def test_a_file_that_was_broken_since_is_known(home):
    home.install("claude")
    home.file("claude_code").write_text(home.file("claude_code").read_text() + "}")
    found = home.status("claude_code")
    assert (found.events, found.current) == ([], False)
    assert "something follows the end" in found.problems[0]
