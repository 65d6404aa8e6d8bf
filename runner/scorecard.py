"""Defines results of a scoring: metrics with definitions, tables, findings, figures.

Figures are values too: they describe content and meaning; drawing is done elsewhere.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal, TypeAlias

from store.results import ItemParts, Milestone

Number: TypeAlias = float | int | None
"""A coordinate; None is undefined and is left out."""

Numbers: TypeAlias = tuple[Number, ...]

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
"""Names become file names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One direction of a panel."""

    label: str = ""  #: with the unit
    lo: float | None = None  #: None: as the marks need
    hi: float | None = None
    names: tuple[str, ...] = ()
    """Names of the places 0, 1, 2, ...; a line break in one begins a second line, such
    as the n below a label."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends, never the same place; None where the marks decide one of them."""
        if self.lo is None or self.hi is None:
            return None
        # a count of nothing runs from 0 to 0
        return self.lo, self.hi if self.hi > self.lo else self.lo + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LineSeries:
    """Points joined by a line."""

    x: Numbers
    y: Numbers
    label: str = ""
    series: int = 0
    steps: bool = False  #: each value holds until the next x
    marked: bool = False  #: a marker on each point
    faint: bool = False  #: one of many, which together are the background


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Single points; *lo* and *hi* are interval ends along the axis of values.

    The axis of values is y, or x where y has names.
    """

    x: Numbers
    y: Numbers
    label: str = ""
    series: int = 0
    lo: Numbers = ()
    hi: Numbers = ()
    notes: tuple[str, ...] = ()  #: a text beside each point


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A bar for each name of the named axis; several `Bars` stand side by side."""

    values: Numbers
    label: str = ""
    series: int = 0
    lo: Numbers = ()
    hi: Numbers = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A part of the bar of each name; several lie on one another, in their order."""

    values: Numbers
    label: str
    series: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts between edges, of which there is one more."""

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    label: str = ""
    series: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The area between two lines, such as an interval at every x."""

    x: Numbers
    lo: Numbers
    hi: Numbers
    label: str = ""
    series: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceLine:
    """A thin line for reference: at one value, or where x = y."""

    way: Literal["vertical", "horizontal", "diagonal"]
    at: float = 0.0  #: no meaning on the diagonal
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heatmap:
    """A number in every cell of a grid of two named axes; the first row is on top."""

    rows: tuple[Numbers, ...]
    label: str  #: what a cell's number is


Mark: TypeAlias = (
    LineSeries | Points | Bars | Stack | Histogram | Band | ReferenceLine | Heatmap
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes with what is drawn between them."""

    marks: tuple[Mark, ...]
    x: Axis
    y: Axis
    title: str = ""
    height: float = 1.0  #: against the other panels of the figure
    square: bool = False  #: both axes as long, as for two rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture for the report and the folder `figures/`.

    Raises:
        ValueError: the name could not be a file's, or there is nothing to draw.
    """

    name: str  #: of its files: lower case, digits, `_` and `-`
    title: str
    caption: str  #: what is shown, how to read it, and over what the intervals are
    panels: tuple[Panel, ...]
    columns: int = 1  #: panels beside one another

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"a figure cannot be called {self.name!r}")
        if not self.panels:
            raise ValueError(f"the figure {self.name!r} has no panel")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFigure:
    """Stands for a figure whose code raised: the report has a finding in its place."""

    name: str  #: of the figure, or of the function that should have made it
    fault: str  #: class, line and beginning of the message


LIMITS = "limits"
"""Where a finding is that speaks of all numbers: what they do not show. A report has a
section of its own for these."""

BASELINES = "baselines.txt"
"""Name of the artifact that says what models add over trivial baselines; what `siftlog
explain` says of a run ends with it."""

Cell: TypeAlias = str | int | float | bool | None
"""A table's cell; None is undefined and renders as blank, null or `n/a`."""


