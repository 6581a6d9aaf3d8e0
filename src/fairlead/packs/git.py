"""Git: commits, branches and uncommitted work that no command brings back."""

from __future__ import annotations

import re

from ..shell import Command
from .lines import PackLine
from .rules import Objection, Pack

git = Pack("git", "Keeps commits, branches and uncommitted work from being lost.")
LOSS = "ASI02 Tool Misuse and Exploitation"
_NOW = frozenset({"now", "all", "0", "today"})


def _only_looks(command: Command) -> bool:
    """Does it change nothing? `--help` shows a page, and `-n` says what would happen."""
    return command.has("--help", "--dry-run")


@git.rule(
    "reset-hard",
    level="destructive",
    programs=["git"],
    why="This throws away uncommitted changes, and git keeps no copy of them.",
    instead="`git stash` keeps them, `git reset --keep HEAD~1` refuses if something would be lost.",
    stops=[
        "git reset --hard",
        "git reset --hard HEAD~1",
        "git -C repo reset -q --hard",
        "git reset --merge",
        "git reset --h",
    ],
    passes=["git reset", "git reset --soft HEAD~1", "git reset -- --hard", "git reset --help", "git stash"],
)
def reset_hard(command: Command, line: PackLine) -> Objection:
    return (
        command.runs("git reset")
        and command.has("--hard", "--merge", "--h", "--ha", "--har")
        and not _only_looks(command)
    )


@git.rule(
    "clean",
    level="destructive",
    programs=["git"],
    why="This deletes files that git does not track, and nothing keeps a copy of them.",
    instead="`git clean -n` lists them first; `git stash -u` puts them away.",
    stops=["git clean -f", "git clean -fdx", "git clean build -f .", "git -c clean.requireForce=false clean"],
    passes=["git clean -n", "git clean --dry-run -d", "git clean --help", "git clean -i"],
)
def clean(command: Command, line: PackLine) -> Objection:
    if not command.runs("git clean") or command.has("--help"):
        return None
    forced = command.has("--force") or any("requireforce=" in word.lower() for word in command.args)
    only_looks = command.has("--dry-run") and not command.has("--force")
    return forced and not only_looks and not command.has("--interactive")


@git.rule(
    "push-force",
    level="destructive",
    programs=["git"],
    why="This replaces the history of a branch for everyone, and may drop commits of others.",
    instead="`git push --force-with-lease` refuses if the remote has moved; or open a pull request.",
    stops=[
        "git push -f",
        "git push --force origin main",
        "git push origin +main",
        "git push --mirror origin",
        "git push -uf origin x",
    ],
    passes=[
        "git push",
        "git push --force-with-lease",
        "git push origin my-feature",
        "git push -n --force",
        "git push -u origin x",
    ],
)
def push_force(command: Command, line: PackLine) -> Objection:
    if not command.runs("git push") or _only_looks(command):
        return None
    if any(ref.startswith("+") and not _is_leased(command) for ref in command.operands[1:]) or command.has("--mirror"):
        return True
    if not command.has("--force"):
        return None
    after = [word for word in command.args if word in ("-f", "--force") or word.startswith("--force-with-lease")]
    return not (after and after[-1] == "--force-with-lease")


def _is_leased(command: Command) -> bool:
    return any(word == "--force-with-lease" for word in command.args)


@git.rule(
    "push-delete",
    level="destructive",
    programs=["git"],
    why="This deletes a branch or a tag on the remote.",
    instead="Ask its owner to delete it, or list what is merged: `git branch -r --merged`",
    stops=["git push --delete origin x", "git push origin :x", "git push -d origin v1.0"],
    passes=["git push origin x", "git push origin x:y", "git branch -r --merged", "git push -n -d origin x"],
)
def push_delete(command: Command, line: PackLine) -> Objection:
    if not command.runs("git push") or _only_looks(command):
        return None
    return command.has("--delete", "--prune") or any(
        len(ref) > 1 and ref.startswith(":") for ref in command.operands[2:]
    )


@git.rule(
    "branch-delete-force",
    level="destructive",
    programs=["git"],
    why="This deletes a branch even if its commits are nowhere else.",
    instead="`git branch -d x` refuses if something would be lost.",
    stops=["git branch -D x", "git branch -Dv x", "git branch --delete --force x", "git branch -d -f x"],
    passes=["git branch -d x", "git branch x", "git branch -m x y", "git branch --list"],
)
def branch_delete_force(command: Command, line: PackLine) -> Objection:
    if not command.runs("git branch") or command.has("--help"):
        return None
    deletes = command.has("--delete") or any(word.startswith("--del") for word in command.args)
    return command.has("-D", "--delete-force") or (deletes and command.has("--force"))


