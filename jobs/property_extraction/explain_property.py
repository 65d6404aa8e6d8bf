"""Explains one property of a paper: the rows of both sides and their pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from jobs.property_extraction.aliases.candidates import near_names
from jobs.property_extraction.results import PropertyResults, ScoredModel
from jobs.property_extraction.row_outcomes import RowOutcome, RowOutcomes
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.settings import Matching
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import (
    ComparisonKind,
    Reason,
    Rubric,
    ValueComparison,
)
from store.document import (
    NONE,
    Block,
    Cell,
    Fact,
    Numbers,
    Quote,
    TableBlock,
    Words,
)
from store.printable import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyGroup:
    """Rows of a model's first replicate under a name, and those that may match them."""

    results: PropertyResults
    column: ScoredModel
    refno: str
    name: str
    predicted: Sequence[int]  #: indices of rows, in file order
    truth: Sequence[int]  #: the same

    @classmethod
    def of(
        cls, results: PropertyResults, column: ScoredModel, refno: str, name: str
    ) -> PropertyGroup:
        """Return the rows under a name, stated directly or by an alias."""
        outcomes = column.first.row_outcomes
        predicted = [
            index
            for index, row in enumerate(outcomes.predictions)
            if row.refno == refno
            and name in {row.name, *outcomes.renamed[index].targets}
        ]
        names = {
            name,
            *(target for at in predicted for target in outcomes.renamed[at].targets),
        }
        return cls(
            results=results,
            column=column,
            refno=refno,
            name=name,
            predicted=predicted,
            truth=truth_of(results, refno, names),
        )

    @property
    def targets(self) -> Sequence[str]:
        """Targets of the name in this paper, if predictions state it."""
        stated = (at for at in self.predicted if self._row(at).name == self.name)
        return next((self.row_outcomes.renamed[at].targets for at in stated), ())

    def _row(self, index: int) -> Prediction:
        return self.row_outcomes.predictions[index]

    @property
    def row_outcomes(self) -> RowOutcomes:
        """Outcomes of all rows."""
        return self.column.first.row_outcomes

    @property
    def stated(self) -> Sequence[Prediction]:
        """The predicted rows."""
        return [self._row(at) for at in self.predicted]

    @property
    def curated(self) -> Sequence[TruthRow]:
        """The truth rows."""
        return [self.row_outcomes.truth[at] for at in self.truth]

    @property
    def names(self) -> frozenset[str]:
        """All names of the rows."""
        booked = {self.row_outcomes.names[at] for at in self.predicted}
        return frozenset({*booked, *(row.name for row in self.curated), self.name})

    def compared(self, index: int, other: int) -> ValueComparison | None:
        """Compare a prediction with a truth row; None: their names differ."""
        row, truth = self._row(index), self.row_outcomes.truth[other]
        if truth.name not in self.row_outcomes.renamed[index].targets:
            return None
        kind = self.results.dataset.rubric.kind(truth.name)
        return self.results.comparer.compare(kind, truth.name, row, truth)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the positions of paired rows, from 0 on both sides."""
        for i, index in enumerate(self.predicted):
            partner = self.row_outcomes.partners[index]
            if partner in self.truth:
                yield i, self.truth.index(partner)


def truth_of(results: PropertyResults, refno: str, names: set[str]) -> Sequence[int]:
    """Return the indices of a paper's truth rows with one of some names."""
    truth = results.dataset.truth
    indices = results.dataset.truth_by_paper.get(refno, ())
    return [index for index in indices if truth[index].name in names]


ROWS = 20
"""Rows of each side in the list."""
ACROSS = 8
"""Most truth rows in the matrix of edges, which must fit a page."""
ROUNDING = 1e-12
"""Largest relative error that rounding of binary numbers causes."""
VALUE_CELLS = 18
UNIT_CELLS = 12
NAME_CELLS = 24

REASON_TEXTS: Mapping[Reason, str] = {
    "equal": "equal",
    "different": "no",
    "no_number": "no number",
    "truth_no_number": "no number",
    "incompatible": "unit",
    "left_out": "left out",
}
"""Text in a cell of the matrix if there is no error to show."""


