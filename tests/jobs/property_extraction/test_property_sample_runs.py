"""Runs and imports that start from the sample: what every oddity in it leads to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs.property_extraction.inputs import SAMPLE
from runner.typeset import (
    as_meant,
)
from tests.jobs.screening.commanded import command, rows

COUNTS = ("tp", "fp", "fn")
RULES = (
    *("--truth", SAMPLE / "truth.csv", "--rubric", SAMPLE / "rubric.csv"),
    *("--clusters", SAMPLE / "clusters.json", "--unit-table", SAMPLE / "units.csv"),
)
QUICK = ("--no-report", "--boot-b", 0)
TEASEL, YARROW = (
    f"recorded:{SAMPLE / 'replies' / model}.jsonl"
    for model in ("teasel-70b", "yarrow-8b")
)


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the sample in a folder of its own."""

    folder: Path
    run: str

    def score(self, **settings: object) -> int:
        """Score it again; the number of the scoring."""
        words = (f"--set={name}={value}" for name, value in settings.items())
        done = command("score", self.run, "--runs-dir", self.folder, *QUICK, *words)
        assert done.code == 0, done.err
        return len([*(self.folder / self.run / "scores").iterdir()])

    def metrics(self, *names: str, scoring: int = 1) -> dict[str, tuple[object, ...]]:
        """Metrics by model."""
        path = self._scoring(scoring) / "scorecard.json"
        models = json.loads(path.read_text("utf-8"))["models"]
        return {
            model: tuple(own["metrics"][name]["value"] for name in names)
            for model, own in models.items()
        }

    def statuses(
        self, refno: str, name: str, *, scoring: int = 1, model: str = ""
    ) -> list[tuple[str, str, str]]:
        """Status, predicted and curated value of the rows of a group."""
        return [
            (row["status"], row["pred_value"], row["gt_value"])
            for path in self._scoring(scoring).rglob("score_pr_rows.csv")
            if model in path.parent.name
            for row in rows(path)
            if (row["refno"], as_meant(row["property_name"])) == (refno, name)
        ]

    def draft(self, model: str) -> dict[str, str]:
        """The draft of an alias map that a scoring writes."""
        (path,) = self._scoring(1).glob(f"*{model}*/property_aliases.json")
        found: dict[str, str] = json.loads(path.read_text("utf-8"))
        return found

    def _scoring(self, number: int) -> Path:
        return self.folder / self.run / "scores" / str(number)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("recorded")
    models = ("--model", TEASEL, "--model", YARROW)
    own = ("--runs-dir", folder, "--run-id", "two", *QUICK)
    done = command("run", "property-extraction", *models, *own)
    assert done.code == 0, done.err
    assert "using the sample that ships with property-extraction" in done.err
    return Run(folder, "two")


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("imported")
    words = ("--preds", SAMPLE / "predictions.csv", *RULES)
    own = ("--runs-dir", folder, "--run-id", "told", *QUICK)
    done = command("import", "property-extraction", *words, *own)
    assert done.code == 0, done.err
    return Run(folder, "told")


def test_two_recorded_models_are_scored(recorded: Run) -> None:
    assert recorded.metrics(*COUNTS) == {TEASEL: (43, 27, 24), YARROW: (7, 19, 60)}
    fabricated = recorded.metrics("grounding.absent", "grounding.no_quote")
    assert fabricated == {TEASEL: (1, 0), YARROW: (0, 1)}


def test_habits_have_targets_that_a_draft_finds_and_false_friends(
    recorded: Run,
) -> None:
    draft = recorded.draft("teasel-70b")
    right = {
        "Debye temperature, fit": "Debye temperature",
        "Sommerfeld constant": "Sommerfeld coefficient",
        "a-axis lattice parameter": "lattice parameter a",
        "lower critical field at T = 0": "lower critical field at 0 K",
    }
    friends = {
        "critical temperature, resistance onset": (
            "critical temperature, zero resistance"
        ),
        "upper critical field at 4.2 K, H // c": "upper critical field at 0 K, H // c",
    }
    assert right.items() <= draft.items()
    assert friends.items() <= draft.items()


