"""Reports through the real process: with a scoring, without one, and once more."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.commands import siftlog
from tests.corpus import write_corpus
from tests.jobs.kit.report.reported import Page
from tests.processes import simulated

DRAWN = {"SIFTLOG_NO_REPORT": "0"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A finished run called r, with its report, and what its process printed."""
    cwd = tmp_path_factory.mktemp("ran")
    done = siftlog("run", "paper-investigation", "--run-id=r", cwd=cwd, env=DRAWN)
    return cwd, done.stdout


def _scoring(cwd: Path, number: int = 1) -> Path:
    return cwd / "runs" / "r" / "scores" / str(number)


def _files(folder: Path) -> dict[str, bytes]:
    drawn = (folder / "report.html", *(folder / "figures").iterdir())
    return {path.name: path.read_bytes() for path in drawn}


def test_a_run_ends_with_the_place_of_its_report(ran: tuple[Path, str]) -> None:
    cwd, said = ran
    assert "report    runs/r/scores/1/report.html\n" in said
    page = Page((_scoring(cwd) / "report.html").read_text(encoding="utf-8"))
    assert "Variant recall avg_variant_recall" in page.text
    assert (
        "baseline/lexical 0.598 [0.270, 0.871] n = 8 0.912 [0.576, 0.998] n = 8 "
        in (page.text)
    )


def test_every_figure_of_the_run_is_there_twice(ran: tuple[Path, str]) -> None:
    cwd, _ = ran
    names = {path.name for path in (_scoring(cwd) / "figures").iterdir()}
    assert names == {
        f"{name}.{kind}"
        for name in (
            *("headline", "averages", "papers", "score-by-recall", "classes", "kinds"),
            "pipelines",
            *("outcomes", "study-fields", "significance"),
        )
        for kind in ("svg", "png")
    }


def test_the_verb_says_where_the_report_lies(ran: tuple[Path, str]) -> None:
    cwd, _ = ran
    done = siftlog("report", "r", "--scoring=1", "--json", cwd=cwd)
    assert json.loads(done.stdout) == {
        "schema": "siftlog.report/1",
        "run": "r",
        "scoring": 1,
        "report": "runs/r/scores/1/report.html",
        "drawn": False,
    }


def test_a_report_drawn_again_is_the_same_bytes(ran: tuple[Path, str]) -> None:
    cwd, _ = ran
    before = _files(_scoring(cwd))
    words = ("--scoring=1", "--rebuild")
    siftlog("report", "r", *words, cwd=cwd, env={"PYTHONHASHSEED": "77"})
    assert _files(_scoring(cwd)) == before


def test_figures_come_in_the_formats_that_are_asked_for(ran: tuple[Path, str]) -> None:
    cwd, _ = ran
    made = json.loads(siftlog("score", "r", "--json", cwd=cwd).stdout)
    number = made["scoring"]
    words = ("--figures", "pdf,PNG", "--figures=png")
    siftlog("report", "r", "--scoring", number, *words, cwd=cwd)
    folder = _scoring(cwd, number)
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".pdf", ".png"}
    page = Page((folder / "report.html").read_text(encoding="utf-8"))
    # the page has its own pictures
    assert len(page.named("img")) == len(list((folder / "figures").glob("*.pdf")))
    assert "figures/averages.pdf" in page.text
    # a report that exists is drawn again where formats are asked for
    siftlog("report", "r", "--scoring", number, "--figures=svg", cwd=cwd)
    assert (folder / "figures" / "averages.svg").exists()


