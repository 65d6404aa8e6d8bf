"""Scores a run: metrics, tables, files, a text, and verdicts for the monitor.

The verdicts are computed in a second pass over the answers while they are written, so
that none is in memory. A paper is right if it has neither false negatives nor false
positives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np

from jobs.kit.grounding import GroundingLevel
from jobs.kit.metrics import Ratio
from jobs.kit.score import (
    ItemFrame,
    ItemMetric,
    Judged,
    ModelScores,
    TaskVerdicts,
    comparable,
    models_of,
    with_models,
)
from jobs.kit.text_format import plural
from jobs.property_extraction.aliases.differences import bookable_predictions
from jobs.property_extraction.caveats import ExcludedRows, findings
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.figures import figures
from jobs.property_extraction.frame import PropertyFrame
from jobs.property_extraction.measures import MEASURES
from jobs.property_extraction.parsing import ParsedExtraction, ParsedQuotes
from jobs.property_extraction.plan import read_extraction, read_requote, read_rows
from jobs.property_extraction.predictions import run_predictions
from jobs.property_extraction.rates import RATES, WORDS
from jobs.property_extraction.results import (
    PropertyResults,
    ScoredModel,
    ScoredReplicate,
    measure_run,
)
from jobs.property_extraction.row_metrics import JUDGED
from jobs.property_extraction.row_outcomes import RowOutcome
from jobs.property_extraction.row_tables import RowTables
from jobs.property_extraction.rows import ROWS_STAGE, Prediction
from jobs.property_extraction.settings import INPUTS
from jobs.property_extraction.summary import report, run_text
from jobs.property_extraction.tables import (
    ModelFolders,
    alias_tables,
    candidate_tables,
    draft_maps,
    lint_table,
    short_tables,
)
from jobs.property_extraction.tasks import paper_of
from runner.evaluation import Evaluation
from runner.job import Answer, Answers, Task
from runner.messages import ParseFailure, Reply
from runner.scorecard import Comparable, Metric, Scorecard, StreamedDetails

_PaperCounts: TypeAlias = tuple[int, int, int]
"""TP, FP and FN."""

REQUOTE = "requote"

PARSERS: Mapping[
    str,
    Callable[
        [PropertyDataset, Task, Reply],
        ParsedExtraction | ParsedQuotes | tuple[Prediction, ...] | ParseFailure,
    ],
] = {
    "extract": read_extraction,
    REQUOTE: read_requote,
    ROWS_STAGE: read_rows,
}
"""Parsers of the stages about papers."""


def paper_verdicts(results: PropertyResults, answers: Answers) -> TaskVerdicts:
    """Return one verdict for each answered task."""
    replicates = {
        (model, replicate.replicate): replicate
        for model, column in results.columns.items()
        for replicate in column.replicates
    }
    by_replicate = {name: _by_paper(scored) for name, scored in replicates.items()}
    grounded = {name: _grounded_papers(scored) for name, scored in replicates.items()}
    return TaskVerdicts(
        answers, partial(_judged, results.dataset, by_replicate, grounded)
    )


def _by_paper(replicate: ScoredReplicate) -> Mapping[str, _PaperCounts]:
    counts = replicate.counts
    return dict(zip(counts.papers, counts.by_paper().rows(), strict=True))


def _grounded_papers(replicate: ScoredReplicate) -> Mapping[str, bool]:
    """Return by paper whether each quote that can be checked is in its text."""
    grounded: dict[str, bool] = {}
    rows = replicate.row_outcomes.predicted.predictions
    for row, grounding in zip(rows, replicate.groundings, strict=True):
        if grounding.quote.level in JUDGED:
            is_absent = grounding.quote.level is GroundingLevel.ABSENT
            grounded[row.refno] = grounded.get(row.refno, True) and not is_absent
    return grounded


def _judged(
    dataset: PropertyDataset,
    by_replicate: Mapping[tuple[str, int], Mapping[str, _PaperCounts]],
    grounded: Mapping[tuple[str, int], Mapping[str, bool]],
    answer: Answer,
) -> Judged | None:
    """Return the verdict on an answer; None for a task without a reply."""
    task = answer.task
    if answer.chat is None:
        return None
    # a file names whole papers, even if a name looks like a chunk's key
    refno, piece = (task.key, None) if task.stage == ROWS_STAGE else paper_of(task.key)
    value, rule = _read(dataset, task, answer.chat)
    is_unparsed = not value
    # a consensus belongs to no single replicate
    papers = by_replicate.get((task.model, task.replicate), {})
    is_whole = not piece and task.stage != REQUOTE
    counts = papers.get(refno) if is_whole else None
    of_papers = grounded.get((task.model, task.replicate), {})
    is_grounded = of_papers.get(refno) if is_whole else None
    if not dataset.has_truth:
        return Judged(
            value=value, rule=rule, is_grounded=is_grounded, is_unparsed=is_unparsed
        )
    if counts is not None:
        rule = ", ".join(
            filter(None, ("TP {:,} FP {:,} FN {:,}".format(*counts), rule))
        )
    return Judged(
        value=value,
        expected=plural(len(dataset.truth_by_paper.get(refno, ())), "row"),
        correct=None if counts is None else not (counts[1] or counts[2]),
        rule=rule,
        is_grounded=is_grounded,
        is_unparsed=is_unparsed,
    )


def _read(dataset: PropertyDataset, task: Task, reply: Reply) -> tuple[str, str]:
    """Return the content of a reply in words, with a note on failures or losses."""
    match PARSERS[task.stage](dataset, task, reply):
        case ParsedExtraction() as extraction:
            left = {"dropped": extraction.dropped, "cut": extraction.cut}
            notes = [f"{n:,} {name}" for name, n in left.items() if n]
            notes += ["cut short"] if extraction.is_partial else []
            return plural(len(extraction.rows), "row"), ", ".join(notes)
        case ParsedQuotes(quotes=quotes, withdrawn=withdrawn):
            return f"{plural(len(quotes), 'quote')}, {len(withdrawn):,} withdrawn", ""
        case ParseFailure(reason=reason):
            return "", reason
        case rows:
            return plural(len(rows), "row"), ""


def paper_frame(column: ScoredModel) -> ItemFrame:
    """Return the papers of a model, as the items of a comparison."""
    return ItemFrame.of(column.first.counts.papers, cluster="paper")


def _of_papers(word: str, column: ScoredModel) -> Ratio:
    """Return a ratio of sums over papers, of the first replicate."""
    above, below = RATES[word].terms(column.first.counts.by_paper())
    return Ratio(above.astype(float), below.astype(float))


def _truth(column: ScoredModel) -> ItemFrame:
    """Return the truth rows, labelled by whether they are matched."""
    outcomes = column.first.row_outcomes
    rows = list(outcomes.truth_as(RowOutcome.TP, RowOutcome.FN))
    is_matched = [outcomes.truth_outcomes[index] is RowOutcome.TP for index, _ in rows]
    return ItemFrame.of(
        [str(row.source_row) for _, row in rows],
        [row.refno for _, row in rows],
        cluster="paper",
        truth=np.ones(len(rows), dtype=np.int64),
        label=np.array(is_matched, np.int64),
    )


COMPARED: tuple[ItemMetric[ScoredModel], ...] = (
    *(ItemMetric(word, paper_frame, partial(_of_papers, word)) for word in WORDS),
    ItemMetric("matched", _truth, definition="matched@1(truth rows with a prediction)"),
)
"""The headline metrics."""


def compared(column: ScoredModel) -> Comparable:
    """Return the values of a model's headline metrics, computed lazily, by path."""
    known = {word: column.metric(word) for word in WORDS}
    return comparable(COMPARED, column, known)


