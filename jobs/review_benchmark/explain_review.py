"""Explains a review under one model: search, scores, inclusion, losses, conclusion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.kit.text_format import fixed, joined_words, plural
from jobs.review_benchmark import parsing
from jobs.review_benchmark.agent_results import AgentResults
from jobs.review_benchmark.benchmark import ReviewBenchmarkCounts, percent
from jobs.review_benchmark.data import (
    Review,
    SearchPlan,
    TruthPaper,
    expression,
)
from jobs.review_benchmark.effects import StatedEffect, compare_effects, stated_effect
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.losses import PaperMatch, by_step
from jobs.review_benchmark.rebuilt_reviews import (
    CandidatePaper,
    ExecutedSearch,
    RebuiltReview,
)
from jobs.review_benchmark.search_replies import executed_search
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from jobs.review_benchmark.summary import REASONS
from runner.job import Answer
from runner.messages import ParseFailure
from store.document import (
    NONE,
    Block,
    Cell,
    Column,
    Fact,
    Heading,
    Numbers,
    Quote,
    TableBlock,
    Words,
    number,
)

LABEL = 40
"""Most characters of a query's label in a table."""


@dataclass(frozen=True, slots=True)
class ExplainedSearch:
    """An executed search plan and its origin."""

    origin: str  #: origin of the plan, in words
    search: ExecutedSearch


def planned_search(dataset: ReviewDataset, review: Review) -> ExplainedSearch:
    """Return the search of the fixed plan, which needs no model."""
    search = executed_search(dataset, review, None)
    return ExplainedSearch("the fixed plan, which needs no model", search)


def answered_search(
    dataset: ReviewDataset, review: Review, answer: Answer
) -> ExplainedSearch | str:
    """Return the search of a reply's plan, or why there is none."""
    if answer.chat is None:
        return answer.error or answer.skip or "not answered yet"
    parsed = parsing.read_plan(dataset, answer.task, answer.chat)
    return ExplainedSearch(_origin(parsed), executed_search(dataset, review, parsed))


def _origin(parsed: SearchPlan | ParseFailure) -> str:
    if isinstance(parsed, ParseFailure):
        return f"the fixed plan, since the reply could not be read: {parsed.reason}"
    dropped = plural(parsed.dropped, "query", "queries")
    return f"the model's plan{f', {dropped} dropped' if parsed.dropped else ''}"


def search_blocks(
    explained: ExplainedSearch, paper: int | None = None
) -> Iterator[Block]:
    """Yield the queries of a search.

    Args:
        explained: the plan and its search.
        paper: whose ranks are shown; None: no paper.
    """
    search, search_hits = explained.search, explained.search.search_hits
    yield f"  {explained.origin}"
    columns: list[Column] = [Numbers("query"), Numbers("hits"), Numbers("kept")]
    columns.append(Words("label", LABEL))
    rows: list[list[Cell]] = [
        [str(n), hits, len(ranking), query.label]
        for n, (query, hits, ranking) in enumerate(
            zip(search.queries, search.hits, search_hits.rankings, strict=True), 1
        )
    ]
    if paper is not None:
        columns.insert(1, Numbers("rank"))
        for row, rank in zip(rows, search_hits.ranks(paper), strict=True):
            row.insert(1, None if rank is None else str(rank))
    yield TableBlock(columns, rows)
    for n, query in enumerate(search.queries, 1):
        # the searchable words of a model are between quotation marks
        fts_query = expression(query) or "nothing to search for"
        yield Fact(f"{n}  ", fts_query, indent=4, width=0)
    cut = f", {search_hits.cut:,} more cut" if search_hits.cut else ""
    yield f"  candidates: {len(search_hits.candidates):,}{cut}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedReview:
    """A review that a model has completed, at least in part."""

    dataset: ReviewDataset
    review: Review
    rebuilt: RebuiltReview  #: the model's result
    column: AgentResults | None  #: None: there is no truth
    families: tuple[tuple[Answer, ...], ...]  #: by replicate
    has_search: bool  #: whether the run searched a database; an import did not

    @property
    def agent(self) -> AgentResults:
        """Results of the model; raises `TypeError` without a truth."""
        if self.column is None:
            raise TypeError("The review has no truth.")
        return self.column

    @property
    def benchmark(self) -> ReviewBenchmarkCounts:
        """The model's counts for the review."""
        return self.agent.benchmarks[self.review.id]

    @property
    def matches(self) -> tuple[PaperMatch, ...]:
        """Outcome of each study of the review; empty without a truth."""
        if self.column is None:
            return ()
        return self.column.matches[self.review.id]

    def searches(self) -> Iterator[tuple[int, ExplainedSearch | str]]:
        """Yield each replicate with its search, or the reason why there is none."""
        for family in self.families:
            first = family[0]
            yield (
                first.task.replicate,
                answered_search(self.dataset, self.review, first),
            )


def review_facts(review: Review, settings: ReviewBenchmarkSettings) -> Iterator[Block]:
    """Yield title, question and years."""
    yield Fact("title", review.title)
    yield Fact("question", review.question)
    years = NONE if review.date_range is None else "{} to {}".format(*review.date_range)
    is_free = review.date_range is not None and not settings.use_date_range
    yield f"years      {years}{', not used' if is_free else ''}"


def study_fact(index: int, paper: TruthPaper) -> Fact:
    """Return a line with a study and its index from 0, as in matches.csv."""
    name = f"{paper.ref_id}: " if paper.ref_id else ""
    text = f"{index}  {name}{paper.title or paper.name}"
    return Fact("", text, indent=2, width=0, is_cut=True)


