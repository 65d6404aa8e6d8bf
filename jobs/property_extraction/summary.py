"""Texts of a scoring: the summary for a terminal of 80 columns, and `report.txt`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from jobs.kit.grounding import GroundingLevel
from jobs.kit.summary import summary_text
from jobs.kit.text_format import UNDEFINED, fixed, plural, with_ends
from jobs.property_extraction.caveats import finding_lines, findings
from jobs.property_extraction.predictions import PaperState
from jobs.property_extraction.rates import WORDS, rates_of
from jobs.property_extraction.results import PropertyResults, ScoredModel
from jobs.property_extraction.row_metrics import NUMBERS, UNITS
from jobs.property_extraction.row_outcomes import RowOutcome
from jobs.property_extraction.settings import INPUTS
from runner.scorecard import LIMITS, Artifact, Finding, Metric
from store.document import (
    WIDTH,
    Block,
    Cell,
    Fact,
    Heading,
    Numbers,
    TableBlock,
    Words,
    as_text,
    number,
)
from store.printable import one_line, shortened

QUOTES = {
    "fabricated": "fabricated_quote_rate",
    "grounded": "grounded_rate",
    "hold number": "value_in_quote",
}

RATES = {"P": "precision", "R": "recall", "F1": "f1"}


def run_text(results: PropertyResults, findings: Sequence[Finding]) -> str:
    """Return the summary of a scoring for a terminal."""
    blocks = [*_head(results)]
    for column in results.columns.values():
        blocks += _model(results, column)
    for finding in findings:
        if finding.severity != "info" or finding.where == LIMITS:
            blocks.append(Fact("note: ", finding_lines(finding), width=0))
    return summary_text(blocks)


def _head(results: PropertyResults) -> Iterator[Block]:
    settings, aliases = results.dataset.settings, results.dataset.aliases
    yield f"Property extraction   profile {settings.profile}"
    if settings.crossfit:
        yield "aliases: of each paper the draft that the others make"
    elif aliases.entries or results.dataset.has_truth:
        acting = f"{aliases.id} ({aliases.status_mix})" if aliases.entries else "none"
        yield Fact("aliases: ", acting, width=0)


def _model(results: PropertyResults, column: ScoredModel) -> Iterator[Block]:
    by_path = column.by_path

    def n(path: str) -> str:
        value = by_path[path].value or 0
        return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"

    yield shortened(one_line(column.model), WIDTH)
    has_truth = results.dataset.has_truth
    truth = f", {_truth(column):,} truth" if has_truth else ""
    yield (
        f"  {_papers(column)}   rows {n('rows')} predicted{truth}   "
        f"abstained {n('abstained')}"
    )
    if has_truth:
        yield f"  TP {n('tp')}  FP {n('fp')}  FN {n('fn')}"
        yield "  all rows     " + _rates(by_path, "")
        yield "  by property  " + _rates(by_path, "macro.")
        if results.dataset.settings.units == "convert":
            yield "  units    " + _statuses(by_path, "units", UNITS)
    yield "  numbers  " + _statuses(by_path, "numbers", NUMBERS)
    if len(results.dataset.papers):
        yield "  quotes   " + "  ".join(
            f"{name} {_percent(by_path[path])}" for name, path in QUOTES.items()
        )
    if not has_truth:
        return
    share = by_path["encompassment"].value
    yield (
        f"  misses {n('misses')}, name found in {n('name_matches')} "
        f"({fixed(share, '.1f')}{'' if share is None else '%'})"
    )
    yield from _aliases(column)


def _aliases(column: ScoredModel) -> Iterator[Block]:
    """Yield the effect of the aliases that act."""
    replicate = column.first
    if not replicate.aliases.accepted:
        return
    before, after = (
        outcomes.prediction_outcomes.count(RowOutcome.TP)
        for outcomes in (column.unrenamed, replicate.row_outcomes)
    )
    renamed = [row.entries for row in replicate.row_outcomes.renamed if row.entries]
    acting = {entry.key for entries in renamed for entry in entries}
    idle = len(replicate.aliases.accepted) - len(acting)
    yield (
        f"  aliases  {plural(len(renamed), 'row')} renamed, TP {before:,} without, "
        f"{after:,} with ({after - before:+,}); {idle:,} renamed none"
    )


def _papers(column: ScoredModel) -> str:
    """Return the number of scored papers, and of the others by state."""
    predicted = column.first.row_outcomes.predicted
    states = Counter(outcome.state for outcome in predicted.outcomes.values())
    del states[PaperState.SCORED]  # a counter ignores a missing key
    rest = "".join(f", {n:,} {state}" for state, n in sorted(states.items()))
    labels = {"parted": "in parts", "partial": "truncated"}
    read = ", ".join(
        f"{n:,} {word}"
        for count, word in labels.items()
        if (n := predicted.counts.get(count, 0))
    )
    details = f" ({read})" if read else ""
    read = "scored" if column.first.row_outcomes.dataset.has_truth else "read"
    return f"papers {len(column.first.row_outcomes.papers):,} {read}{details}{rest}"


def _truth(column: ScoredModel) -> int:
    """Count the truth rows that count."""
    rows = column.first.row_outcomes.truth_as(RowOutcome.TP, RowOutcome.FN)
    return len(list(rows))


def _rates(by_path: Mapping[str, Metric], prefix: str) -> str:
    return "  ".join(
        f"{name} {with_ends(by_path[prefix + word])}" for name, word in RATES.items()
    )


def _statuses(
    by_path: Mapping[str, Metric], prefix: str, statuses: Iterable[str]
) -> str:
    values = {status: by_path[f"{prefix}.{status}"].value for status in statuses}
    counts = (f"{name.replace('_', ' ')} {n:,}" for name, n in values.items() if n)
    return "  ".join(counts) or "none"


def _percent(metric: Metric) -> str:
    if metric.value is None:
        return UNDEFINED
    return f"{metric.value:.1%} of {metric.n:,}"


MISMATCHES = 10
"""Pairs of names in the report."""

NAME_CELLS = 35
"""Cells of a property's name in a table."""
PAIR_CELLS = 25
"""Cells of each name of a pair."""

