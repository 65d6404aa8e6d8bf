"""Reaches every provider that litellm knows, by its model names `provider/model`.

litellm writes the request and reads the reply; sending, timeouts, masking and the
classification of refusals are those of `http_client`. The converted reply is stored in
OpenAI's format of its kind, with the original reply inside (`design/clients.md`).

The library's requests arrive here as they would at a socket, and only one is sent per
attempt: a second paid one would be in no log. The result of the last request, not the
library's view of it, determines how the attempt ended.

litellm knows how some hundred providers want a request written and how they write a
reply. Its retries, caches, callbacks, price download and `.env` reader are off, and its
sockets are replaced: every HTTP client it builds passes its requests to the current
attempt (`design/clients.md` says why). It is imported when the first model needs it,
which takes two to three seconds.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from operator import itemgetter
from typing import Any, Final, TypeAlias, assert_never

import httpx
import msgspec

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
from runner.clients.http_client import HttpSender
from runner.clients.refusals import SentFields, one_line, refusal
from runner.clients.unpacking import COMPRESSIONS
from runner.clients.wire import OPENAI_EMBEDDINGS, RERANK, decode_reply, encode_answer
from runner.clients.wire_openai import OPENAI_CHAT, response_format
from runner.clients.wire_shared import (
    UNREADABLE,
    Shape,
    Structure,
    chat_fields,
    messages_in,
)
from runner.errors import (
    AttemptError,
    AuthFailed,
    BadRequest,
    ConnectionLost,
    ContentFiltered,
    ContextTooLong,
    MalformedReply,
    NotServed,
    Overloaded,
    QuotaSpent,
    RateLimited,
    ServerError,
    Timeout,
    UsageError,
)
from runner.messages import (
    ChatRequest,
    EmbedRequest,
    ImagePart,
    Message,
    Request,
    RerankRequest,
    Usage,
    Vectors,
    decoded,
)
from runner.model_names import model_hint


class LiteLLMExchange:
    """The requests of one attempt, and the last reply."""

    def __init__(
        self, sender_for: Callable[[httpx.URL], HttpSender], tally: ClientTally
    ) -> None:
        """Send through *sender_for*; count bytes in *tally*."""
        self._sender_for = sender_for
        self._tally = tally
        self._posted: set[httpx.URL] = set()
        self.endpoint = ""  #: endpoint of the last request
        self.status: int | None = None  #: of the last reply; None: no reply
        self.headers: dict[str, str] = {}  #: relevant ones of the last reply
        self.body = b""
        self.failure: AttemptError | None = None  #: why there is no reply

    async def send(self, request: httpx.Request) -> httpx.Response:
        """Send *request* once in this attempt and store the outcome.

        A second call returns the first outcome instead of sending again.
        """
        if request.method == "POST":
            if request.url in self._posted:
                return self._reply(request)
            self._posted.add(request.url)
        self.endpoint = str(request.url.copy_with(query=None))
        self._tally.bytes_sent += len(await request.aread())
        self.status, self.headers, self.body = None, {}, b""
        request.headers["accept-encoding"] = COMPRESSIONS
        try:
            sender = self._sender_for(request.url)
            self.status, self.headers, self.body = await sender.send(request)
            self._tally.bytes_received += len(self.body)
        except AttemptError as error:
            self.failure = error
        return self._reply(request)

    def _reply(self, request: httpx.Request) -> httpx.Response:
        """Return the response for the library.

        Never raises, because litellm would retry.
        """
        return httpx.Response(
            httpx.codes.BAD_GATEWAY if self.status is None else self.status,
            headers={
                **self.headers,
                # SDKs return a body without a JSON content type as text, which would be
                # taken for an answer
                "content-type": "application/json",
                # OpenAI's SDK obeys this; litellm does not pass `max_retries` to it for
                # all providers
                "x-should-retry": "false",
            },
            content=self.body,
            request=request,
        )


MOST_BREAKPOINTS: Final = 4
"""Anthropic refuses requests with more (its documentation, "Prompt caching")."""

PURPOSES: Final[Mapping[str, Mapping[str, Mapping[str, str]]]] = {
    "cohere": {
        "query": {"input_type": "search_query"},
        "document": {"input_type": "search_document"},
    },
    "gemini": {
        "query": {"taskType": "RETRIEVAL_QUERY"},
        "document": {"taskType": "RETRIEVAL_DOCUMENT"},
    },
    "nvidia_nim": {
        "query": {"input_type": "query"},
        "document": {"input_type": "passage"},
    },
}
"""Providers' names for the purpose of texts to embed. NVIDIA and Cohere require one, so
without a purpose the texts are documents there."""


def completion(request: ChatRequest, model: str, shape: Shape) -> dict[str, Any]:
    """Return the arguments of a chat for the given *shape*."""
    fields = chat_fields(request, shape)
    extra = {
        name: fields.pop(name)
        for name in decoded(request.parameters.extra_body)
        if name in fields
    }
    words: dict[str, Any] = {
        "messages": messages(messages_in(request, shape), model),
        **fields,
    }
    if extra:
        words["extra_body"] = extra
    if request.schema is not None and shape.structure is not Structure.TEXT:
        words["response_format"] = msgspec.json.decode(
            msgspec.json.encode(response_format(request.schema, shape))
        )
    return words


def embedding(request: EmbedRequest, model: str) -> dict[str, Any]:
    """Return the arguments for texts to embed."""
    provider = model.partition("/")[0]
    purposes = PURPOSES.get(provider, {})
    words: dict[str, Any] = {"input": list(request.texts)}
    if request.dimensions is not None:
        words["dimensions"] = request.dimensions
    if request.purpose is not None or provider != "gemini":
        words |= purposes.get(request.purpose or "document", {})
    return {**words, **decoded(request.parameters.extra_body)}


def rerank(request: RerankRequest) -> dict[str, Any]:
    """Return the arguments for documents to rank, without their echo."""
    words: dict[str, Any] = {
        "query": request.query,
        "documents": list(request.documents),
        "return_documents": False,
    }
    if request.top_n is not None:
        words["top_n"] = request.top_n
    return {**words, **decoded(request.parameters.extra_body)}


NO_MARKS: Final = 1 << 30
"""A number of breakpoints before the last few, which are not set."""


def messages(
    role_messages: Sequence[tuple[str, Message]], model: str
) -> list[dict[str, Any]]:
    """Return messages by role, with cache marks if the model is Anthropic's.

    Other providers cache automatically or, as Gemini, through extra requests, which
    litellm would send for the same marks.
    """
    if "claude" not in model.lower():
        return [
            {
                "role": role,
                "content": (
                    _blocks(message, NO_MARKS)[0] if message.images else message.text
                ),
            }
            for role, message in role_messages
        ]
    spare = sum(part.cache for _, message in role_messages for part in message.parts)
    messages = []
    for role, message in role_messages:
        blocks, spare = _blocks(message, spare)
        messages.append({"role": role, "content": blocks})
    return messages


def _blocks(message: Message, marks: int) -> tuple[list[dict[str, Any]], int]:
    """Split the message after its breakpoints; only the last few *marks* are set."""
    blocks: list[dict[str, Any]] = []
    text = ""
    for part in message.parts:
        text += part.text
        if text and (part.cache or isinstance(part, ImagePart)):
            blocks.append({"type": "text", "text": text})
            text = ""
        if isinstance(part, ImagePart):
            blocks.append({"type": "image_url", "image_url": {"url": part.uri}})
        if part.cache:
            if marks <= MOST_BREAKPOINTS:
                blocks[-1]["cache_control"] = {"type": "ephemeral"}
            marks -= 1
    if text or not blocks:
        blocks.append({"type": "text", "text": text})
    return blocks, marks


Send: TypeAlias = Callable[[httpx.Request], Awaitable[httpx.Response]]

_send: Final[ContextVar[Send]] = ContextVar("_send")
"""Sends litellm's requests in the current context."""

