"""Recorded results of an agent, imported and scored by the command.

What is asserted was known beforehand and is read from the files that scoring wrote.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.commands import command
from tests.csv_files import rows

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(120)]

Benchmarks = Mapping[tuple[str, str], Mapping[str, Any]]
"""Results by review and library."""

LIBRARIES = ("full_library", "pubmed_only_library", "title_only_library")

BETTER_TITLES = {
    ("CD008080", "title_only_library"): (1.0, 33),
    ("CD012199", "full_library"): (0.9555555555555556, 43),
    ("CD012199", "title_only_library"): (0.9555555555555556, 43),
    ("CD012199", "pubmed_only_library"): (0.9512195121951219, 39),
    ("CD013328", "full_library"): (0.9433962264150944, 50),
    ("CD013328", "title_only_library"): (0.9433962264150944, 50),
    ("CD015249", "title_only_library"): (0.9, 9),
}
"""Precision and distinct documents where the best title is not the first one."""

FOUND = {
    "CD008080": (26, 33), "CD010452": (26, 29), "CD012199": (41, 45),
    "CD013328": (33, 53), "CD013640": (5, 9), "CD015016": (8, 8),
    "CD015244": (3, 4), "CD015249": (10, 10),
}  # fmt: skip
"""Of the PubMed library: truth papers included, and all."""

BY_LIBRARY = {
    "full_library": {
        "passed": 8, "macro.recall": 1.0, "micro.recall": 1.0,
        "macro.precision": 0.9722174575948161, "count.found": 191,
        "count.not_found": 0, "count.found_but_excluded": 0, "count.included": 195,
        "count.method.pmid": 118, "count.method.doi": 34,
        "count.method.title_fuzzy": 39, "count.method.null": 0,
    },
    "pubmed_only_library": {
        "passed": 2, "macro.recall": 0.8154673360146685,
        "micro.recall": 0.7958115183246073, "macro.precision": 0.9901145602365115,
        "count.found": 152, "count.not_found": 39, "count.found_but_excluded": 0,
        "count.included": 151, "count.method.pmid": 118, "count.method.doi": 26,
        "count.method.title_fuzzy": 8, "count.method.null": 39,
    },
    "title_only_library": {
        "passed": 8, "macro.recall": 1.0, "micro.recall": 1.0,
        "macro.precision": 0.970558627918745, "count.found": 191,
        "count.not_found": 0, "count.found_but_excluded": 0, "count.included": 191,
        "count.method.pmid": 0, "count.method.doi": 0,
        "count.method.title_fuzzy": 191, "count.method.null": 0,
    },
}  # fmt: skip
SINGLE_PASS = (0.9670811892510006, 0.9870657797487066, 0.934275990221013)
"""Macro precision by library."""


def about(value: float) -> Any:
    return pytest.approx(value, abs=1e-12, rel=1e-12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A run of recorded results, and where its scorings lie."""

    folder: Path

    def scored(self, number: int, *words: object) -> Scoring:
        """The run scored once more."""
        done = command("score", self.folder, "--no-report", *words)
        assert done.code == 0, done.err
        return Scoring(folder=self.folder / "scores" / str(number))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """A scoring's folder."""

    folder: Path

    def benchmarks(self) -> Benchmarks:
        files = sorted(self.folder.glob("results/*/benchmark_*.json"))
        read = [json.loads(path.read_text()) for path in files]
        return {(each["cochrane_id"], each["model"]): each for each in read}

    def metrics(self, model: str) -> Mapping[str, Mapping[str, Any]]:
        card = json.loads((self.folder / "scorecard.json").read_text())
        found: Mapping[str, Mapping[str, Any]] = card["models"][model]["metrics"]
        return found

    def ratios(self) -> list[float]:
        """Of all matches by title."""
        return [
            float(row["match_confidence"])
            for row in rows(self.folder / "matches.csv")
            if row["match_method"] == "title_fuzzy"
        ]


