"""Runs one command line where it can harm nothing, and says what it did.

The line runs in user, mount, pid, network, IPC and UTS namespaces of its own. Its root is a new one and read-only: the
system's programs and libraries, a few devices, and one scratch tmpfs, `/scratch`. No folder of the host is in it. The
PATH has one folder, with stubs and with links to the tools that the caller names. A stub notes its words, its folder
and what it reads. The line has no capabilities, bounded memory and CPU time, and a deadline.

Where such a namespace cannot be had, or the line names a program by its path, nothing runs and `proven` is False.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

HOME = "/scratch/home"
WORK = f"{HOME}/ws"
"""Where lines run."""
DEADLINE = 5
"""Seconds of a line."""
_NAMESPACES = ("--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc", "--uts", "--fork", "--kill-child")
_PATH = re.compile(r"(?<![\w.~})/+*?\]-])/(?!scratch\b|tmp\b|dev/(?:null|zero|std(?:in|out|err)|fd)\b)[\w.-]+")
"""A path outside the scratch folder: maybe a program's, so the line is not run."""

_SETUP = r"""
set -e
root=$1 mkdirs=$2 tools=$3 stubs=$4 shell=$5 seconds=$6
mount -t tmpfs -o mode=755,size=4m sandbox "$root"
cd "$root"
mkdir old proc dev dev/pts scratch stubs etc
ln -s scratch/tmp tmp
for folder in usr bin sbin lib lib32 lib64; do
    if [ -L "/$folder" ]; then cp -P "/$folder" "$folder"
    elif [ -d "/$folder" ]; then mkdir "$folder"; mount --rbind "/$folder" "$folder"; mount -o remount,bind,ro "$folder"
    fi
done
if [ -d /etc/alternatives ]; then
    mkdir etc/alternatives; mount --rbind /etc/alternatives etc/alternatives
    mount -o remount,bind,ro etc/alternatives
fi
echo 'me:x:0:0:me:/scratch/home:/bin/sh' > etc/passwd
echo 'me:x:0:' > etc/group
for device in null zero full urandom; do : > "dev/$device"; mount --bind "/dev/$device" "dev/$device"; done
ln -s /proc/self/fd dev/fd; ln -s fd/0 dev/stdin; ln -s fd/1 dev/stdout; ln -s fd/2 dev/stderr
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts && ln -s pts/ptmx dev/ptmx
mount -t proc -o nosuid,nodev,noexec proc proc
for tool in $tools; do ln -s "$(command -v "$tool")" "stubs/$tool"; done
for stub in $stubs; do
    printf '%s\n' '#!/bin/bash' '. /stubs/.record' > "stubs/$stub"
    chmod 755 "stubs/$stub"
done
printf '%s\n' 'file=$(printf "/scratch/calls/%05d.%s" $BASHPID "${0##*/}")' \
    'printf "%s\0" "${0##*/}" "$PWD" "$@" > "$file"' '[ -t 0 ] || while IFS= read -r line || [ -n "$line" ]; do' \
    'printf "%s\n" "$line" >> "$file.input"; done' > stubs/.record
mount -t tmpfs -o mode=777,size=64m scratch scratch
pivot_root . old
umount -l old
rmdir old
mount -o remount,ro,bind /
cd /scratch
tar --no-same-owner -xf -
mkdir -p $mkdirs
cd /scratch/home/ws
exec 3>&1 </dev/null >/scratch/stdout 2>/scratch/stderr
ulimit -c 0; ulimit -f 65536; ulimit -t "$seconds"; ulimit -v 2000000; ulimit -n 256
set +e
timeout -k 1 "$seconds" setpriv --no-new-privs --bounding-set=-all --inh-caps=-all \
    env -i PATH=/stubs HOME=/scratch/home USER=me LANG=C.UTF-8 TMPDIR=/scratch/tmp SHELL=/bin/sh PWD=/scratch/home/ws \
    "/bin/$shell" -c "$LINE" 3>&-
echo $? > /scratch/status
for turn in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do  # what runs in the background comes to its end
    set -- /proc/[0-9]*
    [ $# -gt 1 ] || break
    sleep 0.05
done
cd /scratch
exec tar --sort=name -cf - . >&3
"""


class Call(NamedTuple):
    """A stub that was run."""

    program: str
    args: tuple[str, ...]
    folder: str
    input: str


class Entry(NamedTuple):
    """What is at a path: a file's content or a link's target, and its mode."""

    kind: str
    mode: int
    content: bytes


