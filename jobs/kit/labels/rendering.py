"""Renders what labels say: the agreement of raters, and the quality of models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from jobs.kit.labels.any_time import AnyTimeInterval
from jobs.kit.labels.people import FieldAgreement
from jobs.kit.labels.quality import FieldQuality, Predictor
from jobs.kit.metrics.label_estimates import (
    EstimatedRate,
    RateEstimate,
    labels_until_nominal,
)
from jobs.kit.metrics.prediction_powered import FEW
from jobs.kit.metrics.raters import Coefficient, RaterAgreement
from store.document import Block, Fact, Heading, Numbers, TableBlock, Words

COEFFICIENTS = {
    "percent": "share of equal pairs",
    "cohen": "Cohen's kappa",
    "fleiss": "Fleiss' kappa",
    "krippendorff": "Krippendorff's alpha",
    "gwet": "Gwet's AC1",
}
"""Coefficients of `RaterAgreement` with their names."""


def _coefficients(of: RaterAgreement) -> dict[str, Coefficient]:
    values = {name: getattr(of, name) for name in COEFFICIENTS}
    return {name: value for name, value in values.items() if value is not None}


def agreement_json(result: FieldAgreement) -> dict[str, Any]:
    """The agreement on a field for `--json`."""
    latent, table = result.latent, result.table
    return {
        "field": result.field,
        "raters": list(table.raters),
        "people": table.people,
        "categories": list(table.categories),
        "all_people": asdict(result.people),
        "pairs": [
            {"a": a, "b": b, **asdict(of)} for (a, b), of in result.pairs.items()
        ],
        "latent": None
        if latent is None
        else {
            "prevalence": dict(
                zip(table.categories, latent.prevalence.tolist(), strict=True)
            ),
            "accuracy": dict(zip(table.raters, latent.accuracy.tolist(), strict=True)),
            "iterations": latent.iterations,
            "converged": latent.has_converged,
        },
    }


def agreement_blocks(result: FieldAgreement, level: float) -> list[Block]:
    """The agreement on a field for people; *level* is that of the intervals."""
    table = result.table
    blocks: list[Block] = [Heading(result.field or "items", level=1)]
    blocks.append(Fact("raters", ", ".join(table.raters)))
    blocks.append(
        Fact("items", f"{result.people.items:,} labelled by two people or more")
    )
    blocks.append(Fact("intervals", f"{level:.0%}, items drawn again 1,000 times"))
    blocks += ["", "  all people"]
    blocks += [
        Fact(COEFFICIENTS[name], _coefficient_text(of) or "undefined", 4, 26)
        for name, of in _coefficients(result.people).items()
    ]
    if len(result.pairs) > 1:
        blocks += [
            "",
            TableBlock(
                (
                    Words("pair"),
                    Numbers("items"),
                    Words("equal"),
                    Words("Cohen's kappa"),
                    Words("Gwet's AC1"),
                ),
                [
                    (
                        *(f"{a}, {b}", of.items, _coefficient_text(of.percent)),
                        *(_coefficient_text(of.cohen), _coefficient_text(of.gwet)),
                    )
                    for (a, b), of in result.pairs.items()
                ],
                is_wide=True,
            ),
        ]
    if result.latent is not None:
        accuracy = result.latent.accuracy.tolist()
        blocks += ["", "  accuracy without a truth (Dawid and Skene)"]
        blocks += [
            Fact(rater, f"{share:.3f}", 4, 26)
            for rater, share in zip(table.raters, accuracy, strict=True)
        ]
    return [*blocks, ""]


def _coefficient_text(of: Coefficient | None) -> str | None:
    if of is None or of.value is None:
        return None
    if of.lo is None or of.hi is None:
        return f"{of.value:.3f}"
    return f"{of.value:.3f} [{of.lo:.3f}, {of.hi:.3f}]"


_TRUSTED: Mapping[Predictor, str] = {
    "judge": "the judge",
    "verdicts": "the recorded verdicts",
    "models": "the other models",
    "itself": "the model itself",
}
"""Source that an estimate by predictions alone takes for the truth."""

_CONSERVATIVE: Final = (
    f"fewer than {FEW:.0f} effective residuals, such as labels that contradict the "
    "predictions, make up the variance: the interval is at least the exact one, and "
    "covers about {level} or more; +N: about N more labels make it nominal"
)


_WIDE_LABEL: Final = len("conservative") + 2

_ANY_TIME: Final = (
    "valid at all looks together: you may look after each label, and "
    "stop when you like; the other intervals hold at one look"
)


def quality_json(result: FieldQuality) -> dict[str, Any]:
    """The estimates of a field for `--json`."""
    return {
        "field": result.field,
        "positive": result.positive or None,
        "design": result.design or None,
        "labels": result.labels,
        "outside": result.outside,
        "strata": list(result.strata),
        "models": [
            {
                "model": model.model,
                "items": model.items,
                "labels": model.labels,
                "predicted_by": model.predictor,
                "metrics": [
                    {
                        "metric": one.metric,
                        **asdict(one.estimate.powered),
                        "labels_alone": asdict(one.estimate.labels_alone),
                        "naive": asdict(one.estimate.naive),
                        "any_time": None
                        if one.any_time is None
                        else asdict(one.any_time),
                        "weights": dict(one.estimate.weights),
                        "effective_labels": one.estimate.effective,
                        "effective_residuals": one.estimate.residuals,
                        "conservative": one.estimate.is_conservative,
                        "labels_until_nominal": labels_until_nominal(one.estimate),
                        "labels_needed": one.needed,
                    }
                    for one in model.estimates
                ],
            }
            for model in result.models
        ],
    }


def quality_blocks(
    result: FieldQuality, level: float, width: float | None
) -> list[Block]:
    """The estimates of a field for people."""
    drawn = f"drawn by {result.design}" if result.design else "not drawn by a design"
    blocks: list[Block] = [
        Heading(result.field or "items", level=1),
        Fact("labels", f"{result.labels:,}, {drawn}"),
    ]
    if result.outside:
        blocks.append(
            Fact("left out", f"{result.outside:,} labels of items that were not drawn")
        )
    if result.strata:
        blocks.append(Fact("strata", ", ".join(result.strata)))
    trusted = {_TRUSTED[model.predictor] for model in result.models if model.estimates}
    truth = f"; 'as truth' trusts {', or '.join(sorted(trusted))}" if trusted else ""
    blocks.append(Fact("intervals", f"{level:.0%}{truth}"))
    estimates = [one.estimate for model in result.models for one in model.estimates]
    is_marked = any(estimate.is_conservative for estimate in estimates)
    until = max(
        (
            one.any_time.labels
            for model in result.models
            for one in model.estimates
            if one.any_time is not None
        ),
        default=0,
    )
    columns: list[Words | Numbers] = [
        *(Words("model"), Words("metric"), Words("estimate")),
        *([Words("interval")] if is_marked else []),
        Words("labels alone"),
        *([Words("any time")] if until else []),
        Words("as truth"),
    ]
    if width is not None:
        columns.append(Numbers(f"labels to {width:g}"))
    rows: list[tuple[str | int | None, ...]] = [
        (
            *(model.model, one.metric, _rate_text(one.estimate.powered)),
            *((_mark(one.estimate),) if is_marked else ()),
            _rate_text(one.estimate.labels_alone),
            *((_ends_text(one.any_time),) if until else ()),
            _rate_text(one.estimate.naive),
            *(() if width is None else (one.needed,)),
        )
        for model in result.models
        for one in model.estimates
    ]
    few = [model.model for model in result.models if not model.estimates]
    if rows:
        blocks += ["", TableBlock(columns, rows, indent=0, is_wide=True)]
    if is_marked:
        why = _CONSERVATIVE.format(level=f"{level:.0%}")
        blocks += ["", Fact("conservative", why, width=_WIDE_LABEL)]
    if until:
        first = "label" if until == 1 else f"{until:,} labels"
        about = f"the draw's first {first} alone, {_ANY_TIME}"
        blocks += ["", Fact("any time", about, width=_WIDE_LABEL)]
    if few:
        blocks += ["", f"Too few labels for {', '.join(few)}."]
    return [*blocks, ""]


def _mark(estimate: RateEstimate) -> str:
    """Whether an interval is conservative, and how many more labels end that."""
    if not estimate.is_conservative:
        return ""
    return f"conservative, +{labels_until_nominal(estimate):,}"


def _ends_text(interval: AnyTimeInterval | None) -> str:
    return "" if interval is None else f"[{interval.lo:.3f}, {interval.hi:.3f}]"


def _rate_text(rate: EstimatedRate) -> str | None:
    if rate.value is None or rate.lo is None or rate.hi is None:
        return None
    return f"{rate.value:.3f} [{rate.lo:.3f}, {rate.hi:.3f}]"
