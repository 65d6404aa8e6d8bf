"""Real tables through `siftlog prepare`, against answers known beforehand.

Each set is built once; what is asserted is read from what the command printed and
wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.csv_files import rows, write_csv
from tests.jobs.screening.commanded import prepare

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(120)]

ABSTRACT = "three_tables_cohen_abstract"
FINAL = "three_tables_cohen_final"
SCHIZOPHRENIA = "three_tables_schizophrenia"
SETS = (ABSTRACT, FINAL, SCHIZOPHRENIA)
BINS = ("0", "1-9", "10-49", "50-99", "100-199", "200+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A set's folder and what `prepare --json` printed of it."""

    folder: Path
    said: dict[str, Any]

    def rows(self, name: str) -> list[dict[str, str]]:
        return rows(self.folder / name)


def build(folder: Path, tables: Path, *words: object) -> Built:
    done = prepare("--tables", tables, "--out", folder, "--json", *words)
    return Built(folder=folder, said=json.loads(done.out))


@pytest.fixture(scope="module")
def near_miss(realdata: Path) -> Path:
    return realdata / "near_miss"


@pytest.fixture(scope="module")
def built(
    near_miss: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Built]:
    """The default build of every set."""
    folder = tmp_path_factory.mktemp("sets")
    return {name: build(folder / name, near_miss / name) for name in SETS}


@pytest.fixture(scope="module")
def doubted(
    near_miss: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Built]:
    """Builds that know exclusions; the final set with three kinds of negatives."""
    folder = tmp_path_factory.mktemp("doubted")
    columns = ("review_pmid", "pmid", "status", "title", "abstract", "year")
    register = rows(near_miss / "schizophrenia_register" / "review_study_edges.csv")
    lists: dict[str, list[dict[str, str]]] = {
        SCHIZOPHRENIA: [
            {
                "review_pmid": str(9_000_000 + int(row["ReviewID"])),
                "pmid": row["CRGStudyID"],
                "status": row["section"],
            }
            for row in register
            if row["section"] not in {"Included", "Other"}
        ]
    }
    for name, label in (
        (ABSTRACT, "label_abstract_screening"),
        (FINAL, "label_included"),
    ):
        lists[name] = [
            {**row, "review_pmid": path.stem, "pmid": row["pubmedID"]}
            for path in sorted((near_miss / "cohen2006").glob("*.csv"))
            for row in rows(path)
            if row[label] == "0"
        ]
    kinds = "near-miss,random,true-excluded"
    options = {FINAL: ("--negatives", kinds, "--keep-without-negatives")}
    return {
        name: build(
            folder / name,
            near_miss / name,
            "--excluded",
            write_csv(folder / f"{name}.csv", columns, lists[name]),
            *options.get(name, ()),
        )
        for name in SETS
    }


