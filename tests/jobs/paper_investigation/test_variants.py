from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.paper_investigation.settings import Case
from jobs.paper_investigation.variants import (
    VARIANT_CLASSES,
    VARIANT_KINDS,
    distinct,
    normalize,
    parts,
    variant_class,
    variant_kind,
)

CASES = st.sampled_from(["fold", "keep"])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("RS123 ", "rs123"),
        ("CYP2C19 * 2", "CYP2C19*2"),
        ("cyp2c19*2", "CYP2C19*2"),
        ("CYP2C19\u22172", "CYP2C19*2"),
        ("CYP2C19\uff0a2", "CYP2C19*2"),
        ("CYP2C19 \u2605 2", "CYP2C19*2"),
        ("CYP2C19\u204e2", "CYP2C19*2"),
        ("HLA\u2011B *58:01", "HLA-B*58:01"),
        ("HLA\u2212B*58:01", "HLA-B*58:01"),
        ("HLA\uff0dB*58:01", "HLA-B*58:01"),
        ("CYP2D6  poor\u00a0metabolizer", "CYP2D6 poor metabolizer"),
        ("Ve\u0301r", "V\u00e9r"),
    ],
)
def test_folding_lets_two_spellings_of_a_variant_meet(one: str, other: str) -> None:
    assert normalize(one, "fold") == normalize(other, "fold")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("CYP2D6 poor metabolizers", "CYP2D6 poor metabolizer"),
        ("B*58:01", "HLA-B*58:01"),
        ("CYP2D6*04", "CYP2D6*4"),
    ],
)
def test_folding_adds_no_prefix_and_knows_no_synonym(one: str, other: str) -> None:
    assert normalize(one, "fold") != normalize(other, "fold")


def test_keeping_changes_only_outer_blanks_and_blanks_around_the_star() -> None:
    assert normalize("  CYP2C19 *\t2  a\u2217 ", "keep") == "CYP2C19*2  a\u2217"


@given(st.text(), CASES)
@example("\ufb06\u0331\u0345", "fold")
def test_normalising_twice_is_normalising_once(text: str, case: Case) -> None:
    once = normalize(text, case)
    assert normalize(once, case) == once


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("rs9923231", "rsID"),
        ("RS9923231", "rsID"),
        ("rs12 CYP2D6*4", "rsID"),
        ("HLA-B*58:01", "HLA"),
        ("hla-drb1", "HLA"),
        ("B*58:01", "star_allele"),
        ("CYP2D6*4 poor metabolizer", "star_allele"),
        ("CYP2C19 Poor Metabolizer", "phenotype"),
        ("NAT2 slow acetylator", "phenotype"),
        ("GSTM1 null", "other"),
        ("CYP2D6*xN", "other"),
        ("rs", "other"),
        ("", "other"),
    ],
)
def test_the_class_is_the_first_that_fits(text: str, kind: str) -> None:
    assert variant_class(text) == kind
    assert kind in VARIANT_CLASSES


def test_a_joined_field_has_distinct_parts_in_its_order() -> None:
    assert parts("UGT1A1*28, ugt1a1 *28,, rs1 ,RS2", "fold") == (
        "ugt1a1*28",
        "rs1",
        "rs2",
    )
    assert parts(" , ", "fold") == ()


def test_distinct_variants_keep_order_and_first_spelling() -> None:
    spelt = distinct(["CYP2C9 *2", " ", "RS1 ", "cyp2c9*2", "rs1"], "fold")
    assert list(spelt.items()) == [("cyp2c9*2", "CYP2C9 *2"), ("rs1", "RS1")]
    assert len(distinct(["RS1", "rs1"], "keep")) == 2


@pytest.mark.realdata
def test_the_bench_has_the_known_variants_by_class(realdata: Path) -> None:
    rows = [
        json.loads(line)["variants"]
        for line in (realdata / "clinpgx_qa" / "variant_bench.jsonl")
        .read_bytes()
        .splitlines()
    ]
    folded = [distinct(row, "fold") for row in rows]
    classes = Counter(variant_class(name) for names in folded for name in names)

    assert (len(rows), sum(map(len, rows)), max(map(len, rows))) == (1123, 3718, 42)
    assert sum(map(len, folded)) == 3605
    assert sum(len(distinct(row, "keep")) for row in rows) == 3605
    assert sum(len(a) != len(b) for a, b in zip(rows, folded, strict=True)) == 51
    assert classes == {
        "rsID": 2586,
        "star_allele": 797,
        "phenotype": 80,
        "other": 78,
        "HLA": 64,
    }


KINDS = {
    "rs9923231": "rsID",
    "CYP2C19*2": "star_allele",
    "CYP2C19*17": "star_allele",
    "CYP2C19*10": "star_allele",
    "CYP2D6*1xN": "star_allele",
    "CYP3A7*1C": "star_allele",
    "CYP2C19*1/*2": "star_allele",
    "CYP2C19*1": "reference_allele",
    "CYP2C19*1/*1": "reference_allele",
    "G6PD B (reference)": "reference_allele",
    "HLA-B*57:01": "HLA",
    "CYP2D6 poor metabolizer": "phenotype",
    "NAT2 slow acetylator": "phenotype",
    "G6PD deficiency": "activity",
    "CYP2A6 low activity": "activity",
    "GSTM1 null": "gene_presence",
    "GSTT1 non-null": "gene_presence",
    "SLC6A4 HTTLPR short form (S allele)": "other_allele",
    "G6PD Mediterranean": "other_allele",
    "DPYD c.1129-5923C>G": "other_allele",
}


@pytest.mark.parametrize(("text", "kind"), KINDS.items())
def test_a_kind_is_what_a_curated_list_tells_apart(text: str, kind: str) -> None:
    assert variant_kind(normalize(text, "fold")) == kind
    assert variant_kind(normalize(text, "keep")) == kind


def test_every_kind_has_an_example_and_words() -> None:
    assert set(KINDS.values()) == set(VARIANT_KINDS)


@given(st.text())
def test_kinds_divide_the_classes(text: str) -> None:
    kind, name = variant_kind(text), variant_class(text)
    assert kind in VARIANT_KINDS
    assert (kind == name) <= (name in {"rsID", "HLA", "star_allele", "phenotype"})
