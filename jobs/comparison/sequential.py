"""Two models compared while their run goes on, with an interval that allows it.

The units are documents, each with the mean of its items' differences, so that a paper
with many questions weighs no more than another. They come in the order of the plan.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from jobs.comparison.pairing import Incomparable, Paired, pair
from jobs.comparison.verdict import MIN_CLUSTERS
from jobs.metrics import Sequential, round12
from runner.errors import UsageError
from runner.run.early_stopping import FinishedItems, InterimResult, InterimVerdict
from runner.scorecard import Comparable
from store.results import StoppingRule

_ENDS = re.compile(r"[/:#]")
"""What may follow a document in the key of an item."""


def decide(
    a: Comparable, b: Comparable, finished: FinishedItems, stopping: StoppingRule
) -> InterimResult:
    """How B stands to A in one metric, by the documents that are finished.

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
    in_order = _in_order(finished.keys, set(paired.drawn))
    done = in_order if finished.is_whole else in_order[:-1]
    means = _means(paired)
    units = [means[cluster] for cluster in done if cluster in means]
    watched = Sequential(values=units, alpha=stopping.alpha)
    standing, at = _decided(
        watched, stopping.margin, lower_is_better=paired.values.lower_is_better
    )
    then = watched if at is None else watched.upto(at)
    interval = then.interval
    return InterimResult(
        standing=standing,
        clusters=len(then.values),
        cluster=paired.values.cluster,
        difference=None if then.mean is None else round12(then.mean),
        lo=-1.0 if interval.lo is None else interval.lo,
        hi=1.0 if interval.hi is None else interval.hi,
    )


def _paired(a: Comparable, b: Comparable, metric: str) -> Paired:
    """Both sides of the metric."""
    watchable = [path for path, make in a.items() if make().kind == "mean"]
    if metric not in watchable or metric not in b:
        raise UsageError(
            f"{metric!r} is no mean over items, and cannot be watched; these can: "
            f"{', '.join(watchable) or 'none'}."
        )
    try:
        paired = pair(a[metric](), b[metric]())
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
    found: dict[str, None] = {}
    last = None
    for key in keys:
        cluster = next((name for name in _beginnings(key) if name in clusters), None)
        if cluster is None:
            continue
        if cluster != last and cluster in found:
            raise UsageError(
                f"The items of {cluster} do not stand together in the plan, so that it "
                "is never known to be finished; run without --stop-when-decided."
            )
        found[cluster] = None
        last = cluster
    return list(found)


def _beginnings(key: str) -> Iterator[str]:
    """A key, and what it begins with, the longest first."""
    yield key
    for end in reversed([found.start() for found in _ENDS.finditer(key)]):
        yield key[:end]


def _means(paired: Paired) -> dict[str, float]:
    """The mean difference, B minus A, in each cluster."""
    own: dict[str, list[float]] = {}
    gaps = (paired.b.first - paired.a.first).tolist()
    for cluster, gap in zip(paired.clusters, gaps, strict=True):
        own.setdefault(cluster, []).append(gap)
    return {cluster: math.fsum(each) / len(each) for cluster, each in own.items()}


def _decided(
    watched: Sequential, margin: float, *, lower_is_better: bool
) -> tuple[InterimVerdict, int | None]:
    """What was shown first, and after how many clusters; fewer than ten show nothing.

    The bounds hold at any number of clusters; the ten are the rule of all verdicts.
    """
    above, below = watched.first_above(margin), watched.first_below(-margin)
    shown: list[tuple[int, InterimVerdict]] = []
    if above is not None:
        shown.append((above, "worse" if lower_is_better else "better"))
    if below is not None:
        shown.append((below, "better" if lower_is_better else "worse"))
    inside = watched.first_above(-margin), watched.first_below(margin)
    if margin > 0 and inside[0] is not None and inside[1] is not None:
        shown.append((max(inside[0], inside[1]), "close"))
    if not shown or len(watched.values) < MIN_CLUSTERS:
        return "undecided", None
    at, standing = min(shown)
    return standing, max(at, MIN_CLUSTERS)