def test_fields_in_oersted_match_those_in_tesla_only_if_units_are_converted(
    recorded: Run, imported: Run
) -> None:
    upper = ("SL-002", "upper critical field at 0 K")
    assert recorded.statuses(*upper, model="teasel") == [("TP", "61.7", "6.17")]
    assert imported.statuses(*upper) == [("TP", "61.7", "6.17")]
    ignoring = imported.score(units="ignore")
    assert imported.statuses(*upper, scoring=ignoring) == [
        *(("FP", "61.7", ""), ("FN", "", "6.17"))
    ]


def test_a_factor_of_thousand_in_a_unit_is_no_match(recorded: Run) -> None:
    assert recorded.statuses("SL-001", "residual resistivity", model="yarrow") == [
        *(("FP", "31.4", ""), ("FN", "", "31.4"))
    ]


def test_repeated_values_need_maximum_matching(imported: Run) -> None:
    debye = ("SL-002", "Debye temperature")
    assert imported.statuses(*debye) == [
        *(("TP", "312.0", "311.8"), ("TP", "312.45", "312.2"))
    ]
    greedy = imported.score(matching="greedy")
    assert imported.statuses(*debye, scoring=greedy) == [
        *(("TP", "312.0", "312.2"), ("FP", "312.45", ""), ("FN", "", "311.8"))
    ]


def test_papers_of_one_file_count_unless_papers_of_both_are_asked_for(
    imported: Run,
) -> None:
    assert imported.metrics(*COUNTS) == {"sample/bryony-13b": (36, 11, 31)}
    common = imported.score(paper_set="common")
    assert imported.metrics(*COUNTS, scoring=common) == {
        "sample/bryony-13b": (36, 9, 19)
    }


def test_a_value_that_says_there_is_none_is_no_prediction(imported: Run) -> None:
    assert imported.metrics("abstained") == {"sample/bryony-13b": (4,)}
    kept = imported.score(abstentions="value")
    assert imported.metrics(*COUNTS, scoring=kept) == {
        "sample/bryony-13b": (36, 15, 31)
    }


def test_ranges_and_bounds_are_no_values(recorded: Run, imported: Run) -> None:
    kinds = ("numbers.si.range", "numbers.si.bound")
    assert imported.metrics(*kinds) == {"sample/bryony-13b": (1, 1)}
    assert recorded.metrics(*kinds) == {TEASEL: (0, 1), YARROW: (1, 0)}


def test_a_name_may_be_predicted_and_missed_at_once(recorded: Run) -> None:
    onset = recorded.statuses("SL-005", "critical temperature, onset", model="yarrow")
    assert onset == [("FP", "4.5", ""), ("FN", "", "4.52")]


def test_a_second_look_at_quotes_finds_withdraws_or_gives_up(
    tmp_path: Path, recorded: Run
) -> None:
    own = ("--runs-dir", tmp_path, "--run-id", "again", "--requote", *QUICK)
    models = ("--model", TEASEL, "--model", YARROW)
    done = command("run", "property-extraction", *models, *own)
    assert done.code == 0, done.err
    again = Run(tmp_path, "again")
    assert again.metrics(*COUNTS) == recorded.metrics(*COUNTS)
    quotes = again.metrics("grounding.absent", "grounding.no_quote")
    assert quotes == {TEASEL: (1, 0), YARROW: (0, 0)}


def test_the_baseline_runs_on_the_sample(tmp_path: Path) -> None:
    own = ("--runs-dir", tmp_path, "--run-id", "floor", *QUICK)
    done = command("run", "property-extraction", *own)
    assert done.code == 0, done.err
    ((tp, absent),) = Run(tmp_path, "floor").metrics("tp", "grounding.absent").values()
    assert tp
    assert not absent
