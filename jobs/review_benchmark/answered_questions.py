"""Defines the results of questions without a truth: studies, decisions, pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jobs.kit.score import NO_LABEL, ItemFrame
from jobs.kit.text_format import fixed
from jobs.review_benchmark.data import AgentRecord, Review, expression
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.rebuilt_reviews import (
    AgentConclusion,
    CandidatePaper,
    RebuiltReview,
)
from runner.scorecard import Labels
from store.document import Block, Fact, Heading, Quote
from store.printable import one_line

DECISIONS = ("exclude", "include")


class CandidateDecision(NamedTuple):
    """A paper that an agent found for a question, and its decision."""

    rebuilt: RebuiltReview
    candidate: CandidatePaper

    @property
    def paper(self) -> AgentRecord:
        """Record of the paper."""
        return self.rebuilt.papers[self.candidate.document]

    @property
    def key(self) -> str:
        """Question and paper, as `siftlog explain` names them."""
        return f"{self.rebuilt.review}:{self.candidate.document}"


def included_studies(rebuilt: RebuiltReview) -> list[CandidateDecision]:
    """Return the included papers, the best first."""
    included = (paper for paper in rebuilt.candidates if paper.included)
    ordered = sorted(included, key=lambda paper: (-(paper.score or 0.0), paper.rank))
    return [CandidateDecision(rebuilt, candidate) for candidate in ordered]


def references(dataset: ReviewDataset, rebuilt: RebuiltReview) -> list[str]:
    """Return the studies that a conclusion is drawn from, as one line each."""
    studies = included_studies(rebuilt)[: dataset.settings.conclude_papers]
    return [reference(study.paper) for study in studies]


def reference(paper: AgentRecord) -> str:
    """Return a paper as a reference: title, year, PMID and DOI."""
    parts = (
        paper.title.rstrip(".") or f"document {paper.document}",
        str(paper.year or ""),
        f"PMID {paper.pmid}" if paper.pmid else "",
        f"doi:{paper.doi}" if paper.doi else "",
    )
    return one_line(". ".join(filter(None, parts)))


class AnsweredQuestion(NamedTuple):
    """A model's answer to a question."""

    dataset: ReviewDataset
    rebuilt: RebuiltReview

    @property
    def review(self) -> Review:
        """The question."""
        return self.dataset.review(self.rebuilt.review)

    @property
    def concluded(self) -> AgentConclusion:
        """Conclusion of the first replicate that has one."""
        return self.rebuilt.concluded

    @property
    def failure(self) -> str | None:
        """Reason why there is no conclusion; None if there is one."""
        if self.concluded.text:
            return None
        failures = (conclusion.failure for conclusion in self.rebuilt.conclusions)
        return next(filter(None, failures), self.rebuilt.skip) or None


def included_as_ris(rebuilt: RebuiltReview) -> str:
    """Return the included studies as RIS, for reference managers.

    The note holds the score and the rationale; `AN` has the PMID, as in PubMed's RIS.
    """
    entries = []
    for study in included_studies(rebuilt):
        paper = study.paper
        score = fixed(study.candidate.score, "g")
        note = f"score {score}. {study.candidate.rationale}"
        fields = {
            "TI": paper.title,
            "PY": str(paper.year or ""),
            "DO": paper.doi,
            "AN": paper.pmid,
            "N1": note.strip(),
        }
        lines = [f"{tag}  - {one_line(text)}" for tag, text in fields.items() if text]
        entries.append("\n".join(("TY  - JOUR", *lines, "ER  - \n")))
    return "\n".join(entries)


