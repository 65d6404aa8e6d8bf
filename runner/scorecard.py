"""Defines results of a scoring: metrics with definitions, tables, findings, figures.

Figures are values too: they describe content and meaning; drawing is done elsewhere.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from store.results import ItemParts, Milestone

Number: TypeAlias = float | int | None
"""A coordinate; None is undefined and not drawn."""

Numbers: TypeAlias = tuple[Number, ...]


@dataclass(frozen=True, slots=True)
class Category:
    """Styles a mark for a part, kind or state: in colours that no model has."""

    index: int


Series: TypeAlias = int | Category | None
"""Style of a mark: a model's index in the order of the scorecard, a category, or None
for what belongs to neither."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
"""Names become file names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """An axis of a panel."""

    label: str = ""  #: with the unit
    lo: float | None = None  #: None: determined by the data
    hi: float | None = None
    names: tuple[str, ...] = ()
    """Names of positions 0, 1, 2, ...; a line break starts a second line, such as the n
    below a label."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """Return both limits, never equal; None if the data determine one of them."""
        if self.lo is None or self.hi is None:
            return None
        # an empty count would have limits 0 and 0
        return self.lo, self.hi if self.hi > self.lo else self.lo + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSeries:
    """Points joined by a line."""

    x: Numbers
    y: Numbers
    label: str = ""
    series: Series = None
    steps: bool = False  #: each value holds until the next x
    marked: bool = False  #: a marker on each point
    faint: bool = False  #: one of many, drawn as background


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Single points; *lo* and *hi* are interval ends along the axis of values.

    The axis of values is y, or x if y has names.
    """

    x: Numbers
    y: Numbers
    label: str = ""
    series: Series = None
    lo: Numbers = ()
    hi: Numbers = ()
    notes: tuple[str, ...] = ()  #: a text beside each point


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A bar for each name of the named axis; several `Bars` are placed side by side."""

    values: Numbers
    label: str = ""
    series: Series = None
    lo: Numbers = ()
    hi: Numbers = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A part of each name's bar; several are stacked in order."""

    values: Numbers
    label: str
    series: Series = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts between edges; there is one more edge."""

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    label: str = ""
    series: Series = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The area between two lines, such as an interval at every x."""

    x: Numbers
    lo: Numbers
    hi: Numbers
    label: str = ""
    series: Series = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceLine:
    """A thin reference line: at a value, or the diagonal x = y."""

    way: Literal["vertical", "horizontal", "diagonal"]
    at: float = 0.0  #: ignored for the diagonal
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heatmap:
    """A number in every cell of a grid of two named axes; the first row is on top."""

    rows: tuple[Numbers, ...]
    label: str  #: meaning of a cell's number


