"""The daemon over HTTP: its routes, which callers may use them, and limits on each request."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as ASGIScope

from ..agent_process import agent_around
from ..config.document import ConfigError
from ..errors import FairleadError
from ..hosts.clis.handler import BadPayload
from ..hosts.clis.mapping import HookRequest
from ..journal import JournalError
from ..journal.errors import NoJournal, NoRecord
from ..journal.reading import Filter, Reader
from ..peers import user_name
from ..redaction.logs import logger
from ..redaction.redactor import redact, redact_text
from ..runners.environment import PASSED, steers
from .approvals import (
    VALID_FOR,
    AcknowledgedTooLate,
    AlreadyAnswered,
    NoSuchQuestion,
    NoSuchReceipt,
    NotWhatWasShown,
)
from .grants import GrantRequest, NoSuchGrant
from .limits import BODY, LARGE, Overloaded, TooLarge, check_json, check_variables
from .openapi import document
from .projects import NeedsVariables
from .service import CallerGone, Connection, DispatchRequest, Draining, Service
from .tokens import EVERYTHING, Tokens, TokenScope

HOSTS = frozenset({"fairlead", "localhost", "127.0.0.1", "[::1]"})
ACKNOWLEDGES = b"fairlead-acknowledges"
"""The header of a caller that acknowledges answers that have a receipt."""
SHORT_BODY = 1 << 20
"""Bytes of the answer to a question, and of an acknowledgement."""
ANSWER = 16 << 20
"""Bytes of decisions in one answer."""
MAX_MESSAGE = 2000
"""Characters of an error message."""
HUNG_UP = "fairlead.hung_up"
"""The key in a request's state of a function that says whether the caller has hung up."""
UNIX = "unix"
"""The prefix of a caller's address on the unix socket: its user follows, and the port is its process."""

Endpoint = Callable[[Request], Awaitable[Any]]
_encode = msgspec.json.Encoder(enc_hook=str).encode
_decode_dispatch = msgspec.json.Decoder(DispatchRequest).decode
_decode_hook = msgspec.json.Decoder(HookRequest).decode
_HEADERS = ((b"content-type", b"application/json"), (b"cache-control", b"no-store"))
_CLOSE = (b"connection", b"close")  # because the rest of the body is not read
_MORE = {411: (_CLOSE,), 413: (_CLOSE,), 503: ((b"retry-after", b"1"),)}
CALLER = "fairlead.caller"
"""The key of the caller in a request's scope: empty for the daemon's own user, else the user or the token."""
HEADERS = "fairlead.headers"
"""The key of the request's headers, as a dict, in its scope."""
T = TypeVar("T")
B = TypeVar("B", DispatchRequest, HookRequest)


