"""`fairlead trust`: look at a project's hooks, and let them run as they are."""

from __future__ import annotations

import argparse
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .consent import refuse_agents
from .display import escape, paint, print_json
from .loading import add_folder, add_json

if TYPE_CHECKING:
    from ..config.trust import Survey, Trust


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "trust",
        help="look at a project's hooks, and let them run",
        description="Show what the hooks of this project would do, and pin their content. "
        "They run only as they are now: any change asks again.",
    )
    add_folder(parser)
    add_json(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="only show them")
    what.add_argument("--expect", metavar="sha256:...", help="trust them without asking if this is their digest")
    what.add_argument("--forget", action="store_true", help="trust this project no longer")
    parser.add_argument("--unpinned", action="store_true", help="also trust code that no digest can cover")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..config.document import ConfigError
    from ..config.layers import find, read
    from ..config.trust import Trust, survey
    from ..errors import FairleadError

    sources, trust = find(options.folder), Trust()
    root = sources.project.parent if sources.project is not None else sources.workspace
    if options.forget and root is not None:
        refuse_agents("trust hooks")
        print("Trusted no longer." if trust.forget(root) else "It was not trusted.", file=sys.stderr)
        return 0
    if sources.project is None or root is None:
        raise FairleadError(f"there is no fairlead.toml in {Path(options.folder).resolve()} or above it")
    layer = read(sources, trust).layers[-1]
    if layer.document.mistakes:
        raise ConfigError(layer.document.mistakes)
    seen, trusted = survey(layer.document.data, root), layer.trusted
    if not options.json:
        _show(seen, str(sources.project), layer.document.data)
    if options.expect or not (options.show or options.json):
        trusted = trusted or _trust(seen, trust, options)
    if options.json:
        print_json({"root": seen.root, "digest": seen.digest, "hooks": seen.hooks, "trusted": trusted})
    elif not options.show:
        said = f"Trusted: {seen.digest}" if trusted else "Not trusted."
        print("These hooks are already trusted." if layer.trusted else said, file=sys.stderr)
    return 0 if trusted else 1


def _trust(seen: Survey, trust: Trust, options: argparse.Namespace) -> bool:
    """Pin the hooks, if they are what is expected or somebody agrees."""
    from ..errors import FairleadError

    refuse_agents("trust hooks")
    if options.expect and options.expect != seen.digest:
        raise FairleadError(f"expected {options.expect}, but the digest is {seen.digest}")
    if not options.expect and not _agreed(seen, options.unpinned):
        return False
    trust.pin(seen, unpinned=options.unpinned)
    return True


def _agreed(seen: Survey, unpinned: bool) -> bool:
    from ..errors import FairleadError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise FairleadError(f"trust needs a terminal, so that somebody looks; or pass --expect {seen.digest}")
    if not unpinned:
        seen.refuse_uncovered()
    print("Let these hooks run? [y/N] ", end="", flush=True)
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        pass  # so that Ctrl-C is heard even if it comes just before the reading begins
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _show(seen: Survey, path: str, data: dict[str, Any]) -> None:
    from ..config.reading import RAW

    print(f"{paint(escape(path), 'bold')}\n{seen.digest}\n")
    for hook, entry in zip(seen.hooks, data.get("hook", ()), strict=True):
        print(f"{paint(escape(hook.name), 'bold')}  {hook.form}: {escape(hook.runs)}")
        if hook.program is not None:
            print(f"    runs {escape(hook.program)}")
        for name, digest in hook.files.items():
            print(f"    {escape(name)}  sha256:{digest[:16]}...")
        if hook.env:
            print(f"    with {', '.join(map(escape, hook.env))} in its environment")
        if powers := [word for word in hook.may if word != RAW]:
            print(paint(f"    may also {', '.join(map(escape, powers))}", "yellow"))
        if entry.get("raw"):
            where = hook.runs if hook.form == "url" else f"the model {entry.get('model')}"
            print(paint(f"    is sent steps as they are, secrets included: they go to {escape(where)}", "yellow"))
        if hook.uncovered is not None:
            print(paint(f"    cannot be pinned: {escape(hook.uncovered)}", "red"))
    print()
