"""`fairlead pause`, `monitor` and `enforce`: switch the enforcement of hooks off and on."""

from __future__ import annotations

import argparse
import time
from typing import Any

from ..display import escape
from .consent import need_a_person

LONGEST = 86400.0


def add_to(commands: Any) -> None:
    pause: argparse.ArgumentParser = commands.add_parser(
        "pause",
        help="stop enforcing hooks for a while",
        description="For a while, hooks run and are recorded, but their verdicts have no effect. Locked hooks are "
        "still enforced. The journal notes who paused and why.",
    )
    pause.add_argument("time", help="how long: 10m, 1h; at most a day")
    pause.add_argument("--reason", required=True, help="why; the journal keeps it")
    pause.set_defaults(run=run, mode="monitor")
    monitor: argparse.ArgumentParser = commands.add_parser(
        "monitor",
        help="record what hooks would do, without effect",
        description="From now on, hooks run and are recorded, but their verdicts have no effect, until "
        "`fairlead enforce`. Locked hooks are still enforced.",
    )
    monitor.add_argument("--reason", help="why; the journal keeps it")
    monitor.set_defaults(run=run, mode="monitor", time=None)
    enforce: argparse.ArgumentParser = commands.add_parser(
        "enforce", help="enforce hooks (again)", description="End a pause, or what `fairlead monitor` began."
    )
    enforce.add_argument("--reason", help="why; the journal keeps it")
    enforce.set_defaults(run=run, mode="enforce", time=None)


def run(options: argparse.Namespace) -> int:
    import getpass

    from ..amounts import seconds
    from ..enforcement import EnforcementSetting, write_setting
    from ..errors import FairleadError

    if options.mode == "monitor":  # an agent may switch hooks on
        need_a_person("switch hooks off")
    until = None
    if options.time is not None:
        try:
            taken = seconds(options.time)
        except ValueError as error:
            raise FairleadError(str(error)) from None
        if not 0 < taken <= LONGEST:
            raise FairleadError("a pause takes a day at most; `fairlead monitor` has no end")
        until = time.time() + taken
    setting = EnforcementSetting(options.mode, until, options.reason, getpass.getuser())
    _write_down(setting)
    write_setting(setting)
    print(_describe(setting))
    return 0


def _describe(setting: Any) -> str:
    if setting.mode == "enforce":
        return "Hooks are enforced."
    if setting.until is None:
        return "Hooks are only watched, until `fairlead enforce`. Locked hooks are enforced all the same."
    end = time.strftime("%H:%M:%S", time.localtime(setting.until))
    return f"Hooks are only watched until {end}: {escape(setting.reason)}. Locked hooks are enforced all the same."


def _write_down(setting: Any) -> None:
    """Note the change in the journal, before it takes effect."""
    from .journals import settings

    journal = settings().open_journal()
    if journal is not None:
        with journal:
            note = "enforced" if setting.mode == "enforce" else "paused" if setting.until else "monitored"
            journal.note(note, until=setting.until, reason=setting.reason, who=setting.who)
            journal.flush()
