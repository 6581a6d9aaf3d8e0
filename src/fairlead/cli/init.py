"""`fairlead init`: write a commented starter file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from ..display import escape

STARTER = """\
#:schema ./fairlead.schema.json

# Hooks for every AI agent that works here. `fairlead check` looks for mistakes,
# `fairlead events` lists the events, and this tries a step on the hooks below:
#
#   fairlead test before_tool --set tool=bash --set args.command="git push --force"

[[hook]]
name = "no-force-push"
on = "before_tool"
match = { kind = "shell" }            # whatever the agent calls its shell
phase = "gate"                        # judges the call as it will be made, after all changes
# CEL over the step. `commands` are those that the line would run, however it is written; see `fairlead explain`.
rule = '''
commands.exists(c, c.runs("git push") &&
  (c.has("--force") || c.has("--mirror") || c.operands.exists(o, o.startsWith("+"))))
'''
deny = "Force-push is off here. Open a pull request instead."

# A program can judge, too: it reads the step as JSON, exit 0 lets it pass, and exit 2 refuses
# with stderr as the reason. In a project, it runs after you have run `fairlead trust`.
#
# [[hook]]
# name = "no-secrets"
# on = "before_tool"
# match = { kind = ["write", "shell"] }
# phase = "gate"
# command = ["./hooks/no-secrets.sh"]
# timeout = 5                         # seconds; what breaks or is late is refused ...
# on_failure = "closed"               # ... unless this is "open"
#
# What a new hook would do can be seen before it does it:
# enforce = false
"""


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "init", help="write a commented starter file", description="Write a commented starter file, and trust it."
    )
    parser.add_argument("--user", action="store_true", help="write the file of this user, for all projects")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import json

    from ..config.document import Document
    from ..config.layers import ConfigFile, user_file
    from ..config.project import FILE_NAME
    from ..config.schema import FILE_NAME as SCHEMA_NAME
    from ..config.schema import config_schema
    from ..config.survey import survey
    from ..config.trust import Trust
    from ..errors import FairleadError

    path = user_file() if options.user else Path(FILE_NAME).absolute()
    trust = Trust()
    if not options.user and any(str(folder) in trust.projects for folder in (path.parent, *path.parents)):
        raise FairleadError("this project has been trusted before; to start anew, run `fairlead trust --forget` first")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path):
            raise FairleadError(f"{path} is already there; edit it, or remove it first")
        starter = Document(path, STARTER.encode())
        seen = survey(starter, path.parent)
        layer = ConfigFile("user" if options.user else "project", starter, None)
        for mistake in layer.unavailable:
            raise FairleadError(f"nothing was written: {mistake.problem}")
        if not options.user:
            trust.check_folder(path.parent)
        with path.open("x", encoding="utf-8") as file:
            file.write(STARTER)
        schema = path.with_name(SCHEMA_NAME)
        if not os.path.lexists(schema):
            schema.write_text(json.dumps(config_schema(), indent=2) + "\n")
        if not options.user:  # it is fairlead's own text, so there is nothing to review
            trust.pin(seen)
    except OSError as error:
        raise FairleadError(f"{path}: {error.strerror}") from None
    print(f"Wrote {escape(str(path))}: it refuses force-pushes.")
    print(f"Wrote {SCHEMA_NAME} beside it: editors complete the file by it.")
    print("Next: fairlead check")
    print('      fairlead test before_tool --set tool=bash --set args.command="git push --force"')
    return 0
