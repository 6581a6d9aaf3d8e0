"""`fairlead tokens`: the tokens with which callers reach the daemon over TCP."""

from __future__ import annotations

import argparse
from time import localtime, strftime
from typing import Any

from ..display import columns, escape, print_json
from .consent import need_a_person


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "tokens",
        help="manage the tokens of callers over TCP",
        description="Make, list and revoke the tokens of callers over TCP. A token is shown once. Callers pass it in "
        "the variable FAIRLEAD_TOKEN, never on a command line or in a project's file.",
    )
    parser.add_argument("action", nargs="?", default="list", choices=("list", "add", "revoke"))
    parser.add_argument("name", nargs="?", help="the name of the token")
    parser.add_argument(
        "--scope",
        action="append",
        default=[],
        metavar="SCOPE",
        help="dispatch, approve, read or admin; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..errors import FairleadError
    from ..paths import state_folder
    from ..server.tokens import Tokens

    tokens = Tokens(state_folder())
    if options.action == "list":
        found = [(t.name, sorted(t.scopes), t.created) for t in tokens.all()]
        if options.json:
            print_json([{"name": name, "scopes": scopes, "created": made} for name, scopes, made in found])
        else:
            rows = [(escape(n), ", ".join(s), strftime("%Y-%m-%d %H:%M", localtime(c))) for n, s, c in found]
            print(columns(rows) if rows else "There are no tokens.")
        return 0
    if options.name is None:
        raise FairleadError(f"name a token: fairlead tokens {options.action} NAME")
    need_a_person(f"{options.action} a token")
    if options.action == "revoke":
        tokens.revoke(options.name)
        print("Revoked.")
    else:
        print(tokens.add(options.name, options.scope))
    return 0
