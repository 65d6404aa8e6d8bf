"""Settings of the job: inputs, searching and asking, matching, scoring."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator

from jobs.review_benchmark.database.papers import PaperFormat
from jobs.review_benchmark.matching import (
    Matching,
    MatchingRules,
    Normaliser,
    Punctuation,
)

Scale: TypeAlias = Literal["1-5", "0-1"]
Precision: TypeAlias = Literal["rows", "gt_over_included"]
Key: TypeAlias = Literal["pmid", "doi", "title"]
VerdictKind: TypeAlias = Literal["off", "direction", "tfidf", "judge", "embedding"]

DATA = (
    "truth",
    "questions",
    "database",
    "results",
    "verdict_labels",
    "extract",
    "against",
)
"""Settings that name data; without any of them the sample is used."""

INPUTS = (*DATA, "prompts")
"""Settings that name a file or folder."""

QUESTION = ("question", "inclusion", "exclusion")
"""Settings with the text of the user's question."""

ENDS: dict[Scale, tuple[float, float]] = {"1-5": (1.0, 5.0), "0-1": (0.0, 1.0)}
"""Least and highest score of a scale, both inclusive."""

_THRESHOLDS: dict[Scale, float] = {"1-5": 3.0, "0-1": 0.5}

EVERYDAY = (
    "question",
    "inclusion",
    "exclusion",
    "truth",
    "database",
    "results",
    "review",
    "limit",
    "scale",
    "max_candidates",
    "title_criteria",
    "threshold",
    "prompts",
    "verdict",
)
"""Settings that people usually change."""


