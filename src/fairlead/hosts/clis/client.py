"""Sends one event of an agent CLI to the daemon, and prints the answer.

This one file needs only the standard library. `fairlead install` copies it out of any virtual environment, and the
launcher beside it runs it as `python -I -S` for every event. So it imports next to nothing: no json, no socket.

    FOLDERS PYTHON SECONDS HOST EVENT

FOLDERS is the JSON that `fairlead install` recorded: see `fairlead.paths.Folders`. Nothing in the CLI's environment
moves these folders, and the processes that the client starts get none of that environment.

It always ends with exit code 0, and prints one of these. Any other output means that the client broke.

    0:TEXT:end        the launcher prints TEXT on stdout and ends with 0
    2:TEXT:end        the launcher prints TEXT on stderr and ends with 2
    refusal:TEXT
    REASON:end        the launcher prints TEXT on stdout and REASON on stderr, and ends with 2
    fail:REASON:end   something of fairlead is broken
    none:REASON:end   nothing is broken, but this step has no answer
    late:REASON:end   the daemon is still deciding

Without an answer, the launcher follows `fallback.json`, and the journal must record what the launcher did. A daemon
that is late finds its caller gone and records it. Otherwise the launcher runs the client again, to leave a line:

    FOLDERS left CONTROL OURS HOST REASON

If the answer used a human's approval, the client prints `ack:RECEIPT:` before it. The launcher gives the CLI the
answer, and runs the client again, to confirm to the daemon that the CLI has it:

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
"""Bytes of a socket's path, on the system that allows the fewest. With a longer path, no daemon can run."""
START = 15.0
"""Seconds that a daemon has to start."""
RETRY_AFTER = 10.0
"""Seconds after a failed start in which no client tries again."""
SPARE = 2.0
"""Seconds that the client keeps to report that there was no answer in time."""
STEP_ERRORS = frozenset(("bad_payload", "too_large", "overloaded", "broken"))
"""Errors that the daemon has with this step alone. The reason for `broken` is in the daemon's log."""
LOG = "daemon.log in fairlead's state folder"
GLANCE, PROBE = 0.2, 2.0
"""Seconds that a daemon has to answer a health check, if it gave an earlier step no answer: the short check, and the
long one every `PROBE_AGAIN` seconds."""
PROBE_AGAIN = 10.0
"""Seconds between two long checks. A daemon that is only slow passes one of them, and gets steps again."""
PROBE_LIFE = 120.0
"""Seconds for which the folders of a `fairlead doctor` are used. A doctor that was killed leaves them behind."""
ACKNOWLEDGE = 1.0
"""Seconds to acknowledge an answer or to leave a line. The CLI waits for that, too."""
UNANSWERED = "unanswered.jsonl"
UNANSWERED_LIMIT = 1 << 18
"""Bytes that the file of these lines may have."""
REASON_LIMIT = 500
"""Characters of a reason that a line keeps."""
PASSED = ("LANG", "TZ")
"""Variables that hooks get from the CLI, beside LC_* and those that they name. The others are in FOLDERS."""
RECORD = ".local/state/fairlead/folders.json"
"""The folders that a user's own `fairlead install` recorded, below their home."""
CLI_VARIABLES = (
    "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ATTENDED", "GEMINI_PROJECT_DIR",
    "QWEN_PROJECT_DIR", "FACTORY_PROJECT_DIR", "COPILOT_PROJECT_DIR", "CURSOR_PROJECT_DIR", "DEVIN_PROJECT_DIR",
)  # fmt: skip
"""Variables in which a CLI names its project's folder, and whether a user sits at it."""


class Failed(Exception):
    """There is no answer, because something of fairlead is broken."""


class StepFailed(Failed):
    """This step has no answer, but nothing is broken that `fairlead doctor` would find."""


class TimedOut(StepFailed):
    """There was no answer in time. The daemon has the step and is still deciding."""


class NoDaemon(Exception):
    """No daemon listens. Nothing was sent, so the client can try again."""


class DaemonEnding(NoDaemon):
    """A daemon listens, but is about to end and takes no new step."""


