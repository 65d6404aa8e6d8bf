"""Declares the labels of evidence retrieval: the evidence in each post.

An item is a post, with a field per criterion. A value is the numbers of the sentences
that are evidence, from 1 and separated by blanks, or `none`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from jobs.evidence_retrieval.data import EvidenceDataset, Post, query_key
from jobs.evidence_retrieval.parsing import LIKELY, MOST, Assessment, PostAssessment
from jobs.evidence_retrieval.plan import PARSERS
from runner.errors import DatasetError
from runner.job import Answers
from runner.labelling import (
    LabelChoice,
    LabelField,
    LabelItem,
    Labelling,
    ModelLabel,
)

NONE: Final = "none"
"""Value of a criterion for which a post has no evidence."""

_CHOICES: Final = (
    LabelChoice(value=NONE, key="n"),
    LabelChoice(value="undecided", key="u", is_gold=False),
)
_SEPARATORS: Final = re.compile(r"[\s,;]+")


class EvidenceLabelling(Labelling):
    """Declares the sentences of a post that are evidence for each criterion."""

    gold_setting = "gold"

    def fields(self, dataset: EvidenceDataset) -> tuple[LabelField, ...]:
        """Return the criteria in the order of display."""
        return tuple(
            LabelField(
                name=criterion.id,
                question=f"Which sentences are evidence? {criterion.text}",
                choices=_CHOICES,
                is_open=True,
            )
            for criterion in dataset.criteria
        )

    def items(self, dataset: EvidenceDataset) -> Iterator[str]:
        """Yield the posts that have sentences, in file order."""
        return (post.id for post in dataset.posts if post.sentences)

    def item(self, dataset: EvidenceDataset, key: str) -> LabelItem:
        """Return the numbered sentences of a post."""
        sentences = dataset.post(key).sentences
        text = "\n".join(f"{n}. {s.text}" for n, s in enumerate(sentences, 1))
        return LabelItem(key=key, title="", text=text)

    def items_of_task(self, dataset: EvidenceDataset, key: str) -> tuple[str, ...]:
        """Return the post of a query."""
        try:
            return (dataset.query(key)[0].id,)
        except KeyError:
            return (key,)

    def replies(
        self, dataset: EvidenceDataset, answers: Answers
    ) -> Iterator[ModelLabel]:
        """Yield the sentences that each assessment finds relevant, by criterion."""
        for answer in (one for family in answers.families() for one in family):
            task = answer.task
            if task.stage != "assess" or answer.reply is None:
                continue
            parsed = PARSERS[task.stage](dataset, task, answer.reply)
            for post, criterion, assessment in _assessments(dataset, task.key, parsed):
                yield ModelLabel(
                    item=post,
                    field=criterion,
                    model=task.model,
                    replicate=task.replicate,
                    value=_evidence(assessment),
                    task=task.number,
                )

    def gold_changes(self, dataset: EvidenceDataset) -> Mapping[str, object]:
        """Limit a sample to the labelled posts: other gold would draw other ones."""
        return {"limit": 0, "judged_only": True} if dataset.settings.limit else {}

    def gold_rows(
        self, dataset: EvidenceDataset, gold: Mapping[str, Mapping[str, str]]
    ) -> Iterator[Mapping[str, str]]:
        """Yield a row per evidence sentence, of posts with all criteria labelled.

        In a gold file, a criterion without a row has no evidence, so a post that is
        labelled in part is left out.

        Raises:
            DatasetError: a value is not the numbers of sentences.
        """
        for key, values in gold.items():
            if any(criterion.id not in values for criterion in dataset.criteria):
                continue
            post = dataset.post(key)
            for criterion in dataset.criteria:
                numbers = _numbers(post, criterion.id, values[criterion.id])
                for number in numbers or [1]:
                    sentence = post.sentences[number - 1]
                    yield {
                        "post_id": key,
                        "criterion": criterion.id,
                        "sid": str(sentence.sid),
                        "sent_uid": sentence.uid,
                        "groundtruth": "1" if numbers else "0",
                    }


def _assessments(
    dataset: EvidenceDataset, key: str, parsed: object
) -> Iterator[tuple[str, str, Assessment]]:
    """Yield post, criterion and assessment from an assessment's reply."""
    if isinstance(parsed, PostAssessment):
        for criterion, assessment in parsed.criteria.items():
            if isinstance(assessment, Assessment):
                yield key, criterion, assessment
    elif isinstance(parsed, Assessment):
        post, about = dataset.query(key)
        yield post.id, about.id, parsed


def _evidence(assessment: Assessment) -> str:
    """Return the sentences with at least half of the highest relevance."""
    relevant = [at + 1 for at, r in assessment.relevance.items() if r >= MOST / 2]
    if assessment.probability < LIKELY or not relevant:
        return NONE
    return " ".join(map(str, sorted(relevant)))


def _numbers(post: Post, criterion: str, value: str) -> list[int]:
    """Return the sentence numbers in a label; empty for `none`."""
    if value == NONE:
        return []
    words = [word for word in _SEPARATORS.split(value) if word]
    n = len(post.sentences)
    if not words or not all(w.isdecimal() and 1 <= int(w) <= n for w in words):
        raise DatasetError(
            f"The label of {query_key(post.id, criterion)} is {value!r}: label it "
            f"again with numbers of its {n} sentences, such as '2 5', or with {NONE}."
        )
    return sorted({int(word) for word in words})


labelling = EvidenceLabelling()
