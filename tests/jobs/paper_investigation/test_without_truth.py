"""Variants of papers of one's own, without a bench; metrics once it is given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.paper_investigation.inputs import SAMPLE
from tests.commands import Done, command
from tests.csv_files import rows

BENCH = ("--bench", SAMPLE / "variant_bench.jsonl")
QUICK = ("--set", "boot_b=50", "--no-report")


def siftlog(runs: Path, *words: object) -> Done:
    done = command(*words, "--runs-dir", runs)
    assert done.code == 0, done.err
    return done


def recorded(path: Path, replies: Iterable[Mapping[str, Any]]) -> Path:
    """A recorded model of these extractions."""
    lines = [
        json.dumps({"key": reply["pmcid"], "response": reply["response"]})
        for reply in replies
    ]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


@pytest.fixture(name="models")
def sample_models(tmp_path: Path) -> list[object]:
    """The two recorded models of the sample."""
    words: list[object] = []
    for path in sorted((SAMPLE / "replies").iterdir()):
        replies = map(json.loads, path.read_text("utf-8").splitlines())
        extractions = (reply for reply in replies if reply["kind"] == "extract")
        words += ["--model", f"recorded:{recorded(tmp_path / path.name, extractions)}"]
    return words


def run(runs: Path, name: str, *words: object) -> Path:
    """A run on the sample's papers; returns its scorings."""
    papers = ("--papers", SAMPLE / "papers", "--run-id", name, *QUICK)
    siftlog(runs, "run", "paper-investigation", *papers, *words)
    return runs / name / "scores"


def card(scoring: Path) -> Any:
    return json.loads((scoring / "scorecard.json").read_bytes())


def predicted(scoring: Path) -> list[tuple[str, ...]]:
    """The predicted variants that a labelled scoring lists."""
    names = ("model", "pmcid", "normalized", "class", "kind", "grounded")
    return sorted(
        tuple(row[name] for name in names)
        for row in rows(scoring / "variants.csv")
        if row["predicted"] == "true"
    )


def extracted(scoring: Path) -> list[tuple[str, ...]]:
    names = ("model", "pmcid", "normalized", "class", "kind", "grounded")
    table = rows(scoring / "extracted.csv")
    return sorted(tuple(row[name] for name in names) for row in table)


def test_the_table_is_that_of_a_run_with_a_truth(
    tmp_path: Path, models: list[object]
) -> None:
    bare = run(tmp_path, "bare", *models)
    labelled = run(tmp_path, "labelled", *models, *BENCH, "--mode", "extract")
    named = {row["pmcid"] for row in rows(labelled / "1/papers.csv")}
    table = [row for row in extracted(bare / "1") if row[1] in named]
    assert len(table) > 20
    assert table == predicted(labelled / "1")


def test_metrics_of_a_truth_are_absent_and_one_note_says_so(
    tmp_path: Path, models: list[object]
) -> None:
    scoring = run(tmp_path, "r", *models) / "1"
    paths = {
        path for model in card(scoring)["models"].values() for path in model["metrics"]
    }
    assert {"listed", "listed.grounded", "papers_scored"} <= paths
    assert not [path for path in paths if "recall" in path or "precision" in path]
    assert not [path for path in paths if path.startswith(("class.", "kind."))]
    (note,) = [f for f in card(scoring)["findings"] if f["code"] == "no_truth"]
    assert note["message"].endswith("siftlog score RUN --bench FILE")


def test_a_bench_given_later_scores_as_one_given_at_once(
    tmp_path: Path, models: list[object]
) -> None:
    bare = run(tmp_path, "bare", *models)
    labelled = run(tmp_path, "labelled", *models, *BENCH, "--mode", "extract")
    siftlog(tmp_path, "score", "bare", *BENCH, *QUICK)
    assert predicted(bare / "2") == predicted(labelled / "1")
    later, at_once = (card(bare / "2")["models"], card(labelled / "1")["models"])
    for model, parts in at_once.items():
        for path in ("avg_variant_recall", "avg_precision", "class.MICRO-AVG.fn"):
            assert later[model]["metrics"][path] == parts["metrics"][path]


