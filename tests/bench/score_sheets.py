"""Scoring evidence-retrieval: the full-size set, a hundred times it, and others' tools.

Seconds are the processor's: nothing here waits. The set is made by arithmetic, its
lists as they are asked for, as a reader that streams would. The large one comes first:
a process's peak memory never falls.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np

from jobs.evidence_retrieval.metrics.judged_predictions import rules_of
from jobs.evidence_retrieval.queries import ScoringInput
from jobs.evidence_retrieval.score import score
from jobs.kit.metrics.areas import auprc_of, auroc_of, cluster_index
from jobs.kit.metrics.classification import auprc, auroc
from jobs.kit.metrics.ranking import evaluate, hits
from jobs.kit.metrics.resampling import Resamples
from tests.bench.row import Row
from tests.bench.verdict import least, most, shown
from tests.jobs.evidence_retrieval.sheets import dataset, full_sheet, settings
from tests.jobs.kit.metrics.set_a import SetA, set_a
from tests.replacing import replace

KS = (1, 3, 5, 10, 20)
LOOPED = 10
"""Resamples that scikit-learn is asked for; the rest in a straight line."""


def measure(quick: bool) -> list[Row]:
    """Whole scorings at two sizes, and single metrics beside others' tools."""
    times = 10 if quick else 100
    seconds = _timed(lambda: score(dataset(), full_sheet(times)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    large = f"{14_770 * times:,} queries, streamed"
    return [
        _row(f"{large}, s", seconds, 3 * times),
        _row(f"{large}, peak MB", peak, 1500),
        *_whole(),
        *_areas(set_a()),
        *_rankings(set_a()),
    ]


def _row(what: str, value: float, bound: float) -> Row:
    return most("evidence", what, value, bound)


def _timed(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _best(work: Callable[[], object], rounds: int = 3) -> float:
    """The shortest of several rounds: what the machine can do undisturbed."""
    return min(_timed(work) for _ in range(rounds))


def _whole() -> list[Row]:
    sheet = _held(full_sheet())
    scored = _best(lambda: score(dataset(), sheet))
    rows = _best(lambda: sum(1 for _ in score(dataset(boot_b=0), sheet).details))
    return [
        _row("14,770 queries, both bootstraps, s", scored, 2),
        shown("the same without bootstraps, every line made, s", rows, "evidence"),
    ]


def _held(sheet: ScoringInput) -> ScoringInput:
    """With lists in memory, as an import of a file of this size has them."""
    gold = sheet.queries.gold
    return replace(
        sheet,
        queries=replace(sheet.queries, gold=None if gold is None else list(gold)),
        predictions=tuple(
            replace(each, lists={name: list(own) for name, own in each.lists.items()})
            for each in sheet.predictions
        ),
    )


def _areas(a: SetA) -> list[Row]:
    """Both areas under 2,000 resamples, beside scikit-learn in a loop."""
    from sklearn.metrics import (  # noqa: PLC0415 - only to be compared with
        average_precision_score,
        roc_auc_score,
    )

    cluster = cluster_index(a.post)
    by_post = Resamples(sorted(set(a.post)), cluster="post")
    by_row, row = Resamples.of_rows(len(a.y)), np.arange(len(a.y))

    def ours(
        draws: Resamples, index: np.ndarray[tuple[int], np.dtype[np.intp]]
    ) -> None:
        both = [make(a.y, a.p, index) for make in (auroc_of, auprc_of)]
        draws.intervals(both)

    def theirs() -> None:
        rng = np.random.default_rng(0)
        for _ in range(LOOPED):
            drawn = rng.integers(0, len(a.y), len(a.y))
            roc_auc_score(a.y[drawn], a.p[drawn])
            average_precision_score(a.y[drawn], a.p[drawn])

    rows_s = _best(lambda: ours(by_row, row.astype(np.intp)))
    posts_s = _best(lambda: ours(by_post, cluster))
    looped_s = _best(theirs) * 2000 / LOOPED
    once = _best(lambda: (auroc(a.y, a.p), auprc(a.y, a.p)))
    return [
        _row("AUROC and AUPRC, 2,000 resamples by query, s", rows_s, 0.3),
        _row("the same by post, s", posts_s, 0.2),
        least("evidence", "scikit-learn in a loop, times longer", looped_s / rows_s, 1),
        shown("both areas once, ms", 1000 * once, "evidence"),
    ]


def _rankings(a: SetA) -> list[Row]:
    """All ranking measures at five cut-offs, beside trec_eval's binding."""
    import pytrec_eval  # noqa: PLC0415 - only to be compared with

    rows = []
    for name, chosen, bound in (
        ("1,379", a.index[a.y].tolist(), 5.0),
        ("14,770", a.index.tolist(), 35.0),
    ):
        gold = [a.gold(i) for i in chosen]
        ranked = [a.ranked(i) for i in chosen]

        def ours(
            gold: list[list[str]] = gold, ranked: list[list[str]] = ranked
        ) -> None:
            evaluate(hits(gold, ranked), KS, rules_of(settings()))

        def theirs(
            gold: list[list[str]] = gold, ranked: list[list[str]] = ranked
        ) -> None:
            qrels = {str(i): dict.fromkeys(own, 1) for i, own in enumerate(gold)}
            run = {
                str(i): {item: float(len(own) - j) for j, item in enumerate(own)}
                for i, own in enumerate(ranked)
            }
            cuts = ",".join(map(str, KS))
            names = ("recall", "P", "success", "map_cut", "ndcg_cut")
            measures = {f"{each}.{cuts}" for each in names}
            pytrec_eval.RelevanceEvaluator(qrels, {*measures, "recip_rank"}).evaluate(
                run
            )

        mine, other = _best(ours), _best(theirs)
        rows += [
            _row(f"ranking measures of {name} queries, ms", 1000 * mine, bound),
            least("evidence", "trec_eval's binding, times longer", other / mine, 1),
        ]
    return rows
