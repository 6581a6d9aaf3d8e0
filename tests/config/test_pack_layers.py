"""Packs in several layers: the user's file changes what the system's says, a project's file may only tighten it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead import Hooks
from fairlead.config.document import Document
from fairlead.config.layers import Config, ConfigFile, Sources
from fairlead.lifecycle import BeforeTool
from fairlead.packs.judging import ANSWERS
from fairlead.packs.rules import LEVELS

LAYERS: tuple[Any, ...] = ("system", "user", "project")
CLEAN = "git clean -f"
"""Destructive: a pack asks about it, unless a file says otherwise."""
REBASE = "git rebase main"
"""Strict: passes, unless a file says otherwise."""
DISASTER = "git push --mirror"
RANK = {"proceed": 0, "ask": 1, "deny": 2}


def layered(*, system: str = "", user: str = "", project: str = "") -> Config:
    texts = dict(zip(LAYERS, (system, user, project), strict=True))
    files = [
        ConfigFile(layer, Document(f"/{layer}.toml", text.encode()), None, as_trusted=True)
        for layer, text in texts.items()
        if text
    ]
    return Config(Sources(None, None), files)


def judge(config: Config, command: str, folder: Path | str = "/work") -> str:
    return verdict(config, BeforeTool(tool="bash", args={"command": command}, cwd=str(folder)))


def verdict(config: Config, step: BeforeTool) -> str:
    """The strictest answer of a hook: a question is a question here, and not what becomes of it without a human."""
    hooks = Hooks()
    config.apply(hooks)
    decision = hooks.dispatch_sync(step)
    controls = [one.verdict.control for one in decision.verdicts] + ["ask" for _ in decision.approvals]
    return max(controls, key=lambda control: RANK[control], default="proceed")


def problems(config: Config) -> list[str]:
    return [f"{m.file}:{m.line}:{m.column}: {m.problem}" for m in config.mistakes]


GIT = 'packs = ["git"]\n'


def git(**options: Any) -> str:
    words = {True: "true", False: "false"}
    lines = [f"{key} = {words.get(value, value)!s}" if isinstance(value, bool) else f'{key} = "{value}"'
             for key, value in options.items() if value is not None]  # fmt: skip
    return GIT + "[pack.git]\n" + "\n".join(lines)


# --- who wins -----------------------------------------------------------------------------------------


def test_a_pack_that_two_layers_use_alike_judges_once() -> None:
    config = layered(system=GIT, user=GIT, project=GIT)
    assert [hook.name for hook in config.hooks] == ["fairlead.git"]


def test_what_a_project_does_not_say_is_what_the_user_says() -> None:
    assert judge(layered(user=git(level="disaster"), project=GIT), CLEAN) == "proceed"


def test_a_project_may_tighten() -> None:
    assert judge(layered(user=GIT, project=git(level="strict", verdict="deny")), REBASE) == "deny"


def test_a_project_may_tighten_a_pack_that_it_does_not_list_only_where_it_is_used() -> None:
    text = '[pack.git]\nlevel = "strict"'
    assert judge(layered(user=GIT), REBASE) == "proceed"
    assert [p for p in problems(layered(project=text)) if "not used" in p]
    assert judge(layered(user=GIT, project=GIT + text), REBASE) == "ask"


@pytest.mark.parametrize("option", [{"level": "disaster"}, {"verdict": "warn"}, {"enforce": False}])
def test_a_project_that_would_loosen_is_told_where(option: dict[str, Any]) -> None:
    config = layered(user=GIT, project=git(**option))
    (problem,) = problems(config)
    assert problem.startswith("/project.toml:3:1: this would loosen the pack 'git', which has ")
    assert "a project's file may only tighten" in problem


@pytest.mark.parametrize("option", [{"level": "disaster"}, {"verdict": "warn"}, {"enforce": False}])
def test_a_project_may_use_a_pack_of_its_own_as_it_likes(option: dict[str, Any]) -> None:
    assert problems(layered(project=git(**option))) == []


def test_a_project_that_would_loosen_all_packs_is_told_once() -> None:
    project = 'packs = ["recommended"]\n[pack.recommended]\nenforce = false'
    assert len(problems(layered(user='packs = ["recommended"]', project=project))) == 1


def test_a_table_for_all_packs_leaves_a_stricter_one_alone() -> None:
    user = 'packs = ["recommended"]\n[pack.git]\nlevel = "strict"'
    project = 'packs = ["recommended"]\n[pack.recommended]\nlevel = "destructive"'
    assert judge(layered(user=user, project=project), REBASE) == "ask"


def test_the_user_changes_what_the_system_says() -> None:
    system = git(level="strict")
    assert judge(layered(system=system), REBASE) == "ask"
    assert judge(layered(system=system, user='[pack.git]\nlevel = "destructive"'), REBASE) == "proceed"


def test_the_user_may_disable_a_pack_of_the_system_and_use_it_in_another_way() -> None:
    user = 'disable = ["fairlead.git"]\n' + git(level="disaster")
    assert judge(layered(system=git(level="strict"), user=user), CLEAN) == "proceed"


@pytest.mark.parametrize(
    "user",
    ['[pack.git]\nlevel = "disaster"', '[pack.git]\nverdict = "warn"', "[pack.git]\nenforce = false",
     "[pack.git]\nlocked = false", '[pack.git]\nallow_hosts = ["x.example"]', 'disable = ["fairlead.git"]',
     '[pack.recommended]\nlevel = "disaster"', git(level="disaster"),
     '[[exemption]]\nrule = "git/clean"\ncommand = "git clean -f"\nreason = "x"'],
)  # fmt: skip
def test_the_user_cannot_loosen_what_the_system_locks(user: str) -> None:
    (problem,) = problems(layered(system=git(level="destructive", locked=True), user=user))
    assert problem.startswith("/user.toml:")
    assert "lock" in problem


def test_the_user_may_tighten_what_the_system_locks() -> None:
    config = layered(system=git(locked=True), user='[pack.git]\nlevel = "strict"\nverdict = "deny"')
    assert judge(config, REBASE) == "deny"


def test_defaults_of_a_file_do_not_loosen_a_pack_of_a_higher_one() -> None:
    project = "[defaults]\nenforce = false\n"
    assert judge(layered(user=GIT, project=f"{GIT}{project}"), CLEAN) == "ask"
    assert judge(layered(project=f"{GIT}{project}"), CLEAN) == "proceed"


BUDGETS = 'packs = ["budgets"]\n[pack.budgets]\n'


@pytest.mark.parametrize(
    ("user", "project", "loosens"),
    [("calls = 100", "calls = 50", False), ("calls = 100", "calls = 200", True), ("calls = 100", "calls = false", True),
     ("calls = false", "calls = 200", False), ("", "calls = 2000", True), ("", "calls = 10", False)],
)  # fmt: skip
def test_a_project_may_only_lower_the_limits_of_a_session(user: str, project: str, loosens: bool) -> None:
    config = layered(user=BUDGETS + user, project=BUDGETS + project)
    assert [problem for problem in problems(config) if "calls" in problem] == problems(config)
    assert bool(problems(config)) is loosens


LEVEL = st.sampled_from([None, *LEVELS])
VERDICT = st.sampled_from([None, *ANSWERS.values(), "warn"])
OPTIONS = st.fixed_dictionaries({"level": LEVEL, "verdict": VERDICT, "enforce": st.sampled_from([None, True, False])})
COMMANDS = [DISASTER, CLEAN, REBASE, "git status"]


@settings(deadline=None)
@given(OPTIONS, OPTIONS)
def test_no_project_makes_anything_pass_that_the_user_stops(user: dict[str, Any], project: dict[str, Any]) -> None:
    alone, together = layered(user=git(**user)), layered(user=git(**user), project=git(**project))
    if together.mistakes:  # the project's file is told, and does not count
        assert {mistake.file for mistake in together.mistakes} == {"/project.toml"}
    for command in COMMANDS:
        before, after = judge(alone, command), judge(together, command)
        assert RANK[after] >= RANK[before]


@settings(deadline=None)
@given(OPTIONS, OPTIONS)
def test_no_user_makes_anything_pass_that_the_system_locks(system: dict[str, Any], user: dict[str, Any]) -> None:
    locked = git(**system, locked=True)
    alone, together = layered(system=locked), layered(system=locked, user=git(**user))
    if together.mistakes:
        return  # such a file is not used
    for command in COMMANDS:
        assert RANK[judge(together, command)] >= RANK[judge(alone, command)]


# --- exemptions ---------------------------------------------------------------------------------------

EXEMPT = '[[exemption]]\nrule = "git/clean"\ncommand = "git clean -f"\nreason = "x"\n'


@pytest.mark.parametrize("layer", ["system", "user"])
def test_an_exemption_holds_for_the_packs_of_all_layers(layer: str) -> None:
    texts = dict.fromkeys(LAYERS, GIT)
    assert judge(layered(**texts), CLEAN) == "ask"
    assert judge(layered(**texts | {layer: GIT + EXEMPT}), CLEAN) == "proceed"


def test_the_system_may_exempt_from_what_it_locks() -> None:
    assert judge(layered(system=f"{git(locked=True)}\n{EXEMPT}", user=GIT), CLEAN) == "proceed"


def test_allowed_hosts_and_protected_paths_of_the_user_hold_for_a_pack_of_the_project() -> None:
    user = 'packs = ["apis", "files"]\n[pack.apis]\nallow_hosts = ["a.example"]\n[pack.files]\nprotect = ["/srv/a"]'
    project = (
        'packs = ["apis", "files"]\n[pack.apis]\nverdict = "deny"\n[pack.files]\nlevel = "strict"\nprotect = ["/srv/b"]'
    )
    config = layered(user=user, project=project)
    assert judge(config, "curl -X DELETE https://a.example/x") == "proceed"
    assert judge(config, "curl -X DELETE https://b.example/x") == "deny"
    assert judge(config, "rm -rf /srv/a/x") == "deny"
    assert judge(config, "rm -rf /srv/b/x") == "deny"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    path = tmp_path / "id_rsa"
    path.write_text("key")
    return path


def read_of(key: Path, path: Path | str) -> str:
    """What becomes of a call of the tool Read, if reading the key is exempt."""
    text = f'packs = ["secrets"]\n[[exemption]]\nrule = "secrets/read-file"\npath = "{key}"\nreason = "a test key"\n'
    config = layered(user=text)
    assert config.mistakes == []
    return verdict(config, BeforeTool(tool="Read", args={"file_path": str(path)}, cwd=str(key.parent)))


def test_an_exemption_may_be_for_one_file(key: Path) -> None:
    assert read_of(key, key) == "proceed"
    assert read_of(key, f"{key.parent}/./{key.name}") == "proceed"
    assert read_of(key, key.with_name("id_ed25519")) == "ask"


def test_an_exemption_for_a_file_does_not_follow_a_link_to_another(key: Path) -> None:
    other = key.with_name("id_ed25519")
    other.write_text("another")
    key.unlink()
    key.symlink_to(other)
    assert read_of(key, key) == "ask"


def test_an_exemption_for_one_address_is_for_no_other() -> None:
    url = "https://api.example/items/1?confirm=delete"
    text = f'packs = ["apis"]\n[[exemption]]\nrule = "apis/delete-by-tool"\nurl = "{url}"\nreason = "x"\n'
    config = layered(user=text)
    assert config.mistakes == []

    def fetch(url: str, **more: str) -> str:
        return verdict(config, BeforeTool(tool="WebFetch", args={"url": url, "method": "DELETE"} | more))

    assert fetch(url) == "proceed"
    assert fetch(f"{url}&all=1") == "ask"
    assert fetch(url, body="all of them") == "ask"
