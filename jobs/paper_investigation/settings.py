"""Defines every setting of the job, and the profiles that bundle them.

A profile names a set of values; an explicit value overrides the profile's.
`InvestigationSettings.profile_changes` lists these, for the report.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pydantic import Field, model_validator

from jobs.kit.profiles import ProfiledSettings

Case: TypeAlias = Literal["fold", "keep"]
Link: TypeAlias = Literal["split", "whole"]
Rules: TypeAlias = Literal["robust", "clinpgx-qa"]
Encoding: TypeAlias = Literal["strict", "replace"]
Pipeline: TypeAlias = Literal["mcq_variant", "mcq_drug", "mcq_phenotype", "study_param"]

PIPELINES: tuple[Pipeline, ...] = (
    "mcq_variant",
    "mcq_drug",
    "mcq_phenotype",
    "study_param",
)
"""In the order of all output."""

PROFILES: Mapping[str, Mapping[str, Any]] = {
    "siftlog": {},
    "clinpgx-qa": {
        "variant_case": "keep",
        "variant_link": "whole",
        "max_questions_per_variant": 10,
        "batch_questions": True,
        # its rules parse letters and numbered lines, not JSON
        "structured": "off",
        "list_rules": "clinpgx-qa",
        "letter_rules": "clinpgx-qa",
        "p_rules": "clinpgx-qa",
    },
}

EVERYDAY = (
    "bench",
    "papers",
    "questions",
    "mode",
    "pipelines",
    "limit",
    "profile",
    "prompts",
    "variant_link",
    "reference_alleles",
    "batch_questions",
)
"""The settings in common use."""


class InvestigationSettings(ProfiledSettings):
    """Settings of paper-investigation."""

    profiles = PROFILES

    bench: Path | None = Field(
        None,
        description="JSONL of papers and their curated variants; none: list the "
        "variants of all papers (mode extract)",
    )
    papers: Path | None = Field(
        None, description="folder of PMC*.md, .txt or .pdf, or a JSONL pmcid, text"
    )
    questions: Path | None = Field(
        None, description="folder of the four question files"
    )
    mcq_variant: Path | None = Field(None, description="variant MCQ file")
    mcq_drug: Path | None = Field(None, description="drug MCQ file")
    mcq_phenotype: Path | None = Field(None, description="phenotype MCQ file")
    study_param: Path | None = Field(None, description="study-parameter file")
    map: tuple[str, ...] = Field(
        (), description="to import: OLD=NEW, a key by the name used here"
    )
    sentence_bench: Path | None = Field(None, description="JSONL of source sentences")
    any_id: bool = Field(
        default=False, description="accept paper ids other than PMC + digits"
    )
    encoding_errors: Encoding = Field(
        "strict", description="what to do with bytes that are not UTF-8"
    )

    mode: Literal["investigate", "extract", "questions"] = Field(
        "investigate", description="both steps, variants only, or every question"
    )
    pipelines: tuple[Pipeline, ...] = Field(
        PIPELINES, description="question files to use"
    )
    limit: int = Field(
        0,
        ge=0,
        description="size of a sample of the bench's papers, or, in mode questions, "
        "of the questions: pipelines keep their share; 0: all",
    )
    profile: Literal["siftlog", "clinpgx-qa"] = Field(
        "siftlog", description="bundle of settings"
    )
    prompts: Path | None = Field(None, description="TOML of prompts to replace")
    variant_case: Case = Field(
        "fold", description="letter case when comparing variants"
    )
    variant_link: Link = Field(
        "split", description="whether a joined variant field links by its parts"
    )
    reference_alleles: Literal["list", "leave_out"] = Field(
        "list",
        description="whether the prompt asks for reference alleles such as CYP2C19*1",
    )
    max_questions_per_variant: int = Field(
        0, ge=0, description="most questions per variant; 0: all"
    )
    batch_questions: bool = Field(
        default=False, description="send all questions about a variant in one request"
    )
    batch_size: int = Field(20, ge=1, description="questions in one batch call")
    ask: Literal["recalled", "all"] = Field(
        "recalled",
        description="also send questions about variants that were not recalled",
    )
    closed_book: bool = Field(
        default=False,
        description="mode questions: send questions without text if the paper is "
        "missing",
    )
    temperature: float | None = Field(0.0, ge=0.0, description="sampling temperature")
    max_tokens_extract: int = Field(2048, ge=1, description="output tokens, extraction")
    max_tokens_question: int = Field(
        256, ge=1, description="output tokens, per question"
    )
    max_tokens_reasoning: int = Field(
        16000, ge=1, description="output tokens in all, for reasoning models"
    )
    reasoning_models: tuple[str, ...] = Field(
        (), description="models that spend output tokens on reasoning"
    )
    max_chars: int = Field(
        0, ge=0, description="most characters of a paper that are sent; 0: all"
    )
    context_tokens: int = Field(
        0, ge=0, description="tokens the smallest model can take; 0: not known"
    )
    structured: Literal["auto", "off"] = Field(
        "auto", description="request JSON by schema if the endpoint supports it"
    )
    list_rules: Rules = Field("robust", description="how variant lists are read")
    letter_rules: Rules = Field("robust", description="how letters are read")
    p_rules: Rules = Field("robust", description="how p-values are read and compared")
    p_tolerance: float = Field(
        0.05, ge=0.0, lt=1.0, description="relative tolerance of p-values"
    )
    reask: int = Field(0, ge=0, description="retries for a reply that cannot be parsed")
    n_examples: int = Field(3, ge=0, description="worst and best papers in the summary")
    boot_b: int = Field(2000, ge=0, description="bootstrap replicates; 0: no intervals")
    boot_seed: int = Field(20260118, description="seed of the bootstrap")
    level: float = Field(0.95, gt=0.0, lt=1.0, description="level of the intervals")
    min_clusters: int = Field(
        10, ge=2, description="papers below which a comparison of models is `too few`"
    )
    interval: Literal["adjusted", "percentile"] = Field(
        "adjusted",
        description="adjusted for few clusters and rates near 0 or 1, or percentile",
    )
    grounding: bool = Field(
        default=True, description="search the text for predicted variants"
    )

    @model_validator(mode="before")
    @classmethod
    def _papers_alone(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic's hook
        """Select mode extract, with any ids, if there are only papers."""
        if not isinstance(values, Mapping) or not values.get("papers"):
            return values
        files = ("bench", "questions", *PIPELINES)
        if any(map(values.get, files)) or values.get("mode") not in {None, "extract"}:
            return values
        return {"any_id": True, **values, "mode": "extract"}

    @property
    def takes_all_papers(self) -> bool:
        """Whether variants of all papers are extracted, without a bench."""
        no_bench = self.bench is None and self.papers is not None
        return no_bench and self.mode == "extract"
