"""Old events brought up to date: pure steps from one version of a kind to the next.

A stored row is never rewritten. When a field is renamed, split or given a new sense,
the event class gets the next `VERSION` and a step is entered here that turns the old
fields into the new ones; `tests/replay` keeps a row of every version ever written.
An added field with a default needs neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Step: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Fields of version n -> fields of version n + 1; changes nothing in place."""

UPCASTERS: Mapping[tuple[str, int], Step] = {}
"""By kind and the version that a step starts from."""


def upcast(
    kind: str,
    version: int,
    to: int,
    fields: dict[str, Any],
    steps: Mapping[tuple[str, int], Step],
) -> dict[str, Any]:
    """The fields of an old event as version *to* has them.

    Raises:
        KeyError: a step is missing; every version ever released must have one.
    """
    for step in range(version, to):
        fields = steps[kind, step](fields)
    return fields
