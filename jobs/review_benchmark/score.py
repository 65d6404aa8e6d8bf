"""Scores a run: metrics, tables, files, figures, verdicts, history and a summary.

Verdicts are computed in a second pass over the answers while they are written, so that
none is in memory. A score is right if it includes a paper that the review includes, or
leaves out one that it does not; answers that decide about no paper are neither right
nor wrong.

A scoring uses no other run: `siftlog history` compares recall over runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import NamedTuple

from jobs.kit.comparison.models import model_pairs
from jobs.kit.measures import BASELINE_FORMS, Measure, MeasurePart, Measures
from jobs.kit.metrics import ratio
from jobs.kit.score import (
    Judged,
    ModelScores,
    TaskVerdicts,
    models_of,
    with_models,
)
from jobs.kit.tables import TableOf, flag, number, text
from jobs.kit.text_format import plural
from jobs.review_benchmark import parsing, requests
from jobs.review_benchmark.agent_results import (
    COUNTS,
    LOST,
    PASSED,
    RATES,
    AgentCounts,
    AgentResults,
    agent_metrics,
)
from jobs.review_benchmark.benchmark import percent, served_by_replicate
from jobs.review_benchmark.data import (
    Conclusion,
    JudgedSimilarity,
    Relevance,
    SearchPlan,
)
from jobs.review_benchmark.documents import documents, result_files
from jobs.review_benchmark.figures import figures
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.losses import PaperMatch
from jobs.review_benchmark.predictions import collect_predictions
from jobs.review_benchmark.rebuilt_reviews import RebuiltReview
from jobs.review_benchmark.result_files import AgentResult
from jobs.review_benchmark.results import (
    PAIRED,
    BenchmarkResults,
    compared,
    draws_of,
    measure_agents,
    not_available,
    trivial_baselines,
    verdict_findings,
)
from jobs.review_benchmark.settings import (
    INPUTS,
    QUESTION,
    ReviewBenchmarkSettings,
)
from jobs.review_benchmark.summary import MOST_REVIEWS, run_text
from jobs.review_benchmark.tables import paper_tables, short_tables, verdict_tables
from jobs.review_benchmark.verdicts import (
    VERDICTS,
    ConclusionVerdicts,
    judge_conclusions,
    verdict_metrics,
)
from runner.evaluation import KEYS_STAY, Evaluation
from runner.job import Answer, Answers
from runner.messages import ParseFailure
from runner.scorecard import (
    Artifact,
    HistoryEntry,
    Metric,
    Scorecard,
    StreamedDetails,
)
from runner.table_files import csv_lines
from store.results import ItemPart, ItemParts, ItemScore, Milestone

EXPECTED = ("exclude", "include")
"""Expected decision by whether the review includes the paper."""

NOT_STATED = "not stated"

_PARSERS = {stage.name: stage.parse for stage in parsing.STAGES}


def task_verdicts(results: BenchmarkResults, answers: Answers) -> TaskVerdicts:
    """Return one verdict for each answered task."""
    truth = {
        (rebuilt_review.model, rebuilt_review.review): frozenset(rebuilt_review.records)
        for rebuilt_review in results.predictions.rebuilt
    }
    return TaskVerdicts(answers, partial(_judged, results, truth))


def _judged(  # noqa: PLR0911 - a line for each kind of value
    results: BenchmarkResults,
    truth: Mapping[tuple[str, str], AbstractSet[str]],
    answer: Answer,
) -> Judged | None:
    """Return the verdict on an answer; None for a task without a reply."""
    if answer.reply is None:
        return None
    dataset, task = results.dataset, answer.task
    match _PARSERS[task.stage](dataset, task, answer.reply):
        case ParseFailure(reason=reason):
            return Judged.unparsed(reason)
        case SearchPlan(queries=queries, dropped=dropped):
            rule = f"{dropped} dropped" if dropped else ""
            return Judged(value=plural(len(queries), "query", "queries"), rule=rule)
        case Relevance(score=score, rule=rule):
            review, paper = requests.paper_of_key(task.key)
            is_truth = str(paper) in truth.get((task.model, review), frozenset())
            is_included = dataset.settings.includes(score)
            return Judged(
                value=dataset.settings.decision_words(score),
                expected=EXPECTED[is_truth],
                correct=is_included == is_truth,
                rule=rule,
                label=EXPECTED[is_included],
            )
        case Conclusion(direction=direction, certainty=certainty):
            value = f"{direction or NOT_STATED}, certainty {certainty or NOT_STATED}"
            return Judged(value=value)
        case JudgedSimilarity(similarity=similarity, direction=direction):
            value = f"similarity {similarity:.2f} (0 to 1), direction {direction}"
            return Judged(value=value)
        case AgentResult():
            return _result(results, task.model, task.key)
        case _:
            return None


def _result(results: BenchmarkResults, model: str, review: str) -> Judged | None:
    """Return the verdict on an imported result; None if the data lack its review."""
    benchmark = results.columns[model].benchmarks.get(review)
    if benchmark is None:
        return None
    target = results.dataset.settings.target_recall
    return Judged(
        value=f"{benchmark.found_and_included} of {benchmark.truth} included",
        expected=f"recall {percent(target)}",
        correct=benchmark.passes(target),
        rule="results",
    )


def history_of(
    results: BenchmarkResults, concluded: Sequence[ConclusionVerdicts]
) -> HistoryEntry:
    """Return the history entry of a scoring.

    Two scorings of a review are comparable if truth and matching are the same; the
    database may differ if the comparison allows it.
    """
    verdicts = {model_verdicts.model: model_verdicts for model_verdicts in concluded}
    return HistoryEntry(
        milestone=Milestone(
            job="review-benchmark",
            measure="recall",
            item="review",
            part="study",
            data=results.database or "",
            items={
                review: sha256(f"{truth}\0{results.matching}".encode()).hexdigest()
                for review, truth in results.truth.items()
            },
            standings={
                model: {
                    review: _part_history(results, column, review, verdicts.get(model))
                    for review in column.benchmarks
                }
                for model, column in results.columns.items()
            },
            partial=not results.predictions.imported
            and any(map(_is_unasked, results.predictions.rebuilt)),
        ),
        parts=ItemParts(
            names={
                review.id: [study.name for study in review.studies]
                for review in results.predictions.reviews
            },
            models={
                model: {
                    review: [_part(match) for match in matches]
                    for review, matches in column.matches.items()
                }
                for model, column in results.columns.items()
            },
        ),
    )


def _is_unasked(rebuilt_review: RebuiltReview) -> bool:
    """Return whether a candidate has neither an answer nor a reason for having none."""
    return any(
        candidate.outcome == "open" and not candidate.failure
        for candidate in rebuilt_review.candidates
    )


def _part_history(
    results: BenchmarkResults,
    column: AgentResults,
    review: str,
    verdicts: ConclusionVerdicts | None,
) -> ItemScore:
    benchmark = column.benchmarks[review]
    replicates = results.predictions.replicates
    return ItemScore(
        got=benchmark.found_and_included,
        of=benchmark.truth,
        passed=benchmark.passes(results.dataset.settings.target_recall),
        tries=[
            served_by_replicate(column.rebuilt[review], replicate)
            for replicate in range(replicates if replicates > 1 else 0)
        ],
        verdict=verdicts.passes(review)
        if verdicts is not None and review in verdicts.matches
        else None,
    )


def _part(match: PaperMatch) -> ItemPart:
    return ItemPart(got=match.included, score=match.score, lost_at=match.lost_at or "")


class _HistoryRow(NamedTuple):
    milestone: Milestone
    model: str
    review: str
    scored: ItemScore


HISTORY = TableOf[_HistoryRow](
    name="history",
    columns=(
        text("model", lambda row: row.model),
        text("cochrane_id", lambda row: row.review),
        number("recall", lambda row: ratio(row.scored.got, row.scored.of)),
        number("found_and_included", lambda row: row.scored.got),
        number("truth", lambda row: row.scored.of),
        flag("passed", lambda row: row.scored.passed),
        flag("verdict_passed", lambda row: row.scored.verdict),
        text("comparable", lambda row: row.milestone.items[row.review]),
        text("database", lambda row: row.milestone.data or None),
    ),
)
"""`comparable` represents the truth and the matching settings: two runs are compared on
a review if it is the same, and the database too."""


def history_csv(milestone: Milestone) -> Artifact:
    """Return a line for each model and review."""
    rows = (
        _HistoryRow(milestone, model, review, scored)
        for model, standings in milestone.standings.items()
        for review, scored in standings.items()
    )
    return Artifact(name="history.csv", text=csv_lines(HISTORY.lines(rows)))


MEASURES = Measures(
    headlines=(
        "macro.recall",
        "macro.precision",
        "macro.ceiling",
        "macro.retrieval_recall",
        "macro.screening_recall",
        "verdict.similarity",
        "verdict.passed_rate",
    ),
    scopes={
        "macro.": MeasurePart(name="", meaning="mean over reviews"),
        "micro.": MeasurePart(name="pooled over reviews"),
        "median.": MeasurePart(name="median over reviews"),
        "min.": MeasurePart(name="minimum over reviews"),
        "review.{review*}.": MeasurePart(name="review {review}"),
        "replicate.{replicate}.": MeasurePart(
            name="replicate {replicate}",
            meaning="mean over reviews of replicate {replicate} by itself",
        ),
    },
    forms=BASELINE_FORMS,
    slots={
        "method": {
            "pmid": "PMID",
            "doi": "DOI",
            "title_fuzzy": "similar title",
        }
    },
    measures={
        **RATES,
        **{f"count.{key}": measure for key, measure in COUNTS.items()},
        "count.method.null": Measure(
            "Studies without a match",
            "Studies of the truth that match no paper",
            "lower",
        ),
        **{f"lost.{step}": measure for step, measure in LOST.items()},
        **VERDICTS,
        **PASSED,
    },
)

HEADLINE = "macro.recall"


def score(dataset: ReviewDataset, answers: Answers) -> Scorecard:
    """Return all metrics, tables and artifacts of a run; pure."""
    predictions = collect_predictions(dataset, answers)
    results = measure_agents(dataset, predictions)
    columns = results.columns
    comparables = {
        model: compared(results, column) for model, column in columns.items()
    }
    pairs = model_pairs(comparables, PAIRED, dataset.settings, "micro.recall")
    results = replace(results, pairs=pairs)
    concluded = judge_conclusions(dataset, predictions)
    verdicts = {
        model_verdicts.model: tuple(verdict_metrics(model_verdicts, dataset.settings))
        for model_verdicts in concluded
    }
    models = {
        model: MEASURES.describe((*column.metrics, *verdicts.get(model, ())))
        for model, column in columns.items()
    }
    findings = (*results.findings, *verdict_findings(dataset, concluded))
    long_tables = (
        *paper_tables(results),
        *verdict_tables(concluded, predictions.reviews),
    )
    remembered = history_of(results, concluded)
    summary = run_text(results, concluded, findings, MOST_REVIEWS)
    card = Scorecard(
        models={},
        summary=summary,
        headline=HEADLINE,
        worth_explaining=_worst(results),
        tables=(*short_tables(results), *(long.table for long in long_tables)),
        findings=findings,
        artifacts=(
            *documents(results, models, run_text(results, concluded, findings)),
            *result_files(results, concluded),
            history_csv(remembered.milestone),
        ),
        figures=figures(results, concluded),
        details=StreamedDetails(
            files=long_tables,
            verdicts=task_verdicts(results, answers),
        ),
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS, *QUESTION}),
        not_available=(*_not_available(results), *not_available(concluded)),
        missing=predictions.missing,
        stale=predictions.stale,
        history_entry=remembered,
        frame=lambda: ReviewFrame.of(results, concluded),
    )
    scores = {
        model: ModelScores(
            metrics=models[model],
            comparable=comparables[model],
            baselines=trivial_baselines(column.counts),
        )
        for model, column in columns.items()
    }
    return with_models(card, scores, MEASURES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewFrame:
    """Counts of each review, by agent, from which metrics are computed."""

    settings: ReviewBenchmarkSettings
    agents: Mapping[str, AgentCounts] = field(metadata=KEYS_STAY)
    concluded: tuple[ConclusionVerdicts, ...]

    @classmethod
    def of(
        cls, results: BenchmarkResults, concluded: Sequence[ConclusionVerdicts]
    ) -> ReviewFrame:
        """Return the frame of a scoring."""
        return cls(
            settings=results.dataset.settings,
            agents={model: column.counts for model, column in results.columns.items()},
            concluded=tuple(verdicts.without_texts for verdicts in concluded),
        )


def metrics_of(frame: ReviewFrame) -> Mapping[str, Sequence[Metric]]:
    """Return all metrics by model, computed only from the frame."""
    draws = draws_of(frame.settings)
    verdicts = {
        agent.model: tuple(verdict_metrics(agent, frame.settings))
        for agent in frame.concluded
    }
    scores = {
        model: ModelScores(
            metrics=MEASURES.describe(
                (
                    *agent_metrics(counted, frame.settings, draws),
                    *verdicts.get(model, ()),
                )
            ),
            baselines=trivial_baselines(counted),
        )
        for model, counted in frame.agents.items()
    }
    return models_of(scores, MEASURES)


EVALUATION = Evaluation(ReviewFrame, metrics_of)


def _worst(results: BenchmarkResults) -> str:
    """Return the review with most losses under the first model that has any."""
    for column in results.columns.values():
        lost = {review: len(column.lost(review)) for review in column.rebuilt}
        worst = max(lost, key=lambda review: lost[review], default="")
        if lost.get(worst):
            return worst
    return ""


def _not_available(results: BenchmarkResults) -> Iterator[str]:
    if results.predictions.imported:
        yield "recall by rank: imported results do not say how papers ranked"
    if not any(column.overall for column in results.columns.values()):
        yield "recall by threshold: no paper has a score"