def main(argv: list[str]) -> str:
    """Return the answer to one event."""
    recorded, path, seconds, host, event = argv[1:6]
    _signal.signal(_signal.SIGALRM, time_out)
    _signal.setitimer(_signal.ITIMER_REAL, max(float(seconds) - SPARE, 0.5))
    body = RequestBody(host, event, float(seconds))
    folders = folders_of(recorded)
    state, python = value(folders, "state"), Interpreter(path, folders)
    folder = managed_folder() or private_folder(value(folders, "run"))
    is_off = '"daemon":false' in recorded + folders and folder != MANAGED  # a user may have written that
    if folder is None or is_off:
        return decide_in_process(python, body)
    mark = f"{state if folder == MANAGED else folder}/hung"
    refuse_hung(folder, mark)
    try:
        return from_daemon(state, folder, python, body)
    except TimedOut as error:
        if hangs(folder, SPARE / 4):
            touch(mark)
            raise Failed("there was no answer in time: the daemon does not answer at all") from None
        if not body.is_sent:
            raise StepFailed(str(error)) from None
        raise


def time_out(*_: object) -> None:
    raise TimedOut("there was no answer in time")


# --- a daemon that hangs ------------------------------------------------------------------------
# The first step that a hung daemon does not answer waits to its deadline, and leaves a mark (a file). While the mark
# exists, every later step first checks the daemon's health. So a mark that is old or forged costs one check, no more.
# A live daemon answers within milliseconds, so most checks are short. The mark's time is that of the last long check.


def refuse_hung(folder: str, mark: str) -> None:
    """Fail at once if the daemon did not answer an earlier step, and still hangs."""
    import time

    try:
        age = time.time() - posix.stat(mark).st_mtime
    except OSError:
        return
    is_glance = 0 <= age < PROBE_AGAIN
    if hangs(folder, GLANCE if is_glance else PROBE):
        if not is_glance:
            touch(mark)
        raise Failed("the daemon gave an earlier step no answer, and still does not answer at all")
    try:
        posix.unlink(mark)
    except OSError:
        return


def hangs(folder: str, seconds: float) -> bool:
    """Whether a daemon listens but does not answer a health check within these seconds."""
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.settimeout(seconds)
    try:
        connection.connect(socket_path(folder))
        connection.send(b"GET /v1/health HTTP/1.1\r\nhost: fairlead\r\nconnection: close\r\n\r\n")
        connection.recv(1)
    except (BlockingIOError, TimeoutError):  # it does not accept the connection, or does not answer
        return True
    except OSError:
        return False
    finally:
        connection.close()
    return False


def touch(mark: str) -> None:
    """Set the mark's time to now."""
    try:
        posix.close(posix.open(mark, posix.O_WRONLY | posix.O_CREAT | posix.O_CLOEXEC, 0o600))
        posix.utime(mark)
    except OSError:
        return  # then the next step waits, too


# --- the request --------------------------------------------------------------------------------


class RequestBody:
    """The request, which can be encoded again with more variables."""

    def __init__(self, host: str, event: str, seconds: float) -> None:
        self.head = f'{{"host":{quoted(host)},"event":{quoted(event)},"deadline":{max(seconds - 2 * SPARE, 0.0)}'
        self.payload = quoted(stdin().decode("utf-8", "replace"))
        self.names: set[str] = set()
        self.is_sent = False  # sent, and not answered yet

    def encode(self, everything: bool = False) -> bytes:
        environ = variables()
        names = {*PASSED, *self.names, *(name for name in environ if everything or name.startswith("LC_"))}
        env = ",".join(f"{quoted(name)}:{or_null(environ.get(name))}" for name in sorted(names))
        cli_env = ",".join(f"{quoted(name)}:{quoted(environ[name])}" for name in CLI_VARIABLES if name in environ)
        cwd = quoted(current_folder())
        return f'{self.head},"cwd":{cwd},"env":{{{env}}},"told":{{{cli_env}}},"payload":{self.payload}}}'.encode()


def or_null(text: "str | None") -> str:
    return "null" if text is None else quoted(text)


def variables() -> dict[str, str]:
    """Return the environment without the variables that are not UTF-8."""
    found: dict[str, str] = {}
    for name, value in posix.environ.items():
        text = name.decode("utf-8", "replace"), value.decode("utf-8", "replace")
        if "\ufffd" not in text[0] + text[1]:
            found[text[0]] = text[1]
    return found


def current_folder() -> str:
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
            raise StepFailed(f"the step is larger than {LIMIT >> 20} MiB")
    return b"".join(parts)


# --- folders ------------------------------------------------------------------------------------


