"""A configuration file lies beside its data, and serves every verb before a run."""

from __future__ import annotations

from pathlib import Path

import pytest

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
