"""Clients of the daemon: `Client` for sync programs, `AsyncClient` for programs with an event loop.

    with Client() as client:
        decision = client.dispatch(BeforeTool(tool="bash", args={"command": "ls"}), root="/my/project")

The client starts the daemon if there is none. If the daemon does not answer, the decision follows from `on_failure`, as
for a hook that failed: nothing is allowed by accident.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Self, TypedDict, TypeVar, Unpack
from urllib.parse import quote, urlencode

import httpcore
import msgspec

from .decision import Decision, Failure
from .engine.threads import threads
from .errors import FairleadError
from .folders import installed_folders
from .hook import Hook
from .lifecycle import FailurePolicy, Step, event_named
from .paths import BadPath, check_private, managed_folder, runtime_folder
from .peers import peer_of
from .runners.environment import PASSED
from .verdict import HookVerdict, Verdict
from .wire.decisions import decode_decision
from .wire.steps import envelope

S = TypeVar("S", bound=Step)
T = TypeVar("T")

PROTOCOL = 1
TIMEOUT = 30.0
"""Seconds to wait for an answer, unless the caller sets another time."""
MARGIN = 5.0
"""Seconds that the client waits beyond the deadline for a human's answer."""
CONNECT = 5.0


_BROKEN = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol)


START = object()


class DispatchOptions(TypedDict, total=False):
    """The optional arguments of `dispatch`, which go to the daemon."""

    root: str | None
    deadline: float | None
    capabilities: Mapping[str, list[str]] | None


