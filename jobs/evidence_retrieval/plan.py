"""Plans the tasks of a run, from the data and from replies to earlier stages.

Replies are parsed here, because parsers need the sizes of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from jobs.evidence_retrieval import prompts
from jobs.evidence_retrieval.data import Criterion, EvidenceDataset, Post, query_key
from jobs.evidence_retrieval.import_records import read_prediction
from jobs.evidence_retrieval.parsing import (
    Assessment,
    EndpointScores,
    Ordering,
    PostAssessment,
    PostVectors,
    parse_assess,
    parse_assessments,
    parse_rerank,
    parse_scores,
    parse_vectors,
)
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.prompts import assessed, is_batch
from jobs.evidence_retrieval.sentence_order import (
    LOCAL,
    assessed_order,
    carrying,
    depth,
    listing,
    ranked,
)
from jobs.evidence_retrieval.settings import TaskKind
from jobs.kit.chat import is_longer_than
from jobs.kit.lexical import cosines
from runner.job import Answer, Stage, Task, TaskSpec
from runner.messages import ParseFailure, Ranking, Reply, Request, TextPart, Vectors
from runner.money.tokens import text_tokens

UNKNOWN = ParseFailure(reason="unknown_query")


def read_assess(
    dataset: EvidenceDataset, task: Task, reply: Reply
) -> Assessment | PostAssessment | ParseFailure:
    """Parse a reply about a query, or about all criteria of a post."""
    try:
        post, criteria = assessed(dataset, task.key)
    except KeyError:
        return UNKNOWN
    if is_batch(dataset, task.key):
        ids = [criterion.id for criterion in criteria]
        return parse_assessments(reply, len(post.sentences), ids)
    return parse_assess(reply, len(post.sentences))


def read_rerank(
    dataset: EvidenceDataset, task: Task, reply: Reply
) -> Ordering | ParseFailure:
    """Parse the order of a window's candidates."""
    try:
        rerank_window = listing(dataset, task)
    except KeyError:
        return UNKNOWN
    return parse_rerank(reply, len(rerank_window.indices))


def read_embed(
    dataset: EvidenceDataset, task: Task, reply: Vectors
) -> PostVectors | ParseFailure:
    """Parse the vectors of all criteria and of a post's sentences."""
    try:
        post = dataset.post(task.key)
    except KeyError:
        return UNKNOWN
    return parse_vectors(
        reply, criteria=len(dataset.criteria), sentences=len(post.sentences)
    )


def read_rerank_api(
    dataset: EvidenceDataset, task: Task, reply: Ranking
) -> EndpointScores | ParseFailure:
    """Parse an endpoint's scores of a pool."""
    try:
        post, _ = dataset.query(task.key)
    except KeyError:
        return UNKNOWN
    return parse_scores(reply, len(post.sentences))


STAGES = (
    Stage(name="assess", parse=read_assess),
    Stage(name="embed", parse=read_embed, role="embed"),
    Stage(name="rerank_api", parse=read_rerank_api, role="rerank", follows=False),
    Stage(name="rerank", parse=read_rerank),
    Stage(name="given", parse=read_prediction, follows=False),
)

PARSERS = {stage.name: stage.parse for stage in STAGES}


def needed_tasks(dataset: EvidenceDataset) -> frozenset[TaskKind]:
    """Return the tasks of the settings and those that configurations need."""
    needed: set[TaskKind] = set(dataset.settings.tasks)
    for config in dataset.configs:
        needed |= _needs(config)
    if "rerank" in needed:
        if dataset.settings.first_stage == "embedding":
            needed.add("embed")
        if dataset.settings.first_stage == "assess":
            needed.add("assess")
    return frozenset(needed)


def plan(dataset: EvidenceDataset) -> Iterator[TaskSpec]:
    """Yield first-stage specs, post by post.

    A query without a possible request is planned as skipped, with its reason:
    `no_sentences`, `too_long`, or `single_sentence` if there is nothing to order.
    """
    kinds = needed_tasks(dataset)
    for post in dataset.posts:
        post_tasks = _PostTasks(dataset, post)
        if "assess" in kinds:
            yield from post_tasks.assess()
        if "embed" in kinds:
            yield post_tasks.embed()
        if "rerank_api" in kinds:
            yield from post_tasks.rerank_api()
        if "rerank" in kinds and dataset.settings.first_stage in LOCAL:
            yield from (post_tasks.rerank(criterion) for criterion in dataset.criteria)


def titles(dataset: EvidenceDataset) -> Iterator[tuple[str, str]]:
    """Yield the posts with their first sentences: posts have no titles."""
    for post in dataset.posts:
        yield post.id, post.sentences[0].text if post.sentences else ""


def post_of(dataset: EvidenceDataset, spec: TaskSpec) -> str:
    """Return the id of the post that a first-stage spec is about."""
    is_whole = spec.stage == "assess" and dataset.settings.batch == "post"
    if is_whole or spec.stage == "embed":
        return spec.key
    query = spec.key.rpartition("#")[0] if spec.stage == "rerank" else spec.key
    return dataset.query(query)[0].id


def follow_up(
    dataset: EvidenceDataset, group: tuple[Answer, ...]
) -> Iterator[TaskSpec]:
    """Yield the follow-ups of one answer.

    After an answer about a whole post, its missing criteria, once; after one that gives
    a first stage's order, the first window of a rerank; after a window, the next one.
    If the answer is unparsed, a rerank that needs it is skipped as `unparsed_parent`.
    """
    (answer,) = group
    if answer.parsed == UNKNOWN:
        return
    match answer.task.stage:
        case "assess":
            yield from _after_assess(dataset, answer)
        case "embed":
            yield from _after_embed(dataset, answer)
        case "rerank":
            yield from _after_window(dataset, answer)
        case _:
            return


