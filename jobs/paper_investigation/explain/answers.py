"""One question on a page: what was shown, what was expected, what each model said."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.paper_investigation.dataset import Dataset, Question
from jobs.paper_investigation.explain.selection import Case
from jobs.paper_investigation.marking.judging import (
    Judgement,
    RuleChoice,
    expected,
    judge,
)
from jobs.paper_investigation.marking.paper import MarkedPaper
from jobs.paper_investigation.record import Item
from jobs.paper_investigation.request import question_text
from jobs.paper_investigation.sentences import sentences_of
from jobs.paper_investigation.settings import Rules, Settings
from jobs.quoted import quoted

BOTH: tuple[Rules, ...] = ("robust", "clinpgx-qa")


def question_lines(question: Question, case: Case, dataset: Dataset) -> Iterator[str]:
    """The question as it is asked, then each model's reply and its worth."""
    settings = dataset.settings
    kind = question.question_type or "of no stated type"
    yield f"{question.key}  {kind}  variant: {question.variant}"
    for sentence in sentences_of(dataset, question):
        yield f"  source     {sentence}"
    yield "  prompt"
    if question.options or question.sentence or question.drug:
        yield from quoted(question_text(dataset, question))
    else:
        yield "      (the imported file does not hold it)"
    yield f"  expected   {expected(question)}"
    for paper in case.papers:
        for item in paper.record.items:
            if item.question.key == question.key:
                yield from _answer_lines(item, paper, settings)


def _answer_lines(item: Item, paper: MarkedPaper, settings: Settings) -> Iterator[str]:
    record = paper.record
    yield f"  {record.model}, replicate {record.replicate}"
    if item.task is None:
        yield "    not asked: no variant that it names was recalled"
        return
    task = f"task {item.task}"
    if item.batch:
        task += f", one of {len(item.batch.keys)} questions"
    if item.reply is None:
        yield f"    no reply: {item.absent} ({task})"
        return
    yield f"    reply ({task}, ended: {item.reply.finish_reason})"
    yield from quoted(item.reply.text)
    uses = paper.uses.get(item.question.key, [])
    if record.mode == "investigate":
        counts = ", ".join(paper.truth[name] for name in uses) or "no recalled variant"
        yield f"    counts for {counts}"
    for rules in BOTH:
        choice = RuleChoice(
            lists=rules, letters=rules, p_values=rules, tolerance=settings.p_tolerance
        )
        judgement = judge(item, choice)
        if judgement is not None:
            yield f"    {rules:<10} {_verdict(judgement)}"


def _verdict(judgement: Judgement) -> str:
    worth = "right" if judgement.right else "wrong"
    if judgement.failed:
        return f"{worth}: could not be read, {judgement.rule}"
    detail = ""
    if judgement.p_value is not None and not judgement.right:
        off = [
            name
            for name, fits in (
                ("p-value", judgement.p_value_right),
                ("significance", judgement.significance_right),
            )
            if not fits
        ]
        detail = f" ({' and '.join(off)} off)"
    return f"{worth}{detail}: read {judgement.value} by rule {judgement.rule}"
