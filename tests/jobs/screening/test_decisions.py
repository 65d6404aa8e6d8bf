"""A keyword rule over real labelled records, imported and scored by the command.

What is asserted was known beforehand and is read from the files that scoring wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.commands import command
from tests.csv_files import rows, write_csv
from tests.jobs.screening.commanded import prepare

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(120)]

COLUMNS = ("review_pmid", "paper_pmid", "decision", "confidence", "label", "model")
RULE, HUMAN = "rule", "human"
FINAL = "three_tables_cohen_final"

BY_REVIEW = {
    "Antihistamines": (310, 16, "9/7/131/130", 0.8935483870967742, {
        "wss95": 0.0016129032258064072, "recall_at_10pct": 0.0625,
        "atd": 0.4566532258064516, "ndcg": 0.40594355238284224,
        "loss": 0.452593537414966, "auroc": 0.5476190476190477,
        "ap": 0.05695564516129032,
    }),
    "NSAIDS": (393, 41, "36/4/153/155", 0.8854961832061069, {
        "wss95": 0.30114503816793886, "recall_at_10pct": 0.2926829268292683,
        "atd": 0.25470117296592815, "ndcg": 0.7283049027461632,
        "loss": 0.2247089800443459, "auroc": 0.7775776053215078,
        "ap": 0.24407761321638388,
    }),
    "ProtonPumpInhibitors": (1333, 51, "41/9/497/625", 0.8792198049512379, {
        "wss95": 0.08728432108027001, "recall_at_10pct": 0.2549019607843137,
        "atd": 0.2897783269346748, "ndcg": 0.5164112465564044,
        "loss": 0.28102535866140527, "auroc": 0.7157398060628307,
        "ap": 0.0713195920309733,
    }),
    "Triptans": (671, 24, "18/6/200/350", 0.8554396423248882, {
        "wss95": 0.24359165424739193, "recall_at_10pct": 0.25,
        "atd": 0.28651266766020866, "ndcg": 0.45444554341132015,
        "loss": 0.2778207109737249, "auroc": 0.719925296239052,
        "ap": 0.07194150223770823,
    }),
    "UrinaryIncontinence": (327, 40, "28/10/51/182", 0.8287461773700306, {
        "wss95": 0.3444954128440367, "recall_at_10pct": 0.375,
        "atd": 0.22285932721712537, "ndcg": 0.7411098499969927,
        "loss": 0.18249128919860627, "auroc": 0.7696428571428572,
        "ap": 0.3095511688471175,
    }),
}  # fmt: skip
"""n, positives, tp/fn/fp/tn, coverage, and what reading in order saves."""

MICRO = {
    "n": 3034, "positives": 172, "tp": 132, "fn": 36, "fp": 1032, "tn": 1442,
    "outcome.unclear": 392,
    "coverage": 0.8707976268951879,
    "sensitivity": 0.7857142857142857,
    "specificity": 0.5828617623282134,
    "precision": 0.1134020618556701,
    "npv": 0.9756427604871448,
    "f1": 0.1981981981981982,
    "f2": 0.35947712418300654,
    "mcc": 0.18116232698262943,
    "balanced_accuracy": 0.6842880240212496,
    "accuracy": 0.5957607872823618,
    "kappa": 0.09794759657804869,
    "ac1": 0.35106477908214373,
    "nnr": 8.818181818181818,
    "workload_reduction": 0.5594246782740349,
    "as_include.sensitivity": 0.7906976744186046,
    "as_include.specificity": 0.5038434661076171,
    "as_exclude.sensitivity": 0.7674418604651163,
    "as_exclude.specificity": 0.639412997903564,
    "ppv_at_0.02": 0.03701748992744496,
}  # fmt: skip

MACRO = {
    "sensitivity": 0.7538684210526315,
    "specificity": 0.5951703117687848,
    "precision": 0.1535938540573703,
    "coverage": 0.8684900389898076,
    "wss95": 0.19562586591308878,
    "wss100": 0.036408585711602194,
    "tnr95": 0.2654832787802385,
    "recall_at_10pct": 0.2470169775227164,
    "atd": 0.3021009441168777,
    "ndcg": 0.5692430190187445,
    "loss": 0.2837279752586097,
    "auroc": 0.706100922477059,
    "ap": 0.15076910429869464,
}

BY_KIND = {
    "near-miss": (
        "67/11", 0.14102564102564102, 0.1401315789473684, 2, 0.4936842105263158,
    ),
    "random": (
        "129/39", 0.23214285714285715, 0.20964912280701756, 5, 0.4946943299861496,
    ),
    "true-excluded": ("63/105", 0.625, 0.6366578947368422, 5, 0.7083702373807326),
}  # fmt: skip
"""fp/tn, specificity micro, macro, its reviews, and AUROC."""


def about(value: float) -> Any:
    return pytest.approx(value, abs=1e-12, rel=1e-12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A scoring's folder."""

    folder: Path

    def metrics(self, model: str) -> Mapping[str, Mapping[str, Any]]:
        card = json.loads((self.folder / "scorecard.json").read_text())
        found: Mapping[str, Mapping[str, Any]] = card["models"][model]["metrics"]
        return found

    def rows(self, name: str) -> list[dict[str, str]]:
        return rows(self.folder / name)