def question_page(dataset: ReviewDataset, rebuilt: RebuiltReview) -> Iterator[Block]:
    """Yield the search, the included studies and the conclusion of one question."""
    review = dataset.review(rebuilt.review)
    yield Fact("question", one_line(review.question))
    for criterion in review.inclusion:
        yield Fact("include", one_line(criterion))
    for criterion in review.exclusion:
        yield Fact("exclude", one_line(criterion))
    yield Fact("model", rebuilt.model)
    for search in rebuilt.searches:
        of = f", replicate {search.replicate}" if len(rebuilt.searches) > 1 else ""
        plan = " (fixed plan: the model's was unusable)" if search.is_fallback else ""
        yield Heading(f"search{of}{plan}")
        for query, hits in zip(search.queries, search.hits, strict=True):
            yield Fact("", f"{hits:,} hits: {expression(query)}", indent=2, width=0)
    yield Heading("papers")
    yield f"  {flow(rebuilt)}"
    studies = included_studies(rebuilt)
    for place, study in enumerate(studies, start=1):
        score = fixed(study.candidate.score, "g")
        label = f"{place}."
        line = f"{reference(study.paper)} (score {score}, {study.key})"
        yield Fact(label, line, indent=2, width=len(label) + 1)
        if study.candidate.rationale:
            yield Quote(one_line(study.candidate.rationale))
    yield Heading("conclusion")
    concluded = rebuilt.concluded
    if concluded.text:
        n = min(len(studies), dataset.settings.conclude_papers)
        yield Fact("", one_line(concluded.text), indent=2, width=0)
        yield Fact("direction", concluded.direction or "not stated", indent=2)
        yield Fact("certainty", concluded.certainty or "not stated", indent=2)
        drawn = f"studies 1 to {n}" if n > 1 else "study 1"
        yield Fact("drawn from", drawn, indent=2)
    else:
        yield f"  none: {AnsweredQuestion(dataset, rebuilt).failure or 'open'}"


def flow(rebuilt: RebuiltReview) -> str:
    """Return a line with the numbers of papers found, scored and included."""
    outcomes = Counter(candidate.outcome for candidate in rebuilt.candidates)
    parts = [f"{len(rebuilt.candidates):,} found"]
    parts += [f"{n:,} {name.replace('_', ' ')}" for name, n in outcomes.items()]
    if rebuilt.skip:
        parts.append(rebuilt.skip.replace("_", " "))
    return ", ".join((*parts, f"{len(rebuilt.included):,} included"))


@dataclass(frozen=True, kw_only=True)
class AgentWork:
    """The answers of one model to all questions."""

    model: str
    reviews: Sequence[RebuiltReview]

    @property
    def decisions(self) -> Sequence[CandidateDecision]:
        """Decisions about all candidates."""
        return [
            CandidateDecision(rebuilt, candidate)
            for rebuilt in self.reviews
            for candidate in rebuilt.candidates
        ]

    @property
    def decided(self) -> Mapping[str, bool]:
        """Decisions by paper, of the candidates that have a score."""
        return {
            decision.key: decision.candidate.included
            for decision in self.decisions
            if decision.candidate.score is not None
        }

    @property
    def frame(self) -> ItemFrame:
        """Decisions as labels of papers."""
        decisions = self.decisions
        labels = [
            NO_LABEL
            if decision.candidate.score is None
            else int(decision.candidate.included)
            for decision in decisions
        ]
        return ItemFrame.of(
            [decision.key for decision in decisions],
            [decision.rebuilt.review for decision in decisions],
            cluster="question",
            label=np.array(labels, np.int64),
            categories=DECISIONS,
        )

    def labels(self) -> Labels:
        """Return the decisions in words."""
        return self.frame.labels("decision")

    @property
    def fallbacks(self) -> list[str]:
        """Questions whose search plan was unusable."""
        return [
            rebuilt.review
            for rebuilt in self.reviews
            if any(search.is_fallback for search in rebuilt.searches)
        ]


class WorkAgreement(NamedTuple):
    """The decisions of two models about the papers that both scored."""

    a: AgentWork
    b: AgentWork

    @property
    def common(self) -> Sequence[tuple[bool, bool]]:
        """Both decisions about each common paper."""
        others = self.b.decided
        return [
            (decision, others[key])
            for key, decision in self.a.decided.items()
            if key in others
        ]
