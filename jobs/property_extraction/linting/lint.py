"""`siftlog prepare property-extraction lint`: what is odd about the inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from jobs.inputs.rows import InputFindings
from jobs.metrics import ratio
from jobs.property_extraction.inputs.named import (
    named_rubric,
    named_truth,
    named_unit_table,
)
from jobs.property_extraction.linting.issues import Issue, Looked, look
from jobs.property_extraction.linting.rules import ADVICE
from jobs.property_extraction.settings import Settings
from jobs.property_extraction.values.comparer import Comparer
from jobs.text import TextColumn, clip, one_line, text_table
from runner.errors import UsageError
from runner.score.render import csv_lines
from runner.scorecard import Finding

COLUMNS = ("source", "row", "problem", "property_name", "told")
"""Of lint.csv; of a table of units the name is the unit's."""

_FIRST = 34
"""Cells of an example."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lint:
    """The result, for people and for programs."""

    looked: Looked
    findings: tuple[Finding, ...]  #: of reading the files

    @property
    def share(self) -> float | None:
        """Rows without a problem, of all."""
        rows = sum(self.looked.rows.values())
        return ratio(rows - self.looked.odd, rows)

    @property
    def lines(self) -> Sequence[str]:
        """A CSV of the issues."""
        text = csv_lines((COLUMNS, *map(cells, self.looked.issues)))
        return text.removesuffix("\n").split("\n")

    @property
    def json(self) -> dict[str, object]:
        """Every count and every issue."""
        return {
            "rows": dict(self.looked.rows),
            "share": self.share,
            "problems": [
                {"source": source, "problem": problem, "n": own.n, "of": own.of}
                for (source, problem), own in self.looked.tallies.items()
            ],
            "issues": [
                dict(zip(COLUMNS, cells(each), strict=True))
                for each in self.looked.issues
            ],
        }

    @property
    def text(self) -> str:
        """A table of problems, and what they mean."""
        return "\n".join(_lines(self))


def cells(issue: Issue) -> tuple[str, int, str, str, str]:
    """An issue as a row of `COLUMNS`."""
    return (issue.source, issue.row, issue.problem, issue.name, issue.told)


def lint(settings: Settings) -> Lint:
    """Read the inputs that are named and look at their rows.

    Raises:
        UsageError: none is named.
        DatasetError: one of them is not to be read.
    """
    if not (settings.truth or settings.rubric or settings.unit_table):
        raise UsageError(
            "Name what to look at: --truth FILE, --rubric FILE or --unit-table FILE."
        )
    noticed = InputFindings()
    truth = named_truth(settings, noticed).rows
    rubric = named_rubric(settings, noticed).rubric
    unit_table = named_unit_table(settings)
    comparer = Comparer(settings, unit_table=unit_table)
    return Lint(
        looked=look(truth, rubric, unit_table, comparer),
        findings=noticed.findings(),
    )


def _lines(found: Lint) -> Iterator[str]:
    looked = found.looked
    first: dict[tuple[str, str], Issue] = {}
    for each in looked.issues:
        first.setdefault((each.source, each.problem), each)
    tallies = looked.tallies.items()
    yield from text_table(
        [
            TextColumn(
                title="in", cells=[key[0] for key, _ in tallies], has_words=True
            ),
            TextColumn(title="rows", cells=[f"{own.n:,}" for _, own in tallies]),
            TextColumn(title="of", cells=[f"{own.of:,}" for _, own in tallies]),
            TextColumn(
                title="problem", cells=[key[1] for key, _ in tallies], has_words=True
            ),
            TextColumn(
                title="first",
                cells=[_example(first.get(key)) for key, _ in tallies],
                has_words=True,
            ),
        ],
        indent="",
    )
    found_ones = {each.problem for each in looked.issues}
    for problem, advice in ADVICE.items():
        if problem in found_ones:
            yield f"{problem}: {advice}"
    for finding in found.findings:
        yield f"{finding.severity}: {one_line(finding.where)}: {finding.message}"
    if looked.issues:
        yield f"rows without a problem: {found.share:.1%} (--out FILE.csv lists others)"


def _example(issue: Issue | None) -> str:
    return "" if issue is None else f"row {issue.row}: {clip(issue.told, _FIRST)}"