def folders_of(recorded: str) -> str:
    """Return the folders as JSON: the recorded ones, or this user's for a launcher that serves all users."""
    folders = recorded if '"home":' in recorded else folders_of_user(recorded)
    probe = posix.environ.get(b"FAIRLEAD_PROBE", b"").decode("ascii", "replace")
    if len(probe) == 32 and probe.isalnum():  # an unguessable name of a file that `fairlead doctor` wrote
        return read_owned(f"{value(folders, 'state')}/probes/{probe}", PROBE_LIFE) or folders
    return folders


def folders_of_user(machine: str) -> str:
    """Return this user's folders under a launcher for all users: from the user database, never from HOME."""
    import pwd

    user = posix.geteuid()
    try:
        entry = pwd.getpwuid(user)
        name, home, shell = entry.pw_name, entry.pw_dir, entry.pw_shell
    except KeyError:
        name, home, shell = "", f"{value(machine, 'base')}/{user}", ""
        if not value(machine, "base"):
            why = f"user {user} has no entry in the user database, so fairlead knows no home for it"
            raise Failed(f"{why}; have an administrator run `fairlead install --scope managed --home FOLDER`") from None
        make_home(home)
    recorded = read_owned(f"{home}/{RECORD}")
    if recorded:
        return recorded
    env = {"HOME": home, "LOGNAME": name, "PATH": value(machine, "path"), "SHELL": shell, "USER": name}
    kept = ",".join(f"{quoted(name)}:{quoted(text)}" for name, text in env.items() if text)
    state = f"{home}/.local/state/fairlead"
    paths = {"home": home, "config": f"{home}/.config/fairlead", "state": state, "run": f"{state}/run"}
    return "{" + "".join(f'"{name}":{quoted(text)},' for name, text in paths.items()) + f'"env":{{{kept}}}}}'


def make_home(home: str) -> None:
    """Make a home below the folder that `--home` names, and check its owner: any user can make one there."""
    make_folder(home)
    status = posix.lstat(home)
    if status.st_mode & 0o170022 != 0o040000 or status.st_uid != posix.geteuid():
        raise Failed(f"{home} must be a folder of this user's that no other user may write to")


def value(folders: str, name: str) -> str:
    """Return one of the folders, or an empty text."""
    return (strings(folders, f'"{name}":') or [""])[0]


