"""Parameters of requests: from what people write to what is hashed and sent."""

from __future__ import annotations

import json

import pytest

from runner.clients.wire import encode_embed, encode_messages, encode_rerank
from runner.clients.wire_openai import encode_chat, encode_responses
from runner.clients.wire_shared import skeleton
from runner.errors import UsageError
from runner.job import Task
from runner.messages import (
    NOTHING_SET,
    ChatRequest,
    EmbedRequest,
    Message,
    Parameters,
    RerankRequest,
    TextPart,
)
from runner.model_terms import USUAL_ROOM, terms_of
from runner.options import options_from, toml_of
from tests.replacing import replace
from tests.runner.toy_jobs import ToyJob, ToySettings

PIN = {"provider": {"order": ["Together"], "allow_fallbacks": False}}
TEMPLATE = {"chat_template_kwargs": {"enable_thinking": False}}

REQUEST = ChatRequest(
    messages=(Message(role="user", parts=(TextPart(text="Which?"),)),), max_tokens=9
)
TASK = Task(number=1, stage="extract", key="k1", model="m", replicate=1)


def parameters(**values: object) -> Parameters:
    return options_from({"model": "m", **values}).parameters_of("m")


def sent(asked: Parameters) -> dict[str, object]:
    body: dict[str, object] = json.loads(
        encode_chat(replace(REQUEST, parameters=asked), "m")
    )
    return body


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ({"top_p": 0.5}, {"top_p": 0.5}),
        ({"top_p": "0.5"}, {"top_p": 0.5}),
        ({"model_seed": 7}, {"seed": 7}),
        ({"reasoning_effort": "none"}, {"reasoning_effort": "none"}),
        ({"thinking": {"type": "disabled"}}, {"thinking": {"type": "disabled"}}),
        ({"service_tier": "flex"}, {"service_tier": "flex"}),
        ({"service_tier": "none"}, {}),
        ({"extra_body": PIN}, PIN),
        ({"extra_body": json.dumps(TEMPLATE)}, TEMPLATE),
        ({"extra_body": {"stop": None, "a": {}}}, {"stop": None, "a": {}}),
        (
            {"extra_body": PIN, "models": {"m": {"extra_body": TEMPLATE}}},
            PIN | TEMPLATE,
        ),
        ({"models": {"m": {"seed": 3}}, "model_seed": 7}, {"seed": 3}),
        ({"models": {"m": {"seed": "none"}}, "model_seed": 7}, {}),
        ({"top_p": 0.5, "models": {"m": {"top_p": "none"}}}, {}),
    ],
)
def test_what_is_set_is_a_field_of_the_body_and_part_of_the_hash(
    values: dict[str, object], fields: dict[str, object]
) -> None:
    found = parameters(**values)
    plain = sent(NOTHING_SET)
    assert sent(found) == plain | fields
    before = skeleton(REQUEST, "m").sha256
    assert (skeleton(replace(REQUEST, parameters=found), "m").sha256 == before) is (
        not fields
    )


@pytest.mark.parametrize("as_text", [False, True])
def test_further_fields_are_sent_in_the_order_in_which_they_are_written(
    *, as_text: bool
) -> None:
    form = {"properties": {"reason": {}, "answer": {}}, "additionalProperties": False}
    body = {"guided_json": form, "a": 1}
    found = parameters(extra_body=json.dumps(body) if as_text else body)
    written = json.dumps(body, separators=(",", ":"))[1:-1]
    chat = replace(REQUEST, parameters=found)
    for encode in (encode_chat, encode_responses, encode_messages):
        assert written.encode() in encode(chat, "m")


def test_a_request_without_any_of_them_keeps_the_hash_of_earlier_siftlogs() -> None:
    # seen in version 0.9's logs
    assert json.loads(skeleton(REQUEST, "m").body).keys() == {
        "model",
        "max_tokens",
        "temperature",
        "schema",
        "messages",
    }
    roomy = replace(REQUEST, room=25_000)
    assert skeleton(roomy, "m").sha256 == skeleton(REQUEST, "m").sha256


def test_all_forms_carry_further_fields() -> None:
    pinned = parameters(extra_body=PIN)
    chat = replace(REQUEST, parameters=pinned)
    assert json.loads(encode_messages(chat, "m"))["provider"] == PIN["provider"]
    embed = EmbedRequest(texts=("a",), parameters=pinned)
    assert json.loads(encode_embed(embed, "m", packed=True)).items() >= PIN.items()
    rank = RerankRequest(query="q", documents=("a",), parameters=pinned)
    assert json.loads(encode_rerank(rank, "m")).items() >= PIN.items()
    assert (
        skeleton(embed, "m").sha256 != skeleton(EmbedRequest(texts=("a",)), "m").sha256
    )


