"""PowerShell and cmd: a smaller reader, by verbs. All that it gives is marked as not sure.

`powershell` and `cmd` make a tree of the text, `reading` follows it and gives the commands, `cmdlets` knows names and
parameters, and `carriers` the commands that run others.
"""

from .carriers import run_shell
from .reading import WindowsShell, read_windows

__all__ = ["WindowsShell", "read_windows", "run_shell"]
