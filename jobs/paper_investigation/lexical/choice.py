"""Chooses the option whose words, with the sentence's, the paper puts together."""

from __future__ import annotations

import re

from jobs.paper_investigation.lexical.paper import (
    Paper,
    fold,
    names,
    occurs,
    overlap,
    words,
)
from jobs.paper_investigation.lexical.prompt import Choice

LETTERS = "abcd"

SAME_PASSAGE_BONUS = 0.5
"""For an option that stands beside the sentence's rarest word: worth half of the words.

Without it a long option wins by its common words alone.
"""

_NONE = re.compile(r"none of the (?:options|above|other)")


def choose(paper: Paper, question: Choice) -> str:
    """The letter of the best option; ties go to the first."""
    sentence = words(fold(question.sentence))
    options = [fold(option) for option in question.options]
    shares = [
        _share(paper, sentence, option) if _stands(paper, option) else 0.0
        for option in options
    ]
    for number, option in enumerate(options):
        if _NONE.match(option):
            others = options[:number] + options[number + 1 :]
            shares[number] = -1.0 if any(_stands(paper, o) for o in others) else 2.0
    return LETTERS[shares.index(max(shares))]


def _stands(paper: Paper, option: str) -> bool:
    return any(occurs(name, paper.text) for name in names(option))


def _share(paper: Paper, sentence: frozenset[str], option: str) -> float:
    """The best passage's share of the words' weight, with the bonus."""
    own = frozenset().union(*(words(name) for name in names(option)))
    scores = overlap(paper, sentence | own)
    rarest = _rarest(paper, sentence - own)
    if rarest:
        for number in paper.places[rarest]:
            text = paper.passages[number].text
            if all(occurs(name, text) for name in names(option)):
                scores[number] += SAME_PASSAGE_BONUS
    return max(scores.values(), default=0.0)


def _rarest(paper: Paper, sentence: frozenset[str]) -> str | None:
    known = (word for word in sentence if word in paper.weights)
    return max(known, key=lambda word: (paper.weights[word], word), default=None)
