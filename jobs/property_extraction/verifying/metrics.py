"""How many pairs a model takes for one property, and how sure it is of it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from jobs.metrics import Agreement, agreement, ratio, replicate_agreement
from jobs.property_extraction.verifying.verification import Column, Verification
from runner.scorecard import Metric

HEADLINE = "match_rate"


def metrics(verification: Verification, column: Column) -> Iterator[Metric]:
    """The metrics of one model."""
    said = [ruling.is_match for ruling in column.rulings.values()]
    yes, no = said.count(True), said.count(False)
    yield Metric(
        path=HEADLINE,
        value=ratio(yes, yes + no),
        n=yes + no,
        definition="match_rate@1(pairs called a match / pairs with a verdict; by "
        "majority of replicates)",
    )
    for path, value, definition in (
        ("pairs", len(verification.pairs), "pairs that were asked about, or equal"),
        ("matches", yes, "pairs called a match"),
        ("rejected", no, "pairs called no match"),
        ("undecided", said.count(None), "pairs with as many for as against, or none"),
        ("auto_verified", len(verification.equal), "names equal but for case"),
        ("unread", column.unread, "verdicts whose reply could not be read"),
    ):
        yield Metric(
            path=path,
            value=value,
            n=len(verification.pairs),
            definition=f"{path}@1({definition})",
        )
    by_pair: dict[tuple[str, str], list[bool]] = {}
    for each in column.verdicts:
        if each.is_match is not None:
            by_pair.setdefault((each.pred_name, each.gt_name), []).append(each.is_match)
    alike = replicate_agreement(by_pair.values())
    yield Metric(
        path="replicates_agree",
        value=alike.mean_pairwise,
        n=alike.items,
        definition="replicates_agree@1(share of equal verdicts over pairs of "
        "replicates, mean over name pairs)",
    )


def agreements(
    verification: Verification,
) -> Iterator[tuple[Column, Column, Agreement]]:
    """How far each two models agree on the pairs that both decided."""
    for first, second in combinations(verification.columns, 2):
        both = [
            (ruling.is_match, other.is_match)
            for pair, ruling in first.rulings.items()
            if (other := second.rulings.get(pair)) is not None
            and None not in {ruling.is_match, other.is_match}
        ]
        ours, theirs = ([said[place] for said in both] for place in range(2))
        yield first, second, agreement(ours, theirs, (False, True))
