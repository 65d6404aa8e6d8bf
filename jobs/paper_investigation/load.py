"""Loads all inputs of a run, complete and validated before anything is planned."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from jobs.noticed import Noticed
from jobs.paper_investigation.bench import read_bench
from jobs.paper_investigation.dataset import BenchPaper, Dataset, Question
from jobs.paper_investigation.papers import Papers, open_papers
from jobs.paper_investigation.questions import question_files, read_questions
from jobs.paper_investigation.sentences import read_sentences, unsourced
from jobs.paper_investigation.settings import PIPELINES, Settings
from jobs.paper_investigation.wording import WORDING
from jobs.sampling import draw, report
from runner.errors import UsageError
from runner.job import InputFile

SAMPLE = Path(__file__).parent / "sample"

DATA = ("bench", "papers", "questions", *PIPELINES, "sentence_bench")
"""The settings that name data; without any of them the sample is used."""

INPUTS = (*DATA, "prompts")
"""The settings that name files."""


def with_sample(settings: Settings) -> Settings:
    """Settings that a run can start from.

    Where no input is named at all, the shipped sample's files are filled in; the
    returned object is the given one otherwise, so a caller can tell by identity.

    Raises:
        UsageError: some inputs are named, and one that the mode needs is not.
    """
    if all(getattr(settings, name) is None for name in DATA):
        return settings.model_copy(
            update={
                "bench": SAMPLE / "variant_bench.jsonl",
                "papers": SAMPLE / "papers",
                "questions": SAMPLE / "questions",
                "sentence_bench": SAMPLE / "sentence_bench.jsonl",
            }
        )
    for name in _needed(settings):
        if getattr(settings, name) is None:
            raise UsageError(
                f"Mode {settings.mode} needs --{name}; name no input at all to run "
                "on the shipped sample."
            )
    if settings.mode != "extract" and not _names_questions(settings):
        raise UsageError(
            f"Mode {settings.mode} needs --questions, or a file for one of "
            f"{', '.join(settings.pipelines)}."
        )
    return settings


def inputs(settings: Settings) -> tuple[InputFile, ...]:
    """The files and folders that `load` reads under these settings."""
    named = (
        ("prompts", settings.prompts),
        ("bench", settings.bench),
        ("papers", settings.papers),
        *question_files(settings).items(),
        ("sentence_bench", settings.sentence_bench),
    )
    return tuple(InputFile(setting=name, path=path) for name, path in named if path)


def load(settings: Settings) -> Dataset:
    """Read and validate the inputs that are named.

    An imported run may name none: its answers carry their own truth.
    """
    noticed = Noticed()
    bench: tuple[BenchPaper, ...] = ()
    if settings.bench is not None:
        bench = read_bench(settings.bench, settings, noticed)
    questions: Mapping[str, tuple[Question, ...]] = read_questions(settings, noticed)
    if settings.mode == "questions":
        questions = _some_questions(questions, settings.limit, noticed)
    else:
        bench = _some_papers(bench, questions, settings.limit, noticed)
    wanted = questions if settings.mode == "questions" else {p.pmcid for p in bench}
    papers = open_papers(settings, wanted, noticed)
    _notice_cut(papers, settings, noticed)
    dataset = Dataset(
        settings=settings,
        prompts=WORDING.book(settings.prompts, settings.profile),
        bench=bench,
        papers=papers,
        questions=questions,
        sentences=_sentences(settings, noticed),
    )
    _notice_unsourced(dataset, noticed)
    return replace(dataset, findings=noticed.findings())


def _sentences(
    settings: Settings, noticed: Noticed
) -> Mapping[tuple[str, str], tuple[str, ...]]:
    if settings.sentence_bench is None:
        return {}
    return read_sentences(settings.sentence_bench, settings, noticed)


def _needed(settings: Settings) -> tuple[str, ...]:
    if settings.mode != "questions":
        return ("bench", "papers")
    return () if settings.closed_book else ("papers",)


def _names_questions(settings: Settings) -> bool:
    return settings.questions is not None or any(
        getattr(settings, pipeline) is not None for pipeline in settings.pipelines
    )


def _some_questions(
    questions: Mapping[str, tuple[Question, ...]], limit: int, noticed: Noticed
) -> Mapping[str, tuple[Question, ...]]:
    """A sample of the questions: pipelines and papers keep their share."""
    every = tuple(itertools.chain.from_iterable(questions.values()))
    kept = draw(
        every,
        limit,
        key=lambda question: question.key,
        strata=(lambda question: question.pipeline, lambda question: question.pmcid),
    )
    report(noticed, kept, every, "question", "pipeline and paper")
    keys = {question.key for question in kept}
    cut = {
        pmcid: tuple(q for q in group if q.key in keys)
        for pmcid, group in questions.items()
    }
    return {pmcid: group for pmcid, group in cut.items() if group}


def _some_papers(
    bench: tuple[BenchPaper, ...],
    questions: Mapping[str, tuple[Question, ...]],
    limit: int,
    noticed: Noticed,
) -> tuple[BenchPaper, ...]:
    """A sample of the papers: those that each pipeline asks about keep their share."""
    kept = draw(
        bench,
        limit,
        key=lambda paper: paper.pmcid,
        strata=(
            lambda paper: tuple(
                sorted(
                    {question.pipeline for question in questions.get(paper.pmcid, ())}
                )
            ),
        ),
    )
    report(noticed, kept, bench, "paper", "set of pipelines with questions")
    return kept


def _notice_unsourced(dataset: Dataset, noticed: Noticed) -> None:
    if not dataset.sentences:
        return
    for question in unsourced(dataset):
        noticed.add(
            "sentence_not_in_bench",
            "warn",
            question.pipeline,
            "The sentences of some questions are not among those of the sentence "
            "bench for their paper and variant.",
            example=f"question_id {question.question_id}",
        )


def _notice_cut(papers: Papers, settings: Settings, noticed: Noticed) -> None:
    if not settings.max_chars:
        return
    for pmcid in papers:
        if len(papers.text(pmcid)) > settings.max_chars:
            noticed.add(
                "papers_cut",
                "warn",
                "papers",
                f"Some papers are longer than {settings.max_chars} characters and are "
                "sent without their end (max_chars).",
                example=pmcid,
            )
