"""Mismatches of real predictions: their numbers were counted by other means too."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from jobs.kit.testing import MemoryAnswers
from jobs.property_extraction.aliases.alias_set import AliasEntry, AliasSet
from jobs.property_extraction.aliases.candidates import draft_targets, similarity
from jobs.property_extraction.inputs import load
from jobs.property_extraction.job import job
from jobs.property_extraction.predictions import run_predictions
from jobs.property_extraction.results import ScoredModel, measure_run
from jobs.property_extraction.settings import PropertySettings
from tests.jobs.property_extraction.aliases.reviewed_names import reviewed_aliases

pytestmark = pytest.mark.realdata

GEMINI = "preds_gemini-2.5-flash.csv"
CHAT = "preds_chatextract.csv"
FREE = "preds_Ru7B3_free_names.csv"


@cache
def scored(folder: Path, name: str) -> ScoredModel:
    """Scored as the method's description has it; free names against their paper."""
    assets = folder / "scoring_assets"
    settings = PropertySettings(
        profile="document",
        truth=folder / "gt.csv",
        rubric=assets / "rubric.csv",
        clusters=assets / "property_clusters_gemini-3-pro-preview.json",
        space_groups=assets / "space_groups_normalized.json",
        paper_set="common",
        pymatgen="leave_out",
        boot_b=0,
    )
    given = job.importer.read(
        (folder / name,), settings, model="m", form=None, replicates={}
    )
    dataset = load(settings)
    answers = MemoryAnswers.of_import(given)
    results = measure_run(dataset, run_predictions(dataset, answers))
    return results.columns["m"]


@pytest.fixture
def folder(realdata: Path) -> Path:
    return realdata / "sci_llm"


def counted(column: ScoredModel, *words: str) -> tuple[float | int | None, ...]:
    return tuple(column.metric(f"mismatch.{word}").value for word in words)


def as_set(pairs: Iterable[tuple[str, str]]) -> AliasSet:
    return AliasSet(
        entries=tuple(
            AliasEntry(
                pred_name=name, gt_name=target, status="accepted", source="draft"
            )
            for name, target in pairs
        )
    )


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        (GEMINI, (1164, 74, 222, 194)),
        (CHAT, (1756, 36, 324, 281)),
        (FREE, (2728, 2, 264, 264)),
    ],
)
def test_pairs_of_names_those_within_others_and_the_most_similar_ones(
    folder: Path, name: str, numbers: tuple[int, int, int, int]
) -> None:
    words = ("pairs", "contained", "near", "near_distinct")
    assert counted(scored(folder, name), *words) == numbers


@pytest.mark.parametrize(
    ("name", "whole", "guarded"),
    [
        (GEMINI, (52, 52, "56bebefd9399"), (0, "e3b0c44298fc")),
        (CHAT, (49, 19, "64921ff19cb4"), (0, "e3b0c44298fc")),
        (FREE, (78, 1, "4ba89305c984"), (77, "ab68167821bb")),
    ],
)
def test_the_draft_map_with_and_without_the_guard(
    folder: Path, name: str, whole: tuple[int, int, str], guarded: tuple[int, str]
) -> None:
    column = scored(folder, name)
    found = column.mismatches
    made = as_set(found.draft.items()).id
    assert (*counted(column, "drafted", "drafted_selves"), made) == whole
    guard = draft_targets(found.review, "guard")
    assert (len(guard), as_set(guard.items()).id) == guarded


@pytest.mark.parametrize(
    ("name", "place", "row"),
    [
        (GEMINI, 0, ("Tc (of this sample) recommended",) * 2 + (4, 1.0)),
        (CHAT, 1, ("normal temperature", "common name of structure", 4, 10 / 21)),
        (FREE, 1, ("Debye temperature ΘD", "Debye temperature", 1, 34 / 37)),
    ],
)
def test_the_first_candidates(
    folder: Path, name: str, place: int, row: tuple[str, str, int, float]
) -> None:
    first = scored(folder, name).mismatches.review[place]
    seen = (first.pred_name, first.gt_name, first.count, first.avg_sim)
    assert seen == (*row[:3], pytest.approx(row[3], abs=1e-15))


def test_free_names_and_what_their_values_say(folder: Path) -> None:
    column = scored(folder, FREE)
    assert counted(column, "clashing", "by_value") == (68, 27)
    assert counted(column, "similarity") == pytest.approx((0.43190498346911377,), 1e-15)
    assert len(column.mismatches.review) == 200


def test_how_often_a_reader_would_have_chosen_what_spelling_and_values_offer(
    folder: Path,
) -> None:
    aliases = reviewed_aliases(folder)
    found = scored(folder, FREE).mismatches
    (paper,) = found.papers
    offered = {(each.pred_name, each.gt_name): each for each in found.candidates}

    def best(name: str) -> int:
        """The best rank that spelling gives one of the reader's targets."""
        ranked = sorted(paper.missed, key=lambda gt: (-similarity(name, gt), gt))
        return min(ranked.index(target) for target in aliases[name]) + 1

    ranks = {name: best(name) for name in aliases}
    assert sum(rank == 1 for rank in ranks.values()) == 5
    assert sum(rank <= 3 for rank in ranks.values()) == 14
    either = [
        name
        for name in aliases
        if any((name, target) in offered for target in aliases[name])
    ]
    assert len(either) == 18
    chosen = [name for name in aliases if found.draft.get(name) in aliases[name]]
    assert len(chosen) == 4
