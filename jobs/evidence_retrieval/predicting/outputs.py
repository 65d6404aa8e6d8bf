"""What was read from a run's replies, by model, query and replicate; before any merge.

Vectors are not kept: of an embedding only the cosines stay, which is all that any stage
wants and a hundredth of the memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.evidence_retrieval.parsing.values import Assessment
from jobs.metrics.columns import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosines:
    """A post's embedding, as every stage uses it."""

    query: Floats  #: (sentences, criteria) likeness to each criterion
    between: Floats  #: (sentences, sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectOutputs:
    """What one model under test said; queries by their key."""

    assessed: dict[str, dict[int, Assessment]] = field(default_factory=dict)
    """By query and replicate; only what could be read."""
    orders: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    """Places of the whole pool, best first, by query and replicate of its rerank."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Why a query was not assessed."""
    counts: Counter[str] = field(default_factory=Counter)
    """What had to be mended in replies, and why some could not be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """All that was read; embeddings and endpoint scores serve every subject."""

    subjects: Mapping[str, SubjectOutputs]
    cosines: dict[str, Cosines] = field(default_factory=dict)  #: by post
    endpoint: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    """By query: a score a sentence of the pool, None where there is none."""
    missing: int = 0  #: tasks that the present plan asks for and the run has not
    stale: int = 0  #: replies that the present plan does not ask for
