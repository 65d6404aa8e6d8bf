"""Explains a query: sentences, scores by stage, gate, K, gold, replies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

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
    fitting_lines,
    gate_lines,
    k_lines,
    k_of,
    of_import,
    of_model,
    outcome,
    pool_of,
    selected_of,
    sentence_lines,
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
from jobs.kit.metrics import assign
from jobs.kit.metrics.columns import Floats, Ints
from jobs.kit.metrics.selective import STATES
from jobs.kit.text_format import (
    TextColumn,
    hanging_lines,
    joined_words,
    plural,
    quoted_lines,
    text_table,
)
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
from store.document import NONE, WIDTH, number
from store.printable import clip, cut, one_line

CRITERION_WIDTH = 16


def overview_lines(
    queries: Sequence[ExplainedQuery], predictions: Predictions | None
) -> Iterator[str]:
    """The queries of one post under the headline; None before any run."""
    first = queries[0]
    title = "before any run"
    if predictions is not None:
        title = f"{one_line(predictions.model)}, {one_line(predictions.config)}"
    yield cut(f"{one_line(first.post_id)}  {title}", WIDTH)
    yield f"pool       {first.pool_and_fold}"
    columns = [
        TextColumn(
            title="criterion",
            cells=[clip(query.criterion_id, CRITERION_WIDTH) for query in queries],
            has_words=True,
        )
    ]
    if predictions is not None:
        columns += _columns(queries, predictions)
    truths = [query.truth for query in queries]
    columns.append(TextColumn(title="gold", cells=truths, has_words=True))
    yield from text_table(columns)


def _columns(
    queries: Sequence[ExplainedQuery], predictions: Predictions
) -> Iterator[TextColumn]:
    indices = [query.index for query in queries]
    p = predictions.prob if predictions.prob is not None else predictions.score
    title = "p" if predictions.prob is not None else "score"
    values = [None if p is None else float(p[index]) for index in indices]
    yield TextColumn(title=title, cells=[number(value) for value in values])
    states = [outcome(predictions, index) for index in indices]
    yield TextColumn(title="state", cells=states, has_words=True)
    ks = (k_of(predictions, index) for index in indices)
    yield TextColumn(title="K", cells=[NONE if k is None else str(k) for k in ks])
    cells = [_gold_ranks(query, predictions) for query in queries]
    yield TextColumn(title="gold at", cells=cells)


def _gold_ranks(query: ExplainedQuery, predictions: Predictions) -> str:
    """The places of the gold in the list that a reader sees the beginning of."""
    lists = predictions.lists.get(predictions.final)
    gold = frozenset(query.gold or ())
    ranked_uids = () if lists is None else lists[query.index]
    return joined_words(
        rank for rank, uid in enumerate(ranked_uids, start=1) if uid in gold
    )


def prompt_lines(dataset: EvidenceDataset, query: ExplainedQuery) -> Iterator[str]:
    """Each first-stage task about the query, with the texts that are sent."""
    query_items = {query.key, query.post_id}
    for spec in plan(dataset):
        task = _task(spec)
        if item(task) in query_items:
            yield from _lines(dataset, spec, task)
    first_stage = dataset.settings.first_stage
    if "rerank" in needed_tasks(dataset) and first_stage not in LOCAL:
        yield f"  rerank      follows what {first_stage} answers"


def _task(spec: TaskSpec) -> Task:
    """The first replicate of a spec, of no model in particular."""
    return Task(
        number=0,
        stage=spec.stage,
        key=spec.key,
        model="",
        replicate=1,
        context=spec.context,
    )


def _lines(dataset: EvidenceDataset, spec: TaskSpec, task: Task) -> Iterator[str]:
    if spec.skip is not None:
        yield f"  {spec.stage:<10}  not asked: {spec.skip}"
        return
    request = prompts.request(dataset, task)
    tokens = plural(prompt_tokens(request), "token")
    yield f"  {spec.stage:<10}  about {tokens}, {_extent(request)}"
    if isinstance(request, ChatRequest):
        for message in request.messages:
            yield f"    {message.role}"
            yield from quoted_lines(message.text)


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
"""Digits that are shown of a prompt's hash; enough to tell the prompts of a run."""

Line: TypeAlias = tuple[str, str]
"""A label and what it is of."""


def reply_lines(
    dataset: EvidenceDataset, query: ExplainedQuery, answers: Iterable[Answer]
) -> Iterator[str]:
    """Each answer: its task and prompt, the reply, and what was made of it."""
    for answer in answers:
        task = answer.task
        yield cut(
            f"  {task.stage:<10}  {one_line(task.model)}, replicate {task.replicate}, "
            f"task {task.number}",
            WIDTH,
        )
        if answer.skip is None:
            yield f"    prompt  {prompt_hash(dataset, task)}"
        if answer.chat is not None:
            yield from quoted_lines(answer.chat.text)
            if answer.chat.finish_reason != "stop":
                yield f"    ended   {one_line(answer.chat.finish_reason)}"
        for label, line in _reading(dataset, query, answer):
            yield from hanging_lines(f"    {label:<6}  ", line)


def prompt_hash(dataset: EvidenceDataset, task: Task) -> str:
    """The hash under which the log has the request, or that it cannot be built.

    It is that of the request as these settings make it: a run that was sent with other
    ones, or asked again after an unreadable reply, has another hash in its log.
    """
    try:
        request = prompts.request(dataset, task)
    except KeyError:
        return "unknown: the data no longer hold the item"
    return request_hash(request, task.model)[:HASH_LENGTH]


