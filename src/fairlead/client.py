"""Asking the daemon: `Client` for programs without a loop, `AsyncClient` for those with one.

    with Client() as client:
        decision = client.dispatch(BeforeTool(tool="bash", args={"command": "ls"}), root="/my/project")

The daemon is started if there is none. If it cannot be asked, the decision follows from `on_failure`, as it would for
a hook that broke: nothing is allowed by accident.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypedDict, TypeVar, Unpack
from urllib.parse import quote, urlencode

import httpcore
import msgspec

from .decision import Decision, Failure
from .errors import FairleadError
from .folders import installed_folders
from .hook import Hook
from .lifecycle import Control, Step, event_named
from .peers import peer_of
from .places import BadPlace, check_private, managed_folder, runtime_folder
from .record import hear
from .runners.surroundings import PASSED
from .threads import threads
from .verdict import Opinion, Verdict
from .wire import envelope

S = TypeVar("S", bound=Step)
T = TypeVar("T")
OnFailure = Literal["closed", "open", "abort"]

PROTOCOL = 1
TIMEOUT = 30.0
"""Seconds that hooks have, if the caller does not say."""
MARGIN = 5.0
"""Seconds by which an answer may come later than a human's."""
CONNECT = 5.0


_BROKEN = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol)


START = object()


class Asked(TypedDict, total=False):
    """What a dispatch also takes."""

    root: str | None
    deadline: float | None
    capabilities: Mapping[str, list[str]] | None