SWITCHES: Final = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # prices as packaged, no download
    "LITELLM_MODE": "PRODUCTION",  # do not read .env
}
"""Read by litellm from the environment as it is imported."""

QUIET: Final = {
    "num_retries": 0,  # litellm's own
    "max_retries": 0,  # retries of the SDKs beneath it
    "caching": False,
    "drop_params": True,  # omit parameters that the model does not know
}
"""Keyword arguments of every completion."""


class _OurSockets(httpx.AsyncBaseTransport):
    """Transport of every HTTP client that litellm builds; stateless."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await _send.get()(request)


@cache
def library() -> Any:  # noqa: ANN401 - a module is typed by what it holds
    """Return litellm, silenced and with our transport; the first call imports it."""
    os.environ.update(SWITCHES)
    litellm: Any = import_module("litellm")
    litellm.suppress_debug_info = True  # it prints hints
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    handler = import_module("litellm.llms.custom_httpx.http_handler")
    handler.AsyncHTTPHandler.create_async_transport = staticmethod(_our_sockets)
    # some clients are built during the import
    litellm.in_memory_llm_clients_cache.flush_cache()
    return litellm


@contextmanager
def sending(send: Send) -> Iterator[None]:
    """Route litellm's requests through *send* while the body runs."""
    # litellm's mark for unlogged calls: without it, each call leaves tasks that are
    # never awaited, and costs a fifth more
    unlogged = import_module("litellm._internal_context").is_internal_call
    sender, mark = _send.set(send), unlogged.set(True)
    try:
        yield
    finally:
        unlogged.reset(mark)
        _send.reset(sender)