class DaemonError(FairleadError):
    """The daemon did not answer, or refused. `status` and `body` are those of its answer, if there was one."""

    def __init__(self, message: str, status: int | None = None, body: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = body or {}


def default_socket() -> Path:
    """The socket of the machine's daemon if an administrator set one up; otherwise the user's."""
    folders = installed_folders()
    return (managed_folder() or (runtime_folder() if folders is None else Path(folders.run))) / f"v{PROTOCOL}.sock"


class _Common:
    """What both clients share: everything but waiting."""

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
        self._variables: dict[str | None, list[str]] = {}

    def _check_place(self) -> None:
        """Raise unless the socket's folder belongs to this user or to an administrator of the machine."""
        if self.socket is None or self.socket == _managed_socket():
            return
        if not os.path.lexists(self.socket.parent):
            raise DaemonError(f"there is no daemon at {self.socket}; start one with `fairlead serve`")
        try:
            check_private(self.socket.parent)
        except BadPath as error:
            raise DaemonError(f"the daemon's socket cannot be trusted: {error}") from None

    def _check_peer(self, stream: Any) -> None:
        """Raise unless the owner of the socket's folder listens on it. Nothing is sent before that."""
        assert self.socket is not None  # noqa: S101 (a unix socket has a path)
        owner = self.socket.parent.stat().st_uid
        peer = peer_of(stream.get_extra_info("socket"))
        if peer.uid != owner:
            raise DaemonError(f"{self.socket} is listened on by user {peer.uid}, and not by {owner}")

    def _dispatch_body(self, step: Step, root: str | None, options: Mapping[str, Any]) -> dict[str, Any]:
        names = (*PASSED, *self._variables.get(root, ()), *(name for name in os.environ if name.startswith("LC_")))
        body: dict[str, Any] = {"step": envelope(step), "env": {name: os.environ.get(name) for name in names}}
        return body | {name: value for name, value in options.items() if value is not None}

    def _request(self, method: str, path: str, body: Any, timeout: float | None) -> dict[str, Any]:
        headers = {"content-type": "application/json", "fairlead-acknowledges": "1"}
        if self._token is not None and self.socket is None:
            headers["authorization"] = f"Bearer {self._token}"
        wait = self._timeout if timeout is None else timeout
        limits = {"connect": CONNECT, "write": CONNECT, "pool": wait, "read": wait}
        try:
            content = None if body is None else msgspec.json.encode(body, enc_hook=str)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise DaemonError(f"this cannot be encoded as JSON: {error}") from None
        return {
            "method": method,
            "url": self._origin + path,
            "headers": headers,
            "content": content,
            "extensions": {"timeout": limits},
        }

    def _learn_variables(self, root: str | None, error: DaemonError) -> bool:
        """Keep the variables that the daemon says it needs. True if the request can be sent again with them."""
        names = error.body.get("variables")
        if error.status != 428 or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return False
        self._variables[root] = names
        return True

    def _may_start(self, error: DaemonError, attempt: int) -> bool:
        """Whether to start a daemon and try again: there is none, or it is about to end."""
        missing = self.socket is not None and not self.socket.parent.exists()
        return self._start and not attempt and (missing or error.body.get("error") == "draining")

    def _read(self, status: int, content: bytes) -> dict[str, Any]:
        try:
            body = msgspec.json.decode(content, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            raise DaemonError(f"the daemon's answer (status {status}) is no JSON", status) from None
        if status != 200:
            raise DaemonError(str(body.get("message") or body.get("error")), status, body)
        return body

    # --- requests, as generators that yield what to send --------------------------------------

    def _dispatching(
        self, step: S, on_failure: FailurePolicy, options: dict[str, Any]
    ) -> Generator[Any, Any, Decision[S]]:
        """Dispatch a step, again with the variables that the daemon asks for. Any error is a failure decision."""
        root, deadline = options.get("root"), options.get("deadline")
        wait = None if deadline is None else self._timeout + deadline + MARGIN
        try:
            for _ in range(3):
                try:
                    answer = yield from self._requesting(
                        "POST", "/v1/dispatch", self._dispatch_body(step, root, options), wait
                    )
                    break
                except DaemonError as error:
                    if not self._learn_variables(root, error):
                        raise
            else:
                raise DaemonError("the daemon keeps asking for other variables")
            decision = decode_decision(answer)
            if "acknowledge" in answer:  # otherwise another call may use the approval
                yield from self._requesting("POST", "/v1/acknowledge", {"id": answer["acknowledge"]}, CONNECT)
            return decision
        except FairleadError as error:
            return failed(step, error, on_failure)

    def _requesting(
        self, method: str, path: str, body: Any = None, timeout: float | None = None
    ) -> Generator[Any, Any, dict[str, Any]]:
        """Make one request: yields what to send, or `START` where a daemon must be started first."""
        for attempt in range(2):
            try:
                self._check_place()
                response = yield self._request(method, path, body, timeout)
                return self._read(response.status, response.content)
            except (BadPath, DaemonError) as error:
                if not (isinstance(error, DaemonError) and self._may_start(error, attempt)):
                    raise
            except (httpcore.ConnectError, OSError) as error:  # nothing was sent yet, so it can be sent again
                if attempt or not self._start:
                    raise _unreachable(self.socket or self._origin, error) from None
            except _BROKEN as error:
                raise _unreachable(self.socket or self._origin, error) from None
            yield START
        raise DaemonError("the daemon did not answer")


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
    """A client that blocks until the daemon answers. Threads may share one."""

    def __init__(self, socket: str | Path | None = None, **options: Any) -> None:
        super().__init__(socket, **options)
        uds = None if self.socket is None else str(self.socket)
        self._pool = httpcore.ConnectionPool(uds=uds, network_backend=_Backend(self), max_connections=100)

    def dispatch(
        self, step: S, *, on_failure: FailurePolicy = "closed", **options: Unpack[DispatchOptions]
    ) -> Decision[S]:
        """The decision on a step, from the configuration of `root`: the step's cwd, if you leave it out."""
        return self._run(self._dispatching(step, on_failure, dict(options)))

    def request(self, method: str, path: str, body: Any = None, timeout: float | None = None) -> dict[str, Any]:
        """One request. Raises `DaemonError` unless it was answered as it should be."""
        return self._run(self._requesting(method, path, body, timeout))

    def _run(self, flow: Generator[Any, Any, T]) -> T:
        try:
            command = next(flow)
            while True:
                try:
                    result: Any = None
                    if command is START:
                        start_daemon()
                    else:
                        result = self._pool.request(**command)
                except Exception as error:
                    command = flow.throw(error)
                else:
                    command = flow.send(result)
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
        """Answer a question: `who=`, `why=`, and for how many seconds an approval is `valid_for=`.

        `shown=` is the digest of what you saw. `grant={"scope": "session", "lasts": 3600}` answers later calls, too.
        """
        return self.request("POST", f"/v1/approvals/{quote(name, safe='')}", {"approve": approve, **about})

    def question(self, name: str) -> dict[str, Any]:
        """One question, with all that it shows."""
        return self.request("GET", f"/v1/approvals/{quote(name, safe='')}")

    def grants(self, *, every: bool = False) -> list[dict[str, Any]]:
        """The grants in force, or all that are kept."""
        found: list[dict[str, Any]] = self.request("GET", f"/v1/grants{'?all=1' if every else ''}")["grants"]
        return found

    def revoke(self, name: str) -> dict[str, Any]:
        """End a grant at once."""
        return self.request("DELETE", f"/v1/grants/{quote(name, safe='')}")

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
    """`Client` for programs with an event loop."""

    def __init__(self, socket: str | Path | None = None, **options: Any) -> None:
        super().__init__(socket, **options)
        uds = None if self.socket is None else str(self.socket)
        self._pool = httpcore.AsyncConnectionPool(uds=uds, network_backend=_AsyncBackend(self), max_connections=100)

    async def dispatch(
        self, step: S, *, on_failure: FailurePolicy = "closed", **options: Unpack[DispatchOptions]
    ) -> Decision[S]:
        """The decision on a step, from the configuration of `root`: the step's cwd, if you leave it out."""
        return await self._run(self._dispatching(step, on_failure, dict(options)))

    async def request(self, method: str, path: str, body: Any = None, timeout: float | None = None) -> dict[str, Any]:
        """One request. Raises `DaemonError` unless it was answered as it should be."""
        return await self._run(self._requesting(method, path, body, timeout))

    async def _run(self, flow: Generator[Any, Any, T]) -> T:
        try:
            command = next(flow)
            while True:
                try:
                    result: Any = None
                    if command is START:
                        await threads.run(start_daemon)
                    else:
                        result = await self._pool.request(**command)
                except Exception as error:
                    command = flow.throw(error)
                else:
                    command = flow.send(result)
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
    problem = str(error) or type(error).__name__
    return DaemonError(f"the daemon at {where} cannot be asked ({problem}); start one with `fairlead serve`")


def failed(step: S, error: Exception, policy: FailurePolicy) -> Decision[S]:
    """The decision without an answer of the daemon: that of a hook that failed."""
    control = event_named(step.event).control_on_failure(policy)
    from .redaction.redactor import redact_text  # only a failure should pay for it

    failure = Failure("fairlead.daemon", step.event, "error", redact_text(str(error)), policy, control)
    if control is None:
        return Decision(step, step, "proceed", (failure,))
    hook = Hook(_stand_in, step.event, name="fairlead.daemon")
    return Decision(step, step, control, (failure, HookVerdict(hook, Verdict(control, str(failure)), "failure")))


def _stand_in(_: Any) -> None:
    """Stand for the daemon in a decision that it did not make."""
