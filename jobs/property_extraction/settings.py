"""Settings of the job, and the profiles that bundle them.

A profile is a named set of values; explicit values take precedence over it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from jobs.kit.profiles import ProfiledSettings

Mode: TypeAlias = Literal["extract", "verify"]
Units: TypeAlias = Literal["convert", "ignore"]
Numbers: TypeAlias = Literal["scientific", "strict"]
Categorical: TypeAlias = Literal["tokens", "substring", "equal"]
Keys: TypeAlias = Literal["folded", "exact"]
Matching: TypeAlias = Literal["maximum", "greedy"]
Unparsed: TypeAlias = Literal["text", "no_match"]
SameName: TypeAlias = Literal["guard", "keep"]
Names: TypeAlias = Literal["free", "listed"]
NameMatch: TypeAlias = Literal["exact", "fold"]
Grounding: TypeAlias = Literal["none", "near", "grounded"]
Clash: TypeAlias = Literal["best", "skip", "set"]

DATA = (
    *("papers", "truth", "rubric", "clusters", "space_groups", "unit_table", "aliases"),
    *("preds", "candidates", "verdicts", "review", "parent"),
)
"""Settings that name data; without any of them the sample is used."""

INPUTS = (*DATA, "prompts")
"""Settings that name a file or folder."""

PROFILES: Mapping[str, Mapping[str, Any]] = {
    "siftlog": {},
    "document": {
        "units": "ignore",
        "numbers": "strict",
        "abstentions": "value",
        "same_name": "keep",
    },
    "published": {
        "units": "ignore",
        "numbers": "strict",
        "categorical": "substring",
        "cluster_keys": "exact",
        "matching": "greedy",
        "paper_set": "common",
        "abstentions": "value",
        "unparsed_composition": "no_match",
        "same_name": "keep",
        "review_rows": "all",
    },
}

EVERYDAY = (
    *("mode", "papers", "truth", "rubric", "clusters", "aliases", "preds"),
    *("candidates", "verdicts", "names", "properties", "limit", "profile", "prompts"),
)
"""Settings that people usually change."""


class PropertySettings(ProfiledSettings):
    """Settings of property-extraction."""

    profiles = PROFILES

    mode: Mode = Field(
        "extract", description="extract values, or verify: are two names one property?"
    )
    papers: Path | None = Field(
        None, description="folder of <refno>.txt, .md or .pdf, or a JSONL refno, text"
    )
    truth: Path | None = Field(
        None,
        description="curated values: CSV, a folder of data files, or hf:OWNER/NAME, a "
        "Hugging Face data set",
    )
    rubric: Path | None = Field(
        None, description="CSV of how each property's values are compared"
    )
    clusters: Path | None = Field(
        None, description="JSON {property: {text: category}} of categorical values"
    )
    space_groups: Path | None = Field(
        None, description="JSON {symbol: number}, instead of the built-in table"
    )
    unit_table: Path | None = Field(
        None, description="CSV property_unit, SI, conversion_factor, of further units"
    )
    aliases: Path | None = Field(
        None, description="alias set, as JSON, or CSV with a status, or {pred: gt}"
    )
    accept_drafts: bool = Field(
        default=False, description="also apply unverified aliases"
    )
    preds: tuple[Path, ...] = Field(
        (), description="to import: CSV of predictions, files or folders"
    )
    map: tuple[str, ...] = Field(
        (), description="to import: OLD=NEW, a column by the name used here"
    )
    skip_bad: bool = Field(
        default=False, description="import: leave out files that cannot be read"
    )
    candidates: Path | None = Field(
        None, description="CSV of name pairs to verify, as a scoring writes it"
    )
    verdicts: tuple[Path, ...] = Field(
        (),
        description="verdicts on name pairs: CSV; prepare aliases: runs too",
    )
    review: Path | None = Field(
        None, description="prepare aliases: CSV of decisions made by people"
    )
    parent: Path | None = Field(
        None, description="prepare aliases: the alias set that this one grew from"
    )
    na: Literal["empty", "pandas"] = Field(
        "empty",
        description="missing cells: only empty ones, or all that pandas treats so",
    )
    unknown_rubric: Literal["error", "exact"] = Field(
        "error", description="unknown words of the rubric: refuse, or compare exactly"
    )

    names: Names = Field(
        "free", description="free, or listed: the prompt holds the names to use"
    )
    properties: Literal["all", "rubric", "truth"] = Field(
        "all",
        description="properties that the prompt asks for: all, or those alone that "
        "the rubric or the truth names",
    )
    chunk: Literal["auto", "off"] = Field(
        "auto",
        description="auto: a new run sets max_chars and max_output_tokens, where they "
        "are not given, so that prompt and reply fit its models; off: whole papers",
    )
    max_chars: int = Field(
        0, ge=0, description="longest part of a paper in a prompt; 0: whole papers"
    )
    chunk_overlap: int = Field(
        500, ge=0, description="characters that two parts of a paper share"
    )
    limit: int = Field(
        0,
        ge=0,
        description="size of a sample of the papers (mode verify: of the pairs); "
        "0: all",
    )
    requote: bool = Field(
        default=False, description="send quotes that are not in the paper again"
    )
    partial: Literal["fail", "keep"] = Field(
        "keep",
        description="a reply that ends at the token limit: keep its complete rows, or "
        "fail the paper",
    )
    field: str = Field(
        "superconducting materials", description="field of research, for verifying"
    )
    verify: Literal["pair", "choice"] = Field(
        "pair",
        description="one question per name pair, or one per name with all targets",
    )
    verify_replicates: int = Field(1, ge=1, description="requests per pair")
    max_prompt_tokens: int = Field(
        120000, ge=1, description="longest prompt, by estimate; others are skipped"
    )
    max_output_tokens: int = Field(
        8192, ge=1, description="longest reply, in tokens; see chunk"
    )
    temperature: float | None = Field(0.0, ge=0.0, description="sampling temperature")
    structured: Literal["auto", "off"] = Field(
        "auto", description="request JSON by schema if the endpoint supports it"
    )

    profile: Literal["siftlog", "document", "published"] = Field(
        "siftlog",
        description="named set of scoring rules; a single setting overrides it",
    )
    prompts: Path | None = Field(None, description="TOML of prompts to replace")
    units: Units = Field("convert", description="convert units, or ignore them")
    numbers: Numbers = Field(
        "scientific", description="how numbers are read: as papers print them, or bare"
    )
    categorical: Categorical = Field(
        "tokens", description="words in a row, any substring, or equal texts"
    )
    cluster_keys: Keys = Field(
        "folded", description="texts of clusters: folded where not exact, or exact"
    )
    matching: Matching = Field(
        "maximum", description="most pairs, or the first free one in file order"
    )
    paper_set: Literal["union", "common", "truth"] = Field(
        "union",
        description="papers of truth or predictions, of both alone, or that the truth "
        "names, also by rows without a value",
    )
    abstentions: Literal["leave_out", "value"] = Field(
        "leave_out", description="NOT_FOUND and the like: no prediction, or a value"
    )
    pymatgen: Literal["auto", "on", "leave_out"] = Field(
        "auto", description="compositions: compared, left out, or as installed"
    )
    unparsed_composition: Unparsed = Field(
        "text", description="compositions that cannot be read: by text, or no match"
    )
    same_name: SameName = Field(
        "guard", description="draft: never rename a right name, or keep all"
    )
    group_by: Literal["property", "property,material"] = Field(
        "property", description="what the values of a paper are grouped by"
    )
    dedupe: Literal["none", "exact"] = Field(
        "none", description="count rows that are equal in all fields once"
    )
    min_grounding: Grounding = Field(
        "none", description="exclude rows whose quote matches the paper less well"
    )
    name_match: NameMatch = Field(
        "exact", description="names of aliases: exact, or folded case and blanks"
    )
    clash: Clash = Field(
        "best", description="several targets of a name: the best, none, or all of them"
    )
    strict: bool = Field(
        default=False, description="prepare aliases: refuse unknown targets"
    )
    consensus: int = Field(
        0,
        ge=0,
        description="keep rows found in this many replicates; 0: score each replicate",
    )
    crossfit: bool = Field(
        default=False, description="score each paper with a draft from the others"
    )
    k: int = Field(3, ge=1, description="alias candidates per name, by similarity")
    top: int = Field(200, ge=1, description="pairs that are reviewed and drafted from")
    review_rows: Literal["top", "all"] = Field(
        "top", description="review file: those pairs by count, or all by name"
    )
    boot_b: int = Field(2000, ge=0, description="bootstrap replicates; 0: no intervals")
    boot_seed: int = Field(20260118, ge=0, description="seed of the bootstrap")
    level: float = Field(0.95, gt=0.0, lt=1.0, description="level of the intervals")
    min_clusters: int = Field(
        10, ge=2, description="papers below which a comparison of models is `too few`"
    )
    interval: Literal["adjusted", "percentile"] = Field(
        "adjusted",
        description="adjusted for few clusters and rates near 0 or 1, or percentile",
    )

    @model_validator(mode="before")
    @classmethod
    def _verdicts_alone(cls, values: Any) -> Any:  # noqa: ANN401 - pydantic's hook
        """Select the mode verify if there are verdicts and nothing to extract from."""
        if not isinstance(values, Mapping) or "mode" in values:
            return values
        others = ("papers", "truth", "preds", "candidates")
        is_alone = values.get("verdicts") and not any(map(values.get, others))
        return {**values, "mode": "verify"} if is_alone else values

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.max_chars and self.chunk_overlap >= self.max_chars:
            raise ValueError("chunk_overlap must be less than max_chars")
        return self
