"""The metrics of one stratum: pooled over records, and averaged over reviews.

Intervals are drawn by review; Wilson's stand beside the pooled proportions and say that
they take records as independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from jobs.metrics import (
    Confusion,
    Interval,
    Ratio,
    Resamples,
    aggregate,
    agreement_of,
    brier,
    ece,
    mean_of,
    ppv_at_prevalence,
    rate_columns,
    rates,
    ratio,
    wilson,
)
from jobs.metrics.columns import Bools, Floats, as_value, quotient
from jobs.screening.measuring.counting import Cells, Counts, counts
from jobs.screening.measuring.ranking import Values, measured, measures
from jobs.screening.measuring.view import View
from jobs.screening.measuring.wording import (
    DEPENDS_ON_RATIO,
    DRAWN_RATIO,
    MEANINGS,
    UNJUDGED,
)
from runner.scorecard import Metric

BETA = 2.0
ECE_BINS = 10
PROPORTIONS = ("sensitivity", "specificity", "precision", "npv")
"""Those with Wilson's interval too."""

DEFINITIONS: Mapping[str, str] = {
    "coverage": "decided / records",
    "sensitivity": "tp / (tp + fn)",
    "specificity": "tn / (tn + fp)",
    "fpr": "fp / (fp + tn)",
    "precision": "tp / (tp + fp)",
    "npv": "tn / (tn + fn)",
    "f1": "2 tp / (2 tp + fp + fn)",
    "f2": "5 tp / (5 tp + fp + 4 fn)",
    "accuracy": "(tp + tn) / decided",
    "nnr": "1 / precision",
    "workload_reduction": "(tn + fn) / decided",
    "balanced_accuracy": "(sensitivity + specificity) / 2",
    "mcc": "Matthews; an empty margin gives 0",
    "kappa": "Cohen's, decision against label",
    "ac1": "Gwet's, decision against label",
}
"""By name, in reading order; of the decided records."""

