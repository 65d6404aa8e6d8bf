"""What a person asked to have explained: papers, and what of them.

`PMC1 rs1 mcq_drug:7 PMC2` means rs1 and a question of PMC1, and all of PMC2. A task's
key, such as `PMC1/mcq_drug:7`, means that question. Nothing after a paper: all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jobs.paper_investigation import linking
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.dataset import Dataset, Question
from jobs.paper_investigation.marking.paper import MarkedPaper
from runner.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A paper with all that the data and a run hold about it."""

    pmcid: str
    title: str | None
    truth: tuple[str, ...]  #: as they stand
    questions: tuple[Question, ...]
    papers: tuple[MarkedPaper, ...]  #: one a model and replicate; () before any run


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A paper, and the variants and questions of it that were asked for."""

    pmcid: str
    words: tuple[str, ...]  #: () means everything


def selections(
    items: Iterable[str], dataset: Dataset, run: Iterable[str]
) -> tuple[Selection, ...]:
    """Cut *items* into papers and their words; *run*: papers that only a run knows."""
    known = {*(paper.pmcid for paper in dataset.bench), *dataset.questions, *run}
    found: list[tuple[str, list[str]]] = []
    for item in items:
        pmcid, slash, key = item.partition("/")
        if pmcid in known:
            found.append((pmcid, [key] if slash and key else []))
        elif found:
            found[-1][1].append(item)
        else:
            raise UsageError(
                f"There is no paper {item!r} here: name a paper of the bench first, "
                "then its variants or questions."
            )
    return tuple(Selection(pmcid=pmcid, words=tuple(words)) for pmcid, words in found)


def chosen(selection: Selection, case: Case, dataset: Dataset) -> tuple[Question, ...]:
    """The questions of *case* that the selection's words name."""
    if not selection.words:
        return case.questions
    keys: set[str] = set()
    for word in selection.words:
        named = {q.key for q in case.questions if _is_named(word, q, dataset)}
        if not named and not _is_variant(word, case, dataset):
            raise UsageError(
                f"{case.pmcid} has no variant and no question {word!r}: leave it out "
                "to see all of them."
            )
        keys |= named
    return tuple(question for question in case.questions if question.key in keys)


def _is_named(word: str, question: Question, dataset: Dataset) -> bool:
    if word.removeprefix("b/") == question.key or word == question.question_id:
        return True
    name = naming.normalize(word, dataset.settings.variant_case)
    return name in linking.members(question, dataset.settings)


def _is_variant(word: str, case: Case, dataset: Dataset) -> bool:
    name = naming.normalize(word, dataset.settings.variant_case)
    truth = naming.distinct(case.truth, dataset.settings.variant_case)
    return name in truth or any(
        name in (paper.predicted or ()) for paper in case.papers
    )
