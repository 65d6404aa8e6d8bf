"""Scores and explains a run that verifies names: tables, text, figure and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeAlias

from jobs.kit import charts
from jobs.kit.charts import Chart, ChartFigures, stack
from jobs.kit.explain import pages_text
from jobs.kit.measurements import with_intervals
from jobs.kit.measures import measured
from jobs.kit.metrics import Agreement
from jobs.kit.summary import summary_text
from jobs.kit.tables import Columns, TableOf, count, flag, number, text
from jobs.kit.text_format import plural
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.measures import ALIASES
from jobs.property_extraction.name_pairs import HEURISTIC, NamePair, Names
from jobs.property_extraction.name_verification import (
    EQUAL,
    HEADLINE,
    VERDICT_LABELS,
    VERIFICATION,
    ModelRulings,
    NameVerification,
    VerifiedPairs,
    agreements,
    verification_of,
)
from jobs.property_extraction.settings import INPUTS
from jobs.property_extraction.tables import model_slugs
from runner.errors import UsageError
from runner.job import Answers
from runner.scorecard import Axis, Panel, Scorecard, Table
from store.document import Block, Fact, Numbers, TableBlock, Words
from store.document import number as number_text
from store.printable import clip


class _PairRow(NamedTuple):
    """The ruling on a pair of names, with its source."""

    pair: NamePair
    is_match: bool | None
    reason: str | None
    model: str = HEURISTIC
    votes: int | None = None  #: for a match
    models: int | None = None  #: number of models with a ruling


RULED: tuple[Columns[_PairRow], ...] = (
    text("pred_name", lambda row: row.pair.pred_name),
    text("gt_name", lambda row: row.pair.gt_name),
    flag("is_match", lambda row: row.is_match),
)

CANDIDATE: tuple[Columns[_PairRow], ...] = (
    count("count", lambda row: row.pair.count or None),
    number("avg_sim", lambda row: row.pair.avg_sim),
)
"""Values from the candidates' file; blank if it lacks them."""

BY_MODEL: tuple[Columns[_PairRow], ...] = (
    *RULED,
    text("reason", lambda row: row.reason),
    text("model", lambda row: row.model),
    *CANDIDATE,
)

ALL = TableOf[_PairRow](
    name="alias_verification_all",
    columns=BY_MODEL,
    caption="Every pair, by the majority of replicates; undecided ones blank.",
)

MATCHES = TableOf[_PairRow](
    name="alias_verification_matches",
    columns=BY_MODEL,
    caption="The pairs that mean one property.",
)

TOGETHER = TableOf[_PairRow](
    name="verification",
    columns=(
        *RULED,
        count("votes", lambda row: row.votes),
        count("models", lambda row: row.models),
        text("reason", lambda row: row.reason),
        *CANDIDATE,
    ),
    caption="Every pair, by the majority of all models and replicates; votes are "
    "those for a match.",
    is_headline=True,
)


class _AgreementRow(NamedTuple):
    first: ModelRulings
    second: ModelRulings
    agreement: Agreement


AGREEMENT = TableOf[_AgreementRow](
    name="agreement",
    columns=(
        text("model", lambda row: row.first.model),
        text("other_model", lambda row: row.second.model),
        count("pairs", lambda row: row.agreement.n),
        number("agree", lambda row: row.agreement.percent),
        number("kappa", lambda row: row.agreement.kappa),
    ),
    caption="Each two models on the pairs that both decided; Cohen's kappa.",
)


def verification_tables(verification: NameVerification) -> Iterator[Table]:
    """Yield the verdicts of each model, its matches, and the models' agreement."""
    slugs = model_slugs(column.model for column in verification.columns)
    for column in verification.columns:
        rows, slug = [*_rows(verification, column)], slugs[column.model]
        matches = [row for row in rows if row.is_match is True]
        yield ALL.table(rows, name=f"{ALL.name}__{slug}")
        yield MATCHES.table(matches, name=f"{MATCHES.name}__{slug}")
    yield TOGETHER.table(_together(verification))
    if len(verification.columns) > 1:
        yield AGREEMENT.table(_AgreementRow(*pair) for pair in agreements(verification))


def _rows(verification: NameVerification, column: ModelRulings) -> Iterator[_PairRow]:
    """Yield the rulings of one model."""
    for pair in verification.pairs:
        if pair.names in verification.equal:
            yield _PairRow(pair, is_match=True, reason=EQUAL)
        elif (ruling := column.rulings.get(pair.names)) is not None:
            yield _PairRow(pair, ruling.is_match, ruling.reason, column.model)


def _together(verification: NameVerification) -> Iterator[_PairRow]:
    """Yield the rulings of all models together."""
    for pair in verification.pairs:
        if pair.names in verification.equal:
            yield _PairRow(pair, is_match=True, reason=EQUAL)
        elif (ruling := verification.rulings.get(pair.names)) is not None:
            rulings = [column.rulings for column in verification.columns]
            yield _PairRow(
                pair,
                ruling.is_match,
                ruling.reason,
                votes=ruling.votes,
                models=sum(pair.names in by_pair for by_pair in rulings),
            )


NAME_CELLS = 34
"""Cells of a model's name."""


def verification_text(verification: NameVerification) -> str:
    """Return the summary of one scoring."""
    return summary_text(_summary(verification))


