"""Explains a query: sentences, scores by stage, gate, K, gold labels, replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from jobs.evidence_retrieval import prompts
from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.explain_query import (
    ExplainedQuery,
    ExplainedRun,
    QueryAnswers,
    SelectedQueries,
    head,
    item,
    selections,
)
from jobs.evidence_retrieval.explain_stages import (
    before_any_run,
    fitting_facts,
    gate_table,
    k_facts,
    k_of,
    of_import,
    of_model,
    outcome,
    pool_of,
    selected_of,
    sentence_blocks,
    state_of,
)
from jobs.evidence_retrieval.parsing import (
    Assessment,
    EndpointScores,
    Ordering,
    PostAssessment,
    PostVectors,
)
from jobs.evidence_retrieval.plan import PARSERS, needed_tasks, plan
from jobs.evidence_retrieval.predictions.columns import queries
from jobs.evidence_retrieval.queries import UNKNOWN, Predictions
from jobs.evidence_retrieval.sentence_order import LOCAL, listing
from jobs.kit.explain import (
    ItemAnswer,
    Reading,
    failure_text,
    pages_text,
    reply_blocks,
    summary_fact,
)
from jobs.kit.metrics import assign
from jobs.kit.metrics.columns import Floats, Ints
from jobs.kit.metrics.selective import NEG, POS, STATES
from jobs.kit.text_format import joined_words, listed, plural
from runner.fingerprint import request_hash
from runner.job import Answer, Answers, Task, TaskSpec
from runner.messages import (
    ChatRequest,
    EmbedRequest,
    ParseFailure,
    Request,
    RerankRequest,
)
from runner.money.tokens import prompt_tokens
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
)

CRITERION_WIDTH = 16
CRITERIA = "criteria"


def overview(
    queries: Sequence[ExplainedQuery], predictions: Predictions | None
) -> Iterator[Block]:
    """Yield the queries of one post under the headline; None before any run."""
    first = queries[0]
    title = "before any run"
    if predictions is not None:
        title = f"{predictions.model}, {predictions.config}"
    yield Heading(f"{first.post_id}  {title}", level=1)
    yield _post_summary(queries, predictions)
    yield f"pool       {first.pool_and_fold}"
    columns: list[Column] = [Words("criterion", CRITERION_WIDTH), Words("gold")]
    rows: list[list[Cell]] = [[query.criterion_id, query.truth] for query in queries]
    if predictions is not None:
        score = "p" if predictions.prob is not None else "score"
        numbers = (Numbers("K"), Numbers("gold at"))
        columns[1:1] = (Numbers(score), Words("state"), *numbers)
        for row, query in zip(rows, queries, strict=True):
            row[1:1] = _predicted_cells(query, predictions)
    yield TableBlock(columns, rows)


def _post_summary(
    queries: Sequence[ExplainedQuery], predictions: Predictions | None
) -> Fact:
    """Return the number of criteria with evidence, and those a model has right."""
    known = [query for query in queries if query.y != UNKNOWN]
    with_evidence = sum(query.y == 1 for query in known)
    truth = (
        f"evidence for {with_evidence} of {plural(len(known), 'criterion', CRITERIA)}"
    )
    answers = []
    if predictions is not None:
        worths = [query_answer(query, predictions).is_right for query in queries]
        text = f"{worths.count(True)} right, {worths.count(False)} wrong"
        if undecided := worths.count(None):
            text += f", {undecided} undecided or unjudged"
        answers.append(ItemAnswer(model=predictions.model, text=text))
    return summary_fact(truth if known else None, answers)


def query_answer(query: ExplainedQuery, predictions: Predictions) -> ItemAnswer:
    """Return a model's answer about a query: its state, and whether it is correct."""
    state = state_of(predictions, query.index)
    is_right = None
    if query.y != UNKNOWN and state in {STATES[NEG], STATES[POS]}:
        is_right = (state == STATES[POS]) == bool(query.y)
    p = "" if predictions.prob is None else f", p {predictions.prob[query.index]:.2f}"
    return ItemAnswer(
        model=predictions.model,
        text=f"{outcome(predictions, query.index)}{p}",
        is_right=is_right,
    )


