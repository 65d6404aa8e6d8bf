"""Every file of a scoring has its columns, and says what no count holds.

The monitor has a verdict on each task with a reply. A run that is scored once more:
nothing that earlier scorings left behind counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.score import paper_verdicts, score
from jobs.property_extraction.settings import PROFILES, PropertySettings
from runner.job import Answer, Task
from runner.messages import Reply
from runner.scorecard import Scorecard, StreamedRow, Verdict
from tests.commands import command
from tests.csv_files import write_csv
from tests.jobs.property_extraction.scored_rows import (
    ALIAS,
    RUBRIC,
    STATED,
    TRUTH,
    RowAnswers,
    scored,
    stated,
)

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


@dataclass(frozen=True)
class Asked:
    """Single answers of one model."""

    answers: tuple[Answer, ...]
    models: tuple[str, ...] = ("m1",)
    replicates: int = 1
    imported: bool = False

    def families(self) -> Iterator[tuple[Answer, ...]]:
        return ((answer,) for answer in self.answers)


def asked(stage: str, key: str, text: str | None) -> Answer:
    task = Task(number=1, stage=stage, key=key, model="m1", replicate=1)
    return Answer(task=task, reply=None if text is None else Reply(text=text))


def verdict(answer: Answer) -> Verdict | None:
    found = [*paper_verdicts(scored(STATED), Asked((answer,)))]
    return found[0] if found else None


def test_each_paper_has_its_counts_and_is_right_if_nothing_is_missed_or_made_up() -> (
    None
):
    rows = (stated("P1", "Tc", "10", "K"), stated("P1", "Hc2", "20", "kOe"), STATED[3])
    results = scored(rows, aliases=ALIAS)
    first, second = paper_verdicts(results, RowAnswers(rows))
    assert (first.key, first.value, first.expected) == ("P1", "2 rows", "3 rows")
    assert (first.correct, first.rule) == (True, "TP 2 FP 0 FN 0")
    assert (second.correct, second.rule) == (False, "TP 0 FP 1 FN 2")


def test_what_is_read_of_a_reply_is_told_apart_from_how_it_scores() -> None:
    entries = [{"property": "Tc", "value": "10"}, {"property": "Tc"}]
    own = verdict(asked("extract", "P1", json.dumps({"properties": entries})))
    assert own is not None
    assert (own.value, own.rule) == ("1 row", "TP 1 FP 1 FN 1, 1 dropped")


def test_a_piece_of_a_paper_is_neither_right_nor_wrong() -> None:
    own = verdict(asked("extract", "P1#2", '{"properties": []}'))
    assert own is not None
    assert (own.value, own.correct, own.rule) == ("0 rows", None, "")


def test_an_unread_reply_has_its_reason_and_no_reply_no_verdict() -> None:
    own = verdict(asked("extract", "Q9", "I cannot help with that."))
    assert own is not None
    assert (own.value, own.correct) == ("", None)
    assert own.rule
    assert verdict(asked("extract", "P1", None)) is None


def test_a_second_request_tells_quotes_and_withdrawals() -> None:
    rows = [{"id": 1, "quote": "Tc is 10 K"}, {"id": 2, "withdraw": True}]
    own = verdict(asked("requote", "P1", json.dumps({"rows": rows})))
    assert own is not None
    assert (own.value, own.correct) == ("1 quote, 1 withdrawn", None)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        # it tells what the run has cost, and when
        if path.is_file() and path.name != "operations.json"
    }


def test_whatever_lies_in_the_folder_of_a_scoring_the_next_one_is_the_same(
    tmp_path: Path,
) -> None:
    truth = write_csv(
        tmp_path / "truth.csv",
        ("refno", "label", "value"),
        [("P1", "critical temperature", "5"), ("P2", "gap", "1")],
    )
    preds = write_csv(
        tmp_path / "preds.csv",
        ("refno", "property_name", "value_string"),
        [("P1", "critical temp", "5"), ("P2", "gap", "1"), ("P2", "gap", "2")],
    )
    done = command(
        *("import", "property-extraction", "--preds", preds, "--truth", truth),
        *("--model", "m", "--runs-dir", tmp_path, "--run-id", "r", "--no-report"),
    )
    assert done.code == 0, done.err
    scores = tmp_path / "r" / "scores"
    first = files(scores / "1")
    draft = json.loads(first["property_aliases.json"])
    assert draft == {"critical temp": "critical temperature"}
    # what the old loop would have read
    for number in (1, 2, 3):
        folder = scores / str(number)
        (folder / "property_aliases.json").write_text('{"critical temp": "gap"}')
        (folder / "alias_candidates.csv").write_text("pred_name,gt_name\na,b\n")
        done = command("score", tmp_path / "r", "--no-report")
        assert done.code == 0, done.err
        assert files(scores / str(number + 1)) == first
