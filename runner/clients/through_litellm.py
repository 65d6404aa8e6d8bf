"""Every provider that litellm knows, by its model names `provider/model`.

litellm writes the request and reads the reply; sending, timeouts, masking and the
meaning of a refusal are those of the direct way. What it made of the reply is stored in
the form of chat completions, with the reply as it came inside (`design/litellm.md`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

import httpx
import msgspec

from runner.clients.client import Call, ClientStatistics, Received
from runner.clients.exchange import Exchange
from runner.clients.http_refusal import one_line, refusal
from runner.clients.http_sender import HttpSender
from runner.clients.litellm_library import QUIET, check, library, sending
from runner.clients.options import ClientOptions
from runner.clients.secret import Keyring, Secret
from runner.clients.tally import Tally
from runner.errors import (
    AttemptError,
    AuthFailed,
    BadRequest,
    ConnectionLost,
    ContentFiltered,
    ContextTooLong,
    MalformedReply,
    Overloaded,
    RateLimited,
    ServerError,
    Timeout,
    UsageError,
)
from runner.request import ChatRequest, Message, Schema
from runner.wire import OPENAI_CHAT, UNREADABLE, decode_reply

CREDENTIAL: Final = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
"""Names of variables whose values are masked: litellm may send any of them."""

MOST_BREAKPOINTS: Final = 4
"""Anthropic refuses a request with more (its documentation, "Prompt caching")."""

MEANINGS: Final[Mapping[str, type[AttemptError]]] = {
    "ContextWindowExceededError": ContextTooLong,
    "ContentPolicyViolationError": ContentFiltered,
    "AuthenticationError": AuthFailed,
    "PermissionDeniedError": AuthFailed,
    "PaymentRequiredError": AuthFailed,
    "RateLimitError": RateLimited,
    "Timeout": Timeout,
    "ServiceUnavailableError": Overloaded,
    "BadGatewayError": ServerError,
    "InternalServerError": ServerError,
    "APIResponseValidationError": MalformedReply,
    "APIConnectionError": ConnectionLost,
    "BadRequestError": BadRequest,
    "NotFoundError": BadRequest,
    "UnprocessableEntityError": BadRequest,
    "APIError": ServerError,
}
"""What litellm's exceptions mean here, by the name of the class or of its nearest base;
by name, so that reading this table does not import litellm."""

TOLD_BY_WORDS: Final = (ContextTooLong, ContentFiltered, AuthFailed)
"""What providers say with a plain 400 and words of their own, which litellm knows."""


class LiteLLMClient:
    """Sends chat completions to one model of one provider.

    Raises:
        UsageError: litellm does not know the provider, or finds no key for it.
    """

    def __init__(self, model: str, options: ClientOptions) -> None:
        check(
            model,
            has_key=options.api_key is not None,
            environment=options.environment,
        )
        self._model = model
        self._options = options
        self._keys = _keyring(options)
        self._senders: dict[str, HttpSender] = {}
        self._takes_schema = options.structured and library().supports_response_schema(
            model=model
        )
        self._tally = Tally()

    async def call(self, call: Call) -> Received:
        """Have litellm write the request, send it once, have litellm read the reply.

        Raises:
            AttemptError: No usable reply came back; no message or body of it holds
                a key.
        """
        asked = self._asked(call.request)
        exchange = Exchange(self._sender_for, self._tally)
        with self._tally.attempt(), self._translated(exchange):
            with sending(exchange.send):
                response = await library().acompletion(**asked)
            made = response.model_dump_json(exclude_none=True, warnings="none")
            body = self._keys.mask_bytes(_with_original(made, exchange.body))
            return Received(
                body=body,
                form=OPENAI_CHAT,
                reply=decode_reply(OPENAI_CHAT, body),
                status=exchange.status or httpx.codes.OK.value,
                headers=exchange.headers or None,
            )

    def _asked(self, request: ChatRequest) -> dict[str, Any]:
        """The keywords of the completion."""
        asked: dict[str, Any] = {
            **QUIET,
            "model": self._model,
            "messages": _messages(request, self._model),
            "max_tokens": request.max_tokens,
        }
        if self._options.api_key is not None:
            asked["api_key"] = self._options.api_key.reveal()
        if request.temperature is not None:
            asked["temperature"] = request.temperature
        if request.schema is not None and self._takes_schema:
            asked["response_format"] = _response_format(request.schema)
        return asked

    def _sender_for(self, url: httpx.URL) -> HttpSender:
        """The connections to *url*'s host: a provider's address is litellm's affair."""
        origin = str(url.copy_with(path="/", query=None, fragment=None))
        if origin not in self._senders:
            self._senders[origin] = HttpSender(origin, self._options, self._keys)
        return self._senders[origin]

    @contextmanager
    def _translated(self, exchange: Exchange) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever a provider's code raises
            # The cause is dropped: litellm's errors carry the request with its key.
            raise self._meaning(error, exchange) from None

    def _meaning(self, error: Exception, exchange: Exchange) -> AttemptError:
        """What *error* stands for.

        What happened on the wire decides. litellm's classes count where nothing did,
        and where they say more than the status.
        """
        if exchange.failure is not None:
            return exchange.failure
        names = [kind.__name__ for kind in type(error).__mro__]
        meaning = next((MEANINGS[name] for name in names if name in MEANINGS), None)
        # litellm adds tracebacks and links from the second line on
        said = one_line(self._keys.mask(str(error).partition("\n")[0]))
        if exchange.status is None:
            return (meaning or BadRequest)(f"{self._model}: {said}")
        if httpx.codes.is_success(exchange.status):
            return MalformedReply(
                f"{exchange.endpoint}: the reply cannot be read ({said})",
                status=exchange.status,
                body=exchange.body,
            )
        refused = refusal(
            exchange.endpoint,
            exchange.status,
            exchange.headers,
            exchange.body,
            now_us=self._options.clock.now_us(),
        )
        if isinstance(refused, BadRequest) and meaning in TOLD_BY_WORDS:
            return meaning(
                str(refused),
                status=refused.status,
                retry_after_s=refused.retry_after_s,
                body=refused.body,
            )
        return refused

    def statistics(self) -> ClientStatistics:
        """The client's figures."""
        return self._tally.statistics()

    async def close(self) -> None:
        """Close all connections."""
        for sender in self._senders.values():
            await sender.close()