@git.rule(
    "branch-overwrite",
    level="strict",
    programs=["git"],
    why="This moves a branch that exists to other commits.",
    instead="Give the new branch another name: `git branch x2 main`",
    stops=["git branch -f main HEAD~3", "git branch -M x main", "git branch -C x main"],
    passes=["git branch x2 main", "git branch -m x y"],
)
def branch_overwrite(command: Command, line: PackLine) -> Objection:
    return command.runs("git branch") and (
        command.has("-M", "--move-force", "-C") or (command.has("--force") and not command.has("--delete"))
    )


_CHECKOUT_MODES = frozenset({"-b", "-B", "--orphan", "--detach", "--help"})


@git.rule(
    "checkout-paths",
    level="destructive",
    programs=["git"],
    why="This replaces files with committed ones: uncommitted changes in them are gone.",
    instead="`git stash push file` keeps them; `git diff file` shows them first.",
    stops=[
        "git checkout -- file",
        "git checkout .",
        "git checkout HEAD file",
        "git checkout -q main a b",
        "git checkout -- .",
    ],
    passes=[
        "git checkout main",
        "git checkout -b x",
        "git checkout -qbfeature",
        "git checkout -",
        "git checkout --help",
        "git checkout --detach main",
        "git checkout --track origin/main",
        "git checkout -U 3 main",
    ],
)
def checkout_paths(command: Command, line: PackLine) -> Objection:
    if not command.runs("git checkout") or command.has("--help"):
        return None
    if "--" in command.args and command.args[-1] != "--":
        return True
    if any(word.startswith("--pathspec-from-file") for word in command.args):
        return True
    if command.has(*_CHECKOUT_MODES):
        return None
    operands = [word for word in command.operands[1:] if word]
    if command.has("--track") and operands[:1] and operands[0] in ("direct", "inherit"):
        del operands[0]  # its value
    return len(operands) > 1 or any(word in (".", "..", "*", ":/") or word.startswith("./") for word in operands)


@git.rule(
    "checkout-force",
    level="destructive",
    programs=["git"],
    why="This switches by force: uncommitted changes are gone.",
    instead="`git stash`, then `git switch main`",
    stops=[
        "git checkout -f",
        "git checkout --force main",
        "git checkout -qf main",
        "git switch -f main",
        "git switch --discard-changes main",
    ],
    passes=["git checkout main", "git switch main", "git switch -c x", "git switch -Cfixup", "git switch -- -f"],
)
def checkout_force(command: Command, line: PackLine) -> Objection:
    if command.runs("git checkout"):
        return command.has("--force") and not command.has("--help")
    return command.runs("git switch") and command.has("--force", "--discard-changes") and not command.has("--help")


@git.rule(
    "restore",
    level="destructive",
    programs=["git"],
    why="This replaces files with committed ones: uncommitted changes in them are gone.",
    instead="`git stash push file` keeps them; `git restore --staged file` only takes it out of the next commit.",
    stops=[
        "git restore file",
        "git restore .",
        "git restore --staged --worktree .",
        "git restore -s HEAD~1 file",
        "git restore -SW f",
    ],
    passes=["git restore --staged file", "git restore -S .", "git restore --help", "git stash push file"],
)
def restore(command: Command, line: PackLine) -> Objection:
    if not command.runs("git restore") or command.has("--help", "--patch"):
        return None
    return command.has("--worktree") or not command.has("--staged")


@git.rule(
    "overwrite-tree",
    level="destructive",
    programs=["git"],
    why="This writes committed files over those of the work tree: uncommitted changes are gone.",
    instead="`git stash` keeps them; `git read-tree -m HEAD` refuses if something would be lost.",
    stops=[
        "git read-tree --reset -u HEAD~3",
        "git read-tree -u --reset main",
        "git checkout-index -f -a",
        "git checkout-index -af",
    ],
    passes=[
        "git read-tree -m HEAD",
        "git read-tree HEAD",
        "git checkout-index -a --prefix=export/",
        "git read-tree --reset -n -u HEAD",
    ],
)
def overwrite_tree(command: Command, line: PackLine) -> Objection:
    if command.runs("git read-tree"):
        return command.has("--reset") and command.has("-u") and not command.has("-n", "--dry-run", "--help")
    if not command.runs("git checkout-index"):
        return None
    letters = "".join(word[1:] for word in command.args if re.fullmatch(r"-[a-z]+", word))
    return (
        ("f" in letters or command.has("--force"))
        and "n" not in letters
        and not any(word.startswith("--prefix") for word in command.args)
    )


