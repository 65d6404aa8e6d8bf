"""What screening comes to for whoever reads nothing: all of one kind, or by chance."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.measures import TrivialBaseline
from jobs.metrics import ratio
from jobs.screening.measuring.results import Column

CHANCE = "chance, with the model's share of inclusions"


def trivial(column: Column) -> Iterator[TrivialBaseline]:
    """Baselines over the decided records, and of a random order."""
    cells = column.strata["all"].counts.decided
    tp, fp, tn, fn = cells.pooled()
    n, positives = tp + fp + tn + fn, tp + fn
    included = ratio(tp + fp, n)
    prevalence = ratio(positives, n)
    if included is None or prevalence is None:
        return
    majority = max(prevalence, 1 - prevalence)
    always = "exclude" if prevalence <= 1 - prevalence else "include"
    whole = "decided records"
    for word, key, name, value, how in (
        ("sensitivity", "random", CHANCE, included, f"included / {whole}"),
        ("specificity", "random", CHANCE, 1 - included, f"excluded / {whole}"),
        ("precision", "random", "chance", prevalence, f"included papers / {whole}"),
        (
            "accuracy",
            "majority",
            f"always {always}",
            majority,
            f"records of the larger class / {whole}",
        ),
        (
            "f1",
            "include_all",
            "always include",
            2 * prevalence / (1 + prevalence),
            "2 q / (1 + q), q = the share of included papers",
        ),
    ):
        yield TrivialBaseline(
            of=f"all.micro.{word}", key=key, name=name, value=value, n=n, how=how
        )
    reviews = int((cells.n > 0).sum())
    for word, value, how in (
        ("auroc", 0.5, "any order"),
        ("wss95", 0.0, "recall rises with the records read"),
    ):
        yield TrivialBaseline(
            of=f"all.macro.{word}",
            key="random",
            name="a random order",
            value=value,
            n=reviews,
            how=how,
        )