Direction: TypeAlias = Literal["higher", "lower", "neither"]
"""Which values of a metric are better; neither: it describes and does not judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A bound that somebody set for a metric."""

    sense: Literal[">=", ">", "<=", "<"]
    bound: float

    def __str__(self) -> str:
        return f"{self.sense} {self.bound:g}"

    def is_met(self, value: float) -> bool:
        """Whether *value* is on the right side of the bound."""
        return bool(_SENSES[self.sense](value, self.bound))


_SENSES = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One number with everything needed to say what it is."""

    path: str  #: such as "avg_paper_score" or "pipeline.mcq_drug.accuracy"
    value: float | int | None  #: None: undefined (0/0, a mean over nothing)
    n: int  #: how many items it speaks about
    subset: str = ""  #: which items, such as "has_evidence"; empty: all
    n_defined: int | None = None  #: items that had a value, where that can differ
    lo: float | None = None  #: interval ends, 12 significant digits
    hi: float | None = None
    definition: str = ""  #: name@version and every parameter
    note: str | None = None  #: such as "assumes independent questions"
    name: str = ""  #: for readers, such as "Sensitivity, near misses"
    meaning: str = ""  #: what it tells a reader who is no statistician, one sentence
    direction: Direction = "neither"  #: which values are better
    is_headline: bool = False  #: a report begins with it; all others are details
    mean: float | None = None  #: over parts, such as folds, where `value` pools them
    std: float | None = None  #: over the same parts, ddof 1
    target: Target | None = None

    @property
    def label(self) -> str:
        """The name, or the path where the job gives none."""
        return self.name or self.path

    @property
    def verdict(self) -> Literal["pass", "fail", "undecided"] | None:
        """How it stands to its target, decided by its interval and never by its value.

        Pass and fail need the whole interval on one side of the bound. Without an
        interval nothing is decided.
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

    Its name may put it into a folder, as in `openai_gpt-4o/per_query`.

    A table with a row per paper or question is declared without them; they come as
    `StreamedRow`s of its name, in the details.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...] = ()
    caption: str = ""
    is_headline: bool = False  #: a report begins with it
    titles: Mapping[str, str] = field(default_factory=dict)
    """Columns in the words of a reader, such as "Sensitivity"; others by their name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A contradiction, leak or drift that a reader should know of."""

    code: str
    severity: Literal["error", "warn", "info"]
    where: str  #: a file, a model, ..., or `LIMITS`
    message: str  #: one sentence
    n: int = 1
    example: str = ""

    @property
    def line(self) -> str:
        """It as a line of a terminal: how often, and where for instance."""
        example = f", such as {self.example}" if self.example else ""
        occurrences = f" ({self.n:,}{example})" if self.n > 1 or example else ""
        return f"{self.where}: {self.message}{occurrences}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What scoring made of one task, for the monitor and for explain."""

    task: int
    model: str
    stage: str
    key: str
    value: str  #: what was read from the reply
    expected: str
    correct: bool | None  #: None where the task has no right or wrong
    rule: str  #: the parsing rule that fired, or the reason of the failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """A file of the job's own, with the name and form its users expect.

    A file with a line per paper or question is declared empty; its text comes as
    `StreamedLine`s of its name, in the details. A name may put the file into a folder,
    or a folder of a folder, as in `results/openai_gpt-4o/benchmark_CD1.json`.
    """

    name: str
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedRow:
    """The next row of a declared table."""

    table: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedLine:
    """The next piece of a declared artifact, its line end included."""

    artifact: str
    text: str


Detail: TypeAlias = Verdict | StreamedRow | StreamedLine
"""What grows with the number of answers, and so is never held."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedDetails:
    """Everything with a line of its own, made while it is written."""

    verdicts: Iterable[Verdict]
    files: tuple[Iterable[Detail], ...]

    def __iter__(self) -> Iterator[Detail]:
        """The verdicts, and then the rows and lines of each file."""
        return chain(self.verdicts, *self.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemValues:
    """A metric of one model item by item: what comparing it with another model takes.

    What `first` and `second` hold for an item depends on the kind:

        mean             its value; no second
        ratio            what it adds to the numerator, and to the denominator
        auroc, auprc     its label, 0 or 1, and its score, higher is more positive

    An item whose value is undefined is given, with None.
    """

    kind: Literal["mean", "ratio", "auroc", "auprc"]
    items: Sequence[str]  #: keys, each once; models are paired by them
    clusters: Sequence[str]  #: the document that each item is part of
    cluster: str  #: what such a document is called, such as "paper"
    first: Sequence[float | None]
    second: Sequence[float | None] | None = None
    definition: str  #: name@version; two that differ are not compared
    lower_is_better: bool = False
    family: str = ""
    """Metrics of one question, whose tests Holm corrects together.

    All metrics that name none form one more family. A job names the families of the
    metrics that its summary compares, so that `compare` gives the same corrected p.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What one model says of each item in a word, right or wrong."""

    what: str  #: a label is, such as "decision"
    categories: tuple[str, ...]  #: all there are
    items: Sequence[str]  #: keys, each once; models are paired by them
    assigned: Sequence[str | None]  #: None: no word of the list


Comparable: TypeAlias = Mapping[str, Callable[[], ItemValues]]
"""Makers of the values of a model's metrics, by path.

They are called after the scoring, when its answers can no longer be read.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """A change of a metric booked on things that the job knows, such as aliases."""

    metric: str  #: path
    change: int  #: what the table's rows come to
    table: Table


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """What a job wants remembered of a scoring, for `siftlog history`.

    The milestone is partial where answers are missing that its values hang on. That the
    run was unfinished, and what it cost, is added where the scoring is recorded.
    """

    milestone: Milestone
    parts: ItemParts


@dataclass(frozen=True, slots=True, kw_only=True)
class Scorecard:
    """All that one scoring says."""

    models: Mapping[str, tuple[Metric, ...]]  #: in the run's order of models
    summary: str  #: the text that a terminal shows
    headline: str = ""  #: path of the metric that a scoring is judged by
    worth_explaining: str = ""  #: the item a reader should look at first
    tables: tuple[Table, ...] = ()
    findings: tuple[Finding, ...] = ()
    failures: tuple[str, ...] = ()
    """One sentence for each check that was asked for and failed: exit code 6."""
    artifacts: tuple[Artifact, ...] = ()
    built: tuple[str, ...] | None = None
    """Names of the artifacts that the run was made for, where it builds data: a copy of
    the scoring's files is one of these."""
    figures: Iterable[Figure | FailedFigure] = ()
    """Read only where a report is drawn: what takes long to compute may wait for it."""
    details: Iterable[Detail] = ()
    """Consumed once, by the writer: one pass over the answers feeds every long file."""
    settings: Mapping[str, Cell | list[str]] = field(default_factory=dict)
    not_available: tuple[str, ...] = ()
    """Parts that the input has nothing for, each with what is missing."""
    missing: int = 0  #: tasks that the present plan asks for and the run has not
    stale: int = 0  #: stored answers that the present plan no longer asks for
    comparable: Mapping[str, Comparable] = field(default_factory=dict)
    """By model: the metrics that can be compared, in reading order."""
    labelled: Mapping[str, Callable[[], Labels]] = field(default_factory=dict)
    """By model: makers of its labels, which models' agreement is told by.

    They too are called after the scoring.
    """
    bookable: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    """By model: makers of what the job's `causes` books a difference by, if it has any.

    They too are called after the scoring.
    """
    units: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By model: how many there are of what its cost is told by, such as `record`.

    What a model cost is no part of a scorecard; `operations.json` divides it by these.
    """
    history_entry: HistoryEntry | None = None  #: None: the job has no history
