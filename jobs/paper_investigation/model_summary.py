"""Formats a model's summary files: its investigation, extraction, questions.

The format of profile `clinpgx-qa` equals that of recorded summaries, byte for byte. The
other one adds the variants in lists beyond the truth.

For questions alone, both profiles use that format. Examples are drawn by seed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from jobs.kit.metrics import ratio
from jobs.kit.text_format import UNDEFINED, fixed
from jobs.paper_investigation.data import LETTERS
from jobs.paper_investigation.grading import (
    GradedPaper,
    PaperScore,
    PaperScores,
    Value,
)
from jobs.paper_investigation.judging import AnswerJudgement
from jobs.paper_investigation.model_tally import Answered, ModelTally
from jobs.paper_investigation.paper_scores import (
    QUESTION_ACC,
    RECALL,
    SCORE,
)
from jobs.paper_investigation.question_counts import TOTAL, QuestionGroup, TypeOf
from jobs.paper_investigation.records import QuestionItem
from jobs.paper_investigation.run_tally import question_facts
from jobs.paper_investigation.settings import PIPELINES, InvestigationSettings, Pipeline
from jobs.paper_investigation.variant_counts import ExtractionCounts, VariantHits
from runner.scorecard import Metric
from store.printable import printable


def percent(k: int, n: int) -> str:
    """Format a share of *n* in percent; 0.0% if there are none."""
    return f"{ratio(k, n) or 0.0:.1%}"


RULE = "=" * 64

SKIPS: Mapping[str, str] = {
    "no_paper_text": "no paper text",
    "paper_too_long": "too long",
    "extraction_unparsed": "unparsed extraction",
    "extraction_failed": "failed call",
}
"""Reasons that every summary has, in words; others follow by name."""

_DASHES = f"  {'-' * 20} {'-' * 10} {'-' * 10} {'-' * 10}"


def investigation_text(
    model: str,
    tally: ModelTally,
    metrics: Mapping[str, Metric],
    settings: InvestigationSettings,
    results: str,
) -> str:
    """Return the text of `{slug}_paper_investigation_summary.txt`.

    Args:
        model: the model.
        tally: counts of the model in one replicate.
        metrics: metrics of the same, by path.
        settings: settings of the scoring.
        results: name of the file with the scored records.
    """
    papers, groups = tally.papers, tally.breakdown.pipelines
    is_recorded = settings.profile == "clinpgx-qa"
    undefined = "0.000" if is_recorded else UNDEFINED
    if is_recorded:
        words = "no paper text or parse failure"
        accuracy, remark = "avg_question_acc~pooled_per_paper_zeros", ""
        pipelines = [name for name in sorted(PIPELINES) if groups[name].total]
        value_of: Value = _pooled_accuracy
    else:
        words = reasons(Counter(papers.skips.values()))
        with_questions = metrics["papers_with_questions"].value
        accuracy, remark = "avg_question_acc", f"; {with_questions} papers"
        pipelines = list(PIPELINES)
        value_of = QUESTION_ACC.value
    worst, best = _extremes(papers, settings.n_examples, is_recorded=is_recorded)
    lines = [
        *([""] if is_recorded else []),
        RULE,
        f"Paper Investigation Results  |  model={model}",
        RULE,
        "",
        f"  Papers scored:        {len(papers.scored)}",
        f"  Papers skipped:       {len(papers.skips)}  ({words})",
        "",
        *_averages(
            metrics, accuracy, f"across recalled variants only{remark}", undefined
        ),
        *([] if is_recorded else _as_zero(metrics)),
        "",
        "By pipeline breakdown:",
        f"  {'Pipeline':<20} {'Questions':>10} {'Correct':>10} {'Accuracy':>10}",
        _DASHES,
        *(_score_row(name, groups[name], UNDEFINED) for name in pipelines),
        _DASHES,
        _score_row(TOTAL, groups[TOTAL], undefined),
        "",
        *_paper_examples("WORST", worst, papers, value_of),
        *_paper_examples("BEST", best, papers, value_of),
        f"Eval results saved to {results}",
        "",
    ]
    return "\n".join(lines)


def _extremes(
    papers: PaperScores, n: int, *, is_recorded: bool
) -> tuple[list[str], list[str]]:
    """Return the papers with the lowest and the highest scores.

    The old profile sorts once, in record order, and uses both ends of the list.
    """

    def score(pmcid: str) -> float:
        return papers.value(pmcid, SCORE.value) or 0.0

    if is_recorded:
        scored = set(papers.scored)
        ascending = sorted((pmcid for pmcid in papers if pmcid in scored), key=score)
        return ascending[:n], ascending[-n:] if n else []
    # equal scores stay in the order of ids
    return (
        sorted(papers.scored, key=score)[:n],
        sorted(papers.scored, key=score, reverse=True)[:n],
    )


def _averages(
    metrics: Mapping[str, Metric], accuracy: str, remark: str, undefined: str
) -> Iterator[str]:
    for label, path, words in (
        ("Avg Variant Recall:", "avg_variant_recall", ""),
        ("Avg Question Acc:", accuracy, f"  ({remark})"),
        ("Avg Paper Score:", "avg_paper_score", "  (recall x question_acc)"),
    ):
        yield f"  {label:<21} {fixed(metrics[path].value, undefined=undefined)}{words}"


def _as_zero(metrics: Mapping[str, Metric]) -> Iterator[str]:
    """Yield the scores with failures counted, where they differ."""
    for path, words in (
        ("avg_paper_score~parse_failures_as_zero", "unparsed papers as 0"),
        ("avg_paper_score~skipped_as_zero", "all skipped papers as 0"),
        ("avg_paper_score~missing_as_wrong", "missing answers as wrong"),
    ):
        metric = metrics.get(path)
        if metric and metric.value != metrics["avg_paper_score"].value:
            yield f"  {'':<21} {fixed(metric.value)}  ({words})"


def reasons(skips: Mapping[str, int]) -> str:
    """Describe the skip reasons: the common ones always, others if any."""
    words = [f"{name} {skips.get(reason, 0)}" for reason, name in SKIPS.items()]
    words += [
        f"{reason.replace('_', ' ')} {n}"
        for reason, n in sorted(skips.items())
        if reason not in SKIPS
    ]
    return ", ".join(words)


def _score_row(name: str, group: QuestionGroup, undefined: str) -> str:
    accuracy = fixed(ratio(group.right, group.answered), undefined=undefined)
    return f"  {name:<20} {group.answered:>10} {group.right:>10} {accuracy:>9}"


def _paper_examples(
    word: str, pmcids: list[str], papers: PaperScores, accuracy: Value
) -> Iterator[str]:
    yield f"{word} PAPERS (by paper_score):"
    for number, pmcid in enumerate(pmcids, start=1):
        recall = papers.value(pmcid, RECALL.value)
        yield (
            f"  [{number}] {pmcid}  recall={fixed(recall)}"
            f"  q_acc={fixed(papers.value(pmcid, accuracy))}"
            f"  score={fixed(papers.value(pmcid, SCORE.value))}"
        )
    yield ""


def _pooled_accuracy(paper: PaperScore) -> float | None:
    return paper.pooled_accuracy


DOUBLE = "=" * 70
SINGLE = "-" * 70

MICRO = "MICRO-AVG"

TITLE_CHARS = 80
EXAMPLE_VARIANTS = 5
"""Number of variants of a paper in an example."""


def variants_text(
    model: str,
    tally: ModelTally,
    metrics: Mapping[str, Metric],
    settings: InvestigationSettings,
    results: str,
) -> str:
    """Return the text of `{slug}_variant_summary.txt`; see `investigation_text`."""
    is_recorded = settings.profile == "clinpgx-qa"
    value = metrics["avg_variant_recall"].value
    recall = fixed(value, undefined="0.000" if is_recorded else UNDEFINED)
    lines = [
        "",
        DOUBLE,
        f"Variant Extraction Results  |  model={model}  |  Recall={recall}",
        DOUBLE,
        "",
        f"  Articles scored: {tally.extraction.parsed}/{len(tally.papers)}",
        f"  Parse failures:  {tally.extraction.unparsed}/{len(tally.papers)}",
        "",
        "By variant type:",
        *(
            _recorded_table(tally.extraction)
            if is_recorded
            else _class_table(tally.extraction, metrics)
        ),
        "",
        *([f"  Macro-avg Recall: {recall}"] if is_recorded else _macro(metrics)),
        "",
        *_extraction_examples("WORST", tally.worst),
        *_extraction_examples("BEST", tally.best),
        f"Eval results saved to {results}",
        "",
    ]
    return "\n".join(lines)


def _recorded_table(extraction: ExtractionCounts) -> Iterator[str]:
    """Yield the old table: no false positives; an unparsed paper misses everything."""
    line = f"  {'-' * 15} {'-' * 6} {'-' * 6} {'-' * 10}"
    yield f"  {'Type':<15} {'TP':>6} {'FN':>6} {'Recall':>10}"
    yield line
    rows = [*sorted(extraction.classes.items()), (MICRO, extraction.total())]
    for name, hits in rows:
        if name == MICRO:
            yield line
        fn = hits.fn + hits.fn_unparsed_raw
        if hits.tp + fn or name == MICRO:
            recall = fixed(ratio(hits.tp, hits.tp + fn), undefined="0.000")
            yield f"  {name:<15} {hits.tp:>6} {fn:>6} {recall:>9}"


def _class_table(
    extraction: ExtractionCounts, metrics: Mapping[str, Metric]
) -> Iterator[str]:
    line = (
        f"  {'-' * 15} {'-' * 6} {'-' * 6} {'-' * 6} {'-' * 10} {'-' * 10} {'-' * 10}"
    )
    yield (
        f"  {'Type':<15} {'TP':>6} {'FP':>6} {'FN':>6} "
        f"{'Recall':>10} {'Precision':>10} {'F1':>10}"
    )
    yield line
    names = [n for n, hits in extraction.classes.items() if hits != VariantHits()]
    for name in (*names, MICRO):
        if name == MICRO:
            yield line
        counts = "".join(
            f" {metrics[f'class.{name}.{key}'].value:>6}" for key in ("tp", "fp", "fn")
        )
        rates = "".join(
            f" {fixed(metrics[f'class.{name}.{key}'].value):>10}"
            for key in ("recall", "precision", "f1")
        )
        yield f"  {name:<15}{counts}{rates}"
    yield "  Precision is a lower bound: the truth lists findings, not all typings."


def _macro(metrics: Mapping[str, Metric]) -> Iterator[str]:
    precision = metrics["avg_precision"]
    yield f"  Macro-avg Recall:    {fixed(metrics['avg_variant_recall'].value)}"
    yield (
        f"  Macro-avg Precision: {fixed(precision.value)}"
        f"  ({precision.n_defined} articles with a list)"
    )
    yield f"  Macro-avg F1:        {fixed(metrics['avg_f1'].value)}"


def _extraction_examples(word: str, papers: Iterable[GradedPaper]) -> Iterator[str]:
    yield SINGLE
    yield f"Example {word} RECALL articles"
    yield SINGLE
    yield ""
    for number, paper in enumerate(papers, start=1):
        record, predicted = paper.record, sorted(paper.predicted or ())
        missed = sorted(set(paper.truth) - set(paper.recalled))
        yield f"  [{number}] pmcid={record.pmcid}  Recall={fixed(paper.recall)}"
        yield f"  Title: {(record.title or '')[:TITLE_CHARS]}"
        yield (
            f"  Ground truth ({len(record.truth)}): "
            f"{list(record.truth[:EXAMPLE_VARIANTS])}"
        )
        yield f"  Predicted ({len(predicted)}): {predicted[:EXAMPLE_VARIANTS]}"
        if missed:
            yield f"  Missed: {missed[:EXAMPLE_VARIANTS]}"
        yield ""


SENTENCE_CHARS = 120
LINE_CHARS = 500

_STUDY_LINE = f"  {'-' * 25} {'-' * 10} {'-' * 10} {'-' * 10} {'-' * 8}"


def questions_text(
    model: str, tally: ModelTally, pipeline: Pipeline, results: str
) -> str:
    """Return the text of `{slug}_{pipeline}_summary.txt`.

    Args:
        model: the model.
        tally: counts of the model in one replicate.
        pipeline: pipeline of the questions.
        results: name of the file with the scored answers.
    """
    body = _study if pipeline == "study_param" else _mcq
    lines = [
        "",
        *body(model, tally, pipeline),
        *_question_examples("CORRECT", tally.examples(pipeline, is_right=True)),
        *_question_examples("INCORRECT", tally.examples(pipeline, is_right=False)),
        f"Eval results saved to {results}",
        "",
    ]
    return "\n".join(lines)


def _mcq(model: str, tally: ModelTally, pipeline: Pipeline) -> Iterator[str]:
    group = tally.breakdown.pipelines[pipeline]
    title = pipeline.replace("_", " ").title()
    yield from _questions_head(f"{title} Results  |  model={model}  |  {_share(group)}")
    yield "By question_type:"
    yield from _by_type(tally, pipeline, "question_type", 25)
    yield "By table_type:"
    yield from _by_type(tally, pipeline, "table_type", 20)
    yield from _failures("Parse failures", group)


def _study(model: str, tally: ModelTally, pipeline: Pipeline) -> Iterator[str]:
    group, fields = tally.breakdown.pipelines[pipeline], tally.study.all
    yield from _questions_head(
        f"Study Param Results  |  model={model}  |  both: {_share(group)}"
    )
    yield "By field:"
    yield from _type_table(
        "Field",
        20,
        (
            ("p_value", fields.p_value, fields.answered),
            ("significance", fields.significance, fields.answered),
            ("both", fields.both, fields.answered),
        ),
    )
    yield "By question_type:"
    yield (f"  {'Type':<25} {'P-value':>10} {'Signif.':>10} {'Both':>10} {'Total':>8}")
    yield _STUDY_LINE
    for name, counts in sorted(tally.study.types.items()):
        rates = "".join(
            f" {percent(right, counts.answered):>9}"
            for right in (counts.p_value, counts.significance, counts.both)
        )
        yield f"  {name:<25}{rates} {counts.answered:>8}"
    yield ""
    yield "By table_type:"
    yield from _by_type(tally, pipeline, "table_type", 20)
    yield from _failures("JSON parse failures", group)


def _questions_head(title: str) -> Iterator[str]:
    yield DOUBLE
    yield title
    yield DOUBLE
    yield ""


def _share(group: QuestionGroup) -> str:
    right, answered = group.right, group.answered
    return f"{right}/{answered} ({percent(right, answered)})"


def _by_type(
    tally: ModelTally, pipeline: Pipeline, kind: TypeOf, width: int
) -> Iterator[str]:
    groups = tally.breakdown.types[kind][pipeline]
    rows = (
        (name, counts.right, counts.answered) for name, counts in sorted(groups.items())
    )
    yield from _type_table("Type", width, rows)


def _type_table(
    label: str, width: int, rows: Iterable[tuple[str, int, int]]
) -> Iterator[str]:
    yield f"  {label:<{width}} {'Correct':>8} {'Total':>8} {'Accuracy':>10}"
    yield f"  {'-' * width} {'-' * 8} {'-' * 8} {'-' * 10}"
    for name, right, answered in rows:
        share = percent(right, answered)
        yield f"  {name:<{width}} {right:>8} {answered:>8} {share:>9}"
    yield ""


def _failures(label: str, group: QuestionGroup) -> Iterator[str]:
    if group.unparsed:
        share = percent(group.unparsed, group.answered)
        yield f"  {label}: {group.unparsed}/{group.answered} ({share})"
        yield ""


def _question_examples(word: str, examples: list[Answered]) -> Iterator[str]:
    yield SINGLE
    yield f"Example {word} answers ({len(examples)} randomly chosen)"
    yield SINGLE
    yield ""
    for number, (item, judgement) in enumerate(examples, start=1):
        question = item.question
        yield (
            f"  [{number}] type={question.question_type}  table={question.table_type}"
            f"  pmcid={question.pmcid}"
        )
        show = _mcq_example if question.is_mcq else _study_example
        yield from show(item, judgement)
        yield ""


def _mcq_example(item: QuestionItem, judgement: AnswerJudgement) -> Iterator[str]:
    question = item.question
    options = zip(LETTERS, question.options or (), strict=False)
    yield f"  Sentence: {_line(question.sentence, SENTENCE_CHARS)}"
    yield "  Options: " + "  ".join(f"{a}) {_line(text)}" for a, text in options)
    yield f"  Expected: {question.correct}  Got: {judgement.value}"


def _study_example(item: QuestionItem, judgement: AnswerJudgement) -> Iterator[str]:
    question, facts = item.question, question_facts(item.question, judgement)
    yield f"  Expected p_value:      {question.expected_p_value}"
    yield f"  Response p_value:      {_line(str(facts['response_p_value']))}"
    yield f"  Expected significance: {question.expected_significance}"
    yield f"  Response significance: {_line(str(facts['response_significance']))}"
    yield f"  Raw response: {_line(item.reply.text if item.reply else '')}"


def _line(text: str, chars: int = LINE_CHARS) -> str:
    return printable(" ".join(text.split()), line=chars)
