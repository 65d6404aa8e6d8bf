"""Defines the inputs of a run: posts, criteria, gold labels, folds, prompts."""

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
    """A criterion that posts are read for."""

    id: str
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSentence:
    """A candidate sentence; its index in the post is its index in the pool."""

    sid: int
    uid: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A document with its pool, which has all of its sentences."""

    id: str
    sentences: tuple[PoolSentence, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gold:
    """Gold labels: the sentences that people judged to be evidence."""

    posts: frozenset[str]  #: judged posts; their queries without a row are negative
    evidence: Mapping[tuple[str, str], tuple[str, ...]]
    """Uids of the evidence of (post, criterion), in pool order; positives only."""


@dataclass(frozen=True, kw_only=True)
class EvidenceDataset:
    """Validated inputs of a run; an import may have settings only."""

    settings: EvidenceSettings
    prompts: PromptBook = field(default_factory=WORDING.shipped)
    posts: tuple[Post, ...] = ()  #: in file order
    criteria: tuple[Criterion, ...] = ()  #: in display order
    gold: Gold | None = None
    folds: Mapping[str, str] | None = None
    """Fold by post, from a file or from a sample of posts."""
    configs: tuple[Config, ...] = STANDARD
    stored: Mapping[str, Any] | None = None  #: results to verify, as JSON
    findings: tuple[Finding, ...] = ()
    gates: tuple[StoredGate, ...] = ()  #: used instead of fitted gates

    @cached_property
    def idf(self) -> Idf | None:
        """Idf over all sentences, if set so; None: each pool has its own."""
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
        """Return a post by its id; raise `KeyError` if there is none."""
        return self._posts_by_id[post_id]

    def query(self, key: str) -> tuple[Post, Criterion]:
        """Return the post and criterion of a key; raise `KeyError` if there are none.

        A post's id may have the "/" of `query_key`; a criterion's id may not.
        """
        post_id, _, criterion_id = key.rpartition("/")
        return self._posts_by_id[post_id], self._criteria_by_id[criterion_id]


def query_key(post_id: str, criterion_id: str) -> str:
    """Return the item key of a query."""
    return f"{post_id}/{criterion_id}"
