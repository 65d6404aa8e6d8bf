"""The job's inputs as values: papers, truth variants, questions.

Loading and validating them from files is `load.py`; nothing here opens a file except
`PaperTexts`, which reads a paper when it is asked for and keeps only the last few.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from jobs.paper_investigation.settings import Pipeline, Settings
from jobs.paper_investigation.wording import WORDING
from runner.prompts import PromptBook
from runner.scorecard import Finding

KEPT_PAPERS = 64
"""Papers whose questions are held by key: those that are asked about in a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPaper:
    """One paper of the bench with its curated variants as they stand."""

    pmcid: str
    variants: tuple[str, ...]
    pmid: str | None = None
    title: str | None = None
    raw_variants: tuple[tuple[str, ...], ...] = ()
    line: int = 0  #: in the bench file, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One multiple-choice or study-parameter item."""

    pipeline: Pipeline
    question_id: str
    pmcid: str
    variant: str  #: the annotation's field as it stands, often several joined by ", "
    annotation_id: str = ""
    question_type: str = ""
    table_type: str = ""
    sentence: str = ""  #: MCQ: with the gap; study: as stated, or blank
    options: tuple[str, str, str, str] | None = None  #: texts of a to d
    correct: str | None = None  #: MCQ: the key, "a" to "d"
    gene: str = ""
    drug: str = ""
    phenotype_category: str = ""
    phenotype: str = ""
    expected_p_value: str = ""
    expected_significance: str = ""
    original_sentence: str = ""  #: holds the answer; never in a prompt
    pmid: str = ""  #: of the paper; shown only
    line: int = 0
    unknown: tuple[tuple[str, Any], ...] = ()  #: the row's other fields, name and value

    @property
    def key(self) -> str:
        """Identity within a paper: pipeline and id."""
        return f"{self.pipeline}:{self.question_id}"

    @property
    def is_mcq(self) -> bool:
        """Whether it is answered by a letter."""
        return self.pipeline != "study_param"


class PaperTexts(Protocol):
    """The papers' texts, opened one at a time."""

    def __contains__(self, pmcid: str) -> bool:
        """Whether there is a non-blank text; does not read it twice."""
        ...

    def text(self, pmcid: str) -> str:
        """The text; `KeyError` where there is none."""
        ...

    def title(self, pmcid: str) -> str | None:
        """The text's own title line, if any."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """All inputs of a run, validated."""

    settings: Settings
    bench: tuple[BenchPaper, ...]
    papers: PaperTexts
    questions: Mapping[str, tuple[Question, ...]]
    """By paper: pipeline order, then file order; only the chosen pipelines."""
    sentences: Mapping[tuple[str, str], tuple[str, ...]]
    """Of the sentence bench, by (pmcid, normalised variant)."""
    prompts: PromptBook = field(default_factory=WORDING.shipped)
    findings: tuple[Finding, ...] = ()
    """What loading noticed: missing files, repeats, ids that disagree, ..."""
    _by_pmcid: Mapping[str, BenchPaper] = field(init=False, repr=False, compare=False)
    _questions_of: Callable[[str], Mapping[str, Question]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        by_pmcid = {paper.pmcid: paper for paper in self.bench}
        object.__setattr__(self, "_by_pmcid", by_pmcid)
        object.__setattr__(self, "_questions_of", lru_cache(KEPT_PAPERS)(self._keyed))

    def _keyed(self, pmcid: str) -> Mapping[str, Question]:
        return {question.key: question for question in self.questions.get(pmcid, ())}

    def paper(self, pmcid: str) -> BenchPaper | None:
        """The bench's line for a paper; None where the bench does not name it."""
        return self._by_pmcid.get(pmcid)

    def question(self, pmcid: str, key: str) -> Question | None:
        """A paper's question by its key, such as "mcq_drug:30033"."""
        return self.questions_of(pmcid).get(key)

    def questions_of(self, pmcid: str) -> Mapping[str, Question]:
        """A paper's questions by their keys."""
        return self._questions_of(pmcid)
