"""Formats the summary of a scoring for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobs.evidence_retrieval.metrics.paired_differences import PairedDifference
from jobs.evidence_retrieval.metrics.results import EvidenceResults, ModelResults
from jobs.evidence_retrieval.queries import SCORED, SKIPPED, UNJUDGED, UNSCORED
from jobs.kit.inputs.sampling import sample_sentences
from jobs.kit.metrics.selective import STATES
from jobs.kit.summary import finding_lines, summary_text
from jobs.kit.text_format import ends, fixed, metric_target, plural
from runner.scorecard import Finding, Metric
from store.document import Block, TableBlock, wide_table

ROWS: Mapping[str, str] = {
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "ece": "ECE",
    "brier": "Brier",
    "recall@10": "recall@10",
    "ndcg@10": "nDCG@10",
    "mrr": "MRR",
    "evidence_recall": "evidence recall",
    "evidence_precision": "evidence precision",
    "k.mean": "sentences shown, mean",
    "screening_sensitivity": "screening sensitivity",
    "screening_fn_per_1000": "missed/1000 queries",
    "screening_fn_per_1000_positive": "missed/1000 positives",
    "alert_precision": "alert precision",
}
"""Metrics of the table, with their labels.

The cut-off of evidence measures is added: a number, or K if it is selected.
"""

GATE = ("auroc", "auprc")

COMPARED = ("auroc", "ndcg@10", "mrr")
"""Differences in the summary; all of them are in `comparison.csv`."""

SUBSETS = {"scored": "all", "has_evidence": "evidence"}


def run_text(results: EvidenceResults, findings: Sequence[Finding]) -> str:
    """Return the summary of one scoring."""
    blocks: list[Block] = [*sample_sentences(findings)]
    for model, model_results in results.models.items():
        blocks += [*_model(results, model, model_results), ""]
    blocks += _gaps(results)
    blocks += [_counts(results, findings), *finding_lines(findings)]
    return summary_text(blocks)


def _model(
    results: EvidenceResults, model: str, model_results: ModelResults
) -> Iterator[Block]:
    by_path, settings = model_results.by_path(), results.settings
    profile: str = settings.profile
    if settings.profile_changes:
        profile += f", changed: {', '.join(settings.profile_changes)}"
    config = model_results.block.prediction.config
    yield f"evidence-retrieval  model {model}  config {config}  profile {profile}"
    yield from _sizes(model_results, by_path)
    yield _table(model_results, by_path, level=settings.level)
    if "states.n" in by_path:
        state_counts = (
            f"{name} {by_path[f'states.{name}'].value:,}" for name in STATES
        )
        yield f"states  {'  '.join(state_counts)}"
    yield from (f"not available: {part}" for part in model_results.not_available)


def _sizes(model_results: ModelResults, by_path: Mapping[str, Metric]) -> Iterator[str]:
    queries, block = model_results.block.queries, model_results.block
    judged = int(block.judged.sum())
    positive = int((queries.y == 1).sum())
    share = f" ({positive / judged:.2%})" if judged else ""
    yield (
        f"{plural(len(queries), 'query', 'queries')}  "
        f"{plural(len(queries.posts), 'post')}  "
        f"{plural(len(queries.criteria), 'criterion', 'criteria')}  "
        f"{positive:,} positive{share}"
    )
    counts = [
        f"{name} {block.statuses.get(name, 0):,}"
        for name in (SCORED, UNSCORED, SKIPPED)
    ]
    if judged < len(queries):
        counts.append(f"{UNJUDGED} {len(queries) - judged:,}")
    coverage = by_path["coverage"].value
    if coverage is not None and coverage < 1:
        counts.append(f"coverage {coverage:.2%}")
    yield "  ".join(counts)


def _table(
    model_results: ModelResults, by_path: Mapping[str, Metric], *, level: float
) -> TableBlock:
    folds = len(model_results.folds)
    spread = f"mean +- std ({plural(folds, 'fold')})"
    head = ["metric", "value", spread, f"{100 * level:g}% CI (posts)", "subset"]
    head.append("target")
    rows = []
    rule = model_results.block.chosen.rule if model_results.block.chosen else ""
    has_gate = (
        model_results.block.gated is None or model_results.block.gated.is_probability
    )
    for path, label in ROWS.items():
        at = f"@{rule}" if path.startswith("evidence_") else ""
        note = "" if has_gate or path not in GATE else " (largest score)"
        if f"{path}{at}" in by_path:
            rows.append(_row(f"{label}{at}{note}", by_path[f"{path}{at}"]))
    return wide_table(head, rows).filled()


def _row(label: str, metric: Metric) -> list[str | None]:
    n = metric.n if metric.n_defined is None else metric.n_defined
    subset = SUBSETS.get(metric.subset, metric.subset)
    is_folds = metric.mean is not None
    return [
        label,
        fixed(metric.value, ".4f"),
        f"{fixed(metric.mean, '.4f')} +- {fixed(metric.std, '.4f')}"
        if is_folds
        else None,
        ends(metric.lo, metric.hi, ".4f") or None,
        f"{subset} {n:,}",
        metric_target(metric) or None,
    ]


def _gaps(results: EvidenceResults) -> Iterator[Block]:
    """Yield differences of lists and models, omitting the name of an only model."""
    rows = [_gap(gap) for gap in results.gaps if gap.metric.path in COMPARED]
    if not rows:
        return
    if len(results.models) == 1:
        (model,) = results.models
        for row in rows:
            row[:2] = (name.removeprefix(f"{model}: ") for name in row[:2])
    interval = f"{100 * results.settings.level:g}% CI (posts)"
    head = ["of", "minus", "metric", "difference", interval, "queries", "p", "p (Holm)"]
    head.append("verdict")
    yield wide_table(head, rows).filled()
    yield ""


def _gap(difference: PairedDifference) -> list[str]:
    metric = difference.metric
    dropped = sum(difference.dropped)
    n, test = metric.overlap.n, metric.p_values.primary
    return [
        difference.left,
        difference.right,
        metric.path,
        fixed(difference.value, "+.4f"),
        ends(difference.interval.lo, difference.interval.hi, ".4f"),
        f"{n:,} ({dropped:,} dropped)" if dropped else f"{n:,}",
        fixed(test.p if test else None, ".2g"),
        fixed(metric.p_holm, ".2g"),
        metric.verdict,
    ]


def _counts(results: EvidenceResults, findings: Sequence[Finding]) -> str:
    """Return the number of findings, and whether leaks were checked."""
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = sum(finding.severity == "warn" for finding in findings)
    scoring_input = results.scoring_input
    leaks = sum(finding.severity == "error" for finding in scoring_input.leakage)
    done = sum(not check.not_checked for check in scoring_input.leak_checks)
    every = len(scoring_input.leak_checks)
    leakage = f"{leaks} in {done} of {every} checks" if done else "not checked"
    sizes = "".join(
        f"  {name} {number:,}" for name, number in scoring_input.sizes.items() if number
    )
    return (
        f"findings  {plural(errors, 'error')}  {plural(warnings, 'warning')}    "
        f"leakage  {leakage}{sizes}"
    )
