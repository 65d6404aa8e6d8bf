"""Compares two models while their runs go on, with intervals that allow for it.

The units are documents, each with the mean of its items' differences, so that a paper
with many questions weighs no more than another. They come in the order of the plan.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jobs.kit.comparison.difference import MIN_CLUSTERS
from jobs.kit.comparison.pairing import Incomparable, PairedItems, pair_items
from jobs.kit.comparison.sides import (
    ModelReference,
    RunModel,
    RunReference,
    paired_models,
)
from jobs.kit.metrics import ConfidenceSequence, round12
from jobs.kit.text_format import fixed
from runner.cli.console import print_json, print_note, print_text
from runner.errors import UsageError
from runner.registry import job_of
from runner.run.early_stopping import (
    FinishedItems,
    InterimResult,
    InterimScores,
    InterimVerdict,
    interim_scores,
)
from runner.score.scoring import settings_in
from runner.scorecard import Comparable
from store.database import open_reader
from store.events import RunStarted
from store.read.status import run_started
from store.results import StoppingRule
from store.runs import resolve

_ENDS = re.compile(r"[/:#]")
"""Characters that may follow a document in the key of an item."""


def decide(
    a: Comparable, b: Comparable, finished: FinishedItems, stopping: StoppingRule
) -> InterimResult:
    """Compare B with A in one metric, by the documents that are finished.

    A document whose items may not all be finished is left out: the last one, while the
    plan goes on.

    Args:
        a: the metrics of one model.
        b: those of the other.
        finished: the items that both have finished.
        stopping: which metric, and what is to be told.

    Raises:
        UsageError: the metric is not given item by item, not from 0 to 1, or the items
            of a document do not stand together in the plan.
    """
    paired = _paired(a, b, stopping.metric)
    in_order = _in_order(finished.keys, set(paired.resampled_clusters))
    done = in_order if finished.is_whole else in_order[:-1]
    means = _means(paired)
    units = [means[cluster] for cluster in done if cluster in means]
    watched = ConfidenceSequence(values=units, alpha=stopping.alpha)
    verdict, at = _decided(
        watched, stopping.margin, lower_is_better=paired.values.lower_is_better
    )
    then = watched if at is None else watched.after(at)
    interval = then.interval
    return InterimResult(
        verdict=verdict,
        clusters=len(then.values),
        cluster=paired.values.cluster,
        difference=None if then.mean is None else round12(then.mean),
        lo=-1.0 if interval.lo is None else interval.lo,
        hi=1.0 if interval.hi is None else interval.hi,
    )


def _paired(a: Comparable, b: Comparable, metric: str) -> PairedItems:
    """Both sides of the metric."""
    watchable = [path for path, make in a.items() if make().kind == "mean"]
    if metric not in watchable or metric not in b:
        raise UsageError(
            f"{metric!r} is no mean over items, and cannot be watched; these can: "
            f"{', '.join(watchable) or 'none'}."
        )
    try:
        paired = pair_items(a[metric](), b[metric]())
    except Incomparable as error:
        raise UsageError(f"{metric!r} cannot be watched: {error}") from error
    values = (*paired.a.first.tolist(), *paired.b.first.tolist())
    if not all(0 <= value <= 1 for value in values):
        raise UsageError(
            f"{metric!r} has values outside of 0 to 1, and cannot be watched; choose "
            "another metric."
        )
    return paired


def _in_order(keys: Iterable[str], clusters: set[str]) -> list[str]:
    """The clusters that the items are part of, in the items' order."""
    ordered: dict[str, None] = {}
    last = None
    for key in keys:
        cluster = next((name for name in _beginnings(key) if name in clusters), None)
        if cluster is None:
            continue
        if cluster != last and cluster in ordered:
            raise UsageError(
                f"The items of {cluster} are not contiguous in the plan, so "
                "their end cannot be detected; run without "
                "--stop-when-decided."
            )
        ordered[cluster] = None
        last = cluster
    return list(ordered)


def _beginnings(key: str) -> Iterator[str]:
    """A key, and what it begins with, the longest first."""
    yield key
    for end in reversed([match.start() for match in _ENDS.finditer(key)]):
        yield key[:end]


def _means(paired: PairedItems) -> dict[str, float]:
    """The mean difference, B minus A, in each cluster."""
    gaps_by_cluster: dict[str, list[float]] = {}
    gaps = (paired.b.first - paired.a.first).tolist()
    for cluster, gap in zip(paired.clusters, gaps, strict=True):
        gaps_by_cluster.setdefault(cluster, []).append(gap)
    return {
        cluster: math.fsum(cluster_gaps) / len(cluster_gaps)
        for cluster, cluster_gaps in gaps_by_cluster.items()
    }