def _reading(
    dataset: EvidenceDataset, query: ExplainedQuery, answer: Answer
) -> Iterator[Line]:
    """What was read, what had to be mended for that, or what went wrong."""
    if answer.skip is not None:
        yield "skip", one_line(answer.skip)
    elif answer.error is not None:
        yield "error", one_line(answer.error)
    elif answer.reply is None:
        yield "open", "not answered yet"
    else:
        task = answer.task
        parsed = PARSERS[task.stage](dataset, task, answer.reply)
        yield from _value(dataset, query, task, parsed)


def _value(
    dataset: EvidenceDataset, query: ExplainedQuery, task: Task, parsed: object
) -> Iterator[Line]:
    match parsed:
        case ParseFailure(reason=reason, detail=detail):
            yield "failed", reason + (f": {one_line(detail)}" if detail else "")
        case Assessment():
            yield from _assessment(parsed)
        case PostAssessment():
            yield from _noted(parsed.noted)
            assessment = parsed.criteria.get(query.criterion_id)
            if assessment is None:
                yield "read", "nothing of this criterion, which is asked alone"
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


def _assessment(read: Assessment) -> Iterator[Line]:
    rated_sentences = [
        f"{index + 1} ({rated})" for index, rated in read.relevance.items()
    ]
    sentences = ", ".join(rated_sentences) or "none"
    yield "read", f"probability {read.probability:g}, relevant sentences {sentences}"
    yield from _noted(read.noted)


def _noted(noted: Mapping[str, int]) -> Iterator[Line]:
    if noted:
        yield "noted", ", ".join(f"{name} {n}" for name, n in noted.items())


NAME_WIDTH = 30


def stated_lines(predictions: Predictions, index: int) -> Iterator[str]:
    """Every number that the files give, then the state by file and by thresholds."""
    numbers = {name: value for name, value in _numbers(predictions, index) if value}
    numbers |= {"state": state_of(predictions, index)}
    numbers |= {"state by p and taus": _recomputed(predictions, index)}
    titles = [clip(name, NAME_WIDTH) for name in numbers]
    yield from text_table(
        [
            TextColumn(title="the files say", cells=titles, has_words=True),
            TextColumn(title="", cells=list(numbers.values()), has_words=True),
        ]
    )


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
    """A number as it stands in a file; empty where there is none."""
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
    """Explain queries, or posts with all their queries in short.

    Args:
        dataset: the inputs.
        answers: those of a run; None before any.
        items: ids of posts, and queries as `post/criterion`.

    Raises:
        UsageError: an item names nothing in the data or the run.
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
    return "\n\n".join("\n".join(page) for page in pages) + "\n"


def _before(dataset: EvidenceDataset, selection: SelectedQueries) -> Iterator[str]:
    if selection.is_post:
        yield from overview_lines(selection.queries, None)
        return
    (query,) = selection.queries
    yield from head(query, "before any run")
    yield from _part("sentences")
    stages = before_any_run(dataset, query)
    yield from sentence_lines(query, pool_of(query), stages, None)
    yield from _part("prompts")
    yield from prompt_lines(dataset, query)


def _after(
    run: ExplainedRun,
    query_answers: QueryAnswers,
    model: str,
    selection: SelectedQueries,
) -> Iterator[str]:
    headline = run.headline(model)
    if selection.is_post:
        yield from overview_lines(selection.queries, headline)
        return
    (query,) = selection.queries
    yield from head(query, model)
    yield f"status     {headline.status[query.index]}"
    if run.is_imported:
        yield from _stated(query, headline)
    else:
        yield from _predicted(run, query_answers, query, headline)


def _stated(query: ExplainedQuery, predictions: Predictions) -> Iterator[str]:
    """Of work made elsewhere: its lists and its numbers."""
    index = query.index
    # the final list is the last one, and its order that of sentences without a post
    lists = [ranked[index] for ranked in predictions.lists.values()]
    uids = pool_of(query, reversed(lists))
    yield from _part("sentences")
    stages = of_import(predictions, index, uids)
    yield from sentence_lines(query, uids, stages, selected_of(predictions, index))
    yield from _part("numbers")
    yield from stated_lines(predictions, index)


def _predicted(
    run: ExplainedRun,
    query_answers: QueryAnswers,
    query: ExplainedQuery,
    headline: Predictions,
) -> Iterator[str]:
    dataset, model = run.dataset, headline.model
    configured = run.configured(model)
    last, _ = configured[-1]
    stages = of_model(dataset, query, query_answers.outputs, last, headline)
    selected_uids = selected_of(headline, query.index)
    yield from _part("sentences")
    yield from sentence_lines(query, pool_of(query), stages, selected_uids)
    yield from _part("gate")
    yield from gate_lines(configured, query)
    gates = run.gates(model, query.fold)
    yield from fitting_lines(dataset, gates)
    yield from _part("shown")
    yield from k_lines(configured, query, dataset.settings, gates)
    yield from _part("replies")
    answers = tuple(query_answers.about(query, model))
    yield from reply_lines(dataset, query, answers)
    if not answers:
        yield "  nothing was asked"


def _part(title: str) -> Iterator[str]:
    yield ""
    yield title
