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
from jobs.kit.summary import finding_lines, summary_text
from jobs.kit.text_format import ends, fixed, plural, with_ends
from jobs.review_benchmark.agent_results import AgentResults
from jobs.review_benchmark.benchmark import failure_reasons, percent
from jobs.review_benchmark.conclusion_similarity import ThresholdSource
from jobs.review_benchmark.effects import EffectReason
from jobs.review_benchmark.losses import LOST_AT, PaperMatch
from jobs.review_benchmark.matching import METHODS
from jobs.review_benchmark.results import BenchmarkResults, not_available
from jobs.review_benchmark.verdicts import ConclusionVerdicts
from runner.scorecard import Finding
from store.document import Block, Fact, Numbers, TableBlock, Words, number, wide_table
from store.printable import one_line, shortened

MOST_PAIRS = 10
"""Most pairs of alike reviews, or of models, in the summary."""

VERDICT_NAME_WIDTH = 14
"""Cells of a model's name."""


def verdict_blocks(concluded: Sequence[ConclusionVerdicts]) -> Iterator[Block]:
    """Yield a line for each agent, and the reviews with alike conclusions."""
    if not concluded:
        return
    yield ""
    yield (
        f"Verdicts ({concluded[0].kind}): conclusions compared with those "
        "of the authors"
    )
    rows = [
        (
            verdicts.model,
            f"{len(verdicts.compared)}/{len(verdicts.matches)}",
            mean(verdicts.compared.values()),
            _mismatched(verdicts),
            verdicts.auroc,
            None if verdicts.threshold is None else verdicts.threshold.value,
            _above(verdicts),
            _passed(verdicts),
        )
        for verdicts in concluded
    ]
    titles = ("n", "matched", "null (pairs)", "AUROC", "threshold", "above", "passed")
    numbers = (Numbers(title, decimals=3) for title in titles)
    model = Words("model", VERDICT_NAME_WIDTH, keeps_end=True)
    yield TableBlock([model, *numbers], rows)
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
        yield Fact("not available: ", missing, indent=2, width=0)
    yield from _similar_pairs(concluded)


def _mismatched(verdicts: ConclusionVerdicts) -> str:
    pairs = verdicts.mismatched
    return f"{number(mean(pairs.values()), 3)} ({len(pairs)})"


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


def _other_thresholds(concluded: Sequence[ConclusionVerdicts]) -> Iterator[Block]:
    """Yield the source of each threshold not drawn by labels or the agent's pairs."""
    sources = {
        verdicts.threshold.source: verdicts.threshold.n
        for verdicts in concluded
        if verdicts.threshold is not None
    }
    for source, n in sources.items():
        if source in _SOURCES:
            yield f"  {_SOURCES[source].format(n=n)}"


def _judged(concluded: Sequence[ConclusionVerdicts]) -> Iterator[Block]:
    """Yield how the stated effects compare, if they decide."""
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
            yield Fact("", line, indent=2, width=0)


REASONS: Mapping[EffectReason, str] = {
    "same": "same effect",
    "direction": "other direction",
    "certainty": "other certainty",
    "several_directions": "not judged (several directions)",
    "not_stated": "not judged (none stated)",
    "unrelated": "not judged (no word in common)",
}
"""Reasons of a comparison of effects, in words."""


def _opposite(concluded: Sequence[ConclusionVerdicts]) -> Iterator[Block]:
    """Yield the reviews that a judge fails for the opposite direction."""
    for verdicts in concluded:
        reviews = [
            review for review, match in verdicts.matches.items() if match.is_opposite
        ]
        if reviews:
            line = f"{verdicts.model} concludes the opposite: {', '.join(reviews)}"
            yield Fact("", line, indent=2, width=0)


def _similar_pairs(concluded: Sequence[ConclusionVerdicts]) -> Iterator[Block]:
    """Yield the pairs of reviews that are alike, the most similar first."""
    label = "Judged alike" if concluded[0].kind == "judge" else "Most similar"
    pairs: dict[tuple[str, str], float] = {}
    for verdicts in concluded:
        for pair, similarity in verdicts.similar_reviews.items():
            pairs[pair] = max(similarity, pairs.get(pair, similarity))
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    for (first, second), similarity in islice(ordered, MOST_PAIRS):
        text = f"{label}: {first} and {second} ({number(similarity, 3)})."
        yield Fact("", text, indent=2, width=0, is_cut=True)
    if len(ordered) > MOST_PAIRS:
        yield f"  And {plural(len(ordered) - MOST_PAIRS, 'more pair')}."


TITLE_CHARS = 60
MOST_LOST = 10
"""Lost papers of a review in the summary; lost_papers.csv has all."""


MOST_REVIEWS = 60
"""Results in a terminal; summary.txt has all."""

MODEL_WIDTH = 32
"""Cells of a model's name in a line of numbers; other lines show it in full."""


def run_text(
    results: BenchmarkResults,
    concluded: Sequence[ConclusionVerdicts],
    findings: Sequence[Finding],
    most: int | None = None,
) -> str:
    """Return the summary of one scoring.

    Args:
        results: the results of all agents.
        concluded: comparisons of conclusions, by model.
        findings: of the scoring.
        most: largest number of reviews; None: all.
    """
    every = [
        (column, review)
        for column in results.columns.values()
        for review in column.benchmarks
    ]
    blocks: list[Block] = []
    for column, review in every[:most]:
        blocks += [*_review(results, column, review), ""]
    left = len(every) - len(every[:most])
    if left:
        blocks += [f"{plural(left, 'more result')} in summary.txt", ""]
    blocks += [*sample_sentences(findings), _table(results), *_lost(results)]
    blocks += [*_pairs(results.pairs), *verdict_blocks(concluded)]
    return summary_text([*blocks, *finding_lines(findings)])


def _review(
    results: BenchmarkResults, column: AgentResults, review: str
) -> Iterator[Block]:
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


def _table(results: BenchmarkResults) -> TableBlock:
    """Return a table with a row for each model, over its reviews."""
    level = f"[{100 * results.dataset.settings.level:g}%]"
    titles = ("model", "passed", f"recall {level}", "micro", "precision", "ceiling")
    means = ("precision", "ceiling", "retrieval_recall", "screening_recall")
    paths = ("micro.recall", *(f"macro.{name}" for name in means))
    rows: list[list[str]] = []
    for model, column in results.columns.items():
        by_path = column.by_path()
        rows.append(
            [
                _name(model),
                f"{by_path['passed'].value}/{by_path['passed'].n}",
                with_ends(by_path["macro.recall"], of_ends=".3f"),
                *(fixed(by_path[path].value) for path in paths),
            ]
        )
    return wide_table([*titles, "retrieval", "screening"], rows)


def _lost(results: BenchmarkResults) -> Iterator[Block]:
    """Yield how each model's studies were matched, and the steps that lost some."""
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


def _pairs(pairs: Sequence[ModelPair]) -> Iterator[Block]:
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
    """Shorten a model's name for lines with numbers."""
    return shortened(one_line(model), MODEL_WIDTH)
