"""Builds the tables of a scoring: rows per model, pair, paper, variant and question.

Tables with a row per paper, variant, question, skip or flip are written while the
answers pass by a second time; those with a row per model or pair are known before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.kit.comparison.models import TESTED_COLUMNS, difference_cells, tested_cells
from jobs.paper_investigation import plan
from jobs.paper_investigation.grading import GradedAnswer, GradedPaper
from jobs.paper_investigation.judging import RuleChoice, ScoringVariant, expected
from jobs.paper_investigation.model_pairs import PaperModelPair
from jobs.paper_investigation.paper_scores import AVERAGES
from jobs.paper_investigation.question_counts import flips
from jobs.paper_investigation.records import Fact, Mode, QuestionItem
from jobs.paper_investigation.run_tally import RecordedAgreement
from jobs.paper_investigation.variant_counts import Grounding
from jobs.paper_investigation.variants import variant_class, variant_kind
from runner.messages import ParseFailure
from runner.scorecard import Cell, Metric, StreamedRow, Table

KEY_COLUMNS = ("model", "replicate", "pmcid")

Cells = tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSources:
    """What rows are made from besides the paper itself."""

    lens: ScoringVariant
    other_rules: RuleChoice
    grounding: Grounding


@dataclass(frozen=True, slots=True, kw_only=True)
class GrowingTable:
    """A table that grows with the papers."""

    table: Table
    modes: tuple[Mode, ...]
    rows: Callable[[GradedPaper, RowSources], Iterator[Cells]]


def _papers(paper: GradedPaper, _: RowSources) -> Iterator[Cells]:
    answered = [
        graded_answer for graded_answer in paper.answers if graded_answer.judgement
    ]
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
        sum(graded_answer.is_right for graded_answer in answered),
        sum(
            graded_answer.judgement.failed
            for graded_answer in answered
            if graded_answer.judgement
        ),
        len(paper.answers) - len(answered),
        len(paper.unasked),
    )


def _variants(paper: GradedPaper, sources: RowSources) -> Iterator[Cells]:
    predicted = paper.predicted or {}
    accuracies = paper.accuracies
    spellings = {**predicted, **paper.truth}
    for variant in dict.fromkeys((*paper.truth, *predicted)):
        answers = paper.links.get(variant, ())
        yield (
            spellings[variant],
            variant,
            variant_class(variant),
            variant in paper.truth,
            variant in predicted if paper.is_parsed else None,
            variant in paper.recalled if paper.is_parsed else None,
            sources.grounding.verdict(paper.record.pmcid, spellings[variant]),
            sum(graded_answer.judgement is not None for graded_answer in answers),
            sum(graded_answer.is_right for graded_answer in answers),
            accuracies.get(variant),
            variant_kind(variant),
        )


def _questions(paper: GradedPaper, _: RowSources) -> Iterator[Cells]:
    variants_by_question = paper.variants_by_question
    for graded_answer in (*paper.answers, *paper.missed_variant_answers):
        question, judgement = graded_answer.item.question, graded_answer.judgement
        linked = variants_by_question.get(question.key, [])
        reply = graded_answer.item.reply
        yield (
            *_question_cells(graded_answer),
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
            graded_answer.item.absent,
        )


def _skipped(paper: GradedPaper, sources: RowSources) -> Iterator[Cells]:
    if paper.skip is not None:
        failure = paper.parsed_list
        detail = failure.reason if isinstance(failure, ParseFailure) else None
        yield "paper", paper.record.pmcid, paper.skip, detail
    for variant in paper.unlinked:
        yield "variant", paper.truth[variant], "no_questions", None
    for graded_answer in (*paper.answers, *paper.missed_variant_answers):
        if graded_answer.judgement is None:
            yield (
                "question",
                graded_answer.item.question.key,
                graded_answer.item.absent,
                None,
            )
    for item in paper.unasked:
        yield "question", item.question.key, "not_asked", None
    if paper.is_parsed:
        counted = (*paper.answers, *paper.missed_variant_answers)
        seen = {graded_answer.item.question.key for graded_answer in counted}
        seen.update(item.question.key for item in paper.unasked)
        for item in paper.record.items:
            if item.question.key not in seen:
                reason = _left_out(item, paper, sources.lens)
                yield "question", item.question.key, reason, item.question.variant


def _left_out(item: QuestionItem, paper: GradedPaper, lens: ScoringVariant) -> str:
    settings = lens.stored if paper.record.fixed_links else lens.settings
    names = plan.question_variants(item.question, settings)
    return "over_cap" if any(v in paper.recalled for v in names) else "not_recalled"


def _flips(paper: GradedPaper, sources: RowSources) -> Iterator[Cells]:
    for flip in flips(paper, sources.other_rules):
        graded_answer, judgement = flip.graded_answer, flip.graded_answer.judgement
        yield (
            *_question_cells(graded_answer),
            graded_answer.item.question.variant,
            expected(graded_answer.item.question),
            graded_answer.item.reply.text if graded_answer.item.reply else None,
            judgement.value if judgement else None,
            judgement.rule if judgement else None,
            graded_answer.is_right,
            flip.other.value,
            flip.other.rule,
            flip.other.right,
        )


def _question_cells(graded_answer: GradedAnswer) -> Cells:
    question = graded_answer.item.question
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


def _growing_table(
    name: str,
    columns: tuple[str, ...],
    rows: Callable[[GradedPaper, RowSources], Iterator[Cells]],
    caption: str,
    *modes: Mode,
) -> GrowingTable:
    table = Table(name=name, columns=(*KEY_COLUMNS, *columns), caption=caption)
    return GrowingTable(table=table, modes=modes, rows=rows)


GROWING_TABLES: tuple[GrowingTable, ...] = (
    _growing_table(
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
    _growing_table(
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
    _growing_table(
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
    _growing_table(
        "skipped",
        ("level", "item", "reason", "detail"),
        _skipped,
        "What was not asked or has no answer, and why.",
        "investigate",
        "extract",
        "questions",
    ),
    _growing_table(
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
    paper: GradedPaper, growing_tables: Iterable[GrowingTable], sources: RowSources
) -> Iterator[StreamedRow]:
    """What a paper adds to the *growing_tables*."""
    record = paper.record
    key_cells = (record.model, record.replicate, record.pmcid)
    for growing_table in growing_tables:
        for cells in growing_table.rows(paper, sources):
            yield StreamedRow(
                table=growing_table.table.name, cells=(*key_cells, *cells)
            )


COUNTS: Mapping[Mode, tuple[str, ...]] = {
    "investigate": (
        "papers_scored",
        "papers_skipped",
        "papers_with_questions",
        "papers_without_questions",
        "avg_paper_score~papers_with_questions",
        "avg_paper_score~parse_failures_as_zero",
        "avg_paper_score~skipped_as_zero",
        "pipeline.TOTAL.questions",
        "pipeline.TOTAL.correct",
        "pipeline.TOTAL.accuracy",
        "pipeline.TOTAL.unparsed",
        "pipeline.TOTAL.missing",
        "pipeline.TOTAL.links",
        "recalled_not_asked",
        "questions_not_asked",
    ),
    "extract": ("papers_scored", "papers_skipped", "avg_variant_recall~micro"),
    "questions": (
        "pipeline.TOTAL.questions",
        "pipeline.TOTAL.correct",
        "pipeline.TOTAL.accuracy",
        "pipeline.TOTAL.unparsed",
        "pipeline.TOTAL.missing",
    ),
}
"""Metrics that the table of models shows behind the averages."""


def models_table(models: Mapping[str, Sequence[Metric]], mode: Mode) -> Table:
    """One row a model: the averages with their intervals, and the counts."""
    averages = [average.path for average in AVERAGES[mode]]
    columns = ["model"]
    for path in averages:
        columns += [path, f"{path}_lo", f"{path}_hi"]
    rows = []
    for model, metrics in models.items():
        by_path = {metric.path: metric for metric in metrics}
        cells: list[Cell] = [model]
        for path in averages:
            metric = by_path[path]
            cells += [metric.value, metric.lo, metric.hi]
        cells += [by_path[path].value for path in COUNTS[mode]]
        rows.append(tuple(cells))
    return Table(
        name="models",
        columns=(*columns, *COUNTS[mode]),
        rows=tuple(rows),
        caption="One row a model; intervals are drawn by paper.",
    )


def pairs_table(pairs: Iterable[PaperModelPair], mode: Mode) -> Table:
    """One row a pair of models, on what both have."""
    averages = [average.path for average in AVERAGES[mode]]
    gaps = [
        f"{path}{part}" for path in averages for part in ("_difference", "_lo", "_hi")
    ]
    return Table(
        name="pairs",
        columns=(
            "model_a",
            "model_b",
            "papers",
            "papers_only_a",
            "papers_only_b",
            *gaps,
            "wins",
            "losses",
            "ties",
            "sign_p",
            "sign_p_holm",
            "recall_part",
            "accuracy_part",
            "questions",
            "mcnemar_p",
            *(f"{path}_{name}" for path in averages for name in TESTED_COLUMNS),
        ),
        rows=tuple(tuple(_pair_cells(pair, averages)) for pair in pairs),
        caption="Differences a - b on papers scored by both; Holm over the pairs of "
        "this table. Verdicts are on model_a and rest on the average's interval and "
        "p_holm. sign_p and mcnemar_p are secondary and decide nothing: the sign test "
        "counts papers, McNemar's test assumes independent questions.",
    )


def _pair_cells(pair: PaperModelPair, averages: Sequence[str]) -> Iterator[Cell]:
    yield from (pair.left, pair.right, pair.papers, pair.only_left, pair.only_right)
    for path in averages:
        yield from difference_cells(pair.averages.get(path))
    yield from (pair.wins, pair.losses, pair.ties, pair.sign_p, pair.sign_p_holm)
    yield from (pair.recall_part, pair.accuracy_part, pair.questions, pair.mcnemar_p)
    for path in averages:
        yield from tested_cells(pair.averages.get(path))


def agreement_tables(agreements: Iterable[RecordedAgreement]) -> tuple[Table, Table]:
    """How often recomputed facts are those of the file, and the first that are not."""
    return (
        Table(
            name="agreement",
            columns=("profile", "fact", "compared", "agreeing"),
            rows=tuple(row for agreement in agreements for row in agreement.rows()),
            caption="Facts stated by the imported files against recomputed ones.",
        ),
        Table(
            name="differences",
            columns=("profile", "model", "where", "fact", "recorded", "recomputed"),
            rows=tuple(
                (
                    agreement.profile,
                    difference.model,
                    difference.where,
                    difference.fact,
                    _cell(difference.recorded),
                    _cell(difference.recomputed),
                )
                for agreement in agreements
                for difference in agreement.differences
            ),
            caption="The first differences under each profile.",
        ),
    )


def _cell(fact: Fact) -> Cell:
    return "; ".join(fact) if isinstance(fact, list) else fact
