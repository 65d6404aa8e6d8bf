"""`siftlog prepare property-extraction lint`: reports oddities of the inputs.

None of them is fatal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar

from jobs.kit.inputs.rows import InputFindings
from jobs.kit.metrics import ratio
from jobs.kit.tables import TableOf, count, text
from jobs.property_extraction.inputs import load_rubric, load_truth, load_unit_table
from jobs.property_extraction.rows import TruthRow
from jobs.property_extraction.settings import PropertySettings
from jobs.property_extraction.values.comparer import Comparer
from jobs.property_extraction.values.comparison import ComparisonKind, Property, Rubric
from jobs.property_extraction.values.numbers import NumberStatus
from jobs.property_extraction.values.unit_reader import UnitTableRow, unit_disagreements
from runner.errors import UsageError
from runner.scorecard import Finding
from runner.table_files import csv_lines
from store.document import Block, Numbers, TableBlock, Words, as_text
from store.printable import clip

Row = TypeVar("Row")

ERRORS = frozenset({"#NAME?", "#N/A", "#REF!", "#VALUE!", "#DIV/0!", "#NUM!", "#NULL!"})
"""Error values of a spreadsheet that took a text for a formula."""


class LintKind(StrEnum):
    """Kinds of oddities of a row."""

    SPREADSHEET = "spreadsheet_error"
    NOT_IN_RUBRIC = "not_in_rubric"
    NO_UNIT = "no_unit"
    UNIT_ON_TEXT = "unit_on_text"
    UNKNOWN_UNIT = "unknown_unit"
    NO_NUMBER = "no_number"
    SI_UNFIT = "si_unfit"
    FACTOR = "factor"


ADVICE: Mapping[LintKind, str] = {
    LintKind.SPREADSHEET: "names that a spreadsheet replaced; enter them again as text",
    LintKind.NOT_IN_RUBRIC: "names without a rubric; compared as exact texts",
    LintKind.NO_UNIT: "numbers without a unit; compared as they are",
    LintKind.UNIT_ON_TEXT: "units of values that are compared as text; not checked",
    LintKind.UNKNOWN_UNIT: "units not understood; numbers are compared as they are",
    LintKind.NO_NUMBER: "values that are no number under a rubric of numbers; missed",
    LintKind.SI_UNFIT: "SI units under a rubric of texts; is a cell one row off?",
    LintKind.FACTOR: "factors that known units contradict; those known are used",
}
"""Effect of a problem on a score, or its remedy."""


READ: Mapping[NumberStatus, str] = {
    "bound": "a bound",
    "range": "a range",
    "not_a_number": "no number",
}
"""Descriptions of values that are not a number."""


@dataclass(frozen=True, slots=True)
class LintRule(Generic[Row]):
    """A rule that finds one kind of problem."""

    problem: LintKind
    applies_to: Callable[[Row], bool]  #: whether the rule concerns a row
    finds: Callable[[Row], str]  #: the oddity, in a few words; empty: none


def truth_rules(rubric: Rubric, comparer: Comparer) -> Sequence[LintRule[TruthRow]]:
    """Return the rules of curated values; some apply only with a rubric."""

    def is_si(row: TruthRow) -> bool:
        return rubric.kind(row.name) is ComparisonKind.SI

    def no_number(row: TruthRow) -> str:
        number = comparer.number(row.value)
        return (
            ""
            if number.value is not None
            else f"{row.value!r} is {READ[number.status]}"
        )

    return (
        LintRule(
            LintKind.SPREADSHEET,
            _always,
            lambda row: row.name if row.name in ERRORS else "",
        ),
        LintRule(
            LintKind.NOT_IN_RUBRIC,
            lambda _: bool(rubric.properties),
            lambda row: "" if row.name in rubric else row.name,
        ),
        LintRule(
            LintKind.NO_UNIT,
            is_si,
            lambda row: row.value if comparer.unit(row.unit).blank else "",
        ),
        LintRule(
            LintKind.UNIT_ON_TEXT,
            lambda row: bool(rubric.properties) and not is_si(row),
            lambda row: "" if comparer.unit(row.unit).blank else row.unit,
        ),
        LintRule(
            LintKind.UNKNOWN_UNIT, is_si, lambda row: _unknown(comparer, row.unit)
        ),
        LintRule(LintKind.NO_NUMBER, is_si, no_number),
    )


def rubric_rules(comparer: Comparer) -> Sequence[LintRule[Property]]:
    """Return the rules of a rubric."""
    return (
        LintRule(
            LintKind.SPREADSHEET,
            _always,
            lambda prop: prop.name if prop.name in ERRORS else "",
        ),
        LintRule(
            LintKind.SI_UNFIT,
            lambda prop: prop.kind is not ComparisonKind.SI,
            lambda prop: f"{prop.kind} in {prop.si}" if prop.si else "",
        ),
        LintRule(
            LintKind.UNKNOWN_UNIT,
            lambda prop: prop.kind is ComparisonKind.SI,
            lambda prop: _unknown(comparer, prop.si),
        ),
    )


def unit_rules(table: Iterable[UnitTableRow]) -> Sequence[LintRule[UnitTableRow]]:
    """Return the rules of a table of units."""
    off = {row.row: row.factor for row in unit_disagreements(table)}

    def factor_message(row: UnitTableRow) -> str:
        if row not in off:
            return ""
        factor = off[row]
        if factor is None:
            return f"{row.name} is none of {row.si}"
        return f"{row.name} is {factor:.7g} {row.si}, not {row.factor:.7g}"

    return (LintRule(LintKind.FACTOR, _always, factor_message),)


def _unknown(comparer: Comparer, cell: str) -> str:
    stated_unit = comparer.unit(cell)
    return "" if stated_unit.blank or stated_unit.unit is not None else cell


def _always(_: object) -> bool:
    return True


Source: TypeAlias = Literal["truth", "rubric", "unit_table"]
"""Inputs, by their setting."""


class _Row(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def source_row(self) -> int: ...


R = TypeVar("R", bound=_Row)


@dataclass(frozen=True, slots=True, kw_only=True)
class LintIssue:
    """One oddity of one row."""

    source: Source
    row: int  #: in its file; the header is row 1
    problem: LintKind
    name: str  #: of the property, or the unit
    message: str  #: the oddity


@dataclass(frozen=True, slots=True)
class LintTally:
    """Number of rows that have a problem, of those that could have it."""

    n: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFindings:
    """All oddities of the inputs."""

    issues: tuple[LintIssue, ...]  #: by input, then row
    problem_counts: Mapping[
        tuple[Source, LintKind], LintTally
    ]  #: of every rule that applied
    rows: Mapping[Source, int]

    @property
    def odd(self) -> int:
        """Number of rows with a problem."""
        return len({(issue.source, issue.row) for issue in self.issues})


def lint_rows(
    truth: Sequence[TruthRow],
    rubric: Rubric,
    unit_table: Sequence[UnitTableRow],
    comparer: Comparer,
) -> LintFindings:
    """Check every row against its rules; pure.

    Args:
        truth: rows with a value.
        rubric: if it has no properties, rules that need it are skipped.
        unit_table: of further units.
        comparer: reads values and units.
    """
    issues: list[LintIssue] = []
    problem_counts: dict[tuple[Source, LintKind], LintTally] = {}

    def check_rows(
        source: Source, every: Collection[R], rules: Sequence[LintRule[R]]
    ) -> int:
        checked: Counter[LintKind] = Counter()
        flagged: Counter[LintKind] = Counter()
        for row in every:
            for rule in rules:
                if not rule.applies_to(row):
                    continue
                checked[rule.problem] += 1
                if message := rule.finds(row):
                    flagged[rule.problem] += 1
                    issues.append(
                        LintIssue(
                            source=source,
                            row=row.source_row,
                            problem=rule.problem,
                            name=row.name,
                            message=message,
                        )
                    )
        for problem in (rule.problem for rule in rules if checked[rule.problem]):
            tally = LintTally(flagged[problem], checked[problem])
            problem_counts[source, problem] = tally
        return len(every)

    rows: dict[Source, int] = {
        "truth": check_rows("truth", truth, truth_rules(rubric, comparer)),
        "rubric": check_rows(
            "rubric", rubric.properties.values(), rubric_rules(comparer)
        ),
        "unit_table": check_rows("unit_table", unit_table, unit_rules(unit_table)),
    }
    return LintFindings(issues=tuple(issues), problem_counts=problem_counts, rows=rows)


LINT = TableOf[LintIssue](
    name="lint",
    columns=(
        text("source", lambda issue: issue.source),
        count("row", lambda issue: issue.row),
        text("problem", lambda issue: issue.problem),
        text("property_name", lambda issue: issue.name, "or the unit, of a unit table"),
        text("told", lambda issue: issue.message),
    ),
    caption="Rows of the inputs that a score may suffer from.",
)

_FIRST = 34
"""Cells of an example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lint:
    """The oddities as text, JSON and CSV."""

    row_findings: LintFindings
    findings: tuple[Finding, ...]  #: from reading the files

    @property
    def share(self) -> float | None:
        """Share of rows without a problem."""
        rows = sum(self.row_findings.rows.values())
        return ratio(rows - self.row_findings.odd, rows)

    @property
    def lines(self) -> Sequence[str]:
        """CSV of the issues."""
        rows = csv_lines((LINT.names, *map(LINT.cells, self.row_findings.issues)))
        return rows.removesuffix("\n").split("\n")

    @property
    def json(self) -> dict[str, object]:
        """Every count and every issue."""
        return {
            "rows": dict(self.row_findings.rows),
            "share": self.share,
            "problems": [
                {"source": source, "problem": problem, "n": tally.n, "of": tally.of}
                for (source, problem), tally in self.row_findings.problem_counts.items()
            ],
            "issues": [LINT.fields(issue) for issue in self.row_findings.issues],
        }

    @property
    def text(self) -> str:
        """Table of problems, and their meanings."""
        return as_text(_blocks(self))


