"""Sends requests over HTTP without an SDK; the client for OpenAI's forms.

A chat is sent in one of two forms, as a chat completion or as a response; which one is
fixed when the client is opened (`design/clients.md`).

Requests are built once and handed to the transport directly (`transport.py`): cookies,
redirects, retries and the pool of `httpx.AsyncClient` cost more CPU than the whole
engine and are of no use here.

Every client that uses HTTP sends through here, so that timeouts, proxies, broken
connections, endless replies and echoed keys are handled in one place. This module
neither builds requests nor parses replies.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterable, Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, assert_never

import httpx

from runner.clients.client import (
    Call,
    ClientOptions,
    ClientStatistics,
    ClientTally,
    Keyring,
    Received,
    Secret,
)
from runner.clients.fallbacks import Fallbacks
from runner.clients.refusals import SentFields, logged_headers, one_line, refusal
from runner.clients.transport import (
    FAILURES,
    UNSENT,
    SilentEndpoint,
    detail_of,
    meaning_of,
    open_transport,
    proxy_for,
)
from runner.clients.unpacking import COMPRESSIONS, KNOWN, PLAIN, Unpacked
from runner.clients.wire import (
    OPENAI_EMBEDDINGS,
    RERANK,
    decode_reply,
    encode_embed,
    encode_rerank,
)
from runner.clients.wire_openai import (
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    encode_chat,
    encode_responses,
)
from runner.errors import AttemptError, MalformedReply, UsageError
from runner.messages import ChatRequest, EmbedRequest, Request, RerankRequest

UPLOAD_BYTES_PER_S: Final = 64 << 10
"""Slowest upload of a request before its reply counts as late."""


class StreamRefused(Exception):
    """A streamed reply has a status other than 200."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.body = body


