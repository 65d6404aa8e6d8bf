"""Trivial baselines: what a metric is worth without reading anything.

A job names them for its headline metrics: the majority answer, always "not found",
chance at the same prevalence. They become metrics beside their own (`auprc~random`), a
table and a paragraph that say what each model adds over them, and the file that
`siftlog explain` ends with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from jobs.kit.measures import Measures
from jobs.kit.text_format import fixed
from runner.scorecard import BASELINES, Artifact, Metric, Scorecard, Table
from store.document import PageText, blocks_of
from store.printable import one_line, printable, shortened

BASELINE_COLUMNS = ("model", "metric", "value", "baseline", "of_baseline", "adds")
NAME_CELLS = 30
MOST_LINES = 14
"""Lines of a summary; the table has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrivialBaseline:
    """Value of one metric without reading anything."""

    of: str  #: path of the metric
    key: str  #: stands behind the path, such as `majority`
    name: str  #: for readers, such as "always not found"
    value: float | None
    n: int  #: items that it speaks of
    formula: str  #: formula
    lower_is_better: bool = False
    answer: str = ""
    """In place of the name, if the answer holds a text of the truth: tables show it,
    and definitions do not."""

    @property
    def metric(self) -> Metric:
        """The baseline as a metric beside its own."""
        return Metric(
            path=f"{self.of}~{self.key}",
            value=self.value,
            n=self.n,
            definition=f"baseline@1({self.name}: {self.formula})",
            note="a trivial baseline; no model is involved",
        )

    def added(self, value: float) -> float | None:
        """By how much *value* is better; None where the baseline is undefined."""
        if self.value is None:
            return None
        gain = value - self.value
        return -gain if self.lower_is_better else gain


def add_baselines(
    card: Scorecard, baselines: Mapping[str, Sequence[TrivialBaseline]], words: Measures
) -> Scorecard:
    """The scorecard with the baselines of each model.

    Baselines of a metric that a model has not, or has no value of, are left out.

    Args:
        card: without them.
        baselines: by model.
        words: of the job's metrics, its baselines among them.
    """
    applicable = {
        model: [
            baseline
            for baseline in model_baselines
            if _value_of(card, model, baseline.of) is not None
        ]
        for model, model_baselines in baselines.items()
    }
    if not any(applicable.values()):
        return card
    rows = [
        (
            model,
            baseline.of,
            value,
            baseline.answer or baseline.name,
            baseline.value,
            baseline.added(value),
        )
        for model, model_baselines in applicable.items()
        for baseline in model_baselines
        if (value := _value_of(card, model, baseline.of)) is not None
    ]
    table = Table(
        name="baselines",
        columns=BASELINE_COLUMNS,
        rows=tuple(rows),
        caption="What each model adds over answers that need no reading. Baselines "
        "are computed from the truth of the same items, and so are the best of their "
        "kind.",
        is_headline=True,
    )
    lines = list(_lines(card, applicable))
    left = len(lines) - MOST_LINES
    summary_lines = lines[:MOST_LINES] + (
        [f"  {left} more: baselines.csv"] if left > 0 else []
    )
    added = ["Over trivial baselines:", *summary_lines]
    return replace(
        card,
        models={
            model: tuple(_with_baselines(metrics, applicable.get(model, ()), words))
            for model, metrics in card.models.items()
        },
        summary=PageText(
            "\n".join([card.summary.rstrip(), *added, ""]),
            (*blocks_of(card.summary), *added),
        ),
        tables=(*card.tables, table),
        artifacts=(
            *card.artifacts,
            Artifact(name=BASELINES, text="\n".join([*map(printable, lines), ""])),
        ),
    )


def _with_baselines(
    metrics: Sequence[Metric], baselines: Sequence[TrivialBaseline], words: Measures
) -> Iterator[Metric]:
    """Each metric, and its baselines behind it."""
    for metric in metrics:
        yield metric
        yield from words.describe(
            baseline.metric for baseline in baselines if baseline.of == metric.path
        )


def _value_of(card: Scorecard, model: str, path: str) -> float | None:
    values = (m.value for m in card.models.get(model, ()) if m.path == path)
    return next(values, None)


def _lines(
    card: Scorecard, baselines: Mapping[str, Sequence[TrivialBaseline]]
) -> Iterator[str]:
    """Each model, and a line for each of its metrics with all its baselines."""
    for model, model_baselines in baselines.items():
        if model_baselines:
            yield f"  {shortened(one_line(model), NAME_CELLS)}"
        for path in dict.fromkeys(baseline.of for baseline in model_baselines):
            value = _value_of(card, model, path)
            if value is None:
                continue
            parts = [
                f"{baseline.answer or baseline.name} {fixed(baseline.value)} "
                f"({_signed(baseline.added(value))})"
                for baseline in model_baselines
                if baseline.of == path
            ]
            label = _metric_label(card, model, path)
            yield f"    {label} {fixed(value)}: {'; '.join(parts)}"


def _metric_label(card: Scorecard, model: str, path: str) -> str:
    """Return the name of a metric, with its key."""
    name = next((m.label for m in card.models[model] if m.path == path), path)
    return path if name == path else f"{name} ({path})"


def _signed(value: float | None) -> str:
    if value is None:
        return fixed(value)
    return f"adds {value:.3f}" if value >= 0 else f"{-value:.3f} worse"
