"""The summary of a scoring, for a terminal: what, how well, how sure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from jobs.evidence_retrieval.measuring.comparing import Gap
from jobs.evidence_retrieval.measuring.results import ModelResults, Results
from jobs.evidence_retrieval.queries import SCORED, SKIPPED, UNJUDGED, UNSCORED
from jobs.metrics.gate import STATES
from runner.scorecard import Finding, Metric
from store.printable import printable

LINE_CHARS = 240
UNDEFINED = "n/a"

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
    "k.mean": "mean K",
    "screening_sensitivity": "screening sensitivity",
    "screening_fn_per_1000": "missed per 1000 queries",
    "screening_fn_per_1000_positive": "missed per 1000 with evidence",
    "alert_precision": "alert precision",
}
"""The metrics of the table, and what they are called there.

What evidence measures are cut at is added: a number, or K where it is chosen.
"""

GATE = ("auroc", "auprc")

COMPARED = ("auroc", "ndcg@10", "mrr")
"""Differences that the summary tells; all of them are in `comparison.csv`."""

SUBSETS = {"scored": "all", "has_evidence": "evidence"}


def run_text(results: Results, findings: Sequence[Finding]) -> str:
    """The summary of one scoring."""
    lines: list[str] = []
    for model, own in results.models.items():
        lines += [*_model(results, model, own), ""]
    lines += [_gap(gap) for gap in results.gaps if gap.metric in COMPARED]
    lines.append(_counts(results, findings))
    lines += [f"{f.where}: {f.message}" for f in findings if f.severity != "info"]
    return "\n".join([*(printable(line, line=LINE_CHARS) for line in lines), ""])


def _model(results: Results, model: str, own: ModelResults) -> Iterator[str]:
    known, settings = own.by_path(), results.settings
    profile: str = settings.profile
    if settings.profile_changes:
        profile += f", changed: {', '.join(settings.profile_changes)}"
    config = own.block.prediction.config
    yield f"evidence-retrieval  model {model}  config {config}  profile {profile}"
    yield _sizes(own, known)
    yield from _table(own, known, level=settings.level)
    if "states.n" in known:
        shown = (f"{name} {known[f'states.{name}'].value:,}" for name in STATES)
        yield f"states  {'  '.join(shown)}"
    yield from (f"not available: {each}" for each in own.not_available)


def _sizes(own: ModelResults, known: Mapping[str, Metric]) -> str:
    queries, block = own.block.queries, own.block
    judged = int(block.judged.sum())
    positive = int((queries.y == 1).sum())
    share = f" ({positive / judged:.2%})" if judged else ""
    parts = [
        f"{len(queries):,} queries",
        f"{len(queries.posts):,} posts",
        f"{len(queries.criteria):,} criteria",
        f"{positive:,} positive{share}",
    ]
    counts = [
        f"{name} {block.statuses.get(name, 0):,}"
        for name in (SCORED, UNSCORED, SKIPPED)
    ]
    if judged < len(queries):
        counts.append(f"{UNJUDGED} {len(queries) - judged:,}")
    coverage = known["coverage"].value
    if coverage is not None and coverage < 1:
        counts.append(f"coverage {coverage:.2%}")
    return f"{'  '.join(parts)}   {'  '.join(counts)}"


def _table(
    own: ModelResults, known: Mapping[str, Metric], *, level: float
) -> Iterator[str]:
    folds = len(own.folds)
    spread = f"mean +- std ({folds} folds)" if folds else ""
    head = ["", "value", spread, f"{100 * level:g}% CI (posts)", "subset", ""]
    rows = [head]
    rule = own.block.chosen.rule if own.block.chosen else ""
    has_gate = own.block.gated is None or own.block.gated.is_probability
    for path, label in ROWS.items():
        at = f"@{rule}" if path.startswith("evidence_") else ""
        how = "" if has_gate or path not in GATE else " (largest score)"
        if f"{path}{at}" in known:
            rows.append(_row(f"{label}{at}{how}", known[f"{path}{at}"]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (f"{c:<{width}}" for c, width in zip(row, widths, strict=True) if width)
        yield "  ".join(cells).rstrip()


def _row(label: str, metric: Metric) -> list[str]:
    n = metric.n if metric.n_defined is None else metric.n_defined
    subset = SUBSETS.get(metric.subset, metric.subset)
    target = "" if metric.target is None else f"target {metric.target}"
    is_folds = metric.mean is not None
    return [
        label,
        _fixed(metric.value),
        f"{_fixed(metric.mean)} +- {_fixed(metric.std)}" if is_folds else "",
        ""
        if metric.lo is None or metric.hi is None
        else f"[{_fixed(metric.lo)}, {_fixed(metric.hi)}]",
        f"{subset} {n:,}",
        f"{target}  {metric.verdict or UNDEFINED}" if target else "",
    ]


def _fixed(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.4f}"


def _gap(gap: Gap) -> str:
    value = UNDEFINED if gap.value is None else f"{gap.value:+.4f}"
    ends = gap.interval
    shown = (
        ""
        if ends is None or ends.lo is None or ends.hi is None
        else f" [{ends.lo:.4f}, {ends.hi:.4f}]"
    )
    p = UNDEFINED if gap.p_holm is None else f"{gap.p_holm:.2g}"
    dropped = gap.left_only + gap.right_only
    left_out = f" ({dropped:,} dropped)" if dropped else ""
    return (
        f"{gap.left} - {gap.right}   {gap.metric} {value}{shown}   "
        f"{gap.n:,} queries{left_out}, p (Holm) {p}"
    )


def _counts(results: Results, findings: Sequence[Finding]) -> str:
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = sum(finding.severity == "warn" for finding in findings)
    leaks = sum(f.severity == "error" for f in results.sheet.leakage)
    sizes = "".join(
        f"  {name} {number:,}" for name, number in results.sheet.sizes.items() if number
    )
    return f"findings  {errors} errors  {warnings} warnings    leakage  {leaks}{sizes}"
