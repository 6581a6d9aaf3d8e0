"""What of fairlead is installed in the settings of a CLI."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ..launcher import NAME
from ..mapping import Host
from .plan import launcher_for
from .records import last_timeout, read_records
from .settings import InstallScope, has_scope, settings_file, settings_of
from .targets import read_text, targets_of


class Installed(msgspec.Struct, kw_only=True):
    """The hooks of fairlead that a CLI has in one scope."""

    host: str
    scope: InstallScope
    file: Path
    """The settings file, or the folder if there is a file for each event."""
    files: list[Path]
    events: list[str]
    missing: list[str]
    outdated: list[str]
    """Events whose entries fairlead would write differently now: another launcher, another time-out."""
    trusted: bool | None = None
    """Whether the CLI trusts them. None: it needs no trust."""
    foreign: list[str] = []
    """Hooks of other programs at the same events."""
    problems: list[str] = []
    """Why the CLI may ignore the file."""

    @property
    def current(self) -> bool:
        return not self.missing and not self.outdated


def status(host: Host, scope: InstallScope, root: Path | None = None) -> Installed | None:
    """The hooks that a CLI has in a scope. None: it has none, or no such scope."""
    root = Path.cwd() if root is None else root
    if not has_scope(host, scope):
        return None
    targets = targets_of(host, scope, root, launcher_for(scope), last_timeout(host, scope, read_records()))
    texts = [read_text(target.path) for target in targets]
    if not any(text is not None and NAME in text for text in texts):
        return None
    found = [(target.events, target.inspect(text)) for target, text in zip(targets, texts, strict=True)]
    wanted = [event for event in host.events if any(event in events for events, _ in found)]
    has = {event: [seen.events.get(event) for events, seen in found if event in events] for event in wanted}
    untrusted = [event for _, seen in found for event in seen.untrusted]
    return Installed(
        host=host.name, scope=scope, file=settings_file(host, scope, root), files=[target.path for target in targets],
        events=[event for event in wanted if None not in has[event]],
        missing=[event for event in wanted if None in has[event]],
        outdated=[event for event in wanted if False in has[event]],
        trusted=not untrusted if settings_of(host).needs_trust and scope != "managed" else None,
        foreign=[f"{event}: {each}" for _, seen in found for event in seen.foreign for each in seen.foreign[event]],
        problems=[problem for _, seen in found for problem in seen.problems],
    )  # fmt: skip
