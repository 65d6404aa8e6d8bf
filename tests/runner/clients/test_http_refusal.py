from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import errors as e
from runner.clients.http_refusal import LONGEST_QUOTE, kept, refusal, retry_after_s

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
        (402, b"", e.AuthFailed),
        (403, b"", e.AuthFailed),
        (403, complaint(code="content_filter"), e.ContentFiltered),
        (400, complaint(code="content_policy_violation"), e.ContentFiltered),
        (400, complaint(code="context_length_exceeded"), e.ContextTooLong),
        (400, complaint("maximum context length is 8192 tokens"), e.ContextTooLong),
        (413, complaint("prompt is too long: 9 tokens"), e.ContextTooLong),
        (400, complaint("temperature is not supported"), e.BadRequest),
        (404, complaint("no such model"), e.BadRequest),
        (422, b'{"detail":"wrong"}', e.BadRequest),
        (408, b"", e.Timeout),
        (429, complaint("slow down"), e.RateLimited),
        (429, complaint(code="insufficient_quota"), e.AuthFailed),
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


def test_a_refused_schema_names_the_setting_that_leaves_it_out() -> None:
    body = complaint("response_format json_schema is unavailable")
    assert "--set structured=off" in str(refuse(400, body))


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
    assert list(kept(headers)) == [
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
