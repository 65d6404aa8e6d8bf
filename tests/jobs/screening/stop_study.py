"""Simulated people screen libraries with known answers until a rule says stop.

A simulated person labels as the library knows it and follows the rule's advice. The
rules of thumb (stop after so many irrelevant records in a row) read in the same ranked
order, without random draws.
"""

from __future__ import annotations

import csv
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from jobs.screening.stop_rule import (
    RecallStopRule,
    RecordDrawn,
    RecordLabelled,
    StopEvent,
)

Floats: TypeAlias = npt.NDArray[np.float64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Ranker: TypeAlias = Literal["model", "tfidf", "random"]

RANKERS: tuple[Ranker, ...] = ("model", "tfidf", "random")
TARGET, ALPHA = 0.95, 0.05
RUNS = (50, 100, 0.05)
"""Rules of thumb: irrelevant records in a row, or that share of the library."""
REFIT = 25
SEPARATION = 2.5
"""Of a simulated model's scores, in standard deviations: an AUROC of 0.96."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyLibrary:
    """Records with known answers."""

    name: str
    relevant: Bools
    texts: Sequence[str] = ()
    scores: Floats | None = None  #: recorded scores of a model

    @property
    def records(self) -> int:
        """All records."""
        return len(self.relevant)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Where a rule stopped."""

    read: float  #: share of the library
    recall: float

    @property
    def misses(self) -> bool:
        """Whether fewer relevant records were found than aimed at."""
        return self.recall < TARGET - 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRow:
    """All stops of one rule."""

    rule: str
    stops: Sequence[Stop]

    @property
    def failures(self) -> float:
        """Share of stops below the target."""
        return float(np.mean([stop.misses for stop in self.stops]))

    @property
    def read(self) -> float:
        """Mean share of the library that was read."""
        return float(np.mean([stop.read for stop in self.stops]))


def simulated_library(records: int, prevalence: float, seed: int) -> StudyLibrary:
    """A library without texts."""
    relevant = np.zeros(records, dtype=np.bool_)
    relevant[: round(records * prevalence)] = True
    np.random.default_rng(seed).shuffle(relevant)
    return StudyLibrary(name=f"simulated {records}, {prevalence}", relevant=relevant)


def real_libraries(realdata: Path) -> Iterator[StudyLibrary]:
    """Five drug reviews, each with both of its labels, and eight Cochrane reviews."""
    for path in sorted((realdata / "near_miss" / "cohen2006").glob("*.csv")):
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
        texts = [f"{row['title']} {row['abstract']}" for row in rows]
        for label in ("label_included", "label_abstract_screening"):
            relevant = np.array([row[label] == "1" for row in rows])
            name = f"{path.stem} {label}"
            yield StudyLibrary(name=name, relevant=relevant, texts=texts)
    runs = realdata / "bmlibrarian" / "agent_runs"
    for path in sorted(runs.glob("*__full_library.json")):
        run = json.loads(path.read_text("utf-8"))
        included, excluded = run["included_papers"], run["excluded_papers"]
        papers = [*included, *excluded]
        yield StudyLibrary(
            name=path.stem,
            relevant=np.arange(len(papers)) < len(included),
            texts=[paper["title"] for paper in papers],
            scores=np.array([float(paper["relevance_score"]) for paper in papers]),
        )


def study(
    libraries: Sequence[StudyLibrary], ranker: Ranker, seeds: int
) -> list[StudyRow]:
    """Screen each library with each seed by all rules."""
    stops: dict[str, list[Stop]] = defaultdict(list)
    for library in libraries:
        fits = _tfidf(library) if ranker == "tfidf" and library.texts else None
        for seed in range(seeds):
            rng = np.random.default_rng([seed, library.records])
            scores = _scores(library, ranker, rng)
            order = _Order(library, scores, fits)
            stops["guarantee"].append(_guaranteed(library, order, rng))
            ranked = library.relevant[_Order(library, scores, fits).whole()]
            stops["oracle"].append(_at(ranked, _oracle(ranked)))
            for run in RUNS:
                length = run if run >= 1 else math.ceil(run * library.records)
                name = f"{run:.0f} in a row" if run >= 1 else f"{run:.0%} in a row"
                stops[name].append(_at(ranked, _in_a_row(ranked, int(length))))
    return [StudyRow(rule=rule, stops=found) for rule, found in stops.items()]


def screening_events(
    library: StudyLibrary, next_ranked: Callable[[Bools], int], seed: int
) -> Iterator[StopEvent]:
    """Screen by the rule's advice until it says stop; yield what is recorded."""
    rng = np.random.default_rng(seed)
    rule = RecallStopRule(records=library.records, target=TARGET, alpha=ALPHA)
    unread = np.ones(library.records, dtype=np.bool_)
    while (advice := rule.advice) != "stop":
        if advice == "draw":
            record = int(rng.choice(np.flatnonzero(unread)))
            drawn = RecordDrawn(record=str(record), unread=int(unread.sum()))
            rule.receive(drawn)
            yield drawn
        else:
            record = next_ranked(unread)
        unread[record] = False
        label = RecordLabelled(
            record=str(record), is_relevant=bool(library.relevant[record])
        )
        rule.receive(label)
        yield label


class _Order:
    """Ranked order of a library; by text similarity it is fitted again and again."""

    def __init__(
        self, library: StudyLibrary, scores: Floats, fits: csr_matrix | None
    ) -> None:
        self._library = library
        self._fits = fits
        self._order = np.argsort(-scores, kind="stable")
        self._fitted = 0

    def next(self, unread: Bools) -> int:
        """The first unread record."""
        read = int((~unread).sum())
        if self._fits is not None and read >= self._fitted + REFIT:
            self._fitted = read
            self._fit(~unread, self._fits)
        return int(self._order[np.argmax(unread[self._order])])

    def whole(self) -> npt.NDArray[np.int64]:
        """The whole ranked order."""
        unread = np.ones(self._library.records, dtype=np.bool_)
        order = []
        for _ in range(self._library.records):
            record = self.next(unread)
            unread[record] = False
            order.append(record)
        return np.array(order)

    def _fit(self, read: Bools, fits: csr_matrix) -> None:
        relevant = self._library.relevant & read
        if relevant.any() and not relevant[read].all():
            towards = _centre(fits, relevant) - _centre(fits, read & ~relevant)
            self._order = np.argsort(-(fits @ towards), kind="stable")


def _centre(fits: csr_matrix, rows: Bools) -> Floats:
    weights = rows / rows.sum()
    return np.asarray(fits.T @ weights, dtype=np.float64)


def _scores(library: StudyLibrary, ranker: Ranker, rng: np.random.Generator) -> Floats:
    noise = rng.normal(size=library.records)
    if ranker != "model":
        return noise
    if library.scores is not None:
        return np.asarray(library.scores + 1e-3 * noise)
    return np.asarray(noise + SEPARATION * library.relevant)


def _tfidf(library: StudyLibrary) -> csr_matrix:
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

    vectors = TfidfVectorizer(stop_words="english", sublinear_tf=True, min_df=2)
    return csr_matrix(vectors.fit_transform(library.texts))


def _guaranteed(library: StudyLibrary, order: _Order, rng: np.random.Generator) -> Stop:
    seed = int(rng.integers(2**31))
    labels = [
        event
        for event in screening_events(library, order.next, seed)
        if isinstance(event, RecordLabelled)
    ]
    found = sum(label.is_relevant for label in labels)
    return Stop(
        read=len(labels) / library.records, recall=found / int(library.relevant.sum())
    )


def _at(ranked: Bools, read: int) -> Stop:
    return Stop(
        read=read / len(ranked), recall=float(ranked[:read].sum() / ranked.sum())
    )


def _oracle(ranked: Bools) -> int:
    needed = math.ceil(TARGET * int(ranked.sum()) - 1e-9)
    return int(np.searchsorted(np.cumsum(ranked), needed)) + 1


def _in_a_row(ranked: Bools, length: int) -> int:
    since = 0
    for read, is_relevant in enumerate(ranked.tolist(), 1):
        since = 0 if is_relevant else since + 1
        if since >= length:
            return read
    return len(ranked)
