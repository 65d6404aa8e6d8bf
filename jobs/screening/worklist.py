"""Writes the files for the work after a library is screened.

A ranking for reading, reasons, the distribution of probabilities, disagreements of
models, and the library as RIS with a tag for each decision. None of it needs labels. It
is written if some record has no label, or the records are those of a library.

Conventions of RIS. Zotero converts `KW` to tags, split at semicolons, and `N1` to a
note (see its RIS translator). Rayyan keeps `N1` and appends to it; its own form there,
`RAYYAN-INCLUSION: {"name"=>"Included"}`, is the decision of a person (see its help page
on export files), so a model's decision is not written in it. Nor is it written as
`ASReview_relevant`, which ASReview reads as a label. Covidence sets the stage of a
whole file at import (see guides of libraries), which is why there is a file for each
decision. This is based on code and documentation: no file was imported into Rayyan or
Covidence, which require an account.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from jobs.kit.metrics.columns import as_value, quantiles
from jobs.kit.tables import (
    StreamedTable,
    TableOf,
    count,
    number,
    per_key,
    text,
)
from jobs.kit.text_format import slugs
from jobs.screening.data import NO_TEXT, ArticleText
from jobs.screening.decisions import OUTCOMES, READABLE, DecisionView, text_rank
from jobs.screening.library import Tags
from jobs.screening.results import ScreeningPair, ScreeningResults
from runner.scorecard import Artifact, StreamedLine, Table


class _ListedRecord(NamedTuple):
    """A record in the order of a model."""

    view: DecisionView
    at: int
    rank: int  #: from 1, within its review
    text: ArticleText

    @property
    def review(self) -> str:
        return self.view.records.reviews[int(self.view.records.review[self.at])]

    @property
    def paper(self) -> str:
        return self.view.records.papers[self.at]

    @property
    def decision(self) -> str:
        return OUTCOMES[int(self.view.outcome[self.at])]

    @property
    def p(self) -> float | None:
        return as_value(self.view.decisions.p[self.at])

    @property
    def is_read(self) -> bool:
        return int(self.view.outcome[self.at]) in READABLE

    @property
    def reason_code(self) -> str | None:
        codes = self.view.decisions.reason_code
        return (codes[self.at] or None) if codes and self.is_read else None

    @property
    def reason(self) -> str | None:
        reasons = self.view.decisions.reason
        return (reasons[self.at] or None) if reasons and self.is_read else None


RANKING = TableOf[_ListedRecord](
    name="ranking",
    columns=(
        text("model", lambda row: row.view.decisions.model),
        text("review_pmid", lambda row: row.review),
        count("rank", lambda row: row.rank, "1: read first"),
        text("paper_pmid", lambda row: row.paper),
        text("decision", lambda row: row.decision),
        number("p_include", lambda row: row.p),
        text("reason_code", lambda row: row.reason_code),
        text("reason", lambda row: row.reason),
        text("title", lambda row: row.text.title or None),
    ),
    caption="Records in the order in which each model would have them read.",
)


class _Disagreement(NamedTuple):
    review: str
    paper: str
    title: str
    decisions: dict[str, str]
    p: dict[str, float | None]


def _views(results: ScreeningResults) -> list[DecisionView]:
    """Return the views of all records, labelled or not, by model."""
    records = results.predictions.records
    rank = text_rank(records)
    return [
        DecisionView(records, decisions, results.dataset.settings, rank)
        for decisions in results.predictions.decisions
    ]


def _is_worked_with(results: ScreeningResults) -> bool:
    """Return whether the run is of a library, or some records lack labels."""
    has_all = bool(results.predictions.records.is_labelled.all())
    return bool(results.dataset.library) or not has_all


def worklist_tables(results: ScreeningResults) -> tuple[StreamedTable, ...]:
    """Return the ranking of each model, and the disagreements of several models."""
    if not _is_worked_with(results):
        return ()
    ranking = RANKING.streamed(lambda: _ranked(results))
    models = [decisions.model for decisions in results.predictions.decisions]
    if len(models) == 1:
        return (ranking,)
    disagreements = TableOf[_Disagreement](
        name="disagreements",
        columns=(
            text("review_pmid", lambda row: row.review),
            text("paper_pmid", lambda row: row.paper),
            text("title", lambda row: row.title or None),
            per_key("{}.decision", models, lambda row, m: row.decisions[m], "text"),
            per_key("{}.p_include", models, lambda row, m: row.p[m], "number"),
        ),
        caption="Records on which the decisions of models differ.",
    )
    return ranking, disagreements.streamed(lambda: _disagreements(results))


def _ranked(results: ScreeningResults) -> Iterator[_ListedRecord]:
    for view in _views(results):
        yield from _listed(results, view)


def _listed(results: ScreeningResults, view: DecisionView) -> Iterator[_ListedRecord]:
    review, rank = -1, 0
    for at in view.order.tolist():
        same = int(view.records.review[at]) == review
        review, rank = int(view.records.review[at]), rank + 1 if same else 1
        yield _ListedRecord(view, at, rank, _text(results, view.records.papers[at]))


def _text(results: ScreeningResults, paper: str) -> ArticleText:
    validation_set = results.dataset.validation_set
    return (
        NO_TEXT if validation_set is None else validation_set.papers.get(paper, NO_TEXT)
    )


def _disagreements(results: ScreeningResults) -> Iterator[_Disagreement]:
    views = _views(results)
    records = results.predictions.records
    outcomes = np.stack([view.outcome for view in views])
    for at in np.flatnonzero((outcomes != outcomes[0]).any(axis=0)).tolist():
        yield _Disagreement(
            review=records.reviews[int(records.review[at])],
            paper=records.papers[at],
            title=_text(results, records.papers[at]).title,
            decisions={v.decisions.model: OUTCOMES[int(v.outcome[at])] for v in views},
            p={v.decisions.model: as_value(v.decisions.p[at]) for v in views},
        )


class _ModelOutcomes(NamedTuple):
    model: str
    outcomes: dict[str, int]
    n_p: int
    p: Sequence[float | None]  #: quantiles of p_include, at `QUANTILES`


QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9)
_NAMES: Final = tuple(f"{100 * share:g}" for share in QUANTILES)

_OUTCOMES = TableOf[_ModelOutcomes](
    name="outcomes",
    columns=(
        text("model", lambda row: row.model),
        count("n", lambda row: sum(row.outcomes.values())),
        per_key("{}", OUTCOMES, lambda row, outcome: row.outcomes[outcome]),
        count("with_p_include", lambda row: row.n_p),
        per_key(
            "p_include_p{}",
            _NAMES,
            lambda row, name: row.p[_NAMES.index(name)],
            "number",
        ),
    ),
    caption="What each model decides, and quantiles of its p_include.",
    is_headline=True,
)


class _Reason(NamedTuple):
    model: str
    decision: str
    reason_code: str
    n: int


_REASONS = TableOf[_Reason](
    name="reasons",
    columns=(
        text("model", lambda row: row.model),
        text("decision", lambda row: row.decision),
        text("reason_code", lambda row: row.reason_code or None),
        count("n", lambda row: row.n),
    ),
    caption="Reasons that each model gives for its decisions.",
)


class _Bin(NamedTuple):
    model: str
    lo: float
    hi: float
    n: int


_DISTRIBUTION = TableOf[_Bin](
    name="p_include",
    columns=(
        text("model", lambda row: row.model),
        number("from", lambda row: row.lo),
        number("to", lambda row: row.hi),
        count("n", lambda row: row.n),
    ),
    caption="Records by p_include, in ten bins.",
)

_AGREEMENT = TableOf[ScreeningPair](
    name="agreement",
    columns=(
        text("left", lambda pair: pair.compared.left),
        text("right", lambda pair: pair.compared.right),
        count("n", lambda pair: pair.decided, "records that both decided"),
        count("dropped", lambda pair: pair.dropped),
        number("agreement", lambda pair: pair.agreement.percent),
        number("kappa", lambda pair: pair.agreement.kappa),
        number("ac1", lambda pair: pair.agreement.ac),
    ),
    caption="How often two models decide alike, and how far that is beyond chance.",
)

EDGES: Final = tuple(round(0.1 * at, 1) for at in range(11))


def unlabelled_tables(results: ScreeningResults) -> Iterator[Table]:
    """Yield the short tables of a scoring without labels."""
    views = _views(results)
    yield _OUTCOMES.table(map(model_outcomes, views))
    yield _REASONS.table(_reasons(views))
    yield _DISTRIBUTION.table(
        _Bin(view.decisions.model, lo, hi, n)
        for view in views
        for (lo, hi), n in zip(pairwise(EDGES), binned(view), strict=True)
    )
    if results.pairs:
        yield _AGREEMENT.table(results.pairs)


def model_outcomes(view: DecisionView) -> _ModelOutcomes:
    """Count the decisions of a model."""
    counts = np.bincount(view.outcome, minlength=len(OUTCOMES)).tolist()
    p = view.decisions.p[~view.imputed]
    return _ModelOutcomes(
        model=view.decisions.model,
        outcomes=dict(zip(OUTCOMES, counts, strict=True)),
        n_p=len(p),
        p=quantiles(p.tolist(), QUANTILES),
    )


def binned(view: DecisionView) -> list[int]:
    """Count records by p_include, in the bins of `EDGES`."""
    counts: list[int] = np.histogram(view.decisions.p[~view.imputed], EDGES)[0].tolist()
    return counts


def _reasons(views: Sequence[DecisionView]) -> Iterator[_Reason]:
    for view in views:
        codes = view.decisions.reason_code or [""] * len(view.records)
        counted = Counter(
            (int(outcome), code)
            for outcome, code in zip(view.outcome.tolist(), codes, strict=True)
            if outcome in READABLE
        )
        for (outcome, code), n in sorted(counted.items()):
            yield _Reason(view.decisions.model, OUTCOMES[outcome], code, n)


SCREENED: Final = "screened.ris"
TAG: Final = "siftlog"
_FILES: Final = ("include", "exclude", "unclear")


class RisFiles:
    """The screened records as RIS: all of them in rank order, and by decision."""

    def __init__(self, results: ScreeningResults) -> None:
        self._results = results
        worked_with = _is_worked_with(results)
        self._views = _views(results) if worked_with else []
        models = [view.decisions.model for view in self._views]
        self._folders = {
            model: "" if len(models) == 1 else f"{slug}/"
            for model, slug in slugs(models).items()
        }

    def artifacts(self) -> tuple[Artifact, ...]:
        """Return the files, still empty; `__iter__` yields their lines."""
        return tuple(
            Artifact(name=f"{folder}{name}")
            for folder in self._folders.values()
            for name in (SCREENED, *(f"{decision}.ris" for decision in _FILES))
        )

    def __iter__(self) -> Iterator[StreamedLine]:
        for view in self._views:
            folder = self._folders[view.decisions.model]
            for row in _listed(self._results, view):
                lines = "".join(f"{tag}  - {value}\n" for tag, value in self._tags(row))
                record = f"{lines}ER  - \n\n"
                yield StreamedLine(artifact=f"{folder}{SCREENED}", text=record)
                name = row.decision if row.decision in _FILES else "unclear"
                yield StreamedLine(artifact=f"{folder}{name}.ris", text=record)

    def _tags(self, row: _ListedRecord) -> Tags:
        """Return the original fields of a record, with the decision."""
        source = self._results.dataset.library.get(row.paper)
        p = "" if row.p is None else f"; p_include={row.p:.4g}"
        code = f"; reason_code={row.reason_code}" if row.reason_code else ""
        reason = f"; reason={row.reason}" if row.reason else ""
        note = (
            f"{TAG}: decision={row.decision}{p}; rank={row.rank}; "
            f"model={row.view.decisions.model}{code}{reason}"
        )
        added = [("KW", f"{TAG}-{row.decision}")]
        if row.reason_code and row.decision == "exclude":
            added.append(("KW", f"{TAG}-reason-{row.reason_code}"))
        added.append(("N1", note))
        tags = _tags_of(row) if source is None else source.tags
        return tuple((tag, " ".join(value.split())) for tag, value in (*tags, *added))


def _tags_of(row: _ListedRecord) -> Tags:
    """Return the fields of a record of a set, which has only a text."""
    year = "" if row.text.year is None else str(row.text.year)
    tags = (
        ("TY", "JOUR"),
        ("ID", row.paper),
        ("TI", row.text.title),
        ("PY", year),
        ("AB", row.text.abstract),
    )
    return tuple((tag, value) for tag, value in tags if value)
