"""A configuration file lies beside its data, and serves every verb before a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.cli.main import exit_code
from tests.corpus import write_corpus
from tests.processes import siftlog

JOB = "paper-investigation"

FILE = """
model = ["baseline/lexical"]
[settings]
bench = "bench.jsonl"
papers = "papers"
questions = "questions"
pipelines = ["mcq_variant", "study_param"]
"""


@pytest.mark.parametrize(
    ("verb", "said"),
    [(("prepare", JOB, "check"), '"papers": 3,'), (("estimate", JOB), '"items": 3,')],
)
def test_the_files_it_names_are_found_from_another_folder(
    tmp_path: Path, verb: tuple[str, ...], said: str
) -> None:
    write_corpus(tmp_path / "corpus", 3)
    (tmp_path / "corpus" / "run.toml").write_text(FILE)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    words = (*verb, "--config", "../corpus/run.toml", "--json")
    assert said in siftlog(*words, cwd=elsewhere).stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('job = "nonsense"', "file.toml has job = 'nonsense', not 'screening'"),
        ('job = "property-extraction"', "has job = 'property-extraction', not"),
        (
            "modle = 'x'",
            "settings of the job go under [settings]); did you mean 'model'?",
        ),
        ("nonsense = 1", "There is no option 'nonsense' (settings"),
    ],
)
def test_a_file_of_another_job_or_with_an_unknown_option_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    content: str,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file.toml").write_text(content)
    for verb in ("run", "estimate", "prompts", "prepare"):
        assert exit_code([verb, "screening", "--config=file.toml"]) == 2
        caught = capsys.readouterr()
        assert said in caught.err
        assert caught.out == ""
    assert not Path("runs").exists()