class DaemonError(FairleadError):
    """The daemon could not be asked, or refused. `status` is its answer's, if there was one."""

    def __init__(self, message: str, status: int | None = None, told: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.told = told or {}


def default_socket() -> Path:
    """Where the daemon is asked: at the machine's, if there is one that is not ours; otherwise at the user's."""
    folders = installed_folders()
    return (managed_folder() or (runtime_folder() if folders is None else Path(folders.run))) / f"v{PROTOCOL}.sock"


class _Common:
    """What both clients do alike: everything but waiting."""

    def __init__(
        self,
        socket: str | Path | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        start: bool = True,
        timeout: float = TIMEOUT,
    ) -> None:
        self.socket = Path(socket) if socket is not None else None if url is not None else default_socket()
        self._origin = (url or "http://fairlead").rstrip("/")
        self._token = token if token is not None else os.environ.get("FAIRLEAD_TOKEN")
        self._start = start and socket is None and url is None and self.socket != _managed_socket()
        self._timeout = timeout
        self._named: dict[str | None, list[str]] = {}

    def _check_place(self) -> None:
        """The socket's folder must be ours, or that of somebody who administers this machine."""
        if self.socket is None or self.socket == _managed_socket():
            return
        if not os.path.lexists(self.socket.parent):
            raise DaemonError(f"there is no daemon at {self.socket}; start one with `fairlead serve`")
        try:
            check_private(self.socket.parent)
        except BadPlace as error:
            raise DaemonError(f"the daemon's socket cannot be trusted: {error}") from None

    def _check_peer(self, stream: Any) -> None:
        """Nothing is said before it is known who listens."""
        assert self.socket is not None  # noqa: S101 (a unix socket has a path)
        owner = self.socket.parent.stat().st_uid
        peer = peer_of(stream.get_extra_info("socket"))
        if peer.uid != owner:
            raise DaemonError(f"{self.socket} is listened on by user {peer.uid}, and not by {owner}")

    def _asked(self, step: Step, root: str | None, also: Mapping[str, Any]) -> dict[str, Any]:
        names = (*PASSED, *self._named.get(root, ()), *(name for name in os.environ if name.startswith("LC_")))
        asked: dict[str, Any] = {"step": envelope(step), "env": {name: os.environ.get(name) for name in names}}
        return asked | {name: value for name, value in also.items() if value is not None}

    def _request(self, method: str, path: str, body: Any, timeout: float | None) -> dict[str, Any]:
        headers = {"content-type": "application/json", "fairlead-acknowledges": "1"}
        if self._token is not None and self.socket is None:
            headers["authorization"] = f"Bearer {self._token}"
        wait = self._timeout if timeout is None else timeout
        limits = {"connect": CONNECT, "write": CONNECT, "pool": wait, "read": wait}
        try:
            content = None if body is None else msgspec.json.encode(body, enc_hook=str)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise DaemonError(f"this cannot be said in JSON: {error}") from None
        return {
            "method": method,
            "url": self._origin + path,
            "headers": headers,
            "content": content,
            "extensions": {"timeout": limits},
        }

    def _learn(self, root: str | None, error: DaemonError) -> bool:
        """Whether the daemon has said which variables it needs, so that asking again will do."""
        names = error.told.get("variables")
        if error.status != 428 or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return False
        self._named[root] = names
        return True

    def _may_start(self, error: DaemonError, attempt: int) -> bool:
        """A daemon that is about to end, or was never there, is replaced; nothing else is tried again."""
        missing = self.socket is not None and not self.socket.parent.exists()
        return self._start and not attempt and (missing or error.told.get("error") == "draining")

    def _read(self, status: int, content: bytes) -> dict[str, Any]:
        try:
            told = msgspec.json.decode(content, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise DaemonError(f"the daemon's answer (status {status}) is no JSON", status) from None
        if status != 200:
            raise DaemonError(str(told.get("message") or told.get("error")), status, told)
        return told

    # --- what is asked, step by step ----------------------------------------------------------

    def _dispatching(self, step: S, on_failure: OnFailure, asked: dict[str, Any]) -> Generator[Any, Any, Decision[S]]:
        """A dispatch: ask, and ask again with the variables that are needed. Whatever goes wrong is a failure."""
        root, deadline = asked.get("root"), asked.get("deadline")
        wait = None if deadline is None else self._timeout + deadline + MARGIN
        try:
            for _ in range(3):
                try:
                    told = yield from self._requesting("POST", "/v1/dispatch", self._asked(step, root, asked), wait)
                    break
                except DaemonError as error:
                    if not self._learn(root, error):
                        raise
            else:
                raise DaemonError("the daemon keeps asking for other variables")
            decision = hear(told)
            if "acknowledge" in told:  # or another call has the approval by now
                yield from self._requesting("POST", "/v1/acknowledge", {"id": told["acknowledge"]}, CONNECT)
            return decision
        except FairleadError as error:
            return failed(step, error, on_failure)

    def _requesting(
        self, method: str, path: str, body: Any = None, timeout: float | None = None
    ) -> Generator[Any, Any, dict[str, Any]]:
        """A request: yields what is to be sent, or `START` where a daemon must be started first."""
        for attempt in range(2):
            try:
                self._check_place()
                response = yield self._request(method, path, body, timeout)
                return self._read(response.status, response.content)
            except (BadPlace, DaemonError) as error:
                if not (isinstance(error, DaemonError) and self._may_start(error, attempt)):
                    raise
            except (httpcore.ConnectError, OSError) as error:  # nothing was said yet, so it can be said again
                if attempt or not self._start:
                    raise _unreachable(self.socket or self._origin, error) from None
            except _BROKEN as error:
                raise _unreachable(self.socket or self._origin, error) from None
            yield START
        raise DaemonError("the daemon could not be asked")


def _managed_socket() -> Path | None:
    folder = managed_folder()
    return None if folder is None else folder / f"v{PROTOCOL}.sock"


class _Backend(httpcore.SyncBackend):
    def __init__(self, client: _Common) -> None:
        self._client = client

    def connect_unix_socket(self, *args: Any, **options: Any) -> Any:
        stream = super().connect_unix_socket(*args, **options)
        try:
            self._client._check_peer(stream)
        except BaseException:
            stream.close()
            raise
        return stream


class _AsyncBackend(httpcore.AnyIOBackend):
    def __init__(self, client: _Common) -> None:
        self._client = client

    async def connect_unix_socket(self, *args: Any, **options: Any) -> Any:
        stream = await super().connect_unix_socket(*args, **options)
        try:
            self._client._check_peer(stream)
        except BaseException:
            await stream.aclose()
            raise
        return stream


class Client(_Common):
    """Asks the daemon, and waits for the answer. Threads may share one."""

    def __init__(self, socket: str | Path | None = None, **options: Any) -> None:
        super().__init__(socket, **options)
        uds = None if self.socket is None else str(self.socket)
        self._pool = httpcore.ConnectionPool(uds=uds, network_backend=_Backend(self), max_connections=100)

    def dispatch(self, step: S, *, on_failure: OnFailure = "closed", **asked: Unpack[Asked]) -> Decision[S]:
        """The decision on a step, from the configuration of `root`: the step's cwd, if it is not given."""
        return self._drive(self._dispatching(step, on_failure, dict(asked)))

    def request(self, method: str, path: str, body: Any = None, timeout: float | None = None) -> dict[str, Any]:
        """One request. Raises `DaemonError` unless it was answered as it should be."""
        return self._drive(self._requesting(method, path, body, timeout))

    def _drive(self, flow: Generator[Any, Any, T]) -> T:
        try:
            wanted = next(flow)
            while True:
                try:
                    got: Any = None
                    if wanted is START:
                        start_daemon()
                    else:
                        got = self._pool.request(**wanted)
                except Exception as error:
                    wanted = flow.throw(error)
                else:
                    wanted = flow.send(got)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    # --- the rest of the API ----------------------------------------------------------------

    def health(self) -> dict[str, Any]:
        return self.request("GET", "/v1/health", timeout=CONNECT)

    def stop(self) -> dict[str, Any]:
        return self.request("POST", "/v1/stop")

    def reload(self) -> dict[str, Any]:
        return self.request("POST", "/v1/reload")

    def approvals(self, *, every: bool = False) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.request("GET", f"/v1/approvals{'?all=1' if every else ''}")["approvals"]
        return found

    def answer(self, name: str, approve: bool, **about: Any) -> dict[str, Any]:
        """Answer a question: `who=`, `why=`, and for how many seconds an approval is `valid_for=`."""
        return self.request("POST", f"/v1/approvals/{quote(name, safe='')}", {"approve": approve, **about})

    def decisions(self, **filters: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.request("GET", f"/v1/decisions?{urlencode(filters)}")["decisions"]
        return found

    def close(self) -> None:
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncClient(_Common):
    """`Client`, for programs with a loop."""

    def __init__(self, socket: str | Path | None = None, **options: Any) -> None:
        super().__init__(socket, **options)
        uds = None if self.socket is None else str(self.socket)
        self._pool = httpcore.AsyncConnectionPool(uds=uds, network_backend=_AsyncBackend(self), max_connections=100)

    async def dispatch(self, step: S, *, on_failure: OnFailure = "closed", **asked: Unpack[Asked]) -> Decision[S]:
        """The decision on a step, from the configuration of `root`: the step's cwd, if it is not given."""
        return await self._drive(self._dispatching(step, on_failure, dict(asked)))

    async def request(self, method: str, path: str, body: Any = None, timeout: float | None = None) -> dict[str, Any]:
        """One request. Raises `DaemonError` unless it was answered as it should be."""
        return await self._drive(self._requesting(method, path, body, timeout))

    async def _drive(self, flow: Generator[Any, Any, T]) -> T:
        try:
            wanted = next(flow)
            while True:
                try:
                    got: Any = None
                    if wanted is START:
                        await threads.run(start_daemon)
                    else:
                        got = await self._pool.request(**wanted)
                except Exception as error:
                    wanted = flow.throw(error)
                else:
                    wanted = flow.send(got)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def health(self) -> dict[str, Any]:
        return await self.request("GET", "/v1/health", timeout=CONNECT)

    async def aclose(self) -> None:
        await self._pool.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def start_daemon() -> None:
    """Start the user's daemon in the background. Raises `DaemonError` if it does not come up."""
    from .server.daemon import start

    try:
        start()
    except (FairleadError, OSError) as error:
        raise DaemonError(f"the daemon cannot be started: {error}") from None


def _unreachable(where: Any, error: Exception) -> DaemonError:
    said = str(error) or type(error).__name__
    return DaemonError(f"the daemon at {where} cannot be asked ({said}); start one with `fairlead serve`")


def failed(step: S, error: Exception, policy: OnFailure) -> Decision[S]:
    """The decision where none was made: what a hook's failure would come to."""
    event = event_named(step.event)
    control: Control | None = "abort" if policy == "abort" else None
    if policy == "closed" and event.veto in ("abort", "deny", "stop"):
        control = event.veto
    from .redaction import redact_text  # only a failure should pay for it

    failure = Failure("fairlead.daemon", step.event, "error", redact_text(str(error)), policy, control)
    if control is None:
        return Decision(step, step, "proceed", (failure,))
    asked = Hook(_ask_the_daemon, step.event, name="fairlead.daemon")
    return Decision(step, step, control, (failure, Opinion(asked, Verdict(control, str(failure)), "failure")))


def _ask_the_daemon(_: Any) -> None:
    """Stands for the daemon where it could not be asked."""
