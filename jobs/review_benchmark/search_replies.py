"""Reads a search plan and the answers that follow from it, by the current rules.

The answers are those about the plan's candidates, the conclusion, and its comparison
with the authors' conclusion: judges' replies, or vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from jobs.review_benchmark import parsing, plan, requests
from jobs.review_benchmark.data import (
    Conclusion,
    JudgedSimilarity,
    Relevance,
    Review,
    SearchPlan,
    Vector,
    expression,
)
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.plan import conclusion, queries, searched
from jobs.review_benchmark.rebuilt_reviews import (
    AgentConclusion,
    AgentUsage,
    ExecutedSearch,
    ScoreOutcome,
    usage_of,
)
from jobs.review_benchmark.requests import conclusion_from_context
from runner.job import Answer
from runner.messages import ParseFailure, Reply, Vectors

STAGES = frozenset({"judge", "embed"})
"""Stages of other models than the agent."""


@dataclass(frozen=True, slots=True)
class ReadConclusion:
    """A conclusion, and how its answers fit the current plan."""

    concluded: AgentConclusion
    missing: int = 0  #: missing tasks
    stale: int = 0  #: replies that the current plan or rules do not need


def read_comparisons(
    dataset: ReviewDataset,
    review: Review,
    model: str,
    concluded: AgentConclusion,
    family: Iterable[Answer],
) -> ReadConclusion:
    """Return a conclusion with the answers that compare it."""
    answers = {
        answer.task.key: answer for answer in family if answer.task.stage in STAGES
    }
    specs = (
        plan.comparison_tasks(dataset, review, concluded.text, model)
        if concluded.text
        else ()
    )
    compared = concluded
    missing = 0
    for spec in specs:
        answer = answers.pop(spec.key, None)
        truth = conclusion_from_context(spec.context).truth
        read = _read(answer)
        if isinstance(read, JudgedSimilarity):
            compared = replace(compared, judged={**compared.judged, truth: read})
        elif isinstance(read, str):
            # a judge's reply about another review's authors is no verdict on this one
            if truth in {"", review.id}:
                compared = replace(compared, failure=spec.skip or read)
        else:
            compared = replace(compared, vector=read)
        missing += answer is None and spec.skip is None
    stale = sum(answer.reply is not None for answer in answers.values())
    return ReadConclusion(compared, missing=missing, stale=stale)


@dataclass(slots=True, kw_only=True)
class TruthVectors:
    """Vectors of authors' conclusions, collected from the families of answers."""

    dataset: ReviewDataset
    replicates: int
    vectors: dict[str, Vector] = field(default_factory=dict)
    stale: int = 0
    missing: int = field(init=False)  #: number of missing tasks
    _due: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self._due = {
            spec.key: requests.review_of_key(spec.key)
            for spec in plan.truth_vectors(self.dataset)
            if spec.skip is None
        }
        self.missing = len(self._due) * self.replicates

    def add(self, family: Sequence[Answer]) -> None:
        """Add a family; further replicates would repeat the same vector."""
        (answer,) = family
        review = self._due.get(answer.task.key)
        if review is None:
            self.stale += answer.reply is not None
            return
        self.missing -= 1
        read = _read(answer)
        if isinstance(read, tuple):
            self.vectors.setdefault(review, read)


def _read(answer: Answer | None) -> JudgedSimilarity | Vector | str:
    """Return the parsed answer, or the reason why there is none."""
    if answer is None:
        return "open"
    parsed: JudgedSimilarity | Vector | ParseFailure
    match answer.reply:
        case Reply() as reply:
            parsed = parsing.parse_similarity(reply)
        case Vectors() as reply:
            parsed = parsing.parse_vector(reply)
        case _:
            return answer.error or answer.skip or "open"
    return parsed.reason if isinstance(parsed, ParseFailure) else parsed


_SKIPS: Mapping[str, ScoreOutcome] = {"no_text": "no_text", "too_long": "too_long"}

_ANSWERED: frozenset[ScoreOutcome] = frozenset({"scored", "unparsed"})
_ATTEMPTED = _ANSWERED | {"failed"}
"""Outcomes of papers with a reply, and of those with a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPaper:
    """The outcome of one candidate."""

    outcome: ScoreOutcome
    score: float | None = None
    rationale: str = ""
    failure: str = ""  #: class of the failure, or reason of the parse failure


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswers:
    """One replicate's search of one review, with its answers."""

    review: str
    model: str
    replicate: int
    failure: str = ""  #: why there is no search: class, skip, or `open`
    searched: ExecutedSearch | None = None
    spent: AgentUsage = field(default_factory=AgentUsage)
    scored: Mapping[int, ScoredPaper] = field(
        default_factory=dict
    )  #: of the candidates
    concluded: AgentConclusion
    is_open: bool = False  #: whether the search plan is not answered yet
    missing: int = 0
    """Missing tasks: of candidates, the conclusion and its comparison."""
    stale: int = 0
    """Answers about papers that are no longer candidates or included, and comparisons
    of other conclusions."""


