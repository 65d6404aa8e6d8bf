"""The tables of a scoring: their columns, and the rows that a paper adds to them.

Tables with a row per paper, variant, question, skip or flip are written while the
answers pass by a second time; those with a row per model or pair are known before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from jobs.paper_investigation import linking
from jobs.paper_investigation.marking.judging import RuleChoice, expected
from jobs.paper_investigation.marking.lenses import Lens
from jobs.paper_investigation.marking.paper import Marked, MarkedPaper
from jobs.paper_investigation.record import Item, Mode
from jobs.paper_investigation.tallies.flips import flips
from jobs.paper_investigation.tallies.grounded import Grounding
from jobs.paper_investigation.variants import variant_class, variant_kind
from runner.messages import ParseFailure
from runner.scorecard import Cell, StreamedRow, Table

WHO = ("model", "replicate", "pmcid")

Cells = tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What rows are made from besides the paper itself."""

    lens: Lens
    other_rules: RuleChoice
    grounding: Grounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """A table that grows with the papers."""

    table: Table
    modes: tuple[Mode, ...]
    rows: Callable[[MarkedPaper, Sources], Iterator[Cells]]


def _papers(paper: MarkedPaper, _: Sources) -> Iterator[Cells]:
    answered = [marked for marked in paper.questions if marked.judgement]
    yield (
        paper.record.title,
        paper.skip,
        len(paper.truth),
        None if paper.predicted is None else len(paper.predicted),
        None if paper.predicted is None else len(paper.recalled),
        paper.recall,
        paper.precision,
        paper.f1,
        paper.question_accuracy,
        paper.pooled_accuracy,
        paper.score,
        len(answered),
        sum(marked.is_right for marked in answered),
        sum(marked.judgement.failed for marked in answered if marked.judgement),
        len(paper.questions) - len(answered),
        len(paper.unasked),
    )


def _variants(paper: MarkedPaper, sources: Sources) -> Iterator[Cells]:
    predicted = paper.predicted or {}
    accuracies = paper.accuracies
    spellings = {**predicted, **paper.truth}
    for variant in dict.fromkeys((*paper.truth, *predicted)):
        asked = paper.links.get(variant, ())
        yield (
            spellings[variant],
            variant,
            variant_class(variant),
            variant in paper.truth,
            variant in predicted if paper.is_parsed else None,
            variant in paper.recalled if paper.is_parsed else None,
            sources.grounding.verdict(paper.record.pmcid, spellings[variant]),
            sum(marked.judgement is not None for marked in asked),
            sum(marked.is_right for marked in asked),
            accuracies.get(variant),
            variant_kind(variant),
        )


def _questions(paper: MarkedPaper, _: Sources) -> Iterator[Cells]:
    uses = paper.uses
    for marked in (*paper.questions, *paper.aside):
        question, judgement = marked.item.question, marked.judgement
        linked = uses.get(question.key, [])
        reply = marked.item.reply
        yield (
            *_named(marked),
            question.variant,
            "; ".join(linked),
            len(linked),
            expected(question),
            judgement.value if judgement else None,
            judgement.rule if judgement else None,
            judgement.right if judgement else None,
            judgement.p_value_right if judgement and not question.is_mcq else None,
            judgement.significance_right if judgement and not question.is_mcq else None,
            reply.finish_reason if reply else None,
            marked.item.absent,
        )


def _skipped(paper: MarkedPaper, sources: Sources) -> Iterator[Cells]:
    if paper.skip is not None:
        failure = paper.listed
        detail = failure.reason if isinstance(failure, ParseFailure) else None
        yield "paper", paper.record.pmcid, paper.skip, detail
    for variant in paper.unlinked:
        yield "variant", paper.truth[variant], "no_questions", None
    for marked in (*paper.questions, *paper.aside):
        if marked.judgement is None:
            yield "question", marked.item.question.key, marked.item.absent, None
    for item in paper.unasked:
        yield "question", item.question.key, "not_asked", None
    if paper.is_parsed:
        counted = (*paper.questions, *paper.aside)
        seen = {marked.item.question.key for marked in counted}
        seen.update(item.question.key for item in paper.unasked)
        for item in paper.record.items:
            if item.question.key not in seen:
                reason = _left_out(item, paper, sources.lens)
                yield "question", item.question.key, reason, item.question.variant


