"""Holds the inputs of a run as values: posts, criteria, gold, folds, prompts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jobs.evidence_retrieval.pipeline import STANDARD, Config
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.lexical import Idf, tokens
from runner.prompts import Placeholder, PromptBlock, PromptBook, PromptCatalog
from runner.scorecard import Finding

if TYPE_CHECKING:
    from jobs.evidence_retrieval.predictions.fitted_gate import StoredGate


_TEXTS: Final = {
    name: Placeholder(name=name, meaning=meaning, needed=True)
    for name, meaning in {
        "sentences": "the numbered sentences of the post, between marks",
        "criterion": "the criterion's text, between marks",
        "criteria": "id and text of every criterion, a line of JSON each, between "
        "marks",
        "candidates": "the numbered sentences to be ordered, between marks",
    }.items()
}

WORDING: Final = PromptCatalog(
    job="evidence-retrieval",
    file=Path(__file__).with_name("prompts.toml"),
    blocks=(
        PromptBlock(
            name="assess.query",
            meaning="is there evidence for one criterion, and which (batch=query)",
            parts={"system": (), "user": (_TEXTS["sentences"], _TEXTS["criterion"])},
        ),
        PromptBlock(
            name="assess.post",
            meaning="the same for all criteria of a post at once (batch=post)",
            parts={"system": (), "user": (_TEXTS["sentences"], _TEXTS["criteria"])},
        ),
        PromptBlock(
            name="rerank",
            meaning="in which order are the candidates of a window",
            parts={"system": (), "user": (_TEXTS["candidates"], _TEXTS["criterion"])},
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """What a post is read for."""

    id: str
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSentence:
    """A candidate; its place in the post is its place in the pool."""

    sid: int
    uid: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A document with its pool: all of its sentences and nothing else."""

    id: str
    sentences: tuple[PoolSentence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gold:
    """Which sentences are evidence, as people judged it."""

    posts: frozenset[str]  #: judged: a query of theirs without a row is negative
    evidence: Mapping[tuple[str, str], tuple[str, ...]]
    """Uids of the evidence of (post, criterion), in pool order; only positive ones."""


@dataclass(frozen=True, kw_only=True)
class EvidenceDataset:
    """All inputs of a run, validated; an imported run may have none but settings."""

    settings: EvidenceSettings
    prompts: PromptBook = field(default_factory=WORDING.shipped)
    posts: tuple[Post, ...] = ()  #: in file order
    criteria: tuple[Criterion, ...] = ()  #: in display order
    gold: Gold | None = None
    folds: Mapping[str, str] | None = None
    """Fold by post, where a file names them or the posts are a sample."""
    configs: tuple[Config, ...] = STANDARD
    stored: Mapping[str, Any] | None = None  #: results to verify, as JSON
    findings: tuple[Finding, ...] = ()
    gates: tuple[StoredGate, ...] = ()  #: to use instead of fitting any

    @cached_property
    def idf(self) -> Idf | None:
        """Of all sentences, where settings ask for it; None: each pool has its own."""
        if self.settings.idf != "dataset":
            return None
        return Idf([tokens(s.text) for post in self.posts for s in post.sentences])

    @cached_property
    def _posts_by_id(self) -> Mapping[str, Post]:
        return {post.id: post for post in self.posts}

    @cached_property
    def _criteria_by_id(self) -> Mapping[str, Criterion]:
        return {criterion.id: criterion for criterion in self.criteria}

    def post(self, post_id: str) -> Post:
        """A post by its id; raise `KeyError` where there is none."""
        return self._posts_by_id[post_id]

    def query(self, key: str) -> tuple[Post, Criterion]:
        """The post and criterion of a key; raise `KeyError` where there are none.

        A post's id may hold the "/" of `query_key`; a criterion's may not.
        """
        post_id, _, criterion_id = key.rpartition("/")
        return self._posts_by_id[post_id], self._criteria_by_id[criterion_id]


def query_key(post_id: str, criterion_id: str) -> str:
    """The item key of a query."""
    return f"{post_id}/{criterion_id}"
