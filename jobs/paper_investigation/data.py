"""Holds the job's inputs: papers, truth variants, questions and prompt texts.

Loading and validating them from files is `inputs.py`; nothing here opens a file except
`PaperTexts`, which reads a paper when it is asked for and keeps only the last few.

The prompt texts are never offered: truth variants, keys, expected values,
`original_sentence`, the sentence bench, or other questions than those asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Final, Protocol

from jobs.paper_investigation.settings import InvestigationSettings, Pipeline
from runner.prompts import REASK, Placeholder, PromptBlock, PromptBook, PromptCatalog
from runner.scorecard import Finding

_PAPER: Final = Placeholder(
    name="paper",
    meaning="the paper between marks, or paper_absent where there is no text",
    needed=True,
)
_PMCID: Final = Placeholder(name="pmcid", meaning="the paper's id")
_FORM: Final = Placeholder(
    name="form", meaning="form_json where a schema is sent along, else form_text"
)
_QUESTION: Final = Placeholder(
    name="question", meaning="the question between marks", needed=True
)
_TASK: Final = Placeholder(name="task", meaning="the text task of this block")
_FORMS: Final[dict[str, tuple[Placeholder, ...]]] = {"form_json": (), "form_text": ()}


def _question_block(name: str, meaning: str) -> PromptBlock:
    return PromptBlock(
        name=name,
        meaning=meaning,
        parts={
            "system": (),
            "task": (),
            "user": (_PAPER, _TASK, _QUESTION, _FORM),
            "paper_absent": (_PMCID,),
            **_FORMS,
        },
    )


WORDING: Final = PromptCatalog(
    job="paper-investigation",
    file=Path(__file__).with_name("prompts.toml"),
    profiles={"clinpgx-qa": Path(__file__).with_name("prompts_clinpgx_qa.toml")},
    blocks=(
        PromptBlock(
            name="extract",
            meaning="which variants does the paper study",
            parts={
                "system": (),
                "user": (
                    _PAPER,
                    Placeholder(
                        name="reference_alleles",
                        meaning="reference_list or reference_leave_out, by the "
                        "setting reference_alleles",
                    ),
                    _FORM,
                ),
                **_FORMS,
                "reference_list": (),
                "reference_leave_out": (),
            },
        ),
        _question_block("question.choice", "a sentence with a gap and four options"),
        _question_block(
            "question.association", "p-value and significance of an association"
        ),
        PromptBlock(
            name="batch",
            meaning="several questions at once (batch_questions)",
            parts={
                "system": (),
                "user": (
                    _PAPER,
                    Placeholder(
                        name="tasks",
                        meaning="the texts question.choice.task and question."
                        "association.task, of the kinds that are asked",
                    ),
                    Placeholder(
                        name="questions",
                        meaning="an entry for each question",
                        needed=True,
                    ),
                    _FORM,
                ),
                "entry": (
                    Placeholder(
                        name="number", meaning="of the question, from 1", needed=True
                    ),
                    _QUESTION,
                ),
                "paper_absent": (_PMCID,),
                **_FORMS,
            },
        ),
        REASK,
    ),
)


CACHED_PAPERS = 64
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
class PaperQuestion:
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
class InvestigationDataset:
    """All inputs of a run, validated."""

    settings: InvestigationSettings
    bench: tuple[BenchPaper, ...]
    papers: PaperTexts
    questions: Mapping[str, tuple[PaperQuestion, ...]]
    """By paper: pipeline order, then file order; only the chosen pipelines."""
    sentences: Mapping[tuple[str, str], tuple[str, ...]]
    """Of the sentence bench, by (pmcid, normalised variant)."""
    prompts: PromptBook = field(default_factory=WORDING.shipped)
    findings: tuple[Finding, ...] = ()
    """What loading noticed: missing files, repeats, ids that disagree, ..."""
    _by_pmcid: Mapping[str, BenchPaper] = field(init=False, repr=False, compare=False)
    _questions_of: Callable[[str], Mapping[str, PaperQuestion]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        by_pmcid = {paper.pmcid: paper for paper in self.bench}
        object.__setattr__(self, "_by_pmcid", by_pmcid)
        object.__setattr__(self, "_questions_of", lru_cache(CACHED_PAPERS)(self._keyed))

    def _keyed(self, pmcid: str) -> Mapping[str, PaperQuestion]:
        return {question.key: question for question in self.questions.get(pmcid, ())}

    def paper(self, pmcid: str) -> BenchPaper | None:
        """The bench's line for a paper; None where the bench does not name it."""
        return self._by_pmcid.get(pmcid)

    def question(self, pmcid: str, key: str) -> PaperQuestion | None:
        """A paper's question by its key, such as "mcq_drug:30033"."""
        return self.questions_of(pmcid).get(key)

    def questions_of(self, pmcid: str) -> Mapping[str, PaperQuestion]:
        """A paper's questions by their keys."""
        return self._questions_of(pmcid)
