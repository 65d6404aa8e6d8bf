"""Findings about a scoring: limits of its numbers, and rows or papers left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from jobs.kit.grounding import GroundingLevel
from jobs.kit.inputs.column_map import near_words
from jobs.kit.text_format import plural
from jobs.property_extraction.predictions import PaperState
from jobs.property_extraction.rates import FEW
from jobs.property_extraction.results import PropertyResults, ScoredModel
from jobs.property_extraction.row_outcomes import RowOutcome, RowOutcomes
from runner.scorecard import LIMITS, Finding

Severity: TypeAlias = Literal["warn", "info"]


def _limit(
    code: str,
    message: str,
    severity: Severity = "warn",
    *,
    n: int = 1,
    example: str = "",
) -> Finding:
    """Return a finding about the whole scoring."""
    return Finding(
        code=code,
        severity=severity,
        where=LIMITS,
        message=message,
        n=n,
        example=example,
    )


def _cases(
    code: str,
    model: str,
    message: str,
    examples: Sequence[str],
    severity: Severity = "warn",
) -> Iterator[Finding]:
    """Yield a finding about a model's cases, if any; the first is the example."""
    if examples:
        yield Finding(
            code=code,
            severity=severity,
            where=model,
            message=message,
            n=len(examples),
            example=examples[0],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcludedRows:
    """Properties that no count includes, and units that are unreadable."""

    properties: int = 0  #: of the rubric that no rule can compare
    is_chosen: bool = False  #: left out by a setting; else pymatgen is missing
    truth: int = 0  #: rows of such properties
    all_truth: int = 0
    has_truth: bool = True
    predicted: Mapping[str, int] = field(default_factory=dict)
    """Rows of such properties by model, of the first replicate."""
    lacks_pint: bool = False  #: whether pint is missing for the conversion of units

    @classmethod
    def of(cls, results: PropertyResults) -> ExcludedRows:
        """Return the rows that a scoring leaves out."""
        dataset, comparer = results.dataset, results.comparer
        rubric = dataset.rubric
        return cls(
            properties=sum(
                comparer.left_out(prop.kind) for prop in rubric.properties.values()
            ),
            is_chosen=dataset.settings.pymatgen == "leave_out",
            truth=sum(
                comparer.left_out(rubric.kind(row.name)) for row in dataset.truth
            ),
            all_truth=len(dataset.truth),
            has_truth=dataset.has_truth,
            predicted={
                model: column.first.row_outcomes.prediction_outcomes.count(
                    RowOutcome.LEFT_OUT
                )
                for model, column in results.columns.items()
            },
            lacks_pint=dataset.settings.units == "convert" and not comparer.has_pint,
        )

    @property
    def reason(self) -> str:
        """Reason why compositions are not compared."""
        return "pymatgen=leave_out" if self.is_chosen else "pymatgen is not installed"

    @property
    def note(self) -> str:
        """End of a caption; empty if nothing is left out."""
        return "".join(f" {finding.message}" for finding in self.findings())

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each limit."""
        if self.properties:
            predicted = sum(self.predicted.values())
            rows = plural(self.all_truth, "truth row")
            truth = f"{self.truth:,} of {rows} and " if self.has_truth else ""
            yield _limit(
                "left_out",
                f"Left out of all counts: "
                f"{plural(self.properties, 'property', 'properties')} compared as "
                f"compositions ({self.reason}), with {truth}"
                f"{plural(predicted, 'predicted row')}.",
                "info" if self.is_chosen else "warn",
                n=self.truth + predicted,
            )
        if self.lacks_pint:
            yield _limit(
                "no_pint",
                "Units that only pint can read (it is not installed) are unknown, and "
                "their numbers are compared as they are.",
            )


RAISE = "raise --max-output-tokens, or read smaller parts with --max-chars"
"""Remedy for replies that end at the token limit."""

COUNTED: Mapping[str, tuple[Severity, str]] = {
    "blank": ("info", "Rows have no value and are left out."),
    "dropped": (
        "info",
        "Entries of replies have no property or no value and are left out.",
    ),
    "cut": ("info", "Rows lie beyond the most that one reply may have."),
    "partial": (
        "warn",
        f"Replies end at the token limit (truncated): complete rows are kept; {RAISE}.",
    ),
    "parted": ("info", "Papers were read in parts (--chunk, --max-chars)."),
    "repeated": ("info", "Rows repeat a row of an earlier part and are merged."),
}
"""Findings about entries of replies and files, by key of
`ReplicatePredictions.counts`."""

UNSCORED: Mapping[PaperState, str] = {
    PaperState.FAILED: "Papers have no reply that can be read and are in no count.",
    PaperState.SKIPPED: "Papers were not sent and are not counted.",
    PaperState.OPEN: "Papers are not answered yet and are in no count.",
}
"""Findings about papers that no count includes."""

PERFECT = 2
"""Least number of rows for a finding about a perfect score; one row proves nothing."""


def findings(results: PropertyResults) -> Iterator[Finding]:
    """Yield the findings that readers of the numbers need, general ones first."""
    yield from ExcludedRows.of(results).findings()
    yield from _of_papers(results)
    yield from _of_rubric(results)
    yield from _of_aliases(results)
    for column in results.columns.values():
        yield from _of_model(column)


def finding_lines(finding: Finding) -> str:
    """Return a finding as a sentence; a limit has no place."""
    return finding.message if finding.where == LIMITS else finding.line


def _of_papers(results: PropertyResults) -> Iterator[Finding]:
    m = len(results.papers)
    has_truth = results.dataset.has_truth
    if not m:
        common = has_truth and results.dataset.settings.paper_set == "common"
        reason = (
            "no paper is in both truth and predictions" if common else "none is read"
        )
        yield _limit("no_papers", f"No paper is scored: {reason}.")
    elif m < FEW and has_truth:
        verb, rough = (
            ("is", "an interval by paper needs two")
            if m == 1
            else ("are", "intervals by paper are rough")
        )
        message = f"Only {plural(m, 'paper')} {verb} scored: {rough}."
        yield _limit("few_papers", message, "info", n=m)


def _of_rubric(results: PropertyResults) -> Iterator[Finding]:
    """Yield a finding if the rubric names none of the truth's properties."""
    rubric = results.dataset.rubric.properties
    names = {row.name for row in results.dataset.truth}
    if not rubric or not names or names & rubric.keys():
        return
    first = min(names)
    near = near_words(first, rubric)
    yield _limit(
        "rubric_names_none",
        "The rubric names none of the properties of the truth, so all values "
        "are compared as exact texts: do both files name properties alike?",
        n=len(names),
        example=f"{first}; nearest in the rubric: {near}" if near else first,
    )


def _of_aliases(results: PropertyResults) -> Iterator[Finding]:
    """Yield findings about the effect of aliases, if any act."""
    acting = [column.first.aliases for column in results.columns.values()]
    entries = {entry for alias_set in acting for entry in alias_set.accepted}
    if not entries or not results.dataset.has_truth:
        return
    drafts = sum(entry.is_draft for entry in entries)
    if drafts:
        yield _limit(
            "draft_aliases",
            f"Of {plural(len(entries), 'alias', 'aliases')} that act {drafts:,} are "
            "unverified: encompassment is meaningless then.",
            n=drafts,
        )
    if not results.dataset.settings.crossfit:
        yield _limit(
            "in_sample",
            "If the aliases were chosen by the mismatches of these papers, "
            "whose truth steers the candidates, the score is in-sample: crossfit=true "
            "scores each paper by drafts from the others.",
            "info",
            n=len(entries),
        )
    several = sum(
        len(renamed_name.targets) > 1
        for column in results.columns.values()
        for renamed_name in column.first.row_outcomes.renamed
    )
    if several:
        yield _limit(
            "target_sets",
            "Target sets act: rows may match any of several names, which is "
            "more generous than one.",
            "info",
            n=several,
        )


def _of_model(column: ScoredModel) -> Iterator[Finding]:
    outcomes, model = column.first.row_outcomes, column.model
    yield from _papers_of(model, outcomes)
    yield from _of_copies(model, outcomes)
    for word, (severity, message) in COUNTED.items():
        n = sum(
            replicate.row_outcomes.predicted.counts.get(word, 0)
            for replicate in column.replicates
        )
        if n:
            yield Finding(
                code=word, severity=severity, where=model, message=message, n=n
            )
    least = outcomes.dataset.settings.min_grounding
    yield from _cases(
        "ungrounded",
        model,
        f"Rows whose quote matches its paper less well than min_grounding={least} "
        "are left out.",
        [row.refno for _, row in outcomes.predicted_as(RowOutcome.UNGROUNDED)],
    )
    yield from _cases(
        "fabricated_quotes",
        model,
        "Quotes do not occur in their paper.",
        [
            row.refno
            for row, grounding in zip(
                outcomes.predictions, column.first.groundings, strict=True
            )
            if grounding.quote.level is GroundingLevel.ABSENT
        ],
    )
    yield from _cases(
        "flagged",
        model,
        "Rows were withdrawn, or their quote was not found again, and count all the "
        "same.",
        [row.refno for row in outcomes.predictions if row.flag],
        "info",
    )


def _of_copies(model: str, outcomes: RowOutcomes) -> Iterator[Finding]:
    """Yield a finding if predictions equal the truth, which is suspicious."""
    n = len(list(outcomes.predicted_as(RowOutcome.TP)))
    is_off = any(outcomes.predicted_as(RowOutcome.FP))
    if n < PERFECT or is_off or any(outcomes.truth_as(RowOutcome.FN)):
        return
    verbatim = sum(
        outcomes.predictions[index].value == outcomes.truth[partner].value
        for index, partner in outcomes.pairs()
    )
    yield Finding(
        code="all_correct",
        severity="warn",
        where=model,
        message=f"Every row is correct and none is missed; {verbatim:,} of "
        f"{n:,} values equal the truth letter by letter. Was the column of "
        "the truth read as the prediction?",
        n=n,
    )


def _one_sided(
    model: str, outcomes: RowOutcomes, stated: AbstractSet[str]
) -> Iterator[Finding]:
    """Yield findings about papers that only the truth or only the predictions have."""
    curated = outcomes.dataset.truth_by_paper.keys()
    in_common = outcomes.dataset.settings.paper_set == "common"
    if stated and not stated & curated:
        yield Finding(
            code="none_in_common",
            severity="warn",
            where=model,
            message="Truth and predictions have no paper in common: do their refnos "
            "name papers alike?",
        )
    consequence = "is not counted" if in_common else "counts as false positives"
    yield from _cases(
        "not_in_truth",
        model,
        f"Papers have no truth; their predictions {consequence}.",
        sorted(stated - curated),
    )
    consequence = "is not counted" if in_common else "is missed"
    yield from _cases(
        "not_predicted",
        model,
        f"Papers have truth but no prediction; their truth {consequence}.",
        sorted(curated - stated - outcomes.predicted.outcomes.keys()),
        "info",
    )


def _papers_of(model: str, outcomes: RowOutcomes) -> Iterator[Finding]:
    """Yield findings about one-sided papers, and those without a readable reply."""
    stated = {row.refno for row in outcomes.predictions}
    if outcomes.dataset.has_truth:
        yield from _one_sided(model, outcomes, stated)
    for state, message in UNSCORED.items():
        reasons = {
            refno: outcome.reason
            for refno, outcome in sorted(outcomes.predicted.outcomes.items())
            if outcome.state is state
        }
        is_cut = "truncated" in reasons.values()
        advice = f" Truncated replies: --partial keep, and {RAISE}."
        yield from _cases(
            f"papers_{state}",
            model,
            message + advice * is_cut,
            [
                f"{refno} ({reason})" if reason else refno
                for refno, reason in reasons.items()
            ],
            "info" if state is PaperState.SKIPPED else "warn",
        )
