"""tests.runner.clients.test_refusals"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import errors as e
from runner.clients.refusals import (
    LONGEST_QUOTE,
    logged_headers,
    refusal,
    retry_after_s,
)

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NOW_US = int(NOW.timestamp() * 1e6)


def refuse(status: int, body: bytes = b"", **headers: str) -> e.AttemptError:
    return refusal("http://host/v1", status, headers, body, now_us=NOW_US)


def complaint(message: str = "", **fields: object) -> bytes:
    return json.dumps({"error": {"message": message, **fields}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (401, b"", e.AuthFailed),
        (402, b"", e.QuotaSpent),
        (400, complaint("Spent!", type="budget_exceeded"), e.QuotaSpent),
        (400, complaint("Your credit balance is too low"), e.QuotaSpent),
        (403, b"", e.AuthFailed),
        (403, complaint(code="content_filter"), e.ContentFiltered),
        (400, complaint(code="content_policy_violation"), e.ContentFiltered),
        (400, complaint(code="context_length_exceeded"), e.ContextTooLong),
        (400, complaint("maximum context length is 8192 tokens"), e.ContextTooLong),
        (413, complaint("prompt is too long: 9 tokens"), e.ContextTooLong),
        (400, complaint("temperature is not supported"), e.BadRequest),
        (404, complaint("no such model"), e.NotServed),
        (404, b"<html>Not Found</html>", e.NotServed),
        (405, b"", e.NotServed),
        (501, complaint("This server does not support embeddings."), e.NotServed),
        (400, complaint("Invalid model name passed in model=x"), e.NotServed),
        (400, complaint("The model `x` does not exist."), e.NotServed),
        (400, complaint("x is not a valid model ID"), e.NotServed),
        (400, complaint("Model Not Exist"), e.NotServed),
        (400, complaint("x", code="model_not_found"), e.NotServed),
        (
            400,
            complaint("an invalid modelling of no such models"),
            e.BadRequest,
        ),
        (400, complaint("a study of billing in hospitals"), e.BadRequest),
        (422, b'{"detail":"wrong"}', e.BadRequest),
        (408, b"", e.Timeout),
        (429, complaint("slow down"), e.RateLimited),
        (429, complaint(code="insufficient_quota"), e.QuotaSpent),
        (429, complaint(code="billing_hard_limit_reached"), e.QuotaSpent),
        (500, b"", e.ServerError),
        (502, b"<html>Bad Gateway</html>", e.ServerError),
        (503, b"", e.Overloaded),
        (529, b"", e.Overloaded),
        (301, b"", e.BadRequest),
        (204, b"", e.BadRequest),
    ],
)
def test_a_status_and_its_body_lead_to_one_class(
    status: int, body: bytes, expected: type[e.AttemptError]
) -> None:
    error = refuse(status, body)
    assert type(error) is expected
    assert error.status == status
    assert error.body == (body or None)
    assert str(status) in str(error)
    assert "http://host/v1" in str(error)


@given(st.integers(201, 599), st.binary(max_size=400))
def test_every_refusal_is_one_printable_line_of_bounded_length(
    status: int, body: bytes
) -> None:
    message = str(refuse(status, body))
    assert message.isprintable()
    assert len(message) < LONGEST_QUOTE + 120


@pytest.mark.parametrize(
    "body",
    [
        complaint("first\n\tsecond \x1b[31mred"),
        json.dumps({"error": "first second [31mred"}).encode(),
        json.dumps({"message": "first second [31mred"}).encode(),
        b"first\r\nsecond [31mred",
    ],
)
def test_the_servers_own_words_are_passed_on_without_control_characters(
    body: bytes,
) -> None:
    assert "first second [31mred" in str(refuse(500, body))


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (
            400,  # OpenAI
            (
                "Invalid parameter: 'response_format' of type 'json_schema' is not "
                "supported with this model. Learn more about supported models"
            ),
        ),
        (
            400,
            (
                "Invalid schema for response_format 'letter': In context=(), "
                "'additionalProperties' is required to be supplied and to be false."
            ),
        ),
        (400, "This response_format type is unavailable now"),  # DeepSeek
        (
            422,
            (
                "Failed to deserialize the JSON body into the target type: "
                "response_format: response_format.type `json_schema` is unavailable now"
            ),
        ),
        (
            400,
            (
                "Prompt must contain the word 'json' in some form to use "
                "'response_format' of type 'json_object'."
            ),
        ),
        (400, "'response_format.type' must be 'json_schema' or 'text'"),  # LM Studio
        (
            400,  # vLLM
            "The provided JSON schema contains features not supported by xgrammar.",
        ),
        (
            400,  # llama.cpp
            'Either "json_schema" or "grammar" can be specified, but not both',
        ),
        (
            500,  # ik_llama.cpp
            (
                'response_format type must be one of "text" or "json_object", but got: '
                "json_schema"
            ),
        ),
        (400, "This model does not support response format `json_schema`."),  # Groq
        (400, "Unsupported parameter: 'encoding_format'"),
    ],
)
def test_what_endpoints_say_of_a_form_they_lack_is_told_from_a_bad_request(
    status: int, said: str
) -> None:
    error = refuse(status, complaint(said))
    assert type(error) is e.FormRefused
    assert "simpler form" in str(error)


def test_a_reply_that_the_endpoint_itself_finds_unfit_is_a_mismatch() -> None:
    said = "Generated JSON does not match the expected schema. Errors: /answer: enum"
    error = refuse(400, complaint(said))
    assert type(error) is e.SchemaMismatch
    assert "/answer" in str(error)


@pytest.mark.parametrize(
    "body",
    [
        {"detail": [{"loc": ["body", "encoding_format"], "msg": "extra fields"}]},
        {  # Mistral
            "object": "error",
            "message": {
                "detail": [
                    {
                        "type": "extra_forbidden",
                        "loc": ["body", "encoding_format"],
                        "msg": "Extra inputs are not permitted",
                    }
                ]
            },
        },
    ],
)
def test_a_validators_list_of_faults_is_read_too(body: dict[str, object]) -> None:
    error = refuse(422, json.dumps(body).encode())
    assert type(error) is e.FormRefused
    assert "extra" in str(error).lower()


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "max_tokens is too large: 99999"),
        (400, "Generated JSON does not match the expected schema."),
        (500, "upstream failure"),
        (503, "response_format json_schema is unavailable for the moment"),
    ],
)
def test_other_complaints_are_not_taken_for_one_about_the_form(
    status: int, said: str
) -> None:
    assert type(refuse(status, complaint(said))) is not e.FormRefused


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"retry-after": "2", "retry-after-ms": "1250"}, 1.25),
        ({"retry-after": "3", "retry-after-ms": "soon"}, 3.0),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=9))}, 9.0),
        ({"retry-after": format_datetime(NOW - timedelta(days=1))}, 0.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:15 -0000"}, 10.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-4"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_every_way_to_say_how_long_to_wait_is_read(
    headers: dict[str, str], expected: float | None
) -> None:
    assert retry_after_s(headers, now_us=NOW_US) == expected


@given(st.text())
def test_no_retry_after_breaks_the_client_or_asks_for_the_past(value: str) -> None:
    wait = retry_after_s({"retry-after": value}, now_us=NOW_US)
    assert wait is None or wait >= 0


def test_a_wait_reaches_the_error() -> None:
    assert refuse(429, b"", **{"retry-after": "3"}).retry_after_s == 3.0


def test_the_headers_go_with_the_error_so_that_limits_can_be_learned() -> None:
    told = {"x-ratelimit-limit-requests": "60"}
    assert refuse(429, b"", **told).headers == told
    assert refuse(429).headers is None


def test_only_headers_that_matter_are_kept() -> None:
    headers = {
        "X-RateLimit-Remaining-Tokens": "5",
        "anthropic-ratelimit-requests-limit": "50",
        "retry-after": "1",
        "retry-after-ms": "900",
        "x-request-id": "a",
        "request-id": "b",
        "set-cookie": "secret",
        "date": "today",
        "content-type": "application/json",
    }
    assert list(logged_headers(headers)) == [
        "anthropic-ratelimit-requests-limit",
        "request-id",
        "retry-after",
        "retry-after-ms",
        "x-ratelimit-remaining-tokens",
        "x-request-id",
    ]


def test_brackets_within_brackets_are_only_an_error_page() -> None:
    said = refusal("http://x", 500, {}, b'{"error":' + b"[" * 100_000, now_us=0)
    assert type(said) is e.ServerError


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (408, e.Timeout),
        (424, e.ServerError),
        (498, e.Overloaded),
        (502, e.ServerError),
        (503, e.Overloaded),
        (504, e.ServerError),
        *((status, e.ServerError) for status in range(520, 525)),
        (529, e.Overloaded),
    ],
)
@pytest.mark.parametrize(
    "body", [b"", b"<!DOCTYPE html><html><title>Bad gateway</title>x</html>"]
)
def test_weather_is_waited_out(
    status: int, expected: type[e.AttemptError], body: bytes
) -> None:
    error = refuse(status, body)
    assert type(error) is expected
    assert "<" not in str(error)
    assert not body or "a web page, 'Bad gateway'" in str(error)


@pytest.mark.parametrize(
    ("words", "wait_s"),
    [
        ("Rate limit reached. Please try again in 5.289s. Visit", 5.289),
        ("Please try again in 120ms.", 0.12),
        ("Please try again in 1m26.4s.", 86.4),
        ("Please retry after 7 seconds.", 7.0),
        ("Please try again in 2h3m4s", 7384.0),
        ("Please try again later", None),
        ("try again in ...", None),
    ],
)
def test_a_wait_that_is_only_told_in_words_is_kept(
    words: str, wait_s: float | None
) -> None:
    assert refuse(429, complaint(words)).retry_after_s == pytest.approx(wait_s)
    assert refuse(400, complaint(words)).retry_after_s is None
    # a header is finer, and goes first
    assert refuse(429, complaint(words), **{"retry-after": "3"}).retry_after_s == 3.0


@pytest.mark.parametrize(
    "said",
    [
        "Failed to parse input at pos 8: ",
        "The model produced output that does not match the expected peg-native format",
    ],
)
def test_llamacpps_500_for_output_that_was_cut_is_a_fault_of_the_content(
    said: str,
) -> None:
    assert type(refuse(500, complaint(said))) is e.ContentFault
