"""How often intervals from few labels and a biased judge hold the truth.

`python -m tests.bench.estimates_coverage` prints the tables of
`design/estimates-from-labels.md`: 20,000 populations a cell, minutes. The bench shows
the lowest and the highest coverage of all cells.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

from tests.bench.row import Row
from tests.bench.verdict import least, most, shown
from tests.jobs.kit.metrics.judged_worlds import (
    FRESH,
    TUNED,
    Cell,
    Coverage,
    Worlds,
    coverage,
)

POPULATIONS = 20_000
TARGET = "estimates from labels"
WORLDS = {"tuned cells": TUNED, "fresh cells": FRESH}


def measure(quick: bool) -> list[Row]:
    """Coverage of 95 % intervals, and the width with a good judge."""
    populations = 500 if quick else POPULATIONS
    rows = []
    for name, worlds in WORLDS.items():
        chosen = replace(worlds, labels=worlds.labels[:1]) if quick else worlds
        rows += _rows(name, list(covered(chosen, populations)))
    for prevalence, bound in ((0.5, 0.7), (0.1, None)):
        cell = Cell(
            prevalence=prevalence, bias=0.0, labels=200, design="random", is_sure=True
        )
        (width,) = (
            one.median_width
            for one in coverage(cell, populations)
            if one.metric == "prevalence"
        )
        what = f"width with a judge right in 90 %, prevalence {prevalence}"
        rows.append(most(TARGET, what, width, bound))
    return rows


def _rows(name: str, cells: Sequence[Coverage]) -> Iterator[Row]:
    nominal = [one.powered for one in cells if one.is_nominal]
    low, high = _ends(one.powered for one in cells)
    what = f"coverage of 95 % intervals, {name}"
    yield least(TARGET, f"{what}: lowest of {len(cells)}", low, 0.94)
    yield shown(f"{what}: highest", high, TARGET)
    if nominal:
        low, high = _ends(nominal)
        what = f"{what} without the mark 'conservative'"
        yield least(TARGET, f"{what}: lowest of {len(nominal)}", low, 0.94)
        yield most(TARGET, f"{what}: highest", high, 0.96)
    fails = sum(one.naive < 0.94 for one in cells) / len(cells)
    yield shown(f"share of {name} below 94 %, judge as truth", fails, TARGET)
    widest = max(one.widest for one in cells)
    what = f"widest, in widths of labels alone, {name}"
    yield most(TARGET, what, widest, 1.05 + 1e-9)


def covered(worlds: Worlds, populations: int) -> Iterator[Coverage]:
    """What all cells of some worlds cover, with all metrics of each."""
    measured = partial(coverage, populations=populations, seed=worlds.seed)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for of_cell in pool.map(measured, worlds.cells(), chunksize=5):
            yield from of_cell


def tables(cells: Sequence[Coverage]) -> Iterator[str]:
    """The cells by draw and by metric, as Markdown."""
    by: dict[str, Callable[[Coverage], str]] = {
        "draw": lambda one: one.cell.design,
        "metric": lambda one: one.metric,
    }
    for name, value in by.items():
        grouped: defaultdict[tuple[str, ...], list[Coverage]] = defaultdict(list)
        for one in cells:
            cell = one.cell
            key = (str(cell.labels), str(cell.prevalence), value(one))
            grouped[key].append(one)
        yield f"\n| labels | prevalence | {name} | {' | '.join(COLUMNS)} |"
        yield "|---" * (3 + len(COLUMNS)) + "|"
        for key, of_key in grouped.items():
            yield f"| {' | '.join([*key, *_columns(of_key)])} |"


COLUMNS = (
    *("nominal", "others", "cells nominal", "labels alone", "as truth"),
    *("width", "widest"),
)


def _columns(cells: Sequence[Coverage]) -> Iterator[str]:
    nominal = [one for one in cells if one.is_nominal]
    others = [one for one in cells if not one.is_nominal]
    yield _range((100 * one.powered for one in nominal), 1)
    yield _range((100 * one.powered for one in others), 1)
    yield f"{len(nominal)} of {len(cells)}"
    yield _range((100 * one.labels_alone for one in cells), 1)
    yield _range((100 * one.naive for one in cells), 1)
    yield _range((one.median_width for one in cells), 2)
    yield f"{max(one.widest for one in cells):.2f}"


def _range(values: Iterable[float], decimals: int) -> str:
    listed = list(values)
    if not listed:
        return "-"
    return " - ".join(f"{end:.{decimals}f}" for end in _ends(listed))


def _ends(values: Iterable[float]) -> tuple[float, float]:
    listed = list(values)
    return min(listed), max(listed)


def main() -> None:
    """Print the tables."""
    for name, worlds in WORLDS.items():
        print(f"\n{name}", *tables(list(covered(worlds, POPULATIONS))), sep="\n")


if __name__ == "__main__":
    main()
