"""How near texts are to each other, by their vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Floats: TypeAlias = "npt.NDArray[np.float64]"


def cosines(first: Floats, second: Floats) -> Floats:
    """The cosine of each row of *first* with each row of *second*.

    Rows must have a length above zero, which parsing has seen to.
    """
    return _units(first) @ _units(second).T


def _units(rows: Floats) -> Floats:
    import numpy as np  # noqa: PLC0415 - the other lexical stages do without it

    # by the largest entry first: squares of very small or large numbers would vanish
    scaled = rows / np.abs(rows).max(axis=1, keepdims=True)
    units: Floats = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return units