class HttpSender:
    """Connections to one endpoint."""

    def __init__(self, endpoint: str, options: ClientOptions, keys: Keyring) -> None:
        """Send to *endpoint*, which messages name; mask *keys* in replies."""
        self._endpoint = endpoint
        self._options = options
        self._timeouts = options.timeouts
        proxy = proxy_for(httpx.URL(endpoint))
        self._keys = keys.with_also(*_secrets_of(proxy))
        self._transport = open_transport(proxy, options.timeouts, options.environment)

    async def send(self, request: httpx.Request) -> tuple[int, dict[str, str], bytes]:
        """Return status, relevant headers and body of the reply, keys masked.

        Raises:
            AttemptError: The reply is missing or incomplete.
        """
        total_s = self._timeouts.total_s
        head_s = self._head_s(request)
        response: httpx.Response | None = None
        try:
            begun = asyncio.get_running_loop().time()
            async with asyncio.timeout(min(head_s, total_s)) as limit:
                response = await self._transport.handle_async_request(request)
                limit.reschedule(begun + total_s)
                stream = _stream_of(response)
                try:
                    headers, body = await self._whole(response)
                finally:
                    await stream.aclose()
        except FAILURES as error:
            if response is None and type(error) is TimeoutError and head_s < total_s:
                raise self._failure(SilentEndpoint()) from None
            raise self._failure(error) from None
        return response.status_code, headers, body

    def _head_s(self, request: httpx.Request) -> float:
        """Return how long the head of a reply may take.

        The libraries measure silence, which a server breaks with interim replies.
        """
        upload_s = len(request.content) / UPLOAD_BYTES_PER_S
        return self._timeouts.connect_s + upload_s + self._timeouts.silence_s

    async def lines(self, request: httpx.Request) -> AsyncGenerator[bytes]:
        """Yield the lines of a reply of any length as they arrive, keys masked.

        Only silence ends it early, not length.

        Raises:
            AttemptError: The reply broke off; lines before that are complete.
                StreamRefused: Its status is not 200.
        """
        try:
            try:
                async with asyncio.timeout(self._head_s(request)):
                    response = await self._transport.handle_async_request(request)
            except TimeoutError as error:
                raise (
                    SilentEndpoint() if type(error) is TimeoutError else error
                ) from None
            stream = _stream_of(response)
            try:
                if response.status_code != httpx.codes.OK:
                    headers, body = await self._whole(response)
                    raise StreamRefused(response.status_code, headers, body)
                rest = b""
                async for piece in self._pieces(response):
                    *whole, rest = (rest + piece).split(b"\n")
                    for line in whole:
                        self._check_length(response, len(line))
                        yield self._keys.mask_bytes(line)
                    self._check_length(response, len(rest))
                if rest:
                    yield self._keys.mask_bytes(rest)
            finally:
                await stream.aclose()
        except FAILURES as error:
            raise self._failure(error) from None

    async def _whole(self, response: httpx.Response) -> tuple[dict[str, str], bytes]:
        """Return the relevant headers and the body of a reply, keys masked."""
        body = await self._read(response)
        headers = {
            name: self._keys.mask(value)
            for name, value in logged_headers(
                response.headers, self._options.logged_headers
            ).items()
        }
        return headers, self._keys.mask_bytes(body)

    async def _read(self, response: httpx.Response) -> bytes:
        pieces: list[bytes] = []
        length = 0
        async for piece in self._pieces(response):
            length += len(piece)
            self._check_length(response, length)
            pieces.append(piece)
        return b"".join(pieces)

    def _pieces(self, response: httpx.Response) -> AsyncIterable[bytes]:
        """Return the body in pieces, unpacked."""
        compression = response.headers.get("content-encoding", "").strip().lower()
        if compression in PLAIN:
            return _stream_of(response)
        if compression not in KNOWN:
            raise MalformedReply(
                f"{self._endpoint} compressed its reply as "
                f"{one_line(compression)!r}, which was not requested.",
                status=response.status_code,
            )
        return Unpacked(_stream_of(response), compression)

    def _check_length(self, response: httpx.Response, length: int) -> None:
        if length > self._options.max_reply_bytes:
            raise MalformedReply(
                f"{self._endpoint} sent a reply of more than "
                f"{self._options.max_reply_bytes} bytes.",
                status=response.status_code,
            )

    def _failure(self, error: Exception) -> AttemptError:
        """Return what *error* of the transport means, keys masked.

        The cause is to be dropped: the libraries' errors carry the request and its key.
        """
        meaning, description = meaning_of(error)
        detail = one_line(self._keys.mask(detail_of(error)))
        message = f"{self._endpoint}: {description}" + (
            f" ({detail})" if detail else ""
        )
        return meaning(message, was_sent=not isinstance(error, UNSENT))

    async def close(self) -> None:
        """Close all connections."""
        await self._transport.aclose()


def _stream_of(response: httpx.Response) -> httpx.AsyncByteStream:
    assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 - for mypy
    return response.stream


def _secrets_of(proxy: httpx.Proxy | None) -> Iterator[Secret]:
    """Yield the proxy's password, plain and as sent, because a reply may echo it."""
    if proxy is None or proxy.auth is None:
        return
    user, password = proxy.auth
    sent = base64.b64encode(f"{user}:{password}".encode()).decode()
    for value in (password, sent):
        with suppress(UsageError):  # with blanks: never sent in this form
            yield Secret(value)


OPENAI_URL: Final = "https://api.openai.com/v1"

PATHS: Final[Mapping[str, str]] = {
    OPENAI_CHAT: "/chat/completions",
    OPENAI_RESPONSES: "/responses",
    OPENAI_EMBEDDINGS: "/embeddings",
    RERANK: "/rerank",
}
"""Request paths under the base URL, by the form of the reply."""

CHATS: Final = {OPENAI_CHAT: encode_chat, OPENAI_RESPONSES: encode_responses}
"""Forms in which a chat can be sent."""


class _Written(NamedTuple):
    """An encoded request."""

    url: httpx.URL
    content: bytes
    form: str  #: of the reply
    sent: SentFields


