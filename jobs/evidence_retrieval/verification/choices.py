"""Choices between definitions that carry one name: those of a profile, and the others.

Names are those of the job's settings where a choice is a setting. The others are
readings that are met in published tables and that siftlog itself does not offer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any, Literal, TypeAlias

Queries: TypeAlias = Literal["positives", "all"]
Cut: TypeAlias = Literal["selected", "whole list"] | int
EdgeRule: TypeAlias = Literal[
    "right", "left", "right_drop_zero", "left_drop_one", "right_midpoint"
]
Tries: TypeAlias = Mapping[str, tuple[Any, ...]]
"""For a figure: the choices that bear on it, each with the values worth trying."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """One way of reading every figure; the defaults are siftlog's own."""

    queries: Queries | Literal["named"] = "named"
    """What a mean over rankings divides by; `named`: what its block says."""
    k: Cut | Literal["named"] = "named"
    """The cut-off; `named`: what the figure's own name says."""
    ap_denominator: Literal["gold", "min", "found"] = "gold"
    precision_over: Literal["k", "k_eff"] | None = None
    """`k_eff`: K cut at the list's end; None: that where K is chosen by query."""
    skip_empty: bool = False  #: leave queries with K = 0 out of evidence figures
    tpr_rule: Literal["last", "interpolate", "drop_collinear", "nearest"] = "last"
    ece_edges: EdgeRule = "right"
    ece_bins: int = 10
    gate_edge: Literal["lt", "le"] = "lt"  #: NEG below tau_neg, or also at it
    strict: bool = False  #: a probability counts only above a threshold, not at it
    states: Literal["recomputed", "column"] = "recomputed"
    fn_per_1000: Queries = "all"  #: missed cases by a thousand of which queries
    zero_division: float | None = None  #: a rate of 0/0; None: undefined
    of_nothing: float | None = None
    """A mean over no query, or an area of one class; None: undefined."""
    ddof: Literal[0, 1] = 1  #: of standard deviations over folds
    over: Literal["folds", "pooled"] = "folds"  #: a mean of folds, or of all rows
    sums: Literal["exact", "file order"] = "exact"
    """Rounded once, or after each row as a plain loop does."""

    def alternatives(self, tries: Tries) -> Iterator[tuple[Choices, str]]:
        """Other choices with the names of what they change.

        The fewest changes come first, and among as many those that *tries* names first;
        at most three at a time, as more would fit any number to some definition.
        """
        places = {name: place for place, name in enumerate(tries)}
        values = [
            {getattr(self, name): None, **dict.fromkeys(others)}
            for name, others in tries.items()
        ]
        combined = [
            {
                name: value
                for name, value in zip(tries, chosen, strict=True)
                if value != getattr(self, name)
            }
            for chosen in product(*values)
        ]
        combined.sort(key=lambda each: (len(each), [places[name] for name in each]))
        for changes in combined:
            if 1 <= len(changes) <= _MOST_CHANGES:
                named = ", ".join(f"{name}={value}" for name, value in changes.items())
                yield replace(self, **changes), named


_MOST_CHANGES = 3

SIFTLOG = Choices()

PROFILES: Mapping[str, Choices] = {
    "siftlog": SIFTLOG,
    # such tables were made by a loop over the file that adds up plain doubles
    "published-lists": Choices(ap_denominator="min", sums="file order"),
    "published-cv": Choices(
        tpr_rule="nearest",
        ece_edges="left_drop_one",
        gate_edge="le",
        ddof=0,
        zero_division=0.0,
    ),
}


def choices_of(settings: object) -> Choices:
    """The choices of a job's settings: of their profile, and what was set beside it."""
    profile = PROFILES[getattr(settings, "profile", "siftlog")]
    named = {
        field.name: getattr(settings, field.name)
        for field in fields(Choices)
        if hasattr(settings, field.name)
    }
    return replace(profile, **named)
