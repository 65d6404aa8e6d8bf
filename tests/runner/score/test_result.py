"""What a scoring keeps for the end of a run and for status."""

from __future__ import annotations

from pathlib import Path

from runner.score.render import result_of
from runner.score.result import RESULT, RunResult, stored_result
from runner.scorecard import LIMITS, NO_TRUTH, Finding, Metric, Scorecard
from store.document import WIDTH

MISSED = Metric(
    path="missed",
    name="Missed",
    value=0.1,
    lo=0.05,
    hi=0.2,
    n=8,
    direction="lower",
    is_headline=True,
)


def finding(severity: str, message: str, code: str = "x", where: str = "w") -> Finding:
    return Finding(code=code, severity=severity, where=where, message=message)  # type: ignore[arg-type]


def test_it_has_the_headline_metrics_and_the_findings_that_matter() -> None:
    card = Scorecard(
        models={"m": (MISSED,)},
        summary="All of it.",
        worth_explaining="P1",
        settings={"level": 0.9},
        findings=(
            finding("info", "is quiet"),
            finding("warn", "drifts"),
            finding("error", "leaks"),
            finding("info", "a sample", where=LIMITS),
        ),
    )
    result = result_of(card)
    assert result.text.splitlines() == [
        "Metric, 90% interval      m                     n",
        "Missed (lower is better)  0.100 [0.050, 0.200]  8",
    ]
    assert result.findings == ("error: w: leaks", "warn: w: drifts", "note: a sample")
    assert result.explain == "P1"
    assert result.headlines == ("missed",)


def test_a_job_says_what_stands_below_and_without_a_truth_it_is_the_summary() -> None:
    card = Scorecard(models={"m": (MISSED,)}, summary="No truth.", result="3 answers")
    assert result_of(card).text.endswith("\n\n3 answers")
    blind = Scorecard(
        models={"m": (MISSED,)},
        summary="Counts. No truth.",
        findings=(finding("info", "No truth.", NO_TRUTH, LIMITS),),
    )
    assert result_of(blind).text.endswith("\n\nCounts. No truth.")
    assert result_of(blind).findings == ()
    assert result_of(Scorecard(models={}, summary="Only this.")).text == "Only this."


def test_it_is_read_from_the_folder_and_a_damaged_file_is_none(tmp_path: Path) -> None:
    models = {f"model-number-{n}": (MISSED,) for n in range(3)}
    result = result_of(Scorecard(models=models, summary=""))
    assert stored_result(tmp_path) is None
    (tmp_path / RESULT).write_bytes(result.json())
    stored = stored_result(tmp_path)
    assert isinstance(stored, RunResult)
    # whoever has no blocks gets a table that fits a page
    assert max(map(len, stored.text.splitlines())) <= WIDTH
    assert stored.text.count("0.100 [0.050, 0.200]") == 3
    (tmp_path / RESULT).write_bytes(b"{")
    assert stored_result(tmp_path) is None
