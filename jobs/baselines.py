"""Trivial baselines: what a number would be without reading anything.

A job names them for its headline metrics: the majority answer, always "not found",
chance at the same prevalence. They become metrics beside their own
(`auprc~random`), a table and a paragraph that say what each model adds over them, and
the file that `siftlog explain` ends with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jobs.columns import one_line, shortened
from jobs.measures import Measures, Part
from runner.scorecard import BASELINES, Artifact, Metric, Scorecard, Table

FORMS: Mapping[str, Part] = {
    f"~{key}": Part(
        name=f"baseline: {name}",
        meaning=f"of {answers}, without reading anything",
        direction="neither",
    )
    for key, name, answers in (
        ("random", "random", "random answers"),
        ("majority", "majority", "the commoner answer, always"),
        ("include_all", "include all", "including everything, always"),
        ("most_frequent", "most frequent", "the most frequent answer, always"),
        ("not_found", "not found", "the answer 'not found', always"),
    )
}
"""The words of baselines' paths, for the forms of each job's measures."""

COLUMNS = ("model", "metric", "value", "baseline", "of_baseline", "adds")
NAME_CELLS = 30
MOST_SHOWN = 14
"""Lines of a summary; the table has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """What one metric is without reading anything."""

    of: str  #: path of the metric
    key: str  #: stands behind the path, such as `majority`
    name: str  #: for readers, such as "always not found"
    value: float | None
    n: int  #: items that it speaks of
    how: str  #: formula
    lower_is_better: bool = False

    @property
    def metric(self) -> Metric:
        """The baseline as a metric beside its own."""
        return Metric(
            path=f"{self.of}~{self.key}",
            value=self.value,
            n=self.n,
            definition=f"baseline@1({self.name}: {self.how})",
            note="a trivial baseline; no model is involved",
        )

    def added(self, value: float) -> float | None:
        """By how much *value* is better; None where the baseline is undefined."""
        if self.value is None:
            return None
        gain = value - self.value
        return -gain if self.lower_is_better else gain


def beside(
    card: Scorecard, baselines: Mapping[str, Sequence[Baseline]], words: Measures
) -> Scorecard:
    """The scorecard with the baselines of each model.

    Baselines of a metric that a model has not, or has no value of, are left out.

    Args:
        card: without them.
        baselines: by model.
        words: of the job's metrics, its baselines among them.
    """
    kept = {
        model: [each for each in own if _value(card, model, each.of) is not None]
        for model, own in baselines.items()
    }
    if not any(kept.values()):
        return card
    rows = [
        (model, each.of, value, each.name, each.value, each.added(value))
        for model, own in kept.items()
        for each in own
        if (value := _value(card, model, each.of)) is not None
    ]
    table = Table(
        name="baselines",
        columns=COLUMNS,
        rows=tuple(rows),
        caption="What each model adds over answers that need no reading. Baselines "
        "are computed from the truth of the same items, and so are the best of their "
        "kind.",
        is_headline=True,
    )
    lines = list(_lines(card, kept))
    left = len(lines) - MOST_SHOWN
    shown = lines[:MOST_SHOWN] + ([f"  {left} more: baselines.csv"] if left > 0 else [])
    text = "\n".join(["Over trivial baselines:", *shown, ""])
    return replace(
        card,
        models={
            model: tuple(_beside(own, kept.get(model, ()), words))
            for model, own in card.models.items()
        },
        summary=f"{card.summary.rstrip()}\n{text}",
        tables=(*card.tables, table),
        artifacts=(
            *card.artifacts,
            Artifact(name=BASELINES, text="\n".join(lines) + "\n"),
        ),
    )


def _beside(
    metrics: Sequence[Metric], baselines: Sequence[Baseline], words: Measures
) -> Iterator[Metric]:
    """Each metric, and its baselines behind it."""
    for metric in metrics:
        yield metric
        yield from words.describe(
            each.metric for each in baselines if each.of == metric.path
        )


def _value(card: Scorecard, model: str, path: str) -> float | None:
    found = (m.value for m in card.models.get(model, ()) if m.path == path)
    return next(found, None)


def _lines(card: Scorecard, kept: Mapping[str, Sequence[Baseline]]) -> Iterator[str]:
    """Each model, and a line for each of its metrics with all its baselines."""
    for model, own in kept.items():
        if own:
            yield f"  {shortened(one_line(model), NAME_CELLS)}"
        for path in dict.fromkeys(each.of for each in own):
            value = _value(card, model, path)
            if value is None:
                continue
            parts = [
                f"{each.name} {_number(each.value)} ({_signed(each.added(value))})"
                for each in own
                if each.of == path
            ]
            named = _named(card, model, path)
            yield f"    {named} {_number(value)}: {'; '.join(parts)}"


def _named(card: Scorecard, model: str, path: str) -> str:
    """What a reader calls a metric, with its key."""
    name = next((m.label for m in card.models[model] if m.path == path), path)
    return path if name == path else f"{name} ({path})"


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def _signed(value: float | None) -> str:
    if value is None:
        return "n/a"
    return f"adds {value:.3f}" if value >= 0 else f"{-value:.3f} worse"
