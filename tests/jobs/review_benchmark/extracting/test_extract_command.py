"""`siftlog prepare review-benchmark extract`: a run that ends in files of truth."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import jobs
from jobs.inputs.rows import InputFindings
from jobs.review_benchmark.truth_files import read_truth
from jobs.screening.input_tables import CitationCollector, read_exclusions
from runner.cli.main import exit_code
from tests.processes import siftlog

SAMPLE = Path(jobs.__file__).parent / "review_benchmark" / "sample" / "extraction"
PREPARE = ("prepare", "review-benchmark", "extract")


def test_a_wrong_and_an_ungrounded_reference_are_found_and_nothing_asked_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replies = (SAMPLE / "replies.jsonl").read_text("utf-8").splitlines()
    recording = tmp_path / "replies.jsonl"
    # at first one answer is not to be had
    recording.write_text("\n".join(replies[1:]), "utf-8")
    words: tuple[object, ...] = (
        *("--model", "recorded:replies.jsonl", "--run-id", "x", "--with-excluded"),
        *(SAMPLE / "review.pdf", "--out", "data", "--no-report"),
    )
    first = siftlog(*PREPARE, *words, cwd=tmp_path, check=False)
    assert first.returncode == 6
    assert "cannot be written, since title could not be read" in first.stderr
    recording.write_text("\n".join(replies[:1]), "utf-8")
    data = tmp_path / "data"
    assert not list(data.glob("cochrane_*"))
    (data / "cochrane_CD900001.json").write_text("made by hand", "utf-8")
    siftlog("retry", "x", cwd=tmp_path)
    words = ("--accept", "--no-report", "--output-dir", "data")
    resumed = siftlog("resume", "x", *words, cwd=tmp_path)
    assert (data / "cochrane_CD900001.json~").read_text("utf-8") == "made by hand"
    assert "is kept as cochrane_CD900001.json~" in resumed.stderr
    count = "10 references of 9 studies (abstract: 9); 1 dropped, 0 repeated"
    doi = "10.5555/ilr.2012.055"
    for line in (
        "Extraction: ACCEPTED",
        f"Included: {count}",
        f"  - Cedar 2012: DOI that is not in its reference was removed ({doi})",
        "  - Medlar 2018: does not stand in the text and was dropped (Medlar RS. Light",
    ):
        assert line in resumed.stdout
    evidence = json.loads((data / "extraction_CD900001.json").read_text("utf-8"))
    assert [each["page"] for each in evidence["included"]] == [5] * 8 + [6] * 2
    assert [each["cochrane_ref_id"] for each in evidence["dropped"]] == ["Medlar 2018"]
    (review,) = read_truth(data, InputFindings())
    assert (review.id, len(review.studies)) == ("CD900001", 10)
    (cedar,) = (each for each in review.studies if each.ref_id == "Cedar 2012")
    assert (cedar.doi, cedar.title[:10]) == ("", "Évaluation")
    cited = CitationCollector().citations()
    excluded = read_exclusions(
        data / "excluded_CD900001.csv", cited, InputFindings(), {}
    )
    assert [(each.paper, each.reason) for each in excluded.exclusions] == [
        ("99000011", "No light was used in either group"),
        ("99000012", "Participants did not work at night"),
    ]
    runs = str(tmp_path / "runs")
    assert exit_code(["explain", "x", "CD900001", "--runs-dir", runs]) == 2
    assert "stands in extraction_<id>.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("a.txt",), "builds files; say in which folder with --out."),
        (("--out", "x"), "reads one file; it was given 0."),
        (("a.txt", "b.txt", "--out", "x"), "reads one file; it was given 2."),
        (("--dry-run", "none.txt", "--out", "x"), "none.txt: no such file"),
        (("a.txt", "--out", "x", "--colour", "red"), "has no setting 'colour'"),
    ],
)
def test_words_that_make_no_run_are_refused(
    words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code([*PREPARE, *words]) in {1, 2}
    assert complaint in capsys.readouterr().err
