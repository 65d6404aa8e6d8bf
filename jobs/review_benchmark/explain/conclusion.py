"""Conclusions of a model and of the authors, their effects, and a judge's reply."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.review_benchmark.explain.told import Told
from jobs.review_benchmark.summary.verdicts import REASONS
from jobs.review_benchmark.verdicts.effects import Effect, compared, stated
from jobs.text import number, one_line, quoted_lines


def conclusion_lines(told: Told) -> Iterator[str]:
    """Both conclusions, replicate by replicate; nothing where none was asked for."""
    if told.dataset.verdict == "off" or not told.rebuilt.conclusions:
        return
    review = told.review
    truth = (
        stated(review.conclusion, review.direction, review.certainty)
        if review.conclusion
        else None
    )
    for place, own in enumerate(told.rebuilt.conclusions, start=1):
        yield ""
        yield f"conclusion, replicate {place}"
        if not own.text:
            yield f"  none: {one_line(own.failure)}"
            continue
        yield from quoted_lines(own.text)
        effect = stated(own.text, own.direction, own.certainty)
        yield f"  states {_words(effect)}"
        if truth is not None:
            within = told.dataset.settings.certainty_within
            found = compared(effect, truth, within)
            yield f"  beside the authors: {found.outcome} ({REASONS[found.reason]})"
        judged = own.judged.get(told.review.id)
        if judged is not None:
            yield (
                f"  judged {number(judged.similarity, 2)} alike, direction "
                f"{judged.direction}"
            )
            yield from quoted_lines(judged.rationale)
        elif own.failure:
            yield f"  not compared: {one_line(own.failure)}"
    if truth is not None:
        yield ""
        yield "conclusion of the authors"
        yield from quoted_lines(review.conclusion)
        yield f"  states {_words(truth)}"


def _words(effect: Effect) -> str:
    direction = effect.direction or "no direction of effect that a rule can read"
    others = f", besides {', '.join(sorted(effect.others))}" if effect.others else ""
    certainty = effect.certainty or "not stated"
    return f"{direction}{others}; certainty {certainty}"
