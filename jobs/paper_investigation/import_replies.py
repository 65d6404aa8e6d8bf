"""Imports flat replies: an object a reply, to the very tasks that a run would plan.

A reply names its task by `kind` and ids, or by `stage` and `key` as recorded replies
do.

Bench and questions come from the data options. Lines may stand in any order; of each
only its place is held, so a file may be large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import model_validator

from jobs.kit.inputs.cells import BLANK, one_of
from jobs.kit.inputs.column_map import rename_keys
from jobs.kit.inputs.files import JsonEntry, object_at
from jobs.kit.inputs.rows import InputFindings
from jobs.kit.text_format import plural
from jobs.paper_investigation.bench import (
    Written,
    read_bench,
    read_questions,
    written,
)
from jobs.paper_investigation.import_results import (
    ImportedFile,
    PipelineName,
    ReplyRow,
)
from jobs.paper_investigation.settings import InvestigationSettings
from runner.errors import UsageError
from runner.job import ImportedAnswer, TaskSpec

PaperKey: TypeAlias = tuple[str, int, str]
"""Model, replicate, paper."""


class _FlatRow(ReplyRow):
    """A reply; a recorded one has its kind and ids in its stage and key."""

    kind: Annotated[Literal["extract", "question"], one_of(("extract", "question"))]
    source_pipeline: PipelineName | None = None
    question_id: Written = ""

    @model_validator(mode="before")
    @classmethod
    def _with_ids(cls, row: dict[str, Any]) -> dict[str, Any]:
        if "key" not in row or "kind" in row:
            return row
        stage, key = written(row.get("stage")), written(row["key"])
        for name, value in (("stage", stage), ("key", key)):
            if not value:
                raise ValueError(f"{name} {BLANK}")
        pmcid, _, question = key.partition("/")
        ids: dict[str, Any] = {"kind": stage, "pmcid": pmcid}
        if question:
            ids["source_pipeline"], _, ids["question_id"] = question.partition(":")
        return {**ids, **row}

    @property
    def question(self) -> str:
        """The key of the question that it answers."""
        for name, value in (
            ("source_pipeline", self.source_pipeline),
            ("question_id", self.question_id),
        ):
            if not value:
                raise self.error(f"{name} {BLANK}")
        return f"{self.source_pipeline}:{self.question_id}"


@dataclass(slots=True, kw_only=True)
class _Family:
    """Where the lines about one paper stand; their fields are not held."""

    extraction: JsonEntry | None = None
    questions: list[JsonEntry] = field(default_factory=list)


def read_flat(source: ImportedFile) -> Iterator[ImportedAnswer]:
    """A family of answers a paper, or, in mode questions, each answer by itself."""
    families, unused = _families(source)
    note = (
        f"{source.name}: {plural(unused, 'extract line')} not used, because "
        "mode=questions scores questions alone."
    )
    notes = (note,) if unused else ()
    alone = source.settings.mode == "questions"

    def again(entry: JsonEntry) -> _FlatRow:
        fields = object_at(source.file.path, entry.start, entry.size)
        return _FlatRow.at(
            source.source, entry.line, rename_keys(fields, source.file.renamed)
        )

    for (_, _, pmcid), family in families.items():
        if family.extraction is not None:
            row = again(family.extraction)
            spec = TaskSpec(stage="extract", key=pmcid)
            yield source.answer(row, spec, row.response, row.failure)
        for entry in family.questions:
            row = again(entry)
            spec = TaskSpec(stage="question", key=f"{pmcid}/{row.question}")
            answer = source.answer(row, spec, row.response, row.failure)
            yield replace(answer, descends=not alone, notes=notes)
            notes = ()


def _families(source: ImportedFile) -> tuple[dict[PaperKey, _Family], int]:
    """Every line checked, by the paper it is about, and how many are not used."""
    settings = source.settings
    papers, question_papers = _papers(settings), _question_papers(settings)
    families: dict[PaperKey, _Family] = {}
    unused = 0
    for entry in source.entries():
        row = _FlatRow.at(source.source, entry.line, entry.fields)
        model, replicate = source.identity(row)
        place = replace(entry, fields={})
        if row.kind == "question":
            pmcid = question_papers.get(row.question, "")
            if not pmcid:
                raise row.error(
                    f"question {row.question} is unknown (check --questions)"
                )
            family = families.setdefault((model, replicate, pmcid), _Family())
            family.questions.append(place)
            continue
        pmcid = source.paper_of(row, entry.fields)
        if settings.mode == "questions":
            unused += 1
            continue
        if pmcid not in papers:
            raise row.error(f"{pmcid} is not in the bench (check --bench)")
        family = families.setdefault((model, replicate, pmcid), _Family())
        if family.extraction is not None:
            raise row.error(
                f"{model} answers about {pmcid} on line {family.extraction.line} "
                "already (keep one of the two)"
            )
        family.extraction = place
    if settings.mode != "questions":
        for (model, _, pmcid), family in families.items():
            if family.extraction is None:
                raise source.source.error(
                    family.questions[0].line,
                    f"{model} has no extract line for {pmcid} (add it, or import with "
                    "--set mode=questions)",
                )
    return families, unused


def _papers(settings: InvestigationSettings) -> frozenset[str]:
    if settings.mode == "questions":
        return frozenset()
    if settings.bench is None:
        raise UsageError(
            "Flat replies need the bench they answer: name it with --bench."
        )
    bench = read_bench(settings.bench, settings, InputFindings())
    return frozenset(paper.pmcid for paper in bench)


def _question_papers(settings: InvestigationSettings) -> Mapping[str, str]:
    """The paper of each known question, by pipeline and id."""
    questions = read_questions(settings, InputFindings())
    return {q.key: pmcid for pmcid, group in questions.items() for q in group}