class OpenAICompatibleClient:
    """Sends requests of every kind to one model at one endpoint."""

    def __init__(self, model: str, options: ClientOptions) -> None:
        self._model = model
        self._options = options
        # an empty address, as of an unset variable, must not mean OpenAI
        base_url = OPENAI_URL if options.base_url is None else options.base_url
        self._endpoint = endpoint_url(base_url)
        self._chat: Final = (
            OPENAI_RESPONSES if options.api == "responses" else OPENAI_CHAT
        )
        self._urls = {
            form: httpx.URL(self._endpoint + path) for form, path in PATHS.items()
        }
        self._ladder = options.ladder or Fallbacks(
            self._endpoint, model, structured=options.structured
        )
        if self._endpoint == OPENAI_URL:
            self._ladder.begin_with("max_completion_tokens")
        headers = _headers(httpx.URL(self._endpoint), options.api_key)
        self._headers = httpx.Headers(headers | dict(options.headers)).raw
        self._sender = HttpSender(self._endpoint, options, options.keys)
        self._tally = ClientTally()

    async def call(self, call: Call) -> Received:
        """Send the request once.

        Raises:
            AttemptError: There is no usable reply; neither message nor body contains
                the key.
        """
        written = self._written(call.request, call.task.number)
        length = b"%d" % len(written.content)
        # with bytes and a stream httpx has nothing to derive, which saves 10 us
        request = httpx.Request(
            "POST",
            written.url,
            headers=[*self._headers, (b"content-length", length)],
            stream=httpx.ByteStream(written.content),
        )
        request.read()
        with self._tally.attempt():
            self._tally.bytes_sent += len(written.content)
            status, headers, body = await self._sender.send(request)
            self._tally.bytes_received += len(body)
            if status != httpx.codes.OK:
                now_us = self._options.clock.now_us()
                refused = refusal(self._endpoint, status, headers, body, now_us=now_us)
                raise self._ladder.handle_error(refused, written.sent)
            try:
                reply = decode_reply(written.form, body)
            except AttemptError as error:
                error.status = status
                raise
            return Received(
                body=body,
                form=written.form,
                reply=reply,
                status=status,
                headers=headers or None,
            )

    def _written(self, request: Request, task: int) -> _Written:
        sent = self._ladder.sent(request, task)
        match request:
            case ChatRequest():
                form, encode = self._chat, CHATS[self._chat]
                content = encode(request, self._model, sent.shape)
            case EmbedRequest():
                form = OPENAI_EMBEDDINGS
                content = encode_embed(request, self._model, packed=sent.shape.packed)
            case RerankRequest():
                form = RERANK
                content = encode_rerank(request, self._model)
            case _:
                assert_never(request)
        return _Written(self._urls[form], content, form, sent)

    def statistics(self) -> ClientStatistics:
        """Return the client's figures."""
        return self._tally.statistics()

    async def close(self) -> None:
        """Close all connections."""
        await self._sender.close()


def endpoint_url(base_url: str) -> str:
    """Return *base_url* for requests: `/v1` is added if it has no path.

    Raises:
        UsageError: It is not an HTTP address, or it contains a password.
    """
    # checked before parsing: an invalid URL may contain a password too
    if "@" in base_url or "?" in base_url:
        raise UsageError(
            "The base URL holds a password or a query; "
            "put the key into the environment instead."
        )
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
    path = url.path.rstrip("/")
    for suffix in PATHS.values():
        path = path.removesuffix(suffix)
    return str(url.copy_with(path=path or "/v1", fragment=None))


def _headers(url: httpx.URL, key: Secret | None) -> dict[str, str]:
    headers = {
        "host": url.netloc.decode(),
        "accept": "application/json",
        "accept-encoding": COMPRESSIONS,
        "content-type": "application/json",
        "user-agent": "siftlog",
    }
    if key is not None:
        headers["authorization"] = f"Bearer {key.reveal()}"
    return headers
