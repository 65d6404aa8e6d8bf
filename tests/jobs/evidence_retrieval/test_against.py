"""A scoring against stored results: its own, those of others, and spoiled ones.

The real command: a file of lists is imported, scored, and its summary verified.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.evidence_retrieval.against import written_rows
from jobs.evidence_retrieval.inputs import inputs, load
from jobs.evidence_retrieval.metrics.results import measure_models
from jobs.evidence_retrieval.queries import ScoringInput
from jobs.evidence_retrieval.score import score
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.evidence_retrieval.verification.verify import COLUMNS
from runner.errors import DatasetError, UsageError
from runner.scorecard import Scorecard, StreamedRow
from runner.table_files import csv_lines
from tests.jobs.evidence_retrieval.sheets import dataset, full_sheet, recorded_sheet
from tests.processes import siftlog


def summary_of(card: Scorecard) -> dict[str, Any]:
    (text,) = (a.text for a in card.artifacts if a.name == "summary.json")
    return dict(json.loads(text))


def against(
    sheet: ScoringInput, stored: Mapping[str, Any] | None, **values: Any
) -> Scorecard:
    """The scorecard of *sheet*, without intervals unless they are asked for."""
    return score(replace(dataset(**{"boot_b": 0, **values}), stored=stored), sheet)


PART = 0.2
"""Of set A: what is compared, and how, does not depend on its size."""


@pytest.fixture(scope="module")
def part() -> ScoringInput:
    return full_sheet(PART)


@pytest.fixture(scope="module")
def own(part: ScoringInput) -> Mapping[str, Any]:
    """The summary that a scoring of the part writes, intervals included."""
    return summary_of(against(part, None, boot_b=50))


def verdicts(card: Scorecard) -> set[object]:
    (table,) = (t for t in card.tables if t.name == "verification")
    at = table.columns.index("verdict")
    return {row[at] for row in table.rows}


def test_a_summary_of_our_own_verifies_itself(
    part: ScoringInput, own: Mapping[str, Any]
) -> None:
    card = against(part, own)
    assert card.failures == ()
    assert verdicts(card) == {"equal", "not computable"}
    assert "not_verified" not in {finding.code for finding in card.findings}
    (table,) = (t for t in card.tables if t.name == "verification")
    assert table.columns == COLUMNS
    (last,) = (
        line
        for line in card.summary.splitlines()
        if line.startswith("stored results  ")
    )
    assert " numbers compared, " in last
    # every interval's value among them
    paths = {row[0] for row in table.rows if row[5] == "equal"}
    assert {"intervals.ne_gate.auroc.value", "intervals.evidence.recall@K.value"} <= (
        paths
    )
    kept = "intervals.ne_gate.auroc.lo"
    assert kept in {row[0] for row in table.rows if row[5] == "not computable"}


def test_its_profile_makes_another_summary_which_verifies_under_it(
    part: ScoringInput, own: Mapping[str, Any]
) -> None:
    card = against(part, None, profile="published-cv")
    theirs = summary_of(card)
    assert theirs["aggregated_metrics"] != own["aggregated_metrics"]
    assert against(part, theirs, profile="published-cv").failures == ()
    ours = against(part, theirs)
    assert ours.failures == ()
    assert "other definition" in verdicts(ours)


def test_of_several_models_the_one_that_the_summary_names_is_verified() -> None:
    sheet = full_sheet(PART, lists=False, second=True)
    first, second = (
        dict(json.loads(a.text))
        for a in against(sheet, None).artifacts
        if a.name.endswith("/summary.json")
    )
    assert first["config"]["model"] != second["config"]["model"]
    for stored in (first, second):
        card = against(sheet, stored)
        assert card.failures == ()
        (table,) = (t for t in card.tables if t.name == "verification")
        assert f"the rows of {stored['config']['model']}: " in table.caption
    unnamed = {**second, "config": {"model": ["?"]}}
    assert against(sheet, unnamed).failures


def test_without_stored_results_nothing_is_verified(part: ScoringInput) -> None:
    card = against(part, None)
    assert "verification" not in {table.name for table in card.tables}
    assert card.failures == ()
    assert "stored results" not in card.summary


def test_a_spoiled_number_fails_the_scoring_and_is_a_finding(
    part: ScoringInput, own: Mapping[str, Any]
) -> None:
    spoiled = json.loads(json.dumps(own))
    spoiled["fold_results"][1]["test_metrics"]["ne_gate"]["auroc"] += 0.001
    card = against(part, spoiled)
    (sentence,) = card.failures
    assert "fold_results[1].test_metrics.ne_gate.auroc" in sentence
    (finding,) = (f for f in card.findings if f.code == "not_verified")
    assert (finding.severity, finding.message) == ("error", sentence)


def test_swapped_thresholds_are_caught(
    part: ScoringInput, own: Mapping[str, Any]
) -> None:
    spoiled = json.loads(json.dumps(own))
    spoiled["fold_results"][0]["threshold_selection"] = {
        "tau_neg": 0.68,
        "tau_pos": 0.05,
    }
    assert against(part, spoiled).failures
    right = {"tau_neg": 0.05, "tau_pos": 0.68}
    spoiled["fold_results"][0]["threshold_selection"] = right
    assert against(part, spoiled).failures == ()


def test_the_rows_are_those_of_the_files(part: ScoringInput) -> None:
    data = dataset(boot_b=0)
    results = measure_models(part, data.settings)
    card = score(data, part)
    cells: dict[str, list[tuple[Any, ...]]] = {}
    for detail in card.details:
        if isinstance(detail, StreamedRow):
            cells.setdefault(detail.table, []).append(detail.cells)
    columns = {table.name: table.columns for table in card.tables}
    read = [
        list(csv.DictReader(io.StringIO(csv_lines([columns[name], *cells[name]]))))
        for name in ("per_query", "per_query_lists")
    ]
    (own,) = results.models.values()
    for row, of_query, of_lists in zip(written_rows(own.block), *read, strict=True):
        assert row == {**of_query, **{k: v for k, v in of_lists.items() if "topk" in k}}


FOREIGN = {
    "results": {"AUROC": 0.5, "Recall@5": 0.25},
    "folds": [{"brierscore": 0.1}, {"brierscore": 0.2}],
    "title": "a table",
}


def test_every_unknown_key_is_named_with_the_nearest_of_ours(
    part: ScoringInput,
) -> None:
    card = against(part, FOREIGN)
    found = {f.example: f for f in card.findings if f.code == "unknown_key"}
    assert list(found) == [
        "results.AUROC",
        "results.Recall@5",
        "folds[0].brierscore",
        "title",
    ]
    assert "nearest metrics are auroc," in found["results.AUROC"].message
    assert "recall@5" in found["results.Recall@5"].message
    assert (found["folds[0].brierscore"].n, found["title"].n) == (2, 1)
    assert card.failures[0].startswith("No number of the stored summary")


def test_mapped_keys_are_compared_with_metrics(part: ScoringInput) -> None:
    path = "auroc"
    (metrics,) = against(part, None).models.values()
    auroc = next(own.value for own in metrics if own.path == path)
    assert isinstance(auroc, float)
    pairs = (f"AUROC={path}", "recall@5=results.Recall@5")
    values = {"against": Path("x.json"), "map": pairs}
    stored = {"results": {"AUROC": auroc, "Recall@5": 2.0}, "other": 1}
    card = against(part, stored, **values)
    (table,) = (t for t in card.tables if t.name == "verification")
    verdict, why = map(table.columns.index, ("verdict", "why"))
    assert [(row[0], row[verdict]) for row in table.rows] == [
        ("results.AUROC", "equal"),
        ("results.Recall@5", "differs"),
        ("other", "unknown key"),
    ]
    (sentence,) = card.failures
    assert sentence.startswith("results.Recall@5 is stored as 2.0, but the rows give")
    rounded = {"AUROC": round(auroc, 3)}
    card = against(part, rounded, **{**values, "map": pairs[:1]})
    assert card.failures == ()
    (table,) = (t for t in card.tables if t.name == "verification")
    assert table.rows[0][why] == ("mapped to auroc; equal when rounded to 3 decimals")
    with pytest.raises(UsageError, match=r"has no key AURC .*nearest: AUROC"):
        against(part, rounded, **{**values, "map": (f"AURC={path}",)})
    with pytest.raises(UsageError, match=r"no field aurocc .*nearest: auroc"):
        against(part, rounded, **{**values, "map": ("AUROC=aurocc",)})


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("run", "total", "others"),
    [("bge_m3_rrf_top20", 64, 8), ("baseline_default_val", 32, 2)],
)
def test_published_summaries_are_verified(
    realdata: Path, run: str, total: int, others: int
) -> None:
    folder = realdata / "evidence_pipeline" / run
    stored = json.loads((folder / "summary.json").read_text())
    sheet = recorded_sheet(folder / "per_query.csv")
    card = against(sheet, stored, profile="published-lists")
    assert card.failures == ()
    assert f"{total} numbers compared, {total} equal;" in card.summary
    card = against(sheet, stored)
    assert card.failures == ()
    told = f"{total - others} equal, {others} other definition;"
    assert f"{total} numbers compared, {told}" in card.summary
    ours = summary_of(against(sheet, None, boot_b=50, all_queries=True))
    assert against(sheet, ours, all_queries=True).failures == ()


def test_a_stored_file_is_read_with_the_other_inputs(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    path.write_text('{"retriever": {"recall@1": 0.5}}')
    settings = EvidenceSettings(against=path)
    assert [(each.setting, each.path) for each in inputs(settings)] == [
        ("against", path)
    ]
    assert load(settings).stored == {"retriever": {"recall@1": 0.5}}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1,\n}', "summary.json line 2: not valid JSON: "),
        (b"[1]", "summary.json: not an object of results (give the "),
        (b'{"a": "\xff"}', "summary.json: not UTF-8 text"),
        (None, "No such file or directory (check the path)."),
    ],
)
def test_a_stored_file_that_is_none_is_refused(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "summary.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DatasetError) as refused:
        load(EvidenceSettings(against=path))
    assert message in str(refused.value)


LISTS = """\
post_id,criterion_id,gold_ids,retriever_topk,reranked_topk
p_1,A.1,p_1_1|p_1_2,p_1_0|p_1_1|p_1_2,p_1_1|p_1_0|p_1_2
p_1,A.2,,p_1_0|p_1_1|p_1_2,p_1_2|p_1_1|p_1_0
p_2,A.1,p_2_0,p_2_1|p_2_0,p_2_0|p_2_1
p_2,A.2,p_2_0|p_2_1,p_2_1|p_2_0,p_2_1|p_2_0
"""


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder with a file of lists."""
    (tmp_path / "lists.csv").write_text(LISTS, "utf-8")
    return tmp_path


