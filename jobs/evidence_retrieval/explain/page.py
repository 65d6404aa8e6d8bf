"""The pages: one a query and model, or one a post and model in short."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.explain.decisions import (
    fitting_lines,
    gate_lines,
    k_lines,
)
from jobs.evidence_retrieval.explain.overview import overview_lines
from jobs.evidence_retrieval.explain.prompts import prompt_lines
from jobs.evidence_retrieval.explain.query import Query, head
from jobs.evidence_retrieval.explain.replies import reply_lines
from jobs.evidence_retrieval.explain.run import Run, Told
from jobs.evidence_retrieval.explain.selection import Selection, selections
from jobs.evidence_retrieval.explain.sentences import (
    before_any_run,
    given,
    of_model,
    pool_of,
    sentence_lines,
    shown_of,
)
from jobs.evidence_retrieval.explain.stated import stated_lines
from jobs.evidence_retrieval.predicting.questions import queries
from jobs.evidence_retrieval.queries import Predictions
from runner.job import Answers


def explain(dataset: Dataset, answers: Answers | None, items: tuple[str, ...]) -> str:
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
        run = Run(dataset, answers)
        chosen = selections(items, dataset, run.sheet.queries)
        told = Told(dataset, answers, chosen)
        pages = [
            _after(run, told, model, selection)
            for selection in chosen
            for model in run.sheet.models
        ]
    return "\n\n".join("\n".join(page) for page in pages) + "\n"


def _before(dataset: Dataset, selection: Selection) -> Iterator[str]:
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


def _after(run: Run, told: Told, model: str, selection: Selection) -> Iterator[str]:
    headline = run.headline(model)
    if selection.is_post:
        yield from overview_lines(selection.queries, headline)
        return
    (query,) = selection.queries
    yield from head(query, model)
    yield f"status     {headline.status[query.place]}"
    if run.is_imported:
        yield from _stated(query, headline)
    else:
        yield from _predicted(run, told, query, headline)


def _stated(query: Query, predictions: Predictions) -> Iterator[str]:
    """Of work made elsewhere: its lists and its numbers."""
    place = query.place
    # the final list is the last one, and its order that of sentences without a post
    lists = [own[place] for own in predictions.lists.values()]
    uids = pool_of(query, reversed(lists))
    yield from _part("sentences")
    stages = given(predictions, place, uids)
    yield from sentence_lines(query, uids, stages, shown_of(predictions, place))
    yield from _part("numbers")
    yield from stated_lines(predictions, place)


def _predicted(
    run: Run, told: Told, query: Query, headline: Predictions
) -> Iterator[str]:
    dataset, model = run.dataset, headline.model
    configured = run.configured(model)
    last, _ = configured[-1]
    stages = of_model(dataset, query, told.outputs, last, headline)
    shown = shown_of(headline, query.place)
    yield from _part("sentences")
    yield from sentence_lines(query, pool_of(query), stages, shown)
    yield from _part("gate")
    yield from gate_lines(configured, query)
    gates = run.gates(model, query.fold)
    yield from fitting_lines(dataset, gates)
    yield from _part("shown")
    yield from k_lines(configured, query, dataset.settings, gates)
    yield from _part("replies")
    answers = tuple(told.about(query, model))
    yield from reply_lines(dataset, query, answers)
    if not answers:
        yield "  nothing was asked"


def _part(title: str) -> Iterator[str]:
    yield ""
    yield title