@pytest.fixture(scope="module")
def recorded(realdata: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    runs = tmp_path_factory.mktemp("recorded")
    shipped = realdata / "bmlibrarian"
    done = command(
        "import", "review-benchmark", "--truth", shipped / "ground_truth",
        "--results", shipped / "agent_runs", "--runs-dir", runs, "--run-id", "recorded",
        "--set", "matching=single-pass", "--set", "boot_b=0", "--no-report",
    )  # fmt: skip
    assert done.code == 0, done.err
    return Recorded(folder=runs / "recorded")


@pytest.fixture(scope="module")
def single_pass(recorded: Recorded) -> Scoring:
    return Scoring(folder=recorded.folder / "scores" / "1")


@pytest.fixture(scope="module")
def default(recorded: Recorded) -> Scoring:
    changed = ("matching=whole-list", "boot_b=2000", "interval=percentile")
    words = [word for each in changed for word in ("--set", each)]
    return recorded.scored(2, *words)


def test_one_pass_reproduces_every_recorded_result(
    realdata: Path, single_pass: Scoring
) -> None:
    expected = json.loads((realdata / "bmlibrarian/expected_results.json").read_text())
    found = {
        f"{review}__{library}": each["summary"]
        for (review, library), each in single_pass.benchmarks().items()
    }
    assert len(found) == 24
    assert found == expected


def test_the_whole_list_differs_in_seven_results_alone(
    single_pass: Scoring, default: Scoring
) -> None:
    before, after = single_pass.benchmarks(), default.benchmarks()
    differ = {}
    for key, each in after.items():
        names = each["summary"].keys() - {"precision", "distinct_documents_matched"}
        assert {name: each[name] for name in names} == {
            name: before[key][name] for name in names
        }
        found = each["precision"], each["distinct_documents_matched"]
        if found != (
            before[key]["precision"],
            before[key]["distinct_documents_matched"],
        ):
            differ[key] = found
    assert differ == BETTER_TITLES


def test_libraries_come_to_what_is_known(
    single_pass: Scoring, default: Scoring
) -> None:
    for library, known in BY_LIBRARY.items():
        found = default.metrics(library)
        assert {path: found[path]["value"] for path in known} == {
            path: about(value) for path, value in known.items()
        }
    summary = json.loads((default.folder / "summary.json").read_text())["models"]
    std = {
        library: summary[library]["metrics"]["macro.recall"]["std"]
        for library in LIBRARIES
    }
    assert std == {
        "full_library": 0.0,
        "pubmed_only_library": about(0.16630868500563786),
        "title_only_library": 0.0,
    }
    precision = [
        single_pass.metrics(library)["macro.precision"]["value"]
        for library in LIBRARIES
    ]
    assert precision == [about(value) for value in SINGLE_PASS]


def test_what_pubmed_alone_finds_comes_with_its_interval(default: Scoring) -> None:
    found = default.metrics("pubmed_only_library")
    for review, (included, truth) in FOUND.items():
        recall = found[f"review.{review}.recall"]
        assert (recall["value"], recall["n"]) == (about(included / truth), truth)
    ends = {
        path: (found[path]["lo"], found[path]["hi"])
        for path in ("macro.recall", "micro.recall")
    }
    assert ends == {
        "macro.recall": (about(0.7079285299727923), about(0.9176769319742644)),
        "micro.recall": (about(0.6863876319758673), about(0.9041145048174608)),
    }


def test_every_lost_paper_has_a_step_and_what_to_do(default: Scoring) -> None:
    lost = rows(default.folder / "lost_papers.csv")
    steps = Counter(row["lost_at"] for row in lost)
    assert steps == {"not_in_database": 38, "near_miss_match": 1}
    assert all(row["hint"] for row in lost)


def test_findings_speak_of_odd_matches_and_of_few_reviews(default: Scoring) -> None:
    card = json.loads((default.folder / "scorecard.json").read_text())
    told = Counter(each["code"] for each in card["findings"])
    assert told == {"few_reviews": 1, "suspicious_match": 3}


def test_titles_match_as_is_known(single_pass: Scoring, default: Scoring) -> None:
    ratios = default.ratios()
    assert len(ratios) == 238
    assert [ratio for ratio in ratios if ratio < 1] == [0.8571428571428571]
    ratios = single_pass.ratios()
    below = [ratio for ratio in ratios if ratio < 1]
    assert (len(ratios), len(below)) == (238, 11)
    assert min(below) == 0.852112676056338


def test_other_options_change_nothing_here(
    recorded: Recorded, default: Scoring
) -> None:
    changed = ("matching=whole-list", "autojunk=off", "punctuation=delete", "boot_b=0")
    words = [word for each in changed for word in ("--set", each)]
    other = recorded.scored(3, *words).benchmarks()
    names = ("summary", "recall_distinct", "suspicious")
    for key, each in default.benchmarks().items():
        assert {name: each[name] for name in names} == {
            name: other[key][name] for name in names
        }
    # but for how near the likest title of a lost paper is, which hints tell
    assert rows(recorded.folder / "scores/3/matches.csv") == rows(
        default.folder / "matches.csv"
    )
