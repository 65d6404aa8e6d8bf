"""The short tables of a scoring: a row per model, pair, compared fact or difference."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobs.comparison.in_run import TESTED_COLUMNS, difference_cells, tested_cells
from jobs.paper_investigation.record import Fact, Mode
from jobs.paper_investigation.tallies.agreement import Agreement
from jobs.paper_investigation.tallies.headline import AVERAGES
from jobs.paper_investigation.tallies.pairs import Pair
from runner.scorecard import Cell, Metric, Table

COUNTS: Mapping[Mode, tuple[str, ...]] = {
    "investigate": (
        "papers_scored",
        "papers_skipped",
        "papers_with_questions",
        "papers_without_questions",
        "avg_paper_score~papers_with_questions",
        "avg_paper_score~parse_failures_as_zero",
        "avg_paper_score~skipped_as_zero",
        "pipeline.TOTAL.questions",
        "pipeline.TOTAL.correct",
        "pipeline.TOTAL.accuracy",
        "pipeline.TOTAL.unparsed",
        "pipeline.TOTAL.missing",
        "pipeline.TOTAL.links",
        "recalled_not_asked",
        "questions_not_asked",
    ),
    "extract": ("papers_scored", "papers_skipped", "avg_variant_recall~micro"),
    "questions": (
        "pipeline.TOTAL.questions",
        "pipeline.TOTAL.correct",
        "pipeline.TOTAL.accuracy",
        "pipeline.TOTAL.unparsed",
        "pipeline.TOTAL.missing",
    ),
}
"""Metrics that the table of models shows behind the averages."""


def models_table(models: Mapping[str, Sequence[Metric]], mode: Mode) -> Table:
    """One row a model: the averages with their intervals, and the counts."""
    averages = [average.path for average in AVERAGES[mode]]
    columns = ["model"]
    for path in averages:
        columns += [path, f"{path}_lo", f"{path}_hi"]
    rows = []
    for model, metrics in models.items():
        by_path = {metric.path: metric for metric in metrics}
        cells: list[Cell] = [model]
        for path in averages:
            metric = by_path[path]
            cells += [metric.value, metric.lo, metric.hi]
        cells += [by_path[path].value for path in COUNTS[mode]]
        rows.append(tuple(cells))
    return Table(
        name="models",
        columns=(*columns, *COUNTS[mode]),
        rows=tuple(rows),
        caption="One row a model; intervals are drawn by paper.",
    )


def pairs_table(pairs: Iterable[Pair], mode: Mode) -> Table:
    """One row a pair of models, on what both have."""
    averages = [average.path for average in AVERAGES[mode]]
    gaps = [
        f"{path}{part}" for path in averages for part in ("_difference", "_lo", "_hi")
    ]
    return Table(
        name="pairs",
        columns=(
            "model_a",
            "model_b",
            "papers",
            "papers_only_a",
            "papers_only_b",
            *gaps,
            "wins",
            "losses",
            "ties",
            "sign_p",
            "sign_p_holm",
            "recall_part",
            "accuracy_part",
            "questions",
            "mcnemar_p",
            *(f"{path}_{name}" for path in averages for name in TESTED_COLUMNS),
        ),
        rows=tuple(tuple(_pair_cells(pair, averages)) for pair in pairs),
        caption="Differences a - b on papers scored by both; Holm over the pairs of "
        "this table. Verdicts are on model_a and rest on the average's interval and "
        "p_holm. sign_p and mcnemar_p are secondary and decide nothing: the sign test "
        "counts papers, McNemar's test assumes independent questions.",
    )


def _pair_cells(pair: Pair, averages: Sequence[str]) -> Iterator[Cell]:
    yield from (pair.left, pair.right, pair.papers, pair.only_left, pair.only_right)
    for path in averages:
        yield from difference_cells(pair.averages.get(path))
    yield from (pair.wins, pair.losses, pair.ties, pair.sign_p, pair.sign_p_holm)
    yield from (pair.recall_part, pair.accuracy_part, pair.questions, pair.mcnemar_p)
    for path in averages:
        yield from tested_cells(pair.averages.get(path))


def agreement_tables(agreements: Iterable[Agreement]) -> tuple[Table, Table]:
    """How often recomputed facts are those of the file, and the first that are not."""
    return (
        Table(
            name="agreement",
            columns=("profile", "fact", "compared", "agreeing"),
            rows=tuple(row for each in agreements for row in each.rows()),
            caption="Facts stated by the imported files against recomputed ones.",
        ),
        Table(
            name="differences",
            columns=("profile", "model", "where", "fact", "recorded", "recomputed"),
            rows=tuple(
                (
                    each.profile,
                    difference.model,
                    difference.where,
                    difference.fact,
                    _cell(difference.recorded),
                    _cell(difference.recomputed),
                )
                for each in agreements
                for difference in each.differences
            ),
            caption="The first differences under each profile.",
        ),
    )


def _cell(fact: Fact) -> Cell:
    return "; ".join(fact) if isinstance(fact, list) else fact