def digest(lines: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


GRAPH = {
    ABSTRACT: (
        (5, 5, 713, 652, 714, 1),
        (5, 2, 299, 59.8, 0, 0, 219),
        (3, 0, 0, 1, 0, 1),
        0.4,
    ),
    FINAL: (
        (5, 5, 171, 167, 172, 1),
        (5, 2, 88, 17.6, 0, 0, 49),
        (3, 0, 2, 0, 0, 0),
        0.4,
    ),
    SCHIZOPHRENIA: (
        (43, 38, 444, 429, 468, 23),
        (25, 16, 577, 23.08, 14, 0, 83),
        (9, 2, 8, 6, 0, 0),
        0.64,
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_the_graph_of_each_set(built: dict[str, Built], name: str) -> None:
    sizes, figures, histogram, share = GRAPH[name]
    inputs, near = (built[name].said[part] for part in ("inputs", "near_misses"))
    keys = ("reviews", "reviews_citing", "papers", "papers_with_abstract", "edges")
    assert tuple(inputs[key] for key in (*keys, "shared_papers")) == sizes
    assert inputs["edges_unique"] == inputs["edges"]
    keys = ("reviews_analysed", "reviews_with_candidates", "total", "mean", "median")
    assert tuple(near[key] for key in (*keys, "min", "max")) == figures
    assert near["share_with_candidates"] == share
    assert near["histogram"] == dict(zip(BINS, histogram, strict=True))
    stored = json.loads((built[name].folder / "summary.json").read_text("utf-8"))
    assert {"schema": "siftlog.prepared/1", **stored} == built[name].said


CANDIDATES = {
    ABSTRACT: "2fd7604678c0bf886e29c423056dfd52c7ba3e3203d3349be239cff63223e336",
    FINAL: "9f5061c653cb3c3851b821bdd30d3b0bec0f18b1a7e87e222fe7aad6eeb2ddb2",
    SCHIZOPHRENIA: "b71513190ec32df6326e557577aa8501789ba60a1207ba8c32304869a4aff714",
}
NOTHING = hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize("name", SETS)
def test_the_candidates_of_each_set(built: dict[str, Built], name: str) -> None:
    found = [
        (row["review_pmid"], row["paper_pmid"])
        for row in built[name].rows("candidates.csv")
    ]
    assert digest("\t".join(pair) for pair in found) == CANDIDATES[name]
    for row in built[name].rows("near_miss_stats.csv"):
        own = [paper for review, paper in found if review == row["review_pmid"]]
        assert row["n_candidates"] == str(len(own))
        assert row["candidates_sha256"] == (digest(own) if own else NOTHING)


DRAWN = {
    ABSTRACT: (
        2,
        (301, 161, 301),
        1,
        ("10024259", "10102948", "10201459"),
        "c1f3f6c0af0fbf306c4e9bd79343dc0e3b6cf226652494d97d125ec5c6264cfc",
    ),
    FINAL: (
        2,
        (90, 79, 90),
        1,
        ("10102948", "10383518", "10383532"),
        "f7ad2a48b94e1321d01b1f3fa85a95c42ab2990dd14e9e010d3b5e898e67905f",
    ),
    SCHIZOPHRENIA: (
        16,
        (317, 301, 317),
        4,
        ("1114", "12343", "1576"),
        "2e58283ddab56c8d17ddedda929a967c5c90ccfa9a306aeadad474e57d3de2b5",
    ),
}


def drawn(set_: Built) -> str:
    """The digest of a set's records."""
    columns = ("review_pmid", "paper_pmid", "label", "kind")
    return digest(
        "\t".join(row[name] for name in columns)
        for row in set_.rows("validation_set.csv")
    )


@pytest.mark.parametrize("name", SETS)
def test_the_default_draw_of_each_set(built: dict[str, Built], name: str) -> None:
    reviews, kinds, short, first, sha = DRAWN[name]
    said = built[name].said["set"]
    assert said["reviews"] == reviews
    assert tuple(
        said["kinds"][kind] for kind in ("included", "near-miss", "random")
    ) == (kinds)
    assert len(said["short"]) == short
    found = built[name].rows("validation_set.csv")
    near = [row["paper_pmid"] for row in found if row["kind"] == "near-miss"]
    assert tuple(near[:3]) == first
    assert drawn(built[name]) == sha


def test_three_kinds_of_negatives(doubted: dict[str, Built]) -> None:
    said = doubted[FINAL].said["set"]
    kinds = {"included": 168, "near-miss": 78, "random": 168, "true-excluded": 168}
    assert (said["records"], said["kinds"]) == (582, kinds)
    assert drawn(doubted[FINAL]) == (
        "c9feae8dd97bf1bbef12033dc6fe81993ecfa0384d68eb66a0b119994993d488"
    )


DRIFT = {
    ABSTRACT: (
        2,
        0.3278083898355788,
        0.15075021979023576,
        0.13517113402835762,
        0.9411223712902747,
        0.9589600232119171,
        0.0033333333333333335,
    ),
    FINAL: (
        2,
        0.3741831339593925,
        0.1726651779965856,
        0.14110177975435917,
        0.9758974358974358,
        0.9843589743589743,
        0.011235955056179775,
    ),
    SCHIZOPHRENIA: (
        16,
        0.37692750164261,
        0.20711906693463084,
        0.056849518450650935,
        0.7424439328884037,
        0.955020543761809,
        0.05693831832263417,
    ),
}


@pytest.mark.parametrize("name", SETS)
def test_the_topic_drift_of_each_set(built: dict[str, Built], name: str) -> None:
    reviews, *figures = DRIFT[name]
    drift = built[name].said["topic_drift"]
    assert drift["reviews"] == reviews
    names = [f"similarity.{kind}" for kind in ("included", "near-miss", "random")]
    names += [f"separability.{kind}" for kind in ("near-miss", "random")]
    found = [drift["macro"][each] for each in (*names, "jaccard")]
    assert found == pytest.approx(figures, abs=1e-9, rel=0)


DOUBT = {
    SCHIZOPHRENIA: (605, 19, 1, 585, 0.03140495867768595, 0.05027964850005926),
    ABSTRACT: (299, 3, 0, 296, 0.010033444816053512, 0.01875),
    FINAL: (88, 1, 0, 87, 0.011363636363636364, 0.01282051282051282),
}


@pytest.mark.parametrize("name", SETS)
def test_the_contamination_of_each_set(doubted: dict[str, Built], name: str) -> None:
    n, confirmed, pending, unverified, micro, macro = DOUBT[name]
    found = doubted[name].said["contamination"]
    assert (found["n"], found["confirmed"], found["pending"]) == (n, confirmed, pending)
    assert (found["duplicate_suspect"], found["unverified"]) == (
        n - confirmed - pending - unverified,
        unverified,
    )
    assert found["share_confirmed_micro"] == micro
    assert found["share_confirmed_macro"] == pytest.approx(macro, abs=1e-15)
    assert found["upper"] == 1 - confirmed / n
    parts = doubted[name].rows("contamination.csv")
    assert sum(int(row["confirmed"]) for row in parts) == confirmed


def test_the_exclusions_of_the_register(doubted: dict[str, Built]) -> None:
    said = doubted[SCHIZOPHRENIA].said
    assert said["inputs"]["exclusions"] == 1015
    assert said["inputs"]["exclusions_with_text"] == 84
    # nobody both includes and excludes a study, and none is listed twice
    assert said["findings"] == []
    assert said["contamination"]["reviews"] == 16
