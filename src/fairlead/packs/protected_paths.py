"""Which files are protected: the configuration of fairlead and of agent CLIs, and fairlead itself.

`path_matcher` finds whose a path is. `mention_finder` finds a protected path that a text names.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from stat import S_ISLNK

from ..paths import fixed_folders
from .effort import LONGEST

PROTECTED: dict[str, tuple[str, ...]] = {
    "fairlead": (
        "fairlead.toml", ".config/fairlead/**", "/etc/fairlead/**", "/usr/local/lib/fairlead/**", "bin/fairlead",
        "site-packages/fairlead/**", "dist-packages/fairlead/**", "site-packages/fairlead-*.dist-info/**",
        "dist-packages/fairlead-*.dist-info/**",
    ),
    "Claude Code": (
        ".claude/settings*.json", ".claude/hooks/**", ".claude/plugins/**", ".claude/remote-settings.json*",
        ".claude/policy-limits.json*", "/etc/claude-code/**",
        "/Library/Application Support/ClaudeCode/**",
    ),
    "Codex": (".codex/**", "/etc/codex/**"),
    "Gemini CLI": (
        ".gemini/settings.json", ".gemini/hooks/**", ".gemini/extensions/**", ".gemini/trustedFolders.json",
        ".gemini/.env", "/etc/gemini-cli/**", "/Library/Application Support/GeminiCli/**",
    ),
    "Qwen Code": (
        ".qwen/settings.json", ".qwen/hooks/**", ".qwen/extensions/**", ".qwen/trustedFolders.json", ".qwen/.env",
        "/etc/qwen-code/**", "/Library/Application Support/QwenCode/**",
    ),
    "Copilot CLI": (
        ".github/hooks/**", ".github/copilot/settings*.json", ".copilot/hooks/**", ".copilot/config.json",
        ".copilot/settings.json", ".copilot/installed-plugins/**", "/etc/github-copilot/**",
    ),
    "Factory Droid": (
        ".factory/settings*.json", ".factory/hooks.json", ".factory/hooks/**", ".factory/plugins/**",
        ".factory/cache/org-managed-settings.json*", "/etc/factory/**",
    ),
    "Cline": (
        ".cline/hooks/**", ".clinerules/hooks/**", "~/Documents/Cline/Hooks/**", "~/Documents/Cline/Rules/Hooks/**",
    ),
    "OpenCode": (
        ".opencode/plugin/**", ".opencode/plugins/**", ".opencode/opencode.json*", "opencode.json", "opencode.jsonc",
        ".config/opencode/plugin/**", ".config/opencode/plugins/**", ".config/opencode/*.json*",
    ),
    "Cursor": (
        ".cursor/hooks.json", ".cursor/hooks/**", "/etc/cursor/hooks.json",
        "/Library/Application Support/Cursor/hooks.json",
    ),
    "Windsurf": (
        ".windsurf/hooks.json", ".codeium/windsurf*/hooks.json", "/etc/windsurf/hooks.json",
        "/Library/Application Support/Windsurf/hooks.json",
    ),
    "Kiro": (".kiro/agents/**", ".kiro/hooks/**", ".kiro/settings/**"),
    "goose": (".agents/plugins/**", ".config/goose/config.yaml"),
}  # fmt: skip
"""Whose configuration it is, and where: in any folder, so of users and of projects. `/**` is a folder and all below."""

MOVED = {
    "CLAUDE_CONFIG_DIR": ".claude", "CODEX_HOME": ".codex", "COPILOT_HOME": ".copilot", "XDG_CONFIG_HOME": ".config",
    "OPENCODE_CONFIG_DIR": ".opencode", "OPENCODE_CONFIG": "", "GEMINI_CLI_SYSTEM_SETTINGS_PATH": "",
    "QWEN_CODE_SYSTEM_SETTINGS_PATH": "", "CLINE_DIR": ".cline", "QWEN_HOME": ".qwen", "GEMINI_CLI_HOME": "",
    "FACTORY_HOME_OVERRIDE": "",
}  # fmt: skip
"""Variables that put one of these folders elsewhere, or name a file of settings."""

HOOKS_OFF_VARIABLES = (
    "CLAUDE_CODE_SIMPLE", "CLAUDE_CODE_SAFE_MODE", "OPENCODE_PURE", "QWEN_CODE_SIMPLE", "QWEN_CODE_SAFE_MODE",
)  # fmt: skip
"""Variables with which an agent runs no hooks."""

SHARED = frozenset({".agents", ".clinerules", ".config", ".github"})
"""Folders that hold much else: only taking one away counts, if there is something in it."""

_STEP = 32 << 10
"""Characters that are searched in one go: in about 5 ms, after which Python switches threads anyway."""
_BETWEEN = re.compile(r"[\s\"'`,+()\[\]{}/\\;:=<>|&]+")
PATH_FLAGS = re.DOTALL | (re.IGNORECASE if sys.platform == "darwin" else 0)


def moved_settings() -> dict[str, list[str]]:
    """Where variables have put the settings of agent CLIs: as recorded at each installation, and here and now.

    The daemon has none of the CLIs' variables, so it goes by the record.
    """
    folders = fixed_folders()
    found = {} if folders is None else {name: list(values) for name, values in folders.moved.items() if name in MOVED}
    for name in MOVED:
        value = os.path.expanduser(os.environ.get(name, ""))
        if os.path.isabs(value) and value not in found.get(name, ()):
            found.setdefault(name, []).append(value)
    return found


def package_paths() -> Iterator[str]:
    """Where fairlead itself is installed, and what says so to Python and to pip."""
    package, site = Path(__file__).parents[1], Path(sysconfig.get_path("purelib"))
    yield f"{package}/**"
    for path in (*site.glob("fairlead-*.dist-info"), *package.parent.glob("fairlead-*.dist-info")):
        yield f"{path}/**"
    yield from map(str, site.glob("__editable__.fairlead*.pth"))


def path_matcher(places: Mapping[str, str]) -> Callable[[str], str | None]:
    """Return a function that says whose a path is. It uses one regular expression for all paths."""
    rooted = [(_regex(place), whose) for place, whose in places.items() if place[0] == "/"]
    others = [(_regex(place), whose) for place, whose in places.items() if place[0] != "/"]
    from_root = re.compile(rf"(?:{'|'.join(f'({regex})' for regex, _ in rooted)})\Z", PATH_FLAGS)
    anywhere = re.compile(rf"/(?:{'|'.join(f'({regex})' for regex, _ in others)})\Z", PATH_FLAGS)

    def match(path: str) -> str | None:
        if found := anywhere.search(path):
            return others[(found.lastindex or 1) - 1][1]
        if found := from_root.match(path):
            return rooted[(found.lastindex or 1) - 1][1]
        return None

    return match


def mention_finder(places: Iterable[str], holders: Iterable[str], home: str) -> Callable[[str], str | None]:
    """Return a function that finds a protected path in a text, also in code: `".claude" / "settings.json"`."""
    names = {place.lstrip("/") for place in places}
    names |= {place.removeprefix(f"{home}/") for place in places if place.startswith(f"{home}/")}
    paths = "|".join(_regex(_BETWEEN.sub("/", name).removesuffix("/**")) for name in sorted(names))
    named = re.compile(rf"/({paths})(?=/|\Z)", PATH_FLAGS)
    folders = "|".join(_regex(holder) for holder in sorted(holders))
    alone = re.compile(rf"(?:\A|[/\"'\s(])({folders})/?(?=[\"'\s)]|\Z)", PATH_FLAGS)

    def mention(text: str) -> str | None:
        pieces = (_BETWEEN.sub("/", text[start : start + _STEP]) for start in range(0, len(text), _STEP))
        joined = "/" + "".join(pieces).replace("//", "/")
        found = next(find_all(named, joined), None) or next(find_all(alone, text), None)
        return None if found is None else found[1][-200:]

    return mention


def find_all(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield what `pattern.finditer(text)` yields, step by step.

    One long search would block all other threads. A match has at least one character, and at most as many as a path.
    """
    start = 0
    while start < len(text):
        end = start + _STEP + LONGEST  # a match that begins in this step is whole
        found = pattern.search(text, start, end)
        if found is not None and found.start() < start + _STEP and (found.end() < end or end >= len(text)):
            yield found
            start = found.end()
        else:
            start += _STEP


def _regex(place: str) -> str:
    folder = place.removesuffix("/**")
    return re.escape(folder).replace(r"\*", "[^/]*") + ("(?:/.*)?" if folder != place else "")


def has_link(path: str, start: int) -> bool:
    """Whether a part of a path is a link, from a position on."""
    while True:
        end = path.find("/", start)
        try:
            if S_ISLNK(os.lstat(path if end < 0 else path[:end]).st_mode):
                return True
        except (OSError, ValueError):
            return False  # nor is anything below it
        if end < 0:
            return False
        start = end + 1


def real_path(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return path


def exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False


def current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "/"
