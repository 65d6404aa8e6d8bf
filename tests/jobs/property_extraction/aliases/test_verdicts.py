"""What most verdicts on a pair say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.name_pairs import HEURISTIC, NameVerdict, majority


def verdict(
    *, is_match: bool | None, model: str = "m", reason: str = ""
) -> NameVerdict:
    return NameVerdict(
        pred_name="a", gt_name="b", is_match=is_match, model=model, reason=reason
    )


@pytest.mark.parametrize(
    ("said", "ruling"),
    [
        ([True], True),
        ([False], False),
        ([True, True, False], True),
        ([True, False], None),
        ([True, None, None], True),
        ([None], None),
    ],
)
def test_the_majority_rules_and_a_tie_is_undecided(
    said: list[bool | None], ruling: bool | None
) -> None:
    found = majority(verdict(is_match=is_match) for is_match in said)["a", "b"]
    assert found.is_match is ruling
    assert found.votes == said.count(True)


def test_a_ruling_has_a_reason_of_its_side_and_all_models_that_were_asked() -> None:
    found = majority(
        [
            verdict(is_match=True, model="z", reason="late"),
            verdict(is_match=False, model="a", reason="no"),
            verdict(is_match=True, model="b", reason="same"),
        ]
    )["a", "b"]
    assert found.reason == "same"
    assert found.models == ("a", "b", "z")


def test_what_nobody_was_asked_is_no_verdict() -> None:
    assert majority([verdict(is_match=True, model=HEURISTIC)]) == {}


VERDICTS = st.lists(
    st.builds(
        NameVerdict,
        pred_name=st.sampled_from("ab"),
        gt_name=st.sampled_from("xy"),
        is_match=st.sampled_from([True, False, None]),
        reason=st.sampled_from(["", "r", "s"]),
        model=st.sampled_from(["", "m", "n"]),
    ),
    max_size=8,
)


@given(VERDICTS, st.randoms(use_true_random=False))
def test_the_order_of_verdicts_changes_nothing(
    said: list[NameVerdict], random: object
) -> None:
    before = majority(said)
    random.shuffle(said)
    assert majority(said) == before
