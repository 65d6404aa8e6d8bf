"""Labels of two models against each other: what both say, and of which items."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jobs.comparison.pairing import label_agreement
from jobs.metrics import agreement
from runner.scorecard import Labels

WORDS = ("no", "yes", "unclear")
SAID = st.dictionaries(
    st.sampled_from("abcdefgh"), st.one_of(st.none(), st.sampled_from(WORDS))
)


def of(said: dict[str, str | None]) -> Labels:
    return Labels(
        what="decision", categories=WORDS, items=[*said], assigned=[*said.values()]
    )


@given(SAID, SAID)
def test_only_items_that_both_label_count_and_sides_may_be_swapped(
    mine: dict[str, str | None], theirs: dict[str, str | None]
) -> None:
    found, back = (
        label_agreement(of(mine), of(theirs)),
        label_agreement(of(theirs), of(mine)),
    )
    both = [item for item in mine if mine[item] and theirs.get(item)]
    if not both:
        assert found is back is None
        return
    assert found is not None
    assert back is not None
    assert found.n == back.n == len(both)
    said = ([side[item] for item in both] for side in (mine, theirs))
    assert found.agreement == agreement(*said, WORDS)
    assert found.agreement.percent == back.agreement.percent


@given(SAID)
def test_a_model_agrees_with_itself(said: dict[str, str | None]) -> None:
    found = label_agreement(of(said), of(said))
    assert found is None or found.agreement.percent == 1.0


def test_labels_from_other_lists_are_not_set_against_each_other() -> None:
    own = of({"a": "yes"})
    assert label_agreement(own, replace(own, categories=("yes",))) is None
    assert label_agreement(own, replace(own, what="state")) is None
