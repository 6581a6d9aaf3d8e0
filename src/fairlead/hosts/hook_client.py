"""Hands one step of an agent CLI to the daemon, and brings back the answer.

This is one file for the standard library alone. `fairlead install` copies it out of any virtual environment, and the
launcher beside it runs it as `python -I -S` for every single step, so it imports next to nothing: no json, no socket.

    STATE PYTHON SECONDS HOST EVENT

It prints `0:TEXT:end` (exit 0 with this on stdout), `2:TEXT:end` (exit 2 with this on stderr) or `fail:REASON:end`,
and always ends with 0. Anything else means that it broke, and the launcher goes by `fallback.json`.

If a human's approval was used for the answer, it prints `ack:RECEIPT:` before it. The launcher gives the CLI the
answer, and runs this a second time, to tell the daemon that the CLI has it:

    STATE RECEIPT
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
ACKNOWLEDGE = 1.0
"""Seconds in which an answer is acknowledged. The CLI waits for that, too."""
PASSED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
TOLD = (
    "CLAUDE_PROJECT_DIR", "CLAUDE_CODE_ENTRYPOINT", "GEMINI_PROJECT_DIR", "QWEN_PROJECT_DIR",
    "FACTORY_PROJECT_DIR", "COPILOT_PROJECT_DIR", "COPILOT_CLI", "CURSOR_PROJECT_DIR",
)  # fmt: skip
"""Variables by which a CLI says where it works, and whether anybody sits before it."""


class Failed(Exception):
    """There is no answer, and this is why."""


class NoDaemon(Exception):
    """Nobody listens. Nothing was said, so it can be said again."""


class Ending(NoDaemon):
    """Somebody listens, and takes nothing new: soon there is nobody, or somebody else."""


def main(argv: list[str]) -> str:
    state, python, seconds, host, event = argv[1:6]
    _signal.signal(_signal.SIGALRM, late)
    _signal.setitimer(_signal.ITIMER_REAL, max(float(seconds) - SPARE, 0.5))
    body = Body(host, event, float(seconds))
    folder = managed() or private(runtime(state))
    environ = variables()
    if folder is None or environ.get("FAIRLEAD_DAEMON", "").lower() in ("off", "0", "no", "false"):
        return in_process(python, body)
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
        raise Failed(f"the daemon was started, and is gone ({none})") from None


def late(*_: object) -> None:
    raise Failed("there was no answer in time")


# --- what is asked ------------------------------------------------------------------------------


class Body:
    """The request, and what it takes to say it again with more variables."""

    def __init__(self, host: str, event: str, seconds: float) -> None:
        self.head = f'{{"host":{quoted(host)},"event":{quoted(event)},"deadline":{max(seconds - 2 * SPARE, 0.0)}'
        self.payload = quoted(stdin().decode("utf-8", "replace"))
        self.names: set[str] = set()

    def encode(self) -> bytes:
        environ = variables()
        names = {*PASSED, *self.names, *(name for name in environ if name.startswith("LC_"))}
        env = ",".join(f"{quoted(name)}:{value_of(environ.get(name))}" for name in sorted(names))
        told = ",".join(f"{quoted(name)}:{quoted(environ[name])}" for name in TOLD if name in environ)
        cwd = quoted(folder_here())
        return f'{self.head},"cwd":{cwd},"env":{{{env}}},"told":{{{told}}},"payload":{self.payload}}}'.encode()


def value_of(value: "str | None") -> str:
    return "null" if value is None else quoted(value)


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
        return posix.getcwd().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except OSError:
        return "/"


def stdin() -> bytes:
    parts, size = [], 0
    while part := posix.read(0, 1 << 16):
        parts.append(part)
        size += len(part)
        if size > LIMIT:
            raise Failed(f"the step is larger than {LIMIT >> 20} MiB")
    return b"".join(parts)


# --- where the daemon is ------------------------------------------------------------------------


def managed() -> "str | None":
    """The folder of a daemon that another user runs for everybody here, if there is one."""
    try:
        status = posix.lstat(MANAGED)
    except OSError:
        return None
    is_folder = status.st_mode & 0o170000 == 0o040000
    return MANAGED if is_folder and status.st_uid != posix.geteuid() and not status.st_mode & 0o022 else None


def runtime(state: str) -> str:
    base = variables().get("XDG_RUNTIME_DIR", "")
    if base.startswith("/") and not variables().get("FAIRLEAD_STATE_DIR"):
        return base + "/fairlead"
    return state + "/run"


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
        status, told = request(folder, "/v1/hook", body.encode())
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
        raise Failed(f"the daemon refused ({status}): {message[0] if message else told[:200]}")
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


def request(folder: str, route: str, content: bytes) -> tuple[int, str]:
    if len(content) > LIMIT:  # in which case the daemon would hang up before it could say so
        raise Failed(f"the step is larger than {LIMIT >> 20} MiB")
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
        answer = receive(connection)
    except OSError as error:
        raise Failed(f"the daemon broke off ({error.strerror})") from None
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
    raise Failed("the daemon broke off in the middle of its answer")


# --- starting one -------------------------------------------------------------------------------


def start(state: str, folder: str, python: str) -> bool:
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


def spawn_daemon(state: str, python: str) -> int:
    environ = {
        name: value
        for name, value in variables().items()
        if name in PASSED or (name.startswith(("FAIRLEAD_", "XDG_", "LC_")) and name != "FAIRLEAD_TOKEN")
    }
    environ["PYTHONSAFEPATH"] = "1"
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
        posix.execve(python, [python, "-P", "-m", "fairlead.server"], environ)
    finally:
        posix._exit(127)


# --- without a daemon ---------------------------------------------------------------------------


def in_process(python: str, body: Body) -> str:
    """Where no daemon can be: the whole of fairlead, for this one step."""
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
            # What a project wants of its own Python is not what fairlead is run with.
            environ = {name: value for name, value in posix.environ.items() if not name.startswith(b"PYTHON")}
            posix.execve(python, [python, "-P", "-m", "fairlead.hosts"], environ)
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
    content = memoryview(body.encode())
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


def acknowledge(state: str, receipt: str) -> None:
    """Tell the daemon that the CLI has its answer. If the CLI is gone, it has not."""
    import select

    _signal.signal(_signal.SIGALRM, late)
    _signal.setitimer(_signal.ITIMER_REAL, ACKNOWLEDGE)
    stdout = select.poll()
    stdout.register(1, 0)
    if any(event & (select.POLLERR | select.POLLHUP) for _, event in stdout.poll(0)):
        return
    folder = managed() or private(runtime(state))
    if folder is not None:
        request(folder, "/v1/acknowledge", f'{{"id":{quoted(receipt)}}}'.encode())


def run() -> None:
    """Be the client, whatever happens."""
    if len(sys.argv) == 3:
        try:
            acknowledge(*sys.argv[1:])
        finally:
            posix._exit(0)  # the CLI has its answer, whatever became of this
    try:
        said = main(sys.argv)
    except Failed as failed:
        said = f"fail:{failed}:end"
    except BaseException as error:
        said = f"fail:{type(error).__name__} {error}:end"
    rest = memoryview(said.encode("utf-8", "replace"))
    while rest:
        rest = rest[posix.write(1, rest) :]
    posix._exit(0)
