"""The words by which a model says that a paper states no value."""

from __future__ import annotations

from jobs.property_extraction.values.folding import folded, plain_dashes

_ABSTENTIONS = frozenset(
    {
        "-",
        "n/a",
        "na",
        "nan",
        "none",
        "not found",
        "not reported",
        "not stated",
        "not_found",
        "null",
    }
)


def is_abstention(text: str) -> bool:
    """Whether a predicted value is no prediction; as a truth value it stays a value."""
    return folded(plain_dashes(text)) in _ABSTENTIONS
