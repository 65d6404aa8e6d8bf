"""Format L: a line a query, with probabilities, thresholds, state and K."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from jobs.evidence_retrieval.importing.given import (
    CALIBRATED,
    PROB_PREFIX,
    RAW,
    STATED,
    Given,
    Truth,
    united,
)
from jobs.evidence_retrieval.importing.source import QUERY, Part, Source
from jobs.inputs.files import read_csv
from jobs.inputs.rows import InputRow
from jobs.metrics.selective import STATES
from runner.errors import DatasetError

LABEL = "has_evidence_gold"

GOLD = "gold_sent_uids"

OPTIONAL = (
    "fold_id",
    "state",
    "tau_neg",
    "tau_pos",
    "n_candidates",
    "selected_k",
    *STATED,
    GOLD,
)

DERIVED = ("model", "config", "n_gold", "status")
"""What siftlog's own files hold besides and an import does not need."""

Value = TypeVar("Value")


def is_predictions(columns: Sequence[str]) -> bool:
    """Whether a header is that of predictions."""
    return {*QUERY, LABEL} <= set(columns)


def read_predictions(source: Source) -> Iterator[Part]:
    """The prediction of each query, for the file's model and any further ones.

    A query without a label is unjudged, one without a probability unscored.
    """
    columns = source.names
    layout = _Layout.of(source, columns)
    rows = read_csv(
        source.path,
        (*QUERY, LABEL),
        (*OPTIONAL, *DERIVED, *layout.own, *layout.further.values()),
        noticed=source.noticed,
        allow_ragged=source.settings.allow_ragged,
        renamed=source.columns,
    )
    for row, part in source.parts(rows):
        probs = {
            name: {column: row.probability(column)}
            for name, column in layout.further.items()
            if row.has(column)
        }
        yield replace(
            part,
            truth=_truth(source, row, part.post, names_gold=GOLD in columns),
            given=_by_model(source.model, _given(row, layout.own), probs),
        )


def _by_model(
    model: str, own: Given, further: Mapping[str, Mapping[str, float]]
) -> Mapping[str, Given]:
    """What the file's model and further ones say; a column may be the file's own."""
    given = {model: own}
    for name, probs in further.items():
        said = Given(probs=probs)
        given[name] = united(given[name], said) if name in given else said
    return given


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Which columns hold whose probability."""

    own: Sequence[str]  #: of the file's model
    further: Mapping[str, str]  #: by model

    @classmethod
    def of(cls, source: Source, columns: Sequence[str]) -> _Layout:
        chosen = source.settings.prob
        if chosen is not None and chosen not in columns:
            raise DatasetError(
                f"{source.path.name} line 1: no column {chosen} among "
                f"{', '.join(columns)} (name one of them with --prob)."
            )
        own = [name for name in columns if name in {CALIBRATED, RAW, chosen}]
        further = {
            name.removeprefix(PROB_PREFIX): name
            for name in columns
            if name.startswith(PROB_PREFIX) and name not in own
        }
        if not own and not further:
            raise DatasetError(
                f"{source.path.name} line 1: no probability among "
                f"{', '.join(columns)} ({CALIBRATED}, {RAW} or {PROB_PREFIX}<name> is "
                "expected; name another column with --prob)."
            )
        return cls(own=own, further=further)


def _truth(source: Source, row: InputRow, post: str, *, names_gold: bool) -> Truth:
    gold = tuple(dict.fromkeys(source.sentences(row, GOLD, post)))
    y = _optional(row, LABEL, row.label)
    is_known = names_gold and (bool(gold) or y is not None)
    return Truth(
        gold=gold if is_known else None,
        y=y,
        fold=_optional(row, "fold_id", row.text),
        pool=_optional(row, "n_candidates", row.count),
    )


def _given(row: InputRow, own: Sequence[str]) -> Given:
    tau_neg = _optional(row, "tau_neg", row.number)
    tau_pos = _optional(row, "tau_pos", row.number)
    if tau_neg is not None and tau_pos is not None and tau_neg > tau_pos:
        raise row.error(
            f"tau_neg {tau_neg} lies above tau_pos {tau_pos} (were the two exchanged?)"
        )
    return Given(
        probs={name: row.probability(name) for name in own if row.has(name)},
        state=_optional(row, "state", lambda name: row.one_of(name, STATES)),
        tau_neg=tau_neg,
        tau_pos=tau_pos,
        k=_optional(row, "selected_k", row.count),
        stated={name: row.number(name) for name in STATED if row.has(name)},
    )


def _optional(row: InputRow, name: str, read: Callable[[str], Value]) -> Value | None:
    return read(name) if row.has(name) else None
