"""Declares the label of screening: whether a record is included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from jobs.screening.inputs import ScreeningDataset
from jobs.screening.labels import NEGATIVES
from jobs.screening.parsing import PARSER, ScreeningReading
from runner.job import Answers, parsed_families
from runner.labelling import (
    LabelChoice,
    LabelField,
    LabelItem,
    Labelling,
    ModelLabel,
)

INCLUDE: Final = "include"
EXCLUDE: Final = "exclude"

DECISION: Final = LabelField(
    name="",
    question="Does the record pass screening?",
    choices=(
        LabelChoice(value=INCLUDE, key="i"),
        LabelChoice(value=EXCLUDE, key="e"),
        LabelChoice(value="unclear", key="u", is_gold=False),
    ),
)


class ScreeningLabelling(Labelling):
    """Declares one decision per record."""

    gold_setting = "labels"

    def fields(self, dataset: ScreeningDataset) -> tuple[LabelField, ...]:
        """Return the decision field."""
        del dataset
        return (DECISION,)

    def items(self, dataset: ScreeningDataset) -> Iterator[str]:
        """Yield the records in the order of the set."""
        for review in dataset.screened:
            for record in dataset.records_of(review):
                yield record.key

    def item(self, dataset: ScreeningDataset, key: str) -> LabelItem:
        """Return title and abstract of a record."""
        paper = dataset.paper(dataset.record(key).paper)
        return LabelItem(key=key, title=paper.title, text=paper.abstract)

    def replies(
        self, dataset: ScreeningDataset, answers: Answers
    ) -> Iterator[ModelLabel]:
        """Yield the decision of each replicate in the last stage it reached."""
        for family in parsed_families(answers, PARSER):
            last: dict[tuple[str, str, int], ModelLabel] = {}
            for answer in family:
                task, parsed = answer.task, answer.parsed
                if not isinstance(parsed, ScreeningReading):
                    continue
                judgement = parsed.judgement
                if judgement is None or dataset.find(task.key) is None:
                    continue
                p = judgement.p_include
                if p is not None and judgement.decision == EXCLUDE:
                    p = 1 - p
                last[task.key, task.model, task.replicate] = ModelLabel(
                    item=task.key,
                    field="",
                    model=task.model,
                    replicate=task.replicate,
                    value=judgement.decision,
                    reason=judgement.reason or judgement.reason_code,
                    probability=p,
                    task=task.number,
                )
            yield from last.values()

    def gold_rows(
        self, dataset: ScreeningDataset, gold: Mapping[str, Mapping[str, str]]
    ) -> Iterator[Mapping[str, str]]:
        """Yield a row per record with its decision; labels of the set do not count.

        An excluded record keeps its kind, such as a near miss.
        """
        for key in self.items(dataset):
            record = dataset.record(key)
            decision = gold.get(key, {}).get("", "unlabelled")
            if decision == record.kind:  # no label on either side
                continue
            has_kind = decision == EXCLUDE and record.kind in NEGATIVES
            yield {
                "review_pmid": record.review,
                "id": record.paper,
                "label": decision,
                "kind": record.kind if has_kind else "",
            }


labelling = ScreeningLabelling()