class _PostTasks:
    """Specs of one post; the parts that its queries share are built once."""

    def __init__(self, dataset: EvidenceDataset, post: Post) -> None:
        self._dataset = dataset
        self._settings = dataset.settings
        self._post = post
        self._texts = prompts.texts(post)
        self._depth = depth(self._settings, len(self._texts))

    @cached_property
    def _sentences(self) -> TextPart:
        return prompts.sentences_part(self._texts)

    @cached_property
    def _window(self) -> TextPart:
        """The longest possible window: a skip must not depend on the order."""
        longest = sorted(self._texts, key=text_tokens, reverse=True)
        window = min(self._settings.rerank_window, self._depth)
        return prompts.candidates_part(longest[:window])

    def assess(self) -> Iterator[TaskSpec]:
        """Yield a task per query, or one for all of them."""
        criteria = self._dataset.criteria
        if self._settings.batch == "post":
            request = prompts.assess_post(self._dataset, self._sentences, criteria)
            yield TaskSpec(stage="assess", key=self._post.id, skip=self._skip(request))
            return
        for criterion in criteria:
            request = prompts.assess(self._dataset, self._sentences, criterion)
            yield TaskSpec(
                stage="assess", key=self._key(criterion), skip=self._skip(request)
            )

    def embed(self) -> TaskSpec:
        """Return one task for all vectors."""
        request = prompts.embed(self._dataset, self._post)
        return TaskSpec(stage="embed", key=self._post.id, skip=self._skip(request))

    def rerank_api(self) -> Iterator[TaskSpec]:
        """Yield a task per query."""
        for criterion in self._dataset.criteria:
            request = prompts.rerank_api(self._post, criterion)
            skip = self._skip(request, candidates=len(self._texts))
            yield TaskSpec(stage="rerank_api", key=self._key(criterion), skip=skip)

    def rerank(
        self,
        criterion: Criterion,
        order: Sequence[int] | None = None,
        *,
        is_unparsed: bool = False,
    ) -> TaskSpec:
        """Return the first window of a query, over *order* or a local first stage."""
        request = prompts.rerank(self._dataset, self._window, criterion)
        skip = self._skip(request, candidates=self._depth)
        if skip is None and is_unparsed:
            skip = "unparsed_parent"
        return TaskSpec(
            stage="rerank",
            key=f"{self._key(criterion)}#0",
            skip=skip,
            context=None if order is None else carrying(order),
        )

    def _key(self, criterion: Criterion) -> str:
        return query_key(self._post.id, criterion.id)

    def _skip(self, request: Request, candidates: int | None = None) -> str | None:
        """Return the reason why a request is not sent, or None."""
        settings = self._settings
        if not self._texts:
            return "no_sentences"
        if len(self._texts) > settings.max_sentences:
            return "too_long"
        if candidates == 1:
            return "single_sentence"
        return (
            "too_long" if is_longer_than(request, settings.max_prompt_tokens) else None
        )


def _needs(config: Config) -> set[TaskKind]:
    needed: set[TaskKind] = set()
    if "embedding" in config.first_stage:
        needed.add("embed")
    if "assess" in {*config.first_stage, config.rerank} or config.gate != "none":
        needed.add("assess")
    if config.rerank == "llm":
        needed.add("rerank")
    if config.rerank == "endpoint":
        needed.add("rerank_api")
    return needed


def _after_assess(dataset: EvidenceDataset, answer: Answer) -> Iterator[TaskSpec]:
    post, criteria = prompts.assessed(dataset, answer.task.key)
    rerank_follows = _starts_rerank(dataset, "assess")
    post_tasks = _PostTasks(dataset, post)
    for criterion in criteria:
        parsed = answer.parsed
        if isinstance(parsed, PostAssessment):
            parsed = parsed.criteria.get(criterion.id)
            if not isinstance(parsed, Assessment):
                # its rerank, if any, follows the answer to the single request
                key = query_key(post.id, criterion.id)
                yield TaskSpec(stage="assess", key=key)
                continue
        if not rerank_follows:
            continue
        if isinstance(parsed, Assessment):
            order = assessed_order(dataset, post, criterion, parsed.relevance)
            yield post_tasks.rerank(criterion, order)
        else:
            yield post_tasks.rerank(criterion, is_unparsed=True)


def _after_embed(dataset: EvidenceDataset, answer: Answer) -> Iterator[TaskSpec]:
    if not _starts_rerank(dataset, "embedding"):
        return
    post_tasks = _PostTasks(dataset, dataset.post(answer.task.key))
    parsed = answer.parsed
    if not isinstance(parsed, PostVectors):
        for criterion in dataset.criteria:
            yield post_tasks.rerank(criterion, is_unparsed=True)
        return
    near: Iterable[Sequence[float]] = cosines(
        parsed.criteria, parsed.sentences
    ).tolist()
    for criterion, scores in zip(dataset.criteria, near, strict=True):
        yield post_tasks.rerank(criterion, ranked(scores))


def _after_window(dataset: EvidenceDataset, answer: Answer) -> Iterator[TaskSpec]:
    rerank_window = listing(dataset, answer.task)
    if rerank_window.is_last:
        return
    query, _, _ = answer.task.key.rpartition("#")
    key = f"{query}#{rerank_window.window + 1}"
    parsed = answer.parsed
    if isinstance(parsed, Ordering):
        context = carrying(rerank_window.after(parsed))
        yield TaskSpec(stage="rerank", key=key, context=context)
    else:
        yield TaskSpec(stage="rerank", key=key, skip="unparsed_parent")


def _starts_rerank(dataset: EvidenceDataset, stage: str) -> bool:
    return dataset.settings.first_stage == stage and "rerank" in needed_tasks(dataset)
