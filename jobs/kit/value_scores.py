"""Compares a value with its gold value: single values, lists, objects.

A `ValueRule` says when two values are equal. Lists and objects are compared by their
elements and parts. Every comparison gives a `ValueScore`: of a single value it is right
or wrong, of a list it has precision, recall and F1.

>>> compare_values("Double-blind", "double blind")
ValueScore(hits=1, predicted=1, expected=1)
>>> compare_values(97, 100, ValueRule(method="tolerance", relative=0.05)).is_right
True
>>> compare_values(("nausea", "rash"), ("Rash", "headache", "nausea")).f1
0.8
>>> compare_values(None, 12)
ValueScore(hits=0, predicted=0, expected=1)

None means "not reported", on both sides. An empty list is the same as None.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias, TypeGuard

ValueKind: TypeAlias = Literal["text", "number", "date", "exact"]
"""Comparison of single values without a rule; `exact`: booleans and options."""

Equal: TypeAlias = Callable[[Any, Any], bool]

DIGITS = 1e-9
"""Relative difference of equal numbers, from the conversion of units."""

FUZZY_THRESHOLD = 90.0
"""Least similarity of texts that a fuzzy rule takes as equal, in percent.

Texts with the same words in another order have 100. One wrong letter in ten gives 90,
so a shorter name with a typing error is another name.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueRule:
    """Decides whether a value equals its gold value."""

    method: Literal["exact", "tolerance", "fuzzy"] = "exact"
    absolute: float = 0.0  #: tolerance in the unit of the values
    relative: float = 0.0  #: tolerance as a share of the gold value
    threshold: float = FUZZY_THRESHOLD
    key: str | None = None
    """Part by which the objects of two lists are matched; None: by all parts that the
    gold object has."""


EXACT = ValueRule()


@dataclass(frozen=True, slots=True)
class ValueScore:
    """The agreement of a value with its gold value, in elements."""

    hits: int  #: elements of the value that are right
    predicted: int  #: elements of the value
    expected: int  #: elements of the gold value

    @property
    def is_right(self) -> bool:
        """Return whether both have the same elements; both may have none."""
        return self.hits == self.predicted == self.expected

    @property
    def f1(self) -> float:
        """Return the harmonic mean of precision and recall; 1 if both are empty."""
        both = self.predicted + self.expected
        return 2 * self.hits / both if both else 1.0


def compare_values(
    value: Any,  # noqa: ANN401 - a value of any type
    gold: Any,  # noqa: ANN401 - likewise
    rule: ValueRule = EXACT,
    *,
    kind: ValueKind | Mapping[str, ValueKind] | None = None,
) -> ValueScore:
    """Compare a value with its gold value.

    Args:
        value: a single value, an object as a mapping, or a tuple of either.
        gold: likewise.
        rule: when single values are equal.
        kind: of single values, or by part of objects; None: by their Python type.
    """
    if isinstance(value, tuple) or isinstance(gold, tuple):
        return _compare_lists(value or (), gold or (), rule, kind)
    if isinstance(gold, Mapping):
        return _compare_parts(value or {}, gold, rule, kind)
    hits = value is not None and gold is not None and equals(rule, kind)(value, gold)
    return ValueScore(int(hits), int(value is not None), int(gold is not None))


def equals(
    rule: ValueRule, kind: ValueKind | Mapping[str, ValueKind] | None = None
) -> Equal:
    """Return the function that decides whether a value equals a gold value."""
    if rule.method == "fuzzy":
        return lambda value, gold: similarity(value, gold) >= rule.threshold
    if rule.method == "tolerance":
        return partial(_is_within, rule)
    return partial(_is_equal, kind if isinstance(kind, str) else None)


def _is_equal(kind: ValueKind | None, value: object, gold: object) -> bool:
    match kind or ("number" if _is_number(gold) else "text"):
        case "number":
            return _is_within(EXACT, value, gold)
        case "date":
            # an answer may be more precise than the gold value
            return str(value) == str(gold) or str(value).startswith(f"{gold}-")
        case "text":
            return folded_text(value) == folded_text(gold)
        case "exact":
            return value == gold


def _is_within(rule: ValueRule, value: object, gold: object) -> bool:
    if not _is_number(value) or not _is_number(gold):
        return folded_text(value) == folded_text(gold)
    tolerance = max(rule.absolute, rule.relative * abs(gold))
    return math.isclose(value, gold, rel_tol=DIGITS, abs_tol=tolerance)


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def folded_text(value: object) -> str:
    """Return the words of a text in lower case, without punctuation between them.

    >>> folded_text("Placebo-controlled,  final: -1.5 in COVID-19")
    'placebo controlled final -1.5 in covid 19'
    """
    text = unicodedata.normalize("NFKC", str(value)).casefold()
    # signs within numbers stay: -1.5 is not 1 5, and a text of signs alone is itself
    words = re.findall(r"(?<!\w)[+-]?\d+(?:[.,]\d+)*%?|\w+", text)
    return " ".join(words) or text.strip()


def similarity(value: object, gold: object) -> float:
    """Return how alike two texts are, from 0 to 100; the order of words is ignored."""
    # loaded here: a run's first call must not wait for it
    from rapidfuzz.fuzz import token_sort_ratio  # noqa: PLC0415 - see above

    return token_sort_ratio(folded_text(value), folded_text(gold))


def _compare_parts(
    value: Mapping[str, Any],
    gold: Mapping[str, Any],
    rule: ValueRule,
    kind: ValueKind | Mapping[str, ValueKind] | None,
) -> ValueScore:
    """Count the parts whose gold value is known; other parts are not judged."""
    hits = predicted = expected = 0
    for name, part in gold.items():
        score = compare_values(value.get(name), part, rule, kind=_part_kind(kind, name))
        hits += score.hits
        predicted += score.predicted
        expected += score.expected
    return ValueScore(hits, predicted, expected)


def _part_kind(
    kind: ValueKind | Mapping[str, ValueKind] | None, name: str
) -> ValueKind | None:
    return kind.get(name) if isinstance(kind, Mapping) else kind


def _compare_lists(
    values: Sequence[Any],
    golds: Sequence[Any],
    rule: ValueRule,
    kind: ValueKind | Mapping[str, ValueKind] | None,
) -> ValueScore:
    def is_match(value: object, gold: object) -> bool:
        if not isinstance(gold, Mapping) or not isinstance(value, Mapping):
            return equals(rule, kind)(value, gold)
        if rule.key is not None:
            gold = {rule.key: gold.get(rule.key)}
        return _compare_parts(value, gold, rule, kind).is_right

    candidates = [
        [at for at, gold in enumerate(golds) if is_match(value, gold)]
        for value in values
    ]
    return ValueScore(matching_size(candidates), len(values), len(golds))


def matching_size(candidates: Sequence[Sequence[int]]) -> int:
    """Return the size of a largest matching, by augmenting paths.

    >>> matching_size([[0, 1], [0], []])
    2

    Args:
        candidates: the numbers that each element can be matched with.
    """
    matched: dict[int, int] = {}

    def augment(element: int, seen: set[int]) -> bool:
        for at in candidates[element]:
            if at in seen:
                continue
            seen.add(at)
            if at not in matched or augment(matched[at], seen):
                matched[at] = element
                return True
        return False

    return sum(augment(element, set()) for element in range(len(candidates)))
