"""Names, meanings and directions of the metrics of property-extraction."""

from __future__ import annotations

from collections.abc import Mapping

from jobs.kit.measures import BASELINE_FORMS, Measure, MeasurePart, Measures
from runner.scorecard import Direction


def _measure(name: str, meaning: str, direction: Direction = "neither") -> Measure:
    return Measure(name=name, meaning=meaning, direction=direction)


_RATES: Mapping[str, Measure] = {
    "tp": _measure(
        "True positives", "Predicted values that are in the curated data", "higher"
    ),
    "fp": _measure(
        "False positives", "Predicted values that are not in the curated data", "lower"
    ),
    "fn": _measure("False negatives", "Curated values that are missed", "lower"),
    "precision": _measure(
        "Precision",
        "Share of the predicted values that are in the curated data",
        "higher",
    ),
    "recall": _measure(
        "Recall", "Share of the curated values that were predicted", "higher"
    ),
    "f1": _measure("F1", "Harmonic mean of precision and recall", "higher"),
}

_MISMATCH: Mapping[str, Measure] = {
    "pairs": _measure(
        "Wrong and missed names",
        "Pairs of a wrong and a missed property name of one paper",
    ),
    "contained": _measure(
        "Names within another",
        "Pairs of a wrong and a missed name of which one contains the other",
    ),
    "near": _measure(
        "Nearest missed names", "Pairs of a wrong name and its nearest missed names"
    ),
    "near_distinct": _measure(
        "Nearest missed names, distinct",
        "Distinct pairs of a wrong name and its nearest missed names",
    ),
    "similarity": _measure(
        "Similarity of nearest names",
        "Mean similarity of wrong names to their nearest missed names",
    ),
    "by_value": _measure(
        "Candidates by value",
        "Candidates whose missed number is predicted under the wrong name",
    ),
    "clashing": _measure(
        "Clashing aliases", "Names with several targets in the list to review"
    ),
    "drafted": _measure("Drafted aliases", "Names in the drafted list of aliases"),
    "drafted_selves": _measure(
        "Drafted aliases of themselves",
        "Names in the drafted list of aliases that stand for themselves",
    ),
}

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
        **_RATES,
        **{
            f"by_paper.{word}.median": _measure(
                f"{_RATES[word].name}, median over papers",
                f"{_RATES[word].meaning}; median over papers",
                "higher",
            )
            for word in ("precision", "recall", "f1")
        },
        "name_coverage": _measure(
            "Name coverage",
            "Share of the curated property names that are predicted at least once",
            "higher",
        ),
        "name_recall": _measure(
            "Name recall",
            "Share of the curated names of each paper that are predicted in it",
            "higher",
        ),
        "misses": _measure(
            "Properties with a missed value",
            "Properties of a paper with a curated value that is missed",
            "lower",
        ),
        "name_matches": _measure(
            "Missed properties with another value",
            "Properties of a paper with a missed value for which another is predicted",
        ),
        "encompassment": _measure(
            "Encompassment (%)",
            "Percentage of the properties with a missed value for which another value "
            "is predicted",
        ),
        "rows": _measure("Predicted rows", "Rows predicted in scored papers"),
        "abstained": _measure("Abstentions", "Rows that say that there is no value"),
        "abstention_rate": _measure(
            "Abstention rate", "Share of rows that say that there is no value"
        ),
        "repeats": _measure(
            "Repeated rows", "Rows that equal an earlier one in all fields", "lower"
        ),
        "units.{unit_status}": _measure(
            "Units, {unit_status}",
            "Rows of SI properties by unit, against the curated row of their name: "
            "{unit_status}",
        ),
        "units.tp.{unit_status}": _measure(
            "Units of true positives, {unit_status}",
            "Matched rows of SI properties by unit, against their curated row: "
            "{unit_status}",
        ),
        "numbers.{number_status}": _measure(
            "Values read as {number_status}",
            "Rows by how their value reads: {number_status}",
        ),
        "numbers.si.{number_status}": _measure(
            "Values of SI properties read as {number_status}",
            "Rows of SI properties by how their value reads: {number_status}",
        ),
        "grounding.{level}": _measure(
            "Quotes found, {level}",
            "Rows by how their quote occurs in the paper: {level}",
        ),
        "fabricated_quote_rate": _measure(
            "Fabricated quotes",
            "Share of the quotes that can be checked which the paper lacks",
            "lower",
        ),
        "grounded_rate": _measure(
            "Grounded quotes",
            "Share of the quotes that can be checked which occur in the paper",
            "higher",
        ),
        "value_in_quote": _measure(
            "Number in the quote",
            "Share of rows with a number whose quote contains it",
            "higher",
        ),
        "value_in_text": _measure(
            "Number in the text",
            "Share of rows with a number whose paper contains it",
            "higher",
        ),
        **{f"mismatch.{word}": measure for word, measure in _MISMATCH.items()},
    },
)

ALIASES = Measures(
    headlines=("match_rate",),
    measures={
        "match_rate": _measure(
            "Match rate",
            "Share of the decided pairs of names that the model takes for one property",
        ),
        "pairs": _measure("Pairs", "Pairs of names that were asked about, or equal"),
        "matches": _measure("Matches", "Pairs of names that are called a match"),
        "rejected": _measure("Rejections", "Pairs of names that are called no match"),
        "undecided": _measure(
            "Undecided pairs", "Pairs of names without a majority of verdicts", "lower"
        ),
        "auto_verified": _measure(
            "Equal names", "Pairs of names that are equal but for letter case"
        ),
        "unread": _measure(
            "Unreadable verdicts", "Verdicts whose reply could not be read", "lower"
        ),
        "replicates_agree": _measure(
            "Agreement of replicates",
            "Share of equal verdicts over pairs of replicates, as a mean over pairs of "
            "names",
            "higher",
        ),
    },
)
"""Of `siftlog prepare property-extraction verify-aliases`."""