DIGITS = 16
"""Digits of an input's SHA-256; `operations.json` and the log have all."""


def report(results: PropertyResults) -> Artifact:
    """Return the report of all models."""
    return Artifact(name="report.txt", text=f"{as_text(_report(results))}\n")


def _report(results: PropertyResults) -> Iterator[Block]:
    yield "Property extraction"
    yield from _inputs(results)
    settings = results.dataset.settings
    yield Heading(f"Options, profile {settings.profile}")
    options = settings.model_dump(mode="json", exclude={*INPUTS, "profile"})
    listed = ", ".join(f"{name}={value}" for name, value in options.items())
    yield Fact("", listed, indent=2, width=0)
    yield Heading("Limits of the numbers, and excluded data")
    all_findings = [*results.dataset.findings, *findings(results)]
    for finding in all_findings:
        yield Fact("- ", finding_lines(finding), indent=2, width=0)
    if not all_findings:
        yield "  no findings"
    for model in results.columns.values():
        yield from _report_model(results, model)
    yield from ("", "=" * 80, "Definitions")
    definitions: dict[str, str] = {}
    for model in results.columns.values():
        for metric in model.metrics:
            definitions.setdefault(metric.path, metric.definition)
    for path, definition in definitions.items():
        yield Fact(f"{path}: ", definition, indent=2, width=0)


def _inputs(results: PropertyResults) -> Iterator[Block]:
    yield Heading("Inputs")
    dataset = results.dataset
    # only the name: the location of a file changes no number
    file_rows = [
        (
            input_file.setting,
            input_file.path.replace("\\", "/").rsplit("/")[-1],
            input_file.sha256[:DIGITS],
        )
        for input_file in dataset.rules
    ]
    yield TableBlock([Words("setting"), Words("file"), Words("SHA-256")], file_rows)
    rows = f"{len(dataset.truth):,}, {dataset.truth_blank:,} without a value left out"
    yield f"  truth rows {rows}"
    aliases = dataset.aliases
    yield f"  alias set  {aliases.id} ({aliases.status_mix})"


def _report_model(results: PropertyResults, model: ScoredModel) -> Iterator[Block]:
    by_path = model.by_path
    yield from ("", "=" * 80)
    yield Fact("", f"Model {model.model}", width=0)
    if len(model.replicates) > 1:
        yield f"{len(model.replicates):,} replicates: means; tables of the first"
    yield from _report_papers(model)
    yield from _report_rates(by_path)
    yield from _report_statuses(by_path)
    yield from _encompassment(model)
    yield from _properties(results, model)
    yield from _mismatches(model)


