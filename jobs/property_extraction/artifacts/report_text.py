"""`report.txt`: a scoring as a text to read, to print and to file away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from jobs.property_extraction.grounding.quote import Level
from jobs.property_extraction.measuring.limits import findings, told
from jobs.property_extraction.measuring.rates import WORDS, rates_of
from jobs.property_extraction.measuring.results import Column as Model
from jobs.property_extraction.measuring.results import Results
from jobs.property_extraction.measuring.statuses import NUMBERS, UNITS
from jobs.property_extraction.settings import INPUTS
from jobs.text import TextColumn, hanging_lines, number, one_line, shortened, text_table
from runner.scorecard import Artifact, Metric

MISMATCHES = 10
"""Pairs of names that are listed."""

NAME_CELLS = 35
"""Of a property's name in a table."""
PAIR_CELLS = 25
"""Of each name of a pair."""

DIGITS = 16
"""Of an input's SHA-256; `operations.json` and the log have all."""


def report(results: Results) -> Artifact:
    """The report of all models."""
    lines = _Report(results).lines()
    return Artifact(name="report.txt", text="".join(f"{line}\n" for line in lines))


@dataclass(frozen=True, slots=True)
class _Report:
    results: Results

    def lines(self) -> Iterator[str]:
        yield "Property extraction"
        yield from self._inputs()
        yield from self._options()
        yield from self._limits()
        for model in self.results.columns.values():
            yield from self._model(model)
        yield from self._definitions()

    def _inputs(self) -> Iterator[str]:
        yield from _title("Inputs")
        # the name alone: where a file lies changes no number
        named = [
            (own.setting, own.path.replace("\\", "/").rsplit("/")[-1], own.sha256)
            for own in self.results.dataset.rules
        ]
        yield from text_table(
            [
                _words("setting", (setting for setting, _, _ in named)),
                _words("file", (name for _, name, _ in named)),
                _words("SHA-256", (digest[:DIGITS] for _, _, digest in named)),
            ]
        )
        dataset = self.results.dataset
        rows = f"{len(dataset.truth):,}, {dataset.truth_blank:,} without a value apart"
        yield f"  truth rows {rows}"
        aliases = dataset.aliases
        yield f"  alias set  {aliases.id} ({aliases.status_mix})"

    def _options(self) -> Iterator[str]:
        settings = self.results.dataset.settings
        yield from _title(f"Options, profile {settings.profile}")
        options = settings.model_dump(mode="json", exclude={*INPUTS, "profile"})
        shown = ", ".join(f"{name}={value}" for name, value in options.items())
        yield from hanging_lines("  ", shown)

    def _limits(self) -> Iterator[str]:
        yield from _title("What the numbers do not show, and what was left out")
        found = [
            *self.results.dataset.findings,
            *findings(self.results),
        ]
        for own in found:
            yield from hanging_lines("  - ", one_line(told(own)))
        if not found:
            yield "  nothing was noticed"

    def _model(self, model: Model) -> Iterator[str]:
        known = {metric.path: metric for metric in model.metrics}
        yield ""
        yield "=" * 80
        yield from hanging_lines("", f"Model {one_line(model.model)}")
        if len(model.replicates) > 1:
            yield f"{len(model.replicates):,} replicates: means; tables of the first"
        yield from self._papers(model)
        yield from _rates(known)
        yield from _statuses(known)
        yield from _encompassment(model, known)
        yield from _properties(self.results, model)
        yield from _mismatches(model)

    def _papers(self, model: Model) -> Iterator[str]:
        yield from _title("Papers")
        fates = model.first.fates
        outcomes = fates.predicted.outcomes
        every = {
            *fates.dataset.truth_by_paper,
            *outcomes,
            *(row.refno for row in fates.predictions),
        }
        yield f"  total   {len(every):>6,}"
        yield f"  scored  {len(fates.papers):>6,}"
        reasons = Counter(
            f"{own.state} ({own.reason})" if own.reason else str(own.state)
            for own in outcomes.values()
            if own.state != "scored"
        )
        for reason, n in sorted(reasons.items()):
            yield f"  {one_line(reason)}: {n:,}"

    def _definitions(self) -> Iterator[str]:
        yield ""
        yield "=" * 80
        yield "Definitions"
        said: dict[str, str] = {}
        for model in self.results.columns.values():
            for metric in model.metrics:
                said.setdefault(metric.path, metric.definition)
        for path, definition in said.items():
            yield from hanging_lines(f"  {path}: ", definition)


def _title(text: str) -> Iterator[str]:
    yield ""
    yield text