def read_owned(path: str, max_age: float = 0.0) -> str:
    """Return a small file that only this user or root can write. Empty if it is missing, or older than `max_age`."""
    try:
        file = posix.open(path, posix.O_RDONLY | posix.O_NOFOLLOW | posix.O_CLOEXEC | posix.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as error:  # a link, for example. It may name another policy, so it must not be ignored
        raise Failed(f"{path} cannot be read: {error.strerror}") from None
    try:
        status = posix.fstat(file)
        if status.st_uid not in (0, posix.geteuid()) or status.st_mode & 0o170022 != 0o100000:
            raise Failed(f"{path} must be a file of this user's that no other user may write to")
        if max_age and not is_young(status.st_mtime, max_age):
            return ""
        if not (text := posix.read(file, 1 << 16).decode("utf-8", "surrogateescape")):
            raise Failed(f"{path} is empty; run `fairlead install` again")
        return text
    finally:
        posix.close(file)


def is_young(changed: float, max_age: float) -> bool:
    import time

    return abs(time.time() - changed) < max_age


def managed_folder() -> "str | None":
    """Return the folder of a daemon that another user runs for all users of this machine, if there is one."""
    try:
        status = posix.lstat(MANAGED)
    except OSError:
        return None
    is_folder = status.st_mode & 0o170000 == 0o040000
    return MANAGED if is_folder and status.st_uid != posix.geteuid() and not status.st_mode & 0o022 else None


def private_folder(folder: str) -> "str | None":
    """Make the folder if it is missing, and return it. None if no daemon can have its socket there."""
    try:
        make_folder(folder)
        status = posix.lstat(folder)
    except OSError:
        return None
    if status.st_mode & 0o170000 != 0o040000 or status.st_uid != posix.geteuid() or status.st_mode & 0o022:
        raise Failed(f"{folder} must be a folder of this user's that no other user may write to")
    fits = len(socket_path(folder).encode()) <= SOCKET_LIMIT
    return folder if fits and posix.access(folder, posix.W_OK) else None


def socket_path(folder: str) -> str:
    return f"{folder}/v{PROTOCOL}.sock"


def make_folder(folder: str) -> None:
    try:
        posix.mkdir(folder, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_folder(folder.rpartition("/")[0] or "/")
        posix.mkdir(folder, 0o700)


# --- asking the daemon --------------------------------------------------------------------------


def from_daemon(state: str, folder: str, python: "Interpreter", body: RequestBody) -> str:
    """Return the daemon's answer. Start a daemon if none runs."""
    try:
        return ask_until_taken(folder, body)
    except NoDaemon as error:
        if folder == MANAGED:
            raise Failed(f"the machine's daemon does not answer ({error})") from None
    if not start(state, folder, python):
        return decide_in_process(python, body)
    try:
        return ask_until_taken(folder, body)
    except NoDaemon as error:
        raise StepFailed(f"the daemon was started, and is gone ({error})") from None


def ask_until_taken(folder: str, body: RequestBody) -> str:
    """Ask until a daemon takes the step. Raises `NoDaemon` if none listens."""
    while True:
        try:
            return ask(folder, body)
        except DaemonEnding:
            import time

            time.sleep(0.05)


def ask(folder: str, body: RequestBody) -> str:
    """Return the daemon's answer. A step that was sent is never sent again, because hooks may have run."""
    for _ in range(3):
        status, reply = request(folder, "/v1/hook", body.encode(), body)
        body.is_sent = False
        if status == 200 and reply.startswith('{"answer":"'):
            answer, end = scanstring(reply, len('{"answer":"'))
            receipt = strings(reply[end:], ',"acknowledge":')
            return f"ack:{receipt[0]}:{answer}" if receipt else answer
        if status == 428:
            body.names.update(strings(reply, '"variables":['))
            continue
        if status == 503 and '"draining"' in reply:
            raise DaemonEnding("it is about to end")
        message = strings(reply, '"message":')
        why = f"the daemon refused ({status}): {message[0] if message else reply[:200]}"
        raise (StepFailed if STEP_ERRORS.intersection(strings(reply, '"error":')) else Failed)(why)
    raise Failed("the daemon keeps asking for other variables")


def strings(json: str, after: str) -> list[str]:
    """Return the strings that stand in a JSON text directly after `after`, separated by commas."""
    at, found = json.find(after), list[str]()
    if at < 0:
        return found
    at += len(after)
    while json[at : at + 1] == '"':
        text, at = scanstring(json, at + 1)
        found.append(text)
        at += json[at : at + 1] == ","
    return found


def request(folder: str, route: str, content: bytes, body: "RequestBody | None" = None) -> tuple[int, str]:
    if len(content) > LIMIT:  # the daemon would hang up without a reason
        raise StepFailed(f"the step is larger than {LIMIT >> 20} MiB")
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
        raise StepFailed(f"the daemon broke off ({error.strerror}); see {LOG}") from None
    return answer


def check_peer(connection: _socket.socket, folder: str) -> None:
    """Fail unless the owner of the folder listens. Nothing is sent before this check."""
    darwin = sys.platform == "darwin"
    peer = connection.getsockopt(0, 1, 76) if darwin else connection.getsockopt(_socket.SOL_SOCKET, 17, 12)
    uid, owner = int.from_bytes(peer[4:8], sys.byteorder), posix.lstat(folder).st_uid
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
    raise StepFailed(f"the daemon broke off in the middle of its answer; see {LOG}")


# --- starting a daemon --------------------------------------------------------------------------


def start(state: str, folder: str, python: "Interpreter") -> bool:
    """Start a daemon, and return whether one runs now. Of many clients, one starts it and the others wait."""
    import fcntl
    import time

    lock = posix.open(f"{folder}/start.lock", posix.O_RDWR | posix.O_CREAT | posix.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        if is_listening(folder):
            return True
        if time.time() - posix.fstat(lock).st_mtime < RETRY_AFTER and posix.fstat(lock).st_size:
            return False  # another client tried a moment ago
        child = spawn_daemon(state, python)
        until = time.monotonic() + START
        while time.monotonic() < until:
            if is_listening(folder):
                posix.ftruncate(lock, 0)
                return True
            if child and posix.waitpid(child, posix.WNOHANG)[0] == child:
                child = 0
                until = min(until, time.monotonic() + 1.0)  # another daemon may have won the race
            time.sleep(0.01)
        posix.ftruncate(lock, 0)
        posix.write(lock, b"!")
        return False
    finally:
        posix.close(lock)


def is_listening(folder: str) -> bool:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(socket_path(folder))
    except OSError:
        return False
    finally:
        connection.close()
    return True


def spawn_daemon(state: str, python: "Interpreter") -> int:
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


class Interpreter:
    """The Python that has fairlead installed, and the folders that fairlead uses."""

    def __init__(self, path: str, folders: str) -> None:
        self.path, self.folders = path, folders

    def execute(self, module: str) -> None:
        """Replace this process by a module of fairlead. It gets HOME, where its packages may be, and the folders."""
        environ = {"HOME": value(self.folders, "home"), "PYTHONSAFEPATH": "1"}
        posix.execve(self.path, [self.path, "-P", "-X", "utf8", "-m", module, self.folders], environ)


# --- without a daemon ---------------------------------------------------------------------------


def decide_in_process(python: "Interpreter", body: RequestBody) -> str:
    """Load all of fairlead for this one step, where no daemon can run."""
    try:
        return run_once(python, body)
    except TimedOut as error:
        raise StepFailed(str(error)) from None  # the killed process journals nothing


def run_once(python: "Interpreter", body: RequestBody) -> str:
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
            python.execute("fairlead.hosts.clis")
        finally:
            posix._exit(127)
    posix.close(to_child)
    posix.close(to_us)
    try:
        answer = exchange(from_us, from_child, body)
        status = posix.waitpid(child, 0)[1]
    except BaseException:
        posix.kill(child, 9)  # not waited for yet, so the id is still its own
        raise
    code = posix.waitstatus_to_exitcode(status)
    if code or not answer.endswith(":end"):
        why = "its interpreter is gone" if code == 127 else f"it ended with {code}"
        raise Failed(f"fairlead could not be run without a daemon ({why})")
    return answer


def exchange(out: int, back: int, body: RequestBody) -> str:
    """Write the request to a process, and return its output."""
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


# --- after the CLI has its answer ---------------------------------------------------------------


def acknowledge(recorded: str, receipt: str) -> None:
    """Confirm to the daemon that the CLI has its answer, unless the CLI is gone."""
    import select

    _signal.signal(_signal.SIGALRM, time_out)
    _signal.setitimer(_signal.ITIMER_REAL, ACKNOWLEDGE)
    stdout = select.poll()
    stdout.register(1, 0)
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in stdout.poll(0)):
        return
    folder = managed_folder() or private_folder(value(folders_of(recorded), "run"))
    if folder is not None:
        request(folder, "/v1/acknowledge", f'{{"id":{quoted(receipt)}}}'.encode())


# --- after the launcher acted without an answer -------------------------------------------------


def leave_line(recorded: str, control: str, event: str, host: str, why: str) -> None:
    """Leave a line for the journal: what the launcher did, and why it had no answer. The payload is not in it."""
    import fcntl
    import time

    _signal.signal(_signal.SIGALRM, time_out)
    _signal.setitimer(_signal.ITIMER_REAL, ACKNOWLEDGE)
    fields = {"event": event, "host": host, "cwd": current_folder(), "control": control, "why": why[:REASON_LIMIT]}
    texts = ",".join(f'"{name}":{quoted(text)}' for name, text in fields.items())
    # The first newline ends a line that was cut off.
    line = f'\n{{"id":"{posix.urandom(8).hex()}","at":{time.time_ns()},{texts}}}\n'.encode()
    flags = posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND | posix.O_NOFOLLOW | posix.O_NONBLOCK | posix.O_CLOEXEC
    file = posix.open(f"{value(folders_of(recorded), 'state')}/{UNANSWERED}", flags, 0o600)
    if posix.fstat(file).st_mode & 0o170000 == 0o100000:
        fcntl.flock(file, fcntl.LOCK_EX)  # the journal's process may be reading the lines
        if posix.fstat(file).st_size + len(line) <= UNANSWERED_LIMIT:
            posix.write(file, line)


def run() -> None:
    """Run the client. It prints one of the results above, whatever happens."""
    if len(sys.argv) != 6:
        try:
            leave_line(sys.argv[1], *sys.argv[3:]) if len(sys.argv) == 7 else acknowledge(*sys.argv[1:])
        finally:
            posix._exit(0)  # the CLI has its answer in any case
    try:
        result = main(sys.argv)
    except TimedOut as error:
        result = f"late:{error}:end"
    except StepFailed as error:
        result = f"none:{error}:end"
    except Failed as error:
        result = f"fail:{error}:end"
    except BaseException as error:
        result = f"fail:{type(error).__name__} {error}:end"
    rest = memoryview(result.encode("utf-8", "replace"))
    while rest:
        rest = rest[posix.write(1, rest) :]
    posix._exit(0)
