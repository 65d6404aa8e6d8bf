"""Sends an endpoint a few cheap requests to learn what it accepts and how it counts.

The calls go through the client, the ladder of refused parameters and the decoders that
a run uses, so a probe sees what a run would see. In order:

1. The request of a usual job: instructions, temperature 0, a token limit and a strict
   schema. Each refusal leads to the next rung of the ladder, as in a run. The prompt
   asks for plain words: only an endpoint that enforces the schema answers in JSON.
2. Further parameters that users set: `reasoning_effort`, `seed`, `top_p`.
3. A long answer with a short token limit, under each name of the limit, since an
   endpoint may accept a name and ignore it.

Never more than `MOST_PROBES` calls are made; anything beyond stays unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, Literal

import httpx

from runner.clients import Call, ClientOptions, ModelClient, Received
from runner.clients.client import Api
from runner.clients.fallbacks import Fallbacks
from runner.clients.http_client import OPENAI_URL, OpenAICompatibleClient, endpoint_url
from runner.clients.refusals import FORMAT, LIMITS, error_body
from runner.clients.wire_shared import Structure
from runner.endpoint_report import (
    ProbedParameter,
    ProbeEvidence,
    ProbeReport,
    SchemaSupport,
    State,
    guess,
    reasoning_place,
    usage_fields,
)
from runner.errors import AttemptError, BadRequest, FormRefused, ServerError
from runner.job import Task
from runner.limits.rate_limits import header_limits
from runner.messages import ChatRequest, Message, Parameters, Reply, Schema, TextPart
from runner.model_terms import ModelTerms, family_of
from runner.money.tokens import worst_output, worst_prompt
from store.served_by import with_headers

MOST_PROBES: Final = 8
"""Maximum calls of one probe, refused ones included."""

MOST_OUTPUT: Final = 256
"""Maximum output tokens of a call, except one."""

MORE_OUTPUT: Final = 1024
"""Limit of one further call if `MOST_OUTPUT` truncated the reply: enough for most
models to reason about a one-line question and answer it."""

SHORT_OUTPUT: Final = 16
"""Limit of the calls that test whether limits work; OpenAI's Responses form refuses
smaller ones."""

CHARS_PER_TOKEN: Final = 8
"""More than a token of numbers and commas has: a longer text exceeds its limit."""

_SCHEMA: Final = Schema(
    name="even_numbers",
    json='{"additionalProperties":false,"properties":{"count":{"type":"integer"},'
    '"even":{"items":{"type":"integer"},"type":"array"}},"required":["count","even"],'
    '"type":"object"}',
)
_FIELDS: Final = {"count", "even"}


def _message(role: Literal["system", "user"], text: str) -> Message:
    return Message(role=role, parts=(TextPart(text=text),))


_RULES: Final = _message(
    "system", "Answer in one short sentence of plain words, not in JSON."
)
USUAL: Final = ChatRequest(
    messages=(_RULES, _message("user", "Which of the numbers 3, 8 and 14 are even?")),
    max_tokens=MOST_OUTPUT,
    temperature=0.0,
    schema=_SCHEMA,
)
ROOMY: Final = replace(USUAL, max_tokens=MORE_OUTPUT)
TUNED: Final = replace(
    USUAL,
    schema=None,
    temperature=None,
    parameters=Parameters(reasoning_effort="low", seed=1, top_p=0.9),
)
LONG: Final = ChatRequest(
    messages=(
        _message("user", "Write the numbers from 1 to 300, separated by commas."),
    ),
    max_tokens=SHORT_OUTPUT,
    temperature=None,
)


def most_tokens() -> tuple[int, int]:
    """Return the maximum prompt and output tokens of a probe."""
    prompt = max(map(worst_prompt, (USUAL, TUNED, LONG)))
    output = (MOST_PROBES - 1) * worst_output(USUAL) + worst_output(ROOMY)
    return MOST_PROBES * prompt, output


class Probe:
    """Probes one model at one OpenAI-compatible endpoint."""

    def __init__(
        self, model: str, options: ClientOptions, *, is_form_free: bool
    ) -> None:
        """Prepare; nothing is sent.

        Args:
            model: as `--model` takes it.
            options: options of the client; they must log every header.
            is_form_free: try the Responses form if there are no chats.
        """
        self._model = model
        self._options = options
        self._is_form_free = is_form_free
        self._endpoint = endpoint_url(options.base_url or OPENAI_URL)
        terms = ModelTerms(family=family_of(model))
        self._ladder = Fallbacks(self._endpoint, model, terms=terms)
        self._client: ModelClient = self._opened(options.api)
        self._api: Api = options.api
        self._calls = 0
        self._received: list[Received] = []
        self._latencies_ms: list[int] = []
        self._errors: list[AttemptError] = []
        self._parameters: dict[str, ProbedParameter] = {}

    def _opened(self, api: Api) -> ModelClient:
        options = replace(self._options, api=api, ladder=self._ladder)
        return OpenAICompatibleClient(self._model.removeprefix("openai/"), options)

    async def run(self) -> ProbeReport:
        """Make the calls and report."""
        try:
            answer, problem = await self._settled(USUAL)
            if answer is None:
                return self._report(problem=str(problem or "no call was answered"))
            if _is_cut(answer) and not self._is_spent:
                outcome = await self._call(ROOMY)
                answer = outcome if isinstance(outcome, Received) else answer
            schema, words = self._schema_support(answer)
            await self._tuned()
            await self._limits()
            return self._report(schema=schema, schema_words=words)
        finally:
            await self._client.close()

    # -- calls -----------------------------------------------------------------

    @property
    def _is_spent(self) -> bool:
        return self._calls >= MOST_PROBES

    async def _call(self, request: ChatRequest) -> Received | AttemptError:
        """Send one request; record its parameters, latency and outcome."""
        self._calls += 1
        sent = self._ladder.sent(request)
        task = Task(
            number=1, stage="doctor", key="probe", model=self._model, replicate=1
        )
        clock = self._options.clock
        began = clock.monotonic()
        try:
            received = await self._client.call(Call(task=task, request=request))
        except AttemptError as error:
            self._errors.append(error)
            self._note_refusals()
            return error
        self._latencies_ms.append(round(1000 * (clock.monotonic() - began)))
        self._received.append(received)
        self._note_refusals()
        for name in sent.names:
            parameter_name = (
                "max_output_tokens" if name in LIMITS and self._has_responses else name
            )
            if name != FORMAT:
                accepted = ProbedParameter(name=parameter_name, state="accepted")
                self._parameters.setdefault(parameter_name, accepted)
        return received

    @property
    def _has_responses(self) -> bool:
        return self._api == "responses"

    def _note_refusals(self) -> None:
        for fact in self._ladder.take_facts():
            if fact.name == FORMAT:
                continue
            state: State = "refused" if fact.how == "refused" else "not sent"
            words = fact.words if state == "refused" else f"{fact.how}: {fact.words}"
            if fact.instead is not None:
                words = f"{words} (sent as {fact.instead} instead)"
            self._parameters[fact.name] = ProbedParameter(
                name=fact.name, state=state, words=words
            )

    async def _settled(
        self, request: ChatRequest
    ) -> tuple[Received | None, AttemptError | None]:
        """Return the first answer while parameters fall back, or the last error."""
        failure: AttemptError | None = None
        while not self._is_spent:
            outcome = await self._call(request)
            if isinstance(outcome, Received):
                return outcome, None
            failure = outcome
            if isinstance(outcome, FormRefused):
                continue
            if self._lacks_chats(outcome):
                await self._client.close()
                self._api = "responses"
                self._client = self._opened(self._api)
                continue
            if isinstance(outcome, ServerError) and self._is_schema_sent(request):
                # some servers fail on a schema that they do not support
                self._ladder.disable_schema()
                continue
            return None, failure
        return None, failure

    def _is_schema_sent(self, request: ChatRequest) -> bool:
        has_form = self._ladder.shape.structure is not Structure.TEXT
        return request.schema is not None and has_form

    def _lacks_chats(self, error: AttemptError) -> bool:
        """Return whether the endpoint may serve the other form instead."""
        if self._has_responses or not self._is_form_free or self._received:
            return False
        words = error_body(error.body).words if error.body else ""
        return error.status in {404, 405} and (
            "responses" in words or "model" not in words.lower()
        )

    # -- tests ------------------------------------------------------------------

    def _schema_support(self, answer: Received) -> tuple[SchemaSupport, str]:
        """Return how far the endpoint enforces a schema."""
        shape, reply = self._ladder.shape, answer.reply
        assert isinstance(reply, Reply)  # noqa: S101 - a chat was asked for
        if shape.structure is Structure.TEXT:
            about_form = [e for e in self._errors if isinstance(e, FormRefused)]
            return "refused", str((about_form or self._errors)[-1])
        fits = _fits(reply.text)
        if fits is None and reply.is_truncated:
            return "unknown", f"replies were cut at up to {MORE_OUTPUT} tokens"
        if shape.structure is Structure.OBJECT:
            followed = "a schema was refused, json_object was followed"
            ignored = "json_object was accepted, but the reply is not JSON"
            return ("ignored", ignored) if fits is None else ("json_object", followed)
        if not fits:
            defect = "is no JSON" if fits is None else "does not fit it"
            return "ignored", f"the schema was accepted, and the reply {defect}"
        if shape.structure is Structure.LOOSE:
            return "schema", "the reply follows it; strict was refused"
        return "strict", "the reply follows it"

    async def _tuned(self) -> None:
        """Send further parameters until they are accepted or no call is left."""
        while not self._is_spent:
            outcome = await self._call(TUNED)
            if isinstance(outcome, FormRefused):
                continue
            if isinstance(outcome, AttemptError):
                words = f"in one call: {outcome}"
                for name in ("reasoning_effort", "seed", "top_p"):
                    unknown = ProbedParameter(name=name, state="unknown", words=words)
                    self._parameters.setdefault(name, unknown)
            return

    async def _limits(self) -> None:
        """Send a short limit under each of its names."""
        usual = self._ladder.shape
        names = [usual.limit] if usual.limit is not None else []
        if not self._has_responses:
            names += [name for name in LIMITS if name != usual.limit]
        for name in names:
            parameter_name = "max_output_tokens" if self._has_responses else name
            refused = self._parameters.get(parameter_name)
            if self._is_spent or (refused is not None and refused.state == "refused"):
                continue
            self._ladder.shape = replace(usual, limit=name)
            outcome = await self._call(LONG)
            self._ladder.shape = usual
            if isinstance(outcome, Received):
                self._parameters[parameter_name] = _probed_limit(
                    parameter_name, outcome
                )
            elif parameter_name not in self._parameters:
                state: State = (
                    "refused"
                    if isinstance(outcome, BadRequest | FormRefused)
                    else "unknown"
                )
                self._parameters[parameter_name] = ProbedParameter(
                    name=parameter_name, state=state, words=str(outcome)
                )

    # -- the report ------------------------------------------------------------

    def _report(
        self,
        *,
        problem: str | None = None,
        schema: SchemaSupport = "unknown",
        schema_words: str = "",
    ) -> ProbeReport:
        headers: dict[str, str] = {}
        for error in self._errors:
            headers |= error.headers or {}
        for received in self._received:
            headers |= received.headers or {}
        replies = tuple(_json(received.body) for received in self._received)
        errors = tuple(_json(error.body) for error in self._errors if error.body)
        evidence = ProbeEvidence(
            host=httpx.URL(self._endpoint).host,
            headers=headers,
            replies=replies,
            errors=errors,
        )
        limits = header_limits(headers, now_us=self._options.clock.now_us())
        usages = [received.reply.usage for received in self._received]
        counted = [usage for usage in usages if usage is not None]
        return ProbeReport(
            endpoint=self._endpoint,
            model=self._model,
            api=self._api,
            calls=self._calls,
            problem=problem,
            dialect=guess(evidence),
            parameters=tuple(
                self._parameters[name] for name in sorted(self._parameters)
            ),
            schema=schema,
            schema_words=schema_words,
            usage_fields=usage_fields(replies),
            reasoning=reasoning_place(replies, counted),
            rpm=limits.requests.per_minute if limits.requests else None,
            tpm=limits.tokens.per_minute if limits.tokens else None,
            limit_headers=tuple(
                (name, value)
                for name, value in sorted(headers.items())
                # a proxy forwards the provider's headers under this prefix
                if ("ratelimit" in name and not name.startswith("llm_provider-"))
                or name.startswith("retry-after")
            ),
            latencies_ms=tuple(self._latencies_ms),
            served=tuple(dict.fromkeys(self._served())),
            tokens_in=sum(usage.tokens_in for usage in counted),
            tokens_out=sum(usage.tokens_out for usage in counted),
            uncounted=len(usages) - len(counted),
        )

    def _served(self) -> Iterator[tuple[str, str]]:
        for received in self._received:
            served = with_headers(received.reply.served, received.headers or {})
            if served is None:
                continue
            for name in ("model", "fingerprint", "provider", "region", "tier"):
                value = getattr(served, name)
                if value is not None:
                    yield name, value


def _fits(text: str) -> bool | None:
    """Return whether a text matches the probe's schema; None: it is not JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return isinstance(value, dict) and set(value) == _FIELDS