def _left_out(item: Item, paper: MarkedPaper, lens: Lens) -> str:
    settings = lens.stored if paper.record.fixed_links else lens.settings
    names = linking.members(item.question, settings)
    return "over_cap" if any(v in paper.recalled for v in names) else "not_recalled"


def _flips(paper: MarkedPaper, sources: Sources) -> Iterator[Cells]:
    for flip in flips(paper, sources.other_rules):
        marked, judgement = flip.marked, flip.marked.judgement
        yield (
            *_named(marked),
            marked.item.question.variant,
            expected(marked.item.question),
            marked.item.reply.text if marked.item.reply else None,
            judgement.value if judgement else None,
            judgement.rule if judgement else None,
            marked.is_right,
            flip.other.value,
            flip.other.rule,
            flip.other.right,
        )


def _named(marked: Marked) -> Cells:
    question = marked.item.question
    return (
        question.pipeline,
        question.question_id,
        question.annotation_id,
        question.question_type,
        question.table_type,
    )


QUESTION = (
    "pipeline",
    "question_id",
    "annotation_id",
    "question_type",
    "table_type",
    "variant",
)


def _sheet(
    name: str,
    columns: tuple[str, ...],
    rows: Callable[[MarkedPaper, Sources], Iterator[Cells]],
    caption: str,
    *modes: Mode,
) -> Sheet:
    table = Table(name=name, columns=(*WHO, *columns), caption=caption)
    return Sheet(table=table, modes=modes, rows=rows)


SHEETS: tuple[Sheet, ...] = (
    _sheet(
        "papers",
        (
            "title",
            "skip_reason",
            "truth_variants",
            "predicted_variants",
            "recalled_variants",
            "variant_recall",
            "precision",
            "f1",
            "question_accuracy",
            "pooled_accuracy",
            "paper_score",
            "questions",
            "correct",
            "unparsed",
            "missing",
            "not_asked",
        ),
        _papers,
        "One row a paper, model and replicate.",
        "investigate",
        "extract",
    ),
    _sheet(
        "variants",
        (
            "variant",
            "normalized",
            "class",
            "in_truth",
            "predicted",
            "recalled",
            "grounded",
            "questions",
            "correct",
            "accuracy",
            "kind",
        ),
        _variants,
        "One row a truth or predicted variant; grounded: it stands in the text.",
        "investigate",
        "extract",
    ),
    _sheet(
        "questions",
        (
            *QUESTION,
            "counts_for",
            "links",
            "expected",
            "parsed",
            "rule",
            "correct",
            "p_value_correct",
            "significance_correct",
            "finish_reason",
            "missing",
        ),
        _questions,
        "One row a question that was asked; without links it is outside all scores "
        "in mode investigate.",
        "investigate",
        "questions",
    ),
    _sheet(
        "skipped",
        ("level", "item", "reason", "detail"),
        _skipped,
        "What was not asked or has no answer, and why.",
        "investigate",
        "extract",
        "questions",
    ),
    _sheet(
        "flips",
        (
            *QUESTION,
            "expected",
            "reply",
            "parsed",
            "rule",
            "correct",
            "other_parsed",
            "other_rule",
            "other_correct",
        ),
        _flips,
        "Answers whose verdict depends on the rule set.",
        "investigate",
        "questions",
    ),
)


def rows(
    paper: MarkedPaper, sheets: Iterable[Sheet], sources: Sources
) -> Iterator[StreamedRow]:
    """What a paper adds to the *sheets*."""
    record = paper.record
    who = (record.model, record.replicate, record.pmcid)
    for sheet in sheets:
        for cells in sheet.rows(paper, sources):
            yield StreamedRow(table=sheet.table.name, cells=(*who, *cells))
