"""Formats the summary of a whole run for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from jobs.kit.comparison.models import p_value_words
from jobs.kit.inputs.sampling import sample_sentences
from jobs.kit.summary import finding_lines, summary_text
from jobs.kit.text_format import ends, fixed
from jobs.paper_investigation.model_pairs import PaperModelPair
from jobs.paper_investigation.model_summary import reasons
from jobs.paper_investigation.paper_scores import SCORE
from jobs.paper_investigation.question_counts import TOTAL
from jobs.paper_investigation.records import Mode
from jobs.paper_investigation.run_tally import RunTally
from jobs.paper_investigation.settings import PIPELINES, InvestigationSettings
from jobs.paper_investigation.variant_counts import Grounding
from runner.scorecard import Finding, Metric
from store.document import Block, TableBlock, wide_table

ByPath: TypeAlias = Mapping[str, Metric]
Column: TypeAlias = tuple[str, Callable[[ByPath], str]]

TITLES: Mapping[Mode, str] = {
    "investigate": "Paper investigation",
    "extract": "Variant extraction",
    "questions": "Questions",
}


def run_text(
    survey: RunTally,
    settings: InvestigationSettings,
    models: Mapping[str, ByPath],
    *,
    grounding: Grounding,
    pairs: Iterable[PaperModelPair],
    findings: Sequence[Finding],
    imported: bool,
) -> str:
    """Return the summary of one scoring.

    Args:
        survey: counts of the run.
        settings: settings of the scoring.
        models: each model's metrics.
        grounding: results of the search in the texts.
        pairs: every two models.
        findings: of these, warnings and errors are printed.
        imported: whether the answers were imported.
    """
    blocks: list[Block] = [
        _title(survey.mode, settings, imported=imported),
        *sample_sentences(findings),
        _counts(survey, models),
        _table(COLUMNS[survey.mode], models),
        *(_pair(pair) for pair in pairs if SCORE.path in pair.compared.metrics),
        *_remarks(models),
        *_flips(survey),
        *_ungrounded(survey.models, grounding),
        *agreement_lines(survey),
        *finding_lines(findings),
    ]
    return summary_text(blocks)


def _title(mode: Mode, settings: InvestigationSettings, *, imported: bool) -> str:
    profile: str = settings.profile
    if settings.profile_changes:
        profile += f", changed: {', '.join(settings.profile_changes)}"
    method = [f"{settings.variant_case} case"] if mode != "questions" else []
    if mode == "investigate":
        method.append(f"{settings.variant_link} links")
    if imported:
        method.append("imported answers")
    elif mode != "extract":
        batched = settings.batch_questions
        method.append("batched calls" if batched else "one call per question")
    return f"{TITLES[mode]}  profile {profile}  {', '.join(method)}"


def _counts(survey: RunTally, models: Mapping[str, ByPath]) -> str:
    def total(path: str) -> int:
        return sum(int(metrics[path].value or 0) for metrics in models.values())

    parts = []
    if survey.mode != "questions":
        skips = Counter[str]()
        for tally in survey.by_model.values():
            skips.update(tally.papers.skips.values())
        papers = max(
            (len(tally.papers) for tally in survey.by_model.values()), default=0
        )
        skip_reasons = f" ({reasons(skips)})" if skips else ""
        times = f" x {len(models)} models" if len(models) > 1 else ""
        parts.append(
            f"papers {papers}{times}: "
            f"scored {total('papers_scored')}, skipped {skips.total()}{skip_reasons}"
        )
    if survey.mode != "extract":
        questions, links, missing, unparsed = (
            total(f"pipeline.{TOTAL}.{name}")
            for name in ("questions", "links", "missing", "unparsed")
        )
        linked = f" {links} links," if survey.mode == "investigate" else ""
        parts.append(
            f"questions {questions} answered,{linked} {missing} missing, "
            f"{unparsed} unparsed"
        )
    return "    ".join(parts)


def _averaged(path: str, *, of: bool = False) -> Callable[[ByPath], str]:
    """Return the formatter of a mean, with the number of papers if *of* is set."""

    def cell(metrics: ByPath) -> str:
        metric = metrics[path]
        n = f"({metric.n_defined})" if of else ""
        parts = (fixed(metric.value), ends(metric.lo, metric.hi, ".2f"), n)
        return " ".join(filter(None, parts))

    return cell


def _plain(path: str) -> Callable[[ByPath], str]:
    return lambda metrics: fixed(metrics[path].value)


def _number(path: str) -> Callable[[ByPath], str]:
    return lambda metrics: str(metrics[path].value)


def _fraction(pipeline: str) -> Callable[[ByPath], str]:
    def cell(metrics: ByPath) -> str:
        right = metrics[f"pipeline.{pipeline}.correct"].value
        return f"{right}/{metrics[f'pipeline.{pipeline}.questions'].value}"

    return cell


COLUMNS: Mapping[Mode, tuple[Column, ...]] = {
    "investigate": (
        ("recall", _averaged("avg_variant_recall")),
        ("question acc (n)", _averaged("avg_question_acc", of=True)),
        ("paper score", _averaged("avg_paper_score")),
        (
            "with questions (n)",
            _averaged("avg_paper_score~papers_with_questions", of=True),
        ),
        ("unparsed as 0", _plain("avg_paper_score~parse_failures_as_zero")),
        ("skipped as 0", _plain("avg_paper_score~skipped_as_zero")),
        ("precision", _plain("avg_precision")),
    ),
    "extract": (
        ("recall", _averaged("avg_variant_recall")),
        ("precision (n)", _averaged("avg_precision", of=True)),
        ("F1", _averaged("avg_f1")),
        ("micro TP", _number("class.MICRO-AVG.tp")),
        ("FP", _number("class.MICRO-AVG.fp")),
        ("FN", _number("class.MICRO-AVG.fn")),
    ),
    "questions": (
        *((name, _fraction(name)) for name in PIPELINES),
        ("accuracy", _averaged(f"pipeline.{TOTAL}.accuracy")),
        ("unparsed", _number(f"pipeline.{TOTAL}.unparsed")),
    ),
}


REMARKS: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    (
        "papers_without_questions",
        "papers without a question on a variant that was found, scored 0",
        str,
    ),
    ("avg_paper_score~missing_as_wrong", "score with missing as wrong", fixed),
    ("questions_hidden", "questions that whole links hide", str),
    ("kind.reference_allele.recall", "recall of reference alleles", fixed),
    (
        "avg_variant_recall~without_reference_alleles",
        "variant recall without reference alleles",
        fixed,
    ),
    ("avg_paper_score~sd", "SD of the score over replicates", fixed),
    ("replicates.same_answers", "same answer in all replicates", fixed),
    ("replicates.jaccard", "overlap of the replicates' lists", fixed),
)


def _table(columns: Sequence[Column], models: Mapping[str, ByPath]) -> TableBlock:
    rows = (
        [model, *(cell(metrics) for _, cell in columns)]
        for model, metrics in models.items()
    )
    return wide_table(["model", *(name for name, _ in columns)], rows)


def _pair(pair: PaperModelPair) -> str:
    compared = pair.compared
    comparison = compared.metrics[SCORE.path]
    gap = comparison.gap
    value = fixed(gap.value, "+.3f")
    dropped = pair.only_left + pair.only_right
    return (
        f"{compared.left} - {compared.right}   score {value} "
        f"{ends(gap.interval.lo, gap.interval.hi, '.2f')}   {pair.papers} papers"
        f"{f' ({dropped} dropped)' if dropped else ''}, {p_value_words(comparison)}"
    )


def _remarks(models: Mapping[str, ByPath]) -> Iterator[str]:
    """Yield remarks of some runs: missing answers, hidden questions, replicates."""
    for path, words, show in REMARKS:
        values = {
            m: by_path[path].value for m, by_path in models.items() if path in by_path
        }
        if any(value is not None for value in values.values()):
            rendered = (f"{m} {show(value)}" for m, value in values.items())
            yield f"{words}: {', '.join(rendered)}"


def _flips(survey: RunTally) -> Iterator[str]:
    if survey.mode == "extract":
        return
    flips = {model: tally.flips for model, tally in survey.by_model.items()}
    changed = [
        f"{model} {flip_counts.to_right[TOTAL]} to right, "
        f"{flip_counts.to_wrong[TOTAL]} to wrong"
        for model, flip_counts in flips.items()
        if flip_counts.to_right[TOTAL] or flip_counts.to_wrong[TOTAL]
    ]
    yield f"verdicts under {survey.lenses.rules}: {'; '.join(changed) or 'the same'}"


def _ungrounded(models: Iterable[str], grounding: Grounding) -> Iterator[str]:
    if grounding.verdicts:
        counts = (f"{model} {grounding.ungrounded(model)}" for model in models)
        yield f"predicted variants not in the text: {', '.join(counts)}"


def agreement_lines(survey: RunTally) -> Iterator[str]:
    """Yield the agreement of imported facts with recomputed ones, by profile."""
    for agreement in survey.agreements:
        if agreement.facts:
            facts = ", ".join(
                f"{fact} {tally.agreeing}/{tally.compared}"
                for fact, tally in agreement.facts.items()
            )
            yield f"agreement with the files, profile {agreement.profile}: {facts}"
        for difference in agreement.differences:
            yield (
                f"  {difference.model} {difference.where} {difference.fact}: "
                f"{difference.recorded} there, {difference.recomputed} here"
            )
