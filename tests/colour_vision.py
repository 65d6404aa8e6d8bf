"""How colours look to people with each kind of colour vision, and how far apart."""

from __future__ import annotations

Vector = tuple[float, ...]

#: Machado, Oliveira, Fernandes 2009, table of severity 1.0; on linear RGB.
VISIONS: dict[str, tuple[tuple[float, ...], ...]] = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
#: sRGB to XYZ, D65 (IEC 61966-2-1).
XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
WHITE = (0.95047, 1.0, 1.08883)


def _linear(colour: str) -> Vector:
    values = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    return tuple(
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in values
    )


def _times(matrix: tuple[Vector, ...], vector: Vector) -> Vector:
    return tuple(sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)


def _luminance(colour: str) -> float:
    return _times(XYZ, _linear(colour))[1]


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2, from 1 to 21."""
    dim, bright = sorted((_luminance(one), _luminance(other)))
    return (bright + 0.05) / (dim + 0.05)


def _root(value: float) -> float:
    """The curve of CIE 1976 L*a*b*."""
    linear: float = value * 841 / 108 + 4 / 29
    return float(value ** (1 / 3)) if value > 216 / 24389 else linear


def lab(colour: str, vision: str) -> Vector:
    """CIE 1976 L*a*b* of a colour such as `#02326A`, as a kind of vision sees it."""
    seen = _times(VISIONS[vision], _linear(colour))
    clamped = tuple(min(1.0, max(0.0, value)) for value in seen)
    x, y, z = (
        _root(value / white)
        for value, white in zip(_times(XYZ, clamped), WHITE, strict=True)
    )
    return (116 * y - 16, 500 * (x - y), 200 * (y - z))


def distance(one: Vector, other: Vector) -> float:
    """CIE76, of two colours in L*a*b*."""
    return float(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5)