def _probed_limit(name: str, received: Received) -> ProbedParameter:
    """Return whether a reply stayed within `SHORT_OUTPUT` tokens."""
    reply = received.reply
    assert isinstance(reply, Reply)  # noqa: S101 - a chat was asked for
    usage = reply.usage
    if usage is not None and usage.tokens_out > SHORT_OUTPUT:
        words = f"{usage.tokens_out} tokens came where {SHORT_OUTPUT} were set"
        if usage.tokens_out - usage.tokens_reasoning > SHORT_OUTPUT:
            return ProbedParameter(name=name, state="ignored", words=words)
        words = f"{words}: it is ignored, or does not bound reasoning"
        return ProbedParameter(name=name, state="ignored", words=words)
    if len(reply.text) > SHORT_OUTPUT * CHARS_PER_TOKEN:
        words = f"{len(reply.text)} letters came where {SHORT_OUTPUT} tokens were set"
        return ProbedParameter(name=name, state="ignored", words=words)
    words = "and kept to"
    if not reply.is_truncated:
        words = "whether it is kept to is unknown: the reply was short"
    return ProbedParameter(name=name, state="accepted", words=words)


def _is_cut(received: Received) -> bool:
    """Return whether a reply was truncated before it was useful."""
    reply = received.reply
    return isinstance(reply, Reply) and reply.is_truncated and _fits(reply.text) is None


def _json(body: bytes | None) -> Any:  # noqa: ANN401 - JSON
    with suppress(ValueError, RecursionError):
        return json.loads(body or b"null")
    return None
