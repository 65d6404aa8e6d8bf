"""What is asked: the first stage from the data, the later ones from what was recalled.

Pure and lazy. The plan of a run is derived again from data and stored replies whenever
it is resumed or scored, so the same inputs must yield the same specs in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from jobs.paper_investigation import linking
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.dataset import Dataset, Question
from jobs.paper_investigation.parsing import VariantList
from jobs.paper_investigation.request import batch_context, paper_of
from jobs.paper_investigation.settings import Settings
from runner.job import Answer, TaskSpec

CHARS_PER_TOKEN = 4
"""The usual rule of thumb for English; the extraction of section 4.3 counts so too."""


def plan(dataset: Dataset) -> Iterator[TaskSpec]:
    """First-stage specs: one extraction a paper, or, in mode questions, each question.

    A paper that cannot be asked about is planned as skipped, with its reason.
    """
    if dataset.settings.mode != "questions":
        for paper in dataset.bench:
            yield TaskSpec(
                stage="extract", key=paper.pmcid, skip=_skip(dataset, paper.pmcid)
            )
        return
    for pmcid in _question_papers(dataset):
        links = _by_field(dataset.questions[pmcid], dataset.settings)
        skip = _skip(dataset, pmcid)
        yield from _asking(
            dataset.settings, pmcid, dataset.questions[pmcid], links, skip
        )


def follow_up(dataset: Dataset, group: tuple[Answer, ...]) -> Iterator[TaskSpec]:
    """The questions about what an extraction recalled; nothing where it failed."""
    (answer,) = group
    settings = dataset.settings
    if settings.mode != "investigate" or not isinstance(answer.parsed, VariantList):
        return
    pmcid = paper_of(answer.task.key)
    predicted = naming.distinct(answer.parsed.entries, settings.variant_case)
    wanted = linking.recalled(dataset, pmcid, predicted)
    if settings.ask == "all":
        # recalled variants first: their batches are those of a run without `all`
        wanted += tuple(v for v in linking.truth(dataset, pmcid) if v not in predicted)
    links = linking.linked(dataset, pmcid, wanted)
    yield from _asking(settings, pmcid, linking.asked(dataset, pmcid, wanted), links)


def _asking(
    settings: Settings,
    pmcid: str,
    questions: Iterable[Question],
    links: Mapping[str, tuple[Question, ...]],
    skip: str | None = None,
) -> Iterator[TaskSpec]:
    """One spec a question, or one a batch of the same questions."""
    if settings.batch_questions:
        for batch in linking.batches(links, settings.batch_size):
            yield TaskSpec(
                stage="batch",
                key=f"{pmcid}/b/{batch[0].key}",
                skip=skip,
                context=batch_context(batch),
            )
        return
    for question in questions:
        yield TaskSpec(stage="question", key=f"{pmcid}/{question.key}", skip=skip)


def _question_papers(dataset: Dataset) -> Iterator[str]:
    """Papers with questions: bench order first, then that of the question files."""
    named = [p.pmcid for p in dataset.bench if p.pmcid in dataset.questions]
    yield from named
    seen = set(named)
    yield from (pmcid for pmcid in dataset.questions if pmcid not in seen)


def _by_field(
    questions: Iterable[Question], settings: Settings
) -> dict[str, tuple[Question, ...]]:
    """Each question under the first variant it names: all of them, uncapped."""
    groups: dict[str, list[Question]] = {}
    for question in questions:
        names = linking.members(question, settings)
        groups.setdefault(names[0] if names else "", []).append(question)
    return {variant: tuple(group) for variant, group in groups.items()}


def _skip(dataset: Dataset, pmcid: str) -> str | None:
    """Why a paper cannot be asked about; None where it can."""
    settings = dataset.settings
    if pmcid not in dataset.papers:
        is_asked_anyway = settings.mode == "questions" and settings.closed_book
        return None if is_asked_anyway else "no_paper_text"
    if settings.context_tokens and not settings.max_chars:
        tokens = len(dataset.papers.text(pmcid)) / CHARS_PER_TOKEN
        if tokens + settings.max_tokens_extract > settings.context_tokens:
            return "paper_too_long"
    return None
