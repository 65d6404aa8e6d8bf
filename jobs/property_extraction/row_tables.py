"""Tables with a line a row, made while they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from jobs.property_extraction.predictions import PaperState, ReplicatePredictions
from jobs.property_extraction.results import (
    PropertyResults,
    ScoredModel,
    ScoredReplicate,
)
from jobs.property_extraction.row_outcomes import RowOutcome, RowOutcomes
from jobs.property_extraction.rows import Prediction
from jobs.property_extraction.tables import ModelFolders
from runner.scorecard import Cell, Detail, StreamedRow, Table

MATCHES = ("refno", "property_name", "status", "pred_value", "gt_value")
ROWS = (
    *MATCHES,
    "pred_row",
    "gt_row",
    "raw_pred_name",
    "alias_id",
    "rubric",
    "pred_unit",
    "gt_unit",
    "unit_status",
    "reason",
    "material",
    "condition",
    "grounding",
    "quote_start",
    "quote_end",
    "model",
    "replicate",
)
GROUNDING = (
    "refno",
    "pred_row",
    "raw_pred_name",
    "value",
    "unit",
    "mentions",
    "quote",
    "grounding",
    "quote_start",
    "quote_end",
    "value_in_quote",
    "value_in_text",
    "flag",
    "model",
    "replicate",
)
PREDICTIONS = (
    *("refno", "property_name", "value_string", "units", "material", "condition"),
    *("quote", "mentions", "flag", "paper_status", "model", "replicate"),
)
"""They can be imported again."""

STATUSES = (RowOutcome.TP, RowOutcome.FP, RowOutcome.FN)
"""In the order of the files."""


@dataclass(frozen=True, slots=True)
class PropertyRowTables:
    """The long files of a scoring: declared at once, filled row by row."""

    results: PropertyResults
    folders: ModelFolders

    def tables(self) -> Iterator[Table]:
        """Their names and columns."""
        for model in self.results.columns:
            yield Table(
                name=self.folders.of(model, "score_pr_matches"),
                columns=MATCHES,
                caption="Every row that counts, under the name that it is matched by.",
            )
            yield Table(
                name=self.folders.of(model, "score_pr_rows"),
                columns=ROWS,
                caption="The same rows with all that is known of them.",
            )
            yield Table(
                name=self.folders.of(model, "grounding"),
                columns=GROUNDING,
                caption="Every predicted row with the place of its quote in the paper.",
            )
        yield Table(
            name="predictions",
            columns=PREDICTIONS,
            caption="Every predicted row of every model as it was stated, and what "
            "became of papers without rows; siftlog import reads it.",
        )
        yield Table(
            name="gt_dump",
            columns=(
                "refno",
                "property_name",
                "value_string",
                "unit",
                "material",
                "source_row",
            ),
            caption="The curated rows as they were read.",
        )

    def __iter__(self) -> Iterator[Detail]:
        for column in self.results.columns.values():
            yield from self._matched(column)
            yield from self._grounded(column)
            for replicate in column.replicates:
                yield from _stated(replicate.row_outcomes.predicted)
        for row in self.results.dataset.truth:
            yield StreamedRow(
                table="gt_dump",
                cells=(
                    row.refno,
                    row.name,
                    row.value,
                    row.unit,
                    row.material,
                    row.source_row,
                ),
            )

    def _matched(self, column: ScoredModel) -> Iterator[Detail]:
        matches = self.folders.of(column.model, "score_pr_matches")
        rows = self.folders.of(column.model, "score_pr_rows")
        for replicate in column.replicates:
            for cells in self._rows(replicate):
                yield StreamedRow(table=matches, cells=cells[: len(MATCHES)])
                yield StreamedRow(table=rows, cells=cells)

    def _rows(self, replicate: ScoredReplicate) -> Iterator[tuple[Cell, ...]]:
        aliases = replicate.aliases.id  # a hash of all of them
        for outcome, index in _in_order(replicate.row_outcomes):
            if outcome is RowOutcome.FN:
                yield self._missed(replicate.row_outcomes, index)
            else:
                yield self._predicted(replicate, index, aliases)

    def _predicted(
        self, replicate: ScoredReplicate, index: int, aliases: str
    ) -> tuple[Cell, ...]:
        outcomes, dataset = replicate.row_outcomes, self.results.dataset
        row, partner = outcomes.predictions[index], outcomes.partners[index]
        truth = None if partner < 0 else outcomes.truth[partner]
        name = outcomes.names[index]
        acted = outcomes.renamed[index].entry(name) is not None
        comparison, quote = (
            replicate.compared.get(index),
            replicate.groundings[index].quote,
        )
        return (
            row.refno,
            name,
            str(outcomes.prediction_outcomes[index]),
            row.value,
            None if truth is None else truth.value,
            row.row,
            None if truth is None else truth.source_row,
            row.name,
            aliases if acted else None,
            str(dataset.rubric.kind(name)),
            row.unit or None,
            None if truth is None else truth.unit or None,
            None if comparison is None else comparison.unit_status or None,
            "no_truth" if comparison is None else comparison.reason,
            row.material or None,
            row.condition or None,
            str(quote.level),
            quote.start,
            quote.end,
            outcomes.predicted.model,
            outcomes.predicted.replicate,
        )

    def _missed(self, outcomes: RowOutcomes, index: int) -> tuple[Cell, ...]:
        row = outcomes.truth[index]
        return (
            row.refno,
            row.name,
            str(RowOutcome.FN),
            None,
            row.value,
            None,
            row.source_row,
            None,
            None,
            str(self.results.dataset.rubric.kind(row.name)),
            None,
            row.unit or None,
            None,
            None,
            row.material or None,
            row.condition or None,
            None,
            None,
            None,
            outcomes.predicted.model,
            outcomes.predicted.replicate,
        )

    def _grounded(self, column: ScoredModel) -> Iterator[Detail]:
        table = self.folders.of(column.model, "grounding")
        for replicate in column.replicates:
            predicted = replicate.row_outcomes.predicted
            for row, grounding in zip(
                predicted.predictions, replicate.groundings, strict=True
            ):
                yield StreamedRow(
                    table=table,
                    cells=(
                        row.refno,
                        row.row,
                        row.name,
                        row.value,
                        row.unit or None,
                        row.mentions,
                        row.quote or None,
                        str(grounding.quote.level),
                        grounding.quote.start,
                        grounding.quote.end,
                        grounding.is_in_quote,
                        grounding.is_in_text,
                        row.flag or None,
                        predicted.model,
                        predicted.replicate,
                    ),
                )


def _stated(predicted: ReplicatePredictions) -> Iterator[StreamedRow]:
    """The rows of a replicate by paper, and a row for each paper that has none."""
    rows: dict[str, list[Prediction]] = {}
    for row in predicted.predictions:
        rows.setdefault(row.refno, []).append(row)
    model_cells = (predicted.model, predicted.replicate)
    for refno in dict.fromkeys((*rows, *predicted.outcomes)):
        for row in rows.get(refno, ()):
            cells = (row.name, row.value, row.unit, row.material, row.condition)
            all_cells = (*cells, row.quote, row.mentions, row.flag)
            stated = (cell or None for cell in all_cells)
            yield StreamedRow(
                table="predictions", cells=(refno, *stated, None, *model_cells)
            )
        if refno not in rows:
            outcome = predicted.outcomes[refno]
            state = "failed" if outcome.state is PaperState.OPEN else str(outcome.state)
            reason = outcome.reason or (
                "open" if outcome.state is PaperState.OPEN else ""
            )
            status = f"{state}: {reason}" if reason else state
            blank = (None,) * (len(PREDICTIONS) - len(model_cells) - 2)
            yield StreamedRow(
                table="predictions", cells=(refno, *blank, status, *model_cells)
            )


def _in_order(outcomes: RowOutcomes) -> list[tuple[RowOutcome, int]]:
    """Places of the rows that count: by paper, name, status and file row."""
    sort_keys = [
        (
            outcomes.predictions[index].refno,
            outcomes.names[index],
            STATUSES.index(outcome),
            index,
        )
        for index, outcome in enumerate(outcomes.prediction_outcomes)
        if outcome in STATUSES
    ]
    sort_keys += [
        (row.refno, row.name, STATUSES.index(outcome), index)
        for index, (row, outcome) in enumerate(
            zip(outcomes.truth, outcomes.truth_outcomes, strict=True)
        )
        if outcome is RowOutcome.FN
    ]
    return [(STATUSES[status], index) for _, _, status, index in sorted(sort_keys)]
