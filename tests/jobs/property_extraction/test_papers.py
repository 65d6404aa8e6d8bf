"""Papers from folders, JSONL and PDF; pairs of names and verdicts from CSV.

Models, replicates and papers: what is drawn, what is paired, what is left out.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import numpy as np
import pytest

from jobs.property_extraction.aliases.alias_set import AliasEntry, AliasSet
from jobs.property_extraction.inputs import load, require
from jobs.property_extraction.name_pairs import (
    NamePair,
    read_candidates,
    read_verdicts,
    with_examples,
)
from jobs.property_extraction.papers import CACHED_PAPERS, read_papers
from jobs.property_extraction.prediction_files import read_predictions
from jobs.property_extraction.score import compared
from jobs.property_extraction.settings import PropertySettings
from runner.errors import DatasetError, UsageError
from tests.jobs.property_extraction.made_rows import Fields, column, values
from tests.pdf_pages import pdf

PAGE = "The critical temperature of the compound is 2.8 K, as its resistivity shows. "


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "title"),
    [
        (
            "Status: invented; not real\n\nA compound\nof tin\n\nText.",
            "A compound of tin",
        ),
        ("# A heading\n\nStatus: x\n\nText.", "A heading"),
        (f"{PAGE * 5}\n\nText.", ""),
        ("Only one line", ""),
        ("", ""),
    ],
)
def test_the_title_of_a_paper_is_its_first_short_paragraph(
    tmp_path: Path, text: str, title: str
) -> None:
    written(tmp_path / "a.txt", text)
    assert read_papers(tmp_path).title("a") == title


def test_a_folder_holds_a_file_a_paper_named_by_its_refno(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    written(tmp_path / "a.v1.md", "# Title")
    written(tmp_path / "notes.csv", "x")
    papers = read_papers(tmp_path)
    assert list(papers) == ["a.v1", "b"]
    assert papers.text("b") == "one\ntwo\n"
    assert papers.paper("b") is papers.paper("b")
    assert "c" not in papers
    assert papers.paper("c").text == ""
    with pytest.raises(KeyError):
        papers.text("c")


def test_a_jsonl_file_holds_a_line_a_paper_that_is_read_when_asked_for(
    tmp_path: Path,
) -> None:
    lines = [
        {"refno": f"P{n}", "text": f"text {n} \u03bc"} for n in range(CACHED_PAPERS + 4)
    ]
    path = tmp_path / "papers.jsonl"
    text = "\n\n".join(
        json.dumps(line, ensure_ascii=n % 2 == 0) for n, line in enumerate(lines)
    )
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    papers = read_papers(path)
    assert len(papers) == len(lines)
    assert [papers.text(line["refno"]) for line in lines] == [
        line["text"] for line in lines
    ]


def test_a_pdf_is_what_its_pages_hold(tmp_path: Path) -> None:
    (tmp_path / "P1.pdf").write_bytes(pdf(["\n".join([PAGE] * 4)]))
    assert "critical temperature of the compound is 2.8 K" in " ".join(
        read_papers(tmp_path).text("P1").split()
    )


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("p.jsonl", "", "no paper in it"),
        (
            "p.jsonl",
            '{"refno": "P1", "text": "a"}\n{"refno": "P1", "text": "b"}',
            "p.jsonl line 2: P1 also occurs on line 1",
        ),
        ("p.jsonl", '{"refno": " ", "text": "a"}', "line 1: refno is blank"),
        ("p.jsonl", '{"refno": "P1"}', "line 1: text is missing"),
        ("p.jsonl", '{"text": "a"}', "line 1: refno is missing"),
        ("p.jsonl", "[1]", "line 1: a list instead of an object"),
        ("p.jsonl", '{"refno": "P#2", "text": "a"}', "'P#2' ends as the pieces"),
    ],
)
def test_a_paper_that_is_off_is_told_with_its_line(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    with pytest.raises(DatasetError, match=r".") as error:
        read_papers(written(tmp_path / name, text))
    assert said in str(error.value)


def test_two_files_of_one_paper_and_a_folder_without_any_are_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(DatasetError, match="no paper in it"):
        read_papers(tmp_path)
    for suffix in ("txt", "md"):
        written(tmp_path / f"a.{suffix}", "x")
    with pytest.raises(DatasetError, match=r"a\.md and a\.txt are the same paper"):
        read_papers(tmp_path)
    with pytest.raises(DatasetError, match="No such file"):
        read_papers(tmp_path / "gone")


def test_a_text_that_cannot_be_read_is_told_before_any_is_asked_for(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_bytes(b"abc\xff")
    with pytest.raises(DatasetError, match=r"a\.txt: byte 3 is not UTF-8"):
        read_papers(tmp_path)
    written(tmp_path / "a.txt", "abc")
    written(tmp_path / "b.pdf", "no PDF")
    with pytest.raises(DatasetError, match=r"b\.pdf: it is no PDF"):
        read_papers(tmp_path)


def test_pairs_are_distinct_and_names_come_back_as_they_were_meant(
    tmp_path: Path,
) -> None:
    path = written(
        tmp_path / "c.csv",
        "pred_name,gt_name,count,avg_sim,examples\n"
        'Tc,"\'-slope of Hc2",2,0.5,\n'
        'Tc,"\'-slope of Hc2",9,0.9,\n'
        'gap,energy gap,1,0.25,"[{""value"": ""5"", ""unit"": ""K"", '
        '""quote"": ""a\\nb""}, ""1.5 meV""]"\n',
    )
    assert read_candidates(path) == (
        NamePair(pred_name="Tc", gt_name="-slope of Hc2", count=2, avg_sim=0.5),
        NamePair(
            pred_name="gap",
            gt_name="energy gap",
            count=1,
            avg_sim=0.25,
            examples=("5 | K | a b", "1.5 meV"),
        ),
    )


def test_pairs_without_examples_get_the_first_predictions_of_their_names(
    tmp_path: Path,
) -> None:
    preds = written(
        tmp_path / "p.csv",
        "refno,property_name,value_string,units,condition,quote\n"
        + "".join(f"P1,Tc,{n},K,at 2 T,{'x' * 400}\n" for n in range(5))
        + "P1,gap,,meV,,\n",
    )
    pairs = (
        NamePair(pred_name="Tc", gt_name="a"),
        NamePair(pred_name="Tc", gt_name="b", examples=("own",)),
        NamePair(pred_name="gap", gt_name="a"),
    )
    first, second, third = with_examples(pairs, read_predictions(preds))
    assert [each[:12] for each in first.examples] == [
        f"{n} | K | at 2" for n in range(3)
    ]
    assert {len(each) for each in first.examples} == {300}
    assert (second.examples, third.examples) == (("own",), ())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pred_name,count\nTc,1\n", "column 'gt_name' is missing"),
        ("pred_name,gt_name\n,x\n", "row 2: pred_name is blank"),
        ("pred_name,gt_name,examples\na,b,c\n", "row 2: examples is no JSON list"),
    ],
)
def test_candidates_that_are_off_are_told_with_their_row(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(DatasetError) as error:
        read_candidates(written(tmp_path / "c.csv", text))
    assert said in str(error.value)


def test_verdicts_are_words_and_a_blank_one_is_none(tmp_path: Path) -> None:
    head = "pred_name,gt_name,is_match,reason,model\n"
    rows = 'a,b,True,"\'=same",m\na,c,no,,m\na,d,,unread,m\n'
    found = list(read_verdicts(written(tmp_path / "v.csv", head + rows)))
    assert [each.is_match for each in found] == [True, False, None]
    assert (found[0].reason, found[0].model) == ("=same", "m")
    with pytest.raises(DatasetError, match="row 2: is_match is 'maybe'"):
        list(read_verdicts(written(tmp_path / "v.csv", f"{head}a,b,maybe,,\n")))
    with pytest.raises(DatasetError, match="row 2: gt_name is blank"):
        list(read_verdicts(written(tmp_path / "v.csv", f"{head}a,,true,,\n")))


def test_definitions_of_the_truth_help_to_verify_and_its_values_stay_out(
    tmp_path: Path,
) -> None:
    truth = written(
        tmp_path / "gt.csv",
        "refno,property_name,value,definition\nP1,gap,7.5,\n"
        "P2,gap,7.7,of the spectrum\n",
    )
    rubric = written(tmp_path / "rubric.csv", "label,rubric,SI\nTc,0.1% SI,K\n")
    pairs = written(tmp_path / "c.csv", "pred_name,gt_name\na,gap\na,Tc\n")
    data = load(
        PropertySettings(mode="verify", candidates=pairs, truth=truth, rubric=rubric)
    )
    known = {name: own.definition for name, own in data.rubric.properties.items()}
    assert known == {"gap": "of the spectrum", "Tc": ""}
    assert data.truth == ()


def test_names_can_be_listed_only_by_a_rubric(tmp_path: Path) -> None:
    settings = PropertySettings(
        names="listed", papers=tmp_path, truth=tmp_path / "gt.csv"
    )
    with pytest.raises(UsageError, match="--rubric FILE"):
        require(settings)


WORDS = ("precision", "recall", "f1")

TRUTH: list[Fields] = [
    ("P1", "Tc", "5", "K"),
    ("P1", "Tc", "5", "K"),
    ("P2", "Tc", "6", "K"),
    ("P3", "structure", "A15"),
    ("P4", "Tc", "1", "K"),
    ("P5", "field", "2", "T"),
    ("P6", "field", "3", "T"),
]
STATED: list[Fields] = [
    ("P1", "Tc", "5", "K"),
    ("P2", "Tc", "7", "K"),
    ("P3", "structure", "a15"),
    ("P3", "structure", "B1"),
    ("P5", "field", "2", "T"),
    ("P6", "field", "30", "kOe"),
    ("P6", "field", "4", "T"),
]


def test_intervals_are_those_of_a_loop_over_draws_of_papers() -> None:
    own = column(TRUTH, STATED, boot_b=200, interval="percentile")
    rng = np.random.default_rng(20260118)
    draws = [rng.integers(0, 6, 6) for _ in range(200)]
    assert draws[0].tolist() == [1, 2, 2, 0, 0, 1]
    by_paper = [(1, 0, 1), (0, 1, 1), (1, 1, 0), (0, 0, 1), (1, 0, 0), (1, 1, 0)]
    for word, above, below in (
        ("precision", (1, 0, 0), (1, 1, 0)),
        ("recall", (1, 0, 0), (1, 0, 1)),
        ("f1", (2, 0, 0), (2, 1, 1)),
    ):
        drawn = []
        for places in draws:
            sums = [sum(by_paper[place][at] for place in places) for at in range(3)]
            bottom = sum(n * weight for n, weight in zip(sums, below, strict=True))
            if bottom:
                top = sum(n * weight for n, weight in zip(sums, above, strict=True))
                drawn.append(top / bottom)
        low, high = np.percentile(drawn, [2.5, 97.5])
        metric = own.metric(word)
        assert (metric.lo, metric.hi) == pytest.approx((low, high), abs=1e-11)
        assert metric.note is not None
        assert "only 6 papers" in metric.note


def test_one_paper_bounds_next_to_nothing() -> None:
    own = column(TRUTH[:2], STATED[:1], boot_b=200)
    for word in WORDS:
        metric = own.metric(word)
        assert metric.value is not None
        assert metric.lo == pytest.approx(0.025 * metric.value)
        assert metric.hi == pytest.approx(1 - 0.025 * (1 - metric.value))
        assert metric.note is not None
        assert "only 1 paper" in metric.note


def test_equal_truth_rows_are_rows_of_their_own_where_models_are_paired() -> None:
    one, both = (
        compared(column(TRUTH, rows))["matched"]()
        for rows in (STATED, [*STATED, STATED[0]])
    )
    assert one.items == both.items
    assert len(set(one.items)) == len(TRUTH)
    assert one.first == [1, 0, 0, 1, 0, 1, 1]
    assert both.first == [1, 1, 0, 1, 0, 1, 1]


def test_replicates_are_scored_one_by_one() -> None:
    replicates = [STATED, STATED[:3], [*STATED, *STATED]]
    own = column(TRUTH, *replicates)
    for word in (*WORDS, "macro.recall", "tp"):
        each = [values(column(TRUTH, rows), word)[0] for rows in replicates]
        metric = own.metric(word)
        assert metric.value == pytest.approx(statistics.fmean(each))
        assert metric.std == pytest.approx(statistics.stdev(each))


def test_a_consensus_holds_the_rows_of_enough_replicates() -> None:
    replicates = [STATED, STATED[:3], STATED[1:]]
    for least, rows in ((1, STATED), (2, STATED), (3, STATED[1:3])):
        own = column(TRUTH, *replicates, consensus=least)
        assert values(own, "tp", "fp", "fn") == values(
            column(TRUTH, rows), "tp", "fp", "fn"
        )


def test_a_paper_that_failed_is_beside_the_headline_and_not_in_it() -> None:
    own = column(TRUTH, STATED[:3], failed=["P4", "P5"])
    # P6 was not asked about: an import knows no better than that nothing was found
    assert values(own, "tp", "fp", "fn") == (2, 1, 3)
    metric = own.metric("recall~failed_as_empty")
    assert (metric.value, metric.n) == (2 / 7, 2)
    assert own.metric("recall").value == 2 / 5


@pytest.mark.parametrize(
    ("truth", "stated", "counts"),
    [
        (TRUTH[:2], STATED[:1] * 2, (2, 0, 0)),
        (TRUTH[:2], (), (0, 0, 2)),
        (TRUTH[:2], [("P9", "Tc", "5", "K")], (0, 1, 2)),
    ],
)
def test_a_paper_without_wrong_or_without_missed_rows_offers_no_aliases(
    truth: list[Fields], stated: list[Fields], counts: tuple[int, int, int]
) -> None:
    own = column(truth, stated)
    assert values(own, "tp", "fp", "fn") == counts
    assert not own.mismatches.candidates
    assert not own.mismatches.draft


def test_without_papers_in_common_nothing_is_defined() -> None:
    own = column(TRUTH[:2], [("P9", "Tc", "5", "K")], paper_set="common", boot_b=10)
    assert values(own, "tp", "fp", "fn") == (0, 0, 0)
    assert values(own, *WORDS, "macro.f1", "encompassment") == (None,) * 5


def test_a_value_that_says_there_is_none_is_a_value_in_the_truth() -> None:
    truth: list[Fields] = [("P1", "free", "NOT_FOUND")]
    stated: list[Fields] = [("P1", "free", "not_found"), ("P1", "free", "NOT_FOUND")]
    paths = ("tp", "fp", "fn", "abstained")
    assert values(column(truth, stated), *paths) == (0, 0, 1, 2)
    assert values(column(truth, stated, abstentions="value"), *paths) == (1, 1, 0, 0)


def test_what_cannot_be_compared_is_in_no_denominator() -> None:
    truth, stated = (
        [*rows, ("P1", "formula", "Nb3Sn"), ("P2", "formula", "NbSe2")]
        for rows in (TRUTH, STATED)
    )
    paths = ("tp", "fp", "fn", *WORDS, "macro.f1", "name_coverage", "misses")
    usual = column(TRUTH, STATED)
    left_out = column(truth, stated)
    assert values(left_out, *paths) == values(usual, *paths)
    assert left_out.metric("macro.f1").n == usual.metric("macro.f1").n
    pytest.importorskip("pymatgen.core")
    compared = column(truth, stated, pymatgen="on")
    tp, fp, fn = values(usual, "tp", "fp", "fn")
    assert values(compared, "tp", "fp", "fn") == (tp + 2, fp, fn)


def test_names_that_differ_in_a_blank_are_two() -> None:
    truth: list[Fields] = [("P1", "H ⊥ab-plane", "1"), ("P1", "H⊥ab-plane", "2")]
    stated: list[Fields] = [("P1", "H⊥ab-plane", "1"), ("P1", "H ⊥ab-plane", "2")]
    assert values(column(truth, stated), "tp", "fp", "fn") == (0, 2, 2)
    assert values(column(truth, truth), "tp", "fp", "fn") == (2, 0, 0)


def test_an_alias_takes_no_value_from_the_right_name() -> None:
    truth: list[Fields] = [("P1", "Tc", "5", "K")]
    stated: list[Fields] = [("P1", "onset Tc", "5", "K"), ("P1", "Tc", "5", "K")]
    alias = AliasEntry(
        pred_name="onset Tc", gt_name="Tc", status="accepted", source="human"
    )
    own = column(truth, stated, aliases=AliasSet(entries=(alias,)))
    assert values(own, "tp", "fp", "fn") == (1, 1, 0)
    assert list(own.first.row_outcomes.partners) == [-1, 0]


def test_a_name_that_is_right_in_one_paper_may_be_an_alias_nowhere_else() -> None:
    truth: list[Fields] = [("P1", "free", "x"), ("P2", "Tc", "5", "K")]
    stated: list[Fields] = [("P1", "free", "x"), ("P2", "free", "5", "K")]
    own = column(truth, stated)
    assert own.mismatches.draft == {}
    kept = column(truth, stated, same_name="keep")
    assert kept.mismatches.draft == {"free": "Tc"}
