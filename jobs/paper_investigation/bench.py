"""Reads the bench: papers with curated variants, questions, sentences.

It holds the sentences that annotations were made of. They are shown to people and
never to a model: the multiple-choice questions are these sentences with a gap.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from sys import intern
from typing import cast

from jobs.kit.inputs.rows import InputFindings
from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.data import (
    BenchPaper,
    InvestigationDataset,
    PaperQuestion,
)
from jobs.paper_investigation.rows import JsonRow, read_rows
from jobs.paper_investigation.settings import PIPELINES, InvestigationSettings, Pipeline
from runner.errors import DatasetError

PMCID = re.compile(r"PMC[0-9]+")
ANY_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""With `any_id`: still safe in file names and in keys, where "/" separates."""


def read_bench(
    path: Path, settings: InvestigationSettings, findings: InputFindings
) -> tuple[BenchPaper, ...]:
    """The papers of a bench file, in file order."""
    papers: dict[str, BenchPaper] = {}
    for row in read_rows(path, settings.encoding_errors, findings):
        paper = _paper(row, settings)
        first = papers.setdefault(paper.pmcid, paper)
        if first is not paper:
            raise row.error(
                f"{paper.pmcid} occurs on line {first.line} already (keep "
                "one of the two)"
            )
        _notice_repeats(paper, row.file, settings, findings)
    if not papers:
        raise DatasetError(f"{path.name}: no paper in it (a line a paper is expected).")
    return tuple(papers.values())


def paper_id(row: JsonRow, settings: InvestigationSettings) -> str:
    """The row's `pmcid`, checked."""
    pmcid = row.required("pmcid")
    if (ANY_ID if settings.any_id else PMCID).fullmatch(pmcid):
        return pmcid
    remedy = (
        "use 1 to 64 letters, digits, dots, dashes or underscores"
        if settings.any_id
        else "correct it, or accept other ids with --any-id"
    )
    raise row.error(f"pmcid {pmcid!r} is not a paper id ({remedy})")


def _paper(row: JsonRow, settings: InvestigationSettings) -> BenchPaper:
    pmcid = paper_id(row, settings)
    variants = row.texts("variants")
    if not variants and settings.profile != "clinpgx-qa":
        raise row.error("variants is empty (a paper needs at least one truth variant)")
    return BenchPaper(
        pmcid=pmcid,
        variants=variants,
        pmid=row.text("pmid") or None,
        title=row.text("article_title") or None,
        raw_variants=row.groups("raw_variants"),
        line=row.line,
    )


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
"""Where each pipeline's file stands in a questions folder."""

LETTERS = ("a", "b", "c", "d")

KNOWN_FIELDS = frozenset(
    {
        "question_id",
        "pmcid",
        "pmid",
        "variant",
        "annotation_id",
        "question_type",
        "table_type",
        "blanked_sentence",
        *(f"option_{letter}" for letter in LETTERS),
        "options",
        "correct_answer",
        "original_sentence",
        "sentence",
        "gene",
        "drug",
        "phenotype_category",
        "phenotype",
        "expected_answer_p_value",
        "expected_answer_significance",
    }
)
"""Fields of a row that a question has a place for."""


