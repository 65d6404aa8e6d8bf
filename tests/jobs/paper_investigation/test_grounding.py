from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.paper_investigation.variants import JUDGED, distinct, ground, variant_class


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
