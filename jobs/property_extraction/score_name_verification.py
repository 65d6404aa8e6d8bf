"""Scores and explains a run that verifies names: tables, text, figure and pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from jobs.kit import charts
from jobs.kit.charts import Chart, ChartFigures, stack
from jobs.kit.text_format import TextColumn as TableColumn
from jobs.kit.text_format import (
    clip,
    hanging_lines,
    number,
    one_line,
    plural,
    shortened,
    text_table,
)
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
    Panel,
    Scorecard,
    Table,
)

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
    return "\n".join([*_summary_lines(verification), ""])


def _summary_lines(verification: NameVerification) -> Iterator[str]:
    equal, verified_before = len(verification.equal), verification.verified_before
    yield (
        f"Names verified: {plural(len(verification.pairs), 'pair')}, {equal:,} equal"
        + (f", {verified_before:,} verified before" if verified_before else "")
    )
    columns = verification.columns
    verdicts_by_column = [
        [ruling.is_match for ruling in column.rulings.values()] for column in columns
    ]
    yield from text_table(
        (
            TableColumn(
                title="model",
                cells=[
                    shortened(one_line(column.model), NAME_CELLS) for column in columns
                ],
                has_words=True,
            ),
            *(
                TableColumn(
                    title=title,
                    cells=[
                        f"{verdicts.count(value):,}" for verdicts in verdicts_by_column
                    ],
                )
                for title, value in (
                    ("match", True),
                    ("no match", False),
                    ("undecided", None),
                )
            ),
            TableColumn(
                title="unread", cells=[f"{column.unread:,}" for column in columns]
            ),
        )
    )
    yield (
        "to build aliases: siftlog prepare property-extraction aliases --candidates "
        "FILE --verdicts RUN --out DIR"
    )


BINS = 10
"""Of similarity, from 0 to 1."""


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
        figures=ChartFigures(
            CHARTS, lambda: Plot.of(Counter(_placed(verification)), {})
        ),
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
    pages = (
        "\n".join(_page_lines(verification, item)) for item in dict.fromkeys(items)
    )
    return "\n\n".join(pages) + "\n"


def _page_lines(verification: NameVerification, item: str) -> Iterator[str]:
    pairs = [
        pair for pair in verification.pairs if item in (pair.pred_name, pair.gt_name)
    ]
    if not pairs:
        raise UsageError(
            f"No pair has the name {clip(item, ITEM_CHARS)!r}; verification.csv "
            "lists the pairs."
        )
    yield from hanging_lines("", one_line(item))
    for pair in pairs:
        yield ""
        yield from _pair(verification, pair)


def _pair(verification: NameVerification, pair: NamePair) -> Iterator[str]:
    names = (pair.pred_name, pair.gt_name)
    yield from hanging_lines(
        "", f"{one_line(pair.pred_name)} => {one_line(pair.gt_name)}"
    )
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
        yield from _verdict_lines(column, names)


def _verdict_lines(column: ModelRulings, names: Names) -> Iterator[str]:
    for verdict in column.verdicts:
        if (verdict.pred_name, verdict.gt_name) == names:
            yield from hanging_lines("  asked      ", one_line(column.model))
            label = (
                "not read"
                if verdict.is_match is None
                else VERDICT_LABELS[verdict.is_match]
            )
            yield from hanging_lines(
                "             ", f"{label}: {one_line(verdict.reason)}"
            )
