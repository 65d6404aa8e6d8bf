"""The search plan that needs no model: content words of the question and its parts.

It is what the offline baseline answers, and what is searched where a model's plan
cannot be used, so that a review is never lost silently.
"""

from __future__ import annotations

from jobs.lexical import content_words
from jobs.review_benchmark.review import Pico, Review
from jobs.review_benchmark.search.query import TERMS, Query


def planned(review: Review) -> tuple[Query, ...]:
    """The queries for a review."""
    return plan_of(review.question, review.pico or Pico())


def plan_of(question: str, pico: Pico) -> tuple[Query, ...]:
    """Population and intervention, the intervention alone, and any word at all.

    The words are those of the parts; of the question where it is not in parts.
    """
    people, treated = content_words(pico.population), content_words(pico.intervention)
    told = [*treated, *people, *content_words(f"{pico.outcome} {pico.comparison}")]
    everything = list(dict.fromkeys(told)) or content_words(question)
    queries = {
        "population and intervention": (people, treated),
        "intervention": (treated,),
        "any word": (everything,),
    }
    return tuple(
        Query(label=label, all_of=tuple(tuple(group[:TERMS]) for group in groups))
        for label, groups in queries.items()
        if all(groups)
    )
