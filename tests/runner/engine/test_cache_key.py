"""Another question, another key: whatever may change the answer is in it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.clients.client import ClientOptions, Secret
from runner.clients.wire_shared import skeleton
from runner.engine.answer_cache import AnswerOrigin, cache_key, origin_of
from runner.errors import UsageError
from runner.messages import (
    ChatRequest,
    EmbedRequest,
    Message,
    Parameters,
    Request,
    RerankRequest,
    Schema,
    TextPart,
)

REQUEST = ChatRequest(
    messages=(
        Message(role="system", parts=(TextPart(text="be brief"),)),
        Message(
            role="user",
            parts=(TextPart(text="the paper"), TextPart(text="the question")),
        ),
    ),
    max_tokens=16,
    temperature=0.0,
    schema=Schema(name="s", json='{"type":"object"}'),
)
ORIGIN = AnswerOrigin(model="m", endpoint="http://x/v1", structured=True)

EMBED = EmbedRequest(texts=("a", "b"), dimensions=8, purpose="query")
RERANK = RerankRequest(query="q", documents=("a", "b"), top_n=1)

OTHER_CHATS: dict[str, tuple[object, ...]] = {
    "messages": (
        REQUEST.messages[:1],
        REQUEST.messages[::-1],
        (replace(REQUEST.messages[0], role="user"), REQUEST.messages[1]),
        (*REQUEST.messages, Message(role="user", parts=(TextPart(text=""),))),
    ),
    "max_tokens": (17,),
    "temperature": (None, 0.1, 1.0),
    "parameters": (
        Parameters(top_p=0.5),
        Parameters(seed=1),
        Parameters(reasoning_effort="low"),
        Parameters(thinking='{"type":"disabled"}'),
        Parameters(service_tier="flex"),
        Parameters(extra_body='{"a":1}'),
        Parameters(extra_headers=(("x-a", "1"),)),
        Parameters(absent=frozenset({"max_output_tokens"})),
    ),
    "schema": (
        None,
        Schema(name="t", json='{"type":"object"}'),
        Schema(name="s", json='{"type":"array"}'),
    ),
}
DERIVED = {"room"}
"""Follows from the model's name, which is in the key."""
OTHERS: dict[Request, dict[str, tuple[object, ...]]] = {
    REQUEST: OTHER_CHATS,
    EMBED: {
        "texts": (("a",), ("b", "a"), ("a", "b", ""), ("ab",)),
        "dimensions": (None, 9),
        "purpose": (None, "document"),
        "parameters": (Parameters(extra_body='{"a":1}'),),
    },
    RERANK: {
        "query": ("", "a"),
        "documents": (("b", "a"), ("a",), ("q", "b")),
        "top_n": (None, 2),
        "parameters": (Parameters(extra_body='{"a":1}'),),
    },
}
OTHER_ORIGINS: dict[str, tuple[Any, ...]] = {
    "model": ("n", "openai/m", ""),
    "endpoint": ("https://x/v1", "http://x:81/v1"),
    "structured": (False,),
    "api": ("responses",),
    "addresses": ((("AZURE_API_VERSION", "1"),), (("AZURE_API_VERSION", "2"),)),
}


def _key(
    request: Request = REQUEST, origin: AnswerOrigin = ORIGIN, replicate: int = 1
) -> bytes:
    sha256 = skeleton(request, origin.model).sha256
    return cache_key(origin, request_sha256=sha256, replicate=replicate)


def test_every_field_of_request_and_origin_changes_the_key() -> None:
    # a field that is added must be thought of here
    assert {type(request) for request in OTHERS} == set(get_args(Request))
    assert {field.name for field in fields(AnswerOrigin)} == set(OTHER_ORIGINS)
    keys = []
    for request, others in OTHERS.items():
        named = {field.name for field in fields(request)}
        assert named - DERIVED == set(others)
        keys.append(_key(request))
        for name, values in others.items():
            changed: Any = [{name: value} for value in values]
            keys += [_key(replace(request, **change)) for change in changed]
    for name, values in OTHER_ORIGINS.items():
        keys += [_key(origin=replace(ORIGIN, **{name: value})) for value in values]
    keys += [_key(replicate=2), _key(replicate=11)]
    assert len(set(keys)) == len(keys)


texts = st.lists(st.text(max_size=8), min_size=1, max_size=4)


@given(texts, texts)
def test_two_questions_share_a_key_only_if_their_parts_are_the_same(
    some: list[str], others: list[str]
) -> None:
    def ask(parts: list[str]) -> bytes:
        message = Message(role="user", parts=tuple(TextPart(text=p) for p in parts))
        return _key(replace(REQUEST, messages=(message,)))

    assert (ask(some) == ask(others)) == (some == others)


def test_the_hint_for_a_providers_own_cache_changes_nothing() -> None:
    hinted = replace(
        REQUEST,
        messages=tuple(
            replace(m, parts=tuple(replace(p, cache=True) for p in m.parts))
            for m in REQUEST.messages
        ),
    )
    assert _key(hinted) == _key()


@pytest.mark.parametrize("model", ["baseline/lexical", "recorded:answers.jsonl#m"])
def test_what_no_endpoint_answers_has_no_origin(model: str) -> None:
    assert origin_of(model, ClientOptions()) is None
    assert origin_of(model, ClientOptions(base_url="http://x")) is None


def test_an_address_counts_as_it_is_used_and_a_key_does_not_count() -> None:
    def origin(base_url: str | None, key: str | None = None) -> AnswerOrigin | None:
        secret = Secret(key) if key else None
        return origin_of("m", ClientOptions(base_url=base_url, api_key=secret))

    assert origin("http://x") == origin("http://x/v1/", "a-key") == ORIGIN
    assert origin("http://y") != ORIGIN
    direct = origin_of("openai/m", ClientOptions())
    assert direct is not None
    assert direct.endpoint == "https://api.openai.com/v1"
    with pytest.raises(UsageError):
        origin("http://me:word@x/v1")


def test_a_providers_origin_holds_the_variables_that_say_where_it_is() -> None:
    def origin(**environment: str) -> AnswerOrigin | None:
        return origin_of("azure/m", ClientOptions(environment=environment))

    plain = origin(AZURE_API_KEY="k")
    assert plain == AnswerOrigin(model="azure/m", endpoint="azure", structured=True)
    named = origin(AZURE_API_KEY="k", AZURE_API_BASE="https://a", AZURE_API_VERSION="1")
    assert named is not None
    assert named.addresses == (
        ("AZURE_API_BASE", "https://a"),
        ("AZURE_API_VERSION", "1"),
    )
    assert "k" not in {value for _, value in named.addresses}


def test_a_schema_that_is_not_sent_makes_another_question() -> None:
    spoken = origin_of("m", ClientOptions(base_url="http://x", structured=False))
    assert spoken == replace(ORIGIN, structured=False)
