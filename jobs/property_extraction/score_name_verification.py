"""Scores and explains a run that verifies names: tables, text, figure and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from jobs.kit.explain import pages_text
from jobs.kit.shared_figures import build_figures
from jobs.kit.text_format import plural
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.measures import ALIASES
from jobs.property_extraction.name_pairs import HEURISTIC, NamePair, Names
from jobs.property_extraction.name_verification import (
    EQUAL,
    HEADLINE,
    VERDICT_LABELS,
    ModelRulings,
    NameVerification,
    agreements,
    verification_metrics,
    verification_of,
)
from jobs.property_extraction.settings import INPUTS
from jobs.property_extraction.tables import model_slugs
from runner.errors import UsageError
from runner.job import Answers
from runner.scorecard import (
    Axis,
    Cell,
    FailedFigure,
    Figure,
    Panel,
    Scorecard,
    Stack,
    Table,
)
from store.document import Block, Fact, Numbers, TableBlock, Words, as_text, number
from store.printable import clip

COLUMNS = (
    *("pred_name", "gt_name", "is_match", "reason", "model", "count", "avg_sim"),
)


def verification_tables(verification: NameVerification) -> Iterator[Table]:
    """The verdicts of each model, its matches, and where models differ."""
    slugs = model_slugs(column.model for column in verification.columns)
    for column in verification.columns:
        rows = tuple(_rows(verification, column))
        yield Table(
            name=f"alias_verification_all__{slugs[column.model]}",
            columns=COLUMNS,
            rows=rows,
            caption="Every pair, by the majority of replicates; undecided ones blank.",
        )
        yield Table(
            name=f"alias_verification_matches__{slugs[column.model]}",
            columns=COLUMNS,
            rows=tuple(row for row in rows if row[2] is True),
            caption="The pairs that mean one property.",
        )
    yield _together(verification)
    if len(verification.columns) > 1:
        yield _agreement(verification)


def _rows(
    verification: NameVerification, column: ModelRulings
) -> Iterator[tuple[Cell, ...]]:
    for pair in verification.pairs:
        names = (pair.pred_name, pair.gt_name)
        if names in verification.equal:
            yield (*names, True, EQUAL, HEURISTIC, *_candidate_cells(pair))
        elif (ruling := column.rulings.get(names)) is not None:
            ruling_cells = (ruling.is_match, ruling.reason)
            yield (*names, *ruling_cells, column.model, *_candidate_cells(pair))


def _candidate_cells(pair: NamePair) -> tuple[Cell, Cell]:
    """What the candidates' file says, and nothing where it says nothing."""
    return pair.count or None, pair.avg_sim


def _together(verification: NameVerification) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for pair in verification.pairs:
        names = (pair.pred_name, pair.gt_name)
        ruling = verification.rulings.get(names)
        if names in verification.equal:
            rows.append((*names, True, None, None, EQUAL, *_candidate_cells(pair)))
        elif ruling is not None:
            model_count = sum(
                names in column.rulings for column in verification.columns
            )
            ruling_cells = (ruling.is_match, ruling.votes, model_count, ruling.reason)
            rows.append((*names, *ruling_cells, *_candidate_cells(pair)))
    return Table(
        name="verification",
        columns=(
            *("pred_name", "gt_name", "is_match", "votes", "models"),
            *("reason", "count", "avg_sim"),
        ),
        rows=tuple(rows),
        caption="Every pair, by the majority of all models and replicates; votes are "
        "those for a match.",
        is_headline=True,
    )


def _agreement(verification: NameVerification) -> Table:
    return Table(
        name="agreement",
        columns=("model", "other_model", "pairs", "agree", "kappa"),
        rows=tuple(
            (first.model, second.model, agreement.n, agreement.percent, agreement.kappa)
            for first, second, agreement in agreements(verification)
        ),
        caption="Each two models on the pairs that both decided; Cohen's kappa.",
    )


NAME_CELLS = 34
"""Of a model's name."""


