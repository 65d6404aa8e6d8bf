"""Names, meanings and directions of a job's metrics, declared by the parts of a path.

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
    ...     scopes={"fold.{fold}.": Part(name="fold {fold}")},
    ...     forms={"~std": Part(name="standard deviation", direction="neither")},
    ...     headlines=("recall@10",),
    ... )
    >>> words.of("fold.3.recall@10~std").name
    'Recall at 10, fold 3, standard deviation'

`{k}` stands for any text without a full stop, or, where `slots` lists its texts, for
one of these, and is replaced by the listed words. `{name*}` also takes full stops. A
measure is tried on a whole path before scopes are taken off, so a path such as
`all.micro.sensitivity` may have a sentence of its own.

To describe a new metric, add its measure to the `MEASURES` of its job. The test
`tests/jobs/test_measures.py` fails for a path that nothing describes and for two paths
of one scorecard with the same name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Generic, TypeAlias, TypeVar

from runner.scorecard import Direction, Metric, Table

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
class Part:
    """A scope (which items) or a form (which variant) of a measure."""

    name: str  #: follows the measure's name after a comma; empty: adds nothing
    meaning: str = ""
    """Follows the measure's sentence after a semicolon; empty: the name does."""
    direction: Direction | None = None  #: instead of the measure's

    def filled(self, texts: Mapping[str, str]) -> Part:
        """The same with its slots replaced."""
        return replace(
            self, name=_filled(self.name, texts), meaning=_filled(self.meaning, texts)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What a reader sees of one metric."""

    name: str
    meaning: str
    direction: Direction


@dataclass(frozen=True, kw_only=True)
class Measures:
    """The declared parts of all paths of a job."""

    measures: Mapping[str, Measure]
    scopes: Mapping[str, Part] = field(default_factory=dict)  #: patterns end in "."
    forms: Mapping[str, Part] = field(default_factory=dict)  #: patterns begin with "~"
    slots: Slots = field(default_factory=dict)
    headlines: tuple[str, ...] = ()  #: patterns of the paths that a report begins with

    def describe(self, metrics: Iterable[Metric]) -> tuple[Metric, ...]:
        """The metrics with their words; one that nothing describes stays as it is."""
        return tuple(map(self._described, metrics))

    def of(self, path: str) -> Words | None:
        """The words of the metric at *path*; None where the parts are not declared."""
        if path not in self._known:
            self._known[path] = self._composed(path)
        return self._known[path]

    def titled(self, table: Table) -> Table:
        """The table with the words of its columns that are paths of metrics.

        A plain word such as `recall` is no path: it may mean another thing in a table.
        """
        found = {
            column: self._title(column)
            for column in table.columns
            if re.search("[.@~_]", column)
        }
        return replace(table, titles={c: title for c, title in found.items() if title})

    def _title(self, column: str) -> str:
        path = column.removesuffix(DEFINED)
        words = self.of(path)
        if words is None:
            return ""
        return words.name if path == column else f"{words.name}, n with a value"

    def is_headline(self, path: str) -> bool:
        """Whether a report begins with the metric at *path*."""
        return any(each.fullmatch(path) for each in self._headlines)

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

    def _composed(self, path: str) -> Words | None:
        for base, forms in self._without_forms(path):
            found = self._read(base)
            if found is not None:
                measure, scopes = found
                return _sentence(measure, (*scopes, *forms))
        return None

    def _without_forms(self, path: str) -> Iterator[tuple[str, tuple[Part, ...]]]:
        """The path without its forms, if all of these are declared, then whole."""
        base, *forms = re.split("(?=~)", path)
        found = [self._forms.first(form) for form in forms]
        parts = tuple(each for each in found if each is not None)
        if forms and len(parts) == len(found):
            yield base, parts
        yield path, ()

    def _read(self, path: str) -> tuple[Measure, tuple[Part, ...]] | None:
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
    def _known(self) -> dict[str, Words | None]:
        return {}

    @cached_property
    def _measures(self) -> _Declared[Measure]:
        return _Declared(self.measures, self.slots)

    @cached_property
    def _scopes(self) -> _Declared[Part]:
        return _Declared(self.scopes, self.slots)

    @cached_property
    def _forms(self) -> _Declared[Part]:
        return _Declared(self.forms, self.slots)

    @cached_property
    def _headlines(self) -> tuple[re.Pattern[str], ...]:
        return tuple(_compiled(each, self.slots) for each in self.headlines)


_Value = TypeVar("_Value", Measure, Part)


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
    made = [re.escape(pieces[0])]
    for name, star, literal in zip(
        pieces[1::3], pieces[2::3], pieces[3::3], strict=True
    ):
        if name in slots:
            # the longest first: one text may be the beginning of another
            texts = sorted(slots[name], key=len, reverse=True)
            inside = "|".join(map(re.escape, texts))
        else:
            inside = ".+?" if star else "[^.~]+?"
        made.append(f"(?P<{name}>{inside}){re.escape(literal)}")
    return re.compile("".join(made), re.DOTALL)


def _filled(text: str, texts: Mapping[str, str]) -> str:
    for name, words in texts.items():
        text = text.replace(f"{{{name}}}", words)
    return text


def _sentence(measure: Measure, parts: tuple[Part, ...]) -> Words:
    names = [measure.name, *(part.name for part in parts)]
    meanings = [measure.meaning, *(part.meaning or part.name for part in parts)]
    name = ", ".join(filter(None, names))
    return Words(
        # a name such as nDCG keeps its letters
        name=name[:1].upper() + name[1:] if name.split(" ")[0].islower() else name,
        meaning=f"{'; '.join(filter(None, meanings))}.",
        direction=next(
            (part.direction for part in reversed(parts) if part.direction is not None),
            measure.direction,
        ),
    )