class RequestRefused(FairleadError):
    """A request that the daemon refuses, with the HTTP status and the error for its caller."""

    def __init__(self, status: int, error: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.answer = {"error": error, "message": message[:MAX_MESSAGE], **more}


class Acknowledgement(msgspec.Struct, forbid_unknown_fields=True):
    """The body of an acknowledgement: the id of the receipt that came with the answer."""

    id: str


class ApprovalAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """The body of an answer to a question."""

    approve: bool
    why: str | None = None
    who: str | None = None
    valid_for: float = VALID_FOR
    shown: str | None = None
    """The digest of the question as it was shown. The daemon refuses an answer to anything else."""
    grant: GrantRequest | None = None
    """Let the same call run later, too."""


def make_app(service: Service, tokens: Tokens, stop: Callable[[], None], users: frozenset[int]) -> ASGIApp:
    """The ASGI application.

    `users` may do everything on the unix socket; other users may only dispatch.
    """
    api = _Api(service, stop)
    guard = _AccessCheck(tokens, users)
    dispatch = guard("dispatch", api.dispatch)
    hook = guard("dispatch", api.hook)
    show, forget = guard("read", api.session), guard("admin", api.forget)

    async def one_session(request: Request) -> Response:
        return await (forget if request.method == "DELETE" else show)(request)

    ask, answer = guard("read", api.question), guard("approve", api.answer)

    async def one_question(request: Request) -> Response:
        return await (answer if request.method == "POST" else ask)(request)

    routes = [
        Route("/v1/dispatch", dispatch, methods=["POST"]),
        Route("/v1/hook", hook, methods=["POST"]),
        Route("/v1/acknowledge", guard("dispatch", api.acknowledge), methods=["POST"]),
        Route("/v1/sessions", guard("read", api.sessions), methods=["GET"]),
        Route("/v1/sessions/{session_id:path}", one_session, methods=["GET", "DELETE"]),
        Route("/v1/approvals", guard("read", api.approvals), methods=["GET"]),
        Route("/v1/approvals/{id}", one_question, methods=["GET", "POST"]),
        Route("/v1/grants", guard("read", api.grants), methods=["GET"]),
        Route("/v1/grants/{id}", guard("approve", api.revoke), methods=["DELETE"]),
        Route("/v1/decisions", guard("read", api.decisions), methods=["GET"]),
        Route("/v1/decisions/{id}", guard("read", api.decision), methods=["GET"]),
        Route("/v1/reload", guard("admin", api.reload), methods=["POST"]),
        Route("/v1/stop", guard("admin", api.stop), methods=["POST"]),
        Route("/v1/health", guard(None, api.health), methods=["GET"]),
        Route("/v1/openapi.json", guard(None, api.openapi), methods=["GET"]),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_error, Exception: _broken})
    app.router.redirect_slashes = False  # a redirect would be sent before the caller is checked

    hot_routes = {"/v1/dispatch": dispatch, "/v1/hook": hook}

    async def front(scope: ASGIScope, receive: Receive, send: Send) -> None:
        """Serve the routes that agents wait for without Starlette's router and middleware."""
        endpoint = hot_routes.get(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if endpoint is None:
            await app(scope, receive, send)
            return
        try:
            response = await endpoint(Request(scope, receive))
        except Exception as error:
            response = await _broken(Request(scope), error)
        await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
        await send({"type": "http.response.body", "body": response.body})
        service.prepare_records(len(response.body))

    return front


class _AccessCheck:
    """Checks the caller and the origin of a request before its endpoint runs."""

    def __init__(self, tokens: Tokens, users: frozenset[int]) -> None:
        self._tokens = tokens
        self._users = users

    def __call__(self, scope: TokenScope | None, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            try:
                self._check(request, scope)
                return _JsonResponse(200, await endpoint(request))
            except RequestRefused as refused:
                return _JsonResponse(refused.status, refused.answer)
            except FairleadError as error:
                return _JsonResponse(*_error_answer(error))

        return guarded

    def _check(self, request: Request, scope: TokenScope | None) -> None:
        headers = request.scope[HEADERS] = dict(request.scope["headers"])
        host = headers.get(b"host", b"").decode("latin-1")
        if host not in HOSTS and host.rpartition(":")[0] not in HOSTS:
            raise RequestRefused(421, "wrong_host", f"no such host here: {redact_text(host[:100])!r}")
        if b"origin" in headers or b"sec-fetch-site" in headers:
            raise RequestRefused(403, "from_a_browser", "web pages may not use the daemon")
        if scope is None:
            return
        uid = caller_of(request)
        scopes, caller = self._identify(uid, headers.get(b"authorization", b"").decode("latin-1"))
        if scope in scopes:
            request.scope[CALLER] = caller
            return
        if uid is not None:
            raise RequestRefused(403, "wrong_user", f"this user may not {scope} here")
        if b"authorization" not in headers:
            raise RequestRefused(401, "no_token", "send Authorization: Bearer TOKEN; see `fairlead tokens`")
        raise RequestRefused(403, "wrong_scope", f"this token is unknown, or may not {scope}")

    def _identify(self, uid: int | None, authorization: str) -> tuple[frozenset[TokenScope], str]:
        """What a caller may do, and its name. Each user and each token is a caller.

        A name followed by a path is unique: no other caller's name and path give the same text.
        """
        if uid is not None:
            return (EVERYTHING, "") if uid in self._users else (frozenset[TokenScope]({"dispatch"}), f"user {uid}: ")
        kind, _, text = authorization.partition(" ")
        token = self._tokens.find(text.strip()) if kind.lower() == "bearer" else None
        return (frozenset(), "") if token is None else (token.scopes, f"token {token.name!r}: ")


def caller_of(request: Request) -> int | None:
    """The user at the other end of the unix socket; None over TCP."""
    client = request.scope["client"]
    return int(client[0][len(UNIX) :]) if client is not None and client[0].startswith(UNIX) else None


class _Api:
    """The endpoints. Each returns the answer, which is sent as JSON."""

    def __init__(self, service: Service, stop: Callable[[], None]) -> None:
        self._service = service
        self._stop = stop

    async def dispatch(self, request: Request) -> Any:
        return await self._serve(request, _decode_dispatch, self._service.dispatch)

    async def hook(self, request: Request) -> Any:
        return await self._serve(request, _decode_hook, self._service.hook)

    async def acknowledge(self, request: Request) -> Any:
        acknowledgement = await _short_body(request, msgspec.json.Decoder(Acknowledgement).decode)
        try:
            self._service.acknowledge(acknowledgement.id)
        except NoSuchReceipt as error:
            raise RequestRefused(404, "no_such_receipt", str(error)) from None
        except AcknowledgedTooLate as error:
            raise RequestRefused(409, "too_late", str(error)) from None
        return {"acknowledged": acknowledgement.id}

    async def _serve(self, request: Request, decode: Callable[[bytes], B], serve: Callable[..., Any]) -> Any:
        """Decode the request, serve it and encode the answer.

        A large one is decoded and encoded off the event loop.
        """
        caller, size, large = request.scope[CALLER], _length(request), self._service.large
        if size <= LARGE:
            decoded = _from_caller(caller, _decoded(decode, await _body(request)))
            return await serve(decoded, caller, size, _connection(request))
        with large.hold(caller, size):
            body = await _body(request)
            decoded = _from_caller(caller, await large.run(caller, _decoded_large, decode, body))
            del body
            answer = await serve(decoded, caller, size, _connection(request))
            return await large.run(caller, _encode, answer)

    async def sessions(self, request: Request) -> Any:
        return {"sessions": self._service.sessions.known(request.query_params.get("root"))}

    async def session(self, request: Request) -> Any:
        caller, root, session_id = _session_of(request)
        session = self._service.sessions.get(caller, root, session_id)
        if session is None:
            raise RequestRefused(404, "no_such_session", f"{root} has no session {session_id!r}")
        return {"root": root, "session_id": session_id, "state": session.state, "store": session.store.dump()["values"]}

    async def forget(self, request: Request) -> Any:
        caller, root, session_id = _session_of(request)
        _refuse_agents(request)  # an agent must not reset its own counters
        self._service.approvals.end_session(caller + root, session_id)
        if not self._service.sessions.forget(caller, root, session_id):
            raise RequestRefused(404, "no_such_session", f"{root} has no session {session_id!r}")
        return {"forgotten": session_id}

    async def approvals(self, request: Request) -> Any:
        every = request.query_params.get("all") in ("1", "true")
        return {"approvals": self._service.approvals.questions(every=every)}

    async def question(self, request: Request) -> Any:
        try:
            return self._service.approvals.question(request.path_params["id"])
        except NoSuchQuestion as error:
            raise RequestRefused(404, "no_such_question", str(error)) from None

    async def grants(self, request: Request) -> Any:
        every = request.query_params.get("all") in ("1", "true")
        return {"grants": self._service.approvals.list_grants(every=every)}

    async def revoke(self, request: Request) -> Any:
        """End a grant. An agent may, too: it can only take away what it was allowed."""
        uid = caller_of(request)
        try:
            return self._service.revoke(request.path_params["id"], None if uid is None else user_name(uid))
        except NoSuchGrant as error:
            raise RequestRefused(404, "no_such_grant", str(error)) from None
        except AlreadyAnswered as error:
            raise RequestRefused(409, "ended", str(error)) from None

    async def answer(self, request: Request) -> Any:
        answer = await _short_body(request, msgspec.json.Decoder(ApprovalAnswer).decode)
        uid = caller_of(request)
        _refuse_agents(request)
        user = None if uid is None else user_name(uid)  # from the kernel, whatever `who` claims
        name, who, last = request.path_params["id"], answer.who or user, answer.valid_for
        try:
            return self._service.answer(name, answer.approve, who, answer.why, last, user, answer.shown, answer.grant)
        except NoSuchQuestion as error:
            raise RequestRefused(404, "no_such_question", str(error)) from None
        except NotWhatWasShown as error:
            raise RequestRefused(409, "not_what_was_shown", str(error)) from None
        except AlreadyAnswered as error:
            raise RequestRefused(409, "answered", str(error)) from None

    async def decisions(self, request: Request) -> Any:
        params = dict(request.query_params)
        limit = params.pop("limit", "50")
        if not (limit.isascii() and limit.isdigit() and len(limit) <= 4 and 1 <= int(limit) <= 1000):
            raise RequestRefused(400, "bad_request", "limit is a number from 1 to 1000")
        try:
            which = msgspec.convert(params, Filter, strict=False)
            unknown = params.keys() - set(Filter.__struct_fields__)
            if unknown:
                raise ValueError(f"there is no filter {min(unknown)!r}")
        except (msgspec.ValidationError, ValueError) as error:
            raise RequestRefused(400, "bad_request", str(error)) from None
        return await asyncio.to_thread(self._decisions, which, int(limit))

    def _decisions(self, which: Filter, limit: int) -> bytes:
        """The newest decisions, encoded here because this runs on a thread.

        There is a limit to their size.
        """
        found: list[bytes] = []
        size = 0
        with Reader(self._journal().path) as reader:
            for record in reader.records(which, limit=limit):
                found.append(_encode(_record(record)))
                size += len(found[-1])
                if size > ANSWER and len(found) > 1:
                    raise RequestRefused(413, "too_large", f"more than {ANSWER >> 20} MiB of decisions; ask for fewer")
        return b'{"decisions":[%b]}' % b",".join(found)

    async def decision(self, request: Request) -> Any:
        return await asyncio.to_thread(self._decision, request.path_params["id"])

    def _decision(self, name: str) -> bytes:
        with Reader(self._journal().path) as reader:
            return _encode(_record(reader.record(name)))

    def _journal(self) -> Any:
        if self._service.journal is None:
            raise NoJournal("[journal] in the user's fairlead.toml wants none")
        return self._service.journal

    async def reload(self, request: Request) -> Any:
        return {"mistakes": await self._service.projects.reload()}

    async def stop(self, request: Request) -> Any:
        self._stop()
        return {"status": "draining"}

    async def health(self, request: Request) -> Any:
        health = self._service.health()
        return {name: health[name] for name in ("status", "protocol")} if caller_of(request) is None else health

    async def openapi(self, request: Request) -> Any:
        return document()


def _connection(request: Request) -> Connection:
    async def wait_for_hang_up() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    scope = request.scope
    return Connection(ACKNOWLEDGES in scope[HEADERS], wait_for_hang_up, scope.get("state", {}).get(HUNG_UP))


def _from_caller(caller: str, decoded: B) -> B:
    """The request, without variables by which another user could choose what programs run."""
    if caller:
        names = {name for name in {*PASSED, *decoded.env} if name in PASSED or steers(name)}
        decoded.env |= {name: os.environ.get(name) for name in names}  # the daemon's own
    return decoded


def _session_of(request: Request) -> tuple[str, str, str]:
    """The caller, the project and the id of the session that a request names."""
    params = request.query_params
    return params.get("caller", ""), params.get("root", "/"), request.path_params["session_id"]


def _record(record: Any) -> dict[str, Any]:
    return {"seq": record.seq, "digest": record.digest, **record.body}


def _refuse_agents(request: Request) -> None:
    """Refuse an agent that approves its own calls or resets its session.

    Over TCP, only the token's scopes decide.
    """
    around = None if caller_of(request) is None else agent_around(pid=request.scope["client"][1])
    if around is not None:
        raise RequestRefused(403, "an_agent", f"an agent cannot do that ({around})")


def _decoded(decode: Callable[[bytes], T], body: bytes) -> T:
    try:
        return decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise RequestRefused(400, "bad_request", str(error)) from None


def _decoded_large(decode: Callable[[bytes], B], body: bytes) -> B:
    check_json(body)
    decoded = _decoded(decode, body)
    check_variables(decoded.env)
    return decoded


async def _short_body(request: Request, decode: Callable[[bytes], T]) -> T:
    """A body that is short enough to decode on the event loop."""
    if _length(request) > SHORT_BODY:
        raise RequestRefused(413, "too_large", f"at most {SHORT_BODY >> 20} MiB")
    return _decoded(decode, await _body(request))


def _length(request: Request) -> int:
    """The bytes of the body.

    Refuses a body that is too large, and chunks, each of which may be tiny.
    """
    headers = request.scope[HEADERS]
    if b"transfer-encoding" in headers:
        raise RequestRefused(411, "length_required", "say with Content-Length how long the body is")
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or len(length) > 12 or int(length) > BODY:
        raise RequestRefused(413, "too_large", f"at most {BODY >> 20} MiB")
    return int(length)


async def _body(request: Request) -> bytes:
    """The body. `protocol` closes connections that send it too slowly."""
    parts, more = [], True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise RequestRefused(400, "gone", "the caller has hung up")
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _error_answer(error: FairleadError) -> tuple[int, dict[str, Any]]:
    """The status and the answer for an error."""
    message = redact_text(str(error)[:MAX_MESSAGE])
    if isinstance(error, NeedsVariables):
        return 428, {"error": "needs_variables", "message": message, "variables": error.names}
    if isinstance(error, TooLarge):
        return 413, {"error": "too_large", "message": message}
    if isinstance(error, BadPayload):
        return 400, {"error": "bad_payload", "message": message}
    if isinstance(error, ConfigError):
        return 422, {"error": "bad_configuration", "message": message, "mistakes": [str(m) for m in error.mistakes]}
    if isinstance(error, (Overloaded, Draining)):
        return 503, {"error": "overloaded" if isinstance(error, Overloaded) else "draining", "message": message}
    if isinstance(error, CallerGone):
        return 400, {"error": "gone", "message": message}
    if isinstance(error, NoRecord):
        return 404, {"error": "no_such_decision", "message": message}
    if isinstance(error, NoJournal):
        return 404, {"error": "no_journal", "message": "there is no journal here yet"}
    if isinstance(error, JournalError):
        return 500, {"error": "journal", "message": message}
    return 400, {"error": "bad_request", "message": message}


class _JsonResponse(Response):
    """A JSON answer with few, mostly constant headers."""

    def __init__(self, status: int, data: Any) -> None:
        self.status_code = status
        self.background = None
        # An error may quote the request, so secrets are redacted from it.
        self.body = data if data.__class__ is bytes else _encode(data if status == 200 else redact(data))
        self.raw_headers = [*_HEADERS, (b"content-length", b"%d" % len(self.body)), *_MORE.get(status, ())]


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    names = {404: "not_found", 405: "wrong_method"}
    response = _JsonResponse(status, {"error": names.get(status, "error"), "message": getattr(error, "detail", "")})
    for name, value in (getattr(error, "headers", None) or {}).items():
        response.headers[name] = value
    return response


async def _broken(request: Request, error: Exception) -> Response:
    logger.error("a request failed", exc_info=error)
    return _JsonResponse(500, {"error": "broken", "message": "the daemon failed; its log has the error"})