def _predicted_cells(query: ExplainedQuery, predictions: Predictions) -> list[Cell]:
    p = predictions.prob if predictions.prob is not None else predictions.score
    k = k_of(predictions, query.index)
    return [
        None if p is None else float(p[query.index]),
        outcome(predictions, query.index),
        NONE if k is None else str(k),
        _gold_ranks(query, predictions),
    ]


def _gold_ranks(query: ExplainedQuery, predictions: Predictions) -> str:
    """Return the ranks of the gold sentences in the final list."""
    lists = predictions.lists.get(predictions.final)
    gold = frozenset(query.gold or ())
    ranked_uids = () if lists is None else lists[query.index]
    return joined_words(
        rank for rank, uid in enumerate(ranked_uids, start=1) if uid in gold
    )


def prompt_blocks(dataset: EvidenceDataset, query: ExplainedQuery) -> Iterator[Block]:
    """Yield each first-stage task about the query, with the texts that are sent."""
    query_items = {query.key, query.post_id}
    for spec in plan(dataset):
        task = _task(spec)
        if item(task) in query_items:
            yield from _prompt(dataset, spec, task)
    first_stage = dataset.settings.first_stage
    if "rerank" in needed_tasks(dataset) and first_stage not in LOCAL:
        yield f"  rerank      follows what {first_stage} answers"


def _task(spec: TaskSpec) -> Task:
    """Return the first replicate of a spec, without a model."""
    return Task(
        number=0,
        stage=spec.stage,
        key=spec.key,
        model="",
        replicate=1,
        context=spec.context,
    )


def _prompt(dataset: EvidenceDataset, spec: TaskSpec, task: Task) -> Iterator[Block]:
    if spec.skip is not None:
        yield f"  {spec.stage:<10}  not sent: {spec.skip}"
        return
    request = prompts.request(dataset, task)
    tokens = plural(prompt_tokens(request), "token")
    yield f"  {spec.stage:<10}  about {tokens}, {_extent(request)}"
    if isinstance(request, ChatRequest):
        for message in request.messages:
            yield f"    {message.role}"
            yield Quote(message.text)


def _extent(request: Request) -> str:
    match request:
        case ChatRequest():
            return f"at most {plural(request.max_tokens, 'token')} for the reply"
        case EmbedRequest():
            return f"{plural(len(request.texts), 'text')}: criteria, then sentences"
        case RerankRequest():
            documents = plural(len(request.documents), "document")
            return f"the criterion's text and {documents}"


HASH_LENGTH = 16
"""Digits shown of a prompt's hash; enough to distinguish the prompts of a run."""


def answer_blocks(
    dataset: EvidenceDataset, query: ExplainedQuery, answers: Iterable[Answer]
) -> Iterator[Block]:
    """Yield the blocks of each answer: task, prompt, reply and parsed values."""
    for answer in answers:
        task = answer.task
        title = f"{task.model}, replicate {task.replicate}, task {task.number}"
        yield Fact(task.stage, title, indent=2, width=12, is_cut=True)
        if answer.skip is None:
            yield f"    prompt  {prompt_hash(dataset, task)}"
        readings = _readings(dataset, query, answer)
        yield from reply_blocks(answer, readings, width=8, skipped="skip")


def prompt_hash(dataset: EvidenceDataset, task: Task) -> str:
    """Return the hash of the request in the log, or that it cannot be built.

    The request is built with the current settings: one that was sent with others, or
    re-asked after an unreadable reply, has another hash in its log.
    """
    try:
        request = prompts.request(dataset, task)
    except KeyError:
        return "unknown: the data no longer hold the item"
    return request_hash(request, task.model)[:HASH_LENGTH]


