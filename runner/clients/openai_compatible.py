"""The hot path: OpenAI's forms over HTTP, without an SDK.

Requests are built once and handed to the transport directly: cookies, redirects,
retries and the pool of `httpx.AsyncClient` cost more CPU than the whole engine and
are of no use here (`design/http-transport.md` has the figures).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple, assert_never

import httpx

from runner.clients.client import Call, ClientStatistics, Received
from runner.clients.http_refusal import refusal
from runner.clients.http_sender import COMPRESSIONS, HttpSender
from runner.clients.ladder import Ladder, Sent
from runner.clients.options import ClientOptions
from runner.clients.secret import Secret
from runner.clients.tally import Tally
from runner.errors import MalformedReply, UsageError
from runner.request import ChatRequest, EmbedRequest, Request, RerankRequest
from runner.wire import (
    OPENAI_CHAT,
    OPENAI_EMBEDDINGS,
    RERANK,
    decode_reply,
    encode_chat,
    encode_embed,
    encode_rerank,
)

OPENAI_URL: Final = "https://api.openai.com/v1"

PATHS: Final[Mapping[str, str]] = {
    OPENAI_CHAT: "/chat/completions",
    OPENAI_EMBEDDINGS: "/embeddings",
    RERANK: "/rerank",
}
"""Where requests go, under the base URL, by the form of the reply."""


class _Written(NamedTuple):
    """A request as it leaves."""

    url: httpx.URL
    content: bytes
    form: str  #: of the reply
    sent: Sent


class OpenAICompatibleClient:
    """Sends requests of every kind to one model at one endpoint."""

    def __init__(self, model: str, options: ClientOptions) -> None:
        self._model = model
        self._options = options
        # an empty address, as of an unset variable, must not mean OpenAI
        base_url = OPENAI_URL if options.base_url is None else options.base_url
        self._endpoint = endpoint_url(base_url)
        self._urls = {
            form: httpx.URL(self._endpoint + path) for form, path in PATHS.items()
        }
        self._ladder = options.ladder or Ladder(
            self._endpoint, model, structured=options.structured
        )
        if self._endpoint == OPENAI_URL:
            self._ladder.begin_with("max_completion_tokens")
        self._headers = _headers(httpx.URL(self._endpoint), options.api_key)
        self._headers |= options.headers
        self._sender = HttpSender(self._endpoint, options, options.keys)
        self._tally = Tally()

    async def call(self, call: Call) -> Received:
        """Send the request once.

        Raises:
            AttemptError: No usable reply came back; no message or body of it holds
                the key.
        """
        written = self._written(call.request, call.task.number)
        request = httpx.Request(
            "POST", written.url, headers=self._headers, content=written.content
        )
        with self._tally.attempt():
            self._tally.bytes_sent += len(written.content)
            status, headers, body = await self._sender.send(request)
            self._tally.bytes_received += len(body)
            if status != httpx.codes.OK:
                now_us = self._options.clock.now_us()
                refused = refusal(self._endpoint, status, headers, body, now_us=now_us)
                raise self._ladder.met(refused, written.sent)
            try:
                reply = decode_reply(written.form, body)
            except MalformedReply as error:
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
                form = OPENAI_CHAT
                content = encode_chat(request, self._model, sent.shape)
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
        """The client's figures."""
        return self._tally.statistics()

    async def close(self) -> None:
        """Close all connections."""
        await self._sender.close()


def endpoint_url(base_url: str) -> str:
    """*base_url* as requests use it: `/v1` is added where it names no path.

    Raises:
        UsageError: It is not an HTTP address, or it carries a password.
    """
    # asked before reading: what cannot be read may hold a password too
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
    for known in PATHS.values():
        path = path.removesuffix(known)
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
