"""Bounds how many near misses may be eligible after all, where exclusions are known.

A near miss is unjudged: a review that does not include it may never have seen it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jobs.kit.metrics.columns import mean, ratio
from jobs.screening.data import Corpus, Exclusion


@dataclass(frozen=True, slots=True, kw_only=True)
class Contamination:
    """The candidates of one review, or of all, by what is known of them."""

    confirmed: int = 0  #: the review excluded it
    pending: int = 0  #: awaiting assessment, or ongoing
    duplicate_suspect: int = 0  #: title or study of an included paper
    unverified: int = 0

    @property
    def n(self) -> int:
        """All of them."""
        return self.confirmed + self.pending + self.duplicate_suspect + self.unverified

    @property
    def share_confirmed(self) -> float | None:
        """The share that is known to be ineligible."""
        return ratio(self.confirmed, self.n)

    @property
    def lower(self) -> float | None:
        """The least share that may be eligible."""
        return ratio(self.pending + self.duplicate_suspect, self.n)

    @property
    def upper(self) -> float | None:
        """The largest share that may be eligible."""
        return None if not self.n else 1 - self.confirmed / self.n


def contamination(
    corpus: Corpus,
    candidates: Iterable[str],
    included: Iterable[str],
    exclusions: Mapping[str, Exclusion],
    study: Mapping[str, str],
) -> Contamination:
    """The candidates of one review; the first part that fits a paper has it.

    Args:
        corpus: titles.
        candidates: papers.
        included: papers that the review includes.
        exclusions: what the review has excluded or not decided, by paper.
        study: the study that a paper belongs to, where any review says so.
    """
    included_papers = list(included)
    titles = {_normal(corpus.text(paper).title) for paper in included_papers} - {""}
    studies = {study[paper] for paper in included_papers if paper in study}
    counts: Counter[str] = Counter()
    for paper in candidates:
        exclusion = exclusions.get(paper)
        if exclusion is not None:
            part = "confirmed" if exclusion.status == "excluded" else "pending"
        elif _normal(corpus.text(paper).title) in titles or study.get(paper) in studies:
            part = "duplicate_suspect"
        else:
            part = "unverified"
        counts[part] += 1
    return Contamination(**counts)


def together(contaminations: Iterable[Contamination]) -> Contamination:
    """The candidates of several reviews as one."""
    all_ = list(contaminations)
    return Contamination(
        confirmed=sum(part.confirmed for part in all_),
        pending=sum(part.pending for part in all_),
        duplicate_suspect=sum(part.duplicate_suspect for part in all_),
        unverified=sum(part.unverified for part in all_),
    )


def macro_confirmed(contaminations: Iterable[Contamination]) -> float | None:
    """The mean of the reviews' confirmed shares."""
    return mean(part.share_confirmed for part in contaminations)


def _normal(title: str) -> str:
    """A title without case, punctuation and spacing."""
    return "".join(sign for sign in title.casefold() if sign.isalnum())
