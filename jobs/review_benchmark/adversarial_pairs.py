"""Scores conclusions that test the verdicts: `siftlog prepare review-benchmark pairs`.

Sixty invented pairs of an authors' and an agent's conclusion: 20 state the opposite,
20 the same direction or none with another certainty, 20 the same in other words. A
sound verdict passes only the last kind. The figures of the two verdicts without calls
are printed; the folder holds the inputs for a verdict with calls, such as a judge.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np

from jobs.kit.metrics import mean
from jobs.review_benchmark import conclusion_similarity, requests
from jobs.review_benchmark.conclusion_similarity import (
    SimilarityThreshold,
    threshold_from_mismatched,
)
from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.database.reader import writer
from jobs.review_benchmark.database.writer import PaperWriter
from jobs.review_benchmark.effects import EffectComparison, compare_effects, read_effect
from jobs.review_benchmark.inputs import SAMPLE
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from store.document import Numbers, TableBlock, Words, as_text, number

KINDS: Final = ("opposite", "hedged", "paraphrase")
"""The kinds of pairs, in the file's order."""

PAPER: Final = 1
"""Id of the only paper in the database; every conclusion is drawn from it."""

_MODEL: Final = "pairs"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdversarialPair:
    """An authors' and an agent's conclusion on one question."""

    id: str
    kind: str  #: of `KINDS`
    authors: str
    agent: str


@dataclass(frozen=True, kw_only=True)
class AdversarialReport:
    """The pairs with their verdicts that need no call."""

    pairs: tuple[AdversarialPair, ...]
    within: int  #: levels by which certainty may differ

    @classmethod
    def of(cls, settings: ReviewBenchmarkSettings) -> AdversarialReport:
        """Return a report on the shipped pairs."""
        return cls(pairs=tuple(shipped_pairs()), within=settings.certainty_within)

    @cached_property
    def compared(self) -> Sequence[EffectComparison]:
        """Verdict by direction of each pair."""
        return [
            compare_effects(
                read_effect(pair.agent), read_effect(pair.authors), self.within
            )
            for pair in self.pairs
        ]

    @cached_property
    def _matrix(self) -> conclusion_similarity.SimilarityMatrix:
        return conclusion_similarity.tfidf_similarity(
            [pair.agent for pair in self.pairs], [pair.authors for pair in self.pairs]
        )

    @cached_property
    def similarity(self) -> Sequence[float]:
        """Similarity of the words of each pair."""
        diagonal: list[float] = self._matrix.diagonal().tolist()
        return diagonal

    @cached_property
    def threshold(self) -> SimilarityThreshold | None:
        """Threshold of similarity, from all mismatched pairs."""
        others = ~np.eye(len(self.pairs), dtype=bool)
        return threshold_from_mismatched(self._matrix[others].tolist())

    @property
    def json(self) -> dict[str, object]:
        """Figures by kind, and every pair."""
        return {
            "threshold": None if self.threshold is None else self.threshold.value,
            "kinds": self.figures(),
            "pairs": [
                {
                    "id": pair.id,
                    "kind": pair.kind,
                    "authors": pair.authors,
                    "agent": pair.agent,
                    "similarity": similarity,
                    "effect": comparison.outcome,
                    "effect_reason": comparison.reason,
                }
                for pair, similarity, comparison in zip(
                    self.pairs, self.similarity, self.compared, strict=True
                )
            ],
        }

    def figures(self) -> dict[str, dict[str, Any]]:
        """Count pairs of each kind that are alike by words, or pass by direction."""
        rows = zip(self.pairs, self.similarity, self.compared, strict=True)
        by_kind = {}
        for kind, group in groupby(rows, key=lambda row: row[0].kind):
            kind_rows = list(group)
            outcomes = [comparison.outcome for _, _, comparison in kind_rows]
            similarities = [similarity for _, similarity, _ in kind_rows]
            threshold = self.threshold
            by_kind[kind] = {
                "pairs": len(kind_rows),
                "mean_similarity": mean(similarities),
                "alike_by_words": sum(
                    threshold is not None and threshold.admits(similarity)
                    for similarity in similarities
                ),
                "passed": outcomes.count("passed"),
                "failed": outcomes.count("failed"),
                "not_judged": outcomes.count("not judged"),
            }
        return by_kind

    @property
    def text(self) -> str:
        """Table of the kinds."""
        rows = [
            (
                kind,
                row["pairs"],
                number(row["mean_similarity"], 3),
                row["alike_by_words"],
                row["passed"],
                row["failed"],
                row["not_judged"],
            )
            for kind, row in self.figures().items()
        ]
        titles = ("pairs", "similarity", "alike by words", "passed", "failed")
        numbers = map(Numbers, (*titles, "not judged"))
        table = TableBlock([Words("kind"), *numbers], rows, indent=0)
        threshold = None if self.threshold is None else self.threshold.value
        key = (
            f"Alike by words: similarity above {number(threshold, 3)}. Passed, failed, "
            "not judged: by direction and certainty."
        )
        return as_text([table, key])

    def write(self, folder: Path) -> AdversarialReport:
        """Write inputs for an import, or a run with a judge: a folder for each kind."""
        for kind in KINDS:
            pairs = [pair for pair in self.pairs if pair.kind == kind]
            truth, results = folder / kind / "truth", folder / kind / "results"
            for subfolder in (truth, results):
                subfolder.mkdir(parents=True)
            for pair in pairs:
                _write(truth / f"cochrane_{pair.id}.json", _review(pair))
                _write(results / f"{pair.id}__{kind}.json", _result(pair))
            replies = (line for pair in pairs for line in _replies(pair))
            text = "".join(f"{json.dumps(reply)}\n" for reply in replies)
            (folder / kind / "replies.jsonl").write_text(text, encoding="utf-8")
        with closing(writer(folder / "papers.db")) as connection:
            writing = PaperWriter(connection)
            paper = ImportedRecord(
                source_id="1", title="An invented trial", abstract="A trial."
            )
            writing.add("pairs", [paper], skip_bad=False)
            writing.sign()
        return self