def test_models_agree_on_the_variants_that_both_list(
    tmp_path: Path, models: list[object]
) -> None:
    scoring = run(tmp_path, "r", *models) / "1"
    (pair,) = rows(scoring / "agreement.csv")
    both, only = int(pair["both"]), int(pair["only_a"]) + int(pair["only_b"])
    assert len(rows(scoring / "disagreements.csv")) == only
    assert float(pair["jaccard"]) == pytest.approx(both / (both + only))
    assert "listed.grounded" in siftlog(tmp_path, "compare", "r").out


def test_a_context_holds_its_variant(tmp_path: Path, models: list[object]) -> None:
    scoring = run(tmp_path, "r", *models) / "1"
    shown = [row for row in rows(scoring / "extracted.csv") if row["context"]]
    assert len(shown) > 10
    for row in shown:
        text = (SAMPLE / "papers" / f"{row['pmcid']}.md").read_text("utf-8")
        found = text[int(row["start"]) :][: len(row["variant"])]
        assert found.casefold() == row["variant"].casefold()
        assert " ".join(found.split()) in row["context"]


def test_explain_lists_variants_without_a_truth(
    tmp_path: Path, models: list[object]
) -> None:
    run(tmp_path, "r", *models)
    page = siftlog(tmp_path, "explain", "r", "PMC0000001").out
    assert "CYP2C9*2  star_allele  in the text" in page
    assert "truth " not in page
    assert "recall " not in page


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("smith 2020.md", (), "smith 2020.md is not named by an id"),
        ("smith.md", ("--set", "any_id=false"), "accept other ids with --any-id"),
        ("notes.rtf", (), "no paper in it"),
    ],
)
def test_papers_that_cannot_be_items_are_refused(
    name: str, words: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    papers, runs = tmp_path / "papers", tmp_path / "runs"
    papers.mkdir()
    (papers / name).write_text("rs1799853", "utf-8")
    job = ("run", "paper-investigation", "--papers", papers, "--runs-dir", runs)
    done = command(*job, *words)
    assert done.code != 0
    assert message in done.err
    assert not runs.exists()


def test_a_blank_paper_is_skipped_and_named(tmp_path: Path) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "smith-2020.md").write_text("# Warfarin\nrs1799853 matters", "utf-8")
    (papers / "empty.txt").write_text(" \n", "utf-8")
    words = ("--papers", papers, "--run-id", "r", *QUICK)
    siftlog(tmp_path, "run", "paper-investigation", *words)
    reasons = {
        row["pmcid"]: row["skip_reason"]
        for row in rows(tmp_path / "r/scores/1/papers.csv")
    }
    assert reasons == {"empty": "no_paper_text", "smith-2020": ""}


@pytest.mark.realdata
@pytest.mark.timeout(120)
def test_real_lists_without_their_truth(tmp_path: Path, realdata: Path) -> None:
    folder = realdata / "clinpgx_qa"
    pattern = "paper_investigation/20260213_053253*/*responses.jsonl"
    models: list[object] = []
    texts: dict[str, str] = {}
    for path in sorted(folder.glob(pattern))[:2]:
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        lists = [record for record in records if "predicted_variants" in record]
        for record in lists:
            record["response"] = json.dumps(record["predicted_variants"])
            text = folder / "papers" / f"{record['pmcid']}.md"
            texts[record["pmcid"]] = text.read_text("utf-8") if text.exists() else "?"
        models += ["--model", f"recorded:{recorded(tmp_path / path.name, lists)}"]
    papers = tmp_path / "papers.jsonl"
    lines = ({"pmcid": pmcid, "text": text} for pmcid, text in texts.items())
    papers.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    job = ("run", "paper-investigation", "--papers", papers, *models, *QUICK)
    bench = ("--bench", folder / "variant_bench.jsonl")
    bare, labelled = tmp_path / "bare/scores", tmp_path / "labelled/scores"
    command(*job, "--run-id", "bare", "--runs-dir", tmp_path)
    of_bench = (*bench, "--mode", "extract")
    command(*job, *of_bench, "--run-id", "labelled", "--runs-dir", tmp_path)
    assert len(extracted(bare / "1")) > 400
    assert extracted(bare / "1") == predicted(labelled / "1")
    siftlog(tmp_path, "score", "bare", *bench, *QUICK)
    assert predicted(bare / "2") == predicted(labelled / "1")