def _readings(
    dataset: EvidenceDataset, query: ExplainedQuery, answer: Answer
) -> Iterator[Reading]:
    task = answer.task
    parsed = PARSERS[task.stage](dataset, task, answer.reply)
    yield from _value(dataset, query, task, parsed)


def _value(
    dataset: EvidenceDataset, query: ExplainedQuery, task: Task, parsed: object
) -> Iterator[Reading]:
    match parsed:
        case ParseFailure():
            yield "failed", failure_text(parsed)
        case Assessment():
            yield from _assessment(parsed)
        case PostAssessment():
            yield from _noted(parsed.noted)
            assessment = parsed.criteria.get(query.criterion_id)
            if assessment is None:
                yield "read", "nothing about this criterion, which is sent separately"
            else:
                yield from _value(dataset, query, task, assessment)
        case Ordering():
            rerank_window = listing(dataset, task)
            order = (rerank_window.indices[index] + 1 for index in parsed.indices)
            window = f"window {rerank_window.window + 1} of {len(rerank_window.spans)}"
            yield "read", f"{window}, best first: {joined_words(order)}"
            yield from _noted(parsed.noted)
        case PostVectors():
            n = len(parsed.criteria) + len(parsed.sentences)
            length = parsed.criteria.shape[1]
            yield "read", f"{plural(n, 'vector')} of {plural(length, 'number')}"
        case EndpointScores():
            scored_n = sum(score is not None for score in parsed.scores)
            pool = plural(len(parsed.scores), "sentence")
            yield "read", f"{plural(scored_n, 'score')} for {pool}"
            yield from _noted(parsed.noted)
        case _:
            raise AssertionError(parsed)


def _assessment(read: Assessment) -> Iterator[Reading]:
    rated_sentences = [
        f"{index + 1} ({rated})" for index, rated in read.relevance.items()
    ]
    sentences = ", ".join(rated_sentences) or "none"
    yield "read", f"probability {read.probability:g}, relevant sentences {sentences}"
    yield from _noted(read.noted)


def _noted(noted: Mapping[str, int]) -> Iterator[Reading]:
    if noted:
        yield "noted", ", ".join(f"{name} {n}" for name, n in noted.items())


NAME_WIDTH = 30


def stated_table(predictions: Predictions, index: int) -> TableBlock:
    """Return the numbers of the files, then the state by file and by thresholds."""
    numbers = {name: value for name, value in _numbers(predictions, index) if value}
    numbers |= {"state": state_of(predictions, index)}
    numbers |= {"state by p and taus": _recomputed(predictions, index)}
    columns = [Words("the files say", NAME_WIDTH), Words("")]
    return TableBlock(columns, list(numbers.items()))


def _numbers(predictions: Predictions, index: int) -> Iterator[tuple[str, str]]:
    yield "p raw", _float(predictions.prob_raw, index)
    yield "p", _float(predictions.prob, index)
    yield "score", _float(predictions.score, index)
    yield "tau_neg", _float(predictions.tau_neg, index)
    yield "tau_pos", _float(predictions.tau_pos, index)
    yield "K", _int(predictions.k, index)
    for gamma, k in predictions.sweep.items():
        yield f"K at gamma {gamma:g}", _int(k, index)
    for name, values in predictions.stated_values.items():
        yield name, _float(values, index)


def _float(column: Floats | None, index: int) -> str:
    """Format a number as in a file; "" if there is none."""
    value = np.nan if column is None else float(column[index])
    return "" if np.isnan(value) else f"{value:.12g}"


def _int(column: Ints | None, index: int) -> str:
    value = UNKNOWN if column is None else int(column[index])
    return "" if value == UNKNOWN else str(value)


def _recomputed(predictions: Predictions, index: int) -> str:
    columns = (predictions.prob, predictions.tau_neg, predictions.tau_pos)
    values = [np.nan if column is None else float(column[index]) for column in columns]
    if np.isnan(values).any():
        return "not known: p or a threshold is missing"
    p, low, high = values
    below, at = (
        STATES[assign(np.array([p]), low, high, edge=edge)[0]] for edge in ("lt", "le")
    )
    return below if below == at else f"{below}; {at} if p = tau_neg counts as NEG"