def predicted_blocks(group: PropertyGroup) -> Iterator[Block]:
    """Yield the predicted rows, their parsed numbers, and how they count."""
    comparer = group.results.comparer
    outcomes = group.row_outcomes.prediction_outcomes
    has_truth = group.results.dataset.has_truth

    def count(outcome: RowOutcome) -> str:
        return "yes" if outcome is RowOutcome.FP and not has_truth else str(outcome)

    rows = zip(group.predicted, group.stated, strict=True)
    yield from _rows_of_side(
        "predicted",
        len(group.predicted),
        (
            (row.row, *_value_cells(row, comparer), count(outcomes[at]), row.name)
            for at, row in rows
        ),
        Words("counts"),
        Words("stated as", NAME_CELLS, keeps_end=True),
    )


def truth_blocks(curated: Sequence[TruthRow], comparer: Comparer) -> Iterator[Block]:
    """Yield the curated rows and their parsed numbers."""
    yield from _rows_of_side(
        "truth",
        len(curated),
        ((row.source_row, *_value_cells(row, comparer), row.name) for row in curated),
        Words("name", NAME_CELLS, keeps_end=True),
    )


def _rows_of_side(
    side: str, total: int, rows: Iterable[tuple[Cell, ...]], *columns: Words
) -> Iterator[Block]:
    """Yield the first rows of a side, numbered p1, p2 or t1, t2."""
    yield f"  {side} ({total:,})"
    if not total:
        return
    value = (Words("value", VALUE_CELLS), Words("unit", UNIT_CELLS), Words("read"))
    yield TableBlock(
        [Words(""), Numbers("row"), *value, *columns],
        [(f"{side[0]}{n}", *row) for n, row in enumerate(islice(rows, ROWS), 1)],
        indent=4,
        total=total,
    )


def _value_cells(row: Prediction | TruthRow, comparer: Comparer) -> tuple[Cell, ...]:
    read = comparer.number(row.value)
    text = read.status.replace("_", " ") if read.value is None else f"{read.value:g}"
    return row.value, row.unit or None, text


def unit_blocks(group: PropertyGroup) -> Iterator[Block]:
    """Yield the conversion of each predicted unit to each unit of the truth."""
    settings, rubric = group.results.dataset.settings, group.results.dataset.rubric
    if settings.units == "ignore" or all(
        rubric.kind(row.name) is not ComparisonKind.SI for row in group.curated
    ):
        return
    pairs = dict.fromkeys(
        (row.unit, truth.unit) for row in group.stated for truth in group.curated
    )
    yield "  units"
    for predicted_unit, other in pairs:
        conversion = group.results.comparer.conversion(predicted_unit, other)
        factor = (
            f", x {conversion.factor:g}" if conversion.status == "converted" else ""
        )
        offset = f" {conversion.offset:+g}" if conversion.offset else ""
        units = f"{predicted_unit or 'none'} -> {other or 'none'}"
        text = f"{units}: {conversion.status}{factor}{offset}"
        yield Fact("", text, indent=4, width=0, is_cut=True)


def edge_blocks(group: PropertyGroup) -> Iterator[Block]:
    """Yield a matrix of predicted and truth rows; brackets mark pairs."""
    pairs = set(group.pairs())
    truth = list(enumerate(group.truth[:ACROSS]))
    yield "  edges: relative error, = within the tolerance, [ ] paired"
    yield TableBlock(
        [Words(""), *(Words(f"t{j + 1}") for j, _ in truth)],
        [
            [
                f"p{i + 1}",
                *(
                    _cell(group.compared(index, other), is_paired=(i, j) in pairs)
                    for j, other in truth
                ),
            ]
            for i, index in enumerate(group.predicted[:ROWS])
        ],
        indent=4,
    )
    if len(group.truth) > ACROSS:
        yield f"    and {len(group.truth) - ACROSS:,} more truth rows"


def _cell(comparison: ValueComparison | None, *, is_paired: bool) -> str:
    if comparison is None:
        return NONE  # another name
    text = REASON_TEXTS[comparison.reason]
    if comparison.error is not None:
        error = comparison.error if comparison.error > ROUNDING else 0.0
        text = f"{'= ' if comparison.match else ''}{error:.2g}"
    return f"[{text}]" if is_paired else text


NEAR = 3
"""Targets of a wrong name, by spelling; those with value hits are added."""
MOST_LISTED = 12
"""Near targets, or quotes, in the list."""
NEAR_NAME_CELLS = 28

