"""Parts of a run that a person can name: a stage, a model, both, or all of it."""

from __future__ import annotations

from typing import TypeAlias

Scope: TypeAlias = tuple[str | None, str | None]
"""A stage and a model; None stands for every."""


def is_within(inner: Scope, outer: Scope) -> bool:
    """Whether all that *inner* names is named by *outer* too."""
    return all(o in {None, i} for i, o in zip(inner, outer, strict=True))