HEADLINE = "f1"


def score(dataset: PropertyDataset, answers: Answers) -> Scorecard:
    """Return all metrics, tables and artifacts of a run that has a truth; pure."""
    predictions = run_predictions(dataset, answers)
    results = measure_run(dataset, predictions)
    folders = ModelFolders(results.columns)
    row_tables = RowTables(results=results, folders=folders)
    exclusion_note = ExcludedRows.of(results).note
    all_findings = (*dataset.findings, *findings(results))
    card = Scorecard(
        models={},
        summary=run_text(results, all_findings),
        headline=HEADLINE,
        worth_explaining=_missed_most(results),
        tables=(
            *short_tables(results, folders),
            *candidate_tables(results, folders),
            *alias_tables(results, folders),
            lint_table(results),
            *row_tables.tables,
        ),
        findings=all_findings,
        artifacts=(
            report(results),
            *draft_maps(results, folders),
        ),
        figures=figures(results),
        details=StreamedDetails(
            files=(row_tables,), verdicts=paper_verdicts(results, answers)
        ),
        not_available=tuple(_not_available(results)),
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS}),
        missing=predictions.missing,
        stale=predictions.stale,
        frame=lambda: results.frame,
    )
    frequent = [*results.frame.baselines()]
    models = {
        model: ModelScores(
            metrics=column.metrics,
            comparable=compared(column),
            bookable=partial(bookable_predictions, column.first.row_outcomes),
            units={"TP": column.first.counts.by_paper().totals()[0]},
            baselines=frequent,
        )
        for model, column in results.columns.items()
    }
    card = with_models(card, models, MEASURES)
    return replace(
        card,
        tables=tuple(
            replace(table, caption=table.caption + exclusion_note)
            for table in card.tables
        ),
    )


def metrics_of(frame: PropertyFrame) -> Mapping[str, Sequence[Metric]]:
    """Return all metrics by model, computed only from the frame."""
    frequent, draws = [*frame.baselines()], frame.draws
    scores = {
        model: ModelScores(
            metrics=tuple(of_model.metrics(frame.papers, draws)), baselines=frequent
        )
        for model, of_model in frame.models.items()
    }
    return models_of(scores, MEASURES)


EVALUATION = Evaluation(PropertyFrame, metrics_of)


def _missed_most(results: PropertyResults) -> str:
    """Return the paper in which the first model misses most, or an empty text."""
    for column in results.columns.values():
        missed = column.first.counts.by_paper().fn
        return column.first.counts.papers[int(missed.argmax())] if missed.any() else ""
    return ""


def _not_available(results: PropertyResults) -> Iterator[str]:
    if not len(results.dataset.papers):
        yield "fabricated quotes, values in the text: no papers are named (--papers)"
    if not results.dataset.rubric.properties:
        yield "units, numbers and categories: no rubric is named, all is exact"
