"""Reads the bench: papers with curated variants, questions, sentences.

It includes the sentences that annotations are based on. They are shown to people and
never to a model: the multiple-choice questions are these sentences with a gap.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from sys import intern
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    PlainValidator,
    model_validator,
)

from jobs.kit.inputs import cells
from jobs.kit.inputs.cells import InputCell
from jobs.kit.inputs.files import JsonEntry, entries_in
from jobs.kit.inputs.rows import InputFindings, RowModel, RowSource
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.data import (
    LETTERS,
    UNLABELLED,
    BenchPaper,
    InvestigationDataset,
    PaperQuestion,
)
from jobs.paper_investigation.settings import PIPELINES, InvestigationSettings, Pipeline
from runner.errors import DatasetError

PMCID = re.compile(r"PMC[0-9]+")
ANY_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""Ids allowed by `any_id`: safe in file names and in keys, where "/" separates."""


def written(cell: InputCell) -> str:
    """Strip a text, or return a number's digits; "" for a blank."""
    return repr(cell) if isinstance(cell, float) else cells.trimmed(cell)


def _required(cell: InputCell) -> str:
    return cells.filled(written(cell))


def _nulls_as_blank(cell: InputCell) -> InputCell:
    is_list = isinstance(cell, list)
    return ["" if entry is None else entry for entry in cell] if is_list else cell


def _without_blanks(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, texts)))


Written = Annotated[str, PlainValidator(written)]
Required = Annotated[str, PlainValidator(_required)]
Names = Annotated[
    tuple[str, ...], BeforeValidator(_nulls_as_blank), AfterValidator(_without_blanks)
]
"""A list of texts without blank ones."""

# interned, because many rows repeat the same text
Repeated = Annotated[str, PlainValidator(lambda cell: intern(written(cell)))]


class PaperIdRow(RowModel):
    """A row about a paper."""

    pmcid: Required


class BenchRow(PaperIdRow):
    """A paper of the bench."""

    variants: Names = ()
    pmid: Written = ""
    article_title: Written = ""
    raw_variants: tuple[Names, ...] = ()


class SentenceRow(PaperIdRow):
    """Sentences about a variant in a paper."""

    variant: Required
    sentences: Names = ()


Row = TypeVar("Row", bound=RowModel)


def read_entries(
    path: Path, settings: InvestigationSettings, findings: InputFindings
) -> Iterator[JsonEntry]:
    """Yield the objects of an input file, in file order."""
    return entries_in(
        path,
        replaced=findings if settings.encoding_errors == "replace" else None,
        cure="save the file as UTF-8, or use --encoding-errors replace",
    )


def read_rows(
    path: Path,
    model: type[Row],
    settings: InvestigationSettings,
    findings: InputFindings,
) -> Iterator[Row]:
    """Yield the rows of an input file, in file order."""
    source = RowSource(file=path.name)
    for entry in read_entries(path, settings, findings):
        yield model.at(source, entry.line, entry.fields)


def paper_id(row: RowModel, pmcid: str, settings: InvestigationSettings) -> str:
    """Check the *pmcid* of a row and return it."""
    if (ANY_ID if settings.any_id else PMCID).fullmatch(pmcid):
        return pmcid
    remedy = (
        "use 1 to 64 letters, digits, dots, dashes or underscores"
        if settings.any_id
        else "correct it, or accept other ids with --any-id"
    )
    raise row.error(f"pmcid {pmcid!r} is not a paper id ({remedy})")


def read_bench(
    path: Path, settings: InvestigationSettings, findings: InputFindings
) -> tuple[BenchPaper, ...]:
    """Return the papers of a bench file, in file order."""
    papers: dict[str, BenchPaper] = {}
    for row in read_rows(path, BenchRow, settings, findings):
        if not row.variants and settings.profile != "clinpgx-qa":
            raise row.error(
                "variants is empty (a paper needs at least one truth variant)"
            )
        paper = BenchPaper(
            pmcid=paper_id(row, row.pmcid, settings),
            variants=row.variants,
            pmid=row.pmid or None,
            title=row.article_title or None,
            raw_variants=row.raw_variants,
            line=row.line,
        )
        first = papers.setdefault(paper.pmcid, paper)
        if first is not paper:
            raise row.error(
                f"{paper.pmcid} occurs on line {first.line} already (keep "
                "one of the two)"
            )
        _notice_repeats(paper, path.name, settings, findings)
    if not papers:
        raise DatasetError(f"{path.name}: no paper in it (a line a paper is expected).")
    return tuple(papers.values())