def lint(settings: PropertySettings) -> Lint:
    """Read the named inputs and check their rows.

    Raises:
        UsageError: none is named.
        DatasetError: one of them is unreadable.
    """
    if not (settings.truth or settings.rubric or settings.unit_table):
        raise UsageError(
            "Name a file to check: --truth FILE, --rubric FILE or --unit-table FILE."
        )
    findings = InputFindings()
    truth = load_truth(settings, findings).rows
    rubric = load_rubric(settings, findings).rubric
    unit_table = load_unit_table(settings)
    comparer = Comparer(settings, unit_table=unit_table)
    return Lint(
        row_findings=lint_rows(truth, rubric, unit_table, comparer),
        findings=findings.findings(),
    )


def _blocks(lint_result: Lint) -> Iterator[Block]:
    row_findings = lint_result.row_findings
    first: dict[tuple[str, str], LintIssue] = {}
    for issue in row_findings.issues:
        first.setdefault((issue.source, issue.problem), issue)
    yield TableBlock(
        [Words("in"), Numbers("rows"), Numbers("of"), Words("problem"), Words("first")],
        [
            (source, tally.n, tally.of, problem, _example(first.get((source, problem))))
            for (source, problem), tally in row_findings.problem_counts.items()
        ],
        indent=0,
    )
    problems = {issue.problem for issue in row_findings.issues}
    for problem, advice in ADVICE.items():
        if problem in problems:
            yield f"{problem}: {advice}"
    for finding in lint_result.findings:
        yield f"{finding.severity}: {finding.where}: {finding.message}"
    if row_findings.issues:
        yield (
            f"rows without a problem: {lint_result.share:.1%} (--out FILE.csv "
            "lists others)"
        )


def _example(issue: LintIssue | None) -> str:
    return "" if issue is None else f"row {issue.row}: {clip(issue.message, _FIRST)}"
