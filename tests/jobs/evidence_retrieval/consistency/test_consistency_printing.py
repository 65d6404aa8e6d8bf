"""Numbers as files print them: rounding is no contradiction, another number is."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.stated_rules import digits, is_printed, is_share
from tests.jobs.evidence_retrieval.given_files import (
    CLEAN,
    SHORT_LISTS,
    codes,
    found,
    imported,
    ranked,
    write_csv,
    write_jsonl,
)

places = st.integers(1, 17)


@given(st.integers(1, 60), st.data(), places)
def test_share_is_one_in_however_many_digits_it_is_printed(
    parts: int, data: st.DataObject, decimals: int
) -> None:
    share = data.draw(st.integers(0, parts)) / parts
    assert is_share(float(f"{share:.{decimals}f}"), parts)


@given(st.floats(0, 1), places)
def test_number_is_what_it_is_printed_as(exact: float, decimals: int) -> None:
    assert is_printed(exact, float(f"{exact:.{decimals}f}"))


@given(st.integers(1, 60), st.integers(0, 59))
def test_number_half_way_between_two_shares_is_none(parts: int, whole: int) -> None:
    between = (whole % parts + 0.5) / parts
    assert not is_share(between, parts) or digits(between) <= 2


def test_tiny_numbers_have_digits_too() -> None:
    assert digits(0.25) == 2
    assert digits(2.5e-7) == 8


@pytest.mark.parametrize(("precise", "told"), [(True, 1), (False, 0)])
def test_half_stands_for_046_only_where_the_column_has_few_digits(
    tmp_path: Path, precise: bool, told: int
) -> None:
    """Seven sentences of fifteen are 0.467: 0.5 in a column of one digit."""
    rows = [dict(row, n_candidates=15) for row in CLEAN]
    rows[2] |= {
        "gold_sent_uids": "|".join(f"p_{n}" for n in range(7)),
        "selected_k": 15,
        "evidence_recall_at_k": 1.0,
        "evidence_precision_at_k": 0.5,
        "mrr": 1.0,
    }
    if precise:
        rows[0] |= {"selected_k": 3, "evidence_precision_at_k": 0.3333333333333333}
    lists = [
        {**row, "sent_uids": [f"{row['post_id']}_{n}" for n in range(15)]}
        for row in ranked(CLEAN)
    ]
    sheet = imported(
        write_csv(tmp_path / "l.csv", rows), write_jsonl(tmp_path / "r.jsonl", lists)
    )
    assert codes(found(sheet, **SHORT_LISTS)).get("stated_differs", 0) == told
