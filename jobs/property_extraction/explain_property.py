"""Explains one property of a paper: the rows of both sides, how each pair compares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jobs.kit.text_format import TextColumn, hanging_lines, quoted_lines, text_table
from jobs.property_extraction.aliases.candidates import near_names
from jobs.property_extraction.results import PropertyResults, ScoredModel
from jobs.property_extraction.row_outcomes import RowOutcomes
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.settings import Matching
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import (
    ComparisonKind,
    Reason,
    Rubric,
    ValueComparison,
)
from store.document import NONE, WIDTH, number
from store.printable import clip, cut, one_line, shortened


@dataclass(frozen=True, slots=True, kw_only=True)
class PropertyGroup:
    """What a model's first replicate has under a name, with all it may be paired to."""

    results: PropertyResults
    column: ScoredModel
    refno: str
    name: str
    predicted: Sequence[int]  #: places of rows, in file order
    truth: Sequence[int]  #: likewise

    @classmethod
    def of(
        cls, results: PropertyResults, column: ScoredModel, refno: str, name: str
    ) -> PropertyGroup:
        """The rows that were stated under a name, or that an alias leads to it."""
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
        """What the name stands for in this paper, as far as it is stated there."""
        stated = (at for at in self.predicted if self._row(at).name == self.name)
        return next((self.row_outcomes.renamed[at].targets for at in stated), ())

    def _row(self, index: int) -> Prediction:
        return self.row_outcomes.predictions[index]

    @property
    def row_outcomes(self) -> RowOutcomes:
        """Those of all rows."""
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
        """All names of its rows."""
        booked = {self.row_outcomes.names[at] for at in self.predicted}
        return frozenset({*booked, *(row.name for row in self.curated), self.name})

    def compared(self, index: int, other: int) -> ValueComparison | None:
        """How a prediction compares with a truth row; None: their names differ."""
        row, truth = self._row(index), self.row_outcomes.truth[other]
        if truth.name not in self.row_outcomes.renamed[index].targets:
            return None
        kind = self.results.dataset.rubric.kind(truth.name)
        return self.results.comparer.compare(kind, truth.name, row, truth)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Positions of the rows that are paired, from 0 on both sides."""
        for i, index in enumerate(self.predicted):
            partner = self.row_outcomes.partners[index]
            if partner in self.truth:
                yield i, self.truth.index(partner)


def truth_of(results: PropertyResults, refno: str, names: set[str]) -> Sequence[int]:
    """Places of the truth rows of a paper that have one of some names."""
    truth = results.dataset.truth
    indices = results.dataset.truth_by_paper.get(refno, ())
    return [index for index in indices if truth[index].name in names]


ROWS = 20
"""Of each side that are listed."""
ACROSS = 8
"""Truth rows in the matrix of edges: a page has no room for more."""
ROUNDING = 1e-12
"""A relative error up to here is what binary numbers leave."""
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
"""What a cell of the matrix says where no error can be told."""


def predicted_lines(group: PropertyGroup) -> Iterator[str]:
    """What a model stated, as it was read, and what it counts as."""
    rows = list(zip(group.predicted, group.stated, strict=True))[:ROWS]
    yield f"  predicted ({len(group.predicted):,})"
    if rows:
        yield from text_table(
            [
                _words("", [f"p{i}" for i in range(1, len(rows) + 1)]),
                TextColumn(title="row", cells=[f"{row.row:,}" for _, row in rows]),
                _words("value", [clip(row.value, VALUE_CELLS) for _, row in rows]),
                _words("unit", [clip(row.unit, UNIT_CELLS) or NONE for _, row in rows]),
                _words(
                    "read",
                    [_read(group.results.comparer, row.value) for _, row in rows],
                ),
                _words(
                    "counts",
                    [str(group.row_outcomes.prediction_outcomes[at]) for at, _ in rows],
                ),
                _words("stated as", [_name(row.name) for _, row in rows]),
            ],
            indent="    ",
        )
    yield from _more(len(group.predicted) - ROWS)


def truth_lines(curated: Sequence[TruthRow], comparer: Comparer) -> Iterator[str]:
    """What a curator wrote, as it was read."""
    rows = curated[:ROWS]
    yield f"  truth ({len(curated):,})"
    if rows:
        yield from text_table(
            [
                _words("", [f"t{i}" for i in range(1, len(rows) + 1)]),
                TextColumn(title="row", cells=[f"{row.source_row:,}" for row in rows]),
                _words("value", [clip(row.value, VALUE_CELLS) for row in rows]),
                _words("unit", [clip(row.unit, UNIT_CELLS) or NONE for row in rows]),
                _words("read", [_read(comparer, row.value) for row in rows]),
                _words("name", [_name(row.name) for row in rows]),
            ],
            indent="    ",
        )
    yield from _more(len(curated) - ROWS)


def unit_lines(group: PropertyGroup) -> Iterator[str]:
    """How each unit of the one side is told in those of the other."""
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
        yield cut(
            f"    {one_line(predicted_unit) or 'none'} -> {one_line(other) or 'none'}: "
            f"{conversion.status}{factor}{offset}",
            WIDTH,
        )


def edge_lines(group: PropertyGroup) -> Iterator[str]:
    """A line a predicted row, a column a truth row; brackets are around pairs."""
    pairs = set(group.pairs())
    rows = range(min(ROWS, len(group.predicted)))
    columns = range(min(ACROSS, len(group.truth)))
    yield "  edges: relative error, = within the tolerance, [ ] paired"
    yield from text_table(
        [
            _words("", [f"p{i + 1}" for i in rows]),
            *(
                _words(
                    f"t{j + 1}",
                    [
                        _cell(
                            group.compared(group.predicted[i], group.truth[j]),
                            is_paired=(i, j) in pairs,
                        )
                        for i in rows
                    ],
                )
                for j in columns
            ),
        ],
        indent="    ",
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


def _read(comparer: Comparer, value: str) -> str:
    number = comparer.number(value)
    if number.value is None:
        return number.status.replace("_", " ")
    return f"{number.value:g}"


def _name(name: str) -> str:
    return shortened(one_line(name), NAME_CELLS)


def _words(title: str, cells: Sequence[str]) -> TextColumn:
    return TextColumn(title=title, cells=cells, has_words=True)


def _more(n: int) -> Iterator[str]:
    if n > 0:
        yield f"    and {n:,} more"


NEAR = 3
"""Targets of a wrong name, by spelling; those that values speak for come on top."""
MOST_LISTED = 12
"""Near targets, and quotes, that are shown."""
NEAR_NAME_CELLS = 28

METHODS: dict[Matching, str] = {
    "maximum": "most pairs, then most own names, then the least error",
    "greedy": "each row in file order with the first free one",
}


def group_lines(results: PropertyResults, refno: str, name: str) -> Iterator[str]:
    """All of the page but its head."""
    dataset = results.dataset
    groups = [
        PropertyGroup.of(results, column, refno, name)
        for column in results.columns.values()
    ]
    targets = dict.fromkeys(target for group in groups for target in group.targets)
    for target in targets or [name]:
        if target != name:
            yield from hanging_lines("stands for ", one_line(target))
        yield from _rule(dataset.rubric, target)
    if not groups:
        indices = truth_of(results, refno, {name})
        yield from truth_lines([dataset.truth[at] for at in indices], results.comparer)
    for group in groups:
        yield ""
        yield from hanging_lines("", one_line(group.column.model))
        yield from _group(group)


def _rule(rubric: Rubric, name: str) -> Iterator[str]:
    prop = rubric.properties.get(name)
    if prop is None:
        yield f"rule       {rubric.kind(name)}: the rubric does not have the name"
        return
    si = f", told in {one_line(prop.si)}" if prop.si else ""
    yield cut(f"rule       {prop.kind}{si}", WIDTH)
    if prop.definition:
        yield from hanging_lines("meaning    ", one_line(prop.definition))


def _group(group: PropertyGroup) -> Iterator[str]:
    if not group.predicted and not group.truth:
        yield "  neither side has a row of it in this paper"
        return
    yield from predicted_lines(group)
    yield from truth_lines(group.curated, group.results.comparer)
    if group.predicted and group.truth:
        yield from unit_lines(group)
        yield from edge_lines(group)
        yield from _pairs(group)
    yield from _near(group)
    yield from _quotes(group)


def _pairs(group: PropertyGroup) -> Iterator[str]:
    method = group.results.dataset.settings.matching
    yield f"  pairing, {method}: {METHODS[method]}"
    pairs = [f"p{i + 1} = t{j + 1}" for i, j in group.pairs()]
    yield from hanging_lines("    ", ", ".join(pairs) or "no pair")


def _near(group: PropertyGroup) -> Iterator[str]:
    """Names that may mean another one, where rows are left on both sides."""
    papers = group.column.mismatches.papers
    near_targets = [
        near_name
        for paper in papers
        if paper.refno == group.refno
        for near_name in near_names(paper, NEAR)
        if near_name.pred_name != near_name.gt_name
        and (near_name.pred_name in group.names or near_name.gt_name in group.names)
    ]
    near_targets.sort(
        key=lambda near_name: (
            -near_name.value_hits,
            -near_name.similarity,
            near_name.pred_name,
        )
    )
    if not near_targets:
        return
    listed_targets = near_targets[:MOST_LISTED]
    yield "  near targets: wrong names, and the missed ones that they may mean"
    yield from text_table(
        [
            TextColumn(
                title="similar",
                cells=[number(near_name.similarity) for near_name in listed_targets],
            ),
            TextColumn(
                title="values",
                cells=[f"{near_name.value_hits:,}" for near_name in listed_targets],
            ),
            *(
                TextColumn(
                    title=title,
                    cells=[
                        shortened(one_line(name), NEAR_NAME_CELLS) for name in names
                    ],
                    has_words=True,
                )
                for title, names in (
                    (
                        "predicted",
                        [near_name.pred_name for near_name in listed_targets],
                    ),
                    ("missed", [near_name.gt_name for near_name in listed_targets]),
                )
            ),
        ],
        indent="    ",
    )
    if near_targets[MOST_LISTED:]:
        yield (
            f"    and {len(near_targets) - MOST_LISTED:,} more, in alias_candidates.csv"
        )


def _quotes(group: PropertyGroup) -> Iterator[str]:
    """What each predicted row is about, by itself, and where its quote stands."""
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
        about = (
            str(quote_match.level),
            position,
            row.material,
            row.condition,
            row.flag,
        )
        yield from hanging_lines(
            f"    p{i:<3} ", "; ".join(filter(None, map(one_line, about)))
        )
        if quote:
            yield from quoted_lines(one_line(quote))