WITHOUT_INTERVAL = ("balanced_accuracy", "mcc", "kappa", "ac1")
"""No ratios of sums; their intervals are those of the macro means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """What one view comes to in one stratum."""

    name: str
    counts: Counts
    by_review: Values  #: rates and ranking measures, a value a review
    metrics: tuple[Metric, ...]

    @property
    def by_path(self) -> Mapping[str, Metric]:
        """Its metrics, by path without the stratum."""
        return {each.path.removeprefix(f"{self.name}."): each for each in self.metrics}


def stratum(view: View, name: str, rows: Bools, draws: Resamples) -> Stratum:
    """Measure a view in a stratum."""
    found = counts(view, rows)
    by_review = {**_rates_by_review(found), **measured(view, rows)}
    return Stratum(
        name=name,
        counts=found,
        by_review=by_review,
        metrics=(
            *_counted(name, found),
            *_micro(view, name, found, draws),
            *_readings(name, found, draws),
            *_foretold(view, name, found),
            *_calibration(view, name, rows),
            *_macro(view, name, found, by_review, draws),
        ),
    )


def _counted(name: str, found: Counts) -> Iterator[Metric]:
    total = int(found.records.sum())
    tp, fp, tn, fn = found.decided.pooled()
    numbers = {
        "n": total,
        "positives": int(found.positives.sum()),
        "reviews": int((found.records > 0).sum()),
        "decided": int(found.decided.n.sum()),
        "tp": tp,
        "fp": fp,
        "tn": tn,
        "fn": fn,
        **{f"outcome.{word}": number for word, number in found.outcomes.items()},
        "imputed": found.imputed,
    }
    for word, number in numbers.items():
        yield Metric(
            path=f"{name}.micro.{word}",
            value=number,
            n=total,
            subset=name,
            definition=f"count@1({word})",
        )


def _sums(cells: Cells) -> dict[str, Ratio]:
    """The rates that are one sum by another, with what is summed by review."""
    tp, fp, tn, fn = cells.tp, cells.fp, cells.tn, cells.fn
    positives, negatives = tp + fn, tn + fp
    included, excluded = tp + fp, tn + fn
    return {
        "sensitivity": Ratio(tp, positives),
        "specificity": Ratio(tn, negatives),
        "fpr": Ratio(fp, negatives),
        "precision": Ratio(tp, included),
        "npv": Ratio(tn, excluded),
        "f1": Ratio(2 * tp, 2 * tp + fp + fn),
        "f2": Ratio(5 * tp, 5 * tp + fp + 4 * fn),
        "accuracy": Ratio(tp + tn, cells.n),
        "nnr": Ratio(included, tp),
        "workload_reduction": Ratio(excluded, cells.n),
    }


def _pooled(found: Counts) -> dict[str, float | None]:
    """Every rate of all decided records together."""
    cells = found.decided
    tp, fp, tn, fn = cells.pooled()
    whole = Confusion(tp=tp, fp=fp, tn=tn, fn=fn)
    plain, weighted = rates(whole), rates(whole, BETA)
    decided = tp + fp + tn + fn
    return {
        **plain,
        "f2": weighted["fbeta"],
        "coverage": ratio(decided, float(found.records.sum())),
        "workload_reduction": ratio(tn + fn, decided),
        "ac1": agreement_of(np.array([[tn, fp], [fn, tp]], dtype=np.float64)).ac,
    }


def _micro(view: View, name: str, found: Counts, draws: Resamples) -> Iterator[Metric]:
    pooled = _pooled(found)
    cells = found.decided
    sums = {"coverage": Ratio(cells.n, found.records), **_sums(cells)}
    drawn = dict(zip(sums, draws.intervals(list(sums.values())), strict=True))
    reading = f"decided records, unclear={view.settings.unclear}"
    if view.settings.threshold is not None:
        reading += f", p_include >= {view.settings.threshold:g}"
    for word, formula in DEFINITIONS.items():
        interval = drawn.get(word)
        definition = f"{word}@1({formula}; {reading})"
        n = int(cells.n.sum() if interval is None else np.sum(sums[word].denominators))
        path = f"{name}.micro.{word}"
        drawing = "" if interval is None else f"; {draws.definition}"
        yield _metric(
            path,
            pooled[word],
            n=n,
            definition=definition + drawing,
            interval=interval,
        )
        if word in PROPORTIONS:
            k = int(np.sum(sums[word].numerators))
            level = view.settings.level
            yield Metric(
                path=f"{path}.wilson",
                value=pooled[word],
                n=n,
                subset=name,
                lo=(ends := wilson(k, n, level)).lo,
                hi=ends.hi,
                definition=f"{definition}; Wilson, level={level}",
                note="takes records as independent",
            )


def _readings(name: str, found: Counts, draws: Resamples) -> Iterator[Metric]:
    """Whoever is undecided as included, and as excluded, over all records."""
    for reading, cells in (
        ("as_include", found.as_include),
        ("as_exclude", found.as_exclude),
    ):
        tp, fp, tn, fn = cells.pooled()
        pooled = rates(Confusion(tp=tp, fp=fp, tn=tn, fn=fn))
        wanted = ("sensitivity", "specificity", "f1")
        sums = {word: _sums(cells)[word] for word in wanted}
        for word, ends in zip(
            wanted, draws.intervals(list(sums.values())), strict=True
        ):
            yield _metric(
                f"{name}.micro.{reading}.{word}",
                pooled[word],
                n=int(np.sum(sums[word].denominators)),
                definition=f"{word}@1({DEFINITIONS[word]}; all records, undecided "
                f"{reading}); {draws.definition}",
                interval=ends,
            )


def _foretold(view: View, name: str, found: Counts) -> Iterator[Metric]:
    pooled = _pooled(found)
    for prevalence in view.settings.prevalence:
        yield Metric(
            path=f"{name}.micro.ppv_at_{prevalence:g}",
            value=ppv_at_prevalence(
                pooled["sensitivity"], pooled["specificity"], prevalence
            ),
            n=int(found.decided.n.sum()),
            subset=name,
            definition=f"ppv_at_prevalence@1(prevalence={prevalence:g})",
        )


def _calibration(view: View, name: str, rows: Bools) -> Iterator[Metric]:
    own = rows & ~view.imputed
    p, y = view.decisions.p[own], view.records.label[own]
    values = {
        "brier": brier(y, p) if len(p) else None,
        f"ece{ECE_BINS}": ece(y, p, ECE_BINS),
    }
    for word, value in values.items():
        yield Metric(
            path=f"{name}.micro.{word}",
            value=value,
            n=len(p),
            subset=name,
            definition=f"{word}@1(of p_include where there is one)",
        )


def _rates_by_review(found: Counts) -> dict[str, list[float | None]]:
    cells = found.decided
    columns = {
        **rate_columns(cells.tp, cells.fp, cells.tn, cells.fn),
        "f2": rate_columns(cells.tp, cells.fp, cells.tn, cells.fn, beta=BETA)["fbeta"],
        "coverage": quotient(cells.n, found.records),
        "workload_reduction": quotient(cells.tn + cells.fn, cells.n),
    }
    by_review = {word: _listed(columns[word]) for word in DEFINITIONS if word != "ac1"}
    # nothing decided is no agreement of 0
    empty = cells.n == 0
    by_review["mcc"] = _listed(np.where(empty, np.nan, columns["mcc"]))
    by_review["ac1"] = [
        agreement_of(np.array([[tn, fp], [fn, tp]])).ac
        for tp, fp, tn, fn in zip(cells.tp, cells.fp, cells.tn, cells.fn, strict=True)
    ]
    for reading, own in (
        ("as_include", found.as_include),
        ("as_exclude", found.as_exclude),
    ):
        columns = dict(rate_columns(own.tp, own.fp, own.tn, own.fn))
        for word in ("sensitivity", "specificity", "f1"):
            by_review[f"{reading}.{word}"] = _listed(columns[word])
    return by_review


def _listed(column: Floats) -> list[float | None]:
    return [as_value(value) for value in column]


def _macro(
    view: View, name: str, found: Counts, by_review: Values, draws: Resamples
) -> Iterator[Metric]:
    ranking = {word: own.definition for word, own in measures(view.settings).items()}
    there = [at for at, n in enumerate(found.records) if n]
    drawn = draws.intervals([mean_of(values) for values in by_review.values()])
    for (word, values), ends in zip(by_review.items(), drawn, strict=True):
        described = aggregate([values[at] for at in there])
        formula = ranking.get(word) or f"{word}@1(of each review)"
        yield _metric(
            f"{name}.macro.{word}",
            described.mean,
            n=described.n,
            definition=f"{formula}; mean over reviews; {draws.definition}",
            interval=ends,
            n_defined=described.n_defined,
            std=described.std,
        )
        yield Metric(
            path=f"{name}.macro.{word}.std",
            value=described.std,
            n=described.n,
            subset=name,
            n_defined=described.n_defined,
            definition=f"{formula}; standard deviation over reviews, ddof=1",
        )


def _metric(
    path: str,
    value: float | None,
    *,
    n: int,
    definition: str,
    interval: Interval | None,
    n_defined: int | None = None,
    std: float | None = None,
) -> Metric:
    ends = interval or Interval(lo=None, hi=None)
    return Metric(
        path=path,
        value=value,
        n=n,
        subset=path.partition(".")[0],
        n_defined=n_defined,
        lo=ends.lo,
        hi=ends.hi,
        definition=definition,
        note=_note(path),
        meaning=MEANINGS.get(path, ""),
        mean=None if n_defined is None else value,
        std=std,
    )


def _note(path: str) -> str | None:
    word = path.rpartition(".")[2]
    notes = [DRAWN_RATIO] if word in DEPENDS_ON_RATIO else []
    if path.startswith("near-miss.") and word in {"specificity", "fpr"}:
        notes.append(UNJUDGED)
    return "; ".join(notes) or None
