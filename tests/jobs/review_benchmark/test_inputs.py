"""Reading what people say of conclusions.

The sample that ships: its files agree, and every oddity in it does its work.

The database is what `prepare review-benchmark import` makes of the six files, in the
order of their names; whoever changes one builds it again, and the recorded answers go
by its ids.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.inputs.rows import InputFindings
from jobs.review_benchmark.coverage import coverage
from jobs.review_benchmark.data import TruthPaper
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.inputs import (
    SAMPLE,
    ConclusionLabel,
    inputs,
    load,
    read_labels,
)
from jobs.review_benchmark.lookup import ratio
from jobs.review_benchmark.matching import Normaliser
from jobs.review_benchmark.parsing import parse_conclusion, parse_plan, parse_score
from jobs.review_benchmark.prepare import PaperImport
from jobs.review_benchmark.settings import ENDS, ReviewBenchmarkSettings
from jobs.review_benchmark.truth_files import read_truth
from runner.errors import DatasetError
from runner.job import InputFile
from runner.messages import ParseFailure, Reply
from tests.commands import Done, command
from tests.csv_files import rows

HEADER = "cochrane_id,model,note,similar\n"


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines))
    return path


def test_labels_are_read_and_rows_without_one_passed_over(tmp_path: Path) -> None:
    noticed = InputFindings()
    path = written(tmp_path, "CD1,a,x,1", "CD1,b,,0", "CD2,a,,", "CD9,a,,")
    assert read_labels(path, {"CD1", "CD2"}, noticed) == (
        ConclusionLabel(review="CD1", model="a", similar=True),
        ConclusionLabel(review="CD1", model="b", similar=False),
    )
    assert [(each.code, each.example) for each in noticed.findings()] == [
        ("unknown_column", "note")
    ]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (
            ["CD3,a,,1"],
            "labels.csv line 2: cochrane_id is 'CD3', which has no ground truth (corr",
        ),
        (
            ["CD1,a,,1", "CD1,a,,1"],
            "labels.csv line 3: CD1 of a has a label already (remove one).",
        ),
        (["CD1,a,,yes"], "labels.csv line 2: similar is 'yes' (0 or 1 is expected)."),
        (["CD1,,,1"], "labels.csv line 2: model is missing (fill it in or remove"),
    ],
)
def test_what_is_wrong_with_a_label_is_said(
    tmp_path: Path, lines: list[str], complaint: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        read_labels(written(tmp_path, *lines), {"CD1"}, InputFindings())
    assert complaint in str(caught.value)


def test_labels_of_reviews_that_are_not_asked_for_are_left_out(tmp_path: Path) -> None:
    for review in ("CD1", "CD2"):
        value = {
            "cochrane_id": review,
            "title": "Title",
            "research_question": "Does it help?",
            "included_studies": [{"title": "A study"}],
        }
        (tmp_path / f"cochrane_{review}.json").write_text(json.dumps(value))
    path = written(tmp_path, "CD1,a,,1", "CD2,a,,0")
    settings = ReviewBenchmarkSettings(
        truth=tmp_path, verdict_labels=path, review=("CD2",)
    )
    assert load(settings).labels == (
        ConclusionLabel(review="CD2", model="a", similar=False),
    )
    # they are part of what a scoring goes by
    assert inputs(settings)[1:] == (InputFile(setting="verdict_labels", path=path),)


MODELS = ("hazel-70b", "fern-8b")
COUNTS = ("count.truth", "count.found", "count.found_and_included")

READ: Mapping[str, Callable[[Reply], object]] = {
    "plan": lambda reply: parse_plan(reply, 6),
    "score": lambda reply: parse_score(reply, ENDS["1-5"]),
    "conclude": parse_conclusion,
}


def truth() -> dict[str, TruthPaper]:
    """The studies that reviews include, by the name that each has in its review."""
    return {
        study.ref_id: study
        for review in read_truth(SAMPLE / "truth", InputFindings())
        for study in review.studies
    }


def covered(**settings: Any) -> dict[str, tuple[Any, ...]]:
    """How each study is found in the database: method, ratio and paper."""
    found = coverage(
        ReviewBenchmarkSettings(
            truth=SAMPLE / "truth", database=SAMPLE / "papers.db", **settings
        )
    )
    rows: Any = found.json["papers"]
    return {
        row["ref_id"]: (row["method"], row["ratio"], row["paper_id"]) for row in rows
    }


def test_the_database_is_what_the_six_files_hold(tmp_path: Path) -> None:
    files = tuple(sorted((SAMPLE / "papers").iterdir()))
    assert [path.suffix for path in files] == [
        *(".bib", ".csv", ".json", ".jsonl", ".ris", ".xml")
    ]
    told: list[str] = []
    made = PaperImport.of(
        ReviewBenchmarkSettings(database=tmp_path / "papers.db")
    ).read(files, told.append)
    total = made.total
    assert (total.records, total.papers) == (165, 120)
    assert total.merged == {"doi": 9, "pmid": 34, "title": 2}
    assert (total.conflicts, total.titles, total.deleted) == (1, 13, 1)
    with closing(PaperDatabase(SAMPLE / "papers.db")) as shipped:
        assert made.stock.content_hash == shipped.content_hash
    assert schema(tmp_path / "papers.db") == schema(SAMPLE / "papers.db")


def test_no_identifier_could_be_real() -> None:
    with closing(PaperDatabase(SAMPLE / "papers.db")) as database:
        papers = list(database.papers())
    assert all(int(paper.pmid) > 90_000_000 for paper in papers if paper.pmid)
    dois = {paper.doi for paper in papers if paper.doi}
    assert {doi for doi in dois if not doi.startswith("10.5555/")} == {
        "10.1002/14651858.cd990001"
    }


def test_every_oddity_does_its_work() -> None:
    studies, found = truth(), covered()
    assert studies.keys() == found.keys()
    assert len(studies) == 38  # two reviews include the same one
    # a DOI with resolver, in capitals, or beside an id of PubMed Central
    assert "dx.doi.org" in studies["HUM-4 2010"].doi
    for name in ("HUM-3 2009", "HUM-4 2010", "BUCK-8 2013", "GARDEN-6 2013"):
        assert found[name][:2] == ("doi", 1.0)
    # the DOI stands at another record, the PMID at its own
    assert found["HUM-5 2012"][:2] == ("pmid", 1.0)
    with closing(PaperDatabase(SAMPLE / "papers.db")) as database:
        owner = database.by_doi(studies["HUM-5 2012"].doi)
    assert owner not in {None, found["HUM-5 2012"][2]}
    # one study twice
    assert found["HUM-1 2004"] == found["HUM-1 2005"]
    # no identifiers, accents, and a title that only a merged record has
    for name in ("HUM-6 2013", "HUM-8 2006", "BUCK-7 2011"):
        assert not studies[name].pmid
        assert not studies[name].doi
        assert found[name][:2] == ("title_fuzzy", 1.0)
    assert "é" in studies["HUM-8 2006"].title
    # just above the cutoff, just below it, and not there at all
    assert 0.85 <= found["BUCK-4 2006"][1] < 0.86
    assert found["BUCK-5 2008"][0] is None
    assert 0.84 <= covered(title_cutoff=0.84)["BUCK-5 2008"][1] < 0.85
    assert {name for name, hit in found.items() if hit[0] is None} == {
        *("BUCK-5 2008", "HUM-7 2014", "HUM-12 2019", "GARDEN-9 2018")
    }


def test_a_long_title_with_an_early_word_changed_is_lost_to_difflibs_shortcut() -> None:
    long = Normaliser().title(truth()["HUM-7 2014"].title)
    assert len(long) == 240
    changed = long.replace("controlled", "randomised", 1)
    with closing(PaperDatabase(SAMPLE / "papers.db")) as database:
        (number,) = database.titled(changed)
    assert ratio(long, changed) < 0.5
    method, shown, paper = covered(autojunk=False)["HUM-7 2014"]
    assert (method, paper) == ("title_fuzzy", number)
    assert shown == ratio(long, changed, autojunk=False) > 0.97


@pytest.mark.parametrize(
    ("model", "reasons"),
    [
        ("hazel-70b", ""),
        (
            "fern-8b",
            "ambiguous bad_score bad_score empty no_queries refusal truncated",
        ),
    ],
)
def test_recorded_replies_are_read_or_fail_as_they_should(
    model: str, reasons: str
) -> None:
    text = (SAMPLE / "replies" / f"{model}.jsonl").read_text("utf-8")
    failed = []
    for line in map(json.loads, text.splitlines()):
        reply = Reply(
            text=line["response"], finish_reason=line.get("finish_reason", "stop")
        )
        found = READ[line["stage"]](reply)
        if isinstance(found, ParseFailure):
            failed.append(found.reason)
    assert sorted(failed) == reasons.split()


def test_a_run_without_inputs_is_one_on_the_sample(tmp_path: Path) -> None:
    done = run(tmp_path, "run", "--model", "baseline/lexical")
    assert "using the sample that ships with review-benchmark" in done.err
    assert measured(tmp_path, *COUNTS) == {"baseline/lexical": (39, 35, 26)}
    # all its conclusions are alike by words, and that passes none: one contradicts
    # its authors (grip strength), and two can not be judged
    verdicts = measured(tmp_path, "verdict.above", "verdict.judged", "verdict.passed")
    assert verdicts == {"baseline/lexical": (5, 3, 2)}
    contradicts = effects(tmp_path)["CD990002"]
    assert contradicts == ("improves", "no_difference", "failed", "direction")
    with closing(PaperDatabase(SAMPLE / "papers.db")) as database:
        itself = {database.by_doi("10.1002/14651858.cd990001")}
        itself |= {
            *database.titled("garden walking groups for low mood in family carers")
        }
    assert len(itself) == 2
    assert not itself & {int(key.partition(":")[2]) for key in scored(tmp_path)}


def test_two_recorded_models_answer_everything_that_is_asked(tmp_path: Path) -> None:
    named = [f"recorded:{SAMPLE / 'replies' / model}.jsonl" for model in MODELS]
    done = run(tmp_path, "run", *(word for name in named for word in ("--model", name)))
    assert "failed" not in done.err
    hazel, fern = named
    assert measured(tmp_path, *COUNTS) == {hazel: (39, 35, 32), fern: (39, 35, 25)}
    by_both = {
        "not_in_database": {"HUM-7 2014", "HUM-12 2019", "GARDEN-9 2018"},
        "near_miss_match": {"BUCK-5 2008"},
        "not_retrieved": {"HUM-9 2015"},
        "date_filtered": {"BUCK-6 2018"},
    }
    assert lost(tmp_path, hazel) == {**by_both, "below_threshold": {"GARDEN-8 2017"}}
    assert lost(tmp_path, fern) == {
        **by_both,
        "unscored": {"HUM-2 2007", "BUCK-8 2013", "SNORE-2 2014"},
        "below_threshold": {
            *("HUM-8 2006", "BUCK-4 2006", "QUINCE-4 2012", "GARDEN-5 2011"),
            "GARDEN-8 2017",
        },
    }
    # two reviews conclude so much alike that either verdict could be of the other
    verdicts = measured(tmp_path, "verdict.above", "verdict.alike")
    assert verdicts == {hazel: (5, 1), fern: (4, 1)}
    # alike is not the same: some state another certainty, or several directions
    verdicts = measured(tmp_path, "verdict.passed", "verdict.judged")
    assert verdicts == {hazel: (3, 3), fern: (1, 3)}


def test_three_results_of_an_agent_pass_lack_papers_and_exclude_them(
    tmp_path: Path,
) -> None:
    words = ("--truth", SAMPLE / "truth", "--results", SAMPLE / "results")
    run(tmp_path, "import", *words)
    assert measured(tmp_path, *COUNTS) == {"linden": (26, 22, 20)}
    assert lost(tmp_path, "linden") == {
        "not_in_database": {"HUM-3 2009", "HUM-6 2013", "HUM-7 2014", "HUM-12 2019"},
        "excluded": {"BUCK-6 2018", "BUCK-8 2013"},
    }
    assert record(tmp_path, "HUM-5 2012") == ("pmid", "5")
    # one pass stops at the record that has the DOI, and the long title is alike
    other = ("--matching", "single-pass", "--autojunk=false", "--no-report")
    command("score", "x", "--runs-dir", tmp_path, *other)
    assert record(tmp_path, "HUM-5 2012", scoring=2) == ("doi", "1")
    assert measured(tmp_path, *COUNTS, scoring=2) == {"linden": (26, 23, 21)}


def run(folder: Path, verb: str, *words: object) -> Done:
    """A run of the job, which must go well."""
    own = ("--runs-dir", folder, "--run-id", "x", "--no-report")
    done = command(verb, "review-benchmark", *words, *own)
    assert done.code == 0, done.err
    return done


def schema(path: Path) -> list[tuple[str]]:
    """Tables and indexes of a database, as they were made."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as database:
        return database.execute(
            "SELECT sql FROM sqlite_schema ORDER BY name"
        ).fetchall()


