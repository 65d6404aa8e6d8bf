"""A large file is read in another process, which is never left alone."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest

from jobs.review_benchmark.database import formats
from jobs.review_benchmark.database.formats import read_file, read_papers
from jobs.review_benchmark.database.papers import ImportedRecord
from runner.errors import DatasetError


def test_who_stops_reading_ends_the_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "many.csv"
    path.write_text("pmid\n" + "".join(f"{number}\n" for number in range(1, 9000)))
    monkeypatch.setattr(formats, "LEAST_BYTES", 0)
    records = read_file(path, "csv", {})
    first = [next(records) for _ in range(formats.BATCH + 1)]
    assert first[-1] == ImportedRecord(source_id="501", pmid="501")
    (reader,) = multiprocessing.active_children()
    records.close()  # type: ignore[attr-defined]
    assert reader.exitcode == 0
    monkeypatch.undo()
    assert list(read_file(path, "csv", {}))[: len(first)] == first
    assert next(read_papers(path, "csv", {})) == first[0]


def test_a_reader_that_was_ended_is_said_to_be() -> None:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    sender.close()
    with receiver, pytest.raises(DatasetError, match=r"a\.csv: .* was ended"):
        formats._received(receiver, Path("a.csv"))
