"""Which questions belong to which variant of a paper, and which of them are asked.

Planning and scoring call the same functions here, so what is asked and what is counted
cannot drift apart. A question belongs to every variant that its `variant` field names
(`variant_link=split`), or to the field as one variant (`whole`). It is asked once
however many recalled variants it belongs to; its one verdict counts for each of them.

Variants are normalised texts throughout (`variants.normalize`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from functools import lru_cache

from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.dataset import Dataset, Question
from jobs.paper_investigation.settings import Case, Link, Settings


def members(question: Question, settings: Settings) -> tuple[str, ...]:
    """The distinct variants that *question* belongs to, in the field's order."""
    return _members(question.variant, settings.variant_link, settings.variant_case)


# Every model's answers about a paper ask for the same fields again.
@lru_cache(maxsize=1 << 16)
def _members(field: str, link: Link, case: Case) -> tuple[str, ...]:
    if link == "whole":
        return (naming.normalize(field, case),)
    return naming.parts(field, case)


def truth(dataset: Dataset, pmcid: str) -> Mapping[str, str]:
    """A paper's curated variants, in file order, with their first spelling."""
    paper = dataset.paper(pmcid)
    if paper is None:
        return {}
    return naming.distinct(paper.variants, dataset.settings.variant_case)


def recalled(
    dataset: Dataset, pmcid: str, predicted: Container[str]
) -> tuple[str, ...]:
    """The truth variants among *predicted*, in truth order."""
    return tuple(v for v in truth(dataset, pmcid) if v in predicted)


def links(
    questions: Iterable[Question], variants: Iterable[str], settings: Settings
) -> dict[str, tuple[Question, ...]]:
    """The questions of each of *variants*, in the order of *questions*, capped.

    Every variant has an entry, in the order given; an empty one where no question
    names it.
    """
    found: dict[str, list[Question]] = {variant: [] for variant in variants}
    for question in questions:
        for variant in members(question, settings):
            if variant in found:
                found[variant].append(question)
    cap = settings.max_questions_per_variant or None
    return {variant: tuple(own[:cap]) for variant, own in found.items()}


def linked(
    dataset: Dataset, pmcid: str, variants: Sequence[str]
) -> dict[str, tuple[Question, ...]]:
    """The paper's questions by variant: pipeline order, then file order, capped."""
    return links(dataset.questions.get(pmcid, ()), variants, dataset.settings)


def asked(
    dataset: Dataset, pmcid: str, variants: Sequence[str]
) -> tuple[Question, ...]:
    """The questions of *variants*, each once: pipeline order, then file order."""
    groups = linked(dataset, pmcid, variants).values()
    keys = {question.key for group in groups for question in group}
    return tuple(q for q in dataset.questions.get(pmcid, ()) if q.key in keys)


def batches(
    groups: Mapping[str, tuple[Question, ...]], size: int
) -> tuple[tuple[Question, ...], ...]:
    """Cut each variant's questions into chunks of *size*; every question once.

    A question of several variants goes to the first of them that has it.
    """
    taken: set[str] = set()
    cut: list[tuple[Question, ...]] = []
    for group in groups.values():
        own = [question for question in group if question.key not in taken]
        taken.update(question.key for question in own)
        cut.extend(
            tuple(own[start : start + size]) for start in range(0, len(own), size)
        )
    return tuple(cut)