def shipped_pairs() -> Iterator[AdversarialPair]:
    """Yield the pairs of the sample."""
    path = SAMPLE / "conclusions" / "pairs.jsonl"
    for line in path.read_text("utf-8").splitlines():
        yield AdversarialPair(**json.loads(line))


def _review(pair: AdversarialPair) -> dict[str, Any]:
    """Return a truth file whose only study is the only paper in the database."""
    return {
        "cochrane_id": pair.id,
        "title": f"Pair {pair.id}",
        "research_question": "What does the trial find?",
        "included_studies": [{"title": "An invented trial"}],
        "authors_conclusion": pair.authors,
    }


def _result(pair: AdversarialPair) -> dict[str, Any]:
    paper = {"document_id": PAPER, "title": "An invented trial"}
    return {
        "cochrane_id": pair.id,
        "included_papers": [paper],
        "conclusion": pair.agent,
    }


def _replies(pair: AdversarialPair) -> Iterator[dict[str, str]]:
    """Yield the replies of a recorded model, up to the conclusion of the pair."""
    query = {"label": "trial", "all_of": [["trial"]], "none_of": []}
    replies: dict[tuple[str, str], Mapping[str, Any]] = {
        ("plan", pair.id): {"queries": [query], "rationale": ""},
        ("score", requests.paper_key(pair.id, PAPER)): {"score": 5, "rationale": ""},
        ("conclude", requests.conclusion_key(pair.id, [PAPER])): {
            "conclusion": pair.agent
        },
    }
    for (stage, key), reply in replies.items():
        yield {
            "key": key,
            "stage": stage,
            "model": _MODEL,
            "response": json.dumps(reply),
        }


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(f"{json.dumps(value, indent=1)}\n", encoding="utf-8")
