"""Limits as endpoints tell them in their headers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.limits.rate_limits import (
    NO_HEADER_LIMITS,
    HeaderLimits,
    MinuteBucket,
    Quota,
    header_limits,
)

NOON_US = 1_767_268_800_000_000
"""2026-01-01 12:00 UTC."""


def test_the_openai_family_is_read() -> None:
    headers = {
        "x-ratelimit-limit-requests": "3000",
        "x-ratelimit-remaining-requests": "2999",
        "x-ratelimit-reset-requests": "20ms",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    assert header_limits(headers, now_us=0).requests == Quota(
        per_minute=3000, remaining=2999
    )


def test_the_anthropic_family_is_read() -> None:
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-01-01T12:00:01Z",
        "anthropic-ratelimit-tokens-limit": "90000",
        "anthropic-ratelimit-tokens-remaining": "80000",
        "anthropic-ratelimit-tokens-reset": "2026-01-01T12:00:07Z",
        "anthropic-ratelimit-input-tokens-limit": "80000",
    }
    assert header_limits(headers, now_us=NOON_US) == HeaderLimits(
        requests=Quota(per_minute=50, remaining=49),
        tokens=Quota(per_minute=90000, remaining=80000),
    )


def test_tokens_of_the_prompt_count_where_no_sum_is_told() -> None:
    headers = {"anthropic-ratelimit-input-tokens-limit": "80000"}
    assert header_limits(headers, now_us=0).tokens == Quota(per_minute=80000)


PROXY = {
    "x-ratelimit-limit-requests": "300",
    "x-ratelimit-remaining-requests": "4",
    "llm_provider-x-ratelimit-limit-requests": "300",
    "llm_provider-x-ratelimit-reset-requests": "200ms",
    "x-ratelimit-api_key-limit-requests": "20",
    "x-ratelimit-api_key-remaining-requests": "19",
    "x-ratelimit-model_per_key-limit-tokens": "9000",
}
"""As LiteLLM's proxy 1.106.2 sent them for a key of 20 requests a minute."""


def test_the_narrowest_limit_of_a_proxy_counts() -> None:
    assert header_limits(PROXY, now_us=0) == HeaderLimits(
        requests=Quota(per_minute=20, remaining=19), tokens=Quota(per_minute=9000)
    )
    wide = PROXY | {"x-ratelimit-api_key-limit-requests": "4000"}
    assert header_limits(wide, now_us=0).requests == Quota(per_minute=300, remaining=4)


def test_a_limit_a_day_behind_a_proxy_is_not_one_a_minute() -> None:
    headers = {
        "x-ratelimit-limit-requests": "200",
        "llm_provider-x-ratelimit-reset-requests": "7m12s",
    }
    assert header_limits(headers, now_us=0) == NO_HEADER_LIMITS


@pytest.mark.parametrize("reset", ["7m12s", "1h0m0s", "2026-01-01T13:00:00Z", "3600"])
def test_a_limit_a_day_is_not_spread_over_minutes(reset: str) -> None:
    headers = {
        "x-ratelimit-limit-requests": "200",
        "x-ratelimit-reset-requests": reset,
    }
    assert header_limits(headers, now_us=NOON_US) == NO_HEADER_LIMITS


@pytest.mark.parametrize(
    "reset", ["59s", "1m59.9s", "20ms", "0", "2026-01-01T12:00:59+00:00", "soon", ""]
)
def test_a_limit_that_is_whole_again_within_minutes_is_one_a_minute(reset: str) -> None:
    headers = {
        "x-ratelimit-limit-requests": "200",
        "x-ratelimit-reset-requests": reset,
    }
    assert header_limits(headers, now_us=NOON_US).requests == Quota(per_minute=200)


@pytest.mark.parametrize("limit", ["", "0", "-5", "nan", "inf", "many", "1e9", "٣"])
def test_a_limit_that_is_no_number_is_no_limit(limit: str) -> None:
    assert (
        header_limits({"x-ratelimit-limit-requests": limit}, now_us=0)
        == NO_HEADER_LIMITS
    )


def test_without_headers_nothing_is_told() -> None:
    assert (
        header_limits(None, now_us=0) == header_limits({}, now_us=0) == NO_HEADER_LIMITS
    )


_NAMES = st.sampled_from(
    [
        f"{family}{{}}".format(rest)
        for family, rests in {
            "x-ratelimit-": ("limit-requests", "reset-requests", "remaining-requests"),
            "anthropic-ratelimit-": ("tokens-limit", "tokens-reset"),
        }.items()
        for rest in rests
    ]
)


@given(
    headers=st.dictionaries(
        _NAMES,
        st.text(max_size=12)
        | st.from_regex(r"[0-9.]{0,6}(h|m|s|ms)?[0-9.]{0,4}s?", fullmatch=True)
        | st.datetimes().map(str),
    )
)
def test_whatever_headers_say_limits_are_positive_numbers_or_none(
    headers: dict[str, str],
) -> None:
    found = header_limits(headers, now_us=NOON_US)
    for quota in (found.requests, found.tokens):
        assert quota is None or 0 < quota.per_minute < float("inf")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (  # Groq: requests a day, tokens a minute
            {
                "x-ratelimit-limit-requests": "14400",
                "x-ratelimit-remaining-requests": "14399",
                "x-ratelimit-reset-requests": "6s",
                "x-ratelimit-limit-tokens": "18000",
                "x-ratelimit-remaining-tokens": "17997",
                "x-ratelimit-reset-tokens": "10ms",
            },
            HeaderLimits(tokens=Quota(per_minute=18000, remaining=17997)),
        ),
        (  # a window that is fixed: little used, and long until it ends
            {
                "x-ratelimit-limit-requests": "3000",
                "x-ratelimit-remaining-requests": "2999",
                "x-ratelimit-reset-requests": "59s",
            },
            HeaderLimits(requests=Quota(per_minute=3000, remaining=2999)),
        ),
        (
            {
                "x-ratelimit-limit-input-tokens": "80000",
                "x-ratelimit-limit-output-tokens": "8000",
            },
            HeaderLimits(tokens=Quota(per_minute=80000)),
        ),
        (
            {
                "ratelimit-limit": "100",
                "ratelimit-remaining": "50",
                "ratelimit-reset": "30",
                "ratelimit-policy": "100;w=60",
            },
            HeaderLimits(requests=Quota(per_minute=100, remaining=50)),
        ),
        (
            {"ratelimit": '"d";r=5;t=3', "ratelimit-policy": '"d";q=10;w=10, "x";q=1'},
            HeaderLimits(requests=Quota(per_minute=60)),
        ),
        ({"ratelimit-policy": '"day";q=1000;w=86400'}, NO_HEADER_LIMITS),
        ({"ratelimit-limit": "100"}, NO_HEADER_LIMITS),  # of what window is not said
        ({"ratelimit-policy": ";;q=x;w=", "ratelimit": "\x00"}, NO_HEADER_LIMITS),
    ],
)
def test_the_forms_of_other_endpoints_are_read(
    headers: dict[str, str], expected: HeaderLimits
) -> None:
    assert header_limits(headers, now_us=NOON_US) == expected


@pytest.mark.parametrize(("per_minute", "depth"), [(600.0, 20.0), (6.0, 1.0)])
def test_a_bucket_holds_what_a_burst_may_take_and_at_least_one_request(
    per_minute: float, depth: float
) -> None:
    assert MinuteBucket(per_minute, 2.0).depth == depth