def labelled(cohen: Path) -> Iterator[tuple[str, dict[str, str]]]:
    for path in sorted(cohen.glob("*.csv")):
        for row in rows(path):
            yield path.stem, row


def ruled(row: Mapping[str, str]) -> tuple[str, float]:
    """The decision of the rule and its confidence."""
    found = f"{row['title']} {row['abstract']}".lower().count("random")
    if found:
        return "include", min(found, 4) / 4
    return ("exclude" if row["abstract"] else "unclear"), 0.0


def imported(folder: Path, name: str, decisions: Path, *words: object) -> Scored:
    runs = folder / "runs"
    done = command(
        "import", "screening", "--decisions", decisions, "--runs-dir", runs,
        "--run-id", name, "--no-report", *words,
    )  # fmt: skip
    assert done.code == 0, done.err
    return Scored(folder=runs / name / "scores" / "1")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("decisions")


@pytest.fixture(scope="module")
def cohen(realdata: Path) -> Path:
    return realdata / "near_miss" / "cohen2006"


@pytest.fixture(scope="module")
def two(cohen: Path, desk: Path) -> Scored:
    """The rule, and the reviewers' own reading of abstracts as a second model."""
    lines = []
    for review, row in labelled(cohen):
        paper, label = row["pubmedID"], row["label_included"]
        human = "include" if row["label_abstract_screening"] == "1" else "exclude"
        lines.append((review, paper, *ruled(row), label, RULE))
        lines.append((review, paper, human, "", label, HUMAN))
    path = write_csv(desk / "two.csv", COLUMNS, lines)
    return imported(
        desk, "two", path, "--prevalence", "0.02", "--interval", "percentile"
    )


def test_pooled_metrics_are_those_known(two: Scored) -> None:
    found = two.metrics(RULE)
    assert {name: found[f"all.micro.{name}"]["value"] for name in MICRO} == {
        name: about(value) for name, value in MICRO.items()
    }
    wilson = found["all.micro.sensitivity~wilson"]
    assert (wilson["lo"], wilson["hi"]) == (
        about(0.7176458742604324),
        about(0.8410086009682145),
    )
    drawn = found["all.micro.sensitivity"]
    assert (drawn["lo"], drawn["hi"]) == (0.694915254237, 0.850961538462)
    human = two.metrics(HUMAN)
    cells = {name: human[f"all.micro.{name}"]["value"] for name in ("tp", "fn", "fp")}
    assert cells == {"tp": 172, "fn": 0, "fp": 542}
    assert human["all.micro.tn"]["value"] == 2320


def test_means_over_reviews_are_those_known(two: Scored) -> None:
    found = two.metrics(RULE)
    assert {name: found[f"all.macro.{name}"]["value"] for name in MACRO} == {
        name: about(value) for name, value in MACRO.items()
    }
    wss = found["all.macro.wss95"]
    assert (wss["lo"], wss["hi"]) == (0.0786536137851, 0.304133909405)
    assert found["all.macro.wss95~std"]["value"] == about(0.14575328006151705)
    assert found["all.macro.sensitivity~std"]["value"] == about(0.12515446135346475)