@git.rule(
    "stash-drop",
    level="destructive",
    programs=["git"],
    why="This deletes stashed work.",
    instead="`git stash list` shows it, `git stash branch x` makes a branch of it.",
    stops=["git stash drop", "git stash clear", "git stash drop stash@{0}"],
    passes=["git stash", "git stash pop", "git stash list", "git stash branch x", "git stash push clear"],
)
def stash_drop(command: Command, line: PackLine) -> Objection:
    return (command.runs("git stash drop") or command.runs("git stash clear")) and not command.has("--help")


@git.rule(
    "lose-history",
    level="destructive",
    programs=["git"],
    why="This removes the commits that nothing else refers to, the last copy of lost work.",
    instead="`git reflog` finds them, `git gc` alone keeps the recent ones.",
    stops=[
        "git reflog expire --expire=now --all",
        "git gc --prune=now",
        "git prune --expire=now",
        "git prune",
        "git -c gc.pruneExpire=now gc",
        "git reflog delete HEAD@{1}",
        "git gc --p=now",
    ],
    passes=[
        "git reflog",
        "git gc",
        "git gc --prune=2.weeks.ago",
        "git prune -n",
        "git remote prune origin",
        "git fetch --prune",
    ],
)
def lose_history(command: Command, line: PackLine) -> Objection:
    if _only_looks(command) or command.has("-n"):
        return None
    words = [str(word).lower() for word in command.args]
    soon = any(word.partition("=")[2] in _NOW for word in words if word.startswith(("--p", "--e", "gc.prune")))
    if command.runs("git reflog delete"):
        return True
    if command.runs("git reflog expire"):
        return soon or command.has("--expire", "--expire-unreachable", "--all")
    if command.runs("git prune"):
        return soon or not any(word.startswith("--e") for word in words)
    return command.runs("git gc") and soon


@git.rule(
    "rewrite-history",
    level="destructive",
    programs=["git", "git-filter-repo", "bfg"],
    why="This rewrites every commit of a branch.",
    instead="Work on a copy: `git clone . ../copy`",
    stops=[
        "git filter-branch -f -- --all",
        "git filter-repo --path x",
        "git-filter-repo --force",
        "git update-ref -d refs/heads/x",
        "bfg --delete-files x",
    ],
    passes=[
        "git clone . ../copy",
        "git update-ref refs/heads/x HEAD",
        "git filter-repo --analyze",
        "git filter-branch --help",
    ],
)
def rewrite_history(command: Command, line: PackLine) -> Objection:
    if _only_looks(command) or command.has("--analyze", "--version"):
        return None
    if command.program == "bfg":
        return any(word.startswith(("--delete", "--strip", "--replace")) for word in command.args)
    if command.program == "git-filter-repo" or command.runs("git filter-branch") or command.runs("git filter-repo"):
        return True
    return command.runs("git update-ref") and command.has("-d", "--delete", "--stdin")


@git.rule(
    "worktree-remove-force",
    level="destructive",
    programs=["git"],
    why="This deletes a work tree with its uncommitted changes.",
    instead="`git worktree remove x` refuses if something would be lost.",
    stops=["git worktree remove --force ../x", "git worktree remove -f /tmp/wt"],
    passes=["git worktree remove ../x", "git worktree list", "git worktree remove -- -f", "git worktree prune"],
)
def worktree_remove_force(command: Command, line: PackLine) -> Objection:
    return command.runs("git worktree remove") and command.has("--force") and not command.has("--help")


@git.rule(
    "submodule-deinit",
    level="destructive",
    programs=["git"],
    why="This deletes submodules with their uncommitted changes.",
    instead="`git submodule deinit x` refuses if something would be lost.",
    stops=["git submodule deinit -f x", "git submodule deinit --all --force", "git rm -rf src"],
    passes=[
        "git submodule deinit x",
        "git submodule update",
        "git rm file",
        "git rm --cached -r src",
        "git rm -rf --cached src",
    ],
)
def submodule_deinit(command: Command, line: PackLine) -> Objection:
    if command.runs("git rm"):
        return command.has("--force") and not command.has("--cached", "--dry-run", "--help")
    return command.runs("git submodule deinit") and command.has("--force", "-f") and not command.has("--help")


