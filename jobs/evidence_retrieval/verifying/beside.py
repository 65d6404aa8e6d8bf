"""What stands in a summary beside its figures: settings, definitions, intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from jobs.evidence_retrieval.verifying.choices import Choices
from jobs.evidence_retrieval.verifying.figures import (
    Figure,
    NotComputableError,
    Scope,
)
from jobs.evidence_retrieval.verifying.held import Held, over

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
    """A sentence for each interval that does not hold its recomputed value."""
    for name, interval in items(block):
        figure, ends = named(name), dict(items(interval))
        lo, hi = ends.get("lo"), ends.get("hi")
        if figure is None or lo is None or hi is None:
            continue
        try:
            value = scope.value(figure, choices)
        except NotComputableError:
            continue
        if value is not None and not lo <= value <= hi:
            yield f"The interval of {name}, {lo} to {hi}, does not hold {value}."


def items(block: object) -> Iterator[tuple[str, Any]]:
    """The keys of a block; nothing where it is none."""
    return iter(block.items() if isinstance(block, Mapping) else ())
