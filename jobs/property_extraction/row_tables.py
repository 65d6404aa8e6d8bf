"""Declares the tables with a line per row, computed while they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from jobs.kit.grounding import QuoteMatch
from jobs.kit.grouping import grouped
from jobs.kit.tables import (
    Columns,
    TableOf,
    count,
    flag,
    group,
    text,
)
from jobs.property_extraction.predictions import PaperState, ReplicatePredictions
from jobs.property_extraction.results import (
    PropertyResults,
    ScoredModel,
    ScoredReplicate,
)
from jobs.property_extraction.row_metrics import RowGrounding
from jobs.property_extraction.row_outcomes import COUNTED as STATUSES
from jobs.property_extraction.row_outcomes import RowOutcome, RowOutcomes
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.tables import ModelFolders
from jobs.property_extraction.values.comparison import ValueComparison
from runner.scorecard import StreamedRow, Table

QUOTE: tuple[Columns[QuoteMatch], ...] = (
    text("grounding", lambda quote: str(quote.level)),
    count("quote_start", lambda quote: quote.start, "character of the paper"),
    count("quote_end", lambda quote: quote.end),
)

REPLICATE: tuple[Columns[ReplicatePredictions], ...] = (
    text("model", lambda predicted: predicted.model),
    count("replicate", lambda predicted: predicted.replicate, "0: a consensus"),
)


class _CountedRow(NamedTuple):
    """A row that counts: a prediction with its truth row, or either alone."""

    predicted: ReplicatePredictions
    name: str  #: under which it is matched
    rubric: str
    status: RowOutcome
    row: Prediction | TruthRow  #: the prediction, if there is one
    prediction: Prediction | None
    truth: TruthRow | None
    alias: str | None = None  #: id of the alias set, if it renamed the prediction
    comparison: ValueComparison | None = None
    quote: QuoteMatch | None = None

    @property
    def reason(self) -> str | None:
        if self.comparison is not None:
            return self.comparison.reason
        return None if self.prediction is None else "no_truth"


COUNTED: tuple[Columns[_CountedRow], ...] = (
    text("refno", lambda row: row.row.refno),
    text("property_name", lambda row: row.name),
    text("status", lambda row: str(row.status)),
    text("pred_value", lambda row: p.value if (p := row.prediction) else None),
    text("gt_value", lambda row: t.value if (t := row.truth) else None),
)

MATCHES = TableOf[_CountedRow](
    name="score_pr_matches",
    columns=COUNTED,
    caption="Every row that counts, under the name that it is matched by.",
)

ROWS = TableOf[_CountedRow](
    name="score_pr_rows",
    columns=(
        *COUNTED,
        count("pred_row", lambda row: p.row if (p := row.prediction) else None),
        count("gt_row", lambda row: t.source_row if (t := row.truth) else None),
        text("raw_pred_name", lambda row: p.name if (p := row.prediction) else None),
        text("alias_id", lambda row: row.alias),
        text("rubric", lambda row: row.rubric),
        text(
            "pred_unit", lambda row: (p.unit or None) if (p := row.prediction) else None
        ),
        text("gt_unit", lambda row: (t.unit or None) if (t := row.truth) else None),
        text(
            "unit_status",
            lambda row: (c.unit_status or None) if (c := row.comparison) else None,
        ),
        text("reason", lambda row: row.reason),
        text("material", lambda row: row.row.material or None),
        text("condition", lambda row: row.row.condition or None),
        group(QUOTE, lambda row: row.quote),
        group(REPLICATE, lambda row: row.predicted),
    ),
    caption="The same rows with all that is known of them.",
)


class _GroundedRow(NamedTuple):
    predicted: ReplicatePredictions
    row: Prediction
    grounding: RowGrounding


GROUNDING = TableOf[_GroundedRow](
    name="grounding",
    columns=(
        text("refno", lambda grounded: grounded.row.refno),
        count("pred_row", lambda grounded: grounded.row.row),
        text("raw_pred_name", lambda grounded: grounded.row.name),
        text("value", lambda grounded: grounded.row.value),
        text("unit", lambda grounded: grounded.row.unit or None),
        count("mentions", lambda grounded: grounded.row.mentions),
        text("quote", lambda grounded: grounded.row.quote or None),
        group(QUOTE, lambda grounded: grounded.grounding.quote),
        flag("value_in_quote", lambda grounded: grounded.grounding.is_in_quote),
        flag("value_in_text", lambda grounded: grounded.grounding.is_in_text),
        text("flag", lambda grounded: grounded.row.flag or None),
        group(REPLICATE, lambda grounded: grounded.predicted),
    ),
    caption="Every predicted row with the place of its quote in the paper.",
)


class StatedRow(NamedTuple):
    """A row as a model stated it, or a paper without rows."""

    predicted: ReplicatePredictions
    refno: str
    at: int | None  #: index of the row

    @property
    def row(self) -> Prediction | None:
        """The row; None for a paper without rows."""
        return None if self.at is None else self.predicted.predictions[self.at]

    @property
    def paper_status(self) -> str | None:
        """Outcome of a paper without rows."""
        if self.row is not None:
            return None
        outcome = self.predicted.outcomes[self.refno]
        is_open = outcome.state is PaperState.OPEN
        state = "failed" if is_open else str(outcome.state)
        reason = outcome.reason or ("open" if is_open else "")
        return f"{state}: {reason}" if reason else state


STATED: tuple[Columns[Prediction], ...] = (
    text("property_name", lambda row: row.name or None),
    text("value_string", lambda row: row.value or None),
    text("units", lambda row: row.unit or None),
    text("material", lambda row: row.material or None),
    text("condition", lambda row: row.condition or None),
    text("quote", lambda row: row.quote or None),
    count("mentions", lambda row: row.mentions or None),
    text("flag", lambda row: row.flag or None),
)

PREDICTIONS = TableOf[StatedRow](
    name="predictions",
    columns=(
        text("refno", lambda stated: stated.refno),
        group(STATED, lambda stated: stated.row),
        text("paper_status", lambda stated: stated.paper_status),
        group(REPLICATE, lambda stated: stated.predicted),
    ),
    caption="Every predicted row of every model as it was stated, and what "
    "became of papers without rows; siftlog import reads it.",
)

TRUTH = TableOf[TruthRow](
    name="gt_dump",
    columns=(
        text("refno", lambda row: row.refno),
        text("property_name", lambda row: row.name),
        text("value_string", lambda row: row.value),
        text("unit", lambda row: row.unit),
        text("material", lambda row: row.material),
        count("source_row", lambda row: row.source_row, "the header is row 1"),
    ),
    caption="The curated rows as they were read.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowTables:
    """The long tables of a scoring, with all rows computed in one pass."""

    results: PropertyResults
    folders: ModelFolders

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables, without their rows."""
        by_model = (
            table.table(name=self.folders.of(model, table.name))
            for model in self.results.columns
            for table in (MATCHES, ROWS, GROUNDING)
        )
        return (*by_model, PREDICTIONS.table(), TRUTH.table())

    def __iter__(self) -> Iterator[StreamedRow]:
        for model, column in self.results.columns.items():
            matches = self.folders.of(model, MATCHES.name)
            rows = self.folders.of(model, ROWS.name)
            for row in _counted(self.results, column):
                cells = ROWS.cells(row)
                yield StreamedRow(table=matches, cells=cells[: len(MATCHES.names)])
                yield StreamedRow(table=rows, cells=cells)
            yield from GROUNDING.details(
                _grounded(column), name=self.folders.of(model, GROUNDING.name)
            )
        yield from PREDICTIONS.details(all_stated_rows(self.results))
        yield from TRUTH.details(self.results.dataset.truth)


