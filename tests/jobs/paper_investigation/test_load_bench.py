"""The bench: ids, empty and repeated variants, and what is noticed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.inputs.rows import InputFindings
from jobs.paper_investigation.bench import read_bench
from jobs.paper_investigation.data import BenchPaper
from jobs.paper_investigation.settings import InvestigationSettings
from runner.errors import DatasetError
from runner.scorecard import Finding


def bench(
    folder: Path, *rows: dict[str, Any], **settings: Any
) -> tuple[tuple[BenchPaper, ...], dict[str, Finding]]:
    path = folder / "variant_bench.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    noticed = InputFindings()
    papers = read_bench(path, InvestigationSettings(**settings), noticed)
    return papers, {finding.code: finding for finding in noticed.findings()}


def test_papers_keep_file_order_and_their_variants_as_they_stand(
    tmp_path: Path,
) -> None:
    papers, found = bench(
        tmp_path,
        {"pmcid": "PMC2", "variants": [" rs1 ", "", None, "CYP2C9 *2"], "pmid": 12},
        {"pmcid": "PMC1", "variants": ["rs1"], "raw_variants": [["rs1", "rs1"]]},
    )
    assert [paper.pmcid for paper in papers] == ["PMC2", "PMC1"]
    assert papers[0].variants == ("rs1", "CYP2C9 *2")
    assert papers[0].pmid == "12"
    assert papers[1].raw_variants == (("rs1", "rs1"),)
    assert papers[1].line == 2
    assert not found


@pytest.mark.parametrize("variants", [[], ["", "  "], None])
def test_a_paper_without_variants_is_an_error(
    tmp_path: Path, variants: list[str] | None
) -> None:
    rows = (
        {"pmcid": "PMC1", "variants": ["rs1"]},
        {"pmcid": "PMC2", "variants": variants},
    )
    with pytest.raises(
        DatasetError,
        match=(
            r"^variant_bench\.jsonl line 2: variants is empty "
            r"\(a paper needs at least one truth variant\)\.$"
        ),
    ):
        bench(tmp_path, *rows)


def test_the_profile_accepts_a_paper_without_variants(tmp_path: Path) -> None:
    papers, _ = bench(tmp_path, {"pmcid": "PMC1", "variants": []}, profile="clinpgx-qa")
    assert papers[0].variants == ()


def test_a_paper_named_twice_names_both_lines(tmp_path: Path) -> None:
    row = {"pmcid": "PMC1", "variants": ["rs1"]}
    with pytest.raises(DatasetError, match=r"line 2: PMC1 stands on line 1 already"):
        bench(tmp_path, row, row)


@pytest.mark.parametrize("pmcid", ["12", "pmc1", "PMC", "PMC1/x", "PMC１"])
def test_other_ids_than_pmc_and_digits_are_refused(tmp_path: Path, pmcid: str) -> None:
    with pytest.raises(DatasetError, match=r"is not a paper id .*--any-id"):
        bench(tmp_path, {"pmcid": pmcid, "variants": ["rs1"]})


@pytest.mark.parametrize(("pmcid", "fits"), [("a.b-c_9", True), ("a/b", False)])
def test_other_ids_can_be_accepted_as_long_as_they_are_safe(
    tmp_path: Path, pmcid: str, fits: bool
) -> None:
    row = {"pmcid": pmcid, "variants": ["rs1"]}
    if fits:
        assert bench(tmp_path, row, any_id=True)[0][0].pmcid == pmcid
    else:
        with pytest.raises(DatasetError, match="is not a paper id"):
            bench(tmp_path, row, any_id=True)


def test_repeats_are_counted_by_paper(tmp_path: Path) -> None:
    _, found = bench(
        tmp_path,
        {"pmcid": "PMC1", "variants": ["rs1", "rs1 "]},
        {"pmcid": "PMC2", "variants": ["*2", "rs2", "rs2"]},
        {"pmcid": "PMC3", "variants": ["rs2"]},
    )
    assert (found["repeated_variants"].n, found["repeated_variants"].severity) == (
        2,
        "info",
    )
    assert "merged_variants" not in found


def test_spellings_that_fold_to_one_variant_are_reported(tmp_path: Path) -> None:
    rows = ({"pmcid": "PMC1", "variants": ["RS1", "rs1"]},)
    _, found = bench(tmp_path, *rows)
    assert found["merged_variants"].example == "PMC1"
    assert not bench(tmp_path, *rows, variant_case="keep")[1]


def test_an_empty_bench_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"^variant_bench\.jsonl: no paper in it"):
        bench(tmp_path)