Mark: TypeAlias = (
    LineSeries | Points | Bars | Stack | Histogram | Band | ReferenceLine | Heatmap
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes and its content."""

    marks: tuple[Mark, ...]
    x: Axis
    y: Axis
    title: str = ""
    height: float = 1.0  #: relative to the other panels of the figure
    square: bool = False  #: axes of equal length, as for two rates
    row_notes: tuple[str, ...] = ()
    """A text at the right end of each named row of y, such as its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture for the report and the folder `figures/`.

    Raises:
        ValueError: the name could not be a file's, or there is nothing to draw.
    """

    name: str  #: name of its files: lower case, digits, `_` and `-`
    title: str
    caption: str  #: content, how to read it, and the sampling unit of intervals
    panels: tuple[Panel, ...]
    columns: int = 1  #: panels side by side

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"a figure cannot be called {self.name!r}")
        if not self.panels:
            raise ValueError(f"the figure {self.name!r} has no panel")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFigure:
    """Replaces a figure whose code raised: the report has a finding instead."""

    name: str  #: name of the figure, or of its function
    fault: str  #: class, line and start of the message


LIMITS = "limits"
"""`where` of findings about all numbers, which state their limitations. A report has a
separate section for them."""

NO_TRUTH = "no_truth"
"""Code of the finding that a scoring has no truth: most metrics are absent."""

BASELINES = "baselines.txt"
"""Name of the artifact that compares models with trivial baselines; `siftlog explain`
of a run ends with it."""

Cell: TypeAlias = str | int | float | bool | None
"""A table's cell; None is undefined and renders as blank, null or `n/a`."""


Direction: TypeAlias = Literal["higher", "lower", "neither"]
"""Direction of better values of a metric; neither: descriptive only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The user's bound for a metric."""

    sense: Literal[">=", ">", "<=", "<"]
    bound: float

    def __str__(self) -> str:
        return f"{self.sense} {self.bound:g}"

    def is_met(self, value: float) -> bool:
        """Return whether *value* is on the right side of the bound."""
        return bool(_SENSES[self.sense](value, self.bound))


_SENSES = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number with everything needed to interpret it."""

    path: str  #: such as "avg_paper_score" or "pipeline.mcq_drug.accuracy"
    value: float | int | None  #: None: undefined (0/0, a mean over nothing)
    n: int  #: number of items
    subset: str = ""  #: subset of items, such as "has_evidence"; empty: all
    n_defined: int | None = None  #: items with a value, if that can differ
    lo: float | None = None  #: interval ends, 12 significant digits
    hi: float | None = None
    definition: str = ""  #: name@version and every parameter
    note: str | None = None  #: such as "assumes independent questions"
    name: str = ""  #: for readers, such as "Sensitivity, near misses"
    meaning: str = ""  #: meaning for a reader without statistics, one sentence
    direction: Direction = "neither"  #: direction of better values
    is_headline: bool = False  #: shown first in a report; all others are details
    mean: float | None = None  #: mean over parts, such as folds, if `value` pools them
    std: float | None = None  #: standard deviation over the same parts, ddof 1
    target: Target | None = None
    terms: tuple[Iterable[float], Iterable[float]] | None = field(
        default=None, repr=False, compare=False
    )
    """Numerators and denominators of the value, one of each per cluster; None: it is no
    ratio of sums, or has very many. Recorded in redacted bundles."""

    @property
    def label(self) -> str:
        """The name, or else the path."""
        return self.name or self.path

    @property
    def verdict(self) -> Literal["pass", "fail", "undecided"] | None:
        """Compare the interval, never the value, with the target.

        Pass and fail need the whole interval on one side of the bound. Without an
        interval the verdict is undecided.
        """
        if self.target is None or self.value is None:
            return None
        if self.lo is None or self.hi is None:
            return "undecided"
        outcomes = {self.target.is_met(end) for end in (self.lo, self.hi)}
        if len(outcomes) > 1:
            return "undecided"
        return "pass" if outcomes == {True} else "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows under named columns, in a fixed order; becomes one CSV or Parquet file.

    Its name may contain a folder, as in `openai_gpt-4o/per_query`.

    A table with a row per paper or question is declared without rows; they are
    `StreamedRow`s of its name in the details.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...] = ()
    caption: str = ""
    is_headline: bool = False  #: shown first in a report
    titles: Mapping[str, str] = field(default_factory=dict)
    """Column titles for readers, such as "Sensitivity"; the default is the name."""
    further_formats: tuple[Literal["jsonl", "parquet", "xlsx"], ...] = ()
    """Formats in which a scoring writes it besides CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A contradiction, leak or drift that readers should know."""

    code: str
    severity: Literal["error", "warn", "info"]
    where: str  #: a file, a model, ..., or `LIMITS`
    message: str  #: one sentence
    n: int = 1
    example: str = ""

    @property
    def line(self) -> str:
        """Return the finding as a line, with its count and an example.

        A message that begins with the count does not repeat it.
        """
        is_counted = self.n > 1 and not self.message.startswith(f"{self.n} ")
        details = [f"{self.n:,}"] if is_counted or self.example else []
        details += [f"such as {self.example}"] if self.example else []
        occurrences = f" ({', '.join(details)})" if details else ""
        return f"{self.where}: {self.message}{occurrences}"


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Result of scoring one task, for the monitor and for explain."""

    task: int
    model: str
    stage: str
    key: str
    value: str  #: the value read from the reply
    expected: str
    correct: bool | None  #: None: neither right nor wrong
    rule: str  #: the parsing rule that matched, or the reason of the failure
    part: str = ""  #: what of the item it is about, such as a field
    label: str | None = None
    """The answer in a form that two models share if they agree; None: answers are not
    compared, such as lists of search queries."""
    confidence: float | None = None  #: stated probability of the value, from 0 to 1
    is_grounded: bool | None = None  #: whether its quotes are in the text; None: none
    is_unparsed: bool = False  #: the reply could not be parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file of the job, with the name and format that its users expect.

    A file with a line per paper or question is declared empty; its text is
    `StreamedLine`s of its name in the details. A name may contain up to two folders, as
    in `results/openai_gpt-4o/benchmark_CD1.json`.
    """

    name: str
    text: str = ""


class StreamedRow(msgspec.Struct, frozen=True, kw_only=True):
    """The next row of a declared table."""

    table: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedLine:
    """The next piece of a declared artifact, its line end included."""

    artifact: str
    text: str


Detail: TypeAlias = Verdict | StreamedRow | StreamedLine
"""Data that grow with the number of answers, and are never held in memory."""


@runtime_checkable
class SeparateVerdicts(Protocol):
    """Details whose verdicts can be read without the rows and lines of files."""

    @property
    def verdicts(self) -> Iterable[Verdict]:
        """Return the verdicts, in their order among the details."""
        ...


def verdicts_in(details: Iterable[Detail]) -> Iterator[Verdict]:
    """Yield the verdicts among *details*; files are not made, where that can be."""
    if isinstance(details, SeparateVerdicts):
        yield from details.verdicts
    else:
        yield from (detail for detail in details if isinstance(detail, Verdict))


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedDetails:
    """Details that are generated while they are written."""

    verdicts: Iterable[Verdict]
    files: tuple[Iterable[Detail], ...]

    def __iter__(self) -> Iterator[Detail]:
        """Yield the verdicts, and then the rows and lines of each file."""
        return chain(self.verdicts, *self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemValues:
    """A metric of one model item by item, for comparisons with another model.

    `first` and `second` of an item depend on the kind:

        mean             its value; no second
        ratio            what it adds to the numerator, and to the denominator
        auroc, auprc     its label, 0 or 1, and its score, higher is more positive

    An item whose value is undefined is given, with None.
    """

    kind: Literal["mean", "ratio", "auroc", "auprc"]
    items: Sequence[str]  #: unique keys; models are paired by them
    clusters: Sequence[str]  #: the document of each item
    cluster: str  #: name of such a document, such as "paper"
    first: Sequence[float | None]
    second: Sequence[float | None] | None = None
    definition: str  #: name@version; different definitions are not compared
    lower_is_better: bool = False
    family: str = ""
    """Metrics whose tests are corrected together by Holm's method.

    Metrics without a family form one together. A job names the families of the metrics
    that its summary compares, so that `compare` gives the same corrected p.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """One model's label of each item, right or wrong."""

    what: str  #: meaning of a label, such as "decision"
    categories: tuple[str, ...]  #: all categories
    items: Sequence[str]  #: unique keys; models are paired by them
    assigned: Sequence[str | None]  #: None: none of the categories


Comparable: TypeAlias = Mapping[str, Callable[[], ItemValues]]
"""Functions that return the values of a model's metrics, by path.

They are called after the scoring, when its answers can no longer be read.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """A change of a metric attributed to causes that the job knows, such as aliases."""

    metric: str  #: path
    change: int  #: sum of the table's rows
    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """A scoring's entry for `siftlog history`.

    The milestone is partial if answers for its values are missing. The state and the
    cost of the run are added when the scoring is recorded.
    """

    milestone: Milestone
    parts: ItemParts


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """Everything that one scoring returns."""

    models: Mapping[str, tuple[Metric, ...]]  #: metrics by model, in the run's order
    summary: str  #: text for the terminal
    result: str = ""
    """Text below the headline metrics at the end of a run, such as a table of answers.

    Where it is empty and there are no headline metrics, the summary takes its place.
    """
    headline: str = ""  #: path of the main metric
    worth_explaining: str = ""  #: the item to explain first
    tables: tuple[Table, ...] = ()
    findings: tuple[Finding, ...] = ()
    failures: tuple[str, ...] = ()
    """One sentence for each requested check that failed: exit code 6."""
    artifacts: tuple[Artifact, ...] = ()
    built: tuple[str, ...] | None = None
    """Names of the built artifacts, if the run builds data: only these files of a
    scoring are copied."""
    figures: Iterable[Figure | FailedFigure] = ()
    """Read only for a report, so slow computations can be lazy."""
    details: Iterable[Detail] = ()
    """Consumed once, by the writer: one pass over the answers writes all long files."""
    settings: Mapping[str, Cell | list[str]] = field(default_factory=dict)
    not_available: tuple[str, ...] = ()
    """Parts without input, each with what is missing."""
    missing: int = 0  #: tasks of the current plan that are missing from the run
    stale: int = 0  #: stored answers that are not in the current plan
    comparable: Mapping[str, Comparable] = field(default_factory=dict)
    """Comparable metrics by model, in reading order."""
    labelled: Mapping[str, Callable[[], Labels]] = field(default_factory=dict)
    """Functions that return a model's labels, for the agreement of models.

    They too are called after the scoring.
    """
    bookable: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    """Functions that return a model's data for the job's `causes`, if it has any.

    They too are called after the scoring.
    """
    units: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Number of units of a model's cost, such as `record`, by model.

    Costs are not part of a scorecard; `operations.json` divides them by these.
    """
    history_entry: HistoryEntry | None = None  #: None: the job has no history
    frame: Callable[[], Any] | None = None
    """Returns what the metrics were computed from: see `runner.evaluation`. None: the
    job has no such frame."""
