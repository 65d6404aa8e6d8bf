"""Reads the sentence bench, and checks the questions' sentences against it.

It holds the sentences that annotations were made of. They are shown to people and
never to a model: the multiple-choice questions are these sentences with a gap.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from jobs.noticed import Noticed
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.dataset import Dataset, Question
from jobs.paper_investigation.rows import read_rows
from jobs.paper_investigation.settings import Settings


def read_sentences(
    path: Path, settings: Settings, noticed: Noticed
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Sentences by (pmcid, normalised variant); lines of one pair are joined."""
    sentences: dict[tuple[str, str], tuple[str, ...]] = {}
    for row in read_rows(path, settings.encoding_errors, noticed):
        variant = naming.normalize(row.required("variant"), settings.variant_case)
        key = row.required("pmcid"), variant
        sentences[key] = sentences.get(key, ()) + row.texts("sentences")
    return sentences


def sourced(questions: Iterable[Question]) -> Iterator[tuple[Question, str]]:
    """The questions whose sentence an annotator wrote, with that sentence.

    A `modified_*` question changes a fact on purpose, so its sentence proves nothing.
    """
    for question in questions:
        text = question.original_sentence if question.is_mcq else question.sentence
        if text and not question.question_type.startswith("modified_"):
            yield question, text


def sentences_of(dataset: Dataset, question: Question) -> tuple[str, ...]:
    """The bench's sentences for a question: its field as it stands, then its parts.

    The bench has a line a single variant, while a field often joins several.
    """
    case = dataset.settings.variant_case
    names = (
        naming.normalize(question.variant, case),
        *naming.parts(question.variant, case),
    )
    found = (dataset.sentences.get((question.pmcid, name), ()) for name in names)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(found)))


def unsourced(dataset: Dataset) -> Iterator[Question]:
    """The questions whose sentence is not among those of their paper and variant."""
    everything = itertools.chain.from_iterable(dataset.questions.values())
    for question, text in sourced(everything):
        if text not in sentences_of(dataset, question):
            yield question
