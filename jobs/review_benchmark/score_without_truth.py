"""Scores a run on questions without a truth: included studies and conclusions.

For each question and model, the results are the search, the score of every candidate
with its rationale, the included studies and a conclusion with its studies. Models are
compared by the agreement of their decisions. Recall and precision appear when a later
scoring has published reviews of the same ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from jobs.kit.inputs.sampling import sample_sentences
from jobs.kit.measurements import count, share, with_intervals
from jobs.kit.measures import Measures, ValueMeasure, measured
from jobs.kit.metrics import ratio
from jobs.kit.score import (
    Judged,
    ModelScores,
    TaskVerdicts,
    with_models,
)
from jobs.kit.summary import finding_lines, summary_text
from jobs.kit.tables import Columns, StreamedTable, TableOf, flag, group, number, text
from jobs.kit.tables import count as whole
from jobs.kit.text_format import fixed, plural, slugs
from jobs.kit.truth import no_truth, whole_sample
from jobs.review_benchmark import parsing
from jobs.review_benchmark.answered_questions import (
    DECISIONS,
    AgentWork,
    AnsweredQuestion,
    CandidateDecision,
    WorkAgreement,
    flow,
    included_as_ris,
    included_studies,
    question_page,
    reference,
    references,
)
from jobs.review_benchmark.data import (
    AgentRecord,
    Conclusion,
    Relevance,
    SearchPlan,
    expression,
)
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.predictions import collect_predictions
from jobs.review_benchmark.rebuilt_reviews import (
    CandidatePaper,
    ExecutedSearch,
    RebuiltReview,
    ReviewPredictions,
)
from jobs.review_benchmark.settings import INPUTS
from runner.job import Answer, Answers
from runner.messages import ParseFailure
from runner.scorecard import (
    Artifact,
    Finding,
    Scorecard,
    StreamedDetails,
)
from store.document import Block, Fact, as_text, wide_table
from store.printable import one_line

OPTION = "--truth DIR"
CONTENT = "the studies of published reviews"

PAPER: tuple[Columns[AgentRecord], ...] = (
    text("document_id", lambda paper: paper.document, "in the database"),
    text("pmid", lambda paper: paper.pmid or None),
    text("doi", lambda paper: paper.doi or None),
    text("title", lambda paper: paper.title or None),
    whole("year", lambda paper: paper.year),
)

CANDIDATE: tuple[Columns[CandidatePaper], ...] = (
    whole("rank", lambda candidate: candidate.rank, "in the fused search"),
    number("score", lambda candidate: candidate.score, "mean over replicates"),
    flag("included", lambda candidate: candidate.included),
    text("outcome", lambda candidate: str(candidate.outcome)),
    text("failure", lambda candidate: candidate.failure or None),
    text("rationale", lambda candidate: candidate.rationale or None),
)

INCLUDED = TableOf[CandidateDecision](
    name="included",
    columns=(
        text("question_id", lambda study: study.rebuilt.review),
        text("model", lambda study: study.rebuilt.model),
        group(PAPER, lambda study: study.paper),
        number("score", lambda study: study.candidate.score),
        text("rationale", lambda study: study.candidate.rationale or None),
    ),
    caption="The included studies of each question, the most relevant first.",
    is_headline=True,
)

CANDIDATES = TableOf[CandidateDecision](
    name="candidates",
    columns=(
        text("question_id", lambda study: study.rebuilt.review),
        text("model", lambda study: study.rebuilt.model),
        group(PAPER, lambda study: study.paper),
        group(CANDIDATE, lambda study: study.candidate),
    ),
    caption="Every paper that the search found, with its relevance and the decision.",
)


CONCLUSIONS = TableOf[AnsweredQuestion](
    name="conclusions",
    columns=(
        text("question_id", lambda row: row.rebuilt.review),
        text("model", lambda row: row.rebuilt.model),
        text("question", lambda row: row.review.question),
        text("conclusion", lambda row: row.concluded.text or None),
        text("direction", lambda row: row.concluded.direction),
        text("certainty", lambda row: row.concluded.certainty),
        whole("candidates", lambda row: len(row.rebuilt.candidates)),
        whole("included", lambda row: len(row.rebuilt.included)),
        text(
            "references",
            lambda row: " | ".join(references(row.dataset, row.rebuilt)) or None,
            "studies that it is drawn from, the most relevant first",
        ),
        text("failure", lambda row: row.failure),
    ),
    caption="The conclusion of each model about each question.",
    is_headline=True,
)


class _SearchRow(NamedTuple):
    rebuilt: RebuiltReview
    search: ExecutedSearch
    query: int

    @property
    def is_fallback(self) -> bool:
        return self.search.is_fallback


SEARCHES = TableOf[_SearchRow](
    name="searches",
    columns=(
        text("question_id", lambda row: row.rebuilt.review),
        text("model", lambda row: row.rebuilt.model),
        whole("replicate", lambda row: row.search.replicate),
        text("label", lambda row: row.search.queries[row.query].label or None),
        text("expression", lambda row: expression(row.search.queries[row.query])),
        whole("hits", lambda row: row.search.hits[row.query], "papers, in any year"),
        flag("fixed_plan", lambda row: row.is_fallback, "the plan was unusable"),
    ),
    caption="Every query as it was searched, in SQLite's full-text syntax.",
)


def _searches(predictions: ReviewPredictions) -> Iterator[_SearchRow]:
    for rebuilt in predictions.rebuilt:
        for search in rebuilt.searches:
            for query in range(len(search.queries)):
                yield _SearchRow(rebuilt, search, query)


def _decisions(predictions: ReviewPredictions) -> Iterator[CandidateDecision]:
    for rebuilt in predictions.rebuilt:
        for candidate in rebuilt.candidates:
            yield CandidateDecision(rebuilt, candidate)


WORK: Mapping[str, ValueMeasure[AgentWork]] = {
    "questions": ValueMeasure(
        "Questions",
        "Questions that were searched",
        of=lambda work: count(len(work.reviews)),
        definition="count@1(questions with a search)",
    ),
    "concluded": ValueMeasure(
        "Conclusions",
        "Questions with a conclusion",
        "higher",
        of=lambda work: count(
            sum(bool(rebuilt.concluded.text) for rebuilt in work.reviews),
            len(work.reviews),
        ),
        definition="count@1(questions with a conclusion)",
    ),
    "candidates": ValueMeasure(
        "Candidates",
        "Papers that the search found and that were to be scored",
        of=lambda work: count(len(work.decisions)),
        definition="count@1(papers to be scored)",
    ),
    "scored": ValueMeasure(
        "Scored papers",
        "Candidates with a readable score",
        "higher",
        of=lambda work: count(len(work.decided), len(work.decisions)),
        definition="count@1(candidates with a score)",
    ),
    "included": ValueMeasure(
        "Included studies",
        "Candidates that the model includes",
        of=lambda work: count(
            sum(map(len, (rebuilt.included for rebuilt in work.reviews))),
            len(work.decisions),
        ),
        definition="count@1(included candidates)",
    ),
    "included_rate": ValueMeasure(
        "Inclusion rate",
        "Share of the scored papers that the model includes",
        of=lambda work: share(sum(work.decided.values()), len(work.decided)),
        definition="share@1(included / scored)",
    ),
}

MEASURES = Measures(
    headlines=("included", "candidates", "scored", "concluded"), measures=WORK
)


def _both(pair: WorkAgreement, decisions: tuple[bool, bool]) -> int:
    return pair.common.count(decisions)


AGREEMENT = TableOf[WorkAgreement](
    name="agreement",
    columns=(
        text("model_a", lambda pair: pair.a.model),
        text("model_b", lambda pair: pair.b.model),
        whole("papers", lambda pair: len(pair.common), "scored by both"),
        whole("both_include", lambda pair: _both(pair, (True, True))),
        whole("only_a", lambda pair: _both(pair, (True, False)), "includes"),
        whole("only_b", lambda pair: _both(pair, (False, True)), "includes"),
        whole("both_exclude", lambda pair: _both(pair, (False, False))),
        number(
            "agreement",
            lambda pair: ratio(sum(a == b for a, b in pair.common), len(pair.common)),
            "share of the papers with the same decision",
        ),
    ),
    caption="Models by pairs: decisions on the papers that both scored.",
    is_headline=True,
)


def _pages(
    dataset: ReviewDataset, predictions: ReviewPredictions
) -> Iterator[Artifact]:
    """Yield a text file and a RIS file for each question and model."""
    models = slugs(predictions.models)
    names = slugs([review.id for review in predictions.reviews])
    for rebuilt in predictions.rebuilt:
        page = as_text(question_page(dataset, rebuilt))
        name = f"answers/{models[rebuilt.model]}/{names[rebuilt.review]}"
        yield Artifact(name=f"{name}.txt", text=f"{page}\n")
        if rebuilt.included:
            yield Artifact(name=f"{name}.ris", text=included_as_ris(rebuilt))


_PARSERS = {stage.name: stage.parse for stage in parsing.STAGES}


def _judged(dataset: ReviewDataset, answer: Answer) -> Judged | None:
    """Return the verdict on a reply; None without a reply."""
    if answer.reply is None:
        return None
    match _PARSERS[answer.task.stage](dataset, answer.task, answer.reply):
        case ParseFailure(reason=reason):
            return Judged.unparsed(reason)
        case SearchPlan(queries=queries):
            return Judged(value=plural(len(queries), "query", "queries"))
        case Relevance(score=score, rule=rule):
            settings = dataset.settings
            label = DECISIONS[settings.includes(score)]
            return Judged(value=settings.decision_words(score), rule=rule, label=label)
        case Conclusion(direction=direction, certainty=certainty):
            stated = (direction or "not stated", certainty or "not stated")
            value = "{}, certainty {}".format(*stated)
            return Judged(value=value, label=stated[0])
        case _:
            return None


def _findings(work: AgentWork, dataset: ReviewDataset) -> Iterator[Finding]:
    missing = [
        review.id
        for review in dataset.reviews
        if review.id not in {rebuilt.review for rebuilt in work.reviews}
    ]
    cut = [
        rebuilt.review
        for rebuilt in work.reviews
        if any(search.search_hits.cut for search in rebuilt.searches)
    ]
    unscored = [
        decision.key
        for decision in work.decisions
        if decision.candidate.outcome != "scored"
    ]
    for code, severe, message, cases in (
        ("question_not_done", True, "Questions have no search yet.", missing),
        (
            "plan_fallback",
            True,
            "Search plans could not be read; the fixed plan was searched.",
            work.fallbacks,
        ),
        (
            "candidates_cut",
            True,
            "Searches found more papers than max_candidates; raise --max-candidates.",
            cut,
        ),
        (
            "unscored",
            True,
            f"Candidates have no score; unscored={dataset.settings.unscored} decides.",
            unscored,
        ),
    ):
        if cases:
            yield Finding(
                code=code,
                severity="warn" if severe else "info",
                where=work.model,
                message=message,
                n=len(cases),
                example=cases[0],
            )


def score(dataset: ReviewDataset, answers: Answers) -> Scorecard:
    """Return included studies, conclusions and counts of each model; pure."""
    predictions = collect_predictions(dataset, answers)
    works = {
        model: AgentWork(model=model, reviews=predictions.of(model))
        for model in predictions.models
    }
    pairs = [WorkAgreement(a, b) for a, b in combinations(works.values(), 2)]
    findings = (
        no_truth(OPTION + whole_sample(dataset.settings.limit), CONTENT),
        *dataset.findings,
        *predictions.findings,
        *(finding for work in works.values() for finding in _findings(work, dataset)),
    )
    streamed: tuple[StreamedTable, ...] = (
        CANDIDATES.streamed(lambda: _decisions(predictions)),
        SEARCHES.streamed(lambda: _searches(predictions)),
    )
    rebuilt_reviews = predictions.rebuilt
    tables = [
        CONCLUSIONS.table(
            AnsweredQuestion(dataset, rebuilt) for rebuilt in rebuilt_reviews
        ),
        INCLUDED.table(
            study for rebuilt in rebuilt_reviews for study in included_studies(rebuilt)
        ),
    ]
    if pairs:
        tables.append(AGREEMENT.table(pairs))
    card = Scorecard(
        models={},
        summary=summary_text(_summary(dataset, works, findings)),
        headline="included",
        worth_explaining=next((rebuilt.review for rebuilt in rebuilt_reviews), ""),
        tables=(*tables, *(table.table for table in streamed)),
        findings=findings,
        artifacts=tuple(_pages(dataset, predictions)),
        details=StreamedDetails(
            files=streamed,
            verdicts=TaskVerdicts(answers, lambda answer: _judged(dataset, answer)),
        ),
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS}),
        missing=predictions.missing,
        stale=predictions.stale,
    )
    models = {
        model: ModelScores(
            metrics=tuple(with_intervals(measured(WORK, work))), labels=work.labels
        )
        for model, work in works.items()
    }
    return with_models(card, models, MEASURES)


LISTED_STUDIES = 10
"""Included studies per question in a terminal; included.csv has all."""
LISTED_QUESTIONS = 5


def _summary(
    dataset: ReviewDataset,
    works: Mapping[str, AgentWork],
    findings: Sequence[Finding],
) -> Iterator[Block]:
    answered = [rebuilt for work in works.values() for rebuilt in work.reviews]
    for rebuilt in answered[:LISTED_QUESTIONS]:
        review = dataset.review(rebuilt.review)
        yield f"{review.id}: {one_line(review.question)}"
        yield f"  {one_line(rebuilt.model)}: {flow(rebuilt)}"
        studies = included_studies(rebuilt)
        for place, study in enumerate(studies[:LISTED_STUDIES], start=1):
            score = fixed(study.candidate.score, "g")
            label = f"[{place}]"
            line = f"{reference(study.paper)} (score {score})"
            yield Fact(label, line, indent=2, width=len(label) + 1)
        if studies[LISTED_STUDIES:]:
            yield f"  and {len(studies) - LISTED_STUDIES:,} more in included.csv"
        concluded = rebuilt.concluded
        stated = f" ({concluded.direction}, certainty {concluded.certainty})"
        failure = AnsweredQuestion(dataset, rebuilt).failure
        conclusion = f"none: {failure}" if failure else concluded.text + stated
        yield Fact("conclusion: ", one_line(conclusion), indent=2, width=0)
        yield ""
    if answered[LISTED_QUESTIONS:]:
        more = plural(len(answered) - LISTED_QUESTIONS, "more answer")
        yield f"{more} in conclusions.csv"
    if len(answered) > 1:
        rows = [
            [
                model,
                f"{len(work.reviews):,}",
                f"{len(work.decisions):,}",
                f"{len(work.decided):,}",
                f"{sum(len(rebuilt.included) for rebuilt in work.reviews):,}",
            ]
            for model, work in works.items()
        ]
        titles = ["model", "questions", "candidates", "scored", "included"]
        yield wide_table(titles, rows)
    yield from sample_sentences(findings)
    yield from finding_lines(findings)
