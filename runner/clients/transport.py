"""Connections to one endpoint, with httpx's interface: a request in, a response out.

`aiohttp`'s session is used directly, because it needs the least CPU of all libraries
that have proxies, TLS, limits and deadlines (`design/clients.md` has the figures);
`SIFTLOG_HTTP=httpx` selects httpx's own connections instead. Both keep connections
alive, send nothing twice that may cost money, follow no redirect and keep no cookie.
Bodies are passed on as they were sent; readers unpack and bound them.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import select
import urllib.request
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import aiohttp
import httpx
from multidict import CIMultiDict
from yarl import URL

from runner.clients.client import HTTP, Timeouts
from runner.clients.unpacking import DamagedBody
from runner.errors import (
    AttemptError,
    ConnectionLost,
    MalformedReply,
    OutOfFiles,
    Timeout,
    UsageError,
)

if TYPE_CHECKING:
    import ssl

    from aiohttp.client_proto import ResponseHandler
    from aiohttp.connector import Connection

KEEPALIVE_S: Final = 4.0
"""Idle connections are closed before the server does it: uvicorn, under vLLM and most
other servers, closes after 5 s, and a request sent at that moment is lost."""


class SilentEndpoint(TimeoutError):
    """The head of a reply did not arrive in time."""


class StaleConnection(aiohttp.ClientError):
    """A kept connection cannot be used again; nothing was sent over it."""


TRANSPORT_ERRORS: Final[tuple[tuple[type[Exception], type[AttemptError], str], ...]] = (
    (aiohttp.ConnectionTimeoutError, Timeout, "no connection in time"),
    (aiohttp.ServerTimeoutError, Timeout, "no byte in time"),
    (SilentEndpoint, Timeout, "no byte in time"),
    (TimeoutError, Timeout, "the reply was not whole in time"),
    (aiohttp.ClientConnectorError, ConnectionLost, "no connection"),
    (aiohttp.ClientConnectionError, ConnectionLost, "the connection broke"),
    (aiohttp.ClientPayloadError, ConnectionLost, "the connection broke in the reply"),
    (aiohttp.ClientError, MalformedReply, "the reply is not HTTP"),
    (DamagedBody, MalformedReply, "the reply's compression is damaged"),
    (httpx.ConnectTimeout, Timeout, "no connection in time"),
    (httpx.TimeoutException, Timeout, "no byte in time"),
    (httpx.ConnectError, ConnectionLost, "no connection"),
    (httpx.NetworkError, ConnectionLost, "the connection broke"),
    (httpx.HTTPError, MalformedReply, "the reply is not HTTP"),
)
"""Maps errors of both libraries to attempt errors; the first match decides."""

FAILURES: Final = (httpx.HTTPError, aiohttp.ClientError, TimeoutError, DamagedBody)
"""Errors that a transport and the body of its response may raise."""

UNSENT: Final = (
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientConnectorError,
    httpx.ConnectTimeout,
    httpx.ConnectError,
)
"""Errors after which the endpoint has not seen the request."""

HANGING_UP: Final = ("Server disconnected", "peer closed connection")
"""httpx's messages for a lost connection that it reports as a protocol error."""

_NO_FILES: Final = {errno.EMFILE, errno.ENFILE}


def meaning_of(error: Exception) -> tuple[type[AttemptError], str]:
    """Return the attempt error that *error* of a transport means, and a description."""
    if _number_of(error) in _NO_FILES:
        return OutOfFiles, "too many files are open here"
    if isinstance(error, httpx.RemoteProtocolError) and str(error).startswith(
        HANGING_UP
    ):
        return ConnectionLost, "the connection broke"
    return next(
        (meaning, description)
        for kind, meaning, description in TRANSPORT_ERRORS
        if isinstance(error, kind)
    )


_CUT: Final = {
    "ContentLengthError": "it is shorter than announced",
    "TransferEncodingError": "its last part is missing",
}
"""Errors that aiohttp reports with a status 400, which no endpoint sent."""


def detail_of(error: Exception) -> str:
    """Return the library's words about an error, or plain ones for a cut reply."""
    text = str(error)
    if not isinstance(error, aiohttp.ClientPayloadError):
        return text
    return next((words for name, words in _CUT.items() if name in text), text)


def _number_of(error: BaseException | None) -> int | None:
    """Return the system's number of *error*; httpx's errors have it in their causes."""
    while error is not None and not isinstance(error, OSError):
        error = error.__cause__ or error.__context__
    return None if error is None else error.errno


def open_transport(
    proxy: httpx.Proxy | None, timeouts: Timeouts, environment: Mapping[str, str]
) -> httpx.AsyncBaseTransport:
    """Return connections to an endpoint, none of them open yet.

    There is no limit of connections: the engine bounds what is in flight, and a second
    bound could only disagree.

    Args:
        proxy: leads to the endpoint; None: nothing does.
        timeouts: to connect, and of silence; the total time is the caller's.
        environment: `SIFTLOG_HTTP` names the library, `aiohttp` or `httpx`.

    Raises:
        UsageError: there is no such library.
    """
    match environment.get(HTTP, "aiohttp"):
        case "aiohttp":
            return SessionTransport(proxy, timeouts)
        case "httpx":
            return PoolTransport(proxy, timeouts)
        case other:
            raise UsageError(f"{HTTP}={other!r} is unknown: use aiohttp or httpx.")


