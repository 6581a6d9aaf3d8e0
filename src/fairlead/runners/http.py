"""The HTTP runner: the envelope is posted to a service, and its answer is the verdict.

Status 200 with JSON is a verdict, 200 or 204 with nothing is no opinion; any other status is a
failure. A redirect is never followed and a proxy never used: a step goes where its hook says.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Collection, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..errors import FairleadError, MalformedVerdict, RunnerFailed
from ..hook import Layer, PhaseAware, RunnerResult
from ..lifecycle import EVENTS, Step
from ..redaction.redactor import redact_text
from ..signing import SIGNATURE, BadSignature, sign, verify
from ..verdict import clean, read_verdict
from .outbound import StepEncoder
from .process import OUTPUT_LIMIT

if TYPE_CHECKING:
    import aiohttp

CONNECTIONS = 64
"""Connections that one hook may have open at once."""
IDLE = 15.0
"""Seconds that an idle connection is kept."""
_HEADER_NAME = re.compile(r"[\w!#$%&'*+.^`|~-]+", re.ASCII)
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}


class BadUrl(FairleadError, ValueError):
    """An address that a hook may not have."""


class HttpFailed(RunnerFailed):
    """The service could not be reached, or its answer is no verdict."""


def check_header(name: str, value: str) -> None:
    """Raise `BadUrl` for a header that would not be one header."""
    if any(c in name + value for c in "\r\n\0"):
        raise BadUrl(f"header {name!r} holds a line break")
    if not _HEADER_NAME.fullmatch(name):
        raise BadUrl(f"{name!r} is no name of a header")


class Url(PhaseAware):
    """A hook that is an HTTP service. Called with a step; time-outs are the engine's.

    `secret` signs what is sent and demands a signed verdict. Secrets in a step are redacted, but for a hook that
    judges, never in what it judges (its `fields`, see `StepEncoder`): it fails instead. `raw` sends steps as they are.
    A project's hook reaches only public addresses and `allow_hosts`.
    """

    form = "url"

    def __init__(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        secret: str | None = None,
        raw: bool = False,
        fields: Collection[str] = (),
        layer: Layer = "user",
        allow_hosts: Collection[str] = (),
    ) -> None:
        self.url = url
        self._scheme, self._host = _checked(url)
        self._headers = _HEADERS | dict(headers or {})
        for name, value in self._headers.items():
            check_header(name, value)
        if secret == "":
            raise BadUrl("an empty secret signs nothing")
        self._secret = secret
        self._outbound = StepEncoder(raw=raw, fields=fields)
        self._public_only = layer == "project" and self._host not in {host.lower() for host in allow_hosts}
        if (address := _address(self._host)) is not None:
            self._check_address(address)
        self._sessions: dict[asyncio.AbstractEventLoop, aiohttp.ClientSession] = {}

    def __repr__(self) -> str:
        return f"<url {self.url}>"

    # --- asking -----------------------------------------------------------------------------

    async def __call__(self, step: Step) -> RunnerResult:
        return await self._ask(step, await self._outbound.for_judge(step))

    async def watch(self, step: Step) -> RunnerResult:
        """Send the step to a service that only observes."""
        return await self._ask(step, await self._outbound.for_observer(step))

    async def _ask(self, step: Step, body: bytes) -> RunnerResult:
        headers = self._headers | (sign(self._secret, body) if self._secret is not None else {})
        status, reply_headers, answer = await self.post(body, headers)
        details = {"status": status}
        if status not in (200, 204):
            text = clean(redact_text(answer[: 1 << 16].decode(errors="replace"))[:200].strip())
            where = " (redirects are not followed)" if 300 <= status < 400 else ""
            raise HttpFailed(f"{self._host} answered {status}{where}{f': {text}' if text else ''}", details)
        if self._secret is not None:
            try:
                verify(self._secret, reply_headers, answer, answers=headers[SIGNATURE])
            except BadSignature as problem:
                raise HttpFailed(f"the verdict of {self._host} is not to be trusted: {problem}", details) from None
        if not answer.strip():
            return RunnerResult(None, details)
        try:
            return RunnerResult(read_verdict(answer, EVENTS[step.event]), details)
        except MalformedVerdict as problem:
            problem.details = details
            raise

    async def post(self, body: bytes, headers: dict[str, str]) -> tuple[int, Mapping[str, str], bytes]:
        """Post to the service. Returns the status, the headers and the body of its answer."""
        import aiohttp

        session = self._session()
        for again in (True, False):
            reused: list[bool] = []  # not empty: the connection had been idle
            request = session.post(
                self.url, data=body, headers=headers, allow_redirects=False, trace_request_ctx=reused
            )
            status: dict[str, Any] | None = None
            try:
                async with request as response:
                    status = {"status": response.status}
                    return response.status, response.headers, await self._read(response)
            except aiohttp.ClientConnectionError as error:
                if reused and again and status is None:
                    continue  # it was closed under us, before it took the step
                what = "hung up" if status or isinstance(error, aiohttp.ServerDisconnectedError) else "cannot be asked"
                raise HttpFailed(f"{self._host} {what}: {_innermost(error)}", status) from None
            except (aiohttp.ClientError, OSError, ValueError) as error:
                what = "gave an answer that was cut short" if status else "cannot be asked"
                raise HttpFailed(f"{self._host} {what}: {_innermost(error)}", status) from None
        raise AssertionError("unreachable")

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        data = bytearray()
        async for chunk in response.content.iter_chunked(1 << 16):
            data += chunk
            if len(data) > OUTPUT_LIMIT:
                response.close()
                raise HttpFailed(
                    f"{self._host} answered with more than {OUTPUT_LIMIT >> 20} MiB", {"status": response.status}
                )
        return bytes(data)

    def _session(self) -> aiohttp.ClientSession:
        """The pool of connections of the running loop."""
        import aiohttp

        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            for gone in [known for known in self._sessions if known.is_closed()]:
                _drop(self._sessions.pop(gone))
            connector = aiohttp.TCPConnector(
                resolver=_resolver(self._check_address), use_dns_cache=False, limit=CONNECTIONS, keepalive_timeout=IDLE
            )
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
                trace_configs=[_noting_reuse()],
                auto_decompress=False,  # a small answer must not become a large one
            )
        return session

    # --- addresses --------------------------------------------------------------------------

    def _check_address(self, address: str) -> None:
        """Refuse an address that this hook may not connect to. What was checked is what is connected to."""
        if self._scheme == "http" and not _is_loopback(address):
            raise BadUrl(f"{self._called(address)} is not this machine; use https")
        if self._public_only and not _is_public(address):
            raise BadUrl(
                f"{self._called(address)} is not public; a project's hook may not reach it "
                f"unless the user's [defaults] allow_hosts names {self._host!r}"
            )

    def _called(self, address: str) -> str:
        return address if address == self._host else f"{self._host} is {address}, which"

    async def aclose(self) -> None:
        """Close all connections."""
        sessions, self._sessions = self._sessions, {}
        for loop, session in sessions.items():
            if loop is asyncio.get_running_loop():
                await session.close()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(session.close(), loop))
            else:
                _drop(session)


def _drop(session: aiohttp.ClientSession) -> None:
    """Forget a session whose loop is gone. Closing it properly would need that loop, so its sockets are closed."""
    connector: Any = session.connector
    if connector is not None:
        transports = [protocol.transport for kept in connector._conns.values() for protocol, _ in kept]
        connector._close()
        for transport in transports:
            while getattr(transport, "_ssl_protocol", None) is not None:
                transport._closed = True
                transport = transport._ssl_protocol._transport
            if getattr(transport, "_sock", None) is not None:
                transport._sock.close()
                transport._sock = None
    session.detach()


def _noting_reuse() -> aiohttp.TraceConfig:
    """Record for a request whether its connection had been used before."""
    import aiohttp

    async def reused(_: Any, context: Any, __: Any) -> None:
        context.trace_request_ctx.append(True)

    config = aiohttp.TraceConfig()
    config.on_connection_reuseconn.append(reused)
    return config


def _innermost(error: BaseException) -> str:
    """The error at the root of a chain of errors."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


