"""The search plan that needs no model: content words of the question and its parts.

It is what the offline baseline answers, and what is searched where a model's plan
cannot be used, so that a review is never lost silently.
"""

from __future__ import annotations

from collections.abc import Iterable

from jobs.review_benchmark.review import Review
from jobs.review_benchmark.search.query import TERMS, Query
from jobs.words import content_words


def planned(review: Review) -> tuple[Query, ...]:
    """The queries for a review."""
    pico = review.pico
    return plan_of(
        review.question,
        "" if pico is None else pico.population,
        "" if pico is None else pico.intervention,
    )


def plan_of(question: str, population: str, intervention: str) -> tuple[Query, ...]:
    """Population and intervention, the intervention alone, and any word at all.

    What a review does not say in parts is taken from its question.
    """
    people = tuple(content_words(population)[:TERMS])
    treated = tuple(content_words(intervention)[:TERMS])
    asked = content_words(question)
    if not treated:
        treated, people = tuple(asked[:TERMS]), ()
    everything = tuple(dict.fromkeys((*treated, *people, *asked)))
    queries: Iterable[Query] = (
        Query(label="population and intervention", all_of=(people, treated)),
        Query(label="intervention", all_of=(treated,)),
        Query(label="any word", all_of=(everything[:TERMS],)),
    )
    return tuple(query for query in queries if all(query.all_of))
