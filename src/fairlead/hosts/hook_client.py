"""Hands one step of an agent CLI to the daemon, and brings back the answer.

This is one file for the standard library alone. `fairlead install` copies it out of any virtual environment, and the
launcher beside it runs it as `python -I -S` for every single step, so it imports next to nothing: no json, no socket.

    FOLDERS PYTHON SECONDS HOST EVENT

FOLDERS is what `fairlead install` has recorded, as JSON: see `fairlead.places.Folders`. Nothing in the CLI's
environment moves these folders, and what the client starts gets none of that environment.

It prints `0:TEXT:end` (exit 0 with this on stdout), `2:TEXT:end` (exit 2 with this on stderr), `fail:REASON:end`
(something of fairlead's is broken), `none:REASON:end` (nothing is broken, but this step has no answer) or
`late:REASON:end` (the daemon is still at it), and always ends with 0. Anything else means that it broke. Without an
answer, the launcher goes by `fallback.json`. The journal must say what it did: a daemon that is late finds that its
caller is gone, and writes that down. Otherwise the launcher runs this a second time, to leave a line for the journal:

    FOLDERS left CONTROL OURS HOST REASON

If a human's approval was used for the answer, it prints `ack:RECEIPT:` before it. The launcher gives the CLI the
answer, and runs this again, to tell the daemon that the CLI has it:

    FOLDERS RECEIPT
"""

import _signal  # type: ignore[import-not-found]
import _socket
import posix
import sys

try:
    from _json import encode_basestring_ascii as quoted
    from _json import scanstring
except ImportError:
    from json.decoder import scanstring  # type: ignore[attr-defined,no-redef]
    from json.encoder import encode_basestring_ascii as quoted

PROTOCOL = 1
MANAGED = "/run/fairlead"
LIMIT = 8 << 20
SOCKET_LIMIT = 103
"""Bytes of a socket's path, on the system that takes the fewest. Beyond that, there can be no daemon."""
START = 15.0
"""Seconds in which a daemon must have come up."""
AGAIN = 10.0
"""Seconds for which a daemon that did not come up is not tried again."""
SPARE = 2.0
"""Seconds that are left to say that there was no answer in time."""
OF_STEP = frozenset(("bad_payload", "too_large", "overloaded", "broken"))
"""Errors of the daemon's with this step alone. The last has its reason in the daemon's log."""
LOG = "daemon.log in fairlead's state folder"
GLANCE, PROBE = 0.2, 2.0
"""Seconds that a daemon has to show that it lives, if it left an earlier step without an answer: as a rule, and once
in a while."""
PROBE_AGAIN = 10.0
"""Seconds between the longer looks: a daemon that is only slow is asked again after one of them."""
PROBE_LIFE = 120.0
"""Seconds for which the folders of a `fairlead doctor` count. One that was killed has left them behind."""
ACKNOWLEDGE = 1.0
"""Seconds in which an answer is acknowledged, or a line left. The CLI waits for that, too."""
UNANSWERED = "unanswered.jsonl"
UNANSWERED_LIMIT = 1 << 18
"""Bytes of the file that lines are left in."""
REASON_LIMIT = 500
"""Characters of a reason that are kept in a line."""
PASSED = ("LANG", "TZ")
"""Variables that hooks get from the CLI, beside LC_* and those that they name. Others were recorded."""
RECORD = ".local/state/fairlead/folders.json"
"""What a user's own `fairlead install` has recorded, below their home."""
TOLD = (
    "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT", "GEMINI_PROJECT_DIR", "QWEN_PROJECT_DIR",
    "FACTORY_PROJECT_DIR", "COPILOT_PROJECT_DIR", "COPILOT_CLI", "CURSOR_PROJECT_DIR",
)  # fmt: skip
"""Variables by which a CLI says where it works, and whether anybody sits before it."""


class Failed(Exception):
    """There is no answer, and this is why."""


class Unanswered(Failed):
    """There is no answer to this step, and nothing is broken that `fairlead doctor` would find."""