def read_search(
    dataset: ReviewDataset, family: Sequence[Answer]
) -> SearchAnswers | None:
    """Read a family of answers; None if the data lack its review."""
    first = family[0]
    task = first.task
    review = dataset.find(task.key)
    if review is None:
        return None
    if first.chat is None:
        failure = first.error or first.skip or "open"
        return SearchAnswers(
            review=review.id,
            model=task.model,
            replicate=task.replicate,
            failure=failure,
            concluded=AgentConclusion(failure=failure),
            is_open=first.is_open,
            missing=int(first.is_open),
            spent=usage_of(family),
        )
    parsed = parsing.read_plan(dataset, task, first.chat)
    search = executed_search(dataset, review, parsed, task.replicate)
    answers = {
        requests.paper_of_key(answer.task.key)[1]: _scored(dataset, answer)
        for answer in family
        if answer.task.stage == "score" and answer.skip != "no_candidates"
    }
    scored = {
        number: answers.get(number, ScoredPaper(outcome="open"))
        for number in search.search_hits.candidates
    }
    replicate_answers = _read_conclusion(dataset, review, answers, family)
    comparisons = read_comparisons(
        dataset, review, task.model, replicate_answers.concluded, family
    )
    return SearchAnswers(
        review=review.id,
        model=task.model,
        replicate=task.replicate,
        searched=search,
        spent=usage_of(answer for answer in family if answer.task.stage not in STAGES),
        scored=scored,
        concluded=comparisons.concluded,
        missing=sum(number not in answers for number in scored)
        + replicate_answers.missing
        + comparisons.missing,
        stale=sum(
            scored_paper.outcome in _ANSWERED and number not in scored
            for number, scored_paper in answers.items()
        )
        + replicate_answers.stale
        + comparisons.stale,
    )


def executed_search(
    dataset: ReviewDataset, review: Review, parsed: object, replicate: int = 1
) -> ExecutedSearch:
    """Execute the search of a parsed reply, or the fixed plan after a parse failure."""
    planned_queries = queries(review, parsed, dataset.settings.queries)
    return ExecutedSearch(
        replicate=replicate,
        queries=planned_queries,
        hits=tuple(dataset.papers.n_hits(expression(it)) for it in planned_queries),
        search_hits=searched(dataset, review, parsed),
        is_fallback=not isinstance(parsed, SearchPlan),
    )


def _scored(dataset: ReviewDataset, answer: Answer) -> ScoredPaper:
    if answer.skip is not None:
        return ScoredPaper(outcome=_SKIPS.get(answer.skip, "open"), failure=answer.skip)
    if answer.error is not None:
        return ScoredPaper(outcome="failed", failure=answer.error)
    if answer.chat is None:
        return ScoredPaper(outcome="open")
    parsed = parsing.read_score(dataset, answer.task, answer.chat)
    if isinstance(parsed, Relevance):
        return ScoredPaper(
            outcome="scored", score=parsed.score, rationale=parsed.rationale
        )
    return ScoredPaper(outcome="unparsed", failure=parsed.reason)


def _read_conclusion(
    dataset: ReviewDataset,
    review: Review,
    answers: Mapping[int, ScoredPaper],
    family: Sequence[Answer],
) -> ReadConclusion:
    """Read the conclusion from the papers included now, in the order of the plan.

    While a score is missing, the set of included papers is unknown.
    """
    conclusion_answers = [
        answer for answer in family if answer.task.stage == "conclude"
    ]
    if any(
        scored_paper.outcome == "open" and not scored_paper.failure
        for scored_paper in answers.values()
    ):
        return ReadConclusion(AgentConclusion(failure="open"))
    scores = {
        number: scored_paper.score
        for number, scored_paper in answers.items()
        if scored_paper.outcome in _ATTEMPTED
    }
    spec = conclusion(dataset, review, scores) if answers else None
    due = (
        []
        if spec is None
        else [answer for answer in conclusion_answers if answer.task.key == spec.key]
    )
    stale = sum(
        answer.reply is not None for answer in conclusion_answers if answer not in due
    )
    if spec is None or spec.skip is not None:
        failure = "no_candidates" if spec is None or spec.skip is None else spec.skip
        return ReadConclusion(AgentConclusion(failure=failure), stale=stale)
    if not due:
        return ReadConclusion(
            concluded=AgentConclusion(failure="open"), missing=1, stale=stale
        )
    (answer,) = due
    return ReadConclusion(_concluded(answer), stale=stale)


def _concluded(answer: Answer) -> AgentConclusion:
    if answer.chat is None:
        return AgentConclusion(failure=answer.error or answer.skip or "open")
    parsed = parsing.parse_conclusion(answer.chat)
    if isinstance(parsed, Conclusion):
        return AgentConclusion(
            text=parsed.text, direction=parsed.direction, certainty=parsed.certainty
        )
    return AgentConclusion(failure=parsed.reason)
