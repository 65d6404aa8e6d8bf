"""The summary of a scoring."""

from __future__ import annotations

from jobs.property_extraction.measuring.results import Column, Results


def run_text(results: Results) -> str:
    """What a terminal shows of a scoring."""
    lines = ["Property extraction"]
    for column in results.columns.values():
        lines += _model(column)
    return "\n".join(lines)


def _model(column: Column) -> list[str]:
    values = {
        word: column.metric(word).value
        for word in ("tp", "fp", "fn", "precision", "recall", "f1")
    }
    rates = "   ".join(
        f"{name} {_shown(values[word])}"
        for name, word in (("P", "precision"), ("R", "recall"), ("F1", "f1"))
    )
    return [
        column.model,
        f"TP {values['tp']}  FP {values['fp']}  FN {values['fn']}   {rates}",
    ]


def _shown(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"
