"""Renders the agreement of raters: `siftlog labels agreement`."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from jobs.kit.labels.people import FieldAgreement
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