def verification_text(verification: NameVerification) -> str:
    """The summary of one scoring."""
    return f"{as_text(_summary(verification))}\n"


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
"""Of similarity, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class VerificationFigures:
    """The figures of a verification."""

    verification: NameVerification

    def __iter__(self) -> Iterator[Figure | FailedFigure]:
        return build_figures(lambda: Counter(_placed(self.verification)), (similarity,))


def similarity(counts: Mapping[tuple[bool | None, int], int]) -> Figure | None:
    """Pairs by verdict and bin of similarity."""
    if not counts:
        return None
    return Figure(
        name="similarity",
        title="Similarity of names, by verdict",
        caption="Pairs that were answered, by how alike their names are spelled "
        "and what most verdicts of all models say. Where matches and others lie "
        "over one another, spelling does not tell them apart.",
        panels=(
            Panel(
                x=Axis(
                    label="similarity from",
                    names=tuple(f"{at / BINS:.1f}" for at in range(BINS)),
                ),
                y=Axis(label="pairs", lo=0),
                marks=tuple(
                    Stack(
                        values=tuple(
                            counts.get((is_match, at), 0) for at in range(BINS)
                        ),
                        label=label,
                        series=series,
                    )
                    for series, (is_match, label) in enumerate(VERDICT_LABELS.items())
                ),
            ),
        ),
    )


def _placed(verification: NameVerification) -> Iterator[tuple[bool | None, int]]:
    """The verdict and the bin of each pair whose similarity is known."""
    for pair in verification.pairs:
        ruling = verification.rulings.get((pair.pred_name, pair.gt_name))
        if ruling is not None and pair.avg_sim is not None:
            yield ruling.is_match, min(int(pair.avg_sim * BINS), BINS - 1)


def score_verification(dataset: PropertyDataset, answers: Answers) -> Scorecard:
    """All metrics and tables of a run that verifies names; pure."""
    verification = verification_of(dataset, answers)
    return Scorecard(
        models={
            column.model: ALIASES.describe(verification_metrics(verification, column))
            for column in verification.columns
        },
        summary=verification_text(verification),
        headline=HEADLINE,
        tables=tuple(verification_tables(verification)),
        findings=dataset.findings,
        figures=VerificationFigures(verification),
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
"""Characters of an unknown item that its error repeats."""


def explain_verification(
    dataset: PropertyDataset, answers: Answers | None, items: tuple[str, ...]
) -> str:
    """A page for each name.

    Args:
        dataset: the pairs.
        answers: those of a run; None before any.
        items: predicted names, or names of the truth.

    Raises:
        UsageError: an item is in no pair; or there is no run yet.
    """
    if answers is None:
        raise UsageError("Nobody was asked yet: name a run, not the job.")
    verification = verification_of(dataset, answers)
    return pages_text(_page(verification, item) for item in dict.fromkeys(items))


def _page(verification: NameVerification, item: str) -> Iterator[Block]:
    pairs = [
        pair for pair in verification.pairs if item in (pair.pred_name, pair.gt_name)
    ]
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
    names = (pair.pred_name, pair.gt_name)
    yield Fact("", f"{pair.pred_name} => {pair.gt_name}", width=0)
    yield (
        f"  seen       in {plural(pair.count, 'paper')}, similarity "
        f"{number(pair.avg_sim, 3)}, equal values {pair.value_hits:,}"
    )
    if names in verification.equal:
        yield "  ruling     match: the names are equal but for case; nobody was asked"
        return
    ruling = verification.rulings.get(names)
    if ruling is None:
        yield "  ruling     none: it is not answered"
    else:
        votes = plural(ruling.votes, "vote")
        yield f"  ruling     {VERDICT_LABELS[ruling.is_match]}, {votes} for"
    for column in verification.columns:
        yield from _verdicts(column, names)


def _verdicts(column: ModelRulings, names: Names) -> Iterator[Block]:
    for verdict in column.verdicts:
        if (verdict.pred_name, verdict.gt_name) == names:
            yield Fact("asked", column.model, indent=2)
            label = (
                "not read"
                if verdict.is_match is None
                else VERDICT_LABELS[verdict.is_match]
            )
            yield Fact("", f"{label}: {verdict.reason}", indent=2)
