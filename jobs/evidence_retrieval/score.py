"""Scores a run: metrics, tables, files, comparable values, verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from jobs.evidence_retrieval.against import with_verification
from jobs.evidence_retrieval.consistency import check
from jobs.evidence_retrieval.data import EvidenceDataset, query_key
from jobs.evidence_retrieval.documents import EvidenceFolders, documents, summary_json
from jobs.evidence_retrieval.figures import figures
from jobs.evidence_retrieval.measures import MEASURES
from jobs.evidence_retrieval.metrics.paired_differences import (
    CURVES,
    item_metric,
    judged_queries,
    ranking_names,
)
from jobs.evidence_retrieval.metrics.results import (
    EvidenceResults,
    ModelResults,
    measure_frame,
    measure_models,
    trivial,
)
from jobs.evidence_retrieval.parsing import (
    Assessment,
    EndpointScores,
    Ordering,
    PostAssessment,
    PostVectors,
)
from jobs.evidence_retrieval.per_query import PerQueryFiles
from jobs.evidence_retrieval.plan import PARSERS
from jobs.evidence_retrieval.predictions.outputs import ExpectedAnswers
from jobs.evidence_retrieval.predictions.scoring_input import scoring_input_of
from jobs.evidence_retrieval.queries import (
    UNKNOWN,
    EvidenceFrame,
    Predictions,
    Queries,
    ScoringInput,
)
from jobs.evidence_retrieval.sentence_order import listing
from jobs.evidence_retrieval.settings import INPUTS
from jobs.evidence_retrieval.summary import run_text
from jobs.evidence_retrieval.tables import checks_table, short_tables
from jobs.evidence_retrieval.unjudged import unjudged_card, unjudged_metrics
from jobs.kit.metrics.selective import STATES
from jobs.kit.score import (
    Judged,
    ModelScores,
    comparable,
    models_of,
    with_models,
)
from runner.evaluation import Evaluation
from runner.job import Answers, Task
from runner.messages import AnyReply, ParseFailure
from runner.scorecard import (
    Artifact,
    Comparable,
    Labels,
    Metric,
    Scorecard,
    StreamedDetails,
    Verdict,
)

SUMS = (
    "brier",
    "evidence_recall@K",
    "evidence_precision@K",
    "screening_sensitivity",
    "alert_precision",
    "alert_recall",
)


def compared(model_results: ModelResults) -> Comparable:
    """Return functions for the item values of headline metrics, by path."""
    block = model_results.block
    known = {
        path: metric
        for path, metric in model_results.by_path().items()
        if "not recomputable" not in (metric.note or "")
    }
    settings = block.settings
    paths = (*CURVES, *ranking_names(settings), *SUMS)
    return comparable([item_metric(path, settings) for path in paths], block, known)


def labels(model_results: ModelResults) -> Labels:
    """Return the decision at tau on each judged query, if there are probabilities."""
    return judged_queries(model_results.block).labels("decision")


EVIDENCE, NO_EVIDENCE = "evidence", "no evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceVerdicts:
    """Streams a verdict for each answered task of the plan; can be iterated again."""

    dataset: EvidenceDataset
    answers: Answers
    scoring_input: ScoringInput

    def __iter__(self) -> Iterator[Verdict]:
        indices = {
            self.scoring_input.queries.key(i): i
            for i in range(len(self.scoring_input.queries))
        }
        if self.answers.imported:
            yield from self._imported_verdicts(indices)
            return
        truth = self.scoring_input.queries.y
        expected = {key: int(truth[index]) for key, index in indices.items()}
        planned = ExpectedAnswers(self.dataset, self.answers)
        for family in self.answers.families():
            if not planned.takes(family[0].task):
                continue
            for answer in family:
                task, reply = answer.task, answer.reply
                if reply is not None:
                    yield _read(self.dataset, task, reply, expected).verdict(task)

    def _imported_verdicts(self, indices: Mapping[str, int]) -> Iterator[Verdict]:
        """Yield the verdicts of an import, on the scored column only."""
        by_model = {
            prediction.model: prediction
            for prediction in self.scoring_input.predictions
        }
        for (answer,) in self.answers.families():
            if answer.reply is not None:
                judged = _imported(
                    self.scoring_input.queries,
                    by_model[answer.task.model],
                    indices[answer.task.key],
                    self.dataset.settings.tau,
                )
                yield judged.verdict(answer.task)


def _read(
    dataset: EvidenceDataset, task: Task, reply: AnyReply, expected: Mapping[str, int]
) -> Judged:
    parsed = PARSERS[task.stage](dataset, task, reply)
    tau = dataset.settings.tau
    match parsed:
        case Assessment(probability=p):
            truth = expected[task.key]
            return Judged(
                value=f"{_called(p >= tau)} {p:.2f}",
                expected=_truth(truth),
                correct=_agree([(p >= tau, truth)]),
                rule=_noted(parsed.noted),
                label=_called(p >= tau),
                confidence=p if p >= tau else 1 - p,
            )
        case PostAssessment():
            return _batch(task.key, parsed, expected, tau)
        case Ordering():
            rerank_window = listing(dataset, task)
            order = (str(rerank_window.indices[index] + 1) for index in parsed.indices)
            return Judged(value=" > ".join(order), rule=_noted(parsed.noted))
        case PostVectors():
            n = len(parsed.criteria) + len(parsed.sentences)
            return Judged(value=f"{n} x {parsed.criteria.shape[1]} numbers")
        case EndpointScores(scores=scores):
            scored_n = sum(score is not None for score in scores)
            value = f"{scored_n} of {len(scores)} sentences scored"
            return Judged(value=value, rule=_noted(parsed.noted))
        case ParseFailure(reason=reason):
            return Judged.unparsed(reason)
        case _:
            raise AssertionError(parsed)


def _batch(
    post: str, parsed: PostAssessment, expected: Mapping[str, int], tau: float
) -> Judged:
    """Judge the readable criteria of a whole post; correct if all of them are."""
    values, due, pairs = [], [], []
    noted = [_noted(parsed.noted)]
    for criterion, assessment in parsed.criteria.items():
        truth = expected[query_key(post, criterion)]
        due.append(f"{criterion}: {_truth(truth) or 'not judged'}")
        if isinstance(assessment, ParseFailure):
            noted.append(f"{criterion}: {assessment.reason}")
            continue
        p = assessment.probability
        values.append(f"{criterion}: {_called(p >= tau)} {p:.2f}")
        pairs.append((p >= tau, truth))
        if assessment.noted:
            noted.append(f"{criterion}: {_noted(assessment.noted)}")
    return Judged(
        value="; ".join(values),
        expected="; ".join(due),
        correct=_agree(pairs),
        rule="; ".join(filter(None, noted)),
    )


def _imported(
    queries: Queries, prediction: Predictions, index: int, tau: float
) -> Judged:
    truth = int(queries.y[index])
    p = np.nan if prediction.prob is None else float(prediction.prob[index])
    if np.isnan(p):
        best = prediction.lists.get(prediction.final, {index: ()})[index][:1]
        return Judged(value=f"first {best[0]}" if best else "", expected=_truth(truth))
    state = UNKNOWN if prediction.state is None else int(prediction.state[index])
    called = _called(p >= tau) if state == UNKNOWN else STATES[state]
    return Judged(
        value=f"{called} {p:.2f}",
        expected=_truth(truth),
        correct=_agree([(p >= tau, truth)]),
        label=_called(p >= tau),
        confidence=p if p >= tau else 1 - p,
    )


def _called(has_evidence: bool) -> str:
    return EVIDENCE if has_evidence else NO_EVIDENCE


def _truth(truth: int) -> str:
    return "" if truth == UNKNOWN else _called(bool(truth))


def _agree(pairs: Iterable[tuple[bool, int]]) -> bool | None:
    """Return whether every decision is right; None if any is unjudged, or none."""
    judged = list(pairs)
    if not judged or any(truth == UNKNOWN for _, truth in judged):
        return None
    return all(called == bool(truth) for called, truth in judged)


def _noted(noted: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in noted.items())


def score_run(dataset: EvidenceDataset, answers: Answers) -> Scorecard:
    """Score the answers of a run, with a verdict for each task."""
    scoring_input = scoring_input_of(dataset, answers)
    return score(
        dataset,
        scoring_input,
        EvidenceVerdicts(dataset=dataset, answers=answers, scoring_input=scoring_input),
    )


def score(
    dataset: EvidenceDataset,
    scoring_input: ScoringInput,
    verdicts: Iterable[Verdict] = (),
) -> Scorecard:
    """Score a scoring input, with *verdicts* by task; pure."""
    settings = dataset.settings
    results = measure_models(scoring_input, settings)
    if not results.frame.is_judged:
        return unjudged_card(dataset, results, verdicts)
    models = {model: results.metrics(model) for model in results.models}
    tables = tuple(short_tables(results))
    contradictions = check(scoring_input, settings, models, tables)
    findings = (
        *dataset.findings,
        *scoring_input.findings,
        *scoring_input.leakage,
        *contradictions,
    )
    folders = EvidenceFolders(tuple(models))
    long_files = PerQueryFiles(results)
    card = Scorecard(
        models={},
        summary=run_text(results, findings),
        headline=_headline(results),
        worth_explaining=_worst(results),
        tables=tuple(
            map(
                MEASURES.titled,
                (
                    *tables,
                    checks_table(scoring_input, contradictions),
                    *long_files.tables(),
                ),
            )
        ),
        findings=findings,
        artifacts=(
            *documents(
                scoring_input, (*scoring_input.findings, *contradictions), folders
            ),
            *(
                Artifact(
                    name=folders.path(model, "summary.json"),
                    text=summary_json(model_results, scoring_input, settings),
                )
                for model, model_results in results.models.items()
            ),
            *long_files.artifacts(),
        ),
        figures=figures(results),
        details=StreamedDetails(files=(long_files,), verdicts=verdicts),
        not_available=_not_available(results),
        settings=settings.model_dump(mode="json", exclude=set(INPUTS)),
        missing=scoring_input.missing,
        stale=scoring_input.stale,
        frame=lambda: results.frame,
    )
    scores = {
        model: ModelScores(
            metrics=models[model],
            comparable=compared(model_results),
            labels=partial(labels, model_results),
            baselines=trivial(model_results),
        )
        for model, model_results in results.models.items()
    }
    verified = with_verification(card, results, models, dataset.stored)
    return with_models(verified, scores, MEASURES)


def metrics_of(frame: EvidenceFrame) -> Mapping[str, Sequence[Metric]]:
    """Return all metrics by model, from arrays only."""
    measured = measure_frame(frame)
    scores = {
        model: ModelScores(
            metrics=measured.metrics(model), baselines=trivial(model_results)
        )
        if frame.is_judged
        else ModelScores(metrics=unjudged_metrics(model_results.block))
        for model, model_results in measured.models.items()
    }
    return models_of(scores, MEASURES)


EVALUATION = Evaluation(EvidenceFrame, metrics_of)


def _headline(results: EvidenceResults) -> str:
    """Return the path of the headline metric: of the gate, else of the final list.

    It is the first one that the first model has, or "".
    """
    for model_results in results.models.values():
        by_path = model_results.by_path()
        final = model_results.block.prediction.final
        paths = ("auroc", "ndcg@10", f"{final}.ndcg@10")
        return next((path for path in paths if path in by_path), "")
    return ""


def _not_available(results: EvidenceResults) -> tuple[str, ...]:
    """Return the unavailable parts; one that all models lack is listed once."""
    parts = {
        m: model_results.not_available for m, model_results in results.models.items()
    }
    every = dict.fromkeys(
        part for model_parts in parts.values() for part in model_parts
    )
    shared = [
        part
        for part in every
        if all(part in model_parts for model_parts in parts.values())
    ]
    unshared = [
        f"{m}: {p}"
        for m, model_parts in parts.items()
        for p in model_parts
        if p not in shared
    ]
    return (*shared, *unshared)


def _worst(results: EvidenceResults) -> str:
    """Return the query with evidence that the first model with lists ranked worst."""
    for model_results in results.models.values():
        final = model_results.block.final
        if final is not None and len(final.rows):
            mrr = final.values["mrr"]
            return model_results.block.queries.key(int(final.rows[int(mrr.argmin())]))
    return ""