def _counted(results: PropertyResults, column: ScoredModel) -> Iterator[_CountedRow]:
    rubric = results.dataset.rubric
    for replicate in column.replicates:
        outcomes, aliases = replicate.row_outcomes, replicate.aliases.id  # a hash
        for status, index in _in_order(outcomes):
            if status is not RowOutcome.FN:
                yield _prediction(results, replicate, index, aliases)
                continue
            row = outcomes.truth[index]
            yield _CountedRow(
                predicted=outcomes.predicted,
                name=row.name,
                rubric=str(rubric.kind(row.name)),
                status=status,
                row=row,
                prediction=None,
                truth=row,
            )


def _prediction(
    results: PropertyResults, replicate: ScoredReplicate, index: int, aliases: str
) -> _CountedRow:
    outcomes = replicate.row_outcomes
    row, partner = outcomes.predictions[index], outcomes.partners[index]
    name = outcomes.names[index]
    return _CountedRow(
        predicted=outcomes.predicted,
        name=name,
        rubric=str(results.dataset.rubric.kind(name)),
        status=outcomes.prediction_outcomes[index],
        row=row,
        prediction=row,
        truth=None if partner < 0 else outcomes.truth[partner],
        alias=aliases if outcomes.renamed[index].entry(name) is not None else None,
        comparison=replicate.compared.get(index),
        quote=replicate.groundings[index].quote,
    )


def _grounded(column: ScoredModel) -> Iterator[_GroundedRow]:
    for replicate in column.replicates:
        predicted = replicate.row_outcomes.predicted
        pairs = zip(predicted.predictions, replicate.groundings, strict=True)
        yield from (_GroundedRow(predicted, *pair) for pair in pairs)


def all_stated_rows(results: PropertyResults) -> Iterator[StatedRow]:
    """Yield the stated rows of all replicates of all models."""
    for column in results.columns.values():
        for replicate in column.replicates:
            yield from stated_rows(replicate.row_outcomes.predicted)


def stated_rows(predicted: ReplicatePredictions) -> Iterator[StatedRow]:
    """Yield the rows of a replicate by paper, and one for each paper without rows."""
    indices = grouped((row.refno, at) for at, row in enumerate(predicted.predictions))
    for refno in dict.fromkeys((*indices, *predicted.outcomes)):
        for index in indices.get(refno, (None,)):
            yield StatedRow(predicted, refno, index)


def _in_order(outcomes: RowOutcomes) -> list[tuple[RowOutcome, int]]:
    """Return indices of the rows that count: by paper, name, status and file row."""
    sort_keys = [
        (
            row.refno,
            outcomes.names[index],
            STATUSES.index(outcomes.prediction_outcomes[index]),
            index,
        )
        for index, row in outcomes.predicted_as(*STATUSES)
    ]
    sort_keys += [
        (row.refno, row.name, STATUSES.index(RowOutcome.FN), index)
        for index, row in outcomes.truth_as(RowOutcome.FN)
    ]
    return [(STATUSES[status], index) for _, _, status, index in sorted(sort_keys)]
