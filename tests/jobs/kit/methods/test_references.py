from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.methods.manuscript import _decoded
from jobs.kit.methods.references import (
    QuotedValue,
    Rounding,
    encoded,
    model_text,
    name_of,
)


@given(st.text())
def test_a_name_has_few_characters_and_can_be_read_back(text: str) -> None:
    name = encoded(text, safe="/")
    assert re.fullmatch(r"[A-Za-z0-9._+=/-]*", name)
    assert "--" not in name
    assert _decoded(name) == text.encode(errors="surrogatepass").decode(
        errors="replace"
    )


def test_only_a_model_keeps_its_slashes() -> None:
    name = name_of("metric", "screening", "openai/gpt-4o", "recall/all", suffix="n")
    assert name == "metric:screening/openai/gpt-4o/recall=2Fall@n"


@pytest.mark.parametrize(
    ("value", "rounding", "expected"),
    [
        (1234, Rounding.EXACT, "1,234"),
        (95.0, Rounding.EXACT, "95"),
        (0.91666, Rounding.METRIC, "0.917"),
        (-0.0, Rounding.METRIC, "0.000"),
        (0.0005, Rounding.METRIC, "0.001"),
        (4.8e-185, Rounding.METRIC, "<0.001"),
        (-1e-9, Rounding.METRIC, ">-0.001"),
        (999.9996, Rounding.METRIC, "1,000"),
        (3, Rounding.METRIC, "3"),
        (0.97142, Rounding.PERCENT, "97.1"),
        (12.345, Rounding.DOLLARS, "12.35"),
        (0.01234, Rounding.DOLLARS, "0.0123"),
        (0, Rounding.DOLLARS, "0.00"),
        (1_772_323_200_000_000, Rounding.DATE, "1 March 2026"),
        ("ab" * 32, Rounding.HASH, "abababababab"),
        ("a\x1bb", Rounding.EXACT, "a␛b"),
        (None, Rounding.DOLLARS, "n/a"),
        (float("nan"), Rounding.METRIC, "n/a"),
    ],
)
def test_a_value_is_shown_by_its_rule(
    value: float | str | None, rounding: Rounding, expected: str
) -> None:
    assert QuotedValue(name="x", value=value, rounding=rounding).text == expected


def test_the_name_of_recorded_replies_says_no_place_and_stays_distinct() -> None:
    models = [f"recorded:/home/{who}/run/replies.jsonl" for who in ("a", "b")]
    names = [name_of("model", model, "name") for model in models]
    assert len({*names}) == 2
    assert not any("home" in name for name in names)
    assert {model_text(model) for model in models} == {"recorded:replies.jsonl"}
    assert model_text("openai/gpt-4o") == "openai/gpt-4o"
