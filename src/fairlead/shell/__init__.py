"""Reading command lines: every command that a line runs, with its words, options and folder.

```python
from fairlead.shell import read

line = read("cd /srv && sudo git push -f origin main")
push = next(command for command in line.commands if command.runs("git push"))
assert push.has("--force") and push.via == ("sudo",) and push.folder == "/srv"
```

`syntax` makes a `tree` of the text, with the words of `quoting`. `words` expands words, with `arithmetic`. `reading`
follows the line, and gives the `commands`. `builtins` are the shell's own commands. `carriers` knows the programs that
run others, with the table in `wrappers` and program text in `interpreters`. `outputs` is what commands write where the
line says it, and `options` the spellings of options. `windows` reads PowerShell and cmd.
"""

from .commands import Command, Dialect, Line, Redirect
from .reading import commands_of, read
from .words import Word

__all__ = ["Command", "Dialect", "Line", "Redirect", "Word", "commands_of", "read"]
