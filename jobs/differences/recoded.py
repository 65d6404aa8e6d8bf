"""The items of a metric on the side of code that is gone, told from verdicts.

Where a metric's items are the tasks themselves and an item's value is whether its
verdict is right, the verdicts of the old code say what the items were. Whether it is
so is not known but tested: verdicts and items must agree on the side that was replayed,
and the items that are told must come to the value that was recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from jobs.differences.causes import PARSER, SCORER, Cause
from jobs.differences.difference import ItemShare, Part, VerdictChange
from jobs.differences.items import NEAR, terms
from jobs.metrics import Term, shares_of_change
from jobs.metrics.change import exact_ratio
from runner.scorecard import ItemValues
from store.scoring import StoredVerdict


def divided(
    part: Part, verdicts: Sequence[VerdictChange], known: ItemValues, *, is_after: bool
) -> tuple[Part, ...]:
    """A part of the code as its parser's and its scorer's; whole where that fails.

    Args:
        part: what other code has in a metric's change.
        verdicts: of the metric's model that differ, with the keys of their tasks.
        known: the metric's items by the code of today.
        is_after: whether that is the side after the change.
    """
    at_hand = terms(known)
    told = _told(known, at_hand, verdicts, is_after=is_after)
    wanted = part.before if is_after else part.after
    if told is None or wanted is None or part.change is None:
        return (part,)
    ratio = exact_ratio(told)
    if ratio is None or abs(ratio - Fraction(wanted)) > NEAR:
        return (part,)
    old, new = (told, at_hand) if is_after else (at_hand, told)
    shares = shares_of_change(old, new) or {}
    causes = {each.key: each.cause for each in verdicts}
    clusters = dict(zip(known.items, known.clusters, strict=True))
    found: dict[Cause, list[ItemShare]] = {}
    for item, share in shares.items():
        found.setdefault(causes[item], []).append(
            ItemShare(
                item=item,
                cluster=clusters[item],
                before=_value(old.get(item)),
                after=_value(new.get(item)),
                share=share,
            )
        )
    return tuple(_parts(part, found))


def _told(
    known: ItemValues,
    at_hand: Mapping[str, Term],
    verdicts: Iterable[VerdictChange],
    *,
    is_after: bool,
) -> Mapping[str, Term] | None:
    """What the items were on the other side; None where verdicts do not tell."""
    if known.kind != "mean":
        return None
    items, told, seen = set(known.items), dict(at_hand), set()
    for each in verdicts:
        if each.key not in items:
            continue
        mine, other = each.sides[::-1] if is_after else each.sides
        if each.key in seen or _term(mine) != at_hand.get(each.key):
            return None
        seen.add(each.key)
        term = _term(other)
        if term is None:
            told.pop(each.key, None)
        else:
            told[each.key] = term
    return told


def _term(verdict: StoredVerdict | None) -> Term | None:
    if verdict is None or verdict.correct is None:
        return None
    return float(verdict.correct), 1.0


def _value(term: Term | None) -> float | None:
    return None if term is None else term[0]


def _parts(part: Part, found: Mapping[Cause, list[ItemShare]]) -> Iterable[Part]:
    """One for each cause; what the metric's own rounding leaves is the last one's."""
    causes = [cause for cause in (PARSER, SCORER) if cause in found]
    rest = part.change or Fraction()
    for cause in causes:
        items = sorted(
            found[cause], key=lambda each: (-abs(each.share or 0), each.item)
        )
        total = sum((each.share or Fraction() for each in items), Fraction())
        change = rest if cause == causes[-1] else total
        rest -= change
        yield replace(
            part,
            causes=(cause,),
            change=change,
            items=tuple(items),
            rounding=change - total,
        )
    if not causes:
        yield part
