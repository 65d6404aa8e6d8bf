"""Who writes reports is found where it is installed; without one there is none."""

from __future__ import annotations

from pathlib import Path

from runner.score.render import changes
from tests.plugging import plugged
from tests.processes import siftlog
from tests.runner.toy_jobs import ToyJob, ToySettings

DRAWN = {"SIFTLOG_NO_REPORT": "0"}


def _plugged(folder: Path, target: str) -> dict[str, str]:
    """The environment in which a further writer of reports is installed."""
    environment = plugged(folder / "plugin")
    (points,) = (folder / "plugin").rglob("entry_points.txt")
    points.write_text(f"[siftlog.reports]\nother = {target}\n")
    return {**environment, **DRAWN}


def test_a_writer_of_another_package_writes_beside_the_rest(tmp_path: Path) -> None:
    (tmp_path / "other_report.py").write_text(
        "def write(folder, reported):\n"
        "    names = sorted(path.name for path in folder.iterdir())\n"
        "    (folder / 'other.txt').write_text(f'{reported.run_id} {names[-1]}')\n"
        "    return ()\n"
    )
    environment = _plugged(tmp_path, "other_report:write")
    environment["PYTHONPATH"] += f":{tmp_path}"
    siftlog("run", "paper-investigation", "--run-id=r", cwd=tmp_path, env=environment)
    written = tmp_path / "runs" / "r" / "scores" / "1" / "other.txt"
    assert written.read_text() == "r verdicts.db"


def test_a_broken_writer_is_named_and_leaves_no_scoring_behind(tmp_path: Path) -> None:
    environment = _plugged(tmp_path, "no_such_module:write")
    words = ("run", "paper-investigation", "--run-id=r")
    done = siftlog(*words, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 1
    assert "the answers are kept, but not scored" in done.stderr
    assert "The report other (no_such_module:write) cannot be written" in done.stderr
    assert "--no-report" in done.stderr
    assert list((tmp_path / "runs" / "r" / "scores").iterdir()) == []
    siftlog("score", "r", "--no-report", cwd=tmp_path, env=environment)
    assert (tmp_path / "runs" / "r" / "scores" / "1" / "scorecard.json").exists()


def test_only_settings_that_are_not_the_default_are_changes() -> None:
    job = ToyJob()
    assert changes(job, ToySettings(), tuple(ToySettings.model_fields)) == {}
    found = changes(job, ToySettings(items=7), ("items", "no_such"))
    assert found == {"items": (7, ToySettings().items)}
