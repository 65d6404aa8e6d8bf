"""Plain words and flags, where a flag may name several files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel

from runner.cli.arguments import job_settings, split_words
from runner.workload import file_lists, resolve
from tests.runner.toy_jobs import ToyJob


class Settings(BaseModel):
    records: tuple[Path, ...] = ()
    review: tuple[str, ...] = ()
    citations: Path | None = None


class Job(ToyJob):
    Settings = Settings


@pytest.mark.parametrize(
    ("typed", "plain", "flags"),
    [
        ("a --x 1 b", "a b", "--x 1"),
        ("a --on b", "a b", "--on"),
        ("--files 1.csv 2.csv --x 1", "", "--files 1.csv --files 2.csv --x 1"),
        ("a --files 1.csv", "a", "--files 1.csv"),
        ("--files=1.csv b", "b", "--files=1.csv"),
        ("--files", "", "--files"),
    ],
)
def test_files_after_a_flag_are_its_own(typed: str, plain: str, flags: str) -> None:
    found = split_words(typed.split(), {"on"}, {"files"})
    assert found == (plain.split(), flags.split())


def test_a_job_says_which_of_its_settings_name_files(tmp_path: Path) -> None:
    job = Job()
    assert file_lists(job) == {"records"}
    _, flags = split_words(["--records", "a.csv", "b.csv"], (), file_lists(job))
    typed = job_settings(flags, ())
    made = resolve(job, typed=typed, environment={}, file={})
    assert made.model_dump()["records"] == (Path.cwd() / "a.csv", Path.cwd() / "b.csv")
    # those of a configuration file begin beside it
    file = {"records": ["a.csv"], "review": ["a.csv"]}
    made = resolve(job, typed={}, environment={}, file=file, folder=tmp_path)
    assert made.model_dump()["records"] == (tmp_path / "a.csv",)
    assert made.model_dump()["review"] == ("a.csv",)
