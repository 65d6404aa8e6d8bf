"""Item values, labels and verdicts follow from the frame of a model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.baselines import TrivialBaseline
from jobs.kit.measures import BASELINE_FORMS, Measure, Measures
from jobs.kit.metrics import Ratio
from jobs.kit.score import (
    NO_LABEL,
    ItemFrame,
    ItemMetric,
    Judged,
    ModelScores,
    TaskVerdicts,
    comparable,
    with_models,
)
from jobs.kit.testing import MemoryAnswers
from runner.job import Answer, Task
from runner.scorecard import BASELINES, Metric, Scorecard

WORDS = ("no", "yes")

ITEMS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(0, 1),
        st.sampled_from([NO_LABEL, 0, 1]),
        st.sampled_from([float("nan"), 0.0, 0.5, 1.0]),
        st.booleans(),
    ),
    max_size=8,
)


def frame(rows: list[tuple[str, int, int, float, bool]]) -> ItemFrame:
    columns = [*zip(*rows, strict=True)] or [()] * 5
    return ItemFrame(
        size=len(rows),
        key="item {}".format,
        cluster_of=columns[0].__getitem__,
        cluster="paper",
        truth=np.array(columns[1], dtype=np.int64),
        label=np.array(columns[2], dtype=np.int64),
        score=np.array(columns[3], dtype=np.float64),
        categories=WORDS,
    )


@given(ITEMS)
def test_values_are_those_of_the_chosen_rows(
    rows: list[tuple[str, int, int, float, bool]],
) -> None:
    metric = ItemMetric(
        "m", frame, rows=lambda rows: np.array([row[4] for row in rows], dtype=bool)
    )
    values = metric.values(rows, "m@1()")
    chosen = [(at, row) for at, row in enumerate(rows) if row[4]]
    assert (values.kind, values.second, values.definition) == ("mean", None, "m@1()")
    assert values.items == [f"item {at}" for at, _ in chosen]
    assert values.clusters == [row[0] for _, row in chosen]
    assert values.first == [
        None if label == NO_LABEL else float(label == truth)
        for _, (_, truth, label, _, _) in chosen
    ]


@given(ITEMS)
def test_areas_take_truth_and_score_and_labels_are_words(
    rows: list[tuple[str, int, int, float, bool]],
) -> None:
    values = ItemMetric("auroc", frame, "auroc").values(rows, "")
    assert values.kind == "auroc"
    assert values.first == [row[1] for row in rows]
    assert values.second == [None if row[3] != row[3] else row[3] for row in rows]
    labels = frame(rows).labels("decision")
    assert (labels.what, labels.categories) == ("decision", WORDS)
    assert labels.assigned == [
        None if row[2] == NO_LABEL else WORDS[row[2]] for row in rows
    ]


def test_a_ratio_has_two_columns_and_a_listed_item_is_a_cluster_of_its_own() -> None:
    metric: ItemMetric[object] = ItemMetric(
        "m",
        lambda _: ItemFrame.of(["p", "q"], cluster="paper"),
        lambda _: Ratio([1, 2], [2, 4]),
        lower_is_better=True,
        family="f",
    )
    values = metric.values(None, "")
    assert (values.kind, values.first, values.second) == ("ratio", [1, 2], [2, 4])
    assert values.items == values.clusters == ["p", "q"]
    assert (values.lower_is_better, values.family) == (True, "f")


def test_a_frame_without_the_columns_of_a_metric_is_refused() -> None:
    metric: ItemMetric[object] = ItemMetric(
        "m", lambda _: ItemFrame.of(["p"], cluster="paper")
    )
    with pytest.raises(TypeError, match="no labels"):
        metric.values(None, "")


def test_a_metric_takes_its_definition_or_is_left_out() -> None:
    metrics: list[ItemMetric[object]] = [
        ItemMetric(path, lambda _: ItemFrame.of([], cluster="paper"), lambda _: [])
        for path in ("known", "unknown")
    ]
    known = {
        "known": Metric(
            path="known", value=1.0, n=1, definition="k@1(); interval by paper: none"
        )
    }
    made = comparable(metrics, None, known)
    assert list(made) == ["known"]
    assert made["known"]().definition == "k@1()"


def answer(number: int) -> Answer:
    task = Task(number=number, stage="s", key=f"k{number}", model="m", replicate=1)
    return Answer(task=task)


def judge(asked: list[int], answer: Answer) -> Judged | None:
    asked.append(answer.task.number)
    return Judged(value="yes", rule="r") if answer.task.number % 2 else None


def test_verdicts_are_judged_when_they_are_read_and_each_time() -> None:
    asked: list[int] = []
    held = ((answer(1), answer(2)), (answer(3),))
    answers = MemoryAnswers(held=held, models=("m",), replicates=1)
    verdicts = TaskVerdicts(answers, partial(judge, asked))
    assert asked == []
    assert [verdict.task for verdict in verdicts] == [1, 3]
    assert [(verdict.key, verdict.rule) for verdict in verdicts] == [
        ("k1", "r"),
        ("k3", "r"),
    ]
    assert asked == [1, 2, 3, 1, 2, 3]


def test_parts_of_models_that_there_are_none_of_are_left_out() -> None:
    words = Measures(
        measures={"m": Measure("The measure", "What it is")}, forms=BASELINE_FORMS
    )

    def baselines() -> Iterator[TrivialBaseline]:
        yield TrivialBaseline(
            of="m", key="random", name="n", value=0.5, n=1, formula="f"
        )

    scores = {
        "one": ModelScores(
            metrics=[Metric(path="m", value=1.0, n=1)],
            units={"record": 3},
            baselines=baselines(),
        ),
        "two": ModelScores(metrics=[]),
    }
    card = with_models(Scorecard(models={}, summary="s"), scores, words)
    assert card.models["one"][0].name == "The measure"
    assert [metric.path for metric in card.models["one"]] == ["m", "m~random"]
    assert card.models["two"] == ()
    assert card.units == {"one": {"record": 3}}
    assert card.labelled == card.bookable == {}
    assert card.comparable == {"one": {}, "two": {}}
    assert [artifact.name for artifact in card.artifacts] == [BASELINES]
