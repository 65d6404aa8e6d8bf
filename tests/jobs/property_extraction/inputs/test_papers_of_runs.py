"""Papers from folders, JSONL and PDF; pairs of names and verdicts from CSV."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.property_extraction.inputs import load, require
from jobs.property_extraction.name_pairs import (
    NamePair,
    read_candidates,
    read_verdicts,
    with_examples,
)
from jobs.property_extraction.papers import CACHED_PAPERS, read_papers
from jobs.property_extraction.prediction_files import read_predictions
from jobs.property_extraction.settings import PropertySettings
from runner.errors import DatasetError, UsageError
from tests.pdf_pages import pdf

PAGE = "The critical temperature of the compound is 2.8 K, as its resistivity shows. "


def written(path: Path, text: str) -> Path:
    path.write_text(text, "utf-8")
    return path


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
            "p.jsonl line 2: P1 stands on line 1 too",
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
