"""How many models a figure has room for, and how their panels stand."""

from __future__ import annotations

from collections.abc import Mapping

MOST_MODELS = 4
"""In one figure; more lines or panels cannot be told apart. The tables hold all."""

SIDE_BY_SIDE: Mapping[int, int] = {1: 1, 2: 2, 3: 3, 4: 2}
"""Panels beside one another, by how many models have one each."""


def left_out(shown: int, every: int) -> str:
    """The end of a caption; empty where all models are shown."""
    if shown == every:
        return ""
    return f" The first {shown} of {every} models; the tables hold all."
