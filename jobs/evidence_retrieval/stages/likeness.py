"""How like each other the sentences of a post are, as a matrix of cosines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from jobs.evidence_retrieval.stages.ordering import DECIMALS
from jobs.lexical import Idf, tokens
from jobs.metrics.columns import Floats


def lexical_likeness(pool: Sequence[str]) -> Floats:
    """Cosines of the sentences' words, each as often as it stands times its idf.

    A sentence without words is like nothing. Rounded to ten decimals, as every score.
    """
    words = [tokens(sentence) for sentence in pool]
    idf = Idf(words)
    place: dict[str, int] = {}
    for own in words:
        for word in own:
            place.setdefault(word, len(place))
    table = np.zeros((len(pool), len(place)))
    for row, own in zip(table, words, strict=True):
        for word, count in Counter(own).items():
            row[place[word]] = count * idf.of(word)
    norms = np.sqrt((table * table).sum(axis=1, keepdims=True))
    units = table / np.where(norms > 0, norms, 1.0)
    likeness: Floats = np.round(units @ units.T, DECIMALS)
    return likeness
