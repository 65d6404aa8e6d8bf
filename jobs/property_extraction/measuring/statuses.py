"""How values and units could be read, as counts and shares of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from jobs.metrics import ratio
from jobs.property_extraction.measuring.fate import Fate, Fates
from jobs.property_extraction.measuring.matched import identity
from jobs.property_extraction.rubric import Kind
from jobs.property_extraction.values.comparing import Comparer
from runner.scorecard import Metric

UNITS = ("same", "converted", "missing", "unknown", "incompatible")
NUMBERS = ("value", "bound", "range", "not_a_number")


def metrics(fates: Fates, comparer: Comparer) -> Iterator[Metric]:
    """Abstentions, repeats, and the statuses of units and numbers."""
    inside = [
        (place, row)
        for place, row in enumerate(fates.predictions)
        if fates.fates[place] is not Fate.OUTSIDE
    ]
    n = len(inside)
    abstained = sum(fates.fates[place] is Fate.ABSTAINED for place, _ in inside)
    yield Metric(
        path="rows", value=n, n=n, definition="rows@1(predicted in scored papers)"
    )
    yield Metric(
        path="abstained",
        value=abstained,
        n=n,
        definition="abstained@1(rows that say that there is no value)",
    )
    yield Metric(
        path="abstention_rate",
        value=ratio(abstained, n),
        n=n,
        definition="abstention_rate@1(abstained / rows)",
    )
    repeats = n - len({identity(row) for _, row in inside})
    yield Metric(
        path="repeats",
        value=repeats,
        n=n,
        definition="repeats@1(rows that equal an earlier one in all fields)",
    )
    yield from _units(fates, comparer)
    yield from _numbers(fates, comparer)


def _numbers(fates: Fates, comparer: Comparer) -> Iterator[Metric]:
    rubric = fates.dataset.rubric
    for prefix, only_si in (("numbers", False), ("numbers.si", True)):
        statuses = Counter(
            comparer.number(row.value).status
            for place, row in enumerate(fates.predictions)
            if fates.fates[place] is not Fate.OUTSIDE
            and (not only_si or rubric.kind(fates.renamed[place].name) is Kind.SI)
        )
        of = "of properties in SI" if only_si else "of all properties"
        for status in NUMBERS:
            yield Metric(
                path=f"{prefix}.{status}",
                value=statuses[status],
                n=statuses.total(),
                definition=f"numbers@1(rows {of} by how their value reads)",
            )


def _units(fates: Fates, comparer: Comparer) -> Iterator[Metric]:
    """Of predictions against their partner, or the first truth row of their name."""
    rubric, truth = fates.dataset.rubric, fates.truth
    first: dict[tuple[str, str], int] = {}
    for place, row in enumerate(truth):
        first.setdefault((row.refno, row.name), place)
    every: Counter[str] = Counter()
    matched: Counter[str] = Counter()
    for place, row in enumerate(fates.predictions):
        if fates.fates[place] not in {Fate.TP, Fate.FP}:
            continue
        name = fates.name(place)
        partner = fates.partners[place]
        other = first.get((row.refno, name)) if partner < 0 else partner
        if rubric.kind(name) is not Kind.SI or other is None:
            continue
        status = comparer.unit_status(row.unit, truth[other].unit)
        every[status] += 1
        if partner >= 0:
            matched[status] += 1
    for prefix, counted, of in (
        ("units", every, "rows against the truth of their name"),
        ("units.tp", matched, "matched rows against their truth"),
    ):
        for status in UNITS:
            yield Metric(
                path=f"{prefix}.{status}",
                value=counted[status],
                n=counted.total(),
                definition=f"units@1({of}, of properties in SI)",
            )
