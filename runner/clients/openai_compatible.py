"""The hot path: chat completions over HTTP, without an SDK.

Requests are built once and handed to the transport directly: cookies, redirects,
retries and the pool of `httpx.AsyncClient` cost more CPU than the whole engine and
are of no use here (`design/http-transport.md` has the figures).
"""

from __future__ import annotations

from typing import Final

import httpx

from runner.clients.client import Call, ClientStatistics, Received
from runner.clients.http_refusal import refusal
from runner.clients.http_sender import COMPRESSIONS, HttpSender
from runner.clients.options import ClientOptions
from runner.clients.secret import Keyring, Secret
from runner.clients.tally import Tally
from runner.errors import MalformedReply, UsageError
from runner.wire import OPENAI_CHAT, decode_reply, encode_chat

OPENAI_URL: Final = "https://api.openai.com/v1"


class OpenAICompatibleClient:
    """Sends chat completions to one model at one endpoint."""

    def __init__(self, model: str, options: ClientOptions) -> None:
        self._model = model
        self._options = options
        self._endpoint = endpoint_url(options.base_url or OPENAI_URL)
        self._limit: Final = (
            "max_completion_tokens" if self._endpoint == OPENAI_URL else "max_tokens"
        )
        self._url = httpx.URL(self._endpoint + "/chat/completions")
        self._headers = _headers(self._url, options.api_key)
        keys = Keyring(options.api_key) if options.api_key else Keyring()
        self._sender = HttpSender(self._endpoint, options, keys)
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
            "POST", self._url, headers=self._headers, content=content
        )
        with self._tally.attempt():
            self._tally.bytes_sent += len(content)
            status, headers, body = await self._sender.send(request)
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
    path = url.path.rstrip("/").removesuffix("/chat/completions")
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
