"""What a model concludes of a review, what its authors did, and what a judge says."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.columns import number, one_line
from jobs.quoted import quoted
from jobs.review_benchmark.explain.told import Told


def conclusion_lines(told: Told) -> Iterator[str]:
    """Both conclusions, replicate by replicate; nothing where none was asked for."""
    if told.dataset.verdict == "off" or not told.rebuilt.conclusions:
        return
    for place, own in enumerate(told.rebuilt.conclusions, start=1):
        yield ""
        yield f"conclusion, replicate {place}"
        if not own.text:
            yield f"  none: {one_line(own.failure)}"
            continue
        yield from quoted(own.text)
        judged = own.judged.get(told.review.id)
        if judged is not None:
            yield (
                f"  judged {number(judged.similarity, 2)} alike, direction "
                f"{judged.direction}"
            )
            yield from quoted(judged.rationale)
        elif own.failure:
            yield f"  not compared: {one_line(own.failure)}"
    if told.review.conclusion:
        yield ""
        yield "conclusion of the authors"
        yield from quoted(told.review.conclusion)
