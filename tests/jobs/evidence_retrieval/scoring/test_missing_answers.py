"""A scoring that asks for more than the run has says so."""

from __future__ import annotations

from pathlib import Path

from tests.processes import siftlog

PIPELINE = '[[config]]\nname = "x"\nfirst_stage = "embedding"\n'


def test_answers_that_other_configurations_need_are_counted(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(PIPELINE)
    siftlog(
        *("run", "evidence-retrieval", "--run-id=r", "--limit=6"),
        *("--boot-b=0", "--no-report"),
        cwd=tmp_path,
    )
    assert (
        "not in the run"
        not in siftlog("score", "r", "--no-report", cwd=tmp_path).stderr
    )
    done = siftlog("score", "r", "--pipeline=x.toml", "--no-report", cwd=tmp_path)
    assert "note: 6 answers that these settings ask for are not in" in done.stderr
