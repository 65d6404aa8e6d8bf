"""The hot path: chat completions over HTTP, without an SDK.

Requests are built once and handed to the transport directly: cookies, redirects,
retries and the pool of `httpx.AsyncClient` cost more CPU than the whole engine and
are of no use here (`design/http-transport.md` has the figures).
"""

from __future__ import annotations

import asyncio
import ipaddress
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from runner.clients.client import Call, ClientStatistics, Received
from runner.clients.http_refusal import kept, refusal
from runner.clients.options import ClientOptions
from runner.clients.secret import Secret
from runner.clients.tally import Tally
from runner.errors import (
    AttemptError,
    ConnectionLost,
    MalformedReply,
    Timeout,
    UsageError,
)
from runner.wire import OPENAI_CHAT, decode_reply, encode_chat

OPENAI_URL: Final = "https://api.openai.com/v1"

NO_KEY: Final = Secret("none")
"""Stands in where no key is sent; too short to mask anything."""

KEEPALIVE_S: Final = 4.0
"""Idle connections are closed before the server does it: uvicorn, under vLLM and most
other servers, closes after 5 s, and a request sent at that moment is lost."""

TRANSPORT_ERRORS: Final[tuple[tuple[type[Exception], type[AttemptError], str], ...]] = (
    (aiohttp.ConnectionTimeoutError, Timeout, "no connection in time"),
    (aiohttp.ServerTimeoutError, Timeout, "no byte in time"),
    (TimeoutError, Timeout, "the reply was not whole in time"),
    (aiohttp.ClientConnectorError, ConnectionLost, "no connection"),
    (aiohttp.ClientConnectionError, ConnectionLost, "the connection broke"),
    (aiohttp.ClientPayloadError, ConnectionLost, "the connection broke in the reply"),
    (httpx.DecodingError, MalformedReply, "the reply's compression is damaged"),
    (aiohttp.ClientError, MalformedReply, "the reply is not HTTP"),
)
"""From what the transport raises, httpx's wrapping taken off, to what it means here;
the first that fits decides."""


class OpenAICompatibleClient:
    """Sends chat completions to one model at one endpoint."""

    def __init__(self, model: str, options: ClientOptions) -> None:
        self._model = model
        self._options = options
        self._endpoint = endpoint_url(options.base_url or OPENAI_URL)
        self._limit: Final = (
            "max_completion_tokens" if self._endpoint == OPENAI_URL else "max_tokens"
        )
        self._key = options.api_key or NO_KEY
        self._url = httpx.URL(self._endpoint + "/chat/completions")
        self._headers = _headers(self._url, options.api_key)
        timeouts = options.timeouts
        self._extensions = {
            "timeout": {"connect": timeouts.connect_s, "read": timeouts.silence_s}
        }
        # The engine bounds what is in flight; a second bound here could only disagree.
        self._transport = AiohttpTransport(
            limits=httpx.Limits(max_connections=0, keepalive_expiry=KEEPALIVE_S),
            proxy=proxy_for(self._url),
        )
        self._tally = Tally()

    async def call(self, call: Call) -> Received:
        """Send the request once.

        Raises:
            AttemptError: No usable reply came back; no message or body of it holds
                the key.
        """
        content = encode_chat(
            call.request,
            self._model,
            structured=self._options.structured,
            limit=self._limit,
        )
        request = httpx.Request(
            "POST",
            self._url,
            headers=self._headers,
            content=content,
            extensions=self._extensions,
        )
        with self._tally.attempt():
            self._tally.bytes_sent += len(content)
            status, headers, body = await self._send(request)
            self._tally.bytes_received += len(body)
            if status != httpx.codes.OK:
                raise refusal(
                    self._endpoint,
                    status,
                    headers,
                    body,
                    now_us=self._options.clock.now_us(),
                )
            try:
                reply = decode_reply(OPENAI_CHAT, body)
            except MalformedReply as error:
                error.status = status
                raise
            return Received(
                body=body,
                form=OPENAI_CHAT,
                reply=reply,
                status=status,
                headers=headers or None,
            )

    async def _send(self, request: httpx.Request) -> tuple[int, dict[str, str], bytes]:
        """Status, headers that matter and body of the reply, with the key masked."""
        with self._translated():
            async with asyncio.timeout(self._options.timeouts.total_s):
                response = await self._transport.handle_async_request(request)
                try:
                    body = await self._read(response)
                finally:
                    await response.aclose()
        headers = {
            name: self._key.mask(value)
            for name, value in kept(response.headers).items()
        }
        return response.status_code, headers, self._key.mask_bytes(body)

    async def _read(self, response: httpx.Response) -> bytes:
        pieces: list[bytes] = []
        length = 0
        async for piece in response.aiter_bytes():
            length += len(piece)
            if length > self._options.max_reply_bytes:
                raise MalformedReply(
                    f"{self._endpoint} sent a reply of more than "
                    f"{self._options.max_reply_bytes} bytes.",
                    status=response.status_code,
                )
            pieces.append(piece)
        return b"".join(pieces)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (httpx.HTTPError, aiohttp.ClientError, TimeoutError) as error:
            is_wrapped = isinstance(error, httpx.TransportError)
            cause = (is_wrapped and error.__cause__) or error
            meaning, what = next(
                (meaning, what)
                for kind, meaning, what in TRANSPORT_ERRORS
                if isinstance(cause, kind)
            )
            said = self._key.mask(str(cause))
            message = f"{self._endpoint}: {what}" + (f" ({said})" if said else "")
            # The cause is dropped: aiohttp's errors carry the request with its key.
            raise meaning(message) from None

    def statistics(self) -> ClientStatistics:
        """The client's figures."""
        return self._tally.statistics()

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.aclose()


def endpoint_url(base_url: str) -> str:
    """*base_url* as requests use it: `/v1` is added where it names no path.

    Raises:
        UsageError: It is not an HTTP address, or it carries a password.
    """
    try:
        url = httpx.URL(base_url.strip())
    except httpx.InvalidURL as error:
        raise UsageError(
            f"The base URL {base_url!r} cannot be read: {error}."
        ) from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise UsageError(
            f"The base URL {base_url!r} is not an address; "
            "write it like http://127.0.0.1:8000/v1."
        )
    if url.userinfo or url.query:
        raise UsageError(
            "The base URL holds a password or a query; "
            "put the key into the environment instead."
        )
    path = url.path.rstrip("/").removesuffix("/chat/completions")
    return str(url.copy_with(path=path or "/v1", fragment=None))


def _headers(url: httpx.URL, key: Secret | None) -> dict[str, str]:
    headers = {
        "host": url.netloc.decode(),
        "accept": "application/json",
        "accept-encoding": "gzip, deflate",
        "content-type": "application/json",
        "user-agent": "siftlog",
    }
    if key is not None:
        headers["authorization"] = f"Bearer {key.reveal()}"
    return headers


def proxy_for(url: httpx.URL) -> httpx.Proxy | None:
    """The proxy that the environment names for *url*; loopback never takes one."""
    try:
        is_loopback = ipaddress.ip_address(url.host).is_loopback
    except ValueError:
        is_loopback = url.host == "localhost"
    proxy = urllib.request.getproxies().get(url.scheme)
    if proxy is None or is_loopback or urllib.request.proxy_bypass(url.host):
        return None
    return httpx.Proxy(proxy)