def question_files(settings: InvestigationSettings) -> dict[Pipeline, Path]:
    """The files these settings name or find, for the chosen pipelines, in order.

    A file named by itself wins over the folder's; one that is named is always there,
    so that its absence is an error when it is read.
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
    """Questions by paper: pipeline order, then file order."""
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
    lines: dict[str, int] = {}
    for row in read_rows(path, settings.encoding_errors, findings):
        if not row.text("pmcid") or not row.text("variant"):
            findings.add(
                "rows_without_key",
                "warn",
                row.file,
                "Rows without pmcid or variant were left out.",
                example=f"line {row.line}",
            )
            continue
        question = read_question(pipeline, row)
        first = lines.setdefault(question.question_id, row.line)
        if first != row.line:
            raise row.error(
                f"question_id {question.question_id} occurs on line {first} "
                "already (ids must be unique within a file)"
            )
        _notice_equal_options(question, row.file, findings)
        yield question


def read_question(pipeline: Pipeline, row: JsonRow) -> PaperQuestion:
    """The question a row holds; `pmcid` and `variant` are known to be there."""
    # what many rows repeat is held once
    options, correct = _choices(row) if pipeline != "study_param" else (None, None)
    is_mcq = options is not None
    return PaperQuestion(
        pipeline=pipeline,
        question_id=row.text("question_id") or f"L{row.line}",
        pmcid=intern(row.text("pmcid")),
        variant=intern(row.text("variant")),
        annotation_id=row.text("annotation_id"),
        question_type=intern(row.text("question_type")),
        table_type=intern(row.text("table_type")),
        sentence=row.required("blanked_sentence") if is_mcq else row.text("sentence"),
        options=options,
        correct=correct,
        gene=intern(row.text("gene")),
        drug=intern(row.text("drug")),
        phenotype_category=intern(row.text("phenotype_category")),
        phenotype=row.text("phenotype"),
        expected_p_value="" if is_mcq else row.required("expected_answer_p_value"),
        expected_significance=(
            "" if is_mcq else row.required("expected_answer_significance")
        ),
        original_sentence=row.text("original_sentence"),
        pmid=row.text("pmid"),
        line=row.line,
        unknown=tuple(
            item for item in row.fields.items() if item[0] not in KNOWN_FIELDS
        ),
    )


def _choices(row: JsonRow) -> tuple[tuple[str, str, str, str], str]:
    """The option texts of a to d, and the key."""
    if "options" in row.fields and "option_a" not in row.fields:
        return _older_choices(row)
    options = tuple(row.required(f"option_{letter}") for letter in LETTERS)
    correct = row.required("correct_answer").lower()
    if correct not in LETTERS:
        raise row.error(f"correct_answer is {correct[:20]!r} (one of a, b, c, d)")
    return cast("tuple[str, str, str, str]", options), correct


def _older_choices(row: JsonRow) -> tuple[tuple[str, str, str, str], str]:
    """The form `options: [{"drug": text, "role": text}]`; the key has role correct."""
    entries = row.fields["options"]
    if not isinstance(entries, list) or len(entries) != len(LETTERS):
        raise row.error("options is not a list of four entries")
    texts: list[str] = []
    keys: list[str] = []
    for letter, entry in zip(LETTERS, entries, strict=True):
        text = _older_text(entry)
        if not text:
            raise row.error(
                f"options, entry {letter}: no text under drug, phenotype or variant"
            )
        texts.append(text)
        if entry.get("role") == "correct":
            keys.append(letter)
    if len(keys) != 1:
        raise row.error(
            f"options has {len(keys)} entries with role correct (exactly one is needed)"
        )
    return (texts[0], texts[1], texts[2], texts[3]), keys[0]


def _older_text(entry: object) -> str:
    if not isinstance(entry, Mapping):
        return ""
    for name in ("drug", "phenotype", "variant"):
        text = entry.get(name)
        if isinstance(text, str) and text.strip():
            return text.strip()
    return ""


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
    path: Path, settings: InvestigationSettings, findings: InputFindings
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Sentences by (pmcid, normalised variant); lines of one pair are joined."""
    sentences: dict[tuple[str, str], tuple[str, ...]] = {}
    for row in read_rows(path, settings.encoding_errors, findings):
        variant = naming.normalize(row.required("variant"), settings.variant_case)
        key = row.required("pmcid"), variant
        sentences[key] = sentences.get(key, ()) + row.texts("sentences")
    return sentences


def sourced(questions: Iterable[PaperQuestion]) -> Iterator[tuple[PaperQuestion, str]]:
    """The questions whose sentence an annotator wrote, with that sentence.

    A `modified_*` question changes a fact on purpose, so its sentence proves nothing.
    """
    for question in questions:
        text = question.original_sentence if question.is_mcq else question.sentence
        if text and not question.question_type.startswith("modified_"):
            yield question, text


def sentences_of(
    dataset: InvestigationDataset, question: PaperQuestion
) -> tuple[str, ...]:
    """The bench's sentences for a question: its field as it stands, then its parts.

    The bench has a line a single variant, while a field often joins several.
    """
    case = dataset.settings.variant_case
    names = (
        naming.normalize(question.variant, case),
        *naming.parts(question.variant, case),
    )
    sentences = (dataset.sentences.get((question.pmcid, name), ()) for name in names)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(sentences)))


def unsourced(dataset: InvestigationDataset) -> Iterator[PaperQuestion]:
    """The questions whose sentence is not among those of their paper and variant."""
    all_questions = itertools.chain.from_iterable(dataset.questions.values())
    for question, text in sourced(all_questions):
        if text not in sentences_of(dataset, question):
            yield question
