"""Computes the bound of a certificate from numbers, for redacted bundles.

The bound follows from the order in which records were drawn and labelled, and from
which of them are relevant. Texts, people and reasons have no part in it. A draw is the
one that the seed determines among the unread records in the order of their keys, and
tokens have the order of keys. So a frame has the keys, which become tokens, and the
steps of the screening as places among them.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from jobs.kit.metrics.columns import Ints
from jobs.screening.stop_rule import (
    RecallStopRule,
    RecordDrawn,
    RecordLabelled,
    RecordUnlabelled,
    StopEvent,
)
from jobs.stopping.certificate_check import fold_of
from jobs.stopping.screening_fold import ScreeningFold, drawn_record
from runner.certificates import CertificateFrames, Stated

DRAWN: Final = 0
EXCLUDED: Final = 1
RELEVANT: Final = 2
UNLABELLED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningSteps:
    """What the bound of a certificate is computed from."""

    number: int  #: of the certificate
    target: float
    alpha: float
    seed: int
    records: tuple[str, ...]  #: keys of the library, ascending
    record: Ints  #: of each step, its place among the keys
    kind: Ints  #: of each step: `DRAWN`, `EXCLUDED`, `RELEVANT` or `UNLABELLED`

    @classmethod
    def of(cls, fold: ScreeningFold) -> ScreeningSteps:
        """Return the steps that a fold sent to the stop rule.

        Raises:
            ValueError: there is no plan.
        """
        if fold.plan is None:
            raise ValueError("the label logs hold no plan of a screening")
        plan, records = fold.plan.event, tuple(sorted(fold.texts))
        places = {key: place for place, key in enumerate(records)}
        return cls(
            number=len(fold.stops) + 1,
            target=plan.target,
            alpha=plan.alpha,
            seed=plan.seed,
            records=records,
            record=np.array([places[step.record] for step in fold.steps], dtype=int),
            kind=np.array([*map(_kind, fold.steps)], dtype=int),
        )

    @classmethod
    def at(cls, path: Path) -> ScreeningSteps:
        """Return the steps of a certificate, from its label logs and its library.

        Raises:
            RunnerError: one of them is missing or changed.
            StoreError: a label log cannot be read.
            ValueError: there is no plan.
        """
        return cls.of(fold_of(path))


def _kind(step: StopEvent) -> int:
    match step:
        case RecordDrawn():
            return DRAWN
        case RecordLabelled():
            return RELEVANT if step.is_relevant else EXCLUDED
        case RecordUnlabelled():
            return UNLABELLED


def stated(steps: ScreeningSteps) -> Stated:
    """Return what a certificate states, computed from the steps.

    Raises:
        ValueError: a draw is not the one that the seed determines.
    """
    rule = RecallStopRule(
        records=len(steps.records), target=steps.target, alpha=steps.alpha
    )
    unread, draws = list(steps.records), 0
    for place, kind in zip(steps.record.tolist(), steps.kind.tolist(), strict=True):
        record = steps.records[place]
        if kind == DRAWN:
            draws += 1
            if drawn_record(steps.seed, draws, unread) != record:
                raise ValueError(f"draw {draws} is not the one of seed {steps.seed}")
            rule.receive(RecordDrawn(record=record, unread=len(unread)))
        elif kind == UNLABELLED:
            rule.receive(RecordUnlabelled(record=record))
        else:
            rule.receive(RecordLabelled(record=record, is_relevant=kind == RELEVANT))
        at = bisect_left(unread, record)
        if at < len(unread) and unread[at] == record:
            del unread[at]
    status = rule.status
    return {
        "number": steps.number,
        "target": steps.target,
        "alpha": steps.alpha,
        "reached": status.should_stop,
        "recall_at_least": status.recall,
        "relevant_at_most": status.most_relevant,
        "relevant_found": status.relevant,
        "labelled": status.read,
        "records": status.records,
        "draws_counted": status.draws_counted,
    }


FRAMES: Final = CertificateFrames(ScreeningSteps, ScreeningSteps.at, stated)
