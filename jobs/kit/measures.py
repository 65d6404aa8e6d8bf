"""Declares a job's measures: formula, definition and words of each in one place.

A metric's path such as `fold.3.recall@10~std` is made of parts: scopes in front
(`fold.3.`), a measure (`recall@10`) and forms behind (`~std`). A job declares each part
once, in its module `measures`. The words of a metric are composed from its parts, so a
few dozen lines describe hundreds of paths:

    >>> words = Measures(
    ...     measures={
    ...         "recall@{k}": Measure(
    ...             "Recall at {k}",
    ...             "Share of the relevant sentences among the first {k}",
    ...             "higher",
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

A measure that says how it is computed is a `RateMeasure` or a `ValueMeasure`, declared
for the type that it is computed from. `measured` computes a group of them, and
`with_intervals` of `jobs.kit.measurements` draws their intervals:

    >>> @dataclass(frozen=True)
    ... class Papers:
    ...     hits: list[float]
    ...     truth: list[float]
    >>> rates: dict[str, RateMeasure[Papers]] = {
    ...     "recall": RateMeasure(
    ...         "Recall",
    ...         "Share of what is known that was found",
    ...         "higher",
    ...         of=lambda papers: Ratio(papers.hits, papers.truth),
    ...         definition="{key}@1(hits / truth; {over})",
    ...     )
    ... }
    >>> papers = Papers(hits=[1, 3], truth=[2, 4])
    >>> (recall,) = measured(rates, papers, path="all.", over="all papers")
    >>> recall.path, recall.measured.value, recall.definition
    ('all.recall', 0.6666666666666666, 'recall@1(hits / truth; all papers)')

To describe a new metric, add its measure to the `MEASURES` of its job. The test
`tests/jobs/kit/test_measures.py` fails for a path that nothing describes and for two
paths of one scorecard with the same name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, TypeAlias, TypeVar

from jobs.kit.measurements import MeasuredValue, Measurement, pooled
from jobs.kit.metrics import Ratio
from jobs.kit.metrics.cluster_statistics import Derived
from runner.scorecard import Direction, Metric, Table

Slots: TypeAlias = Mapping[str, Mapping[str, str]]
"""By the name of a slot: the texts it takes in a path, and the words for each."""

_SLOT = re.compile(r"\{(\w+)\*?\}")

DEFINED = ".n_defined"
"""Ends the name of a column that says how many items had a value of a metric."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure in the words of a reader."""

    name: str  #: as a table would print it, such as "Recall at {k}"
    meaning: str  #: one sentence without its full stop
    direction: Direction = "neither"

    def filled(self, texts: Mapping[str, str]) -> Measure:
        """The same with its slots replaced."""
        return replace(
            self, name=_filled(self.name, texts), meaning=_filled(self.meaning, texts)
        )


@dataclass(frozen=True, slots=True)
class ComputedMeasure(Measure):
    """A measure with the definition of its value."""

    definition: str = field(default="count@1({key})", kw_only=True)
    """Name, version, parameters; `{key}`, `{over}` and the path's slot are filled."""
    note: str = field(default="", kw_only=True)
    """A note for readers of every value."""

    def measurement(
        self,
        key: str,
        value: MeasuredValue,
        *,
        path: str = "",
        over: str = "",
        subset: str = "",
        text: str = "",
        form: str = "",
        parameters: Mapping[str, str] | None = None,
    ) -> Measurement:
        """A value of this measure.

        Args:
            key: the part of paths that the measure is declared under.
            value: its value.
            path: in front of the key, such as `all.micro.`.
            over: replaces `{over}` in the definition, such as "all records".
            subset: the items that it speaks about.
            text: replaces the key's slot.
            form: behind the key, such as `~median`.
            parameters: replace further slots of the definition.
        """
        slot = _SLOT.search(key)
        texts = {} if slot is None else {slot[1]: text}
        key = _SLOT.sub(lambda _: text, key)
        texts |= {"key": key, "over": over, **(parameters or {})}
        return Measurement(
            path=f"{path}{key}{form}",
            definition=_filled(self.definition, texts),
            measured=value,
            subset=subset,
            note=self.note,
        )


