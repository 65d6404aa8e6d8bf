"""Formats the summary of a scoring: each review, then a table over all of them.

The lines of a review and their order are fixed: other programs read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from jobs.kit.comparison.models import ModelPair, p_value_words
from jobs.kit.inputs.sampling import sample_sentences
from jobs.kit.metrics import mean
from jobs.kit.text_format import (
    TextColumn,
    ends,
    fixed,
    hanging_lines,
    plural,
    text_table,
    with_ends,
)
from jobs.review_benchmark.agent_results import AgentResults
from jobs.review_benchmark.benchmark import failure_reasons, percent
from jobs.review_benchmark.conclusion_similarity import ThresholdSource
from jobs.review_benchmark.effects import EffectReason
from jobs.review_benchmark.losses import LOST_AT, PaperMatch
from jobs.review_benchmark.matching import METHODS
from jobs.review_benchmark.results import BenchmarkResults, not_available
from jobs.review_benchmark.verdicts import ConclusionVerdicts
from runner.scorecard import Finding
from store.document import WIDTH, number
from store.printable import cut, display_width, one_line, padded, printable, shortened

MOST_PAIRS = 10
"""Alike reviews that are named."""

VERDICT_NAME_WIDTH = 14
"""Cells of a model's name."""


def verdict_text(concluded: Sequence[ConclusionVerdicts]) -> Iterator[str]:
    """A line for each agent, and the reviews that are alike by themselves."""
    if not concluded:
        return
    yield ""
    yield f"Verdicts ({concluded[0].kind}): conclusions beside those of the authors"
    yield from text_table(
        (
            TextColumn(
                title="model",
                cells=[
                    shortened(one_line(verdicts.model), VERDICT_NAME_WIDTH)
                    for verdicts in concluded
                ],
                has_words=True,
            ),
            TextColumn(
                title="n",
                cells=[
                    f"{len(verdicts.compared)}/{len(verdicts.matches)}"
                    for verdicts in concluded
                ],
            ),
            TextColumn(
                title="matched",
                cells=[
                    number(mean(verdicts.compared.values()), 3)
                    for verdicts in concluded
                ],
            ),
            TextColumn(
                title="null (pairs)",
                cells=[
                    f"{number(mean(verdicts.mismatched.values()), 3)} "
                    f"({len(verdicts.mismatched)})"
                    for verdicts in concluded
                ],
            ),
            TextColumn(
                title="AUROC",
                cells=[number(verdicts.auroc, 3) for verdicts in concluded],
            ),
            TextColumn(
                title="threshold",
                cells=[_threshold(verdicts) for verdicts in concluded],
            ),
            TextColumn(
                title="above", cells=[_above(verdicts) for verdicts in concluded]
            ),
            TextColumn(
                title="passed", cells=[_passed(verdicts) for verdicts in concluded]
            ),
        )
    )
    threshold = concluded[0].threshold
    if threshold is not None and threshold.source == "labels":
        yield (
            f"  The threshold is drawn by {plural(threshold.n, 'label')}; "
            f"leave-one-out accuracy {number(threshold.accuracy, 3)}."
        )
    yield from _other_thresholds(concluded)
    yield from _judged(concluded)
    yield from _opposite(concluded)
    for missing in not_available(concluded):
        yield from hanging_lines("  not available: ", one_line(missing))
    yield from _similar_pairs(concluded)


def _threshold(verdicts: ConclusionVerdicts) -> str:
    return number(None if verdicts.threshold is None else verdicts.threshold.value, 3)


def _above(verdicts: ConclusionVerdicts) -> str:
    if verdicts.threshold is None:
        return "-"
    above = [verdicts.is_similar(review) for review in verdicts.compared]
    return f"{above.count(True)}/{len(above)}"


def _passed(verdicts: ConclusionVerdicts) -> str:
    judged = [*verdicts.judged.values()]
    return f"{judged.count(True)}/{len(judged)}" if judged else "-"


_SOURCES: Mapping[ThresholdSource, str] = {
    "borrowed pairs": "The threshold is drawn with borrowed pairs: {n} mismatched ones "
    "in all.",
    "fixed": "The threshold is fixed, since too few mismatched pairs draw one.",
    "setting": "The threshold is the one of the settings.",
}


