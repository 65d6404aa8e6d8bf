"""Every file of a scoring has its columns, and says what no count holds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.score import score
from jobs.property_extraction.settings import PROFILES, PropertySettings
from runner.scorecard import Scorecard, StreamedRow
from tests.jobs.property_extraction.scored_rows import RUBRIC, STATED, TRUTH, RowAnswers

COLUMNS = {
    "score_pr_matches": "refno property_name status pred_value gt_value",
    "score_pr_summary": "property_name tp fp fn precision recall f1",
    "score_pr_detailed": (
        "refno property_name tp fp fn rubric gt_count pred_count details"
    ),
    "gt_dump": "refno property_name value_string unit material source_row",
    "alias_candidates_review": "pred_name gt_name count avg_sim",
    "encompassment": "refno property_name tp fp fn kind",
    "score_pr_rows": (
        "refno property_name status pred_value gt_value pred_row gt_row raw_pred_name "
        "alias_id rubric pred_unit gt_unit unit_status reason material condition "
        "grounding quote_start quote_end model replicate"
    ),
}
"""By table, as scripts of users expect them."""


OTHER_RULES = {
    "units": "ignore",
    "numbers": "strict",
    "categorical": "equal",
    "cluster_keys": "exact",
    "matching": "greedy",
    "paper_set": "common",
    "abstentions": "value",
    "unparsed_composition": "no_match",
    "group_by": "property,material",
    "dedupe": "exact",
    "min_grounding": "near",
    "name_match": "fold",
    "clash": "set",
    "crossfit": True,
    "consensus": 1,
}
"""A value that is not the default of each setting that changes what counts."""


def card(**settings: object) -> Scorecard:
    given = {"pymatgen": "leave_out", "boot_b": 20} | settings
    dataset = PropertyDataset(
        settings=PropertySettings(**given), truth=TRUTH, rubric=RUBRIC
    )
    return score(dataset, RowAnswers(STATED))


def test_the_tables_have_the_columns_that_users_expect() -> None:
    found = {table.name: " ".join(table.columns) for table in card().tables}
    assert {name: found[name] for name in COLUMNS} == COLUMNS
    names = {artifact.name for artifact in card().artifacts}
    assert names == {"baselines.txt", "property_aliases.json", "report.txt"}


def test_every_caption_says_what_is_in_no_count() -> None:
    for table in card().tables:
        assert table.caption.endswith("with 1 of 5 truth rows and 1 predicted row.")
    for table in card(pymatgen="on").tables:
        assert "Left out" not in table.caption


def test_several_models_have_a_folder_each_and_one_comparison() -> None:
    dataset = PropertyDataset(
        settings=PropertySettings(boot_b=20), truth=TRUTH, rubric=RUBRIC
    )
    two = replace(RowAnswers(STATED), models=("m1", "to/../you"))
    names = {table.name for table in score(dataset, two).tables}
    assert {"m1/score_pr_rows", "comparison", "gt_dump"} <= names
    assert not any(".." in name.split("/") or name.startswith("/") for name in names)
    assert all(name.count("/") <= 1 for name in names)


def test_the_rows_that_count_come_by_paper_name_and_status() -> None:
    rows = [
        own.cells[:3]
        for own in card().details
        if isinstance(own, StreamedRow) and own.table == "score_pr_rows"
    ]
    assert rows == [
        ("P1", "Hc2", "FP"),
        ("P1", "Tc", "TP"),
        ("P1", "field", "FN"),
        ("P2", "Tc", "FP"),
        ("P2", "Tc", "FN"),
        ("P2", "structure", "FN"),
    ]


def test_the_paper_to_look_at_first_is_the_one_that_misses_most() -> None:
    assert card().worth_explaining == "P2"


@pytest.mark.parametrize("name", OTHER_RULES)
def test_numbers_by_another_rule_have_another_definition(name: str) -> None:
    """Runs are compared only where definitions are equal."""
    usual, other = (
        {metric.path: metric.definition for metric in own.models["m1"]}
        for own in (card(), card(**{name: OTHER_RULES[name]}))
    )
    for path in ("tp", "precision", "macro.f1"):
        assert f"{name}={OTHER_RULES[name]}" in other[path]
        assert usual[path] != other[path]


def test_every_rule_of_a_profile_is_in_definitions_or_about_aliases_to_come() -> None:
    ruled = {name for profile in PROFILES.values() for name in profile}
    assert ruled - OTHER_RULES.keys() == {"same_name", "review_rows"}