def _report_papers(model: ScoredModel) -> Iterator[Block]:
    yield Heading("Papers")
    row_outcomes = model.first.row_outcomes
    outcomes = row_outcomes.predicted.outcomes
    total = {
        *row_outcomes.dataset.truth_by_paper,
        *outcomes,
        *(row.refno for row in row_outcomes.predictions),
    }
    yield f"  total   {len(total):>6,}"
    yield f"  scored  {len(row_outcomes.papers):>6,}"
    reasons = Counter(
        f"{outcome.state} ({outcome.reason})" if outcome.reason else str(outcome.state)
        for outcome in outcomes.values()
        if outcome.state != "scored"
    )
    for reason, n in sorted(reasons.items()):
        yield f"  {reason}: {n:,}"


def _report_rates(by_path: Mapping[str, Metric]) -> Iterator[Block]:
    yield Heading("Rates")
    tp, fp, fn = (by_path[path].value or 0 for path in ("tp", "fp", "fn"))
    yield f"  TP {tp:,}  FP {fp:,}  FN {fn:,}"
    paths = [
        *WORDS,
        *(f"macro.{name}" for name in WORDS),
        *(f"macro.{name}~defined" for name in WORDS),
        *(f"{name}~failed_as_empty" for name in ("recall", "f1")),
        *(f"grounded.{name}" for name in WORDS),
    ]
    metrics = [by_path[path] for path in paths if path in by_path]
    numbers = (Numbers(title) for title in ("value", "from", "to", "n"))
    yield TableBlock(
        [Words("metric"), *numbers],
        [
            (
                metric.path,
                *map(number, (metric.value, metric.lo, metric.hi)),
                metric.n_defined or metric.n,
            )
            for metric in metrics
        ],
    )


def _report_statuses(by_path: Mapping[str, Metric]) -> Iterator[Block]:
    yield Heading("Rows")
    for title, prefix, words in (
        ("", "", ("rows", "abstained", "repeats")),
        ("units", "units.", tuple(UNITS)),
        ("numbers", "numbers.", tuple(NUMBERS)),
        ("of properties in SI", "numbers.si.", tuple(NUMBERS)),
        ("quotes", "grounding.", tuple(GroundingLevel)),
    ):
        counts = "  ".join(f"{name} {by_path[prefix + name].value:,}" for name in words)
        yield Fact(title, counts, indent=2, width=20)
    for path in ("fabricated_quote_rate", "value_in_quote", "value_in_text"):
        metric = by_path[path]
        yield f"  {path:<22}{number(metric.value)} of {metric.n:,}"


def _encompassment(model: ScoredModel) -> Iterator[Block]:
    yield Heading("Encompassment: misses whose name was found")
    by_path = model.by_path
    share = by_path["encompassment"].value
    by_value = by_path["encompassment~fn_values"].value
    aliases = model.first.aliases
    yield (
        f"  {by_path['name_matches'].value:,} of {by_path['misses'].value:,} (paper, "
        f"property): {number(share, 1)}%; of missed values {number(by_value, 1)}%"
    )
    yield f"  alias set {aliases.id} ({aliases.status_mix})"


def _properties(results: PropertyResults, model: ScoredModel) -> Iterator[Block]:
    """Yield a table of every property, those with the most misses first."""
    counts = model.first.counts
    cells = counts.by_name()
    precision, recall = (rates_of(cells, name) for name in ("precision", "recall"))
    columns = zip(counts.names, cells.rows(), precision, recall, strict=True)
    order = sorted(columns, key=lambda row: (-row[1][2], row[0]))
    rubric = results.dataset.rubric
    yield Heading(f"Properties ({len(order):,}), by misses")
    rows: list[tuple[Cell, ...]] = [
        (name, *of_name, number(p, 2), number(r, 2), str(rubric.kind(name)))
        for name, of_name, p, r in order
    ]
    numbers = (Numbers(name) for name in ("tp", "fp", "fn", "P", "R"))
    name = Words("property", NAME_CELLS, keeps_end=True)
    yield TableBlock([name, *numbers, Words("rubric")], rows)


def _mismatches(model: ScoredModel) -> Iterator[Block]:
    every = [c for c in model.mismatches.candidates if c.pred_name != c.gt_name]
    largest = every[:MISMATCHES]
    yield Heading(f"Largest name mismatches, {len(largest):,} of {len(every):,}")
    if largest:
        yield TableBlock(
            [
                Numbers("papers"),
                Numbers("similar", decimals=3),
                Numbers("values"),
                Words("predicted", PAIR_CELLS, keeps_end=True),
                Words("missed", PAIR_CELLS, keeps_end=True),
            ],
            [(c.count, c.avg_sim, c.value_hits, *c.names) for c in largest],
        )
