"""Writes replies of all kinds, whole or as a stream of events, and sends them.

A body has no time (`created` is 0), so it never varies. A stream is written at once:
its events, but not its timing, match a provider's.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, assert_never

import msgspec
from aiohttp import web

from runner.messages import ChatRequest, Content, Ranking, Vectors
from runner.simulate.billing import BilledTokens
from runner.simulate.dialect import JSON, Dialect, ServedAnswer, of_responses
from runner.simulate.options import PlannedOutcome, RequestOutcome
from runner.simulate.requests import SimulatedRequest

EVENTS: Final = "text/event-stream"

_PIECE: Final = 24
"""Characters per chunk of a stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyDraft:
    """Generated content, before it is encoded in a dialect."""

    answers: tuple[Content, ...]  #: one for each requested choice
    finish: str  #: "stop", "length" or "content_filter"
    tokens: BilledTokens
    thoughts: str = ""  #: visible reasoning

    @property
    def texts(self) -> tuple[str, ...]:
        """The answers of a chat."""
        return tuple(answer for answer in self.answers if isinstance(answer, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenReply:
    """A reply's body."""

    body: bytes
    media: str = JSON
    tells_usage: bool = True  #: False: a stream without requested usage


ReplyWriter: TypeAlias = Callable[
    [Dialect, SimulatedRequest, str, ReplyDraft, ServedAnswer], WrittenReply
]


def pieces(text: str) -> Iterator[str]:
    """Yield the chunks of *text* in a stream."""
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]


def event(value: object, name: str = "") -> bytes:
    """Encode one server-sent event."""
    head = f"event: {name}\n".encode() if name else b""
    return head + b"data: " + msgspec.json.encode(value) + b"\n\n"


# -- chat ------------------------------------------------------------------------


def write_chat(
    row: Dialect,
    incoming: SimulatedRequest,
    digest: str,
    draft: ReplyDraft,
    served: ServedAnswer,
) -> WrittenReply:
    """Encode a chat completion, or its chunks."""
    body = _completion(row, incoming, digest, draft, served)
    if not incoming.is_streamed:
        return WrittenReply(body=msgspec.json.encode(body))
    options = incoming.fields.get("stream_options")
    wants = isinstance(options, dict) and options.get("include_usage") is True
    return WrittenReply(
        body=b"".join(_chunks(body, wants_usage=wants)),
        media=EVENTS,
        tells_usage=wants,
    )


def _completion(
    row: Dialect,
    incoming: SimulatedRequest,
    digest: str,
    draft: ReplyDraft,
    served: ServedAnswer,
) -> dict[str, Any]:
    """Return a chat completion in OpenAI's form, with the dialect's variations."""
    end = row.ends.get(draft.finish, draft.finish)
    if draft.finish == "content_filter" and _refuses_in_a_field(row, incoming):
        end = row.ends.get("stop", "stop")
    body: dict[str, Any] = {
        "id": f"chatcmpl-{digest[:24]}",
        "object": "chat.completion",
        "created": 0,
        "model": served.model,
        "choices": [
            {
                "index": index,
                "message": _message(row, incoming, draft, text),
                **({} if row.name == "plain" else {"logprobs": None}),
                "finish_reason": end,
            }
            for index, text in enumerate(draft.texts)
        ],
        **row.more(served),
    }
    usage = row.usage(served.tokens, served.cost)
    if usage is not None:
        body["usage"] = usage
    if row.reports_tier:
        # results of a batch are identified by their origin
        tier = None if served.tier == "batch" else served.tier
        body["service_tier"] = tier or "default"
    if served.fingerprint is not None:
        body["system_fingerprint"] = served.fingerprint
    return body


def _refuses_in_a_field(row: Dialect, incoming: SimulatedRequest) -> bool:
    """Return whether refusals have a field: OpenAI's, with a schema."""
    request = incoming.request
    return (
        row.name.startswith("openai")
        and isinstance(request, ChatRequest)
        and request.schema is not None
    )


def _message(
    row: Dialect, incoming: SimulatedRequest, draft: ReplyDraft, text: str
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    message_field = row.reasoning.message_field if draft.thoughts else ""
    if message_field == "think":
        closed = "" if draft.finish == "length" and not text else "\n</think>\n\n"
        text = f"<think>\n{draft.thoughts}{closed}{text}"
    elif message_field:
        message[message_field] = draft.thoughts
    if draft.finish == "content_filter" and _refuses_in_a_field(row, incoming):
        return message | {"content": None, "refusal": text}
    if draft.finish == "content_filter" and row.name not in {"plain", "openai"}:
        text = ""
    content: object = text or row.empty
    if row.is_in_parts and text:
        content = [{"type": "text", "text": text}]
    return message | {"content": content}


def _chunks(body: Mapping[str, Any], *, wants_usage: bool) -> Iterator[bytes]:
    """Yield the chunks of a stream: role, pieces, end, and usage if requested."""
    shared = {
        name: value
        for name, value in body.items()
        if name not in {"object", "choices", "usage"}
    } | {"object": "chat.completion.chunk"}

    def chunk(index: int, delta: Mapping[str, Any], end: object = None) -> bytes:
        choice = {"index": index, "delta": delta, "finish_reason": end}
        usage = {"usage": None} if wants_usage else {}
        return event({**shared, "choices": [choice], **usage})

    for choice in body["choices"]:
        index, message = choice["index"], choice["message"]
        yield chunk(index, {"role": "assistant", "content": ""})
        for name, value in message.items():
            if name == "role" or value is None:
                continue
            text = value if isinstance(value, str) else value[0]["text"]
            for piece in pieces(text):
                yield chunk(index, {name: piece})
        yield chunk(index, {}, choice["finish_reason"])
    if wants_usage:
        yield event({**shared, "choices": [], "usage": body.get("usage")})
    yield b"data: [DONE]\n\n"


# -- OpenAI's Responses API -------------------------------------------------------


def write_responses(
    row: Dialect,
    incoming: SimulatedRequest,
    digest: str,
    draft: ReplyDraft,
    served: ServedAnswer,
) -> WrittenReply:
    """Encode a response, or its events."""
    body = _response(row, incoming, digest, draft, served)
    if not incoming.is_streamed:
        return WrittenReply(body=msgspec.json.encode(body))
    return WrittenReply(body=b"".join(_response_events(body)), media=EVENTS)


def _response(
    row: Dialect,
    incoming: SimulatedRequest,
    digest: str,
    draft: ReplyDraft,
    served: ServedAnswer,
) -> dict[str, Any]:
    """Return a response as OpenAI formats it."""
    is_cut = draft.finish == "length"
    status = "incomplete" if is_cut else "completed"
    output: list[dict[str, Any]] = []
    if served.tokens.reasoning:
        output.append({"id": f"rs_{digest[:24]}", "type": "reasoning", "summary": []})
    text = draft.texts[0]
    if text or not is_cut:
        part: dict[str, Any] = {
            "type": "output_text",
            "annotations": [],
            "logprobs": [],
            "text": text,
        }
        if draft.finish == "content_filter":
            part = {"type": "refusal", "refusal": text}
        output.append(
            {
                "id": f"msg_{digest[:24]}",
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": [part],
            }
        )
    fields = incoming.fields
    return {
        "id": f"resp_{digest[:24]}",
        "object": "response",
        "created_at": 0,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "instructions": fields.get("instructions"),
        "max_output_tokens": fields.get("max_output_tokens"),
        "model": served.model,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": fields.get("reasoning") or {"effort": None, "summary": None},
        "service_tier": served.tier or "default",
        "store": fields.get("store", True),
        "temperature": fields.get("temperature", 1.0),
        "text": fields.get("text") or {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": fields.get("top_p", 1.0),
        "truncation": "disabled",
        "usage": of_responses(served.tokens),
        "metadata": fields.get("metadata") or {},
        **row.more(served),
    }


def _response_events(body: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the events of a response, numbered from 0."""
    number = 0

    def numbered(kind: str, **values: Any) -> bytes:
        nonlocal number
        sent = event({"type": kind, "sequence_number": number, **values}, kind)
        number += 1
        return sent

    begun = {**body, "status": "in_progress", "output": [], "usage": None}
    begun["incomplete_details"] = None
    yield numbered("response.created", response=begun)
    yield numbered("response.in_progress", response=begun)
    for index, item in enumerate(body["output"]):
        empty = {**item, **({"content": []} if "content" in item else {})}
        if "status" in item:
            empty["status"] = "in_progress"
        yield numbered("response.output_item.added", output_index=index, item=empty)
        for part in item.get("content", ()):
            at = {"item_id": item["id"], "output_index": index, "content_index": 0}
            kind = part["type"]
            field = "text" if kind == "output_text" else "refusal"
            yield numbered(
                "response.content_part.added", **at, part={**part, field: ""}
            )
            more: dict[str, Any] = {"logprobs": []} if kind == "output_text" else {}
            for piece in pieces(part[field]):
                yield numbered(f"response.{kind}.delta", **at, delta=piece, **more)
            yield numbered(
                f"response.{kind}.done", **at, **{field: part[field]}, **more
            )
            yield numbered("response.content_part.done", **at, part=part)
        yield numbered("response.output_item.done", output_index=index, item=item)
    yield numbered(f"response.{body['status']}", response=body)


# -- vectors and ranks ------------------------------------------------------------


def write_vectors(
    row: Dialect,
    incoming: SimulatedRequest,
    digest: str,
    draft: ReplyDraft,
    served: ServedAnswer,
) -> WrittenReply:
    """Encode vectors in OpenAI's form, or rankings in that of Cohere, Jina and vLLM."""
    tokens, answer = served.tokens.prompt, draft.answers[0]
    match answer:
        case Vectors():
            vectors: list[str] | list[tuple[float, ...]] = (
                [b64encode(vector).decode() for vector in answer.packed]
                if incoming.packed
                else answer.numbers()
            )
            body: dict[str, Any] = {
                "object": "list",
                "data": [
                    {"object": "embedding", "index": index, "embedding": vector}
                    for index, vector in enumerate(vectors)
                ],
                "model": served.model,
                "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
            }
        case Ranking():
            body = {
                "id": f"rerank-{digest[:24]}",
                "model": served.model,
                "results": [
                    {"index": document.index, "relevance_score": document.score}
                    for document in answer.results
                ],
                "usage": {"total_tokens": tokens},
            }
        case str():
            raise TypeError("a text is no vector")
        case _:
            assert_never(answer)
    return WrittenReply(body=msgspec.json.encode(body | dict(row.more(served))))


def model_body(name: str) -> dict[str, Any]:
    """Return the listing of a model."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "simulated"}


async def deliver(
    request: web.BaseRequest,
    reply: web.Response,
    planned: PlannedOutcome,
    note: Callable[[RequestOutcome], None],
) -> None:
    """Send *reply* and report its outcome.

    Args:
        request: The request.
        reply: The reply, unless a fault is planned.
        planned: The planned fault and delay.
        note: Receives the outcome before the first byte is sent, and `GONE` at the end
            if the client left.
    """
    outcome = planned.outcome
    try:
        await asyncio.sleep(planned.latency_s)
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError
        note(outcome)
        if outcome is RequestOutcome.HANG:
            await asyncio.Event().wait()
        if outcome is RequestOutcome.DROPPED:
            await _cut(request, reply, planned.shape)
            return
        # Drain waits for the last byte: "answered" means the complete reply.
        transport.set_write_buffer_limits(high=0)
        await reply.prepare(request)
        await reply.write_eof()
        if transport.is_closing():
            raise ConnectionResetError
    except (asyncio.CancelledError, ConnectionError) as error:
        if outcome is not RequestOutcome.HANG:
            note(RequestOutcome.GONE)
        if isinstance(error, asyncio.CancelledError):
            raise


async def _cut(request: web.BaseRequest, reply: web.Response, shape: float) -> None:
    """Close the connection before the reply or in its middle."""
    body = reply.body
    if shape < 0.5 and isinstance(body, bytes):  # noqa: PLR2004 - half of the cut ones
        half = web.StreamResponse(headers={"content-length": str(len(body))})
        await half.prepare(request)
        await half.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.abort()
