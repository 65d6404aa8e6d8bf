"""The files of a scoring, as the runner writes them."""

from __future__ import annotations

from pathlib import Path

from runner.score.scoring import write_files
from runner.scorecard import Artifact, Scorecard, StreamedLine

CARD = Scorecard(
    models={},
    summary="",
    artifacts=(
        Artifact(name="some.jsonl", text=""),
        Artifact(name="none.jsonl", text=""),
        Artifact(name="none.csv", text=""),
    ),
    details=[StreamedLine(artifact="some.jsonl", text="{}\n")],
)


def test_json_lines_without_a_line_have_no_file(tmp_path: Path) -> None:
    write_files(tmp_path / "draft", CARD, b"{}", b"{}")
    made = {path.name for path in (tmp_path / "draft").iterdir()}
    assert made >= {"some.jsonl", "none.csv"}
    assert "none.jsonl" not in made
