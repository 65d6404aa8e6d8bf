"""When two words say the same: by the category that a clusters file gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jobs.property_extraction.settings import Categorical, Keys
from jobs.property_extraction.values.folding import folded

_WORD = re.compile(r"\w+")


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


def are_alike(a: str, b: str, rule: Categorical) -> bool:
    """Whether two categories or texts are the same.

    Args:
        a: One of them.
        b: The other.
        rule: `equal`: apart from case and blanks. `tokens`: or the words of one stand
            in a row in the other. `substring`: one stands in the other somehow, and
            nothing stands in everything.
    """
    if rule == "substring":
        return a.lower() in b.lower() or b.lower() in a.lower()
    first, second = folded(a), folded(b)
    if first == second:
        return True
    if rule == "equal":
        return False
    shorter, longer = sorted((_words(first), _words(second)), key=len)
    return bool(shorter.strip()) and shorter in longer


def _words(text: str) -> str:
    """The words of a text between blanks, so that no word stands within another."""
    return f" {' '.join(_WORD.findall(text))} "


def _folded_keys(cluster: Mapping[str, str]) -> dict[str, str]:
    """Categories by folded text; texts that fold together with different ones: none."""
    found: dict[str, set[str]] = {}
    for text, category in cluster.items():
        found.setdefault(folded(text), set()).add(category)
    return {text: min(own) for text, own in found.items() if len(own) == 1}
