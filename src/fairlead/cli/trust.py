"""`fairlead trust`: review a project's hooks, and let them run as they are."""

from __future__ import annotations

import argparse
import os
import select
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..display import escape, paint, print_json
from .consent import refuse_agents
from .loading import add_folder, add_json

if TYPE_CHECKING:
    from ..config.survey import Survey
    from ..config.trust import Trust


def add_to(commands: Any) -> None:
    parser: argparse.ArgumentParser = commands.add_parser(
        "trust",
        help="review a project's hooks, and let them run",
        description="Show what the hooks of this project do, and keep a copy of them as they are now. The copy stays "
        "in force, even if the files change, until you trust other files or use --forget.",
    )
    add_folder(parser)
    add_json(parser)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="only show the hooks")
    what.add_argument("--expect", metavar="sha256:...", help="trust without asking if this is the digest of the hooks")
    what.add_argument("--forget", action="store_true", help="end the trust in this project")
    what.add_argument(
        "--sign", metavar="KEY", help="trust the hooks, and write fairlead.trust, signed with this SSH key"
    )
    parser.add_argument(
        "--also", action="store_true", help="keep what you trusted before, too, such as for several branches"
    )
    parser.add_argument("--unpinned", action="store_true", help="also trust code that no digest can cover")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    from ..config.trust import Trust
    from ..errors import FairleadError

    trust = Trust()
    if options.forget:
        return _forget(options.folder, trust)
    seen, known = _look(options.folder, trust)
    if options.expect and options.expect != seen.digest:
        raise FairleadError(f"expected {options.expect}, but the digest is {seen.digest}")
    known = known and not options.sign
    trusted = known
    if not options.json:
        _show(seen)
    if options.expect or not (options.show or options.json):
        trusted = known or _trust(seen, trust, options)
    if options.json:
        data = {"root": seen.root, "digest": seen.digest, "hooks": seen.hooks, "others": seen.others}
        print_json(data | {"trusted": trusted})
    elif not options.show:
        state = f"Trusted: {seen.digest}" if trusted else "Not trusted."
        print("These hooks are already trusted." if known else state, file=sys.stderr)
    return 0 if trusted else 1


def _look(folder: str, trust: Trust) -> tuple[Survey, bool]:
    """The project of a folder as it is now, and whether exactly that is trusted."""
    from ..config.document import ConfigError
    from ..config.layers import find, live_layer
    from ..config.project import ProjectPolicy
    from ..errors import FairleadError

    sources = find(folder, trust)
    if sources.project is None:
        raise FairleadError(f"there is no fairlead.toml in {Path(folder).resolve()} or above it")
    held = ProjectPolicy(sources.project, trust)
    if held.document is None:
        raise FairleadError(
            f"{sources.project.path} is gone; put it back, or `fairlead trust --forget` ends its policy"
        )
    live = live_layer(sources, held.document)
    if live.document.mistakes:
        raise ConfigError(live.document.mistakes)
    if live.unavailable:
        raise ConfigError(live.unavailable)
    if held.survey is None:
        raise FairleadError(f"{sources.project.path} {held.problem}{held.details}")
    seen = held.survey.resolve()
    outside = {hook.name: hook.outside for hook in seen.hooks if hook.outside}
    trusted = held.trusted.snapshots if held.trusted is not None else []
    known = [(snapshot.digest, snapshot.outside) for snapshot in trusted] == [(seen.digest, outside)]
    return seen, known and held.notice is None


def _forget(folder: str, trust: Trust) -> int:
    """End the policy of the innermost trusted project, even if its file is gone."""
    from ..config.layers import find
    from ..config.signed import newest_signed

    refuse_agents("forget a policy")
    key: str | None = os.path.abspath(folder)
    if key is None or key not in trust.projects or not trust.projects[key].snapshots:
        trusted = [project.key for project in find(folder, trust).projects if project.key is not None]
        key = trusted[-1] if trusted else None
    if key is None or not trust.forget(Path(key), newest_signed([Path(folder), Path(key)])):
        print("It was not trusted.", file=sys.stderr)
    else:
        print(f"No longer trusted: {escape(key)}", file=sys.stderr)
    return 0


def _trust(seen: Survey, trust: Trust, options: argparse.Namespace) -> bool:
    """Keep the hooks, if their digest is the expected one or a person agrees."""
    from ..config.signed import write_signed

    refuse_agents("trust hooks")
    if not options.expect and not _agreed(seen, options.unpinned):
        return False
    signed: dict[str, Any] = {}
    if options.sign:
        key = os.path.abspath(os.path.expanduser(options.sign))
        statement = write_signed(seen, key, unpinned=options.unpinned, also=options.also)
        print("Wrote fairlead.trust. Commit it together with fairlead.toml.", file=sys.stderr)
        signed = {"signer": "you", "project": statement.project, "at": statement.issued}
    trust.pin(seen, unpinned=options.unpinned, also=options.also, **signed)
    return True


def _agreed(seen: Survey, unpinned: bool) -> bool:
    from ..errors import FairleadError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise FairleadError(f"trust needs a terminal, so that a person looks; in CI, pass --expect {seen.digest}")
    if not unpinned:
        seen.refuse_uncovered()
    print("Let these hooks run? [y/N] ", end="", flush=True)
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        pass  # reading begins only when there is input: Ctrl-C before that works, too
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _written(value: Any) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, default=str)


def _show(seen: Survey) -> None:
    from ..config.hook_entry import RAW

    print(f"{paint(escape(os.path.join(seen.root, 'fairlead.toml')), 'bold')}\n{seen.digest}\n")
    for key, value in seen.others.items():
        print(f"[{escape(key)}]  {escape(_written(value))}\n")
    for hook in seen.hooks:
        print(f"{paint(escape(hook.name), 'bold')}  {hook.form}: {escape(hook.runs)}")
        for key, value in hook.options.items():
            print(f"    {escape(key)} = {escape(_written(value))}")
        for pin in hook.outside:
            how = f"owner {pin.owner}" if pin.digest is None else f"sha256:{pin.digest[:16]}..."
            print(f"    uses {escape(pin.path)}  {how}")
        for name, digest in hook.files.items():
            print(f"    {escape(name)}  sha256:{digest[:16]}...")
        if hook.env:
            print(f"    with {', '.join(map(escape, hook.env))} in its environment")
        if powers := [word for word in hook.may if word != RAW]:
            print(paint(f"    may also {', '.join(map(escape, powers))}", "yellow"))
        if hook.raw_to is not None:
            print(paint(f"    is sent steps as they are, secrets included: they go to {escape(hook.raw_to)}", "yellow"))
        if hook.uncovered is not None:
            print(paint(f"    cannot be pinned: {escape(hook.uncovered)}", "red"))
    print()