def test_a_secret_in_a_header_is_no_part_of_the_hash_and_a_literal_is() -> None:
    def digest(headers: dict[str, str]) -> str:
        given = parameters(extra_headers=headers)
        return skeleton(replace(REQUEST, parameters=given), "m").sha256

    assert digest({"X-Key": "env:ONE"}) == digest({"x-key": "env:TWO"})
    assert digest({"X-Key": "Bearer env:ONE"}) != digest({})
    assert digest({"X-Title": "a"}) != digest({"X-Title": "b"})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("extra_body", {"messages": []}, "may not set 'messages'"),
        ("extra_body", {"max_tokens": 5}, "write it as max_output_tokens"),
        ("extra_body", {"n": 2}, "--replicates"),
        ("extra_body", {"stream": True}, "read whole"),
        ("extra_body", "[1]", "not an object"),
        ("extra_body", "{", "not JSON"),
        ("extra_headers", {"Authorization": "Bearer sk-1"}, "holds a secret"),
        ("extra_headers", {"X-Api-Key": "sk-1"}, "holds a secret"),
        ("extra_headers", {"Host": "a"}, "cannot be set"),
        ("extra_headers", {"X a": "a"}, "cannot be set"),
        ("extra_headers", {"X-A": "a\nb"}, "not a line"),
        ("temperature", -1, "temperature"),
        ("temperature", "warm", "temperature"),
        ("top_p", 2, "top_p"),
        ("reasoning_effort", "very high", "one word"),
    ],
)
def test_what_cannot_be_sent_is_a_usage_error(
    name: str, value: object, said: str
) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        parameters(**{name: value})
    assert "sk-1" not in str(raised.value)


def test_the_written_configuration_says_the_same_again() -> None:
    options = options_from(
        {
            "model": ["m", "n"],
            "temperature": "none",
            "extra_body": {"stop": None, "a": {}},
            "extra_headers": {"X-Key": "env:ONE"},
            "models": {"m": {"extra_body": PIN, "seed": 3}},
        }
    )
    import tomllib  # noqa: PLC0415 - of this test alone

    text = toml_of(job="toy", options=options, settings={})
    again = options_from(
        {k: v for k, v in tomllib.loads(text).items() if k not in {"job", "settings"}}
    )
    assert again == options
    assert again.parameters_of("m") == options.parameters_of("m")


def request(
    asked: Parameters, *, model: str = "m", most: int | None = None
) -> ChatRequest:
    terms = terms_of(model, asked, most_output=most)
    job = ToyJob()
    made = terms.request(job, ToySettings(items=1), replace(TASK, model=model))
    assert isinstance(made, ChatRequest)
    return made


def test_temperature_and_limit_outrank_the_jobs_own() -> None:
    assert request(parameters(temperature=0.7)).temperature == 0.7
    assert request(parameters(temperature="none")).temperature is None
    assert request(parameters(max_output_tokens=77)).max_tokens == 77


def test_no_limit_at_all_reserves_the_models_own() -> None:
    made = request(parameters(max_output_tokens="none"), most=4096)
    assert made.limit == 4096
    assert "max_tokens" not in json.loads(encode_chat(made, "m"))
    with pytest.raises(UsageError, match="maximum output"):
        request(parameters(max_output_tokens="none"))


@pytest.mark.parametrize(
    ("values", "model", "most", "room"),
    [
        ({}, "m", None, 0),
        ({}, "o3", None, USUAL_ROOM),
        ({}, "gemini/gemini-2.5-pro", None, USUAL_ROOM),
        ({"reasoning_effort": "low"}, "o3", None, 8000),
        ({"reasoning_effort": "low"}, "m", None, 8000),
        ({"reasoning_effort": "none"}, "gpt-5.1", None, 0),
        ({"thinking": {"type": "enabled", "budget_tokens": 4000}}, "m", None, 4000),
        ({"thinking": {"type": "disabled"}}, "gpt-5", None, 0),
        ({"max_output_tokens": 50}, "o3", None, 0),
        ({}, "o3", 1000, 1000 - 16),
    ],
)
def test_a_model_that_reasons_has_room_for_it_in_its_limit(
    values: dict[str, object], model: str, most: int | None, room: int
) -> None:
    given = options_from({"model": model, **values}).parameters_of(model)
    made = request(given, model=model, most=most)
    assert made.room == room
    body = json.loads(encode_chat(made, model))
    assert body["max_tokens"] == made.limit == made.max_tokens + room
