"""Declares a job's metrics: names, meanings, directions, trivial baselines.

A metric's path such as `fold.3.recall@10~std` is made of parts: scopes in front
(`fold.3.`), a measure (`recall@10`) and forms behind (`~std`). A job declares each part
once, in its module `measures`; the words of a metric are composed from its parts, so a
few dozen lines describe hundreds of paths:

    >>> words = Measures(
    ...     measures={
    ...         "recall@{k}": Measure(
    ...             name="Recall at {k}",
    ...             meaning="Share of the relevant sentences among the first {k}",
    ...             direction="higher",
    ...         )
    ...     },
    ...     scopes={"fold.{fold}.": MeasurePart(name="fold {fold}")},
    ...     forms={
    ...         "~std": MeasurePart(name="standard deviation", direction="neither")
    ...     },
    ...     headlines=("recall@10",),
    ... )
    >>> words.of("fold.3.recall@10~std").name
    'Recall at 10, fold 3, standard deviation'

`{k}` stands for any text without a full stop, or, where `slots` lists its texts, for
one of these, and is replaced by the listed words. `{name*}` also takes full stops. A
measure is tried on a whole path before scopes are taken off, so a path such as
`all.micro.sensitivity` may have a sentence of its own.

To describe a new metric, add its measure to the `MEASURES` of its job. The test
`tests/jobs/kit/test_measures.py` fails for a path that nothing describes and for two paths
of one scorecard with the same name.

Trivial baselines say what a number would be without reading anything. A job names them
for its headline metrics: the majority answer, always "not found",
chance at the same prevalence. They become metrics beside their own
(`auprc~random`), a table and a paragraph that say what each model adds over them, and
the file that `siftlog explain` ends with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, TypeAlias, TypeVar

from jobs.kit.text_format import fixed
from runner.scorecard import BASELINES, Artifact, Direction, Metric, Scorecard, Table
from store.printable import one_line, shortened

Slots: TypeAlias = Mapping[str, Mapping[str, str]]
"""By the name of a slot: the texts it takes in a path, and the words for each."""

DEFINED = ".n_defined"
"""Ends the name of a column that says how many items had a value of a metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What is measured, in the words of a reader."""

    name: str  #: as a table would print it, such as "Recall at {k}"
    meaning: str  #: one sentence without its full stop
    direction: Direction = "neither"

    def filled(self, texts: Mapping[str, str]) -> Measure:
        """The same with its slots replaced."""
        return replace(
            self, name=_filled(self.name, texts), meaning=_filled(self.meaning, texts)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasurePart:
    """A scope (which items) or a form (which variant) of a measure."""

    name: str  #: follows the measure's name after a comma; empty: adds nothing
    meaning: str = ""
    """Follows the measure's sentence after a semicolon; empty: the name does."""
    direction: Direction | None = None  #: instead of the measure's

    def filled(self, texts: Mapping[str, str]) -> MeasurePart:
        """The same with its slots replaced."""
        return replace(
            self, name=_filled(self.name, texts), meaning=_filled(self.meaning, texts)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricWords:
    """What a reader sees of one metric."""

    name: str
    meaning: str
    direction: Direction


@dataclass(frozen=True, kw_only=True)
class Measures:
    """The declared parts of all paths of a job."""

    measures: Mapping[str, Measure]
    scopes: Mapping[str, MeasurePart] = field(
        default_factory=dict
    )  #: patterns end in "."
    forms: Mapping[str, MeasurePart] = field(
        default_factory=dict
    )  #: patterns begin with "~"
    slots: Slots = field(default_factory=dict)
    headlines: tuple[str, ...] = ()  #: patterns of the paths that a report begins with

    def describe(self, metrics: Iterable[Metric]) -> tuple[Metric, ...]:
        """The metrics with their words; one that nothing describes stays as it is."""
        return tuple(map(self._described, metrics))

    def of(self, path: str) -> MetricWords | None:
        """The words of the metric at *path*; None where the parts are not declared."""
        if path not in self._words_cache:
            self._words_cache[path] = self._composed(path)
        return self._words_cache[path]

    def titled(self, table: Table) -> Table:
        """The table with the words of its columns that are paths of metrics.

        A plain word such as `recall` is no path: it may mean another thing in a table.
        """
        titles = {
            column: self._title(column)
            for column in table.columns
            if re.search("[.@~_]", column)
        }
        return replace(table, titles={c: title for c, title in titles.items() if title})

    def _title(self, column: str) -> str:
        path = column.removesuffix(DEFINED)
        words = self.of(path)
        if words is None:
            return ""
        return words.name if path == column else f"{words.name}, n with a value"

    def is_headline(self, path: str) -> bool:
        """Whether a report begins with the metric at *path*."""
        return any(pattern.fullmatch(path) for pattern in self._headlines)

    def _described(self, metric: Metric) -> Metric:
        words = self.of(metric.path)
        if words is None:
            return metric
        return replace(
            metric,
            name=words.name,
            meaning=words.meaning,
            direction=words.direction,
            is_headline=self.is_headline(metric.path),
        )

    def _composed(self, path: str) -> MetricWords | None:
        for base, forms in self._without_forms(path):
            parsed = self._read(base)
            if parsed is not None:
                measure, scopes = parsed
                return _sentence(measure, (*scopes, *forms))
        return None

    def _without_forms(
        self, path: str
    ) -> Iterator[tuple[str, tuple[MeasurePart, ...]]]:
        """The path without its forms, if all of these are declared, then whole."""
        base, *forms = re.split("(?=~)", path)
        form_parts = [self._forms.first(form) for form in forms]
        parts = tuple(part for part in form_parts if part is not None)
        if forms and len(parts) == len(form_parts):
            yield base, parts
        yield path, ()

    def _read(self, path: str) -> tuple[Measure, tuple[MeasurePart, ...]] | None:
        """The measure and the scopes in front of it, the outermost last."""
        measure = self._measures.first(path)
        if measure is not None:
            return measure, ()
        for dot in re.finditer(r"\.", path):
            scope = self._scopes.first(path[: dot.end()])
            inner = self._read(path[dot.end() :]) if scope is not None else None
            if scope is not None and inner is not None:
                return inner[0], (*inner[1], scope)
        return None

    # patterns are compiled once: an instance is a constant of its job's module

    @cached_property
    def _words_cache(self) -> dict[str, MetricWords | None]:
        return {}

    @cached_property
    def _measures(self) -> _Declared[Measure]:
        return _Declared(self.measures, self.slots)

    @cached_property
    def _scopes(self) -> _Declared[MeasurePart]:
        return _Declared(self.scopes, self.slots)

    @cached_property
    def _forms(self) -> _Declared[MeasurePart]:
        return _Declared(self.forms, self.slots)

    @cached_property
    def _headlines(self) -> tuple[re.Pattern[str], ...]:
        return tuple(_compiled(pattern, self.slots) for pattern in self.headlines)


_Value = TypeVar("_Value", Measure, MeasurePart)


class _Declared(Generic[_Value]):
    """Measures or parts by pattern; the first pattern that fits a text wins."""

    def __init__(self, declared: Mapping[str, _Value], slots: Slots) -> None:
        self._slots = slots
        self._exact: dict[str, _Value] = {
            p: v for p, v in declared.items() if "{" not in p
        }
        self._patterns: list[tuple[re.Pattern[str], _Value]] = [
            (_compiled(p, slots), v) for p, v in declared.items() if "{" in p
        ]

    def first(self, text: str) -> _Value | None:
        """What is declared for *text*, with its slots replaced."""
        if text in self._exact:
            return self._exact[text]
        for pattern, value in self._patterns:
            match = pattern.fullmatch(text)
            if match is not None:
                return value.filled(self._words(match.groupdict()))
        return None

    def _words(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {
            name: self._slots[name][text] if name in self._slots else text
            for name, text in texts.items()
        }


def _compiled(pattern: str, slots: Slots) -> re.Pattern[str]:
    pieces = re.split(r"\{(\w+)(\*?)\}", pattern)
    regex_parts = [re.escape(pieces[0])]
    for name, star, literal in zip(
        pieces[1::3], pieces[2::3], pieces[3::3], strict=True
    ):
        if name in slots:
            # the longest first: one text may be the beginning of another
            texts = sorted(slots[name], key=len, reverse=True)
            inside = "|".join(map(re.escape, texts))
        else:
            inside = ".+?" if star else "[^.~]+?"
        regex_parts.append(f"(?P<{name}>{inside}){re.escape(literal)}")
    return re.compile("".join(regex_parts), re.DOTALL)


def _filled(text: str, texts: Mapping[str, str]) -> str:
    for name, words in texts.items():
        text = text.replace(f"{{{name}}}", words)
    return text


def _sentence(measure: Measure, parts: tuple[MeasurePart, ...]) -> MetricWords:
    names = [measure.name, *(part.name for part in parts)]
    meanings = [measure.meaning, *(part.meaning or part.name for part in parts)]
    name = ", ".join(filter(None, names))
    return MetricWords(
        # a name such as nDCG keeps its letters
        name=name[:1].upper() + name[1:] if name.split(" ")[0].islower() else name,
        meaning=f"{'; '.join(filter(None, meanings))}.",
        direction=next(
            (part.direction for part in reversed(parts) if part.direction is not None),
            measure.direction,
        ),
    )


BASELINE_FORMS: Mapping[str, MeasurePart] = {
    f"~{key}": MeasurePart(
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

BASELINE_COLUMNS = ("model", "metric", "value", "baseline", "of_baseline", "adds")
NAME_CELLS = 30
MOST_LINES = 14
"""Lines of a summary; the table has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrivialBaseline:
    """What one metric is without reading anything."""

    of: str  #: path of the metric
    key: str  #: stands behind the path, such as `majority`
    name: str  #: for readers, such as "always not found"
    value: float | None
    n: int  #: items that it speaks of
    formula: str  #: formula
    lower_is_better: bool = False

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
            baseline.name,
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
    text = "\n".join(["Over trivial baselines:", *summary_lines, ""])
    return replace(
        card,
        models={
            model: tuple(_with_baselines(metrics, applicable.get(model, ()), words))
            for model, metrics in card.models.items()
        },
        summary=f"{card.summary.rstrip()}\n{text}",
        tables=(*card.tables, table),
        artifacts=(
            *card.artifacts,
            Artifact(name=BASELINES, text="\n".join(lines) + "\n"),
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
                f"{baseline.name} {fixed(baseline.value)} "
                f"({_signed(baseline.added(value))})"
                for baseline in model_baselines
                if baseline.of == path
            ]
            label = _metric_label(card, model, path)
            yield f"    {label} {fixed(value)}: {'; '.join(parts)}"


def _metric_label(card: Scorecard, model: str, path: str) -> str:
    """What a reader calls a metric, with its key."""
    name = next((m.label for m in card.models[model] if m.path == path), path)
    return path if name == path else f"{name} ({path})"


def _signed(value: float | None) -> str:
    if value is None:
        return fixed(value)
    return f"adds {value:.3f}" if value >= 0 else f"{-value:.3f} worse"