class SessionTransport(httpx.AsyncBaseTransport):
    """Connections of an aiohttp session."""

    def __init__(self, proxy: httpx.Proxy | None, timeouts: Timeouts) -> None:
        self._proxy = proxy
        self._timeout = aiohttp.ClientTimeout(
            sock_connect=timeouts.connect_s, sock_read=timeouts.silence_s
        )
        self._session: aiohttp.ClientSession | None = None
        self._urls: dict[str, URL] = {}
        self._login: dict[str, str] = {}
        if proxy is not None and proxy.auth is not None:
            login = aiohttp.encode_basic_auth(*proxy.auth)
            self._login = {"Proxy-Authorization": login}

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request*; return its response as soon as the head has arrived.

        Raises:
            aiohttp.ClientError: there is no reply.
        """
        session = self._session
        if session is None:
            session = self._session = self._opened(request.url)
        while True:
            try:
                reply = await self._sent(session, request)
            except StaleConnection:
                continue  # its connection is closed, and a new one is never stale
            return httpx.Response(
                reply.status, headers=list(reply.raw_headers), stream=_Body(reply)
            )

    async def _sent(
        self, session: aiohttp.ClientSession, request: httpx.Request
    ) -> aiohttp.ClientResponse:
        headers = CIMultiDict(
            [(name.decode(), value.decode()) for name, value in request.headers.raw]
        )
        proxy = self._proxy
        if proxy is None:
            return await session.request(
                request.method,
                self._url(request.url),
                headers=headers,
                data=request.content or None,
                allow_redirects=False,
            )
        if request.url.scheme == "http":  # no tunnel: the proxy reads the request
            headers.update(self._login)
        return await session.request(
            request.method,
            self._url(request.url),
            headers=headers,
            data=request.content or None,
            allow_redirects=False,
            proxy=str(proxy.url),
            proxy_headers=self._login,
        )

    def _url(self, url: httpx.URL) -> URL:
        """Return *url* as aiohttp wants it; requests have few different ones."""
        text = str(url)
        known = self._urls.get(text)
        if known is None:
            if len(self._urls) >= MOST_URLS:
                self._urls.clear()
            known = self._urls[text] = URL(text)
        return known

    def _opened(self, url: httpx.URL) -> aiohttp.ClientSession:
        """Return a session; only one that encrypts reads the certificates."""
        schemes = {url.scheme, self._proxy.url.scheme if self._proxy else ""}
        trust: ssl.SSLContext | bool = True
        if "https" in schemes:
            trust = httpx.create_ssl_context()
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=KEEPALIVE_S, ssl=trust
            ),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            request_class=_Request,
            timeout=self._timeout,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()


MOST_URLS: Final = 100
"""Parsed addresses that are kept; those of batches differ."""


class _Body(httpx.AsyncByteStream):
    """The body of a reply, as it was sent."""

    def __init__(self, reply: aiohttp.ClientResponse) -> None:
        self._reply = reply

    def __aiter__(self) -> AsyncIterator[bytes]:
        # no generator: nothing is left to be finalized where a reader stops early
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece."""
        if piece := await self._reply.content.readany():
            return piece
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Keep the connection if the reply was read to its end; else close it."""
        self._reply.release()
        await self._reply.wait_for_close()


_used: Final[WeakSet[ResponseHandler]] = WeakSet()
"""Connections that have carried a request."""


class _Request(aiohttp.ClientRequest):
    """A request that is sent only over a connection on which nothing has arrived.

    aiohttp reads from idle connections and gives a reply that nobody asked for to the
    next request. An end of the connection that is still unread is noticed here too.
    """

    async def send(self, conn: Connection) -> aiohttp.ClientResponse:
        """Send the request.

        Raises:
            StaleConnection: The connection is not to be used; the caller closes it.
        """
        protocol = conn.protocol
        if protocol is not None:
            if protocol in _used:
                # the timer runs once bytes have arrived, complete reply or not
                is_read_pending = protocol._read_timeout_handle is not None  # noqa: SLF001
                if (
                    is_read_pending
                    or protocol.should_close
                    or _is_readable(conn.transport)
                ):
                    raise StaleConnection
            else:
                _used.add(protocol)
        return await super().send(conn)


def _is_readable(transport: asyncio.Transport | None) -> bool:
    """Return whether bytes, or the end, have arrived and were not read."""
    if transport is None:
        return True
    poll = select.poll()
    poll.register(transport.get_extra_info("socket").fileno(), select.POLLIN)
    return bool(poll.poll(0))


class PoolTransport(httpx.AsyncBaseTransport):
    """Connections of httpx.

    It takes a reply that follows the asked one in the same segment for the next one's;
    connections on which something arrives later are not used again.
    """

    def __init__(self, proxy: httpx.Proxy | None, timeouts: Timeouts) -> None:
        self._timeouts = {
            "connect": timeouts.connect_s,
            "read": timeouts.silence_s,
            "write": timeouts.silence_s,
        }
        self._pool = httpx.AsyncHTTPTransport(
            limits=httpx.Limits(keepalive_expiry=KEEPALIVE_S), proxy=proxy
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send *request*; return its response as soon as the head has arrived.

        Raises:
            httpx.TransportError: there is no reply.
        """
        request.extensions = {"timeout": self._timeouts}
        return await self._pool.handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


def proxy_for(url: httpx.URL) -> httpx.Proxy | None:
    """Return the proxy that the environment names for *url*; never for loopback."""
    try:
        is_loopback = ipaddress.ip_address(url.host).is_loopback
    except ValueError:
        is_loopback = url.host == "localhost"
    proxy = urllib.request.getproxies().get(url.scheme)
    if proxy is None or is_loopback or urllib.request.proxy_bypass(url.host):
        return None
    return httpx.Proxy(proxy)