def _our_sockets(*_: object, **__: object) -> httpx.AsyncBaseTransport:
    return _OurSockets()


def check(model: str, *, has_key: bool, environment: Mapping[str, str]) -> None:
    """Check that litellm knows *model*'s provider and finds its key.

    litellm looks for keys, addresses and regions in the process environment only, so
    additional variables of *environment* (from `.env`) are copied there.

    Raises:
        UsageError: the provider or its key is missing; the message has the next step.
    """
    provider, _, name = model.partition("/")
    if not name or provider not in library().provider_list:
        raise UsageError(
            f"No provider is known for the model {model!r}: {model_hint(model)}"
            "give --base-url for an "
            "OpenAI-compatible endpoint, or choose PROVIDER/NAME with a provider that "
            "litellm knows (openai, anthropic, gemini, ...), baseline/lexical or "
            "recorded:FILE."
        )
    for variable, value in environment.items():
        os.environ.setdefault(variable, value)
    validation = library().validate_environment(
        model, api_key="given" if has_key else None
    )
    missing = [name for name in validation["missing_keys"] if name not in os.environ]
    # a missing address alone is no problem: its default is a server on this machine
    if validation["keys_in_environment"] or all(
        name.endswith("_BASE") for name in missing
    ):
        return
    are_alternatives = all(name.endswith("_API_KEY") for name in missing)
    names = (" or " if are_alternatives else " and ").join(missing)
    raise UsageError(
        f"{model} needs {names} in the environment or in .env, or name "
        "another variable with --api-key-env."
    )


CREDENTIAL: Final = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD)$", re.IGNORECASE)
"""Names of variables whose values are masked: litellm may send any of them."""

MEANINGS: Final[Mapping[str, type[AttemptError]]] = {
    "ContextWindowExceededError": ContextTooLong,
    "ContentPolicyViolationError": ContentFiltered,
    "AuthenticationError": AuthFailed,
    "PermissionDeniedError": AuthFailed,
    "PaymentRequiredError": QuotaSpent,
    "RateLimitError": RateLimited,
    "Timeout": Timeout,
    "ServiceUnavailableError": Overloaded,
    "BadGatewayError": ServerError,
    "InternalServerError": ServerError,
    "APIResponseValidationError": MalformedReply,
    "APIConnectionError": ConnectionLost,
    "UnsupportedParamsError": BadRequest,
    "BadRequestError": BadRequest,
    "NotFoundError": NotServed,
    "UnprocessableEntityError": BadRequest,
    "APIError": ServerError,
}
"""Maps litellm's exceptions to attempt errors, by the name of the class or of its
nearest base; names avoid an import of litellm."""

UNSERVED: Final = re.compile(
    r"unsupported provider|unmapped llm provider", re.IGNORECASE
)
"""Error text of litellm, a connection error, if a provider has no rerank."""

