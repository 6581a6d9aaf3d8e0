"""Edits: what should not get into files and commits."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from ..redaction.shapes import known_secrets
from ..shell import Command
from ..shell.outputs import input_of
from .flows import written_by
from .lines import PackLine, texts_of
from .rules import Objection, Pack
from .secret_files import is_secret_file

if TYPE_CHECKING:
    from ..lifecycle import BeforeTool

edits = Pack("edits", "Keeps secrets and conflict markers out of files, and tests and checks in place.")
_LONGEST = 200_000
"""Characters of a text that are looked at."""
_OLD = re.compile(r"old|before|search|find|target_?content|original", re.I)
_KEY = "AKIA" + "Q3EGRIV7ZZT2PLKM"  # split, so that this file is no finding of scanners
_CONFLICT = re.compile(r"^<{7} .*$[\s\S]*?^={7}$[\s\S]*?^>{7} ", re.M)
_TEST_FILE = re.compile(
    r"(?:^|/)(?:tests?|spec|__tests__)/(?:.*/)?(?:test_[^/]+\.\w+|[^/]+_(?:test|spec)\.\w+|[^/]+\.(?:test|spec)\.[cm]?[jt]sx?)$|"
    r"(?:^|/)(?:[^/]+_test\.go|[^/]+Tests?\.(?:java|kt|cs|scala)|[^/]+_spec\.rb|[^/]+\.(?:test|spec)\.[cm]?[jt]sx?|conftest\.py)$"
)
_TEST_FOLDER = re.compile(r"(?:^|/)(?:tests?|spec|__tests__)/?$")
_TEST = re.compile(
    r"^\s*(?:async )?def test_|^\s*(?:it|test)\(|^\s*func Test[A-Z]|^\s*@Test\b|#\[(?:tokio::)?test\]", re.M
)


def _texts(args: Any, old: bool = False) -> Iterator[str]:
    """The texts that a tool writes; with `old` those that it replaces."""
    return (text for name, text in texts_of(args) if bool(_OLD.search(name)) == old)


def _secret_in(text: str) -> str:
    found = next(known_secrets(text), None) if len(text) > 12 else None
    return found[2] if found else ""


@edits.tool_rule(
    "secret-in-file",
    kinds=["write"],
    level="destructive",
    why="A secret in a file gets into commits, logs and copies, where it stays.",
    instead="Name a variable there, and let the user put the secret into it.",
    risk="ASI03 Identity and Privilege Abuse",
    stops=[
        {"tool": "Write", "args": {"file_path": "/home/me/project/a.py", "content": f"KEY = {_KEY!r}"}},
        {"tool": "Edit", "args": {"file_path": "/home/me/project/a.py", "old_string": "x", "new_string": _KEY}},
    ],
    passes=[
        {"tool": "Write", "args": {"file_path": "/home/me/project/a.py", "content": "KEY = os.environ['KEY']"}},
        {"tool": "Edit", "args": {"file_path": "/home/me/project/a.py", "old_string": _KEY, "new_string": "x"}},
        {"tool": "Write", "args": {"file_path": "/home/me/project/.env", "content": f"KEY={_KEY}"}},
    ],
)
def secret_in_file(step: BeforeTool, line: PackLine) -> Objection:
    if step.target.paths and all(is_secret_file(str(path)) for path in step.target.paths):
        return None
    return next((f"it holds a secret ({kind})" for text in _texts(step.args) if (kind := _secret_in(text))), None)


@edits.rule(
    "secret-in-command",
    level="destructive",
    why="A secret in a file gets into commits, logs and copies, where it stays.",
    instead="Name a variable there: `echo 'KEY=$KEY' > config.sh`",
    risk="ASI03 Identity and Privilege Abuse",
    stops=[f"echo KEY={_KEY} > config.sh", f"cat > a.py <<E\nKEY = {_KEY!r}\nE", f"echo {_KEY} | tee a.txt"],
    passes=["echo 'KEY=$KEY' > config.sh", f"echo KEY={_KEY} > .env", f"echo {_KEY}", "cat > a.py <<E\nx = 1\nE"],
)
def secret_in_command(command: Command, line: PackLine) -> Objection:
    paths = [path for path in written_by(command, line) if not is_secret_file(path)]
    if not paths or command.program in ("cp", "mv", "curl", "wget", "rsync", "scp"):
        return None
    for text in (input_of(command) or "", " ".join(map(str, command.args))):
        if kind := _secret_in(str(text)[:_LONGEST]):
            return f"{paths[0]} would hold a secret ({kind})"
    return None


@edits.tool_rule(
    "conflict-markers",
    kinds=["write"],
    level="destructive",
    why="Conflict markers in a file break it, and both sides of the conflict are still open.",
    instead="Choose a side, or join them, and write the result.",
    stops=[
        {
            "tool": "Write",
            "args": {"file_path": "a.py", "content": "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> main\n"},
        }
    ],
    passes=[
        {"tool": "Write", "args": {"file_path": "a.rst", "content": "Title\n=======\ntext"}},
        {
            "tool": "Edit",
            "args": {
                "file_path": "a.py",
                "old_string": "<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> main\n",
                "new_string": "b\n",
            },
        },
    ],
)
def conflict_markers(step: BeforeTool, line: PackLine) -> Objection:
    return any(_CONFLICT.search(text) for text in _texts(step.args))


@edits.rule(
    "no-verify",
    level="destructive",
    programs=["git", "pre-commit", "lefthook", "gh"],
    why="This skips the hooks of the repository: its tests, its linters, its search for secrets.",
    instead="Mend what the hooks find, and commit: `git commit -m x`",
    stops=[
        "git commit --no-verify -m x",
        "git commit -nm x",
        "git push --no-verify",
        "git -c core.hooksPath=/dev/null commit -m x",
        "HUSKY=0 git commit -m x",
        "SKIP=ruff git commit -m x",
        "pre-commit uninstall",
        "gh pr merge 3 --admin",
    ],
    passes=[
        "git commit -m x",
        "git push",
        "git merge --no-ff x",
        "git commit -m --no-verify",
        "HUSKY=1 git commit -m x",
    ],
)
def no_verify(command: Command, line: PackLine) -> Objection:
    if command.has("--help", "--dry-run"):
        return None
    if command.program == "gh":  # the rules of the repository are checks, too
        return command.runs("gh pr merge") and command.has("--admin")
    if command.program != "git":
        return command.operands[:1] == ["uninstall"]
    names = ("commit", "push", "merge", "rebase", "am", "cherry-pick")
    if not any(command.runs(f"git {name}") for name in names):
        return None
    variables = line.variables_of(command)
    if variables.get("HUSKY") == "0" or variables.get("SKIP") or variables.get("PRE_COMMIT_ALLOW_NO_CONFIG"):
        return "it switches hooks off"
    return command.has("--no-verify") or any(word.lower().startswith("core.hookspath=") for word in command.args)


@edits.rule(
    "delete-tests",
    level="destructive",
    programs=["rm", "unlink", "git", "trash", "shred", "mv", "find"],
    why="A test that is gone finds nothing: mend the code, or say why the test is wrong.",
    instead="Run the test, and look why it fails: `pytest tests/test_login.py`",
    stops=[
        "rm tests/test_login.py",
        "rm -r tests",
        "git rm tests/test_login.py",
        "rm -rf spec/",
        "rm src/login.test.ts",
        "mv tests/test_login.py /tmp/",
        "find tests -name 'test_*.py' -delete",
    ],
    passes=[
        "pytest tests/test_login.py",
        "rm tests/data.json",
        "rm test_output.txt",
        "rm -rf build",
        "rm test_try.py",
        "git rm --cached tests/test_login.py",
        "rm -rf tests/__pycache__",
        "mv tests/test_login.py tests/test_sign_in.py",
        "find tests -name '*.pyc' -delete",
    ],
)
def delete_tests(command: Command, line: PackLine) -> Objection:
    words = command.operands
    if command.program == "git":
        if not command.runs("git rm") or command.has("--cached", "--dry-run", "--help"):
            return None
        words = words[1:]
    elif command.program == "mv":
        into = line.path(command, words[-1]) if len(words) > 1 else ""
        if not into or line.place_of(into) in ("inside", "tree"):
            return None
        words = words[:-1]
    elif command.program == "find":
        names = [word for before, word in pairwise(map(str, command.args)) if before in ("-name", "-path", "-iname")]
        if "-delete" not in command.args or not any(re.search(r"test|spec", name) for name in names):
            return None
        words = command.operands[:1]
    for word in words:
        path = line.path(command, word)
        inside = os.path.relpath(path, line.folder) if path and line.place_of(path) == "inside" else ""
        whole = command.program in ("mv", "find") or command.has("--recursive", "-r")
        if inside and (_TEST_FILE.search(inside) or (_TEST_FOLDER.search(inside) and whole)):
            return f"{inside} has tests"
    return None


_DELETES_FILE = re.compile(r"^\*\*\* Delete File: (.{1,500}?)\s*$", re.M)


@edits.tool_rule(
    "take-tests-out",
    kinds=["write"],
    level="destructive",
    why="A test that is gone finds nothing: mend the code, or say why the test is wrong.",
    instead="Run the test, and look why it fails.",
    stops=[
        {
            "tool": "Edit",
            "args": {"file_path": "tests/test_a.py", "old_string": "def test_a():\n    assert f()\n", "new_string": ""},
        },
        {"tool": "delete_file", "args": {"path": "/home/me/project/tests/test_a.py"}},
        {"tool": "apply_patch", "args": {"input": "*** Begin Patch\n*** Delete File: tests/test_a.py\n*** End Patch"}},
    ],
    passes=[
        {
            "tool": "Edit",
            "args": {
                "file_path": "tests/test_a.py",
                "old_string": "def test_a():\n    assert f()\n",
                "new_string": "def test_b():\n    assert g()\n",
            },
        },
        {"tool": "delete_file", "args": {"path": "/home/me/project/a.txt"}},
        {"tool": "Edit", "args": {"file_path": "a.py", "old_string": "x", "new_string": ""}},
    ],
)
def take_tests_out(step: BeforeTool, line: PackLine) -> Objection:
    for _, text in texts_of(step.args):
        if path := next((one for one in _DELETES_FILE.findall(text) if _TEST_FILE.search(one)), None):
            return f"{path} has tests"
    if re.search(r"(?i)delete|remove", step.tool):
        return next((f"{path} has tests" for path in map(str, step.target.paths) if _TEST_FILE.search(path)), None)
    before = sum(len(_TEST.findall(text)) for text in _texts(step.args, old=True))
    if not before:
        return None
    after = sum(len(_TEST.findall(text)) for text in _texts(step.args))
    return f"{before} tests become {after}" if after < before else None
