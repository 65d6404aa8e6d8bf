"""What the figures of a scoring show is what its metrics say."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs.kit.charts import MOST_MODELS
from jobs.kit.testing import MemoryAnswers
from jobs.paper_investigation.job import job
from jobs.paper_investigation.question_counts import SIGNIFICANCES
from runner.job import Task
from runner.scorecard import (
    Figure,
    Heatmap,
    Histogram,
    Metric,
    Points,
    ReferenceLine,
    Scorecard,
    Stack,
)
from tests.jobs.paper_investigation.small_datasets import choice, dataset, study

REPLIES = {
    "PMC1": '["rs1", "rs2"]',
    "PMC2": '["rs9"]',
    "PMC3": "no list at all",
    "PMC1/mcq_drug:1": "b",
    "PMC1/mcq_drug:2": "c",
    "PMC1/study_param:1": '{"p_value": "0.03", "significance": "yes"}',
}


def scored(
    answer: Callable[[Task], str | None] = lambda task: REPLIES[task.key],
    models: tuple[str, ...] = ("m", "k"),
    **settings: object,
) -> Scorecard:
    data = dataset(
        {"PMC1": ["rs1", "rs2"], "PMC2": ["rs3"], "PMC3": ["rs4"]},
        [
            choice("PMC1", "rs1", "1"),
            choice("PMC1", "rs2", "2"),
            study("PMC1", "rs1", "1"),
        ],
        **settings,
    )
    return job.score(data, MemoryAnswers.of_run(job, data, answer, models))


def figure(card: Scorecard, name: str) -> Figure:
    (found,) = (each for each in card.figures if each.name == name)
    return found


def metric(card: Scorecard, model: str, path: str) -> Metric:
    (found,) = (each for each in card.models[model] if each.path == path)
    return found


def test_the_points_are_the_averages_with_their_intervals() -> None:
    card = scored()
    (panel,) = figure(card, "averages").panels
    assert panel.y.names[0] == "variant recall\nn = 2"
    assert panel.y.names[1] == "question accuracy\nn = 1"
    for mark, model in zip(panel.marks, ("m", "k"), strict=True):
        assert isinstance(mark, Points)
        recall = metric(card, model, "avg_variant_recall")
        assert (mark.x[0], mark.lo[0], mark.hi[0]) == (
            recall.value,
            recall.lo,
            recall.hi,
        )
        assert mark.label == model


def test_the_points_are_the_accuracies_of_the_pipelines_that_were_asked() -> None:
    card = scored()
    (panel,) = figure(card, "pipelines").panels
    assert panel.y.names == ("mcq_drug\nn = 2", "study_param\nn = 1", "TOTAL\nn = 3")
    (mark, _) = panel.marks
    assert isinstance(mark, Points)
    assert mark.x == tuple(
        metric(card, "m", f"pipeline.{name}.accuracy").value
        for name in ("mcq_drug", "study_param", "TOTAL")
    )


def test_every_scored_paper_is_counted_once_and_a_full_score_lies_in_the_last_bin() -> (
    None
):
    (panel, _) = figure(scored(mode="extract"), "papers").panels
    (mark,) = panel.marks
    assert isinstance(mark, Histogram)
    assert mark.counts == (1, 0, 0, 0, 0, 0, 0, 0, 0, 1)


def test_the_parts_of_a_bar_are_all_questions_that_were_asked() -> None:
    silent = {**REPLIES, "PMC1/mcq_drug:1": None, "PMC1/mcq_drug:2": ""}
    (panel,) = figure(scored(lambda task: silent[task.key]), "outcomes").panels
    parts = {mark.label: mark.values for mark in panel.marks if isinstance(mark, Stack)}
    assert {name: values[0] for name, values in parts.items()} == {
        "right": 1,
        "wrong": 0,
        "unreadable reply": 1,
        "no reply": 1,
    }


def test_no_paper_lies_above_the_ceiling_of_its_recall() -> None:
    (panel, _) = figure(scored(), "score-by-recall").panels
    (_, mark) = panel.marks
    assert isinstance(mark, Points)
    assert set(zip(mark.x, mark.y, strict=True)) == {(1.0, 0.5), (0.0, 0.0)}


def test_the_forest_is_of_the_differences_that_the_table_has() -> None:
    poor = {**REPLIES, "PMC1": '["rs1"]'}
    card = scored(lambda task: (poor if task.model == "k" else REPLIES)[task.key])
    panels = {panel.title: panel for panel in figure(card, "differences").panels}
    panel = panels["variant recall"]
    (rule, mark) = panel.marks
    assert isinstance(rule, ReferenceLine)
    assert isinstance(mark, Points)
    assert (rule.way, rule.at) == ("vertical", 0.0)
    assert panel.y.names == ("m\n- k",)
    assert panel.row_notes == ("n = 2",)
    (table,) = (each for each in card.tables if each.name == "pairs")
    (row,) = (dict(zip(table.columns, row, strict=True)) for row in table.rows)
    assert mark.x == (0.25,) == (row["avg_variant_recall_difference"],)
    assert mark.lo == (row["avg_variant_recall_lo"],)
    assert "differences" not in {each.name for each in scored(models=("m",)).figures}


def test_the_classes_end_with_all_of_them() -> None:
    (panel,) = figure(scored(), "classes").panels
    assert panel.y.names == ("rsID\nn = 3", "all\nn = 3")


def test_kinds_have_their_recall_with_intervals() -> None:
    card = scored()
    (panel,) = figure(card, "kinds").panels
    assert panel.y.names == ("rsID\nn = 3",)
    mark = panel.marks[0]
    assert isinstance(mark, Points)
    own = metric(card, "m", "kind.rsID.recall")
    assert (mark.x, mark.lo, mark.hi) == ((own.value,), (own.lo,), (own.hi,))


def test_significances_stand_where_expected_meets_answered() -> None:
    odd = {**REPLIES, "PMC1/study_param:1": '{"p_value": "1", "significance": "hm"}'}
    (panel, _) = figure(scored(lambda task: odd[task.key]), "significance").panels
    (mark,) = panel.marks
    assert isinstance(mark, Heatmap)
    assert mark.rows[SIGNIFICANCES.index("yes")] == (0, 0, 0, 0, 1)
    assert sum(sum(row) for row in mark.rows if row) == 1


def test_nothing_is_drawn_of_what_was_not_asked() -> None:
    extracted = scored(mode="extract")
    assert [each.name for each in extracted.figures] == [
        *("averages", "papers", "differences", "classes", "kinds")
    ]
    asked = scored(mode="questions")
    assert [each.name for each in asked.figures] == [
        *("pipelines", "outcomes", "study-fields", "significance")
    ]


def silence(task: Task) -> None:
    del task


def test_a_run_without_a_scored_paper_has_no_figure_of_averages() -> None:
    names = [each.name for each in scored(silence).figures]
    assert names == ["papers", "score-by-recall", "differences"]


@pytest.mark.parametrize("count", [MOST_MODELS, MOST_MODELS + 1])
def test_a_picture_of_more_models_than_it_holds_says_so(count: int) -> None:
    models = tuple(f"m{place}" for place in range(count))
    card = scored(models=models, boot_b=0)
    (panel,) = figure(card, "averages").panels
    assert len(panel.marks) == MOST_MODELS
    is_said = f"The first {MOST_MODELS} of {count} models; the tables hold all." in (
        figure(card, "averages").caption
    )
    assert is_said == (count > MOST_MODELS)


def test_headlines_are_the_averages_and_the_accuracy_of_all_questions() -> None:
    card = scored()
    assert [m.path for m in card.models["m"] if m.is_headline] == [
        "avg_variant_recall",
        "avg_question_acc",
        "avg_paper_score",
        "avg_precision",
        "avg_f1",
        "pipeline.TOTAL.accuracy",
    ]