def measured(
    folder: Path, *names: str, scoring: int = 1
) -> dict[str, tuple[float, ...]]:
    """Metrics by model."""
    path = folder / "x" / "scores" / str(scoring) / "scorecard.json"
    models = json.loads(path.read_text("utf-8"))["models"]
    return {
        model: tuple(own["metrics"][name]["value"] for name in names)
        for model, own in models.items()
    }


def lost(folder: Path, model: str) -> dict[str, set[str]]:
    """Studies that a model has lost, by the step."""
    found: dict[str, set[str]] = {}
    for row in rows(folder / "x" / "scores" / "1" / "lost_papers.csv"):
        if row["model"] == model:
            found.setdefault(row["lost_at"], set()).add(row["cochrane_ref_id"])
    return found


def effects(folder: Path) -> dict[str, tuple[str, ...]]:
    """The directions of a scoring's conclusions, and how they compare, by review."""
    names = ("agent_direction", "authors_direction", "effect", "effect_reason")
    return {
        row["cochrane_id"]: tuple(row[name] for name in names)
        for row in rows(folder / "x" / "scores" / "1" / "verdicts.csv")
    }


def record(folder: Path, study: str, *, scoring: int = 1) -> tuple[str, str]:
    """By what a study was matched, and with which record."""
    (row,) = (
        row
        for row in rows(folder / "x" / "scores" / str(scoring) / "matches.csv")
        if row["cochrane_ref_id"] == study
    )
    return row["match_method"], row["matched_document_id"]


def scored(folder: Path) -> list[str]:
    """Keys of the papers that were scored."""
    done = command("tasks", "x", "--runs-dir", folder, "--json", "--limit", 5000)
    tasks = map(json.loads, done.out.splitlines())
    return [task["key"] for task in tasks if task["stage"] == "score"]
