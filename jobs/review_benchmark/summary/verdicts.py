"""The part of a scoring's text that is about conclusions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from jobs.metrics import mean
from jobs.review_benchmark.verdicts.effects import Reason
from jobs.review_benchmark.verdicts.findings import not_available
from jobs.review_benchmark.verdicts.measured import Verdicts
from jobs.review_benchmark.verdicts.threshold import Source
from jobs.text import (
    WIDTH,
    TextColumn,
    cut,
    hanging_lines,
    number,
    one_line,
    plural,
    shortened,
    text_table,
)

MOST_PAIRS = 10
"""Alike reviews that are named."""

NAME = 14
"""Cells of a model's name."""


def verdict_text(found: Sequence[Verdicts]) -> Iterator[str]:
    """A line for each agent, and the reviews that are alike by themselves."""
    if not found:
        return
    yield ""
    yield f"Verdicts ({found[0].kind}): conclusions beside those of the authors"
    yield from text_table(
        (
            TextColumn(
                title="model",
                cells=[shortened(one_line(own.model), NAME) for own in found],
                has_words=True,
            ),
            TextColumn(
                title="n",
                cells=[f"{len(own.compared)}/{len(own.matches)}" for own in found],
            ),
            TextColumn(
                title="matched",
                cells=[number(mean(own.compared.values()), 3) for own in found],
            ),
            TextColumn(
                title="null (pairs)",
                cells=[
                    f"{number(mean(own.mismatched.values()), 3)} "
                    f"({len(own.mismatched)})"
                    for own in found
                ],
            ),
            TextColumn(title="AUROC", cells=[number(own.auroc, 3) for own in found]),
            TextColumn(title="threshold", cells=[_threshold(own) for own in found]),
            TextColumn(title="above", cells=[_above(own) for own in found]),
            TextColumn(title="passed", cells=[_passed(own) for own in found]),
        )
    )
    drawn = found[0].threshold
    if drawn is not None and drawn.source == "labels":
        yield (
            f"  The threshold is drawn by {plural(drawn.n, 'label')}; leave-one-out "
            f"accuracy {number(drawn.accuracy, 3)}."
        )
    yield from _drawn_otherwise(found)
    yield from _judged(found)
    yield from _opposite(found)
    for missing in not_available(found):
        yield from hanging_lines("  not available: ", one_line(missing))
    yield from _alike(found)


def _threshold(own: Verdicts) -> str:
    return number(None if own.threshold is None else own.threshold.value, 3)


def _above(own: Verdicts) -> str:
    if own.threshold is None:
        return "-"
    alike = [own.is_alike(review) for review in own.compared]
    return f"{alike.count(True)}/{len(alike)}"


def _passed(own: Verdicts) -> str:
    judged = [*own.judged.values()]
    return f"{judged.count(True)}/{len(judged)}" if judged else "-"


_SOURCES: Mapping[Source, str] = {
    "borrowed pairs": "The threshold is drawn with borrowed pairs: {n} mismatched ones "
    "in all.",
    "fixed": "The threshold is fixed, since too few mismatched pairs draw one.",
    "setting": "The threshold is the one of the settings.",
}


def _drawn_otherwise(found: Sequence[Verdicts]) -> Iterator[str]:
    """Where a threshold is not drawn by labels or by an agent's own pairs."""
    sources = {
        own.threshold.source: own.threshold.n
        for own in found
        if own.threshold is not None
    }
    for source, n in sources.items():
        if source in _SOURCES:
            yield f"  {_SOURCES[source].format(n=n)}"


def _judged(found: Sequence[Verdicts]) -> Iterator[str]:
    """How the stated effects compare, where they decide."""
    if found[0].kind == "judge":
        return
    for own in found:
        effects = [each.effect for each in own.matches.values() if each.effect]
        reasons = Counter(each.reason for each in effects)
        shown = (
            f"{reasons[reason]} {words}"
            for reason, words in REASONS.items()
            if reasons[reason]
        )
        if effects:
            said = f"{own.model} against its authors: {', '.join(shown)}"
            yield from hanging_lines("  ", one_line(said))


REASONS: Mapping[Reason, str] = {
    "same": "same effect",
    "direction": "other direction",
    "certainty": "other certainty",
    "several_directions": "not judged (several directions)",
    "not_stated": "not judged (none stated)",
    "unrelated": "not judged (no word in common)",
}
"""The reasons of a comparison of effects, in words."""


def _opposite(found: Sequence[Verdicts]) -> Iterator[str]:
    """The reviews that a judge fails whatever the number."""
    for own in found:
        reviews = [review for review, match in own.matches.items() if match.is_opposite]
        if reviews:
            said = f"{own.model} concludes the opposite: {', '.join(reviews)}"
            yield from hanging_lines("  ", one_line(said))


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
        yield f"  And {plural(len(ordered) - MOST_PAIRS, 'more pair')}."
