"""Every rung of the ladder, in the words of the servers that refuse it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from runner import errors as e
from runner.clients.fallbacks import IGNORED, REFUSED_BY_FAMILY, Fallbacks
from runner.clients.refusals import SentFields, refusal
from runner.clients.wire_openai import encode_chat
from runner.clients.wire_shared import Shape, Structure
from runner.messages import (
    ChatRequest,
    EmbedRequest,
    Message,
    Parameters,
    Reply,
    Schema,
    TextPart,
)
from runner.model_terms import ModelTerms, terms_of

ENDPOINT = "http://host/v1"
REQUEST = ChatRequest(
    messages=(
        Message(role="system", parts=(TextPart(text="Be brief."),)),
        Message(role="user", parts=(TextPart(text="Which drug?"),)),
    ),
    max_tokens=100,
    schema=Schema(
        name="drug",
        json='{"properties":{"n":{"minimum":0,"type":"integer"}},"type":"object"}',
    ),
)


def openai(message: str, **fields: object) -> dict[str, object]:
    return {"error": {"message": message, "type": "invalid_request_error", **fields}}


def vllm(message: str) -> dict[str, object]:
    return {"object": "error", "message": message, "type": "BadRequestError"}


def fastapi(name: str, what: str = "extra_forbidden") -> dict[str, object]:
    sent = {"model": "m", "temperature": 0, "seed": 1, "max_tokens": 9}
    fault = {"type": what, "loc": ["body", name], "msg": "Not permitted", "input": sent}
    return {"detail": [fault]}


NO_LIMIT = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead."
)
NO_TEMPERATURE = (
    "Unsupported value: 'temperature' does not support 0.0 with this model. Only the "
    "default (1) value is supported."
)

REFUSALS: list[tuple[int, object, dict[str, object]]] = [
    # temperature
    (
        400,
        openai(NO_TEMPERATURE, param="temperature", code="unsupported_value"),
        {"omitted": frozenset({"temperature"})},
    ),
    (
        400,
        {"error": "temperature is not supported by this model"},
        {"omitted": frozenset({"temperature"})},
    ),
    (422, fastapi("temperature"), {"omitted": frozenset({"temperature"})}),
    (
        422,
        {"message": {"detail": [{"loc": ["body", "temperature"], "msg": "extra"}]}},
        {"omitted": frozenset({"temperature"})},
    ),
    (
        400,
        vllm(
            "[{'type': 'extra_forbidden', 'loc': ('body', 'temperature'), 'msg': "
            "'Extra inputs are not permitted', 'input': 0.0}]"
        ),
        {"omitted": frozenset({"temperature"})},
    ),
    (
        422,
        {"error": "Input validation error: `temperature` must be strictly positive"},
        {"omitted": frozenset({"temperature"})},
    ),
    (
        400,
        b"temperature is deprecated for this model.",
        {"omitted": frozenset({"temperature"})},
    ),
    # the name of the token limit, alone and with what it tells of the family
    (
        400,
        openai(NO_LIMIT, param="max_tokens", code="unsupported_parameter"),
        {
            "limit": "max_completion_tokens",
            "omitted": frozenset({"temperature"}),
        },
    ),
    (
        400,
        {"message": "Unknown field max_tokens"},
        {"limit": "max_completion_tokens"},
    ),
    (422, fastapi("max_tokens"), {"limit": "max_completion_tokens"}),
    # the reply's form
    (
        400,
        openai("This response_format type is unavailable now"),
        {"structure": Structure.OBJECT},
    ),
    (
        400,
        openai(
            "Invalid schema for response_format 'drug': In context=(), "
            "'additionalProperties' is required to be supplied and to be false.",
            param="response_format",
        ),
        {"structure": Structure.LOOSE},
    ),
    (
        400,
        vllm("The provided JSON schema contains features not supported by xgrammar."),
        {"plain_schema": True},
    ),
    (
        400,
        openai(
            "output_config.format.schema: For 'integer' type, property 'minimum' "
            "is not supported"
        ),
        {"plain_schema": True},
    ),
    (422, fastapi("response_format"), {"structure": Structure.OBJECT}),
    # the role of instructions
    (
        400,
        openai(
            "Unsupported value: 'messages[0].role' does not support 'system' with this "
            "model.",
            param="messages[0].role",
            code="unsupported_value",
        ),
        {"system": "developer"},
    ),
    (400, vllm("System role not supported"), {"system": "developer"}),
    (
        400,
        {"error": {"code": 400, "message": "Developer instruction is not enabled"}},
        {"system": "user"},
    ),
    (
        400,
        vllm("Conversation roles must alternate user/assistant/user/assistant/..."),
        {"system": "user"},
    ),
]


def refused(status: int, body: object) -> e.AttemptError:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return refusal(ENDPOINT, status, {}, content, now_us=0)


def after(
    ladder: Fallbacks, status: int, body: object, request: object = REQUEST
) -> e.AttemptError:
    sent = ladder.sent(request)  # type: ignore[arg-type]
    return ladder.handle_error(refused(status, body), sent)


@pytest.mark.parametrize(("status", "body", "changed"), REFUSALS)
def test_a_refusal_leaves_one_rung_for_the_next_and_is_a_fact(
    status: int, body: object, changed: dict[str, object]
) -> None:
    ladder = Fallbacks(ENDPOINT, "m")
    error = after(ladder, status, body)
    assert type(error) is e.FormRefused
    assert ladder.shape == replace(Shape(), **changed)  # type: ignore[arg-type]
    facts = ladder.take_facts()
    assert facts
    assert all((fact.endpoint, fact.model) == (ENDPOINT, "m") for fact in facts)
    refused = [fact for fact in facts if fact.how == "refused"]
    assert refused
    assert all(fact.words and fact.words in str(error) for fact in refused)
    # what follows from a refusal is said in words of ours
    assert all(fact.words for fact in facts)
    assert not ladder.take_facts()

    later = Fallbacks(ENDPOINT, "m")
    later.restore(facts)
    assert later.shape == ladder.shape
    elsewhere = Fallbacks("http://other/v1", "m")
    elsewhere.restore(facts)
    assert elsewhere.shape == Shape()


@pytest.mark.parametrize(("status", "body", "changed"), REFUSALS)
def test_refusals_of_calls_in_flight_take_no_further_step(
    status: int, body: object, changed: dict[str, object]
) -> None:
    ladder = Fallbacks(ENDPOINT, "m")
    sent = ladder.sent(REQUEST)
    for _ in range(256):
        error = ladder.handle_error(refused(status, body), sent)
        assert type(error) is e.FormRefused
    assert ladder.shape == replace(Shape(), **changed)  # type: ignore[arg-type]
    assert len(ladder.take_facts()) <= 2


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, openai("Invalid model name", param="model")),
        (400, openai("max_tokens is too large: 9. This model supports at most 5.")),
        (400, openai("Provider returned error")),
        (400, openai("the prompt holds the word temperature")),
        (422, {"detail": [{"loc": ["body", "messages"], "msg": "Field required"}]}),
        (500, openai("temperature is not supported")),
        (404, {"detail": "Not Found"}),
    ],
)
def test_what_names_no_parameter_is_left_to_its_own_class(
    status: int, body: object
) -> None:
    ladder, before = Fallbacks(ENDPOINT, "m"), refused(status, body)
    assert type(after(ladder, status, body)) is type(before)
    assert ladder.shape == Shape()
    assert not ladder.take_facts()


def rungs(ladder: Fallbacks, status: int, body: object) -> Iterator[Shape]:
    for _ in range(9):
        yield ladder.shape
        if type(after(ladder, status, body)) is not e.FormRefused:
            return


def test_a_reply_of_no_form_at_all_is_the_last_rung() -> None:
    body = openai("response_format: strict json_schema with minimum is unsupported")
    found = [
        (shape.structure, shape.plain_schema)
        for shape in rungs(Fallbacks(ENDPOINT, "m"), 400, body)
    ]
    assert found == [
        (Structure.SCHEMA, False),
        (Structure.LOOSE, False),
        (Structure.LOOSE, True),
        (Structure.OBJECT, True),
        (Structure.TEXT, True),
    ]


def test_instructions_end_in_the_first_question() -> None:
    ladder = Fallbacks(ENDPOINT, "m")
    found = [s.system for s in rungs(ladder, 400, vllm("System role not supported"))]
    assert found == ["system", "developer", "user"]
    body = json.loads(encode_chat(REQUEST, "m", ladder.shape))
    assert body["messages"] == [{"role": "user", "content": "Be brief.\n\nWhich drug?"}]


@pytest.mark.parametrize("most", [None, 4096])
def test_without_any_limit_the_models_own_must_be_known(most: int | None) -> None:
    ladder = Fallbacks(ENDPOINT, "m", terms=ModelTerms(most_output=most))
    assert type(after(ladder, 422, fastapi("max_tokens"))) is e.FormRefused
    error = after(ladder, 422, fastapi("max_completion_tokens"))
    assert type(error) is (e.BadRequest if most is None else e.FormRefused)
    assert ladder.shape.limit == ("max_completion_tokens" if most is None else None)
    assert ladder.most_output == most
    again = Fallbacks(ENDPOINT, "m", terms=ModelTerms(most_output=most))
    again.restore(ladder.take_facts())
    assert again.shape == ladder.shape


def explicit(**values: object) -> ModelTerms:
    given = Parameters(**values)  # type: ignore[arg-type]
    return terms_of("m", given, most_output=None)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"temperature": 0.7}, "temperature"),
        ({"seed": 1}, "seed"),
        ({"top_p": 0.5}, "top_p"),
        ({"service_tier": "flex"}, "service_tier"),
        ({"extra_body": '{"stop":["x"]}'}, "stop"),
        ({"extra_body": '{"logprobs":true}'}, "logprobs"),
        ({"extra_body": '{"chat_template_kwargs":{}}'}, "chat_template_kwargs"),
    ],
)
def test_what_a_person_set_stops_the_endpoint_unless_it_may_be_dropped(
    values: dict[str, object], name: str
) -> None:
    terms = explicit(**values)
    parameters = replace(terms.parameters, temperature=None)
    request = replace(REQUEST, parameters=parameters, temperature=0.7)
    body = openai(f"Unsupported parameter: '{name}' is not supported here")
    ladder = Fallbacks(ENDPOINT, "m", terms=terms)
    error = after(ladder, 400, body, request)
    assert type(error) is e.OptionRefused
    assert f"does not take {name}, which was set for m" in str(error)
    assert "is not supported here" in str(error)
    assert (ladder.shape, ladder.take_facts()) == (Shape(), [])

    dropping = Fallbacks(ENDPOINT, "m", terms=terms, drops=True)
    assert type(after(dropping, 400, body, request)) is e.FormRefused
    assert dropping.shape.omitted == {name}
    assert name not in json.loads(encode_chat(request, "m", dropping.shape))


@pytest.mark.parametrize("model", ["o3", "openai/gpt-5-mini", "x/openai/o4-mini"])
def test_a_known_family_begins_on_the_right_rung(model: str) -> None:
    ladder = Fallbacks(
        ENDPOINT, model, terms=terms_of(model, Parameters(), most_output=None)
    )
    ladder.sent(REQUEST)
    body = json.loads(encode_chat(REQUEST, model, ladder.shape))
    assert "temperature" not in body
    assert body["max_completion_tokens"] == 100
    (fact,) = ladder.take_facts()
    assert (fact.name, fact.how) == ("temperature", REFUSED_BY_FAMILY)


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5-chat-latest", "foo3", "claude-5"])
def test_other_models_begin_with_what_most_endpoints_take(model: str) -> None:
    terms = terms_of(model, Parameters(), most_output=None)
    assert Fallbacks(ENDPOINT, model, terms=terms).shape == Shape()


def test_a_familys_table_leaves_out_nothing_that_a_person_set() -> None:
    terms = terms_of("o3", Parameters(temperature=0.7), most_output=None)
    ladder = Fallbacks(ENDPOINT, "o3", terms=terms)
    assert "temperature" in ladder.sent(replace(REQUEST, temperature=0.7)).names


def test_room_for_reasoning_gives_way_where_it_is_too_large() -> None:
    request = replace(REQUEST, room=25_000)
    large = openai("max_tokens is too large: 25100. At most 16384 are supported.")
    for body in (large, openai("context_length_exceeded")):
        ladder = Fallbacks(ENDPOINT, "m")
        assert type(after(ladder, 400, body, request)) is e.FormRefused
        assert json.loads(encode_chat(request, "m", ladder.shape))["max_tokens"] == 100
        assert type(after(ladder, 400, body, request)) is not e.FormRefused


def test_vectors_in_base64_give_way_to_numbers() -> None:
    ladder, request = Fallbacks(ENDPOINT, "m"), EmbedRequest(texts=("a",))
    body = openai("Unsupported parameter: encoding_format")
    assert type(after(ladder, 422, body, request)) is e.FormRefused
    assert ladder.shape == Shape(packed=False)
    assert type(after(ladder, 422, body, request)) is e.BadRequest


def test_a_schema_without_any_effect_is_noticed_once() -> None:
    ladder = Fallbacks(ENDPOINT, "m")
    for _ in range(50):
        ladder.replied(Reply(text="No JSON here."))
    (fact,) = ladder.take_facts()
    assert (fact.name, fact.how) == ("response_format", IGNORED)
    assert "12 of 12 replies" in fact.words
    later = Fallbacks(ENDPOINT, "m")
    later.restore([fact])
    for _ in range(50):
        later.replied(Reply(text="No JSON here."))
    assert not later.take_facts()


def test_a_limit_that_bounds_nothing_is_a_fact_for_the_next_process() -> None:
    ladder = Fallbacks(ENDPOINT, "m")
    ladder.begin_with("max_completion_tokens")
    ladder.unbounded(5_000, 20_000)
    (fact,) = ladder.take_facts()
    assert (fact.name, fact.how) == ("max_completion_tokens", IGNORED)
    assert fact.instead == "20000"
    assert "5,000 tokens" in fact.sentence
    later = Fallbacks(ENDPOINT, "m")
    later.restore([fact])
    assert later.learned == 20_000
    assert later.shape == Shape()  # the limit is sent as before
    for _ in range(50):
        later.replied(Reply(text="No JSON here."))
    assert later.take_facts()  # nothing was learned of schemas
    elsewhere = Fallbacks("http://other/v1", "m")
    elsewhere.restore([fact])
    assert elsewhere.learned is None


def test_a_schema_that_mostly_holds_is_not_called_ignored() -> None:
    ladder = Fallbacks(ENDPOINT, "m")
    for i in range(100):
        ladder.replied(Reply(text="oh" if i % 5 == 0 else '{"n": 1}'))
    for _ in range(50):
        ladder.replied(Reply(text='{"n": ', finish_reason="length"))
    assert not ladder.take_facts()


def test_other_failures_leave_everything_as_it_is() -> None:
    ladder = Fallbacks(ENDPOINT, "m")
    error = e.ServerError("max_tokens is not supported", status=500)
    assert (
        ladder.handle_error(
            error, SentFields(shape=Shape(), names=frozenset({"max_tokens"}))
        )
        is error
    )
    assert ladder.shape == Shape()


CUT = {"error": {"code": 500, "message": "Failed to parse input at pos 41: {"}}


def test_a_500_for_the_content_is_asked_again_without_a_schema() -> None:
    ladder = Fallbacks(ENDPOINT, "m")
    ladder.replied(Reply(text='{"n": 1}'))
    sent = ladder.sent(REQUEST, 7)
    assert type(ladder.handle_error(refused(500, CUT), sent)) is e.ContentFault
    assert ladder.sent(REQUEST, 7).shape.structure is Structure.TEXT
    assert ladder.sent(REQUEST, 8).shape.structure is Structure.SCHEMA
    assert not ladder.take_facts()


def test_an_endpoint_that_answers_nothing_with_a_schema_is_asked_without() -> None:
    ladder = Fallbacks(ENDPOINT, "m")
    for task in (1, 1, 2, 3):
        assert ladder.shape.structure is Structure.SCHEMA
        sent = replace(ladder.sent(REQUEST, 0), task=task)
        assert type(ladder.handle_error(refused(500, CUT), sent)) is e.ContentFault
    (fact,) = ladder.take_facts()
    assert (fact.name, fact.instead) == ("response_format", "text")
    assert "Failed to parse" in fact.words
    assert ladder.sent(REQUEST, 9).shape.structure is Structure.TEXT
