"""What stands in a summary beside its figures: settings, definitions, intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from jobs.evidence_retrieval.verification.choices import Choices
from jobs.evidence_retrieval.verification.figures import (
    Figure,
    NotComputableError,
    Scope,
)
from jobs.evidence_retrieval.verification.held import Held, over

Named: TypeAlias = Callable[[str], Figure | None]
"""The figure that a name such as `ne_gate.auroc` stands for; None: none."""

UNCHECKED: Mapping[str, str] = MappingProxyType(
    {
        "config": "it is a setting of the run, not a result",
        "definitions": "it is a text",
        "n_defined": "it counts what scoring saw",
    }
)
"""Keys of a summary below which nothing is recomputed, and why."""

_DRAWN = "it is drawn by resampling; only whether it holds its value is looked at"


def numbers(path: str, value: object, why: str) -> Iterator[Held]:
    """The numbers at and below a key, which cannot be recomputed."""
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from numbers(f"{path}.{key}", below, why)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield Held(path=path, stored=value, why=why)


def intervals(block: object, named: Named, scope: Scope) -> Iterator[Held]:
    """The values that intervals are about, and their ends."""
    for name, interval in items(block):
        figure = named(name)
        for key, value in items(interval):
            path = f"intervals.{name}.{key}"
            if key == "value" and figure is not None:
                yield over(path, value, figure, scope)
            else:
                yield from numbers(path, value, _DRAWN)


def astray(
    block: object, named: Named, scope: Scope, choices: Choices
) -> Iterator[str]:
    """A sentence for each interval that does not hold the value it is about.

    That is the one stored with it, which is verified by itself and may be of another
    definition; the recomputed one where none is.
    """
    for name, interval in items(block):
        ends = dict(items(interval))
        lo, hi, value = ends.get("lo"), ends.get("hi"), ends.get("value")
        if value is None:
            value = _recomputed(named(name), scope, choices)
        if lo is None or hi is None or value is None:
            continue
        if not lo <= value <= hi:
            yield f"The interval of {name}, {lo} to {hi}, does not hold {value}."


def _recomputed(figure: Figure | None, scope: Scope, choices: Choices) -> float | None:
    try:
        return None if figure is None else scope.value(figure, choices)
    except NotComputableError:
        return None


def items(block: object) -> Iterator[tuple[str, Any]]:
    """The keys of a block; nothing where it is none."""
    return iter(block.items() if isinstance(block, Mapping) else ())