METHODS: dict[Matching, str] = {
    "maximum": "most pairs, then most own names, then the least error",
    "greedy": "each row in file order with the first free one",
}


def group_blocks(results: PropertyResults, refno: str, name: str) -> Iterator[Block]:
    """Yield the page of a property in a paper without its head."""
    dataset = results.dataset
    groups = [
        PropertyGroup.of(results, column, refno, name)
        for column in results.columns.values()
    ]
    targets = dict.fromkeys(target for group in groups for target in group.targets)
    for target in targets or [name]:
        if target != name:
            yield Fact("alias of", target)
        yield from _rule(dataset.rubric, target)
    if not groups:
        indices = truth_of(results, refno, {name})
        yield from truth_blocks([dataset.truth[at] for at in indices], results.comparer)
    for group in groups:
        yield ""
        yield Fact("", group.column.model, width=0)
        yield from _group(group)


def _rule(rubric: Rubric, name: str) -> Iterator[Block]:
    prop = rubric.properties.get(name)
    if prop is None:
        yield f"rule       {rubric.kind(name)}: the rubric does not have the name"
        return
    si = f", in {prop.si}" if prop.si else ""
    yield Fact("rule", f"{prop.kind}{si}", is_cut=True)
    yield Fact("meaning", prop.definition)


def _group(group: PropertyGroup) -> Iterator[Block]:
    if not group.predicted and not group.truth:
        has_truth = group.results.dataset.has_truth
        side = "neither side has a row" if has_truth else "there is no row"
        yield f"  {side} of it in this paper"
        return
    yield from predicted_blocks(group)
    if not group.results.dataset.has_truth:
        yield from _quotes(group)
        return
    yield from truth_blocks(group.curated, group.results.comparer)
    if group.predicted and group.truth:
        yield from unit_blocks(group)
        yield from edge_blocks(group)
        yield from _pairs(group)
    yield from _near(group)
    yield from _quotes(group)


def _pairs(group: PropertyGroup) -> Iterator[Block]:
    method = group.results.dataset.settings.matching
    yield f"  pairing, {method}: {METHODS[method]}"
    pairs = [f"p{i + 1} = t{j + 1}" for i, j in group.pairs()]
    yield Fact("", ", ".join(pairs) or "no pair", indent=4, width=0)


def _near(group: PropertyGroup) -> Iterator[Block]:
    """Yield the targets of wrong names, if rows are unpaired on both sides."""
    papers = group.column.mismatches.papers
    near_targets = [
        near
        for paper in papers
        if paper.refno == group.refno
        for near in near_names(paper, NEAR)
        if near.pred_name != near.gt_name and not group.names.isdisjoint(near.names)
    ]
    near_targets.sort(
        key=lambda near: (-near.value_hits, -near.similarity, near.pred_name)
    )
    if not near_targets:
        return
    yield "  near targets: wrong names, and the missed ones that they may mean"
    yield TableBlock(
        [
            Numbers("similar"),
            Numbers("values"),
            Words("predicted", NEAR_NAME_CELLS, keeps_end=True),
            Words("missed", NEAR_NAME_CELLS, keeps_end=True),
        ],
        [
            (near.similarity, near.value_hits, *near.names)
            for near in near_targets[:MOST_LISTED]
        ],
        indent=4,
        total=len(near_targets),
        rest=", in alias_candidates.csv",
    )


def _quotes(group: PropertyGroup) -> Iterator[Block]:
    """Yield details of each predicted row, and the place of its quote."""
    text = group.results.dataset.papers.paper(group.refno).text
    listed_rows = list(zip(group.predicted, group.stated, strict=True))[:MOST_LISTED]
    if listed_rows:
        yield "  quotes"
    for i, (index, row) in enumerate(listed_rows, start=1):
        quote_match, quote = group.column.first.groundings[index].quote, row.quote
        position = ""
        if quote_match.start is not None:
            position = (
                f"characters {quote_match.start:,} to {quote_match.end:,} of the paper"
            )
            quote = text[quote_match.start : quote_match.end]
        level = str(quote_match.level)
        about = (level, position, row.material, row.condition, row.flag)
        yield Fact(f"p{i}", "; ".join(filter(None, about)), indent=4, width=5)
        if quote:
            yield Quote(one_line(quote))
