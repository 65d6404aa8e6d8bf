"""Models against each other over all metrics that both have, with Holm's correction.

Pure: what a side is made of is given, and what is drawn depends on the seed alone.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from jobs.comparison.difference import Compared, agreed, gap, p_values
from jobs.comparison.labelling import Alike, alike
from jobs.comparison.pairing import Incomparable, ItemGap, Paired, pair
from jobs.comparison.sides import Source
from jobs.metrics import Form, Resamples, holm, round12
from runner.errors import UsageError
from runner.scorecard import Comparable, Labels

_KEPT_DRAWS = 4
"""Sets of clusters whose resamples are held; a match's metrics mostly share one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One model of one run."""

    run: str
    number: int | None  #: of the recorded scoring; None: the run as it stands
    model: str
    comparable: Comparable
    labels: Callable[[], Labels] | None = None  #: None: the job gives none
    seq: int  #: the last event of the run's log that was scored

    @property
    def source(self) -> str:
        """The run, with the scoring's number if there is one."""
        return str(Source(self.run, self.number))

    @property
    def key(self) -> tuple[str, str]:
        """What tells it from other sides: source and model."""
        return self.source, self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """How intervals are drawn: replicates, seed and level."""

    b: int = 2000
    seed: int = 20260118
    level: float = 0.95
    form: Form = "adjusted"

    def maker(self) -> Callable[[tuple[str, ...]], Resamples]:
        """The resamples of some clusters, the same ones whenever they are asked for."""
        return lru_cache(maxsize=_KEPT_DRAWS)(
            partial(
                Resamples, b=self.b, seed=self.seed, level=self.level, form=self.form
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A metric that both sides have and that cannot be compared."""

    path: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Two models, metric by metric."""

    a: Side
    b: Side
    compared: tuple[Compared, ...]
    refused: tuple[Refused, ...]
    only_a: tuple[str, ...]  #: metrics that B does not have
    only_b: tuple[str, ...]
    alike: Alike | None  #: None: no item is labelled by both


def matches(
    pairs: Iterable[tuple[Side, Side]], patterns: Sequence[str], drawing: Drawing
) -> tuple[Match, ...]:
    """Every pair of sides; Holm's family are the tests of all of them together.

    Args:
        pairs: A and B of each match.
        patterns: paths of the metrics to compare, `*` for any characters; all where
            there are none.
        drawing: how intervals are drawn.

    Raises:
        UsageError: a pattern names no metric that both sides of some pair have.
    """
    draw = drawing.maker()
    made = [_match(a, b, patterns, drawing.seed, draw) for a, b in pairs]
    _all_found(patterns, made)
    family = [each for match in made for each in match.compared]
    owns = (each.p_values.own for each in family)
    corrected = iter(holm([None if own is None else own.p for own in owns]))
    return tuple(
        replace(
            match,
            compared=tuple(
                replace(each, p_holm=None if p is None else round12(p))
                for each, p in zip(match.compared, corrected, strict=False)
            ),
        )
        for match in made
    )


def _match(
    a: Side,
    b: Side,
    patterns: Sequence[str],
    seed: int,
    draw: Callable[[tuple[str, ...]], Resamples],
) -> Match:
    compared: list[Compared] = []
    refused: list[Refused] = []
    for path in a.comparable:
        if path not in b.comparable or not _is_named(path, patterns):
            continue
        try:
            paired = pair(a.comparable[path](), b.comparable[path]())
        except Incomparable as error:
            refused.append(Refused(path=path, why=str(error)))
            continue
        compared.append(
            Compared(
                path=path,
                definition=paired.values.definition,
                cluster=paired.values.cluster,
                lower_is_better=paired.values.lower_is_better,
                overlap=paired.overlap,
                gap=gap(paired, draw(paired.drawn)),
                standing=paired.standing() if paired.has_item_values else None,
                p_values=p_values(paired, seed),
                agreement=agreed(paired),
            )
        )
    return Match(
        a=a,
        b=b,
        compared=tuple(compared),
        refused=tuple(refused),
        only_a=tuple(path for path in a.comparable if path not in b.comparable),
        only_b=tuple(path for path in b.comparable if path not in a.comparable),
        alike=alike(a.labels(), b.labels()) if a.labels and b.labels else None,
    )


def family(made: Sequence[Match]) -> str:
    """What Holm's correction is over."""
    owns = [each.p_values.own for match in made for each in match.compared]
    tests = len(owns) - owns.count(None)
    return (
        f"the {tests} {'test' if tests == 1 else 'tests'} of this comparison "
        f"({len(made)} {'pair' if len(made) == 1 else 'pairs'} of models)"
    )


def by_item(match: Match, path: str) -> Paired:
    """Both sides of one metric of *match*, item by item.

    Raises:
        UsageError: the metric was not compared, or no item has a value by itself.
    """
    known = [each.path for each in match.compared if each.standing is not None]
    if path not in known:
        raise UsageError(
            f"{path!r} has no value for each item to list; "
            f"these have: {', '.join(known) or 'none'}."
        )
    return pair(match.a.comparable[path](), match.b.comparable[path]())


def furthest(match: Match, path: str, n: int) -> tuple[ItemGap, ...]:
    """The *n* common items on which the two sides of one metric differ most.

    Raises:
        UsageError: the metric was not compared, or no item has a value by itself.
    """
    return tuple(by_item(match, path).furthest(n))


def _is_named(path: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatchcase(path, each) for each in patterns)


def _all_found(patterns: Sequence[str], made: Sequence[Match]) -> None:
    """Raise `UsageError` where there is nothing to compare, or less than was named."""
    shared = dict.fromkeys(
        path
        for match in made
        for path in match.a.comparable
        if path in match.b.comparable
    )
    if not shared:
        raise UsageError(
            "There is no metric that both sides give item by item; "
            "compare runs of one job in one mode."
        )
    for pattern in patterns:
        if not fnmatch.filter(shared, pattern):
            raise UsageError(
                f"No metric {pattern!r} can be compared; there are: "
                f"{', '.join(shared)}."
            )
