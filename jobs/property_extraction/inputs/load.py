"""Loads a run's inputs: curated values, and the rules by which values are scored."""

from __future__ import annotations

from pathlib import Path

from jobs.noticed import Noticed
from jobs.property_extraction.aliases.alias_set import AliasSet
from jobs.property_extraction.aliases.file import read_aliases
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.inputs.columns import NA
from jobs.property_extraction.inputs.papers import Papers, read_papers
from jobs.property_extraction.inputs.rubric import read_rubric
from jobs.property_extraction.inputs.tables import (
    read_clusters,
    read_space_groups,
    read_unit_table,
)
from jobs.property_extraction.inputs.truth import read_truth
from jobs.property_extraction.rubric import Rubric
from jobs.property_extraction.settings import INPUTS, Settings
from runner.errors import UsageError
from runner.job import InputFile

SAMPLE = Path(__file__).parents[1] / "sample"

READ = (
    "papers",
    "truth",
    "rubric",
    "clusters",
    "space_groups",
    "unit_table",
    "aliases",
)
"""The inputs that scoring goes by."""


def with_sample(settings: Settings) -> Settings:
    """The shipped sample where no input is named; the given object otherwise."""
    if any(getattr(settings, name) for name in INPUTS):
        return settings
    return settings.model_copy(
        update={
            "papers": SAMPLE / "papers",
            "truth": SAMPLE / "truth.csv",
            "rubric": SAMPLE / "rubric.csv",
            "clusters": SAMPLE / "clusters.json",
        }
    )


def require(settings: Settings) -> None:
    """Refuse settings that a run cannot start from.

    Raises:
        UsageError: the papers or the curated values are not named.
    """
    if settings.papers is None:
        raise UsageError(
            "Name the papers, --papers DIR or FILE.jsonl, or no input at all to run on "
            "the shipped sample."
        )
    _require_truth(settings)


def _require_truth(settings: Settings) -> Path:
    if settings.truth is None:
        raise UsageError("Name the curated values: --truth FILE.")
    return settings.truth


def inputs(settings: Settings) -> tuple[InputFile, ...]:
    """The files and folders that `load` reads under these settings."""
    return tuple(
        InputFile(setting=name, path=getattr(settings, name))
        for name in READ
        if getattr(settings, name) is not None
    )


def load(settings: Settings) -> Dataset:
    """Read and validate the inputs that are named.

    Raises:
        DatasetError: an input is off.
        UsageError: no curated values are named.
    """
    noticed = Noticed()
    truth = read_truth(_require_truth(settings), noticed, NA[settings.na])
    rubric = Rubric()
    if settings.rubric is not None:
        found = read_rubric(
            settings.rubric,
            noticed,
            is_unknown_exact=settings.unknown_rubric == "exact",
        )
        rubric = found.rubric
        _note_dropped(settings.rubric, found.dropped, found.conditions, noticed)
    if truth.blank:
        noticed.add(
            "gt_blank",
            "info",
            truth_name(settings),
            "Rows have no value and are left out.",
            n=truth.blank,
        )
    return Dataset(
        settings=settings,
        papers=Papers() if settings.papers is None else read_papers(settings.papers),
        truth=truth.rows,
        truth_blank=truth.blank,
        rubric=rubric,
        clusters={} if settings.clusters is None else read_clusters(settings.clusters),
        space_groups=None
        if settings.space_groups is None
        else read_space_groups(settings.space_groups),
        unit_table=()
        if settings.unit_table is None
        else read_unit_table(settings.unit_table),
        aliases=AliasSet()
        if settings.aliases is None
        else read_aliases(settings.aliases),
        findings=noticed.findings(),
    )


def truth_name(settings: Settings) -> str:
    """How findings call the file of curated values."""
    return "truth" if settings.truth is None else settings.truth.name


def _note_dropped(path: Path, dropped: int, conditions: int, noticed: Noticed) -> None:
    if dropped:
        noticed.add(
            "rubric_dropped",
            "info",
            path.name,
            "Rows have no name or no rubric and are left out.",
            n=dropped,
        )
    if conditions:
        noticed.add(
            "rubric_conditions",
            "info",
            path.name,
            "Rows describe conditions, not properties, and are left out.",
            n=conditions,
        )