def explain(
    dataset: EvidenceDataset, answers: Answers | None, items: tuple[str, ...]
) -> str:
    """Explain queries, or posts with a summary of all their queries.

    Args:
        dataset: the inputs.
        answers: answers of a run; None before any run.
        items: ids of posts, and queries as `post/criterion`.

    Raises:
        UsageError: an item is not in the data or the run.
    """
    if answers is None:
        chosen = selections(items, dataset, queries(dataset))
        pages = [_before(dataset, selection) for selection in chosen]
    else:
        run = ExplainedRun(dataset, answers)
        chosen = selections(items, dataset, run.scoring_input.queries)
        query_answers = QueryAnswers(dataset, answers, chosen)
        pages = [
            _after(run, query_answers, model, selection)
            for selection in chosen
            for model in run.scoring_input.models
        ]
    return pages_text(pages)


def _before(dataset: EvidenceDataset, selection: SelectedQueries) -> Iterator[Block]:
    if selection.is_post:
        yield from overview(selection.queries, None)
        return
    (query,) = selection.queries
    yield from head(query, "before any run")
    yield Heading("sentences")
    stages = before_any_run(dataset, query)
    yield from sentence_blocks(query, pool_of(query), stages, None)
    yield Heading("prompts")
    yield from prompt_blocks(dataset, query)


def _after(
    run: ExplainedRun,
    query_answers: QueryAnswers,
    model: str,
    selection: SelectedQueries,
) -> Iterator[Block]:
    headline = run.headline(model)
    if selection.is_post:
        yield from overview(selection.queries, headline)
        return
    (query,) = selection.queries
    yield from head(query, model, [query_answer(query, headline)])
    yield f"status     {headline.status[query.index]}"
    if run.is_imported:
        yield from _stated(query, headline)
    else:
        yield from _predicted(run, query_answers, query, headline)


def _stated(query: ExplainedQuery, predictions: Predictions) -> Iterator[Block]:
    """Yield the lists and the numbers of an import."""
    index = query.index
    # the final list is the last one, and orders the sentences if there is no post
    lists = [ranked[index] for ranked in predictions.lists.values()]
    uids = pool_of(query, reversed(lists))
    yield Heading("sentences")
    stages = of_import(predictions, index, uids)
    yield from sentence_blocks(query, uids, stages, selected_of(predictions, index))
    yield Heading("numbers")
    yield stated_table(predictions, index)


def _predicted(
    run: ExplainedRun,
    query_answers: QueryAnswers,
    query: ExplainedQuery,
    headline: Predictions,
) -> Iterator[Block]:
    dataset, model = run.dataset, headline.model
    configured = run.configured(model)
    last, _ = configured[-1]
    stages = of_model(dataset, query, query_answers.outputs, last, headline)
    selected_uids = selected_of(headline, query.index)
    yield Heading("sentences")
    yield from sentence_blocks(query, pool_of(query), stages, selected_uids)
    yield Heading("gate")
    yield gate_table(configured, query)
    gates = run.gates(model, query.fold)
    yield from fitting_facts(dataset, gates)
    yield Heading("shown")
    yield from k_facts(configured, query, dataset.settings, gates)
    yield Heading("replies")
    answers = tuple(query_answers.about(query, model))
    yield from answer_blocks(dataset, query, answers)
    if not answers:
        yield "  nothing was asked"


def describe(dataset: EvidenceDataset, /) -> Iterator[str]:
    """Yield the criteria that posts are read for."""
    if dataset.criteria:
        criteria = [f"{read.id}: {read.text}" for read in dataset.criteria]
        posts = plural(len(dataset.posts), "post")
        yield f"{posts}, read for these criteria: {listed(criteria)}"