def _decided(
    watched: ConfidenceSequence, margin: float, *, lower_is_better: bool
) -> tuple[InterimVerdict, int | None]:
    """Return what was shown first, and after how many clusters; at least ten.

    The bounds hold at any number of clusters; the ten are the rule of all verdicts.
    """
    above, below = watched.first_above(margin), watched.first_below(-margin)
    decisions: list[tuple[int, InterimVerdict]] = []
    if above is not None:
        decisions.append((above, "worse" if lower_is_better else "better"))
    if below is not None:
        decisions.append((below, "better" if lower_is_better else "worse"))
    inside = watched.first_above(-margin), watched.first_below(margin)
    if margin > 0 and inside[0] is not None and inside[1] is not None:
        decisions.append((max(inside[0], inside[1]), "close"))
    if not decisions or len(watched.values) < MIN_CLUSTERS:
        return "undecided", None
    at, verdict = min(decisions)
    return verdict, max(at, MIN_CLUSTERS)


_PHRASES = {
    "better": "B is better",
    "worse": "B is worse",
    "close": "they are as good",
    "undecided": "undecided",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunningRun:
    """A run and its front."""

    run: str
    started: RunStarted
    front: InterimScores


def show_running(
    references: Sequence[ModelReference],
    runs_dir: Path,
    typed: Mapping[str, Sequence[str]],
    stopping: StoppingRule,
    *,
    is_json: bool,
) -> None:
    """Print how the models of the named runs stand to each other.

    Of several comparisons each gets its part of alpha, so that the chance of any wrong
    decision is at most alpha in all.

    Raises:
        UsageError: a recorded scoring is named, the runs are of different jobs, or the
            metric cannot be watched.
    """
    runs = {
        reference.source: _running_run(reference.source, runs_dir, typed)
        for reference in references
    }
    if len({run.started.job for run in runs.values()}) > 1:
        raise UsageError("The runs are of different jobs; compare runs of one job.")
    models = {source: run.started.models["subject"] for source, run in runs.items()}
    pairs = paired_models(references, models)
    pair_rule = replace(stopping, alpha=stopping.alpha / len(pairs))
    results = [(a, b, _interim_result(runs, a, b, pair_rule)) for a, b in pairs]
    notes = list(_notes(runs.values()))
    for note in notes:
        print_note(f"note: {note}")
    if is_json:
        print_json(
            "siftlog.interim-comparison/1",
            {
                "metric": stopping.metric,
                "margin": stopping.margin,
                "alpha": stopping.alpha,
                "alpha_each": pair_rule.alpha,
                "notes": notes,
                "comparisons": [_json(runs, *comparison) for comparison in results],
            },
        )
        return
    print_text(
        f"{stopping}, B minus A, mean over documents; wrong at any look with a chance "
        f"of at most {stopping.alpha:g}"
    )
    for (_, a), (_, b), result in results:
        gap = fixed(result.difference, "+.3f")
        print_text(
            f"A {a}  B {b}  {gap} [{result.lo:.3f}, {result.hi:.3f}]  "
            f"{result.clusters:,} {result.cluster}s  {_PHRASES[result.verdict]}"
        )


def _running_run(
    source: RunReference, runs_dir: Path, typed: Mapping[str, Sequence[str]]
) -> _RunningRun:
    if source.number is not None:
        raise UsageError(
            f"{source} is a recorded scoring, which does not go on; name the run."
        )
    folder = resolve(runs_dir, source.run)
    with open_reader(folder.log) as reader:
        started = run_started(reader)
        job = job_of(started)
        dataset = job.load(settings_in(job, reader, typed))
        return _RunningRun(
            run=folder.run_id,
            started=started,
            front=interim_scores(job, dataset, reader),
        )


def _interim_result(
    runs: Mapping[RunReference, _RunningRun],
    a: RunModel,
    b: RunModel,
    stopping: StoppingRule,
) -> InterimResult:
    left, right = (runs[source].front for source, _ in (a, b))
    return decide(
        left.comparable.get(a[1], {}),
        right.comparable.get(b[1], {}),
        _both(left.finished, right.finished),
        stopping,
    )


def _both(a: FinishedItems, b: FinishedItems) -> FinishedItems:
    """Return the items that both runs have finished, in A's order, without gaps."""
    keys_b = set(b.keys)
    if a.is_whole and b.is_whole:
        keys = tuple(key for key in a.keys if key in keys_b)
        return FinishedItems(keys=keys, is_whole=True)
    shared = 0
    while shared < len(a.keys) and a.keys[shared] in keys_b:
        shared += 1
    return FinishedItems(keys=a.keys[:shared], is_whole=False)


def _notes(runs: Iterable[_RunningRun]) -> Iterator[str]:
    for run in runs:
        if run.started.stopping is None:
            yield (
                f"{run.run} processes its data in order: the interval is "
                "valid if that order is unrelated to which model is better."
            )


def _json(
    runs: Mapping[RunReference, _RunningRun],
    a: RunModel,
    b: RunModel,
    result: InterimResult,
) -> dict[str, Any]:
    return {
        **{
            side: {
                "run": runs[source].run,
                "model": model,
                "seq": runs[source].front.seq,
            }
            for side, (source, model) in (("a", a), ("b", b))
        },
        "standing": result.verdict,
        "n": result.clusters,
        "cluster": result.cluster,
        "difference": result.difference,
        "lo": result.lo,
        "hi": result.hi,
    }