def _other_thresholds(concluded: Sequence[ConclusionVerdicts]) -> Iterator[str]:
    """Where a threshold is not drawn by labels or by an agent's own pairs."""
    sources = {
        verdicts.threshold.source: verdicts.threshold.n
        for verdicts in concluded
        if verdicts.threshold is not None
    }
    for source, n in sources.items():
        if source in _SOURCES:
            yield f"  {_SOURCES[source].format(n=n)}"


def _judged(concluded: Sequence[ConclusionVerdicts]) -> Iterator[str]:
    """How the stated effects compare, where they decide."""
    if concluded[0].kind == "judge":
        return
    for verdicts in concluded:
        effects = [match.effect for match in verdicts.matches.values() if match.effect]
        reasons = Counter(effect.reason for effect in effects)
        reason_counts = (
            f"{reasons[reason]} {words}"
            for reason, words in REASONS.items()
            if reasons[reason]
        )
        if effects:
            line = f"{verdicts.model} against its authors: {', '.join(reason_counts)}"
            yield from hanging_lines("  ", one_line(line))


REASONS: Mapping[EffectReason, str] = {
    "same": "same effect",
    "direction": "other direction",
    "certainty": "other certainty",
    "several_directions": "not judged (several directions)",
    "not_stated": "not judged (none stated)",
    "unrelated": "not judged (no word in common)",
}
"""The reasons of a comparison of effects, in words."""


def _opposite(concluded: Sequence[ConclusionVerdicts]) -> Iterator[str]:
    """The reviews that a judge fails whatever the number."""
    for verdicts in concluded:
        reviews = [
            review for review, match in verdicts.matches.items() if match.is_opposite
        ]
        if reviews:
            line = f"{verdicts.model} concludes the opposite: {', '.join(reviews)}"
            yield from hanging_lines("  ", one_line(line))


def _similar_pairs(concluded: Sequence[ConclusionVerdicts]) -> Iterator[str]:
    """Pairs that pass beside each other, the most alike first."""
    label = "Judged alike" if concluded[0].kind == "judge" else "Alike by themselves"
    pairs: dict[tuple[str, str], float] = {}
    for verdicts in concluded:
        for pair, similarity in verdicts.similar_reviews.items():
            pairs[pair] = max(similarity, pairs.get(pair, similarity))
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    for (first, second), similarity in islice(ordered, MOST_PAIRS):
        yield cut(
            f"  {label}: {one_line(first)} and {one_line(second)} "
            f"({number(similarity, 3)}).",
            WIDTH,
        )
    if len(ordered) > MOST_PAIRS:
        yield f"  And {plural(len(ordered) - MOST_PAIRS, 'more pair')}."


LINE_CHARS = 240
TITLE_CHARS = 60
MOST_LOST = 10
"""Lost papers of a review that are listed; lost_papers.csv has all."""


MOST_REVIEWS = 60
"""Results that a terminal is told of; summary.txt has all."""

MODEL_WIDTH = 32
"""Cells of a model's name in a line of numbers; elsewhere it stands whole."""


def run_text(
    results: BenchmarkResults,
    concluded: Sequence[ConclusionVerdicts],
    findings: Sequence[Finding],
    most: int | None = None,
) -> str:
    """The summary of one scoring.

    Args:
        results: what was measured.
        concluded: how conclusions compare, by model.
        findings: of the scoring.
        most: so many reviews are told at most; None: all.
    """
    every = [
        (column, review)
        for column in results.columns.values()
        for review in column.benchmarks
    ]
    lines: list[str] = []
    for column, review in every[:most]:
        lines += [*_review(results, column, review), ""]
    left = len(every) - len(every[:most])
    if left:
        lines += [f"{plural(left, 'more result')} in summary.txt", ""]
    lines += sample_sentences(findings)
    lines += _table(results)
    lines += _lost(results)
    lines += _pairs(results.pairs)
    lines += verdict_text(concluded)
    lines += [_finding(finding) for finding in findings if finding.severity != "info"]
    return "\n".join([*(printable(line, line=LINE_CHARS) for line in lines), ""])


