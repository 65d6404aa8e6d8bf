"""Every provider that litellm knows, by its model names `provider/model`.

litellm writes the request and reads the reply; sending, timeouts, masking and the
meaning of a refusal are those of the direct way. What it made of the reply is stored in
OpenAI's form of its kind, with the reply as it came inside (`design/litellm.md`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from operator import itemgetter
from typing import Any, Final, assert_never

import httpx
import msgspec

from runner.clients.client import Call, ClientStatistics, Received
from runner.clients.exchange import Exchange
from runner.clients.http_refusal import one_line, refusal
from runner.clients.http_sender import HttpSender
from runner.clients.ladder import Ladder, Sent
from runner.clients.litellm_library import QUIET, check, library, sending
from runner.clients.litellm_words import completion, embedding, rerank
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
from runner.reply import Usage, Vectors
from runner.request import ChatRequest, EmbedRequest, Request, RerankRequest
from runner.wire import (
    OPENAI_CHAT,
    OPENAI_EMBEDDINGS,
    RERANK,
    UNREADABLE,
    Shape,
    decode_reply,
    encode_answer,
)

CREDENTIAL: Final = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
"""Names of variables whose values are masked: litellm may send any of them."""

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
    "UnsupportedParamsError": BadRequest,
    "BadRequestError": BadRequest,
    "NotFoundError": BadRequest,
    "UnprocessableEntityError": BadRequest,
    "APIError": ServerError,
}
"""What litellm's exceptions mean here, by the name of the class or of its nearest base;
by name, so that reading this table does not import litellm."""

UNSERVED: Final = re.compile(r"unsupported provider", re.IGNORECASE)
"""What litellm says, as of a lost connection, where a provider ranks nothing."""

TOLD_BY_WORDS: Final = (ContextTooLong, ContentFiltered, AuthFailed)
"""What providers say with a plain 400 and words of their own, which litellm knows."""


class LiteLLMClient:
    """Sends requests of every kind to one model of one provider.

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
        self._ladder = options.ladder or Ladder(provider_of(model), model)
        if not (options.structured and library().supports_response_schema(model=model)):
            self._ladder.asks_plainly()
        self._tally = Tally()

    async def call(self, call: Call) -> Received:
        """Have litellm write the request, send it once, have litellm read the reply.

        Raises:
            AttemptError: No usable reply came back; no message or body of it holds
                a key.
        """
        sent = self._ladder.sent(call.request, call.task.number)
        exchange = Exchange(self._sender_for, self._tally)
        with self._tally.attempt(), self._translated(exchange, sent):
            with sending(exchange.send):
                made = await self._asked(call.request, sent.shape)
            form, body = _stored(call.request, made, exchange.body)
            body = self._keys.mask_bytes(body)
            return Received(
                body=body,
                form=form,
                reply=decode_reply(form, body),
                status=exchange.status or httpx.codes.OK.value,
                headers=exchange.headers or None,
            )

    async def _asked(self, request: Request, shape: Shape) -> Any:  # noqa: ANN401 - litellm's own classes
        """What litellm makes of the reply."""
        words: dict[str, Any] = {**QUIET, "model": self._model}
        if self._ladder.has_explicit:
            # litellm would leave out what a person set without a word
            words["drop_params"] = False
        if self._options.headers:
            words["extra_headers"] = dict(self._options.headers)
        if self._options.api_key is not None:
            words["api_key"] = self._options.api_key.reveal()
        match request:
            case ChatRequest():
                words |= completion(request, self._model, shape)
                return await library().acompletion(**words)
            case EmbedRequest():
                words |= embedding(request, self._model)
                return await library().aembedding(**words)
            case RerankRequest():
                return await library().arerank(**words, **rerank(request))
            case _:
                assert_never(request)

    def _sender_for(self, url: httpx.URL) -> HttpSender:
        """The connections to *url*'s host: a provider's address is litellm's affair."""
        origin = str(url.copy_with(path="/", query=None, fragment=None))
        if origin not in self._senders:
            self._senders[origin] = HttpSender(origin, self._options, self._keys)
        return self._senders[origin]

    @contextmanager
    def _translated(self, exchange: Exchange, sent: Sent) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever a provider's code raises
            # The cause is dropped: litellm's errors carry the request with its key.
            meaning = self._meaning(error, exchange)
            raise self._ladder.met(meaning, sent) from None

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
            if UNSERVED.search(said):
                return BadRequest(f"{self._model}: {said}")
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


def provider_of(model: str) -> str:
    """The provider of a model, as it is shown."""
    return model.partition("/")[0]


def _keyring(options: ClientOptions) -> Keyring:
    """All that could be a key: which of them litellm sends is its own affair."""
    keys: list[Secret] = []
    for name, value in sorted(options.environment.items()):
        if CREDENTIAL.search(name):
            with suppress(UsageError):  # with blanks, as a JSON file, none is sent
                keys.append(Secret(value))
    return options.keys.with_also(*keys)


def _stored(request: Request, made: Any, received: bytes) -> tuple[str, bytes]:  # noqa: ANN401 - litellm's own classes
    """Form and body to be stored: litellm's reading of a reply, and the reply in it.

    litellm leaves things out (of a reply that Gemini's filter stopped, the text), and
    what was paid for is kept as it came. Most vectors and rankings come in the very
    form that they are stored in: they would only lie there twice.
    """
    if isinstance(request, ChatRequest):
        body = made.model_dump_json(exclude_none=True, warnings="none").encode()
        return OPENAI_CHAT, _with_original(body, received)
    form = OPENAI_EMBEDDINGS if isinstance(request, EmbedRequest) else RERANK
    with suppress(MalformedReply):
        decode_reply(form, received)
        return form, received
    plain = made.model_dump(exclude_none=True, warnings="none")
    if form == OPENAI_EMBEDDINGS:
        rows = sorted(plain["data"], key=itemgetter("index"))
        counted = plain.get("usage", {}).get("prompt_tokens", 0)
        usage = Usage(tokens_in=counted, tokens_out=0)
        vectors = Vectors.of((row["embedding"] for row in rows), usage)
        body = encode_answer(vectors)[1]
    else:
        body = msgspec.json.encode(plain)
    return form, _with_original(body, received)


def _with_original(made: bytes, received: bytes) -> bytes:
    """What litellm made of a reply, with the reply itself in it."""
    try:
        msgspec.json.decode(received)
    except UNREADABLE:
        received = msgspec.json.encode(received.decode(errors="replace"))
    return b'%s,"received":%s}' % (made[:-1], received)