def rows(desk: Path, number: int) -> list[dict[str, str]]:
    path = desk / "runs/r/scores" / str(number) / "verification.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_what_a_scoring_wrote_verifies_and_what_was_spoiled_does_not(
    desk: Path,
) -> None:
    siftlog("import", "evidence-retrieval", "lists.csv", "--run-id=r", cwd=desk)
    own = desk / "runs/r/scores/1/summary.json"
    done = siftlog("score", "r", "--against", own, cwd=desk)
    assert " equal" in done.stdout
    verdicts = {row["verdict"] for row in rows(desk, 2)}
    assert verdicts == {"equal", "not computable"}

    spoiled: dict[str, Any] = json.loads(own.read_text())
    spoiled["retriever"]["recall@5"] = 0.123
    (desk / "spoiled.json").write_text(json.dumps(spoiled))
    done = siftlog("score", "r", "--against=spoiled.json", cwd=desk, check=False)
    assert done.returncode == 6
    assert "siftlog: retriever.recall@5 is stored as 0.123, but the rows give " in (
        done.stderr
    )
    (wrong,) = (row for row in rows(desk, 3) if row["verdict"] == "differs")
    assert (wrong["path"], wrong["stored"]) == ("retriever.recall@5", "0.123")


def test_a_file_of_other_keys_fails_an_import_that_is_kept_nevertheless(
    desk: Path,
) -> None:
    (desk / "other.json").write_text('{"accuracy": 0.9}')
    done = siftlog(
        *(
            "import",
            "evidence-retrieval",
            "lists.csv",
            "--against=other.json",
            "--run-id=r",
        ),
        cwd=desk,
        check=False,
    )
    assert done.returncode == 6
    assert "No number of the stored summary could be compared" in done.stderr
    assert [row["verdict"] for row in rows(desk, 1)] == ["unknown key"]
    card = json.loads((desk / "runs/r/scores/1/scorecard.json").read_text())
    assert "not_verified" in {finding["code"] for finding in card["findings"]}
    assert len(card["failures"]) == 3
