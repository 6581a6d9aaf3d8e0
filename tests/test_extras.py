"""The command that installs what a hook needs is right for the interpreter that runs fairlead."""

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from fairlead import extras


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
