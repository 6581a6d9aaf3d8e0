"""Where a journal may be: not on a network's filesystem, and in a folder of one's own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fairlead import paths as places
from fairlead.journal import JournalError
from fairlead.paths import BadPath, filesystem_of, refuse_remote

MOUNTS = [("/", "ext4"), ("/home", "nfs4"), ("/home/me/local", "xfs"), ("/mnt/a b", "cifs"), ("/srv", "fuse.sshfs")]


@pytest.fixture
def mounts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    made = list(MOUNTS)
    monkeypatch.setattr(places, "_mounts", lambda: made)
    return made


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/x", "ext4"),
        ("/home/me", "nfs4"),
        ("/home", "nfs4"),
        ("/homestead", "ext4"),
        ("/home/me/local/x", "xfs"),
        ("/mnt/a b/x", "cifs"),
    ],
)
def test_a_path_is_on_the_nearest_mount(path: str, kind: str, mounts: Any) -> None:
    assert filesystem_of(Path(path)) == kind


def test_of_two_mounts_at_one_place_the_last_one_counts(mounts: list[tuple[str, str]]) -> None:
    mounts.append(("/home", "tmpfs"))
    assert filesystem_of(Path("/home/me")) == "tmpfs"


@pytest.mark.parametrize("path", ["/home/me/journal.db", "/srv/journal.db", "/mnt/a b/journal.db"])
def test_a_network_filesystem_is_refused(path: str, mounts: Any) -> None:
    with pytest.raises(BadPath, match=r"network filesystem.*FAIRLEAD_STATE_DIR"):
        refuse_remote(Path(path))


def test_a_local_filesystem_is_not_refused(mounts: Any) -> None:
    refuse_remote(Path("/home/me/local/journal.db"))


def test_a_link_is_judged_by_where_it_leads(tmp_path: Path, mounts: Any) -> None:
    (tmp_path / "link").symlink_to("/home/me")
    with pytest.raises(BadPath):
        refuse_remote(tmp_path / "link/journal.db")


def test_a_journal_on_a_network_filesystem_says_so(
    mounts: list[tuple[str, str]], path: Path, journal: Any, keep: Any
) -> None:
    mounts.append((str(path.parent), "nfs"))
    keep(journal, 1, flush=False)
    with pytest.raises(JournalError, match="network filesystem"):
        journal.flush()
    mounts.pop()


@pytest.fixture(params=["with a space", "donn\u00e9es", "\u65e5\u672c", "a\\b", "a\tb"])
def mounted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / request.param
    folder.mkdir()
    if subprocess.run(["mount", "-t", "ramfs", "ramfs", str(folder)], capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_mount_is_found_whatever_it_is_called(mounted: Path) -> None:
    assert filesystem_of(mounted / "journal.db") == "ramfs"


def test_without_anything_said_the_journal_is_in_the_state_folder(home: Path) -> None:
    assert places.journal_file() == home / "state/journal.db"


def test_a_relative_state_folder_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRLEAD_STATE_DIR", "here")
    with pytest.raises(BadPath, match="absolute"):
        places.journal_file()


def test_only_its_owner_can_read_a_journal(rich: Path) -> None:
    assert rich.stat().st_mode & 0o077 == 0


def test_only_its_owner_can_read_what_stands_beside_it(rich: Path) -> None:
    assert [p.name for p in rich.parent.glob("journal.db*") if p.is_file() and p.stat().st_mode & 0o077] == []
