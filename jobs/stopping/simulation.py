"""Simulates screenings of a labelled library, with its labels instead of people.

The simulated person labels as the file states and follows the rule's advice. The rule
is compared with an oracle (which knows when the target is reached), rules of thumb in
the same ranked order (a number of irrelevant records in a row), and reading all. Only
the draws, and a random order, differ between seeds.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from jobs.kit.charts import thinned_line
from jobs.screening.stop_rule import RecallStopRule, RecordDrawn, RecordLabelled
from jobs.stopping.reading_order import REFIT, RecordRanking
from runner.scorecard import Axis, Figure, Panel, ReferenceLine
from store.document import Block, Fact, Heading, Numbers, TableBlock, Words

IN_A_ROW: Final = (50, 100, 0.05)
"""Rules of thumb: number of irrelevant records in a row, or their share of the
library."""

RULE: Final = "this rule"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Counts at the stop of one simulated screening."""

    read: int
    found: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CurvePoint:
    """The state after some records of one screening."""

    read: int
    bound: float  #: lower bound on recall
    recall: float  #: true


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRule:
    """Summary of all stops of one rule."""

    name: str
    stops: int
    below_target: float  #: share of stops with a true recall below the target
    recall: float  #: mean
    least_recall: float
    read: float  #: mean share of the library
    saved: float  #: mean share that was not read


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """Simulated screenings of one library."""

    records: int
    relevant: int
    target: float
    alpha: float
    order: str
    seeds: int
    rules: tuple[SimulatedRule, ...]
    curve: tuple[CurvePoint, ...]  #: of the first seed


def simulate(
    relevance: Mapping[str, bool],
    ranking_of: Callable[[int], RecordRanking],
    *,
    order: str,
    target: float,
    alpha: float,
    seeds: int,
    progress: Callable[[str], None],
) -> Simulation:
    """Screen a library once per seed, by all rules.

    Args:
        relevance: relevance of every record.
        ranking_of: the ranking of a seed; of the same records.
        order: name of the order.
        target: recall to reach.
        alpha: upper bound on the probability of stopping below it.
        seeds: number of screenings.
        progress: called with a line after each.
    """
    stops: dict[str, list[Stop]] = {}
    curve: list[CurvePoint] = []
    for seed in range(1, seeds + 1):
        ranking = ranking_of(seed)
        labels = [relevance[key] for key in _whole_order(relevance, ranking)]
        path = None if curve else curve
        stop = _screened(relevance, ranking, target, alpha, seed=seed, curve=path)
        stops.setdefault(RULE, []).append(stop)
        for name, read in _other_rules(labels, target):
            stops.setdefault(name, []).append(Stop(read=read, found=sum(labels[:read])))
        progress(f"{seed} of {seeds} screenings simulated")
    relevant = sum(relevance.values())
    return Simulation(
        records=len(relevance),
        relevant=relevant,
        target=target,
        alpha=alpha,
        order=order,
        seeds=seeds,
        rules=tuple(
            _summed(name, of, len(relevance), relevant, target)
            for name, of in stops.items()
        ),
        curve=tuple(curve),
    )


def _screened(
    relevance: Mapping[str, bool],
    ranking: RecordRanking,
    target: float,
    alpha: float,
    *,
    seed: int,
    curve: list[CurvePoint] | None,
) -> Stop:
    """Screen by the rule's advice, and record the curve if one is given."""
    rule = RecallStopRule(records=len(relevance), target=target, alpha=alpha)
    chance = random.Random(seed)  # noqa: S311 - reproducible, no secret
    relevant = sum(relevance.values())
    unread = dict.fromkeys(ranking.order)
    labels: dict[str, bool] = {}
    refitted = 0
    while (advice := rule.advice) != "stop" and unread:
        if advice == "draw":
            record = chance.choice(list(unread))
            rule.receive(RecordDrawn(record=record, unread=len(unread)))
        else:
            if len(labels) >= refitted + REFIT:
                refitted = len(labels)
                order = ranking.refit(labels) or ()
                unread = dict.fromkeys(key for key in order if key in unread) or unread
            record = next(iter(unread))
        del unread[record]
        labels[record] = relevance[record]
        rule.receive(RecordLabelled(record=record, is_relevant=relevance[record]))
        if curve is not None:
            after = rule.status
            recall = after.relevant / relevant if relevant else 1.0
            curve.append(CurvePoint(read=after.read, bound=after.recall, recall=recall))
    return Stop(read=len(labels), found=sum(labels.values()))


