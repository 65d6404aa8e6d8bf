"""Every job runs without a truth, and gets its metrics when one is given later."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.contract.jobs.conftest import draw_one_format
from tests.contract.jobs.data import (
    Row,
    Words,
    evidence,
    sample,
    screening,
    treatments,
)
from tests.contract.jobs.jobs import FAST, JOBS, QUIET, SampleRun, recorded, run
from tests.contract.jobs.test_truth import sent
from tests.processes import siftlog


@dataclass(frozen=True, slots=True, kw_only=True)
class NoTruthCase:
    """Data of a sample with and without a truth."""

    without: Callable[[Path], Words]  #: names the same items and no truth
    given: Callable[[Path], Words]  #: with the truth, for a run
    later: Callable[[Path], Words]  #: the options of a scoring that give it
    item: str
    table: str  #: the file that is the result without a truth
    models: tuple[str, ...]  #: two of them
    compared: str = ""  #: a metric that needs no truth; empty: labels are compared


def unlabelled(folder: Path) -> Words:
    """The set of screening's sample, its labels blank."""
    return screening(folder, lambda row: {**row, "label": "", "kind": ""})


def labels(folder: Path) -> Words:
    """A file of the labels of screening's sample."""
    path = folder / "labels.csv"
    source = sample("screening") / "set" / "validation_set.csv"
    columns = ("review_pmid", "paper_pmid", "label", "kind")
    with source.open(newline="") as lines, path.open("w", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(columns)
        writer.writerows([row[c] for c in columns] for row in csv.DictReader(lines))
    return ("--labels", path)


def judged(row: Row) -> str:
    return row["groundtruth"]


def posts(folder: Path) -> Words:
    """The posts of evidence-retrieval's sample, without gold."""
    words = [*evidence(folder, judged)]
    at = words.index("--gold")
    return tuple(words[:at] + words[at + 2 :])


def gold(folder: Path) -> Words:
    del folder
    return ("--gold", sample("evidence-retrieval") / "gold.csv")


def rows(folder: Path) -> Words:
    return treatments(folder, lambda row: {**row, "drug": "", "dose": ""})


def all_rows(folder: Path) -> Words:
    return treatments(folder)[1:]


def extraction(folder: Path) -> Words:
    """The papers of property-extraction's sample."""
    del folder
    return "property-extraction", "--papers", sample("property-extraction") / "papers"


def curated(folder: Path) -> Words:
    del folder
    source = sample("property-extraction")
    return "--truth", source / "truth.csv", "--rubric", source / "rubric.csv"


def bench(folder: Path) -> Words:
    del folder
    return "--bench", sample("paper-investigation") / "variant_bench.jsonl"


def papers(folder: Path) -> Words:
    """The papers of paper-investigation's sample that its bench names."""
    source = sample("paper-investigation")
    lines = (source / "variant_bench.jsonl").read_text("utf-8").splitlines()
    wanted = {json.loads(line)["pmcid"] for line in lines}
    target = folder / "papers"
    target.mkdir()
    for path in (source / "papers").iterdir():
        if path.stem in wanted:
            shutil.copy(path, target)
    return "paper-investigation", "--papers", target


def questions(folder: Path) -> Words:
    """The questions of review-benchmark's sample, without studies."""
    target = folder / "questions"
    target.mkdir()
    for path in (sample("review-benchmark") / "truth").iterdir():
        review = json.loads(path.read_bytes())
        del review["included_studies"]
        (target / path.name).write_text(json.dumps(review), "utf-8")
    database = sample("review-benchmark") / "papers.db"
    return "review-benchmark", "--questions", target, "--database", database


def published(folder: Path) -> Words:
    del folder
    return "--truth", sample("review-benchmark") / "truth"


OFFLINE = "baseline/lexical"
CASES: Mapping[str, NoTruthCase] = {
    "screening": NoTruthCase(
        without=unlabelled,
        given=lambda folder: screening(folder, lambda row: row),
        later=labels,
        item="9800001:97000002",
        table="ranking.csv",
        models=(*recorded("screening")[:1], OFFLINE),
    ),
    "evidence-retrieval": NoTruthCase(
        without=posts,
        given=lambda folder: evidence(folder, judged),
        later=gold,
        item="post_01/A.1",
        table="evidence.csv",
        models=(*recorded("evidence-retrieval")[:1], OFFLINE),
    ),
    "property-extraction": NoTruthCase(
        without=extraction,
        given=lambda folder: (*extraction(folder), *curated(folder)),
        later=curated,
        item="SL-001",
        table="extracted.csv",
        models=(*recorded("property-extraction")[:1], OFFLINE),
        compared="grounded_rate",
    ),
    "paper-investigation": NoTruthCase(
        without=papers,
        given=lambda folder: (*papers(folder), *bench(folder), "--mode", "extract"),
        later=bench,
        item="PMC0000001",
        table="extracted.csv",
        models=(OFFLINE,),
    ),
    "review-benchmark": NoTruthCase(
        without=questions,
        given=lambda folder: (*questions(folder), *published(folder)),
        later=published,
        item="CD990001",
        table="candidates.csv",
        models=(*recorded("review-benchmark")[:1], OFFLINE),
    ),
    "treatments": NoTruthCase(
        without=rows,
        given=treatments,
        later=all_rows,
        item="a1",
        table="answers.csv",
        models=(OFFLINE,),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The runs of a case, of the same models."""

    case: NoTruthCase
    blind: SampleRun  #: without a truth
    told: SampleRun  #: with it
    folder: Path


@pytest.fixture(scope="module", params=CASES)
def runs(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    installed: Path,
) -> Runs:
    case = CASES[request.param]
    folder = tmp_path_factory.mktemp("no-truth")
    models = [word for model in case.models for word in ("--model", model)]
    made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(installed)
        patch.setenv("SIFTLOG_STOP_IF", "off")
        patch.setenv("SIFTLOG_ALLOW_UNKNOWN_PRICE", "1")
        draw_one_format(patch)
        for name, build, said in (
            ("blind", case.without, ()),
            ("told", case.given, QUIET),
        ):
            (folder / name).mkdir()
            words = (*build(folder / name), *models, *said)
            made.append(run(folder, *words, name=name))
    for each in made:
        assert each.done.code == 0, each.done.err
    blind, told = made
    return Runs(case=case, blind=blind, told=told, folder=folder)


def leaves(metrics: Any) -> Iterator[float | None]:
    """The values of a model's metrics, at any depth."""
    if "value" in metrics:
        yield metrics["value"]
    for inner in metrics.values():
        if isinstance(inner, dict):
            yield from leaves(inner)


def codes(card: Any) -> set[str]:
    return {finding["code"] for finding in card["findings"]}


def test_a_missing_truth_is_one_finding_and_one_sentence(runs: Runs) -> None:
    assert "no_truth" in codes(runs.blind.card())
    assert runs.blind.done.out.count("No truth given: ") == 1
    assert "no_truth" not in codes(runs.told.card())
    assert "No truth given" not in runs.told.done.out


def test_metrics_that_need_a_truth_are_absent_and_not_undefined(runs: Runs) -> None:
    blind, told = runs.blind.card()["models"], runs.told.card()["models"]
    for model, metrics in blind.items():
        values = [*leaves(metrics)]
        assert None not in values
        assert 0 < len(values) < len([*leaves(told[model])])


def test_no_verdict_is_right_or_wrong(runs: Runs) -> None:
    with closing(sqlite3.connect(runs.blind.scoring() / "verdicts.db")) as verdicts:
        judged = verdicts.execute("SELECT correct, expected FROM verdict").fetchall()
    assert set(judged) <= {(None, "")}


def test_the_table_report_and_page_of_an_item_are_there(runs: Runs) -> None:
    folder = runs.blind.scoring()
    with (folder / runs.case.table).open(encoding="utf-8", newline="") as lines:
        assert len([*csv.DictReader(lines)]) > 3
    assert (folder / "report.html").exists()
    assert "figure_failed" not in codes(runs.blind.card())
    page = runs.blind.command("explain", runs.case.item)
    assert (page.code, page.err) == (0, "")


def test_models_are_compared_by_their_agreement(runs: Runs) -> None:
    if len(runs.case.models) == 1:
        pytest.skip("the case has one model")
    done = runs.blind.command("compare")
    assert done.code == 0, done.err
    if runs.case.compared:
        assert runs.case.compared in done.out
        return
    assert "no metric to compare (a truth is needed" in done.out
    assert "agreement  of the " in done.out
    named = runs.blind.command("compare", "--metric", "accuracy")
    assert named.code == 2
    assert "scored with a truth" in named.err


def test_a_truth_given_later_gives_the_metrics_of_one_given_at_the_run(
    runs: Runs,
) -> None:
    later = runs.folder / "later"
    later.mkdir(exist_ok=True)
    words = (*runs.case.later(later), *FAST, *QUIET)
    done = runs.blind.command("score", *words)
    assert done.code == 0, done.err
    assert runs.blind.card(2)["models"] == runs.told.card()["models"]
    if len(runs.case.models) > 1:
        note = runs.blind.command("compare").err
        assert f"to compare by it, name {runs.blind.name}@2." in note


@pytest.mark.parametrize("name", [name for name in CASES if name != "treatments"])
def test_the_command_as_a_process_runs_without_a_truth(
    name: str, tmp_path: Path
) -> None:
    words = CASES[name].without(tmp_path)
    done = siftlog("run", *words, *QUIET, "--run-id", "r", cwd=tmp_path)
    assert "No truth given: " in done.stdout
    assert (tmp_path / "runs/r/scores/1" / CASES[name].table).exists()


@pytest.mark.parametrize("name", CASES)
def test_requests_without_a_truth_are_those_with_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = []
    for part in ("without", "given"):
        (tmp_path / part).mkdir()
        words = getattr(CASES[name], part)(tmp_path / part)
        requests.append(sent(JOBS[name], tmp_path / part, *words, patch=monkeypatch))
    one, other = requests
    assert len(one) > 3
    assert one == other
