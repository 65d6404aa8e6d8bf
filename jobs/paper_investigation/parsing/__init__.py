"""What replies say: variant lists, letters, p-values, by two sets of rules."""

from __future__ import annotations

from jobs.paper_investigation.parsing.rules import (
    needs_options,
    p_value_right,
    parse_batch,
    parse_letter,
    parse_list,
    parse_study,
    significance_right,
    stray_answers,
)
from jobs.paper_investigation.parsing.values import Letter, StudyAnswer, VariantList

__all__ = [
    "Letter",
    "StudyAnswer",
    "VariantList",
    "needs_options",
    "p_value_right",
    "parse_batch",
    "parse_letter",
    "parse_list",
    "parse_study",
    "significance_right",
    "stray_answers",
]
