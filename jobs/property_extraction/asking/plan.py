"""What is asked: every paper, its missing quotes, or every pair of names.

Pure and lazy; values of the truth are never looked at. The plan of a run is derived
again from data and stored replies whenever it is resumed or scored, so the same inputs
must yield the same specs in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobs.chat import is_longer_than
from jobs.property_extraction.answered import Extraction
from jobs.property_extraction.asking import request as asking
from jobs.property_extraction.asking.keys import paper_of, piece_key
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.parsing import rows
from runner.job import Answer, TaskSpec
from runner.messages import ChatRequest


def wanted(dataset: Dataset) -> frozenset[str]:
    """The stages that the settings ask for."""
    if dataset.settings.mode == "verify":
        return frozenset({"verify"})
    return frozenset(
        {"extract", "requote"} if dataset.settings.requote else {"extract"}
    )


def plan(dataset: Dataset) -> Iterator[TaskSpec]:
    """Papers by refno, or questions in the order of the candidates.

    What cannot or need not be asked is planned as skipped, with its reason: `no_text`,
    `empty_text`, `too_long`, `auto_verified`, `already_verified`.
    """
    if dataset.settings.mode == "verify":
        yield from _questions(dataset)
    elif dataset.settings.papers is not None:
        for refno in sorted({*dataset.papers, *dataset.truth_by_paper}):
            yield from _paper(dataset, refno)


def follow_up(dataset: Dataset, group: tuple[Answer, ...]) -> Iterator[TaskSpec]:
    """One more request about a paper where quotes of it are missing or not in it."""
    refno, _ = paper_of(group[0].task.key)
    extractions = [
        answer.parsed for answer in group if isinstance(answer.parsed, Extraction)
    ]
    if not dataset.settings.requote or refno not in dataset.papers:
        return
    paper = dataset.papers.paper(refno)
    asked = rows.ungrounded(paper, list(rows.mentions(extractions)))
    if asked:
        yield TaskSpec(
            stage="requote",
            key=refno,
            skip=_too_long(dataset, asking.requote(dataset, paper.text, asked)),
            context=asking.carrying(asked),
        )


def _paper(dataset: Dataset, refno: str) -> Iterator[TaskSpec]:
    """A task for each piece of a paper."""
    group = refno if dataset.settings.requote else None
    if refno not in dataset.papers:
        yield TaskSpec(stage="extract", key=refno, skip="no_text")
        return
    text = dataset.papers.text(refno)
    if not text.strip():
        yield TaskSpec(stage="extract", key=refno, skip="empty_text")
        return
    found = asking.pieces_of(dataset, refno)
    for number, piece in enumerate(found, start=1):
        request = asking.extract(dataset, text[piece.start : piece.end])
        yield TaskSpec(
            stage="extract",
            key=piece_key(refno, number if len(found) > 1 else None),
            skip=_too_long(dataset, request),
            group=group,
        )


def _questions(dataset: Dataset) -> Iterator[TaskSpec]:
    for question in dataset.questions.values():
        skip = question.skip
        if skip is None:
            skip = _too_long(dataset, asking.verify(dataset, question))
        yield TaskSpec(stage="verify", key=question.key, skip=skip)


def _too_long(dataset: Dataset, request: ChatRequest) -> str | None:
    is_long = is_longer_than(request, dataset.settings.max_prompt_tokens)
    return "too_long" if is_long else None
