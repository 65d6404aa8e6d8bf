"""Defines every setting of the job: inputs, sampling, requests, scoring."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field, model_validator

StageName: TypeAlias = Literal["title", "abstract", "fulltext"]
NegativeKind: TypeAlias = Literal["near-miss", "random", "true-excluded"]
Outside: TypeAlias = Literal["outside", "include", "exclude"]

INPUTS = (
    "tables",
    "reviews",
    "references",
    "papers",
    "excluded",
    "criteria",
    "labels",
    "fulltext",
    "reason_map",
    "validation_set",
    "decisions",
    "prompts",
)
"""Settings that name one file or folder; `FILE_LISTS` name several files."""

FILE_LISTS = ("records", "library")

EVERYDAY = (
    "tables",
    "records",
    "library",
    "question",
    "criteria",
    "labels",
    "validation_set",
    "decisions",
    "negatives",
    "stages",
    "criteria_source",
    "prompts",
    "threshold",
    "limit",
)
"""The settings in common use."""


class ScreeningSettings(BaseModel):
    """Settings of screening."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tables: Path | None = Field(
        None, description="folder with the three tables, under their usual names"
    )
    reviews: Path | None = Field(None, description="CSV pmid, title, abstract, year")
    references: Path | None = Field(None, description="CSV citing_pmid, ref_pmid")
    papers: Path | None = Field(None, description="CSV pmid, title, abstract, year")
    records: tuple[Path, ...] = Field(
        (), description="CSV of labelled records, one per review, named by its id"
    )
    library: tuple[Path, ...] = Field(
        (),
        description="records to screen without a set: RIS, PubMed text or XML, "
        "BibTeX, CSV, TSV; several files are one library",
    )
    question: str = Field("", description="question that a library is screened for")
    labels: Path | None = Field(
        None,
        description="CSV id, label: decisions of people on a library or a set without "
        "labels; for scoring only",
    )
    map: tuple[str, ...] = Field(
        (), description="OLD=NEW: a column of a file by the name used here"
    )
    positive_label: Literal["label_included", "label_abstract_screening"] = Field(
        "label_included", description="which label of the records counts as included"
    )
    excluded: Path | None = Field(
        None, description="CSV review_pmid, pmid, status, reason: known exclusions"
    )
    criteria: Path | None = Field(
        None,
        description="JSONL of each review's question and criteria; of a library a text "
        "(.txt, .md), TOML or JSON",
    )
    fulltext: Path | None = Field(
        None, description="folder of <pmid>.txt or .md, for stage fulltext"
    )
    prompts: Path | None = Field(None, description="TOML of prompts to replace")
    reason_map: Path | None = Field(
        None, description="CSV reason, reason_code: codes of written reasons"
    )
    validation_set: Path | None = Field(
        None, description="folder that prepare has written: what a run screens"
    )
    decisions: Path | None = Field(
        None, description="to import: CSV of decisions or scores"
    )
    confidence_kind: Literal["include", "decision"] = Field(
        "include", description="confidence to import: that it is included, or right"
    )

    min_included: int = Field(5, ge=1, description="papers a review needs to be used")
    min_included_basis: Literal["with_abstract", "all_references"] = Field(
        "with_abstract", description="papers that count for it"
    )
    max_included: int | None = Field(
        None, ge=1, description="maximum positives per review; none: all"
    )
    negatives: tuple[NegativeKind, ...] = Field(
        ("near-miss", "random"),
        description="kinds to draw: near-miss, random, true-excluded",
    )
    ratio: float = Field(
        1.0, gt=0.0, le=1000.0, description="negatives of each kind per positive"
    )
    per_review: int | None = Field(
        None, ge=1, description="negatives of each kind per review, instead of a ratio"
    )
    max_reviews: int | None = Field(
        None, ge=1, description="first reviews of the seeded order; none: all"
    )
    review: tuple[str, ...] = Field((), description="only these reviews")
    keep_without_negatives: bool = Field(
        default=False, description="keep reviews without any near-miss candidate"
    )
    max_paper_degree: int | None = Field(
        None, ge=1, description="papers with more citing reviews do not relate reviews"
    )
    seed: int = Field(42, ge=0, description="seed of the draw")
    drift: bool = Field(
        default=True, description="measure topic drift; false: leave it out"
    )
    ascii: bool = Field(
        default=False, description="explain draws with plain ASCII alone"
    )

    stages: tuple[StageName, ...] = Field(
        ("abstract",), description="stages to run: any of title, abstract, fulltext"
    )
    title_exclude_below: float = Field(
        0.10, ge=0.0, le=1.0, description="p_include up to which a title alone excludes"
    )
    criteria_source: Literal["auto", "file", "llm"] = Field(
        "auto", description="auto: the first available of file, abstract, title"
    )
    title_criteria: bool = Field(
        default=False,
        description="screen by a review's title if nothing else states its "
        "question; otherwise such a run is refused",
    )
    show_ids: bool = Field(default=False, description="show papers' ids to the model")
    show_year: bool = Field(default=True, description="show papers' years")
    max_prompt_tokens: int = Field(
        24000, ge=1, description="longest prompt, by estimate; others are skipped"
    )
    max_output_tokens: int = Field(1024, ge=1, description="longest reply, in tokens")
    temperature: float | None = Field(0.0, ge=0.0, description="sampling temperature")
    structured: Literal["auto", "off"] = Field(
        "auto", description="request JSON by schema if the endpoint supports it"
    )
    reask: int = Field(0, ge=0, description="retries for a reply that cannot be parsed")

    unclear: Outside = Field(
        "outside", description="decision assumed for unclear, unparsed and failed"
    )
    threshold: float | None = Field(
        None,
        ge=0.0,
        le=1.0,
        description="include from this p_include; none: as decided",
    )
    ensemble: tuple[Literal["any", "majority", "all"], ...] = Field(
        (), description="models joined, as further columns: any, majority, all"
    )
    wss: Literal["cohen", "no_offset", "asreview"] = Field(
        "cohen", description="form of work saved over sampling"
    )
    wss_level: tuple[Annotated[float, Field(gt=0.0, le=1.0)], ...] = Field(
        (), description="further recall levels besides 0.95 and 1"
    )
    recall_share: Literal["floor", "ceil"] = Field(
        "floor", description="rounding of a tenth of the records, for recall at 10 %"
    )
    prevalence: tuple[Annotated[float, Field(gt=0.0, lt=1.0)], ...] = Field(
        (), description="shares of eligible papers to predict precision for"
    )
    boot_b: int = Field(2000, ge=0, description="bootstrap replicates; 0: no intervals")
    boot_seed: int = Field(20260118, ge=0, description="seed of the bootstrap")
    level: float = Field(0.95, gt=0.0, lt=1.0, description="level of the intervals")
    limit: int = Field(
        0,
        ge=0,
        description="size of a sample of the records: kinds and reviews keep their "
        "share; 0: all",
    )
    min_clusters: int = Field(
        10, ge=2, description="reviews below which a comparison of models is `too few`"
    )
    interval: Literal["adjusted", "percentile"] = Field(
        "adjusted",
        description="adjusted for few clusters and rates near 0 or 1, or percentile",
    )

    @model_validator(mode="after")
    def _fits(self) -> Self:
        order = get_args(StageName)
        if not self.stages or list(self.stages) != [
            stage for stage in order if stage in self.stages
        ]:
            raise ValueError(
                "stages are any of title, abstract, fulltext, each once and in this "
                "order"
            )
        if len(set(self.negatives)) < len(self.negatives):
            raise ValueError("negatives names a kind twice")
        return self
