"""Defines the data of an imported task: labels and a model's predictions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeAlias, TypeVar

import msgspec

from jobs.evidence_retrieval.data import EvidenceDataset
from runner.job import Task
from runner.job_faults import guarded
from runner.messages import ParseFailure, Reply
from runner.scorecard import Finding

Query: TypeAlias = tuple[str, str]
"""Post and criterion."""

CONFIG = "given"
"""Configuration of imported results, which is unknown."""

CALIBRATED, RAW = "p4_prob_calibrated", "p4_prob_raw"
"""Columns of the per-query model's probability, the preferred one first."""

PROB_PREFIX = "prob_"
"""Prefix of the probability column of each further model."""

GAMMA_PREFIX = "k_gamma_"
"""Prefix of the columns with the K chosen under one gamma."""

STATED = (
    "evidence_recall_at_k",
    "evidence_precision_at_k",
    "mrr",
    "screening_correct",
    "alert_correct",
)
"""Results per query that a file may state along with its predictions."""

SINGLE = ("score", "state", "tau_neg", "tau_pos", "k")
"""Fields of `ImportedPrediction` that have one value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTruth:
    """Labels of a query in files, for all models; None: not stated."""

    gold: tuple[str, ...] | None = None  #: uids of the evidence; (): there is none
    y: int | None = None  #: has_evidence, if stated separately from the gold
    fold: str | None = None
    pool: int | None = None  #: sentences of the post
    noticed: tuple[Finding, ...] | None = None  #: about the files, with the last query


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedPrediction:
    """One model's prediction about a query in files; None: not stated."""

    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    probs: Mapping[str, float] = field(default_factory=dict)  #: by column
    score: float | None = None  #: of the best candidate
    state: str | None = None
    tau_neg: float | None = None
    tau_pos: float | None = None  #: inf: no query is POS
    k: int | None = None
    stated: Mapping[str, float] = field(default_factory=dict)
    """By column: `STATED`, and K under each gamma of a sweep."""


_Imported = TypeVar("_Imported", QueryTruth, ImportedPrediction)


def encode(value: QueryTruth | ImportedPrediction) -> str:
    """Encode the stated fields as JSON."""
    return msgspec.json.encode(
        {
            name: _INFINITE if content == math.inf else content
            for name, content in _stated_fields(value).items()
        }
    ).decode()


def decode_truth(context: str) -> QueryTruth:
    """Decode the context of an imported task."""
    return _TRUTH.decode(context)


@guarded
def read_prediction(
    dataset: EvidenceDataset,  # noqa: ARG001 - the form of a stage's parser
    task: Task,  # noqa: ARG001 - likewise
    reply: Reply,
) -> ImportedPrediction | ParseFailure:
    """Parse the prediction in an imported reply: the parser of the stage `given`."""
    try:
        return _PREDICTION.decode(reply.text)
    except msgspec.DecodeError:
        return ParseFailure(reason="no_prediction")


def merge_answers(first: _Imported, other: _Imported) -> _Imported:
    """Merge the data of two files; where both have a value, the first counts."""
    first_fields, other_fields = _stated_fields(first), _stated_fields(other)
    # the entries of the first come first, and count
    both = {
        name: {**content, **other_fields[name], **content}
        for name, content in first_fields.items()
        if name in other_fields and isinstance(content, Mapping)
    }
    return replace(first, **{**other_fields, **first_fields, **both})


_INFINITE = "inf"
"""JSON has no infinity, so an unreachable threshold is this text, decoded laxly."""

_TRUTH = msgspec.json.Decoder(QueryTruth, strict=False)
_PREDICTION = msgspec.json.Decoder(ImportedPrediction, strict=False)


_NAMES = {
    kind: tuple(one.name for one in fields(kind))
    for kind in (QueryTruth, ImportedPrediction)
}
"""Computed once: a full-size import needs them a hundred thousand times."""


def _stated_fields(value: QueryTruth | ImportedPrediction) -> dict[str, Any]:
    """Return the fields that have a value."""
    contents = ((name, getattr(value, name)) for name in _NAMES[type(value)])
    return {
        name: content
        for name, content in contents
        if content is not None and content != {}
    }
