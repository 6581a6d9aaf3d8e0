"""Installs fairlead's hooks into the settings of agent CLIs, and removes them again.

All files are planned before any is written. An uninstallation leaves everything else as it was.
"""

from .apply import carry_out
from .plan import FileChange, Plan, folders_for, launcher_for, plan_install, plan_uninstall, recorded_for
from .records import InstallRecord, read_records
from .status import Installed, status

__all__ = [
    "FileChange",
    "InstallRecord",
    "Installed",
    "Plan",
    "carry_out",
    "folders_for",
    "launcher_for",
    "plan_install",
    "plan_uninstall",
    "read_records",
    "recorded_for",
    "status",
]