def _notice_repeats(
    paper: BenchPaper,
    file: str,
    settings: InvestigationSettings,
    findings: InputFindings,
) -> None:
    distinct_variants = naming.distinct(paper.variants, "keep")
    if len(distinct_variants) < len(paper.variants):
        findings.add(
            "repeated_variants",
            "info",
            file,
            "Some papers list a variant more than once; it counts once.",
            example=paper.pmcid,
        )
    if len(naming.distinct(paper.variants, settings.variant_case)) < len(
        distinct_variants
    ):
        findings.add(
            "merged_variants",
            "info",
            file,
            "Some papers list spellings that fold to one variant; they count once.",
            example=paper.pmcid,
        )


FILES: Mapping[Pipeline, str] = {
    "mcq_variant": "mcq_options/variant_mcq_options.jsonl",
    "mcq_drug": "mcq_options/drug_mcq_options.jsonl",
    "mcq_phenotype": "mcq_options/phenotype_mcq_options.jsonl",
    "study_param": "study_param_questions/study_param_questions.jsonl",
}
"""Path of each pipeline's file in a questions folder."""


def question_files(settings: InvestigationSettings) -> dict[Pipeline, Path]:
    """Return the files of the chosen pipelines, in order.

    A file that is set explicitly takes precedence over the folder's, and is returned
    even if it does not exist, which is an error when it is read.
    """
    files: dict[Pipeline, Path] = {}
    for pipeline in PIPELINES:
        if pipeline not in settings.pipelines:
            continue
        explicit_path: Path | None = getattr(settings, pipeline)
        if explicit_path is not None:
            files[pipeline] = explicit_path
        elif settings.questions is not None:
            path = settings.questions / FILES[pipeline]
            if path.exists():
                files[pipeline] = path
    return files


def read_questions(
    settings: InvestigationSettings, findings: InputFindings
) -> dict[str, tuple[PaperQuestion, ...]]:
    """Return questions by paper, in pipeline order, then file order."""
    files = question_files(settings)
    _notice_missing(files, settings, findings)
    by_paper: dict[str, list[PaperQuestion]] = {}
    for pipeline, path in files.items():
        for question in _read_file(pipeline, path, settings, findings):
            by_paper.setdefault(question.pmcid, []).append(question)
    return {pmcid: tuple(questions) for pmcid, questions in by_paper.items()}


def _notice_missing(
    files: Mapping[Pipeline, Path],
    settings: InvestigationSettings,
    findings: InputFindings,
) -> None:
    chosen = [p for p in PIPELINES if p in settings.pipelines]
    if not files and (settings.questions is None or settings.mode == "extract"):
        return
    if not files:
        expected = ", ".join(FILES[pipeline] for pipeline in chosen)
        raise DatasetError(
            f"{settings.questions}: no question file in it (expected: {expected})."
        )
    for pipeline in chosen:
        if pipeline not in files:
            findings.add(
                "missing_questions",
                "warn",
                pipeline,
                f"There is no question file for {pipeline}; its questions "
                "are not sent.",
            )


def _read_file(
    pipeline: Pipeline,
    path: Path,
    settings: InvestigationSettings,
    findings: InputFindings,
) -> Iterator[PaperQuestion]:
    source = RowSource(file=path.name)
    lines: dict[str, int] = {}
    for entry in read_entries(path, settings, findings):
        line = entry.line
        key = _KeyRow.at(source, line, entry.fields)
        if not key.pmcid or not key.variant:
            findings.add(
                "rows_without_key",
                "warn",
                path.name,
                "Rows without pmcid or variant were left out.",
                example=key.place,
            )
            continue
        question = read_question(pipeline, source, line, entry.fields)
        first = lines.setdefault(question.question_id, line)
        if first != line:
            raise key.error(
                f"question_id {question.question_id} occurs on line {first} "
                "already (ids must be unique within a file)"
            )
        _notice_equal_options(question, path.name, findings)
        yield question


class _KeyRow(RowModel):
    pmcid: Repeated = ""
    variant: Repeated = ""


class _QuestionRow(_KeyRow):
    """A question of any kind; its fields have the names of a `PaperQuestion`."""

    question_id: Written = ""
    annotation_id: Written = ""
    question_type: Repeated = ""
    table_type: Repeated = ""
    gene: Repeated = ""
    drug: Repeated = ""
    phenotype_category: Repeated = ""
    phenotype: Written = ""
    original_sentence: Written = ""
    pmid: Written = ""

    def question(self, pipeline: Pipeline) -> PaperQuestion:
        fields = self.model_dump(exclude={"source"})
        fields["question_id"] = self.question_id or f"L{self.line}"
        return PaperQuestion(pipeline=pipeline, **fields)


class _StudyRow(_QuestionRow):
    """A study-parameter question."""

    sentence: Written = ""
    expected_p_value: Required = Field(validation_alias="expected_answer_p_value")
    expected_significance: Required = Field(
        validation_alias="expected_answer_significance"
    )


def _letter(cell: InputCell) -> str:
    text = _required(cell).lower()
    return text if text == UNLABELLED else cells.word_of(text, LETTERS)


