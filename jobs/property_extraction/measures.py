"""Collects the metrics of property-extraction: scopes, forms, slots, and measures."""

from __future__ import annotations

from jobs.kit.measures import BASELINE_FORMS, Measure, MeasurePart, Measures
from jobs.property_extraction.name_metrics import ENCOMPASSMENT, MISMATCHES, NAMES
from jobs.property_extraction.rates import COUNTS, MEDIANS, RATES
from jobs.property_extraction.row_metrics import GROUNDING, ROWS

MEASURES = Measures(
    headlines=("precision", "recall", "f1", "encompassment", "fabricated_quote_rate"),
    scopes={
        "macro.": MeasurePart(name="mean over properties"),
        "by_paper.": MeasurePart(name="mean over papers"),
        "grounded.": MeasurePart(
            name="grounded rows",
            meaning="only rows whose quote is well enough grounded count",
        ),
    },
    forms={
        **BASELINE_FORMS,
        "~defined": MeasurePart(
            name="where defined", meaning="properties without a value are left out"
        ),
        "~failed_as_empty": MeasurePart(
            name="failed papers as empty",
            meaning="a paper that failed counts as one without predictions",
        ),
        "~fn_values": MeasurePart(
            name="by value", meaning="each missed value counts once"
        ),
    },
    slots={
        "unit_status": {
            "same": "same unit",
            "converted": "converted",
            "missing": "no unit",
            "unknown": "unknown unit",
            "incompatible": "incompatible unit",
        },
        "number_status": {
            "value": "number",
            "bound": "bound",
            "range": "range",
            "not_a_number": "not a number",
        },
        "level": {
            "exact": "exact",
            "normalised": "after normalisation",
            "elided": "with elisions",
            "near": "nearly",
            "absent": "absent",
            "no_quote": "no quote",
            "no_text": "no text of the paper",
        },
    },
    measures={
        **COUNTS,
        **RATES,
        **MEDIANS,
        **NAMES,
        **ENCOMPASSMENT,
        **ROWS,
        **GROUNDING,
        **{f"mismatch.{key}": measure for key, measure in MISMATCHES.items()},
    },
)

ALIASES = Measures(
    headlines=("match_rate",),
    measures={
        "match_rate": Measure(
            "Match rate",
            "Share of the decided pairs of names that the model takes for one property",
        ),
        "pairs": Measure("Pairs", "Pairs of names that were asked about, or equal"),
        "matches": Measure("Matches", "Pairs of names that are called a match"),
        "rejected": Measure("Rejections", "Pairs of names that are called no match"),
        "undecided": Measure(
            "Undecided pairs", "Pairs of names without a majority of verdicts", "lower"
        ),
        "auto_verified": Measure(
            "Equal names", "Pairs of names that are equal but for letter case"
        ),
        "unread": Measure(
            "Unreadable verdicts", "Verdicts whose reply could not be read", "lower"
        ),
        "replicates_agree": Measure(
            "Agreement of replicates",
            "Share of equal verdicts over pairs of replicates, as a mean over pairs of "
            "names",
            "higher",
        ),
    },
)
"""Of `siftlog prepare property-extraction verify-aliases`."""
