"""How often intervals from few labels and a biased judge hold the truth.

`python -m tests.bench.estimates_coverage` prints the table of
`design/estimates-from-labels.md`: 20,000 populations a cell, minutes. The bench shows
the lowest and the highest coverage of each design, of all its cells.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from typing import TypeAlias

from tests.bench.row import Row
from tests.bench.verdict import least, most, shown
from tests.jobs.kit.metrics.judged_worlds import (
    DESIGNS,
    METRICS,
    Cell,
    Coverage,
    Design,
    coverage,
)

POPULATIONS = 20_000
BIASES = (-0.2, -0.1, 0.0, 0.1, 0.2)
LABELS = (100, 200, 500)
PREVALENCES = (0.5, 0.1)
TARGET = "estimates from labels"

Group: TypeAlias = tuple[int, float, Design]


def measure(quick: bool) -> list[Row]:
    """Coverage of each design and metric, and the width with a good judge."""
    found: dict[tuple[Design, str], list[Coverage]] = defaultdict(list)
    labels = LABELS[:1] if quick else LABELS
    for (_, _, design), covered in groups(labels, 500 if quick else POPULATIONS):
        for one in covered:
            found[design, one.metric].append(one)
    rows = []
    for (design, metric), cells in found.items():
        what = f"{metric}, {design} draw, coverage of 95 % intervals"
        low, high = _ends(one.powered for one in cells)
        naive, _ = _ends(one.naive for one in cells)
        rows += [
            least(TARGET, f"{what}, lowest of {len(cells)} cells", low, 0.94),
            shown(f"{what}, highest", high, TARGET),
            shown(f"{what}, judge as truth, lowest", naive, TARGET),
        ]
    widest = max(one.widest for cells in found.values() for one in cells)
    rows.append(most(TARGET, "widest, in widths of labels alone", widest, 1.05 + 1e-9))
    for prevalence, bound in ((0.5, 0.7), (0.1, None)):
        cell = Cell(
            prevalence=prevalence, bias=0.0, labels=200, design="random", is_sure=True
        )
        (width,) = (
            one.median_width
            for one in coverage(cell, 1000 if quick else POPULATIONS)
            if one.metric == "prevalence"
        )
        what = f"width with a judge right in 90 %, prevalence {prevalence}"
        rows.append(most(TARGET, what, width, bound))
    return rows


def groups(
    labels: Sequence[int], populations: int
) -> Iterator[tuple[Group, list[Coverage]]]:
    """Coverage over all biases, by number of labels, prevalence and design."""
    kinds = [(n, p, design) for n, p, design in product(labels, PREVALENCES, DESIGNS)]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_over_biases, kind, populations) for kind in kinds]
        for kind, future in zip(kinds, futures, strict=True):
            yield kind, future.result()


def _over_biases(kind: Group, populations: int) -> list[Coverage]:
    labels, prevalence, design = kind
    cells = (
        Cell(prevalence=prevalence, bias=bias, labels=labels, design=design)
        for bias in BIASES
    )
    return [one for cell in cells for one in coverage(cell, populations)]


def _ends(values: Iterable[float]) -> tuple[float, float]:
    listed = list(values)
    return min(listed), max(listed)


def main() -> None:
    """Print the table."""
    labels = [int(word) for word in sys.argv[1:]] or LABELS
    for (n, prevalence, design), covered in groups(labels, POPULATIONS):
        for metric in METRICS:
            cells = [one for one in covered if one.metric == metric]
            shares = (
                "{:.1f} - {:.1f}".format(*(100 * end for end in _ends(values)))
                for values in (
                    [one.powered for one in cells],
                    [one.labels_alone for one in cells],
                    [one.naive for one in cells],
                )
            )
            width = "{:.2f} - {:.2f}".format(*_ends(one.median_width for one in cells))
            widest = f"{max(one.widest for one in cells):.2f}"
            columns = (str(n), str(prevalence), design, metric, *shares, width, widest)
            print("|", " | ".join(columns), "|", flush=True)


if __name__ == "__main__":
    main()
