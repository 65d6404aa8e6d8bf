"""Compares models over all metrics that both have, with Holm's correction.

Pure: what a side is made of is given, and what is drawn depends on the seed alone.

Items, intervals, tests, Holm's families and verdicts are those of `siftlog compare` on
the same run, so that one pair and metric has one p and one word wherever it is shown.
Tables of a run give left minus right, so the words are about the left model.
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache, partial
from typing import Protocol

from jobs.kit.comparison.difference import (
    MIN_CLUSTERS,
    ComparedMetric,
    PValue,
    SideVerdict,
    VerdictRule,
    gap,
    outcome_agreement,
    outcome_words,
    p_values,
)
from jobs.kit.comparison.pairing import (
    CommonItems,
    Incomparable,
    ItemGap,
    LabelAgreement,
    OutcomeCounts,
    PairedItems,
    label_agreement,
    pair_items,
)
from jobs.kit.comparison.sides import RunReference
from jobs.kit.metrics import Resamples, holm, mcnemar, round12
from jobs.kit.metrics.resampling import Form
from jobs.kit.tables import Columns, count, group, number, text
from jobs.kit.text_format import plural
from runner.errors import UsageError
from runner.scorecard import Comparable, Labels
from store.nearest import did_you_mean

_MAX_CACHED_DRAWS = 4
"""Sets of clusters whose resamples are held; a match's metrics mostly share one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One model of one run."""

    run: str
    number: int | None  #: of the recorded scoring; None: the run as it stands
    model: str
    comparable: Comparable
    names: Mapping[str, str] = field(default_factory=dict)
    """By path: what a reader calls a metric."""
    labels: Callable[[], Labels] | None = None  #: None: the job gives none
    seq: int  #: the last event of the run's log that was scored

    @property
    def source(self) -> str:
        """The run, with the scoring's number if there is one."""
        return str(RunReference(self.run, self.number))

    def name(self, path: str) -> str:
        """Return the name of a metric, with its path where that differs."""
        name = self.names.get(path, path)
        return path if name == path else f"{name}  ({path})"

    @property
    def key(self) -> tuple[str, str]:
        """Key that identifies the side: source and model."""
        return self.source, self.model


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonOptions:
    """Options of intervals, and of the rule for winners."""

    b: int = 2000
    seed: int = 20260118
    level: float = 0.95
    min_clusters: int = MIN_CLUSTERS
    form: Form = "adjusted"

    @property
    def rule(self) -> VerdictRule:
        """The rule of verdicts at this level."""
        return VerdictRule(level=self.level, min_clusters=self.min_clusters)

    def maker(self) -> Callable[[tuple[str, ...]], Resamples]:
        """The resamples of some clusters, the same ones whenever they are asked for."""
        return lru_cache(maxsize=_MAX_CACHED_DRAWS)(
            partial(
                Resamples, b=self.b, seed=self.seed, level=self.level, form=self.form
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IncomparableMetric:
    """A metric that both sides have and that cannot be compared."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedModels:
    """Two models, metric by metric."""

    a: Side
    b: Side
    compared: tuple[ComparedMetric, ...]
    refused: tuple[IncomparableMetric, ...]
    only_a: tuple[str, ...]  #: metrics that B does not have
    only_b: tuple[str, ...]
    label_agreement: LabelAgreement | None  #: None: no item is labelled by both


def compare_models(
    pairs: Iterable[tuple[Side, Side]],
    patterns: Sequence[str],
    options: ComparisonOptions,
) -> tuple[ComparedModels, ...]:
    """Every pair of sides; Holm corrects each family of metrics over all of them.

    Args:
        pairs: A and B of each match.
        patterns: paths of the metrics to compare, `*` for any characters; all where
            there are none.
        options: how intervals are drawn.

    Raises:
        UsageError: a pattern names no metric that both sides of some pair have, or
            there is neither a metric nor a label to compare.
    """
    matches = compare_all(pairs, patterns, options)
    _check_patterns(patterns, matches)
    return matches


def compare_all(
    pairs: Iterable[tuple[Side, Side]],
    patterns: Sequence[str],
    options: ComparisonOptions,
) -> tuple[ComparedModels, ...]:
    """Like `compare_models`, also where nothing can be compared."""
    draw = options.maker()
    matches = [_compare_sides(a, b, patterns, options.seed, draw) for a, b in pairs]
    compared = [metric for match in matches for metric in match.compared]
    corrected = dict(zip(map(id, compared), _corrected(compared), strict=True))

    def judged(metric: ComparedMetric) -> ComparedMetric:
        p_holm = corrected[id(metric)]
        word = options.rule.verdict(
            metric.gap.interval,
            p_holm,
            metric.overlap.clusters,
            lower_is_better=metric.lower_is_better,
        )
        return replace(metric, p_holm=p_holm, verdict=word)

    return tuple(
        replace(match, compared=tuple(map(judged, match.compared))) for match in matches
    )


def _corrected(compared: Sequence[ComparedMetric]) -> list[float | None]:
    """The tests' p-values after Holm's correction within each family."""
    adjusted: list[float | None] = [None] * len(compared)
    for family in dict.fromkeys(metric.family for metric in compared):
        at = [n for n, metric in enumerate(compared) if metric.family == family]
        tests = [compared[n].p_values.primary for n in at]
        ps = holm([None if test is None else test.p for test in tests])
        for n, p in zip(at, ps, strict=True):
            adjusted[n] = None if p is None else round12(p)
    return adjusted


def _compare_sides(
    a: Side,
    b: Side,
    patterns: Sequence[str],
    seed: int,
    draw: Callable[[tuple[str, ...]], Resamples],
) -> ComparedModels:
    compared: list[ComparedMetric] = []
    refused: list[IncomparableMetric] = []
    common: CommonItems | None = None
    for path in a.comparable:
        if path not in b.comparable or not _is_selected(path, patterns):
            continue
        try:
            paired = pair_items(a.comparable[path](), b.comparable[path](), common)
        except Incomparable as error:
            refused.append(IncomparableMetric(path=path, reason=str(error)))
            continue
        common = paired.common
        compared.append(
            ComparedMetric(
                path=path,
                definition=paired.values.definition,
                cluster=paired.values.cluster,
                lower_is_better=paired.values.lower_is_better,
                overlap=paired.overlap,
                gap=gap(paired, draw(paired.resampled_clusters)),
                outcomes=paired.outcomes() if paired.has_item_values else None,
                p_values=p_values(paired, seed, draw(paired.resampled_clusters)),
                agreement=outcome_agreement(paired),
                family=paired.values.family,
            )
        )
    return ComparedModels(
        a=a,
        b=b,
        compared=tuple(compared),
        refused=tuple(refused),
        only_a=tuple(path for path in a.comparable if path not in b.comparable),
        only_b=tuple(path for path in b.comparable if path not in a.comparable),
        label_agreement=label_agreement(a.labels(), b.labels())
        if a.labels and b.labels
        else None,
    )


REST = "all other metrics"
"""The family of metrics that name none, in words."""


def families(matches: Sequence[ComparedModels]) -> dict[str, int]:
    """Return the number of tests that Holm corrects together, by family."""
    counts: dict[str, int] = {}
    for metric in (metric for match in matches for metric in match.compared):
        if metric.p_values.primary is not None:
            counts[metric.family] = counts.get(metric.family, 0) + 1
    rest = counts.pop("", 0)
    name = REST if counts else "all metrics"
    return {**counts, **({name: rest} if rest else {})}


def family(matches: Sequence[ComparedModels]) -> str:
    """Return the scope of Holm's correction, in words."""
    tests = [
        f"{name} ({n} {'test' if n == 1 else 'tests'})"
        for name, n in families(matches).items()
    ]
    pairs = f"{len(matches)} {'pair' if len(matches) == 1 else 'pairs'} of models"
    return f"{pairs}, within: {', '.join(tests) or 'no test'}"


def items_of(match: ComparedModels, path: str) -> PairedItems:
    """Both sides of one metric of *match*, item by item.

    Raises:
        UsageError: the metric was not compared, or no item has a value by itself.
    """
    paths = [metric.path for metric in match.compared if metric.outcomes is not None]
    if path not in paths:
        raise UsageError(
            f"{path!r} has no value for each item to list; "
            + did_you_mean(path, paths, f"these have: {', '.join(paths) or 'none'}.")
        )
    return pair_items(match.a.comparable[path](), match.b.comparable[path]())


def largest_gaps(match: ComparedModels, path: str, n: int) -> tuple[ItemGap, ...]:
    """The *n* common items on which the two sides of one metric differ most.

    Raises:
        UsageError: the metric was not compared, or no item has a value by itself.
    """
    return tuple(items_of(match, path).furthest(n))


def _is_selected(path: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(
        fnmatch.fnmatchcase(path, pattern) for pattern in patterns
    )


def _check_patterns(patterns: Sequence[str], matches: Sequence[ComparedModels]) -> None:
    """Raise `UsageError` where there is nothing to compare, or less than was named."""
    shared = dict.fromkeys(
        path
        for match in matches
        for path in match.a.comparable
        if path in match.b.comparable
    )
    if not shared:
        # without a truth there is no metric, but models may agree
        if not patterns and any(match.label_agreement for match in matches):
            return
        raise UsageError(
            "There is no metric that both sides give item by item; compare runs of "
            "one job in one mode, scored with a truth."
        )
    for pattern in patterns:
        if not fnmatch.filter(shared, pattern):
            raise UsageError(
                f"No metric {pattern!r} can be compared; "
                + did_you_mean(pattern, shared, f"there are: {', '.join(shared)}.")
            )


class ComparisonSettings(Protocol):
    """The settings of a job that say how it draws intervals and judges differences."""

    @property
    def boot_b(self) -> int:
        """Bootstrap replicates."""

    @property
    def boot_seed(self) -> int:
        """Seed of draws and permutations."""

    @property
    def level(self) -> float:
        """Level of the intervals."""

    @property
    def interval(self) -> Form:
        """Kind of the intervals."""

    @property
    def min_clusters(self) -> int:
        """Clusters below which a comparison has no winner."""


def verdict_rule(settings: ComparisonSettings) -> VerdictRule:
    """The rule of verdicts under a job's settings."""
    return _options_of(settings).rule


def _options_of(settings: ComparisonSettings) -> ComparisonOptions:
    return ComparisonOptions(
        b=settings.boot_b,
        seed=settings.boot_seed,
        level=settings.level,
        min_clusters=settings.min_clusters,
        form=settings.interval,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SignTest:
    """McNemar's exact test of the items on which one of two models is better.

    It ignores that items of a cluster hang together; it is shown beside the test by
    cluster and decides nothing.
    """

    n: int = 0  #: items with a value of both models
    left_alone: int = 0  #: of them, those on which the left model is better
    right_alone: int = 0
    p: float | None = None  #: None without an item
    p_holm: float | None = None  #: corrected over all pairs of the run

    @classmethod
    def of(cls, metric: ComparedMetric | None) -> SignTest:
        """The test of a metric; without an item where it was not compared."""
        if metric is None or metric.outcomes is None:
            return cls()
        outcomes, n = metric.outcomes, metric.overlap.n
        return cls(
            n=n,
            left_alone=outcomes.wins,
            right_alone=outcomes.losses,
            p=mcnemar(outcomes.wins, outcomes.losses).p if n else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPair:
    """Two models of a run, metric by metric."""

    left: str
    right: str
    metrics: Mapping[str, ComparedMetric]  #: by path, left minus right
    sign_test: SignTest


def compared_pairs(
    sides: Mapping[str, Comparable],
    pairs: Iterable[tuple[str, str]],
    settings: ComparisonSettings,
) -> tuple[ComparedModels, ...]:
    """Pairs of sides of one run, left minus right: B of a match is the left side.

    Args:
        sides: what each can be compared in, such as a model or one of its lists.
        pairs: the names of left and right.
        settings: of the job.
    """
    named = {
        name: Side(
            run="",
            number=None,
            model=name,
            # every pair of a side asks for its values
            comparable={path: cache(make) for path, make in comparable.items()},
            seq=0,
        )
        for name, comparable in sides.items()
    }
    # a comparison is B minus A
    matched = [(named[right], named[left]) for left, right in pairs]
    return compare_all(matched, (), _options_of(settings))


def model_pairs(
    models: Mapping[str, Comparable],
    paths: Sequence[str],
    settings: ComparisonSettings,
    sign_test: str,
) -> tuple[ModelPair, ...]:
    """Every two models, in their order, in those of *paths* that both have.

    Args:
        models: what each can be compared in.
        paths: metrics whose families lie within them, so that Holm's correction is
            that of a comparison of all metrics.
        settings: of the job.
        sign_test: the one of *paths* whose items McNemar's test counts.
    """
    sides = {
        model: {path: comparable[path] for path in paths if path in comparable}
        for model, comparable in models.items()
    }
    matches = compared_pairs(sides, itertools.combinations(sides, 2), settings)
    by_path = [{metric.path: metric for metric in match.compared} for match in matches]
    tests = [SignTest.of(metrics.get(sign_test)) for metrics in by_path]
    corrected = holm([test.p for test in tests])
    return tuple(
        ModelPair(
            left=match.b.model,
            right=match.a.model,
            metrics=metrics,
            sign_test=replace(test, p_holm=p_holm),
        )
        for match, metrics, test, p_holm in zip(
            matches, by_path, tests, corrected, strict=True
        )
    )


DIFFERENCE: tuple[Columns[ComparedMetric], ...] = (
    number("difference", lambda metric: metric.gap.value),
    number("lo", lambda metric: metric.gap.interval.lo),
    number("hi", lambda metric: metric.gap.interval.hi),
)
"""The difference of one metric of a pair and the ends of its interval."""

TEST: tuple[Columns[PValue], ...] = (
    text("test", lambda test: test.name),
    number("p", lambda test: test.p),
)

_OUTCOMES: tuple[Columns[OutcomeCounts], ...] = (
    count("won", lambda items: items.wins),
    count("lost", lambda items: items.losses),
    count("tied", lambda items: items.ties),
)

TESTED: tuple[Columns[ComparedMetric], ...] = (
    group(TEST, lambda metric: metric.p_values.primary),
    number("p_holm", lambda metric: metric.p_holm),
    text("verdict", lambda metric: metric.verdict),
    count("clusters", lambda metric: metric.overlap.clusters),
    group(_OUTCOMES, lambda metric: metric.outcomes),
)
"""The test, the verdict and the items by outcome of one metric of a pair."""


def p_value_words(metric: ComparedMetric) -> str:
    """The test, the items by outcome and the verdict, for a line of a summary."""
    primary = metric.p_values.primary
    parts = [
        "no test"
        if primary is None or metric.p_holm is None
        else f"p {primary.p:.2g} ({primary.name}), Holm {metric.p_holm:.2g}"
    ]
    if metric.outcomes is not None:
        won = metric.outcomes
        parts.append(outcome_words(won.wins, won.losses, won.ties))
    return f"{', '.join(parts)}: {verdict_words(metric)}"


def verdict_words(metric: ComparedMetric) -> str:
    """The verdict as a phrase about the left model."""
    word: SideVerdict = metric.verdict
    if word == "too few":
        return f"too few ({plural(metric.overlap.clusters, metric.cluster)})"
    return f"left {word}" if word in {"better", "worse"} else word