def _keyring(options: ClientOptions) -> Keyring:
    """All that could be a key: which of them litellm sends is its own affair."""
    keys = [] if options.api_key is None else [options.api_key]
    for name, value in sorted(options.environment.items()):
        if CREDENTIAL.search(name):
            with suppress(UsageError):  # with blanks, as a JSON file, none is sent
                keys.append(Secret(value))
    return Keyring(*keys)


def _messages(request: ChatRequest, model: str) -> list[dict[str, Any]]:
    """The messages, with marks for Anthropic's prompt cache where they are known.

    Other providers cache by themselves, or, as Gemini, through requests of their own
    that litellm would make for the same marks.
    """
    if "claude" not in model.lower():
        return [
            {"role": message.role, "content": message.text}
            for message in request.messages
        ]
    spare = sum(part.cache for each in request.messages for part in each.parts)
    messages = []
    for message in request.messages:
        blocks, spare = _blocks(message, spare)
        messages.append({"role": message.role, "content": blocks})
    return messages


def _blocks(message: Message, marks: int) -> tuple[list[dict[str, Any]], int]:
    """The message cut after its breakpoints; the last few of all *marks* are set."""
    blocks: list[dict[str, Any]] = []
    text = ""
    for part in message.parts:
        text += part.text
        if part.cache:
            block: dict[str, Any] = {"type": "text", "text": text}
            if marks <= MOST_BREAKPOINTS:
                block["cache_control"] = {"type": "ephemeral"}
            marks -= 1
            blocks.append(block)
            text = ""
    if text or not blocks:
        blocks.append({"type": "text", "text": text})
    return blocks, marks


def _with_original(made: str, received: bytes) -> bytes:
    """What litellm made of a reply, with the reply itself in it.

    litellm leaves things out (of a reply that Gemini's filter stopped, the text), and
    what was paid for is kept as it came.
    """
    try:
        msgspec.json.decode(received)
    except UNREADABLE:
        received = msgspec.json.encode(received.decode(errors="replace"))
    return b'%s,"received":%s}' % (made.encode()[:-1], received)


def _response_format(schema: Schema) -> dict[str, Any]:
    return {
        "type": "json_schema",
        "json_schema": {
            "name": schema.name,
            "strict": True,
            "schema": msgspec.json.decode(schema.json),
        },
    }
