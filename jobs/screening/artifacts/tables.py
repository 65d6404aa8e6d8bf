"""The short tables: by kind, by review, reasons, models compared."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.comparison.models import TESTED_COLUMNS, difference_cells, tested_cells
from jobs.screening.measuring.pairs import PAIRED, SENSITIVITY, SPECIFICITY
from jobs.screening.measuring.results import Column, Results
from runner.scorecard import Cell, Table

BY_KIND = (
    "micro.coverage",
    "micro.sensitivity",
    "micro.as_include.sensitivity",
    "micro.specificity",
    "micro.as_include.specificity",
    "micro.fpr",
    "micro.precision",
    "micro.f1",
    "micro.as_include.f1",
    "macro.wss95",
    "macro.auroc",
)
"""Metrics of `by_kind.csv`, with the ends of their intervals beside them.

Beside a mean over reviews stands how many of them have a value.
"""


def short_tables(results: Results) -> Iterator[Table]:
    """All of them, in the order of a report."""
    yield _by_kind(results)
    yield _per_review(results)
    yield _comparison(results)
    yield _reason_confusion(results)


def _by_kind(results: Results) -> Table:
    columns = ["model", "replicate", "kind", "n", "positives"]
    for path in BY_KIND:
        columns += [path, f"{path}.lo", f"{path}.hi"]
        columns += [f"{path}.n_defined"] if _is_mean(path) else []
    rows: list[tuple[Cell, ...]] = []
    for column in (*results.columns.values(), *results.replicates):
        for name, own in column.strata.items():
            row: list[Cell] = [
                column.view.decisions.model,
                column.view.decisions.replicate,
                name,
                int(own.counts.records.sum()),
                int(own.counts.positives.sum()),
            ]
            known = own.by_path
            for path in BY_KIND:
                row += [known[path].value, known[path].lo, known[path].hi]
                row += [known[path].n_defined] if _is_mean(path) else []
            rows.append(tuple(row))
    has_near_misses = "near-miss" in results.sheet.records.kinds
    unjudged = " Near misses are unjudged." if has_near_misses else ""
    return Table(
        name="by_kind",
        columns=tuple(columns),
        rows=tuple(rows),
        caption="Each model against all negatives and against each kind of them; "
        "as_include counts whatever is undecided as included. Precision and WSS go by "
        "this set's ratio of negatives, which need not be that of a search."
        f"{unjudged}",
        is_headline=True,
    )


def _is_mean(path: str) -> bool:
    return path.startswith("macro.")


def _per_review(results: Results) -> Table:
    rows: list[tuple[Cell, ...]] = []
    measures: tuple[str, ...] = ()
    for model, column in results.columns.items():
        for name, own in column.strata.items():
            measures = tuple(own.by_review)
            rows += _reviews_of(results, column, model, name)
    return Table(
        name="per_review",
        columns=(
            "review_pmid",
            "model",
            "stratum",
            "n",
            "positives",
            "decided",
            "tp",
            "fp",
            "tn",
            "fn",
            *measures,
        ),
        rows=tuple(rows),
        caption="Rates of decided records and what reading in the model's order "
        "saves, review by review; ranking is undefined where one class is missing.",
    )


def _reviews_of(
    results: Results, column: Column, model: str, name: str
) -> Iterator[tuple[Cell, ...]]:
    own = column.strata[name]
    found, cells = own.counts, own.counts.decided
    for at, review in enumerate(results.sheet.records.reviews):
        if found.records[at]:
            yield (
                review,
                model,
                name,
                int(found.records[at]),
                int(found.positives[at]),
                int(cells.n[at]),
                int(cells.tp[at]),
                int(cells.fp[at]),
                int(cells.tn[at]),
                int(cells.fn[at]),
                *(values[at] for values in own.by_review.values()),
            )


def _comparison(results: Results) -> Table:
    return Table(
        name="comparison",
        columns=(
            "left",
            "right",
            "n",
            "dropped",
            "left_alone_right",
            "right_alone_right",
            "mcnemar_p",
            "mcnemar_p_holm",
            "sensitivity_difference",
            "sensitivity_lo",
            "sensitivity_hi",
            "specificity_difference",
            "specificity_lo",
            "specificity_hi",
            "agreement",
            "kappa",
            "ac1",
            *(f"{path}.{name}" for path in PAIRED for name in TESTED_COLUMNS),
        ),
        rows=tuple(
            (
                own.left,
                own.right,
                own.n,
                own.dropped,
                own.left_alone,
                own.right_alone,
                own.p,
                own.p_holm,
                *difference_cells(own.metrics.get(SENSITIVITY)),
                *difference_cells(own.metrics.get(SPECIFICITY)),
                own.agreement.percent,
                own.agreement.kappa,
                own.agreement.ac,
                *(
                    cell
                    for path in PAIRED
                    for cell in tested_cells(own.metrics.get(path))
                ),
            )
            for own in results.pairs
        ),
        caption="Left minus right, on the records that both decided. Each metric has "
        "its own test by review, corrected by Holm over all pairs of this table, and a "
        "verdict on the left model. McNemar's exact test of being right ignores that "
        "records of a review hang together; it is secondary and decides nothing.",
    )


def _reason_confusion(results: Results) -> Table:
    return Table(
        name="reason_confusion",
        columns=("model", "reason_code", "model_reason_code", "n"),
        rows=tuple(
            (model, own, said, n)
            for model, column in results.columns.items()
            if column.reasons is not None
            for (own, said), n in column.reasons.cells.items()
        ),
        caption="Why reviews excluded a paper, and why the model did. The reviews' "
        "codes come from their words by rules; those coded other are left out.",
    )
