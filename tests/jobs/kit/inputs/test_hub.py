"""Truth from data sets: local folders are read with the library, names are checked.

The hub itself cannot be reached from a test. What is sent to it is the library's work;
what is tested here is the name that the library gets, and what a failure says.
"""

from __future__ import annotations

from pathlib import Path

import datasets
import pandas as pd
import pytest

from jobs.kit.inputs import hub
from jobs.kit.inputs.hub import table_file
from runner.errors import DatasetError, UsageError
from tests.commands import command

ROWS = {
    "refno": ["A", "A", "B"],
    "label": ["critical temperature", "space group", "critical temperature"],
    "property_value": ["12.5", "P63/mmc", None],
    "property_unit": ["K", None, "K"],
}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(
        datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "hub-cache")
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "curated"
    path.mkdir()
    pd.DataFrame(ROWS).to_parquet(path / "part.parquet")
    return path


def test_a_folder_of_parquet_files_is_the_truth_of_a_run(
    folder: Path, tmp_path: Path
) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    (papers / "A.txt").write_text("The critical temperature is 12.5 K.")
    done = command(
        *("run", "property-extraction", "--truth", folder, "--papers", papers),
        *("--run-id", "r", "--runs-dir", tmp_path / "runs", "--no-report"),
    )
    assert done.code == 0, done.err
    runs = ("--runs-dir", tmp_path / "runs")
    assert ", 2 truth " in command("score", "r", *runs, "--no-record").out


def test_the_rows_become_a_file_named_by_its_content(folder: Path) -> None:
    path = table_file(folder)
    assert path == table_file(folder)
    assert path.read_text().splitlines() == [
        "refno,label,property_value,property_unit",
        "A,critical temperature,12.5,K",
        "A,space group,P63/mmc,",
        "B,critical temperature,,K",
    ]
    pd.DataFrame({**ROWS, "property_value": ["13", "1", "2"]}).to_parquet(
        folder / "part.parquet"
    )
    assert table_file(folder) != path


def test_a_saved_data_set_with_several_splits_is_refused(tmp_path: Path) -> None:
    saved = datasets.DatasetDict(
        test=datasets.Dataset.from_dict(ROWS), train=datasets.Dataset.from_dict(ROWS)
    )
    saved.save_to_disk(str(tmp_path / "saved"))
    with pytest.raises(DatasetError, match=r"saved: .* splits test, train"):
        table_file(tmp_path / "saved")


@pytest.mark.parametrize(
    ("name", "given", "split"),
    [
        ("hf:owner/name", ("owner/name", None, None), "train"),
        ("hf:owner/name/part@v2#test", ("owner/name", "part", "v2"), "test"),
        ("hf:name#test", ("name", None, None), "test"),
    ],
)
def test_a_name_reaches_the_library_in_its_parts(
    name: str,
    given: tuple[str, str | None, str | None],
    split: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    asked = []

    def load_dataset(*words: object, **named: object) -> datasets.DatasetDict:
        asked.append((*words, named["revision"]))
        return datasets.DatasetDict({split: datasets.Dataset.from_dict(ROWS)})

    hub._of_hub.cache_clear()
    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    # settings make every path absolute
    assert "critical temperature" in table_file(tmp_path / name).read_text()
    assert asked == [given]


def test_a_hub_that_is_not_reached_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub._of_hub.cache_clear()
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(DatasetError, match=r"^hf:owner/none: .* \(check the name"):
        table_file(Path("hf:owner/none"))


def test_a_name_of_another_form_is_refused() -> None:
    with pytest.raises(UsageError, match="hf:OWNER/NAME"):
        table_file(Path("hf:a/b/c/d/e"))


def test_a_file_is_taken_as_it_is(tmp_path: Path) -> None:
    assert table_file(tmp_path / "truth.csv") == tmp_path / "truth.csv"
