"""Selects the queries to explain, with their data and answers."""

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
    """A query and its data, without any answers."""

    index: int  #: among all queries
    key: str
    post_id: str
    criterion_id: str
    post: Post | None  #: None: an import without --sentences
    criterion: Criterion | None  #: None: an import without --criteria
    pool: int  #: UNKNOWN if not stated
    fold: str | None
    y: int
    gold: tuple[str, ...] | None  #: uids; None: not known

    @classmethod
    def at(
        cls, dataset: EvidenceDataset, queries: Queries, index: int
    ) -> ExplainedQuery:
        """Return the query at an index among all."""
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
        """Number of each sentence, from 1 as in prompts, by uid."""
        pool = () if self.post is None else self.post.sentences
        return {sentence.uid: n for n, sentence in enumerate(pool, start=1)}

    @property
    def pool_and_fold(self) -> str:
        """Size of the pool, and the fold."""
        pool = "unknown" if self.pool == UNKNOWN else plural(self.pool, "sentence")
        fold = NONE if self.fold is None else clip(self.fold, FOLD_WIDTH)
        return f"{pool}, fold {fold}"

    @property
    def verdict_words(self) -> str | None:
        """Label in words; None: unknown."""
        if self.y == UNKNOWN:
            return None
        return "evidence" if self.y else "no evidence"

    @property
    def truth(self) -> str:
        """Gold label in a few words."""
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
    """Yield the description of a query, without any answers.

    Args:
        query: the query.
        title: the model, or a note that there is none yet.
        answers: answers of models, for the summary.
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
    """Queries that one item selects."""

    queries: tuple[ExplainedQuery, ...]
    is_post: bool  #: a whole post is selected, so its queries are summarised


def selections(
    items: Iterable[str], dataset: EvidenceDataset, queries: Queries
) -> list[SelectedQueries]:
    """Return the queries that each item selects among *queries*.

    Raises:
        UsageError: an item matches nothing; the message has similar names.
    """
    by_key = {queries.key(index): index for index in range(len(queries))}
    by_post: dict[str, list[int]] = {post: [] for post in queries.posts}
    for index, post in enumerate(queries.post.tolist()):
        by_post[queries.posts[post]].append(index)

    def find(item: str) -> Iterator[SelectedQueries]:
        # as in task keys, an ambiguous name is a query
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
    """Yield names like *item*: criteria of the post that it names, else posts."""
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
    """A run, with the parts that pages about queries need."""

    def __init__(self, dataset: EvidenceDataset, answers: Answers) -> None:
        self.dataset = dataset
        self.is_imported = answers.imported
        # gates are fitted to all posts, so one query needs every answer
        self.scoring_input = scoring_input_of(dataset, answers)

    def headline(self, model: str) -> Predictions:
        """Return the predictions of the headline configuration."""
        return next(
            predictions
            for predictions in self.scoring_input.predictions
            if (predictions.model, predictions.config)
            == (model, self.scoring_input.headline)
        )

    def gates(self, model: str, fold: str | None) -> Mapping[str, FoldGate]:
        """Return the fitted gates of a fold, by configuration."""
        return {
            gate.config: gate
            for gate in self.scoring_input.gates
            if (gate.model, gate.fold) == (model, fold)
        }

    def configured(self, model: str) -> Sequence[tuple[Config, Predictions]]:
        """Return a model's predictions with their configurations; empty for imports."""
        by_name = {config.name: config for config in self.dataset.configs}
        return [
            (by_name[predictions.config], predictions)
            for predictions in self.scoring_input.predictions
            if predictions.model == model
        ]


class QueryAnswers:
    """Answers about the selected queries; read on first use."""

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
        """Parsed outputs, computed without gold labels."""
        return gather(replace(self._dataset, gold=None), self._answers)

    def about(self, query: ExplainedQuery, model: str) -> Iterator[Answer]:
        """Yield the answers of *model* about a query, and those of other roles."""
        for family in self._answers.held:
            for answer in family:
                task = answer.task
                is_shared = _ROLES[task.stage] != "subject"
                is_about = item(task) in {query.key, query.post_id}
                if is_about and (is_shared or task.model == model):
                    yield answer


def item(task: Task) -> str:
    """Return the post or query that a task is about."""
    return task.key.rpartition("#")[0] if task.stage == "rerank" else task.key


def quotes(dataset: EvidenceDataset, answer: Answer, /) -> Iterator[QuotedPassage]:
    """Yield the sentences that an assessment selects, each with its neighbours."""
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
