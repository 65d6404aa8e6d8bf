"""Defines the job's inputs: papers, truth variants, questions and prompt texts.

Reading and validating files is in `inputs.py`. `PaperTexts` reads a paper on demand and
caches only the last few.

The prompt texts never include: truth variants, keys, expected values,
`original_sentence`, the sentence bench, or other questions than those of the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

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


CHARS_PER_TOKEN = 4
"""The usual estimate for English; the extraction of section 4.3 uses it too."""

CACHED_PAPERS = 64
"""Number of papers whose questions are cached by key, for consecutive requests."""


LETTERS = ("a", "b", "c", "d")

NOT_FOUND = "not found"
"""Expected value of a question about a finding that the paper does not have."""

UNLABELLED = "unlabelled"
"""Key of a question without a label: it is sent and not judged."""

Options: TypeAlias = tuple[str, str, str, str]
"""The texts of a to d."""

QuestionKind: TypeAlias = Literal["mcq", "study"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchPaper:
    """A paper of the bench with its curated variants, as spelled."""

    pmcid: str
    variants: tuple[str, ...]
    pmid: str | None = None
    title: str | None = None
    raw_variants: tuple[tuple[str, ...], ...] = ()
    line: int = 0  #: in the bench file, from 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperQuestion:
    """A multiple-choice or study-parameter question."""

    pipeline: Pipeline
    question_id: str
    pmcid: str
    variant: str  #: the annotation's field, unchanged; often several joined by ", "
    annotation_id: str = ""
    question_type: str = ""
    table_type: str = ""
    sentence: str = ""  #: MCQ: with the gap; study: as stated, or blank
    options: Options | None = None  #: of a multiple-choice question
    correct: str | None = None  #: MCQ: the key, "a" to "d"
    gene: str = ""
    drug: str = ""
    phenotype_category: str = ""
    phenotype: str = ""
    expected_p_value: str = ""
    expected_significance: str = ""
    original_sentence: str = ""  #: has the answer; never in a prompt
    pmid: str = ""  #: id of the paper, for display
    line: int = 0

    @property
    def key(self) -> str:
        """Identity within a paper: pipeline and id."""
        return f"{self.pipeline}:{self.question_id}"

    @property
    def is_mcq(self) -> bool:
        """Whether the answer is a letter."""
        return self.pipeline != "study_param"

    @property
    def is_labelled(self) -> bool:
        """Whether its key is known, so that answers can be judged."""
        return UNLABELLED not in {self.correct, self.expected_p_value}

    @property
    def kind(self) -> QuestionKind:
        """Kind of the answer: a letter or study parameters."""
        return "mcq" if self.is_mcq else "study"


CACHED_TEXTS = 16
"""Number of cached texts, for the papers with questions in progress."""

HEAD_CHARS = 4_000
"""Number of characters of a paper searched for its id and title."""

_TITLE = re.compile(r"^#\s+(\S.*?)\s*$", re.MULTILINE)

ReadText: TypeAlias = Callable[[], str]


class PaperTexts:
    """Texts by paper id, read on demand; the last few are cached."""

    def __init__(
        self, readers: Mapping[str, ReadText], blank: Iterable[str] = ()
    ) -> None:
        self._readers = readers
        self.blank = tuple(blank)  #: ids of papers whose text is blank
        self._text = lru_cache(maxsize=CACHED_TEXTS)(self._read)

    def __contains__(self, pmcid: str) -> bool:
        return pmcid in self._readers

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)

    def text(self, pmcid: str) -> str:
        """Return the paper's text with line ends as LF; raise `KeyError` if missing."""
        return self._text(pmcid)

    def title(self, pmcid: str) -> str | None:
        """Return the text's first heading, or None."""
        if pmcid not in self:
            return None
        heading = _TITLE.search(self.text(pmcid)[:HEAD_CHARS])
        return heading[1] if heading else None

    def _read(self, pmcid: str) -> str:
        return self._readers[pmcid]()


@dataclass(frozen=True, kw_only=True)
class InvestigationDataset:
    """Validated inputs of a run."""

    settings: InvestigationSettings
    bench: tuple[BenchPaper, ...]
    papers: PaperTexts
    questions: Mapping[str, tuple[PaperQuestion, ...]]
    """By paper: pipeline order, then file order; only the chosen pipelines."""
    sentences: Mapping[tuple[str, str], tuple[str, ...]]
    """Sentence bench, by (pmcid, normalised variant)."""
    prompts: PromptBook = field(default_factory=WORDING.shipped)
    has_truth: bool = True  #: from a bench, or from the files of an import
    findings: tuple[Finding, ...] = ()
    """Findings of loading: missing files, repeats, ids that disagree, ..."""

    @cached_property
    def _papers(self) -> Mapping[str, BenchPaper]:
        return {paper.pmcid: paper for paper in self.bench}

    @cached_property
    def _keyed(self) -> Callable[[str], Mapping[str, PaperQuestion]]:
        return lru_cache(CACHED_PAPERS)(
            lambda pmcid: {q.key: q for q in self.questions.get(pmcid, ())}
        )

    def skip_reason(self, pmcid: str) -> str | None:
        """Return the reason why a paper is never sent, or None."""
        settings = self.settings
        if pmcid not in self.papers:
            needs_no_text = settings.mode == "questions" and settings.closed_book
            return None if needs_no_text else "no_paper_text"
        if settings.context_tokens and not settings.max_chars:
            tokens = len(self.papers.text(pmcid)) / CHARS_PER_TOKEN
            if tokens + settings.max_tokens_extract > settings.context_tokens:
                return "paper_too_long"
        return None

    def paper(self, pmcid: str) -> BenchPaper | None:
        """Return the bench's row of a paper, or None."""
        return self._papers.get(pmcid)

    def question(self, pmcid: str, key: str) -> PaperQuestion | None:
        """Return a paper's question by its key, such as "mcq_drug:30033", or None."""
        return self._keyed(pmcid).get(key)

    def questions_of(self, pmcid: str) -> Mapping[str, PaperQuestion]:
        """Return a paper's questions by their keys."""
        return self._keyed(pmcid)