def _whole_order(relevance: Mapping[str, bool], ranking: RecordRanking) -> list[str]:
    """Return the order in which all records are read without draws."""
    unread = dict.fromkeys(ranking.order)
    labels: dict[str, bool] = {}
    while unread:
        if labels and len(labels) % REFIT == 0:
            order = ranking.refit(labels) or ()
            unread = dict.fromkeys(key for key in order if key in unread) or unread
        record = next(iter(unread))
        del unread[record]
        labels[record] = relevance[record]
    return list(labels)


def _other_rules(labels: Sequence[bool], target: float) -> Iterator[tuple[str, int]]:
    """Yield the other rules by name, with the number of records they read."""
    for run in IN_A_ROW:
        length = int(run) if run >= 1 else max(1, math.ceil(run * len(labels)))
        name = f"{length:,} irrelevant in a row"
        if run < 1:
            name = f"{run:.0%} of all irrelevant in a row"
        yield name, _until_in_a_row(labels, length)
    yield "oracle", _oracle(labels, target)
    yield "reading all", len(labels)


def _until_in_a_row(labels: Sequence[bool], length: int) -> int:
    since = 0
    for read, is_relevant in enumerate(labels, 1):
        since = 0 if is_relevant else since + 1
        if since >= length:
            return read
    return len(labels)


def _oracle(labels: Sequence[bool], target: float) -> int:
    needed = math.ceil(target * sum(labels) - 1e-9)
    relevant = 0
    for read, is_relevant in enumerate(labels, 1):
        relevant += is_relevant
        if relevant >= needed:
            return read if needed else 0
    return len(labels)


def _summed(
    name: str, stops: Sequence[Stop], records: int, relevant: int, target: float
) -> SimulatedRule:
    recalls = [stop.found / relevant if relevant else 1.0 for stop in stops]
    read = fmean(stop.read / records for stop in stops)
    return SimulatedRule(
        name=name,
        stops=len(stops),
        below_target=fmean(recall < target - 1e-12 for recall in recalls),
        recall=fmean(recalls),
        least_recall=min(recalls),
        read=read,
        saved=1 - read,
    )


def simulation_blocks(result: Simulation) -> list[Block]:
    """Return a simulation as blocks of text."""
    return [
        Heading("Simulated screening", level=1),
        Fact("library", f"{result.records:,} records, {result.relevant:,} relevant"),
        Fact("order", result.order),
        Fact("target", f"recall {result.target:g}, alpha {result.alpha:g}"),
        Fact("seeds", f"{result.seeds:,}"),
        "",
        TableBlock(
            (
                Words("rule"),
                Numbers("below target"),
                Numbers("recall"),
                Numbers("least"),
                Numbers("read"),
                Numbers("saved"),
            ),
            [
                (
                    rule.name,
                    f"{rule.below_target:.1%}",
                    f"{rule.recall:.3f}",
                    f"{rule.least_recall:.3f}",
                    f"{rule.read:.1%}",
                    f"{rule.saved:.1%}",
                )
                for rule in result.rules
            ],
        ),
        "",
    ]


def simulation_figure(result: Simulation) -> Figure:
    """Plot the bound and the true recall of the first screening, by records read."""
    read = [point.read for point in result.curve]
    return Figure(
        name="screening-simulation",
        title="Lower bound on recall and true recall",
        caption=(
            "One simulated screening until its stop. The bound stays below the true "
            f"recall in at least {1 - result.alpha:.0%} of screenings, at all times "
            f"together; it stops at the target, {result.target:g}."
        ),
        panels=(
            Panel(
                x=Axis(label="records read", lo=0, hi=result.records),
                y=Axis(label="recall", lo=0, hi=1),
                marks=(
                    thinned_line(
                        read,
                        [point.recall for point in result.curve],
                        label="true recall",
                        series=0,
                        steps=True,
                    ),
                    thinned_line(
                        read,
                        [point.bound for point in result.curve],
                        label="lower bound",
                        series=1,
                        steps=True,
                    ),
                    ReferenceLine(way="horizontal", at=result.target, label="target"),
                ),
            ),
        ),
    )
