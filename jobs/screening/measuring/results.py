"""Everything that was measured of a sheet, before it becomes tables and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from jobs.metrics import Resamples, ratio
from jobs.screening.dataset import Dataset
from jobs.screening.decisions import Decisions, Sheet
from jobs.screening.measuring.kinds import implied_contamination, kind_gaps
from jobs.screening.measuring.limits import limits
from jobs.screening.measuring.pairs import Pair
from jobs.screening.measuring.reasons import Reasons, reasons
from jobs.screening.measuring.repeated import repeated
from jobs.screening.measuring.strata import strata
from jobs.screening.measuring.stratum import Stratum, stratum
from jobs.screening.measuring.thresholds import Thresholds, thresholds
from jobs.screening.measuring.view import View, text_rank
from runner.scorecard import Finding, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What one model, replicate or ensemble comes to."""

    view: View
    strata: Mapping[str, Stratum]
    thresholds: Thresholds
    reasons: Reasons | None
    further: tuple[Metric, ...]  #: of no stratum

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All of them, each under a path of its own; those of single kinds last."""
        whole, *kinds = self.strata.values()
        return (
            *whole.metrics,
            *self.further,
            *(each for own in kinds for each in own.metrics),
        )

    def by_path(self) -> Mapping[str, Metric]:
        """All of them by path."""
        return {each.path: each for each in self.metrics}


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """A sheet, measured."""

    dataset: Dataset
    sheet: Sheet
    columns: Mapping[str, Column]  #: by model, ensembles after them
    replicates: tuple[Column, ...]  #: single ones, where there are several
    findings: tuple[Finding, ...]
    pairs: tuple[Pair, ...] = ()  #: only a scorecard compares models


def measured(dataset: Dataset, sheet: Sheet) -> Results:
    """Measure every model and ensemble."""
    records, settings = sheet.records, dataset.settings
    draws = Resamples(
        records.reviews,
        settings.boot_b,
        settings.boot_seed,
        level=settings.level,
        cluster="review",
        form=settings.interval,
    )
    rank = text_rank(records)
    of = partial(_column, sheet=sheet, draws=draws)
    views = {own.model: View(records, own, settings, rank) for own in sheet.decisions}
    singles = [View(records, own, settings, rank) for own in sheet.replicates]
    return Results(
        dataset=dataset,
        sheet=sheet,
        columns={name: of(view) for name, view in views.items()},
        replicates=tuple(of(view) for view in singles),
        findings=tuple(limits(dataset, sheet)),
    )


def _column(view: View, sheet: Sheet, draws: Resamples) -> Column:
    found = {
        name: stratum(view, name, rows, draws)
        for name, rows in strata(sheet.records).items()
    }
    own = view.decisions
    chosen, coded = thresholds(view), reasons(view)
    replicates = (
        [each for each in sheet.replicates if each.model == own.model]
        if own.replicate is None
        else []
    )
    return Column(
        view=view,
        strata=found,
        thresholds=chosen,
        reasons=coded,
        further=(
            *kind_gaps(found, draws),
            *implied_contamination(found),
            *chosen.metrics(draws),
            *(() if coded is None else coded.metrics()),
            *repeated(replicates),
            *_noticed(own, found["all"]),
        ),
    )


def _noticed(own: Decisions, whole: Stratum) -> Iterator[Metric]:
    """What was found in replies, and why records were skipped."""
    records = int(whole.counts.records.sum())
    for kind, counts, n in (
        ("reply", own.counts, own.replies),
        ("skip", own.skip, records),
    ):
        for word, number in sorted(counts.items()):
            yield Metric(
                path=f"{kind}.{word}",
                value=number,
                n=n,
                subset="all",
                definition=f"count@1({word})",
            )
    unread = sum(n for word, n in own.counts.items() if word.startswith("parse."))
    yield Metric(
        path="parse_failure_rate",
        value=ratio(unread, own.replies),
        n=own.replies,
        subset="all",
        definition="parse failure rate@1(replies without a readable decision / "
        "replies, all stages and replicates)",
    )
