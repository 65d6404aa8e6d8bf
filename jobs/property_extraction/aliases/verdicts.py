"""What models said of name pairs, and what most of them said."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Names: TypeAlias = tuple[str, str]
"""A predicted name and a name of the truth."""

HEURISTIC = "heuristic"
"""Stands for the model where names are equal but for case: nobody was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One model's answer about a pair, once."""

    pred_name: str
    gt_name: str
    is_match: bool | None  #: None: it could not be read
    reason: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What all verdicts on a pair come to."""

    is_match: bool | None  #: None: as many say yes as say no, or nobody could be read
    votes: int  #: that say yes
    models: tuple[str, ...]  #: that were asked, sorted
    reason: str  #: of a verdict that says the same


def majority(verdicts: Iterable[Verdict]) -> Mapping[Names, Ruling]:
    """The ruling on every pair; the order of verdicts does not matter.

    Every model and replicate has one vote; what could not be read has none, and what
    was never asked is no verdict.
    """
    by_pair: defaultdict[Names, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.model == HEURISTIC:
            continue
        by_pair[verdict.pred_name, verdict.gt_name].append(verdict)
    return {pair: _ruling(by_pair[pair]) for pair in sorted(by_pair)}


def _ruling(verdicts: list[Verdict]) -> Ruling:
    yes = sum(verdict.is_match is True for verdict in verdicts)
    no = sum(verdict.is_match is False for verdict in verdicts)
    is_match = None if yes == no else yes > no
    said = sorted((v.model, v.reason) for v in verdicts if v.is_match is is_match)
    tie = f"{yes} for, {no} against"
    return Ruling(
        is_match=is_match,
        votes=yes,
        models=tuple(sorted({v.model for v in verdicts if v.model})),
        reason=tie if is_match is None else said[0][1],
    )
