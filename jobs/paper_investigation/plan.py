"""Plans the tasks of each stage, links questions to variants, parses replies.

Pure and lazy. The plan of a run is derived again from data and stored replies when it
is resumed or scored, so the same inputs must yield the same specs in the same order.

Never raises on model output, nor on a question that is missing in the data: both are a
`ParseFailure`, counted by its reason.

Planning and scoring call the same functions here, so that requests and counts agree. A
question belongs to every variant that its `variant` field names (`variant_link=split`),
or to the field as one variant (`whole`). It is sent once, regardless of the number of
recalled variants that it belongs to; its verdict counts for each of them.

Variants are normalised texts throughout (`variants.normalize`).
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

from jobs.paper_investigation import variants as naming
from jobs.paper_investigation.data import InvestigationDataset, PaperQuestion
from jobs.paper_investigation.parsing import Letter, StudyAnswer, VariantList
from jobs.paper_investigation.prompts import (
    batch_context,
    batch_of,
    paper_of,
    question_of,
)
from jobs.paper_investigation.records import decode_question
from jobs.paper_investigation.rule_sets import (
    parse_batch,
    parse_letter,
    parse_list,
    parse_study,
)
from jobs.paper_investigation.settings import Case, InvestigationSettings, Link
from runner.job import Answer, Stage, Task, TaskSpec
from runner.messages import ParseFailure, Reply

Entry = TypeVar("Entry")


def question_variants(
    question: PaperQuestion, settings: InvestigationSettings
) -> tuple[str, ...]:
    """Return the distinct variants that *question* belongs to, in the field's order."""
    return _members(question.variant, settings.variant_link, settings.variant_case)


# Every model's answers about a paper need the same fields again.
@lru_cache(maxsize=1 << 16)
def _members(field: str, link: Link, case: Case) -> tuple[str, ...]:
    if link == "whole":
        return (naming.normalize(field, case),)
    return naming.parts(field, case)


def truth_variants(dataset: InvestigationDataset, pmcid: str) -> Mapping[str, str]:
    """Return a paper's curated variants, in file order, with their first spelling."""
    paper = dataset.paper(pmcid)
    if paper is None:
        return {}
    return naming.distinct(paper.variants, dataset.settings.variant_case)


def recalled_variants(
    dataset: InvestigationDataset, pmcid: str, predicted: Container[str]
) -> tuple[str, ...]:
    """Filter the truth variants by *predicted*, in truth order."""
    return tuple(v for v in truth_variants(dataset, pmcid) if v in predicted)


def links(
    questions: Iterable[PaperQuestion],
    variants: Iterable[str],
    settings: InvestigationSettings,
) -> dict[str, tuple[PaperQuestion, ...]]:
    """Return the questions of each of *variants*, in the order of *questions*, capped.

    Every variant has an entry, in the given order; it is empty if no question names it.
    """
    return link(((question, question) for question in questions), variants, settings)


def link(
    entries: Iterable[tuple[Entry, PaperQuestion]],
    variants: Iterable[str],
    settings: InvestigationSettings,
) -> dict[str, tuple[Entry, ...]]:
    """Link like `links`, with values other than questions, such as keys."""
    by_variant: dict[str, list[Entry]] = {variant: [] for variant in variants}
    spelling, case = settings.variant_link, settings.variant_case
    for entry, question in entries:
        for variant in _members(question.variant, spelling, case):
            if variant in by_variant:
                by_variant[variant].append(entry)
    cap = settings.max_questions_per_variant or None
    return {variant: tuple(linked[:cap]) for variant, linked in by_variant.items()}


def linked_questions(
    dataset: InvestigationDataset, pmcid: str, variants: Sequence[str]
) -> dict[str, tuple[PaperQuestion, ...]]:
    """Return the paper's questions by variant in pipeline and file order, capped."""
    return links(dataset.questions.get(pmcid, ()), variants, dataset.settings)


def variant_questions(
    dataset: InvestigationDataset, pmcid: str, variants: Sequence[str]
) -> tuple[PaperQuestion, ...]:
    """Return the questions of *variants*, each once, in pipeline and file order."""
    groups = linked_questions(dataset, pmcid, variants).values()
    keys = {question.key for group in groups for question in group}
    return tuple(q for q in dataset.questions.get(pmcid, ()) if q.key in keys)


def batches(
    groups: Mapping[str, tuple[PaperQuestion, ...]], size: int
) -> tuple[tuple[PaperQuestion, ...], ...]:
    """Split each variant's questions into chunks of *size*; every question once.

    A question of several variants goes to the first of them that has it.
    """
    taken: set[str] = set()
    cut: list[tuple[PaperQuestion, ...]] = []
    for group in groups.values():
        new_questions = [question for question in group if question.key not in taken]
        taken.update(question.key for question in new_questions)
        cut.extend(
            tuple(new_questions[start : start + size])
            for start in range(0, len(new_questions), size)
        )
    return tuple(cut)