class Outcome(NamedTuple):
    """What a line did. If it was not run, `proven` is False and `why` says why."""

    proven: bool
    why: str = ""
    status: int = -1
    calls: tuple[Call, ...] = ()
    before: Mapping[str, Entry] = {}
    after: Mapping[str, Entry] = {}

    def changed(self, path: str) -> bool:
        """Has what was at a path changed, or all that was below it?"""
        below = [name for name in self.before if name == path or name.startswith(f"{path}/")]
        return any(self.after.get(name) != self.before[name] for name in below) or (
            path in self.after and path not in self.before
        )

    def text(self, path: str) -> str:
        """A file of the scratch folder as a text. Empty if it is not there."""
        entry = self.after.get(path)
        return entry.content.decode("utf-8", "replace") if entry else ""


def run(
    line: str,
    files: Mapping[str, str] | bytes = {},
    *,
    shell: str = "bash",
    stubs: Iterable[str] = (),
    tools: Iterable[str] = (),
) -> Outcome:
    """Run a line with bash or sh in `/scratch/home/ws`. `files` are names below `/scratch`, or a tar archive of them.

    Stubs and tools are the only programs on its PATH.
    """
    if found := _PATH.search(re.sub(r"['\"\\]", "", line)):
        return Outcome(False, f"the line names {found[0]}, which is maybe a program")
    if why := unavailable():
        return Outcome(False, why)
    return _run(line, files, shell, stubs, tools)


@cache
def unavailable() -> str:
    """Why no line can be run here. Empty: lines can."""
    for program in ("unshare", "mount", "umount", "pivot_root", "setpriv", "timeout", "tar", "bash"):
        if not has(program):
            return f"not proven: there is no {program}"
    outcome = _run("echo x | stub a 'b c' && cat x > y; echo z > /z", {"home/ws/x": "1"}, "bash", ["stub"], ["cat"])
    if not outcome.proven:
        return f"not proven: {outcome.why}"
    if outcome.calls != (Call("stub", ("a", "b c"), WORK, "x\n"),) or outcome.text("home/ws/y") != "1":
        return f"not proven: a line does not run in a namespace: {outcome.text('stderr')}"
    return ""


SYSTEM_PATH = "/usr/bin:/bin:/usr/sbin:/sbin"


@cache
def has(tool: str) -> bool:
    """Is this program there for lines to run?"""
    return shutil.which(tool, path=SYSTEM_PATH) is not None


def _run(
    line: str, files: Mapping[str, str] | bytes, shell: str, stubs: Iterable[str], tools: Iterable[str]
) -> Outcome:
    given = files if isinstance(files, bytes) else packed(files)
    with tempfile.TemporaryDirectory() as root:
        words = [root, f"calls tmp {WORK}", " ".join(tools), " ".join(stubs), shell, str(DEADLINE)]
        try:
            done = subprocess.run(
                ["unshare", *_NAMESPACES, "/bin/sh", "-c", _SETUP, "sandbox", *words],
                input=given, capture_output=True, timeout=4 * DEADLINE,
                env={"PATH": SYSTEM_PATH, "LINE": line, "LC_ALL": "C.UTF-8"},
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired, ValueError) as error:
            return Outcome(False, f"{type(error).__name__}: {error}"[:300])
    if done.returncode != 0 or not done.stdout:
        return Outcome(False, f"no namespace: {done.stderr.decode(errors='replace').strip()[-300:]}")
    before, after = unpacked(given), unpacked(done.stdout)
    return Outcome(True, "", int(after["status"].content), tuple(_calls(after)), before, after)


def _calls(after: Mapping[str, Entry]) -> Iterable[Call]:
    for path, entry in sorted(after.items()):
        if path.startswith("calls/") and not path.endswith(".input"):
            program, folder, *args = entry.content.decode("utf-8", "replace").split("\0")[:-1]
            read = after.get(f"{path}.input")
            yield Call(program, tuple(args), folder, read.content.decode("utf-8", "replace") if read else "")


def packed(files: Mapping[str, str]) -> bytes:
    """A tar archive of texts by their names."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.mode = 0o755 if text.startswith("#!") else 0o644
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return archive.getvalue()


def packed_folder(folder: Path) -> bytes:
    """A tar archive of a folder, for `run`."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name)
    return archive.getvalue()


def unpacked(archive: bytes) -> dict[str, Entry]:
    """All that is in a tar archive, but for folders that only hold others."""
    entries: dict[str, Entry] = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            name = os.path.normpath(member.name)
            if member.isfile() or member.islnk():
                file = tar.extractfile(member)
                entries[name] = Entry("file", member.mode, file.read() if file else b"")
            elif member.issym():
                entries[name] = Entry("link", 0, member.linkname.encode())
            elif not member.isdir():
                entries[name] = Entry("other", member.mode, b"")
    return entries
