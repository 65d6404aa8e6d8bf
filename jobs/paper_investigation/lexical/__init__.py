"""Answers from the prompt's own words: what the offline baseline knows."""

from jobs.paper_investigation.lexical.choice import choose
from jobs.paper_investigation.lexical.paper import Paper, index
from jobs.paper_investigation.lexical.prompt import Choice, Prompt, Study, read_prompt
from jobs.paper_investigation.lexical.study import find_study
from jobs.paper_investigation.lexical.variants import find_variants

__all__ = [
    "Choice",
    "Paper",
    "Prompt",
    "Study",
    "choose",
    "find_study",
    "find_variants",
    "index",
    "read_prompt",
]
