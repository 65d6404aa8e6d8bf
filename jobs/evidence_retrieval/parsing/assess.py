"""What a reply says of one criterion in a post, or of all of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection

from jobs.evidence_retrieval.parsing.lists import entries
from jobs.evidence_retrieval.parsing.numbers import (
    read_place,
    read_probability,
    read_relevance,
)
from jobs.evidence_retrieval.parsing.objects import first_object, unread
from jobs.evidence_retrieval.parsing.values import Assessment, PostAssessment
from jobs.replies import Object
from runner.job import guarded
from runner.messages import ParseFailure, Reply

MOST = 100
"""The highest relevance."""

LIKELY = 0.5
"""From this probability on, a reply should list evidence, and below it none."""

_LINE = r"^[ \t*_#>-]*(?:{})[ \t*_]*:(.*)$"
_FLAGS = re.IGNORECASE | re.MULTILINE
_PROBABILITY_LINE = re.compile(_LINE.format("probability"), _FLAGS)
_SENTENCES_LINE = re.compile(_LINE.format("sentences|evidence"), _FLAGS)


@guarded
def parse_assess(reply: Reply, n: int) -> Assessment | ParseFailure:
    """What a reply says of one criterion in a post of *n* sentences.

    Failures: `truncated`, `no_json`, `no_probability`, `probability_out_of_range`.
    """
    found = first_object(reply.text, lambda value: "evidence_probability" in value)
    if found is not None:
        return _assessment(found, n)
    if reply.is_truncated:
        return unread(reply, "no_json")
    if first_object(reply.text, lambda value: "sentences" in value) is not None:
        return ParseFailure(reason="no_probability")
    stated = _stated(reply.text)
    return unread(reply, "no_json") if stated is None else _assessment(stated, n)


@guarded
def parse_assessments(
    reply: Reply, n: int, criteria: Collection[str]
) -> PostAssessment | ParseFailure:
    """What a reply says of each of *criteria*; those it leaves out are missing.

    Failures: `truncated`, `no_json`, `no_criteria`.
    """
    found = first_object(reply.text, lambda value: "criteria" in value)
    if found is None:
        return unread(reply, "no_json")
    listed = found["criteria"]
    if not isinstance(listed, list):
        return ParseFailure(reason="no_criteria")
    noted: Counter[str] = Counter()
    read: dict[str, Assessment | ParseFailure] = {}
    for entry in listed:
        name = entry.get("id") if isinstance(entry, dict) else None
        criterion = name.strip() if isinstance(name, str) else ""
        if criterion not in criteria:
            noted["unknown_criterion"] += 1
        elif criterion in read:
            noted["repeated_criterion"] += 1
        else:
            read[criterion] = _assessment(entry, n)
    return PostAssessment(criteria=read, noted=dict(noted))


def _stated(text: str) -> Object | None:
    """A line with the probability and one with the sentences, as an object."""
    probability = _PROBABILITY_LINE.search(text)
    sentences = _SENTENCES_LINE.search(text)
    if probability is None or sentences is None or entries(sentences[1]) is None:
        return None
    return {
        "evidence_probability": probability[1].strip(" \t\r*_."),
        "sentences": sentences[1],
    }


def _assessment(value: Object, n: int) -> Assessment | ParseFailure:
    probability = read_probability(value.get("evidence_probability"))
    if isinstance(probability, ParseFailure):
        return probability
    noted: Counter[str] = Counter()
    if probability.is_guessed:
        noted["scale_guessed"] += 1
    relevance = _relevance(value.get("sentences"), n, noted)
    if (probability.value >= LIKELY) != any(relevance.values()):
        noted["inconsistent"] += 1
    return Assessment(
        probability=probability.value, relevance=relevance, noted=dict(noted)
    )


def _relevance(value: object, n: int, noted: Counter[str]) -> dict[int, int]:
    """Relevance by place; a sentence without one stands one below its predecessor."""
    listed = entries(value)
    if listed is None:
        noted["no_list"] += 1
        return {}
    found: dict[int, int] = {}
    below = MOST
    for number, stated in listed:
        rated = read_relevance(stated)
        if rated is None and stated is not None:
            noted["relevance_unread"] += 1
        relevance, is_clipped = rated or (below, False)
        below = max(relevance - 1, 1)
        if is_clipped:
            noted["relevance_clipped"] += 1
        place = read_place(number, n)
        if place is None:
            noted["unknown_sentence"] += 1
        else:
            found[place] = max(relevance, found.get(place, 0))
    return found