def _summary(verification: NameVerification) -> Iterator[Block]:
    equal, verified_before = len(verification.equal), verification.verified_before
    yield (
        f"Names verified: {plural(len(verification.pairs), 'pair')}, {equal:,} equal"
        + (f", {verified_before:,} verified before" if verified_before else "")
    )
    rows: list[tuple[str | int, ...]] = []
    for column in verification.columns:
        verdicts = [ruling.is_match for ruling in column.rulings.values()]
        counts = (verdicts.count(value) for value in (True, False, None))
        rows.append((column.model, *counts, column.unread))
    titles = ("match", "no match", "undecided", "unread")
    model = Words("model", NAME_CELLS, keeps_end=True)
    yield TableBlock([model, *map(Numbers, titles)], rows)
    yield (
        "to build aliases: siftlog prepare property-extraction aliases --candidates "
        "FILE --verdicts RUN --out DIR"
    )


BINS = 10
"""Number of bins of similarity, from 0 to 1."""


Plot: TypeAlias = charts.Plot[Mapping[tuple[bool | None, int], int], None]
"""Plots the pairs counted by verdict and bin of similarity."""


def _similarity(plot: Plot) -> Iterator[Panel]:
    if plot.results:
        yield Panel(
            x=Axis(
                label="similarity from",
                names=tuple(f"{at / BINS:.1f}" for at in range(BINS)),
            ),
            y=Axis(label="pairs", lo=0),
            marks=stack(
                {
                    label: [plot.results.get((is_match, at), 0) for at in range(BINS)]
                    for is_match, label in VERDICT_LABELS.items()
                }
            ),
        )


CHARTS = (
    Chart(
        name="similarity",
        title="Similarity of names, by verdict",
        caption="Pairs that were answered, by how alike their names are spelled "
        "and what most verdicts of all models say. Where matches and others lie "
        "over one another, spelling does not tell them apart.",
        panels=_similarity,
    ),
)


def figures(
    verification: NameVerification,
) -> ChartFigures[Mapping[tuple[bool | None, int], int], None]:
    """Return the figures of a verification."""
    return ChartFigures(CHARTS, lambda: Plot.of(Counter(_placed(verification)), {}))


def _placed(verification: NameVerification) -> Iterator[tuple[bool | None, int]]:
    """Yield the verdict and the bin of each pair with a known similarity."""
    for pair in verification.pairs:
        ruling = verification.rulings.get(pair.names)
        if ruling is not None and pair.avg_sim is not None:
            yield ruling.is_match, min(int(pair.avg_sim * BINS), BINS - 1)


def score_verification(dataset: PropertyDataset, answers: Answers) -> Scorecard:
    """Return all metrics and tables of a run that verifies names; pure."""
    verification = verification_of(dataset, answers)
    return Scorecard(
        models={
            column.model: ALIASES.describe(
                with_intervals(
                    measured(
                        VERIFICATION,
                        VerifiedPairs(verification=verification, column=column),
                    )
                )
            )
            for column in verification.columns
        },
        summary=verification_text(verification),
        headline=HEADLINE,
        tables=tuple(verification_tables(verification)),
        findings=dataset.findings,
        figures=figures(verification),
        details=verification.outcomes,
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS}),
        missing=verification.missing,
        stale=verification.stale,
        units={
            column.model: {"pair": len(column.rulings)}
            for column in verification.columns
        },
    )


ITEM_CHARS = 60
"""Characters of an unknown item in its error."""


def explain_verification(
    dataset: PropertyDataset, answers: Answers | None, items: tuple[str, ...]
) -> str:
    """Return a page for each name.

    Args:
        dataset: the pairs.
        answers: those of a run; None before any.
        items: predicted names, or names of the truth.

    Raises:
        UsageError: an item is in no pair; or there is no run yet.
    """
    if answers is None:
        raise UsageError("There are no answers yet: name a run, not the job.")
    verification = verification_of(dataset, answers)
    return pages_text(_page(verification, item) for item in dict.fromkeys(items))


def _page(verification: NameVerification, item: str) -> Iterator[Block]:
    pairs = [pair for pair in verification.pairs if item in pair.names]
    if not pairs:
        raise UsageError(
            f"No pair has the name {clip(item, ITEM_CHARS)!r}; verification.csv "
            "lists the pairs."
        )
    yield Fact("", item, width=0)
    for pair in pairs:
        yield ""
        yield from _pair(verification, pair)


def _pair(verification: NameVerification, pair: NamePair) -> Iterator[Block]:
    yield Fact("", f"{pair.pred_name} => {pair.gt_name}", width=0)
    yield (
        f"  seen       in {plural(pair.count, 'paper')}, similarity "
        f"{number_text(pair.avg_sim, 3)}, equal values {pair.value_hits:,}"
    )
    if pair.names in verification.equal:
        yield ("  ruling     match: the names differ in case only; no model was used")
        return
    ruling = verification.rulings.get(pair.names)
    if ruling is None:
        yield "  ruling     none: it is not answered"
    else:
        votes = plural(ruling.votes, "vote")
        yield f"  ruling     {VERDICT_LABELS[ruling.is_match]}, {votes} for"
    for column in verification.columns:
        yield from _verdicts(column, pair.names)


def _verdicts(column: ModelRulings, names: Names) -> Iterator[Block]:
    for verdict in column.verdicts:
        if verdict.names == names:
            yield Fact("asked", column.model, indent=2)
            labels = {**VERDICT_LABELS, None: "not read"}
            label = labels[verdict.is_match]
            yield Fact("", f"{label}: {verdict.reason}", indent=2)