def _words(title: str, cells: Iterable[str]) -> TextColumn:
    return TextColumn(
        title=title, cells=[one_line(own) for own in cells], has_words=True
    )


def _numbers(
    title: str, cells: Iterable[float | None], decimals: int = 3
) -> TextColumn:
    return TextColumn(title=title, cells=[number(own, decimals) for own in cells])


def _rates(known: Mapping[str, Metric]) -> Iterator[str]:
    yield from _title("Rates")
    tp, fp, fn = (known[path].value or 0 for path in ("tp", "fp", "fn"))
    yield f"  TP {tp:,}  FP {fp:,}  FN {fn:,}"
    paths = [
        *WORDS,
        *(f"macro.{name}" for name in WORDS),
        *(f"macro.{name}~defined" for name in WORDS),
        *(f"{name}~failed_as_empty" for name in ("recall", "f1")),
        *(f"grounded.{name}" for name in WORDS),
    ]
    shown = [known[path] for path in paths if path in known]
    yield from text_table(
        [
            _words("metric", (own.path for own in shown)),
            _numbers("value", (own.value for own in shown), 4),
            _numbers("from", (own.lo for own in shown), 4),
            _numbers("to", (own.hi for own in shown), 4),
            TextColumn(
                title="n", cells=[f"{own.n_defined or own.n:,}" for own in shown]
            ),
        ]
    )


def _statuses(known: Mapping[str, Metric]) -> Iterator[str]:
    yield from _title("Rows")
    for title, prefix, words in (
        ("", "", ("rows", "abstained", "repeats")),
        ("units", "units.", UNITS),
        ("numbers", "numbers.", NUMBERS),
        ("of properties in SI", "numbers.si.", NUMBERS),
        ("quotes", "grounding.", tuple(Level)),
    ):
        counts = "  ".join(f"{name} {known[prefix + name].value:,}" for name in words)
        yield from hanging_lines(f"  {title:<20}", counts)
    for path in ("fabricated_quote_rate", "value_in_quote", "value_in_text"):
        metric = known[path]
        yield f"  {path:<22}{number(metric.value)} of {metric.n:,}"


def _encompassment(model: Model, known: Mapping[str, Metric]) -> Iterator[str]:
    yield from _title("Encompassment: misses whose name was found")
    share, by_value = (
        known[path].value for path in ("encompassment", "encompassment~fn_values")
    )
    aliases = model.first.aliases
    yield (
        f"  {known['name_matches'].value:,} of {known['misses'].value:,} (paper, "
        f"property): {number(share, 1)}%; of missed values {number(by_value, 1)}%"
    )
    yield f"  alias set {aliases.id} ({aliases.status_mix})"


def _properties(results: Results, model: Model) -> Iterator[str]:
    """Every property, those with the most misses first."""
    counts = model.first.counts
    cells = counts.by_name()
    precision, recall = (rates_of(cells, name) for name in ("precision", "recall"))
    order = sorted(
        range(len(counts.names)), key=lambda at: (-int(cells.fn[at]), counts.names[at])
    )
    rubric = results.dataset.rubric
    yield from _title(f"Properties ({len(order):,}), by misses")
    yield from text_table(
        [
            _names("property", (counts.names[at] for at in order), NAME_CELLS),
            *(
                TextColumn(title=title, cells=[f"{int(own[at]):,}" for at in order])
                for title, own in (("tp", cells.tp), ("fp", cells.fp), ("fn", cells.fn))
            ),
            _numbers("P", (precision[at] for at in order), 2),
            _numbers("R", (recall[at] for at in order), 2),
            _words("rubric", (str(rubric.kind(counts.names[at])) for at in order)),
        ]
    )


def _mismatches(model: Model) -> Iterator[str]:
    every = [own for own in model.mismatches.candidates if own.pred_name != own.gt_name]
    found = every[:MISMATCHES]
    yield from _title(f"Largest name mismatches, {len(found):,} of {len(every):,}")
    if found:
        yield from text_table(
            [
                TextColumn(title="papers", cells=[f"{own.count:,}" for own in found]),
                _numbers("similar", (own.avg_sim for own in found)),
                TextColumn(
                    title="values", cells=[f"{own.value_hits:,}" for own in found]
                ),
                _names("predicted", (own.pred_name for own in found), PAIR_CELLS),
                _names("missed", (own.gt_name for own in found), PAIR_CELLS),
            ]
        )


def _names(title: str, names: Iterable[str], width: int) -> TextColumn:
    """Names of properties: they differ at their ends too, so the middle is cut."""
    return TextColumn(
        title=title,
        cells=[shortened(one_line(own), width) for own in names],
        has_words=True,
    )
