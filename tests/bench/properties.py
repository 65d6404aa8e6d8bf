"""Invented property values by the ten thousand: what curators wrote, what models said.

The shape is that of real files, a hundred times over: a hundred curated names of which
most are numbers with units, three predicted rows for each curated one, and a model that
names half of them in its own way, by habit, so that a curated name has a few variants
rather than one in every paper.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path

TRUTH = ("refno", "label", "property_value", "property_unit", "material", "condition")
PREDICTIONS = (
    *("refno", "property_name", "value_string", "units", "material", "condition"),
    *("quote", "model"),
)
RUBRIC = ("label", "rubric", "SI")

PER_PAPER = 20
"""Curated rows of a paper."""
STATED = 3
"""Predicted rows for each curated one."""
RIGHT = 0.4
"""Share of predicted values that are the curated ones."""
OWN_NAME = 0.5
"""Share of predicted names that are none of the rubric's."""

QUANTITIES = (
    *("transition temperature", "onset temperature", "critical field", "lower field"),
    *("initial slope", "coherence length", "penetration depth", "energy gap"),
    *("lattice parameter", "cell volume", "bulk density", "film thickness"),
    *("resistivity", "carrier density", "mobility", "Debye temperature"),
    *("electronic coefficient", "magnetic moment", "order temperature", "bulk modulus"),
)
STATES = ("as grown", "annealed", "at 300 K", "along c", "in the plane")
HABITS = (
    *("{q} ({s})", "{q}, {s} sample", "{s} {q}", "measured {q} {s}", "{q}_{s}"),
    *("{q} of the sample {s}", "mean {q} {s}", "{q} {s} (this work)"),
)
UNITS: Sequence[tuple[tuple[str, float], ...]] = (
    (("K", 1.0), ("mK", 1e3)),
    (("T", 1.0), ("kOe", 10.0), ("Oe", 1e4)),
    (("nm", 1.0), ("Å", 10.0)),
    (("meV", 1.0), ("eV", 1e-3)),
    (("uohm.cm", 1.0), ("μΩ cm", 1.0), ("ohm.m", 1e-8)),
)
"""The first is the curators'; then how many of the others one of it is."""
WORDS = ("single crystal", "polycrystal", "thin film", "wire", "powder", "tape")
GROUPS = ("P6₃/mmc", "Fm-3m", "I4/mmm", "Pnma", "R-3m", "P4/nmm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A curated name, and how its values are compared."""

    name: str
    rubric: str
    units: tuple[tuple[str, float], ...] = ()
    habits: tuple[str, ...] = ()  #: what models call it


@dataclass(frozen=True, slots=True)
class Curated:
    """A row of the truth, by its columns."""

    refno: str
    name: str
    value: str
    unit: str
    material: str
    condition: str


@dataclass(frozen=True, slots=True)
class Stated:
    """A row of the predictions, by its columns."""

    refno: str
    name: str
    value: str
    unit: str
    material: str
    condition: str
    quote: str
    model: str


@cache
def named() -> tuple[Named, ...]:
    """A hundred names: 79 of numbers, 14 of words, and a few of each other rule."""
    pairs = [(quantity, state) for quantity in QUANTITIES for state in STATES]
    rules = [*["0.1% SI"] * 79, *["categorical"] * 14, *["space group"] * 3]
    rules += [*["exact"] * 2, *["pymatgen"] * 2]
    units = (*UNITS, ())  # every sixth number has none
    return tuple(
        Named(
            name=f"{quantity}, {state}",
            rubric=rule,
            units=units[at % len(units)] if rule == "0.1% SI" else (),
            habits=tuple(habit.format(q=quantity, s=state) for habit in HABITS),
        )
        for at, ((quantity, state), rule) in enumerate(zip(pairs, rules, strict=True))
    )


class Papers:
    """Papers by number, all drawn from one seed: the same rows at every call."""

    def __init__(self, papers: int, seed: int = 20260118) -> None:
        self._papers = papers
        self._seed = seed

    def rows(self) -> Iterator[tuple[Curated, tuple[Stated, ...]]]:
        """Each curated row with what the model stated beside it."""
        chance = random.Random(self._seed)
        known = named()
        for paper in range(self._papers):
            refno, material = f"P{paper:06d}", _material(chance)
            for _ in range(PER_PAPER):
                about = chance.choice(known)
                value = _value(chance, about, material)
                unit = about.units[0][0] if about.units else ""
                condition = f"sample {chance.choice('ABC')}"
                yield (
                    Curated(refno, about.name, value, unit, material, condition),
                    tuple(
                        _stated(chance, refno, about, value, material)
                        for _ in range(STATED)
                    ),
                )

    def write(self, folder: Path) -> Mapping[str, Path]:
        """The files of a run in *folder*, by the setting that names each."""
        truth, predictions = folder / "truth.csv", folder / "predictions.csv"
        _table(truth, TRUTH, (astuple(curated) for curated, _ in self.rows()))
        _table(
            predictions,
            PREDICTIONS,
            (astuple(row) for _, stated in self.rows() for row in stated),
        )
        return {"truth": truth, "preds": predictions, **write_scoring(folder)}


def write_scoring(folder: Path) -> Mapping[str, Path]:
    """Rubric and clusters of the hundred names, by the setting that names each."""
    rubric, clusters = folder / "rubric.csv", folder / "clusters.json"
    _table(
        rubric,
        RUBRIC,
        ((n.name, n.rubric, n.units[0][0] if n.units else "") for n in named()),
    )
    clusters.write_text(
        json.dumps(
            {
                each.name: {word: word.split()[-1] for word in WORDS}
                for each in named()
                if each.rubric == "categorical"
            }
        ),
        "utf-8",
    )
    return {"rubric": rubric, "clusters": clusters}


def write_crowd(folder: Path, n: int, seed: int = 20260118) -> Mapping[str, Path]:
    """One paper with *n* curated and *n* predicted values of one name.

    Three of four predicted values lie within the tolerance of the curated one, and many
    of those beside others that do: the largest group that a matching may meet.
    """
    chance = random.Random(seed)
    about = named()[0]
    values = [f"{chance.uniform(1, 1000):.4g}" for _ in range(n)]
    truth, predictions = folder / "truth.csv", folder / "predictions.csv"
    unit = about.units[0][0]
    _table(
        truth,
        TRUTH,
        (astuple(Curated("P0", about.name, value, unit, "", "")) for value in values),
    )
    _table(
        predictions,
        PREDICTIONS,
        (
            astuple(
                Stated("P0", about.name, _near(chance, value), unit, "", "", "", "m")
            )
            for value in chance.sample(values, n)
        ),
    )
    return {"truth": truth, "preds": predictions, **write_scoring(folder)}


def renamed() -> Mapping[str, str]:
    """What each name that is not the curators' stands for."""
    return {habit: about.name for about in named() for habit in about.habits}


def names(n: int, seed: int = 20260118) -> tuple[str, ...]:
    """*n* names, no two alike, of the words that names are made of."""
    chance = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < n:
        about = chance.choice(named())
        found[f"{chance.choice(about.habits)} no. {chance.randrange(n)}"] = None
    return tuple(found)


def _stated(
    chance: random.Random, refno: str, about: Named, value: str, material: str
) -> Stated:
    is_own = chance.random() < OWN_NAME
    name = chance.choice(about.habits) if is_own else about.name
    if chance.random() >= RIGHT:
        value = _value(chance, about, material)
    value, unit = _in_unit(chance, about, value)
    quote = f"The {name} of {material} is {value} {unit}.".replace(" .", ".")
    return Stated(refno, name, value, unit, material, "", quote, "invented/model")


def _in_unit(chance: random.Random, about: Named, value: str) -> tuple[str, str]:
    """The value in one of the name's units; now and then without one, or in none."""
    if not about.units:
        return value, ""
    unit, factor = chance.choice(about.units)
    if factor != 1.0:
        return f"{float(value) * factor:.4g}", unit
    return value, chance.choices((unit, "", "arb. units"), (8, 1, 1))[0]


def _value(chance: random.Random, about: Named, material: str) -> str:
    match about.rubric:
        case "0.1% SI":
            return f"{chance.uniform(1, 1000):.3g}"
        case "space group":
            return chance.choice(GROUPS)
        case "pymatgen":
            return material
        case _:
            return chance.choice(WORDS)


def _near(chance: random.Random, value: str) -> str:
    return f"{float(value) * chance.choice((1, 1.0004, 0.9996, 1.01)):.6g}"


def _material(chance: random.Random) -> str:
    metals = chance.sample(("Lu", "Y", "Hf", "Ta", "Re", "Os", "Ir", "Pd"), 2)
    return "".join(f"{metal}{chance.randint(5, 13)}" for metal in metals)


def _table(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(columns)
        writer.writerows(rows)
