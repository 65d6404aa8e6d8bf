"""What probabilities are worth: calibration, and the risk of deciding more queries."""

from __future__ import annotations

from collections.abc import Sequence

from jobs.evidence_retrieval.figures.shown import (
    SIDE_BY_SIDE,
    Model,
    Shown,
    numbers,
)
from jobs.evidence_retrieval.measuring.curves import bins, risk, thinned
from jobs.metrics.calibration import Bin
from runner.figure import Axis, Figure, Histogram, Line, Panel, Points, Rule


def reliability(shown: Shown) -> Figure | None:
    """Stated probabilities against what was observed, counts below."""
    found = [(m, own) for m in shown.models if (own := bins(m.results.block))]
    if not found:
        return None
    columns = SIDE_BY_SIDE[len(found)]
    rows = [found[i : i + columns] for i in range(0, len(found), columns)]
    level = 100 * shown.results.settings.level
    return Figure(
        name="reliability",
        title="Calibration",
        caption="Share of queries with evidence against their mean probability, bin by "
        f"bin; on the diagonal probabilities mean what they say. Bars: {level:g}% "
        "Wilson intervals, which take queries as independent. Below: how many queries "
        f"are in each bin.{shown.rest}",
        columns=columns,
        panels=tuple(
            panel(model, own)
            for row in rows
            for panel in (_observed, _counts)
            for model, own in row
        ),
    )


def _observed(model: Model, own: Sequence[Bin]) -> Panel:
    filled = [each for each in own if each.count]
    x = tuple(each.mean_p for each in filled)
    y = tuple(each.rate for each in filled)
    return Panel(
        title=model.name,
        x=Axis(lo=0, hi=1),
        y=Axis(label="share with evidence", lo=0, hi=1),
        marks=(
            Rule(way="diagonal", label="as stated"),
            Line(x=x, y=y, series=model.series),
            Points(
                x=x,
                y=y,
                lo=tuple(each.interval.lo for each in filled),
                hi=tuple(each.interval.hi for each in filled),
                series=model.series,
            ),
        ),
    )


def _counts(model: Model, own: Sequence[Bin]) -> Panel:
    return Panel(
        x=Axis(label="probability of evidence", lo=0, hi=1),
        y=Axis(label="queries", lo=0),
        height=0.5,
        marks=(
            Histogram(
                edges=(*(each.lo for each in own), own[-1].hi),
                counts=tuple(each.count for each in own),
                series=model.series,
            ),
        ),
    )


def risk_coverage(shown: Shown) -> Figure | None:
    """Wrong decisions among the surest queries, by how many are decided."""
    found = [
        (model, own)
        for model in shown.models
        if (own := risk(model.results.block)) is not None
    ]
    if not found:
        return None
    lines, most = [], 0.0
    for model, own in found:
        most = max(most, float(own.risk.max()))
        some = thinned(len(own.risk))
        area = model.results.by_path()["aurc"].value
        lines.append(
            Line(
                x=numbers(own.coverage[some]),
                y=numbers(own.risk[some]),
                marked=len(own.risk) == 1,
                label=f"AURC {area:.3f}: {model.name}",
                series=model.series,
            )
        )
    tau = shown.results.settings.tau
    return Figure(
        name="risk-coverage",
        title="Risk of deciding",
        caption=f"If only the surest queries were decided at p >= {tau:g}: the share "
        "of wrong decisions among them. How sure one is of a query is max(p, 1 - p)."
        f"{shown.rest}",
        panels=(
            Panel(
                x=Axis(label="share of queries decided (coverage)", lo=0, hi=1),
                y=Axis(label="share of wrong decisions (risk)", lo=0, hi=most or 1),
                marks=tuple(lines),
            ),
        ),
    )