def test_a_scoring_draws_the_formats_that_are_asked_for(tmp_path: Path) -> None:
    _run_of_one_paper(tmp_path)
    words = ("--json", "--figures", "pdf")
    made = json.loads(siftlog("score", "r", *words, cwd=tmp_path, env=DRAWN).stdout)
    figures = [name for name in made["artifacts"] if name.startswith("figures/")]
    assert figures
    assert all(name.endswith(".pdf") for name in figures)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "paper-investigation", "--run-id=x"),
        ("resume", "r"),
        ("score", "r"),
        ("import", "paper-investigation", "nothing.jsonl"),
        ("report", "r"),
    ],
    ids=lambda words: words[0],
)
def test_a_format_that_is_none_is_one_sentence(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = siftlog(*words, "--figures", "pdf,gif", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "siftlog: --figures gif: not a format of figures; choose from svg, png, pdf.\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_a_copy_elsewhere_is_the_whole_report(ran: tuple[Path, str]) -> None:
    cwd, _ = ran
    copy = cwd / "copy.html"
    done = siftlog("report", "r", "--scoring=1", "--out", copy, cwd=cwd)
    assert done.stdout == f"{copy}\n"
    there = (_scoring(cwd) / "report.html").read_bytes()
    assert copy.read_bytes() == there


def test_a_scoring_without_a_report_gets_one_when_it_is_asked_for(
    ran: tuple[Path, str],
) -> None:
    cwd, _ = ran
    made = json.loads(siftlog("score", "r", "--json", cwd=cwd).stdout)
    folder = _scoring(cwd, made["scoring"])
    assert "report.html" not in made["artifacts"]
    assert not (folder / "report.html").exists()
    siftlog("report", "r", "--scoring", made["scoring"], cwd=cwd)
    assert _files(folder) == _files(_scoring(cwd))


def test_a_scoring_names_its_figures_among_its_files(ran: tuple[Path, str]) -> None:
    cwd, _ = ran
    words = ("--json", "--output-dir", cwd / "copied")
    made = json.loads(siftlog("score", "r", *words, cwd=cwd, env=DRAWN).stdout)
    assert {"report.html", "figures/averages.png"} <= set(made["artifacts"])
    assert (cwd / "copied" / "figures" / "averages.svg").exists()


def test_a_gold_file_that_changed_since_changes_no_old_report(tmp_path: Path) -> None:
    bench = _run_of_one_paper(tmp_path)
    before = _files(_scoring(tmp_path))
    bench.write_text('{"pmcid": "PMC1", "variants": ["rs1", "rs3"]}\n')
    siftlog("report", "r", "--rebuild", cwd=tmp_path)
    assert _files(_scoring(tmp_path)) == before


def test_an_input_that_is_nowhere_any_more_is_named(tmp_path: Path) -> None:
    bench = _run_of_one_paper(tmp_path, " " * (8 << 20))  # more than a log keeps
    before = _files(_scoring(tmp_path))
    bench.write_text('{"pmcid": "PMC1", "variants": ["rs1", "rs3"]}\n')
    done = siftlog("report", "r", "--rebuild", cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr == (
        f"siftlog: {bench} (bench) is not the file that the scoring read, and the log "
        "does not keep it: put the old one back.\n"
    )
    assert _files(_scoring(tmp_path)) == before


def _run_of_one_paper(cwd: Path, after: str = "") -> Path:
    """A run called r, and its gold file, which ends with *after*."""
    bench = cwd / "bench.jsonl"
    bench.write_text(f'{{"pmcid": "PMC1", "variants": ["rs1"]}}{after}\n')
    papers = cwd / "papers"
    papers.mkdir()
    (papers / "PMC1.md").write_text("We studied rs1 and rs2.\n")
    words = (f"--bench={bench}", f"--papers={papers}", "--mode=extract", "--run-id=r")
    siftlog("run", "paper-investigation", *words, cwd=cwd, env=DRAWN)
    return bench


def test_a_run_without_a_scoring_is_told_how_to_make_one(tmp_path: Path) -> None:
    siftlog("generate", "paper-investigation", "--run-id=r", cwd=tmp_path)
    done = siftlog("report", "r", cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        "siftlog: Run r has no scoring; make one with: siftlog score r\n"
    )


def test_a_scoring_that_was_never_made_is_named(ran: tuple[Path, str]) -> None:
    cwd, _ = ran
    done = siftlog("report", "r", "--scoring=99", cwd=cwd, check=False)
    assert done.returncode == 2
    assert "Run r has no scoring 99; its newest is" in done.stderr


def test_a_folder_that_is_gone_comes_back_with_everything(
    ran: tuple[Path, str], tmp_path: Path
) -> None:
    cwd, _ = ran
    shutil.copytree(cwd / "runs", tmp_path / "runs")
    folder = _scoring(tmp_path)
    before = {path.name for path in folder.iterdir()}
    card, drawn = (folder / "scorecard.json").read_bytes(), _files(folder)
    folder.rename(tmp_path / "gone")
    siftlog("report", "r", "--scoring=1", cwd=tmp_path)
    assert {path.name for path in folder.iterdir()} == before
    assert (folder / "scorecard.json").read_bytes() == card
    assert _files(folder) == drawn


@pytest.mark.timeout(180)  # six processes, of which two draw
def test_the_report_of_a_scoring_does_not_change_when_its_run_goes_on(
    tmp_path: Path,
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 6)
    with simulated("--job=paper-investigation", cwd=tmp_path) as url:
        words = (*corpus, "--model=m", f"--base-url={url}", "--run-id=r", "--no-cache")
        poor = ("run", "paper-investigation", *words, "--price=1,1", "--budget=0.01")
        assert siftlog(*poor, cwd=tmp_path, env=DRAWN, check=False).returncode == 4
        before = _files(_scoring(tmp_path))
        assert b"Partial: the run was unfinished" in before["report.html"]
        siftlog("budget", "r", "--add=1", cwd=tmp_path)
        siftlog("resume", "r", cwd=tmp_path)
    siftlog("report", "r", "--scoring=1", "--rebuild", cwd=tmp_path)
    assert _files(_scoring(tmp_path)) == before
    after = json.loads((_scoring(tmp_path, 2) / "operations.json").read_text())
    assert not after["partial"]