def _checked(url: str) -> tuple[str, str]:
    """The scheme and the host of an address that a hook may have. An error does not repeat the address."""
    try:
        parts = urlsplit(url)
        host, _ = (parts.hostname or "").lower(), parts.port
        if parts.username is not None or parts.password is not None:
            raise BadUrl("a password does not belong in an address; use headers = { Authorization = { env = ... } }")
    except BadUrl:
        raise
    except ValueError as error:
        raise BadUrl(f"that is no address: {error}") from None
    if parts.scheme not in ("https", "http") or not host:
        raise BadUrl(f"{url!r} is no address; write https://host/path")
    if not host.isascii():  # which others may read as an address where we see a name
        raise BadUrl(f"{host!r} is not written in ASCII; write its punycode, xn--...")
    address = _address(host)
    if parts.scheme == "http" and not (host == "localhost" or (address is not None and _is_loopback(address))):
        raise BadUrl(f"{url!r} is not https; http is for this machine only")
    return parts.scheme, host


def _address(host: str) -> str | None:
    """The address that a host is, if it is one and not a name. (inet_aton knows the odd spellings.)"""
    try:
        return str(ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return None


def _is_loopback(address: str) -> bool:
    ip = ip_address(address)
    return (getattr(ip, "ipv4_mapped", None) or ip).is_loopback


_NAT64 = ip_network("64:ff9b::/96")
# What `is_global` says differs between versions of Python, so this is what IANA's registries of special addresses say,
# and the metadata service of a cloud. The old ways to write IPv4 as IPv6, 6to4 and Teredo, are not public either.
_NOT_PUBLIC = tuple(map(ip_network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24",
    "224.0.0.0/4", "240.0.0.0/4",
    "::/96", "::ffff:0:0:0/96", "64:ff9b:1::/48", "100::/63", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
)))  # fmt: skip


def _is_public(address: str) -> bool:
    """Whether an address is out on the internet, whichever way it is dressed up."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        inner = IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else ip.ipv4_mapped
        ip = ip if inner is None else inner
    return not any(ip in network for network in _NOT_PUBLIC)


def _resolver(check: Any) -> Any:
    """A resolver whose every answer was checked. The connector connects to just these addresses."""
    from aiohttp.abc import AbstractResolver, ResolveResult

    class Resolver(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, family=family)
            results = []
            for kind, _, protocol, _, address in found:
                ip = str(address[0])
                check(ip)
                results.append(
                    ResolveResult(
                        hostname=host, host=ip, port=port, family=kind, proto=protocol, flags=socket.AI_NUMERICHOST
                    )
                )
            if not results:
                raise OSError(f"{host} has no address")
            return results

        async def close(self) -> None:
            pass

    return Resolver()
