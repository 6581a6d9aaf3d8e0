"""Reading command lines: every command that a line runs, with its words, options and folder.

```python
from fairlead.shell import read

line = read("cd /srv && sudo git push -f origin main")
push = next(command for command in line.commands if command.runs("git push"))
assert push.has("--force") and push.via == ("sudo",) and push.folder == "/srv"
```

`syntax` makes a `tree` of the text, with the words of `quoting`. `words` expands words, with `arithmetic`. `reading`
follows the line, and gives the `commands`. `builtins` are the shell's own commands. `carriers` is the table of programs
that run others: `wrappers` (`sudo`, `timeout`), `shells` (`sh -c`, `eval`), `xargs`, `remotes` (`ssh`), `git`,
`line_options` (`tar --to-command`) and the program text of `interpreters` (`python -c`, `awk`). `environment` has
variables that make programs run something, and `files` what the line writes. `outputs` is what commands write where the
line says it, and `options` the spellings of options. `windows` reads PowerShell and cmd.
"""

from .commands import Command, Dialect, Line, Redirect
from .reading import commands_of, read
from .words import Word

__all__ = ["Command", "Dialect", "Line", "Redirect", "Word", "commands_of", "read"]