class ReviewBenchmarkSettings(BaseModel):
    """Settings of review-benchmark."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    truth: Path | None = Field(
        None, description="folder of cochrane_<id>.json: published reviews"
    )
    question: str = Field(
        "", description="question of your own, instead of published reviews"
    )
    questions: Path | None = Field(
        None,
        description="several questions: JSON file or folder, in the format of truth; "
        "studies and conclusions are not read",
    )
    inclusion: tuple[str, ...] = Field(
        (), description="inclusion criterion of the question; repeatable"
    )
    exclusion: tuple[str, ...] = Field(
        (), description="exclusion criterion of the question; repeatable"
    )
    database: Path | None = Field(
        None, description="paper database that prepare import has made"
    )
    prompts: Path | None = Field(None, description="TOML of prompts to replace")
    results: tuple[Path, ...] = Field(
        (), description="to import: JSON results of agents, files or folders"
    )
    review: tuple[str, ...] = Field((), description="only these reviews")
    limit: int = Field(0, ge=0, description="size of a sample of the reviews; 0: all")

    format: PaperFormat | None = Field(
        None, description="prepare import: of all files; none: by their names' ends"
    )
    map: tuple[str, ...] = Field(
        (),
        description="to import: OLD=NEW, a key by the name used here; prepare import: "
        "name=column of CSV and TSV files",
    )
    skip_bad: bool = Field(
        default=False, description="prepare import: leave out what cannot be read"
    )
    keys: tuple[Key, ...] = Field(
        ("pmid", "doi", "title"),
        description="prepare coverage: identifiers that papers are matched by",
    )
    extract: Path | None = Field(
        None, description="to read truth from: a review as .pdf, .txt or .xml"
    )
    against: Path | None = Field(
        None, description="truth that an extraction is scored by, file or folder"
    )
    with_excluded: bool = Field(
        default=False, description="extract the excluded studies and their reasons too"
    )
    accept: bool = Field(
        default=False, description="write the truth although checks raised flags"
    )
    chunk_references: int = Field(
        30, ge=5, description="approximate number of references per request"
    )
    extract_tokens: int = Field(
        16384, ge=1, description="longest reply of an extraction"
    )

    scale: Scale = Field("1-5", description="scale of relevance scores")
    queries: int = Field(6, ge=1, le=50, description="maximum queries of a plan")
    top_k: int = Field(200, ge=1, description="papers kept of each query")
    max_candidates: int = Field(
        300, ge=1, description="maximum papers scored per review"
    )
    use_date_range: bool = Field(
        default=True, description="search only the review's years"
    )
    title_criteria: bool = Field(
        default=False,
        description="search by a review's title if nothing else states its "
        "question; otherwise such a run is refused",
    )
    exclude_reviews: bool = Field(
        default=True, description="never offer the review itself as a paper"
    )
    conclude_papers: int = Field(
        40, ge=1, description="included papers that a conclusion is drawn from"
    )
    max_prompt_tokens: int = Field(24000, ge=1, description="longest prompt, estimated")
    max_output_tokens: int = Field(2048, ge=1, description="longest reply")
    temperature: float | None = Field(0.0, ge=0.0, description="sampling temperature")
    structured: Literal["auto", "off"] = Field(
        "auto", description="request JSON by schema if the endpoint supports it"
    )
    reask: int = Field(0, ge=0, description="retries for a reply that cannot be parsed")

    threshold: float | None = Field(
        None, description="score from which a paper is included; none: 3.0, on 0-1 0.5"
    )
    unscored: Literal["exclude", "include"] = Field(
        "exclude", description="decision for papers without a readable score"
    )
    target_recall: float = Field(
        1.0, gt=0.0, le=1.0, description="recall at which a review passes"
    )
    matching: Matching = Field("whole-list", description="how papers are matched")
    title_cutoff: float = Field(
        0.85, gt=0.0, le=1.0, description="least similarity of matching titles"
    )
    autojunk: bool = Field(
        default=True, description="difflib's shortcut in titles of 200 characters"
    )
    punctuation: Punctuation = Field(
        "blank", description="replacement of punctuation in titles"
    )
    strip_dx: bool = Field(
        default=True, description="remove dx.doi.org/ before a DOI too"
    )
    unique_claims: bool = Field(
        default=False, description="one record serves one truth paper only"
    )
    precision: Precision = Field(
        "rows", description="numerator: included rows, or truth papers"
    )
    recall_line: bool = Field(
        default=False, description="a missed target is the first reason of failure"
    )
    verdict: VerdictKind | None = Field(
        None,
        description="how conclusions are compared; none: judge or embedding where "
        "its model is named, else direction",
    )
    verdict_labels: Path | None = Field(
        None, description="CSV cochrane_id, model, similar: sets the threshold"
    )
    verdict_threshold: float | None = Field(
        None, description="similarity of like conclusions; none: drawn from the data"
    )
    certainty_within: int = Field(
        1, ge=0, le=3, description="levels by which stated certainty may differ"
    )
    null_pairs: int = Field(
        2, ge=0, description="mismatched pairs per review that a judge is shown"
    )
    boot_b: int = Field(2000, ge=0, description="bootstrap replicates; 0: no intervals")
    boot_seed: int = Field(20260118, ge=0, description="seed of the bootstrap")
    level: float = Field(0.95, gt=0.0, lt=1.0, description="level of the intervals")
    min_clusters: int = Field(
        10, ge=2, description="reviews below which a comparison of models is `too few`"
    )
    interval: Literal["adjusted", "percentile"] = Field(
        "adjusted",
        description="adjusted for few clusters and rates near 0 or 1, or percentile",
    )

    @property
    def asks_question(self) -> bool:
        """Whether the run answers questions instead of published reviews."""
        return bool(self.question.strip()) or self.questions is not None

    @property
    def least_score(self) -> float:
        """Score from which a paper is included."""
        return _THRESHOLDS[self.scale] if self.threshold is None else self.threshold

    @property
    def rules(self) -> MatchingRules:
        """Rules for matching papers."""
        return MatchingRules(
            matching=self.matching,
            title_cutoff=self.title_cutoff,
            autojunk=self.autojunk,
            unique_claims=self.unique_claims,
            normal=Normaliser(punctuation=self.punctuation, strip_dx=self.strip_dx),
        )

    def includes(self, score: float | None) -> bool:
        """Return whether a paper with a score is included; None: no readable score."""
        if score is None:
            return self.unscored == "include"
        return score >= self.least_score

    def decision_words(self, score: float) -> str:
        """Return a paper's score and the decision, and what the score is."""
        decision = "include" if self.includes(score) else "exclude"
        return f"{score:g}, {decision} (relevance, scale {self.scale})"

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.inclusion or self.exclusion) and not self.question.strip():
            raise ValueError(
                "inclusion and exclusion are criteria of a question (give it with "
                "--question, or write them in the files of --questions or --truth)"
            )
        if self.question.strip() and self.questions is not None:
            raise ValueError("question and questions are both given (give one)")
        least, most = ENDS[self.scale]
        if not least <= self.least_score <= most:
            raise ValueError(f"threshold is outside the scale {self.scale}")
        return self
