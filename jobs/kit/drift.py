"""Lists what served a model's replies over a run, and tests whether verdicts changed.

An endpoint's name for a model is an alias: behind it, a dated model or a build may be
replaced while a run goes on. The replies say which one answered, and in logs of before
this was recorded the stored bodies do. `served_spans` lists it; `model_drifts` tests
the verdicts in the order of the calls, with a first reply of another model or build as
a named change point (see `jobs.kit.metrics.change_points`).
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from jobs.kit.metrics.change_points import ChangeTest, VerdictSequence, change_test
from runner.plan import served_by
from store.scoring import families
from store.served_by import COUNTED, ServedBy
from store.task import TaskState
from store.verdicts import StoredVerdict

SNAPSHOT: Final = ("model", "fingerprint")
"""Fields whose new value is a named change point: others alternate behind gateways."""

MOST_NAMED: Final = 20
"""Named change points of a model; a gateway may report a build a reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderedReply:
    """A stored reply in the order of a run."""

    task: int
    seq: int  #: of its event
    stage: str
    key: str
    model: str  #: as requested
    replicate: int
    served: ServedBy | None
    is_parsed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSpan:
    """Replies of a model with one value of one field of their origin."""

    model: str  #: as requested
    field: str  #: of `store.served_by.COUNTED`
    value: str
    answers: int
    first: OrderedReply
    last: OrderedReply


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotChange:
    """The first reply of another model or build behind a requested model."""

    field: str
    before: str  #: the value of the reply before it
    after: str
    at: OrderedReply
    call: int  #: of the model, from 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDrift:
    """The test of one model's verdicts."""

    model: str
    verdicts: int
    test: ChangeTest
    at: OrderedReply | None  #: the first reply after the most likely change
    snapshot: SnapshotChange | None  #: the named change at that reply


def ordered_replies(conn: sqlite3.Connection, through_seq: int) -> list[OrderedReply]:
    """Return the replies that count, in the order in which they came.

    Replies from the response cache were made at another time and are left out.

    Args:
        conn: a reader of the log.
        through_seq: the last visible event.
    """
    answers = [
        OrderedReply(
            task=row.task,
            seq=stored.seq,
            stage=row.stage,
            key=row.key,
            model=row.model,
            replicate=row.replicate,
            served=served_by(stored),
            is_parsed=row.reason is None,
        )
        for row, stored in families(conn, through_seq)
        if row.state is TaskState.COMPLETED
        and stored is not None
        and not stored.answered.cached
    ]
    return sorted(answers, key=lambda answer: answer.seq)


def by_model(
    answers: Iterable[OrderedReply],
) -> Mapping[str, Sequence[OrderedReply]]:
    """Return the replies of each model, by its name, in their order."""
    grouped: defaultdict[str, list[OrderedReply]] = defaultdict(list)
    for answer in answers:
        grouped[answer.model].append(answer)
    return {model: grouped[model] for model in sorted(grouped)}


def served_spans(answers: Sequence[OrderedReply]) -> Iterator[ServedSpan]:
    """Yield the values of each field, those of a field in the order of their first."""
    for model, of_model in by_model(answers).items():
        for field in COUNTED:
            grouped: defaultdict[str, list[OrderedReply]] = defaultdict(list)
            for answer in of_model:
                if value := getattr(answer.served, field, None):
                    grouped[value].append(answer)
            for value, same in grouped.items():
                yield ServedSpan(
                    model=model,
                    field=field,
                    value=value,
                    answers=len(same),
                    first=same[0],
                    last=same[-1],
                )


def snapshots(of_model: Sequence[OrderedReply]) -> list[SnapshotChange]:
    """Return where a model's replies began to come from another model or build."""
    changes = []
    for field in SNAPSHOT:
        seen: set[str] = set()
        last = ""
        for call, answer in enumerate(of_model):
            value = getattr(answer.served, field, None)
            if value is None:
                continue
            if seen and value not in seen:
                changes.append(
                    SnapshotChange(
                        field=field, before=last, after=value, at=answer, call=call
                    )
                )
            seen.add(value)
            last = value
    return sorted(changes, key=lambda snapshot: snapshot.call)[:MOST_NAMED]


def first_snapshot(
    conn: sqlite3.Connection, after_seq: int, through_seq: int
) -> SnapshotChange | None:
    """Return the first change of what served a model between two events, if any.

    Args:
        conn: a reader of the log.
        after_seq: the earlier event.
        through_seq: the later one; there is none where it is not later.
    """
    if through_seq <= after_seq:
        return None
    replies = by_model(ordered_replies(conn, through_seq))
    changes = [
        change
        for of_model in replies.values()
        for change in snapshots(of_model)
        if change.at.seq > after_seq
    ]
    return min(changes, key=lambda change: change.at.seq, default=None)


def model_drifts(
    answers: Sequence[OrderedReply],
    verdict_of: Callable[[OrderedReply], bool | None],
    *,
    planned: int,
    alpha: float,
) -> list[ModelDrift]:
    """Test the verdicts of each model for a change.

    Other models that answered the same item make it comparable with items that they
    found as easy: the strata of the test. A verdict counts once all of them are known.

    Args:
        answers: replies in their order.
        verdict_of: the verdict of a reply; None: it has none.
        planned: tasks of the run, which bounds the calls of a model.
        alpha: error rate over all looks.
    """
    verdicts = {answer.task: verdict_of(answer) for answer in answers}
    peers: defaultdict[tuple[str, str, int], list[OrderedReply]] = defaultdict(list)
    for answer in answers:
        if verdicts[answer.task] is not None:
            peers[answer.stage, answer.key, answer.replicate].append(answer)
    changes = []
    for model, of_model in by_model(answers).items():
        rows = []
        strata: dict[tuple[str, str], int] = {}
        for call, answer in enumerate(of_model):
            value = verdicts[answer.task]
            if value is None:
                continue
            same = peers[answer.stage, answer.key, answer.replicate]
            others = [verdicts[one.task] for one in same if one.model != model]
            stratum = (answer.stage, _difficulty(others))
            known = max(one.seq for one in same)
            number = strata.setdefault(stratum, len(strata))
            rows.append((known, call, value, number))
        rows.sort()
        named = snapshots(of_model)
        test = change_test(
            VerdictSequence(
                calls=np.array([row[1] for row in rows], dtype=np.int64),
                values=np.array([row[2] for row in rows], dtype=np.bool_),
                strata=np.array([row[3] for row in rows], dtype=np.int64),
                planned=max(planned, len(of_model)),
                named=[one.call for one in named],
            ),
            alpha=alpha,
        )
        changes.append(
            ModelDrift(
                model=model,
                verdicts=len(rows),
                test=test,
                at=None if test.call is None else of_model[test.call],
                snapshot=next((one for one in named if one.call == test.call), None),
            )
        )
    return changes


def _difficulty(others: Sequence[bool | None]) -> str:
    """Return how other models did on an item."""
    if not others:
        return "none"
    positive = sum(bool(other) for other in others)
    return "all" if positive == len(others) else "some" if positive else "no"


def right_by_task(verdicts: Iterable[StoredVerdict]) -> Mapping[int, bool]:
    """Return whether all verdicts of a task are right; tasks without truth are absent.

    Args:
        verdicts: of a scoring.
    """
    right: dict[int, bool] = {}
    for verdict in verdicts:
        if verdict.correct is not None:
            right[verdict.task] = verdict.correct and right.get(verdict.task, True)
    return right
