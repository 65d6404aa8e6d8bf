"""What a review comes to for whoever judges no paper: all candidates, or chance."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.measures import TrivialBaseline
from jobs.metrics import mean, ratio
from jobs.review_benchmark.measuring.column import Column

CHANCE = "chance, with the agent's share of inclusions"


def trivial(column: Column) -> Iterator[TrivialBaseline]:
    """Baselines over the reviews that have candidates."""
    pairs = [
        (own, column.rebuilt[review].candidates)
        for review, own in column.benchmarks.items()
        if column.rebuilt[review].candidates
    ]
    n = len(pairs)
    every = "include every candidate"
    for of, key, name, value, how in (
        (
            "macro.recall",
            "include_all",
            every,
            mean(own.retrieval_recall for own, _ in pairs),
            "studies among the candidates / studies, mean over reviews",
        ),
        (
            "macro.recall",
            "random",
            CHANCE,
            mean(
                own.retrieval_recall
                * sum(each.included for each in offered)
                / len(offered)
                for own, offered in pairs
            ),
            "that, times included candidates / candidates, mean over reviews",
        ),
        (
            "macro.precision",
            "include_all",
            every,
            mean(ratio(own.retrieved, len(offered)) for own, offered in pairs),
            "studies among the candidates / candidates, mean over reviews",
        ),
    ):
        yield TrivialBaseline(of=of, key=key, name=name, value=value, n=n, how=how)
