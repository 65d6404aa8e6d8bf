"""Whole runs scored: what changed settings do to stored answers, and the files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from jobs.kit.comparison.pairing import label_agreement
from jobs.kit.testing import MemoryAnswers, table_rows
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.job import job
from jobs.screening.settings import ScreeningSettings
from runner.job import Task
from runner.scorecard import LIMITS, Scorecard, StreamedRow, Verdict
from tests.jobs.screening.commanded import some_records
from tests.jobs.screening.told_decisions import imported


def said(task: Task) -> str | None:
    """Titles exclude with 0.3 what ends in 1, or 0.05 in 2; abstracts are unreadable
    for 3 and fail for 4; all else is included."""
    decision, p = "include", 0.7
    if task.stage == "title" and task.key[-1] in "12":
        decision, p = "exclude", 0.3 if task.key[-1] == "1" else 0.05
    if task.stage == "abstract" and task.key[-1] in "34":
        return "I cannot say." if task.key[-1] == "3" else None
    return json.dumps(
        {"decision": decision, "p_include": p, "reason_code": "population"}
    )


@pytest.fixture(scope="module")
def sample() -> ScreeningDataset:
    dataset = job.load(
        job.with_sample(ScreeningSettings(stages=("title", "abstract"), boot_b=0))
    )
    assert isinstance(dataset, ScreeningDataset)
    return dataset


@pytest.fixture(scope="module")
def answers(sample: ScreeningDataset) -> MemoryAnswers:
    return MemoryAnswers.of_run(job, sample, said, models=("one", "two"), replicates=2)


@pytest.fixture(scope="module")
def card(sample: ScreeningDataset, answers: MemoryAnswers) -> Scorecard:
    return job.score(sample, answers)


def under(sample: ScreeningDataset, **changed: Any) -> ScreeningDataset:
    return replace(sample, settings=sample.settings.model_copy(update=changed))


def values(card: Scorecard, model: str = "one") -> Mapping[str, Any]:
    return {metric.path: metric.value for metric in card.models[model]}


def ending_in(sample: ScreeningDataset, *digits: str) -> int:
    drawn = sample.validation_set
    assert drawn is not None
    return sum(record.key[-1] in digits for record in drawn.records)


def test_a_stage_that_cannot_be_read_or_fails_excludes_nobody(
    card: Scorecard, sample: ScreeningDataset
) -> None:
    found = values(card)
    # titles that are sure, and what no later stage took back
    assert found["all.micro.outcome.exclude"] == ending_in(sample, "2")
    assert found["all.micro.outcome.unparsed"] == 0
    unread = 2 * ending_in(sample, "3")
    assert found["reply.parse.no_decision"] == unread
    drawn = sample.validation_set
    assert drawn is not None
    titles, ended, failed = len(drawn.records), *map(partial(ending_in, sample), "24")
    replies = 2 * (2 * titles - ended - failed)
    assert found["parse_failure_rate"] == unread / replies
    assert found["skip.excluded_earlier"] == 2 * ended
    assert card.units["one"] == {
        "record": titles,
        "correctly excluded record": found["all.micro.tn"],
    }
    assert (card.missing, card.stale) == (0, 0)
    assert found["replicates.flip_rate"] == 0.0


def test_another_title_threshold_uses_stored_answers_or_says_what_is_missing(
    sample: ScreeningDataset, answers: MemoryAnswers
) -> None:
    surer = job.score(under(sample, title_exclude_below=0.5), answers)
    ended = ending_in(sample, "1", "2")
    assert values(surer)["all.micro.outcome.exclude"] == ended
    assert (surer.missing, surer.stale) == (0, 4 * ending_in(sample, "1"))
    laxer = job.score(under(sample, title_exclude_below=0.01), answers)
    assert (laxer.missing, laxer.stale) == (4 * ending_in(sample, "2"), 0)


def test_every_replicate_screens_by_the_criteria_that_its_model_stated_once(
    tmp_path: Path,
) -> None:
    made = some_records(tmp_path, lambda place, _: place < 12)
    given = ScreeningSettings(criteria_source="llm", validation_set=made, boot_b=0)
    dataset = job.load(job.with_sample(given))
    answers = MemoryAnswers.of_run(
        job,
        dataset,
        lambda task: said(task) if ":" in task.key else '{"question": "Who?"}',
        replicates=2,
    )
    ((stated, *records),) = answers.families()
    assert (stated.task.stage, stated.task.replicate) == ("criteria", 1)
    assert [own.task.replicate for own in records] == [1, 2] * 12
    card = job.score(dataset, answers)
    assert (card.missing, card.stale) == (0, 0)
    assert "criteria_not_stated" not in {found.code for found in card.findings}


def test_a_stage_that_the_run_never_had_is_missing_for_all_who_are_alive(
    sample: ScreeningDataset, answers: MemoryAnswers
) -> None:
    stages = ("title", "abstract", "fulltext")
    card = job.score(under(sample, stages=stages), answers)
    drawn = sample.validation_set
    assert drawn is not None
    assert card.missing == 4 * (len(drawn.records) - ending_in(sample, "2"))
    ended = [row for row in table_rows(card, "decisions") if row["status"] == "parsed"]
    assert {str(row["paper_pmid"])[-1] for row in ended} == {"2"}


def test_thresholds_and_readings_are_chosen_after_the_fact(
    sample: ScreeningDataset, answers: MemoryAnswers
) -> None:
    found = values(job.score(under(sample, threshold=0.9), answers))
    drawn = sample.validation_set
    assert drawn is not None
    assert found["all.micro.outcome.exclude"] == len(drawn.records)


def test_every_table_row_fits_its_columns_and_verdicts_say_right_or_wrong(
    card: Scorecard, sample: ScreeningDataset
) -> None:
    columns = {table.name: table.columns for table in card.tables}
    for table in card.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
    details = list(card.details)
    lines = [own for own in details if isinstance(own, StreamedRow)]
    assert {own.table for own in lines} <= set(columns)
    assert all(len(own.cells) == len(columns[own.table]) for own in lines)
    drawn = sample.validation_set
    assert drawn is not None
    decisions = [own.cells for own in lines if own.table == "decisions"]
    assert len(decisions) == 4 * len(drawn.records)
    missed = [own.cells for own in lines if own.table == "false_negatives"]
    lost = [
        record.paper
        for record in drawn.records
        if record.label and record.paper.endswith("2")
    ]
    assert sorted(cells[2] for cells in missed if cells[0] == "one") == sorted(lost)
    verdicts = [own for own in details if isinstance(own, Verdict)]
    truth = {record.key: record.label for record in drawn.records}
    for own in verdicts:
        if own.correct is not None:
            is_included = own.value.startswith("include")
            assert own.correct == (is_included == bool(truth[own.key]))
    assert {own.rule for own in verdicts} == {"json", "no_decision"}


def test_written_decisions_of_stages_and_replicates_are_imported_as_they_were(
    sample: ScreeningDataset, card: Scorecard, answers: MemoryAnswers, tmp_path: Path
) -> None:
    surer = job.score(under(sample, title_exclude_below=0.5), answers)
    for given in (card, surer):
        again = job.score(*imported(tmp_path, table_rows(given, "decisions"), boot_b=0))
        for name in ("decisions", "per_review", "recall_curve"):
            assert table_rows(again, name) == table_rows(given, name)
        assert {row["status"] for row in table_rows(given, "decisions")} == {
            "parsed",
            "unparsed",
            "failed",
        }


def test_ensembles_and_figures_and_comparables_are_there(
    sample: ScreeningDataset, answers: MemoryAnswers
) -> None:
    found = job.score(under(sample, ensemble=("any", "all")), answers)
    assert list(found.models) == ["one", "two", "ensemble/any", "ensemble/all"]
    names = [figure.name for figure in found.figures]
    assert names == [
        "recall",
        "fpr-by-kind",
        "roc-by-kind",
        "reliability",
        "funnel",
        "wss95",
        "similarity",
        "candidates",
    ]
    for own in found.comparable.values():
        for make in own.values():
            made = make()
            assert len(made.items) == len(made.clusters) == len(made.first)
            assert len(set(made.items)) == len(made.items)
    one, two = (found.labelled[model]() for model in ("one", "two"))
    both = label_agreement(one, two)
    (row,) = [
        row
        for row in table_rows(found, "comparison")
        if {"one", "two"} <= set(row.values())
    ]
    assert both is not None
    assert (row["kappa"], row["ac1"]) == (both.agreement.kappa, both.agreement.ac)
    assert "missed" in found.summary
    assert "see the report, Limits" in found.summary


def test_a_report_has_what_a_reader_looks_for(
    sample: ScreeningDataset, answers: MemoryAnswers
) -> None:
    name = "recorded:/a/long/way/to/the/replies/of/a/model-8b.jsonl"
    other = replace(
        answers,
        held=tuple(
            tuple(
                structs.replace(own, task=structs.replace(own.task, model=name))
                for own in family
            )
            for family in answers.held
            if family[0].task.model == "one"
        ),
        models=(name,),
    )
    found = job.score(sample, other)
    # a name stands once, before the rows of its kinds, and its end is told
    assert found.summary.count("recorded:…/of/a/model-8b.jsonl  all") == 1
    assert found.summary.count("recorded:/a/long") == 0
    assert [table.name for table in found.tables if table.is_headline] == [
        "by_kind",
        "baselines",
    ]
    limits = {own.code: own.message for own in found.findings if own.where == LIMITS}
    assert {*limits} == {"near_misses_unjudged", "drawn_ratio"}
    assert "may be eligible" in limits["near_misses_unjudged"]
    paths = [metric.path for metric in found.models[name]]
    kinds = [at for at, path in enumerate(paths) if path.startswith("random.")]
    assert kinds[0] > max(
        at
        for at, path in enumerate(paths)
        if path.startswith(("all.", "reply.", "thresholds.", "contamination."))
    )
