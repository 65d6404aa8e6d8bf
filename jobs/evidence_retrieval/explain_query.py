"""Selects the queries to explain, with what the data and a run hold about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from jobs.evidence_retrieval.data import Criterion, EvidenceDataset, Post
from jobs.evidence_retrieval.parsing import Assessment, PostAssessment
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.plan import STAGES
from jobs.evidence_retrieval.predictions.outputs import Outputs, gather
from jobs.evidence_retrieval.predictions.scoring_input import scoring_input_of
from jobs.evidence_retrieval.prompts import assessed, texts
from jobs.evidence_retrieval.queries import UNKNOWN, FoldGate, Predictions, Queries
from jobs.kit.explain import ItemAnswer, closest, select, summary_fact
from jobs.kit.replies import AnswerSubset
from jobs.kit.text_format import joined_words, plural
from runner.job import Answer, Answers, QuotedPassage, Task
from store.document import NONE, Block, Fact, Heading, Quote
from store.printable import clip, one_line

FOLD_WIDTH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedQuery:
    """All that is known of a query before any model spoke."""

    index: int  #: among all queries
    key: str
    post_id: str
    criterion_id: str
    post: Post | None  #: None: an import without --sentences
    criterion: Criterion | None  #: None: an import without --criteria
    pool: int  #: UNKNOWN where nobody says
    fold: str | None
    y: int
    gold: tuple[str, ...] | None  #: uids; None: not known

    @classmethod
    def at(
        cls, dataset: EvidenceDataset, queries: Queries, index: int
    ) -> ExplainedQuery:
        """The query at a place among all."""
        post_id = queries.posts[queries.post[index]]
        criterion_id = queries.criteria[queries.criterion[index]]
        fold = int(queries.fold[index])
        matching = (
            criterion for criterion in dataset.criteria if criterion.id == criterion_id
        )
        try:
            post = dataset.post(post_id)
        except KeyError:
            post = None
        return cls(
            index=index,
            key=queries.key(index),
            post_id=post_id,
            criterion_id=criterion_id,
            post=post,
            criterion=next(matching, None),
            pool=int(queries.pool[index]),
            fold=None if fold == UNKNOWN else queries.folds[fold],
            y=int(queries.y[index]),
            gold=None if queries.gold is None else tuple(queries.gold[index]),
        )

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each sentence by its uid, as prompts count them: from 1."""
        pool = () if self.post is None else self.post.sentences
        return {sentence.uid: n for n, sentence in enumerate(pool, start=1)}

    @property
    def pool_and_fold(self) -> str:
        """The size of the pool, and the fold."""
        pool = "unknown" if self.pool == UNKNOWN else plural(self.pool, "sentence")
        fold = NONE if self.fold is None else clip(self.fold, FOLD_WIDTH)
        return f"{pool}, fold {fold}"

    @property
    def verdict_words(self) -> str | None:
        """Whether people saw evidence; None: not known."""
        if self.y == UNKNOWN:
            return None
        return "evidence" if self.y else "no evidence"

    @property
    def truth(self) -> str:
        """What people judged, in a few words."""
        if self.y == UNKNOWN:
            return "unjudged"
        if not self.y:
            return "judged, no evidence"
        if not self.gold:
            return "evidence, sentences unnamed"
        numbers = self.numbers
        sentence_names = [numbers.get(uid) or one_line(uid) for uid in self.gold]
        return (
            f"evidence in {plural(len(sentence_names), 'sentence')}: "
            f"{joined_words(sentence_names)}"
        )