class Late(Unanswered):
    """There was no answer in time. The daemon has the step, and is still at it."""


class NoDaemon(Exception):
    """Nobody listens. Nothing was said, so it can be said again."""


class Ending(NoDaemon):
    """Somebody listens, and takes nothing new: soon there is nobody, or somebody else."""


def main(argv: list[str]) -> str:
    given, path, seconds, host, event = argv[1:6]
    _signal.signal(_signal.SIGALRM, late)
    _signal.setitimer(_signal.ITIMER_REAL, max(float(seconds) - SPARE, 0.5))
    body = Body(host, event, float(seconds))
    folders = folders_of(given)
    state, python = value(folders, "state"), Python(path, folders)
    folder = managed() or private(value(folders, "run"))
    if folder is None or '"daemon":false' in given + folders:
        return in_process(python, body)
    mark = f"{state if folder == MANAGED else folder}/hung"
    refuse_hung(folder, mark)
    try:
        return from_daemon(state, folder, python, body)
    except Late as none:
        if hangs(folder, SPARE / 4):
            leave(mark)
            raise Failed("there was no answer in time: the daemon does not answer at all") from None
        if not body.is_sent:
            raise Unanswered(str(none)) from None
        raise


def late(*_: object) -> None:
    raise Late("there was no answer in time")


# --- a daemon that hangs ------------------------------------------------------------------------
# The first step that a hung daemon leaves without an answer waits to its deadline, and leaves a mark. With the mark,
# every later step first looks whether the daemon lives. So the mark can be old, or a lie: it costs a look, no more.
# A daemon that lives answers within milliseconds, so most looks are short. The mark's time is that of the last
# long one.


def refuse_hung(folder: str, mark: str) -> None:
    """Refuse at once if the daemon left an earlier step without an answer, and still hangs."""
    import time

    try:
        age = time.time() - posix.stat(mark).st_mtime
    except OSError:
        return
    is_glance = 0 <= age < PROBE_AGAIN
    if hangs(folder, GLANCE if is_glance else PROBE):
        if not is_glance:
            leave(mark)
        raise Failed("the daemon gave an earlier step no answer, and still does not answer at all")
    try:
        posix.unlink(mark)
    except OSError:
        return


