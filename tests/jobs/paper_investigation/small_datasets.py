"""Small datasets for tests: papers and questions made in memory, without files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from jobs.paper_investigation.data import (
    BenchPaper,
    InvestigationDataset,
    PaperQuestion,
    PaperTexts,
)
from jobs.paper_investigation.settings import PIPELINES, InvestigationSettings


def choice(pmcid: str, variant: str, question_id: str, **changes: Any) -> PaperQuestion:
    """A multiple-choice question whose key is b."""
    question = PaperQuestion(
        pipeline="mcq_drug",
        question_id=question_id,
        pmcid=pmcid,
        variant=variant,
        question_type="standard",
        sentence="______ is cleared more slowly by carriers.",
        options=("aspirin", "warfarin", "heparin", "digoxin"),
        correct="b",
        original_sentence="Warfarin is cleared more slowly by carriers.",
    )
    return replace(question, **changes)


def study(pmcid: str, variant: str, question_id: str, **changes: Any) -> PaperQuestion:
    """A study-parameter question whose p-value is 0.03, significant."""
    question = PaperQuestion(
        pipeline="study_param",
        question_id=question_id,
        pmcid=pmcid,
        variant=variant,
        question_type="correct",
        sentence="The variant is associated with a lower dose of warfarin.",
        gene="CYP2C9",
        drug="warfarin",
        phenotype_category="Dosage",
        phenotype="lower dose",
        expected_p_value="= 0.03",
        expected_significance="yes",
    )
    return replace(question, **changes)


def dataset(
    bench: Mapping[str, Sequence[str]],
    questions: Iterable[PaperQuestion] = (),
    texts: Mapping[str, str] | None = None,
    **settings: Any,
) -> InvestigationDataset:
    """A dataset of *bench* (variants by paper); every paper has a text by default."""
    by_paper: dict[str, list[PaperQuestion]] = {}
    for question in questions:
        by_paper.setdefault(question.pmcid, []).append(question)
    if texts is None:
        texts = {pmcid: f"# Paper {pmcid}\n\nText." for pmcid in bench}
    return InvestigationDataset(
        settings=InvestigationSettings(**settings),
        bench=tuple(
            BenchPaper(pmcid=pmcid, variants=tuple(variants), line=line)
            for line, (pmcid, variants) in enumerate(bench.items(), start=1)
        ),
        # blank texts count as absent, as in files
        papers=PaperTexts(
            {pmcid: partial(str, text) for pmcid, text in texts.items() if text.strip()}
        ),
        questions={
            pmcid: tuple(sorted(group, key=lambda q: PIPELINES.index(q.pipeline)))
            for pmcid, group in by_paper.items()
        },
        sentences={},
    )
