"""tests.jobs.paper_investigation.test_variants"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jobs.paper_investigation.settings import Case
from jobs.paper_investigation.variants import (
    JUDGED,
    VARIANT_CLASSES,
    VARIANT_KINDS,
    distinct,
    ground,
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


def is_grounded(variant: str, text: str) -> bool | None:
    return ground(text, [variant])[variant]


@pytest.mark.parametrize(
    ("variant", "text"),
    [
        ("rs12", "We genotyped RS12."),
        ("rs12", "**rs12**, _rs13_"),
        ("rs12", "rs12"),
        ("CYP2C9*2", "carriers of CYP2C9 * 2 alleles"),
        ("CYP2C9*2", "carriers of CYP2C9\u22172"),
        ("CYP2C9*3", "CYP2C9*2 and *3 were rare"),
        ("CYP2C9*3", "alleles *2/*3 of CYP2C9"),
        ("HLA-B*58:01", "the HLA\u2011B*58:01 allele"),
        ("HLA-B*58:01", "locus B, type *58:01"),
        ("HLA-DRB1", "typed at HLA-DRB1"),
        ("*17", "homozygous for *17"),
    ],
)
def test_a_name_that_stands_in_the_text_is_grounded(variant: str, text: str) -> None:
    assert is_grounded(variant, text) is True


@pytest.mark.parametrize(
    ("variant", "text"),
    [
        ("rs12", "rs123"),
        ("rs12", "xrs12"),
        ("rs12", ""),
        ("CYP2C9*1", "CYP2C9*17"),
        ("CYP2C9*1", "CYP2C9*1A"),
        ("CYP2C19*17", "CYP2C19*2 and CYP2D6*17"),
        ("CYP2C9*2", "the *2 allele of CYP2C19"),
        ("HLA-DRB1", "typed at DRB1"),
        ("HLA-B*58:01", "HLA-B*58"),
    ],
)
def test_a_part_of_another_name_does_not_ground(variant: str, text: str) -> None:
    assert is_grounded(variant, text) is False


@pytest.mark.parametrize("variant", ["CYP2D6 poor metabolizer", "GSTM1 null", ""])
def test_other_classes_are_not_judged(variant: str) -> None:
    assert is_grounded(variant, f"a text with {variant}") is None


def test_overlapping_names_are_all_found_in_one_text_of_one_line() -> None:
    text = "x " * 200_000 + "rs12 rs123 CYP2C19*17 CYP2C19*1"
    variants = ["rs12", "rs123", "CYP2C19*17", "CYP2C19*1", "CYP2C19*7"]
    assert ground(text, variants) == {
        "rs12": True,
        "rs123": True,
        "CYP2C19*17": True,
        "CYP2C19*1": True,
        "CYP2C19*7": False,
    }


NAMES = st.lists(
    st.one_of(
        st.integers(1, 99).map("rs{}".format),
        st.tuples(st.sampled_from(["G1", "G12", "HLA-B"]), st.integers(1, 20)).map(
            lambda pair: f"{pair[0]}*{pair[1]}"
        ),
    ),
    max_size=8,
)


@given(NAMES, NAMES)
def test_names_in_a_list_are_found_and_only_they(
    present: list[str], asked: list[str]
) -> None:
    # Of alleles only presence is asked: gene and star may come from two names.
    text = ", ".join(present)
    for variant, found in ground(text, present).items():
        assert found is True, variant
    for variant, found in ground(text, asked).items():
        if variant.startswith("rs"):
            assert found is (variant in present), variant


@given(st.text("a1- _", max_size=4), st.text("a1*rs- _", max_size=12))
@example("", "rs12 rs1")
@example("", "_rs1_")
def test_a_name_is_grounded_where_its_letters_stand_alone(rest: str, text: str) -> None:
    # by the plainest rule: some place has the name and no letter or digit beside it
    name, text = (
        normalize(f"rs1{rest}", "fold"),
        normalize(f"{text} rs1{rest}x", "fold"),
    )
    places = [place.span() for place in re.finditer(re.escape(name), text)]
    alone = any(
        not text[max(0, start - 1) : start].isalnum() and not text[end:][:1].isalnum()
        for start, end in places
    )
    assert is_grounded(name, text) is alone


@pytest.mark.realdata
def test_truth_and_predictions_are_grounded_as_often_as_known(realdata: Path) -> None:
    folder = realdata / "clinpgx_qa"
    texts = {path.stem: path for path in sorted((folder / "papers").glob("*.md"))}
    run = folder / "paper_investigation" / "20260213_053253_all_models"

    def counted(path: Path, field: str) -> dict[str, tuple[int, int]]:
        judged: Counter[str] = Counter()
        grounded: Counter[str] = Counter()
        for line in path.read_bytes().splitlines():
            row = json.loads(line)
            if row["pmcid"] not in texts:
                continue
            text = texts[row["pmcid"]].read_text(encoding="utf-8-sig")
            for name, found in ground(text, distinct(row[field], "fold")).items():
                kind = variant_class(name)
                judged[kind] += kind in JUDGED
                grounded[kind] += bool(found)
        return {kind: (grounded[kind], judged[kind]) for kind in JUDGED if judged[kind]}

    assert counted(folder / "variant_bench.jsonl", "variants") == {
        "rsID": (81, 82),
        "star_allele": (20, 23),
        "HLA": (5, 5),
    }
    predicted = {
        path.name.removesuffix("_paper_investigation_responses.jsonl"): counted(
            path, "predicted_variants"
        )
        for path in sorted(run.glob("*_responses.jsonl"))
    }
    assert predicted == {
        "anthropic_claude-haiku-4-5-20251001": {
            "rsID": (187, 187),
            "star_allele": (60, 67),
        },
        "anthropic_claude-opus-4-6": {"rsID": (194, 195), "star_allele": (62, 66)},
        "anthropic_claude-sonnet-4-5-20250929": {
            "rsID": (173, 176),
            "star_allele": (75, 86),
        },
        "gpt-4o-mini": {"rsID": (111, 112), "star_allele": (50, 58)},
        "gpt-5.2": {"rsID": (188, 189), "star_allele": (55, 57)},
    }
