"""What a scoring says of conclusions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from jobs.columns import WIDTH, Column, cut, hanging, number, one_line, shortened, table
from jobs.counted import counted
from jobs.metrics import mean
from jobs.review_benchmark.verdicts.findings import not_available
from jobs.review_benchmark.verdicts.measured import Verdicts

MOST_PAIRS = 10
"""Alike reviews that are named."""

NAME = 20
"""Cells of a model's name."""


def verdict_text(found: Sequence[Verdicts]) -> Iterator[str]:
    """A line for each agent, and the reviews that are alike by themselves."""
    if not found:
        return
    yield ""
    yield f"Verdicts ({found[0].kind}): conclusions beside those of the authors"
    yield from table(
        (
            Column(
                title="model",
                cells=[shortened(one_line(own.model), NAME) for own in found],
                has_words=True,
            ),
            Column(
                title="n",
                cells=[f"{len(own.compared)}/{len(own.matches)}" for own in found],
            ),
            Column(
                title="matched",
                cells=[number(mean(own.compared.values()), 3) for own in found],
            ),
            Column(
                title="null (pairs)",
                cells=[
                    f"{number(mean(own.mismatched.values()), 3)} "
                    f"({len(own.mismatched)})"
                    for own in found
                ],
            ),
            Column(title="AUROC", cells=[number(own.auroc, 3) for own in found]),
            Column(title="threshold", cells=[_threshold(own) for own in found]),
            Column(title="passed", cells=[_passed(own) for own in found]),
        )
    )
    drawn = found[0].threshold
    if drawn is not None and drawn.source == "labels":
        yield (
            f"  The threshold is drawn by {counted(drawn.n, 'label')}; leave-one-out "
            f"accuracy {number(drawn.accuracy, 3)}."
        )
    yield from _opposite(found)
    for missing in not_available(found):
        yield from hanging("  not available: ", one_line(missing))
    yield from _alike(found)


def _threshold(own: Verdicts) -> str:
    return number(None if own.threshold is None else own.threshold.value, 3)


def _passed(own: Verdicts) -> str:
    if own.threshold is None:
        return "-"
    verdicts = [own.passes(review) for review in own.compared]
    return f"{verdicts.count(True)}/{len(verdicts)}"


def _opposite(found: Sequence[Verdicts]) -> Iterator[str]:
    """The reviews that a judge fails whatever the number."""
    for own in found:
        reviews = [review for review, match in own.matches.items() if match.is_opposite]
        if reviews:
            said = f"{own.model} concludes the opposite: {', '.join(reviews)}"
            yield from hanging("  ", one_line(said))


def _alike(found: Sequence[Verdicts]) -> Iterator[str]:
    """Pairs that pass beside each other, the most alike first."""
    known = "Judged alike" if found[0].kind == "judge" else "Alike by themselves"
    pairs: dict[tuple[str, str], float] = {}
    for own in found:
        for pair, similarity in own.alike.items():
            pairs[pair] = max(similarity, pairs.get(pair, similarity))
    ordered = sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    for (first, second), similarity in islice(ordered, MOST_PAIRS):
        yield cut(
            f"  {known}: {one_line(first)} and {one_line(second)} "
            f"({number(similarity, 3)}).",
            WIDTH,
        )
    if len(ordered) > MOST_PAIRS:
        yield f"  And {counted(len(ordered) - MOST_PAIRS, 'more pair')}."