class _ChoiceRow(_QuestionRow):
    """A multiple-choice question."""

    sentence: Required = Field(validation_alias="blanked_sentence")
    option_a: Required = Field(exclude=True)
    option_b: Required = Field(exclude=True)
    option_c: Required = Field(exclude=True)
    option_d: Required = Field(exclude=True)
    correct: Annotated[str, PlainValidator(_letter)] = Field(
        validation_alias="correct_answer"
    )

    def question(self, pipeline: Pipeline) -> PaperQuestion:
        options = self.option_a, self.option_b, self.option_c, self.option_d
        return replace(super().question(pipeline), options=options)

    @model_validator(mode="before")
    @classmethod
    def _older_options(cls, row: dict[str, Any]) -> dict[str, Any]:
        """Convert `options: [{"drug": text, "role": text}]`, with the role correct."""
        if "options" not in row or "option_a" in row:
            return row
        entries = row["options"]
        if not isinstance(entries, list) or len(entries) != len(LETTERS):
            raise ValueError("options is not a list of four entries")
        options = dict(zip(LETTERS, map(_older_text, entries), strict=True))
        for letter, text in options.items():
            if not text:
                raise ValueError(
                    f"options, entry {letter}: no text under drug, phenotype or variant"
                )
        keys = [
            letter
            for letter, entry in zip(LETTERS, entries, strict=True)
            if entry.get("role") == "correct"
        ]
        if len(keys) != 1:
            raise ValueError(
                f"options has {len(keys)} entries with role correct (exactly one is "
                "needed)"
            )
        named = {f"option_{letter}": text for letter, text in options.items()}
        return {**row, **named, "correct_answer": keys[0]}


def _older_text(entry: object) -> str:
    if not isinstance(entry, Mapping):
        return ""
    texts = (entry.get(name) for name in ("drug", "phenotype", "variant"))
    return next((t.strip() for t in texts if isinstance(t, str) and t.strip()), "")


def read_question(
    pipeline: Pipeline, source: RowSource, line: int, fields: Mapping[str, Any]
) -> PaperQuestion:
    """Return the question in the fields of a row."""
    model = _StudyRow if pipeline == "study_param" else _ChoiceRow
    return model.at(source, line, fields).question(pipeline)


def question_fields(question: PaperQuestion) -> dict[str, str]:
    """Return the fields of a row, as read by `read_question`."""
    model = _ChoiceRow if question.is_mcq else _StudyRow
    names = {
        name: str(info.validation_alias or name)
        for name, info in model.model_fields.items()
        if hasattr(question, name) and name != "line"
    }
    fields = {alias: getattr(question, name) for name, alias in names.items()}
    for letter, option in zip(LETTERS, question.options or (), strict=False):
        fields[f"option_{letter}"] = option
    return {name: value for name, value in fields.items() if value}


def _notice_equal_options(
    question: PaperQuestion, file: str, findings: InputFindings
) -> None:
    if question.options and len(set(question.options)) < len(question.options):
        findings.add(
            "equal_options",
            "warn",
            file,
            "Some questions offer the same text twice.",
            example=f"question_id {question.question_id}",
        )


def read_sentences(
    settings: InvestigationSettings, findings: InputFindings
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return sentences by (pmcid, normalised variant), joining equal pairs."""
    sentences: dict[tuple[str, str], tuple[str, ...]] = {}
    if settings.sentence_bench is None:
        return sentences
    for row in read_rows(settings.sentence_bench, SentenceRow, settings, findings):
        key = row.pmcid, naming.normalize(row.variant, settings.variant_case)
        sentences[key] = sentences.get(key, ()) + row.sentences
    return sentences


def sourced(questions: Iterable[PaperQuestion]) -> Iterator[tuple[PaperQuestion, str]]:
    """Yield the questions whose sentence an annotator wrote, with that sentence.

    A `modified_*` question changes a fact on purpose, so its sentence is no evidence.
    """
    for question in questions:
        text = question.original_sentence if question.is_mcq else question.sentence
        if text and not question.question_type.startswith("modified_"):
            yield question, text


def sentences_of(
    dataset: InvestigationDataset, question: PaperQuestion
) -> tuple[str, ...]:
    """Return the bench's sentences for a question: its variant field, then its parts.

    The bench has a line per variant, while a field often joins several.
    """
    case = dataset.settings.variant_case
    names = (
        naming.normalize(question.variant, case),
        *naming.parts(question.variant, case),
    )
    sentences = (dataset.sentences.get((question.pmcid, name), ()) for name in names)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(sentences)))


def unsourced(dataset: InvestigationDataset) -> Iterator[PaperQuestion]:
    """Yield the questions whose sentence is not in the bench for paper and variant."""
    all_questions = itertools.chain.from_iterable(dataset.questions.values())
    for question, text in sourced(all_questions):
        if text not in sentences_of(dataset, question):
            yield question
