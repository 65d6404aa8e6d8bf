"""The first table of a scoring: headline metrics by model, and tables for print."""

from __future__ import annotations

import pytest

from runner.errors import UsageError
from runner.score.render import MODELS, metrics_table, overview, print_tables
from runner.scorecard import Metric, Scorecard, Table
from runner.table_rendering import typeset


def _metric(path: str, value: float | None, n: int = 10, **more: object) -> Metric:
    return Metric(path=path, value=value, n=n, **more)  # type: ignore[arg-type]


def _card(**models: tuple[Metric, ...]) -> Scorecard:
    return Scorecard(
        models=models,
        summary="",
        headline="recall",
        settings={"level": 0.9},
        tables=(
            Table(
                name="by_kind",
                columns=("kind", "recall", "recall.lo", "recall.hi", "is_easy"),
                rows=(("near", 0.5, 0.25, 0.75, True), ("far", None, None, None, None)),
                caption="By kind.",
                titles={"recall": "Recall"},
                is_headline=True,
            ),
            Table(name="papers", columns=("paper",)),
        ),
    )


RECALL = _metric(
    "recall", 0.9, lo=0.8, hi=0.95, name="Recall", direction="higher", is_headline=True
)
LOSS = _metric("loss", 3, name="Loss", direction="lower", is_headline=True)
DETAIL = _metric("recall~std", 0.1, name="Recall, standard deviation")


def test_headline_metrics_have_names_directions_intervals_n_and_keys() -> None:
    made = typeset(overview(_card(gpt=(LOSS, DETAIL, RECALL))), "text")
    assert made.splitlines() == [
        "Headline metrics: gpt",
        "Metric  Better  gpt                   n   Key",
        "Recall  higher  0.900 [0.800, 0.950]  10  recall",
        "Loss    lower   3                     10  loss",
    ]


def test_models_stand_side_by_side_and_n_by_model_where_it_differs() -> None:
    other = _metric("recall", None, n=7, name="Recall", is_headline=True)
    (table,) = overview(_card(a=(RECALL, LOSS), b=(other,)))
    assert [column.heading for column in table.columns] == [
        *("Metric", "Better", "a", "a: 90% interval", "a: n"),
        *("b", "b: 90% interval", "b: n", "Key"),
    ]
    assert table.rows == (
        ("Recall", "higher", 0.9, (0.8, 0.95), 10, None, "", 7, "recall"),
        ("Loss", "lower", 3, "", 10, "", "", "", "loss"),
    )


def test_more_models_than_fit_a_page_make_several_tables() -> None:
    models = {f"m{at}": (RECALL,) for at in range(MODELS + 1)}
    assert [table.title for table in overview(_card(**models))] == [
        "Headline metrics: m0, m1, m2",
        "Headline metrics: m3",
    ]


def test_a_card_without_metrics_has_no_first_table() -> None:
    assert overview(_card()) == ()
    assert overview(_card(m=(DETAIL,))) == ()


def test_tables_for_print_are_the_headlines_or_those_named() -> None:
    card = _card(m=(RECALL, DETAIL))
    assert [table.title for table in print_tables(card)] == [
        "Headline metrics: m",
        "by_kind",
    ]
    (by_kind,) = print_tables(card, ["by_kind"])
    assert [column.name for column in by_kind.columns] == [
        *("kind", "Recall", "Recall, interval", "is_easy"),
    ]
    assert by_kind.rows == (
        ("near", 0.5, (0.25, 0.75), "true"),
        ("far", None, "", None),
    )
    (every,) = print_tables(card, ["metrics"])
    assert [row[0] for row in every.rows] == ["Recall", "Recall, standard deviation"]
    with pytest.raises(UsageError, match="there are: metrics, by_kind"):
        list(print_tables(card, ["papers"]))


def test_the_file_of_metrics_has_words_beside_keys() -> None:
    table = metrics_table(_card(m=(RECALL,)))
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["metric"] == "recall"
    assert row["name"] == "Recall"
    assert row["direction"] == "higher"
    assert (row["value"], row["lo"], row["hi"], row["n"]) == (0.9, 0.8, 0.95, 10)
