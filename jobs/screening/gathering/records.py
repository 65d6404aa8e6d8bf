"""What was screened: the records of a set, or those that an import's rows speak of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import msgspec
import numpy as np

from jobs.screening.dataset import Dataset
from jobs.screening.decisions import Records
from jobs.screening.validation_set import KINDS, Kind, Record
from runner.job import Answers

STAGES = ("title", "abstract", "fulltext")
"""The stages that judge a record, in their order."""


class Truth(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a row of an import says is true; stored with its task."""

    label: int
    kind: str = "unspecified"


_DECODER = msgspec.json.Decoder(Truth)


def truth_in(context: str) -> Truth:
    """What was stored with a task."""
    return _DECODER.decode(context)


def text_of(truth: Truth) -> str:
    """What is stored with a task."""
    return msgspec.json.encode(truth).decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """What there is to gather answers for."""

    records: Records
    places: dict[str, int]  #: of each record, by its key
    stages: tuple[str, ...]  #: that judged it, in their order


def screened(dataset: Dataset, answers: Answers) -> Screened:
    """The records that a run is about, and the stages: set, or imported."""
    drawn = dataset.validation_set
    if not answers.imported and drawn is not None:
        return _screened(drawn.records, dataset.settings.stages)
    stated: dict[str, Record] = {}
    there: set[str] = set()
    for family in answers.families():
        task = family[0].task
        there.add(task.stage)
        if task.context is not None and task.key not in stated:
            stated[task.key] = _record(task.key, truth_in(task.context))
    records = _in_set_order(stated.values()) if drawn is None else drawn.records
    return _screened(records, tuple(stage for stage in STAGES if stage in there))


def _record(key: str, truth: Truth) -> Record:
    review, _, paper = key.partition(":")
    return Record(
        review=review,
        paper=paper,
        kind="included" if truth.label else cast("Kind", truth.kind),
    )


def _in_set_order(records: Iterable[Record]) -> list[Record]:
    return sorted(
        records, key=lambda own: (own.review, KINDS.index(own.kind), own.paper)
    )


def _screened(rows: Sequence[Record], stages: tuple[str, ...]) -> Screened:
    reviews = tuple(sorted({own.review for own in rows}))
    kinds = tuple(kind for kind in KINDS if any(own.kind == kind for own in rows))
    at = {review: place for place, review in enumerate(reviews)}
    of_kind = {kind: place for place, kind in enumerate(kinds)}
    n = len(rows)
    return Screened(
        records=Records(
            reviews=reviews,
            papers=tuple(own.paper for own in rows),
            review=np.fromiter((at[own.review] for own in rows), np.int64, n),
            label=np.fromiter((own.label for own in rows), np.int64, n),
            kinds=kinds,
            kind=np.fromiter((of_kind[own.kind] for own in rows), np.int64, n),
            reason_code=tuple(own.reason_code for own in rows),
        ),
        places={own.key: i for i, own in enumerate(rows)},
        stages=stages,
    )