def conclusion_blocks(explained: ExplainedReview) -> Iterator[Block]:
    """Yield both conclusions, by replicate; nothing if none was requested."""
    if explained.dataset.verdict == "off" or not explained.rebuilt.conclusions:
        return
    review = explained.review
    truth = (
        stated_effect(review.conclusion, review.direction, review.certainty)
        if review.conclusion
        else None
    )
    for replicate, conclusion in enumerate(explained.rebuilt.conclusions, start=1):
        yield Heading(f"conclusion, replicate {replicate}")
        if not conclusion.text:
            yield f"  none: {conclusion.failure}"
            continue
        yield Quote(conclusion.text)
        effect = stated_effect(
            conclusion.text, conclusion.direction, conclusion.certainty
        )
        yield f"  states {_effect_words(effect)}"
        if truth is not None:
            within = explained.dataset.settings.certainty_within
            comparison = compare_effects(effect, truth, within)
            yield (
                f"  compared with the authors: {comparison.outcome} "
                f"({REASONS[comparison.reason]})"
            )
        judged = conclusion.judged.get(explained.review.id)
        if judged is not None:
            yield (
                f"  judged {number(judged.similarity, 2)} alike, direction "
                f"{judged.direction}"
            )
            yield Quote(judged.rationale)
        elif conclusion.failure:
            yield f"  not compared: {conclusion.failure}"
    if truth is not None:
        yield Heading("conclusion of the authors")
        yield Quote(review.conclusion)
        yield f"  states {_effect_words(truth)}"


def _effect_words(effect: StatedEffect) -> str:
    direction = effect.direction or "no direction of effect that a rule can read"
    others = f"; also {', '.join(sorted(effect.others))}" if effect.others else ""
    certainty = effect.certainty or "not stated"
    return f"{direction}{others}; certainty {certainty}"


MOST_LISTED = 10
"""Number of candidates in the list; explain REVIEW:PAPER shows any."""


def review_blocks(explained: ExplainedReview) -> Iterator[Block]:
    """Yield the page of a review without its head."""
    yield from review_facts(explained.review, explained.dataset.settings)
    yield from _outcome(explained)
    if explained.has_search:
        for replicate, search in explained.searches():
            yield Heading(f"search, replicate {replicate}")
            if isinstance(search, str):
                yield f"  none: {search}"
            else:
                yield from search_blocks(search)
    if explained.rebuilt.candidates:
        order = "best first" if explained.has_search else "as given"
        yield Heading(f"papers, {order}")
        yield _papers(explained)
    yield ""
    yield from _lost(explained.agent.lost(explained.review.id))
    odd = explained.agent.suspicious[explained.review.id]
    if odd:
        yield Heading("matches to check")
        for suspicious in odd:
            study = explained.review.studies[suspicious.index]
            yield study_fact(suspicious.index, study)
            yield Fact("", suspicious.message, indent=4, width=0)
    yield from conclusion_blocks(explained)


def _lost(lost: Sequence[PaperMatch]) -> Iterator[Block]:
    """Yield the lost studies, by the step that lost them."""
    yield f"lost       {plural(len(lost), 'study', 'studies') if lost else 'none'}"
    for step, papers in by_step(lost):
        yield f"{step} ({len(papers)})"
        for match in papers:
            yield study_fact(match.index, match.paper)
            yield Fact("", match.resolution, indent=4, width=0)
            yield Fact("rationale: ", match.rationale, indent=4, width=0)


def _outcome(explained: ExplainedReview) -> Iterator[Block]:
    benchmark, settings = explained.benchmark, explained.dataset.settings
    word = "PASSED" if benchmark.passes(settings.target_recall) else "FAILED"
    precision = fixed(benchmark.precision, ".1%")
    yield (
        f"outcome    {word}: recall {benchmark.recall:.1%} (target "
        f"{percent(settings.target_recall)}), precision {precision}"
    )
    steps = [f"{benchmark.found} with a record"]
    if explained.has_search:
        steps.append(f"{benchmark.retrieved} found by the search")
    steps.append(f"{benchmark.found_and_included} included")
    yield f"studies    {benchmark.truth}: {', '.join(steps)}"
    papers = plural(benchmark.included_rows, "paper")
    yield f"included   {papers}, {benchmark.right_rows} of them studies of the review"
    if explained.rebuilt.skip:
        yield f"not done   {explained.rebuilt.skip}"


def _papers(explained: ExplainedReview) -> TableBlock:
    candidates = explained.rebuilt.candidates
    studies: dict[str, list[int]] = {}
    for match in explained.matches:
        if match.has_record:
            studies.setdefault(match.document, []).append(match.index)
    rows = [
        (
            str(candidate.rank),
            candidate.document,
            candidate.outcome if candidate.score is None else candidate.score,
            "yes" if candidate.included else None,
            joined_words(studies.get(candidate.document, ())),
            _title(explained, candidate),
        )
        for candidate in candidates[:MOST_LISTED]
    ]
    score = Numbers("score", decimals=2)
    texts = (Words("in"), Words("study"), Words("title"))
    columns = (Numbers("rank"), Words("paper"), score, *texts)
    return TableBlock(columns, rows, total=len(candidates))


def _title(explained: ExplainedReview, candidate: CandidatePaper) -> str:
    database = explained.dataset.database
    if database is not None and explained.has_search:
        paper = database.paper(int(candidate.document))
        return NONE if paper is None else paper.title
    record = explained.rebuilt.records.get(candidate.document)
    return NONE if record is None else record.title
