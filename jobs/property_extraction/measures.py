"""Collects the metrics of property-extraction: scopes, forms, slots, and measures."""

from __future__ import annotations

from jobs.kit.measures import BASELINE_FORMS, MeasurePart, Measures
from jobs.property_extraction.name_metrics import ENCOMPASSMENT, MISMATCHES, NAMES
from jobs.property_extraction.name_verification import HEADLINE, VERIFICATION
from jobs.property_extraction.rates import COUNTS, MEDIANS, RATES
from jobs.property_extraction.row_metrics import GROUNDING, NUMBERS, ROWS, UNITS

MEASURES = Measures(
    headlines=("precision", "recall", "f1", "encompassment", "fabricated_quote_rate"),
    operational=(
        *("rows", "abstained", "abstention_rate", "repeats"),
        *("numbers.{number_status}", "numbers.si.{number_status}"),
        *GROUNDING,
    ),
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
        "unit_status": UNITS,
        "number_status": NUMBERS,
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

ALIASES = Measures(headlines=(HEADLINE,), measures=VERIFICATION)
"""Metrics of a verification of aliases."""
