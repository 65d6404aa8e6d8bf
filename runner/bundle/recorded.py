"""Records what a scoring counted, in numbers, and computes its metrics from them.

A redacted bundle has no reply to judge again. It has what the scoring made of each: a
verdict a line, and by metric the value of each item, from which `recomputed` gives the
metric once more. Items and documents are tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import msgspec

from runner.bundle.redaction import Redactor
from runner.scorecard import ItemValues, Scorecard, Verdict

VALUES: Final = "values.json"
VERDICTS: Final = "verdicts.jsonl"

Key: TypeAlias = tuple[str, ...]
Kind: TypeAlias = Literal["mean", "ratio"]
Column: TypeAlias = Sequence[float | None]
Columns: TypeAlias = tuple[Kind, int | None, Column, Column | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemList:
    """Items that several metrics are over, and the document of each, as tokens."""

    items: list[str]
    clusters: list[str]
    cluster: str  #: what a document is called, such as "paper"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricValues:
    """The values of one metric of one model."""

    model: str
    path: str
    kind: Kind
    over: int | None = None
    """Number of the list of items; None: one value a document, which has no name."""
    first: list[float | None]  #: of a mean: the values; of a ratio: the numerators
    second: list[float | None] | None = None  #: of a ratio: the denominators

    @property
    def value(self) -> float | None:
        """The metric, computed from the values; None: undefined."""
        if self.second is None:
            values = [value for value in self.first if value is not None]
            return _quotient(values, [1.0] * len(values))
        pairs = [
            (above, below)
            for above, below in zip(self.first, self.second, strict=True)
            if above is not None and below is not None
        ]
        return _quotient([above for above, _ in pairs], [below for _, below in pairs])


def _quotient(
    numerators: Iterable[float], denominators: Iterable[float]
) -> float | None:
    below = math.fsum(denominators)
    return math.fsum(numerators) / below if below else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedValues:
    """The content of `values.json`."""

    choices: dict[str, str]  #: answers that stay, by the numbers that verdicts have
    lists: list[ItemList]
    metrics: list[MetricValues]


def values_of(
    card: Scorecard, redactor: Redactor, choices: frozenset[str]
) -> RecordedValues:
    """Return the values of all metrics that they give again, digit by digit."""
    redactor.commit.at = "values"
    lists: dict[tuple[Key, Key, str], int] = {}
    metrics: list[MetricValues] = []
    for model, reported in card.models.items():
        comparable = card.comparable.get(model, {})
        for metric in reported:
            columns: Columns | None = None
            if metric.path in comparable:
                columns = _of_items(comparable[metric.path](), lists)
            elif metric.terms is not None:
                above, below = (list(map(float, column)) for column in metric.terms)
                columns = "ratio", None, above, below
            if columns is None:
                continue
            kind, over, first, second = columns
            values = MetricValues(
                model=redactor.clear(model),
                path=redactor.clear(metric.path),
                kind=kind,
                over=over,
                first=[*first],
                second=None if second is None else [*second],
            )
            if values.value == metric.value:
                metrics.append(values)
    return RecordedValues(
        choices={
            str(number): redactor.clear(choice)
            for number, choice in enumerate(sorted(choices))
        },
        lists=[
            ItemList(
                items=[*map(redactor.item, items)],
                clusters=[*map(redactor.item, clusters)],
                cluster=redactor.clear(cluster),
            )
            for items, clusters, cluster in lists
        ],
        metrics=metrics,
    )


def _of_items(
    item_values: ItemValues, lists: dict[tuple[Key, Key, str], int]
) -> Columns | None:
    """Return the columns of a metric over items, whose list gets a number."""
    if item_values.kind not in {"mean", "ratio"}:
        return None
    names = tuple(item_values.items), tuple(item_values.clusters), item_values.cluster
    over = lists.setdefault(names, len(lists))
    kind: Kind = "mean" if item_values.kind == "mean" else "ratio"
    return kind, over, item_values.first, item_values.second


def verdict_lines(
    verdicts: Iterable[Verdict], redactor: Redactor, choices: frozenset[str]
) -> Iterator[bytes]:
    """Yield a line for each verdict.

    It is a list: task, answer, expected answer, whether it is correct, stated
    probability, whether the quotes are in the text, and whether the reply could not be
    parsed. Answers are numbers of the job's choices, or else tokens. Names of choices
    in a row would be what the schema in a prompt has.
    """
    numbers = {choice: number for number, choice in enumerate(sorted(choices))}
    for number, verdict in enumerate(verdicts, 1):
        redactor.commit.at = f"verdict/{number}"
        label = verdict.label or ""
        answer = label if label in choices else verdict.value
        yield msgspec.json.encode(
            [
                verdict.task,
                _answer(redactor, "answer", answer, numbers),
                _answer(redactor, "expected", verdict.expected, numbers),
                verdict.correct,
                verdict.confidence,
                verdict.is_grounded,
                verdict.is_unparsed,
            ]
        )


def _answer(
    redactor: Redactor, name: str, text: str, numbers: Mapping[str, int]
) -> int | str | None:
    if not text:
        return None
    if text in numbers:
        return numbers[text]
    return redactor.placed(name, text)


def different(
    values: RecordedValues, scorecard: Mapping[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield model and path of each metric whose values give another number.

    Args:
        values: of the bundle.
        scorecard: its scorecard.
    """
    for metric in values.metrics:
        metrics = scorecard["models"].get(metric.model, {}).get("metrics", {})
        if metric.path not in metrics or metrics[metric.path]["value"] != metric.value:
            yield metric.model, metric.path


def decoded_values(content: bytes) -> RecordedValues:
    """Decode `values.json`.

    Raises:
        ValueError: it is something else.
    """
    values = msgspec.json.decode(content, type=RecordedValues)
    for metric in values.metrics:
        if metric.over is not None and not 0 <= metric.over < len(values.lists):
            raise ValueError(f"{metric.path} is over an unknown list of items")
        _check_lengths(metric, values.lists)
    return values


def _check_lengths(metric: MetricValues, lists: Sequence[ItemList]) -> None:
    lengths = {len(metric.first)}
    if metric.second is not None:
        lengths.add(len(metric.second))
    if metric.over is not None:
        of = lists[metric.over]
        lengths |= {len(of.items), len(of.clusters)}
    if len(lengths) > 1:
        raise ValueError(f"{metric.path} has columns of different lengths")
