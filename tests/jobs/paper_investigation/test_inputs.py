"""All inputs together: the sample, what a mode needs, limits, and what is noticed.

Papers' texts: found, checked once, opened again one at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from jobs.kit.inputs.rows import InputFindings
from jobs.paper_investigation.data import CACHED_TEXTS, PaperTexts
from jobs.paper_investigation.inputs import (
    SAMPLE,
    inputs,
    load,
    open_papers,
    with_sample,
)
from jobs.paper_investigation.plan import plan_tasks
from jobs.paper_investigation.settings import InvestigationSettings
from runner.errors import DatasetError, UsageError
from runner.scorecard import Finding

BENCH = SAMPLE / "variant_bench.jsonl"
PAPERS = SAMPLE / "papers"
QUESTIONS = SAMPLE / "questions"


def test_without_any_input_the_sample_is_used_and_the_caller_can_tell() -> None:
    given = InvestigationSettings(mode="extract")
    filled = with_sample(given)
    assert filled is not given
    assert (filled.bench, filled.papers, filled.questions) == (BENCH, PAPERS, QUESTIONS)
    assert filled.mode == "extract"


def test_with_any_input_nothing_is_filled_in() -> None:
    given = InvestigationSettings(bench=BENCH, papers=PAPERS, questions=QUESTIONS)
    assert with_sample(given) is given


@pytest.mark.parametrize(
    ("given", "needed"),
    [
        (
            InvestigationSettings(mode="investigate", papers=PAPERS),
            "investigate needs --bench",
        ),
        (InvestigationSettings(bench=BENCH), "investigate needs --papers"),
        (
            InvestigationSettings(bench=BENCH, papers=PAPERS),
            "investigate needs --questions",
        ),
        (InvestigationSettings(mode="extract", bench=BENCH), "extract needs --papers"),
        (
            InvestigationSettings(mode="questions", questions=QUESTIONS),
            "questions needs --papers",
        ),
        (
            InvestigationSettings(
                bench=BENCH, papers=PAPERS, mcq_drug=BENCH, pipelines=("study_param",)
            ),
            "needs --questions, or a file for one of study_param",
        ),
    ],
)
def test_a_mode_that_lacks_an_input_says_which(
    given: InvestigationSettings, needed: str
) -> None:
    with pytest.raises(UsageError, match=needed):
        with_sample(given)


@pytest.mark.parametrize(
    "given",
    [
        InvestigationSettings(mode="extract", bench=BENCH, papers=PAPERS),
        InvestigationSettings(mode="questions", questions=QUESTIONS, papers=PAPERS),
        InvestigationSettings(mode="questions", questions=QUESTIONS, closed_book=True),
    ],
)
def test_a_mode_needs_no_more_than_it_reads(given: InvestigationSettings) -> None:
    assert with_sample(given) is given


def test_inputs_are_the_files_that_are_read() -> None:
    settings = with_sample(InvestigationSettings(pipelines=("mcq_drug", "study_param")))
    assert [each.setting for each in inputs(settings)] == [
        "bench",
        "papers",
        "mcq_drug",
        "study_param",
        "sentence_bench",
    ]
    assert all(each.path.exists() for each in inputs(settings))


def test_an_imported_run_may_name_no_input() -> None:
    dataset = load(InvestigationSettings())
    assert (dataset.bench, dataset.questions, dataset.findings) == ((), {}, ())


def test_a_limit_keeps_the_order_of_papers_and_changes_no_task() -> None:
    whole = list(plan_tasks(load(with_sample(InvestigationSettings()))))
    cut = list(plan_tasks(load(with_sample(InvestigationSettings(limit=3)))))
    assert len(cut) == 3
    assert cut == [spec for spec in whole if spec in cut]


def test_in_mode_questions_a_limit_is_a_number_of_questions() -> None:
    whole = list(plan_tasks(load(with_sample(InvestigationSettings(mode="questions")))))
    cut = list(
        plan_tasks(load(with_sample(InvestigationSettings(mode="questions", limit=6))))
    )
    assert len(cut) == 6
    assert cut == [spec for spec in whole if spec in cut]
    pipelines = {spec.key.partition("/")[2].partition(":")[0] for spec in cut}
    assert pipelines == {"mcq_drug", "mcq_phenotype", "mcq_variant", "study_param"}


def test_sentences_outside_the_sentence_bench_are_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "sentences.jsonl"
    path.write_text(
        '{"pmcid": "PMC0000009", "variant": "cyp3a5 *3", "sentences": ["Other."]}',
        encoding="utf-8",
    )
    settings = with_sample(InvestigationSettings()).model_copy(
        update={"sentence_bench": path}
    )
    found = {
        finding.where: finding
        for finding in load(settings).findings
        if finding.code == "sentence_not_in_bench"
    }
    # everything but the modified questions, which change a fact on purpose
    assert {where: finding.n for where, finding in found.items()} == {
        "mcq_variant": 23,
        "mcq_drug": 19,
        "mcq_phenotype": 16,
        "study_param": 29,
    }


def test_a_cut_of_long_papers_is_recorded() -> None:
    codes = {
        f.code: f
        for f in load(with_sample(InvestigationSettings(max_chars=6_400))).findings
    }
    assert codes["papers_cut"].n == 3
    whole = load(with_sample(InvestigationSettings(max_chars=20_000))).findings
    assert "papers_cut" not in {finding.code for finding in whole}


def test_the_sentence_bench_is_looked_up_by_normalised_variants() -> None:
    dataset = load(with_sample(InvestigationSettings()))
    assert dataset.sentences["PMC0000003", "hla-b*15:02"]
    assert "sentence_not_in_bench" not in {f.code for f in dataset.findings}


def papers(
    path: Path, wanted: Iterable[str] = ("PMC1", "PMC2"), **settings: Any
) -> tuple[PaperTexts, dict[str, Finding]]:
    noticed = InputFindings()
    opened = open_papers(
        InvestigationSettings(**{"mode": "investigate", "papers": path, **settings}),
        set(wanted),
        noticed,
    )
    return opened, {finding.code: finding for finding in noticed.findings()}


def folder(path: Path, files: dict[str, bytes]) -> Path:
    made = path / "papers"
    made.mkdir()
    for name, data in files.items():
        (made / name).write_bytes(data)
    return made


def test_markdown_and_text_files_are_read_by_their_stem(tmp_path: Path) -> None:
    made = folder(tmp_path, {"PMC1.md": b"# One", "PMC2.txt": b"two", "x.md": b"no"})
    opened, found = papers(made)
    assert (opened.text("PMC1"), opened.text("PMC2")) == ("# One", "two")
    assert (opened.title("PMC1"), opened.title("PMC2")) == ("One", None)
    assert opened.title("PMC9") is None
    assert not found


def test_a_byte_order_mark_and_windows_line_ends_leave_the_text(tmp_path: Path) -> None:
    made = folder(tmp_path, {"PMC1.md": b"\xef\xbb\xbf# T\r\nbody\r\n"})
    assert papers(made)[0].text("PMC1") == "# T\nbody\n"


@pytest.mark.parametrize("data", [b"", b" \n\t\n"])
def test_a_blank_file_is_no_text(tmp_path: Path, data: bytes) -> None:
    opened, _ = papers(folder(tmp_path, {"PMC1.md": data}))
    assert "PMC1" not in opened
    with pytest.raises(KeyError):
        opened.text("PMC1")


def test_papers_that_nobody_asks_for_are_counted_and_not_read(tmp_path: Path) -> None:
    made = folder(tmp_path, {"PMC1.md": b"x", "PMC7.md": b"\xff", "PMC8.md": b"y"})
    opened, found = papers(made)
    assert list(opened) == ["PMC1"]
    assert (found["papers_not_needed"].n, found["papers_not_needed"].example) == (
        2,
        "PMC7",
    )


def test_a_stated_id_that_disagrees_with_the_name_is_a_warning(tmp_path: Path) -> None:
    made = folder(tmp_path, {"PMC1.md": b"# T\n\n**PMCID:** PMC2\n"})
    opened, found = papers(made)
    assert "PMC1" in opened
    assert found["pmcid_disagrees"].example == "PMC1.md states PMC2"


def test_two_files_of_one_paper_are_an_error(tmp_path: Path) -> None:
    made = folder(tmp_path, {"PMC1.md": b"x", "PMC1.txt": b"x"})
    with pytest.raises(DatasetError, match=r"PMC1\.md and PMC1\.txt are the same"):
        papers(made)


def test_a_folder_without_papers_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no paper in it"):
        papers(folder(tmp_path, {"readme.md": b"x"}))


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="No such file or directory"):
        papers(tmp_path / "gone")


def test_undecodable_bytes_are_named_by_file_and_offset(tmp_path: Path) -> None:
    made = folder(tmp_path, {"PMC1.md": b"abc\xff"})
    with pytest.raises(DatasetError, match=r"^PMC1\.md: byte 3 is not UTF-8"):
        papers(made)
    opened, found = papers(made, encoding_errors="replace")
    assert opened.text("PMC1") == "abc\ufffd"
    assert found["replaced_bytes"].example == "PMC1.md"


def test_other_names_count_as_papers_only_with_any_id(tmp_path: Path) -> None:
    made = folder(tmp_path, {"smith-2020.md": b"x"})
    opened, _ = papers(made, wanted=["smith-2020"], any_id=True)
    assert opened.text("smith-2020") == "x"


def jsonl(path: Path, *rows: dict[str, object]) -> Path:
    made = path / "papers.jsonl"
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    made.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    return made


def test_a_jsonl_is_read_again_line_by_line(tmp_path: Path) -> None:
    made = jsonl(
        tmp_path,
        {"pmcid": "PMC1", "text": "# É\r\nbody"},
        {"pmcid": "PMC3", "text": "unwanted"},
        {"pmcid": "PMC2", "text": " "},
        {"pmcid": "PMC4", "text": None},
    )
    opened, found = papers(made, wanted=["PMC1", "PMC2", "PMC4"])
    assert list(opened) == ["PMC1"]
    assert opened.text("PMC1") == "# É\nbody"
    assert found["papers_not_needed"].n == 1


def test_a_jsonl_that_names_a_paper_twice_names_both_lines(tmp_path: Path) -> None:
    row = {"pmcid": "PMC1", "text": "x"}
    with pytest.raises(DatasetError, match=r"papers\.jsonl line 2: PMC1 .* line 1"):
        papers(jsonl(tmp_path, row, row))


def test_a_jsonl_row_without_text_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"papers\.jsonl line 1: text is missing"):
        papers(jsonl(tmp_path, {"pmcid": "PMC1"}))


def test_only_the_last_few_texts_are_held(tmp_path: Path) -> None:
    names = [f"PMC{n}" for n in range(CACHED_TEXTS + 1)]
    made = folder(tmp_path, {f"{name}.md": b"old" for name in names})
    opened, _ = papers(made, wanted=names)
    for name in names:
        opened.text(name)
        (made / f"{name}.md").write_bytes(b"new")
    assert opened.text(names[-1]) == "old"
    assert opened.text(names[0]) == "new"