Source = TypeVar("Source")
"""The data of a group of measures, such as the counts of some items."""


@dataclass(frozen=True, slots=True)
class ValueMeasure(ComputedMeasure, Generic[Source]):
    """A measure that says how its value is computed.

    One whose path has a slot, such as `skip.{reason}`, has a value for each text of it;
    an empty mapping leaves a measure out that does not apply.
    """

    of: Callable[[Source], MeasuredValue | Mapping[str, MeasuredValue]] = field(
        kw_only=True
    )

    def values(self, source: Source) -> Mapping[str, MeasuredValue]:
        """The values by the text of the slot; under "" without one."""
        value = self.of(source)
        return {"": value} if isinstance(value, MeasuredValue) else value


@dataclass(frozen=True, slots=True)
class RateMeasure(ComputedMeasure, Generic[Source]):
    """A rate over clusters; its value is that of all clusters together."""

    definition: str = field(default="{key}@1({over})", kw_only=True)
    of: Callable[[Source], Ratio | Derived] = field(kw_only=True)

    def values(self, source: Source) -> Mapping[str, MeasuredValue]:
        """The pooled rate."""
        return {"": pooled(self.of(source))}


def measured(
    measures: Mapping[str, ValueMeasure[Source] | RateMeasure[Source]],
    source: Source,
    *,
    path: str = "",
    over: str = "",
    subset: str = "",
    parameters: Mapping[str, str] | None = None,
) -> Iterator[Measurement]:
    """Computes a group of measures from one source, in the order of the group.

    Arguments are those of `ComputedMeasure.measurement`.
    """
    for key, measure in measures.items():
        for text, value in measure.values(source).items():
            yield measure.measurement(
                key,
                value,
                path=path,
                over=over,
                subset=subset,
                text=text,
                parameters=parameters,
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
    """Name, meaning and direction of one metric, for readers."""

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
    operational: tuple[str, ...] = ()
    """Patterns of the paths that need no truth, such as counts of items and replies."""

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
        return any(pattern.match(path) for pattern in self._headlines)

    def is_operational(self, path: str) -> bool:
        """Return whether the metric at *path* needs no truth."""
        return any(pattern.fullmatch(path) for pattern in self._operational)

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

    # patterns are read once: an instance is a constant of its job's module

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
    def _headlines(self) -> tuple[_Pattern, ...]:
        return tuple(_Pattern(pattern, self.slots) for pattern in self.headlines)

    @cached_property
    def _operational(self) -> tuple[re.Pattern[str], ...]:
        return tuple(_compiled(pattern, self.slots) for pattern in self.operational)


_Value = TypeVar("_Value", Measure, MeasurePart)


class _Declared(Generic[_Value]):
    """Measures or parts by pattern; the first pattern that fits a text wins."""

    def __init__(self, declared: Mapping[str, _Value], slots: Slots) -> None:
        self._slots = slots
        self._exact: dict[str, _Value] = {
            p: v for p, v in declared.items() if "{" not in p
        }
        self._patterns: list[tuple[_Pattern, _Value]] = [
            (_Pattern(p, slots), v) for p, v in declared.items() if "{" in p
        ]

    def first(self, text: str) -> _Value | None:
        """Return the declaration for *text*, with its slots filled."""
        if text in self._exact:
            return self._exact[text]
        for pattern, value in self._patterns:
            match = pattern.match(text)
            if match is not None:
                return value.filled(self._words(match.groupdict()))
        return None

    def _words(self, texts: Mapping[str, str]) -> dict[str, str]:
        return {
            name: self._slots[name][text] if name in self._slots else text
            for name, text in texts.items()
        }


class _Pattern:
    """A declared path; compiled when a text begins like it.

    A job declares hundreds, and a text begins like few of them.
    """

    def __init__(self, pattern: str, slots: Slots) -> None:
        self._beginning = pattern.partition("{")[0]
        self._pattern = pattern
        self._slots = slots

    def match(self, text: str) -> re.Match[str] | None:
        """The match of a whole text."""
        if not text.startswith(self._beginning):
            return None
        return self._compiled.fullmatch(text)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return _compiled(self._pattern, self._slots)


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
