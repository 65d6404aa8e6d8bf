"""Imports flat replies: an object a reply, to the very tasks that a run would plan.

A reply names its task by `kind` and ids, or by `stage` and `key` as recorded replies
do.

Bench and questions come from the data options. Lines may stand in any order; of each
only its place is held, so a file may be large.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec

from jobs.kit.inputs.column_map import rename_keys
from jobs.kit.inputs.rows import InputFindings
from jobs.kit.text_format import plural
from jobs.paper_investigation.bench import read_bench, read_questions
from jobs.paper_investigation.import_results import (
    ImportedFile,
    pipeline_of,
    reply_text,
)
from jobs.paper_investigation.rows import JsonRow
from jobs.paper_investigation.settings import InvestigationSettings
from runner.errors import UsageError
from runner.job import ImportedAnswer, TaskSpec
from runner.json_entries import BOM

PaperKey: TypeAlias = tuple[str, int, str]
"""Model, replicate, paper."""


@dataclass(slots=True, kw_only=True)
class _Family:
    """Where the lines about one paper stand; their fields are not held."""

    extraction: JsonRow | None = None
    questions: list[JsonRow] = field(default_factory=list)


def read_flat(source: ImportedFile) -> Iterator[ImportedAnswer]:
    """A family of answers a paper, or, in mode questions, each answer by itself."""
    families, unused = _families(source)
    note = (
        f"{source.name}: {plural(unused, 'extract line')} not used, because "
        "mode=questions scores questions alone."
    )
    notes = (note,) if unused else ()
    alone = source.settings.mode == "questions"
    with source.file.path.open("rb") as file:

        def again(row: JsonRow) -> JsonRow:
            file.seek(row.start)
            line = file.read(row.size).removeprefix(BOM)
            text = line.decode(errors="replace")
            fields = rename_keys(msgspec.json.decode(text), source.file.renamed)
            return _with_ids(replace(row, fields=fields))

        for (model, replicate, pmcid), family in families.items():
            if family.extraction is not None:
                spec = TaskSpec(stage="extract", key=pmcid)
                yield _answer(again(family.extraction), spec, model, replicate)
            for locator in family.questions:
                row = again(locator)
                key = f"{row.text('source_pipeline')}:{row.text('question_id')}"
                spec = TaskSpec(stage="question", key=f"{pmcid}/{key}")
                answer = _answer(row, spec, model, replicate)
                yield replace(answer, descends=not alone, notes=notes)
                notes = ()


def _with_ids(row: JsonRow) -> JsonRow:
    """A reply with kind and ids, which a recorded one has in its stage and key."""
    if "key" not in row.fields or "kind" in row.fields:
        return row
    stage, key = row.required("stage"), row.required("key")
    pmcid, _, question = key.partition("/")
    pipeline, _, number = question.partition(":")
    ids = {
        "kind": stage,
        "pmcid": pmcid,
        "source_pipeline": pipeline,
        "question_id": number,
    }
    return replace(row, fields={**ids, **row.fields})


def _answer(row: JsonRow, spec: TaskSpec, model: str, replicate: int) -> ImportedAnswer:
    error = row.text("error") or None
    return ImportedAnswer(
        spec=spec,
        model=model,
        replicate=replicate,
        text=None if error else reply_text(row, "response"),
        finish_reason=row.text("finish_reason") or "stop",
        error=error,
    )


def _families(source: ImportedFile) -> tuple[dict[PaperKey, _Family], int]:
    """Every line checked, by the paper it is about, and how many are not used."""
    settings = source.settings
    papers, question_papers = _papers(settings), _question_papers(settings)
    families: dict[PaperKey, _Family] = {}
    unused = 0
    for row in map(_with_ids, source.rows()):
        model, replicate = source.model_of(row), source.replicate_of(row)
        locator = replace(row, fields={})
        kind = row.text("kind")
        if kind == "extract":
            pmcid = source.paper_of(row)
            if settings.mode == "questions":
                unused += 1
                continue
            if pmcid not in papers:
                raise row.error(f"{pmcid} is not in the bench (check --bench)")
            family = families.setdefault((model, replicate, pmcid), _Family())
            if family.extraction is not None:
                raise row.error(
                    f"{model} answers about {pmcid} on line "
                    f"{family.extraction.line} already (keep one of the two)"
                )
            family.extraction = locator
        elif kind == "question":
            pmcid = _question_paper(row, question_papers)
            family = families.setdefault((model, replicate, pmcid), _Family())
            family.questions.append(locator)
        else:
            raise row.error(f"kind is {kind[:20]!r} (extract or question)")
    if settings.mode != "questions":
        _require_extractions(families)
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


def _question_paper(row: JsonRow, question_papers: Mapping[str, str]) -> str:
    key = f"{pipeline_of(row, 'source_pipeline')}:{row.required('question_id')}"
    pmcid = question_papers.get(key)
    if pmcid is None:
        raise row.error(f"question {key} is unknown (check --questions)")
    return pmcid


def _require_extractions(families: Mapping[PaperKey, _Family]) -> None:
    for (model, _, pmcid), family in families.items():
        if family.extraction is None:
            raise family.questions[0].error(
                f"{model} has no extract line for {pmcid} (add it, or import with "
                "--set mode=questions)"
            )
