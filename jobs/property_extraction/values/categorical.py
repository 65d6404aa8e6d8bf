"""When two words say the same: by the category that a clusters file gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobs.property_extraction.settings import Categorical, Keys
from jobs.property_extraction.values.comparison import Rule
from jobs.property_extraction.values.folding import folded
from jobs.property_extraction.values.texts import Keyed, Paired

_WORD = re.compile(r"\w+")


def categorical_rule(
    clusters: Mapping[str, Mapping[str, str]], *, rule: Categorical, keys: Keys
) -> Rule:
    """How categories are compared, or the texts of values without one.

    Args:
        clusters: The category of a text, by property.
        rule: `equal`: apart from case and blanks. `tokens`: or the words of one stand
            in a row in the other. `substring`: one stands in the other somehow, and
            nothing at all stands in everything.
        keys: Whether texts are looked up `exact`, or `folded` where not found so.
    """
    of = Categories(clusters, keys=keys).of
    match rule:
        case "equal":
            return Keyed(lambda name, text: folded(of(name, text)))
        case "tokens":
            return Paired(lambda name, text: _words(of(name, text)), _share_words)
        case "substring":
            return Paired(lambda name, text: of(name, text).lower(), _contain)


class Categories:
    """The category of a text, by property."""

    def __init__(
        self, clusters: Mapping[str, Mapping[str, str]], *, keys: Keys
    ) -> None:
        self._exact = clusters
        self._folded = {
            name: _folded_keys(cluster) if keys == "folded" else {}
            for name, cluster in clusters.items()
        }

    def of(self, name: str, text: str) -> str:
        """What a value of a property is compared as: its category, else its text."""
        exact = self._exact.get(name, {})
        if text in exact:
            return exact[text]
        return self._folded.get(name, {}).get(folded(text), text)


def _folded_keys(cluster: Mapping[str, str]) -> dict[str, str]:
    """Categories by folded text; none where texts of several categories fold alike."""
    found: dict[str, set[str]] = {}
    for text, category in cluster.items():
        found.setdefault(folded(text), set()).add(category)
    return {text: own.pop() for text, own in found.items() if len(own) == 1}


def _words(text: str) -> tuple[str, str]:
    """The folded text, and its words between blanks, so that none ends within one."""
    plain = folded(text)
    return plain, f" {' '.join(_WORD.findall(plain))} "


def _share_words(a: tuple[str, str], b: tuple[str, str]) -> bool:
    if a[0] == b[0]:
        return True
    shorter, longer = sorted((a[1], b[1]), key=len)
    return bool(shorter.strip()) and shorter in longer


def _contain(a: str, b: str) -> bool:
    return a in b or b in a
