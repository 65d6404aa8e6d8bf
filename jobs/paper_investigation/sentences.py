"""Reads the sentence bench, and checks the questions' sentences against it.

It holds the sentences that annotations were made of. They are shown to people and
never to a model: the multiple-choice questions are these sentences with a gap.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from jobs.paper_investigation.dataset import Question
from jobs.paper_investigation.noticed import Noticed
from jobs.paper_investigation.rows import Encoding, read_rows


def read_sentences(
    path: Path, encoding: Encoding, noticed: Noticed
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Sentences by (pmcid, variant as it stands); lines of one pair are joined."""
    sentences: dict[tuple[str, str], tuple[str, ...]] = {}
    for row in read_rows(path, encoding, noticed):
        key = row.required("pmcid"), row.required("variant")
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


def sentences_of(
    question: Question, sentences: Mapping[tuple[str, str], tuple[str, ...]]
) -> tuple[str, ...]:
    """The bench's sentences for a question: its field as it stands, then its parts.

    The bench has a line a single variant, while a field often joins several.
    """
    names = [question.variant, *(part.strip() for part in question.variant.split(","))]
    found = (sentences.get((question.pmcid, name), ()) for name in names)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(found)))


def unsourced(
    questions: Iterable[Question],
    sentences: Mapping[tuple[str, str], tuple[str, ...]],
) -> Iterator[Question]:
    """The questions whose sentence is not among those of their paper and variant."""
    for question, text in sourced(questions):
        if text not in sentences_of(question, sentences):
            yield question
