"""What probabilities are worth: calibration, and the risk of deciding more queries."""

from __future__ import annotations

from jobs.evidence_retrieval.figures.shown import Shown, numbers
from jobs.evidence_retrieval.measuring.curves import bins, risk
from jobs.figures import (
    SIDE_BY_SIDE,
    ReliabilitySeries,
    ReliabilityWords,
    reliability_panels,
    thinned_points,
)
from runner.scorecard import Axis, Figure, LineSeries, Panel


def reliability(shown: Shown) -> Figure | None:
    """Stated probabilities against what was observed, counts below."""
    found = [(m, own) for m in shown.models if (own := bins(m.column.block))]
    if not found:
        return None
    level = 100 * shown.results.settings.level
    return Figure(
        name="reliability",
        title="Calibration",
        caption="Share of queries with evidence against their mean probability, bin by "
        f"bin; on the diagonal probabilities mean what they say. Bars: {level:g}% "
        "Wilson intervals, which take queries as independent. Below: how many queries "
        f"are in each bin.{shown.rest}",
        columns=SIDE_BY_SIDE[len(found)],
        panels=reliability_panels(
            [
                ReliabilitySeries(name=m.name, series=m.series, bins=own)
                for m, own in found
            ],
            ReliabilityWords(
                share="share with evidence",
                probability="probability of evidence",
                counted="queries",
            ),
        ),
    )


def risk_coverage(shown: Shown) -> Figure | None:
    """Wrong decisions among the surest queries, by how many are decided."""
    found = [
        (model, own)
        for model in shown.models
        if (own := risk(model.column.block)) is not None
    ]
    if not found:
        return None
    lines, most = [], 0.0
    for model, own in found:
        most = max(most, float(own.risk.max()))
        some = thinned_points(len(own.risk))
        area = model.column.by_path()["aurc"].value
        lines.append(
            LineSeries(
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
