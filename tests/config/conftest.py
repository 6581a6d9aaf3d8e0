"""A machine of its own for every test: three layers, a home, a state folder, a workspace. Nothing else is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead import Hooks
from fairlead.config import Config, ConfigError, Mistake, layers, load, reload
from fairlead.config.document import Document
from fairlead.config.survey import survey
from fairlead.config.trust import Trust


class Machine:
    """Where the layers of a test are, and what they come to."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.workspace = root / "workspace"
        self.outside = root / "outside"
        self.state = root / "state"
        self.system = root / "etc" / "fairlead" / "fairlead.toml"
        self.user = self.home / ".config" / "fairlead" / "fairlead.toml"
        self.project = self.workspace / "fairlead.toml"
        for folder in (self.workspace / ".git", self.outside, self.state, self.system.parent, self.user.parent):
            folder.mkdir(parents=True)

    def write(self, **texts: str | bytes | None) -> None:
        """`machine.write(user="...", project=None)`: the file of each layer that is named. None removes it."""
        for layer, text in texts.items():
            path: Path = getattr(self, layer)
            if text is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(text if isinstance(text, bytes) else text.encode())
                path.chmod(0o644)

    def load(self, **texts: str | bytes | None) -> Config:
        self.write(**texts)
        return load(self.workspace)

    def hooks(self, **texts: str | bytes | None) -> Hooks:
        """Hooks with these layers in force."""
        hooks = Hooks(record=True)
        self.load(**texts).apply(hooks)
        return hooks

    def mistakes(self, **texts: str | bytes | None) -> tuple[Mistake, ...]:
        """What is wrong with these layers."""
        with pytest.raises(ConfigError) as raised:
            self.load(**texts)
        return raised.value.mistakes

    def problems(self, **texts: str | bytes | None) -> tuple[Mistake, ...]:
        """What is wrong with these layers, or missing on this machine."""
        try:
            return tuple(self.load(**texts).unavailable)
        except ConfigError as error:
            return error.mistakes

    def trust(self) -> None:
        """Trust the project as it now is."""
        Trust().pin(survey(Document(self.project), self.workspace), unpinned=True)

    def script(self, name: str, text: str) -> Path:
        """A program outside of the workspace."""
        return program(self.outside / name, text)


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine(tmp_path)
    monkeypatch.setenv("HOME", str(machine.home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(machine.home / ".config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(machine.state))
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", str(machine.state / "fairlead"))
    for module in (layers, reload):
        monkeypatch.setattr(module, "SYSTEM_FILE", machine.system, raising=False)
    return machine
