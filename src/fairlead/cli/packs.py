"""`fairlead packs`: the packs that ship with fairlead, and their rules."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from ..display import columns, escape, paint, print_json
from .loading import add_json

if TYPE_CHECKING:
    from ..packs import Pack, PackRule


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "packs",
        help="list the packs and their rules",
        description="List the packs that ship with fairlead, and those that installed packages ship. With a name, show "
        "its rules: what each stops, and why.",
    )
    parser.add_argument("name", nargs="?", help="a pack, such as git, or one of its rules, such as git/reset-hard")
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..errors import UnknownName
    from ..packs.installed import installed

    if options.name is None:
        _list(options.json)
        return 0
    found = installed(options.name.partition("/")[0])
    if "/" not in options.name:
        rules = list(found)
    elif options.name in found.rules:
        rules = [found.rules[options.name]]
    else:
        raise UnknownName("rule", options.name, list(found.rules))
    if options.json:
        print_json(describe(found) if "/" not in options.name else describe_rule(rules[0]))
    else:
        print("\n\n".join(_text(rule) for rule in rules))
    return 0


def _list(as_json: bool) -> None:
    """The packs that ship with fairlead, and the names of those of other packages: loading those would run code."""
    from ..packs import packs
    from ..packs.installed import installed_names

    every, others = packs("recommended"), installed_names()
    if as_json:
        print_json([*map(describe, every), *({"name": name, "package": package} for name, package in others.items())])
        return
    rows = [[one.name, str(len(one.rules)), one.about] for one in every]
    rows += [[escape(name), "-", f"of the package {escape(package)}"] for name, package in others.items()]
    print(columns([["PACK", "RULES", "ABOUT"], *rows]))
    print('\nUse them in fairlead.toml: packs = ["recommended"]')
    print("One pack, or one rule, with examples: fairlead packs git, fairlead packs git/reset-hard")


def describe(pack: Pack) -> dict[str, Any]:
    """A pack as data."""
    return {"name": pack.name, "about": pack.about, "rules": [describe_rule(rule) for rule in pack]}


def describe_rule(rule: PackRule) -> dict[str, Any]:
    """A rule as data."""
    return {
        "id": rule.id, "level": rule.level, "why": rule.why, "instead": rule.instead, "risk": rule.risk,
        "incident": rule.incident or None, "stops": list(rule.stops), "passes": list(rule.passes),
    }  # fmt: skip


def _text(rule: PackRule) -> str:
    from ..packs.judging import ANSWERS

    answer = "passes, unless the level is strict" if rule.level == "strict" else rule.answer or ANSWERS[rule.level]
    facts = {"why": rule.why, "instead": rule.instead, "incident": rule.incident, "risk": rule.risk}
    rows = [[name, escape(fact)] for name, fact in facts.items() if fact]
    for name, examples in (("stops", rule.stops), ("passes", rule.passes)):
        rows += [
            [name if first else "", _example(example)]
            for first, example in ((place == 0, one) for place, one in enumerate(examples))
        ]
    return f"{paint(rule.id, 'bold')}  {rule.level}: {answer}\n{columns(rows, '  ')}"


def _example(example: Any) -> str:
    return escape(example if isinstance(example, str) else json.dumps(example))