WORDED_ERRORS: Final = (ContextTooLong, ContentFiltered, AuthFailed)
"""Errors that providers express as a plain 400 with a text that litellm recognises."""


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
        self._ladder = options.ladder or Fallbacks(provider_of(model), model)
        if not (options.structured and library().supports_response_schema(model=model)):
            self._ladder.disable_schema()
        self._tally = ClientTally()

    async def call(self, call: Call) -> Received:
        """Encode the request with litellm, send it once, and decode the reply with it.

        Raises:
            AttemptError: There is no usable reply; neither message nor body contains a
                key.
        """
        sent = self._ladder.sent(call.request, call.task.number)
        exchange = LiteLLMExchange(self._sender_for, self._tally)
        with self._tally.attempt(), self._translated(exchange, sent):
            with sending(exchange.send):
                response = await self._response(call.request, sent.shape)
            form, body = _stored(call.request, response, exchange.body)
            body = self._keys.mask_bytes(body)
            return Received(
                body=body,
                form=form,
                reply=decode_reply(form, body),
                status=exchange.status or httpx.codes.OK.value,
                headers=exchange.headers or None,
            )

    async def _response(self, request: Request, shape: Shape) -> Any:  # noqa: ANN401 - litellm's own classes
        """Return litellm's response object for the reply."""
        words: dict[str, Any] = {**QUIET, "model": self._model}
        if self._ladder.has_explicit:
            # litellm would silently omit parameters set by the user
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
        """Return connections to *url*'s host, which litellm chooses."""
        origin = str(url.copy_with(path="/", query=None, fragment=None))
        if origin not in self._senders:
            self._senders[origin] = HttpSender(origin, self._options, self._keys)
        return self._senders[origin]

    @contextmanager
    def _translated(
        self, exchange: LiteLLMExchange, sent: SentFields
    ) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever a provider's code raises
            # The cause is dropped: litellm's errors carry the request with its key.
            meaning = self._meaning(error, exchange)
            raise self._ladder.handle_error(meaning, sent) from None

    def _meaning(self, error: Exception, exchange: LiteLLMExchange) -> AttemptError:
        """Convert *error* to an attempt error.

        The outcome on the wire decides. litellm's classes count only without one, and
        if they are more specific than the status.
        """
        if exchange.failure is not None:
            return exchange.failure
        names = [kind.__name__ for kind in type(error).__mro__]
        meaning = next((MEANINGS[name] for name in names if name in MEANINGS), None)
        # litellm adds tracebacks and links from the second line on
        message = one_line(self._keys.mask(str(error).partition("\n")[0]))
        if exchange.status is None:
            if UNSERVED.search(message):
                return NotServed(f"{self._model}: {message}")
            return (meaning or BadRequest)(f"{self._model}: {message}")
        if httpx.codes.is_success(exchange.status):
            return MalformedReply(
                f"{exchange.endpoint}: the reply cannot be read ({message})",
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
        if isinstance(refused, BadRequest) and meaning in WORDED_ERRORS:
            return meaning(
                str(refused),
                status=refused.status,
                retry_after_s=refused.retry_after_s,
                body=refused.body,
            )
        return refused

    def statistics(self) -> ClientStatistics:
        """Return the client's figures."""
        return self._tally.statistics()

    async def close(self) -> None:
        """Close all connections."""
        for sender in self._senders.values():
            await sender.close()


def provider_of(model: str) -> str:
    """Return the provider of a model for display."""
    return model.partition("/")[0]


def _keyring(options: ClientOptions) -> Keyring:
    """Collect all values that could be keys; litellm may send any of them."""
    keys: list[Secret] = []
    for name, value in sorted(options.environment.items()):
        if CREDENTIAL.search(name):
            with suppress(UsageError):  # with blanks, it is never sent
                keys.append(Secret(value))
    return options.keys.with_also(*keys)


def _stored(request: Request, response: Any, received: bytes) -> tuple[str, bytes]:  # noqa: ANN401 - litellm's own classes
    """Return form and body to store: litellm's conversion, and the original reply.

    litellm drops content (the text of a reply that Gemini's filter stopped), and paid
    replies are kept unchanged. Most vectors and rankings arrive in their stored form,
    so the original would be a duplicate.
    """
    if isinstance(request, ChatRequest):
        body = response.model_dump_json(exclude_none=True, warnings="none").encode()
        return OPENAI_CHAT, _with_received(body, received)
    form = OPENAI_EMBEDDINGS if isinstance(request, EmbedRequest) else RERANK
    with suppress(MalformedReply):
        decode_reply(form, received)
        return form, received
    plain = response.model_dump(exclude_none=True, warnings="none")
    if form == OPENAI_EMBEDDINGS:
        rows = sorted(plain["data"], key=itemgetter("index"))
        counted = plain.get("usage", {}).get("prompt_tokens", 0)
        usage = Usage(tokens_in=counted, tokens_out=0)
        vectors = Vectors.of((row["embedding"] for row in rows), usage)
        body = encode_answer(vectors)[1]
    else:
        body = msgspec.json.encode(plain)
    return form, _with_received(body, received)


def _with_received(body: bytes, received: bytes) -> bytes:
    """Embed the original reply in litellm's conversion of it."""
    try:
        msgspec.json.decode(received)
    except UNREADABLE:
        received = msgspec.json.encode(received.decode(errors="replace"))
    return b'%s,"received":%s}' % (body[:-1], received)