def plan_tasks(dataset: InvestigationDataset) -> Iterator[TaskSpec]:
    """Yield the extraction of each paper, or, in mode questions, each question.

    A paper without a possible request is planned as skipped, with its reason.
    """
    if dataset.settings.mode != "questions":
        for paper in dataset.bench:
            yield TaskSpec(
                stage="extract", key=paper.pmcid, skip=dataset.skip_reason(paper.pmcid)
            )
        return
    for pmcid in _question_papers(dataset):
        links = _by_field(dataset.questions[pmcid], dataset.settings)
        skip = dataset.skip_reason(pmcid)
        yield from _question_specs(
            dataset.settings, pmcid, dataset.questions[pmcid], links, skip
        )


def titles(dataset: InvestigationDataset) -> Iterator[tuple[str, str]]:
    """Yield the papers with their titles, if the bench has them."""
    return ((paper.pmcid, paper.title or "") for paper in dataset.bench)


def follow_up(
    dataset: InvestigationDataset, group: tuple[Answer, ...]
) -> Iterator[TaskSpec]:
    """Yield the questions about recalled variants; none if the extraction failed."""
    (answer,) = group
    settings = dataset.settings
    if settings.mode != "investigate" or not isinstance(answer.parsed, VariantList):
        return
    pmcid = paper_of(answer.task.key)
    predicted = naming.distinct(answer.parsed.entries, settings.variant_case)
    variants = recalled_variants(dataset, pmcid, predicted)
    if settings.ask == "all":
        # recalled variants first, so that their batches equal those of a run without
        # `all`
        variants += tuple(
            v for v in truth_variants(dataset, pmcid) if v not in predicted
        )
    links = linked_questions(dataset, pmcid, variants)
    yield from _question_specs(
        settings, pmcid, variant_questions(dataset, pmcid, variants), links
    )


def _question_specs(
    settings: InvestigationSettings,
    pmcid: str,
    questions: Iterable[PaperQuestion],
    links: Mapping[str, tuple[PaperQuestion, ...]],
    skip: str | None = None,
) -> Iterator[TaskSpec]:
    """Yield one spec per question, or per batch of the same questions."""
    if settings.batch_questions:
        for batch in batches(links, settings.batch_size):
            yield TaskSpec(
                stage="batch",
                key=f"{pmcid}/b/{batch[0].key}",
                skip=skip,
                context=batch_context(batch),
            )
        return
    for question in questions:
        yield TaskSpec(stage="question", key=f"{pmcid}/{question.key}", skip=skip)


def _question_papers(dataset: InvestigationDataset) -> Iterator[str]:
    """Yield papers with questions: bench order, then that of the question files."""
    bench_pmcids = [p.pmcid for p in dataset.bench if p.pmcid in dataset.questions]
    yield from bench_pmcids
    seen = set(bench_pmcids)
    yield from (pmcid for pmcid in dataset.questions if pmcid not in seen)


def _by_field(
    questions: Iterable[PaperQuestion], settings: InvestigationSettings
) -> dict[str, tuple[PaperQuestion, ...]]:
    """Return each question under the first variant it names, uncapped."""
    groups: dict[str, list[PaperQuestion]] = {}
    for question in questions:
        names = question_variants(question, settings)
        groups.setdefault(names[0] if names else "", []).append(question)
    return {variant: tuple(group) for variant, group in groups.items()}


UNKNOWN = ParseFailure(reason="unknown_question")


def read_extraction(
    dataset: InvestigationDataset,
    task: Task,  # noqa: ARG001 - every stage's parser has the same form
    reply: Reply,
) -> VariantList | ParseFailure:
    """Parse the variants in a reply."""
    return parse_list(reply, dataset.settings.list_rules)


def read_question(
    dataset: InvestigationDataset, task: Task, reply: Reply
) -> Letter | StudyAnswer | ParseFailure:
    """Parse the answer to one question."""
    try:
        question = _question(dataset, task)
    except KeyError:
        return UNKNOWN
    if question.is_mcq:
        return parse_letter(reply, dataset.settings.letter_rules, question.options)
    return parse_study(reply, dataset.settings.p_rules)


def read_batch(
    dataset: InvestigationDataset, task: Task, reply: Reply
) -> tuple[Letter | StudyAnswer | ParseFailure, ...] | ParseFailure:
    """Parse the answers to a batch, in its order; one failure if none is readable."""
    try:
        questions = batch_of(dataset, task)
    except KeyError:
        return UNKNOWN
    answers = parse_batch(
        reply,
        tuple(question.kind for question in questions),
        letter_rules=dataset.settings.letter_rules,
        p_rules=dataset.settings.p_rules,
        options=tuple(question.options for question in questions),
    )
    failures = [answer for answer in answers if isinstance(answer, ParseFailure)]
    return failures[0] if failures and len(failures) == len(answers) else answers


def _question(dataset: InvestigationDataset, task: Task) -> PaperQuestion:
    """Return the question of a task; an imported task contains it."""
    if task.context is not None:
        return decode_question(task.context).question
    return question_of(dataset, task)


STAGES = (
    Stage(name="extract", parse=read_extraction),
    Stage(name="question", parse=read_question, follows=False),
    Stage(name="batch", parse=read_batch, follows=False),
)