def hangs(folder: str, seconds: float) -> bool:
    """Whether something listens that says no word for so long when it is asked how it is."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(seconds)
    try:
        connection.connect(socket_path(folder))
        connection.send(b"GET /v1/health HTTP/1.1\r\nhost: fairlead\r\nconnection: close\r\n\r\n")
        connection.recv(1)
    except (BlockingIOError, TimeoutError):  # it does not take the connection, or the request
        return True
    except OSError:
        return False
    finally:
        connection.close()
    return False


def leave(mark: str) -> None:
    try:
        posix.close(posix.open(mark, posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC, 0o600))
        posix.utime(mark)
    except OSError:
        return  # then the next step waits, too


# --- what is asked ------------------------------------------------------------------------------


class Body:
    """The request, and what it takes to say it again with more variables."""

    def __init__(self, host: str, event: str, seconds: float) -> None:
        self.head = f'{{"host":{quoted(host)},"event":{quoted(event)},"deadline":{max(seconds - 2 * SPARE, 0.0)}'
        self.payload = quoted(stdin().decode("utf-8", "replace"))
        self.names: set[str] = set()
        self.is_sent = False  # and not answered yet

    def encode(self, everything: bool = False) -> bytes:
        environ = variables()
        names = {*PASSED, *self.names, *(name for name in environ if everything or name.startswith("LC_"))}
        env = ",".join(f"{quoted(name)}:{or_null(environ.get(name))}" for name in sorted(names))
        told = ",".join(f"{quoted(name)}:{quoted(environ[name])}" for name in TOLD if name in environ)
        cwd = quoted(folder_here())
        return f'{self.head},"cwd":{cwd},"env":{{{env}}},"told":{{{told}}},"payload":{self.payload}}}'.encode()


def or_null(text: "str | None") -> str:
    return "null" if text is None else quoted(text)


def variables() -> dict[str, str]:
    """The environment. What is no text is left out."""
    found: dict[str, str] = {}
    for name, value in posix.environ.items():
        text = name.decode("utf-8", "replace"), value.decode("utf-8", "replace")
        if "\ufffd" not in text[0] + text[1]:
            found[text[0]] = text[1]
    return found


def folder_here() -> str:
    try:
        return posix.getcwdb().decode("utf-8", "replace")
    except OSError:
        return "/"


def stdin() -> bytes:
    parts, size = [], 0
    while part := posix.read(0, 1 << 16):
        parts.append(part)
        size += len(part)
        if size > LIMIT:
            raise Unanswered(f"the step is larger than {LIMIT >> 20} MiB")
    return b"".join(parts)


# --- where everything is ------------------------------------------------------------------------


def folders_of(given: str) -> str:
    """The folders, as JSON: the recorded ones, or those of whoever runs a launcher that is for all users."""
    folders = given if '"home":' in given else folders_of_user(given)
    probe = posix.environ.get(b"FAIRLEAD_PROBE", b"").decode("ascii", "replace")
    if len(probe) == 32 and probe.isalnum():  # a name that nothing can guess, of what `fairlead doctor` has put there
        return read(f"{value(folders, 'state')}/probes/{probe}", PROBE_LIFE) or folders
    return folders


def folders_of_user(given: str) -> str:
    """The folders of this user on a machine that fairlead is installed for: by the user database, never by HOME."""
    import pwd

    user = posix.geteuid()
    try:
        entry = pwd.getpwuid(user)
        name, home, shell = entry.pw_name, entry.pw_dir, entry.pw_shell
    except KeyError:
        name, home, shell = "", f"{value(given, 'base')}/{user}", ""
        if not value(given, "base"):
            why = f"user {user} has no entry in the user database, so fairlead knows no home for it"
            raise Failed(f"{why}; have an administrator run `fairlead install --scope managed --home FOLDER`") from None
        own_home(home)
    recorded = read(f"{home}/{RECORD}")
    if recorded:
        return recorded
    env = {"HOME": home, "LOGNAME": name, "PATH": value(given, "path"), "SHELL": shell, "USER": name}
    kept = ",".join(f"{quoted(name)}:{quoted(text)}" for name, text in env.items() if text)
    state = f"{home}/.local/state/fairlead"
    places = {"home": home, "config": f"{home}/.config/fairlead", "state": state, "run": f"{state}/run"}
    return "{" + "".join(f'"{name}":{quoted(text)},' for name, text in places.items()) + f'"env":{{{kept}}}}}'


def own_home(home: str) -> None:
    """Make a home below the folder that `--home` names. Any user can make one there, so it must be this user's."""
    make(home)
    status = posix.lstat(home)
    if status.st_mode & 0o170022 != 0o040000 or status.st_uid != posix.geteuid():
        raise Failed(f"{home} must be a folder of this user's that nobody else may write to")


def value(folders: str, name: str) -> str:
    """One of the folders, or nothing."""
    return (strings(folders, f'"{name}":') or [""])[0]


def read(path: str, life: float = 0.0) -> str:
    """A small file that only this user or root can have written. Nothing if there is none, or none so young."""
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:  # a link, say: what cannot be read may say that the policy is elsewhere
        raise Failed(f"{path} cannot be read: {error.strerror}") from None
    try:
        status = posix.fstat(file)
        if status.st_uid not in (0, posix.geteuid()) or status.st_mode & 0o170022 != 0o100000:
            raise Failed(f"{path} must be a file of this user's that nobody else may write to")
        if life and not is_young(status.st_mtime, life):
            return ""
        if not (text := posix.read(file, 1 << 16).decode("utf-8", "surrogateescape")):
            raise Failed(f"{path} is empty; run `fairlead install` again")
        return text
    finally:
        posix.close(file)


