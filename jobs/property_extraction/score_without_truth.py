"""Scores a run without curated values: the extracted rows, their quotes, agreement.

The main result is `extracted.csv`, with a line for each stated row. If there are
several models, the rows of one are matched with those of another by the rules that
match predictions with curated values, so that agreement is the F1 of either with the
other as truth. Figures of precision and recall appear when a later scoring has a truth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np

from jobs.kit.grounding import GROUNDED, GroundingLevel
from jobs.kit.grouping import grouped
from jobs.kit.metrics import Ratio, ratio
from jobs.kit.score import ItemMetric, ModelScores, comparable, with_models
from jobs.kit.tables import (
    Columns,
    StreamedTable,
    TableOf,
    count,
    flag,
    group,
    number,
    text,
)
from jobs.kit.truth import no_truth, whole_sample, without_truth
from jobs.property_extraction.aliases.alias_set import AliasSet, Renaming
from jobs.property_extraction.caveats import findings
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.figures import figures
from jobs.property_extraction.measures import MEASURES
from jobs.property_extraction.predictions import run_predictions
from jobs.property_extraction.results import (
    PropertyResults,
    ScoredModel,
    ScoredReplicate,
    measure_run,
)
from jobs.property_extraction.row_metrics import JUDGED, RowGrounding
from jobs.property_extraction.row_outcomes import RowOutcome, RowOutcomes, row_outcomes
from jobs.property_extraction.row_tables import (
    PREDICTIONS,
    QUOTE,
    REPLICATE,
    STATED,
    StatedRow,
    all_stated_rows,
    stated_rows,
)
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.score import paper_frame, paper_verdicts
from jobs.property_extraction.settings import INPUTS
from jobs.property_extraction.summary import run_text
from jobs.property_extraction.values.comparison import ComparisonKind, Property, Rubric
from runner.job import Answers
from runner.scorecard import Comparable, Scorecard, StreamedDetails, Table

OPTION = "--truth FILE"
CONTENT = "curated values"


class _ExtractedRow(NamedTuple):
    """A stated row, or a paper without rows."""

    replicate: ScoredReplicate
    stated: StatedRow

    @property
    def grounding(self) -> RowGrounding | None:
        at = self.stated.at
        return None if at is None else self.replicate.groundings[at]

    @property
    def renamed_to(self) -> str | None:
        """Name of the property under the aliases, if they change it."""
        row, at = self.stated.row, self.stated.at
        if row is None or at is None:
            return None
        name = self.replicate.row_outcomes.names[at]
        return None if name == row.name else name

    @property
    def left_out(self) -> str | None:
        """Reason why the row is in no count; None if it counts."""
        at = self.stated.at
        if at is None:
            return None
        outcome = self.replicate.row_outcomes.prediction_outcomes[at]
        return None if outcome is RowOutcome.FP else str(outcome)


GROUNDING: tuple[Columns[RowGrounding], ...] = (
    group(QUOTE, lambda grounding: grounding.quote),
    flag("value_in_quote", lambda grounding: grounding.is_in_quote),
    flag("value_in_text", lambda grounding: grounding.is_in_text),
)

EXTRACTED = TableOf[_ExtractedRow](
    name="extracted",
    columns=(
        text("refno", lambda row: row.stated.refno),
        group(STATED, lambda row: row.stated.row),
        text("renamed_to", lambda row: row.renamed_to, "by an alias"),
        group(GROUNDING, lambda row: row.grounding),
        text("left_out", lambda row: row.left_out, "of the counts, and why"),
        text("paper_status", lambda row: row.stated.paper_status),
        group(REPLICATE, lambda row: row.stated.predicted),
    ),
    caption="Every extracted value with its quote and the place of the quote in the "
    "paper, and the status of papers without rows.",
)


def _extracted(results: PropertyResults) -> Iterator[_ExtractedRow]:
    for column in results.columns.values():
        for replicate in column.replicates:
            for stated in stated_rows(replicate.row_outcomes.predicted):
                yield _ExtractedRow(replicate, stated)


def _counted(outcomes: RowOutcomes) -> Iterator[tuple[int, Prediction]]:
    """Yield the rows that count; without a truth each of them is a false positive."""
    return outcomes.predicted_as(RowOutcome.FP)


def _is_grounded(replicate: ScoredReplicate, index: int) -> bool:
    return replicate.groundings[index].quote.level in GROUNDED


class _PropertyRow(NamedTuple):
    model: str
    name: str
    rows: int
    papers: int
    grounded: int
    units: str
    least: float | None
    most: float | None


PROPERTIES = TableOf[_PropertyRow](
    name="properties",
    columns=(
        text("model", lambda row: row.model),
        text("property_name", lambda row: row.name),
        count("papers", lambda row: row.papers),
        count("rows", lambda row: row.rows),
        count("grounded", lambda row: row.grounded, "rows whose quote is in the paper"),
        text("units", lambda row: row.units or None, "as stated, most frequent first"),
        number("least", lambda row: row.least, "number, in its stated unit"),
        number("most", lambda row: row.most, "number, in its stated unit"),
    ),
    caption="Each extracted property over all papers, the most frequent first; of the "
    "first replicate.",
    is_headline=True,
)


def _properties(results: PropertyResults) -> Iterator[_PropertyRow]:
    for model, column in results.columns.items():
        outcomes = column.first.row_outcomes
        by_name = grouped((outcomes.names[at], at) for at, _ in _counted(outcomes))
        rows = [
            _property_row(results, column, name, by_name[name])
            for name in sorted(by_name, key=lambda name: (-len(by_name[name]), name))
        ]
        yield from (row._replace(model=model) for row in rows)


def _property_row(
    results: PropertyResults, column: ScoredModel, name: str, indices: Sequence[int]
) -> _PropertyRow:
    stated = [column.first.row_outcomes.predictions[at] for at in indices]
    units = grouped((row.unit, row) for row in stated if row.unit)
    numbers = [
        value
        for row in stated
        if (value := results.comparer.number(row.value).value) is not None
    ]
    return _PropertyRow(
        model=column.model,
        name=name,
        rows=len(stated),
        papers=len({row.refno for row in stated}),
        grounded=sum(_is_grounded(column.first, at) for at in indices),
        units="; ".join(sorted(units, key=lambda unit: (-len(units[unit]), unit))),
        least=min(numbers, default=None),
        most=max(numbers, default=None),
    )


class _PaperRow(NamedTuple):
    model: str
    refno: str
    state: str
    reason: str
    rows: int
    properties: int
    grounded: int


PAPERS = TableOf[_PaperRow](
    name="papers",
    columns=(
        text("model", lambda row: row.model),
        text("refno", lambda row: row.refno),
        text("state", lambda row: row.state),
        text("reason", lambda row: row.reason or None),
        count("rows", lambda row: row.rows),
        count("properties", lambda row: row.properties),
        count("grounded", lambda row: row.grounded, "rows whose quote is in the paper"),
    ),
    caption="Each paper with the number of its extracted rows; of the first replicate.",
)


def _papers(results: PropertyResults) -> Iterator[_PaperRow]:
    for model, column in results.columns.items():
        outcomes = column.first.row_outcomes
        by_paper = grouped((row.refno, at) for at, row in _counted(outcomes))
        reached = outcomes.predicted.outcomes
        for refno in sorted({*by_paper, *reached}):
            outcome, indices = reached.get(refno), by_paper.get(refno, ())
            state = "" if outcome is None else str(outcome.state)
            yield _PaperRow(
                model=model,
                refno=refno,
                state="extracted" if state in {"", "scored"} else state,
                reason="" if outcome is None else outcome.reason,
                rows=len(indices),
                properties=len({outcomes.names[at] for at in indices}),
                grounded=sum(_is_grounded(column.first, at) for at in indices),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAgreement:
    """The matched rows of two models, in the papers that both have read."""

    a: ScoredModel
    b: ScoredModel
    papers: int
    matched: int
    only_a: Sequence[int]  #: indices of the rows without a partner
    only_b: Sequence[int]

    @property
    def value(self) -> float | None:
        """F1 of either model with the other as truth."""
        pairs = 2 * self.matched
        return ratio(pairs, pairs + len(self.only_a) + len(self.only_b))

    @classmethod
    def of(
        cls, results: PropertyResults, a: ScoredModel, b: ScoredModel
    ) -> ModelAgreement:
        """Match the first replicates of two models."""
        ours, others = a.first.row_outcomes, b.first.row_outcomes
        common = {*ours.papers} & {*others.papers}
        rows_a, rows_b = (
            [(at, row) for at, row in _counted(side) if row.refno in common]
            for side in (ours, others)
        )
        # names are renamed already, so that no alias acts twice
        truth = tuple(_as_truth(row, others.names[at], at) for at, row in rows_b)
        stated = tuple(replace(row, name=ours.names[at]) for at, row in rows_a)
        dataset = replace(
            results.dataset,
            truth=truth,
            aliases=AliasSet(),
            rubric=_with_numbers(results, (*stated, *truth)),
        )
        matched = row_outcomes(
            dataset,
            replace(ours.predicted, predictions=stated),
            results.comparer,
            Renaming.of(AliasSet(), "exact", canonical=dataset.canonical),
            lambda _index: True,
        )
        return cls(
            a=a,
            b=b,
            papers=len(common),
            matched=len(list(matched.pairs())),
            only_a=[
                rows_a[index][0] for index, _ in matched.predicted_as(RowOutcome.FP)
            ],
            only_b=[row.source_row for _, row in matched.truth_as(RowOutcome.FN)],
        )


def _with_numbers(
    results: PropertyResults, rows: Iterable[Prediction | TruthRow]
) -> Rubric:
    """Return the rubric; properties that it lacks are quantities if all are numbers."""
    rubric = results.dataset.rubric
    values = grouped((row.name, row.value) for row in rows)
    quantities = {
        name: Property(name=name, kind=ComparisonKind.SI)
        for name, texts in values.items()
        if all(results.comparer.number(text).value is not None for text in texts)
    }
    return replace(rubric, properties={**quantities, **rubric.properties})


def _as_truth(row: Prediction, name: str, index: int) -> TruthRow:
    return TruthRow(
        refno=row.refno,
        name=name,
        value=row.value,
        unit=row.unit,
        material=row.material,
        condition=row.condition,
        source_row=index,
    )


AGREEMENT = TableOf[ModelAgreement](
    name="agreement",
    columns=(
        text("model_a", lambda pair: pair.a.model),
        text("model_b", lambda pair: pair.b.model),
        count("papers", lambda pair: pair.papers, "read by both"),
        count("matched", lambda pair: pair.matched, "rows"),
        count("only_a", lambda pair: len(pair.only_a), "rows"),
        count("only_b", lambda pair: len(pair.only_b), "rows"),
        number("agreement", lambda pair: pair.value, "F1 of one with the other"),
    ),
    caption="Models by pairs: rows of equal property and value, matched as curated "
    "values are; of the first replicates.",
    is_headline=True,
)


class _DisagreementRow(NamedTuple):
    column: ScoredModel
    other: ScoredModel
    at: int

    @property
    def row(self) -> Prediction:
        return self.column.first.row_outcomes.predictions[self.at]


DISAGREEMENTS = TableOf[_DisagreementRow](
    name="disagreements",
    columns=(
        text("refno", lambda item: item.row.refno),
        text(
            "property_name",
            lambda item: item.column.first.row_outcomes.names[item.at],
        ),
        text("value_string", lambda item: item.row.value),
        text("units", lambda item: item.row.unit or None),
        text("material", lambda item: item.row.material or None),
        text("stated_by", lambda item: item.column.model),
        text("not_by", lambda item: item.other.model),
        text("quote", lambda item: item.row.quote or None),
    ),
    caption="Every row of one model that has no equal in another.",
)


def _disagreements(pairs: Sequence[ModelAgreement]) -> Iterator[_DisagreementRow]:
    for pair in pairs:
        rows = [
            *(_DisagreementRow(pair.a, pair.b, index) for index in pair.only_a),
            *(_DisagreementRow(pair.b, pair.a, index) for index in pair.only_b),
        ]
        yield from sorted(
            rows,
            key=lambda item: (
                item.row.refno,
                item.column.first.row_outcomes.names[item.at],
                item.row.value,
                item.column.model,
            ),
        )


def _quotes_of_papers(column: ScoredModel) -> Ratio:
    """Return the grounded quotes of each paper, and those that can be checked."""
    papers = {refno: at for at, refno in enumerate(column.first.counts.papers)}
    above, below = np.zeros(len(papers)), np.zeros(len(papers))
    for index, row in _counted(column.first.row_outcomes):
        level: GroundingLevel = column.first.groundings[index].quote.level
        above[papers[row.refno]] += level in GROUNDED
        below[papers[row.refno]] += level in JUDGED
    return Ratio(above, below)


COMPARED: tuple[ItemMetric[ScoredModel], ...] = (
    ItemMetric("grounded_rate", paper_frame, _quotes_of_papers),
)
"""Metrics without a truth that are compared paper by paper."""

HEADLINE = "grounded_rate"

WORDS = replace(
    MEASURES, headlines=("rows", "grounded_rate", "fabricated_quote_rate", "abstained")
)
"""The measures, with other headlines: those with a truth are absent."""


def _compared(column: ScoredModel) -> Comparable:
    return comparable(COMPARED, column, column.by_path)


def score(dataset: PropertyDataset, answers: Answers) -> Scorecard:
    """Return the tables of a run, its counts, and how well quotes match; pure."""
    predictions = run_predictions(dataset, answers)
    # none of the remaining metrics has an interval
    results = measure_run(dataset.without_intervals, predictions)
    columns = [*results.columns.values()]
    pairs = [ModelAgreement.of(results, a, b) for a, b in combinations(columns, 2)]
    all_findings = (
        no_truth(OPTION + whole_sample(dataset.settings.limit), CONTENT),
        *dataset.findings,
        *findings(results),
    )
    streamed: list[StreamedTable] = [
        EXTRACTED.streamed(partial(_extracted, results)),
        PREDICTIONS.streamed(partial(all_stated_rows, results)),
    ]
    tables: list[Table] = [
        PROPERTIES.table(_properties(results)),
        PAPERS.table(_papers(results)),
    ]
    if pairs:
        tables.append(AGREEMENT.table(pairs))
        streamed.append(DISAGREEMENTS.streamed(partial(_disagreements, pairs)))
    card = Scorecard(
        models={},
        summary=run_text(results, all_findings),
        headline=HEADLINE if len(dataset.papers) else "rows",
        worth_explaining=_least_grounded(columns),
        tables=(*tables, *(table.table for table in streamed)),
        findings=all_findings,
        figures=figures(results),
        details=StreamedDetails(
            files=tuple(streamed), verdicts=paper_verdicts(results, answers)
        ),
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS}),
        missing=predictions.missing,
        stale=predictions.stale,
    )
    models = {
        model: without_truth(
            ModelScores(metrics=column.metrics, comparable=_compared(column)), WORDS
        )
        for model, column in results.columns.items()
    }
    return with_models(card, models, WORDS)


def _least_grounded(columns: Iterable[ScoredModel]) -> str:
    """Return a paper to explain first: one with an absent quote, else any."""
    first = ""
    for column in columns:
        for index, row in _counted(column.first.row_outcomes):
            level = column.first.groundings[index].quote.level
            if level is GroundingLevel.ABSENT:
                return row.refno
            first = first or row.refno
    return first