def test_every_review_has_its_known_figures(two: Scored) -> None:
    found = {
        row["review_pmid"]: row
        for row in two.rows("per_review.csv")
        if row["model"] == RULE and row["stratum"] == "all"
    }
    assert list(found) == list(BY_REVIEW)
    for review, (n, positives, cells, coverage, ranking) in BY_REVIEW.items():
        row = found[review]
        assert (int(row["n"]), int(row["positives"])) == (n, positives)
        assert "/".join(row[name] for name in ("tp", "fn", "fp", "tn")) == cells
        assert float(row["coverage"]) == about(coverage)
        assert {name: float(row[name]) for name in ranking} == {
            name: about(value) for name, value in ranking.items()
        }


@pytest.mark.parametrize(
    ("settings", "known"),
    [
        (
            ("wss=no_offset", "recall_share=ceil"),
            {
                "all.macro.wss95": 0.24562586591308883,
                "all.macro.recall_at_10pct": 0.25201697752271646,
            },
        ),
        (("wss=asreview",), {"all.macro.wss95": 0.23092672236329065}),
    ],
)
def test_options_give_the_known_readings_of_stored_answers(
    two: Scored, desk: Path, settings: tuple[str, ...], known: Mapping[str, float]
) -> None:
    assert two.folder.is_dir()
    words = [word for each in ("boot_b=0", *settings) for word in ("--set", each)]
    done = command(
        "score", "two", "--runs-dir", desk / "runs", "--json", "--no-record", *words
    )
    found = json.loads(done.out)["models"][RULE]["metrics"]
    assert {path: found[path]["value"] for path in known} == {
        path: about(value) for path, value in known.items()
    }


def test_the_rule_against_the_reviewers(two: Scored) -> None:
    (row,) = two.rows("comparison.csv")
    assert (row["left"], row["right"]) == (RULE, HUMAN)
    counts = ("n", "left_alone_right", "right_alone_right")
    assert [int(row[name]) for name in counts] == [2642, 211, 793]
    assert float(row["mcnemar_p"]) == pytest.approx(7.655224562007335e-80, rel=1e-12)
    assert float(row["agreement"]) == about(0.6199848599545799)
    assert float(row["kappa"]) == about(0.1914489959898117)
    assert float(row["ac1"]) == about(0.3073457333329851)


def test_three_kinds_of_negatives_have_their_known_rates(
    cohen: Path, realdata: Path, desk: Path
) -> None:
    papers = {row["pubmedID"]: row for _, row in labelled(cohen)}
    columns = ("review_pmid", "pmid", "title", "abstract", "year")
    excluded = write_csv(
        desk / "excluded.csv",
        columns,
        [
            {**row, "review_pmid": review, "pmid": row["pubmedID"]}
            for review, row in labelled(cohen)
            if row["label_included"] == "0"
        ],
    )
    folder = desk / "set"
    prepare(
        "--tables", realdata / "near_miss" / FINAL, "--excluded", excluded,
        "--negatives", "near-miss,random,true-excluded", "--keep-without-negatives",
        "--out", folder,
    )  # fmt: skip
    pairs = [
        (row["review_pmid"], row["paper_pmid"])
        for row in rows(folder / "validation_set.csv")
    ]
    lines = [(review, paper, *ruled(papers[paper])) for review, paper in pairs]
    decisions = write_csv(desk / "three.csv", COLUMNS[:4], lines)
    named = ("--validation-set", folder, "--prevalence", "0.02,0.1")
    scored = imported(desk, "three", decisions, *named)
    # what was written is imported again to the same bytes
    again = imported(desk, "again", scored.folder / "decisions.csv", *named)
    for name in ("scorecard.json", "decisions.csv", "thresholds.csv"):
        assert (again.folder / name).read_bytes() == (scored.folder / name).read_bytes()
    found = scored.metrics("imported")
    for kind, (cells, micro, macro, reviews, auroc) in BY_KIND.items():
        own = "/".join(str(found[f"{kind}.micro.{c}"]["value"]) for c in ("fp", "tn"))
        assert own == cells
        assert found[f"{kind}.micro.specificity"]["value"] == about(micro)
        assert found[f"{kind}.macro.specificity"]["value"] == about(macro)
        assert found[f"{kind}.macro.specificity"]["n_defined"] == reviews
        assert found[f"{kind}.macro.auroc"]["value"] == about(auroc)
    assert (found["all.micro.tp"]["value"], found["all.micro.fn"]["value"]) == (132, 36)
    implied = found["contamination.implied"]
    assert implied["value"] is None
    assert implied["note"] == "not identified"
