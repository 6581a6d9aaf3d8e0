"""The command that installs what a hook needs is right for the interpreter that runs fairlead."""

import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from fairlead import extras
from fairlead.hosts.frameworks.framework import ALL

FRAMEWORKS = (
    "agents",
    "langchain",
    "pydantic_ai",
    "claude_agent_sdk",
    "google",
    "strands",
    "agent_framework",
    "crewai",
)


@pytest.fixture(params=[True, False], ids=["pip", "no pip"])
def installer(request, monkeypatch):
    """How this interpreter gets packages: by its own pip, or by uv where an environment has none."""
    has_pip, pip = request.param, find_spec("json")  # any spec will do
    monkeypatch.setattr(
        extras, "find_spec", lambda name: (pip if has_pip else None) if name == "pip" else find_spec(name)
    )
    return [sys.executable, "-m", "pip", "install"] if has_pip else ["uv", "pip", "install", "--python", sys.executable]


@pytest.mark.parametrize("extra", ["rules", "http", "prompt", "serve", "completion"])
def test_the_command_names_this_interpreter_and_the_packages_of_the_extra(installer, extra):
    words = shlex.split(extras.install_command(extra))
    assert words[: len(installer)] == installer
    packages = words[len(installer) :]
    assert packages
    assert not any(package.startswith("fairlead") for package in packages)


def test_without_metadata_the_command_names_the_extra_of_the_checkout(monkeypatch, installer):
    monkeypatch.setattr(extras, "_packages", lambda extra: iter(()))
    assert shlex.split(extras.install_command("rules"))[-1] == f"{Path(__file__).parents[1]}[rules]"


def test_without_metadata_or_a_checkout_the_command_names_no_package_of_an_index(monkeypatch, installer, tmp_path):
    monkeypatch.setattr(extras, "_packages", lambda extra: iter(()))
    monkeypatch.setattr(extras, "__file__", str(tmp_path / "site-packages/fairlead/extras.py"))
    assert shlex.split(extras.install_command("rules"))[-1] == ".[rules]"


def test_an_installed_package_is_not_asked_for():
    extras.require("json", "rules", "rules")
    with pytest.raises(extras.MissingPackage, match="rules need packages"):
        extras.require("no_such_module", "rules", "rules")


@pytest.mark.parametrize("name", ALL)
def test_an_adapter_without_its_framework_says_what_to_install(name):
    hide = "import sys; sys.meta_path.insert(0, type('', (), {'find_spec': staticmethod(find)}))"
    program = f"""
def find(name, path=None, target=None):
    if name.split(".")[0] in {FRAMEWORKS!r}:
        raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
{hide}
import fairlead.hosts.{name}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ModuleNotFoundError: fairlead.hosts.{name} needs a package that is not installed; run: ")
    assert last.endswith(extras.install_command(name.replace("_", "-")))


def test_an_adapter_that_lacks_something_else_says_that():
    with pytest.raises(ModuleNotFoundError, match="No module named 'strands_other'"), extras.installed("strands", "x"):
        raise ModuleNotFoundError("No module named 'strands_other'", name="strands_other")
