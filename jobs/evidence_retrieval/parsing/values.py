"""What a readable reply says, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.lexical import Floats
from runner.messages import ParseFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """One criterion in one post: is there evidence, and which sentences are it."""

    probability: float  #: 0 to 1
    relevance: Mapping[int, int]  #: of the listed sentences, by place from 0: 0 to 100
    noted: Mapping[str, int] = field(default_factory=dict)  #: what had to be mended


@dataclass(frozen=True, slots=True, kw_only=True)
class PostAssessment:
    """All criteria of a post, asked together; by criterion."""

    criteria: Mapping[str, Assessment | ParseFailure]
    noted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordering:
    """The candidates of one rerank call, best first, as places in its list from 0."""

    places: tuple[int, ...]  #: a permutation
    noted: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostVectors:
    """Vectors of all criteria and of a post's sentences."""

    criteria: Floats  #: (criteria, dimensions)
    sentences: Floats  #: (sentences, dimensions)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointScores:
    """A rerank endpoint's scores of a pool; None where it gave none."""

    scores: tuple[float | None, ...]
    noted: Mapping[str, int] = field(default_factory=dict)