def _review(
    results: BenchmarkResults, column: AgentResults, review: str
) -> Iterator[str]:
    settings = results.dataset.settings
    benchmark = column.benchmarks[review]
    passed = benchmark.passes(settings.target_recall)
    if len(results.columns) > 1:
        yield f"Model: {one_line(column.model)}"
    yield f"Benchmark Result: {'PASSED' if passed else 'FAILED'}"
    yield f"Cochrane ID: {one_line(review)}"
    yield f"Ground Truth Papers: {benchmark.truth}"
    yield f"Agent Included Papers: {benchmark.included_rows}"
    yield f"Papers Found & Included: {benchmark.found_and_included}"
    yield f"Papers Not Found: {benchmark.not_found}"
    yield f"Papers Found but Excluded: {benchmark.found_but_excluded}"
    yield f"Recall: {benchmark.recall:.1%} (target: {percent(settings.target_recall)})"
    yield f"Precision: {fixed(benchmark.precision, '.1%')}"
    reasons = list(failure_reasons(benchmark, settings))
    if reasons:
        yield "Failure Reasons:"
        yield from (f"  - {reason}" for reason in reasons)
    lost = column.lost(review)
    if lost:
        yield "Lost Papers:"
        for match in lost[:MOST_LOST]:
            yield f"  - {_title(match)}  {match.lost_at}"
            yield f"    {one_line(match.resolution)}"
        if lost[MOST_LOST:]:
            yield f"  and {len(lost) - MOST_LOST} more in lost_papers.csv"


def _title(match: PaperMatch) -> str:
    title = one_line(match.paper.title or match.paper.name)
    return title if len(title) <= TITLE_CHARS else title[:TITLE_CHARS] + "..."


def _table(results: BenchmarkResults) -> Iterator[str]:
    """One row a model, over its reviews."""
    level = f"[{100 * results.dataset.settings.level:g}%]"
    rows = [
        [
            "model",
            "passed",
            f"recall {level}",
            "micro",
            "precision",
            "ceiling",
            "retrieval",
            "screening",
        ]
    ]
    for model, column in results.columns.items():
        by_path = column.by_path()
        rows.append(
            [
                _name(model),
                f"{by_path['passed'].value}/{by_path['passed'].n}",
                with_ends(by_path["macro.recall"], of_ends=".3f"),
                fixed(by_path["micro.recall"].value),
                fixed(by_path["macro.precision"].value),
                fixed(by_path["macro.ceiling"].value),
                fixed(by_path["macro.retrieval_recall"].value),
                fixed(by_path["macro.screening_recall"].value),
            ]
        )
    widths = [max(map(display_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(map(padded, row, widths)).rstrip()


def _lost(results: BenchmarkResults) -> Iterator[str]:
    """How each model's studies were matched, how many it lost, and where."""
    for model, column in results.columns.items():
        by_path = column.by_path()
        counts = {step: by_path[f"lost.{step}"].value or 0 for step in LOST_AT}
        total = int(sum(counts.values()))
        studies = plural(int(by_path["count.truth"].value or 0), "study", "studies")
        name = f"{one_line(model)}: " if len(results.columns) > 1 else ""
        methods = ", ".join(
            f"{key} {by_path[f'count.method.{method}'].value}"
            for key, method in METHODS.items()
        )
        lost_steps = ", ".join(f"{step} {n}" for step, n in counts.items() if n)
        lost = f"lost {total}: {lost_steps}" if total else "lost none"
        yield f"{name}{studies}, matched by {methods}; {lost}"


def _pairs(pairs: Sequence[ModelPair]) -> Iterator[str]:
    for pair in pairs[:MOST_PAIRS]:
        compared = pair.metrics["macro.recall"]
        between, test = compared.gap.interval, pair.sign_test
        interval_text = ends(between.lo, between.hi, "+.3f")
        recall = f"recall {fixed(compared.gap.value, '+.3f')} {interval_text}".rstrip()
        yield (
            f"{_name(pair.left)} minus {_name(pair.right)}  {recall}  "
            f"only one included {test.left_alone} and {test.right_alone} of {test.n}  "
            f"{plural(compared.overlap.common, 'review')} "
            f"({compared.overlap.unpaired} dropped)  "
            f"{p_value_words(compared)}"
        )
    if pairs[MOST_PAIRS:]:
        left = plural(len(pairs) - MOST_PAIRS, "more pair")
        yield f"{left} of models in comparison.csv"


def _name(model: str) -> str:
    """A model where numbers must find room beside it."""
    return shortened(one_line(model), MODEL_WIDTH)


def _finding(finding: Finding) -> str:
    example = f", such as {finding.example}" if finding.example else ""
    detail = f" ({finding.n:,}{example})" if finding.n > 1 or example else ""
    return f"{finding.where}: {finding.message}{detail}"
