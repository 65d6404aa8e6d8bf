"""The first table of a scoring: headline metrics by model, and tables for print.

Who writes reports is found where it is installed; without one there is none.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from runner.errors import UsageError
from runner.score.render import (
    MODELS,
    changes,
    metrics_table,
    operations_json,
    overview,
    print_tables,
)
from runner.scorecard import Metric, Scorecard, Table
from runner.table_rendering import typeset
from store.database import open_reader
from store.read.status import status
from tests.plugging import plugged
from tests.processes import siftlog
from tests.runner.toy_jobs import ToyJob, ToySettings
from tests.store.logs import COURSE, written


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
    with pytest.raises(UsageError, match="choose one of: metrics, by_kind"):
        list(print_tables(card, ["papers"]))


def test_the_file_of_metrics_has_words_beside_keys() -> None:
    table = metrics_table(_card(m=(RECALL,)))
    row = dict(zip(table.columns, table.rows[0], strict=True))
    assert row["metric"] == "recall"
    assert row["name"] == "Recall"
    assert row["direction"] == "higher"
    assert (row["value"], row["lo"], row["hi"], row["n"]) == (0.9, 0.8, 0.95, 10)


DRAWN = {"SIFTLOG_NO_REPORT": "0"}


@pytest.mark.parametrize(("cost", "stated"), [(None, None), (0.75, 0.5)])
def test_a_cost_that_is_known_in_part_is_stated_of_no_model(
    tmp_path: Path, cost: float | None, stated: float | None
) -> None:
    with open_reader(written(tmp_path / "log.db", *COURSE)) as reader:
        state = status(reader)
    state = replace(state, cost_usd=cost, model_cost_usd={"m": 0.5})
    card = replace(_card(), units={"m": {"paper": 2}})
    content = json.loads(operations_json(state, [], card))
    assert content["models"]["m"]["cost_usd"] == stated


def _plugged(folder: Path, target: str) -> dict[str, str]:
    """The environment in which a further writer of reports is installed."""
    environment = plugged(folder / "plugin")
    (points,) = (folder / "plugin").rglob("entry_points.txt")
    points.write_text(f"[siftlog.reports]\nother = {target}\n")
    return {**environment, **DRAWN}


def test_a_writer_of_another_package_writes_beside_the_rest(tmp_path: Path) -> None:
    (tmp_path / "other_report.py").write_text(
        "def write(folder, reported):\n"
        "    names = sorted(path.name for path in folder.iterdir())\n"
        "    (folder / 'other.txt').write_text(f'{reported.run_id} {names[-1]}')\n"
        "    return ()\n"
    )
    environment = _plugged(tmp_path, "other_report:write")
    environment["PYTHONPATH"] += f":{tmp_path}"
    siftlog("run", "paper-investigation", "--run-id=r", cwd=tmp_path, env=environment)
    written = tmp_path / "runs" / "r" / "scores" / "1" / "other.txt"
    assert written.read_text() == "r verdicts.db"


def test_a_broken_writer_is_named_and_the_other_reports_are_written(
    tmp_path: Path,
) -> None:
    environment = _plugged(tmp_path, "no_such_module:write")
    words = ("run", "paper-investigation", "--run-id=r")
    done = siftlog(*words, cwd=tmp_path, env=environment)
    assert "The report other (no_such_module:write) cannot be written" in done.stdout
    assert "--no-report" in done.stdout
    assert (tmp_path / "runs" / "r" / "scores" / "1" / "report.html").exists()


def test_only_settings_that_are_not_the_default_are_changes() -> None:
    job = ToyJob()
    assert changes(job, ToySettings(), tuple(ToySettings.model_fields)) == {}
    found = changes(job, ToySettings(items=7), ("items", "no_such"))
    assert found == {"items": (7, ToySettings().items)}
