"""How values and units could be read, as counts and shares of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from jobs.metrics import ratio
from jobs.property_extraction.measuring.fate import Fate, Fates
from jobs.property_extraction.measuring.matched import identity
from jobs.property_extraction.row import TruthRow
from jobs.property_extraction.rubric import Kind
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import Compared
from jobs.property_extraction.values.number import NumberStatus
from runner.scorecard import Metric

UNITS = ("same", "converted", "missing", "unknown", "incompatible")
NUMBERS: tuple[NumberStatus, ...] = ("value", "bound", "range", "not_a_number")


def metrics(
    fates: Fates, comparer: Comparer, told: Mapping[int, Compared]
) -> Iterator[Metric]:
    """Abstentions, repeats, and the statuses of units and numbers.

    Args:
        fates: of one replicate.
        comparer: that reads their numbers.
        told: what `compared` says of them.
    """
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
    yield from _units(fates, told)
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


def _units(fates: Fates, told: Mapping[int, Compared]) -> Iterator[Metric]:
    """Of predictions against their partner, or the first truth row of their name."""
    every: Counter[str] = Counter()
    matched: Counter[str] = Counter()
    for place, own in told.items():
        every[own.unit_status] += 1
        if fates.partners[place] >= 0:
            matched[own.unit_status] += 1
    for prefix, counted, of in (
        ("units", every, "rows against the truth of their name"),
        ("units.tp", matched, "matched rows against their truth"),
    ):
        known = {status: counted[status] for status in UNITS}
        for status, n in known.items():
            yield Metric(
                path=f"{prefix}.{status}",
                value=n,
                n=sum(known.values()),
                definition=f"units@1({of}, of properties in SI)",
            )


def compared(fates: Fates, comparer: Comparer) -> Iterator[tuple[int, Compared]]:
    """Each row that counts, by its place, with how it compares.

    With its partner, or with the first truth row of its name in its paper; a row of a
    name that the truth lacks is passed over.
    """
    rubric = fates.dataset.rubric
    first: dict[tuple[str, str], TruthRow] = {}
    for truth in fates.truth:
        first.setdefault((truth.refno, truth.name), truth)
    for place, fate in enumerate(fates.fates):
        if fate not in {Fate.TP, Fate.FP}:
            continue
        row, name, partner = (
            fates.predictions[place],
            fates.names[place],
            fates.partners[place],
        )
        other = first.get((row.refno, name)) if partner < 0 else fates.truth[partner]
        if other is not None:
            yield place, comparer.compare(rubric.kind(name), name, row, other)