@git.rule(
    "alias-hides",
    level="destructive",
    programs=["git"],
    why="An alias that is defined on the line hides what git runs.",
    instead="Run the command itself.",
    stops=["git -c alias.x='!rm -rf build' x", "git -c 'alias.w=reset --hard' w"],
    passes=["git -c user.name=x commit -m y", "git config alias.st status"],
)
def alias_hides(command: Command, line: PackLine) -> Objection:
    for before, word in zip(command.args, command.args[1:], strict=False):
        if before == "-c" and word.lower().startswith("alias."):
            return True
    return any(word.lower().startswith(("-calias.", "--config-env=alias.")) for word in command.args)


@git.rule(
    "other-version-control",
    level="destructive",
    programs=["hg", "svn"],
    why="This throws away uncommitted changes, files that are not tracked, or commits.",
    instead="Look first: `hg status`",
    stops=[
        "hg update -C",
        "hg update --clean tip",
        "hg purge --all",
        "hg strip tip",
        "hg revert -a",
        "svn revert -R .",
    ],
    passes=["hg status", "hg update tip", "svn revert file", "svn update", "hg purge --print", "hg purge -p"],
)
def other_version_control(command: Command, line: PackLine) -> Objection:
    first = command.operands[:1]
    if command.has("--help", "--print", "--dry-run"):
        return None
    if command.program == "svn":
        return (first == ["revert"] and command.has("--recursive", "-R", "--depth")) or (
            first == ["cleanup"] and any(word.startswith("--remove-") for word in command.args)
        )
    if first in (["update"], ["up"], ["checkout"], ["co"], ["goto"]):
        return command.has("--clean", "-C")
    if first == ["purge"]:
        return not command.has("-p")
    return first == ["strip"] or (first == ["revert"] and command.has("--all", "-a", "--no-backup"))


@git.rule(
    "rebase",
    level="strict",
    programs=["git"],
    why="This rewrites commits.",
    instead="`git merge main` keeps them as they are.",
    stops=["git rebase main", "git rebase -i HEAD~3", "git commit --amend"],
    passes=["git merge main", "git rebase --abort", "git rebase --continue", "git commit -m x"],
)
def rebase(command: Command, line: PackLine) -> Objection:
    if command.runs("git rebase"):
        return not command.has("--abort", "--continue", "--skip", "--quit", "--show-current-patch", "--help")
    return command.runs("git commit") and command.has("--amend")


@git.rule(
    "delete-repository",
    level="disaster",
    programs=["gh", "glab", "hub", "tea"],
    why="This deletes a repository on its server, with its issues and pull requests.",
    instead="Archive it: `gh repo archive owner/name`",
    stops=["gh repo delete owner/name --yes", "hub delete -y owner/name", "glab repo delete owner/name"],
    passes=[
        "gh repo archive owner/name",
        "gh repo view owner/name",
        "gh repo clone owner/name",
        "gh repo delete --help",
    ],
)
def delete_repository(command: Command, line: PackLine) -> Objection:
    if command.has("--help"):
        return None
    return any(
        command.runs(f"{command.program} {words}")
        for words in ("repo delete", "repos delete", "delete", "project delete")
    )


@git.rule(
    "delete-on-server",
    level="destructive",
    programs=["gh", "glab"],
    why="This deletes something on the server that git does not keep.",
    instead="Close it instead: `gh issue close 3`",
    stops=[
        "gh release delete v1 -y",
        "gh issue delete 3",
        "gh secret delete X",
        "gh workflow disable ci",
        "gh run delete 3",
    ],
    passes=["gh issue close 3", "gh release list", "gh pr merge 3", "gh release delete --help"],
)
def delete_on_server(command: Command, line: PackLine) -> Objection:
    words = command.operands[:2]
    return (
        len(words) == 2
        and words[0] not in ("repo", "alias", "cache", "label", "cs")
        and words[1] in ("delete", "delete-asset", "disable")
        and not command.has("--help")
    )


@git.rule(
    "make-public",
    level="destructive",
    programs=["gh", "glab"],
    why="This shows a repository, with its whole history, to everyone.",
    instead="Ask its owner; to see what it is now: `gh repo view owner/name`",
    risk="ASI03 Identity and Privilege Abuse",
    stops=[
        "gh repo edit owner/name --visibility public --accept-visibility-change-consequences",
        "gh repo edit --visibility=public",
        "glab repo update --visibility public",
    ],
    passes=["gh repo view owner/name", "gh repo edit --visibility private", "gh repo create x --public"],
)
def make_public(command: Command, line: PackLine) -> Objection:
    if command.operands[:1] not in (["repo"], ["project"]) or command.operands[1:2] == ["create"]:
        return None
    return re.search(r"--visibility[ =]public\b", " ".join(map(str, command.args))) is not None