def head(
    query: ExplainedQuery, title: str, answers: Iterable[ItemAnswer] = ()
) -> Iterator[Block]:
    """Shows what is known of a query before any model spoke.

    Args:
        query: whose page.
        title: of which model, or that there is none yet.
        answers: what models answer, for the summary.
    """
    yield Heading(f"{query.key}  {title}", level=1)
    yield summary_fact(query.verdict_words, answers)
    name = "" if query.criterion is None else query.criterion.name
    yield Fact("criterion", f"{query.criterion_id}  {name}", is_cut=True)
    if query.criterion is not None:
        yield Quote(query.criterion.text)
    yield f"pool       {query.pool_and_fold}"
    yield Fact("gold", query.truth, is_cut=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectedQueries:
    """One item."""

    queries: tuple[ExplainedQuery, ...]
    is_post: bool  #: a whole post was named, so its queries are told in short


def selections(
    items: Iterable[str], dataset: EvidenceDataset, queries: Queries
) -> list[SelectedQueries]:
    """Returns what each item names among *queries*, those of the data or of an import.

    Raises:
        UsageError: an item names nothing; gives the nearest names.
    """
    by_key = {queries.key(index): index for index in range(len(queries))}
    by_post: dict[str, list[int]] = {post: [] for post in queries.posts}
    for index, post in enumerate(queries.post.tolist()):
        by_post[queries.posts[post]].append(index)

    def find(item: str) -> Iterator[SelectedQueries]:
        # as in the key of a task, a name that fits both ways is a query
        indices = [by_key[item]] if item in by_key else by_post.get(item)
        if indices is not None:
            selected = (ExplainedQuery.at(dataset, queries, index) for index in indices)
            yield SelectedQueries(queries=tuple(selected), is_post=item not in by_key)

    return select(
        items,
        find,
        kinds="post and no query",
        otherwise="name a post by its id, or a query as post/criterion.",
        near=lambda item: _near(item, queries),
    )


def _near(item: str, queries: Queries) -> Iterator[str]:
    """Names like *item*: first a criterion of the post that it names, then posts."""
    post, slash, criterion = item.rpartition("/")
    if slash and post in queries.posts:
        near = closest(criterion, queries.criteria, always=True)
        yield from (f"{post}/{name}" for name in near)
        return
    post_id = post if slash else item
    for name in closest(post_id, queries.posts):
        yield f"{name}/{criterion}" if criterion in queries.criteria else name


_ROLES = {stage.name: stage.role for stage in STAGES}


class ExplainedRun:
    """A run as pages about some queries need it."""

    def __init__(self, dataset: EvidenceDataset, answers: Answers) -> None:
        self.dataset = dataset
        self.is_imported = answers.imported
        # gates are fitted on all posts, so that one query needs every answer
        self.scoring_input = scoring_input_of(dataset, answers)

    def headline(self, model: str) -> Predictions:
        """What tables speak of."""
        return next(
            predictions
            for predictions in self.scoring_input.predictions
            if (predictions.model, predictions.config)
            == (model, self.scoring_input.headline)
        )

    def gates(self, model: str, fold: str | None) -> Mapping[str, FoldGate]:
        """What was fitted and chosen for a fold, by configuration."""
        return {
            gate.config: gate
            for gate in self.scoring_input.gates
            if (gate.model, gate.fold) == (model, fold)
        }

    def configured(self, model: str) -> Sequence[tuple[Config, Predictions]]:
        """A model's predictions with their configurations, which no import has."""
        by_name = {config.name: config for config in self.dataset.configs}
        return [
            (by_name[predictions.config], predictions)
            for predictions in self.scoring_input.predictions
            if predictions.model == model
        ]


class QueryAnswers:
    """What a run's answers say of the chosen queries; read when it is first wanted."""

    def __init__(
        self,
        dataset: EvidenceDataset,
        answers: Answers,
        chosen: Iterable[SelectedQueries],
    ) -> None:
        self._dataset = dataset
        self._every = answers
        queries = [query for selection in chosen for query in selection.queries]
        self._items = {item for query in queries for item in (query.key, query.post_id)}

    @cached_property
    def _answers(self) -> AnswerSubset:
        return AnswerSubset.matching(
            self._every, lambda task: item(task) in self._items
        )

    @cached_property
    def outputs(self) -> Outputs:
        """What was read; gold plays no part."""
        return gather(replace(self._dataset, gold=None), self._answers)

    def about(self, query: ExplainedQuery, model: str) -> Iterator[Answer]:
        """What *model* said of a query, and what other roles said for all models."""
        for family in self._answers.held:
            for answer in family:
                task = answer.task
                is_shared = _ROLES[task.stage] != "subject"
                is_about = item(task) in {query.key, query.post_id}
                if is_about and (is_shared or task.model == model):
                    yield answer


def item(task: Task) -> str:
    """The post or query that a task is about."""
    return task.key.rpartition("#")[0] if task.stage == "rerank" else task.key


def quotes(dataset: EvidenceDataset, answer: Answer, /) -> Iterator[QuotedPassage]:
    """Yields the sentences that an assessment selects, each with its neighbours."""
    if answer.task.stage != "assess":
        return
    post, criteria = assessed(dataset, answer.task.key)
    sentences = texts(post)
    for criterion in criteria:
        parsed = answer.parsed
        if isinstance(parsed, PostAssessment):
            parsed = parsed.criteria.get(criterion.id)
        if not isinstance(parsed, Assessment):
            continue
        for at, relevance in parsed.relevance.items():
            yield QuotedPassage(
                quote=sentences[at],
                label=f"criterion {criterion.id}, relevance {relevance}",
                place=f"sentence {at + 1} of {len(sentences)}",
                before="".join(f"{text} " for text in sentences[max(0, at - 1) : at]),
                passage=sentences[at],
                after="".join(f" {text}" for text in sentences[at + 1 : at + 2]),
            )
