"""The direction of effect and the certainty that conclusions state."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.inputs.rows import InputFindings
from jobs.review_benchmark.data import Certainty, Direction
from jobs.review_benchmark.effects import (
    NO_EFFECT,
    EffectComparison,
    StatedEffect,
    combine_comparisons,
    compare_effects,
    read_effect,
    stated_effect,
)
from jobs.review_benchmark.parsing import parse_conclusion
from jobs.review_benchmark.result_files import result_of
from jobs.review_benchmark.truth_files import review_to_json
from runner.errors import DatasetError
from runner.messages import Reply
from tests.jobs.review_benchmark.small_review import REVIEW, read_review

READ: tuple[tuple[str, Direction | None, Certainty | None], ...] = (
    (
        "Low-certainty evidence suggests little to no difference in readmission.",
        "no_difference",
        "low",
    ),
    (
        "We found no evidence of a difference in mortality.",
        "no_difference",
        "high",
    ),
    (
        "There was moderate\u2010certainty evidence that the vaccine prevented flu.",
        "improves",
        "moderate",
    ),
    (
        "Surgery likely results in a large increase in serious adverse events.",
        "worsens",
        "moderate",
    ),
    ("Pain was lower with the block.", "improves", "high"),
    ("Survival was lower with the block.", "worsens", "high"),
    ("Wound infection is not reduced by the dressing.", "no_difference", "high"),
    ("Placebo may be less effective than the drug.", "improves", "low"),
    ("The drug is no worse than placebo.", "no_difference", "high"),
    ("Antibiotics offer no clear benefit over placebo.", "no_difference", "high"),
    ("Evidence is lacking on the benefits of this therapy.", "unclear", "very_low"),
    ("It is uncertain if exercise has any effect on pain.", "unclear", "very_low"),
    # a change of something that is neither good nor bad by its name is not read
    ("The device increases humidity.", None, None),
    ("The review found no trials.", None, None),
    ("Research should better explain what helps.", None, None),
    ("", None, None),
)


@pytest.mark.parametrize(("text", "direction", "certainty"), READ)
def test_a_rule_reads_direction_and_certainty(
    text: str, direction: Direction | None, certainty: Certainty | None
) -> None:
    found = read_effect(text)
    assert (found.direction, found.certainty) == (direction, certainty)


def test_the_first_statement_leads_and_the_others_are_kept() -> None:
    found = read_effect(
        "It improves tremor but may increase depression. It does not ease pain."
    )
    assert found.direction == "improves"
    assert found.others == {"worsens", "no_difference", "unclear"}
    assert found.certainty == "high"
    assert found.outcomes == {
        "tremor": "improves",
        "depression": "worsens",
        "pain": "no_difference",
    }


@given(st.text())
def test_any_text_can_be_read_and_agrees_with_itself(text: str) -> None:
    found = read_effect(text)
    outcome = "not judged" if found.direction is None else "passed"
    assert compare_effects(found, found, 0).outcome == outcome


def test_fields_come_before_the_text() -> None:
    text = "It may reduce pain."
    assert stated_effect(text, None, None).direction == "improves"
    found = stated_effect(text, "worsens", "high")
    assert (found.direction, found.others, found.certainty) == (
        "worsens",
        frozenset(),
        "high",
    )
    # what a field leaves open is read, and an unclear certainty is none
    assert stated_effect(text, "worsens", None).certainty == "low"
    assert stated_effect(text, None, "unclear").certainty is None


@pytest.mark.parametrize(
    ("agent", "truth", "expected"),
    [
        (
            StatedEffect(direction="improves"),
            StatedEffect(direction="improves"),
            ("passed", "same"),
        ),
        (
            StatedEffect(direction="improves"),
            StatedEffect(direction="no_difference"),
            ("failed", "direction"),
        ),
        (StatedEffect(direction="improves"), NO_EFFECT, ("not judged", "not_stated")),
        (
            StatedEffect(direction="no_difference"),
            StatedEffect(direction="improves", others=frozenset({"no_difference"})),
            ("not judged", "several_directions"),
        ),
        (
            StatedEffect(direction="improves", certainty="moderate"),
            StatedEffect(direction="improves", certainty="low"),
            ("passed", "same"),
        ),
        (
            StatedEffect(direction="improves", certainty="high"),
            StatedEffect(direction="improves", certainty="low"),
            ("failed", "certainty"),
        ),
        (
            StatedEffect(direction="improves", certainty="high"),
            StatedEffect(direction="improves"),
            ("passed", "same"),
        ),
    ],
)
def test_directions_are_compared_and_then_certainty(
    agent: StatedEffect, truth: StatedEffect, expected: tuple[str, str]
) -> None:
    for first, second in ((agent, truth), (truth, agent)):
        found = compare_effects(first, second, 1)
        assert (found.outcome, found.reason) == expected


def test_certainty_may_differ_by_as_many_levels_as_are_set() -> None:
    high = StatedEffect(direction="improves", certainty="high")
    low = StatedEffect(direction="improves", certainty="low")
    assert [compare_effects(high, low, within).outcome for within in range(4)] == [
        *("failed", "failed", "passed", "passed")
    ]


def test_a_contradiction_about_one_outcome_fails_or_is_not_judged() -> None:
    truth = read_effect(
        "It makes no difference to grip strength. It may ease stiffness."
    )
    assert compare_effects(
        read_effect("It is effective for grip strength."), truth, 1
    ) == EffectComparison(outcome="failed", reason="direction")
    assert (
        compare_effects(read_effect("It may ease stiffness."), truth, 1).outcome
        == "not judged"
    )
    same = read_effect("It makes no difference to grip strength. It worsens stiffness.")
    assert compare_effects(same, truth, 1).outcome == "not judged"


def test_more_than_half_of_the_judged_replicates_decide() -> None:
    passed = EffectComparison(outcome="passed", reason="same")
    failed = EffectComparison(outcome="failed", reason="certainty")
    open_ = EffectComparison(outcome="not judged", reason="not_stated")
    assert combine_comparisons([passed, open_]) == passed
    assert combine_comparisons([passed, failed]) == failed
    assert combine_comparisons([failed, passed, passed]) == passed
    assert combine_comparisons([open_, open_]) == open_


def test_a_reply_states_only_what_it_says() -> None:
    said = parse_conclusion(Reply(text='{"conclusion": "It helps."}'))
    assert getattr(said, "direction", "?") is None
    whole = {"conclusion": "x", "direction": "No difference", "certainty": "VERY LOW"}
    said = parse_conclusion(Reply(text=json.dumps(whole)))
    assert (getattr(said, "direction", ""), getattr(said, "certainty", "")) == (
        "no_difference",
        "very_low",
    )


def test_truth_and_results_may_carry_both_as_fields(tmp_path: Path) -> None:
    path = tmp_path / "cochrane_CD7.json"
    review = replace(REVIEW, direction="no_difference", certainty="very_low")
    path.write_text(json.dumps(review_to_json(review)))
    assert read_review(path) == review
    value = json.loads(path.read_text()) | {"conclusion_direction": "up"}
    path.write_text(json.dumps(value))
    with pytest.raises(
        DatasetError, match=r"conclusion_direction is 'up' \(use one of"
    ):
        read_review(path)
    result = {
        "cochrane_id": "CD7",
        "included_papers": [],
        "conclusion": "It helps.",
        "conclusion_direction": "uncertain",
    }
    found = result_of(result, "r.json", InputFindings())
    assert (found.direction, found.certainty) == ("unclear", None)
