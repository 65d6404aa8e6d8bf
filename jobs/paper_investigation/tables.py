"""Declares the tables of a scoring: by model, pair, paper, variant and question.

Tables with a row per paper, variant, question, skip or flip are written in a second
pass over the answers; those with a row per model or pair are complete before it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from jobs.kit.comparison.models import DIFFERENCE, TESTED
from jobs.kit.tables import (
    Columns,
    TableOf,
    column,
    count,
    flag,
    group,
    groups,
    number,
    per_key,
    text,
)
from jobs.paper_investigation import plan
from jobs.paper_investigation.grading import GradedAnswer, GradedPaper
from jobs.paper_investigation.judging import (
    AnswerJudgement,
    RuleChoice,
    ScoringVariant,
    expected,
)
from jobs.paper_investigation.model_pairs import PaperModelPair, rounded
from jobs.paper_investigation.paper_scores import AVERAGES
from jobs.paper_investigation.question_counts import Flip, flips
from jobs.paper_investigation.records import Fact, Mode, PaperRecord, QuestionItem
from jobs.paper_investigation.run_tally import RecordedAgreement, RecordedDifference
from jobs.paper_investigation.variant_counts import Grounding
from jobs.paper_investigation.variants import variant_class, variant_kind
from runner.messages import ParseFailure
from runner.scorecard import Cell, Metric, StreamedRow, Table

KEYS: tuple[Columns[PaperRecord], ...] = (
    text("model", lambda record: record.model),
    count("replicate", lambda record: record.replicate),
    text("pmcid", lambda record: record.pmcid),
)


def _answered(paper: GradedPaper) -> list[AnswerJudgement]:
    return [answer.judgement for answer in paper.answers if answer.judgement]


PAPERS = TableOf[GradedPaper](
    name="papers",
    columns=(
        group(KEYS, lambda paper: paper.record),
        text("title", lambda paper: paper.record.title),
        text("skip_reason", lambda paper: paper.skip),
        count("truth_variants", lambda paper: len(paper.truth)),
        count("predicted_variants", lambda paper: _n(paper, paper.predicted)),
        count("recalled_variants", lambda paper: _n(paper, paper.recalled)),
        number("variant_recall", lambda paper: paper.recall),
        number("precision", lambda paper: paper.precision),
        number("f1", lambda paper: paper.f1),
        number("question_accuracy", lambda paper: paper.question_accuracy),
        number("pooled_accuracy", lambda paper: paper.pooled_accuracy),
        number("paper_score", lambda paper: paper.score),
        count("questions", lambda paper: len(_answered(paper))),
        count("correct", lambda paper: sum(j.right for j in _answered(paper))),
        count("unparsed", lambda paper: sum(j.failed for j in _answered(paper))),
        count("missing", lambda paper: len(paper.answers) - len(_answered(paper))),
        count("not_asked", lambda paper: len(paper.unasked)),
    ),
    caption="One row a paper, model and replicate.",
)


def _n(paper: GradedPaper, variants: Sized | None) -> int | None:
    return len(variants) if paper.is_parsed and variants is not None else None


class _VariantRow(NamedTuple):
    paper: GradedPaper
    name: str  #: its normal form
    spelling: str
    grounded: bool | None

    @property
    def answers(self) -> Sequence[GradedAnswer]:
        return self.paper.links.get(self.name, ())

    def is_in(self, variants: Container[str] | None) -> bool | None:
        """Return whether the variant is in *variants*; None for an unparsed reply."""
        return self.name in (variants or ()) if self.paper.is_parsed else None


def _variant_rows(paper: GradedPaper, sources: RowSources) -> Iterator[_VariantRow]:
    predicted = paper.predicted or {}
    spellings = {**predicted, **paper.truth}
    for variant in dict.fromkeys((*paper.truth, *predicted)):
        spelling = spellings[variant]
        grounded = sources.grounding.verdict(paper.record.pmcid, spelling)
        yield _VariantRow(paper, variant, spelling, grounded)


VARIANTS = TableOf[_VariantRow](
    name="variants",
    columns=(
        group(KEYS, lambda row: row.paper.record),
        text("variant", lambda row: row.spelling),
        text("normalized", lambda row: row.name),
        text("class", lambda row: variant_class(row.name)),
        flag("in_truth", lambda row: row.name in row.paper.truth),
        flag("predicted", lambda row: row.is_in(row.paper.predicted)),
        flag("recalled", lambda row: row.is_in(row.paper.recalled)),
        flag("grounded", lambda row: row.grounded, "it occurs in the text"),
        count(
            "questions", lambda row: sum(a.judgement is not None for a in row.answers)
        ),
        count("correct", lambda row: sum(answer.is_right for answer in row.answers)),
        number("accuracy", lambda row: row.paper.accuracies.get(row.name)),
        text("kind", lambda row: variant_kind(row.name)),
    ),
    caption="One row per truth or predicted variant; grounded: it occurs in the text.",
)

QUESTION: tuple[Columns[GradedAnswer], ...] = (
    text("pipeline", lambda answer: answer.item.question.pipeline),
    text("question_id", lambda answer: answer.item.question.question_id),
    text("annotation_id", lambda answer: answer.item.question.annotation_id),
    text("question_type", lambda answer: answer.item.question.question_type),
    text("table_type", lambda answer: answer.item.question.table_type),
    text("variant", lambda answer: answer.item.question.variant),
)

PARSED: tuple[Columns[AnswerJudgement], ...] = (
    text("parsed", lambda judgement: judgement.value),
    text("rule", lambda judgement: judgement.rule),
)

CORRECT: tuple[Columns[AnswerJudgement], ...] = (
    flag("correct", lambda judgement: judgement.right),
)

OPEN_PARTS: tuple[Columns[AnswerJudgement], ...] = (
    flag("p_value_correct", lambda judgement: judgement.p_value_right),
    flag("significance_correct", lambda judgement: judgement.significance_right),
)
"""For questions that are not multiple choice."""


class _QuestionRow(NamedTuple):
    paper: GradedPaper
    answer: GradedAnswer
    linked: Sequence[str]

    @property
    def open_judgement(self) -> AnswerJudgement | None:
        return None if self.answer.item.question.is_mcq else self.answer.judgement

    @property
    def finish_reason(self) -> str | None:
        reply = self.answer.item.reply
        return reply.finish_reason if reply else None


def _question_rows(paper: GradedPaper) -> Iterator[_QuestionRow]:
    linked = paper.variants_by_question
    for answer in (*paper.answers, *paper.missed_variant_answers):
        yield _QuestionRow(paper, answer, linked.get(answer.item.question.key, []))


QUESTIONS = TableOf[_QuestionRow](
    name="questions",
    columns=(
        group(KEYS, lambda row: row.paper.record),
        group(QUESTION, lambda row: row.answer),
        text("counts_for", lambda row: "; ".join(row.linked)),
        count("links", lambda row: len(row.linked)),
        text("expected", lambda row: expected(row.answer.item.question)),
        group((*PARSED, *CORRECT), lambda row: row.answer.judgement),
        group(OPEN_PARTS, lambda row: row.open_judgement),
        text("finish_reason", lambda row: row.finish_reason),
        text("missing", lambda row: row.answer.item.absent),
    ),
    caption="One row per question that was sent; without links it is outside "
    "all scores in mode investigate.",
)


class _Skip(NamedTuple):
    paper: GradedPaper
    level: str
    item: str
    reason: str | None
    detail: str | None = None


def _skips(paper: GradedPaper, sources: RowSources) -> Iterator[_Skip]:
    if paper.skip is not None:
        failure = paper.parsed_list
        detail = failure.reason if isinstance(failure, ParseFailure) else None
        yield _Skip(paper, "paper", paper.record.pmcid, paper.skip, detail)
    for variant in paper.unlinked:
        yield _Skip(paper, "variant", paper.truth[variant], "no_questions")
    counted = (*paper.answers, *paper.missed_variant_answers)
    for answer in counted:
        if answer.judgement is None:
            item = answer.item
            yield _Skip(paper, "question", item.question.key, item.absent)
    for item in paper.unasked:
        yield _Skip(paper, "question", item.question.key, "not_asked")
    if paper.is_parsed:
        seen = {answer.item.question.key for answer in counted}
        seen.update(item.question.key for item in paper.unasked)
        for item in paper.record.items:
            key = item.question.key
            if key not in seen:
                reason = _left_out(item, paper, sources.lens)
                yield _Skip(paper, "question", key, reason, item.question.variant)


def _left_out(item: QuestionItem, paper: GradedPaper, lens: ScoringVariant) -> str:
    settings = lens.stored if paper.record.fixed_links else lens.settings
    names = plan.question_variants(item.question, settings)
    return "over_cap" if any(v in paper.recalled for v in names) else "not_recalled"


SKIPPED = TableOf[_Skip](
    name="skipped",
    columns=(
        group(KEYS, lambda skip: skip.paper.record),
        text("level", lambda skip: skip.level),
        text("item", lambda skip: skip.item),
        text("reason", lambda skip: skip.reason),
        text("detail", lambda skip: skip.detail),
    ),
    caption="Questions that were not sent or have no answer, with the reason.",
)


class _FlipRow(NamedTuple):
    paper: GradedPaper
    flip: Flip

    @property
    def answer(self) -> GradedAnswer:
        return self.flip.graded_answer

    @property
    def reply(self) -> str | None:
        reply = self.answer.item.reply
        return reply.text if reply else None


FLIPS = TableOf[_FlipRow](
    name="flips",
    columns=(
        group(KEYS, lambda row: row.paper.record),
        group(QUESTION, lambda row: row.answer),
        text("expected", lambda row: expected(row.answer.item.question)),
        text("reply", lambda row: row.reply),
        group(PARSED, lambda row: row.answer.judgement),
        flag("correct", lambda row: row.answer.is_right),
        group((*PARSED, *CORRECT), lambda row: row.flip.other, "other_"),
    ),
    caption="Answers whose verdict depends on the rule set.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowSources:
    """Sources of rows other than the paper."""

    lens: ScoringVariant
    other_rules: RuleChoice
    grounding: Grounding


def long_tables(mode: Mode) -> tuple[Table, ...]:
    """Return the tables that grow with the papers, without their rows."""
    tables = {
        "investigate": (PAPERS, VARIANTS, QUESTIONS, SKIPPED, FLIPS),
        "extract": (PAPERS, VARIANTS, SKIPPED),
        "questions": (QUESTIONS, SKIPPED, FLIPS),
    }
    return tuple(declared.table() for declared in tables[mode])


def rows(paper: GradedPaper, mode: Mode, sources: RowSources) -> Iterator[StreamedRow]:
    """Yield the rows of a paper in the `long_tables` of a mode."""
    if mode != "questions":
        yield from PAPERS.details([paper])
        yield from VARIANTS.details(_variant_rows(paper, sources))
    if mode != "extract":
        yield from QUESTIONS.details(_question_rows(paper))
        changed = flips(paper, sources.other_rules)
        yield from FLIPS.details(_FlipRow(paper, flip) for flip in changed)
    yield from SKIPPED.details(_skips(paper, sources))


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
"""Metrics in the table of models, after the averages."""


class _ModelRow(NamedTuple):
    model: str
    metrics: Mapping[str, Metric]  #: by path


METRIC: tuple[Columns[Metric], ...] = (
    number("", lambda metric: metric.value),
    number("_lo", lambda metric: metric.lo),
    number("_hi", lambda metric: metric.hi),
)


def models_table(models: Mapping[str, Sequence[Metric]], mode: Mode) -> Table:
    """Return one row per model: the averages with their intervals, and the counts."""
    averages = [average.path for average in AVERAGES[mode]]
    return TableOf[_ModelRow](
        name="models",
        columns=(
            text("model", lambda row: row.model),
            groups(METRIC, averages, lambda row, path: row.metrics[path]),
            per_key("{}", COUNTS[mode], lambda row, path: row.metrics[path].value),
        ),
        caption="One row a model; intervals are drawn by paper.",
    ).table(
        _ModelRow(model, {metric.path: metric for metric in metrics})
        for model, metrics in models.items()
    )


def pairs_table(pairs: Iterable[PaperModelPair], mode: Mode) -> Table:
    """Return one row per pair of models, on the papers and questions of both."""
    paths = [average.path for average in AVERAGES[mode]]
    return TableOf[PaperModelPair](
        name="pairs",
        columns=(
            text("model_a", lambda pair: pair.compared.left),
            text("model_b", lambda pair: pair.compared.right),
            count("papers", lambda pair: pair.papers),
            count("papers_only_a", lambda pair: pair.only_left),
            count("papers_only_b", lambda pair: pair.only_right),
            groups(DIFFERENCE, paths, PaperModelPair.average, "{}_"),
            count("wins", lambda pair: pair.sign_test.left_alone),
            count("losses", lambda pair: pair.sign_test.right_alone),
            count("ties", lambda pair: pair.ties),
            number("sign_p", lambda pair: rounded(pair.sign_test.p)),
            number("sign_p_holm", lambda pair: rounded(pair.sign_test.p_holm)),
            number("recall_part", lambda pair: pair.recall_part),
            number("accuracy_part", lambda pair: pair.accuracy_part),
            count("questions", lambda pair: pair.questions),
            number("mcnemar_p", lambda pair: pair.mcnemar_p),
            groups(TESTED, paths, PaperModelPair.average, "{}_"),
        ),
        caption="Differences a - b on papers scored by both; Holm over the pairs of "
        "this table. Verdicts are on model_a and rest on the average's interval and "
        "p_holm. sign_p and mcnemar_p are secondary and decide nothing: the sign test "
        "counts papers, McNemar's test assumes independent questions.",
    ).table(pairs)


DIFFERENCES = TableOf[RecordedDifference](
    name="differences",
    columns=(
        text("profile", lambda row: row.profile),
        text("model", lambda row: row.model),
        text("where", lambda row: row.where),
        text("fact", lambda row: row.fact),
        column("recorded", lambda row: _cell(row.recorded)),
        column("recomputed", lambda row: _cell(row.recomputed)),
    ),
    caption="The first differences under each profile.",
)


def agreement_tables(agreements: Sequence[RecordedAgreement]) -> tuple[Table, Table]:
    """Return counts of facts that agree with the file, and the first differences."""
    return (
        Table(
            name="agreement",
            columns=("profile", "fact", "compared", "agreeing"),
            rows=tuple(row for agreement in agreements for row in agreement.rows()),
            caption="Facts stated by the imported files against recomputed ones.",
        ),
        DIFFERENCES.table(chain(*(agreement.differences for agreement in agreements))),
    )


def _cell(fact: Fact) -> Cell:
    return "; ".join(fact) if isinstance(fact, list) else fact
