"""Compares the models of one run in its headline metrics, as a report shows it.

Compared are the metrics for which the job names a family, or all where it names none.
Numbers are those of `siftlog compare` on the run: each family is compared whole,
because Holm's correction is over all of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from jobs.kit.comparison.difference import OPPOSITE, SideVerdict, VerdictRule
from jobs.kit.comparison.models import ComparisonOptions, Side, compare_all
from runner.scorecard import Comparable

_SETTINGS: Final = {
    "b": "boot_b",
    "seed": "boot_seed",
    "level": "level",
    "min_clusters": "min_clusters",
    "form": "interval",
}
"""Settings of jobs that are options of a comparison."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricVerdicts:
    """Verdicts of comparisons of a run's models in one metric."""

    path: str
    verdicts: Mapping[tuple[str, str], SideVerdict]
    """About the first of two models, for both orders of each pair."""
    cluster: str  #: name of a document, such as "paper"
    clusters: int  #: the fewest that two models share
    rule: VerdictRule

    def best(self, models: Sequence[str]) -> str | None:
        """The one of *models* that is better than each other one, if there is one."""
        for model in models:
            others = [other for other in models if other != model]
            if others and all(
                self.verdicts.get((model, other)) == "better" for other in others
            ):
                return model
        return None

    @property
    def decided(self) -> tuple[tuple[str, str], ...]:
        """Pairs with a winner, which comes first."""
        return tuple(p for p, word in self.verdicts.items() if word == "better")

    @property
    def has_too_few(self) -> bool:
        """Whether every pair has too few documents for a winner."""
        return all(word == "too few" for word in self.verdicts.values())


def run_verdicts(
    models: Mapping[str, Comparable], paths: Iterable[str], settings: object
) -> dict[str, MetricVerdicts]:
    """Compare every two models of a run; by path, of the metrics that are compared.

    Args:
        models: what each can be compared in, in the order of the run.
        paths: of the metrics.
        settings: of the job; an option that it has no setting for has its default.
    """
    makers = {
        model: {path: cache(make) for path, make in comparable.items()}
        for model, comparable in models.items()
    }
    wanted = dict.fromkeys(paths)
    families = {
        of_model[path]().family
        for of_model in makers.values()
        for path in wanted
        if path in of_model
    }
    if len(families) > 1:
        families.discard("")  # the job says which metrics are its questions
    sides = [
        Side(
            run="",
            number=None,
            model=model,
            comparable={
                path: make
                for path, make in of_model.items()
                if make().family in families
            },
            seq=0,
        )
        for model, of_model in makers.items()
    ]
    options = ComparisonOptions(
        **{
            option: getattr(settings, setting)
            for option, setting in _SETTINGS.items()
            if hasattr(settings, setting)
        }
    )
    matches = compare_all(itertools.combinations(sides, 2), (), options)
    result: dict[str, MetricVerdicts] = {}
    for path in wanted:
        compared = [
            (match.a.model, match.b.model, metric)
            for match in matches
            for metric in match.compared
            if metric.path == path
        ]
        if not compared:
            continue
        verdicts: dict[tuple[str, str], SideVerdict] = {}
        for a, b, metric in compared:
            # a comparison is about B
            verdicts[b, a] = metric.verdict
            verdicts[a, b] = OPPOSITE[metric.verdict]
        result[path] = MetricVerdicts(
            path=path,
            verdicts=verdicts,
            cluster=compared[0][2].cluster,
            clusters=min(metric.overlap.clusters for _, _, metric in compared),
            rule=options.rule,
        )
    return result