def is_young(changed: float, life: float) -> bool:
    import time

    return abs(time.time() - changed) < life


def managed() -> "str | None":
    """The folder of a daemon that another user runs for everybody here, if there is one."""
    try:
        status = posix.lstat(MANAGED)
    except OSError:
        return None
    is_folder = status.st_mode & 0o170000 == 0o040000
    return MANAGED if is_folder and status.st_uid != posix.geteuid() and not status.st_mode & 0o022 else None


def private(folder: str) -> "str | None":
    """The folder, made if need be. None where that cannot be done, so that no daemon could be there either."""
    try:
        make(folder)
        status = posix.lstat(folder)
    except OSError:
        return None
    if status.st_mode & 0o170000 != 0o040000 or status.st_uid != posix.geteuid() or status.st_mode & 0o022:
        raise Failed(f"{folder} must be a folder of this user's that nobody else may write to")
    fits = len(socket_path(folder).encode()) <= SOCKET_LIMIT
    return folder if fits and posix.access(folder, posix.W_OK) else None


def socket_path(folder: str) -> str:
    return f"{folder}/v{PROTOCOL}.sock"


def make(folder: str) -> None:
    try:
        posix.mkdir(folder, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        make(folder.rpartition("/")[0] or "/")
        posix.mkdir(folder, 0o700)


# --- asking -------------------------------------------------------------------------------------


def from_daemon(state: str, folder: str, python: "Python", body: Body) -> str:
    """The answer of the daemon, which is started if there is none."""
    try:
        return until_taken(folder, body)
    except NoDaemon as none:
        if folder == MANAGED:
            raise Failed(f"the machine's daemon does not answer ({none})") from None
    if not start(state, folder, python):
        return in_process(python, body)
    try:
        return until_taken(folder, body)
    except NoDaemon as none:
        raise Unanswered(f"the daemon was started, and is gone ({none})") from None


def until_taken(folder: str, body: Body) -> str:
    """The answer of a daemon that is not about to end, or `NoDaemon`."""
    while True:
        try:
            return ask(folder, body)
        except Ending:
            import time

            time.sleep(0.05)


def ask(folder: str, body: Body) -> str:
    """The daemon's answer. Once anything was said, it is not said again: hooks may have run."""
    for _ in range(3):
        status, told = request(folder, "/v1/hook", body.encode(), body)
        body.is_sent = False
        if status == 200 and told.startswith('{"answer":"'):
            answer, end = scanstring(told, len('{"answer":"'))
            receipt = strings(told[end:], ',"acknowledge":')
            return f"ack:{receipt[0]}:{answer}" if receipt else answer
        if status == 428:
            body.names.update(strings(told, '"variables":['))
            continue
        if status == 503 and '"draining"' in told:
            raise Ending("it is about to end")
        message = strings(told, '"message":')
        why = f"the daemon refused ({status}): {message[0] if message else told[:200]}"
        raise (Unanswered if OF_STEP.intersection(strings(told, '"error":')) else Failed)(why)
    raise Failed("the daemon keeps asking for other variables")


def strings(told: str, after: str) -> list[str]:
    """The texts that follow one another in a JSON text, from a place on."""
    at, found = told.find(after), list[str]()
    if at < 0:
        return found
    at += len(after)
    while told[at : at + 1] == '"':
        text, at = scanstring(told, at + 1)
        found.append(text)
        at += told[at : at + 1] == ","
    return found


def request(folder: str, route: str, content: bytes, body: "Body | None" = None) -> tuple[int, str]:
    if len(content) > LIMIT:  # in which case the daemon would hang up before it could say so
        raise Unanswered(f"the step is larger than {LIMIT >> 20} MiB")
    path = socket_path(folder)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError) as error:
        raise NoDaemon(error.strerror) from None
    except OSError as error:
        raise Failed(f"{path}: {error.strerror}") from None
    check_peer(connection, folder)
    head = f"POST {route} HTTP/1.1\r\nhost: fairlead\r\nconnection: close\r\nfairlead-acknowledges: 1\r\n"
    try:
        send(connection, f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
        if body is not None:
            body.is_sent = True
        answer = receive(connection)
    except OSError as error:
        raise Unanswered(f"the daemon broke off ({error.strerror}); see {LOG}") from None
    return answer


def check_peer(connection: _socket.socket, folder: str) -> None:
    """Nothing is said before it is known who listens."""
    darwin = sys.platform == "darwin"
    told = connection.getsockopt(0, 1, 76) if darwin else connection.getsockopt(_socket.SOL_SOCKET, 17, 12)
    uid, owner = int.from_bytes(told[4:8], sys.byteorder), posix.lstat(folder).st_uid
    if uid != owner:
        raise Failed(f"the socket in {folder} is listened on by user {uid}, and not by {owner}")


def send(connection: _socket.socket, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[connection.send(view) :]


def receive(connection: _socket.socket) -> tuple[int, str]:
    parts = []
    while part := connection.recv(1 << 16):
        parts.append(part)
    head, _, content = b"".join(parts).partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name == b"content-length" and int(value) == len(content):
            return int(head[9:12]), content.decode()
    raise Unanswered(f"the daemon broke off in the middle of its answer; see {LOG}")


# --- starting one -------------------------------------------------------------------------------


def start(state: str, folder: str, python: "Python") -> bool:
    """Whether a daemon is there now. Of many that find none, one starts it, and the others wait for that one."""
    import fcntl
    import time

    lock = posix.open(f"{folder}/start.lock", posix.O_RDWR | posix.O_CREAT | posix.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        if listens(folder):
            return True
        if time.time() - posix.fstat(lock).st_mtime < AGAIN and posix.fstat(lock).st_size:
            return False  # somebody tried a moment ago
        child = spawn_daemon(state, python)
        until = time.monotonic() + START
        while time.monotonic() < until:
            if listens(folder):
                posix.ftruncate(lock, 0)
                return True
            if child and posix.waitpid(child, posix.WNOHANG)[0] == child:
                child = 0
                until = min(until, time.monotonic() + 1.0)  # unless somebody else has won
            time.sleep(0.01)
        posix.ftruncate(lock, 0)
        posix.write(lock, b"!")
        return False
    finally:
        posix.close(lock)


def listens(folder: str) -> bool:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(socket_path(folder))
    except OSError:
        return False
    finally:
        connection.close()
    return True


def spawn_daemon(state: str, python: "Python") -> int:
    child = posix.fork()
    if child:
        return child
    try:
        posix.setsid()
        posix.chdir("/")
        log = posix.open(f"{state}/daemon.log", posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o600)
        nothing = posix.open("/dev/null", posix.O_RDONLY)
        for descriptor, number in ((nothing, 0), (log, 1), (log, 2)):
            posix.dup2(descriptor, number)
        posix.closerange(3, 256)
        python.execute("fairlead.server")
    finally:
        posix._exit(127)


class Python:
    """The interpreter that has all of fairlead, and the folders that it is to use."""

    def __init__(self, path: str, folders: str) -> None:
        self.path, self.folders = path, folders

    def execute(self, module: str) -> None:
        """Become a module of fairlead's. Its packages may be below the home; it is told all else explicitly."""
        environ = {"HOME": value(self.folders, "home"), "PYTHONSAFEPATH": "1"}
        posix.execve(self.path, [self.path, "-P", "-X", "utf8", "-m", module, self.folders], environ)


# --- without a daemon ---------------------------------------------------------------------------


def in_process(python: "Python", body: Body) -> str:
    """Where no daemon can be: the whole of fairlead, for this one step."""
    try:
        return run_once(python, body)
    except Late as none:
        raise Unanswered(str(none)) from None  # what was killed writes nothing down


def run_once(python: "Python", body: Body) -> str:
    to_child, from_us = posix.pipe()
    from_child, to_us = posix.pipe()
    child = posix.fork()
    if not child:
        try:
            posix.setsid()
            posix.dup2(to_child, 0)
            posix.dup2(to_us, 1)
            posix.dup2(posix.open("/dev/null", posix.O_WRONLY), 2)
            posix.closerange(3, 256)
            python.execute("fairlead.hosts")
        finally:
            posix._exit(127)
    posix.close(to_child)
    posix.close(to_us)
    try:
        answer = exchange(from_us, from_child, body)
        ended = posix.waitpid(child, 0)[1]
    except BaseException:
        posix.kill(child, 9)  # nobody has waited for it, so it is still this process
        raise
    code = posix.waitstatus_to_exitcode(ended)
    if code or not answer.endswith(":end"):
        said = "its interpreter is gone" if code == 127 else f"it ended with {code}"
        raise Failed(f"fairlead could not be run without a daemon ({said})")
    return answer


def exchange(out: int, back: int, body: Body) -> str:
    """Give a process the request, and take what it says."""
    _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
    content = memoryview(body.encode(everything=True))
    try:
        while content:
            content = content[posix.write(out, content) :]
    except BrokenPipeError:
        pass
    posix.close(out)
    parts = []
    while part := posix.read(back, 1 << 16):
        parts.append(part)
    return b"".join(parts).decode("utf-8", "replace")


# --- when the CLI has its answer ----------------------------------------------------------------


def acknowledge(given: str, receipt: str) -> None:
    """Tell the daemon that the CLI has its answer. If the CLI is gone, it has not."""
    import select

    _signal.signal(_signal.SIGALRM, late)
    _signal.setitimer(_signal.ITIMER_REAL, ACKNOWLEDGE)
    stdout = select.poll()
    stdout.register(1, 0)
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in stdout.poll(0)):
        return
    folder = managed() or private(value(folders_of(given), "run"))
    if folder is not None:
        request(folder, "/v1/acknowledge", f'{{"id":{quoted(receipt)}}}'.encode())


# --- when the CLI had none ----------------------------------------------------------------------


def leave_line(given: str, control: str, event: str, host: str, why: str) -> None:
    """Leave a line for the journal: what the launcher did, and why there was no answer. The payload is not in it."""
    import fcntl
    import time

    _signal.signal(_signal.SIGALRM, late)
    _signal.setitimer(_signal.ITIMER_REAL, ACKNOWLEDGE)
    about = {"event": event, "host": host, "cwd": folder_here(), "control": control, "why": why[:REASON_LIMIT]}
    texts = ",".join(f'"{name}":{quoted(text)}' for name, text in about.items())
    # Its own line, also after one that was cut off.
    line = f'\n{{"id":"{posix.urandom(8).hex()}","at":{time.time_ns()},{texts}}}\n'.encode()
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC
    file = posix.open(f"{value(folders_of(given), 'state')}/{UNANSWERED}", flags, 0o600)
    if posix.fstat(file).st_mode & 0o170000 == 0o100000:
        fcntl.flock(file, fcntl.LOCK_EX)  # the journal's process may be taking the lines in
        if posix.fstat(file).st_size + len(line) <= UNANSWERED_LIMIT:
            posix.write(file, line)


def run() -> None:
    """Be the client, whatever happens."""
    if len(sys.argv) != 6:
        try:
            leave_line(sys.argv[1], *sys.argv[3:]) if len(sys.argv) == 7 else acknowledge(*sys.argv[1:])
        finally:
            posix._exit(0)  # the CLI has its answer, whatever became of this
    try:
        said = main(sys.argv)
    except Late as none:
        said = f"late:{none}:end"
    except Unanswered as unanswered:
        said = f"none:{unanswered}:end"
    except Failed as failed:
        said = f"fail:{failed}:end"
    except BaseException as error:
        said = f"fail:{type(error).__name__} {error}:end"
    rest = memoryview(said.encode("utf-8", "replace"))
    while rest:
        rest = rest[posix.write(1, rest) :]
    posix._exit(0)
